package loads

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// teller is a host that says what stands.
type teller struct {
	target.Host
	names []string
}

func (h *teller) Stands(string) []string { return h.names }

// Jobs that go on beyond their own time, and those of unknown length that stand still, are ended once, and said with
// what stands before that. Jobs that come on are left alone, and so are those that stand for a moment.
func TestMind(t *testing.T) {
	t.Parallel()
	stopped := []string{"process 7 (fio) is stopped (state T)"}
	many := []string{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		own   time.Duration
		at    func(after time.Duration) (names []string, did uint64)
		ended time.Duration // 0: never
		says  string
	}{
		"in time": {own: time.Minute, at: func(time.Duration) ([]string, uint64) { return stopped, 0 }},
		"beyond its time": {own: 6 * time.Second, at: func(time.Duration) ([]string, uint64) { return stopped, 0 },
			ended: 16 * time.Second, says: `workload "w" on vm: fio has not ended 10 s after its own time of 6 s: ` +
				stopped[0] + "; it is ended"},
		"beyond its time, at work": {own: 6 * time.Second,
			at:    func(after time.Duration) ([]string, uint64) { return nil, uint64(after) },
			ended: 16 * time.Second, says: `workload "w" on vm: fio has not ended 10 s after its own time of 6 s; it is ended`},
		"stands": {at: func(after time.Duration) ([]string, uint64) { return many, 5 }, ended: 15 * time.Second,
			says: `workload "w" on vm: fio stands still, for 12 s now: a, b, c, and 2 more; it is ended`},
		"comes on": {at: func(after time.Duration) ([]string, uint64) { return stopped, uint64(after) }},
		"waits":    {at: func(time.Duration) ([]string, uint64) { return nil, 5 }},
		"now and so": {at: func(after time.Duration) ([]string, uint64) {
			return stopped[:int(after.Seconds()/4)%2], 5
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := clock.NewVirtual(time.Unix(0, 0))
			var said []string
			l := New(t.Context(), Config{Clock: v, Patience: 10 * time.Second,
				Record: func(e result.Event) { said = append(said, e.Text) }})
			ctx, cancel := context.WithCancel(t.Context())
			host := &teller{}
			j := &job{vm: target.VM{Name: "vm"}, host: host, cancel: cancel,
				launch: Launch{Engine: "fio", Job: workload.Job{Limit: c.own}}}
			l.mind(&Start{name: "w"}, j)
			ended := time.Duration(0)
			for after := time.Duration(0); after < 50*time.Second; after += time.Second {
				names, did := c.at(after)
				host.names = names
				j.did.Store(did)
				l.Mind()
				if ctx.Err() != nil && ended == 0 {
					ended = after
				}
				if err := v.Sleep(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
			}
			if ended != c.ended || strings.Join(said, "\n") != c.says {
				t.Errorf("ended after %v, want %v; said %s", ended, c.ended, cmp.Diff(c.says, strings.Join(said, "\n")))
			}
			if c.ended > 0 && !strings.HasPrefix(j.overdue, strings.TrimSuffix(c.says, "; it is ended")) {
				t.Errorf("why: %q", j.overdue)
			}
		})
	}
}
