package loads

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
	"plimsoll/unit"
)

// server is a program that is kept running on one machine while a start of a workload goes on, or longer.
type server struct {
	workload.Server
	host  target.Host
	load  string // the workload, and which start of it has begun it
	start int
	count func() (*workload.Scrape, error) // nil: nothing is counted
	// guarded by Set.mu
	started bool
	stays   bool // is in Set.stay
	counter *workload.Scrape
}

// peers are the machines that the load of a start goes to, and the servers that have to run on them.
type peers struct {
	list      []workload.Peer
	addresses []string // of the load's own machines, nil without a network
	own       bool     // each machine is its own peer
	servers   []*server
	server    workload.Tool
	outside   *workload.Scrape // of a server beyond the cluster, nil for none
}

// of gives a machine's spec what it has to know of the others.
func (p peers) of(spec *workload.Spec, i int) {
	if p.addresses != nil {
		spec.Address = p.addresses[i]
	}
	if spec.Peers, spec.Peer, spec.Turn = p.list, i, i; p.own {
		spec.Peers, spec.Peer, spec.Turn = p.list[i:i+1], 0, 0
	} else if n := len(p.list); n > 0 {
		spec.Peer, spec.Turn = i%n, i/n
	}
}

// findPeers asks an engine where its load goes. The machines have to answer, and to be reachable for each other.
func (l *Set) findPeers(ctx context.Context, engine workload.Engine, spec workload.Spec, hosts []target.Host,
	members func(context.Context, string) ([]target.VM, error)) (p peers, err error) {
	counting, counts := engine.(workload.Counting)
	peering, ok := engine.(workload.Peering)
	var use workload.Peers
	if ok {
		use, ok, err = peering.Peers(spec)
	}
	if !ok && err == nil && counts {
		p.outside, err = counting.Counters(spec, nil)
	}
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
		if i == 0 { // the others are copies of one image
			p.server, err = l.checked(ctx, "server\x00"+use.Group+"\x00"+spec.Name, of[i],
				func(ctx context.Context, host target.Host) (workload.Tool, error) {
					return peering.CheckServer(ctx, host, on)
				})
			if err != nil {
				return p, fmt.Errorf("its server: %w", err)
			}
		}
		one := &server{Server: made, host: of[i]}
		if counts {
			one.count = func() (*workload.Scrape, error) { return counting.Counters(on, one.host) }
		}
		p.servers = append(p.servers, one)
	}
	return p, nil
}

func addressesOf(ctx context.Context, hosts []target.Host) ([]string, error) {
	list := make([]string, len(hosts))
	for i, host := range hosts {
		networked, ok := host.(target.Networked)
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
	if s.outside != nil {
		l.counted = append(l.counted, counted{s.outside, ""})
	}
	l.mu.Unlock()
	if len(s.servers) == 0 {
		return nil
	}
	began := l.Clock.Now()
	err := clock.Parallel(l.Clock, len(s.servers), AccessWidth, func(i int) (err error) {
		s.servers[i].load, s.servers[i].start = s.name, s.number
		s.servers[i], err = l.startServer(ctx, s.servers[i])
		return err
	})
	if err != nil {
		l.release(s)
		return fmt.Errorf("workload %q: %w", s.name, err)
	}
	l.Record(result.Event{Kind: result.KindNote, Text: fmt.Sprintf("servers of workload %s: %s ready after %s", s.name,
		unit.Plural(len(s.servers), "VM"), unit.Duration(l.Clock.Now().Sub(began).Round(time.Millisecond)))})
	return nil
}

// startServer returns the server that then runs: where one of an earlier start stays, that.
func (l *Set) startServer(ctx context.Context, s *server) (*server, error) {
	keeper, ok := s.host.(target.ServiceKeeper)
	if !ok {
		return s, fmt.Errorf("vm %q: no services are kept here", s.host.Name())
	}
	if earlier := l.earlier(s); earlier != nil {
		if earlier.load != s.load && !slices.Equal(earlier.Service.Command.Argv, s.Service.Command.Argv) {
			return s, fmt.Errorf("vm %q: its server runs there already for workload %q, which started it with other settings: "+
				"give both the same, or machines of their own", s.host.Name(), earlier.load)
		}
		state, err := keeper.ServiceState(ctx, earlier.Service.Name)
		if err != nil {
			return s, err
		}
		if state.Running {
			return earlier, target.Ready(ctx, l.Clock, earlier.host, earlier.Service, earlier.Ready)
		}
		l.end(earlier)
		l.mu.Lock()
		l.stay = slices.DeleteFunc(l.stay, func(one *server) bool { return one == earlier })
		l.mu.Unlock()
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if err := target.WriteFile(ctx, s.host, name, s.Files[name]); err != nil {
			return s, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Private)) {
		if err := s.host.Put(ctx, name, 0o600, bytes.NewReader(s.Private[name])); err != nil {
			return s, err
		}
	}
	if err := keeper.StartService(ctx, s.Service); err != nil {
		return s, err
	}
	l.mu.Lock()
	s.started = true
	l.mu.Unlock()
	err := target.Ready(ctx, l.Clock, s.host, s.Service, s.Ready)
	if err == nil && s.count != nil {
		l.countServer(s)
	}
	if err == nil && s.Stays {
		l.mu.Lock()
		s.stays = true
		l.stay = append(l.stay, s)
		l.mu.Unlock()
	}
	return s, err
}

// countServer has a server asked what it counts. A server that cannot be asked is used all the same.
func (l *Set) countServer(s *server) {
	c, err := s.count()
	if err != nil {
		l.Record(result.Event{Kind: result.KindWarning, Error: firstLine(err.Error()),
			Text: fmt.Sprintf("workload %q: its server on %s is not asked what it counts", s.load, s.host.Name())})
	}
	if c == nil || err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.counter = c
	l.counted = append(l.counted, counted{c, s.host.Name()})
}

// uncount ends the asking of a server; nil is none.
func (l *Set) uncount(c *workload.Scrape) {
	if c == nil {
		return
	}
	l.mu.Lock()
	l.counted = slices.DeleteFunc(l.counted, func(one counted) bool { return one.Scrape == c })
	l.mu.Unlock()
	c.Close()
}

// counted is a server that can be asked what it counts.
type counted struct {
	*workload.Scrape
	vm string // "": it is beyond the cluster
}

// Counted are the servers that can be asked now what they count; one that several loads use is there more than once.
func (l *Set) Counted() (list []target.Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.counted {
		list = append(list, target.Endpoint{Name: c.Name, VM: c.vm, Machine: c.Where, Get: c.Get})
	}
	return list
}

// earlier is the server of an earlier start of the same workload on the same machine that stays, or one of that name
// there, which then is of both; nil for none.
func (l *Set) earlier(s *server) *server {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.stay, func(one *server) bool {
		return (one.load == s.load || one.Service.Name == s.Service.Name) && one.host.Name() == s.host.Name()
	})
	if i < 0 {
		return nil
	}
	return l.stay[i]
}

const (
	stopServerLimit  = 30 * time.Second // for a server to be gone, beyond its grace
	keepLimit        = 30 * time.Second // for what it has printed to be kept
	mostServerOutput = 16 << 20         // of that
)

// release stops the servers of a start when nobody holds them any more, but those that stay.
func (l *Set) release(s *Start) {
	l.mu.Lock()
	s.users--
	var over []*server
	if s.users == 0 {
		over = slices.DeleteFunc(slices.Clone(s.servers), func(one *server) bool { return !one.started || one.stays })
	}
	outside := s.users == 0 && s.outside != nil
	l.mu.Unlock()
	if outside {
		l.uncount(s.outside)
	}
	for _, one := range slices.Backward(over) {
		l.end(one)
	}
}

// end stops a server and keeps what it has printed. One that has ended by itself, and not with its machine, is worth a
// warning: what was measured without it may mean nothing.
func (l *Set) end(s *server) {
	l.uncount(s.counter) // a server may wait for its clients to go
	if text := l.stopServer(s); text != "" {
		l.Record(result.Event{Kind: result.KindWarning, Text: fmt.Sprintf("workload %q: %s", s.load, text)})
	}
	if l.Keep != nil && s.Service.Command.Stdout != "" {
		l.keepOutput(s)
	}
}

// keepOutput says what became of what a server has printed.
func (l *Set) keepOutput(s *server) {
	e := result.Event{Kind: result.KindNote,
		Data: result.EventData{Workload: s.load, VM: s.host.Name(), Start: s.start}}
	what := fmt.Sprintf("what the server of workload %s on %s printed", s.load, s.host.Name())
	switch name, n, more, err := l.keep(s); {
	case err != nil:
		e.Text, e.Error = what+" could not be kept", firstLine(err.Error())
		if !errors.Is(err, target.ErrNotAccessible) { // else it went with its machine
			e.Kind = result.KindWarning
		}
	case n == 0:
		e.Text = what + ": nothing"
	case more:
		e.Text = fmt.Sprintf("%s is in %s, the first %s of it", what, name, unit.Bytes(n))
	default:
		e.Text = fmt.Sprintf("%s is in %s (%s)", what, name, unit.Bytes(n))
	}
	l.Record(e)
}

// keep copies what a server has printed to where it is kept: a bounded part from the beginning, and whether there was
// more. Nothing printed makes no file.
func (l *Set) keep(s *server) (name string, n int64, more bool, err error) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(l.root), l.Clock, keepLimit)
	defer cancel()
	from, err := s.host.Get(ctx, s.Service.Command.Stdout, 0)
	if err != nil {
		return "", 0, false, err
	}
	defer from.Close()
	text := bufio.NewReader(from)
	if _, err := text.Peek(1); errors.Is(err, io.EOF) {
		return "", 0, false, nil
	}
	to, name, err := l.Keep(s.host.Name(), s.load, s.start)
	if err != nil {
		return "", 0, false, err
	}
	n, err = io.CopyN(to, text, mostServerOutput)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", 0, false, err
	}
	_, end := text.Peek(1)
	return name, n, end == nil, nil
}

// stopServer returns what is to be said of it.
func (l *Set) stopServer(s *server) string {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(l.root), l.Clock, s.Grace+stopServerLimit)
	defer cancel()
	keeper, _ := s.host.(target.ServiceKeeper)
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
