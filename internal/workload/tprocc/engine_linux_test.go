package tprocc

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/postgres/postgrestest"
	"plimsoll/internal/tprocc"
	"plimsoll/internal/tprocc/dialects"
	"plimsoll/internal/workload"
	"plimsoll/internal/workload/workloadtest"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == tprocc.WorkCommand {
		config, err := os.Open(os.Args[2])
		if err == nil {
			err = tprocc.Work(context.Background(), config, os.Stdout, dialects.Of)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// with names a server of the test's.
func with(t *testing.T, s *postgrestest.Server, more string) string {
	t.Helper()
	t.Setenv("TPROCC_TEST_PASSWORD", postgrestest.Password)
	return fmt.Sprintf(`server: {url: "postgresql://%s@127.0.0.1:%d/postgres", password: env:TPROCC_TEST_PASSWORD}
%s`, postgrestest.User, s.Port, more)
}

func specOf(text string) workload.Spec {
	return workload.Spec{Name: "Load", ConfigFile: "load.yml", Config: []byte(text), Runtime: 2 * time.Second, Seed: 7,
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

func TestSuite(t *testing.T) {
	server := postgrestest.Start(t)
	good := with(t, server, "warehouses: 1\nusers: 2\n")
	if _, _, err := run(t, specOf(good)); err == nil || !strings.Contains(err.Error(), "load them first") {
		t.Errorf("%v", err)
	}
	load := specOf(good)
	load.Prefill = true
	for range 2 { // another time there is nothing to do
		outcome, sink, err := run(t, load)
		if err != nil || outcome.Reports == 0 {
			t.Fatalf("%+v, %v", outcome, err)
		}
		last := sink.Reports[len(sink.Reports)-1]
		if last.Values[0] != 1 || last.Values[1] != 0 || last.Ops[1].Ops != 1 {
			t.Errorf("%+v", last)
		}
	}
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte(good),
		Faulty: []byte("warehouse: 2\nusers: many\nkeying: 3\nthreads: 0\ndialect: oracle\nserver: {uri: x}\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "warehouse"; did you mean "warehouses"?`,
			`suite.cfg:2:8: users: "many" is no whole number`,
			`suite.cfg:3:9: keying: "3" is neither true nor false`,
			`suite.cfg:4:10: threads: "0" is no whole number above 0`,
			`suite.cfg:5:10: dialect: "oracle" is none of postgresql, mariadb, sqlserver`,
			`suite.cfg:6:10: server: unknown key "uri"; did you mean "url"?`,
		},
		Refused:      []byte(with(t, server, "warehouses: 2\n")),
		RefusedWords: []string{`schema "tprocc" has 1 warehouses, not 2`},
		Noise:        []byte("first deadlock, in payment of warehouse 1: why\n{\"elapsed_ns\": 1}\n"),
	}.Run(t)
}
