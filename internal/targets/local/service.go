//go:build linux

package local

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// StartService implements target.ServiceKeeper. A service is a command like others, behind the same wall and in the
// same journal; it is found again by its name.
func (h *host) StartService(ctx context.Context, s target.Service) error {
	if s.Name == "" {
		return fmt.Errorf("start service: vm %q: a service needs a name", h.b.name)
	}
	c := h.c
	c.mu.Lock()
	before := h.b.services[s.Name]
	if before == nil || before.over() {
		h.b.services[s.Name] = starting
	}
	c.mu.Unlock()
	if before != nil && !before.over() {
		return fmt.Errorf("start service: vm %q: service %q: it runs already; stop it first", h.b.name, s.Name)
	}
	command := s.Command
	command.Label = "service " + s.Name
	u, err := h.start(ctx, command, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(h.b.services, s.Name)
		if before != nil {
			h.b.services[s.Name] = before
		}
		return fmt.Errorf("start service: service %q: %w", s.Name, err)
	}
	h.b.services[s.Name] = u
	return nil
}

// starting keeps the place of a service that is being started.
var starting = &command{}

// over reports whether a command has ended.
func (u *command) over() bool {
	if u == starting {
		return false
	}
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// service finds one that is not just being started, nil for none.
func (h *host) service(ctx context.Context, name string) (*command, error) {
	if err := h.Accessible(ctx); err != nil {
		return nil, err
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	u := h.b.services[name]
	if u == starting {
		return nil, fmt.Errorf("vm %q: service %q: it is being started", h.b.name, name)
	}
	return u, nil
}

// ServiceState implements target.ServiceKeeper.
func (h *host) ServiceState(ctx context.Context, name string) (target.ServiceState, error) {
	u, err := h.service(ctx, name)
	switch {
	case err != nil:
		return target.ServiceState{}, fmt.Errorf("service state: %w", err)
	case u == nil:
		return target.ServiceState{}, nil
	case !u.over():
		return target.ServiceState{Started: true, Running: true}, nil
	}
	return target.ServiceState{Started: true, Exit: u.exit}, nil
}

// StopService implements target.ServiceKeeper.
func (h *host) StopService(ctx context.Context, name string, grace time.Duration) error {
	u, err := h.service(ctx, name)
	if err != nil {
		return fmt.Errorf("stop service: %w", err)
	}
	if u == nil || u.over() {
		return nil
	}
	if p, ok := readProcess(u.cmd.Process.Pid); ok && grace > 0 {
		limited, cancel := clock.WithTimeout(ctx, h.c.clock, grace)
		defer cancel()
		if err := p.signal(unix.SIGTERM); err != nil {
			return fmt.Errorf("stop service: vm %q: service %q: %w", h.b.name, name, err)
		}
		if _, err := u.Wait(limited); err == nil {
			return nil
		}
	}
	if err := u.Kill(); err != nil {
		return fmt.Errorf("stop service: service %q: %w", name, err)
	}
	return nil
}
