package importer

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"plimsoll/internal/kit/plaintext"
)

// shortForms are outputs of which no file of testdata is, in the shapes that the tools give them. Their totals are
// worked out by hand, from the figures that stand in them.
var shortForms = []struct{ name, text, want string }{
	{"go-tpc", goTPCShort, "go-tpc: delivery 160/8 new_order 1800/36 payment 1700/13.6, 7 errors, 1m0s"},
	{"tpcc-mysql", tpccMySQLShort, "tpcc-mysql: new_order 1010/20.705 payment 1008/8.064 order_status 100/0.5 " +
		"delivery 101/6.06 stock_level 100/1.2, 4 errors, 20s"}, // sc + lt, times avg_rt
	{"benchbase", benchBaseShort, "BenchBase tpcc: request 5880/17.64, 0 errors, 1m0s"}, // 98/s over 60 s, times 3 ms
	{"ior-json", iorJSONShort, "ior write: write 256/7.68/268435456, 0 errors, 2s\n" + // 128 MiB/s over 2 s
		"ior read: read 256/1.792/268435456, 0 errors, 500ms"}, // 512 MiB/s over 0.5 s
	{"ior-csv", iorCSVShort, "ior write: write 256/7.68/268435456, 0 errors, 2s\n" +
		"ior read: read 256/1.792/268435456, 0 errors, 500ms"},
	{"ior-csv of a spreadsheet", strings.NewReplacer(",", ";", ".", ",").Replace(iorCSVShort),
		"ior write: write 256/7.68/268435456, 0 errors, 2s\nior read: read 256/1.792/268435456, 0 errors, 500ms"},
	{"rados-json", radosJSONShort, "rados bench write: write 320/48/20971520, 0 errors, 3.01s"}, // writes of 64 KiB
	{"rados", radosWrite + radosRead, "rados bench write: write 96/23.04/402653184, 0 errors, 3s\n" +
		"rados bench read: read 96/3.36/402653184, 0 errors, 1.5s"},
	{"k6", k6New, "k6: request 980/19.6, 20 errors, 10s"},
	{"k6 json", k6Exported, "k6: request 980/19.6, 20 errors, 10s"},
	{"ior", iorBoth + "\n", "ior write: write 256/5.12/268435456, 0 errors, 2s\n" +
		"ior read: read 256/1.28/268435456, 0 errors, 500ms"},
	{"ior, rounded", strings.NewReplacer(" 2.00 ", " 1.54 ", "128.00", "166.12").Replace(iorBoth) + "\n",
		"ior write: write 256/5.12/268435456, 0 errors, 1.541054659s\n" + // 256 MiB at 166.12 MiB/s
			"ior read: read 256/1.28/268435456, 0 errors, 500ms"},
	{"iozone, mixed", "\tIozone: Performance Test of File I/O\n\tEach process writes a 1024 kByte file in 4 kByte records\n" +
		"\tChildren see throughput for 2 mixed workload \t=  1024.00 kB/sec\n\niozone test complete.\n",
		"iozone mixed workload, 1024 KiB in 4 KiB: mixed 512/0/2097152, 0 errors, 2s"},
	{"go-tpc that counted times in another unit", "[Summary] NEW_ORDER - Takes(s): 60.0, Count: 200, TPM: 200.0, " +
		"Sum(ms): 40000.0, Avg(ms): 0.2, 50th(ms): 0.5, 99th(ms): 0.5, Max(ms): 0.5\ntpmC: 200.0, efficiency: 9.7%\n",
		"go-tpc: new_order 200/40, 0 errors, 1m0s"},
	{"dd", "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.5 s, 429 MB/s\n",
		"dd: copy 1024/0/1073741824, 0 errors, 2.5s"},
	{"dd of China", "记录了8+0 的读入\n记录了8+0 的写出\n8388608字节（8.4 MB，8.0 MiB）已复制，0.5 s，16.8 MB/s\n",
		"dd: copy 8/0/8388608, 0 errors, 500ms"},
	{"dd of Japan", "8+0 レコード入力\n8+0 レコード出力\n8388608 バイト (8.4 MB) コピーされました、 0.5 秒、 16.8 MB/秒\n",
		"dd: copy 8/0/8388608, 0 errors, 500ms"},
	{"dd of few bytes", "1+0 Datensätze ein\n1+0 Datensätze aus\n512 Bytes kopiert, 0,000128 s, 4,0 MB/s\n",
		"dd: copy 1/0/512, 0 errors, 128µs"},
	{"dd's last lines", "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.5 s, 429 MB/s\n1073741824 bytes (1.1 GB) copied, 2 s, " +
		"537 MB/s\n", "dd: 1 reports, [4.29497e+08], 0 errors, 2.5s\ndd: 1 reports, [5.36871e+08], 0 errors, 2s"},
	{"dd's last line, BSD", "1073741824 bytes transferred in 2.000000 secs (536870912 bytes/sec)\n",
		"dd: 1 reports, [5.36871e+08], 0 errors, 2s"},
	{"bonnie++ 1.03", "host1,1G,1024,90,2048,20,,,+++++,+++,4096,12,512.0,1,16,2000,9,+++++,+++,3000,8,2100,9,+++++,+++," +
		"2500,7\n", "bonnie++ writes, a character at a time: 1 reports, [1.04858e+06 90], 0 errors, 17m4s\n" +
		"bonnie++ block writes: 1 reports, [2.09715e+06 20], 0 errors, 8m32s\n" +
		"bonnie++ block reads: 1 reports, [4.1943e+06 12], 0 errors, 4m16s\n" +
		"bonnie++ seeks: read 8192/0, 0 errors, 16s"}, // 1 GiB at 1, 2 and 4 MiB/s; 8192 seeks at 512/s
	{"rados bench before Jewel", strings.NewReplacer("(s)", "", "Total time", " Total time").Replace(radosWrite),
		"rados bench write: write 96/23.04/402653184, 0 errors, 3s"},
	{"rados bench --show-time", "2020-01-30 18:55:05.270604 " + strings.ReplaceAll(strings.TrimSpace(radosWrite),
		"\nTotal time", "\n2020-01-30T18:55:05.27-0700 Total time") + "\n",
		"rados bench write: write 96/23.04/402653184, 0 errors, 3s"},
	{"sysbench 0.5", sysbench05, "sysbench oltp: transaction 420/31.92, 1 errors, 4s"},
	{"sysbench 0.5, no transactions", strings.NewReplacer("tps: 100.00", "tps: 0.00", "tps: 110.00", "tps: 0.00",
		"420    (105.00", "0    (0.00").Replace(sysbench05), "sysbench oltp: event 420/31.92, 1 errors, 4s"},
	{"sysbench 1.1 fileio", sysbench11File,
		"sysbench fileio: read 30000/0/491520000 write 20000/0/327680000, 0 errors, 10s"},
	// 2900 with 20 of other answers and 2 too late, and 1 of sockets; wrk2 counts those that still wait
	{"wrk", wrkShort, "wrk: request 2878/5.756/1048576, 23 errors, 29.998965552s"},
	{"wrk, all too late", strings.NewReplacer("2900", "3", " 96.67", " 0.10", "timeout 2", "timeout 3", "2.00ms",
		"0.00us", "12.92ms", "0.00us", "1.50ms", "0.00us",
		"9.00ms", "0.00us", "responses: 20", "responses: 0").Replace(wrkShort),
		"wrk:, 4 errors, 30s"},
	// 250 with 7 of another code and 2 not received, and 1 that could not connect; lengths are no failures
	{"ab", abShort, "ab: request 241/9.64/40000, 10 errors, 5s"},
	{"hey", heyShort, "hey: request 190/2.85/2000, 13 errors, 4s"},
	{"oha", strings.NewReplacer("  Total:\t4.0000 secs", "  Success rate:\t98.52%\n  Total:\t4000.0000 ms",
		"0.0150 secs", "15.0000 ms", "0.0140 secs", "14.0000 ms", "%%", ".00%", "2000 bytes", "1.95 KiB",
		"[3]\tGet \"http://h/\": EOF",
		"[3] aborted due to deadline").Replace(heyShort), "oha: request 190/2.85/1997, 10 errors, 4s"},
	{"etcd's benchmark", "\nSummary:\n  Total:\t2.0000 secs.\n  Slowest:\t0.0300 secs.\n  Fastest:\t0.0010 secs.\n  Average:\t" +
		"0.0040 secs.\n  Stddev:\t0.0010 secs.\n  Requests/sec:\t250.0000\n\nResponse time histogram:\n  0.0010 [1]\t|\n\n" +
		"Latency distribution:\n  50% in 0.0035 secs.\n  99.9% in 0.0290 secs.\n", "etcd's benchmark: request 500/2, 0 errors, 2s"},
	{"vegeta", vegetaShort, "vegeta: request 580/5.8/3480, 20 errors, 6.04s"},
	{"vegeta's JSON", vegetaJSONShort, "vegeta: request 580/5.8/3480, 20 errors, 6.04s"},
	{"oha's JSON", ohaJSONShort, "oha: request 95/0.19/950, 7 errors, 2s"},
	{"wrk2", strings.NewReplacer("Latency Distribution",
		"Latency Distribution (HdrHistogram - Recorded Latency)", "  50% ",
		" 50.000%").Replace(wrkShort), "wrk: request 2880/5.76/1048576, 23 errors, 29.998965552s"},
	{"wrk, slow", strings.NewReplacer("2900 requests", "40 requests", "     96.67", "      1.33",
		"responses: 20", "responses: 0").Replace(wrkShort), "wrk: request 38/0.076/1048576, 3 errors, 30s"},
	{"ycsb", ycsbShort, "ycsb: read 490/0.49 update 500/1, 10 errors, 10s"},
	{"ycsb, of which no read succeeded", strings.NewReplacer("Operations, 490", "Operations, 0", "Latency(us), 1000.0",
		"Latency(us), NaN", "[READ], Return=OK, 490\n", "", "NOT_FOUND, 10", "NOT_FOUND, 500",
		"[READ-FAILED], Operations, 10", "[READ-FAILED], Operations, 500").Replace(ycsbShort),
		"ycsb: update 500/1, 500 errors, 10s"},
	{"ycsb, batched", strings.Replace(ycsbShort, "[UPDATE], Return=OK, 500",
		"[UPDATE], Return=OK, 1\n[UPDATE], Return=BATCHED_OK, 499", 1),
		"ycsb: read 490/0.49 update 500/1, 10 errors, 10s"},
	{"ycsb 0.1", "[OVERALL], RunTime(ms), 1000.0\n[OVERALL], Throughput(ops/sec), 100\n" +
		"[INSERT], Operations, 100\n[INSERT], AverageLatency(us), 2000\n[INSERT], Return=0, 96\n[INSERT], Return=-1, 4\n", "ycsb: insert 96/0.192, 4 errors, 1s"},
	{"mdtest", mdtestShort, "mdtest file creation: entry 4000/0, 0 errors, 500ms\n" + // 8000/s
		"mdtest file stat: entry 6000/0, 0 errors, 150ms"}, // 40000/s for 0.15 s
	{"diskspd of Linux", diskspdLinux, "diskspd: read 3000/1.5/24576000, 0 errors, 10s"},
	// The first interval begins before the test. 15 columns: lags of 2 and 3 s in all, 5 and 0 skipped, 1 and 2 failed.
	{"pgbench, to a schedule", "1699999999 7 50000 0 1 9 20000 0 1 9 1 0 0 1 0\n" +
		"1700000000 100 500000 0 1 9 200000 0 1 9 5 0 0 1 0\n1700000001 120 600000 0 1 9 300000 0 1 9 0 0 0 0 2\n",
		"pgbench: transaction 220/1.1, 3 errors, 2s"},
	{"pgbench, to a schedule before 15", // which counts the 5 that it skipped
		"1699999999 7 50000 0 1 9 20000 0 1 9 1\n1700000000 105 500000 0 1 9 200000 0 1 9 5\n1700000001 120 600000 0 1 9 300000 0 1 9 0\n",
		"pgbench: transaction 220/1.1, 0 errors, 2s"},
	{"pgbench, one interval", "1700000000 100 500000 0 1 9\n", "pgbench: transaction 100/0.5, 0 errors, 1s"},
	// Client 0 did 12 since the first line, client 1 as many as it says beyond the 9 that stood before the first line,
	// of which one failed line stands for 3.
	{"pgbench, a sample", "0 10 2000 0 1700000000 2000\n1 14 4000 0 1700000000 10000\n0 21 3000 0 1700000000 500000\n" +
		"1 17 failed 0 1700000000 900000\n1 27 3000 0 1700000001 0\n",
		"pgbench: transaction 27/0.081, 3 errors, 1s"}, // 1 + 5 + 11 and 10, each of 3 ms by the sample
	{"pgbench, two tests in a log", "0 1 2000 0 1700000000 2000\n0 2 4000 0 1700000000 10000\n" +
		"0 1 3000 0 1700000001 0\n", "pgbench: transaction 3/0.009, 0 errors, 1s"},
	{"pgbench -C", pgbenchTotals("", "average connection time = 35.286 ms\ntps = 20 (including reconnection times)"),
		"pgbench 4 clients: transaction 64/12.8, 0 errors, 3.2s"}, // 64 at 20/s, each of 200 ms
	{"pgbench, of which lines were left out", pgbenchTotals("", "tps = 20 (without initial connection time)") +
		"=== RUN 2\nduration: 3 s\nnumber of transactions actually processed: 90\nlatency average = 100.000 ms\n" +
		"tps = 30 (without initial connection time)\n", "pgbench 4 clients: transaction 64/12.8, 0 errors, 3.2s\n" +
		"pgbench: transaction 90/9, 0 errors, 3s"},
	{"pgbench -P", pgbenchTotals( // 64 at 25/s; its lines of progress have it that more, and longer ones, were done
		"progress: 1.0 s, 30.0 tps, lat 300.000 ms stddev 9\nprogress: 3.0 s, 40.0 tps, lat 200.000 ms stddev 9\n",
		"initial connection time = 500 ms\ntps = 25 (without initial connection time)"),
		"pgbench 4 clients: transaction 64/12.8, 0 errors, 2.56s"},
	{"pgbench -P before 14", pgbenchTotals(
		"progress: 1.0 s, 30.0 tps, lat 300.000 ms stddev 9\nprogress: 3.0 s, 17.0 tps, lat 200.000 ms stddev 9\n",
		"tps = 20 (including connections establishing)\ntps = 25 (excluding connections establishing)"),
		"pgbench 4 clients: transaction 64/12.8, 0 errors, 2.56s"},
	{"sysbench 0.4", sysbenchOldSQL, "sysbench oltp: transaction 700/59.5, 2 errors, 1m0s"},
	{"sysbench 0.4 fileio", sysbenchOldFile, "sysbench fileio: read 800/0/3276800 write 200/0/819200, 0 errors, 10s"},
	{"sysbench 0.4 memory", sysbenchOldMemory, "sysbench memory: read 1000/0.5/1048576, 0 errors, 2s"},
	{"iozone -O", iozoneOPS, "iozone initial writers, 1024 KiB in 4 KiB: write 512/0/2097152, 0 errors, 256ms"}, // 2000/s
	{"fio 2.0", "r: (g=0): rw=randread, bs=4K-4K/4K-4K, ioengine=libaio, iodepth=1\n2.0.8\n" +
		"r: (groupid=0, jobs=1): err= 0: pid=501549\n  read : io=4000KB, bw=400.0KB/s, iops=100 , runt= 10000msec\n" +
		"     issued    : total=r=1000/w=0/d=0, short=r=0/w=0/d=0\n\nRun status group 0 (all jobs):\n",
		"fio: read 1000/0/4096000, 0 errors, 10s"},
	{"elbencho of files, older", elbenchoOldFiles, "elbencho mkdirs: entry 2/0, 0 errors, 2.5ms\n" +
		"elbencho write: write 1000/0/4194304, 0 errors, 2s"},
	{"x_slat.1.log", "500, 1200, 0, 0, 0\n1000, 1400, 0, 0, 0\n1500, 1600, 0, 0, 0\n",
		"fio slat log: 3 reports, [1.6 NaN NaN], 0 errors, 1.5s"},
	{"hammerdb-json", `["x","HammerDB CLI v4.12","1","Timing test period of 5 in minutes","1",` +
		`"8 Active Virtual Users configured","1","TEST RESULT : System achieved 100 NOPM from 230 PostgreSQL TPM","3",` +
		`"FINISHED SUCCESS"]`, "TPROC-C 8 VU: 1 reports, [100 230], 0 errors, 5m0s"},
	{"vdbench", intervals(""), "vdbench mix: read 400/0.16 write 400/0.24, 0 errors, 4s"},
	// No space is left where the numbers of intervals are long.
	{"vdbench, long", strings.Replace(intervals(""), "     avg_2-5", "avg_000004-5", 1),
		"vdbench mix: read 200/0.08 write 200/0.12, 0 errors, 2s"},
}

// pgbenchTotals is a test of 64 transactions of 200 ms.
func pgbenchTotals(progress, end string) string {
	return "pgbench (15.18)\n" + progress + "transaction type: <builtin: select only>\nscaling factor: 2\n" +
		"query mode: simple\nnumber of clients: 4\nnumber of threads: 1\nduration: 3 s\n" +
		"number of transactions actually processed: 64\nlatency average = 200.000 ms\n" + end + "\n"
}

const elbenchoOldFiles = `OPERATION RESULT TYPE        FIRST DONE  LAST DONE
========= ================   ==========  =========
MKDIRS    Elapsed ms       :          0          2
          Dirs/s           :       1000        800
          Total dirs       :          1          2
---
WRITE     Elapsed ms       :       1900       2000
          Files/s          :        500        500
          Throughput MiB/s :          2          2
          Total files      :        950       1000
          Total MiB        :          3          4
---
`

const sysbench05 = `sysbench 0.5:  multi-threaded system evaluation benchmark

Number of threads: 8

[   2s] threads: 8, tps: 100.00, reads/s: 1400.00, writes/s: 400.00, response time: 90.00ms (95%)
[   4s] threads: 8, tps: 110.00, reads: 1540.00, writes: 440.00, response time: 85.00ms (95%), errors: 0.50, reconnects:  0.00
OLTP test statistics:
    transactions:                        420    (105.00 per sec.)
    read/write requests:                 7560   (1890.00 per sec.)
    ignored errors:                      1      (0.25 per sec.)

General statistics:
    total time:                          4.0000s
    total number of events:              420
    total time taken by event execution: 31.9200s
    response time:
         avg:                                 76.00ms
         max:                                200.00ms
         approx.  95 percentile:              88.00ms
`

const sysbench11File = `sysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)

128 files, 8MiB each
Block size 16KiB

Throughput:
         read:  IOPS=3000.00 46.875 MiB/s (49.15 MB/s)
         write: IOPS=2000.00 31.25 MiB/s (32.77 MB/s)
         fsync: IOPS=6400.00

Latency (ms):
         avg:                                  0.35
         max:                                 20.00
         sum:                              39900.00

Throughput:
    events/s (eps):                      11400.0000
    time elapsed:                        10.0000s
    total number of events:              114000

Threads fairness:
    execution time (avg/stddev):   9.9750/0.00
`

const wrkShort = `Running 30s test @ http://127.0.0.1/
  2 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.00ms    0.89ms  12.92ms   93.69%
    Req/Sec    48.20      8.07    62.00     86.54%
  Latency Distribution
     50%    1.50ms
     99%    9.00ms
  2900 requests in 30.00s, 1.00MB read
  Socket errors: connect 0, read 1, write 0, timeout 2
  Non-2xx or 3xx responses: 20
Requests/sec:     96.67
Transfer/sec:     34.13KB
`

const abShort = `This is ApacheBench, Version 2.3 <$Revision: 1 $>

Server Software:        x
Document Path:          /q?a=1
Document Length:        150 bytes

Concurrency Level:      10
Time taken for tests:   5.000 seconds
Complete requests:      250
Failed requests:        11
   (Connect: 1, Receive: 2, Length: 8, Exceptions: 0)
Non-2xx responses:      7
Total transferred:      40000 bytes
Requests per second:    50.00 [#/sec] (mean)
Time per request:       200.000 [ms] (mean)
Time per request:       20.000 [ms] (mean, across all concurrent requests)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.1      0       1
Total:          9   40   7.2     38     90

Percentage of the requests served within a certain time (ms)
  50%     38
  99%     80
 100%     90 (longest request)
`

const heyShort = `
Summary:
  Total:	4.0000 secs
  Slowest:	0.0150 secs
  Average:	0.0150 secs
  Requests/sec:	50.7500

  Total data:	2000 bytes

Response time histogram:
  0.014 [200]	|■■■■

Latency distribution:
  50%% in 0.0140 secs
  99%% in 0.0150 secs

Details (average, fastest, slowest):
  resp wait:	0.0139 secs, 0.0002 secs, 0.0442 secs

Status code distribution:
  [200]	190 responses
  [503]	10 responses

Error distribution:
  [3]	Get "http://h/": EOF
`

const vegetaShort = `Requests      [total, rate, throughput]         600, 100.17, 96.03
Duration      [total, attack, wait]             6.04s, 5.99s, 50ms
Latencies     [min, mean, 50, 90, 95, 99, max]  209.5µs, 10ms, 8.5ms, 23ms, 33ms, 34.5ms, 1m1.3s
Bytes In      [total, mean]                     3480, 5.80
Success       [ratio]                           96.67%
Status Codes  [code:count]                      0:5  200:570  302:10  500:15
Error Set:
500 Internal Server Error
`

const vegetaJSONShort = `{"latencies":{"total":6000000000,"mean":10000000,"50th":8500000,"99th":34500000,"max":41300000},
"bytes_in":{"total":3480,"mean":5.8},"earliest":"2026-03-02T10:00:00Z","duration":5990000000,"wait":50000000,
"requests":600,"rate":100.17,"success":0.9667,"status_codes":{"0":5,"200":570,"302":10,"500":15},"errors":[]}
`

const ohaJSONShort = `{"summary": {"successRate": 0.98, "total": 2.0, "slowest": 0.01, "average": 0.002, "totalData": 950},
"latencyPercentiles": {"p50": 0.0015, "p99": 0.008, "p99.99": null}, "statusCodeDistribution": {"200": 95, "500": 5},
"errorDistribution": {"aborted due to deadline": 4, "connection refused": 2}}
`

const ycsbShort = `Command line: -db site.ycsb.BasicDB -threads 8 -t
[OVERALL], RunTime(ms), 10000
[OVERALL], Throughput(ops/sec), 100.0
[TOTAL_GCS_Copy], Count, 3
[READ], Operations, 490
[READ], AverageLatency(us), 1000.0
[READ], MaxLatency(us), 9000
[READ], 95thPercentileLatency(us), 2000
[READ], 99thPercentileLatency(us), 5000
[READ], Return=OK, 490
[READ], Return=NOT_FOUND, 10
[READ], 0, 12
[CLEANUP], Operations, 8
[CLEANUP], AverageLatency(us), 3.0
[UPDATE], Operations, 500
[UPDATE], AverageLatency(us), 2000.0
[UPDATE], 99.9PercentileLatency(us), 7000
[UPDATE], Return=OK, 500
[READ-FAILED], Operations, 10
[READ-FAILED], AverageLatency(us), 800.0
`

const mdtestShort = `-- started at 03/05/2024 10:00:00 --

mdtest-4.0.0 was launched with 4 total task(s) on 1 node(s)
4 tasks, 4000 files/directories

SUMMARY rate: (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation               8000.000       8000.000       8000.000          0.000
   File stat                  40000.000      40000.000      40000.000          0.000
   File read                      0.000          0.000          0.000          0.000
   Tree creation                100.000        100.000        100.000          0.000

SUMMARY time (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                  0.500          0.500          0.500          0.000
   File stat                      0.150          0.150          0.150          0.000
-- finished at 03/05/2024 10:00:02 --
`

const sysbenchOldSQL = `sysbench 0.4.12:  multi-threaded system evaluation benchmark

Number of threads: 1

OLTP test statistics:
    queries performed:
        total:                           19374
    transactions:                        700    (11.67 per sec.)
    deadlocks:                           2      (0.03 per sec.)
    read/write requests:                 13528  (225.47 per sec.)
    other operations:                    5846   (97.43 per sec.)

Test execution summary:
    total time:                          60.0000s
    total number of events:              700
    total time taken by event execution: 59.5000
    per-request statistics:
         avg:                                 85.00ms
         max:                                311.89ms
         approx.  95 percentile:             224.40ms

Threads fairness:
    events (avg/stddev):           1000.0000/0.00
    execution time (avg/stddev):   9.0000/0.00
`

const sysbenchOldFile = `sysbench 0.4.12:  multi-threaded system evaluation benchmark

128 files, 64Mb each
Block size 4Kb
Operations performed:  800 Read, 200 Write, 256 Other = 1256 Total
Read 3.125Mb  Written 800Kb  Total transferred 3.9063Mb  (400Kb/sec)

Test execution summary:
    total time:                          10.0000s
    total number of events:              1000
         avg:                                  0.10ms

Threads fairness:
    events (avg/stddev):           1000.0000/0.00
    execution time (avg/stddev):   9.0000/0.00
`

const sysbenchOldMemory = `sysbench 0.4.12:  multi-threaded system evaluation benchmark

Memory block size: 1K

Memory operations type: read
Operations performed: 1000 (500.00 ops/sec)

1.00 MB transferred (0.50 MB/sec)

Test execution summary:
    total time:                          2.0000s
    total time taken by event execution: 0.5000

Threads fairness:
    events (avg/stddev):           1000.0000/0.00
    execution time (avg/stddev):   9.0000/0.00
`

const iozoneOPS = `	Iozone: Performance Test of File I/O
	        Version $Revision: 3.507 $
	OPS Mode. Output is in operations per second.
	Each process writes a 1024 kByte file in 4 kByte records

	Children see throughput for  2 initial writers  =    2000.00 ops/sec

iozone test complete.
`

const goTPCShort = `Finished
[Summary] DELIVERY - Takes(s): 59.5, Count: 160, TPM: 161.3, Sum(ms): 8000.0, Avg(ms): 50.0, 50th(ms): 48.2, Max(ms): 113.2
[Summary] NEW_ORDER - Takes(s): 60.0, Count: 1800, TPM: 1800.0, Sum(ms): 36000.0, Avg(ms): 20.0, 99.9th(ms): 71.3
[Summary] NEW_ORDER_ERR - Takes(s): 60.0, Count: 7, TPM: 7.0, Sum(ms): 70.0, Avg(ms): 10.0, 50th(ms): 9.4, Max(ms): 11.5
[Summary] PAYMENT - Takes(s): 59.9, Count: 1700, TPM: 1702.8, Sum(ms): 13600.0, Avg(ms): 8.0, 50th(ms): 7.9
tpmC: 1800.0, tpmTotal: 3664.1, efficiency: 140.0%
`

const tpccMySQLShort = ` [connection]: 16
  10, trx: 500, 95%: 40.1, 99%: 60.2, max_rt: 90.3, 499|80.1, 50|20.2, 51|90.3, 50|99.4

<Raw Results>
  [0] sc:1000 lt:10  rt:0  fl:3 avg_rt: 20.5 (5)
  [1] sc:1008 lt:0  rt:0  fl:1 avg_rt: 8.0 (5)
  [2] sc:100 lt:0  rt:0  fl:0 avg_rt: 5.0 (5)
  [3] sc:101 lt:0  rt:0  fl:0 avg_rt: 60.0 (80)
  [4] sc:100 lt:0  rt:0  fl:0 avg_rt: 12.0 (20)
 in 20 sec.

<Raw Results2(sum ver.)>
  [0] sc:1000  lt:10  rt:0  fl:3
  [1] sc:1008  lt:0  rt:0  fl:1

<TpmC>
                 3030.000 TpmC
`

const benchBaseShort = `{
  "Start timestamp (milliseconds)": 1722513550000, "Elapsed Time (nanoseconds)": 60000000000,
  "DBMS Type": "POSTGRES", "Benchmark Type": "tpcc", "Final State": "EXIT", "Measured Requests": 6000,
  "scalefactor": "4", "terminals": "8",
  "Latency Distribution": {"95th Percentile Latency (microseconds)": 9000,
    "Median Latency (microseconds)": 2500, "Average Latency (microseconds)": 3000},
  "Throughput (requests/second)": 100.0, "Goodput (requests/second)": 98.0
}
`

const iorJSONShort = `{"Version": "4.0.0", "Began": "Tue Mar  3 10:00:00 2026", "tests": [{"TestID": 0,
  "Options": {"api": "POSIX", "tasks": 4, "blocksize": "64 MiB"}, "Results": [
  {"access": "write", "bwMiB": 128.0, "xferKiB": 1024.0, "latency": 0.03, "totalTime": 2.0},
  {"access": "read", "bwMiB": 512.0, "xferKiB": 1024.0, "latency": 0.007, "totalTime": 0.5}]}],
  "Finished": "Tue Mar  3 10:00:03 2026"}
`

const iorCSVShort = `access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter
write,128.0000,130.0000,0.0300,65536.0000,1024.0000,0.0100,1.9000,0.0100,2.0000,4,0
read,512.0000,520.0000,0.0070,65536.0000,1024.0000,0.0100,0.4800,0.0100,0.5000,4,0
`

const radosJSONShort = `{"concurrent_ios":"16","object_size":"4194304","op_size":"65536","datas":[
  {"sec":"0","finished":"0","last_lat":"-"},{"sec":"1","finished":"100"},{"sec":"2","finished":"210"}],
  "total_time_run":"3.010000","total_writes_made":"320","write_size":"65536","object_size":"4194304",
  "average_latency":"0.150000","max_latency":"0.4","min_latency":"0.05"}
`

// The course of a bench stands in its JSON, and the size of an operation is no object's.
func TestShortForms(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(shortForms, requestLogForms, loadTableForms) {
		if got := runsIn(t, c.name, []byte(c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// runsIn returns what a file comes to: a line for each run in it, or what is wrong with it.
func runsIn(t *testing.T, name string, data []byte) string {
	t.Helper()
	all, err := Prepare(name, bytes.NewReader(data), changed, Options{Interval: time.Second})
	if err != nil {
		return "refused"
	}
	var lines []string
	for _, d := range all {
		r := parse(t, d, bytes.NewReader(data))
		last := r.Reports[len(r.Reports)-1]
		line := numbered.ReplaceAllString(d.Workload, "") + ":"
		for i, o := range d.Declared.Operations {
			if c := last.Ops[i]; c.Ops > 0 {
				line += fmt.Sprintf(" %s %d/%.6g", o.Name, c.Ops, c.Seconds)
				if c.Bytes > 0 {
					line += fmt.Sprintf("/%d", c.Bytes)
				}
			}
		}
		if len(d.Declared.Operations) == 0 {
			line += fmt.Sprintf(" %d reports, %.6g", d.Reports, last.Values)
		}
		lines = append(lines, fmt.Sprintf("%s, %d errors, %v", line, last.Errors, last.Elapsed))
	}
	return strings.Join(lines, "\n")
}

var numbered = regexp.MustCompile(` \(\d+\)$`)

// everyForm are a short output of each form, and all of testdata.
func everyForm(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, c := range slices.Concat(shortForms, requestLogForms, loadTableForms) {
		all[c.name] = c.text
	}
	files, _ := filepath.Glob("testdata/outputs/*")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[f] = string(data)
	}
	return all
}

// What a file says does not change by how its text is written: with the ends of lines of Windows, a byte order mark, in
// UTF-16.
func TestEveryFormWrittenOtherwise(t *testing.T) {
	t.Parallel()
	for name, text := range everyForm(t) {
		want := runsIn(t, name, []byte(text))
		for form, data := range map[string][]byte{
			"CRLF":   []byte(strings.ReplaceAll(text, "\n", "\r\n")),
			"mark":   []byte("\ufeff" + text),
			"UTF-16": inUTF16(text), "UTF-16 without a mark": inUTF16(text)[2:],
			"UTF-16, big endian": swapped(inUTF16(text)), "the same without a mark": swapped(inUTF16(text)[2:]),
		} {
			plain, err := io.ReadAll(plaintext.Reader(bytes.NewReader(data)))
			if err != nil {
				t.Fatal(err)
			}
			if got := runsIn(t, name, plain); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, form, got, want)
			}
		}
	}
}

// swapped has the bytes of every pair the other way round.
func swapped(pairs []byte) []byte {
	for i := 0; i+1 < len(pairs); i += 2 {
		pairs[i], pairs[i+1] = pairs[i+1], pairs[i]
	}
	return pairs
}

func inUTF16(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return out
}

// onceMore are forms in which the same moments once more are the same run: their times say so. What is of threads that
// log apart is added up, by the time that every line has.
var onceMore = regexp.MustCompile(`/(?:io(?:dy|iso|stat-.*|t)|sadf.*|sar-.*|vmt)\.\w+$|/one\.json$`)

var addedUp = regexp.MustCompile(`/pgbench_log|pgbench, (?:to|one|two|a sample)`)

// An output that another was appended to holds two tests, each as if it were alone.
func TestEveryFormAppended(t *testing.T) {
	t.Parallel()
	for name, text := range everyForm(t) {
		once := runsIn(t, name, []byte(text))
		if once == "refused" || addedUp.MatchString(name) {
			continue
		}
		want := once + "\n" + once
		switch {
		case onceMore.MatchString(name):
			want = once
		case strings.HasSuffix(name, "/vm.txt"), strings.HasSuffix(name, "/io.json"): // without times: a longer course
			want = regexp.MustCompile(`(\d+) reports(.*) (\d+)s$`).ReplaceAllStringFunc(once, func(s string) string {
				var n, k int
				var among string
				m := regexp.MustCompile(`(\d+) reports(.*) (\d+)s$`).FindStringSubmatch(s)
				_, _ = fmt.Sscan(m[1], &n)
				_, _ = fmt.Sscan(m[3], &k)
				among = m[2]
				return fmt.Sprintf("%d reports%s %ds", 2*n, among, 2*k)
			})
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if got := runsIn(t, name, []byte(text+text)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// What was cut within a line is refused, or says that it was.
func TestEveryFormCut(t *testing.T) {
	t.Parallel()
	tells := regexp.MustCompile(`cut|ends (?:early|before|within)|has no end|breaks off|no totals`)
	for name, text := range everyForm(t) {
		whole := runsIn(t, name, []byte(text))
		for part := 3; part < 20; part += 4 {
			at := len(text) * part / 20
			for at > 1 && (text[at-1] == '\n' || text[at] == '\n') {
				at--
			}
			all, err := Prepare(name, strings.NewReader(text[:at]), changed, Options{Interval: time.Second})
			if err != nil || runsIn(t, name, []byte(text[:at])) == whole {
				continue
			}
			told := false
			for _, d := range all {
				told = told || d.Failure != "" || tells.MatchString(strings.Join(d.Notes, "\n"))
			}
			if !told {
				t.Errorf("%s cut at %d of %d: nothing says so: ...%q", name, at, len(text), text[max(0, at-40):at])
			}
		}
	}
}

// What pgbench was asked for stands beside its figures, so that unlike tests are not compared.
// Before 14 no text tells -C.
func TestPgbenchAsked(t *testing.T) {
	t.Parallel()
	perClient := strings.Replace(pgbenchTotals("", "tps = 20 (excluding connections establishing)"), "duration: 3 s",
		"number of transactions per client: 16", 1)
	for want, text := range map[string]string{
		"one for each transaction, 3s": pgbenchTotals("", "tps = 20 (including reconnection times)"),
		"kept, 3s": pgbenchTotals("",
			"initial connection time = 9 ms\ntps = 20 (without initial connection time)"),
		", 16 transactions of each client": perClient,
	} {
		all, err := Prepare("a.txt", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatal(want, all, err)
		}
		asked := map[string]string{}
		for _, f := range all[0].Facts {
			asked[f.Name] = fmt.Sprint(f.Value)
		}
		if got := asked["connections"] + ", " + asked["runtime"]; got != want {
			t.Errorf("got %q, want %q of %v", got, want, all[0].Facts)
		}
	}
}

// TestEveryFormIsTried: what is tried in every form is every form.
func TestEveryFormIsTried(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for name, text := range everyForm(t) {
		all, err := Prepare(name, strings.NewReader(text), changed, Options{Interval: time.Second})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, d := range all {
			tried[d.As] = true
		}
	}
	for _, f := range Forms() {
		if !tried[f.Name] && f.Name != fioLog { // which is any of fio's logs by its name
			t.Errorf("no output of %s is tried", f.Name)
		}
	}
}

// TestK6Checks: what a script holds against its answers is told, and the bytes by the prefixes of k6, of 1000.
func TestK6Checks(t *testing.T) {
	t.Parallel()
	const bytes = "     data_received..................: 9.9 MB  9.62 kB/s\n"
	for form, text := range map[string]string{
		"old": k6Old + bytes + "     checks.........................: 95.00% ✓ 19        ✗ 1\n",
		"new": k6New + bytes + "     checks_failed..................: 5.00%  1 out of 20\n",
		"JSON": strings.Replace(k6Exported, `"iterations"`, `"checks":{"passes":19,"fails":1,"value":0.95},`+
			`"data_received":{"count":9900000,"rate":9620},"iterations"`, 1),
	} {
		all, err := Prepare("a.txt", strings.NewReader(text), changed, Options{})
		if err != nil || len(all) != 1 {
			t.Fatal(form, all, err)
		}
		if !strings.Contains(strings.Join(all[0].Notes, "\n"), "1 of 20 checks of its script did not hold") {
			t.Errorf("%s: %q", form, all[0].Notes)
		}
		got := math.NaN()
		for i, m := range all[0].Declared.Measures {
			if m.Name == "data_received" {
				got = parse(t, all[0], strings.NewReader(text)).Reports[0].Values[i]
			}
		}
		if got != 9620 {
			t.Errorf("%s: %v bytes/s", form, got)
		}
	}
}

// Threads of vdbench are of each SD: of several SDs as many are at work at once as its rates and times say.
func TestVdbenchThreadsAreOfEachSD(t *testing.T) {
	t.Parallel()
	const text = `09:30:45.005 input argument scanned: '-f/tmp/p'
09:30:50.005 Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=3; For loops: threads=2

Apr 24, 2024  interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  queue  cpu%  cpu%
                             rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev  depth sys+u   sys
09:30:51.050         1    1000.0     7.81    8192   0.00    4.000    0.000    4.000     0.00     9.67    0.543    4.0  65.1  36.5
09:30:52.050         2    1000.0     7.81    8192   0.00    4.000    0.000    4.000     0.00     9.80    0.094    4.0  70.3  50.6
09:30:53.050         3    1000.0     7.81    8192   0.00    4.000    0.000    4.000     0.00     9.96    0.073    4.0  70.8  51.3
09:30:53.060   avg_2-3    1000.0     7.81    8192   0.00    4.000    0.000    4.000     0.00     9.96    0.084    4.0  70.6  51.0
09:30:54.050 Vdbench execution completed successfully. Output directory: /tmp/o
`
	for resp, want := range map[string]float64{"4.000": 4, "1.950": 2} {
		of, err := Prepare("a", strings.NewReader(strings.ReplaceAll(text, "4.000", resp)), changed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(strings.Join(of[0].Notes, "\n"), "threads=2 is of each SD")
		if of[0].Concurrency != want || said != (want > 2) {
			t.Errorf("resp %s: %g at once, want %g; %q", resp, of[0].Concurrency, want, of[0].Notes)
		}
	}
}
