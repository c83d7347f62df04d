package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/needs"
)

// deedVariable names what a copy of this test, started as a command, is to do; its arguments say to what.
const deedVariable = "PLIMSOLL_TEST_DEED"

// outsideDeeds are what a command must not be able to do. Their argument is a path, an address or a process.
var outsideDeeds = map[string]func(string) error{
	"read a file":     func(path string) error { _, err := os.ReadFile(path); return err },
	"list a folder":   func(path string) error { _, err := os.ReadDir(path); return err },
	"write a file":    func(path string) error { return appendTo(path) },
	"truncate a file": func(path string) error { return os.Truncate(path, 0) },
	"make a file":     func(path string) error { return os.WriteFile(path, nil, 0o644) },
	"make a folder":   func(path string) error { return os.Mkdir(path, 0o755) },
	"remove a file":   func(path string) error { return os.Remove(path) },
	"link a file":     func(path string) error { return os.Link(path, "taken") },
	"connect":         func(address string) error { return dial("tcp", address, nil) },
	"abstract socket": func(name string) error { return dial("unix", name, nil) },
	"named socket":    func(name string) error { return dial("unix", name, nil) },
	"datagram":        func(address string) error { return dial("udp", address, []byte("x")) },
	"listen": func(address string) error {
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // which Landlock does not know
		l, err := plain.Listen(context.Background(), "tcp", address)
		if err == nil {
			l.Close()
		}
		return err
	},
	"signal":      func(pid string) error { return unix.Kill(number(pid), unix.SIGTERM) },
	"ptrace":      func(pid string) error { return unix.PtraceSeize(number(pid)) },
	"environment": func(pid string) error { _, err := os.ReadFile("/proc/" + pid + "/environ"); return err },
	"mount":       func(path string) error { return unix.Mount("tmpfs", path, "tmpfs", 0, "") },
	"become root": func(string) error { return errors.Join(syscall.Setgid(0), syscall.Setuid(0)) },
	// A program that is set-user-id root: does it get that user?
	"gain root": func(path string) error {
		cmd := exec.Command(path)
		cmd.Env = []string{deedVariable + "=be root"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	},
}

// ownDeeds are what a command must be able to do. Their argument is its first disk.
var ownDeeds = map[string]func(string) error{
	"be root": func(string) error {
		if os.Geteuid() != 0 {
			return fmt.Errorf("user id %d", os.Geteuid())
		}
		status, err := os.ReadFile("/proc/self/status")
		if err == nil && bytes.Contains(status, []byte("CapEff:\t0000000000000000")) {
			return errors.New("without capabilities")
		}
		return err
	},
	"read the disk":  func(disk string) error { _, err := os.ReadFile(disk); return err },
	"write the disk": func(disk string) error { return appendTo(disk) },
	"direct I/O": func(disk string) error {
		fd, err := unix.Open(disk, unix.O_RDWR|unix.O_DIRECT, 0)
		if err != nil {
			return err
		}
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		_, err = unix.Pwrite(fd, page, 0)
		return err
	},
	"read direct": func(disk string) error {
		fd, err := unix.Open(disk, unix.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			return err
		}
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		_, err = unix.Pread(fd, page, 0)
		return err
	},
	"fallocate": func(string) error {
		f, err := os.Create("allocated")
		if err != nil {
			return err
		}
		return unix.Fallocate(int(f.Fd()), 0, 0, 1<<20)
	},
	"files and folders": func(string) error {
		return errors.Join(os.MkdirAll("a/b", 0o755), os.Mkdir("c", 0o755), os.WriteFile("a/b/f", []byte("x"), 0o644),
			os.Rename("a/b/f", "c/f"), os.Link("c/f", "a/f"), os.Symlink("f", "c/l"), os.Truncate("c/f", 0),
			os.RemoveAll("a"))
	},
	"files that were given": func(string) error {
		return errors.Join(appendTo("given/file"), os.WriteFile("given/other", nil, 0o644))
	},
	"programs": func(string) error { return exec.Command("sh", "-c", "ls / >/dev/null; date").Run() },
	"the machine": func(string) error {
		var problems []error
		for _, name := range []string{"/proc/cpuinfo", "/proc/self/status", "/etc/passwd", "/dev/urandom",
			"/proc/meminfo"} {
			f, err := os.Open(name)
			if err == nil {
				_, err = io.ReadFull(f, make([]byte, 8))
			}
			problems = append(problems, err)
		}
		_, err := os.ReadDir("/sys/block")
		return errors.Join(append(problems, err)...)
	},
	"lock memory": func(string) error {
		page, err := unix.Mmap(-1, 0, 32<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		return unix.Mlock(page)
	},
	"signal its own": func(string) error {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			return err
		}
		err := cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	},
	"have no privileges": func(string) error {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		var wrong []error
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			wanted := map[string]string{"CapInh": "0000000000000000", "CapPrm": "0000000000000000",
				"CapEff": "0000000000000000",
				"CapAmb": "0000000000000000", "NoNewPrivs": "1"}[name]
			if wanted != "" && value != wanted {
				wrong = append(wrong, fmt.Errorf("%s is %s", name, value))
			}
		}
		return errors.Join(wrong...)
	},
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("x")
	return err
}

func dial(network, address string, data []byte) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(data)
	return err
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }

// deed does what the environment asks for: exit code 0 when it could be done, 7 when it was refused.
func deed(name string) {
	do, ok := outsideDeeds[name]
	for _, more := range []map[string]func(string) error{ownDeeds, peerDeeds} {
		if !ok {
			do, ok = more[name]
		}
	}
	if !ok {
		fmt.Println("no such deed:", name)
		os.Exit(8)
	}
	if err := do(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Println(err)
		os.Exit(7)
	}
	os.Exit(0)
}

// world lies outside of a sandbox, fresh for every deed.
type world struct {
	dir                   string
	listener, abstract    net.Listener
	named                 net.Listener
	datagrams             net.PacketConn
	victim                *exec.Cmd
	setuid                string // "" for an ordinary user
	secret, folder, other string
}

func newWorld(t *testing.T, c *cluster, h *host) world {
	t.Helper()
	w := world{dir: filepath.Join(filepath.Dir(c.workDir), "host")}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(w.dir, 0o755))
	w.secret, w.folder = filepath.Join(w.dir, "secret"), filepath.Join(w.dir, "folder")
	w.other = filepath.Join(c.workDir, "t", "sdb.img")
	must(os.WriteFile(w.secret, []byte("secret"), 0o600))
	must(os.MkdirAll(w.folder, 0o700))
	var err error
	w.listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(err)
	w.abstract, err = net.Listen("unix", "@plimsoll-test-"+c.mark)
	must(err)
	w.named, err = net.Listen("unix", filepath.Join(w.dir, "s"))
	must(err)
	w.datagrams, err = net.ListenPacket("udp", "127.0.0.1:0")
	must(err)
	w.victim = exec.Command("sleep", "60")
	must(w.victim.Start())
	if os.Geteuid() == 0 {
		w.setuid = filepath.Join(h.dir(), "setuid")
		data, err := os.ReadFile(os.Args[0])
		must(err)
		must(os.WriteFile(w.setuid, data, 0o755))
		must(os.Chmod(w.setuid, 0o755|os.ModeSetuid))
	}
	return w
}

func (w world) end() {
	for _, c := range []io.Closer{w.listener, w.abstract, w.named, w.datagrams} {
		c.Close()
	}
	_ = w.victim.Process.Kill()
	_ = w.victim.Wait()
	os.RemoveAll(w.dir)
}

// object returns what a deed is tried on.
func (w world) object(deed string) string {
	switch deed {
	case "connect":
		return w.listener.Addr().String()
	case "listen":
		return "127.0.0.1:0"
	case "abstract socket":
		return w.abstract.Addr().String()
	case "named socket":
		return w.named.Addr().String()
	case "datagram":
		return w.datagrams.LocalAddr().String()
	case "signal", "ptrace", "environment":
		return strconv.Itoa(w.victim.Process.Pid)
	case "list a folder", "mount":
		return w.folder
	case "make a file", "make a folder":
		return filepath.Join(w.folder, "new")
	case "gain root":
		return w.setuid
	}
	return w.secret
}

// inWall runs this test's binary as a command of the sandbox that does a deed, and returns its exit code and words.
func inWall(t *testing.T, h *host, deed, object string) (int, string) {
	t.Helper()
	return does(t, h, deed, object, nil, nil)
}

// walls are those that machines differ by; each refuses everything but what it says itself.
func walls(w wall) map[string]wall {
	list := map[string]wall{"of this machine": w}
	with := func(name string, change func(*wall)) {
		w := w
		change(&w)
		list[name] = w
	}
	if w.namespaces && !needs.Race { // whose program takes a second to start, hundreds of times
		with("without namespaces", func(w *wall) { w.namespaces = false })
		with("without landlock", func(w *wall) { w.landlock = unix.LandlockRulesetAttr{} })
		with("of an old landlock", func(w *wall) {
			first := w.landlock.Handled_access_fs & (unix.LANDLOCK_ACCESS_FS_TRUNCATE - 1)
			w.landlock = unix.LandlockRulesetAttr{Handled_access_fs: first}
		})
		with("of root's own id", func(w *wall) { w.id = 0 })
		with("of root's own id without namespaces", func(w *wall) { w.id, w.namespaces = 0, false })
	}
	return list
}

// enterable lets everybody into what lies above the disks, so that namespaces are not all that protects it.
func enterable(t *testing.T, c *cluster) {
	t.Helper()
	run := filepath.Dir(c.workDir)
	data, err := os.ReadFile(os.Args[0])
	err = errors.Join(err, os.WriteFile(program(c), data, 0o755), os.Chmod(run, 0o755),
		os.Chmod(filepath.Dir(filepath.Dir(run)), 0o755))
	if err != nil {
		t.Fatal(err)
	}
}

// program is where commands find this test's binary.
func program(c *cluster) string {
	return filepath.Join(filepath.Dir(filepath.Dir(c.workDir)), "program")
}

// behind makes a VM whose commands are behind that wall, and has it on.
func behind(t *testing.T, c *cluster, name string, w wall) *host {
	t.Helper()
	c.wall = w
	if err := errors.Join(c.Clone(t.Context(), target.Clone{Source: "t", Members: []target.Placement{{Name: name}}}),
		c.PowerOn(t.Context(), []string{name}, 1)); err != nil {
		t.Fatal(err)
	}
	h, err := c.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	return h.(*host)
}

// leakOf is how a wall that does not stop a deed says so.
var leakOf = map[string]string{"datagram": "UDP", "named socket": "named sockets"}

// TestWall has commands try what they must not be able to do. That each can be done without a wall is tried too.
func TestWall(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		c, _ := sandboxes(t, target.Options{}, 1<<20)
		walled := c.wall.landlock.Handled_access_fs != 0 || c.wall.namespaces
		needs.That(t, walled, "landlock or root", "a kernel of 5.13 or later with it")
		if c.wall.id == 0 && os.Geteuid() == 0 {
			needs.That(t, false, "root with all capabilities", c.wall.noID)
		}
		enterable(t, c)
		for name, w := range walls(c.wall) {
			h := behind(t, c, name, w)
			for deed := range outsideDeeds {
				if deed == "listen" && w.landlock.Handled_access_net == 0 || deed == "become root" && w.id == 0 {
					continue // on a network of its own that is no harm; and it is root already
				}
				if os.Geteuid() != 0 && slices.Contains([]string{"become root", "gain root", "mount"}, deed) {
					continue // nor can it without
				}
				for _, other := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s %t", name, deed, other), func(t *testing.T) {
						refused(t, c, h, w, deed, other)
					})
				}
			}
		}
	})
}

func refused(t *testing.T, c *cluster, h *host, w wall, deed string, other bool) {
	outside := newWorld(t, c, h)
	defer outside.end()
	object := outside.object(deed)
	if other { // instead of root's file the disk of another VM
		if object != outside.secret || deed == "remove a file" {
			return
		}
		object = outside.other
	}
	leak := leakOf[deed]
	leaks := leak != "" && strings.Contains(strings.Join(w.leaks(), ", "), leak)
	code, said := inWall(t, h, deed, object)
	if code != 7 && !leaks {
		t.Errorf("could be done: exit code %d, %s", code, said)
	}
	if code == 7 && leaks && w.id == 0 {
		t.Errorf("is refused (%s), and the wall says it is not: %q", said, w.leaks())
	}
	free := exec.Command(os.Args[0], object)
	free.Dir, free.Env = t.TempDir(), []string{deedVariable + "=" + deed}
	if deed == "link a file" {
		free.Dir = outside.folder
	}
	if out, err := free.CombinedOutput(); err != nil {
		t.Errorf("this test tests nothing: without a wall: %v: %s", err, out)
	}
	if deed == "mount" {
		_ = unix.Unmount(outside.folder, 0)
	}
}

// TestInsideTheWall has commands do what load generators do.
func TestInsideTheWall(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		c, _ := sandboxes(t, target.Options{}, 1<<20)
		enterable(t, c)
		for name, w := range walls(c.wall) {
			h := behind(t, c, name, w)
			for deed := range ownDeeds {
				if deed == "be root" {
					continue
				}
				t.Run(name+"/"+deed, func(t *testing.T) {
					for _, file := range []string{"given/file", "given"} {
						if err := h.Remove(t.Context(), file); err != nil {
							t.Fatal(err)
						}
					}
					if err := target.WriteFile(t.Context(), h, "given/file", nil); err != nil {
						t.Fatal(err)
					}
					if code, said := inWall(t, h, deed, h.Disks()[0].Path); code != 0 {
						t.Errorf("exit code %d: %s", code, said)
					}
				})
				for _, left := range []string{"c", "a", "allocated", "given"} {
					if err := h.Remove(t.Context(), left); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

// TestDisksForReading: a command that says that it only reads can do that, with direct I/O too, and cannot write.
func TestDisksForReading(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		c, _ := sandboxes(t, target.Options{}, 1<<20)
		walled := c.wall.landlock.Handled_access_fs != 0 || c.wall.namespaces
		needs.That(t, walled, "landlock or root", "a kernel of 5.13 or later with it")
		enterable(t, c)
		for name, w := range walls(c.wall) {
			h := behind(t, c, name, w)
			disk := h.Disks()[0].Path
			for deed, want := range map[string]int{"read the disk": 0, "read direct": 0, "write the disk": 7,
				"direct I/O": 7} {
				for readOnly, want := range map[bool]int{true: want, false: 0} {
					p, err := h.Start(t.Context(), target.Command{Argv: []string{program(c), disk}, ReadOnly: readOnly,
						Env: []string{deedVariable + "=" + deed}, Stdout: "o", Stderr: "o"})
					if err != nil {
						t.Fatal(err)
					}
					exit, err := p.Wait(t.Context())
					if err != nil || exit.Code != want {
						out, _ := target.ReadFile(t.Context(), h, "o", 0, 1000)
						t.Errorf("%s: %s, read-only %t: %+v, %v: %s", name, deed, readOnly, exit, err, out)
					}
				}
			}
		}
	})
}

// TestEnginesOfFio runs fio's ways of doing I/O behind the wall, on the disk and in the working folder.
func TestEnginesOfFio(t *testing.T) {
	needs.Fio(t)
	eachUser(t, func(t *testing.T) {
		_, h := sandboxes(t, target.Options{}, 8<<20)
		for name, options := range map[string]string{
			"psync": "--ioengine=psync --direct=1", "sync": "--ioengine=sync --fsync=8",
			"libaio": "--ioengine=libaio --direct=1 --iodepth=8", "io_uring": "--ioengine=io_uring --direct=1 " +
				"--iodepth=8",
			"fixed buffers": "--ioengine=io_uring --fixedbufs --registerfiles --iodepth=4", "mmap": "--ioengine=mmap",
			"threads": "--ioengine=psync --thread --numjobs=2", "processes": "--ioengine=psync --numjobs=3",
			"locked memory": "--ioengine=psync --lockmem=64k", "verified": "--ioengine=psync --verify=crc32c",
		} {
			t.Run(name, func(t *testing.T) {
				exit, out, _ := finish(t, h, "fio --size=1m --bs=16k --rw=randrw "+options+
					" --name=disk --filename="+h.Disks()[0].Path+" --name=folder --filename=file")
				if exit.Code != 0 {
					t.Errorf("%+v: %s", exit, out)
				}
			})
		}
	})
}

// eachUser runs a test as the user that there is and, where that is root, once more as an ordinary user.
func eachUser(t *testing.T, test func(*testing.T)) {
	t.Run("this user", test)
	if os.Geteuid() != 0 {
		return
	}
	t.Run("ordinary user", func(t *testing.T) {
		const somebody = 54321
		dir, err := os.MkdirTemp("", "plimsoll-ordinary-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		data, err := os.ReadFile(os.Args[0])
		program := filepath.Join(dir, "test")
		if err := errors.Join(err, os.WriteFile(program, data, 0o755), os.Chown(dir, somebody, somebody)); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.Command(program, "-test.v", "-test.run", "^"+name+"$")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+name+"/this_user")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// Commands that start at the same moment do not disturb each other's walls.
func TestStartsAtTheSameTime(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	each := 100
	if testing.Short() {
		each = 20
	}
	var starters sync.WaitGroup
	for range 8 {
		starters.Go(func() {
			for range each {
				p, err := h.Start(t.Context(), target.Command{Argv: []string{"true"}})
				if err != nil {
					t.Error(err)
					return
				}
				if exit, err := p.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
					t.Errorf("%+v, %v", exit, err)
				}
			}
		})
	}
	starters.Wait()
}

// What a wall does not stop is said in the facts and in a note; a whole one needs none.
func TestWallSaysWhatItDoesNotStop(t *testing.T) {
	all := unix.LandlockRulesetAttr{Handled_access_fs: readRights | fileRights | otherRights,
		Handled_access_net: tcpRights | udpRights, Scoped: abstractScope | signalScope}
	me := userName()
	for name, c := range map[string]struct {
		wall wall
		want []string
		note string
	}{
		"whole": {wall{landlock: all, namespaces: true, id: 5}, nil, ""},
		"no landlock": {wall{namespaces: true, id: 5, noLandlock: "old"},
			[]string{"signals to processes of the run's other VMs"}, "(Landlock: old)"},
		"no namespaces": {wall{landlock: all, id: 5, noNamespaces: "refused"},
			[]string{"ports by other protocols, such as MPTCP"}, "(namespaces: refused)"},
		"inside a grant": {wall{landlock: all, namespaces: true, id: 5, within: "/usr"},
			[]string{"disks of the run's other VMs, since the run folder lies in /usr"}, ""},
		"plimsoll's user": {wall{landlock: all, noID: "a", noNamespaces: "b"},
			[]string{"ports by other protocols, such as MPTCP", "System V shared memory of user " + me},
			"(namespaces: b; a user of their own: a)"},
		"nothing": {wall{noID: "a", noNamespaces: "b", noLandlock: "c"},
			[]string{"other files that user " + me + " may use",
				"TCP ports", "UDP ports", "ports by other protocols, such as MPTCP", "named sockets that user " + me +
					" may use",
				"abstract sockets", "System V shared memory of user " + me, "signals to other processes of user " + me},
			"(Landlock: c; namespaces: b; a user of their own: a)"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.wall.leaks()); diff != "" {
				t.Error(diff)
			}
			note := c.wall.note()
			if (note == "") != (c.want == nil) || !strings.Contains(note, strings.Join(c.want, ", ")) ||
				!strings.Contains(note, c.note) {
				t.Errorf("note %q", note)
			}
			var l factList
			c.wall.facts(&l)
			got := value(target.Facts{Environment: l}, "wall", "may still pass")
			if got != strings.Join(c.want, ", ") && (got != "nothing known" || c.want != nil) {
				t.Errorf("may still pass: %q", got)
			}
		})
	}
}

// The folders of PATH may be read, but not one in which the disks lie; of /etc only what the C library reads.
func TestSystemGrants(t *testing.T) {
	top := t.TempDir()
	tools, run := filepath.Join(top, "tools"), filepath.Join(top, "home", "runs")
	if err := errors.Join(os.MkdirAll(tools, 0o755), os.MkdirAll(run, 0o755)); err != nil {
		t.Fatal(err)
	}
	path := []string{tools, filepath.Dir(run), "relative", "", "/usr/bin", top + "/absent"}
	t.Setenv("PATH", strings.Join(path, ":"))
	var w wall
	if err := w.grantSystem(run); err != nil {
		t.Fatal(err)
	}
	var more []string
	for _, g := range w.system {
		if strings.HasPrefix(g.path, top) || g.path == "/etc" || !filepath.IsAbs(g.path) {
			more = append(more, g.path)
		}
		if g.write != strings.HasPrefix(g.path, "/dev/") {
			t.Errorf("%+v", g)
		}
	}
	if diff := cmp.Diff([]string{tools}, more); diff != "" || w.within != "" {
		t.Errorf("%q %s", w.within, diff)
	}
	if err := w.grantSystem("/usr/lib"); err != nil || w.within != "/usr" {
		t.Errorf("%q, %v", w.within, err)
	}
}

func TestMapped(t *testing.T) {
	for _, c := range []struct {
		table string
		id    uint64
		want  bool
	}{
		{"         0          0 4294967295\n", 0x70000000, true},
		{"0 100000 65536\n", 0x70000000, false},
		{"0 100000 65536\n", 65535, true},
		{"0 100000 65536\n", 65536, false},
		{"0 1000 1\n1 100000 65536\n", 61184, true},
		{"", 0, false},
		{"not a map\n", 0, false},
	} {
		if got := mapped(c.table, c.id); got != c.want {
			t.Errorf("%d in %q: %t", c.id, c.table, got)
		}
	}
}
