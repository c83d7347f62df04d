package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/device"
)

// look is one look at a device.
type look struct {
	ctx    context.Context
	system fs.FS
	device device.Device
	around []related
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
	l.gather()
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
	l.loops()
	l.folders(keep)
	if err := l.mounts(); err != nil {
		return err
	}
	if openers {
		return l.openers()
	}
	return nil
}

// gather finds all devices that hang together with the one: partitions, what is made of them, the disk, siblings.
func (l *look) gather() {
	add := func(name string, r relation) (device.Device, bool) {
		if slices.ContainsFunc(l.around, func(o related) bool { return o.Name == name }) {
			return device.Device{}, false
		}
		d, err := device.Read(l.system, name)
		if err != nil {
			return d, false // gone by now
		}
		l.around = append(l.around, related{d, r})
		return d, true
	}
	var above func(d device.Device, r relation)
	above = func(d device.Device, r relation) {
		for _, name := range d.Holders {
			if h, ok := add(name, r); ok {
				above(h, r)
			}
		}
		for _, p := range d.Partitions {
			part := r
			if r == holder && d.Name == l.device.Name {
				part = partition
			}
			if p, ok := add(p.Name, part); ok {
				above(p, r)
			}
		}
	}
	l.around = []related{{l.device, itself}}
	above(l.device, holder)
	if l.device.Disk == nil {
		return
	}
	if whole, ok := add(l.device.Disk.Name, disk); ok {
		above(whole, sibling)
	}
}

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
			do := "take it apart by hand (vgchange -an, mdadm --stop, cryptsetup close, multipath -f, dmsetup remove)"
			switch r.relation {
			case itself, partition, holder:
				l.object(Held, r.Node, do, "%s is made of it", what)
			default:
				l.object(Sibling, r.Node, do, "%s, holds up %s", r.relation, what)
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

// loops objects to loop devices that lie on the device, or on the same file.
func (l *look) loops() {
	found, _ := fs.Glob(l.system, "sys/block/loop*/loop/backing_file")
	for _, f := range found {
		name := strings.Split(f, "/")[2]
		loop, err := device.Read(l.system, name)
		if err != nil || loop.Backing == "" {
			continue
		}
		for _, r := range l.around {
			same := r.Backing != "" && r.Backing == loop.Backing && r.Name != name
			if same && r.relation == itself {
				l.object(BacksLoop, r.Node, "losetup -d "+loop.Node, "its file %s is also that of %s", r.Backing,
					loop.Node)
			}
			if r.Device.Is(l.system, loop.Backing) && r.Name != name && !same {
				k := BacksLoop
				if r.relation == sibling {
					k = Sibling
				}
				l.object(k, r.Node, "losetup -d "+loop.Node, "%s is made of it", loop.Node)
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

// openers objects to processes that have the device open for writing: virtual machines do so with their disks, and
// claim them from nobody. Those that read, as udev's and smartd's do, are no harm.
func (l *look) openers() error {
	self, _ := fs.ReadLink(l.system, "proc/self")
	for _, pid := range l.processes() {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if pid == self {
			continue
		}
		dir := path.Join("proc", pid, "fd")
		entries, _ := fs.ReadDir(l.system, dir) // those of others are seen by root only, who alone opens devices
		for _, e := range entries {
			to, err := fs.ReadLink(l.system, path.Join(dir, e.Name()))
			if err != nil || !strings.HasPrefix(to, "/") {
				continue
			}
			info, err := fs.Stat(l.system, path.Join(dir, e.Name()))
			if err != nil || info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) != fs.ModeDevice {
				continue
			}
			number, _ := device.NumberOf(info)
			for _, r := range l.around {
				if r.Number == number && r.relation != sibling && l.writes(pid, e.Name()) {
					l.object(Open, r.Node, "end it first", "%s has it open for writing", l.process(pid, ""))
				}
			}
		}
	}
	return nil
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
		if r.relation == itself || r.relation == partition || r.relation == disk {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			l.marks(r.Device, r.relation)
		}
	}
	for _, m := range l.device.Members {
		l.marks(m, member)
	}
	return nil
}

const member relation = "member"

func (l *look) marks(d device.Device, r relation) {
	found, err := Signatures(l.system, d)
	if err != nil {
		l.object(Unseen, d.Node, privilege(), "its content cannot be read: %v", err)
	}
	wipe := "if nothing on it is needed, wipe it by hand: wipefs -a " + d.Node
	see := "look at what it is (wipefs " + d.Node + ")"
	for _, s := range found {
		switch {
		case r == disk && s.Family == device.PartitionTable:
		case r == member && (s.Family == device.Member || s.Family == device.PartitionTable):
		case r == disk:
			l.object(Marked, d.Node, see, "the disk itself bears the mark of %v", s)
		case r == member:
			l.object(Marked, d.Node, see, "%s is made of it, and it bears the mark of %v", l.device.Node, s)
		case s.Family == device.PartitionTable && r == itself:
			l.object(Partitioned, d.Node, wipe, "has a partition table: %v", s)
		default:
			l.object(Marked, d.Node, wipe, "bears the mark of %v", s)
		}
	}
}

// Signatures probes the content of a device; see device.Probe. It opens the device's node for reading.
func Signatures(system fs.FS, d device.Device) ([]device.Signature, error) {
	f, err := system.Open(strings.TrimPrefix(d.Node, "/"))
	if err != nil {
		return nil, errors.New(device.Reason(err))
	}
	defer f.Close() //nolint:errcheck // read only
	content, ok := f.(io.ReaderAt)
	if !ok {
		return nil, errors.New("cannot be read at places")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if number, ok := device.NumberOf(info); !ok || number != d.Number {
		return nil, fmt.Errorf("%s is not device %s", d.Node, d.Number)
	}
	return device.Probe(content, d.SizeBytes)
}
