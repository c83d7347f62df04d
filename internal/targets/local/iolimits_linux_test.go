package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// Of the quotas of a process's group and of those above it the least counts, on the device under the disks only.
func TestIOLimits(t *testing.T) {
	files := map[string]string{
		"proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw",
		"proc/self/cgroup":    "0::/outer/inner",
		"sys/dev/block/8:0":   "-> ../../devices/disk/block/sda", "sys/block/sda": "-> ../devices/disk/block/sda",
		"sys/devices/disk/block/sda":             "/",
		"sys/devices/disk/block/sda/dev":         "8:0",
		"sys/fs/cgroup/outer/io.max":             "8:16 rbps=1 wbps=1 riops=1 wiops=1\n8:0 rbps=max wbps=2097152 riops=500 wiops=max",
		"sys/fs/cgroup/outer/inner/io.max":       "8:0 rbps=max wbps=1048576 riops=700 wiops=max",
		"sys/fs/cgroup/outer/inner/other/io.max": "8:0 rbps=1 wbps=1 riops=1 wiops=1",
	}
	var l factList
	limitFacts(&l, tree(files), storage{group: "storage", device: "sda"})
	want := factList{
		{Group: "storage", Name: "reads a second at most", Value: "500 IOPS by io.max of /sys/fs/cgroup/outer",
			Kind: result.LimitReadRate, Number: 500, Identifies: result.Path},
		{Group: "storage", Name: "bytes written a second at most",
			Value: "1 MiB/s by io.max of /sys/fs/cgroup/outer/inner",
			Kind:  result.LimitWriteBandwidth, Number: 1 << 20, Identifies: result.Path},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
	l = nil
	if limitFacts(&l, tree(files), storage{group: "storage", device: "sdz"}); len(l) > 0 {
		t.Errorf("of another device: %v", l)
	}
	files["proc/self/mountinfo"] = "31 1 0:27 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio"
	files["proc/self/cgroup"] = "4:blkio:/box"
	files["sys/fs/cgroup/blkio/blkio.throttle.read_iops_device"] = "8:0 7\n" // of a group above, which bounds nobody
	files["sys/fs/cgroup/blkio/box/blkio.throttle.read_iops_device"] = "8:16 9\n8:0 300\n"
	files["sys/fs/cgroup/blkio/box/blkio.throttle.write_bps_device"] = "8:0 2097152\n"
	l = nil
	limitFacts(&l, tree(files), storage{group: "storage", device: "sda"})
	want = factList{
		{Group: "storage", Name: "reads a second at most",
			Value: "300 IOPS by blkio.throttle.read_iops_device of /sys/fs/cgroup/blkio/box",
			Kind:  result.LimitReadRate, Number: 300, Identifies: result.Path},
		{Group: "storage", Name: "bytes written a second at most",
			Value: "2 MiB/s by blkio.throttle.write_bps_device of /sys/fs/cgroup/blkio/box",
			Kind:  result.LimitWriteBandwidth, Number: 2 << 20, Identifies: result.Path},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error("of version 1:", diff)
	}
}
