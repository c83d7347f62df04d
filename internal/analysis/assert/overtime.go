package assert

import (
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// As little as this gives no interval: points in time, and independent ones that they are worth.
const (
	fewestPoints = 20
	fewestWorth  = 4
)

// overTime is the interval of a rate, a bandwidth or a mean latency, from how it went over time: another stretch of the
// same time could lie as far away. Its ends are equal where there is none: of several starts, of windows that differ on
// purpose, where nothing is known over time, or too little.
func overTime(d *result.Data, a result.Assert, value float64) (low, high float64) {
	if !slices.Contains([]string{"operations", "bandwidth", "mean"}, a.Measure) {
		return 0, 0
	}
	v := view.New(result.Manifest{}, d)
	var l *view.Load
	for _, one := range v.Loads {
		if one.Name == a.Workload {
			if l != nil {
				return 0, 0
			}
			l = one
		}
	}
	if l == nil || len(l.Parts) != 1 || len(v.Comparable(l)) > 1 {
		return 0, 0
	}
	c := trackOf(v, l, a.Operation)
	if c == nil {
		return 0, 0
	}
	c = c.Within(l.Times())
	values, weights := c.Ops, []float64(nil)
	switch a.Measure {
	case "bandwidth":
		values = c.Bytes
	case "mean":
		values, weights = c.Busy, c.Ops
	}
	relative, dof := errorOf(values, weights)
	if !(relative > 0) {
		return 0, 0
	}
	far := value * relative * resample.StudentT(confidence, dof)
	return max(value-far, 0), value + far
}

// trackOf returns what an operation of a workload did over time, or all of them; nil where no series is its alone.
func trackOf(v *view.Run, l *view.Load, operation string) *view.Track {
	of := func(s *result.Series) bool {
		return s.Group == l.Group && s.Section == "" && (operation == "all" || s.Op == operation)
	}
	if c := v.Sum("", func(s *result.Series) bool { return of(s) && s.VM == "" && s.Workload == l.Name }); c != nil {
		return c
	}
	if slices.ContainsFunc(v.Loads, func(o *view.Load) bool { return o != l && o.Group == l.Group }) {
		return nil
	}
	return v.Sum("", func(s *result.Series) bool { return of(s) && s.VM != "" && s.Workload == "" })
}

// errorOf is the standard error of the mean of a course, or of the ratio of two, relative to it, and its degrees of
// freedom.
func errorOf(values, weights []float64) (relative, dof float64) {
	var terms, by []float64
	var sum, all float64
	for i, v := range values {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if !view.IsFinite(v) || !view.IsFinite(w) {
			continue
		}
		terms, by, sum, all = append(terms, v), append(by, w), sum+v, all+w
	}
	if len(terms) < fewestPoints || !(sum > 0) || !(all > 0) {
		return 0, 0
	}
	for i := range terms {
		terms[i] -= sum / all * by[i]
	}
	s := serial.SumOf(terms, nil)
	if s.Worth < fewestWorth {
		return 0, 0
	}
	return math.Sqrt(s.Variance) / sum, s.DOF
}
