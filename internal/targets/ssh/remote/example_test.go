package remote_test

import (
	"fmt"

	"plimsoll/internal/targets/ssh/remote"
)

// A machine's data disks are /dev/sdb onward for scenarios, whatever the machine itself calls them.
func ExampleMachine_DataDisks() {
	m := remote.Machine{
		Name:   "db1",
		Folder: "/var/tmp/run",
		Disks:  []remote.DiskSpec{{ID: "nvme-A_1"}, {Bytes: 1 << 20}},
	}
	for _, d := range m.DataDisks(nil) {
		fmt.Println(d.Device, d.Path)
	}
	// Output:
	// /dev/sdb /dev/disk/by-id/nvme-A_1
	// /dev/sdc /var/tmp/run/work/disks/2.img
}
