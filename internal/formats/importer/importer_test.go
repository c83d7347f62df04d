package importer

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/result"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

// changed is when every file of the tests was last changed.
var changed = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// parse replays what was read of a file.
func parse(t testing.TB, d *Reading, r io.Reader) *workloadtest.Recorder {
	t.Helper()
	var rec workloadtest.Recorder
	if _, err := Engines()[d.Engine].Parse(d.Declared, r, &rec); err != nil && len(rec.Reports) == 0 {
		t.Fatal(err)
	}
	return &rec
}

// prepareOne prepares a file that holds one run.
func prepareOne(t testing.TB, name, text string) *Reading {
	t.Helper()
	all, err := Prepare(name, strings.NewReader(text), changed, Options{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d runs in it: %v", len(all), err)
	}
	return all[0]
}

// show prints how a file is read and what its reports come to.
func show(t testing.TB, name string, data []byte) string {
	t.Helper()
	var b strings.Builder
	all, err := Prepare(name, bytes.NewReader(data), changed, Options{})
	if err != nil {
		fmt.Fprintf(&b, "refused: %s\n", strings.ReplaceAll(err.Error(), names(), "(all of them)"))
	}
	for _, d := range all {
		b.WriteString(showOne(t, name, d, data))
	}
	return b.String()
}

// showOne is one of the runs of a file.
func showOne(t testing.TB, name string, d *Reading, data []byte) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, by %s; workload %q, engine %s, %s\n", d.As, d.Tool, d.Workload, d.Engine, d.Latency)
	fmt.Fprintf(&b, "%s to %s (%s), %d reports\n", d.Start.Format(time.RFC3339Nano), d.End.Format(time.RFC3339Nano),
		d.Dated, d.Reports)
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if d.Failure != "" {
		fmt.Fprintf(&b, "failed: %s\n", d.Failure)
	}
	for _, n := range d.Unseen {
		fmt.Fprintf(&b, "not looked at: %s\n", n)
	}
	r := parse(t, d, bytes.NewReader(data))
	holds(t, name, d.Declared, r.Reports)
	if len(r.Reports) > 0 {
		last := r.Reports[len(r.Reports)-1]
		fmt.Fprintf(&b, "last: %v, %d errors\n", last.Elapsed, last.Errors)
		for i, o := range d.Declared.Operations {
			if c := last.Ops[i]; c.Ops > 0 {
				fmt.Fprintf(&b, "  %s: %d in %.6g s, %d bytes", o.Name, c.Ops, c.Seconds, c.Bytes)
				if c.Hist != nil {
					p50, _ := c.Hist.Quantile(0.5)
					p99, _ := c.Hist.Quantile(0.99)
					fmt.Fprintf(&b, ", p50 %v p99 %v", time.Duration(p50), time.Duration(p99))
				}
				b.WriteByte('\n')
			}
		}
		for i, m := range d.Declared.Measures {
			if v := last.Values[i]; !math.IsNaN(v) {
				fmt.Fprintf(&b, "  %s = %g %s\n", m.Name, v, m.Unit)
			}
		}
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

// holds fails for reports that break what the contract asks of all.
func holds(t testing.TB, name string, d workload.Declared, reports []workload.Report) {
	t.Helper()
	var before workload.Report
	for i, r := range reports {
		if r.Elapsed < before.Elapsed || r.Time.Before(before.Time) ||
			len(r.Ops) != len(d.Operations) && len(d.Operations) > 0 ||
			len(r.Values) != len(d.Measures) && r.Values != nil {
			t.Errorf("%s: report %d goes back or does not fit: %+v after %+v", name, i, r, before)
		}
		for k, c := range r.Ops {
			if i > 0 && len(before.Ops) > k && (c.Ops < before.Ops[k].Ops || c.Bytes < before.Ops[k].Bytes) {
				t.Errorf("%s: report %d: counters of %s fell", name, i, d.Operations[k].Name)
			}
			if c.Hist != nil && c.Hist.Count() != c.Ops {
				t.Errorf("%s: report %d: a histogram of %d for %d operations", name, i, c.Hist.Count(), c.Ops)
			}
		}
		before = r
	}
}

// Progress lines with times of day (--progress-timestamp) date the run, the first one as long as the second.
func TestTimesOfDay(t *testing.T) {
	text := "progress: 1700000002.000 s, 5.0 tps, lat 3.0 ms stddev 1.0\n" +
		"progress: 1700000004.000 s, 7.0 tps, lat 2.0 ms stddev 1.0, 1 failed\n"
	list, err := Prepare("a", strings.NewReader(text), time.Unix(1, 0), Options{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	var sink workloadtest.Recorder
	if _, err := Engines()[list[0].Engine].Parse(list[0].Declared, strings.NewReader(text), &sink); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range sink.Reports {
		got = append(got, fmt.Sprintf("%d %v %d %.3f %d", r.Time.Unix(), r.Elapsed, r.Ops[0].Ops,
			r.Ops[0].Seconds, r.Errors))
	}
	want := []string{"1700000002 2s 10 0.030 0", "1700000004 4s 24 0.058 1"}
	if !cmp.Equal(got, want) || list[0].Start.Unix() != 1700000000 || list[0].Dated != "the tool's own clock" {
		t.Errorf("%q from %v (%s), want %q", got, list[0].Start, list[0].Dated, want)
	}
}

// Outputs of real tools (fio 3.33, sysbench 1.0.20, pgbench 15, sysstat 12.6, procps 4) are read as the goldens say, in
// whatever pieces they come.
func TestOutputs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/outputs/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no outputs: ", err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "== %s\n%s\n", filepath.Base(f), show(t, f, data))
		readings, err := Prepare(f, bytes.NewReader(data), changed, Options{Interval: time.Second})
		if err != nil {
			continue
		}
		for _, d := range readings {
			whole, pieces := parse(t, d, bytes.NewReader(data)), parse(t, d,
				iotest.HalfReader(iotest.OneByteReader(bytes.NewReader(data))))
			if diff := cmp.Diff(whole.Reports, pieces.Reports, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s in pieces:\n%s", f, diff)
			}
		}
	}
	golden.Compare(t, "testdata/outputs.golden", []byte(all.String()))
}

// The samples of the corpus are read, or refused by name, as the golden says. Their text is not ours and stays there.
func TestCorpus(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, part := range []string{"blkparse", "diskspd", "elbencho", "fio-json", "fio-logs", "hammerdb", "hoststats",
		"pgbench", "sysbench", "vdbench"} {
		dir := needs.Corpus(t, part)
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || e.Name() == "SOURCES.md" {
				return err
			}
			data, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			fmt.Fprintf(&all, "== %s/%s\n%s\n", part, rel, show(t, e.Name(), data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/corpus.golden", []byte(all.String()))
}

// Counters of machines agree with what another program reads from the same files.
func TestHostValues(t *testing.T) {
	t.Parallel()
	dir := needs.Corpus(t, "hoststats")
	for _, tool := range []string{vmstat, iostat} {
		data, err := os.ReadFile(filepath.Join(dir, "pgbench-tools-"+tool+".log"))
		if err != nil {
			t.Fatal(err)
		}
		names, rows, _, err := HostTable(bytes.NewReader(data), tool)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, "pgbench-tools-golden-"+tool+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		truth, err := csv.NewReader(f).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]float64{} // by figure, in time order
		for _, row := range truth[1:] {
			v, err := strconv.ParseFloat(row[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			want[row[2]] = append(want[row[2]], v)
		}
		compared := 0
		for i, name := range names {
			w := want[name]
			if w == nil {
				continue
			}
			var got []float64
			for _, row := range rows {
				got = append(got, row[i])
			}
			if len(w) == len(got)+1 {
				w = w[1:] // theirs has the first sample, which is since the start of the machine
			}
			if diff := cmp.Diff(w, got); diff != "" {
				t.Errorf("%s %s:\n%s", tool, name, diff)
			}
			compared++
		}
		if compared < 8 {
			t.Errorf("%s: only %d figures of %v are in what the other program read", tool, compared, names)
		}
	}
}

// Of a log with averages and maxima (log_window_value=both) the largest of all is told; awk: the most of field 3.
func TestFioLogMaxima(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"x_clat.1.log": "read_clat_max 9000 us, write_clat_max 9.5 us",
		"x_iops.1.log": "read_iops_max 9e+06 ops/s, write_iops_max 9500 ops/s",
		"x_bw.1.log":   "read_bw_max 9e+06 KiB/s, write_bw_max 9500 KiB/s",
	} {
		text := "1000, 2000000, 9000000, 0, 0, 0\n1000, 1000, 9500, 1, 0, 0\n2000, 3000000, 8000000, 0, 0, 0\n"
		d := prepareOne(t, file, text)
		r := parse(t, d, strings.NewReader(text))
		var got []string
		for i, m := range d.Declared.Measures {
			for _, one := range r.Reports[:len(r.Reports)-1] {
				if m.Kind == result.Single && !math.IsNaN(one.Values[i]) {
					t.Errorf("%s: %s is told before the end", file, m.Name)
				}
			}
			if v := r.Reports[len(r.Reports)-1].Values[i]; m.Kind == result.Single && !math.IsNaN(v) {
				got = append(got, fmt.Sprintf("%s %.4g %s", m.Name, v, m.Unit))
			}
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: got %s, want %s", file, s, want)
		}
	}
}

// What a log of fio holds is counted by its own arithmetic.
func TestFioLogs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		want       string
	}{
		"averages of operations": {"x_iops.1.log", "500, 2000, 0, 0, 0\n500, 100, 1, 0, 0\n1500, 1000, 0, 0, 0\n1500, 300, 1, 0, 0\n", "read 2000 0 0; write 350 0 0"},
		"one line an I/O":        {"x_lat.1.log", "5, 1000000, 0, 4096, 0\n5, 3000000, 1, 8192, 0\n900, 2000000, 0, 4096, 0\n", "read 2 8192 0.003; write 1 8192 0.003"},
		"submission":             {"x_slat.log", "5, 1000, 0, 4096\n6, 1000, 0, 4096\n", "read 2 8192 0"},
		"epoch": {"x_iops.1.log", "1795351171000, 450, 0, 0, 0\n1795351172000, 500, 0, 0, 0\n",
			"read 500 0 0"},
		"averages and maxima": {"x_iops.1.log", "500, 2000, 2400, 0, 0, 0\n500, 100, 130, 1, 0, 0\n1500, 1000, 1001, 0, 0, 0x0004\n",
			"read 2000 0 0; write 50 0 0"},
		"averages and maxima, with offsets": {"x_iops.1.log", "1000, 2000, 2400, 0, 0, 4096, 0\n2000, 1000, 1001, 0, 0, 0, 0\n",
			"read 3000 0 0"},
		// jq -Rs of the second and fourth numbers: reads 2000 + 1 + 0, writes 1 + 2.
		"averages and maxima, some as small as directions": {"x_iops.1.log",
			"1000, 2000, 2400, 0, 0, 0\n1000, 1, 1, 1, 0, 0\n" + "2000, 1, 1, 0, 0, 0\n2000, 2, 2, 1, 0, 0\n3000, 0, 0, 0, 0, 0\n", "read 2001 0 0; write 3 0 0"},
		"both asked of single I/Os": {"x_clat.1.log", "5, 1000000, 0, 1, 4096, 0\n6, 3000000, 0, 0, 8192, 0\n",
			"read 1 8192 0.003; write 1 4096 0.001"},
		"threads share a log": {"x_lat.log", "5, 1000000, 0, 4096, 0\n4, 1000000, 0, 4096, 0\n8, 1000000, 0, 4096, 0\n", "read 3 12288 0.003"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := prepareOne(t, c.file, c.text)
			r := parse(t, d, strings.NewReader(c.text))
			last := r.Reports[len(r.Reports)-1]
			var got []string
			for i, o := range d.Declared.Operations {
				if n := last.Ops[i]; n.Ops > 0 {
					got = append(got, fmt.Sprintf("%s %d %d %.3g", o.Name, n.Ops, n.Bytes, n.Seconds))
				}
			}
			if s := strings.Join(got, "; "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// Times at which clocks do odd things.
func TestHostTimes(t *testing.T) {
	t.Parallel()
	head := "Linux 6.1.0 (h) \t%s \t_x86_64_\t(2 CPU)\n\n"
	for name, c := range map[string]struct{ text, want string }{
		"sar over midnight": {fmt.Sprintf(head, "2026-03-01") + "23:59:58        CPU     %user     %idle\n23:59:59        all     1.00     99.00\n00:00:00        all     2.00     98.00\n00:00:01        all     3.00     97.00\nAverage:        all     2.00     98.00\n",
			"2026-03-01T23:59:59Z 2026-03-02T00:00:00Z 2026-03-02T00:00:01Z"},
		"sar with AM and PM": {fmt.Sprintf(head, "03/01/2026") + "11:59:58 AM     CPU     %user     %idle\n11:59:59 AM     all     1.00     99.00\n12:00:00 PM     all     2.00     98.00\n",
			"2026-03-01T11:59:59Z 2026-03-01T12:00:00Z"},
		"sar, day first": {fmt.Sprintf(head, "31/01/2026") + "10:00:00        CPU     %user     %idle\n10:00:01        all     1.00     99.00\n10:00:02        all     2.00     98.00\n",
			"2026-01-31T10:00:01Z 2026-01-31T10:00:02Z"},
		"vmstat -t, header again": {"procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC\n 1  0 0 1 1 1 0 0 1 1 1 1 1 1 1 1 0 2026-03-01 10:00:00\n 1  0 0 1 1 1 0 0 1 1 1 1 1 1 1 1 0 2026-03-01 10:00:01\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC\n 1  0 0 1 1 1 0 0 1 1 1 1 1 1 1 1 0 2026-03-01 10:00:02\n",
			"2026-03-01T10:00:01Z 2026-03-01T10:00:02Z"},
		"sadf: sections of the same times": {"# hostname;interval;timestamp;tps\nh;1;2026-03-01 10:00:01 UTC;5\nh;1;2026-03-01 10:00:02 UTC;6\n# hostname;interval;timestamp;CPU;%user\nh;1;2026-03-01 10:00:01 UTC;-1;7\nh;1;2026-03-01 10:00:02 UTC;-1;8\n",
			"2026-03-01T10:00:01Z 2026-03-01T10:00:02Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := prepareOne(t, name, c.text)
			var got []string
			for _, r := range parse(t, d, strings.NewReader(c.text)).Reports {
				got = append(got, r.Time.Format(time.RFC3339))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

// What tools left that are not read is refused by their names, never taken for another's.
func TestToolsThatAreNotRead(t *testing.T) {
	t.Parallel()
	for tool, texts := range map[string][]string{
		"redis-benchmark": {"\nSET: 1000.00 requests per second\n", "\rGET: rps=9.0 \rGET: 10.00 requests per second, p50=1.7 msec\n",
			`"test","rps"` + "\n\"GET\",\"1000.00\"\n"},
		"ab":      {"<p>\n This is ApacheBench, Version 2.3 <i>x</i><br>\n"},
		"gatling": {"---- Global Information -----\n> request count      7 (OK=7 KO=0)\n", "RUN\tmy.Sim\tsim\t1700000000000\n"},
		"locust": {"Type     Name     # reqs      # fails |    Avg\n",
			"Type,Name,# requests,# failures\nGET,/,10,1\n"},
		"JMeter": {"summary =   2000 in 00:00:40 =   50.0/s Avg:   200 Min:   100\n",
			"2024-01-01 00:00:40,1 INFO o.a.j.r.Summariser: summary +  20 in 00:00:04 =   5.0/s Avg:   2 Min:   1\n",
			"timeStamp,elapsed,label\n1704067200100,201,Home\n1704067200200,180,Home\n"},
		"stress-ng": {"stress-ng: info:  [77] dispatching hogs: 4 hdd\n"},
		"mlc":       {"Intel(R) Memory Latency Checker - v3.11\n"},
		"iperf3":    {"[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec   112 MBytes\n"},
		"ioping":    {"--- /data (xfs /dev/sdb 1 TiB) ioping statistics ---\n"},
		"dbench":    {"Throughput 512.34 MB/sec  4 clients  4 procs  max_latency=23.456 ms\n"},
		"go-ycsb":   {"READ   - Takes(s): 3.0, Count: 300, OPS: 100.0, Avg(us): 1000\n"},
		"TPC-H":     {"Finished\n[Summary] Q1: 32.13s\n"},
		"COSBench":  {"Op-Type,Op-Count,Byte-Count,Avg-ResTime\nread,5,10,1.5\n"},
		"BenchBase": {"Time (seconds),Throughput (requests/second),Average Latency (millisecond)\n0,497.4,32.1\n"},
		"Excel":     {"\"Writer report\"\n        \"4\"  \"8\"\n\"64\"   869566  1123456\n"},
	} {
		for _, text := range texts {
			for form, of := range map[string]string{"plain": text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"),
				"BOM": "\ufeff" + text} {
				_, err := Prepare("a", strings.NewReader(of), changed, Options{})
				if err == nil || !strings.Contains(err.Error(), tool) ||
					strings.Contains(err.Error(), "what is known") {
					t.Errorf("%s, %s, %.40q: %v", tool, form, text, err)
				}
			}
		}
	}
}

const abRequests = "starttime\tseconds\tctime\tdtime\tttime\twait\nb\t7\t0\t5\t5\t4\nc\t5\t0\t6\t6\t4\n"

// What cannot be read is refused with what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	log := "500, 2000, 0, 0, 0\n1000, 2000, 0, 0, 0\n"
	for name, c := range map[string]struct {
		file, text, as string
		want           string
	}{
		"nothing":                {"a", "", "", "a: it is empty"},
		"blanks":                 {"a", " \n\n", "", "a: it is empty"},
		"somebody's text":        {"a", "hello\n", "", "it is no output of a tool that is known here"},
		"no such tool":           {"a", "hello\n", "postmark", `no tool "postmark" is known`},
		"JSON cut short":         {"a", `{"jobs": [`, "", "it looks like JSON that ends early: the file is cut short"},
		"a list cut short":       {"a", "[{\"a\"\n", "", "it looks like JSON that ends early"},
		"XML cut short":          {"a", "<?xml version=\"1.0\"?>\n<Res", "", "it looks like XML that ends early"},
		"a result cut short":     {"a", "<Results>\n<System>", "", "it ends early: the file is cut short"},
		"a table of one's own":   {"a.csv", "1,2,0,4\n2,3,0,5\n", "", "it is no output of a tool"},
		"JSON cut at once":       {"a.json", `{"jobs": [`, "", "it looks like JSON that ends early: the file is cut short"},
		"XML cut early":          {"a.xml", `<?xml version="1.0"?><a><b>`, "", "it looks like XML that ends early"},
		"a table with a head":    {"a.csv", "n,x\n1,2.5\n", "", "it looks like a table: analyze"},
		"one in quotes":          {"a.csv", "\"x\",\"rps\"\n\"SET\",\"46.82\"\n", "", "it looks like a table: analyze"},
		"ab -g":                  {"a.tsv", abRequests, "", "ab sorts it by time taken"},
		"ab -g, in order":        {"a.tsv", abRequests + "a\t9\t0\t1\t1\t1\n", "", "it looks like a table: analyze"},
		"ab -e":                  {"a.csv", "Percentage served,Time in ms\n0,1.5\n", "", "its rows are percentiles"},
		"vegeta's hdrplot":       {"a.hdr", "Value(ms)  Percentile  TotalCount  1/(1-P)\n", "", "its rows are perc"},
		"a file of HdrHistogram": {"a.hgrm", "       Value     Percentile TotalCount 1/(1-P)\n", "", "its rows are"},
		"a job file":             {"a.fio", "[global]\n; mine\nrw=read\n", "", "plimsoll run takes"},
		"parameters of vdbench":  {"a.vdb", "*\nsd=sd1,lun=/dev/sdb\n", "", "parameters of vdbench"},
		"a log without its kind": {"a.log", log, "", "--as fio-iops"},
		"averages and I/Os": {"a_lat.log", "5, 10, 0, 4096, 0\n1000, 10, 0, 0, 0\n", "",
			"it is two logs in one"},
		"averages and I/Os, far": {"a_lat.log", strings.Repeat("5, 10, 0, 4096, 0\n",
			HeadBytes/18+10) + "1000, 10, 0, 0, 0\n", "", "it is two logs in one"},
		"forced, and another":       {"a", "hello\n", "vmstat", "it holds no samples"},
		"one sample since the boot": {"a", " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n 1  0 0 1 1 1 0 0 1 1 1 1 1 1 1 1 0\n", "", "average since the machine was started"},
		"a line without end": {"a", "# hostname;interval;timestamp;x\n" + strings.Repeat("x",
			longestLine+1), "", "after line 1"},
		"rados bench without totals": {"a", `{"datas":[{"sec":"1","finished":"100"}]}`, "",
			"it ends before the totals of a bench"},
		"fio of no reports": {"a", `{"fio version": "fio-3.1", "jobs": [`, "", "cut in its first report"},
		"DISKSPD cut short": {"a", "Results for timespan 1:\nactual test time: 5.00s\nResults for timespan 2:\n", "",
			"end before their totals"},
		"pgbench without a duration": {"a", "number of transactions actually processed: 5/5\n", "",
			"neither -T nor -P"},
		"vdbench that only formats": {"a", "Starting RD=format_for_rd1\n\nMar 11, 2021 .Interval. .ReqstdOps...\n rate resp\n09:10:24.059 1 400.0 0.598\n", "",
			"formatting (format_for_rd1)"},
		"vdbench's histogram of no length": {"a", "Starting RD=rd1; elapsed=(none)\n\nReads:\n  min(ms) <     max(ms)         count\n    0.000 <       0.020           168  78.1395  78.1395  +++\n", "",
			"over what time"},
		"HammerDB's schema":  {"a", "HammerDB CLI v4.12\nVuser 1:CREATING TPCC SCHEMA\n", "", "building a schema"},
		"HammerDB cut short": {"a", "HammerDB CLI v4.12\nVuser 1:Timing test period of 5 in minutes\n", "", `no "TEST RESULT"`},
		"HammerDB's counter without times": {"a", "Hammerdb Transaction Counter Log @ x\n0 Oracle tpm\n5 Oracle tpm\n", "",
			"tcset timestamps true"},
		"a tool that is not read": {"a", "/dev/sdx:\n Timing cached reads:   9 MB in  2 seconds = 4 MB/sec\n", "", "output of hdparm"},
		"an archive":              {"a.tar", strings.Repeat("\x00", 257) + `ustar  "fio version"`, "", "unpack it"},
		"fio within Ansible": {"a", `{"stdout_lines": ["a: (groupid=0, jobs=1): err= 0: pid=7:"]}` + "\nRun status group 0\n", "",
			"jq -r .stdout"},
		"fio behind unknown words": {"a", "1>a: (groupid=0, jobs=1): err= 0: pid=7:\n2>Run status group 0\n", "",
			`before each of fio's lines ("2>")`},
		"elbencho's JSON, damaged": {"a", "{\"phase_type\":\"READ\",\"last_done\":{}}\n{\"phase_type\":\n\"READ\",,\n", "", "line 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Prepare(c.file, strings.NewReader(c.text), changed, Options{As: c.as})
			if len(d) > 0 && err == nil {
				// found out when some of it was read already: that counts, and what is wrong is said
				if !slices.ContainsFunc(d[0].Notes, func(n string) bool { return strings.Contains(n, c.want) }) {
					t.Errorf("%+v, error %v", d, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), c.file+":") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Response times and service times are told apart.
func TestLatency(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"sb-cpu.txt": "service time", "sb-cpu2.txt": "response time", "pgbench-15.txt": "service time",
		"pgbench-15-rate.txt": "response time",
		"pgbench_log":         "service time", "pgbench_log_rate": "response time",
	} {
		data, err := os.ReadFile("testdata/outputs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		d := prepareOne(t, file, string(data))
		if d.Latency != want {
			t.Errorf("%s: %s, want %s", file, d.Latency, want)
		}
	}
}

// Whatever a file holds, reading it ends without a panic, and its reports hold what the contract asks.
func FuzzPrepare(f *testing.F) {
	files, _ := filepath.Glob("testdata/outputs/*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && len(data) < 40_000 {
			f.Add(filepath.Base(name), data, "")
		}
	}
	for _, form := range Forms() {
		f.Add("x.log", []byte("1, 2, 0, 0\n3, 4, 1, 0\n"), form.Name)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte, as string) {
		all, err := Prepare(name, bytes.NewReader(data), changed, Options{As: as, Interval: time.Second})
		if err != nil {
			return
		}
		for _, d := range all {
			if !d.End.After(d.Start) || d.Reports == 0 {
				t.Errorf("read without figures or time: %+v", d)
			}
			var rec workloadtest.Recorder
			_, _ = Engines()[d.Engine].Parse(d.Declared, bytes.NewReader(data), &rec)
			if d.Engine != "fio" { // its own fuzz tests say what holds of that
				holds(t, name, d.Declared, rec.Reports)
			}
		}
	})
}
