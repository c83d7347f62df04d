package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"sync"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
)

//go:embed assets
var assets embed.FS

// templates are parsed by the first page, not by every command of the program.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").ParseFS(assets, "assets/*.tmpl"))
})

// pages adds the paths of the pages.
func (s *Site) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.page(s.listPage))
	mux.HandleFunc("GET /runs/{id}", s.page(s.runPage))
	mux.HandleFunc("GET /runs/{id}/report", s.page(s.reportPage))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.problem(w, http.StatusNotFound, "There is no such page.")
	})
}

// document is a page that is ready: its bytes and what it may do.
type document struct {
	body   bytes.Buffer
	policy string
}

// page has a page made when it is its turn, and shows what went wrong as one.
func (s *Site) page(make func(context.Context, *http.Request, *document) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc := document{policy: report.Policy + "; frame-ancestors 'none'"}
		err := s.read(r, make, &doc)
		if size := doc.body.Len(); err == nil && s.hold(size) {
			defer s.unsent.Add(-int64(size))
		} else if err == nil {
			err = errBusy
		}
		var missing errMissing
		switch {
		case err == nil:
		case errors.As(err, &missing):
			s.problem(w, http.StatusNotFound, missing.Error())
			return
		case errors.Is(err, errBusy), errors.Is(err, errClosed):
			w.Header().Set("Retry-After", retryAfter)
			s.problem(w, http.StatusServiceUnavailable, err.Error())
			return
		default:
			s.problem(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", doc.policy)
		_, _ = w.Write(doc.body.Bytes()) // the reader may have gone away
	}
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

// errMissing says that there is no such run.
type errMissing string

func (e errMissing) Error() string {
	return fmt.Sprintf("There is no run %q any more, or there never was.", visible.Cut(string(e), 200))
}

// problem shows a page with one sentence.
func (s *Site) problem(w http.ResponseWriter, code int, text string) {
	var doc document
	if err := s.fill(&doc, "problem.html.tmpl", &frame{Title: "Not shown", Problem: text}); err != nil {
		say(w, code, text)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", report.Policy+"; frame-ancestors 'none'")
	w.WriteHeader(code)
	_, _ = w.Write(doc.body.Bytes())
}

// frame is what every page has.
type frame struct {
	Title   string
	Problem string
	Style   template.CSS
	Version string
	Refresh int // seconds; 0: never
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
	f.Problem, f.Title, f.Version = report.Shown(f.Problem), report.Shown(f.Title), report.Shown(s.version)
	css, err := assets.ReadFile("assets/web.css")
	if err == nil {
		f.Style = report.Style() + template.CSS(css)
	}
}
