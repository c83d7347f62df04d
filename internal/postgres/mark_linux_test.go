package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/pgwire"
	"plimsoll/internal/postgres"
	"plimsoll/internal/postgres/postgrestest"
)

func connect(t *testing.T, url string) *pgwire.Conn {
	t.Helper()
	server, err := pgwire.ParseServer(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := server.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Nothing that we did not make is marked, filled or dropped; what we made is known again, at its scale alone.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	c := connect(t, s.URL())
	ours := postgres.Mark{Tool: "tprocc", Scale: 4}
	for _, schema := range []string{"public", `Odd "name's\`} {
		found, err := postgres.Guard(c, schema, ours)
		if found != nil || err != nil {
			t.Fatalf("%s: %v, %v", schema, found, err)
		}
		if err := postgres.SetMark(c, schema, ours); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do("create table " + postgres.Name(schema) + ".t ()"); err != nil {
			t.Fatal(err)
		}
		complete := ours
		complete.Complete = true
		if err := postgres.SetMark(c, schema, complete); err != nil {
			t.Fatal(err)
		}
		found, err = postgres.Guard(c, schema, ours)
		if diff := cmp.Diff(&complete, found); diff != "" || err != nil {
			t.Errorf("%s: %v, %s", schema, err, diff)
		}
		for want, words := range map[postgres.Mark]string{
			{Tool: "tprocc", Scale: 5}: "has tprocc of scale 4, and the load wants 5",
			{Tool: "pg", Scale: 4}:     "is of tprocc, not of pg",
		} {
			foreign := (*postgres.ForeignError)(nil)
			_, err := postgres.Guard(c, schema, want)
			if !errors.As(err, &foreign) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %q", schema, err, words)
			}
			if err := postgres.SetMark(c, schema, want); !errors.As(err, &foreign) {
				t.Errorf("%s: marked as %+v: %v", schema, want, err)
			}
		}
		if err := postgres.Drop(c, schema, "pg"); err == nil {
			t.Errorf("%s: dropped as another's", schema)
		}
		if err := postgres.Drop(c, schema, "tprocc"); err != nil {
			t.Error(err)
		}
		if found, err := postgres.Guard(c, schema, ours); found != nil || err != nil {
			t.Errorf("%s: after the drop %v, %v", schema, found, err)
		}
	}
	if _, err := c.Do("create schema theirs; create table theirs.accounts (id serial); create view theirs.v as select 1; " +
		"create function theirs.f() returns int language sql as 'select 1'"); err != nil {
		t.Fatal(err)
	}
	want := `schema "theirs" of database "postgres" at 127.0.0.1:`
	for name, err := range map[string]error{
		"mark": postgres.SetMark(c, "theirs", ours), "drop": postgres.Drop(c, "theirs", "tprocc"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "holds function f, table accounts, view v, and no mark") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Do("create schema words; create domain words.word as text; " +
		"create type words.kind as enum ('a')"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.SetMark(c, "words", ours); err == nil || !strings.Contains(err.Error(), "words.word") ||
		!strings.Contains(err.Error(), "words.kind") {
		t.Errorf("a schema of types alone: %v", err)
	}
	if got := s.Exec("postgres", "select count(*) from pg_class where relname in ('accounts', 'v')"); got != "2" {
		t.Errorf("%s of their tables are left", got)
	}
}

// A comment of somebody else's is no mark, and every mark is read again.
func FuzzMark(f *testing.F) {
	f.Add("made by plimsoll: {}", 1)
	f.Add("pg", -1)
	f.Fuzz(func(t *testing.T, text string, scale int) {
		if m, ok := postgres.ParseMark(text); ok && m.Tool == "" {
			t.Errorf("%q is a mark of no tool", text)
		}
		m := postgres.Mark{Tool: "a" + strings.ToValidUTF8(text, ""), Scale: scale}
		if got, ok := postgres.ParseMark(m.String()); !ok || got != m {
			t.Errorf("%+v became %+v, %t", m, got, ok)
		}
	})
}
