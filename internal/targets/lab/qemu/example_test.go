package qemu_test

import (
	"fmt"

	"plimsoll/internal/targets/lab/qemu"
)

// A machine's command line says which disks it has, in the order in which the guest sees them.
func Example() {
	s := qemu.Spec{Name: "vm-1", Accel: qemu.TCG, CPUs: 1, MemoryBytes: 128 << 20,
		Disks: []qemu.Disk{{Path: "/lab/vm-1/disk.qcow2", Format: qemu.Qcow2, Serial: "data1"}}}
	argv := s.Argv("/lab/vm-1", false)
	fmt.Println(argv[len(argv)-1])
	// Output: scsi-hd,bus=scsi.0,id=disk0,drive=disk0,serial=data1
}
