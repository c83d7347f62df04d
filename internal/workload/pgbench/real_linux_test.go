package pgbench

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/pgbench"
	"plimsoll/internal/postgres/postgrestest"
	"plimsoll/internal/workload"
	"plimsoll/internal/workload/workloadtest"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == pgbench.WorkCommand {
		config, err := os.Open(os.Args[2])
		if err == nil {
			err = pgbench.Work(context.Background(), config, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// server is a real one with pgbench's tables of scale 1, and the lines of a config that name it.
func server(t *testing.T) string {
	t.Helper()
	s := postgrestest.Start(t)
	fill := exec.Command(s.Bin+"/pgbench", "-i", "-q", s.URL())
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return named(t, s)
}

func named(t *testing.T, s *postgrestest.Server) string {
	t.Setenv("PLIMSOLL_TEST_PASSWORD", postgrestest.Password)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(postgrestest.User)
	return fmt.Sprintf("server: {url: %q, password: \"env:PLIMSOLL_TEST_PASSWORD\"}\n", u)
}

func TestSuite(t *testing.T) {
	at := server(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte(at + "clients: 4\nthreads: 2\nbuiltin: select-only\n"),
		Faulty: []byte("client: 2\nclients: none\nbuiltin: tpcc\nthreads: 2\noptions: {sampling-rate: 0.1, partition: 3}\n" +
			"scripts: [{text: \"\\\\shell rm\"}, {builtin: select-only, text: x}]\nrate: 0\n"),
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

// run does one job for real and gives its reports.
func run(t *testing.T, config string) ([]workload.Report, workload.Job, string) {
	t.Helper()
	host := workloadtest.NewHost(t)
	job, err := Engine{}.Command(workload.Spec{Name: "Load", VM: "vm", ConfigFile: "load.yml", Config: []byte(config),
		Runtime: 3 * time.Second, Interval: time.Second, Seed: 7, SizeScale: 1, TimeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	var sink workloadtest.Recorder
	var raw bytes.Buffer
	if _, err := (Engine{}).Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &raw, Sink: &sink},
		job); err != nil {
		t.Fatal(err)
	}
	if len(sink.Warnings) > 0 {
		t.Error(sink.Warnings)
	}
	return sink.Reports, job, raw.String()
}

func TestX(t *testing.T) {
	at := server(t)
	for _, config := range []string{"clients: 2\n", "rate: 20\nlatency_limit: 20ms\nmax_tries: 3\nclients: 2\nthreads: 2\nstatements: true\n",
		"clients: 3\nscripts: [{builtin: select-only, weight: 3}, {name: own, text: \"select 1;\\nselect pg_sleep(0.01);\"}]\nstatements: true\n", "percentiles: false\nconnect: true\n"} {
		reports, job, raw := run(t, at+config)
		for _, r := range reports {
			t.Logf("%v %v hist %v err %d cpu %.3f final %v", r.Elapsed, r.Ops[0].Ops, r.Ops[0].Hist != nil, r.Errors, r.CPUSeconds, r.Final)
		}
		for i, m := range job.Measures {
			t.Log(m.Name, reports[len(reports)-1].Values[i])
		}
		_ = raw
	}
}
