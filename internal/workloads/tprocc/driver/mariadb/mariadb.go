// Package mariadb is the order-entry workload of package tprocc on MariaDB 10.6 or later with InnoDB: schema, stored
// procedures, LOAD DATA LOCAL, and users that wait for their answers.
//
// It stands on go-sql-driver/mysql. It uses the one database that it is given, which it makes where there is none, and
// touches nothing else. What it makes there is recorded in a table, and dropped by name out of that record.
package mariadb

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed" // the statements
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/kit/mysqlserver"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed procedures.sql
	procedures string
)

// Server is where the database is.
type Server struct {
	Config   *mysql.Config // of package mysqlserver, with the password
	Database string        // of small letters, digits and _
}

// String is the server without its password.
func (s Server) String() string {
	return fmt.Sprintf("user %q, database %q at %s", s.Config.User, s.Database, s.Config.Addr)
}

// GoString keeps the password out of %#v.
func (s Server) GoString() string { return s.String() }

// Dialect is MariaDB at Server.
type Dialect struct{ Server Server }

var _ tprocc.Dialect = Dialect{}

// Name implements tprocc.Dialect.
func (Dialect) Name() string { return "mariadb" }

// Schema implements tprocc.Dialect.
func (d Dialect) Schema() string { return "`" + d.Server.Database + "`." }

// Lock implements tprocc.Dialect. Names of locks are shorter than those of databases may be.
func (d Dialect) Lock() string {
	return fmt.Sprintf("SELECT GET_LOCK(CONCAT('plimsoll_tprocc_', MD5('%s')), 0)", d.Server.Database)
}

// Work implements tprocc.Dialect.
func (Dialect) Work() string {
	return "SELECT SUM(variable_value) FROM information_schema.global_status " +
		"WHERE variable_name IN ('COM_COMMIT', 'COM_ROLLBACK')"
}

// Script implements tprocc.Dialect.
func (d Dialect) Script(p tprocc.Part) (statements []string) {
	switch p {
	case tprocc.Tables:
		statements = strings.Split(strings.TrimSuffix(strings.TrimSpace(schema), ";"), ";\n")
	case tprocc.Indexes:
		statements = []string{"CREATE INDEX IF NOT EXISTS customer_name ON tprocc.customer (c_w_id, c_d_id, c_last, c_first)",
			"CREATE INDEX IF NOT EXISTS orders_customer ON tprocc.orders (o_w_id, o_d_id, o_c_id, o_id)"}
	case tprocc.Procedures:
		for s := range strings.SplitSeq(strings.TrimSpace(procedures), "\nEND;") {
			if s != "" {
				statements = append(statements, s+"\nEND")
			}
		}
	case tprocc.Statistics:
		for _, t := range append([]tprocc.Table{tprocc.ItemTable}, tprocc.WarehouseTables...) {
			statements = append(statements, "ANALYZE TABLE tprocc."+t.Name)
		}
	}
	for i := range statements {
		statements[i] = strings.ReplaceAll(statements[i], "tprocc.", d.Schema())
	}
	return statements
}

// sessionMode is the language of our sessions, and so of the procedures that they make, whatever the server has: other
// ones read backslashes in rows, and procedures, otherwise.
const sessionMode = "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"

// greeting is how long a server may take until it has let us in.
var greeting = 30 * time.Second

// open gives one connection. Of its own to close are both. The line that it is on is told where that is not nil.
func (d Dialect) open(ctx context.Context, database string, line *net.Conn) (*sql.DB, *sql.Conn, error) {
	c := d.Server.Config.Clone()
	c.DBName = database
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := tprocc.Dial(ctx, network, address)
		if line != nil {
			*line = conn
		}
		return conn, err
	}
	c.Params = map[string]string{"sql_mode": sessionMode}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %s: %w", d.Server, err)
	}
	db := sql.OpenDB(connector)
	greeted, cancel := context.WithTimeoutCause(ctx, greeting, fmt.Errorf("the server said nothing that ends its "+
		"greeting within %v", greeting))
	defer cancel()
	conn, err := db.Conn(greeted)
	if why := context.Cause(greeted); why != nil && ctx.Err() == nil {
		err = why
	}
	if err != nil {
		_ = db.Close()
		return nil, nil, fmt.Errorf("connect: %s: %w%s", d.Server, err, mysqlserver.Hint(c, err))
	}
	return db, conn, nil
}

// Connect implements tprocc.Dialect.
func (d Dialect) Connect(ctx context.Context) (tprocc.Session, error) {
	s := &session{ctx: ctx, dialect: d}
	var err error
	if s.db, s.conn, err = d.open(ctx, "", &s.line); err != nil {
		return nil, err
	}
	return s, nil
}

type session struct {
	ctx     context.Context // of Connect, which says so
	db      *sql.DB
	conn    *sql.Conn
	line    net.Conn
	dialect Dialect
}

// Close implements tprocc.Session.
func (s *session) Close() error { return errors.Join(s.conn.Close(), s.db.Close()) }

// Exec implements tprocc.Session.
func (s *session) Exec(statement string) error {
	_, err := s.conn.ExecContext(s.ctx, statement)
	return s.why(err)
}

// Rows implements tprocc.Session.
func (s *session) Rows(query string) ([][]string, error) {
	rows, err := tprocc.Texts(s.ctx, s.conn, query)
	return rows, s.why(err)
}

// why is an error, or what it came of.
func (s *session) why(err error) error {
	if exceeded := tprocc.Exceeded(s.line); err != nil && exceeded != nil {
		return exceeded
	}
	return err
}

// Copy implements tprocc.Session. What the server only warns of, as it does of rows that it leaves out, is an error.
func (s *session) Copy(t tprocc.Table, rows io.Reader) error {
	reader := rand.Text() // the driver's list of readers is everybody's
	mysql.RegisterReaderHandler(reader, func() io.Reader { return rows })
	defer mysql.DeregisterReaderHandler(reader)
	err := s.Exec(fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s%s CHARACTER SET latin1 (%s)", reader,
		s.dialect.Schema(), t.Name, strings.Join(t.Columns, ", ")))
	if err != nil {
		return fmt.Errorf("%w%s", err, mysqlserver.Hint(s.dialect.Server.Config, err))
	}
	warnings, err := s.Rows("SHOW WARNINGS LIMIT 1")
	if err == nil && len(warnings) > 0 {
		err = fmt.Errorf("the server warns: %q", warnings[0])
	}
	return err
}
