package cli

import (
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// What plimsoll was given open, such as a lock, is not open in what it starts, which may live as long as a lab.
func TestKeepInherited(t *testing.T) {
	fd, err := unix.Open(t.TempDir(), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	a, _, errs := quiet(t)
	if code := a.main([]string{"version"}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("processes that are started would hold it open: flags %d, %v", flags, err)
	}
	child := exec.Command("sh", "-c", fmt.Sprintf("[ ! -e /dev/fd/%d ] || ls -l /dev/fd", fd))
	if out, err := child.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("it has it open: %v: %s", err, out)
	}
}
