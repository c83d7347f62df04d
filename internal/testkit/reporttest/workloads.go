package reporttest

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"plimsoll/result"
)

func (m *maker) workloads() {
	before, after := result.Window{Name: "alone", Start: m.start, End: m.mid}, result.Window{Name: "with DSS",
		Circumstances: result.Circumstances{Beside: []string{"DSS"}}, Start: m.mid, End: m.end}
	half := m.mid.Sub(m.start).Seconds()
	oltpStreams := m.streams("data", 4, 8, 667, true, true)
	oltpStreams = append(oltpStreams, m.streams("log", 2, 1, 666, false, true)...)
	dssStreams := m.streams("scan", 4, 10, 350, true, false)
	oltp := result.Workload{
		Name: "OLTP", Group: "OLTP", Engine: "fio", Tool: "fio-3.33", Operations: result.BlockOperations(),
		Phase: "run", Start: m.start, End: m.end,
		Ended: "finished", Latency: "service time", Streams: oltpStreams, GeneratorCPUSeconds: 0.31 * 2 * half,
	}
	dss := result.Workload{
		Name: "DSS", Group: "DSS", Node: 1, Engine: "fio", Tool: "fio-3.33", Operations: result.BlockOperations(),
		Phase: "run", Start: m.mid, End: m.end,
		Ended: "finished", Latency: "service time", Streams: dssStreams, GeneratorCPUSeconds: 0.2 * half,
	}
	dssOps := func(k int) []result.OpTotals {
		return []result.OpTotals{Ops("read", uint64(1400*half)+uint64(k), 1<<20, 9e6, 0.5)}
	}
	var oltpBefore, oltpAfter, dssAll []result.OpTotals
	k := map[string]int{}
	for _, v := range m.data.VMs {
		i := k[v.Group]
		k[v.Group]++
		m.data.Workloads = append(m.data.Workloads, m.prefill(v))
		if v.Group == "DSS" {
			w := dss
			w.VM, w.Node, w.Ops = v.Name, v.Node, dssOps(i)
			dssAll = Merge(dssAll, w.Ops)
			m.data.Workloads = append(m.data.Workloads, w)
			continue
		}
		w := oltp
		w.VM, w.Node = v.Name, v.Node
		b, a := before, after
		b.Ops = []result.OpTotals{Ops("read", uint64(1334*half)+uint64(i), 8<<10, 520e3, 0.42),
			Ops("write", uint64(2666*half), 16<<10, 610e3, 0.45)}
		a.Ops = []result.OpTotals{Ops("read", uint64(1200*half)+uint64(i), 8<<10, 1.35e6, 0.62),
			Ops("write", uint64(2400*half), 16<<10, 1.6e6, 0.6)}
		w.Windows = []result.Window{b, a}
		w.Ops = Merge(b.Ops, a.Ops)
		oltpBefore, oltpAfter = Merge(oltpBefore, b.Ops), Merge(oltpAfter, a.Ops)
		m.data.Workloads = append(m.data.Workloads, w)
	}
	if m.opt.VMs > 2 {
		last := &m.data.Workloads[len(m.data.Workloads)-1]
		last.Ended, last.Message, last.Errors = "lost", "node 3 was powered off", 12
	}
	before.Ops, after.Ops = oltpBefore, oltpAfter
	oltp.Windows, oltp.Ops = []result.Window{before, after}, Merge(oltpBefore, oltpAfter)
	oltp.GeneratorCPUSeconds *= float64(m.oltpVMs())
	m.sections(&oltp)
	oltp.Heat = m.heat(m.start, 4000, func(c float64) float64 {
		if c < 0.5 {
			return 580e3
		}
		return 1.5e6
	})
	dss.Ops, dss.Heat = dssAll, m.heat(m.mid, 1400, func(float64) float64 { return 9e6 })
	dss.GeneratorCPUSeconds *= float64(m.opt.VMs - m.oltpVMs())
	m.data.Workloads = append(m.data.Workloads, oltp, dss)
}

// sections share a workload's operations out: reads to the data disks, writes to all, and the log's are faster.
func (m *maker) sections(w *result.Workload) {
	for _, l := range w.Streams {
		s := result.Section{Name: l.Name}
		median, share := 900e3, uint64(8)
		if !l.Reads {
			median, share = 300e3, 4
		}
		for _, o := range w.Ops {
			switch {
			case o.Op == "write":
				s.Ops = append(s.Ops, Ops("write", o.Count/share, 16<<10, median, 0.5))
			case l.Reads:
				s.Ops = append(s.Ops, Ops("read", o.Count/4, 8<<10, 800e3, 0.6))
			}
		}
		w.Sections = append(w.Sections, s)
	}
}

func (m *maker) streams(name string, disks, depth int, rate float64, reads, writes bool) []result.Stream {
	var out []result.Stream
	for d := range disks {
		dev := "bcdefg"[d]
		if name == "log" {
			dev = "fg"[d]
		}
		out = append(out, result.Stream{
			Name: fmt.Sprintf("%s%d", name, d), Device: "/dev/sd" + string(dev), Depth: depth, Rate: rate, Reads: reads,
			Writes: writes,
			Bytes:  int64(float64(16<<30) * m.opt.SizeScale), Direct: true,
		})
	}
	return out
}

func (m *maker) prefill(v result.VM) result.Workload {
	streams := m.streams("prefill", 6, 8, 0, false, true)
	var bytes int64
	for _, l := range streams {
		bytes += l.Bytes
	}
	return result.Workload{
		Name: v.Group, VM: v.Name, Group: v.Group, Node: v.Node, Engine: "fio", Tool: "fio-3.33",
		Operations: result.BlockOperations(), Phase: "setup", Prefill: true,
		Start: m.start.Add(-time.Minute), End: m.start, Ended: "finished", Latency: "service time", Streams: streams,
		Ops: []result.OpTotals{Ops("write", uint64(bytes>>20), 1<<20, 8e6, 0.3)}, GeneratorCPUSeconds: 4,
	}
}

func (m *maker) heat(from time.Time, rate float64, median func(part float64) float64) *result.HeatMap {
	step := math.Max(1, math.Round(m.end.Sub(from).Seconds()/120))
	columns := int(m.end.Sub(from).Seconds() / step)
	h := &result.HeatMap{Start: from, Step: step}
	for e := 10e3; e < 1e9; e *= math.Sqrt2 {
		h.EdgesNs = append(h.EdgesNs, math.Round(e))
	}
	for c := range columns {
		row := make([]uint64, len(h.EdgesNs)-1)
		mid, sigma := median(float64(c)/float64(columns)), 0.5+0.05*math.Abs(m.rng.NormFloat64())
		for r := range row {
			z := func(v float64) float64 { return 0.5 * math.Erfc(-(math.Log(v)-math.Log(mid))/(sigma*math.Sqrt2)) }
			row[r] = uint64(rate * step * (z(h.EdgesNs[r+1]) - z(h.EdgesNs[r])))
		}
		h.Counts = append(h.Counts, row)
	}
	return h
}

func (m *maker) manifest() result.Manifest {
	man := result.Manifest{
		Version: result.FormatVersion, RunID: "20261121-204500-db-colocation-7f3a", Program: "plimsoll 0.1.0 (go1.26)",
		Operator: "ada",
		Created:  m.start.Add(-time.Minute), Ended: m.end.Add(4 * time.Second), Status: "succeeded",
		Measured: result.Verdict{State: "yes"}, Collected: result.Verdict{State: "partly",
			Reason: "1 of 6 panels has no data"}, Cleaned: result.Verdict{State: "yes"},
		Scenario: result.ScenarioInfo{
			ID: 1, Name: "db_colocation", DisplayName: "Database colocation", Source: "scenarios/db-colocation",
			Summary:          "Does a database keep its rate and its service time when an analytic neighbour starts?",
			Description:      `<p>An OLTP load runs on one node. Halfway, a <b>DSS</b> load starts on two others.</p><script>alert(1)</script><img src=x onerror=alert(2)><p onclick="x()">See <a href="javascript:alert(3)">the notes</a>.</p>`,
			EstimatedSeconds: 3600, Vars: []result.Var{{Name: "runtime_secs", Value: "3600", From: "default"},
				{Name: "dss_nodes", Value: "1,2", From: "set"}},
		},
		Target: "local", ClusterName: "this-host", TimeScale: m.opt.TimeScale, SizeScale: m.opt.SizeScale,
		Environment: []result.Fact{
			{Group: "host", Name: "kernel", Value: "6.12.48+deb13-amd64"},
			{Group: "host", Name: "CPU", Value: "AMD EPYC 9354P, 8 cores"},
			{Group: "host", Name: "governor", Missing: "no cpufreq in this VM"},
			{Group: "storage", Name: "file system", Value: "ext4 (rw,relatime)"},
			{Group: "storage", Name: "device", Value: "nvme0n1"},
			{Group: "storage", Name: "firmware", Missing: "not readable without root"},
			{Group: "tools", Name: "fio", Value: "fio-3.33"},
		},
		Notes:    []string{"CPU limits are not enforced: no cgroup may be made here"},
		Overhead: &result.Overhead{CPUSeconds: 41, WallSeconds: 3664, CorePercent: 1.1, MaxResidentBytes: 96 << 20},
		Hashes:   map[string]string{"raw/a/OLTP/fio.out.zst": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
	}
	for n := range 4 {
		man.Nodes = append(man.Nodes, result.Node{Index: n, Name: fmt.Sprintf("node-%d", n), Cores: 8,
			MemoryBytes: 64 << 30})
	}
	return man
}

func (m *maker) events() []result.Event {
	ev := []result.Event{
		{Time: m.start.Add(-time.Minute), Kind: result.KindRunStart, Text: "run starts"},
		{Time: m.start.Add(-time.Minute), Kind: result.KindPhase, Phase: "setup"},
		{Time: m.start.Add(-50 * time.Second), Kind: result.KindStepStart, Phase: "setup", Step: 1,
			Name: "vm_group.CloneFromTemplate", Text: "clone OLTP"},
		{Time: m.start.Add(-48 * time.Second), Kind: result.KindStepEnd, Phase: "setup", Step: 1,
			Name: "vm_group.CloneFromTemplate"},
		{Time: m.start, Kind: result.KindPhase, Phase: "run"},
	}
	for _, mark := range m.data.Events {
		ev = append(ev, result.Event{Time: mark.Time, Kind: mark.Kind, Phase: "run", Text: mark.Text})
	}
	return append(ev, result.Event{Time: m.end, Kind: result.KindStepEnd, Phase: "run", Step: 3, Name: "workload.Wait",
		Error: `vm "dss-2": not accessible`},
		result.Event{Time: m.end.Add(4 * time.Second), Kind: result.KindRunEnd, Text: "run ends"})
}

func plan() json.RawMessage {
	return json.RawMessage(`{"steps":[{"number":1,"phase":"setup","name":"vm_group.CloneFromTemplate","text":"clone 2 VMs","estimate_seconds":2},{"number":2,"phase":"run","name":"workload.Start","text":"start OLTP","estimate_seconds":3600},{"number":3,"phase":"run","name":"workload.Wait","text":"wait for OLTP","estimate_seconds":0}]}`)
}
