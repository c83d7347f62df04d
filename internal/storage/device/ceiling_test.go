package device

import "testing"

// TestCeilings holds the published bandwidths of links in MB/s.
func TestCeilings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gigabits string
		lanes    int
		want     float64
	}{{"1.5", 1, 150}, {"3", 1, 300}, {"6", 1, 600}, {"12", 1, 1200}, {"12", 4, 4800}, {"12", 8, 8400}, {"22.5", 1,
		2400},
		{"22.5", 4, 9600}, {"", 1, 0}, {"fast", 4, 0}, {"-6", 1, 0}} {
		if got := serialCeiling(c.gigabits, c.lanes) / megabyte; got != c.want {
			t.Errorf("%q x%d: %g MB/s, want %g", c.gigabits, c.lanes, got, c.want)
		}
	}
}
