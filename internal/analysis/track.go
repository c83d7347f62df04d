package analysis

import (
	"math"
	"slices"
	"time"

	"plimsoll/result"
)

// track is what ran on some VMs, over time on a regular grid. A value belongs to the interval of one step that ends at
// its time; NaN is a gap, in which nothing that was counted ran.
type track struct {
	origin time.Time // start of the run phase
	start  time.Time // end of the first interval
	step   float64   // seconds
	ops    []float64 // operations per second, or the values of a measure
	writes []float64 // of those, writes; nil when not told apart
	bytes  []float64 // per second; nil when not known
	busy   []float64 // seconds of latency per second, which is the mean number outstanding; nil when not known
}

func (c *track) at(i int) time.Time {
	return c.start.Add(time.Duration(float64(i) * c.step * float64(time.Second)))
}

// elapsed is the time of point i in seconds since the run phase began.
func (c *track) elapsed(i int) float64 { return c.at(i).Sub(c.origin).Seconds() }

// between is the part of a track whose intervals lie between two moments.
func (c *track) between(from, to time.Time) *track {
	const slack = 10 * time.Millisecond
	step := time.Duration(c.step * float64(time.Second))
	first, last := len(c.ops), -1
	for i := range c.ops {
		if t := c.at(i); !t.Add(-step+slack).Before(from) && !t.Add(-slack).After(to) {
			first, last = min(first, i), i
		}
	}
	if last < first {
		first, last = 0, -1
	}
	part := *c
	part.start = c.at(first)
	for _, s := range []*[]float64{&part.ops, &part.writes, &part.bytes, &part.busy} {
		if *s != nil {
			*s = (*s)[first : last+1]
		}
	}
	return &part
}

// within is the part of a track from the first to the last of some spans, with gaps where an interval lies in none of them.
func (c *track) within(spans []result.Span) *track {
	part := c.between(spans[0].Start, spans[len(spans)-1].End)
	if len(spans) == 1 {
		return part
	}
	var inside []*track
	for _, s := range spans {
		inside = append(inside, c.between(s.Start, s.End))
	}
	for _, of := range []func(*track) *[]float64{
		func(t *track) *[]float64 { return &t.ops }, func(t *track) *[]float64 { return &t.writes },
		func(t *track) *[]float64 { return &t.bytes }, func(t *track) *[]float64 { return &t.busy },
	} {
		if *of(part) == nil {
			continue
		}
		values := gaps(len(*of(part)))
		for _, t := range inside {
			at := int(math.Round(t.start.Sub(part.start).Seconds() / c.step))
			if n := len(*of(t)); n > 0 && at >= 0 && at+n <= len(values) {
				copy(values[at:], *of(t))
			}
		}
		*of(part) = values
	}
	return part
}

// finiteOf are the values of a track without its gaps, and the share of points that are gaps.
func finiteOf(values []float64) (out []float64, gaps float64) {
	for _, v := range values {
		if isFinite(v) {
			out = append(out, v)
		}
	}
	if len(values) > 0 {
		gaps = 1 - float64(len(out))/float64(len(values))
	}
	return out, gaps
}

// track of what stands for a workload over its measured window; nil when the run has no series that are its alone.
func (v *view) track(l *load) *track { return v.trackOf(l, l.main()) }

// trackOf is the track of a quantity of a workload.
func (v *view) trackOf(l *load, q quantity) *track {
	key := loadKey{l, q.measure}
	if c, ok := v.tracks[key]; ok {
		return c
	}
	c := v.wholeTrack(l, q.measure)
	if c != nil {
		c = c.within(l.times())
		if some, _ := finiteOf(c.ops); len(some) == 0 {
			c = nil
		}
	}
	v.tracks[key] = c
	return c
}

// span is from the first start to the last end of a workload's parts.
func (l *load) span() (from, to time.Time) {
	for _, p := range l.parts {
		if from.IsZero() || p.Start.Before(from) {
			from = p.Start
		}
		if p.End.After(to) {
			to = p.End
		}
	}
	return from, to
}

// wholeTrack is the track of a measure of a workload, or of its operations, over the whole run.
func (v *view) wholeTrack(l *load, measure string) *track {
	own := func(s *result.Series) bool {
		return s.VM == "" && s.Workload == l.name && s.Group == l.group && s.Section == ""
	}
	if c := v.sum(measure, own); c != nil {
		return c
	}
	sharing := 0
	for _, o := range v.loads {
		if o.group == l.group {
			sharing++
		}
	}
	if sharing == 1 {
		if c := v.groupTrack(l.group, measure); c != nil {
			return c
		}
	}
	if measure != "" {
		return nil
	}
	return v.panelTrack(l)
}

// groupTrack is what all workloads of a group did together.
func (v *view) groupTrack(group, measure string) *track {
	if c := v.sum(measure, func(s *result.Series) bool {
		return s.VM == "" && s.Workload == "" &&
			s.Group == group
	}); c != nil {
		return c
	}
	return v.sum(measure, func(s *result.Series) bool { return s.VM != "" && s.Workload == "" && s.Group == group })
}

// totalTrack is what everything did together.
func (v *view) totalTrack(measure string) *track {
	if c := v.sum(measure, func(s *result.Series) bool {
		return s.VM == "" && s.Workload == "" && s.Group == ""
	}); c != nil {
		return c
	}
	return v.sum(measure, func(s *result.Series) bool { return s.VM != "" && s.Workload == "" })
}

// sum adds up the series of a measure for which pick says yes, "" for those of operations: rates and bytes as they
// are, mean latencies weighted by their rates, which is exact. Percentiles are left out: they cannot be added.
func (v *view) sum(measure string, pick func(*result.Series) bool) *track {
	var c *track
	rates := map[[2]string]*result.Series{}
	var latencies []*result.Series
	for i := range v.d.Series {
		s := &v.d.Series[i]
		other := (s.Op == "") != (measure != "") || s.Op == "" && s.Measure != measure
		if other || !(s.Step > 0) || !isFinite(s.Step) || len(s.Values) == 0 || !pick(s) {
			continue
		}
		if c == nil {
			n := len(s.Values)
			c = &track{origin: v.d.Start, start: s.Start, step: s.Step, ops: gaps(n), writes: gaps(n), bytes: gaps(n),
				busy: gaps(n)}
		}
		if s.Step != c.step {
			continue
		}
		switch {
		case s.Op == "":
			c.add(c.ops, s, nil)
		case s.Measure == result.Rate:
			rates[[2]string{s.Op, s.Name}] = s
			c.add(c.ops, s, nil)
			if v.block(s) == result.BlockWrite {
				c.add(c.writes, s, nil)
			}
		case s.Measure == result.Bandwidth:
			c.add(c.bytes, s, nil)
		case s.Measure == result.LatencyMean:
			latencies = append(latencies, s)
		}
	}
	if c == nil {
		return nil
	}
	timed := 0
	for _, s := range latencies {
		if r := rates[[2]string{s.Op, s.Name}]; r != nil && s.Unit == "us" {
			c.add(c.busy, s, r)
			timed++
		}
	}
	if timed < len(rates) {
		c.busy = nil // of some operations only
	}
	for _, s := range []*[]float64{&c.writes, &c.bytes, &c.busy} {
		if *s == nil {
			continue
		}
		if known, _ := finiteOf(*s); len(known) == 0 {
			*s = nil
		}
	}
	if known, _ := finiteOf(c.ops); len(known) == 0 {
		return nil
	}
	return c
}

func gaps(n int) []float64 {
	return slices.Repeat([]float64{math.NaN()}, n)
}

// add adds a series into values on c's grid; with rates, a latency in microseconds times its rate.
func (c *track) add(values []float64, s, rates *result.Series) {
	shift := int(math.Round(s.Start.Sub(c.start).Seconds() / c.step))
	for i, p := range s.Values {
		at := i + shift
		if p == nil || !isFinite(*p) || at < 0 || at >= len(values) {
			continue
		}
		x := *p
		if rates != nil {
			if i >= len(rates.Values) || rates.Values[i] == nil {
				continue
			}
			x *= *rates.Values[i] / 1e6
		}
		if math.IsNaN(values[at]) {
			values[at] = 0
		}
		values[at] += x
	}
}

// panelTrack takes the rate from a result of the scenario about that workload.
func (v *view) panelTrack(l *load) *track {
	for _, p := range v.d.Panels {
		if p.Kind != "workload" || p.Unit != l.rate().unit || len(p.Series) == 0 {
			continue
		}
		first := &p.Series[0]
		same := slices.IndexFunc(p.Series, func(s result.Series) bool { return s.Workload != l.name || s.Step != first.Step }) < 0
		if !same || !(first.Step > 0) || !isFinite(first.Step) || len(first.Values) == 0 {
			continue
		}
		c := &track{origin: v.d.Start, start: first.Start, step: first.Step, ops: gaps(len(first.Values))}
		for i := range p.Series {
			c.add(c.ops, &p.Series[i], nil)
		}
		return c
	}
	return nil
}

// mostDrawn bounds the points of an evidence chart.
const mostDrawn = 240

// chart draws a rate over time, with the run's marks that fall into it.
func (v *view) chart(title, unit string, lines ...result.ChartLine) *result.Chart {
	c := &result.Chart{Title: title, XUnit: "s", YUnit: unit, Lines: lines}
	for _, l := range lines {
		if len(l.X) == 0 {
			continue
		}
		for _, m := range v.d.Events {
			at := m.Time.Sub(v.d.Start).Seconds()
			if at >= l.X[0] && at <= l.X[len(l.X)-1] && len(c.Marks) < 12 {
				c.Marks = append(c.Marks, result.ChartPlace{At: at, Text: m.Text})
			}
		}
		break
	}
	return c
}

// line is values of a track as a line of a chart. Long ones keep the smallest and the largest value of every stretch,
// and its gap when it has one; nothing is averaged.
func (c *track) line(name string, values []float64) result.ChartLine {
	l := result.ChartLine{Name: name}
	put := func(i int) {
		l.X = append(l.X, round(c.elapsed(i)))
		if isFinite(values[i]) {
			y := round(values[i])
			l.Y = append(l.Y, &y)
		} else {
			l.Y = append(l.Y, nil)
		}
	}
	size := (len(values) + mostDrawn - 1) / mostDrawn
	if size <= 1 {
		for i := range values {
			put(i)
		}
		return l
	}
	size *= 2
	for from := 0; from < len(values); from += size {
		keep := []int{}
		low, high := -1, -1
		for i := from; i < min(from+size, len(values)); i++ {
			switch {
			case !isFinite(values[i]):
				if len(keep) == 0 {
					keep = append(keep, i)
				}
			case low < 0:
				low, high = i, i
			case values[i] < values[low]:
				low = i
			case values[i] > values[high]:
				high = i
			}
		}
		if low >= 0 {
			keep = append(keep, low, high)
		}
		slices.Sort(keep)
		for _, i := range slices.Compact(keep) {
			put(i)
		}
	}
	return l
}

// round keeps five significant digits, which is plenty for a drawing.
func round(x float64) float64 {
	if x == 0 || !isFinite(x) {
		return x
	}
	p := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(x))))
	if !isFinite(p) || p == 0 {
		return x
	}
	return math.Round(x*p) / p
}
