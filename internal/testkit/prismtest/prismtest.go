// Package prismtest starts simulated Prisms for tests, and makes clients that trust them. Tests only.
package prismtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/exporters/nutanix/prismsim"
)

// Server is a Prism that answers until the test ends.
type Server struct {
	*prismsim.Sim
	Certificate prismsim.Certificate
	URL         string // https://127.0.0.1:PORT

	options prismsim.Options
	stop    func()
}

// Password opens Start's Prisms, with the user viewer.
const Password = "let-me-look"

// Start starts one with a certificate of an hour.
func Start(t testing.TB, o prismsim.Options) *Server {
	t.Helper()
	return StartWith(t, o, time.Hour)
}

// StartWith starts one with a certificate that is valid for so long; negative is one that has expired.
func StartWith(t testing.TB, o prismsim.Options, valid time.Duration) *Server {
	t.Helper()
	o.User, o.Password = "viewer", Password
	cert, err := prismsim.NewCertificate(valid)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Sim: prismsim.New(o), Certificate: cert, options: o}
	ctx, cancel := context.WithCancel(context.Background())
	address := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, "127.0.0.1:0", cert, func(a string) { address <- a }) }()
	select {
	case a := <-address:
		s.URL = "https://" + a
	case err := <-ended:
		t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// Stop ends it before the test does.
func (s *Server) Stop() { s.stop() }

// Client is one that trusts the server; change may be nil.
func (s *Server) Client(t testing.TB, change func(*prism.Options)) *prism.Client {
	t.Helper()
	o := prism.Options{URL: s.URL, User: "viewer", Roots: s.Certificate.Roots(),
		Password: func(context.Context) (string, error) { return Password, nil }}
	if change != nil {
		change(&o)
	}
	c, err := prism.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
