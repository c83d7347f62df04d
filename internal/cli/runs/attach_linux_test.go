package runs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/testkit/needs"
)

// TestHolder: of all processes that have a lock open, only the one that took it is asked to stop: none that looks at
// it, nor a child of it, whichever came first.
func TestHolder(t *testing.T) {
	_, err := exec.LookPath("flock")
	needs.That(t, err == nil, "flock", "apt-get install util-linux")
	lock := filepath.Join(t.TempDir(), "lock")
	begin := func(open *os.File, command ...string) (pid int) {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.ExtraFiles = []*os.File{open}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd.Process.Pid
	}
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begin(f, "sleep", "60")
	if pid := holder(lock); pid != 0 {
		t.Errorf("process %d has taken what nobody took", pid)
	}
	want := begin(nil, "flock", "--no-fork", lock, "sleep", "60")
	begin(f, "sleep", "60")
	for end := time.Now().Add(time.Minute); !held(lock) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	if pid := holder(lock); pid != want {
		t.Errorf("process %d, want %d", pid, want)
	}

	of := lock + "2" // taken here, and by a child open as well
	g, err := os.OpenFile(of, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := unix.Flock(int(g.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	begin(g, "sleep", "60")
	if pid := holder(of); pid != os.Getpid() {
		t.Errorf("process %d, want %d", pid, os.Getpid())
	}
}
