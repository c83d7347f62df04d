package report

import (
	"fmt"
	"html/template"
	"strings"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/unit"
)

// Peek is what a list shows of an experiment: its first figure, and what its row opens into.
type Peek struct {
	Figure   string
	Sentence string // the best point, or the mark
	Cells    []PeekCell
	More     int           // cells that are not among them
	Chart    template.HTML // the curve; "" where there is none
	Caption  string        // of the chart
}

// PeekCell is a combination with its first measure.
type PeekCell struct{ Name, Value, Interval, Runs string }

// mostPeeked is how many combinations a list shows of one experiment; its page has all.
const mostPeeked = 12

// PeekOf is what a list shows of an experiment, with texts made visible.
func PeekOf(x *compare.Experiment) Peek {
	x = shown(x)
	p := Peek{Figure: experimentFigure(x), Sentence: x.Sentence}
	if short := ExperimentShort(x); len(short) > 0 {
		p.Sentence = short[0]
	}
	for i, c := range x.Cells {
		if i == mostPeeked {
			p.More = len(x.Cells) - i
			break
		}
		if len(c.Values) > 0 {
			v := c.Values[0]
			p.Cells = append(p.Cells, PeekCell{c.Cell, quantity(v.Value, v.Unit) + " " + measureName("", v.Workload,
				v.Name), cellInterval(v), unit.Plural(len(c.Runs), "run")})
		}
	}
	plots := markPlots(x)
	for _, c := range x.Charts {
		plots = append(plots, chartPlot(c))
	}
	if len(plots) > 0 {
		p.Chart, p.Caption = plots[0].svg(), plots[0].Title
	}
	return p
}

// experimentFigure is the first figure of an experiment: the mark of a search, else the most that a combination did.
func experimentFigure(x *compare.Experiment) string {
	if x.Mark != nil {
		return markFigure(x.Mark)
	}
	at := func(v compare.CellValue, cell string) string {
		name := measureName("", v.Workload, v.Name)
		if len(x.Cells) > 1 {
			name = strings.TrimSpace(name + " at " + cell)
		}
		return fmt.Sprintf("%s (%s)", quantity(v.Value, v.Unit), name)
	}
	if len(x.Best) > 0 {
		return at(x.Best[0].Rate, x.Best[0].Cell)
	}
	for _, c := range x.Cells {
		if len(c.Values) > 0 {
			return at(c.Values[0], c.Cell)
		}
	}
	return ""
}

// markFigure is a mark as a figure: a number with its interval, or the bound that is known of it.
func markFigure(a *loadmark.Answer) string {
	if a.Rate == nil {
		return "no mark: " + string(a.Verdict)
	}
	say := func(rate float64) string { return loadmark.InUnit(rate, a.Unit) }
	switch a.Verdict {
	case loadmark.Found:
		return fmt.Sprintf("mark %s (%s to %s)", say(*a.Rate), say(*a.Low), say(*a.High))
	case loadmark.AtLeast, loadmark.Generator:
		return "mark at least " + say(*a.Rate)
	case loadmark.Below:
		return "mark below " + say(*a.Rate)
	}
	return fmt.Sprintf("no mark: %s", a.Verdict)
}
