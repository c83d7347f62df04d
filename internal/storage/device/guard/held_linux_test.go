package guard_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/testkit/devicetest"
)

// TestHeld: what cannot be made on every machine, such as volumes and arrays, on machines of text. Their devices have
// zeros on them.
func TestHeld(t *testing.T) {
	put := func(files ...string) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			for i := 0; i < len(files); i += 2 {
				devicetest.Put(m, files[i], files[i+1])
			}
		}
	}
	const take = ": take it apart by hand (vgchange -an, mdadm --stop, cryptsetup close, multipath -f, dmsetup remove)"
	for name, c := range map[string]struct {
		machine, path string
		change        func(fstest.MapFS)
		want          []string
	}{
		"volume on a partition": {"dm-on-partition", "/dev/nvme0n1p3", nil, []string{
			"held: /dev/nvme0n1p3: dm-0 (LVM volume vg0-data) is made of it" + take,
			"sibling in use: /dev/nvme0n1p1: another partition of its disk, is mounted on /boot: umount /boot, or take a " +
				"disk of its own"}},
		"volume below the disk": {"dm-on-partition", "/dev/nvme0n1", nil, []string{
			"partitioned: /dev/nvme0n1: is partitioned: nvme0n1p1, nvme0n1p3: give one of them, or remove the table by " +
				"hand: wipefs -a /dev/nvme0n1",
			"held: /dev/nvme0n1p3: dm-0 (LVM volume vg0-data) is made of it" + take,
			"mounted: /dev/nvme0n1p1: is mounted on /boot (ext4): umount /boot"}},
		"the volume itself": {"dm-on-partition", "/dev/mapper/vg0-data", nil, nil},
		"mounted volume": {"dm-on-partition", "/dev/nvme0n1p3", func(m fstest.MapFS) {
			m["proc/self/mountinfo"].Data = []byte("22 1 253:0 / /srv rw - ext4 /dev/mapper/vg0-data rw\n")
		}, []string{"held: /dev/nvme0n1p3: dm-0 (LVM volume vg0-data) is made of it" + take,
			"mounted: /dev/dm-0: is mounted on /srv (ext4): umount /srv"}},
		"encrypted": {"dm-on-partition", "/dev/nvme0n1p3", put("sys/devices/virtual/block/dm-0/dm/uuid",
			"CRYPT-LUKS2-5a1e", "sys/devices/virtual/block/dm-0/dm/name", "secret", "proc/self/mountinfo", "x"),
			[]string{"held: /dev/nvme0n1p3: dm-0 (encrypted device (dm-crypt) secret) is made of it" + take}},
		"multipath": {"dm-on-partition", "/dev/nvme0n1p3", put("sys/devices/virtual/block/dm-0/dm/uuid",
			"mpath-3600508b400105e21", "proc/self/mountinfo", "x"),
			[]string{"held: /dev/nvme0n1p3: dm-0 (multipath device vg0-data) is made of it" + take}},
		"array": {"md-of-two", "/dev/sdd", nil, []string{
			"held: /dev/sdd: md0 (array raid1) is made of it" + take}},
		"the array itself": {"md-of-two", "/dev/md0", nil, nil},
		"member of a file system on several devices": {"usb", "/dev/sde", put("sys/fs/btrfs/7d0f/devices/sde", "-> x"),
			[]string{"mounted: /dev/sde: is a device of the mounted btrfs 7d0f: unmount it first"}},
		"twins": {"md-of-two", "/dev/md0", put("sys/block/md1/dev", "9:1", "sys/block/md1/md/uuid",
			"7d0f7f3c-5a1e-4b1c-9b34-08d6e7c11a2b"), []string{
			`no identity: /dev/md0: /dev/md1 calls itself "array 7d0f7f3c-5a1e-4b1c-9b34-08d6e7c11a2b" as well: detach ` +
				"that one, or give one of them a serial number of its own"}},
		"no identity": {"usb", "/dev/sde", put("sys/devices/pci0000:00/0000:00:14.0/usb1/1-4/serial", "",
			"sys/devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.0/host8/target8:0:0/8:0:0:0/block/sde/diskseq", ""),
			[]string{"no identity: /dev/sde: cannot be told from other devices: no serial number, WWN, UUID, by-id name or " +
				"backing file, and this kernel counts no disks (diskseq, Linux 5.15): give it a serial number (a virtual " +
				"disk: serial= of the hypervisor) and try again"}},
		"not attached": {"loop", "/dev/loop8", put("sys/devices/virtual/block/loop8/size", "0",
			"sys/devices/virtual/block/loop8/loop/backing_file", ""), []string{
			"gone: /dev/loop8: has no size: nothing is in it: insert a medium, or attach a file"}},
		"node without a device": {"usb", "/dev/sdq", put("dev/sdq", "block 65:0"), []string{
			"gone: /dev/sdq: the kernel knows no block device 65:0: it is gone, or was never there: file does not exist: " +
				"give a device's node, like /dev/sdb or a link in /dev/disk/by-id"}},
		"controller": {"nvme-x4-at-x2", "/dev/nvme0", put("dev/nvme0", "char 242:0"), []string{
			"no block device: /dev/nvme0: is a character device, not a block device: give a namespace of it, like " +
				"/dev/nvme0n1: give a device's node, like /dev/sdb or a link in /dev/disk/by-id"}},
	} {
		machine, _ := devicetest.Machine(t, c.machine)
		if c.change != nil {
			c.change(machine)
		}
		for file, f := range machine { // small, so that they have content
			if len(file) > 5 && file[len(file)-5:] == "/size" && string(f.Data) != "0\n" {
				f.Data = []byte("4096\n")
			}
			if file[:min(4, len(file))] == "dev/" && f.Sys != nil {
				f.Data = make([]byte, 4096*512)
			}
		}
		_, list, err := guard.Check(t.Context(), machine, c.path)
		if err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(list, func(o guard.Objection) bool { return o.Kind == guard.System })
		if diff := cmp.Diff(c.want, told(list)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
