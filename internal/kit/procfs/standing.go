package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Standing is a thread that does not come on: it is stopped (T), or waits in the kernel where no signal reaches it (D),
// as on a device that does not answer.
type Standing struct {
	PID, TID int
	Name     string
	State    byte
	Where    string // it waits in the kernel; "" where that cannot be read
	// On are the block devices, and the file systems without one, of what it has open, where it hangs.
	On []string
}

// String names it for people.
func (s Standing) String() string {
	text := fmt.Sprintf("process %d (%s)", s.PID, s.Name)
	if s.TID != s.PID {
		text = fmt.Sprintf("thread %d of process %d (%s)", s.TID, s.PID, s.Name)
	}
	if s.State != 'D' {
		return text + " is stopped (state T)"
	}
	text += " hangs in the kernel (state D"
	if s.Where != "" {
		text += ", in " + s.Where
	}
	if len(s.On) > 0 {
		text += "; it has open files of " + strings.Join(s.On, " and ")
	}
	return text + ")"
}

// Stands lists the threads of a process that stand at this moment, none when it is gone.
func Stands(pid int) (list []Standing) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid)) // the pattern is sound
	for _, task := range tasks {
		data, err := os.ReadFile(task + "/stat")
		left, right := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
		if err != nil || left < 0 || right < left || len(data) < right+3 {
			continue
		}
		s := Standing{PID: pid, Name: string(data[left+1 : right]), State: data[right+2]}
		if s.TID, err = strconv.Atoi(filepath.Base(task)); err != nil ||
			!strings.ContainsRune("DTt", rune(s.State)) {
			continue
		}
		if s.State == 'D' {
			s.Where, s.On = waitsIn(task), opened(task)
		} else if s.TID != pid {
			continue // a stop is of the whole process
		}
		list = append(list, s)
	}
	return list
}

// waitsIn is the function of the kernel that a thread waits in, which only its owner and root may read.
func waitsIn(task string) string {
	text, err := os.ReadFile(task + "/wchan")
	if name := strings.TrimSpace(string(text)); err == nil && name != "" && name != "0" {
		return name
	}
	text, err = os.ReadFile(task + "/stack")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n") // [<0>] folio_wait_bit+0x12a/0x2c0
	_, name, _ := strings.Cut(line, "] ")
	name, _, _ = strings.Cut(name, "+")
	return name
}

// remote are file systems behind which another machine or a program stands.
var remote = regexp.MustCompile(`^(nfs|cifs|smb|ceph|fuse|9p|virtiofs)`)

// opened are the devices of what a thread has open. The files themselves are not looked at: that would hang, too.
func opened(task string) (on []string) {
	mounts := map[string]string{}
	text, _ := os.ReadFile(task + "/mountinfo")
	for line := range strings.Lines(string(text)) { // 36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/sda1 rw
		id, rest, _ := strings.Cut(line, " ")
		_, rest, _ = strings.Cut(rest, " - ")
		switch f := strings.Fields(rest); {
		case len(f) < 2:
		case strings.HasPrefix(f[1], "/dev/"):
			mounts[id] = f[1]
		case remote.MatchString(f[0]):
			mounts[id] = f[1] + " (" + f[0] + ")"
		}
	}
	files, _ := os.ReadDir(task + "/fd")
	for _, f := range files {
		name, _ := os.Readlink(filepath.Join(task, "fd", f.Name()))
		if device, is := strings.CutPrefix(name, "/dev/"); is && filepath.IsLocal(device) {
			if _, err := os.Lstat("/sys/class/block/" + strings.ReplaceAll(device, "/", "!")); err == nil {
				on = append(on, name)
			}
			continue
		}
		info, _ := os.ReadFile(filepath.Join(task, "fdinfo", f.Name()))
		_, id, _ := strings.Cut(string(info), "mnt_id:")
		id, _, _ = strings.Cut(id, "\n")
		if mount := mounts[strings.TrimSpace(id)]; mount != "" {
			on = append(on, mount)
		}
	}
	slices.Sort(on)
	return slices.Compact(on)
}

// GroupStands is Stands of every process of a group that the caller has begun.
func GroupStands(group int) (list []Standing) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := Fields(pid); len(fields) > 2 && fields[2] == strconv.Itoa(group) {
			list = append(list, Stands(pid)...)
		}
	}
	return list
}
