package tprocc

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	counters "plimsoll/internal/exporters/mariadb"
	"plimsoll/internal/workloads/postgres"
)

// Counters implements workload.Counting: a MariaDB is asked itself, one of the run's own by its unix socket, where the
// machine lets that be reached from here, and one of the user's at its address; with an exporter that the file names
// that is asked instead, as servers of SQL Server are.
func (e Engine) Counters(spec workload.Spec, host target.Host) (*workload.Scrape, error) {
	c, err := e.Read(spec)
	switch {
	case err != nil || c.job.Dialect == postgresql:
		return e.Engine.Counters(spec, host)
	case c.exporter == "" && c.job.Dialect != mariadb:
		return nil, nil
	}
	where := ""
	if c.job.URL != "" {
		u, err := url.Parse(c.job.URL)
		if err != nil {
			return nil, err
		}
		where = u.Host
	}
	if c.exporter != "" {
		return workload.Scraped(c.job.Dialect, where, c.exporter), nil
	}
	s := counters.Server{URL: c.job.URL, Password: c.password, Cleartext: c.job.Cleartext}
	if c.startsMaria() {
		dialer, ok := host.(target.SocketDialer)
		if !ok {
			return nil, nil
		}
		s.URL = (&url.URL{Scheme: mariadb, User: url.User(postgres.OwnUser), Host: "localhost",
			RawQuery: "sslmode=disable"}).String()
		s.Reveal = func(context.Context) (string, error) { return ownPassword(), nil }
		s.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialSocket(ctx, path.Join(mariaFolder, "socket"))
		}
	}
	collector, err := counters.New(s)
	if err != nil {
		return nil, fmt.Errorf("counters of the server: %w", err)
	}
	return postgres.Scrape(mariadb, where, collector)
}
