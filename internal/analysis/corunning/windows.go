// Package corunning asks what a co-running workload costs: the phases of a workload, before, with and after others and
// around each annotated moment, are compared with the first of them. It gives a view.Check to package analysis. Stages
// of a growing load are no co-running workloads; see package scale.
package corunning

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// changed is the smallest relative change of a rate or a latency between windows that is called a change.
const changed = 0.05

// mostChanges is how many comparisons of windows are told; of more, only the one that moved most.
const mostChanges = 3

// Windows compares the parts of a workload's time, before, with and after co-running workloads and around each
// annotated moment, each with the one from which it differs in one thing alone, the first where there are several:
// what a test of co-running workloads asks for. Where two things changed at one moment and no time had only one of
// them, it says that the two cannot be told apart. One finding is about the rate, one about the mean latency;
// percentiles of the merged histograms stand beside them.
var Windows = view.Check{Name: "windows", Rank: 130, Run: windows}

func windows(v *view.Run) []result.Finding {
	if v.Stages() != nil {
		return nil // who joins is not beside the test but part of it; see scaling
	}
	longest := 0.0
	for _, l := range v.Loads {
		longest = max(longest, l.Longest())
	}
	var out []result.Finding
	for _, l := range v.Loads {
		w := l.Whole()
		if w == nil || l.Longest() < view.Besides*longest {
			continue // a burst beside others is what they are asked about; of its own seconds nothing follows
		}
		comparable := v.Comparable(l)
		parts := partsOf(comparable, v.ConditionsOf(l, comparable))
		if len(parts) < 2 {
			out = append(out, tooShort(v, l)...)
			continue
		}
		least := 0.0
		if c := v.TrackOf(l, l.Rate()); c != nil {
			least = 4 * c.Step // three whole points, wherever it begins
		}
		against := counterparts(parts, least)
		every := v.ConditionsOf(l, w.Windows)
		pairs := func(q view.Quantity, compare func(*pair) (result.Finding, bool)) {
			var found []caused
			for _, k := range against {
				p := pair{l: l, of: q, latency: cmp.Or(w.Latency, "service time"), first: parts[k.first],
					later: parts[k.later], changes: k.changes,
					comparisons: len(against), windows: w.Windows, every: every}
				p.was, p.is = whenever(p.first, p.later)
				p.gone = goneAfter(parts, k)
				p.alike = [2][]result.Window{alike(v, w.Windows, every, p.first), alike(v, w.Windows, every, p.later)}
				p.series(v)
				if f, ok := compare(&p); ok {
					if p.lasts != "" || p.only(parts) { // nobody's, or told of the fault itself
						f.Harm = nil
					}
					found = append(found, caused{f, view.Listed(k.changes)})
				}
			}
			out = append(out, most(found, len(parts))...)
		}
		pairs(l.Rate(), (*pair).rate)
		pairs(l.Rate(), (*pair).mean)
		for _, q := range l.Measures() {
			pairs(q, (*pair).measure)
		}
		for _, m := range l.Declared() {
			if m.Kind == result.Single {
				pairs(view.MeasureOf(m), (*pair).single)
			}
		}
	}
	return out
}

// pair is two windows of a workload.
type pair struct {
	l            *view.Load
	of           view.Quantity
	latency      string
	first, later part
	was, is      string // the two in a sentence
	changes      []string
	v            *view.Run
	a, b         *view.Track        // nil without a series
	comparisons  int                // of which it is one
	gone         *part              // what follows when others of the later one are gone, as in the first; nil without
	alike        [2][]result.Window // the pieces of the two, and of all parts in company like theirs
	lasts        string             // said when what moved did not move back then
	windows      []result.Window    // all of the workload, and what was so in each
	every        []view.Conditions
	loose        bool   // points at which the fault was not in force are left out of one of the two
	worst        string // the kind of operation whose 99th percentile moved most
	but          bool   // the sentence says that the time under a fault is left out, which is in the percentiles
	// warm are the warm-ups left out of the two, in seconds: then they are compared by their series, once settled, and
	// not by counts and histograms, which hold them.
	warm [2]float64
}

// series finds the two stretches of the workload's series. A point that lies in neither whole is in neither.
func (p *pair) series(v *view.Run) {
	p.v = v
	if c := v.TrackOf(p.l, p.of); c != nil {
		p.a, p.b = p.clear(over(c, p.first), p.first), p.clear(over(c, p.later), p.later)
		p.a, p.b = p.held(p.a, p.first), p.held(p.b, p.later)
		p.settle()
	}
	if p.settled() { // then levels are those of the series, from which clear has taken what a fault did for a part
		but := func(part part, said string) string {
			if len(part.pieces) > 1 {
				return said
			}
			return strings.Replace(said, ", in part under ", ", but for the time under ", 1)
		}
		was, is := but(p.first, p.was), but(p.later, p.is)
		p.but = was != p.was || is != p.is
		p.was, p.is = was, is
	}
}

// settle leaves out of a part with which the workload begins the warm-up after which it was steady, where it moves the
// mean.
func (p *pair) settle() {
	const matters = 0.01 // of the mean
	for i, of := range []struct {
		part  part
		track **view.Track
	}{{p.first, &p.a}, {p.later, &p.b}} {
		c := *of.track
		if !of.part.opening || len(of.part.pieces) > 1 || p.of.Kind == result.Single && p.of.Measure != "" {
			continue
		}
		s := view.Judge("", c, 1)
		if s.Why != "" || !s.Reached || s.WarmUp == 0 {
			continue
		}
		cut := *c
		at := s.Index[s.WarmUp]
		cut.Start = c.At(at)
		for _, values := range []*[]float64{&cut.Ops, &cut.Writes, &cut.Bytes, &cut.Busy} {
			if *values != nil {
				*values = (*values)[at:]
			}
		}
		if all := rateFlow(c).Level(); math.Abs(rateFlow(&cut).Level()-all) >= matters*math.Abs(all) {
			*of.track, p.warm[i] = &cut, float64(at)*c.Step
		}
	}
}

// settled reports whether the two are compared by their series, without a warm-up or what the report at an end of one
// holds of a fault.
func (p *pair) settled() bool {
	return p.warm[0] > 0 || p.warm[1] > 0 || (p.edged() || p.loose) && p.a != nil && p.b != nil
}

// edged reports whether the report at an end of one of the two holds a little of a fault.
func (p *pair) edged() bool { return len(p.first.conditions.Edge)+len(p.later.conditions.Edge) > 0 }

// leaves says which warm-up is left out; "" where none is.
func (p *pair) leaves() string {
	var of []string
	for i, when := range []string{p.was, p.is} {
		if p.warm[i] > 0 {
			of = append(of, view.SayDuration(p.warm[i])+" "+strings.TrimSuffix(when, ","))
		}
	}
	if of == nil {
		return ""
	}
	return "; without the warm-up, the first " + strings.Join(of, " and ")
}

// unsure says that several things changed between the two, so that what each of them did is not known; "" where it was
// one.
func (p *pair) unsure() string {
	if p.lasts != "" {
		return p.lasts
	}
	if len(p.changes) < 2 {
		return ""
	}
	return fmt.Sprintf("; which of %d changes did that cannot be told, since no time had only one of them: %s",
		len(p.changes), view.Listed(p.changes))
}

func (p *pair) basis(source string) string {
	return fmt.Sprintf("%s (%s) against %s (%s), one run%s", p.later.title(), view.SayDuration(p.later.seconds),
		p.first.title(), view.SayDuration(p.first.seconds), source)
}

// oneRun stands with every comparison inside a run.
const oneRun = "one run: the interval covers what varied within it, not differences between runs"

// around moves the interval of a series onto the value counted, from which it differs by the points at the edges.
func around(value, estimate float64, in resample.Interval) (low, high *float64) {
	if !in.Valid() || !(estimate > 0) {
		return nil, nil
	}
	return view.Ptr(in.Low * value / estimate), view.Ptr(in.High * value / estimate)
}

// rate compares the rates, from the counts; their interval comes from the series.
func (p *pair) rate() (result.Finding, bool) {
	a, b := p.first.seconds, p.later.seconds
	na, _ := view.Totals(p.first.Ops)
	nb, _ := view.Totals(p.later.Ops)
	if a <= 0 || b <= 0 || na == 0 || nb == 0 {
		return result.Finding{}, false
	}
	r, low, high := view.Ratio(nb, na, b, a)
	ra, rb := float64(na)/a, float64(nb)/b
	if p.settled() {
		ra, rb = rateFlow(p.a).Level(), rateFlow(p.b).Level()
		low, high = low*rb/ra/r, high*rb/ra/r
		r = rb / ra
	}
	f := result.Finding{
		Check: "windows", Subject: p.l.Name, Metric: "rate " + p.later.title() + " / " + p.first.title(), Unit: "ratio",
		Value: &r, Low: &low, High: &high, N: int(na + nb), Limit: view.Ptr(1 - changed),
		Basis: p.basis(""), Warnings: []string{oneRun},
		Evidence: p.both("rate ", ra, rb),
	}
	tooFew, counted := "", "the interval takes completions as a Poisson count, which is too narrow when the rate wanders"
	if p.a != nil && p.b != nil {
		fa, fb := view.FlowOf(p.a.Ops, nil), view.FlowOf(p.b.Ops, nil)
		estimate, in := view.BlockRatio(fa, fb)
		if x, y := around(r, estimate, in); x != nil {
			f.Low, f.High, f.N, counted = x, y, len(fa.Amount)+len(fb.Amount), ""
			low, high = *x, *y
			f.Basis = p.basis("; " + in.Method + " over points of " + view.SayDuration(p.a.Step))
		} else {
			counted, tooFew = counted+"; from the series there is none: "+in.Reason, in.Reason
		}
		f.Chart = p.picture(p.of.Per, p.of.Unit, p.a.Ops, p.b.Ops)
	}
	if counted != "" {
		f.Warnings = append(f.Warnings, counted)
	}
	without := func(why string) { // the interval of the count
		f.Low, f.High, f.NoInterval = nil, nil, why
		f.Warnings = slices.DeleteFunc(f.Warnings, func(w string) bool { return w == counted })
	}
	tail, evidence, tailHarm, tailKept := p.tail()
	f.Evidence = append(f.Evidence, evidence...)
	if tailHarm != nil && p.ranged(meanOf) {
		tailHarm, tailKept = nil, false
	}
	if tailHarm != nil && p.a != nil && p.b != nil && p.a.Busy != nil {
		// operations of a time are alike: their percentiles moved no more surely than their means
		o := p.ofTail()
		fa, fb := busyFlow(o.a), busyFlow(o.b)
		r, in := view.BlockRatio(fa, fb)
		if o.drifts(busyFlow)+p.between(meanOf) != "" || o.belated() || o.before(busyFlow) || o.stayed(r, busyFlow) ||
			!in.Valid() && !view.Separate(fa.Each(), fb.Each()) {
			tailHarm, tailKept = nil, false
		}
	}
	if left := p.leaves(); left != "" {
		tail, tailHarm, tailKept = strings.TrimPrefix(left, "; "), nil, true
		f.Warnings = append(f.Warnings, "percentiles and the table of figures hold the warm-up")
	}
	switch {
	case p.but:
		tail, tailHarm, tailKept = "", nil, true
	case rb == 0: // what the percentiles are of was done without the fault
		tail, tailHarm, tailKept = "", nil, true
	case p.loose:
		f.Warnings = append(f.Warnings, "percentiles hold what the last report of a phase has of the time after the fault")
	case p.edged():
		f.Warnings = append(f.Warnings, "percentiles and the table hold what the report at the end of a phase has of a fault")
	}
	moved := high < 1-changed || low > 1+changed
	lost := moved && p.ofTheLost(r)
	if moved && !lost && !p.stoodStill(r) {
		p.lasting(r, rateFlow, countOver)
	}
	p.gained(moved && r > 1 || tailHarm != nil && *tailHarm < 0)
	wanders := moved && !lost && p.lasts == "" && (p.ranged(countOver) ||
		counted != "" && p.a != nil && p.b != nil && !view.Separate(p.a.Ops, p.b.Ops))
	if wanders { // a count says nothing of how a rate wanders
		moved, low, high = false, math.Min(low, 1), math.Max(high, 1)
		without("the rate wanders too much for so short a series")
	}
	said := fmt.Sprintf("%s: %s %s, %s %s (%s)%s", p.l.Name, p.of.Say(ra), p.was, view.SayCount(rb), p.is,
		unit.Change(r-1), p.missing())
	if tail != "" {
		said += "; " + tail
	}
	f.Harm = view.Worse(low, high, changed, result.Higher)
	if rb == 0 { // no logarithm has that: what was counted at the edges stands for it
		_, low, high := view.Ratio(nb, na, b, a)
		f.Low, f.High, f.NoInterval = nil, nil, "nothing was done"
		f.Harm = view.Worse(low, high, changed, result.Higher)
	}
	if h := (result.Finding{Harm: tailHarm}); h.Weight() > f.Weight() {
		f.Harm = tailHarm
	}
	if counted != "" && p.scatters() && f.Low != nil {
		without(tooFew)
	}
	f.Severity, f.Sentence = result.Info, said+p.unsure()+"."+p.kept(na, nb)
	if !moved && tailHarm == nil {
		f.Severity = result.Passed
		switch {
		case tail == "":
		case f.Low == nil && low >= 1-changed && high <= 1+changed: // by its count alone
			f.Sentence = said + "; inconclusive, since the rate has no interval." + p.kept(na, nb)
		case low >= 1-changed && high <= 1+changed && tailKept:
			f.Sentence = said + "; no change above " + view.Percent(changed) + "." + p.kept(na, nb)
		case low >= 1-changed && high <= 1+changed:
			f.Sentence = fmt.Sprintf("%s; its rate changed by no more than %s, of percentiles that is inconclusive.%s", said,
				view.Percent(changed), p.kept(na, nb))
		case wanders:
			f.Sentence = said + "; inconclusive, since the rate wanders within the two." + p.kept(na, nb)
		default:
			f.Sentence = said + "; inconclusive at the threshold of " + view.Percent(changed) + "." + p.kept(na, nb)
		}
	}
	return f, true
}

// scatters reports whether the rate of one of the two varies more than a count does by chance.
func (p *pair) scatters() bool {
	return p.a != nil && p.b != nil &&
		!(view.Counts(p.a.Ops, p.a.Step) && view.Counts(p.b.Ops, p.b.Step))
}

func rateFlow(c *view.Track) view.Flow { return view.FlowOf(c.Ops, nil) }
func busyFlow(c *view.Track) view.Flow { return view.FlowOf(c.Busy, c.Ops) }

// both are the values of the two windows as evidence.
func (p *pair) both(what string, a, b float64) []result.Evidence {
	return []result.Evidence{{Name: what + p.first.title(), Value: a, Unit: p.of.Unit}, {Name: what + p.later.title(),
		Value: b, Unit: p.of.Unit}}
}

// measure compares what a measure that adds up was in the two windows; its interval comes from the series.
func (p *pair) measure() (result.Finding, bool) {
	a, was := p.first.value(p.of)
	b, is := p.later.value(p.of)
	if !was || !is || a == 0 && b == 0 {
		return result.Finding{}, false
	}
	if p.settled() {
		a, b = rateFlow(p.a).Level(), rateFlow(p.b).Level()
	}
	f := result.Finding{
		Check: "windows", Subject: p.l.Name, Metric: p.of.Name + " " + p.later.title() + " / " + p.first.title(),
		Unit:  "ratio",
		Limit: view.Ptr(1 - changed),
		Basis: p.basis(""), Warnings: []string{oneRun}, Evidence: p.both(p.of.Name+" ", a, b),
		NoInterval: "there is no series of " + p.of.Name,
	}
	said := fmt.Sprintf("%s: %s %s, %s %s", p.l.Name, p.of.Say(a), p.was, view.SayCount(b), p.is)
	if !(a > 0) || !(b > 0) {
		f.Severity, f.NoInterval = result.Info, "one of the two is not above 0, so there is no ratio"
		f.Sentence = said + p.of.Judged(b-a) + "."
		return f, true
	}
	r := b / a
	f.Value = &r
	if p.a != nil && p.b != nil {
		p.lasting(r, rateFlow, nil)
		fa, fb := view.FlowOf(p.a.Ops, nil), view.FlowOf(p.b.Ops, nil)
		estimate, in := view.BlockRatio(fa, fb)
		f.Low, f.High = around(r, estimate, in)
		f.NoInterval = in.Reason
		if f.Low != nil {
			f.N = len(fa.Amount) + len(fb.Amount)
			f.Basis = p.basis("; " + in.Method + " over points of " + view.SayDuration(p.a.Step))
		}
		f.Chart = p.picture(p.of.Per, p.of.Unit, p.a.Ops, p.b.Ops)
	}
	if f.Low != nil {
		f.Harm = view.Worse(*f.Low, *f.High, changed, p.of.Better)
	}
	said += " (" + unit.Change(r-1)
	left := p.leaves()
	switch {
	case f.Low == nil && view.Away(r) > 1+changed:
		f.Severity, f.Sentence = result.Info, said+p.of.Judged(r-1)+"), without an interval"+left+p.unsure()+"."
	case f.Low == nil:
		f.Severity, f.Sentence = result.Passed, said+"), without an interval"+left+"."
	case *f.High < 1-changed || *f.Low > 1+changed:
		f.Severity, f.Sentence = result.Info, said+p.of.Judged(r-1)+")"+left+p.unsure()+"."
	case *f.Low >= 1-changed && *f.High <= 1+changed:
		f.Severity, f.Sentence = result.Passed, said+"): no change above "+view.Percent(changed)+left+"."
	default:
		f.Severity, f.Sentence = result.Passed,
			said+"); inconclusive at the threshold of "+view.Percent(changed)+left+"."
	}
	return f, true
}

// figures are those of the tool's own in a part, report by report, where one machine did the work.
func (p *pair) figures(of part) (out []float64) {
	for i := range p.v.Data.Series {
		s := &p.v.Data.Series[i]
		if s.Op != "" || s.Measure != p.of.Measure || s.VM == "" || s.VM != p.l.Parts[0].VM || len(p.l.Parts) > 1 ||
			!(s.Step > 0) {
			continue
		}
		c := &view.Track{Start: s.Start, Step: s.Step, Ops: view.Gaps(len(s.Values))}
		c.Add(c.Ops, s, nil)
		values, _ := view.FiniteOf(c.Between(of.Start, of.End).Ops)
		out = append(out, values...)
	}
	return out
}

// apart reports whether three quarters of some figures lie beyond three quarters of others. Nothing is averaged.
func apart(a, b []float64) bool {
	const fewest = 8
	if min(len(a), len(b)) < fewest {
		return false
	}
	slices.Sort(a)
	slices.Sort(b)
	return resample.Quantile(a, 0.75) < resample.Quantile(b, 0.25) || resample.Quantile(b, 0.75) < resample.Quantile(a,
		0.25)
}

// single sets two figures of the tool's own side by side. All that is known of how they vary are its other figures.
func (p *pair) single() (result.Finding, bool) {
	a, was := p.first.value(p.of)
	b, is := p.later.value(p.of)
	if !was || !is {
		return result.Finding{}, false
	}
	f := result.Finding{
		Check: "windows", Subject: p.l.Name, Metric: p.of.Name + " " + p.later.title() + " / " + p.first.title(),
		Unit: "ratio",
		N:    2, Limit: view.Ptr(1 - changed),
		Basis: p.basis(
			"; the last figure of the tool in each"), Warnings: []string{oneRun}, Evidence: p.both(p.of.Name+" ",
			a, b),
		NoInterval: "figures that the tool made by itself",
	}
	said := fmt.Sprintf("%s of %s: %s %s %s, %s %s (last report of the tool)", p.of.Name, p.l.Name,
		view.SayCount(a), p.of.Unit, p.was, view.SayCount(b), p.is)
	if a > 0 && b > 0 {
		f.Value = view.Ptr(b / a)
	}
	switch before, after := p.figures(p.first), p.figures(p.later); {
	case len(before) == 0 || len(after) == 0:
		f.Severity, f.Sentence = result.Passed, said+"; no interval for the difference."
	case apart(before, after):
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf(
			"%s%s: three quarters of the later figures lie beyond three quarters of the earlier ones%s.",
			said, p.of.Judged(b-a), p.unsure())
	default:
		f.Severity, f.Sentence = result.Passed, said+"; the figures of both overlap: inconclusive."
	}
	return f, true
}

// picture draws the two stretches, as far as the evidence of one comparison needs.
func (p *pair) picture(what, unit string, a, b []float64) *result.Chart {
	if len(p.first.pieces)+len(p.later.pieces) > 2 {
		return nil // pieces of the run side by side are no track
	}
	c := p.v.Chart(p.l.Name+": "+what, unit, p.a.Line(p.first.title(), a), p.b.Line(p.later.title(), b))
	if want, limited, unlimited := p.l.Offered(); p.of.Measure == "" && unit == p.of.Unit && limited > 0 &&
		unlimited == 0 && p.l.Alike() {
		c.Levels = []result.ChartPlace{{At: want, Text: "offered"}}
	}
	c.Marks = nil // the lines say which is which
	return c
}

// kept says whether the offered rate was kept in the two windows.
func (p *pair) kept(first, later uint64) string {
	want, limited, unlimited := p.l.Offered()
	if limited == 0 || unlimited > 0 || !p.l.Alike() {
		return ""
	}
	words := func(count uint64, of part) (what string, told bool) {
		share := float64(count) / of.seconds / want
		switch {
		case share >= 1-view.RateTolerance:
			return "met", true
		case p.v.Missed(p.l, count, of.seconds, want, len(of.pieces)):
			return "not met (" + view.Percent(share) + ")", true
		}
		return view.Percent(share) + " of it, in too short a time to tell whether it was met", false
	}
	a, told := words(first, p.first)
	b, also := words(later, p.later)
	said := a + " both times"
	switch {
	case told && also && a != b:
		said = a + " " + p.was + ", " + b + " " + p.is
	case told && !also:
		said = a + " " + p.was + "; " + p.is + " " + b
	case !told && also:
		said = p.was + " " + a + "; " + b + " " + p.is
	case !told:
		said = p.was + " " + a + "; " + p.is + " " + b
	}
	return fmt.Sprintf(" Target rate %s: %s.", view.SayCount(want), said)
}

// tail compares percentiles of the kind of operation whose 99th moved most. It moved, and has done harm or good, when
// the intervals of the two lie apart and it by more than what is called a change; it kept when even their far ends
// are closer.
func (p *pair) tail() (said string, ev []result.Evidence, harm *float64, kept bool) {
	worst := 1.0
	kept = true
	for _, o := range p.later.Ops {
		before, ok := find(p.first.Ops, o.Op)
		if !ok {
			continue
		}
		pb, lo, hi, fine := view.QuantileOf(before.Hist, 0.99, p.comparisons)
		pa, lo2, hi2, also := view.QuantileOf(o.Hist, 0.99, p.comparisons)
		if !fine || !also || pb <= 0 {
			continue
		}
		declared, called := p.l.Operation(o.Op), o.Op
		if declared.Block == "" {
			called = view.Noun(declared)
		}
		ev = append(ev, result.Evidence{Name: called + " p99 " + p.first.title(), Value: pb, Unit: "s"},
			result.Evidence{Name: called + " p99 " + p.later.title(), Value: pa, Unit: "s"})
		mb, _, _, _ := view.Quantile(before.Hist, 0.5)
		ma, _, _, _ := view.Quantile(o.Hist, 0.5)
		kept = kept && max(hi2/lo, hi/lo2) <= 1+changed
		if x := pa / pb; said == "" || view.Away(x) > view.Away(worst) {
			switch worst, harm, p.worst = x, nil, o.Op; {
			case lo2 > hi && x > 1+changed:
				harm = view.Ptr(math.Log(lo2 / hi))
			case hi2 < lo && x < 1/(1+changed):
				harm = view.Ptr(math.Log(hi2 / lo))
			}
			said = fmt.Sprintf(
				"%s %s (%s)",
				called,
				went(view.SayDuration(mb), view.SayDuration(ma),
					view.SayDuration(pb), view.SayDuration(pa)),
				p.latency,
			)
		}
	}
	return said, ev, harm, kept
}

// ofTail is the two with the series of the operations alone whose 99th percentile moved most, where there are such.
func (p *pair) ofTail() *pair {
	c := p.v.OpTrack(p.l, p.worst)
	if c == nil {
		return p
	}
	o := *p
	o.a, o.b = p.clear(over(c, p.first), p.first), p.clear(over(c, p.later), p.later)
	if len(o.a.Ops) != len(p.a.Ops) || len(o.b.Ops) != len(p.b.Ops) || o.a.Busy == nil || p.loose {
		return p
	}
	return &o
}

// went says how a median and a 99th percentile moved.
func went(median, medianNow, tail, tailNow string) string {
	switch {
	case median != medianNow && tail != tailNow:
		return fmt.Sprintf("p50 %s to %s, p99 %s to %s", median, medianNow, tail, tailNow)
	case median == medianNow && tail == tailNow:
		return fmt.Sprintf("p50 %s and p99 %s unchanged", median, tail)
	case median == medianNow:
		return fmt.Sprintf("p50 %s unchanged, p99 %s to %s", median, tail, tailNow)
	}
	return fmt.Sprintf("p50 %s to %s, p99 %s unchanged", median, medianNow, tail)
}

// mean compares the mean latency over all operations. A mean is what Little's law and a user's total waiting know; the
// tail is in the other finding.
func (p *pair) mean() (result.Finding, bool) {
	na, sa, whole := timedTotals(p.first.Ops)
	nb, sb, too := timedTotals(p.later.Ops)
	if na == 0 || nb == 0 || !whole || !too {
		return result.Finding{}, false
	}
	ma, mb := sa/float64(na), sb/float64(nb)
	if p.settled() && p.a.Busy != nil {
		ma, mb = busyFlow(p.a).Level(), busyFlow(p.b).Level()
	}
	if !(ma > 0) || !(mb > 0) {
		return result.Finding{}, false // nothing was done once settled, or while the fault was in force
	}
	r := mb / ma
	f := result.Finding{
		Check: "latency-cost", Subject: p.l.Name,
		Metric: "mean " + p.latency + " " + p.later.title() + " / " + p.first.title(), Unit: "ratio", Value: &r,
		N: int(na + nb), Limit: view.Ptr(1 + changed),
		Basis: p.basis(
			""), Warnings: []string{oneRun}, NoInterval: "there is no series of the latency of this workload alone",
		Evidence: []result.Evidence{
			{Name: "mean " + p.first.title(), Value: ma, Unit: "s"},
			{Name: "mean " + p.later.title(), Value: mb, Unit: "s"},
		},
	}
	said := "×" + view.SayCount(r)
	if p.a != nil && p.a.Busy != nil {
		fa, fb := busyFlow(p.a), busyFlow(p.b)
		estimate, in := view.BlockRatio(fa, fb)
		f.Low, f.High = around(r, estimate, in)
		f.NoInterval = in.Reason
		if f.Low != nil {
			f.N = len(fa.Amount) + len(fb.Amount)
			f.Basis = p.basis(
				"; " + in.Method + " over points of " + view.SayDuration(p.a.Step) + ", weighted by operations")
			said = view.RatioWithin(r, *f.Low, *f.High)
		}
		f.Chart = p.picture("mean "+p.latency, "s", each(p.a), each(p.b))
	}
	if p.a != nil && p.a.Busy != nil {
		p.lasting(r, busyFlow, meanOf)
	} else {
		p.lasts = p.between(meanOf)
	}
	p.gained(r < 1/(1+changed))
	f.Severity = result.Info
	sure := f.Low == nil && (p.a == nil || p.a.Busy == nil || view.Separate(each(p.a), each(p.b))) ||
		f.Low != nil && (*f.Low > 1+changed || *f.High < 1-changed)
	if f.Low == nil && sure {
		sure = !p.ranged(meanOf)
	}
	unsure := p.unsure()
	if view.Away(r) <= 1+changed || !sure {
		f.Severity, unsure = result.Passed, ""
		if f.Low == nil && view.Away(r) > 1+changed {
			unsure = "; inconclusive, since it wanders as much by itself"
		}
	}
	if f.Low != nil {
		f.Harm = view.Worse(*f.Low, *f.High, changed, result.Lower)
	}
	what := p.l.Name + ": mean " + p.latency
	if counted := p.l.Counted(); counted != "operations" {
		what += " of " + counted
	}
	f.Sentence = fmt.Sprintf("%s %s %s, %s %s: %s%s%s.", what, view.SayDuration(ma), p.was, view.SayDuration(mb),
		p.is, said, p.leaves(), unsure)
	return f, true
}

// timedTotals are those of operations of which each kind has times; whole is false when one has none, so that there
// is no mean of all.
func timedTotals(ops []result.OpTotals) (count uint64, seconds float64, whole bool) {
	whole = true
	for _, o := range ops {
		n, s := view.Totals([]result.OpTotals{o})
		whole = whole && (n == 0 || s > 0)
		count, seconds = count+n, seconds+s
	}
	return count, seconds, whole && seconds > 0
}

// each is the mean latency of every point.
func each(c *view.Track) []float64 {
	out := make([]float64, len(c.Ops))
	for i := range out {
		out[i] = c.Busy[i] / c.Ops[i]
	}
	return out
}

func find(ops []result.OpTotals, op string) (result.OpTotals, bool) {
	for _, o := range ops {
		if o.Op == op {
			return o, true
		}
	}
	return result.OpTotals{}, false
}
