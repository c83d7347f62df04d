package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
)

// Below is a connection for TLS to stand on whose socket a loop is to take, see Detach.
func Below(conn net.Conn) net.Conn { return &line{Conn: conn} }

// line is a connection below TLS. Once a loop has taken its socket it lies in memory: TLS reads what the loop received,
// and the loop sends what TLS wrote.
type line struct {
	net.Conn
	taken   bool
	in, out []byte
}

// Read implements net.Conn. TLS may ask again after errAgain.
func (l *line) Read(p []byte) (int, error) {
	if !l.taken {
		return l.Conn.Read(p)
	}
	if len(l.in) == 0 {
		return 0, errAgain
	}
	n := copy(p, l.in)
	l.in = l.in[n:]
	return n, nil
}

// Write implements net.Conn.
func (l *line) Write(p []byte) (int, error) {
	if !l.taken {
		return l.Conn.Write(p)
	}
	l.out = append(l.out, p...)
	return len(p), nil
}

// errAgain is temporary, as net.Error has it, and so TLS goes on where it was.
var errAgain net.Error = &net.OpError{Op: "read", Net: "memory", Err: os.ErrDeadlineExceeded}

// lines has connections be lines.
func lines(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (
	net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return Below(conn), nil
	}
}

// sealed is TLS in a loop.
type sealed struct {
	conn  *tls.Conn
	line  *line
	plain [16 << 10]byte // of a record
}

// seal gives what goes over the socket for a request.
func (s *sealed) seal(request []byte) ([]byte, error) {
	_, err := s.conn.Write(request)
	out := s.line.out
	s.line.out = out[:0]
	return out, err
}

// open gives take what came, opened.
func (s *sealed) open(data []byte, take func([]byte) (bool, error)) (done bool, err error) {
	s.line.in = data
	for {
		n, err := s.conn.Read(s.plain[:])
		if n > 0 {
			whole, failed := take(s.plain[:n])
			if done = done || whole; failed != nil {
				return false, failed
			}
		}
		switch {
		case err == nil:
		case done || errors.Is(err, errAgain): // an end after an answer is told when the socket ends
			return done, nil
		default:
			return false, err
		}
	}
}
