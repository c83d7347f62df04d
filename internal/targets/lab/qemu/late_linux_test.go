package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// A machine that QEMU has paused, but not answered in time, goes on again all the same.
func TestSnapshotOfMachineThatAnswersLate(t *testing.T) {
	t.Parallel()
	m, err := Create(t.TempDir(), Spec{Name: "late", Accel: TCG, CPUs: 1, MemoryBytes: mebibyte})
	must(t, err)
	p := exec.Command("/bin/sh")
	p.Args = []string{"qemu-stand-in", "-c", "read nothing", "-pidfile", filepath.Join(m.Folder, pidFile)}
	in, err := p.StdinPipe()
	must(t, err)
	must(t, p.Start())
	defer func() { _ = in.Close(); _ = p.Wait() }()
	l, err := net.Listen("unix", filepath.Join(m.Folder, MonitorFile))
	must(t, err)
	ctx, late := context.WithCancel(t.Context())
	var asked []string
	var served sync.WaitGroup
	served.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			fmt.Fprintln(c, `{"QMP":{}}`)
			for lines := bufio.NewScanner(c); lines.Scan(); {
				var q struct{ Execute, ID string }
				_ = json.Unmarshal(lines.Bytes(), &q)
				asked = append(asked, q.Execute)
				if q.Execute == "stop" {
					late()
					continue
				}
				fmt.Fprintf(c, `{"return":{"status":"running"},"id":%q}`+"\n", q.ID)
			}
			_ = c.Close()
		}
	})
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := SnapshotAll(limited, "tag", []*Machine{m}); err == nil {
		t.Error("a machine that does not answer was snapshotted")
	}
	_ = l.Close()
	served.Wait()
	if !slices.Contains(asked, "stop") || !slices.Contains(asked, "cont") {
		t.Errorf("it was asked %q", asked)
	}
}
