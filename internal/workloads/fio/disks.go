package fio

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/workloads/fio/fiofile"
)

// mapDisks replaces the devices in every filename by the paths of the machine's data disks. Without any disk in
// the Spec (a check that knows no machine yet) device names stay as they are and only their form is checked.
func (a *adaptation) mapDisks() {
	for i := range a.out.Sections {
		s := &a.out.Sections[i]
		for j := range s.Options {
			if o := &s.Options[j]; o.Key == "filename" {
				a.mapFilename(s, o)
			}
		}
	}
	for _, job := range a.out.Jobs() {
		if _, ok := job.Get("filename"); !ok && !a.spec.Prefill {
			a.objectAt(job.Line, job.Col, "[%s] has no filename; name a data disk such as /dev/sdb", job.Name)
		}
	}
}

func (a *adaptation) mapFilename(s *fiofile.Section, o *fiofile.Option) {
	var paths []string
	for _, device := range devices(o.Value) {
		if len(a.spec.Disks) == 0 && isDevice(device) {
			paths = append(paths, device)
			continue
		}
		disk, ok := a.disk(device)
		if !ok {
			a.object(s, *o, fmt.Sprintf("%q is not a data disk of this machine; it has %s", device, a.deviceList()))
			return
		}
		if !writablePath(disk.Path) {
			a.object(s, *o, fmt.Sprintf("the disk's path %q cannot be written in a job file; move the run folder",
				disk.Path))
			return
		}
		paths = append(paths, strings.ReplaceAll(disk.Path, ":", `\:`))
	}
	if len(paths) == 0 {
		a.object(s, *o, "names no data disk; it has "+a.deviceList())
		return
	}
	o.Value = strings.Join(paths, ":")
}

// writablePath tells paths that fio reads back as they are, colons protected.
func writablePath(path string) bool {
	return path != "" && strings.TrimSpace(path) == path &&
		!strings.ContainsRune(path, '\\') && !strings.ContainsFunc(path, unwritable)
}

// unwritable tells characters that fio does not take as they are, or that are no text.
func unwritable(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune("`;#$", r)
}

// devices splits a filename list at its colons.
func devices(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ':' })
}

// isDevice tells names of the form the scenario language uses: /dev/sdb, /dev/sdaa.
func isDevice(name string) bool {
	letters, ok := strings.CutPrefix(name, "/dev/sd")
	return ok && letters != "" && len(letters) <= 2 && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

func (a *adaptation) disk(device string) (target.Disk, bool) {
	for _, d := range a.spec.Disks {
		if d.Device == device {
			return d, true
		}
	}
	return target.Disk{}, false
}

func (a *adaptation) deviceList() string {
	if len(a.spec.Disks) == 0 {
		return "devices like /dev/sdb"
	}
	names := make([]string, len(a.spec.Disks))
	for i, d := range a.spec.Disks {
		names[i] = d.Device
	}
	return strings.Join(names, ", ")
}

// disksOf returns the disks a job works on, in the order of its filename, with the author's device names.
func (a *adaptation) disksOf(job fiofile.Job) []target.Disk {
	byPath := make(map[string]target.Disk)
	for _, d := range a.spec.Disks {
		byPath[strings.ReplaceAll(d.Path, ":", `\:`)] = d
	}
	var out []target.Disk
	for _, path := range splitEscaped(job.Value("filename")) {
		if d, ok := byPath[path]; ok {
			out = append(out, d)
		} else {
			out = append(out, target.Disk{Device: path, Path: path})
		}
	}
	return out
}

// splitEscaped splits a mapped list at colons that no backslash protects.
func splitEscaped(list string) []string {
	var out []string
	start := 0
	for i := range len(list) {
		if list[i] == ':' && (i == 0 || list[i-1] != '\\') {
			out = append(out, list[start:i])
			start = i + 1
		}
	}
	if rest := list[start:]; rest != "" {
		out = append(out, rest)
	}
	return out
}
