package hammerdb

import (
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/testkit/mariadbtest"
	"plimsoll/internal/testkit/postgrestest"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
)

// ordersTable makes the table that the count reads of HammerDB's schema.
const ordersTable = "CREATE TABLE district (d_next_o_id int); INSERT INTO district VALUES (3001), (3001)"

// ordersScript is a test of two seconds that raises the order numbers by 60 and says so of NOPM.
const ordersScript = `echo "HammerDB CLI v4.12"
echo "Transaction Counter Error: connection failed:Connection to database failed"
echo "Vuser 1:Timing test period of 1 in minutes"
sleep 1
%s
sleep 1
echo "Vuser 1:Test complete, Taking end Transaction Count."
sleep 0.5
echo "Vuser 1:2 Active Virtual Users configured"
echo "Vuser 1:TEST RESULT : System achieved %d NOPM from %d PostgreSQL TPM"
echo "ALL VIRTUAL USERS COMPLETE"
`

const mariaPassword = "passwords: {maria_pass: \"env:PLIMSOLL_TEST_PASSWORD\"}\n"

// New orders are read from the tables beside HammerDB's figure, of PostgreSQL and of MariaDB; one that is far from them
// is told, and a server that cannot be read is, too.
func TestOrders(t *testing.T) {
	pg, maria := postgrestest.Start(t), mariadbtest.Start(t)
	pg.Exec("postgres", ordersTable+";CREATE ROLE tpcc LOGIN PASSWORD '"+password+"'; GRANT SELECT ON district TO tpcc")
	mariadb := []string{"--no-defaults", "-S" + maria.Socket, "-uroot"}
	out, err := exec.Command("mariadb", append(mariadb, "-e", "CREATE DATABASE tpcc; USE tpcc; "+ordersTable+
		"; CREATE USER tpcc@'127.0.0.1' IDENTIFIED BY '"+password+"'; GRANT SELECT ON tpcc.* TO tpcc@'127.0.0.1'")...).
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const raise = `"UPDATE district SET d_next_o_id = d_next_o_id + 30"`
	psql := fmt.Sprintf("%s/psql -q '%s' -c %s", pg.Bin, pg.URL(), raise)
	client := "mariadb '" + strings.Join(mariadb, "' '") + "' tpcc -e " + raise
	config := func(database, keys string, port int) string {
		return fmt.Sprintf("database: %s\nport: %d\nsettings: {connection: {%[1]s_port: \"%[2]d\"}, tpcc: "+
			"{%[1]s_user: tpcc, %[1]s_dbase: %[3]s}}\n", database, port, keys)
	}
	for name, c := range map[string]struct {
		raise, config string
		nopm          int
		warned        []string // beside the counter's
	}{
		"PostgreSQL": {psql, config("pg", "postgres", pg.Port), 1800, nil},
		"MariaDB":    {client, config("maria", "tpcc", maria.Port) + mariaPassword, 1800, nil},
		"far from it": {psql, config("pg", "postgres", pg.Port), 9000,
			[]string{"HammerDB says 9000 NOPM, and the districts' order numbers rose by 60 in "}},
		"no table": {psql, config("pg", "template1", pg.Port), 1800,
			[]string{"new orders are not counted beside HammerDB's own figure: ERROR"}},
	} {
		t.Run(name, func(t *testing.T) {
			script := fmt.Sprintf(ordersScript, c.raise, c.nopm, c.nopm*23/10)
			sink, job, raw, err := run(t, script, c.config)
			if err != nil || len(sink.Reports) == 0 {
				t.Fatalf("%v\n%s", err, raw)
			}
			last := sink.Reports[len(sink.Reports)-1]
			values := map[string]float64{}
			for i, m := range job.Measures {
				values[m.Name] = last.Values[i]
			}
			want, at := math.NaN(), []float64(nil)
			for line := range strings.Lines(raw) {
				if stamp, text, _ := strings.Cut(line, " "); strings.HasPrefix(text, hammer.Counted) {
					seconds, _ := strconv.ParseFloat(stamp, 64) // the worker wrote it
					at = append(at, seconds)
				}
			}
			if len(at) == 2 {
				want = 60 / (at[1] - at[0]) * 60
			}
			got := values[countedMeasure]
			if none := math.IsNaN(want); none != (name == "no table") || math.IsNaN(got) != none ||
				math.Abs(got-want) > 1e-6 {
				t.Errorf("%v new orders a minute are counted, want %v\n%s", got, want, raw)
			}
			for _, w := range append(c.warned, "HammerDB's transaction counter does not run") {
				if !strings.Contains(strings.Join(sink.Warnings, "\n"), w) {
					t.Errorf("warnings are %q, want %q", sink.Warnings, w)
				}
			}
		})
	}
}
