package targettest

import (
	"testing"

	"plimsoll/internal/contract/target"
)

var destroyTests = []subtest{
	{name: "destroy from a fresh target", run: destroyFresh},
	{name: "destroy half-finished work", needs: copies, run: destroyHalfFinished},
	{name: "destroy twice, and where nothing was", run: destroyTwice},
	{name: "destroy with commands running", run: destroyRunning},
	{name: "a second run beside the first is left alone", run: destroyLeavesOthers},
	{name: "close leaves everything", run: closeLeaves},
}

// destroy asserts that a fresh Target value removes the run.
func (b *bench) destroy() {
	b.t.Helper()
	remains, err := b.place.New().Destroy(b.ctx, b.place.Request.StateDir)
	b.must(err)
	if len(remains) > 0 {
		b.t.Errorf("remains: %q", remains)
	}
	if left := b.place.Remains(); len(left) > 0 {
		b.t.Errorf("left after destroy: %q", left)
	}
}

func destroyFresh(_ *testing.T, b *bench) {
	b.running(3)
	b.must(b.cluster.Close())
	b.destroy()
}

func destroyHalfFinished(_ *testing.T, b *bench) {
	b.running(2)
	err := b.cluster.Clone(b.ctx, target.Clone{Source: "a-0", Members: []target.Placement{{Name: "b-0", Node: 0},
		{Name: "b-1", Node: 99}}})
	b.is(err, target.ErrNoSuchNode)
	b.must(b.cluster.Delete(b.ctx, []string{"a-1"}))
	b.destroy() // without Close, as after a crash
}

func destroyTwice(t *testing.T, b *bench) {
	b.running(1)
	b.must(b.cluster.Close())
	b.destroy()
	b.destroy()
	remains, err := b.place.New().Destroy(b.ctx, b.place.Request.StateDir+"-never-was")
	if err != nil || len(remains) > 0 {
		t.Errorf("a run that left nothing: %v, %q", err, remains)
	}
}

func destroyRunning(t *testing.T, b *bench) {
	b.running(2)
	w := b.word()
	p := b.spawn(b.name(0), w)
	b.destroy()
	b.dead(w)
	b.wait(p)
}

func destroyLeavesOthers(t *testing.T, b *bench) {
	other := b.place
	other.Request.RunID += "-other"
	other.Request.StateDir = b.place.OtherStateDir
	c, err := other.New().Provision(b.ctx, other.Request)
	b.must(err)
	o := &bench{t: t, ctx: b.ctx, place: other, facts: b.facts, cluster: MachinesOf(c)}
	o.running(1)
	w := b.word()
	p := o.spawn(b.name(0), w)
	b.running(1)
	remains, err := b.place.New().Destroy(b.ctx, b.place.Request.StateDir)
	b.must(err)
	if len(remains) > 0 {
		t.Errorf("remains: %q", remains)
	}
	if b.lives(w) < 2 || o.power(b.name(0)) != target.On {
		t.Error("destroying one run hit another one")
	}
	b.must(p.Kill())
	b.must(c.Close())
	remains, err = other.New().Destroy(b.ctx, other.Request.StateDir)
	b.must(err)
	if len(remains) > 0 {
		t.Errorf("remains of the other: %q", remains)
	}
}

func closeLeaves(t *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	p := b.spawn(b.name(0), w)
	if n := b.lives(w); n < 2 {
		t.Errorf("%d processes of a command live", n)
	}
	for range 2 {
		b.must(b.cluster.Close())
	}
	if b.lives(w) < 2 {
		t.Error("closing the cluster ended a command")
	}
	b.destroy()
	b.dead(w)
	b.wait(p)
}
