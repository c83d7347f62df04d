//go:build linux

package procfs

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A process that is stopped stands, alone and as one of its group, and one that goes on or is gone does not.
func TestStands(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if list := Stands(pid); len(list) > 0 {
		t.Errorf("before: %v", list)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); len(Stands(pid)) == 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	want := []Standing{{PID: pid, TID: pid, Name: "sleep", State: 'T'}}
	if diff := cmp.Diff(want, Stands(pid)) + cmp.Diff(want, GroupStands(pid)); diff != "" {
		t.Error(diff)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if list := append(Stands(pid), GroupStands(pid)...); len(list) > 0 {
		t.Errorf("after: %v", list)
	}
}

func TestStandingWords(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range []Standing{{PID: 7, TID: 7, Name: "fio", State: 'T'}, {PID: 7, TID: 9, Name: "fio", State: 'D'},
		{PID: 7, TID: 7, Name: "fio", State: 'D', Where: "folio_wait_bit"},
		{PID: 7, TID: 7, Name: "fio", State: 'D', On: []string{"/dev/sdb", "x (fuse)"}}} {
		got = append(got, fmt.Sprint(s))
	}
	want := "process 7 (fio) is stopped (state T)\nthread 9 of process 7 (fio) hangs in the kernel (state D)\n" +
		"process 7 (fio) hangs in the kernel (state D, in folio_wait_bit)\n" +
		"process 7 (fio) hangs in the kernel (state D; it has open files of /dev/sdb and x (fuse))"
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Error(diff)
	}
}
