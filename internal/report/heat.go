package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"math"
	"time"

	"plimsoll/result"
)

// viridis are the stops of a colour scale that is even to the eye, also without colour vision (van der Walt and
// Smith, 2015). Cells without operations stay transparent.
var viridis = []color.NRGBA{
	{0x44, 0x01, 0x54, 255}, {0x48, 0x24, 0x75, 255}, {0x41, 0x44, 0x87, 255}, {0x35, 0x5f, 0x8d, 255},
	{0x2a, 0x78, 0x8e, 255}, {0x21, 0x91, 0x8c, 255},
	{0x22, 0xa8, 0x84, 255}, {0x44, 0xbf, 0x70, 255}, {0x7a, 0xd1, 0x51, 255}, {0xbd, 0xdf, 0x26, 255},
	{0xfd, 0xe7, 0x25, 255},
}

// shade is the colour at part 0..1 of the scale.
func shade(part float64) color.NRGBA {
	at := min(max(part, 0), 1) * float64(len(viridis)-1)
	i := min(int(at), len(viridis)-2)
	f := at - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + f*(float64(b)-float64(a)))) }
	a, b := viridis[i], viridis[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// heatColumns bounds a heat map's width, allHeatColumns that of all maps of a page together. Neighbouring columns are
// added up, which loses no operation.
const (
	heatColumns    = 360
	allHeatColumns = 2400
)

// heatView is a heat map ready to be shown.
type heatView struct {
	ID       string
	Workload string
	Kind     string
	Start    float64 // seconds since the run phase began
	Step     float64
	Edges    []float64 // seconds
	Counts   [][]uint64
	Most     uint64
	Total    uint64
}

func newHeat(h Heat, id string, origin time.Time, columns int) *heatView {
	v := &heatView{ID: id, Workload: h.Workload, Kind: h.Kind, Start: h.Map.Start.Sub(origin).Seconds(),
		Step: h.Map.Step}
	low, high := usedRows(h.Map)
	if high <= low {
		return nil
	}
	for _, e := range h.Map.EdgesNs[low : high+1] {
		v.Edges = append(v.Edges, e/1e9)
	}
	join := (len(h.Map.Counts) + columns - 1) / columns
	v.Step *= float64(join)
	for c := 0; c < len(h.Map.Counts); c += join {
		sum := make([]uint64, high-low)
		for _, column := range h.Map.Counts[c:min(c+join, len(h.Map.Counts))] {
			for r := range sum {
				if low+r < len(column) {
					sum[r] += column[low+r]
				}
			}
		}
		for _, n := range sum {
			v.Most = max(v.Most, n)
			v.Total += n
		}
		v.Counts = append(v.Counts, sum)
	}
	return v
}

// usedRows are the first and one past the last row with any operation.
func usedRows(h *result.HeatMap) (low, high int) {
	low = len(h.EdgesNs)
	for _, column := range h.Counts {
		for r, n := range column {
			if n > 0 && r < len(h.EdgesNs)-1 {
				low, high = min(low, r), max(high, r+1)
			}
		}
	}
	return low, high
}

// part is where a count lies on the colour scale, which is logarithmic.
func (v *heatView) part(n uint64) float64 {
	if v.Most <= 1 {
		return 1
	}
	return math.Log(float64(n)) / math.Log(float64(v.Most))
}

// picture is the map itself, one pixel to a cell, low latencies at the bottom.
func (v *heatView) picture() string {
	rows := len(v.Edges) - 1
	img := image.NewNRGBA(image.Rect(0, 0, len(v.Counts), rows))
	for x, column := range v.Counts {
		for r, n := range column {
			if n > 0 {
				img.SetNRGBA(x, rows-1-r, shade(v.part(n)))
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil { // only for impossible sizes; the axes and the table are still shown
		return ""
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
}

// svg is the map with its axes. The latency axis is logarithmic because the rows are.
func (v *heatView) svg() template.HTML {
	end := v.Start + v.Step*float64(len(v.Counts))
	rows := len(v.Edges) - 1
	label := fmt.Sprintf("%s of %s: operations by time and latency, from %s to %s", v.Kind, v.Workload,
		duration(v.Edges[0]), duration(v.Edges[rows]))
	d := newDrawing(label, heatHeight, v.Start, end, 0, float64(rows))
	d.top = 10
	fmt.Fprintf(&d.b, `<image class="heat" href="%s" x="%d" y="%d" width="%d" height="%d" preserveAspectRatio="none"/>`,
		v.picture(), int(d.left), int(d.top), int(d.right-d.left), int(d.bottom-d.top))
	for _, t := range v.latencyTicks() {
		class := "t e"
		if t.at < 0.1*float64(rows) {
			class = "t e low" // in the way of the time axis where letters are large
		}
		fmt.Fprintf(&d.b, `<path class="g" d="M%d %dH%d"/>`, int(d.left)-5, d.y(t.at), int(d.left))
		d.text(class, int(d.left)-8, d.y(t.at)+4, duration(t.seconds))
	}
	d.timeAxis()
	d.b.WriteString(`</svg>`)
	return template.HTML(d.b.String())
}

// latencyTick is a round latency, and where it lies on the map's axis in rows from the bottom.
type latencyTick struct{ seconds, at float64 }

// latencyTicks are round latencies within the map: 1, 2 and 5 times powers of ten, or the powers alone where those are
// many. Between two edges a latency lies by its logarithm.
func (v *heatView) latencyTicks() []latencyTick {
	const most = 9
	rows := len(v.Edges) - 1
	find := func(factors ...float64) (out []latencyTick) {
		for p := -9; p <= 4; p++ {
			for _, f := range factors {
				s := f * math.Pow(10, float64(p))
				for r := range rows {
					low, high := v.Edges[r], v.Edges[r+1]
					if s >= low && (s < high || r == rows-1 && s <= high) {
						at := float64(r)
						if low > 0 && high > low {
							at += math.Log(s/low) / math.Log(high/low)
						}
						out = append(out, latencyTick{s, at})
						break
					}
				}
			}
		}
		return out
	}
	out := find(1, 2, 5)
	if len(out) > most {
		out = find(1)
	}
	if len(out) == 0 { // less than from one round latency to the next
		out = []latencyTick{{v.Edges[0], 0}, {v.Edges[rows], float64(rows)}}
	}
	return out
}

// heatRow is a row of the map's table.
type heatRow struct {
	Range  string
	Shares []string
}

// table is the map in words: the share of operations in coarse ranges of latency, in at most eight stretches of time.
func (v *heatView) table() (times []string, rows []heatRow) {
	const columns, most = 8, 10
	wide := (len(v.Counts) + columns - 1) / columns
	tall := (len(v.Edges) - 1 + most - 1) / most
	for c := 0; c < len(v.Counts); c += wide {
		times = append(times, elapsed(v.Start+v.Step*float64(c)))
	}
	for r := len(v.Edges) - 1; r > 0; r -= tall {
		from := max(0, r-tall)
		row := heatRow{Range: duration(v.Edges[from]) + " – " + duration(v.Edges[r])}
		for c := 0; c < len(v.Counts); c += wide {
			var in, all uint64
			for _, column := range v.Counts[c:min(c+wide, len(v.Counts))] {
				for i, n := range column {
					all += n
					if i >= from && i < r {
						in += n
					}
				}
			}
			share := none
			if all > 0 {
				share = quantity(100*float64(in)/float64(all), "%")
			}
			row.Shares = append(row.Shares, share)
		}
		rows = append(rows, row)
	}
	return times, rows
}
