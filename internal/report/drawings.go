package report

import (
	"html/template"
	"time"

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
		moments = append(moments, mark{At: m.Time.Sub(origin).Seconds(), Kind: kindClass(m.Kind), Text: m.Text})
	}
	out := make([]Drawing, 0, len(panels))
	for _, p := range panels {
		d := Drawing{Title: p.Title, Problem: p.Problem, Query: p.Query}
		if c := newChart("", p.Title, p.Unit, origin, cleanSeries(p.Series)); c != nil {
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

// Shown is v with every text on one line, visible and bounded, as all documents for people have it.
func Shown[T any](v T) T { return shown(v) }

// Quantity is a value in its unit as all documents for people say it.
func Quantity(v float64, unit string) string { return quantity(v, unit) }
