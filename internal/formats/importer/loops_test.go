package importer

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// intervals is vdbench's summary of a run of five seconds with these lines among its rows.
func intervals(among string) string {
	const head = "14:00:01.000 Starting RD=mix; I/O rate: 200; elapsed=5; For loops: None\n\n" +
		"Mar 02, 2021    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  " +
		"queue  cpu%  cpu%\n" +
		"                               rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev  " +
		"depth sys+u   sys\n"
	row := func(n int) string {
		return fmt.Sprintf("14:00:%02d.000 %11d      200.0     0.78    4096  50.00    0.500    0.400    0.600     2.00     "+
			"3.00    0.100    0.1   5.0   2.0\n", n+1, n)
	}
	return head + row(1) + row(2) + among + row(3) + row(4) + row(5) +
		"14:00:06.100     avg_2-5      200.0     0.78    4096  50.00    0.500    0.400    0.600     2.00     3.00    " +
		"0.100    0.1   5.0   2.0\n14:00:07.000 Vdbench execution completed successfully.\n"
}

// Operations that vdbench says failed count as failed; of the first interval, which is not measured, too.
func TestVdbenchErrors(t *testing.T) {
	t.Parallel()
	failed := func(second int) string {
		return fmt.Sprintf("14:00:%02d.500 localhost-0: 14:00:%02d.499 op: write  lun: /dev/sdq lba:    4096 0x00001000 "+
			"xfer:     4096 errno: ENOSPC: 'No space left on device'\n", second, second)
	}
	for name, c := range map[string]struct {
		among string
		want  uint64
	}{"none": {"", 0}, "one": {failed(3), 1}, "three": {strings.Repeat(failed(3), 3), 3}} {
		text := intervals(c.among)
		all, err := Prepare("out.txt", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d, %v", name, len(all), err)
		}
		var sink lastReport
		if _, err := Engines()[all[0].Engine].Parse(all[0].Declared, strings.NewReader(text), &sink); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if sink.Report0.Errors != c.want {
			t.Errorf("%s: %d failed, want %d", name, sink.Report0.Errors, c.want)
		}
	}
}

// Tests of sysbench that a loop appended to one file are read one by one, with their threads.
func TestSysbenchAppended(t *testing.T) {
	t.Parallel()
	one := func(threads, events int) string {
		return fmt.Sprintf("sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nRunning the test with following options:\nNumber of "+
			"threads: %d\n\nSQL statistics:\n    transactions:                        %d   (%d.00 per sec.)\n    queries:         "+
			"                    %d  (%d.00 per sec.)\n    ignored errors:                      0      (0.00 per sec.)\n\nGeneral "+
			"statistics:\n    total time:                          10.0000s\n\nLatency (ms):\n         max:                      "+
			"              9.00\n         95th percentile:                        5.00\n         sum:                     20000.00\n",
			threads, events, events/10, events*20, events*2)
	}
	text := one(1, 1000) + one(2, 1900) + one(4, 3000)
	all, err := Prepare("s.txt", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		var sink lastReport
		if _, err := Engines()[d.Engine].Parse(d.Declared, strings.NewReader(text), &sink); err != nil {
			t.Fatal(err)
		}
		r := sink.Report0
		got = append(got, fmt.Sprintf("%s %g %d %g %v", d.Workload, d.Concurrency, r.Ops.Total(), r.Values[2],
			r.Elapsed))
	}
	want := []string{"sysbench oltp 1 1000 2000 10s", "sysbench oltp (2) 2 1900 3800 10s", "sysbench oltp (3) " +
		"4 3000 6000 10s"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Rates are those that sysbench prints, which are over a little more than its total time; of queries, too, where the
// last interval was not whole.
func TestSysbenchRates(t *testing.T) {
	t.Parallel()
	step := func(at int, qps string) string {
		return fmt.Sprintf("[ %ds ] thds: 1 tps: 100.00 qps: %s (r/w/o: 1.00/1.00/1.00) lat (ms,95%%): 2.00 err/s: 0.00 reconn/s: 0.00\n",
			at, qps)
	}
	text := "sysbench 1.0.20\nNumber of threads: 1\n" + step(1, "3000.00") + step(2, "4000.00") + "SQL statistics:\n" +
		"    transactions:                        400    (160.00 per sec.)\n" +
		"    queries:                             7500  (3000.00 per sec.)\n" +
		"    total time:                          2.4990s\n         sum:                     13000.00\n"
	all, err := Prepare("s.txt", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var sink reportsOf
	if _, err := Engines()[all[0].Engine].Parse(all[0].Declared, strings.NewReader(text), &sink); err != nil {
		t.Fatal(err)
	}
	last := sink[len(sink)-1]
	// 400 at 160/s are 2.5 s; 7,500 queries less 3,000 and 4,000 leave 500 for the last half second.
	if last.Elapsed != 2500*time.Millisecond || last.Ops.Total() != 400 || math.Abs(last.Values[2]-1000) > 1e-6 {
		t.Errorf("%v, %d, %v", last.Elapsed, last.Ops.Total(), last.Values)
	}
}

// Queries of which no interval tells are those of the whole test; wrk2 says by its calibration what it is; intervals of
// every version of tpcc-mysql show that a test was cut short.
func TestOfOtherVersions(t *testing.T) {
	t.Parallel()
	read := func(text string) (*Reading, workload.Report) {
		all, err := Prepare("s.txt", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil {
			t.Fatal(err)
		}
		rec := parse(t, all[0], strings.NewReader(text))
		return all[0], rec.Reports[len(rec.Reports)-1]
	}
	d, last := read(sysbench05)
	i := slices.IndexFunc(d.Declared.Measures, func(m result.Measure) bool { return m.Name == "reads_and_writes" })
	if i < 0 || d.Declared.Measures[i].Kind != result.Single || last.Values[i] != 1890 {
		t.Errorf("%+v, %v: want 1890 queries a second of the test as a whole", d.Declared.Measures, last.Values)
	}
	d, _ = read(strings.Replace(wrkShort, "  Thread Stats",
		"  Thread calibration: mean lat.: 1.464ms, rate sampling interval: 10ms\n  Thread Stats", 1))
	if d.Tool != "wrk2" || d.Latency != "response time" {
		t.Errorf("%s, %s: want response times of wrk2", d.Tool, d.Latency)
	}
	// 3,000,000 in 4 s: 1 % of the first million failed, by which alone hey divides the times of all
	_, last = read(strings.NewReplacer("50.7500", "750000.7500", "190 r", "990000 r", "10 r", "10000 r", "0.0150 s",
		"0.0009 s").Replace(heyShort))
	if last.Ops[0].Ops != 2_970_000 || math.Abs(last.Ops[0].Seconds-891) > 1e-6 || last.Errors != 30_003 {
		t.Errorf("hey of millions: %+v", last)
	}
	d, last = read(strings.NewReplacer("12.92ms", "0.00us", "timeout 2", "timeout 2900").Replace(wrkShort))
	if said := strings.Join(d.Notes, ", "); len(d.Declared.Measures) > 0 || last.Errors != 2901 ||
		!strings.Contains(said, "2900 requests took longer than its timeout") {
		t.Errorf("all too late: %d failed, %v, %s: want no times", last.Errors, last.Values, said)
	}
	for _, step := range []string{"   2, trx: 714, 95: 11.917, 99: 26.138, max_rt: 133.971, 720|95.907, 72|1.0\n",
		"  10, 686(0):2.044|3.593, 684(0):0.487|1.325\n"} {
		_, err := Prepare("t.txt", strings.NewReader(step), changed, Options{})
		if err == nil || !strings.Contains(err.Error(), "it ends before tpcc-mysql's results") {
			t.Errorf("%q: %v", step, err)
		}
	}
}

// What sysbench says that it was asked for is known, so that unlike tests are not compared.
func TestSysbenchAsked(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"sb-fileio.txt": "block size=16KiB test=random r/w files=2 files, 8MiB mix=1.50 flushes=each 100 ioengine=synchronous",
		"sb-cpu2.txt":   "rate=50 prime limit=10000",
		"sb-mem.txt":    "block size=1KiB operation=write scope=global total size=1048576000MiB",
	} {
		text, err := os.ReadFile("testdata/outputs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Prepare(file, bytes.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range all[0].Facts {
			got = append(got, f.Name+"="+f.Value)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", file, s, want)
		}
	}
}

// What a job of fio was asked for beyond its size is known with it, and nothing of what was not asked for.
func TestFioAskedWithin(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		`"random_distribution":"zipf:1.2",`: "8388608 bytes, random_distribution=zipf:1.2",
		`"norandommap":"1",`:                "8388608 bytes, norandommap=1",
		`"random_distribution":"random",`:   "8388608 bytes",
	} {
		text := `{"fio version":"fio-3.33","timestamp":1700000100,"time":"x","jobs":[{"jobname":"j","error":0,"job options":{` +
			option + `"rw":"randread","size":"8m","bs":"4k"},"job_runtime":1000,"read":{"io_bytes":4096000,"bw_bytes":4096000,` +
			`"iops":1000,"runtime":1000,"total_ios":1000},"write":{"total_ios":0},"trim":{"total_ios":0}}]}`
		all, err := Prepare("f.json", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range all[0].Facts {
			if f.Name == "size" {
				got = f.Value
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", option, got, want)
		}
	}
}

// Numbers of other languages: decimal commas in intervals, flatfiles and buckets, points or blanks between thousands.
func TestVdbenchInGerman(t *testing.T) {
	t.Parallel()
	german := ""
	for line := range strings.Lines(intervals("")) {
		if strings.HasPrefix(line, "14:") && !strings.Contains(line, "RD=") { // of a row all but its time
			line = line[:13] + strings.ReplaceAll(line[13:], ".", ",")
		}
		german += line
	}
	flat := " tod Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp\n" +
		"14:00:01.000 rd1 1 200 200,0 0,78 4096 100 0,5 0,4 0,0\n14:00:02.000 rd1 2 200 1.200,0 0,78 4096 100 0,5 0,4 0,0\n"
	buckets := "Starting RD=rd1; elapsed=5; For loops: None\n\nReads:\n  min(ms) <     max(ms)         count       %%    cum%%\n" +
		"    0,000 <       0,020         1.197  46,7933  46,7933\n    0,020 <       0,040             3   0,1173  46,9106\n"
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"intervals": {german, "400 in 0.16 s"}, "flatfile": {flat, "1200 in 0.48 s"},
		"buckets": {buckets, "1200 in 0 s"},
	} {
		all, err := Prepare("out.html", strings.NewReader(c.text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d, %v", name, len(all), err)
		}
		var sink lastReport
		if _, err := Engines()[all[0].Engine].Parse(all[0].Declared, strings.NewReader(c.text), &sink); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := fmt.Sprintf("%d in %.3g s", sink.Report0.Ops[0].Ops, sink.Report0.Ops[0].Seconds); got != c.want {
			t.Errorf("%s: %s reads, want %s", name, got, c.want)
		}
	}
}

// mpstat's JSON has times of day, below a date that they pass at midnight.
func TestMpstat(t *testing.T) {
	t.Parallel()
	const text = `{"sysstat": {"hosts": [{"nodename": "h", "date": "2021-05-19", "statistics": [
{"timestamp": "11:59:50 PM", "cpu-load": [{"cpu": "-1", "usr": 50.01, "idle": 49.99}, {"cpu": "0", "usr": 99.0}]},
{"timestamp": "12:00:00 AM", "cpu-load": [{"cpu": "-1", "usr": 30.01, "idle": 69.99}, {"cpu": "0", "usr": 59.0}]}]}]}}
`
	all, err := Prepare("a.json", strings.NewReader(text), changed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := all[0]
	got := d.End.Format(time.DateTime)
	for _, r := range parse(t, d, strings.NewReader(text)).Reports {
		got += fmt.Sprint(" ", r.Values)
	}
	for _, m := range d.Declared.Measures {
		got += " " + m.Name
	}
	if want := "2021-05-20 00:00:00 [99 49.99 50.01] [59 69.99 30.01] cpu0_%usr cpu_%idle cpu_%usr"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
