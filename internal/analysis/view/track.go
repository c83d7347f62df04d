package view

import (
	"iter"
	"math"
	"slices"
	"time"

	"plimsoll/result"
)

// Track holds what ran on some VMs, over time on a regular grid. A value belongs to the interval of one step that ends
// at its time; NaN is a gap, in which nothing that was counted ran.
type Track struct {
	Origin time.Time // start of the run phase
	Start  time.Time // end of the first interval
	Step   float64   // seconds
	Ops    []float64 // operations per second, or the values of a measure
	Writes []float64 // of those, writes; nil when not told apart
	Bytes  []float64 // per second; nil when not known
	Busy   []float64 // seconds of latency per second, which is the mean number outstanding; nil when not known
}

// At is the end of the interval of point i.
func (c *Track) At(i int) time.Time {
	return c.Start.Add(time.Duration(float64(i) * c.Step * float64(time.Second)))
}

// Elapsed is the time of point i in seconds since the run phase began.
func (c *Track) Elapsed(i int) float64 { return c.At(i).Sub(c.Origin).Seconds() }

// Between is the part of a track whose intervals lie between two moments.
func (c *Track) Between(from, to time.Time) *Track {
	const slack = 10 * time.Millisecond
	step := time.Duration(c.Step * float64(time.Second))
	first, last := len(c.Ops), -1
	for i := range c.Ops {
		if t := c.At(i); !t.Add(-step+slack).Before(from) && !t.Add(-slack).After(to) {
			first, last = min(first, i), i
		}
	}
	if last < first {
		first, last = 0, -1
	}
	part := *c
	part.Start = c.At(first)
	for _, s := range []*[]float64{&part.Ops, &part.Writes, &part.Bytes, &part.Busy} {
		if *s != nil {
			*s = (*s)[first : last+1]
		}
	}
	return &part
}

// Within is the part of a track from the first to the last of some spans, with gaps where an interval lies in none of
// them.
func (c *Track) Within(spans []result.Span) *Track {
	part := c.Between(spans[0].Start, spans[len(spans)-1].End)
	if len(spans) == 1 {
		return part
	}
	var inside []*Track
	for _, s := range spans {
		inside = append(inside, c.Between(s.Start, s.End))
	}
	for _, of := range []func(*Track) *[]float64{
		func(t *Track) *[]float64 { return &t.Ops }, func(t *Track) *[]float64 { return &t.Writes },
		func(t *Track) *[]float64 { return &t.Bytes }, func(t *Track) *[]float64 { return &t.Busy },
	} {
		if *of(part) == nil {
			continue
		}
		values := Gaps(len(*of(part)))
		for _, t := range inside {
			at := int(math.Round(t.Start.Sub(part.Start).Seconds() / c.Step))
			if n := len(*of(t)); n > 0 && at >= 0 && at+n <= len(values) {
				copy(values[at:], *of(t))
			}
		}
		*of(part) = values
	}
	return part
}

// FiniteOf are the values of a track without its gaps, and the share of points that are gaps.
func FiniteOf(values []float64) (out []float64, gaps float64) {
	for _, v := range values {
		if IsFinite(v) {
			out = append(out, v)
		}
	}
	if len(values) > 0 {
		gaps = 1 - float64(len(out))/float64(len(values))
	}
	return out, gaps
}

// Track of what stands for a workload over its measured window; nil when the run has no series that are its alone.
func (v *Run) Track(l *Load) *Track { return v.TrackOf(l, l.Main()) }

// TrackOf is the track of a quantity of a workload.
func (v *Run) TrackOf(l *Load, q Quantity) *Track {
	key := loadKey{l, q.Measure}
	if c, ok := v.tracks[key]; ok {
		return c
	}
	c := v.WholeTrack(l, q.Measure)
	if c != nil {
		c = c.Within(l.Times())
		if some, _ := FiniteOf(c.Ops); len(some) == 0 {
			c = nil
		}
	}
	v.tracks[key] = c
	return c
}

// Span is from the first start to the last end of a workload's parts.
func (l *Load) Span() (from, to time.Time) {
	for _, p := range l.Parts {
		if from.IsZero() || p.Start.Before(from) {
			from = p.Start
		}
		if p.End.After(to) {
			to = p.End
		}
	}
	return from, to
}

// WholeTrack is the track of a measure of a workload, or of its operations, over the whole run.
func (v *Run) WholeTrack(l *Load, measure string) *Track {
	own := func(s *result.Series) bool {
		return s.VM == "" && s.Workload == l.Name && s.Group == l.Group && s.Section == ""
	}
	if c := v.Sum(measure, own); c != nil {
		return c
	}
	if v.alone(l) {
		if c := v.GroupTrack(l.Group, measure); c != nil {
			return c
		}
	}
	if measure != "" {
		return nil
	}
	return v.panelTrack(l)
}

// alone reports whether what a group did is what a workload did.
func (v *Run) alone(l *Load) bool {
	return !slices.ContainsFunc(v.Loads, func(o *Load) bool { return o != l && o.Group == l.Group })
}

// OpTrack is the track of one kind of operations of a workload; nil where no series tells them from others.
func (v *Run) OpTrack(l *Load, op string) *Track {
	of := func(workload string) *Track {
		return v.Sum("", func(s *result.Series) bool {
			return s.VM == "" && s.Workload == workload && s.Group == l.Group && s.Section == "" && s.Op == op
		})
	}
	if c := of(l.Name); c != nil || !v.alone(l) {
		return c
	}
	return of("")
}

// GroupTrack returns what all workloads of a group did together.
func (v *Run) GroupTrack(group, measure string) *Track {
	if c := v.Sum(measure, func(s *result.Series) bool {
		return s.VM == "" && s.Workload == "" &&
			s.Group == group
	}); c != nil {
		return c
	}
	return v.Sum(measure, func(s *result.Series) bool { return s.VM != "" && s.Workload == "" && s.Group == group })
}

// TotalTrack returns what everything did together.
func (v *Run) TotalTrack(measure string) *Track {
	if c := v.Sum(measure, func(s *result.Series) bool {
		return s.VM == "" && s.Workload == "" && s.Group == ""
	}); c != nil {
		return c
	}
	return v.Sum(measure, func(s *result.Series) bool { return s.VM != "" && s.Workload == "" })
}

// Sum adds up the series of a measure for which pick says yes, "" for those of operations: rates and bytes as they
// are, mean latencies weighted by their rates, which is exact. Percentiles are left out: they cannot be added.
func (v *Run) Sum(measure string, pick func(*result.Series) bool) *Track {
	return v.sum(func(yield func(*result.Series) bool) {
		for i := range v.Data.Series {
			if !yield(&v.Data.Series[i]) {
				return
			}
		}
	}, measure, pick)
}

// sum is Sum over some of the series.
func (v *Run) sum(of iter.Seq[*result.Series], measure string, pick func(*result.Series) bool) *Track {
	var c *Track
	rates := map[[2]string]*result.Series{}
	var latencies []*result.Series
	for s := range of {
		other := (s.Op == "") != (measure != "") || s.Op == "" && s.Measure != measure
		if other || !(s.Step > 0) || !IsFinite(s.Step) || len(s.Values) == 0 || !pick(s) {
			continue
		}
		if c == nil {
			n := len(s.Values)
			c = &Track{
				Origin: v.Data.Start,
				Start:  s.Start,
				Step:   s.Step,
				Ops:    Gaps(n),
				Writes: Gaps(n),
				Bytes:  Gaps(n),
				Busy:   Gaps(n),
			}
		}
		if s.Step != c.Step {
			continue
		}
		switch {
		case s.Op == "":
			c.Add(c.Ops, s, nil)
		case s.Measure == result.Rate:
			rates[[2]string{s.Op, s.Name}] = s
			c.Add(c.Ops, s, nil)
			if v.Block(s) == result.BlockWrite {
				c.Add(c.Writes, s, nil)
			}
		case s.Measure == result.Bandwidth:
			c.Add(c.Bytes, s, nil)
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
			c.Add(c.Busy, s, r)
			timed++
		}
	}
	if timed < len(rates) {
		c.Busy = nil // of some operations only
	}
	for _, s := range []*[]float64{&c.Writes, &c.Bytes, &c.Busy} {
		if *s == nil {
			continue
		}
		if known, _ := FiniteOf(*s); len(known) == 0 {
			*s = nil
		}
	}
	if known, _ := FiniteOf(c.Ops); len(known) == 0 {
		return nil
	}
	return c
}

// Gaps are n values that are not there.
func Gaps(n int) []float64 {
	return slices.Repeat([]float64{math.NaN()}, n)
}

// Add adds a series into values on c's grid; with rates, a latency in microseconds times its rate.
func (c *Track) Add(values []float64, s, rates *result.Series) {
	shift := int(math.Round(s.Start.Sub(c.Start).Seconds() / c.Step))
	for i, p := range s.Values {
		at := i + shift
		if p == nil || !IsFinite(*p) || at < 0 || at >= len(values) {
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
func (v *Run) panelTrack(l *Load) *Track {
	for _, p := range v.Data.Panels {
		if p.Kind != "workload" || p.Unit != l.Rate().Unit || len(p.Series) == 0 {
			continue
		}
		first := &p.Series[0]
		same := slices.IndexFunc(p.Series,
			func(s result.Series) bool { return s.Workload != l.Name || s.Step != first.Step }) < 0
		if !same || !(first.Step > 0) || !IsFinite(first.Step) || len(first.Values) == 0 {
			continue
		}
		c := &Track{Origin: v.Data.Start, Start: first.Start, Step: first.Step, Ops: Gaps(len(first.Values))}
		for i := range p.Series {
			c.Add(c.Ops, &p.Series[i], nil)
		}
		return c
	}
	return nil
}

// mostDrawn bounds the points of an evidence chart.
const mostDrawn = 240

// Chart draws a rate over time, with the run's marks that fall into it.
func (v *Run) Chart(title, unit string, lines ...result.ChartLine) *result.Chart {
	c := &result.Chart{Title: title, XUnit: "s", YUnit: unit, Lines: lines}
	for _, l := range lines {
		if len(l.X) == 0 {
			continue
		}
		for _, m := range v.Data.Events {
			at := m.Time.Sub(v.Data.Start).Seconds()
			if at >= l.X[0] && at <= l.X[len(l.X)-1] && len(c.Marks) < 12 {
				c.Marks = append(c.Marks, result.ChartPlace{At: at, Text: m.Text})
			}
		}
		break
	}
	return c
}

// Line is values of a track as a line of a chart. Long ones keep the smallest and the largest value of every stretch,
// and its gap when it has one; nothing is averaged.
func (c *Track) Line(name string, values []float64) result.ChartLine {
	l := result.ChartLine{Name: name}
	put := func(i int) {
		l.X = append(l.X, Round(c.Elapsed(i)))
		if IsFinite(values[i]) {
			y := Round(values[i])
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
			case !IsFinite(values[i]):
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

// Round keeps five significant digits, which is plenty for a drawing.
func Round(x float64) float64 {
	if x == 0 || !IsFinite(x) {
		return x
	}
	p := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(x))))
	if !IsFinite(p) || p == 0 {
		return x
	}
	return math.Round(x*p) / p
}
