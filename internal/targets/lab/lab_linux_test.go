//go:build linux

package lab_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	place "plimsoll/internal/targets/lab"
	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/targets/power/ipmi"
	"plimsoll/internal/targets/power/redfish"
	"plimsoll/internal/testkit/needs"
)

// TestMain has the test's own executable be the parts of a lab, as plimsoll is.
func TestMain(m *testing.M) {
	if args := os.Args[1:]; len(args) > 2 && args[0] == "lab" && args[1] == "part" {
		if err := lab.Part(context.Background(), args[2:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := place.DownSharedLab(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	needs.Print(os.Stderr)
	os.Exit(code)
}

// built is the agent of this source.
func built(t *testing.T) string {
	t.Helper()
	return needs.Program(t, "./cmd/plimsoll-agent")
}

// made is the lab of the package.
type made struct{ dir, agent string }

func shared(t *testing.T) made {
	t.Helper()
	needs.QEMU(t)
	return made{place.SharedLab(t).Dir(), built(t)}
}

// place is a fresh one over the lab.
func (l made) place(t testing.TB, o target.Options) target.Target {
	t.Helper()
	if o == nil {
		o = target.Options{}
	}
	o["dir"], o["agent"] = l.dir, l.agent
	p, err := place.Provider{}.New(target.Config{Options: o,
		PowerKinds: []target.PowerKind{ipmi.Kind{}, redfish.Kind{}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// remains returns what runs have left in the lab.
func (l made) remains() []string {
	left, err := filepath.Glob(filepath.Join(l.dir, "*", "plimsoll-run-*"))
	if err != nil {
		return []string{err.Error()}
	}
	return left
}

// opened is a cluster of two guests on the two nodes of the lab, linked clones of one template.
func opened(t *testing.T) target.Cluster {
	t.Helper()
	l := shared(t)
	p := l.place(t, nil)
	if _, err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	t.Cleanup(func() {
		for range 2 {
			if remains, err := p.Destroy(context.Background(), state); err != nil || len(remains) > 0 {
				t.Errorf("destroy: %v, %v", remains, err)
			}
		}
		if left := l.remains(); len(left) > 0 {
			t.Errorf("destroy has left %v", left)
		}
	})
	c, err := p.Provision(t.Context(), target.Request{RunID: "test", StateDir: state, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	maker, _ := c.(target.VMMaker)
	power, _ := c.(target.VMPower)
	must(t, maker.CreateTemplate(t.Context(), target.Template{Name: "gold", Group: "G", CPUs: 1,
		MemoryBytes: 192 << 20, DiskBytes: []int64{64 << 20}}))
	must(t, maker.Clone(t.Context(), target.Clone{Source: "gold", Group: "G", Linked: true,
		Members: []target.Placement{{Name: "one"}, {Name: "two", Node: 1}}}))
	must(t, power.PowerOn(t.Context(), []string{"one", "two"}, 2))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// said returns what a command in a guest prints.
func said(t *testing.T, c target.Cluster, vm, line string) string {
	t.Helper()
	h, err := c.Host(vm)
	must(t, err)
	p, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", line}, Stdout: "out", Stderr: "out"})
	must(t, err)
	exit, err := p.Wait(t.Context())
	must(t, err)
	out, err := target.ReadFile(t.Context(), h, "out", 0, 1<<16)
	must(t, err)
	if exit.Code != 0 {
		t.Fatalf("%s: %q: %+v, %s", vm, line, exit, out)
	}
	return strings.TrimSpace(string(out))
}

// places tells on which node each guest is.
func places(t *testing.T, c target.Cluster) map[string]string {
	t.Helper()
	vms, err := c.VMs(t.Context())
	must(t, err)
	is := map[string]string{}
	for _, v := range vms {
		is[v.Name] = fmt.Sprintf("%s on node %d", v.Power, v.Node)
	}
	return is
}

// Guests have identities of their own and keep them, and what they have synchronized, when they move while they run and
// when the node under them dies: they are started on the other one.
func TestGuestsOutliveNodes(t *testing.T) {
	c := opened(t)
	maker, _ := c.(target.VMMaker)
	power, _ := c.(target.VMPower)
	if err := power.PowerOn(t.Context(), []string{"gold"}, 1); err == nil ||
		!strings.Contains(err.Error(), "linked clones") {
		t.Errorf("the base of clones was powered on: %v", err)
	}
	if err := maker.Delete(t.Context(), []string{"gold", "one"}); err == nil ||
		!strings.Contains(err.Error(), "two are linked") {
		t.Errorf("the base of a clone was deleted: %v", err)
	}
	const who = "hostname; cat /etc/machine-id; ls /dev/sd[b-z]"
	was := map[string]string{"one": said(t, c, "one", who), "two": said(t, c, "two", who)}
	if was["one"] == was["two"] || !strings.HasPrefix(was["one"], "one\n") ||
		!strings.HasSuffix(was["one"], "/dev/sdb") {
		t.Errorf("identities: %q", was)
	}
	for vm := range was {
		said(t, c, vm, "echo kept by "+vm+" | dd of=/dev/sdb bs=4096 conv=sync,fsync 2>/dev/null")
	}
	mover, _ := c.(target.Migrator)
	must(t, mover.Migrate(t.Context(), "one", 1))
	if got := said(t, c, "one", who); got != was["one"] {
		t.Errorf("after it moved: %q, was %q", got, was["one"])
	}
	want := map[string]string{"gold": "off on node 0", "one": "on on node 1", "two": "on on node 1"}
	if d := cmp.Diff(want, places(t, c)); d != "" {
		t.Error(d)
	}
	nodes, _ := c.(target.NodePower)
	controller, err := nodes.PowerController(1)
	must(t, err)
	must(t, controller.PowerOff(t.Context()))
	want["one"], want["two"] = "on on node 0", "on on node 0"
	for range 180 { // seconds
		if maps.Equal(want, places(t, c)) {
			break
		}
		time.Sleep(time.Second)
	}
	if d := cmp.Diff(want, places(t, c)); d != "" {
		t.Fatal(d)
	}
	for vm := range was {
		for range 60 { // seconds, until it has booted
			h, err := c.Host(vm)
			must(t, err)
			if h.Accessible(t.Context()) == nil {
				break
			}
			time.Sleep(time.Second)
		}
		if got := said(t, c, vm, who); got != was[vm] {
			t.Errorf("after its node was lost: %q, was %q", got, was[vm])
		}
		if got := said(t, c, vm, "head -n 1 /dev/sdb"); got != "kept by "+vm {
			t.Errorf("%s: what was synchronized is %q", vm, got)
		}
	}
}

// Where no lab is up a run makes one, which a fresh process removes with all that is in it, also when nobody has closed
// it and when it is removed already.
func TestLabOfTheRun(t *testing.T) {
	needs.Lab(t, false)
	needs.QEMU(t)
	t.Setenv("PLIMSOLL_LAB", "/nowhere/lab")
	temporary := t.TempDir()
	needs.Outlives(t, temporary)
	t.Setenv("TMPDIR", temporary)
	o := target.Options{"agent": built(t), "storage": lab.Shared}
	fresh := func() target.Target {
		p, err := place.Provider{}.New(target.Config{Nodes: 2, Options: o})
		must(t, err)
		return p
	}
	facts, err := fresh().Check(t.Context())
	must(t, err)
	var nodes []string
	for _, n := range facts.Nodes {
		nodes = append(nodes, n.Name+" "+n.Address)
	}
	if d := cmp.Diff([]string{"node1 10.77.0.11", "node2 10.77.0.12"}, nodes); d != "" {
		t.Error(d)
	}
	labs := func() int {
		found, err := filepath.Glob(filepath.Join(temporary, "plimsoll-lab-*", "lab.json"))
		must(t, err)
		return len(found)
	}
	if labs() != 0 {
		t.Error("a check has made a lab")
	}
	state := t.TempDir()
	t.Cleanup(func() { _, _ = fresh().Destroy(context.Background(), state) })
	c, err := fresh().Provision(t.Context(), target.Request{RunID: "own", StateDir: state, Log: t.Logf})
	must(t, err)
	maker, _ := c.(target.VMMaker)
	power, _ := c.(target.VMPower)
	must(t, maker.CreateTemplate(t.Context(), target.Template{Name: "one", Group: "G", CPUs: 1,
		MemoryBytes: 192 << 20, DiskBytes: []int64{64 << 20}}))
	if needs.All() { // guests boot in the other tests
		must(t, power.PowerOn(t.Context(), []string{"one"}, 1))
	}
	if labs() != 1 {
		t.Errorf("%d labs for one run", labs())
	}
	must(t, c.Close())
	for range 2 {
		if remains, err := fresh().Destroy(t.Context(), state); err != nil || len(remains) > 0 {
			t.Errorf("destroy: %v, %v", remains, err)
		}
		if labs() != 0 {
			t.Error("destroy has left the lab")
		}
	}
	if left, _ := filepath.Glob(filepath.Join(state, "*", "*")); len(left) > 0 {
		t.Errorf("destroy has left %q", left)
	}
}

// A lab with other nodes than asked for is objected to.
func TestNodesOfALab(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "lab.json"),
		[]byte(`{"version": 1, "id": "abcdef", "nodes": 2, "storage": "shared"}`), 0o600))
	p, err := place.Provider{}.New(target.Config{Nodes: 3, Options: target.Options{"dir": dir}})
	must(t, err)
	_, err = p.Check(t.Context())
	if want := "target lab: nodes 3: the lab in " + dir + " has 2: --nodes 2"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Every option that cannot be taken is objected to at once.
func Example() {
	_, err := place.Provider{}.New(target.Config{Options: target.Options{"image": "windows", "memory": "1MiB"}})
	fmt.Println(err)
	// Output:
	// target lab: option "image": "windows" is none of worker, debian
	// target lab: option "memory": "1MiB" is no size from 128MiB on
}
