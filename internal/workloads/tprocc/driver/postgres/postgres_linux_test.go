package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/postgres"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	needs.Print(os.Stderr)
	os.Exit(code)
}

func dialect(t testing.TB, url string) postgres.Dialect {
	t.Helper()
	server, err := pgwire.ParseServer(url)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.Dialect{Server: server}
}

func session(t testing.TB, d tprocc.Dialect) tprocc.Session {
	t.Helper()
	s, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var data = tprocc.Data{Seed: 7, Time: "2026-01-02 03:04:05"}

func exec(t testing.TB, s tprocc.Session, sql string) {
	t.Helper()
	if err := s.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

func value(t testing.TB, s tprocc.Session, sql string) string {
	t.Helper()
	rows, err := s.Rows(sql)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%s: %v, %v", sql, rows, err)
	}
	return strings.Join(rows[0], " ")
}

// drive has users at work for a time, with something going on meanwhile.
func drive(t testing.TB, d tprocc.Dialect, r *tprocc.Run, meanwhile func()) *tprocc.Counts {
	t.Helper()
	var words strings.Builder
	r.Words = &words
	before, done := cpu(), make(chan error, 1)
	go func() { done <- d.Drive(context.Background(), r) }()
	meanwhile()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c := r.Counts()
	news := max(1, c.Committed[tprocc.NewOrder])
	p50, _ := c.Times[tprocc.NewOrder].Percentile(0.5)
	t.Logf("%d new orders, p50 %v, %v of client CPU each, outcomes %v, %d late\n%s", news, time.Duration(p50),
		(cpu()-before)/time.Duration(news), c.Outcomes, c.Late, words.String())
	return c
}

// grown is by how much the server's own count of new orders grew while f ran.
func grown(t testing.TB, s tprocc.Session, f func()) uint64 {
	t.Helper()
	orders := func() (n uint64) {
		if _, err := fmt.Sscan(value(t, s, "SELECT sum(d_next_o_id) FROM tprocc.district"), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := orders()
	f()
	return orders() - before
}

func consistent(t testing.TB, d tprocc.Dialect, s tprocc.Session) {
	t.Helper()
	if broken, err := tprocc.Check(d, s); err != nil || broken != 0 {
		t.Fatal(broken, err)
	}
}

// A disk that is full while warehouses are loaded, and while users are at work: it is said and counted, and goes on
// when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := devicetest.Mounted(t, "ext4", 256<<20)
	server := postgrestest.Start(t)
	server.OnDisk("small", disk)
	d := dialect(t, server.URL())
	d.Server = d.Server.WithDatabase("small")
	load := &tprocc.Load{Dialect: d, Warehouses: 1, Workers: 2, Data: data}
	giveBack := devicetest.Fill(t, disk, 60<<20)
	err := load.Run(t.Context())
	for _, want := range []string{"53100", "make room on the server's disk, then run again",
		"loaded are 0 of 1 warehouses, which stay: the next load goes on with the others"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	giveBack()
	// With room for one warehouse and not for another half: what was begun gave its room back.
	giveBack = devicetest.Fill(t, disk, 130<<20)
	if err := load.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	giveBack()
	s := session(t, d)
	consistent(t, d, s)
	giveBack = devicetest.Fill(t, disk, 1<<20)
	r := tprocc.NewRun(0, 8, 1, 2, 7)
	r.Duration = 6 * time.Second
	var during uint64
	c := drive(t, d, r, func() {
		time.Sleep(3 * time.Second)
		during = r.Counts().Committed[tprocc.NewOrder]
		giveBack()
	})
	full, after := c.Outcomes[tprocc.OutOfSpace], c.Committed[tprocc.NewOrder]
	if full == 0 || full > 60 || c.Errors() != full || after < 2*during {
		t.Errorf("%d met a full disk, %d errors, %d new orders until then and %d after", full, c.Errors(), during, after)
	}
	consistent(t, d, s)
}

// Loading, users in both ways of driving them, and what goes wrong, on one server.
func TestWorkload(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, "deadlock_timeout=50ms")
	d := dialect(t, server.URL())
	s := session(t, d)
	interrupted(t, d, s)
	for table, want := range map[string]string{"item": "100000", "warehouse": "2", "district": "20",
		"customer": "60000", "history": "60000", "stock": "200000", "orders": "60000", "new_order": "18000"} {
		if got := value(t, s, "SELECT count(*) FROM tprocc."+table); got != want {
			t.Errorf("%s has %s rows, want %s", table, got, want)
		}
	}
	consistent(t, d, s)
	t.Run("users", func(t *testing.T) {
		for name, drivers := range map[string]func(*tprocc.Run) error{
			"loop":     func(r *tprocc.Run) error { return d.Drive(t.Context(), r) },
			"blocking": func(r *tprocc.Run) error { return r.Block(t.Context(), d.Terminal) },
		} {
			r := tprocc.NewRun(0, 4, 2, 2, 7)
			r.Duration = time.Second
			var c *tprocc.Counts
			n := grown(t, s, func() {
				if err := drivers(r); err != nil {
					t.Fatal(err)
				}
				c = r.Counts()
			})
			if n != c.Committed[tprocc.NewOrder]+c.After || n == 0 || c.Errors() != 0 {
				t.Errorf("%s: the server has %d new orders, %+v", name, n, c.Outcomes)
			}
		}
		consistent(t, d, s)
	})
	t.Run("connections lost", func(t *testing.T) {
		r := tprocc.NewRun(0, 4, 2, 2, 8)
		r.Duration = 3 * time.Second
		var c *tprocc.Counts
		n := grown(t, s, func() {
			c = drive(t, d, r, func() {
				time.Sleep(time.Second)
				exec(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
			})
		})
		if c.Outcomes[tprocc.Lost] == 0 || c.Outcomes[tprocc.Lost] > 4 ||
			n < c.Committed[tprocc.NewOrder] || n > c.Committed[tprocc.NewOrder]+c.After+c.Unknown {
			t.Errorf("%d new orders in the server, %+v", n, c)
		}
		consistent(t, d, s)
	})
	t.Run("connections lost while users think", func(t *testing.T) {
		const users = 20 // most of them have sent nothing yet, and none is served
		r := tprocc.NewRun(0, users, 2, 1, 8)
		r.Keying, r.Duration = true, 5*time.Second
		c := drive(t, d, r, func() {
			for range 2 {
				time.Sleep(1500 * time.Millisecond)
				exec(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
			}
		})
		ended := r.Now()
		if lost := c.Outcomes[tprocc.Lost]; lost < users || c.Errors() != lost || c.Outcomes[tprocc.Refused] != 0 ||
			ended > r.Duration+time.Second {
			t.Errorf("after %v %+v", ended, c.Outcomes)
		}
	})
	t.Run("in each other's way", func(t *testing.T) {
		server, err := pgwire.ParseServer(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		server.Set("default_transaction_isolation", "serializable")
		r := tprocc.NewRun(0, 8, 2, 2, 9)
		r.Duration = time.Second
		c := drive(t, postgres.Dialect{Server: server}, r, func() {})
		if c.Retries() == 0 || c.Outcomes[tprocc.Serialization] == 0 || c.Outcomes[tprocc.Failed] != 0 {
			t.Errorf("%+v", c)
		}
		consistent(t, d, s)
	})
	t.Run("stopped", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		r := tprocc.NewRun(0, 4, 2, 2, 9)
		r.Duration = time.Hour
		if err := d.Drive(ctx, r); err == nil && ctx.Err() == nil {
			t.Error("it ended by itself")
		}
		// A delivery that is still at work would take the orders that the conditions are about to change.
		mine := value(t, s, "SELECT pg_backend_pid()")
		server.Gone("backend_type = 'client backend' AND pid <> "+mine, 30*time.Second)
	})
	t.Run("conditions", func(t *testing.T) { conditions(t, d, s) })
	t.Run("refused", func(t *testing.T) { refusals(t, d, s) })
}

// interrupted stops a load in the middle and has another one go on.
func interrupted(t *testing.T, d tprocc.Dialect, s tprocc.Session) {
	ctx, cancel := context.WithCancel(t.Context())
	first := &tprocc.Load{Dialect: d, Warehouses: 2, Workers: 1, Data: data}
	stopped := make(chan error, 1)
	go func() { stopped <- first.Run(ctx) }()
	for first.Progress().Bytes < 110<<20 { // in the second warehouse
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-stopped; err == nil {
		t.Fatal("a load that was stopped says nothing")
	}
	begun := func() {
		t.Helper()
		if got := value(t, s, "SELECT string_agg(warehouse || ' ' || state, ', ' ORDER BY warehouse) FROM "+
			"tprocc.load_state"); got != "0 loaded, 1 loaded, 2 loading" {
			t.Fatal(got)
		}
	}
	begun()
	// One that ends where it writes down that a warehouse is loaded.
	exec(t, s, "ALTER TABLE tprocc.load_state ADD CONSTRAINT never CHECK (warehouse <> 2 OR state = 'loading')")
	if err := (&tprocc.Load{Dialect: d, Warehouses: 2, Workers: 1, Data: data}).Run(t.Context()); err == nil {
		t.Fatal("it could not write down what it did, and says nothing")
	}
	begun()
	exec(t, s, "ALTER TABLE tprocc.load_state DROP CONSTRAINT never")
	before, start := cpu(), time.Now()
	l := &tprocc.Load{Dialect: d, Warehouses: 2, Workers: 2, Data: data}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := l.Progress()
	t.Logf("the second of %d warehouses in %v, %v of client CPU, %d bytes", p.Warehouses, time.Since(start), cpu()-before,
		p.Bytes)
	if p.Share < 0.98 || p.Bytes > 75<<20 {
		t.Errorf("%+v: want one warehouse, and a share of about 1", p)
	}
}

// conditions breaks each one, and mends it again.
func conditions(t *testing.T, d tprocc.Dialect, s tprocc.Session) {
	for want, change := range map[string][2]string{
		"condition 1, warehouse 2, district 0: w_ytd is": {"UPDATE tprocc.warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
			"UPDATE tprocc.warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 2"},
		"condition 2, warehouse 1, district 3: d_next_o_id - 1 is": {
			"UPDATE tprocc.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
			"UPDATE tprocc.district SET d_next_o_id = d_next_o_id - 1 WHERE d_w_id = 1 AND d_id = 3"},
		"condition 3, warehouse 1, district 4: the range of new orders is": {
			"UPDATE tprocc.new_order SET no_o_id = -1 WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = " +
				"(SELECT min(no_o_id) FROM tprocc.new_order WHERE no_w_id = 1 AND no_d_id = 4)",
			"UPDATE tprocc.new_order SET no_o_id = (SELECT min(no_o_id) - 1 FROM tprocc.new_order WHERE no_w_id = 1 AND " +
				"no_d_id = 4 AND no_o_id > 0) WHERE no_o_id = -1"},
		"condition 4, warehouse 1, district 5: the sum of o_ol_cnt is": {
			"UPDATE tprocc.orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 5 AND o_id = 1",
			"UPDATE tprocc.orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 5 AND o_id = 1"},
	} {
		exec(t, s, change[0])
		if broken, err := tprocc.Check(d, s); broken != 1 || !errors.Is(err, tprocc.ErrInconsistent) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d, %v, want %q", broken, err, want)
		}
		exec(t, s, change[1])
		consistent(t, d, s)
	}
}

// refusals are of what is not ours, and of another scale.
func refusals(t *testing.T, d tprocc.Dialect, s tprocc.Session) {
	if n, err := d.Find(s); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, test := range []struct{ before, want, after string }{
		{"", "schema \"tprocc\" has 2 warehouses, not 3: say 2, or have it dropped and loaded anew with reload: true", ""},
		{"CREATE TABLE kept AS TABLE tprocc.plimsoll_made; DELETE FROM tprocc.plimsoll_made", "has a record that is not the one",
			"INSERT INTO tprocc.plimsoll_made TABLE kept; DROP TABLE kept"},
		{"ALTER TABLE tprocc.item RENAME TO kept; CREATE TABLE tprocc.item (LIKE tprocc.kept)",
			"table item is another one than plimsoll made", "DROP TABLE tprocc.item; ALTER TABLE tprocc.kept RENAME TO item"},
		{"SELECT pg_advisory_lock(7076726363)", "another loader is at work", "SELECT pg_advisory_unlock_all()"},
	} {
		if test.before != "" {
			exec(t, s, test.before)
		}
		err := (&tprocc.Load{Dialect: d, Warehouses: 3, Workers: 1, Data: data}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
		if test.after != "" {
			exec(t, s, test.after)
		}
	}
	exec(t, s, "CREATE VIEW theirs AS SELECT w_id FROM tprocc.warehouse")
	if err := d.Drop(s); err == nil || !strings.Contains(err.Error(), "depends on them: view public.theirs:") {
		t.Errorf("%v", err)
	}
	if got := value(t, s, "SELECT count(*) FROM tprocc.warehouse"); got != "2" {
		t.Errorf("%s warehouses are left", got)
	}
	exec(t, s, "DROP VIEW theirs")
	anew := &tprocc.Load{Dialect: d, Warehouses: 1, Workers: 2, Data: data, Reload: true}
	if err := anew.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	consistent(t, d, s)
}
