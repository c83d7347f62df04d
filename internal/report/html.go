package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed all:assets
var embedded embed.FS

// HTML writes the report as one self-contained page.
func HTML(w io.Writer, doc *Document) error { return renderHTML(w, doc, embedded) }

// renderHTML takes its assets from files, so that tests can do without the third-party part.
func renderHTML(w io.Writer, doc *Document, files fs.FS) error {
	v := newView(doc)
	var parts [5]string
	for i, name := range []string{"vendor/uPlot.min.css", "report.css", "vendor/uPlot.iife.min.js", "report.js",
		"zone.js"} {
		b, err := fs.ReadFile(files, "assets/"+name)
		if err != nil && !strings.HasPrefix(name, "vendor/") {
			return fmt.Errorf("report: html: asset %q: %w", name, err)
		}
		parts[i] = string(b)
	}
	v.Interactive = parts[2] != ""
	v.Style = template.CSS(parts[0] + parts[1])
	if v.Interactive {
		licence, _ := fs.ReadFile(files, "assets/vendor/uPlot.LICENSE") // shown when it was fetched with the library
		v.Licence = template.JS("/*!\n" + strings.ReplaceAll(string(licence), "*/", "* /") + "*/\n")
	}
	v.Script = template.JS(string(v.Licence) + parts[2] + "\n" + parts[3] + parts[4])
	hash := sha256.Sum256([]byte(v.Script))
	v.Policy = Policy + "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	island, err := v.island()
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	v.Island = template.JS(island)
	text, err := fs.ReadFile(files, "assets/report.html.tmpl")
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	page, err := template.New("report").Funcs(functions).Parse(string(text))
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	return nil
}

// ZoneScript says moments of a page in the reader's zone.
func ZoneScript() template.JS {
	b, _ := embedded.ReadFile("assets/zone.js") // it is part of the program
	return template.JS(b)
}

// timeElement is a moment that ZoneScript finds, in UTC.
func timeElement(t time.Time, attributes, layout string) template.HTML {
	return template.HTML(`<time` + attributes + ` datetime="` + t.UTC().Format(time.RFC3339) + `">` +
		t.UTC().Format(layout) + `</time>`)
}

// Moment is a moment on a page; that of no time is none.
func Moment(t time.Time) template.HTML {
	if t.IsZero() {
		return none
	}
	return timeElement(t, "", "2006-01-02 15:04:05 UTC")
}

// Tight is a sentence whose numbers are not parted from their units at the end of a line, nor "(95 %:" from itself.
func Tight(sentence string) string { return beforeUnit.ReplaceAllString(sentence, "$1\u00a0$2") }

var beforeUnit = regexp.MustCompile(`(\d) (%|[µmn]?s\b|min\b|h\b|IOPS\b|[KMGT]?i?B\b)`)

// Clock is a moment of a day that is known.
func Clock(t time.Time) template.HTML { return timeElement(t, ` class="clock"`, time.TimeOnly) }

// manyOf is a number of things.
func manyOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return plain(float64(n)) + " " + noun + "s"
}

var functions = template.FuncMap{
	"quantity": quantity, "optional": optional, "duration": duration, "plain": plain,
	"elapsed": elapsed, "change": change, "tight": Tight,
	"count":  func(n uint64) string { return plain(float64(n)) },
	"moment": Moment, "clock": Clock,
	"many":         manyOf,
	"bytes":        func(n int64) string { return quantity(float64(n), "bytes") },
	"float":        func(n int) float64 { return float64(n) },
	"add":          func(a, b int) int { return a + b },
	"percentWhole": func(share float64) string { return fmt.Sprintf("%.0f", share*100) },
	"bound":        boundPercent,
	"length":       length,
	"sayMetric":    sayMetric,
	"sayOf":        sayOf,
	"figureHead":   FigureHead,
}

// chartData holds what the page's script draws one chart from.
type chartData struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	Unit     string          `json:"unit"`
	Start    float64         `json:"start"`
	Step     float64         `json:"step"`
	Names    []string        `json:"names"`
	Values   json.RawMessage `json:"values"`
	Bands    []bandData      `json:"bands,omitempty"`
	Expected *float64        `json:"expected,omitempty"`
	Log      []float64       `json:"log,omitempty"` // ends of a logarithmic axis
	Cap      *float64        `json:"cap,omitempty"` // upper end of the axis, below a peak
	Whole    bool            `json:"whole,omitempty"`
}

type bandData struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type heatData struct {
	ID     string     `json:"id"`
	Start  float64    `json:"start"`
	Step   float64    `json:"step"`
	Edges  []float64  `json:"edges"`
	Counts [][]uint64 `json:"counts"`
}

// allPoints is how many points a page holds over all its charts; with about six bytes to each, one hour of 50 VMs
// stays well under 3 MB. chartPoints bounds each chart.
const (
	allPoints   = 300_000
	chartPoints = 24_000
)

// island is the data the script works on. encoding/json escapes <, > and &, so it cannot end the script element.
func (v *view) island() ([]byte, error) {
	var out struct {
		Origin string      `json:"origin"`
		Marks  []mark      `json:"marks"`
		Charts []chartData `json:"charts"`
		Heats  []heatData  `json:"heats"`
	}
	out.Origin = v.origin.UTC().Format(time.RFC3339)
	// Lists that are empty, and not null, which the script could not go through.
	out.Marks, out.Charts, out.Heats = append([]mark{}, v.marks...), []chartData{}, []heatData{}
	for _, c := range v.charts {
		data := chartData{ID: c.ID, Title: c.Title, Unit: c.Unit, Start: c.Start, Step: c.Step,
			Names: append([]string{}, c.Names...), Expected: c.Expected, Log: c.Log,
			Cap: c.Cap, Whole: c.Whole && c.Unit == "count"}
		for _, b := range c.Bands {
			data.Bands = append(data.Bands, bandData{b.Lower, b.Upper})
		}
		raw := []byte{'['}
		for i, values := range c.Values {
			if i > 0 {
				raw = append(raw, ',')
			}
			raw = append(raw, '[')
			for j, x := range values {
				if j > 0 {
					raw = append(raw, ',')
				}
				raw = appendValue(raw, x)
			}
			raw = append(raw, ']')
		}
		data.Values = append(raw, ']')
		out.Charts = append(out.Charts, data)
	}
	for _, h := range v.heats {
		out.Heats = append(out.Heats, heatData{h.ID, h.Start, h.Step, h.Edges, h.Counts})
	}
	return json.Marshal(out)
}

// First returns what must be read before anything else.
func (v *view) First() []string {
	return slices.DeleteFunc([]string{v.Redacted, v.Simulated, v.Where(), v.Scaled},
		func(s string) bool { return s == "" })
}
