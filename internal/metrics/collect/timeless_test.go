package collect

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/tally"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
)

// A start that reported once, of all its time, has no line over time: none is drawn where it ran. A
// start within one step has its one point.
func TestOneReportIsNoLine(t *testing.T) {
	t.Parallel()
	ops := []result.Operation{{Name: "read", Noun: "reads"}}
	l := tally.Layout{Operations: ops}
	start := func(from time.Duration, reports ...time.Duration) *track {
		k := &track{meter: tally.NewMeter(l, ops, nil),
			marks: []counted{{At: recordtest.Epoch.Add(from), Totals: l.Zero()}}}
		for i, at := range reports {
			v := l.Zero()
			v[1] = float64(10 * (i + 1)) // operations
			k.marks = append(k.marks, counted{At: recordtest.Epoch.Add(at), Totals: v})
		}
		return k
	}
	const s = time.Second
	c := &replayed{planned: &planned{found: &found{layout: l}, grid: grid{start: recordtest.Epoch, step: s, n: 5}}}
	once, often, brief := start(0, 3*s), start(0, s, 2*s, 3*s, 4*s, 5*s), start(4*s, 5*s)
	ten := 10.0
	for name, x := range map[string]struct {
		tracks []*track
		want   []*float64 // nil: no series
	}{
		"once":             {[]*track{once}, nil},
		"often":            {[]*track{often}, []*float64{&ten, &ten, &ten, &ten, &ten}},
		"both":             {[]*track{once, often}, []*float64{nil, nil, nil, &ten, &ten}},
		"within a step":    {[]*track{brief}, []*float64{nil, nil, nil, nil, &ten}},
		"then within step": {[]*track{once, brief}, []*float64{nil, nil, nil, nil, &ten}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []*float64
			for _, s := range c.views(result.Series{}, x.tracks, nil) {
				if s.Measure == result.Rate {
					got = s.Values
				}
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	q := (&cells{grid: c.grid, q: [][len(quantiles)][]*float64{{{&ten, &ten, &ten, &ten, &ten}}}})
	if got := q.without(unknown([]*track{once}, c.grid)).q[0][0]; got[0] != nil || got[2] != nil || got[3] == nil {
		t.Errorf("percentiles of the time of which nothing is known: %v", got)
	}
}

// A level has no point where no report told it, and a sum of machines none where one of them told nothing.
func TestLevelIsDrawnWhereItIsTold(t *testing.T) {
	t.Parallel()
	depth := []result.Measure{{Name: "depth", Unit: "I/Os", Kind: result.Level}}
	l := tally.Layout{Measures: depth}
	load := func(vm string, values ...float64) *track {
		k := &track{job: result.RawJob{VM: vm}, meter: tally.NewMeter(l, nil, depth),
			marks: []counted{{At: recordtest.Epoch, Totals: l.Zero()}}}
		for i, v := range values {
			s := time.Duration(i+1) * time.Second
			m := k.meter.Report(k.to(), recordtest.Epoch.Add(s), workload.Report{Elapsed: s, Values: []float64{v}})
			k.marks = append(k.marks, counted{At: m.At, Totals: m.Totals})
		}
		return k
	}
	c := &replayed{planned: &planned{found: &found{layout: l},
		grid: grid{start: recordtest.Epoch, step: 2 * time.Second, n: 3}}}
	none := math.NaN()
	one, other := load("a", 4, 8, 8, none, none, none), load("b", 1, 1, 1, 1, none, 1)
	six, seven, eight := 6.0, 7.0, 8.0
	for name, x := range map[string]struct {
		tracks []*track
		want   []*float64
	}{
		"one": {[]*track{one}, []*float64{&six, &eight, nil}},
		"two": {[]*track{one, other}, []*float64{&seven, nil, nil}},
	} {
		if diff := cmp.Diff(x.want, c.views(result.Series{}, x.tracks, nil)[0].Values); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
