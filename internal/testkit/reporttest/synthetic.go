package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"plimsoll/result"
)

// Synthetic is a run that follows laws given second by second, so that what an analysis says of it can be held
// against the truth. Its series have one point per second, as collected ones do.
type Synthetic struct {
	Manifest result.Manifest
	Data     *result.Data
	rng      *rand.Rand
	sharing  map[string]int // workloads per group
}

// Load is one workload on some VMs. Zero fields take the value their comment names.
type Load struct {
	Name, Group  string
	VMs          int // 1
	Node         int // of the first VM; the others follow on the next ones when Spread is set
	Spread       bool
	From, To     int                 // seconds of the run
	Rate         func(t int) float64 // operations per second of all VMs together
	Seconds      func(t int) float64 // mean service time; nil: Depth × VMs ÷ rate, as in a closed loop
	Writes       float64             // share of the operations, 0 to 1
	Block        int                 // bytes of an operation; 8 KiB
	Depth        int                 // of each VM; 8
	Offered      float64             // operations per second of all VMs together; 0: as fast as it can
	Extent       int64               // bytes of each VM; 256 GiB
	CPU          float64             // cores the generator of each VM takes; 0.3
	Cuts         []Cut               // ends of windows and their names; none: no windows
	Noise        float64             // relative standard deviation of the rate per second; 0 is none
	Errors       uint64              // of the first VM
	Ended        result.Ending       // finished
	NotPrefilled bool
	// Share is the part of the rate that a VM has; nil: all the same. It adds up to 1.
	Share func(vm, t int) float64
	// Random and Skew are of its offsets.
	Random float64
	Skew   result.Skew

	// Of a load that is not of block I/O; see Database and Tool. Operations that are not nil replace reads and writes.
	Operations []result.Operation
	Shares     []float64 // of each in Rate
	Untimed    bool      // its tool gives no times
	Measures   []Measured
}

// Cut ends a window.
type Cut struct {
	At   int // second of the run
	Name string
}

// NewSynthetic makes an empty run of so many seconds and nodes.
func NewSynthetic(seed uint64, seconds, nodes int) *Synthetic {
	start := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	s := &Synthetic{rng: rand.New(rand.NewPCG(seed, 77)), sharing: map[string]int{}}
	s.Data = &result.Data{Version: result.FormatVersion, Start: start,
		End: start.Add(time.Duration(seconds) * time.Second)}
	s.Data.Phases = []result.Span{{Name: "run", Start: start, End: s.Data.End}}
	s.Manifest = result.Manifest{
		Version: result.FormatVersion, RunID: "20261121-204500-synthetic-0001", Program: "plimsoll", Created: start,
		Ended: s.Data.End, Status: result.StatusSucceeded,
		Measured: result.Verdict{State: "yes"}, Collected: result.Verdict{State: "yes"},
		Cleaned: result.Verdict{State: "yes"},
		Scenario: result.ScenarioInfo{ID: 1, Name: "synthetic", DisplayName: "Synthetic",
			Summary: "A run with a known truth."}, Target: "fake", ClusterName: "fake cluster", TimeScale: 1,
		SizeScale: 1,
	}
	for n := range nodes {
		s.Manifest.Nodes = append(s.Manifest.Nodes, result.Node{Index: n, Name: fmt.Sprintf("node-%d", n), Cores: 32,
			MemoryBytes: 64 << 30})
	}
	return s
}

// At is a moment of the run.
func (s *Synthetic) At(second int) time.Time {
	return s.Data.Start.Add(time.Duration(second) * time.Second)
}

// Mark enters an annotation or a fault.
func (s *Synthetic) Mark(second int, kind, text string) {
	s.Data.Events = append(s.Data.Events, result.Mark{Time: s.At(second), Kind: kind, Text: text})
}

// Fault enters a fault of a node that begins at one second and is over at another, 0 for never.
func (s *Synthetic) Fault(from, to int, node, text string) {
	s.Data.Events = append(s.Data.Events, result.Mark{Time: s.At(from), Kind: result.KindFault, Text: text, Node: node,
		State: result.FaultBegins})
	if to > 0 {
		s.Data.Events = append(s.Data.Events, result.Mark{Time: s.At(to), Kind: result.KindFault,
			Text: text + " no more", Node: node, State: result.FaultOver})
	}
	slices.SortStableFunc(s.Data.Events, func(a, b result.Mark) int { return a.Time.Compare(b.Time) })
}

// CPU adds the CPU use of a node, in per cent, with so much noise.
func (s *Synthetic) CPU(name string, percent func(t int) float64, noise float64) {
	s.Percent(result.NodeCPU, name, percent, noise)
}

// Percent adds a series in per cent over the whole run, with so much noise.
func (s *Synthetic) Percent(measure, name string, percent func(t int) float64, noise float64) {
	s.PartPercent(measure, name, "", percent, noise)
}

// PartPercent adds a series of per cents of a part of a machine.
func (s *Synthetic) PartPercent(measure, machine, part string, percent func(t int) float64, noise float64) {
	head := result.Series{Name: machine, Machine: machine, Part: part, Measure: measure, Unit: "%"}
	if part != "" {
		head.Name += ", " + part
	}
	s.Series(head, percent, noise)
}

// Series adds a series over the whole run, with so much noise.
func (s *Synthetic) Series(head result.Series, value func(t int) float64, noise float64) {
	s.add(head, 0, s.seconds(), func(t int) float64 { return value(t) + noise*s.rng.NormFloat64() })
}

func (s *Synthetic) seconds() int { return int(s.Data.End.Sub(s.Data.Start).Seconds()) }

// add adds a series over the whole run with values from one second to another.
func (s *Synthetic) add(head result.Series, from, to int, value func(t int) float64) {
	head.Start, head.Step = s.At(1), 1
	head.Values = make([]*float64, s.seconds())
	for t := from; t < min(to, len(head.Values)); t++ {
		if v := value(t); !math.IsNaN(v) {
			head.Values[t] = &v
		}
	}
	s.Data.Series = append(s.Data.Series, head)
}

// Load adds a workload: its parts, their merged entry, its series.
func (s *Synthetic) Load(l Load) {
	l = l.filled()
	rates := make([]float64, l.To-l.From)
	for i := range rates {
		rates[i] = max(0, l.Rate(l.From+i)*(1+l.Noise*s.rng.NormFloat64()))
	}
	rate := func(t int) float64 { return rates[t-l.From] }
	service := func(t int) float64 {
		if rate(t) == 0 {
			return math.NaN()
		}
		if l.Seconds != nil {
			return l.Seconds(t)
		}
		return float64(l.Depth*l.VMs) / rate(t)
	}
	l.Measures = s.draw(l)
	s.series(l, rate, service)
	merged := result.Workload{
		Name: l.Name, Group: l.Group, Node: -1, Engine: "fake", Tool: "fake", Operations: result.BlockOperations(),
		Measures: l.declarations(),
		Phase:    "run", Start: s.At(l.From), End: s.At(l.To), Ended: l.Ended, Latency: "service time",
		GeneratorCPUSeconds: l.CPU * float64(l.VMs*(l.To-l.From)),
	}
	if l.declares() {
		merged.Operations = l.Operations
	}
	merged.Ops, merged.Values = l.ops(l.From, l.To, rate, service), l.values(l.From, l.To, 0)
	from := l.From
	for _, c := range l.Cuts {
		around, _ := result.CircumstancesOf(c.Name)
		merged.Windows = append(merged.Windows, result.Window{
			Name: c.Name, Circumstances: around, Start: s.At(from), End: s.At(c.At), Ops: l.ops(from, c.At, rate,
				service), Values: l.values(from,
				c.At, 0),
		})
		from = c.At
	}
	for i := range l.VMs {
		vm := result.VM{Name: fmt.Sprintf("%s_%04d", l.Group, i), Group: l.Group, Node: l.Node, CPUs: 4,
			MemoryBytes: 4 << 30, Disks: 1, DiskBytes: l.Extent}
		if l.Spread {
			vm.Node = (l.Node + i) % len(s.Manifest.Nodes)
		}
		if s.sharing[l.Group] == 0 {
			s.Data.VMs = append(s.Data.VMs, vm)
		}
		part := merged
		part.VM, part.Node, part.Windows = vm.Name, vm.Node, nil
		part.GeneratorCPUSeconds = l.CPU * float64(l.To-l.From)
		part.Streams = []result.Stream{{Name: "j", Device: "/dev/sdb", Depth: l.Depth, Rate: l.Offered / float64(l.VMs),
			Reads:  l.Writes < 1,
			Writes: l.Writes > 0, Bytes: l.Extent, Direct: true,
			Random: l.Random, Skew: l.Skew, ReadShare: 1 - l.Writes}}
		if stream := &part.Streams[0]; stream.Reads {
			stream.ReadBytes = float64(l.Block)
		}
		if stream := &part.Streams[0]; stream.Writes {
			stream.WriteBytes = float64(l.Block)
		}
		if l.declares() {
			part.Streams = []result.Stream{{Name: "clients", Depth: l.Depth, Rate: l.Offered / float64(l.VMs)}}
		}
		part.Ops, part.Values = nil, l.values(l.From, l.To, l.VMs)
		for _, o := range merged.Ops {
			if o.Hist == nil {
				part.Ops = append(part.Ops, result.OpTotals{Op: o.Op, Count: o.Count / uint64(l.VMs)})
				continue
			}
			part.Ops = append(part.Ops, Ops(o.Op, o.Count/uint64(l.VMs), l.size(), o.Seconds/float64(max(o.Count,
				1))*1e9/math.Exp(0.08), 0.4))
		}
		if i == 0 {
			part.Errors = l.Errors
			merged.Streams = part.Streams
		}
		if !l.NotPrefilled && !l.declares() {
			fill := part
			fill.Prefill, fill.Start, fill.End, fill.Ops, fill.Errors, fill.Ended = true, s.At(-60), s.At(-1), nil, 0,
				"finished"
			fill.Streams = []result.Stream{{Name: "fill", Device: "/dev/sdb", Depth: 8, Writes: true, Bytes: l.Extent,
				Direct: true}}
			s.Data.Workloads = append(s.Data.Workloads, fill)
		}
		s.Data.Workloads = append(s.Data.Workloads, part)
	}
	merged.Errors = l.Errors
	s.Data.Workloads = append(s.Data.Workloads, merged)
	s.sharing[l.Group]++
}

func (l Load) filled() Load {
	if l.VMs == 0 {
		l.VMs = 1
	}
	if l.Group == "" {
		l.Group = l.Name
	}
	if l.Block == 0 {
		l.Block = 8 << 10
	}
	if l.Depth == 0 {
		l.Depth = 8
	}
	if l.Extent == 0 {
		l.Extent = 256 << 30
	}
	if l.CPU == 0 {
		l.CPU = 0.3
	}
	if l.Ended == "" {
		l.Ended = "finished"
	}
	return l
}

// series adds the rates, bandwidths and mean service times of a workload, under its group and under its own name.
func (s *Synthetic) series(l Load, rate, service func(int) float64) {
	heads := []result.Series{{Name: l.Group, Group: l.Group}, {Name: l.Name, Group: l.Group, Workload: l.Name},
		{Name: "all VMs"}}
	for i := range l.VMs {
		name := fmt.Sprintf("%s_%04d", l.Group, i)
		heads = append(heads, result.Series{Name: name, VM: name, Group: l.Group})
	}
	whole := rate
	for i, head := range heads {
		rate = whole
		vm := i - len(heads) + l.VMs
		if head.VM != "" {
			rate = func(t int) float64 { return whole(t) * l.share(vm, t) }
		}
		for _, o := range l.kinds() {
			put := func(measure, unit string, f func(int) float64) {
				h := head
				h.Op, h.Measure, h.Unit = o.op, measure, unit
				if head.Workload == "" && s.into(h, l, f) {
					return
				}
				s.add(h, l.From, l.To, f)
			}
			put(result.Rate, o.unit, func(t int) float64 { return o.share * rate(t) })
			if l.size() > 0 {
				put(result.Bandwidth, "bytes/s", func(t int) float64 { return o.share * rate(t) * float64(l.Block) })
			}
			if !l.Untimed && (head.Workload != "" || head.Group != "" && s.sharing[l.Group] == 0) {
				put(result.LatencyMean, "us", func(t int) float64 { return 1e6 * service(t) })
			}
		}
		for _, m := range l.Measures {
			h, value := head, m.Value
			if h.Measure, h.Unit = m.Name, m.Unit; m.Kind == result.Count {
				h.Unit += "/s"
			}
			switch {
			case m.Kind == result.Single && head.VM == "":
				continue
			case m.Kind != result.Single && head.VM != "":
				value = func(t int) float64 { return m.Value(t) / float64(l.VMs) }
			}
			if head.Workload != "" || !s.into(h, l, value) {
				s.add(h, l.From, l.To, value)
			}
		}
	}
}

// share is the part of the rate that a VM has.
func (l Load) share(vm, t int) float64 {
	if l.Share == nil {
		return 1 / float64(l.VMs)
	}
	return l.Share(vm, t)
}

// size is how many bytes an operation moves, 0 where it moves none.
func (l Load) size() uint64 {
	if l.declares() {
		return 0
	}
	return uint64(l.Block)
}

// into adds to a series that is there already; false when there is none.
func (s *Synthetic) into(h result.Series, l Load, f func(int) float64) bool {
	for i := range s.Data.Series {
		o := &s.Data.Series[i]
		if o.Name != h.Name || o.Op != h.Op || o.Measure != h.Measure || o.Workload != "" {
			continue
		}
		for t := l.From; t < min(l.To, len(o.Values)); t++ {
			v := f(t)
			if o.Values[t] != nil {
				v += *o.Values[t]
			}
			o.Values[t] = &v
		}
		return true
	}
	return false
}

type kind struct {
	op    string
	share float64
	unit  string // of its rate
}

func (l Load) kinds() []kind {
	var out []kind
	if l.declares() {
		for i, o := range l.Operations {
			out = append(out, kind{o.Name, l.Shares[i], o.RateUnit()})
		}
		return out
	}
	if l.Writes < 1 {
		out = append(out, kind{"read", 1 - l.Writes, result.OperationsUnit})
	}
	if l.Writes > 0 {
		out = append(out, kind{"write", l.Writes, result.OperationsUnit})
	}
	return out
}

// ops are the totals between two seconds.
func (l Load) ops(from, to int, rate, service func(int) float64) []result.OpTotals {
	var out []result.OpTotals
	for _, o := range l.kinds() {
		var n, sum float64
		for t := from; t < to; t++ {
			if r := o.share * rate(t); r > 0 {
				n, sum = n+r, sum+r*service(t)
			}
		}
		count := uint64(math.Round(n))
		if count == 0 {
			continue
		}
		if l.Untimed {
			out = append(out, result.OpTotals{Op: o.op, Count: count, Bytes: count * l.size()})
			continue
		}
		const sigma = 0.4
		totals := Ops(o.op, count, l.size(), sum/n*1e9/math.Exp(sigma*sigma/2), sigma)
		totals.Seconds = sum
		out = append(out, totals)
	}
	return out
}
