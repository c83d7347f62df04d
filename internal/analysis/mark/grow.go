package mark

import (
	"cmp"
	"math"
	"slices"

	"plimsoll/result"
)

// A queue that is offered more than it does grows for as long as that lasts: the response time grows by the share of
// the rate that is not done, in seconds per second. Whether a limit holds then depends on when the probe ends.
const (
	growing      = 0.01 // the share from which on that is so
	fewestSteps  = 3    // of time, between which growth is looked for
	rising       = 2.33 // standard deviations of Kendall's S: 1 % of series without a trend have more
	fewestRanked = 5    // steps that can have such an S
	steep        = 0.05 // the share that is seen between fewer, if all of them rise
	mostSteps    = 200  // of them that are compared, each with each
)

// random reports whether operations may be due at random: so many in a time as chance has it. Where nobody knows, as of
// a program that is only called, they may.
func random(w result.Workload) bool {
	return slices.ContainsFunc(w.Streams, func(l result.Stream) bool {
		return l.OpenLoop && l.Arrivals != result.ArrivalsEven
	})
}

// grew is the share of a rate by which the queue of a workload still grew, 0 where that is not seen, and the share
// that may have grown unseen: no more than an operation waits that is due last.
func grew(w result.Workload, rate float64) (share, unseen float64) {
	seconds, at := w.Seconds(), random(w)
	if !slices.ContainsFunc(w.Ops, func(o result.OpTotals) bool { return o.Count > 0 }) {
		return 0, 0 // it only failed
	}
	held, step := responses(w)
	left, every := backlog(w, rate)
	least := func(part, chance float64) float64 { // of so much of the time
		due := rate * seconds * part
		if at { // chance makes a queue grow or shrink for a while
			return max(growing, chance/math.Sqrt(due))
		}
		return max(growing, 2/due)
	}
	see := func(all []float64, step, chance float64) {
		n := len(all)
		for _, from := range []int{0, n / 3, 2 * n / 3} { // a credit may be used up at the end only
			if last := all[from:]; len(last) >= fewestSteps && (from == 0 || len(last) > fewestSteps) {
				by, z := slope(last, step)
				sure := z > rising || len(last) < fewestRanked && by > steep
				if by > least(float64(n-from)/float64(n), chance) && sure {
					share = max(share, by)
				}
			}
		}
		if n > 0 {
			unseen = max(unseen, slices.Max(all[2*n/3:])/seconds)
		}
	}
	see(held, step, 1)
	if places := depthOf(w); !at || places > 0 && w.Latency == serviceTime && busyOf(w) > full*float64(places)/100 {
		see(left, every, 2) // what waits for a place is in no time of the generator's
	}
	if len(held) == 0 {
		for _, o := range w.Ops {
			if o.Hist != nil && o.Count > 0 {
				v, _ := o.Hist.Quantile(0.9)
				unseen = max(unseen, float64(v)/1e9/seconds)
			}
		}
	}
	most := least(1, 1)
	if len(held) < fewestRanked {
		most = max(most, steep)
	}
	return share, min(1.1*unseen+1.5/(rate*seconds), most)
}

func depthOf(w result.Workload) (n int) {
	for _, l := range w.Streams {
		n += l.Depth
	}
	return n
}

// busyOf is how many operations were in flight.
func busyOf(w result.Workload) (n float64) {
	for _, o := range w.Ops {
		n += o.Seconds / w.Seconds()
	}
	return n
}

// slope is the median of the slopes between any two, by Theil and Sen (Journal of the American Statistical Association
// 63, 1968, 1379): a stall among them does not make one. z is how many of them rise beyond those that fall, in the
// standard deviations of that for values in any order (Kendall, Biometrika 30, 1938, 81).
func slope(values []float64, step float64) (median, z float64) {
	every := max(1, len(values)/mostSteps)
	var all []float64
	for i := 0; i < len(values); i += every {
		for j := i + every; j < len(values); j += every {
			by := (values[j] - values[i]) / (step * float64(j-i))
			all = append(all, by)
			z += float64(cmp.Compare(by, 0))
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	n := float64((len(values) + every - 1) / every)
	if n < fewestRanked && z < n*(n-1)/2 {
		return 0, 0
	}
	return all[len(all)/2], z / math.Sqrt(n*(n-1)*(2*n+5)/18)
}

// backlog is for how long the schedule was not done over time, but for the time that it took to begin.
func backlog(w result.Workload, rate float64) (out []float64, step float64) {
	counts, step := overTime(w)
	done, offset := 0.0, math.Inf(1)
	for i, n := range counts[:max(len(counts)-1, 0)] { // the last has what came after the end
		done += n
		out = append(out, float64(i+1)*step-done/rate)
		offset = min(offset, out[i])
	}
	for i := range out {
		out[i] -= offset
	}
	return out, step
}

// responses are the mean times over time of the operations that were done.
func responses(w result.Workload) (out []float64, step float64) {
	m := w.Heat
	if m == nil || m.Step <= 0 {
		return nil, 0
	}
	before := min(max(0, int(w.Start.Sub(m.Start).Seconds()/m.Step)), len(m.Counts))
	for _, column := range m.Counts[before:max(before, len(m.Counts)-1)] {
		n, sum := 0.0, 0.0
		for row, c := range column {
			n, sum = n+float64(c), sum+float64(c)*math.Sqrt(m.EdgesNs[row]*m.EdgesNs[row+1])
		}
		if n > 0 {
			out = append(out, sum/n/1e9)
		}
	}
	return out, m.Step
}

// told widens the interval of a mark by what probes are too short to tell, and says by how much: where a queue may have
// grown unseen in one that held, and where operations are due at random. At a step all of it is of those (arrivals);
// where a curve comes near its capacity it gets two deviations of their number and of what they need. Where a rate
// holds by chance, and far below the capacity, where nothing waits long, the spread of probes has that.
func told(probes []Probe, e edge) (low, high, share float64) {
	unseen, closest := 0.0, math.Inf(1)
	for _, p := range probes { // the highest that held
		if d := math.Abs(p.Offered/e.rate - 1); p.Held && d < closest {
			closest, unseen = d, p.Unseen
		}
	}
	most := 0.0 // of the arrivals of a probe
	all := 0.0  // of those near the mark
	for _, p := range probes {
		most = max(most, p.Arrivals)
		if p.Offered >= e.low/1.05 && p.Offered <= e.high*1.05 {
			all += p.Arrivals
		}
	}
	if e.due { // it has what is unseen
		unseen = 0
	}
	low, high = e.low*(1-unseen), e.high
	switch {
	case most == 0 || e.chance || e.cliff:
	case all > 0 && slices.ContainsFunc(probes, func(p Probe) bool {
		return !p.Held && p.Behind && p.Offered <= 1.3*e.rate // its capacity is near
	}):
		low, high = low-e.low*2*math.Sqrt2/math.Sqrt(all), e.high*(1+2*math.Sqrt2/math.Sqrt(all))
	}
	if p, ok := spentLater(probes, e.low); ok { // a credit that outlasts a probe lets it hold more
		low = min(low, p.Ended)
	}
	if share = max(1-low/e.low, high/e.high-1); e.due {
		share = max(1-low/e.rate, high/e.rate-1)
	}
	if share < leastTold {
		share = 0
	}
	return low, high, share
}

// wander are the deviations of a step that are thought of, all as likely, in those of what arrives in a probe and of
// what that needs, each by the root of their number.
var wander = []float64{1, 1.5, 2}

// arrivals is the edge of a step where operations are due at random: a probe of a few thousand has some hundredths
// more or fewer to do than its rate says, and holds or breaks by what it had. The mark is where Bayes' rule has it with
// that spread (believed), and what a queue may have grown by unseen moves each probe down. Its interval is nominal, as
// that of a curve, since a search stops when it is narrow.
func arrivals(probes []Probe, b span) edge {
	if !(b.high.Arrivals > 0) || b.high.Offered > narrow*b.low.Offered {
		return edge{}
	}
	var of []Probe
	for _, p := range probes {
		if p.Arrivals > 0 && (p.Held || p.Generator == "") {
			of = append(of, p)
		}
	}
	e := edge{points: len(of), chance: true, due: true, inside: true}
	e.low, e.rate, e.high = believed(of, b.low.Offered/1.5, b.high.Offered*1.5, nominal, 1e-4, len(wander),
		func(p Probe, i int) (at, by float64) {
			return math.Log(p.Offered) - p.Unseen, wander[i] * math.Sqrt2 / math.Sqrt(p.Arrivals)
		})
	e.ok = e.low > 0 && e.rate > 0 && e.high > 0
	return e
}

// leastTold is the least share by which an interval is widened that is said.
const leastTold = 0.002

// ended is the most that a workload did in a step at the end of its time, as a rate, where it did much more before; 0
// where that is not so.
func ended(w result.Workload) float64 {
	const part, fewestLast, more = 5, 2, 1.25 // of the steps; a stall is no end
	counts, step := overTime(w)
	n := len(counts) - 1 // the last has what came after the end
	last := max(fewestLast, n/part)
	if n <= last {
		return 0
	}
	end, before := slices.Max(counts[n-last:n]), slices.Max(counts[:n-last])
	if before-end < (more-1)*end+3*math.Sqrt(end) {
		return 0
	}
	return end / step
}

// lasts is the share of a rate that held which must be left where more is offered: a credit, or a buffer, that is used
// up only after the end of a probe makes it hold more than it does for ever.
const lasts = 0.8

// spentLater finds the probe that was offered more than a rate that held and ended at the least, below it.
func spentLater(probes []Probe, held float64) (least Probe, ok bool) {
	for _, p := range probes {
		if p.Generator == "" && p.Ended > 0 && p.Ended < held && p.Offered > held &&
			(!ok || p.Ended < least.Ended) {
			least, ok = p, true
		}
	}
	return least, ok
}
