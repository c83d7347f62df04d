package device

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Mount is one line of a mountinfo (proc(5)).
type Mount struct {
	Device  string   `json:"device"` // major:minor
	Root    string   `json:"root"`   // what of the file system is mounted
	Point   string   `json:"point"`
	Options []string `json:"options"`
	FSType  string   `json:"type"`
	Source  string   `json:"source"`
	Super   []string `json:"super_options"`
}

// Mounts are those that this process sees.
func Mounts(system fs.FS) ([]Mount, error) { return MountsOf(system, "self") }

// MountsOf are those that a process sees, by its id.
func MountsOf(system fs.FS, process string) ([]Mount, error) {
	data, err := fs.ReadFile(system, path.Join("proc", process, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	return parseMounts(string(data)), nil
}

func parseMounts(text string) (mounts []Mount) {
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		mounts = append(mounts, Mount{Device: l[2], Root: unescape(l[3]), Point: unescape(l[4]),
			Options: strings.Split(l[5], ","), FSType: r[0], Source: unescape(r[1]), Super: strings.Split(r[2], ",")})
	}
	return mounts
}

// MountOf is the mount that holds an absolute path: the last of those with the longest mount point above it.
func MountOf(mounts []Mount, absolute string) (Mount, bool) {
	var best Mount
	found := false
	for _, m := range mounts {
		inside := m.Point == "/" || absolute == m.Point || strings.HasPrefix(absolute, m.Point+"/")
		if inside && (!found || len(m.Point) >= len(best.Point)) {
			best, found = m, true
		}
	}
	return best, found
}

// unescape undoes the octal escapes of mountinfo: blanks and backslashes in paths.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Uses reports whether a mount is of a file system on the device.
func (m Mount) Uses(system fs.FS, d Device) bool { return m.Device == d.Number || btrfs(system, m, d) }

// btrfs reports whether a mount of btrfs, which has a device number of its own, has d among its devices. The kernel
// lists them by file system; the mount names one of them.
func btrfs(system fs.FS, m Mount, d Device) bool {
	if m.FSType != "btrfs" {
		return false
	}
	if OfMount(system, m) == d.Name {
		return true
	}
	lists, _ := fs.Glob(system, "sys/fs/btrfs/*/devices")
	for _, dir := range lists {
		if all := names(system, dir); slices.Contains(all, d.Name) && slices.Contains(all, OfMount(system, m)) {
			return true
		}
	}
	return false
}
