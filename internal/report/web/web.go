// Package web serves run folders over HTTP: Prometheus' query API over the metrics of all of them at once, each series
// with the label run; pages to find runs and experiments, to watch a run that is going on, to read reports and to
// compare; and what the pages show as JSON.
//
// It sits right of the run folder: it reads folders and writes nothing into them, also not into those of runs that
// other processes are executing, whose metrics it looks at through links and copies of its own. All it knows is read
// again when it changes: new runs appear, removed ones go, live ones grow. A damaged folder is shown as such and hides
// no other. Charts are the report's, data of runs that go on are collect's, PromQL is series'.
//
// It knows nothing of addresses and tokens (package listen does). It refuses bodies, queries and answers beyond bounds,
// and more questions at a time than it can answer well; nothing can be changed through it.
package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/series"
)

// Bounds of one server.
const (
	mostAtOnce  = 2                // questions answered at a time
	mostReading = 4                // pages made at a time, besides: who reads does not wait for who asks
	mostWaiting = 100              // that wait for their turn, of either: a board of charts asks all at once
	longestAsk  = 30 * time.Second // with the wait, unless less is asked for
	largestBody = 256 << 10        // of a question that is posted
	mostSamples = 3_000_000        // that a query holds in memory, 48 MB
	mostHeap    = 350 << 20        // of the process: questions that are answered while it has more end
	lookAtHeap  = 20 * time.Millisecond
	mostPoints  = 250_000  // of an answer, 8 MB as it is written
	mostUnsent  = 64 << 20 // bytes of answers whose readers take them slowly
)

// Options of a Site.
type Options struct {
	// Folders gives the run folders there are now. It is asked again and again.
	Folders func() ([]string, error)
	Now     func() time.Time
	Version string // of the program
	// Index is a file that keeps what lists show of runs for the next server; "": each reads all runs anew. It is a
	// cache: whoever removes it loses a few seconds.
	Index string
	// Catalogue is a folder of records of systems that are served with the published ones; "": those alone.
	Catalogue string
	Library   Library
	Heap      uint64 // bytes on the heap above which no question is answered any further; 0: 350 MiB
}

// Site is everything that is served. Close it when no request is under way any more.
type Site struct {
	shelf    *shelf
	union    *series.Union
	newest   *series.Union // of the newest runs alone
	now      func() time.Time
	version  string
	lib      Library
	records  string // folder of the catalogue
	known    known
	peeks    peeks
	shorts   documents[inShort]
	damages  documents[string]
	told     documents[told] // of histories
	feeds    feeds
	heap     uint64
	asking   *stream
	reading  *stream
	unsent   atomic.Int64
	stopping context.Context
	stop     context.CancelCauseFunc
}

// Open are the paths that tell nothing of any run.
var Open = []string{"/-/healthy", "/-/ready"}

// New makes a site. It reads nothing yet.
func New(o Options) *Site {
	s := &Site{
		shelf: newShelf(o), now: o.Now, version: o.Version, lib: o.Library, records: o.Catalogue,
		heap: cmp.Or(o.Heap, mostHeap), asking: newStream(mostAtOnce), reading: newStream(mostReading),
	}
	s.stopping, s.stop = context.WithCancelCause(context.Background())
	limits := series.Options{MaxSamples: mostSamples, MaxAnswer: mostPoints, QueryTimeout: longestAsk}
	s.union = series.NewUnion(series.RunLabel, func() []series.Member { return s.shelf.members(-1) }, limits)
	s.newest = series.NewUnion(series.RunLabel, func() []series.Member { return s.shelf.members(fewRuns) }, limits)
	return s
}

// Look looks at what there is to be served.
func (s *Site) Look() {
	_, _ = s.shelf.all() // whoever asks is told what went wrong
	list, _ := s.experiments()
	s.peekAt(list[:min(len(list), rowsOfPage)])
}

// fewRuns is from how many runs, the newest, the names of metrics are taken where any would do.
const fewRuns = 20

// Stopping has the site say that it is not ready any more. Questions that are being answered or wait end at once:
// whoever asks can ask again.
func (s *Site) Stopping() { s.stop(errClosed) }

// Close closes all databases.
func (s *Site) Close() error {
	s.Stopping()
	return s.shelf.close()
}

// Handler answers for the whole site.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.stopping.Err() != nil {
			say(w, http.StatusServiceUnavailable, "stopping")
			return
		}
		say(w, http.StatusOK, "ready")
	})
	s.api(mux)
	s.library(mux)
	s.pages(mux)
	return s.walls(mux)
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	visible.Fprintf(w, "%s\n", text)
}

// walls puts in front of every answer what a browser must not do with it, and turns a panic into an error.
func (s *Site) walls(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A file that is cut short while it is looked at is an error of this request, not the end of the process.
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if p := recover(); p != nil && !errors.Is(asError(p), http.ErrAbortHandler) {
				say(w, http.StatusInternalServerError, "internal error, please report it")
			}
		}()
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			"X-Frame-Options": "DENY",
			"Cache-Control":   "no-store",
		} {
			w.Header().Set(name, value)
		}
		r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		h.ServeHTTP(w, r)
	})
}

func asError(p any) error {
	err, _ := p.(error)
	return err
}
