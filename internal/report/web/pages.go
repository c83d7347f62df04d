package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/unit"
)

//go:embed assets
var assets embed.FS

// functions are those of the templates.
var functions = template.FuncMap{"moment": report.Moment, "clock": report.Clock,
	"tight": report.Tight, "thousands": func(n int) string { return unit.Thousands(int64(n)) }}

// templates are parsed by the first page, not by every command of the program.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/*.tmpl"))
})

// pages adds the paths of the pages.
func (s *Site) pages(mux *http.ServeMux) {
	s.tables(mux)
	mux.HandleFunc("GET /{$}", s.page(s.listPage))
	mux.HandleFunc("GET /runs/{id}", s.page(s.runPage))
	mux.HandleFunc("GET /runs/{id}/report", s.page(s.reportPage))
	mux.HandleFunc("GET /runs/{id}/files/{file}", s.page(s.reportFile))
	mux.HandleFunc("GET /runs/{id}/live", s.stream)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(patternOf(mux, r), "GET ") {
			w.Header().Set("Allow", allowed)
			s.problem(w, http.StatusMethodNotAllowed, "This page can only be read: ask for it with GET.", "")
			return
		}
		s.problem(w, http.StatusNotFound, "There is no such page.", "")
	})
}

// document is a page that is ready: its bytes and what it may do.
type document struct {
	body   bytes.Buffer
	policy string
	kind   string // "": a page
	file   string // the name under which it is kept; "": it is shown
}

const jsonKind = "application/json"

// page has a page made when it is its turn, and shows what went wrong as one.
func (s *Site) page(make func(context.Context, *http.Request, *document) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc := document{policy: scripted(report.ZoneScript())}
		err := s.read(r, make, &doc)
		if size := doc.body.Len(); err == nil && s.hold(size) {
			defer s.unsent.Add(-int64(size))
		} else if err == nil {
			err = errBusy
		}
		if err != nil {
			s.notMade(w, r, err)
			return
		}
		w.Header().Set("Content-Type", cmp.Or(doc.kind, "text/html; charset=utf-8"))
		w.Header().Set("Content-Security-Policy", doc.policy)
		if doc.file != "" {
			w.Header().Set("Content-Disposition", `attachment; filename="`+doc.file+`"`)
		}
		_, _ = w.Write(doc.body.Bytes()) // the reader may have gone away
	}
}

// notMade answers with why a page could not be made: to a program as Prometheus' API does.
func (s *Site) notMade(w http.ResponseWriter, r *http.Request, err error) {
	var missing errNone
	var asked errAsked
	var unlike errUnlike
	var damaged errDamaged
	code, kind, again := http.StatusInternalServerError, internal, ""
	switch {
	case errors.As(err, &missing):
		code, kind = http.StatusNotFound, notFound
	case errors.As(err, &asked):
		code, kind = http.StatusBadRequest, badData
	case errors.As(err, &unlike):
		code, kind, again = http.StatusConflict, badData, unlike.anyway
	case errors.As(err, &damaged):
		code, kind = http.StatusConflict, execution
	case errors.Is(err, errBusy), errors.Is(err, errClosed):
		w.Header().Set("Retry-After", retryAfter)
		code, kind = http.StatusServiceUnavailable, unavailable
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		body, _ := encode(reply{Status: "error", ErrorType: kind, Error: err.Error()})
		s.write(w, body, code)
		return
	}
	s.problem(w, code, err.Error(), again)
}

// read has a page made when it is its turn.
func (s *Site) read(r *http.Request, make func(context.Context, *http.Request, *document) error, doc *document) error {
	leave, err := s.reading.enter()
	if err != nil {
		return err
	}
	left := sync.OnceFunc(leave)
	defer left()
	ctx, cancel := s.limited(r.Context(), longestAsk)
	defer cancel()
	done, err := s.reading.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	left()
	return make(ctx, r, doc)
}

// scripted is the policy of a page with one script of ours.
func scripted(script template.JS) string {
	sum := sha256.Sum256([]byte(script))
	return report.Policy + "; frame-ancestors 'none'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// errNone says that there is nothing of a kind that is called so.
type errNone struct{ kind, id string }

func (e errNone) Error() string {
	return fmt.Sprintf("There is no %s %q any more, or there never was.", e.kind, visible.Cut(e.id, 200))
}

// errMissing says that there is no such run.
func errMissing(id string) error { return errNone{"run", id} }

// problem shows a page with what is wrong, a line each, and where it is shown all the same, "" for nowhere.
func (s *Site) problem(w http.ResponseWriter, code int, text, anyway string) {
	var doc document
	view := &frame{Title: "Not shown", Lines: strings.Split(text, "\n"), Anyway: template.URL(anyway)}
	for i := range view.Lines { // the command's name, where it is one's error, too
		view.Lines[i] = strings.TrimPrefix(view.Lines[i], "compare: ")
	}
	if anyway != "" {
		view.Title = "Not compared: these differ"
	}
	if err := s.fill(&doc, "problem.html.tmpl", view); err != nil {
		say(w, code, text)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", scripted(report.ZoneScript()))
	w.WriteHeader(code)
	_, _ = w.Write(doc.body.Bytes())
}

// frame holds what every page has.
type frame struct {
	Title   string
	Lines   []string // of what is wrong
	Anyway  template.URL
	Style   template.CSS
	Script  template.JS // ""; the one of all pages
	Version string
	Refresh int    // seconds; 0: never
	Alike   string // conditions of a load that a form keeps
	History bool   // there may be histories to go to
}

// fill executes a template with a view whose texts were made visible.
func (s *Site) fill(doc *document, name string, view interface{ in(*Site) }) error {
	view.in(s)
	if err := templates().ExecuteTemplate(&doc.body, name, view); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// in completes the frame.
func (f *frame) in(s *Site) {
	f.Lines, f.Title, f.Version = report.Shown(f.Lines), report.Shown(f.Title), report.Shown(s.version)
	f.History = s.lib.Histories != nil
	if f.Script == "" {
		f.Script = report.ZoneScript()
	}
	css, err := assets.ReadFile("assets/web.css")
	if err == nil {
		f.Style = report.Style() + template.CSS(css)
	}
}
