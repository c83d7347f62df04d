package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/pgwire"
)

// Mark says whose a schema is and what is in it. It is the first row of the record of what was made there.
type Mark struct {
	Tool  string `json:"tool"`  // what fills and uses it: pgbench, tprocc
	Scale int    `json:"scale"` // in the tool's own unit: branches, warehouses; 0: its tables were dropped
	// Complete: all that the tool loads is there. A schema is marked before it is filled, and again afterwards.
	Complete bool `json:"complete,omitempty"`
}

// markWord begins the comment that earlier versions marked schemas with. It proves nothing.
const markWord = "made by plimsoll: "

// String is the mark as the record has it.
func (m Mark) String() string {
	text, err := json.Marshal(m)
	if err != nil { // of two texts and a number: never
		return err.Error()
	}
	return string(text)
}

// ParseMark reads what String wrote; false for anything else.
func ParseMark(text string) (m Mark, ok bool) {
	ok = json.Unmarshal([]byte(text), &m) == nil && m.Tool != ""
	return m, ok
}

// Session executes SQL on one connection.
type Session interface {
	// Exec executes statements whose rows nobody wants.
	Exec(sql string) error
	// Rows are those of a query, as text; null is "".
	Rows(sql string) ([][]string, error)
}

// On is the Session that a connection is.
func On(c *pgwire.Conn) Session { return wired{c} }

type wired struct{ conn *pgwire.Conn }

// Exec implements Session.
func (w wired) Exec(sql string) error {
	_, err := w.conn.Do(sql)
	return err
}

// Rows implements Session.
func (w wired) Rows(sql string) ([][]string, error) { return ask(w.conn, sql) }

// Maker is a tool, and what it makes in a schema. Nothing else is ever dropped, and nothing of it that is not in the
// record of that schema, is not the object that was recorded, or is used by what somebody else made.
//
// The record is a table of the schema, RecordTable: for every table, index and constraint that was made its name, its
// oid and its columns. Who copies it, or restores it elsewhere, has a record of other oids, which is worth nothing.
type Maker struct {
	Session

	Tool   string
	Schema string
	Tables map[string][]string // the names of the columns, in order
	// Parts: a table may have partitions, called as it is with _1, _2 and so on behind.
	Parts bool
}

// RecordTable is the table in a schema of ours that says what was made there.
const RecordTable = "plimsoll_made"

// ForeignError says that a schema is not for a load to fill, or what is in it not for it to drop.
type ForeignError struct {
	Server, Schema string
	Mark           *Mark    // of another tool or scale; nil for none at all
	Objects        []string // all that is in the way, each in words; none when Mark is
	Want           Mark
	why, todo      string // the sentence around Objects
}

// Error says what is there and what to do.
func (e *ForeignError) Error() string {
	if e.Mark == nil {
		return fmt.Sprintf("schema %q of %s %s %s: nothing was written or dropped; %s", e.Schema, e.Server, e.why,
			strings.Join(e.Objects, ", "), e.todo)
	}
	if e.Mark.Tool != e.Want.Tool {
		return fmt.Sprintf("schema %q of %s is of %s, not of %s: nothing was written; give a database of its own", e.Schema,
			e.Server, e.Mark.Tool, e.Want.Tool)
	}
	return fmt.Sprintf("schema %q of %s has %s of scale %d, and the load wants %d: nothing was written; give that scale, or "+
		"have the tables made anew", e.Schema, e.Server, e.Mark.Tool, e.Mark.Scale, e.Want.Scale)
}

func (m Maker) foreign(objects []string, why, todo string) error {
	if m.Tool == pgbenchTool {
		todo = asTheyAre + todo
	}
	return &ForeignError{Server: m.where(), Schema: m.Schema, Objects: objects, Want: Mark{Tool: m.Tool}, why: why,
		todo: todo}
}

// contents are the kinds and names of what somebody made in a schema.
const contents = `select * from (
 select case relkind when 'S' then 'sequence ' when 'v' then 'view ' when 'm' then 'view ' else 'table ' end || relname
  from pg_class c where relnamespace = (select oid from pg_namespace where nspname = %[1]s) and relkind in
  ('r','p','v','m','S','f') and not exists (select from pg_depend d where d.objid = c.oid and d.deptype in ('e','i','a'))
 union all select 'function ' || proname from pg_proc p
  where pronamespace = (select oid from pg_namespace where nspname = %[1]s)
  and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
 union all select pg_describe_object(classid, objid, 0) from pg_depend a
  where refclassid = 'pg_namespace'::regclass and refobjid = (select oid from pg_namespace where nspname = %[1]s)
  and deptype = 'n' and classid not in ('pg_class'::regclass, 'pg_proc'::regclass)
  and not exists (select from pg_depend d where (d.classid, d.objid) = (a.classid, a.objid) and d.deptype = 'e')
 ) o order by 1 limit 4`

// made holds what a record says, held against what there is.
type made struct {
	mark   Mark
	tables []string // our tables that are there, with their oids
	oids   []string
	bad    []string // what is not as it was recorded, in words
}

// Guard looks at a schema before anything is written to it: nil, nil for one that is empty, not there, or whose tables
// of ours were dropped; the mark where the tool and the scale are those wanted (a scale of 0 takes every one) and all
// that the record lists is what was made. Tables that are missing leave the mark not complete. For anything else the
// error is a *ForeignError.
func (m Maker) Guard(want Mark) (*Mark, error) {
	found, err := m.look()
	switch {
	case err != nil || found == nil:
		return nil, err
	case found.mark.Tool != m.Tool || found.mark.Scale != 0 && want.Scale != 0 && found.mark.Scale != want.Scale:
		return nil, &ForeignError{Server: m.where(), Schema: m.Schema, Mark: &found.mark, Want: want}
	case len(found.bad) > 0:
		return nil, m.foreign(found.bad, "is not as plimsoll left it:",
			"drop by hand what nobody needs, or give a database of its own")
	case found.mark.Scale == 0:
		return nil, nil
	}
	return &found.mark, nil
}

// look reads the record, nil where there is none and nothing else either.
func (m Maker) look() (*made, error) {
	rows, err := m.Rows(fmt.Sprintf("select coalesce(obj_description(n.oid, 'pg_namespace'), ''), coalesce(c.oid::text, ''), "+
		"coalesce(c.relkind = 'r' and not c.relrowsecurity and pg_has_role(c.relowner, 'usage'), false) from pg_namespace n "+
		"left join pg_class c on c.relnamespace = n.oid and c.relname = '%s' where n.nspname = %s", RecordTable,
		Literal(m.Schema)))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	comment, record, ours := rows[0][0], rows[0][1], rows[0][2] == "t"
	if record == "" {
		rows, err = m.Rows(fmt.Sprintf(contents, Literal(m.Schema)))
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		var objects []string
		for i, row := range rows {
			if i == 3 {
				row[0] = "others"
			}
			objects = append(objects, row[0])
		}
		if strings.HasPrefix(comment, markWord) {
			return nil, m.foreign(objects, "has only a comment as its mark, as an earlier version of plimsoll wrote it, and "+
				"no record of who made", fmt.Sprintf("if they are of a load and nobody needs them, drop them by hand: %s; or "+
				"give a database of its own", m.byHand()))
		}
		return nil, m.foreign(objects, "holds", "no mark says that plimsoll made them; give a database of its own")
	}
	if !ours {
		return nil, m.foreign([]string{RecordTable}, "has a record that is not this user's table:",
			"connect as who made it, or give a database of its own")
	}
	return m.hold(record)
}

// byHand returns what drops the tables.
func (m Maker) byHand() string {
	names := make([]string, 0, len(m.Tables))
	for name := range m.Tables {
		names = append(names, Name(m.Schema)+"."+Name(name))
	}
	slices.Sort(names)
	return "DROP TABLE " + strings.Join(names, ", ")
}

// hold holds the record against the tables that there are.
func (m Maker) hold(record string) (*made, error) {
	rows, err := m.Rows("select kind, name, id, shape from " + m.record())
	if err != nil {
		return nil, err
	}
	found := &made{}
	recorded := map[string][]string{}
	for _, row := range rows {
		switch row[0] {
		case "mark":
			if mark, ok := ParseMark(row[3]); ok && row[2] == record {
				found.mark = mark
			}
		case "table":
			recorded[row[1]] = row
		}
	}
	if found.mark.Tool == "" {
		return nil, m.foreign([]string{RecordTable}, "has a record that is not the one that plimsoll made there, as after a "+
			"restore from a dump:", "if nobody needs the tables, drop them and the record by hand: "+m.byHand()+", "+m.record()+
			"; or give a database of its own")
	}
	rows, err = m.Rows(fmt.Sprintf("select c.relname, c.oid, c.relkind, pg_has_role(c.relowner, 'usage') and c.relowner = "+
		"(select relowner from pg_class where oid = %s), coalesce(string_agg(quote_ident(a.attname), ',' order by a.attnum), "+
		"''), coalesce(string_agg(format_type(a.atttypid, a.atttypmod), ',' order by a.attnum), '') from pg_class c left "+
		"join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped where c.relnamespace = %s and "+
		"c.relkind not in ('i', 'I', 't') group by c.oid order by c.relname", record, m.namespace()))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		name := row[0]
		columns, known := m.columns(name)
		if !known {
			continue // another's, which stays
		}
		was, listed := recorded[name]
		what := ""
		switch {
		case !listed && found.mark.Complete || !listed && found.mark.Scale == 0:
			what = "was not made by plimsoll"
		case listed && was[2] != row[1]:
			what = "is another one than plimsoll made"
		case row[3] != "t":
			what = "has another owner"
		case row[2] != "r" && row[2] != "p":
			what = "is no table"
		case !sameNames(strings.Split(row[4], ","), columns):
			what = "has other columns (" + row[4] + ")"
		case listed && was[3] != row[4]+" "+row[5]:
			what = "has columns of other types"
		}
		if what != "" {
			found.bad = append(found.bad, "table "+name+" "+what)
			continue
		}
		found.tables, found.oids = append(found.tables, name), append(found.oids, row[1])
		delete(recorded, name)
	}
	if len(found.bad) == 0 && len(recorded) > 0 {
		found.mark.Complete = false
	}
	return found, nil
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// columns are those of a table of the tool's; false for a name that it gives none.
func (m Maker) columns(name string) ([]string, bool) {
	if c, ok := m.Tables[name]; ok {
		return c, true
	}
	at := strings.LastIndexByte(name, '_')
	if at < 0 || !m.Parts || name[at+1:] == "" || strings.Trim(name[at+1:], "0123456789") != "" {
		return nil, false
	}
	c, ok := m.Tables[name[:at]]
	return c, ok
}

func (m Maker) record() string { return Name(m.Schema) + "." + RecordTable }

func (m Maker) namespace() string {
	return "(select oid from pg_namespace where nspname = " + Literal(m.Schema) + ")"
}

// Begin makes the schema where there is none, and its record, when Guard has nothing against that: tables of the tool
// that come into being from now on are ours. Where tool or scale are others than those recorded it refuses.
func (m Maker) Begin(scale int) error {
	if _, err := m.Guard(Mark{Tool: m.Tool, Scale: scale}); err != nil {
		return err
	}
	sql := []string{"begin"}
	// Who may not make schemas may have one that somebody made for them.
	rows, err := m.Rows("select 1 from pg_namespace where nspname = " + Literal(m.Schema))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		sql = append(sql, "create schema "+Name(m.Schema))
	}
	sql = append(sql, "create table if not exists "+m.record()+" (kind text not null, name text not null, id oid not null, "+
		"shape text not null, primary key (kind, name))", m.marking(Mark{Tool: m.Tool, Scale: scale}))
	sql = append(sql, "commit")
	if err := m.together(sql); err != nil {
		return fmt.Errorf("schema %q of %s: record what is made: %w%s", m.Schema, m.where(), err, m.hint(err))
	}
	return nil
}

// hint says what to do where the user may not make a schema.
func (m Maker) hint(err error) string {
	if strings.Contains(err.Error(), "42501") {
		return fmt.Sprintf("; have CREATE on the database granted, or have the schema made: CREATE SCHEMA %s AUTHORIZATION "+
			"the user", Name(m.Schema))
	}
	return ""
}

// marking is the statement that writes the mark.
func (m Maker) marking(mark Mark) string {
	return fmt.Sprintf("insert into %[1]s select 'mark', %[2]s, c.oid, %[3]s from pg_class c where c.oid = %[4]s::regclass "+
		"on conflict (kind, name) do update set id = excluded.id, shape = excluded.shape", m.record(), Literal(m.Tool),
		Literal(mark.String()), Literal(m.record()))
}

// Record writes down what was made since Begin: tables, and while the tool has not been complete their indexes and
// constraints. What the tool has to do together with that is more. Privileges that others had on tables of those names
// are given again.
func (m Maker) Record(mark Mark, more ...string) error {
	found, err := m.look()
	if err != nil {
		return err
	}
	if found == nil || len(found.bad) > 0 {
		return m.foreign(found.words(), "is not as it was when the load began:", "see who else works there")
	}
	sql := append([]string{"begin"}, more...)
	sql = append(sql, m.marking(mark), "delete from "+m.record()+" where kind in ('table', 'index', 'constraint')")
	if len(found.oids) > 0 {
		in := strings.Join(found.oids, ", ")
		sql = append(sql, "insert into "+m.record()+" select 'table', c.relname, c.oid, string_agg(quote_ident(a.attname), ',' "+
			"order by a.attnum) || ' ' || string_agg(format_type(a.atttypid, a.atttypmod), ',' order by a.attnum) from pg_class "+
			"c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped where c.oid in ("+in+") "+
			"group by c.oid, c.relname",
			"insert into "+m.record()+" select 'index', indexrelid::regclass::text, indexrelid, '' from pg_index where indrelid "+
				"in ("+in+")",
			"insert into "+m.record()+" select 'constraint', conname || ' on ' || conrelid::regclass, oid, '' from "+
				"pg_constraint where conrelid in ("+in+")")
	}
	if err := m.together(append(sql, "commit")); err != nil {
		return fmt.Errorf("schema %q of %s: record what was made: %w", m.Schema, m.where(), err)
	}
	rows, err := m.Rows("select name, shape from " + m.record() + " where kind = 'grant' order by name")
	if err != nil || !mark.Complete {
		return err
	}
	for _, g := range rows {
		// A role that is gone needs nothing any more.
		if err := m.Exec(g[1]); err != nil && !strings.Contains(err.Error(), "42704") {
			return fmt.Errorf("schema %q of %s: %s: %w", m.Schema, m.where(), g[1], err)
		}
		err := m.Exec("delete from " + m.record() + " where kind = 'grant' and name = " + Literal(g[0]))
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *made) words() []string {
	if d == nil {
		return []string{"its record is gone"}
	}
	return d.bad
}

// together executes statements that are one transaction, the first being begin, and undoes them when one fails.
func (m Maker) together(statements []string) error {
	for _, sql := range statements {
		if err := m.Exec(sql); err != nil {
			_ = m.Exec("rollback") // a connection that was lost has rolled back
			return err
		}
	}
	return nil
}

// users are all objects that would be lost or broken if tables were dropped with all that depends on them, besides
// those that are parts of the tables: views, foreign keys, triggers, policies, publications, columns of their types,
// tables and extensions that they were made parts of.
const users = `with recursive ours(c, o) as (
 select 'pg_class'::regclass::oid, unnest(array[%[1]s]::oid[])
 union select 'pg_class'::regclass, id from %[2]s where kind = 'index'
 union select 'pg_constraint'::regclass, id from %[2]s where kind = 'constraint'
 union select 'pg_class'::regclass, indexrelid from pg_index where %[3]t and indrelid = any(array[%[1]s]::oid[])
 union select 'pg_constraint'::regclass, oid from pg_constraint where %[3]t and conrelid = any(array[%[1]s]::oid[])
), reach(c, o, s) as (
 select c, o, 0 from ours where c = 'pg_class'::regclass
 union select x.* from reach r, lateral (
  select d.classid, d.objid, d.objsubid from pg_depend d where d.refclassid = r.c and d.refobjid = r.o
   and (r.s = 0 or d.refobjsubid = r.s)
  union select d.refclassid, d.refobjid, d.refobjsubid from pg_depend d where d.classid = r.c and d.objid = r.o
   and d.deptype = 'i') x
) select distinct pg_describe_object(c, o, s) from reach r where not exists (select from ours u where (u.c, u.o) = (r.c, r.o)
  and (r.s = 0 or r.c <> 'pg_class'::regclass))
 and not exists (select from pg_depend d join reach w on (w.c, w.o) = (d.refclassid, d.refobjid) where
  (d.classid, d.objid) = (r.c, r.o) and d.deptype = 'i' and (r.c <> 'pg_class'::regclass or
  exists (select from pg_class where oid = r.o and relkind <> 'S')))
 and not (c = 'pg_class'::regclass and s = 0 and o in
  (select oid from pg_class where relnamespace = 'pg_toast'::regnamespace))
 and not (c = 'pg_class'::regclass and s > 0 and o = any(array[%[1]s]::oid[]))
union select pg_describe_object('pg_class'::regclass, inhparent, 0) from pg_inherits where inhrelid = any(array[%[1]s]::oid[])
 and inhparent <> all(array[%[1]s]::oid[])
union select pg_describe_object(refclassid, refobjid, 0) from pg_depend where classid = 'pg_class'::regclass and
 objid = any(array[%[1]s]::oid[]) and deptype in ('e', 'x')
union select 'comment on ' || pg_describe_object(classoid, objoid, objsubid) from pg_description
 join ours on (c, o) = (classoid, objoid)
union select 'subscription ' || subname from pg_subscription s join pg_subscription_rel on srsubid = s.oid
 where srrelid = any(array[%[1]s]::oid[]) order by 1`

// grants are the statements that give others again what they may do with tables, each with a number.
const grants = `select 'grant', (row_number() over (order by g))::text, 0, g from (
 select format('grant %%s on %%s to %%s%%s', a.privilege_type, c.oid::regclass, case a.grantee when 0 then 'public' else
  quote_ident(pg_get_userbyid(a.grantee)) end, case when a.is_grantable then ' with grant option' else '' end) g
  from pg_class c, aclexplode(c.relacl) a where c.oid in (%[1]s) and a.grantee <> c.relowner
 union all select format('grant %%s (%%I) on %%s to %%s%%s', a.privilege_type, t.attname, c.oid::regclass, case a.grantee
  when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end, case when a.is_grantable then
  ' with grant option' else '' end) from pg_class c join pg_attribute t on t.attrelid = c.oid, aclexplode(t.attacl) a
  where c.oid in (%[1]s) and a.grantee <> c.relowner) all_of_them`

// Drop drops the tables that the record says the tool has made, at whatever scale, by their names. What is not the one
// that was recorded, and what others made that depends on one, is an error that lists all of it, and nothing is
// dropped.
// The schema stays, with all that others have there and may do there; what they may do with the tables, Record gives
// them again. Without a record there is nothing to do.
func (m Maker) Drop() (err error) {
	found, err := m.Guard(Mark{Tool: m.Tool})
	if err != nil || found == nil {
		return err
	}
	fail := func(err error) error {
		return fmt.Errorf("drop the tables of %s in schema %q: %w", m.Tool, m.Schema, err)
	}
	if err := m.Exec("begin; set local lock_timeout = '60s'; set local search_path = pg_catalog"); err != nil {
		return fail(err)
	}
	defer func() {
		if err != nil {
			_ = m.Exec("rollback") // a connection that was lost has rolled back
		}
	}()
	now, err := m.look()
	if err != nil {
		return err
	}
	drop := m.qualified(now)
	if drop != "" {
		// From here on nobody can have anything depend on them.
		if err := m.Exec("lock table " + drop + " in access exclusive mode"); err != nil {
			return fail(err)
		}
		if now, err = m.look(); err != nil {
			return err
		}
	}
	if len(now.bad) > 0 || m.qualified(now) != drop {
		return m.foreign(now.bad, "changes at this moment:", "see who else works there")
	}
	var statements []string
	if drop != "" {
		oids := strings.Join(now.oids, ", ")
		rows, err := m.Rows(fmt.Sprintf(users, oids, m.record(), !found.Complete))
		if err != nil {
			return fail(err)
		}
		if len(rows) > 0 {
			var objects []string
			for _, row := range rows {
				objects = append(objects, row[0])
			}
			return m.foreign(objects, fmt.Sprintf("has tables of %s, and what others made depends on them:", m.Tool),
				"drop those first if nobody needs them, or give a database of its own")
		}
		statements = []string{fmt.Sprintf("insert into "+m.record()+" "+grants, oids) + " on conflict do nothing",
			"drop table " + drop + " restrict"}
	}
	statements = append(statements, "delete from "+m.record()+" where kind in ('table', 'index', 'constraint')",
		m.marking(Mark{Tool: m.Tool}), "commit")
	for _, sql := range statements {
		if err := m.Exec(sql); err != nil {
			return fail(err)
		}
	}
	return nil
}

func (m Maker) qualified(d *made) string {
	var names []string
	if d != nil {
		for _, name := range d.tables {
			names = append(names, Name(m.Schema)+"."+Name(name))
		}
	}
	return strings.Join(names, ", ")
}

// where names the server of a session.
func (m Maker) where() string {
	rows, err := m.Rows("select current_database(), coalesce(host(inet_server_addr()), ''), coalesce(inet_server_port(), 0)")
	if err != nil || len(rows) != 1 {
		return "the database"
	}
	if rows[0][1] == "" {
		return "database " + strconv.Quote(rows[0][0])
	}
	return fmt.Sprintf("database %q at %s:%s", rows[0][0], rows[0][1], cmp.Or(rows[0][2], "5432"))
}

// Name quotes an identifier for SQL, Literal a text.
func Name(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal quotes a text for SQL, whatever standard_conforming_strings says.
func Literal(text string) string {
	return " E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// ask gives all rows of one statement; null is "".
func ask(c *pgwire.Conn, sql string) (rows [][]string, err error) {
	r, err := c.Do(sql)
	if err != nil {
		return nil, err
	}
	for r.Next() {
		row := make([]string, r.Columns())
		for i := range row {
			row[i] = string(r.Column(i))
		}
		rows = append(rows, row)
	}
	return rows, nil
}
