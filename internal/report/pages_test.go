package report

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/browsertest"
	"plimsoll/internal/testkit/comparetest"
)

// wide is an experiment with long names and many levels.
func wide(t *testing.T) *compare.Experiment {
	t.Helper()
	r := rand.New(rand.NewPCG(12, 0))
	d := compare.Design{ID: "20260301-120000-an-experiment-with-a-name-that-goes-on-0001",
		Title: "Pages, depth and a title that is longer than a phone is wide", Summary: "What do they do?",
		Order: "randomised", Repeats: 2, Failed: []compare.Unmade{{Cell: "huge_pages=1G queue_depth=64",
			Levels: []string{"1G", "64"}, Repeat: 2,
			Reason: "provision: vm \"a-very-long-name-of-a-machine-0001\": no huge pages left"}},
		Factors: []compare.Factor{{Name: "huge_pages", Levels: []string{"none", "2M", "1G"}},
			{Name: "queue_depth", Levels: []string{"1", "4", "16", "64"}}}}
	for repeat := 1; repeat <= 2; repeat++ {
		for i, pages := range d.Factors[0].Levels {
			for j, depth := range d.Factors[1].Levels {
				n := len(d.Made) + 1
				law := comparetest.Law{Rate: 60 * float64(1+i) * float64(1+j), Mean: 0.002, Spread: 0.01, Noise: 0.05,
					Seconds: 30}
				m := comparetest.Manifest(n)
				m.Simulated, m.TimeScale = true, 0.1
				d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: m, Data: comparetest.Data(r, law)},
					Levels: []string{pages, depth}, Repeat: repeat, Sequence: n})
			}
		}
	}
	d.Planned = len(d.Made) + 1
	x, err := compare.OfExperiment(d, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestBrowserOfPages looks at the pages without a script: nothing complains, nothing is wider than a phone or cut off
// on paper, and dark is dark.
func TestBrowserOfPages(t *testing.T) {
	compared, err := compare.Of(comparedSides(), compare.Options{Anyway: true})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := compare.OfSamples([]compare.Samples{
		{Name: "before-with-a-rather-long-name-of-a-file.csv",
			Columns: []compare.Column{{Name: "iops", Values: []float64{1, 2, 3, 4}},
				{Name: "p99_ms", Values: []float64{1, 1, 1, 1.1}}}},
		{Name: "after.csv", Columns: []compare.Column{{Name: "iops", Values: []float64{100, 200, 300, 400}},
			{Name: "p99_ms", Values: []float64{2, 1, 3, 1}}}},
	}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	experiment := wide(t)
	b := browsertest.Start(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"compare":    func(w *bytes.Buffer) error { return CompareHTML(w, compared) },
		"files":      func(w *bytes.Buffer) error { return CompareHTML(w, samples) },
		"experiment": func(w *bytes.Buffer) error { return ExperimentHTML(w, experiment) },
	} {
		var html bytes.Buffer
		if err := write(&html); err != nil {
			t.Fatal(err)
		}
		page := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(page, html.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		b.Do(emulation.SetEmulatedMedia(), browsertest.Size(1440, 1200), chromedp.Navigate("file://"+page),
			chromedp.WaitVisible("main", chromedp.ByQuery))
		b.Shot(name + "-1")
		inside(b, name, 1440)
		b.Do(browsertest.Size(390, 844), chromedp.Sleep(100*time.Millisecond))
		b.Shot(name + "-2-phone")
		inside(b, name+" on a phone", 390)
		b.Do(browsertest.Size(1440, 1200),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: "dark"}}), chromedp.Sleep(100*time.Millisecond))
		b.Shot(name + "-3-dark")
		if pale := browsertest.Ask[[]string](b, dim); len(pale) > 0 {
			t.Errorf("%s: hardly to be read in the dark: %q", name, pale)
		}
		b.Do(browsertest.Size(794, 1123), emulation.SetEmulatedMedia().WithMedia("print"),
			chromedp.Sleep(100*time.Millisecond))
		b.Shot(name + "-4-print")
		if cut := browsertest.Ask[[]string](b, cutOff); len(cut) > 0 {
			t.Errorf("%s: cut off on paper: %q", name, cut)
		}
	}
	b.Complained()
}

// inside checks that nothing makes the page wider than the window.
func inside(b *browsertest.Browser, name string, width int) {
	b.Helper()
	if w := browsertest.Ask[int](b, `document.documentElement.scrollWidth`); w > width {
		b.Errorf("%s: the page is %d wide", name, w)
	}
	out := browsertest.Ask[[]string](b,
		`[...document.querySelectorAll("h1,h2,h3,h4,p,li,svg")].filter(e => !e.closest(".scroll, .skip, .hidden") && !e.classList.contains("skip") && e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.tagName + " " + e.textContent.slice(0, 40))`)
	if len(out) > 0 {
		b.Errorf("%s: reaches beyond the window: %q", name, out)
	}
}

// dim lists texts whose contrast to their background is below 4.5 to 1 (WCAG 2, level AA).
const dim = `(() => {
  const rgb = s => (s.match(/[\d.]+/g) || []).map(Number);
  const light = c => { const f = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length && (c.length < 4 || c[3] > 0.99)) return c; } return [255, 255, 255]; };
  const out = new Set();
  for (const e of document.querySelectorAll("main *, header *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest("svg") || e.offsetParent === null) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) out.add(e.tagName + "." + e.className + " " + e.textContent.slice(0, 20));
  }
  return [...out].slice(0, 8);
})()`

// cutOff lists what scrolls in a window and cannot on paper.
const cutOff = `[...document.querySelectorAll("main *, header *")].filter(e => getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1 && e.offsetParent !== null && !e.classList.contains("hidden")).map(e => e.tagName + "." + e.className + " " + e.scrollWidth + " in " + e.clientWidth)`
