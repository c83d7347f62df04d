package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/storage/device"
)

// look is one look at a device.
type look struct {
	ctx    context.Context
	system fs.FS
	device device.Device
	around []related
	loops  []device.Device // all that are attached
	list   []Objection
}

// relation is how another device stands to the one that is looked at.
type relation string

const (
	itself    relation = "it"
	partition relation = "its partition"
	holder    relation = "a device made of it"
	disk      relation = "the disk that it is a partition of"
	sibling   relation = "another partition of its disk"
	under     relation = "a device that it is made of"
	base      relation = "the disk of a device that it is made of"
	beside    relation = "a device that is made of the same"
)

type related struct {
	device.Device
	relation
}

func (l *look) object(k Kind, about, do, format string, args ...any) {
	o := Objection{k, about, fmt.Sprintf(format, args...), do}
	if !slices.Contains(l.list, o) {
		l.list = append(l.list, o)
	}
}

// find resolves a path to a device, or objects.
func find(system fs.FS, path string) (device.Device, *Objection) {
	const do = "give a device's node, like /dev/sdb or a link in /dev/disk/by-id"
	p, err := device.Find(system, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return device.Device{}, &Objection{Gone, path, text(err, path), do}
	case err != nil:
		return device.Device{}, &Objection{NotBlock, path, text(err, path), do}
	case p.Mount != nil:
		return device.Device{}, &Objection{NotBlock, path, "is a file or folder on " + p.Device +
			", not a block device", do}
	}
	d, err := device.Read(system, p.Device)
	if err != nil {
		return d, &Objection{Gone, path, text(err, path), do}
	}
	return d, nil
}

// text is an error without the path that the objection names.
func text(err error, path string) string { return strings.TrimPrefix(err.Error(), path+": ") }

// use looks at who uses the device or what hangs together with it. With openers it asks every process what it has
// open, which a run that has started its own tools cannot.
func (l *look) use(keep []string, openers bool) error {
	d := l.device
	if err := l.gather(); err != nil {
		return err
	}
	if d.SizeBytes == 0 {
		l.object(Gone, d.Node, "insert a medium, or attach a file", "has no size: nothing is in it")
	}
	if d.ReadOnly {
		l.object(ReadOnly, d.Node, "make it writable (blockdev --setrw, losetup without -r, the switch of the card)",
			"is read-only")
	}
	if d.Identity.Phrase == "" {
		l.object(Nameless, d.Node, "give it a serial number (a virtual disk: serial= of the hypervisor) and try again",
			"cannot be told from other devices: %s", d.Unknown["identity"])
	}
	if len(d.Partitions) > 0 {
		var names []string
		for _, p := range d.Partitions {
			names = append(names, p.Name)
		}
		l.object(Partitioned, d.Node, "give one of them, or remove the table by hand: wipefs -a "+d.Node,
			"is partitioned: %s", strings.Join(names, ", "))
	}
	l.twins()
	l.holders()
	l.swaps()
	l.files()
	l.kernel()
	l.folders(keep)
	if err := l.mounts(); err != nil {
		return err
	}
	if openers {
		return l.openers()
	}
	return nil
}

// gather finds all devices that hang together with the one: partitions, what is made of them, the disk, siblings; what
// it is made of itself, down to the disks and files, and what else is made of those.
func (l *look) gather() error {
	all, err := fs.Glob(l.system, "sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	for _, f := range all {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if loop, err := l.read(strings.Split(f, "/")[2]); err == nil && loop.Backing != "" {
			l.loops = append(l.loops, loop)
		}
	}
	if i := slices.IndexFunc(l.loops, func(o device.Device) bool { return o.Name == l.device.Name }); i >= 0 {
		l.device = l.loops[i]
	}
	l.around = []related{{l.device, itself}}
	l.above(l.device, holder)
	if l.device.Disk != nil {
		if whole, ok := l.add(l.device.Disk.Name, disk); ok {
			l.above(whole, sibling)
		}
	}
	l.below(l.device)
	return nil
}

// read reads a device; of a loop it asks the kernel which file it is made of, as names may lead elsewhere by now.
func (l *look) read(name string) (device.Device, error) {
	if i := slices.IndexFunc(l.loops, func(o device.Device) bool { return o.Name == name }); i >= 0 {
		return l.loops[i], nil
	}
	d, err := device.Read(l.system, name)
	if err != nil || d.Kind != device.Loop {
		return d, err
	}
	f, err := l.system.Open(strings.TrimPrefix(d.Node, "/"))
	if err != nil {
		return d, nil
	}
	defer f.Close()
	file, on, ok := attached(f)
	if !ok {
		return d, nil
	}
	if d.BackingDevice, d.BackingInode = file.Device, file.Inode; on != "" && len(d.Members) == 0 {
		if m, err := device.Read(l.system, device.OfNumber(l.system, on)); err == nil {
			d.Members = []device.Device{m}
		}
	}
	return d, nil
}

// add adds a device, unless it is there already or gone.
func (l *look) add(name string, r relation) (device.Device, bool) {
	if slices.ContainsFunc(l.around, func(o related) bool { return o.Name == name }) {
		return device.Device{}, false
	}
	d, err := l.read(name)
	if err != nil {
		return d, false
	}
	l.around = append(l.around, related{d, r})
	return d, true
}

// above adds what is made of a device.
func (l *look) above(d device.Device, r relation) {
	for _, name := range d.Holders {
		if h, ok := l.add(name, r); ok {
			l.above(h, r)
		}
	}
	for _, loop := range l.loopsOn(d) {
		if h, ok := l.add(loop.Name, r); ok {
			l.above(h, r)
		}
	}
	for _, p := range d.Partitions {
		part := r
		if r == holder && d.Name == l.device.Name {
			part = partition
		}
		if p, ok := l.add(p.Name, part); ok {
			l.above(p, r)
		}
	}
}

// loopsOn are the loops that are made of a device, or, of a loop, of the same file.
func (l *look) loopsOn(d device.Device) (list []device.Device) {
	for _, loop := range l.loops {
		on := slices.ContainsFunc(loop.Members, func(m device.Device) bool { return m.Name == d.Name })
		if loop.Name != d.Name && (on || sameFile(d, loop)) {
			list = append(list, loop)
		}
	}
	return list
}

// sameFile reports whether two loops are made of one file. Where the file is not known, its name must do.
func sameFile(a, b device.Device) bool {
	switch {
	case a.Backing == "" || b.Backing == "" || len(a.Members) > 0 || len(b.Members) > 0:
		return false
	case a.BackingInode == 0 || b.BackingInode == 0:
		return a.Backing == b.Backing
	}
	return a.BackingFile() == b.BackingFile()
}

// below adds what a device is made of, and what is made of that beside it.
func (l *look) below(d device.Device) {
	for _, m := range d.Members {
		if _, ok := l.add(m.Name, under); !ok {
			continue
		}
		if m.Disk != nil {
			if whole, ok := l.add(m.Disk.Name, base); ok {
				l.beside(whole, d)
			}
		}
		l.beside(m, d)
		for _, p := range m.Partitions {
			if p, ok := l.add(p.Name, beside); ok {
				l.above(p, beside)
			}
		}
		l.below(m)
	}
}

// beside objects to what else than d is made of m: nobody keeps the two apart.
func (l *look) beside(m, d device.Device) {
	for _, name := range m.Holders {
		h, ok := l.add(name, beside)
		if !ok || apart(h, d) {
			l.around = slices.DeleteFunc(l.around, func(o related) bool { return ok && o.Name == h.Name })
			continue
		}
		l.object(Held, m.Node, takeApart, "%s is made of it, and so is %s", h.Node, l.device.Node)
		l.above(h, beside)
	}
	for _, loop := range l.loopsOn(m) {
		if h, ok := l.add(loop.Name, beside); ok {
			l.object(BacksLoop, m.Node, "losetup -d "+h.Node, "%s is made of it, and so is %s", h.Node, l.device.Node)
			l.above(h, beside)
		}
	}
}

// apart reports whether somebody keeps two devices on the same one apart: a volume group its volumes, a table its
// partitions.
func apart(a, b device.Device) bool {
	const group = len("LVM-") + 32 // the UUID of a volume is that of its group and its own
	if a.Kind != device.Mapped || b.Kind != device.Mapped {
		return false
	}
	if strings.HasPrefix(a.UUID, "LVM-") && len(a.UUID) >= group && len(b.UUID) >= group {
		return a.UUID[:group] == b.UUID[:group]
	}
	_, ofA, _ := strings.Cut(a.UUID, "-")
	_, ofB, _ := strings.Cut(b.UUID, "-")
	return strings.HasPrefix(a.UUID, "part") && strings.HasPrefix(b.UUID, "part") && ofA == ofB
}

const takeApart = "take it apart by hand (vgchange -an, mdadm --stop, cryptsetup close, multipath -f, dmsetup remove)"

// privilege says what to do about something that may not be looked at.
func privilege() string {
	if os.Geteuid() == 0 {
		return "root may not either: look at what confines this process, such as a container's device rules"
	}
	return "run it as root"
}

// twins objects to a device that has the same identity as another one, as cheap bridges and cloned machines have it:
// consent for one would be consent for the other.
func (l *look) twins() {
	mine := l.device
	if mine.Disk != nil {
		mine = *mine.Disk
	}
	if mine.Identity.Phrase == "" || mine.Kind == device.Loop { // of one file, loops are told of elsewhere
		return
	}
	entries, _ := fs.ReadDir(l.system, "sys/block")
	for _, e := range entries {
		d, err := device.Read(l.system, e.Name())
		if err == nil && d.Name != mine.Name && d.Identity == mine.Identity {
			l.object(Nameless, mine.Node, "detach that one, or give one of them a serial number of its own",
				"%s calls itself %q as well", d.Node, d.Identity.Phrase)
		}
	}
}

// holders objects to what the kernel has made of the device.
func (l *look) holders() {
	for _, r := range l.around {
		for _, name := range r.Holders {
			what := name
			if i := slices.IndexFunc(l.around, func(o related) bool { return o.Name == name }); i >= 0 {
				h := l.around[i]
				what = fmt.Sprintf("%s (%s)", name, strings.Trim(h.Media+" "+h.Label, " "))
			}
			switch r.relation {
			case itself, partition, holder:
				l.object(Held, r.Node, takeApart, "%s is made of it", what)
			case disk, sibling:
				l.object(Sibling, r.Node, takeApart, "%s, holds up %s", r.relation, what)
			}
		}
	}
}

func (l *look) swaps() {
	for _, r := range l.around {
		switch {
		case !r.Swap:
		case r.relation == sibling:
			l.object(Sibling, r.Node, "swapoff "+r.Node, "%s, is swap space in use", r.relation)
		default:
			l.object(Swap, r.Node, "swapoff "+r.Node, "is swap space in use")
		}
	}
}

// files objects to loop devices that are made of the device, or of the same file.
func (l *look) files() {
	for _, r := range l.around {
		if r.relation == beside || r.relation == under || r.relation == base {
			continue // said by beside
		}
		for _, loop := range l.loopsOn(r.Device) {
			k := BacksLoop
			if r.relation == sibling {
				k = Sibling
			}
			switch text := "%s is made of it"; {
			case !sameFile(r.Device, loop):
				l.object(k, r.Node, "losetup -d "+loop.Node, text, loop.Node)
			case r.relation != itself: // a twin of a twin
			case r.Backing == loop.Backing:
				l.object(k, r.Node, "losetup -d "+loop.Node, "its file %s is also that of %s", r.Backing, loop.Node)
			default:
				l.object(k, r.Node, "losetup -d "+loop.Node, "its file %s is also that of %s, under the name %s",
					r.Backing, loop.Node, loop.Backing)
			}
		}
	}
}

// exports are where the kernel names the files and devices that it reads and writes by itself, which no process has
// open: what zram puts its pages on, what nbd was told that it serves, what is exported by iSCSI, NVMe and USB.
var exports = []string{
	"sys/block/zram*/backing_dev",
	"sys/block/nbd*/backend",
	"sys/kernel/config/target/core/*/*/udev_path",
	"sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path",
	"sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file",
}

// kernel objects to a device or its file that the kernel uses or exports by itself.
func (l *look) kernel() {
	for _, pattern := range exports {
		found, _ := fs.Glob(l.system, pattern)
		for _, f := range found {
			data, _ := fs.ReadFile(l.system, f)
			name := strings.TrimSpace(string(data))
			for _, r := range l.around {
				if path.IsAbs(name) && r.relation != sibling && r.Device.Is(l.system, name) {
					l.object(Held, r.Node, "end that first", "the kernel uses %s itself: /%s", name, f)
				}
			}
		}
	}
}

// folders objects to a device on which a folder lies that is needed: that of the system, and of what is being written.
func (l *look) folders(keep []string) {
	for _, dir := range append([]string{"/"}, keep...) {
		p, err := device.Find(l.system, dir)
		if err != nil {
			continue // a file system on no device of this machine
		}
		for _, r := range l.around {
			if r.Name == p.Device && r.relation != sibling {
				l.object(System, r.Node, "take another device", "%s lies on it", dir)
			}
		}
	}
}

// mounts objects to every mount in any namespace.
func (l *look) mounts() error {
	seen, told := map[string]bool{}, map[string]bool{}
	unseen := 0
	for _, pid := range append([]string{"self"}, l.processes()...) {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		ns, err := fs.ReadLink(l.system, path.Join("proc", pid, "ns/mnt"))
		if err == nil && seen[ns] {
			continue
		}
		seen[ns] = true
		list, err := device.MountsOf(l.system, pid)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || pid == "self" {
				unseen++
			}
			continue // it has ended
		}
		where := ""
		if pid != "self" {
			where = l.process(pid, " in the mount namespace of ")
		}
		for _, m := range list { // what is propagated is in many namespaces, and told of once
			if at := m.Device + " " + m.Point; !told[at] {
				told[at] = true
				l.mounted(m, where)
			}
		}
	}
	if unseen > 0 {
		l.object(Unseen, l.device.Node, privilege(), "the mounts of %d processes cannot be read", unseen)
	}
	for _, r := range l.around { // a device of a mounted btrfs that no mount names
		found, _ := fs.Glob(l.system, path.Join("sys/fs/btrfs/*/devices", r.Name))
		if len(found) > 0 && r.relation != sibling {
			l.object(Mounted, r.Node, "unmount it first", "is a device of the mounted btrfs %s",
				path.Base(path.Dir(path.Dir(found[0]))))
		}
	}
	return nil
}

func (l *look) mounted(m device.Mount, where string) {
	for _, r := range l.around {
		if !m.Uses(l.system, r.Device) {
			continue
		}
		do := "umount " + m.Point + where
		if r.relation == sibling {
			l.object(Sibling, r.Node, do+", or take a disk of its own", "%s, is mounted on %s%s", r.relation, m.Point,
				where)
		} else {
			l.object(Mounted, r.Node, do, "is mounted on %s (%s)%s", m.Point, m.FSType, where)
		}
	}
}

// processes lists the ids of processes.
func (l *look) processes() (list []string) {
	entries, _ := fs.ReadDir(l.system, "proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, e.Name())
		}
	}
	return list
}

// process names a process.
func (l *look) process(pid, before string) string {
	name, _ := fs.ReadFile(l.system, path.Join("proc", pid, "comm"))
	return before + "process " + pid + " (" + cmp.Or(strings.TrimSpace(string(name)), "?") + ")"
}

// openers objects to processes that have the device open for writing, or the file that it is made of: virtual machines
// do so with their disks, and claim them from nobody. Those that read, as udev's and smartd's do, are no harm.
func (l *look) openers() error {
	self, _ := fs.ReadLink(l.system, "proc/self")
	unseen := 0
	for _, pid := range l.processes() {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if pid == self {
			continue
		}
		dir := path.Join("proc", pid, "fd")
		entries, err := fs.ReadDir(l.system, dir)
		if errors.Is(err, fs.ErrPermission) {
			unseen++
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if to, err := fs.ReadLink(l.system, name); err == nil && strings.HasPrefix(to, "/") &&
				len(l.opened(name)) > 0 && l.writes(pid, e.Name()) {
				l.writer(pid, l.opened(name))
			}
		}
		l.mapped(pid)
	}
	if unseen > 0 {
		l.object(Unseen, l.device.Node, privilege(), "what %d processes have open cannot be read", unseen)
	}
	return nil
}

// opening is a device that is open by itself, or by the file that it is made of.
type opening struct {
	related
	what string
}

// opened are the devices that a name in /proc leads to, or to the file of which.
func (l *look) opened(name string) (list []opening) {
	info, err := fs.Stat(l.system, name)
	if err != nil {
		return nil
	}
	number, _ := device.NumberOf(info)
	file, isFile := device.FileOf(info)
	for _, r := range l.around {
		switch {
		case r.relation == sibling:
		case number != "" && info.Mode()&fs.ModeCharDevice == 0 && number == r.Number:
			list = append(list, opening{r, "it"})
		case isFile && file == r.BackingFile() && r.relation != beside && r.relation != holder:
			list = append(list, opening{r, "its file " + r.Backing})
		}
	}
	return list
}

func (l *look) writer(pid string, list []opening) {
	for _, r := range list {
		comm, _ := fs.ReadFile(l.system, path.Join("proc", pid, "comm"))
		if r.relation == under && strings.TrimSpace(string(comm)) == "mdmon" {
			continue // it keeps the members' metadata for the array
		}
		l.object(Open, r.Node, "end it first", "%s has %s open for writing", l.process(pid, ""), r.what)
	}
}

// mapped objects to a process that has the device or its file in its memory, shared and to be written: it may have
// closed what it mapped.
func (l *look) mapped(pid string) {
	maps, err := fs.ReadFile(l.system, path.Join("proc", pid, "maps"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line) // addresses, permissions, offset, device, inode, name
		if len(f) < 6 || len(f[1]) < 4 || f[1][1] != 'w' || f[1][3] != 's' || f[4] == "0" {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		name := strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0")
		l.writer(pid, l.opened(path.Join("proc", pid, "map_files", name)))
	}
}

// writes reports whether a process may write through a descriptor; proc(5) prints the flags in octal.
func (l *look) writes(pid, fd string) bool {
	data, err := fs.ReadFile(l.system, path.Join("proc", pid, "fdinfo", fd))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(data), "flags:")
	line, _, _ := strings.Cut(after, "\n")
	flags, err := strconv.ParseUint(strings.TrimSpace(line), 8, 64)
	const accessMode = 3
	return err == nil && flags&accessMode != 0
}

// signatures objects to the marks of others: on the device, its partitions, its disk, and what it is made of, which
// must be marked as what it is made of and nothing else.
func (l *look) signatures() error {
	for _, r := range l.around {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		switch r.relation {
		case itself, partition, disk:
			l.marks(r.Device, r.relation)
		case under:
			if !slices.ContainsFunc(l.around, func(o related) bool {
				return o.Kind == device.Loop && len(o.Members) > 0 && o.Members[0].Name == r.Name
			}) { // else seen through the loop, or by part
				l.marks(r.Device, r.relation)
			}
		}
		if (r.relation == itself || r.relation == under) && r.Kind == device.Loop && r.Backing != "" {
			l.part(r.Device)
		}
	}
	return nil
}

func (l *look) marks(d device.Device, r relation) {
	found, err := Signatures(l.ctx, l.system, d)
	if err != nil {
		what := privilege()
		if errors.Is(err, errSilent) {
			what = "see what the device does (dmesg)"
		}
		l.object(Unseen, d.Node, what, "its content cannot be read: %v", err)
	}
	wipe := "if nothing on it is needed, wipe it by hand: wipefs -a " + d.Node
	see := "look at what it is (wipefs " + d.Node + ")"
	for _, s := range found {
		switch {
		case r == disk && s.Family == device.PartitionTable:
		case r == under && (s.Family == device.Member || s.Family == device.PartitionTable):
		case r == disk:
			l.object(Marked, d.Node, see, "the disk itself bears the mark of %v", s)
		case r == under:
			l.object(Marked, d.Node, see, "%s is made of it, and it bears the mark of %v", l.device.Node, s)
		case s.Family == device.PartitionTable && r == itself:
			l.object(Partitioned, d.Node, wipe, "has a partition table: %v", s)
		default:
			l.object(Marked, d.Node, wipe, "bears the mark of %v", s)
		}
	}
}

// part objects to the marks of the file or device that a loop is only a part of: what is marked as a whole is in use as
// a whole. A partition table beside the part is what makes it one.
func (l *look) part(loop device.Device) {
	found, whole, err := l.content(loop)
	if whole && loop.BackingOffset == 0 && loop.BackingLimit == 0 {
		return // its content is the loop's own
	}
	if err != nil {
		l.object(Unseen, loop.Node, "attach the whole file instead", "it is a part of %s, which cannot be read: %v",
			loop.Backing, err)
	}
	for _, s := range found {
		inside := s.Offset < 0 || s.Offset >= loop.BackingOffset && s.Offset < loop.BackingOffset+loop.SizeBytes
		if s.Family != device.PartitionTable || inside {
			l.object(Marked, loop.Node, "look at what it is (wipefs "+loop.Backing+")",
				"it is a part of %s, which bears the mark of %v", loop.Backing, s)
		}
	}
}

// content probes what a loop is made of, and says whether the loop is as large.
func (l *look) content(loop device.Device) (found []device.Signature, whole bool, err error) {
	if len(loop.Members) > 0 {
		found, err = Signatures(l.ctx, l.system, loop.Members[0])
		return found, loop.Members[0].SizeBytes == loop.SizeBytes, err
	}
	info, err := fs.Stat(l.system, strings.TrimPrefix(loop.Backing, "/"))
	if err != nil {
		return nil, true, errors.New(device.Reason(err))
	}
	if file, ok := device.FileOf(info); !ok || file != loop.BackingFile() {
		return nil, true, errors.New("another file has that name by now")
	}
	if whole = info.Size() == loop.SizeBytes; whole {
		return nil, true, nil
	}
	f, err := l.system.Open(strings.TrimPrefix(loop.Backing, "/"))
	if err != nil {
		return nil, false, errors.New(device.Reason(err))
	}
	defer f.Close()
	found, err = probe(l.ctx, f, info.Size())
	return found, false, err
}

// Signatures probes the content of a device: device.Probe's marks, and what the programs of util-linux find besides
// where they are installed. It opens the device's node for reading.
func Signatures(ctx context.Context, system fs.FS, d device.Device) ([]device.Signature, error) {
	f, err := system.Open(strings.TrimPrefix(d.Node, "/"))
	if err != nil {
		return nil, errors.New(device.Reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if number, ok := device.NumberOf(info); !ok || number != d.Number {
		return nil, fmt.Errorf("%s is not device %s", d.Node, d.Number)
	}
	return probe(ctx, f, d.SizeBytes)
}
