// Package runs is the folder of run folders: which run or experiment is meant, what was collected and found in it,
// outputs of other tools in the place of runs, and the commands that list, label, import, attach to, query and clean up
// runs.
package runs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/importer"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
	"plimsoll/unit"
)

func (st *Store) RunsCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show RUN", Short: "Show what a run was, how it went and what was found", Args: console.Args(1, 1, "run"),
		Long: "Show prints what is known about a run, and of one that goes on what there is so far.\n\n" +
			RunHelp,
		Example:           "  plimsoll runs show latest",
		ValidArgsFunction: st.CompleteRun,
		RunE:              func(_ *cobra.Command, given []string) error { return st.showRun(given[0]) },
	}
	var force, yes bool
	remove := &cobra.Command{
		Use: "rm RUN...", Short: "Delete run folders with everything measured in them", Args: console.Args(1, 1000,
			"run"),
		Long: "Rm deletes run folders. It refuses runs that are going on, and those whose machines were " +
			"not cleaned up\n(plimsoll cleanup does that).\n\n" + RunHelp,
		Example:           "  plimsoll runs rm 20261121-2045 --yes",
		ValidArgsFunction: st.CompleteRun,
		RunE:              func(_ *cobra.Command, given []string) error { return st.removeRuns(given, force, yes) },
	}
	remove.Flags().BoolVar(&yes, "yes", false, "do not ask")
	remove.Flags().BoolVar(&force, "force", false, "delete runs too whose machines were not cleaned up")
	c := console.Group("runs", "List, show, label and delete runs", st.listCommand(), show, st.tagCommand(),
		st.noteCommand(),
		st.nameCommand(), remove)
	st.makeList(c) // "plimsoll runs" lists, too
	return c
}

const RunHelp = `A RUN is its identity, its name, or the beginning of either, as far as only one run begins so; the path of its folder;
or "latest".`

// CompleteRun completes identities of runs.
func (st *Store) CompleteRun(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	listed, err := st.listed()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := []string{"latest"}
	for _, e := range listed {
		names = append(names, filepath.Base(e.Dir))
		if e.Labels.Name != "" {
			names = append(names, e.Labels.Name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// Find returns the folder of a run as the user names it.
func (st *Store) Find(phase, run string) (string, error) {
	if recognise.IsOutput(run) {
		return st.ImportedNow(phase, run)
	}
	if strings.ContainsRune(run, filepath.Separator) || run == "." || run == ".." {
		if _, err := os.Stat(run); err != nil {
			return "", exit.Errorf(exit.Failed, "", "%s: run %q: %w", phase, run, err)
		}
		if err := unknownFile(phase, run); err != nil {
			return "", err
		}
		return run, nil
	}
	runs, err := result.Folders(st.RunsDir)
	if err != nil {
		return "", exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	experiments, _ := experiment.List(st.RunsDir) // what is wrong with the folder was said
	if len(runs) == 0 && (len(experiments) == 0 || run == "latest") {
		if err := unknownFile(phase, run); err != nil {
			return "", err
		}
		return "", exit.Errorf(exit.Failed, "name another folder with --dir, or make a run: plimsoll run SCENARIO",
			"%s: no runs in %q", phase, st.RunsDir)
	}
	if run == "latest" {
		listed, err := st.listed()
		if err != nil {
			return "", exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
		}
		if len(listed) == 0 { // they were removed meanwhile
			return "", exit.Errorf(exit.Failed, "", "%s: no runs in %q any more", phase, st.RunsDir)
		}
		return listed[0].Dir, nil
	}
	found := matching(run, slices.Concat(runs, experiments))
	if len(found) == 0 { // the runs of an experiment lie in its folder
		for _, e := range experiments {
			inside, err := result.Folders(filepath.Join(e, experiment.RunsFolder))
			if err != nil {
				return "", exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
			}
			found = append(found, inside...)
		}
		found = matching(run, found)
	}
	switch len(found) {
	case 0:
		if err := unknownFile(phase, run); err != nil {
			return "", err
		}
		return "", exit.Errorf(exit.Failed, `run "plimsoll runs list" for the runs there are`,
			"%s: run %q: none of that name in %q", phase, run, st.RunsDir)
	case 1:
		if experiment.Is(found[0]) {
			return "", exit.Errorf(exit.Failed, "its runs are in "+filepath.Join(found[0], experiment.RunsFolder),
				"%s: %q is an experiment of many runs", phase, run)
		}
		return found[0], nil
	}
	return "", ambiguous(phase, run, found)
}

// unknownFile refuses a file that is no output that is known.
func unknownFile(phase, name string) error {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil // who asks says that there is none
	}
	if info.Size() == 0 {
		return exit.Errorf(exit.Failed, "", "%s: %q is empty", phase, name)
	}
	as, host, known, advice := recognise.Recognise(name)
	switch {
	case advice != "":
		return exit.Errorf(exit.Failed, advice, "%s: %q is output that is not read: %s", phase, name, as)
	case known && host:
		return exit.Errorf(exit.Failed, fmt.Sprintf("plimsoll import %q makes a run of it, beside outputs of a load", name),
			"%s: %q holds counters of a machine (%s), and no load", phase, name, as)
	}
	if like := importer.Resembles(recognise.Head(name)); like != "" {
		return exit.Errorf(exit.Failed, "", "%s: %q is no run and no output that is read: it looks like %s", phase, name, like)
	}
	return exit.Errorf(exit.Failed, "plimsoll import --list names the outputs that are read",
		"%s: %q is a file, and neither a run folder nor an output that is recognised", phase, name)
}

// ambiguous is the error of an argument that several runs are meant by; it names them.
func ambiguous(phase, run string, found []string) error {
	const most = 5
	var names []string
	for _, dir := range found[:min(most, len(found))] {
		name := filepath.Base(dir)
		if l, err := result.ReadLabels(dir); err == nil && l.Name != "" {
			name += " (" + l.Name + ")"
		}
		names = append(names, name)
	}
	if more := len(found) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return exit.Usagef("give more of it, or the whole", "%s: run %q: %d runs begin so: %s", phase, run, len(found),
		strings.Join(names, ", "))
}

// matching are the folders of runs or experiments that an argument means: the one of that identity, else those of that
// name, else those whose identity or name begins so.
func matching(given string, dirs []string) (found []string) {
	var named, begin []string
	for _, dir := range dirs {
		id := filepath.Base(dir)
		if id == given {
			return []string{dir}
		}
		labels, _ := result.ReadLabels(dir) // damaged ones name nothing; lists say so
		switch {
		case labels.Name == given && given != "":
			named = append(named, dir)
		case strings.HasPrefix(id, given), labels.Name != "" && strings.HasPrefix(labels.Name, given):
			begin = append(begin, dir)
		}
	}
	if named != nil {
		return named
	}
	return begin
}

// OpenRun opens the folder of a run as the user names it.
func (st *Store) OpenRun(phase, run string) (*result.Folder, error) {
	dir, err := st.Find(phase, run)
	if err != nil {
		return nil, err
	}
	folder, err := result.Open(dir)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return folder, nil
}

func (st *Store) showRun(run string) error {
	folder, err := st.OpenRun("runs show", run)
	if err != nil {
		return err
	}
	labels, err := result.ReadLabels(folder.Dir())
	if err != nil {
		visible.Fprintf(st.Err, "warning: runs show: %v\n", err)
	}
	if st.JSON {
		findings, err := folder.Findings()
		if err != nil {
			findings = nil // none yet; Problems tells of damage
		}
		return st.PrintJSON(struct {
			Dir      string           `json:"dir"`
			Labels   result.Labels    `json:"labels"`
			Manifest result.Manifest  `json:"manifest"`
			Findings []result.Finding `json:"findings"`
			Problems []string         `json:"problems"`
		}{folder.Dir(), labels, folder.Manifest(), findings, folder.Problems()})
	}
	m := folder.Manifest()
	visible.Fprintf(st.Out, "%s\n", m.RunID)
	if m.Scenario.Name != "" {
		visible.Fprintf(st.Out, "%s\n", strings.TrimSuffix(m.Scenario.Name+": "+m.Scenario.Summary, ": "))
	}
	visible.Fprintf(st.Out, "\n")
	facts := terminal.Table{Head: []string{"FACT", "VALUE"}}
	facts.Add("folder", folder.Dir())
	for _, line := range labelLines(labels) {
		facts.Add(line[0], line[1])
	}
	if !m.Created.IsZero() {
		facts.Add("began", m.Created.UTC().Format(time.RFC3339))
	}
	if !m.Ended.IsZero() && !m.Created.IsZero() {
		facts.Add("took", unit.Duration(m.Ended.Sub(m.Created)).String())
	}
	if len(m.Nodes) > 0 { // none: the manifest is damaged
		facts.Add("target", fmt.Sprintf("%s, %s", m.Target, unit.Plural(len(m.Nodes), "node")))
		facts.Add("scales", fmt.Sprintf("time x %g, size x %g", m.TimeScale, m.SizeScale))
	}
	for _, v := range m.Scenario.Vars {
		facts.Add("variable "+v.Name, fmt.Sprintf("%s (%s)", v.Value, v.From))
	}
	if o := m.Overhead; o != nil {
		facts.Add("own cost", fmt.Sprintf("%.1f %% of one core, %s resident", o.CorePercent,
			unit.Bytes(o.MaxResidentBytes)))
	}
	if err := facts.Write(st.Out); err != nil {
		return err
	}
	visible.Fprintf(st.Out, "\n")
	return printSummary(st.Console, "runs show", folder)
}

func (st *Store) removeRuns(runs []string, force, yes bool) error {
	var dirs []string
	for _, run := range runs {
		if dir, ok := st.FindExperiment(run); ok {
			dirs = append(dirs, dir)
			continue
		}
		dir, err := st.Find("runs rm", run)
		if err != nil {
			return err
		}
		dirs = append(dirs, dir)
	}
	if !yes {
		if err := st.Confirm(fmt.Sprintf("delete %s and everything measured in it?",
			strings.Join(dirs, ", "))); err != nil {
			return err
		}
	}
	var errs []error
	for _, dir := range dirs {
		remove := result.Remove
		if experiment.Is(dir) {
			remove = removeExperiment
		}
		if err := remove(dir, force); err != nil {
			errs = append(errs, fmt.Errorf("runs rm: %w", err))
			continue
		}
		if !st.JSON {
			visible.Fprintf(st.Out, "deleted %s\n", dir)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &exit.Error{Code: exit.Failed, Err: err}
	}
	if st.JSON {
		return st.PrintJSON(map[string][]string{"deleted": dirs})
	}
	return nil
}

// removeExperiment deletes an experiment with all its runs, unless it goes on or one of them was not cleaned up.
func removeExperiment(dir string, force bool) error {
	folder, err := experiment.Open(dir)
	if err != nil {
		return err
	}
	if err := folder.Lock(); err != nil {
		return err
	}
	defer folder.Close()
	runs, err := result.Folders(folder.RunsDir())
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := result.Remove(run, force); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
