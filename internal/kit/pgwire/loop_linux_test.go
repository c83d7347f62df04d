package pgwire

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Connections are served by a loop with TLS as without: many answers, each larger than what sockets take at once, as
// requests are, and the end.
func TestLoopTLS(t *testing.T) {
	t.Run("epoll", func(t *testing.T) { serves(t, 1) })
	t.Run("io_uring", func(t *testing.T) { serves(t, fromHere) })
}

// pair is a connection over loopback, over TLS as pgconn makes it when it is to be.
func pair(t *testing.T, over bool) (ours socket, theirs net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err == nil {
		theirs, err = listener.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !over {
		made, err := blocking(conn)
		if err != nil {
			t.Fatal(err)
		}
		return made, theirs
	}
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	server.Close()
	theirs = tls.Server(theirs, &tls.Config{Certificates: server.TLS.Certificates})
	client := tls.Client(&line{Conn: conn}, &tls.Config{InsecureSkipVerify: true})
	greeted := make(chan error, 1)
	go func() { greeted <- theirs.(*tls.Conn).Handshake() }()
	if err := errors.Join(client.Handshake(), <-greeted); err != nil {
		t.Fatal(err)
	}
	return waiting{client}, theirs
}

// A loop that has no links yet, or none any more, can be woken like every other.
func TestLoopWithoutLinks(t *testing.T) {
	for _, links := range []int{1, fromHere} {
		l, err := NewLoop(links)
		if err != nil {
			t.Fatal(err)
		}
		l.Wake()
		if err := l.Wait(time.Minute, func(*Link, error) { t.Error("ready") }); err != nil {
			t.Error(err)
		}
		l.Close()
	}
}

func serves(t *testing.T, several int) {
	l, err := NewLoop(several)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ring := l.ring != nil; ring != (several >= fromHere) {
		t.Skip("no io_uring here")
	}
	const clients, rounds = 3, 20
	large := strings.Repeat("x", 1<<20)
	heard := make(chan int64, clients)
	links := map[*Link]int{}
	for range clients {
		ours, theirs := pair(t, true)
		go func() { // a server that answers every request, and counts what it was sent
			total := int64(0)
			header := make([]byte, 5)
			for {
				if _, err := io.ReadFull(theirs, header); err != nil {
					break
				}
				size, err := sizeOf(header)
				if err != nil {
					t.Error(err)
					break
				}
				n, _ := io.CopyN(io.Discard, theirs, int64(size-5))
				if total += n; header[0] == 'X' {
					break
				}
				row := message('D', "\x00\x01\x00\x10\x00\x00"+large) + message('C', "SELECT 1\x00") + message('Z', "I")
				if _, err := io.WriteString(theirs, row); err != nil {
					break
				}
			}
			_ = theirs.Close()
			heard <- total
		}()
		d, err := (&Conn{socket: ours}).Detach()
		if err != nil {
			t.Fatal(err)
		}
		k, err := l.Add(d)
		if err == nil {
			err = k.Send(AppendQuery(nil, large))
		}
		if err != nil {
			t.Fatal(err)
		}
		links[k] = 0
	}
	for ended := 0; ended < clients; {
		err := l.Wait(time.Minute, func(k *Link, err error) {
			if links[k]++; err != nil || k.Reply.Rows != 1 || k.Reply.Status != 'I' {
				t.Fatal(err, k.Reply.Rows)
			}
			if links[k] == rounds {
				k.Close()
				ended++
				return
			}
			if err := k.Send(AppendQuery(nil, large)); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range clients {
		if n := <-heard; n != rounds*(1<<20+1) {
			t.Errorf("%d bytes of requests arrived", n)
		}
	}
	l.Wake()
	if err := l.Wait(-1, nil); err != nil {
		t.Error(err)
	}
}

// A connection that is alone in its loop is waited for by receiving: answers at once and late ones, being woken, and
// its end are all noticed.
func TestLoopAlone(t *testing.T) {
	l, err := NewLoop(1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, theirs := pair(t, false)
	d, err := (&Conn{socket: ours}).Detach()
	if err != nil {
		t.Fatal(err)
	}
	k, err := l.Add(d)
	if err != nil {
		t.Fatal(err)
	}
	answer := message('C', "SELECT 1\x00") + message('Z', "I")
	pauses := []time.Duration{0, 3 * rawWait, 0, 0} // after the second one waits are ordinary
	go func() {
		request := make([]byte, len(AppendQuery(nil, "x")))
		for _, pause := range pauses {
			_, _ = io.ReadFull(theirs, request)
			time.Sleep(pause)
			_, _ = io.WriteString(theirs, answer[:9])
			_, _ = io.WriteString(theirs, answer[9:])
		}
		_, _ = io.ReadFull(theirs, request)
		l.Wake()
		time.Sleep(3 * rawWait)
		_ = theirs.Close()
	}()
	var lost error
	answers := 0
	for n := 0; lost == nil; n++ {
		if n > 100 {
			t.Fatal("waits return without end")
		}
		if !k.pending {
			if err := k.Send(AppendQuery(nil, "x")); err != nil {
				t.Fatal(err)
			}
		}
		err := l.Wait(-1, func(_ *Link, err error) {
			if lost = err; err == nil {
				answers++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if said := (*LostError)(nil); answers != len(pauses) || !errors.As(lost, &said) {
		t.Errorf("%d answers, then %v", answers, lost)
	}
}
