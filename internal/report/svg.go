package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"plimsoll/result"
)

// Measures of a static drawing, in its own units.
const (
	svgWidth, svgHeight  = 960, 260
	heatHeight           = 340
	svgLeft, svgRight    = 86, 22
	svgTop, svgBottom    = 34, 28
	svgColumns           = 300 // buckets along the time axis
	svgLines             = 6   // more series than this are drawn as their range and their middle
	paletteSize          = 8
	markRows, markHeight = 3, 11
	perRune              = 8 // width of a letter of a small drawing, where it is largest, on a phone
)

// drawing maps a chart to the drawing's plane.
type drawing struct {
	b                        strings.Builder
	x0, x1, y0, y1           float64 // of the data
	left, right, top, bottom float64 // of the plot
	log                      bool    // the value axis is logarithmic; y0 and y1 are positive
	drawn                    []area  // pieces of lines
}

// area is a part of a drawing's plane.
type area struct{ x0, y0, x1, y1 int }

func (b area) meets(o area) bool { return b.x0 <= o.x1 && o.x0 <= b.x1 && b.y0 <= o.y1 && o.y0 <= b.y1 }

// drew notes a piece of a line.
func (d *drawing) drew(x0, y0, x1, y1 int) {
	d.drawn = append(d.drawn, area{min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)})
}

// level draws a dashed line, and its name above or below its right or its left end, or else between these: where no
// line runs, if there is such a place.
func (d *drawing) level(at float64, words string) {
	const tall, off, onDesk = 10, 4, 6
	y, left, right := d.y(at), int(d.left), int(d.right)
	fmt.Fprintf(&d.b, `<path class="x" d="M%d %dH%d"/>`, left, y, right)
	free := func(b area) bool {
		return b.y1 < int(d.bottom) && b.y0 > int(d.top) && !slices.ContainsFunc(d.drawn, b.meets)
	}
	type place struct {
		class string
		x     int
		area
	}
	above, below := y-off, y+off+tall-1
	var places []place
	for _, letter := range []int{perRune, onDesk} { // where a phone has no room, the others may have it
		width := letter * len([]rune(words))
		places = append(places, place{"t e", right - off, area{right - width, above - tall, right, above}},
			place{"t e", right - off, area{right - width, below - tall, right, below}},
			place{"t", left + off, area{left, above - tall, left + width, above}},
			place{"t", left + off, area{left, below - tall, left + width, below}})
		for end := right - letter; end-width > left; end -= letter { // between the ends
			places = append(places, place{"t e", end - off, area{end - width, above - tall, end, above}},
				place{"t e", end - off, area{end - width, below - tall, end, below}})
		}
	}
	i := max(0, slices.IndexFunc(places, func(p place) bool { return free(p.area) }))
	d.text(places[i].class, places[i].x, places[i].y1, words)
}

func (d *drawing) x(v float64) int {
	return int(math.Round(d.left + (v-d.x0)/(d.x1-d.x0)*(d.right-d.left)))
}

func (d *drawing) y(v float64) int {
	share := (v - d.y0) / (d.y1 - d.y0)
	if d.log {
		share = math.Log(max(v, d.y0)/d.y0) / math.Log(d.y1/d.y0)
	}
	return int(math.Round(d.bottom - min(share, 1)*(d.bottom-d.top)))
}

func newDrawing(label string, height int, x0, x1, y0, y1 float64) *drawing {
	if x1 <= x0 {
		x1 = x0 + 1
	}
	if y1 <= y0 {
		y1 = y0 + 1
	}
	d := &drawing{x0: x0, x1: x1, y0: y0, y1: y1, left: svgLeft, right: svgWidth - svgRight, top: svgTop,
		bottom: float64(height - svgBottom)}
	fmt.Fprintf(&d.b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, svgWidth, height,
		template.HTMLEscapeString(label))
	return d
}

// text writes words, escaped; every word of a drawing goes through it.
func (d *drawing) text(class string, x, y int, words string) {
	fmt.Fprintf(&d.b, `<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, template.HTMLEscapeString(words))
}

// svg is the static drawing of a chart, with marks at moments of the run.
func (c *chart) svg(marks []mark) template.HTML {
	low, high, ok := c.span()
	if !ok {
		return ""
	}
	bottom, top := min(low, 0), max(high, 0)*1.06
	if c.Expected != nil {
		top = max(top, *c.Expected*1.06)
	}
	if top == 0 {
		top = 1
	}
	if c.Log != nil {
		bottom, top = c.Log[0], c.Log[1]
	}
	if c.Cap != nil {
		top = *c.Cap
	}
	end := c.Start + c.Step*float64(len(c.Values[0]))
	label := fmt.Sprintf("%s over time, %d series, from %s to %s", c.Title, len(c.Names), quantity(low, c.Unit),
		quantity(high, c.Unit))
	d := newDrawing(label, svgHeight, c.Start, end, bottom, top)
	d.log = c.Log != nil
	for i, band := range c.Bands {
		d.band(band, i)
	}
	ticks := valueTicks(d.y0, d.y1, c.Unit)
	if c.Whole && c.Unit == "count" {
		ticks = slices.DeleteFunc(ticks, func(v float64) bool { return v != math.Trunc(v) })
	}
	if d.log {
		ticks = powersOfTen(d.y0, d.y1)
	}
	for _, v := range ticks {
		fmt.Fprintf(&d.b, `<path class="g" d="M%d %dH%d"/>`, int(d.left), d.y(v), int(d.right))
		d.text("t e", int(d.left)-8, d.y(v)+4, axisLabel(v, c.Unit))
	}
	d.timeAxis()
	d.marks(marks)
	if len(c.Values) <= svgLines {
		small := c.reduce(svgColumns * slots * len(c.Values))
		for i, v := range small.Values {
			d.line(v, small, fmt.Sprintf("l s%d", i%paletteSize))
		}
	} else {
		d.envelope(c)
	}
	if c.Expected != nil {
		fmt.Fprintf(&d.b, `<path class="x" d="M%d %dH%d"/>`, int(d.left), d.y(*c.Expected), int(d.right))
	}
	d.b.WriteString(`</svg>`)
	return template.HTML(d.b.String())
}

// backdrop says what is drawn behind the lines, where words would cross them.
func (c *chart) backdrop() (out []string) {
	if c.Expected != nil {
		out = append(out, "Dashed: "+quantity(*c.Expected, c.Unit)+", as expected.")
	}
	for _, b := range c.Bands {
		out = append(out, fmt.Sprintf("Shaded: %s (%s to %s).", b.Name, quantity(b.Lower, c.Unit),
			quantity(b.Upper, c.Unit)))
	}
	return out
}

func (d *drawing) band(b result.Band, i int) {
	low, high := max(b.Lower, d.y0), min(b.Upper, d.y1)
	if high <= low {
		return
	}
	fmt.Fprintf(&d.b, `<rect class="b b%d" x="%d" y="%d" width="%d" height="%d"/>`, i%3, int(d.left), d.y(high),
		int(d.right-d.left), d.y(low)-d.y(high))
}

func (d *drawing) timeAxis() {
	for _, t := range timeTicks(d.x0, d.x1) {
		fmt.Fprintf(&d.b, `<path class="g" d="M%d %dV%d"/>`, d.x(t), int(d.bottom), int(d.bottom)+5)
		d.text("t m", d.x(t), int(d.bottom)+18, elapsed(t))
	}
}

// mark is a moment of the run.
type mark struct {
	At   float64 `json:"at"`   // seconds since the run phase began
	Kind string  `json:"kind"` // from kindClass
	Text string  `json:"text"`
}

func (d *drawing) marks(marks []mark) {
	var ends [markRows]int
	phone := d.onPhone(marks)
	for i, m := range marks {
		if m.At < d.x0 || m.At > d.x1 {
			continue
		}
		x, width := d.x(m.At), 7*len([]rune(m.Text))
		from, class := x+4, "t"
		if float64(x+width) > d.right {
			from, class = x-4, "t e"
		}
		row, begins := 0, min(x, int(d.right)-width)
		for row < markRows && ends[row] > begins {
			row++
		}
		fmt.Fprintf(&d.b, `<path class="k %s" d="M%d %dV%d"/>`, m.Kind, x, int(d.top)-8, int(d.bottom))
		if row == markRows { // no room; the line is there, and the table of events
			d.text(class, from, 0, "")
			continue
		}
		ends[row] = begins + width
		switch left, fits := phone[i]; {
		case row > 0 || !fits:
			class += " low"
		case class == "t" && left:
			class += " flip"
		}
		d.text(class, from, markHeight*(row+1)-1, m.Text)
	}
}

// onPhone are the marks whose words fit into one row of a phone's letters, faults before others; true where they stand
// left of their line.
func (d *drawing) onPhone(marks []mark) map[int]bool {
	const letter = 16 // its width there
	fits := map[int]bool{}
	var taken [][2]int
	for _, faults := range []bool{true, false} {
		for i, m := range marks {
			if m.At < d.x0 || m.At > d.x1 || faults != (m.Kind == kindClass(true)) {
				continue
			}
			x, width := d.x(m.At), letter*len([]rune(m.Text))
			span := [2]int{x, x + width}
			left := span[1] > svgWidth
			if left {
				span = [2]int{x - width, x}
			}
			if !slices.ContainsFunc(taken, func(t [2]int) bool { return span[0] < t[1] && t[0] < span[1] }) {
				taken, fits[i] = append(taken, span), left
			}
		}
	}
	return fits
}

// kindClass is how a moment is drawn.
func kindClass(fault bool) string {
	if fault {
		return "fault"
	}
	return "note"
}

// line draws one series; a gap lifts the pen.
func (d *drawing) line(values []float64, c *chart, class string) {
	d.b.WriteString(`<path class="` + class + `" d="`)
	pen, last, lastY := false, math.MinInt, 0
	for i, v := range values {
		if math.IsNaN(v) {
			pen = false
			continue
		}
		x, y := d.x(c.Start+c.Step*float64(i)), d.y(v)
		switch {
		case !pen:
			fmt.Fprintf(&d.b, "M%d %dh0", x, y)
		case x != last || y != lastY:
			fmt.Fprintf(&d.b, "L%d %d", x, y)
			d.drew(last, lastY, x, y)
		}
		pen, last, lastY = true, x, y
	}
	d.b.WriteString(`"/>`)
}

// envelope draws many series as the range they fill and the series in the middle at each moment.
func (d *drawing) envelope(c *chart) {
	n := len(c.Values[0])
	size := max(1, (n+svgColumns-1)/svgColumns)
	var upper, lower strings.Builder
	middle := make([]float64, 0, svgColumns)
	coarse := *c
	coarse.Step = c.Step * float64(size)
	flush := func() {
		if upper.Len() > 0 {
			fmt.Fprintf(&d.b, `<path class="v" d="M%s%sZ"/>`, strings.TrimPrefix(upper.String(), "L"), lower.String())
		}
		upper.Reset()
		lower.Reset()
	}
	for i := 0; i < n; i += size {
		var all []float64
		for _, v := range c.Values {
			for _, x := range v[i:min(i+size, n)] {
				if !math.IsNaN(x) {
					all = append(all, x)
				}
			}
		}
		if len(all) == 0 {
			middle = append(middle, math.NaN())
			flush()
			continue
		}
		slices.Sort(all)
		x := d.x(coarse.Start + coarse.Step*(float64(len(middle))+0.5))
		fmt.Fprintf(&upper, "L%d %d", x, d.y(all[len(all)-1]))
		before := lower.String()
		lower.Reset()
		fmt.Fprintf(&lower, "L%d %d%s", x, d.y(all[0]), before)
		middle = append(middle, all[len(all)/2])
	}
	flush()
	d.line(middle, &coarse, "l s0")
	d.text("t e", int(d.right)-4, int(d.top)+12, fmt.Sprintf("range of %d series and their median", len(c.Values)))
}

// valueTicks are about four round values within a range. Durations and rates are round in tens; so are sizes, near
// enough.
func valueTicks(low, high float64, u string) []float64 {
	if u == "bool" { // there is nothing between no and yes
		return slices.DeleteFunc([]float64{0, 1}, func(v float64) bool { return v < low || v > high })
	}
	scale := 1.0
	if u == "bytes/s" || u == "bytes" {
		for scale*1024 <= high {
			scale *= 1024
		}
	}
	raw := (high - low) / 4 / scale
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= raw {
			step = m * power
			break
		}
	}
	step *= scale
	var out []float64
	for v := math.Ceil(low/step) * step; v <= high && len(out) < 12; v += step {
		out = append(out, v)
	}
	return out
}

// powersOfTen are the powers of ten within a range.
func powersOfTen(low, high float64) []float64 {
	var out []float64
	for p := math.Ceil(math.Log10(low) - 1e-9); p <= math.Log10(high)+1e-9; p++ {
		out = append(out, math.Pow(10, p))
	}
	return out
}

// timeTicks are about six round moments.
func timeTicks(from, to float64) []float64 {
	steps := []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (to-from)/s <= 8 {
			step = s
			break
		}
	}
	var out []float64
	for t := math.Ceil(from/step) * step; t <= to && len(out) < 20; t += step {
		out = append(out, t)
	}
	return out
}
