package regular

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFull(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOSPC: true, unix.EDQUOT: true, unix.EIO: false} {
		if got := Full(&os.PathError{Op: "write", Path: "f", Err: err}); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A record is appended whole, or what there was room for is taken back. The full disk is a file in memory that may
// not grow: it takes what fits into the page that it has.
func TestAppendWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const room = 4096
	fd, err := unix.MemfdCreate("full", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "full")
	defer f.Close()
	first := []byte("first record\n")
	if err := Append(f, first); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(room); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW); err != nil {
		t.Fatal(err)
	}
	if err := Append(f, make([]byte, 2*room)); !errors.Is(err, unix.EPERM) {
		t.Errorf("a record larger than the room: %v", err)
	}
	got := make([]byte, 2*room)
	n, _ := f.ReadAt(got, 0)
	if !bytes.Equal(got[:n], first) {
		t.Errorf("the file holds %q, want %q", got[:n], first)
	}
	if err := Append(f, []byte("x")); !errors.Is(err, unix.EPERM) {
		t.Errorf("a record without any room: %v", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(first)) {
		t.Errorf("after a record without any room: %v, %v", info.Size(), err)
	}
}
