package pgwire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Loop serves many connections from one goroutine. All its methods but Wake are for that goroutine. It is better not
// locked to its thread: whenever the runtime takes its turn away, each 10 ms, two threads would have to be woken to
// give it back.
//
// Sending and receiving are raw system calls: they never wait. Waiting is one, too, while answers come quickly, so that
// they cost no hand-over in the runtime: then the garbage collector waits for 10 ms at most. When a wait of that length
// was in vain the next ones are ordinary, until one is short again. A raw wait is not made shorter than it is: a timer
// that is due before the kernel's next tick has to be programmed each time, which costs more than the wait itself.
type Loop struct {
	epoll  int
	wake   int // an eventfd
	links  []*Link
	free   []int
	events []unix.EpollEvent
	in     []byte
	spec   unix.Timespec // of the wait under way: memory that does not move
	coarse bool          // the kernel waits in milliseconds only
	calm   bool          // the last raw wait was in vain
	ring   *ring         // instead of epoll; or nil
	uses   uint32        // of slots

	punctual bool
}

// rawWait is for how long a wait may hold up the runtime, and brief what ends ordinary waits.
const (
	rawWait = 10 * time.Millisecond
	brief   = time.Millisecond
)

// fromHere is how many links make io_uring worth it.
const fromHere = 4

// NewLoop makes a loop that so many links are to be added to. For many it uses io_uring where this kernel has it and
// lets us, and locks the goroutine to its thread for good (runtime.LockOSThread), because a ring belongs to a thread.
func NewLoop(links int) (*Loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1})
	}
	if err != nil {
		_ = unix.Close(epoll)
		return nil, os.NewSyscallError("eventfd", err)
	}
	l := &Loop{epoll: epoll, wake: wake, events: make([]unix.EpollEvent, 128), in: make([]byte, 64<<10)}
	if links >= fromHere {
		runtime.LockOSThread()
		if l.ring, err = newRing(wake); err != nil {
			l.ring = nil
			runtime.UnlockOSThread()
		}
	}
	return l, nil
}

// Punctual has waits end when they are to, not up to 50 µs later, which costs some processor time.
func (l *Loop) Punctual() { l.punctual = true }

// Wake has the Wait under way, or the next one, return. It may come from any goroutine, before Close.
func (l *Loop) Wake() {
	_, _ = unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it fails when 2^64 are waiting
}

// Close ends all connections.
func (l *Loop) Close() {
	for _, k := range l.links {
		if k != nil {
			k.Close()
		}
	}
	if l.ring != nil {
		l.ring.close()
	}
	_ = unix.Close(l.wake)
	_ = unix.Close(l.epoll)
}

// Answer takes an answer apart as it comes: a Reply, or what reads the protocol of another database.
type Answer interface {
	// Reset has another answer begin.
	Reset()
	// Feed takes the next bytes, as Reply's does.
	Feed(data []byte) (used int, done bool, err error)
}

// Link is a connection in a Loop.
type Link struct {
	Reply Reply // of the last request; reset by Send
	PID   uint32
	Owner int // for whoever adds it: which of theirs it is

	loop    *Loop
	fd      int
	tls     *sealed // nil without
	answer  Answer  // &Reply, but of another database
	bye     []byte  // what ends a session
	slot    int
	use     uint32 // of the slot: what comes for former ones is not for this one
	unsent  []byte // with io_uring the request under way
	pending bool   // an answer is awaited
}

// Detached is a connection on its way to a Loop, from whichever goroutine made it.
type Detached struct {
	PID    uint32
	fd     int
	tls    *sealed
	answer Answer
	bye    []byte
}

// Detach takes the descriptor of a connection, whose answers are all read. The Conn is not used after that.
func (c *Conn) Detach() (*Detached, error) {
	if c.lost != nil {
		return nil, &LostError{c.lost}
	}
	var fd int
	var over *sealed
	switch s := c.socket.(type) {
	case *descriptor:
		s.mu.Lock()
		fd, s.closed = s.fd, true
		s.mu.Unlock()
	case waiting:
		conn := s.conn
		if r, ok := conn.(readBy); ok {
			// What connecting left reading ends with an answer: see hijack.
			if _, err := c.Do(""); err != nil {
				_ = conn.Close()
				return nil, err
			}
			conn = r.Conn
		}
		var err error
		if over, fd, err = unwrap(conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	c.lost = errors.New("a loop has it")
	if err := alone(fd); err != nil {
		return nil, err
	}
	return &Detached{PID: c.PID, fd: fd, tls: over, bye: []byte{'X', 0, 0, 0, 4}}, nil
}

// Detach takes the socket of a connection to another database, whose answers are all read so far; below TLS it is one
// of Below. The connection is not used after that. Bye is what ends a session.
func Detach(conn net.Conn, answer Answer, bye []byte) (*Detached, error) {
	over, fd, err := unwrap(conn)
	if err == nil {
		err = alone(fd)
	}
	if err != nil {
		return nil, err
	}
	return &Detached{fd: fd, tls: over, answer: answer, bye: bye}, nil
}

// alone has a descriptor wait by itself, for so long as a loop of it alone may; else it is closed.
func alone(fd int) error {
	timeout := unix.NsecToTimeval(int64(rawWait))
	err := unix.SetNonblock(fd, false)
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	}
	if err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("setsockopt", err)
	}
	return nil
}

// unwrap takes the socket from below all that stands on it, TLS among that; without TLS there is no sealed.
func unwrap(conn net.Conn) (*sealed, int, error) {
	over, _ := conn.(*tls.Conn)
	var below *line
	bare := conn
	for more := true; more; {
		switch c := bare.(type) {
		case *line:
			below, bare = c, c.Conn
		case interface{ NetConn() net.Conn }:
			bare = c.NetConn()
		default:
			more = false
		}
	}
	if over != nil && below == nil {
		return nil, 0, fmt.Errorf("a loop has no use for TLS on a %T", bare)
	}
	fd, ok, err := detach(bare)
	if err == nil && !ok {
		err = fmt.Errorf("a loop has no use for a %T", bare)
	}
	if over == nil || err != nil {
		return nil, fd, err
	}
	below.taken = true
	return &sealed{conn: over, line: below}, fd, nil
}

// Close ends a connection that no loop took.
func (d *Detached) Close() { _ = unix.Close(d.fd) }

// Add takes a connection into the loop.
func (l *Loop) Add(d *Detached) (*Link, error) {
	k := &Link{PID: d.PID, loop: l, fd: d.fd, tls: d.tls, answer: d.answer, bye: d.bye, slot: len(l.links)}
	if k.answer == nil {
		k.answer = &k.Reply
	}
	if n := len(l.free); n > 0 {
		k.slot, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.links = append(l.links, nil)
	}
	l.uses++
	k.use = l.uses
	var err error
	if l.ring != nil {
		err = l.ring.receive(k)
	} else {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(k.slot)}
		err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, k.fd, &event))
	}
	if err != nil {
		l.free = append(l.free, k.slot)
		d.Close()
		return nil, err
	}
	l.links[k.slot] = k
	return k, nil
}

// name is how completions speak of a link.
func (k *Link) name() uint64 { return uint64(k.use&(1<<30-1))<<32 | uint64(k.slot) }

// Close ends the connection. The server notices.
func (k *Link) Close() {
	if k.fd < 0 {
		return
	}
	l := k.loop
	if l.links[k.slot] == k {
		l.links[k.slot] = nil
		l.free = append(l.free, k.slot)
	}
	if l.ring != nil && l.ring.queued > 0 {
		_ = l.ring.enter(0, 0, true) // what is queued names descriptors
	}
	if bye, err := k.seal(k.bye); err == nil {
		_, _, _ = rawSend(k.fd, bye)
	}
	if l.ring != nil {
		_ = unix.Shutdown(k.fd, unix.SHUT_RDWR) // the ring holds the socket, too, until receiving ends
	}
	_ = unix.Close(k.fd)
	k.fd = -1
}

// Send sends a request, whose answer Wait will tell of. What the socket does not take at once goes when it does.
func (k *Link) Send(request []byte) error {
	k.answer.Reset()
	k.pending = true
	request, err := k.seal(request)
	if err != nil {
		return k.over(err)
	}
	if l := k.loop; l.ring != nil {
		k.unsent = append(k.unsent[:0], request...)
		if err := l.ring.send(k); err != nil {
			return k.over(err)
		}
		return nil
	}
	n, blocked, err := rawSend(k.fd, request)
	if err != nil {
		return k.over(os.NewSyscallError("send", err))
	}
	if blocked {
		k.unsent = append(k.unsent, request[n:]...)
		return k.want(unix.EPOLLIN | unix.EPOLLOUT)
	}
	return nil
}

// seal gives what goes over the socket for a request.
func (k *Link) seal(request []byte) ([]byte, error) {
	if k.tls == nil {
		return request, nil
	}
	return k.tls.seal(request)
}

// want says which events matter.
func (k *Link) want(events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(k.slot)}
	if err := unix.EpollCtl(k.loop.epoll, unix.EPOLL_CTL_MOD, k.fd, &event); err != nil {
		return k.over(os.NewSyscallError("epoll_ctl", err))
	}
	return nil
}

func (k *Link) flush() error {
	n, blocked, err := rawSend(k.fd, k.unsent)
	switch {
	case err != nil:
		return k.over(os.NewSyscallError("send", err))
	case blocked:
		k.unsent = k.unsent[n:]
		return nil
	}
	k.unsent = nil
	return k.want(unix.EPOLLIN)
}

func (k *Link) over(err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("the server closed it")
	}
	if k.Reply.Err != nil {
		err = k.Reply.Err
	}
	k.pending = false
	return &LostError{err}
}

// Wait waits until something happens or the time is over, less than 0 being without end, or returns before. It calls
// ready for every link whose answer is whole, or which has ended (a LostError; it is to be closed). An error of the
// server's is in Reply.Err. Ready may send on any link, and add and close links.
func (l *Loop) Wait(limit time.Duration, ready func(*Link, error)) error {
	if l.ring != nil {
		return l.waitRing(limit, ready)
	}
	if k := l.only(limit); k != nil {
		if done, err := k.receive(0); done || err != nil {
			ready(k, err)
		}
		return nil
	}
	n, err := l.wait(limit)
	if err != nil {
		return err
	}
	for i := range l.events[:n] {
		e := &l.events[i]
		if e.Fd < 0 {
			var b [8]byte
			_, _ = unix.Read(l.wake, b[:]) // nothing to read is as well
			continue
		}
		k := l.links[e.Fd]
		if k == nil { // closed by what came before
			continue
		}
		if e.Events&unix.EPOLLOUT != 0 {
			if err := k.flush(); err != nil {
				ready(k, err)
				continue
			}
		}
		if e.Events&^unix.EPOLLOUT != 0 {
			if done, err := k.receive(unix.MSG_DONTWAIT); done || err != nil {
				ready(k, err)
			}
		}
	}
	return nil
}

// only is the one link that there is, when nothing but its answer has to be waited for.
func (l *Loop) only(limit time.Duration) *Link {
	if l.calm || len(l.links) != 1 || l.links[0] == nil || limit >= 0 && limit < rawWait {
		return nil
	}
	if k := l.links[0]; k.pending && k.unsent == nil {
		return k
	}
	return nil
}

// receive takes what is there, and reports whether the answer is whole.
func (k *Link) receive(flags uintptr) (bool, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(k.fd), uintptr(unsafe.Pointer(&k.loop.in[0])),
		uintptr(len(k.loop.in)), flags, 0, 0)
	switch {
	case errno == unix.EAGAIN:
		k.loop.calm = flags == 0
		return false, nil
	case errno == unix.EINTR:
		return false, nil
	case errno != 0:
		return false, k.over(os.NewSyscallError("recv", errno))
	case n == 0:
		return false, k.over(io.EOF)
	}
	return k.decode(k.loop.in[:n])
}

// decode reads what came, and reports whether the answer is whole.
func (k *Link) decode(data []byte) (done bool, err error) {
	if k.tls == nil {
		return k.taken(data)
	}
	done, err = k.tls.open(data, k.taken)
	if lost := (*LostError)(nil); err != nil && !errors.As(err, &lost) {
		err = k.over(err)
	}
	return done, err
}

func (k *Link) taken(data []byte) (bool, error) {
	for len(data) > 0 {
		used, done, err := k.answer.Feed(data)
		if err != nil {
			return false, k.over(err)
		}
		if data = data[used:]; done && len(data) > 0 {
			// Notices and parameters may follow; another answer cannot, one request being under way.
			var rest Reply
			if _, again, err := rest.Feed(data); again || err != nil || k.answer != &k.Reply {
				return false, k.over(fmt.Errorf("%d bytes after the end of an answer", len(data)))
			}
			data = nil
		}
		if done && k.pending {
			k.pending = false
			return true, nil
		}
	}
	return false, nil
}

// waitRing is Wait with io_uring.
func (l *Loop) waitRing(limit time.Duration, ready func(*Link, error)) error {
	if _, err := l.wait(limit); err != nil {
		return err
	}
	for {
		c, ok := l.ring.next()
		if !ok {
			return nil
		}
		if c.user == aboutWake {
			var b [8]byte
			_, _ = unix.Read(l.wake, b[:])
			if c.flags&moreToCome == 0 {
				l.ring.pollWake(l.wake)
			}
			continue
		}
		done, err := false, error(nil)
		k := l.links[uint32(c.user)]
		if k != nil && uint64(k.use&(1<<30-1)) != c.user>>32&(1<<30-1) {
			k = nil
		}
		switch about := c.user &^ (1<<62 - 1); {
		case about == aboutSend && k != nil:
			err = k.over(os.NewSyscallError("send", syscall.Errno(-c.res)))
		case about == aboutRecv && k != nil:
			done, err = k.received(c)
		}
		if c.flags&hasBuffer != 0 {
			l.ring.offer(uint16(c.flags >> 16))
		}
		if done || err != nil {
			ready(k, err)
		}
	}
}

// received takes a completion of receiving, and reports whether the answer is whole.
func (k *Link) received(c completion) (done bool, err error) {
	switch errno := syscall.Errno(-c.res); {
	case c.res > 0:
		done, err = k.decode(k.loop.ring.buffer(c))
	case c.res == 0:
		return false, k.over(io.EOF)
	case errno != unix.ENOBUFS && errno != unix.EINTR && errno != unix.EAGAIN:
		return false, k.over(os.NewSyscallError("recv", errno))
	}
	if err == nil && c.flags&moreToCome == 0 { // all buffers were full
		if err = k.loop.ring.receive(k); err != nil {
			err = k.over(err)
		}
	}
	return done, err
}

// wait gives the number of events.
func (l *Loop) wait(limit time.Duration) (n int, err error) {
	call := l.epollWait
	if l.ring != nil {
		call = l.ring.wait
	}
	if l.punctual && limit > 0 && limit < rawWait { // of the thread, which a loop may leave between two waits
		_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
	}
	var errno syscall.Errno
	if l.calm {
		began := time.Now()
		n, errno = call(limit, false)
		l.calm = n == 0 || time.Since(began) > brief
	} else {
		first := limit
		if first < 0 || first > rawWait {
			first = rawWait
		}
		n, errno = call(first, true)
		l.calm = n == 0 && errno == 0 && first == rawWait
	}
	if errno != 0 && errno != unix.EINTR {
		return 0, os.NewSyscallError("wait for answers", errno)
	}
	return max(n, 0), nil
}

func (l *Loop) epollWait(limit time.Duration, raw bool) (int, syscall.Errno) {
	call := syscall.Syscall6
	if raw {
		call = syscall.RawSyscall6
	}
	events, most := uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events))
	if !l.coarse {
		l.spec = unix.NsecToTimespec(int64(limit))
		at := uintptr(unsafe.Pointer(&l.spec))
		if limit < 0 {
			at = 0
		}
		n, _, errno := call(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), events, most, at, 0, 0)
		if errno != unix.ENOSYS && errno != unix.EPERM {
			return int(n), errno
		}
		l.coarse = true // before Linux 5.11
	}
	millis := -1
	if limit >= 0 {
		millis = int((limit + time.Millisecond - 1) / time.Millisecond)
	}
	n, _, errno := call(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), events, most, uintptr(millis), 0, 0)
	return int(n), errno
}

// rawSend sends what the socket takes.
func rawSend(fd int, data []byte) (sent int, blocked bool, err error) {
	for sent < len(data) {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[sent])),
			uintptr(len(data)-sent), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return sent, true, nil
		default:
			return sent, false, errno
		}
	}
	return sent, false, nil
}
