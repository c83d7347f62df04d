package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/hist"
	"plimsoll/internal/analysis/caches"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// CellLoad is how a workload stood at one combination.
type CellLoad struct {
	Workload string `json:"workload"`
	// Asked is how many operations it was to keep outstanding, 0 where that is not known or a rate was offered.
	// InFlight is how many there were: all times of its operations over the time in which they were done, which by
	// Little's law is throughput × mean time. Far from Asked, one of the figures is wrong or the generator could not
	// keep up.
	Asked    int     `json:"asked_in_flight,omitempty"`
	InFlight float64 `json:"in_flight,omitempty"`
	// SetBytes is how much it worked on, 0 where that is not known.
	SetBytes int64      `json:"working_set_bytes,omitempty"`
	Steady   Steadiness `json:"steady"`
}

// Steadiness counts the runs of a combination by whether their throughput was steady.
type Steadiness struct {
	Yes     int    `json:"runs_steady"`
	No      int    `json:"runs_not_steady"`
	Unknown int    `json:"runs_not_judged"`
	Why     string `json:"why,omitempty"` // of the first that was not, or not judged
}

// What a factor changes of a load, by what its generator says of it.
const (
	QueueDepth = "queue depth"
	BlockSize  = "block size"
	WorkingSet = "working set"
	ReadShare  = "share of reads"
)

// littleTolerance is how far throughput × mean time may lie from what was asked for before it is told.
const littleTolerance = 0.10

// Little reports whether throughput and times agree with what was asked for; known is false where nothing can be said.
func (l CellLoad) Little() (agrees, known bool) {
	if l.Asked == 0 || !(l.InFlight > 0) {
		return false, false
	}
	return math.Abs(l.InFlight/float64(l.Asked)-1) <= littleTolerance, true
}

// streamsOf are the parts of a workload over all its VMs.
func streamsOf(d *result.Data, name string) (streams []result.Stream) {
	for _, w := range d.Workloads {
		if w.Name == name && !w.Merged() && w.Phase == "run" && !w.Prefill {
			streams = append(streams, w.Streams...)
		}
	}
	if streams != nil {
		return streams
	}
	for _, w := range merged(d, false) {
		if w.Name == name {
			streams = append(streams, w.Streams...)
		}
	}
	return streams
}

// loadsOf are the workloads of a combination.
func loadsOf(runs []Made) (out []CellLoad) {
	for _, w := range merged(runs[0].Data, false) {
		l := CellLoad{Workload: w.Name}
		n := 0.0
		for _, r := range runs {
			l.Steady.add(r.Findings, w.Name)
			for _, o := range merged(r.Data, false) {
				if o.Name != w.Name || !(o.Seconds() > 0) {
					continue
				}
				sum := 0.0
				for _, t := range o.Ops {
					sum += t.Seconds
				}
				l.InFlight, n = l.InFlight+sum/o.Seconds(), n+1
			}
		}
		if n > 0 {
			l.InFlight /= n
		}
		closed, blocks := true, w.MovesBlocks()
		extents := map[string]int64{}
		for _, stream := range streamsOf(runs[0].Data, w.Name) {
			closed = closed && stream.Rate == 0 && !stream.OpenLoop
			l.Asked += stream.Depth
			extents[stream.Device] = max(extents[stream.Device], stream.Bytes)
		}
		for _, b := range extents {
			l.SetBytes += b
		}
		if !closed || !blocks {
			l.Asked = 0
		}
		out = append(out, l)
	}
	return out
}

func (s *Steadiness) add(findings []result.Finding, workload string) {
	i := slices.IndexFunc(findings, func(f result.Finding) bool {
		return f.Check == "steady-state" && f.Subject == workload
	})
	why := ""
	switch {
	case i < 0:
		s.Unknown++
		why = "nothing was said of it"
	case findings[i].Severity == result.Passed:
		s.Yes++
		return
	case findings[i].Severity == result.Info:
		s.Unknown++
		why = findings[i].NoInterval
	default:
		s.No++
		why = strings.TrimSuffix(findings[i].Sentence, ".")
		if s.No == 1 {
			s.Why = why // before what was only not judged
		}
	}
	if s.Why == "" {
		s.Why = why
	}
}

// changes returns what of a workload's load a factor changes, "" where that is several things, nothing, or not known.
func (d Design) changes(factor int, workload string) string {
	var first, other []result.Stream
	for _, m := range d.Made {
		streams := streamsOf(m.Data, workload)
		if len(streams) == 0 {
			return ""
		}
		if first == nil {
			first, other = streams, streams
			continue
		}
		alike := true // in all other factors as the first
		for i := range m.Levels {
			alike = alike && (i == factor || m.Levels[i] == d.Made[0].Levels[i])
		}
		if alike && m.Levels[factor] != d.Made[0].Levels[factor] {
			other = streams
		}
	}
	if len(first) != len(other) || len(first) == 0 {
		return ""
	}
	var found []string
	note := func(what string, differ func(a, b result.Stream) bool) {
		for i := range first {
			if differ(first[i], other[i]) {
				found = append(found, what)
				return
			}
		}
	}
	note(QueueDepth, func(a, b result.Stream) bool { return a.Depth != b.Depth })
	note(WorkingSet, func(a, b result.Stream) bool { return a.Bytes != b.Bytes })
	note(ReadShare, func(a, b result.Stream) bool { return a.ReadShare != b.ReadShare })
	note(BlockSize, func(a, b result.Stream) bool {
		return a.ReadBytes > 0 && b.ReadBytes > 0 && a.ReadBytes != b.ReadBytes ||
			a.WriteBytes > 0 && b.WriteBytes > 0 && a.WriteBytes != b.WriteBytes
	})
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// readCaches reads the caches off a working-set curve, or says why it cannot.
func (s *Sweep) readCaches(d Design, x *Experiment, within func([]string) string, factor int) {
	var points []caches.Point
	for _, step := range s.Steps {
		i := slices.IndexFunc(x.Cells, func(c CellResult) bool {
			return c.Levels[factor] == step.Level && within(c.Levels) == s.Within
		})
		l := slices.IndexFunc(x.Cells[i].Loads, func(l CellLoad) bool { return l.Workload == s.Workload })
		if l < 0 || x.Cells[i].Loads[l].SetBytes == 0 || len(step.Time.Repeats) == 0 {
			s.NoCaches = "how much was worked on, or how long operations took, is not known of every point"
			return
		}
		points = append(points, caches.Point{Bytes: float64(x.Cells[i].Loads[l].SetBytes), Seconds: step.Time.Repeats})
	}
	for _, m := range d.Made {
		for _, stream := range streamsOf(m.Data, s.Workload) {
			switch {
			case stream.Random < 1 || stream.Skew != result.Skew{}:
				s.NoCaches = "sizes can be read off even, random access only; this one was " + access(stream)
				return
			case stream.Writes:
				s.NoCaches = "it writes as well, and what is written may stay in a cache of its own"
				return
			}
		}
	}
	r, err := caches.Read(points, x.Confidence)
	if err != nil {
		s.NoCaches = err.Error()
		return
	}
	s.Caches = r
}

func access(l result.Stream) string {
	switch {
	case l.Random == 0:
		return "sequential"
	case l.Random < 1:
		return fmt.Sprintf("%.3g %% random", l.Random*100)
	}
	return l.Skew.String()
}

// onDevices reports whether all workloads of an experiment are one load on different devices.
func (d Design) onDevices() bool {
	var first []result.Stream
	names := 0
	for _, w := range merged(d.Made[0].Data, false) {
		streams := slices.Clone(streamsOf(d.Made[0].Data, w.Name))
		for i := range streams {
			streams[i].Name, streams[i].Device, streams[i].Worked = "", "", 0
		}
		if names++; names == 1 {
			first = streams
		} else if !slices.Equal(first, streams) {
			return false
		}
	}
	return names > 1 && len(first) > 0
}

// percentile is a percentile over the repeats of a cell with its interval: read from the merged histograms, the
// interval by leaving out one run at a time.
func percentile(ops []result.OpTotals, q, confidence float64) (float64, resample.Interval, bool) {
	runs := histograms(ops)
	if len(runs) == 0 || len(runs) < len(ops) {
		return 0, resample.Interval{}, false
	}
	e, ok := effect.Percentile(runs, q, confidence)
	if !ok {
		return 0, resample.Interval{}, false
	}
	return e.Value / 1e9, e.Interval.Map(func(ns float64) float64 { return ns / 1e9 }), true
}

// allOps is the kind of all operations of a workload together, where a factor changes the mix of them.
const allOps = "all"

// ops are the totals of a kind in a workload.
func (k kind) ops(w result.Workload) (result.OpTotals, bool) {
	sum := result.OpTotals{Op: allOps}
	for _, o := range w.Ops {
		switch {
		case o.Op == k.op && o.Count > 0:
			return o, true
		case k.op == allOps && o.Count > 0:
			sum.Count, sum.Bytes, sum.Seconds = sum.Count+o.Count, sum.Bytes+o.Bytes, sum.Seconds+o.Seconds
			if o.Hist != nil {
				if sum.Hist == nil {
					sum.Hist = &hist.Histogram{}
				}
				sum.Hist.Merge(o.Hist)
			}
		}
	}
	return sum, k.op == allOps && sum.Count > 0
}
