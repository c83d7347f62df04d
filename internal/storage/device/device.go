// Package device says what a block device is, as far as the kernel tells: who made it, what lies on it, what it is made
// of, how it is set, and by which links its bytes come to the processor, with the ceiling of each.
//
// It reads the text of /sys, /proc, /dev and /run below the root folder that it is given, so that a machine can be a
// fixture: it opens no device, runs no program and changes nothing. Signatures alone come from the content, of a
// reader that the caller opened. It stands below all that deal with devices: the sandboxes of this machine, the guard
// (device/guard), the commands.
//
// What is not known is in Unknown with the reason; nothing is guessed. It refuses what is no block device and what lies
// on none, such as a file on a network file system.
package device

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/visible"
)

// Kind tells what makes a block device one.
type Kind string

// The kinds.
const (
	Disk      Kind = "disk"      // a device of its own, real or virtual
	Partition Kind = "partition" // of a disk
	Loop      Kind = "loop"      // a file as a device
	Mapped    Kind = "mapped"    // by the device mapper: LVM, dm-crypt, multipath
	Array     Kind = "array"     // md RAID
	Memory    Kind = "memory"    // zram, brd: what is written is lost with the power
)

// Device is one block device. Members of which nothing is known are empty, and Unknown says why by their JSON name.
type Device struct {
	Name   string `json:"name"`   // the kernel's: sda1, nvme0n1, dm-0
	Node   string `json:"node"`   // what opens it: /dev/sda1
	Number string `json:"number"` // major:minor
	Kind   Kind   `json:"kind"`
	Media  string `json:"media,omitempty"` // in words: "SATA SSD", "NVMe SSD", "HDD (SAS)"
	// Identity pins it: the guard writes to nothing that it cannot tell from every other device.
	Identity Identity `json:"identity"`
	Vendor   string   `json:"vendor,omitempty"`
	Model    string   `json:"model,omitempty"`
	Firmware string   `json:"firmware,omitempty"`
	Serial   string   `json:"serial,omitempty"`
	WWN      string   `json:"wwn,omitempty"`
	UUID     string   `json:"uuid,omitempty"`  // of a mapped device or an array
	Label    string   `json:"label,omitempty"` // the name of a mapped device
	ByID     []string `json:"by_id,omitempty"` // its names in /dev/disk/by-id

	SizeBytes     int64 `json:"size_bytes"`
	StartBytes    int64 `json:"start_bytes,omitempty"` // of a partition
	ReadOnly      bool  `json:"read_only"`
	Removable     bool  `json:"removable,omitempty"`
	PartitionOf   int   `json:"partition_number,omitempty"`
	Sequence      int64 `json:"disk_sequence,omitempty"` // the kernel's count of disks: another disk, another number
	Queue         Queue `json:"queue"`
	BackingOffset int64 `json:"backing_offset_bytes,omitempty"` // where a loop begins in its file

	BackingLimit int64 `json:"backing_limit_bytes,omitempty"` // how much of its file a loop is at most; 0: all

	Backing       string       `json:"backing_file,omitempty"`   // of a loop
	BackingDevice string       `json:"backing_device,omitempty"` // of the file system that the file is on, major:minor
	BackingInode  uint64       `json:"backing_inode,omitempty"`
	Partitions    []Part       `json:"partitions,omitempty"`
	Alignment     []Misaligned `json:"misaligned,omitempty"` // of a partition
	Holders       []string     `json:"holders,omitempty"`    // devices made of it
	Mounts        []Mounted    `json:"mounts,omitempty"`     // that this process sees
	Signatures    []Signature  `json:"signatures,omitempty"` // what its content says it is; see Probe
	Swap          bool         `json:"swap,omitempty"`

	Disk    *Device  `json:"disk,omitempty"`    // that a partition is of
	Members []Device `json:"members,omitempty"` // what a mapped device, an array or a loop on a device is made of

	Path      []Hop  `json:"path,omitempty"` // from the device to the processor; of a disk
	Narrowest string `json:"narrowest,omitempty"`

	Unknown map[string]string `json:"unknown,omitempty"` // JSON name -> why
}

// File is which file something is: hard links and mounts give one file many names.
type File struct {
	Device string // of its file system, major:minor
	Inode  uint64
}

// Queue is how requests come to a device. A partition has its disk's.
type Queue struct {
	LogicalBlockBytes  int64  `json:"logical_block_bytes,omitempty"`
	PhysicalBlockBytes int64  `json:"physical_block_bytes,omitempty"`
	MinimumIOBytes     int64  `json:"minimum_io_bytes,omitempty"`
	OptimalIOBytes     int64  `json:"optimal_io_bytes,omitempty"` // 0: the device names none
	AlignmentBytes     int64  `json:"alignment_offset_bytes,omitempty"`
	Rotational         bool   `json:"rotational"`
	Scheduler          string `json:"scheduler,omitempty"`
	Requests           int64  `json:"requests,omitempty"`        // nr_requests: queued by the kernel per hardware queue
	Depth              int64  `json:"device_depth,omitempty"`    // that the device itself takes
	HardwareQueues     int64  `json:"hardware_queues,omitempty"` // ways to give it requests at once
	MaxTransferBytes   int64  `json:"max_transfer_bytes,omitempty"`
	MaxHardwareBytes   int64  `json:"max_hardware_transfer_bytes,omitempty"`
	ReadAheadBytes     int64  `json:"read_ahead_bytes,omitempty"`
	WriteCache         string `json:"write_cache,omitempty"` // write back: a flush is needed; write through
	DiscardBytes       int64  `json:"discard_granularity_bytes,omitempty"`
	DiscardMaxBytes    int64  `json:"discard_max_bytes,omitempty"` // 0: it cannot discard
	Zoned              string `json:"zoned,omitempty"`
}

// maxNested bounds devices made of devices.
const maxNested = 16

// Read describes the block device of a kernel name, such as sda1. The error is that there is none of that name.
func Read(system fs.FS, name string) (Device, error) { return read(system, name, maxNested) }

func read(system fs.FS, name string, deep int) (Device, error) {
	if deep == 0 {
		return Device{}, fmt.Errorf("/sys/block/%s: made of itself", name)
	}
	dir, err := folder(system, name)
	if err != nil {
		return Device{}, err
	}
	d := Device{Name: name, Number: content(system, path.Join(dir, "dev")), Unknown: map[string]string{}}
	l := looker{system, dir, d.Unknown}
	d.Node = "/dev/" + cmp.Or(uevent(system, dir)["DEVNAME"], strings.ReplaceAll(name, "!", "/"))
	d.SizeBytes = l.number("size_bytes", "size") * sectorBytes
	d.ReadOnly = content(system, path.Join(dir, "ro")) == "1"
	d.Sequence, _ = strconv.ParseInt(content(system, path.Join(dir, "diskseq")), 10, 64)
	d.Holders = names(system, path.Join(dir, "holders"))
	d.ByID = pointing(system, "dev/disk/by-id", path.Base(d.Node))
	d.Kind = kindOf(system, dir, name)
	if d.Kind == Partition {
		disk, err := read(system, path.Base(path.Dir(dir)), deep-1)
		if err != nil {
			return d, err
		}
		d.PartitionOf = int(l.number("partition_number", "partition"))
		d.StartBytes = l.number("start_bytes", "start") * sectorBytes
		d.Alignment = misaligned(d.StartBytes, disk.Queue)
		d.Queue, d.Media, d.Disk = disk.Queue, disk.Media, &disk
		d.Identity = disk.Identity.partition(d.PartitionOf)
		d.Sequence = disk.Sequence
		return d.withUse(system), nil
	}
	d.Removable = content(system, path.Join(dir, "removable")) == "1"
	d.Queue = readQueue(l)
	d.Partitions = parts(system, dir, d)
	d.identify(l)
	below := names(system, path.Join(dir, "slaves"))
	if on := d.backingDevice(system); on != "" {
		below = append(below, on)
	}
	for _, member := range below {
		m, err := read(system, member, deep-1)
		if err != nil {
			return d, err
		}
		d.Members = append(d.Members, m)
	}
	if len(d.Members) == 0 {
		d.Path, d.Unknown["path"] = way(system, d)
		d.Narrowest = narrowest(d.Path)
	}
	d.Media = media(d, l)
	for name, why := range d.Unknown {
		if why == "" {
			delete(d.Unknown, name)
		}
	}
	return d.withUse(system), nil
}

// withUse adds who uses a device.
func (d Device) withUse(system fs.FS) Device {
	mounts, err := Mounts(system)
	if err != nil {
		d.Unknown["mounts"] = err.Error()
	}
	for _, m := range mounts {
		if m.Uses(system, d) {
			d.Mounts = append(d.Mounts, Mounted{Point: m.Point, FSType: m.FSType, Options: m.Options})
		}
	}
	swaps, _ := fs.ReadFile(system, "proc/swaps")
	for line := range strings.Lines(string(swaps)) {
		file, _, _ := strings.Cut(line, " ")
		d.Swap = d.Swap || d.Is(system, unescape(strings.TrimSpace(file)))
	}
	return d
}

// backingDevice is the kernel name of the block device that a loop is made of, "" where that is a file.
func (d Device) backingDevice(system fs.FS) string {
	if d.Backing == "" {
		return ""
	}
	info, err := fs.Stat(system, strings.TrimPrefix(d.Backing, "/"))
	if err != nil {
		return ""
	}
	number, ok := NumberOf(info)
	if !ok || info.Mode()&fs.ModeCharDevice != 0 {
		return ""
	}
	return OfNumber(system, number)
}

// BackingFile is the file that a loop is made of, none for anything else.
func (d Device) BackingFile() File { return File{d.BackingDevice, d.BackingInode} }

// Is reports whether a path of the machine is the device's, or, of a loop, its file's, by whatever name.
func (d Device) Is(system fs.FS, file string) bool {
	if file == d.Node || d.Backing != "" && file == d.Backing {
		return true
	}
	info, err := fs.Stat(system, strings.TrimPrefix(file, "/"))
	if err != nil {
		return false
	}
	if f, ok := FileOf(info); ok {
		return d.BackingInode != 0 && f == d.BackingFile()
	}
	number, ok := NumberOf(info)
	return ok && info.Mode()&fs.ModeCharDevice == 0 && number == d.Number
}

// Mounted is a file system of a device, mounted.
type Mounted struct {
	Point   string   `json:"point"`
	FSType  string   `json:"type"`
	Options []string `json:"options,omitempty"`
}

// Bottom are the devices that something is made of in the end: disks, loops and such, each once.
func (d Device) Bottom() (list []Device) {
	switch {
	case d.Disk != nil:
		return d.Disk.Bottom()
	case len(d.Members) == 0:
		return []Device{d}
	}
	for _, m := range d.Members {
		for _, b := range m.Bottom() {
			if !slices.ContainsFunc(list, func(o Device) bool { return o.Name == b.Name }) {
				list = append(list, b)
			}
		}
	}
	return list
}

// sectorBytes is /sys's unit of sizes, whatever the device's own blocks are.
const sectorBytes = 512

// looker reads the small files of one device and keeps why one is missing.
type looker struct {
	system  fs.FS
	dir     string
	unknown map[string]string
}

// text is the first of some files that says something.
func (l looker) text(member string, files ...string) string {
	why := ""
	for _, f := range files {
		data, err := fs.ReadFile(l.system, path.Join(l.dir, f))
		text := clean(string(data))
		switch {
		case err == nil && text != "":
			return text
		case err == nil:
			why = cmp.Or(why, "/"+path.Join(l.dir, f)+" is empty")
		default:
			why = cmp.Or(why, "/"+path.Join(l.dir, f)+": "+Reason(err))
		}
	}
	l.unknown[member] = why
	return ""
}

func (l looker) number(member, file string) int64 {
	text := l.text(member, file)
	n, err := strconv.ParseInt(text, 10, 64)
	if text != "" && (err != nil || n < 0 || n > mostNumber) {
		l.unknown[member] = fmt.Sprintf("/%s: %q is no number", path.Join(l.dir, file), text)
		return 0
	}
	return n
}

// mostNumber bounds what a file of /sys may say, so that sectors and KiB fit into bytes.
const mostNumber = 1 << 52

// clean returns what a device says of itself as one line: firmware is a stranger too, and what is shown must be what is
// typed.
func clean(text string) string {
	return strings.Join(strings.Fields(visible.Line(strings.TrimSpace(strings.TrimRight(text, "\x00 \n\t")))), " ")
}

func readQueue(l looker) (q Queue) {
	for _, f := range []struct {
		member, file string
		to           *int64
		unit         int64
	}{
		{"queue.logical_block_bytes", "logical_block_size", &q.LogicalBlockBytes, 1},
		{"queue.physical_block_bytes", "physical_block_size", &q.PhysicalBlockBytes, 1},
		{"queue.minimum_io_bytes", "minimum_io_size", &q.MinimumIOBytes, 1},
		{"queue.optimal_io_bytes", "optimal_io_size", &q.OptimalIOBytes, 1},
		{"queue.requests", "nr_requests", &q.Requests, 1},
		{"queue.max_transfer_bytes", "max_sectors_kb", &q.MaxTransferBytes, 1 << 10},
		{"queue.max_hardware_transfer_bytes", "max_hw_sectors_kb", &q.MaxHardwareBytes, 1 << 10},
		{"queue.read_ahead_bytes", "read_ahead_kb", &q.ReadAheadBytes, 1 << 10},
		{"queue.discard_granularity_bytes", "discard_granularity", &q.DiscardBytes, 1},
		{"queue.discard_max_bytes", "discard_max_bytes", &q.DiscardMaxBytes, 1},
	} {
		*f.to = l.number(f.member, "queue/"+f.file) * f.unit
	}
	q.AlignmentBytes, _ = strconv.ParseInt(content(l.system, path.Join(l.dir, "alignment_offset")), 10, 64)
	q.Rotational = l.text("queue.rotational", "queue/rotational") == "1"
	q.WriteCache = l.text("queue.write_cache", "queue/write_cache")
	q.Zoned = l.text("queue.zoned", "queue/zoned")
	var why string
	if q.Scheduler, why = Selected(l.system, path.Join(l.dir, "queue/scheduler")); why != "" {
		l.unknown["queue.scheduler"] = why
	}
	q.Depth = l.number("queue.device_depth", "device/queue_depth")
	if sq := content(l.system, path.Join(l.dir, "device/sqsize")); sq != "" { // NVMe: of each queue, counted from 0
		if n, err := strconv.ParseInt(sq, 10, 32); err == nil {
			q.Depth, l.unknown["queue.device_depth"] = n+1, ""
		}
	}
	queues, err := fs.ReadDir(l.system, path.Join(l.dir, "mq"))
	if err != nil {
		l.unknown["queue.hardware_queues"] = "/" + path.Join(l.dir, "mq") + ": " + Reason(err)
	}
	for _, e := range queues {
		if e.IsDir() {
			q.HardwareQueues++
		}
	}
	return q
}
