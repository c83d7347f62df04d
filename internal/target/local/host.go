//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"plimsoll/internal/target"
)

// host is access to one sandbox: its folder `files` is the working folder.
type host struct {
	c *cluster
	b *sandbox
}

var (
	_ target.Host        = (*host)(nil)
	_ target.FileFetcher = (*host)(nil)
	_ target.Discarder   = (*host)(nil)
)

// Name implements target.Host.
func (h *host) Name() string { return h.b.name }

// Node implements target.Host.
func (h *host) Node() int {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.b.node
}

// Disks implements target.Host.
func (h *host) Disks() []target.Disk { return slices.Clone(h.b.disks) }

// Accessible implements target.Host.
func (h *host) Accessible(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("vm %q: %w", h.b.name, err)
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.accessible()
}

// accessible is Accessible with c.mu held.
func (h *host) accessible() error {
	switch {
	case h.b.gone:
		return fmt.Errorf("vm %q: %w: it was deleted", h.b.name, target.ErrNotAccessible)
	case h.c.closed:
		return fmt.Errorf("vm %q: %w: the cluster is closed", h.b.name, target.ErrNotAccessible)
	case !h.c.on[h.b.node]:
		return fmt.Errorf("vm %q: %w: node %d is powered off", h.b.name, target.ErrNotAccessible, h.b.node)
	case h.b.power != target.On:
		return fmt.Errorf("vm %q: %w: it is powered off", h.b.name, target.ErrNotAccessible)
	}
	return nil
}

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

// WriteFile implements target.Host.
func (h *host) WriteFile(ctx context.Context, name string, data []byte) error {
	f, err := h.create(ctx, name)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	_, err = f.Write(data)
	return wrap("write", h.fail(name, int64(len(data)), errors.Join(err, f.Close())))
}

// create makes, or empties, a file that belongs to the sandbox's commands, as do the folders above it.
func (h *host) create(ctx context.Context, name string) (*os.File, error) {
	root, err := h.files(ctx, name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for i, r := range name {
		if r != '/' || i == 0 {
			continue
		}
		err := root.Mkdir(name[:i], 0o755)
		if err == nil {
			err = h.c.give(root, name[:i])
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, h.fail(name[:i], 0, err)
		}
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

// ReadAt implements target.Host.
func (h *host) ReadAt(ctx context.Context, name string, offset int64, limit int) ([]byte, error) {
	if offset < 0 || limit < 0 {
		return nil, fmt.Errorf("read: vm %q: file %q: offset %d, limit %d: must not be negative", h.b.name, name,
			offset, limit)
	}
	root, err := h.files(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read: %w", h.fail(name, 0, err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read: %w", h.fail(name, 0, err))
	}
	n := min(int64(limit), info.Size()-offset)
	if n <= 0 {
		return nil, nil
	}
	data := make([]byte, n)
	got, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", h.fail(name, 0, err))
	}
	return data[:got], nil
}

// Fetch implements target.FileFetcher.
func (h *host) Fetch(ctx context.Context, name string) (io.ReadCloser, error) {
	root, err := h.files(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", h.fail(name, 0, err))
	}
	return f, nil
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
