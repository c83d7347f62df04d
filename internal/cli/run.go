package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/progress"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/unit"
)

// runFlags say how a run ends.
type runFlags struct {
	keep   bool
	once   bool // one run of a scenario that holds an experiment
	detach bool // in a process of its own
	waitFlags
	junit string   // a file for the conditions as test results
	sheet []string // promises of the device's maker
	// Of a run that a command makes of its own: what is known of where it goes, and what is done at its end.
	facts  []result.Fact
	finish func(context.Context, *result.Folder, *result.Data) error
	runs.LabelFlags
}

// waitFlags say how long a run waits, and who is told meanwhile.
type waitFlags struct {
	limit    string
	patience console.SpanFlag
	remote   remoteFlag
}

// remoteFlag is where the metrics of a run are sent: an address, or a file of Prometheus' configuration.
type remoteFlag struct{ *series.Remote }

const remoteType = "address|file"

// String implements pflag.Value.
func (f *remoteFlag) String() string {
	if f.Remote == nil {
		return ""
	}
	return f.Servers()
}

// Type implements pflag.Value.
func (f *remoteFlag) Type() string { return remoteType }

// Set implements pflag.Value.
func (f *remoteFlag) Set(text string) (err error) {
	if strings.Contains(text, "://") {
		f.Remote, err = series.RemoteTo(text)
	} else {
		f.Remote, err = series.ReadRemote(text)
	}
	return err
}

func (f *waitFlags) register(c *cobra.Command) {
	f.patience = console.SpanFlag(loads.DefaultPatience)
	c.Flags().StringVar(&f.limit, "time-limit", "", "stop and tear down after this `time`, like 90s or 2h")
	c.Flags().Var(
		&f.patience,
		"patience",
		"end a load generator that stands still, or goes on beyond its own time, for "+
			"this `time`",
	)
	c.Flags().Var(&f.remote, "remote-write", "also send the metrics, while the run goes on, to this "+
		"`address` of Prometheus' remote write, or the servers of a file that has remote_write as prometheus.yml")
}

func (rn *runner) runCommand() *cobra.Command {
	var sf scenarioFlags
	var tf machines.Flags
	var rf runFlags
	c := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Run a scenario, measure it, and write its report",
		Long: `Run makes the machines of a scenario on the target, goes through its steps, measures, removes what it made,
and writes a report into the run folder.

Ctrl-C stops the workloads, tears down, keeps the data, and exits with 130, and so do SIGTERM and the
end of the terminal (SIGHUP). A second Ctrl-C leaves at once; "plimsoll cleanup" then removes what
remains. With --detach the run goes on without a terminal.

` + runs.SheetHelp,
		Example: `  plimsoll run db-colocation --time-scale 0.02 --size-scale 0.002
  plimsoll run ./my-scenario --nodes 4 --set iops=500 --time-limit 30m
  plimsoll run ./my-scenario --name before-upgrade --tag nightly --note "old firmware"
  plimsoll run ./my-scenario --keep --json`,
		Args:              console.Args(1, 1, "scenario"),
		ValidArgsFunction: completeScenario,
		RunE: func(_ *cobra.Command, given []string) error {
			if rf.detach && rn.teller == nil {
				return rn.detach()
			}
			return rn.run(given[0], sf, tf, rf)
		},
	}
	sf.register(rn.planner, c)
	sf.registerPlain(c)
	sf.own.measures = true
	tf.Register(rn.Drivers, c)
	c.Flags().BoolVar(&rf.keep, "keep", false, "leave the machines as they are at the end: no teardown")
	c.Flags().BoolVar(&rf.once, "once", false, "of a scenario that is an experiment, make one run with the "+
		"variables' own values")
	c.Flags().BoolVar(&rf.detach, "detach", false, "go on in the background, where no terminal's end reaches it; "+
		"plimsoll attach shows it")
	rf.waitFlags.register(c)
	c.Flags().StringVar(
		&rf.junit,
		"junit",
		"",
		"also write the conditions (--assert and the scenario's) as test results in "+
			"the JUnit form to this `file`",
	)
	c.Flags().StringArrayVar(&rf.sheet, "data-sheet", nil, runs.SheetUsage)
	rf.LabelFlags.Register(c)
	return c
}

func (rn *runner) run(given string, sf scenarioFlags, tf machines.Flags, rf runFlags) error {
	limit, err := console.TimeLimit(rf.limit)
	if err != nil {
		return err
	}
	if err := rf.Check(rn.Store, "run"); err != nil {
		return err
	}
	sheet, err := runs.DataSheet(rn.Console, rf.sheet)
	if err != nil {
		return err
	}
	if dir := filepath.Dir(rf.junit); rf.junit != "" { // known before the run, not after
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return exit.Usagef("", "run: --junit %s: there is no folder %q", rf.junit, dir)
		}
	}
	if sf.own.first {
		if err := rn.curve(given, &sf, tf, rf); err != nil {
			return err
		}
	}
	stop := rn.Stoppable()
	defer stop.Release()
	p, tf, placed, err := rn.ready(stop, "run", given, sf, tf)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		return err
	}
	if err := rn.ask(stop.Ctx, p); err != nil && rn.made[given] != nil { // what a command line names is to be right
		return exit.Errorf(console.StoppedOrFailed(stop.Ctx), "", "%s: --server: %s", given, console.OneLine(err))
	}
	if p.scenario.Experiment != nil && !rf.once {
		if len(sheet) > 0 {
			return exit.Usagef("give it to plimsoll analyze, for the runs that matter",
				"run: --data-sheet is for single runs, and this is an experiment")
		}
		if rf.junit != "" {
			return exit.Usagef("plimsoll compare and baseline check have --junit for the runs it makes",
				"run: --junit is for single runs, and this is an experiment")
		}
		return rn.startExperiment(stop, p, sf, tf, rf, limit)
	}
	p.facts.Environment = slices.Concat(p.facts.Environment, sheet, rf.facts, placed)
	watch := progress.New(rn.Notes(), rn.Now, p.Clock.Now, p.plan)
	stop.Tell(watch.Stopping)
	request := rn.request(stop, p, rn.RunsDir, newRunID(rn.RunsDir, p, p.Clock.Now()), given, rf, limit)
	request.Observer = whenMade{watch, rn.teller, filepath.Join(request.Root, request.RunID)}
	if rf.finish != nil {
		request.Finish = append(request.Finish, rf.finish)
	}
	if where := report.Where(p.facts.Environment); where != "" {
		visible.Fprintf(rn.Notes(), "%s\n", where)
	}
	watch.Begin(request.RunID)
	summary, err := run.Execute(stop.Ctx, request)
	watch.End()
	if p.facts.Simulated && summary.Dir != "" {
		visible.Fprintf(rn.Notes(), "%s of simulated time took %s and at most %s of memory\n",
			unit.Duration(summary.Elapsed.Round(time.Second)),
			unit.Duration(summary.Overhead.WallSeconds*float64(time.Second)),
			unit.Bytes(summary.Overhead.MaxResidentBytes))
	}
	if summary.Dir == "" {
		return err
	}
	return errors.Join(conclude(rn.Console, summary, rf.junit), err)
}

// ready prepares a run where its job file, or the user, says that the load goes, and tells what is not used. The
// options of the target are those of that place, the facts are for the record.
func (pl *planner) ready(stop *console.Stopper, phase, given string, sf scenarioFlags, tf machines.Flags) (*prepared,
	machines.Flags,
	[]result.Fact, error) {
	tf, placed, err := pl.placed(phase, given, tf)
	if err != nil {
		return nil, tf, nil, err
	}
	p, err := pl.prepare(stop.Ctx, phase, given, sf, tf)
	if err != nil && stop.Ctx.Err() != nil {
		err = exit.Errorf(exit.Interrupted, "nothing was started", "%s: %w", phase, console.ErrInterrupted)
	}
	if err == nil && (phase != "run" || p.scenario.Experiment != nil) { // else it stands beside where the load goes
		sayPlaced(pl.Console, given, placed)
	}
	return p, tf, placed, err
}

// request puts together one run into a folder of runs.
func (rn *runner) request(stop *console.Stopper, p *prepared, root, id, source string, rf runFlags,
	limit time.Duration) run.Request {
	stop.About(filepath.Join(root, id))
	return run.Request{
		Root: root, RunID: id, Program: console.BuildVersion().String(), Operator: console.Operator(p.facts.Simulated),
		Source: source, Labels: rf.Labels,
		Files: p.fsys, Scenario: p.scenario, Plan: p.plan, Target: p.Target, Facts: p.facts,
		Options: p.Options, Engines: rn.Drivers.ByName(), Clock: p.Clock, Keep: rf.keep, Limit: limit,
		Patience: time.Duration(rf.patience), Remote: rf.remote.Remote,
		Finish: []func(context.Context, *result.Folder, *result.Data) error{runs.Judge},
	}
}

// newRunID is a new identity among all runs of a folder, those of its experiments included, which the same addresses
// lead to. Simulated runs all begin at the same moment and leave nothing to chance, so they are numbered.
func newRunID(root string, p *prepared, began time.Time) string {
	if !p.facts.Simulated {
		return result.NewRunID(began, p.scenario.Name, uint16(rand.Uint32()))
	}
	// An experiment is named after its scenario, as its runs are; the folder's own path is no pattern.
	alike := strings.TrimSuffix(result.NewRunID(began, p.scenario.Name, 0), "0000") + "*"
	taken := map[string]bool{}
	for _, pattern := range []string{alike, path.Join(alike, experiment.RunsFolder, alike)} {
		found, _ := fs.Glob(os.DirFS(root), pattern) // a folder that cannot be read is told where the run is made
		for _, f := range found {
			taken[path.Base(f)] = true
		}
	}
	for n := uint16(1); ; n++ {
		if id := result.NewRunID(began, p.scenario.Name, n); !taken[id] || n == 0xffff {
			return id
		}
	}
}

// conclude writes the report of a run that has ended and prints its summary, and its conditions as test results.
func conclude(con *console.Console, s run.Summary, junit string) error {
	if s.Collected.State == "pending" { // the report collects it
		return concludeLater(con, s)
	}
	folder, doc, err := writeReport(s.Dir)
	if err != nil && folder != nil && s.Status == result.StatusSucceeded { // the list of runs and the exit code agree
		state := func(status, text string) error {
			s.Status, s.Error = status, text
			return folder.Update(func(m *result.Manifest) { m.Status, m.Error = status, text })
		}
		if noted := state(result.StatusFailed, err.Error()); noted != nil { // no room to say so: as before in the list
			con.Sayf("warning: the run is whole, but its page is missing: %v: plimsoll report %s --output FILE", err,
				s.RunID)
			err = nil
			_ = state(result.StatusSucceeded, "") // in memory at least
		}
	}
	if doc == nil {
		return err
	}
	errs := []error{err}
	if s.Status == result.StatusSucceeded {
		if failed := judge.Thresholds(doc); failed != nil { // the list, the page and the last line say so, too
			s.Status, s.Error = result.StatusFailed, strings.ReplaceAll(failed.Error(), "\n", "; ")
			errs = append(errs, failed,
				folder.Update(func(m *result.Manifest) { m.Status, m.Error = s.Status, s.Error }))
			if folder, doc, err = writeReport(s.Dir); doc == nil {
				return errors.Join(append(errs, err)...)
			}
			errs = append(errs, err)
		}
	}
	if junit != "" {
		write := func(w io.Writer) error { return report.RunJUnit(w, doc) }
		errs = append(errs, con.Print("run", "test results", console.Output{File: junit}, write))
	}
	if con.JSON {
		errs = append(errs, con.PrintJSON(concluded{
			RunID: s.RunID, Dir: s.Dir, Mind: report.Mind(doc.Manifest), Status: s.Status, Error: s.Error,
			Measured: s.Measured, Collected: s.Collected, Cleaned: s.Cleaned,
			Remains: s.Remains, ElapsedSeconds: s.Elapsed.Seconds(), Report: folder.ReportPath(),
			Asserts: doc.Asserts, Latencies: doc.Latencies, Findings: doc.Findings,
		}))
	} else {
		errs = append(errs, runs.Summarise(con.Out, doc, folder))
	}
	return errors.Join(errs...)
}

// concludeLater says what there is of a run whose figures are left for later.
func concludeLater(con *console.Console, s run.Summary) error {
	if con.JSON {
		return con.PrintJSON(
			concluded{RunID: s.RunID, Dir: s.Dir, Status: s.Status, Error: s.Error, Measured: s.Measured,
				Collected: s.Collected, Cleaned: s.Cleaned, Remains: s.Remains, ElapsedSeconds: s.Elapsed.Seconds()},
		)
	}
	_, err := visible.Fprintf(
		con.Out,
		"run: %s   collection: %s   cleanup: %s   (%s)\nits figures: plimsoll report %s\n",
		runs.Verdict(s.Measured),
		runs.Verdict(s.Collected),
		runs.Verdict(s.Cleaned),
		s.Status,
		s.Dir,
	)
	return err
}

// writeReport writes the report of a run into its folder. The document is nil when it cannot be made.
func writeReport(dir string) (*result.Folder, *report.Document, error) {
	folder, err := result.Open(dir)
	if err != nil {
		return nil, nil, exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	doc, err := report.Build(folder)
	if err != nil {
		return nil, nil, exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	if err := folder.WriteReport(func(w io.Writer) error { return report.HTML(w, doc) }); err != nil {
		return folder, doc, exit.Errorf(exit.Failed, "plimsoll report "+filepath.Base(dir)+" --output FILE",
			"report: %w", err)
	}
	return folder, doc, nil
}

// concluded holds what run --json prints.
type concluded struct {
	RunID          string             `json:"run_id"`
	Dir            string             `json:"dir"`
	Mind           []string           `json:"mind,omitempty"` // what changes the meaning of every number
	Status         string             `json:"status"`
	Error          string             `json:"error,omitempty"`
	Measured       result.Verdict     `json:"measured"`
	Collected      result.Verdict     `json:"collected"`
	Cleaned        result.Verdict     `json:"cleaned"`
	Remains        []string           `json:"remains,omitempty"`
	ElapsedSeconds float64            `json:"elapsed_seconds"`
	Report         string             `json:"report"`
	Asserts        []report.Assertion `json:"asserts,omitempty"`
	Latencies      []report.Latency   `json:"latencies"`
	Findings       []result.Finding   `json:"findings"`
}
