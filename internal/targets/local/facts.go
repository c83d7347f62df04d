//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/storage/device"
	"plimsoll/result"
	"plimsoll/unit"
)

// Check implements target.Target. It reads /proc, /sys and /etc, and tries what the file system can do on files that
// have no name and vanish when closed.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	if err := ctx.Err(); err != nil {
		return target.Facts{}, fmt.Errorf("check: %w", err)
	}
	var objections []error
	object := func(err error) {
		if err != nil {
			objections = append(objections, fmt.Errorf("check: %w", err))
		}
	}
	f := target.Facts{Target: "local", ClusterName: "this host", FreeBytes: -1, FreeMemory: -1,
		LargestFile: limit(unix.RLIMIT_FSIZE), OpenFiles: limit(unix.RLIMIT_NOFILE), Metrics: metricNames,
		VMMemoryBytes: sandboxMemory, OneMachine: true, EmptyTemplates: true}
	cpu, err := readCPU(p.system)
	object(err)
	memory, err := readMemory(p.system)
	object(err)
	if err == nil {
		f.FreeMemory = max(0, memory.available-p.reserve)
	}
	dir, err := existing(p.dir)
	object(err)
	if err == nil {
		if err := unix.Access(dir, unix.W_OK); err != nil {
			object(explain(err, dir, 0))
		}
		free, err := regular.Free(dir)
		object(err)
		if err == nil {
			f.FreeBytes = max(0, free-p.reserve)
		}
	}
	if info, err := os.Stat("/bin/sh"); err != nil || info.IsDir() {
		object(errors.New("/bin/sh: is needed to start commands, and is not there"))
	}
	for i := range p.nodes {
		f.Nodes = append(f.Nodes, target.Node{Index: i, Name: fmt.Sprintf("node-%d", i), Cores: cpu.count,
			MemoryBytes: memory.total, Power: "simulated"})
	}
	groups := p.controlGroups()
	var around wall
	if dir != "" {
		if around, err = findWall(dir, newMark()); errors.Is(err, unix.EMFILE) {
			err = explain(err, "/bin/sh", 0)
		}
		object(err)
	}
	sts := []storage{readStorage(p.system, dir)}
	for i, more := range p.disks {
		if i == 0 {
			continue
		}
		dir, err := existing(more)
		object(err)
		st := readStorage(p.system, dir)
		st.group = fmt.Sprintf("%s %d", storageGroup, i+1)
		sts = append(sts, st)
	}
	if free, err := p.freeForDisks(); len(sts) > 1 {
		object(err)
		f.FreeBytes = max(0, free)
	}
	if p.isRaw() {
		keep, err := filepath.Abs(p.dir)
		object(err)
		f.DataDisks, err = p.checkDevices(ctx, keep)
		object(err)
		if given := f.DataDisks; len(p.deals) > 0 && len(given) == len(p.blocks) {
			f.DataDisks, f.Dealt = nil, true
			for _, k := range p.deals {
				f.DataDisks = append(f.DataDisks, given[k])
			}
		}
		f.FreeBytes, sts = -1, nil
		for i, name := range p.blocks {
			sts = append(sts, p.rawStorage(i, name))
		}
	}
	st := sts[0]
	if cpu.megahertz == 0 { // some processors do not tell their clock
		f.Metrics = slices.DeleteFunc(slices.Clone(metricNames), func(n string) bool {
			return strings.HasSuffix(n, ".Megahertz")
		})
	}
	f.Capabilities, f.Missing = p.capabilities(groups, st, around)
	if p.isRaw() {
		rawCapabilities(sts, f.Capabilities, f.Missing)
	}
	f.Environment = p.environment(cpu, memory, groups, sts, around)
	if p.reading {
		l := factList(f.Environment)
		for i, name := range p.blocks {
			p.sampledFact(ctx, name, &l, sts[i].group)
		}
		f.Environment = l
	}
	f.Notes = p.notes(groups, sts, around)
	return f, errors.Join(objections...)
}

// sandboxMemory bounds the load generator of one sandbox: twice what fio 3.33 with six jobs and
// json+ output was seen to take (30 MiB).
const sandboxMemory = 64 << 20

// existing is the nearest folder at or above path that exists, absolute and without symbolic links.
func existing(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w: the folder that this was started in is gone: cd to another", path, err)
	}
	path = at
	for {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil {
			info, err := os.Stat(resolved)
			if err == nil && !info.IsDir() {
				return "", fmt.Errorf("dir %q: is not a folder", path)
			}
			return resolved, err
		}
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return "", explain(err, path, 0)
		}
		path = filepath.Dir(path)
	}
}

func (p *place) capabilities(groups controlGroups, st storage, around wall) (
	can, cannot map[target.Capability]string) {
	copies := "copies of the disk files"
	if st.reflink == "supported" {
		copies = "copies of the disk files that share blocks (reflink)"
	}
	how := "ends every process that carries the run's mark"
	if groups.track.dir != "" {
		how = "ends every process in the control groups"
	}
	can = map[target.Capability]string{
		target.VMCreation:        "folders with a file per data disk",
		target.VMPowerControl:    "processes are let in, or ended all at once",
		target.VMClones:          "copies of the files",
		target.VMMoves:           "sandboxes count for the other node",
		target.NodePowerControl:  "simulated: " + how + " of the node's sandboxes at once",
		target.NodeShutdown:      "simulated: as power-off, sandboxes have no operating system to ask",
		target.Snapshots:         copies + ", made while the VMs' processes stand still",
		target.LiveMigration:     "simulated: processes go on and count for the other node",
		target.AvailabilityRules: "recorded: nothing here restarts or moves VMs on its own",
		target.Services:          "processes of the sandbox, which end with it",
		target.DiskPurge:         "the blocks of the disk's file are given back to the file system and reserved anew",
		target.ClusterMetrics:    "CPU time and resident memory of the sandboxes' processes; no network counters, for the nodes share the host's network",
	}
	cannot = map[target.Capability]string{
		target.PlaybookHosts:    "sandboxes have no SSH server and no address of their own",
		target.VMExporters:      "sandboxes have no address that the machine itself reaches",
		target.StorageMigration: "there is one store: the file system of the run folder",
		target.NodeFailover:     "nothing here restarts VMs on its own",
		target.WriteLogDrain:    "the file system has no operations log to report on",
		target.FolderImport:     "sandboxes have no system disk, so there is no image to import",
		target.DiskTrim:         "data disks are files here, and load generators trim block devices only",
		target.PlatformChecks:   "this host is managed by neither vCenter nor Prism",
		target.PlainJobs:        "nothing lies between a sandbox and this machine's file system",
	}
	if why := around.noNetwork(); why == "" {
		can[target.PeerNetwork] = "a loopback device of the run's own, with an address for each sandbox; only declared ports"
	} else {
		cannot[target.PeerNetwork] = why
	}
	for _, c := range []target.Capability{target.GuestCommands, target.ControllerCommands} {
		if p.commands {
			can[c] = "as user " + userName() + " on this host (--allow-host-commands)"
		} else {
			cannot[c] = "runs commands of the scenario's author on this host: allow it with --allow-host-commands"
		}
	}
	return can, cannot
}

// rawCapabilities are what changes with data disks that are devices.
func rawCapabilities(sts []storage, can, cannot map[target.Capability]string) {
	delete(can, target.Snapshots)
	cannot[target.Snapshots] = "data disks are whole devices here, which are not copied"
	for _, st := range sts {
		if st.raw == nil || st.raw.Queue.DiscardMaxBytes == 0 {
			why := st.dir + " cannot discard"
			delete(can, target.DiskPurge)
			cannot[target.DiskTrim], cannot[target.DiskPurge] = why, why
			return
		}
	}
	delete(cannot, target.DiskTrim)
	can[target.DiskTrim] = "by the devices themselves"
	can[target.DiskPurge] = "the devices zero all their blocks themselves"
}

func userName() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return fmt.Sprintf("id %d", os.Getuid())
}

func (p *place) notes(groups controlGroups, sts []storage, around wall) []string {
	notes := []string{fmt.Sprintf("All %d nodes share this host's CPUs, memory and disk: results show how its parts "+
		"disturb each other, not how a cluster scales.", p.nodes)}
	if p.nodes == 1 {
		notes[0] = "The node is this host, with whatever else runs here: results are of it, not of a cluster."
	}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if groups.cpu.dir == "" {
		note("CPU limits of VMs are not enforced: %s.", groups.cpu.why)
	}
	if groups.memory.dir == "" {
		note("Memory limits of VMs are not enforced: %s.", groups.memory.why)
	}
	if groups.track.dir == "" {
		note("Processes are found by a mark in their environment, not by control groups (%s): one that clears its "+
			"environment and leaves its parent can escape a power-off.", groups.track.why)
	}
	if text := around.note(); text != "" {
		notes = append(notes, text)
	}
	if p.isRaw() {
		rawNotes(sts, p.reading, note)
		return notes
	}
	var where []string
	for _, st := range sts {
		text := st.dir + " (" + st.fstype
		if st.device != "" && len(sts) > 1 {
			text += " on " + st.device
		}
		where = append(where, text+")")
	}
	switch {
	case len(p.deals) > 0 && len(sts) > 1:
		note("The data disks, and so the load, are in %s.", strings.Join(where, ", "))
	case len(sts) > 1:
		note("The data disks, and so the load, are dealt out in turn over %d folders, VM by VM: the first disk of the "+
			"first VM into the first folder, the next disk into the next, and so on around: %s.", len(sts),
			strings.Join(where, ", "))
	case len(p.disks) > 0:
		note("The data disks, and so the load, are in %s.", where[0])
	}
	for _, together := range onOneFileSystem(p.disks) {
		if len(together) > 1 {
			note("%s lie on one file system: they share its device and its space, and disks in one disturb those in "+
				"the other.", strings.Join(together, " and "))
		}
	}
	for _, st := range sts {
		st.notes(note)
	}
	return notes
}

// notes are what a user should know of a file system before disks are put on it.
func (st storage) notes(note func(string, ...any)) {
	if st.memory() {
		note("Data disks would be in memory: %s is a %s. Results say nothing about a disk; use --target-opt dir=PATH "+
			"and a run folder elsewhere.", st.dir, st.fstype)
	}
	if st.preallocate == "not supported" {
		note("Data disks are sparse: the file system (%s) cannot preallocate.", st.fstype)
	}
	if st.direct == "not supported" {
		note("Direct I/O is not available on %s (%s): jobs with direct=1 will fail or go through the page cache.",
			st.dir, st.fstype)
	}
}

// onOneFileSystem puts those of the folders together that lie on the same one, in the order given.
func onOneFileSystem(dirs []string) (out [][]string) {
	var of []uint64
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil { // said where it is looked at
			out, of = append(out, []string{dir}), append(of, 0)
			continue
		}
		if i := slices.Index(of, st.Dev); i >= 0 {
			out[i] = append(out[i], dir)
			continue
		}
		out, of = append(out, []string{dir}), append(of, st.Dev)
	}
	return out
}

// freeForDisks is how many bytes of disks dealt out in turn the fullest file system leaves room for.
func (p *place) freeForDisks() (int64, error) {
	var least int64 = -1
	for _, together := range onOneFileSystem(p.disks) {
		free, err := regular.Free(together[0])
		if err != nil {
			return 0, err
		}
		const all = 1 << 40
		part := p.share(all, p.disks, together)
		if part == 0 {
			continue
		}
		free = int64(float64(free-p.reserve) * all / float64(part))
		if least < 0 || free < least {
			least = free
		}
	}
	return max(least, 0), nil
}

// factList collects provenance; a fact without a value keeps its reason.
type factList []result.Fact

// add returns the fact, so that what it is can be said too; it holds until the next one is added.
func (l *factList) add(group, name, value, missing string) *result.Fact {
	if value != "" {
		missing = ""
	} else if missing == "" {
		missing = "not available"
	}
	*l = append(*l, result.Fact{Group: group, Name: name, Value: value, Missing: missing})
	return &(*l)[len(*l)-1]
}

// file adds the content of a small file, in one line.
func (l *factList) file(system fs.FS, group, name, file string) *result.Fact {
	data, err := fs.ReadFile(system, file)
	if err != nil {
		return l.add(group, name, "", "/"+file+": "+device.Reason(err))
	}
	return l.add(group, name, strings.Join(strings.Fields(string(data)), " "), "/"+file+" is empty")
}

func (p *place) environment(cpu cpuFacts, memory memoryFacts, groups controlGroups, sts []storage,
	around wall) []result.Fact {
	var l factList
	hostFacts(&l, p.system)
	cpu.facts(&l, p.system)
	memory.facts(&l, p.system)
	groupFacts(&l, groups)
	around.facts(&l)
	for _, st := range sts {
		st.facts(&l, p.system)
		linkFacts(&l, p.system, st)
		limitFacts(&l, p.system, st)
	}
	networkFacts(&l, p.system, sts[0])
	clockFacts(&l, p.system)
	return l
}

// limit returns what ulimit allows of a resource, 0 for no limit.
func limit(resource int) int64 {
	var lim unix.Rlimit
	if err := unix.Getrlimit(resource, &lim); err != nil || lim.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return int64(min(lim.Cur, math.MaxInt64))
}

func groupFacts(l *factList, g controlGroups) {
	l.add("limits", "control groups", g.versions, "none is mounted")
	for _, b := range []struct {
		name string
		base controlBase
	}{{"processes tracked in", g.track}, {"CPU limits in", g.cpu}, {"memory limits in", g.memory}} {
		f := l.add("limits", b.name, b.base.dir, b.base.why)
		f.Across, f.Identifies = result.Volatile, result.Path // it may be a user's or a service's
	}
	for _, f := range []struct {
		name     string
		resource int
	}{{"open files", unix.RLIMIT_NOFILE}, {"file size", unix.RLIMIT_FSIZE}} {
		var lim unix.Rlimit
		err := unix.Getrlimit(f.resource, &lim)
		switch {
		case err != nil:
			l.add("limits", f.name, "", err.Error())
		case lim.Cur == unix.RLIM_INFINITY:
			l.add("limits", f.name, "none", "")
		default:
			l.add("limits", f.name, strconv.FormatUint(lim.Cur, 10), "")
		}
	}
}

func hostFacts(l *factList, system fs.FS) {
	l.add("host", "operating system", osName(system), "/etc/os-release: no PRETTY_NAME")
	l.file(system, "host", "kernel", "proc/sys/kernel/osrelease").Across = result.MustAgree
	l.file(system, "host", "kernel build", "proc/sys/kernel/version")
	l.file(system, "host", "kernel command line", "proc/cmdline").Identifies = result.CommandLine
	l.file(system, "host", "name", "proc/sys/kernel/hostname").Identifies = result.Host
	boot := l.file(system, "host", "boot", "proc/sys/kernel/random/boot_id")
	boot.Across, boot.Identifies = result.Volatile, result.Serial
	l.file(system, "host", "maker", "sys/class/dmi/id/sys_vendor")
	l.file(system, "host", "product", "sys/class/dmi/id/product_name")
	l.file(system, "host", "firmware", "sys/class/dmi/id/bios_version").Across = result.MustAgree
	l.add("host", "virtualisation", virtualisation(system), "/proc/cpuinfo: no flags that would tell")
	user := l.add("host", "user", userName(), "")
	user.Across, user.Identifies = result.Volatile, result.User
	l.file(system, "host", "load average at check", "proc/loadavg").Across = result.Volatile
}

func osName(system fs.FS) string {
	data, _ := fs.ReadFile(system, "etc/os-release")
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// virtualisation is a hint: what the CPU flags, the firmware and usual container files say.
func virtualisation(system fs.FS) string {
	var parts []string
	data, _ := fs.ReadFile(system, "proc/cpuinfo")
	flags := ""
	for line := range strings.Lines(string(data)) {
		if name, v, ok := strings.Cut(line, ":"); ok &&
			(strings.TrimSpace(name) == "flags" || strings.TrimSpace(name) == "Features") {
			flags = " " + strings.TrimSpace(v) + " "
			break
		}
	}
	if strings.Contains(flags, " hypervisor ") {
		parts = append(parts, "inside a virtual machine")
	}
	for _, file := range []string{".dockerenv", "run/.containerenv", "run/systemd/container"} {
		if _, err := fs.Stat(system, file); err == nil {
			parts = append(parts, "inside a container")
			break
		}
	}
	if len(parts) == 0 && flags != "" {
		return "none seen"
	}
	return strings.Join(parts, ", ")
}

// storageGroup is the group of the facts of the file system that holds the disks.
const storageGroup = "storage"

// storage holds what is known of the file system that will hold the disks.
type storage struct {
	group                       string // of its facts: "storage", and "storage 2" of a second folder
	dir, fstype, source, device string // device: name below /sys/block, "" unknown
	options                     string
	counted, uncounted          string // device whose counters see the disks, or why there is none
	free, total                 int64  // -1 unknown
	problem                     string
	preallocate, direct         string // "supported", "not supported" or "" with why in probe
	reflink, punch              string
	probe                       string
	offset                      string         // alignment wanted by direct I/O
	raw                         *device.Device // that is the disk itself, nil for folders
}

// memory reports whether the file system has no medium.
func (s storage) memory() bool { return s.fstype == "tmpfs" || s.fstype == "ramfs" }

func (s storage) facts(l *factList, system fs.FS) {
	if s.raw != nil || s.free < 0 && s.total < 0 && s.fstype == "" && s.probe == "" {
		s.rawFacts(l)
		s.deviceFacts(l, system)
		return
	}
	add := func(name, value, missing string) *result.Fact { return l.add(s.group, name, value, missing) }
	folder := add("folder", s.dir, s.problem)
	folder.Across, folder.Identifies = result.Volatile, result.Path
	add("file system", s.fstype, s.problem)
	source := add("source", s.source, s.problem)
	if strings.Contains(s.source, ":") { // a server and its folder, not a device
		source.Identifies = result.Path
	}
	add("mount options", s.options, s.problem)
	if s.memory() {
		add("media", "none: the files are in memory", "").Kind = result.StorageMedia // Number is 0
	}
	space := func(name string, kind result.FactKind, bytes int64) *result.Fact {
		if bytes < 0 {
			return add(name, "", s.problem)
		}
		f := add(name, unit.Bytes(bytes).String(), "")
		f.Kind, f.Number = kind, float64(bytes)
		return f
	}
	space("size", result.StorageSize, s.total)
	space("free", result.StorageFree, s.free).Across = result.Volatile
	used := ""
	if s.total > 0 && s.free >= 0 {
		used = fmt.Sprintf("%.1f %%", 100*float64(s.total-s.free)/float64(s.total))
	}
	add("used", used, s.problem).Across = result.Volatile
	add("preallocation", s.preallocate, s.probe)
	add("reflink", s.reflink, s.probe)
	add("hole punching", s.punch, s.probe)
	add("direct I/O", s.direct, s.probe)
	add("direct I/O alignment", s.offset, "not reported by statx (Linux 6.1 and later do)")
	if !s.memory() {
		add("page cache", "used by buffered I/O; jobs with direct=1 bypass it", "")
	}
	s.deviceFacts(l, system)
}

// deviceFacts are those of the block device below.
func (s storage) deviceFacts(l *factList, system fs.FS) {
	add := func(name, value, missing string) *result.Fact { return l.add(s.group, name, value, missing) }
	why := s.uncounted
	if s.problem != "" {
		why = s.problem
	}
	counted := add("device counters", s.counted, why)
	counted.Kind = result.DeviceCounters
	if s.counted != "" {
		counted.Number = 1
	}
	if s.device == "" {
		why := "no block device found for " + s.source
		for _, name := range []string{"device", "device model", "scheduler", "rotational", "queue requests",
			"write cache"} {
			add(name, "", why)
		}
		return
	}
	add("device", s.device, "")
	block := path.Join("sys/block", s.device)
	for _, f := range [][2]string{{"device model", "device/model"}, {"device vendor", "device/vendor"},
		{"device firmware", "device/firmware_rev"},
		{"rotational", "queue/rotational"}, {"queue requests", "queue/nr_requests"},
		{"largest request (KiB)", "queue/max_sectors_kb"},
		{"logical block", "queue/logical_block_size"}, {"physical block", "queue/physical_block_size"},
		{"read ahead (KiB)", "queue/read_ahead_kb"}, {"write cache", "queue/write_cache"},
		{"discard granularity", "queue/discard_granularity"}} {
		fact := l.file(system, s.group, f[0], path.Join(block, f[1]))
		if f[0] == "device firmware" {
			fact.Across = result.MustAgree
		}
	}
	scheduler, why := device.Selected(system, path.Join(block, "queue/scheduler"))
	add("scheduler", scheduler, why)
}
