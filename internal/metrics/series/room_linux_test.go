package series_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/needs"
)

// A database ends well on a disk that has the room which it says it needs, whatever it holds.
func TestRoom(t *testing.T) {
	needs.That(t, os.Geteuid() == 0, "a small file system", "run as root")
	disk := needs.Folder(t)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=32m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s, err := series.Open(filepath.Join(disk, "metrics"), series.Options{Timeless: true})
	if err != nil {
		t.Fatal(err)
	}
	feed(t, s) // and closes it
}
