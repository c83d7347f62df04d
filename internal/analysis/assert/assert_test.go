package assert_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/analysis/assert"
	"plimsoll/result"
)

func at(v float64) *float64 { return &v }

func data() *result.Data {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	reads, writes := &hist.Histogram{}, &hist.Histogram{}
	reads.Add(1_000_000, 90)
	writes.Add(3_000_000, 110)
	nothing := []*float64{nil, nil}
	return &result.Data{Start: start, End: start.Add(3 * time.Second),
		Panels: []result.Panel{
			{
				Name: "Rate",
				Unit: "ops/s",
				Series: []result.Series{
					{Name: "a", Start: start, Step: 1, Values: []*float64{at(100), nil, at(140), at(60)}},
					{Name: "b", Start: start, Step: 1, Values: []*float64{at(10), at(20), at(30)}},
				},
			},
			{Name: "Empty", Series: []result.Series{{Start: start, Step: 1, Values: nothing}}},
			{Name: "Broken", Problem: "the metric does not exist"},
		},
		Workloads: []result.Workload{
			{Name: "W_prefill", Prefill: true, Ops: []result.OpTotals{{Op: "write", Count: 1}}},
			{Name: "W", Start: start, End: start.Add(2 * time.Second), Errors: 3, Operations: result.BlockOperations(),
				Ops: []result.OpTotals{
					{
						Op:      "read",
						Count:   90,
						Bytes:   90 << 10,
						Seconds: 0.09,
						Hist:    reads,
					}, {Op: "write", Count: 110, Bytes: 110 << 10, Seconds: 0.33, Hist: writes}}},
			database("", 120_000, 9), database("a", 60_000, 10), database("b", 60_000, 14),
		}}
}

// database returns what one VM of a database load reported, or both together, of which no figure can be made.
func database(vm string, nopm, p95 float64) result.Workload {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := result.Workload{Name: "DB", VM: vm, Start: start, End: start.Add(2 * time.Second),
		Operations: []result.Operation{{Name: "new_order", Noun: "new orders"}, {Name: "payment", Noun: "payments"}},
		Measures: []result.Measure{{Name: "NOPM", Unit: "NOPM", Better: result.Higher, Kind: result.Level},
			{Name: "retries", Unit: "retries", Better: result.Lower, Kind: result.Count}, {Name: "p95_ms", Unit: "ms",
				Kind: result.Single}},
		Ops:    []result.OpTotals{{Op: "new_order", Count: 200}, {Op: "payment", Count: 100}},
		Values: []result.Value{{Measure: "NOPM", Value: nopm}, {Measure: "retries", Value: 6}}}
	if vm != "" {
		w.Values = append(w.Values, result.Value{Measure: "p95_ms", Value: p95})
	}
	return w
}

func TestJudge(t *testing.T) {
	t.Parallel()
	findings := []result.Finding{
		{Check: "offered-rate", Severity: result.Warning, Sentence: "It was not reached."},
		{Check: "littles-law", Severity: result.Passed},
	}
	query := func(q string) ([]float64, error) {
		switch q {
		case "none":
			return nil, nil
		case "bad":
			return nil, errors.New("parse error")
		case "nan":
			return []float64{1, math.NaN()}, nil
		}
		return []float64{1, 5, 3}, nil
	}
	for want, a := range map[string]result.Assert{
		`passed: Assert "A" holds: the mean of result "Rate" is 20 IOPS, and must be at least 20 IOPS.`:               {Result: "Rate", Statistic: "mean", AtLeast: at(20)},
		`warning: Assert "A" does not hold: the max of result "Rate" is 140 IOPS, and must be at most 130 IOPS.`:      {Result: "Rate", Statistic: "max", AtMost: at(130)},
		`warning: Assert "A" does not hold: the min of result "Rate" is 10 IOPS, and must be at least 20 IOPS (why).`: {Result: "Rate", Statistic: "min", AtLeast: at(20), Description: "why."},
		`passed: Assert "A" holds: the median of result "Rate" is 20 IOPS, and must be at least 1 IOPS and at most 1,000 IOPS.`: {
			Result: "Rate", Statistic: "median", AtLeast: at(1), AtMost: at(1000)},
		`warning: Assert "A" cannot be judged: the last of result "Empty" has no value.`:                                                                                                              {Result: "Empty", Statistic: "last", AtLeast: at(1)},
		`warning: Assert "A" cannot be judged: result "Broken" has no data: the metric does not exist.`:                                                                                               {Result: "Broken", Statistic: "last", AtLeast: at(1)},
		`warning: Assert "A" cannot be judged: result "None" was not collected.`:                                                                                                                      {Result: "None", Statistic: "last", AtLeast: at(1)},
		`passed: Assert "A" holds: operations of workload "W" is 100 IOPS, and must be at least 100 IOPS.`:                                                                                            {Workload: "W", Operation: "all", Measure: "operations", AtLeast: at(100)},
		`passed: Assert "A" holds: read bandwidth of workload "W" is 45 KiB/s, and must be at most 50 KiB/s.`:                                                                                         {Workload: "W", Operation: "read", Measure: "bandwidth", AtMost: at(50 << 10)},
		`warning: Assert "A" does not hold: p50 of workload "W" is 3 ms, and must be at most 2 ms; inconclusive, since its 95 % interval is 996 µs to 3.02 ms: another run could come out otherwise.`: {Workload: "W", Operation: "all", Measure: "p50", AtMost: at(0.002)},
		`passed: Assert "A" holds: read p50 of workload "W" is 1 ms, and must be at most 2 ms.`:                                                                                                       {Workload: "W", Operation: "read", Measure: "p50", AtMost: at(0.002)},
		`passed: Assert "A" holds: write mean of workload "W" is 3 ms, and must be at most 4 ms.`:                                                                                                     {Workload: "W", Operation: "write", Measure: "mean", AtMost: at(0.004)},
		`warning: Assert "A" does not hold: errors of workload "W" is 3, and must be at most 0.`:                                                                                                      {Workload: "W", Operation: "all", Measure: "errors", AtMost: at(0)},
		`warning: Assert "A" cannot be judged: workload "W" has 200 operations, too few for p99.9.`:                                                                                                   {Workload: "W", Operation: "all", Measure: "p99.9", AtMost: at(1)},
		`warning: Assert "A" cannot be judged: workload "W" has no trim operation with a latency.`:                                                                                                    {Workload: "W", Operation: "trim", Measure: "p50", AtMost: at(1)},
		`passed: Assert "A" holds: NOPM of workload "DB" is 120000 NOPM, and must be at least 100000 NOPM.`:                                                                                           {Workload: "DB", Operation: "all", Measure: "NOPM", AtLeast: at(100_000)},
		`warning: Assert "A" does not hold: retries of workload "DB" is 3 retries/s, and must be at most 1 retries/s.`:                                                                                {Workload: "DB", Operation: "all", Measure: "retries", AtMost: at(1)},
		`warning: Assert "A" does not hold: p95_ms of workload "DB" is 14 ms, and must be at most 12 ms.`:                                                                                             {Workload: "DB", Operation: "all", Measure: "p95_ms", AtMost: at(12)},
		`passed: Assert "A" holds: new_order operations of workload "DB" is 100 new orders/s, and must be at least 90 new orders/s.`: {
			Workload: "DB", Operation: "new_order", Measure: "operations", AtLeast: at(90)},
		`passed: Assert "A" holds: operations of workload "DB" is 150 operations/s, and must be at least 90 operations/s.`: {
			Workload: "DB", Operation: "all", Measure: "operations", AtLeast: at(90)},
		`warning: Assert "A" cannot be judged: the generator of workload "DB" has no operation "new_orders": did you mean "new_order".`: {
			Workload: "DB", Operation: "new_orders", Measure: "operations", AtLeast: at(90)},
		`warning: Assert "A" cannot be judged: the generator of workload "DB" has no measure "NOPN": did you mean "NOPM".`: {
			Workload: "DB", Operation: "all", Measure: "NOPN", AtLeast: at(90)},
		`warning: Assert "A" cannot be judged: measure "NOPM" is of the whole workload: leave out operation.`: {
			Workload: "DB", Operation: "payment", Measure: "NOPM", AtLeast: at(90)},
		`warning: Assert "A" cannot be judged: the generator of workload "DB" counts no bytes of it.`: {
			Workload: "DB", Operation: "all", Measure: "bandwidth", AtLeast: at(90)},
		`warning: Assert "A" cannot be judged: workload "DB" has no payment operation with a latency.`: {
			Workload: "DB", Operation: "payment", Measure: "p99", AtMost: at(1)},
		`warning: Assert "A" cannot be judged: workload "V" did not run.`:                                                       {Workload: "V", Operation: "all", Measure: "p50", AtMost: at(1)},
		`warning: Assert "A" does not hold: the query's answer is 5, and must be at most 4.`:                                    {Query: "q", AtMost: at(4)},
		`passed: Assert "A" holds: the query's answer is 5, and must be at most 5.`:                                             {Query: "q", AtMost: at(5)},
		`warning: Assert "A" does not hold: the query's answer is NaN, and must be at least 0.`:                                 {Query: "nan", AtLeast: at(0)},
		`warning: Assert "A" cannot be judged: the query's answer has no value.`:                                                {Query: "none", AtLeast: at(0)},
		`warning: Assert "A" cannot be judged: parse error.`:                                                                    {Query: "bad", AtLeast: at(0)},
		`warning: Assert "A" does not hold: check offered-rate has a finding of severity warning or worse: It was not reached.`: {Finding: "offered-rate", Severity: "warning"},
		`passed: Assert "A" holds: check offered-rate has no finding of severity invalid or worse.`:                             {Finding: "offered-rate", Severity: "invalid"},
		`warning: Assert "A" cannot be judged: the run has no finding of check "moon".`:                                         {Finding: "moon", Severity: "invalid"},
	} {
		a.Name = "A"
		f := assert.Judge([]result.Assert{a}, data(), findings, query)[0]
		if got := fmt.Sprintf("%s: %s", f.Severity, f.Sentence); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		unjudged := strings.Contains(want, "cannot be judged")
		if unjudged != (assert.Verdict(f) == assert.NotJudged) || unjudged && f.Value != nil ||
			assert.Failed(f) != (f.Severity != result.Passed) || f.Check != assert.Check || f.Subject != "A" ||
			(f.NoInterval == "") != (f.Low != nil) ||
			f.Basis == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestNothingCollected(t *testing.T) {
	t.Parallel()
	var got []string
	for _, f := range assert.Judge([]result.Assert{{Name: "a", Result: "Rate", AtLeast: at(1)}, {Name: "b", Query: "q",
		AtLeast: at(1)}}, nil, nil, nil) {
		got = append(got, f.Sentence)
	}
	want := []string{
		`Assert "a" cannot be judged: nothing was collected.`,
		`Assert "b" cannot be judged: the run's metrics cannot be read.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func ExampleJudge() {
	limit := 4000.0
	d := &result.Data{
		Panels: []result.Panel{
			{Name: "Rate", Unit: "ops/s", Series: []result.Series{{Step: 1, Values: []*float64{&limit}}}},
		},
	}
	for _, f := range assert.Judge([]result.Assert{{Name: "kept", Result: "Rate", Statistic: "mean", AtLeast: &limit}},
		d, nil, nil) {
		fmt.Println(f.Severity, f.Sentence)
	}
	// Output: passed Assert "kept" holds: the mean of result "Rate" is 4,000 IOPS, and must be at least 4,000 IOPS.
}

// TestVerdict: an interval that holds the limit decides nothing, whichever side the value is on.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]string{
		0.0005:  "not met, failed", // p50 of reads and writes is 3 ms, its interval 1 to 3 ms
		0.002:   "inconclusive, failed",
		0.00301: "inconclusive, holds",
		0.004:   "met, holds",
	} {
		a := result.Assert{Name: "A", Workload: "W", Operation: "all", Measure: "p50", AtMost: at(most)}
		f := assert.Judge([]result.Assert{a}, data(), nil, nil)[0]
		got := assert.Verdict(f) + ", holds"
		if assert.Failed(f) {
			got = assert.Verdict(f) + ", failed"
		}
		if got != want {
			t.Errorf("at most %v: %s, want %s: %s", most, got, want, f.Sentence)
		}
	}
}

// A rate and a mean have the interval that their course over time gives: a limit nearer than that decides nothing. The
// rates here are 1,000/s and 10 more or less by turns and by chance, so that the mean of 100 s is known to about 0.2 %.
func TestVerdictOverTime(t *testing.T) {
	t.Parallel()
	d := data()
	chance := rand.New(rand.NewPCG(1, 2))
	const seconds = 100
	load := &d.Workloads[1]
	d.End = d.Start.Add(seconds * time.Second)
	load.End, load.Ops = d.End, load.Ops[:1]
	of := func(measure, unit string) result.Series {
		return result.Series{Workload: "W", Op: "read", Measure: measure, Unit: unit, Start: d.Start.Add(time.Second),
			Step: 1}
	}
	rates, means := of(result.Rate, ""), of(result.LatencyMean, "us")
	load.Ops[0].Count, load.Ops[0].Seconds = 0, 0
	for range seconds {
		rate, mean := math.Round(1000+10*chance.NormFloat64()), 2000+20*chance.NormFloat64()
		rates.Values, means.Values = append(rates.Values, &rate), append(means.Values, &mean)
		load.Ops[0].Count += uint64(rate)
		load.Ops[0].Seconds += rate * mean / 1e6
	}
	d.Series = []result.Series{rates, means}
	for _, c := range []struct {
		measure string
		least   float64
		want    string
	}{
		{"operations", 990, "met"}, {"operations", 1000, "inconclusive"}, {"operations", 1010, "not met"},
		{"mean", 0.00198, "met"}, {"mean", 0.002, "inconclusive"}, {"mean", 0.00202, "not met"},
	} {
		for _, op := range []string{"read", "all"} {
			a := result.Assert{Name: "A", Workload: "W", Operation: op, Measure: c.measure, AtLeast: at(c.least)}
			f := assert.Judge([]result.Assert{a}, d, nil, nil)[0]
			if got := assert.Verdict(f); got != c.want {
				t.Errorf("%s %s at least %v: %s, want %s: %s", op, c.measure, c.least, got, c.want, f.Sentence)
			}
			if f.Low == nil || *f.High-*f.Low > 0.01**f.Value || *f.High-*f.Low < 0.002**f.Value {
				t.Errorf("%s %s: from %v to %v", op, c.measure, f.Low, f.High)
			}
		}
	}
}

// A tool's own percentile in milliseconds is held against limits in seconds, as "p95 < 700ms" is.
func TestDeclaredTimes(t *testing.T) {
	t.Parallel()
	for unit, want := range map[string]float64{"ms": 0.1498, "us": 0.0001498, "s": 149.8, "requests": 149.8} {
		d := &result.Data{Workloads: []result.Workload{{Name: "W", Measures: []result.Measure{
			{Name: "p95", Unit: unit, Kind: result.Single}}, Values: []result.Value{{Measure: "p95", Value: 149.8}}}}}
		a := result.Assert{Name: "A", Workload: "W", Operation: "all", Measure: "p95", AtMost: at(0.7)}
		v, of, err := assert.Value(a, d)
		if err != nil || math.Abs(v/want-1) > 1e-9 || (of == "s") != (unit != "requests") {
			t.Errorf("%s: %v %s, %v", unit, v, of, err)
		}
		if f := assert.Judge([]result.Assert{a}, d, nil, nil)[0]; assert.Failed(f) != (want > 0.7) {
			t.Errorf("%s: %s", unit, f.Sentence)
		}
	}
}
