package loads_test

import (
	"testing"
	"time"

	"plimsoll/internal/run/loads"
)

func TestOffsets(t *testing.T) {
	cases := []struct {
		vms, stagger int
		want         []float64
	}{
		{1, 900, []float64{0}},
		{4, 900, []float64{0, 300, 600, 900}},
		{3, 60, []float64{0, 30, 60}},
		{4, 10, []float64{0, 10. / 3, 20. / 3, 10}}, // 0 3 6 9 where intervals are whole seconds
		{5, 1, []float64{0, .25, .5, .75, 1}},       // all at once where intervals are whole seconds
		{3, 0, []float64{0, 0, 0}},
	}
	for _, c := range cases {
		for i, got := range loads.Offsets(c.vms, time.Duration(c.stagger)*time.Second) {
			if want := time.Duration(c.want[i] * float64(time.Second)); got-want > time.Microsecond ||
				want-got > time.Microsecond {
				t.Errorf("%d VMs over %d s: VM %d at %v, want %v", c.vms, c.stagger, i, got, want)
			}
		}
	}
	if last := loads.Offsets(225, 10*time.Second)[224]; last != 10*time.Second {
		t.Errorf("the last of 225 VMs over 10 s starts at %v", last)
	}
}

func TestSeeds(t *testing.T) {
	seen := map[uint64]bool{}
	for _, text := range []string{"OLTP", "OLTP_prefill", ""} {
		for i := range 1000 {
			s := loads.Seed(text, i)
			if s == 0 || s>>63 != 0 || seen[s] {
				t.Fatalf("seed %d of %q is %d: zero, too long or not the only one", i, text, s)
			}
			seen[s] = true
		}
	}
	if got := loads.Seed("OLTP", 3); got != loads.Seed("OLTP", 3) {
		t.Errorf("seeds of the same differ: %d", got)
	}
}
