package pgwire

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is io_uring as a Loop of many links uses it. A request to receive stays with the kernel for each link, whose
// answers come in buffers of the ring, and what is sent goes there with the next wait: many answers and requests share
// a system call. It belongs to the thread that made it; close alone may come from another.
//
// Numbers and structures are those of linux/io_uring.h. Linux 6.1 has all of it.
type ring struct {
	fd       int
	memory   [][]byte // mappings
	sqHead   *uint32
	sqTail   *uint32
	sqMask   uint32
	sqes     []submission
	tail     uint32 // of the submissions, of which queued are not with the kernel yet
	queued   uint32
	cqHead   *uint32
	cqTail   *uint32
	cqMask   uint32
	cqes     []completion
	buffers  []byte
	offers   []offer // buffers that the kernel may fill
	offered  uint16
	argument waitArgument // of the wait under way: memory that does not move
	spec     unix.Timespec
}

type submission struct {
	op, flags   uint8
	priority    uint16
	fd          int32
	_, addr     uint64
	length      uint32
	opFlags     uint32
	user        uint64
	bufferGroup uint16
	_           [3]uint16
	_           [2]uint64
}

type completion struct {
	user  uint64
	res   int32
	flags uint32
}

type offer struct {
	addr uint64
	len  uint32
	id   uint16
	tail uint16 // of all offers, in the first one
}

type waitArgument struct {
	mask     uint64
	maskSize uint32
	_        uint32
	spec     uint64
}

type ringParams struct {
	sqEntries, cqEntries, flags, _, _, features uint32
	_                                           [4]uint32
	sq, cq                                      ringOffsets
}

type ringOffsets struct {
	head, tail, mask, entries, _ uint32
	cqes, array, _               uint32
	_                            uint64
}

const (
	ringEntries = 256
	bufferCount = 256 // a power of 2
	bufferSize  = 4 << 10

	opPollAdd, opSend, opRecv = 6, 26, 27

	// What a completion is about, above the link's slot and generation.
	aboutRecv, aboutSend, aboutWake = 0 << 62, 1 << 62, 2 << 62

	moreToCome = 1 << 1
	hasBuffer  = 1 << 0
)

// newRing makes one that also tells when wake, an eventfd, is written to. The error says that there is none here: the
// kernel is too old, or who set the machine up does not allow it.
func newRing(wake int) (r *ring, err error) {
	const (
		submitAll, cqSize, singleIssuer, deferTaskRun = 1 << 7, 1 << 3, 1 << 12, 1 << 13
		singleMap, extendedArguments                  = 1 << 0, 1 << 8
		atCompletions, atSubmissions                  = 0, 0x10000000
		registerBuffers                               = 22
	)
	p := ringParams{cqEntries: 4 * ringEntries, flags: submitAll | cqSize | singleIssuer | deferTaskRun}
	fd, _, errno := syscall.Syscall(unix.SYS_IO_URING_SETUP, ringEntries, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("io_uring_setup", errno)
	}
	unix.CloseOnExec(int(fd))
	r = &ring{fd: int(fd)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if need := uint32(singleMap | extendedArguments); p.features&need != need {
		return r, errors.New("this kernel's io_uring is too old")
	}
	pages := func(fd int, offset int64, size uintptr, flags int) []byte {
		if err != nil {
			return nil
		}
		var m []byte
		if m, err = unix.Mmap(fd, offset, int(size), unix.PROT_READ|unix.PROT_WRITE, flags); err != nil {
			err = os.NewSyscallError("mmap", err)
			return nil
		}
		r.memory = append(r.memory, m)
		return m
	}
	ends := max(uintptr(p.sq.array)+4*uintptr(p.sqEntries),
		uintptr(p.cq.cqes)+unsafe.Sizeof(completion{})*uintptr(p.cqEntries))
	both := pages(r.fd, atCompletions, ends, unix.MAP_SHARED|unix.MAP_POPULATE)
	entries := pages(r.fd, atSubmissions, unsafe.Sizeof(submission{})*uintptr(p.sqEntries),
		unix.MAP_SHARED|unix.MAP_POPULATE)
	r.buffers = pages(-1, 0, bufferCount*bufferSize, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	offers := pages(-1, 0, bufferCount*unsafe.Sizeof(offer{}), unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return r, err
	}
	word := func(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&both[at])) }
	r.sqHead, r.sqTail, r.sqMask = word(p.sq.head), word(p.sq.tail), *word(p.sq.mask)
	r.cqHead, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.mask)
	r.sqes = unsafe.Slice((*submission)(unsafe.Pointer(&entries[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*completion)(unsafe.Pointer(&both[p.cq.cqes])), p.cqEntries)
	for i, array := uint32(0), unsafe.Slice(word(p.sq.array), p.sqEntries); i < p.sqEntries; i++ {
		array[i] = i
	}
	r.offers = unsafe.Slice((*offer)(unsafe.Pointer(&offers[0])), bufferCount)
	registration := struct {
		at           uint64
		entries      uint32
		group, flags uint16
		_            [3]uint64
	}{at: uint64(uintptr(unsafe.Pointer(&r.offers[0]))), entries: bufferCount}
	_, _, errno = syscall.Syscall6(unix.SYS_IO_URING_REGISTER, fd, registerBuffers,
		uintptr(unsafe.Pointer(&registration)), 1, 0, 0)
	if errno != 0 {
		return r, os.NewSyscallError("io_uring_register", errno)
	}
	for i := range bufferCount {
		r.offer(uint16(i))
	}
	r.pollWake(wake)
	return r, nil
}

// close gives everything back. Links' sockets are closed before.
func (r *ring) close() {
	_ = unix.Close(r.fd)
	for _, m := range r.memory {
		_ = unix.Munmap(m)
	}
	r.memory = nil
}

// offer has the kernel fill a buffer again.
func (r *ring) offer(id uint16) {
	o := &r.offers[int(r.offered)%bufferCount]
	o.addr = uint64(uintptr(unsafe.Pointer(&r.buffers[int(id)*bufferSize])))
	o.len, o.id = bufferSize, id
	r.offered++
	// The tail lies in the upper half of a word of the first offer, whose lower half is that buffer's number.
	first := &r.offers[0]
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&first.id)), uint32(first.id)|uint32(r.offered)<<16)
}

// entry is the next submission to fill in.
func (r *ring) entry() (*submission, error) {
	if r.tail-atomic.LoadUint32(r.sqHead) > r.sqMask {
		if errno := r.enter(0, 0, true); errno != 0 {
			return nil, os.NewSyscallError("io_uring_enter", errno)
		}
	}
	s := &r.sqes[r.tail&r.sqMask]
	*s = submission{}
	r.tail++
	r.queued++
	return s, nil
}

func (r *ring) pollWake(wake int) {
	const multi = 1
	if s, err := r.entry(); err == nil {
		s.op, s.fd, s.length, s.opFlags, s.user = opPollAdd, int32(wake), multi, unix.POLLIN, aboutWake
	}
}

// receive has the kernel give what comes on a link, until that ends.
func (r *ring) receive(k *Link) error {
	const multishot, selectBuffer = 1 << 1, 1 << 5
	s, err := r.entry()
	if err != nil {
		return err
	}
	s.op, s.flags, s.priority, s.fd, s.user = opRecv, selectBuffer, multishot, int32(k.fd), k.name()|aboutRecv
	return nil
}

// send has the kernel send a link's request, which stays as it is until it is answered.
func (r *ring) send(k *Link) error {
	const silentWhenDone = 1 << 6
	s, err := r.entry()
	if err != nil {
		return err
	}
	s.op, s.flags, s.fd, s.user = opSend, silentWhenDone, int32(k.fd), k.name()|aboutSend
	s.addr, s.length = uint64(uintptr(unsafe.Pointer(&k.unsent[0]))), uint32(len(k.unsent))
	s.opFlags = unix.MSG_NOSIGNAL | unix.MSG_WAITALL
	return nil
}

// enter hands over what is queued and waits for so many completions.
func (r *ring) enter(completions uintptr, limit time.Duration, raw bool) syscall.Errno {
	const getEvents, extended = 1 << 0, 1 << 3
	atomic.StoreUint32(r.sqTail, r.tail)
	call := syscall.Syscall6
	if raw {
		call = syscall.RawSyscall6
	}
	r.argument = waitArgument{}
	if completions > 0 && limit >= 0 {
		r.spec = unix.NsecToTimespec(int64(limit))
		r.argument.spec = uint64(uintptr(unsafe.Pointer(&r.spec)))
	}
	n, _, errno := call(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.queued), completions, getEvents|extended,
		uintptr(unsafe.Pointer(&r.argument)), unsafe.Sizeof(r.argument))
	if errno == 0 {
		r.queued -= uint32(n)
	}
	if errno == unix.ETIME || errno == unix.EINTR || errno == unix.EAGAIN || errno == unix.EBUSY {
		errno = 0 // what was queued stays so, and completions are looked at
	}
	return errno
}

// wait waits for completions, and gives how many there are.
func (r *ring) wait(limit time.Duration, raw bool) (int, syscall.Errno) {
	errno := r.enter(1, limit, raw)
	return int(atomic.LoadUint32(r.cqTail) - *r.cqHead), errno
}

// next is the next completion.
func (r *ring) next() (c completion, ok bool) {
	head := *r.cqHead
	if head == atomic.LoadUint32(r.cqTail) {
		return c, false
	}
	c = r.cqes[head&r.cqMask]
	atomic.StoreUint32(r.cqHead, head+1)
	return c, true
}

// buffer returns what came with a completion.
func (r *ring) buffer(c completion) []byte {
	return r.buffers[int(c.flags>>16)*bufferSize:][:c.res]
}
