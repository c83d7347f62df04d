package web_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"plimsoll/internal/report/catalogue"
	"plimsoll/internal/testkit/browsertest"
	"plimsoll/result"
)

// TestKeyboard goes from the list to a report with the keyboard alone, and sees where it is.
func TestKeyboard(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t)
	s.run("20260301-100000-done-0001", "done", t0).work(120).end(result.StatusSucceeded)
	s.run("20260301-100200-other-0002", "other", t0.Add(2*time.Minute)).work(5).end(result.StatusSucceeded)
	b.Do(browsertest.Size(1300, 900), chromedp.Navigate(s.url+"/"), chromedp.WaitVisible("main", chromedp.ByQuery))
	b.TabTo(".skip")
	b.TabTo("input[name=q]")
	b.Do(chromedp.KeyEvent("done"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`.filters a`, chromedp.ByQuery))
	if rows := browsertest.Ask[int](b, `document.querySelectorAll("tbody tr").length`); rows != 1 {
		t.Errorf("found: %d rows", rows)
	}
	b.TabTo("input[type=checkbox]")
	b.Do(chromedp.KeyEvent(" "))
	if !browsertest.Ask[bool](b, `document.activeElement.checked`) {
		t.Error("a row cannot be ticked")
	}
	b.TabTo("tbody a")
	b.Do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#about", chromedp.ByQuery))
	b.TabTo(".links a.main")
	b.Do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#answer", chromedp.ByQuery))
	b.Complained()
}

// TestAccessible has axe-core look at the pages, on a desk and on a phone: nothing of any weight is found.
func TestAccessible(t *testing.T) {
	b := browsertest.Start(t)
	s := serve(t)
	s.run("20260301-100000-done-0001", "done", t0).work(120).end(result.StatusSucceeded)
	live := s.run("20260301-105900-live-0002", "live", t0.Add(59*time.Minute)).work(30)
	s.run("20260301-100400-done-0003", "done", t0.Add(4*time.Minute)).work(120).end(result.StatusSucceeded)
	defer live.end(result.StatusSucceeded)
	s.run("20260301-100600-bad-0004", "bad", t0.Add(6*time.Minute)).work(120).end(result.StatusFailed)
	if err := os.WriteFile(filepath.Join(s.root, "20260301-100600-bad-0004", "manifest.json"), []byte("{"),
		0o644); err != nil {
		t.Fatal(err)
	}
	recorded, _ := catalogue.All(s.root)
	record := "/catalogue/" + url.PathEscape(recorded[0].ID)
	b.Do(page.SetBypassCSP(true)) // it is put into the page
	for _, path := range []string{"/", "/runs/20260301-100000-done-0001", "/runs/20260301-105900-live-0002",
		"/runs/20260301-100000-done-0001/report", "/runs/20260301-105900-live-0002/report",
		"/runs/20260301-100600-bad-0004", "/catalogue", record, "/catalogue?q=nothing-like-it", "/runs/none"} {
		for _, width := range []int64{1440, 390} {
			b.Do(browsertest.Size(width, 900), chromedp.Navigate(s.url+path),
				chromedp.WaitVisible("main", chromedp.ByQuery))
			b.Accessible(fmt.Sprint(path, " at ", width))
		}
	}
}
