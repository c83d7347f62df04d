package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/ssh/remote"
)

// dark is a way to a machine that takes nothing any more.
type dark struct {
	net.Conn
	reached chan struct{}
}

func (d dark) Command(context.Context, time.Duration, io.Reader, string) (string, error) {
	return "", nil
}

func (d dark) Session(string) (net.Conn, error) { close(d.reached); return d.Conn, nil }

// TestCloseOfADarkMachine lets go of a machine that is gone while a connection to it is under way: what waits for it
// ends then, and not when the way there has noticed.
func TestCloseOfADarkMachine(t *testing.T) {
	ours, theirs := net.Pipe() // nobody reads there
	defer theirs.Close()
	way := dark{ours, make(chan struct{})}
	h := remote.Access{Patience: time.Hour, Clock: clock.Real{}}.NewHost(remote.Machine{Name: "a", Folder: "/x",
		Way: func(context.Context) (remote.Connection, error) { return way, nil }}, 0)
	ended := make(chan error, 1)
	go func() { ended <- h.Accessible(t.Context()) }()
	<-way.reached
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	limit := time.After(10 * time.Second)
	for range 2 {
		select {
		case err := <-ended:
			if !errors.Is(err, target.ErrNotAccessible) {
				t.Errorf("accessible: %v", err)
			}
		case err := <-closed:
			if err != nil {
				t.Errorf("close: %v", err)
			}
		case <-limit:
			t.Fatal("a machine that is gone holds up who lets go of it")
		}
	}
}
