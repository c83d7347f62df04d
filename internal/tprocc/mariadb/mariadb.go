// Package mariadb is the order-entry workload of package tprocc on MariaDB 10.6 or later with InnoDB: schema, stored
// procedures, LOAD DATA LOCAL, and users that wait for their answers.
//
// It stands on go-sql-driver/mysql. It uses the one database that it is given, which it makes where there is none, and
// touches nothing else. The mark is that database's comment.
package mariadb

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed" // the statements
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/tprocc"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed procedures.sql
	procedures string
)

// Server is where the database is.
type Server struct {
	Address        string // host:port
	User, Password string
	Database       string // of small letters, digits and _
}

// String is the server without its password.
func (s Server) String() string {
	return fmt.Sprintf("user %q, database %q at %s", s.User, s.Database, s.Address)
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

// Find implements tprocc.Dialect. A database that is empty and says nothing is as good as none; one with somebody's
// routines or events alone is not.
func (d Dialect) Find() string {
	return fmt.Sprintf(`SELECT schema_comment FROM information_schema.schemata WHERE BINARY schema_name = '%[1]s' AND
 (schema_comment <> '' OR EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = '%[1]s') OR
 EXISTS (SELECT 1 FROM information_schema.routines WHERE routine_schema = '%[1]s') OR
 EXISTS (SELECT 1 FROM information_schema.events WHERE event_schema = '%[1]s'))`, d.Server.Database)
}

// Lock implements tprocc.Dialect. Names of locks are shorter than those of databases may be.
func (d Dialect) Lock() string {
	return fmt.Sprintf("SELECT GET_LOCK(CONCAT('plimsoll_tprocc_', MD5('%s')), 0)", d.Server.Database)
}

// Work implements tprocc.Dialect.
func (Dialect) Work() string {
	return "SELECT SUM(variable_value) FROM information_schema.global_status " +
		"WHERE variable_name IN ('COM_COMMIT', 'COM_ROLLBACK')"
}

// Create implements tprocc.Dialect. A mark has no single quotes.
func (d Dialect) Create(mark string) []string {
	return []string{fmt.Sprintf("CREATE DATABASE IF NOT EXISTS `%s`", d.Server.Database),
		fmt.Sprintf("ALTER DATABASE `%s` COMMENT '%s'", d.Server.Database, mark)}
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

// open gives one connection. Of its own to close are both.
func (d Dialect) open(ctx context.Context, database string) (*sql.DB, *sql.Conn, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", d.Server.Address, d.Server.User, d.Server.Password, database
	c.Timeout, c.Logger = 10*time.Second, log.New(io.Discard, "", 0) // what it logs comes as an error, too
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %s: %w", d.Server, err)
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, nil, fmt.Errorf("connect: %s: %w%s", d.Server, err, hint(err))
	}
	return db, conn, nil
}

func hint(err error) string {
	if said := (*mysql.MySQLError)(nil); errors.As(err, &said) {
		switch said.Number {
		case 1045, 1044:
			return "; give the right password, and see what the user may do"
		case 1040, 1203:
			return "; use fewer users, or a server with a higher max_connections"
		case 1148, 3948, 4166:
			return "; the server needs local_infile=ON for loading"
		}
	}
	return ""
}

// Connect implements tprocc.Dialect.
func (d Dialect) Connect(ctx context.Context) (tprocc.Session, error) {
	db, conn, err := d.open(ctx, "")
	if err != nil {
		return nil, err
	}
	return &session{ctx, db, conn, d}, nil
}

type session struct {
	ctx     context.Context //nolint:containedctx // of Connect, which says so
	db      *sql.DB
	conn    *sql.Conn
	dialect Dialect
}

// Close implements tprocc.Session.
func (s *session) Close() error { return errors.Join(s.conn.Close(), s.db.Close()) }

// Exec implements tprocc.Session.
func (s *session) Exec(statement string) error {
	_, err := s.conn.ExecContext(s.ctx, statement)
	return err
}

// Rows implements tprocc.Session.
func (s *session) Rows(query string) ([][]string, error) { return tprocc.Texts(s.ctx, s.conn, query) }

// Copy implements tprocc.Session. What the server only warns of, as it does of rows that it leaves out, is an error.
func (s *session) Copy(t tprocc.Table, rows io.Reader) error {
	reader := rand.Text() // the driver's list of readers is everybody's
	mysql.RegisterReaderHandler(reader, func() io.Reader { return rows })
	defer mysql.DeregisterReaderHandler(reader)
	err := s.Exec(fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s%s CHARACTER SET latin1 (%s)", reader,
		s.dialect.Schema(), t.Name, strings.Join(t.Columns, ", ")))
	if err != nil {
		return fmt.Errorf("%w%s", err, hint(err))
	}
	warnings, err := s.Rows("SHOW WARNINGS LIMIT 1")
	if err == nil && len(warnings) > 0 {
		err = fmt.Errorf("the server warns: %q", warnings[0])
	}
	return err
}
