package importer

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// diskspdCall returns what a call of DISKSPD prints on Windows: reads and writes of 8 KiB in 10 s, with -L when lat is
// set.
func diskspdCall(started string, reads, writes int, lat bool) string {
	head, more := "", ""
	row := func(n int, ms string) string {
		if !lat {
			ms = ""
		}
		line := fmt.Sprintf("%d | %d | %.2f | %.2f%s", n*8192, n, float64(n)*8192/10/(1<<20), float64(n)/10, ms)
		return "     0 | " + line + " | d:\\x.dat (1GiB)\n-----\ntotal:   " + line + "\n\n"
	}
	if lat {
		head, more = " |  AvgLat  | LatStdDev", "  %-ile |  Read (ms) | Write (ms) | Total (ms)\n    min |      0.100 |      0.200 |"+
			"      0.100\n   50th |      0.400 |        N/A |      0.400\n3-nines |      9.000 |      8.500 |      9.000\n"+
			"    max |     20.000 |     21.500 |     21.500\n"
	}
	table := "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s" + head + " |  file\n-----\n"
	return "\nCommand Line: diskspd.exe -b8K x.dat\n\nInput parameters:\n\n\ttimespan:   1\n\t-------------\n" +
		"\tduration: 10s\n\twarm up time: 5s\n\tpath: 'd:\\x.dat'\n\t\tperforming mix test (read/write ratio: 75/25)\n" +
		"\t\tblock size: 8192\n\t\tusing random I/O (alignment: 8192)\n\t\tnumber of outstanding I/O operations: 4\n" +
		"\t\tthreads per file: 2\n\nSystem information:\n\n\tcomputer name: h\n\tstart time: " + started + " UTC\n\n" +
		"Results for timespan 1:\n*****\n\nactual test time:\t10.00s\nthread count:\t\t2\n\nCPU |  Usage |  User\n-----\n" +
		"   0|  30.00%|  10.00%\n-----\navg.|  30.00%|  10.00%\n\nTotal IO\n" + table + row(reads+writes, " | 0.500 | 0.1") +
		"Read IO\n" + table + row(reads, " | 0.500 | 0.1") + "Write IO\n" + table + row(writes, " | 2.000 | 0.1") + more
}

// diskspdLinux holds the Linux port's output of a job, whose columns stand in another order.
const diskspdLinux = "\nCommand Line: diskspd -b8K x\n\nSystem info:\n\tprocessor count: 2\n\nInput parameters:\n\n\tjob:   1\n" +
	"\t________\n\tduration: 10s\n\twarm up time: 0s\n\tmeasuring latency\n\ttotal threads: 1\n\tpath: 'x'\n\t\tsize: 1B\n" +
	"\t\tusing O_DIRECT\n\t\tperforming mix test (read/write ratio: 75/25)\n\t\tblock size: 8192\n\t\tnumber of outstanding " +
	"I/O operations: 4)\n\t\tthreads per file: 1\n\nResults for job 1:\ntest time:         10s\n*****\n\n CPU  |  Usage\n" +
	"    0 |  20.00%\n avg:\t 20.00% |  10.00%\n\nTotal IO\nthread |           bytes |         I/Os |       MB/s |  I/O per s |" +
	" IopsStdDev | AvgLat(ms) | LatStdDev  | file\n-----\ntotal:   24576000 | 3000 | 2.34 | 300.00 | 7.00 | 0.500 | 0.1\n\n" +
	"Read IO\nthread |           bytes |         I/Os |       MB/s |  I/O per s | IopsStdDev | AvgLat(ms) | LatStdDev  | file\n" +
	"-----\ntotal:   24576000 | 3000 | 2.34 | 300.00 | 7.00 | 0.500 | 0.1\n\nWrite IO\nthread |           bytes |         I/Os" +
	" |       MB/s |  I/O per s | IopsStdDev | AvgLat(ms) | LatStdDev  | file\n-----\ntotal:   0 | 0 | 0.00 | 0.00 | 0.00 | " +
	"0.000 |\t   N/A\n\n\n  %-ile |\tRead (ms) | Write (ms) | Total (ms)\n   50th |      0.400 |        N/A |      0.400\n" +
	"    max |      9.000 |        N/A |      9.000\n"

// TestDiskspdText states of each result: its name, begin, reads, writes, bytes, mean times in ms and ranks. Totals are
// those of the tables, as awk '/^Read IO/ { r = 1 } r && /^total/ { print $4; r = 0 }' prints them.
func TestDiskspdText(t *testing.T) {
	t.Parallel()
	const morning = "2026/02/03 08:00:00"
	whole := diskspdCall(morning, 3000, 1000, true)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"with -L": {whole, []string{"diskspd 08:00:05 3000 1000 32768000 0.5 2.0 [read_p50=0.4 read_p99.9=9 read_max=20 " +
			"write_p99.9=8.5 write_max=21.5 cpu=30] 8 "}},
		"without -L": {diskspdCall(morning, 3000, 1000, false), []string{
			"diskspd 08:00:05 3000 1000 32768000 0.0 0.0 [cpu=30] 8 "}},
		"only reads": {diskspdCall(morning, 3000, 0, false), []string{
			"diskspd 08:00:05 3000 0 24576000 0.0 NaN [cpu=30] 8 "}},
		"appended, the second later": {diskspdCall(morning, 3000, 1000, false) + diskspdCall("2026/02/03 "+
			"09:00:00", 10, 20, false),
			[]string{"diskspd 08:00:05 3000 1000 32768000 0.0 0.0 [cpu=30] 8 ", "diskspd (2) 09:00:05 10 20 " +
				"245760 0.0 0.0 [cpu=30] 8 "}},
		"cut within the tables": {whole[:strings.Index(whole, "Write IO")], []string{"diskspd 08:00:05 3000 0 " +
			"24576000 0.5 NaN " +
			"[cpu=30] 8 the file ends within the results of DISKSPD"}},
		"the second cut": {whole + diskspdCall("2026/02/03 09:00:00", 10, 20, false)[:600], []string{
			"diskspd 08:00:05 3000 1000 32768000 0.5 2.0 [read_p50=0.4 read_p99.9=9 read_max=20 write_p99.9=8.5 " +
				"write_max=21.5 cpu=30] 8 results that end before their totals are left out"}},
		"of Linux": {diskspdLinux, []string{"diskspd 11:59:50 3000 0 24576000 0.5 NaN [read_p50=0.4 read_max=9 cpu=20] 4 "}},
		"lines of Windows": {strings.ReplaceAll(whole, "\n", "\r\n"), []string{"diskspd 08:00:05 3000 1000 " +
			"32768000 0.5 2.0 " +
			"[read_p50=0.4 read_p99.9=9 read_max=20 write_p99.9=8.5 write_max=21.5 cpu=30] 8 "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Prepare("d.txt", strings.NewReader(c.text), changed, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range all {
				reports := parse(t, d, strings.NewReader(c.text)).Reports
				r := reports[len(reports)-1]
				var ranks []string
				for i, m := range d.Declared.Measures {
					ranks = append(ranks, fmt.Sprintf("%s=%g", m.Name, r.Values[i]))
				}
				mean := func(i int) float64 { return r.Ops[i].Seconds / float64(r.Ops[i].Ops) * 1e3 }
				got = append(got, fmt.Sprintf("%s %s %d %d %d %.1f %.1f %v %g %s", d.Workload,
					d.Start.Format(time.TimeOnly),
					r.Ops[0].Ops, r.Ops[1].Ops, r.Ops[0].Bytes+r.Ops[1].Bytes, mean(0), mean(1), ranks,
					d.Concurrency, d.Failure+d.Lost))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Files of one tool that ran one after another are a series of tests; those that ran at once are clients of one.
func TestApart(t *testing.T) {
	t.Parallel()
	at := func(hour int) string {
		return diskspdCall(fmt.Sprintf("2026/02/03 %02d:00:00", hour), 3000, 1000, false)
	}
	undated := func(depth int) string {
		return strings.Replace(diskspdLinux, "operations: 4", fmt.Sprintf("operations: %d", depth), 1)
	}
	for name, c := range map[string]struct {
		texts []string
		want  []string
	}{
		"one":               {[]string{at(8)}, []string{"diskspd"}},
		"at once":           {[]string{at(8), at(8)}, []string{"diskspd", "diskspd"}},
		"one after another": {[]string{at(8), at(9)}, []string{"diskspd of f0", "diskspd of f1"}},
		"two at once, and one more": {[]string{at(9), at(8), at(9)}, []string{"diskspd of f0", "diskspd of f1",
			"diskspd of f0"}},
		"undated, alike":  {[]string{undated(4), undated(4)}, []string{"diskspd", "diskspd"}},
		"undated, unlike": {[]string{undated(4), undated(8)}, []string{"diskspd of f0", "diskspd of f1"}},
		"several in each": {[]string{at(7) + at(8), at(7) + at(8)}, []string{"diskspd", "diskspd " +
			"(2)", "diskspd", "diskspd (2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files []File
			for i, text := range c.texts {
				content := strings.NewReader(text)
				all, err := Prepare(fmt.Sprintf("f%d.txt", i), content, changed, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range all {
					files = append(files, File{Name: fmt.Sprintf("f%d.txt", i), Content: content, Reading: d})
				}
			}
			apart(files)
			var got []string
			for _, f := range files {
				got = append(got, f.Reading.Workload)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// What was asked is the same, however DISKSPD writes it: bytes before 2.2, KiB and "per thread" since; without the
// parameters by the command line, whose threads are for each of two targets.
func TestDiskspdAsked(t *testing.T) {
	t.Parallel()
	old := diskspdCall("2026/02/03 08:00:00", 3000, 1000, true)
	newer := strings.NewReplacer("block size: 8192", "block size: 8KiB",
		"I/O operations: 4", "I/O operations per thread: 4").Replace(old)
	bare := strings.Replace(old, "-b8K x.dat", `-b8K -t2 -o4 x.dat "d:\my data\y.dat"`, 1)
	bare = bare[:strings.Index(bare, "Input par")] + bare[strings.Index(bare, "System info"):]
	for text, want := range map[string]string{
		old: "8 8192 bytes 4", newer: "8 8192 bytes 4", bare: "16 8192 bytes 4",
		strings.Replace(bare, "-t2", "-F2", 1): "16 8192 bytes 4",
	} {
		all, err := Prepare("d.txt", strings.NewReader(text), changed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(all[0].Concurrency)
		for _, name := range []string{"block size", "outstanding"} {
			for _, f := range all[0].Facts {
				if f.Name == name {
					got += " " + f.Value
				}
			}
		}
		if got != want {
			t.Errorf("of %.120q: %s, want %s", text, got, want)
		}
	}
}
