package tproch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/postgres"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func open(t *testing.T, server *postgrestest.Server) *Store {
	t.Helper()
	s, err := Open(t.Context(), server.SocketURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !s.conn.IsClosed() {
			t.Error(err)
		}
	})
	return s
}

func loaded(t *testing.T, server *postgrestest.Server, scale Scale) *Store {
	t.Helper()
	s := open(t, server)
	if err := s.Load(t.Context(), generator(scale), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) counts(t *testing.T) (counts [tables]string) {
	t.Helper()
	for table := range tables {
		rows, err := s.rows(t.Context(), "select count(*) from "+table.String())
		if err != nil {
			t.Fatal(err)
		}
		counts[table] = rows[0][0]
	}
	return counts
}

// An interrupted load goes on where it was; nothing is there twice. Then it is dropped, and nothing of it is left.
func TestLoadResumesAndDrops(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := open(t, server)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	portions := 0
	err := s.Load(ctx, generator(0.01), func(p Progress) {
		if portions++; p.Rows > p.Total/3 {
			cancel(enough)
		}
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, server)
	if d := cmp.Diff(State{Scale: 0.01}, s.State()); d != "" {
		t.Fatal(d)
	}
	if err := s.Load(t.Context(), generator(0.02), nil); err == nil ||
		!strings.Contains(err.Error(), "holds scale 0.01, not 0.02; with reload: true it is dropped") {
		t.Errorf("%v", err)
	}
	var first Progress
	if err := s.Load(t.Context(), generator(0.01), func(p Progress) {
		if first.Total == 0 {
			first = p
		}
	}); err != nil {
		t.Fatal(err)
	}
	if first.Rows <= first.Total/3 {
		t.Errorf("it began anew: %+v", first)
	}
	want := [tables]string{"5", "25", "100", "1500", "2000", "8000", "15000", "60175"}
	if d := cmp.Diff(want, s.counts(t)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(State{Scale: 0.01, Loaded: true}, s.State()); d != "" {
		t.Error(d)
	}
	// One that works with our tables keeps them, and what others made in the schema stays.
	mustExec(t, s, "create view public.mine as select * from region", "create table mine (a int)")
	if err := s.Drop(t.Context()); err == nil || !strings.Contains(err.Error(), "depends on them: view public.mine:") {
		t.Errorf("%v", err)
	}
	mustExec(t, s, "drop view public.mine")
	if err := s.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := s.rows(t.Context(), "select relname from pg_class where relkind = 'r' and relnamespace = '"+Schema+
		"'::regnamespace order by 1")
	if d := cmp.Diff([][]string{{"mine"}, {postgres.RecordTable}}, rows); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
	if err := s.Load(t.Context(), generator(0.01), nil); err != nil {
		t.Error(err)
	}
}

// A load that fills its disk says so, and goes on with the portions that are missing when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := devicetest.Mounted(t, "ext4", 96<<20)
	server := postgrestest.Start(t)
	server.OnDisk("small", disk)
	giveBack := devicetest.Fill(t, disk, 12<<20)
	s, err := Open(t.Context(), strings.Replace(server.SocketURL(), "/postgres?", "/small?", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Load(t.Context(), generator(0.01), nil)
	const want = "make room on the server's disk, then run again: portions that are loaded stay"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "53100") {
		t.Fatalf("%v, want %q", err, want)
	}
	giveBack()
	if err := s.Load(t.Context(), generator(0.01), nil); err != nil {
		t.Fatal(err)
	}
	if got := s.counts(t); got[Line] != "60175" {
		t.Error(got)
	}
}

func mustExec(t *testing.T, s *Store, statements ...string) {
	t.Helper()
	if err := exec(t.Context(), s.conn, statements...); err != nil {
		t.Fatal(err)
	}
}

// What does not carry our mark is not ours, and what another process works on is not to be disturbed.
func TestRefusesForeign(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := open(t, server)
	if _, err := Open(t.Context(), server.SocketURL()); err == nil ||
		!strings.Contains(err.Error(), "another plimsoll works on its schema") {
		t.Errorf("%v", err)
	}
	for sql, want := range map[string]string{
		"comment on schema " + Schema + " is 'of mine'":                                       "holds table region",
		"comment on schema " + Schema + ` is 'made by plimsoll: {"tool":"tproch","scale":1}'`: "drop them by hand: DROP TABLE",
	} {
		mustExec(t, s, "create schema "+Schema, "create table region (mine int)", sql)
		if err := s.begin(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", sql, err)
		}
		mustExec(t, s, "drop schema "+Schema+" cascade")
	}
	wrong := strings.Replace(server.SocketURL(), "app:", "app:no", 1)
	if _, err := Open(t.Context(), wrong); err == nil || strings.Contains(err.Error(), postgrestest.Password) {
		t.Errorf("%v", err)
	}
}

// The rows of query 1 at scale 0.01 are published as well, in xtdb/xtdb's tests.
func TestQueriesAndRefreshes(t *testing.T) {
	t.Parallel()
	s := loaded(t, postgrestest.Start(t), 0.01)
	sql, err := ValidationQuery(1, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.rows(t.Context(), sql)
	if err != nil || len(rows) != 4 {
		t.Fatal(rows, err)
	}
	if d := cmp.Diff("A|F|380456.00|532348211.65|505822441.49|526165934.00|25.58|35785.71|0.05|14876", plain(rows[0])); d != "" {
		t.Error(d)
	}
	if _, err := s.CheckAnswers(t.Context(), nil); !errors.Is(err, ErrNoAnswers) {
		t.Error(err)
	}
	before := s.counts(t)
	var said strings.Builder
	r, err := NewRun(s, 2, generator(0.01), 5, &said)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Do(t.Context()); err != nil || said.Len() > 0 {
		t.Fatal(err, said.String())
	}
	for i := range r.times {
		want := uint64(1)
		if i >= operations {
			want = 2 // streams
		}
		if n := r.times[i].Count(); n != want {
			t.Errorf("%s: %d", OperationNames()[i], n)
		}
	}
	if f := r.figures; !(f.GeometricMean > 0 && f.Power > 0 && f.Throughput > 0) || f.Unanswered != 0 {
		t.Errorf("%+v", f)
	}
	after := s.counts(t)
	if before[Order] != after[Order] || before[Line] == after[Line] {
		t.Errorf("%v, then %v", before, after)
	}
	// Every line has its order, every order its lines.
	orphans, err := s.rows(t.Context(), "select count(*) from lineitem full join orders on l_orderkey = o_orderkey "+
		"where l_orderkey is null or o_orderkey is null")
	if err != nil || orphans[0][0] != "0" {
		t.Errorf("%v %v", orphans, err)
	}
	if err := s.begin(t.Context()); err != nil || s.State().Refreshes != 3 {
		t.Errorf("%+v %v", s.State(), err)
	}
	mustExec(t, s, fmt.Sprintf("insert into refreshed values (%d)", Refreshes))
	if err := s.begin(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := NewRun(s, 0, generator(0.01), 5, &said); err == nil || !strings.Contains(err.Error(), "load it anew") {
		t.Errorf("%v", err)
	}
}

// Plans are those of the last time until something makes the server think again.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := loaded(t, postgrestest.Start(t), 0.01)
	changed := func() (numbers []int) {
		plans, err := s.Plans(t.Context())
		if err != nil || len(plans) != Queries {
			t.Fatal(err)
		}
		for _, p := range plans {
			if p.Text == "" || strings.Contains(p.Text, "cost=") {
				t.Errorf("%+v", p)
			}
			if p.Changed {
				numbers = append(numbers, p.Query)
			}
		}
		return numbers
	}
	if got := changed(); got != nil {
		t.Errorf("at the first time %v have changed", got)
	}
	if got := changed(); got != nil {
		t.Errorf("%v have changed", got)
	}
	mustExec(t, s, "set enable_hashjoin = off")
	if got := changed(); len(got) < 5 {
		t.Errorf("without hash joins only %v have changed", got)
	}
}

// A server that goes away, and errors of queries, are counted, and what they took with them is not made up.
func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := loaded(t, server, 0.01)
	var said strings.Builder
	r, err := NewRun(s, 1, nil, 5, &said)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, "alter table supplier rename to gone")
	if err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.errors[otherError] < 10 || r.figures.Unanswered != int(r.errors[otherError]) || !math.IsNaN(r.figures.Power) ||
		!math.IsNaN(r.figures.Throughput) || !strings.Contains(said.String(), `"supplier" does not exist`) {
		t.Errorf("%v %+v %s", r.errors, r.figures, said.String())
	}
	mustExec(t, s, "alter table gone rename to supplier", "alter role app set statement_timeout = '1ms'")
	if r, err = NewRun(s, 0, nil, 5, &said); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(t.Context()); err != nil || r.errors[cancelled] == 0 {
		t.Errorf("%v %v", r.errors, err)
	}
	mustExec(t, s, "alter role app reset statement_timeout")
	if r, err = NewRun(s, 0, nil, 5, &said); err != nil {
		t.Fatal(err)
	}
	c := &client{run: r}
	sleep := func(seconds string) (ok bool) {
		_, ok = c.do(t.Context(), 0, func(ctx context.Context, conn *pgconn.PgConn) error {
			return exec(ctx, conn, "select pg_sleep("+seconds+")")
		})
		return ok
	}
	if !sleep("0") {
		t.Fatal("it does not even sleep")
	}
	server.Restart()
	if sleep("0") {
		t.Error("the connection was not lost")
	}
	if !sleep("0") {
		t.Error("it did not connect again")
	}
	c.close(t.Context())
	if d := cmp.Diff([classes]uint64{lost: 1}, r.errors); d != "" {
		t.Error(d)
	}
}

// A refresh whose rows did not come in removes none, and of a server that does not come back each client tells once.
func TestRefreshesThatFail(t *testing.T) {
	server := postgrestest.Start(t)
	s := loaded(t, server, 0.01)
	var said strings.Builder
	r, err := NewRun(s, 0, generator(0.01), 5, &said)
	if err != nil {
		t.Fatal(err)
	}
	before := s.counts(t)
	mustExec(t, s, "insert into refreshed values (1)") // which the run wants to write, too
	if err := r.Do(t.Context()); err != nil || r.errors[otherError] != 1 || r.figures.Unanswered != 2 {
		t.Errorf("%v %v %+v", err, r.errors, r.figures)
	}
	if d := cmp.Diff(before, s.counts(t)); d != "" {
		t.Error(d)
	}
	if r, err = NewRun(s, 3, generator(0.01), 5, &said); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	defer func(was time.Duration) { reconnect = was }(reconnect)
	reconnect = 500 * time.Millisecond
	if err := r.Do(t.Context()); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([classes]uint64{refused: 5}, r.errors); d != "" {
		t.Errorf("of the power run, 3 streams and their refreshes: %s", d)
	}
}

// A load whose answers are wrong fails, the next time as well.
func TestLoadWithWrongAnswers(t *testing.T) {
	server := postgrestest.Start(t)
	s := loaded(t, server, 0.01)
	s.state = State{Scale: 1} // which those data are not, whatever is said here
	mustExec(t, s, "update plimsoll_made set shape = '"+s.state.mark().String()+"' where kind = 'mark'",
		"create table loaded (portion text primary key)")
	for _, source := range sources {
		for first := int64(0); first < Scale(1).Rows(source.table); first += source.portion {
			mustExec(t, s, "insert into loaded values ('"+portion{table: source.table, first: first}.String()+"')")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	environment(t, server)
	for range 2 {
		var out bytes.Buffer
		err := Work(t.Context(), strings.NewReader(`{"load": true, "scale": 1}`), &out)
		if err == nil || !strings.Contains(err.Error(), "the answer to query 1 is wrong") {
			t.Errorf("%v %s", err, out.String())
		}
	}
}

// environment has commands find a server.
func environment(t *testing.T, server *postgrestest.Server) {
	t.Helper()
	for key, value := range map[string]string{"PGHOST": server.Sockets, "PGPORT": fmt.Sprint(server.Port),
		"PGUSER": postgrestest.User, "PGPASSWORD": postgrestest.Password, "PGDATABASE": "postgres"} {
		t.Setenv(key, value)
	}
}

// A run whose time is over says what is left of it.
func TestTimeIsOver(t *testing.T) {
	server := postgrestest.Start(t)
	if err := loaded(t, server, 0.01).Close(); err != nil {
		t.Fatal(err)
	}
	environment(t, server)
	var out bytes.Buffer
	job := `{"scale": 0.01, "streams": 100, "seed": 1, "duration_ns": 300000000}`
	if err := Work(t.Context(), strings.NewReader(job), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last worker.State
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	left := last.Values[5]
	if !last.Final || last.Values[2] != nil || left == nil || *left == 0 || last.Errors != 0 ||
		!strings.Contains(lines[len(lines)-2], "its time was over before it was") {
		t.Errorf("%+v %s", last, lines[len(lines)-2])
	}
	for _, bad := range []string{`{`, `{"scale": 0}`, `{"scale": 1, "streams": -1}`, `{"scale": 2}`} {
		if err := Work(t.Context(), strings.NewReader(bad), &out); err == nil {
			t.Error(bad)
		}
	}
}

// All answers at scale 1. It takes about two minutes on two cores: one for the load, one for the queries.
func TestAnswersOfScaleOne(t *testing.T) {
	needs.Long(t, "a gigabyte is loaded; a hundredth of it is in every run of tests")
	if needs.Race {
		t.Skip("two minutes without the race detector, which have nothing to show it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	server := postgrestest.Start(t, "shared_buffers=512MB", "work_mem=64MB", "max_wal_size=4GB",
		"maintenance_work_mem=256MB", "jit=off")
	begin, cpu := time.Now(), cpuSeconds()
	s := open(t, server)
	g, err := NewGenerator(1)
	if err == nil {
		err = s.Load(ctx, g, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("made and loaded with %.1f s of our processor time in %v", cpuSeconds()-cpu, time.Since(begin))
	asked := 0
	wrong, err := s.CheckAnswers(ctx, func(int, time.Duration) { asked++ })
	if d := cmp.Diff([]error(nil), wrong, cmpopts.EquateErrors()); d != "" || err != nil || asked != Queries {
		t.Errorf("%d asked, %v: %v", asked, err, errors.Join(wrong...))
	}
}

// Load makes the data set and loads it, or the portions of it that are not there yet when it was interrupted before.
// Another scale than that of what is there is an error. Progress is told after each portion and before each further
// step, from any goroutine but never two at once; told may be nil.
func (s *Store) Load(ctx context.Context, g *Generator, told func(Progress)) error {
	if err := s.fill(ctx, g, told); err != nil {
		return err
	}
	return s.finish(ctx)
}
