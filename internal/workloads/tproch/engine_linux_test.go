package tproch

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/workloadtest"
	tproch "plimsoll/internal/workloads/tproch/driver"
	"plimsoll/scenario"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if code, worked := workloadtest.Worker(tproch.WorkCommand, tproch.Work); worked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// with names a server of the test's.
func with(t *testing.T, s *postgrestest.Server, more string) string {
	t.Helper()
	t.Setenv("TPROCH_TEST_PASSWORD", postgrestest.Password)
	return fmt.Sprintf("server: {url: \"postgresql://%s@127.0.0.1:%d/postgres\", "+
		"password: \"env:TPROCH_TEST_PASSWORD\"}\n%s", postgrestest.User, s.Port, more)
}

func specOf(text string) workload.Spec {
	return workload.Spec{Name: "Load", ConfigFile: "load.yml", Config: []byte(text), Seed: 7, SizeScale: 1,
		TimeScale: 1}
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
	if strings.Contains(raw.String()+fmt.Sprint(err), postgrestest.Password) {
		t.Error("it tells the password")
	}
	return outcome, &sink, err
}

func TestSuite(t *testing.T) {
	server := postgrestest.Start(t)
	// So many streams that a run outlasts its first report on any machine.
	good := with(t, server, "scale: 0.01\nstreams: 30\nrefresh: false\n")
	if _, _, err := run(t, specOf(good)); err == nil || !strings.Contains(err.Error(), "prefill the workload first") {
		t.Errorf("%v", err)
	}
	load := specOf(good)
	load.Prefill = true
	outcome, sink, err := run(t, load)
	if err != nil || outcome.Reports == 0 {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if last := sink.Reports[len(sink.Reports)-1]; last.Values[0] != 18630 || last.Ops[0].Bytes < 10<<20 {
		t.Errorf("%+v", last)
	}
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte(good),
		Faulty: []byte("scales: 2\nscale: 1.5\nstreams: -1\nrefresh: maybe\nserver: {uri: x}\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "scales"; did you mean "scale"?`,
			`suite.cfg:2:8: scale: 1.5 is not a whole number, as scales beyond 1 are; take 2`,
			`suite.cfg:3:10: streams: "-1" is no whole number from 0 to 100`,
			`suite.cfg:4:10: refresh: "maybe" is neither true nor false`,
			`suite.cfg:5:10: server: unknown key "uri"; did you mean "url"?`,
		},
		Refused:      []byte(with(t, server, "scale: 1\n")),
		RefusedWords: []string{"the database holds scale 0.01, not 1"},
		Noise:        []byte("plan of query 1: \"Sort\"\n{\"elapsed_ns\": 1}\n"),
	}.Run(t)
}

// Whatever a config says, it is refused with a place and a reason, or a job is made of it.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{"", "scale: 10\nstreams: 3\n", "scale: .nan\n", "scale: 1e300\n", "- 1\n",
		"scale: {a: b}\n", "server: {vm_group: Database}\nrefresh: no\nreload: true\n", "scale: &a 1\nstreams: *a\n",
		"scale: 1\nscale: 2\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec := specOf(text)
		err := Engine{}.Validate(spec)
		if err != nil && !strings.HasPrefix(err.Error(), "load.yml:") {
			t.Error(err)
		}
		c, _ := Engine{}.Read(spec)
		if err == nil && c.job.Check() != nil {
			t.Error(c.job.Check())
		}
	})
}

func TestRun(t *testing.T) {
	server := postgrestest.Start(t)
	spec := specOf(with(t, server, "scale: 0.01\nstreams: 3\n"))
	spec.Prefill = true
	if _, _, err := run(t, spec); err != nil {
		t.Fatal(err)
	}
	spec.Prefill, spec.Runtime = false, 5*time.Minute
	outcome, sink, err := run(t, spec)
	if err != nil || outcome.Errors != 0 {
		t.Fatalf("%+v, %v", outcome, err)
	}
	last := sink.Reports[len(sink.Reports)-1]
	for i, c := range last.Ops {
		want := uint64(1) // of the power run
		if i >= len(last.Ops)/2 {
			want = 3 // of the streams
		}
		if c.Ops != want {
			t.Errorf("%s: %d", tproch.OperationNames()[i], c.Ops)
		}
	}
	var positive []bool
	for _, v := range last.Values {
		positive = append(positive, v > 0)
	}
	want := []bool{true, true, true, true, true, false, false, false, false, false, false, false}
	if d := cmp.Diff(want, positive); d != "" {
		t.Errorf("%v: %s", last.Values, d)
	}
}

// A scenario says by job_options which server it is, as with the other loads on databases.
func TestServerAmongOptions(t *testing.T) {
	spec := specOf("")
	spec.Settings = []scenario.Setting{{Key: "server", Value: "{vm_group: DB}"}, {Key: "database", Value: "bench"}}
	c, err := Engine{}.Read(spec)
	if err != nil || c.server.Group != "DB" || c.server.Database != "bench" {
		t.Errorf("%v, %+v", err, c.server)
	}
}
