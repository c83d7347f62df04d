// Package mariadb counts what a MariaDB (10.6 or later) or MySQL (8.0 or later) server says of itself: SHOW GLOBAL
// STATUS, SHOW GLOBAL VARIABLES, and of information_schema InnoDB's metrics, sessions by state, and the largest tables.
// Names and units are those of the community's mysqld_exporter, so that queries and dashboards made for that work here.
//
// It holds one connection, whose transactions are read-only, with limits of time for statements and locks that the
// server keeps, and bounds of its own for what an answer holds. Each part tells whether it succeeded and how long it
// took, and one that fails does not keep the others from being served. It reads statistics and settings, never rows of
// users, changes nothing, and refuses a password in an address. Texts of statements are in no metric.
//
// It is one of the exporters that package drivers names, and what runs ask of a MariaDB.
package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/mysqlserver"
	"plimsoll/internal/kit/secret"
)

// Limits of time: to connect and for an answer, which the collector keeps, and of a statement and a lock, which the
// server does.
const (
	connectLimit   = 3 * time.Second
	statementLimit = 2 * time.Second
	answerLimit    = 4 * time.Second
	lockLimit      = time.Second
)

// Bounds of an answer.
const (
	mostRows = 10_000
	mostText = 1 << 10 // bytes of one value that is used
)

// PasswordVariable is where the server's own programs find a password, too.
const PasswordVariable = "MYSQL_PWD"

// Kind is the exporter `mariadb`.
func Kind() exporter.Kind {
	return exporter.Kind{
		Name: "mariadb",
		Summary: "a MariaDB or MySQL server: status, variables, InnoDB, sessions, tables; " +
			"under mysqld_exporter's names",
		Options: []target.Option{
			{Name: "url", Default: "mariadb://root@127.0.0.1:3306", Help: "server, mariadb://USER@HOST:PORT or " +
				"mariadb://USER@localhost?socket=/PATH, without a password; with sslmode, sslrootcert, sslcert, sslkey"},
			{Name: "password", Type: target.Secret, Help: "where the password is kept; without it " + PasswordVariable},
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
	URL       string        // mariadb:// or mysql://, without a password
	Password  secret.Source // where it is kept; the zero value: as the environment has it
	Cleartext bool          // the password may be sent as it is, over a connection that is not encrypted

	// Of a server of a run's own: its password, and the way to it.
	Reveal func(context.Context) (string, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Collector asks one server. It is for one goroutine at a time, as collectors are.
type Collector struct {
	config   *mysql.Config
	password func(context.Context) (string, error)

	mu     sync.Mutex // guards what follows
	db     *sql.DB    // nil when not connected
	conn   *sql.Conn
	kept   map[string]kept // by part
	closed bool
}

// kept is an answer that is good for a while.
type kept struct {
	rows []map[string]string
	at   time.Time
}

// New makes a collector of a server, or says what is wrong with its address. It connects to nothing.
func New(s Server) (*Collector, error) {
	u, err := mysqlserver.Parse(s.URL)
	var c *mysql.Config
	if err == nil {
		c, err = mysqlserver.Config(u, s.Cleartext)
	}
	if err != nil {
		return nil, fmt.Errorf("option \"url\": %w", err)
	}
	c.Timeout, c.ReadTimeout, c.WriteTimeout, c.DialFunc = connectLimit, answerLimit, answerLimit, s.Dial
	out := &Collector{config: c, password: s.Reveal, kept: map[string]kept{}}
	if out.password == nil {
		out.password = s.Password.Reader()
	}
	if out.password == nil {
		out.password = func(context.Context) (string, error) { return os.Getenv(PasswordVariable), nil }
	}
	return out, nil
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
	if c.conn != nil {
		_ = c.conn.Close() // what the server says to a farewell changes nothing
	}
	if c.db != nil {
		_ = c.db.Close()
	}
	c.db, c.conn, c.kept = nil, nil, map[string]kept{}
}

// connected connects when there is no connection, and has the server keep the limits.
func (c *Collector) connected(ctx context.Context) (err error) {
	if c.closed {
		return errors.New("the exporter has been closed")
	}
	if c.conn != nil {
		if c.conn.PingContext(ctx) == nil {
			return nil
		}
		c.drop()
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	config := c.config.Clone()
	if config.Passwd, err = c.password(ctx); err != nil {
		return err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.drop()
		}
	}()
	c.db = sql.OpenDB(connector)
	if c.conn, err = c.db.Conn(ctx); err != nil {
		return told(config, err)
	}
	for _, set := range []string{"SET SESSION TRANSACTION READ ONLY",
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d", int(lockLimit.Seconds()))} {
		if _, err = c.conn.ExecContext(ctx, set); err != nil {
			return err
		}
	}
	_, err = c.conn.ExecContext(ctx, fmt.Sprintf("SET SESSION max_statement_time = %d", int(statementLimit.Seconds())))
	if said := (*mysql.MySQLError)(nil); errors.As(err, &said) { // MySQL has another name for it
		_, err = c.conn.ExecContext(ctx, fmt.Sprintf("SET SESSION max_execution_time = %d",
			statementLimit.Milliseconds()))
	}
	return err
}

// told is why there is no connection, with what may help.
func told(config *mysql.Config, err error) error {
	hint := mysqlserver.Hint(config, err)
	if said := (*mysql.MySQLError)(nil); errors.As(err, &said) && said.Number == 1045 {
		hint += ", and from where it may come; the password comes from env:NAME, file:PATH or " + PasswordVariable
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		hint = "; start the server, or give the address where it listens"
	}
	return fmt.Errorf("user %q at %s: %w%s", config.User, config.Addr, err, hint)
}

// rows asks, and gives each row by the names of its columns in small letters; NULL is left out.
func (c *Collector) rows(ctx context.Context, query string) (all []map[string]string, err error) {
	rows, err := c.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		if len(all) == mostRows {
			return nil, fmt.Errorf("an answer of more than %d rows", mostRows)
		}
		values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, v := range values {
			if v != nil {
				row[strings.ToLower(columns[i])] = string(v[:min(len(v), mostText)])
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
