package effect

import (
	"slices"
	"strings"
	"testing"
)

// A drift that the repeats cannot exclude and that leaves nothing sure of a difference is said, and where it is known
// that one side came first, nothing is decided by it.
func TestDriftThatLeavesNothingSure(t *testing.T) {
	t.Parallel()
	order := func(x ...int) []int { return x }
	baseline := []float64{100, 101.2, 99.6, 100.9, 100.3}
	near, far := []float64{101.3, 102.6, 101.4, 101.9, 102.3}, []float64{121.8, 123.1, 121.9, 122.4, 122.8}
	after, turns := order(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), order(0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
	tests := map[string]struct {
		candidate []float64
		order     []int
		want      Verdict
		said      string // "" when nothing is
	}{
		"small, one side first": {near, after, Inconclusive,
			"they lie 5 repeats apart: a drift of up to 0.35 % each"},
		"small, order not known": {near, nil, Better,
			"had all of one side come first: a drift of up to 0.35 % each"},
		"small, in turns":         {near, turns, Better, ""},
		"large, one side first":   {far, after, Better, ""},
		"large, order not known":  {far, nil, Better, ""},
		"same, one side first":    {baseline, after, Inconclusive, ""},
		"two repeats say nothing": {near[:2], nil, Inconclusive, ""},
	}
	for name, test := range tests {
		b := baseline[:min(len(baseline), len(test.candidate))]
		c, err := Compare(b, test.candidate, Options{Order: test.order, Threshold: 0.002})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, test.said) })
		if c.Verdict != test.want || !strings.Contains(c.Unsure, test.said) || (c.Unsure == "") != (test.said == "") ||
			test.said != "" && !said {
			t.Errorf("%s: %s, %q, warnings %q", name, c.Verdict, c.Unsure, c.Warnings)
		}
	}
}
