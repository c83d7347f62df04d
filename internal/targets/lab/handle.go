//go:build linux

package lab

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/ssh/remote"
)

// handle is access to a guest through all its lives. What was started in one of them is lost with it.
type handle struct {
	c    *cluster
	name string

	waking sync.Mutex // while it is waited for

	mu   sync.Mutex
	life *remote.Host // nil while it is off
}

var (
	_ target.Host          = (*handle)(nil)
	_ target.ServiceKeeper = (*handle)(nil)
	_ target.Networked     = (*handle)(nil)
	_ target.Discarder     = (*handle)(nil)
	_ target.Stager        = (*handle)(nil)
	_ target.ClockReader   = (*handle)(nil)
	_ target.StandTeller   = (*handle)(nil)
)

// begins gives it another life, or none with nil, and ends all that goes on in the one before.
func (h *handle) begins(life *remote.Host) error {
	h.mu.Lock()
	old := h.life
	h.life = life
	h.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.Close()
}

// now is the guest as it runs, or an error that is target.ErrNotAccessible.
func (h *handle) now(ctx context.Context) (*remote.Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	life := h.life
	h.mu.Unlock()
	if life != nil && h.c.runs(h.name) {
		return life, nil
	}
	return nil, fmt.Errorf("vm %q on node %d: it is off: %w", h.name, h.Node(), target.ErrNotAccessible)
}

// Stands implements target.StandTeller.
func (h *handle) Stands(label string) []string {
	life, err := h.now(context.Background())
	if err != nil {
		return nil
	}
	return life.Stands(label)
}

// Name implements target.Host.
func (h *handle) Name() string { return h.name }

// Node implements target.Host.
func (h *handle) Node() int {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if v := h.c.state.VMs[h.name]; v != nil {
		return v.Node
	}
	return 0
}

// Disks implements target.Host.
func (h *handle) Disks() (list []target.Disk) {
	v, err := h.c.get(h.name)
	if err != nil {
		return nil
	}
	for i, bytes := range v.DiskBytes {
		name := "/dev/sd" + string(rune('b'+i))
		id := fmt.Sprintf("%s:data%d", v.Name, i+1)
		list = append(list, target.Disk{Device: name, Path: name, ID: id, Bytes: bytes})
	}
	return list
}

// Accessible implements target.Host.
func (h *handle) Accessible(ctx context.Context) error {
	life, err := h.now(ctx)
	if err != nil {
		return err
	}
	return life.Accessible(ctx)
}

// Start implements target.Host.
func (h *handle) Start(ctx context.Context, c target.Command) (target.Process, error) {
	life, err := h.now(ctx)
	if err != nil {
		return nil, err
	}
	return life.Start(ctx, c)
}

// Put implements target.Host.
func (h *handle) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	life, err := h.now(ctx)
	if err != nil {
		return err
	}
	return life.Put(ctx, name, mode, content)
}

// Get implements target.Host.
func (h *handle) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	life, err := h.now(ctx)
	if err != nil {
		return nil, err
	}
	return life.Get(ctx, name, offset)
}

// Remove implements target.Host.
func (h *handle) Remove(ctx context.Context, name string) error {
	life, err := h.now(ctx)
	if err != nil {
		return err
	}
	return life.Remove(ctx, name)
}

// StartService implements target.ServiceKeeper.
func (h *handle) StartService(ctx context.Context, s target.Service) error {
	life, err := h.now(ctx)
	if err != nil {
		return err
	}
	return life.StartService(ctx, s)
}

// ServiceState implements target.ServiceKeeper.
func (h *handle) ServiceState(ctx context.Context, name string) (target.ServiceState, error) {
	life, err := h.now(ctx)
	if err != nil {
		return target.ServiceState{}, err
	}
	return life.ServiceState(ctx, name)
}

// StopService implements target.ServiceKeeper.
func (h *handle) StopService(ctx context.Context, name string, grace time.Duration) error {
	life, err := h.now(ctx)
	if err != nil {
		return err
	}
	return life.StopService(ctx, name, grace)
}

// Address implements target.Networked.
func (h *handle) Address(ctx context.Context) (string, error) {
	a, err := h.c.address(h.name)
	if err == nil {
		err = ctx.Err()
	}
	return a.String(), err
}

// Discard implements target.Discarder.
func (h *handle) Discard(ctx context.Context, name string, upto int64) error {
	life, err := h.now(ctx)
	if err != nil {
		return err
	}
	return life.Discard(ctx, name, upto)
}

// Stage implements target.Stager.
func (h *handle) Stage(ctx context.Context, c target.Command) (target.Staged, error) {
	life, err := h.now(ctx)
	if err != nil {
		return nil, err
	}
	return life.Stage(ctx, c)
}

// ReadClock implements target.ClockReader.
func (h *handle) ReadClock(ctx context.Context) (target.ClockReading, error) {
	life, err := h.now(ctx)
	if err != nil {
		return target.ClockReading{}, err
	}
	return life.ReadClock(ctx)
}

// page is what the agent counts.
func (h *handle) page(ctx context.Context) (io.ReadCloser, string, error) {
	life, err := h.now(ctx)
	if err != nil {
		return nil, "", err
	}
	return life.Page(ctx)
}
