package judge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/scaling"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

func madeDatabase() *result.Data {
	s := reporttest.NewSynthetic(1, 100, 2)
	l := reporttest.Database(reporttest.Load{Name: "TPCC", To: 100, VMs: 2, Depth: 16,
		Rate: func(int) float64 { return 880 }})
	for i := range l.Measures {
		l.Measures[i].Noise = 0
	}
	s.Load(l)
	return s.Data
}

// A curve is of all operations, or of the metric named, each per second or as its measure has it; other names are
// objected to.
func TestThroughputMetric(t *testing.T) {
	t.Parallel()
	d := madeDatabase()
	tool := &result.Data{Workloads: []result.Workload{{Name: "Sort", Measures: []result.Measure{
		{Name: "spills", Kind: result.Count, Better: result.Lower}, {Name: "sorted", Unit: "MB/s", Kind: result.Level,
			Better: result.Higher}}}}}
	got := map[string]string{}
	for _, c := range []struct {
		data  *result.Data
		asked string
	}{{d, ""}, {d, "new_order_rate"}, {d, "NOPM"}, {d, "NOPN"}, {d, "p95_ms"}, {d, "read_iops"}, {tool, ""}, {tool,
		"x"}} {
		metric, err := throughputMetric(c.data, c.asked)
		what := fmt.Sprint(len(c.data.Workloads), " ", c.asked)
		if got[what] = metric; err != nil {
			got[what] = err.Error()
			continue
		}
		for _, p := range scaling.Runs([]compare.Run{{Data: c.data}}, metric) {
			got[what] += fmt.Sprintf(" %.0f at %.0f", p.Throughput, p.Concurrency)
		}
	}
	none := `no metric %q that adds up over its VMs; it has "new_order_rate", "payment_rate", "NOPM", "retries"`
	want := map[string]string{
		"3 ": " 880 at 32", "3 new_order_rate": "new_order_rate 450 at 32", "3 NOPM": "NOPM 27000 at 32",
		"3 NOPN":      `no metric "NOPN" that adds up over its VMs; did you mean "NOPM"?`,
		"3 p95_ms":    fmt.Sprintf(none, "p95_ms"),
		"3 read_iops": fmt.Sprintf(none, "read_iops"), "1 ": "sorted 0 at 0",
		"1 x": `no metric "x" that adds up over its VMs; it has "spills", "sorted"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Of a column that says what it is it is known which way is good; of others it is asked.
func TestDirectionOfColumns(t *testing.T) {
	t.Parallel()
	got := map[string]effect.Direction{}
	for _, name := range []string{"iops", "read_iops", "tps", "p99", "p99_ms", "latency_ms", "median", "spills",
		"noise",
		"column 1"} {
		got[name] = compare.DirectionOf(name, "")
	}
	want := map[string]effect.Direction{
		"iops": effect.HigherIsBetter, "read_iops": effect.HigherIsBetter, "tps": effect.HigherIsBetter,
		"p99":    effect.LowerIsBetter,
		"p99_ms": effect.LowerIsBetter, "latency_ms": effect.LowerIsBetter, "median": effect.LowerIsBetter,
		"spills": "",
		"noise":  "", "column 1": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A gate does not pass what moved while nobody said which way of it is good; results of the scenario are for a reader.
func TestWorseOrUnknown(t *testing.T) {
	t.Parallel()
	d := &compare.Document{Threshold: 0.05, Measures: []compare.Measure{
		{Workload: "DB", Name: "NOPM", Verdict: compare.Worse},
		{Workload: "DB", Name: "spills", Verdict: compare.Higher},
		{Name: "result: CPU", Verdict: compare.Higher, Result: true}, {Workload: "DB", Name: "retries",
			Verdict: compare.Same},
	}}
	want := "baseline check: worse by more than 5 %: DB NOPM\nbaseline check: moved by more than 5 %, and which way is good is not known: DB spills"
	if err := (gate{failOn: []string{failWorse}}).failed("baseline check", d); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
