package residency

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/analysis/view"
)

// TestMonotone: the fit rises, keeps the sum, and leaves alone what rises already.
func TestMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOf(rapid.Float64Range(-1e3, 1e3)).Draw(t, "x")
		fit := monotone(x)
		if len(fit) != len(x) || !slices.IsSorted(fit) || math.Abs(view.Total(fit)-view.Total(x)) > 1e-6 {
			t.Fatalf("%v becomes %v", x, fit)
		}
		if again := monotone(fit); math.Abs(view.Total(again)-view.Total(fit)) > 1e-6 {
			t.Fatalf("%v becomes %v", fit, again)
		}
	})
	if diff := cmp.Diff([]float64{1, 2.5, 2.5, 4}, monotone([]float64{1, 3, 2, 4})); diff != "" {
		t.Error(diff)
	}
}
