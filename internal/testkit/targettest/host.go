package targettest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
)

var hostTests = []subtest{
	{name: "command output and exit", gentle: true, run: commandOutput},
	{name: "command that cannot start", gentle: true, run: commandCannotStart},
	{name: "kill ends the unit", gentle: true, run: killEndsUnit},
	{name: "children left behind are ended", gentle: true, run: orphansEnd},
	{name: "waiting with a limit", gentle: true, run: waitingWithLimit},
	{name: "usage counts children", gentle: true, run: usageCountsChildren},
	{name: "staging", gentle: true, run: staging},
	{name: "files", gentle: true, run: files},
	{name: "files stay below the working folder", gentle: true, run: filesStayBelow},
	{name: "cancelled context on a host", gentle: true, run: hostCancelled},
	{name: "output is followed while it is written", gentle: true, run: outputIsFollowed},
}

func commandOutput(t *testing.T, b *bench) {
	b.running(1)
	if got := b.output(b.name(0), b.place.Commands.Print("two words; $HOME")); got != "two words; $HOME" {
		t.Errorf("printed %q", got)
	}
	if got := b.output(b.name(0), b.place.Commands.Print("x")); got != "x" {
		t.Errorf("a second command's output is %q: want it alone", got)
	}
	p := b.start(b.name(0), b.place.Commands.Fail(3))
	for range 2 { // waiting again gives the same
		if exit := b.wait(p); exit != (target.Exit{Code: 3}) {
			t.Errorf("exit %+v, want code 3", exit)
		}
	}
	p, err := b.host(b.name(0)).Start(b.ctx, target.Command{Argv: b.place.Commands.Print("discarded")})
	b.must(err)
	if exit := b.wait(p); exit != (target.Exit{}) {
		t.Errorf("exit %+v", exit)
	}
}

func commandCannotStart(_ *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	_, err := h.Start(b.ctx, target.Command{Argv: []string{"no-such-program-here"}})
	b.fails(err, b.name(0), "no-such-program-here")
	_, err = h.Start(b.ctx, target.Command{Label: "empty"})
	b.fails(err, b.name(0), "empty")
}

func killEndsUnit(t *testing.T, b *bench) {
	b.running(1)
	killed, other := b.word(), b.word()
	p, q := b.spawn(b.name(0), killed), b.spawn(b.name(0), other)
	b.must(p.Kill())
	b.dead(killed)
	exit := b.wait(p)
	if exit.Code != -1 || exit.Signal == "" || exit.Lost {
		t.Errorf("exit %+v: want a signal, and not lost", exit)
	}
	if n := b.lives(other); n < 2 {
		t.Errorf("another command of the VM: %d of its processes live", n)
	}
	b.must(q.Kill())
	b.must(p.Kill()) // ended already is fine
}

func orphansEnd(t *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	if exit := b.wait(b.start(b.name(0), b.place.Commands.Orphan(w))); exit != (target.Exit{}) {
		t.Errorf("exit %+v", exit)
	}
	b.dead(w)
}

func waitingWithLimit(t *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	p := b.spawn(b.name(0), w)
	ctx, cancel := context.WithCancel(b.ctx)
	b.place.Clock.Group().Go(func() {
		_ = b.place.Clock.Sleep(b.ctx, 20*time.Millisecond)
		cancel()
	})
	if _, err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v: want the context's error", err)
	}
	if b.lives(w) < 2 {
		t.Error("the end of waiting ended the command")
	}
	b.must(p.Kill())
}

func usageCountsChildren(t *testing.T, b *bench) {
	b.running(1)
	p := b.start(b.name(0), b.place.Commands.Burn())
	b.wait(p)
	u := p.Usage()
	if u.User+u.System < 50*time.Millisecond {
		t.Errorf("usage %+v: want at least 50 ms of CPU time", u)
	}
	if again := p.Usage(); again != u {
		t.Errorf("usage of an ended command went from %+v to %+v", u, again)
	}
}

// staging: a command that is ready has not begun; it begins once, when it is released, and never when it is dropped.
func staging(t *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	stager, ok := h.(target.Stager)
	if !ok {
		t.Skip("commands are not made ready beforehand there")
	}
	stage := func(text, file string) target.Staged {
		s, err := stager.Stage(b.ctx, target.Command{Argv: b.place.Commands.Print(text), Stdout: file})
		b.must(err)
		return s
	}
	first, second := stage("released", "first"), stage("dropped", "second")
	for _, name := range []string{"first", "second"} {
		if got, err := target.ReadFile(b.ctx, h, name, 0, 100); err != nil || got != nil {
			t.Errorf("%s: %q, %v: want an empty file", name, got, err)
		}
	}
	before := time.Now()
	p, begun, err := first.Release(b.ctx, before.Add(100*time.Millisecond))
	b.must(err)
	after := time.Now()
	if exit := b.wait(p); exit != (target.Exit{}) {
		t.Errorf("released: %+v", exit)
	}
	before = before.Add(100*time.Millisecond - begun.Within)
	if !begun.At.IsZero() && (begun.At.Before(before) || begun.At.After(after.Add(begun.Within))) {
		t.Errorf("it began at %v ± %v, and was released between %v and %v", begun.At, begun.Within, before, after)
	}
	b.must(second.Drop(b.ctx))
	for name, want := range map[string]string{"first": "released", "second": ""} {
		if got, err := target.ReadFile(b.ctx, h, name, 0, 100); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v: want %q", name, got, err, want)
		}
	}
	again, _, err := first.Release(b.ctx, time.Time{})
	b.must(err)
	b.wait(again)
	if got, err := target.ReadFile(b.ctx, h, "first", 0, 100); err != nil || string(got) != "released" {
		t.Errorf("released again: %q, %v", got, err)
	}
	_, err = stager.Stage(b.ctx, target.Command{Argv: []string{"/no/such/program"}, Stdout: "third"})
	b.fails(err, b.name(0), "/no/such/program")
	if reader, ok := h.(target.ClockReader); ok { // most machines of tests have the one clock
		r, err := reader.ReadClock(b.ctx)
		b.must(err)
		if r.Bound <= 0 || r.Ahead.Abs() > r.Bound && !b.place.OwnClocks {
			t.Errorf("the clock is read as %v ± %v ahead", r.Ahead, r.Bound)
		}
	}
}

func files(t *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	content := []byte(strings.Repeat("0123456789", 1000))
	for range 2 { // the second replaces the first
		b.must(target.WriteFile(b.ctx, h, "deep/er/file", content))
	}
	for _, c := range []struct {
		offset int64
		limit  int
		want   []byte
	}{{0, 10, content[:10]}, {9_995, 100, content[9_995:]}, {10_000, 10, nil}, {20_000, 10, nil}, {0, 1 << 20,
		content}} {
		got, err := target.ReadFile(b.ctx, h, "deep/er/file", c.offset, c.limit)
		if err != nil || !bytes.Equal(got, c.want) || (c.want == nil) != (got == nil) {
			t.Errorf("read %d at %d: %d bytes, nil %t, %v; want %d", c.limit, c.offset, len(got), got == nil, err,
				len(c.want))
		}
	}
	if d, ok := h.(target.Discarder); ok {
		b.must(d.Discard(b.ctx, "deep/er/file", 8192))
		b.must(d.Discard(b.ctx, "absent", 8192))
		got, err := target.ReadFile(b.ctx, h, "deep/er/file", 8192, 1<<20)
		if err != nil || !bytes.Equal(got, content[8192:]) {
			t.Errorf("after discarding 8192 bytes the rest is %d bytes, %v", len(got), err)
		}
	}
	for range 2 { // absent is fine
		b.must(h.Remove(b.ctx, "deep"))
	}
	_, err := target.ReadFile(b.ctx, h, "deep/er/file", 0, 10)
	b.fails(err, b.name(0), "deep/er/file")
	_, err = target.ReadFile(b.ctx, h, "deep/er/file", -1, 10)
	b.fails(err, "-1")
}

func filesStayBelow(_ *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	for _, name := range []string{"../out", "/etc/out", "a/../../out", ""} {
		b.fails(target.WriteFile(b.ctx, h, name, []byte("x")), b.name(0))
		_, err := target.ReadFile(b.ctx, h, name, 0, 1)
		b.fails(err, b.name(0))
		b.fails(h.Remove(b.ctx, name), b.name(0))
		if name != "" { // no name discards the output
			_, err = h.Start(b.ctx, target.Command{Argv: b.place.Commands.Print("x"), Stdout: name})
			b.fails(err, b.name(0))
		}
	}
	b.fails(h.Remove(b.ctx, "."), b.name(0))
}

func outputIsFollowed(t *testing.T, b *bench) {
	b.running(1)
	h := b.host(b.name(0))
	var got []byte
	for _, part := range []string{"first ", "second ", "third"} {
		b.must(target.WriteFile(b.ctx, h, "log", append(bytes.Clone(got), part...)))
		b.until("the new part is seen", func() bool {
			data, err := target.ReadFile(b.ctx, h, "log", int64(len(got)), 4)
			b.must(err)
			got = append(got, data...)
			return bytes.HasSuffix(got, []byte(part))
		})
	}
	if string(got) != "first second third" {
		t.Errorf("followed %q", got)
	}
}

// hostCancelled is "cancelled context" for a place that powers no machines.
func hostCancelled(t *testing.T, b *bench) {
	b.running(1)
	h, w := b.host(b.name(0)), b.word()
	b.must(target.WriteFile(b.ctx, h, "kept", []byte("before")))
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, startErr := h.Start(ctx, target.Command{Argv: b.place.Commands.Spawn(w)})
	_, getErr := h.Get(ctx, "kept", 0)
	_, _, stateErr := b.cluster.NodeState(ctx, 0)
	for name, err := range map[string]error{
		"Accessible": h.Accessible(ctx), "Start": startErr, "Get": getErr, "NodeState": stateErr,
		"Put": target.WriteFile(ctx, h, "kept", []byte("after")), "Remove": h.Remove(ctx, "kept"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v: want the context's error", name, err)
		}
	}
	if got := b.content(b.name(0), "kept"); string(got) != "before" {
		t.Errorf("calls with a cancelled context changed a file to %q", got)
	}
	b.dead(w)
}
