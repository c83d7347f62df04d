package storage

import (
	"testing"
	"time"

	"plimsoll/internal/analysis/view"
)

// TestAgreement holds the counts of disks against those of generators: stages of unlike rates, which the disks' counts
// show a point later, agree; what a cache answers does not.
func TestAgreement(t *testing.T) {
	t.Parallel()
	track := func(late int, of float64) *view.Track {
		c := &view.Track{Start: time.Unix(0, 0), Origin: time.Unix(0, 0), Step: 2, Ops: view.Gaps(60)}
		for i := range c.Ops {
			switch at := i - late; {
			case at < 29:
				c.Ops[i] = 35 * of
			case at < 58:
				c.Ops[i] = 310 * of
			default:
				c.Ops[i] = 120 * of
			}
		}
		return c
	}
	for name, c := range map[string]struct {
		late int
		of   float64
		want float64
	}{"as it is": {0, 1, 1}, "later": {2, 1, 1}, "half": {2, 0.5, 0.5}, "none": {0, 0, 0}} {
		f, ok := agreement("G", track(0, 1), track(c.late, c.of))
		if !ok || f.Value == nil || *f.Value < c.want-0.05 || *f.Value > c.want+0.05 {
			t.Errorf("%s: %v, %+v, want about %g", name, ok, f, c.want)
		}
	}
}
