package cli

import (
	"strings"
	"testing"
)

// Every load of db run is a scenario that is valid, with and without a server; what a load does not take is refused,
// and no number means another one.
func TestDBRunScenarios(t *testing.T) {
	const server = "postgresql://app@192.0.2.1:5433/bench"
	for _, c := range []struct {
		args string
		says string // of an error; or of the scenario
		bad  bool
	}{
		{"pgbench --rate 9", "rate: 9", false},
		{"pg --scale 3 --server " + server, "workload.PrefillRun", false},
		{"tprocc --scale 2", "warehouses: 2", false},
		{"tproch --scale 0.1", "scale: 0.1", false},
		{"hammerdb --clients 4 --server " + server + "?sslmode=require", "pg_dbase: bench", false},
		{"hammerdb --database other --password env:PW --server " + server, "pg_pass: env:PW", false},
		{`hammerdb --option database=maria --option settings={"connection":{"maria_host":"192.0.2.2"}}`, "virtual_users: 1",
			false},
		{`pg --option server={"client_cpus":1} --server ` + server, "client_cpus: 1\n    url: " + server, false},
		{`pg --option server={"url":"postgresql://app:horse@h/x"}`, "its address is --server URL", true},
		{"hammerdb", "give --server URL", true},
		{"hammerdb --scale 1 --server " + server, "--scale: hammerdb loads the schema", true},
		{"hammerdb --server postgresql://app@/bench?host=/tmp", "HammerDB wants postgresql://USER@HOST:PORT/DATABASE",
			true},
		{"hammerdb --server-setting a=b --server " + server, "yours is never reconfigured", true},
		{"pg --rate 0", "--rate 0: want a number", true},
		{"pg --rate NaN", "--rate NaN: want a number", true},
		{"pg --duration 1500ms", "--duration 1500ms: want whole seconds", true},
	} {
		a, out, errs := quiet(t)
		code := a.main(append([]string{"db", "run", "--dry-run"}, strings.Fields(c.args)...))
		text := out.String()
		if c.bad {
			text = errs.String()
		}
		if (code != 0) != c.bad || !strings.Contains(text, c.says) {
			t.Errorf("%s: exit code %d; want %q: %s%s", c.args, code, c.says, errs, text)
		}
		if strings.Contains(out.String()+errs.String(), "horse") {
			t.Errorf("%s: its password is printed", c.args)
		}
		if strings.HasPrefix(c.args, "hammerdb") && strings.Contains(text, "PrefillRun") {
			t.Errorf("%s: HammerDB makes its tables itself", c.args)
		}
	}
}

// What is said of a server before and after a run is of the database that the run uses.
func TestDatabaseBesideAddress(t *testing.T) {
	for _, test := range []struct{ address, database, want string }{
		{"postgresql://app@h", "bench", "postgresql://app@h/bench"},
		{"postgresql://app@/?host=/run/x", "a b", "postgresql://app@/a%20b?host=/run/x"},
		{"postgresql://app@h:1/", "", "postgresql://app@h:1/"},
		{"postgresql://app@h/theirs", "bench", "postgresql://app@h/theirs"}, // the load's file objects to both
	} {
		if got := withDatabase(test.address, test.database); got != test.want {
			t.Errorf("%s and %s: %s, want %s", test.address, test.database, got, test.want)
		}
	}
}
