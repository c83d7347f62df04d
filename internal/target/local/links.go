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
		bound(l.add(group, name, link.speed, ""), link.ceiling)
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

// deviceFolder is the folder of a block device in the tree of real devices. An NVMe device with several ways to it
// hangs on a virtual subsystem; with one controller there, its folder is meant.
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

// link is one link on the way.
type link struct {
	speed   string  // its name
	address string  // of its PCI function, "" for others
	ceiling float64 // theoretical bandwidth of one direction in bytes per second
}

// links walks from a device's folder up. Both ends of a PCI link tell its speed: the upper end is passed by.
func links(system fs.FS, dir string) (found []link) {
	upper := false
	for ; dir != "sys/devices" && dir != "."; dir = path.Dir(dir) {
		name := path.Base(dir)
		switch {
		case ataPort.MatchString(name):
			number := ataPort.FindStringSubmatch(name)[1]
			if speed, ok := strings.CutSuffix(content(system,
				path.Join("sys/class/ata_link", "link"+number, "sata_spd")), " Gbps"); ok {
				speed = strings.TrimSuffix(speed, ".0")
				found = append(found, link{speed: "SATA " + speed + " Gb/s", ceiling: serialCeiling(speed, 1)})
			}
		case sasPort.MatchString(name):
			if speed, lanes := sasSpeed(system, dir); lanes > 0 {
				found = append(found, link{speed: fmt.Sprintf("SAS %s Gb/s x%d", speed, lanes),
					ceiling: serialCeiling(speed, lanes)})
			}
		case pciAddress.MatchString(name):
			speed, ceiling := pciSpeed(system, dir, "current")
			switch {
			case speed == "":
				upper = false
			case upper:
				upper = false
			default:
				if most, _ := pciSpeed(system, dir, "max"); most != "" && most != speed {
					speed += ", could be " + most
				}
				found, upper = append(found, link{speed, name, ceiling}), true
			}
		}
	}
	return found
}

// bound says of a fact that it is a link on the way of the disks' bytes.
func bound(f *result.Fact, ceiling float64) {
	if ceiling > 0 {
		f.Kind, f.Number = result.LinkCeiling, ceiling
	}
}

// megabyte, as vendors and buses count.
const megabyte = 1e6

// serialCeiling is the theoretical bandwidth of a SATA or SAS link by the rate of a lane in Gb/s: 8 bits travel in 10,
// so that 6 Gb/s are 600 MB/s, and from SAS-4 on 128 in 150. 0 when the rate is none.
func serialCeiling(gigabits string, lanes int) float64 {
	rate, err := strconv.ParseFloat(gigabits, 64)
	switch {
	case err != nil || rate <= 0:
		return 0
	case rate == 12 && lanes == 8:
		return 8400 * megabyte // as published: such an adapter sits in a PCIe-3 x8 slot
	case rate > 12:
		return float64(lanes) * rate * 1e9 * 128 / 150 / 8
	}
	return float64(lanes) * rate * 1e9 / 10
}

// pciLane is the usable bandwidth of one lane by generation: 8 bits travel in 10 up to the second, from the third on
// 128 in 130, published as rounded here.
var pciLane = map[int]float64{1: 250 * megabyte, 2: 500 * megabyte, 3: 1000 * megabyte, 4: 2000 * megabyte,
	5: 4000 * megabyte, 6: 8000 * megabyte}

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
var generations = map[string]int{"2.5 GT/s": 1, "5.0 GT/s": 2, "8.0 GT/s": 3, "16.0 GT/s": 4, "32.0 GT/s": 5,
	"64.0 GT/s": 6}

// pciSpeed is a PCI function's link, "current" or "max", and its bandwidth; "" when it has none.
func pciSpeed(system fs.FS, dir, which string) (name string, ceiling float64) {
	speed := strings.TrimSuffix(content(system, path.Join(dir, which+"_link_speed")), " PCIe")
	generation, ok := generations[speed]
	lanes, err := strconv.Atoi(content(system, path.Join(dir, which+"_link_width")))
	if !ok || err != nil || lanes < 1 || lanes > 32 {
		return "", 0
	}
	return fmt.Sprintf("PCIe-%d x%d", generation, lanes), float64(lanes) * pciLane[generation]
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
		return 0, "/" + dir + "/speed: " + reason(err)
	}
	megabits, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || megabits <= 0 {
		return 0, "its driver tells no speed, as those of virtual machines often do not, or it is down"
	}
	return float64(megabits) / 1000, ""
}
