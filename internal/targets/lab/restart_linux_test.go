package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/lab/guest"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/internal/targets/underneath"
)

// refusing is a cluster of two nodes with a guest on the first, which is off, and an emulator that says what QEMU says
// of a disk that a lost node still holds; starts tells how often it was called.
func refusing(t *testing.T) (c *cluster, starts func() int) {
	t.Helper()
	l := SharedLab(t)
	t.Cleanup(func() { // the run's folders, as nobody destroys it
		for _, place := range []string{"shared", l.Nodes()[0].Name(), l.Nodes()[1].Name()} {
			if err := os.RemoveAll(filepath.Join(l.Dir(), place, folderPrefix+"test")); err != nil {
				t.Error(err)
			}
		}
	})
	tools := t.TempDir()
	called := filepath.Join(tools, "called")
	script := "#!/bin/sh\necho >>" + called + "\necho 'Failed to get \"write\" lock' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(tools, "qemu-system-x86_64"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	c = &cluster{place: &place{settings{clock: clock.Real{}}}, lab: l, nodes: l.Nodes(), accel: "tcg",
		image: guest.Image{Kernel: "/kernel"}, dir: t.TempDir(), log: t.Logf,
		cpus: underneath.New(os.DirFS("/")), state: state{Lab: l.Dir(), Run: folderPrefix + "test", VMs: map[string]*vm{
			"one": {Name: "one", Group: "G", On: true, CPUs: 1, MemoryBytes: 128 << 20}}}}
	c.state.VMs["one"].Machine = c.process(c.state.VMs["one"], 0)
	if err := c.makeKey(); err != nil {
		t.Fatal(err)
	}
	if err := c.nodes[0].Power().PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, func() int {
		data, _ := os.ReadFile(called)
		return strings.Count(string(data), "\n")
	}
}

// A restart that fails, as while the lost node's lock on a disk is not given up yet, is tried again.
func TestRestartIsTriedAgain(t *testing.T) {
	c, starts := refusing(t)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	ended := make(chan struct{})
	go func() { c.restart(ctx); close(ended) }()
	for starts() < 3 && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	<-ended
	if n := starts(); n < 3 {
		t.Errorf("a guest that did not start was tried %d times", n)
	}
	if v := c.state.VMs["one"]; v.Node != 0 || !v.On {
		t.Errorf("after restarts that failed it is %+v", *v)
	}
}

// A guest that was switched off, exempted or moved just before its restart is left alone.
func TestRestartOfWhatIsNotLost(t *testing.T) {
	c, starts := refusing(t)
	for name, change := range map[string]func(*vm){
		"off":    func(v *vm) { v.On = false },
		"exempt": func(v *vm) { v.Exempt = true },
		"moved":  func(v *vm) { v.Node = 1 },
	} {
		v := c.state.VMs["one"]
		v.On, v.Exempt, v.Node = true, false, 0
		change(v)
		was := fmt.Sprint(*v)
		if err := c.failover(t.Context(), "one", 0); err != nil || starts() > 0 || fmt.Sprint(*v) != was {
			t.Errorf("%s: %v, %d starts, it was %s and is %v", name, err, starts(), was, *v)
		}
	}
}

// Who switches on a guest that is being restarted waits until it answers.
func TestPowerOnWaitsForARestart(t *testing.T) {
	c, _ := refusing(t)
	v := c.state.VMs["one"]
	p := exec.Command("/bin/sh")
	p.Args = []string{"qemu-stand-in", "-c", "read nothing", "-pidfile", filepath.Join(v.Machine, "qemu.pid")}
	in, err := p.StdinPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = p.Wait() })
	h, err := c.handle("one")
	if err != nil {
		t.Fatal(err)
	}
	waking := make(chan struct{})
	go func() {
		err := h.Wake(t.Context(), func(context.Context) (*remote.Host, error) {
			close(waking)
			time.Sleep(200 * time.Millisecond) // in which the other one begins to wait
			return c.access.NewHost(remote.Machine{Name: "one"}, 0), nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-waking
	if err := c.PowerOn(t.Context(), []string{"one"}, 1); err != nil || !h.Alive() {
		t.Errorf("power on: %v, the guest has a life: %t", err, h.Alive())
	}
}

// A machine that could not be made is not there, and is made by the next try.
func TestWhatCouldNotBeMade(t *testing.T) {
	c, _ := refusing(t)
	for range 2 {
		if err := c.CreateTemplate(t.Context(), target.Template{Name: "gold", Node: 1,
			DiskBytes: []int64{1 << 20, 1 << 62}}); err == nil || !strings.Contains(err.Error(), "qemu-img create") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(c.folder(c.nodes[1], "gold")); err == nil || c.state.VMs["gold"] != nil {
		t.Errorf("it has left %v, %v", c.state.VMs["gold"], err)
	}
}

// Machines have host names of their own, whatever is left of theirs.
func TestHostNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 14)
	c := &cluster{state: state{VMs: map[string]*vm{}}}
	names := []string{"DB_1", "db 1", "база", long + "1", long + "2", "plain"}
	for _, name := range names {
		c.state.VMs[name] = &vm{Name: name}
	}
	seen := map[string]string{}
	for i, name := range names {
		got := c.hostName(name, netip.AddrFrom4([4]byte{10, 77, 0, byte(100 + i)}))
		if other, is := seen[got]; is {
			t.Errorf("%q and %q are both called %q", name, other, got)
		}
		seen[got] = name
		if _, err := guest.NewIdentity(got, netip.MustParsePrefix("10.77.0.100/24"), netip.Addr{}, key); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if seen["plain"] != "plain" {
		t.Errorf("%v", seen)
	}
}

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// Guests of a run are ended whatever its folder is called.
func TestDestroyFindsGuests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run [1]*")
	folder := filepath.Join(dir, "vm", "db?[a", "node1")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p := exec.Command("/bin/sh")
	p.Args = []string{"qemu-stand-in", "-c", "read nothing", "-pidfile", filepath.Join(folder, "qemu.pid")}
	in, err := p.StdinPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	defer in.Close()
	c := &cluster{dir: dir, state: state{Lab: filepath.Join(dir, "gone"), Run: folderPrefix + "test",
		VMs: map[string]*vm{"db?[a": {Name: "db?[a"}, "never on": {Name: "never on"}}}}
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	if remains, err := (&place{}).Destroy(t.Context(), dir); err != nil || len(remains) > 0 {
		t.Errorf("destroy: %v, %v", remains, err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a guest was left behind")
	}
}

// CPUs that this machine has not are told before any guest is made.
func TestPinsOfThisMachine(t *testing.T) {
	t.Parallel()
	err := (&place{settings{pins: []int{0, 1023}}}).checkPins()
	if err == nil || !strings.Contains(err.Error(), `option "pins": CPU 1023`) {
		t.Errorf("got %v", err)
	}
}
