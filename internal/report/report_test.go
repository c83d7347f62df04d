package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

func runInput(opt reporttest.Options) Input {
	run := reporttest.Neighbour(opt)
	return Input{Manifest: run.Manifest, Data: run.Data, Findings: analysis.Run(run.Manifest, run.Data),
		Events: run.Events, Plan: run.Plan}
}

// small is a run whose documents a person can read through.
func small() *Document {
	return New(runInput(reporttest.Options{VMs: 3, Length: 2 * time.Minute, TimeScale: 0.02, SizeScale: 0.002}))
}

// stub stands for the chart library, so that goldens do not hang on whether it was fetched.
func stub(t testing.TB, with bool) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"assets/report.css", "assets/report.js", "assets/zone.js",
		"assets/report.html.tmpl"} {
		b, err := fs.ReadFile(embedded, name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "assets/report.html.tmpl" {
			b = []byte("/* " + name + " */")
		}
		files[name] = &fstest.MapFile{Data: b}
	}
	if with {
		files["assets/vendor/uPlot.min.css"] = &fstest.MapFile{Data: []byte("/* library */")}
		files["assets/vendor/uPlot.iife.min.js"] = &fstest.MapFile{Data: []byte("/* library */")}
		files["assets/vendor/uPlot.LICENSE"] = &fstest.MapFile{Data: []byte("licence */ of the library\n")}
	}
	return files
}

func TestGoldens(t *testing.T) {
	for name, render := range map[string]func(io.Writer, *Document) error{
		"report.html":        func(w io.Writer, d *Document) error { return renderHTML(w, d, stub(t, true)) },
		"report-static.html": func(w io.Writer, d *Document) error { return renderHTML(w, d, stub(t, false)) },
		"report.csv":         CSV,
		"report.md":          Markdown,
		"report.json": func(w io.Writer, d *Document) error {
			var compact, out bytes.Buffer
			if err := JSON(&compact, d); err != nil {
				return err
			}
			if err := json.Indent(&out, compact.Bytes(), "", " "); err != nil {
				return err
			}
			_, err := w.Write(out.Bytes())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc := small()
			var first, second bytes.Buffer
			if err := render(&first, doc); err != nil {
				t.Fatal(err)
			}
			if err := render(&second, small()); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("the same input gave other bytes")
			}
			golden.Compare(t, "testdata/"+name, first.Bytes())
		})
	}
}

// TestSelfContained: the page refers to nothing outside itself.
func TestSelfContained(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, small()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, outside := range []string{`<link`, `@import`, `src="http`, `src="//`, `url(http`, `<iframe`, `fetch(`,
		`XMLHttpRequest`} {
		if strings.Contains(page, outside) {
			t.Errorf("the page contains %q", outside)
		}
	}
	if n := strings.Count(page, "<script"); n > 2 {
		t.Errorf("%d script elements", n)
	}
	if strings.Contains(page, "javascript:") ||
		regexp.MustCompile(`<[^>]* on[a-z]+=`).MatchString(strings.Split(page, `<script`)[0]) {
		t.Error("something of the author's script survived")
	}
}

// TestLongRun: what is too much for a page is left out at the right end and said.
func TestLongRun(t *testing.T) {
	in := runInput(reporttest.Options{VMs: 2, Length: 10 * time.Second})
	for range maxJournal {
		in.Events = append([]result.Event{{Kind: "early"}}, in.Events...)
	}
	w := in.Data.Workloads[len(in.Data.Workloads)-1]
	for range 100 {
		w.Name += "x"
		w.Heat = &result.HeatMap{Step: 1, EdgesNs: []float64{1, 2}, Counts: make([][]uint64, 500)}
		for i := range w.Heat.Counts {
			w.Heat.Counts[i] = []uint64{1}
		}
		in.Data.Workloads = append(in.Data.Workloads, w)
	}
	doc := New(in)
	v := newView(doc)
	if len(v.Journal) != maxJournal || v.Earlier == 0 || v.Journal[maxJournal-1].Kind != result.KindRunEnd ||
		len(doc.Journal) != maxJournal+v.Earlier {
		t.Errorf("%d of %d entries, %d left out", len(v.Journal), len(doc.Journal), v.Earlier)
	}
	for _, h := range v.heats[2:] {
		if len(h.Counts) > 25 || h.Total != 500 {
			t.Fatalf("%d columns with %d operations", len(h.Counts), h.Total)
		}
	}
}

func TestUnfinished(t *testing.T) {
	for status, want := range map[string]string{
		result.StatusSucceeded: "", "": "", result.StatusStopped: "This run was stopped before its end. Error: " +
			"disk full",
		result.StatusInterrupted: "This run was interrupted: its process died before its end. Error: disk full",
	} {
		m := result.Manifest{Status: status}
		if want != "" {
			m.Error = "disk full"
		}
		if got := unfinished(m); got != want {
			t.Errorf("%q: %q, want %q", status, got, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for _, c := range []struct {
		time, size float64
		want       string
	}{{1, 1, ""}, {0, 0, ""}, {0.02, 0.002, "Scaled: time ×0.02, sizes ×0.002."}, {1, 0.5,
		"Scaled: time ×1, sizes ×0.5."}} {
		got := scaled(result.Manifest{TimeScale: c.time, SizeScale: c.size})
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("scaled(%g, %g) = %q", c.time, c.size, got)
		}
	}
	var b bytes.Buffer
	if err := Markdown(&b, small()); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(b.String(), "\n"); !strings.HasPrefix(first, "**Scaled: time ×0.02, sizes ×0.002") {
		t.Errorf("first line: %q", first)
	}
}

// TestEmptyAndOdd: whatever of a run is missing or makes no sense, there is a report.
func TestEmptyAndOdd(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, in := range map[string]Input{
		"nothing":    {},
		"empty data": {Data: &result.Data{}},
		"odd numbers": {Data: &result.Data{Start: at, Panels: []result.Panel{
			{Title: "x", Expected: &nan, Bands: []result.Band{{Lower: nan, Upper: inf}},
				Metrics: []result.Metric{{Value: nan}}, Series: []result.Series{
					{Start: at, Step: 1, Values: []*float64{&nan, &inf, nil}}, {Step: nan, Values: []*float64{nil}},
					{Step: 0, Values: []*float64{nil}}, {Start: at, Step: -1},
				}},
			{Title: "far apart", Series: []result.Series{{Step: 1e-9, Values: []*float64{new(float64)}},
				{Start: at, Step: 1, Values: []*float64{new(float64), nil}}}},
			{Title: "flat zero", Series: []result.Series{{Start: at, Step: 1,
				Values: []*float64{new(float64), new(float64)}}}},
		}, Workloads: []result.Workload{
			{Name: "w", Ops: []result.OpTotals{{Op: "read", Count: 5}},
				Heat: &result.HeatMap{Step: 1, EdgesNs: []float64{1, 2}, Counts: [][]uint64{{}, {0}, {1, 2, 3}}}},
			{Name: "w", VM: "v", GeneratorCPUSeconds: nan, Streams: []result.Stream{{Rate: inf}}, Start: at,
				End: at.Add(-time.Hour)},
			{Name: "x", Heat: &result.HeatMap{}},
			{Name: "y", Windows: []result.Window{{}, {}}},
		}}},
		"bad plan": {Plan: json.RawMessage(`{"steps": 3`)},
	} {
		doc := New(in)
		for _, render := range []func(io.Writer, *Document) error{HTML, JSON, CSV, Markdown} {
			if name == "bad plan" && render != nil {
				doc.Plan = nil // json.RawMessage must be valid to be encoded
			}
			if err := render(io.Discard, doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestPercentilesAreMerged: the table's percentile is that of all operations together, not a mean of the VMs'.
func TestPercentilesAreMerged(t *testing.T) {
	a, b := &hist.Histogram{}, &hist.Histogram{}
	a.Add(100_000, 9900)
	b.Add(50_000_000, 100)
	a.Merge(b)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := result.Workload{Operations: result.BlockOperations()}
	got := totalsOf(w, "w", at, 10,
		[]result.OpTotals{{Op: "read", Count: 10_000, Bytes: 40_960_000, Seconds: a.Sum() / 1e9, Hist: a}}, nil)
	if r := got.Rows[0]; *r.P99 > 101e-6 || *r.P999 < 49e-3 || r.OpsPerSecond != 1000 ||
		*r.BytesPerSecond != 4_096_000 {
		t.Errorf("%+v: p99 %g, p99.9 %g", r, *r.P99, *r.P999)
	}
	few := totalsOf(w, "w", at, 1, []result.OpTotals{{Op: "read", Count: 50, Hist: reporttest.Lognormal(50, 1e6, 0.3)}},
		nil)
	if r := few.Rows[0]; r.P50 == nil || r.P99 != nil || r.P999 != nil {
		t.Errorf("50 operations: %+v", r)
	}
}

// The page of a large run leaves the ends of its long tables out and says so; entries of whole groups stay, and
// those that did not end as planned.
func TestLongTables(t *testing.T) {
	doc := &Document{}
	for i := range 1500 {
		name := fmt.Sprintf("vm-%04d", i)
		w := WorkloadSummary{Name: "W", VM: name, Ended: result.Finished}
		if i == 1400 {
			w.Ended = result.Lost
		}
		doc.Workloads = append(doc.Workloads, w)
		doc.VMs = append(doc.VMs, result.VM{Name: name})
	}
	doc.Workloads = append(doc.Workloads, WorkloadSummary{Name: "W", Group: "Fleet"})
	var page strings.Builder
	if err := HTML(&page, doc); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Workloads (100 of 1501; the JSON report has all)",
		"VMs (100 of 1500; the JSON report has all)", "1,500 VMs on", "all of Fleet", "vm-0097", "vm-1400"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "vm-0100") || len(doc.Workloads) != 1501 || doc.Workloads[0].VM != "vm-0000" {
		t.Error("rows were not left out, or the document was changed")
	}
}
