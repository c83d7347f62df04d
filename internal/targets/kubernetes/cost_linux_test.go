package kubernetes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/internal/testkit/needs"
)

var sessions = flag.Int("sessions", 20, "sessions whose cost TestCostOfSessions measures")

// TestCostOfSessions has many agents in a pod at once, each by a session of its own, and asks each for its page every
// second: 200 are to cost this process 150 MB and a fifth of a core. Memory is held to that, scaled up; of processor
// time, which a machine with other work makes dearer, three times that is let pass.
func TestCostOfSessions(t *testing.T) {
	needs.Long(t, why)
	const rounds, all = 10, 200
	c, namespace, file := started(t, "")
	o := provisioned(t, c, namespace, file, patient)
	o.memory = int64(*sessions+4) * (32 << 20)
	if err := o.make("a"); err != nil {
		t.Fatal(err)
	}
	k := o.Cluster.(*cluster)
	v, err := k.get("a")
	if err != nil {
		t.Fatal(err)
	}
	used := func() (cpu time.Duration, held float64) {
		runtime.GC()
		var u unix.Rusage
		var m runtime.MemStats
		err := unix.Getrusage(unix.RUSAGE_SELF, &u)
		if runtime.ReadMemStats(&m); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(m.HeapInuse + m.StackInuse)
	}
	_, before := used()
	hosts, errs := make([]*remote.Host, *sessions), make([]error, *sessions)
	_ = clock.Parallel(clock.Real{}, len(hosts), 10, func(i int) error {
		hosts[i] = k.access.NewHost(remote.Machine{Name: fmt.Sprint("h", i), Folder: fmt.Sprint(workFolder, "/run", i),
			Agent: agentFile, Way: k.api.way(v.Short)}, 0)
		errs[i] = hosts[i].Settle(t.Context(), k.state.Run)
		return nil
	})
	defer func() {
		for _, h := range hosts {
			_ = h.Close() // its pod goes
		}
	}()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	began, _ := used()
	pages := 0
	for range rounds {
		next := time.Now().Add(time.Second)
		var g sync.WaitGroup
		var mu sync.Mutex
		for _, h := range hosts {
			g.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				page, _, err := h.Page(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, page)
				if err = errors.Join(err, page.Close()); err != nil || n == 0 {
					t.Errorf("a page of %d bytes, %v", n, err)
				}
				mu.Lock()
				pages++
				mu.Unlock()
			})
		}
		g.Wait()
		time.Sleep(time.Until(next)) // a scrape a second
	}
	ended, after := used()
	share := (ended - began).Seconds() / float64(pages) * all
	held := (before + (after-before)/float64(len(hosts))*all) / 1e6
	t.Logf("%d sessions, %d pages: for %d at one a second %.2f of a core and %.0f MB", len(hosts), pages, all, share, held)
	if held > 150 || share > 0.6 {
		t.Errorf("%d sessions at one a second would take %.2f of a core and %.0f MB", all, share, held)
	}
}
