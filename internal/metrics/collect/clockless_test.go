package collect

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/tally"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
)

// Reports without a clock are placed by their elapsed time, within the job and in order: while the run goes on, and
// when it is replayed.
func TestPlaceWithoutAClock(t *testing.T) {
	start := recordtest.Epoch
	at := func(d time.Duration) time.Time { return start.Add(d) }
	const s = time.Second
	for _, c := range []struct {
		name    string
		reports []workload.Report
		end     time.Duration
		want    []time.Time
	}{
		{"by elapsed time", []workload.Report{{Elapsed: s}, {Elapsed: 2 * s}, {Elapsed: 3 * s, Final: true}}, 4 * s,
			[]time.Time{at(s), at(2 * s), at(3 * s)}},
		{"a last one that says nothing", []workload.Report{{Elapsed: s}, {Final: true}}, 4 * s,
			[]time.Time{at(s), at(4 * s)}},
		{"nothing but that", []workload.Report{{Final: true}}, 4 * s, []time.Time{at(4 * s)}},
		{"a tool whose time runs fast", []workload.Report{{Elapsed: 3 * s}, {Elapsed: 6 * s}, {Elapsed: 7 * s}}, 4 * s,
			[]time.Time{at(3 * s), at(4 * s), at(4 * s)}},
		{"the beginning", []workload.Report{{}, {Elapsed: s}}, 4 * s, []time.Time{at(0), at(s)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			desc := result.RawJob{VM: "vm", Workload: "w", Start: start, End: at(c.end)}
			p := &replay{track: &track{job: desc, meter: tally.NewMeter(tally.Layout{}, nil, nil), end: desc.End},
				cutters: func(tally.Mark) []*cutter { return nil }, warned: map[string]int{}}
			l := recordtest.New(t)
			live := l.Recorder.Job(desc)
			l.Now = at(c.end) // all of it is read when the job has ended
			var placed []time.Time
			for _, r := range c.reports {
				p.Report(r)
				live.Report(r)
				placed = append(placed, live.Heard())
			}
			p.finish()
			if diff := cmp.Diff(c.want, placed); diff != "" {
				t.Errorf("live:\n%s", diff)
			}
			replayed := []time.Time{}
			for _, m := range p.track.marks {
				replayed = append(replayed, m.At)
			}
			// the later of two at one moment stands for both
			want := append([]time.Time{start}, slices.Compact(c.want)...)
			if diff := cmp.Diff(want, replayed); diff != "" {
				t.Errorf("replayed:\n%s", diff)
			}
			if len(p.track.notes) > 0 || p.track.clock != 0 {
				t.Errorf("a clock was judged: %v, %v", p.track.notes, p.track.clock)
			}
		})
	}
}

// A histogram and latency that come with the last report only are of the whole job: no part of it has them.
func TestLatencyToldAtTheEnd(t *testing.T) {
	h := &hist.Histogram{}
	h.Add(1e6, 300)
	ops := []result.Operation{{Name: "event", Noun: "events"}}
	desc := result.RawJob{
		VM:         "vm",
		Workload:   "w",
		Operations: ops,
		Start:      recordtest.Epoch,
		End:        recordtest.Epoch.Add(4 * time.Second),
	}
	var parts []part
	p := &replay{
		track:  &track{job: desc, meter: tally.NewMeter(tally.Layout{Operations: ops}, ops, nil), end: desc.End},
		warned: map[string]int{},
		cutters: func(begin tally.Mark) []*cutter {
			return []*cutter{{from: begin,
				bound: func(i int) (time.Time, bool) { return recordtest.Epoch.Add(2 * time.Second), i < 1 },
				emit: func(i int, from, to tally.Mark) {
					d, err := histsBetween(from, to)
					if err != nil {
						t.Error(err)
					}
					parts = append(parts, part{i, from, to, d})
				}}}
		},
	}
	for i, n := range []uint64{100, 200, 300} {
		r := workload.Report{Elapsed: time.Duration(i+1) * time.Second, Ops: workload.Counts{{Ops: n}}}
		if n == 300 {
			r.Final, r.Ops[0].Seconds, r.Ops[0].Hist = true, 0.3, h
		}
		p.Report(r)
	}
	p.finish()
	if len(parts) != 2 || parts[0].to.Totals.Ops(0) != 200 || parts[1].to.Totals.Ops(0) != 300 {
		t.Fatalf("parts %+v", parts)
	}
	for _, one := range parts {
		if one.to.Totals.Seconds(0) != 0 || one.hists != nil && one.hists[0] != nil {
			t.Errorf("part %d has latency: %v s, %v", one.window, one.to.Totals.Seconds(0), one.hists)
		}
	}
	if f := p.track.final; f.Hists[0].Count() != 300 || math.Abs(f.Totals.Seconds(0)-0.3) > 1e-9 {
		t.Errorf("the whole has %v s and %v", f.Totals.Seconds(0), f.Hists)
	}
}

// A figure of the tool's own making in a part of the job is the last one of that part.
func TestFiguresOfAPart(t *testing.T) {
	measures := []result.Measure{{Name: "p95", Unit: "ms", Kind: result.Single}}
	k := &track{job: result.RawJob{VM: "vm", Measures: measures, Start: recordtest.Epoch},
		meter: tally.NewMeter(tally.Layout{Measures: measures}, nil, measures)}
	p := &replay{track: k, cutters: func(tally.Mark) []*cutter { return nil }, warned: map[string]int{}}
	for i, v := range []float64{1, 2, math.NaN(), 4} {
		p.Report(workload.Report{Elapsed: time.Duration(i+1) * time.Second, Values: []float64{v}})
	}
	part := func(from, to int) []result.Value {
		return values([]*track{k}, 0, func(k *track) (tally.Mark, tally.Mark, time.Duration) {
			return k.marks[from].mark(), k.marks[to].mark(), k.marks[to].At.Sub(k.marks[from].At)
		})
	}
	for _, c := range []struct {
		from, to int
		want     []result.Value
	}{{0, 4, []result.Value{{Measure: "p95", Value: 4}}}, {0, 2, []result.Value{{Measure: "p95", Value: 2}}}, {0, 3,
		[]result.Value{{Measure: "p95", Value: 2}}},
		{2, 3, nil}} {
		if diff := cmp.Diff(c.want, part(c.from, c.to)); diff != "" {
			t.Errorf("from report %d to %d:\n%s", c.from, c.to, diff)
		}
	}
}
