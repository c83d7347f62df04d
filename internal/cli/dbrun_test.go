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
		{"pg -f testdata/db/pay-day.sql@3 -f testdata/db/pay-day.sql -D sum=5", "name: pay-day-2", false},
		{"pgbench -f testdata/db/pay-day.sql@3 -D sum=5", "weight: 3", false},
		{"pg -f testdata/db/pay-day.sql@x", `"x" is no weight`, true},
		{"pg -f testdata/db/indented.sql", `text: " SELECT 1,\n        2;\n"`, false},
		{"pg -f testdata/db/none.sql", "none.sql", true},
		{"pg -D sum", `--define "sum": want NAME=VALUE`, true},
		{"tprocc -f testdata/db/pay-day.sql", "tprocc has no scripts", true},
		{"pg --select-only -f testdata/db/pay-day.sql", "give one of them", true},
		{"pg --sweep clients=1,2,4 --sweep mode=simple,prepared --repeat 3", "clients: {{ clients }}\n        mode: {{ mode }}",
			false},
		{"pg --sweep server.work_mem=1MB,64MB --server-setting fsync=off",
			`server: "{settings: {fsync: 'off', work_mem: '{{ work_mem }}'}}"`, false},
		{"tprocc --sweep clients=1,2 --repeat 2", "users: {{ clients }}", false},
		{"tprocc --sweep scale=1,2", "warehouses: {{ scale }}", false},
		{"pg --sweep scale=1,2 --server " + server, "initialise: always", false},
		{"pgbench --repeat 3", "repeats: 3", false},
		{"hammerdb --sweep clients=1,2 --server " + server, "virtual_users: {{ clients }}", false},
		{"hammerdb --sweep scale=1,2 --server " + server, "--sweep scale: hammerdb loads the schema", true},
		{"pg --sweep server.work_mem=1MB,64MB --server " + server, "yours is never reconfigured", true},
		{"pg --sweep clients=1,1", "1 is given twice", true},
		{"pg --sweep clients=1,2 --clients 3", "give one of them", true},
		{"pg --sweep clients", "want NAME=VALUE,VALUE", true},
		{"pg --sweep client=1,2", `did you mean "clients"`, true},
		{"pg --sweep script={%x%},b", "is no plain value", true},
		{"pg --sweep clients=1,x", `clients: "x" is no whole number`, true},
		{"pg --sweep mode=simple,preparred --repeat 2", `mode: "preparred" is none of`, true},
		{"pg --repeat -1", "--repeat -1: want", true},
		{"tprocc --server mariadb://app@192.0.2.1:3307/bench", "dialect: mariadb\nserver:\n    url: mariadb://app@192.0.2.1:3307\n",
			false},
		{"tprocc --server mysql://app@192.0.2.1/x --database bench --password env:PW", "password: env:PW", false},
		{`tprocc --database bench --option dialect=mariadb --option server={"url":"mariadb://app@h","password":"env:PW"}`,
			"url: mariadb://app@h\n", false},
		{"tprocc --server mariadb://app:horse@192.0.2.1/bench", "it has a password", true},
		{"tprocc --server mariadb://app@192.0.2.1", "it names no database", true},
		{"tprocc --server mariadb://192.0.2.1/bench", "want mariadb://USER@HOST:PORT/DATABASE", true},
		{"tprocc --server mariadb://app@h/bench --server-setting a=b", "of a server that the run makes", true},
		{"pg --server mariadb://app@h/bench", "postgresql://", true},
		{"pg --rate 0", "--rate 0: want a number", true},
		{"pg -f testdata/db/bad.sql", "plimsoll: testdata/db/bad.sql:2: \\sett is no command", true},
		{"pg -f testdata/db/empty.sql", `--file "testdata/db/empty.sql": it is empty`, true},
		{"pg --option mode=odd", `plimsoll: --option mode: "odd" is none of simple`, true},
		{"tproch --option runs=2", `plimsoll: --option runs: unknown key "runs"`, true},
		{"tproch --scale 0.015", "plimsoll: db run: --scale: ", true},
		{"pg -f testdata/db/pay-day.sql -D 9x=1", "plimsoll: db run: --define: ", true},
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
		if c.bad && strings.Contains(text, "load.yml") {
			t.Errorf("%s: it names a file that nobody wrote: %s", c.args, text)
		}
		if strings.Contains(out.String()+errs.String(), "horse") {
			t.Errorf("%s: its password is printed", c.args)
		}
		if strings.HasPrefix(c.args, "hammerdb") && strings.Contains(text, "PrefillRun") {
			t.Errorf("%s: HammerDB makes its tables itself", c.args)
		}
	}
	// On a user's server tables are made for built-in scripts, and for nothing else.
	for args, made := range map[string]bool{
		"pg": true, "pgbench": true, "pg --option initialise=never": false, "pgbench --option initialise=never": false,
		"pg -f testdata/db/pay-day.sql": false, "pgbench -f testdata/db/pay-day.sql": false,
		"pg -f testdata/db/pay-day.sql --option initialise=missing":      true,
		"pgbench -f testdata/db/pay-day.sql --option initialise=missing": true,
	} {
		a, out, errs := quiet(t)
		code := a.main(append([]string{"db", "run", "--dry-run", "--server", server}, strings.Fields(args)...))
		if code != 0 || strings.Contains(out.String(), "PrefillRun") != made {
			t.Errorf("%s: exit code %d, makes tables: want %v: %s%s", args, code, made, errs, out)
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
