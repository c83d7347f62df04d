package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/regular"
)

// Provider makes simulated clusters for users.
type Provider struct{}

var (
	_ target.Provider   = Provider{}
	_ target.Timekeeper = Provider{}
)

// Name implements target.Provider.
func (Provider) Name() string { return "sim" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "a simulated cluster in virtual time: hours of a scenario in seconds, faults on demand, known truth"
}

// Options implements target.Provider.
func (Provider) Options() []target.Option { return options() }

// Clock implements target.Timekeeper: virtual time from Start on.
func (Provider) Clock() clock.Clock { return clock.NewVirtual(Start) }

// New implements target.Provider. A file of options is read when the target is first used.
func (Provider) New(c target.Config) (target.Target, error) {
	probe := defaults()
	if err := probe.readOptions(c.Options); err != nil {
		return nil, err
	}
	p := &place{config: c}
	if c.Options["file"] == "" {
		if _, err := p.world(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// place is a world that comes into being when it is first used. It ends with the process, and so does everything made
// in it.
type place struct {
	config target.Config
	once   sync.Once
	w      *World
	err    error
}

// world is the place's world.
func (p *place) world() (*World, error) {
	p.once.Do(func() { p.w, p.err = p.make() })
	return p.w, p.err
}

func (p *place) make() (*World, error) {
	s := defaults()
	var err error
	if name := p.config.Options["file"]; name != "" {
		data, unread := regular.Read(name, 0, 1<<20)
		if unread != nil {
			return nil, fmt.Errorf("option file: %w", unread)
		}
		err = s.readFile(name, data)
	}
	err = errors.Join(err, s.readOptions(p.config.Options))
	if p.config.Nodes > 0 {
		s.Nodes = p.config.Nodes
	}
	o, wrong := s.world()
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	o.Clock = p.config.Clock
	return New(o), nil
}

// Check implements target.Target.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	w, err := p.world()
	if err != nil {
		return target.Facts{}, fmt.Errorf("check: %w", err)
	}
	return view{w}.Check(ctx)
}

// Provision implements target.Target.
func (p *place) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	w, err := p.world()
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	return view{w}.Provision(ctx, r)
}

// Destroy implements target.Target. Simulated machines end with the process that made them, so after a crash there is
// nothing left.
func (p *place) Destroy(ctx context.Context, stateDir string) ([]string, error) {
	if p.w == nil {
		return nil, nil
	}
	return view{p.w}.Destroy(ctx, stateDir)
}

// Rehearsal implements workload.Forecaster.
func (p *place) Rehearsal() workload.Rehearsal {
	w, err := p.world()
	if err != nil {
		return nil
	}
	return view{w}.Rehearsal()
}
