package runs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

// LabelFlags say what a new run is called.
type LabelFlags struct{ Labels result.Labels }

func (f *LabelFlags) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.Labels.Name, "name", "", "a `name` for the run, by which other commands find it")
	c.Flags().StringArrayVar(&f.Labels.Tags, "tag", nil, "a `tag` for the run, which lists filter by; repeatable")
	c.Flags().StringVar(&f.Labels.Note, "note", "", "a `text` about the run, shown with its report")
}

// Check refuses labels that cannot be, before anything is started.
func (f *LabelFlags) Check(st *Store, phase string) error {
	if err := f.Labels.Check(); err != nil {
		return exit.Usagef("", "%s: %w", phase, err)
	}
	return st.nameIsFree(phase, f.Labels.Name, "")
}

// nameIsFree refuses a name that another run has, or that would be taken for something else. dir is the run that is to
// have it.
func (st *Store) nameIsFree(phase, name, dir string) error {
	switch {
	case name == "":
		return nil
	case name == "latest" || name == "all":
		return exit.Usagef("", "%s: a run cannot be called %q, which means others already", phase, name)
	case recognise.IsTable(name) || recognise.IsOutput(name):
		return exit.Usagef("leave out the ending", "%s: a run cannot be called %q, which commands take for a file", phase,
			name)
	}
	runs, err := st.AllFolders()
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	experiments, err := experiment.List(st.RunsDir)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	for _, other := range slices.Concat(runs, experiments) {
		if filepath.Base(other) == name {
			return exit.Usagef("", "%s: a run cannot be called %q: that is the identity of one", phase, name)
		}
		if l, err := result.ReadLabels(other); err == nil && l.Name == name && !samePath(other, dir) {
			id := filepath.Base(other)
			return exit.Usagef(fmt.Sprintf("take another name, or take this one from it: plimsoll runs name %s --remove",
				id), "%s: run %s is called %q already", phase, id, name)
		}
	}
	return nil
}

// samePath reports whether two paths name the same folder.
func samePath(x, y string) bool {
	absX, err1 := filepath.Abs(x)
	absY, err2 := filepath.Abs(y)
	return y != "" && err1 == nil && err2 == nil && absX == absY
}

const labelsHelp = "Labels lie in a file of their own in the run's folder: what was measured stays as it is, also when " +
	"it is collected anew.\n\n" + RunHelp

func (st *Store) nameCommand() *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use: "name RUN [NAME]", Short: "Give a run a name, or take it away", Args: console.Args(1, 2, "run and name"),
		Long: `Name gives a run or an experiment a name, by which all commands find it. Two runs cannot have the same name.

` + labelsHelp,
		Example: `  plimsoll runs name latest before-upgrade
  plimsoll runs name before-upgrade --remove`,
		ValidArgsFunction: st.CompleteRun,
		RunE: func(cmd *cobra.Command, given []string) error {
			if remove == (len(given) == 2) {
				return exit.Usagef(`as in "plimsoll runs name latest before-upgrade"`, "runs name: give a name, or --remove")
			}
			name := strings.Join(given[1:], "")
			return st.label("runs name", given[0], result.Labels{Name: name}, func(l *result.Labels) { l.Name = name })
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "take the name away")
	return c
}

func (st *Store) noteCommand() *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use: "note RUN [TEXT]", Short: "Say something about a run, or take it back", Args: console.Args(1, 2,
			"run and text"),
		Long: `Note says something about a run or an experiment, in place of what was said before. Its report shows it.

` + labelsHelp,
		Example: `  plimsoll runs note latest "cache of the array switched off"
  plimsoll runs note latest --remove`,
		ValidArgsFunction: st.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			if remove == (len(given) == 2) {
				return exit.Usagef(`as in plimsoll runs note latest "new firmware"`, "runs note: give a text, or --remove")
			}
			note := strings.Join(given[1:], "")
			return st.label("runs note", given[0], result.Labels{Note: note}, func(l *result.Labels) { l.Note = note })
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "take the note away")
	return c
}

func (st *Store) tagCommand() *cobra.Command {
	var remove []string
	c := &cobra.Command{
		Use: "tag RUN [TAG...]", Short: "Add tags to a run, or remove some", Args: console.Args(1, 100, "run and tags"),
		Long: `Tag adds tags to a run or an experiment, and removes those named with --remove. "plimsoll runs --tag TAG" lists the
runs that have one.

` + labelsHelp,
		Example: `  plimsoll runs tag latest nightly host=db7
  plimsoll runs tag latest good --remove suspect`,
		ValidArgsFunction: st.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			if len(given) == 1 && len(remove) == 0 {
				return exit.Usagef(`as in "plimsoll runs tag latest nightly"`, "runs tag: give tags, or --remove TAG")
			}
			return st.label("runs tag", given[0], result.Labels{Tags: given[1:]}, func(l *result.Labels) {
				l.Tags = slices.DeleteFunc(slices.Concat(l.Tags, given[1:]), func(t string) bool {
					return slices.Contains(remove, t)
				})
			})
		},
	}
	c.Flags().StringArrayVar(&remove, "remove", nil, "remove a `tag`; repeatable")
	return c
}

// label changes the labels of a run or an experiment and prints what they are then. asked are those given, checked
// before the run is looked for.
func (st *Store) label(phase, run string, asked result.Labels, change func(*result.Labels)) error {
	if err := asked.Check(); err != nil {
		return exit.Usagef("", "%s: %w", phase, err)
	}
	if recognise.IsOutput(run) {
		return exit.Usagef("make a run of it first: plimsoll import "+run, "%s: %q is a file and no run", phase, run)
	}
	dir, ok := st.FindExperiment(run)
	if !ok {
		var err error
		if dir, err = st.Find(phase, run); err != nil {
			return err
		}
		if _, err := result.Open(dir); err != nil {
			return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
		}
	}
	if err := st.nameIsFree(phase, asked.Name, dir); err != nil {
		return err
	}
	labels, err := result.ChangeLabels(dir, change)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if st.JSON {
		return st.PrintJSON(struct {
			RunID string   `json:"run_id"`
			Name  string   `json:"name"`
			Tags  []string `json:"tags"`
			Note  string   `json:"note"`
		}{filepath.Base(dir), labels.Name, append([]string{}, labels.Tags...), labels.Note})
	}
	for _, line := range labelLines(labels) {
		visible.Fprintf(st.Out, "%s: %s\n", line[0], line[1])
	}
	return nil
}

// labelLines are the labels there are, each with what it is.
func labelLines(l result.Labels) (lines [][2]string) {
	for _, line := range [][2]string{{"name", l.Name}, {"tags", strings.Join(l.Tags, " ")}, {"note", l.Note}} {
		if line[1] != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
