package view

import "testing"

// TestWithin: a change, a ratio and the ends of their intervals are written in one way, and what differs reads so.
func TestWithin(t *testing.T) {
	for got, want := range map[string]string{
		RatioWithin(0.4401, 0.44, 0.4402): "×0.4401 (95 %: ×0.44 to ×0.4402)",
		RatioWithin(2, 1, 3):              "×2 (95 %: ×1 to ×3)",
		Share(7.2e-7):                     "less than 0.0001 %",
		Share(1.2e-6):                     "0.00012 %",
		Share(0):                          "0 %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestClockOf(t *testing.T) {
	for seconds, want := range map[float64]string{-15: "−0:15", -3725: "−1:02:05", -0.2: "0:00", 0: "0:00",
		59.6: "1:00", 3600: "1:00:00", 1e10: "an unknown moment"} {
		if got := ClockOf(seconds); got != want {
			t.Errorf("%v: %q, want %q", seconds, got, want)
		}
	}
}
