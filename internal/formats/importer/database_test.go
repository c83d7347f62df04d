package importer

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/workloadtest"
)

// parts returns what the parts of a text come to, a line each: workload, concurrency, length, operations, values,
// errors and what the tool says failed.
func parts(t *testing.T, text string) (out []string) {
	t.Helper()
	all, err := Prepare("out.txt", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
	if err != nil {
		return []string{"refused: " + err.Error()}
	}
	for _, d := range all {
		var sink workloadtest.Recorder
		if _, err := Engines()[d.Engine].Parse(d.Declared, strings.NewReader(text), &sink); err != nil {
			t.Fatal(err)
		}
		last := sink.Reports[len(sink.Reports)-1]
		line := fmt.Sprintf("%s | %g at once | %d in %v", d.Workload, d.Concurrency, len(sink.Reports),
			last.Elapsed.Round(time.Millisecond))
		for i, o := range d.Declared.Operations {
			line += fmt.Sprintf(" | %s %d %.3gs", o.Name, last.Ops[i].Ops, last.Ops[i].Seconds)
		}
		for i, m := range d.Declared.Measures {
			if i < len(last.Values) && !math.IsNaN(last.Values[i]) && !strings.HasPrefix(m.Name, "tps") {
				line += fmt.Sprintf(" | %s=%g", m.Name, last.Values[i])
			}
		}
		if last.Errors > 0 {
			line += fmt.Sprintf(" | %d failed", last.Errors)
		}
		if d.Failure != "" {
			line += " | " + d.Failure
		}
		out = append(out, line)
	}
	return out
}

const (
	someSteps = "progress: 5.0 s, 20.0 tps, lat 1.000 ms stddev 0.1\nprogress: 10.0 s, 20.0 tps, lat 1.000 ms stddev 0.1\n"
	twoParts  = `SQL script 1: <builtin: TPC-B (sort of)>
 - weight: 1 (targets 25.0% of total)
 - 50 transactions (25.0% of total, tps = 5.0)
 - number of failed transactions: 1 (0.5%)
 - latency average = 4.000 ms
 - statement latencies in milliseconds and failures:
         0.001           0  \set aid random(1, 100)
         1.250           1  UPDATE a SET b = b + 1;
SQL script 2: scripts/My Reads.sql
 - weight: 3 (targets 75.0% of total)
 - 150 transactions (75.0% of total, tps = 15.0)
 - latency average = 2.000 ms
 - statement latencies in milliseconds and failures:
         0.500           0  SELECT 1
SQL script 3: other/My Reads.sql
 - weight: 1 (targets 0.0% of total)
 - 0 transactions (0.0% of total)
`
)

// totals returns what pgbench prints of a test of 10 s.
func totals(clients, done int) string {
	return fmt.Sprintf("transaction type: <builtin: select only>\nscaling factor: 1\nquery mode: simple\nnumber of "+
		"clients: %d\nnumber of threads: 1\nduration: 10 s\nnumber of transactions actually processed: %d\nlatency "+
		"average = 0.500 ms\ntps = %d.000000 (without initial connection time)\n", clients, done, done/10)
}

// What pgbench prints is read of all shapes: appended outputs are tests of their own, whether the two streams come in
// turn or one after another; scripts and statements are told apart; what failed is said to have failed.
func TestPgbenchTexts(t *testing.T) {
	t.Parallel()
	const abort = "pgbench: error: client 3 script 0 aborted in command 1 query 0: ERROR:  no such thing\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one": {totals(4, 200), []string{"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s"}},
		"three appended": {totals(1, 100) + totals(2, 200) + totals(4, 400), []string{
			"pgbench 1 client | 1 at once | 1 in 10s | transaction 100 0.05s",
			"pgbench 2 clients | 2 at once | 1 in 10s | transaction 200 0.1s",
			"pgbench 4 clients | 4 at once | 1 in 10s | transaction 400 0.2s"}},
		"with progress, CRLF": {strings.ReplaceAll(someSteps+totals(1, 200)+someSteps+totals(2, 200), "\n", "\r\n"),
			[]string{"pgbench 1 client | 1 at once | 2 in 10s | transaction 200 0.1s",
				"pgbench 2 clients | 2 at once | 2 in 10s | transaction 200 0.1s"}},
		"totals before progress": {totals(1, 200) + someSteps + totals(2, 200) + someSteps, []string{
			"pgbench 1 client | 1 at once | 2 in 10s | transaction 200 0.1s",
			"pgbench 2 clients | 2 at once | 2 in 10s | transaction 200 0.1s"}},
		"with heads": {strings.Repeat("pgbench (16.1)\n"+someSteps+totals(1, 200), 2),
			[]string{"pgbench 1 client | 1 at once | 2 in 10s | transaction 200 0.1s",
				"pgbench 1 client (2) | 1 at once | 2 in 10s | transaction 200 0.1s"}},
		"-t": {strings.ReplaceAll(totals(2, 300), "duration: 10 s", "number of transactions per client: 150"), []string{
			"pgbench 2 clients | 2 at once | 1 in 10s | transaction 300 0.15s"}},
		"scripts": {totals(4, 200) + twoParts, []string{
			"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s",
			"pgbench 4 clients, by script | 0 at once | 1 in 10s | tpcb-like 50 0.2s | my-reads 150 0.3s | my-reads-2 0 0s" +
				" | tpcb-like_failed=1 | tpcb-like_statement_1_update=1.25 | my-reads_statement_1_select=0.5 | 1 failed"}},
		"statements": {totals(4, 200) + "statement latencies in milliseconds:\n\t0.002\t\\set a 1\n\t0.4\tINSERT INTO t;\n",
			[]string{"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s | statement_1_insert=0.4"}},
		"aborted": {abort + totals(4, 200) + "pgbench: error: Run was aborted; the above results are incomplete.\n",
			[]string{"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s | 1 failed | aborted clients: 1 of 4, and what " +
				"was counted is incomplete; the first error: " + strings.Replace(strings.TrimSpace(abort), "script 0",
				"script 0 (<builtin: select only>)", 1)}},
		"cut short": {someSteps + "pgbench: fatal: no more room\n", []string{
			"pgbench | 0 at once | 2 in 10s | transaction 200 0.2s | it ended before its totals: " +
				"pgbench: fatal: no more room"}},
		"skipped, late, retried": {strings.Replace(totals(4, 200), "latency", "number of transactions "+
			"skipped: 30 (13%)\n"+
			"number of transactions above the 50.0 ms latency limit: 12/200 (6.000%)\n"+
			"number of transactions retried: 9 (4.5%)\n"+
			"total number of retries: 11\nrate limit schedule lag: avg 1.5 (max 49.5) ms\nlatency", 1), []string{
			"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s | skipped=30 | late=12 | retried=9 | retries=11" +
				" | schedule_lag_mean=1.5 | schedule_lag_max=49.5"}},
		"scripts whose counts hold failures": {strings.ReplaceAll(totals(4, 200)+twoParts, " - number of failed",
			" - number of transactions actually processed: 49 (tps = 4.9)\n - number of failed"), []string{
			"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s",
			"pgbench 4 clients, by script | 0 at once | 1 in 10s | tpcb-like 49 0.196s | my-reads 150 0.3s | my-reads-2 0 0s" +
				" | tpcb-like_failed=1 | tpcb-like_statement_1_update=1.25 | my-reads_statement_1_select=0.5 | 1 failed"}},
		"a log of a schedule": {"0 1 2000 0 1700000001 0 100\n0 2 skipped 0 1700000001 500000 9000\n" +
			"0 3 4000 0 1700000003 0 200 1\n1 4 serialization 0 1700000003 1 100 2\n", []string{
			"pgbench | 0 at once | 3 in 2.002s | transaction 2 0.006s | skipped=0 | 1 failed"}},
		"failed": {strings.Replace(totals(4, 200), "latency", "number of failed transactions: 7 (3.4%)\nlatency", 1),
			[]string{"pgbench 4 clients | 4 at once | 1 in 10s | transaction 200 0.1s | 7 failed"}},
	} {
		if d := cmp.Diff(c.want, parts(t, c.text)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// aTest is a timed test of HammerDB; its users' times are 60 and 61 s.
const aTest = `Vuser 1:Beginning rampup time of 0 minutes
Vuser 1:Timing test period of 1 in minutes
Vuser 2:Payment Procedure Error set RAISEERROR for Details
Vuser 1:2 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 600 NOPM from 1380 PostgreSQL TPM
`

const itsProfile = `PostgreSQL Hammerdb Time Profile Report @ Wed Nov 25 08:39:44 UTC 2026
>>>>> VIRTUAL USER 2 : ELAPSED TIME : 60000ms
>>>>> PROC: NEWORD
CALLS: 300	MIN: 0.8ms	AVG: 9ms	MAX: 170ms	TOTAL: 2700ms
>>>>> VIRTUAL USER 3 : ELAPSED TIME : 61000ms
>>>>> PROC: NEWORD
CALLS: 310	MIN: 0.9ms	AVG: 9ms	MAX: 160ms	TOTAL: 2790ms
>>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 60500ms
>>>>> PROC: NEWORD
CALLS: 610	MIN: 0.8ms	AVG: 9ms	MAX: 170ms	TOTAL: 5490ms
P99: 40ms	P95: 21ms	P50: 7ms	SD: 8805.613	RATIO: 47.8%
`

// What HammerDB 6 gives of a job as a whole says what the lines and objects of others do.
func TestHammerSummary(t *testing.T) {
	t.Parallel()
	const head = `{"schema": "hammerdb-job-report-v1", "report_hints": {"a": ["b"]}, "job": {"hdb_version": "v6.0", ` +
		`"timestamp": "2026-11-26 22:00:00"}, "benchmark_config": {"duration_minutes": 2}, `
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"tproc-c": {head + `"result": {"type": "tproc_c_result", "database_display": "PostgreSQL", ` +
			`"active_virtual_users": 2, "nopm": 1234567, "tpm": 2839504}, "transaction_count": {"series": [{"name": ` +
			`"PostgreSQL tpm", "database_display": "PostgreSQL", "points": [{"timestamp": "2026-11-26 22:00:10", "value": ` +
			`2800000}, {"timestamp": "2026-11-26 22:00:20", "value": 2900000}]}]}, "response_times": {"rows": [{"name": ` +
			`"NEWORD", "elapsed_ms": 120000, "calls": 610, "min_ms": 0.8, "max_ms": "170", "p99_ms": 40}]}}`, []string{
			"TPROC-C 2 VU | 2 at once | 1 in 2m0s | NOPM=1.234567e+06 | TPM=2.839504e+06",
			"TPROC-C profile | 0 at once | 1 in 2m0s | neword_max=170 | neword_min=0.8 | neword_p99=40",
			"transaction counter | 0 at once | 1 in 10s | TPM=2.9e+06"}},
		"tproc-h": {head + `"result": {"type": "tproc_h_result", "geomean_seconds": 0.86603, "query_sets": 1, ` +
			`"total_query_time_seconds": 2}, "query_times": {"rows": [{"name": "14", "seconds": 1.5}, {"name": "2", ` +
			`"seconds": 0.5}]}}`, []string{"TPROC-H | 1 at once | 1 in 2s | query 2 2s | geometric_mean=0.86603 | " +
			"query_set=2 | query_02=0.5 | query_14=1.5"}},
		"tproc-h, of 12.345 s": {head + `"result": {"type": "tproc_h_result", "geomean_seconds": 2.4843, "query_sets": 1, ` +
			`"total_query_time_seconds": 13}, "query_times": {"rows": [{"name": "9", "seconds": 12}, {"name": "2", ` +
			`"seconds": 0.5}]}}`, []string{"TPROC-H | 1 at once | 1 in 13s | query 2 0s | geometric_mean=2.4843 | " +
			"query_set=13 | query_02=0.5 | query_09=12"}},
	} {
		if d := cmp.Diff(c.want, parts(t, c.text)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What jobs give of HammerDB: lines as text or JSON, results, timing and counters, of one job and of two.
func TestHammerJobs(t *testing.T) {
	t.Parallel()
	const lines = `["0","Vuser 1:RUNNING","1","Timing test period of 2 in minutes","1","4 Active Virtual Users configured",` +
		`"1","TEST RESULT : System achieved 6151 NOPM from 14005 PostgreSQL TPM","0","Vuser 1:FINISHED SUCCESS"]` + "\n"
	const result = `["6A1B","2026-03-03 10:00:00","4 Active Virtual Users configured",` +
		`"TEST RESULT : System achieved 6151 NOPM from 14005 PostgreSQL TPM"]` + "\n"
	const timing = `{"NEWORD": {"elapsed_ms": "120001","calls": "12302","avg_ms": "10.0","p99_ms": "40.0","sd": "1"}}` + "\n"
	const counter = `{"PostgreSQL tpm": {"2026-03-03 10:00:10": "0","2026-03-03 10:00:20": "14000"}}` + "\n"
	const queries = `["1","query 14 completed in 1.5 seconds","1","query 2 completed in 0.5 seconds","1",` +
		`"Completed 1 query set(s) in 2 seconds","1","Geometric mean of query times returning rows (2) is 0.86603"]` + "\n"
	const ofQueries = `["6A1C","2026-03-03 11:00:00","Geometric mean of query times returning rows (2) is 0.86603",` +
		`"Completed 1 query set(s) in 2 seconds"]` + "\n"
	const test, profile = "TPROC-C 4 VU | 4 at once | 1 in 2m0s | NOPM=6151 | TPM=14005",
		"TPROC-C profile | 0 at once | 1 in 2m0.001s | neword_avg=10 | neword_p99=40"
	const course = "transaction counter | 0 at once | 1 in 10s | TPM=14000"
	const whole = "TPROC-H | 1 at once | 1 in 2s | query 2 2s | " +
		"geometric_mean=0.86603 | query_set=2 | query_02=0.5 | query_14=1.5"
	second := func(s string) string {
		name, rest, _ := strings.Cut(s, " | ")
		return name + " (2) | " + rest
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"text": {"Virtual User 0: Vuser 1:RUNNING\nVirtual User 1: Timing test period of 2 in minutes\nVirtual User 1: 4 Active " +
			"Virtual Users configured\nVirtual User 1: TEST RESULT : System achieved 6151 NOPM from 14005 PostgreSQL TPM\n",
			[]string{test}},
		"one job": {lines + result + timing + counter, []string{test, profile, course}},
		"two jobs": {lines + timing + counter + lines + timing + counter, []string{test, profile, course,
			second(test), second(profile), second(course)}},
		"two timings":     {timing + timing, []string{profile, second(profile)}},
		"queries, result": {queries + ofQueries, []string{whole}},
		"two of queries":  {queries + ofQueries + queries, []string{whole, second(whole)}},
		"result of queries": {ofQueries, []string{"TPROC-H | 0 at once | 1 in 2s | geometric_mean=0.86603 | " +
			"query_set=2"}},
		"result alone": {result, []string{"refused: out.txt: hammerdb-json: it holds no figures that can be read: line 1: 6151 " +
			"NOPM from 14005 TPM, without how long the test was: give all lines of the job (jobs JOBID)"}},
		"all results": {`{"6A1B": {"db": "PostgreSQL","bm": "TPC-C","nopm": "6151"}}`, []string{"refused: out.txt: it is " +
			"HammerDB's results of all jobs (jobs, jobs result): it does not say how long a test was: give all lines of each " +
			"job (jobs JOBID)"}},
		"a list of Tcl": {"NEWORD {elapsed_ms 1.5 calls 4 min_ms 1}\n", []string{"refused: out.txt: it is a list of " +
			"Tcl, of HammerDB's jobs: have HammerDB write JSON (jobs format JSON), and give that"}},
	} {
		if d := cmp.Diff(c.want, parts(t, c.text)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if d := prepareOne(t, "a.json", `{"schema": "hammerdb-job-report-v1", "job": {"hdb_version": "v6.0"}, "benchmark_config": `+
		`{"duration_minutes": 2}, "result": {"type": "tproc_c_result", "database_display": "Db2", "nopm": 1, "tpm": 2}}`); d.Tool != "HammerDB 6.0" {
		t.Errorf("by %q", d.Tool)
	}
}

// A text of HammerDB has results, the profile of each beside it, errors that its procedures swallowed and virtual users
// that failed.
func TestHammerTexts(t *testing.T) {
	t.Parallel()
	const passing = "Vuser 2:|PERCENTILES 2021-08-31 20:53:22 to 2021-08-31 20:53:32\n" +
		"Vuser 2:|neword|MIN-5028|P50%-15089|P95%-25786|P99%-34307|MAX-59680|SAMPLES-234\n"
	d := prepareOne(t, "out.txt", "HammerDB CLI v4.12\n"+strings.Replace(aTest, "Vuser 2:Payment",
		passing+"Vuser 2:Payment", 1))
	if !strings.Contains(strings.Join(d.Unseen, "\n"), "(etprof) is of intervals") {
		t.Errorf("a profile of intervals is not told: %q", d.Unseen)
	}
	const head = "HammerDB CLI v4.12\n"
	const profile = "TPROC-C profile 2 VU | 0 at once | 1 in 1m0.5s | neword 610 5.49s | neword_max=170 | neword_min=0.8 | " +
		"neword_p50=7 | neword_p95=21 | neword_p99=40"
	result := func(workload, rest string) string {
		return workload + " | 2 at once | 1 in 1m0s | NOPM=600 | TPM=1380" + rest
	}
	const failed = "Error in Virtual User 3: ERROR:  deadlock detected\nVuser 3:FINISHED FAILED\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"result":             {head + aTest, []string{result("TPROC-C 2 VU", " | 1 failed")}},
		"result and profile": {head + aTest + itsProfile, []string{result("TPROC-C 2 VU", " | 1 failed"), profile}},
		"two of each": {head + aTest + itsProfile + aTest + itsProfile, []string{result("TPROC-C 2 VU", " | 1 failed"),
			profile, result("TPROC-C 2 VU (2)", " | 1 failed"), strings.Replace(profile, "2 VU", "2 VU (2)", 1)}},
		"failed before the result": {head + strings.Replace(aTest, "Vuser 2:Payment", failed+"Vuser 2:Payment", 1),
			[]string{result("TPROC-C 2 VU", " | 2 failed | 1 of 2 virtual users FINISHED FAILED: Error in Virtual User 3: "+
				"ERROR: deadlock detected")}},
		"failed after it, then another": {head + aTest + failed + aTest,
			[]string{result("TPROC-C 2 VU", " | 2 failed | 1 of 2 virtual users FINISHED FAILED: Error in Virtual User 3: "+
				"ERROR: deadlock detected"), result("TPROC-C 2 VU (2)", " | 1 failed")}},
		"queries": {head +
			"Vuser 1:query 14 completed in 1.5 seconds\nVuser 1:Query Failed : select 1 : ERROR:  cancelled\n" +
			"Vuser 1:query 2 completed in 0.5 seconds\nVuser 1:Completed query set in 2 seconds\n" +
			"Vuser 1:Geometric mean of query times returning rows is 0.86603\n", []string{"TPROC-H | 1 at once | 1 in 2s | " +
			"query 2 2s | geometric_mean=0.86603 | query_set=2 | query_02=0.5 | query_14=1.5 | 1 failed"}},
		"queries of one user cut": {head + "Vuser 1:query 14 completed in 1.5 seconds\nVuser 2:query 14 completed in 3 seconds\n" +
			"Vuser 1:Completed query set in 2 seconds\n", []string{"TPROC-H | 2 at once | 1 in 3s | " +
			"query 2 4.5s | query_set=2 | query_14=3 | 1 of its 2 users did not complete their queries: the test, or the file, is " +
			"cut short"}},
		"clients that think": {head + strings.Replace(aTest, "2 Active Virtual Users",
			"2 VU * 10 AC = 20 Active Sessions", 1), []string{strings.ReplaceAll(result("TPROC-C 20 VU", " | 1 failed"),
			"2 at once", "20 at once")}},
		"no result": {head + "Vuser 1:Timing test period of 1 in minutes\n" + failed, []string{
			`refused: out.txt: hammerdb: it holds no "TEST RESULT": 1 virtual user FINISHED FAILED: Error in Virtual User 3: ` +
				"ERROR: deadlock detected"}},
	} {
		if d := cmp.Diff(c.want, parts(t, c.text)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A rate that sysbench and vdbench were asked for is the target that the run is judged by; of flushes among the events
// it is not. Times printed as 0.00 are no times of nothing, and a test that never came to figures says why.
func TestTargetRates(t *testing.T) {
	t.Parallel()
	const asks = "Target transaction rate: 500/sec\nNumber of threads"
	file, err := os.ReadFile("testdata/outputs/vdbench-502.txt")
	if err != nil {
		t.Fatal(err)
	}
	form := string(file)
	asked := strings.Replace(sysbench05, "Number of threads", asks, 1)
	for text, want := range map[string]float64{
		asked: 500, sysbench05: 0, strings.Replace(sysbench11File, "Number of threads", asks, 1): 0,
		form: 0, strings.Replace(form, "Controlled MAX", "1200", 1): 1200,
	} {
		var got float64
		all, err := Prepare("out.txt", strings.NewReader(text), changed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all[0].Streams {
			got += s.Rate
		}
		if got != want {
			t.Errorf("%g is asked for, want %g, by\n%.300s", got, want, text)
		}
	}
	zero := prepareOne(t, "out.txt", strings.Replace(sysbench05, "88.00ms", "0.00ms", 1))
	if said := fmt.Sprint(zero.Notes); !strings.Contains(said, "0.00 ms are below 5 µs") {
		t.Errorf("a percentile of 0.00 ms: %s", said)
	}
	_, err = Prepare("out.txt", strings.NewReader("sysbench 1.0.20 (using x)\n\nFATAL: no server\nFATAL: error 2002\n"),
		changed, Options{})
	if want := "it holds no figures: sysbench says: no server"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
