package tproch

import (
	"bytes"
	"context"
	_ "embed" // the tables
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/workloads/postgres"
)

// Schema is the schema of the database that the tables are in. The scale of its mark is in hundredths.
const Schema = "plimsoll_tproch"

// tool is the mark's word for us.
const tool = "tproch"

// own are our tables besides those of the data set: the portions that are loaded, while not all are; the refreshes that
// were begun; and how the server answered each query when it was last asked.
var own = []string{"loaded (portion text primary key)", "refreshed (ordinal bigint primary key)",
	"plans (query int primary key, plan text not null)"}

//go:embed schema.sql
var tableText string

// column is the name of a column at its place in a statement that creates a table.
var column = lazyregexp.New(`[(,]\s*([a-z]+(?:_[a-z]+)?) `)

// Exec implements postgres.Session, and Rows does.
func (a asked) Exec(sql string) error { return exec(a.ctx, a.conn, sql) }

// Rows are those of a query.
func (a asked) Rows(sql string) ([][]string, error) { return queryRows(a.ctx, a.conn, sql) }

type asked struct {
	ctx  context.Context // of one use
	conn *pgconn.PgConn
}

// maker returns what we make in the schema.
func (s *Store) maker(ctx context.Context) postgres.Maker {
	m := postgres.Maker{Session: asked{ctx, s.conn}, Tool: tool, Schema: Schema, Tables: map[string][]string{}}
	for _, sql := range tableStatements() {
		words := strings.Fields(sql)
		for _, c := range column.FindAllStringSubmatch(sql, -1) {
			m.Tables[words[2]] = append(m.Tables[words[2]], c[1])
		}
	}
	return m
}

// tableStatements make all our tables.
func tableStatements() (all []string) {
	for _, table := range own {
		all = append(all, "create table "+table)
	}
	for table := range strings.SplitSeq(strings.TrimPrefix(tableText, "create "), "\ncreate ") {
		all = append(all, "create "+table)
	}
	return all
}

// indexes are made after the load: the primary keys, and what the columns of joins and dates are found by.
var indexes = []string{
	"alter table lineitem add primary key (l_orderkey, l_linenumber)",
	"create index lineitem_part on lineitem (l_partkey, l_suppkey)",
	"create index lineitem_shipped on lineitem (l_shipdate)",
	"alter table orders add primary key (o_orderkey)",
	"create index orders_customer on orders (o_custkey)",
	"create index orders_date on orders (o_orderdate)",
	"alter table partsupp add primary key (ps_partkey, ps_suppkey)",
	"create index partsupp_supplier on partsupp (ps_suppkey)",
	"alter table part add primary key (p_partkey)",
	"alter table customer add primary key (c_custkey)",
	"create index customer_nation on customer (c_nationkey)",
	"alter table supplier add primary key (s_suppkey)",
	"create index supplier_nation on supplier (s_nationkey)",
	"alter table nation add primary key (n_nationkey)",
	"alter table region add primary key (r_regionkey)",
}

// State holds what a database holds of this workload.
type State struct {
	Scale  Scale // 0: nothing
	Loaded bool  // to its end
	// Refreshes is the ordinal of the last refresh that was begun; from the first one on the published answers are not
	// those of the data.
	Refreshes int64
}

// Store is the data set in a database. It is of one goroutine at a time.
type Store struct {
	config  *pgconn.Config
	conn    *pgconn.PgConn
	state   State
	loaders int // connections that load at once
}

// Open connects to the database of a connection string; of an empty one, to that which PGHOST and its like tell. The
// mark of a schema that is not ours, and the work of another process on this one, are errors.
func Open(ctx context.Context, connection string) (*Store, error) {
	config, err := pgconn.ParseConfig(connection)
	if err != nil {
		return nil, err // it quotes no password
	}
	config.RuntimeParams["search_path"] = Schema
	config.RuntimeParams["application_name"] = "plimsoll tproch"
	s := &Store{config: config, loaders: min(max(2, runtime.NumCPU()), 8)}
	if s.conn, err = s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// mostAnswer bounds a server's answer to one question, in bytes. Those of a large data set have some 100 MB.
const mostAnswer = 1 << 30

// connect makes a connection whose query ends with us.
func (s *Store) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := pgwire.Open(ctx, s.config, mostAnswer)
	if err == nil {
		_ = exec(ctx, conn, "set client_connection_check_interval = '5s'") // since 14; before, queries end later
	}
	return conn, err
}

// begin takes the database for us alone and reads the mark.
func (s *Store) begin(ctx context.Context) error {
	const lock = "select pg_try_advisory_lock(hashtext('" + Schema + "'))"
	rows, err := s.rows(ctx, lock)
	// A connection that was closed just now keeps its lock until the server has noticed.
	for range 50 {
		if err != nil || rows[0][0] == "t" {
			break
		}
		time.Sleep(100 * time.Millisecond)
		rows, err = s.rows(ctx, lock)
	}
	if err != nil {
		return err
	}
	if rows[0][0] != "t" {
		return fmt.Errorf("database %q: another plimsoll works on its schema %s; wait for it, or end it",
			s.config.Database, Schema)
	}
	m, err := s.maker(ctx).Guard(postgres.Mark{Tool: tool})
	if err != nil || m == nil {
		return err
	}
	rows, err = s.rows(ctx, "select to_regclass('"+Schema+".refreshed') is not null")
	if err != nil || rows[0][0] != "t" {
		return err // begun, and without a table yet
	}
	s.state = State{Scale: Scale(m.Scale) / 100, Loaded: m.Complete}
	rows, err = s.rows(ctx, "select coalesce(max(ordinal), 0) from refreshed")
	if err == nil {
		s.state.Refreshes, err = strconv.ParseInt(rows[0][0], 10, 64)
	}
	return err
}

// Close ends the connection.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.conn.Close(ctx)
}

// State returns what the database holds.
func (s *Store) State() State { return s.state }

// rows are what a query gives, as text.
func (s *Store) rows(ctx context.Context, sql string) ([][]string, error) {
	return queryRows(ctx, s.conn, sql)
}

func queryRows(ctx context.Context, conn *pgconn.PgConn, sql string) (rows [][]string, err error) {
	all := conn.Exec(ctx, sql)
	kept := 0
	for all.NextResult() {
		for result := all.ResultReader(); result.NextRow(); {
			values := result.Values()
			row := make([]string, len(values))
			for i, v := range values {
				row[i] = string(v)
				kept += len(v) + 16
			}
			if rows = append(rows, row); kept > pgwire.MaxKept {
				_ = conn.Close(context.WithoutCancel(ctx)) // nothing more is read of it
				return nil, fmt.Errorf("%s: %w", conn.Conn().RemoteAddr(), &pgwire.TooLargeError{Most: pgwire.MaxKept})
			}
		}
	}
	return rows, all.Close()
}

func exec(ctx context.Context, conn *pgconn.PgConn, statements ...string) error {
	for _, sql := range statements {
		if err := drain(conn.Exec(ctx, sql)); err != nil {
			head, _, _ := strings.Cut(sql, "\n")
			return fmt.Errorf("%s: %w", head[:min(len(head), 80)], err)
		}
	}
	return nil
}

// mark returns what the record says.
func (s State) mark() postgres.Mark {
	return postgres.Mark{Tool: tool, Scale: int(math.Round(float64(s.Scale) * 100)), Complete: s.Loaded}
}

// together does all of it, or nothing.
func (s *Store) together(ctx context.Context, statements ...string) error {
	err := exec(ctx, s.conn, append(append([]string{"begin"}, statements...), "commit")...)
	if err != nil && !s.conn.IsClosed() {
		err = errors.Join(err, exec(context.WithoutCancel(ctx), s.conn, "rollback"))
	}
	return err
}

// Drop drops the tables, if there are any, by name. What others made of them is an error, and everything stays; what
// others made in the schema stays as well.
func (s *Store) Drop(ctx context.Context) error {
	if err := s.maker(ctx).Drop(); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	s.state = State{}
	return nil
}

// Progress is how far a load is.
type Progress struct {
	Rows, Total int64         // those of lines that come with the orders not counted
	Left        time.Duration // until the rows are there, at the pace so far
	Step        string        // "rows", "indexes", "statistics"
	// Of the portion that was loaded just now.
	Bytes int
	Took  time.Duration
}

// source is a table whose rows are made by themselves, in portions that are loaded as a whole or not at all.
type source struct {
	table   Table
	portion int64
}

var sources = []source{{Region, 5}, {Nation, 25}, {Supplier, 5000}, {Customer, 10_000}, {Part, 5000}, {Order, 10_000}}

// rows are those of all sources.
func (s Scale) rows() (n int64) {
	for _, source := range sources {
		n += s.Rows(source.table)
	}
	return n
}

// portion is a part of a source.
type portion struct {
	table    Table
	first, n int64
}

func (p portion) String() string { return p.table.String() + " " + strconv.FormatInt(p.first, 10) }

// fill is Load but for the mark that it is complete.
func (s *Store) fill(ctx context.Context, g *Generator, told func(Progress)) error {
	fail := func(err error) error {
		err = fmt.Errorf("load: database %q: %w", s.config.Database, err)
		if server := (*pgconn.PgError)(nil); errors.As(err, &server) && server.Code == diskFull {
			err = fmt.Errorf("%w; make room on the server's disk, then run again: portions that are loaded stay", err)
		}
		return err
	}
	switch {
	case s.state.Scale == g.scale && s.state.Loaded:
		return nil
	case s.state.Scale == 0:
		if err := s.maker(ctx).Drop(); err != nil { // of one that was begun, the mark
			return fail(err)
		}
		if err := s.maker(ctx).Begin(State{Scale: g.scale}.mark().Scale); err != nil {
			return fail(err)
		}
		if err := s.together(ctx, tableStatements()...); err != nil {
			return fail(err)
		}
		s.state.Scale = g.scale
	case s.state.Scale != g.scale:
		return fail(fmt.Errorf("its schema %s holds scale %v, not %v; with reload: true it is dropped and loaded anew",
			Schema, s.state.Scale, g.scale))
	default: // of a load that was cut off: the room of rows that were never committed
		for t := range tables {
			if err := exec(ctx, s.conn, "vacuum "+t.String()); err != nil {
				return fail(err)
			}
		}
	}
	if told == nil {
		told = func(Progress) {}
	}
	if err := s.copyAll(ctx, g, told); err != nil {
		return fail(err)
	}
	told(Progress{Step: "indexes"})
	made, err := s.rows(ctx, "select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid "+
		"where c.relnamespace = '"+Schema+"'::regnamespace")
	if err != nil {
		return fail(err)
	}
	var missing []string
	for _, sql := range indexes {
		if !slices.ContainsFunc(made, func(row []string) bool { return row[0] == indexName(sql) }) {
			missing = append(missing, sql)
		}
	}
	if err := parallel(ctx, s, missing, oneByOne); err != nil {
		return fail(err)
	}
	told(Progress{Step: "statistics"})
	var analyze []string
	for t := tables - 1; t >= 0; t-- {
		analyze = append(analyze, "vacuum (analyze) "+t.String())
	}
	if err := parallel(ctx, s, analyze, oneByOne); err != nil {
		return fail(err)
	}
	return nil
}

// finish marks a data set as complete. Until then a load looks at all of it again.
func (s *Store) finish(ctx context.Context) error {
	if s.state.Loaded {
		return nil
	}
	done := s.state
	done.Loaded = true
	if err := s.maker(ctx).Record(done.mark(), "drop table loaded"); err != nil {
		return fmt.Errorf("load: database %q: %w", s.config.Database, err)
	}
	s.state = done
	return nil
}

// indexName is the name of the index that a statement of indexes makes.
func indexName(sql string) string {
	words := strings.Fields(sql)
	if words[0] == "alter" {
		return words[2] + "_pkey"
	}
	return words[2]
}

func oneByOne() func(context.Context, *pgconn.PgConn, string) error {
	return func(ctx context.Context, conn *pgconn.PgConn, sql string) error { return exec(ctx, conn, sql) }
}

// parallel does something with each of many, on several connections, until one fails. Each has a worker of its own.
func parallel[T any](
	ctx context.Context,
	s *Store,
	all []T,
	worker func() func(context.Context, *pgconn.PgConn, T) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan T, len(all))
	for _, one := range all {
		queue <- one
	}
	close(queue)
	var group sync.WaitGroup
	for range min(s.loaders, len(all)) {
		group.Go(func() {
			conn, err := s.connect(ctx)
			if err != nil {
				cancel(err)
				return
			}
			defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
			do := worker()
			for one := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, conn, one); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// copyAll loads the portions that are not there.
func (s *Store) copyAll(ctx context.Context, g *Generator, told func(Progress)) error {
	there, err := s.rows(ctx, "select portion from loaded")
	if err != nil {
		return err
	}
	done := make(map[string]bool, len(there))
	for _, row := range there {
		done[row[0]] = true
	}
	progress := Progress{Step: "rows", Total: g.scale.rows()}
	var left []portion
	for _, source := range sources {
		rows := g.scale.Rows(source.table)
		for first := int64(0); first < rows; first += source.portion {
			p := portion{source.table, first, min(source.portion, rows-first)}
			if done[p.String()] {
				progress.Rows += p.n
			} else {
				left = append(left, p)
			}
		}
	}
	before, began := progress.Rows, time.Now()
	var telling sync.Mutex
	return parallel(ctx, s, left, func() func(context.Context, *pgconn.PgConn, portion) error {
		var rows, more []byte
		return func(ctx context.Context, conn *pgconn.PgConn, p portion) (err error) {
			if rows, more, err = g.Append(p.table, rows[:0], more[:0], p.first, p.n); err != nil {
				return err
			}
			begin := time.Now()
			if err := exec(ctx, conn, "begin", "set local synchronous_commit = off"); err != nil {
				return err
			}
			if err := copyRows(ctx, conn, p.table, rows, more); err != nil {
				return err
			}
			if err := exec(ctx, conn, "insert into loaded values ('"+p.String()+"')", "commit"); err != nil {
				return err
			}
			telling.Lock()
			defer telling.Unlock()
			progress.Rows += p.n
			perRow := float64(time.Since(began)) / float64(progress.Rows-before)
			progress.Left = time.Duration(perRow * float64(progress.Total-progress.Rows))
			progress.Bytes, progress.Took = len(rows)+len(more), time.Since(begin)
			told(progress)
			return nil
		}
	})
}

// copyRows loads rows of a table and what they brought along.
func copyRows(ctx context.Context, conn *pgconn.PgConn, t Table, rows, more []byte) error {
	for i, text := range [][]byte{rows, more} {
		if len(text) == 0 {
			continue
		}
		name := (t + Table(i)).String()
		if _, err := conn.CopyFrom(ctx, bytes.NewReader(text), "copy "+name+" from stdin"); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}
