package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/nearest"
	"plimsoll/result"
)

// calledOf is an operation in the name of a measure: "read", "new orders", "power_q1 queries" where several are.
func calledOf(w result.Workload, o result.Operation) string {
	several := func(k result.Operation) bool { return k.Noun == o.Noun && k.Name != o.Name }
	switch {
	case o.Block != "":
		return o.Name
	case o.Noun != o.Name && slices.ContainsFunc(w.Operations, several):
		return o.Name + " " + o.Noun
	}
	return cmp.Or(o.Noun, o.Name)
}

// rateName names the rate of an operation: "read IOPS", "new orders/s".
func rateName(w result.Workload, o result.Operation) string {
	if o.Block != "" {
		return o.Name + " IOPS"
	}
	return calledOf(w, o) + "/s"
}

// operationOf returns what a workload declared by a name, or that name alone.
func operationOf(w result.Workload, name string) result.Operation {
	o, ok := w.Operation(name)
	if !ok {
		o = result.Operation{Name: name, Noun: name}
	}
	o.Noun = cmp.Or(o.Noun, o.Name)
	return o
}

// whole returns what stands for all that a workload does: its operations per second, or, where it counts none, the
// first measure of which more is better.
func whole(w result.Workload) (name string, value float64, ok bool) {
	seconds := w.Seconds()
	if occurred := w.Occurred(); len(occurred) > 0 && seconds > 0 {
		var n uint64
		for _, o := range w.Ops {
			n += o.Count
		}
		if name = result.RateUnit(occurred); name == result.OperationsUnit {
			name = "IOPS"
		}
		return name, float64(n) / seconds, true
	}
	for _, m := range w.Measures {
		if v, has := m.Over(w.Values, seconds); has && m.Kind != result.Single && m.Better == result.Higher {
			return m.Name, v, true
		}
	}
	return "", 0, false
}

// countedBy are the operations and measures of a workload on both sides, in the order of the baseline, and what is
// declared in two ways under one name, which compares with nothing.
func countedBy(b, c load) (operations []result.Operation, measures []result.Measure, unlike []string) {
	object := func(what string) {
		if !slices.Contains(unlike, what) {
			unlike = append(unlike, what)
		}
	}
	for _, w := range slices.Concat(b.of, c.of) {
		for _, t := range w.Ops {
			o := operationOf(w, t.Op)
			if i := slices.IndexFunc(operations, func(k result.Operation) bool { return k.Name == o.Name }); i < 0 {
				operations = append(operations, o)
			} else if operations[i].Block != o.Block || operations[i].Noun != o.Noun {
				object("operation " + o.Name)
			}
		}
		for _, m := range w.Measures {
			if i := slices.IndexFunc(measures, func(k result.Measure) bool { return k.Name == m.Name }); i < 0 {
				measures = append(measures, m)
			} else if measures[i].Kind != m.Kind || measures[i].Unit != m.Unit {
				object("measure " + m.Name)
			}
		}
	}
	operations = slices.DeleteFunc(operations, func(o result.Operation) bool {
		return slices.Contains(unlike,
			"operation "+o.Name)
	})
	measures = slices.DeleteFunc(measures, func(m result.Measure) bool {
		return slices.Contains(unlike,
			"measure "+m.Name)
	})
	return operations, measures, unlike
}

// declared is a measure of a workload; false where a run has no value of it.
func (p pairing) declared(name string, m result.Measure, b, c load) (Measure, bool) {
	values := func(l load) (out []float64) {
		for _, w := range l.of {
			if v, ok := m.Over(w.Values, w.Seconds()); ok {
				out = append(out, v)
			}
		}
		return out
	}
	bv, cv := values(b), values(c)
	if len(bv) < len(b.of) || len(cv) < len(c.of) {
		return Measure{}, false
	}
	out := Measure{Side: p.side, Cell: p.cell, Workload: name, Name: m.Name, Unit: m.SeriesUnit(),
		Direction: string(p.options.directionOf(m))}
	if m.Kind == result.Single {
		out.beyond = stated(m.Name, slices.Concat(b.of, c.of))
		out.warnOfFew()
	}
	over := func(w result.Workload, r Run) ratioSeries { return rateSeries(w, r, "", m.Name) }
	p.values(&out, bv, cv, b.runs, c.runs, func() ([]ratioSeries, []ratioSeries) {
		if m.Kind == result.Single {
			none := []ratioSeries{{reason: "a figure that the tool made by itself: only repeats say how it varies"}}
			return none, none
		}
		return seriesOf(b, over), seriesOf(c, over)
	})
	return out, true
}

var statedPercentile = lazyregexp.New(`(?:^|[ _])p(\d{1,2}(?:\.\d+)?)(?:_[a-z]+)?$`)

// stated is how many operations lie beyond a percentile that a tool states, in the one of some workloads that did
// least: one beyond a largest value; 0 for what is none of these, or where nothing was counted.
func stated(name string, of []result.Workload) float64 {
	if strings.HasSuffix(name, "_max") {
		return 1
	}
	m := statedPercentile.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	percent, _ := strconv.ParseFloat(m[1], 64)
	least := math.Inf(1)
	for _, w := range of {
		var all, named uint64
		for _, o := range w.Ops {
			if all += o.Count; strings.Contains(" "+name, " "+o.Op+"_") {
				named += o.Count
			}
		}
		least = min(least, float64(cmp.Or(named, all)))
	}
	return least * (100 - percent) / 100
}

// directionOf is which way of a measure is good: as the caller says, as all its declarations do, or as its name says.
func (o Options) directionOf(measures ...result.Measure) effect.Direction {
	var out effect.Direction
	for i, m := range measures {
		way := cmp.Or(o.Better[m.Name], effect.Direction(m.Better), DirectionOf(m.Name, m.Unit))
		if i > 0 && way != out {
			return ""
		}
		out = way
	}
	if out != effect.HigherIsBetter && out != effect.LowerIsBetter {
		return ""
	}
	return out
}

// measuresOf are the declarations of a series that holds a declared measure.
func measuresOf(s result.Series, d *result.Data) (out []result.Measure) {
	for _, w := range d.Workloads {
		if s.Op != "" || s.Group != "" && s.Group != w.Group || s.Workload != "" && s.Workload != w.Name {
			continue
		}
		for _, m := range w.Measures {
			if m.Name == s.Measure {
				out = append(out, m)
			}
		}
	}
	return out
}

// direction is which way a quantity is good by its unit, as what the run's engines declare has it, or by its name; ""
// when that cannot be told.
func direction(name, unit string, d *result.Data, o Options) effect.Direction {
	switch unit {
	case result.OperationsUnit, "bytes/s":
		return effect.HigherIsBetter
	case "us", "s":
		return effect.LowerIsBetter
	}
	var measures []result.Measure
	for _, w := range d.Workloads {
		for _, op := range w.Operations {
			if op.RateUnit() == unit {
				return effect.HigherIsBetter
			}
		}
		for _, m := range w.Measures {
			if m.SeriesUnit() == unit {
				measures = append(measures, m)
			}
		}
	}
	if len(measures) > 0 {
		return o.directionOf(measures...)
	}
	return DirectionOf(name, unit)
}

// askDirections asks of measures that moved which way of them is good, where that is not known.
func askDirections(list []Measure) (notes []string) {
	for _, m := range list {
		if m.Result || m.Verdict != Higher && m.Verdict != Lower {
			continue
		}
		looks := ""
		if way := Looks(m.Name, m.Unit); way != "" {
			is := Worse
			if (way == effect.HigherIsBetter) == (m.Verdict == Higher) {
				is = Better
			}
			looks = fmt.Sprintf("; by its name it looks %s, which is a guess", is)
		}
		note := fmt.Sprintf("Direction unknown: which way of %s is good is not known, so it is %s and neither better nor "+
			"worse%s. Say it: --better %q, or higher.",
			m.Name, m.Verdict, looks, m.Name+"=lower")
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// unknownMeasures objects to directions of measures that no run has.
func unknownMeasures(sides []Side, better map[string]effect.Direction) error {
	var known []string
	for _, s := range sides {
		for _, r := range s.Runs {
			for _, w := range r.Data.Workloads {
				for _, m := range w.Measures {
					if !slices.Contains(known, m.Name) {
						known = append(known, m.Name)
					}
				}
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(better)) {
		switch like := nearest.Of(name, known); {
		case slices.Contains(known, name):
		case len(known) == 0:
			errs = append(errs, fmt.Errorf("compare: --better %s: these runs declare no measures; of operations and "+
				"times it is known which way is good", name))
		case like != "":
			errs = append(errs, fmt.Errorf("compare: --better %s: no measure is called so; did you mean %q?", name,
				like))
		default:
			errs = append(errs, fmt.Errorf("compare: --better %s: no measure is called so; there are: %q", name, known))
		}
	}
	return errors.Join(errs...)
}
