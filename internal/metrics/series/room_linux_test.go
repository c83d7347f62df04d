package series_test

import (
	"path/filepath"
	"testing"

	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/needs"
)

// A database ends well on a disk that has the room which it says it needs, whatever it holds.
func TestRoom(t *testing.T) {
	s, err := series.Open(filepath.Join(needs.Disk(t, "32m"), "metrics"), series.Options{Timeless: true})
	if err != nil {
		t.Fatal(err)
	}
	feed(t, s) // and closes it
}
