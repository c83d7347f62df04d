package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device/guard"
)

// look says what the machine is.
func look(ctx context.Context, folder string, l Looking) Look {
	m := Look{Cores: runtime.NumCPU(), Root: os.Getuid() == 0, MachineID: line("/etc/machine-id"),
		Kernel: line("/proc/sys/kernel/osrelease"), Mitigations: map[string]string{},
		Governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")}
	m.Idle, m.WakeMicros = procfs.DeepestIdle(os.DirFS("/"))
	m.Hostname, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		m.User = u.Username
	}
	memory, _ := os.ReadFile("/proc/meminfo")
	for text := range strings.Lines(string(memory)) {
		if f := strings.Fields(text); len(f) > 1 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			m.MemoryBytes = kib << 10
		}
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	for text := range strings.Lines(string(cpus)) {
		if name, value, ok := strings.Cut(text, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	var space unix.Statfs_t
	if err := unix.Statfs(folder, &space); err == nil {
		m.FreeBytes = int64(space.Bavail) * space.Bsize
	}
	files, _ := filepath.Glob("/sys/devices/system/cpu/vulnerabilities/*")
	for _, f := range files {
		m.Mitigations[filepath.Base(f)] = line(f)
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(limited, "fio", "--version").Output(); err == nil {
		m.Fio = strings.TrimSpace(string(out))
	}
	for _, d := range l.Disks {
		seen, objections, err := guard.Check(ctx, nil, d.Path, folder)
		look := DiskLook{Path: d.Path, Identity: seen.Identity.Phrase, Bytes: seen.SizeBytes}
		if no := guard.Consent(seen, d.Consent); no != nil && seen.Name != "" {
			objections = append(objections, *no)
		}
		for _, o := range objections {
			if !l.Mine || o.Kind != guard.Busy {
				look.Objections = append(look.Objections, o.String())
			}
		}
		if err != nil {
			look.Objections = append(look.Objections, err.Error())
		}
		for _, a := range seen.Alignment {
			look.Misaligned = append(look.Misaligned, fmt.Sprintf(
				"it begins %d bytes past a boundary of %s (%d bytes): %s", a.Off, a.Against, a.Bytes, a.Why))
		}
		m.Disks = append(m.Disks, look)
	}
	return m
}

// line is the only line of a small file, "" without the file.
func line(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
