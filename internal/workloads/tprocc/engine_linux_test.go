package tprocc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/workloadtest"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/dialects"
	"plimsoll/scenario"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	work := func(ctx context.Context, job io.Reader, out io.Writer) error {
		return tprocc.Work(ctx, job, out, dialects.Of)
	}
	if code, worked := workloadtest.Worker(tprocc.WorkCommand, work); worked {
		os.Exit(code)
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
		Faulty: []byte("warehouse: 2\nusers: many\nkeying: 3\nthreads: 0\ndialect: oracle\nfirst_user: -1\nserver: {uri: x}\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "warehouse"; did you mean "warehouses"?`,
			`suite.cfg:2:8: users: "many" is no whole number`,
			`suite.cfg:3:9: keying: "3" is neither true nor false`,
			`suite.cfg:6:13: first_user: "-1" is no whole number from 0 on`,
			`suite.cfg:4:10: threads: "0" is no whole number from 1 on`,
			`suite.cfg:5:10: dialect: "oracle" is none of postgresql, mariadb, sqlserver`,
			`suite.cfg:7:10: server: unknown key "uri"; did you mean "url"?`,
		},
		Refused:      []byte(with(t, server, "warehouses: 2\n")),
		RefusedWords: []string{`schema "tprocc" has 1 warehouse, not 2`},
		Noise:        []byte("first deadlock, in payment of warehouse 1: why\n{\"elapsed_ns\": 1}\n"),
	}.Run(t)
	failures(t, server)
}

// failures are runs that have to fail, and say why.
func failures(t *testing.T, server *postgrestest.Server) {
	t.Helper()
	_, _, err := run(t, specOf(with(t, server, "users: 200\n")))
	if err == nil || !strings.Contains(err.Error(), "53300") || !strings.Contains(err.Error(), "use fewer clients") {
		t.Errorf("%v", err)
	}
	server.Exec("postgres", "UPDATE tprocc.warehouse SET w_ytd = w_ytd + 1")
	outcome, sink, err := run(t, specOf(with(t, server, "users: 2\n")))
	if err == nil || !strings.Contains(err.Error(), "the data are not consistent in 1 places: condition 1") {
		t.Errorf("%v", err)
	}
	last := sink.Reports[len(sink.Reports)-1]
	if outcome.Reports == 0 || !last.Final || last.Values[4] != 1 || last.Elapsed != 2*time.Second {
		t.Errorf("%+v", last)
	}
	wrong := with(t, server, "")
	t.Setenv("TPROCC_TEST_PASSWORD", "a wrong one")
	if _, _, err := run(t, specOf(wrong)); err == nil || !strings.Contains(err.Error(), "28P01") ||
		strings.Contains(err.Error(), "a wrong one") {
		t.Errorf("%v", err)
	}
}

const foreign = "dialect: mariadb\nserver: {url: \"mariadb://app@192.0.2.7:3306\", password: \"env:TPROCC_TEST_PASSWORD\"}\n" +
	"database: bench\nwarehouses: 3\nkeying: true\n"

// Of a job nothing but where the password is kept is in files, notes and arguments.
func TestCommand(t *testing.T) {
	t.Setenv("TPROCC_TEST_PASSWORD", "horse")
	spec := specOf(foreign + "first_user: 7\n")
	spec.Turn = 2 // two machines are before this one
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%s %v", job.Files, job); strings.Contains(text, "horse") {
		t.Errorf("the password is in %s", text)
	}
	homes := "user n, counted from 67, has its home in warehouse n mod 3 + 1, district n div 3 mod 10 + 1"
	want := tprocc.Job{Dialect: "mariadb", Warehouses: 3, Users: 30, First: 67, Keying: true, Threads: 2, Seed: 7,
		Duration: 2 * time.Second, Homes: homes, URL: "mariadb://app@192.0.2.7:3306", Database: "bench",
		PassFile: "Load/tprocc.password"}
	var got tprocc.Job
	if err := json.Unmarshal(job.Files["Load/tprocc.json"], &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || job.Latency != "response time" {
		t.Error(diff, job.Latency)
	}
	host := workloadtest.NewHost(t)
	if err := putPassword(t.Context(), host, job); err != nil {
		t.Fatal(err)
	}
	// Certificates reach the machine by names there.
	mine := filepath.Join(t.TempDir(), "mine.pem")
	if err := os.WriteFile(mine, []byte("an authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	job, err = Engine{}.Command(specOf(strings.Replace(foreign, ":3306", "?sslmode=verify-ca&sslrootcert="+mine, 1)))
	if err == nil {
		err = json.Unmarshal(job.Files["Load/tprocc.json"], &got)
	}
	if err == nil {
		err = putPassword(t.Context(), host, job)
	}
	there, read := os.ReadFile(filepath.Join(host.Dir, "Load", "root.crt"))
	if got.URL != "mariadb://app@192.0.2.7?sslmode=verify-ca&sslrootcert=Load%2Froot.crt" || string(there) != "an authority" {
		t.Errorf("%s: %q, %v, %v", got.URL, there, err, read)
	}
	// Without a password it is MariaDB's own variable, or empty.
	bare := specOf(strings.Replace(foreign, ", password: \"env:TPROCC_TEST_PASSWORD\"", "", 1))
	for _, password := range []string{"", "pony"} {
		t.Setenv("MYSQL_PWD", password)
		job, err := Engine{}.Command(bare)
		if err == nil {
			err = putPassword(t.Context(), host, job)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := target.ReadFile(t.Context(), host, "Load/tprocc.password", 0, 100)
		if err != nil || string(got) != password {
			t.Errorf("%q is put, want %q: %v", got, password, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		// Of a MariaDB of the run's own:
		"dialect: mariadb\nserver: {settings: {plugin_dir: x}}": "plugin_dir is not for a scenario to set",
		"dialect: mariadb\nserver: {settings: {datadir: /}}":    "datadir is not for a scenario to set",

		"- a list":           "want pairs such as",
		"users: [1]":         "users: want one value",
		"users: 1\nusers: 2": "users is there twice",
		"users: -3":          `users: "-3" is no whole number from 1 on`,
		"a: b: c":            "load.yml:1:1: ",
		"dialect: sqlserver": "server: sqlserver wants {url: sqlserver://USER@HOST:PORT",
		"dialect: sqlserver\nserver: {url: \"mariadb://app@h\"}\ndatabase: b":                       "want sqlserver://USER@HOST:PORT",
		"dialect: mariadb\nserver: {url: \"mariadb://app:x@h\"}\ndatabase: b":                       "it has a password",
		"dialect: mariadb\nserver: {url: \"mariadb://app@h\"}\ndatabase: b c":                       `database: "b c"`,
		"dialect: sqlserver\nserver: {url: \"sqlserver://a@h\", exporter: \"h:9182\"}\ndatabase: b": `exporter: "h:9182"`,
		"dialect: mariadb\nserver: {password: env:X}":                                               "it names none",
		"dialect: mariadb\nserver: {url: \"mariadb://app@h\"}\ndatabase: Bench":                     `others do not; want small letters`,
		"dialect: sqlserver\nserver: {vm_group: x}":                                                 `unknown key "vm_group"`,
	} {
		err := Engine{}.Validate(specOf(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), ":x@") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	spec := specOf("")
	spec.Runtime = 0
	if _, err := (Engine{}).Command(spec); err == nil || !strings.Contains(err.Error(), "give runtime_secs") {
		t.Errorf("%v", err)
	}
}

// Counters of a server that is no PostgreSQL are those of the exporter that the file names.
func TestCounters(t *testing.T) {
	page := "windows_mssql_sqlstats_batch_requests{mssql_instance=\"A\"} 7\n"
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, page)
	}))
	defer served.Close()
	config := "dialect: sqlserver\nserver: {url: \"sqlserver://a@h:1433\"}\ndatabase: b\n"
	if s, err := (Engine{}).Counters(specOf(config), nil); s != nil || err != nil {
		t.Fatal(s, err)
	}
	s, err := Engine{}.Counters(specOf(strings.Replace(config, "}", ", exporter: \""+served.URL+"/metrics\"}", 1)), nil)
	if err != nil || s.Where != "h:1433" || s.Name != "sqlserver" {
		t.Fatal(s, err)
	}
	defer s.Close()
	body, _, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != page {
		t.Errorf("%q %v", got, err)
	}
}

// A server of the run's own takes as many users as there are.
func TestOwnServer(t *testing.T) {
	server, err := Engine{}.Server(specOf("warehouses: 100\nkeying: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	settings := ""
	for name, data := range server.Files {
		if strings.HasSuffix(name, "/settings.conf") {
			settings = string(data)
		}
	}
	if !strings.Contains(settings, "max_connections = '1052'") {
		t.Errorf("%s", settings)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte("warehouses: 2\nusers: 3\nserver: {url: \"postgresql://a@h/b\"}\n"))
	f.Add([]byte(foreign))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec := specOf(string(data))
		err := Engine{}.Validate(spec)
		if _, err2 := (Engine{}).Command(spec); (err == nil) != (err2 == nil) && err != nil {
			t.Errorf("%v, and then %v", err, err2)
		}
	})
}

// An address of another dialect is named as that, and every number that is none is told of beside it.
func TestAddressOfAnotherDialect(t *testing.T) {
	t.Parallel()
	err := Engine{}.Validate(specOf("server: {url: \"mariadb://app@192.0.2.7\"}\nwarehouses: -1\n"))
	for _, want := range []string{"server: url: mariadb is another dialect; give dialect: mariadb as well",
		`warehouses: "-1" is no whole number from 1 on`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
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
