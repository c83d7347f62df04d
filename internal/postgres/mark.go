package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"plimsoll/internal/pgwire"
)

// Mark says, as the comment of a schema, that we made it and what is in it. Nothing without one is dropped or filled.
type Mark struct {
	Tool  string `json:"tool"`  // what fills and uses it: pgbench, tprocc
	Scale int    `json:"scale"` // in the tool's own unit: branches, warehouses
	// Complete: all that the tool loads is there. A schema is marked before it is filled, and again afterwards.
	Complete bool `json:"complete,omitempty"`
}

// markWord begins the comment.
const markWord = "made by plimsoll: "

// String is the comment.
func (m Mark) String() string {
	text, err := json.Marshal(m)
	if err != nil { // of two texts and a number: never
		return err.Error()
	}
	return markWord + string(text)
}

// ParseMark reads a comment; false for one that is none of ours.
func ParseMark(comment string) (m Mark, ok bool) {
	text, ok := strings.CutPrefix(comment, markWord)
	ok = ok && json.Unmarshal([]byte(text), &m) == nil && m.Tool != ""
	return m, ok
}

// ForeignError says that a schema is not for a load to fill or to drop.
type ForeignError struct {
	Server, Schema string
	Mark           *Mark    // of another tool or scale; nil for none at all
	Objects        []string // some of what is in it
	Want           Mark
}

// Error says what is there and what to do.
func (e *ForeignError) Error() string {
	if e.Mark == nil {
		return fmt.Sprintf("schema %q of %s holds %s, and no mark says that plimsoll made them: nothing was written; give a "+
			"database of its own", e.Schema, e.Server, strings.Join(e.Objects, ", "))
	}
	if e.Mark.Tool != e.Want.Tool {
		return fmt.Sprintf("schema %q of %s is of %s, not of %s: nothing was written; give a database of its own, or drop "+
			"it first", e.Schema, e.Server, e.Mark.Tool, e.Want.Tool)
	}
	return fmt.Sprintf("schema %q of %s has %s of scale %d, and the load wants %d: nothing was written; give that scale, or "+
		"drop it first", e.Schema, e.Server, e.Mark.Tool, e.Mark.Scale, e.Want.Scale)
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

// Guard looks at a schema before anything is written to it: nil, nil for one that is empty or not there and has to be
// marked first; the mark of ours where the tool and the scale are those wanted (a scale of 0 takes every one). For
// anything else the error is a *ForeignError.
func Guard(c *pgwire.Conn, schema string, want Mark) (*Mark, error) {
	comment, err := ask(c, "select coalesce(obj_description(oid, 'pg_namespace'), '') from pg_namespace where nspname = "+
		Literal(schema))
	if err != nil {
		return nil, err
	}
	if len(comment) == 1 {
		if m, ok := ParseMark(comment[0][0]); ok {
			if m.Tool != want.Tool || want.Scale != 0 && m.Scale != want.Scale {
				return nil, &ForeignError{Server: where(c), Schema: schema, Mark: &m, Want: want}
			}
			return &m, nil
		}
	}
	rows, err := ask(c, fmt.Sprintf(contents, Literal(schema)))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	foreign := &ForeignError{Server: where(c), Schema: schema, Want: want}
	for i, row := range rows {
		if i == 3 {
			row[0] = "others"
		}
		foreign.Objects = append(foreign.Objects, row[0])
	}
	return nil, foreign
}

// SetMark makes a schema where there is none and marks it, when Guard has nothing against that.
func SetMark(c *pgwire.Conn, schema string, m Mark) error {
	if _, err := Guard(c, schema, m); err != nil {
		return err
	}
	_, err := c.Do(fmt.Sprintf("create schema if not exists %[1]s; comment on schema %[1]s is %[2]s", Name(schema),
		Literal(m.String())))
	if err != nil {
		return fmt.Errorf("mark schema %q: %w", schema, err)
	}
	return nil
}

// Drop removes a schema with all that is in it when its mark is of that tool, at whatever scale. Without a schema there
// is nothing to do. The schema public is made again, empty.
func Drop(c *pgwire.Conn, schema, tool string) error {
	found, err := Guard(c, schema, Mark{Tool: tool})
	if err != nil || found == nil {
		return err
	}
	sql := fmt.Sprintf("drop schema %s cascade", Name(schema))
	if schema == "public" {
		sql += "; create schema public"
	}
	if _, err := c.Do(sql); err != nil {
		return fmt.Errorf("drop schema %q: %w", schema, err)
	}
	return nil
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

// where names the server of a connection.
func where(c *pgwire.Conn) string {
	rows, err := ask(c, "select current_database(), coalesce(host(inet_server_addr()), ''), coalesce(inet_server_port(), 0)")
	if err != nil || len(rows) != 1 {
		return "the database"
	}
	if rows[0][1] == "" {
		return "database " + strconv.Quote(rows[0][0])
	}
	return fmt.Sprintf("database %q at %s:%s", rows[0][0], rows[0][1], cmp.Or(rows[0][2], "5432"))
}
