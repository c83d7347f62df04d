package report

import (
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/history"
	"plimsoll/result"
)

// Style is the look of all pages.
func Style() template.CSS {
	css, err := embedded.ReadFile("assets/report.css")
	if err != nil {
		return "" // it is in the program, or the program was not built
	}
	return template.CSS(css)
}

// Drawing is one result of a run as a still chart, for pages that are made anew again and again.
type Drawing struct {
	Title   string
	SVG     template.HTML // "" when there is nothing to draw
	Names   []string      // of the lines, in the order of their colours; none when there are too many to tell apart
	Notes   []string
	Problem string // why there is nothing to draw
	Query   string // PromQL; may be ""
}

// Drawings are panels as the report draws them. Time is counted from origin; marks are drawn where they lie in it.
func Drawings(panels []result.Panel, marks []result.Mark, origin time.Time) []Drawing {
	panels, marks = shown(panels), shown(marks)
	var moments []mark
	for _, m := range marks {
		moments = append(moments, mark{At: m.Time.Sub(origin).Seconds(), Kind: kindClass(m.Strikes()), Text: m.Text})
	}
	out := make([]Drawing, 0, len(panels))
	for _, p := range panels {
		d := Drawing{Title: p.Title, Problem: p.Problem, Query: p.Query}
		lines := slices.DeleteFunc(cleanSeries(p.Series), func(s result.Series) bool { // such as a load yet to come
			return !slices.ContainsFunc(s.Values, func(v *float64) bool { return v != nil })
		})
		if c := newChart("", p.Title, p.Unit, origin, lines); c != nil {
			c.Bands, c.Expected = p.Bands, p.Expected
			c.Log = c.decades()
			c.Names = tellApart(c.Names)
			d.Title, d.SVG = c.Title, c.svg(moments)
			d.Notes = c.backdrop()
			if len(c.Names) > 1 && len(c.Names) <= svgLines {
				d.Names = c.Names
			}
			for _, n := range p.Notes {
				d.Notes = append(d.Notes, capital(n)+".")
			}
		}
		if d.SVG == "" && d.Problem == "" {
			d.Problem = "no value in the run's time"
		}
		out = append(out, d)
	}
	return out
}

// HistoryDrawing is a measure of a history over its results, with the levels between its changes.
func HistoryDrawing(measure string, points []history.Point, changes []history.Change) Drawing {
	results := PlotSeries{Name: "results", Marks: true}
	levels := []PlotSeries{{Line: true}}
	var level *float64 // of the results since the last change
	for i, p := range points {
		for _, c := range changes {
			if c.At != p.Label {
				continue
			}
			for j := range levels[len(levels)-1].Points {
				levels[len(levels)-1].Points[j].Y = c.Before
			}
			level = &c.After
			levels = append(levels, PlotSeries{Line: true})
		}
		if v, has := p.Values[measure]; has {
			results.Points = append(results.Points, PlotPoint{X: float64(i + 1), Y: v})
			if len(changes) > 0 {
				last := &levels[len(levels)-1]
				last.Points = append(last.Points, PlotPoint{X: float64(i + 1), Y: v})
				if level != nil {
					last.Points[len(last.Points)-1].Y = *level
				}
			}
		}
	}
	plot := shown(Plot{Title: measure, YLabel: measure, XLabel: "results, in their order",
		Series: append([]PlotSeries{results}, levels...)})
	return Drawing{Title: plot.Title, SVG: plot.draw(true)}
}

// Shown is v with every text on one line, visible and bounded, as all documents for people have it.
func Shown[T any](v T) T { return shown(v) }

// Quantity is a value in its unit as all documents for people say it.
func Quantity(v float64, unit string) string { return quantity(v, unit) }

// mostLed is of how many workloads the first chart draws the rates beside each other.
const mostLed = 6

// answered are the findings that the summary's first sentence says.
func (v *view) answered() []result.Finding {
	_, said := v.answer()
	return said
}

// lead gives the page its first chart where no finding that is not in order has one: that of what the answer says, the
// rates of workloads that ran beside each other or in turn, or the result that shows the answer's figure, which then
// does not stand among the results again.
func (v *view) lead(budget int) {
	if v.Top != nil {
		return
	}
	said := v.answered()
	for _, f := range said {
		if v.Top = newEvidence(f.Chart); v.Top != nil && f.Answers() {
			return
		}
		v.Top = nil
	}
	names := v.led(said)
	if len(names) > 1 {
		v.leadRates(names, budget)
	}
	if v.Lead == nil {
		v.leadPanel(said)
	}
	if v.Lead == nil {
		v.leadRates(names[:min(len(names), mostLed)], budget)
	}
}

// led are the workloads that the first chart is of: all where they are few, or those that the answer speaks of.
func (v *view) led(said []result.Finding) (names []string) {
	for _, w := range v.Document.Workloads {
		if !w.Prefill && !slices.Contains(names, w.Name) {
			names = append(names, w.Name)
		}
	}
	if len(names) <= mostLed {
		return names
	}
	of := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(said, func(f result.Finding) bool { return f.Subject == name })
	})
	if len(of) > 0 && len(of) <= mostLed {
		return of
	}
	return nil
}

// leadRates draws the rate of each workload over time, those of the first one's unit.
func (v *view) leadRates(names []string, budget int) {
	var all []result.Series
	var of []string // the workload of each
	unit := ""
	for _, name := range names {
		rates := slices.DeleteFunc(slices.Clone(v.Document.Series), func(s result.Series) bool {
			return s.Measure != result.Rate || s.Workload != name || s.Section != "" || unit != "" && s.Unit != unit
		})
		merged := slices.DeleteFunc(slices.Clone(rates), func(s result.Series) bool { return s.VM != "" })
		if len(merged) > 0 {
			rates = merged
		}
		for _, s := range rates {
			if unit = s.Unit; s.Unit == rates[0].Unit {
				all, of = append(all, s), append(of, name)
			}
		}
	}
	title := "Rate of each workload"
	kinds := slices.Compact(slices.Clone(of))
	if len(kinds) == 1 {
		title = "Rate of " + kinds[0]
	}
	c := newChart("", title, unit, v.origin, all)
	if c == nil || len(names) > 1 && len(kinds) < 2 {
		return
	}
	c.Names, c.Values = kinds, summed(c.Values, of)
	if chart := v.place(c, budget); chart != nil {
		v.Lead = &panelView{Panel: result.Panel{Title: c.Title}, Chart: chart}
	}
}

// summed adds up neighbours of one name; a gap is where all have one.
func summed(values [][]float64, of []string) (out [][]float64) {
	for i, row := range values {
		if i == 0 || of[i] != of[i-1] {
			out = append(out, slices.Clone(row))
			continue
		}
		sum := out[len(out)-1]
		for k, x := range row {
			switch {
			case math.IsNaN(sum[k]):
				sum[k] = x
			case !math.IsNaN(x):
				sum[k] += x
			}
		}
	}
	return out
}

// leadPanel moves that result up which is of the answer's figure, or the first that can be drawn.
func (v *view) leadPanel(said []result.Finding) {
	best, group, at := -1, 0, 0
	for i, g := range v.PanelGroups {
		for k, p := range g.Panels {
			if fit := v.fits(p, said); p.Chart != nil && fit > best {
				best, group, at = fit, i, k
			}
		}
	}
	if best < 0 {
		return
	}
	g := &v.PanelGroups[group]
	v.Lead = &panelView{}
	*v.Lead = g.Panels[at]
	if g.Panels = slices.Delete(g.Panels, at, at+1); len(g.Panels) == 0 {
		v.PanelGroups = slices.Delete(v.PanelGroups, group, group+1)
	}
}

// fits is how much a result has of what the answer says: the VMs of its workload, and a rate or a time like its figure.
func (v *view) fits(p panelView, said []result.Finding) (most int) {
	for _, f := range said {
		fit := 0
		if slices.ContainsFunc(v.Document.Workloads, func(w WorkloadSummary) bool {
			return w.Name == f.Subject && w.Group != "" && w.Group == p.VMGroup
		}) {
			fit += 2
		}
		isRate := strings.HasSuffix(f.Unit, "/s") || f.Unit == "ratio" && strings.HasPrefix(f.Metric, "rate")
		if isRate && strings.HasSuffix(p.Unit, "/s") || !isRate && (p.Unit == "us" || p.Unit == "s") {
			fit++
		}
		if f.Unit == p.Unit {
			fit++
		}
		most = max(most, fit)
	}
	return most
}
