package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/result"
)

// chart is series on one common, regular grid; nothing of it is rounded yet. NaN is a gap.
type chart struct {
	ID       string
	Title    string
	Unit     string
	YLabel   string
	Start    float64 // seconds since the run phase began
	Step     float64 // seconds
	Names    []string
	Values   [][]float64
	Bands    []result.Band
	Expected *float64
	Reduced  int       // points each shown point stands for; 1 when all are there
	Log      []float64 // ends of the value axis when it is logarithmic
	Cap      *float64  // upper end of the value axis when one short peak lies above it
	Whole    bool      // all values are whole numbers
}

// maxGrid bounds a chart's grid: a day at one second.
const maxGrid = 100_000

// newChart puts series on the finest of their grids. A series on a coarser one holds its value until its next.
func newChart(id, title, unit string, origin time.Time, series []result.Series) *chart {
	if !slices.Contains(ourUnits, unit) && !strings.Contains(title, unit) {
		title += " (" + unit + ")"
	}
	c := &chart{ID: id, Title: title, Unit: unit, Step: math.Inf(1), Reduced: 1}
	start, end := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		if len(s.Values) == 0 {
			continue
		}
		from := s.Start.Sub(origin).Seconds()
		start, end, c.Step = min(start, from), max(end, from+s.Step*float64(len(s.Values))), min(c.Step, s.Step)
	}
	if !finite(start) || !finite(c.Step) {
		return nil
	}
	if (end-start)/c.Step > maxGrid {
		c.Step = (end - start) / maxGrid
	}
	c.Start = start
	n := int(math.Round((end - start) / c.Step))
	for _, s := range series {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.NaN()
			at := int(math.Floor((start+float64(i)*c.Step-s.Start.Sub(origin).Seconds())/s.Step + 1e-6))
			if at >= 0 && at < len(s.Values) && s.Values[at] != nil {
				values[i] = *s.Values[at]
			}
		}
		c.Names = append(c.Names, s.Name)
		c.Values = append(c.Values, values)
	}
	return c
}

// points is the number of values in a chart.
func (c *chart) points() int {
	if len(c.Values) == 0 {
		return 0
	}
	return len(c.Values) * len(c.Values[0])
}

// slots is how many points stand for one bucket after reduction: its extremes in the order they came, and a gap or its
// last value.
const slots = 3

// reduce returns the chart with at most about budget points. Each bucket keeps its smallest and its largest value and
// a gap when there was one, so neither peaks nor holes are lost; nothing is averaged.
func (c *chart) reduce(budget int) *chart {
	if c.points() <= budget {
		return c
	}
	n := len(c.Values[0])
	buckets := max(budget/(len(c.Values)*slots), 20)
	size := (n + buckets - 1) / buckets
	if size < 2*slots {
		size = 2 * slots
	}
	r := *c
	r.Reduced, r.Step, r.Values = size, c.Step*float64(size)/slots, nil
	for _, v := range c.Values {
		var out []float64
		for i := 0; i < n; i += size {
			triple := extremes(v[i:min(i+size, n)])
			out = append(out, triple[:]...)
		}
		r.Values = append(r.Values, out)
	}
	return &r
}

// A chart of more than mostLines keeps three times tells of them for the script.
const (
	mostLines = 100
	tells     = 10
)

// thinned is the chart with fewer lines when it has very many: the lowest and the highest by the median of their
// points, and some evenly between, in their old order.
func (c *chart) thinned() *chart {
	n := len(c.Values)
	if n <= mostLines {
		return c
	}
	middle := make([]float64, n)
	order := make([]int, n)
	for i, v := range c.Values {
		order[i], middle[i] = i, math.Inf(-1)
		if known := slices.DeleteFunc(slices.Clone(v), math.IsNaN); len(known) > 0 {
			slices.Sort(known)
			middle[i] = known[len(known)/2]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
	kept := slices.Concat(order[:tells], order[n-tells:])
	for k := range tells {
		kept = append(kept, order[tells+(2*k+1)*(n-2*tells)/(2*tells)])
	}
	slices.Sort(kept)
	s := *c
	s.Names, s.Values = nil, nil
	for _, i := range slices.Compact(kept) {
		s.Names, s.Values = append(s.Names, c.Names[i]), append(s.Values, c.Values[i])
	}
	return &s
}

// extremes are the smallest and largest value and, where there is one, a gap, in the order of time. Without a gap the
// bucket's last value follows.
func extremes(v []float64) [slots]float64 {
	low, high, gap := -1, -1, -1
	for i, x := range v {
		switch {
		case math.IsNaN(x):
			if gap < 0 {
				gap = i
			}
		case low < 0:
			low, high = i, i
		case x < v[low]:
			low = i
		case x > v[high]:
			high = i
		}
	}
	nan := math.NaN()
	if low < 0 {
		return [slots]float64{nan, nan, nan}
	}
	first, second := min(low, high), max(low, high)
	switch {
	case gap < 0:
		return [slots]float64{v[first], v[second], v[len(v)-1]}
	case gap < first:
		return [slots]float64{nan, v[first], v[second]}
	case gap < second:
		return [slots]float64{v[first], nan, v[second]}
	}
	return [slots]float64{v[first], v[second], nan}
}

// ends are the smallest and the largest value, as text; dashes where there is none.
func (c *chart) ends(unit string) (low, high string) {
	if c != nil {
		if a, b, ok := c.span(); ok {
			return quantity(a, unit), quantity(b, unit)
		}
	}
	return none, none
}

// span is the range of a chart's values and its expected value; ok is false when there are none.
func (c *chart) span() (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	if c.Expected != nil {
		low, high = *c.Expected, *c.Expected
	}
	seen := false
	for _, values := range c.Values {
		for _, v := range values {
			if !math.IsNaN(v) {
				low, high, seen = min(low, v), max(high, v), true
			}
		}
	}
	return low, high, seen
}

// peak is how many times what it reaches otherwise a rate must exceed in one short stretch for the axis to be cut below
// it.
const peak = 3

// cap cuts the axis of a chart of rates when a single stretch of less than a twentieth of its time lies more than three
// times as high as all the rest: on the whole axis the rest could not be told from a flat line. Latencies are never
// cut; of those the peaks matter.
func (c *chart) cap() {
	c.Whole = !slices.ContainsFunc(c.Values, func(v []float64) bool {
		return slices.ContainsFunc(v, func(x float64) bool { return !math.IsNaN(x) && x != math.Trunc(x) })
	})
	if c.Unit != "ops/s" && c.Unit != "bytes/s" || c.Log != nil || len(c.Values) == 0 {
		return
	}
	highest := make([]float64, len(c.Values[0])) // at each moment
	for i := range highest {
		for _, v := range c.Values {
			if !math.IsNaN(v[i]) {
				highest[i] = max(highest[i], v[i])
			}
		}
	}
	sorted := slices.Sorted(slices.Values(highest))
	usual := sorted[len(sorted)*95/100]
	if c.Expected != nil {
		usual = max(usual, *c.Expected)
	}
	if !(usual > 0) || sorted[len(sorted)-1] <= peak*usual {
		return
	}
	first := slices.IndexFunc(highest, func(v float64) bool { return v > peak*usual })
	last := len(highest) - 1
	for highest[last] <= peak*usual {
		last--
	}
	if (last-first+1)*20 > len(highest) {
		return
	}
	for i, v := range highest { // the flanks of the peak
		if i < first-2 || i > last+2 {
			usual = max(usual, v)
		}
	}
	if highest[first] > peak*usual {
		top := 1.3 * usual
		c.Cap = &top
	}
}

// wideRange is how many times the usual high values of a chart of durations must exceed its usual low ones for a
// logarithmic axis: on a straight one the low ones could not be told from nothing.
const wideRange = 30

// decades are the ends of a logarithmic axis, whole powers of ten around the values, when the chart needs one:
// durations whose 95th percentile over time is more than wideRange times the 5th. Otherwise nil.
func (c *chart) decades() []float64 {
	if c.Unit != "us" && c.Unit != "s" || len(c.Bands) > 0 {
		return nil
	}
	var all []float64
	for _, values := range c.Values {
		for _, v := range values {
			switch {
			case v > 0:
				all = append(all, v)
			case v <= 0:
				return nil
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	if all[len(all)*95/100] <= wideRange*all[len(all)*5/100] {
		return nil
	}
	low, high := all[0], all[len(all)-1]
	if c.Expected != nil && *c.Expected > 0 {
		low, high = min(low, *c.Expected), max(high, *c.Expected)
	}
	return []float64{math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))}
}

// appendValue prints v with four significant digits as JSON, null for a gap.
func appendValue(b []byte, v float64) []byte {
	if math.IsNaN(v) {
		return append(b, "null"...)
	}
	s := strconv.FormatFloat(v, 'g', 4, 64)
	if mantissa, exponent, ok := strings.Cut(s, "e+0"); ok {
		s = mantissa + "e" + exponent
	}
	return append(b, s...)
}
