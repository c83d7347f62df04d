package needs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Cached gives a folder of the user's cache of that name, which make has filled, once for all tests that want it: it is
// whole, or is made. What is in it is nobody's to change.
func Cached(t testing.TB, name string, make func(dir string) error) string {
	t.Helper()
	dir := filepath.Join(cache(t), name)
	defer locked(t, dir)()
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	begun := dir + ".unfinished"
	err := os.RemoveAll(begun) // what was killed in the middle
	if err == nil {
		if err = os.Mkdir(begun, 0o755); err == nil { // other users' programs fill and read it
			err = make(begun)
		}
	}
	if err == nil {
		err = os.Rename(begun, dir)
	}
	if err != nil {
		t.Fatalf("%s: %v", dir, errors.Join(err, os.RemoveAll(begun)))
	}
	return dir
}

// Program gives a program of this source as it is shipped, such as "./cmd/plimsoll-agent", with what the linker is told
// besides. It lies in the user's cache, where it is linked again only when its source has changed, and goes to another
// place by Copy.
func Program(t testing.TB, pkg string, ldflags ...string) string {
	t.Helper()
	flags := strings.Join(append([]string{"-s -w"}, ldflags...), " ")
	key := sha256.Sum256([]byte(Root() + "\x00" + flags))
	name := filepath.Join(cache(t), fmt.Sprintf("%s-%x", filepath.Base(pkg), key[:6]))
	defer locked(t, name)()
	c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags,
		"-o", name, pkg)
	c.Dir, c.Env = Root(), append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", pkg, err, out)
	}
	return name
}

// Copy copies what Cached and Program give, with owners and modes, sharing the blocks where the file system can.
func Copy(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
}

func cache(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err == nil {
		dir = filepath.Join(dir, "plimsoll-tests")
		err = os.MkdirAll(dir, 0o755) // as Cached's
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// locked holds what is made for itself among all processes, until it is unlocked.
func locked(t testing.TB, name string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(name+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Close() } // which unlocks it
}

// Start starts a program beside a test: it ends when this process does, also where that is killed. Its end is sent
// once, and the channel is closed.
func Start(c *exec.Cmd) (ended <-chan error, err error) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	if c.SysProcAttr.Pdeathsig == 0 {
		c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started, end := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal at our death is one at the death of this thread
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			end <- c.Wait()
			close(end)
		}
	}()
	return end, <-started
}
