package sim

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/sim/perf"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		numa NUMA
		use  float64
		want []float64
	}{
		{NUMA{Nodes: 2}, 0.3, []float64{0.3, 0.3}},
		{NUMA{Nodes: 2, First: 0.75}, 0.4, []float64{0.6, 0.2}},
		{NUMA{Nodes: 2, First: 1}, 0.7, []float64{1, 0.4}},
		{NUMA{Nodes: 4, First: 1}, 0.25, []float64{1, 0, 0, 0}},
	} {
		got := c.numa.spread(c.use)
		for i := range got {
			got[i] = math.Round(1e9*got[i]) / 1e9
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v at %v: %s", c.numa, c.use, diff)
		}
	}
}

// However it is spread, the whole is what the node uses, and no part is more than it has.
func TestSpreadKeepsTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numa := NUMA{Nodes: rapid.IntRange(2, mostNUMA).Draw(t, "nodes"),
			First: rapid.Float64Range(0, 1).Draw(t, "first")}
		use := rapid.Float64Range(0, 1).Draw(t, "use")
		sum := 0.0
		for _, u := range numa.spread(use) {
			if u < 0 || u > 1 {
				t.Fatalf("a part of %v", u)
			}
			sum += u
		}
		if first := numa.First * float64(numa.Nodes); (first >= 1 || first == 0) &&
			math.Abs(sum-use*float64(numa.Nodes)) > 1e-9 {
			t.Fatalf("%v used, %v spread", use*float64(numa.Nodes), sum)
		}
	})
}

// The counters of a node add up to its CPUs' time, and stand still while it is off.
func TestHostCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		truth := perf.DefaultTruth()
		truth.Host.IdleShare = 0.25
		w := New(Options{Nodes: 2, Cores: 8, Truth: &truth, NUMA: NUMA{Nodes: 2, First: 1}})
		c, err := w.Target().Provision(t.Context(), target.Request{RunID: "1", StateDir: "state"})
		if err != nil {
			t.Fatal(err)
		}
		read := func() []target.CPUCounter {
			got, err := c.(target.HostSource).HostCounters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got.CPUs
		}
		if n := len(read()); n != 4 {
			t.Fatalf("%d NUMA nodes", n)
		}
		time.Sleep(10 * time.Second)
		want := []target.CPUCounter{ // 8 CPUs at a quarter for 10 s: 20 s, all of them on the first of two times 4
			{Host: "node-0", CPU: -1, NUMA: 0, User: 20 * time.Second, Idle: 20 * time.Second},
			{Host: "node-0", CPU: -1, NUMA: 1, Idle: 40 * time.Second},
			{Host: "node-1", CPU: -1, NUMA: 0, User: 20 * time.Second, Idle: 20 * time.Second},
			{Host: "node-1", CPU: -1, NUMA: 1, Idle: 40 * time.Second},
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Error(diff)
		}
		if err := (nodeController{c.(*cluster), 0}).PowerOff(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := read(); len(got) != 2 || got[0].Host != "node-1" {
			t.Errorf("with node 0 off: %+v", got)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStarved has a fifth of a node's time stolen and quotas that hold back in six of ten periods.
func TestStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		truth := perf.DefaultTruth()
		truth.Host.IdleShare = 0.25
		w := New(Options{Nodes: 1, Cores: 8, Truth: &truth, Starved: Starved{Steal: 0.2, Quota: 0.6}})
		c, err := w.Target().Provision(t.Context(), target.Request{RunID: "1", StateDir: "state"})
		if err != nil {
			t.Fatal(err)
		}
		source := c.(target.HostSource)
		if _, err := source.HostCounters(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		got, err := source.HostCounters(t.Context())
		want := []target.CPUCounter{{Host: "node-0", CPU: -1, User: 20 * time.Second, Steal: 16 * time.Second,
			Idle: 44 * time.Second}}
		if diff := cmp.Diff(want, got.CPUs); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := (Starved{Steal: 2, Quota: -1}).check(); err == nil ||
		err.Error() != "starved.steal: 2: must be a share from 0 to 1\nstarved.quota: -1: must be a share from 0 to 1" {
		t.Error(err)
	}
}

func TestNUMAObjections(t *testing.T) {
	for text, n := range map[string]NUMA{
		"": {Nodes: 2, First: 0.5},
		"numa.nodes: 65: must be from 0 to 64\nnuma.first: 2: must be a share from 0 to 1": {Nodes: 65, First: 2},
		"numa.first: there is one NUMA node: give numa.nodes as well":                      {First: 0.5},
	} {
		got := ""
		if err := n.check(); err != nil {
			got = err.Error()
		}
		if got != text {
			t.Errorf("%+v: %q", n, got)
		}
	}
}
