package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/kit/procfs"
)

// kibi is the unit of /proc/meminfo.
const kibi = 1024

// modes are the columns of a CPU in /proc/stat that node_cpu_seconds_total has; those of guests, which follow, are part
// of user and nice.
var modes = [...]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

func trimmed(data []byte) []byte { return bytes.TrimSpace(data) }

// kernel emits what /proc/stat has besides the CPUs.
func kernel(data []byte, emit exporter.Emit) error {
	names := map[string]string{
		"ctxt":          "node_context_switches_total",
		"intr":          "node_intr_total",
		"processes":     "node_forks_total",
		"btime":         "node_boot_time_seconds",
		"procs_running": "node_procs_running",
		"procs_blocked": "node_procs_blocked",
	}
	return procfs.Lines(data, func(f []string) error {
		name := names[f[0]]
		if name == "" {
			return nil
		}
		if len(f) < 2 {
			return procfs.ErrShort
		}
		n, err := procfs.Counts(f[1:2]) // of intr, the sum
		if err != nil {
			return err
		}
		delete(names, f[0])
		emit(name, float64(n[0]))
		return nil
	})
}

// load emits /proc/loadavg.
func load(data []byte, emit exporter.Emit) error {
	fields := strings.Fields(string(data))
	if len(fields) < 3 {
		return procfs.ErrShort
	}
	for i, name := range []string{"node_load1", "node_load5", "node_load15"} {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(v >= 0) {
			return fmt.Errorf("%.30q is no load", fields[i])
		}
		emit(name, v)
	}
	return nil
}

var parentheses = regexp.MustCompile(`\((.*)\)`)

// memory emits /proc/meminfo: Active(anon) in kB becomes node_memory_Active_anon_bytes, HugePages_Total, which has no
// unit, node_memory_HugePages_Total.
func memory(data []byte, emit exporter.Emit) error {
	seen := map[string]bool{}
	return procfs.Lines(data, func(f []string) error {
		name, ok := strings.CutSuffix(f[0], ":")
		if !ok || len(f) < 2 {
			return procfs.ErrShort
		}
		n, err := procfs.Counts(f[1:2])
		if err != nil {
			return err
		}
		name = "node_memory_" + safe(parentheses.ReplaceAllString(name, "_${1}"))
		v := float64(n[0])
		switch {
		case len(f) == 2:
		case len(f) == 3 && f[2] == "kB":
			v *= kibi
			name += "_bytes"
		default:
			return fmt.Errorf("unit %.30q is unknown", f[2])
		}
		if !seen[name] {
			seen[name] = true
			emit(name, v)
		}
		return nil
	})
}

// safe replaces what a metric's name cannot have.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// network emits /proc/net/dev, whose second line names the columns: of what was received, then of what was sent.
func network(data []byte, emit exporter.Emit) error {
	var names []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		parts := strings.Split(line, "|")
		if len(parts) != 3 || !strings.Contains(parts[1], "bytes") {
			continue
		}
		for i, direction := range []string{"receive_", "transmit_"} {
			for _, column := range strings.Fields(parts[i+1]) {
				names = append(names, "node_network_"+direction+safe(column)+"_total")
			}
		}
		break
	}
	if names == nil {
		return errors.New("no line names the columns")
	}
	return procfs.Lines(data, func(f []string) error {
		line := strings.Join(f, " ")
		if strings.Contains(line, "|") {
			return nil
		}
		// A name may end with a colon, as those of aliases do: the last one before the numbers ends it.
		at := strings.LastIndex(line, ":")
		if at < 1 {
			return procfs.ErrShort
		}
		device := line[:at]
		values := strings.Fields(line[at+1:])
		if len(values) != len(names) {
			return fmt.Errorf("%d numbers for %d columns", len(values), len(names))
		}
		n, err := procfs.Counts(values)
		if err != nil || seen[device] {
			return err
		}
		seen[device] = true
		for i, name := range names {
			emit(name, float64(n[i]), "device", device)
		}
		return nil
	})
}

// ignored are the devices that node_exporter leaves out: those in memory, and partitions.
var ignored = regexp.MustCompile(`^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`)

// column holds what a column of /proc/diskstats is called, and what one of it is in the metric's unit.
type column struct {
	name string
	unit float64
}

// columns follow the device's name (Documentation/admin-guide/iostats.rst). Kernels before 4.18 have the first 11,
// before 5.5 15.
var columns = []column{
	{"node_disk_reads_completed_total", 1},
	{"node_disk_reads_merged_total", 1},
	{"node_disk_read_bytes_total", procfs.SectorBytes},
	{"node_disk_read_time_seconds_total", 1e-3},
	{"node_disk_writes_completed_total", 1},
	{"node_disk_writes_merged_total", 1},
	{"node_disk_written_bytes_total", procfs.SectorBytes},
	{"node_disk_write_time_seconds_total", 1e-3},
	{"node_disk_io_now", 1},
	{"node_disk_io_time_seconds_total", 1e-3},
	{"node_disk_io_time_weighted_seconds_total", 1e-3},
	{"node_disk_discards_completed_total", 1},
	{"node_disk_discards_merged_total", 1},
	{"node_disk_discarded_sectors_total", 1},
	{"node_disk_discard_time_seconds_total", 1e-3},
	{"node_disk_flush_requests_total", 1},
	{"node_disk_flush_requests_time_seconds_total", 1e-3},
}

// disks emits /proc/diskstats.
func disks(data []byte, given map[string]string, emit exporter.Emit) error {
	list, err := procfs.Disks(data, len(columns))
	for _, d := range list {
		name, is := given[d.Major+":"+d.Minor]
		if len(given) > 0 && !is || len(given) == 0 && ignored.MatchString(d.Name) {
			continue
		}
		d.Name = cmp.Or(name, d.Name)
		emit("node_disk_info", 1, "device", d.Name, "major", d.Major, "minor", d.Minor)
		for i, n := range d.Counts {
			if c := columns[i]; c.unit < 1 {
				emit(c.name, float64(n)/(1/c.unit), "device", d.Name) // 1000 is exact, 0.001 is not
			} else {
				emit(c.name, float64(n)*c.unit, "device", d.Name)
			}
		}
	}
	return err
}

// givenDisks are the block devices of /dev that have other names there than the kernel's, by their numbers: a container
// was given them, as a pod its volumes. Then they are its disks, and all others are not.
func givenDisks(root fs.FS, number func(fs.FileInfo) (string, bool)) map[string]string {
	given := map[string]string{}
	data, _ := fs.ReadFile(root, "proc/diskstats")
	list, _ := procfs.Disks(data, 0)
	kernel := map[string]string{}
	for _, d := range list {
		kernel[d.Major+":"+d.Minor] = d.Name
	}
	entries, _ := fs.ReadDir(root, "dev")
	for _, e := range entries {
		if e.Type()&(fs.ModeDevice|fs.ModeCharDevice) != fs.ModeDevice {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		if n, ok := number(info); ok && kernel[n] != "" && kernel[n] != e.Name() {
			given[n] = e.Name()
		}
	}
	return given
}

// paged are the lines of /proc/vmstat that node_exporter serves.
var paged = regexp.MustCompile(`^(oom_kill|pgpg|pswp|pg.*fault)`)

// paging emits /proc/vmstat.
func paging(data []byte, emit exporter.Emit) error {
	seen := map[string]bool{}
	return procfs.Lines(data, func(f []string) error {
		if !paged.MatchString(f[0]) || seen[f[0]] {
			return nil
		}
		if len(f) != 2 {
			return procfs.ErrShort
		}
		n, err := procfs.Counts(f[1:])
		if err != nil {
			return err
		}
		seen[f[0]] = true
		emit("node_vmstat_"+safe(f[0]), float64(n[0]))
		return nil
	})
}

// stalls emits one file of /proc/pressure (Documentation/accounting/psi.rst): of some tasks, and of all at once, which
// for CPUs says nothing and of interrupts is all there is.
func stalls(resource string, data []byte, emit exporter.Emit) error {
	return procfs.Stalls(data, func(kind string, waited time.Duration) {
		name := map[string]string{"some": "waiting", "full": "stalled"}[kind]
		if resource != "cpu" || kind != "full" {
			emit("node_pressure_"+resource+"_"+name+"_seconds_total", waited.Seconds())
		}
	})
}

// mounted is a line of a mounts file.
type mounted struct{ device, point, kind string }

// elsewhere are file systems whose files are not on this machine, bodiless those that hold none.
var (
	elsewhere = regexp.MustCompile(
		`^(nfs4?|cifs|smb3?|smbfs|9p|afs|ceph|glusterfs|lustre|gpfs|ocfs2|beegfs|fuse(\..*|ctl)?|autofs)$`)
	bodiless = regexp.MustCompile(
		`^(binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|hugetlbfs|iso9660|mqueue|` +
			`nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$`,
	)
	notBelow = regexp.MustCompile(
		`^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)`)
)

// parseMounts lists the file systems worth telling of (fstab(5)), without those that are not on this machine.
func parseMounts(data []byte) (list []mounted) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	_ = procfs.Lines(data, func(f []string) error {
		if len(f) < 3 {
			return nil
		}
		m := mounted{unescape.Replace(f[0]), unescape.Replace(f[1]), f[2]}
		if !elsewhere.MatchString(m.kind) && !bodiless.MatchString(m.kind) && !notBelow.MatchString(m.point) &&
			!slices.Contains(list, m) {
			list = append(list, m)
		}
		return nil
	})
	return list
}
