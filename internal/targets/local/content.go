//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// openDisk opens the file of a data disk.
func (h *host) openDisk(ctx context.Context, device string, flag int) (*os.File, target.Disk, error) {
	if err := h.Accessible(ctx); err != nil {
		return nil, target.Disk{}, err
	}
	i := slices.IndexFunc(h.b.disks, func(d target.Disk) bool { return d.Device == device })
	if i < 0 {
		return nil, target.Disk{}, fmt.Errorf("vm %q: it has no data disk %q", h.b.name, device)
	}
	d := h.b.disks[i]
	if !d.File {
		if flag != os.O_RDONLY && h.c.reading {
			return nil, d, fmt.Errorf("vm %q: %s is only to be read (option devices=read)", h.b.name, d.Path)
		}
		f, err := h.b.raw[i].open(ctx, flag)
		return f, d, wrap(fmt.Sprintf("vm %q", h.b.name), err)
	}
	f, err := h.b.at[i].root.OpenFile(path.Join(h.b.name, imageName(device)), flag, 0)
	if err != nil {
		return nil, d, fmt.Errorf("vm %q: %w", h.b.name, explain(err, d.Path, 0))
	}
	return f, d, nil
}

// OpenDisk implements target.DiskReader.
func (h *host) OpenDisk(ctx context.Context, device string) (target.DiskFile, error) {
	f, d, err := h.openDisk(ctx, device, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open disk: %w", err)
	}
	// Only what is asked for is to be read; that it cannot be helped costs time and nothing else.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM)
	return &diskFile{f, d}, nil
}

// diskFile is the file of a data disk, open for reading.
type diskFile struct {
	f *os.File
	d target.Disk
}

func (d *diskFile) Size() int64  { return d.d.Bytes }
func (d *diskFile) Close() error { return d.f.Close() }

// ReadAt implements io.ReaderAt. The pages that it brought into the cache leave it again.
func (d *diskFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := d.f.ReadAt(p, at)
	_ = unix.Fadvise(int(d.f.Fd()), at, int64(len(p)), unix.FADV_DONTNEED) // what stays costs little
	return n, err
}

// Written implements target.DiskFile. File systems tell data from holes, and most take space that is reserved and was
// never written for a hole; one that knows no holes calls all of a file data, which says nothing. So does a device of
// all of itself: what it holds is not known.
func (d *diskFile) Written(from, to int64) (written int64, known bool, err error) {
	if to = min(to, d.d.Bytes); from < 0 || from > to {
		return 0, false, fmt.Errorf("disk %s: bytes %d to %d: it has %d", d.d.Device, from, to, d.d.Bytes)
	}
	if !d.d.File {
		return 0, false, nil
	}
	// What was written and is yet to reach the disk is data to some file systems and not to others.
	if err := d.f.Sync(); err != nil {
		return 0, false, fmt.Errorf("disk %s: %w", d.d.Device, explain(err, d.d.Path, 0))
	}
	for at := from; at < to; {
		data, err := d.f.Seek(at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO): // only a hole is left
			return written, true, nil
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
			return 0, false, nil
		case err != nil:
			return 0, false, fmt.Errorf("disk %s: %w", d.d.Device, explain(err, d.d.Path, 0))
		case data >= to:
			return written, true, nil
		}
		hole, err := d.f.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return 0, false, fmt.Errorf("disk %s: %w", d.d.Device, explain(err, d.d.Path, 0))
		}
		written += min(hole, to) - data
		at = hole
	}
	return written, true, nil
}

// PurgeDisk implements target.DiskPurger: a hole is punched as large as the disk's file, whose space is then reserved
// again. Whether the device below is told depends on how its file system is mounted.
func (h *host) PurgeDisk(ctx context.Context, device string) (how string, err error) {
	f, d, err := h.openDisk(ctx, device, os.O_WRONLY)
	if err != nil {
		return "", fmt.Errorf("purge: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("purge: vm %q: %w", h.b.name, explain(err, d.Path, d.Bytes))
	}
	err = retry(func() error {
		return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, d.Bytes)
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		what := "the file system cannot give back parts of a file"
		if !d.File {
			what = "the device does not discard blocks so that they read as zeros"
		}
		return fail(fmt.Errorf("%w: %s; leave purge out", err, what))
	}
	if err != nil {
		return fail(err)
	}
	if !d.File { // the run has the consent to what is lost
		if err := f.Sync(); err != nil {
			return fail(err)
		}
		return "every block of the device discarded", nil
	}
	if _, err := allocate(f, d.Bytes); err != nil {
		return fail(err)
	}
	if err := f.Sync(); err != nil {
		return fail(err)
	}
	return "blocks of its file given back to the file system and reserved anew", nil
}
