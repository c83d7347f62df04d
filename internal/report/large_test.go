package report

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/browsertest"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// manyLoads is a run of 52 workloads with a result of each.
func manyLoads() Input {
	in := runInput(reporttest.Options{VMs: 6, Length: 10 * time.Minute})
	data := *in.Data
	made := slices.Clone(data.Workloads)
	panels := slices.Clone(data.Panels)
	data.Workloads, data.Panels = nil, nil
	for i := range 26 {
		for _, w := range made {
			if w.VM == "" {
				w.Name = fmt.Sprintf("%s %d", w.Name, i+1)
				w.Errors = 0
				data.Workloads = append(data.Workloads, w)
			}
		}
		p := panels[i%len(panels)]
		p.Title = fmt.Sprintf("%s %d", p.Title, i+1)
		data.Panels = append(data.Panels, p)
	}
	in.Data = &data
	return in
}

// mostElements is how many elements the page of a large run has at most: browsers lay it out at once, and axe-core gets
// through it.
const mostElements = 20_000

// openAll opens all details.
const openAll = `document.querySelectorAll("details").forEach(d => d.open = true)`

// fewAlike opens all details and leaves of what is many times alike, rows of tables, tables and charts, a few.
const fewAlike = openAll + `;
	for (const [all, one, most] of [["tbody", ":scope > tr", 5], ["section", ":scope > :is(h3, p, .scroll)", 30],
		["section, .panels, details", ":scope > :is(.panel, details.metric)", 6]])
		for (const e of document.querySelectorAll(all))
			[...e.querySelectorAll(one)].slice(most).forEach(x => x.remove())`

// TestLargeRuns: of 52 workloads, and of 1,000 VMs, at most 8 screens come before all details, and the page prints on
// at most 10 sheets; what is left out is there when it is asked for, and axe-core finds nothing.
func TestLargeRuns(t *testing.T) {
	b := browsertest.StartFor(t, 10*time.Minute)
	for name, in := range map[string]Input{
		"52 workloads": manyLoads(), "1000 VMs": runInput(reporttest.Options{VMs: 1000, Length: 10 * time.Minute}),
	} {
		file := filepath.Join(t.TempDir(), "report.html")
		var html bytes.Buffer
		if err := HTML(&html, New(in)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, html.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		var paper []byte
		b.Do(browsertest.Size(1440, 900), chromedp.Navigate("file://"+file),
			chromedp.WaitVisible("#details", chromedp.ByQuery))
		if top := browsertest.Ask[float64](b, `document.getElementById("details").getBoundingClientRect().top`); top > 8*900 {
			t.Errorf("%s: all details begin after %.1f screens", name, top/900)
		}
		if n := browsertest.Ask[int](b, `document.querySelectorAll("main > section ol:not(.short) > li").length`); n != 5 {
			t.Errorf("%s: %d of the worst are named before all details", name, n)
		}
		b.Shot("large-" + strings.ReplaceAll(name, " ", "-"))
		b.Do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			paper, _, err = page.PrintToPDF().Do(ctx)
			return err
		}))
		if n := len(regexp.MustCompile(`/Type /Page\b`).FindAll(paper, -1)); n < 1 || n > 10 {
			t.Errorf("%s: printed on %d sheets", name, n)
		}
		if n := browsertest.Ask[int](b,
			`document.querySelectorAll("#details section[aria-labelledby=latency] table").length`); n <
			len(New(in).Latencies) {
			t.Errorf("%s: %d tables of percentiles among the details", name, n)
		}
		if n := browsertest.Ask[int](b, `document.querySelectorAll("*").length`); n > mostElements {
			t.Errorf("%s: %d elements", name, n)
		}
		look := fewAlike
		if name == "1000 VMs" { // its tables are cut, so that axe-core gets through all of it
			look = openAll
		}
		b.Do(chromedp.Evaluate(look, nil))
		b.Accessible(name)
	}
	b.Complained()
}

// Nodes that are alike are one row of a page, however many there are; a series of one value is drawn nowhere.
func TestAlikeNodesAndSingleValues(t *testing.T) {
	t.Parallel()
	doc := &Document{}
	for i := range 250 {
		doc.Manifest.Nodes = append(doc.Manifest.Nodes, result.Node{Name: fmt.Sprint("n", i), Cores: 8 + i/249*8})
	}
	doc.Manifest.Nodes = append(doc.Manifest.Nodes, result.Node{Name: "n251", Cores: 16})
	one := 1.0
	for name, values := range map[string][]*float64{"read_p99": {nil, nil, &one}, "node_cpu": {nil, &one, &one}} {
		doc.Series = append(doc.Series, result.Series{Measure: name, Name: "all", Unit: "us", Step: 1, Values: values})
	}
	v := newView(doc)
	if rows := v.Nodes(); len(rows) != 3 || rows[0].Until != "n248" || rows[0].Count != 249 || rows[1].Cores != 16 {
		t.Errorf("%+v", rows)
	}
	if len(v.Machines) != 1 || v.Machines[0].Title != "Node CPU" {
		t.Errorf("%+v", v.Machines)
	}
}

// TestSpread: a run of many loads is told by groups and the worst of them, as a page, as Markdown and as text.
func TestSpread(t *testing.T) {
	t.Parallel()
	doc := loadOf(5, 7, 6)
	if rows, worst := doc.Spread(); rows != nil || worst != nil {
		t.Errorf("of three: %v, %v", rows, worst)
	}
	var rates []float64
	for i := range 52 {
		rates = append(rates, float64(100+i))
	}
	doc = loadOf(rates...)
	doc.Workloads[7].Errors = 3
	doc.Workloads[9].Errors = 1
	doc.Findings = []result.Finding{finding("errors", result.Info, "N.")}
	rows, worst := doc.Spread()
	if diff := cmp.Diff([][]string{{"W*", "52", "read", "100 IOPS", "125 IOPS", "151 IOPS", "4 ms", "4 ms", "4 ms",
		"4"}}, rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"W7: read 107 IOPS, p99 4 ms, 3 operations failed",
		"W9: read 109 IOPS, p99 4 ms, 1 operation failed", "W0: read 100 IOPS, p99 4 ms", "W1: read 101 IOPS, p99 4 ms",
		"W2: read 102 IOPS, p99 4 ms"}, worst); diff != "" {
		t.Error(diff)
	}
	inBoth(t, doc, "W7: read 107 IOPS, p99 4 ms, 3 operations failed", "125 IOPS")
}

// TestSpreadOfVMs: of a load on many machines the lowest, the middle and the highest are told, and the worst of them,
// without the load that filled their disks and without what all names begin with.
func TestSpreadOfVMs(t *testing.T) {
	t.Parallel()
	if rows, worst := New(runInput(reporttest.Options{VMs: 6, Length: time.Minute})).SpreadOfVMs(); rows != nil ||
		worst != nil {
		t.Errorf("of six: %v, %v", rows, worst)
	}
	second := func(v float64) *float64 { return &v }
	doc := loadOf(60)
	doc.Workloads = nil
	for i := range 20 {
		vm := fmt.Sprintf("__curie_test_1_Fleet_%04d", i)
		doc.VMs = append(doc.VMs, result.VM{Name: vm, Group: "Fleet"})
		totals := WindowTotals{Rows: []OpRow{{Op: "read", Unit: "ops/s", OpsPerSecond: float64(1 + i),
			P99: second(0.001 * float64(1+i))}}}
		doc.Workloads = append(doc.Workloads, WorkloadSummary{Name: "W0", VM: vm, Totals: totals},
			WorkloadSummary{Name: "W0", VM: vm, Prefill: true, Totals: totals})
	}
	doc.Workloads[8].Errors = 2 // of the fifth
	rows, worst := doc.SpreadOfVMs()
	if diff := cmp.Diff([][]string{{"W0", "20", "read", "1 IOPS", "10 IOPS", "20 IOPS", "1 ms", "10 ms", "20 ms", "2"}},
		rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"W0 on VM 0004: read 5 IOPS, p99 5 ms, 2 operations failed",
		"W0 on VM 0019: read 20 IOPS, p99 20 ms", "W0 on VM 0018: read 19 IOPS, p99 19 ms",
		"W0 on VM 0017: read 18 IOPS, p99 18 ms", "W0 on VM 0016: read 17 IOPS, p99 17 ms"}, worst); diff != "" {
		t.Error(diff)
	}
	inBoth(t, doc, "From VM to VM", "W0 on VM 0004: read 5 IOPS, p99 5 ms, 2 operations failed")
}

// inBoth finds words in a document's Markdown and in its text.
func inBoth(t *testing.T, doc *Document, words ...string) {
	t.Helper()
	var markdown, text bytes.Buffer
	if err := Markdown(&markdown, doc); err != nil {
		t.Fatal(err)
	}
	if err := Text(&text, doc); err != nil {
		t.Fatal(err)
	}
	for _, want := range words {
		if !strings.Contains(markdown.String(), want) || !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in both:\n%s\n%s", want, &markdown, &text)
		}
	}
}
