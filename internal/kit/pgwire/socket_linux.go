package pgwire

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// blocking takes the connection out of the netpoller where it is a bare socket.
func blocking(conn net.Conn) (socket, error) {
	fd, ok, err := detach(conn)
	if err != nil || !ok {
		return waiting{conn}, err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &descriptor{fd: fd}, nil
}

// detach gives a descriptor of the connection that the runtime knows nothing of, and closes the one it knows. File
// would not do: its copy is registered as well. It is false for a connection that is more than a socket.
func detach(conn net.Conn) (fd int, ok bool, err error) {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return 0, false, nil
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var failed error
	err = raw.Control(func(theirs uintptr) { fd, failed = unix.FcntlInt(theirs, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = failed
	}
	_ = conn.Close() // the descriptor goes on
	if err != nil {
		return 0, false, os.NewSyscallError("fcntl", err)
	}
	return fd, true, nil
}

// descriptor is a blocking socket.
type descriptor struct {
	fd     int
	mu     sync.Mutex // of closed, so that stop never meets a descriptor that is another's by now
	closed bool
}

func (d *descriptor) read(b []byte) (int, error) {
	for {
		n, err := unix.Read(d.fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d *descriptor) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.SendmsgN(d.fd, b, nil, nil, unix.MSG_NOSIGNAL)
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("send", err)
		}
		b = b[max(n, 0):]
	}
	return nil
}

func (d *descriptor) readable() bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(d.fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n > 0
}

func (d *descriptor) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		_ = unix.Shutdown(d.fd, unix.SHUT_RDWR) // what it ends says so itself
	}
}

func (d *descriptor) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return os.NewSyscallError("close", unix.Close(d.fd))
}
