package importer

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// endless are forms whose writers end them in no way of their own, so that a part is like a whole, or lose nothing.
var endless = regexp.MustCompile(`/(?:av|ep|raw)_\w+\.1\.log$|/hdbtcount\.log$|-live\.csv$|/vm\.txt$|/io\.json$|^ior-csv` +
	`|/vdbench-histogram\.html$|^dd's last lines$|^x_slat|^locust-history|^mysqlslap --csv|^jmeter|^k6-(?:json|csv)|^benchbase-raw|^hey-csv|^vegeta-(?:csv|rows)`)

// A loop whose first test was killed goes on with the next: the one that is whole keeps its figures, and the one that
// is not is told.
func TestEveryFormAfterOneThatWasCut(t *testing.T) {
	t.Parallel()
	tells := regexp.MustCompile(`cut|ends (?:early|before|within)|has no end|breaks off|no totals|left out`)
	for name, text := range everyForm(t) {
		whole := runsIn(t, name, []byte(text))
		if whole == "refused" || onceMore.MatchString(name) || endless.MatchString(name) ||
			addedUp.MatchString(name) {
			continue
		}
		for part := 6; part < 20; part += 6 {
			at := strings.LastIndexByte(text[:len(text)*part/20], '\n') + 1
			if at == 0 {
				continue
			}
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			both := text[:at] + text
			all, err := Prepare(name, strings.NewReader(both), changed, Options{Interval: time.Second})
			if err != nil {
				t.Errorf("%s cut at %d: %v", name, at, err)
				continue
			}
			got := runsIn(t, name, []byte(both))
			if !strings.HasSuffix(got, whole) {
				t.Errorf("%s cut at %d:\n got %s\nwant %s at its end", name, at, got, whole)
			}
			told := false
			for _, d := range all {
				told = told || d.Failure+d.Lost != "" || tells.MatchString(strings.Join(d.Notes, "\n"))
			}
			if !told && got != whole+"\n"+whole && !strings.HasPrefix(got, whole) {
				t.Errorf("%s cut at %d: nothing says so: %s", name, at, got)
			}
		}
	}
}

// failedForms are outputs that say, in the words of their tools, that something failed; what is told of each is that of
// the run it is of, or, where that left no figures, of the file.
var failedForms = []struct{ form, text, want string }{
	{"fio", strings.Replace(fioOutput(1_700_000_000, fioJob("r", 0, 6000, "")), `"error":0`, `"error":5`, 1),
		"fio: 1 errors, job r ended with error 5 (input/output error)"},
	{"fio-text", strings.Replace(fioTwo, "err= 0", "err= 5 (file:io_u.c:1, func=io_u error, error=EIO)", 1),
		"fio: 1 errors, job w ended with error 5 (input/output error)"},
	{"fio-terse", terseFailed, "a: 1 errors, job a ended with error 28 (no space left on device)"},
	{"sysbench", strings.Replace(strings.Replace(sysbenchOldSQL, " 2 ", " 0 ", 1), "OLTP", "FATAL: x\nOLTP", 1),
		"sysbench oltp: 0 errors, sysbench says: x"},
	{"sysbench", sysbenchOldFile + strings.Split(sysbenchOldFile, "Test execution")[0],
		"sysbench fileio: 0 errors; lost: it ends before sysbench's totals: the test, or the file, is cut short"},
	{"k6", k6New + "time=\"x\" level=error msg=\"thresholds on metrics 'http_req_duration' have been crossed\"\n",
		"k6: 20 errors, k6 says: time=\"x\" level=error msg=\"thresholds on metrics 'http_req_duration' have been cr..."},
	{"k6-summary", strings.Replace(k6Exported, `"p(95)":55.5`, `"p(95)":55.5,"thresholds":{"p(95)<50":true,"med<20":false}`, 1),
		"k6: 20 errors, k6's thresholds were crossed: http_req_duration p(95)<50"},
	{"k6-summary", strings.Replace(k6Exported, `"rate":100}`, `"rate":100,"thresholds":{"count>2000":{"ok":false}}}`, 1),
		"k6: 20 errors, k6's thresholds were crossed: http_reqs count>2000"},
	{"go-tpc", goTPCShort, "go-tpc: 7 errors"},
	{"tpcc-mysql", tpccMySQLShort, "tpcc-mysql: 4 errors"},
	{"benchbase", strings.Replace(benchBaseShort, `"EXIT"`, `"ERROR"`, 1),
		"BenchBase tpcc: 0 errors, BenchBase says: Final State ERROR"},
	{"iozone", strings.Replace(iozoneOPS, "iozone test complete.", "Error writing block 7, fd= 3", 1),
		"iozone initial writers, 1024 KiB in 4 KiB: 0 errors, Error writing block 7, fd= 3"},
	{"vdbench", strings.Replace(intervals(""), "execution completed successfully", "terminated due to an error", 1),
		"vdbench mix: 0 errors, vdbench says: 14:00:07.000 Vdbench terminated due to an error."},
	{"rados-bench", radosRead + strings.Split(radosWrite, "Total time run")[0] +
		"error during benchmark: (28) No space left on device\n",
		"rados bench read: 0 errors; lost: rados bench says: error during benchmark: (28) No space left on device"},
	{"rados-bench-json", radosJSONShort + "WARNING: There were 3 total errors in copying!\n",
		"rados bench write: 0 errors, WARNING: There were 3 total errors in copying!"},
	{"ior", strings.Replace(iorBoth, "remove ", "WARNING: Incorrect data on read (4 errors found).\nremove ", 1),
		"ior write: 0 errors; ior read: 0 errors, WARNING: Incorrect data on read (4 errors found)."},
	{"ior-json", "WARNING: Incorrect data on read (4 errors found).\n, (ior.c:445)\n" + iorJSONShort,
		"ior write: 0 errors; ior read: 0 errors, WARNING: Incorrect data on read (4 errors found)."},
	{"ior-csv", iorCSVShort + "ERROR: write(14, 0x7f, 1048576) failed, No space left on device, (aiori-POSIX.c:623)\n",
		"ior write: 0 errors; ior read: 0 errors, ERROR: write(14, 0x7f, 1048576) failed, No space left on device, (aiori-POSIX.c:..."},
	{"dd", "dd: error writing 'x': No space left on device\n5+0 records in\n4+0 records out\n" +
		"4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s\n",
		"dd: 1 errors, dd: error writing 'x': No space left on device"},
	{"dd", "dd: failed to open '/x': No such file or directory\n4+0 records in\n4+0 records out\n" +
		"4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s\n",
		"dd: 0 errors; lost: dd: failed to open '/x': No such file or directory"},
	{"bonnie++", bonnieLine + "\nWriting intelligently...Can't write block.: No space left on device\n",
		"bonnie++ writes, a character at a time: 0 errors; bonnie++ block writes: 0 errors; bonnie++ reads, a character at a " +
			"time: 0 errors; bonnie++ block reads: 0 errors; bonnie++ seeks: 0 errors; lost: bonnie++ says: Can't write block.: No space left on device"},
	{"elbencho", elbenchoFailed, "elbencho write: 0 errors; lost: elbencho says: ERROR: File write failed. SysErr: " +
		"Input/output error"},
	{"elbencho-csv", "operation,time ms [first],time ms [last],IOs [last],errors total\nREAD,900,1000,500,3\n",
		"elbencho read: 3 errors"},
	{"elbencho-json", `{"phase_type":"READ","config":{"threads":"1"},"first_done":{"elapsed_time_ms":"900"},` +
		`"last_done":{"elapsed_time_ms":"1000","ios":"500","errors_total":"3"}}` + "\n", "elbencho read: 3 errors"},
	{"diskspd", "Error opening file: x [2]\n" + diskspdLinux, "diskspd: 0 errors; lost: Error opening file: x [2]"},
	{"pgbench", pgbenchAborted, "pgbench 4 clients: 1 errors, aborted clients: 1 of 4, and what was counted is " +
		"incomplete; the first error: pgbench: error: client 2 script 0 (<builtin: TPC-B (sort of)>) aborted in " +
		"command 4 query 0: ERROR:  could not extend file"},
	{"pgbench", "pgbench: error: connection to server failed\n" + pgbenchWhole + pgbenchWhole,
		"pgbench 4 clients: 0 errors; pgbench 4 clients (2): 0 errors; lost: test 1 of 3: pgbench: error: connection to " +
			"server failed"},
	{"wrk", wrkShort, "wrk: 23 errors"},
	{"ab", abShort, "ab: 10 errors"},
	{"ab", strings.SplitAfter(abShort, "$>\n")[0] + "apr_socket_recv: Connection reset by peer (104)\n" + abShort,
		"ab: 10 errors; lost: ab says: apr_socket_recv: Connection reset by peer (104)"},
	{"hey", heyShort, "hey: 13 errors"},
	{"oha-json", ohaJSONShort, "oha: 7 errors"},
	{"vegeta", vegetaShort, "vegeta: 20 errors"},
	{"vegeta-json", vegetaJSONShort, "vegeta: 20 errors"},
	{"ycsb", ycsbShort, "ycsb: 10 errors"},
	{"ycsb-json", ycsbJSONShort, "ycsb: 10 errors"},
	{"redis-benchmark", redisShort + "Error from server: ERR unknown command 'X'\n", "redis-benchmark SET: 0 errors; " +
		"redis-benchmark GET: 0 errors; lost: redis-benchmark says: Error from server: ERR unknown command 'X'"},
	{"mysqlslap", slapShort + "mysqlslap: Error when connecting to server: 1040 Too many connections\n",
		"mysqlslap: 0 errors; mysqlslap innodb: 0 errors; lost: mysqlslap: Error when connecting to server: 1040 Too " +
			"many connections"},
	{"locust", locustShort, "locust: 5 errors"},
	{"locust-history", locustCourse, "locust: 3 errors"},
	{"memtier", "server 127.0.0.1:6379 handle error response: -ERR a\n" + memtierShort, "memtier_benchmark: 0 " +
		"errors, memtier_benchmark says: -ERR a; its figures do not tell what failed from what was done; memtier_benchmark, by " +
		"kind: 0 errors"},
	{"memtier-json", strings.Replace(memtierJSONShort, `"Totals": {`, `"Totals": {"Connection Errors": 3, `, 1),
		"memtier_benchmark: 0 errors, memtier_benchmark says: Connection Errors 3; its figures do not tell what failed from " +
			"what was done; memtier_benchmark, by kind: 0 errors"},
	{"jmeter", jmeterShort, "JMeter: 1 errors"},
	{"k6-json", k6RowsShort, "k6: 1 errors"},
	{"k6-csv", k6CSVShort, "k6: 1 errors"},
	{"jmeter-xml", jmeterXMLShort, "JMeter: 1 errors"},
	{"hey-csv", heyCSVShort, "hey: 1 errors"},
	{"vegeta-csv", vegetaCSVShort, "vegeta: 1 errors; vegeta (2): 0 errors"},
	{"vegeta-rows", vegetaRowsShort, "vegeta big: 1 errors"},
	{"mdtest", mdtestShort + "ERROR: open() failed: No space left on device\n", "mdtest file creation: 0 " +
		"errors; mdtest file stat: 0 errors; lost: mdtest says: ERROR: open() failed: No space left on device"},
	{"hammerdb", hammerFailed, "TPROC-C 8 VU: 1 errors, 1 of 8 virtual users FINISHED FAILED: Error in Virtual User 3: " +
		"deadlock"},
	{"hammerdb", strings.Replace(hammerFailed, "TEST RESULT : System achieved", "", 1) + hammerWhole,
		"TPROC-C 8 VU: 0 errors; lost: 1 of 8 virtual users FINISHED FAILED: Error in Virtual User 3: deadlock"},
	{"hammerdb-json", `["x","HammerDB CLI v4.12","1","Timing test period of 5 in minutes","1",` +
		`"8 Active Virtual Users configured","1","TEST RESULT : System achieved 100 NOPM from 230 PostgreSQL TPM","3",` +
		`"FINISHED FAILED"]`, "TPROC-C 8 VU: 1 errors, 1 of 8 virtual users FINISHED FAILED"},
}

// neverFail are forms in which a tool has no words for a failure.
var neverFail = regexp.MustCompile(`^(?:benchbase-raw|fio-(?:clat-hist|log|iops|bw|lat|clat|slat)|pgbench-log|diskspd-xml|elbencho-live|` +
	`vdbench-(?:flatfile|histogram)|hammerdb-(?:tcount|profile)|vmstat|iostat.*|sar|sadf.*)$`)

const pgbenchWhole = `pgbench (15.4)
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
number of clients: 4
number of threads: 1
duration: 10 s
number of transactions actually processed: 1000
latency average = 40.000 ms
tps = 100.000000 (without initial connection time)
`

const pgbenchAborted = pgbenchWhole + `pgbench: error: client 2 script 0 aborted in command 4 query 0: ERROR:  could not extend file
pgbench: error: Run was aborted; the above results are incomplete.
`

const hammerWhole = `Vuser 1:Timing test period of 5 in minutes
Vuser 1:8 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 100 NOPM from 230 PostgreSQL TPM
`

const hammerFailed = hammerWhole + "Error in Virtual User 3: deadlock\nVuser 3:FINISHED FAILED\n"

const elbenchoFailed = `OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
WRITE       Elapsed ms       :         900        1000
            IOPS             :         500         500
            Total MiB        :         500         500
---
ERROR: File write failed. SysErr: Input/output error
`

var terseFailed = func() string {
	data, _ := os.ReadFile("testdata/outputs/terse.txt")
	return strings.Replace(string(data), ";a;0;0;", ";a;0;28;", 1)
}()

// What a tool says of its failure is told of every form that has words for it.
func TestEveryFormFailed(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, c := range failedForms {
		tried[c.form] = true
		all, err := Prepare(c.form, strings.NewReader(c.text), changed, Options{Interval: time.Second})
		if err != nil {
			t.Errorf("%s: %v", c.form, err)
			continue
		}
		var told []string
		lost := ""
		for _, d := range all {
			r := parse(t, d, strings.NewReader(c.text))
			line := fmt.Sprintf("%s: %d errors", d.Workload, r.Reports[len(r.Reports)-1].Errors)
			if d.Failure != "" {
				line += ", " + d.Failure
			}
			if d.As != c.form {
				t.Errorf("%s is read as %s", c.form, d.As)
			}
			told, lost = append(told, line), d.Lost
		}
		if lost != "" {
			told = append(told, "lost: "+lost)
		}
		if got := strings.Join(told, "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.form, got, c.want)
		}
	}
	for _, f := range Forms() {
		if tried[f.Name] == neverFail.MatchString(f.Name) {
			t.Errorf("%s: no failed output of it is tried, or one is of a form that tells none", f.Name)
		}
	}
}
