//go:build linux

package local

import (
	"context"
	"fmt"
	"slices"

	"plimsoll/internal/contract/target"
)

// host is access to one sandbox: its folder `files` is the working folder.
type host struct {
	c *cluster
	b *sandbox
}

var (
	_ target.Host          = (*host)(nil)
	_ target.ServiceKeeper = (*host)(nil)
	_ target.Networked     = (*host)(nil)
	_ target.Discarder     = (*host)(nil)
	_ target.DiskReader    = (*host)(nil)
	_ target.DiskPurger    = (*host)(nil)
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
