package web

import (
	"testing"
	"time"
)

// TestRest: a page of a run that goes on costs at most a hundredth of a processor, however large the run is and however
// few follow it; a run that is soon read is seen every two seconds.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		cost, want time.Duration
		pages      int
	}{
		{0, 2 * time.Second, 1}, {20 * time.Millisecond, 2 * time.Second, 1}, {time.Second, 100 * time.Second, 1},
		{time.Second, 2 * time.Second, 50}, {time.Second, 10 * time.Second, 10}, {time.Minute, 2 * time.Minute, 1},
		{time.Second, 100 * time.Second, 0},
	} {
		if got := restOf(c.cost, c.pages); got != c.want {
			t.Errorf("after %v, %d pages: %v, want %v", c.cost, c.pages, got, c.want)
		}
	}
}
