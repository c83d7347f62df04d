package analysis

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// When a rise is told as the data becoming resident on a faster tier.
const (
	risen        = 1.3  // end over beginning
	endShare     = 0.2  // of the window that is taken for the end
	startShare   = 0.03 // and for the beginning
	residentFrom = 0.9  // of the level at the end counts as there
)

// residency measures how long it took until reads ran at the speed they end with: data that moves to a faster tier, or into a
// cache, shows as a rate that rises and then stays. Workloads with an offered rate show it less, since the rate hides it.
func residency(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		c := v.track(l)
		if c == nil || !l.blocksOnly() || !l.readsOnly() {
			continue
		}
		if f, ok := v.resident(l, c); ok {
			out = append(out, f)
		}
	}
	return out
}

func (l *load) readsOnly() bool {
	for _, p := range l.parts {
		for _, lane := range p.Lanes {
			if lane.Writes || lane.Rate > 0 {
				return false
			}
		}
	}
	return len(l.parts[0].Lanes) > 0
}

func (v *view) resident(l *load, c *track) (result.Finding, bool) {
	values, missing := finiteOf(c.ops)
	n := len(values)
	if n < 50 || missing > mostGaps {
		return result.Finding{}, false
	}
	from := n - int(float64(n)*endShare)
	end, err := serial.MeanOf(values[from:], Confidence)
	if err != nil || !(end.Value > 0) {
		return result.Finding{}, false
	}
	begin := resample.Median(values[:max(3, int(float64(n)*startShare))])
	if !(begin >= 0) || end.Value < risen*begin {
		return result.Finding{}, false
	}
	// Chance rises do not stay: the whole last half must lie above the beginning in its lower quartile.
	half := slices.Sorted(slices.Values(values[n/2:]))
	if resample.Quantile(half, 0.25) < begin*math.Sqrt(risen) {
		return result.Finding{}, false
	}
	if returns(values, begin, end.Value) {
		return result.Finding{}, false
	}
	at := comesTo(values, from, residentFrom)
	f := result.Finding{
		Check: "residency", Subject: l.name, Metric: "time until the reads are resident", Unit: "s", N: n,
		Basis: fmt.Sprintf("reads per second in points of %s; resident where their rising fit comes to %s of the level of the last %s of the window", sayDuration(c.step), percent(residentFrom), percent(endShare)),
		Evidence: []result.Evidence{
			{Name: "at the beginning", Value: begin, Unit: "ops/s"}, {Name: "at the end", Value: end.Value, Unit: "ops/s"}, {Name: "end ÷ beginning", Value: end.Value / begin, Unit: "ratio"},
		},
	}
	window := float64(n) * c.step
	rise := fmt.Sprintf("from %s to %s operations per second", sayCount(begin), sayCount(end.Value))
	f.Chart = v.chart(l.name+": reads per second", "ops/s", c.line(l.name, c.ops))
	if at >= from {
		f.Severity, f.NoInterval = result.Caution, "the rate was still rising when the workload ended"
		f.Sentence = fmt.Sprintf("%s went %s and was still rising when it ended after %s: its data were not yet wholly on the fast tier.", l.name, rise, sayDuration(window))
		return f, true
	}
	seconds := float64(at) * c.step
	f.Value, f.Severity = &seconds, result.Notice
	in := riseInterval(values, from, residentFrom)
	in.Low, in.High = in.Low-1, in.High+1 // rounding to points
	setInterval(&f, in.Map(func(points float64) float64 { return max(0, points) * c.step }))
	f.Chart.Marks = append(f.Chart.Marks, result.ChartPlace{At: round(c.elapsed(min(at, len(c.ops)-1))), Text: "resident"})
	f.Sentence = fmt.Sprintf("%s went %s: its data were resident on the fast tier, or in a cache, after %s of %s.", l.name, rise, sayDuration(seconds), sayDuration(window))
	return f, true
}

// returns reports whether a rate that had risen most of the way came back to where it began, and stayed there for three points: then what held it
// down comes and goes, as a checkpoint or a neighbour does. A stall is no return.
func returns(values []float64, begin, end float64) bool {
	up, low := begin*math.Pow(end/begin, 0.75), begin*math.Pow(end/begin, 0.25)
	first := slices.IndexFunc(values, func(v float64) bool { return v >= up })
	if !(begin > 0) || first < 0 {
		return false
	}
	back := 0
	for _, v := range values[first:] {
		if back++; v > low || v < begin/2 {
			back = 0
		}
		if back == 3 {
			return true
		}
	}
	return false
}

// preparation is the share of a run below which an ingest is taken for preparation of another workload.
const preparation = 0.25

// ingest tells how long it took to write a given amount of data: for a workload that only writes and ends when all is
// written, the time is the result.
func ingest(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		var seconds []float64
		var bytes float64
		ok := true
		for _, p := range l.parts {
			written, only := onlyWrites(p)
			ok = ok && only && p.VM != "" && wroteAll(p)
			seconds, bytes = append(seconds, p.Seconds()), bytes+written
		}
		took := l.working()
		if !ok || took <= 0 {
			continue
		}
		f := result.Finding{
			Check: "ingest", Subject: l.name, Severity: result.Notice, Metric: "time to ingest", Unit: "s", Value: &took, N: len(l.parts),
			NoInterval: "one ingest: only repeats show how it varies", Basis: "from the first start to the last end on " + plural(len(l.parts), "VM") + ", one run" + l.paused(),
			Evidence: []result.Evidence{{Name: "written", Value: bytes, Unit: "bytes"}, {Name: "bandwidth", Value: bytes / took, Unit: "bytes/s"}},
		}
		if took < preparation*v.d.End.Sub(v.d.Start).Seconds() {
			f.Severity = result.Fine // a fill on the way to something else
		}
		f.Sentence = fmt.Sprintf("%s wrote %s in %s, %s per second.", l.name, sayBytes(bytes), sayDuration(took), sayBytes(bytes/took))
		if fast, slow := slices.Min(seconds), slices.Max(seconds); len(seconds) > 1 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "fastest VM", Value: fast, Unit: "s"}, result.Evidence{Name: "slowest VM", Value: slow, Unit: "s"})
			if slow > 1.2*fast {
				f.Sentence = fmt.Sprintf("%s wrote %s in %s, %s per second; the fastest VM was done after %s, the slowest after %s.", l.name, sayBytes(bytes), sayDuration(took), sayBytes(bytes/took), sayDuration(fast), sayDuration(slow))
			}
		}
		if c := v.track(l); c != nil && c.bytes != nil {
			f.Chart = v.chart(l.name+": bytes per second", "bytes/s", c.line(l.name, c.bytes))
		}
		out = append(out, f)
	}
	return out
}

// working is for how long at least one VM of a workload ran, in seconds.
func (l *load) working() (s float64) {
	var all []result.Span
	for _, p := range l.parts {
		all = append(all, p.Times()...)
	}
	slices.SortFunc(all, func(a, b result.Span) int { return a.Start.Compare(b.Start) })
	end := all[0].Start
	for _, t := range all {
		s += max(0, t.End.Sub(later(t.Start, end)).Seconds())
		end = later(end, t.End)
	}
	return s
}

// paused says that a workload was started more than once.
func (l *load) paused() string {
	if slices.ContainsFunc(l.parts, func(p *result.Workload) bool { return len(p.Spans) > 1 }) {
		return "; without the pauses between its starts"
	}
	return ""
}

// onlyWrites is how much a part wrote, and whether it did nothing else.
func onlyWrites(p *result.Workload) (bytes float64, only bool) {
	only = len(p.Lanes) > 0
	for _, lane := range p.Lanes {
		only = only && lane.Writes && !lane.Reads
	}
	for _, o := range blockTotals(p, result.BlockWrite) {
		bytes += float64(o.Bytes)
	}
	return bytes, only && bytes > 0
}
