package report

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"plimsoll/internal/needs"
	"plimsoll/internal/report/reporttest"
	"plimsoll/internal/visible/visibletest"
)

// shotsVariable names a folder for screenshots, for looking at: PLIMSOLL_SHOTS=/tmp/shots go test -run Browser
const shotsVariable = "PLIMSOLL_SHOTS"

// browser opens the page from disk in a headless browser and collects what it complains of.
type browser struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	if _, err := embedded.ReadFile("assets/vendor/uPlot.iife.min.js"); err != nil {
		if os.Getenv(needs.CIVariable) == "1" {
			t.Fatal("the chart library is not embedded: run internal/report/assets.sh first")
		}
		t.Skip("the chart library is not embedded (run internal/report/assets.sh), so there is nothing interactive " +
			"to test")
	}
	return startBrowser(t)
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := needs.Chromium(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(profile(t)),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				b.complain("console " + string(e.Type) + ": " + string(a.Value))
			}
		}
	})
	return b
}

// profile is a folder for the browser, whose processes may still write into it for a moment after they were asked to
// end.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "plimsoll-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

func (b *browser) complain(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, s)
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates an expression of the page.
func ask[T any](b *browser, expression string) T {
	b.t.Helper()
	var v T
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// shot keeps a screenshot when asked to.
func (b *browser) shot(name string) {
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		return
	}
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Error(err)
	}
}

func (b *browser) size(w, h int64) chromedp.Action {
	return emulation.SetDeviceMetricsOverride(w, h, 1, w < 500)
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
	b.do(b.size(1440, 900), chromedp.Navigate("file://"+page), chromedp.WaitVisible("#results", chromedp.ByQuery))
	b.shot("1-first-screen")
	charts(b)
	zoom(b)
	toggle(b)
	phone(b)
	dark(b)
	onPaper(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		t.Errorf("the page complained:\n%s", strings.Join(b.problems, "\n"))
	}
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

func charts(b *browser) {
	var live int
	b.do(chromedp.Evaluate(reveal, &live, await))
	all := ask[int](b, `document.querySelectorAll("figure.chart").length`)
	if live != all || live < 8 {
		b.t.Errorf("%d of %d charts are interactive", live, all)
	}
	if n := ask[int](b, inked); n != all {
		b.t.Errorf("%d of %d charts have anything drawn on them", n, all)
	}
	b.do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"}); [...document.querySelectorAll(".u-over")][0].dispatchEvent(new MouseEvent("mouseenter"))`, nil))
	b.shot("2-results")
}

// box is where the plot of the first chart is.
type box struct{ X, Y, W, H float64 }

func plot(b *browser) box {
	return ask[box](b,
		`(() => { const o = document.querySelector(".u-over"); o.scrollIntoView({block: "center", behavior: "instant"}); const r = o.getBoundingClientRect(); return {X: r.left, Y: r.top, W: r.width, H: r.height}; })()`)
}

const ticks = `[...document.querySelectorAll("figure.chart.live")].map(f => f.querySelector("canvas").toDataURL().length).join()`

func zoom(b *browser) {
	p := plot(b)
	before := ask[string](b, ticks)
	mouse := func(kind input.MouseType, part float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, p.X+p.W*part,
			p.Y+p.H/2).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	b.do(input.DispatchMouseEvent(input.MouseMoved, p.X+p.W*0.3, p.Y+p.H/2), mouse(input.MousePressed, 0.3),
		mouse(input.MouseMoved, 0.45), mouse(input.MouseMoved, 0.6), mouse(input.MouseReleased, 0.6),
		chromedp.Sleep(300*time.Millisecond))
	if ask[bool](b, `document.getElementById("reset").hidden`) {
		b.t.Error("dragging across a chart did not zoom")
	}
	zoomed := ask[string](b, ticks)
	for i, s := range strings.Split(zoomed, ",") {
		if s == strings.Split(before, ",")[i] {
			b.t.Errorf("chart %d did not follow the zoom", i)
		}
	}
	values := ask[[]string](b,
		`[...document.querySelectorAll("figure.chart.live")].slice(0, 3).map(f => f.querySelector(".u-series .u-value").textContent)`)
	for i, v := range values {
		if !strings.Contains(v, "UTC") {
			b.t.Errorf("chart %d shows no values at the cursor: %q", i, v)
		}
	}
	b.shot("3-zoomed")
	b.do(chromedp.Click("#reset", chromedp.ByQuery), chromedp.Sleep(200*time.Millisecond))
	if !ask[bool](b, `document.getElementById("reset").hidden`) {
		b.t.Error("the zoom was not reset")
	}
	b.do(chromedp.Focus(".u-over", chromedp.ByQuery), chromedp.KeyEvent("\ue014")) // arrow right
}

func toggle(b *browser) {
	const off = `document.querySelectorAll(".u-series.u-off").length`
	b.do(chromedp.Evaluate(`document.querySelectorAll("figure.chart.live .u-series th")[1].click()`, nil))
	if ask[int](b, off) != 1 {
		b.t.Error("clicking a legend entry did not hide its series")
	}
	b.do(chromedp.Evaluate(`document.querySelectorAll("figure.chart.live .u-series th")[1].dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}))`, nil))
	if ask[int](b, off) != 0 {
		b.t.Error("Enter on a legend entry did not show its series again")
	}
}

func phone(b *browser) {
	b.do(b.size(390, 844), chromedp.Sleep(400*time.Millisecond))
	if w := ask[int](b, `document.documentElement.scrollWidth`); w > 390 {
		b.t.Errorf("on a phone the page is %d wide", w)
	}
	if w := ask[int](b,
		`Math.max(...[...document.querySelectorAll("figure.chart.live canvas")].map(c => c.getBoundingClientRect().right))`); w > 390 {
		b.t.Errorf("on a phone a chart reaches to %d", w)
	}
	b.do(chromedp.Evaluate(`window.scrollTo({top: 0, behavior: "instant"})`, nil))
	b.shot("4-phone")
	b.do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.shot("5-phone-results")
	b.do(chromedp.Evaluate(`document.getElementById("heat").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.shot("5-phone-heat")
}

func dark(b *browser) {
	b.do(b.size(1440, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: "dark"}}), chromedp.Sleep(400*time.Millisecond))
	b.do(chromedp.Evaluate(`window.scrollTo({top: 0, behavior: "instant"})`, nil))
	b.shot("6-dark")
	b.do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.shot("7-dark-results")
	b.do(chromedp.Evaluate(`document.getElementById("latency").scrollIntoView({behavior: "instant"})`, nil),
		chromedp.Sleep(200*time.Millisecond))
	b.shot("8-dark-latency")
	if n := ask[int](b, inked); n < 8 {
		b.t.Errorf("after the change to dark %d charts have anything drawn on them", n)
	}
}

func onPaper(b *browser) {
	b.do(b.size(794, 1123), emulation.SetEmulatedMedia().WithMedia("print"), chromedp.Sleep(300*time.Millisecond))
	if n := ask[int](b,
		`[...document.querySelectorAll(".uplot, button")].filter(e => e.offsetParent !== null).length`); n != 0 {
		b.t.Errorf("%d interactive parts would be printed", n)
	}
	if n := ask[int](b,
		`[...document.querySelectorAll("section[aria-labelledby=results] .draw svg")].filter(e => e.getBoundingClientRect().height > 50).length`); n < 5 {
		b.t.Errorf("%d drawings would be printed", n)
	}
	b.shot("9-print")
	b.do(chromedp.Evaluate(`document.getElementById("results").scrollIntoView({behavior: "instant"})`, nil))
	b.shot("10-print-results")
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
			var asked []string
			chromedp.ListenTarget(b.ctx, func(event any) {
				if e, ok := event.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(e.Request.URL, "data:") {
					b.mu.Lock()
					asked = append(asked, e.Request.URL)
					b.mu.Unlock()
				}
			})
			file := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			b.do(network.Enable(), b.size(1440, 900), chromedp.Navigate("file://"+file))
			var live int
			b.do(chromedp.WaitVisible("#results", chromedp.ByQuery), chromedp.Evaluate(open, nil),
				chromedp.Evaluate(reveal, &live, await))
			if all := ask[int](b, `document.querySelectorAll("figure.chart").length`); live != all || live < 5 {
				t.Errorf("%d of %d charts are interactive", live, all)
			}
			b.do(chromedp.Evaluate(`for (const e of document.querySelectorAll("*"))
				for (const kind of ["mouseover", "mouseenter", "focus", "click"])
					if (e.tagName !== "A") e.dispatchEvent(new MouseEvent(kind, {bubbles: true}))`, nil))
			if got := ask[string](b, `String(window.PWNED) + String(window.name)`); got != "undefined" {
				t.Errorf("something of the texts ran: %s", got)
			}
			for _, href := range ask[[]string](b, leading) {
				if !harmlessTarget.MatchString(href) {
					t.Errorf("leads somewhere: %.200s", href)
				}
			}
			if n := ask[int](b, twice); n != 0 {
				t.Errorf("%d ids are given twice", n)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(asked) != 1 || asked[0] != "file://"+file {
				t.Errorf("the page asked for %q", asked)
			}
			if len(b.problems) > 0 {
				t.Errorf("the page complained:\n%s", strings.Join(b.problems, "\n"))
			}
		})
	}
}
