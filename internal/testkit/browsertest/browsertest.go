// Package browsertest drives pages in a headless browser: it opens them, asks their scripts, takes screenshots, and
// keeps what they complain of and which addresses they ask for. Tests only.
//
//	PLIMSOLL_SHOTS=/tmp/shots go test ./internal/report -run Browser
//
// keeps the screenshots, for looking at. A machine without a browser skips the test, or fails it, as package needs
// says.
package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"plimsoll/internal/testkit/needs"
)

// shotsVariable names the folder of screenshots.
const shotsVariable = "PLIMSOLL_SHOTS"

// Browser is a headless browser with one page. It lives as long as its test, at most as long as it was started for.
type Browser struct {
	testing.TB
	ctx      context.Context
	mu       sync.Mutex
	problems []string
	asked    []string
}

// Start starts a browser for a minute.
func Start(t testing.TB) *Browser {
	t.Helper()
	return StartFor(t, time.Minute)
}

// StartFor starts a browser for a test that takes longer.
func StartFor(t testing.TB, most time.Duration) *Browser {
	t.Helper()
	path := needs.Chromium(t)
	profile := profile(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Env("TMPDIR="+profile)) // its own scratch files are not where ours are looked for
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, most)
	t.Cleanup(cancel)
	b := &Browser{TB: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				b.problems = append(b.problems, "console "+string(e.Type)+": "+string(a.Value))
			}
		case *network.EventRequestWillBeSent:
			b.asked = append(b.asked, e.Request.URL)
		}
	})
	return b
}

// profile is a folder for the browser, whose processes may still write into it for a moment after they were asked to
// end.
func profile(t testing.TB) string {
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

// Do carries actions out; one that fails ends the test.
func (b *Browser) Do(actions ...chromedp.Action) {
	b.Helper()
	if err := b.Try(actions...); err != nil {
		b.Fatal(err)
	}
}

// Try carries actions out.
func (b *Browser) Try(actions ...chromedp.Action) error { return chromedp.Run(b.ctx, actions...) }

// Ask evaluates an expression of the page.
func Ask[T any](b *Browser, expression string) T {
	b.Helper()
	var v T
	b.Do(chromedp.Evaluate(expression, &v))
	return v
}

// Size makes the window w by h pixels; a narrow one is a phone's.
func Size(w, h int64) chromedp.Action { return emulation.SetDeviceMetricsOverride(w, h, 1, w < 500) }

// Shot keeps a screenshot of the window when asked to; ShotWhole one of the whole page.
func (b *Browser) Shot(name string) {
	b.Helper()
	b.shot(name, func(png *[]byte) chromedp.Action { return chromedp.CaptureScreenshot(png) })
}

// ShotWhole keeps a screenshot of the whole page when asked to.
func (b *Browser) ShotWhole(name string) {
	b.Helper()
	b.shot(name, func(png *[]byte) chromedp.Action { return chromedp.FullScreenshot(png, 100) })
}

func (b *Browser) shot(name string, take func(*[]byte) chromedp.Action) {
	b.Helper()
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		return
	}
	var png []byte
	b.Do(take(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.Error(err)
	}
}

// Complained fails the test when a page threw an exception or wrote to its console.
func (b *Browser) Complained() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		b.Errorf("pages complained:\n%s", strings.Join(b.problems, "\n"))
	}
}

// Asked are the addresses that pages asked for so far, once network.Enable was done.
func (b *Browser) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// TabTo presses Tab until what a selector means has the focus, and checks that the focus is seen there: it is outlined,
// and within the window.
func (b *Browser) TabTo(what string) {
	b.Helper()
	const seen = `(() => { const e = document.activeElement, r = e.getBoundingClientRect();
		return getComputedStyle(e).outlineStyle !== "none" && r.bottom > 0 && r.top < innerHeight && r.width > 0; })()`
	for range 200 {
		b.Do(chromedp.KeyEvent(kb.Tab))
		if Ask[bool](b, `document.activeElement.matches(`+"`"+what+"`"+`)`) {
			for range 100 { // the page may still move there
				if Ask[bool](b, seen) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			b.Errorf("%s shows no focus", what)
			return
		}
	}
	b.Fatalf("no key leads to %s", what)
}

// Accessible has axe-core look at the page: what keeps people from reading it fails the test, of any weight.
func (b *Browser) Accessible(name string) {
	b.Helper()
	// What passes is neither listed nor are styles fetched for it: of a long report that takes a fifth of the time.
	const barriers = `axe.run({resultTypes: ["violations"], preload: false}).then(r => r.violations.map(v => v.impact + " " + v.id + ": " +
		v.nodes.map(n => n.target.join(" ")).join(", ")).join("\n"))`
	var found string
	b.Do(chromedp.Evaluate(needs.AxeCore(b)+"; 0", nil), chromedp.Evaluate(barriers, &found,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if found != "" {
		b.Errorf("%s:\n%s", name, found)
	}
}
