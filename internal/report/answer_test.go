package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// TestRanked: a drop of 86 % stands before warnings and before smaller changes, whatever its place and severity.
func TestRanked(t *testing.T) {
	t.Parallel()
	in := []result.Finding{
		finding("cache", result.Info,
			"N."), finding("errors", result.Warning, "C."), finding("windows", result.Passed, "Same."),
		harm(finding("windows", result.Info, "Little."), 0.8),
		harm(finding("windows", result.Info, "86 %."), 1/0.14),
		finding("recovery", result.Info, "Back."), finding("clock", result.Invalid, "Bad."),
		finding(result.AssertCheck, result.Warning, "Does not hold."), finding(result.AssertCheck, result.Passed,
			"Holds."),
	}
	var got []string
	for _, f := range Ranked(in) {
		got = append(got, f.Sentence)
	}
	if diff := cmp.Diff([]string{"Does not hold.", "Bad.", "Back.", "86 %.", "Little.", "C.", "N.", "Same.",
		"Holds."}, got); diff != "" {
		t.Error(diff)
	}
	if short := InShort(in); short[0].Sentence != "Does not hold." || short[1].Sentence != "Bad." {
		t.Errorf("in short: %+v", short)
	}
}

// loadOf is a document with workloads of one read operation each.
func loadOf(rates ...float64) *Document {
	doc := &Document{}
	for i, r := range rates {
		mean, p99 := 0.001, 0.004
		name := fmt.Sprint("W", i)
		doc.Latencies = append(doc.Latencies, Latency{Workload: name, Kind: "service time", distributed: true,
			Windows: []WindowTotals{{OpsPerSecond: r, Unit: "ops/s",
				Rows: []OpRow{{Op: "read", OpsPerSecond: r, Unit: "ops/s", Mean: &mean,
					P99: &p99, Max: &p99}}}}})
		doc.Workloads = append(doc.Workloads, WorkloadSummary{Name: name})
	}
	return doc
}

// Of more loads than are told one by one, results without figures of their own answer with their highest value.
func TestResultsWithoutFiguresAnswer(t *testing.T) {
	t.Parallel()
	doc := loadOf(5, 7, 6, 8, 9)
	low, high := 3.0, 35.0
	doc.Panels = []result.Panel{{Title: "All reads", Unit: "ops/s",
		Series: []result.Series{{Values: []*float64{&low, &high, nil}}}}}
	want := "All reads: highest 35 IOPS; no interval: only repeats show how these vary."
	if short, _ := doc.answer(); len(short) != 1 || short[0].Sentence != want {
		t.Errorf("%+v, want %q", short, want)
	}
}

// TestAtLeastTwoSentences: a summary holds a figure and says whether operations failed, also where findings say little.
func TestAtLeastTwoSentences(t *testing.T) {
	t.Parallel()
	failed := loadOf(5, 7, 6)
	failed.Workloads[1].Errors = 12
	twice := loadOf(5, 3)
	twice.Workloads[0].Errors, twice.Workloads[1].Errors, twice.Workloads[1].Again = 9, 9, true
	bare := loadOf(5)
	bare.Workloads[0].Errors, bare.Latencies[0].distributed = 9, false
	short := loadOf(1500)
	short.Manifest.Measured.State = "partly"
	told := loadOf(5)
	told.Findings = []result.Finding{harm(finding("windows", result.Passed, "Neither moved."), 1)}
	orders := loadOf(5)
	orders.Latencies[0].Windows[0].Measures = []MeasureRow{{Name: "retries", Value: 3, Unit: "retries/s"},
		{Name: "NOPM", Value: 1200, wanted: true}, {Name: "TPM", Value: 2760, wanted: true}, {Name: "x", wanted: true}}
	enough := loadOf(5)
	enough.Findings = []result.Finding{
		finding("recovery", result.Info, "Back."),
		finding("errors", result.Warning, "Errors."),
	}
	for name, c := range map[string]struct {
		doc  *Document
		want []string
	}{
		"nothing": {&Document{}, nil},
		"one": {loadOf(1500), []string{"W0: read 1,500 IOPS, mean 1 ms, p99 4 ms (service time) (no interval of its rate: " +
			"too little was reported).",
			"No operation failed."}},
		"counted in another too": {twice, []string{"W0: read 5 IOPS, mean 1 ms, p99 4 ms (service time); W1: read 3 IOPS, mean 1 ms, " +
			"p99 4 ms (service time); no rate has an interval: too little was reported.",
			"9 operations failed and are in no rate and no percentile."}},
		"without percentiles of its own": {bare, []string{"W0: read 5 IOPS, mean 1 ms, p99 4 ms (service time) (no interval of its " +
			"rate: too little was reported).", "9 operations failed."}},
		"partial": {short, []string{"W0: read 1,500 IOPS, mean 1 ms, p99 4 ms (service time) (no interval of its rate: " +
			"too little was reported).",
			"Of what was counted, no operation failed."}},
		"many": {failed, []string{"W0: read 5 IOPS, mean 1 ms, p99 4 ms (service time); W1: read 7 IOPS, mean 1 ms, " +
			"p99 4 ms (service time); W2: read 6 IOPS, mean 1 ms, p99 4 ms (service time); no rate has an interval: too " +
			"little was reported.",
			"3 workloads ran, W1 at the highest rate, 7 IOPS; 12 operations failed and are in no rate " +
				"and no percentile."}},
		"one finding":        {told, []string{"Neither moved.", "W0: read 5 IOPS, mean 1 ms, p99 4 ms (service time); no operation failed."}},
		"what it is run for": {orders, []string{"W0: NOPM 1,200; TPM 2,760 (no interval of its rate: too little was reported).", "No operation failed."}},
		"enough":             {enough, []string{"Back.", "Errors."}},
	} {
		var got []string
		for _, s := range c.doc.inShort() {
			got = append(got, s.Sentence)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestEventsTogether: what happens at once is one event, and texts that differ by numbers are told once.
func TestEventsTogether(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	var marks []result.Mark
	add := func(s int, kind, text string) {
		marks = append(marks, result.Mark{Time: start.Add(time.Duration(s) * time.Second), Kind: kind, Text: text})
	}
	add(700, result.KindAnnotation, "Later")
	for s, state := range map[int]string{800: result.PowerOn, 900: result.FaultOver} { // no faults themselves
		add(s, result.KindFault, "node "+state)
		marks[len(marks)-1].State = state
	}
	for i := range 16 {
		add(600, result.KindFault, fmt.Sprintf("Power off sent to node %d", i))
	}
	add(605, result.KindAnnotation, "Waiting 10 s")
	got := eventsOf(marks, start, 1000)
	want := []eventView{
		{Number: 1, At: "10:00–10:05", Clock: "08:10:00–08:10:05", Fault: true,
			Texts: []string{"Power off sent to node 0, and 15 more like it", "Waiting 10 s"}},
		{Number: 2, At: "11:40", Clock: "08:11:40", Texts: []string{"Later"}},
		{Number: 3, At: "13:20", Clock: "08:13:20", Texts: []string{"node on"}},
		{Number: 4, At: "15:00", Clock: "08:15:00", Texts: []string{"node over"}},
	}
	for i := range got {
		got[i].from, got[i].to = time.Time{}, time.Time{}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(eventView{})); diff != "" {
		t.Error(diff)
	}
	if got := eventsOf(nil, start, 0); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestTellApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want []string }{
		{nil, nil},
		{[]string{"Only this"}, []string{"Only this"}},
		{[]string{"IOPS on each node (VM 0)", "IOPS on each node (VM 12)"}, []string{"VM 0", "VM 12"}},
		{[]string{"read rate of A", "write rate of A"}, []string{"read", "write"}},
		{[]string{"A", "A B"}, []string{"A", "A B"}},
		{[]string{"same", "same"}, []string{"same", "same"}},
		{[]string{"", "x"}, []string{"", "x"}},
		{[]string{"x y", "x (y)"}, []string{"x y", "x (y)"}},
	} {
		if diff := cmp.Diff(c.want, tellApart(c.in)); diff != "" {
			t.Errorf("%q: %s", c.in, diff)
		}
	}
}

func TestCompanyOf(t *testing.T) {
	t.Parallel()
	all := []string{"A 1", "A 2", "A 3", "B and C", "B", "A 10"}
	for in, want := range map[string]string{
		"alone":                        "alone",
		"with A 1":                     "with A 1",
		"with A 1 and A 2 and A 3":     "with A 1–3",
		"with A 1 and A 3 and B":       "with A 1, A 3, B",
		"with B and C and A 10 (2)":    "with B and C, A 10 (2)",
		"with a stranger and A 1":      "with a stranger and A 1",
		"alone, after \"A 1 and A 2\"": "alone, after \"A 1 and A 2\"",
	} {
		if got := companyOf(in, all); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestInWords: a workload that always ran alone has stretches that are called by when they were.
func TestInWords(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`whole time|alone|alone, after "Powered on"|alone, after "off" (2)`,
			`whole time|at the start|after "Powered on"|after "off" (2)`},
		{`alone|alone, after "off"|with B`, `alone|alone, after "off"|with B`},
		{"whole time|alone", "whole time|alone"}, {"while its VMs start|alone", "while its VMs start|alone"},
	} {
		var in []WindowTotals
		for name := range strings.SplitSeq(c[0], "|") {
			in = append(in, WindowTotals{Name: name})
		}
		var got []string
		for _, w := range inWords(in) {
			got = append(got, w.Name)
		}
		if diff := cmp.Diff(c[1], strings.Join(got, "|")); diff != "" {
			t.Error(diff)
		}
		if in[len(in)-1].Name == got[len(got)-1] && c[0] != c[1] {
			t.Error("the windows themselves were renamed")
		}
	}
}

// TestFarthest: of many windows the first and those that differ most, by rate or by time, in their order.
func TestFarthest(t *testing.T) {
	t.Parallel()
	mean := func(v float64) []OpRow { return []OpRow{{Mean: &v, Count: 1}} }
	windows := []WindowTotals{
		{Name: "0", OpsPerSecond: 100, Rows: mean(1)},
		{Name: "1", OpsPerSecond: 99, Rows: mean(1)},
		{
			Name:         "2",
			OpsPerSecond: 100,
			Rows:         mean(9),
		},
		{Name: "3", OpsPerSecond: 14, Rows: mean(1)},
		{Name: "4", OpsPerSecond: 101, Rows: mean(1)},
	}
	names := func(list []WindowTotals) (out string) {
		for _, w := range list {
			out += w.Name
		}
		return out
	}
	if got := names(farthest(windows, 3)); got != "023" {
		t.Errorf("%q", got)
	}
	if got := names(farthest(windows, 5)); got != "01234" {
		t.Errorf("%q", got)
	}
}

// TestTicksThatMean: yes and no have nothing between them, a count has no parts, and a heat map has round latencies.
func TestTicksThatMean(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]float64{0, 1}, valueTicks(0, 1.06, "bool")); diff != "" {
		t.Error(diff)
	}
	v := &heatView{}
	for e := 10e-6; e < 3e-3; e *= 1.19 {
		v.Edges = append(v.Edges, e)
	}
	var got []string
	for _, tick := range v.latencyTicks() {
		got = append(got, duration(tick.seconds))
		if low := v.Edges[int(tick.at)]; tick.seconds < low || tick.seconds > low*1.2 {
			t.Errorf("%s lies at row %g, from %s", duration(tick.seconds), tick.at, duration(low))
		}
	}
	if diff := cmp.Diff([]string{"10 µs", "20 µs", "50 µs", "100 µs", "200 µs", "500 µs", "1 ms", "2 ms"},
		got); diff != "" {
		t.Error(diff)
	}
}

// TestCap: one short peak of a rate does not flatten the rest; a second one, a longer one, and peaks of latency stay.
func TestCap(t *testing.T) {
	t.Parallel()
	made := func(unit string, peaks ...int) *chart {
		v := make([]float64, 200)
		for i := range v {
			v[i] = 2000
			if i > 80 && i < 120 {
				v[i] = math.NaN()
			}
		}
		for _, p := range peaks {
			v[p] = 141_000
		}
		return &chart{Unit: unit, Step: 1, Names: []string{"s"}, Values: [][]float64{v}}
	}
	for name, c := range map[string]struct {
		chart *chart
		want  float64
	}{
		"a peak at the end": {made("ops/s", 198, 199), 2600},
		"none":              {made("ops/s"), 0},
		"two":               {made("ops/s", 5, 199), 0},
		"of latency":        {made("us", 199), 0},
		"all of it a gap":   {&chart{Unit: "ops/s", Values: [][]float64{{math.NaN()}}}, 0},
		"nothing":           {&chart{Unit: "ops/s"}, 0},
	} {
		c.chart.cap()
		got := 0.0
		if c.chart.Cap != nil {
			got = *c.chart.Cap
		}
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	c := made("ops/s", 199)
	c.cap()
	if svg := string(c.svg(nil)); strings.Contains(svg, "150,000") || !strings.Contains(svg, "2,000 IOPS") {
		t.Errorf("the axis is not of the rest: %s", svg)
	}
}

// TestSweepSentences: what is said of a curve that ends, of one that does not, and without times or certainty.
func TestSweepSentences(t *testing.T) {
	t.Parallel()
	step := func(level string, v, rate, time float64) compare.Step {
		return compare.Step{
			Level: level,
			Value: v,
			Rate:  compare.CellValue{Value: rate},
			Time:  compare.CellValue{Value: time},
		}
	}
	in := func(low, high float64) resample.Interval {
		return resample.Interval{Low: low, High: high, Confidence: 0.95, Method: "m"}
	}
	steps := []compare.Step{
		step("1", 1, 100, 0.01),
		step("2", 2, 190, 0.0105),
		step("4", 4, 200, 0.02),
		step("8", 8, 201, 0.04),
	}
	flat := compare.Sweep{
		Workload: "W",
		Name:     "read IOPS",
		Unit:     "ops/s",
		Times:    "service time",
		Factor:   "depth",
		Steps:    steps,
		Most:     3,
		Knee:     1,
		KneeLow:  1,
		KneeHigh: 4,
		FlatFrom: 2,
		FlatSure: true,
		Rise:     &compare.Against{Change: 0.005, Interval: in(-0.01, 0.02)},
		Slower:   &compare.Against{Change: 1, Interval: in(0.9, 1.1)},
	}
	doubtful := flat
	doubtful.FlatSure, doubtful.Rise, doubtful.Slower = false, &compare.Against{Change: 0.005}, nil
	rising := compare.Sweep{
		Name:     "tps",
		Unit:     "transactions/s",
		Factor:   "clients",
		Within:   "cache 1g",
		Steps:    steps[:2],
		Most:     1,
		Knee:     -1,
		FlatFrom: -1,
	}
	sure, unsure, once := rising, rising, rising
	sure.Rise = &compare.Against{Change: 0.9, Interval: in(0.1, 2)}
	unsure.Rise = &compare.Against{Change: 0.9, Interval: in(-0.5, 6)}
	unsure.Steps = slices.Clone(steps[:2])
	unsure.Steps[1].Rate.Repeats = []float64{1, 2}
	once.Rise = &compare.Against{Change: 0.9}
	for want, s := range map[string]compare.Sweep{
		"With cache 1g: tps was highest at the last value, clients 2 (+90 % over clients 1, 95 % interval ×0.5 to ×7); " +
			"whether it still rises there is inconclusive: the repeats allow for more.": unsure,
		"With cache 1g: tps was highest at the last value, clients 2 (+90 % over clients 1), so its maximum may lie beyond. " +
			"One run of each does not say whether another would show a difference.": once,
		"From depth 4 on read IOPS of W no longer rises by more than 5 % (at most +0.5 %, 95 % interval −1 % to +2 %), while the " +
			"mean service time grows to ×2 at depth 8, 95 % interval ×1.9 to ×2.1. Knee (most throughput for its latency) at depth 2, " +
			"between 1 and 4. From there to depth 8: +5.79 % throughput for ×3.81 latency.": flat,
		"From depth 4 on read IOPS of W no longer rises by more than 5 % (at most +0.5 %). Inconclusive: the repeats allow for more. " +
			"Knee (most throughput for its latency) at depth 2, between 1 and 4. From there to depth 8: +5.79 % throughput for " +
			"×3.81 latency.": doubtful,
		"With cache 1g: tps still rises at the last value, clients 2 (+90 % over clients 1): its maximum was not reached.": sure,
	} {
		if got := sweepSentence(s, 0.05); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestFastest: operations of unlike sizes are held against each other by the bytes that they moved, and what moves none
// by nothing.
func TestFastest(t *testing.T) {
	t.Parallel()
	sized := func(bytes ...float64) []Latency {
		all := loadOf(9, 7, 6).Latencies
		for i := range bytes {
			all[i].Windows[0].Rows[0].BytesPerSecond = &bytes[i]
		}
		return all
	}
	for _, c := range []struct {
		of   []Latency
		want string
	}{
		{sized(), ", W0 at the highest rate, 9 IOPS"},
		{sized(9*4096, 7*4096, 6*4096), ", W0 at the highest rate, 9 IOPS"},
		{sized(9*4096, 7*131072, 6*4096), ", W1 at the highest bandwidth, 896 KiB/s"},
		{sized(9*4096, 7*131072), ", W1 at the highest bandwidth, 896 KiB/s"},
		{sized(9 * 4096), ""},
	} {
		if got := fastest(c.of); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
