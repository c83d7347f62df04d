package device

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Place is where a path of the user's leads: to a block device, or to a file or folder on one.
type Place struct {
	Path   string `json:"path"`            // as given
	Device string `json:"-"`               // kernel name
	Mount  *Mount `json:"mount,omitempty"` // that holds the file or folder; nil for a device's own node
}

// Find follows an absolute path to its block device. A symbolic link is followed to its end; a device node is known by
// its number, whatever it is called. The error is fs.ErrNotExist where nothing is there.
func Find(system fs.FS, given string) (Place, error) {
	p := Place{Path: given}
	name := strings.Trim(path.Clean("/"+given), "/")
	if name == "" {
		name = "."
	}
	info, err := fs.Stat(system, name)
	if err != nil {
		return p, fmt.Errorf("%s: %w", given, cause(err))
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeCharDevice != 0:
		hint := "give the block device"
		if strings.HasPrefix(path.Base(given), "nvme") {
			hint = "give a namespace of it, like " + given + "n1"
		}
		return p, fmt.Errorf("%s: is a character device, not a block device: %s", given, hint)
	case mode&fs.ModeDevice != 0:
		number, ok := NumberOf(info)
		if !ok {
			return p, fmt.Errorf("%s: the number of the device is not told here", given)
		}
		p.Device = OfNumber(system, number)
		if p.Device == "" {
			return p, fmt.Errorf("%s: the kernel knows no block device %s: it is gone, or was never there: %w",
				given, number, fs.ErrNotExist)
		}
		return p, nil
	case !mode.IsDir() && !mode.IsRegular():
		return p, fmt.Errorf("%s: is neither a block device nor a file nor a folder", given)
	}
	mounts, err := Mounts(system)
	if err != nil {
		return p, err
	}
	m, ok := MountOf(mounts, "/"+real(system, name))
	if !ok {
		return p, fmt.Errorf("%s: /proc/self/mountinfo: no mount holds it", given)
	}
	p.Mount = &m
	if p.Device = OfMount(system, m); p.Device == "" {
		return p, fmt.Errorf("%s: lies on %s (%s), which names no block device of this machine: give the device itself",
			given, m.Source, m.FSType)
	}
	return p, nil
}

// real is a name without symbolic links, as far as they can be read.
func real(system fs.FS, name string) string {
	for range 40 {
		again := false
		at := ""
		for part := range strings.SplitSeq(name, "/") {
			at = path.Join(at, part)
			to, err := fs.ReadLink(system, at)
			if err != nil {
				continue
			}
			rest := strings.TrimPrefix(strings.TrimPrefix(name, at), "/")
			if !path.IsAbs(to) {
				to = path.Join("/", path.Dir(at), to)
			}
			name, again = strings.Trim(path.Join(to, rest), "/"), true
			break
		}
		if !again {
			return strings.TrimPrefix(name, ".")
		}
	}
	return name
}

// OfNumber is the kernel name of a device number, major:minor; "" when there is none.
func OfNumber(system fs.FS, number string) string {
	for _, pattern := range []string{"sys/block/*/dev", "sys/block/*/*/dev"} {
		files, _ := fs.Glob(system, pattern)
		for _, f := range files {
			if content(system, f) == number {
				return path.Base(path.Dir(f))
			}
		}
	}
	return ""
}

// Whole is the kernel name of the disk of a partition, and of anything else its own; "" when there is none.
func Whole(system fs.FS, name string) string {
	dir, err := folder(system, name)
	switch {
	case err != nil:
		return ""
	case path.Dir(dir) != "sys/block":
		return path.Base(path.Dir(dir))
	}
	return name
}

// OfMount is the kernel name of the device of a mount, of the partition where it is one; "" when none is to be found,
// as for network and stacked file systems. Some file systems (btrfs) report a device number of their own: then the
// source's name must do.
func OfMount(system fs.FS, m Mount) string {
	if name := OfNumber(system, m.Device); name != "" {
		return name
	}
	source, ok := strings.CutPrefix(m.Source, "/dev/")
	if !ok {
		return ""
	}
	if info, err := fs.Stat(system, "dev/"+source); err == nil {
		if number, ok := NumberOf(info); ok {
			return OfNumber(system, number)
		}
	}
	if _, err := folder(system, source); err == nil {
		return source
	}
	return ""
}

// folder is the folder of a block device below sys/block, that of its disk for a partition.
func folder(system fs.FS, name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "/*?[\\") || name == "." || name == ".." {
		return "", fmt.Errorf("/sys/block: %q is no name of a device", name)
	}
	dir := path.Join("sys/block", name)
	if _, err := fs.Stat(system, dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("/%s: %s", dir, Reason(err))
	}
	found, _ := fs.Glob(system, path.Join("sys/block/*", name))
	if len(found) == 1 {
		return found[0], nil
	}
	return "", fmt.Errorf("/%s: %w", dir, fs.ErrNotExist)
}

// names lists a folder, empty when it is not there.
func names(system fs.FS, dir string) (list []string) {
	entries, _ := fs.ReadDir(system, dir)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// pointing lists the symbolic links of a folder that end in a base name, sorted.
func pointing(system fs.FS, dir, base string) (list []string) {
	for _, name := range names(system, dir) {
		if to, err := fs.ReadLink(system, path.Join(dir, name)); err == nil && path.Base(to) == base {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// uevent reads the KEY=value lines that the kernel tells udev.
func uevent(system fs.FS, dir string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(content(system, path.Join(dir, "uevent"))) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			found[key] = value
		}
	}
	return found
}

// content returns what a small file holds; "" when there is none.
func content(system fs.FS, name string) string {
	data, _ := fs.ReadFile(system, name)
	return strings.TrimSpace(string(data))
}

// Reason is an error of the file system without its path.
func Reason(err error) string { return cause(err).Error() }

func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Selected is the word in brackets of a file such as "none [mq-deadline] kyber", or why there is none.
func Selected(system fs.FS, file string) (word, why string) {
	data, err := fs.ReadFile(system, file)
	if err != nil {
		return "", "/" + file + ": " + Reason(err)
	}
	text := strings.TrimSpace(string(data))
	if _, after, ok := strings.Cut(text, "["); ok {
		if word, _, ok := strings.Cut(after, "]"); ok {
			return word, ""
		}
	}
	return text, ""
}
