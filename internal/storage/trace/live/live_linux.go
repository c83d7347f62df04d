package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Block is a block device.
type Block struct {
	Path         string
	major, minor uint32
	disk         [2]uint32 // of the disk, where this is a partition of one
	first, end   uint64    // sectors of the partition; end is 0 of a disk
}

// Device looks whether a path is a block device, without opening it.
func Device(path string) (Block, bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return Block{}, false
	}
	b := Block{Path: path, major: unix.Major(st.Rdev), minor: unix.Minor(st.Rdev)}
	b.disk = [2]uint32{b.major, b.minor}
	dir := fmt.Sprintf("/sys/dev/block/%d:%d", b.major, b.minor)
	start, err := figure(dir + "/start")
	if err != nil {
		return b, true // a disk
	}
	size, err := figure(dir + "/size")
	above, errAbove := os.ReadFile(dir + "/../dev")
	if err == nil && errAbove == nil {
		if n, err := fmt.Sscanf(string(above), "%d:%d", &b.disk[0], &b.disk[1]); n == 2 && err == nil {
			b.first, b.end = start, start+size
		}
	}
	return b, true
}

func figure(name string) (uint64, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
}

// Numbers are the device's, like 8,16.
func (b Block) Numbers() string { return fmt.Sprintf("%d,%d", b.major, b.minor) }

// ID is the disk as events have it: major<<20 + minor. Events of a partition are of its disk.
func (b Block) ID() uint32 { return b.disk[0]<<20 | b.disk[1] }

// filter is the kernel's condition for events: of the disk, and within the partition.
func (b Block) filter() string {
	f := fmt.Sprintf("dev == %d", b.ID())
	if b.end > 0 {
		f += fmt.Sprintf(" && sector >= %d && sector < %d", b.first, b.end)
	}
	return f
}

// Options of a session.
type Options struct {
	Duration    time.Duration
	BufferBytes int64 // of each CPU; 0 for the kernel's own
}

// events are the trace points that are switched on.
var events = []string{"block_bio_queue", "block_bio_backmerge", "block_bio_frontmerge", "block_split",
	"block_rq_insert", "block_rq_issue", "block_rq_requeue", "block_rq_complete", "block_bio_complete"}

// Session is tracing that goes on. It is read as text until its time is over.
type Session struct {
	ctx   context.Context
	dir   string
	mount int // a detached mount of tracefs; -1 when it is mounted anyway
	pipe  int
	ends  time.Time
	ended bool
}

const prefix = "plimsoll-"

// Start switches tracing on. ctx ends it early; what was seen until then can still be read.
func Start(ctx context.Context, b Block, o Options) (s *Session, err error) {
	s = &Session{ctx: ctx, mount: -1, pipe: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	root, err := s.tracefs()
	if err != nil {
		return s, err
	}
	removeStale(root)
	dir := filepath.Join(root, "instances", prefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return s, permission("a tracefs instance cannot be made", err)
	}
	s.dir = dir
	if o.BufferBytes > 0 {
		if err := s.set("buffer_size_kb", strconv.FormatInt(max(o.BufferBytes>>10, 1), 10)); err != nil {
			return s, err
		}
	}
	for _, name := range events {
		on := filepath.Join("events/block", name)
		if _, err := os.Stat(filepath.Join(dir, on)); err != nil {
			continue // a kernel that has not this one
		}
		if err := errors.Join(s.set(on+"/filter", b.filter()), s.set(on+"/enable", "1")); err != nil {
			return s, err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "events/block/block_rq_issue")); err != nil {
		return s, errors.New("this kernel has no trace points of block I/O (CONFIG_BLOCK and CONFIG_EVENT_TRACING)")
	}
	if s.pipe, err = unix.Open(filepath.Join(dir, "trace_pipe"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC,
		0); err != nil {
		return s, permission("trace_pipe cannot be opened", err)
	}
	s.ends = time.Now().Add(o.Duration)
	return s, nil
}

// tracefs finds the file system where it is mounted, or mounts it for this process alone.
func (s *Session) tracefs() (string, error) {
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if _, err := os.Stat(dir + "/instances"); err == nil {
			return dir, nil
		}
	}
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", permission("tracefs is not mounted and cannot be", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return "", permission("tracefs is not mounted and cannot be", err)
	}
	if s.mount, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0); err != nil {
		s.mount = -1
		return "", permission("tracefs is not mounted and cannot be", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", s.mount), nil
}

func permission(what string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: that wants root (CAP_SYS_ADMIN), and a kernel that is not locked down: %w", what, err)
	case errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: this kernel has no tracefs (CONFIG_FTRACE): %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (s *Session) set(name, value string) error {
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(value), 0o200); err != nil {
		return permission("tracing cannot be set up", err)
	}
	return nil
}

// removeStale removes instances of processes that are no more.
func removeStale(root string) {
	found, _ := filepath.Glob(filepath.Join(root, "instances", prefix+"*"))
	for _, dir := range found {
		pid, err := strconv.ParseUint(strings.TrimPrefix(filepath.Base(dir), prefix), 10, 31)
		if err == nil && pid > 0 && errors.Is(unix.Kill(int(pid), 0), unix.ESRCH) {
			_ = os.Remove(dir)
		}
	}
}

// Read gives the text. When the time is over tracing is switched off, also while a device asks more than is read, and
// what is left in the buffer is given, then io.EOF.
func (s *Session) Read(p []byte) (int, error) {
	for {
		left := time.Until(s.ends)
		if !s.ended && (left <= 0 || s.ctx.Err() != nil) {
			s.ended = true
			if err := s.set("tracing_on", "0"); err != nil {
				return 0, err
			}
		}
		n, err := unix.Read(s.pipe, p)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil && !errors.Is(err, unix.EAGAIN):
			return 0, fmt.Errorf("trace_pipe: %w", err)
		case s.ended:
			return 0, io.EOF
		}
		wait := min(left, 50*time.Millisecond) // and no longer, for ctx
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.pipe), Events: unix.POLLIN}}, int(wait.Milliseconds())+1)
	}
}

// Dir is the instance's folder.
func (s *Session) Dir() string { return s.dir }

// Close removes the instance.
func (s *Session) Close() error {
	var err error
	if s.pipe >= 0 {
		err = unix.Close(s.pipe)
		s.pipe = -1
	}
	if s.dir != "" {
		// The kernel holds an instance for a moment after its last reader.
		for range 50 {
			if err = os.Remove(s.dir); err == nil || errors.Is(err, os.ErrNotExist) {
				s.dir, err = "", nil
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			err = fmt.Errorf("the tracefs instance could not be removed: %w", err)
		}
	}
	if s.mount >= 0 {
		err = errors.Join(err, unix.Close(s.mount))
		s.mount = -1
	}
	return err
}
