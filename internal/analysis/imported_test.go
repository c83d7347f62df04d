package analysis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/result"
)

// sweepOfTests are imported tests of reads at growing concurrency, by a law whose contention is 5 % and that has no
// crosstalk: X = 1000·N / (1 + 0.05·(N − 1)), each over ten seconds with N/X as the mean time. A test whose fact is
// unlike, that failed or that kept to a rate is no point.
func sweepOfTests(facts func(n int) []result.Fact, ended func(n int) result.Ending) (result.Manifest, *result.Data) {
	m := result.Manifest{Target: result.ImportTarget}
	d := &result.Data{}
	began := time.Date(2025, 3, 4, 10, 0, 0, 0, time.UTC)
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		name, vm := fmt.Sprintf("diskspd of o%d", n), fmt.Sprintf("o%d", n)
		x := 1000 * float64(n) / (1 + 0.05*float64(n-1))
		m.Imported = append(m.Imported, result.Imported{VM: vm, Workload: name, Concurrency: float64(n)})
		for _, f := range append(facts(n), result.Fact{Name: "threads", Value: fmt.Sprint(n)}) {
			f.Group = name
			m.Environment = append(m.Environment, f)
		}
		count := uint64(10 * x)
		d.Workloads = append(d.Workloads, result.Workload{Name: name, Group: name, VM: vm, Phase: "run",
			Latency: "service time", Start: began, End: began.Add(10 * time.Second), Ended: ended(n),
			Operations: []result.Operation{{Name: "read", Noun: "reads", Block: result.BlockRead}},
			Ops:        []result.OpTotals{{Op: "read", Count: count, Seconds: float64(count) * float64(n) / x}}})
		began = began.Add(time.Minute)
	}
	return m, d
}

// Files of one sweep are a curve: contention and the knee are those of the law they were made by.
func TestCurveOfImportedTests(t *testing.T) {
	t.Parallel()
	same := func(int) []result.Fact { return []result.Fact{{Name: "block size", Value: "4096 bytes"}} }
	whole := func(int) result.Ending { return result.Finished }
	for _, c := range []struct {
		name  string
		facts func(int) []result.Fact
		ended func(int) result.Ending
		want  string
	}{
		{"alike", same, whole, "Throughput grew ×12.5, from 1,000 to 12,549 IOPS, between 1 and 32 operations in flight (×32); " +
			"contention 5 %, crosstalk inconclusive. No peak; by the fit, throughput stays below about 20,000 IOPS. | Mean service time 1 ms " +
			"with one operation in flight, 2.55 ms with 32: ×2.55 the time for ×12.5 the throughput. Knee at about 16 in flight " +
			"(9,143 IOPS, 1.75 ms): beyond it service time grows faster than throughput."},
		{"of two block sizes", func(n int) []result.Fact {
			return []result.Fact{{Name: "block size", Value: fmt.Sprint(4096 << (n / 16))}}
		}, whole, "Throughput grew ×5.93, from 1,000 to 5,926 IOPS, between 1 and 8 operations in flight (×8)"},
		{"a grid, of three depths each", func(n int) []result.Fact {
			jobs := 1 + n/8*7/max(n/8, 1)
			return []result.Fact{{Name: "iodepth", Value: fmt.Sprint(n / jobs)},
				{Name: "numjobs", Value: fmt.Sprint(jobs)}}
		}, whole, ""},
		{"held to a rate", func(int) []result.Fact { return []result.Fact{{Name: "rate", Value: "1000"}} }, whole, ""},
		{"paused", func(int) []result.Fact { return []result.Fact{{Name: "thinktime", Value: "2ms"}} }, whole, ""},
		{"failed but for three", same, func(n int) result.Ending {
			if n > 4 {
				return result.Failed
			}
			return result.Finished
		}, ""},
	} {
		m, d := sweepOfTests(c.facts, c.ended)
		var said []string
		for _, f := range testsCurve([]Repeat{{m, d}}) {
			said = append(said, f.Sentence)
		}
		if got := strings.Join(said, " | "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Where throughput falls again, the most is said.
func TestCurveThatFallsTellsTheMost(t *testing.T) {
	t.Parallel()
	m, d := sweepOfTests(func(int) []result.Fact { return []result.Fact{{Name: "block size", Value: "4096 bytes"}} },
		func(int) result.Ending { return result.Finished })
	d.Workloads[5].Ops[0].Count = 70_000
	const want = "Throughput grew ×7, from 1,000 to 7,000 IOPS (the most at 16: 9,143 IOPS), between 1 and 32 operations"
	all := testsCurve([]Repeat{{m, d}})
	if len(all) == 0 || !strings.HasPrefix(all[0].Sentence, want) {
		t.Errorf("got %+v\nwant %s", all, want)
	}
}
