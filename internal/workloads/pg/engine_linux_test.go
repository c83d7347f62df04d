package pg

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/internal/workloads/pg/pgload"
	"plimsoll/result"
	"plimsoll/scenario"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	work := func(ctx context.Context, job io.Reader, out io.Writer) error {
		return pgload.Work(ctx, job, out, os.Stderr)
	}
	if code, worked := workloadtest.Worker(pgload.WorkCommand, work); worked {
		os.Exit(code)
	}
	if err := os.Setenv("PG_TEST_PASSWORD", postgrestest.Password); err != nil {
		panic(err)
	}
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

// with names a server of the test's.
func with(t *testing.T, s *postgrestest.Server, more string) string {
	t.Helper()
	return fmt.Sprintf("server: {url: \"postgresql://%s@127.0.0.1:%d/postgres\", password: env:PG_TEST_PASSWORD}\n%s",
		postgrestest.User, s.Port, more)
}

func specOf(text string) workload.Spec {
	return workload.Spec{Name: "Load", ConfigFile: "load.yml", Config: []byte(text), Runtime: time.Second, Seed: 7,
		SizeScale: 1, TimeScale: 1}
}

func run(t *testing.T, spec workload.Spec) (workload.Outcome, *workloadtest.Recorder, error) {
	t.Helper()
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	var sink workloadtest.Recorder
	var raw strings.Builder
	env := workload.Env{Host: workloadtest.NewHost(t), Clock: clock.Real{}, Raw: &raw, Sink: &sink}
	outcome, err := Engine{}.Run(t.Context(), env, job)
	return outcome, &sink, err
}

func TestSuite(t *testing.T) { // alone, since it counts goroutines
	server := postgrestest.Start(t)
	load := specOf(with(t, server, "clients: 2\n"))
	load.Prefill = true
	for range 2 { // another time there is nothing to do
		if outcome, _, err := run(t, load); err != nil || outcome.Reports != 1 {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte(with(t, server, "clients: 4\nthreads: 2\n")),
		Faulty: []byte("client: 2\nscript: tpcb\nscale: 0\nrate: nan\nmode: none\nlate: soon\nconnect: 7\nserver: {uri: x}\n" +
			"scripts:\n- {weight: 0, text: x, builtin: tpcb-like}\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "client"; did you mean "clients"?`,
			`suite.cfg:2:9: script: "tpcb" is none of select-only, simple-update, tpcb-like`,
			`suite.cfg:3:8: scale: "0" is no whole number from 1 on`,
			`suite.cfg:4:7: rate: "nan" is no number of transactions per second`,
			`suite.cfg:5:7: mode: "none" is none of simple, extended, prepared`,
			`suite.cfg:6:7: late: `,
			`suite.cfg:7:10: connect: "7" is neither true nor false`,
			`suite.cfg:8:10: server: unknown key "uri"; did you mean "url"?`,
			`suite.cfg:10:12: scripts: weight: "0" is no whole number from 1 on`,
			`suite.cfg:10:3: scripts: give a builtin or a text`,
			`suite.cfg: script and scripts: give one of them`,
		},
		Refused:      []byte(with(t, server, "scale: 2\n")),
		RefusedWords: []string{"has pgbench of scale 1, and the load wants 2"},
		Noise:        []byte("connection lost: why\n{\"elapsed_ns\": 1}\n"),
	}.Run(t)
}

// The server's certificate is held against the authorities of a file, which reaches the machine with the password.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	ca, other := server.TLS()
	shown := "0"
	of := func(authority string) workload.Spec {
		return specOf(strings.Replace(with(t, server, "initialise: never\nscripts: [{name: s, weight: 1, text: SELECT 1 / "+
			"((client_dn IS NOT NULL)::int + 1 - "+shown+") FROM pg_stat_ssl WHERE pid = pg_backend_pid();}]\n"),
			"/postgres\"", "/postgres?sslmode=verify-full&channel_binding=require&sslrootcert="+authority+"\"", 1))
	}
	outcome, sink, err := run(t, of(ca))
	if err != nil || outcome.Errors != 0 || sink.Reports[len(sink.Reports)-1].Ops[0].Ops < 10 {
		t.Errorf("%+v, %v", outcome, err)
	}
	shown = "1" // the client's own certificate, else a division by zero
	mine := "&sslcert=" + filepath.Join(server.Sockets, "server.crt") + "&sslkey=" +
		filepath.Join(server.Sockets, "server.key")
	if outcome, _, err := run(t, of(ca+mine)); err != nil || outcome.Errors != 0 {
		t.Errorf("with a certificate: %+v, %v", outcome, err)
	}
	for authority, want := range map[string]string{
		ca: "division by zero", ca + mine + "none": "sslkey: open ",
		other: "?sslrootcert=FILE", ca + "none": "sslrootcert: open " + ca + "none",
	} {
		if _, _, err := run(t, of(authority)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// An open loop has response times, and service times beside them.
func TestOpenLoop(t *testing.T) {
	server := postgrestest.Start(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good: []byte(with(t, server, "clients: 4\nrate: 200\nlate: 5ms\ndrop: 1s\n"+
			"scripts:\n- {builtin: select-only, weight: 2}\n- {name: other, text: \"SELECT 1;\"}\n")),
		Faulty: []byte("clients: 0.5\nscripts:\n- {text: \"\\\\set x 1 +\"}\n- {name: a b, builtin: tpcb-like}\n"),
		Objections: []string{
			`suite.cfg:1:10: clients: "0.5" is no whole number from 1 on`,
		},
		Noise: []byte("{}\n"),
	}.Run(t)
}

// What the job as a whole objects to has the lines of its scripts.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"scripts:\n- {text: \"\\\\set x 1 +\\nSELECT 1;\\n\\\\if\"}": "script-1:1: \\set x: an expression is missing",
		"scripts:\n- {name: a b, text: SELECT 1}":                    `script "a b": want a name`,
		"think_time: 5ms\nrate: 7":                                   "think_time: arrivals come on a schedule",
		"late: 1s":                                                   "they need a rate",
		"arrivals: constant":                                         "arrivals: without a rate",
		"think_times: constant":                                      "think_times: there is no think_time",
		"clients: 1\nthreads: 2":                                     "threads: 2, more than the 1 clients",
		"- a":                                                        "load.yml:1:1: want pairs such as",
		"a: b: c":                                                    "load.yml:1:1: ",
		"mode: [a]":                                                  "load.yml:1:7: mode: want one value",
		"variables: {a b: 1}":                                        `variable "a b": want letters`,
	} {
		_, err := Engine{}.Command(specOf(text))
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	spec := specOf("")
	spec.Settings = []scenario.Setting{{Key: "clients", Value: "x"}}
	if _, err := (Engine{}).Command(spec); !strings.Contains(fmt.Sprint(err), "job_options: clients") {
		t.Errorf("%v", err)
	}
	spec = specOf("rate: 9\nclients: 300\narrivals: constant")
	spec.Settings = []scenario.Setting{{Key: "clients", Value: "400"}}
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]result.Stream{{Name: "clients", Noun: "group of clients", Depth: 400, Rate: 9, OpenLoop: true,
		Arrivals: result.ArrivalsEven, TimeBased: true,
		Runtime: time.Second}}, job.Streams); diff != "" || job.Latency != "response time" {
		t.Error(diff)
	}
}
