package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/progress"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
	"plimsoll/unit"
)

func (rn *runner) resumeCommand() *cobra.Command {
	var rf runFlags
	c := &cobra.Command{
		Use: "resume EXPERIMENT", Short: "Go on with an experiment that was stopped or killed",
		Args: console.Args(1, 1, "experiment"),
		Long: `Resume makes the runs of an experiment that are missing: those not begun, those interrupted (which are cleaned
up first), and those that failed. Runs that have measured are kept. The scenario is the copy in the experiment's
folder, with the values, target and scales the experiment was begun with.

An EXPERIMENT is its identity, its name or the beginning of either, the path of its folder, or "latest".`,
		Example:           "  plimsoll resume latest",
		ValidArgsFunction: rn.CompleteExperiment,
		RunE:              func(_ *cobra.Command, given []string) error { return rn.resume(given[0], rf) },
	}
	rf.waitFlags.register(c)
	return c
}

// startExperiment checks every cell, makes the folder, and executes.
func (rn *runner) startExperiment(stop *console.Stopper, p *prepared, sf scenarioFlags, tf machines.Flags, rf runFlags,
	limit time.Duration) error {
	if rf.keep {
		return exit.Usagef("run it with --once to keep the machines of one run",
			"run: --keep does not go with an experiment")
	}
	for _, f := range p.scenario.Experiment.Factors {
		if _, given := sf.values[f.Name]; given {
			return exit.Usagef("leave it out, or run once with --once", "run: --set %s: the experiment varies it",
				f.Name)
		}
	}
	rn.warned = map[string]bool{}
	for _, d := range p.diagnostics {
		rn.warned[warned(d)] = true
	}
	if err := rn.fits(stop.Ctx, "run", p); err != nil { // once, and not of each cell
		return err
	}
	r := rn.record(p, sf, tf)
	estimate, unknown, err := rn.checkCells(stop.Ctx, p, r, sf, tf)
	if err != nil {
		return err
	}
	folder, err := rn.createExperiment("run", r, p, rf.Labels)
	if err != nil {
		return err
	}
	defer folder.Close()
	visible.Fprintf(rn.Notes(), "experiment %s: %s (%s, %s each), %s\n", r.ID, unit.Plural(len(r.Sequence), "run"),
		unit.Plural(len(r.Cells), "combination"), unit.Plural(r.Repeats, "repeat"), progress.Lasts(estimate, unknown))
	rn.teller.made(folder.Dir())
	return rn.conduct(stop, folder, rf.waitFlags, limit)
}

// record returns what an experiment of a prepared scenario is, with what the command line said.
func (rn *runner) record(p *prepared, sf scenarioFlags, tf machines.Flags) experiment.Record {
	began := rn.Now()
	if p.facts.Simulated {
		began = p.Clock.Now()
	}
	r := experiment.NewRecord(newRunID(rn.RunsDir, p, began), p.scenario)
	r.Program, r.Operator, r.Created, r.Source, r.File = console.BuildVersion().String(),
		console.Operator(p.facts.Simulated), began,
		p.given, p.file
	r.Settings = experiment.Settings{Set: sf.values, Preset: sf.preset, Nodes: sf.nodes,
		Target: tf.Name, TargetOptions: p.Options,
		TimeScale: float64(tf.TimeScale), SizeScale: float64(tf.SizeScale), AllowHostCommands: tf.AllowHostCommands,
		ComparePlain: sf.plain}
	return r
}

// createExperiment makes the folder of an experiment, with its labels.
func (rn *runner) createExperiment(phase string, r experiment.Record, p *prepared,
	labels result.Labels) (*experiment.Folder, error) {
	if err := run.Roomy(rn.RunsDir); err != nil {
		return nil, fmt.Errorf("%s: %w", phase, err)
	}
	folder, err := experiment.Create(rn.RunsDir, r, p.fsys)
	if err == nil && !labels.Empty() {
		_, err = result.ChangeLabels(folder.Dir(), func(l *result.Labels) { *l = labels })
	}
	if err != nil {
		if folder != nil {
			err = errors.Join(err, folder.Close())
		}
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return folder, nil
}

// checkCells reads and plans the scenario with the values of every cell, before anything is touched.
func (pl *planner) checkCells(
	ctx context.Context, p *prepared, r experiment.Record, sf scenarioFlags, tf machines.Flags,
) (total time.Duration, unknown bool, _ error) {
	var errs []error
	if len(tf.Disks) > 0 { // where they lie was said of the first plan
		tf.Options = append(slices.Clone(tf.Options), machines.DirOption+"="+p.Options[machines.DirOption])
		if len(tf.Consents) > 0 {
			tf.Options = append(tf.Options, machines.ConsentOption+"="+p.Options[machines.ConsentOption])
		}
		tf.Disks, tf.Consents = nil, nil
	}
	for _, c := range r.Cells {
		sf.values = cellValues(r, c)
		q, err := pl.prepare(ctx, "run", p.given, sf, tf)
		if q != nil {
			q.close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Title(), err))
			continue
		}
		total += q.plan.Least() * time.Duration(r.Repeats)
		unknown = unknown || q.plan.EstimateUnknown
	}
	return total, unknown, errors.Join(errs...)
}

// cellValues are the variables of a cell: what the experiment was begun with, and its levels.
func cellValues(r experiment.Record, c experiment.Cell) untyped.Object {
	values := maps.Clone(r.Settings.Set)
	if values == nil {
		values = untyped.Object{}
	}
	for _, l := range c.Levels {
		values[l.Factor] = l.Value
	}
	return values
}

func (rn *runner) resume(given string, rf runFlags) error {
	limit, err := console.TimeLimit(rf.limit)
	if err != nil {
		return err
	}
	dir, ok := rn.FindExperimentAmong(given, nil) // a run cannot be meant
	if !ok {
		return exit.Errorf(exit.Failed, `plimsoll runs list shows experiments; a single run cannot be resumed`,
			"resume: no experiment %q in %q", given, rn.RunsDir)
	}
	folder, err := experiment.Open(dir)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	if err := folder.Lock(); err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	defer folder.Close()
	stop := rn.Stoppable()
	defer stop.Release()
	progress, err := folder.Progress()
	if err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	for _, id := range progress.Interrupted {
		dir := filepath.Join(folder.RunsDir(), id)
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
			continue // it had not come to its manifest, which is written before anything is made
		}
		c, err := rn.CleanOne(stop.Ctx, dir, true)
		switch {
		case err != nil:
			return fmt.Errorf("resume: clean-up of run %s: %w", id, err)
		case c.State == "going on":
			return exit.Errorf(exit.Failed, "", "resume: run %s is going on in another process", id)
		default:
			visible.Fprintf(rn.Notes(), "run %s was interrupted: %s\n", id, c.State)
		}
	}
	if err := rn.cleanFailed(stop.Ctx, folder); err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	record := folder.Record()
	visible.Fprintf(rn.Notes(), "experiment %s: %d of %s made\n", record.ID, len(progress.Done),
		unit.Plural(len(record.Sequence), "run"))
	if record.Mark != nil {
		return rn.search(stop, folder, experiment.Conduct{Limit: limit, Now: rn.Now, Say: func(string, ...any) {}},
			rf.waitFlags)
	}
	return rn.conduct(stop, folder, rf.waitFlags, limit)
}

// cleanFailed removes what failed runs have left behind, as on a machine that was away and is back. What cannot be
// removed yet keeps nothing from going on.
func (rn *runner) cleanFailed(ctx context.Context, folder *experiment.Folder) error {
	events, err := folder.Events()
	if err != nil {
		return err
	}
	for _, e := range events {
		dir := filepath.Join(folder.RunsDir(), e.RunID)
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); e.State != experiment.Failed || err != nil {
			continue
		}
		c, err := rn.CleanOne(ctx, dir, false)
		switch {
		case err != nil:
			visible.Fprintf(rn.Notes(), "run %s failed, and what it left cannot be removed: %v\n", e.RunID, err)
		case c.State != "clean already":
			visible.Fprintf(rn.Notes(), "run %s failed: %s\n", e.RunID, c.State)
		}
	}
	return nil
}

// conduct makes the runs that are left, then the result.
func (rn *runner) conduct(stop *console.Stopper, folder *experiment.Folder, waits waitFlags,
	limit time.Duration) error {
	stop.Tell(func() { rn.Sayf("stopping: the run under way is torn down; plimsoll resume goes on") })
	if rn.warned == nil {
		rn.warned = map[string]bool{}
	}
	c := experiment.Conduct{Limit: limit, Now: rn.Now, Say: rn.Sayf}
	whole, failed, err := c.Run(stop.Ctx, folder, &cellRunner{runner: rn, folder: folder, record: folder.Record(),
		stop: stop, waits: waits})
	return errors.Join(err, rn.sides.WriteResult(folder, whole, failed))
}

// cellRunner makes the runs of an experiment as run makes a single one.
type cellRunner struct {
	*runner
	folder *experiment.Folder
	record experiment.Record
	stop   *console.Stopper
	waits  waitFlags
	load   time.Duration // of a probe whose length the search says
}

// cellRun is one of them, prepared.
type cellRun struct {
	*cellRunner
	*prepared
	id string
}

// Begin implements experiment.Runner.
func (c *cellRunner) Begin(ctx context.Context, planned experiment.Planned) (experiment.Run, error) {
	s := c.record.Settings
	cell := c.record.Cell(planned.Cell)
	sf := scenarioFlags{values: cellValues(c.record, cell), preset: s.Preset, nodes: s.Nodes,
		plain: s.ComparePlain}
	if m := c.record.Mark; m != nil {
		delete(sf.values, experiment.ConditionFactor)
		sf.search = &searchProbe{workload: m.Workload, vms: m.VMs, under: judge.ConditionOf(cell)}
		if m.Rated || m.VMs {
			delete(sf.values, m.Variable)
			sf.search.value = cell.Levels[0].Value
		}
	}
	if c.load > 0 {
		sf.values["runtime_secs"] = int64(c.load / time.Second)
	}
	tf := machines.Flags{
		Name: s.Target, TimeScale: machines.Factor(s.TimeScale), SizeScale: machines.Factor(s.SizeScale),
		AllowHostCommands: s.AllowHostCommands,
	}
	for _, name := range slices.Sorted(maps.Keys(s.TargetOptions)) {
		tf.Options = append(tf.Options, name+"="+s.TargetOptions[name])
	}
	tf.Options = append(tf.Options, c.seedOf(tf.Name, s.TargetOptions, planned.Sequence)...)
	file := filepath.Join(c.folder.ScenarioDir(), filepath.FromSlash(c.record.File))
	p, err := c.prepare(ctx, "run", file, sf, tf)
	if err != nil {
		if p != nil {
			p.close()
		}
		return nil, err
	}
	_ = c.ask(ctx, p) // it is among the facts
	return &cellRun{c, p, newRunID(filepath.Dir(c.folder.Dir()), p, p.Clock.Now())}, nil
}

// ID implements experiment.Run.
func (r *cellRun) ID() string { return r.id }

// Close implements experiment.Run.
func (r *cellRun) Close() { r.prepared.close() }

// Make implements experiment.Run: it writes the run's report as well.
func (r *cellRun) Make(ctx context.Context, limit time.Duration) experiment.Outcome {
	request := r.request(r.stop, r.prepared, r.folder.RunsDir(), r.id, r.record.Source,
		runFlags{waitFlags: r.waits}, limit)
	summary, err := run.Execute(ctx, request)
	out := experiment.Outcome{Err: err, NoRoom: errors.As(err, &target.NoRoom{})}
	if summary.Dir == "" || summary.Status != result.StatusSucceeded {
		out.Verdict, out.Failure = experiment.Unusable, "it did not come to its end"
		if err != nil {
			out.Failure = err.Error()
		}
	} else if summary.Measured.State != "yes" {
		out.Verdict, out.Failure = experiment.Unusable, summary.Measured.Reason
	}
	var doc *report.Document
	var reportErr error
	if summary.Dir != "" {
		_, doc, reportErr = writeReport(summary.Dir)
	}
	switch {
	case errors.Is(err, run.ErrStopped) || ctx.Err() != nil:
		out.Verdict, out.Err = experiment.LeaveOff, errors.Join(r.folder.Interrupted(), err)
	case exit.Code(err) == exit.Uncleaned:
		out.Verdict = experiment.LeaveOff
		if out.Failure != "" {
			out.Err = exit.Errorf(exit.Uncleaned, "mend what is wrong, then: plimsoll resume "+r.record.ID,
				"run %s failed: %s: %w", r.id, out.Failure, err)
		}
	case out.Failure != "":
		out.Err = errors.Join(err, reportErr)
	case doc == nil:
		out.Verdict, out.Err = experiment.Unusable, reportErr
	default:
		out.Err = judge.Thresholds(doc)
	}
	return out
}

// seedOf gives every run of an experiment on a simulated target a seed of its own: without one all repeats would be
// equal.
func (pl *planner) seedOf(target string, given map[string]string, sequence int) []string {
	provider, ok := pl.Drivers.Target(target)
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
