package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"plimsoll/hist"
	"plimsoll/internal/analysis/plausibility"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// closed is a VM with one stream of depth 8 that was kept full for ten minutes.
func closed() (result.Manifest, *result.Data) {
	end := t0.Add(10 * time.Minute)
	ops := reporttest.Ops("read", 4_000_000, 8192, 1e6, 0.4)
	ops.Seconds = 8 * 600 * 0.98
	stream := result.Stream{Name: "j", Device: "/dev/sdb", Depth: 8, Reads: true, Bytes: 200 << 30, Direct: true}
	pre := stream
	pre.Reads, pre.Writes = false, true
	return result.Manifest{
			TimeScale: 1,
			SizeScale: 1,
			Nodes:     []result.Node{{Index: 0, Name: "n0", Cores: 8, MemoryBytes: 64 << 30}},
		},
		&result.Data{
			Start: t0,
			End:   end,
			VMs:   []result.VM{{Name: "vm0", Group: "G", CPUs: 4, MemoryBytes: 2 << 30}},
			Workloads: []result.Workload{
				{
					Name:       "W",
					VM:         "vm0",
					Group:      "G",
					Operations: result.BlockOperations(),
					Prefill:    true,
					Start:      t0.Add(-time.Minute),
					End:        t0,
					Ended:      "finished",
					Streams:    []result.Stream{pre},
				},
				{
					Name:                "W",
					VM:                  "vm0",
					Group:               "G",
					Operations:          result.BlockOperations(),
					Start:               t0,
					End:                 end,
					Ended:               "finished",
					Streams:             []result.Stream{stream},
					Ops:                 []result.OpTotals{ops},
					GeneratorCPUSeconds: 300,
				},
			},
		}
}

func load1(d *result.Data) *result.Workload { return &d.Workloads[1] }

// twoStorages are facts of disks that lie on two storages, behind links of so many bytes per second; 0 is not known.
func twoStorages(links ...float64) (out []result.Fact) {
	for i, number := range links {
		group := []string{"storage", "storage 2"}[i]
		out = append(out, result.Fact{Group: group, Name: "size", Kind: result.StorageSize, Number: 1 << 40})
		if number > 0 {
			out = append(out, result.Fact{Group: group, Name: "device link", Value: "a link", Kind: result.LinkCeiling,
				Number: number})
		}
	}
	return out
}

// TestWording holds every verdict of every check in words; a change of a sentence shows in the golden file.
func TestWording(t *testing.T) {
	cases := []struct {
		name, check string
		change      func(*result.Manifest, *result.Data)
	}{
		{"depth kept", "littles-law", nil},
		{
			"more outstanding than allowed",
			"littles-law",
			func(_ *result.Manifest, d *result.Data) { load1(d).Ops[0].Seconds *= 2 },
		},
		{
			"queue not kept full",
			"littles-law",
			func(_ *result.Manifest, d *result.Data) { load1(d).Ops[0].Seconds /= 3 },
		},
		{"queue kept in submission", "littles-law", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Submitting = 4.5
			load1(d).Ops[0].Seconds /= 3
		}},
		{"queue not kept full, part in submission", "littles-law", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Submitting = 1.5
			load1(d).Ops[0].Seconds /= 3
		}},
		{"rate limited below depth", "littles-law", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Rate = 6600
			load1(d).Ops[0].Seconds /= 3
		}},
		{"sections in turn", "littles-law", func(_ *result.Manifest, d *result.Data) {
			second := load1(d).Streams[0]
			second.Depth, second.Stage = 4, 1
			load1(d).Streams = append(load1(d).Streams, second)
			load1(d).Ops[0].Seconds *= 0.75
		}},
		{"depth unknown", "littles-law", func(_ *result.Manifest, d *result.Data) { load1(d).Streams = nil }},
		{"no histogram", "littles-law", func(_ *result.Manifest, d *result.Data) { load1(d).Ops[0].Hist = nil }},
		{"met", "offered-rate", func(_ *result.Manifest, d *result.Data) { load1(d).Streams[0].Rate = 6667 }},
		{"missed", "offered-rate", func(_ *result.Manifest, d *result.Data) { load1(d).Streams[0].Rate = 8000 }},
		{"exceeded", "offered-rate", func(_ *result.Manifest, d *result.Data) { load1(d).Streams[0].Rate = 5000 }},
		{"mixed lanes", "offered-rate", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams = append(load1(d).Streams, result.Stream{Name: "r", Device: "/dev/sdb", Depth: 1,
				Rate: 10})
		}},
		{"rates in turn", "offered-rate", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Rate = 6667
			load1(d).Streams = append(load1(d).Streams,
				result.Stream{Name: "r", Device: "/dev/sdb", Depth: 1, Rate: 10, Stage: 1})
		}},
		{"idle generator", "generator-cpu", nil},
		{
			"busy generator",
			"generator-cpu",
			func(_ *result.Manifest, d *result.Data) { load1(d).GeneratorCPUSeconds = 600 * 4 * 0.8 },
		},
		{
			"saturated VM",
			"generator-cpu",
			func(_ *result.Manifest, d *result.Data) { load1(d).GeneratorCPUSeconds = 600 * 4 * 0.97 },
		},
		{"saturated node", "generator-cpu", func(m *result.Manifest, d *result.Data) {
			m.Nodes[0].Cores = 2
			load1(d).GeneratorCPUSeconds = 600 * 2 * 0.97
		}},
		{"saturated host", "generator-cpu", func(m *result.Manifest, d *result.Data) {
			m.Nodes = []result.Node{
				{Index: 0, Name: "n0", Cores: 8, MemoryBytes: 64 << 30},
				{Index: 1, Name: "n1", Cores: 8, MemoryBytes: 64 << 30},
			}
			m.OneMachine = true
			for i := range 4 {
				w := *load1(d)
				w.VM, w.Node, w.GeneratorCPUSeconds = fmt.Sprintf("vm%d", i+1), i%2, 600*1.9
				d.Workloads = append(d.Workloads, w)
			}
		}},
		{
			"cost unknown",
			"generator-cpu",
			func(_ *result.Manifest, d *result.Data) { load1(d).GeneratorCPUSeconds = 0 },
		},
		{"prefilled", "never-written", nil},
		{"never prefilled", "never-written", func(_ *result.Manifest, d *result.Data) { d.Workloads[0].Streams = nil }},
		{"other VM prefilled", "never-written", func(_ *result.Manifest, d *result.Data) { d.Workloads[0].VM = "vm9" }},
		{
			"prefilled too late",
			"never-written",
			func(_ *result.Manifest, d *result.Data) { d.Workloads[0].Start = t0.Add(time.Second) },
		},
		{
			"prefilled in part",
			"never-written",
			func(_ *result.Manifest, d *result.Data) { d.Workloads[0].Streams[0].Bytes /= 2 },
		},
		{
			"prefill stopped",
			"never-written",
			func(_ *result.Manifest, d *result.Data) { d.Workloads[0].Ended = "stopped" },
		},
		{
			"prefilled with zeros",
			"never-written",
			func(_ *result.Manifest, d *result.Data) { d.Workloads[0].Streams[0].ZeroData = true },
		},
		{"two disks of a job, both prefilled", "never-written", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Device = "/dev/sdb:/dev/sdc"
			other := d.Workloads[0].Streams[0]
			other.Device = "/dev/sdc"
			d.Workloads[0].Streams = append(d.Workloads[0].Streams, other)
		}},
		{"two disks of a job, one prefilled", "never-written", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Device = "/dev/sdb:/dev/sdc"
		}},
		{"only read, written before", "never-written", sampled(0)},
		{"only read, some never written", "never-written", sampled(51)},
		{"only read, most never written", "never-written", sampled(200)},
		{
			"larger than memory, direct",
			"cache",
			func(_ *result.Manifest, d *result.Data) { load1(d).Streams[0].Bytes = 1 << 40 },
		},
		{"direct and small", "cache", func(_ *result.Manifest, d *result.Data) { load1(d).Streams[0].Bytes = 1 << 30 }},
		{"buffered and small", "cache", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Bytes = 1 << 30
			load1(d).Streams[0].Direct = false
		}},
		{"buffered and large", "cache", func(_ *result.Manifest,
			d *result.Data) {
			load1(d).Streams[0].Direct = false
		}},
		{"extent unknown", "cache", func(_ *result.Manifest, d *result.Data) { load1(d).Streams[0].Bytes = 0 }},
		{"memory unknown", "cache", func(m *result.Manifest, d *result.Data) { m.Nodes, d.VMs = nil, nil }},
		{"plenty free", "device-free", facts(400<<30, 1<<40)},
		{"some free", "device-free", facts(150<<30, 1<<40)},
		{"nearly full", "device-free", facts(52428800000, 1<<40)},
		{"ten minutes", "too-short", nil},
		{"forty seconds", "too-short", lasting(40)},
		{
			"nine seconds, scaled",
			"too-short",
			func(m *result.Manifest, d *result.Data) { m.TimeScale = 0.02; lasting(9)(m, d) },
		},
		{"few operations", "too-short", func(_ *result.Manifest, d *result.Data) { load1(d).Ops[0].Count = 730 }},
		{"no operations", "too-short", func(_ *result.Manifest, d *result.Data) { load1(d).Ops = nil }},
		{"no window", "too-short", lasting(0)},
		{"no errors", "errors", nil},
		{"few errors", "errors", func(_ *result.Manifest, d *result.Data) { load1(d).Errors = 12 }},
		{"many errors", "errors", func(_ *result.Manifest, d *result.Data) { load1(d).Errors = 400_000 }},
		{"data that differ", "errors", func(_ *result.Manifest, d *result.Data) {
			load1(d).Errors, load1(d).Message = 400_000, "job r ended with error 84 ("+result.DataDiffer+")"
		}},
		{"service times", "latency-kind", nil},
		{"open loop", "latency-kind", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].OpenLoop, load1(d).Streams[0].Rate = true, 6000
		}},
		{"open loop, late", "latency-kind", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].OpenLoop, load1(d).Streams[0].Rate = true, 9000
		}},
		{
			"response times",
			"latency-kind",
			func(_ *result.Manifest, d *result.Data) { load1(d).Latency = "response time" },
		},
		{"answered from memory", "too-fast", func(_ *result.Manifest, d *result.Data) {
			load1(d).Ops[0] = reporttest.Ops("read", 4_000_000, 8192, 3e3, 0.4)
		}},
		{"on a RAM disk", "in-memory", func(m *result.Manifest, _ *result.Data) {
			m.Environment = []result.Fact{{Group: "storage", Name: "media", Kind: result.StorageMedia}}
		}},
		{"one of two folders on a RAM disk", "in-memory", func(m *result.Manifest, _ *result.Data) {
			m.Environment = append(twoStorages(0, 0), result.Fact{Group: "storage 2", Name: "media",
				Kind: result.StorageMedia})
		}},
		{"two links side by side", "bus-limit", func(m *result.Manifest, _ *result.Data) {
			m.Environment = twoStorages(30e6, 40e6)
		}},
		{"lost by the fault", "lost", func(_ *result.Manifest, d *result.Data) {
			load1(d).Ended = "lost"
			d.Events = []result.Mark{{Time: load1(d).End, Kind: result.KindFault, Text: "power off"}}
		}},
		{"within the scale", "saturated", nil},
		{"beyond 17 s", "saturated", func(_ *result.Manifest, d *result.Data) { load1(d).Ops[0].Hist.Add(18e9, 3) }},
		{"ended", "lost", nil},
		{"lost", "lost", func(_ *result.Manifest, d *result.Data) { load1(d).Ended = "lost" }},
		{"killed", "lost", func(_ *result.Manifest, d *result.Data) { load1(d).Ended = result.Unrecorded }},
		{"disk full", "lost", func(m *result.Manifest, d *result.Data) {
			load1(d).Ended, m.Error = result.Unrecorded, "the run folder cannot be written: journal: no space left on device"
		}},
		{"generator failed", "lost", func(_ *result.Manifest, d *result.Data) {
			load1(d).Ended = "failed"
			d.Workloads = append(d.Workloads, *load1(d))
			d.Workloads[2].VM, d.Workloads[2].Ended = "vm1", "finished"
		}},
		{"schedule kept but for chance", "latency-kind", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Rate, load1(d).Ops[0].Count = 1, 580 // of 600 arrivals
		}},
		{"behind schedule", "latency-kind", func(_ *result.Manifest,
			d *result.Data) {
			load1(d).Streams[0].Rate = 8000
		}},
		{"two behind schedule", "latency-kind", func(_ *result.Manifest, d *result.Data) {
			load1(d).Streams[0].Rate = 8000
			other := *load1(d)
			other.Name, other.VM = "V", "vm1"
			other.Streams = append([]result.Stream(nil), other.Streams...)
			other.Streams[0].Rate = 12000
			d.Workloads = append(d.Workloads, other)
		}},
		{"no data", "no-data", func(_ *result.Manifest, d *result.Data) { d.Workloads = nil }},
		{"nothing but a prefill", "no-data", func(m *result.Manifest, d *result.Data) {
			m.Measured.State = "yes"
			for i := range d.Workloads {
				d.Workloads[i].Prefill = true
			}
		}},
	}
	var b strings.Builder
	for _, c := range cases {
		m, d := closed()
		if c.change != nil {
			c.change(&m, d)
		}
		found := false
		for _, f := range Run(m, d) {
			if f.Check != c.check {
				continue
			}
			found = true
			fmt.Fprintf(&b, "%s: %s\n  %s: %s\n  %s\n", c.check, c.name, f.Severity, f.Sentence, interval(f))
		}
		if !found {
			t.Errorf("%s: %s: no finding", c.check, c.name)
		}
	}
	golden.Compare(t, "testdata/wording.txt", []byte(b.String()))
}

func interval(f result.Finding) string {
	value := "none"
	if f.Value != nil {
		value = fmt.Sprintf("%.5g", *f.Value)
	}
	if f.Low == nil {
		return fmt.Sprintf("%s = %s %s (no interval: %s)", f.Metric, value, f.Unit, f.NoInterval)
	}
	return fmt.Sprintf("%s = %s %s [%.5g, %.5g]", f.Metric, value, f.Unit, *f.Low, *f.High)
}

// sampled is an environment whose storage is only read, with so many of 256 blocks sampled on it being zeros.
func sampled(zeros int) func(*result.Manifest, *result.Data) {
	return func(m *result.Manifest, _ *result.Data) {
		m.Environment = []result.Fact{{Group: "storage", Kind: result.SampledZeros, Number: float64(zeros) / 256,
			Value: fmt.Sprintf("%d of 256 hold nothing but zeros", zeros)}}
	}
}

func facts(free, size float64) func(*result.Manifest, *result.Data) {
	return func(m *result.Manifest, _ *result.Data) {
		m.Environment = []result.Fact{{Group: "storage", Kind: result.StorageFree, Number: free},
			{Group: "storage", Kind: result.StorageSize, Number: size}}
	}
}

// rated is an environment with one line of a data sheet.
func rated(name, value string) []result.Fact {
	i := slices.IndexFunc(plausibility.Ratings, func(r plausibility.Rating) bool { return r.Name == name })
	f, err := plausibility.Ratings[i].Fact(value)
	if err != nil {
		panic(err)
	}
	return []result.Fact{f}
}

func lasting(s int) func(*result.Manifest, *result.Data) {
	return func(_ *result.Manifest, d *result.Data) { load1(d).End = t0.Add(time.Duration(s) * time.Second) }
}

// TestNeighbour holds the whole answer about a noisy neighbour.
func TestNeighbour(t *testing.T) {
	run := reporttest.Neighbour(reporttest.Options{VMs: 4, Length: 10 * time.Minute})
	findings := Run(run.Manifest, run.Data)
	for _, f := range findings {
		if f.Chart == nil {
			continue
		}
		for i := range f.Chart.Lines { // the points are the fixture's; that there are some is enough
			l := &f.Chart.Lines[i]
			l.Name += fmt.Sprintf(", %d points", len(l.X))
			l.X, l.Y = nil, nil
		}
	}
	got, err := json.MarshalIndent(findings, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/neighbour.json", append(got, '\n'))
}

// TestInvariants feeds nonsense: whatever comes in, every finding is complete, encodable and in order.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, d := closed()
		odd := rapid.SampledFrom([]float64{0, -1, 1e-300, 1, 12345, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)})
		counts := rapid.SampledFrom([]uint64{0, 1, 7, 1 << 40, math.MaxUint64})
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			d.Workloads = append(d.Workloads, d.Workloads[rapid.IntRange(0, 1).Draw(t, "which")])
		}
		for i := range d.Workloads {
			w := &d.Workloads[i]
			w.Name = rapid.SampledFrom([]string{"", "W", "<b>"}).Draw(t, "name")
			w.VM = rapid.SampledFrom([]string{"", "vm0", "vm1"}).Draw(t, "vm")
			w.End = w.Start.Add(time.Duration(rapid.Int64Range(-5, 1<<40).Draw(t, "length")))
			w.Errors, w.GeneratorCPUSeconds = counts.Draw(t, "errors"), odd.Draw(t, "cpu")
			w.Ended = rapid.SampledFrom([]result.Ending{"", "finished", "lost", "failed",
				result.Unrecorded}).Draw(t, "ended")
			w.Ops = []result.OpTotals{
				{Op: "read", Count: counts.Draw(t, "count"), Seconds: odd.Draw(t, "seconds"), Hist: &hist.Histogram{}},
			}
			w.Streams = []result.Stream{
				{
					Depth: rapid.IntRange(-3, 1<<30).Draw(t, "depth"),
					Rate:  odd.Draw(t, "rate"),
					Bytes: rapid.Int64().Draw(t, "bytes"),
					Reads: true,
				},
			}
			w.Windows = []result.Window{
				{Start: w.Start, End: w.End, Ops: w.Ops},
				{Start: w.End, End: w.Start, Ops: w.Ops},
				{Start: w.Start, End: w.End, Ops: w.Ops},
			}
		}
		m.TimeScale = odd.Draw(t, "scale")
		findings := Run(m, d)
		if _, err := json.Marshal(findings); err != nil {
			t.Fatal(err)
		}
		last := 0
		for _, f := range findings {
			if f.Check == "" || f.Sentence == "" || f.Basis == "" || f.Metric == "" || f.Unit == "" {
				t.Fatalf("incomplete: %+v", f)
			}
			if (f.Low == nil) == (f.NoInterval == "") {
				t.Fatalf("interval or a reason for none: %+v", f)
			}
			if f.Low != nil && *f.Low > *f.High {
				t.Fatalf("interval upside down: %+v", f)
			}
			if strings.Contains(f.Sentence, "NaN") || strings.Contains(f.Sentence, "Inf") {
				t.Fatalf("not plain words: %s", f.Sentence)
			}
			if r := order(f.Severity); r < last {
				t.Fatalf("out of order: %+v", f)
			} else {
				last = r
			}
		}
	})
}

func TestEmpty(t *testing.T) {
	for _, d := range []*result.Data{nil, {}, {Workloads: []result.Workload{{Prefill: true}}},
		{Workloads: []result.Workload{{Name: "x"}}}} {
		findings := Run(result.Manifest{}, d)
		if len(findings) == 0 || findings[0].Severity != result.Invalid {
			t.Errorf("%+v: want a blocker first, got %+v", d, findings)
		}
	}
}

// Operations that wait for their turn are in flight, too, by response times: no depth bounds them.
func TestWaitingIsNoDepth(t *testing.T) {
	m, d := closed()
	load1(d).Ops[0].Seconds *= 100
	load1(d).Latency = "response time"
	for _, f := range Run(m, d) {
		if f.Check == "littles-law" {
			t.Errorf("%s: %s", f.Severity, f.Sentence)
		}
	}
}
