//go:build linux

package procfs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A process that starts one program after the other shows no environment some of the time, and is still found by it.
func TestEnvironmentOfAProcessThatStarts(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("exec sh $0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.Command("sh", script)
	again.Env = []string{"PATH=" + os.Getenv("PATH"), "MARK=here"}
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = again.Process.Kill()
		_ = again.Wait()
	}()
	for range 200 {
		data, err := Environment(again.Process.Pid)
		if err != nil || !bytes.Contains(data, []byte("MARK=here\x00")) {
			t.Fatalf("environment %q, %v", data, err)
		}
		time.Sleep(100 * time.Microsecond) // real: at another moment of starting
	}
}

// The dead and the kernel's own have none, and are not waited for as those are that start.
func TestNothingIsStarting(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	defer dead.Wait()
	for range 500 { // until it is a zombie
		if !starting(dead.Process.Pid) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	const none = 1 << 30 // no process has this id
	for _, pid := range []int{dead.Process.Pid, none} {
		if starting(pid) {
			t.Errorf("process %d is said to start", pid)
		}
	}
	if !starting(os.Getpid()) {
		t.Error("a process that lives is said to be dead")
	}
	if data, err := Environment(none); err == nil {
		t.Errorf("a process that is not there has %q", data)
	}
}
