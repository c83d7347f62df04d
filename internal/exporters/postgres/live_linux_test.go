package postgres_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/exporters/postgres"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/testkit/exportertest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// realServer is a collector of a real server; other words of the address may be given.
func realServer(t testing.TB, s *postgrestest.Server, words string) *postgres.Collector {
	t.Helper()
	t.Setenv("PLIMSOLL_TEST_PASSWORD", postgrestest.Password)
	source, err := secret.ParseSource("env:PLIMSOLL_TEST_PASSWORD")
	if err != nil {
		t.Fatal(err)
	}
	c, err := postgres.New(postgres.Server{URL: fmt.Sprintf("host=127.0.0.1 port=%d dbname=postgres user=%s %s", s.Port,
		postgrestest.User, words), Password: source})
	if err != nil {
		t.Fatal(err)
	}
	c.Patient()
	t.Cleanup(c.Close)
	return c
}

// A real server of whatever version is installed: it has the metrics that testdata/metrics.golden says its version has,
// a session that waits for a lock is seen, and nothing can be written.
func TestRealServer(t *testing.T) {
	s := postgrestest.Start(t)
	exportertest.Run(t, exportertest.Subject{
		New: func(t *testing.T) exporter.Collector { return realServer(t, s, "") }, Given: postgres.Given,
	})
	c := realServer(t, s, "")
	got, err := postgres.Page(t, c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/metrics.golden")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); slices.Contains(f[1:], c.Version()) {
			want = append(want, f[0])
		}
	}
	want = slices.DeleteFunc(want, func(n string) bool { // nobody waits, and there are no standbys
		return n == "pg_stat_activity_waiting_backends" || strings.HasPrefix(n, "pg_replication_slots_") ||
			strings.HasPrefix(n, "pg_stat_replication_")
	})
	if d := cmp.Diff(want, postgres.Names(got)); d != "" {
		t.Errorf("metrics of version %s: %s", c.Version(), d)
	}
	if err := c.Ask(t.Context(), "CREATE TABLE t (a int)"); err == nil ||
		!strings.Contains(err.Error(), "read-only") {
		t.Errorf("a table could be made: %v", err)
	}

	s.Exec("postgres", "CREATE TABLE locked (a int)")
	for i, sql := range []string{"LOCK TABLE locked; SELECT pg_sleep(600)", "LOCK TABLE locked"} {
		if i == 1 {
			until(t, c, `pg_locks_count{datname="postgres",mode="accessexclusivelock"} 1`)
		}
		cmd := exec.Command(filepath.Join(s.Bin, "psql"), "-h", s.Sockets, "-p", fmt.Sprint(s.Port), "-U",
			postgrestest.User, "-d", "postgres", "-c", "BEGIN", "-c", sql)
		cmd.Env = append(os.Environ(), "PGPASSWORD="+postgrestest.Password)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
	}
	until(t, c, `pg_stat_activity_active_backends{wait_event_type="Lock"} 1`)
	until(t, c, `pg_stat_activity_waiting_backends{wait_event="relation",wait_event_type="Lock"} 1`)
	until(t, c, `pg_stat_activity_active_backends{wait_event_type="Timeout"} 1`)

	s.Restart()
	if got, err := postgres.Page(t, c); err == nil || !strings.Contains(got, "\npg_up 0\n") {
		t.Errorf("after a restart: %v, %s", err, got)
	}
	if got, err := postgres.Page(t, c); err != nil || !strings.Contains(got, "\npg_up 1\n") {
		t.Errorf("the next page: %v, %s", err, got)
	}
}

// until waits for a line of the page.
func until(t *testing.T, c *postgres.Collector, line string) {
	t.Helper()
	got := ""
	for range 300 {
		var err error
		if got, err = postgres.Page(t, c); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got, "\n"+line+"\n") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no line %s in\n%s", line, got)
}

// Who cannot connect is told why, without the password; a role that may see little is served what it may see.
func TestAccess(t *testing.T) {
	s := postgrestest.Start(t)
	c := realServer(t, s, "")
	t.Setenv("PLIMSOLL_TEST_PASSWORD", "wrong horse")
	got, err := postgres.Page(t, c)
	if err == nil || !strings.Contains(err.Error(), "password authentication failed") ||
		strings.Contains(err.Error(), "wrong horse") || !strings.Contains(got, "pg_up 0\n") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, sql := range []string{"CREATE ROLE little LOGIN PASSWORD '" + postgrestest.Password + "'",
		"CREATE DATABASE closed", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC"} {
		s.Exec("postgres", sql)
	}
	got, err = postgres.Page(t, realServer(t, s, "user=little"))
	if err != nil || !strings.Contains(got, "\npg_reads_all_stats 0\n") ||
		strings.Contains(got, `pg_database_size_bytes{datname="closed"}`) ||
		!strings.Contains(got, `pg_database_size_bytes{datname="postgres"}`) {
		t.Errorf("%v\n%s", err, got)
	}
	got, err = postgres.Page(t, realServer(t, s, "dbname=nowhere"))
	if err == nil || !strings.Contains(err.Error(), `database "nowhere" does not exist`) {
		t.Errorf("%v\n%s", err, got)
	}
}

// What one page costs, with a connection that is there.
func BenchmarkPage(b *testing.B) {
	s := postgrestest.Start(b)
	x, err := exporter.New("test", realServer(b, s, ""))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		body, _, err := x.Get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		_ = body.Close()
	}
}

// The statements that took the most time are told of where the extension is, by role, and without what may be a
// password.
func TestStatements(t *testing.T) {
	s := postgrestest.Start(t, "shared_preload_libraries=pg_stat_statements")
	available := s.Exec("postgres", "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'")
	needs.That(t, available == "1", "pg_stat_statements", "apt-get install postgresql-contrib")
	before, err := postgres.Page(t, realServer(t, s, ""))
	if err != nil || strings.Contains(before, "pg_stat_statements_calls_total{") {
		t.Fatalf("before the extension was made: %v, %s", err, before)
	}
	s.Exec("postgres", "CREATE EXTENSION pg_stat_statements; CREATE TABLE a (b text)")
	s.Exec("postgres", "CREATE ROLE someone PASSWORD 'in the open'")
	for range 3 {
		s.Exec("postgres", "INSERT  INTO a SELECT 'a constant' FROM generate_series(1, 1000)")
	}
	got, err := postgres.Page(t, realServer(t, s, ""))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^pg_stat_statements_(calls|rows)_total\{.*INSERT.*$`).FindAllString(got, -1)
	want := []string{
		`pg_stat_statements_calls_total{datname="postgres",query="INSERT INTO a SELECT $1 FROM generate_series($2, $3)",` +
			`queryid="",user="app"} 3`,
		`pg_stat_statements_rows_total{datname="postgres",query="INSERT INTO a SELECT $1 FROM generate_series($2, $3)",` +
			`queryid="",user="app"} 3000`,
	}
	for i := range lines {
		lines[i] = regexp.MustCompile(`queryid="-?\d+"`).ReplaceAllString(lines[i], `queryid=""`)
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	if strings.Contains(got, "in the open") || strings.Contains(got, "a constant") || !strings.Contains(got, `query="CREATE"`) {
		t.Errorf("texts of statements: %s", got)
	}
}
