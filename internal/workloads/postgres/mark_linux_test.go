package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/postgres"
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

// maker makes two tables, in a schema whose name has to be quoted.
func maker(c *pgwire.Conn, schema string) postgres.Maker {
	return postgres.Maker{Session: postgres.On(c), Tool: "tprocc", Schema: schema, Parts: true,
		Tables: map[string][]string{"accounts": {"id", "n"}, "history": {"id", "at"}}}
}

const makeTables = "create table %[1]s.accounts (id int primary key, n int); create table %[1]s.history (id int " +
	"references %[1]s.accounts, at date)"

// fill makes the tables as a load does.
func fill(t *testing.T, m postgres.Maker) {
	t.Helper()
	if err := m.Begin(4); err != nil {
		t.Fatal(err)
	}
	do(t, m, fmt.Sprintf(makeTables, postgres.Name(m.Schema)))
	if err := m.Record(postgres.Mark{Tool: m.Tool, Scale: 4, Complete: true}); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, m postgres.Maker, sql string) {
	t.Helper()
	if err := m.Exec(sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// What we made is known again, at its scale alone, used again, and dropped by name; a load that was cut off as well.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	c := connect(t, s.URL())
	ours := postgres.Mark{Tool: "tprocc", Scale: 4}
	complete := ours
	complete.Complete = true
	for _, schema := range []string{"public", `Odd "name's\`} {
		m := maker(c, schema)
		guarded := func(want *postgres.Mark) {
			t.Helper()
			found, err := m.Guard(ours)
			if diff := cmp.Diff(want, found); diff != "" || err != nil {
				t.Fatalf("%s: %v, %s", schema, err, diff)
			}
		}
		guarded(nil)
		fill(t, m)
		guarded(&complete)
		for want, words := range map[postgres.Mark]string{
			{Tool: "tprocc", Scale: 5}: "has tprocc of scale 4, and the load wants 5",
			{Tool: "pg", Scale: 4}:     "is of tprocc, not of pg",
		} {
			foreign := (*postgres.ForeignError)(nil)
			other := m
			other.Tool = want.Tool
			_, err := other.Guard(want)
			if !errors.As(err, &foreign) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %q", schema, err, words)
			}
			if err := other.Begin(want.Scale); !errors.As(err, &foreign) {
				t.Errorf("%s: begun as %+v: %v", schema, want, err)
			}
		}
		other := m
		other.Tool = "pg"
		if err := other.Drop(); err == nil {
			t.Errorf("%s: dropped as another's", schema)
		}
		// What others have in the schema and may do there stays, and so does what they may do with the tables.
		name := postgres.Name(schema)
		do(t, m, "drop role if exists reader; create role reader; grant usage on schema "+name+" to reader; grant select, "+
			"update on "+name+".accounts to reader with grant option; grant insert (at) on "+name+".history to public; "+
			"create table "+name+".theirs (a int)")
		const may = "select string_agg(relname || coalesce(c.relacl::text, '') || coalesce(a.attacl::text, ''), ' ' order by " +
			"relname, attname) || min(nspacl::text) from pg_class c join pg_namespace n on n.oid = relnamespace join pg_attribute a " +
			"on attrelid = c.oid where nspname = %s and relkind = 'r' and relname <> 'plimsoll_made' and attnum > 0"
		rights := func() string {
			rows, err := m.Rows(fmt.Sprintf(may, postgres.Literal(schema)))
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			return rows[0][0]
		}
		before := rights()
		for range 2 { // the second time there is nothing to do
			if err := m.Drop(); err != nil {
				t.Fatal(err)
			}
			guarded(nil)
		}
		fill(t, m)
		if diff := cmp.Diff(before, rights()); diff != "" {
			t.Error(diff)
		}
		guarded(&complete)
		do(t, m, "drop table "+name+".history") // somebody did
		guarded(&ours)
		if err := m.Drop(); err != nil {
			t.Fatal(err)
		}
		// Cut off before the tables were written down, with partitions.
		if err := m.Begin(4); err != nil {
			t.Fatal(err)
		}
		do(t, m, "create table "+name+".accounts (id int, n int) partition by range (id); create table "+name+
			".accounts_1 partition of "+name+".accounts for values from (0) to (9); alter table "+name+
			".accounts add primary key (id)")
		guarded(&ours)
		if err := m.Drop(); err != nil {
			t.Fatal(err)
		}
		if got := s.Exec("postgres", "select count(*) from pg_class where relname ~ '^(accounts|history)'"); got != "0" {
			t.Errorf("%s: %s tables are left", schema, got)
		}
		do(t, m, "drop owned by reader; drop role reader")
	}
}

// What others made that depends on our tables, of every kind there is, is named in the refusal and untouched.
func TestDropRefuses(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t, "wal_level=logical")
	c := connect(t, s.URL())
	m := maker(c, "ours")
	fill(t, m)
	do(t, m, "create schema app; create table app.t (a int); create function app.touch() returns trigger language plpgsql "+
		"as 'begin return new; end'; create role other")
	s.Exec("postgres", "create database elsewhere")
	s.Exec("elsewhere", "create schema ours; create table ours.accounts (id int primary key, n int); create publication p for "+
		"table ours.accounts")
	const everything = "select md5(string_agg(r, ',' order by r)) from (select classid::text || objid || objsubid || refclassid " +
		"|| refobjid || refobjsubid || deptype::text from pg_depend union all select oid::text || relname || relowner || relnatts from " +
		"pg_class where relnamespace <> 'pg_toast'::regnamespace) as x (r)"
	for _, test := range []struct{ name, make, want, undo string }{
		{"view", "create view app.v as select id from ours.accounts", "view app.v", "drop view app.v"},
		{"view on a view", "create view app.v as select id from ours.accounts; create view app.w as select id from app.v",
			"view app.v, view app.w", "drop view app.w, app.v"},
		{"materialized view", "create materialized view app.m as select id from ours.accounts", "materialized view app.m",
			"drop materialized view app.m"},
		{"foreign key", "create table app.k (id int references ours.accounts)", "constraint k_id_fkey on table app.k",
			"drop table app.k"},
		{"our foreign key", "alter table app.t add unique (a); alter table ours.accounts add foreign key (n) references app.t (a)",
			"constraint accounts_n_fkey on table ours.accounts",
			"alter table ours.accounts drop constraint accounts_n_fkey; alter table app.t drop constraint t_a_key"},
		{"check", "alter table ours.accounts add constraint c check (n > 0)", "constraint c on table ours.accounts",
			"alter table ours.accounts drop constraint c"},
		{"child", "create table app.child () inherits (ours.accounts)", "table app.child", "drop table app.child"},
		{"function", "create function app.f(ours.accounts) returns int language sql as 'select 1'", "function app.f(ours.accounts)",
			"drop function app.f(ours.accounts)"},
		{"function's body", "create function app.f() returns bigint begin atomic select count(*) from ours.accounts; end",
			"function app.f()", "drop function app.f()"},
		{"trigger", "create trigger g before insert on ours.accounts for each row execute function app.touch()",
			"trigger g on table ours.accounts", "drop trigger g on ours.accounts"},
		{"rule", "create rule r as on delete to ours.accounts do also select 1", "rule r on table ours.accounts",
			"drop rule r on ours.accounts"},
		{"policy", "create policy p on ours.accounts using (true)", "policy p on table ours.accounts",
			"drop policy p on ours.accounts"},
		{"publication", "create publication pub for table ours.accounts",
			"publication of table ours.accounts in publication pub", "drop publication pub"},
		{"column of the type", "alter table app.t add column b ours.accounts", "column b of table app.t",
			"alter table app.t drop column b"},
		{"type", "create type app.pair as (a ours.accounts)", "type app.pair", "drop type app.pair"},
		{"domain", "create domain app.d as ours.accounts", "type app.d", "drop domain app.d"},
		{"index", "create index theirs on ours.accounts (n)", "index ours.theirs", "drop index ours.theirs"},
		{"statistics", "create statistics ours.st on id, n from ours.accounts", "statistics object ours.st",
			"drop statistics ours.st"},
		{"default", "alter table ours.accounts alter column n set default 1",
			"default value for column n of table ours.accounts", "alter table ours.accounts alter column n drop " +
				"default"},
		{"sequence owned by", "create sequence ours.q owned by ours.accounts.id", "sequence ours.q",
			"drop sequence ours.q"},
		{"identity", "alter table ours.accounts alter column id add generated always as identity", "sequence ours.accounts_id_seq",
			"alter table ours.accounts alter column id drop identity"},
		{"attached to theirs", "create table app.whole (id int, at date) partition by range (id); alter table app.whole " +
			"attach partition ours.history for values from (0) to (9)", "table app.whole",
			"alter table app.whole detach partition ours.history; drop table app.whole"},
		{"parent", "create table app.base (id int); alter table ours.accounts inherit app.base", "table app.base",
			"alter table ours.accounts no inherit app.base; drop table app.base"},
		{"extension", "alter extension plpgsql add table ours.history", "extension plpgsql",
			"alter extension plpgsql drop table ours.history"},
		{"array", "alter table app.t add column b ours.accounts[]", "column b of table app.t",
			"alter table app.t drop column b"},
		{"cast", "create function app.n(ours.accounts) returns int language sql as 'select 1'; create cast (ours.accounts " +
			"as int) with function app.n(ours.accounts)", "cast from ours.accounts to integer, function app.n(ours.accounts)",
			"drop cast (ours.accounts as int); drop function app.n(ours.accounts)"},
		{"constraint trigger", "create constraint trigger g after insert on ours.accounts for each row execute function " +
			"app.touch()", "trigger g on table ours.accounts", "drop trigger g on ours.accounts"},
		{"view on a column's type", "create view app.v as select null::ours.history as h",
			"column h of view app.v, view app.v",
			"drop view app.v"},
		{"generated", "create function app.of(ours.history) returns int immutable language sql as 'select 1'; create table " +
			"app.g (a int, h ours.history, b int generated always as (app.of(h)) stored)",
			"column b of table app.g, column h of table app.g, function app.of(ours.history)", "drop table app.g; drop function app.of(ours.history)"},
		{"argument's default", "create function app.f(a int default (null::ours.accounts).id) returns int language sql as " +
			"'select 1'", "function app.f(integer)", "drop function app.f(int)"},
		{"column", "alter table ours.accounts add column note text", "table accounts has other columns (id,n,note)",
			"alter table ours.accounts drop column note"},
		{"type of a column", "alter table ours.accounts alter column n type bigint",
			"table accounts has columns of other types", "alter table ours.accounts alter column n type int"},
		{"comment", "comment on table ours.accounts is 'theirs'; comment on column ours.accounts.n is 'theirs'; comment on index " +
			"ours.accounts_pkey is 'theirs'", "comment on column n of table ours.accounts, comment on index ours.accounts_pkey, " +
			"comment on table ours.accounts", "comment on table ours.accounts is null; comment on column ours.accounts.n is null; " +
			"comment on index ours.accounts_pkey is null"},
		{"subscription", "create subscription theirs connection 'host=127.0.0.1 port=" + fmt.Sprint(s.Port) + " user=" +
			postgrestest.User + " password=" + postgrestest.Password + " dbname=elsewhere' publication p with (create_slot = false, " +
			"slot_name = none, copy_data = false, enabled = false)", "subscription theirs", "drop subscription theirs"},
		{"owner", "alter table ours.accounts owner to other", "table accounts has another owner",
			"alter table ours.accounts owner to " + postgrestest.User},
	} {
		do(t, m, test.make)
		before := s.Exec("postgres", everything)
		err := m.Drop()
		foreign := (*postgres.ForeignError)(nil)
		if !errors.As(err, &foreign) || strings.Join(foreign.Objects, ", ") != test.want {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if after := s.Exec("postgres", everything); after != before {
			t.Errorf("%s: something has changed", test.name)
		}
		do(t, m, test.undo)
	}
	// What watches drops may forbid them.
	do(t, m, "create function app.no() returns event_trigger language plpgsql as 'begin raise ''theirs''; end'; "+
		"create event trigger no_drops on sql_drop execute function app.no()")
	before := s.Exec("postgres", everything)
	if err := m.Drop(); err == nil || !strings.Contains(err.Error(), "ERROR: theirs") {
		t.Errorf("event trigger: %v", err)
	}
	if after := s.Exec("postgres", everything); after != before {
		t.Error("event trigger: something has changed")
	}
	do(t, m, "drop event trigger no_drops")
	// A table of ours that is another one by now.
	do(t, m, "drop table ours.history; create table ours.history (id int, at date)")
	if err := m.Drop(); err == nil || !strings.Contains(err.Error(), "history is another one than plimsoll made") {
		t.Error(err)
	}
	do(t, m, "drop table ours.history")
	if err := m.Drop(); err != nil {
		t.Error(err)
	}
}

// A mark that somebody forges has nothing dropped, and one of an earlier version says what to do.
func TestForgedMark(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	c := connect(t, s.URL())
	ours := maker(c, "ours")
	fill(t, ours)
	const old = `comment on schema theirs is 'made by plimsoll: {"tool":"tprocc","scale":4,"complete":true}'; `
	tables := fmt.Sprintf(makeTables, "theirs")
	const copied = "create table theirs.plimsoll_made as table ours.plimsoll_made; "
	const self = "update theirs.plimsoll_made set id = 'theirs.plimsoll_made'::regclass where kind = 'mark'; "
	for name, test := range map[string]struct{ sql, want string }{
		"nothing": {tables, "holds table accounts, table history: nothing was written or dropped"},
		"words alone": {tables + "; create view theirs.v as select 1; create function theirs.f() returns int language sql as " +
			"'select 1'; create domain theirs.word as text", "holds function f, table accounts, table history, others"},
		"types alone": {"create domain theirs.word as text; create type theirs.kind as enum ('a')", "theirs.kind"},
		"comment": {old + tables, `drop them by hand: DROP TABLE "theirs"."accounts", "theirs"."history"; or give a ` +
			"database of its own"},
		"record of another": {old + tables + "; " + copied, "has a record that is not the one that plimsoll made " +
			"there"},
		"record that names itself": {tables + "; " + copied + self,
			"table accounts is another one than plimsoll made, table history is another one"},
		"their own columns": {"create table theirs.accounts (id int, theirs text); " + copied + self +
			"update theirs.plimsoll_made set id = 'theirs.accounts'::regclass where name = 'accounts'",
			"table accounts has other columns (id,theirs)"},
		"another's record": {tables + "; " + copied + self + "create role someone; alter table theirs.plimsoll_made owner to " +
			"someone; create role nobody_here login password 'x'", "table accounts is another one"},
		"a view": {tables + "; create view theirs.plimsoll_made as table ours.plimsoll_made",
			"has a record that is not this user's table"},
	} {
		do(t, ours, "create schema theirs")
		do(t, ours, test.sql)
		m := maker(c, "theirs")
		for what, err := range map[string]error{"drop": m.Drop(), "begin": m.Begin(4)} {
			foreign := (*postgres.ForeignError)(nil)
			if !errors.As(err, &foreign) || !strings.Contains(err.Error(), test.want) ||
				!strings.HasPrefix(err.Error(), `schema "theirs" of database "postgres" at 127.0.0.1:`) {
				t.Errorf("%s, %s: %v, want %q", name, what, err, test.want)
			}
		}
		if strings.Contains(test.sql, "theirs.accounts") {
			do(t, ours, "select id from theirs.accounts")
		}
		do(t, ours, "drop schema theirs cascade")
	}
}

// A comment of somebody else's is no mark, and every mark is read again.
func FuzzMark(f *testing.F) {
	f.Add("{}", 1)
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
