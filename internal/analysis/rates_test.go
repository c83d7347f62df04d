package analysis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// A VM without an interval, since it left one report or none, was offered nothing that it could have missed.
func TestOfferedRateWithoutInterval(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	vm := func(length time.Duration, count uint64) *result.Workload {
		return &result.Workload{
			Start: began, End: began.Add(length), Lanes: []result.Lane{{Name: "w", Rate: 100}},
			Ops: []result.OpTotals{{Op: "write", Count: count}},
		}
	}
	alone, ok := offeredOf(&load{name: "W", parts: []*result.Workload{vm(10*time.Second, 1000)}})
	if !ok || alone.Severity != result.Fine {
		t.Fatalf("%+v", alone)
	}
	for _, count := range []uint64{0, 50} {
		beside, _ := offeredOf(&load{name: "W", parts: []*result.Workload{vm(0, count), vm(10*time.Second, 1000)}})
		beside.Basis = alone.Basis // it counts the VMs
		if diff := cmp.Diff(alone, beside); diff != "" {
			t.Errorf("beside one with %d operations (-alone +beside):\n%s", count, diff)
		}
	}
	if f, ok := offeredOf(&load{name: "W", parts: []*result.Workload{vm(0, 0)}}); ok {
		t.Errorf("of no interval at all: %+v", f)
	}
}
