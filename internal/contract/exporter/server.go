package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll/internal/kit/listen"
)

// Bounds of the server: pages made at a time, and what a scraper's own deadline is shortened by so that the page
// arrives before it.
const (
	mostPages = 8
	margin    = 500 * time.Millisecond
)

// Serve answers /metrics, /-/healthy and /-/ready until ctx is done, then lets pages under way end. Whether the
// exporter is healthy and ready is told without a token.
func (x *Exporter) Serve(ctx context.Context, s listen.Server) error {
	var stopping atomic.Bool
	s.Open, s.Stopping = []string{"/-/healthy", "/-/ready"}, func() { stopping.Store(true) }
	return s.Serve(ctx, x.handler(&stopping))
}

// Handler is the server's without a listener.
func (x *Exporter) Handler() http.Handler { return x.handler(new(atomic.Bool)) }

func (x *Exporter) handler(stopping *atomic.Bool) http.Handler {
	pages := make(chan struct{}, mostPages)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		select {
		case pages <- struct{}{}:
			defer func() { <-pages }()
		default:
			http.Error(w, "too many pages at a time", http.StatusServiceUnavailable)
			return
		}
		x.page(w, r)
	})
	say := func(text string, good func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if !good() {
				http.Error(w, "stopping", http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, text)
		}
	}
	mux.HandleFunc("GET /-/healthy", say("healthy", func() bool { return true }))
	mux.HandleFunc("GET /-/ready", say("ready", func() bool { return !stopping.Load() }))
	return mux
}

// page answers one request for metrics.
func (x *Exporter) page(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if v, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64); err == nil && v > 0 &&
		v < 3600 {
		d := time.Duration(v * float64(time.Second))
		limited, cancel := context.WithTimeout(ctx, max(d-margin, d/2))
		defer cancel()
		ctx = limited
	}
	format := Text
	if strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text") {
		format = OpenMetrics
	}
	w.Header().Set("Content-Type", format)
	var out bytes.Buffer
	_, err := x.Page(ctx, &out, format) // what failed is on the page
	if err == nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, err = z.Write(out.Bytes())
		err = errors.Join(err, z.Close())
	} else if err == nil {
		_, err = w.Write(out.Bytes())
	}
	_ = err // the reader has gone away
}
