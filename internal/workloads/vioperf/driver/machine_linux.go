package vioperf

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/storage/direct"
)

func thisMachine() *machine {
	system := os.DirFS("/")
	return &machine{
		look:    func(dir string) (Place, error) { return look(system, dir) },
		disk:    func(p Place) Place { return p.ofDevice(system) },
		create:  create,
		open:    open,
		count:   func(p Place) counters { return count(system, p) },
		buffers: buffers,
		cores:   runtime.NumCPU,
		waiting: processors,
	}
}

// look finds what lies under a folder, and refuses what is none.
func look(system fs.FS, dir string) (Place, error) {
	p := Place{Path: dir}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return p, refusal(dir, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return p, refusal(dir, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFBLK:
		return p, fmt.Errorf("%s: it is a block device, whose data would be lost: make a file system on it, mount it, "+
			"and give its folder", dir)
	default:
		return p, refusal(dir, syscall.ENOTDIR)
	}
	var space unix.Statfs_t
	if err := unix.Statfs(real, &space); err != nil {
		return p, refusal(dir, err)
	}
	p.FreeBytes, p.TotalBytes = int64(space.Bavail)*space.Bsize, int64(space.Blocks)*space.Bsize
	p.number = fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	p.Type = mountOf(system, p.number)
	if p.Type == "" {
		p.Type = fmt.Sprintf("file system %#x", space.Type)
	}
	if p.Memory() {
		p.NoDevice = p.Type + " is memory, no device"
		// It grows until there is no memory left, whatever it says of itself.
		if most := memoryAvailable(system); p.TotalBytes == 0 || most < p.FreeBytes {
			p.FreeBytes = most
			p.TotalBytes = max(p.TotalBytes, most)
		}
		return p, nil
	}
	p.findDevice(system)
	return p, nil
}

// mountOf is the type of the file system of a device number; "" when it is not there.
func mountOf(system fs.FS, number string) string {
	mounts, _ := device.Mounts(system)
	if i := slices.IndexFunc(mounts, func(m device.Mount) bool { return m.Device == number }); i >= 0 {
		return mounts[i].FSType
	}
	return ""
}

// memoryAvailable returns what the kernel can give without swapping, in bytes.
func memoryAvailable(system fs.FS) (bytes int64) {
	data, _ := fs.ReadFile(system, "proc/meminfo")
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kib, _ := strconv.ParseInt(f[1], 10, 50)
			return kib << 10
		}
	}
	return 0
}

// findDevice finds the device whose counters see the place: that of its own number only, for what other file systems
// name as their source may be one of several.
func (p *Place) findDevice(system fs.FS) {
	data, err := fs.ReadFile(system, "proc/diskstats")
	disks, _ := procfs.Disks(data, countersWanted)
	for _, d := range disks {
		if d.Major+":"+d.Minor == p.number {
			p.Device = d.Name
		}
	}
	switch {
	case err != nil:
		p.NoDevice = err.Error()
		return
	case p.Device == "":
		p.NoDevice = fmt.Sprintf("%s carries no block device's number (%s)", p.Type, p.number)
		return
	}
	*p = p.ofDevice(system)
}

// ofDevice fills in what is known of the device by its name.
func (p Place) ofDevice(system fs.FS) Place {
	whole := path.Join("sys/block", p.Device)
	if _, err := fs.Stat(system, whole); err != nil { // a partition
		if of, _ := fs.Glob(system, path.Join("sys/block/*", p.Device)); len(of) == 1 {
			whole = path.Dir(of[0])
		}
	}
	most, _ := fs.ReadFile(system, path.Join(whole, "queue/max_sectors_kb"))
	kib, _ := strconv.ParseInt(strings.TrimSpace(string(most)), 10, 40)
	p.MostRequest = kib << 10
	return p
}

// count reads the counters. What cannot be read is left out.
func count(system fs.FS, p Place) (c counters) {
	if p.Device != "" {
		data, _ := fs.ReadFile(system, "proc/diskstats")
		now := time.Now()
		disks, _ := procfs.Disks(data, countersWanted)
		for _, d := range disks {
			if d.Name == p.Device {
				c.device = &tally{now, d.Counts}
			}
		}
	}
	stat, _ := fs.ReadFile(system, "proc/stat")
	cpus, _ := procfs.CPUs(stat)
	for _, cpu := range cpus {
		c.busy += cpu.Time(procfs.User, procfs.Nice, procfs.System, procfs.IRQ, procfs.SoftIRQ)
	}
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) == nil {
		c.user, c.system = time.Duration(use.Utime.Nano()), time.Duration(use.Stime.Nano())
	}
	return c
}

// onDisk is a file of a file system, or a disk.
type onDisk struct{ *os.File }

// Forget implements file.
func (f onDisk) Forget() error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// create makes a file that was not there.
func create(name string, wanted bool) (file, string, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	return past(f, wanted, err)
}

// open opens a disk: what is there is written over.
func open(name string, wanted bool) (file, string, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
	return past(f, wanted, err)
}

// past has writes to an open file pass by the page cache, if that is wanted and possible.
func past(f *os.File, wanted bool, err error) (file, string, error) {
	if err != nil {
		return nil, "", err
	}
	if !wanted {
		return onDisk{f}, "asked for", nil
	}
	d, err := direct.Of(f)
	if err != nil {
		return nil, "", err
	}
	return onDisk{d.File}, d.Why, nil
}

// hugePage divides the size of the kernel's large pages on every machine there is.
const hugePage = 2 << 20

// buffers maps memory in large pages where the kernel has some: pinning 1 MiB of small ones for direct I/O costs as
// much as a checksum over it, and they reach the device in more pieces.
func buffers(bytes int) ([]byte, func(), error) {
	length := (bytes+hugePage-1)/hugePage*hugePage + hugePage
	whole, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.Madvise(whole, unix.MADV_HUGEPAGE) // a kernel without them does as well, at more cost
	skip := int(-address(whole) & (hugePage - 1))
	memory := whole[skip : skip+bytes]
	for i := 0; i < len(memory); i += BlockStep {
		memory[i] = 1
	}
	return memory, func() { _ = unix.Munmap(whole) }, nil // the process holds nothing else there
}

// processors lets so many goroutines wait for the kernel at once without the runtime taking their processor away, which
// it would look for all the time. It returns what undoes it.
func processors(wanted int) func() {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, min(wanted, 256)))
	return func() { runtime.GOMAXPROCS(before) }
}
