// Package fleet is what places share whose machines are made for a run and reached by an agent: access to a machine
// through all its lives. A place has the machines; package remote speaks with those that are on.
package fleet

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

// Owner is the place that has a machine.
type Owner interface {
	// Node is where a machine is, or where it was last.
	Node(name string) int
	// Disks are its data disks.
	Disks(name string) []target.Disk
	// Runs reports whether it is on.
	Runs(name string) bool
	// Address tells where other machines reach it.
	Address(ctx context.Context, name string) (string, error)
}

// Machine is access to a machine through all its lives. What was started in one of them is lost with it.
type Machine struct {
	owner Owner
	name  string

	waking sync.Mutex // while it is waited for

	mu   sync.Mutex
	life *remote.Host // nil while it is off
}

var (
	_ target.Host          = (*Machine)(nil)
	_ target.ServiceKeeper = (*Machine)(nil)
	_ target.Networked     = (*Machine)(nil)
	_ target.Discarder     = (*Machine)(nil)
	_ target.Stager        = (*Machine)(nil)
	_ target.ClockReader   = (*Machine)(nil)
	_ target.StandTeller   = (*Machine)(nil)
	_ target.Patient       = (*Machine)(nil)
)

// Begin gives it another life, or none with nil, and ends all that goes on in the one before.
func (m *Machine) Begin(life *remote.Host) error {
	m.mu.Lock()
	old := m.life
	m.life = life
	m.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.Close()
}

// now is the machine as it runs, or an error that is target.ErrNotAccessible.
func (m *Machine) now(ctx context.Context) (*remote.Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	life := m.life
	m.mu.Unlock()
	if life != nil && m.owner.Runs(m.name) {
		return life, nil
	}
	return nil, fmt.Errorf("vm %q on node %d: it is off: %w", m.name, m.Node(), target.ErrNotAccessible)
}

// Stands implements target.StandTeller.
func (m *Machine) Stands(label string) []string {
	life, err := m.now(context.Background())
	if err != nil {
		return nil
	}
	return life.Stands(label)
}

// Patience implements target.Patient: what runs on a machine that is off is lost at once.
func (m *Machine) Patience() time.Duration {
	life, err := m.now(context.Background())
	if err != nil {
		return 0
	}
	return life.Patience()
}

// Name implements target.Host.
func (m *Machine) Name() string { return m.name }

// Node implements target.Host.
func (m *Machine) Node() int { return m.owner.Node(m.name) }

// Disks implements target.Host.
func (m *Machine) Disks() []target.Disk { return m.owner.Disks(m.name) }

// Accessible implements target.Host.
func (m *Machine) Accessible(ctx context.Context) error {
	life, err := m.now(ctx)
	if err != nil {
		return err
	}
	return life.Accessible(ctx)
}

// Start implements target.Host.
func (m *Machine) Start(ctx context.Context, c target.Command) (target.Process, error) {
	life, err := m.now(ctx)
	if err != nil {
		return nil, err
	}
	p, err := life.Start(ctx, c)
	return m.minded(p), err
}

// Minder is implemented by owners that are told how commands on their machines ended.
type Minder interface {
	Ended(machine string, e target.Exit)
}

// minded is a command whose end its owner is told of.
type minded struct {
	target.Process
	target.Follower
	once  *sync.Once
	ended func(target.Exit)
}

// Wait implements target.Process.
func (p minded) Wait(ctx context.Context) (target.Exit, error) {
	e, err := p.Process.Wait(ctx)
	if err == nil {
		p.once.Do(func() { p.ended(e) })
	}
	return e, err
}

func (m *Machine) minded(p target.Process) target.Process {
	minder, is := m.owner.(Minder)
	follower, follows := p.(target.Follower)
	if !is || !follows {
		return p
	}
	return minded{p, follower, new(sync.Once), func(e target.Exit) { minder.Ended(m.name, e) }}
}

// Put implements target.Host.
func (m *Machine) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	life, err := m.now(ctx)
	if err != nil {
		return err
	}
	return life.Put(ctx, name, mode, content)
}

// Get implements target.Host.
func (m *Machine) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	life, err := m.now(ctx)
	if err != nil {
		return nil, err
	}
	return life.Get(ctx, name, offset)
}

// Remove implements target.Host.
func (m *Machine) Remove(ctx context.Context, name string) error {
	life, err := m.now(ctx)
	if err != nil {
		return err
	}
	return life.Remove(ctx, name)
}

// StartService implements target.ServiceKeeper.
func (m *Machine) StartService(ctx context.Context, s target.Service) error {
	life, err := m.now(ctx)
	if err != nil {
		return err
	}
	return life.StartService(ctx, s)
}

// ServiceState implements target.ServiceKeeper.
func (m *Machine) ServiceState(ctx context.Context, name string) (target.ServiceState, error) {
	life, err := m.now(ctx)
	if err != nil {
		return target.ServiceState{}, err
	}
	return life.ServiceState(ctx, name)
}

// StopService implements target.ServiceKeeper.
func (m *Machine) StopService(ctx context.Context, name string, grace time.Duration) error {
	life, err := m.now(ctx)
	if err != nil {
		return err
	}
	return life.StopService(ctx, name, grace)
}

// Address implements target.Networked.
func (m *Machine) Address(ctx context.Context) (string, error) { return m.owner.Address(ctx, m.name) }

// Discard implements target.Discarder.
func (m *Machine) Discard(ctx context.Context, name string, upto int64) error {
	life, err := m.now(ctx)
	if err != nil {
		return err
	}
	return life.Discard(ctx, name, upto)
}

// Stage implements target.Stager.
func (m *Machine) Stage(ctx context.Context, c target.Command) (target.Staged, error) {
	life, err := m.now(ctx)
	if err != nil {
		return nil, err
	}
	s, err := life.Stage(ctx, c)
	if err != nil {
		return nil, err
	}
	return staged{s, m}, nil
}

// staged is a staged command of a machine.
type staged struct {
	target.Staged
	machine *Machine
}

// Release implements target.Staged.
func (s staged) Release(ctx context.Context, at time.Time) (target.Process, target.Begun, error) {
	p, begun, err := s.Staged.Release(ctx, at)
	return s.machine.minded(p), begun, err
}

// ReadClock implements target.ClockReader.
func (m *Machine) ReadClock(ctx context.Context) (target.ClockReading, error) {
	life, err := m.now(ctx)
	if err != nil {
		return target.ClockReading{}, err
	}
	return life.ReadClock(ctx)
}

// Wake begins a life by what a place does for that, unless one goes on. Of several that wait for one machine the first
// does that.
func (m *Machine) Wake(ctx context.Context, begin func(context.Context) (*remote.Host, error)) error {
	m.waking.Lock()
	defer m.waking.Unlock()
	if _, err := m.now(ctx); err == nil {
		return nil
	}
	life, err := begin(ctx)
	if err != nil {
		return err
	}
	return m.Begin(life)
}

// Forget ends what goes on in a life that is over: the machine is off.
func (m *Machine) Forget() {
	m.mu.Lock()
	life := m.life
	m.mu.Unlock()
	if life == nil || m.owner.Runs(m.name) {
		return
	}
	m.mu.Lock()
	if m.life == life {
		m.life = nil
	}
	m.mu.Unlock()
	_ = life.Close() // nobody is there to part from
}

// Alive reports whether it has a life, or had one that nobody ended.
func (m *Machine) Alive() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.life != nil }

// Page returns what its agent counts.
func (m *Machine) Page(ctx context.Context) (io.ReadCloser, string, error) {
	life, err := m.now(ctx)
	if err != nil {
		return nil, "", err
	}
	return life.Page(ctx)
}
