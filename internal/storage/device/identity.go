package device

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Identity holds what tells a device from every other one.
type Identity struct {
	// Phrase is typed by a user who consents that this device is overwritten: its model and what pins it. "" when
	// nothing does.
	Phrase string `json:"consent_phrase,omitempty"`
	// By says what pins it: serial, WWN, UUID, by-id, backing file, or attachment, which holds until the device is
	// removed or the machine restarts.
	By string `json:"by,omitempty"`
}

// partition is the identity of a partition of a disk.
func (i Identity) partition(number int) Identity {
	if i.Phrase != "" {
		i.Phrase += " partition " + strconv.Itoa(number)
	}
	return i
}

// kindOf tells the kind by what the kernel keeps in a device's folder.
func kindOf(system fs.FS, dir, name string) Kind {
	there := func(file string) bool {
		_, err := fs.Stat(system, path.Join(dir, file))
		return err == nil
	}
	switch {
	case there("partition"):
		return Partition
	case there("dm"):
		return Mapped
	case there("md"):
		return Array
	case strings.HasPrefix(name, "loop"):
		return Loop
	case strings.HasPrefix(name, "zram") || ramDisk.MatchString(name):
		return Memory
	}
	return Disk
}

var ramDisk = regexp.MustCompile(`^ram\d+$`)

// identify finds who a device is, and what pins it, in the order of Identity.By.
func (d *Device) identify(l looker) {
	switch d.Kind {
	case Loop:
		d.backing(l)
	case Mapped:
		d.Label, d.UUID = l.text("label", "dm/name"), l.text("uuid", "dm/uuid")
	case Array:
		d.UUID = l.text("uuid", "md/uuid")
	case Disk:
		d.Model = l.text("model", "device/model", "device/name")
		d.Vendor = l.text("vendor", "device/vendor")
		if strings.HasPrefix(d.Vendor, "0x") { // a number of PCI's or virtio's
			d.Vendor, l.unknown["vendor"] = "", "the driver tells a number: "+d.Vendor
		}
		d.Firmware = l.text("firmware", "device/firmware_rev", "device/rev", "device/fwrev")
		d.WWN = l.text("wwn", "device/wwid", "wwid")
		d.Serial = d.serial(l)
	}
	d.Identity = d.pin(l)
}

// serial looks where drivers put it: a file, the page of SCSI's vital data, the USB device above, udev's notes.
func (d *Device) serial(l looker) string {
	serial := l.text("serial", "serial", "device/serial")
	if serial != "" {
		return serial
	}
	found := ""
	if page, err := fs.ReadFile(l.system, path.Join(l.dir, "device/vpd_pg80")); err == nil && len(page) > 4 {
		found = clean(string(page[4:])) // SPC-4, 7.8.12: the number follows a header of four bytes
	}
	if dir, err := resolve(l.system, path.Join("sys/block", d.Name)); err == nil && found == "" {
		for ; dir != "sys/devices" && dir != "." && found == ""; dir = path.Dir(dir) {
			if usbDevice.MatchString(path.Base(dir)) {
				found = clean(content(l.system, path.Join(dir, "serial")))
			}
		}
	}
	notes := content(l.system, "run/udev/data/b"+d.Number)
	for _, key := range []string{"E:ID_SERIAL_SHORT=", "E:ID_SCSI_SERIAL="} {
		for line := range strings.Lines(notes) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), key); ok && found == "" {
				found = clean(value)
			}
		}
	}
	if found != "" {
		l.unknown["serial"] = ""
	}
	return found
}

// backing finds the file of a loop.
func (d *Device) backing(l looker) {
	file := content(l.system, path.Join(l.dir, "loop/backing_file"))
	if file == "" {
		l.unknown["backing_file"] = "no file is attached"
		return
	}
	d.Backing = file
	d.BackingOffset, _ = strconv.ParseInt(content(l.system, path.Join(l.dir, "loop/offset")), 10, 64)
	d.BackingLimit, _ = strconv.ParseInt(content(l.system, path.Join(l.dir, "loop/sizelimit")), 10, 64)
	info, err := fs.Stat(l.system, strings.TrimPrefix(file, "/"))
	switch {
	case err != nil:
		l.unknown["backing_inode"] = file + ": " + Reason(err)
	case !info.Mode().IsRegular():
		l.unknown["backing_inode"] = file + ": is no regular file"
	default:
		f, _ := FileOf(info)
		d.BackingDevice, d.BackingInode = f.Device, f.Inode
	}
}

// pin makes the identity. The attachment is the kernel's count of disks and the boot: another disk that takes the same
// name has another number, and after a restart consent is asked for anew.
func (d *Device) pin(l looker) Identity {
	byID := slices.IndexFunc(d.ByID, func(n string) bool { return !strings.Contains(n, "-part") })
	boot := content(l.system, "proc/sys/kernel/random/boot_id")
	name := cmp.Or(d.Model, string(d.Kind))
	if d.Kind == Disk && d.Model == "" {
		name = d.Name + " disk"
	}
	if d.Vendor != "" && d.Vendor != "ATA" && !strings.HasPrefix(d.Model, d.Vendor) && d.Model != "" {
		name = d.Vendor + " " + d.Model
	}
	switch {
	case d.Serial != "":
		return Identity{name + " " + d.Serial, "serial"}
	case d.WWN != "":
		return Identity{name + " " + d.WWN, "WWN"}
	case d.UUID != "":
		return Identity{clean(string(d.Kind) + " " + d.Label + " " + d.UUID), "UUID"}
	case byID >= 0:
		return Identity{clean(name + " " + d.ByID[byID]), "by-id"}
	case d.BackingInode != 0:
		return Identity{clean(fmt.Sprintf("loop %s inode %d", d.Backing, d.BackingInode)), "backing file"}
	case d.Sequence > 0 && len(boot) >= 8:
		return Identity{fmt.Sprintf("%s attachment %d of boot %s", name, d.Sequence, boot[:8]), "attachment"}
	}
	l.unknown["identity"] = "no serial number, WWN, UUID, by-id name or backing file, and this kernel counts no disks " +
		"(diskseq, Linux 5.15)"
	return Identity{}
}

// optane are Intel's Optane devices by their PCI ids; the model names of most say so too.
var optane = []string{"8086:2522", "8086:2700", "8086:2701", "8086:4140"}

// media says in words what the medium is.
func media(d Device, l looker) string {
	real, _ := resolve(l.system, path.Join("sys/block", d.Name))
	turning := func(by string) string {
		if d.Queue.Rotational {
			return "HDD (" + by + ")"
		}
		return by + " SSD"
	}
	isOptane := strings.Contains(strings.ToLower(d.Model), "optane")
	for _, h := range d.Path {
		isOptane = isOptane || h.What == End && slices.Contains(optane, h.IDs)
	}
	has := func(part string) bool { return strings.Contains(real, part) }
	switch name := d.Name; {
	case d.Kind == Loop:
		return "a file as a device (loop)"
	case d.Kind == Mapped:
		return mapped(d)
	case d.Kind == Array:
		return clean("array " + content(l.system, path.Join(l.dir, "md/level")))
	case d.Kind == Memory:
		return "memory: what is written is lost with the power"
	case strings.HasPrefix(name, "pmem"):
		return "persistent memory"
	case strings.HasPrefix(name, "nvme") && isOptane:
		return "NVMe SSD (Optane)"
	case strings.HasPrefix(name, "nvme"):
		return "NVMe SSD"
	case has("/virtio"):
		return "virtual disk (virtio): its medium is the hypervisor's to know"
	case has("/usb") && d.Queue.Rotational:
		return "USB disk" // most say that they turn
	case has("/usb"):
		return "USB SSD or stick"
	case has("/ata"), d.Vendor == "ATA":
		return turning("SATA")
	case has("/port-") || has("/end_device-"):
		return turning("SAS")
	case strings.HasPrefix(name, "mmcblk"):
		return "flash card (MMC)"
	case strings.HasPrefix(name, "xvd"):
		return "virtual disk (Xen): its medium is the hypervisor's to know"
	case strings.HasPrefix(name, "sd"):
		return turning("SCSI")
	}
	for prefix, what := range map[string]string{"nbd": "network block device", "rbd": "Ceph RBD image",
		"drbd": "DRBD replica", "bcache": "bcache", "zd": "ZFS volume", "nullb": "null device: it keeps nothing"} {
		if strings.HasPrefix(d.Name, prefix) {
			return what
		}
	}
	l.unknown["media"] = "the driver is not known here"
	return ""
}

// mapped says by its UUID who made a mapped device.
func mapped(d Device) string {
	for prefix, what := range map[string]string{"LVM-": "LVM volume", "CRYPT-": "encrypted device (dm-crypt)",
		"mpath-": "multipath device", "part": "partition by the device mapper"} {
		if strings.HasPrefix(d.UUID, prefix) {
			return what
		}
	}
	return "mapped device"
}
