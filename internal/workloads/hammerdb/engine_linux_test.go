package hammerdb

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if code, worked := workloadtest.Worker(hammer.WorkCommand, hammer.Work); worked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// fake is a folder with a hammerdbcli that prints what a HammerDB would: HammerDB itself is not needed.
func fake(t *testing.T, script string) string {
	t.Helper()
	folder := t.TempDir()
	text := "#!/bin/sh\n[ \"$1\" = auto ] && [ -f \"$2\" ] || { echo Usage; exit 2; }\n" + script
	program := filepath.Join(folder, "hammerdbcli")
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil { // a program
		t.Fatal(err)
	}
	return folder
}

const queries = `echo "HammerDB CLI v4.12"
for q in 14 2 9 20; do sleep 0.2; echo "Vuser 1:query $q completed in 0.$q seconds"; done
echo "Vuser 1:Completed 1 query set(s) in 2 seconds"
echo "Vuser 1:Geometric mean of query times returning rows (4) is \"0.16000\""
echo "Vuser 1:FINISHED SUCCESS"
`

func TestSuite(t *testing.T) {
	needs.Time(t)
	folder, broken := fake(t, queries), fake(t, "echo 'Error in Virtual User 1: no tables'\n")
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte("benchmark: tproch\nfolder: " + folder + "\n"),
		Faulty: []byte("users: 2\nbenchmark: tpcc\nrampup: 90s\nsettings: {tpcc: {pg_pass: x, pg_duration: 5, pg_dbase: \"a}b\"}}\n" +
			"passwords: {pg_pass: tiger, pg_user: \"env:A\"}\nfolder: here\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "users"; known are benchmark`,
			`suite.cfg:2:12: benchmark: "tpcc" is none of tprocc, tproch`,
			`suite.cfg:3:9: rampup: "90s" is no number of whole minutes such as 2m`,
			`suite.cfg:4:19: settings: pg_pass is a password: give passwords: {pg_pass: "env:NAME"}`,
			`suite.cfg:4:31: settings: pg_duration follows from the keys of this file`,
			`suite.cfg:4:57: settings: pg_dbase: want one value on one line, without braces`,
			`passwords: pg_pass: a secret is not given as itself`,
			`passwords: "pg_user" is none of HammerDB's names for one`,
			`folder: "here" is no path from the root`,
		},
		Refused:      []byte("benchmark: tproch\nfolder: " + broken + "\n"),
		RefusedWords: []string{"no set of queries was completed", "Error in Virtual User 1: no tables"},
		Noise:        []byte("0.100 HammerDB CLI v4.12\nnothing\n"),
	}.Run(t)
}

// timed prints as a timed test does: settings with their passwords, the counter, the result, a time profile whose
// summary counts twice, and a database of jobs with the password in clear.
const timed = `echo "HammerDB CLI v4.12"
[ -d "$TMP" ] && [ "$(stat -c %a "$TMP")" = 700 ] || exit 3
echo "Changed tpcc:pg_pass from tpcc to $PLIMSOLL_pg_pass for PostgreSQL"
echo " pg_pass               = $PLIMSOLL_pg_pass"
echo "$PLIMSOLL_pg_pass" > "$TMP/hammer.DB"
echo "Vuser 1:cannot say $PLIMSOLL_pg_pass aloud"
grep -q 'diset tpcc pg_pass $::env(PLIMSOLL_pg_pass)' "$2" && ! grep -q "$PLIMSOLL_pg_pass" "$2" || exit 4
echo "Vuser 1:Beginning rampup time of 1 minutes"
echo "0 PostgreSQL tpm"; sleep 0.1
echo "11 PostgreSQL tpm"; sleep 0.1
echo "Vuser 1:Timing test period of 1 in minutes"
echo "Vuser 2:Payment Procedure Error set RAISEERROR for Details"
sleep 0.1; echo "23000 PostgreSQL tpm"; sleep 0.1
echo "23400 PostgreSQL tpm"; sleep 0.1
echo "Vuser 1:Test complete, Taking end Transaction Count."
echo "12 PostgreSQL tpm"
echo "Vuser 1:2 Active Virtual Users configured"
echo "Vuser 1:TEST RESULT : System achieved 10000 NOPM from 23200 PostgreSQL TPM"
echo "ALL VIRTUAL USERS COMPLETE"
cat > "$TMP/hdbxtprofile.log" <<'END'
PostgreSQL Hammerdb Time Profile Report @ Sun Nov 22 12:00:00 UTC 2026
>>>>> VIRTUAL USER 2 : ELAPSED TIME : 480ms
>>>>> PROC: NEWORD
CALLS: 4000	MIN: 0.500ms	AVG: 1.000ms	MAX: 9.000ms	TOTAL: 4000.000ms
P99: 4.000ms	P95: 2.000ms	P50: 0.800ms	SD: 1000.000	RATIO: 50.000%
>>>>> VIRTUAL USER 3 : ELAPSED TIME : 490ms
>>>>> PROC: NEWORD
CALLS: 6000	MIN: 0.400ms	AVG: 1.000ms	MAX: 8.000ms	TOTAL: 6000.000ms
P99: 5.000ms	P95: 3.000ms	P50: 0.900ms	SD: 1000.000	RATIO: 50.000%
>>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 60000ms
>>>>> PROC: NEWORD
CALLS: 20000	MIN: 0.400ms	AVG: 1.000ms	MAX: 9.000ms	TOTAL: 20000.000ms
P99: 4.500ms	P95: 2.500ms	P50: 0.850ms	SD: 1000.000	RATIO: 100.000%
END
`

const password = "correct horse"

// run does one job on a fake and gives what came of it; the machine's folder must not have the password afterwards.
func run(t *testing.T, script, config string) (*workloadtest.Recorder, workload.Job, string, error) {
	t.Helper()
	t.Setenv("PLIMSOLL_TEST_PASSWORD", password)
	host := workloadtest.NewHost(t)
	if !strings.Contains(config, "passwords:") {
		config += "passwords: {pg_pass: \"env:PLIMSOLL_TEST_PASSWORD\"}\n"
	}
	job, err := Engine{}.Command(workload.Spec{Name: "Load", VM: "vm", ConfigFile: "load.yml",
		Config:  []byte("folder: " + fake(t, script) + "\n" + config),
		Runtime: time.Minute, SizeScale: 1, TimeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	var sink workloadtest.Recorder
	var raw bytes.Buffer
	_, err = Engine{}.Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &raw, Sink: &sink}, job)
	for name, data := range job.Files {
		if bytes.Contains(data, []byte(password)) {
			t.Errorf("%s has the password", name)
		}
	}
	if strings.Contains(strings.Join(job.Command.Argv, " ")+strings.Join(job.Command.Env, " ")+raw.String(), password) {
		t.Error("the password is among arguments or in the raw output")
	}
	left, _ := filepath.Glob(filepath.Join(host.Dir, "Load", "*"))
	for _, name := range left {
		data, _ := os.ReadFile(name)
		if base := filepath.Base(name); bytes.Contains(data, []byte(password)) || base == "passwords" || base == "tmp" {
			t.Errorf("%s is still there", name)
		}
	}
	return &sink, job, raw.String(), err
}

// A timed test gives NOPM and TPM, the counter's course of the time that is timed, calls of users and not of the
// summary over the time that users ran, and the errors that HammerDB's procedures swallowed.
func TestTimed(t *testing.T) {
	sink, job, raw, err := run(t, timed, "virtual_users: 2\ntime_profile: true\n")
	if err != nil || len(sink.Reports) != 4 {
		t.Fatalf("%v: %+v\n%s", err, sink.Reports, raw)
	}
	values := map[string]float64{}
	last := sink.Reports[3]
	// What the users' profile says, unless this machine was so slow that the counter came later.
	ran := max(485*time.Millisecond, sink.Reports[2].Elapsed+time.Millisecond)
	if last.Elapsed != ran || last.Errors != 1 || last.Time.IsZero() ||
		!last.Time.Equal(sink.Reports[1].Time.Add(last.Elapsed-sink.Reports[1].Elapsed)) {
		t.Errorf("the users ran for %v, to %v, with %d errors", last.Elapsed, last.Time, last.Errors)
	}
	for i, m := range job.Measures {
		if v := last.Values[i]; v == v {
			values[m.Name] = v
		}
	}
	delete(values, counterMeasure) // of the moment between its last sample and the end
	if d := cmp.Diff(map[string]float64{"NOPM": 10000, "TPM": 23200, "neword_min": 0.4, "neword_max": 9,
		"neword_p50": 0.85, "neword_p95": 2.5, "neword_p99": 4.5}, values); d != "" {
		t.Error(d)
	}
	if got, want := last.Ops[0], (workload.Counters{Ops: 10000, Seconds: 10}); got != want || !last.Final {
		t.Errorf("%+v, want %+v", got, want)
	}
	if a, b := sink.Reports[1].Values[2], sink.Reports[2].Values[2]; a != 23000 || b != 23400 {
		t.Errorf("the counter's course is %v, %v", a, b)
	}
	warned := strings.Join(sink.Warnings, "\n")
	if len(sink.Warnings) != 2 || !strings.Contains(warned, "20000 calls of neword, its users 10000") ||
		!strings.Contains(warned, "1 call of HammerDB's procedures failed") {
		t.Errorf("warnings: %q", sink.Warnings)
	}
	if !strings.Contains(raw, "cannot say *** aloud") {
		t.Errorf("the raw output is\n%s", raw)
	}
}

// The counter's mean is that of all the time that was timed, whether or not it was read at its end.
func TestCounterToTheEnd(t *testing.T) {
	job, err := Engine{}.Command(workload.Spec{Name: "Load", Config: []byte("virtual_users: 2\n"),
		Runtime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		last string
		want float64
	}{
		"read within it":    {"60.0 300 PostgreSQL tpm\n60.1 Vuser 1:Test complete, Taking end Transaction Count.\n", 200.02},
		"read just after":   {"60.0 Vuser 1:Test complete, Taking end Transaction Count.\n60.1 300 PostgreSQL tpm\n", 200},
		"read long after":   {"42.0 Vuser 1:Test complete, Taking end Transaction Count.\n60.0 90 PostgreSQL tpm\n", 152.86},
		"read not any more": {"60.0 Vuser 1:Test complete, Taking end Transaction Count.\n", 170},
	} {
		t.Run(name, func(t *testing.T) {
			raw := "0.0 Vuser 1:Timing test period of 1 in minutes\n0.0 0 PostgreSQL tpm\n20.0 100 PostgreSQL tpm\n" +
				"40.0 200 PostgreSQL tpm\n" + c.last +
				"61.0 Vuser 1:TEST RESULT : System achieved 91 NOPM from 210 PostgreSQL TPM\n"
			var sink workloadtest.Recorder
			if _, err := (Engine{}).Parse(job.Declared, strings.NewReader(raw), &sink); err != nil {
				t.Fatal(err)
			}
			sum, last := 0.0, 0.0
			for _, r := range sink.Reports {
				at := r.Elapsed.Seconds()
				for i, m := range job.Measures {
					if m.Name == counterMeasure {
						sum += r.Values[i] * (at - last)
					}
				}
				last = at
			}
			if mean := sum / last; math.Abs(mean-c.want) > 0.01 {
				t.Errorf("the mean is %v, want %v", mean, c.want)
			}
		})
	}
}

// What HammerDB calls success is none where a user failed, no result was stated, or the ratio is odd.
func TestTraps(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"a user failed": {"echo 'Vuser 1:TEST RESULT : System achieved 10 NOPM from 23 PostgreSQL TPM'\n" +
			"echo 'Vuser 2:FINISHED FAILED'\necho 'ALL VIRTUAL USERS COMPLETE'\n", "1 virtual user ended with FINISHED FAILED"},
		"its own words first": {"echo 'Error in Virtual User 1: Connection to database failed'\necho 'no such host'\n" +
			"echo 'Vuser 1:FINISHED FAILED'\n", "HammerDB: Error in Virtual User 1: Connection to database failed; no such " +
			"host; 1 virtual user ended"},
		"Tcl's trace": {"echo 'While loading module \"comm\"...'\necho 'no socket: denied'\necho '    while executing'\n" +
			"echo 'socket -server'\nexit 1\n", `HammerDB: While loading module "comm"... no socket: denied; there is no`},
		"no result":  {"echo 'ALL VIRTUAL USERS COMPLETE'\n", "there is no TEST RESULT"},
		"an old one": {"echo 'Vuser 1:TEST RESULT : System achieved 51 PostgreSQL TPM at 10 NOPM'\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sink, _, raw, err := run(t, c.script, "")
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				return
			}
			warned := strings.Join(sink.Warnings, "\n")
			if err != nil || !strings.Contains(warned, "51 TPM over 10 NOPM is 5.1") {
				t.Errorf("%v, %q\n%s", err, sink.Warnings, raw)
			}
		})
	}
}

// Passwords and servers are among HammerDB's settings where its dictionaries have them; what a benchmark does not take
// is refused.
func TestScript(t *testing.T) {
	for _, c := range []struct{ config, wants, host string }{
		{"database: mssqls\npasswords: {mssqls_pass: \"env:A\"}\nsettings: {connection: {mssqls_server: a, " +
			"mssqls_linux_server: b}}\n", "diset connection mssqls_pass $::env(PLIMSOLL_mssqls_pass)\n", "b"},
		{"database: maria\npasswords: {maria_pass: \"env:A\"}\nsettings: {connection: {maria_host: c}}\n",
			"diset tpcc maria_pass $::env(PLIMSOLL_maria_pass)\n", "c"},
		{"benchmark: tproch\npasswords: {pg_tpch_pass: \"env:A\"}\nquery_sets: 3\n",
			"diset tpch pg_tpch_pass $::env(PLIMSOLL_pg_tpch_pass)\n", "127.0.0.1"},
	} {
		parsed, err := (Engine{}).Read(workload.Spec{Config: []byte(c.config)})
		if err != nil || parsed.host() != c.host || !strings.Contains(parsed.script(time.Minute), c.wants) {
			t.Errorf("%v: %s: want %q at %s\n%s", err, parsed.host(), c.wants, c.host, parsed.script(time.Minute))
		}
	}
	for _, config := range []string{"benchmark: tproch\nrampup: 1m", "benchmark: tproch\ntime_profile: true",
		"query_sets: 2"} {
		if _, err := (Engine{}).Read(workload.Spec{Config: []byte(config)}); err == nil {
			t.Errorf("%q is not refused", config)
		}
	}
}

// Where HammerDB is not, the check says what to do.
func TestCheckTool(t *testing.T) {
	host := workloadtest.NewHost(t)
	folder := fake(t, "")
	tool, err := Engine{}.CheckTool(t.Context(), host, workload.Spec{Config: []byte("folder: " + folder)})
	want := workload.Tool{Path: folder + "/hammerdbcli", Version: "told when it runs"}
	if tool != want || err != nil {
		t.Errorf("%+v, %v", tool, err)
	}
	_, err = Engine{}.CheckTool(t.Context(), host, workload.Spec{Config: []byte("folder: /nowhere")})
	if err == nil || !strings.Contains(err.Error(), "unpack HammerDB") {
		t.Error(err)
	}
}

// Whatever is in the output, reports are in order and cumulative, and none comes twice.
func FuzzParse(f *testing.F) {
	f.Add([]byte("0.1 0 PostgreSQL tpm\n10.2 5 PostgreSQL tpm\n11 Vuser 1:TEST RESULT : System achieved 1 NOPM from 2 X TPM\n"), true)
	f.Add([]byte("1 Vuser 1:query 2 completed in 0.5 seconds\n1 Vuser 1:query 2 completed in 1e999 seconds"), false)
	f.Add([]byte("2 >>>>> VIRTUAL USER 2 : ELAPSED TIME : 6ms\n2 >>>>> PROC: NEWORD\n2 CALLS: 1 MIN: 0.1ms"), true)
	f.Fuzz(func(t *testing.T, data []byte, timed bool) {
		c := &config{benchmark: "tproch", profile: true}
		d := c.declared()
		d.Format = []byte(`{"queries":true}`)
		if timed {
			c.benchmark = "tprocc"
			d = c.declared()
			d.Format = []byte(`{}`)
		}
		var sink workloadtest.Recorder
		out, err := Engine{}.Parse(d, io.NopCloser(bytes.NewReader(data)), &sink)
		if out.Reports != len(sink.Reports) || err == nil && out.Reports == 0 {
			t.Fatalf("%d reports, %+v, %v", len(sink.Reports), out, err)
		}
		var last workload.Report
		for i, r := range sink.Reports {
			if i > 0 && r.Elapsed <= last.Elapsed || r.Ops.Total() < last.Ops.Total() || r.Errors < last.Errors ||
				last.Final || len(r.Values) != len(d.Measures) {
				t.Fatalf("%+v after %+v", r, last)
			}
			last = r
		}
	})
}
