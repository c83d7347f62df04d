package fio_test

import (
	"fmt"
	"os"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio"
)

// A published job file becomes one that runs on a machine's own files, a hundredth of the size.
func Example() {
	job, err := fio.Engine{}.Command(workload.Spec{
		Name:       "OLTP",
		ConfigFile: "oltp.fio",
		Config: []byte("[db]\nfilename=/dev/sdb\nsize=28G\nbs=8k\nrw=randrw\niodepth=8\nioengine=libaio\n" +
			"exec_prerun=sync\n"),
		Disks:     []target.Disk{{Device: "/dev/sdb", Path: "/srv/run/vm1/sdb.img", Bytes: 320 << 20}},
		Seed:      42,
		SizeScale: 0.01,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(job.Files["OLTP/job.fio"])
	fmt.Println(job.Notes[0])
	fmt.Println(job.Streams[0].Depth, "outstanding on", job.Streams[0].Device)
	// Output:
	// [global]
	// group_reporting
	// disk_util=0
	// continue_on_error=all
	//
	// [section-1]
	// filename=/srv/run/vm1/sdb.img
	// size=299892736
	// bs=8k
	// rw=randrw
	// iodepth=8
	// ioengine=libaio
	// dropped exec_prerun: it would run a command of the file's author on the host
	// 8 outstanding on /dev/sdb
}
