package local

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// tree is a fixture: "name" -> content, or "-> target" for a symbolic link, or "/" for a folder.
func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		switch to, link := strings.CutPrefix(text, "-> "); {
		case link:
			m[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
		case text == "/":
			m[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			m[name] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
	}
	return m
}

// function adds the link of a PCI function.
func function(files map[string]string, dir, speed, width, most, widest string) {
	for name, v := range map[string]string{"current_link_speed": speed, "current_link_width": width,
		"max_link_speed": most, "max_link_width": widest} {
		files[dir+"/"+name] = v
	}
}

func TestLinks(t *testing.T) {
	const root = "sys/devices/pci0000:00"
	nvme := map[string]string{"sys/block/nvme0n1": "-> ../devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1",
		root + "/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1": "/"}
	function(nvme, root+"/0000:00:01.0/0000:01:00.0", "8.0 GT/s PCIe", "2", "16.0 GT/s PCIe", "4")
	function(nvme, root+"/0000:00:01.0", "8.0 GT/s PCIe", "2", "16.0 GT/s PCIe", "16")
	switched := map[string]string{"sys/block/nvme0n1": "-> ../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0":   "-> ../../../pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/nvme/nvme0",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1": "/"}
	function(switched, root+"/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", "16.0 GT/s PCIe", "4",
		"16.0 GT/s PCIe", "4")
	function(switched, root+"/0000:00:01.0/0000:01:00.0/0000:02:00.0", "16.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "4")
	function(switched, root+"/0000:00:01.0/0000:01:00.0", "8.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "8")
	function(switched, root+"/0000:00:01.0", "8.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "8")
	twoWays := map[string]string{"sys/block/nvme0n1": switched["sys/block/nvme0n1"],
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1": "/",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0":   "/",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1":   "/"}
	sata := map[string]string{"sys/block/sda": "-> ../devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda",
		"sys/class/ata_link/link3/sata_spd": "6.0 Gbps", "sys/block/dm-0/dm/name": "v",
		"sys/block/dm-0/slaves/sda2": "/",
		root + "/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda/sda2/partition":     "2",
		root + "/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda/device/queue_depth": "32"}
	down := map[string]string{"sys/block/sda": sata["sys/block/sda"], "sys/class/ata_link/link3/sata_spd": "<unknown>",
		root + "/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda": "/"}
	const sas = "0000:00:03.0/0000:05:00.0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0/block/sdb"
	adapter := map[string]string{"sys/block/sdb": "-> ../devices/pci0000:00/" + sas, root + "/" + sas: "/",
		root + "/0000:00:03.0/0000:05:00.0/host0/port-0:1/phy-0:0/sas_phy/phy-0:0/negotiated_linkrate": "12.0 Gbit",
		root + "/0000:00:03.0/0000:05:00.0/host0/port-0:1/phy-0:1/sas_phy/phy-0:1/negotiated_linkrate": "6.0 Gbit"}
	function(adapter, root+"/0000:00:03.0/0000:05:00.0", "8.0 GT/s", "8", "8.0 GT/s", "8")
	function(adapter, root+"/0000:00:03.0", "8.0 GT/s", "8", "8.0 GT/s", "8")
	virtio := map[string]string{"sys/block/vda": "-> ../devices/pci0000:00/0000:00:02.0/virtio1/block/vda",
		root + "/0000:00:02.0/virtio1/block/vda": "/"}
	function(virtio, root+"/0000:00:02.0", "Unknown", "0", "Unknown", "0")
	raid := map[string]string{"sys/block/md0/slaves/sda": "/", "sys/block/md0/slaves/sdb": "/", "sys/block/sda": "/",
		"sys/block/sdb": "/"}
	loop := map[string]string{"sys/block/dm-1/slaves/dm-1": "/"}

	for name, c := range map[string]struct {
		files  map[string]string
		device string
		want   map[string]string
	}{
		"NVMe, trained down": {nvme, "nvme0n1", map[string]string{"device link": "PCIe-3 x2, could be PCIe-4 x4 = " +
			"2000 MB/s"}},
		"NVMe behind a switch": {switched, "nvme0n1", map[string]string{"device link": "PCIe-4 x4 = 8000 MB/s",
			"link of PCI bridge 0000:01:00.0": "PCIe-3 x8 = 8000 MB/s"}},
		"two controllers": {twoWays, "nvme0n1", map[string]string{"device link": "missing: nvme0n1 has 2 " +
			"controllers, each with a link of its own"}},
		"SATA below a volume": {sata, "dm-0", map[string]string{"device link": "SATA 6 Gb/s = 600 MB/s",
			"device queue depth": "32"}},
		"SATA that does not tell": {down, "sda",
			map[string]string{"device link": "missing: /sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda: names no speed of a link"}},
		"SAS behind an adapter": {adapter, "sdb", map[string]string{"device link": "SAS 6 Gb/s x2 = 1200 MB/s",
			"adapter link": "PCIe-3 x8 = 8000 MB/s"}},
		"virtual disk": {virtio, "vda", map[string]string{"device link": "missing: a virtual disk " +
			"(virtio): what it is connected by is the hypervisor's to know"}},
		"several devices": {raid, "md0", map[string]string{"device link": "missing: md0 is made of 2 " +
			"devices, each with links of its own"}},
		"made of itself": {loop, "dm-1", map[string]string{"device link": "missing: /sys/block/dm-1: made " +
			"of itself"}},
		"absent": {nil, "sdz", map[string]string{"device link": "missing: /sys/block/sdz: file does " +
			"not exist"}},
		"no device": {nil, "", map[string]string{"device link": "missing: no block device found for " +
			"overlay"}},
	} {
		var l factList
		linkFacts(&l, tree(c.files), storage{device: c.device, source: "overlay", fstype: "overlay"})
		if diff := cmp.Diff(c.want, told(l)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// told are facts by name.
func told(l factList) map[string]string {
	got := map[string]string{}
	for _, f := range l {
		got[f.Name] = f.Value
		if f.Kind == result.LinkCeiling {
			got[f.Name] += fmt.Sprintf(" = %g MB/s", f.Number/1e6)
		}
		if f.Missing != "" {
			got[f.Name] = "missing: " + f.Missing
		}
	}
	return got
}

func TestInterfaces(t *testing.T) {
	one := map[string]string{"sys/class/net/eth0/device": "/", "sys/class/net/eth0/speed": "2500",
		"sys/class/net/lo/speed": "10", "sys/class/net/eth1/device": "/",
		"sys/class/net/eth1/speed": "-1", "sys/class/net/eth2/device": "/"}
	seen := map[string]string{"interface eth0": "2.5GbE", "interface eth1": "missing: its driver tells no speed, as " +
		"those of virtual machines often do not, or it is down",
		"interface eth2": "missing: /sys/class/net/eth2/speed: file does not exist"}
	remote := map[string]string{"network link": "2.5GbE = 312.5 MB/s"}
	for k, v := range seen {
		remote[k] = v
	}
	for _, c := range []struct {
		fstype string
		files  map[string]string
		want   map[string]string
	}{
		{"ext4", one, seen}, {"nfs4", one, remote},
		{"cifs", nil, map[string]string{"network link": "missing: 0 interfaces tell their speed: which of them the " +
			"file system goes through is not known"}},
	} {
		var l factList
		networkFacts(&l, tree(c.files), storage{fstype: c.fstype})
		if diff := cmp.Diff(c.want, told(l)); diff != "" {
			t.Errorf("%s: %s", c.fstype, diff)
		}
	}
}

// TestListed counts CPUs in lists of the kernel.
func TestListed(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{"0": 1, "0,4": 2, "0-1": 2, "0-3,8-11": 8, "": 0, "1-0": 0, "a": 0} {
		if n, ok := listed(list); n != want || ok != (want > 0) {
			t.Errorf("%q: %d CPUs, want %d", list, n, want)
		}
	}
}
