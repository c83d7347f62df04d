package mariadb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/needs"
	"plimsoll/internal/tprocc"
	"plimsoll/internal/tprocc/mariadb"
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
	server, install := needs.MariaDB(t)
	dir := t.TempDir()
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(install, "--no-defaults", "--datadir="+dir+"/data", "--skip-test-db",
		"--user="+who.Username, "--auth-root-authentication-method=normal").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close() // it was only to learn a port
	first := filepath.Join(dir, "first.sql")
	if err := os.WriteFile(first, []byte("CREATE USER app@'%' IDENTIFIED BY 'horse:@/';\nGRANT ALL ON *.* TO app@'%';\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(server, "--no-defaults", "--user="+who.Username, "--datadir="+dir+"/data",
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", port), "--socket="+dir+"/s", "--init-file="+first,
		"--skip-name-resolve", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M",
		"--pid-file="+dir+"/pid", "--log-error="+dir+"/log.err")
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the signal at our death is one at the death of this thread
		defer runtime.UnlockOSThread()
		defer close(ended)
		started <- process.Start()
		if process.Process != nil {
			_ = process.Wait() // however it ends
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	d := mariadb.Dialect{Server: mariadb.Server{Address: fmt.Sprintf("127.0.0.1:%d", port), User: "app",
		Password: "horse:@/", Database: "bench"}}
	for range 300 {
		s, err := d.Connect(t.Context())
		if err == nil {
			_ = s.Close()
			return d
		}
		time.Sleep(100 * time.Millisecond)
	}
	said, _ := os.ReadFile(dir + "/log.err")
	t.Fatalf("the server does not start: %s", said)
	return d
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

// TestCost prints MariaDB's rows of docs/performance.md.
func TestCost(t *testing.T) {
	if !*peers {
		t.Skip("go test -run TestCost -args -peers")
	}
	d := start(t)
	s, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test
	do(t, s, "CREATE DATABASE bench")
	if err := (&tprocc.Load{Dialect: d, Warehouses: 2, Workers: 2, Data: data}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, users := range []int{1, 2, 10} {
		r := tprocc.NewRun(0, users, 2, 2, 7)
		r.Duration = 10 * time.Second
		if err := d.Drive(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		used, n := r.CPUSeconds(), r.Counts()
		p50, _ := n.Times[tprocc.NewOrder].Percentile(0.5)
		fmt.Printf("MariaDB: %d users, 10 s: %d NOPM, client CPU %.1f us a new order, p50 %v, errors %d\n", users,
			n.Committed[0]*6, used*1e6/float64(max(1, n.Committed[0])), time.Duration(p50), n.Errors())
	}
}

func TestWorkload(t *testing.T) {
	d := start(t)
	s, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test
	load := func(warehouses int) error {
		return (&tprocc.Load{Dialect: d, Warehouses: warehouses, Workers: 2, Data: data}).Run(t.Context())
	}
	do(t, s, "CREATE DATABASE bench")
	do(t, s, "CREATE TABLE bench.theirs (a INT)")
	if err := load(1); err == nil || !strings.Contains(err.Error(), `"bench" does not carry our mark (it says "")`) {
		t.Errorf("%v", err)
	}
	do(t, s, "DROP TABLE bench.theirs")
	do(t, s, "CREATE PROCEDURE bench.new_order() SELECT 1")
	if err := load(1); err == nil || !strings.Contains(err.Error(), `"bench" does not carry our mark (it says "")`) {
		t.Errorf("%v", err)
	}
	do(t, s, "DROP PROCEDURE bench.new_order")
	names(t, d, s)
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
	if err := load(2); err == nil || !strings.Contains(err.Error(), `schema "bench" has 1 warehouses, not 2`) {
		t.Errorf("%v", err)
	}
	if broken, err := tprocc.Check(d, s); err != nil || broken != 0 {
		t.Fatal(broken, err)
	}
	use(t, d, s)
	do(t, s, "UPDATE bench.warehouse SET w_ytd = w_ytd + 1")
	if broken, err := tprocc.Check(d, s); broken != 1 || !errors.Is(err, tprocc.ErrInconsistent) {
		t.Error(broken, err)
	}
	wrong := d
	wrong.Server.Password = "x"
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
		if rows, err := s.Rows(d.Find()); err != nil || len(rows) != 0 {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
		if got := value(t, s, d.Lock()); got != "1" {
			t.Errorf("%s: the lock is %s", name, got)
		}
		for _, statements := range [][]string{d.Create("ours"), d.Script(tprocc.Tables), d.Script(tprocc.Procedures),
			d.Script(tprocc.Indexes), d.Script(tprocc.Statistics)} {
			for _, sql := range statements {
				do(t, s, sql)
			}
		}
		if got := value(t, s, d.Find()); got != "ours" {
			t.Errorf("%s: the mark is %q", name, got)
		}
	}
}

// use has users at work, whose connections are lost once.
func use(t *testing.T, d mariadb.Dialect, s tprocc.Session) {
	before := value(t, s, "SELECT SUM(d_next_o_id) FROM bench.district")
	r := tprocc.NewRun(0, 4, 1, 2, 7)
	var words strings.Builder
	r.Duration, r.Words = 3*time.Second, &words
	done := make(chan error, 1)
	go func() { done <- d.Drive(t.Context(), r) }()
	<-r.Begun()
	time.Sleep(time.Second)
	rows, err := s.Rows("SELECT id FROM information_schema.processlist " +
		"WHERE id <> CONNECTION_ID() AND user = 'app' LIMIT 2")
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
