package corunning

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// clear is the track of a part without the points at which a fault that was for a smaller part of it was in force: what
// that did is in the other of the two.
func (p *pair) clear(c *view.Track, of part) *view.Track {
	without := slices.Concat(of.conditions.Partly, of.conditions.Edge)
	if len(without) == 0 || len(of.pieces) > 1 {
		return c
	}
	out := *c
	out.Ops, out.Busy = slices.Clone(c.Ops), slices.Clone(c.Busy)
	for _, f := range p.v.Faults() {
		if !slices.Contains(without, f.Say()) {
			continue
		}
		for i := range out.Ops {
			end, step := c.At(i), time.Duration(c.Step*float64(time.Second))
			if end.After(f.Start) && (f.End.IsZero() || end.Add(-step).Before(f.End)) {
				out.Ops[i] = math.NaN()
			}
		}
	}
	return &out
}

// held is the track of a part without the points at which a fault that its comparison is about was not in force: a part
// ends with a report, which may come after the fault was over.
func (p *pair) held(c *view.Track, of part) *view.Track {
	const fewest = 3
	if c == nil || len(of.pieces) > 1 {
		return c
	}
	out := *c
	out.Ops, out.Busy = slices.Clone(c.Ops), slices.Clone(c.Busy)
	for _, f := range p.v.Faults() {
		if !slices.Contains(of.conditions.Faults, f.Say()) || slices.Contains(of.conditions.Partly, f.Say()) {
			continue
		}
		for i := range out.Ops {
			from := c.At(i).Add(-time.Duration(c.Step * float64(time.Second)))
			if from.Before(f.Start) || !f.End.IsZero() && c.At(i).After(f.End) {
				out.Ops[i] = math.NaN()
			}
		}
	}
	left, _ := view.FiniteOf(out.Ops)
	all, _ := view.FiniteOf(c.Ops)
	few := float64(len(left)) > 0.95*float64(len(all)) // that are left out, which matter where little was done
	if len(left) < fewest || len(left) == len(all) ||
		few && stat.Mean(left, nil) > (1-changed)*stat.Mean(all, nil) {
		return c
	}
	p.loose = true
	return &out
}

// lasting looks whether what moved stayed so when the cause was gone: then it is no more the cause's than that of time,
// such as of a warm-up. It is told so when the interval of the two later ones holds no change that matters, and they
// are closer to each other than to the first.
func (p *pair) lasting(moved float64, flow func(*view.Track) view.Flow, of func([]result.OpTotals, float64) float64) {
	timed := p.a != nil && p.b != nil && p.a.Busy != nil && p.b.Busy != nil
	p.lasts = ""
	which := p.drifts(flow)
	if which == "" && timed {
		which = p.drifts(busyFlow)
	}
	if which != "" {
		p.lasts = "; it moved so within the " + which + " of the two by itself, so it is not told apart from drift"
		return
	}
	if p.before(flow) { // times that a hang left to one operation say nothing of a rate
		p.lasts = "; it had been so before the fault, too, so it is not told apart from drift, such as a warm-up"
		return
	}
	if timed && p.belated() {
		p.lasts = "; it came only in the second half of the later of the two, so it is not told apart from drift"
		return
	}
	if p.lasts = p.between(of); p.lasts != "" {
		return
	}
	if !p.stayed(moved, flow) {
		return
	}
	p.lasts = fmt.Sprintf("; it stayed so %s, so it is not told apart from drift, such as a warm-up",
		strings.TrimSuffix(p.gone.when(), ","))
}

// stayed reports whether what moved stayed so when the cause was gone; of series too short for an interval, whether the
// level moved by no more than matters, and most points are among the others.
func (p *pair) stayed(moved float64, flow func(*view.Track) view.Flow) bool {
	if p.gone == nil || p.b == nil || p.missing() != "" {
		return false
	}
	c := p.v.TrackOf(p.l, p.of)
	if c == nil {
		return false
	}
	with, after := flow(p.b), flow(over(c, *p.gone))
	r, in := view.BlockRatio(with, after)
	low, high := in.Low, in.High
	if !in.Valid() {
		if low, high = r, r; !(r > 0) || view.Separate(with.Each(), after.Each()) {
			return false
		}
	}
	return low >= 1-changed && high <= 1+changed && view.Away(r) <= math.Sqrt(view.Away(moved))
}

// stoodStill says of a rate that rose this much that no cause of it is told, where the load nearly stood still before.
func (p *pair) stoodStill(rose float64) bool {
	const still = 50 // times as fast as one that nearly stands still
	if rose <= still {
		return false
	}
	p.lasts = fmt.Sprintf("; it nearly stood still %s, so what made the difference is not told",
		strings.TrimSuffix(p.was, ","))
	return true
}

// gained says that what got better with a fault or when it was over, or with another workload, is none of its doing;
// nothing where it was said that the two are not told apart from drift.
func (p *pair) gained(better bool) {
	was, is := p.first.conditions, p.later.conditions
	if !better || p.lasts != "" || len(p.changes) > 1 || len(was.Faults) > 0 || !p.first.Start.Before(p.later.Start) {
		return
	}
	what := ""
	switch {
	case is.OfFault || len(is.Faults) > 0:
		what = "fault"
	case len(is.Beside) > len(was.Beside):
		what = "load beside it"
	default:
		return
	}
	if what == "fault" && p.missing() != "" {
		p.lasts = "; fewer VMs ask less of what they share, which may have made what was left faster"
		return
	}
	p.lasts = "; no " + what + " makes faster, so it is not told apart from drift, such as a warm-up"
}

// drifts says within which of the two half of the way from the earlier to the later one, or more, was made: the earlier
// one, or the later one where nothing shows that the earlier did not move along; "" where it was not.
func (p *pair) drifts(flow func(*view.Track) view.Flow) string {
	if p.a == nil || p.b == nil || len(p.first.pieces)+len(p.later.pieces) > 2 {
		return ""
	}
	earlier, later, of, then := flow(p.a), flow(p.b), p.first, p.later
	if then.Start.Before(of.Start) {
		earlier, later, of, then = later, earlier, then, of
	}
	if len(of.conditions.Partly) > 0 { // what moved within it is what came or went then
		return ""
	}
	for _, f := range []*view.Flow{&earlier, &later} {
		if n := len(f.Amount); n >= 10 { // the reports at its edges may hold what came before and after
			*f = f.Part(1, n-1)
		}
	}
	moved := func(f view.Flow, from float64) bool {
		begins, ends, ok := f.Ends()
		if from == 0 {
			from = begins
		}
		way, whole := math.Log(ends/begins), math.Log(later.Level()/from)
		return ok && view.Away(ends/begins) > 1+changed && way*whole > 0 && math.Abs(way) >= math.Abs(whole)/2
	}
	_, _, told := earlier.Ends()
	switch {
	case moved(earlier, 0), p.straight(earlier.Each(), later.Each(), true), told && swings(earlier, later):
		return "earlier"
	case len(then.conditions.Partly) == 0 && moved(later, earlier.Level()) &&
		(!told || p.straight(earlier.Each(), later.Each(), false)):
		return "later"
	}
	return ""
}

// before reports whether a workload had been closer to how it was under a fault than to how it was later, without it,
// before that fault came: then time made the difference, such as a warm-up.
func (p *pair) before(flow func(*view.Track) view.Flow) bool {
	const fewest = 3
	if p.a == nil || p.b == nil || !p.later.Start.Before(p.first.Start) || len(p.first.pieces)+len(p.later.pieces) > 2 {
		return false
	}
	c := p.v.TrackOf(p.l, p.of)
	for _, f := range p.v.Faults() {
		was, is := p.first.conditions.Faults, p.later.conditions.Faults
		if c == nil || slices.Contains(was, f.Say()) || !slices.Contains(is, f.Say()) {
			continue
		}
		begun, _ := p.l.Span()
		earlier := flow(c.Between(begun, f.Start))
		if len(earlier.Amount) < fewest {
			continue
		}
		way, whole := math.Log(flow(p.b).Level()/earlier.Level()), math.Log(flow(p.b).Level()/flow(p.a).Level())
		if math.Abs(whole) > math.Log(1+changed) && way/whole < 0.5 {
			return true
		}
	}
	return false
}

// belated reports whether the times of the later of the two were as those of the earlier one for its first half: then
// what came with it had not moved them. What goes away again when its cause does is that one's, however late it came.
func (p *pair) belated() bool {
	const fewest = 16
	if p.a == nil || p.b == nil || p.gone != nil || len(p.first.pieces)+len(p.later.pieces) > 2 {
		return false
	}
	earlier, later := busyFlow(p.a), busyFlow(p.b)
	if p.later.Start.Before(p.first.Start) {
		earlier, later = later, earlier
	}
	n, level := len(later.Amount), earlier.Level()
	if n < fewest {
		return false
	}
	whole, way := math.Log(later.Level()/level), math.Log(later.Part(0, n/2).Level()/level)
	return math.Abs(whole) > math.Log(1+changed) && math.Abs(way) <= math.Abs(whole)/4
}

// swings reports whether the earlier of two flows was as far on its way to the level of the later, by itself, over some
// stretch as long as that one.
func swings(earlier, later view.Flow) bool {
	n, level := len(later.Amount), earlier.Level()
	whole := math.Log(later.Level() / level)
	if view.Away(later.Level()/level) <= 1+changed || 4*n > 3*len(earlier.Amount) {
		return false
	}
	for i := 0; i+n <= len(earlier.Amount); i++ {
		if way := math.Log(earlier.Part(i, i+n).Level() / level); way*whole > 0 && math.Abs(way) >= math.Abs(whole)/2 {
			return true
		}
	}
	return false
}

// between says that half of the way from the earlier of two to the later one was made between them, in a window in the
// same company as the earlier one's; "" where it was not.
func (p *pair) between(of func([]result.OpTotals, float64) float64) string {
	a, b := p.first, p.later
	if of == nil {
		return ""
	}
	if b.Start.Before(a.Start) {
		a, b = b, a
	}
	if len(a.pieces)+len(b.pieces) > 2 {
		return ""
	}
	began := of(a.Ops, a.seconds)
	whole := math.Log(of(b.Ops, b.seconds) / began)
	for i, w := range p.windows {
		if w.Start.Before(a.End) || w.End.After(b.Start) || len(a.conditions.Changes(p.every[i])) > 0 {
			continue
		}
		if way := math.Log(of(w.Ops, w.Seconds()) / began); way*whole > 0 && math.Abs(way) >= math.Abs(whole)/2 {
			return "; it had moved so between the two by itself, so it is not told apart from drift"
		}
	}
	return ""
}

// straight reports whether one line through all points, of the earlier of the two and of the later, is as near to them
// as a step between the two, moves them by as much as matters, and nothing but chance makes the earlier one move less
// along it. With half it is asked for more: that the earlier one moves by itself, by half of the line's slope or more,
// and no other than chance makes of it.
func (p *pair) straight(earlier, later []float64, half bool) bool {
	between := math.Abs(p.b.Start.Sub(p.a.Start).Seconds()) / p.a.Step
	var x []float64
	for i := range earlier {
		x = append(x, float64(i))
	}
	for i := range later {
		x = append(x, between+float64(i))
	}
	n, y := len(earlier), slices.Concat(earlier, later)
	if min(n, len(later)) < 8 {
		return false
	}
	off := func(x, y []float64, slope, level float64) (sum float64) {
		for i := range y {
			sum += (y[i] - level - slope*x[i]) * (y[i] - level - slope*x[i])
		}
		return sum
	}
	level, slope := stat.LinearRegression(x, y, nil, false)
	step := off(x[:n], earlier, 0, stat.Mean(earlier, nil)) + off(x[n:], later, 0, stat.Mean(later, nil))
	if off(x, y, slope, level) > step {
		return false
	}
	own, at := stat.LinearRegression(x[:n], earlier, nil, false)
	deviation := math.Sqrt(off(x[:n], earlier, at, own) / float64(n-2) / (float64(n) * stat.PopVariance(x[:n], nil)))
	moves := math.Abs(slope)*x[len(x)-1] > changed*stat.Mean(y, nil)
	if lag := math.Abs(slope) - math.Copysign(at, at*slope); !half {
		return moves && lag <= 2*deviation
	}
	return moves && at*slope > 0 && math.Abs(at) >= math.Abs(slope)/2 && math.Abs(at-slope) <= 2*deviation
}

// ranged reports whether pieces of one of the two parts, and of others in company like its own, differ by themselves as
// much as the other one lies away from them: what comes and goes without a cause, such as a checkpoint that meets some
// pieces, is no one's doing. Of few pieces the next one may lie as far out again as they lie apart.
func (p *pair) ranged(of func(ops []result.OpTotals, seconds float64) float64) bool {
	within := func(x float64, pieces []result.Window) bool {
		low, high := math.Inf(1), math.Inf(-1)
		for _, w := range pieces {
			y := of(w.Ops, w.Seconds())
			low, high = min(low, y), max(high, y)
		}
		beyond := high / low
		if len(pieces) >= 8 {
			beyond = math.Sqrt(beyond)
		}
		return len(pieces) > 2 && low/beyond <= x && x <= high*beyond
	}
	return within(of(p.later.Ops, p.later.seconds), p.alike[0]) || within(of(p.first.Ops, p.first.seconds), p.alike[1])
}

func countOver(ops []result.OpTotals, seconds float64) float64 {
	n, _ := view.Totals(ops)
	return float64(n) / seconds
}

func meanOf(ops []result.OpTotals, _ float64) float64 {
	n, sum := view.Totals(ops)
	return sum / float64(n)
}

// ofTheLost reports whether a rate moved, within a quarter of the way, by what VMs had done that were lost between the
// two: then that is what took it, whatever else moves by itself.
func (p *pair) ofTheLost(moved float64) bool {
	n, all, _ := p.lost()
	if n == 0 || n == all || !p.first.Start.Before(p.later.Start) {
		return false
	}
	share := math.Log(float64(all-n) / float64(all))
	return math.Abs(math.Log(moved)-share) <= math.Abs(share)/4
}

// only reports whether nothing but VMs that had been lost to faults that were over tells the later of the two from the
// earlier one, and parts under these faults are compared as well: the end of a fault is no second one.
func (p *pair) only(parts []part) bool {
	over := p.later.conditions.Lost
	return len(over) > 0 && len(p.changes) == 1 && !slices.Equal(over, p.first.conditions.Lost) &&
		!slices.ContainsFunc(over, func(f string) bool {
			return !slices.ContainsFunc(parts, func(o part) bool { return slices.Contains(o.conditions.Faults, f) })
		})
}

// lost is how many VMs of how many were lost between the two.
func (p *pair) lost() (n, all int, when string) {
	from, to, when := p.first.Start, p.later.End, "by then"
	if to.Before(p.first.End) {
		from, to, when = p.later.Start, p.first.End, "in between"
	}
	for _, w := range p.l.Parts {
		if w.Ended == result.Lost && w.End.After(from) && w.End.Before(to) {
			n++
		}
	}
	return n, len(p.l.Parts), when
}

// missing says how many VMs were lost between the two, so that what they did since is in no rate; "" where none was.
func (p *pair) missing() string {
	n, all, when := p.lost()
	if n == 0 || n == all {
		return ""
	}
	if over := p.later.conditions.Lost; len(over) > 0 && len(p.changes) == 1 {
		when += ", at " + view.Listed(over) // which is no more in force
	}
	return fmt.Sprintf("; %d of its %d VMs lost %s", n, all, when)
}

// tooShort tells of a workload in whose time something was marked, or others came or went, what it did then and that
// its phases are too short to be compared: to say nothing would leave what it paid unasked. Moments at its ends, in
// which two that run together start, are no phases.
func tooShort(v *view.Run, l *view.Load) []result.Finding {
	windows := l.Whole().Comparable()
	parts := partsOf(windows, v.ConditionsOf(l, windows))
	if len(parts) < 2 {
		return nil
	}
	whole := 0.0
	for _, p := range parts {
		whole += p.seconds
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.seconds < view.Besides*whole })
	if len(parts) < 2 {
		return nil
	}
	p := pair{l: l, of: l.Rate(), first: parts[0], later: parts[1]}
	a, b := countOver(p.first.Ops, p.first.seconds), countOver(p.later.Ops, p.later.seconds)
	if !(a > 0) || !(b > 0) {
		return nil
	}
	was, is := whenever(p.first, p.later)
	return []result.Finding{{
		Check: "windows", Subject: l.Name, Severity: result.Info, Unit: "ratio",
		Metric: "rate " + p.later.title() + " / " + p.first.title(), Limit: view.Ptr(1 - changed),
		NoInterval: fmt.Sprintf("phases of %s and %s, and each needs %s", view.SayDuration(p.first.seconds),
			view.SayDuration(p.later.seconds), view.SayDuration(v.Silence(l).Seconds())),
		Basis: p.basis(""), Evidence: p.both("rate ", a, b),
		Sentence: fmt.Sprintf("%s: %s %s, %s %s; whether that is a change cannot be told, in so short a time.",
			l.Name, p.of.Say(a), was, view.SayCount(b), is),
	}}
}
