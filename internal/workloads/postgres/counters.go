package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"path"
	"strconv"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	counters "plimsoll/internal/exporters/postgres"
)

// Counters is how the server is asked what it counts while a load uses it, as workload.Counting has it: one of the
// run's own by its unix socket, where the machine lets that be reached from here, one of the user's at its address.
func (c Config) Counters(_ workload.Spec, host target.Host) (*workload.Scrape, error) {
	s := counters.Server{URL: c.URL, Password: c.Password, Database: c.Database}
	where := ""
	switch dialer, ok := target.SocketDialer(nil), false; {
	case c.RunsServer() && host == nil:
		return nil, nil
	case c.RunsServer():
		if dialer, ok = host.(target.SocketDialer); !ok {
			return nil, nil
		}
		socket := path.Join(ServerFolder, ".s.PGSQL."+strconv.Itoa(OwnPort))
		s.URL = "host=/ user=" + OwnUser
		s.Reveal = func(context.Context) (string, error) { return ownPassword(), nil }
		s.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialSocket(ctx, socket) }
	default:
		u, err := c.address()
		if err != nil {
			return nil, fmt.Errorf("counters of the server: url: %w", err)
		}
		s.URL = u.String()
		host, port := hostPort(u)
		where = net.JoinHostPort(host, port)
	}
	collector, err := counters.New(s)
	if err != nil {
		return nil, fmt.Errorf("counters of the server: %w", err)
	}
	return Scrape("postgres", where, collector)
}

// Collector is one that holds a connection to its server.
type Collector interface {
	exporter.Collector
	Reach(ctx context.Context) error // connects where it is not connected
	Close()
}

// Scrape is how a collector's server is asked during a run. One that does not answer is told of in the journal: its
// page would say so only to who reads pages.
func Scrape(name, where string, c Collector) (*workload.Scrape, error) {
	x, err := exporter.New("", c)
	if err != nil {
		return nil, fmt.Errorf("counters of the server: %w", err)
	}
	return &workload.Scrape{Name: name, Where: where, Close: c.Close,
		Get: func(ctx context.Context) (io.ReadCloser, string, error) {
			if err := c.Reach(ctx); err != nil {
				return nil, "", err
			}
			return x.Get(ctx)
		}}, nil
}
