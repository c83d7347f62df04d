package local

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// TestWrittenOfADisk: what was written is told from space that is only reserved, before and after a purge.
func TestWrittenOfADisk(t *testing.T) {
	const size, from, length = 64 << 20, 8 << 20, 4 << 20
	_, h := sandboxes(t, target.Options{}, size)
	d := h.Disks()[0]
	expect := func(what string, want int64) {
		t.Helper()
		f, err := h.OpenDisk(t.Context(), d.Device)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, known, err := f.Written(0, f.Size())
		if err != nil || !known || got != want || f.Size() != size {
			t.Errorf("%s: %d bytes written, known %t, %v, of %d; want %d of %d", what, got, known, err, f.Size(), want,
				int64(size))
		}
		if part, _, err := f.Written(from+1<<20, from+2<<20); err != nil || part != min(want, 1<<20) {
			t.Errorf("%s: %d bytes of a part, %v", what, part, err)
		}
		if _, _, err := f.Written(10, 5); err == nil {
			t.Error("a range that ends before it begins has an answer")
		}
	}
	expect("new", 0)
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{7}, length), from)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	expect("written in part", length)
	if _, err := h.PurgeDisk(t.Context(), d.Device); err != nil {
		t.Fatal(err)
	}
	expect("purged", 0)
	var st unix.Stat_t
	if err := unix.Stat(d.Path, &st); err != nil || st.Blocks*512 < size {
		t.Errorf("after a purge %d bytes are reserved of %d, %v", st.Blocks*512, int64(size), err)
	}
	if _, err := h.OpenDisk(t.Context(), "/dev/sdz"); err == nil {
		t.Error("a disk that is not there is opened")
	}
}
