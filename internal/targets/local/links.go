//go:build linux

package local

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/storage/device"
	"plimsoll/result"
)

// linkFacts names the links between the device under the disks and the processor, as far as the kernel does: the
// device's own, its adapter's, and those of switches on the way.
func linkFacts(l *factList, system fs.FS, st storage) {
	group := st.group
	if st.device == "" {
		if networked(st.fstype) {
			return // its link is the network's
		}
		l.add(group, "device link", "", "no block device found for "+st.source)
		return
	}
	d, err := device.Read(system, st.device)
	if err != nil {
		l.add(group, "device link", "", err.Error())
		return
	}
	bottom := d.Bottom()
	if len(bottom) > 1 {
		l.add(group, "device link", "", fmt.Sprintf("%s is made of %d devices, each with links of its own", st.device,
			len(bottom)))
		return
	}
	d = bottom[0]
	if d.Queue.Depth > 0 {
		l.add(group, "device queue depth", strconv.FormatInt(d.Queue.Depth, 10), "")
	}
	told := false
	for _, h := range d.Path {
		name := h.What + " link"
		switch {
		case h.Link == "":
			continue
		case h.What == device.Bridge:
			name = "link of PCI bridge " + h.Address
		}
		speed := h.Link
		if h.Possible != "" && h.Possible != h.Link {
			speed += ", could be " + h.Possible
		}
		bound(l.add(group, name, speed, ""), h.Ceiling)
		told = true
	}
	if !told {
		l.add(group, "device link", "", d.Unknown["path"])
	}
}

// bound says of a fact that it is a link on the way of the disks' bytes.
func bound(f *result.Fact, ceiling float64) {
	if ceiling > 0 {
		f.Kind, f.Number = result.LinkCeiling, ceiling
	}
}

// networked reports whether a file system lies on other machines, so that the network is on the way to its media.
func networked(fstype string) bool {
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "glusterfs", "fuse.glusterfs",
		"fuse.sshfs", "lustre", "beegfs"}, fstype)
}

// networkFacts names the speeds of interfaces that are real. They are a link on the way to the disks only where the
// file system lies on other machines, and then only one of them, when no other could be meant.
func networkFacts(l *factList, system fs.FS, st storage) {
	const group = "network"
	interfaces, _ := fs.Glob(system, "sys/class/net/*")
	var known []float64 // gigabits per second
	for _, dir := range interfaces {
		if _, err := fs.Stat(system, path.Join(dir, "device")); err != nil {
			continue // loopback, bridges and other software
		}
		speed, why := interfaceSpeed(system, dir)
		name := ""
		if why == "" {
			known, name = append(known, speed), ethernet(speed)
		}
		l.add(group, "interface "+path.Base(dir), name, why)
	}
	switch {
	case !networked(st.fstype):
	case len(known) == 1:
		bound(l.add(group, "network link", ethernet(known[0]), ""), known[0]*1e9/8)
	default:
		l.add(group, "network link", "", fmt.Sprintf(
			"%d interfaces tell their speed: which of them the file system goes through is not known", len(known)))
	}
}

// ethernet names a speed in Gb/s: "25GbE".
func ethernet(gigabits float64) string { return strconv.FormatFloat(gigabits, 'f', -1, 64) + "GbE" }

// interfaceSpeed reads an interface's speed, which the kernel tells in Mb/s, in Gb/s.
func interfaceSpeed(system fs.FS, dir string) (speed float64, why string) {
	data, err := fs.ReadFile(system, path.Join(dir, "speed"))
	if err != nil {
		return 0, "/" + dir + "/speed: " + device.Reason(err)
	}
	megabits, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || megabits <= 0 {
		return 0, "its driver tells no speed, as those of virtual machines often do not, or it is down"
	}
	return float64(megabits) / 1000, ""
}
