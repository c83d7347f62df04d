//go:build linux

package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
)

// dir is the working folder's absolute path.
func (h *host) dir() string { return filepath.Join(h.c.workDir, h.b.name, "files") }

// files opens the working folder, which nothing below can lead out of, by name or by symbolic link.
func (h *host) files(ctx context.Context, name string) (*os.Root, error) {
	if err := h.Accessible(ctx); err != nil {
		return nil, err
	}
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("vm %q: file %q: must be a path below the working folder", h.b.name, name)
	}
	root, err := h.c.work.OpenRoot(path.Join(h.b.name, "files"))
	if err != nil {
		return nil, h.fail("", 0, err)
	}
	return root, nil
}

func (h *host) fail(name string, wanted int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("vm %q: %w", h.b.name, explain(err, filepath.Join(h.dir(), name), wanted))
}

// Put implements target.Host. The file is written beside its place and then takes it.
func (h *host) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	root, err := h.files(ctx, name)
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	defer root.Close()
	if err := h.parents(root, name); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	part := path.Join(path.Dir(name), ".put-"+rand.Text())
	f, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("put: %w", h.fail(name, 0, err))
	}
	n, err := io.Copy(f, obedient{ctx, content})
	err = errors.Join(err, f.Chmod(mode.Perm()), f.Close(), h.c.give(root, part))
	if err == nil && mode.Perm()&0o111 != 0 {
		err = released(ctx, root, part)
	}
	if err == nil {
		err = h.Accessible(ctx) // a machine that went off meanwhile has taken nothing
	}
	if err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return fmt.Errorf("put: %w", errors.Join(h.fail(name, n, err), root.Remove(part)))
	}
	return nil
}

// released waits until nobody has a program open for writing: until then the kernel does not run it (ETXTBSY). A
// process that was forked while the program was written has it open up to its own exec. The kernel grants a lease for
// reading when the last writer is gone; a file system without leases is not waited for, nor is a writer of more than
// 10 s, which the start of the program then names.
func released(ctx context.Context, root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() // ends the lease
	for range 10_000 {
		if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); !errors.Is(err, unix.EAGAIN) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// obedient is a stream that ends with its context.
type obedient struct {
	ctx context.Context
	r   io.Reader
}

func (o obedient) Read(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.r.Read(p)
}

// create makes, or empties, a file that belongs to the sandbox's commands, as do the folders above it.
func (h *host) create(ctx context.Context, name string) (*os.File, error) {
	root, err := h.files(ctx, name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := h.parents(root, name); err != nil {
		return nil, err
	}
	f, err := root.Create(name)
	if err == nil {
		err = h.c.give(root, name)
	}
	if err != nil {
		return nil, h.fail(name, 0, err)
	}
	return f, nil
}

// parents makes the folders above a file.
func (h *host) parents(root *os.Root, name string) error {
	for i, r := range name {
		if r != '/' || i == 0 {
			continue
		}
		err := root.Mkdir(name[:i], 0o755)
		if err == nil {
			err = h.c.give(root, name[:i])
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return h.fail(name[:i], 0, err)
		}
	}
	return nil
}

// Get implements target.Host.
func (h *host) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	f, size, err := h.open(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return struct {
		io.Reader
		io.Closer
	}{obedient{ctx, io.NewSectionReader(f, offset, max(0, size-offset))}, f}, nil
}

// open opens a file for reading and tells its length. What a command has put in the place of a file, such as a named
// pipe, is refused and keeps nobody waiting.
func (h *host) open(ctx context.Context, name string, offset int64) (*os.File, int64, error) {
	if offset < 0 {
		return nil, 0, fmt.Errorf("vm %q: file %q: offset %d: must not be negative", h.b.name, name, offset)
	}
	root, err := h.files(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, h.fail(name, 0, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = regular.Kind(info.Mode())
	}
	if err != nil {
		return nil, 0, errors.Join(h.fail(name, 0, err), f.Close())
	}
	return f, info.Size(), nil
}

// Remove implements target.Host.
func (h *host) Remove(ctx context.Context, name string) error {
	root, err := h.files(ctx, name)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	defer root.Close()
	if filepath.Clean(name) == "." {
		return fmt.Errorf("remove: vm %q: file %q: the working folder itself stays", h.b.name, name)
	}
	return wrap("remove", h.fail(name, 0, root.RemoveAll(name)))
}

// Discard implements target.Discarder by punching a hole.
func (h *host) Discard(ctx context.Context, name string, upto int64) error {
	root, err := h.files(ctx, name)
	if err != nil {
		return fmt.Errorf("discard: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("discard: %w", h.fail(name, 0, err))
	}
	defer f.Close()
	const whole = 4096 // only whole blocks are given back; a partial one would be zeroed for nothing
	if upto -= upto % whole; upto <= 0 {
		return nil
	}
	err = retry(func() error {
		return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, upto)
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return wrap("discard", h.fail(name, 0, err))
}

// DialSocket implements target.SocketDialer. The socket is opened below the working folder, and connected to as what
// was opened, so that the length of its path does not matter.
func (h *host) DialSocket(ctx context.Context, name string) (net.Conn, error) {
	root, err := h.files(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", h.fail(name, 0, err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeSocket == 0 {
		return nil, fmt.Errorf("dial: vm %q: file %q: it is no socket", h.b.name, name)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("dial: vm %q: socket %q: %w", h.b.name, name, err)
	}
	return conn, nil
}

// gather is how long a stream lets a busy command write on before it takes what is there.
const gather = 50 * time.Millisecond

// Follow implements target.Follower. The kernel tells when the file was written to (inotify), so that a command is
// looked at when it prints and at no other time.
func (u *command) Follow(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	h := &host{u.c, u.b}
	f, _, err := h.open(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", errors.Join(h.fail(name, 0, fmt.Errorf("inotify: %w", err)), f.Close()))
	}
	s := &stream{
		u:      u,
		ctx:    ctx,
		f:      f,
		offset: offset,
		news:   os.NewFile(uintptr(fd), "inotify"),
		over:   make(chan struct{}),
	}
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd()) // the file that was opened, whatever has its name by now
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		err = h.fail(name, 0, fmt.Errorf("inotify: %w", err))
		return nil, fmt.Errorf("follow: %w", errors.Join(err, s.news.Close(), f.Close()))
	}
	s.waking.Go(func() {
		select {
		case <-u.done:
		case <-ctx.Done():
		case <-s.over:
		}
		_ = s.news.SetReadDeadline(time.Unix(1, 0)) // a Read that waits returns; one that fails has returned
	})
	return s, nil
}

// stream is a file that a command writes.
type stream struct {
	u      *command
	ctx    context.Context
	f      *os.File
	offset int64
	news   *os.File // inotify
	waking sync.WaitGroup
	once   sync.Once
	over   chan struct{}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	var events [4096]byte
	for {
		ended := false
		select {
		case <-s.over:
			return 0, fs.ErrClosed
		case <-s.u.done:
			ended = true // before the look that finds nothing more
		default:
		}
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := s.f.ReadAt(p, s.offset)
		s.offset += int64(n)
		switch {
		case n > 0:
			return n, nil
		case err != nil && !errors.Is(err, io.EOF):
			return 0, err
		case ended:
			return 0, io.EOF
		}
		if _, err := s.news.Read(events[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		select {
		case <-s.u.done:
		default:
			_ = s.u.c.clock.Sleep(s.ctx, gather) // an end is seen above
		}
	}
}

// Close implements io.Closer.
func (s *stream) Close() (err error) {
	s.once.Do(func() {
		close(s.over)
		s.waking.Wait()
		err = errors.Join(s.news.Close(), s.f.Close())
	})
	return err
}
