// Package steadiness asks whether and from when throughput was steady, window by window, and whether the time with
// which the others are compared was. It gives view.Checks to package analysis; the method is package steady. Series
// with too many gaps, or of too few points, are not judged, and that is said.
package steadiness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// SteadyState says for every workload whether and from when its throughput was steady, window by window: an average
// over a stretch that was not depends on when it was begun and ended.
var SteadyState = view.Check{Name: "steady-state", Rank: 450, Run: steadyState}

func steadyState(v *view.Run) []result.Finding {
	if stages := v.Stages(); stages != nil {
		return []result.Finding{
			steadyOf(v, "The load", steps(v, stages), math.NaN()),
		} // its workloads slow each other by design
	}
	longest := 0.0
	for _, l := range v.Loads {
		longest = max(longest, l.Longest())
	}
	var out []result.Finding
	for _, l := range v.Loads {
		if !l.Reported() || l.Longest() < view.Besides*longest {
			continue
		}
		for _, q := range told(l) {
			if all := v.Stretches(l, q); len(all) > 0 {
				out = append(out, steadyOf(v, l.Name, all, headline(l, q)))
			}
		}
	}
	return out
}

// told are the quantities of a workload that are judged: what unlike operations add up to is none where new orders a
// minute are counted, which are the figure of such a mix. Questions that are asked one after the other, each once, have
// no level at all: their figure is queries an hour.
func told(l *view.Load) []view.Quantity {
	all := l.Quantities()
	of := func(unit string) bool {
		return slices.ContainsFunc(l.Declared(), func(m result.Measure) bool { return m.Unit == unit })
	}
	if of("scaled queries/hour") {
		return nil
	}
	if !of("NOPM") || len(all) < 2 || all[0].Measure != "" || all[0].Unit != result.OperationsUnit {
		return all
	}
	return all[1:]
}

// steps are the stages of a scale-out test, all workloads together.
func steps(v *view.Run, stages []view.Step) []view.Stretch {
	var out []view.Stretch
	q := v.Whole()
	c := v.TotalTrack(q.Measure)
	for _, s := range stages {
		if c != nil {
			name := "with " + view.SayCount(s.Concurrency) + " in flight"
			out = append(out, view.Judge(name, c.Between(s.Start, s.End), len(stages)))
		}
	}
	if out == nil {
		out = append(out, view.Stretch{Why: "there is no series of the total"})
	}
	for i := range out {
		out[i].Quantity = q
	}
	return out
}

// headline returns what a workload did of a quantity on average over the time by which it is judged; NaN where that is
// not known.
func headline(l *view.Load, q view.Quantity) float64 {
	w := l.Whole()
	if w == nil || !(w.Seconds() > 0) {
		return math.NaN()
	}
	j := w.Judged()
	if q.Measure == "" {
		n, _ := view.Totals(j.Ops)
		return float64(n) / j.Seconds()
	}
	for _, m := range j.Measures {
		if v, ok := m.Over(j.Values, j.Seconds()); ok && m.Name == q.Measure {
			return v
		}
	}
	return math.NaN()
}

// steadyOf tells whether the stretches of something were steady; average is what it did in all of them, NaN where that
// is not known.
func steadyOf(v *view.Run, name string, all []view.Stretch, average float64) result.Finding {
	q := all[0].Quantity
	f := result.Finding{
		Check: "steady-state", Subject: name, Metric: "mean " + q.Name + " of the steady phase", Unit: q.Unit,
		Basis: "throughput" + points(
			all) + ", one run; judged by change points, slow movement, spread and line (tolerance 5 %)",
	}
	in := ""
	if q.Measure != "" {
		f.Basis = q.Name + strings.TrimPrefix(f.Basis, "throughput")
		in = " in " + q.Name
	}
	var said, failed []string
	var not, unknown, shown *view.Stretch
	for i := range all {
		s := &all[i]
		if s.Why != "" {
			unknown = cmp.Or(unknown, s)
			continue
		}
		shown = cmp.Or(shown, s)
		if s.Reached {
			said = append(said, words(s))
		} else {
			not = cmp.Or(not, s)
			failed = append(failed, words(s))
		}
	}
	switch {
	case not != nil:
		shown = not
		f.Severity, f.Value = result.Warning, nil
		f.NoInterval = "no steady state was reached"
		f.Sentence = fmt.Sprintf("%s was not steady%s: %s. Its average depends on when it begins and ends.", name, in,
			strings.Join(fewOf(failed, said), "; "))
	case shown == nil:
		f.Severity, f.NoInterval = result.Info, unknown.Why
		f.Sentence = fmt.Sprintf("Whether %s was steady%s is inconclusive: %s.", name, in, unknown.Why)
		if len(all) == 1 && view.IsFinite(average) {
			f.Sentence = fmt.Sprintf("%s: %s on average; steadiness inconclusive: %s.", name, q.Say(average),
				unknown.Why)
		}
		return f
	default:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("%s was steady%s: %s.", name, in, strings.Join(fewOf(said, nil), "; "))
	}
	f.N = len(shown.Track.Ops)
	if shown.Reached {
		f.Value = view.Ptr(shown.Mean.Value)
		view.SetInterval(&f, shown.Mean.Interval)
	}
	for i := range all {
		if s := &all[i]; s.Why == "" && s.Mean.Value > 0 && len(all) > 1 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "mean " + s.Name, Value: s.Mean.Value, Unit: q.Unit})
		}
	}
	if first := &all[0]; first.Why == "" && warmed(first) {
		f.Evidence = append(f.Evidence, result.Evidence{Name: view.WarmUp, Unit: "s",
			Value: float64(first.WarmUp) * first.Track.Step})
	}
	if unknown != nil {
		f.Warnings = append(f.Warnings, "a phase is not judged ("+unknown.Name+"): "+unknown.Why)
	}
	if len(all) == 1 && !shown.Reached {
		f.Evidence = append(f.Evidence, levels(shown)...)
	}
	f.Warnings = append(f.Warnings, shown.Warnings...)
	f.Chart = picture(v, name, shown)
	return f
}

// fewOf keeps three texts, the first ones before all others, and says how many were left out.
func fewOf(first, then []string) []string {
	const few = 3
	all := slices.Concat(first, then)
	if len(all) <= few {
		return all
	}
	return append(slices.Clone(all[:few-1]), view.Plural(len(all)-few+1, "other phase")+" in the evidence")
}

// points says how far apart the points of stretches are.
func points(all []view.Stretch) string {
	if all[0].Track == nil {
		return ""
	}
	return " in points of " + view.SayDuration(all[0].Track.Step)
}

// words is the verdict on one stretch.
func words(s *view.Stretch) string {
	name := s.Name
	if name != "" {
		name += " "
	}
	if !s.Reached {
		return name + plain(s)
	}
	text := name + s.Quantity.Say(s.Mean.Value)
	if in := s.Mean.Interval; in.Valid() {
		text += fmt.Sprintf(" (95 %%: %s to %s)", view.SayCount(in.Low), view.SayCount(in.High))
	}
	if warmed(s) {
		text += fmt.Sprintf(" after a warm-up of %s", view.SayDuration(float64(s.WarmUp)*s.Track.Step))
	}
	if s.Period.Found {
		text += fmt.Sprintf(", repeating every %s", view.SayDuration(s.Period.Points*s.Track.Step))
	}
	return text
}

// warmed reports whether the warm-up, or its first fifth, lay a hundredth or more apart from the rest. The rule that
// cuts it off cuts noise as well, which is no warm-up to a reader.
func warmed(s *view.Stretch) bool {
	apart := func(n int) bool {
		var sum float64
		for _, i := range s.Index[:n] {
			sum += s.Track.Ops[i]
		}
		return math.Abs(sum/float64(n)-s.Mean.Value) >= 0.01*math.Abs(s.Mean.Value)
	}
	return s.WarmUp > 0 && s.WarmUp <= len(s.Index) && (apart(s.WarmUp) || apart(max(1, s.WarmUp/5)))
}

// lasting are the changes between levels that held for a while, since a stall of seconds makes two that say less; all
// when there are none.
func lasting(s *view.Stretch) []change.Point {
	const short = 10
	var out []change.Point
	for i, c := range s.Changes {
		from, to := s.WarmUp, len(s.Index)
		if i > 0 {
			from = s.Changes[i-1].Index
		}
		if i+1 < len(s.Changes) {
			to = s.Changes[i+1].Index
		}
		if c.Index-from >= short && to-c.Index >= short {
			out = append(out, c)
		}
	}
	if out == nil {
		return s.Changes
	}
	return out
}

// levels are those that a stretch had one after another, where they are few, held for a while and lie well apart.
func levels(s *view.Stretch) (out []result.Evidence) {
	const few, apart = 2, 0.1
	all, wide := lasting(s), false
	for _, c := range all {
		until := view.ClockOf(s.Elapsed(c.Index))
		if n := len(out); n > 0 {
			out[n-1].Name = view.LevelUntil + until
		} else {
			out = append(out, result.Evidence{Name: view.LevelUntil + until, Value: c.Before, Unit: s.Quantity.Unit})
		}
		out = append(out, result.Evidence{Name: view.LevelFrom + until, Value: c.After, Unit: s.Quantity.Unit})
		wide = wide || math.Abs(c.After-c.Before) > apart*math.Abs(c.Before)
	}
	if len(all) > few || len(all) < len(s.Changes) && len(s.Changes) > few || !wide {
		return nil
	}
	return out
}

// plain is the reason why no steady state was reached, in moments of the run rather than in points.
func plain(s *view.Stretch) string {
	var parts []string
	if n := len(s.Changes); n > 5 {
		parts = append(
			parts,
			fmt.Sprintf("%s changes of level, from %s at the start to %s at the end", view.SayCount(float64(n)),
				view.SayCount(s.Changes[0].Before), view.SayCount(s.Changes[n-1].After)),
		)
	} else if n > 0 {
		c := slices.MaxFunc(lasting(s), func(a, b change.Point) int {
			return view.CompareAway(a.After/a.Before,
				b.After/b.Before)
		})
		text := fmt.Sprintf("from %s to %s at %s", view.SayCount(c.Before), view.SayCount(c.After),
			view.ClockOf(s.Elapsed(c.Index)))
		if n > 1 {
			text += fmt.Sprintf(" (largest of %d changes of level)", n)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 && math.Abs(s.DriftShare) > 0.1 { // a line through steps says more than they are
		parts = append(parts, fmt.Sprintf("drift %s of the mean", unit.Change(s.DriftShare)))
	}
	if len(parts) == 0 && len(s.Still) > 0 {
		parts = append(parts, fmt.Sprintf("stall at %s", view.ClockOf(s.Elapsed(s.Still[0].First))))
	}
	if len(parts) == 0 {
		return s.Reason
	}
	return strings.Join(parts, ", ")
}

// picture draws a stretch with where it changed and from when it was even.
func picture(v *view.Run, name string, s *view.Stretch) *result.Chart {
	c := v.Chart(name+": "+s.Quantity.Per, s.Quantity.Unit, s.Track.Line(name, s.Track.Ops))
	if warmed(s) {
		c.Marks = append(c.Marks, result.ChartPlace{At: view.Round(s.Elapsed(s.WarmUp)), Text: "warm-up ends"})
	}
	for i, p := range s.Changes {
		if i < 6 {
			c.Marks = append(c.Marks, result.ChartPlace{At: view.Round(s.Elapsed(p.Index)), Text: "changes"})
		}
	}
	return c
}

// Baseline looks at the time before the first neighbour, with which everything later is compared: when it was not even
// or stood still for moments, what is laid at the neighbour's door may not be its doing.
var Baseline = view.Check{Name: "baseline", Rank: 420, Run: baseline}

func baseline(v *view.Run) []result.Finding {
	if v.Stages() != nil {
		return nil
	}
	var out []result.Finding
	for _, l := range v.Loads {
		q := l.Main()
		all := v.Stretches(l, q)
		if len(all) < 2 {
			continue
		}
		first := &all[0]
		if first.Why != "" {
			continue // said by steady-state
		}
		var stalls view.StallSet
		if q.Kind == result.Count { // a level is no count of what was done
			stalls = first.Track.Stalls(first.Track.Ops)
		}
		f := result.Finding{
			Check: "baseline", Subject: l.Name, Metric: "mean " + q.Name + " of the baseline", Unit: q.Unit,
			N: len(first.Track.Ops), Value: view.Ptr(first.Mean.Value),
			Basis: fmt.Sprintf("%s, %s in points of %s", first.Name,
				view.SayDuration(float64(len(first.Track.Ops))*first.Track.Step), view.SayDuration(first.Track.Step)),
		}
		view.SetInterval(&f, first.Mean.Interval)
		var what []string
		if !first.Reached {
			what = append(what, plain(first))
		}
		if n := len(stalls.Runs); n > 0 {
			what = append(
				what,
				fmt.Sprintf("%s %s for %s in all, first at %s", stalls.Verb(), view.Times(n),
					view.SayDuration(stalls.Seconds), view.ClockOf(first.Track.Elapsed(stalls.Runs[0].First))),
			)
		}
		if len(what) > 0 {
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf(
				"The baseline of %s (%s) was not steady: %s. Everything later is compared with it.", l.Name, first.Name,
				strings.Join(what, ", "))
			f.Chart = picture(v, l.Name, first)
		} else {
			f.Severity = result.Passed
			f.Sentence = fmt.Sprintf("The baseline of %s (%s) was steady: no change of level, no stall.", l.Name,
				first.Name)
		}
		out = append(out, f)
	}
	return out
}
