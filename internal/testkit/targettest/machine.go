package targettest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
)

var (
	services     = []target.Capability{target.Services}
	ownServices  = append(slices.Clone(services), powers...)
	nodeServices = append(slices.Clone(services), nodesOff...)
	network      = []target.Capability{target.PeerNetwork}
)

// machineTests are of files as streams, of services, and of what tells machines and disks apart.
var machineTests = []subtest{
	{name: "a file is put as a stream", gentle: true, run: putStream},
	{name: "a file that is not put whole is not put", gentle: true, run: putInPart},
	{name: "a file is got as a stream", gentle: true, run: getStream},
	{name: "a program is put and runs", gentle: true, run: putProgram},
	{name: "output is followed as a stream", gentle: true, run: follow},
	{name: "a stream that is followed ends when told", gentle: true, run: followEnds},
	{name: "disks have identities", gentle: true, run: diskIdentities},
	{name: "disks are purged", needs: append(slices.Clone(powers), target.DiskPurge), run: disksArePurged},
	{name: "machines have addresses", needs: network, gentle: true, run: machineAddresses},
	{name: "a service runs beside commands", needs: services, gentle: true, run: serviceRuns},
	{name: "a service is stopped with its children", needs: services, gentle: true, run: serviceStops},
	{name: "a service is ready", needs: services, gentle: true, run: serviceReady},
	{name: "service objections", needs: services, gentle: true, run: serviceObjections},
	{name: "a service ends with its VM", needs: ownServices, gentle: true, run: serviceEndsWithVM},
	{name: "a service ends with its node", needs: nodeServices, run: serviceEndsWithNode},
	{name: "destroy ends services", needs: services, run: destroyEndsServices},
}

// endless is a stream of known bytes whose length nobody is told, in pieces of awkward sizes.
func endless(n int) io.Reader { return iotest.HalfReader(io.LimitReader(&counting{}, int64(n))) }

type counting struct{ at byte }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.at
		c.at += 7
	}
	return len(p), nil
}

func (b *bench) content(vm, name string) []byte {
	b.t.Helper()
	r, err := b.host(vm).Get(b.ctx, name, 0)
	b.must(err)
	data, err := io.ReadAll(r)
	b.must(errors.Join(err, r.Close()))
	return data
}

func putStream(t *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	for _, n := range []int{0, 1, 4096, 3<<20 + 17, 5} { // the last is shorter than what it replaces
		want, err := io.ReadAll(endless(n))
		b.must(err)
		b.must(h.Put(b.ctx, "deep/er/binary", target.PlainFile, endless(n)))
		if got := b.content(b.name(0), "deep/er/binary"); !bytes.Equal(got, want) {
			t.Errorf("of %d bytes put %d come back, equal: false", n, len(got))
		}
	}
	b.must(h.Remove(b.ctx, "deep"))
}

func putInPart(t *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	b.must(target.WriteFile(b.ctx, h, "kept", []byte("before")))
	broken := errors.New("the source broke")
	err := h.Put(b.ctx, "kept", target.PlainFile, io.MultiReader(endless(100_000), iotest.ErrReader(broken)))
	b.is(err, broken)
	b.fails(err, b.name(0), "kept")
	b.is(h.Put(b.ctx, "new", target.PlainFile, iotest.ErrReader(broken)), broken)
	ctx, cancel := context.WithCancel(b.ctx)
	ends := readerFunc(func(p []byte) (int, error) { cancel(); return copy(p, "x"), nil })
	b.is(h.Put(ctx, "kept", target.PlainFile, io.MultiReader(endless(10), io.LimitReader(ends, 10))), context.Canceled)
	if got := b.content(b.name(0), "kept"); string(got) != "before" {
		t.Errorf("the file holds %q", got)
	}
	_, err = h.Get(b.ctx, "new", 0)
	b.is(err, fs.ErrNotExist)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func getStream(t *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	b.must(target.WriteFile(b.ctx, h, "f", []byte("0123456789")))
	for offset, want := range map[int64]string{0: "0123456789", 4: "456789", 10: "", 99: ""} {
		r, err := h.Get(b.ctx, "f", offset)
		b.must(err)
		got, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || string(got) != want {
			t.Errorf("from %d on: %q, %v; want %q", offset, got, err, want)
		}
	}
	_, err := h.Get(b.ctx, "absent", 0)
	b.is(err, fs.ErrNotExist)
	b.fails(err, b.name(0), "absent")
	_, err = h.Get(b.ctx, "f", -1)
	b.fails(err, "-1")
	ctx, cancel := context.WithCancel(b.ctx)
	r, err := h.Get(ctx, "f", 0)
	b.must(err)
	cancel()
	_, err = io.ReadAll(r)
	b.is(err, context.Canceled)
	b.must(r.Close())
}

func putProgram(t *testing.T, b *bench) {
	if b.place.Commands.Program == nil {
		t.Skip("the place's machines have no programs of their own")
	}
	b.running(1)
	for _, text := range []string{"first", "second"} { // the second replaces the first
		b.must(
			b.host(b.name(0)).
				Put(b.ctx, "tools/say", target.Program, strings.NewReader(b.place.Commands.Program(text))),
		)
		if got := b.output(b.name(0), []string{"./tools/say"}); got != text {
			t.Errorf("the program printed %q, want %q", got, text)
		}
	}
	b.must(target.WriteFile(b.ctx, b.host(b.name(0)), "plain", []byte(b.place.Commands.Program("x"))))
	_, err := b.host(b.name(0)).Start(b.ctx, target.Command{Argv: []string{"./plain"}})
	b.fails(err, "plain")
}

// followed starts a slow command and follows its output from an offset on.
func (b *bench) followed(offset int64, parts ...string) (target.Process, io.ReadCloser) {
	b.t.Helper()
	p := b.start(b.name(0), b.place.Commands.Slow(parts...))
	f, ok := p.(target.Follower)
	if !ok {
		b.t.Skip("not implemented: target.Follower")
	}
	r, err := f.Follow(b.ctx, "out/stdout", offset)
	b.must(err)
	return p, r
}

func follow(t *testing.T, b *bench) {
	b.running(1)
	for offset, want := range map[int64]string{0: "one two three", 4: "two three", 99: ""} {
		p, r := b.followed(offset, "one ", "two ", "three")
		got, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || string(got) != want {
			t.Errorf("followed %q, %v; want %q", got, err, want)
		}
		if exit := b.wait(p); exit != (target.Exit{}) {
			t.Errorf("exit %+v", exit)
		}
	}
	p := b.start(b.name(0), b.place.Commands.Print("over"))
	b.wait(p)
	r, err := p.(target.Follower).Follow(b.ctx, "out/stdout", 0) // of a command that has ended
	b.must(err)
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || string(got) != "over" {
		t.Errorf("after its end: %q, %v", got, err)
	}
	_, err = p.(target.Follower).Follow(b.ctx, "absent", 0)
	b.is(err, fs.ErrNotExist)
}

func followEnds(t *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	p := b.spawn(b.name(0), w)
	f, ok := p.(target.Follower)
	if !ok {
		t.Skip("not implemented: target.Follower")
	}
	ctx, cancel := context.WithCancel(b.ctx)
	r, err := f.Follow(ctx, "out/stdout", 0)
	b.must(err)
	group := b.place.Clock.Group()
	group.Go(func() {
		_ = b.place.Clock.Sleep(b.ctx, 20*time.Millisecond)
		cancel()
	})
	_, err = io.ReadAll(r)
	b.is(err, context.Canceled)
	b.must(r.Close())
	b.must(r.Close()) // again is fine
	r, err = f.Follow(b.ctx, "out/stdout", 0)
	b.must(err)
	group.Go(func() {
		_ = b.place.Clock.Sleep(b.ctx, 20*time.Millisecond)
		b.must(r.Close())
	})
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a closed stream came to the end of a command that goes on")
	}
	group.Wait()
	r, err = f.Follow(b.ctx, "out/stdout", 0)
	b.must(err)
	b.must(p.Kill())
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("of a killed command: %v", err)
	}
	b.must(r.Close())
}

// identities are those of the disks of some machines.
func (b *bench) identities(names []string) (ids []string) {
	for _, name := range names {
		for _, d := range b.host(name).Disks() {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

func diskIdentities(t *testing.T, b *bench) {
	names := b.running(2)
	ids := b.identities(names)
	sorted := slices.Sorted(slices.Values(ids))
	if len(slices.Compact(slices.Clone(sorted))) != len(ids) || slices.Contains(ids, "") {
		t.Errorf("disks are told apart by %q", ids)
	}
	if !b.facts.Can(target.VMPowerControl) {
		return
	}
	b.must(b.cluster.PowerOff(b.ctx, names))
	b.must(b.cluster.PowerOn(b.ctx, names, 2))
	if again := b.identities(names); !slices.Equal(ids, again) {
		t.Errorf("after a power cycle %q have become %q", ids, again)
	}
}

func machineAddresses(t *testing.T, b *bench) {
	seen := map[string]bool{}
	for _, name := range b.running(3) {
		h, ok := b.host(name).(target.Networked)
		if !ok {
			t.Fatalf("%q is claimed, but hosts do not implement target.Networked", target.PeerNetwork)
		}
		address, err := h.Address(b.ctx)
		b.must(err)
		if address == "" || seen[address] || strings.ContainsAny(address, " /") {
			t.Errorf("%s has the address %q; others have %v", name, address, seen)
		}
		seen[address] = true
		if again, err := h.Address(b.ctx); err != nil || again != address {
			t.Errorf("asked again: %q, %v; want %q", again, err, address)
		}
	}
}

func (b *bench) keeper(vm string) target.ServiceKeeper {
	b.t.Helper()
	k, ok := b.host(vm).(target.ServiceKeeper)
	if !ok {
		b.t.Fatalf("%q is claimed, but hosts do not implement target.ServiceKeeper", target.Services)
	}
	return k
}

// serve starts a service with a child and returns when both live.
func (b *bench) serve(vm, name, word string) target.ServiceKeeper {
	b.t.Helper()
	k := b.keeper(vm)
	b.must(
		k.StartService(b.ctx, target.Service{Name: name, Command: target.Command{Argv: b.place.Commands.Spawn(word)}}))
	b.until("the service and its child live", func() bool { return b.place.Alive(word) >= 2 })
	return k
}

func (b *bench) serviceIs(k target.ServiceKeeper, name string, want target.ServiceState) {
	b.t.Helper()
	got, err := k.ServiceState(b.ctx, name)
	b.must(err)
	if want.Exit.Code != 0 && got.Exit.Signal != "" { // which signal is the place's to say
		got.Exit.Signal = want.Exit.Signal
	}
	if got != want {
		b.t.Errorf("service %q: %+v, want %+v", name, got, want)
	}
}

func serviceRuns(t *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	b.serviceIs(b.keeper(b.name(0)), "db", target.ServiceState{})
	k := b.serve(b.name(0), "db", w)
	if got := b.output(b.name(0), b.place.Commands.Print("beside")); got != "beside" {
		t.Errorf("a command beside the service printed %q", got)
	}
	b.must(b.start(b.name(0), b.place.Commands.Spawn(b.word())).Kill())
	b.serviceIs(b.keeper(b.name(0)), "db", target.ServiceState{Started: true, Running: true}) // of a fresh Host
	if n := b.lives(w); n < 2 {
		t.Errorf("after commands %d of its processes live", n)
	}
	if source, ok := b.cluster.Cluster.(target.HostSource); ok {
		for range 2 { // the second time there is something to compare with
			got, err := source.HostCounters(b.ctx)
			b.must(err)
			for _, g := range got.Generators {
				t.Errorf("what is no load generator counts as one: %+v", g)
			}
			b.must(b.place.Clock.Sleep(b.ctx, 20*time.Millisecond))
		}
	}
	b.must(k.StopService(b.ctx, "db", 0))
}

func serviceStops(_ *testing.T, b *bench) {
	b.running(1)
	killed := target.ServiceState{Started: true, Exit: target.Exit{Code: -1, Signal: "some"}}
	for _, grace := range []time.Duration{0, 10 * time.Second} {
		w := b.word()
		k := b.serve(b.name(0), "db", w) // again, when it has ended
		for range 2 {
			b.must(k.StopService(b.ctx, "db", grace))
		}
		b.dead(w)
		b.serviceIs(k, "db", killed)
	}
	b.must(b.keeper(b.name(0)).StopService(b.ctx, "never started", time.Second))
}

func serviceReady(_ *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	s := target.Service{Name: "db", Command: target.Command{Argv: b.place.Commands.Spawn(b.word())}}
	k := b.keeper(b.name(0))
	b.must(k.StartService(b.ctx, s))
	b.must(target.Ready(b.ctx, b.place.Clock, h, s, target.Readiness{}))
	ping := target.Command{Argv: b.place.Commands.Print("x")}
	b.must(target.Ready(b.ctx, b.place.Clock, h, s, target.Readiness{Command: ping}))
	b.fails(target.Ready(b.ctx, b.place.Clock, h, s, target.Readiness{
		Command: target.Command{Argv: b.place.Commands.Fail(3)}, Within: time.Nanosecond}),
		b.name(0), "db", "not ready", "code 3")
	b.must(k.StopService(b.ctx, "db", 0))
	ends := target.Service{Name: "ends", Command: target.Command{Argv: b.place.Commands.Fail(4), Stdout: "ends/out"}}
	b.must(k.StartService(b.ctx, ends))
	b.until("the service has ended", func() bool {
		state, err := k.ServiceState(b.ctx, "ends")
		b.must(err)
		return !state.Running
	})
	b.fails(target.Ready(b.ctx, b.place.Clock, h, ends, target.Readiness{}), b.name(0), "ends", "code 4")
	b.serviceIs(k, "ends", target.ServiceState{Started: true, Exit: target.Exit{Code: 4}})
}

func serviceObjections(_ *testing.T, b *bench) {
	b.running(1)
	k := b.serve(b.name(0), "db", b.word())
	again := target.Service{Name: "db", Command: target.Command{Argv: b.place.Commands.Print("x")}}
	b.fails(k.StartService(b.ctx, again), b.name(0), "db", "runs already")
	b.serviceIs(k, "db", target.ServiceState{Started: true, Running: true})
	b.must(k.StopService(b.ctx, "db", 0))
	absent := target.Service{Name: "x", Command: target.Command{Argv: []string{"no-such-program-here"}}}
	b.fails(k.StartService(b.ctx, absent), b.name(0), "x", "no-such-program-here")
	b.serviceIs(k, "x", target.ServiceState{})
	b.fails(k.StartService(b.ctx, target.Service{Command: again.Command}), b.name(0), "name")
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	b.is(k.StartService(ctx, target.Service{Name: "y", Command: again.Command}), context.Canceled)
	_, err := k.ServiceState(ctx, "db")
	b.is(err, context.Canceled)
	b.is(k.StopService(ctx, "db", 0), context.Canceled)
}

func serviceEndsWithVM(_ *testing.T, b *bench) {
	b.running(2)
	w, other := b.word(), b.word()
	k, stays := b.serve(b.name(0), "db", w), b.serve(b.name(1), "db", other)
	b.must(b.cluster.PowerOff(b.ctx, []string{b.name(0)}))
	b.dead(w)
	_, err := k.ServiceState(b.ctx, "db")
	b.is(err, target.ErrNotAccessible)
	b.is(k.StopService(b.ctx, "db", 0), target.ErrNotAccessible)
	b.serviceIs(stays, "db", target.ServiceState{Started: true, Running: true})
	b.must(stays.StopService(b.ctx, "db", 0))
	b.must(b.cluster.PowerOn(b.ctx, []string{b.name(0)}, 1))
	state, err := b.keeper(b.name(0)).ServiceState(b.ctx, "db")
	b.must(err)
	if state.Running {
		b.t.Error("the service came back with its machine: nothing restarts it")
	}
}

func serviceEndsWithNode(_ *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	b.serve(b.name(0), "db", w)
	b.must(b.controller(0).PowerOff(b.ctx))
	b.state(0, target.Off)
	b.dead(w)
}

func destroyEndsServices(_ *testing.T, b *bench) {
	b.running(2)
	first, second := b.word(), b.word()
	b.serve(b.name(0), "db", first)
	b.serve(b.name(1), "cache", second)
	b.destroy() // without Close, as after a crash
	b.dead(first)
	b.dead(second)
}

// disksArePurged: a purged disk keeps its size, and where its content can be read that is zeros which nobody wrote.
func disksArePurged(t *testing.T, b *bench) {
	b.running(2)
	h := b.host(b.name(0))
	purger, ok := h.(target.DiskPurger)
	if !ok {
		t.Fatalf("%q is claimed, but hosts do not implement target.DiskPurger", target.DiskPurge)
	}
	before := h.Disks()
	b.writeDisk(b.name(0), 0, "what was there before")
	for range 2 { // again is fine
		how, err := purger.PurgeDisk(b.ctx, before[0].Device)
		b.must(err)
		if how == "" {
			t.Error("it does not say how")
		}
	}
	if diff := cmp.Diff(before, h.Disks()); diff != "" {
		t.Errorf("the disks are others: %s", diff)
	}
	_, err := purger.PurgeDisk(b.ctx, "/dev/none")
	b.fails(err, b.name(0), "/dev/none")
	if reader, ok := h.(target.DiskReader); ok {
		disk, err := reader.OpenDisk(b.ctx, before[0].Device)
		b.must(err)
		got := bytes.Repeat([]byte{1}, 1<<16)
		_, err = disk.ReadAt(got, 0)
		b.must(err)
		if !bytes.Equal(got, make([]byte, len(got))) {
			t.Error("it does not read as zeros")
		}
		if written, known, err := disk.Written(0, disk.Size()); err != nil || known && written != 0 {
			t.Errorf("%d bytes of it are said to be written, %v", written, err)
		}
		b.must(disk.Close())
	}
	b.must(b.cluster.PowerOff(b.ctx, []string{b.name(1)}))
	off, _ := b.host(b.name(1)).(target.DiskPurger)
	if _, err := off.PurgeDisk(b.ctx, before[0].Device); !errors.Is(err, target.ErrNotAccessible) {
		t.Errorf("of a machine that is off: %v", err)
	}
}
