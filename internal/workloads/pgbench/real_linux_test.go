package pgbench

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/workloadtest"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if code, worked := workloadtest.Worker(pgbench.WorkCommand, pgbench.Work); worked {
		os.Exit(code)
	}
	if err := os.Setenv("PLIMSOLL_TEST_PASSWORD", postgrestest.Password); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// server is a real one with pgbench's tables of scale 1, and the lines of a config that name it.
func server(t *testing.T) string {
	t.Helper()
	at := named(t, postgrestest.Start(t))
	if _, err := do(t, at, true, &workloadtest.Recorder{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return at
}

func named(t *testing.T, s *postgrestest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(postgrestest.User)
	return fmt.Sprintf("server: {url: %q, password: \"env:PLIMSOLL_TEST_PASSWORD\"}\n", u)
}

func TestSuite(t *testing.T) { // alone, since it counts goroutines
	at := server(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte(at + "clients: 4\nthreads: 2\nbuiltin: select-only\n"),
		Faulty: []byte(
			"client: 2\nclients: none\nbuiltin: tpcc\nthreads: 2\noptions: {sampling-rate: 0.1, partition: 3}\n" +
				"scripts: [{text: \"\\\\shell rm\"}, {builtin: select-only, text: x}]\nrate: 0\n",
		),
		Objections: []string{
			`suite.cfg:1:1: unknown key "client"; did you mean "clients"?`,
			`suite.cfg:2:10: clients: "none" is no whole number from 1 to 10000`,
			`suite.cfg:3:10: builtin: "tpcc" is none of select-only, simple-update, tpcb-like`,
			`suite.cfg:5:11: options: sampling-rate is not given here; write percentiles: false`,
			`suite.cfg:5:31: options: unknown key "partition"; did you mean "partitions"?`,
			`suite.cfg:6:18: scripts: text: \shell and \setshell run programs`,
			`suite.cfg:6:33: scripts: give a builtin or a text`,
			`suite.cfg:7:7: rate: "0" is no number of transactions per second`,
		},
		Refused:      []byte(strings.Replace(at, "env:", "command:echo wrong", 1)),
		RefusedWords: []string{"authentication failed", "give server: password:"},
		Noise:        []byte("pgbench: error: something went wrong\n{\"elapsed_ns\": 1}\n"),
	}.Run(t)
}

// do runs one job for real.
func do(t *testing.T, config string, prefill bool, sink workload.Sink, raw io.Writer) (workload.Job, error) {
	t.Helper()
	job, err := Engine{}.Command(spec(config, prefill))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Engine{}.Run(t.Context(), workload.Env{Host: workloadtest.NewHost(t), Clock: clock.Real{}, Raw: raw,
		Sink: sink}, job)
	return job, err
}

func spec(config string, prefill bool) workload.Spec {
	return workload.Spec{Name: "Load", VM: "vm", ConfigFile: "load.yml", Config: []byte(config), Prefill: prefill,
		Runtime: 3 * time.Second, Interval: time.Second, Seed: 7, SizeScale: 1, TimeScale: 1}
}

// Of every way to load, what the log counted is what pgbench itself counted, and each measure has a value.
func TestRealPgbench(t *testing.T) {
	t.Parallel()
	at := server(t)
	for name, c := range map[string]struct {
		config  string
		missing []string // measures without a value
	}{
		"tpcb-like": {"clients: 2\n", nil},
		"rate": {"rate: 300\nlatency_limit: 5ms\nmax_tries: 3\nclients: 2\nthreads: 2\nstatements: true\nmode: prepared\n",
			[]string{pgbench.ServiceP999}},
		"scripts": {"clients: 3\nstatements: true\nvariables: {ms: 1}\nscripts:\n" +
			"- {builtin: select-only, weight: 3}\n" +
			"- {name: own, text: \"\\\\set x :ms\\nselect 1; -- one;\\nselect pg_sleep(:x / 100.0);\"}\n", nil},
		"own lines": {"percentiles: false\nclients: 2\nstatements: true\n", nil},
		"connect":   {"connect: true\nbuiltin: select-only\noptions: {vacuum-all: true}\n", []string{pgbench.TPS}},
	} {
		t.Run(name, func(t *testing.T) {
			var sink, again workloadtest.Recorder
			var raw bytes.Buffer
			job, err := do(t, at+c.config, false, &sink, &raw)
			if err != nil || len(sink.Warnings) > 0 {
				t.Fatal(err, sink.Warnings)
			}
			last := sink.Reports[len(sink.Reports)-1]
			var text pgbench.Text
			for line := range strings.Lines(raw.String()) {
				text.Line(strings.TrimSuffix(line, "\n"))
			}
			if want := text.Totals().Processed; float64(last.Ops.Total()) != want || !last.Final || want == 0 {
				t.Errorf("%d transactions, pgbench says %v; final: %v", last.Ops.Total(), want, last.Final)
			}
			var missing []string
			for i, m := range job.Measures {
				if math.IsNaN(last.Values[i]) {
					missing = append(missing, m.Name)
				}
			}
			if !cmp.Equal(missing, c.missing) {
				t.Errorf("without a value: %q, want %q", missing, c.missing)
			}
			for _, o := range last.Ops {
				if job.Latency == "" && strings.Contains(c.config, "percentiles") != (o.Hist == nil) {
					t.Errorf("a histogram: %v", o.Hist != nil)
				}
			}
			if _, err := (Engine{}).Parse(job.Declared, &raw, &again); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(sink.Reports, again.Reports, cmpopts.EquateNaNs()); d != "" {
				t.Error(d)
			}
		})
	}
}

// A prefill makes tables where nothing is, leaves ours of the same scale, makes those of another scale anew, and
// writes to none of others.
func TestPrefill(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	at := named(t, s)
	fill := func(config string) (string, error) {
		var sink workloadtest.Recorder
		var raw bytes.Buffer
		_, err := do(t, at+config, true, &sink, &raw)
		if err == nil {
			if last := sink.Reports[len(sink.Reports)-1]; !last.Final || last.Ops.Total()%pgbench.RowsOfScale != 0 {
				t.Errorf("the last report is %+v", last)
			}
		}
		return raw.String(), err
	}
	left := "left as they are"
	for i, c := range []struct {
		config string
		left   bool
	}{
		{"scale: 2\n", false}, {"scale: 2\n", true}, {"scale: 1\n", false},
		{"options: {unlogged-tables: true}\n", false},
	} {
		if raw, err := fill(c.config); err != nil || strings.Contains(raw, left) != c.left {
			t.Errorf("%d: %v: %s", i, err, raw)
		}
	}
	// Others' tables are none of its affair, where they are called as its own; in their schema nothing is written.
	s.Exec("postgres", "create table pgbench_accounts (theirs int); create view v as select * from pgbench_accounts")
	if raw, err := fill("scale: 1\noptions: {partitions: 2, foreign-keys: true, init-steps: dtgvpf}\n"); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	_, err := fill("scale: 1\nschema: public\n")
	if err == nil || !strings.Contains(err.Error(),
		"holds table pgbench_accounts, view v: nothing was written or dropped") {
		t.Errorf("others' tables: %v", err)
	}
	s.Exec("postgres", "create view public.uses as select aid from plimsoll_pgbench.pgbench_accounts")
	_, err = fill("scale: 2\n")
	if err == nil || !strings.Contains(err.Error(), "what others made depends on them: view public.uses") {
		t.Errorf("others' view: %v", err)
	}
	s.Exec("postgres", "drop view public.uses, v; drop table public.pgbench_accounts")
	for _, scale := range []string{"2", "1"} {
		if raw, err := fill("schema: public\nscale: " + scale + "\n"); err != nil {
			t.Errorf("%v: %s", err, raw)
		}
	}
	if got := s.Exec("postgres", "select count(*) from public.pgbench_accounts"); got != "100000" {
		t.Errorf("%s accounts in public", got)
	}
	s.Exec("postgres", "drop table public.plimsoll_made; comment on schema public is 'made by plimsoll: {}'")
	if raw, err := fill("scale: 1\n"); err != nil || !strings.Contains(raw, "drop them by hand: DROP TABLE") {
		t.Errorf("%v: tables of an earlier version: %s", err, raw)
	}
}

// A run that fails says why and what to do; one with failed transactions counts them, by kind and with the retries.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t, "max_connections=10", "default_transaction_isolation=serializable")
	at := named(t, s)
	if _, err := do(t, at, true, &workloadtest.Recorder{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ config, says string }{
		"connections": {"clients: 30\n", "take fewer clients"},
		"no tables":   {"scripts: [{text: 'select * from nowhere;'}]\n", `relation "nowhere" does not exist`},
		"no database": {"database: nosuch\n", `database "nosuch" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			config := at + c.config
			if name == "no database" {
				config = strings.Replace(config, "/postgres", "", 1)
			}
			_, err := do(t, config, false, &workloadtest.Recorder{}, io.Discard)
			said := fmt.Sprint(err)
			if err == nil || !strings.Contains(said, c.says) || strings.Contains(said, postgrestest.Password) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	t.Run("serialization", func(t *testing.T) {
		var sink workloadtest.Recorder
		job, err := do(t, at+"clients: 4\nmax_tries: 2\nscripts:\n- text: |\n    BEGIN;\n    SELECT bbalance FROM "+
			"pgbench_branches;\n    UPDATE pgbench_branches SET bbalance = bbalance + 1;\n    END;\n", false, &sink,
			io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		last := sink.Reports[len(sink.Reports)-1]
		values := map[string]float64{}
		for i, m := range job.Measures {
			values[m.Name] = last.Values[i]
		}
		if last.Errors == 0 || values[pgbench.SerializationBad] != float64(last.Errors) ||
			values[pgbench.DeadlockBad] != 0 ||
			values[pgbench.RetriedMeasure] < float64(last.Errors) || values[pgbench.RetriesMeasure] == 0 {
			t.Errorf("%d errors: %v", last.Errors, values)
		}
	})
	t.Run("restart", func(t *testing.T) {
		var once sync.Once
		sink := workloadtest.Recorder{OnReport: func(workload.Report) { once.Do(s.Restart) }}
		_, err := do(t, at+"clients: 2\n", false, &sink, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "the server ended or was restarted under the load") {
			t.Error(err)
		}
		if last := sink.Reports[len(sink.Reports)-1]; last.Final || last.Ops.Total() == 0 {
			t.Errorf("the last report is %+v", last)
		}
	})
}

// A mistake in a script is pgbench's own, and found while there is no server yet.
func TestScriptsBefore(t *testing.T) {
	for text, says := range map[string]string{
		`select 1;\n\\set x 1 + 2\nselect :x;`: "",
		`\\set x 1 +`:                          "Load/own.sql:1: syntax error",
		`\\if 1\nselect 1;`:                    "without matching",
	} {
		host := workloadtest.NewHost(t)
		_, err := Engine{}.CheckTool(t.Context(), host, spec("scripts: [{name: own, text: \""+text+"\"}]\n", false))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
