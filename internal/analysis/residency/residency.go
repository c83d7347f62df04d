// Package residency asks how long data took to get where it should be: to be written (ingest), to come to a faster tier
// or into a cache (residency). It gives view.Checks to package analysis. A rate that rises and falls again is neither.
package residency

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// When a rise is told as the data becoming resident on a faster tier.
const (
	risen        = 1.3  // end over beginning
	endShare     = 0.2  // of the window that is taken for the end
	startShare   = 0.03 // and for the beginning
	residentFrom = 0.9  // of the level at the end counts as there
	fewest       = 50   // points
	quicker      = 2.0  // end over beginning of reads at an offered rate, whose latency other things move as well
)

// Residency measures how long it took until reads ran at the speed they end with: data that moves to a faster tier, or
// into a cache, shows as a rate that rises and then stays; under an offered rate as a mean latency that falls so.
var Residency = view.Check{Name: "residency", Rank: 150, Run: residency}

func residency(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		c := v.Track(l)
		if c == nil || !l.BlocksOnly() || !readsOnly(l) || offered(l) && c.Busy == nil {
			continue
		}
		if f, ok := resident(v, l, c); ok {
			out = append(out, f)
		}
	}
	return out
}

func readsOnly(l *view.Load) bool {
	for _, p := range l.Parts {
		for _, stream := range p.Streams {
			if stream.Writes {
				return false
			}
		}
	}
	return len(l.Parts[0].Streams) > 0
}

// offered reports whether any of a workload's streams has a rate, which is then no measure of their speed.
func offered(l *view.Load) bool {
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
		return slices.ContainsFunc(p.Streams, func(n result.Stream) bool { return n.Rate > 0 })
	})
}

// pace tells how fast reads are: how many there are, or, where their rate is offered, how long they take.
type pace struct {
	values []float64 // more is faster
	is     string
	least  float64 // end over beginning that is told
	rising string
	say    func(begin, end float64) string
}

func paceOf(l *view.Load, c *view.Track) pace {
	if !offered(l) {
		return pace{c.Ops, "reads per second", risen, "rising", func(begin, end float64) string {
			return fmt.Sprintf("%s to %s IOPS", view.SayCount(begin), view.SayCount(end))
		}}
	}
	p := pace{is: "reads per second of their mean latency", least: quicker, rising: "falling",
		say: func(begin, end float64) string {
			return fmt.Sprintf("mean latency %s to %s at its offered rate", view.SayDuration(1/begin),
				view.SayDuration(1/end))
		}}
	for i, ops := range c.Ops {
		p.values = append(p.values, ops/c.Busy[i])
	}
	return p
}

func resident(v *view.Run, l *view.Load, c *view.Track) (result.Finding, bool) {
	p := paceOf(l, c)
	values, missing := view.FiniteOf(p.values)
	n := len(values)
	if n < fewest && missing <= view.MostGaps && n > 0 && !offered(l) && movedOn(v, l) {
		return tooShort(l, c, values), true
	}
	if n < fewest || missing > view.MostGaps {
		return result.Finding{}, false
	}
	from := n - int(float64(n)*endShare)
	end, err := serial.MeanOf(values[from:], view.Confidence)
	if err != nil || !(end.Value > 0) {
		return result.Finding{}, false
	}
	begin := resample.Median(values[:max(3, int(float64(n)*startShare))])
	if begin > 0 && end.Value < risen*begin && end.Value > begin/risen && !offered(l) && movedOn(v, l) {
		return level(l, c, begin, end.Value, n), true
	}
	if !(begin >= 0) || end.Value < p.least*begin {
		return result.Finding{}, false
	}
	// Chance rises do not stay: the whole last half must lie above the beginning in its lower quartile.
	half := slices.Sorted(slices.Values(values[n/2:]))
	if resample.Quantile(half, 0.25) < begin*math.Sqrt(p.least) {
		return result.Finding{}, false
	}
	if returns(values, begin, end.Value) {
		return result.Finding{}, false
	}
	at := comesTo(values, from, residentFrom)
	// the start of the point
	there := c.At(placeOf(p.values, min(at, n-1))).Add(-time.Duration(c.Step * float64(time.Second)))
	f := result.Finding{
		Check: "residency", Subject: l.Name, Metric: "time until the reads are resident", Unit: "s", N: n,
		Basis: fmt.Sprintf(
			"%s in points of %s; resident where their rising fit comes to %s of the level of the last %s", p.is,
			view.SayDuration(c.Step), view.Percent(residentFrom), view.Percent(endShare)),
		Evidence: []result.Evidence{
			{
				Name:  "at the beginning",
				Value: begin,
				Unit:  "ops/s",
			}, {Name: "at the end", Value: end.Value, Unit: "ops/s"}, {Name: "end ÷ beginning",
				Value: end.Value / begin, Unit: "ratio"},
		},
	}
	window := float64(n) * c.Step
	rise := p.say(begin, end.Value)
	f.Chart = v.Chart(l.Name+": "+p.is, "ops/s", c.Line(l.Name, p.values))
	other := explained(v, l, there)
	if len(other) > 0 {
		f.Metric = "time until the reads ran at their last speed"
		f.Basis = strings.Replace(f.Basis, "resident where", "there where", 1)
	}
	if at >= from {
		f.Severity, f.NoInterval = result.Warning, "it was still "+p.rising+" when the workload ended"
		f.Sentence = fmt.Sprintf("%s: %s, still %s at its end after %s", l.Name, rise, p.rising,
			view.SayDuration(window))
		if len(other) > 0 {
			f.Sentence += fmt.Sprintf("; in that time %s.", view.Listed(other))
		} else {
			f.Sentence += ": not all its data were on the fast tier yet."
		}
		return f, true
	}
	began, _ := l.Span()
	seconds := max(0, there.Sub(began).Seconds())
	before := seconds - float64(at)*c.Step // what has no value
	f.Value, f.Severity = &seconds, result.Info
	in := riseInterval(values, from, residentFrom)
	in.Low, in.High = in.Low-1, in.High+1 // rounding to points
	view.SetInterval(&f, in.Map(func(points float64) float64 { return max(0, max(0, points)*c.Step+before) }))
	if len(other) > 0 {
		f.Sentence = fmt.Sprintf("%s: %s, %s times as fast from %s on, %s after its start; until then %s, so whether "+
			"data came to a faster tier is not told.", l.Name, rise, view.SayCount(end.Value/begin),
			view.ClockOf(there.Sub(v.Data.Start).Seconds()), view.SayDuration(seconds), view.Listed(other))
		return f, true
	}
	f.Chart.Marks = append(f.Chart.Marks,
		result.ChartPlace{At: view.Round(there.Sub(v.Data.Start).Seconds()), Text: "resident"})
	f.Sentence = fmt.Sprintf("%s: %s; data resident on the fast tier, or in a cache, after %s of %s.", l.Name, rise,
		view.SayDuration(seconds), view.SayDuration(window))
	return f, true
}

// placeOf is where among some values the finite one of a number is.
func placeOf(values []float64, number int) int {
	for i, v := range values {
		if view.IsFinite(v) {
			if number == 0 {
				return i
			}
			number--
		}
	}
	return len(values) - 1
}

// movedOn reports whether a workload reads at random what another of its machines had written in a row, and did so
// before or after with other data: then it is asked how long these take to come to a faster tier. Who writes a file
// once and then reads it asks for rates.
func movedOn(v *view.Run, l *view.Load) bool {
	fills := map[string]bool{}
	for _, o := range v.Loads {
		if o.Group == l.Group && readsOnly(o) {
			if fill := filledBy(v, o); fill != "" {
				fills[fill] = true
			}
		}
	}
	return len(fills) > 1 && filledBy(v, l) != ""
}

// filledBy is the last workload that wrote in a row, before it, what a workload reads at random; "": none.
func filledBy(v *view.Run, l *view.Load) (name string) {
	from, _ := l.Span()
	var last time.Time
	random := func(o *view.Load, share func(float64) bool) bool {
		return !slices.ContainsFunc(o.Parts, func(p *result.Workload) bool {
			return slices.ContainsFunc(p.Streams, func(n result.Stream) bool { return !share(n.Random) })
		})
	}
	if !random(l, func(share float64) bool { return share > 0 }) {
		return ""
	}
	for _, o := range v.Loads {
		_, to := o.Span()
		writes := slices.ContainsFunc(o.Parts, func(p *result.Workload) bool {
			return slices.ContainsFunc(p.Streams, func(n result.Stream) bool { return n.Writes })
		})
		if o.Group == l.Group && writes && !to.After(from) && to.After(last) &&
			random(o, func(share float64) bool { return share == 0 }) {
			name, last = o.Name, to
		}
	}
	return name
}

// tooShort is the finding that reads ended before it could be seen whether they became faster.
func tooShort(l *view.Load, c *view.Track, values []float64) result.Finding {
	why := fmt.Sprintf("%s of %s, and %d are needed", view.Plural(len(values), "point"), view.SayDuration(c.Step),
		fewest)
	first, last := values[0], values[len(values)-1]
	return result.Finding{
		Check: "residency", Subject: l.Name, Severity: result.Info, Metric: "time until the reads are resident",
		Unit: "s", N: len(values), NoInterval: why,
		Basis: "reads per second in points of " + view.SayDuration(c.Step),
		Evidence: []result.Evidence{{Name: "first point", Value: first, Unit: "ops/s"},
			{Name: "last point", Value: last, Unit: "ops/s"}},
		Sentence: fmt.Sprintf("%s read at %s IOPS in its first %s and at %s in its last; whether data came to "+
			"a faster tier cannot be told.", l.Name, view.SayCount(first), view.SayDuration(c.Step),
			view.SayCount(last)),
	}
}

// level is the finding that reads ran at the speed they end with from their first points on.
func level(l *view.Load, c *view.Track, begin, end float64, n int) result.Finding {
	return result.Finding{
		Check: "residency", Subject: l.Name, Severity: result.Passed, Metric: "time until the reads are resident",
		Unit:  "s",
		Value: view.Ptr(0), Low: view.Ptr(0), High: view.Ptr(c.Step), Confidence: 1, N: n,
		Basis: fmt.Sprintf("reads per second in points of %s, the first %s against the last %s",
			view.SayDuration(c.Step), view.Percent(startShare), view.Percent(endShare)),
		Evidence: []result.Evidence{{Name: "at the beginning", Value: begin, Unit: "ops/s"},
			{Name: "at the end", Value: end, Unit: "ops/s"}},
		Sentence: fmt.Sprintf("%s ran at the speed it ends with from its first %s on, %s then %s IOPS. No data were seen to "+
			"come to a faster tier.", l.Name, view.SayDuration(c.Step), view.SayCount(begin), view.SayCount(end)),
	}
}

// explained returns what else may have held a workload back from its start until a moment at which it was fast, in
// words: faults that were in force or came, other loads that were at work and ended, and whatever else the journal has
// in that time. Only where there is nothing is a rise told as that of a tier.
func explained(v *view.Run, l *view.Load, at time.Time) (out []string) {
	from, _ := l.Span()
	from, at = from.Add(-view.SameMoment), at.Add(view.SameMoment)
	clock := func(t time.Time) string { return view.ClockOf(t.Sub(v.Data.Start).Seconds()) }
	for _, f := range v.Faults() {
		switch {
		case f.Start.After(at) || !f.End.IsZero() && f.End.Before(from):
		case f.End.IsZero() || f.End.After(at):
			out = append(out, fmt.Sprintf("%s began at %s", f.Say(), clock(f.Start)))
		default:
			out = append(out, fmt.Sprintf("%s was in force to %s", f.Say(), clock(f.End)))
		}
	}
	for _, e := range v.Data.Events {
		if e.Kind == result.KindFault && e.State == "" && !e.Time.Before(from) && !e.Time.After(at) {
			out = append(out, fmt.Sprintf("%q came at %s", e.Text, clock(e.Time)))
		}
	}
	for _, o := range v.Loads {
		if began, ended := o.Span(); o != l && began.Before(at) && ended.After(from) && !ended.After(at) {
			out = append(out, fmt.Sprintf("%s was at work to %s", o.Name, clock(ended)))
		}
	}
	return out
}

// returns reports whether a rate that had risen most of the way came back to where it began, for three points in all:
// then what held it down comes and goes, as a checkpoint or a neighbour does. A stall and the points beside it are no
// return.
func returns(values []float64, begin, end float64) bool {
	up, low := begin*math.Pow(end/begin, 0.75), begin*math.Pow(end/begin, 0.25)
	first := slices.IndexFunc(values, func(v float64) bool { return v >= up })
	if !(begin > 0) || first < 0 {
		return false
	}
	back := 0
	for i, v := range values {
		if i >= first && v <= low && slices.Min(values[i-1:min(i+2, len(values))]) >= begin/2 {
			back++
		}
	}
	return back >= 3
}

// preparation is the share of a run below which an ingest is taken for preparation of another workload.
const preparation = 0.25

// Ingest tells how long it took to write a given amount of data: for a workload that only writes and ends when all is
// written, the time is the result.
var Ingest = view.Check{Name: "ingest", Rank: 140, Run: ingest}

func ingest(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		var seconds []float64
		var bytes float64
		ok := true
		for _, p := range l.Parts {
			written, only := onlyWrites(p)
			ok = ok && only && !p.Merged() && view.WroteAll(p)
			seconds, bytes = append(seconds, p.Seconds()), bytes+written
		}
		took := working(l)
		if !ok || took <= 0 {
			continue
		}
		f := result.Finding{
			Check: "ingest", Subject: l.Name, Severity: result.Info, Metric: "time to ingest", Unit: "s",
			Value: &took, N: len(l.Parts),
			NoInterval: "one ingest: only repeats show how it varies",
			Basis: "from the first start to the last end on " + view.Plural(len(l.Parts),
				"VM") + ", one run" + paused(l),
			Evidence: []result.Evidence{
				{Name: "written", Value: bytes, Unit: "bytes"},
				{Name: "bandwidth", Value: bytes / took, Unit: "bytes/s"},
			},
		}
		if took < preparation*v.Data.End.Sub(v.Data.Start).Seconds() {
			f.Severity = result.Passed // a fill on the way to something else
		}
		f.Sentence = fmt.Sprintf("%s wrote %s in %s: %s/s.", l.Name, view.SayBytes(bytes), view.SayDuration(took),
			view.SayBytes(bytes/took))
		if fast, slow := slices.Min(seconds), slices.Max(seconds); len(seconds) > 1 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "fastest VM", Value: fast, Unit: "s"},
				result.Evidence{Name: "slowest VM", Value: slow, Unit: "s"})
			if slow > 1.2*fast {
				f.Sentence = fmt.Sprintf("%s wrote %s in %s: %s/s; fastest VM %s, slowest VM %s.", l.Name,
					view.SayBytes(bytes), view.SayDuration(took), view.SayBytes(bytes/took), view.SayDuration(fast),
					view.SayDuration(slow))
			}
		}
		if c := v.Track(l); c != nil && c.Bytes != nil {
			f.Chart = v.Chart(l.Name+": bytes per second", "bytes/s", c.Line(l.Name, c.Bytes))
		}
		out = append(out, f)
	}
	return out
}

// working is for how long at least one VM of a workload ran, in seconds.
func working(l *view.Load) (s float64) {
	var all []result.Span
	for _, p := range l.Parts {
		all = append(all, p.Times()...)
	}
	slices.SortFunc(all, func(a, b result.Span) int { return a.Start.Compare(b.Start) })
	end := all[0].Start
	for _, t := range all {
		s += max(0, t.End.Sub(view.Later(t.Start, end)).Seconds())
		end = view.Later(end, t.End)
	}
	return s
}

// paused says that a workload was started more than once.
func paused(l *view.Load) string {
	if slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return len(p.Spans) > 1 }) {
		return "; without the pauses between its starts"
	}
	return ""
}

// onlyWrites is how much a part wrote, and whether it did nothing else and, at random, no more than its extents hold:
// what writes more there ends by the clock.
func onlyWrites(p *result.Workload) (bytes float64, only bool) {
	only = len(p.Streams) > 0
	extents, random := 0.0, false
	for _, stream := range p.Streams {
		only = only && stream.Writes && !stream.Reads
		extents, random = extents+float64(stream.Bytes), random || stream.Random > 0
	}
	for _, o := range view.BlockTotals(p, result.BlockWrite) {
		bytes += float64(o.Bytes)
	}
	return bytes, only && bytes > 0 && (!random || bytes <= extents*(1+view.PrefillTolerance))
}
