package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/loads"
	"plimsoll/internal/run/step"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/recordtest"
)

// counting is a cluster with exporters: one that counts, and one that fails every second time.
type counting struct {
	target.Cluster
	asked int
}

func (*counting) VMs(context.Context) ([]target.VM, error) { return nil, nil }

func (c *counting) Endpoints(context.Context) ([]target.Endpoint, error) {
	c.asked++
	page := func(context.Context) (io.ReadCloser, string, error) {
		var b strings.Builder
		for i := range 50 {
			fmt.Fprintf(&b, "reads_total{disk=\"%d\"} %d\n", i, c.asked*(i+1))
		}
		return io.NopCloser(strings.NewReader(b.String())), "text/plain; version=0.0.4", nil
	}
	fails := func(ctx context.Context) (io.ReadCloser, string, error) {
		if c.asked%2 == 0 {
			return nil, "", errors.New("connection refused")
		}
		return page(ctx)
	}
	return []target.Endpoint{{Name: "node", Machine: "a", Get: page}, {Name: "node", Machine: "b", Get: fails}}, nil
}

// Thousands of scrapes, every five seconds as of seven hours, keep what they measured and no more: nothing of a page, a
// request or a failure stays.
func TestManyScrapes(t *testing.T) {
	needs.Time(t)
	lab := recordtest.New(t)
	cluster := &counting{}
	x := &execution{cluster: cluster, recorder: lab.Recorder, req: Request{Clock: clock.Real{}},
		env: &step.Env{Loads: &loads.Set{}}}
	s := &scraper{x: x, source: cluster, deadline: time.Minute, known: map[endpointKey]*endpoint{}}
	scrape := func(times int) {
		for range times {
			lab.Now = lab.Now.Add(5 * time.Second)
			s.all(t.Context())
		}
	}
	held := func() (objects, bytes uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what was pooled before the first goes with the second
		runtime.ReadMemStats(&m)
		return m.HeapObjects, m.HeapAlloc
	}
	const n = 5000
	scrape(500)
	objects, bytes := held()
	scrape(n)
	if s.pages != 2*(n+500) || s.missing != (n+500)/2 || len(s.known) != 2 {
		t.Errorf("%d pages, %d missing, of %d", s.pages, s.missing, len(s.known))
	}
	more, larger := held()
	grown := func() bool { return more > objects+2*n || larger > bytes+n*100*4 } // four bytes for each number
	for end := time.Now().Add(time.Minute); grown() && time.Now().Before(end); more, larger = held() {
		time.Sleep(100 * time.Millisecond) // the metrics are put together every two hours of theirs, beside this
	}
	if t.Logf("%d objects, %d bytes after 500 scrapes, %d and %d after %d more", objects, bytes, more,
		larger, n); grown() {
		t.Error("what is kept has grown")
	}
}
