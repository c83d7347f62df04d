package importer

import (
	"fmt"
	"strings"
	"testing"
)

const radosWrite = `hints = 1
Maintaining 8 concurrent writes of 4194304 bytes to objects of size 4194304 for up to 3 seconds or 0 objects
Object prefix: benchmark_data_h_1
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
    1       8        38        30   119.984       120    0.210000    0.200000
    2       8        70        62   123.981       128    0.250000    0.220000
Total time run:         3.000
Total writes made:      96
Write size:             4194304
Object size:            4194304
Bandwidth (MB/sec):     128
Stddev Bandwidth:       4
Average IOPS:           32
Average Latency(s):     0.240
Stddev Latency(s):      0.04
Max latency(s):         0.5
Min latency(s):         0.1
`

const radosRead = `hints = 1
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    1      16        96        80   319.900       320    0.030000    0.040000
Total time run:       1.500
Total reads made:     96
Read size:            4194304
Object size:          4194304
Bandwidth (MB/sec):   256
Average IOPS:         64
Average Latency(s):   0.035
Max latency(s):       0.2
Min latency(s):       0.01
`

const iorBoth = `IOR-3.3.0: MPI Coordinated Test of Parallel I/O
Began               : Tue Feb  3 08:00:00 2026
Command line        : ior -a POSIX -b 64m -t 1m -w -r
Options:
api                 : POSIX
tasks               : 4
xfersize            : 1 MiB
blocksize           : 64 MiB
aggregate filesize  : 256 MiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     128.00     130.00     0.020000    65536      1024.00    0.001      1.99       0.002      2.00       0
read      512.00     520.00     0.005000    65536      1024.00    0.001      0.49       0.002      0.50       0
remove    -          -          -           -          -          -          -          -          0.001      0
Max Write: 128.00 MiB/sec (134.22 MB/sec)
Max Read:  512.00 MiB/sec (536.87 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s)
write         128.00     128.00     128.00       0.00     128.00     128.00     128.00       0.00    2.00000         NA
read          512.00     512.00     512.00       0.00     512.00     512.00     512.00       0.00    0.50000         NA
Finished            : Tue Feb  3 08:00:03 2026
`

// iorInside holds IOR's output as a library of IO500: no summary. Tasks stop at a stone wall, so that its latency is
// not of what they did. It moved 2^51 bytes.
const iorInside = `IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O
Command line        : ./ior -C -Q 1 -t 1m -b 1m -s 10000000 -w -D 300 -a POSIX
Options:
api                 : POSIX
segments            : 10000000
tasks               : 8
repetitions         : 1
xfersize            : 1 MiB
blocksize           : 1 MiB
stonewallingTime    : 300

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     16384      16390      131071      1024.00    1024.00    0.001      131071     0.002      131072     0
`

const iozoneTable = "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.489 $\n" +
	"\tRun began: Tue Feb  3 08:00:00 2026\n\n\tCommand line used: iozone %s\n\tOutput is in kBytes/sec\n" +
	"                                                              random    random\n" +
	"              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read\n%s\n"

const bonnieLine = "1.98,2.00a,h,1,1795610017,128M,,8192,5,1024,94,131072,23,+++++,+++,2048,99,65536,40,400.0,9,,,,,,,,,,,,,,,,,," +
	"18000us,4114us,4066us,10759us,2335us,20025us,,,,,,"

const k6Old = `     execution: local
running (0m10.0s), 00/20 VUs, 500 complete and 0 interrupted iterations
     http_req_duration..............: avg=20ms    min=1.5ms med=15ms   max=250ms   p(90)=40ms   p(95)=55.5ms
       { expected_response:true }...: avg=19ms    min=1.5ms med=15ms   max=250ms   p(90)=40ms   p(95)=55.5ms
     http_req_failed................: 2.00%  ✓ 20        ✗ 980
     http_reqs......................: 1000   100/s
     iterations.....................: 500    50/s
     vus............................: 20     min=20      max=20
`

const k6New = `  █ TOTAL RESULTS

    HTTP
    http_req_duration..............: avg=20ms min=1.5ms med=15ms max=250ms p(90)=40ms p(95)=55.5ms
    http_req_failed................: 2.00%  20 out of 1000
    http_reqs......................: 1000   100/s

    EXECUTION
    iterations.....................: 500    50/s
    vus_max........................: 20     min=20 max=20
`

const k6Exported = `{"metrics":{"http_req_duration":{"avg":20,"min":1.5,"med":15,"max":250,"p(90)":40,"p(95)":55.5},
"http_req_failed":{"value":0.02,"passes":20,"fails":980},"http_reqs":{"count":1000,"rate":100},
"iterations":{"count":500,"rate":50},"vus_max":{"value":20,"min":20,"max":20}}}`

const fioTwo = `w: (g=0): rw=write, bs=64K-64K/64K-64K/64K-64K, ioengine=libaio, iodepth=4
fio-2.16
Starting 1 process

w: (groupid=0, jobs=1): err= 0: pid=10: Tue Feb  3 08:00:10 2026
  write: io=1024.0MB, bw=104858KB/s, iops=1638, runt= 10000msec
    slat (usec): min=2, max=40, avg= 5.00, stdev= 1.00
    clat (msec): min=1, max=20, avg= 2.50, stdev= 1.00
     lat (msec): min=1, max=20, avg= 2.51, stdev= 1.00
    clat percentiles (msec):
     |  1.00th=[    2], 50.00th=[    2], 99.00th=[    9], 99.99th=[>=2000]
  cpu          : usr=1.00%, sys=4.00%, ctx=1, majf=0, minf=1
     issued    : total=r=0/w=16384/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
`

// TestFileTools states of each test: its name, length, operations with their counts, bytes and mean times in ms, failed
// ones, concurrency, the figures of the tool's own, and what it says of an end that was none. Counts are those that
// stand in the texts; bytes were worked out from them by bc: 96*4194304, 128*2.00*1048576, 1024*131072/1024 s, ...
func TestFileTools(t *testing.T) {
	t.Parallel()
	mixed := strings.ReplaceAll(strings.ReplaceAll(fioTwo, "write: io", "mixed: io"), "r=0/w=16384", "r=6384/w=10000")
	const dd = "1024+0 records in\n1024+0 records out\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"rados, written and read": {radosWrite + radosRead, []string{
			"rados bench write 3s write 96 402653184 240.0 0 8 write_max=0.5 write_min=0.1 ",
			"rados bench read 1.5s read 96 402653184 35.0 0 0 read_max=0.2 read_min=0.01 "}},
		"rados, cut": {radosWrite + radosRead[:170], []string{
			"rados bench write 3s write 96 402653184 240.0 0 8 write_max=0.5 write_min=0.1 " +
				"it ends before the totals of a bench, which is left out"}},
		"ior": {iorBoth, []string{"ior write 2s write 256 268435456 20.0 0 4 ", "ior read 500ms read 256 " +
			"268435456 5.0 0 4 "}},
		"ior, cut": {iorBoth[:strings.Index(iorBoth, "read      ")], []string{"ior write 2s write 256 268435456 " +
			"20.0 0 4 " +
			"it does not say that IOR came to its end: the run, or the file, is cut short"}},
		"ior within IO500": {iorInside, []string{"ior write 36h24m32s write 2147483648 2251799813685248 0.0 0 8 "}},
		"ior within IO500, cut": {iorInside + iorInside[:strings.Index(iorInside, "write     16384")], []string{
			"ior write 36h24m32s write 2147483648 2251799813685248 0.0 0 8 " +
				"it does not say that IOR came to its end: the run, or the file, is cut short"}},
		"ior, repetitions cut": {strings.Replace(iorInside, "repetitions         : 1", "repetitions         : 2",
			1), []string{"ior write 36h24m32s write 2147483648 2251799813685248 0.0 0 8 " +
			"it does not say that IOR came to its end: the run, or the file, is cut short"}},
		"iozone, all of -i 0 and -i 2": {fmt.Sprintf(iozoneTable, "-i 0 -i 2 -r 1m", "            1024     256  "+
			"   512    "+
			"1024                       2048      256\n\niozone test complete."), []string{
			"iozone write, 1024 KiB in 256 KiB 2s write 4 1048576 0.0 0 1 ", "iozone rewrite, 1024 KiB in 256 KiB 1s write 4 1048576 0.0 0 1 ",
			"iozone random read, 1024 KiB in 256 KiB 500ms read 4 1048576 0.0 0 1 ",
			"iozone random write, 1024 KiB in 256 KiB 4s write 4 1048576 0.0 0 1 "}},
		"iozone, cut": {fmt.Sprintf(iozoneTable, "-a", "            1024     256     512    1024"), []string{
			"iozone write, 1024 KiB in 256 KiB 2s write 4 1048576 0.0 0 1 ",
			"iozone rewrite, 1024 KiB in 256 KiB 1s write 4 1048576 0.0 0 1 " +
				"it does not say that iozone came to its end: the run, or the file, is cut short"}},
		"iozone with -t": {"\tIozone: Performance Test of File I/O\n\tEach process writes a 1024 kByte file in 256 kByte records\n\n" +
			"\tChildren see throughput for  4 initial writers \t=    2048.00 kB/sec\n\tParent sees throughput for  4 initial writers \t=" +
			"    9.00 kB/sec\n\niozone test complete.\n", []string{
			"iozone initial writers, 1024 KiB in 256 KiB 2s write 16 4194304 0.0 0 4 "}},
		"bonnie++": {"Version 2.00a\nh  128M\n\n" + bonnieLine + "\n", []string{
			"bonnie++ writes, a character at a time 2m8s 0 1 bandwidth=1.048576e+06 process_cpu=94 write_max=18000 ",
			"bonnie++ block writes 1s 0 1 bandwidth=1.34217728e+08 process_cpu=23 write_max=4114 ",
			"bonnie++ reads, a character at a time 1m4s 0 1 bandwidth=2.097152e+06 process_cpu=99 read_max=10759 ",
			"bonnie++ block reads 2s 0 1 bandwidth=6.7108864e+07 process_cpu=40 read_max=2335 ",
			"bonnie++ seeks 20.48s read 8192 0 0.0 0 1 process_cpu=9 read_max=20025 "}},
		"dd":        {dd + "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.5 s, 429 MB/s\n", []string{"dd 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"dd, twice": {strings.Repeat(dd+"1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.5 s, 429 MB/s\n", 2), []string{"dd 2.5s copy 1024 1073741824 0.0 0 0 ", "dd (2) 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"dd with progress": {"536870912 bytes (537 MB, 512 MiB) copied, 1 s, 537 MB/s\r1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2 s, 500 MB/s\r" +
			"\n" + dd + "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.5 s, 429 MB/s\n", []string{"dd 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"dd in German": {"1024+0 Datensätze ein\n1024+0 Datensätze aus\n1073741824 Bytes (1,1 GB, 1,0 GiB) kopiert, 2,5 s, 429 MB/s\n",
			[]string{"dd 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"dd in French": {"1024+0 enregistrements lus\n1024+0 enregistrements écrits\n1073741824 octets (1,1 GB, 1,0 GiB) copiés, 2,5 s, " +
			"429 MB/s\n", []string{"dd 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"dd of BSD": {dd + "1073741824 bytes transferred in 2.500000 secs (429496729 bytes/sec)\n", []string{"dd 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"dd of busybox": {dd + "1073741824 bytes (1.0GB) copied, 2.500000 seconds, 409.6MB/s\n", []string{
			"dd 2.5s copy 1024 1073741824 0.0 0 0 "}},
		"k6":      {k6Old, []string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_p95=55.5 request_max=250 iterations=500 http_reqs=100 "}},
		"k6, 1.0": {k6New, []string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_p95=55.5 request_max=250 iterations=500 http_reqs=100 "}},
		"k6's JSON": {k6Exported, []string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_p95=55.5 request_max=250 " +
			"iterations=500 http_reqs=100 "}},
		"k6 over its thresholds": {k6Old + "time=\"x\" level=error msg=\"thresholds on metrics 'http_req_duration' have been crossed\"\n",
			[]string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_p95=55.5 request_max=250 iterations=500 http_reqs=100 " +
				"k6 says: time=\"x\" level=error msg=\"thresholds on metrics 'http_req_duration' have been cr..."}},
		"k6 over a threshold, of which its rows tell": {strings.Replace(k6Old, "     http_req_duration",
			"   ✗ http_req_duration", 1),
			[]string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_p95=55.5 request_max=250 iterations=500 http_reqs=100 " +
				"k6's thresholds were crossed: http_req_duration"}},
		"k6 1.0 over a threshold": {"  █ THRESHOLDS\n\n    http_req_duration\n    ✓ 'avg<30' avg=20ms\n    ✗ 'p(95)<50' p(95)=55.5ms\n\n" +
			k6New, []string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_p95=55.5 request_max=250 iterations=500 http_reqs=100 " +
			"k6's thresholds were crossed: p(95)<50"}},
		// 1800 and 10 in a minute: 60 s of 30/s; of old, its summary ended with its last kind.
		"go-tpc of old": {"$ tiup bench tpcc --warehouses 4 -T 16 run\n[Current] NEW_ORDER - Takes(s): 9.0, Count: 300, TPM: 2000.0, " +
			"Sum(ms): 6000\nFinished\n[Summary] NEW_ORDER - Takes(s): 60.0, Count: 1800, TPM: 1800.0, Sum(ms): 36000, Avg(ms): 20\n" +
			"[Summary] STOCK_LEVEL - Takes(s): 60.0, Count: 10, TPM: 10.0, Sum(ms): 50, Avg(ms): 5\n",
			[]string{"go-tpc 1m0s new_order 1800 0 20.0 stock_level 10 0 5.0 0 16 tpmC=1800 "}},
		"go-tpc ch": {"Finished: 12 OLTP workers, 1 OLAP workers\n[Summary] NEW_ORDER - Takes(s): 60.0, Count: 1800, TPM: 1800.0, " +
			"Sum(ms): 36000\n[Summary] Q1     - Count: 3, Sum(ms): 900, Avg(ms): 300\ntpmC: 1800.0, tpmTotal: 1810.0, efficiency: 140.0%\n",
			[]string{"go-tpc 1m0s new_order 1800 0 20.0 0 12 tpmC=1800 tpmTotal=1810 efficiency=140 "}},
		"ycsb, by its call": {"/usr/bin/java -cp a:b site.ycsb.Client -t -db x -p threadcount=24 -s\n" +
			"2024-03-05 10:00:10:500 10 sec: 1000 operations; 100 current ops/sec;\n" + strings.SplitAfterN(ycsbShort, "\n", 2)[1],
			[]string{"ycsb 10s read 490 0 1.0 update 500 0 2.0 10 24 read_p95=2 read_p99=5 read_max=9 update_p99.9=7 "}},
		"ycsb, in whole milliseconds": {strings.NewReplacer("95thPercentileLatency(us), 2000",
			"95thPercentileLatency(ms), 0", "99thPercentileLatency(us), 5000", "99thPercentileLatency(ms), 4",
		).Replace(ycsbShort),
			[]string{"ycsb 10s read 490 0 1.0 update 500 0 2.0 10 8 read_p95=1 read_p99=5 read_max=9 update_p99.9=7 "}},
		"k6, cut at the edge of a terminal": {strings.Replace(k6New, "p(95)=55.5ms", "p(95)=55.5m", 1),
			[]string{"k6 10s request 980 0 20.0 20 20 request_p50=15 request_p90=40 request_max=250 iterations=500 " +
				"http_reqs=100 "}},
		"ior that warns": {strings.Replace(iorBoth, "write     128", "WARNING: Expected aggregate file size       = 536870912.\nwrite     128",
			1), []string{"ior write 2s write 256 268435456 20.0 0 4 ", "ior read 500ms read 256 268435456 5.0 0 4 "}},
		"fio 2 for people": {fioTwo, []string{"fio 10s write 16384 1073741824 2.5 0 4 write_p1=2000 write_p50=2000 write_p99=9000 " +
			"write_p99.99=2e+06 write_max=20000 "}},
		"fio 2 for people, appended": {fioTwo + fioTwo, []string{"fio 10s write 16384 1073741824 2.5 0 4 write_p1=2000 write_p50=2000 " +
			"write_p99=9000 write_p99.99=2e+06 write_max=20000 ", "fio (2) 10s write 16384 1073741824 2.5 0 4 write_p1=2000 write_p50=2000 " +
			"write_p99=9000 write_p99.99=2e+06 write_max=20000 "}},
		"fio 2 for people, mixed": {mixed, []string{"fio 10s io 16384 1073741824 2.5 0 4 io_p1=2000 io_p50=2000 io_p99=9000 io_p99.99=2e+06 " +
			"io_max=20000 "}},
		"fio 2 for people, failed": {strings.Replace(fioTwo, "err= 0", "err= 5 (file:io_u.c:1, func=io_u error, error=Input/output error)", 1),
			[]string{"fio 10s write 16384 1073741824 2.5 1 4 write_p1=2000 write_p50=2000 write_p99=9000 write_p99.99=2e+06 write_max=20000 " +
				"job w ended with error 5 (input/output error)"}},
		"fio 2 for people, cut": {fioTwo[:strings.Index(fioTwo, "\nRun status")], []string{"fio 10s write 16384 " +
			"1073741824 2.5 0 4 " +
			"write_p1=2000 write_p50=2000 write_p99=9000 write_p99.99=2e+06 write_max=20000 the file ends before fio's summary of all jobs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Prepare("out.txt", strings.NewReader(c.text), changed, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range all {
				rec := parse(t, d, strings.NewReader(c.text))
				holds(t, name, d.Declared, rec.Reports)
				r := rec.Reports[len(rec.Reports)-1]
				text := fmt.Sprintf("%s %v ", d.Workload, d.End.Sub(d.Start))
				for i, o := range d.Declared.Operations {
					if n := r.Ops[i]; n.Ops > 0 {
						text += fmt.Sprintf("%s %d %d %.1f ", o.Name, n.Ops, n.Bytes, n.Seconds/float64(n.Ops)*1e3)
					}
				}
				text += fmt.Sprintf("%d %g ", r.Errors, d.Concurrency)
				for i, m := range d.Declared.Measures {
					text += fmt.Sprintf("%s=%g ", m.Name, r.Values[i])
				}
				got = append(got, text+d.Failure+d.Lost)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// When a test began and what was warned of is said where the file says it.
func TestFileToolsSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		start      string
	}{
		"ycsb": {"2024-03-05 10:00:10:500 10 sec: 990 operations;\n" + ycsbShort, noZone, "2024-03-05 10:00:00.5"},
		"ycsb, batched": {"2024-03-05 10:00:10:500 10 sec: 990 operations;\n" +
			strings.Replace(ycsbShort, "[UPDATE], Return=OK, 500", "[UPDATE], Return=BATCHED_OK, 500", 1),
			"500 of its updates were put into a batch", "2024-03-05 10:00:00.5"},
		"ior": {strings.Replace(iorBoth, "write     128", "WARNING: Expected aggregate file size       = 7.\nwrite     128", 1),
			"IOR warns: Expected aggregate file size = 7", "2026-02-03 08:00:00"},
		"mdtest": {strings.Split(mdtestShort, "SUMMARY time")[0] + "-- finished at 03/05/2024 10:00:02 --\n",
			"tree creation at 100 a second", "2024-03-05 10:00:00"},
	} {
		all, err := Prepare("out.txt", strings.NewReader(c.text), changed, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := all[0].Start.Format("2006-01-02 15:04:05.999"); got != c.start {
			t.Errorf("%s: it began at %s, want %s", name, got, c.start)
		}
		if notes := strings.Join(all[len(all)-1].Notes, "\n"); !strings.Contains(notes, c.want) {
			t.Errorf("%s: %q, want %q", name, notes, c.want)
		}
	}
}

// Much that others said before it does not hide what a tool printed.
func TestAfterNoise(t *testing.T) {
	t.Parallel()
	lines := 20_000
	if testing.Short() {
		lines = 4_000
	}
	noise := strings.Repeat("[node17] fabric: queue pair made\n", lines)
	for _, c := range shortForms {
		if runsIn(t, c.name, []byte(c.text)) != runsIn(t, c.name, []byte("[node17] ready\n"+c.text)) {
			continue // JSON and the like, which begin a file
		}
		if got := runsIn(t, c.name, []byte(noise+c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if got := runsIn(t, "ior", []byte(noise+iorBoth+"\n")); !strings.HasPrefix(got, "ior write: write 256") {
		t.Errorf("ior: %s", got)
	}
}
