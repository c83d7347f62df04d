// Package workloadtest is the conformance suite of workload.Engine: what the steps and the analysis rely on, tested the
// same way for every generator. An engine joins it with one Suite value (see the fio and fake packages' tests).
//
// The tests run jobs of a second or two on a Host of this package. What an engine cannot do at all is left empty in the
// Suite and counted as skipped, with the reason printed.
package workloadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// Suite holds what an engine is tested with.
type Suite struct {
	Engine workload.Engine
	// Host makes a fresh machine on which the engine can run. Nil: a Host of this package with two 16 MiB disks.
	Host func(testing.TB) target.Host
	// Good is a config that does I/O on /dev/sdb until Spec.Runtime is over.
	Good []byte
	// Sections is a config of several streams that the engine can tell apart, on /dev/sdb until Spec.Runtime is over.
	// Nil: it tells none apart.
	Sections []byte
	// Faulty holds at least two mistakes; every one of Objections occurs in the error of Validate.
	Faulty     []byte
	Objections []string
	// Refused passes Validate but is refused by the tool when run; the error holds all of RefusedWords.
	Refused      []byte
	RefusedWords []string
	// Noise is output without any report.
	Noise []byte
	// AtEnd: the tool reports nothing before its end.
	AtEnd bool
}

// watched is a host that tells of every start.
type watched struct {
	target.Host
	started func()
}

func (w watched) Start(ctx context.Context, c target.Command) (target.Process, error) {
	p, err := w.Host.Start(ctx, c)
	if err == nil {
		w.started()
	}
	return p, err
}

// interrupt has f called once, at the first report of a job on the host or, of a tool that reports at its end, at its
// start.
func (s Suite) interrupt(host target.Host, sink *Recorder, f func()) target.Host {
	var once sync.Once
	if s.AtEnd {
		return watched{host, func() { once.Do(f) }}
	}
	sink.OnReport = func(workload.Report) { once.Do(f) }
	return host
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
	if len(a.Streams) == 0 {
		t.Error("no stream says what the job keeps outstanding")
	}
	checkDeclared(t, a.Declared, s.Engine.Describe().Blocks)
}

// checkDeclared holds what a job declares against the contract: something is counted, under names that are told apart.
func checkDeclared(t *testing.T, d workload.Declared, blocks bool) {
	t.Helper()
	if len(d.Operations)+len(d.Measures) == 0 {
		t.Error("the job declares neither operations nor measures")
	}
	seen := map[string]bool{}
	for _, o := range d.Operations {
		if o.Name == "" || o.Noun == "" || strings.ContainsAny(o.Name, " \t\n") || seen[o.Name] || o.Block != "" &&
			!o.Bytes {
			t.Errorf("operation %+v lacks a name of its own or a noun, or moves blocks without bytes", o)
		}
		if o.Block != "" && !blocks {
			t.Errorf("operation %+v moves blocks, which the engine does not", o)
		}
		seen[o.Name] = true
	}
	for _, m := range d.Measures {
		if m.Name == "" || m.Unit == "" || seen[m.Name] ||
			!slices.Contains([]result.Kind{result.Count, result.Level, result.Single}, m.Kind) {
			t.Errorf("measure %+v lacks a name of its own, a unit or a kind", m)
		}
		seen[m.Name] = true
	}
	if d.Format != nil && !json.Valid(d.Format) {
		t.Errorf("the format is no JSON: %s", d.Format)
	}
}

func (s Suite) complete(t *testing.T) {
	host := s.Host(t)
	var live, replayed Recorder
	var raw bytes.Buffer
	job := s.job(t, host, s.Good)
	outcome, err := s.Engine.Run(bounded(t), env(host, &live, &raw), job)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Stopped || outcome.Exit != (target.Exit{}) || outcome.Reports != len(live.Reports) {
		t.Errorf("outcome %+v with %d reports", outcome, len(live.Reports))
	}
	checkReports(t, job.Declared, live.Reports, true)
	again, err := s.Engine.Parse(job.Declared, &raw, &replayed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Reports, replayed.Reports, cmpopts.EquateNaNs()); diff != "" {
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
func checkReports(t *testing.T, declared workload.Declared, reports []workload.Report, ended bool) {
	t.Helper()
	if len(reports) == 0 {
		t.Fatal("no report")
	}
	var before workload.Report
	for i, r := range reports {
		switch {
		case r.Time.IsZero() && r.Final && r.Elapsed == 0:
			before.Elapsed = 0 // at the end, whenever that was
		case i > 0 && r.Time.IsZero() != before.Time.IsZero():
			t.Errorf("report %d is of %v, the one before of %v: a tool has a clock or it has none", i, r.Time, before.Time)
		case i > 0 && r.Time.IsZero() && r.Elapsed <= before.Elapsed: // the later point would be lost
			t.Errorf("report %d is of %v, the one before of %v: a moment has one", i, r.Elapsed, before.Elapsed)
		case i > 0 && !r.Time.IsZero() && !r.Time.After(before.Time):
			t.Errorf("report %d is of %v, not after %v", i, r.Time, before.Time)
		}
		if r.Elapsed < before.Elapsed || r.Errors < before.Errors {
			t.Errorf("report %d went backwards: %+v after %+v", i, r, before)
		}
		if r.Final != (ended && i == len(reports)-1) && ended {
			t.Errorf("report %d of %d: Final is %v", i, len(reports), r.Final)
		}
		checkCounts(t, "report", declared.Operations, r.Ops, before.Ops)
		if len(r.Values) != len(declared.Measures) {
			t.Errorf("report %d has %d values for %d measures", i, len(r.Values), len(declared.Measures))
		}
		for k, m := range declared.Measures {
			if i > 0 && m.Kind == result.Count && r.Values[k] < before.Values[k] {
				t.Errorf("report %d: %s, which counts, fell from %v to %v", i, m.Name, before.Values[k], r.Values[k])
			}
		}
		before = r
	}
	if before.Ops.Total() == 0 && len(declared.Operations) > 0 {
		t.Error("not one operation was reported")
	}
}

// checkCounts holds the counters of all operations against the contract and against those before, nil for none.
func checkCounts(t *testing.T, what string, operations []result.Operation, now, before workload.Counts) {
	t.Helper()
	if len(now) != len(operations) {
		t.Fatalf("%s: %d counters for %d operations", what, len(now), len(operations))
	}
	for i, o := range operations {
		was := workload.Counters{}
		if before != nil {
			was = before[i]
		}
		checkCounters(t, what+": "+o.Name, now[i], was)
		if now[i].Bytes > 0 && !o.Bytes {
			t.Errorf("%s: %s moves no bytes and reports %d", what, o.Name, now[i].Bytes)
		}
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
	if mean := now.Hist.Mean() / 1e9 * float64(now.Ops); now.Ops > 0 &&
		(mean < now.Seconds*0.98 || mean > now.Seconds*1.02) {
		t.Errorf("%s: the histogram sums to %v s, Seconds is %v", name, mean, now.Seconds)
	}
}

func (s Suite) sections(t *testing.T) {
	if s.Sections == nil {
		t.Skip("the engine does not tell streams apart")
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
	if n := len(job.Streams); n < 2 || !job.Apart || together.Apart {
		t.Fatalf("%d streams, told apart: %t, and without being asked: %t", n, job.Apart, together.Apart)
	}
	if diff := cmp.Diff(together.Streams, job.Streams); diff != "" {
		t.Errorf("being told apart changes the streams:\n%s", diff)
	}
	var live, replayed Recorder
	var raw bytes.Buffer
	if _, err := s.Engine.Run(bounded(t), env(host, &live, &raw), job); err != nil {
		t.Fatal(err)
	}
	checkReports(t, job.Declared, live.Reports, true)
	checkSections(t, job.Operations, live.Reports, job.Streams)
	if _, err := s.Engine.Parse(job.Declared, &raw, &replayed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Reports, replayed.Reports, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the replayed raw output gives other reports:\n%s", diff)
	}
}

// checkSections holds sections against the contract: one per stream, cumulative, doing what its stream does, together
// the totals.
func checkSections(t *testing.T, operations []result.Operation, reports []workload.Report, streams []result.Stream) {
	t.Helper()
	before := make([]workload.Counts, len(streams))
	for i, r := range reports {
		if len(r.Sections) != len(streams) {
			t.Fatalf("report %d has %d sections, the job %d streams", i, len(r.Sections), len(streams))
		}
		sum := make(workload.Counts, len(operations))
		for k, s := range r.Sections {
			checkCounts(t, "section "+streams[k].Name, operations, s, before[k])
			for n, o := range operations {
				if c := s[n].Ops; c > 0 && (o.Block == result.BlockRead && !streams[k].Reads ||
					o.Block == result.BlockWrite && !streams[k].Writes) {
					t.Errorf("report %d: section %s has %d %s, which it does not do", i, streams[k].Name, c, o.Noun)
				}
				sum[n].Ops, sum[n].Bytes = sum[n].Ops+s[n].Ops, sum[n].Bytes+s[n].Bytes
			}
		}
		before = r.Sections
		for n, o := range operations {
			if sum[n].Ops != r.Ops[n].Ops || sum[n].Bytes != r.Ops[n].Bytes {
				t.Errorf("report %d: the sections' %s add up to %+v, the total is %+v", i, o.Noun, sum[n], r.Ops[n])
			}
		}
	}
	for k, s := range before {
		if s.Total() == 0 {
			t.Errorf("section %s did nothing: %+v", streams[k].Name, s)
		}
		for n, c := range s {
			if c.Ops > 0 && c.Hist == nil {
				t.Errorf("section %s: its %s have no histogram", streams[k].Name, operations[n].Noun)
			}
		}
	}
}

func (s Suite) cancel(t *testing.T) {
	host := s.Host(t)
	ctx, stop := context.WithCancel(bounded(t))
	defer stop()
	var live Recorder
	spec := s.spec(host, s.Good)
	spec.Runtime = time.Hour
	job, err := s.Engine.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	outcome, err := s.Engine.Run(ctx, env(s.interrupt(host, &live, stop), &live, &raw), job)
	if err != nil {
		t.Fatalf("a cancelled run is no failure: %v", err)
	}
	if !outcome.Stopped {
		t.Errorf("outcome %+v does not say that the run was stopped", outcome)
	}
	if s.AtEnd {
		return
	}
	checkReports(t, job.Declared, live.Reports, false)
	var replayed Recorder
	if _, err := s.Engine.Parse(job.Declared, &raw, &replayed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Reports, replayed.Reports, cmpopts.EquateNaNs()); diff != "" {
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
	outcome, err := s.Engine.Run(bounded(t), env(s.interrupt(host, &live, loser.Lose), &live, io.Discard), job)
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

// declared returns what the good config declares.
func (s Suite) declared(t *testing.T) workload.Declared {
	return s.job(t, s.Host(t), s.Good).Declared
}

func (s Suite) noise(t *testing.T) {
	var r Recorder
	if _, err := s.Engine.Parse(s.declared(t), bytes.NewReader(s.Noise), &r); err == nil || len(r.Reports) > 0 {
		t.Errorf("%d reports, error %v; want an error that says why", len(r.Reports), err)
	}
}

func (s Suite) empty(t *testing.T) {
	if _, err := s.Engine.Parse(s.declared(t), bytes.NewReader(nil), &Recorder{}); err == nil {
		t.Error("empty output passes")
	}
}
