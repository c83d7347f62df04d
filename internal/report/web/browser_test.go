package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"plimsoll/internal/report/web"
	"plimsoll/internal/testkit/browsertest"
	"plimsoll/internal/testkit/visibletest"
	"plimsoll/result"
)

// look opens a page at three widths, in light and dark, and finds nothing wider than its window.
func look(b *browsertest.Browser, name, url string) {
	b.Helper()
	for _, width := range []int64{1440, 768, 390} {
		b.Do(browsertest.Size(width, 900), chromedp.Navigate(url), chromedp.WaitVisible("main", chromedp.ByQuery))
		if w := browsertest.Ask[int64](b, `document.documentElement.scrollWidth`); w > width {
			b.Errorf("%s: in a window of %d the page is %d wide", name, width, w)
		}
		b.ShotWhole(name + "-" + strconv.FormatInt(width, 10))
	}
	b.Do(
		emulation.SetEmulatedMedia().
			WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
	)
	b.ShotWhole(name + "-dark")
	b.Do(emulation.SetEmulatedMedia().WithFeatures(nil))
}

// TestBrowser goes through the pages as a person does: the list, a filter, a live run whose page follows it, a report.
func TestBrowser(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t)
	s.run("20260301-100000-done-0001", "done", t0).work(120).end(result.StatusSucceeded)
	s.run("20260301-100200-broken-0002", "broken", t0.Add(2*time.Minute)).work(5).end(result.StatusFailed)
	live := s.run("20260301-103000-live-0003", "live", t0.Add(30*time.Minute)).work(60)
	if err := os.WriteFile(filepath.Join(s.root, "20260301-100200-broken-0002", "manifest.json"), []byte("{"),
		0o644); err != nil {
		t.Fatal(err)
	}
	look(b, "list", s.url+"/")
	b.Do(browsertest.Size(1300, 900), chromedp.Navigate(s.url+"/"),
		chromedp.SetValue(`select[name=scenario]`, "done", chromedp.ByQuery),
		chromedp.Click(`form button`, chromedp.ByQuery),
		chromedp.WaitReady(`option[value=done][selected]`, chromedp.ByQuery),
		chromedp.WaitReady(`footer`, chromedp.ByQuery))
	if rows := browsertest.Ask[int](b, `document.querySelectorAll("tbody tr").length`); rows != 1 {
		t.Errorf("filtered: %d rows", rows)
	}
	b.Do(chromedp.Click(`tbody a`, chromedp.ByQuery), chromedp.WaitVisible("#about", chromedp.ByQuery))
	if title := browsertest.Ask[string](b, `document.querySelector("h1").textContent`); title != "The done" {
		t.Errorf("title %q", title)
	}
	look(b, "done", s.url+"/runs/20260301-100000-done-0001")
	b.Do(browsertest.Size(1300, 900), chromedp.Click(`.links a.main`, chromedp.ByQuery),
		chromedp.WaitVisible("#answer", chromedp.ByQuery))
	look(b, "damaged", s.url+"/runs/20260301-100200-broken-0002")

	page := s.url + "/runs/20260301-103000-live-0003"
	look(b, "live", page)
	const ends = `Math.max(...[...document.querySelectorAll("svg path.l")].map(p => p.getBBox().x + p.getBBox().width))`
	const times = `[...document.querySelectorAll("svg text.m")].map(t => t.textContent).join()`
	b.Do(browsertest.Size(1300, 900), chromedp.Navigate(page), chromedp.WaitVisible("svg", chromedp.ByQuery))
	if at := browsertest.Ask[float64](b, ends); at < 700 {
		t.Errorf("the lines end at %v of 960", at)
	}
	const tiles = `[...document.querySelectorAll(".tiles div")].map(d => [...d.children].map(c => c.textContent).join(" ")).join("; ")`
	if got, want := browsertest.Ask[string](b, tiles), "Rate 100 IOPS; Bandwidth 400 KiB/s; Latency, p99 2.13 ms of W; "+
		"Errors 0 so far; Progress"; !strings.HasPrefix(got, want) {
		t.Errorf("the tiles are %q, want %q", got, want)
	}
	before := browsertest.Ask[string](b, times)
	b.Do(chromedp.Evaluate(`window.stayed = 1; 0`, nil))
	live.event(result.Event{Kind: result.KindFault, Text: "node 3 <b>lost</b> its power"})
	live.work(120)
	s.pass(3 * time.Second)
	within(t, 30*time.Second, "the page follows the run", func() bool {
		now := browsertest.Ask[string](b, times)
		return now != before && (strings.Contains(now, "2:30") || strings.Contains(now, "3:00"))
	})
	const journal = `document.querySelector(".journal tr.fault td:last-child").textContent`
	if got := browsertest.Ask[string](b, journal); got != "node 3 <b>lost</b> its power" {
		t.Errorf("the journal says %q", got)
	}
	if !browsertest.Ask[bool](b, `window.stayed === 1`) {
		t.Error("the page was loaded again")
	}
	look(b, "live-later", page)
	b.Do(browsertest.Size(1300, 900))
	b.Do(chromedp.Click(`.links a:not(.main)`, chromedp.ByQuery),
		chromedp.WaitVisible(`.links a[href$="0003"]`, chromedp.ByQuery))
	if n := browsertest.Ask[int](b, `document.querySelectorAll("meta[http-equiv=refresh]").length`); n != 0 {
		t.Error("held still, it is made anew all the same")
	}
	b.Do(chromedp.Navigate(page), chromedp.WaitVisible("#live-now", chromedp.ByQuery))
	live.end(result.StatusStopped)
	s.pass(3 * time.Second)
	within(t, 30*time.Second, "the page of a run that has ended is the one of its end", func() bool {
		var there bool
		return b.Try(chromedp.Evaluate(`document.querySelector("main") !== null && !document.getElementById("live-now")`,
			&there)) == nil && there
	})
	b.Complained()
}

// TestBrowserOutlivesTheServer: the page of a run goes on with the server that is started in the place of one that was
// stopped, and with one that sent it away.
func TestBrowserOutlivesTheServer(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t)
	live := s.run("20260301-103000-live-0001", "live", t0.Add(30*time.Minute)).work(60)
	var away atomic.Bool
	first := web.New(web.Options{Folders: func() ([]string, error) { return result.Folders(s.root) }, Now: s.now})
	var now atomic.Pointer[web.Site]
	now.Store(first)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		now.Load().Handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	b.Do(browsertest.Size(1300, 900), chromedp.Navigate(server.URL+"/runs/20260301-103000-live-0001"),
		chromedp.WaitVisible("svg", chromedp.ByQuery), chromedp.Evaluate(`window.stayed = 1; 0`, nil))
	says := func(text string) {
		within(t, 30*time.Second, text, func() bool {
			return browsertest.Ask[string](b, `document.getElementById("live-state").textContent`) == text
		})
	}
	says("This page follows the run.")
	away.Store(true)
	first.Stopping()
	says("The site sends nothing of this run now; asking again.")
	live.event(result.Event{Kind: result.KindFault, Text: "lost meanwhile"})
	live.work(60)
	s.pass(3 * time.Second)
	now.Store(s.site)
	away.Store(false)
	says("This page follows the run.")
	within(t, 30*time.Second, "what was missed is there", func() bool {
		return strings.Contains(browsertest.Ask[string](b, `document.getElementById("live-journal").textContent`),
			"lost meanwhile")
	})
	if !browsertest.Ask[bool](b, `window.stayed === 1`) {
		t.Error("the page was loaded again")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	live.end(result.StatusStopped)
	within(t, 30*time.Second, "its page is the one of its end", func() bool {
		var there bool
		return b.Try(chromedp.Evaluate(`document.querySelector("main") !== null && !document.getElementById("live-now")`,
			&there)) == nil && there
	})
}

// within waits until something is so.
func within(t *testing.T, patience time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// TestBrowserHostile opens pages full of hostile texts: nothing of them runs, and nothing is asked for elsewhere.
func TestBrowserHostile(t *testing.T) {
	b := browsertest.Start(t)
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
	b.Do(network.Enable())
	for name, path := range map[string]string{"hostile-list": "/",
		"hostile-live":    "/runs/20260301-100000-hostile-0001?still=1",
		"hostile-follow":  "/runs/20260301-100000-hostile-0001",
		"hostile-none":    "/runs/" + url.PathEscape(`<script>window.PWNED=1</script>`),
		"hostile-search":  "/?q=" + url.QueryEscape(`"><script>window.PWNED=1</script>`),
		"hostile-compare": "/compare?run=" + url.QueryEscape(`"><script>window.PWNED=1</script>`) + "&run=x",
		"hostile-filter":  "/?scenario=" + url.QueryEscape(`"><script>window.PWNED=1</script>`)} {
		look(b, name, s.url+path)
		if name == "hostile-follow" { // what it was sent stands in the place of what it was made with
			within(t, 30*time.Second, "the page follows the run", func() bool {
				return browsertest.Ask[string](b, `document.getElementById("live-state").textContent`) == "This page follows the run."
			})
		}
		b.Do(chromedp.Evaluate(`for (const e of document.querySelectorAll("*"))
			for (const kind of ["mouseover", "mouseenter", "focus"]) e.dispatchEvent(new MouseEvent(kind, {bubbles: true}))`, nil))
		if got := browsertest.Ask[string](b, `String(window.PWNED) + String(window.name)`); got != "undefined" {
			t.Errorf("%s: something of the texts ran: %s", name, got)
		}
		if n := browsertest.Ask[int](b, `document.querySelectorAll("script, iframe, img, object, embed, base, [onerror], [onload], [onfocus]").length`); n != 1 { // ours
			t.Errorf("%s: %d elements, of which the page has its one script", name, n)
		}
	}
	b.Complained()
	for _, u := range b.Asked() {
		if !strings.HasPrefix(u, s.url) {
			t.Errorf("a page asked for %q", u)
		}
	}
	r.end(result.StatusSucceeded)
}

// TestZones: moments are said in the reader's zone with UTC beside, also those that a followed run sends; without a
// script UTC stays.
func TestZones(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t)
	s.run("20260301-100000-done-0001", "done", t0).work(120).end(result.StatusSucceeded)
	live := s.run("20260301-103000-live-0002", "live", t0.Add(30*time.Minute)).work(60)
	defer live.end(result.StatusSucceeded)
	texts := func(of string) string {
		return browsertest.Ask[string](b, `[...document.querySelectorAll("`+of+`")].map(e => e.textContent).join("; ")`)
	}
	const list, report = "/", "/runs/20260301-100000-done-0001/report"
	b.Do(browsertest.Size(1300, 900), emulation.SetTimezoneOverride("Asia/Kolkata"))
	for path, want := range map[string]string{
		list:                              "2026-03-01 16:00:00 GMT+5:30 (10:30:00 UTC); 2026-03-01 15:30:00 GMT+5:30 (10:00:00 UTC)",
		"/runs/20260301-100000-done-0001": "2026-03-01 15:30:00 GMT+5:30 (10:00:00 UTC)",
		report:                            "2026-03-01 15:30:00 GMT+5:30 (10:00:00 UTC)",
	} {
		b.Do(chromedp.Navigate(s.url+path), chromedp.WaitVisible("main", chromedp.ByQuery))
		if got := texts("time"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if got := texts("#zone"); got != "Times are of Asia/Calcutta, UTC beside." {
			t.Errorf("%s: %q", path, got)
		}
	}
	b.Do(chromedp.Navigate(s.url+"/runs/20260301-103000-live-0002"),
		chromedp.WaitVisible("#live-now", chromedp.ByQuery))
	live.event(result.Event{Kind: result.KindFault, Text: "lost"})
	live.work(60)
	s.pass(3 * time.Second)
	const at = `document.querySelector(".journal tr.fault th")?.textContent ?? ""`
	within(t, 30*time.Second, "the fault is said in the reader's zone", func() bool {
		got := browsertest.Ask[string](b, at)
		return strings.HasPrefix(got, "16:0") && strings.HasSuffix(got, " UTC)")
	})
	b.Do(emulation.SetTimezoneOverride("UTC"), chromedp.Navigate(s.url+list),
		chromedp.WaitVisible("main", chromedp.ByQuery))
	if got := texts("time"); got != "2026-03-01 10:30:00 UTC; 2026-03-01 10:00:00 UTC" {
		t.Errorf("in UTC: %q", got)
	}
	b.Do(emulation.SetScriptExecutionDisabled(true), emulation.SetTimezoneOverride("Asia/Kolkata"),
		chromedp.Navigate(s.url+list), chromedp.WaitVisible("main", chromedp.ByQuery))
	b.Do(emulation.SetScriptExecutionDisabled(false))
	if got := texts("time"); got != "2026-03-01 10:30:00 UTC; 2026-03-01 10:00:00 UTC" {
		t.Errorf("without a script: %q", got)
	}
	b.Complained()
}
