// Package postgres is the order-entry workload of package tprocc on PostgreSQL: schema, functions in PL/pgSQL, COPY,
// and users whose every transaction is one round trip of the extended protocol.
//
// It stands on pgwire. It makes one schema, tprocc, and touches nothing else.
package postgres

import (
	"context"
	_ "embed" // the statements
	"errors"
	"fmt"
	"io"
	"strings"

	"plimsoll/internal/kit/pgwire"
	pg "plimsoll/internal/workloads/postgres"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed indexes.sql
	indexes string
	//go:embed procedures.sql
	procedures string
)

// Dialect is PostgreSQL 12 or later at Server.
type Dialect struct{ Server *pgwire.Server }

var _ tprocc.Dialect = Dialect{}

// Name implements tprocc.Dialect.
func (Dialect) Name() string { return "postgresql" }

// Schema implements tprocc.Dialect.
func (Dialect) Schema() string { return "tprocc." }

func maker(s tprocc.Session) pg.Maker {
	return pg.Maker{Session: s, Tool: "tprocc", Schema: "tprocc", Tables: tprocc.AllTables()}
}

// Find implements tprocc.Dialect.
func (Dialect) Find(s tprocc.Session) (warehouses int, err error) {
	m, err := maker(s).Guard(pg.Mark{Tool: "tprocc"})
	if err != nil || m == nil {
		return 0, err
	}
	rows, err := s.Rows("SELECT to_regclass('tprocc.load_state') IS NOT NULL")
	if err != nil || rows[0][0] != "t" {
		return 0, err // begun, and without a table yet
	}
	return m.Scale, nil
}

// Lock implements tprocc.Dialect. The number is this workload's.
func (Dialect) Lock() string { return "SELECT pg_try_advisory_lock(7076726363)::int" }

// Work implements tprocc.Dialect.
func (Dialect) Work() string {
	return "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
}

// Create implements tprocc.Dialect.
func (d Dialect) Create(s tprocc.Session, warehouses int) error {
	err := d.Drop(s) // of one that was begun, the mark
	if err == nil {
		err = maker(s).Begin(warehouses)
	}
	if err == nil {
		err = s.Exec(schema) // together, or not at all
	}
	return err
}

// Finish implements tprocc.Dialect.
func (Dialect) Finish(s tprocc.Session, warehouses int) error {
	return maker(s).Record(pg.Mark{Tool: "tprocc", Scale: warehouses, Complete: true})
}

// Drop implements tprocc.Dialect. The procedures stay, for the next load to replace.
func (Dialect) Drop(s tprocc.Session) error { return maker(s).Drop() }

// Claim implements tprocc.Dialect.
func (d Dialect) Claim(ctx context.Context, run string, _ bool) (io.Closer, error) {
	c, err := pg.NewClaim(ctx, d.Server, run)
	return closer{c}, err
}

type closer struct{ claim *pg.Claim }

// Close implements io.Closer.
func (c closer) Close() error { c.claim.Close(); return nil }

// Script implements tprocc.Dialect.
func (Dialect) Script(p tprocc.Part) []string {
	switch p {
	case tprocc.Indexes:
		return strings.Split(strings.TrimSuffix(strings.TrimSpace(indexes), ";"), ";\n")
	case tprocc.Procedures:
		return []string{procedures}
	case tprocc.Emptied, tprocc.Statistics:
		var each []string
		for _, t := range append([]tprocc.Table{tprocc.ItemTable}, tprocc.WarehouseTables...) {
			each = append(each, "VACUUM ANALYZE tprocc."+t.Name)
		}
		return append(each, "CHECKPOINT")
	}
	return nil // the tables come with Create, so that there is never a schema without them
}

// Connect implements tprocc.Dialect.
func (d Dialect) Connect(ctx context.Context) (tprocc.Session, error) {
	c, err := d.Server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{c, context.AfterFunc(ctx, c.Stop)}
	if err := pg.Unpooled(c); err != nil {
		_ = s.Close() // it is of no use
		return nil, fmt.Errorf("connect: %s: %w", d.Server, err)
	}
	return s, nil
}

type session struct {
	conn   *pgwire.Conn
	forget func() bool
}

// Close implements tprocc.Session.
func (s *session) Close() error {
	s.forget()
	return s.conn.Close()
}

// Exec implements tprocc.Session.
func (s *session) Exec(sql string) error {
	_, err := s.conn.Do(sql)
	if said := (*pgwire.Error)(nil); sql == "CHECKPOINT" && errors.As(err, &said) && said.Code == "42501" {
		return nil // not everyone may
	}
	return err
}

// Rows implements tprocc.Session.
func (s *session) Rows(sql string) ([][]string, error) {
	r, err := s.conn.Do(sql)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for r.Next() {
		row := make([]string, r.Columns())
		for i := range row {
			row[i] = string(r.Column(i))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Copy implements tprocc.Session.
func (s *session) Copy(t tprocc.Table, rows io.Reader) error {
	sql := fmt.Sprintf("COPY tprocc.%s (%s) FROM STDIN", t.Name, strings.Join(t.Columns, ", "))
	_, err := s.conn.CopyIn(sql, func(to []byte) ([]byte, error) {
		at := len(to)
		if cap(to)-at < 64<<10 {
			to = append(make([]byte, 0, at+64<<10), to...)
		}
		n, err := rows.Read(to[at:cap(to)])
		return to[:at+n], err
	})
	return err
}
