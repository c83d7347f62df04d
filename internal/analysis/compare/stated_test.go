package compare

import (
	"testing"

	"plimsoll/result"
)

// TestStated: of a percentile that a tool states, how many operations lie beyond it, so that a gross change of a few is
// not told.
func TestStated(t *testing.T) {
	t.Parallel()
	of := []result.Workload{{Ops: []result.OpTotals{{Op: "read", Count: 2000}, {Op: "write", Count: 1000}}},
		{Ops: []result.OpTotals{{Op: "read", Count: 10_000}}}}
	of[1].Ops = append(of[1].Ops, result.OpTotals{Op: "write", Count: 5000})
	for name, want := range map[string]float64{"read_p99": 20, "a 1 write_p99.9": 1, "p99.9": 3,
		"p95_ms": 150, "read_max": 1,
		"NOPM": 0, "read_lat_over_time": 0} {
		if got := stated(name, of); got < 0.999*want || got > 1.001*want {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	for beyond, want := range map[float64]bool{0: true, 1: false, 9: false, 10: true} {
		m, largest := Measure{Name: "read_p99", beyond: beyond}, Measure{Name: "read_max", beyond: beyond}
		if m.enough() != want {
			t.Errorf("%g beyond: enough is %t", beyond, !want)
		}
		m.warnOfFew()
		if largest.warnOfFew(); m.TooFew() == want || (len(m.Warnings) == 1) == want || largest.Warnings != nil {
			t.Errorf("%g beyond: %q of a percentile, %q of the largest", beyond, m.Warnings, largest.Warnings)
		}
	}
}
