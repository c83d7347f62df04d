package lab_test

import (
	"context"
	"sync"
	"testing"

	"plimsoll/internal/contract/target"
	place "plimsoll/internal/targets/lab"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// Guests see the CPUs that they are told of, and the run hears how long they took to boot and how they moved.
func TestTopologyBootsAndMoves(t *testing.T) {
	l := shared(t)
	p := l.place(t, target.Options{"sockets": "2", "numa": "2", "pins": "0"})
	state := t.TempDir()
	t.Cleanup(func() {
		if remains, err := p.Destroy(context.Background(), state); err != nil || len(remains) > 0 {
			t.Errorf("destroy: %v, %v", remains, err)
		}
	})
	var mu sync.Mutex
	var boots []result.Boot
	var moves []result.Migration
	c, err := p.Provision(t.Context(), target.Request{RunID: "topology", StateDir: state, Log: t.Logf,
		Booted:   func(b result.Boot) { mu.Lock(); boots = append(boots, b); mu.Unlock() },
		Migrated: func(m result.Migration) { mu.Lock(); moves = append(moves, m); mu.Unlock() }})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	maker, _ := c.(target.VMMaker)
	power, _ := c.(target.VMPower)
	mover, _ := c.(target.Migrator)
	must(t, maker.CreateTemplate(t.Context(), target.Template{Name: "gold", Group: "G", CPUs: 2,
		MemoryBytes: 192 << 20, DiskBytes: []int64{64 << 20}}))
	must(t, maker.Clone(t.Context(), target.Clone{Source: "gold", Group: "G", Linked: true,
		Members: []target.Placement{{Name: "one"}, {Name: "two", Node: 1}}}))
	on := []string{"one"} // two boot beside each other in another test
	if needs.All() {
		on = append(on, "two")
	}
	must(t, power.PowerOn(t.Context(), on, 2))
	const ask = "grep -c 'physical id.*: [01]$' /proc/cpuinfo; sort -u /sys/devices/system/cpu/cpu*/topology/" +
		"physical_package_id; cat /sys/devices/system/node/online /sys/devices/system/node/node1/cpulist"
	if got, want := said(t, c, "one", ask), "2\n0\n1\n0-1\n1"; got != want {
		t.Errorf("the guest sees %q, want %q", got, want)
	}
	must(t, mover.Migrate(t.Context(), "one", 1))
	if got, want := said(t, c, "one", ask), "2\n0\n1\n0-1\n1"; got != want {
		t.Errorf("after it moved the guest sees %q, want %q", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(boots) != len(on) || !boots[0].Asked.Equal(boots[len(on)-1].Asked) {
		t.Errorf("boots: %+v", boots)
	}
	for _, b := range boots {
		node := map[string]int{"one": 0, "two": 1}[b.VM]
		if b.Group != "G" || b.Node != node || b.Started.Before(b.Asked) || !b.Answered.After(b.Started) {
			t.Errorf("boot: %+v", b)
		}
	}
	if len(moves) != 1 || moves[0].VM != "one" || moves[0].Group != "G" || moves[0].From != 0 || moves[0].To != 1 ||
		moves[0].Seconds <= 0 || moves[0].StillSeconds < 0 || moves[0].MemoryBytes <= 0 {
		t.Errorf("moves: %+v", moves)
	}
	err = maker.CreateTemplate(t.Context(), target.Template{Name: "odd", Group: "G", CPUs: 1, MemoryBytes: 192 << 20})
	const want = `vm "odd": target options sockets, threads, numa: 1 CPUs: not a multiple of 2 sockets times 1 threads` +
		"\n2 NUMA nodes: 1 CPUs and 192 MiB cannot be shared evenly"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0, 1,0": "",
		"0-3":    `target lab: option "pins": "0-3" is no list of CPUs such as 0,2,1,3, with numbers below 1024`,
		"1024":   `target lab: option "pins": "1024" is no list of CPUs such as 0,2,1,3, with numbers below 1024`,
	} {
		got := ""
		if _, err := (place.Provider{}).New(target.Config{Options: target.Options{"pins": text}}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("pins %q: got %q, want %q", text, got, want)
		}
	}
}
