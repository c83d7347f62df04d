// Package workloadtest is the conformance suite of workload.Engine: what the steps and the analysis rely on, tested the
// same way for every generator. An engine joins it with one Suite value (see the fio and fake packages' tests).
//
// The tests run jobs of a second or two on a Host of this package. What an engine cannot do at all is left empty in the
// Suite and counted as skipped, with the reason printed.
package workloadtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/clock"
	"plimsoll/internal/target"
	"plimsoll/internal/workload"
)

// Suite is what an engine is tested with.
type Suite struct {
	Engine workload.Engine
	// Host makes a fresh machine on which the engine can run. Nil: a Host of this package with two 16 MiB disks.
	Host func(testing.TB) target.Host
	// Good is a config that does I/O on /dev/sdb until Spec.Runtime is over.
	Good []byte
	// Sections is a config of several lanes that the engine can tell apart, on /dev/sdb until Spec.Runtime is over. Nil: it tells none apart.
	Sections []byte
	// Faulty holds at least two mistakes; every one of Objections occurs in the error of Validate.
	Faulty     []byte
	Objections []string
	// Refused passes Validate but is refused by the tool when run; the error holds all of RefusedWords.
	Refused      []byte
	RefusedWords []string
	// Noise is output without any report.
	Noise []byte
}

// Run runs the suite.
func (s Suite) Run(t *testing.T) {
	if s.Host == nil {
		s.Host = func(t testing.TB) target.Host { return NewHost(t, 16<<20, 16<<20) }
	}
	for _, test := range []struct {
		name string
		run  func(Suite, *testing.T)
	}{
		{"describe", Suite.describe},
		{"check", Suite.check},
		{"validate names every objection", Suite.validate},
		{"command is deterministic", Suite.command},
		{"run", Suite.complete},
		{"sections", Suite.sections},
		{"cancel kills", Suite.cancel},
		{"cancelled before the start", Suite.cancelled},
		{"refused by the tool", Suite.refused},
		{"host away", Suite.away},
		{"raw output cannot be written", Suite.rawFails},
		{"parse refuses noise", Suite.noise},
		{"parse refuses nothing", Suite.empty},
	} {
		t.Run(test.name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, leaks) }) // registered first, so after the host's own clean-up
			test.run(s, t)
		})
	}
}

// Recorder keeps what a Sink is given. It may be read after the run.
type Recorder struct {
	mu       sync.Mutex
	Reports  []workload.Report
	Warnings []string
	// OnReport, when set, is called after each report has been kept.
	OnReport func(workload.Report)
}

// Report implements workload.Sink.
func (r *Recorder) Report(report workload.Report) {
	r.mu.Lock()
	r.Reports = append(r.Reports, report)
	r.mu.Unlock()
	if r.OnReport != nil {
		r.OnReport(report)
	}
}

// Warn implements workload.Sink.
func (r *Recorder) Warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Warnings = append(r.Warnings, text)
}

func (s Suite) spec(host target.Host, config []byte) workload.Spec {
	return workload.Spec{
		Name: "Suite Load", VM: host.Name(), ConfigFile: "suite.cfg", Config: config, Disks: host.Disks(),
		Interval: time.Second, Runtime: 2 * time.Second, Seed: 42, SizeScale: 1, TimeScale: 1,
	}
}

func (s Suite) job(t *testing.T, host target.Host, config []byte) workload.Job {
	t.Helper()
	job, err := s.Engine.Command(s.spec(host, config))
	if err != nil {
		t.Fatalf("Command: %v", err)
	}
	return job
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limitWait)
	t.Cleanup(cancel)
	return ctx
}

func env(host target.Host, sink workload.Sink, raw io.Writer) workload.Env {
	return workload.Env{Host: host, Clock: clock.Real{}, Raw: raw, Sink: sink}
}

func (s Suite) describe(t *testing.T) {
	d := s.Engine.Describe()
	if d.Name == "" || d.Latency != "service time" && d.Latency != "response time" {
		t.Errorf("Describe() = %+v", d)
	}
	if again := s.Engine.Describe(); d != again {
		t.Errorf("Describe() changed: %+v", again)
	}
}

func (s Suite) check(t *testing.T) {
	tool, err := s.Engine.Check(bounded(t), s.Host(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.Engine.Describe().MinVersion != "" && (tool.Path == "" || tool.Version == "") {
		t.Errorf("Check() = %+v, want a path and a version", tool)
	}
}

func (s Suite) validate(t *testing.T) {
	host := s.Host(t)
	if err := s.Engine.Validate(s.spec(host, s.Good)); err != nil {
		t.Errorf("the good config: %v", err)
	}
	err := s.Engine.Validate(s.spec(host, s.Faulty))
	if err == nil {
		t.Fatal("the faulty config passes")
	}
	contains(t, err.Error(), s.Objections)
	if _, err := s.Engine.Command(s.spec(host, s.Faulty)); err == nil {
		t.Error("Command makes a job of the faulty config")
	}
}

func (s Suite) command(t *testing.T) {
	host := s.Host(t)
	spec := s.spec(host, s.Good)
	before := bytes.Clone(spec.Config)
	a, errA := s.Engine.Command(spec)
	b, errB := s.Engine.Command(spec)
	if errA != nil || errB != nil {
		t.Fatal(errors.Join(errA, errB))
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(before, spec.Config) {
		t.Error("Command changed the author's config")
	}
	if len(a.Lanes) == 0 {
		t.Error("no lane says what the job keeps outstanding")
	}
}

func (s Suite) complete(t *testing.T) {
	host := s.Host(t)
	var live, replayed Recorder
	var raw bytes.Buffer
	outcome, err := s.Engine.Run(bounded(t), env(host, &live, &raw), s.job(t, host, s.Good))
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Stopped || outcome.Exit != (target.Exit{}) || outcome.Reports != len(live.Reports) {
		t.Errorf("outcome %+v with %d reports", outcome, len(live.Reports))
	}
	checkReports(t, live.Reports, true)
	again, err := s.Engine.Parse(&raw, &replayed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Reports, replayed.Reports); diff != "" {
		t.Errorf("the replayed raw output gives other reports:\n%s", diff)
	}
	if diff := cmp.Diff(live.Warnings, replayed.Warnings); diff != "" {
		t.Errorf("the replayed raw output gives other warnings:\n%s", diff)
	}
	if again.Reports != outcome.Reports || again.Errors != outcome.Errors {
		t.Errorf("replay says %+v, the run said %+v", again, outcome)
	}
}

// checkReports holds reports against the contract: in order, cumulative, histograms counting every operation.
func checkReports(t *testing.T, reports []workload.Report, ended bool) {
	t.Helper()
	if len(reports) == 0 {
		t.Fatal("no report")
	}
	var before workload.Report
	for i, r := range reports {
		if i > 0 && !r.Time.After(before.Time) {
			t.Errorf("report %d is of %v, not after %v", i, r.Time, before.Time)
		}
		if r.Elapsed < before.Elapsed || r.Errors < before.Errors {
			t.Errorf("report %d went backwards: %+v after %+v", i, r, before)
		}
		if r.Final != (ended && i == len(reports)-1) && ended {
			t.Errorf("report %d of %d: Final is %v", i, len(reports), r.Final)
		}
		checkCounters(t, "read", r.Read, before.Read)
		checkCounters(t, "write", r.Write, before.Write)
		checkCounters(t, "trim", r.Trim, before.Trim)
		before = r
	}
	if before.Read.Ops+before.Write.Ops+before.Trim.Ops == 0 {
		t.Error("not one operation was reported")
	}
}

func checkCounters(t *testing.T, name string, now, before workload.Counters) {
	t.Helper()
	if now.Ops < before.Ops || now.Bytes < before.Bytes || now.Seconds < before.Seconds {
		t.Errorf("%s went backwards: %+v after %+v", name, now, before)
	}
	if now.Hist == nil {
		return
	}
	if now.Hist.Count() != now.Ops {
		t.Errorf("%s: the histogram counts %d of %d operations", name, now.Hist.Count(), now.Ops)
	}
	if _, err := now.Hist.Sub(before.Hist); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if mean := now.Hist.Mean() / 1e9 * float64(now.Ops); now.Ops > 0 && (mean < now.Seconds*0.98 || mean > now.Seconds*1.02) {
		t.Errorf("%s: the histogram sums to %v s, Seconds is %v", name, mean, now.Seconds)
	}
}

func (s Suite) sections(t *testing.T) {
	if s.Sections == nil {
		t.Skip("the engine does not tell lanes apart")
	}
	host := s.Host(t)
	spec := s.spec(host, s.Sections)
	together, err := s.Engine.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.Sections = workload.MostSections
	job, err := s.Engine.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(job.Lanes); n < 2 || !job.Apart || together.Apart {
		t.Fatalf("%d lanes, told apart: %t, and without being asked: %t", n, job.Apart, together.Apart)
	}
	if diff := cmp.Diff(together.Lanes, job.Lanes); diff != "" {
		t.Errorf("being told apart changes the lanes:\n%s", diff)
	}
	var live, replayed Recorder
	var raw bytes.Buffer
	if _, err := s.Engine.Run(bounded(t), env(host, &live, &raw), job); err != nil {
		t.Fatal(err)
	}
	checkReports(t, live.Reports, true)
	checkSections(t, live.Reports, job.Lanes)
	if _, err := s.Engine.Parse(&raw, &replayed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Reports, replayed.Reports); diff != "" {
		t.Errorf("the replayed raw output gives other reports:\n%s", diff)
	}
}

// checkSections holds sections against the contract: one per lane, cumulative, doing what its lane does, together the totals.
func checkSections(t *testing.T, reports []workload.Report, lanes []workload.Lane) {
	t.Helper()
	before := make([]workload.Section, len(lanes))
	for i, r := range reports {
		if len(r.Sections) != len(lanes) {
			t.Fatalf("report %d has %d sections, the job %d lanes", i, len(r.Sections), len(lanes))
		}
		var read, write workload.Counters
		for k, s := range r.Sections {
			name := "section " + lanes[k].Name
			checkCounters(t, name+" read", s.Read, before[k].Read)
			checkCounters(t, name+" write", s.Write, before[k].Write)
			if s.Read.Ops > 0 && !lanes[k].Reads || s.Write.Ops > 0 && !lanes[k].Writes {
				t.Errorf("report %d: %s read %d and wrote %d times", i, name, s.Read.Ops, s.Write.Ops)
			}
			read.Ops, read.Bytes = read.Ops+s.Read.Ops, read.Bytes+s.Read.Bytes
			write.Ops, write.Bytes = write.Ops+s.Write.Ops, write.Bytes+s.Write.Bytes
		}
		before = r.Sections
		got := [4]uint64{read.Ops, read.Bytes, write.Ops, write.Bytes}
		if want := [4]uint64{r.Read.Ops, r.Read.Bytes, r.Write.Ops, r.Write.Bytes}; got != want {
			t.Errorf("report %d: the sections add up to %v, the totals are %v", i, got, want)
		}
	}
	for k, s := range before {
		if s.Read.Ops+s.Write.Ops == 0 || s.Read.Ops > 0 && s.Read.Hist == nil || s.Write.Ops > 0 && s.Write.Hist == nil {
			t.Errorf("section %s did nothing, or has no histogram: %+v", lanes[k].Name, s)
		}
	}
}

func (s Suite) cancel(t *testing.T) {
	host := s.Host(t)
	ctx, stop := context.WithCancel(bounded(t))
	defer stop()
	live := Recorder{OnReport: func(workload.Report) { stop() }}
	spec := s.spec(host, s.Good)
	spec.Runtime = time.Hour
	job, err := s.Engine.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	outcome, err := s.Engine.Run(ctx, env(host, &live, &raw), job)
	if err != nil {
		t.Fatalf("a cancelled run is no failure: %v", err)
	}
	if !outcome.Stopped {
		t.Errorf("outcome %+v does not say that the run was stopped", outcome)
	}
	checkReports(t, live.Reports, false)
	var replayed Recorder
	if _, err := s.Engine.Parse(&raw, &replayed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Reports, replayed.Reports); diff != "" {
		t.Errorf("the replayed raw output gives other reports:\n%s", diff)
	}
}

func (s Suite) cancelled(t *testing.T) {
	host := s.Host(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	outcome, err := s.Engine.Run(ctx, env(host, &Recorder{}, io.Discard), s.job(t, host, s.Good))
	if err != nil || !outcome.Stopped {
		t.Errorf("outcome %+v, %v; want stopped and no error", outcome, err)
	}
}

func (s Suite) refused(t *testing.T) {
	if s.Refused == nil {
		t.Skip("the engine has no tool that could refuse a job")
	}
	host := s.Host(t)
	_, err := s.Engine.Run(bounded(t), env(host, &Recorder{}, io.Discard), s.job(t, host, s.Refused))
	if err == nil {
		t.Fatal("no error")
	}
	contains(t, err.Error(), append([]string{host.Name()}, s.RefusedWords...))
}

func (s Suite) away(t *testing.T) {
	host := s.Host(t)
	spec := s.spec(host, s.Good)
	spec.Runtime = time.Hour
	job, err := s.Engine.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	loser, ok := host.(interface{ Lose() })
	if !ok {
		t.Skip("the host of this suite cannot go away")
	}
	var live Recorder
	live.OnReport = func(workload.Report) {
		if len(live.Reports) == 1 {
			loser.Lose()
		}
	}
	outcome, err := s.Engine.Run(bounded(t), env(host, &live, io.Discard), job)
	if err != nil || !outcome.Exit.Lost || outcome.Stopped {
		t.Errorf("outcome %+v, %v; want Exit.Lost and no error", outcome, err)
	}
	_, err = s.Engine.Run(bounded(t), env(host, &live, io.Discard), job)
	if !errors.Is(err, target.ErrNotAccessible) {
		t.Errorf("a start on a machine that is off: %v, want %v", err, target.ErrNotAccessible)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("no space left for raw output")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func (s Suite) rawFails(t *testing.T) {
	host := s.Host(t)
	var live Recorder
	_, err := s.Engine.Run(bounded(t), env(host, &live, brokenWriter{}), s.job(t, host, s.Good))
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	if len(live.Reports) > 0 {
		t.Error("a report was made of output that was not kept")
	}
}

func (s Suite) noise(t *testing.T) {
	var r Recorder
	if _, err := s.Engine.Parse(bytes.NewReader(s.Noise), &r); err == nil || len(r.Reports) > 0 {
		t.Errorf("%d reports, error %v; want an error that says why", len(r.Reports), err)
	}
}

func (s Suite) empty(t *testing.T) {
	if _, err := s.Engine.Parse(bytes.NewReader(nil), &Recorder{}); err == nil {
		t.Error("empty output passes")
	}
}
