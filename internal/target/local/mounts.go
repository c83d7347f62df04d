//go:build linux

package local

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// mount is one line of /proc/self/mountinfo (proc(5)).
type mount struct {
	device  string // major:minor
	root    string
	point   string
	options []string
	fstype  string
	source  string
	super   []string
}

func readMounts(system fs.FS) ([]mount, error) {
	data, err := fs.ReadFile(system, "proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	var mounts []mount
	for line := range strings.Lines(string(data)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		mounts = append(mounts, mount{device: l[2], root: unescape(l[3]), point: unescape(l[4]),
			options: strings.Split(l[5], ","), fstype: r[0], source: unescape(r[1]), super: strings.Split(r[2], ",")})
	}
	return mounts, nil
}

// mountOf is the mount that holds an absolute path: the last of those with the longest mount point above it.
func mountOf(mounts []mount, absolute string) (mount, bool) {
	var best mount
	found := false
	for _, m := range mounts {
		inside := m.point == "/" || absolute == m.point || strings.HasPrefix(absolute, m.point+"/")
		if inside && (!found || len(m.point) >= len(best.point)) {
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
