package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/unit"
)

// mostSweeps bounds the curves that a summary tells of; the page and JSON have all.
const mostSweeps = 3

// ExperimentShort are the sentences with which the result of an experiment begins: the best point, from where on more
// gains nothing, the knee, and what the best point costs.
func ExperimentShort(x *compare.Experiment) []string {
	out := slices.Concat(effectSentences(x), ratedSentences(x))
	for i, b := range x.Best {
		if i == mostSweeps {
			out = append(out, moreBelow(len(x.Best)-mostSweeps, "rate"))
			break
		}
		if slices.ContainsFunc(x.Sweeps, func(s compare.Sweep) bool {
			return s.Workload == b.Workload &&
				(s.Of == compare.WorkingSet || s.Of == compare.ReadShare && s.Name != b.Name)
		}) {
			continue // of working sets the smallest does most, and of a mix a part says little
		}
		out = append(out, bestSentence(b, len(x.Cells), x.Threshold))
	}
	for i, s := range x.Sweeps {
		if i == mostSweeps {
			out = append(out, moreBelow(len(x.Sweeps)-mostSweeps, "curve"))
			break
		}
		out = append(out, sweepSentence(s, x.Threshold))
	}
	return append(out, pointSentences(x)...)
}

func moreBelow(n int, what string) string {
	return fmt.Sprintf("%s more %s below.", unit.Thousands(int64(n)), plural(n, what+" is", what+"s are"))
}

// effectSentences answer an experiment of two values of one factor: what the second does to what each workload is run
// for, which its effects begin with.
func effectSentences(x *compare.Experiment) (out []string) {
	if x.Mark != nil || len(x.Rated) > 0 || len(x.Factors) != 1 || len(x.Factors[0].Levels) != 2 {
		return nil
	}
	told := map[string]bool{}
	for _, e := range x.Effects {
		if told[e.Workload] || len(out) == mostSweeps {
			continue
		}
		told[e.Workload] = true
		text := fmt.Sprintf("With %s instead of %s, %s: %s", unit.Setting(e.Factor, e.Level), e.Against,
			rateOf(e.Workload, e.Name), changed(e.Measure))
		switch in := compareInterval(e.Measure); {
		case in == tooFew:
			text += " (no interval: " + in + ")"
		case e.Adjusted.Valid():
			text += fmt.Sprintf(" (%.3g %% interval %s)", 100*e.Adjusted.Confidence, in)
		default:
			text += " (no interval: " + e.Adjusted.Reason + ")"
		}
		out = append(out, text+map[compare.Verdict]string{
			compare.Same: ", which is no difference that matters", compare.Inconclusive: ", which is inconclusive",
		}[e.Verdict]+".")
	}
	return out
}

// asMeans is how far the change of two means may be from the mean of changes to pass for it.
const asMeans = 0.02

// changed says what a measure is on both sides, and the change, which is the geometric mean of those of single repeats:
// where these are far apart it may be another than that of the means.
func changed(m compare.Measure) string {
	was, is := m.Baseline.Value, m.Candidate.Value
	text := fmt.Sprintf("%s instead of %s", quantity(is, m.Unit), quantity(was, m.Unit))
	switch {
	case m.Change == nil:
	case len(m.Baseline.Runs) > 1 && was > 0 && math.Abs(is/was/(1+*m.Change)-1) > asMeans:
		text += " on average, and " + percent(m.Change) + " in the geometric mean of what each repeat has"
	default:
		text += ", " + percent(m.Change)
	}
	return text
}

// rateOf names a rate in a sentence: read IOPS of OLTP.
func rateOf(workload, name string) string {
	if workload == "" || strings.HasSuffix(name, workload) {
		return name
	}
	return name + " of " + workload
}

func bestSentence(b compare.Best, cells int, threshold float64) string {
	what := capital(rateOf(b.Workload, b.Name))
	if len(b.Level) == cells-1 {
		text := fmt.Sprintf("%s: the means of all combinations are within %s of each other, at about %s.",
			what, wholePercent(threshold), quantity(b.Rate.Value, b.Unit))
		switch {
		case b.LevelSure:
		case len(b.Rate.Repeats) < 2:
			text += " One run of each does not say whether another would show a difference."
		default:
			text += " Inconclusive: the repeats allow for more."
		}
		return text
	}
	text := fmt.Sprintf("%s is highest at %s: %s%s", what, b.Cell, quantity(b.Rate.Value, b.Unit), among(b.Rate))
	if b.Time != nil {
		text += fmt.Sprintf(", with a %s of %s", timeName(b.Time.Name), quantity(b.Time.Value, "s"))
	}
	if n := len(b.Level); n > 0 {
		text += fmt.Sprintf("; within %s of it %s %s", wholePercent(threshold), plural(n, "lies", "lie"), few(b.Level))
	}
	if n := len(b.Unsure); n > 0 {
		text += fmt.Sprintf("; whether %s %s less is inconclusive", few(b.Unsure), plural(n, "does", "do"))
	}
	text += "."
	if q := b.QuickestTime; q != nil && b.Quickest != b.Cell && b.Time.Value > q.Value*(1+threshold) &&
		b.QuickestRate > 0 {
		text += fmt.Sprintf(
			" The shortest %s, %s, has at most %s, at %s: the point above has ×%s the throughput at ×%s the time.",
			timeName(q.Name), quantity(q.Value, "s"), quantity(b.QuickestRate, b.Unit), b.Quickest,
			plain(b.Rate.Value/b.QuickestRate), plain(b.Time.Value/q.Value))
	}
	return text
}

func sweepSentence(s compare.Sweep, threshold float64) string {
	if s.Of == compare.WorkingSet {
		return cacheSentence(s)
	}
	at := func(i int) string { return unit.Setting(s.Factor, s.Steps[i].Level) }
	last := len(s.Steps) - 1
	text := ""
	if s.Within != "" {
		text = "With " + s.Within + ": "
	}
	what := rateOf(s.Workload, s.Name)
	if text == "" && s.FlatFrom <= 0 { // it begins the sentence
		what = capital(what)
	}
	switch {
	case s.Of == compare.ReadShare:
		return fmt.Sprintf("%s%s: %s at %s, %s at %s.", text, what, quantity(s.Steps[0].Rate.Value, s.Unit), at(0),
			quantity(s.Steps[last].Rate.Value, s.Unit), at(last))
	case s.FlatFrom < 0:
		before := s.Steps[last-1].Rate.Value
		over := fmt.Sprintf("%s (%s over %s", at(last), change(before, s.Steps[last].Rate.Value), at(last-1))
		switch r := s.Rise; {
		case r == nil || r.Interval.Valid() && r.Interval.Low > 0:
			text += fmt.Sprintf("%s still rises at the last value, %s): its maximum was not reached.", what, over)
		case len(s.Steps[last].Rate.Repeats) < 2:
			text += fmt.Sprintf("%s was highest at the last value, %s), so its maximum may lie beyond. One run of each does "+
				"not say whether another would show a difference.", what, over)
		default:
			text += fmt.Sprintf("%s was highest at the last value, %s%s); whether it still rises there is inconclusive: the "+
				"repeats allow for more.", what, over, intervalOf(r))
		}
	case s.FlatFrom == 0:
		text += fmt.Sprintf("%s does not rise with %s: %[4]s at the smallest value, %[3]s.", what, unit.Words(s.Factor),
			s.Steps[0].Level, quantity(s.Steps[0].Rate.Value, s.Unit))
	default:
		text += fmt.Sprintf("From %s on %s no longer rises by more than %s (at most %s%s)", at(s.FlatFrom), what,
			wholePercent(threshold), percent(&s.Rise.Change), intervalOf(s.Rise))
		if d := s.Slower; d != nil && d.Change > threshold {
			text += fmt.Sprintf(", while the mean %s grows to %s", s.Times, timesAt(d, at(last)))
		}
		text += "."
		if !s.FlatSure {
			text += " Inconclusive: the repeats allow for more."
		}
	}
	if s.Knee < 0 {
		return text
	}
	switch {
	case s.Knee == last:
		text += fmt.Sprintf(" Knee (most throughput for its latency) at %s or beyond.", at(s.Knee))
	case s.KneeAtEnd:
		text += fmt.Sprintf(" Knee (most throughput for its latency) at %s or below.", at(s.Knee))
	default:
		text += fmt.Sprintf(" Knee (most throughput for its latency) at %s, between %s and %s.", at(s.Knee),
			plain(s.KneeLow), plain(s.KneeHigh))
	}
	if s.Most > s.Knee {
		knee, most := s.Steps[s.Knee], s.Steps[s.Most]
		text += fmt.Sprintf(" From there to %s: %s throughput for %s latency.", at(s.Most),
			change(knee.Rate.Value, most.Rate.Value), change(knee.Time.Value, most.Time.Value))
	}
	return text
}

func timeName(name string) string {
	if i := strings.Index(name, "mean "); i >= 0 {
		return name[i:]
	}
	return name
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func wholePercent(share float64) string { return fmt.Sprintf("%.3g %%", share*100) }

// among is the interval of a mean, in brackets, or why there is none.
func among(v compare.CellValue) string {
	if !v.Interval.Valid() {
		return " (no interval: " + v.Interval.Reason + ")"
	}
	return fmt.Sprintf(" (%.0f %% interval %s)", v.Interval.Confidence*100, cellInterval(v))
}

func intervalOf(a *compare.Against) string {
	i := a.Interval
	if !i.Valid() {
		return ""
	}
	return fmt.Sprintf(", %.3g %% interval %s", i.Confidence*100, span(i.Low, i.High, true))
}

// timesAt is a relative change as a factor, at a level, with its interval.
func timesAt(a *compare.Against, level string) string {
	i := a.Interval
	if !i.Valid() {
		return "×" + plain(1+a.Change) + " at " + level
	}
	text := unit.Apart(1+a.Change, 1+i.Low, 1+i.High)
	return fmt.Sprintf("×%s at %s, %.3g %% interval ×%s to ×%s", text[0], level, i.Confidence*100, text[1], text[2])
}

// overlayView is a drawing of several things with its key: of courses of a rate in all runs, a colour for every
// combination.
type overlayView struct {
	Title string
	SVG   template.HTML
	Names []string
}

// plotView is a plot with its key below it.
func plotView(p Plot) *overlayView {
	v := &overlayView{Title: p.Title, SVG: p.draw(true)}
	for _, s := range p.Series {
		v.Names = append(v.Names, s.Name)
	}
	return v
}

// newOverlays draws all of them that can be drawn.
func newOverlays(all []compare.Overlay) (out []*overlayView) {
	for _, o := range all {
		if v := newOverlay(o); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// newOverlay draws the courses; nil where there are more combinations than colours.
func newOverlay(o compare.Overlay) *overlayView {
	v := &overlayView{Title: o.Title}
	first, last, longest, highest := math.Inf(1), math.Inf(-1), 0, 0.0
	for _, l := range o.Lines {
		if !slices.Contains(v.Names, l.Cell) {
			v.Names = append(v.Names, l.Cell)
		}
		longest = max(longest, len(l.Values))
		first, last = min(first, l.From), max(last, l.From+float64(len(l.Values))*o.Step)
		for _, x := range l.Values {
			if finite(x) {
				highest = max(highest, x)
			}
		}
	}
	if len(v.Names) > paletteSize || longest < 2 || !(highest > 0) {
		return nil
	}
	d := newDrawing(
		fmt.Sprintf("%s of %d runs over their own time, up to %s", o.Title, len(o.Lines), quantity(highest, o.Unit)),
		svgHeight, first, last, 0, highest*1.06)
	for _, t := range valueTicks(d.y0, d.y1, o.Unit) {
		fmt.Fprintf(&d.b, `<path class="g" d="M%d %dH%d"/>`, int(d.left), d.y(t), int(d.right))
		d.text("t e", int(d.left)-8, d.y(t)+4, axisLabel(t, o.Unit))
	}
	d.timeAxis()
	if first < 0 {
		fmt.Fprintf(&d.b, `<path class="zero" d="M%d %dV%d"/>`, d.x(0), int(d.top), int(d.bottom))
	}
	for _, l := range o.Lines {
		values := slices.Clone(l.Values)
		for i, x := range values {
			if !finite(x) {
				values[i] = math.NaN()
			}
		}
		c := &chart{Start: l.From, Step: o.Step, Reduced: 1, Names: []string{l.Run}, Values: [][]float64{values}}
		c = c.reduce(svgColumns * slots)
		d.line(c.Values[0], c, fmt.Sprintf("l thin s%d", slices.Index(v.Names, l.Cell)))
	}
	d.b.WriteString(`</svg>`)
	v.SVG = template.HTML(d.b.String())
	return v
}
