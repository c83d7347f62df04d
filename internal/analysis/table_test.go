package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis"
	"plimsoll/result"
)

// noisy is n values of a law at each place, with 2 % of noise.
func noisy(n int, law func(i int) float64) []float64 {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	out := make([]float64, n)
	for i := range out {
		out[i] = law(i) * (1 + 0.02*r.NormFloat64())
	}
	return out
}

// TestTableTruth gives series of known truth and demands what is said of them.
func TestTableTruth(t *testing.T) {
	t.Parallel()
	flat := func(int) float64 { return 1000 }
	for name, c := range map[string]struct {
		kind   analysis.Kind
		values []float64
		step   float64
		want   map[string]string // severity and beginning of the sentence by check
	}{
		"steady": {analysis.Rate, noisy(300, flat), 1, map[string]string{
			"steady-state": "passed: x was steady, with a mean of 998.6 (95 %: 996.9 to 1,000).", "period": "passed: x has no period", "changes": "passed: x has no change of level above", "stalls": "passed: No stall of x: never below a quarter of its usual level for 1 s."}},
		"a drop": {analysis.Rate, noisy(300, func(i int) float64 { return 1000 - 300*float64(i/200) }), 1,
			map[string]string{
				"steady-state": "warning: x was not steady: its level changed once, first at 3:20.", "changes": "info: x changed level: from 998.6 to 699 at 3:20.", "period": "", "stalls": "passed: "}},
		"a period": {analysis.Other, noisy(400,
			func(i int) float64 { return 1000 + 300*math.Sin(2*math.Pi*float64(i)/40) }), 0, map[string]string{
			"steady-state": "passed: x was steady", "period": "info: x repeats every 40 rows",
			"changes": "passed: "}},
		"stalls": {analysis.Rate, noisy(300, func(i int) float64 {
			if i%60 == 30 {
				return 1
			}
			return 1000
		}), 1, map[string]string{"steady-state": "", "period": "", "changes": "passed: ",
			"stalls": "warning: x stalled 5 times, "}},
		"a stall that reaches the end": {analysis.Rate, noisy(300, func(i int) float64 {
			return 1000 * float64(min(1,
				(i%60)/3))
		})[3:], 1, map[string]string{
			"steady-state": "", "period": "", "changes": "", "stalls": "warning: x stalled 4 times, "}},
		"five checkpoints, the fifth at the end": {analysis.Rate, noisy(300, func(i int) float64 {
			if i%60 >= 55 {
				return 1
			}
			return 1000
		}), 1, map[string]string{"steady-state": "passed: ", "period": "info: x repeats every 1 min",
			"changes": "passed: ", "stalls": "warning: x stalled 5 times, "}},
		"a hole": {analysis.Rate, noisy(600, func(i int) float64 {
			if i >= 60 && i < 70 {
				return 0
			}
			return 1000
		}), 1, map[string]string{"steady-state": "warning: x was not steady: its level changed ", "period": "passed: ",
			"changes": "info: ", "stalls": "warning: x stalled once, "}},
		"a dead end": {analysis.Rate, noisy(600, func(i int) float64 {
			if i >= 590 {
				return 0
			}
			return 1000
		}), 1, map[string]string{"steady-state": "warning: x was not steady: its level changed ", "period": "passed: ",
			"changes": "info: ", "stalls": "warning: x stalled once, "}},
		"a drift": {analysis.Rate, noisy(300, func(i int) float64 { return 1000 + 4*float64(i) }), 1, map[string]string{
			"steady-state": "warning: x was not steady: ", "period": "", "changes": "info: ", "stalls": "passed: "}},
		"one stray": {analysis.Other, noisy(300, func(i int) float64 {
			if i == 140 {
				return 5500
			}
			return 1000
		}), 1, map[string]string{
			"steady-state": "info: x was steady, with a mean of 1,014 (95 %: 978.4 to 1,050). Far from all others: " +
				"5,673 at 2:20.", "period": "passed: ", "changes": "passed: "}},
		"a drop, and a value that nobody measured": {analysis.Other, append(noisy(299, func(i int) float64 {
			return 1000 - 500*float64(i/200)
		}), 1e308), 1, map[string]string{
			"steady-state": "info: Whether x was steady is inconclusive: point 300 is 1e+308"}},
		"a percentile": {analysis.Percentile, noisy(300, flat), 1, map[string]string{
			"steady-state": "passed: x was steady, at most 1,0", "period": "passed: ", "changes": "passed: "}},
		"constant": {analysis.Rate, slices.Repeat([]float64{5}, 100), 1,
			map[string]string{"constant": "info: x is 5 in every row, so it is left out. What is measured varies: " +
				"this is a setting, a limit or a copy."}},
		"no failures": {analysis.Other, slices.Repeat([]float64{0}, 40), 1,
			map[string]string{"constant": "info: x is 0 in every row, so it is left out."}},
		"negative": {analysis.Rate, append(noisy(99, flat), -3), 1, map[string]string{
			"steady-state": "", "period": "", "changes": "", "stalls": "", "plausible": "warning: x is -3 at 1:39: neither a rate nor a time can be below zero."}},
	} {
		found, unseen := analysis.OfTable(
			analysis.Table{Step: c.step, Columns: []analysis.Column{{Name: "x", Kind: c.kind, Values: c.values}}})
		got := map[string]string{}
		for _, f := range found {
			got[f.Check] = string(f.Severity) + ": " + f.Sentence
			checkFinding(t, name, f)
		}
		for check, want := range c.want {
			if said, ok := got[check]; !ok || !strings.HasPrefix(said, want) {
				t.Errorf("%s: %s: %q, want %q", name, check, said, want)
			}
		}
		if len(got) != len(c.want) || len(unseen) == 0 {
			t.Errorf("%s: %d findings %v; not looked at %q", name, len(got), got, unseen)
		}
	}
}

// TestConstantColumns: settings and counters of nothing beside a measurement are one line, and no warning.
func TestConstantColumns(t *testing.T) {
	t.Parallel()
	same := func(name string, v float64) analysis.Column {
		return analysis.Column{Name: name, Values: slices.Repeat([]float64{v}, 100)}
	}
	found, unseen := analysis.OfTable(analysis.Table{Step: 1, Columns: []analysis.Column{
		same("threads", 8), {Name: "tps", Kind: analysis.Rate, Values: noisy(100, func(int) float64 { return 1000 })},
		same("errors", 0), same("reconnects", 0), same("port", 5432),
	}})
	var got []string
	for _, f := range found {
		checkFinding(t, "constant columns", f)
		if f.Severity != result.Passed {
			got = append(got, string(f.Severity)+" "+f.Subject+": "+f.Sentence)
		}
	}
	want := []string{"info 4 columns: 4 columns never vary and are left out: threads (8), errors (0), " +
		"reconnects (0) and 1 more."}
	if diff := cmp.Diff(want, got); diff != "" || len(unseen) != 1 {
		t.Errorf("%s\n%q", diff, unseen)
	}
}

func checkFinding(t *testing.T, name string, f result.Finding) {
	t.Helper()
	interval := f.Low != nil && f.High != nil
	if f.Sentence == "" || f.Basis == "" || f.Metric == "" || f.Unit == "" || interval == (f.NoInterval != "") {
		t.Errorf("%s: %s: %+v", name, f.Check, f)
	}
}

// TestTableWithLittle says of every table in words what it does not support, and panics at none.
func TestTableWithLittle(t *testing.T) {
	t.Parallel()
	gap := math.NaN()
	last := "what was offered, what failed, what the blocks held, whether the generator was the limit, and what else ran: a table does not hold it; a run folder does"
	for name, c := range map[string]struct {
		values []float64
		want   []string
	}{
		"nothing": {nil, []string{"x: it has 0 values, and 10 are needed for any judgement", last}},
		"one":     {[]float64{1}, []string{"x: it has 1 value, and 10 are needed for any judgement", last}},
		"gaps only": {slices.Repeat([]float64{gap}, 100),
			[]string{"x: it has 0 values, and 10 are needed for any judgement", last}},
		"many gaps": {append(slices.Repeat([]float64{gap}, 50), noisy(50, func(int) float64 { return 3 })...),
			[]string{"x: 50 % of its values are missing", last}},
		"infinite": {[]float64{math.Inf(1), math.Inf(-1)},
			[]string{"x: it has 0 values, and 10 are needed for any judgement", last}},
		"huge": {[]float64{1e300, -1e300, 1e300, -1e300, 1e300, -1e300, 1e300, -1e300, 1e300, -1e300, 1e300,
			2e300}, nil},
		"tiny": {[]float64{1e-300, 2e-300, 1e-300, 2e-300, 1e-300, 2e-300, 1e-300, 2e-300, 1e-300, 2e-300,
			1e-300}, nil},
	} {
		found, unseen := analysis.OfTable(
			analysis.Table{Columns: []analysis.Column{{Name: "x", Kind: analysis.Other, Values: c.values}}})
		for _, f := range found {
			checkFinding(t, name, f)
		}
		if diff := cmp.Diff(c.want, unseen); c.want != nil && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	found, unseen := analysis.OfTable(analysis.Table{})
	if len(found) != 0 || len(unseen) != 1 {
		t.Errorf("no columns: %v, %q", found, unseen)
	}
}

// TestWordsOfTables: fifths of few rows are no rounds, and a line whose contention is not told has no limit.
func TestWordsOfTables(t *testing.T) {
	t.Parallel()
	settling := noisy(18, func(i int) float64 { return 1000 * (1 + 1.5*math.Exp(-float64(i)/3)) })
	found, _ := analysis.OfTable(analysis.Table{Step: 60, Columns: []analysis.Column{{Name: "iops", Kind: analysis.Rate,
		Values: settling}}})
	for _, f := range found {
		if f.Check == "steady-state" && !strings.Contains(f.Sentence, "not steady: fifths of it spread over") {
			t.Error(f.Sentence)
		}
	}
	sweep := &analysis.Sweep{}
	for i, v := range noisy(10, func(int) float64 { return 1 }) {
		n := float64(1 + 7*i)
		sweep.Concurrency, sweep.Throughput = append(sweep.Concurrency, n), append(sweep.Throughput, 4000*n*v)
	}
	found, _ = analysis.OfTable(analysis.Table{Sweep: sweep})
	if !slices.ContainsFunc(found, func(f result.Finding) bool {
		return f.Check == "scalability" && strings.Contains(f.Sentence, "No peak") &&
			!strings.Contains(f.Sentence, "stays below")
	}) {
		t.Errorf("%+v", found)
	}
}

// TestSweep reads a sweep whose law is known, once with its times and once without, with a repeat.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := &analysis.Sweep{}
	for _, n := range []float64{1, 2, 4, 8, 8, 16, 32, 64} {
		x := 1000 * n / (1 + 0.05*(n-1) + 0.0005*n*(n-1))
		s.Concurrency, s.Throughput, s.ResponseSeconds = append(s.Concurrency, n), append(s.Throughput,
			x), append(s.ResponseSeconds, n/x)
	}
	found, unseen := analysis.OfTable(analysis.Table{Sweep: s})
	if len(found) != 2 || len(unseen) != 2 || found[0].Value == nil || math.Abs(*found[0].Value-5) > 0.01 ||
		found[1].Value == nil ||
		*found[1].Value != 16 {
		t.Errorf("%+v\n%q", found, unseen)
	}
	s.ResponseSeconds = nil
	if _, unseen = analysis.OfTable(analysis.Table{Sweep: s}); !strings.Contains(strings.Join(unseen, "\n"),
		"Little's law: no column of mean response times with its unit") {
		t.Errorf("%q", unseen)
	}
	few := &analysis.Sweep{Concurrency: []float64{1, 2, -4}, Throughput: []float64{1, 0, 3}}
	if found, unseen = analysis.OfTable(analysis.Table{Sweep: few}); len(found) != 0 || len(unseen) != 5 {
		t.Errorf("%v %q", found, unseen)
	}
}

func FuzzOfTable(f *testing.F) {
	f.Add(uint64(1), uint16(60), 1.0)
	f.Add(uint64(2), uint16(12), 0.0)
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, step float64) {
		r := rand.New(rand.NewPCG(seed, 0))
		values := make([]float64, n%300)
		for i := range values {
			values[i] = math.Exp(40*r.NormFloat64()) * float64(r.IntN(3)-1)
			if r.IntN(20) == 0 {
				values[i] = math.NaN()
			}
		}
		if !(step >= 0 && step < 1e6) {
			step = 0
		}
		found, unseen := analysis.OfTable(
			analysis.Table{Step: step, Columns: []analysis.Column{{Name: "x", Kind: analysis.Rate, Values: values}}})
		if len(unseen) == 0 {
			t.Error("nothing is said of what a table does not hold")
		}
		for _, one := range found {
			checkFinding(t, "fuzz", one)
		}
	})
}

func ExampleOfTable() {
	found, _ := analysis.OfTable(analysis.Table{Columns: []analysis.Column{
		{
			Name: "iops",
			Kind: analysis.Rate,
			Values: slices.Concat(noisy(100, func(int) float64 { return 1000 }),
				noisy(100, func(int) float64 { return 800 })),
		},
	}})
	for _, f := range found {
		if f.Check == "changes" {
			fmt.Println(f.Severity, len(f.Evidence)/2)
		}
	}
	// Output: info 1
}

// Rows that are missing for long are told with their times, and nothing is said of what went on in them.
func TestTableWithAHole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 45))
	values := make([]float64, 420)
	for i := range values {
		if values[i] = 800 + 15*r.NormFloat64(); i >= 130 && i < 155 {
			values[i] = math.NaN()
		}
	}
	found, _ := analysis.OfTable(analysis.Table{Step: 1, Columns: []analysis.Column{{Name: "x", Kind: analysis.Rate,
		Values: values}}})
	got := map[string]string{}
	for _, f := range found {
		got[f.Check] = f.Sentence
	}
	const hole = "it has no values from 2:10 to 2:35: a stall, or rows that are lost."
	for check, want := range map[string]string{"steady-state": "Whether x was steady is inconclusive: " + hole,
		"stalls": "Whether x stalled is inconclusive: " + hole} {
		if got[check] != want {
			t.Errorf("%s: %q, want %q", check, got[check], want)
		}
	}
}
