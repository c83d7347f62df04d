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

	"plimsoll/internal/pgwire"
	"plimsoll/internal/tprocc"
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

// Find implements tprocc.Dialect.
func (Dialect) Find() string {
	return "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'tprocc'"
}

// Lock implements tprocc.Dialect. The number is this workload's.
func (Dialect) Lock() string { return "SELECT pg_try_advisory_lock(7076726363)::int" }

// Work implements tprocc.Dialect.
func (Dialect) Work() string {
	return "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
}

// Create implements tprocc.Dialect. A mark has no quotes.
func (Dialect) Create(mark string) []string {
	return []string{"CREATE SCHEMA tprocc; COMMENT ON SCHEMA tprocc IS '" + mark + "'; " + schema}
}

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
	return &session{c, context.AfterFunc(ctx, c.Stop)}, nil
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
