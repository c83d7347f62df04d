package tprocc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"plimsoll/internal/kit/pgwire"
)

// mostAnswer bounds a server's answer to one request, in bytes.
const mostAnswer = 64 << 20

// bounded is a connection to a server whose answers have an end: one that is larger ends it.
type bounded struct {
	net.Conn
	server string
	read   atomic.Int64 // since the last request
}

// Read implements net.Conn.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.read.Add(int64(n))
	if err := Exceeded(b); err != nil {
		return 0, err
	}
	return n, err
}

// Exceeded is why a connection of Dial was ended, nil when its answers had an end: drivers tell only that it was.
func Exceeded(conn net.Conn) error {
	if b, ok := conn.(*bounded); ok && b.read.Load() > mostAnswer {
		return fmt.Errorf("%s: its answer is larger than %d MiB: it was not read to its end", b.server, mostAnswer>>20)
	}
	return nil
}

// Write implements net.Conn.
func (b *bounded) Write(p []byte) (int, error) {
	b.read.Store(0)
	return b.Conn.Write(p)
}

// Dial connects to a server whose answers have an end. A loop may take the connection.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &bounded{Conn: pgwire.Below(conn), server: address}, nil
}

// NetConn is the connection below.
func (b *bounded) NetConn() net.Conn { return b.Conn }

// Texts are the rows of a query as text, for dialects on database/sql; null is "".
func Texts(ctx context.Context, conn *sql.Conn, query string) (all [][]string, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = v.String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// parameters are how many each procedure has.
var parameters = [Kinds]int{5, 7, 4, 2, 3}

// Calls is a Terminal on database/sql, for procedures without arrays: statement says how one is called. It owns the
// connection and its pool from now on, and ends with ctx.
func Calls(ctx context.Context, db *sql.DB, conn *sql.Conn, outcome func(*Input, error) Outcome,
	statement func(k Kind, parameters int) string) (Terminal, error) {
	c := &calls{ctx: ctx, db: db, conn: conn, outcome: outcome}
	for k, n := range parameters {
		var err error
		text := statement(Kind(k), n)
		if c.statements[k], err = conn.PrepareContext(ctx, text); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("prepare %q: %w", text, err)
		}
	}
	return c, nil
}

type calls struct {
	ctx        context.Context // of the run
	db         *sql.DB
	conn       *sql.Conn
	statements [Kinds]*sql.Stmt
	outcome    func(*Input, error) Outcome
}

// Close implements Terminal.
func (c *calls) Close() error { return errors.Join(c.conn.Close(), c.db.Close()) }

// Do implements Terminal.
func (c *calls) Do(in *Input) (Outcome, error) {
	rows, err := c.statements[in.Kind].QueryContext(c.ctx, in.Arguments()...)
	if err != nil {
		return c.outcome(in, err), err
	}
	n := 0
	for rows.Next() {
		n++
	}
	for rows.NextResultSet() { // the end of a call is a result of its own, and may be an error
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return c.outcome(in, err), err
	}
	if n != 1 {
		return Failed, fmt.Errorf("the procedure returned %d rows, not one", n)
	}
	return Committed, nil
}

// Arguments are those of the procedures, nil, numbers and texts of letters and digits, lines as Packed.
func (in *Input) Arguments() (list []any) {
	ints := func(values ...int) {
		for _, v := range values {
			list = append(list, v)
		}
	}
	customer := func() {
		if in.Last != "" {
			list = append(list, nil, in.Last)
		} else {
			list = append(list, in.Customer, nil)
		}
	}
	switch in.Kind {
	case NewOrder:
		ints(in.Warehouse, in.District, in.Customer, len(in.Lines))
		list = append(list, in.Packed())
	case Payment:
		ints(in.Warehouse, in.District, in.CustomerWarehouse, in.CustomerDistrict)
		customer()
		list = append(list, in.Amount())
	case OrderStatus:
		ints(in.Warehouse, in.District)
		customer()
	case Delivery:
		ints(in.Warehouse, in.Carrier)
	case StockLevel:
		ints(in.Warehouse, in.District, in.Threshold)
	}
	return list
}
