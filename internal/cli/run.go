package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/cli/progress"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
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
	labelFlags
}

// waitFlags say how long a run waits.
type waitFlags struct {
	limit    string
	patience spanFlag
}

func (f *waitFlags) register(c *cobra.Command) {
	f.patience = spanFlag(loads.DefaultPatience)
	c.Flags().StringVar(&f.limit, "time-limit", "", "stop and tear down after this `time`, like 90s or 2h")
	c.Flags().Var(&f.patience, "patience", "end a load generator that stands still, or goes on beyond its own time, for "+
		"this `time`")
}

// spanFlag is a length of time above 0.
type spanFlag time.Duration

// String implements pflag.Value.
func (s *spanFlag) String() string { return unit.Duration(*s).String() }

// Type implements pflag.Value.
func (s *spanFlag) Type() string { return "time" }

// Set implements pflag.Value.
func (s *spanFlag) Set(text string) error {
	d, err := unit.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not a length of time above 0, like 90s or 2m", text)
	}
	*s = spanFlag(d)
	return err
}

func (a *app) runCommand() *cobra.Command {
	var sf scenarioFlags
	var tf targetFlags
	var rf runFlags
	c := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Run a scenario, measure it, and write its report",
		Long: `Run makes the machines of a scenario on the target, goes through its steps, measures, removes what it made,
and writes a report into the run folder.

Ctrl-C stops the workloads, tears down, keeps the data, and exits with 130, and so do SIGTERM and the
end of the terminal (SIGHUP). A second Ctrl-C leaves at once; "plimsoll cleanup" then removes what
remains. With --detach the run goes on without a terminal.

` + sheetHelp,
		Example: `  plimsoll run db-colocation --time-scale 0.02 --size-scale 0.002
  plimsoll run ./my-scenario --nodes 4 --set iops=500 --time-limit 30m
  plimsoll run ./my-scenario --name before-upgrade --tag nightly --note "old firmware"
  plimsoll run ./my-scenario --keep --json`,
		Args:              args(1, 1, "scenario"),
		ValidArgsFunction: completeScenario,
		RunE: func(_ *cobra.Command, given []string) error {
			if rf.detach && a.teller == nil {
				return a.detach()
			}
			return a.run(given[0], sf, tf, rf)
		},
	}
	sf.register(a, c)
	sf.own.measures = true
	tf.register(a, c)
	c.Flags().BoolVar(&rf.keep, "keep", false, "leave the machines as they are at the end: no teardown")
	c.Flags().BoolVar(&rf.once, "once", false, "of a scenario that is an experiment, make one run with the "+
		"variables' own values")
	c.Flags().BoolVar(&rf.detach, "detach", false, "go on in the background, where no terminal's end reaches it; "+
		"plimsoll attach shows it")
	rf.waitFlags.register(c)
	c.Flags().StringVar(&rf.junit, "junit", "", "also write the conditions (--assert and the scenario's) as test results in "+
		"the JUnit form to this `file`")
	c.Flags().StringArrayVar(&rf.sheet, "data-sheet", nil, sheetUsage)
	rf.labelFlags.register(c)
	return c
}

func (a *app) run(given string, sf scenarioFlags, tf targetFlags, rf runFlags) error {
	limit, err := timeLimit(rf.limit)
	if err != nil {
		return err
	}
	if err := rf.check(a, "run"); err != nil {
		return err
	}
	sheet, err := a.dataSheet(rf.sheet)
	if err != nil {
		return err
	}
	if dir := filepath.Dir(rf.junit); rf.junit != "" { // known before the run, not after
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return exit.Usagef("", "run: --junit %s: there is no folder %q", rf.junit, dir)
		}
	}
	if sf.own.first {
		if err := a.curve(given, &sf, tf, rf); err != nil {
			return err
		}
	}
	stop := a.stoppable()
	defer stop.release()
	p, tf, placed, err := a.ready(stop, "run", given, sf, tf)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		return err
	}
	if err := a.ask(stop.ctx, p); err != nil && a.made[given] != nil { // what a command line names is to be right
		return exit.Errorf(stoppedOrFailed(stop.ctx), "", "%s: --server: %s", given, oneLine(err))
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
		return a.startExperiment(stop, p, sf, tf, rf, limit)
	}
	p.facts.Environment = slices.Concat(p.facts.Environment, sheet, rf.facts, placed)
	watch := progress.New(a.notes(), a.now, p.clock.Now, p.plan)
	stop.tell(watch.Stopping)
	request := a.request(stop, p, a.runsDir, a.numbered(a.runsDir, p, p.clock.Now()), given, rf, limit)
	request.Observer = whenMade{watch, a.teller, filepath.Join(request.Root, request.RunID)}
	if rf.finish != nil {
		request.Finish = append(request.Finish, rf.finish)
	}
	if where := report.Where(p.facts.Environment); where != "" {
		visible.Fprintf(a.notes(), "%s\n", where)
	}
	watch.Begin(request.RunID)
	summary, err := run.Execute(stop.ctx, request)
	watch.End()
	if p.facts.Simulated && summary.Dir != "" {
		visible.Fprintf(a.notes(), "%s of simulated time took %s and at most %s of memory\n",
			unit.Duration(summary.Elapsed.Round(time.Second)),
			unit.Duration(summary.Overhead.WallSeconds*float64(time.Second)),
			unit.Bytes(summary.Overhead.MaxResidentBytes))
	}
	if summary.Dir == "" {
		return err
	}
	return errors.Join(a.conclude(summary, rf.junit), err)
}

// ready prepares a run where its job file, or the user, says that the load goes, and tells what is not used. The
// options of the target are those of that place, the facts are for the record.
func (a *app) ready(stop *stopper, phase, given string, sf scenarioFlags, tf targetFlags) (*prepared, targetFlags,
	[]result.Fact, error) {
	tf, placed, err := a.placed(phase, given, tf)
	if err != nil {
		return nil, tf, nil, err
	}
	p, err := a.prepare(stop.ctx, phase, given, sf, tf)
	if err != nil && stop.ctx.Err() != nil {
		err = exit.Errorf(exit.Interrupted, "nothing was started", "%s: %w", phase, errInterrupted)
	}
	if err == nil {
		a.sayPlaced(given, placed)
	}
	return p, tf, placed, err
}

// timeLimit reads --time-limit; empty is none.
func timeLimit(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	limit, err := unit.ParseDuration(text)
	if err != nil || limit <= 0 {
		return 0, exit.Usagef("", "--time-limit: %w",
			cmp.Or(err, fmt.Errorf("%q is not a length of time above 0", text)))
	}
	return time.Duration(limit), nil
}

// request is what run needs for one run into a folder of runs.
func (a *app) request(stop *stopper, p *prepared, root, id, source string, rf runFlags,
	limit time.Duration) run.Request {
	stop.about(filepath.Join(root, id))
	return run.Request{
		Root: root, RunID: id, Program: buildVersion().String(), Operator: operator(p.facts.Simulated),
		Source: source, Labels: rf.labels,
		Files: p.fsys, Scenario: p.scenario, Plan: p.plan, Target: p.Target, Facts: p.facts,
		Options: p.options, Engines: a.drivers.ByName(), Clock: p.clock, Keep: rf.keep, Limit: limit,
		Patience: time.Duration(rf.patience),
		Finish:   []func(context.Context, *result.Folder, *result.Data) error{judge},
	}
}

// numbered is a new identity in a folder of runs. Simulated runs all begin at the same moment and leave nothing to
// chance, so they are numbered.
func (a *app) numbered(root string, p *prepared, began time.Time) string {
	if !p.facts.Simulated {
		return result.NewRunID(began, p.scenario.Name, uint16(rand.Uint32()))
	}
	for n := uint16(1); ; n++ {
		id := result.NewRunID(began, p.scenario.Name, n)
		if _, err := os.Stat(filepath.Join(root, id)); err != nil || n == 0xffff {
			return id
		}
	}
}

// judge analyses what was collected.
func judge(ctx context.Context, folder *result.Folder, data *result.Data) error {
	found := findings(ctx, folder, data)
	return errors.Join(folder.WriteFindings(found), keepHeadline(folder, data, found))
}

// keepHeadline keeps the first figure of a run, and which of its conditions failed, with what lists of runs read.
func keepHeadline(folder *result.Folder, data *result.Data, found []result.Finding) error {
	return folder.Update(func(m *result.Manifest) {
		m.Headline, m.FailedAsserts = report.HeadlineOf(data.Workloads), nil
		for _, f := range found {
			if f.Check == assert.Check && assert.Failed(f) {
				m.FailedAsserts = append(m.FailedAsserts, f.Subject)
			}
		}
	})
}

// conclude writes the report of a run that has ended and prints its summary, and its conditions as test results.
func (a *app) conclude(s run.Summary, junit string) error {
	folder, doc, err := a.writeReport(s.Dir)
	if err != nil && folder != nil && s.Status == result.StatusSucceeded { // the list of runs and the exit code agree
		s.Status, s.Error = result.StatusFailed, err.Error()
		err = errors.Join(err, folder.Update(func(m *result.Manifest) { m.Status, m.Error = s.Status, s.Error }))
	}
	if doc == nil {
		return err
	}
	errs := []error{err}
	if s.Status == result.StatusSucceeded {
		if failed := thresholds(doc); failed != nil { // the list, the page and the last line say so, too
			s.Status, s.Error = result.StatusFailed, strings.ReplaceAll(failed.Error(), "\n", "; ")
			errs = append(errs, failed,
				folder.Update(func(m *result.Manifest) { m.Status, m.Error = s.Status, s.Error }))
			if folder, doc, err = a.writeReport(s.Dir); doc == nil {
				return errors.Join(append(errs, err)...)
			}
			errs = append(errs, err)
		}
	}
	if junit != "" {
		write := func(w io.Writer) error { return report.RunJUnit(w, doc) }
		errs = append(errs, a.print("run", "test results", output{file: junit}, write))
	}
	if a.json {
		errs = append(errs, a.printJSON(concluded{
			RunID: s.RunID, Dir: s.Dir, Mind: report.Mind(doc.Manifest), Status: s.Status, Error: s.Error,
			Measured: s.Measured, Collected: s.Collected, Cleaned: s.Cleaned,
			Remains: s.Remains, ElapsedSeconds: s.Elapsed.Seconds(), Report: folder.ReportPath(),
			Asserts: doc.Asserts, Latencies: doc.Latencies, Findings: doc.Findings,
		}))
	} else {
		errs = append(errs, summarise(a.out, doc, folder))
	}
	return errors.Join(errs...)
}

// writeReport writes the report of a run into its folder. The document is nil when it cannot be made.
func (a *app) writeReport(dir string) (*result.Folder, *report.Document, error) {
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

// concluded is what run --json prints.
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

// thresholds is the error of a run in which a result that must be zero (report metric AnyFail) is not, or an assert
// does not hold.
func thresholds(doc *report.Document) error {
	var failed []string
	for _, p := range doc.Panels {
		for _, m := range p.Metrics {
			if strings.HasPrefix(m.Name, "AnyFail") && m.Value != 0 {
				failed = append(failed, cmp.Or(p.Title, p.Name))
				break
			}
		}
	}
	var errs []error
	if len(failed) > 0 {
		errs = append(errs, exit.Errorf(exit.Threshold, "the scenario's author demands that they stay at zero",
			"threshold: not zero: %s", strings.Join(failed, ", ")))
	}
	for _, f := range doc.Findings {
		if assert.Failed(f) {
			errs = append(errs, exit.Errorf(exit.Threshold, "", "threshold: %s", strings.TrimSuffix(f.Sentence, ".")))
		}
	}
	return errors.Join(errs...)
}

// String is the program with its version, for the record.
func (v versions) String() string {
	text := v.Program
	if v.Revision != "" {
		text += " " + v.Revision[:min(12, len(v.Revision))]
	}
	if v.Modified {
		text += " (modified)"
	}
	return text
}

// operator is who runs it; empty for a simulated run, which is the same whoever runs it.
func operator(simulated bool) string {
	if simulated {
		return ""
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}
