package device

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

// What a hop may be.
const (
	End     = "device" // the device's own link
	Adapter = "adapter"
	Bridge  = "PCIe bridge"
	Socket  = "socket"
)

// Hop is a part of the way between a device and the processor, with the link by which it hangs on the next.
type Hop struct {
	What    string `json:"what"`
	Address string `json:"address,omitempty"` // of its PCI function, "" for others
	IDs     string `json:"ids,omitempty"`     // vendor:device, as lspci -n prints them
	Title   string `json:"title,omitempty"`   // its name in words, where somebody looked it up
	// Link was agreed on; Possible is the most of this end, Slot the most of the other; "" unknown or no link.
	Link     string `json:"link,omitempty"`
	Possible string `json:"possible,omitempty"`
	Slot     string `json:"slot,omitempty"`
	// Ceiling is the theoretical bandwidth of the link in bytes per second, one direction; 0 unknown.
	Ceiling         float64 `json:"ceiling_bytes_per_second,omitempty"`
	PossibleCeiling float64 `json:"possible_bytes_per_second,omitempty"`
	// Degraded says that both ends could do better than what was agreed on; Note says so in words, or what else is to
	// be known of the hop.
	Degraded bool   `json:"degraded,omitempty"`
	Note     string `json:"note,omitempty"`
}

var (
	nvmeController = regexp.MustCompile(`^nvme\d+$`)
	pciAddress     = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	pciRoot        = regexp.MustCompile(`^pci[0-9a-f]{4,}:[0-9a-f]{2}$`)
	ataPort        = regexp.MustCompile(`^ata(\d+)$`)
	sasPort        = regexp.MustCompile(`^port-\d+(:\d+)+$`)
	usbDevice      = regexp.MustCompile(`^\d+-\d+(\.\d+)*$`)
)

// way is the way of a device that is made of no other, or why it is not known.
func way(system fs.FS, d Device) ([]Hop, string) {
	dir, err := deviceFolder(system, d.Name)
	if err != nil {
		return nil, err.Error()
	}
	found := walk(system, dir)
	if slices.ContainsFunc(found, func(h Hop) bool { return h.Link != "" }) {
		return found, ""
	}
	switch {
	case strings.Contains(dir, "/virtio"):
		return found, "a virtual disk (virtio): what it is connected by is the hypervisor's to know"
	case strings.HasPrefix(dir, "sys/devices/virtual/"):
		return nil, "a device of the kernel's own: it hangs on nothing"
	}
	return found, "/" + dir + ": names no speed of a link"
}

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
	for _, name := range names(system, path.Dir(dir)) {
		if nvmeController.MatchString(name) {
			ways = append(ways, name)
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
		return "", fmt.Errorf("/%s: %s", name, Reason(err))
	}
	dir := path.Join(path.Dir(name), to)
	if !fs.ValidPath(dir) {
		return "", errors.New("/" + name + ": leads out of /sys")
	}
	return dir, nil
}

// walk goes from a device's folder up. Both ends of a PCI link tell its speed: the upper end is a hop of its own only
// as the lower end of the next link, which a port of the processor is not.
func walk(system fs.FS, dir string) (found []Hop) {
	upper, whole := false, dir
	for ; dir != "sys/devices" && dir != "." && dir != "/"; dir = path.Dir(dir) {
		name := path.Base(dir)
		switch {
		case ataPort.MatchString(name):
			if h, ok := sataLink(system, ataPort.FindStringSubmatch(name)[1]); ok {
				found = append(found, h)
			}
		case sasPort.MatchString(name):
			if h, ok := sasLink(system, dir); ok {
				found = append(found, h)
			}
		case usbDevice.MatchString(name):
			if h, ok := usbLink(system, dir); ok {
				found = append(found, h)
			}
		case pciAddress.MatchString(name):
			h := pciLink(system, dir)
			switch {
			case upper && h.Link != "": // the other end of the link below
				found[len(found)-1].meets(h)
				upper = false
			case slices.ContainsFunc(found, func(h Hop) bool { return h.Address != "" }):
				if upper = h.Link != ""; upper {
					h.What = Bridge
					found = append(found, h)
				}
			default:
				if h.What = Adapter; strings.Contains(whole, "/"+name+"/nvme/") {
					h.What = End
				}
				if upper = h.Link != ""; !upper {
					h.Note = "its link to the processor is not told, as of parts of a chipset or of a virtual machine"
				}
				found = append(found, h)
			}
		case pciRoot.MatchString(name) && len(found) > 0:
			found = append(found, socket(system, found))
		}
	}
	for i := range found {
		found[i].judge()
	}
	return found
}

// megabyte, as vendors and buses count.
const megabyte = 1e6

// sataLink is the link of a port of SATA.
func sataLink(system fs.FS, number string) (Hop, bool) {
	dir := path.Join("sys/class/ata_link", "link"+number)
	speed, ok := strings.CutSuffix(content(system, path.Join(dir, "sata_spd")), " Gbps")
	if !ok {
		return Hop{}, false
	}
	h := Hop{What: End}
	set := func(gigabits string) (string, float64) {
		gigabits = strings.TrimSuffix(gigabits, ".0")
		return "SATA " + gigabits + " Gb/s", serialCeiling(gigabits, 1)
	}
	h.Link, h.Ceiling = set(speed)
	if most, ok := strings.CutSuffix(content(system, path.Join(dir, "hw_sata_spd_limit")), " Gbps"); ok {
		h.port(set(most))
	}
	return h, true
}

// port notes what the port of a serial link could do. What the device could do is not told, so that less is no flaw
// yet.
func (h *Hop) port(most string, ceiling float64) {
	if h.Slot = most; ceiling > h.Ceiling {
		h.Note = "the port could do " + most + ": the device cannot, or the cable lets no more through"
	}
}

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

// sasLink is the link of a SAS port: its lanes, and the speed of the slowest if they differ.
func sasLink(system fs.FS, port string) (Hop, bool) {
	speed := func(file string) (string, float64, int) {
		files, _ := fs.Glob(system, path.Join(port, "phy-*/sas_phy/*", file))
		var rates []float64
		for _, f := range files {
			rate, ok := strings.CutSuffix(content(system, f), " Gbit")
			if v, err := strconv.ParseFloat(rate, 64); ok && err == nil {
				rates = append(rates, v)
			}
		}
		if len(rates) == 0 {
			return "", 0, 0
		}
		rate := strconv.FormatFloat(slices.Min(rates), 'f', -1, 64)
		return fmt.Sprintf("SAS %s Gb/s x%d", rate, len(rates)), serialCeiling(rate, len(rates)), len(rates)
	}
	h := Hop{What: End}
	lanes := 0
	if h.Link, h.Ceiling, lanes = speed("negotiated_linkrate"); lanes == 0 {
		return h, false
	}
	most, ceiling, _ := speed("maximum_linkrate_hw")
	h.port(most, ceiling)
	return h, true
}

// usbCeiling is the bandwidth of USB by megabits per second: 8 bits travel in 10 at 5 Gb/s, 128 in 132 above, and
// what is slower sends no more than its bits.
func usbCeiling(megabits float64) float64 {
	switch {
	case megabits >= 10000:
		return megabits * 1e6 / 8 * 128 / 132
	case megabits >= 5000:
		return megabits * 1e6 / 10
	}
	return megabits * 1e6 / 8
}

// usbLink is the link of a USB device. Version 3 on a wire of 480 Mb/s is a device that could do better.
func usbLink(system fs.FS, dir string) (Hop, bool) {
	megabits, err := strconv.ParseFloat(content(system, path.Join(dir, "speed")), 64)
	if err != nil || megabits <= 0 {
		return Hop{}, false
	}
	name := func(megabits float64) string {
		if megabits >= 1000 {
			return "USB " + strconv.FormatFloat(megabits/1000, 'f', -1, 64) + " Gb/s"
		}
		return "USB " + strconv.FormatFloat(megabits, 'f', -1, 64) + " Mb/s"
	}
	h := Hop{What: End, Link: name(megabits), Ceiling: usbCeiling(megabits)}
	if version, err := strconv.ParseFloat(content(system, path.Join(dir, "version")), 64); err == nil && version >= 3 &&
		megabits < 5000 {
		h.Possible, h.PossibleCeiling = name(5000), usbCeiling(5000)
	}
	return h, true
}

// pciLane is the usable bandwidth of one lane by generation: 8 bits travel in 10 up to the second, from the third on
// 128 in 130, published as rounded here.
var pciLane = map[int]float64{1: 250 * megabyte, 2: 500 * megabyte, 3: 1000 * megabyte, 4: 2000 * megabyte,
	5: 4000 * megabyte, 6: 8000 * megabyte}

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

// pciLink is a PCI function with its link.
func pciLink(system fs.FS, dir string) Hop {
	h := Hop{Address: path.Base(dir), IDs: pciIDs(system, dir)}
	h.Link, h.Ceiling = pciSpeed(system, dir, "current")
	h.Possible, h.PossibleCeiling = pciSpeed(system, dir, "max")
	return h
}

func pciIDs(system fs.FS, dir string) string {
	vendor, ok := strings.CutPrefix(content(system, path.Join(dir, "vendor")), "0x")
	device, also := strings.CutPrefix(content(system, path.Join(dir, "device")), "0x")
	if !ok || !also {
		return ""
	}
	return vendor + ":" + device
}

// meets notes what the upper end of a hop's link could do.
func (h *Hop) meets(upper Hop) {
	h.Slot = upper.Possible
	if upper.PossibleCeiling > 0 && upper.PossibleCeiling < h.PossibleCeiling {
		h.PossibleCeiling = upper.PossibleCeiling
	}
}

// judge says whether a link is less than both its ends could do.
func (h *Hop) judge() {
	switch {
	case h.Link == "" || h.PossibleCeiling == 0:
	case h.Ceiling < h.PossibleCeiling:
		h.Degraded = true
		h.Note = "degraded link: " + h.Link + ", could be " + h.Possible
		if h.Slot != "" {
			h.Note += " in a slot of " + h.Slot
		}
		h.Note += ": look at the seat, the cable and the setting of the firmware"
	case h.Slot != "" && h.Possible != h.Link:
		h.Note = "the slot limits it: " + h.Possible + " in a slot of " + h.Slot
	}
}

// socket is the processor that the last hop hangs on. Its ceiling is what all its ports together could, by the links
// of its root ports that the kernel lists: how many lanes are wired to nothing is not told.
func socket(system fs.FS, below []Hop) Hop {
	h := Hop{What: Socket}
	node := ""
	for _, b := range below {
		if b.Address != "" {
			node = content(system, path.Join("sys/bus/pci/devices", b.Address, "numa_node"))
		}
	}
	if node == "" || node == "-1" {
		h.Note = "the kernel does not tell which NUMA node it is"
		node = ""
	} else {
		h.Title = "NUMA node " + node
	}
	ports, _ := fs.Glob(system, "sys/devices/pci*/*/max_link_width")
	for _, f := range ports {
		dir := path.Dir(f)
		if node == "" || content(system, path.Join(dir, "numa_node")) == node {
			_, ceiling := pciSpeed(system, dir, "max")
			h.Ceiling += ceiling
		}
	}
	if h.Ceiling == 0 {
		h.Note = strings.TrimPrefix(h.Note+"; its ports tell no links", "; ")
	}
	return h
}

// narrowest says which hop lets least through, in words; "" when no ceiling is known.
func narrowest(hops []Hop) string {
	least := -1
	for i, h := range hops {
		if h.Ceiling > 0 && (least < 0 || h.Ceiling < hops[least].Ceiling) {
			least = i
		}
	}
	if least < 0 {
		return ""
	}
	h := hops[least]
	text := h.What
	if h.Address != "" {
		text += " " + h.Address
	}
	return fmt.Sprintf("%s: %s, %.0f MB/s", text, h.Link, h.Ceiling/megabyte)
}
