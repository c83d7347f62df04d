package pgwire

import "net"

// socket is a connection's bytes. Read gives io.EOF at the end.
type socket interface {
	read([]byte) (int, error)
	write([]byte) error // all of it
	readable() bool     // whether something can be read, as far as that can be told without waiting
	stop()              // from any goroutine: reading and writing end
	close() error
}

// waiting is a connection that Go's netpoller waits for: one with TLS, and every one where there is no better.
type waiting struct{ conn net.Conn }

func (w waiting) read(b []byte) (int, error) { return w.conn.Read(b) }
func (w waiting) readable() bool             { return false }
func (w waiting) stop()                      { _ = w.conn.Close() } // its reader says what happened
func (w waiting) close() error               { _ = w.conn.Close(); return nil }

func (w waiting) write(b []byte) error {
	_, err := w.conn.Write(b)
	return err
}
