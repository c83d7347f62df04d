package k8s

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// hierarchy is one of the kernel's trees of control groups.
type hierarchy struct {
	at      string // where this machine has it mounted
	name    string // of the folder below /sys/fs/cgroup
	options string // "" for that of version 2
}

// hierarchies are those that are mounted with their root.
func hierarchies() (all []hierarchy, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		front, back, _ := strings.Cut(strings.TrimSpace(line), " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if len(f) < 5 || len(b) < 3 || !strings.HasPrefix(f[4], "/sys/fs/cgroup") {
			continue
		}
		h := hierarchy{at: f[4], name: strings.TrimPrefix(f[4], "/sys/fs/cgroup")}
		switch b[0] {
		case "cgroup":
			var options []string
			for o := range strings.SplitSeq(b[2], ",") {
				if o != "rw" && o != "ro" && o != "clone_children" && !strings.HasPrefix(o, "release_agent=") &&
					o != "xattr" {
					options = append(options, o)
				}
			}
			h.options = strings.Join(options, ",")
			if strings.HasPrefix(h.options, "name=") {
				h.options = "none," + h.options
			}
		case "cgroup2":
		default:
			continue
		}
		all = append(all, h)
	}
	if len(all) == 0 {
		return nil, errors.New("no control groups are mounted below /sys/fs/cgroup")
	}
	return all, nil
}

// enter puts this process into a group of that name in each hierarchy.
func enter(all []hierarchy, group string) error {
	for _, h := range all {
		at := h.at
		for part := range strings.SplitSeq(group, "/") {
			if h.options == "" {
				delegate(at)
			}
			above := at
			at = filepath.Join(at, part)
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			for _, inherited := range []string{"cpuset.cpus", "cpuset.mems"} { // which version 1 leaves empty
				if value, err := os.ReadFile(filepath.Join(above, inherited)); err == nil && h.options != "" {
					if err := os.WriteFile(filepath.Join(at, inherited), value, 0o644); err != nil {
						return err
					}
				}
			}
		}
		if err := os.WriteFile(filepath.Join(at, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// delegate gives a group of version 2 all its controllers to hand on.
func delegate(at string) {
	has, _ := os.ReadFile(filepath.Join(at, "cgroup.controllers"))
	for name := range strings.FieldsSeq(string(has)) {
		// One that cannot be had is missed by nobody: the kubelet says which it wants.
		_ = os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+"+name), 0o644)
	}
}

// mountGroups mounts the hierarchies as the process's own namespace of groups shows them.
func mountGroups(all []hierarchy) error {
	const root = "/sys/fs/cgroup"
	list := []mount{{"sysfs", "/sys", "sysfs", 0, ""}}
	if len(all) == 1 && all[0].options == "" {
		if err := mounts(append(list, mount{"cgroup2", root, "cgroup2", 0, ""})); err != nil {
			return err
		}
		if err := os.Mkdir(root+"/init", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.WriteFile(root+"/init/cgroup.procs", []byte("0"), 0o644); err != nil {
			return err
		}
		delegate(root)
		return nil
	}
	list = append(list, mount{"tmpfs", root, "tmpfs", 0, "mode=755"})
	for _, h := range all {
		if h.options == "" {
			list = append(list, mount{"cgroup2", root + h.name, "cgroup2", 0, ""})
		} else {
			list = append(list, mount{"cgroup", root + h.name, "cgroup", 0, h.options})
		}
	}
	if err := mounts(list); err != nil {
		return err
	}
	for _, h := range all { // cpu beside cpu,cpuacct
		for one := range strings.SplitSeq(strings.TrimPrefix(h.name, "/"), ",") {
			if strings.Contains(h.name, ",") {
				if err := os.Symlink(strings.TrimPrefix(h.name, "/"), filepath.Join(root, one)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeGroup removes a group and those below it, from which all processes have gone or are about to.
func removeGroup(group string) error {
	all, err := hierarchies()
	if err != nil {
		return nil // there are none
	}
	return until(patient, func() error {
		var failed error
		for _, h := range all {
			var list []string
			_ = filepath.WalkDir(filepath.Join(h.at, group), func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					list = append(list, name)
				}
				return nil // it is going away
			})
			for i := len(list) - 1; i >= 0; i-- {
				if err := syscall.Rmdir(list[i]); err != nil && !errors.Is(err, syscall.ENOENT) {
					failed = fmt.Errorf("%s: %w", list[i], err)
				}
			}
		}
		return failed
	})
}
