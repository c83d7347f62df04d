//go:build linux

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/procfs"
)

// Every process of a run carries these in its environment, and so do its children unless they clear theirs.
const (
	markVariable = "PLIMSOLL_RUN"  // the run's mark, random, in the journal
	unitVariable = "PLIMSOLL_UNIT" // VM/number of the command
)

// markLength is the length of a mark: 128 bits in hexadecimal.
const markLength = 32

// process holds what /proc tells about one.
type process struct {
	pid, parent  int
	start        uint64 // ticks after boot: with the boot id it tells a process from a later one with its id
	state        byte
	user, system time.Duration // of itself and the children it has waited for
	rssBytes     int64
	threads      int
	unit         string // VM/number, "" when not read from the environment
}

// readProcess reads one live process; ok is false when it is gone or a zombie. One whose first thread has ended while
// another hangs in the kernel is not gone, though it shows as a zombie.
func readProcess(pid int) (process, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	p, err := parseStat(data)
	return p, err == nil && (p.state != 'Z' && p.state != 'X' || p.threads > 1)
}

// parseStat reads /proc/PID/stat (proc(5)). The command name, second and in parentheses, may itself hold anything.
func parseStat(data []byte) (process, error) {
	left, right := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if left < 0 || right < left {
		return process{}, fmt.Errorf("stat %q: no command name", data)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data[:left])))
	if err != nil {
		return process{}, fmt.Errorf("stat %q: %w", data, err)
	}
	f := strings.Fields(string(data[right+1:])) // f[0] is field 3
	if len(f) < 22 {
		return process{}, fmt.Errorf("stat %q: %d fields after the name, want at least 22", data, len(f))
	}
	if s := f[0]; len(s) != 1 || (s[0]|0x20) < 'a' || (s[0]|0x20) > 'z' {
		return process{}, fmt.Errorf("stat %q: state %q: not a letter", data, s)
	}
	var bad error
	number := func(field int) uint64 {
		v, err := strconv.ParseInt(f[field-3], 10, 64)
		if err != nil || v < 0 || v > 1<<38 { // more would be centuries of CPU time or a pebibyte of memory
			bad = errors.Join(bad, fmt.Errorf("stat field %d %q: not a count", field, f[field-3]))
		}
		return uint64(max(v, 0))
	}
	ticks := func(a, b int) time.Duration {
		return time.Duration(number(a)+number(b)) * procfs.Tick
	}
	p := process{pid: pid, parent: int(number(4)), start: number(22), state: f[0][0],
		threads: int(number(20)), user: ticks(14, 16), system: ticks(15, 17),
		rssBytes: int64(number(24)) * int64(os.Getpagesize())}
	return p, bad
}

// pids lists the ids in /proc.
func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var ids []int
	for _, n := range names {
		if id, err := strconv.Atoi(n); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// marked lists the live processes that carry the mark, and their descendants whether or not they do.
func marked(mark string) ([]process, error) {
	if len(mark) != markLength { // never match processes for having no mark
		return nil, nil
	}
	ids, err := pids()
	if err != nil {
		return nil, err
	}
	children := map[int][]process{}
	var found []process
	for _, id := range ids {
		p, ok := readProcess(id)
		if !ok || id == os.Getpid() {
			continue
		}
		env, err := procfs.Environment(p.pid)
		if err == nil && variable(env, markVariable) == mark {
			p.unit = variable(env, unitVariable)
			found = append(found, p)
			continue
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for i := 0; i < len(found); i++ {
		for _, child := range children[found[i].pid] {
			child.unit = found[i].unit
			found = append(found, child)
		}
	}
	return found, nil
}

// variable finds the value of a name in an environment as /proc shows it.
func variable(environ []byte, name string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if v, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(v)
		}
	}
	return ""
}

// kill ends the process.
func (p process) kill() error { return p.signal(unix.SIGKILL) }

// signal reaches exactly that process: a later one with the same id is left alone, and one that has ended is fine.
func (p process) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case errors.Is(err, unix.ENOSYS): // before Linux 5.3: a small window remains
		fd = -1
	case err != nil:
		return fmt.Errorf("process %d: %w", p.pid, err)
	default:
		defer unix.Close(fd)
	}
	if now, ok := readProcess(p.pid); !ok || now.start != p.start {
		return nil
	}
	if fd < 0 {
		err = unix.Kill(p.pid, sig)
	} else {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %v: %w", p.pid, sig, err)
	}
	return nil
}

// bootID tells one boot of the host from another.
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// describe names processes for people: at most a few, in order.
func describe(list []process) string {
	slices.SortFunc(list, func(a, b process) int { return a.pid - b.pid })
	var words []string
	for i, p := range list {
		if i == 5 {
			words = append(words, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		text := fmt.Sprintf("%d (state %c)", p.pid, p.state)
		if standing := procfs.Stands(p.pid); len(standing) > 0 {
			text = standing[0].String()
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}
