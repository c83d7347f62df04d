package residency

import (
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
)

// What ends when all is written once is an ingest, as is what goes through its disks from end to end; what writes the
// same again at random until a clock ends it is none.
func TestIngestEndsWithItsData(t *testing.T) {
	t.Parallel()
	const block, rate, seconds = 1 << 20, 100, 300
	for name, c := range map[string]struct {
		extent int64
		random float64
		want   int
	}{
		"once":                  {block * rate * seconds, 1, 1},
		"three times":           {block * rate * seconds / 3, 1, 0},
		"three times, in order": {block * rate * seconds / 3, 0, 1},
	} {
		s := reporttest.NewSynthetic(7300, seconds, 1)
		s.Load(reporttest.Load{Name: "A", To: seconds, Writes: 1, Block: block, Extent: c.extent, Random: c.random,
			Rate: func(int) float64 { return rate }})
		if got := ingest(view.New(s.Manifest, s.Data)); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
