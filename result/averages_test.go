package result

import "testing"

// Shares and times of machines have no sum; rates and amounts do.
func TestAverages(t *testing.T) {
	t.Parallel()
	for unit, want := range map[string]bool{"%": true, "us": true, "ms": true, "MiB/s": false, "NOPM": false,
		"": false} {
		if got := (Measure{Name: "x", Unit: unit, Kind: Level}).Averages(); got != want {
			t.Errorf("a level in %q averages: %v, want %v", unit, got, want)
		}
		if (Measure{Name: "x", Unit: unit, Kind: Count}).Averages() {
			t.Errorf("a count in %q averages", unit)
		}
	}
}
