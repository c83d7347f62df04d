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

	"golang.org/x/sys/unix"

	"plimsoll/internal/target"
)

// deviceName is what the scenario's files call data disk i: /dev/sdb for the first, /dev/sdz, /dev/sdaa and so on.
func deviceName(i int) string {
	letters := ""
	for n := i + 2; n > 0; n = (n - 1) / 26 { // sda, number 1, is the system disk
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return "/dev/sd" + letters
}

func imageName(device string) string { return path.Base(device) + ".img" }

func (c *cluster) disk(vm string, i int, size int64) target.Disk {
	device := deviceName(i)
	return target.Disk{Device: device, Path: filepath.Join(c.workDir, vm, imageName(device)), Bytes: size, File: true,
		ID: c.mark[:markLength/4] + "-" + vm + "-" + path.Base(device)}
}

func sum(disks []target.Disk) (total int64) {
	for _, d := range disks {
		total += d.Bytes
	}
	return total
}

// makeDisk creates an empty disk whose space is taken from the file system at once.
func (c *cluster) makeDisk(b *sandbox, d target.Disk) (err error) {
	f, err := c.work.OpenFile(path.Join(b.name, imageName(d.Device)), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return explain(err, d.Path, d.Bytes)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	taken, err := allocate(f, d.Bytes)
	if err == nil {
		err = c.give(c.work, path.Join(b.name, imageName(d.Device)))
	}
	if err != nil {
		return explain(err, d.Path, d.Bytes)
	}
	c.tellSparse(taken)
	return nil
}

func (c *cluster) tellSparse(taken bool) {
	if !taken {
		c.once("sparse", "data disks are sparse: the file system of %s cannot preallocate, so a full disk may show "+
			"mid-run", c.workDir)
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
	for i, d := range to.disks {
		src := path.Join(from.name, imageName(from.disks[i].Device))
		if err := c.copyImage(ctx, src, path.Join(to.name, imageName(d.Device)), d.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// copyImage copies one disk file below work: sharing blocks where the file system can, else extent by extent into
// preallocated space. An unfinished copy is left for the caller to remove.
func (c *cluster) copyImage(ctx context.Context, from, to string, size int64) (err error) {
	src, err := c.work.Open(from)
	if err != nil {
		return explain(err, filepath.Join(c.workDir, from), 0)
	}
	defer src.Close()
	dst, err := c.work.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return explain(err, filepath.Join(c.workDir, to), size)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := c.give(c.work, to); err != nil {
		return explain(err, filepath.Join(c.workDir, to), 0)
	}
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil {
		return nil
	}
	if err := c.room(size); err != nil {
		return err
	}
	taken, err := allocate(dst, size)
	if err == nil {
		c.tellSparse(taken)
		err = copyExtents(ctx, dst, src, size)
	}
	if err != nil {
		return explain(err, filepath.Join(c.workDir, to), size)
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
