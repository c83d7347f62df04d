package storage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/result"
)

// What flushes took is said, and concluded only with what the device says of its cache.
func TestFlushes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		p50, p99, prefix, cache string
		few                     bool // 63 of them
		severity                result.Severity
		want                    string
	}{
		"volatile cache": {"20", "90", "", "write back", false, result.Warning, "20 µs at the median, 90 µs at " +
			"the 99th percentile: shorter than flash or a disk takes to write, and the device says that its cache is"},
		"kept cache": {"20", "90", "", "write through", false, result.Passed,
			"the device says that it keeps what it has taken (write through)."},
		"cache not known": {"20", "90", "etcd 1 ", "", false, result.Info,
			"nothing here says whether what was flushed outlasts a loss of power."},
		"of two jobs": {"20", "90", "a ,b ", "write through", false, result.Passed, "20 µs at the median of the " +
			"fastest job, 90 µs at the 99th percentile of the slowest: shorter"},
		"slower than a log": {"2000", "12000", "", "write back", false, result.Info, "2 ms at the median, 12 ms at " +
			"the 99th percentile: a log that waits for each of them waits so long; etcd asks for at most 10 ms at the 99th."},
		"as a medium does": {"2000", "9000", "", "write back", false, result.Passed, "as long as writing to a medium"},
		"too few for a tail": {"2000", "40000", "", "write back", true, result.Info, "2 ms at the median (63 are too " +
			"few for a 99th percentile), as long as writing to a medium may take."},
		"no flush was timed": {"", "", "", "write back", false, "", ""},
	} {
		m := result.Manifest{Environment: []result.Fact{{Group: "storage 1", Name: "write cache", Value: c.cache}}}
		w := result.Workload{Name: "W", VM: "v", Group: "G", Engine: "fio", Start: start, End: start.Add(time.Minute),
			Operations: result.BlockOperations(), Ops: []result.OpTotals{{Op: "write", Count: 6000, Seconds: 50}}}
		for prefix := range strings.SplitSeq(c.prefix, ",") {
			for _, v := range [][2]string{{"sync_p50", c.p50}, {"sync_p99", c.p99}} {
				if v[1] != "" {
					d, _ := time.ParseDuration(v[1] + "us")
					m := result.Measure{Name: prefix + v[0], Unit: "us", Kind: result.Single}
					w.Measures = append(w.Measures, m)
					w.Values = append(w.Values, result.Value{Measure: m.Name, Value: float64(d.Microseconds())})
				}
			}
		}
		if c.few {
			w.Measures = append(w.Measures, result.Measure{Name: "sync_count", Unit: "count", Kind: result.Single})
			w.Values = append(w.Values, result.Value{Measure: "sync_count", Value: 63})
		}
		all := analysis.Run(m, &result.Data{Start: start, End: w.End, Workloads: []result.Workload{w}})
		var got result.Finding
		if i := slices.IndexFunc(all, func(f result.Finding) bool { return f.Check == "flushes" }); i >= 0 {
			got = all[i]
		}
		if got.Severity != c.severity || !strings.Contains(got.Sentence, c.want) {
			t.Errorf("%s: %s: %q", name, got.Severity, got.Sentence)
		}
	}
}
