package importer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/workload"
)

// fioJob is an entry of fio's JSON: a minute of so many reads of 4 KiB, by two processes where its options say so.
func fioJob(name string, group, reads int, more string) string {
	together := 60000
	if strings.Contains(more, `"numjobs":"2"`) {
		together *= 2
	}
	return fmt.Sprintf(`{"jobname":%q,"groupid":%d,"error":0,"eta":0,"elapsed":61,%s
"read":{"io_bytes":%d,"io_kbytes":%d,"iops":%d,"runtime":60000,"total_ios":%d,
"clat_ns":{"min":1000,"max":9000000,"mean":400000,"N":%d,"percentile":{"0.000000":0,"99.000000":5000000,"99.900000":7000000}},
"lat_ns":{"min":1000,"max":9000000,"mean":1000000,"N":%d}},
"sync":{"lat_ns":{"mean":0,"N":0}},"job_runtime":%d,"usr_cpu":10,"sys_cpu":5}`,
		name, group, more, reads*4096, reads*4, reads/60, reads, reads, reads, together)
}

func fioOutput(stamp int, jobs ...string) string {
	return fmt.Sprintf("{\"fio version\":\"fio-3.36\",\"timestamp_ms\":%d000,\n\"global options\":{\"ioengine\":\"libaio\"},"+
		"\"jobs\":[%s]\n}\n", stamp, strings.Join(jobs, ","))
}

// clients returns what a client prints of its hosts.
func clients(entries ...string) string {
	for i, e := range entries {
		entries[i] = strings.Replace(e, "{", `{"hostname":"192.0.2.1","port":8765,`, 1)
	}
	return strings.Replace(fioOutput(1_700_000_000, entries...), `"jobs"`, `"client_stats"`, 1)
}

// TestFioApart states of each part: its name, its reads, its mean in µs, its p99 and errors, its depth.
func TestFioApart(t *testing.T) {
	t.Parallel()
	deep := `"job options":{"rw":"randread","iodepth":"8","numjobs":"2","rate_iops":"100"},`
	three := strings.Replace(deep, `"numjobs":"2"`, `"numjobs":"3"`, 1)
	const written = `"write":{"io_bytes":24576000,"runtime":60000,"total_ios":6000,` +
		`"clat_ns":{"max":9,"mean":9,"N":6000}},"sync"`
	failed := strings.Replace(fioJob("r", 0, 6000, ""), `"error":0`, `"error":84`, 1)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one job": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep)), []string{"fio 6000 400 5000 0 16"}},
		"three stages": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, ""), fioJob("b", 1, 12000, ""),
			fioJob("a", 2, 600, "")),
			[]string{"a 6000 400 5000 0 1", "b 12000 400 5000 0 1", "a (2) 600 400 5000 0 1"}},
		"two at once, not grouped": {strings.ReplaceAll(fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep),
			fioJob("a", 0, 6000, deep)), `"job_runtime":120000`, `"job_runtime":60000`),
			[]string{"fio 12000 400 5000 0 8"}},
		"one after another in a group": {fioOutput(1_700_000_130, fioJob("a", 0, 6000, `"job_start":1700000000000,`),
			fioJob("b", 0, 60, `"job_start":1700000061000,`)), []string{"a 6000 400 5000 0 1", "b 60 400 5000 0 1"}},
		"appended": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, "")) +
			fioOutput(1_700_000_100, fioJob("a", 0, 60, "")),
			[]string{"a 6000 400 5000 0 1", "a (2) 60 400 5000 0 1"}},
		"appended within two seconds, of other depths": {
			fioOutput(1_700_000_000, fioJob("a", 0, 6000, strings.Replace(deep, `"8"`, `"4"`, 1))) +
				fioOutput(1_700_000_001, fioJob("a", 0, 12000, deep)),
			[]string{"a 6000 400 5000 0 8", "a (2) 12000 400 5000 0 16"}},
		"the earlier of two calls behind the later": {
			fioOutput(1_700_000_100, fioJob("a", 0, 6000, strings.Replace(deep, `"8"`, `"4"`, 1))) +
				fioOutput(1_700_000_000, fioJob("a", 0, 12000, deep)),
			[]string{"a 6000 400 5000 0 8", "a (2) 12000 400 5000 0 16"}},
		"the same, of one job": {fioOutput(1_700_000_100, fioJob("a", 0, 6000, deep)) +
			fioOutput(1_700_000_000, fioJob("a", 0, 12000, deep)),
			[]string{"a 6000 400 5000 0 16", "a (2) 12000 400 5000 0 16"}},
		"two at once, of other blocks": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep),
			fioJob("b", 0, 60, strings.Replace(deep, "iodepth", `bs":"1m","iodepth`, 1))),
			[]string{"a 6000 400 5000 0 16", "b 60 400 5000 0 16"}},
		"one waits for another": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep),
			fioJob("b", 0, 60, strings.Replace(deep, "iodepth", `wait_for":"a","iodepth`, 1))),
			[]string{"a 6000 400 5000 0 16", "b 60 400 5000 0 16"}},
		"one begins when the other has ended": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep),
			fioJob("b", 0, 60, strings.Replace(deep, "iodepth", `startdelay":"60","iodepth`, 1))),
			[]string{"a 6000 400 5000 0 16", "b 60 400 5000 0 16"}},
		"one begins a little before the other has ended": {fioOutput(1_700_000_000,
			strings.Replace(fioJob("a", 0, 6000, deep), `"runtime":60000`, `"runtime":60100`, 1),
			fioJob("b", 0, 60, strings.Replace(deep, "iodepth", `startdelay":"60","iodepth`, 1))),
			[]string{"a 6000 400 5000 0 16", "b 60 400 5000 0 16"}},
		"what was written is read back": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000, ""),
			`"sync"`, `"write":{"io_bytes":24576000,"runtime":30000,"total_ios":6000,`+
				`"clat_ns":{"max":9,"mean":9,"N":6000}},"sync"`, 1)),
			[]string{"a reads 6000 400 5000 0 1", "a writes 0 NaN NaN 0 1"}},
		"what was written is read back as fast": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000,
			`"job options":{"rw":"write","verify":"crc32c"},`), `"sync"`, written, 1)),
			[]string{"a reads 6000 400 5000 0 1", "a writes 0 NaN NaN 0 1"}},
		"of a mix, too": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000,
			`"job options":{"rw":"randrw","verify":"crc32c"},`), `"sync"`, strings.Replace(written, "60000", "59000", 1), 1)),
			[]string{"a reads 6000 400 5000 0 1", "a writes 0 NaN NaN 0 1"}},
		"a mix that is not verified": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000,
			`"job options":{"rw":"randrw"},`), `"sync"`, strings.Replace(written, "60000", "59000", 1), 1)),
			[]string{"fio 6000 400 5000 0 1"}},
		"two sections in sum, by group_reporting": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000,
			`"job options":{"iodepth":"8","rate_iops":"50"},`), `"job_runtime":60000`, `"job_runtime":120013`, 1)),
			[]string{"fio 6000 400 5000 0 0"}},
		"two processes in sum, as asked": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000,
			`"job options":{"iodepth":"8","numjobs":"2"},`), `"job_runtime":120000`, `"job_runtime":120013`, 1)),
			[]string{"fio 6000 400 5000 0 16"}},
		"one begins while the other works": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep),
			fioJob("b", 0, 60, strings.Replace(deep, "iodepth", `startdelay":"59","iodepth`, 1))),
			[]string{"fio 6060 400 5000 0 16"}},
		"three processes of a client, told in sum three times": {clients(fioJob("a", 0, 60, three),
			strings.Replace(fioJob("a", 0, 600, three), `"runtime":60000`, `"runtime":61000`, 1),
			strings.Replace(fioJob("a", 0, 6000, three), `"runtime":60000`, `"runtime":62000`, 1)),
			[]string{"fio 6000 400 5000 0 24"}},
		"three processes of a client, one by one": {clients(fioJob("a", 0, 60, three), fioJob("a", 0, 50, three),
			fioJob("a", 0, 70, three), fioJob("All clients", 0, 180, ""), fioJob("a", 0, 6000, three),
			fioJob("a", 0, 6001, three), fioJob("a", 0, 6002, three)), []string{"fio 18003 400 5000 0 8"}},
		"clients, each twice": {clients(fioJob("a", 0, 60, deep), fioJob("b", 0, 6, ""),
			fioJob("All clients", 0, 66, ""), fioJob("a", 0, 6000, deep), fioJob("b", 0, 600, "")),
			[]string{"a 6000 400 5000 0 16", "b 600 400 5000 0 1"}},
		"the sum of clients alone": {clients(fioJob("All clients", 0, 6600, "")), []string{"fio 6600 400 5000 0 1"}},
		"many in flight, by an engine of another system": {fioOutput(1_700_000_000, fioJob("a", 0, 6000,
			`"job options":{"ioengine":"rbd","iodepth":"8"},"iodepth_level":{"1":0.1,"8":99.9},`)),
			[]string{"fio 6000 400 5000 0 8"}},
		"many in flight, by the default engine": {strings.Replace(fioOutput(1_700_000_000, fioJob("a", 0, 6000,
			`"job options":{"iodepth":"8"},"iodepth_level":{"1":0.1,"8":99.9},`)), `"ioengine":"libaio"`, "", 1),
			[]string{"fio 6000 400 5000 0 8"}},
		"one in flight, whatever is asked for": {strings.Replace(fioOutput(1_700_000_000, fioJob("a", 0, 6000,
			`"job options":{"iodepth":"8"},"iodepth_level":{"1":100,"2":0,">=64":0},`)), `"ioengine":"libaio"`, "", 1),
			[]string{"fio 6000 400 5000 0 1"}},
		"ended by a signal": {"fio: terminating on signal 15\n" + fioOutput(1_700_000_000, fioJob("a", 0, 6000, "")),
			[]string{"fio 6000 400 5000 0 1 fio: terminating on signal 15"}},
		"more to do": {fioOutput(1_700_000_000, strings.Replace(fioJob("a", 0, 6000, ""), `"eta":0`, `"eta":9`, 1)),
			[]string{"fio 6000 400 5000 0 1 its last report says that there was more to do: fio was ended, or what came " +
				"then is missing"}},
		"failed in verify": {fioOutput(1_700_000_000, failed), []string{
			"fio 6000 400 5000 1 1 job r ended with error 84 (data differ from what was written (verify))"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Prepare("out.json", strings.NewReader(c.text), time.Unix(1_700_000_200, 0), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range all {
				var sink lastReport
				if _, err := Engines()[d.Engine].Parse(d.Declared, strings.NewReader(c.text), &sink); err != nil {
					t.Fatal(err)
				}
				r, p99 := sink.Report0, math.NaN()
				for i, m := range d.Declared.Measures {
					if strings.HasSuffix(m.Name, "read_p99") {
						p99 = r.Values[i]
					}
				}
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %.0f %.0f %d %d %s", d.Workload, r.Ops[0].Ops,
					r.Ops[0].Seconds/float64(r.Ops[0].Ops)*1e6, p99, r.Errors, d.Streams[0].Depth, d.Failure)))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A job with latency_target lowers its depth, which is no lack of load. Before, its generator "paused".
func TestFioTriesDepths(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]bool{"1000": true, "0": false} {
		d := prepareOne(t, "out.json", fioOutput(1_700_000_000, fioJob("a", 0, 6000,
			`"job options":{"iodepth":"8","time_based":"","runtime":"60","latency_target":"`+target+`"},`)))
		if d.Streams[0].Brief != want || strings.Contains(fmt.Sprint(d.Notes), "latency_target") != want {
			t.Errorf("latency_target=%s: %+v, %q", target, d.Streams[0], d.Notes)
		}
	}
	for option, want := range map[string]bool{"flow": true, "thinktime": true, "read_iolog": true, "iodepth_low": true,
		"iodepth_batch": true, "iodepth_batch_submit": true, "nice": false} {
		d := prepareOne(t, "out.json", fioOutput(1_700_000_000, fioJob("a", 0, 6000,
			`"job options":{"iodepth":"8","time_based":"","runtime":"60","`+option+`":"4"},`)))
		if d.Streams[0].Brief != want {
			t.Errorf("%s: %+v", option, d.Streams[0])
		}
	}
}

// Whether a job came to the steady state that it was asked for is told.
func TestFioSteadyState(t *testing.T) {
	t.Parallel()
	for attained, want := range map[string]string{"1": "fio's own steady state (iops:50% over 2 s) was reached, and ended it",
		"0": "fio's own steady state (iops:50% over 2 s) was not reached"} {
		d := prepareOne(t, "out.json", fioOutput(1_700_000_000, fioJob("a", 0, 6000, `"steadystate":{"ss":"iops:50%",`+
			`"duration":2,"attained":`+attained+`,"criterion":"33.1%","data":{"bw_mean":32000,"iops":[7900,7800]}},`)))
		if !slices.Contains(d.Notes, want) {
			t.Errorf("%q, want %q", d.Notes, want)
		}
	}
}

// What fio's whole times (lat) have beyond those of completion is the time in submission: by jq 6,000 reads in 60 s,
// 600 µs each. Where the times are the whole ones there is none.
func TestFioSubmission(t *testing.T) {
	t.Parallel()
	text := fioOutput(1_700_000_000, fioJob("a", 0, 6000, ""))
	whole := strings.Replace(text, `"mean":1000000,`, `"mean":1000000,"percentile":{"99.000000":2000000},`, 1)
	for text, want := range map[string]float64{text: 0.06, whole: 0} {
		if got := prepareOne(t, "out.json", text).Streams[0].Submitting; math.Abs(got-want) > 1e-9 {
			t.Errorf("%g in submission, want %g", got, want)
		}
	}
}

// What --output-format=json,normal prints about its jobs is no complaint of fio; what it says of a failure is.
func TestFioPreamble(t *testing.T) {
	t.Parallel()
	const before = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\n...\nfio-3.33\nStarting 1 process\n"
	const after = "\na: (groupid=0, jobs=1): err= 0: pid=9: Sun Nov 29 21:03:35 2026\n  read: IOPS=100\n"
	text := fioOutput(1_700_000_000, fioJob("a", 0, 6000, ""))
	for _, c := range [][2]string{{before + text + after, ""},
		{before + "fio: pid=9, err=5\n" + text, "fio says: fio: pid=9, err=5"}} {
		said := ""
		for _, note := range prepareOne(t, "out.json", c[0]).Notes {
			if strings.HasPrefix(note, "fio says") {
				said = note
			}
		}
		if said != c[1] {
			t.Errorf("%q, want %q", said, c[1])
		}
	}
}

// Of more jobs than there is room for, those that are told have all the times that fio states of them, and how many
// operations are left out is said. By jq of the text, jobs: length 40, each with 2 percentiles above 0, a largest
// and a number.
func TestFioManyJobs(t *testing.T) {
	t.Parallel()
	var jobs []string
	for i := range 40 {
		jobs = append(jobs, fioJob(fmt.Sprint("job", i), 0, 6000, `"job options":{"iodepth":"8"},`))
	}
	d := prepareOne(t, "out.json", fioOutput(1_700_000_000, jobs...))
	each := map[string]int{}
	for _, m := range d.Declared.Measures {
		each[m.Name[:strings.LastIndex(m.Name, "_")]]++
	}
	for of, n := range each {
		if n != 4 {
			t.Errorf("%s has %d times", of, n)
		}
	}
	want := fmt.Sprintf("of %d more operations of its jobs such times are left out", 40-len(each))
	if len(each) < 23 || !strings.Contains(strings.Join(d.Notes, "\n"), want) {
		t.Errorf("%d are told; %q, want %q", len(each), d.Notes, want)
	}
}

// fio's own counts of the disks are laid beside what its jobs report: less is told, the same is not. By jq, of
// disk_util: (.read_ios + .read_merges), .read_sectors * 512; of jobs: .read.total_ios, .read.io_bytes.
func TestFioDisks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ disks, want string }{
		"from the page cache": {`{"name":"sda","read_ios":1400,"read_merges":100,"write_ios":7,"util":1}`,
			"of sda (disk_util) show 1500 reads of 6000 that"},
		"bytes": {`{"name":"sda","read_ios":5900,"read_merges":0,"read_sectors":8000,"write_sectors":3}`,
			"of sda (disk_util) show 5900 reads of 6000 (3.91 MiB of 23.4 MiB) that"},
		"none at all":            {`{"name":"vdb","read_ios":0,"write_ios":0,"util":0}`, "show 0 reads of 6000 that"},
		"a disk and one it's on": {`{"name":"dm-0","read_ios":3000},{"name":"sda","read_ios":3000}`, ""},
		"all of them":            {`{"name":"sda","read_ios":5990,"read_merges":0,"read_sectors":47000}`, ""},
	} {
		text := strings.Replace(fioOutput(1_700_000_000, fioJob("a", 0, 6000, "")), "\n}\n",
			",\n\"disk_util\":["+c.disks+"]\n}\n", 1)
		d := prepareOne(t, "a.json", text)
		notes, unseen := strings.Join(d.Notes, "\n"), strings.Join(d.Unseen, "\n")
		told := strings.Contains(notes, "disk_util")
		if told != (c.want != "") || !strings.Contains(notes, c.want) || !strings.Contains(unseen, "disk_util") {
			t.Errorf("%s: %q and %q, want %q", name, notes, unseen, c.want)
		}
	}
}

// A report within somebody's own JSON is whole: nothing of it was cut.
func TestFioWithin(t *testing.T) {
	t.Parallel()
	alone := fioOutput(1_700_000_000, fioJob("a", 0, 6000, ""))
	for name, text := range map[string]string{
		"an object": `{"host": "x", "result": ` + alone + "}\n", "a list": "[\n" + alone + "]\n",
	} {
		if got, want := runsIn(t, "a.json", []byte(text)), runsIn(t, "a.json", []byte(alone)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if d := prepareOne(t, "a.json", text); d.Failure != "" || d.Lost != "" {
			t.Errorf("%s: %q, %q", name, d.Failure, d.Lost)
		}
	}
}

// fio 2.99 writes the times of fio 3, in nanoseconds, and so the bins: jq sums up 6 operations of 1 ms.
func TestFioBefore3(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("fio-3.36", "fio-2.99", `"percentile":{`, `"bins":{"1003520":6000},"percentile":{`).
		Replace(fioOutput(1_700_000_000, fioJob("a", 0, 6000, "")))
	d := prepareOne(t, "a.json", text)
	r := parse(t, d, strings.NewReader(text)).Reports
	h := r[len(r)-1].Ops[0].Hist
	if p50, ok := h.Quantile(0.5); !ok || h.Count() != 6000 || math.Abs(float64(p50)/1e6-1) > 0.01 {
		t.Errorf("%d of %v ns", h.Count(), p50)
	}
}

type lastReport struct{ Report0 workload.Report }

func (l *lastReport) Report(r workload.Report) { l.Report0 = r }
func (*lastReport) Warn(string)                {}

// The rates of reads and writes are fio's own, over the time of each, in its JSON and its other forms.
func TestFioVerify(t *testing.T) {
	t.Parallel()
	text := "w: (g=0): rw=write, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n" +
		"fio-3.33\nw: (groupid=0, jobs=1): err= 0: pid=7: Thu Nov 26 21:21:59 2026\n" +
		"  read: IOPS=25.6k, BW=100MiB/s (105MB/s)(4096KiB/40msec)\n" +
		"    clat (usec): min=1, max=9, avg=5.00, stdev= 1.00\n" +
		"  write: IOPS=32.0k, BW=125MiB/s (131MB/s)(4096KiB/32msec); 0 zone resets\n" +
		"    clat (usec): min=1, max=9, avg=7.00, stdev= 1.00\n" +
		"     issued rwts: total=1024,1024,0,0 short=0,0,0,0 dropped=0,0,0,0\n\nRun status group 0 (all jobs):\n"
	side := func(iops, ms string) string {
		return ";4096;102400;" + iops + ";" + ms + strings.Repeat(";0", 37)
	}
	for name, c := range map[string][2]string{
		"text": {text, "w reads: read 1024/0.00512/4194304, 0 errors, 40ms\n" +
			"w writes: write 1024/0.007168/4194304, 0 errors, 32ms"},
		"terse": {"3;fio-3.33;w;0;0" + side("25600", "40") + side("32000", "32") + ";1.0%;2.0%;0;0;0\n",
			"w reads: read 1024/0/4194304, 0 errors, 40ms\nw writes: write 1024/0/4194304, 0 errors, 32ms"},
	} {
		if got := runsIn(t, name, []byte(c[0])); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c[1])
		}
	}
}

// What fio says over and over (--status-interval) is one job: its last word counts, and the time is fio's own.
func TestFioTextAgain(t *testing.T) {
	t.Parallel()
	entry := func(pid, reads, ms int) string {
		return fmt.Sprintf("k: (groupid=0, jobs=1): err= 0: pid=%d: Thu Nov 26 21:21:59 2026\n"+
			"  read: IOPS=1, BW=1KiB/s (1kB/s)(%dKiB/%dmsec)\n    clat (usec): min=1, max=2.5K, avg=50.00, stdev= 1.00\n"+
			"     issued rwts: total=%d,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\nRun status group 0 (all jobs):\n",
			pid, 4*reads, ms, reads)
	}
	asked := "k: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\n"
	sum := strings.Replace(entry(0, 750, 2000), "k: ", "All clients: ", 1)
	both := strings.Replace(entry(7, 500, 2000), "     issued", "  mixed: IOPS=0, BW=0 (0)(0B/2000msec)\n"+
		"    clat (usec): min=1, max=9, avg=7.00, stdev= 1.00\n     issued", 1)
	failed := strings.NewReplacer("(1000KiB", "(252KiB",
		"\n\nRun", "\n     errors    : total=187, first_error=5/<EIO>\n\nRun").
		Replace(entry(7, 250, 2000))
	thousands := strings.NewReplacer("4096B", "131kB", "(1000KiB", "(32.8MB")
	terse := func(version string, code, kib, iops int) string {
		side := fmt.Sprintf("%d;%d;%d;2000", kib, kib/2, iops) + strings.Repeat(";0", 37) + ";"
		return fmt.Sprintf("%s;fio-3.33;k;0;%d;%s%s1%%;1%%;\n", version, code, side, strings.Repeat("0;", 41))
	}
	for name, c := range map[string][2]string{
		"thousands (kb_base)": {thousands.Replace(asked + entry(7, 250, 2000)),
			"fio: read 250/0.0125/32768000, 0 errors, 2s"},
		"issued but failed":        {asked + failed, "fio: read 63/0.00315/258048, 187 errors, 2s"},
		"terse":                    {terse("3", 0, 4000, 500), "k: read 1000/0/4096000, 0 errors, 2s"},
		"terse, of many sizes":     {terse("3", 0, 16_000, 2031), "k: read 4062/0/16384000, 0 errors, 2s"},
		"terse, issued but failed": {terse("3", 5, 1000, 500), "k: read 1000/0/1024000, 1 errors, 2s"},
		"terse without its trims":  {terse("3", 0, 0, 0), "refused"},
		"an interval": {asked + entry(7, 500, 1000) + entry(7, 1000, 2000),
			"fio: read 1000/0.05/4096000, 0 errors, 2s"},
		"two at once": {asked + entry(7, 500, 2000) + entry(8, 250, 2000),
			"fio: read 750/0.0375/3072000, 0 errors, 2s"},
		"clients": {asked + entry(7, 500, 2000) + entry(8, 250, 2000) + sum,
			"fio: read 750/0.0375/3072000, 0 errors, 2s"},
		"both reported": {asked + both, "fio: read 500/0.025/2048000, 0 errors, 2s"},
		"a wide margin": {strings.ReplaceAll("\n"+asked+entry(7, 500, 2000), "\n", "\n      "),
			"fio: read 500/0.025/2048000, 0 errors, 2s"},
		"of two names": {asked + strings.Replace(asked, "k: ", "b: ", 1) + entry(7, 500, 2000) +
			strings.Replace(entry(8, 9, 2000), "k: ", "b: ", 1), "fio: read 509/0.02545/2084864, 0 errors, 2s"},
	} {
		if got := runsIn(t, name, []byte(c[0])); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c[1])
		}
	}
}

// Of a log of histograms whose last interval has one direction of two, that interval is not counted: rates of both are
// over one time. What ended earlier, as writes before they are verified, stays.
func TestFioHistLogEnds(t *testing.T) {
	t.Parallel()
	line := func(ms, direction, n int) string {
		return fmt.Sprintf("%d, %d, 4096, %s%d%s\n", ms, direction, strings.Repeat("0, ", 1000), n,
			strings.Repeat(", 0", 855))
	}
	for text, want := range map[string]string{
		line(500, 0, 10) + line(501, 1, 20) + line(1000, 0, 30) + line(1001, 1, 40) + line(1500, 0, 50): "40 60 1.001s",
		line(500, 1, 20) + line(1000, 1, 40) + line(1500, 0, 50) + line(2000, 0, 60):                    "110 60 2s",
	} {
		all, err := Prepare("x_clat_hist.1.log", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatal(len(all), err)
		}
		var sink lastReport
		if _, err := Engines()[all[0].Engine].Parse(all[0].Declared, strings.NewReader(text), &sink); err != nil {
			t.Fatal(err)
		}
		r := sink.Report0
		if got := fmt.Sprintf("%d %d %v", r.Ops[0].Ops, r.Ops[1].Ops, r.Elapsed); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A sum over jobs that began at unlike times says so.
func TestFioStaggered(t *testing.T) {
	t.Parallel()
	for delay, want := range map[string]bool{"30": true, "0": false} {
		text := fioOutput(1_700_000_000, fioJob("a", 0, 6000, `"job options":{"rw":"randread"},`),
			fioJob("b", 0, 60, `"job options":{"rw":"randread","startdelay":"`+delay+`"},`))
		all, err := Prepare("f.json", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatal(len(all), err)
		}
		if notes := strings.Join(all[0].Notes, "\n"); strings.Contains(notes, "the last 30 s after the first") != want {
			t.Errorf("delay %s: %s", delay, notes)
		}
	}
}

// A sum over jobs that ran at one time says so where one of them ended well before the others.
func TestFioEndedEarly(t *testing.T) {
	t.Parallel()
	for runtime, want := range map[string]bool{"30000": true, "59000": false} {
		one := strings.Replace(fioJob("a", 0, 3000, `"job options":{"rw":"randread"},`), `"runtime":60000`,
			`"runtime":`+runtime, 1)
		text := fioOutput(1_700_000_000, one, fioJob("b", 0, 6000, `"job options":{"rw":"randread"},`))
		all, err := Prepare("f.json", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatal(len(all), err)
		}
		notes := strings.Join(all[0].Notes, "\n")
		if strings.Contains(notes, "the shortest 30 s, the longest 1 min") != want {
			t.Errorf("runtime %s: %s", runtime, notes)
		}
	}
}

// A sum of fio's own (group_reporting) over jobs of unlike lengths is told by its job_runtime, and has no depth: of
// 60 s and 12 s, and of two processes by the options, one of which ended after half the time.
func TestFioUneven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		together, numjobs string
		uneven            string
		depth             float64
	}{
		{"72000", "1", "1 min 12 s together, the longest 1 min", 0},
		{"90000", "2", "1 min 30 s together, the longest 1 min", 0},
		{"120000", "2", "", 16},
		{"119000", "2", "", 16},
		{"180100", "2", "", 0}, // three as long: more than the options say
		{"0", "2", "", 16},     // not told
	} {
		text := fioOutput(1_700_000_000, fioJob("a", 0, 6000, `"job options":{"rw":"randread","iodepth":"8"},`))
		text = strings.Replace(text, `"iodepth":"8"`, `"iodepth":"8","numjobs":"`+c.numjobs+`"`, 1)
		text = strings.Replace(text, `"job_runtime":60000`, `"job_runtime":`+c.together, 1)
		all, err := Prepare("f.json", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if err != nil || len(all) != 1 {
			t.Fatal(len(all), err)
		}
		notes := strings.Join(all[0].Notes, "\n")
		said := strings.Contains(notes, "did not work as long")
		if said != (c.uneven != "") || !strings.Contains(notes, c.uneven) || all[0].Concurrency != c.depth {
			t.Errorf("%s: depth %v, %s", c.together, all[0].Concurrency, notes)
		}
	}
}

// Nothing in a log of fio 2, of microseconds, tells it from one of fio 3, of nanoseconds, but what cannot be: a time
// that began before the job, or columns that came later. Where neither stands, its name says what it is taken for.
func TestFioLogUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"250, 104056, 0, 0\n500, 179986, 0, 0\n":       "fio clat log if of fio 3",
		"250, 1040560, 0, 0\n500, 179986, 0, 0\n":      "fio clat log",
		"250, 104056, 0, 0, 0\n500, 179986, 0, 0, 0\n": "fio clat log",
		"250, 104056, 0, 4096, 512\n":                  "fio clat log if of fio 3",
		"250, 104056, 0, 4096, 512, 0\n":               "fio clat log",
	} {
		if d := prepareOne(t, "x_clat.1.log", text); d.Workload != want {
			t.Errorf("%q: %q, want %q", text, d.Workload, want)
		}
	}
}
