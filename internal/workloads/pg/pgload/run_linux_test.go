package pgload

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == WorkCommand {
		config, err := os.Open(os.Args[2])
		if err == nil {
			err = Work(context.Background(), config, os.Stdout, os.Stderr)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	needs.Print(os.Stderr)
	os.Exit(code)
}

func server(t testing.TB, url string) *pgwire.Server {
	t.Helper()
	s, err := pgwire.ParseServer(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outcome is the last state of a load, by the names of operations and measures.
type outcome struct {
	worker.State
	ops    map[string]uint64
	values map[string]float64
	said   []string
}

func drive(t testing.TB, s *pgwire.Server, job Job) (outcome, error) {
	t.Helper()
	o := outcome{ops: map[string]uint64{}, values: map[string]float64{}}
	err := Run(context.Background(), job, s, 50*time.Millisecond, func(s worker.State) { o.State = s },
		func(text string) { o.said = append(o.said, text) })
	operations, measures := job.Declared()
	for i, c := range o.Operations {
		o.ops[operations[i].Name] = c.Times.Count()
	}
	for i, v := range o.Values {
		if v != nil {
			o.values[measures[i].Name] = *v
		}
	}
	return o, err
}

func job(change func(*Job)) Job {
	j := Defaults()
	j.Duration, j.Seed = 300*time.Millisecond, 1
	j.Scripts = []Script{{Name: "tpcb-like", Weight: 1}}
	change(&j)
	return j
}

// The built-in scripts leave what pgbench's would: as many rows of history as transactions, and sums that agree.
func testBuiltins(t *testing.T, s *postgrestest.Server) {
	for name, url := range map[string]string{"unix": s.SocketURL(), "tcp": s.URL()} {
		for _, mode := range []string{Simple, Extended, Prepared} {
			o, err := drive(t, server(t, url), job(func(j *Job) {
				j.Mode, j.Clients, j.Threads, j.Initialise = mode, 6, 2, Always
				j.Scripts = []Script{{"tpcb-like", "", 2}, {"simple-update", "", 1}, {"select-only", "", 1}}
			}))
			if err != nil || o.Errors > 0 {
				t.Fatal(name, mode, err, o.said)
			}
			n := s.Exec("postgres", `SELECT (SELECT count(*) FROM pgbench_history) || ' ' ||
				((SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)) || ' ' ||
				((SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches))`)
			want := fmt.Sprintf("%d true true", o.ops["tpcb-like"]+o.ops["simple-update"])
			if strings.TrimSpace(n) != want || o.ops["select-only"] == 0 || o.ops["tpcb-like"] == 0 {
				t.Errorf("%s %s: %q, want %q", name, mode, n, want)
			}
		}
	}
}
