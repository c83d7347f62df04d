// Package listen serves HTTP as every part of the program that is asked over a network does: on a loopback address, or
// on another one with a token; with bounds on headers, times and requests at a time; and it ends in order.
//
// It sits between a command, which has the address and the token from flags, and a handler that knows nothing of
// either (exporter, web). It refuses an address that other machines can reach without a token, and whatever a page of
// another origin has a browser ask. It does not encrypt: put something that does in front where the network is not
// trusted.
package listen

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/secret"
)

const (
	patience    = 3 * time.Second // how long a stop waits for requests under way
	largestBody = 1 << 20         // of a request; handlers may take less
)

// Server says how to serve.
type Server struct {
	// Address is host:port; port 0 takes a free one. Whoever is not on this machine can reach it unless the host is a
	// loopback address, which is why another one needs a Token.
	Address string
	// Token must be sent by readers: as `Authorization: Bearer TOKEN`, or as the password of any user, which is how
	// a browser asks for it. None: nobody is asked.
	Token secret.Secret
	// Open are paths that are answered without a token.
	Open []string
	// Listening is told the address once connections are taken; may be nil.
	Listening func(address string)
	// Stopping is told when no new request is to come any more, before those under way have ended; may be nil.
	Stopping func()
}

// Check says what is wrong with the settings.
func (s Server) Check() error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("listen: address %q: want HOST:PORT, like 127.0.0.1:9100", s.Address)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("listen: address %q: port %q is no number up to 65535", s.Address, port)
	}
	if s.Token.IsZero() && !loopback(host) {
		const say = "listen: address %q can be reached from other machines: give a token, or listen on 127.0.0.1:%d"
		return fmt.Errorf(say, s.Address, n)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Serve answers with the handler until ctx is done, then lets requests under way end, for some seconds at most.
func (s Server) Serve(ctx context.Context, h http.Handler) error {
	if err := s.Check(); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen: address %q: %w", s.Address, err)
	}
	server := &http.Server{
		Handler: s.Handler(h), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 3 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
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
	if s.Stopping != nil {
		s.Stopping()
	}
	graceful, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := server.Shutdown(graceful); err != nil {
		_ = server.Close() // what still hangs is cut off
	}
	<-ended //nolint:errcheck // that it was shut down
	return nil
}

// Handler is the server's without a listener. Where no token is asked for, only requests to a name of this machine are
// answered: a page of a stranger, whose own name was made to lead here, gets nothing. Nor does a page of another origin
// that asks by the right name, be it for the work that its question makes.
func (s Server) Handler(h http.Handler) http.Handler {
	open := map[string]bool{}
	for _, path := range s.Open {
		open[path] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case open[r.URL.Path]:
		case s.Token.IsZero() && !local(r.Host):
			http.Error(w, "ask by a name of this machine, like 127.0.0.1", http.StatusForbidden)
			return
		case foreign(r):
			http.Error(w, "a page of another origin asks: only pages from here, and programs, are answered",
				http.StatusForbidden)
			return
		case !s.permitted(r):
			w.Header().Add("WWW-Authenticate", "Bearer")
			w.Header().Add("WWW-Authenticate", `Basic realm="plimsoll: any name, the token as password", charset="UTF-8"`)
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		h.ServeHTTP(w, r)
	})
}

// foreign reports whether a page of another origin had a browser send this. What browsers say of that no page can
// change; programs say nothing. A click on a link elsewhere that leads here is its user's.
func foreign(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if o, err := url.Parse(origin); err != nil || !strings.EqualFold(o.Host, r.Host) {
			return true
		}
	}
	get := r.Header.Get
	switch get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Method != http.MethodGet || get("Sec-Fetch-Mode") != "navigate" ||
		get("Sec-Fetch-Dest") != "document" || get("Sec-Fetch-User") != "?1"
}

func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return loopback(host)
}

// permitted compares digests, so that the time it takes tells nothing about the token.
func (s Server) permitted(r *http.Request) bool {
	if s.Token.IsZero() {
		return true
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, given, ok = r.BasicAuth()
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.Token.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && ok
}
