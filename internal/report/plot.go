package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// Plot is a drawing of one quantity over another, with intervals.
type Plot struct {
	Title, XLabel, YLabel string
	Unit                  string // of Y, as panels have it
	Series                []PlotSeries
	Names                 []string // of the places 0, 1, ... on the X axis, when those are not numbers
}

// PlotSeries is one curve, or the points of one kind.
type PlotSeries struct {
	Name   string
	Points []PlotPoint
	Line   bool // joined; with intervals as a band
	Marks  bool // points drawn; with intervals as whiskers
	Bars   bool // from zero, beside those of other series, where X are places with Names
}

// PlotPoint is one point. Low and High are the ends of its interval; nil when it has none or that end is open.
type PlotPoint struct {
	X, Y      float64
	Low, High *float64
}

// PlotSVG writes a plot as a file that stands alone.
func PlotSVG(w io.Writer, p Plot) error {
	p = shown(p)
	const style = `<style>text{font:12px system-ui,sans-serif;fill:#566072}.e{text-anchor:end}.m{text-anchor:middle}.g{stroke:#dde1e8;fill:none}` +
		`.l{fill:none;stroke-width:1.6;stroke:var(--c)}.v{fill:var(--c);fill-opacity:.15}.o{fill:var(--c)}.i{stroke:var(--c);fill:none;stroke-width:1.4}` +
		`.s0{--c:#0b6cb8}.s1{--c:#c8501a}.s2{--c:#0f7f5f}.s3{--c:#9c4a86}.s4{--c:#a06a00}.s5{--c:#4a4fb5}.s6{--c:#5c6673}.s7{--c:#2c8f9e}</style>` +
		`<rect width="100%" height="100%" fill="#fff"/>`
	text := strings.Replace(string(p.svg()), "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	head, rest, _ := strings.Cut(text, ">")
	_, err := fmt.Fprintf(w, "%s>%s%s\n", head, style, rest)
	return err
}

// svg draws the plot; the classes are those of the report's style.
func (p Plot) svg() template.HTML { return p.draw(false) }

// draw draws the plot; headed is one whose page has its title above it and its key below.
func (p Plot) draw(headed bool) template.HTML {
	const height, named = 320, 22 // room for the name of the axis below its figures
	x0, x1, y0, y1 := p.bounds()
	label := p.Title + ": " + p.YLabel
	below := 0
	if p.XLabel != "" {
		label += " over " + p.XLabel
		below = named
	}
	d := newDrawing(label, height+below, x0, x1, y0, y1)
	d.bottom -= float64(below)
	for _, v := range valueTicks(d.y0, d.y1, p.Unit) {
		fmt.Fprintf(&d.b, `<path class="g" d="M%d %dH%d"/>`, int(d.left), d.y(v), int(d.right))
		d.text("t e", int(d.left)-8, d.y(v)+4, axisLabel(v, p.Unit))
	}
	if len(p.Names) > 0 {
		for i, name := range p.Names {
			d.text("t m", d.x(float64(i)), int(d.bottom)+18, name)
		}
	} else {
		for _, v := range valueTicks(d.x0, d.x1, "") {
			d.text("t m", d.x(v), int(d.bottom)+18, plain(v))
		}
	}
	if !headed || p.YLabel != p.Title {
		d.text("t", int(d.left), 14, p.YLabel)
	}
	if p.XLabel != "" {
		d.text("t m below", int(d.left+d.right)/2, int(d.bottom)+18+named, p.XLabel)
	}
	key := int(d.left) + 8*len([]rune(p.YLabel)) + 24
	bars := 0
	for _, s := range p.Series {
		if s.Bars {
			bars++
		}
	}
	at := 0
	for i, s := range p.Series {
		class := fmt.Sprintf("s%d", i%paletteSize)
		if s.Bars {
			d.bars(s, class, at, bars)
			at++
		}
		d.series(s, class)
		if !headed && len(p.Series) > 1 {
			fmt.Fprintf(&d.b, `<rect class="o %s" x="%d" y="6" width="12" height="8"/>`, class, key)
			d.text("t", key+16, 14, s.Name)
			key += 8*len([]rune(s.Name)) + 34
		}
	}
	d.b.WriteString(`</svg>`)
	return template.HTML(d.b.String())
}

// bounds of the data; zero is always on the Y axis.
func (p Plot) bounds() (x0, x1, y0, y1 float64) {
	x0, x1 = math.Inf(1), math.Inf(-1)
	for _, s := range p.Series {
		for _, q := range s.Points {
			x0, x1 = min(x0, q.X), max(x1, q.X)
			y0, y1 = min(y0, q.Y), max(y1, q.Y)
			if q.Low != nil && finite(*q.Low) {
				y0 = min(y0, *q.Low)
			}
			if q.High != nil && finite(*q.High) {
				y1 = max(y1, *q.High)
			}
		}
	}
	if x0 > x1 {
		x0, x1 = 0, 1
	}
	if len(p.Names) > 0 {
		x0, x1 = -0.5, float64(len(p.Names))-0.5
	} else {
		x0 = min(x0, 0)
	}
	return x0, x1, y0, y1 * 1.06
}

// bars draws series number i of n that share the width of a place.
func (d *drawing) bars(s PlotSeries, class string, i, n int) {
	const share = 0.8 // of the width that bars take
	for _, q := range s.Points {
		from := d.x(q.X + share*(float64(i)/float64(n)-0.5))
		to := d.x(q.X + share*(float64(i+1)/float64(n)-0.5))
		if top, bottom := d.y(max(q.Y, 0)), d.y(min(q.Y, 0)); bottom > top {
			fmt.Fprintf(&d.b, `<rect class="o %s" x="%d" y="%d" width="%d" height="%d"/>`, class, from, top,
				max(1, to-from-1), bottom-top)
		}
	}
}

func (d *drawing) series(s PlotSeries, class string) {
	low := func(q PlotPoint) int {
		if q.Low == nil {
			return int(d.bottom)
		}
		return d.y(max(*q.Low, d.y0))
	}
	high := func(q PlotPoint) int {
		if q.High == nil {
			return int(d.top)
		}
		return d.y(min(*q.High, d.y1))
	}
	interval := func(q PlotPoint) bool { return q.Low != nil || q.High != nil }
	if s.Line {
		var up, down, line strings.Builder
		for i, q := range s.Points {
			fmt.Fprintf(&line, "L%d %d", d.x(q.X), d.y(q.Y))
			if back := s.Points[len(s.Points)-1-i]; interval(q) && interval(back) {
				fmt.Fprintf(&up, "L%d %d", d.x(q.X), high(q))
				fmt.Fprintf(&down, "L%d %d", d.x(back.X), low(back))
			}
		}
		if up.Len() > 0 && !s.Marks {
			fmt.Fprintf(&d.b, `<path class="v %s" d="M%s%sZ"/>`, class, up.String()[1:], down.String())
		}
		if line.Len() > 0 {
			fmt.Fprintf(&d.b, `<path class="l %s" d="M%s"/>`, class, line.String()[1:])
		}
	}
	if !s.Marks {
		return
	}
	for _, q := range s.Points {
		if interval(q) {
			fmt.Fprintf(&d.b, `<path class="i %s" d="M%d %dV%d`, class, d.x(q.X), low(q), high(q))
			if q.High != nil { // an end that is open has no bar, nor has one that a chart leaves out
				d.b.WriteString("m-4 0h8")
			}
			if q.Low != nil {
				fmt.Fprintf(&d.b, "M%d %dh8", d.x(q.X)-4, low(q))
			}
			d.b.WriteString(`"/>`)
		}
		fmt.Fprintf(&d.b, `<circle class="o %s" cx="%d" cy="%d" r="5"/>`, class, d.x(q.X), d.y(q.Y))
	}
}
