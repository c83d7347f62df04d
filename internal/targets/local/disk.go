//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// deviceName returns what the scenario's files call data disk i: /dev/sdb for the first, /dev/sdz, /dev/sdaa and so on.
func deviceName(i int) string {
	letters := ""
	for n := i + 2; n > 0; n = (n - 1) / 26 { // sda, number 1, is the system disk
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return "/dev/sd" + letters
}

func imageName(device string) string { return path.Base(device) + ".img" }

// store is a folder of the run's own on a file system that holds data disks.
type store struct {
	dir  string
	root *os.Root
}

// deal gives a sandbox its next data disk, on the store whose turn it is.
func (c *cluster) deal(b *sandbox, i int, size int64, turn int) {
	device, s := deviceName(i), c.stores[turn%len(c.stores)]
	if len(c.deals) > 0 {
		s = c.stores[c.deals[i%len(c.deals)]]
	}
	b.disks = append(b.disks, target.Disk{Device: device, Path: filepath.Join(s.dir, b.name, imageName(device)),
		Bytes: size, File: true, ID: c.mark[:markLength/4] + "-" + b.name + "-" + path.Base(device)})
	b.at = append(b.at, s)
}

// turn is the turn of the first of so many disks of a new member.
func (c *cluster) turn(disks int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.dealt
	c.dealt += disks
	return first
}

// tellStores says where the disks of a member lie, where that is not one place for all.
func (c *cluster) tellStores(b *sandbox) {
	if len(c.stores) < 2 {
		return
	}
	var parts []string
	for i, d := range b.disks {
		parts = append(parts, path.Base(d.Device)+" in "+filepath.Dir(b.at[i].dir))
	}
	c.log("disks of %s: %s", b.name, strings.Join(parts, ", "))
}

// bytesOn is how much of a sandbox's disks lies on a store.
func (b *sandbox) bytesOn(s *store) (total int64) {
	for i, at := range b.at {
		if at == s {
			total += b.disks[i].Bytes
		}
	}
	return total
}

// makeDisk creates an empty disk; with space, its space is taken from the file system at once.
func (c *cluster) makeDisk(b *sandbox, i int, space bool) (err error) {
	d, s := b.disks[i], b.at[i]
	f, err := s.root.OpenFile(path.Join(b.name, imageName(d.Device)), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return explain(err, d.Path, d.Bytes)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	taken := true
	if space {
		taken, err = allocate(f, d.Bytes)
	} else {
		err = f.Truncate(d.Bytes)
	}
	if err == nil {
		err = c.give(s.root, path.Join(b.name, imageName(d.Device)))
	}
	if err != nil {
		return explain(err, d.Path, d.Bytes)
	}
	c.tellSparse(s, taken)
	return nil
}

func (c *cluster) tellSparse(s *store, taken bool) {
	if !taken {
		c.once("sparse "+s.dir, "data disks are sparse: the file system of %s cannot preallocate, so a full disk may show "+
			"mid-run", s.dir)
	}
}

// allocate gives a file its length and space; taken is false when the file system can only do the first.
func allocate(f *os.File, size int64) (taken bool, err error) {
	err = retry(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, f.Truncate(size)
	}
	return err == nil, err
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// copyDisks gives a new sandbox the contents of another's disks.
func (c *cluster) copyDisks(ctx context.Context, from, to *sandbox) error {
	for i := range to.at {
		d := to.disks[i]
		src := path.Join(from.name, imageName(from.disks[i].Device))
		if err := c.copyImage(ctx, from.at[i], src, to.at[i], path.Join(to.name, imageName(d.Device)),
			d.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// copyImage copies one disk file from store to store: sharing blocks where the file system can, else extent by extent
// into preallocated space. An unfinished copy is left for the caller to remove.
func (c *cluster) copyImage(ctx context.Context, source *store, from string, s *store, to string,
	size int64) (err error) {
	src, err := source.root.Open(from)
	if err != nil {
		return explain(err, filepath.Join(source.dir, from), 0)
	}
	defer src.Close()
	dst, err := s.root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return explain(err, filepath.Join(s.dir, to), size)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := c.give(s.root, to); err != nil {
		return explain(err, filepath.Join(s.dir, to), 0)
	}
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil {
		return nil
	}
	if err := c.room(s, size); err != nil {
		return err
	}
	taken, err := allocate(dst, size)
	if err == nil {
		c.tellSparse(s, taken)
		err = copyExtents(ctx, dst, src, size)
	}
	if err != nil {
		return explain(err, filepath.Join(s.dir, to), size)
	}
	return nil
}

// copyChunk is how much is copied between looks at the context.
const copyChunk = 8 << 20

// copyExtents copies the written parts of src; dst, of the same size, reads as zeros elsewhere already.
func copyExtents(ctx context.Context, dst, src *os.File, size int64) error {
	for at := int64(0); at < size; {
		data, err := src.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole is left
		}
		end := size
		switch {
		case err != nil:
			data = at // no map of extents here: copy all
		default:
			if end, err = src.Seek(data, unix.SEEK_HOLE); err != nil {
				end = size
			}
		}
		for at = data; at < min(end, size); {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := copyRange(dst, src, at, int(min(copyChunk, min(end, size)-at)))
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("copy: %w at byte %d of %d", io.ErrUnexpectedEOF, at, size)
			}
			at += int64(n)
		}
	}
	return nil
}

func copyRange(dst, src *os.File, at int64, n int) (int, error) {
	from, to := at, at
	var done int
	err := retry(func() (err error) {
		done, err = unix.CopyFileRange(int(src.Fd()), &from, int(dst.Fd()), &to, n, 0)
		return err
	})
	switch {
	case err == nil:
		return done, nil
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS),
		errors.Is(err, unix.EOPNOTSUPP):
		written, err := io.Copy(io.NewOffsetWriter(dst, at), io.NewSectionReader(src, at, int64(n)))
		return int(written), err
	}
	return done, err
}
