// Package qemu runs QEMU guests as processes: the command line of a machine, its start in a network namespace, its
// monitor, its disk images.
//
// It stands below the lab, whose nodes say where a guest runs, and beside package guest, which says what boots. A
// Machine is a folder with what its process needs and leaves there. The process outlives the one that started it and
// is found again by its folder alone (Open): its command line names the folder's process file. Signals go through a
// descriptor of the very process that was looked at, so one that merely has its number is never touched.
//
// It refuses what could make two writers of one disk: a second start of a running machine, changes of images in use
// (QEMU's own locks). Secrets do not go onto its command line; there is no place for them. It makes no networks.
package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Buses of disks.
const (
	SCSI   = "scsi"   // /dev/sda onward, in order
	Virtio = "virtio" // /dev/vda onward, in order
)

// Formats of disk images.
const (
	Raw   = "raw"
	Qcow2 = "qcow2"
)

// Disk is a disk of a machine. Its node of QEMU's block layer is called as the device, "disk" and its place in the
// list.
type Disk struct {
	Path     string `json:"path"`             // absolute
	Format   string `json:"format"`           // Raw or Qcow2
	Bus      string `json:"bus,omitempty"`    // SCSI when empty
	Serial   string `json:"serial,omitempty"` // what the guest reads, up to 20 bytes
	ReadOnly bool   `json:"read_only,omitempty"`
	// Cached leaves writes to this host's page cache; else they go past it (cache=none).
	Cached bool `json:"cached,omitempty"`
	// IgnoreFlush makes it a liar: the guest's flushes are acknowledged and this host's disk is not flushed. Data that
	// the guest was told are safe may be lost with the host's power; with the process alone they are not, for QEMU
	// passes on what it holds itself. For tests only.
	IgnoreFlush bool `json:"ignore_flush,omitempty"`
}

// Forward gives a TCP port of the guest to 127.0.0.1 of the network that QEMU runs in.
type Forward struct {
	Host  int `json:"host"`
	Guest int `json:"guest"`
}

// NIC is the machine's network card: on a tap that is there already, or in a network of the process's own with a few
// ports forwarded.
type NIC struct {
	MAC      string    `json:"mac,omitempty"`
	Tap      string    `json:"tap,omitempty"`
	Forwards []Forward `json:"forwards,omitempty"` // without a Tap
}

// Topology is how the CPUs of a machine are told to its guest, and where they run. The zero value is one socket with a
// core for each CPU, one NUMA node, and any CPU of this host.
type Topology struct {
	Sockets int `json:"sockets,omitempty"`    // 0: one
	Threads int `json:"threads,omitempty"`    // of each core; 0: one
	NUMA    int `json:"numa_nodes,omitempty"` // that share CPUs and memory evenly; 0: QEMU's one
	// Pins are CPUs of this host: the guest's first CPU keeps to the first of them, and so on, over again from the
	// first when there are fewer. Empty: they run anywhere.
	Pins []int `json:"pins,omitempty"`
}

// Check gives all objections for so many CPUs and so much memory.
func (t Topology) Check(cpus int, memory int64) error { return errors.Join(t.check(cpus, memory)...) }

func (t Topology) check(cpus int, memory int64) (errs []error) {
	sockets, threads := max(t.Sockets, 1), max(t.Threads, 1)
	if t.Sockets < 0 || t.Threads < 0 || t.NUMA < 0 {
		return []error{fmt.Errorf("%d sockets, %d threads, %d NUMA nodes: want none of them negative", t.Sockets,
			t.Threads, t.NUMA)}
	}
	if cpus%(sockets*threads) != 0 {
		errs = append(errs, fmt.Errorf("%d CPUs: not a multiple of %d sockets times %d threads", cpus, sockets,
			threads))
	}
	if t.NUMA > 0 && (cpus%t.NUMA != 0 || memory/mebibyte%int64(t.NUMA) != 0) {
		errs = append(errs, fmt.Errorf("%d NUMA nodes: %d CPUs and %d MiB cannot be shared evenly", t.NUMA, cpus,
			memory/mebibyte))
	}
	for _, pin := range t.Pins {
		if pin < 0 {
			errs = append(errs, fmt.Errorf("CPU %d of this host: none has a negative number", pin))
		}
	}
	return errs
}

// smp is the value of -smp.
func (t Topology) smp(cpus int) string {
	if t.Sockets == 0 && t.Threads == 0 {
		return strconv.Itoa(cpus)
	}
	sockets, threads := max(t.Sockets, 1), max(t.Threads, 1)
	return fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", cpus, sockets, cpus/(sockets*threads), threads)
}

// numa are the arguments of nodes that share CPUs and memory evenly.
func (t Topology) numa(cpus int, memory int64) (argv []string) {
	for i := range t.NUMA {
		each := cpus / t.NUMA
		argv = append(argv, "-object", fmt.Sprintf("memory-backend-ram,id=memory%d,size=%dM", i,
			memory/mebibyte/int64(t.NUMA)),
			"-numa", fmt.Sprintf("node,nodeid=%d,memdev=memory%d,cpus=%d-%d", i, i, i*each, (i+1)*each-1))
	}
	return argv
}

// Spec is a machine. Both sides of a live migration have the same one.
type Spec struct {
	Name        string   `json:"name"`
	Program     string   `json:"program,omitempty"` // qemu-system-x86_64 when empty
	Accel       string   `json:"accel"`             // TCG or KVM: see Accelerator
	CPUs        int      `json:"cpus"`
	Topology    Topology `json:"topology,omitzero"`
	MemoryBytes int64    `json:"memory_bytes"`
	Kernel      string   `json:"kernel,omitempty"` // without one it boots from its first disk
	Initrd      string   `json:"initrd,omitempty"`
	Append      string   `json:"append,omitempty"` // the kernel's command line; the guest and this host can read it
	Disks       []Disk   `json:"disks,omitempty"`
	NIC         *NIC     `json:"nic,omitempty"`
	Args        []string `json:"args,omitempty"` // more arguments; anybody on this host can read them
	NoReboot    bool     `json:"no_reboot,omitempty"`
}

// Names of the files in a machine's folder.
const (
	SerialFile  = "serial.log"
	MonitorFile = "qmp.sock"
	pidFile     = "qemu.pid"
	noticeFile  = "qemu.log" // what QEMU says itself
)

const mebibyte = 1 << 20

var macAddress = regexp.MustCompile(`^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$`)

// Check gives all objections at once.
func (s Spec) Check() error {
	var errs []error
	object := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("machine %q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Name == "" || strings.ContainsAny(s.Name, ",=/\x00\n") {
		object("no name of a machine: give one without commas, slashes and equals signs")
	}
	if !slices.Contains([]string{TCG, KVM}, s.Accel) {
		object("accelerator %q: want %q or %q", s.Accel, TCG, KVM)
	}
	if s.CPUs < 1 || s.CPUs > 255 {
		object("%d CPUs: want 1 to 255", s.CPUs)
	}
	if s.MemoryBytes < mebibyte || s.MemoryBytes%mebibyte != 0 {
		object("memory of %d bytes: want a multiple of 1 MiB", s.MemoryBytes)
	}
	for _, err := range s.Topology.check(s.CPUs, s.MemoryBytes) {
		object("%w", err)
	}
	if s.Kernel == "" && (s.Initrd != "" || s.Append != "") {
		object("an initial RAM disk or a command line without a kernel")
	}
	for _, path := range []string{s.Kernel, s.Initrd} {
		if path != "" && !filepath.IsAbs(path) {
			object("file %q: must be an absolute path", path)
		}
	}
	for i, d := range s.Disks {
		switch {
		case !filepath.IsAbs(d.Path):
			object("disk %d: file %q: must be an absolute path", i, d.Path)
		case d.Format != Raw && d.Format != Qcow2:
			object("disk %d: format %q: want %q or %q", i, d.Format, Raw, Qcow2)
		case d.Bus != "" && d.Bus != SCSI && d.Bus != Virtio:
			object("disk %d: bus %q: want %q or %q", i, d.Bus, SCSI, Virtio)
		case len(d.Serial) > 20:
			object("disk %d: serial number %q: guests see 20 bytes of it", i, d.Serial)
		}
	}
	if n := s.NIC; n != nil {
		if n.MAC != "" && !macAddress.MatchString(n.MAC) {
			object("hardware address %q: want six pairs of 0-9 and a-f, the first one even", n.MAC)
		}
		if len(n.Tap) > 15 || strings.ContainsAny(n.Tap, ", /") {
			object("tap %q: no name of a network interface", n.Tap)
		}
		if n.Tap != "" && len(n.Forwards) > 0 {
			object("tap %q: ports are forwarded without a tap only", n.Tap)
		}
	}
	return errors.Join(errs...)
}

// DiskName returns what a disk of the list is called in QEMU.
func DiskName(i int) string { return "disk" + strconv.Itoa(i) }

// Argv is the command line of the machine in a folder. With incoming it waits for a migration.
func (s Spec) Argv(folder string, incoming bool) []string {
	program := s.Program
	if program == "" {
		program = "qemu-system-x86_64"
	}
	accel, cpu := s.Accel, "host"
	if accel == TCG {
		accel, cpu = "tcg,tb-size=32", "max"
		if s.CPUs > 1 {
			accel = "tcg,thread=multi,tb-size=128"
		}
	}
	argv := []string{program, "-name", s.Name, "-machine", "q35", "-accel", accel, "-cpu", cpu, "-smp",
		s.Topology.smp(s.CPUs), "-m", strconv.FormatInt(s.MemoryBytes/mebibyte, 10) + "M",
		"-nodefaults", "-no-user-config",
		"-display", "none", "-daemonize", "-pidfile", filepath.Join(folder, pidFile),
		"-D", filepath.Join(folder, noticeFile),
		"-chardev", "file,id=serial,append=on,path=" + doubled(filepath.Join(folder, SerialFile)),
		"-serial", "chardev:serial",
		// relative to the folder, since the path of a socket is short
		"-chardev", "socket,id=qmp,server=on,wait=off,path=" + MonitorFile, "-mon", "chardev=qmp,mode=control"}
	argv = append(argv, s.Topology.numa(s.CPUs, s.MemoryBytes)...)
	if s.Kernel != "" {
		argv = append(argv, "-kernel", s.Kernel)
	}
	if s.Initrd != "" {
		argv = append(argv, "-initrd", s.Initrd)
	}
	if s.Append != "" {
		argv = append(argv, "-append", s.Append)
	}
	if s.NIC != nil {
		argv = append(argv, s.NIC.argv()...)
	}
	argv = append(argv, "-device", "virtio-scsi-pci,id=scsi")
	for i, d := range s.Disks {
		argv = append(argv, d.argv(i)...)
	}
	if s.NoReboot {
		argv = append(argv, "-no-reboot")
	}
	if incoming {
		argv = append(argv, "-incoming", "defer")
	}
	return append(argv, s.Args...)
}

// doubled is a value in a list of QEMU's options.
func doubled(value string) string { return strings.ReplaceAll(value, ",", ",,") }

func (n NIC) argv() []string {
	net := "user,id=net"
	if n.Tap != "" {
		net = "tap,id=net,script=no,downscript=no,ifname=" + n.Tap
	}
	for _, f := range n.Forwards {
		net += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", f.Host, f.Guest)
	}
	card := "virtio-net-pci,netdev=net,romfile="
	if n.MAC != "" {
		card += ",mac=" + n.MAC
	}
	return []string{"-netdev", net, "-device", card}
}

// blockNode is a node of QEMU's block layer.
type blockNode struct {
	Driver   string     `json:"driver"`
	Name     string     `json:"node-name,omitempty"`
	File     *blockNode `json:"file,omitempty"`
	Filename string     `json:"filename,omitempty"`
	AIO      string     `json:"aio,omitempty"`
	ReadOnly bool       `json:"read-only,omitempty"`
	Discard  string     `json:"discard,omitempty"`
	Cache    *cache     `json:"cache,omitempty"`
}

type cache struct {
	Direct  bool `json:"direct"`
	NoFlush bool `json:"no-flush"`
}

func (d Disk) argv(i int) []string {
	c := &cache{Direct: !d.Cached, NoFlush: d.IgnoreFlush}
	node, err := json.Marshal(
		blockNode{Driver: d.Format, Name: DiskName(i), ReadOnly: d.ReadOnly, Discard: "unmap", Cache: c,
			File: &blockNode{
				Driver:   "file",
				Filename: d.Path,
				AIO:      "threads",
				ReadOnly: d.ReadOnly,
				Discard:  "unmap",
				Cache:    c,
			}},
	)
	if err != nil {
		panic(err) // there is nothing in it that JSON has not
	}
	device := "scsi-hd,bus=scsi.0"
	if d.Bus == Virtio {
		device = "virtio-blk-pci"
	}
	device += fmt.Sprintf(",id=%s,drive=%[1]s", DiskName(i))
	if d.Serial != "" {
		device += ",serial=" + doubled(d.Serial)
	}
	return []string{"-blockdev", string(node), "-device", device}
}
