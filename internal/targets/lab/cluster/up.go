//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/outfile"
)

// Options of a new lab.
type Options struct {
	Dir     string // new or empty; letters, digits and . _ / + - only
	Nodes   int    // 1 to 9
	Storage string // Gluster or Shared
	Program string // absolute path of a program whose words "lab part" call Part: plimsoll itself
}

var plainPath = regexp.MustCompile(`^/[A-Za-z0-9._/+-]*$`)

const longestDir = 60 // sockets of guests are below, and have 108 bytes for their path

// objections are all that stands against making a lab on this machine.
func (o Options) objections() error {
	errs := checkShape(o.Nodes, o.Storage)
	if !plainPath.MatchString(o.Dir) || len(o.Dir) > longestDir {
		errs = append(errs, fmt.Errorf("folder %q: must be of letters, digits and . _ + - only, at most %d bytes in all",
			o.Dir, longestDir))
	}
	if resolved, err := filepath.EvalSymlinks(filepath.Dir(o.Dir)); err != nil {
		errs = append(errs, fmt.Errorf("folder %q: %w", o.Dir, err))
	} else if o.Storage == Gluster && (resolved+"/" == "/run/" || strings.HasPrefix(resolved, "/run/")) {
		errs = append(errs, fmt.Errorf("folder %q: must not be in /run, which nodes have of their own", o.Dir))
	}
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("network namespaces need root: run it as root or with sudo"))
	}
	needed := map[string]string{"ip": "iproute2", "ipmi_sim": "openipmi"}
	if o.Storage == Gluster {
		for _, program := range []string{"glusterd", "gluster", "glusterfs"} {
			needed[program] = "glusterfs-server"
		}
		if _, err := os.Stat("/dev/fuse"); err != nil {
			errs = append(errs, fmt.Errorf("storage %s: %w: use --storage %s, without copies", Gluster, err, Shared))
		}
	}
	missing := map[string]bool{}
	for program, pack := range needed {
		if _, err := exec.LookPath(program); err != nil {
			missing[pack] = true
		}
	}
	for _, pack := range []string{"iproute2", "openipmi", "glusterfs-server"} {
		if missing[pack] {
			errs = append(errs, fmt.Errorf("package %s is missing: apt-get install --no-install-recommends %[1]s", pack))
		}
	}
	return errors.Join(errs...)
}

// Check looks whether a lab can be made on this machine, and gives the nodes that it would have, or all objections.
func (o Options) Check() ([]*Node, error) {
	if err := o.objections(); err != nil {
		return nil, prefixed("lab", err)
	}
	return (&Lab{o.Dir, record{Nodes: o.Nodes, Storage: o.Storage}}).Nodes(), nil
}

// Up makes a lab and returns when all its nodes are ready. What a failed or ended one has made is removed again.
func Up(ctx context.Context, o Options) (*Lab, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	o.Dir = dir
	if err := o.objections(); err != nil {
		return nil, prefixed("lab", err)
	}
	l := &Lab{dir, record{Version: 1, Nodes: o.Nodes, Storage: o.Storage}}
	unlock, err := l.begin(o.Program)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	err = l.build(ctx)
	unlock()
	if err != nil {
		_, derr := Down(context.WithoutCancel(ctx), dir)
		return nil, errors.Join(fmt.Errorf("lab: %w", err), derr)
	}
	return l, nil
}

func prefixed(prefix string, err error) error {
	return errors.New(prefix + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+prefix+": "))
}

// begin makes the folder and writes in it what is to be made.
func (l *Lab) begin(program string) (unlock func(), err error) {
	switch err := os.Mkdir(l.dir, 0o700); {
	case err == nil:
		l.MadeDir = true
	case !errors.Is(err, os.ErrExist):
		return nil, err
	}
	unlock, err = lock(l.path(lockName), false)
	if err != nil {
		return nil, fmt.Errorf("%s: another plimsoll lab is at work on it: %w", l.dir, err)
	}
	entries, err := os.ReadDir(l.dir)
	if err == nil && (len(entries) != 1 || entries[0].Name() != lockName) {
		if _, oerr := Open(l.dir); oerr == nil {
			err = fmt.Errorf("%s holds a lab already: use it, or remove it with plimsoll lab down", l.dir)
		} else {
			err = fmt.Errorf("%s is not empty: name a new folder", l.dir)
		}
	}
	random := make([]byte, 3)
	if err == nil {
		_, err = rand.Read(random)
	}
	var data []byte
	if err == nil {
		l.record.ID = hex.EncodeToString(random)
		data, err = json.MarshalIndent(l.record, "", "  ")
	}
	if err == nil {
		err = writeFile(l.path(recordName), append(data, '\n'))
	}
	if err == nil {
		err = os.Symlink(program, l.path("plimsoll"))
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

const lockName = "lock"

func (l *Lab) build(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	hosts := "127.0.0.1 localhost\n"
	dirs := []string{l.path("bmc"), l.path("shared")}
	for _, n := range l.Nodes() {
		hosts += n.Address().String() + " " + n.Name() + "\n"
		for _, d := range []string{"lib", "log", "brick", "mount", "guests"} {
			dirs = append(dirs, n.path(d))
		}
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"hosts": hosts, "resolv.conf": "", "glusterd.vol": daemonConf} {
		if err := os.WriteFile(l.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, n := range l.Nodes() {
		if err := n.press(button{}); err != nil {
			return err
		}
	}
	if err := l.makeNetwork(ctx); err != nil {
		return err
	}
	if err := l.makeBMCs(); err != nil {
		return err
	}
	for _, n := range l.Nodes() {
		if err := n.Power().PowerOn(ctx); err != nil {
			return err
		}
	}
	if l.record.Storage == Gluster {
		if err := l.makeVolume(ctx); err != nil {
			return err
		}
	}
	return errors.Join(l.waitBMCs(ctx), l.WaitReady(ctx, l.Nodes()...))
}

// Down removes a lab: what runs in its namespaces, its mounts, its namespaces, its folder with all that is in it. It
// may be called again and from any process, whatever was killed before, and returns what remains with the reasons.
func Down(ctx context.Context, dir string) (remains []string, err error) {
	l, err := Open(dir)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		return nil, noLab(dir, err)
	}
	unlock, err := lock(l.path(lockName), false)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("lab: %s: another plimsoll lab up or down is at work on it: stop that first", l.dir)
	} else if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	defer unlock()
	var errs []error
	failed := func(what string, err error) {
		if err != nil {
			remains = append(remains, what)
			errs = append(errs, fmt.Errorf("lab: down: %s: %w", what, err))
		}
	}
	limit, cancel := context.WithTimeout(ctx, 2*killLimit)
	defer cancel()
	spaces := []string{filepath.Join(namespaces, l.hub())} // first, as the controllers there may switch nodes on
	for _, n := range l.Nodes() {
		spaces = append(spaces, n.NetNS())
	}
	failed("processes", end(limit, unix.SIGKILL, spaces[0]))
	for _, n := range l.Nodes() {
		if _, err := os.Stat(n.path("power.json")); err == nil {
			failed("power of "+n.Name(), n.locked(func() error { return n.press(button{}) })) // nothing starts any more
		}
	}
	failed("processes", end(limit, unix.SIGKILL, spaces...))
	for _, n := range l.Nodes() {
		failed(n.path("mount"), n.unmount())
	}
	if len(errs) == 0 {
		for _, path := range spaces {
			failed(path, removeNamespace(path))
		}
	}
	if len(errs) == 0 {
		failed(l.dir, l.removeFiles())
	}
	return remains, errors.Join(errs...)
}

// noLab removes what an up leaves that was killed before it wrote what it would make, which is then nothing else.
func noLab(dir string, why error) error {
	if _, err := outfile.Clean(dir); err != nil {
		return errors.Join(why, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != lockName || !entries[0].Type().IsRegular() {
		return why
	}
	unlock, err := lock(filepath.Join(dir, lockName), false)
	if err != nil {
		return fmt.Errorf("lab: %s: another plimsoll lab is at work on it: %w", dir, err)
	}
	defer unlock()
	return errors.Join(os.Remove(filepath.Join(dir, lockName)), os.Remove(dir))
}

func removeNamespace(path string) error {
	for isNamespace(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// removeFiles removes what is in the folder, the record last, so that an interrupted down can be called again.
func (l *Lab) removeFiles() error {
	below, err := mountsBelow(l.dir)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("not made by the lab, unmount first: %s", strings.Join(below, ", "))
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != recordName && e.Name() != lockName {
			errs = append(errs, os.RemoveAll(l.path(e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	err = errors.Join(os.Remove(l.path(recordName)), os.Remove(l.path(lockName)))
	if err == nil && l.MadeDir {
		err = os.Remove(l.dir)
	}
	return err
}

// part starts a part of the lab in a namespace: this program, under the words "lab part".
func (l *Lab) part(namespace, log string, args ...string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command(l.path("plimsoll"), append([]string{"lab", "part"}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = f, f, "/"
	if err := spawn(namespace, cmd); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // what it has to say is in its log, what it did is looked at
	return nil
}

// Part does what "plimsoll lab part" does, which is for the lab itself and no person: a node boots or halts, a
// controller answers ipmi_sim, or all of them serve Redfish.
func Part(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("lab part: %q: a part and a folder are needed", args)
	}
	l, err := Open(args[1])
	if err != nil {
		return err
	}
	if args[0] == "redfish" {
		return l.serveRedfish(ctx, errs)
	}
	if len(args) < 3 {
		return fmt.Errorf("lab part: %q: a node is needed", args)
	}
	number, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("lab part: node %q: must be a number", args[2])
	}
	n, err := l.Node(number)
	if err != nil {
		return err
	}
	switch args[0] {
	case "chassis":
		return n.chassis(ctx, args[3:], out)
	case "boot":
		return n.boot(ctx)
	case "halt":
		if len(args) == 4 {
			if times, err := strconv.Atoi(args[3]); err == nil {
				return n.halt(ctx, times)
			}
		}
	}
	return fmt.Errorf("lab part: %q: no such part", args)
}

// tail is the end of a log, for an error.
func tail(path string) string {
	data, _ := os.ReadFile(path)
	return string(bytes.TrimSpace(data[max(0, len(data)-1000):]))
}
