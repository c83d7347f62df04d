package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/result"
)

const steady = "[global]\ntime_based\nbs=4k\n[both]\nfilename=/dev/sdb\nsize=4m\nrw=randrw\niodepth=4\n"

func TestSuite(t *testing.T) {
	needs.Time(t)
	workloadtest.Suite{
		Engine:     Engine{},
		Good:       []byte(steady),
		Faulty:     []byte("[job]\nfilename=/dev/sdz\nrw=sideways\niodepth=0\n"),
		Objections: []string{"/dev/sdz", "sideways", "iodepth=0", "suite.cfg:2", "suite.cfg:3", "suite.cfg:4"},
		Noise:      []byte("no report here\n"),
	}.Run(t)
}

// simulate runs a job in fake time, so an hour costs what its events cost.
func simulate(t *testing.T, e Engine, spec workload.Spec) []workload.Report {
	t.Helper()
	var sink workloadtest.Recorder
	host := workloadtest.NewHost(t, 1<<20)
	spec.Disks = []target.Disk{{Device: "/dev/sdb", Path: "/none", Bytes: 1 << 30}}
	job, err := e.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := e.Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &bytes.Buffer{},
			Sink: &sink}, job); err != nil {
			t.Fatal(err)
		}
	})
	return sink.Reports
}

func spec(config string, runtime time.Duration) workload.Spec {
	return workload.Spec{Name: "w", VM: "vm", ConfigFile: "w.fio", Config: []byte(config), Runtime: runtime, Seed: 7}
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %v, want %v within %g", what, got, want, tolerance)
	}
}

// Closed loop: throughput is depth over mean service time, and the quantiles are the law's.
func TestClosedLoopFollowsItsLaw(t *testing.T) {
	for _, law := range []Law{
		{Kind: Exponential, Mean: 2 * time.Millisecond},
		{Kind: Lognormal, Mean: 2 * time.Millisecond, Sigma: 0.8},
		{Kind: Constant, Mean: 2 * time.Millisecond},
	} {
		t.Run(string(law.Kind), func(t *testing.T) {
			reports := simulate(t, Engine{Law: law}, spec(steady, 60*time.Second))
			if len(reports) != 60 {
				t.Fatalf("%d reports, want 60", len(reports))
			}
			end := reports[59]
			all := end.Ops[0].Hist.Clone()
			all.Merge(end.Ops[1].Hist)
			within(t, "throughput", float64(all.Count())/60, 4/law.Mean.Seconds(), 0.02)
			within(t, "mean", all.Mean(), float64(law.Mean), 0.02)
			for _, q := range []float64{0.5, 0.9, 0.99} {
				got, _ := all.Quantile(q)
				within(t, "quantile", float64(got), float64(law.Quantile(q)), 0.05)
			}
			within(t, "share of reads", float64(end.Ops[0].Ops)/float64(all.Count()), 0.5, 0.02)
		})
	}
}

// Open loop: what is offered is done while there is room, with the service times of the law.
func TestOpenLoopOffersItsRate(t *testing.T) {
	for _, process := range []string{"", "rate_process=poisson\n"} {
		config := "[job]\ntime_based\nfilename=/dev/sdb\nrw=randread\niodepth=64\nrate_iops=500\n" + process
		reports := simulate(t, Engine{}, spec(config, 100*time.Second))
		end := reports[len(reports)-1]
		within(t, "throughput", float64(end.Ops[0].Ops)/100, 500, 0.02)
		within(t, "mean", end.Ops[0].Hist.Mean(), float64(time.Millisecond), 0.02)
	}
}

// With one place and 2 ms each, 500 a second is the most there can be.
func TestOpenLoopSaturates(t *testing.T) {
	config := "[job]\ntime_based\nfilename=/dev/sdb\nrw=randread\niodepth=1\nrate_iops=5000\nrate_process=poisson\n"
	reports := simulate(t, Engine{Law: Law{Kind: Constant, Mean: 2 * time.Millisecond}}, spec(config, 10*time.Second))
	if got := reports[len(reports)-1].Ops[0].Ops; got < 4998 || got > 5000 {
		t.Errorf("%d operations in 10 s, want 5000", got)
	}
}

func TestStallsShowInTheTail(t *testing.T) {
	e := Engine{Law: Law{Kind: Constant, Mean: time.Millisecond},
		Stalls: Stalls{Every: 5 * time.Second, Length: time.Second}}
	reports := simulate(t, e, spec("[job]\ntime_based\nfilename=/dev/sdb\nrw=read\niodepth=2\n", 20*time.Second))
	end := reports[len(reports)-1]
	if got := end.Ops[0].Hist.CountAbove(uint64(900 * time.Millisecond)); got != 6 {
		t.Errorf("%d operations were caught, want 2 in each of 3 stalls", got)
	}
	within(t, "operations", float64(end.Ops[0].Ops), 17*2000, 0.001)
}

func TestEndsWithItsSize(t *testing.T) {
	config := "[job]\nfilename=/dev/sdb\nrw=write\nbs=1m\nsize=64m\niodepth=2\n"
	s := spec(config, 0)
	s.SizeScale = 0.5
	reports := simulate(t, Engine{Law: Law{Kind: Constant, Mean: 100 * time.Millisecond}}, s)
	end := reports[len(reports)-1]
	if end.Ops[1].Ops != 32 || end.Ops[1].Bytes != 32<<20 || !end.Final || end.Elapsed != 1600*time.Millisecond {
		t.Errorf("ended with %+v", end)
	}
}

func TestPrefillWritesTheSize(t *testing.T) {
	s := spec("[job]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nsize=16m\nrate_iops=10\n", time.Hour)
	s.Prefill, s.Depth = true, 4
	reports := simulate(t, Engine{}, s)
	if end := reports[len(reports)-1]; end.Ops[1].Bytes != 16<<20 || end.Ops[0].Ops != 0 {
		t.Errorf("ended with %+v", end)
	}
}

// Draws that stand for several operations keep throughput and law.
func TestSamplesBoundTheWork(t *testing.T) {
	config := "[job]\ntime_based\nfilename=/dev/sdb\nrw=read\niodepth=256\n"
	e := Engine{Law: Law{Kind: Exponential, Mean: 100 * time.Microsecond}, Samples: 2000}
	reports := simulate(t, e, spec(config, 20*time.Second))
	end := reports[len(reports)-1]
	within(t, "throughput", float64(end.Ops[0].Ops)/20, 256/100e-6, 0.05)
	within(t, "mean", end.Ops[0].Hist.Mean(), 100_000, 0.05)
}

func TestSameSeedSameReports(t *testing.T) {
	a := simulate(t, Engine{}, spec(steady, 5*time.Second))
	b := simulate(t, Engine{}, spec(steady, 5*time.Second))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	other := spec(steady, 5*time.Second)
	other.Seed = 8
	if c := simulate(t, Engine{}, other); cmp.Equal(a, c) {
		t.Error("another seed gives the same reports")
	}
}

func TestRunsInVirtualTime(t *testing.T) {
	reports := simulate(t, Engine{Samples: 50}, spec(steady, 20*time.Minute))
	if len(reports) != 20*60 {
		t.Errorf("%d reports", len(reports))
	}
}

func TestStallsFinish(t *testing.T) {
	t.Parallel()
	s := Stalls{Every: 10, Length: 3}
	for _, c := range []struct{ start, need, want time.Duration }{
		{0, 5, 5}, {0, 10, 10}, {0, 11, 14}, {9, 2, 14}, {11, 1, 14}, {13, 7, 20}, {13, 8, 24}, {0, 25, 34},
	} {
		if got := s.finish(c.start, c.need); got != c.want {
			t.Errorf("finish(%d, %d) = %d, want %d", c.start, c.need, got, c.want)
		}
	}
	if got := (Stalls{}).finish(5, 6); got != 11 {
		t.Errorf("without stalls: %d", got)
	}
}

func TestStallsNeverShorten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.Int64Range(2, 1000).Draw(t, "every")
		s := Stalls{Every: time.Duration(every), Length: time.Duration(rapid.Int64Range(1, every-1).Draw(t, "length"))}
		start := time.Duration(rapid.Int64Range(0, 5000).Draw(t, "start"))
		need := time.Duration(rapid.Int64Range(1, 5000).Draw(t, "need"))
		if got := s.finish(start, need); got < start+need || got > start+need+(need/(s.Every-s.Length)+2)*s.Length {
			t.Fatalf("finish(%d, %d) = %d", start, need, got)
		}
	})
}

func TestQuantileOfALaw(t *testing.T) {
	t.Parallel()
	e := Law{Kind: Exponential, Mean: time.Second}
	if got := e.Quantile(1 - 1/math.E); math.Abs(got.Seconds()-1) > 1e-6 {
		t.Errorf("exponential: %v", got)
	}
	l := Law{Kind: Lognormal, Mean: time.Second, Sigma: 1}
	if got, want := l.Quantile(0.5).Seconds(), math.Exp(-0.5); math.Abs(got-want) > 1e-6 {
		t.Errorf("lognormal median: %v, want %v", got, want)
	}
}

func TestRefusesBadLaws(t *testing.T) {
	t.Parallel()
	e := Engine{Law: Law{Kind: "uniform", Mean: time.Second}, Stalls: Stalls{Every: 1, Length: 2}}
	err := e.Validate(spec("[job]\nfilename=/dev/sdb\nsize=1m\nbs=none\n", 0))
	for _, want := range []string{"uniform", "stalls", "bs=none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestParseSkipsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	line, err := json.Marshal(workload.Report{Elapsed: time.Second, Errors: 3})
	if err != nil {
		t.Fatal(err)
	}
	var sink workloadtest.Recorder
	outcome, err := Engine{}.Parse(workload.Declared{}, strings.NewReader("{broken\n"+string(line)+"\n"), &sink)
	if err != nil || outcome.Reports != 1 || outcome.Errors != 3 || len(sink.Warnings) != 1 {
		t.Errorf("%+v, %v, warnings %q", outcome, err, sink.Warnings)
	}
}

func TestStreamTellsTheLoad(t *testing.T) {
	t.Parallel()
	s := spec("[job]\ntime_based\nfilename=/dev/sdb\nsize=1g\nrw=randrw\niodepth=8\nnumjobs=2\nrate_iops=100,50\n"+
		"rate_process=poisson\n", time.Minute)
	s.Disks = []target.Disk{{Device: "/dev/sdb", Bytes: 1 << 30}}
	job, err := Engine{}.Command(s)
	if err != nil {
		t.Fatal(err)
	}
	want := []result.Stream{{Name: "job", Device: "/dev/sdb", Depth: 16, Rate: 300, Reads: true, Writes: true,
		Bytes: 1 << 30, OpenLoop: true, Direct: true, TimeBased: true}}
	if diff := cmp.Diff(want, job.Streams); diff != "" {
		t.Error(diff)
	}
	if job.Limit != time.Minute {
		t.Errorf("limit %v", job.Limit)
	}
}

func TestBadProgramIsRefused(t *testing.T) {
	t.Parallel()
	host := workloadtest.NewHost(t, 1<<20)
	_, err := Engine{}.Run(context.Background(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &bytes.Buffer{},
		Sink: &workloadtest.Recorder{}},
		workload.Job{Files: map[string][]byte{programFile: []byte("{")}})
	if err == nil {
		t.Error("no error")
	}
}
