// Package sqlserver is the order-entry workload of package tprocc on SQL Server 2017 or later: schema, stored
// procedures, bulk copy, and users that wait for their answers.
//
// It stands on go-mssqldb. It makes one schema, tprocc, with an extended property as its mark, and touches nothing
// else. It never ran against a server of ours: its tests hold what it sends, not what a server does with it.
package sqlserver

import (
	"bufio"
	"context"
	"database/sql"
	_ "embed" // the statements
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

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
	Address        string // host:port
	User, Password string
	Database       string // which is there
}

// String is the server without its password.
func (s Server) String() string {
	return fmt.Sprintf("user %q, database %q at %s", s.User, s.Database, s.Address)
}

// GoString keeps the password out of %#v.
func (s Server) GoString() string { return s.String() }

// Dialect is SQL Server at Server.
type Dialect struct{ Server Server }

var _ tprocc.Dialect = Dialect{}

// Name implements tprocc.Dialect.
func (Dialect) Name() string { return "sqlserver" }

// Schema implements tprocc.Dialect.
func (Dialect) Schema() string { return "tprocc." }

// Find implements tprocc.Dialect.
func (Dialect) Find(s tprocc.Session) (int, error) {
	rows, err := s.Rows(`SELECT CAST(p.value AS NVARCHAR(400)) FROM sys.schemas s LEFT JOIN sys.extended_properties p
 ON p.class = 3 AND p.major_id = s.schema_id AND p.name = N'plimsoll' WHERE s.name = N'tprocc'`)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	warehouses, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(rows[0][0], markBegin), "}"))
	if err != nil || warehouses <= 0 {
		return 0, fmt.Errorf("schema \"tprocc\" does not carry our mark (it says %q): nothing in it was touched; rename it, or "+
			"name another database", rows[0][0])
	}
	return warehouses, nil
}

// markBegin begins the mark; the number of warehouses follows.
const markBegin = `made by plimsoll: {"tool":"tprocc","scale":`

// Lock implements tprocc.Dialect.
func (Dialect) Lock() string {
	return "DECLARE @r INT; EXEC @r = sp_getapplock N'plimsoll_tprocc', N'Exclusive', N'Session', 0; " +
		"SELECT IIF(@r >= 0, 1, 0)"
}

// Work implements tprocc.Dialect.
func (Dialect) Work() string {
	return "SELECT cntr_value FROM sys.dm_os_performance_counters WHERE counter_name = N'Transactions/sec' " +
		"AND instance_name = DB_NAME()"
}

// Create implements tprocc.Dialect.
func (Dialect) Create(s tprocc.Session, warehouses int) error {
	err := s.Exec("CREATE SCHEMA tprocc")
	if err == nil {
		err = s.Exec(fmt.Sprintf("EXEC sys.sp_addextendedproperty @name = N'plimsoll', @value = N'%s%d}', "+
			"@level0type = N'SCHEMA', @level0name = N'tprocc'", markBegin, warehouses))
	}
	return err
}

// Finish implements tprocc.Dialect.
func (Dialect) Finish(tprocc.Session, int) error { return nil }

// Drop implements tprocc.Dialect: of SQL Server nothing is ever dropped.
func (Dialect) Drop(tprocc.Session) error {
	return errors.New("reload: of SQL Server nothing is dropped: drop the schema tprocc by hand, or name another database")
}

// Claim implements tprocc.Dialect: of SQL Server only loads exclude each other.
func (Dialect) Claim(context.Context, string, bool) (io.Closer, error) {
	return tprocc.Unclaimed{}, nil
}

// Script implements tprocc.Dialect.
func (Dialect) Script(p tprocc.Part) []string {
	switch p {
	case tprocc.Tables:
		return strings.Split(strings.TrimSuffix(strings.TrimSpace(schema), ";"), ";\n")
	case tprocc.Indexes:
		return []string{index("customer_name", "customer", "c_w_id, c_d_id, c_last, c_first"),
			index("orders_customer", "orders", "o_w_id, o_d_id, o_c_id, o_id")}
	case tprocc.Procedures:
		return strings.Split(strings.TrimSpace(procedures), "\nGO\n")
	case tprocc.Statistics:
		var each []string
		for _, t := range append([]tprocc.Table{tprocc.ItemTable}, tprocc.WarehouseTables...) {
			each = append(each, "UPDATE STATISTICS tprocc."+t.Name)
		}
		return each
	}
	return nil
}

func index(name, table, columns string) string {
	return fmt.Sprintf("IF INDEXPROPERTY(OBJECT_ID('tprocc.%[2]s'), '%[1]s', 'IndexID') IS NULL "+
		"CREATE INDEX %[1]s ON tprocc.%[2]s (%[3]s)", name, table, columns)
}

// open gives one connection. Of its own to close are both.
func (d Dialect) open(ctx context.Context) (*sql.DB, *sql.Conn, error) {
	asked := url.Values{"database": {d.Server.Database}, "app name": {"plimsoll"}, "dial timeout": {"10"}}
	u := url.URL{Scheme: "sqlserver", User: url.UserPassword(d.Server.User, d.Server.Password), Host: d.Server.Address,
		RawQuery: asked.Encode()}
	connector, err := mssql.NewConnector(u.String())
	if err != nil {
		// Its own words may have the password.
		return nil, nil, fmt.Errorf("connect: %s: the address cannot be read", d.Server)
	}
	connector.Dialer = dialer{}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, nil, fmt.Errorf("connect: %s: %w", d.Server, err)
	}
	return db, conn, nil
}

type dialer struct{}

// DialContext implements mssql.Dialer.
func (dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return tprocc.Dial(ctx, network, address)
}

// Connect implements tprocc.Dialect.
func (d Dialect) Connect(ctx context.Context) (tprocc.Session, error) {
	db, conn, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	return &session{ctx, db, conn}, nil
}

type session struct {
	ctx  context.Context // of Connect, which says so
	db   *sql.DB
	conn *sql.Conn
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

// Copy implements tprocc.Session. A batch is 10,000 rows.
func (s *session) Copy(t tprocc.Table, rows io.Reader) error {
	statement, err := s.conn.PrepareContext(s.ctx, mssql.CopyIn("tprocc."+t.Name,
		mssql.BulkOptions{Tablock: false, RowsPerBatch: 10_000}, t.Columns...))
	if err != nil {
		return err
	}
	defer statement.Close() //nolint:errcheck // what matters was executed
	lines := bufio.NewScanner(rows)
	for lines.Scan() {
		row, err := values(t, lines.Text())
		if err == nil {
			_, err = statement.ExecContext(s.ctx, row...)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	_, err = statement.ExecContext(s.ctx) // the end
	return err
}

var (
	whole  = regexp.MustCompile(`_id$|_cnt$|_quantity$|_number$|_all_local$|^s_ytd$`)
	moment = regexp.MustCompile(`_since$|_date$|_entry_d$|_delivery_d$`)
)

// values are those of a row as bulk copy wants them.
func values(t tprocc.Table, line string) ([]any, error) {
	row := make([]any, 0, len(t.Columns))
	for text := range strings.SplitSeq(line, "\t") {
		if len(row) == len(t.Columns) {
			return nil, fmt.Errorf("table %s: a row has more than %d columns", t.Name, len(t.Columns))
		}
		var v any = text
		var err error
		switch column := t.Columns[len(row)]; {
		case text == `\N`:
			v = nil
		case whole.MatchString(column):
			v, err = strconv.Atoi(text)
		case moment.MatchString(column):
			v, err = time.Parse(time.DateTime, text)
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		row = append(row, v)
	}
	if len(row) < len(t.Columns) {
		return nil, fmt.Errorf("table %s: a row has %d columns, not %d", t.Name, len(row), len(t.Columns))
	}
	return row, nil
}

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Block(ctx, d.terminal) }

func (d Dialect) terminal(ctx context.Context) (tprocc.Terminal, error) {
	db, conn, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	return tprocc.Calls(ctx, db, conn, outcome, func(k tprocc.Kind, parameters int) string {
		list := make([]string, parameters)
		for i := range list {
			list[i] = "@p" + strconv.Itoa(i+1)
		}
		return "EXEC tprocc." + k.String() + " " + strings.Join(list, ", ")
	})
}

func outcome(in *tprocc.Input, err error) tprocc.Outcome {
	var said mssql.Error
	var network net.Error
	switch {
	case errors.As(err, &network) || !errors.As(err, &said):
		return tprocc.Lost
	case in.Invalid() && said.Number == 50404:
		return tprocc.RolledBack
	case said.Number == 1205:
		return tprocc.Deadlock
	case said.Number == 3960 || said.Number == 41302 || said.Number == 1222: // snapshots that conflict; a lock's time
		return tprocc.Serialization
	case said.Number == 1105 || said.Number == 9002: // a file group, the log is full
		return tprocc.OutOfSpace
	case said.Class >= 20 || said.Number == 596: // fatal; the session is in the kill state
		return tprocc.Lost
	}
	return tprocc.Failed
}
