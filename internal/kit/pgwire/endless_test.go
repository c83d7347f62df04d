package pgwire_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"plimsoll/internal/kit/pgwire"
)

// A server that greets with small messages without end, or answers a question with small rows without end, is not read
// beyond the bound, give or take what lies in buffers between the two.
func TestEndless(t *testing.T) {
	t.Parallel()
	const most, between = 4 << 20, 16 << 20
	notice, err := (&pgproto3.NoticeResponse{Severity: "NOTICE", Code: "00000", Message: "hi"}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	row, err := (&pgproto3.DataRow{Values: [][]byte{[]byte("x")}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		greets bool
		says   []byte
	}{"greeting": {false, notice}, "rows": {true, row}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			taken := make(chan int, 1)
			go func() { taken <- says(listener, c.greets, c.says, 10*(most+between)) }()
			config, err := pgconn.ParseConfig("postgresql://u@" + listener.Addr().String() + "/d?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			conn, err := pgwire.Open(t.Context(), config, most)
			if c.greets && err == nil {
				_, err = conn.Exec(t.Context(), "select 1").ReadAll()
				_ = conn.Conn().Close()
			}
			if large, is := errors.AsType[*pgwire.TooLargeError](err); !is || large.Most != most {
				t.Errorf("it ends with %v", err)
			}
			if n := <-taken; n > most+between {
				t.Errorf("%d bytes were taken of it", n)
			}
		})
	}
}

// says is a server for one connection that says something over and over, once it was asked when it greets, and returns
// how many bytes it got rid of, until nobody takes them or there were enough.
func says(listener net.Listener, greets bool, something []byte, enough int) (n int) {
	conn, err := listener.Accept()
	if err != nil {
		return 0
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return 0
	}
	if greets {
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return 0
		}
		if _, err := b.Receive(); err != nil {
			return 0
		}
	}
	var many []byte
	for range 1000 {
		many = append(many, something...)
	}
	for n < enough {
		k, err := conn.Write(many)
		if n += k; err != nil {
			break
		}
	}
	return n
}
