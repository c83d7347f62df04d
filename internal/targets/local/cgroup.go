//go:build linux

package local

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device"
	"plimsoll/unit"
)

// groupPrefix begins the name of the control group of a run, in every hierarchy. Destroy removes no group without it.
const groupPrefix = "plimsoll-"

// A controlBase is where groups of a hierarchy can be made by us.
type controlBase struct {
	dir string // absolute; "" when there is none
	v2  bool
	why string // reason when dir is ""
}

// controlGroups says which control groups this process may use, and for what. Version 2 tracks and kills, even where
// its controllers belong to version 1 hierarchies (systemd's hybrid layout); limits use whichever has the controller.
type controlGroups struct {
	track, cpu, memory controlBase
	versions           string // for people: "v2", "v1 and v2", ...
}

// findControlGroups looks, and changes nothing. Writable tells whether this process may write a path.
func findControlGroups(system fs.FS, writable func(string) bool) controlGroups {
	var g controlGroups
	mounts, err := device.Mounts(system)
	own := ownGroups(system)
	if err != nil {
		why := err.Error()
		return controlGroups{controlBase{why: why}, controlBase{why: why}, controlBase{why: why}, "unknown"}
	}
	var seen []string
	g.track.why, g.cpu.why, g.memory.why = "no version 2 hierarchy is mounted", "no cpu controller is mounted",
		"no memory controller is mounted"
	for _, m := range mounts {
		switch m.FSType {
		case "cgroup2":
			seen = append(seen, "v2")
			g.useV2(system, m, own[""], writable)
		case "cgroup":
			if !slices.Contains(seen, "v1") {
				seen = append(seen, "v1")
			}
			for name, b := range map[string]*controlBase{"cpu": &g.cpu, "memory": &g.memory} {
				if slices.Contains(m.Super, name) && b.dir == "" {
					*b = v1Base(m, own[name], name, writable)
				}
			}
		}
	}
	slices.Sort(seen)
	g.versions = strings.Join(seen, " and ")
	return g
}

// useV2 walks from this process's own group up to the mount, to the first group below which we may make others; for
// limits the controllers must be available there, and the group must be the root or pass them on already, since a
// group with processes of its own may not begin to.
func (g *controlGroups) useV2(system fs.FS, m device.Mount, own string, writable func(string) bool) {
	g.track.why = fmt.Sprintf("user id %d may not write control groups at or above %s", os.Getuid(),
		path.Join(m.Point, own))
	for dir := groupDir(m, own); ; dir = path.Dir(dir) {
		if writable(dir) && writable(path.Join(dir, "cgroup.procs")) {
			if g.track.dir == "" {
				g.track = controlBase{dir: dir, v2: true}
			}
			passed := words(system, path.Join(dir, "cgroup.subtree_control"))
			if dir == m.Point && writable(path.Join(dir, "cgroup.subtree_control")) {
				passed = words(system, path.Join(dir, "cgroup.controllers"))
			}
			cpu, memory := slices.Contains(passed, "cpu"), slices.Contains(passed, "memory")
			if cpu || memory {
				g.track.dir = dir // one tree for all
				if cpu {
					g.cpu = g.track
				}
				if memory {
					g.memory = g.track
				}
				return
			}
		}
		if dir == m.Point || dir == "/" {
			return
		}
	}
}

func v1Base(m device.Mount, own, controller string, writable func(string) bool) controlBase {
	for _, dir := range []string{groupDir(m, own), m.Point} {
		if writable(dir) && writable(path.Join(dir, "cgroup.procs")) {
			return controlBase{dir: dir}
		}
	}
	return controlBase{why: fmt.Sprintf("user id %d may not write the %s hierarchy at %s", os.Getuid(), controller,
		m.Point)}
}

// groupDir is the path of a group below a mount; a group outside the mount's part of the tree counts as its root.
func groupDir(m device.Mount, own string) string {
	rel, err := filepath.Rel(m.Root, own)
	if err != nil || !filepath.IsLocal(rel) || strings.Contains(own, "..") {
		return m.Point
	}
	return path.Join(m.Point, rel)
}

// ownGroups maps controllers ("" for version 2) to this process's group.
func ownGroups(system fs.FS) map[string]string {
	own := map[string]string{"": "/"}
	data, _ := fs.ReadFile(system, "proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			own[name] = parts[2]
		}
	}
	return own
}

func words(system fs.FS, absolute string) []string {
	data, _ := fs.ReadFile(system, strings.TrimPrefix(absolute, "/"))
	return strings.Fields(string(data))
}

// groupSet is the control groups of one run.
type groupSet struct {
	controlGroups
	name string // of the run's group below each base
	log  func(string, ...any)
}

// bases are the distinct folders that hold the run's group, parents before use.
func (g *groupSet) bases() []string {
	var dirs []string
	for _, b := range []controlBase{g.track, g.cpu, g.memory} {
		if b.dir != "" && !slices.Contains(dirs, path.Join(b.dir, g.name)) {
			dirs = append(dirs, path.Join(b.dir, g.name))
		}
	}
	return dirs
}

// setUp makes the run's groups. What fails is no error: it is logged, and that use is given up.
func (g *groupSet) setUp() {
	for _, b := range []*controlBase{&g.track, &g.cpu, &g.memory} {
		if b.dir == "" {
			continue
		}
		if err := mkdirAll(path.Join(b.dir, g.name)); err != nil {
			*b = controlBase{why: err.Error()}
			g.log("control groups are not used: %v", err)
		}
	}
	for controller, b := range map[string]*controlBase{"cpu": &g.cpu, "memory": &g.memory} {
		if b.dir == "" || !b.v2 {
			continue
		}
		for _, dir := range []string{b.dir, path.Join(b.dir, g.name)} {
			if err := put(path.Join(dir, "cgroup.subtree_control"), "+"+controller); err != nil {
				*b = controlBase{why: err.Error()}
				g.log("%s limits are not enforced: %v", controller, err)
				break
			}
		}
	}
}

// boot makes the group of a VM that is powered on; key differs for every boot. It returns what could not be enforced.
func (g *groupSet) boot(key string, cpus int, memoryBytes int64) error {
	var problems []error
	for _, base := range g.bases() {
		problems = append(problems, mkdirAll(path.Join(base, key)))
	}
	limit := func(b controlBase, v1, v2, value string) {
		file := v1
		if b.v2 {
			file = v2
		}
		if b.dir != "" {
			problems = append(problems, put(path.Join(b.dir, g.name, key, file), value))
		}
	}
	const periodMicros = 100_000
	if quota := strconv.Itoa(cpus * periodMicros); cpus > 0 && g.cpu.v2 {
		limit(g.cpu, "", "cpu.max", quota+" "+strconv.Itoa(periodMicros))
	} else if cpus > 0 {
		limit(g.cpu, "cpu.cfs_quota_us", "", quota)
	}
	if memoryBytes > 0 {
		limit(g.memory, "memory.limit_in_bytes", "memory.max", strconv.FormatInt(memoryBytes, 10))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("limits of %d CPUs and %s: %w", cpus, unit.Bytes(memoryBytes), err)
	}
	return nil
}

// enter puts a process, which must not have children yet, into its VM's groups and into one of its own for tracking.
func (g *groupSet) enter(key, unitKey string, pid int) error {
	var problems []error
	for _, base := range g.bases() {
		dir := path.Join(base, key)
		if g.track.dir != "" && base == path.Join(g.track.dir, g.name) {
			dir = path.Join(dir, unitKey)
			problems = append(problems, mkdirAll(dir))
		}
		problems = append(problems, put(path.Join(dir, "cgroup.procs"), strconv.Itoa(pid)))
	}
	return errors.Join(problems...)
}

// tracked is the folder of a VM's (or command's) tracking group, "" when processes are not tracked by groups.
func (g *groupSet) tracked(keys ...string) string {
	if g.track.dir == "" {
		return ""
	}
	return path.Join(append([]string{g.track.dir, g.name}, keys...)...)
}

// counting is the file that counts which processes of a VM were killed for want of memory: those of all of the machine
// where the VM has no limit of its own.
func (g *groupSet) counting(key string) string {
	switch {
	case g.memory.dir == "":
		return procfs.VMStat
	case g.memory.v2:
		return path.Join(g.memory.dir, g.name, key, "memory.events")
	}
	return path.Join(g.memory.dir, g.name, key, "memory.oom_control")
}

// remove removes a VM's groups in all hierarchies.
func (g *groupSet) remove(key string) error {
	var problems []error
	for _, base := range g.bases() {
		problems = append(problems, removeGroup(path.Join(base, key)))
	}
	return errors.Join(problems...)
}

// killGroup ends every process below a tracking group; where the kernel is too old for cgroup.kill (before 5.14), the
// caller's repeated kills of members do.
func killGroup(dir string) {
	_ = put(path.Join(dir, "cgroup.kill"), "1")
}

// members lists the live processes of a group and the groups below it.
func members(dir string) ([]process, error) {
	var found []process
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		f, err := os.Open(path.Join(p, "cgroup.procs"))
		if err != nil {
			return ignoreAbsent(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			id, err := strconv.Atoi(s.Text())
			if err != nil {
				continue
			}
			if proc, ok := readProcess(id); ok {
				found = append(found, proc)
			}
		}
		return nil
	})
	return found, err
}

// groupCPU is the CPU time that a tracking group and those below it have used, ended processes included.
func groupCPU(dir string) (user, system time.Duration, ok bool) {
	if dir == "" {
		return 0, 0, false
	}
	data, err := os.ReadFile(path.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, 0, false
	}
	return parseCPUStat(string(data))
}

func parseCPUStat(text string) (user, system time.Duration, ok bool) {
	found := 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "user_usec":
			user, found = time.Duration(n)*time.Microsecond, found+1
		case "system_usec":
			system, found = time.Duration(n)*time.Microsecond, found+1
		}
	}
	return user, system, found == 2
}

// removeGroup removes a group and those below it. The kernel keeps a group busy for a moment after its last process.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreAbsent(err)
	}
	var problems []error
	for _, e := range entries {
		if e.IsDir() {
			problems = append(problems, removeGroup(path.Join(dir, e.Name())))
		}
	}
	for wait := time.Millisecond; ; wait *= 2 {
		err = unix.Rmdir(dir)
		if !errors.Is(err, unix.EBUSY) || wait > time.Second {
			break
		}
		time.Sleep(wait) // the kernel's pace, not the run's
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		problems = append(problems, fmt.Errorf("control group %s: remove: %w", dir, err))
	}
	return errors.Join(problems...)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

func mkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("control group %s: %w", dir, err)
	}
	return nil
}

// put writes a control file.
func put(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("control group: %s: write %q: %w", file, value, err)
	}
	return nil
}

// readControl reads a control file's lines.
func readControl(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n"), nil
}
