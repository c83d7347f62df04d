package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/targettest"
	"plimsoll/result"
)

// failing is a cluster of four nodes with two VMs of 1 GiB on each, and what it tells of failures.
type failing struct {
	t     *testing.T
	began time.Time
	clock *clock.Virtual
	world *sim.World
	targettest.Machines
	story []string
}

func newFailing(t *testing.T, memory int64, ha sim.HA) *failing {
	f := &failing{t: t, clock: clock.NewVirtual(sim.Start)}
	f.world = sim.New(sim.Options{Clock: f.clock, MemoryBytes: memory, FreeMemory: 1 << 40, Boot: 15 * time.Second,
		NodeBoot: 2 * time.Minute, HA: ha})
	c, err := f.world.Target().Provision(t.Context(),
		target.Request{RunID: "run", StateDir: "state", Fault: func(_ int, state, text, _ string) {
			if back := strings.Contains(text, "powers on"); back != (state == result.PowerOn) {
				f.t.Errorf("%s: state %q: what gives power again is no fault", text, state)
			}
			f.say(text)
		}})
	f.must(err)
	f.Machines = targettest.MachinesOf(c)
	f.must(f.CreateTemplate(t.Context(), target.Template{Name: "t", Group: "g", MemoryBytes: 1 << 30,
		DiskBytes: []int64{1 << 30}}))
	var members []target.Placement
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprint("vm", i))
		members = append(members, target.Placement{Name: names[i], Node: i % 4})
	}
	f.must(f.Clone(t.Context(), target.Clone{Source: "t", Group: "g", Members: members}))
	f.must(f.PowerOn(t.Context(), names, 8))
	f.began = f.clock.Now()
	return f
}

func (f *failing) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *failing) say(text string) {
	f.story = append(f.story, fmt.Sprintf("%4.0f %s", f.clock.Now().Sub(f.began).Seconds(), text))
}

// after lets time pass and notes where the VMs are that are on.
func (f *failing) after(d time.Duration) {
	f.t.Helper()
	f.must(f.clock.Sleep(f.t.Context(), d))
	vms, err := f.VMs(f.t.Context())
	f.must(err)
	on := make([]string, 4)
	for _, vm := range vms {
		if vm.Power == target.On {
			on[vm.Node] += strings.TrimPrefix(vm.Name, "vm")
		}
	}
	f.say("on " + strings.Join(on, " "))
}

func (f *failing) expect(want ...string) {
	f.t.Helper()
	f.must(f.Close())
	if diff := cmp.Diff(want, f.story); diff != "" {
		f.t.Errorf("(-want +got)\n%s", diff)
	}
}

// VMs of a failed node boot where there is memory, except those that are exempt, and the others rebuild, for which they
// take their time.
func TestHighAvailability(t *testing.T) {
	f := newFailing(t, 16<<30, sim.HA{After: time.Minute, Rebuild: 10 * time.Minute, Load: 0.25})
	f.must(f.Cluster.(target.Availability).SetHA(t.Context(), []string{"vm5"}, false))
	f.world.LoseNode(1)
	f.after(59 * time.Second)
	f.after(15 * time.Second)
	f.after(2 * time.Second)
	f.must(controller(t, f.Cluster, 1).PowerOn(t.Context()))
	f.after(20 * time.Minute)
	f.expect("  59 on 04  26 37",
		"  60 high availability powers on VMs of node-1: 1",
		"  60 the data of node-1 are being rebuilt",
		"  74 on 04  26 37",
		"  76 on 014  26 37",
		" 660 the data of node-1 are rebuilt",
		"1276 on 014  26 37")
}

// What does not fit stays off. Two nodes that fail together share what is left.
func TestFailoverWithoutRoom(t *testing.T) {
	f := newFailing(t, 3<<30, sim.HA{After: time.Minute})
	f.world.LoseNode(1)
	f.world.LoseNode(3)
	f.after(2 * time.Minute)
	f.expect("  60 high availability powers on VMs of node-1: 2",
		"  60 high availability powers on VMs of node-3: 0; no node has the memory for 2 more",
		" 120 on 014  256 ")
}

// When no node is left, VMs come back with the first node that does. A node that is back by then has nothing to be
// rebuilt.
func TestFailoverOfAll(t *testing.T) {
	f := newFailing(t, 16<<30, sim.HA{After: time.Minute, Rebuild: time.Minute, Load: 0.1})
	for node := range 4 {
		f.world.LoseNode(node)
	}
	f.after(10 * time.Minute)
	for node := range 4 {
		f.must(controller(t, f.Cluster, node).PowerOn(t.Context()))
	}
	f.after(2 * time.Minute)
	f.after(time.Minute)
	var want []string
	for node := range 4 {
		want = append(want, fmt.Sprintf(" 720 high availability powers on VMs of node-%d: 2", node))
	}
	f.expect(slices.Concat([]string{" 600 on    ", " 720 on    "}, want, []string{" 780 on 04 15 26 37"})...)
}

// What somebody powers off before the cluster acts stays off; what somebody powers on elsewhere stays there.
func TestFailoverOvertaken(t *testing.T) {
	f := newFailing(t, 16<<30, sim.HA{After: time.Minute})
	f.world.LoseNode(1)
	f.must(f.PowerOff(t.Context(), []string{"vm1"}))
	f.must(f.Move(t.Context(), "vm5", 3))
	f.must(f.PowerOn(t.Context(), []string{"vm5"}, 1))
	f.after(10 * time.Minute)
	f.expect(" 615 on 04  26 357")

	f = newFailing(t, 16<<30, sim.HA{After: time.Minute})
	f.world.LoseNode(1)
	f.after(70 * time.Second)
	f.must(f.PowerOff(t.Context(), []string{"vm1"})) // while it boots
	f.after(time.Minute)
	f.expect("  60 high availability powers on VMs of node-1: 2", "  70 on 04  26 37", " 130 on 04  256 37")
}

// Without it, what was on a failed node stays off.
func TestNoHighAvailability(t *testing.T) {
	f := newFailing(t, 16<<30, sim.HA{})
	f.world.LoseNode(1)
	f.after(time.Hour)
	f.expect("3600 on 04  26 37")
}
