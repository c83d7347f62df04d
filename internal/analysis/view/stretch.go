package view

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/analysis/steady"
	"plimsoll/result"
)

// MostGaps is the share of a series that may be missing before it is not judged.
const MostGaps = 0.2

// WarmUp names the evidence of a steady-state finding that tells how long the workload took to warm up.
const WarmUp = "warm-up"

// LevelUntil and LevelFrom begin the names of its evidence that tells the levels of a workload that had two or three,
// and until and from when: an average over them was at no time its rate.
const (
	LevelUntil = "level until "
	LevelFrom  = "level from "
)

// Stretch is a part of a workload's time with the verdict on it.
type Stretch struct {
	Name     string
	Quantity Quantity
	Track    *Track
	steady.Stretch
	Why   string // why it was not judged; empty when it was
	Index []int  // of each judged value in the track, since gaps are left out
}

// Elapsed is the moment of a judged value in seconds of the run.
func (s *Stretch) Elapsed(i int) float64 {
	return s.Track.Elapsed(s.Index[max(0, min(i, len(s.Index)-1))])
}

// Stretches judges every window of a workload, or its whole time when it has none, up to the first fault: what follows
// that is recovery's business.
func (v *Run) Stretches(l *Load, q Quantity) []Stretch {
	key := loadKey{l, q.Measure}
	if s, ok := v.settled[key]; ok {
		return s
	}
	var out []Stretch
	if c := v.TrackOf(l, q); c != nil && !c.seldom(q) {
		if v.among == 0 {
			for _, other := range v.Loads {
				v.among += len(v.pieces(other))
			}
		}
		for _, p := range v.pieces(l) {
			s := Judge(p.name, c.Between(p.start, p.end), v.among)
			if s.Why != "" && !p.cut.IsZero() { // there may be enough of it afterwards
				s.Why = "before the fault at " + ClockOf(p.cut.Sub(v.Data.Start).Seconds()) + " " + s.Why
			}
			out = append(out, s)
		}
	}
	for i := range out {
		out[i].Quantity = q
		if why := l.Silent(out[i].Track); why != "" && out[i].Why == "" {
			out[i].Why, out[i].Reached = why, false
		}
	}
	v.settled[key] = out
	return out
}

// piece is a time of a workload that is judged by itself.
type piece struct {
	name       string
	start, end time.Time
	cut        time.Time // the fault before which it lies; zero when there is none
}

// pieces are the times of a workload whose steadiness is judged, each by itself.
func (v *Run) pieces(l *Load) (out []piece) {
	from, end := l.Judged()
	fault, hit := v.FirstFault(from, end)
	if hit {
		end = fault
	}
	add := func(name string, start, until time.Time) {
		if start.Before(end) {
			out = append(out, piece{name, start, earlier(until, end), fault})
		}
	}
	w := l.Whole()
	switch {
	case w != nil && len(w.Comparable()) < 2 && len(w.Spans) > 1:
		for i, t := range w.Spans {
			add(fmt.Sprintf("in start %d", i+1), t.Start, t.End)
		}
	case w == nil || len(w.Comparable()) < 2:
		name := strings.TrimPrefix(l.LeftOut(), " ")
		if hit {
			name = "before the fault"
		}
		out = append(out, piece{name, from, end, fault})
	default:
		for _, win := range w.Comparable() {
			add(When(win), win.Start, win.End)
		}
	}
	return out
}

// Silent says where a workload that ran without a pause has no values in a track for three points or more: what went
// on then nobody knows, and it may be a stall; "" where there is no such time.
func (l *Load) Silent(c *Track) string {
	if c == nil || len(l.Times()) > 1 {
		return "" // between its starts there is nothing to see
	}
	var said []string
	for _, g := range steady.Gaps(c.Ops) {
		said = append(said, fmt.Sprintf("from %s to %s", ClockOf(c.Elapsed(g.First)-c.Step),
			ClockOf(c.Elapsed(g.Last))))
	}
	if said == nil {
		return ""
	}
	return fmt.Sprintf("it has no values %s: a stall, or reports that are lost", Listed(said))
}

// seldom reports whether a Count is of things that come so seldom that there is no level to speak of: retries,
// failures.
func (c *Track) seldom(q Quantity) bool {
	values, _ := FiniteOf(c.Ops)
	return q.Measure != "" && q.Kind == result.Count && !(resample.Median(values)*c.Step >= FewestPerStep)
}

// FirstFault is when the first fault came between two moments; that one was over is no fault.
func (v *Run) FirstFault(from, to time.Time) (t time.Time, ok bool) {
	for _, e := range v.Data.Events {
		if e.Strikes() && e.Time.After(from) && e.Time.Before(to) {
			return e.Time, true
		}
	}
	return t, false
}

// Judge judges a track as one stretch, of so many that are judged in a run.
func Judge(name string, c *Track, among int) Stretch {
	s := Stretch{Name: name, Track: c}
	values, missing := FiniteOf(c.Ops)
	if missing > MostGaps {
		s.Why = Percent(missing) + " of its points are missing"
		return s
	}
	for i, x := range c.Ops {
		if IsFinite(x) {
			s.Index = append(s.Index, i)
		}
	}
	const fewest, long = 25, 50
	switch {
	case len(values) < fewest:
		s.Why = fmt.Sprintf("it has %s of %s, and %d are needed", Plural(len(values), "point"), SayDuration(c.Step),
			fewest)
		return s
	case len(values) < long:
		s.Rounds(values)
		return s
	}
	var err error
	// Half of the chance is left to the other checks of the run.
	if s.Stretch, err = steady.Window(values, steady.Options{Among: 2 * among}); err != nil {
		s.Why = err.Error()
	}
	s.Unclear()
	return s
}

// Unclear makes a verdict that could not be had the reason why the stretch was not judged.
func (s *Stretch) Unclear() {
	if s.CannotTell {
		s.Why = s.Reason
	}
}

// Rounds judges a stretch too short for change points by the rule for rounds, five of them.
func (s *Stretch) Rounds(values []float64) {
	const n = 5
	means := make([]float64, n)
	for i := range means {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		means[i] = Total(part) / float64(len(part))
	}
	r, err := steady.Rounds(means, steady.Rule{})
	if err != nil {
		s.Why = err.Error()
		return
	}
	s.Reached, s.First, s.Last = r.Reached, 0, len(values)-1
	rounds := fmt.Sprintf("rounds 1 to %d", n) // which to readers are neither rows nor rounds
	s.Reason = strings.NewReplacer("the line through "+rounds+" moves", "over its five fifths it drifts", rounds,
		"fifths of it").Replace(r.Reason)
	s.Mean, err = serial.MeanOf(values, Confidence)
	if err != nil {
		s.Why = err.Error()
	}
	s.Warnings = append(s.Warnings,
		fmt.Sprintf("%d points are few: judged as five rounds (spread within 20 %%, line within 10 %%)", len(values)))
}

// mostBeside is up to how many co-running workloads some are named, of more only the number.
const mostBeside = 5

// When names a window in a sentence: a second time alone is after the other workload, and of some others three are
// named.
func When(w result.Window) string {
	if w.Circumstances.Name() != w.Name {
		return w.Name // of an author's or a program's own
	}
	c := w.Circumstances
	if c.Again > 1 && c.After == "" && c.InCompany(result.Circumstances{}) {
		return "alone again"
	}
	if len(c.Beside) < 3 {
		return w.Name
	}
	if n := len(c.Beside); n > mostBeside {
		return c.NameWith(Plural(n, "other"))
	}
	return c.NameWith(Three(c.Beside))
}
