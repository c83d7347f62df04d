package storage

import (
	"bytes"
	"testing"
	"time"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/testkit/golden"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
)

// everyMember is a result in which no member is absent.
func everyMember() (*vioperf.Result, *vioperf.Comparison) {
	p := func(v float64) *float64 { return &v }
	times := vioperf.Times{Mean: 0.002, P50: p(0.0019), P99: p(0.004), P999: p(0.005), Max: 0.006}
	device := vioperf.Device{Writes: 2000, BytesPerSecond: 1024e6, RequestBytes: 512 << 10, Await: 0.0005, Queue: 1.5,
		Utilization: 0.9, Merged: 3, Bytes: 2048e6, ReadBytes: 4096}
	res := &vioperf.Result{
		Version: vioperf.ResultVersion, Place: vioperf.Place{Path: "/mnt/under-test", Type: "ext4",
			TotalBytes: 100 << 30,
			FreeBytes:  60 << 30, Device: "sdb", NoDevice: "why there is none", MostRequest: 512 << 10},
		Folder: "/mnt/under-test/plimsoll-vioperf-1", Direct: false, WhyBuffered: "asked for", Threads: 2,
		QueueDepth: 4,
		BlockBytes: 1 << 20, Checksum: true, Compressibility: 50, Seed: 1, Offered: 1e9, ReserveBytes: 5 << 30,
		WhenFull: vioperf.Wrap, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Asked: 2, Ended: vioperf.Failed,
		Error: "block 7 of thread 2, at byte 7340032: input/output error", Wrapped: 1.5, Seconds: 2, Bytes: 2000e6,
		Blocks: 1907, BytesPerSecond: 1e9, Cores: 2, PerCore: 5e8, SyncSeconds: 0.1, User: 0.3, System: 0.1,
		CPUPerGB:     0.2,
		MachinePerGB: 0.25, Service: times, Response: &times, DeviceSaw: &device, Relation: []string{"A sentence."},
		Series: []vioperf.Second{{Seconds: 1, BytesPerSecond: 1e9, Device: &device}}, Notes: []string{"A note."},
		Verification: &vioperf.Verification{Blocks: 1907, Bytes: 2000e6, Seconds: 1, Bad: 1, Unreadable: 1,
			Stopped: true, FromMemory: "why", Found: []vioperf.Bad{{File: "thread-0001", At: 1 << 20, Block: 1,
				What: "it is all zeros"}}},
	}
	one := vioperf.Ratio{Median: 1.2, Low: 1.1, High: 1.3}
	return res, &vioperf.Comparison{FioVersion: "fio-3.33", FioCommand: []string{"fio", "--rw=write"}, Rounds: 1,
		Legs: []vioperf.Leg{{What: vioperf.Ours, Bytes: 2000e6, BytesPerSecond: 1e9, CPUPerGB: 0.2, SystemPerGB: 0.05,
			DeviceSaw: &device}}, Throughput: one, CPU: one, CPURefilled: one, CPUSummed: one, Checksum: one,
		Diagnosis: []string{"A sentence."}, Stopped: true}
}

// What is printed of a run, for programs and for people.
func TestVioperfPrints(t *testing.T) {
	res, c := everyMember()
	var out bytes.Buffer
	if err := printVioperfJSON(&console.Console{Out: &out}, res, c); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/json/vioperf.json", out.Bytes())
	var text bytes.Buffer
	if err := printVioperf(&text, res); err != nil {
		t.Fatal(err)
	}
	if err := printBesideFio(&text, c); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/vioperf.txt", text.Bytes())
}
