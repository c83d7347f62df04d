package web

import (
	"testing"
	"time"
)

// TestRunsOfOneName: of two runs of one identity the one that stands by itself is shown, not that of an experiment,
// in whatever order they are looked at.
func TestRunsOfOneName(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	alone := &book{id: "x-0001", dir: "/runs/x-0001", made: at}
	inside := &book{id: "x-0001", dir: "/runs/x-0002/runs/x-0001", made: at}
	other := &book{id: "y-0001", dir: "/runs/y-0001", made: at}
	for _, looked := range [][]*book{{alone, inside, other}, {inside, other, alone}, {other, inside, alone}} {
		books, by := ordered(looked)
		if len(books) != 2 || by["x-0001"] != alone || by["y-0001"] != other {
			t.Errorf("%d books, %s", len(books), by["x-0001"].dir)
		}
	}
}
