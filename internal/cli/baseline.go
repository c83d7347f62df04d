package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/compare"
	"plimsoll/result"
)

// baselineDir holds the baselines, beside the runs; a name that begins with a dot is no run.
const baselineDir = ".baselines"

// baseline is a name for runs that others are held against.
type baseline struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Runs    []string  `json:"runs"`
	Set     time.Time `json:"set"`
	By      string    `json:"by"`
	// Before are earlier holders of the name, the latest first.
	Before []baseline `json:"before,omitempty"`
}

var baselineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (a *app) baselineCommand() *cobra.Command {
	set := &cobra.Command{
		Use: "set NAME RUN...", Short: "Make runs the baseline of that name", Args: args(2, 50, "name and run"),
		Long: "Set gives runs a name to hold others against; several runs are repeats of the same. A baseline changes only by this\ncommand; earlier holders of the name stay on record.\n\n" + runHelp,
		Example: `  plimsoll baseline set release latest
  plimsoll baseline set release run1 run2 run3`,
		ValidArgsFunction: a.completeRun,
		RunE:              func(_ *cobra.Command, given []string) error { return a.setBaseline(given[0], given[1:]) },
	}
	show := &cobra.Command{
		Use: "show [NAME]", Short: "Show a baseline, or list all", Args: args(0, 1, "name"),
		Example: "  plimsoll baseline show\n  plimsoll baseline show release --json",
		RunE:    func(_ *cobra.Command, given []string) error { return a.showBaselines(given) },
	}
	var f compareFlags
	check := &cobra.Command{
		Use: "check NAME RUN", Short: "Hold a run against a baseline; exit with 5 when it is worse", Args: args(2, 2, "name and run"),
		Long: `Check compares a side with a baseline as "plimsoll compare @NAME RUN" does, and exits with 5 when any
measure is worse by more than the threshold, with 4 when the two are not alike. Undecided is not worse:
read the notes on how many repeats there were.

` + sideHelp,
		Example:           "  plimsoll baseline check release latest\n  plimsoll baseline check release run4,run5,run6 --threshold 0.1",
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, given []string) error {
			d, err := a.compareSides("baseline check", []string{"@" + given[0], given[1]}, f)
			if err != nil {
				return err
			}
			return errors.Join(a.writeComparison(d, f), worse(d))
		},
	}
	f.register(check)
	return a.group("baseline", "Keep runs to hold others against", set, show, check)
}

// worse is the error of a comparison in which something is.
func worse(d *compare.Document) error {
	var names []string
	for _, m := range d.Measures {
		if m.Verdict == compare.Worse {
			names = append(names, strings.TrimSpace(m.Cell+" "+m.Workload+" "+m.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fail(exitThreshold, "", "baseline check: worse by more than %g %%: %s", d.Threshold*100, strings.Join(names, "; "))
}

func (a *app) baselinePath(phase, name string) (string, error) {
	if !baselineName.MatchString(name) {
		return "", usage("letters, digits, dots, dashes and underscores; at most 64", "%s: %q cannot be the name of a baseline", phase, name)
	}
	return filepath.Join(a.runsDir, baselineDir, name+".json"), nil
}

func (a *app) readBaseline(phase, name string) (*baseline, error) {
	path, err := a.baselinePath(phase, name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitFailed, fmt.Sprintf("plimsoll baseline set %s RUN makes it", name), "%s: no baseline %q in %q", phase, name, a.runsDir)
	}
	if err != nil {
		return nil, fail(exitFailed, "", "%s: %w", phase, err)
	}
	var b baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fail(exitFailed, "", "%s: baseline %q is damaged: %w", phase, name, err)
	}
	if b.Version != result.FormatVersion || len(b.Runs) == 0 {
		return nil, fail(exitFailed, "", "%s: baseline %q is damaged or of another version (%d)", phase, name, b.Version)
	}
	return &b, nil
}

func (a *app) setBaseline(name string, runs []string) error {
	const phase = "baseline set"
	path, err := a.baselinePath(phase, name)
	if err != nil {
		return err
	}
	b := baseline{Version: result.FormatVersion, Name: name, Set: a.now().UTC(), By: operator()}
	for _, given := range runs {
		s, err := a.side(phase, given)
		if err != nil {
			return err
		}
		for _, r := range s.Runs {
			if m := r.Manifest; m.Measured.State != "yes" {
				return fail(exitFailed, "", "%s: run %s says of its measurement: %s", phase, m.RunID, m.Measured.State)
			}
			if r.Cell != "" {
				return fail(exitFailed, "", "%s: %s has several cells: name one, as %s:FACTOR=LEVEL", phase, given, given)
			}
			b.Runs = append(b.Runs, r.Manifest.RunID)
		}
	}
	if _, err := os.Stat(path); err == nil {
		old, err := a.readBaseline(phase, name)
		if err != nil {
			return err
		}
		b.Before = append([]baseline{{Version: old.Version, Name: old.Name, Runs: old.Runs, Set: old.Set, By: old.By}}, old.Before...)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fail(exitFailed, "", "%s: %w", phase, err)
	}
	err = writeFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b)
	})
	if err != nil {
		return fail(exitFailed, "", "%s: %w", phase, err)
	}
	if a.json {
		return a.printJSON(b)
	}
	fmt.Fprintf(a.out, "baseline %s: %s\n", name, strings.Join(b.Runs, ", "))
	if len(b.Before) > 0 {
		fmt.Fprintf(a.out, "before: %s\n", strings.Join(b.Before[0].Runs, ", "))
	}
	return nil
}

func (a *app) showBaselines(given []string) error {
	names := given
	if len(given) == 0 {
		found, err := filepath.Glob(filepath.Join(a.runsDir, baselineDir, "*.json"))
		if err != nil {
			return fail(exitFailed, "", "baseline show: %w", err)
		}
		for _, f := range found {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".json"))
		}
	}
	list := []baseline{}
	for _, name := range names {
		b, err := a.readBaseline("baseline show", name)
		if err != nil {
			return err
		}
		list = append(list, *b)
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(a.out, "no baselines in %s\n", a.runsDir)
		return err
	}
	t := table{head: []string{"BASELINE", "SET", "BY", "RUNS"}}
	for _, b := range list {
		t.add(b.Name, b.Set.UTC().Format(time.RFC3339), b.By, strings.Join(b.Runs, ", "))
		if len(given) > 0 {
			for _, old := range b.Before {
				t.add("  before", old.Set.UTC().Format(time.RFC3339), old.By, strings.Join(old.Runs, ", "))
			}
		}
	}
	return t.write(a.out)
}
