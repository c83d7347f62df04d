//go:build linux

package lab_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	place "plimsoll/internal/targets/lab"
	"plimsoll/internal/testkit/targettest"
)

// TestConformance holds guests of a lab to the contract, restarts of lost guests aside: nobody asks for them there.
func TestConformance(t *testing.T) {
	l := shared(t)
	targettest.Run(t, func(t testing.TB) targettest.Place {
		place.SharedLab(t) // whose nodes the last subtest has left off
		dir := t.TempDir()
		w := &watched{last: map[string]int{}}
		return targettest.Place{
			New: func() target.Target {
				w.Target = l.place(t, target.Options{"ha": "off"})
				return w
			},
			Request:       target.Request{RunID: "one", StateDir: filepath.Join(dir, "state"), Log: t.Logf},
			OtherStateDir: filepath.Join(dir, "other"),
			Clock:         clock.Real{},
			Commands:      targettest.Shell,
			Alive:         w.alive,
			Rounds:        1,
			Slow:          true,
			OwnClocks:     true,
			Remains:       l.remains,
		}
	})
}

// watched is a place whose clusters are asked what lives in their guests.
type watched struct {
	target.Target
	mu       sync.Mutex
	clusters []target.Cluster
	last     map[string]int // what lived in a guest when it was last asked, by its name and the word
}

func (w *watched) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	c, err := w.Target.Provision(ctx, r)
	if err == nil {
		w.mu.Lock()
		w.clusters = append(w.clusters, c)
		w.mu.Unlock()
	}
	return c, err
}

// alive counts the processes with a word in what they were called with, but those of the question itself. A guest whose
// cluster is closed answers nobody: as long as it is on, what lived in it is taken to live.
func (w *watched) alive(word string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, c := range w.clusters {
		vms, err := c.VMs(ctx)
		for _, vm := range vms {
			if h, e := c.Host(vm.Name); err == nil && e == nil && vm.Power == target.On {
				if found, err := count(ctx, h, word); err == nil {
					w.last[vm.Name+word] = found
				}
				n += w.last[vm.Name+word]
			}
		}
	}
	return n
}

func count(ctx context.Context, h target.Host, word string) (n int, err error) {
	out := fmt.Sprintf("alive-%d", time.Now().UnixNano())
	p, err := h.Start(ctx, target.Command{Stdout: out, Argv: []string{"sh", "-c", // one process, with a line for each
		`head -c 4096 /proc/[0-9]*/cmdline 2>/dev/null`}})
	if err != nil {
		return 0, err
	}
	if _, err := p.Wait(ctx); err != nil {
		return 0, err
	}
	data, err := target.ReadFile(ctx, h, out, 0, 1<<20)
	for line := range bytes.Lines(data) {
		if strings.Contains(string(line), "300."+word) {
			n++
		}
	}
	return n, err
}
