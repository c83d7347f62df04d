package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/sys/unix"

	cliruns "plimsoll/internal/cli/runs"
	"plimsoll/internal/report/web"
	"plimsoll/internal/testkit/browsertest"
	"plimsoll/result"
)

// TestWalk goes from the list to an experiment, to a run that goes on, to a comparison and onto paper with the keyboard
// alone, over runs as the program makes them; axe-core finds nothing wherever it stops.
func TestWalk(t *testing.T) {
	b := browsertest.StartFor(t, 5*time.Minute)
	a, _, _ := quiet(t)
	root := a.RunsDir
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[job]\nrw=randread\nbs=4k\nsize=64m\nioengine=libaio\ndirect=1\ntime_based\nruntime=20\niodepth=4\n")
	for _, args := range [][]string{
		{job, "--name", "first"}, {job, "--name", "second", "--target-opt", "seed=2"},
		{job, "--name", "swept", "--sweep", "iodepth=1,8", "--repeat", "2"}, {job, "--name", "live"},
	} {
		a, _, errs := quiet(t)
		if code := a.main(append([]string{"run", "--dir", root, "-q", "--target", "sim"}, args...)); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, errs)
		}
	}
	dir, err := a.Find("test", "live")
	if err != nil {
		t.Fatal(err)
	}
	goesOn(t, dir)
	for _, args := range [][]string{{"catalogue", "add", "second", "--system", `the "other" <b>`},
		{"history", "add", "nightly", "first", "second"}} {
		a, _, errs := quiet(t)
		if code := a.main(append([]string{"--dir", root}, args...)); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, errs)
		}
	}
	site := web.New(web.Options{Folders: a.AllFolders, Now: time.Now, Version: "test",
		Catalogue: filepath.Join(root, result.CatalogueDir),
		Library:   library(a.Store, cliruns.NewFolderIndex(root), true)})
	server := httptest.NewServer(site.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	at := func(path string) {
		t.Helper()
		if got := browsertest.Ask[string](b, `location.pathname`); !strings.HasPrefix(got, path) {
			t.Fatalf("at %s, want %s", got, path)
		}
	}
	follow := func(what, shows string) {
		t.Helper()
		b.TabTo(what)
		from := browsertest.Ask[string](b, `location.href`)
		b.Do(chromedp.KeyEvent(kb.Enter))
		for within := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			there := false
			err := b.Try(chromedp.Evaluate(`location.href !== "`+from+`" && document.readyState === "complete" &&
				document.querySelector("`+shows+`") !== null`, &there))
			if err == nil && there {
				return
			}
			if time.Now().After(within) {
				t.Fatalf("%s does not lead to %s: %v", what, shows, err)
			}
		}
	}

	b.Do(page.SetBypassCSP(true), browsertest.Size(1300, 900), chromedp.Navigate(server.URL+"/"),
		chromedp.WaitVisible("main", chromedp.ByQuery))
	b.Accessible("list")
	b.TabTo("select[name=sort]")
	b.Do(chromedp.KeyEvent(kb.ArrowDown))
	follow(".filters button", ".runs")
	if got := browsertest.Ask[string](b, `document.querySelector("caption").textContent`); !strings.Contains(got, "oldest") {
		t.Errorf("in order: %s", got)
	}
	if rows := browsertest.Ask[int](b, `document.querySelectorAll(".runs tbody tr").length`); rows != 4 {
		t.Errorf("%d rows in another order", rows)
	}

	follow(`.runs tbody a[href^="/experiments/"]`, ".links")
	at("/experiments/")
	b.Accessible("experiment")
	follow(".links a.main", "#effects")
	b.Accessible("report of an experiment")
	b.TabTo("main summary")
	b.Do(chromedp.KeyEvent(" "))
	if !browsertest.Ask[bool](b, `document.activeElement.parentElement.open`) {
		t.Error("what is folded does not open")
	}
	b.Accessible("report of an experiment, opened")
	follow(".home a", ".runs")

	follow(".now a", "#live-state")
	at("/runs/")
	journal(t, dir, result.Event{Kind: result.KindFault, Time: time.Now(), Text: "node 1 power off"})
	within := time.Now().Add(20 * time.Second)
	for !strings.Contains(browsertest.Ask[string](b, `document.getElementById("live-journal").textContent`),
		"node 1 power off") {
		if time.Now().After(within) {
			t.Fatal("the page does not follow the run")
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Accessible("run that goes on")
	follow(".eyebrow a", ".runs")

	follow(`nav a[href="/history"]`, ".kept")
	b.Accessible("histories")
	follow(".kept a", ".panels")
	at("/history/nightly")
	b.Accessible("history")
	follow(`.kept a[href^="/runs/"]`, "#about")
	follow(`nav a[href="/catalogue"]`, ".kept")
	b.TabTo("input[name=q]")
	b.Do(chromedp.KeyEvent("other"))
	follow(".filters button", ".kept")
	if rows := browsertest.Ask[int](b, `document.querySelectorAll(".kept tbody tr").length`); rows != 1 {
		t.Errorf("%d records are found", rows)
	}
	b.Accessible("catalogue")
	follow(".kept a", "dl.facts")
	b.Accessible("record")
	follow(`a[href^="/catalogue?alike="]`, ".kept")
	at("/catalogue")
	follow(`nav a[href="/"]`, ".runs")
	first, err := a.Find("test", "first")
	if err != nil {
		t.Fatal(err)
	}
	follow(`.runs a[href="/runs/`+filepath.Base(first)+`"]`, "#short")
	follow(`.short a[href^="/catalogue?alike="]`, ".kept")
	if got := browsertest.Ask[string](b, `document.querySelector(".kept tbody th a").textContent`); got != `the "other" <b>` {
		t.Errorf("beside %q", got)
	}
	for _, width := range []int64{1440, 768, 390} {
		for _, path := range []string{"/catalogue", "/history", "/history/nightly"} {
			b.Do(browsertest.Size(width, 900), chromedp.Navigate(server.URL+path),
				chromedp.WaitVisible("main", chromedp.ByQuery))
			if w := browsertest.Ask[int64](b, `document.documentElement.scrollWidth`); w > width {
				t.Errorf("%s: in a window of %d the page is %d wide", path, width, w)
			}
			b.ShotWhole(fmt.Sprint("tables", strings.ReplaceAll(path, "/", "-"), "-", width))
		}
	}
	b.Do(browsertest.Size(1300, 900))
	follow(`nav a[href="/"]`, ".runs")

	for _, name := range []string{"first", "second"} {
		side, err := a.Find("test", name)
		if err != nil {
			t.Fatal(err)
		}
		b.TabTo(`input[value="` + filepath.Base(side) + `"]`)
		b.Do(chromedp.KeyEvent(" "))
	}
	follow("form[action='/compare'] button", "table.compared")
	at("/compare")
	b.Accessible("comparison")
	const both = `[...document.querySelectorAll("table.compared tbody tr:first-child .phone")].every(e => e.offsetWidth > 0 &&
		e.getBoundingClientRect().right < innerWidth && / to /.test(e.textContent))`
	b.Do(browsertest.Size(390, 900))
	if !browsertest.Ask[bool](b, both) {
		t.Error("a phone's comparison lacks what the sides gave")
	}
	b.Accessible("comparison on a phone")
	b.ShotWhole("compare-390")
	b.Do(browsertest.Size(1300, 900))
	b.Complained()

	b.Do(emulation.SetEmulatedMedia().WithMedia("print"))
	b.Accessible("comparison on paper")
	var paper []byte
	b.Do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		paper, _, err = page.PrintToPDF().WithPreferCSSPageSize(true).Do(ctx)
		return err
	}))
	if n := strings.Count(string(paper), "/Type /Page\n"); n < 1 || n > 4 {
		t.Errorf("printed on %d sheets", n)
	}
}

// goesOn makes a run that ended look as it did while it went on, until the test ends.
func goesOn(t *testing.T, dir string) {
	t.Helper()
	folder, err := result.Open(dir)
	if err == nil {
		err = folder.Update(func(m *result.Manifest) {
			m.Status, m.Hashes, m.Ended = result.StatusExecuting, nil, time.Time{}
			m.Collected, m.Cleaned = result.Verdict{State: "pending"}, result.Verdict{State: "pending"}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data.json", "findings.json", "report.html"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

// journal adds an event to that of a run.
func journal(t *testing.T, dir string, e result.Event) {
	t.Helper()
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
