package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/progress"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
	"plimsoll/unit"
)

func (a *app) resumeCommand() *cobra.Command {
	var rf runFlags
	c := &cobra.Command{
		Use: "resume EXPERIMENT", Short: "Go on with an experiment that was stopped or killed",
		Args: args(1, 1, "experiment"),
		Long: `Resume makes the runs of an experiment that are missing: those not begun, those interrupted (which are cleaned
up first), and those that failed. Runs that have measured are kept. The scenario is the copy in the experiment's
folder, with the values, target and scales the experiment was begun with.

An EXPERIMENT is its identity, its name or the beginning of either, the path of its folder, or "latest".`,
		Example:           "  plimsoll resume latest",
		ValidArgsFunction: a.completeExperiment,
		RunE:              func(_ *cobra.Command, given []string) error { return a.resume(given[0], rf) },
	}
	rf.waitFlags.register(c)
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

// findExperiment returns the folder of an experiment as the user names it; ok is false when there is none, or when a
// run may be meant as well.
func (a *app) findExperiment(given string) (dir string, ok bool) {
	runs, err := result.Folders(a.runsDir)
	if err != nil {
		return "", false
	}
	return a.findExperimentAmong(given, runs)
}

// findExperimentAmong finds an experiment where these other folders may be meant, too.
func (a *app) findExperimentAmong(given string, others []string) (dir string, ok bool) {
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
	found := matching(given, slices.Concat(dirs, others))
	if len(found) != 1 || !slices.Contains(dirs, found[0]) {
		return "", false
	}
	return found[0], true
}

// latestExperiment is the one that came on last, unless a run was made since.
func (a *app) latestExperiment(dirs []string) (string, bool) {
	if len(dirs) == 0 {
		return "", false
	}
	newest := slices.MaxFunc(dirs, func(x, y string) int {
		return experiment.Touched(x).Compare(experiment.Touched(y))
	})
	entries, err := result.List(a.runsDir)
	later := slices.ContainsFunc(entries, func(e result.Entry) bool {
		return made(e.Dir, e.Manifest).After(experiment.Touched(newest))
	})
	return newest, err == nil && !later
}

// startExperiment checks every cell, makes the folder, and executes.
func (a *app) startExperiment(stop *stopper, p *prepared, sf scenarioFlags, tf targetFlags, rf runFlags,
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
	a.warned = map[string]bool{}
	for _, d := range p.diagnostics {
		a.warned[warned(d)] = true
	}
	r := a.record(p, sf, tf)
	estimate, unknown, err := a.checkCells(stop.ctx, p, r, sf, tf)
	if err != nil {
		return err
	}
	folder, err := a.createExperiment("run", r, p, rf.labels)
	if err != nil {
		return err
	}
	defer folder.Close()
	visible.Fprintf(a.notes(), "experiment %s: %s (%s, %s each), %s\n", r.ID, unit.Plural(len(r.Sequence), "run"),
		unit.Plural(len(r.Cells), "combination"), unit.Plural(r.Repeats, "repeat"), progress.Lasts(estimate, unknown))
	a.teller.made(folder.Dir())
	return a.conduct(stop, folder, rf.waitFlags, limit)
}

// record is what an experiment of a prepared scenario is, with what the command line said.
func (a *app) record(p *prepared, sf scenarioFlags, tf targetFlags) experiment.Record {
	began := a.now()
	if p.facts.Simulated {
		began = p.clock.Now()
	}
	r := experiment.NewRecord(a.numbered(a.runsDir, p, began), p.scenario)
	r.Program, r.Operator, r.Created, r.Source, r.File = buildVersion().String(), operator(p.facts.Simulated), began,
		p.given, p.file
	r.Settings = experiment.Settings{Set: sf.values, Preset: sf.preset, Nodes: sf.nodes,
		Target: tf.name, TargetOptions: p.options,
		TimeScale: float64(tf.timeScale), SizeScale: float64(tf.sizeScale), AllowHostCommands: tf.allowHostCommands}
	return r
}

// createExperiment makes the folder of an experiment, with its labels.
func (a *app) createExperiment(phase string, r experiment.Record, p *prepared,
	labels result.Labels) (*experiment.Folder, error) {
	folder, err := experiment.Create(a.runsDir, r, p.fsys)
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
func (a *app) checkCells(
	ctx context.Context, p *prepared, r experiment.Record, sf scenarioFlags, tf targetFlags,
) (total time.Duration, unknown bool, _ error) {
	var errs []error
	if len(tf.disks) > 0 { // where they lie was said of the first plan
		tf.options = append(slices.Clone(tf.options), dirOption+"="+p.options[dirOption])
		if len(tf.consents) > 0 {
			tf.options = append(tf.options, consentOption+"="+p.options[consentOption])
		}
		tf.disks, tf.consents = nil, nil
	}
	for _, c := range r.Cells {
		sf.values = cellValues(r, c)
		q, err := a.prepare(ctx, "run", p.given, sf, tf)
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
	dir, ok := a.findExperimentAmong(given, nil) // a run cannot be meant
	if !ok {
		return exit.Errorf(exit.Failed, `plimsoll runs list shows experiments; a single run cannot be resumed`,
			"resume: no experiment %q in %q", given, a.runsDir)
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
			visible.Fprintf(a.notes(), "run %s was interrupted: %s\n", id, c.State)
		}
	}
	if err := a.cleanFailed(stop.ctx, folder); err != nil {
		return exit.Errorf(exit.Failed, "", "resume: %w", err)
	}
	record := folder.Record()
	visible.Fprintf(a.notes(), "experiment %s: %d of %s made\n", record.ID, len(progress.Done),
		unit.Plural(len(record.Sequence), "run"))
	if record.Mark != nil {
		return a.search(stop, folder, experiment.Conduct{Limit: limit, Now: a.now, Say: func(string, ...any) {}},
			rf.waitFlags)
	}
	return a.conduct(stop, folder, rf.waitFlags, limit)
}

// cleanFailed removes what failed runs have left behind, as on a machine that was away and is back. What cannot be
// removed yet keeps nothing from going on.
func (a *app) cleanFailed(ctx context.Context, folder *experiment.Folder) error {
	events, err := folder.Events()
	if err != nil {
		return err
	}
	for _, e := range events {
		dir := filepath.Join(folder.RunsDir(), e.RunID)
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); e.State != experiment.Failed || err != nil {
			continue
		}
		c, err := a.cleanOne(ctx, dir, false)
		switch {
		case err != nil:
			visible.Fprintf(a.notes(), "run %s failed, and what it left cannot be removed: %v\n", e.RunID, err)
		case c.State != "clean already":
			visible.Fprintf(a.notes(), "run %s failed: %s\n", e.RunID, c.State)
		}
	}
	return nil
}

// conduct makes the runs that are left, then the result.
func (a *app) conduct(stop *stopper, folder *experiment.Folder, waits waitFlags, limit time.Duration) error {
	stop.tell(func() { a.sayf("stopping: the run under way is torn down; plimsoll resume goes on") })
	if a.warned == nil {
		a.warned = map[string]bool{}
	}
	c := experiment.Conduct{Limit: limit, Now: a.now, Say: a.sayf}
	whole, failed, err := c.Run(stop.ctx, folder, &cellRunner{app: a, folder: folder, record: folder.Record(),
		stop: stop, waits: waits})
	return errors.Join(err, a.writeResult(folder, whole, failed))
}

// sayf prints a line for the person who waits.
func (a *app) sayf(format string, args ...any) { visible.Fprintf(a.notes(), format+"\n", args...) }

// cellRunner makes the runs of an experiment as run makes a single one.
type cellRunner struct {
	*app
	folder *experiment.Folder
	record experiment.Record
	stop   *stopper
	waits  waitFlags
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
	sf := scenarioFlags{values: cellValues(c.record, cell), preset: s.Preset, nodes: s.Nodes}
	if m := c.record.Mark; m != nil {
		delete(sf.values, experiment.ConditionFactor)
		sf.search = &searchProbe{workload: m.Workload, vms: m.VMs, under: conditionOf(cell)}
		if m.Rated || m.VMs {
			delete(sf.values, m.Variable)
			sf.search.value = cell.Levels[0].Value
		}
	}
	if m := c.record.Mark; m != nil && !m.Rated && m.Seconds > 0 {
		rate, _ := strconv.ParseFloat(fmt.Sprint(cell.Levels[0].Value), 64)
		if m.Counts() {
			sf.values["runtime_secs"] = int64(math.Ceil(m.Seconds))
		} else if rate > 0 { // the run without one is for where to begin
			sf.values["runtime_secs"] = int64(math.Ceil(probeSeconds(m, rate)))
		}
	}
	tf := targetFlags{
		name: s.Target, timeScale: factor(s.TimeScale), sizeScale: factor(s.SizeScale),
		allowHostCommands: s.AllowHostCommands,
	}
	for _, name := range slices.Sorted(maps.Keys(s.TargetOptions)) {
		tf.options = append(tf.options, name+"="+s.TargetOptions[name])
	}
	tf.options = append(tf.options, c.seedOf(tf.name, s.TargetOptions, planned.Sequence)...)
	file := filepath.Join(c.folder.ScenarioDir(), filepath.FromSlash(c.record.File))
	p, err := c.prepare(ctx, "run", file, sf, tf)
	if err != nil {
		if p != nil {
			p.close()
		}
		return nil, err
	}
	_ = c.ask(ctx, p) // it is among the facts
	return &cellRun{c, p, c.numbered(c.folder.RunsDir(), p, p.clock.Now())}, nil
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
	out := experiment.Outcome{Err: err}
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
		_, doc, reportErr = r.writeReport(summary.Dir)
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
		out.Err = thresholds(doc)
	}
	return out
}

// seedOf gives every run of an experiment on a simulated target a seed of its own: without one all repeats would be
// equal.
func (a *app) seedOf(target string, given map[string]string, sequence int) []string {
	provider, ok := a.drivers.Target(target)
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

// writeResult writes and prints what has come out so far; whole says that no run is left.
func (a *app) writeResult(folder *experiment.Folder, whole bool, failedThresholds []string) error {
	doc, err := a.experimentDocument(folder, compare.DefaultThreshold)
	if err != nil {
		if !whole {
			return nil // nothing has measured yet, and why was said
		}
		return exit.Errorf(exit.Failed, "", "%w", err)
	}
	var errs []error
	doc.Beside = true
	err = outfile.Replace(folder.ReportPath(), func(w io.Writer) error { return report.ExperimentHTML(w, doc) })
	if err != nil {
		errs = append(errs, exit.Errorf(exit.Failed, "", "report: %w", err))
	}
	if a.json {
		errs = append(errs, report.ExperimentJSON(a.out, doc))
	} else {
		errs = append(errs, report.ExperimentText(a.out, doc))
		visible.Fprintf(a.out, "report: %s\n", folder.ReportPath())
	}
	if len(failedThresholds) > 0 {
		errs = append(errs, exit.Errorf(exit.Threshold, "", "threshold: %s", strings.Join(failedThresholds, "; ")))
	}
	if n := len(doc.Failed); n > 0 && whole {
		errs = append(errs, exit.Errorf(exit.Failed, "plimsoll resume "+folder.Record().ID+" makes them again",
			"run: %s of the experiment failed", unit.Plural(n, "run")))
	}
	return errors.Join(errs...)
}
