package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/analysis/steady"
	"plimsoll/result"
)

// mostGaps is the share of a series that may be missing before it is not judged.
const mostGaps = 0.2

// stretch is a part of a workload's time with the verdict on it.
type stretch struct {
	name string
	of   quantity
	c    *track
	steady.Stretch
	why   string // why it was not judged; empty when it was
	index []int  // of each judged value in the track, since gaps are left out
}

// elapsed is the moment of a judged value in seconds of the run.
func (s *stretch) elapsed(i int) float64 { return s.c.elapsed(s.index[max(0, min(i, len(s.index)-1))]) }

// stretches judges every window of a workload, or its whole time when it has none, up to the first fault: what follows that is
// recovery's business.
func (v *view) stretches(l *load, q quantity) []stretch {
	key := loadKey{l, q.measure}
	if s, ok := v.settled[key]; ok {
		return s
	}
	var out []stretch
	if c := v.trackOf(l, q); c != nil && !c.seldom(q) {
		from, end := l.judged()
		fault, hit := v.firstFault()
		hit = hit && from.Before(fault) && fault.Before(end)
		if hit {
			end = fault
		}
		w := l.whole()
		switch {
		case w != nil && len(w.Comparable()) < 2 && len(w.Spans) > 1:
			for i, t := range w.Spans {
				if t.Start.Before(end) {
					out = append(out, judge(fmt.Sprintf("in start %d", i+1), c.between(t.Start, earlier(t.End, end))))
				}
			}
		case w == nil || len(w.Comparable()) < 2:
			name := strings.TrimPrefix(l.part(), " ")
			if hit {
				name = "before the fault"
			}
			out = append(out, judge(name, c.between(from, end)))
		default:
			for _, win := range w.Comparable() {
				if win.Start.Before(end) {
					out = append(out, judge(when(win), c.between(win.Start, earlier(win.End, end))))
				}
			}
		}
	}
	for i := range out {
		out[i].of = q
	}
	v.settled[key] = out
	return out
}

// seldom reports whether a Count is of things that come so seldom that there is no level to speak of: retries,
// failures.
func (c *track) seldom(q quantity) bool {
	values, _ := finiteOf(c.ops)
	return q.measure != "" && q.kind == result.Count && !(resample.Median(values)*c.step >= fewestPerStep)
}

// firstFault is when the first fault was injected.
func (v *view) firstFault() (t time.Time, ok bool) {
	for _, e := range v.d.Events {
		if e.Kind == result.KindFault {
			return e.Time, true
		}
	}
	return t, false
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func judge(name string, c *track) stretch {
	s := stretch{name: name, c: c}
	values, missing := finiteOf(c.ops)
	if missing > mostGaps {
		s.why = percent(missing) + " of its points are missing"
		return s
	}
	for i, x := range c.ops {
		if isFinite(x) {
			s.index = append(s.index, i)
		}
	}
	const fewest, long = 25, 50
	switch {
	case len(values) < fewest:
		s.why = fmt.Sprintf("it has %s of %s, and %d are needed", plural(len(values), "point"), sayDuration(c.step), fewest)
		return s
	case len(values) < long:
		s.rounds(values)
		return s
	}
	var err error
	if s.Stretch, err = steady.Window(values, steady.Options{}); err != nil {
		s.why = err.Error()
	}
	s.unclear()
	return s
}

// unclear makes a verdict that could not be had the reason why the stretch was not judged.
func (s *stretch) unclear() {
	if s.CannotTell {
		s.why = s.Reason
	}
}

// rounds judges a stretch too short for change points by the rule for rounds, five of them.
func (s *stretch) rounds(values []float64) {
	const n = 5
	means := make([]float64, n)
	for i := range means {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		means[i] = total(part) / float64(len(part))
	}
	r, err := steady.Rounds(means, steady.Rule{})
	if err != nil {
		s.why = err.Error()
		return
	}
	s.Reached, s.Reason, s.First, s.Last = r.Reached, r.Reason, 0, len(values)-1
	s.Mean, err = serial.MeanOf(values, Confidence)
	if err != nil {
		s.why = err.Error()
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf("%d points are few: judged as five rounds (spread within 20 %%, line within 10 %%)", len(values)))
}

// steadyState says for every workload whether and from when its throughput was steady, window by window: an average over a
// stretch that was not depends on when it was begun and ended.
func steadyState(v *view) []result.Finding {
	if stages := v.stages(); stages != nil {
		return []result.Finding{v.steadyOf("The load", v.steps(stages), math.NaN())} // its workloads slow each other by design
	}
	longest := 0.0
	for _, l := range v.loads {
		longest = max(longest, l.longest())
	}
	var out []result.Finding
	for _, l := range v.loads {
		if !l.reported() || l.longest() < besides*longest {
			continue
		}
		for _, q := range l.quantities() {
			if all := v.stretches(l, q); len(all) > 0 {
				out = append(out, v.steadyOf(l.name, all, l.headline(q)))
			}
		}
	}
	return out
}

// steps are the stages of a scale-out test, all workloads together.
func (v *view) steps(stages []step) []stretch {
	var out []stretch
	q := v.whole()
	c := v.totalTrack(q.measure)
	for _, s := range stages {
		if c != nil {
			out = append(out, judge("with "+sayCount(s.Concurrency)+" in flight", c.between(s.Start, s.End)))
		}
	}
	if out == nil {
		out = append(out, stretch{why: "there is no series of the total"})
	}
	for i := range out {
		out[i].of = q
	}
	return out
}

// headline is what a workload did of a quantity on average over the time by which it is judged; NaN where that is not known.
func (l *load) headline(q quantity) float64 {
	w := l.whole()
	if w == nil || !(w.Seconds() > 0) {
		return math.NaN()
	}
	j := w.Judged()
	if q.measure == "" {
		n, _ := totals(j.Ops)
		return float64(n) / j.Seconds()
	}
	for _, m := range j.Measures {
		if v, ok := m.Over(j.Values, j.Seconds()); ok && m.Name == q.measure {
			return v
		}
	}
	return math.NaN()
}

// steadyOf tells whether the stretches of something were steady; average is what it did in all of them, NaN where that is
// not known.
func (v *view) steadyOf(name string, all []stretch, average float64) result.Finding {
	q := all[0].of
	f := result.Finding{
		Check: "steady-state", Subject: name, Metric: "mean " + q.name + " of the steady stretch", Unit: q.unit,
		Basis: "throughput" + points(all) + ", one run; judged by change points, slow movement, spread and line (tolerance 5 %)",
	}
	in := ""
	if q.measure != "" {
		f.Basis = q.name + strings.TrimPrefix(f.Basis, "throughput")
		in = " in " + q.name
	}
	var said, failed []string
	var not, unknown, shown *stretch
	for i := range all {
		s := &all[i]
		if s.why != "" {
			unknown = cmp.Or(unknown, s)
			continue
		}
		shown = cmp.Or(shown, s)
		if s.Reached {
			said = append(said, s.words())
		} else {
			not = cmp.Or(not, s)
			failed = append(failed, s.words())
		}
	}
	switch {
	case not != nil:
		shown = not
		f.Severity, f.Value = result.Caution, nil
		f.NoInterval = "no steady state was reached"
		f.Sentence = fmt.Sprintf("%s was not steady%s all the time it was measured: %s. An average over that depends on when it begins and ends.", name, in, strings.Join(fewOf(failed, said), "; "))
	case shown == nil:
		f.Severity, f.NoInterval = result.Notice, unknown.why
		f.Sentence = fmt.Sprintf("Whether %s was steady%s cannot be told: %s.", name, in, unknown.why)
		if len(all) == 1 && isFinite(average) {
			f.Sentence = fmt.Sprintf("%s did %s on average; whether that was steady cannot be told: %s.", name, q.say(average),
				unknown.why)
		}
		return f
	default:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("%s was steady%s: %s.", name, in, strings.Join(fewOf(said, nil), "; "))
	}
	f.N = len(shown.c.ops)
	if shown.Reached {
		f.Value = ptr(shown.Mean.Value)
		setInterval(&f, shown.Mean.Interval)
	}
	for i := range all {
		if s := &all[i]; s.why == "" && s.Mean.Value > 0 && len(all) > 1 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "mean " + s.name, Value: s.Mean.Value, Unit: q.unit})
		}
	}
	if unknown != nil {
		f.Warnings = append(f.Warnings, "a part of its time is not judged ("+unknown.name+"): "+unknown.why)
	}
	f.Warnings = append(f.Warnings, shown.Warnings...)
	f.Chart = v.picture(name, shown)
	return f
}

// fewOf keeps three texts, the first ones before all others, and says how many were left out.
func fewOf(first, then []string) []string {
	const few = 3
	all := slices.Concat(first, then)
	if len(all) <= few {
		return all
	}
	return append(slices.Clone(all[:few-1]), plural(len(all)-few+1, "other part")+" in the evidence")
}

// points says how far apart the points of stretches are.
func points(all []stretch) string {
	if all[0].c == nil {
		return ""
	}
	return " in points of " + sayDuration(all[0].c.step)
}

// words is the verdict on one stretch.
func (s *stretch) words() string {
	name := s.name
	if name != "" {
		name += " "
	}
	if !s.Reached {
		return name + "not, since " + s.plain()
	}
	text := name + "at " + s.of.say(s.Mean.Value)
	if in := s.Mean.Interval; in.Valid() {
		text += fmt.Sprintf(" (95 %%: %s to %s)", sayCount(in.Low), sayCount(in.High))
	}
	if s.warmed() {
		text += fmt.Sprintf(" after a warm-up of %s", sayDuration(float64(s.WarmUp)*s.c.step))
	}
	if s.Period.Found {
		text += fmt.Sprintf(", repeating every %s", sayDuration(s.Period.Points*s.c.step))
	}
	return text
}

// warmed reports whether the warm-up, or its first fifth, lay a hundredth or more apart from the rest. The rule that cuts it off cuts noise as well,
// which is no warm-up to a reader.
func (s *stretch) warmed() bool {
	apart := func(n int) bool {
		var sum float64
		for _, i := range s.index[:n] {
			sum += s.c.ops[i]
		}
		return math.Abs(sum/float64(n)-s.Mean.Value) >= 0.01*math.Abs(s.Mean.Value)
	}
	return s.WarmUp > 0 && s.WarmUp <= len(s.index) && (apart(s.WarmUp) || apart(max(1, s.WarmUp/5)))
}

// lasting are the changes between levels that held for a while, since a stall of seconds makes two that say less; all
// when there are none.
func (s *stretch) lasting() []change.Point {
	const short = 10
	var out []change.Point
	for i, c := range s.Changes {
		from, to := s.WarmUp, len(s.index)
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

// plain is the reason why no steady state was reached, in moments of the run rather than in points.
func (s *stretch) plain() string {
	var parts []string
	if n := len(s.Changes); n > 5 {
		parts = append(parts, fmt.Sprintf("its level changed %s, from %s in the beginning to %s in the end", times(n), sayCount(s.Changes[0].Before), sayCount(s.Changes[n-1].After)))
	} else if n > 0 {
		c := slices.MaxFunc(s.lasting(), func(a, b change.Point) int { return compareAway(a.After/a.Before, b.After/b.Before) })
		text := fmt.Sprintf("it went from %s to %s at %s", sayCount(c.Before), sayCount(c.After), clockOf(s.elapsed(c.Index)))
		if n > 1 {
			text += fmt.Sprintf(", the largest of %d changes of level", n)
		}
		parts = append(parts, text)
	}
	if math.Abs(s.DriftShare) > 0.1 {
		parts = append(parts, fmt.Sprintf("it drifted by %+.0f %% of its mean", 100*s.DriftShare))
	}
	if len(parts) == 0 && len(s.Still) > 0 {
		parts = append(parts, fmt.Sprintf("it stood still at %s", clockOf(s.elapsed(s.Still[0].First))))
	}
	if len(parts) == 0 {
		return s.Reason
	}
	return strings.Join(parts, " and ")
}

// picture draws a stretch with where it changed and from when it was even.
func (v *view) picture(name string, s *stretch) *result.Chart {
	c := v.chart(name+": "+s.of.per, s.of.unit, s.c.line(name, s.c.ops))
	if s.warmed() {
		c.Marks = append(c.Marks, result.ChartPlace{At: round(s.elapsed(s.WarmUp)), Text: "warm-up ends"})
	}
	for i, p := range s.Changes {
		if i < 6 {
			c.Marks = append(c.Marks, result.ChartPlace{At: round(s.elapsed(p.Index)), Text: "changes"})
		}
	}
	return c
}

// baseline looks at the time before the first neighbour, with which everything later is compared: when it was not even or
// stood still for moments, what is laid at the neighbour's door may not be its doing.
func baseline(v *view) []result.Finding {
	if v.stages() != nil {
		return nil
	}
	var out []result.Finding
	for _, l := range v.loads {
		q := l.main()
		all := v.stretches(l, q)
		if len(all) < 2 {
			continue
		}
		first := &all[0]
		if first.why != "" {
			continue // said by steady-state
		}
		var stalls stallSet
		if q.kind == result.Count { // a level is no count of what was done
			stalls = first.c.stalls(first.c.ops)
		}
		f := result.Finding{
			Check: "baseline", Subject: l.name, Metric: "mean " + q.name + " of the baseline", Unit: q.unit,
			N: len(first.c.ops), Value: ptr(first.Mean.Value),
			Basis: fmt.Sprintf("%s, %s in points of %s", first.name, sayDuration(float64(len(first.c.ops))*first.c.step), sayDuration(first.c.step)),
		}
		setInterval(&f, first.Mean.Interval)
		var what []string
		if !first.Reached {
			what = append(what, first.plain())
		}
		if n := len(stalls.runs); n > 0 {
			what = append(what, fmt.Sprintf("it %s %s for %s in all, first at %s", stalls.verb(), times(n), sayDuration(stalls.seconds), clockOf(first.c.elapsed(stalls.runs[0].first))))
		}
		if len(what) > 0 {
			f.Severity = result.Caution
			f.Sentence = fmt.Sprintf("The baseline of %s was disturbed: %s, %s. What came later is compared with that.", l.name, first.name, strings.Join(what, " and "))
			f.Chart = v.picture(l.name, first)
		} else {
			f.Severity = result.Fine
			f.Sentence = fmt.Sprintf("The baseline of %s (%s) was even, without a change of level or a stall.", l.name,
				first.name)
		}
		out = append(out, f)
	}
	return out
}

// setInterval takes over an interval of the statistics, or its reason for none.
func setInterval(f *result.Finding, in resample.Interval) {
	f.Low, f.High, f.NoInterval = nil, nil, in.Reason
	if in.Valid() && !math.IsInf(in.Low, 0) && !math.IsInf(in.High, 0) {
		f.Low, f.High = ptr(in.Low), ptr(in.High)
	} else if in.Valid() {
		f.NoInterval = fmt.Sprintf("bounded on one side only: %v", in)
	}
}
