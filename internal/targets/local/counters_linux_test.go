package local

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/targets/underneath"
)

// counting is a machine of four CPUs on two NUMA nodes with a partitioned disk.
func counting(more map[string]string) fstest.MapFS {
	files := map[string]string{
		"sys/devices/system/node/node0/cpulist": "0,2\n", "sys/devices/system/node/node1/cpulist": "1,3\n",
		"proc/stat": "cpu  1 2 3 4 5 6 7 8 0 0\n" +
			"cpu0 100 50 30 1000 20 5 10 7 0 0\ncpu1 0 0 0 2000 0 0 0 0 0 0\ncpu2 1 x 1 1 1 1 1 1 0 0\ncpu3 1 2 " +
			"3\nintr 5\n",
		"proc/diskstats": "   8       0 sda 10 1 800 5 20 2 1600 6 0 1500 11\n   8       1 sda1 9 1 792 5 20 2 1600 " +
			"6 0 1400 11\n 254 0 vdx 1 2 3\n 254 16 vdy a 0 0 0 0 0 0 0 0 0 0\n",
	}
	for name, text := range more {
		files[name] = text
	}
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// TestQuotas has a sandbox with a quota in either version's hierarchy, and one above the run, as a container has.
func TestQuotas(t *testing.T) {
	for name, mounts := range map[string]string{
		"v2": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"v1": "30 1 0:26 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu,cpuacct\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			system := counting(map[string]string{
				"proc/self/mountinfo":               mounts,
				"proc/self/cgroup":                  "4:cpu,cpuacct:/box\n0::/box\n",
				"sys/fs/cgroup/cpu.stat":            "usage_usec 12\n",
				"sys/fs/cgroup/box/cpu.stat":        "nr_periods 100\nnr_throttled 25\nthrottled_usec 9\n",
				"sys/fs/cgroup/box/run/A1/cpu.stat": "nr_periods 50\nnr_throttled 40\nnr_bursts x\n",
				"sys/fs/cgroup/box/run/B1/cpu.stat": "nr_periods 0\nnr_throttled 0\n",
				"proc/pressure/cpu":                 "some avg10=1.50 avg60=0.90 avg300=0.20 total=2500000\n",
				"proc/pressure/io":                  "some avg10=0.00 total=1000\nfull avg10=0.00 total=900\n",
			})
			c := &cluster{settings: settings{system: system, clock: clock.Real{}}, cpus: underneath.New(system),
				groups: groupSet{name: "run",
					controlGroups: controlGroups{cpu: controlBase{dir: "/sys/fs/cgroup/box"}}},
				boxes: map[string]*sandbox{"A": {name: "A", key: "A1", cpus: 2}, "B": {name: "B", key: "B1", cpus: 2},
					"C": {name: "C", cpus: 2}}}
			got, err := c.HostCounters(t.Context())
			want := []target.QuotaCounter{{Machine: "A", Periods: 50, Throttled: 40},
				{Machine: "host", Periods: 100, Throttled: 25}}
			if diff := cmp.Diff(want, got.Quotas); diff != "" || err != nil {
				t.Error(diff, err)
			}
			waits := []target.WaitCounter{{Machine: "host", Resource: "cpu", Waited: 2500 * time.Millisecond},
				{Machine: "host", Resource: "io", Waited: time.Millisecond}}
			if diff := cmp.Diff(waits, got.Waits); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHostCounters(t *testing.T) {
	system := counting(nil)
	c := &cluster{settings: settings{system: system, clock: clock.Real{}}, cpus: underneath.New(system),
		devices: []string{"sda"},
		boxes:   map[string]*sandbox{}}
	got, err := c.HostCounters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tick := 10 * time.Millisecond
	want := target.HostCounters{
		CPUs: []target.CPUCounter{
			{Host: "host", CPU: 0, NUMA: 0, User: 150 * tick, System: 30 * tick, Idle: 1020 * tick,
				Interrupt: 15 * tick, Steal: 7 * tick},
			{Host: "host", CPU: 1, NUMA: 1, Idle: 2000 * tick},
		},
		Devices: []target.DeviceCounter{{Host: "host", Device: "sda", Reads: 10, ReadBytes: 800 * 512, Writes: 20,
			WrittenBytes: 1600 * 512, Busy: 1500 * time.Millisecond, Operations: 11 * time.Millisecond}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	system["proc/stat"].Data = []byte("cpu0 100 60 20 1000 10 5 10 7 0 0\n") // waits for I/O and system time went back
	got, err = c.HostCounters(t.Context())
	want.CPUs = []target.CPUCounter{{Host: "host", CPU: 0, NUMA: 0, User: 160 * tick, System: 30 * tick,
		Idle: 1020 * tick, Interrupt: 15 * tick, Steal: 7 * tick}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, device := range []string{"", "sdb", "vdx", "vdy"} {
		c.devices = []string{device}
		if got, err := c.HostCounters(t.Context()); err != nil || got.Devices != nil {
			t.Errorf("device %q: %v, %v", device, got.Devices, err)
		}
	}
	delete(system, "proc/stat")
	if _, err := c.HostCounters(t.Context()); err == nil || err.Error() != "host counters: /proc/stat: file does "+
		"not exist" {
		t.Error(err)
	}
}

// Only a mount that carries a block device's own number has counters that are sure to see its files.
func TestCountedDevice(t *testing.T) {
	system := counting(map[string]string{"sys/block/sda/dev": "8:0\n", "sys/block/sda/sda1/dev": "8:1\n",
		"sys/block/dm-0/dev": "253:0\n"})
	for name, c := range map[string]struct {
		m         device.Mount
		name, why string
	}{
		"whole disk": {device.Mount{Device: "8:0", FSType: "xfs"}, "sda", ""},
		"partition":  {device.Mount{Device: "8:1", FSType: "ext4"}, "sda", ""},
		"mapped":     {device.Mount{Device: "253:0", FSType: "ext4"}, "dm-0", ""},
		"memory":     {device.Mount{Device: "0:40", FSType: "tmpfs"}, "", "tmpfs is memory, no device"},
		"overlay": {device.Mount{Device: "0:41", FSType: "overlay"}, "",
			"overlay lies on other mounts, which this process may not see"},
		"own numbers": {device.Mount{Device: "0:42", FSType: "btrfs", Source: "/dev/sda1"}, "",
			"btrfs carries no block device's number (0:42), so no one device's counters are sure to see its files"},
	} {
		got, why := countedDevice(system, c.m)
		if got != c.name || why != c.why {
			t.Errorf("%s: %q, %q", name, got, why)
		}
	}
}

// On this machine counters never fall, every CPU is there once, and a thread that computes is seen to.
func TestCountersOfThisHost(t *testing.T) {
	c, h := sandboxes(t, target.Options{}, 1<<20)
	u, err := h.Start(t.Context(), target.Command{Argv: []string{"/bin/sh", "-c", "while :; do :; done"},
		Label: "spin"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Kill()
	first, err := c.HostCounters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for u.Usage().User < 50*time.Millisecond {
		time.Sleep(10 * time.Millisecond)
	}
	second, err := c.HostCounters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(first.CPUs) == 0 || len(second.CPUs) != len(first.CPUs) {
		t.Fatalf("%d and %d CPUs", len(first.CPUs), len(second.CPUs))
	}
	for i, one := range second.CPUs {
		if before := first.CPUs[i]; one.CPU != before.CPU || one.User < before.User || one.System < before.System {
			t.Errorf("CPU %d: %+v after %+v", i, one, before)
		}
	}
	if len(second.Generators) != 1 || second.Generators[0].VM != "a" || second.Generators[0].Label != "spin" ||
		second.Generators[0].Busy <= 0 {
		t.Errorf("generators: %+v", second.Generators)
	}
}

// BenchmarkHostCounters is one reading of a large machine: 256 CPUs, a device, no commands.
func BenchmarkHostCounters(b *testing.B) {
	var stat strings.Builder
	for i := range 256 {
		fmt.Fprintf(&stat, "cpu%d 724177 532468 186917 827784 95655 0 13983 1855 0 0\n", i)
	}
	system := counting(map[string]string{"proc/stat": stat.String()})
	c := &cluster{settings: settings{system: system, clock: clock.Real{}}, cpus: underneath.New(system),
		devices: []string{"sda"},
		boxes:   map[string]*sandbox{}}
	for b.Loop() {
		if _, err := c.HostCounters(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
