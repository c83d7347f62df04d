package loads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/target"
	"plimsoll/internal/workload"
	"plimsoll/result"
	"plimsoll/unit"
)

// server is a program that is kept running on one machine while a start of a workload goes on.
type server struct {
	workload.Server
	host    target.Host
	started bool
}

// peers are the machines that the load of a start goes to, and the servers that have to run on them.
type peers struct {
	list      []workload.Peer
	addresses []string // of the load's own machines, nil without a network
	own       bool     // each machine is its own peer
	servers   []*server
}

// of gives a machine's spec what it has to know of the others.
func (p peers) of(spec *workload.Spec, i int) {
	if p.addresses != nil {
		spec.Address = p.addresses[i]
	}
	if spec.Peers, spec.Peer = p.list, i; p.own {
		spec.Peers, spec.Peer = p.list[i:i+1], 0
	} else if len(p.list) > 0 {
		spec.Peer = i % len(p.list)
	}
}

// findPeers asks an engine where its load goes. The machines have to answer, and to be reachable for each other.
func (l *Set) findPeers(ctx context.Context, engine workload.Engine, spec workload.Spec, hosts []target.Host,
	members func(context.Context, string) ([]target.VM, error)) (p peers, err error) {
	peering, ok := engine.(workload.Peering)
	if !ok {
		return p, nil
	}
	use, ok, err := peering.Peers(spec)
	if err != nil || !ok {
		return p, err
	}
	of := hosts
	if p.own = use.Group == ""; !p.own {
		if members == nil {
			return p, fmt.Errorf("its server: nobody here can say which machines group %q has", use.Group)
		}
		vms, err := members(ctx, use.Group)
		if err != nil {
			return p, fmt.Errorf("its server: %w", err)
		}
		if of, err = l.reachable(ctx, vms); err != nil {
			return p, fmt.Errorf("its server: group %q: %w", use.Group, err)
		}
	}
	if use.Network {
		if p.addresses, err = addressesOf(ctx, hosts); err != nil {
			return p, err
		}
	}
	at := make([]string, len(of))
	if use.Network {
		if at, err = addressesOf(ctx, of); err != nil {
			return p, err
		}
	}
	for i, host := range of {
		p.list = append(p.list, workload.Peer{VM: host.Name(), Address: at[i], Disks: host.Disks()})
	}
	for i := range of {
		if !use.Served {
			break
		}
		on := spec
		on.VM, on.Disks, on.Address, on.Peers, on.Peer = p.list[i].VM, p.list[i].Disks, at[i], p.list, i
		made, err := peering.Server(on)
		if err != nil {
			return p, fmt.Errorf("its server on %s: %w", on.VM, err)
		}
		p.servers = append(p.servers, &server{Server: made, host: of[i]})
	}
	return p, nil
}

func addressesOf(ctx context.Context, hosts []target.Host) ([]string, error) {
	list := make([]string, len(hosts))
	for i, host := range hosts {
		networked, ok := target.HostAs[target.Networked](host)
		if !ok {
			return nil, fmt.Errorf("vm %q: machines have no network to meet on here", host.Name())
		}
		var err error
		if list[i], err = networked.Address(ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// serve starts the servers of a start and waits until all can be used. It holds them until release; each job holds them
// as well.
func (l *Set) serve(ctx context.Context, s *Start) error {
	l.mu.Lock()
	s.users = 1
	l.mu.Unlock()
	if len(s.servers) == 0 {
		return nil
	}
	began := l.Clock.Now()
	err := clock.Parallel(l.Clock, len(s.servers), AccessWidth, func(i int) error {
		return l.startServer(ctx, s.servers[i])
	})
	if err != nil {
		l.release(s)
		return fmt.Errorf("workload %q: %w", s.name, err)
	}
	l.Record(result.Event{Kind: result.KindNote, Text: fmt.Sprintf("servers of workload %s: %s ready after %s", s.name,
		unit.Plural(len(s.servers), "VM"), unit.Duration(l.Clock.Now().Sub(began).Round(time.Millisecond)))})
	return nil
}

func (l *Set) startServer(ctx context.Context, s *server) error {
	keeper, ok := target.HostAs[target.ServiceKeeper](s.host)
	if !ok {
		return fmt.Errorf("vm %q: no services are kept here", s.host.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if err := target.WriteFile(ctx, s.host, name, s.Files[name]); err != nil {
			return err
		}
	}
	if err := keeper.StartService(ctx, s.Service); err != nil {
		return err
	}
	l.mu.Lock()
	s.started = true
	l.mu.Unlock()
	return target.Ready(ctx, l.Clock, s.host, s.Service, s.Ready)
}

// stopServerLimit is how long a server may take to be gone, beyond its grace.
const stopServerLimit = 30 * time.Second

// release stops the servers of a start when nobody holds them any more. One that has ended by itself, and not with its
// machine, is worth a warning: what was measured without it may mean nothing.
func (l *Set) release(s *Start) {
	l.mu.Lock()
	s.users--
	var over []*server
	if s.users == 0 {
		over = s.servers
	}
	l.mu.Unlock()
	for _, one := range slices.Backward(over) {
		if !one.started {
			continue
		}
		if text := l.stopServer(one); text != "" {
			l.Record(result.Event{Kind: result.KindWarning, Text: fmt.Sprintf("workload %q: %s", s.name, text)})
		}
	}
}

// stopServer returns what is to be said of it.
func (l *Set) stopServer(s *server) string {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(l.root), l.Clock, s.Grace+stopServerLimit)
	defer cancel()
	keeper, _ := target.HostAs[target.ServiceKeeper](s.host)
	state, err := keeper.ServiceState(ctx, s.Service.Name)
	if err == nil && !state.Running && state.Started {
		if state.Exit.Lost {
			return ""
		}
		return fmt.Sprintf("its server on %s had ended before it was stopped (code %d)%s", s.host.Name(), state.Exit.Code,
			target.LastWords(ctx, s.host, s.Service.Command))
	}
	if err == nil {
		err = keeper.StopService(ctx, s.Service.Name, s.Grace)
	}
	if err != nil && !errors.Is(err, target.ErrNotAccessible) { // with its machine it is gone
		return fmt.Sprintf("its server on %s could not be stopped: %v", s.host.Name(), err)
	}
	return ""
}
