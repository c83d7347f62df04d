package tally

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

func Example() {
	reads := []result.Operation{{Name: "read"}}
	depth := []result.Measure{{Name: "depth", Kind: result.Level}}
	m := NewMeter(Layout{Operations: reads, Measures: depth}, reads, depth)
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	one := m.Report(start, start.Add(time.Second), workload.Report{Elapsed: time.Second,
		Ops: workload.Counts{{Ops: 100, Seconds: 0.5}}, Values: []float64{4}})
	two := m.Report(one.At, start.Add(3*time.Second), workload.Report{Elapsed: 3 * time.Second,
		Ops: workload.Counts{{Ops: 500, Seconds: 2.5}}, Values: []float64{8}})
	did := two.Totals.Minus(one.Totals)
	fmt.Println(did.Ops(0), "reads in", did.Seconds(0), "s of service time")
	fmt.Println("a mean depth of", m.Layout.Measure(two.Totals, 0)/3)
	// Output:
	// 400 reads in 2 s of service time
	// a mean depth of 6.666666666666667
}

// Parts of what happened between two states add up to it, and a state on the way lies between them.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	l := Layout{Operations: []result.Operation{{Name: "a"}, {Name: "b"}}, Measures: []result.Measure{{Name: "m"}}}
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Float64Range(0, 1e12), l.width(), l.width())
		from, more := Totals(counts.Draw(t, "from")), Totals(counts.Draw(t, "more"))
		to := append(Totals(nil), from...)
		to.Add(more)
		cut := rapid.Float64Range(0, 1).Draw(t, "cut")
		sum, between := l.Zero(), l.Zero()
		sum.AddPart(from, to, cut)
		sum.AddPart(from, to, 1-cut)
		between.SetMix(from, to, cut)
		for i, want := range to.Minus(from) {
			if math.Abs(sum[i]-want) > 1e-9*math.Max(1, to[i]) {
				t.Errorf("%d: parts add up to %v, want %v", i, sum[i], want)
			}
			if slack := 1e-9 * math.Max(1, to[i]); between[i] < from[i]-slack || between[i] > to[i]+slack {
				t.Errorf("%d: %v is not between %v and %v", i, between[i], from[i], to[i])
			}
		}
	})
}

// A tool without a clock tells a level once, at its end: it held for the whole job.
func TestLevelWithoutAClock(t *testing.T) {
	t.Parallel()
	keys := []result.Measure{{Name: "keys", Kind: result.Level}}
	m := NewMeter(Layout{Measures: keys}, nil, keys)
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	end := m.Report(start, start.Add(4*time.Second), workload.Report{Final: true, Values: []float64{43_000}})
	if mean := m.Layout.Measure(end.Totals, 0) / 4; mean != 43_000 {
		t.Errorf("a mean of %v keys, want 43,000", mean)
	}
}

// A level that a report lacks counts for none of its time, which is told; a count stays where it was.
func TestLevelThatAReportLacks(t *testing.T) {
	t.Parallel()
	measures := []result.Measure{{Name: "depth", Kind: result.Level}, {Name: "retries", Kind: result.Count}}
	m := NewMeter(Layout{Measures: measures}, nil, measures)
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	k := Mark{At: at}
	for i, v := range [][]float64{{6, 1}, {math.NaN(), math.NaN()}, {math.Inf(1), 3}, {10, 4}} {
		s := time.Duration(i*i+1) * time.Second // 1, 2, 5, 10
		k = m.Report(k.At, at.Add(s), workload.Report{Elapsed: s, Values: v})
	}
	l := m.Layout
	if sum, untold := l.Measure(k.Totals, 0), l.Untold(k.Totals, 0); sum != 6*1+10*5 || untold != 4 {
		t.Errorf("a depth of %v s in sum, %v s not told; want 56 and 4", sum, untold)
	}
	if n, untold := l.Measure(k.Totals, 1), l.Untold(k.Totals, 1); n != 4 || untold != 0 {
		t.Errorf("%v retries, %v s not told; want 4 and 0", n, untold)
	}
}

// What does not fit the declaration is found out before it is counted.
func TestFits(t *testing.T) {
	t.Parallel()
	ops, measures := []result.Operation{{Name: "a"}}, []result.Measure{{Name: "m"}}
	for name, c := range map[string]struct {
		layout Layout
		report workload.Report
		want   bool
	}{
		"as declared": {Layout{Operations: ops, Measures: measures},
			workload.Report{Ops: make(workload.Counts, 1), Values: make([]float64, 1)}, true},
		"an operation more": {Layout{Operations: ops, Measures: measures},
			workload.Report{Ops: make(workload.Counts, 2), Values: make([]float64, 1)}, false},
		"no measure": {Layout{Operations: ops, Measures: measures},
			workload.Report{Ops: make(workload.Counts, 1)}, false},
		"a section of another shape": {Layout{Operations: ops, Measures: measures}, workload.Report{
			Ops: make(workload.Counts, 1), Values: make([]float64, 1), Sections: []workload.Counts{nil}}, false},
		"a layout without it": {Layout{Operations: ops},
			workload.Report{Ops: make(workload.Counts, 1), Values: make([]float64, 1)}, false},
	} {
		if got := NewMeter(c.layout, ops, measures).Fits(c.report); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
