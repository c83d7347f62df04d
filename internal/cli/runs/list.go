package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
	"plimsoll/unit"
)

// listFilter says which runs a list is about.
type listFilter struct {
	scenario, target, since string
	tags                    []string // all of them
	limit                   int
	from                    time.Time // of since
}

func (st *Store) listCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the runs, newest first"}
	st.makeList(list)
	return list
}

// makeList has a command list the runs.
func (st *Store) makeList(c *cobra.Command) {
	var f listFilter
	if c.Args == nil {
		c.Args = console.Args(0, 0, "argument")
	}
	c.Long = `Runs lists runs and experiments, the newest first, each with the first figure of its report. Simulated runs stand
where they were made, whatever their own clock says. Filters add up.`
	c.Example = `  plimsoll runs
  plimsoll runs --scenario db-colocation --since 7d
  plimsoll runs --tag before-upgrade --json`
	c.RunE = func(cmd *cobra.Command, _ []string) error { return st.listRuns(console.Phase(cmd), f) }
	c.Flags().StringVar(&f.scenario, "scenario", "", "only runs of the scenario of that `name`")
	c.Flags().StringVar(&f.target, "target", "", "only runs on that `target`")
	c.Flags().StringVar(&f.since, "since", "", "only runs made since a `time`: a date like 2026-11-22, or 12h or 7d ago")
	c.Flags().StringArrayVar(&f.tags, "tag", nil, "only runs with that `tag`; repeatable, all must be there")
	c.Flags().IntVar(&f.limit, "limit", 0, "only the newest `number` of them")
}

// listedRun is one entry of runs list --json.
type listedRun struct {
	RunID     string           `json:"run_id"`
	Dir       string           `json:"dir"`
	Name      string           `json:"name,omitempty"`
	Tags      []string         `json:"tags,omitempty"`
	Note      string           `json:"note,omitempty"`
	Created   time.Time        `json:"created,omitzero"`
	Made      time.Time        `json:"made,omitzero"` // by this machine's clock, where created is of a simulation's
	Seconds   *float64         `json:"seconds,omitempty"`
	Scenario  string           `json:"scenario"`
	Target    string           `json:"target"`
	Status    string           `json:"status"`
	Measured  string           `json:"measured"`
	Collected string           `json:"collected"`
	Cleaned   string           `json:"cleaned"`
	Headline  *result.Headline `json:"headline,omitempty"` // the first figure of the report
	Failed    []string         `json:"failed_asserts,omitempty"`
	Bytes     unit.Bytes       `json:"bytes"`
	Problem   string           `json:"problem,omitempty"`

	experiment bool
}

// fits reports whether a filter keeps a run.
func (f listFilter) fits(r listedRun) bool {
	lacks := func(tag string) bool { return !slices.Contains(r.Tags, tag) }
	return (f.scenario == "" || r.Scenario == f.scenario) && (f.target == "" || r.Target == f.target) &&
		!r.Made.Before(f.from) && !slices.ContainsFunc(f.tags, lacks)
}

func (st *Store) listRuns(phase string, f listFilter) error {
	if f.limit < 0 {
		return exit.Usagef("", "%s--limit: %d is not a number of runs", phase, f.limit)
	}
	if f.since != "" {
		var err error
		if f.from, err = web.Since(f.since, st.Now()); err != nil {
			return exit.Usagef("", "%s--since: %w", phase, err)
		}
	}
	listed, err := st.listed()
	if err != nil {
		return exit.Errorf(exit.Failed, "", "runs: %w", err)
	}
	rows, err := st.listedExperiments()
	if err != nil {
		return err
	}
	for _, e := range listed {
		rows = append(rows, rowOf(e))
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(r listedRun) bool { return !f.fits(r) })
	slices.SortStableFunc(rows, func(x, y listedRun) int {
		if c := y.Made.Compare(x.Made); c != 0 {
			return c
		}
		return strings.Compare(y.RunID, x.RunID)
	})
	if f.limit > 0 {
		rows = rows[:min(f.limit, len(rows))]
	}
	rows = completed(rows)
	if st.JSON {
		return st.PrintJSON(rows)
	}
	if len(rows) == 0 {
		none := "no runs in " + st.RunsDir
		if all > 0 {
			none = fmt.Sprintf("none of %s in %s fits", unit.Plural(all, "run"), st.RunsDir)
		}
		_, err := visible.Fprintf(st.Out, "%s\n", none)
		return err
	}
	if err := listTable(rows, terminal.Width(st.Out)).Write(st.Out); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Problem != "" {
			visible.Fprintf(st.Err, "warning: %s: %s\n", r.RunID, r.Problem)
		}
	}
	return nil
}

func rowOf(e web.Listed) listedRun {
	m := e.Manifest
	r := listedRun{
		RunID: filepath.Base(e.Dir), Dir: e.Dir, Name: e.Labels.Name, Tags: e.Labels.Tags, Note: e.Labels.Note,
		Created: m.Created, Made: e.Made, Scenario: m.Scenario.Name, Target: m.Target, Status: m.Status,
		Measured: m.Measured.State, Collected: m.Collected.State, Cleaned: m.Cleaned.State,
		Headline: m.Headline, Failed: m.FailedAsserts, Problem: e.Problem,
	}
	if !m.Ended.IsZero() && !m.Created.IsZero() {
		s := m.Ended.Sub(m.Created).Seconds()
		r.Seconds = &s
	}
	return r
}

// completed reads what no index keeps of the runs that are shown, on all processors, and leaves out those that were
// removed meanwhile.
func completed(rows []listedRun) []listedRun {
	var g sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		g.Go(func() {
			for i := w; i < len(rows); i += workers {
				rows[i].complete()
			}
		})
	}
	g.Wait()
	return slices.DeleteFunc(rows, func(r listedRun) bool {
		_, err := os.Lstat(r.Dir)
		return errors.Is(err, fs.ErrNotExist)
	})
}

func (r *listedRun) complete() {
	if r.experiment {
		inside, err := result.Folders(filepath.Join(r.Dir, experiment.RunsFolder))
		if err != nil {
			r.Problem = err.Error()
		}
		for _, dir := range inside {
			r.Bytes += unit.Bytes(result.Size(dir))
		}
		return
	}
	r.Bytes = unit.Bytes(result.Size(r.Dir))
	folder, err := result.Open(r.Dir)
	if err != nil {
		return // said already
	}
	for _, p := range folder.Problems() { // damage of the journals of runs that have ended is in no index
		if !strings.Contains(r.Problem, p) {
			r.Problem = strings.TrimPrefix(r.Problem+"; "+p, "; ")
		}
	}
	if r.Headline != nil {
		return
	}
	if workloads, err := folder.Workloads(); err == nil { // else nothing was collected yet, or a report says the damage
		r.Headline = report.HeadlineOf(workloads)
	}
}

// listTable is a list for people, of 80 columns where the terminal has no more and in pipes; JSON has all of it.
// Columns of names and tags that would be empty are left out.
func listTable(rows []listedRun, columns int) *terminal.Table {
	named := slices.ContainsFunc(rows, func(r listedRun) bool { return r.Name != "" })
	tagged := slices.ContainsFunc(rows, func(r listedRun) bool { return len(r.Tags) > 0 })
	row := func(run, name, made, target, status, took, figure, size, tags string) []string {
		cells := []string{run}
		if named {
			cells = append(cells, name)
		}
		cells = append(cells, made, target, status, took, figure, size)
		if tagged {
			cells = append(cells, tags)
		}
		return cells
	}
	t := &terminal.Table{Head: row("RUN", "NAME", "MADE", "TARGET", "STATUS", "TOOK", "FIRST FIGURE", "SIZE", "TAGS"),
		Fits: max(columns, 80), Spare: []string{"SIZE", "TARGET", "TOOK", "TAGS"}}
	for _, r := range rows {
		took, figure, made := "-", "-", "-"
		if !r.Made.IsZero() {
			made = r.Made.UTC().Format(time.DateOnly)
		}
		if r.Seconds != nil {
			took = unit.Duration(*r.Seconds * float64(time.Second)).String()
		}
		if r.Headline != nil {
			figure = report.SayHeadline(*r.Headline)
		}
		t.Add(row(r.RunID, r.Name, made, r.Target, r.state(), took, figure, r.Bytes.String(),
			strings.Join(r.Tags, " "))...)
	}
	return t
}

// state is the status of a run, with the verdicts that are not yes once it has ended.
func (r listedRun) state() string {
	s := r.Status
	switch {
	case s == "":
		return "unreadable"
	case s == result.StatusExecuting:
		return s
	}
	for _, v := range []struct{ of, state string }{
		{"run", r.Measured}, {"collection", r.Collected}, {"cleanup", r.Cleaned},
	} {
		if v.state != "yes" && v.state != "" {
			s += ", " + v.of + ": " + result.Verdict{State: v.state}.Word()
		}
	}
	if n := len(r.Failed); n > 0 {
		s += ", " + unit.Plural(n, "threshold") + " failed"
	}
	return s
}

// listedExperiments are the experiments as rows of a list of runs.
func (st *Store) listedExperiments() ([]listedRun, error) {
	rows := []listedRun{}
	dirs, err := experiment.List(st.RunsDir)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "runs: %w", err)
	}
	for _, dir := range dirs {
		row := listedRun{RunID: filepath.Base(dir), Dir: dir, Made: experiment.Touched(dir), experiment: true}
		labels, err := result.ReadLabels(dir)
		if err != nil {
			row.Problem = err.Error()
		}
		row.Name, row.Tags, row.Note = labels.Name, labels.Tags, labels.Note
		folder, err := experiment.Open(dir)
		if err != nil {
			row.Problem = err.Error()
			rows = append(rows, row)
			continue
		}
		r := folder.Record()
		progress, err := folder.Progress()
		if err != nil {
			row.Problem = err.Error()
		}
		row.Created, row.Scenario, row.Target = r.Created, r.ScenarioName, r.Settings.Target
		row.Status = fmt.Sprintf("experiment, %d of %d", len(progress.Done), len(r.Sequence))
		rows = append(rows, row)
	}
	return rows, nil
}
