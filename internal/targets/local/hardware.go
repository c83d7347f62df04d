//go:build linux

package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device"
	"plimsoll/result"
	"plimsoll/unit"
)

// cpuFacts holds what /proc/cpuinfo and /sys/devices/system/cpu say.
type cpuFacts struct {
	model     string
	count     int
	megahertz float64 // of the first CPU when looked at; 0 unknown
}

func readCPU(system fs.FS) (cpuFacts, error) {
	data, err := fs.ReadFile(system, "proc/cpuinfo")
	if err != nil {
		return cpuFacts{}, fmt.Errorf("/proc/cpuinfo: %s", device.Reason(err))
	}
	var c cpuFacts
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			c.count++
		case "model name", "Model":
			c.model = cmp.Or(c.model, value)
		case "cpu MHz":
			if c.megahertz == 0 {
				c.megahertz, _ = strconv.ParseFloat(value, 64)
			}
		}
	}
	if c.count == 0 {
		return c, errors.New("/proc/cpuinfo: lists no processor")
	}
	return c, nil
}

func (c cpuFacts) facts(l *factList, system fs.FS) {
	const group = "cpu"
	l.add(group, "model", c.model, "/proc/cpuinfo: no model name")
	l.add(group, "logical CPUs", strconv.Itoa(c.count), "")
	clock := ""
	if c.megahertz > 0 {
		clock = strconv.FormatFloat(c.megahertz, 'f', 0, 64) + " MHz"
	}
	l.add(group, "clock at check", clock, "/proc/cpuinfo: no cpu MHz").Across = result.Volatile
	l.file(system, group, "governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	l.file(system, group, "frequency driver", "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
	l.file(system, group, "highest frequency (kHz)", "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
	l.file(system, group, "SMT", "sys/devices/system/cpu/smt/control")
	active := l.file(system, group, "SMT active", "sys/devices/system/cpu/smt/active")
	threadsPerCore(active, system)
	l.file(system, group, "idle driver", "sys/devices/system/cpu/cpuidle/current_driver")
	idleFacts(l, system)
	l.file(system, group, "isolated CPUs", "sys/devices/system/cpu/isolated")
	nodes, err := fs.Glob(system, "sys/devices/system/node/node[0-9]*")
	count := ""
	if err == nil && len(nodes) > 0 {
		count = strconv.Itoa(len(nodes))
	}
	l.add(group, "NUMA nodes", count, "/sys/devices/system/node: lists none")
	flaws, _ := fs.Glob(system, "sys/devices/system/cpu/vulnerabilities/*")
	if len(flaws) == 0 {
		l.add(group, "mitigations", "", "/sys/devices/system/cpu/vulnerabilities: lists none")
	}
	slices.Sort(flaws)
	for _, f := range flaws {
		l.file(system, group, "mitigation of "+path.Base(f), f)
	}
}

// idleFacts tells the deepest idle state that the first CPU may enter, and how long waking from it takes.
func idleFacts(l *factList, system fs.FS) {
	deepest, wake := procfs.DeepestIdle(system)
	if deepest == "" {
		l.add("cpu", "deepest idle state", "", "/"+procfs.IdleStates+": lists none that may be entered")
		return
	}
	f := l.add("cpu", "deepest idle state", fmt.Sprintf("%s, %g µs to wake", deepest, wake), "")
	f.Kind, f.Number = result.IdleWake, wake/1e6
}

// threadsPerCore says of the fact whether threads share cores how many do, as the first CPU's list of siblings tells.
func threadsPerCore(f *result.Fact, system fs.FS) {
	siblings, err := fs.ReadFile(system, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
	if err != nil {
		return
	}
	if n, ok := listed(strings.TrimSpace(string(siblings))); ok {
		f.Kind, f.Number = result.ThreadsPerCore, float64(n)
	}
}

// listed counts the members of a list of CPUs as the kernel writes it: "0,4" and "0-1" are two.
func listed(list string) (n int, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, also := strconv.Atoi(last)
		if err != nil || also != nil || to < from {
			return 0, false
		}
		n += to - from + 1
	}
	return n, true
}

// memoryFacts holds what /proc/meminfo says, in bytes.
type memoryFacts struct {
	total, available int64
	lines            map[string]string
}

func readMemory(system fs.FS) (memoryFacts, error) {
	data, err := fs.ReadFile(system, "proc/meminfo")
	if err != nil {
		return memoryFacts{}, fmt.Errorf("/proc/meminfo: %s", device.Reason(err))
	}
	m := memoryFacts{lines: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		m.lines[name] = strings.TrimSpace(value)
	}
	var bad []error
	for name, to := range map[string]*int64{"MemTotal": &m.total, "MemAvailable": &m.available} {
		kib, err := strconv.ParseInt(strings.TrimSuffix(m.lines[name], " kB"), 10, 64)
		if err != nil {
			bad = append(bad, fmt.Errorf("/proc/meminfo: %s %q: not a number of kB", name, m.lines[name]))
		}
		*to = kib << 10
	}
	return m, errors.Join(bad...)
}

func (m memoryFacts) facts(l *factList, system fs.FS) {
	const group = "memory"
	for _, f := range []struct {
		name   string
		bytes  int64
		across result.Across
	}{{"total", m.total, result.Noted}, {"available at check", m.available, result.Volatile}} {
		value := ""
		if f.bytes > 0 {
			value = unit.Bytes(f.bytes).String()
		}
		l.add(group, f.name, value, "/proc/meminfo does not say").Across = f.across
	}
	for _, f := range []struct {
		name, line string
		across     result.Across
	}{{"swap", "SwapTotal", result.Noted}, {"swap free", "SwapFree", result.Volatile},
		{"huge pages", "HugePages_Total", result.Noted}, {"huge page size", "Hugepagesize", result.Noted}} {
		l.add(group, f.name, m.lines[f.line], "/proc/meminfo: no "+f.line).Across = f.across
	}
	thp, why := device.Selected(system, "sys/kernel/mm/transparent_hugepage/enabled")
	l.add(group, "transparent huge pages", thp, why)
	l.file(system, group, "swappiness", "proc/sys/vm/swappiness")
	l.file(system, group, "dirty ratio", "proc/sys/vm/dirty_ratio")
	l.file(system, group, "dirty background ratio", "proc/sys/vm/dirty_background_ratio")
}

// clockFacts tells how far the wall clock may be off: the kernel's own estimate (adjtimex(2)), kept by whatever
// disciplines the clock. All sandboxes share this clock, so between them there is no offset.
func clockFacts(l *factList, system fs.FS) {
	const group = "clock"
	l.file(system, group, "source", "sys/devices/system/clocksource/clocksource0/current_clocksource")
	l.add(group, "offset between nodes", "0 s: all nodes are this host", "")
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		l.add(group, "synchronised", "", "adjtimex: "+err.Error())
		l.add(group, "largest error of the wall clock", "", "adjtimex: "+err.Error()).Across = result.Volatile
		return
	}
	const timeError, staUnsync = 5, 0x40
	if state == timeError || t.Status&staUnsync != 0 {
		l.add(group, "synchronised", "no", "")
		l.add(group, "largest error of the wall clock", "", "nothing keeps the clock in step").Across = result.Volatile
		return
	}
	l.add(group, "synchronised", "yes", "")
	l.add(group, "largest error of the wall clock", (time.Duration(t.Maxerror) * time.Microsecond).String(), "").
		Across = result.Volatile
}
