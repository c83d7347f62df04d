package importer

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"plimsoll/result"
)

const jmeterHead = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage," +
	"bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"

// Of five samples one failed, with a message of two lines and a quotation; a row of a transaction controller is of two
// others together.
const jmeterShort = jmeterHead +
	"1750000000000,200,Home,200,OK,T 1-1,text,true,,1000,100,2,2,http://h/,150,0,1\n" +
	"1750000000100,300,\"Log, in\",200,OK,T 1-2,text,true,,3000,100,2,2,http://h/,250,0,1\n" +
	"1750000000000,400,both,200,\"Number of samples in transaction : 2, number of failing samples : 0\",T 1-1,,true,," +
	"4000,200,2,2,null,0,0,0\n" +
	"1750000000400,900,Home,500,no,T 1-1,text,false,\"of \"\"two\"\"\nlines\",10,100,2,2,http://h/,800,0,1\n" +
	"1750000000500,1000,Home,200,OK,T 1-2,text,true,,1000,100,2,2,http://h/,150,0,1\n" +
	"1750000001500,1500,Home,200,OK,T 1-1,text,true,,1000,100,1,1,http://h/,150,0,1\n"

// The same, as XML: a page's parts are in its time, and the requests of a transaction stand within it or before it.
const jmeterXMLShort = `<?xml version="1.0" encoding="UTF-8"?>
<testResults version="1.2">
<httpSample t="200" it="0" lt="150" ct="1" ts="1750000000000" s="true" lb="Home" rc="200" rm="OK" tn="T 1-1" dt="text" ` +
	`by="1000" sby="100" ng="2" na="2">
  <httpSample t="90" ts="1750000000010" s="false" lb="Home-0" rc="302" rm="Found" tn="T 1-1" by="400" ng="2" na="2"/>
  <java.net.URL>http://h/</java.net.URL>
</httpSample>
<sample t="300" ts="1750000000100" s="true" lb="both" rc="200" rm="Number of samples in transaction : 1, number of failing ` +
	`samples : 0" tn="T 1-2" by="3000" ng="2" na="2">
  <httpSample t="300" ts="1750000000100" s="true" lb="Log, in" rc="200" rm="OK" tn="T 1-2" by="3000" ng="2" na="2"/>
</sample>
<sample t="400" ts="1750000000000" s="true" lb="both" rc="200" rm="Number of samples in transaction : 2, number of failing ` +
	`samples : 0" tn="T 1-1" by="4000" ng="0" na="0"/>
<httpSample t="900" ts="1750000000400" s="false" lb="Home" rc="500" rm="no" tn="T 1-1" by="10" ng="2" na="2">
  <responseData class="java.lang.String">&lt;sample t="1"&gt;</responseData>
</httpSample>
<httpSample t="1000" ts="1750000000500" s="true" lb="Home" rc="200" rm="OK" tn="T 1-2" by="1000" ng="2" na="2"/>
<httpSample t="1500" ts="1750000001500" s="true" lb="Home" rc="200" rm="OK" tn="T 1-1" by="1000" ng="1" na="1"/>
</testResults>
`

// Intervals of tpcc-mysql are the course of its results, of either way in which it prints them.
func TestTPCCCourse(t *testing.T) {
	t.Parallel()
	const older = "  10, 500(1):0.40|0.90, 499(0):0.1|0.2, 50(0):0.1|0.2, 51(0):0.1|0.2, 50(0):0.1|0.2\n"
	const newer = "  10, trx: 500, 95%: 40.1, 99%: 60.2, max_rt: 90.3, 499|80.1, 50|20.2, 51|90.3, 50|99.4\n"
	for _, step := range []string{newer, older} {
		text := strings.Replace(tpccMySQLShort, newer, step+strings.Replace(step, " 10,", " 20,", 1), 1)
		all := parse(t, prepareOne(t, "a.txt", text), strings.NewReader(text)).Reports
		if len(all) != 2 || all[0].Elapsed != 10*time.Second || all[0].Ops[0].Ops != 500 || all[0].Ops[4].Ops != 50 ||
			all[1].Elapsed != 20*time.Second || all[1].Ops[0].Ops != 1010 {
			t.Errorf("%s: %+v", step, all)
		}
	}
}

// Of k6 a request is told when it ended, in 0.2, 0.3, 0.9 and 1 s.
const k6RowsShort = `{"metric":"vus","type":"Metric","data":{"name":"vus","type":"gauge"}}
{"metric":"http_req_duration","type":"Metric","data":{"name":"http_req_duration","type":"trend","contains":"time"}}
{"metric":"http_reqs","type":"Point","data":{"time":"2026-03-02T10:00:00.2Z","value":1,"tags":{"expected_response":"true"}}}
{"metric":"http_req_duration","type":"Point","data":{"time":"2026-03-02T10:00:00.2Z","value":200,"tags":{"name":"/a"}}}
{"metric":"http_req_duration","type":"Point","data":{"time":"2026-03-02T10:00:00.3Z","value":300,"tags":` +
	`{"expected_response":"true"}}}
{"metric":"http_req_duration","type":"Point","data":{"time":"2026-03-02T10:00:01.2Z","value":900,"tags":` +
	`{"expected_response":"false"}}}
{"metric":"vus","type":"Point","data":{"time":"2026-03-02T10:00:01Z","value":2,"tags":null}}
{"metric":"http_req_duration","type":"Point","data":{"time":"2026-03-02T10:00:02Z","value":1000,"tags":` +
	`{"expected_response":"true"}}}
`

const k6CSVShort = `metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,status
http_reqs,1772445600,1.000000,,,,true,,GET,/a,200
http_req_duration,1772445601,200.000000,,,,true,,GET,/a,200
http_req_duration,1772445601,300.000000,,,,true,,GET,/a,200
http_req_duration,1772445601,900.000000,,,,false,,GET,/a,500
vus,1772445601,2.000000,,,,,,,,
http_req_duration,1772445602,1000.000000,,,,true,,GET,/a,200
`

// The figures of YCSB's text as its exporter of JSON writes them.
var ycsbJSONShort = regexp.MustCompile(`(?m)^\[(.+)\], (.+), (.+)$`).ReplaceAllString(strings.SplitAfterN(ycsbShort, "\n",
	2)[1], "{\n  \"metric\" : \"$1\",\n  \"measurement\" : \"$2\",\n  \"value\" : $3\n}")

const benchBaseRawShort = "Transaction Type Index,Transaction Name,Start Time (microseconds),Latency (microseconds),Worker Id " +
	"(start number),Phase Id (index in config file)\n1,NewOrder,1772532000.000000,5000,0,0\n2,Payment,1772532000.100000," +
	"2000,1,0\n1,NewOrder,1772532001.500000,7000,0,0\n"

// Of transactions that are samples themselves (Generate parent sample), the requests have no rows.
const jmeterAlone = jmeterHead +
	"1750000000000,400,buy,200,\"Number of samples in transaction : 2, number of failing samples : 0\",T 1-1,,true,," +
	"4000,200,1,1,null,0,0,0\n" +
	"1750000000400,600,buy,500,\"Number of samples in transaction : 2, number of failing samples : 1\",T 1-1,,false,," +
	"10,200,1,1,null,0,0,0\n"

const heyCSVShort = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n" +
	"0.5000,0.0024,0.0000,0.0043,0.0179,0.0001,200,0.0000\n" +
	"0.2500,0.0000,0.0000,0.0000,0.0193,0.0435,503,0.5000\n" +
	"1.5000,0.0000,0.0000,0.0000,0.0193,0.0435,302,0.5000\n"

// The second attack begins anew with the numbers of its requests.
const vegetaCSVShort = "1750000000000000000,200,500000000,0,100,,aGk=,,0,GET,http://h/,\n" +
	"1750000000500000000,0,10000000,0,0,\"Get \"\"http://h/\"\": refused\",,,1,GET,http://h/,\n" +
	"1750000001000000000,302,1000000000,0,50,,,,2,GET,http://h/,\n" +
	"1750000010000000000,200,2000000000,0,100,,aGk=,,0,GET,http://h/,\n"

const vegetaRowsShort = `{"attack":"big","seq":0,"code":200,"timestamp":"2026-03-02T10:00:00Z","latency":500000000,` +
	`"bytes_out":0,"bytes_in":100,"error":"","body":null,"method":"GET","url":"http://h/","headers":null}
{"attack":"big","seq":1,"code":500,"timestamp":"2026-03-02T10:00:00.5Z","latency":1500000000,"bytes_out":0,` +
	`"bytes_in":7,"error":"500 no","body":null,"method":"GET","url":"http://h/","headers":null}
`

// requestLogForms are logs of requests: those that failed are in no rate and no time.
var requestLogForms = []struct{ name, text, want string }{
	{"jmeter", jmeterShort, "JMeter: request 4/3/6000, 1 errors, 3s"},
	{"jmeter of a spreadsheet", strings.NewReplacer("Log, in", "Log in", "n : 2, n", "n : 2. n", ",", ";").
		Replace(jmeterShort), "JMeter: request 4/3/6000, 1 errors, 3s"},
	{"jmeter, parents alone", jmeterAlone, "JMeter: request 1/0.4/4000, 1 errors, 1s"},
	{"jmeter-xml", jmeterXMLShort, "JMeter: request 4/3/6000, 1 errors, 3s"},
	{"k6-json", k6RowsShort, "k6: request 3/1.5, 1 errors, 2s"},
	{"k6-csv", k6CSVShort, "k6: request 3/1.5, 1 errors, 1.9s"}, // from 900 ms before the third ended
	{"ycsb-json", ycsbJSONShort, "ycsb: read 490/0.49 update 500/1, 10 errors, 10s"},
	{"benchbase-raw", benchBaseRawShort, "BenchBase: request 3/0.014, 0 errors, 1.507s"},
	{"hey-csv", heyCSVShort, "hey: request 2/2, 1 errors, 2s"},
	{"vegeta-csv", vegetaCSVShort, "vegeta: request 2/1.5/150, 1 errors, 2s\nvegeta: request 1/2/100, 0 errors, 2s"},
	{"vegeta-rows", vegetaRowsShort, "vegeta big: request 1/0.5/100, 1 errors, 2s"},
}

// A log of requests gives the course, the percentiles and how many were at work.
func TestRequestLogs(t *testing.T) {
	t.Parallel()
	all, err := Prepare("a.jtl", strings.NewReader(jmeterShort), changed, Options{})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	d := all[0]
	if d.Concurrency != 2 || d.Start.UnixMilli() != 1_750_000_000_000 || d.Dated != ownClock {
		t.Errorf("%g at once from %v by %s", d.Concurrency, d.Start, d.Dated)
	}
	if got := fmt.Sprint(d.Facts); !strings.Contains(got, "Home; Log, in") {
		t.Errorf("asked %s", got)
	}
	r := parse(t, d, strings.NewReader(jmeterShort)).Reports
	var course []string
	for _, x := range r {
		course = append(course, fmt.Sprintf("%v %d %d", x.Elapsed, x.Ops[0].Ops, x.Errors))
	}
	// They end 0.2, 0.4, 1.3 (failed), 1.5 and 3 s after the begin.
	if got := strings.Join(course, ", "); got != "1s 2 0, 2s 3 1, 3s 4 1" {
		t.Errorf("its course: %s", got)
	}
	if p, _ := r[2].Ops[0].Hist.Quantile(0.5); math.Abs(float64(p)/1e9-0.3) > 0.01 {
		t.Errorf("half of them took up to %d ns", p)
	}
	if name, _, _, advice := Recognise([]byte("\xff\x96\x7f\x03\x01\x01\x06Result\x01\xff\x80\x00\x01\x0c\x01" +
		"\x06Attack\x01\x0c\x00\x01\x03Seq\x01")); name != "vegeta binary" ||
		!strings.Contains(advice, "vegeta encode") {
		t.Errorf("%s: %q", name, advice)
	}
}

// A longer log has reports that are further apart, and loses nothing.
func TestRequestLogOfALongTest(t *testing.T) {
	t.Parallel()
	l := newRequestLog("x", true)
	const n = 10_000
	for i := range int64(n) {
		l.request(i*2e9, 1e9, i%10 != 0, 1)
	}
	b := &book{}
	l.add(b)
	s := b.stretches[0]
	last := s.reports[len(s.reports)-1]
	if len(s.reports) > mostSeconds || last.Ops[0].Ops != n*9/10 || last.Errors != n/10 ||
		last.Ops[0].Hist.Count() != n*9/10 {
		t.Errorf("%d reports, %d done, %d failed", len(s.reports), last.Ops[0].Ops, last.Errors)
	}
	if want := (result.Operation{Name: "request", Noun: "requests", Bytes: true}); s.operations[0] != want {
		t.Errorf("%v", s.operations)
	}
}

const redisShort = "SET: rps=9.0 (overall: 9.0)\r====== SET ======\n" + `  20000 requests completed in 1.60 seconds
  20 parallel clients
  3 bytes payload
  keep alive: 1
  host configuration "save": 
  multi-thread: no

Latency by percentile distribution:
50.000% <= 0.199 milliseconds (cumulative count 10066)
100.000% <= 9.575 milliseconds (cumulative count 20000)

Summary:
  throughput summary: 12500.00 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        1.500     0.024     0.199     7.247     8.567     9.575
====== GET ======
  500 requests completed in 0.50 seconds
  50 parallel clients
  3 bytes payload
  keep alive: 1

99.00% <= 1 milliseconds
100.00% <= 2 milliseconds
1000.00 requests per second

`

const slapShort = `Benchmark
	Average number of seconds to run all queries: 2.500 seconds
	Minimum number of seconds to run all queries: 2.000 seconds
	Maximum number of seconds to run all queries: 3.000 seconds
	Number of clients running queries: 4
	Average number of queries per client: 50

Benchmark
	Running for engine innodb
	Average number of seconds to run all queries: 1.500 seconds
	Minimum number of seconds to run all queries: 1.500 seconds
	Maximum number of seconds to run all queries: 1.500 seconds
	Number of clients running queries: 8
	Average number of queries per client: 25

`

const locustShort = `Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,` +
	`Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%
GET,/a,150,5,9,10.0,2,90,100.0,15.0,0.5,9,9,9,9,20,30,50,80,90,90,90
GET,"/b, c",50,0,9,10.0,2,90,100.0,5.0,0.0,9,9,9,9,20,30,50,80,90,90,90
,Aggregated,200,5,9,10.0,2,90,100.0,20.0,0.5,9,9,9,9,20,30,50,80,90,90,90
`

const locustCourse = `Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,99%,100%,Total Request Count,` +
	`Total Failure Count,Total Median Response Time,Total Average Response Time,Total Min Response Time,` +
	`Total Max Response Time,Total Average Content Size
1750000000,5,,Aggregated,0.0,0.0,N/A,N/A,N/A,0,0,0,0.0,0,0,0
1750000001,5,GET,/a,0.0,0.0,0,0,0,20,1,9,10.0,2,90,100.0
1750000001,5,,Aggregated,0.0,0.0,0,0,0,20,1,9,10.0,2,90,100.0
1750000003,5,GET,/a,20.0,1.0,9,80,90,63,3,9,20.0,2,90,100.0
1750000003,5,,Aggregated,20.0,1.0,9,80,90,63,3,9,20.0,2,90,100.0
`

// 1000 requests at 500/s are 2 s, of which 100 sets.
const memtierShort = `2         Threads
2         Connections per thread
250       Requests per client


ALL STATS
============================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency   p99.9 Latency       KB/sec 
------------------------------------------------------------------------------------------------------------
Sets           50.00          ---          ---         4.00000         2.50000        12.00000         1.00 
Gets          450.00       100.00       350.00         2.00000         1.50000        11.00000         2.00 
Waits           0.00          ---          ---             ---             ---             ---          --- 
Totals        500.00       100.00       350.00         2.20000         1.70000        11.50000         3.00 


Request Latency Distribution
Type     <= msec         Percent
------------------------------------------------------------------------
SET       0.071        0.000
`

// The mean of all in it is 1 ms, as some versions have it, where its kinds make 1 ms and 3 ms of 40 and 20.
const memtierJSONShort = `{"configuration": {"pipeline": 2, "ratio": "1:2"},
"run information": {"Threads": 1, "Connections per thread": 3, "Seconds": 3},
"ALL STATS": {"Runtime": {"Start time": 1750000000000, "Total duration": 3000},
"Sets": {"Count": 40, "Ops/sec": 13.33, "Latency": 1.0, "Max Latency": 9.0, "KB/sec": 1.0,
"Time-Serie": {"0": {"Count": 30, "Average Latency": 1.0}, "2": {"Count": 10, "Average Latency": 1.0}},
"Percentile Latencies": {"p50.00": 0.5, "p99.900": 8.0}},
"Gets": {"Count": 20, "Ops/sec": 6.67, "Misses/sec": 6.0, "Latency": 3.0, "Max Latency": 8.0, "KB/sec": 2.0,
"Time-Serie": {"1": {"Count": 20, "Average Latency": 3.0}}, "Percentile Latencies": {"p50.00": 2.5}},
"Totals": {"Count": 60, "Ops/sec": 20.00, "Latency": 1.0, "Max Latency": 9.0, "KB/sec": 3.0,
"Time-Serie": {}, "Percentile Latencies": {"p50.00": 0.9}}}}
`

// loadTableForms are figures of tests as text and as tables.
var loadTableForms = []struct{ name, text, want string }{
	{"redis-benchmark", redisShort, "redis-benchmark SET: request 20000/30, 0 errors, 1.6s\n" +
		"redis-benchmark GET: request 500/0, 0 errors, 500ms"},
	{"mysqlslap", slapShort, "mysqlslap: query 200/0, 0 errors, 2.5s\nmysqlslap innodb: query 200/0, 0 errors, 1.5s"},
	{"mysqlslap --csv", ",mixed,2.500,2.000,3.000,4,50\ninnodb,mixed,1.500,1.500,1.500,8,25\n",
		"mysqlslap: query 200/0, 0 errors, 2.5s\nmysqlslap innodb: query 200/0, 0 errors, 1.5s"},
	{"locust", locustShort, "locust: request 195/1.95/19500, 5 errors, 10s"},      // 200 at 20/s
	{"locust-history", locustCourse, "locust: request 60/1.2/6000, 3 errors, 3s"}, // 63 of which 3 failed
	{"memtier", memtierShort, "memtier_benchmark: request 1000/2.2/6144, 0 errors, 2s\n" +
		"memtier_benchmark, by kind: set 100/0.4/2048 get 900/1.8/4096, 0 errors, 2s"},
	{"memtier-json", memtierJSONShort, "memtier_benchmark: request 60/0.1/9216, 0 errors, 3s\n" +
		"memtier_benchmark, by kind: get 20/0.06/6144 set 40/0.04/3072, 0 errors, 3s"},
}

// What tables of loads say of concurrency and percentiles stands beside their figures.
func TestLoadTables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		redisShort: "20 50: request_p50=0.199 request_p95=7.247 request_p99=8.567 request_max=9.575",
		slapShort:  "4 8: all_queries_min=2 all_queries_max=3 all_queries_min=1.5 all_queries_max=1.5",
		locustShort: "0: request_p50=9 request_p90=20 request_p95=30 request_p98=50 request_p99=80 request_p99.9=90 " +
			"request_p99.99=90 request_max=90",
		locustCourse: "5:",
		memtierShort: "4 0: request_p50=1.7 request_p99.9=11.5 set_p50=2.5 set_p99.9=12 get_p50=1.5 get_p99.9=11 " +
			"get_misses=350",
		memtierJSONShort: "6 0: request_p50=0.9 request_max=9 get_p50=2.5 get_max=8 get_misses=6 set_p50=0.5 set_p99.9=8 " +
			"set_max=9",
	} {
		all, err := Prepare("a", strings.NewReader(text), changed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var at, figures []string
		for _, d := range all {
			at = append(at, fmt.Sprint(d.Concurrency))
			values := parse(t, d, strings.NewReader(text)).Reports[0].Values
			for i, m := range d.Declared.Measures {
				figures = append(figures, fmt.Sprintf(" %s=%g", m.Name, values[i]))
			}
		}
		if got := strings.Join(at, " ") + ":" + strings.Join(figures, ""); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// What is said alike of several files is said once.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	var all []result.Imported
	for i := range 5 {
		all = append(all, result.Imported{File: fmt.Sprintf("%d.log", i), VM: fmt.Sprint(i), Notes: []string{"alike"},
			Unseen: []string{fmt.Sprintf("of %d", i/3)}})
	}
	notes, unseen := Told(all)
	if got := strings.Join(notes, "|") + "||" + strings.Join(unseen, "|"); got !=
		"0.log and 4 more: alike||0.log, 1.log, 2.log: of 0|3.log, 4.log: of 1" {
		t.Error(got)
	}
}
