package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// Chart is one measure over the levels of the last factor, a line for every combination of the others.
type Chart struct {
	Title  string      `json:"title"`
	Unit   string      `json:"unit"`
	XLabel string      `json:"x_label"`
	Names  []string    `json:"levels"`
	Lines  []ChartLine `json:"lines"`
}

// ChartLine is one line of a chart.
type ChartLine struct {
	Name   string       `json:"name"`
	Points []ChartPoint `json:"points"`
}

// ChartPoint is a cell in a chart; X is the number of its level.
type ChartPoint struct {
	X        int               `json:"x"`
	Y        float64           `json:"y"`
	Interval resample.Interval `json:"interval"`
}

// charts are one for every kind, and one for the percentiles of times. Where all workloads are one load on several
// devices these stand on one chart.
func (x *Experiment) charts(d Design, all []kind) {
	if len(d.Factors) == 0 {
		return
	}
	together := d.onDevices()
	add := func(workload, name, title, unit string, line func(others string) string) {
		last := d.Factors[len(d.Factors)-1]
		c := Chart{Title: workload + " " + title, Unit: unit, XLabel: last.Name, Names: last.Levels}
		if together {
			c.Title = title
		}
		i := slices.IndexFunc(x.Charts, func(o Chart) bool { return o.Title == c.Title })
		if i < 0 {
			i, x.Charts = len(x.Charts), append(x.Charts, c)
		}
		x.Charts[i].Lines = append(x.Charts[i].Lines, x.lines(d, workload, name, line)...)
	}
	for _, k := range all {
		who := func(others string) string {
			if together {
				return strings.TrimSpace(k.workload + " " + others)
			}
			return others
		}
		add(k.workload, k.name, k.name, k.unit, who)
		if k.times == "" {
			continue
		}
		title := strings.TrimSuffix(k.name, " mean "+k.times) + " " + k.times + bothQuantiles
		for _, q := range shownQuantiles {
			add(k.workload, k.percentile(q), title, k.unit, func(others string) string {
				return strings.TrimSpace(fmt.Sprintf("%s p%g", who(others), q*100))
			})
		}
	}
	x.Charts = slices.DeleteFunc(x.Charts, func(c Chart) bool { return len(c.Lines) == 0 })
}

// lines are a measure over the levels of the last factor, one for every combination of the others.
func (x *Experiment) lines(d Design, workload, name string, called func(others string) string) (out []ChartLine) {
	last := len(d.Factors) - 1
	for _, others := range combinations(d.Factors[:last]) {
		line := ChartLine{Name: called(labelOf(d.Factors[:last], others))}
		for i, level := range d.Factors[last].Levels {
			for _, cell := range x.Cells {
				if !slices.Equal(cell.Levels, append(slices.Clone(others), level)) {
					continue
				}
				for _, v := range cell.Values {
					if v.Workload == workload && v.Name == name {
						line.Points = append(line.Points, ChartPoint{X: i, Y: v.Value, Interval: v.Interval})
					}
				}
			}
		}
		if len(line.Points) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// bothQuantiles ends the title of a chart with a line for each of shownQuantiles.
const bothQuantiles = " p50 and p99"

// OverCurves lays the curves of experiments, one for each side, over each other: a chart for every measure and every
// combination of the factors but the last, on which two sides or more have a line.
func (d *Document) OverCurves(sides []*Experiment) {
	var all []Chart
	for n, x := range sides {
		for _, c := range x.Charts {
			for _, line := range c.Lines {
				title := strings.TrimSuffix(c.Title, bothQuantiles) // of which the line's name has one
				one := Chart{Title: strings.TrimSpace(title + " " + line.Name), Unit: c.Unit, XLabel: c.XLabel}
				i := slices.IndexFunc(all, func(o Chart) bool {
					return o.Title == one.Title && o.Unit == one.Unit && o.XLabel == one.XLabel
				})
				if i < 0 {
					i, all = len(all), append(all, one)
				}
				over := ChartLine{Name: d.Sides[n].Name}
				for _, p := range line.Points {
					at := slices.Index(all[i].Names, c.Names[p.X])
					if at < 0 {
						at, all[i].Names = len(all[i].Names), append(all[i].Names, c.Names[p.X])
					}
					p.X = at
					over.Points = append(over.Points, p)
				}
				all[i].Lines = append(all[i].Lines, over)
			}
		}
	}
	d.Curves = slices.DeleteFunc(all, func(c Chart) bool { return len(c.Lines) < 2 })
}

// mixes are the rate and the mean time of all operations of a workload together, where a factor changes their mix.
func (d Design) mixes() (out []kind) {
	for f := range d.Factors {
		for _, w := range merged(d.Made[0].Data, false) {
			if d.changes(f, w.Name) != ReadShare ||
				slices.ContainsFunc(out, func(k kind) bool { return k.workload == w.Name }) {
				continue
			}
			out = append(out, kind{workload: w.Name, op: allOps, name: "read and write IOPS", unit: "ops/s",
				direction: effect.HigherIsBetter, throughput: true,
				value: func(w result.Workload, o result.OpTotals) float64 {
					return float64(o.Count) / w.Seconds()
				}})
			if times := cmp.Or(w.Latency, "service time"); !slices.ContainsFunc(w.Ops, func(o result.OpTotals) bool {
				return o.Count > 0 && !(o.Seconds > 0)
			}) {
				out = append(out, kind{workload: w.Name, op: allOps, name: "read and write mean " + times, unit: "s",
					direction: effect.LowerIsBetter, times: times,
					value: func(_ result.Workload, o result.OpTotals) float64 {
						return o.Seconds / float64(o.Count)
					}})
			}
		}
	}
	return out
}
