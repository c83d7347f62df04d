package vioperf

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The figures are iostat's, by its own formulas: 1000 writes of 512 KiB in 2 s, each 8 ms, the device busy for 1.5 s.
func TestDeviceUntil(t *testing.T) {
	began := time.Unix(1000, 0)
	before := tally{began, []uint64{5, 0, 40, 1, 100, 10, 1000, 50, 0, 100, 200, 9, 9}}
	after := tally{began.Add(2 * time.Second), []uint64{6, 0, 48, 2, 1100, 30, 1000 + 1000*1024, 8050, 0, 1600, 8200}}
	want := &Device{Writes: 500, BytesPerSecond: 500 << 19, RequestBytes: 512 << 10, Await: 0.008, Queue: 4,
		Utilization: 0.75, Merged: 10, Bytes: 1000 << 19, ReadBytes: 8 * 512}
	if diff := cmp.Diff(want, before.until(after), cmpopts.IgnoreUnexported(Device{})); diff != "" {
		t.Error(diff)
	}
	for name, now := range map[string]tally{
		"no time": {began, after.counts}, "an old kernel": {after.at, after.counts[:9]},
	} {
		if d := before.until(now); d != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
	// A counter of 32 bits that has come around.
	wrapped := before
	wrapped.counts = append([]uint64{}, before.counts...)
	wrapped.counts[4] = 1<<32 - 10
	over := tally{after.at, append([]uint64{}, after.counts...)}
	over.counts[4] = 90
	if d := wrapped.until(over); d.Writes != 50 {
		t.Errorf("%+v", d)
	}
}

func TestRelation(t *testing.T) {
	base := Result{Place: Place{Device: "sdb", MostRequest: 512 << 10}, Direct: true, Threads: 1, QueueDepth: 4,
		BlockBytes: 1 << 20, Blocks: 1000, Bytes: 1000 << 20, Seconds: 2, Service: Times{Mean: 0.008}}
	with := func(change func(*Result, *Device)) Result {
		res, d := base, Device{Bytes: base.Bytes, RequestBytes: 1 << 20, Await: 0.002, Queue: 4, Utilization: 1}
		res.DeviceSaw = &d
		change(&res, &d)
		return res
	}
	for want, res := range map[string]Result{
		"not known: tmpfs is memory": {Place: Place{NoDevice: "tmpfs is memory"}},
		"could not be read":          {Place: Place{Device: "sdb"}},
		"saw no write":               with(func(_ *Result, d *Device) { d.Bytes = 0 }),
		"21 % more than":             with(func(_ *Result, d *Device) { d.Bytes = d.Bytes * 121 / 100 }),
		"50 % less than":             with(func(_ *Result, d *Device) { d.Bytes /= 2 }),
		"to within 0.0 %":            with(func(*Result, *Device) {}),
		"no more than 512 KiB at":    with(func(_ *Result, d *Device) { d.RequestBytes = 512 << 10 }),
		"extents, its metadata": with(func(r *Result, d *Device) {
			d.RequestBytes, r.MostRequest = 356<<10, 4<<20
		}),
		"were merged":       with(func(_ *Result, d *Device) { d.RequestBytes = 2 << 20 }),
		"as they were":      with(func(*Result, *Device) {}),
		"kept 4.0 blocks":   with(func(*Result, *Device) {}),
		"waited above":      with(func(_ *Result, d *Device) { d.Queue = 0.8 }),
		"took the tool 8 m": with(func(*Result, *Device) {}),
	} {
		if said := strings.Join(relation(&res), "\n"); !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}

func TestFindDevice(t *testing.T) {
	line := func(number, name string) string {
		return strings.Replace(number, ":", " ", 1) + " " + name + strings.Repeat(" 0", 17) + "\n"
	}
	system := fstest.MapFS{
		"proc/diskstats": {Data: []byte(line("8:0", "sda") + line("8:1", "sda1") + line("253:0", "dm-0"))},
		"proc/self/mountinfo": {Data: []byte("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 1 0:40 / /b rw - btrfs " +
			"/dev/sdb rw\n")},
		"proc/meminfo":                        {Data: []byte("MemTotal: 10 kB\nMemAvailable:  7 kB\n")},
		"sys/block/sda/sda1/partition":        {Data: []byte("1\n")},
		"sys/block/sda/queue/max_sectors_kb":  {Data: []byte("1280\n")},
		"sys/block/dm-0/queue/max_sectors_kb": {Data: []byte("512\n")},
	}
	for number, want := range map[string]Place{
		"8:1":   {Type: "ext4", Device: "sda1", MostRequest: 1280 << 10},
		"253:0": {Device: "dm-0", MostRequest: 512 << 10},
		"0:40":  {Type: "btrfs", NoDevice: "btrfs carries no block device's number (0:40)"},
	} {
		got := Place{number: number}
		got.Type = mountOf(system, number)
		got.findDevice(system)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Place{})); diff != "" {
			t.Errorf("%s: %s", number, diff)
		}
	}
	if got := memoryAvailable(system); got != 7<<10 {
		t.Errorf("%d bytes of memory", got)
	}
}

func legs(kinds string, each map[rune]Leg) (all []Leg) {
	for _, k := range kinds {
		all = append(all, each[k])
	}
	return all
}

func TestComparison(t *testing.T) {
	saw := func(request float64) *Device {
		return &Device{RequestBytes: request, Queue: 2, Utilization: 0.9, Bytes: 101}
	}
	c := Comparison{Rounds: 2, Legs: legs("VFFVCSRK"+"FVVFCSRK"+"FV", map[rune]Leg{
		'V': {Ours, 100, 200e6, 0.20, 0.08, saw(1 << 20)}, 'F': {Plain, 100, 100e6, 0.10, 0.08, saw(512 << 10)},
		'C': {NoChecksum, 100, 200e6, 0.15, 0.08, saw(1 << 20)}, 'S': {NoMaking, 100, 200e6, 0.16, 0.08, saw(1 << 20)},
		'R': {Refilled, 100, 100e6, 0.25, 0.08, saw(1 << 20)}, 'K': {Summed, 100, 100e6, 0.4, 0.08, saw(1 << 20)},
	})}
	c.judge(Options{BlockBytes: 1 << 20})
	one := func(v float64) Ratio { return Ratio{v, v, v} }
	want := Comparison{Rounds: 2, Legs: c.Legs, Throughput: one(2), CPU: one(2), CPURefilled: one(0.8),
		CPUSummed: one(0.5), Checksum: one(1), Diagnosis: []string{
			"vioperf wrote faster than fio in every round, 2.00 times as fast in the middle one.",
			"Processor time per GB: vioperf 0.200 s, fio 0.100 s. Of vioperf's, checksums take 0.050 s, the stamps that " +
				"make every sector differ 0.040 s, the kernel 0.080 s; fio's kernel part is 0.080 s. fio neither sums up nor makes data " +
				"anew unless told: then it takes 0.400 s.",
			"Checksums are not the limit: with them throughput is 1.000 (1.000 to 1.000) of that without.",
			"The device saw requests of 1 MiB from vioperf and 512 KiB from fio (avgrq-sz 2048 and 1024 sectors), 2.0 and " +
				"1.0 blocks' worth outstanding, and was busy 90 % and 90 % of the time.",
			"Request sizes differ, so part of the difference is how blocks reach the device.",
			"Queues differ: whichever keeps more at the device leaves it idle less.",
			"Besides the data the device was written 1.0 % more under vioperf and 1.0 % under fio: metadata, the journal " +
				"and others.",
		}}
	if diff := cmp.Diff(want, c, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreUnexported(Device{})); diff != "" {
		t.Error(diff)
	}
}

const fioSays = `fio: a word before
{
  "jobs" : [{"jobname" : "beside", "error" : 0, "job_runtime" : 8000, "usr_cpu" : 1.5, "sys_cpu" : 3.5,
    "write" : {"io_bytes" : 4000000000, "bw_bytes" : 1000000000}}]
}`

func TestReadFio(t *testing.T) {
	got, err := readFio([]byte(fioSays))
	want := Leg{Bytes: 4e9, BytesPerSecond: 1e9, SystemPerGB: 0.07, CPUPerGB: 0.1}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func FuzzReadFio(f *testing.F) {
	f.Add([]byte(fioSays))
	f.Add([]byte(`{"jobs":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if leg, err := readFio(data); err == nil && leg.Bytes <= 0 {
			t.Errorf("%s of nothing", fmt.Sprint(leg))
		}
	})
}
