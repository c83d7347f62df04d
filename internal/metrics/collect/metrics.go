package collect

import (
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// formula is one report metric of the language. The language only names them; what each computes is ours and is printed
// with it.
type formula struct {
	name, text string
	unit       string // "" is the panel's
	of         func([]float64) float64
	worst      func(a, b float64) bool // a is worse than b
}

func higher(a, b float64) bool { return a > b }
func lower(a, b float64) bool  { return a < b }

var formulas = map[string][]formula{
	"Variability": {
		{"Variability", "coefficient of variation of the series' values: sample standard deviation / mean (our " +
			"formula; lower is better)", "%", variation, higher},
		{"Standard deviation", "sample standard deviation of the series' values", "", deviation, higher},
		{"Range", "largest minus smallest of the series' values", "", func(v []float64) float64 {
			return slices.Max(v) - slices.Min(v)
		}, higher},
	},
	"Min":     {{"Min", "smallest of the series' values", "", slices.Min[[]float64], lower}},
	"Mean":    {{"Mean", "mean of the series' values", "", mean, lower}},
	"Median":  {{"Median", "median of the series' values", "", median, lower}},
	"Max":     {{"Max", "largest of the series' values", "", slices.Max[[]float64], higher}},
	"AnyFail": {{"AnyFail", "1 when any value is not 0, else 0", "bool", anyFail, higher}},
}

// metricsOf computes the report metrics a result asks for: of its one series, or the median and the worst over several.
func metricsOf(names []string, p result.Panel) []result.Metric {
	var out []result.Metric
	for _, name := range names {
		for _, f := range formulas[name] { // NoScore has none
			out = append(out, f.over(p)...)
		}
	}
	return out
}

// reportMetrics are the metrics that a result asks for. Of a rate, a bandwidth or a latency of VMs they are of the time
// from the first start of the group's workloads to their last end: before and after it the zeros are of no workload,
// and a mean over them is nobody's rate. Of a group without workloads only zeros make no figures. A panel of which
// something is left out says so. A point that the first start falls into is of a part of its time only: it is left out
// where others follow.
func (c *panelist) reportMetrics(r scenario.Result, p *result.Panel) []result.Metric {
	if r.Kind != scenario.GroupResult || !slices.Contains([]string{"ops/s", "bytes/s", "us"}, p.Unit) {
		return metricsOf(r.Metrics, *p)
	}
	from, to := c.data.WorkloadsOf(r.Group)
	if from.IsZero() {
		did := func(s result.Series) bool {
			return slices.ContainsFunc(s.Values, func(v *float64) bool { return v != nil && *v != 0 })
		}
		if len(r.Metrics) > 0 && len(p.Series) > 0 && !slices.ContainsFunc(p.Series, did) {
			p.Notes = append(p.Notes, "no workload of "+r.Group+" ran, all values are 0: no figures are made of them")
			return nil
		}
		return metricsOf(r.Metrics, *p)
	}
	worked, left := *p, 0
	worked.Series = make([]result.Series, len(p.Series))
	for i, s := range p.Series {
		worked.Series[i] = s
		values, partly := slices.Clone(s.Values), -1
		for k := range values {
			at := s.Start.Add(time.Duration(float64(k) * s.Step * float64(time.Second)))
			switch begun := at.Add(-time.Duration(s.Step * float64(time.Second))); {
			case values[k] == nil:
			case at.Before(from) || at.After(to):
				values[k] = nil
				left++
			case begun.Before(from):
				partly = k
			case partly >= 0:
				values[partly], partly = nil, -1
			}
		}
		worked.Series[i].Values = values
	}
	out := metricsOf(r.Metrics, worked)
	if left > 0 && len(out) > 0 {
		p.Notes = append(
			p.Notes,
			fmt.Sprintf("the figures are of the %s from the first start of workloads of %s to their last end",
				unit.Duration(to.Sub(from).Round(time.Second)), r.Group),
		)
	}
	return out
}

func (f formula) over(p result.Panel) []result.Metric {
	of := f.unit
	if of == "" {
		of = p.Unit
	}
	type one struct {
		series string
		value  float64
	}
	var all []one
	for _, s := range p.Series {
		var values []float64
		for _, v := range s.Values {
			if v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			continue
		}
		if v := f.of(values); !math.IsNaN(v) && !math.IsInf(v, 0) {
			all = append(all, one{s.Name, significant(v, 9)})
		}
	}
	worseUp := f.worst
	if p.Unit == "us" && f.unit == "" {
		worseUp = higher // of latencies, more is worse
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return []result.Metric{{Name: f.name, Series: all[0].series, Value: all[0].value, Unit: of, Formula: f.text}}
	}
	worst, values := all[0], []float64(nil)
	for _, o := range all {
		values = append(values, o.value)
		if worseUp(o.value, worst.value) {
			worst = o
		}
	}
	return []result.Metric{
		{
			Name:    f.name + " (median)",
			Series:  fmt.Sprintf("median of %d series", len(all)),
			Value:   significant(median(values), 9),
			Unit:    of,
			Formula: f.text + "; median over the series",
		},
		{
			Name:    f.name + " (worst)",
			Series:  worst.series,
			Value:   worst.value,
			Unit:    of,
			Formula: f.text + "; worst of the series",
		},
	}
}

func mean(v []float64) float64 { return sum(v) / float64(len(v)) }

// deviation is the sample standard deviation; NaN with fewer than two values.
func deviation(v []float64) float64 {
	if len(v) < 2 {
		return math.NaN()
	}
	m, s := mean(v), 0.0
	for _, x := range v {
		s += (x - m) * (x - m)
	}
	return math.Sqrt(s / float64(len(v)-1))
}

// variation is in percent; NaN where the mean is 0.
func variation(v []float64) float64 {
	m := mean(v)
	if m == 0 {
		return math.NaN()
	}
	return 100 * deviation(v) / math.Abs(m)
}

func anyFail(v []float64) float64 {
	for _, x := range v {
		if x != 0 {
			return 1
		}
	}
	return 0
}
