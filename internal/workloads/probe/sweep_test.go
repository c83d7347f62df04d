package probe_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/internal/workloads/probe"
	"plimsoll/unit"
)

func usual(what ...string) probe.Sweep {
	s := probe.Sweep{Devices: []string{"disk"}, ReadWrite: "randread", Block: 4 * unit.KiB, Size: unit.GiB, Depth: 16,
		Processes: 1, ReadShare: 50, Duration: 30 * time.Second, WarmUp: 2 * time.Second, Repeats: 3}
	for _, w := range what {
		s.Factors = append(s.Factors, probe.Factor{What: w})
	}
	return s
}

// TestUsualLevels: what is swept when nobody says, as the reader of job files gets it.
func TestUsualLevels(t *testing.T) {
	t.Parallel()
	large := usual("wss")
	large.Size = 100 * unit.GiB
	mixed := usual("mix", "bs")
	mixed.ReadWrite = "randrw"
	for _, c := range []struct {
		sweep probe.Sweep
		want  []workload.Sweep
	}{
		{usual("iodepth"), []workload.Sweep{{Key: "iodepth", Values: strings.Fields("1 2 4 8 16 32 64 128 256")}}},
		{usual("wss"), []workload.Sweep{{Key: "size", Values: strings.Fields("4m 8m 16m 32m 64m 128m 256m 512m 1g")}}},
		{large, []workload.Sweep{{Key: "size", Values: strings.Fields("25m 100m 400m 1600m 6400m 25g 100g")}}},
		{mixed, []workload.Sweep{{Key: "rwmixread", Values: strings.Fields("100 75 50 25 0")},
			{Key: "bs", Values: strings.Fields("4k 8k 16k 32k 64k 128k 256k 512k 1m")}}},
	} {
		got, err := c.sweep.Request()
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(c.want, got.Sweeps); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRequestsAreRead: fio's reader takes every request that is made, with each kind of load.
func TestRequestsAreRead(t *testing.T) {
	t.Parallel()
	for _, rw := range []string{"read", "write", "randread", "randwrite", "rw", "randrw"} {
		for _, access := range []string{"", "uniform", "zipf:1.2", "pareto:0.9", "normal:20"} {
			for _, processes := range []int{1, 4} {
				s := usual("iodepth", "bs")
				s.ReadWrite, s.Access, s.Processes, s.Devices = rw, access, processes, []string{"a", "b.1", "c-2"}
				if !strings.HasPrefix(rw, "rand") {
					s.Access = ""
				}
				r, err := s.Request()
				if err != nil {
					t.Errorf("%s %s %d: %v", rw, access, processes, err)
					continue
				}
				if _, err := (fio.Engine{}).ReadOwn(r); err != nil {
					t.Errorf("%s %s %d: %v", rw, access, processes, err)
				}
			}
		}
	}
}

// TestObjectsAtOnce: every mistake of a request is told.
func TestObjectsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := probe.Sweep{Devices: []string{"a", "a", "b c"}, Factors: []probe.Factor{{What: "depth"},
		{What: "iodepth", Levels: []string{"1", "1", "x"}}, {What: "bs", Levels: []string{"100", "1g"}},
		{What: "mix", Levels: []string{"101", "50%"}}, {What: "wss", Levels: []string{"2t"}}},
		ReadWrite: "randread", Access: "zipf:1", Block: 100, Size: 10, Depth: 0, Processes: 0, ReadShare: 101,
		Duration: time.Millisecond, WarmUp: -1, Repeats: 0}.Request()
	if err == nil {
		t.Fatal("let through")
	}
	for _, want := range []string{`device "a"`, `device "b c"`, `--what "depth"`, `"1" is there twice`, `"x": want a whole`,
		`"100": want a multiple`, `"101": want a whole`, "--what mix varies", `--access "zipf:1"`, "--bs 100",
		"--size 10", "--iodepth 0", "--numjobs 0", "--read-share 101", "--duration 1ms", "--warm-up", "--repeats 0",
		`"2t": larger than`, "1 values: want 2 to 64"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %s:\n%v", want, err)
		}
	}
}

// TestOnlyReads: devices that hold what is not ours are not filled, loads that write are refused, and lines of a sheet
// that do are left out.
func TestOnlyReads(t *testing.T) {
	t.Parallel()
	s := usual("iodepth")
	s.ReadOnly = true
	r, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	own, err := (fio.Engine{}).ReadOwn(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(own.Files, "prefill.fio"); err == nil {
		t.Error("it would be filled")
	}
	s.ReadWrite = "randrw"
	if _, err := s.Request(); err == nil || !strings.Contains(err.Error(), "--rw randrw writes") {
		t.Errorf("let through: %v", err)
	}
	sheet, err := probe.ParseSheet("s.yaml", []byte("random-read: 5\nrandom-write: 5\nsequential-write: 1MB/s\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.ReadWrite = "randread"
	r, err = probe.Spec{Sheet: sheet, Sweep: s}.Request()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(r.Data); strings.Contains(text, "write") || !strings.Contains(text, "[random-read]") {
		t.Errorf("it writes:\n%s", text)
	}
}

// What a working-set sweep on two devices asks of fio.
func ExampleSweep_Request() {
	s := usual("wss")
	s.Devices, s.Access, s.Depth = []string{"sata", "sas"}, "zipf:1.2", 1
	r, err := s.Request()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Summary)
	fmt.Print(string(r.Data))
	// Output:
	// What working set gives for random reads on sata, sas: blocks of 4 KiB, queue depth 1, access zipf:1.2.
	// [global]
	// ioengine=libaio
	// direct=1
	// time_based
	// ramp_time=2
	// rw=randread
	// norandommap
	// randrepeat=0
	// random_distribution=zipf:1.2
	// bs=4k
	// iodepth=1
	//
	// [sata]
	// stonewall
	// filename=sata
	// size=1g
	//
	// [sas]
	// stonewall
	// filename=sas
	// size=1g
}

// TestSheet: lines, the usual loads, and loads of their own, as jobs that only read first.
func TestSheet(t *testing.T) {
	t.Parallel()
	s, err := probe.ParseSheet("s.yaml", []byte(`device: Example
interface: SATA
random-write: {rated: "67,000", bs: 8k, iodepth: 8, numjobs: 2}
sequential-read: 540 MB/s
random-read: [98000, {rated: 10000, iodepth: 1}]
random-read-latency: 90us
`))
	if err != nil {
		t.Fatal(err)
	}
	want := probe.Sheet{Device: "Example", Interface: "sata", Lines: []probe.Line{
		{Name: "random-write", Workload: "random-write", At: 3, Measure: probe.Rate, Text: "67,000", Rated: 67000,
			ReadWrite: "randwrite", Block: 8192, Depth: 8, Processes: 2},
		{Name: "sequential-read", Workload: "sequential-read", At: 4, Measure: probe.Bandwidth, Text: "540 MB/s",
			Rated: 540e6, ReadWrite: "read", Block: 128 << 10, Depth: 32, Processes: 1},
		{Name: "random-read", Workload: "random-read", At: 5, Measure: probe.Rate, Text: "98000", Rated: 98000,
			ReadWrite: "randread", Block: 4096, Depth: 32, Processes: 1},
		{Name: "random-read", Workload: "random-read-2", At: 5, Measure: probe.Rate, Text: "10000", Rated: 10000,
			ReadWrite: "randread", Block: 4096, Depth: 1, Processes: 1},
		{Name: "random-read-latency", Workload: "random-read-latency", At: 6, Measure: probe.Latency, Text: "90us",
			Rated: 90e-6, ReadWrite: "randread", Block: 4096, Depth: 1, Processes: 1}}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	r, err := probe.Spec{Sheet: s, Sweep: usual()}.Request()
	if err != nil {
		t.Fatal(err)
	}
	f, err := fiofile.Parse(r.Name, r.Data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range f.Jobs() {
		names = append(names, j.Name)
	}
	if diff := cmp.Diff([]string{"sequential-read", "random-read", "random-read-2", "random-read-latency",
		"random-write"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := (fio.Engine{}).ReadOwn(r); err != nil {
		t.Error(err)
	}
}

// TestSheetObjections: all at once, each with its line.
func TestSheetObjections(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":           "s.yaml: want lines of NAME: VALUE",
		"- a":        "s.yaml: want lines of NAME: VALUE",
		"device: []": "s.yaml:1: device: want one value",
		"interface: usb\nrandom-reed: 5\nrandom-read: fast\nrandom-read: 1": "s.yaml:1: interface \"usb\": want sata, sas or " +
			"nvme\ns.yaml:2: no rating \"random-reed\"; did you mean \"random-read\"?\ns.yaml:3: random-read: rate \"fast\": " +
			"want a number and a unit, like \"4000\" or \"4,000 IOPS\"\ns.yaml:4: random-read: is given twice",
		"random-read:\n  bs: 4k\n  depth: 3": "s.yaml:3: random-read: \"depth\": want rated, bs, iodepth or numjobs\n" +
			"s.yaml:2: random-read: nothing is rated: write rated: VALUE",
		"random-read: {rated: 0, iodepth: 0}": "s.yaml:1: random-read: iodepth: \"0\" is not a whole number from 1 to 4096\n" +
			"s.yaml:1: random-read: \"0\": a rating above 0 is wanted",
		"interface: sata\nrandom-read: {rated: 9, iodepth: 64}": "s.yaml:2: random-read: 64 in flight, and SATA " +
			"queues 32: what is beyond only waits; give an iodepth and numjobs that fit",
		"random-read: []":    "s.yaml:1: random-read: want one value",
		"random-read: [[1]]": "s.yaml:1: random-read: want a value, or rated: with bs:, iodepth: and numjobs:",
	} {
		if _, err := probe.ParseSheet("s.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q:\n%v\nwant:\n%s", text, err, want)
		}
	}
}

func FuzzSheet(f *testing.F) {
	f.Add([]byte("device: x\ninterface: nvme\nrandom-read: [98000, {rated: 5, bs: 8k}]\n"))
	f.Add([]byte("random-read-latency: 5us\nsequential-write: {rated: 1GB/s, numjobs: 3}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := probe.ParseSheet("s.yaml", data)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, l := range s.Lines {
			if !(l.Rated > 0) || l.Block < 512 || l.Depth < 1 || l.Processes < 1 || l.ReadWrite == "" ||
				seen[l.Workload] {
				t.Errorf("%q: %+v", data, l)
			}
			seen[l.Workload] = true
		}
		r, err := probe.Spec{Sheet: s, Sweep: usual()}.Request()
		if err != nil {
			return // too large for the size, or no lines
		}
		if _, err := (fio.Engine{}).ReadOwn(r); err != nil {
			t.Errorf("%q: %v", data, err)
		}
	})
}
