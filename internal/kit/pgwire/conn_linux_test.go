package pgwire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
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

func connect(t testing.TB, url string) *pgwire.Conn {
	t.Helper()
	server, err := pgwire.ParseServer(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := server.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A real handshake: the server's certificate is held against an authority and its address, the password is bound to the
// channel, and transactions go through it, one connection at a time and many on a loop.
func TestTLS(t *testing.T) {
	s := postgrestest.Start(t)
	ca, other := s.TLS()
	of := func(more string) string { return s.URL() + "?sslmode=verify-full&sslrootcert=" + more }
	for url, want := range map[string]string{
		of(other): "?sslrootcert=FILE",
		strings.Replace(of(ca), "127.0.0.1", "localhost", 1): "localhost",
		of("/nowhere.crt"):                         "/nowhere.crt",
		s.SocketURL() + "&channel_binding=require": "channel binding",
	} {
		server, err := pgwire.ParseServer(url)
		if err == nil {
			_, err = server.Connect(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "horse") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := connect(t, of(ca)+"&channel_binding=require")
	r, err := c.Do("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"t", "TLSv1.3"}}, rows(r)); diff != "" {
		t.Error(diff)
	}
}

// rows are all of a reply, null as "∅".
func rows(r *pgwire.Reply) (all [][]string) {
	for r.Next() {
		var row []string
		for i := range r.Columns() {
			if v := r.Column(i); v != nil {
				row = append(row, string(v))
			} else {
				row = append(row, "∅")
			}
		}
		all = append(all, row)
	}
	return all
}

func TestConn(t *testing.T) {
	s := postgrestest.Start(t)
	for name, url := range map[string]string{"unix": s.SocketURL(), "tcp": s.URL()} {
		t.Run(name, func(t *testing.T) { useConn(t, connect(t, url)) })
	}
}

func useConn(t *testing.T, c *pgwire.Conn) {
	do := func(sql string) *pgwire.Reply {
		t.Helper()
		r, err := c.Do(sql)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	do(`DROP TABLE IF EXISTS t; CREATE TABLE t (a int PRIMARY KEY, b bigint, c text, d numeric, e smallint);
		CREATE OR REPLACE PROCEDURE p(n int, INOUT twice int) LANGUAGE plpgsql AS $$ BEGIN twice := 2 * n; END $$`)
	n, line := int64(0), 0
	n, err := c.CopyIn("COPY t FROM STDIN", func(dst []byte) ([]byte, error) {
		if line++; line > 1000 {
			return dst, io.EOF
		}
		return fmt.Appendf(dst, "%d\t%d\ttext %d\t1.5\t\\N\n", line, line<<40, line), nil
	})
	if n != 1000 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
	_, err = c.CopyIn("COPY t FROM STDIN", func(dst []byte) ([]byte, error) {
		return append(dst, "9999\t\\N\t\\N\t\\N\t\\N\n"...), errors.New("no more")
	})
	if err == nil || err.Error() != "no more" {
		t.Errorf("%v", err)
	}
	for endless := range 2 { // the server objects to a row while more are coming
		_, err = c.CopyIn("COPY t FROM STDIN", func(dst []byte) ([]byte, error) {
			return append(dst, "what?\n"...), []error{nil, io.EOF}[endless]
		})
		if pgwire.ClassOf(err) != pgwire.Other || !strings.Contains(fmt.Sprint(err), "22P02") {
			t.Errorf("%v", err)
		}
	}
	if _, err = c.CopyIn("SELECT 1", nil); err == nil {
		t.Error("a SELECT is no COPY")
	}
	stmt, err := c.Prepare("s", "SELECT a, b, c, d, e FROM t WHERE a = $1 OR b = $2 OR c = $3 ORDER BY a")
	if err != nil {
		t.Fatal(err)
	}
	want := &pgwire.Statement{Name: "s", SQL: stmt.SQL, Params: []uint32{23, 20, 25},
		Columns: strings.Fields("a b c d e")}
	if diff := cmp.Diff(want, stmt); diff != "" {
		t.Error(diff)
	}
	r, err := c.Query(stmt, pgwire.Int(7), pgwire.Int(8<<40), pgwire.Text("text 9"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"7", "7696581394432", "text 7", "1.5", "∅"},
		{"8", "8796093022208", "text 8", "1.5", "∅"},
		{"9", "9895604649984", "text 9", "1.5", "∅"}}, rows(r)); diff != "" || r.Affected() != 3 {
		t.Error(diff, r.Tag())
	}
	if _, err := c.Query(stmt, pgwire.Int(1<<40), pgwire.Null(), pgwire.Null()); err == nil {
		t.Error("a number that does not fit was sent")
	}
	if _, err := c.Query(stmt); err == nil {
		t.Error("parameters were missing")
	}
	call, err := c.Prepare("call", "CALL p($1, $2)")
	if err != nil {
		t.Fatal(err)
	}
	r, err = c.Query(call, pgwire.Int(21), pgwire.Null())
	if err != nil || !r.Next() {
		t.Fatal(err)
	}
	if n, err := r.Int(0); n != 42 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	do("BEGIN")
	if !c.InTransaction() {
		t.Error("no transaction after BEGIN")
	}
	_, err = c.Do("SELECT 1/0")
	if said := (*pgwire.Error)(nil); !errors.As(err, &said) || said.Code != "22012" || !c.InTransaction() {
		t.Errorf("%v", err)
	}
	if _, err := c.Query(stmt, pgwire.Null(), pgwire.Null(), pgwire.Null()); err == nil {
		t.Error("a failed transaction goes on")
	}
	do("ROLLBACK")
	if c.InTransaction() {
		t.Error("a transaction after ROLLBACK")
	}
	r = do("SELECT repeat('x', 3000000); UPDATE t SET b = 0 WHERE a <= 10; SELECT 1 AS one, '' AS nothing")
	if all := rows(r); len(all) != 2 || len(all[0][0]) != 3000000 || !cmp.Equal(all[1], []string{"1", ""}) {
		t.Errorf("%d rows", len(all))
	}
	_, err = c.Do("SELECT pg_terminate_backend(pg_backend_pid())")
	if pgwire.ClassOf(err) != pgwire.Lost || !strings.Contains(fmt.Sprint(err), "57P01") {
		t.Errorf("%v", err)
	}
	if _, err = c.Do("SELECT 1"); pgwire.ClassOf(err) != pgwire.Lost {
		t.Errorf("%v", err)
	}
}

func TestStop(t *testing.T) {
	s := postgrestest.Start(t)
	c := connect(t, s.URL())
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	defer context.AfterFunc(ctx, c.Stop)()
	_, err := c.Do("SELECT pg_sleep(600)")
	if pgwire.ClassOf(err) != pgwire.Lost || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	c.Stop()
}

func TestRefused(t *testing.T) {
	s := postgrestest.Start(t, "max_connections=5", "superuser_reserved_connections=0")
	wrong := strings.Replace(s.URL(), "app:", "app:x", 1)
	for want, url := range map[string]string{
		"28P01": wrong, "3D000": s.URL() + "x", "connection refused": "postgresql://app@127.0.0.1:1/x",
	} {
		server, err := pgwire.ParseServer(url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = server.Connect(context.Background())
		text := fmt.Sprint(err)
		if pgwire.ClassOf(err) != pgwire.Refused || !strings.Contains(text, want) || strings.Contains(text, "horse") ||
			strings.Contains(fmt.Sprintf("%v %+v %#v", server, server, server), "horse") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	server, err := pgwire.ParseServer(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		var c *pgwire.Conn
		if c, err = server.Connect(context.Background()); err != nil {
			break
		}
		defer c.Close()
	}
	if !strings.Contains(fmt.Sprint(err), "53300") || !strings.Contains(fmt.Sprint(err), "fewer clients") {
		t.Errorf("%v", err)
	}
	if _, err = pgwire.ParseServer("postgresql://app:horse@h:port/x"); err == nil ||
		strings.Contains(err.Error(), "horse") {
		t.Errorf("%v", err)
	}
}
