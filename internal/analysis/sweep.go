package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// cacheStep is the least rise of the mean latency between two working sets that is called a step, at the lower end of its interval.
const cacheStep = 1.15

// setPoint is one workload of a working-set sweep.
type setPoint struct {
	name  string
	bytes float64
	mean  float64 // seconds
	like  string  // what must be equal for two points to be compared
	flow  flow    // seconds of latency over operations, per interval; empty without a series
}

// setPoints are the workloads that could be part of a sweep: of known extent, reading, in closed loops.
func (v *view) setPoints() []setPoint {
	var out []setPoint
	for _, l := range v.loads {
		var p setPoint
		ok := l.blocksOnly() && l.count() > 0
		for _, part := range l.parts {
			extents := map[string]int64{}
			for _, lane := range part.Lanes {
				ok = ok && lane.Bytes > 0 && lane.Reads && lane.Rate == 0
				extents[lane.Device] = max(extents[lane.Device], lane.Bytes)
				p.like += fmt.Sprintf("|%d %v %v", lane.Depth, lane.Writes, lane.Direct)
			}
			ok = ok && len(part.Lanes) > 0
			for _, b := range extents {
				p.bytes += float64(b)
			}
		}
		if !ok {
			continue
		}
		var n uint64
		var sum, moved float64
		for _, part := range l.parts {
			c, s := totals(part.Ops)
			n, sum = n+c, sum+s
			for _, o := range part.Ops {
				moved += float64(o.Bytes)
			}
		}
		if n == 0 || !(sum > 0) {
			continue
		}
		p.name, p.mean = l.name, sum/float64(n)
		p.like += fmt.Sprintf("|%.2g", moved/float64(n))
		if c := v.track(l); c != nil && c.busy != nil {
			p.flow = flowOf(c.busy, c.ops)
		}
		out = append(out, p)
	}
	return out
}

// cacheSteps looks for steps in a working-set sweep: sizes at which a cache stops holding the data.
func cacheSteps(v *view) []result.Finding {
	return sweep(v.setPoints(), "workloads of one run")
}

// sweep compares neighbouring sizes of the largest family of points alike; fewer than three different sizes are no sweep.
func sweep(points []setPoint, source string) []result.Finding {
	families := map[string][]setPoint{}
	for _, p := range points {
		families[p.like] = append(families[p.like], p)
	}
	var best []setPoint
	for _, like := range slices.Sorted(maps.Keys(families)) {
		family := families[like]
		slices.SortStableFunc(family, func(a, b setPoint) int { return cmp.Compare(a.bytes, b.bytes) })
		family = slices.CompactFunc(family, func(a, b setPoint) bool { return a.bytes == b.bytes })
		if len(family) > len(best) {
			best = family
		}
	}
	if len(best) < 3 {
		return nil
	}
	first, last := best[0], best[len(best)-1]
	f := result.Finding{
		Check: "cache-steps", Severity: result.Notice, Subject: "working set", Metric: "largest step of the mean service time", Unit: "ratio", N: len(best), Limit: ptr(cacheStep),
		Basis: fmt.Sprintf("%d working sets from %s to %s, %s; a step is a rise of more than %s at the lower end of its 95 %% interval, corrected for the number of comparisons", len(best), sayBytes(first.bytes), sayBytes(last.bytes), source, percent(cacheStep-1)),
	}
	var steps []string
	line := result.ChartLine{Name: "measured"}
	dots := result.ChartLine{Name: "measured", Points: true}
	biggest := 0.0
	for i, p := range best {
		line.X, line.Y = append(line.X, round(p.bytes)), append(line.Y, ptr(round(p.mean)))
		f.Evidence = append(f.Evidence, result.Evidence{Name: sayBytes(p.bytes), Value: p.mean, Unit: "s"})
		if i == 0 {
			continue
		}
		before := best[i-1]
		r, in := stepOf(before, p, len(best)-1)
		if !in.Valid() {
			f.Warnings = appendNew(f.Warnings, "no interval for "+sayBytes(before.bytes)+" to "+sayBytes(p.bytes)+": "+in.Reason)
		}
		if r > biggest {
			biggest = r
			f.Value = ptr(r)
			setInterval(&f, in)
		}
		if in.Valid() && in.Low > cacheStep || !in.Valid() && r > 1.5 {
			steps = append(steps, fmt.Sprintf("×%s between %s and %s", sayCount(r), sayBytes(before.bytes), sayBytes(p.bytes)))
		}
	}
	dots.X, dots.Y = line.X, line.Y
	f.Chart = &result.Chart{Title: "Mean service time by working set", XLabel: "working set", XUnit: "bytes", XLog: true, YUnit: "s", Lines: []result.ChartLine{line, dots}}
	if len(steps) == 0 {
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("From %s to %s of working set the mean service time went from %s to %s without a step: no cache of a size in between shows.", sayBytes(first.bytes), sayBytes(last.bytes), sayDuration(first.mean), sayDuration(last.mean))
		return []result.Finding{f}
	}
	f.Sentence = fmt.Sprintf("From %s to %s of working set the mean service time went from %s to %s, with %s at %s: caches of sizes in between stop holding the data there.", sayBytes(first.bytes), sayBytes(last.bytes), sayDuration(first.mean), sayDuration(last.mean), plural(len(steps), "step"), some(steps))
	return []result.Finding{f}
}

// stepOf is the ratio of two means; its interval is widened for so many comparisons (Bonferroni, by normal quantiles).
func stepOf(a, b setPoint, comparisons int) (float64, resample.Interval) {
	r := b.mean / a.mean
	estimate, in := blockRatio(a.flow, b.flow)
	if !in.Valid() {
		return r, in
	}
	wide := resample.StudentT(1-(1-Confidence)/float64(comparisons), 1e6) / z
	low, high := math.Log(in.Low/estimate)*wide, math.Log(in.High/estimate)*wide
	in.Low, in.High = r*math.Exp(low), r*math.Exp(high)
	return r, in
}
