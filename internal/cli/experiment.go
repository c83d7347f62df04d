package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/compare"
	"plimsoll/internal/drivers"
	"plimsoll/internal/exit"
	"plimsoll/internal/experiment"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
	"plimsoll/internal/visible"
	"plimsoll/result"
	"plimsoll/unit"
)

func (a *app) resumeCommand() *cobra.Command {
	var rf runFlags
	c := &cobra.Command{
		Use: "resume EXPERIMENT", Short: "Go on with an experiment that was stopped or killed", Args: args(1, 1, "experiment"),
		Long: `Resume makes the runs of an experiment that are missing: those not begun, those interrupted (which are cleaned
up first), and those that failed. Runs that have measured are kept. The scenario is the copy in the experiment's
folder, with the values, target and scales the experiment was begun with.

An EXPERIMENT is its identity or the beginning of it, the path of its folder, or "latest".`,
		Example:           "  plimsoll resume latest",
		ValidArgsFunction: a.completeExperiment,
		RunE:              func(_ *cobra.Command, given []string) error { return a.resume(given[0], rf) },
	}
	c.Flags().StringVar(&rf.limit, "time-limit", "", "stop and tear down after this `time`, like 90s or 2h")
	return c
}

func (a *app) completeExperiment(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	dirs, err := experiment.List(a.runsDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := []string{"latest"}
	for _, d := range dirs {
		names = append(names, filepath.Base(d))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// findExperiment returns the folder of an experiment as the user names it; ok is false when there is none.
func (a *app) findExperiment(given string) (dir string, ok bool) {
	if strings.ContainsRune(given, filepath.Separator) {
		return given, experiment.Is(given)
	}
	dirs, err := experiment.List(a.runsDir)
	if err != nil || given == "" {
		return "", false
	}
	if given == "latest" {
		return a.latestExperiment(dirs)
	}
	var found []string
	for _, d := range dirs {
		if filepath.Base(d) == given {
			return d, true
		}
		if strings.HasPrefix(filepath.Base(d), given) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// latestExperiment is the one that came on last, unless a run was made since.
func (a *app) latestExperiment(dirs []string) (string, bool) {
	if len(dirs) == 0 {
		return "", false
	}
	newest := slices.MaxFunc(dirs, func(x, y string) int { return experiment.Touched(x).Compare(experiment.Touched(y)) })
	entries, err := result.List(a.runsDir)
	later := slices.ContainsFunc(entries, func(e result.Entry) bool { return made(e).After(experiment.Touched(newest)) })
	return newest, err == nil && !later
}

// campaign is an experiment being executed.
type campaign struct {
	*app
	folder *experiment.Folder
	record experiment.Record
	stop   *stopper
	limit  time.Time // zero: none
	began  time.Time
	made   int
}

// startExperiment checks every cell, makes the folder, and executes.
func (a *app) startExperiment(stop *stopper, p *prepared, sf scenarioFlags, tf targetFlags, rf runFlags, limit time.Duration) error {
	if rf.keep {
		return exit.Usagef("run it with --once to keep the machines of one run", "run: --keep does not go with an experiment")
	}
	for _, f := range p.scenario.Experiment.Factors {
		if _, given := sf.values[f.Name]; given {
			return exit.Usagef("leave it out, or run once with --once", "run: --set %s: the experiment varies it", f.Name)
		}
	}
	began := a.now()
	if p.facts.Simulated {
		began = p.clock.Now()
	}
	id := a.numbered(a.runsDir, p, began)
	r := experiment.NewRecord(id, p.scenario)
	r.Program, r.Operator, r.Created, r.Source, r.File = buildVersion().String(), operator(p.facts.Simulated), began, p.given, p.file
	r.Settings = experiment.Settings{Set: sf.values, Preset: sf.preset, Nodes: sf.nodes,
		Target: tf.name, TargetOptions: p.options,
		TimeScale: float64(tf.timeScale), SizeScale: float64(tf.sizeScale), AllowHostCommands: tf.allowHostCommands}
	estimate, unknown, err := a.checkCells(stop.ctx, p, r, sf, tf)
	if err != nil {
		return err
	}
	folder, err := experiment.Create(a.runsDir, r, p.fsys)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "run: %w", err)
	}
	defer folder.Close()
	visible.Fprintf(a.err, "experiment %s: %s (%s, %s each), %s\n", id, unit.Plural(len(r.Sequence), "run"),
		unit.Plural(len(r.Cells), "combination"), unit.Plural(r.Repeats, "repeat"), progress.Lasts(estimate, unknown))
	return a.conduct(stop, folder, limit)
}

// checkCells reads and plans the scenario with the values of every cell, before anything is touched.
func (a *app) checkCells(
	ctx context.Context, p *prepared, r experiment.Record, sf scenarioFlags, tf targetFlags,
) (total time.Duration, unknown bool, _ error) {
	var errs []error
	for _, c := range r.Cells {
		sf.values = cellValues(r, c)
		q, err := a.prepare(ctx, "run", p.given, sf, tf)
		if q != nil {
			q.close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Label(), err))
			continue
		}
		total += q.plan.Least() * time.Duration(r.Repeats)
		unknown = unknown || q.plan.EstimateUnknown
	}
	return total, unknown, errors.Join(errs...)
}

// cellValues are the variables of a cell: what the experiment was begun with, and its levels.
func cellValues(r experiment.Record, c experiment.Cell) map[string]any {
	values := maps.Clone(r.Settings.Set)
	if values == nil {
		values = map[string]any{}
	}
	for _, l := range c.Levels {
		values[l.Factor] = l.Value
	}
	return values
}

func (a *app) resume(given string, rf runFlags) error {
	limit, err := timeLimit(rf.limit)
	if err != nil {
		return err
	}
	dir, ok := a.findExperiment(given)
	if !ok {
		return exit.Errorf(exit.Failed, `plimsoll runs list shows experiments; a single run cannot be resumed`, "resume: no experiment %q in %q", given, a.runsDir)
	}
	folder, err := experiment.Open(dir)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	if err := folder.Lock(); err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	defer folder.Close()
	stop := a.stoppable()
	defer stop.release()
	progress, err := folder.Progress()
	if err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	for _, id := range progress.Interrupted {
		dir := filepath.Join(folder.RunsDir(), id)
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
			continue // it had not come to its manifest, which is written before anything is made
		}
		c, err := a.cleanOne(stop.ctx, dir, true)
		switch {
		case err != nil:
			return fmt.Errorf("resume: clean-up of run %s: %w", id, err)
		case c.State == "going on":
			return exit.Errorf(exit.Failed, "", "resume: run %s is going on in another process", id)
		default:
			visible.Fprintf(a.err, "run %s was interrupted: %s\n", id, c.State)
		}
	}
	record := folder.Record()
	visible.Fprintf(a.err, "experiment %s: %d of %s made\n", record.ID, len(progress.Done), unit.Plural(len(record.Sequence), "run"))
	return a.conduct(stop, folder, limit)
}

// conduct makes the runs that are left, then the result.
func (a *app) conduct(stop *stopper, folder *experiment.Folder, limit time.Duration) error {
	c := &campaign{app: a, folder: folder, record: folder.Record(), stop: stop, began: a.now()}
	if limit > 0 {
		c.limit = c.began.Add(limit)
	}
	progress, err := folder.Progress()
	if err != nil {
		return exit.Errorf(exit.Failed, "", "run: %w", err)
	}
	stop.tell(func() { visible.Fprintf(a.err, "stopping: the run under way is torn down; plimsoll resume goes on\n") })
	var failedAsserts []string
	inARow := 0
	for i, planned := range progress.Left {
		out, err := c.make(planned, i, len(progress.Left))
		switch {
		case out == outcomeStop:
			return errors.Join(err, c.result(false, nil))
		case out == outcomeFailed:
			if inARow++; inARow == 3 {
				return errors.Join(exit.Errorf(exit.Failed, "mend what is wrong, then: plimsoll resume "+c.record.ID, "run: three runs in a row failed: %w", err), c.result(false, nil))
			}
		default:
			inARow = 0
			if err != nil {
				failedAsserts = append(failedAsserts, fmt.Sprintf("%s (%s): %v", c.record.Cell(planned.Cell).Label(), unit.Plural(planned.Repeat, "repeat"), err))
			}
		}
	}
	return c.result(true, failedAsserts)
}

// outcome of a run of an experiment.
type outcome int

const (
	outcomeDone   outcome = iota // measured; an error is a failed threshold
	outcomeFailed                // the experiment goes on
	outcomeStop                  // and here it does not
)

// make executes one run.
func (c *campaign) make(planned experiment.Planned, index, left int) (outcome, error) {
	cell := c.record.Cell(planned.Cell)
	s := c.record.Settings
	sf := scenarioFlags{values: cellValues(c.record, cell), preset: s.Preset, nodes: s.Nodes}
	tf := targetFlags{name: s.Target, timeScale: factor(s.TimeScale), sizeScale: factor(s.SizeScale), allowHostCommands: s.AllowHostCommands}
	for _, name := range slices.Sorted(maps.Keys(s.TargetOptions)) {
		tf.options = append(tf.options, name+"="+s.TargetOptions[name])
	}
	tf.options = append(tf.options, seedOf(tf.name, s.TargetOptions, planned.Sequence)...)
	p, err := c.prepare(c.stop.ctx, "run", filepath.Join(c.folder.ScenarioDir(), filepath.FromSlash(c.record.File)), sf, tf)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		if c.stop.ctx.Err() != nil {
			return outcomeStop, c.interrupted()
		}
		return outcomeStop, err
	}
	id := c.numbered(c.folder.RunsDir(), p, p.clock.Now())
	text := fmt.Sprintf("run %d of %d: %s, repeat %d of %d", planned.Sequence, len(c.record.Sequence), cell.Label(), planned.Repeat, c.record.Repeats)
	if remains := c.now().Sub(c.began) / time.Duration(max(c.made, 1)) * time.Duration(left-index); remains >= time.Second {
		text += fmt.Sprintf("; about %s left", unit.Duration(remains.Round(time.Second)))
	}
	visible.Fprintf(c.err, "%s\n", text)
	event := experiment.Event{Time: c.now().UTC(), Sequence: planned.Sequence, State: experiment.Started, RunID: id}
	if err := c.folder.Append(event); err != nil {
		return outcomeStop, exit.Errorf(exit.Failed, "", "run: %w", err)
	}
	var limit time.Duration
	if !c.limit.IsZero() {
		if limit = c.limit.Sub(c.now()); limit <= 0 {
			return outcomeStop, exit.Errorf(exit.Failed, "plimsoll resume "+c.record.ID+" goes on", "run: the time limit is reached")
		}
	}
	request := c.request(c.stop, p, c.folder.RunsDir(), id, c.record.Source, runFlags{}, limit)
	summary, err := run.Execute(c.stop.ctx, request)
	c.made++
	return c.ended(event, summary, err)
}

// ended records how a run went and writes its report.
func (c *campaign) ended(event experiment.Event, summary run.Summary, err error) (outcome, error) {
	event.Time, event.State = c.now().UTC(), experiment.Done
	if summary.Dir == "" || summary.Status != result.StatusSucceeded {
		event.State, event.Error = experiment.Failed, "it did not come to its end"
		if err != nil {
			event.Error = err.Error()
		}
	}
	var doc *report.Document
	var reportErr error
	if summary.Dir != "" {
		_, doc, reportErr = c.writeReport(summary.Dir)
	}
	if e := c.folder.Append(event); e != nil {
		return outcomeStop, errors.Join(exit.Errorf(exit.Failed, "", "run: %w", e), err)
	}
	switch {
	case errors.Is(err, run.ErrStopped) || c.stop.ctx.Err() != nil:
		return outcomeStop, errors.Join(c.interrupted(), err)
	case exit.Code(err) == exit.Uncleaned:
		return outcomeStop, err
	case event.State == experiment.Failed:
		visible.Fprintf(c.err, "run %s failed: %s\n", event.RunID, event.Error)
		return outcomeFailed, errors.Join(err, reportErr)
	case doc == nil:
		return outcomeFailed, reportErr
	}
	return outcomeDone, thresholds(doc)
}

func (c *campaign) interrupted() error {
	return exit.Errorf(exit.Interrupted, "plimsoll resume "+c.record.ID+" goes on", "run: %w", errInterrupted)
}

// seedOf gives every run of an experiment on a simulated target a seed of its own: without one all repeats would be equal.
func seedOf(target string, given map[string]string, sequence int) []string {
	provider, ok := drivers.Target(target)
	if !ok {
		return nil
	}
	for _, o := range provider.Options() {
		if o.Name != "seed" {
			continue
		}
		text := o.Default
		if v, ok := given["seed"]; ok {
			text = v
		}
		if base, err := strconv.ParseUint(text, 10, 63); err == nil {
			return []string{"seed=" + strconv.FormatUint(base+uint64(sequence)-1, 10)}
		}
	}
	return nil
}

// result writes and prints what has come out so far.
func (c *campaign) result(whole bool, failedAsserts []string) error {
	doc, err := c.experimentDocument(c.folder, compare.DefaultThreshold)
	if err != nil {
		if !whole {
			return nil // nothing has measured yet, and why was said
		}
		return exit.Errorf(exit.Failed, "", "%w", err)
	}
	var errs []error
	if err := writeFile(c.folder.ReportPath(), func(w io.Writer) error { return report.ExperimentHTML(w, doc) }); err != nil {
		errs = append(errs, exit.Errorf(exit.Failed, "", "report: %w", err))
	}
	if c.json {
		errs = append(errs, report.ExperimentJSON(c.out, doc))
	} else {
		errs = append(errs, report.ExperimentText(c.out, doc))
		visible.Fprintf(c.out, "report: %s\n", c.folder.ReportPath())
	}
	if len(failedAsserts) > 0 {
		errs = append(errs, exit.Errorf(exit.Threshold, "", "threshold: %s", strings.Join(failedAsserts, "; ")))
	}
	if n := len(doc.Failed); n > 0 && whole {
		errs = append(errs, exit.Errorf(exit.Failed, "plimsoll resume "+c.record.ID+" makes them again", "run: %s of the experiment failed", unit.Plural(n, "run")))
	}
	return errors.Join(errs...)
}
