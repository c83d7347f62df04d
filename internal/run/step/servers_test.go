package step_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/loads"
	"plimsoll/scenario"
)

// served is a bench whose workload W, on group A, goes to servers.
func served(t *testing.T, use workload.Peers) *bench {
	b := newBench(t)
	b.machines()
	b.env.Loads.Engines["fio"] = serving{engine: b.engine, use: use}
	b.cluster.mu.Lock()
	b.cluster.log = nil
	b.cluster.mu.Unlock()
	b.events = nil
	return b
}

var ofB = workload.Peers{Group: "B", Served: true, Network: true}

// A workload's servers are ready before it starts and gone when it has ended; its machines share them evenly.
func TestServers(t *testing.T) {
	b := served(t, ofB)
	b.must("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0})
	lines := b.cluster.lines()
	var servers []string
	for name, runs := range b.cluster.services {
		servers = append(servers, name)
		if runs {
			t.Errorf("%s still runs", name)
		}
	}
	if len(servers) == 0 || len(b.engine.spec) != 3 {
		t.Fatalf("servers %q, %d jobs", servers, len(b.engine.spec))
	}
	index := func(what string, last bool) int {
		is := func(line string) bool { return strings.Contains(line, " "+what+" ") }
		at := slices.IndexFunc(lines, is)
		for i := at + 1; last && i < len(lines); i++ {
			if is(lines[i]) {
				at = i
			}
		}
		return at
	}
	if first, ready, stop := index("run", false), index("command", true), index("stop", false); ready < 0 ||
		ready > first ||
		stop < index("run", true) {
		t.Errorf("want servers ready before jobs run, and stopped after that:\n%s", strings.Join(lines, "\n"))
	}
	for i, spec := range b.engine.spec {
		if len(spec.Peers) != len(servers) || spec.Peer != i%len(servers) || spec.Address != "at "+short(spec.VM) {
			t.Errorf("machine %d: %+v, peer %d, address %q", i, spec.Peers, spec.Peer, spec.Address)
		}
		for _, p := range spec.Peers {
			if !slices.Contains(servers, p.VM+" "+spec.Name) || p.Address != "at "+short(p.VM) || len(p.Disks) != 1 {
				t.Errorf("peer %+v", p)
			}
		}
	}
	for _, e := range b.events {
		if strings.Contains(e, "warning") {
			t.Error(e)
		}
	}
	b.end()
}

// Each machine its own server, where nothing is said of a group.
func TestServersOnTheSameMachines(t *testing.T) {
	b := served(t, workload.Peers{Served: true})
	b.must("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0})
	for _, spec := range b.engine.spec {
		if len(spec.Peers) != 1 || spec.Peers[0].VM != spec.VM || spec.Peers[0].Address != "" || spec.Address != "" {
			t.Errorf("%s has the peers %+v, address %q", spec.VM, spec.Peers, spec.Address)
		}
	}
	if len(b.cluster.services) != 3 {
		t.Errorf("services %v", b.cluster.services)
	}
	b.end()
}

// A server that stays outlives its workload's starts, serves the next one, is begun anew when it has ended, and goes in
// the end. Every job knows its version.
func TestServersStay(t *testing.T) {
	b := served(t, ofB)
	b.env.Loads.Engines["fio"] = serving{b.engine, ofB, true}
	versions := map[string]bool{}
	open := b.env.Loads.Open
	b.env.Loads.Open = func(l loads.Launch) (loads.Output, error) {
		versions[l.Server.Version] = true
		return open(l)
	}
	running := func() (n int) {
		b.cluster.mu.Lock()
		defer b.cluster.mu.Unlock()
		for _, runs := range b.cluster.services {
			if runs {
				n++
			}
		}
		return n
	}
	start := func() { b.must("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0}) }
	start()
	all := len(b.cluster.services)
	if running() != all {
		t.Fatalf("%d of %d servers run after the first start", running(), all)
	}
	start()
	if running() != all || len(b.cluster.services) != all {
		t.Errorf("%d servers run after the second start, of %d; want the same %d", running(), len(b.cluster.services),
			all)
	}
	b.cluster.mu.Lock()
	for name := range b.cluster.services {
		b.cluster.services[name] = false
	}
	b.cluster.mu.Unlock()
	start()
	if running() != all || len(b.cluster.services) != 2*all {
		t.Errorf("%d servers run after the third start, of %d; want %d new ones", running(), len(b.cluster.services), all)
	}
	if stopped, remains := b.env.Loads.StopAll(t.Context()); running() != 0 || len(stopped)+len(remains) != 0 {
		t.Errorf("%d servers run in the end; %q, %q", running(), stopped, remains)
	}
	if want := map[string]bool{"db 7.1 of 7_B_0000": true}; !maps.Equal(versions, want) {
		t.Errorf("versions %v, want %v", versions, want)
	}
	warnings := 0
	for _, e := range b.events {
		if strings.Contains(e, "had ended before it was stopped") {
			warnings++
		}
	}
	if warnings != all {
		t.Errorf("%d warnings of %d servers that have ended:\n%s", warnings, all, strings.Join(b.events, "\n"))
	}
	b.end()
}

// However a workload ends, its servers end with it; what went wrong with them is said.
func TestServersEnd(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench)
		do     func(*bench) error
		fails  string
		warns  string
	}{
		"not ready": {change: func(b *bench) { b.cluster.fail["command"] = errors.New("refused to ping") },
			fails: "refused to ping"},
		"job fails": {change: func(b *bench) { b.engine.how["7_A_0001"] = errScripted }, fails: "the tool refused"},
		"cannot be started": {change: func(b *bench) { b.cluster.fail["serve"] = errors.New("no such program") },
			fails: "no such program"},
		"stopped": {do: func(b *bench) error {
			err := b.do("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 600.0, "async": true})
			return errors.Join(err, b.do("workload.Stop", scenario.Args{"workload_name": "W"}))
		}},
		"ends by itself": {do: func(b *bench) error {
			err := b.do("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0, "async": true})
			b.cluster.mu.Lock()
			for name := range b.cluster.services {
				b.cluster.services[name] = false
			}
			b.cluster.mu.Unlock()
			return errors.Join(err, b.do("workload.Wait", scenario.Args{"workload_name": "W"}))
		}, warns: "had ended before it was stopped (code 3)"},
		"its machine goes away": {do: func(b *bench) error {
			err := b.do("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0, "async": true})
			b.cluster.power(1, true)
			return errors.Join(err, b.do("workload.Wait", scenario.Args{"workload_name": "W"}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := served(t, ofB)
			if c.change != nil {
				c.change(b)
			}
			do := c.do
			if do == nil {
				do = func(b *bench) error {
					return b.do("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0})
				}
			}
			err := do(b)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			if err := b.env.Loads.Close(context.Background()); err != nil {
				t.Error(err)
			}
			for name, runs := range b.cluster.services {
				host, _ := b.cluster.Host(strings.Fields(name)[0])
				if runs && host.Accessible(context.Background()) == nil {
					t.Errorf("%s still runs", name)
				}
			}
			warned := strings.Join(
				slices.DeleteFunc(slices.Clone(b.events),
					func(e string) bool { return !strings.Contains(e, "warning") }),
				"\n",
			)
			if (warned == "") != (c.warns == "") || !strings.Contains(warned, c.warns) {
				t.Errorf("warnings %q, want %q", warned, c.warns)
			}
			b.end()
		})
	}
}

// Where machines cannot meet, or servers cannot be kept, it is said before anything is started.
func TestServersNeed(t *testing.T) {
	b := newBench(t)
	b.must("vm_group.CloneFromTemplate", scenario.Args{"vm_group_name": "A"})
	b.must("vm_group.PowerOn", scenario.Args{"vm_group_name": "A"})
	b.env.Loads.Engines["fio"] = serving{engine: b.engine, use: workload.Peers{Group: "B", Served: true}}
	err := b.do("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0})
	if err == nil || !strings.Contains(err.Error(), "its server") || !strings.Contains(err.Error(), `"B"`) {
		t.Errorf("a group that has no machines yet: %v", err)
	}
	if len(b.engine.spec) > 0 {
		t.Error("jobs were made all the same")
	}
	b.end()
	var _ target.ServiceKeeper = (*host)(nil)
	var _ target.Networked = (*host)(nil)
}
