//go:build linux

package local

import (
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
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/procfs"
)

// gate holds a new process, behind its wall already, back until it is journalled and in its control groups: it waits
// for a line on descriptor 3 and then becomes the command, so no command ever works unrecorded. When plimsoll dies
// first, the read fails and the process ends.
const gate = `read -r go <&3 || exit 125; exec 3<&-; exec "$@"`

// command is a started command: the unit of a process and all its children.
type command struct {
	c       *cluster
	b       *sandbox
	number  int
	label   string
	key     string // of the VM's boot, for its control groups
	cmd     *exec.Cmd
	lost    bool // guarded by c.mu
	service bool // no load generator
	done    chan struct{}

	starved int // processes of its VM that were killed for want of memory before it began

	// Written before done is closed.
	exit  target.Exit
	usage target.Usage
}

var (
	_ target.Process  = (*command)(nil)
	_ target.Follower = (*command)(nil)

	_ target.StandTeller = (*host)(nil)
)

// Start implements target.Host. The command becomes the leader of a session of its own.
func (h *host) Start(ctx context.Context, r target.Command) (target.Process, error) {
	u, err := h.start(ctx, r, false)
	if err != nil {
		return nil, err // who asks for it says that it was to start
	}
	return u, nil
}

func (h *host) start(ctx context.Context, r target.Command, service bool) (*command, error) {
	if err := h.Accessible(ctx); err != nil {
		return nil, err
	}
	if len(r.Argv) == 0 {
		return nil, fmt.Errorf("vm %q: command %q: no argv", h.b.name, r.Label)
	}
	c := h.c
	c.mu.Lock()
	c.starts++
	u := &command{c: c, b: h.b, number: c.starts, label: r.Label, service: service, done: make(chan struct{})}
	c.mu.Unlock()
	env := append([]string{"PATH=" + searchPath(), "HOME=" + h.dir(), "TMPDIR=" + h.dir(), "LANG=C", "LC_ALL=C"},
		r.Env...)
	env = append(env, markVariable+"="+c.mark, unitVariable+"="+u.unit())
	argv0, err := lookPath(r.Argv[0], env, h.dir())
	if err != nil {
		return nil, fmt.Errorf("vm %q: %w", h.b.name, err)
	}
	if err := c.admits(ctx, h.b, r); err != nil {
		return nil, fmt.Errorf("vm %q: %w", h.b.name, err)
	}
	ports, err := c.portsOf(r)
	if err != nil {
		return nil, fmt.Errorf("vm %q: %w", h.b.name, err)
	}
	u.cmd = exec.Command("/bin/sh", append([]string{"-c", gate, "plimsoll", argv0}, r.Argv[1:]...)...)
	u.cmd.Dir, u.cmd.Env = h.dir(), env
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	opened, err := h.outputs(ctx, u.cmd, r)
	defer func() {
		for _, f := range opened {
			f.Close() // the command has its own descriptors
		}
	}()
	if err != nil {
		return nil, err
	}
	closed, open, err := os.Pipe()
	if err != nil {
		return nil, h.fail("", 0, err)
	}
	defer open.Close()
	u.cmd.ExtraFiles = []*os.File{closed}
	err = c.wall.start(u.cmd, h.grants(argv0, r), ports)
	closed.Close()
	if err != nil {
		return nil, h.fail("", 0, err)
	}
	if err := u.admit(h, r.Label); err != nil {
		open.Close() // the process ends at its gate
		_ = u.cmd.Process.Kill()
		_ = u.cmd.Wait() // of no interest: it never was the command
		return nil, err
	}
	// A write that fails finds a process already killed, by a power-off at this moment: Wait tells.
	_, _ = open.WriteString("go\n")
	return u, nil
}

// grants returns what a command of the sandbox may use: its program, its working folder, its disks, to write or only to
// read, and of servers outside their sockets, or who tells the addresses of their names.
func (h *host) grants(program string, r target.Command) []grant {
	list := allow(slices.Clip(h.c.wall.system), program, false)
	list = allow(list, h.dir(), true)
	for _, d := range h.b.disks {
		list = allow(list, d.Path, !r.ReadOnly)
	}
	for _, server := range r.Outside {
		if strings.HasPrefix(server, "/") {
			list = allow(list, server, true)
		} else if name, _, _ := net.SplitHostPort(server); net.ParseIP(name) == nil {
			list = allow(list, "/etc/resolv.conf", false)
		}
	}
	return list
}

// admit journals the waiting process and puts it into its groups, unless the VM went off meanwhile.
func (u *command) admit(h *host, label string) error {
	c := u.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := h.accessible(); err != nil {
		return err
	}
	self, ok := readProcess(u.cmd.Process.Pid)
	if !ok {
		return fmt.Errorf("vm %q: command %q: process %d ended before it began", h.b.name, label, u.cmd.Process.Pid)
	}
	u.key = h.b.key
	err := c.journal.add(false, entry{Op: "process", VM: h.b.name, Label: label, PID: self.pid, Start: self.start})
	if err != nil {
		return err
	}
	if err := c.groups.enter(u.key, u.groupKey(), self.pid); err != nil {
		return fmt.Errorf("vm %q: command %q: %w", h.b.name, label, err)
	}
	h.b.units[u.number] = u
	u.starved, _ = procfs.Starved(c.groups.counting(u.key))
	c.goroutines.Go(u.attend)
	return nil
}

// unit names the command in the environment of its processes.
func (u *command) unit() string { return u.b.name + "/" + strconv.Itoa(u.number) }

func (u *command) groupKey() string { return "command-" + strconv.Itoa(u.number) }

// attend waits for the command and ends what it leaves behind.
func (u *command) attend() {
	c := u.c
	err := u.cmd.Wait()
	if e := u.killRest(context.Background()); e != nil {
		c.log("vm %q: command %d: children left behind: %v", u.b.name, u.number, e)
	}
	usage := u.finalUsage()
	if dir := c.groups.tracked(u.key, u.groupKey()); dir != "" {
		if e := removeGroup(dir); e != nil {
			c.log("vm %q: %v", u.b.name, e)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(u.b.units, u.number)
	if c.groups.track.dir == "" {
		u.b.cpuBefore += usage.User + usage.System
	}
	u.usage = usage
	u.exit = target.Exit{Code: u.cmd.ProcessState.ExitCode(), Lost: u.lost}
	if ws, ok := u.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		u.exit.Signal = ws.Signal().String()
		if n, ok := procfs.Starved(c.groups.counting(u.key)); ok {
			u.exit.Starved = n - u.starved
		}
	} else if err != nil && u.exit.Code == 0 {
		c.log("vm %q: command %d: %v", u.b.name, u.number, err)
	}
	close(u.done)
}

// Wait implements target.Process.
func (u *command) Wait(ctx context.Context) (target.Exit, error) {
	select {
	case <-u.done:
		return u.exit, nil
	default:
	}
	select {
	case <-u.done:
		return u.exit, nil
	case <-ctx.Done():
		return target.Exit{}, ctx.Err()
	}
}

// Kill implements target.Process.
func (u *command) Kill() error {
	select {
	case <-u.done:
		return nil
	default:
	}
	if dir := u.c.groups.tracked(u.key, u.groupKey()); dir != "" {
		killGroup(dir)
	}
	if err := u.killRest(context.Background()); err != nil {
		return fmt.Errorf("kill: vm %q: command %d: %w", u.b.name, u.number, err)
	}
	limited, cancel := clock.WithTimeout(context.Background(), u.c.clock, dieWithin)
	defer cancel()
	if _, err := u.Wait(limited); err != nil {
		return fmt.Errorf("kill: vm %q: command %d: killed, but not gone after %v", u.b.name, u.number, dieWithin)
	}
	return nil
}

// Stands implements target.StandTeller.
func (h *host) Stands(label string) (names []string) {
	h.c.mu.Lock()
	var units []*command
	for _, u := range h.b.units {
		if u.label == label && !u.service {
			units = append(units, u)
		}
	}
	h.c.mu.Unlock()
	for _, u := range units {
		list, err := u.processes()
		if err != nil {
			continue // it is only told what can be seen
		}
		for _, p := range list {
			for _, s := range procfs.Stands(p.pid) {
				names = append(names, s.String())
			}
		}
	}
	return names
}

func (u *command) killRest(ctx context.Context) error { return u.c.killAll(ctx, u.processes) }

// processes lists the live processes of the unit.
func (u *command) processes() ([]process, error) {
	if dir := u.c.groups.tracked(u.key, u.groupKey()); dir != "" {
		return members(dir)
	}
	return u.c.marked(func(unit string) bool { return unit == u.unit() })
}

// Usage implements target.Process. MaxRSSBytes is that of the largest process.
func (u *command) Usage() target.Usage {
	select {
	case <-u.done:
		return u.usage
	default:
	}
	list, err := u.processes()
	if err != nil {
		return target.Usage{}
	}
	var use target.Usage
	for _, p := range list {
		use.User += p.user
		use.System += p.system
		use.MaxRSSBytes = max(use.MaxRSSBytes, peakRSS(p))
	}
	if user, system, ok := u.groupUsage(); ok {
		use.User, use.System = user, system
	}
	return use
}

func (u *command) groupUsage() (user, system time.Duration, ok bool) {
	return groupCPU(u.c.groups.tracked(u.key, u.groupKey()))
}

// finalUsage is the kernel's account of the process and the children it waited for; the group's is also of the others.
func (u *command) finalUsage() target.Usage {
	state := u.cmd.ProcessState
	use := target.Usage{User: state.UserTime(), System: state.SystemTime()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		use.MaxRSSBytes = r.Maxrss << 10
	}
	if user, system, ok := u.groupUsage(); ok {
		use.User, use.System = user, system
	}
	return use
}

// outputs opens the files of the command's output in the working folder; it returns them also with an error.
func (h *host) outputs(ctx context.Context, cmd *exec.Cmd, r target.Command) (opened []*os.File, err error) {
	create := func(name string) (*os.File, error) {
		f, err := h.create(ctx, name)
		if err == nil {
			opened = append(opened, f)
		}
		return f, err
	}
	if r.Stdout != "" {
		f, err := create(r.Stdout)
		if err != nil {
			return opened, err
		}
		cmd.Stdout = f
	}
	switch {
	case r.Stderr == "":
	case r.Stderr == r.Stdout:
		cmd.Stderr = cmd.Stdout
	default:
		f, err := create(r.Stderr)
		if err != nil {
			return opened, err
		}
		cmd.Stderr = f
	}
	return opened, nil
}

// searchPath is where commands are looked for when the caller does not say.
func searchPath() string {
	if p := os.Getenv("PATH"); p != "" {
		return p
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// lookPath finds a program as the command's own environment would, so that its absence is an error of Start.
func lookPath(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, name)
		}
		if err := executable(path); err != nil {
			return "", err
		}
		return path, nil
	}
	var search string
	for _, e := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			search = v
			break
		}
	}
	for _, folder := range filepath.SplitList(search) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if path := filepath.Join(folder, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("command %q: %w: not in PATH %s; install it or name it with its path", name, exec.ErrNotFound,
		search)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("command %q: %w", path, errors.Unwrap(err))
	}
	if info.IsDir() || unix.Access(path, unix.X_OK) != nil {
		return fmt.Errorf("command %q: %w: not an executable file", path, os.ErrPermission)
	}
	return nil
}
