package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/secret"
	"plimsoll/scenario"
)

// read returns what an engine does with the text of its file.
func read(t testing.TB, text string) (Config, []scenario.Objection) {
	r := workload.Reading{Spec: workload.Spec{Config: []byte(text)}}
	ignored := workload.Option{Name: "clients", To: new(string)}
	if r.Read(Options(ignored)); r.Err() != nil {
		t.Skip("no mapping")
	}
	c := ReadServer(&r)
	if bad, ok := errors.AsType[*workload.ConfigError](r.Err()); ok {
		return c, bad.Objections
	}
	return c, nil
}

func source(t *testing.T, text string) secret.Source {
	t.Helper()
	s, err := secret.ParseSource(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Config{
		"clients: 8": {Database: OwnDatabase},
		"server: {vm_group: Database, settings: {shared_buffers: 1GB, jit: off}}\ndatabase: bench": {Group: "Database",
			Settings: map[string]string{"shared_buffers": "1GB", "jit": "off"}, Database: "bench"},
		"server: {vm_group: DB}": {Group: "DB", Database: OwnDatabase},
		`server: {url: "postgresql://app@127.0.0.1:5432/bench", password: "env:PGPASSWORD"}`: {
			URL: "postgresql://app@127.0.0.1:5432/bench", Password: source(t, "env:PGPASSWORD"), Database: "bench"},
		`server: {url: "postgres://app@/?host=/run/x&port=6000"}`: {URL: "postgres://app@/?host=/run/x&port=6000",
			Database: "app"},
		"server: {url: \"postgresql://app@db/\"}\ndatabase: Own Name": {URL: "postgresql://app@db/", Database: "Own Name"},
	} {
		got, objections := read(t, text)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(secret.Source{})); diff != "" || objections != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, objections, diff)
		}
	}
}

func TestReadObjections(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"server: here": {`1:9: server: want pairs such as {vm_group: Database} or {url: "postgresql://app@192.0.2.1/bench"}`},
		"server: {vmgroup: D, url: [1], password: hunter2}\ndatabase: 'Bench'": {
			`1:10: server: unknown key "vmgroup"; did you mean "vm_group"?`,
			"1:27: server: url: want one value",
			"1:42: server: password: a secret is not given as itself, where lists of processes and histories show it: give " +
				"env:NAME, file:PATH or command:PROGRAM ARGUMENT...",
			`2:11: database: "Bench": of a server of the run's own it has small letters, digits and _ only`},
		`server: {url: "mysql://app:hunter2@h1:99999/a/b?sslcert=xxxx", vm_group: D, settings: {a: 1}}`: {
			"1:15: server: url: want postgresql://USER@HOST:PORT/DATABASE, or a socket by ?host=/FOLDER",
			"1:64: server: vm_group is of a server that the run starts, and url names one of yours, which is never " +
				"reconfigured; leave one of them out",
			"1:77: server: settings is of a server that the run starts, and url names one of yours, which is never " +
				"reconfigured; leave one of them out"},
		`server: {url: "postgresql://app:hunter2@h1:99999/a/b?sslcrl=x"}`: {
			"1:15: server: url: it has a password, which lists of processes and histories show; leave it out and give " +
				"password: env:NAME or file:PATH",
			`1:15: server: url: "sslcrl" is no parameter that a load can have; known are application_name, ` +
				"channel_binding, connect_timeout, host, options, port, require_auth, sslcert, sslkey, sslmode, sslrootcert",
			`1:15: server: url: port "99999": want a whole number from 1 to 65535`,
			`1:15: server: url: database "/a/b": want one name`},
		`server: {url: "postgresql:///x"}`: {`1:15: server: url: want one host, not ""`,
			"1:15: server: url: it names no user; write postgresql://USER@HOST/DATABASE"},
		"server: {url: \"postgresql://a@h/x\"}\ndatabase: y": {`2:11: database: "y", and the URL says "x"; say it once`},
		"server: {settings: {jit_provider: x, oauth_validator_libraries: x}}": {
			"1:21: server: settings: jit_provider is not for a scenario to set",
			"1:38: server: settings: oauth_validator_libraries is not for a scenario to set",
		},
		"server: {settings: {archive_command: rm, port: 1, 'a b': 1, jit: off, jit: on, x: [1]}}": {
			"1:21: server: settings: archive_command is not for a scenario to set",
			"1:42: server: settings: port is not for a scenario to set",
			`1:51: server: settings: "a b" is no name of a setting`,
			"1:71: server: settings: jit is there twice",
			"1:83: server: settings: x: want one value"},
		"server: {password: 'env:A', vm_group: A, vm_group: B}": {
			"1:42: server: vm_group is there twice",
			"1:10: server: password is of a server that url names; a run's own server gets a password by itself"},
		"server: {runs_already: true}": {`1:10: server: unknown key "runs_already"; known are client_cpus, ` +
			`cpus, password, settings, url, vm_group`},
		"server: {cpus: 0-x, client_cpus: []}": {
			`1:16: server: cpus: "0-x" is no list of CPUs such as 0-3,8`,
			`1:34: server: client_cpus: want one value`},
	} {
		_, objections := read(t, text)
		err := &workload.ConfigError{File: "f", Objections: objections}
		got := strings.Split(strings.ReplaceAll(err.Error(), "f:1:", "1:"), "\n")
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "f:")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is quoted", text)
		}
	}
}

// Whatever a config says, reading it ends without a panic, and what is accepted makes a job and, where it is the run's
// own, a server.
func FuzzRead(f *testing.F) {
	f.Add("server: {vm_group: D, settings: {a: \"'\\\\\"}}\ndatabase: b")
	f.Add(`server: {url: "postgresql://app@h:1/b?options=-c%20x", password: "env:A"}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, objections := read(t, text)
		if objections != nil {
			return
		}
		spec := workload.Spec{Name: "w", Peers: []workload.Peer{{Address: "127.1.0.1"}}}
		if err := c.Apply(spec, &workload.Job{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, served := c.Peers(); served {
			if _, err := c.Server(spec); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
