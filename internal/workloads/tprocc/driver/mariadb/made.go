package mariadb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// recordTable is the table of our database that says what we made in it: for each table when the server made it, and
// its columns and indexes. Who copies or restores it has other times, and a record that is worth nothing.
const recordTable = "plimsoll_made"

// mark is the first row of the record.
type mark struct {
	Tool     string `json:"tool"`
	Scale    int    `json:"scale"` // warehouses; 0: the tables were dropped
	Complete bool   `json:"complete,omitempty"`
}

// made holds what the record says, held against what there is.
type made struct {
	mark   mark
	tables []string // ours that are there
	bad    []string // what is not as we left it, in words
	others []string // what others have in our database
}

// foreign says what is in the way.
func (d Dialect) foreign(why string, objects []string, todo string) error {
	return fmt.Errorf("database %q at %s %s %s: nothing was written or dropped; %s", d.Server.Database,
		d.Server.Config.Addr, why, strings.Join(objects, ", "), todo)
}

// tableNames are those that we make, but for the record.
func tableNames() (names []string) {
	for name := range tprocc.AllTables() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// byHand drops what we make.
func (d Dialect) byHand() string {
	names := append(tableNames(), recordTable)
	for i, name := range names {
		names[i] = d.Schema() + name
	}
	return "DROP TABLE IF EXISTS " + strings.Join(names, ", ")
}

// objects are the kinds and names of all that is in the database, with when it was made, its columns and its indexes.
const objects = `SELECT IF(table_type = 'BASE TABLE', 'table', LOWER(table_type)), table_name,
 COALESCE(create_time, ''), COALESCE((SELECT GROUP_CONCAT(column_name, ' ', column_type ORDER BY ordinal_position) FROM
 information_schema.columns c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name), ''),
 COALESCE((SELECT GROUP_CONCAT(DISTINCT index_name ORDER BY index_name) FROM information_schema.statistics s WHERE
 s.table_schema = t.table_schema AND s.table_name = t.table_name), '') FROM information_schema.tables t
 WHERE table_schema = '%[1]s'
 UNION ALL SELECT LOWER(routine_type), routine_name, '', '', '' FROM information_schema.routines
 WHERE routine_schema = '%[1]s'
 UNION ALL SELECT 'event', event_name, '', '', '' FROM information_schema.events WHERE event_schema = '%[1]s' ORDER BY 1, 2`

// procedures are the names of ours.
var procedureNames = []string{"delivery", "named", "new_order", "order_status", "payment", "stock_level"}

// look reads the record; nil where there is none and nothing else either.
func (d Dialect) look(s tprocc.Session) (*made, error) {
	rows, err := s.Rows(fmt.Sprintf("SELECT schema_comment FROM information_schema.schemata WHERE BINARY schema_name = '%s'",
		d.Server.Database))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	comment := rows[0][0]
	if err := s.Exec("SET SESSION group_concat_max_len = 1048576"); err != nil {
		return nil, err
	}
	there, err := s.Rows(fmt.Sprintf(objects, d.Server.Database))
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(there, func(row []string) bool { return row[0] == "table" && row[1] == recordTable })
	if at < 0 {
		return nil, d.unmarked(comment, there)
	}
	recorded := map[string][]string{}
	rows, err = s.Rows("SELECT kind, name, made, shape FROM " + d.Schema() + recordTable)
	if err != nil {
		return nil, err
	}
	found := &made{}
	for _, row := range rows {
		switch row[0] {
		case "mark":
			if row[2] == there[at][2] && json.Unmarshal([]byte(row[3]), &found.mark) != nil {
				found.mark = mark{}
			}
		case "table":
			recorded[row[1]] = row
		}
	}
	if found.mark.Tool != "tprocc" {
		return nil, d.foreign("has a record that is not the one that plimsoll made there, as after a restore from a dump:",
			[]string{recordTable}, "if nobody needs the tables, drop them by hand: "+d.byHand()+"; or name "+
				"another database")
	}
	for _, row := range there {
		found.hold(row, recorded)
	}
	if len(recorded) > 0 {
		found.mark.Complete = false // some are gone
	}
	return found, nil
}

// unmarked says why a database without a record is not ours; nil for an empty one.
func (d Dialect) unmarked(comment string, there [][]string) error {
	var names []string
	for _, row := range there {
		names = append(names, row[0]+" "+row[1])
	}
	old := strings.HasPrefix(comment, "made by plimsoll: ")
	switch {
	case len(names) > 0 && old:
		return d.foreign("has only a comment as its mark, as an earlier version of plimsoll wrote it, and no record of who made",
			names, "if they are of a load and nobody needs them, drop them by hand: "+d.byHand()+"; or name another database")
	case len(names) > 0:
		return d.foreign("does not carry our mark and holds", names, "name another database")
	case comment != "" && !old:
		return d.foreign("does not carry our mark, and its comment says", []string{strconv.Quote(comment)},
			"name another database")
	}
	return nil
}

// hold holds an object of the database against the record.
func (m *made) hold(row []string, recorded map[string][]string) {
	kind, name := row[0], row[1]
	columns, known := tprocc.AllTables()[name]
	switch {
	case kind == "table" && name == recordTable, kind == "procedure" && slices.Contains(procedureNames, name):
		return
	case kind != "table" || !known:
		m.others = append(m.others, kind+" "+name)
		return
	}
	was, listed := recorded[name]
	var names []string
	for c := range strings.SplitSeq(row[3], ",") {
		c, _, _ = strings.Cut(c, " ")
		if strings.Trim(c, "0123456789)") != "" { // else the rest of a type, as decimal(5,2)
			names = append(names, c)
		}
	}
	what := ""
	switch {
	case !listed && (m.mark.Complete || m.mark.Scale == 0):
		what = "was not made by plimsoll"
	case !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(columns))):
		what = "has other columns (" + strings.Join(names, ", ") + ")"
	case listed && was[3] != row[3]+"; "+row[4]:
		what = "has other columns or indexes than plimsoll made (" + row[3] + "; " + row[4] + ")"
	case listed && was[2] != row[2]:
		what = "is another one than plimsoll made"
	}
	if what != "" {
		m.bad = append(m.bad, "table "+name+" "+what)
		return
	}
	m.tables = append(m.tables, name)
	delete(recorded, name)
}

// Find implements tprocc.Dialect.
func (d Dialect) Find(s tprocc.Session) (warehouses int, err error) {
	found, err := d.look(s)
	switch {
	case err != nil || found == nil:
		return 0, err
	case len(found.bad) > 0:
		return 0, d.foreign("is not as plimsoll left it:", found.bad, "drop by hand what nobody needs, or name "+
			"another database")
	case !slices.Contains(found.tables, "load_state"):
		return 0, nil // begun, and without a table yet
	}
	return found.mark.Scale, nil
}

// Create implements tprocc.Dialect. The tables are made by their script.
func (d Dialect) Create(s tprocc.Session, warehouses int) error {
	for _, sql := range []string{fmt.Sprintf("CREATE DATABASE IF NOT EXISTS `%s`", d.Server.Database),
		"CREATE TABLE IF NOT EXISTS " + d.Schema() + recordTable + " (kind VARCHAR(10), name VARCHAR(64), made " +
			"VARCHAR(40), " +
			"shape TEXT, PRIMARY KEY (kind, name)) ENGINE=InnoDB"} {
		if err := s.Exec(sql); err != nil {
			return err
		}
	}
	return s.Exec(d.marking(mark{"tprocc", warehouses, false}))
}

// marking writes the mark.
func (d Dialect) marking(m mark) string {
	text, err := json.Marshal(m)
	if err != nil { // of a text, a number and a bool: never
		return err.Error()
	}
	return fmt.Sprintf("REPLACE INTO %s%s SELECT 'mark', 'tprocc', create_time, '%s' FROM information_schema.tables WHERE "+
		"table_schema = '%s' AND table_name = '%s'", d.Schema(), recordTable, text, d.Server.Database, recordTable)
}

// Finish implements tprocc.Dialect.
func (d Dialect) Finish(s tprocc.Session, warehouses int) error {
	there, err := s.Rows(fmt.Sprintf(objects, d.Server.Database))
	if err != nil {
		return err
	}
	statements := []string{"START TRANSACTION", "DELETE FROM " + d.Schema() + recordTable + " WHERE kind = 'table'",
		d.marking(mark{"tprocc", warehouses, true})}
	for _, row := range there {
		if _, known := tprocc.AllTables()[row[1]]; known && row[0] == "table" {
			shape := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(row[3] + "; " + row[4])
			statements = append(statements, fmt.Sprintf("INSERT INTO %s%s VALUES ('table', '%s', '%s', "+
				"'%s')", d.Schema(),
				recordTable, row[1], row[2], shape))
		}
	}
	return d.together(s, append(statements, "COMMIT"))
}

// together executes statements that are one transaction.
func (d Dialect) together(s tprocc.Session, statements []string) error {
	for _, sql := range statements {
		if err := s.Exec(sql); err != nil {
			_ = s.Exec("ROLLBACK") // a connection that was lost has rolled back
			return err
		}
	}
	return nil
}

// users are what others made of our tables: foreign keys either way, triggers, and what names one of them in its text,
// views, routines, events and triggers of other databases. A view whose text this user may not see could be one.
const users = `SELECT CONCAT('foreign key ', constraint_name, ' of table ', table_schema, '.', table_name) FROM
 information_schema.key_column_usage WHERE referenced_table_schema IS NOT NULL AND (referenced_table_schema = '%[1]s' OR
 table_schema = '%[1]s')
 UNION SELECT CONCAT('trigger ', trigger_name, ' of table ', event_object_schema, '.', event_object_table) FROM
 information_schema.triggers WHERE event_object_schema = '%[1]s' OR action_statement REGEXP '%[2]s'
 UNION SELECT CONCAT('view ', table_schema, '.', table_name, IF(view_definition = '',
 ', whose text this user may not see', '')) FROM information_schema.views WHERE table_schema NOT IN
 ('sys', 'mysql', 'information_schema', 'performance_schema') AND (view_definition = '' OR view_definition REGEXP '%[2]s')
 UNION SELECT CONCAT(LOWER(routine_type), ' ', routine_schema, '.', routine_name) FROM information_schema.routines WHERE
 routine_schema <> '%[1]s' AND routine_definition REGEXP '%[2]s'
 UNION SELECT CONCAT('event ', event_schema, '.', event_name) FROM information_schema.events WHERE
 event_schema <> '%[1]s' AND event_definition REGEXP '%[2]s' ORDER BY 1`

// Drop implements tprocc.Dialect. The database stays, with what may be done there; the procedures stay for the next
// load to replace.
func (d Dialect) Drop(s tprocc.Session) error {
	if _, err := d.Find(s); err != nil {
		return err
	}
	found, err := d.look(s)
	if err != nil || found == nil {
		return err
	}
	named := fmt.Sprintf("(^|[^a-z0-9_])`?%s`?[[:space:]]*[.][[:space:]]*`?(%s)($|[^a-z0-9_])", d.Server.Database,
		strings.Join(tableNames(), "|"))
	rows, err := s.Rows(fmt.Sprintf(users, d.Server.Database, named))
	if err != nil {
		return err
	}
	for _, row := range rows {
		found.others = append(found.others, row[0])
	}
	if len(found.others) > 0 {
		return d.foreign("has tables of tprocc, and others made there or of them:", found.others,
			"drop those first if nobody needs them, or name another database")
	}
	var names []string
	for _, name := range found.tables {
		names = append(names, d.Schema()+name)
	}
	if len(names) > 0 {
		if err := s.Exec("DROP TABLE " + strings.Join(names, ", ") + " RESTRICT"); err != nil {
			return err
		}
	}
	return d.together(s, []string{"START TRANSACTION", "DELETE FROM " + d.Schema() + recordTable + " WHERE kind = " +
		"'table'",
		d.marking(mark{Tool: "tprocc"}), "COMMIT"})
}
