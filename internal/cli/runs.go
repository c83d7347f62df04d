package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/exit"
	"plimsoll/internal/experiment"
	"plimsoll/internal/terminal"
	"plimsoll/internal/visible"
	"plimsoll/result"
	"plimsoll/unit"
)

func (a *app) runsCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the runs, newest first", Args: args(0, 0, "argument"),
		Example: "  plimsoll runs list --json",
		RunE:    func(*cobra.Command, []string) error { return a.listRuns() },
	}
	show := &cobra.Command{
		Use: "show RUN", Short: "Show what a run was, how it went and what was found", Args: args(1, 1, "run"),
		Long:              "Show prints what is known about a run.\n\n" + runHelp,
		Example:           "  plimsoll runs show latest",
		ValidArgsFunction: a.completeRun,
		RunE:              func(_ *cobra.Command, given []string) error { return a.showRun(given[0]) },
	}
	var force, yes bool
	remove := &cobra.Command{
		Use: "rm RUN...", Short: "Delete run folders with everything measured in them", Args: args(1, 1000, "run"),
		Long: "Rm deletes run folders. It refuses runs that are going on, and those whose machines were " +
			"not cleaned up\n(plimsoll cleanup does that).\n\n" + runHelp,
		Example:           "  plimsoll runs rm 20261121-2045 --yes",
		ValidArgsFunction: a.completeRun,
		RunE:              func(_ *cobra.Command, given []string) error { return a.removeRuns(given, force, yes) },
	}
	remove.Flags().BoolVar(&yes, "yes", false, "do not ask")
	remove.Flags().BoolVar(&force, "force", false, "delete runs too whose machines were not cleaned up")
	return a.group("runs", "List, show and delete runs", list, show, remove)
}

const runHelp = `A RUN is its identity or the beginning of it, as far as only one run begins so, the path of its folder, or "latest".`

// completeRun completes identities of runs.
func (a *app) completeRun(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	entries, err := result.List(a.runsDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := []string{"latest"}
	for _, e := range entries {
		names = append(names, filepath.Base(e.Dir))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// find returns the folder of a run as the user names it.
func (a *app) find(phase, run string) (string, error) {
	if isOutput(run) {
		return a.importedNow(phase, run)
	}
	if strings.ContainsRune(run, filepath.Separator) || run == "." || run == ".." {
		if _, err := os.Stat(run); err != nil {
			return "", exit.Errorf(exit.Failed, "", "%s: run %q: %w", phase, run, err)
		}
		return run, nil
	}
	entries, err := result.List(a.runsDir)
	if err != nil {
		return "", exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if experiments, _ := experiment.List(a.runsDir); len(entries) == 0 && (len(experiments) == 0 || run == "latest") {
		return "", exit.Errorf(exit.Failed, "name another folder with --dir, or make a run: plimsoll run SCENARIO",
			"%s: no runs in %q", phase, a.runsDir)
	}
	if run == "latest" {
		return slices.MaxFunc(entries, func(a, b result.Entry) int { return made(a).Compare(made(b)) }).Dir, nil
	}
	var found []string
	for _, e := range entries {
		name := filepath.Base(e.Dir)
		if name == run {
			return e.Dir, nil
		}
		if strings.HasPrefix(name, run) {
			found = append(found, e.Dir)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		// The run of an experiment lies in the experiment's folder.
		if inside, _ := filepath.Glob(filepath.Join(a.runsDir, "*", experiment.RunsFolder,
			globQuote(run)+"*")); len(inside) == 1 {
			return inside[0], nil
		}
		return "", exit.Errorf(exit.Failed, `run "plimsoll runs list" for the runs there are`,
			"%s: run %q: none of that name in %q", phase, run, a.runsDir)
	}
	return "", exit.Usagef("give more of it, like "+filepath.Base(found[0]), "%s: run %q: %d runs begin so", phase, run,
		len(found))
}

// made is when a run was made. Simulated runs have a time of their own; theirs is when the journal was last written.
func made(e result.Entry) time.Time {
	if e.Manifest.Simulated {
		if info, err := os.Stat(filepath.Join(e.Dir, "journal.jsonl")); err == nil {
			return info.ModTime()
		}
	}
	return e.Manifest.Created
}

// globQuote takes their meaning from the signs of a pattern.
func globQuote(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// openRun opens the folder of a run as the user names it.
func (a *app) openRun(phase, run string) (*result.Folder, error) {
	dir, err := a.find(phase, run)
	if err != nil {
		return nil, err
	}
	folder, err := result.Open(dir)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return folder, nil
}

// listedRun is one entry of runs list --json.
type listedRun struct {
	RunID     string     `json:"run_id"`
	Dir       string     `json:"dir"`
	Created   time.Time  `json:"created,omitzero"`
	Scenario  string     `json:"scenario"`
	Target    string     `json:"target"`
	Status    string     `json:"status"`
	Measured  string     `json:"measured"`
	Collected string     `json:"collected"`
	Cleaned   string     `json:"cleaned"`
	Bytes     unit.Bytes `json:"bytes"`
	Problem   string     `json:"problem,omitempty"`
}

func (a *app) listRuns() error {
	entries, err := result.List(a.runsDir)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "runs: %w", err)
	}
	rows, err := a.listedExperiments()
	if err != nil {
		return err
	}
	for _, e := range entries {
		m := e.Manifest
		rows = append(rows, listedRun{
			RunID: filepath.Base(e.Dir), Dir: e.Dir, Created: m.Created, Scenario: m.Scenario.Name, Target: m.Target,
			Status:   m.Status,
			Measured: m.Measured.State, Collected: m.Collected.State, Cleaned: m.Cleaned.State,
			Bytes: unit.Bytes(e.Bytes), Problem: e.Problem,
		})
	}
	slices.SortStableFunc(rows, func(x, y listedRun) int { return strings.Compare(y.RunID, x.RunID) })
	if a.json {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		_, err := visible.Fprintf(a.out, "no runs in %s\n", a.runsDir)
		return err
	}
	t := terminal.Table{Head: []string{"ID", "SCENARIO", "STATUS", "RUN", "COLLECTION", "CLEANUP", "SIZE"}}
	for _, r := range rows {
		status := r.Status
		if status == "" {
			status = "unreadable"
		}
		word := func(state string) string { return result.Verdict{State: state}.Word() }
		t.Add(r.RunID, r.Scenario, status, word(r.Measured), word(r.Collected), word(r.Cleaned), r.Bytes.String())
	}
	if err := t.Write(a.out); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Problem != "" {
			visible.Fprintf(a.err, "warning: %s: %s\n", r.RunID, r.Problem)
		}
	}
	return nil
}

func (a *app) showRun(run string) error {
	folder, err := a.openRun("runs show", run)
	if err != nil {
		return err
	}
	if a.json {
		findings, err := folder.Findings()
		if err != nil {
			findings = nil // none yet; Problems tells of damage
		}
		return a.printJSON(struct {
			Dir      string           `json:"dir"`
			Manifest result.Manifest  `json:"manifest"`
			Findings []result.Finding `json:"findings"`
			Problems []string         `json:"problems"`
		}{folder.Dir(), folder.Manifest(), findings, folder.Problems()})
	}
	m := folder.Manifest()
	visible.Fprintf(a.out, "%s\n", m.RunID)
	if m.Scenario.Name != "" {
		visible.Fprintf(a.out, "%s\n", strings.TrimSuffix(m.Scenario.Name+": "+m.Scenario.Summary, ": "))
	}
	visible.Fprintf(a.out, "\n")
	facts := terminal.Table{Head: []string{"FACT", "VALUE"}}
	facts.Add("folder", folder.Dir())
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
	if err := facts.Write(a.out); err != nil {
		return err
	}
	visible.Fprintf(a.out, "\n")
	return a.printSummary(folder)
}

func (a *app) removeRuns(runs []string, force, yes bool) error {
	var dirs []string
	for _, run := range runs {
		if dir, ok := a.findExperiment(run); ok {
			dirs = append(dirs, dir)
			continue
		}
		dir, err := a.find("runs rm", run)
		if err != nil {
			return err
		}
		dirs = append(dirs, dir)
	}
	if !yes {
		if err := a.consent(fmt.Sprintf("delete %s and everything measured in it?",
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
		if !a.json {
			visible.Fprintf(a.out, "deleted %s\n", dir)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &exit.Error{Code: exit.Failed, Err: err}
	}
	if a.json {
		return a.printJSON(map[string][]string{"deleted": dirs})
	}
	return nil
}

// listedExperiments are the experiments as rows of a list of runs.
func (a *app) listedExperiments() ([]listedRun, error) {
	rows := []listedRun{}
	dirs, err := experiment.List(a.runsDir)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "runs: %w", err)
	}
	for _, dir := range dirs {
		row := listedRun{RunID: filepath.Base(dir), Dir: dir}
		folder, err := experiment.Open(dir)
		if err != nil {
			row.Problem = err.Error()
			rows = append(rows, row)
			continue
		}
		r := folder.Record()
		progress, err := folder.Progress()
		runs, listErr := result.List(folder.RunsDir())
		if err := errors.Join(err, listErr); err != nil {
			row.Problem = err.Error()
		}
		row.Created, row.Scenario, row.Target = r.Created, r.ScenarioName, r.Settings.Target
		row.Status = fmt.Sprintf("experiment, %d of %d", len(progress.Done), len(r.Sequence))
		for _, e := range runs {
			row.Bytes += unit.Bytes(e.Bytes)
		}
		rows = append(rows, row)
	}
	return rows, nil
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
	runs, err := result.List(folder.RunsDir())
	if err != nil {
		return err
	}
	for _, e := range runs {
		if err := result.Remove(e.Dir, force); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// consent asks on standard error and reads a line; anything but y or yes refuses.
func (a *app) consent(question string) error {
	visible.Fprintf(a.err, "%s [y/N] ", question)
	var answer string
	_, _ = fmt.Fscanln(a.in, &answer) // an empty line and the end of input are a no
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return nil
	}
	return exit.Usagef("answer y, or give --yes", "not confirmed")
}
