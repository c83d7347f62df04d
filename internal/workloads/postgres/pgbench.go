package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/pgwire"
)

// pgbenchTool is the Tool of the marks of pgbench's tables.
const pgbenchTool = "pgbench"

// asTheyAre begins what to do about tables that somebody else has made.
const asTheyAre = "initialise: never uses what is there as it is; "

// PgbenchSchema is where pgbench's tables are, unless a config says another one.
const PgbenchSchema = "plimsoll_pgbench"

// What is done about the tables of the built-in scripts.
const (
	Never   = "never"   // they are the user's affair: nothing is made, and nothing dropped
	Missing = "missing" // made where there are none; those of the same scale are used again
	Always  = "always"  // made anew, in place of those that we made
)

// Initialise returns what is done where the config does not say it: tables are made for built-in scripts, and on a
// server of the run's own, which has none. Scripts of the author's on a server of the user's find there what they need.
func (c Config) Initialise(builtin bool) string {
	if builtin || c.RunsServer() {
		return Missing
	}
	return Never
}

// Seed is that of a load's random numbers: the same in each of its runs, and none on tables of the user's, where keys
// of an earlier run would be there already.
func (c Config) Seed(given uint64, initialise string) uint64 {
	if !c.RunsServer() && initialise == Never {
		return 0
	}
	return given
}

// Pgbench makes pgbench's tables in a schema, as pgbench itself and the generator pg do: either may use what the other
// has made.
func Pgbench(c *pgwire.Conn, schema string) Maker {
	return Maker{Session: On(c), Tool: pgbenchTool, Schema: schema, Parts: true, Tables: map[string][]string{
		"pgbench_accounts": {"aid", "bid", "abalance", "filler"},
		"pgbench_branches": {"bid", "bbalance", "filler"},
		"pgbench_history":  {"tid", "bid", "aid", "delta", "mtime", "filler"},
		"pgbench_tellers":  {"tid", "bid", "tbalance", "filler"},
	}}
}

// SchemaOption is a row for where pgbench's tables are.
func SchemaOption(to *string) workload.Option {
	return workload.Option{Name: "schema", Default: PgbenchSchema, Help: "where the tables are, or are made",
		To: func(text string) (err error) {
			*to, err = ReadSchema(text)
			return err
		}}
}

// InitialiseOption is a row for what is done about them.
func InitialiseOption(to *string) workload.Option {
	return workload.Option{Name: "initialise", To: to, Choices: []string{Never, Missing, Always},
		Help: "missing makes absent tables (default for built-in scripts and own servers), always makes them anew; never " +
			"is the default for your scripts on your server"}
}

// ReadSchema reads the name of a schema as a config has it.
func ReadSchema(text string) (string, error) {
	if !plainName.MatchString(text) || strings.HasPrefix(text, "pg_") {
		return "", fmt.Errorf("%q is no name of a schema: want small letters, digits and _, not beginning with pg_", text)
	}
	return text, nil
}

// Path is the server's search path for a connection with a schema in front of it, or behind it: what is not there keeps
// being found as before. It is "" where the server's own will do, a schema that comes last not being there.
func Path(c *pgwire.Conn, schema string, first bool) (string, error) {
	if !first {
		rows, err := ask(c, "select 1 from pg_namespace where nspname = "+Literal(schema))
		if err != nil || len(rows) == 0 {
			return "", err
		}
	}
	if through, err := pooled(c); err != nil || through {
		return "", cmp.Or(err, errors.New("a pooler stands between, which keeps no search_path: give the address of the "+
			"server itself, or your own tables with initialise: never and without schema"))
	}
	rows, err := ask(c, "select current_setting('search_path')")
	if err != nil {
		return "", fmt.Errorf("the server's search path: %w", err)
	}
	if len(rows) != 1 {
		return "", fmt.Errorf("the server's search path: %d rows", len(rows))
	}
	parts := []string{Name(schema), rows[0][0]}
	if !first {
		slices.Reverse(parts)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" }), ", "), nil
}

// OldPgbench says, in words, that an earlier version has left tables in schema public; "" where it has not.
func OldPgbench(c *pgwire.Conn, schema string) string {
	if schema == "public" {
		return "" // Guard says it
	}
	rows, err := ask(c, "select 1 from pg_namespace where nspname = 'public' and obj_description(oid, 'pg_namespace') like "+
		"'made by plimsoll: %' and to_regclass('public.pgbench_accounts') is not null")
	if err != nil || len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("schema public has tables of pgbench and the mark of an earlier version, which are left as they are: "+
		"tables are made in schema %s now; when nobody needs the old ones, drop them by hand: %s; COMMENT ON SCHEMA public "+
		"IS 'standard public schema'", schema, Pgbench(c, "public").byHand())
}
