package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// tpcc is a database of 2,000 transactions per second that a neighbour on another node takes a share of from 300 to
// 600 s.
func tpcc(seed uint64, with float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 3)
	l := reporttest.Database(reporttest.Load{
		Name: "TPCC", To: 900, Noise: 0.01, Rate: stepped([]int{300, 600, 900}, 2000, with, 2000), Depth: 32,
		Cuts: []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with Batch"}, {At: 900, Name: "alone (2)"}},
	})
	disturbed := with != 2000
	l.Measures[1].Value = func(t int) float64 { // retries rise with the neighbour
		if disturbed && t >= 300 && t < 600 {
			return 90
		}
		return 30
	}
	l.Measures[2].Value = stepped([]int{300, 600, 900}, 12, 12*2000/with, 12)
	s.Load(l)
	s.Load(reporttest.Database(reporttest.Load{Name: "Batch", Node: 1, From: 300, To: 600, Rate: flatRate(400),
		Noise: 0.02, Depth: 4}))
	return s
}

// growing makes of a load one worker more every two minutes: first one client, then four VMs of four each.
func growing(seed uint64, worker func(reporttest.Load, func(t int) float64) reporttest.Load) *reporttest.Synthetic {
	const stages, long = 9, 120
	s := reporttest.NewSynthetic(seed, stages*long, 4)
	for i := range stages {
		l := reporttest.Load{Name: fmt.Sprintf("Worker %d", i), From: i * long, To: stages * long, Noise: 0.01, VMs: 4,
			Depth: 4, Spread: true}
		if i == 0 {
			l.Name, l.VMs, l.Depth = "First", 1, 1
		}
		mine := float64(l.VMs * l.Depth)
		s.Load(worker(l, func(t int) float64 {
			n := 1 + 16*float64(t/long)
			return 150 * n / (1 + 0.02*(n-1)) * mine / n
		}))
	}
	return s
}

// terasort is a tool that counts no operations: it gives MB/s and its spills.
func terasort(l reporttest.Load, rate func(t int) float64) reporttest.Load {
	return reporttest.Tool(l,
		reporttest.Measured{Measure: result.Measure{Name: "sorted", Unit: "MB/s", Better: result.Higher,
			Kind: result.Level}, Value: rate, Noise: 0.01},
		reporttest.Measured{
			Measure: result.Measure{Name: "spills", Unit: "spills", Better: result.Lower, Kind: result.Count},
			Value:   flatRate(0)})
}

// sorting is such a tool for 900 s, by a law.
func sorting(seed uint64, law func(t int) float64, cuts ...reporttest.Cut) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 2)
	s.Load(terasort(reporttest.Load{Name: "Sort", To: 900, VMs: 2, Spread: true, Cuts: cuts}, law))
	return s
}

// dark does nothing from 300 to 420 s, and is back 30 s later.
func dark(level float64) func(int) float64 {
	return func(t int) float64 {
		switch {
		case t < 300:
			return level
		case t < 420:
			return 0
		}
		return level * min(1, float64(t-419)/30)
	}
}

func struck(s *reporttest.Synthetic) *reporttest.Synthetic {
	s.Mark(300, result.KindFault, "node-0 power off")
	return s
}

func database(seed uint64, rate func(int) float64, cuts ...reporttest.Cut) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 2)
	s.Load(reporttest.Database(reporttest.Load{Name: "TPCC", To: 900, VMs: 2, Spread: true, Noise: 0.01, Depth: 16,
		Rate: rate, Cuts: cuts}))
	return s
}

// twoNouns are two engines whose operations have one name and mean two things; one is called oddly and one has no
// times.
func twoNouns(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 2)
	cuts := []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with Documents"}}
	s.Load(reporttest.Load{Name: "Pages", To: 600, Rate: flatRate(900), Offered: 1000, Noise: 0.01, Cuts: cuts,
		Operations: []result.Operation{{Name: "read", Noun: "page views"}}, Shares: []float64{1}})
	s.Load(reporttest.Load{Name: "Documents", From: 300, To: 600, Rate: flatRate(700), Noise: 0.01, Untimed: true,
		Operations: []result.Operation{{Name: "read", Noun: "documents"}}, Shares: []float64{1}})
	s.Load(reporttest.Load{Name: "Reports", To: 600, Rate: flatRate(40), Noise: 0.01, Cuts: cuts,
		Operations: []result.Operation{{Name: "query 17", Noun: "runs of query 17"}, {Name: "query_3"}},
		Shares:     []float64{0.5, 0.5}})
	return s
}

// holes is a tool whose level is missing now and then, whose count is zero and whose figure comes once.
func holes(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 1)
	gap := func(t int) float64 {
		if t%7 == 0 {
			return math.NaN()
		}
		return 500
	}
	s.Load(reporttest.Tool(reporttest.Load{Name: "Odd", To: 600, Cuts: []reporttest.Cut{{At: 300, Name: "alone"},
		{At: 600, Name: "with Other"}}},
		reporttest.Measured{Measure: result.Measure{Name: "score", Kind: result.Level}, Value: gap, Noise: 0.01},
		reporttest.Measured{Measure: result.Measure{Name: "deadlocks", Unit: "deadlocks", Better: result.Lower,
			Kind: result.Count},
			Value: func(t int) float64 { return max(0, float64(t-550)) / 10 }},
		reporttest.Measured{Measure: result.Measure{Name: "never", Unit: "%", Kind: result.Single},
			Value: flatRate(math.NaN())}))
	return s
}

func declaredRuns() []truth {
	neighbour := []reporttest.Cut{{At: 450, Name: "alone"}, {At: 900, Name: "with Batch"}}
	stepDown := stepped([]int{450, 900}, 400, 300)
	database1 := func(l reporttest.Load, rate func(t int) float64) reporttest.Load {
		l.Rate = rate
		return reporttest.Database(l)
	}
	return []truth{
		{"a neighbour of a database", tpcc(31, 1500), "windows latency-cost baseline"},
		{"a neighbour that takes nothing", tpcc(32, 2000), "windows"},
		{"a database scales out", growing(33, database1), "scalability load-curve steady-state"},
		{"a database loses power", struck(database(34, dark(2000))), "recovery steady-state"},
		{"a database drifts", database(35, func(t int) float64 { return 2000 - float64(t) }), "steady-state"},
		{"a neighbour of a tool", sorting(36, stepDown, neighbour...), "windows baseline"},
		{"a tool scales out", growing(37, terasort), "scalability load-curve"},
		{"a tool loses power", struck(sorting(38, dark(400))), "recovery"},
		{"a tool drifts", sorting(39, func(t int) float64 { return 400 - float64(t)/5 }), "steady-state too-short"},
		{
			"one name, two nouns",
			twoNouns(40),
			"windows latency-cost steady-state stalls littles-law offered-rate latency-kind",
		},
		{"gaps and nothing", holes(41), "windows steady-state too-short errors"},
	}
}

// TestTruthOfDeclared holds the words about generators that are none of block I/O.
func TestTruthOfDeclared(t *testing.T) {
	holdTruths(t, "testdata/truth-declared.txt", declaredRuns())
}

// blockWords are those of block I/O, which nothing says of a database.
var blockWords = regexp.MustCompile(
	`(?i)\biops\b|ops/s|I/O|\bcaches?\b|\bdisks?\b|\bdevices?\b|\bstorage\b|prefill|never written|\bzeros\b|` +
		`\bblocks?\b|\blanes?\b|\breads?\b|\bwrites?\b|\btrims?\b|working set|page cache|\bfio\b|job file|bandwidth|\bmedia\b`,
)

// TestNoBlockWords: of generators that move no blocks nothing is said that is known of block storage, nor are facts
// of it judged.
func TestNoBlockWords(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for _, c := range declaredRuns() {
		c.run.Manifest.Environment = []result.Fact{
			{Group: "storage", Name: "media", Kind: result.StorageMedia},
			{Group: "storage", Kind: result.StorageFree, Number: 1 << 30},
			{Group: "storage", Kind: result.StorageSize, Number: 1 << 40},
			{
				Group:  "storage",
				Name:   "device link",
				Kind:   result.LinkCeiling,
				Number: 4000e6,
			}, rated("random read", "5 IOPS")[0],
			{Group: "storage", Name: "deduplication ratio", Kind: result.DataReduction, Number: 9},
			{Group: "storage", Name: "device counters", Kind: result.DeviceCounters, Missing: "there is no device"},
		}
		for _, f := range append(Run(c.run.Manifest, c.run.Data), Across(repeats(c.run, c.run))...) {
			text, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if word := blockWords.FindString(strings.ReplaceAll(string(text), "block bootstrap",
				"bootstrap")); word != "" {
				t.Errorf("%s: %s speaks of %q: %s", c.name, f.Check, word, text)
			}
			for _, bad := range []string{"NaN", "Inf", "%!", "  ", " ,", " ."} {
				if strings.Contains(f.Sentence, bad) {
					t.Errorf("%s: not plain words: %s: %s", c.name, f.Check, f.Sentence)
				}
			}
		}
	}
}

// TestDeclaredKnownAnswers: the contention of a scale-out and the time to recover come back through every measure
// that says them.
func TestDeclaredKnownAnswers(t *testing.T) {
	t.Parallel()
	runs := declaredRuns()
	held := func(name, check, metric string, want float64) {
		t.Helper()
		i := slices.IndexFunc(runs, func(c truth) bool { return c.name == name })
		for _, f := range findingsOf(runs[i].run, check) {
			if f.Metric == metric {
				if f.Low == nil || *f.Low > want || *f.High < want {
					t.Errorf("%s: %s is %s, want %g", name, metric, interval(f), want)
				}
				return
			}
		}
		t.Errorf("%s: no %s of %s", name, check, metric)
	}
	held("a database scales out", "scalability", "contention", 2)
	held("a database scales out", "scalability", "contention by NOPM", 2)
	held("a tool scales out", "scalability", "contention by sorted", 2)
	held("a database loses power", "recovery", "time to 90 % of the former level", 147)
	held("a database loses power", "recovery", "time to 90 % of the former NOPM", 147)
	held("a tool loses power", "recovery", "time to 90 % of the former sorted", 147)
	held("a neighbour of a database", "windows", "rate with Batch / alone", 0.75)
	held("a neighbour of a database", "windows", "NOPM with Batch / alone", 0.75)
	held("a neighbour of a database", "windows", "retries with Batch / alone", 3)
	held("a neighbour of a tool", "windows", "sorted with Batch / alone", 0.75)
}

// TestDeclaredFalseAlarms counts what is said of databases in which nothing happened.
func TestDeclaredFalseAlarms(t *testing.T) {
	t.Parallel()
	rounds := needs.Draws(10, 20)
	alarms := map[string]int{}
	for seed := range uint64(rounds) {
		s := database(500+seed, flatRate(2000), reporttest.Cut{At: 450, Name: "alone"}, reporttest.Cut{At: 900,
			Name: "with Batch"})
		s.Mark(700, result.KindFault, "node-1 power off")
		seen := map[string]bool{}
		for _, f := range Run(s.Manifest, s.Data) {
			if f.Severity != result.Passed && !seen[f.Check+f.Metric] && !strings.Contains(f.Sentence, "inconclusive") {
				seen[f.Check+f.Metric] = true
				alarms[f.Check+": "+f.Metric]++
			}
		}
	}
	for what, n := range alarms {
		if n > rounds*10/100 {
			t.Errorf("%s spoke up in %d of %d runs in which nothing happened", what, n, rounds)
		}
	}
}

// TestAdverseMeasures damages what engines declare and report: nothing panics, and whatever is said is whole.
func TestAdverseMeasures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]func(uint64) *reporttest.Synthetic{
			func(s uint64) *reporttest.Synthetic { return tpcc(s, 1500) }, holes, twoNouns,
			func(s uint64) *reporttest.Synthetic { return struck(sorting(s, dark(400))) },
		}).Draw(t, "run")(1)
		odd := rapid.SampledFrom([]float64{0, -1, 1e-300, 1, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)})
		for range rapid.IntRange(1, 5).Draw(t, "damages") {
			w := &s.Data.Workloads[rapid.IntRange(0, len(s.Data.Workloads)-1).Draw(t, "workload")]
			switch rapid.IntRange(0, 7).Draw(t, "damage") {
			case 0:
				w.Operations = nil
			case 1:
				w.Measures = nil
			case 2:
				w.Values = []result.Value{{Measure: "NOPM", Value: odd.Draw(t, "value")}, {Measure: "nobody"}}
			case 3:
				w.Operations = append(slices.Clone(w.Operations), result.Operation{},
					result.Operation{Name: "x", Block: "odd"})
			case 4:
				w.Measures = append(
					slices.Clone(w.Measures),
					result.Measure{},
					result.Measure{Name: "NOPM", Kind: "odd",
						Better: "odd"},
				)
			case 5:
				for i := range w.Windows {
					w.Windows[i].Values = []result.Value{
						{Measure: "NOPM", Value: odd.Draw(t, "of a window")},
						{Measure: "p95_ms",
							Value: odd.Draw(t, "p95")},
					}
				}
			case 6:
				w.Ops = append(slices.Clone(w.Ops), result.OpTotals{Op: "undeclared", Count: 5},
					result.OpTotals{Op: "", Count: 1})
			case 7:
				w.Streams = nil
			}
		}
		for _, f := range append(Run(s.Manifest, s.Data), Across(repeats(s, s))...) {
			if f.Check == "" || f.Sentence == "" || f.Basis == "" || f.Metric == "" || f.Unit == "" ||
				(f.Low == nil) == (f.NoInterval == "") {
				t.Fatalf("incomplete: %+v", f)
			}
			if _, err := json.Marshal(f); err != nil || strings.Contains(f.Sentence, "NaN") ||
				strings.Contains(f.Sentence,
					"Inf") {
				t.Fatalf("%v: not plain words: %s", err, f.Sentence)
			}
		}
	})
}

// TestRepeatsOfDeclared: over several runs the time to recover is told by what came back, the rate and NOPM apart.
func TestRepeatsOfDeclared(t *testing.T) {
	t.Parallel()
	var runs []Repeat
	for seed := range uint64(3) {
		runs = append(runs, repeats(struck(database(60+seed, dark(2000))))...)
	}
	got := map[string]float64{}
	for _, f := range Across(runs) {
		what, _, _ := strings.Cut(strings.TrimPrefix(f.Sentence, "Over 3 runs: "), " after ")
		got[what] = math.Round(*f.Value)
	}
	want := map[string]float64{
		"TPCC back at 90 % of its former rate": 147,
		"TPCC back at 90 % of its former NOPM": 147,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
