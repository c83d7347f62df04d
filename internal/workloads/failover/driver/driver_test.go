package failover

import (
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What is lost are the numbers that were acknowledged and are not there: none that is in doubt, none that is there.
func TestLost(t *testing.T) {
	t.Parallel()
	c := &client{sent: 8, doubt: map[int64]bool{4: true, 8: true}}
	if got := c.lost(map[int64]bool{1: true, 2: true, 4: true, 5: true, 6: true}); !slices.Equal(got, []int64{3, 7}) {
		t.Errorf("%v is lost, want 3 and 7", got)
	}
	if got := c.lost(map[int64]bool{1: true, 2: true, 3: true, 5: true, 6: true, 7: true}); got != nil {
		t.Errorf("%v is lost of what is there", got)
	}
}

// A machine has taken no connection only where one was tried in vain: a client that is held up tries none.
func TestHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &work{last: time.Now()}
		w.seen, w.reached = w.last, w.last.Add(-time.Hour)
		want := func(what string, silent, unreached time.Duration) {
			t.Helper()
			if s, u := w.silence(); s != silent || u != unreached {
				t.Errorf("%s: silent for %v, not reached for %v; want %v and %v", what, s, u, silent, unreached)
			}
		}
		time.Sleep(time.Minute)
		want("nothing was tried", time.Minute, 0)
		w.missed = time.Now()
		time.Sleep(time.Second)
		want("tried in vain", time.Minute+time.Second, time.Hour+time.Minute+time.Second)
		w.reached = time.Now()
		time.Sleep(time.Second)
		want("then reached", time.Minute+2*time.Second, 0)
	})
}

// A link carries what goes in, in both directions and in order; what it carries when the server goes is lost.
func TestLink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delay time.Duration
		want  string
	}{"short": {time.Millisecond, "from the server"}, "longer than the test": {time.Hour, ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			l, err := carry(t.Context(), "127.0.0.1:0", server.Addr().String(), c.delay)
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			standby, err := net.Dial("tcp", l.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer standby.Close()
			end, err := server.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := end.Write([]byte("from the server")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(c.want))
			if err := standby.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(standby, got); err != nil || string(got) != c.want {
				t.Fatalf("%q arrived, want %q (%v)", got, c.want, err)
			}
			end.Close()
			if rest, err := io.ReadAll(standby); len(rest) > 0 {
				t.Errorf("%q arrived after the server was gone (%v)", rest, err)
			}
		})
	}
}
