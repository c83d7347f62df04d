package residency

import (
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
)

// What ends when all is written once is an ingest; what writes the same again until a clock ends it is none.
func TestIngestEndsWithItsData(t *testing.T) {
	t.Parallel()
	const block, rate, seconds = 1 << 20, 100, 300
	for name, c := range map[string]struct {
		extent int64
		want   int
	}{
		"once":        {block * rate * seconds, 1},
		"three times": {block * rate * seconds / 3, 0},
	} {
		s := reporttest.NewSynthetic(7300, seconds, 1)
		s.Load(reporttest.Load{Name: "A", To: seconds, Writes: 1, Block: block, Extent: c.extent,
			Rate: func(int) float64 { return rate }})
		if got := ingest(view.New(s.Manifest, s.Data)); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
