package compare_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/testkit/comparetest"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// databases are runs of a database of so many transactions per second, with retries and a tool's own percentile in
// proportion; spills have no good direction.
func databases(name string, first, runs int, rate, retries, p95 float64) compare.Side {
	s := compare.Side{Name: name}
	for i := range runs {
		run := reporttest.NewSynthetic(uint64(first+i), 300, 1)
		own := 1 + 0.004*float64(i-runs/2) // what repeats differ by
		l := reporttest.Database(reporttest.Load{Name: "TPCC", To: 300, Noise: 0.02,
			Rate: func(int) float64 { return rate * own }, Depth: 16})
		l.Measures[1].Value = func(int) float64 { return retries * own }
		l.Measures[2].Value = func(int) float64 { return p95 * own }
		spills := result.Measure{Name: "spills", Unit: "spills", Kind: result.Count}
		l.Measures = append(l.Measures, reporttest.Measured{Measure: spills, Value: func(int) float64 {
			return retries
		},
			Noise: 0.02})
		run.Load(l)
		m := comparetest.Manifest(first + i)
		m.Nodes = run.Manifest.Nodes
		s.Runs = append(s.Runs, compare.Run{Manifest: m, Data: run.Data})
	}
	return s
}

func verdicts(d *compare.Document) map[string]compare.Verdict {
	out := map[string]compare.Verdict{}
	for _, m := range d.Measures {
		out[m.Name] = m.Verdict
	}
	return out
}

// TestDeclaredDirections: what an engine declares decides what is worse; of what it does not say it is asked.
func TestDeclaredDirections(t *testing.T) {
	t.Parallel()
	for runs, p95 := range map[int]compare.Verdict{1: compare.Inconclusive, 5: compare.Worse} {
		sides := []compare.Side{databases("a", 1, runs, 2000, 30, 12), databases("b", runs+1, runs, 1500, 60, 18)}
		d, err := compare.Of(sides, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]compare.Verdict{
			"new orders/s": compare.Worse, "payments/s": compare.Worse, "NOPM": compare.Worse, "retries": compare.Worse,
			"p95_ms": p95, "spills": compare.Higher, "new orders mean service time": compare.Worse,
			"payments mean service time": compare.Worse,
		}
		got := verdicts(d)
		for name := range got {
			if strings.Contains(name, " p") {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d runs: %s", runs, diff)
		}
		asked := `Direction unknown: which way of spills is good is not known, so it is higher and neither better nor worse. Say it: --better "spills=lower", or higher.`
		if !slices.Contains(d.Notes, asked) {
			t.Errorf("%d runs: not asked: %q", runs, d.Notes)
		}
		if d, err = compare.Of(sides,
			compare.Options{Better: map[string]effect.Direction{"spills": effect.LowerIsBetter}}); err != nil {
			t.Fatal(err)
		}
		if v := verdicts(d)["spills"]; v != compare.Worse || slices.Contains(d.Notes, asked) {
			t.Errorf("%d runs: told that fewer are better, spills are %s", runs, v)
		}
		_, err = compare.Of(sides, compare.Options{Better: map[string]effect.Direction{"spill": effect.LowerIsBetter}})
		if want := `compare: --better spill: no measure is called so; did you mean "spills"?`; err == nil ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestDeclaredEffect: a change of NOPM comes back, between runs and within two.
func TestDeclaredEffect(t *testing.T) {
	t.Parallel()
	for _, runs := range []int{1, 5} {
		d, err := compare.Of([]compare.Side{databases("a", 1, runs, 2000, 30, 12),
			databases("b", runs+1, runs, 1500, 30,
				12)}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"NOPM", "new orders/s"} {
			i := slices.IndexFunc(d.Measures, func(m compare.Measure) bool { return m.Name == name })
			if m := d.Measures[i]; !m.Interval.Contains(-0.25) || m.Interval.High-m.Interval.Low > 0.1 {
				t.Errorf("%d runs: %s changed by %v, want −25 %%", runs, name, m.Interval)
			}
		}
		for _, m := range d.Series {
			if strings.HasPrefix(m.Name, "p95_ms") {
				t.Errorf("figures of the tool's own were averaged: %s", m.Name)
			}
		}
	}
}

// TestOneNameTwoThings: an operation that means two things on two sides compares with nothing, and that is said.
func TestOneNameTwoThings(t *testing.T) {
	t.Parallel()
	a, b := databases("a", 1, 1, 2000, 30, 12), databases("b", 2, 1, 2000, 30, 12)
	for i := range b.Runs[0].Data.Workloads {
		w := &b.Runs[0].Data.Workloads[i]
		w.Operations = []result.Operation{{Name: "new_order", Noun: "orders of another kind"}, reporttest.Payment}
		w.Measures = slices.Clone(w.Measures)
		w.Measures[0].Unit = "orders/h"
	}
	d, err := compare.Of([]compare.Side{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"operation new_order of workload TPCC is not the same thing in all runs",
		"measure NOPM of workload TPCC is not the same thing in all runs"}
	if diff := cmp.Diff(want, d.Missing); diff != "" {
		t.Error(diff)
	}
	if got := verdicts(d); got["new orders/s"] != "" || got["NOPM"] != "" || got["payments/s"] == "" {
		t.Errorf("%v", got)
	}
}

// TestNoBlockWordsInComparisons: of a database nothing is said or refused that is known of block storage.
func TestNoBlockWordsInComparisons(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`(?i)\biops\b|ops/s"|\bcaches?\b|\bdisks?\b|\bstorage\b|prefill|\bzeros\b|\bblocks?\b|\breads?\b|\bwrites?\b|buffered|working set|content`)
	look := func(what string, v any) {
		t.Helper()
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if word := words.FindString(string(text)); word != "" {
			t.Errorf("%s speaks of %q: %s", what, word, text)
		}
	}
	for _, runs := range []int{1, 4} {
		d, err := compare.Of([]compare.Side{databases("a", 1, runs, 2000, 30, 12),
			databases("b", runs+1, runs, 1500, 60,
				18)}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		look(fmt.Sprintf("a comparison of %d runs", runs), d)
	}
	other := databases("b", 2, 1, 1500, 60, 18)
	for i := range other.Runs[0].Data.Workloads {
		w := &other.Runs[0].Data.Workloads[i]
		w.Streams = []result.Stream{{Name: "clients", Depth: 64}}
	}
	_, err := compare.Of([]compare.Side{databases("a", 1, 1, 2000, 30, 12), other}, compare.Options{})
	var refusal *compare.Refusal
	if !errors.As(err, &refusal) || err.Error() != `compare: jobs of TPCC: a has "depth 16", b has "depth 64"` {
		t.Errorf("%v", err)
	}
}

// TestDeclaredEffectsOfFactors: measures take part in an experiment as rates do.
func TestDeclaredEffectsOfFactors(t *testing.T) {
	t.Parallel()
	design := compare.Design{ID: "x", Title: "X",
		Factors: []compare.Factor{{Name: "pool", Levels: []string{"8", "64"}}},
		Order:   "randomised", Repeats: 4, Planned: 8}
	for i, rate := range []float64{2000, 1500} {
		for k, r := range databases("side", 1+4*i, 4, rate, 30*float64(i+1), 12).Runs {
			design.Made = append(design.Made, compare.Made{Run: r, Levels: []string{design.Factors[0].Levels[i]},
				Repeat: k + 1, Sequence: 2*k + i})
		}
	}
	x, err := compare.OfExperiment(design, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]compare.Verdict{}
	for _, e := range x.Effects {
		got[e.Name] = e.Verdict
	}
	want := map[string]compare.Verdict{"new orders/s": compare.Worse, "payments/s": compare.Worse,
		"NOPM":    compare.Worse,
		"retries": compare.Worse,
		"p95_ms":  compare.Inconclusive, "spills": compare.Higher, "new orders mean service time": compare.Worse,
		"payments mean service time": compare.Worse}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(x.Notes, func(n string) bool {
		return strings.HasPrefix(n,
			"Direction unknown: which way of spills is good is not known")
	}) {
		t.Errorf("%q", x.Notes)
	}
}

// TestOneSidedWorkload: what one side only has is said in the first sentence, and its facts are no differences.
func TestOneSidedWorkload(t *testing.T) {
	t.Parallel()
	a, b := databases("a", 1, 1, 2000, 30, 12), databases("b", 2, 1, 2000, 30, 12)
	for i, s := range []compare.Side{a, b} {
		d := s.Runs[0].Data
		other := d.Workloads[0]
		other.Name = []string{"reads", "writes"}[i]
		d.Workloads = append(d.Workloads, other)
	}
	d, err := compare.Of([]compare.Side{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := " Only what all sides have is compared: without reads, writes."; !strings.Contains(d.Sentence, want) {
		t.Errorf("%q lacks %q", d.Sentence, want)
	}
	for _, f := range d.Unlike {
		if strings.Contains(f.Name, "reads") || strings.Contains(f.Name, "writes") {
			t.Errorf("a fact of what is not compared: %s", f.Name)
		}
	}
}
