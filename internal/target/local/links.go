//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// linkFacts names the links between the device under the disks and the processor, as far as the kernel does: the device's own, its
// adapter's, and those of switches on the way.
func linkFacts(l *factList, system fs.FS, st storage) {
	const group = "storage"
	if st.device == "" {
		if networked(st.fstype) {
			return // its link is the network's
		}
		l.add(group, "device link", "", "no block device found for "+st.source)
		return
	}
	bottom, err := beneath(system, st.device)
	if err != nil {
		l.add(group, "device link", "", err.Error())
		return
	}
	dir, err := deviceFolder(system, bottom)
	if err != nil {
		l.add(group, "device link", "", err.Error())
		return
	}
	if depth, err := fs.ReadFile(system, path.Join("sys/block", bottom, "device/queue_depth")); err == nil {
		l.add(group, "device queue depth", strings.TrimSpace(string(depth)), "")
	}
	found := links(system, dir)
	for i, link := range found {
		name := "device link"
		switch {
		case i == 1 && found[0].address == "":
			name = "adapter link"
		case i > 0:
			name = "link of PCI bridge " + link.address
		}
		l.add(group, name, link.speed, "")
	}
	if len(found) == 0 {
		why := "/" + dir + ": names no speed of a link"
		if strings.Contains(dir, "/virtio") {
			why = "a virtual disk (virtio): what it is connected by is the hypervisor's to know"
		}
		l.add(group, "device link", "", why)
	}
}

// beneath follows devices that are made of exactly one other, as logical volumes and encrypted ones are, to the last.
func beneath(system fs.FS, device string) (string, error) {
	for range 16 {
		entries, err := fs.ReadDir(system, path.Join("sys/block", device, "slaves"))
		switch {
		case err != nil || len(entries) == 0:
			return device, nil
		case len(entries) > 1:
			return "", fmt.Errorf("%s is made of %d devices, each with links of its own", device, len(entries))
		}
		part := entries[0].Name()
		device = part
		if _, err := fs.Stat(system, path.Join("sys/block", part)); err != nil { // a partition
			found, _ := fs.Glob(system, path.Join("sys/block/*", part))
			if len(found) != 1 {
				return "", fmt.Errorf("/sys/block: no disk holds %s", part)
			}
			device = path.Base(path.Dir(found[0]))
		}
	}
	return "", fmt.Errorf("/sys/block/%s: made of itself", device)
}

var (
	nvmeController = regexp.MustCompile(`^nvme\d+$`)
	pciAddress     = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	ataPort        = regexp.MustCompile(`^ata(\d+)$`)
	sasPort        = regexp.MustCompile(`^port-\d+(:\d+)+$`)
)

// deviceFolder is the folder of a block device in the tree of real devices. An NVMe device with several ways to it hangs on a virtual
// subsystem; with one controller there, its folder is meant.
func deviceFolder(system fs.FS, device string) (string, error) {
	dir, err := resolve(system, path.Join("sys/block", device))
	if err != nil {
		return "", err
	}
	if !strings.Contains(dir, "/nvme-subsystem/") {
		return dir, nil
	}
	var ways []string
	entries, _ := fs.ReadDir(system, path.Dir(dir))
	for _, e := range entries {
		if nvmeController.MatchString(e.Name()) {
			ways = append(ways, e.Name())
		}
	}
	if len(ways) != 1 {
		return "", fmt.Errorf("%s has %d controllers, each with a link of its own", device, len(ways))
	}
	return resolve(system, path.Join(path.Dir(dir), ways[0]))
}

// resolve reads one symbolic link.
func resolve(system fs.FS, name string) (string, error) {
	to, err := fs.ReadLink(system, name)
	if err != nil {
		return "", fmt.Errorf("/%s: %s", name, reason(err))
	}
	dir := path.Join(path.Dir(name), to)
	if !fs.ValidPath(dir) {
		return "", errors.New("/" + name + ": leads out of /sys")
	}
	return dir, nil
}

// link is one link on the way; address is that of its PCI function, "" for others.
type link struct{ speed, address string }

// links walks from a device's folder up. Both ends of a PCI link tell its speed: the upper end is passed by.
func links(system fs.FS, dir string) (found []link) {
	upper := false
	for ; dir != "sys/devices" && dir != "."; dir = path.Dir(dir) {
		name := path.Base(dir)
		switch {
		case ataPort.MatchString(name):
			number := ataPort.FindStringSubmatch(name)[1]
			if speed, ok := strings.CutSuffix(content(system, path.Join("sys/class/ata_link", "link"+number, "sata_spd")), " Gbps"); ok {
				found = append(found, link{speed: "SATA " + strings.TrimSuffix(speed, ".0") + " Gb/s"})
			}
		case sasPort.MatchString(name):
			if speed, lanes := sasSpeed(system, dir); lanes > 0 {
				found = append(found, link{speed: fmt.Sprintf("SAS %s Gb/s x%d", speed, lanes)})
			}
		case pciAddress.MatchString(name):
			speed := pciSpeed(system, dir, "current")
			switch {
			case speed == "":
				upper = false
			case upper:
				upper = false
			default:
				if most := pciSpeed(system, dir, "max"); most != "" && most != speed {
					speed += ", could be " + most
				}
				found, upper = append(found, link{speed, name}), true
			}
		}
	}
	return found
}

// content is what a small file holds; "" when there is none.
func content(system fs.FS, name string) string {
	data, _ := fs.ReadFile(system, name)
	return strings.TrimSpace(string(data))
}

// sasSpeed is the speed of the lanes of a SAS port, of the slowest if they differ, and their number.
func sasSpeed(system fs.FS, port string) (speed string, lanes int) {
	files, _ := fs.Glob(system, path.Join(port, "phy-*/sas_phy/*/negotiated_linkrate"))
	var rates []float64
	for _, f := range files {
		rate, ok := strings.CutSuffix(content(system, f), " Gbit")
		if v, err := strconv.ParseFloat(rate, 64); ok && err == nil {
			rates = append(rates, v)
		}
	}
	if len(rates) == 0 {
		return "", 0
	}
	return strconv.FormatFloat(slices.Min(rates), 'f', -1, 64), len(rates)
}

// generations are PCI Express's by their transfers per second, as the kernel prints them.
var generations = map[string]int{"2.5 GT/s": 1, "5.0 GT/s": 2, "8.0 GT/s": 3, "16.0 GT/s": 4, "32.0 GT/s": 5, "64.0 GT/s": 6}

// pciSpeed is a PCI function's link, "current" or "max"; "" when it has none.
func pciSpeed(system fs.FS, dir, which string) string {
	speed := strings.TrimSuffix(content(system, path.Join(dir, which+"_link_speed")), " PCIe")
	generation, ok := generations[speed]
	lanes, err := strconv.Atoi(content(system, path.Join(dir, which+"_link_width")))
	if !ok || err != nil || lanes < 1 || lanes > 32 {
		return ""
	}
	return fmt.Sprintf("PCIe-%d x%d", generation, lanes)
}

// networked reports whether a file system lies on other machines, so that the network is on the way to its media.
func networked(fstype string) bool {
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "lustre", "beegfs"}, fstype)
}

// networkFacts names the speeds of interfaces that are real. They are a link on the way to the disks only where the file system lies on
// other machines, and then only one of them, when no other could be meant.
func networkFacts(l *factList, system fs.FS, st storage) {
	const group = "network"
	interfaces, _ := fs.Glob(system, "sys/class/net/*")
	var speeds []string
	for _, dir := range interfaces {
		if _, err := fs.Stat(system, path.Join(dir, "device")); err != nil {
			continue // loopback, bridges and other software
		}
		speed, why := interfaceSpeed(system, dir)
		if why == "" {
			speeds = append(speeds, speed)
		}
		l.add(group, "interface "+path.Base(dir), speed, why)
	}
	switch {
	case !networked(st.fstype):
	case len(speeds) == 1:
		l.add(group, "network link", speeds[0], "")
	default:
		l.add(group, "network link", "", fmt.Sprintf("%d interfaces tell their speed: which of them the file system goes through is not known", len(speeds)))
	}
}

// interfaceSpeed reads an interface's speed in Mb/s, as Ethernet is named by.
func interfaceSpeed(system fs.FS, dir string) (speed, why string) {
	data, err := fs.ReadFile(system, path.Join(dir, "speed"))
	if err != nil {
		return "", "/" + dir + "/speed: " + reason(err)
	}
	megabits, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || megabits <= 0 {
		return "", "its driver tells no speed, as those of virtual machines often do not, or it is down"
	}
	return strconv.FormatFloat(float64(megabits)/1000, 'f', -1, 64) + "GbE", ""
}
