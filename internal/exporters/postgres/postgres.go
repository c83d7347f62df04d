// Package postgres counts what a PostgreSQL server (12 to 18) says of itself: transactions, buffers, checkpoints, the
// write-ahead log, I/O, sessions by state and by what they wait for, locks, replication, sizes, settings. Where the
// community's postgres_exporter has a metric the name and the unit are its own, so that queries and dashboards made for
// that work here.
//
// It holds one connection, whose transactions are read-only, with limits of time for statements and locks that the
// server keeps, and asks one view after the other; each tells whether it succeeded and how long it took, and one that
// fails does not keep the others from being served. It reads statistics and settings, never tables of users, changes
// nothing, and refuses a password in an address. What a version of the server does not have is left out.
//
// It is one of the exporters that package drivers names, and what runs scrape of a database server.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/kit/secret"
)

// Limits of time: to connect, which the collector keeps, and of a statement and a lock, which the server does.
const (
	connectLimit   = 3 * time.Second
	statementLimit = 2 * time.Second
	lockLimit      = 500 * time.Millisecond
	closeLimit     = time.Second
)

// Kind is the exporter `postgres`.
func Kind() exporter.Kind {
	return exporter.Kind{
		Name: "postgres",
		Summary: "a PostgreSQL server: transactions, buffers, checkpoints, log, waits, locks; " +
			"under postgres_exporter's names",
		Options: []target.Option{
			{Name: "url", Help: "server and database, postgresql://USER@HOST:PORT/DATABASE or HOST=... words of libpq, " +
				"without a password; what it leaves out is as PGHOST, PGUSER, ... say"},
			{Name: "password", Type: target.Secret, Help: "where the password is kept; without it PGPASSWORD or .pgpass"},
		},
		New: func(o target.Values) (exporter.Collector, error) {
			c, err := New(Server{URL: o.Text("url"), Password: o.Secret("password")})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// Server says which server is asked.
type Server struct {
	URL      string        // as libpq reads it, without a password
	Password secret.Source // where it is kept; the zero value: as libpq finds it
	Database string        // "": the URL's

	// Of a server of a run's own: its password, and the way to it.
	Reveal func(context.Context) (string, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Collector asks one server. It is for one goroutine at a time, as collectors are.
type Collector struct {
	config   *pgconn.Config
	password func(context.Context) (string, error) // nil: the config has it
	open     func(context.Context) (server, error)

	mu      sync.Mutex // guards what follows
	server  server     // nil when not connected
	version int        // of the server, the major number
	kept    map[string]kept
	closed  bool
}

// kept is an answer that is good for a while.
type kept struct {
	rows []row
	at   time.Time
}

// row is one of an answer, as text; nil is NULL.
type row [][]byte

// server answers queries.
type server interface {
	ask(ctx context.Context, query string) ([]row, error)
	lost() bool
	close()
}

// inline finds a password in an address of libpq's words.
var inline = regexp.MustCompile(`(?i)(^|\s)(ssl)?password\s*=`)

// New makes a collector of a server, or says what is wrong with its address. It connects to nothing; files that the
// address or libpq's variables name are read.
func New(s Server) (*Collector, error) {
	if u, err := url.Parse(s.URL); inline.MatchString(s.URL) || err == nil && hasPassword(u) {
		return nil, errors.New(`option "url": it holds a password, which lists of processes and histories show; ` +
			"give it with password=env:NAME or password=file:PATH")
	}
	config, err := pgconn.ParseConfig(s.URL)
	if err != nil {
		return nil, fmt.Errorf("option \"url\": %w", err)
	}
	for _, f := range config.Fallbacks {
		if f.Host != config.Host || f.Port != config.Port {
			return nil, fmt.Errorf("option \"url\": it names several servers (%s, %s); counters of two would be mixed",
				config.Host, f.Host)
		}
	}
	config.ConnectTimeout = connectLimit
	config.Database = cmp.Or(s.Database, config.Database)
	if s.Dial != nil {
		config.DialFunc = s.Dial
	}
	for name, value := range map[string]string{
		"application_name": "plimsoll exporter", "default_transaction_read_only": "on", "search_path": "pg_catalog",
		"client_encoding": "UTF8", "datestyle": "ISO", "extra_float_digits": "1",
		"statement_timeout": strconv.FormatInt(statementLimit.Milliseconds(), 10),
		"lock_timeout":      strconv.FormatInt(lockLimit.Milliseconds(), 10),
	} {
		config.RuntimeParams[name] = value
	}
	c := &Collector{config: config, password: s.Reveal, kept: map[string]kept{}}
	if read := s.Password.Reader(); read != nil {
		c.password = read
	}
	c.open = c.connect
	return c, nil
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has || u.Query().Has("password") || u.Query().Has("sslpassword")
}

// connect opens a connection.
func (c *Collector) connect(ctx context.Context) (server, error) {
	config := c.config.Copy()
	if c.password != nil {
		var err error
		if config.Password, err = c.password(ctx); err != nil {
			return nil, err
		}
	}
	conn, err := pgwire.Open(ctx, config, pgwire.MaxKept)
	if err != nil {
		return nil, err
	}
	return connection{conn}, nil
}

// connection is a server over the network.
type connection struct{ *pgconn.PgConn }

func (c connection) ask(ctx context.Context, query string) ([]row, error) {
	results, err := c.Exec(ctx, query).ReadAll()
	if err != nil || len(results) != 1 {
		return nil, cmp.Or(err, fmt.Errorf("%d answers to one question", len(results)))
	}
	rows := make([]row, len(results[0].Rows))
	for i, r := range results[0].Rows {
		rows[i] = r
	}
	return rows, nil
}

func (c connection) lost() bool { return c.IsClosed() }

func (c connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = c.Close(ctx) // what the server says to a farewell changes nothing
	select {
	case <-c.CleanupDone():
	case <-ctx.Done():
	}
}

// Close ends the connection, after a page that is being made. Pages are errors from then on.
func (c *Collector) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.drop()
}

// Reach connects when there is no connection. Its error says why the server does not answer.
func (c *Collector) Reach(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected(ctx)
}

func (c *Collector) drop() {
	if c.server != nil {
		c.server.close()
	}
	c.server, c.kept = nil, map[string]kept{}
}

// Names of the metrics about the collector itself.
const (
	up           = "pg_up"
	viewSuccess  = "pg_scrape_collector_success"
	viewDuration = "pg_scrape_collector_duration_seconds"
	settingInfo  = "pg_settings_info"
)

// Describe implements exporter.Collector.
func (*Collector) Describe() exporter.Description {
	d := exporter.Description{Name: "postgres", Help: "What a PostgreSQL server says of itself.",
		Families: []exporter.Family{
			{Name: up, Type: exporter.Gauge, Help: "Whether the server answers."},
			{Name: viewSuccess, Type: exporter.Gauge, Help: "Whether a part gave what it has: 1, or 0."},
			{Name: viewDuration, Type: exporter.Gauge, Unit: "seconds", Help: "How long a part took."},
			{Name: settingInfo, Type: exporter.Gauge, Help: "A setting of the server that is a word; always 1."},
			{Name: "pg_settings_*_bytes", Type: exporter.Gauge, Unit: "bytes", Help: "Setting * of the server."},
			{Name: "pg_settings_*_seconds", Type: exporter.Gauge, Unit: "seconds", Help: "Setting * of the server."},
			{Name: "pg_settings_*", Type: exporter.Gauge, Help: "Setting * of the server."},
		}}
	seen := map[string]bool{}
	for _, v := range views {
		for _, c := range v.columns {
			if !seen[c.Name] {
				seen[c.Name] = true
				d.Families = append(d.Families, c.Family)
			}
		}
	}
	d.Families = append(d.Families, statementFamilies()...)
	return d
}

// asked is all that a page asks: the table, and what extensions of the server add.
func (c *Collector) asked(ctx context.Context) []view {
	all := append(slices.Clone(views), settings)
	if rows, err := c.rows(ctx, installed, installedQuery); err == nil && len(rows) == 1 && len(rows[0]) == 1 {
		all = append(all, statements(string(rows[0][0])))
	}
	return all
}

// Collect implements exporter.Collector.
func (c *Collector) Collect(ctx context.Context, emit exporter.Emit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connected(ctx); err != nil {
		emit(up, 0)
		return err
	}
	var errs []error
	for _, v := range c.asked(ctx) {
		query, columns := v.of(c.version)
		if query == "" {
			continue
		}
		began := time.Now()
		rows, err := c.rows(ctx, v, query)
		if err == nil && v.name == settings.name {
			err = emitSettings(rows, emit)
		} else if err == nil {
			err = v.emit(rows, columns, emit)
		}
		good := 1.0
		if err != nil {
			good = 0
			errs = append(errs, fmt.Errorf("%s: %w", v.name, err))
		}
		emit(viewSuccess, good, "collector", v.name)
		emit(viewDuration, time.Since(began).Seconds(), "collector", v.name)
		if c.server.lost() || ctx.Err() != nil {
			break // the rest would only say the same
		}
	}
	if c.server.lost() {
		c.drop()
		emit(up, 0)
	} else {
		emit(up, 1)
	}
	return errors.Join(errs...)
}

// connected connects when there is no connection, and learns the server's version.
func (c *Collector) connected(ctx context.Context) error {
	switch {
	case c.closed:
		return errors.New("the exporter has been closed")
	case c.server != nil && !c.server.lost():
		return nil
	}
	c.drop()
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.server = s
	rows, err := s.ask(ctx, "SHOW server_version_num")
	if err == nil && (len(rows) != 1 || len(rows[0]) != 1) {
		err = errors.New("no answer to SHOW server_version_num")
	}
	n := 0
	if err == nil {
		n, err = strconv.Atoi(string(rows[0][0]))
	}
	if err == nil && n/10000 < oldest {
		err = fmt.Errorf("the server is PostgreSQL %d; %d is the oldest that is known", n/10000, oldest)
	}
	if err != nil {
		c.drop()
		return err
	}
	c.version = min(n/10000, newest)
	return nil
}

// rows asks, or gives again what was answered not long ago.
func (c *Collector) rows(ctx context.Context, v view, query string) ([]row, error) {
	if k, ok := c.kept[v.name]; ok && time.Since(k.at) < v.every {
		return k.rows, nil
	}
	rows, err := c.server.ask(ctx, query)
	if err == nil && v.every > 0 {
		c.kept[v.name] = kept{rows, time.Now()}
	}
	return rows, err
}

// emit emits every value of an answer. The first that is no number is the error; the others are emitted all the same.
func (v view) emit(rows []row, columns []column, emit exporter.Emit) (err error) {
	for _, r := range rows {
		if len(r) != len(v.labels)+len(columns) {
			return fmt.Errorf("a row of %d values for %d", len(r), len(v.labels)+len(columns))
		}
		var labels []string
		for i, l := range v.labels {
			_, name := named(l)
			labels = append(labels, name, string(r[i]))
		}
		for i, c := range columns {
			text := r[len(v.labels)+i]
			if text == nil {
				continue
			}
			value, bad := strconv.ParseFloat(string(text), 64)
			if bad != nil {
				err = cmp.Or(err, fmt.Errorf("%s: %.40q is no number", c.Name, text))
				continue
			}
			emit(c.Name, value, labels...)
		}
	}
	return err
}

// units of settings in base units.
var units = map[string]struct {
	factor float64
	suffix string
}{
	"":  {1, ""},
	"B": {1, "_bytes"}, "kB": {1 << 10, "_bytes"}, "MB": {1 << 20, "_bytes"}, "GB": {1 << 30, "_bytes"},
	"ms": {1e-3, "_seconds"}, "s": {1, "_seconds"}, "min": {60, "_seconds"},
}

// emitSettings emits settings: numbers in base units, words as a label. Below 0 are words, too: off, or automatic.
func emitSettings(rows []row, emit exporter.Emit) (err error) {
	for _, r := range rows {
		if len(r) != 4 {
			return fmt.Errorf("a row of %d values for 4", len(r))
		}
		name, setting, of, kind := string(r[0]), string(r[1]), string(r[2]), string(r[3])
		value, bad := strconv.ParseFloat(setting, 64)
		switch {
		case kind == "bool":
			emit("pg_settings_"+name, map[string]float64{"on": 1}[setting])
		case kind == "enum" || kind == "string":
			emit(settingInfo, 1, "name", name, "setting", setting)
		case bad != nil:
			err = cmp.Or(err, fmt.Errorf("setting %s: %.40q is no number", name, setting))
		default:
			// The unit may be a number of others: 8kB, 16MB.
			of = strings.TrimLeft(of, "0123456789")
			times := strings.TrimSuffix(string(r[2]), of)
			u, known := units[of]
			if !known {
				err = cmp.Or(err, fmt.Errorf("setting %s: unit %.20q is unknown", name, r[2]))
				continue
			}
			if n, bad := strconv.Atoi(times); bad == nil {
				u.factor *= float64(n)
			}
			if value < 0 {
				u.factor = 1
			}
			emit("pg_settings_"+name+u.suffix, value*u.factor)
		}
	}
	return err
}
