package compare

import (
	"testing"

	"plimsoll/internal/analysis/resample"
)

// An interval of few repeats that reaches from nothing to five times the value and more is none.
func TestTelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		repeats []float64
		told    bool
	}{{[]float64{10, 11}, true}, {[]float64{1, 10}, false}, {[]float64{0, 0}, true}, {[]float64{0, 1}, false},
		{[]float64{0, 1, 0, 1, 0, 1}, true}} {
		in := telling(mean(c.repeats), repeatsInterval(c.repeats, 0.95))
		if in.Valid() != c.told || !c.told && in.Reason != TooFew {
			t.Errorf("%v: %+v", c.repeats, in)
		}
	}
	if in := telling(1, resample.None("one run")); in.Reason != "one run" {
		t.Errorf("%+v", in)
	}
}
