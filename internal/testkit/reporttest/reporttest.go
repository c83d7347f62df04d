// Package reporttest makes believable runs for tests of the packages right of the run folder: a database (OLTP) whose
// neighbour (DSS) starts halfway, with bands, an expected value, a mask, a fault, a gap, a lost VM and a panel
// without data. Everything follows from Options; there is no clock and no global randomness in it.
package reporttest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"plimsoll/hist"
	"plimsoll/result"
)

// Options choose the size of a made-up run.
type Options struct {
	VMs       int           // in all; half of them (at least one) are OLTP
	Length    time.Duration // of the run phase
	TimeScale float64       // 0 means 1
	SizeScale float64       // 0 means 1
}

// Run is everything a report is made from.
type Run struct {
	Manifest result.Manifest
	Data     *result.Data
	Events   []result.Event
	Plan     json.RawMessage
}

type maker struct {
	opt      Options
	rng      *rand.Rand
	start    time.Time
	mid, end time.Time
	steps    int
	data     *result.Data
}

// Neighbour makes a noisy-neighbour run.
func Neighbour(opt Options) Run {
	opt.VMs = max(opt.VMs, 2)
	if opt.TimeScale == 0 {
		opt.TimeScale = 1
	}
	if opt.SizeScale == 0 {
		opt.SizeScale = 1
	}
	start := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	m := &maker{opt: opt, rng: rand.New(rand.NewPCG(1, 2)), start: start, steps: int(opt.Length / time.Second)}
	m.mid, m.end = start.Add(opt.Length/2), start.Add(opt.Length)
	m.data = &result.Data{
		Version: result.FormatVersion, Start: m.start, End: m.end,
		Phases: []result.Span{
			{Name: "setup", Start: start.Add(-time.Minute), End: start},
			{Name: "run", Start: start, End: m.end},
			{Name: "teardown", Start: m.end, End: m.end.Add(4 * time.Second)},
		},
		Events: []result.Mark{
			{Time: start, Kind: result.KindAnnotation, Text: "OLTP starts"},
			{Time: m.mid, Kind: result.KindAnnotation, Text: "DSS starts"},
			{Time: start.Add(opt.Length * 4 / 5), Kind: result.KindFault, Text: "node 3 power off"},
		},
	}
	m.machines()
	m.panels()
	m.workloads()
	for i, name := range []string{"log0", "log1"} {
		s := m.series("OLTP: "+name, "write", result.Rate, "", "OLTP", "ops/s",
			func(_ int, noise float64) (float64, bool) {
				return 650 - 20*float64(i) + 5*noise, true
			})
		s.Workload, s.Section = "OLTP", name
		m.data.Series = append(m.data.Series, s)
	}
	return Run{Manifest: m.manifest(), Data: m.data, Events: m.events(), Plan: plan()}
}

func (m *maker) oltpVMs() int { return max(m.opt.VMs/2, 1) }

func (m *maker) machines() {
	for i := range m.opt.VMs {
		group, node, k := "OLTP", 0, i
		if i >= m.oltpVMs() {
			group, k = "DSS", i-m.oltpVMs()
			node = 1 + k%2
		}
		m.data.VMs = append(m.data.VMs, result.VM{
			Name: fmt.Sprintf("__curie_test_1_%s_%04d", group, k), Group: group, Node: node, CPUs: 4,
			MemoryBytes: 2 << 30, Disks: 6, DiskBytes: int64(float64(16<<30) * m.opt.SizeScale),
		})
	}
}

// grid makes one value per second; ok=false leaves a gap.
func (m *maker) grid(f func(i int, noise float64) (float64, bool)) []*float64 {
	out := make([]*float64, m.steps)
	for i := range out {
		if v, ok := f(i, m.rng.NormFloat64()); ok {
			out[i] = &v
		}
	}
	return out
}

func (m *maker) noisy(i int) bool { return i >= m.steps/2 }

func (m *maker) series(name, op, measure, vm, group, unit string,
	f func(i int, noise float64) (float64, bool)) result.Series {
	return result.Series{Name: name, Op: op, Measure: measure, VM: vm, Group: group, Unit: unit, Start: m.start,
		Step: 1, Values: m.grid(f)}
}

func (m *maker) oltpRate(i int, noise float64) (float64, bool) {
	if i > m.steps/4 && i < m.steps/4+max(m.steps/50, 2) {
		return 0, false // a gap
	}
	if m.noisy(i) {
		return 3600 + 120*noise, true
	}
	return 4000 + 15*noise, true
}

func (m *maker) oltpTail(i int, noise float64) (float64, bool) {
	base, spread := 1900.0, 0.06
	if m.noisy(i) {
		base, spread = 6200, 0.18
	}
	return base * math.Exp(spread*noise), true
}

func (m *maker) dssBandwidth(i int, noise float64) (float64, bool) {
	return (1400 + 20*noise) * (1 << 20), m.noisy(i) // masked: nothing before it starts
}

func (m *maker) panels() {
	expected := 4000.0 * float64(m.oltpVMs())
	total := func(f func(int, float64) (float64, bool), n int) func(int, float64) (float64, bool) {
		return func(i int, noise float64) (float64, bool) {
			v, ok := f(i, noise/math.Sqrt(float64(n)))
			return v * float64(n), ok
		}
	}
	var perVM, cpu []result.Series
	for _, v := range m.data.VMs {
		if v.Group == "OLTP" {
			tail := m.series(v.Name, "write", result.LatencyP99, v.Name, v.Group, "us", m.oltpTail)
			perVM = append(perVM, m.series(v.Name, "read", result.Rate, v.Name, v.Group, "ops/s", m.oltpRate))
			m.data.Series = append(m.data.Series, m.series(v.Name, "write", result.Rate, v.Name, v.Group, "ops/s",
				m.oltpRate), tail)
			continue
		}
		perVM = append(perVM, m.series(v.Name, "read", result.Rate, v.Name, v.Group, "ops/s",
			func(i int, noise float64) (float64, bool) {
				return 1400 + 20*noise, m.noisy(i)
			}))
		m.data.Series = append(m.data.Series, m.series(v.Name, "read", result.Bandwidth, v.Name, v.Group, "bytes/s",
			m.dssBandwidth))
	}
	for n := range 4 {
		cpu = append(cpu, m.series(fmt.Sprintf("Node %d", n), "", "", "", "", "%",
			func(i int, noise float64) (float64, bool) {
				if n == 3 && i > m.steps*4/5 {
					return 0, false
				}
				return math.Min(100, 22+float64(n)*9+3*noise), true
			}))
	}
	m.data.Series = append(m.data.Series, perVM...)
	m.data.Series = append(m.data.Series,
		m.series("OLTP", "read", result.Rate, "", "OLTP", "ops/s", total(m.oltpRate, m.oltpVMs())),
		m.series("DSS", "read", result.Bandwidth, "", "DSS", "bytes/s",
			total(m.dssBandwidth, max(m.opt.VMs-m.oltpVMs(), 1))))
	m.data.Panels = []result.Panel{
		{
			ID: "db_colocation_oltp_iops_0", Name: "oltp_iops", Title: "OLTP: rate", Kind: "vm_group", Type: "iops",
			Unit:  "ops/s",
			Group: "VMGroupResult_OLTP", VMGroup: "OLTP", ReportGroup: "performance",
			Description: "Operations per second over all data and log disks.",
			Hint:        "Higher is better. The offered load is 4,000 IOPS per VM.", Expected: &expected,
			Query: `sum(rate(node_disk_reads_completed_total[5s]) + rate(node_disk_writes_completed_total[5s]))`,
			Bands: []result.Band{{Name: "Degraded", Lower: 0, Upper: expected * 0.95}},
			Metrics: []result.Metric{{Name: "Median", Series: "OLTP", Value: expected * 0.995, Unit: "ops/s",
				Formula: "median of the series' values"}, {Name: "Variability", Series: "OLTP", Value: 5.31, Unit: "%",
				Formula: "standard deviation / mean"}},
			Series: []result.Series{m.series("OLTP", "", "", "", "OLTP", "ops/s", total(m.oltpRate, m.oltpVMs()))},
		},
		{
			ID: "db_colocation_oltp_p99_0", Name: "oltp_p99", Title: "OLTP: service time, 99th percentile",
			Kind: "workload", Type: "latency", Unit: "us",
			Group: "IogenResult_OLTP", ReportGroup: "performance", Hint: "Lower is better.",
			Bands: []result.Band{{Name: "Good", Lower: 0, Upper: 3000},
				{Name: "Too slow for a log", Lower: 3000, Upper: 20000}},
			Series: []result.Series{m.series("read", "", "", "", "OLTP", "us", m.oltpTail),
				m.series("write", "", "", "", "OLTP", "us", m.oltpTail)},
		},
		{
			ID: "db_colocation_dss_bw_0", Name: "dss_bw", Title: "DSS: bandwidth", Kind: "vm_group", Type: "bandwidth",
			Unit:  "bytes/s",
			Group: "VMGroupResult_DSS", VMGroup: "DSS", ReportGroup: "performance",
			Series: []result.Series{m.series("DSS", "", "", "", "DSS", "bytes/s", m.dssBandwidth)},
		},
		{
			ID: "db_colocation_per_vm_0", Name: "per_vm", Title: "Reads of each VM", Kind: "vm_group", Type: "iops",
			Unit:  "ops/s",
			Group: "VMGroupResult_OLTP", VMGroup: "OLTP", ReportGroup: "performance", Series: perVM,
		},
		{ID: "cpu", Name: "cpu", Title: "Node CPU", Kind: "cluster", Unit: "%", Group: "ClusterResult",
			ReportGroup: "availability", Series: cpu},
		{
			ID: "rx", Name: "rx", Title: "Network received", Kind: "cluster", Unit: "bytes/s", Group: "ClusterResult",
			ReportGroup: "availability",
			Problem:     `metric "NetReceived.Avg.KilobytesPerSecond" is not served by this target`,
		},
	}
}

// Lognormal is a histogram of n service times with the given median (ns) and sigma of the logarithm; counts are the
// law's expectations, so the same arguments give the same histogram and known quantiles.
func Lognormal(n uint64, medianNs, sigma float64) *hist.Histogram {
	h := &hist.Histogram{}
	cdf := func(v float64) float64 { return 0.5 * math.Erfc(-(math.Log(v)-math.Log(medianNs))/(sigma*math.Sqrt2)) }
	var done uint64
	last := hist.Index(uint64(medianNs * math.Exp(5*sigma)))
	for i := hist.Index(uint64(medianNs * math.Exp(-5*sigma))); i <= last; i++ {
		_, high := hist.Bounds(i)
		upTo := uint64(math.Round(cdf(float64(high)+1) * float64(n)))
		if i == last {
			upTo = n
		}
		if upTo > done {
			h.AddBucket(i, upTo-done)
			done = upTo
		}
	}
	return h
}

// Ops are totals with the lognormal law.
func Ops(op string, n uint64, blockBytes uint64, medianNs, sigma float64) result.OpTotals {
	h := Lognormal(n, medianNs, sigma)
	return result.OpTotals{Op: op, Count: n, Bytes: n * blockBytes, Seconds: h.Sum() / 1e9, Hist: h}
}

// Merge adds totals of the same operations.
func Merge(parts ...[]result.OpTotals) []result.OpTotals {
	var out []result.OpTotals
	for _, part := range parts {
	next:
		for _, o := range part {
			for i := range out {
				if out[i].Op == o.Op {
					out[i].Count += o.Count
					out[i].Bytes += o.Bytes
					out[i].Seconds += o.Seconds
					out[i].Hist.Merge(o.Hist)
					continue next
				}
			}
			o.Hist = o.Hist.Clone()
			out = append(out, o)
		}
	}
	return out
}
