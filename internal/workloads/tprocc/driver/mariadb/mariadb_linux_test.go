package mariadb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/testkit/certificates"
	"plimsoll/internal/testkit/mariadbtest"
	"plimsoll/internal/testkit/needs"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/mariadb"
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

// start gives a server in a folder of its own, stopped when the test has ended.
func start(t *testing.T) mariadb.Dialect {
	t.Helper()
	s := mariadbtest.Start(t, "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M",
		"--sql-mode=ORACLE,NO_BACKSLASH_ESCAPES") // what others set matters not
	return mariadb.At(t, fmt.Sprintf("mariadb://%s@127.0.0.1:%d", mariadbtest.User, s.Port), mariadbtest.Password,
		"bench")
}

func value(t *testing.T, s tprocc.Session, sql string) string {
	t.Helper()
	rows, err := s.Rows(sql)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%s: %v, %v", sql, rows, err)
	}
	return strings.Join(rows[0], " ")
}

func do(t *testing.T, s tprocc.Session, sql string) {
	t.Helper()
	if err := s.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

var data = tprocc.Data{Seed: 7, Time: "2026-01-02 03:04:05"}

var peers = flag.Bool("peers", false, "measure what the users cost, as make bench-peers does")

// TestCost prints MariaDB's rows of docs/performance.md, plain and over TLS by turns.
func TestCost(t *testing.T) {
	if !*peers {
		t.Skip("go test -run TestCost -args -peers")
	}
	files := certificates.Make(t, t.TempDir())
	server := mariadbtest.Start(t, "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M",
		"--ssl-ca="+files.Authority, "--ssl-cert="+files.Certificate, "--ssl-key="+files.Key)
	of := func(mode string) mariadb.Dialect {
		return mariadb.At(t, fmt.Sprintf("mariadb://%s@127.0.0.1:%d?sslmode=%s", mariadbtest.User, server.Port, mode),
			mariadbtest.Password, "bench")
	}
	d := of("disable")
	s, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do(t, s, "CREATE DATABASE bench")
	if err := (&tprocc.Load{Dialect: d, Warehouses: 2, Workers: 2, Data: data}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, users := range []int{1, 2, 10} {
		for _, mode := range []string{"disable", "require"} {
			r := tprocc.NewRun(0, users, 2, 2, 7)
			r.Duration = 10 * time.Second
			if err := of(mode).Drive(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			used, n := r.CPUSeconds(), r.Counts()
			p50, _ := n.Times[tprocc.NewOrder].Percentile(0.5)
			fmt.Printf("MariaDB, sslmode %s: %d users, 10 s: %d NOPM, client CPU %.1f us a new order, p50 %v, errors %d\n", mode,
				users, n.Committed[0]*6, used*1e6/float64(max(1, n.Committed[0])), time.Duration(p50), n.Errors())
		}
	}
}

func TestWorkload(t *testing.T) {
	d := start(t)
	s, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	load := func(warehouses int) error {
		return (&tprocc.Load{Dialect: d, Warehouses: warehouses, Workers: 2, Data: data}).Run(t.Context())
	}
	do(t, s, "CREATE DATABASE bench")
	do(t, s, "CREATE TABLE bench.theirs (a INT)")
	if err := load(1); err == nil || !strings.Contains(err.Error(), "does not carry our mark and holds table "+
		"theirs: nothing") {
		t.Errorf("%v", err)
	}
	do(t, s, "DROP TABLE bench.theirs")
	do(t, s, "CREATE PROCEDURE bench.new_order() SELECT 1")
	if err := load(1); err == nil || !strings.Contains(err.Error(), "does not carry our mark and holds procedure new_order: nothing") {
		t.Errorf("%v", err)
	}
	do(t, s, "DROP PROCEDURE bench.new_order")
	begin := time.Now()
	if err := load(1); err != nil {
		t.Fatal(err)
	}
	t.Logf("a warehouse in %v", time.Since(begin))
	for range 2 { // another time with one that was begun
		for table, want := range map[string]string{"item": "100000", "warehouse": "1", "district": "10",
			"customer": "30000", "history": "30000", "stock": "100000", "orders": "30000", "new_order": "9000"} {
			if got := value(t, s, "SELECT COUNT(*) FROM bench."+table); got != want {
				t.Errorf("%s has %s rows, want %s", table, got, want)
			}
		}
		do(t, s, "UPDATE bench.load_state SET state = 'loading' WHERE warehouse = 1")
		do(t, s, "DELETE FROM bench.load_state WHERE warehouse = -1")
		do(t, s, "DELETE FROM bench.history WHERE h_c_id > 1000")
		if err := load(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(2); err == nil || !strings.Contains(err.Error(), `schema "bench" has 1 warehouse, not 2`) {
		t.Errorf("%v", err)
	}
	if broken, err := tprocc.Check(d, s); err != nil || broken != 0 {
		t.Fatal(broken, err)
	}
	use(t, d, s, mariadbtest.User)
	anew := &tprocc.Load{Dialect: d, Warehouses: 1, Workers: 2, Data: data, Reload: true}
	if err := anew.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, s, "UPDATE bench.warehouse SET w_ytd = w_ytd + 1")
	if broken, err := tprocc.Check(d, s); broken != 1 || !errors.Is(err, tprocc.ErrInconsistent) {
		t.Error(broken, err)
	}
	wrong := d
	wrong.Server.Config = d.Server.Config.Clone()
	wrong.Server.Config.Passwd = "x"
	if _, err := wrong.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "give the right password") ||
		strings.Contains(fmt.Sprintf("%v %+v %#v", err, d, d), "horse") {
		t.Errorf("%v", err)
	}
}

// names are of databases that have to be quoted, that are as long as can be, and that differ by case from another one.
func names(t *testing.T, d mariadb.Dialect, s tprocc.Session) {
	t.Helper()
	do(t, s, "CREATE DATABASE GROUPS COMMENT 'theirs'")
	for _, name := range []string{"order", "1e3", "groups", strings.Repeat("b", 63)} {
		d.Server.Database = name
		if n, err := d.Find(s); err != nil || n != 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if got := value(t, s, d.Lock()); got != "1" {
			t.Errorf("%s: the lock is %s", name, got)
		}
		if err := d.Create(s, 3); err != nil {
			t.Fatal(err)
		}
		for _, statements := range [][]string{d.Script(tprocc.Tables), d.Script(tprocc.Procedures),
			d.Script(tprocc.Indexes), d.Script(tprocc.Statistics)} {
			for _, sql := range statements {
				do(t, s, sql)
			}
		}
		for _, unfinished := range []bool{true, false} {
			if n, err := d.Find(s); n != 3 || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
			if err := d.Finish(s, 3); unfinished && err != nil {
				t.Error(err)
			}
		}
		if err := d.Drop(s); err != nil {
			t.Error(err)
		}
		if got := value(t, s, "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = '"+name+
			"'"); got != "plimsoll_made" {
			t.Errorf("%s: left are %s", name, got)
		}
	}
}

// A drop is refused while others use our tables, in whatever way, and their objects stay; a forged record drops
// nothing.
func TestDropRefuses(t *testing.T) {
	d := start(t)
	s, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	names(t, d, s)
	if err := d.Create(s, 1); err != nil {
		t.Fatal(err)
	}
	for _, sql := range d.Script(tprocc.Tables) {
		do(t, s, sql)
	}
	if err := d.Finish(s, 1); err != nil {
		t.Fatal(err)
	}
	do(t, s, "INSERT INTO bench.load_state VALUES (0, 'x')")
	do(t, s, "CREATE DATABASE app")
	do(t, s, "CREATE TABLE app.t (a INT PRIMARY KEY) ENGINE=InnoDB")
	for _, test := range []struct{ make, want, undo string }{
		{"CREATE VIEW app.v AS SELECT w_id FROM bench.warehouse", "view app.v", "DROP VIEW app.v"},
		{"CREATE VIEW bench.v AS SELECT 1", "view v", "DROP VIEW bench.v"},
		{"CREATE TABLE app.k (w INT, FOREIGN KEY (w) REFERENCES bench.warehouse (w_id)) ENGINE=InnoDB",
			"foreign key k_ibfk_1 of table app.k", "DROP TABLE app.k"},
		{"CREATE TRIGGER bench.g BEFORE INSERT ON bench.item FOR EACH ROW SET NEW.i_price = 1", "trigger g of table bench.item",
			"DROP TRIGGER bench.g"},
		{"CREATE TRIGGER app.g AFTER INSERT ON app.t FOR EACH ROW DELETE FROM `bench` . `history` WHERE h_w_id = NEW.a",
			"trigger g of table app.t", "DROP TRIGGER app.g"},
		{"CREATE PROCEDURE app.p() SELECT COUNT(*) FROM bench.orders", "procedure app.p", "DROP PROCEDURE app.p"},
		{"CREATE FUNCTION bench.f() RETURNS INT RETURN 1", "function f", "DROP FUNCTION bench.f"},
		{"CREATE EVENT app.e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO DELETE FROM bench.history", "event app.e",
			"DROP EVENT app.e"},
		{"CREATE VIEW app.v AS SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM bench.item)", "view app.v", "DROP VIEW app.v"},
		{"CREATE FUNCTION app.f() RETURNS INT RETURN (SELECT COUNT(*) FROM bench.stock)", "function app.f", "DROP FUNCTION app.f"},
		{"SET sql_mode = ORACLE;; CREATE PACKAGE app.k AS FUNCTION n RETURN INT; END;; CREATE PACKAGE BODY app.k AS FUNCTION n " +
			"RETURN INT AS BEGIN RETURN (SELECT COUNT(*) FROM bench.stock); END; END;; SET sql_mode = DEFAULT",
			"package body app.k", "SET sql_mode = ORACLE;; DROP PACKAGE app.k;; SET sql_mode = DEFAULT"},
		{"CREATE TABLE bench.theirs (a INT)", "table theirs", "DROP TABLE bench.theirs"},
		{"CREATE SEQUENCE bench.q", "sequence q", "DROP SEQUENCE bench.q"},
		{"ALTER TABLE bench.district ADD COLUMN note INT", "table district has other columns (d_w_id", ""},
		{"ALTER TABLE bench.district DROP COLUMN note", "table district is another one than plimsoll made", ""},
	} {
		for sql := range strings.SplitSeq(test.make, ";; ") {
			do(t, s, sql)
		}
		if err := d.Drop(s); err == nil || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), "nothing was written or dropped") {
			t.Errorf("%s: %v, want %q", test.make, err, test.want)
		}
		if got := value(t, s, "SELECT COUNT(*) FROM bench.load_state"); got != "1" {
			t.Errorf("%s: %s rows are left", test.make, got)
		}
		for sql := range strings.SplitSeq(test.undo, ";; ") {
			if sql != "" {
				do(t, s, sql)
			}
		}
	}
	if err := d.Finish(s, 1); err != nil { // that table is taken for ours again
		t.Fatal(err)
	}
	do(t, s, "CREATE DATABASE forged COMMENT 'made by plimsoll: {}'")
	do(t, s, "CREATE TABLE forged.item (mine INT)")
	forged := d
	forged.Server.Database = "forged"
	for _, sql := range []string{"SELECT 1", "CREATE TABLE forged.plimsoll_made AS SELECT * FROM bench.plimsoll_made"} {
		do(t, s, sql)
		if err := forged.Drop(s); err == nil || !strings.Contains(err.Error(), "drop them by hand: DROP TABLE") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	do(t, s, "SELECT mine FROM forged.item")
}

// use has users at work, whose connections are lost once.
func use(t *testing.T, d mariadb.Dialect, s tprocc.Session, user string) {
	before := value(t, s, "SELECT SUM(d_next_o_id) FROM bench.district")
	r := tprocc.NewRun(0, 4, 1, 2, 7)
	var words strings.Builder
	r.Duration, r.Words = 3*time.Second, &words
	done := make(chan error, 1)
	go func() { done <- d.Drive(t.Context(), r) }()
	<-r.Begun()
	time.Sleep(time.Second)
	rows, err := s.Rows("SELECT id FROM information_schema.processlist " +
		"WHERE id <> CONNECTION_ID() AND user = '" + user + "' LIMIT 2")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		do(t, s, "KILL "+row[0])
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c := r.Counts()
	t.Logf("%v, %v\n%s", c.Committed, c.Outcomes, words.String())
	for k, n := range c.Committed {
		if n == 0 {
			t.Errorf("%v: none was committed", tprocc.Kind(k))
		}
	}
	var was, is uint64
	after := value(t, s, "SELECT SUM(d_next_o_id) FROM bench.district")
	if _, err := fmt.Sscan(before+" "+after, &was, &is); err != nil {
		t.Fatal(err)
	}
	n := c.Committed[tprocc.NewOrder]
	if is-was < n || is-was > n+c.After+c.Unknown || c.Outcomes[tprocc.Failed] != 0 ||
		c.Outcomes[tprocc.Lost] != 2 || c.Outcomes[tprocc.RolledBack] == 0 {
		t.Errorf("the server has %d new orders, we %d of them, %+v", is-was, n, c.Outcomes)
	}
	if broken, err := tprocc.Check(d, s); err != nil || broken != 0 {
		t.Error(broken, err)
	}
}
