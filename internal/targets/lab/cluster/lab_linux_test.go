package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/powertest"
)

func TestMain(m *testing.M) {
	switch args := os.Args[1:]; {
	case len(args) > 2 && args[0] == "lab" && args[1] == "part": // what plimsoll does under these words
		if err := lab.Part(context.Background(), args[2:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(args) == 3 && killed[args[0]] != nil:
		if err := killed[args[0]](args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(args) == 1 && filepath.Base(os.Args[0]) == guestProgram:
		if err := guest(args[0]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		code := m.Run()
		if err := goleak.Find(); code == 0 && err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		needs.Print(os.Stderr)
		os.Exit(code)
	}
}

// killed are processes that tests kill in the middle of their work, by their first argument.
var killed = map[string]func(dir, storage string) error{
	"lab-up": func(dir, storage string) error {
		_, err := up(context.Background(), dir, storage, 3)
		return err
	},
	"lab-down": func(dir, _ string) error {
		_, err := lab.Down(context.Background(), dir)
		return err
	},
	"lab-cycle": func(dir, _ string) error {
		l, err := lab.Open(dir)
		for _, n := range l.Nodes() {
			err = errors.Join(err, lab.Cycle(context.Background(), n.Power()))
		}
		return err
	},
}

// guestProgram is the name of a process that has what a graceful shutdown needs of a guest: this name and a monitor.
const guestProgram = "qemu-system-test"

// guest ends by its power button, and leaves a file beside its socket when it was pressed.
func guest(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c, `{"QMP": {}}`); err != nil {
		return err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if lines.Text() == "" {
			continue
		}
		if _, err := fmt.Fprintln(c, `{"event": "NICE"}`+"\n"+`{"return": {}}`); err != nil {
			return err
		}
		if strings.Contains(lines.Text(), "system_powerdown") {
			return os.WriteFile(socket+".pressed", nil, 0o600)
		}
	}
	return errors.New("the monitor was left")
}

func ExampleOpen() {
	_, err := lab.Open("/nonexistent")
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output: true
}

func up(ctx context.Context, dir, storage string, nodes int) (*lab.Lab, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return lab.Up(ctx, lab.Options{Dir: dir, Nodes: nodes, Storage: storage, Program: program})
}

// folder is a short one, as sockets need.
func folder(t *testing.T, storage string) string {
	t.Helper()
	needs.Lab(t, storage == lab.Gluster)
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	needs.Outlives(t, dir)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "l")
}

func made(t *testing.T, storage string, nodes int) *lab.Lab {
	t.Helper()
	dir := folder(t, storage)
	l, err := up(t.Context(), dir, storage, nodes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		down(t, dir)
		if spaces, _ := filepath.Glob("/run/netns/plimsoll-lab-" + l.ID() + "-*"); len(spaces) > 0 {
			t.Errorf("%q remain", spaces) // also where a down that was killed took the record away
		}
	})
	return l
}

// down removes a lab and finds nothing of it.
func down(t *testing.T, dir string) {
	t.Helper()
	id := "no lab"
	if l, err := lab.Open(dir); err == nil {
		id = l.ID()
	}
	remains, err := lab.Down(context.Background(), dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(remains) > 0 {
		t.Errorf("down: %q, %v", remains, err)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("%v, %v remain in %s", entries, err, dir)
	}
	if spaces, _ := filepath.Glob("/run/netns/plimsoll-lab-" + id + "-*"); len(spaces) > 0 {
		t.Errorf("%q remain", spaces)
	}
	if left := naming(t, dir); len(left) > 0 {
		t.Errorf("processes remain: %q", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(dir+"/")) {
		t.Errorf("mounts remain, %v:\n%s", err, mounts)
	}
}

// naming lists live processes whose command line names a folder: number, space, command line.
func naming(t *testing.T, dir string) (list []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(dir)) {
			list = append(list, filepath.Base(filepath.Dir(f))+" "+string(line))
		}
	}
	return list
}

// links are the machine's own network interfaces.
func links(t *testing.T) string {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// TestTwoLabs has two labs with the same addresses, of which one is taken down and the other goes on.
func TestTwoLabs(t *testing.T) {
	before := links(t)
	a, b := made(t, lab.Shared, 2), made(t, lab.Shared, 3)
	if now := links(t); now != before {
		t.Errorf("the machine's own interfaces were %s and are %s", before, now)
	}
	n, err := b.Node(3)
	if err != nil {
		t.Fatal(err)
	}
	cat := exec.Command("sleep", "1000")
	if err := n.Start(cat); err != nil {
		t.Fatal(err)
	}
	down(t, a.Dir())
	if power, ready, err := n.State(t.Context()); power != target.On || !ready || err != nil {
		t.Errorf("node of the other lab: %v, %v, %v", power, ready, err)
	}
	if err := n.Power().PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cat.Wait(); err == nil {
		t.Error("what ran on the node outlived its power")
	}
	if err := n.Start(exec.Command("true")); !errors.Is(err, target.ErrNotAccessible) {
		t.Errorf("start on a node that is off: %v", err)
	}
	if _, err := b.Node(4); !errors.Is(err, target.ErrNoSuchNode) {
		t.Errorf("a fourth node of three: %v", err)
	}
	_, err = up(t.Context(), b.Dir(), lab.Shared, 1)
	if err == nil || !strings.Contains(err.Error(), "holds a lab already") {
		t.Errorf("a lab over a lab: %v", err)
	}
	for _, guest := range []string{"one", "two", "one"} {
		address, err := b.AddressFor(guest)
		want := map[string]string{"one": "10.77.0.100", "two": "10.77.0.101"}[guest]
		if err != nil || address.String() != want {
			t.Errorf("address of %s: %v, %v", guest, address, err)
		}
	}
}

// TestNetwork dials a server on a node and makes taps there.
func TestNetwork(t *testing.T) {
	t.Parallel()
	l := made(t, lab.Shared, 2)
	n := l.Nodes()[1]
	for range 2 { // one that is there is fine
		if err := n.Tap(t.Context(), "tap0"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(n.Untap(t.Context(), "tap0"), n.Untap(t.Context(), "tap0")); err != nil {
		t.Error(err)
	}
	if n.Tap(t.Context(), "br0") == nil || n.Tap(t.Context(), "a\nlink del br0") == nil {
		t.Error("taps of any name are made")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := l.Dial(ctx, "tcp", "localhost:1"); err == nil {
		t.Error("a name is dialled")
	}
	c, err := l.Dial(ctx, "tcp", n.BMC().Address.String()+":443")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestPower holds the controller to the contract of all of them.
func TestPower(t *testing.T) {
	t.Parallel()
	l := made(t, lab.Shared, 1)
	n := l.Nodes()[0]
	powertest.Run(t, powertest.Place{Graceful: true,
		Open: func(t testing.TB) target.PowerController {
			again, err := lab.Open(l.Dir())
			if err != nil {
				t.Fatal(err)
			}
			return again.Nodes()[0].Power()
		},
		Node: func() (target.PowerState, error) {
			out, err := exec.Command("ip", "-n", "plimsoll-lab-"+l.ID()+"-switch", "link", "show", n.Name()).Output()
			if strings.Contains(string(out), "state UP") {
				return target.On, err
			}
			return target.Off, err
		},
		Wait: func(done func() bool) {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if done() {
					return
				}
			}
			t.Fatal("it takes too long")
		}})
}

// ask runs a program in the lab's network and returns what it says.
func ask(t *testing.T, l *lab.Lab, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := l.Enter(cmd.Start); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v: %s", name, err, out.Bytes())
	}
	return out.String()
}

// TestIndependentClients drives the controllers with ipmitool and curl.
func TestIndependentClients(t *testing.T) {
	t.Parallel()
	ipmitool, curl := needs.Ipmitool(t), needs.Curl(t)
	l := made(t, lab.Shared, 2)
	n := l.Nodes()[1]
	bmc := n.BMC()
	reach := func(want target.PowerState) {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if power, ready, err := n.State(t.Context()); err == nil && power == want && ready == (want == target.On) {
				return
			}
		}
		t.Fatalf("the node is never %s", want)
	}
	ipmi := func(action string) string {
		return ask(t, l, ipmitool, "-I", "lanplus", "-C", "3", "-H", bmc.Address.String(), "-U", bmc.User, "-f",
			bmc.PasswordFile, "chassis", "power", action)
	}
	password, err := os.ReadFile(bmc.PasswordFile)
	if err != nil {
		t.Fatal(err)
	}
	netrc := filepath.Join(t.TempDir(), "netrc")
	entry := fmt.Sprintf("machine %s login %s password %s", bmc.Address, bmc.User, password)
	if err := os.WriteFile(netrc, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	redfish := func(args ...string) string {
		args[len(args)-1] = "https://" + bmc.Address.String() + args[len(args)-1]
		return ask(t, l, curl, append([]string{"-sSf", "--cacert", bmc.CAFile, "--netrc-file", netrc}, args...)...)
	}
	reset := func(kind string) {
		redfish("-H", "Content-Type: application/json", "-d", `{"ResetType":"`+kind+`"}`,
			bmc.System+"/Actions/ComputerSystem.Reset")
	}
	reach(target.On)
	ipmi("off")
	reach(target.Off)
	if said := ipmi("status"); said != "Chassis Power is off\n" {
		t.Errorf("ipmitool: %q", said)
	}
	if said := redfish(bmc.System); !strings.Contains(said, `"PowerState":"Off"`) {
		t.Errorf("redfish: %s", said)
	}
	ipmi("on")
	reach(target.On)
	ipmi("soft")
	reach(target.Off)
	reset("On")
	reach(target.On)
	reset("GracefulShutdown")
	reach(target.Off)
	reset("On")
	reset("ForceOff")
	reach(target.Off)
	if power, _, err := l.Nodes()[0].State(t.Context()); power != target.On || err != nil {
		t.Errorf("the other node: %v, %v", power, err)
	}
}

// TestLossOfANode cuts the power of a node under writes: nothing fails, and the node has all of it when it is back.
func TestLossOfANode(t *testing.T) {
	t.Parallel()
	l := made(t, lab.Gluster, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	nodes := l.Nodes()
	lost := nodes[1]
	f, err := os.Create(filepath.Join(nodes[0].Mount(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte("plimsoll"), 8192)
	for i := range 20 {
		if i == 5 {
			if err := lost.Power().PowerOff(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.Write(block); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
		if err := f.Sync(); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
	}
	if r, err := l.Replication(ctx); err != nil || fmt.Sprint(r) != "{[true false true] -1}" {
		t.Errorf("without a node: %v, %v", r, err)
	}
	if err := lost.Power().PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.WaitReady(ctx, lost), l.WaitHealed(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{lost.Mount(), filepath.Join(l.Dir(), lost.Name(), "brick", "b")} {
		got, err := os.ReadFile(filepath.Join(dir, "disk"))
		if err != nil || !bytes.Equal(got, bytes.Repeat(block, 20)) {
			t.Errorf("%s: %d bytes, %v", dir, len(got), err)
		}
	}
}

// TestKilledUp kills lab up at several moments; down, from another process, leaves nothing.
func TestKilledUp(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{lab.Shared, lab.Gluster} {
		for _, after := range []time.Duration{5, 40, 90, 200, 500, 3000} {
			if after > 1000 != (storage == lab.Gluster) {
				continue
			}
			t.Run(fmt.Sprintf("%s after %d ms", storage, after), func(t *testing.T) {
				if !slices.Contains([]time.Duration{40, 200, 3000}, after) {
					needs.Long(t, "an earlier and a later moment are tried")
				}
				t.Parallel()
				dir := folder(t, storage)
				cmd := exec.Command(os.Args[0], "lab-up", dir, storage)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after * time.Millisecond)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // it was killed
				down(t, dir)
				down(t, dir) // again is fine
			})
		}
	}
}

// inLab says how many processes of a lab have a word as their program's name, or as one of their arguments.
func inLab(t *testing.T, dir, word string) (n int) {
	t.Helper()
	l, err := lab.Open(dir)
	if err != nil {
		return 0 // it has no record yet
	}
	spaces, err := filepath.Glob("/run/netns/plimsoll-lab-" + l.ID() + "-*")
	if err != nil {
		t.Fatal(err)
	}
	var inside []os.FileInfo
	for _, s := range spaces {
		if info, err := os.Stat(s); err == nil {
			inside = append(inside, info)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		if space, err := os.Stat(filepath.Join(p, "ns", "net")); err != nil ||
			!slices.ContainsFunc(inside, func(i os.FileInfo) bool { return os.SameFile(i, space) }) {
			continue
		}
		args := strings.Split(string(line), "\x00")
		if filepath.Base(args[0]) == word || slices.Contains(args, word) {
			n++
		}
	}
	return n
}

// TestKilledAsDaemonsStart kills lab up just when a daemon of it comes to be, the first or the last of its kind; down,
// from another process, leaves nothing, and lets processes of others live that have such names.
func TestKilledAsDaemonsStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		storage, word string
		nth           int
	}{
		{lab.Shared, "ipmi_sim", 1}, {lab.Shared, "ipmi_sim", 3}, {lab.Shared, "redfish", 1},
		{lab.Gluster, "boot", 1}, {lab.Gluster, "boot", 3}, {lab.Gluster, "glusterd", 1}, {lab.Gluster, "glusterd", 3},
		{lab.Gluster, "glusterfsd", 1}, {lab.Gluster, "glusterfsd", 3}, {lab.Gluster, "glusterfs", 1},
		{lab.Gluster, "glusterfs", 3},
	} {
		t.Run(fmt.Sprintf("%s %d", c.word, c.nth), func(t *testing.T) {
			if c.storage == lab.Gluster {
				needs.Long(t, "controllers are tried")
			}
			dir := folder(t, c.storage)
			other := filepath.Join(t.TempDir(), c.word)
			sleep, err := exec.LookPath("sleep")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(sleep, other); err != nil {
				t.Fatal(err)
			}
			stranger := exec.CommandContext(t.Context(), other, "1000")
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- stranger.Wait() }()
			cmd := exec.Command(os.Args[0], "lab-up", dir, c.storage)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			up := make(chan error, 1)
			go func() { up <- cmd.Wait() }()
			for deadline := time.Now().Add(2 * time.Minute); inLab(t, dir, c.word) < c.nth; {
				if len(up) > 0 || time.Now().After(deadline) {
					t.Errorf("it never had %d of it", c.nth)
					break
				}
			}
			_ = cmd.Process.Kill() // it may have ended
			<-up
			down(t, dir)
			down(t, dir) // again is fine
			select {
			case err := <-ended:
				t.Errorf("a process of others was ended: %v", err)
			default:
				_ = stranger.Process.Kill()
				<-ended
			}
		})
	}
}

// TestKilledDownAndPower kills lab down, and the switching of nodes, at several moments; down leaves nothing.
func TestKilledDownAndPower(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"lab-down", "lab-cycle"} {
		for _, after := range []time.Duration{5, 20, 50, 120} {
			t.Run(fmt.Sprintf("%s after %d ms", what, after), func(t *testing.T) {
				if after != 20 && after != 120 {
					needs.Long(t, "two other moments are tried")
				}
				t.Parallel()
				l := made(t, lab.Shared, 3) // which is taken down in the end
				cmd := exec.Command(os.Args[0], what, l.Dir(), lab.Shared)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after * time.Millisecond)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // it was killed
				if what == "lab-down" {
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for _, n := range l.Nodes() { // each can be switched again
					if err := lab.Cycle(ctx, n.Power()); err != nil {
						t.Error(err)
					}
				}
				if err := l.WaitReady(ctx, l.Nodes()...); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestMend kills controllers: the next who asks starts them again, and nothing else.
func TestMend(t *testing.T) {
	t.Parallel()
	l := made(t, lab.Shared, 2)
	kill := func(text string) {
		t.Helper()
		for _, f := range naming(t, l.Dir()) {
			pid, line, _ := strings.Cut(f, " ")
			if number, err := strconv.Atoi(pid); err == nil && strings.Contains(line, text) {
				if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no process with %q", text)
	}
	n := l.Nodes()[1]
	for _, c := range []struct {
		dies []string
		want string
	}{
		{nil, "[]"}, {[]string{"bmc/node2.conf"}, "[node2]"}, {[]string{"\x00redfish\x00"}, "[redfish]"},
		{[]string{"\x00redfish\x00", "bmc/node1.conf", "bmc/node2.conf"}, "[node1 node2 redfish]"}, {nil, "[]"},
	} {
		for _, text := range c.dies {
			kill(text)
		}
		for len(c.dies) > 0 && n.BMCAnswers(t.Context()) == nil {
			time.Sleep(10 * time.Millisecond) // the kernel's pace
		}
		if mended, err := l.Mend(t.Context()); err != nil || fmt.Sprint(mended) != c.want {
			t.Errorf("after %q: %v, %v, want %s", c.dies, mended, err, c.want)
		}
		if err := errors.Join(l.Nodes()[0].BMCAnswers(t.Context()), n.BMCAnswers(t.Context())); err != nil {
			t.Errorf("after %q: %v", c.dies, err)
		}
	}
	if _, ready, err := n.State(t.Context()); !ready || err != nil {
		t.Errorf("the node: ready %t, %v", ready, err)
	}
}

// TestShutdownOfGuests lets a guest end by its power button before its node is off.
func TestShutdownOfGuests(t *testing.T) {
	t.Parallel()
	l := made(t, lab.Shared, 1)
	n := l.Nodes()[0]
	program := filepath.Join(t.TempDir(), guestProgram)
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(n.Guests(), "one.qmp")
	cmd := exec.Command(program, socket)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := n.Start(cmd); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(n.Power().Shutdown(ctx), n.WaitOff(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the guest was killed and did not end: %v: %s", err, said.Bytes())
	}
	if _, err := os.Stat(socket + ".pressed"); err != nil {
		t.Error(err)
	}
}

// TestLossOfMost cuts two nodes of three: who writes is refused and does not hang. Then the last one goes, too; when
// all are back what was acknowledged is there.
func TestLossOfMost(t *testing.T) {
	needs.Long(t, "TestLossOfANode loses one of three, which takes a minute as well")
	t.Parallel()
	l := made(t, lab.Gluster, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes := l.Nodes()
	f, err := os.Create(filepath.Join(nodes[0].Mount(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("plimsoll"), 8192)
	var kept []byte
	write := func() error {
		_, err := f.WriteAt(block, int64(len(kept)))
		return errors.Join(err, f.Sync())
	}
	for range 5 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, block...)
	}
	for _, n := range nodes[1:] {
		if err := n.Power().PowerOff(ctx); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { // a block or two may be taken before the loss is noticed, and then none
		for range 100 {
			if err := write(); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("one copy of three is written alone")
		}
	case <-time.After(time.Minute):
		t.Fatal("writes without a quorum hang")
	}
	if err := nodes[0].Power().PowerOff(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err == nil {
		t.Error("a file of a node without power is closed as if it were kept")
	}
	if r, err := l.Replication(ctx); err == nil || r.Heals != -1 {
		t.Errorf("without any node: %v, %v", r, err)
	}
	for _, n := range nodes {
		if err := n.Power().PowerOn(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.WaitReady(ctx, nodes...), l.WaitHealed(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		got, err := os.ReadFile(filepath.Join(n.Mount(), "disk"))
		if err != nil || !bytes.HasPrefix(got, kept) {
			t.Errorf("%s: %d bytes, %v: not what was acknowledged", n.Name(), len(got), err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	needs.Lab(t, false)
	_, err := up(t.Context(), "/proc/a b", "tape", 0)
	for _, want := range []string{"nodes 0", `storage "tape"`, `folder "/proc/a b"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not refused: %v", want, err)
		}
	}
}
