package web_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"plimsoll/internal/needs"
	"plimsoll/internal/visible/visibletest"
	"plimsoll/result"
)

// shotsVariable names a folder for screenshots, for looking at: PLIMSOLL_SHOTS=/tmp/shots go test -run Browser
const shotsVariable = "PLIMSOLL_SHOTS"

// browser is a headless browser that keeps what pages complain of and ask for.
type browser struct {
	*testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string
	asked    []string
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := needs.Chromium(t)
	profile, err := os.MkdirTemp("", "plimsoll-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its processes may still write for a moment
		for range 100 {
			if err = os.RemoveAll(profile); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.UserDataDir(profile),
		chromedp.Flag(
			"disable-quic",
			true,
		),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true),
		// Its own scratch files are not where ours are looked for.
		chromedp.Env("TMPDIR="+profile),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	b := &browser{T: t, ctx: ctx}
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

func (b *browser) do(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

func ask[T any](b *browser, expression string) T {
	b.Helper()
	var v T
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

func (b *browser) size(w, h int64) chromedp.Action {
	return emulation.SetDeviceMetricsOverride(w, h, 1, w < 500)
}

// shot keeps a screenshot when asked to, of the whole page.
func (b *browser) shot(name string) {
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		return
	}
	var png []byte
	b.do(chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.Error(err)
	}
}

// look opens a page at two widths, in light and dark, and finds nothing wider than its window.
func (b *browser) look(name, url string) {
	b.Helper()
	for _, width := range []int64{1300, 390} {
		b.do(b.size(width, 900), chromedp.Navigate(url), chromedp.WaitVisible("main", chromedp.ByQuery))
		if w := ask[int64](b, `document.documentElement.scrollWidth`); w > width {
			b.Errorf("%s: in a window of %d the page is %d wide", name, width, w)
		}
		b.shot(name + "-" + map[int64]string{1300: "1300", 390: "390"}[width])
	}
	b.do(
		emulation.SetEmulatedMedia().
			WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
	)
	b.shot(name + "-dark")
	b.do(emulation.SetEmulatedMedia().WithFeatures(nil))
}

func (b *browser) complained() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		b.Errorf("pages complained:\n%s", strings.Join(b.problems, "\n"))
	}
}

// TestBrowser goes through the pages as a person does: the list, a filter, a live run whose page follows it, a report.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	s := serve(t)
	s.run("20260301-100000-done-0001", "done", t0).work(120).end(result.StatusSucceeded)
	s.run("20260301-100200-broken-0002", "broken", t0.Add(2*time.Minute)).work(5).end(result.StatusFailed)
	live := s.run("20260301-103000-live-0003", "live", t0.Add(30*time.Minute)).work(60)
	if err := os.WriteFile(filepath.Join(s.root, "20260301-100200-broken-0002", "manifest.json"), []byte("{"),
		0o644); err != nil {
		t.Fatal(err)
	}
	b.look("list", s.url+"/")
	b.do(
		b.size(1300, 900),
		chromedp.Navigate(s.url+"/"),
		chromedp.SetValue(`select[name=scenario]`, "done", chromedp.ByQuery),
		chromedp.Click(`form button`, chromedp.ByQuery),
		chromedp.WaitVisible(`form a`, chromedp.ByQuery),
	)
	if rows := ask[int](b, `document.querySelectorAll("tbody tr").length`); rows != 1 {
		t.Errorf("filtered: %d rows", rows)
	}
	b.do(chromedp.Click(`tbody a`, chromedp.ByQuery), chromedp.WaitVisible("#about", chromedp.ByQuery))
	if title := ask[string](b, `document.querySelector("h1").textContent`); title != "The done" {
		t.Errorf("title %q", title)
	}
	b.look("done", s.url+"/runs/20260301-100000-done-0001")
	b.do(
		b.size(1300, 900),
		chromedp.Click(`.links a.main`, chromedp.ByQuery),
		chromedp.WaitVisible("#answer", chromedp.ByQuery),
	)
	b.look("damaged", s.url+"/runs/20260301-100200-broken-0002")

	page := s.url + "/runs/20260301-103000-live-0003"
	b.look("live", page)
	const ends = `Math.max(...[...document.querySelectorAll("svg path.l")].map(p => p.getBBox().x + p.getBBox().width))`
	const times = `[...document.querySelectorAll("svg text.m")].map(t => t.textContent).join()`
	b.do(b.size(1300, 900), chromedp.Navigate(page), chromedp.WaitVisible("svg", chromedp.ByQuery))
	if at := ask[float64](b, ends); at < 700 {
		t.Errorf("the lines end at %v of 960", at)
	}
	before := ask[string](b, times)
	live.work(120)
	s.pass(3 * time.Second)
	now := before
	for range 100 { // it makes itself anew after some seconds, and between two pages nothing can be asked
		if err := chromedp.Run(b.ctx, chromedp.Sleep(200*time.Millisecond), chromedp.Evaluate(times,
			&now)); err == nil &&
			now != before &&
			now != "" {
			break
		}
	}
	if !strings.Contains(now, "2:30") && !strings.Contains(now, "3:00") {
		t.Errorf("the page did not follow the run: its times are %s, and were %s", now, before)
	}
	b.do(
		chromedp.Click(`.links a:not(.main)`, chromedp.ByQuery),
		chromedp.WaitVisible(`.links a[href$="0003"]`, chromedp.ByQuery),
	)
	if n := ask[int](b, `document.querySelectorAll("meta[http-equiv=refresh]").length`); n != 0 {
		t.Error("held still, it is made anew all the same")
	}
	b.complained()
	live.end(result.StatusStopped)
}

// TestBrowserHostile opens pages full of hostile texts: nothing of them runs, and nothing is asked for elsewhere.
func TestBrowserHostile(t *testing.T) {
	b := startBrowser(t)
	s := serve(t)
	turn := visibletest.Turns()
	r := s.run("20260301-100000-hostile-0001", turn(), t0).work(5)
	for range len(visibletest.Texts) {
		r.event(result.Event{Kind: result.KindAnnotation, Text: turn(), Name: turn()})
	}
	if err := r.folder.Update(func(m *result.Manifest) {
		id, status := m.RunID, m.Status
		visibletest.Fill(m, turn)
		m.RunID, m.Status = id, status
	}); err != nil {
		t.Fatal(err)
	}
	s.pass(3 * time.Second)
	b.do(network.Enable())
	for name, path := range map[string]string{"hostile-list": "/",
		"hostile-live":   "/runs/20260301-100000-hostile-0001?still=1",
		"hostile-none":   "/runs/" + url.PathEscape(`<script>window.PWNED=1</script>`),
		"hostile-filter": "/?scenario=" + url.QueryEscape(`"><script>window.PWNED=1</script>`)} {
		b.look(name, s.url+path)
		b.do(chromedp.Evaluate(`for (const e of document.querySelectorAll("*"))
			for (const kind of ["mouseover", "mouseenter", "focus"]) e.dispatchEvent(new MouseEvent(kind, {bubbles: true}))`, nil))
		if got := ask[string](b, `String(window.PWNED) + String(window.name)`); got != "undefined" {
			t.Errorf("%s: something of the texts ran: %s", name, got)
		}
		if n := ask[int](b, `document.querySelectorAll("script, iframe, img, object, embed, base, [onerror], [onload], [onfocus]").length`); n != 0 {
			t.Errorf("%s: %d elements that the page does not have", name, n)
		}
	}
	b.complained()
	b.mu.Lock()
	for _, u := range b.asked {
		if !strings.HasPrefix(u, s.url) {
			t.Errorf("a page asked for %q", u)
		}
	}
	b.mu.Unlock()
	r.end(result.StatusSucceeded)
}
