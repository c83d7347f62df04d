package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"plimsoll/result"
)

// Measures of a finding's small chart, in its own units.
const (
	evidenceWidth, evidenceHeight = 420, 190
	evidenceLeft, evidenceRight   = 66, 10
	evidenceTop, evidenceBottom   = 38, 22
	evidenceLines                 = 6
)

// evidenceView is a finding's chart on the page.
type evidenceView struct {
	Title string
	SVG   template.HTML
	Names []string // of its lines
}

// newEvidence draws the chart of a finding; nil when it has none with a value.
func newEvidence(c *result.Chart) *evidenceView {
	if c == nil {
		return nil
	}
	lines := drawn(c)
	if len(lines) == 0 {
		return nil
	}
	v := &evidenceView{Title: c.Title, SVG: evidenceSVG(c, lines)}
	for _, l := range lines {
		if !slices.Contains(v.Names, l.Name) {
			v.Names = append(v.Names, l.Name)
		}
	}
	v.Names = stretchesInWords(v.Names)
	return v
}

// drawn are the lines that can be drawn: as many values as places, at least one of them a number. What lies nowhere on
// the x axis is left out.
func drawn(c *result.Chart) (out []result.ChartLine) {
	for _, l := range c.Lines {
		if len(l.X) != len(l.Y) || len(out) == evidenceLines {
			continue
		}
		kept := result.ChartLine{Name: l.Name, Points: l.Points}
		some := false
		for i, y := range l.Y {
			if !finite(l.X[i]) || c.XLog && l.X[i] <= 0 {
				continue
			}
			if y != nil && !finite(*y) {
				y = nil
			}
			some = some || y != nil
			kept.X, kept.Y = append(kept.X, l.X[i]), append(kept.Y, y)
		}
		if some {
			out = append(out, kept)
		}
	}
	return out
}

func evidenceSVG(c *result.Chart, lines []result.ChartLine) template.HTML {
	place := func(x float64) float64 { return x }
	if c.XLog {
		// of marks; lines are above 0
		place = func(x float64) float64 { return math.Log2(max(x, math.SmallestNonzeroFloat64)) }
	}
	x0, x1, low, high := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for _, l := range lines {
		for i, y := range l.Y {
			if y != nil {
				x0, x1, low, high = min(x0, place(l.X[i])), max(x1, place(l.X[i])), min(low, *y), max(high, *y)
			}
		}
	}
	for _, l := range c.Levels {
		if finite(l.At) {
			high = max(high, l.At)
		}
	}
	if high == low {
		high = low + 1
	}
	if x1 <= x0 {
		x0, x1 = x0-0.5, x0+0.5
	}
	d := &drawing{x0: x0, x1: x1, y0: low, y1: high * 1.06, left: evidenceLeft, right: evidenceWidth - evidenceRight,
		top: 14, bottom: evidenceHeight - evidenceBottom}
	if len(c.Marks) > 0 {
		d.top = evidenceTop
	}
	label := fmt.Sprintf("%s, from %s to %s", c.Title, quantity(low, c.YUnit), quantity(high, c.YUnit))
	fmt.Fprintf(&d.b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, evidenceWidth, evidenceHeight,
		template.HTMLEscapeString(label))
	for _, v := range valueTicks(d.y0, d.y1, c.YUnit) {
		fmt.Fprintf(&d.b, `<path class="g" d="M%d %dH%d"/>`, int(d.left), d.y(v), int(d.right))
		d.text("t e", int(d.left)-5, d.y(v)+4, tick(v, c.YUnit))
	}
	d.evidenceAxis(c, lines[0])
	var names []string
	for _, l := range lines {
		at := slices.Index(names, l.Name) // the points of a line look like it
		if at < 0 {
			at = len(names)
			names = append(names, l.Name)
		}
		d.evidenceLine(l, place, fmt.Sprintf("s%d", at%paletteSize))
	}
	d.evidenceMarks(c.Marks, place)
	for _, l := range c.Levels {
		if finite(l.At) {
			d.level(l.At, l.Text+" "+tick(l.At, c.YUnit))
		}
	}
	d.b.WriteString(`</svg>`)
	return template.HTML(d.b.String())
}

// evidenceMarks draws places on the x axis. Where several lie close together only as many words are written as there is
// room for.
func (d *drawing) evidenceMarks(marks []result.ChartPlace, place func(float64) float64) {
	const rows = 2
	var ends [rows]int
	for i := range ends {
		ends[i] = math.MinInt
	}
	for _, m := range slices.SortedStableFunc(slices.Values(marks), func(a, b result.ChartPlace) int {
		return cmp.Compare(a.At, b.At)
	}) {
		if !finite(m.At) || place(m.At) < d.x0 || place(m.At) > d.x1 {
			continue
		}
		x, words := d.x(place(m.At)), brief(m.Text)
		fmt.Fprintf(&d.b, `<path class="k note" d="M%d %dV%d"/>`, x, int(d.top)-8, int(d.bottom))
		d.drew(x, int(d.top)-8, x, int(d.bottom))
		width := perRune * len([]rune(words))
		from, class, begins := x+3, "t", x
		if float64(x+width) > d.right {
			from, class, begins = x-3, "t e", x-width
		}
		row := slices.IndexFunc(ends[:], func(end int) bool { return end < begins })
		if row < 0 {
			continue
		}
		ends[row] = begins + width
		d.text(class, from, 11*(row+1), words)
	}
}

// brief shortens the words at a mark to what a small chart has room for.
func brief(s string) string {
	const most = 26
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// evidenceAxis writes about four places below a chart; of a logarithmic one, its own points.
func (d *drawing) evidenceAxis(c *result.Chart, l result.ChartLine) {
	write := func(x float64, words string) {
		class := "t m"
		switch at := d.x(x); {
		case at < int(d.left)+20:
			class = "t"
		case at > int(d.right)-26:
			class = "t e"
		}
		d.text(class, d.x(x), int(d.bottom)+15, words)
	}
	switch {
	case c.XLog:
		every := max(1, (len(l.X)+4)/5)
		for i := 0; i < len(l.X); i += every {
			if x := math.Log2(l.X[i]); x >= d.x0 && x <= d.x1 {
				write(x, quantity(l.X[i], c.XUnit))
			}
		}
	case c.XUnit == "s" && c.XLabel == "":
		ticks := timeTicks(d.x0, d.x1)
		every := max(1, (len(ticks)+4)/5)
		for i := 0; i < len(ticks); i += every {
			write(ticks[i], elapsed(ticks[i]))
		}
	default:
		for _, v := range valueTicks(d.x0, d.x1, c.XUnit) {
			write(v, tick(v, c.XUnit))
		}
		d.text("t e", int(d.right), int(d.bottom)-4, c.XLabel)
	}
}

// tick is a quantity without the unit that the chart's title has.
func tick(v float64, unit string) string {
	if unit == "ops/s" {
		return strings.TrimSuffix(axisLabel(v, unit), " IOPS")
	}
	return axisLabel(v, unit)
}

// evidenceLine draws one line, or its points; a gap lifts the pen.
func (d *drawing) evidenceLine(l result.ChartLine, place func(float64) float64, class string) {
	if l.Points {
		for i, y := range l.Y {
			if y != nil {
				fmt.Fprintf(&d.b, `<circle class="p %s" cx="%d" cy="%d" r="3"/>`, class, d.x(place(l.X[i])), d.y(*y))
			}
		}
		return
	}
	var path strings.Builder
	pen, lastX, lastY := false, 0, 0
	for i, value := range l.Y {
		if value == nil {
			pen = false
			continue
		}
		x, y := d.x(place(l.X[i])), d.y(*value)
		if pen {
			fmt.Fprintf(&path, "L%d %d", x, y)
			d.drew(lastX, lastY, x, y)
		} else {
			fmt.Fprintf(&path, "M%d %dh0", x, y) // a single point shows as a dot
		}
		pen, lastX, lastY = true, x, y
	}
	fmt.Fprintf(&d.b, `<path class="l %s" d="%s"/>`, class, path.String())
}
