package scale

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// cacheStep is the least rise of the mean latency between two working sets that is called a step, at the lower end of
// its interval.
const cacheStep = 1.15

// SetPoint is one workload of a working-set sweep.
type SetPoint struct {
	name  string
	bytes float64
	mean  float64   // seconds
	like  string    // what must be equal for two points to be compared
	flow  view.Flow // seconds of latency over operations, per interval; empty without a series
}

// SetPoints are the workloads that could be part of a sweep: of known extent, reading, in closed loops.
func SetPoints(v *view.Run) []SetPoint {
	var out []SetPoint
	for _, l := range v.Loads {
		var p SetPoint
		var like strings.Builder // thousands of parts are no reason to copy the text as often
		ok := l.BlocksOnly() && l.Count() > 0
		for _, part := range l.Parts {
			extents := map[string]int64{}
			for _, stream := range part.Streams {
				ok = ok && stream.Bytes > 0 && stream.Reads && stream.Rate == 0
				extents[stream.Device] = max(extents[stream.Device], stream.Bytes)
				fmt.Fprintf(&like, "|%d %v %v", stream.Depth, stream.Writes, stream.Direct)
			}
			ok = ok && len(part.Streams) > 0
			for _, b := range extents {
				p.bytes += float64(b)
			}
		}
		if !ok {
			continue
		}
		var n uint64
		var sum, moved float64
		for _, part := range l.Parts {
			c, s := view.Totals(part.Ops)
			n, sum = n+c, sum+s
			for _, o := range part.Ops {
				moved += float64(o.Bytes)
			}
		}
		if n == 0 || !(sum > 0) {
			continue
		}
		p.name, p.mean = l.Name, sum/float64(n)
		fmt.Fprintf(&like, "|%.2g", moved/float64(n))
		p.like = like.String()
		if c := v.Track(l); c != nil && c.Busy != nil {
			p.flow = view.FlowOf(c.Busy, c.Ops)
		}
		out = append(out, p)
	}
	return out
}

// CacheSteps looks for steps in a working-set sweep: sizes at which a cache stops holding the data.
var CacheSteps = view.Check{Name: "cache-steps", Rank: 160, Run: cacheSteps}

func cacheSteps(v *view.Run) []result.Finding {
	return Sweep(SetPoints(v), "workloads of one run")
}

// Sweep compares neighbouring sizes of the largest family of points alike; fewer than three different sizes are no
// sweep.
func Sweep(points []SetPoint, source string) []result.Finding {
	families := map[string][]SetPoint{}
	for _, p := range points {
		families[p.like] = append(families[p.like], p)
	}
	var best []SetPoint
	for _, like := range slices.Sorted(maps.Keys(families)) {
		family := families[like]
		slices.SortStableFunc(family, func(a, b SetPoint) int { return cmp.Compare(a.bytes, b.bytes) })
		family = slices.CompactFunc(family, func(a, b SetPoint) bool { return a.bytes == b.bytes })
		if len(family) > len(best) {
			best = family
		}
	}
	if len(best) < 3 {
		return nil
	}
	first, last := best[0], best[len(best)-1]
	f := result.Finding{
		Check: "cache-steps", Severity: result.Info, Subject: "working set",
		Metric: "largest step of the mean service time", Unit: "ratio", N: len(best), Limit: view.Ptr(cacheStep),
		Basis: fmt.Sprintf(
			"%d working sets from %s to %s, %s; a step is a rise of more than %s at the lower end of its 95 %% interval, corrected for the number of comparisons",
			len(best), view.SayBytes(first.bytes), view.SayBytes(last.bytes), source, view.Percent(cacheStep-1)),
	}
	var steps []string
	line := result.ChartLine{Name: "measured"}
	dots := result.ChartLine{Name: "measured", Points: true}
	biggest := 0.0
	for i, p := range best {
		line.X, line.Y = append(line.X, view.Round(p.bytes)), append(line.Y, view.Ptr(view.Round(p.mean)))
		f.Evidence = append(f.Evidence, result.Evidence{Name: view.SayBytes(p.bytes), Value: p.mean, Unit: "s"})
		if i == 0 {
			continue
		}
		before := best[i-1]
		r, in := stepOf(before, p, len(best)-1)
		if !in.Valid() {
			f.Warnings = view.AppendNew(f.Warnings,
				"no interval for "+view.SayBytes(before.bytes)+" to "+view.SayBytes(p.bytes)+": "+in.Reason)
		}
		if r > biggest {
			biggest = r
			f.Value = view.Ptr(r)
			view.SetInterval(&f, in)
		}
		if in.Valid() && in.Low > cacheStep || !in.Valid() && r > 1.5 {
			steps = append(
				steps,
				fmt.Sprintf("×%s between %s and %s", view.SayCount(r), view.SayBytes(before.bytes),
					view.SayBytes(p.bytes)),
			)
		}
	}
	dots.X, dots.Y = line.X, line.Y
	f.Chart = &result.Chart{
		Title:  "Mean service time by working set",
		XLabel: "working set",
		XUnit:  "bytes",
		XLog:   true,
		YUnit:  "s",
		Lines:  []result.ChartLine{line, dots},
	}
	if len(steps) == 0 {
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf(
			"Working set %s to %s: mean service time %s to %s without a step: no cache of a size in between shows.",
			view.SayBytes(first.bytes), view.SayBytes(last.bytes), view.SayDuration(first.mean),
			view.SayDuration(last.mean))
		return []result.Finding{f}
	}
	f.Sentence = fmt.Sprintf(
		"Working set %s to %s: mean service time %s to %s, with %s at %s: a cache of a size in between no longer holds the data.",
		view.SayBytes(first.bytes), view.SayBytes(last.bytes), view.SayDuration(first.mean),
		view.SayDuration(last.mean), view.Plural(len(steps), "step"), view.Three(steps))
	return []result.Finding{f}
}

// stepOf is the ratio of two means; its interval is widened for so many comparisons (Bonferroni, by normal quantiles).
func stepOf(a, b SetPoint, comparisons int) (float64, resample.Interval) {
	r := b.mean / a.mean
	estimate, in := view.BlockRatio(a.flow, b.flow)
	if !in.Valid() {
		return r, in
	}
	wide := resample.StudentT(1-(1-view.Confidence)/float64(comparisons), 1e6) / view.NormalQuantile
	low, high := math.Log(in.Low/estimate)*wide, math.Log(in.High/estimate)*wide
	in.Low, in.High = r*math.Exp(low), r*math.Exp(high)
	return r, in
}
