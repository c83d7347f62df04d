package collect

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// synthetic is an engine whose raw output is a recipe: a report per second with cumulative histograms of lognormal
// service times. It makes reports in the time a parser would at best take, so that what is measured is Collect.
type synthetic struct{ workload.Engine }

type recipe struct {
	Start   time.Time
	Seconds int
	Seed    uint64
}

func (synthetic) Parse(_ workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	var rc recipe
	if err := json.NewDecoder(r).Decode(&rc); err != nil {
		return workload.Outcome{}, err
	}
	rc.play(sink.Report)
	return workload.Outcome{}, nil
}

func (rc recipe) play(emit func(workload.Report)) {
	rng := rand.New(rand.NewPCG(rc.Seed, 1))
	rep := workload.Report{Ops: workload.Counts{{Hist: &hist.Histogram{}}, {Hist: &hist.Histogram{}}, {}}}
	for s := 1; s <= rc.Seconds; s++ {
		rep.Ops = slices.Clone(rep.Ops)
		for op := range 2 {
			c := &rep.Ops[op]
			c.Hist = c.Hist.Clone()
			for range 40 {
				ns := math.Exp(13.5 + 0.7*rng.NormFloat64())
				c.Hist.Add(uint64(ns), 25)
				c.Seconds += ns * 25e-9
			}
			c.Ops, c.Bytes = c.Ops+1000, c.Bytes+8<<20
		}
		rep.Elapsed = time.Duration(s) * time.Second
		rep.Time = rc.Start.Add(rep.Elapsed)
		emit(rep)
	}
}

// bigLab records so many VMs for so many seconds.
func bigLab(tb testing.TB, vms, seconds int) *recordtest.Lab {
	l := recordtest.New(tb)
	l.Event(result.KindPhase, "run", "")
	var jobs []*record.Job
	reports := make([][]workload.Report, vms)
	for i := range vms {
		name, group := recordtest.VMName(i), []string{"OLTP", "DSS"}[i%2]
		d := result.RawJob{VM: name, Group: group, Workload: group, Attempt: 1, Engine: "synthetic",
			Operations: result.BlockOperations(), Phase: "run", Start: l.Now,
			End: l.Now.Add(time.Duration(seconds) * time.Second), Ended: "finished"}
		l.Must(l.Folder.WriteRawJob(d))
		w, err := l.Folder.RawWriter(d)
		l.Must(err)
		rc := recipe{l.Now, seconds, uint64(i)}
		l.Must(json.NewEncoder(w).Encode(rc))
		l.Must(w.Close())
		jobs = append(jobs, l.Recorder.Job(d))
		if i < 1 {
			rc.play(func(r workload.Report) { reports[i] = append(reports[i], r) })
		} else {
			reports[i] = reports[0]
		}
	}
	for s := range seconds {
		l.Now = l.Now.Add(time.Second)
		if s == seconds/2 {
			l.Event(result.KindAnnotation, "run", "half")
		}
		for i, j := range jobs {
			j.Report(reports[i][s])
		}
		l.Must(l.Recorder.Tick())
	}
	l.Event(result.KindPhase, "teardown", "")
	return l
}

func hourScenario() *scenario.Scenario {
	sc := &scenario.Scenario{Name: "lab"}
	for _, g := range []string{"OLTP", "DSS"} {
		for _, typ := range []string{"iops", "bandwidth", "latency"} {
			for _, agg := range []string{"", "sum"} {
				sc.Results = append(sc.Results, resultOf(scenario.GroupResult, typ, g, "", agg))
			}
		}
	}
	return sc
}

// BenchmarkCollectHour collects one hour of 50 VMs with 12 results; also the size of the data and the peak heap.
func BenchmarkCollectHour(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a minute to prepare")
	}
	recordtest.Engines["synthetic"] = synthetic{}
	l := bigLab(b, 50, 3600)
	sc := hourScenario()
	var size int
	began := recordtest.CPU()
	for b.Loop() {
		d := collected(l, sc)
		j, err := json.Marshal(d)
		l.Must(err)
		size = len(j)
	}
	b.ReportMetric((recordtest.CPU()-began).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(size)/1e6, "MB-json")
	b.ReportMetric(recordtest.ResidentPeak()/1e6, "MB-peak-rss")
}
