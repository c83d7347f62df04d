package fio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/workloadtest"
)

const (
	t0         = 1_700_000_000_000
	rampOption = `, "ramp_time" : "2s"`
)

func at(ms int64, reads int) status {
	return status{stampMS: t0 + ms, runtimeMS: ms, eta: 100, reads: reads}
}

// both is a report of a job whose reads and writes go on together.
func both(stamp, runtime int64, each int) string {
	text := status{stampMS: t0 + stamp, runtimeMS: runtime, eta: 100, reads: each}.String()
	from, to := strings.Index(text, `      "read" : {`), strings.Index(text, `      "job_runtime"`)
	return text[:to] + strings.Replace(text[from:to], "read", "write", 1) + text[to:]
}

// brief returns what a test of order compares: time since t0, runtime, reads, and F on the final one.
func brief(reports []workload.Report) string {
	var out []string
	for _, r := range reports {
		text := fmt.Sprintf("%d/%d:%d", r.Time.UnixMilli()-t0, r.Elapsed.Milliseconds(), r.Ops[0].Ops+r.Ops[1].Ops)
		if r.Final {
			text += "F"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestParseStreams(t *testing.T) {
	t.Parallel()
	last := func(ms int64, reads int) string {
		return status{stampMS: t0 + ms, runtimeMS: ms, reads: reads}.String()
	}
	whole := at(2000, 20).String()
	for name, c := range map[string]struct {
		text  string
		want  string
		warns []string
		says  string
	}{
		"end to end": {at(1000, 10).String() + whole + last(3000, 30),
			"1000/1000:10 2000/2000:20 3000/3000:30F", nil, ""},
		"last right after another": {at(1000, 10).String() + last(2000, 20) + last(2140, 21),
			"1000/1000:10 2000/2000:20 2140/2140:21F", nil, ""},
		"last long after what it did": {at(1000, 10).String() + status{stampMS: t0 + 2150, runtimeMS: 2000,
			reads: 20}.String(), "1000/1000:10 2000/2000:20F", nil, ""},
		"last of both directions late": {both(1000, 1000, 10) + strings.Replace(both(1150, 1100, 11), `"eta" : 100`,
			`"eta" : 0`, 1), "1000/1000:20 1100/1100:22F", nil, ""},
		"too soon in the middle": {at(1000, 10).String() + at(1100, 11).String() + whole + last(3000, 30),
			"1000/1000:10 2000/2000:20 3000/3000:30F", nil, ""},
		"same time twice": {at(1000, 10).String() + at(1000, 10).String() + whole,
			"1000/1000:10 2000/2000:20", nil, ""},
		"last of all twice": {at(1000, 10).String() + last(1500, 15) + last(1500, 15),
			"1000/1000:10 1500/1500:15 1501/1500:15F", nil, ""},
		"killed": {at(1000, 10).String() + whole, "1000/1000:10 2000/2000:20", nil, ""},
		"killed soon after a report": {at(1000, 10).String() + at(1100, 11).String(), "1000/1000:10 1100/1100:11", nil,
			""},
		"only one": {last(1000, 10), "1000/1000:10F", nil, ""},
		"words between": {"fio: something\n" + at(1000, 10).String() + "fio: else\n" + whole,
			"1000/1000:10 2000/2000:20", nil, "fio: something\nfio: else"},
		"progress line before": {"Jobs: 1 (f=1)\rJobs: 1 (f=1) " + at(1000, 10).String(), "1000/1000:10", nil,
			""},
		"braces in words": {"weird {thing} here\n{\n" + at(1000, 10).String(), "1000/1000:10", nil,
			"weird\n{thing} here"},
		"cut, then whole": {at(1000, 10).String() + whole[:len(whole)/2] + at(3000, 30).String(),
			"1000/1000:10 3000/3000:30", []string{"was skipped"}, ""},
		"cut at the end": {at(1000, 10).String() + whole[:len(whole)/2], "1000/1000:10",
			[]string{"cut short"}, ""},
		"without its first half": {at(1000, 10).String() + whole[len(whole)/2:] + at(3000, 30).String(),
			"1000/1000:10 3000/3000:30", []string{"neither jobs"}, ""},
		"a message in the middle": {at(1000, 10).String() + strings.Replace(whole, "      \"eta\"",
			"fio: io_u error on file x\n      \"eta\"", 1), "1000/1000:10 2000/2000:20", []string{"taken out"},
			"fio: io_u error on file x"},
		"clock set back": {at(1000, 10).String() + status{stampMS: t0 - 50_000, runtimeMS: 2000, eta: 9,
			reads: 20}.String() + status{stampMS: t0 - 49_000, runtimeMS: 3000, eta: 9, reads: 30}.String(),
			"1000/1000:10 2000/2000:20 3000/3000:30", []string{"stepped back"}, ""},
		"an older report again": {at(1000, 10).String() + whole + at(1000, 10).String() + last(3000, 30),
			"1000/1000:10 2000/2000:20 3000/3000:30F", []string{"older"}, ""},
		"counters begin again": {at(1000, 10).String() + whole + status{stampMS: t0 + 3000, runtimeMS: 900,
			eta: 5, reads: 5}.String() + status{stampMS: t0 + 4000, runtimeMS: 1900, eta: 5, reads: 15}.String(),
			"1000/1000:10 2000/2000:20 3000/2900:25 4000/3900:35", []string{"from zero"}, ""},
		"windows line ends": {strings.ReplaceAll(at(1000, 10).String(), "\n", "\r\n"), "1000/1000:10", nil,
			""},
		"on one line": {strings.Join(strings.Fields(at(1000, 10).String()), " "), "1000/1000:10", nil,
			""},
		"unknown keys of any kind": {strings.Replace(at(1000, 10).String(), `"groupid" : 0`,
			`"x" : [1, {"y" : [true, null, "}\"{"]}, -2.5e3], "groupid" : 0`, 1), "1000/1000:10", nil, ""},
		"without a time stamp": {strings.Replace(strings.Replace(last(1000, 10), `"timestamp" : 1700000001,`, "",
			1), `"timestamp_ms" : 1700000001000,`, "", 1), "-63835596800000-1700000000000/1000:10F", nil, ""},
		"no operations at first": {at(0, 0).String() + at(1000, 10).String(), "0/0:0 1000/1000:10", nil, ""},
	} {
		if name == "without a time stamp" { // the zero time: year 1
			c.want = fmt.Sprintf("%d/1000:10F", workload.Report{}.Time.UnixMilli()-t0)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, reader := range []io.Reader{strings.NewReader(c.text),
				iotest.OneByteReader(strings.NewReader(c.text))} {
				var sink workloadtest.Recorder
				outcome, err := Engine{}.Parse(workload.Declared{}, reader, &sink)
				if err != nil {
					t.Fatal(err)
				}
				if got := brief(sink.Reports); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				if outcome.Message != c.says {
					t.Errorf("message %q, want %q", outcome.Message, c.says)
				}
				if len(sink.Warnings) != len(c.warns) {
					t.Errorf("warnings %q, want %d", sink.Warnings, len(c.warns))
				}
				for i, w := range c.warns {
					if i < len(sink.Warnings) && !strings.Contains(sink.Warnings[i], w) {
						t.Errorf("warning %q lacks %q", sink.Warnings[i], w)
					}
				}
			}
		})
	}
}

func TestParseCounters(t *testing.T) {
	t.Parallel()
	var sink workloadtest.Recorder
	text := status{stampMS: t0, runtimeMS: 2000, reads: 1000, spread: 4, errors: 7}.String()
	if _, err := (Engine{}).Parse(workload.Declared{}, strings.NewReader(text), &sink); err != nil {
		t.Fatal(err)
	}
	want := &hist.Histogram{}
	for i := range 4 {
		want.AddBucket(900+3*i, 250)
	}
	r := sink.Reports[0]
	want.SetExact(hist.Middle(900), hist.Middle(909), r.Ops[0].Hist.Sum())
	if !r.Ops[0].Hist.Equal(want) {
		t.Errorf("bins %v, want %v", r.Ops[0].Hist.Buckets(), want.Buckets())
	}
	if r.Ops[0].Ops != 1000 || r.Ops[0].Bytes != 4_096_000 || r.Errors != 7 || r.CPUSeconds != 0.08 {
		t.Errorf("%+v", r)
	}
	if got := r.Ops[0].Hist.Sum() / 1e9; got < r.Ops[0].Seconds*0.999999 || got > r.Ops[0].Seconds*1.000001 {
		t.Errorf("%v s in the histogram, %v s in all", got, r.Ops[0].Seconds)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing": {"", "it is empty"},
		"words": {"fio: engine x not loadable\nfio: failed to load engine\n",
			"fio says: fio: engine x not loadable; fio: failed to load engine"},
		"half a report": {at(1000, 10).String()[:200], "it is cut in its first report, after 200 bytes"},
		"other JSON":    {"{\n \"a\" : 1\n}\n", "no report"},
		"only ramp": {status{stampMS: t0, runtimeMS: 900, issued: 5, options: rampOption}.String(),
			"from the ramp time"},
		"deep nesting":   {strings.Repeat(`{"jobs":[`, 100) + "\n}", "no report"},
		"binary rubbish": {"\x00\xff{\x01\n}\n{\"\n}", "no report"},
	} {
		var sink workloadtest.Recorder
		_, err := Engine{}.Parse(workload.Declared{}, strings.NewReader(c.text), &sink)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(sink.Reports) > 0 {
			t.Errorf("%s: %v with %d reports, want %q", name, err, len(sink.Reports), c.want)
		}
	}
}

func TestParseTellsReadErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	var sink workloadtest.Recorder
	r := io.MultiReader(strings.NewReader(at(1000, 10).String()), iotest.ErrReader(broken))
	if _, err := (Engine{}).Parse(workload.Declared{}, r, &sink); !errors.Is(err, broken) || len(sink.Reports) != 1 {
		t.Errorf("%v with %d reports", err, len(sink.Reports))
	}
}

// While the ramp lasts fio counts operations but measures no latency, and starts again from zero after it.
func TestParseLeavesTheRampOut(t *testing.T) {
	t.Parallel()
	var sink workloadtest.Recorder
	text := status{stampMS: t0, runtimeMS: 900, eta: 9, options: rampOption, issued: 5}.String() +
		status{stampMS: t0 + 1000, runtimeMS: 1900, eta: 9, options: rampOption, issued: 5}.String() +
		status{stampMS: t0 + 2000, runtimeMS: 900, eta: 9, reads: 10, options: rampOption}.String()
	if _, err := (Engine{}).Parse(workload.Declared{}, strings.NewReader(text), &sink); err != nil {
		t.Fatal(err)
	}
	if got, want := brief(sink.Reports), "2000/900:10"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseTellsAJobsError(t *testing.T) {
	t.Parallel()
	text := strings.Replace(at(1000, 10).String(), `"error" : 0`, `"error" : 28`, 1)
	outcome, err := Engine{}.Parse(workload.Declared{}, strings.NewReader(text), &workloadtest.Recorder{})
	if want := "job load ended with error 28 (no space left on device)"; err != nil || outcome.Message != want {
		t.Errorf("message %q, %v; want %q", outcome.Message, err, want)
	}
}

// Hosts are added up from their own entries: the sum that fio's client prints has no bins.
func TestParseClientServer(t *testing.T) {
	t.Parallel()
	one := func(host string, ios int) string {
		return fmt.Sprintf(`{"jobname":"j","hostname":"%s","port":8765,"error":0,"read":{"io_bytes":%d,"io_kbytes":1,"runtime":1000,"total_ios":%d,`+
			`"lat_ns":{"min":%d,"max":%d,"mean":5,"N":%d,"bins":{"5":%d}}}}`, host, ios*4096, ios, 5, 5, ios, ios)
	}
	sum := func(ios int) string { return fmt.Sprintf(`{"jobname":"All clients","read":{"total_ios":%d}}`, ios) }
	for name, c := range map[string]struct {
		entries []string
		want    uint64
	}{
		"two hosts":            {[]string{one("a", 10), one("b", 20), sum(30)}, 30},
		"interim entries":      {[]string{one("a", 5), one("b", 7), one("a", 10), one("b", 20), sum(30)}, 30},
		"interim, sum missing": {[]string{one("a", 5), one("b", 7), one("a", 10), one("b", 20)}, 30},
		"two processes a host": {[]string{one("a", 5), one("a", 6), one("b", 7), sum(18)}, 18},
		"host lost in the run": {[]string{one("a", 5), one("b", 7), one("a", 10), sum(10)}, 17},
	} {
		text := "client: host=b disconnected\n{\"fio " +
			"version\":\"fio-3.33\",\"timestamp_ms\":1700000000000,\"client_stats\":[" + strings.Join(c.entries, ",") +
			"]\n}\n"
		var sink workloadtest.Recorder
		if _, err := (Engine{}).Parse(workload.Declared{}, strings.NewReader(text), &sink); err != nil {
			t.Fatal(err)
		}
		if r := sink.Reports[0]; r.Ops[0].Ops != c.want || r.Ops[0].Hist.Count() != c.want || !r.Final {
			t.Errorf("%s: %d operations, %d in the histogram, want %d", name, r.Ops[0].Ops, r.Ops[0].Hist.Count(),
				c.want)
		}
	}
}

// Any split of the stream gives the same reports.
func TestParseDoesNotDependOnChunks(t *testing.T) {
	t.Parallel()
	text := "fio: hello\n" + steadyStream(5, 20)
	var whole workloadtest.Recorder
	if _, err := (Engine{}).Parse(workload.Declared{}, strings.NewReader(text), &whole); err != nil {
		t.Fatal(err)
	}
	if got := len(whole.Reports); got != 6 {
		t.Fatalf("%d reports", got)
	}
	for size := 1; size < len(text); size = size*3 + 1 {
		var sink workloadtest.Recorder
		p := newParser(&sink, workload.Declared{})
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			p.Feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		if _, err := p.Finish(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole.Reports, sink.Reports); diff != "" {
			t.Fatalf("in pieces of %d bytes:\n%s", size, diff)
		}
	}
}

func TestParseBoundsWhatItKeeps(t *testing.T) {
	t.Parallel()
	var sink workloadtest.Recorder
	p := newParser(&sink, workload.Declared{})
	p.Feed([]byte("{\n"))
	chunk := bytes.Repeat([]byte("  \"x\" : 1,\n"), 100_000)
	for range 80 {
		p.Feed(chunk)
	}
	if cap(p.buf) > 4*maxDocument {
		t.Errorf("%d bytes kept", cap(p.buf))
	}
	p.Feed([]byte(at(1000, 10).String()))
	if _, err := p.Finish(); err != nil || len(sink.Reports) != 1 {
		t.Errorf("%v, %d reports; warnings %q", err, len(sink.Reports), sink.Warnings)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(steadyStream(2, 3)))
	f.Add([]byte("fio: x\n" + at(1000, 10).String()[:300] + at(2000, 20).String()))
	f.Add([]byte(`{"fio version":"fio-2.8","jobs":[{"read":{"io_bytes":5,"lat":{"mean":1e300,"bins":{"FIO_IO_U_PLAT_BITS":6,"17":3}}}}]` + "\n}"))
	f.Add([]byte(`{"client_stats":[{"jobname":"a","hostname":"h","job options":{"numjobs":"2"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var sink workloadtest.Recorder
		outcome, err := Engine{}.Parse(workload.Declared{}, bytes.NewReader(data), &sink)
		if outcome.Reports != len(sink.Reports) || (err == nil) != (outcome.Reports > 0) {
			t.Fatalf("%d reports, outcome %+v, %v", len(sink.Reports), outcome, err)
		}
		var before workload.Report
		for i, r := range sink.Reports {
			if i > 0 && r.Time.Before(before.Time) || r.Elapsed < before.Elapsed {
				t.Fatalf("report %d went back in time: %v after %v", i, r, before)
			}
			if r.Final && i != len(sink.Reports)-1 {
				t.Fatal("a report follows the final one")
			}
			if h := r.Ops[0].Hist; h != nil && h.Count() != r.Ops[0].Ops {
				t.Fatalf("%d of %d operations in the histogram", h.Count(), r.Ops[0].Ops)
			}
			before = r
		}
	})
}

type discard struct{}

func (discard) Report(workload.Report) {}
func (discard) Warn(string)            {}

// benchmarkParse reports MB per second of processor time beside those of the wall clock, which a busy machine spoils.
func benchmarkParse(b *testing.B, data []byte) {
	b.SetBytes(int64(len(data)))
	before := processorTime(b)
	for b.Loop() {
		if _, err := (Engine{}).Parse(workload.Declared{}, bytes.NewReader(data), discard{}); err != nil {
			b.Fatal(err)
		}
	}
	if spent := (processorTime(b) - before).Seconds(); spent > 0 {
		b.ReportMetric(float64(len(data))*float64(b.N)/1e6/spent, "MB/cpu-s")
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A synthetic stream of a minute with 400 occupied bins.
func BenchmarkParseSynthetic(b *testing.B) { benchmarkParse(b, []byte(steadyStream(60, 400))) }

// Sections that leave their ramp times at different moments: what was done in one counts neither for the section nor in
// all.
func TestSectionsInRamp(t *testing.T) {
	t.Parallel()
	var got workloadtest.Recorder
	p := newParser(&got, workload.Declared{})
	of := func(issued, measured uint64) entry {
		d := direction{hasIOs: true, inBytes: true, ios: issued, bytes: 4096 * issued, runtimeMS: 1000}
		d.lat = timing{given: true, hasCount: true, count: measured, mean: min(float64(measured), 1) * 1e6}
		return entry{numjobs: 1, eta: 9, hasETA: true, dirs: [3]direction{d}}
	}
	for i, jobs := range [][]entry{
		{of(50, 0), of(20, 0)},  // both ramp up
		{of(10, 10), of(40, 0)}, // the second one still does
		{of(30, 30), of(5, 5)},
		{of(60, 60), of(3, 3)}, // one begins again from zero, which shows in no total
	} {
		p.order.add(&document{version: "fio-3.33", stampMS: t0 + uint64(i)*1000, ramp: true, jobs: jobs})
	}
	p.order.finish()
	var ops [][3]uint64
	for _, r := range got.Reports {
		ops = append(ops, [3]uint64{r.Ops[0].Ops, r.Sections[0][0].Ops, r.Sections[1][0].Ops})
	}
	if diff := cmp.Diff([][3]uint64{{10, 10, 0}, {35, 30, 5}, {63, 60, 8}}, ops); diff != "" {
		t.Error(diff)
	}
}

// Time in which a job does not do what its figures are of is no time of them: fio's startdelay, and what it reads back
// when all is written. The rates are held against fio's own: operations by its runtime.
func TestParseTakesTheTimeOfTheLoad(t *testing.T) {
	t.Parallel()
	verifies := settings{{Key: "rw", Value: "write"}, {Key: "verify", Value: "crc32c"}}
	mixes := settings{{Key: "rw", Value: "randrw"}, {Key: "verify", Value: "crc32c"}}
	of := func(ios, ms uint64) direction {
		d := direction{hasIOs: true, inBytes: true, ios: ios, bytes: 4096 * ios, runtimeMS: ms}
		d.lat = timing{given: true, hasCount: true, count: ios, mean: 1e6}
		return d
	}
	for name, c := range map[string]struct {
		options settings
		jobs    []entry // a second apart
		want    string
	}{
		"a delay": {settings{{Key: "startdelay", Value: "2"}}, []entry{{elapsedS: 1}, {elapsedS: 2}, {elapsedS: 3},
			{elapsedS: 4, dirs: [3]direction{of(5, 900)}}, {elapsedS: 5, dirs: [3]direction{of(9, 1900)}}},
			"3000/900:5/0 4000/1900:9/0"},
		"a delay, and a disk that does not answer": {settings{{Key: "startdelay", Value: "1"}}, []entry{{elapsedS: 1},
			{elapsedS: 2}, {elapsedS: 3}, {elapsedS: 4, dirs: [3]direction{of(5, 2900)}}},
			"2000/3000:0/0 3000/4000:5/0"},
		"read back": {verifies, []entry{{elapsedS: 1, dirs: [3]direction{{}, of(10, 1000)}},
			{elapsedS: 2, dirs: [3]direction{of(5, 0), of(15, 1900)}}, // written until 1.5 s
			{elapsedS: 3, dirs: [3]direction{of(15, 900), of(15, 1500)}, errors: 1}},
			"0/1000:0/10 500/1500:0/15"},
		"a mix read back": {mixes, []entry{{elapsedS: 1, dirs: [3]direction{of(8, 1000), of(9, 1000)}},
			{elapsedS: 2, dirs: [3]direction{of(17, 2000), of(18, 2000)}},
			{elapsedS: 3, dirs: [3]direction{of(35, 3000), of(22, 3000)}}, // both until 2.5 s
			{elapsedS: 4, dirs: [3]direction{of(40, 4000), of(22, 4000)}},
			{elapsedS: 4, dirs: [3]direction{of(44, 4400), of(22, 2500)}, errors: 1}},
			"0/1000:8/9 1000/2000:17/18 1001/2000:17/18"},
		"a mix that is over before its first report": {mixes, []entry{
			{elapsedS: 1, dirs: [3]direction{of(44, 900), of(22, 500)}}}, "0/500:0/22"},
		"a mix that writes nothing for a while": {mixes, []entry{
			{elapsedS: 1, dirs: [3]direction{of(10, 1000), of(1, 1000)}},
			{elapsedS: 2, dirs: [3]direction{of(20, 2000), of(2, 2000)}},
			{elapsedS: 3, dirs: [3]direction{of(30, 3000), of(2, 3000)}},
			{elapsedS: 4, dirs: [3]direction{of(40, 4000), of(3, 4000)}}},
			"0/1000:10/1 2000/3000:30/2 3000/4000:40/3"},
		"a mix that does not read back": {append(settings{{Key: "do_verify", Value: "0"}}, mixes...), []entry{
			{elapsedS: 1, dirs: [3]direction{of(10, 1000), of(9, 1000)}},
			{elapsedS: 2, dirs: [3]direction{of(20, 2000), of(9, 2000)}}}, "0/1000:10/9 1000/2000:20/9"},
		"reads beside the writing": {append(settings{{Key: "verify_backlog", Value: "8"}}, verifies...), []entry{
			{elapsedS: 1, dirs: [3]direction{of(4, 1000), of(10, 1000)}},
			{elapsedS: 2, dirs: [3]direction{of(9, 2000), of(20, 2000)}}}, "0/1000:4/10 1000/2000:9/20"},
	} {
		var got workloadtest.Recorder
		p := newParser(&got, workload.Declared{})
		for i, e := range c.jobs {
			e.numjobs, e.options, e.hasETA, e.eta = 1, c.options, true, uint64(len(c.jobs)-1-i)
			p.order.add(&document{version: "fio-3.33", stampMS: t0 + uint64(i)*1000, jobs: []entry{e}})
		}
		p.order.finish()
		var text []string
		for _, r := range got.Reports {
			text = append(text, fmt.Sprintf("%d/%d:%d/%d", r.Time.UnixMilli()-t0, r.Elapsed.Milliseconds(),
				r.Ops[0].Ops, r.Ops[1].Ops))
		}
		if strings.Join(text, " ") != c.want {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
		if last := c.jobs[len(c.jobs)-1]; got.Reports[len(got.Reports)-1].Errors != last.errors {
			t.Errorf("%s: errors %d of %d", name, got.Reports[len(got.Reports)-1].Errors, last.errors)
		}
	}
}
