package postgres_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/postgres"
)

// Between two states stand the work that was done, what it left, and what was set.
func TestState(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t, "autovacuum=off")
	s.Exec("postgres", "create table t (id int primary key, filler char(100))")
	before, err := postgres.StateOf(connect(t, s.URL()))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Exec("postgres", "insert into t select (select coalesce(max(id), 0) from t) + g from generate_series(1, 1000) g")
	}
	s.Exec("postgres", "update t set filler = 'x' where id <= 1000")
	s.Exec("postgres", "alter system set work_mem = '9MB'")
	s.Exec("postgres", "alter system set primary_conninfo = 'host=192.0.2.1 password=sesame'")
	s.Exec("postgres", "alter system set restore_command = 'PGPASSWORD=sesame true'")
	s.Exec("postgres", "select pg_reload_conf(), pg_sleep(1)")
	after, err := postgres.StateOf(connect(t, s.URL()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := postgres.ReadState(text); err != nil || cmp.Diff(after, read) != "" {
		t.Errorf("%v %s", err, cmp.Diff(after, read))
	}
	d := postgres.Diff(before, after)
	if diff := cmp.Diff([]postgres.Change{{Name: "primary_conninfo", After: "set, and not shown"},
		{Name: "restore_command", After: "set, and not shown"}, {Name: "work_mem", After: "9MB"}},
		d.Settings); diff != "" {
		t.Error(diff)
	}
	if len(d.Relations) != 1 || d.Relations[0].Name != "public.t" || d.Relations[0].After < 300_000 {
		t.Errorf("%+v", d.Relations)
	}
	if diff := cmp.Diff([]postgres.Growth{{Name: "public.t", After: 1000}}, d.DeadRows); diff != "" {
		t.Error(diff)
	}
	for name, least := range map[string]float64{"database.tup_inserted": 3000, "database.tup_updated": 1000,
		"database.xact_commit": 4} {
		i := slices.IndexFunc(d.Counters, func(g postgres.Growth) bool { return g.Name == name })
		if i < 0 || d.Counters[i].After-d.Counters[i].Before < least {
			t.Errorf("%s: %+v", name, d.Counters)
		}
	}
	if d.Elapsed <= 0 || d.HitRatio < 0.5 || d.HitRatio > 1 || d.Notes != nil || d.Bytes.After <= d.Bytes.Before {
		t.Errorf("%+v", d)
	}
	if back := postgres.Diff(after, before); !strings.Contains(strings.Join(back.Notes, ";"), "the later one") {
		t.Errorf("%q", back.Notes)
	}
	// After a crash all counters of a group began anew, also those that are beyond what they were.
	after.Counters["database.tup_inserted"] = before.Counters["database.tup_inserted"] - 1
	if d := postgres.Diff(before, after); d.HitRatio != -1 || len(d.Notes) != 1 ||
		!strings.Contains(d.Notes[0], "as after a crash of the server: the counters of database are left out") ||
		slices.ContainsFunc(d.Counters, func(g postgres.Growth) bool {
			return strings.HasPrefix(g.Name, "database.")
		}) {
		t.Errorf("%+v", d)
	}
	if same := postgres.Diff(after, after); same.Counters != nil || same.HitRatio != -1 {
		t.Errorf("%+v", same)
	}
	for _, bad := range []string{"", "{}", `{"format": 9}`, "[1]"} {
		if _, err := postgres.ReadState([]byte(bad)); err == nil {
			t.Errorf("%q is a state", bad)
		}
	}
}
