package report

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"plimsoll/internal/testkit/browsertest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/internal/testkit/visibletest"
)

func openBrowser(t *testing.T) *browsertest.Browser {
	t.Helper()
	_, err := embedded.ReadFile("assets/vendor/uPlot.iife.min.js")
	needs.That(t, err == nil, "the chart library of the report", "internal/report/assets.sh embeds it")
	return browsertest.Start(t)
}

func TestBrowser(t *testing.T) {
	b := openBrowser(t)
	page := filepath.Join(t.TempDir(), "report.html")
	var html bytes.Buffer
	if err := HTML(&html, New(runInput(reporttest.Options{VMs: 12, Length: 20 * time.Minute, TimeScale: 0.02,
		SizeScale: 0.002}))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, html.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Do(browsertest.Size(1440, 900), chromedp.Navigate("file://"+page),
		chromedp.WaitVisible("#results", chromedp.ByQuery))
	b.Shot("1-first-screen")
	charts(b)
	zoom(b)
	toggle(b)
	phone(b)
	dark(b)
	onPaper(b)
	b.Complained()
}

// reveal opens everything and draws every chart.
const reveal = `(async () => {
  document.querySelectorAll("details.metric").forEach(d => d.open = true);
  for (const f of document.querySelectorAll("figure.chart")) {
    f.scrollIntoView({behavior: "instant"});
    for (let i = 0; i < 50 && !f.classList.contains("live"); i++) await new Promise(r => setTimeout(r, 20));
  }
  window.scrollTo({top: 0, behavior: "instant"});
  await new Promise(r => setTimeout(r, 100));
  return document.querySelectorAll("figure.chart.live").length;
})()`

// inked counts charts on whose canvas more than a few pixels have the first series' colour family, that is, anything at
// all.
const inked = `[...document.querySelectorAll("figure.chart.live canvas")].filter(c => {
  const p = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  const seen = new Set();
  for (let i = 0; i < p.length; i += 4) if (p[i + 3] > 200) seen.add((p[i] >> 4) << 8 | (p[i + 1] >> 4) << 4 | p[i + 2] >> 4);
  return seen.size > 3;
}).length`

func await(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

func charts(b *browsertest.Browser) {
	var live int
	b.Do(chromedp.Evaluate(reveal, &live, await))
	all := browsertest.Ask[int](b, `document.querySelectorAll("figure.chart").length`)
	if live != all || live < 8 {
		b.Errorf("%d of %d charts are interactive", live, all)
	}
	if n := browsertest.Ask[int](b, inked); n != all {
		b.Errorf("%d of %d charts have anything drawn on them", n, all)
	}
	b.Do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"}); [...document.querySelectorAll(".u-over")][0].dispatchEvent(new MouseEvent("mouseenter"))`, nil))
	b.Shot("2-results")
}

// box is where the plot of the first chart is.
type box struct{ X, Y, W, H float64 }

func plot(b *browsertest.Browser) box {
	return browsertest.Ask[box](b,
		`(() => { const o = document.querySelector(".u-over"); o.scrollIntoView({block: "center", behavior: "instant"}); const r = o.getBoundingClientRect(); return {X: r.left, Y: r.top, W: r.width, H: r.height}; })()`)
}

const ticks = `[...document.querySelectorAll("figure.chart.live")].map(f => f.querySelector("canvas").toDataURL().length).join()`

func zoom(b *browsertest.Browser) {
	p := plot(b)
	before := browsertest.Ask[string](b, ticks)
	mouse := func(kind input.MouseType, part float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, p.X+p.W*part,
			p.Y+p.H/2).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	b.Do(input.DispatchMouseEvent(input.MouseMoved, p.X+p.W*0.3, p.Y+p.H/2), mouse(input.MousePressed, 0.3),
		mouse(input.MouseMoved, 0.45), mouse(input.MouseMoved, 0.6), mouse(input.MouseReleased, 0.6),
		chromedp.Sleep(300*time.Millisecond))
	if browsertest.Ask[bool](b, `document.getElementById("reset").hidden`) {
		b.Error("dragging across a chart did not zoom")
	}
	zoomed := browsertest.Ask[string](b, ticks)
	for i, s := range strings.Split(zoomed, ",") {
		if s == strings.Split(before, ",")[i] {
			b.Errorf("chart %d did not follow the zoom", i)
		}
	}
	values := browsertest.Ask[[]string](b,
		`[...document.querySelectorAll("figure.chart.live")].slice(0, 3).map(f => f.querySelector(".u-series .u-value").textContent)`)
	for i, v := range values {
		if !strings.Contains(v, "UTC") {
			b.Errorf("chart %d shows no values at the cursor: %q", i, v)
		}
	}
	b.Shot("3-zoomed")
	b.Do(chromedp.Click("#reset", chromedp.ByQuery), chromedp.Sleep(200*time.Millisecond))
	if !browsertest.Ask[bool](b, `document.getElementById("reset").hidden`) {
		b.Error("the zoom was not reset")
	}
	b.Do(chromedp.Focus(".u-over", chromedp.ByQuery), chromedp.KeyEvent("\ue014")) // arrow right
}

func toggle(b *browsertest.Browser) {
	const off = `document.querySelectorAll(".u-series.u-off").length`
	b.Do(chromedp.Evaluate(`document.querySelectorAll("figure.chart.live .u-series th")[1].click()`, nil))
	if browsertest.Ask[int](b, off) != 1 {
		b.Error("clicking a legend entry did not hide its series")
	}
	b.Do(chromedp.Evaluate(`document.querySelectorAll("figure.chart.live .u-series th")[1].dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}))`, nil))
	if browsertest.Ask[int](b, off) != 0 {
		b.Error("Enter on a legend entry did not show its series again")
	}
}

func phone(b *browsertest.Browser) {
	b.Do(browsertest.Size(390, 844), chromedp.Sleep(400*time.Millisecond))
	if w := browsertest.Ask[int](b, `document.documentElement.scrollWidth`); w > 390 {
		b.Errorf("on a phone the page is %d wide", w)
	}
	if w := browsertest.Ask[int](b,
		`Math.max(...[...document.querySelectorAll("figure.chart.live canvas")].map(c => c.getBoundingClientRect().right))`); w > 390 {
		b.Errorf("on a phone a chart reaches to %d", w)
	}
	b.Do(chromedp.Evaluate(`window.scrollTo({top: 0, behavior: "instant"})`, nil))
	b.Shot("4-phone")
	b.Do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.Shot("5-phone-results")
	b.Do(chromedp.Evaluate(`document.getElementById("heat").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.Shot("5-phone-heat")
}

func dark(b *browsertest.Browser) {
	b.Do(browsertest.Size(1440, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: "dark"}}), chromedp.Sleep(400*time.Millisecond))
	b.Do(chromedp.Evaluate(`window.scrollTo({top: 0, behavior: "instant"})`, nil))
	b.Shot("6-dark")
	b.Do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.Shot("7-dark-results")
	b.Do(chromedp.Evaluate(`document.getElementById("latency").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.Shot("8-dark-latency")
	if n := browsertest.Ask[int](b, inked); n < 8 {
		b.Errorf("after the change to dark %d charts have anything drawn on them", n)
	}
}

func onPaper(b *browsertest.Browser) {
	b.Do(browsertest.Size(794, 1123), emulation.SetEmulatedMedia().WithMedia("print"),
		chromedp.Sleep(300*time.Millisecond))
	if n := browsertest.Ask[int](b,
		`[...document.querySelectorAll(".uplot, button")].filter(e => e.offsetParent !== null).length`); n != 0 {
		b.Errorf("%d interactive parts would be printed", n)
	}
	if n := browsertest.Ask[int](b,
		`[...document.querySelectorAll("section[aria-labelledby=results] .draw svg")].filter(e => e.getBoundingClientRect().height > 50).length`); n < 5 {
		b.Errorf("%d drawings would be printed", n)
	}
	b.Shot("9-print")
	b.Do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"})`, nil))
	b.Shot("10-print-results")
}

// TestBrowserHostile opens a page full of hostile texts, with its policy and without: nothing of them runs and nothing
// is asked of a network, so that each wall stands alone.
func TestBrowserHostile(t *testing.T) {
	doc := filled(visibletest.Turns())
	var all strings.Builder
	for _, h := range visibletest.Texts {
		all.WriteString("<p>" + h.Text + "</p>")
		doc.Description += sanitise(h.Text)
	}
	doc.Description += sanitise(all.String())
	var page bytes.Buffer
	if err := HTML(&page, doc); err != nil {
		t.Fatal(err)
	}
	const (
		open    = `document.querySelectorAll("details").forEach(d => d.open = true)`
		leading = `[...document.querySelectorAll("[href], [src], [action], [srcset]")]
			.map(e => e.getAttribute("href") || e.outerHTML)`
		twice = `(ids => ids.length - new Set(ids).size)([...document.querySelectorAll("[id]")].map(e => e.id))`
	)
	harmlessTarget := regexp.MustCompile(`^(https?://|#|data:image/png;base64,)`)
	bare := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAll(page.Bytes(), nil)
	if len(bare) == page.Len() {
		t.Fatal("the page has no policy")
	}
	for name, text := range map[string][]byte{"with policy": page.Bytes(), "without policy": bare} {
		t.Run(name, func(t *testing.T) {
			b := openBrowser(t)
			file := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			b.Do(network.Enable(), browsertest.Size(1440, 900), chromedp.Navigate("file://"+file))
			var live int
			b.Do(chromedp.WaitVisible("#results", chromedp.ByQuery), chromedp.Evaluate(open, nil),
				chromedp.Evaluate(reveal, &live, await))
			if all := browsertest.Ask[int](b, `document.querySelectorAll("figure.chart").length`); live != all || live < 5 {
				t.Errorf("%d of %d charts are interactive", live, all)
			}
			b.Do(chromedp.Evaluate(`for (const e of document.querySelectorAll("*"))
				for (const kind of ["mouseover", "mouseenter", "focus", "click"])
					if (e.tagName !== "A") e.dispatchEvent(new MouseEvent(kind, {bubbles: true}))`, nil))
			if got := browsertest.Ask[string](b, `String(window.PWNED) + String(window.name)`); got != "undefined" {
				t.Errorf("something of the texts ran: %s", got)
			}
			for _, href := range browsertest.Ask[[]string](b, leading) {
				if !harmlessTarget.MatchString(href) {
					t.Errorf("leads somewhere: %.200s", href)
				}
			}
			if n := browsertest.Ask[int](b, twice); n != 0 {
				t.Errorf("%d ids are given twice", n)
			}
			asked := slices.DeleteFunc(b.Asked(), func(url string) bool { return strings.HasPrefix(url, "data:") })
			if len(asked) != 1 || asked[0] != "file://"+file {
				t.Errorf("the page asked for %q", asked)
			}
			b.Complained()
		})
	}
}
