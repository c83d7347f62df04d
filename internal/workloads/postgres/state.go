package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/untyped"
)

// State holds what a server says of itself and of one database at a moment: configuration, sizes, dead rows and
// counters. Taking it writes nothing.
type State struct {
	Format    int                `json:"format"` // StateFormat
	Time      time.Time          `json:"time"`   // of the server's clock
	Version   string             `json:"version"`
	Database  string             `json:"database"`
	Bytes     int64              `json:"bytes"`     // of the database
	Settings  map[string]string  `json:"settings"`  // those that are not as the program has them, with their units
	Relations []Relation         `json:"relations"` // the largest ones that are no catalogs
	Counters  map[string]float64 `json:"counters"`  // of the database, and of the server since its statistics began
	Levels    map[string]float64 `json:"levels"`    // that go up and down
	// Resets says when each group of counters began.
	Resets map[string]string `json:"resets,omitempty"`

	// Group is the control group of CPU time that the server is in, where it runs on this machine.
	Group string `json:"control_group,omitempty"`
}

// StateFormat is the version of the form of State as JSON.
const StateFormat = 1

// Relation is a table with its indexes and what is too long for it.
type Relation struct {
	Name     string  `json:"name"` // schema.table
	Bytes    int64   `json:"bytes"`
	Indexes  int64   `json:"index_bytes"` // among Bytes
	LiveRows float64 `json:"live_rows"`   // as the server estimates them
	DeadRows float64 `json:"dead_rows"`   // versions that vacuum has still to remove: bloat in the making
	Scans    float64 `json:"scans"`
	Mod      float64 `json:"changes"`
}

// DeadShare is the share of versions of rows that are dead, 0 to 1.
func (r Relation) DeadShare() float64 {
	if r.LiveRows+r.DeadRows <= 0 {
		return 0
	}
	return r.DeadRows / (r.LiveRows + r.DeadRows)
}

// HitRatio is the share of blocks found in the server's own cache, of all that were asked for; false before the first.
func (s State) HitRatio() (float64, bool) {
	return ratio(s.Counters["database.blks_hit"], s.Counters["database.blks_read"])
}

func ratio(hit, read float64) (float64, bool) {
	if !(hit >= 0 && read >= 0 && hit+read > 0) {
		return 0, false
	}
	return hit / (hit + read), true
}

// counted are the views whose numbers are counters, by the word that they begin with here. Which columns there are
// depends on the release: all numbers are taken.
var counted = []struct{ word, view, where string }{
	{"database", "pg_stat_database", "datname = current_database()"},
	{"background_writer", "pg_stat_bgwriter", "true"},
	{"checkpointer", "pg_stat_checkpointer", "true"}, // 17 and later; in background_writer before
	{"wal", "pg_stat_wal", "true"},                   // 14 and later
}

// notCounters are numbers in those views that are none.
var notCounters = map[string]bool{"numbackends": true, "datid": true}

// Ask asks a server at an address that has no password; without a source of one it is looked up as psql does.
func Ask(ctx context.Context, address string, password secret.Source) (State, error) {
	server, err := pgwire.ParseServer(address)
	if theirs := (*pgconn.ParseConfigError)(nil); errors.As(err, &theirs) && theirs.Unwrap() != nil {
		err = theirs.Unwrap()
	}
	if err != nil {
		return State{}, fmt.Errorf("the address of the server cannot be used: %w", err)
	}
	if password != (secret.Source{}) {
		value, err := password.Read(ctx)
		if err != nil {
			return State{}, err
		}
		server = server.WithPassword(value.Reveal())
	}
	conn, err := server.Connect(ctx)
	if err != nil {
		return State{}, err
	}
	defer conn.Close() //nolint:errcheck // everything was asked
	defer context.AfterFunc(ctx, conn.Stop)()
	s, err := StateOf(conn)
	if err != nil {
		return s, err
	}
	rows, err := ask(conn, "select pg_backend_pid()")
	if err == nil && len(rows) == 1 {
		s.Group = groupOf(os.DirFS("/proc"), rows[0][0], s.Database)
	}
	return s, err
}

// groupOf is the control group of CPU time that a server's process is in; "" where that process is not one of this
// machine that works for such a database.
func groupOf(proc fs.FS, pid, database string) (group string) {
	title, err := fs.ReadFile(proc, pid+"/cmdline")
	if err != nil || !strings.HasPrefix(string(title), "postgres: ") ||
		!strings.Contains(string(title), " "+database+" ") {
		return ""
	}
	data, _ := fs.ReadFile(proc, pid+"/cgroup") // without it there are no groups
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		if slices.Contains(strings.Split(f[1], ","), "cpu") {
			return f[2]
		}
		if f[1] == "" {
			group = f[2]
		}
	}
	return group
}

// StateOf asks a server. Its connection is set to read only, and no statement takes longer than 30 s.
func StateOf(c *pgwire.Conn) (State, error) {
	s := State{Format: StateFormat, Settings: map[string]string{}, Counters: map[string]float64{},
		Levels: map[string]float64{}, Resets: map[string]string{}}
	fail := func(err error) (State, error) { return State{}, fmt.Errorf("state of the server: %w", err) }
	if _, err := c.Do("set default_transaction_read_only = on; set statement_timeout = '30s'"); err != nil {
		return fail(err)
	}
	rows, err := ask(c, `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), `+
		"current_setting('server_version'), current_database(), pg_database_size(current_database())")
	if err != nil {
		return fail(err)
	}
	if len(rows) != 1 {
		return fail(fmt.Errorf("%d rows about the database", len(rows)))
	}
	s.Version, s.Database = rows[0][1], rows[0][2]
	if s.Time, err = time.Parse(time.RFC3339, rows[0][0]); err != nil {
		return fail(err)
	}
	if _, err := fmt.Sscan(rows[0][3], &s.Bytes); err != nil {
		return fail(err)
	}
	// What a session says of itself, and where files lie, is no configuration to compare. Commands and addresses of
	// other servers may hold passwords: of those it is told that they are set.
	rows, err = ask(c, "select name, case when name ~ '(_command|conninfo)$' and current_setting(name) <> '' "+
		"then 'set, and not shown' else current_setting(name) end from pg_settings where source not in ('default', "+
		"'session', 'client', 'override') and name !~ '(_file|_directory|directories)$' order by 1")
	if err != nil {
		return fail(err)
	}
	for _, row := range rows {
		s.Settings[row[0]] = row[1]
	}
	if err := s.relations(c); err != nil {
		return fail(err)
	}
	for _, v := range counted {
		if err := s.count(c, v.word, v.view, v.where); err != nil {
			return fail(err)
		}
	}
	rows, err = ask(c, "select coalesce(state, 'none'), count(*) from pg_stat_activity where backend_type = "+
		"'client backend' and pid <> pg_backend_pid() group by 1")
	if err != nil {
		return fail(err)
	}
	for _, row := range rows {
		var n float64
		if _, err := fmt.Sscan(row[1], &n); err != nil {
			return fail(err)
		}
		s.Levels["connections."+strings.ReplaceAll(row[0], " ", "_")] = n
	}
	return s, nil
}

func (s *State) relations(c *pgwire.Conn) error {
	rows, err := ask(c, `select json_build_object('name', schemaname || '.' || relname,
 'bytes', pg_total_relation_size(relid), 'index_bytes', pg_indexes_size(relid), 'live_rows', n_live_tup,
 'dead_rows', n_dead_tup, 'scans', seq_scan + coalesce(idx_scan, 0), 'changes', n_tup_ins + n_tup_upd + n_tup_del)
 from pg_stat_user_tables order by pg_total_relation_size(relid) desc, relid limit 50`)
	if err != nil {
		return err
	}
	for _, row := range rows {
		var r Relation
		if err := json.Unmarshal([]byte(row[0]), &r); err != nil {
			return err
		}
		s.Relations = append(s.Relations, r)
	}
	return nil
}

// count takes the numbers of a view, where the server has it.
func (s *State) count(c *pgwire.Conn, word, view, where string) error {
	there, err := ask(c, "select to_regclass('pg_catalog."+view+"') is not null")
	if err != nil || len(there) != 1 || there[0][0] != "t" {
		return err
	}
	rows, err := ask(c, fmt.Sprintf("select row_to_json(v) from pg_catalog.%s v where %s", view, where))
	if err != nil || len(rows) != 1 {
		return err
	}
	var columns untyped.Object
	if err := json.Unmarshal([]byte(rows[0][0]), &columns); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		switch value := columns[name].(type) {
		case float64:
			if notCounters[name] {
				continue
			}
			s.Counters[word+"."+name] = value
		case string:
			if name == "stats_reset" {
				s.Resets[word] = value
			}
		}
	}
	return nil
}

// ReadState reads a State as JSON, and refuses what is none.
func ReadState(data []byte) (s State, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("no state of a server: %w", err)
	}
	if s.Format != StateFormat {
		return State{}, fmt.Errorf("no state of a server: its format is %d, and this program reads %d", s.Format, StateFormat)
	}
	return s, nil
}

// Change is something that is not the same in two states.
type Change struct {
	Name   string `json:"name"`
	Before string `json:"before"` // "" for what was not there
	After  string `json:"after"`
}

// Growth is a number before and after.
type Growth struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Difference holds what happened between two states of a server.
type Difference struct {
	Elapsed   time.Duration `json:"elapsed_ns"`
	Settings  []Change      `json:"settings"`
	Bytes     Growth        `json:"bytes"`
	Relations []Growth      `json:"relations"` // bytes of those that have not as many as before
	DeadRows  []Growth      `json:"dead_rows"`
	Counters  []Growth      `json:"counters"` // those that have moved
	// HitRatio is that of the blocks asked for in between; -1 for none.
	HitRatio float64  `json:"hit_ratio"`
	Notes    []string `json:"notes,omitempty"` // what makes the numbers mean something else
}

// Diff compares two states, the earlier one first.
func Diff(a, b State) Difference {
	d := Difference{Elapsed: b.Time.Sub(a.Time), Bytes: Growth{a.Database, float64(a.Bytes), float64(b.Bytes)},
		HitRatio: -1}
	note := func(format string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, args...)) }
	if a.Database != b.Database {
		note("the states are of different databases, %q and %q", a.Database, b.Database)
	}
	if a.Version != b.Version {
		note("the server's version was %s and is %s", a.Version, b.Version)
	}
	if d.Elapsed < 0 {
		note("the first state is the later one")
	}
	for _, name := range slices.Sorted(maps.Keys(union(a.Settings, b.Settings))) {
		if a.Settings[name] != b.Settings[name] {
			d.Settings = append(d.Settings, Change{name, a.Settings[name], b.Settings[name]})
		}
	}
	before := map[string]Relation{}
	for _, r := range a.Relations {
		before[r.Name] = r
	}
	for _, r := range b.Relations {
		was := before[r.Name]
		if was.Bytes != r.Bytes {
			d.Relations = append(d.Relations, Growth{r.Name, float64(was.Bytes), float64(r.Bytes)})
		}
		if was.DeadRows != r.DeadRows {
			d.DeadRows = append(d.DeadRows, Growth{r.Name, was.DeadRows, r.DeadRows})
		}
		delete(before, r.Name)
	}
	for _, r := range a.Relations {
		if _, gone := before[r.Name]; gone {
			d.Relations = append(d.Relations, Growth{r.Name, float64(r.Bytes), 0})
		}
	}
	reset := map[string]bool{}
	for _, word := range slices.Sorted(maps.Keys(union(a.Resets, b.Resets))) {
		if a.Resets[word] != b.Resets[word] {
			reset[word] = true
			note("the counters of %s were reset in between: they are left out", word)
		}
	}
	names := slices.Sorted(maps.Keys(b.Counters))
	for _, name := range names {
		word, _, _ := strings.Cut(name, ".")
		if was, now := a.Counters[name], b.Counters[name]; now < was && !reset[word] {
			reset[word] = true
			note("%s went back from %g to %g, as after a crash of the server: the counters of %s are left out", name, was, now,
				word)
		}
	}
	for _, name := range names {
		word, _, _ := strings.Cut(name, ".")
		was, there := a.Counters[name]
		if now := b.Counters[name]; there && !reset[word] && was != now {
			d.Counters = append(d.Counters, Growth{name, was, now})
		}
	}
	if !reset["database"] {
		hit := b.Counters["database.blks_hit"] - a.Counters["database.blks_hit"]
		if r, ok := ratio(hit, b.Counters["database.blks_read"]-a.Counters["database.blks_read"]); ok {
			d.HitRatio = r
		}
	}
	return d
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return all
}

// CounterUnit returns what a counter of State counts, by PostgreSQL's own documentation of its views; "" where that is
// in the name.
func CounterUnit(name string) string {
	_, column, _ := strings.Cut(name, ".")
	switch {
	case strings.HasSuffix(column, "_bytes"):
		return "bytes"
	case strings.HasSuffix(column, "_time"):
		return "ms"
	case strings.HasPrefix(column, "blks_"), strings.HasPrefix(column, "buffers_"):
		return "blocks"
	case strings.HasPrefix(column, "tup_"):
		return "rows"
	case strings.HasPrefix(column, "xact_"):
		return "transactions"
	case strings.HasPrefix(column, "sessions"):
		return "sessions"
	case strings.HasPrefix(column, "checkpoints_"), strings.HasPrefix(column, "num_"):
		return "checkpoints"
	}
	return map[string]string{"wal_records": "records", "wal_fpi": "pages", "wal_write": "writes", "wal_sync": "syncs",
		"wal_buffers_full": "times", "maxwritten_clean": "times", "temp_files": "files", "deadlocks": "deadlocks",
		"conflicts": "conflicts", "restartpoints_done": "restartpoints", "restartpoints_req": "restartpoints",
		"restartpoints_timed": "restartpoints", "slru_written": "blocks"}[column]
}
