package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
	"plimsoll/internal/testkit/targettest"
)

func fails(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v: want %q", err, w)
		}
	}
}

// Everything that is wrong with some hosts is said at once, with what to do, and nothing is left on them.
func TestCheckFindsEverything(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "fine", "barred", "changed", "unknown", "full", "sudo")
	if err := os.Mkdir(filepath.Join(l.Dir, "sudo.bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	refuses := filepath.Join(l.Dir, "sudo.bin", "sudo")
	sshtest.Write(t, refuses, "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
	if err := os.Chmod(refuses, 0o755); err != nil {
		t.Fatal(err)
	}
	sshtest.Key(t, filepath.Join(l.Dir, "other"))
	known, err := os.ReadFile(filepath.Join(l.Dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(known)), "\n")
	address, _, _ := strings.Cut(lines[2], " ")
	_, wrong, _ := strings.Cut(lines[0], " ")
	lines[2] = address + " " + wrong // the key of another host
	lines[3] = "# nothing is known of this one"
	sshtest.Write(t, filepath.Join(l.Dir, "known_hosts"), strings.Join(lines, "\n")+"\n")
	text := strings.Replace(l.Text, "same_machine: true\n", "", 1)
	var rows []string
	for row := range strings.Lines(text) {
		switch name, _, _ := strings.Cut(strings.TrimSpace(row), ":"); name {
		case "barred":
			row = strings.Replace(row, l.Dir+"/key,", l.Dir+"/other,", 1)
		case "full":
			row = strings.Replace(row, "4MiB", "4000TiB", 1)
		case "sudo":
			row = strings.Replace(row, "{address", "{sudo: true, address", 1)
		}
		rows = append(rows, row)
	}
	rows = append(rows, "  gone: {address: 127.0.0.1, port: 1, key: "+l.Dir+"/key, known_hosts: "+l.Dir+
		"/known_hosts}\n")
	sshtest.Write(t, l.Inventory, strings.Join(rows, ""))
	facts, err := open(t, options(l)).Check(t.Context())
	fails(t, err, `machine "barred"`, "is not let in by any of 1 keys", `machine "changed"`, "its key has changed", "ssh-keygen -R",
		`machine "unknown"`, "is not known", `machine "full": disk space: 3.91 PiB`, "free: give another folder",
		`machine "sudo"`, "a password is required: let this user run it with sudo without a password",
		`machine "gone"`, "connection refused", `machines "fine" and "full" have the same /etc/machine-id`)
	if strings.Contains(err.Error(), `machine "fine":`) {
		t.Errorf("the host that is fine is objected to: %v", err)
	}
	if len(facts.Nodes) != 7 {
		t.Errorf("%d nodes", len(facts.Nodes))
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// proxy is a network that can be cut: packets are lost without a word.
type proxy struct {
	net.Listener
	mu  sync.Mutex
	cut bool
	all []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	var group sync.WaitGroup
	pump := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			p.mu.Lock()
			lost := p.cut
			p.mu.Unlock()
			if err == nil && !lost {
				_, err = to.Write(buffer[:n])
			}
			if err != nil {
				_ = to.Close() // and so does the other way
				return
			}
		}
	}
	group.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close() // refused
				continue
			}
			p.mu.Lock()
			p.all = append(p.all, near, far)
			p.mu.Unlock()
			group.Go(func() { pump(near, far) })
			group.Go(func() { pump(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.all {
			_ = c.Close() // it may be closed
		}
		p.mu.Unlock()
		group.Wait()
	})
	return p
}

// set cuts the network, or mends it; what was on its way when it was cut never comes.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if !cut {
		for _, c := range p.all {
			_ = c.Close() // as of a connection of which packets are missing
		}
		p.all = nil
	}
}

// provisioned opens a run over a lab, which is removed with the test.
func provisioned(t *testing.T, o target.Options) target.Cluster {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	c, err := open(t, o).Provision(t.Context(), target.Request{RunID: "one", StateDir: state})
	t.Cleanup(func() {
		if c != nil {
			if err := c.Close(); err != nil {
				t.Log(err)
			}
		}
		if remains, err := open(t, nil).Destroy(context.Background(), state); err != nil || len(remains) > 0 {
			t.Errorf("destroy: %q, %v", remains, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A network that is cut and comes back, and a server that is killed and comes back, lose nothing: neither the command
// nor a byte of its output.
func TestNetworkCutAndBack(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1")
	p := newProxy(t, l.Hosts[0].At())
	known, err := os.ReadFile(filepath.Join(l.Dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(string(known), " ")
	at := p.Addr().(*net.TCPAddr)
	sshtest.Write(t, filepath.Join(l.Dir, "known_hosts"), "[127.0.0.1]:"+strconv.Itoa(at.Port)+" "+key)
	text := strings.Replace(l.Text, "port: "+strconv.Itoa(l.Hosts[0].Port), "port: "+strconv.Itoa(at.Port), 1)
	sshtest.Write(t, l.Inventory, strings.Replace(text, "address: 127.0.0.2", "address: 127.0.0.1", 1))
	o := options(l)
	o["patience"] = "2m"
	c := provisioned(t, o)
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	lines, away := 100, 5*time.Second // in which nobody gives the connection up by itself
	if needs.All() {
		lines, away = 400, 30*time.Second
	}
	script := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); echo line $i; sleep 0.1; done`, lines)
	process, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", script}, Stdout: "out"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := process.(target.Follower).Follow(t.Context(), "out", 0)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		time.Sleep(time.Second)
		p.set(true)
		time.Sleep(away)
		p.set(false)
		l.Hosts[0].Kill(t)
		time.Sleep(time.Second)
		l.Hosts[0].Start(t)
	})
	got, err := io.ReadAll(r)
	group.Wait()
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for i := range lines {
		want.WriteString("line " + strconv.Itoa(i+1) + "\n")
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes came, want %d", len(got), want.Len())
	}
	if exit, err := process.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
}

// A supervisor that is killed loses its unit: it is said so, and nothing of it lives.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1")
	c := provisioned(t, options(l))
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	word := "300.77" + strconv.Itoa(os.Getpid())
	process, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", "sleep " + word + " & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	killed := 0
	for _, name := range lines {
		data, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(data, []byte("agent\x00unit\x00"+l.Dir)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && unix.Kill(pid, unix.SIGKILL) == nil {
			killed++
		}
	}
	if killed != 1 {
		t.Errorf("%d supervisors", killed)
	}
	exit, err := process.Wait(t.Context())
	if err != nil || !exit.Lost {
		t.Errorf("%+v, %v: want it lost", exit, err)
	}
	if n := sshtest.Alive(word); n != 0 {
		t.Errorf("%d of its processes live", n)
	}
}

// On a disk that is full a command fails by its own words, its end is told as it was, and what it wrote is kept; what
// needs space is refused, and works again when there is some.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("file systems are root's to mount: sudo go test, as .ci/run does")
	}
	l := sshtest.New(t, "db1")
	folder := l.Hosts[0].Folder
	if err := unix.Mount("none", folder, "tmpfs", 0, "size=96m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	c := provisioned(t, options(l))
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	const script = "echo first; dd if=/dev/zero of=fill bs=64k 2>/dev/null; while echo x >>more; do :; done " +
		"2>/dev/null; exit 7"
	process, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", script}, Stdout: "out"})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := process.Wait(t.Context()); err != nil || exit != (target.Exit{Code: 7}) {
		t.Errorf("%+v, %v", exit, err)
	}
	got, err := target.ReadFile(t.Context(), h, "out", 0, 100)
	if err != nil || string(got) != "first\n" {
		t.Errorf("%q, %v", got, err)
	}
	fails(t, target.WriteFile(t.Context(), h, "config", make([]byte, 64<<10)), `machine "db1"`, `"config"`,
		"no space left on device")
	_, err = h.Start(t.Context(), target.Command{Argv: []string{"true"}})
	fails(t, err, `machine "db1"`, "no space left on device")
	if err := h.Remove(t.Context(), "fill"); err != nil {
		t.Fatal(err)
	}
	again, err := h.Start(t.Context(), target.Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := again.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
}

// A machine whose launcher is killed while a command waits to begin tells so, and nothing of it lives; one whose
// controller never comes back ends with its lease.
func TestWaitingCommandEnds(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1")
	o := options(l)
	o["lease"] = "3s"
	c := provisioned(t, o)
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	stager, _ := h.(target.Stager)
	launchers := func() (pids []int) {
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			line, err := os.ReadFile(name)
			if err != nil || string(line) != "agent\x00launch\x00" {
				continue
			}
			where, _ := os.Readlink(filepath.Join(filepath.Dir(name), "cwd"))
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err == nil && strings.HasPrefix(where, l.Dir) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	ready, err := stager.Stage(t.Context(), target.Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	pids := launchers()
	if len(pids) != 1 || unix.Kill(pids[0], unix.SIGKILL) != nil {
		t.Fatalf("launchers %v", pids)
	}
	_, _, err = ready.Release(t.Context(), time.Now())
	fails(t, err, `machine "db1"`, "it was killed before it began")
	if _, err := stager.Stage(t.Context(), target.Command{Argv: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if len(launchers()) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if pids := launchers(); len(pids) > 0 {
		t.Errorf("%v live", pids)
	}
}

// What stands of a command on a host is named, by its label, for as long as it stands.
func TestStandingCommand(t *testing.T) {
	t.Parallel()
	c := provisioned(t, options(sshtest.New(t, "db1")))
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	teller, ok := h.(target.StandTeller)
	if !ok {
		t.Fatal("it cannot tell")
	}
	p, err := h.Start(t.Context(), target.Command{Label: "w", Stdout: "out",
		Argv: []string{"sh", "-c", "echo $$; kill -STOP $$; exec sleep 100"}})
	if err != nil {
		t.Fatal(err)
	}
	stands := func(n int) (names []string) {
		for range 200 {
			if names = teller.Stands("w"); len(names) == n {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		return names
	}
	names := stands(1)
	pid, err := target.ReadFile(t.Context(), h, "out", 0, 100)
	want := []string{fmt.Sprintf("process %s (sh) is stopped (state T)", strings.TrimSpace(string(pid)))}
	if diff := cmp.Diff(want, names); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if names := teller.Stands("another"); len(names) > 0 {
		t.Errorf("of another command %q stand", names)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err := errors.Join(err, unix.Kill(number, unix.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	if names := stands(0); len(names) > 0 {
		t.Errorf("it goes on, and is told as %q", names)
	}
	if err := errors.Join(p.Kill(), c.Close()); err != nil {
		t.Error(err)
	}
}

// What nobody asks after ends when its lease is over, and its output stays.
func TestLease(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1")
	o := options(l)
	o["lease"] = "2s"
	c := provisioned(t, o)
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	word := "300.88" + strconv.Itoa(os.Getpid())
	command := target.Command{Argv: []string{"sh", "-c", "echo kept; sleep " + word}, Stdout: "out"}
	if _, err := h.Start(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if sshtest.Alive(word) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n := sshtest.Alive(word); n != 0 {
		t.Errorf("%d of its processes live", n)
	}
	out, err := os.ReadFile(filepath.Join(l.Hosts[0].Folder, "plimsoll-one", "work", "out"))
	if err != nil || string(out) != "kept\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A device is written to with consent for this very device only, which is asked for on the host, and is claimed for as
// long as the run is open.
func TestDeviceOnTheHost(t *testing.T) {
	t.Parallel()
	node, image := devicetest.Loop(t, 8<<20)
	l := sshtest.New(t, "db1")
	stays := filepath.Join(l.Dir, "by-id")
	if err := os.Symlink(node, stays); err != nil {
		t.Fatal(err)
	}
	with := func(consent string) {
		t.Helper()
		sshtest.Write(t, l.Inventory, strings.Replace(l.Text, "{file: 4MiB}",
			"{id: "+stays+", consent: "+strconv.Quote(consent)+"}", 1))
	}
	with("")
	_, err := open(t, options(l)).Check(t.Context())
	fails(t, err, `machine "db1"`, stays, "nobody has consented", "--consent")
	with("some other device")
	no := target.Request{RunID: "no", StateDir: filepath.Join(l.Dir, "no")}
	_, err = open(t, options(l)).Provision(t.Context(), no)
	fails(t, err, `the consent is for "some other device"`)
	if remains, err := open(t, nil).Destroy(t.Context(), no.StateDir); err != nil || len(remains) > 0 {
		t.Errorf("%q, %v", remains, err)
	}
	d, _, err := guard.Check(t.Context(), nil, node)
	if err != nil {
		t.Fatal(err)
	}
	with(d.Identity.Phrase)
	c := provisioned(t, options(l))
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	want := []target.Disk{{Device: "/dev/sdb", Path: stays, ID: "db1:" + stays, Bytes: 8 << 20},
		{Device: "/dev/sdc", Path: l.Hosts[0].Folder + "/plimsoll-one/work/disks/2.img", ID: "db1:disks/2.img",
			Bytes: 64 << 10, File: true}}
	if diff := cmp.Diff(want, h.Disks()); diff != "" {
		t.Error(diff)
	}
	if _, err := guard.ForWriting(t.Context(), nil, node, d.Identity.Phrase); !guard.Has(err, guard.Busy) {
		t.Errorf("%v: want it claimed", err)
	}
	words := targettest.Shell.WriteDisk(stays, "written")
	p, err := h.Start(t.Context(), target.Command{Argv: words})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
	unix.Sync()
	if data, err := os.ReadFile(image); err != nil || !bytes.HasPrefix(data, []byte("written")) {
		t.Errorf("%.20q, %v", data, err)
	}
	other, _ := devicetest.Loop(t, 4<<20)
	if err := errors.Join(os.Remove(stays), os.Symlink(other, stays)); err != nil {
		t.Fatal(err)
	}
	_, err = h.Start(t.Context(), target.Command{Argv: words})
	fails(t, err, `machine "db1"`, "device guard", "consent")
}

// A command that may write begins under the run's own claim: where that is gone, with a start of the host that nobody
// saw or with what held it, it is taken again or the command is refused. One that waits to begin is looked at when it
// does.
func TestClaimGone(t *testing.T) {
	t.Parallel()
	node, _ := devicetest.Loop(t, 8<<20)
	l := sshtest.New(t, "db1")
	stays := filepath.Join(l.Dir, "by-id")
	if err := os.Symlink(node, stays); err != nil {
		t.Fatal(err)
	}
	d, _, err := guard.Check(t.Context(), nil, node)
	if err != nil {
		t.Fatal(err)
	}
	sshtest.Write(t, l.Inventory, strings.Replace(l.Text, "{file: 4MiB}",
		"{id: "+stays+", consent: "+strconv.Quote(d.Identity.Phrase)+"}", 1))
	c := provisioned(t, options(l))
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	for _, holder := range []string{"agent\x00unit\x00" + l.Dir, l.Dir + "/db1/plimsoll-one/agent\x00hold"} {
		for _, name := range globs(t, "/proc/[0-9]*/cmdline") {
			data, _ := os.ReadFile(name) // it may have ended
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && bytes.HasPrefix(data,
				[]byte(holder)) {
				_ = unix.Kill(pid, unix.SIGKILL) // the other one may have taken it along
			}
		}
	}
	var other *guard.Claim
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if other, err = guard.ForWriting(t.Context(), nil, node, d.Identity.Phrase); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	write := target.Command{Argv: []string{"true"}}
	_, err = h.Start(t.Context(), write)
	fails(t, err, `machine "db1"`, "somebody holds it exclusively")
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	p, err := h.Start(t.Context(), write)
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
	if _, err := guard.ForWriting(t.Context(), nil, node, d.Identity.Phrase); !guard.Has(err, guard.Busy) {
		t.Errorf("%v: want it claimed again", err)
	}
	stager, _ := h.(target.Stager)
	ready, err := stager.Stage(t.Context(), write)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, _ := devicetest.Loop(t, 4<<20)
	if err := errors.Join(os.Remove(stays), os.Symlink(elsewhere, stays)); err != nil {
		t.Fatal(err)
	}
	_, _, err = ready.Release(t.Context(), time.Now())
	fails(t, err, `machine "db1"`, "device guard", "consent")
}

func globs(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Objections to an inventory come all at once, with the line that they are about.
func TestInventoryObjections(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lab.yml")
	sshtest.Write(t, name, `ssh_config: /dev/null
hosts:
  db1: {port: 99999, disks: [{id: /dev/sdb}, {id: sdc, file: 1GiB}, {file: none}]}
  "../x": {}
  db2: {adress: here}
  db3: {folder: tmp, passphrase: sesame, disks: [{id: wwn-1}, {id: wwn-1}]}
`)
	_, err := open(t, target.Options{"inventory": name}).Check(t.Context())
	fails(t, err, "line 3", "port 99999", "may be another disk's after the next start", "give either id",
		`"none" is no size`, "a name is of letters", "adress", `"tmp": it begins with /`, "a secret is not given as itself",
		`disk "wwn-1" is there twice`)
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("the passphrase is told: %v", err)
	}
	_, err = open(t, nil).Check(t.Context())
	fails(t, err, "no inventory")
}

// Each mistake is told with its line in the file, in words of the file.
func TestInventoryMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		words []string
	}{
		"keys and kinds": {"hosts:\n  db1:\n    port: x22\n    sudo: maybe\n    disks:\n      - {fil: 1GiB}\n  db2: {adress: b}\n",
			[]string{`line 3: "x22" where a whole number is wanted`, `line 4: "maybe" where true or false is wanted`,
				`line 6: unknown key "fil"; did you mean "file"?`, `line 7: unknown key "adress"; did you mean "address"?`}},
		"list": {"hosts:\n  - db1\n", []string{"line 2: a list where {NAME: {address: ...}} is wanted"}},
		"twice": {"hosts:\n  db1: {address: a}\n  db1: {address: b}\n", []string{
			`line 3: "db1" is there twice: its first line is 2`}},
		"two documents": {"hosts: {db1: {address: a}}\n---\nhosts: {db2: {address: b}}\n", []string{"second document"}},
		"addresses": {"hosts:\n  a: {address: 'db1:2222'}\n  b: {address: u@db1}\n  c: {jump: ','}\n  d: {jump: 'u@'}\n" +
			"  e: {address: '-oProxyCommand=x'}\n  f: {network: 'db1:22'}\n", []string{`line 2: host "a": address "db1:2222"`,
			`line 3: host "b": address "u@db1"`, `line 4: host "c": address ""`, `line 5: host "d": address ""`,
			`line 6: host "e": address "-oProxyCommand=x"`, `line 7: host "f": network "db1:22"`}},
		"files": {"hosts:\n  db1: {key: /no/key, known_hosts: /no/known}\n", []string{`line 2: host "db1": key "/no/key": there`,
			`line 2: host "db1": known_hosts "/no/known": there`}},
		"circle": {"ssh_config: circle\nhosts:\n  db1: {jump: one}\n", []string{`line 3: host "db1": jump: more than 16`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseInventory([]byte(c.text), nil, func(file, alias string) (settings, error) {
				if file == "circle" {
					return settings{"proxyjump": {map[string]string{"one": "two", "two": "one"}[alias]}}, nil
				}
				return settings{}, nil
			})
			fails(t, err, c.words...)
			if text := fmt.Sprint(err); strings.Contains(text, "ssh.given") || strings.Contains(text, "unmarshal") {
				t.Errorf("words of the program: %v", err)
			}
		})
	}
}

// Jump hosts are those of the inventory or of ssh_config, with those that lead to the first of them; addresses of IPv6
// are in brackets where a port follows; anchors and merges are YAML's.
func TestInventoryWays(t *testing.T) {
	const text = `hosts:
  db1: &common {address: "[2001:db8::1]", user: u, port: 2222, jump: "x@[2001:db8::2]:23,2001:db8::3,gate:24"}
  db2: {<<: *common, address: "2001:db8::4", jump: inner}
  db3: {address: db3}
`
	t.Setenv("USER", "root")
	v, err := parseInventory([]byte(text), nil, func(_, alias string) (settings, error) {
		return map[string]settings{"inner": {"hostname": {"inner.net"}, "proxyjump": {"outer1,outer2"}},
			"outer1": {"user": {"o"}, "port": {"25"}, "proxyjump": {"outer1"}}, // as of Host *
			"outer2": {"proxyjump": {"outer1"}}, "db3": {"proxyjump": {"db3:22"}}}[alias], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range v.machines {
		way := m.Name
		for _, x := range append(m.Jump, m.Hop) {
			way += " " + x.User + "@" + net.JoinHostPort(x.Address, strconv.Itoa(x.Port))
		}
		got = append(got, way)
	}
	want := []string{"db1 x@[2001:db8::2]:23 u@[2001:db8::3]:22 u@gate:24 u@[2001:db8::1]:2222",
		"db2 o@outer1:25 u@outer2:22 u@inner.net:22 u@[2001:db8::4]:2222", "db3 root@db3:22"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Hosts that are one machine, as they may be, need folders of their own.
func TestOneFolder(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1", "db2")
	sshtest.Write(t, l.Inventory, strings.Replace(l.Text, l.Hosts[1].Folder, l.Hosts[0].Folder, 1))
	_, err := open(t, options(l)).Check(t.Context())
	fails(t, err, `machines "db1" and "db2" are one machine and have one folder there`, "give each its own")
}

// FuzzInventory: no text makes it panic.
func FuzzInventory(f *testing.F) {
	f.Add("hosts: {db1: {address: a, jump: 'u@b:22,c', disks: [{file: 1GiB}, {id: x, consent: y}]}}")
	f.Add("hosts: []")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseInventory([]byte(text), nil, func(string, string) (settings, error) { return settings{}, nil })
		if err == nil && len(v.machines) == 0 {
			t.Error("no hosts, and no objection")
		}
	})
}

// What was begun with sudo is not left behind by a clean-up that is refused sudo: it says so, and the next one, which
// is let in, ends it.
func TestCleanUpWithoutSudo(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1")
	sudo := filepath.Join(l.Dir, "db1.bin", "sudo")
	if err := os.Mkdir(filepath.Dir(sudo), 0o755); err != nil {
		t.Fatal(err)
	}
	allowed := func(script string) {
		t.Helper()
		sshtest.Write(t, sudo, "#!/bin/sh\n"+script)
		if err := os.Chmod(sudo, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	allowed("shift 2; exec \"$@\"\n")
	sshtest.Write(t, l.Inventory, strings.Replace(l.Text, "{address", "{sudo: true, address", 1))
	state := filepath.Join(l.Dir, "state")
	c, err := open(t, options(l)).Provision(t.Context(), target.Request{RunID: "one", StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Host("db1")
	if err != nil {
		t.Fatal(err)
	}
	word := "300.55" + strconv.Itoa(os.Getpid())
	_, err = h.Start(t.Context(), target.Command{Argv: []string{"sleep", word}})
	if err = errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	allowed("echo 'sudo: a password is required' >&2; exit 1\n")
	remains, err := open(t, nil).Destroy(t.Context(), state)
	fails(t, err, `machine "db1"`, "a password is required: let this user run it with sudo without a password")
	if n := sshtest.Alive(word); len(remains) != 1 || n != 1 {
		t.Errorf("remains %q, and %d processes", remains, n)
	}
	allowed("shift 2; exec \"$@\"\n")
	if remains, err := open(t, nil).Destroy(t.Context(), state); err != nil || len(remains) > 0 {
		t.Errorf("%q, %v", remains, err)
	}
	if n := sshtest.Alive(word); n != 0 {
		t.Errorf("%d processes live", n)
	}
}

// A host whose shell does not answer keeps nobody waiting who does not want to.
func TestHostHangs(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1")
	f, err := os.OpenFile(filepath.Join(l.Dir, "db1.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("ForceCommand exec sleep 30\n")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	l.Hosts[0].Kill(t)
	l.Hosts[0].Start(t)
	defer l.Hosts[0].Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	_, err = open(t, options(l)).Check(ctx)
	fails(t, err, `machine "db1"`, context.DeadlineExceeded.Error())
	if took := time.Since(began); took > 22*time.Second {
		t.Errorf("it took %v", took)
	}
}
