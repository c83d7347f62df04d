// Package mark finds the mark of a system: the highest rate of operations that it bears under a limit, how sure that
// is, and when there is none to be had.
//
// A search is a list of probes: each offered one rate for a time, in an open loop, and says how far the limited
// values were from their limits. Next says what to offer next, and why, from the probes so far and nothing else, so
// that a search that was stopped goes on where it was. Conclude says what has come out of it.
//
// The search ramps up in growing steps until a limit breaks, or down until all hold, halves what lies in between, and
// then places probes above and below the place where the limit is thought to be, in turn. What is fitted there is the
// margin z, the limit over the value: a straight line over the rate, by least squares with weights 1/z² because the
// noise of a latency grows with it. In an open queue of one server z is a straight line to the end (the mean and
// every percentile are S/(1−λ/C) times a number: Kleinrock, Queueing Systems I, 1975, 3.2), and in others near the
// limit. The rate at which the line says z = 1 is the mark, its 95 % interval that of Fieller (Journal of the Royal
// Statistical Society B 16, 1954) with Student's t, so that spread from probe to probe is in it whatever makes it.
// Probes that fell behind their schedule have no place on the line: they only bound the mark from above. Where the
// schedule of one rate is met and that of the next is not, without a slope, as at a cap, the mark is the highest rate
// that held and the interval reaches to the lowest that did not, each offered twice. Where it breaks so by chance, as a
// limit of no errors does (chance in fit.go) and any does whose operations are due at random (arrivals in grow.go), the
// mark is the rate that holds as often as not.
//
// It refuses to give a mark where the generator gave way, where the system did not come back from an overload to what
// it had borne before, and where nothing or everything held: those are answers of their own.
//
// Pure: no I/O, no clock, no randomness.
package mark

import (
	"cmp"
	"math"
	"slices"
)

// Probe is one answer of the system.
type Probe struct {
	Offered  float64 `json:"offered_ops"`       // operations per second; above 0
	Achieved float64 `json:"achieved_ops"`      // operations per second; 0 when not known
	Seconds  float64 `json:"seconds,omitempty"` // for how long it was offered
	// Margin is the limit over the limited value, of the limit that is nearest to breaking: 1 at the limit, above it
	// when all hold. 0: broken without a distance, as by an error, by a rate that was not met, or by no answer.
	Margin float64 `json:"margin"`
	Held   bool    `json:"held"`
	// Limit is the limit that Margin is of.
	Limit string `json:"limit,omitempty"`
	// Behind: it fell behind the schedule of its rate, so what it shows depends on how long it lasted.
	Behind bool `json:"behind,omitempty"`
	// Met is for how many seconds a rate that was not met over all had been, where it was for a third of the time or
	// more and then no longer: as where a buffer is full by then. 0 otherwise.
	Met float64 `json:"met_seconds,omitempty"`
	// Grew is the share of its rate by which its queue still grew at its end, in which case it has not held, and Unseen
	// the share that may have grown unseen. Arrivals is how many operations were due, where they were at random.
	Grew     float64 `json:"queue_grew_share,omitempty"`
	Unseen   float64 `json:"unseen_share,omitempty"`
	Arrivals float64 `json:"random_arrivals,omitempty"`
	// Taken: nobody knows whether they were at random, and they are taken to be.
	Taken bool `json:"arrivals_taken_as_random,omitempty"`
	// Ended is the rate that was done at the end where that is much less than before, of one that was not met; else 0.
	Ended float64 `json:"ended_at_ops,omitempty"`
	// Generator says how the load generator gave way; "" when it did not.
	Generator string `json:"generator,omitempty"`
	// Used lists how full the parts below the load were, the fullest first.
	Used []Used `json:"used,omitempty"`
	// Spent is where an operation spent its time; nil when that is not known.
	Spent *Spent `json:"spent,omitempty"`
}

// Settings say what is looked for.
type Settings struct {
	Start  float64 // the first rate; above 0
	Least  float64 // no lower rate is offered; 0: a thousandth of the first
	Most   float64 // no higher rate is offered; 0: no bound
	Probes int     // the most; 0: DefaultProbes
	Within float64 // the interval's farther end is at most this share away from the mark; 0: DefaultWithin
	Unit   string  // of rates, as texts have it; "": IOPS
	Count  bool    // what is offered is a number of VMs, and whole
	Room   float64 // the least number for which there is no room; 0: none was met
	Lacks  string  // what there is too little of
}

// Defaults of Settings.
const (
	DefaultProbes = 12
	DefaultWithin = 0.05
)

func (s Settings) filled() Settings {
	s.Probes = cmp.Or(s.Probes, DefaultProbes)
	s.Within = cmp.Or(s.Within, DefaultWithin)
	s.Least = cmp.Or(s.Least, s.Start/1000)
	s.Most = cmp.Or(s.Most, math.Inf(1))
	return s
}

// Margins that noise does not bring about.
const (
	clearlyHeld   = 1.25
	clearlyBroken = 0.80
	lost          = 0.60 // of the margin that a rate had before: it has not come back
)

// window is how far from the mark probes are fitted, as a share of it.
const window = 0.30

// Step says what to offer next.
type Step struct {
	Rate float64 // operations per second; 0: nothing, the search is over
	Why  string  // for the person who waits
}

// Next is the next probe. The same probes always have the same next one.
func Next(s Settings, probes []Probe) Step {
	if len(probes) > 0 && s.Least == 0 && probes[0].Behind && probes[0].Achieved > 0 { // the first may be far above
		s.Least = min(s.Start, probes[0].Achieved) / 1000
	}
	s = s.filled()
	switch {
	case len(probes) == 0 && s.Start < s.Least && s.Least <= s.Most:
		return Step{s.Least, "the first: at fewer too little is done to know the percentile"}
	case len(probes) == 0 && s.Least > s.Most:
		return Step{s.Most, "the highest: even there too little is done to know the percentile"}
	case len(probes) == 0:
		return Step{s.bounded(s.Start), "the first"}
	case len(probes) >= s.Probes:
		return Step{}
	}
	probes, _ = undisturbed(probes)
	if last := probes[len(probes)-1]; !last.Held && last.Generator != "" && count(probes, last.Offered) == 1 &&
		slices.ContainsFunc(probes, func(p Probe) bool { return p.Held && p.Offered > last.Offered/apart }) {
		return Step{last.Offered, "the generator gave way, as it may by chance: again"}
	}
	if s.Count {
		return s.nextCount(probes)
	}
	probes = lagging(probes)
	b := bracket(probes)
	switch {
	case b.fell >= 0:
		return s.fallen(probes, b.fell)
	case !b.broke:
		return s.up(probes)
	case !b.held:
		return s.down(probes)
	}
	if rate, again := s.again(probes); again {
		return Step{rate, "a rate that held is offered again"}
	}
	if rate, beyond := s.beyond(probes, b); beyond {
		return Step{rate, "does it hold again higher up?"}
	}
	e := estimate(probes)
	switch {
	case !e.ok || !s.near(e):
	case e.cliff && s.Probes-len(probes) >= fewestInside && !s.tells(probes, e):
		return s.inside(probes, b)
	case e.cliff || s.tells(probes, e):
		if rate, left := drift(probes, e); left {
			return Step{rate, "the first of those near the limit is offered again, for drift"}
		}
		return Step{}
	}
	if e.gap && e.high > (1+s.Within)*e.low {
		return s.inside(probes, b)
	}
	if e.ok && !e.cliff {
		if len(probes) == s.Probes-1 {
			if rate, left := drift(probes, e); left {
				return Step{rate, "the first of those near the limit is offered again, for drift"}
			}
		}
		return s.beside(probes, e)
	}
	return s.between(probes, b)
}

func (s Settings) bounded(rate float64) float64 { return min(max(rate, s.Least), s.Most) }

// near reports whether the interval is as narrow as wanted.
func (s Settings) near(e edge) bool {
	if e.cliff {
		return e.high/e.low <= 1+s.Within && e.twice
	}
	return e.points > fewest && e.inside && s.narrow(e)
}

// fewestInside are the probes that narrow a step: one inside it, and that again.
const fewestInside = 3

// tells reports whether the interval is as narrow as wanted with all that probes are too short to tell.
func (s Settings) tells(probes []Probe, e edge) bool {
	low, high, _ := told(probes, e)
	if e.cliff {
		return high <= (1+s.Within)*low
	}
	return max(high-e.rate, e.rate-low) <= s.Within*e.rate
}

// narrow reports whether neither end of the interval is farther from the mark than wanted.
func (s Settings) narrow(e edge) bool { return max(e.high-e.rate, e.rate-e.low) <= s.Within*e.rate }

// span holds what bounds the mark.
type span struct {
	held, broke bool
	low, high   Probe // the highest that held below the lowest that clearly broke; the latter
	fell        int   // the probe that broke a rate which had held before an overload; -1: none
}

// bracket sorts the probes.
func bracket(probes []Probe) span {
	b := span{fell: fell(probes)}
	for _, p := range probes {
		if p.Margin <= clearlyBroken && (!b.broke || p.Offered < b.high.Offered) {
			b.high, b.broke = p, true
		}
	}
	if !b.broke { // by little, as far as is known
		for _, p := range probes {
			if !p.Held && (!b.broke || p.Offered < b.high.Offered) {
				b.high, b.broke = p, true
			}
		}
	}
	for _, p := range probes {
		if p.Held && (!b.broke || p.Offered < b.high.Offered) && (!b.held || p.Offered > b.low.Offered) {
			b.low, b.held = p, true
		}
	}
	return b
}

// undisturbed leaves out probes in which the generator gave way at a rate that held, or below one that did, and returns
// those: what else the machine did then is no answer of the system, nor the most that the generator sends.
func undisturbed(probes []Probe) (kept, left []Probe) {
	highest := 0.0
	for _, p := range probes {
		if p.Held {
			highest = max(highest, p.Offered)
		}
	}
	for _, p := range probes {
		if !p.Held && p.Generator != "" && p.Offered <= highest*1.0001 {
			left = append(left, p)
		} else {
			kept = append(kept, p)
		}
	}
	return kept, left
}

// lagged is the share of its rate by which a probe was short more than the one that was least, from which on it was
// more than the system does: how far its values got from their limits depends on how long it lasted.
const lagged = 0.0075

// lagging are the probes with those Behind that were short of their rates. What all are short of is the time that a
// generator takes to begin and end.
func lagging(probes []Probe) []Probe {
	short := func(p Probe) float64 { return 1 - p.Achieved/p.Offered }
	least := math.Inf(1)
	for _, p := range probes {
		least = min(least, max(short(p), 0))
	}
	out := slices.Clone(probes)
	for i, p := range out {
		out[i].Behind = p.Behind || p.Achieved > 0 && short(p) > least+lagged
	}
	return out
}

// nearly is the share of a rate that tells an overload that stays from a rate that is borne or not by chance.
const nearly = 0.9

// fell finds a probe that broke clearly at a rate which had held before an overload, and did not hold again; -1 when
// there is none.
func fell(probes []Probe) int {
	for j, p := range probes {
		if p.Held || p.Margin > clearlyBroken || p.Generator != "" {
			continue
		}
		if slices.ContainsFunc(probes[j+1:], func(q Probe) bool { return q.Held && same(q.Offered, p.Offered) }) {
			continue // it was chance
		}
		over := false // an overload between the two
		for i := j - 1; i >= 0; i-- {
			q := probes[i]
			if over && slices.ContainsFunc(probes[i+1:], func(q Probe) bool {
				return q.Held && q.Offered > 0.99*nearly*p.Offered
			}) {
				break // what stays broken does not bear nearly as much
			}
			used := p.Ended > 0 && p.Seconds > 1.5*q.Seconds // it did more at first, for as long as before maybe
			if q.Held && !q.Behind && same(q.Offered, p.Offered) && p.Margin < lost*q.Margin && over && !used {
				return j
			}
			over = over || q.Margin <= clearlyBroken
		}
	}
	return -1
}

// fallen offers the rate of a probe that did not come back once more, then a little less than it, and then looks
// whether the lowest that ever held still does.
func (s Settings) fallen(probes []Probe, at int) Step {
	if count(probes[at+1:], probes[at].Offered) == 0 {
		return Step{probes[at].Offered, "it did not bear what it had borne: again"}
	}
	if len(probes) == at+2 {
		return Step{s.bounded(nearly * probes[at].Offered),
			"it did not bear what it had borne: does it bear a little less?"}
	}
	lowest, ok := lowestHeld(probes[:at])
	if !ok || len(probes) > at+3 || lowest >= probes[at].Offered*0.999 {
		return Step{}
	}
	return Step{lowest, "it did not bear what it had borne: does it come back at the lowest rate that held?"}
}

func lowestHeld(probes []Probe) (rate float64, ok bool) {
	for _, p := range probes {
		if p.Held && (!ok || p.Offered < rate) {
			rate, ok = p.Offered, true
		}
	}
	return rate, ok
}

// sameRate is how far what a generator offered may lie beside what it was asked for: random arrivals do.
const sameRate = 0.02

// up grows the steps as long as nothing breaks.
func (s Settings) up(probes []Probe) Step {
	highest, factor := 0.0, 2.0
	for i, p := range probes {
		highest = max(highest, p.Offered)
		if i >= 4 {
			factor = 4
		}
	}
	if p := probes[len(probes)-1]; p.Margin < 0.8*probes[0].Margin { // it bends already
		factor = 2
	}
	if highest >= s.Most/(1+sameRate) {
		return Step{}
	}
	return Step{s.bounded(highest * factor), "every limit holds: higher"}
}

// farAbove is the share of a rate, as achieved, below which it is so far above the mark that steps would be wasted.
const farAbove = 1. / 30

// down goes below what was achieved, then by growing steps.
func (s Settings) down(probes []Probe) Step {
	lowest := lowestOf(probes)
	if lowest.Offered <= s.Least*(1+sameRate) {
		return Step{}
	}
	rate := lowest.Offered / min(math.Pow(2, float64(len(probes))), 8)
	if a := 0.7 * lowest.Achieved; lowest.Behind && (a > rate || a > 0 && a < farAbove*lowest.Offered) {
		rate = min(a, lowest.Offered/1.5)
	}
	if lowest.Generator != "" && lowest.Achieved > 0 { // more than that it cannot send
		return Step{s.bounded(min(rate, 0.7*lowest.Achieved)), "the generator gave way: lower"}
	}
	return Step{s.bounded(rate), "a limit is broken: lower"}
}

func lowestOf(probes []Probe) Probe {
	return slices.MinFunc(probes, func(p, q Probe) int { return cmp.Compare(p.Offered, q.Offered) })
}

// again offers a rate that held once more: when one below it broke since, and when two in a row broke.
func (s Settings) again(probes []Probe) (float64, bool) {
	run, over := 0, false
	for j, p := range slices.Backward(probes) {
		if p.Held || p.Margin > clearlyBroken {
			break
		}
		run, over = run+1, over || p.Behind
		for _, q := range probes[:j] {
			if q.Held && q.Offered > p.Offered*1.001 && count(probes, q.Offered) < 2 {
				return q.Offered, true
			}
		}
	}
	b := bracket(probes)
	if over && run >= 2 && run%2 == 0 && count(probes, b.low.Offered) < 2 {
		return b.low.Offered, true
	}
	return 0, false
}

// beyond is a rate above one that broke by little, once: a limit may hold again.
func (s Settings) beyond(probes []Probe, b span) (float64, bool) {
	if b.high.Behind || b.high.Margin < 0.3 || b.high.Generator != "" || b.high.Offered*1.4 > s.Most ||
		slices.ContainsFunc(probes, func(p Probe) bool { return p.Offered > b.high.Offered*1.2 }) {
		return 0, false
	}
	return b.high.Offered * 1.4, true
}

// count is how often a rate was offered.
func count(probes []Probe, rate float64) (n int) {
	for _, p := range probes {
		if same(p.Offered, rate) {
			n++
		}
	}
	return n
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-6*b }

// mostSides is how often both sides of a step are offered: what contradicts itself that often goes on to.
const mostSides = 3

// between places a probe inside the bracket: beside a probe that came near the limit, where the margins say, just below
// what an overload achieved, else in the middle.
func (s Settings) between(probes []Probe, b span) Step {
	low, high := b.low, b.high
	ratio := high.Offered / low.Offered
	if e, near := around(probes, b); near {
		return s.beside(probes, e)
	}
	if ratio <= 1+s.Within {
		rate := low.Offered
		held, broke := count(probes, low.Offered), count(probes, high.Offered)
		if min(held, broke) >= mostSides {
			return Step{}
		}
		if held > broke {
			rate = high.Offered
		}
		return Step{rate, "both sides of the step are offered again"}
	}
	return s.inside(probes, b)
}

// inside places a probe between the two sides.
func (s Settings) inside(probes []Probe, b span) Step {
	low, high := b.low, b.high
	if high.Behind && high.Achieved > 0 && high.Achieved < farAbove*high.Offered {
		return Step{s.bounded(1.3 * max(low.Offered, high.Achieved)), "above what was achieved, and far below " +
			Say(high.Offered, s.Unit)}
	}
	ratio := high.Offered / low.Offered
	rate := math.Sqrt(low.Offered * high.Offered)
	switch {
	case !high.Behind && high.Margin > 0.2 && low.Margin > high.Margin && !flat(probes, high):
		rate = interpolate(low, high)
	case high.Behind && high.Achieved < 0.96*high.Offered && high.Achieved > 1.02*low.Offered:
		rate = 0.98 * high.Achieved
	}
	least, most := low.Offered*math.Pow(ratio, 0.2), low.Offered*math.Pow(ratio, 0.8)
	return Step{min(max(rate, least), most), "between what held and what broke"}
}

// flat reports whether a probe just above one has its margin: there is no slope that would say where the limit is.
func flat(probes []Probe, p Probe) bool {
	return slices.ContainsFunc(probes, func(q Probe) bool {
		return q.Offered > 1.02*p.Offered && q.Offered < 2*p.Offered && !q.Behind && q.Margin > 0.9*p.Margin
	})
}

// interpolate is where the margin is 1 between two probes: between a straight line and a power of the rate.
func interpolate(low, high Probe) float64 {
	line := low.Offered + (low.Margin-1)/(low.Margin-high.Margin)*(high.Offered-low.Offered)
	power := low.Offered * math.Pow(high.Offered/low.Offered,
		math.Log(low.Margin)/math.Log(low.Margin/high.Margin))
	return math.Sqrt(line * power)
}

// around is where the limit seems to be when a probe came near it but there are too few for a curve.
func around(probes []Probe, b span) (edge, bool) {
	var at Probe
	n, below := 0.0, 0
	for _, p := range probes { // all that came near, as one
		if !p.Behind && p.Margin > clearlyBroken && p.Margin < clearlyHeld {
			at.Offered, at.Margin, n = at.Offered+p.Offered, at.Margin+p.Margin, n+1
			if p.Margin < 1 {
				below++
			}
		}
	}
	if n == 0 || below == 0 && b.high.Behind { // or it is flat up to a step
		return edge{}, false
	}
	at.Offered, at.Margin = at.Offered/n, at.Margin/n
	e := edge{rate: at.Offered}
	switch {
	case at.Margin < 1 && b.low.Offered < at.Offered && b.low.Margin > 1:
		e.rate = interpolate(b.low, at)
	case at.Margin > 1 && !b.high.Behind && b.high.Margin > 0 && b.high.Margin < 1 && b.high.Offered > at.Offered:
		e.rate = interpolate(at, b.high)
	}
	half := min(0.04+0.015*n, (b.high.Offered/b.low.Offered-1)/3) // wider when that many show no slope
	e.low, e.high = (1-half)*e.rate, (1+half)*e.rate
	return e, true
}

// beside places a probe on the side of the mark that has fewer, as far off as the interval is wide.
func (s Settings) beside(probes []Probe, e edge) Step {
	half := max(e.high-e.rate, e.rate-e.low) / e.rate
	reach := 0.2  // farther apart where the slope is not seen
	if e.chance { // what lies farther out is foreseen
		half, reach = half*0.25, 0.12
	}
	away := min(max(half, 0.01), reach)
	below, above := 0, 0
	for _, p := range probes {
		switch d := p.Offered/e.rate - 1; {
		case math.Abs(d) > reach:
		case d < 0:
			below++
		default:
			above++
		}
	}
	if below <= above {
		return Step{s.bounded(e.rate * (1 - away)), "just below where the limit seems to be"}
	}
	return Step{s.bounded(e.rate * (1 + away)), "just above where the limit seems to be"}
}

// drift is the rate of the first probe near the mark, when it was not offered again at least three probes later.
func drift(probes []Probe, e edge) (rate float64, left bool) {
	first := -1
	for i, p := range probes {
		if math.Abs(p.Offered/e.rate-1) > window || p.Behind {
			continue
		}
		if first < 0 {
			first = i
		} else if same(p.Offered, probes[first].Offered) && i >= first+3 {
			return 0, false
		}
	}
	if first < 0 || first > len(probes)-3 {
		return 0, false
	}
	return probes[first].Offered, true
}
