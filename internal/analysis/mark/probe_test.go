package mark_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/hist"
	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/testkit/trust"
	"plimsoll/result"
)

// load is a workload of 100 s at a rate whose counts a second are given, all of one latency but for some.
func load(rate float64, depth int, perSecond []uint64, latency string, times func(*hist.Histogram)) *result.Data {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := &hist.Histogram{}
	times(h)
	var n uint64
	for _, c := range perSecond {
		n += c
	}
	w := result.Workload{Name: "OLTP", VM: "a", Latency: latency, Start: start,
		End:        start.Add(time.Duration(len(perSecond)) * time.Second),
		Streams:    []result.Stream{{Name: "job", Depth: depth, Rate: rate, Reads: true}},
		Operations: []result.Operation{{Name: "read", Noun: "reads", Bytes: true, Block: result.BlockRead}},
		Ops: []result.OpTotals{{Op: "read", Count: n, Seconds: h.Sum() / 1e9, Hist: h,
			OverTime: &result.OverTime{Start: start, Step: 1, Counts: perSecond}}}}
	whole := w
	whole.VM = ""
	return &result.Data{Start: start, End: w.End, Workloads: []result.Workload{w, whole}}
}

func even(n uint64, seconds int) (out []uint64) {
	for range seconds {
		out = append(out, n)
	}
	return out
}

func below(measure string, limit float64) result.Assert {
	return result.Assert{Name: measure + " is low", Workload: "OLTP", Operation: "all", Measure: measure,
		AtMost: &limit}
}

// begun is a load whose process began so many seconds after its command.
func begun(d *result.Data, after float64) *result.Data {
	for i := range d.Workloads {
		d.Workloads[i].Start = d.Start.Add(time.Duration(after * 1e9))
	}
	return d
}

// waiting is a load whose busiest thread was ready and waited for a CPU for a share of the time.
func waiting(d *result.Data, share float64) *result.Data {
	d.Workloads[0].ThreadWaiting = &share
	return d
}

// atWork is a load whose operations were in a device for most of their 1.4 ms.
func atWork(d *result.Data) *result.Data {
	for measure, v := range map[string]float64{result.DeviceReads: 1000, result.DeviceInFlight: 1} {
		d.Series = append(d.Series, result.Series{Measure: measure, Machine: "host", Part: "sda", Start: d.Start,
			Step: 10, Values: []*float64{nil, nil, nil, &v, &v, &v, &v, &v, &v}})
	}
	return d
}

// inGuest is a load on a machine with a device of its own.
func inGuest(d *result.Data) *result.Data {
	v := 40.
	d.Series = append(d.Series, result.Series{Measure: result.DeviceBusy, Machine: d.Workloads[0].VM, Part: "sdb",
		Unit: "%", Start: d.Start, Step: 10, Values: []*float64{&v, &v}})
	return d
}

// capped is a load of 2000 a second of which half is done, each in half a second, with so many of 500 in a device; its
// busiest thread waits for a CPU for a fifth of the time.
func capped(inDevice float64) *result.Data {
	d := waiting(load(2000, 512, even(1000, 100), "service time", func(h *hist.Histogram) { h.Add(5e8, 100_000) }), 0.2)
	for measure, v := range map[string]float64{result.DeviceReads: 900, result.DeviceInFlight: inDevice} {
		d.Series = append(d.Series, result.Series{Measure: measure, Machine: "a", Part: "sdb", Start: d.Start,
			Step: 10, Values: []*float64{nil, nil, nil, &v, &v, &v, &v, &v, &v}})
	}
	return d
}

// slow has one of fifty operations take 20 ms.
func slow(h *hist.Histogram) {
	h.Add(1e6, 98_000)
	h.Add(20e6, 2_000)
}

// failing is a workload that does nothing but fail, so that it has no latency.
func failing() *result.Data {
	d := load(1, 8, even(0, 10), "response time", func(*hist.Histogram) {})
	d.Workloads[1].Errors = 10
	return d
}

// TestMetForATime: a rate that is met until a buffer is full is told from one that was beyond the system throughout, or
// stood still for a while.
func TestMetForATime(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		at   func(s int) float64 // share of the rate
		want float64
	}{
		"a buffer is full": {func(s int) float64 {
			if s >= 70 {
				return 0.2
			}
			return 1
		}, 70},
		"too much throughout": {func(int) float64 { return 0.85 }, 0},
		"a little too much":   {func(int) float64 { return 0.96 }, 0},
		"slower and slower":   {func(s int) float64 { return 1 - float64(s)/150 }, 0},
		"full soon":           {func(s int) float64 { return map[bool]float64{true: 1, false: 0.5}[s < 20] }, 0},
		"it stood still and goes on": {func(s int) float64 {
			return map[bool]float64{true: 0, false: 1}[s/10 == 5]
		}, 0},
	} {
		var counts []uint64
		for s := range 100 {
			counts = append(counts, uint64(math.Max(0, c.at(s)*1000+30*r.NormFloat64())))
		}
		d := load(1000, 8, counts, "service time", func(h *hist.Histogram) { h.Add(1e6, 100_000) })
		p, err := mark.Judge(d, nil, "OLTP", []result.Assert{below("p99", 0.002)})
		if err != nil || p.Held || p.Met != c.want {
			t.Errorf("%s: met for %g s, want %g; %+v, %v", name, p.Met, c.want, p, err)
		}
	}
	probes := []mark.Probe{{Offered: 1000, Margin: 3, Held: true}, {Offered: 2000, Behind: true, Met: 25},
		{Offered: 1400, Margin: 3, Held: true}, {Offered: 1450, Behind: true}, {Offered: 1400, Margin: 3, Held: true},
		{Offered: 1450, Behind: true, Met: 45}}
	got := strings.Join(mark.Conclude(mark.Settings{Start: 1000}, probes).Warnings, "; ")
	if want := "the rate of 1,450 IOPS was met for 45 s and then no longer"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	quick := func(h *hist.Histogram) { h.Add(1e6, 100_000) }
	stopped := even(1000, 100) // ten seconds without one, then all of them at once
	for i := 50; i < 60; i++ {
		stopped[i] = 0
	}
	stopped[60] = 11_000
	for name, c := range map[string]struct {
		data     *result.Data
		findings []result.Finding
		limits   []result.Assert
		held     bool
		behind   bool
		margin   float64
		says     string // in Generator
	}{
		"in time": {data: load(1000, 8, even(1000, 100), "service time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, held: true, margin: 5},
		"the nearest limit counts": {data: load(1000, 8, even(1000, 100), "service time", quick),
			limits: []result.Assert{below("p99", 5e-3), below("mean", 2e-3), below("errors", 0)}, held: true,
			margin: 2},
		"a rate that is not met": {data: load(1250, 8, even(1000, 100), "response time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, behind: true},
		// 840 of 1,000 in one second: no start takes a sixth of a probe.
		"a rate that a short probe does not meet": {data: load(1000, 1, even(840, 1), "response time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, behind: true},
		"late sending is counted": {data: load(1000, 8, stopped, "service time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, behind: true, margin: 5e-3 / 9.001},
		"response times are not corrected": {data: load(1000, 8, stopped, "response time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, held: true, margin: 5},
		// One of a hundred takes 1 s in a place whose turn comes every 8 ms: those held back have waited 992 ms, 984,
		// ..., of 100 + 124 values the median is 0.1 s and p90 is 0.82 s.
		"held back in the queue": {data: load(1000, 8, even(1000, 100), "service time", func(h *hist.Histogram) {
			h.Add(1e6, 99_000)
			h.Add(1e9, 1_000)
		}), limits: []result.Assert{below("p90", 50e-3)}, behind: true, margin: 50e-3 / 0.82},
		// 998 of 1,000 a second: within what a generator takes to begin, and late by 0.2 s in the end.
		"one place, and late": {data: load(1000, 1, even(998, 100), "service time", func(h *hist.Histogram) {
			h.Add(1e6, 99_800)
		}), limits: []result.Assert{below("p99", 50e-3)}, behind: true, margin: 50e-3 / 0.193,
			says: "with 1 of 1 operations in flight"},
		"the generator's CPU": {data: load(2000, 8, even(1000, 100), "service time", quick),
			findings: []result.Finding{{Check: "generator-cpu", Severity: result.Invalid, Subject: "OLTP",
				Sentence: "It used 99 % of its CPUs: it was the limit, and so on. Give it more."}},
			limits: []result.Assert{below("p99", 5e-3)}, behind: true, margin: 5e-3 / 48,
			says: "It used 99 % of its CPUs"},
		"it waited for a CPU": {data: waiting(load(1000, 8, even(1000, 100), "service time", slow), 0.2),
			limits: []result.Assert{below("p99", 5e-3)}, margin: 0.25, says: "waited for a CPU 20 % of the time"},
		"it waited for a CPU now and then": {data: waiting(load(1000, 8, even(1000, 100), "service time", slow), 0.05),
			findings: []result.Finding{{Check: "host-cpu", Subject: "run"}},
			limits:   []result.Assert{below("p99", 5e-3)}, margin: 0.25},
		"it waited for a CPU, and for a device": {data: atWork(waiting(load(1000, 8, even(1000, 100), "service time",
			slow), 0.2)), limits: []result.Assert{below("p99", 5e-3)}, margin: 0.25},
		"it shares CPUs with its server": {data: waiting(load(1000, 8, even(1000, 100), "response time", slow), 0.4),
			findings: []result.Finding{{Check: "host-cpu", Subject: "run"}},
			limits:   []result.Assert{below("p99", 5e-3)}, margin: 0.25},
		"it has no CPU beside its server": {data: waiting(load(1000, 8, even(1000, 100), "response time", slow), 0.6),
			limits: []result.Assert{below("p99", 5e-3)}, margin: 0.25, says: "waited for a CPU 60 % of the time"},
		"no CPU to spare, threads unwatched": {data: load(1000, 8, even(1000, 100), "service time", slow),
			findings: []result.Finding{{Check: "host-cpu", Subject: "run"}},
			limits:   []result.Assert{below("p99", 5e-3)}, margin: 0.25, says: "were used up"},
		"a guest sees no wait of its own": {data: inGuest(waiting(load(1000, 8, even(1000, 100), "service time",
			slow), 0)), limits: []result.Assert{below("p99", 5e-3)}, margin: 0.25},
		"a guest that is kept waiting": {data: inGuest(waiting(load(1000, 8, even(1000, 100), "service time",
			slow), 0)), findings: []result.Finding{{Check: "host-cpu", Subject: "run"}},
			limits: []result.Assert{below("p99", 5e-3)}, margin: 0.25, says: "were used up"},
		"a cap, beside which it waits for a CPU": {data: capped(300), limits: []result.Assert{below("p99", 5e-3)},
			behind: true, margin: 5e-3 / 48.5},
		"no CPU, with a device that had little of it": {data: capped(100), limits: []result.Assert{below("p99", 5e-3)},
			behind: true, margin: 5e-3 / 48.5, says: "waited for a CPU 20 % of the time"},
		"errors need no CPU": {data: waiting(failing(), 0.2), limits: []result.Assert{below("errors", 0)}},
		"all that is sent fails": {data: failing(),
			limits: []result.Assert{below("p99", 5e-3), below("errors", 0)}},
		"late to begin": {data: load(1000, 8, append(even(0, 4), even(1000, 96)...), "response time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, held: true, margin: 5},
		"a process that begins after 10.3 s": {data: begun(load(1000, 8, append(even(0, 10),
			append([]uint64{700}, even(1000, 90)...)...), "service time", quick), 10.3),
			limits: []result.Assert{below("p99", 5e-3)}, held: true, margin: 5},
		"a process that is late after it began": {data: begun(load(1000, 8, append(even(0, 10), stopped...),
			"service time", quick), 10),
			limits: []result.Assert{below("p99", 5e-3)}, behind: true, margin: 5e-3 / 9.001},
		"behind with places free": {data: load(2000, 8, even(1000, 100), "service time", quick),
			limits: []result.Assert{below("p99", 5e-3)}, behind: true, margin: 5e-3 / 48,
			says: "with 1 of 8 operations in flight"},
		"one place, and no limit on a time": {data: load(1000, 1, even(800, 100), "service time",
			func(h *hist.Histogram) { h.Add(1.25e6, 80_000) }), limits: []result.Assert{below("errors", 0)},
			behind: true, says: "with 1 of 1 operations in flight, and no limit is on a time"},
		"places enough, and no limit on a time": {data: load(1000, 512, even(800, 100), "service time",
			func(h *hist.Histogram) { h.Add(640e6, 80_000) }), limits: []result.Assert{below("errors", 0)},
			behind: true},
	} {
		p, err := mark.Judge(c.data, c.findings, "OLTP", c.limits)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Held != c.held || p.Behind != c.behind || math.Abs(p.Margin-c.margin) > 0.02*c.margin ||
			!strings.Contains(p.Generator, c.says) || (c.says == "") != (p.Generator == "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A closed loop, a workload that is not there and a measure without a value are errors.
func TestJudgeRefuses(t *testing.T) {
	t.Parallel()
	gone := load(1000, 512, even(1000, 100), "response time", func(h *hist.Histogram) { h.Add(1e6, 100_000) })
	gone.Workloads[1].Values = []result.Value{{Measure: "lost_connections", Value: 8}}
	if _, err := mark.Judge(gone, nil, "OLTP", []result.Assert{below("p99", 5e-3)}); err == nil ||
		!strings.Contains(err.Error(), "was gone") {
		t.Errorf("a server that was gone: %v", err)
	}
	quick := func(h *hist.Histogram) { h.Add(1e6, 10) }
	for want, c := range map[string]struct {
		data     *result.Data
		workload string
		limit    string
	}{
		`job of workload "OLTP" has no rate`: {load(0, 8, even(1000, 10), "service time", quick), "OLTP", "p99"},
		`workload "other" has no job`:        {load(1, 8, even(1000, 10), "service time", quick), "other", "p99"},
		`has 10 operations, too few for p99`: {load(1, 8, even(1, 10), "service time", quick), "OLTP", "p99"},
		`"OLTP" has no measure "speed"`:      {load(1, 8, even(1, 10), "service time", quick), "OLTP", "speed"},
	} {
		_, err := mark.Judge(c.data, nil, c.workload, []result.Assert{below(c.limit, 1)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The share of the added time that is in a device is told where one device did as many operations as the load, and both
// probes know of the same; an impossible share, or nothing to share, is not.
func TestWhereTimeIsAdded(t *testing.T) {
	t.Parallel()
	d := load(1000, 8, even(1000, 100), "service time", func(h *hist.Histogram) { h.Add(1e6, 100_000) })
	for part, n := range map[string][2]float64{"sda": {1000, 0.8}, "sdb": {1200, 0.9}, "dm-0": {950, 0.3}} {
		for measure, v := range map[string]float64{result.DeviceReads: n[0] - 10, result.DeviceWrites: 10,
			result.DeviceInFlight: n[1]} {
			d.Series = append(d.Series, result.Series{Measure: measure, Machine: "host", Part: part, Start: d.Start,
				Step: 10, Values: []*float64{new(float64), nil, nil, nil, &v, &v, nil, &v, &v}})
		}
	}
	p, err := mark.Judge(d, nil, "OLTP", []result.Assert{below("p99", 5e-3)})
	if diff := cmp.Diff(&mark.Spent{Whole: 1e-3, Device: 8e-4, Of: "sda of host"}, p.Spent,
		cmpopts.EquateApprox(0.001, 0)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for other, want := range map[string]string{ // names of machines are of one run only
		"": "sda of Load", "__curie_test_18_Load_0001": "sda of VM 0 of Load",
	} {
		d := *d
		d.Series = append(slices.Clone(d.Series), result.Series{Measure: result.DeviceBusy, Unit: "%", Step: 10,
			Part: "sda", Start: d.Start, Values: []*float64{new(float64)}})
		for i := range d.Series {
			d.Series[i].Machine = "__curie_test_17_Load_0000"
		}
		d.Series = append(d.Series, result.Series{Machine: other})
		p, err = mark.Judge(&d, nil, "OLTP", []result.Assert{below("p99", 5e-3)})
		if err != nil || p.Spent == nil || p.Spent.Of != want || len(p.Used) == 0 || p.Used[0].Of != want {
			t.Errorf("%q: %+v, %+v, %v", other, p.Spent, p.Used, err)
		}
	}
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		whole, device float64 // beyond, of 1 ms and 0.8 ms below
		of, want      string
	}{
		{11e-3, 10.1e-3, "sda", "93 % is below the block layer, in sda."},
		{11e-3, 0.8e-3, "sda", " 0 % is below the block layer, in sda."},
		{11e-3, 10.1e-3, "sdb", ""},
		{11e-3, 20e-3, "sda", ""},
		{1.2e-3, 1e-3, "sda", ""},
	} {
		x := &trust.Bearer{Kind: "queue", Capacity: 5000, Base: 2e-4, Limit: 1e-3, Servers: 1, Noise: 0.02, Seconds: 30}
		var probes []mark.Probe
		s := mark.Settings{Start: 1000}
		for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
			q := x.Probe(step.Rate, r)
			q.Used = []mark.Used{{result.DeviceBusy, "sda", 50}}
			if q.Spent = (&mark.Spent{Whole: 1e-3, Device: 8e-4, Of: "sda"}); !q.Held {
				q.Spent = &mark.Spent{Whole: c.whole, Device: c.device, Of: c.of}
			}
			probes = append(probes, q)
		}
		a := mark.Conclude(s, probes)
		if got := strings.Contains(a.Sentence, "block layer"); got != (c.want != "") || got != (a.Device != nil) ||
			!strings.HasSuffix(beforeGaps(a), c.want) {
			t.Errorf("%+v: %s", c, a.Sentence)
		}
	}
}

// Who waited for a CPU beside an I/O quota that was used up was not the limit: the quota was.
func TestQuotaNotGenerator(t *testing.T) {
	t.Parallel()
	for share, gave := range map[float64]bool{50: true, 99: false} {
		quota := result.Finding{Check: "io-limit", Metric: "share of the quota of reads", Value: &share,
			Evidence: []result.Evidence{{Name: "quota (800 IOPS by Q)"}}}
		d := waiting(load(1000, 8, even(1000, 100), "service time", slow), 0.2)
		p, err := mark.Judge(d, []result.Finding{quota}, "OLTP", []result.Assert{below("p99", 5e-3)})
		if err != nil || p.Held || (p.Generator != "") != gave {
			t.Errorf("%v %% of it: %+v %v", share, p, err)
		}
	}
}

// What was full near the mark is said with what else was used, and nothing is said to be full that was not.
func TestWhatWasFull(t *testing.T) {
	t.Parallel()
	d := load(1000, 8, even(1000, 100), "service time", func(h *hist.Histogram) { h.Add(1e6, 100_000) })
	series := func(measure, machine, part string, from, to float64) {
		s := result.Series{Name: machine, Measure: measure, Machine: machine, Part: part, Unit: "%", Start: d.Start,
			Step: 50, Values: []*float64{&from, &to, nil}}
		d.Series = append(d.Series, s)
	}
	series(result.DeviceBusy, "node-1", "sda", 20, 30)
	series(result.DeviceBusy, "node-1", "sdb", 96, 98)
	series(result.HostCPUs, "node-1", "", 10, 12.4)
	p, err := mark.Judge(d, nil, "OLTP", []result.Assert{below("p99", 5e-3)})
	if err != nil {
		t.Fatal(err)
	}
	want := []mark.Used{{result.DeviceBusy, "sdb of node-1", 97}, {result.HostCPUs, "node-1", 11.2}}
	if diff := cmp.Diff(want, p.Used); diff != "" {
		t.Error(diff)
	}
	for part, n := range map[string]float64{"CPU": 2, "Client": 4, "IO": 0.2, "Lock": 6} {
		series(result.DatabaseSessions, "db", part, n, n)
		d.Series[len(d.Series)-1].Unit = "count"
	}
	p, err = mark.Judge(d, nil, "OLTP", []result.Assert{below("p99", 5e-3)})
	locks := mark.Used{Measure: result.DatabaseSessions, Of: "locks in the database of db", Percent: 75}
	all := []mark.Used{want[0], locks, want[1], {result.DatabaseSessions, "I/O in the database of db", 2.5}}
	if diff := cmp.Diff(all, p.Used); diff != "" || err != nil {
		t.Error(diff, err)
	}
	d.Series = d.Series[:3]
	share := 92.34
	quota := result.Finding{Check: "io-limit", Metric: "share of the quota of reads", Value: &share,
		Evidence: []result.Evidence{{Name: "quota (300 IOPS by Q)"}}}
	p, err = mark.Judge(d, []result.Finding{quota}, "OLTP", []result.Assert{below("p99", 5e-3)})
	want = []mark.Used{want[0], {"io_quota", "quota of reads (300 IOPS by Q)", 92.3}, want[1]}
	if diff := cmp.Diff(want, p.Used); diff != "" || err != nil {
		t.Error(diff, err)
	}
	r := rand.New(rand.NewPCG(7, 6))
	for _, c := range []struct {
		low, percent  float64 // of the device, at the lowest rate and at others
		below, beyond float64 // of a CPU quota, in the probes that held and in those that broke
		locks         float64 // that sessions wait for in those that held; in others 96, unless 0
		want          string
	}{
		{40, 97, 0, 0, 0, " Near it sdb of node-1 was at work 97 % of the time, the CPUs of node-1 were used 11 %."},
		{60, 60, 0, 0, 0, " Nothing that was counted was full near it: sdb of node-1 was at work 60 % of the time."},
		{60, 60, 5, 40, 0, " full near it: sdb of node-1 was at work 60 % of the time." +
			" Beyond it the CPU quota of postgres (cgroup /db) of db held it back in 40 % of its periods, just below it 5 %."},
		{60, 60, 60, 80, 0, " Near it the CPU quota of postgres (cgroup /db) of db held it back in 60 % of its periods, " +
			"sdb of node-1 was at work 60 % of the time."},
		{60, 60, 0, 0, 20, " full near it: sdb of node-1 was at work 60 % of the time." +
			" Beyond it waits for locks in the database of db kept 96 % of the load's sessions, just below it 20 %."},
		{60, 60, 0, 0, 60, " full near it: sdb of node-1 was at work 60 % of the time."},
		{60, 60, 30, 45, 0, " Nothing that was counted was full near it: sdb of node-1 was at work 60 % of the time."},
		{60, 60, 0, 9, 0, " Nothing that was counted was full near it: sdb of node-1 was at work 60 % of the time."},
		{95, 97, 0, 0, 0, " Near it sdb of node-1 was at work 97 % of the time (95 % already at 1,000 IOPS), the CPUs of node-1 were used 11 %."},
	} {
		x := &trust.Bearer{Kind: "queue", Capacity: 5000, Base: 2e-4, Limit: 1e-3, Servers: 1, Noise: 0.02, Seconds: 30}
		var probes []mark.Probe
		s := mark.Settings{Start: 1000}
		for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
			q := x.Probe(step.Rate, r)
			quota := mark.Used{Measure: result.QuotaThrottled, Of: "postgres (cgroup /db) of db", Percent: c.below}
			if !q.Held {
				quota.Percent = c.beyond
			}
			// Another's, now and then.
			other := mark.Used{Measure: result.QuotaThrottled, Of: "java (cgroup /other) of db",
				Percent: float64(95 * (len(probes) % 2))}
			device := mark.Used{Measure: result.DeviceBusy, Of: "sdb of node-1", Percent: c.percent}
			if q.Offered == 1000 {
				device.Percent = c.low
			}
			locks.Percent = c.locks
			if !q.Held && c.locks > 0 {
				locks.Percent = 96
			}
			waits := mark.Used{Measure: result.DatabaseSessions, Of: "I/O in the database of db", Percent: 50}
			q.Used = []mark.Used{device, other, waits, locks, quota, cpus}
			probes = append(probes, q)
		}
		if a := mark.Conclude(s, probes); a.Verdict != mark.Found || !strings.HasSuffix(beforeGaps(a), c.want) {
			t.Errorf("%+v", a)
		}
	}
}

var cpus = mark.Used{Measure: result.HostCPUs, Of: "node-1", Percent: 11.2}

// beforeGaps is an answer's sentence up to what it says of rates that were not offered.
func beforeGaps(a mark.Answer) string {
	text, _, _ := strings.Cut(a.Sentence, " Nothing between ")
	return text
}

// A quota that is nearly used up at the mark and is so just beyond it is named before CPUs that were full at every
// rate, whichever of them was so most.
func TestWhatFillsAtTheMark(t *testing.T) {
	t.Parallel()
	probe := func(rate, margin, quota float64, cpu string) mark.Probe {
		return mark.Probe{Offered: rate, Achieved: rate, Margin: margin, Held: margin > 1, Limit: "p99 < limit",
			Used: []mark.Used{{Measure: result.OneCPU, Of: cpu + " of host", Percent: 100},
				{Measure: "io_quota", Of: "quota of reads (800 IOPS by Q)", Percent: quota}}}
	}
	a := mark.Conclude(mark.Settings{Start: 480}, []mark.Probe{
		probe(480, 20, 60, "CPU 1"), probe(790, 0.5, 96, "CPU 0"),
		probe(800, 0.45, 98, "CPU 0"), probe(711, 1.3, 88, "CPU 1"), probe(716, 1.5, 89, "CPU 0"),
		probe(711, 1.4, 89, "CPU 0"), probe(716, 1.5, 89, "CPU 0")})
	if want := "Near it the quota of reads (800 IOPS by Q) was used 89 %, beyond it 96 %, CPU 0 of host was used " +
		"100 % (100 % already at 480 IOPS)."; a.Verdict != mark.Found || !strings.Contains(a.Sentence, want) {
		t.Errorf("%s: want %q", a.Sentence, want)
	}
}

// Operations that are due evenly differ in number from no probe to another; of those that nobody knows that of, it is
// allowed for, and said.
func TestArrivalsOfEngines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open     bool
		arrivals string
		random   float64
		taken    bool
	}{
		"a closed loop, or fio's even rate": {},
		"at random":                         {open: true, random: 30_000},
		"an open loop with even arrivals":   {open: true, arrivals: result.ArrivalsEven},
		"a program that is only called": {open: true, arrivals: result.ArrivalsUnknown, random: 30_000,
			taken: true},
	} {
		d := load(1000, 8, even(1000, 30), "response time", func(h *hist.Histogram) { h.Add(1e6, 30_000) })
		for i := range d.Workloads {
			d.Workloads[i].Streams[0].OpenLoop, d.Workloads[i].Streams[0].Arrivals = c.open, c.arrivals
		}
		p, err := mark.Judge(d, nil, "OLTP", []result.Assert{below("p99", 5e-3)})
		if err != nil || p.Arrivals != c.random || p.Taken != c.taken {
			t.Errorf("%s: %v at random, taken so %v, %v", name, p.Arrivals, p.Taken, err)
		}
	}
	p := mark.Probe{Achieved: 300, Seconds: 30, Limit: "p99 < 5ms", Arrivals: 9_000, Taken: true}
	var probes []mark.Probe
	for _, rate := range []float64{300, 600, 310, 321, 310, 321} {
		p.Offered, p.Achieved, p.Margin, p.Held, p.Behind = rate, min(rate, 315), 3, rate < 315, rate > 315
		if p.Behind {
			p.Margin = 0.1
		}
		probes = append(probes, p)
	}
	const want = "whether its operations are due evenly or at random is not known: the interval is that of random ones"
	if a := mark.Conclude(mark.Settings{Start: 300}, probes); !slices.Contains(a.Warnings, want) {
		t.Errorf("%s %q", a.Sentence, a.Warnings)
	}
}
