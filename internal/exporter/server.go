package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of the server: pages made at a time, what a scraper's own deadline is shortened by so that the page arrives
// before it, and how long a stop waits for pages under way.
const (
	mostPages = 8
	margin    = 500 * time.Millisecond
	patience  = 5 * time.Second
)

// Server is what Serve needs to know.
type Server struct {
	// Address is host:port; port 0 takes a free one. Whoever is not on this machine can reach it unless the host is a
	// loopback address, which is why another one needs a Token.
	Address string
	// Token is what readers must send as `Authorization: Bearer TOKEN`; "" asks for none. It is sent as it is: put
	// something that encrypts in front where the network is not trusted.
	Token string
	// Listening is told the address once connections are taken; may be nil.
	Listening func(address string)
}

// Check says what is wrong with the settings.
func (s Server) Check() error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("listen: address %q: want HOST:PORT, like 127.0.0.1:9100", s.Address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen: address %q: port %q is no number up to 65535", s.Address, port)
	} else if ip := net.ParseIP(host); s.Token == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf(
			"listen: address %q can be reached from other machines: give a token, or listen on 127.0.0.1:%d",
			s.Address,
			n,
		)
	}
	return nil
}

// Serve answers /metrics, /-/healthy and /-/ready until ctx is done, then lets pages under way end.
func (x *Exporter) Serve(ctx context.Context, s Server) error {
	if err := s.Check(); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen: address %q: %w", s.Address, err)
	}
	var stopping atomic.Bool
	server := &http.Server{
		Handler: x.handler(s.Token, &stopping), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if s.Listening != nil {
		s.Listening(listener.Addr().String())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stopping.Store(true)
	graceful, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := server.Shutdown(graceful); err != nil {
		_ = server.Close() // what still hangs is cut off
	}
	<-ended
	return nil
}

// Handler is the server's without a listener: token as in Server.
func (x *Exporter) Handler(token string) http.Handler { return x.handler(token, new(atomic.Bool)) }

func (x *Exporter) handler(token string, stopping *atomic.Bool) http.Handler {
	pages := make(chan struct{}, mostPages)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !permitted(r, token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
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

// permitted compares digests, so that the time it takes tells nothing about the token.
func permitted(r *http.Request, token string) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return token == "" || ok && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// page answers one request for metrics.
func (x *Exporter) page(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if v, err := strconv.ParseFloat(
		r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"),
		64,
	); err == nil && v > 0 &&
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
