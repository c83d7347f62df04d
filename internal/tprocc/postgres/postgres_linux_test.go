package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/needs"
	"plimsoll/internal/pgwire"
	"plimsoll/internal/postgres/postgrestest"
	"plimsoll/internal/tprocc"
	"plimsoll/internal/tprocc/postgres"
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

func load(t testing.TB, d tprocc.Dialect, warehouses int) {
	t.Helper()
	before, start := cpu(), time.Now()
	l := &tprocc.Load{Dialect: d, Warehouses: warehouses, Workers: 2, Data: data}
	if err := l.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	p := l.Progress()
	t.Logf("%d warehouses in %v, %v of client CPU, %d bytes, share %.3f", p.Warehouses, time.Since(start), cpu()-before,
		p.Bytes, p.Share)
}

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

func TestLoad(t *testing.T) {
	server := postgrestest.Start(t)
	d := dialect(t, server.URL())
	load(t, d, 1)
	s := session(t, d)
	if broken, err := tprocc.Check(d, s); err != nil || broken != 0 {
		t.Fatal(broken, err)
	}
	for table, want := range map[string]string{"item": "100000", "warehouse": "1", "district": "10",
		"customer": "30000", "history": "30000", "stock": "100000", "orders": "30000", "new_order": "9000"} {
		if got := value(t, s, "SELECT count(*) FROM tprocc."+table); got != want {
			t.Errorf("%s has %s rows, want %s", table, got, want)
		}
	}
	r := tprocc.NewRun(4, 1, 2, 7)
	r.Duration, r.Words = 3*time.Second, os.Stderr
	before := cpu()
	if err := d.Drive(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	used := cpu() - before
	c := r.Counts()
	for k := range c.Times {
		p, _ := c.Times[k].Percentile(0.5)
		t.Log(tprocc.Kind(k), c.Committed[k], time.Duration(c.Times[k].Mean()), time.Duration(p))
	}
	t.Log(c.Outcomes, used, used/time.Duration(c.Committed[0]))
	if broken, err := tprocc.Check(d, s); err != nil || broken != 0 {
		t.Fatal(broken, err)
	}
}
