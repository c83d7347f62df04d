package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"path"
	"strconv"

	"plimsoll/internal/exporter"
	counters "plimsoll/internal/exporter/postgres"
	"plimsoll/internal/target"
	"plimsoll/internal/workload"
)

// Counters is how the server is asked what it counts while a load uses it, as workload.Counting has it: one of the
// run's own by its unix socket, where the machine lets that be reached from here, one of the user's at its address.
func (c Config) Counters(_ workload.Spec, host target.Host) (*workload.Scrape, error) {
	s := counters.Server{URL: c.URL, Password: c.Password, Database: c.Database}
	out := &workload.Scrape{Name: "postgres"}
	switch dialer, ok := target.SocketDialer(nil), false; {
	case c.Own() && host == nil:
		return nil, nil
	case c.Own():
		if dialer, ok = target.HostAs[target.SocketDialer](host); !ok {
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
		out.Where = net.JoinHostPort(host, port)
	}
	collector, err := counters.New(s)
	if err != nil {
		return nil, fmt.Errorf("counters of the server: %w", err)
	}
	x, err := exporter.New("", collector)
	if err != nil {
		return nil, fmt.Errorf("counters of the server: %w", err)
	}
	out.Get = func(ctx context.Context) (io.ReadCloser, string, error) {
		if err := collector.Reach(ctx); err != nil {
			return nil, "", err // a page that says so would not be told of in the journal
		}
		return x.Get(ctx)
	}
	out.Close = collector.Close
	return out, nil
}
