// Package procfs reads the counters that Linux keeps of a whole machine: what its CPUs did (/proc/stat) and what its
// block devices completed (/proc/diskstats). It is given the text of a file and gives numbers in the kernel's own
// units, with the words to turn them into seconds and bytes. NUMANodes alone is given the machine's files; Environment,
// Fields and those that tell who stands read processes of this one.
//
// It stands below all that count a machine: the exporter of hosts and the sandboxes of this machine read the same file
// with the same reader. It names no metric. A line that cannot be read is an error beside what could
// be read; it never hides the other lines.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fields are those of /proc/PID/stat (proc(5)) from the third, its state, on: what comes before may hold anything.
// There are none of a process that is gone or may not be seen.
func Fields(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// Units of /proc.
const (
	// Tick counts the times of CPUs: 1/USER_HZ, the same on every architecture that Go runs on.
	Tick        = 10 * time.Millisecond
	SectorBytes = 512 // of /proc/diskstats, whatever the device's own sectors are
)

// Mode tells what a CPU did with its time, as the columns of /proc/stat have it (proc(5)).
type Mode int

// The modes. Time of guests is part of User, that of guests of low priority part of Nice.
const (
	User Mode = iota
	Nice
	System
	Idle
	IOWait
	IRQ
	SoftIRQ
	Steal
	Guest
	GuestNice
	Modes // how many there are
)

// mostTicks bounds what a CPU may have counted: 87 years. Below it times fit into a time.Duration.
const mostTicks = 1 << 38

// CPU is how one CPU has spent its time since it was switched on.
type CPU struct {
	Number int
	Ticks  [Modes]uint64
}

// Seconds is the time in a mode.
func (c CPU) Seconds(m Mode) float64 { return float64(c.Ticks[m]) / float64(time.Second/Tick) }

// Time is the time in several modes together.
func (c CPU) Time(modes ...Mode) (sum time.Duration) {
	for _, m := range modes {
		sum += time.Duration(c.Ticks[m]) * Tick
	}
	return sum
}

// Rising returns c with times that went back since before held at what they were: the kernel's time of waits for I/O
// may go back (proc(5)), and what reads counters takes that for a restart. When idle time went back by more than that
// can explain, the CPU was unplugged and came back, and c is returned as it is. The zero value is before everything.
func (c CPU) Rising(before CPU) CPU {
	const restarted = 3 * time.Second
	if before.Time(Idle)-c.Time(Idle) >= restarted {
		return c
	}
	for m := range c.Ticks {
		c.Ticks[m] = max(c.Ticks[m], before.Ticks[m])
	}
	return c
}

// CPUs reads the lines of single CPUs of /proc/stat (proc(5)). Old kernels have fewer columns; the others are 0. Of a
// CPU that is there twice the first counts.
func CPUs(data []byte) (list []CPU, err error) {
	err = Lines(data, func(f []string) error {
		digits, ok := strings.CutPrefix(f[0], "cpu")
		if !ok || digits == "" {
			return nil // the sum over all, or something else
		}
		number, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return nil
		}
		if len(f) < 1+int(Idle)+1 {
			return ErrShort
		}
		one := CPU{Number: int(number)}
		ticks, err := Counts(f[1:min(len(f), 1+int(Modes))])
		if err != nil {
			return err
		}
		for i, t := range ticks {
			if t > mostTicks {
				return fmt.Errorf("%d is no time", t)
			}
			one.Ticks[i] = t
		}
		if !slices.ContainsFunc(list, func(o CPU) bool { return o.Number == one.Number }) {
			list = append(list, one)
		}
		return nil
	})
	return list, err
}

// Disk holds what a block device, whole or a partition, has completed since it was there.
type Disk struct {
	Major, Minor, Name string
	// Counts are the columns behind the name (Documentation/admin-guide/iostats.rst): reads completed, reads merged,
	// sectors read, milliseconds reading; the same of writes; in progress, milliseconds busy, milliseconds weighted;
	// the first four of discards; flushes, milliseconds flushing. Kernels before 4.18 have the first 11, before 5.5 15.
	Counts []uint64
}

// Places in Disk.Counts.
const (
	ReadsCompleted  = 0
	SectorsRead     = 2
	MillisReading   = 3
	WritesCompleted = 4
	SectorsWritten  = 6
	MillisWriting   = 7
	MillisBusy      = 9
)

// Disks reads /proc/diskstats, whose lines have at most the given number of counters that are wanted. Of a device that
// is there twice the first counts.
func Disks(data []byte, counters int) (list []Disk, err error) {
	const before, fewest = 3, 11 // columns: in front, and of counters
	err = Lines(data, func(f []string) error {
		if len(f) < before+fewest {
			return ErrShort
		}
		d := Disk{Major: f[0], Minor: f[1], Name: f[2]}
		var err error
		if d.Counts, err = Counts(f[before:min(len(f), before+counters)]); err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(o Disk) bool { return o.Name == d.Name }) {
			list = append(list, d)
		}
		return nil
	})
	return list, err
}

// ErrShort is the error of a line with fewer columns than any kernel writes.
var ErrShort = errors.New("it is cut short")

// mostErrors: most of the errors of one file are like the first.
const mostErrors = 3

// Lines calls f with the words of every line that has some, and joins its first errors, each with the line it is about.
func Lines(data []byte, f func(fields []string) error) error {
	var errs []error
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := f(fields); err != nil && len(errs) < mostErrors {
			errs = append(errs, fmt.Errorf("line %.60q: %w", strings.TrimSpace(line), err))
		}
	}
	return errors.Join(errs...)
}

// Counts parses whole numbers that are not negative.
func Counts(fields []string) ([]uint64, error) {
	out := make([]uint64, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.30q is no count", f)
		}
		out[i] = n
	}
	return out, nil
}

// Stalls hands on what a file of /proc/pressure has counted (Documentation/accounting/psi.rst): for how long some tasks
// have waited, and all of them at once, "some" and "full", each once.
func Stalls(data []byte, f func(kind string, waited time.Duration)) error {
	seen := map[string]bool{}
	return Lines(data, func(fields []string) error {
		kind := fields[0]
		if kind != "some" && kind != "full" || seen[kind] {
			return nil
		}
		text, ok := strings.CutPrefix(fields[len(fields)-1], "total=")
		if !ok {
			return ErrShort
		}
		n, err := Counts([]string{text})
		if err != nil {
			return err
		}
		seen[kind] = true
		f(kind, time.Duration(min(n[0], mostMicros))*time.Microsecond)
		return nil
	})
}

// mostMicros bounds what a wait may have counted: 87 years.
const mostMicros = mostTicks * uint64(Tick/time.Microsecond)
