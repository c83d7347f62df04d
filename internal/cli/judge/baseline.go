package judge

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

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

// baselineVersion is the version of a baseline's file.
const baselineVersion = 1

// baseline is a name for runs, or for files of repeats, that others are held against.
type baseline struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Runs    []string  `json:"runs"`
	Files   *repeats  `json:"files,omitempty"` // instead of runs
	Set     time.Time `json:"set"`
	By      string    `json:"by"`
	// Before are earlier holders of the name, the latest first.
	Before []baseline `json:"before,omitempty"`
}

// holds says what a baseline is of.
func (b baseline) holds() string {
	if b.Files == nil {
		return strings.Join(b.Runs, ", ")
	}
	most := 0
	for _, c := range b.Files.Columns {
		most = max(most, len(c.Values))
	}
	return fmt.Sprintf("%s (%s, %s)", strings.Join(b.Files.Sources, ", "), unit.Plural(len(b.Files.Columns), "column"),
		unit.Plural(most, "repeat"))
}

var baselineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (sd *Sides) BaselineCommand() *cobra.Command {
	var of compareFlags
	set := &cobra.Command{
		Use: "set NAME RUN|FILE|-...", Short: "Make runs, or files of repeats, the baseline of that name",
		Args: console.Args(2, 50, "name and run or file"),
		Long: `Set gives runs a name to compare others with; several runs are repeats of the same. A baseline changes only by this
command; earlier holders of the name stay on record.

Files of any tool can be a baseline instead (CSV, columns separated by blanks, JSON; "-" is standard input): a column
is a measure, a row is a repeat, several files are more repeats. Their numbers, and which way is good, are kept in the
baseline; the files are not needed again.

` + runs.RunHelp,
		Example: `  plimsoll baseline set release latest
  plimsoll baseline set release run1 run2 run3
  plimsoll baseline set disk before.csv --better p99_ms=lower`,
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.setBaseline(given[0], given[1:], of)
		},
	}
	of.registerFiles(set)
	sd.readingTables(set)
	sd.trusting(set)
	show := &cobra.Command{
		Use: "show [NAME]", Short: "Show a baseline, or list all", Args: console.Args(0, 1, "name"),
		Example: "  plimsoll baseline show\n  plimsoll baseline show release --json",
		RunE:    func(_ *cobra.Command, given []string) error { return sd.showBaselines(given) },
	}
	var f compareFlags
	var g gate
	check := &cobra.Command{
		Use: "check NAME RUN|FILE|-", Short: "Compare a run or a file with a baseline; exit with 5 when it is worse",
		Args: console.Args(2, 2, "name and run or file"),
		Long: `Check compares a side with a baseline as "plimsoll compare @NAME RUN" does, and exits with 5 when any
measure is worse by more than the threshold, or changed with no direction known to be good, with 4 when the two are not
alike, and with 7 when each is one run, which decides nothing that is not gross. Inconclusive is neither worse nor the
same: with --fail-on worse,inconclusive it fails too.

A baseline of files takes a file of repeats. One that lacks a column of the baseline, or has it in another unit, is
refused with 4; columns that the baseline does not have are left out.

` + sideHelp,
		Example:           "  plimsoll baseline check release latest\n  plimsoll baseline check release run4,run5,run6 --threshold 0.1\n  plimsoll baseline check disk after.csv --fail-on worse,inconclusive --junit disk.xml",
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			if err := g.check("baseline check"); err != nil {
				return err
			}
			f.gate = true
			d, err := sd.compareSides("baseline check", []string{"@" + given[0], given[1]}, f)
			if err != nil {
				return err
			}
			return sd.judge("baseline check", d, f, g)
		},
	}
	f.register(check)
	f.registerBetter(check)
	f.registerPaired(check)
	sd.readingTables(check)
	g.register(check, failWorse)
	return console.Group("baseline", "Keep runs to compare others with", set, show, check)
}

func (sd *Sides) baselinePath(phase, name string) (string, error) {
	if !baselineName.MatchString(name) {
		return "", exit.Usagef("letters, digits, dots, dashes and underscores; at most 64",
			"%s: %q cannot be the name of a baseline", phase, name)
	}
	return filepath.Join(sd.RunsDir, result.BaselineDir, name+".json"), nil
}

func (sd *Sides) readBaseline(phase, name string) (*baseline, error) {
	path, err := sd.baselinePath(phase, name)
	if err != nil {
		return nil, err
	}
	data, err := regular.Read(path, regular.NoLinks, regular.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Errorf(exit.Failed, fmt.Sprintf("plimsoll baseline set %s RUN makes it", name),
			"%s: no baseline %q in %q", phase, name, sd.RunsDir)
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	var b baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: baseline %q is damaged: %w", phase, name, err)
	}
	if b.Version != baselineVersion || len(b.Runs) == 0 && (b.Files == nil || len(b.Files.Columns) == 0) {
		return nil, exit.Errorf(exit.Failed, "", "%s: baseline %q is damaged or of another version (%d)", phase, name,
			b.Version)
	}
	return &b, nil
}

func (sd *Sides) setBaseline(name string, given []string, f compareFlags) error {
	const phase = "baseline set"
	path, err := sd.baselinePath(phase, name)
	if err != nil {
		return err
	}
	b := baseline{Version: baselineVersion, Name: name, Runs: []string{}, Set: sd.Now().UTC(),
		By: console.Operator(false)}
	files, err := sd.ofTables(phase, given, f)
	if err != nil {
		return err
	}
	search, found := compare.Search{}, false
	if !files && len(given) == 1 {
		search, found, err = sd.searchSide(phase, given[0])
	}
	switch {
	case err != nil:
	case files:
		b.Files, err = sd.readRepeats(phase, given, f)
	case found:
		b.Runs = []string{search.ID}
	default:
		b.Runs, err = sd.measuredRuns(phase, given)
	}
	if err != nil {
		return err
	}
	err = sd.alone(phase, result.BaselineDir, func() error {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			old, err := sd.readBaseline(phase, name)
			if err != nil {
				return err
			}
			b.Before = append([]baseline{{Version: old.Version, Name: old.Name, Runs: old.Runs, Files: old.Files,
				Set: old.Set, By: old.By}}, old.Before...)
		}
		if err := outfile.Replace(path, func(w io.Writer) error { return console.Indented(w, b) }); err != nil {
			return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sd.JSON {
		return sd.PrintJSON(b)
	}
	visible.Fprintf(sd.Out, "baseline %s: %s\n", name, b.holds())
	if len(b.Before) > 0 {
		visible.Fprintf(sd.Out, "before: %s\n", b.Before[0].holds())
	}
	return nil
}

// measuredRuns are the identities of runs that can be a baseline.
func (sd *Sides) measuredRuns(phase string, given []string) ([]string, error) {
	var runs []string
	for _, g := range given {
		s, err := sd.side(phase, g)
		if err != nil {
			return nil, err
		}
		for _, r := range s.Runs {
			if m := r.Manifest; m.Measured.State != "yes" {
				return nil, exit.Errorf(exit.Failed, "", "%s: run %s: run status %s", phase, m.RunID,
					m.Measured.Word())
			}
			if r.Cell != "" {
				return nil, exit.Errorf(exit.Failed, "", "%s: %s has several cells: name one, as %s:FACTOR=LEVEL",
					phase, g, g)
			}
			runs = append(runs, r.Manifest.RunID)
		}
	}
	return runs, nil
}

func (sd *Sides) showBaselines(given []string) error {
	names := given
	if len(given) == 0 {
		found, err := fs.Glob(os.DirFS(filepath.Join(sd.RunsDir, result.BaselineDir)), "*.json")
		if err != nil {
			return exit.Errorf(exit.Failed, "", "baseline show: %w", err)
		}
		for _, f := range found {
			names = append(names, strings.TrimSuffix(f, ".json"))
		}
	}
	list := []baseline{}
	for _, name := range names {
		b, err := sd.readBaseline("baseline show", name)
		if err != nil {
			return err
		}
		list = append(list, *b)
	}
	if sd.JSON {
		return sd.PrintJSON(list)
	}
	if len(list) == 0 {
		_, err := visible.Fprintf(sd.Out, "no baselines in %s\n", sd.RunsDir)
		return err
	}
	t := terminal.Table{Head: []string{"BASELINE", "SET", "BY", "RUNS OR FILES"}}
	for _, b := range list {
		t.Add(b.Name, b.Set.UTC().Format(time.RFC3339), b.By, b.holds())
		if len(given) > 0 {
			for _, old := range b.Before {
				t.Add("  before", old.Set.UTC().Format(time.RFC3339), old.By, old.holds())
			}
		}
	}
	return t.Write(sd.Out)
}
