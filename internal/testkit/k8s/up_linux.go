package k8s

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ExitCannot is how the command ends on a machine on which no cluster can be.
const ExitCannot = 3

// prefix is that of a cluster's folder, of its groups and of the names of its loop devices.
const prefix = "plimsoll-k8s-"

// Main is the command ./internal/testkit/k8s/up and the stages in which it starts itself.
func Main(args []string) int {
	var err error
	stage := ""
	if len(args) > 1 {
		stage = args[0]
	}
	switch stage {
	case "control":
		err = runControl(args[1])
	case "node":
		err = runNode(args[1], args[len(args)-1])
	case "chassis":
		err = chassis(args[1:])
	default:
		err = runUp(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "k8s:", err)
		if errors.Is(err, errCannot) {
			return ExitCannot
		}
		return 1
	}
	return 0
}

// runUp starts a cluster, says how to use it, and takes it down at a signal, or with -test when its input ends.
func runUp(args []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	test := flags.Bool("test", false, "say one line of JSON, and end when the input ends, as for a test")
	nodes := flags.Int("nodes", 2, "how many nodes it has, at most 9")
	source := flags.String("source", "", "the folder internal/testkit/k8s (default: that of this repository)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if *test {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the test's process does
			stop()
		}()
	}
	say := func(text string) { fmt.Fprintln(os.Stderr, text) }
	for _, what := range Clear() {
		say("left by a cluster whose process was killed, removed: " + what)
	}
	if *source == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "plimsoll/internal/testkit/k8s").Output()
		if err != nil {
			return fmt.Errorf("run it in the repository, or give -source: %w", err)
		}
		*source = strings.TrimSpace(string(out))
	}
	if *nodes < 1 || *nodes > 9 {
		return fmt.Errorf("-nodes %d: want 1 to 9", *nodes)
	}
	u := &up{say: say}
	u.Nodes = *nodes
	cluster, err := u.start(ctx, *source)
	if err == nil {
		if *test {
			err = json.NewEncoder(os.Stdout).Encode(cluster)
		} else {
			fmt.Print(cluster.usage())
		}
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case status := <-u.ended:
			err = fmt.Errorf("the cluster ended: %w: %s", status, u.last())
		}
	}
	return errors.Join(err, u.down())
}

// up is a cluster as the process has it that started it.
type up struct {
	plan
	say   func(string)
	lock  *os.File
	ended chan error
	begun *exec.Cmd
}

func (u *up) start(ctx context.Context, source string) (*Cluster, error) {
	if err := able(); err != nil {
		return nil, err
	}
	built, err := programs(ctx, source, u.say)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	u.Dir, u.ID, u.Programs = dir, filepath.Base(dir), built
	u.Password = random(8)
	if u.lock, err = os.Create(u.path("lock.new")); err != nil {
		return nil, err
	}
	if err := errors.Join(syscall.Flock(int(u.lock.Fd()), syscall.LOCK_EX),
		os.Rename(u.path("lock.new"), u.path("lock"))); err != nil { // no other sees it before it is held
		return nil, err
	}
	for _, hidden := range []string{"/run/", "/var/lib/", "/var/log/", "/proc/", "/sys/"} {
		for _, place := range []string{dir, built} {
			if strings.HasPrefix(place, hidden) {
				return nil, fmt.Errorf("%w: %s is not seen by a node, which has its own %s", errCannot, place, hidden)
			}
		}
	}
	if u.Plugins, err = plugins(); err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(u.path("log"), 0o755), os.MkdirAll(u.path("volumes"), 0o700)); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := exec.Command("cp", self, u.path("up")).Run(); err != nil {
		return nil, err
	}
	if err := u.control(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, u.last())
	}
	return u.ready(ctx)
}

// able says what keeps a cluster from being on this machine.
func able() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: namespaces and mounts are root's to make", errCannot)
	}
	for program, from := range map[string]string{"containerd": "containerd", "runc": "runc", "ctr": "containerd",
		"busybox": "busybox-static", "ipmi_sim": "openipmi", "ip": "iproute2", "nsenter": "util-linux", "go": "golang",
		"mkfs.ext4": "e2fsprogs", "losetup": "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: %s is not installed (apt-get install %s)", errCannot, program, from)
		}
	}
	if _, err := hierarchies(); err != nil {
		return fmt.Errorf("%w: %w", errCannot, err)
	}
	return nil
}

// plugins is the folder of the plug-ins by which containerd connects pods.
func plugins() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if _, err := os.Stat(dir + "/host-local"); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: there are no CNI plug-ins (apt-get install containernetworking-plugins)", errCannot)
}

// control starts the cluster's first process, in namespaces of its own, and links it with this machine.
func (u *up) control() error {
	log, err := os.Create(u.path("log", "control.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	u.begun = exec.Command(u.path("up"), "control", u.Dir)
	u.begun.Stdout, u.begun.Stderr = log, log
	u.begun.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC}
	begin, err := u.begun.StdinPipe()
	if err != nil {
		return err
	}
	started := make(chan error)
	u.ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal at our death is one at the death of this thread
		err := u.begun.Start()
		started <- err
		if err == nil {
			err := u.begun.Wait()
			if err == nil {
				err = errors.New("exit status 0")
			}
			u.ended <- err
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	if err := u.link(); err != nil {
		return err
	}
	if err := errors.Join(u.credentials(random(16)), u.save()); err != nil {
		return err
	}
	return begin.Close() // the plan is whole
}

// link makes the cluster's link with this machine, and finds it addresses that nothing else has: a part of what is
// set aside for tests of networks, 198.18.0.0/15. The route is the claim: no two can be made, and it goes with the
// link.
func (u *up) link() error {
	name := linkOf(u.ID)
	if err := command("ip", "link", "add", name, "type", "veth", "peer", "name", "up0", "netns",
		fmt.Sprint(u.begun.Process.Pid)); err != nil {
		return err
	}
	if err := command("ip", "link", "set", name, "up"); err != nil {
		return err
	}
	first := mathrand.N(blocks)
	for i := range blocks {
		u.place((first + i) % blocks)
		if u.taken() {
			continue
		}
		if err := command("ip", "route", "add", u.all(), "dev", name); err != nil {
			if strings.Contains(err.Error(), "File exists") {
				continue
			}
			return err
		}
		if err := command("ip", "addr", "add", u.address(253)+"/24", "dev", name); err != nil {
			return err
		}
		return command("ip", "route", "replace", u.all(), "via", u.address(254), "dev", name)
	}
	return fmt.Errorf("%w: all the %d nets in 198.18.0.0/15 are taken", errCannot, blocks)
}

// linkOf is the name of a cluster's link on this machine.
func linkOf(id string) string { return "pk-" + strings.TrimPrefix(id, prefix) }

// taken says whether this machine has an address in the block of addresses.
func (u *up) taken() bool {
	_, block, err := net.ParseCIDR(u.all())
	if err != nil {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range addresses {
		if of, ok := a.(*net.IPNet); ok && (block.Contains(of.IP) || of.Contains(block.IP)) {
			return true
		}
	}
	return false
}

// down ends the cluster and removes all that was of it.
func (u *up) down() error {
	if u.Dir == "" {
		return nil
	}
	if u.begun != nil && u.begun.Process != nil {
		_ = u.begun.Process.Kill() // and with it all in its namespace
		<-u.ended
	}
	return remove(u.Dir)
}

// remove removes what a cluster has outside its namespaces, and its folder.
func remove(dir string) error {
	id := filepath.Base(dir)
	// A connection that was cut keeps its namespace for a minute, and with it the link.
	_ = exec.Command("ip", "link", "del", linkOf(id)).Run() // it may have gone
	freeLoops(id + "/")
	return errors.Join(removeGroup(id), os.RemoveAll(dir))
}

// Clear removes what clusters have left whose process was killed, and names it. Their processes and mounts have gone
// with their namespaces; what stays are folders, groups and loop devices.
func Clear() (found []string) {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range folders {
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue // it begins, or is nobody's
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			found = append(found, dir)
			if err := remove(dir); err != nil {
				found = append(found, err.Error())
			}
		}
		lock.Close()
	}
	return found
}

// last are the last words of the parts of a cluster, for who looks why it did not come up.
func (u *up) last() string {
	var all strings.Builder
	names, _ := filepath.Glob(u.path("log", "*.log"))
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 && filepath.Base(name) != "audit.log" {
			fmt.Fprintf(&all, "\n== %s\n%s", filepath.Base(name), last(string(text)))
		}
	}
	return all.String()
}

// chassis returns what ipmi_sim calls to read or switch a node's power: FOLDER NODE get|set|check WHAT [VALUE].
func chassis(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("chassis %q: want FOLDER NODE get|set|check WHAT [VALUE]", args)
	}
	at := at(args[0])
	switch what := strings.Join(args[2:], " "); {
	case what == "set power 1":
		return at.power(args[1], "on")
	case what == "set reset 1":
		return errors.Join(at.power(args[1], "off"), at.power(args[1], "on"))
	case what == "set power 0" || strings.HasPrefix(what, "set shutdown "):
		return at.power(args[1], "off")
	case what == "get power":
		state, err := at.state(args[1])
		if err != nil {
			return err
		}
		fmt.Printf("power:%d\n", map[string]int{"on": 1}[state])
	case strings.HasPrefix(what, "get "):
		fmt.Printf("%s:0\n", args[3])
	case strings.HasPrefix(what, "check"), strings.HasPrefix(what, "set boot "),
		strings.HasPrefix(what, "set identify"):
	default:
		return fmt.Errorf("chassis: what is %q?", what)
	}
	return nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

func command(argv ...string) error {
	ctx, stop := context.WithTimeout(context.Background(), patient)
	defer stop()
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
