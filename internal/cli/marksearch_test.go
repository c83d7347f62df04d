package cli

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/run/experiment"
)

// A probe that offers its rate for longer is expected to take longer, by what its load does.
func TestTimeLeft(t *testing.T) {
	m := &experiment.Mark{Workload: "pg", Seconds: 5, Limits: []string{"pg tx p99 < 20ms"}}
	lines := []judge.Searched{{Probes: make([]mark.Probe, 1)}}
	load := judge.LoadTime(m, 250)
	if load < 80*time.Second || load > 81*time.Second { // 200 beyond p99 of 250 a second
		t.Fatalf("a load of %s", load)
	}
	if got := left(lines, 3, load, 5*time.Second, 8*time.Second, 1); !strings.Contains(got, "1 min 23 s to 2 min 46 s") &&
		!strings.Contains(got, "1 min 24 s to 2 min 48 s") {
		t.Errorf("left: %q", got)
	}
	if got := left(lines, 3, load, 5*time.Second, 10*time.Millisecond, 1); got != "" {
		t.Errorf("of a simulation: %q", got)
	}
	if got := judge.LoadTime(m, 0); got != 5*time.Second {
		t.Errorf("without a rate: %s", got)
	}
}

// A generator that gave way is no bound of the mark.
func TestBoundsOfGenerator(t *testing.T) {
	low, high := judge.Bounds([]mark.Probe{{Offered: 200, Generator: "it fell behind"}, {Offered: 50, Held: true},
		{Offered: 100, Generator: "it fell behind"}})
	if low != 50 || high != 0 {
		t.Errorf("between %v and %v", low, high)
	}
}
