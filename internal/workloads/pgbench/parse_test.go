package pgbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/workloadtest"
)

func Example() {
	job, err := Engine{}.Command(workload.Spec{Name: "Load", ConfigFile: "load.yml", Runtime: time.Minute, SizeScale: 1,
		Config: []byte("server: {url: \"postgresql://app@192.0.2.1/bench\"}\nscale: 100\nclients: 8\nrate: 500\n")})
	fmt.Println(err, job.Operations[0].Noun, job.Latency, job.Streams[0].Depth)
	fmt.Println(strings.Join(job.Command.Argv, " "))
	// Output:
	// <nil> transactions response time 8
	// ./Load/plimsoll pgbench-worker Load/pgbench.json
}

// Programs are refused however pgbench lets them be written, and little is refused that only looks like one.
func TestShell(t *testing.T) {
	for text, refused := range map[string]bool{
		`\shell a`: true, `\SetShell x a`: true, `\ shell a`: true, "\\\tshell a": true, "\\\v\fshell a": true,
		"\\\\\nshell a": true, "select 1 \\ \\\r\n setshell x a": true,
		`select 'shell'`: false, `\set shell 1`: false, "\\set x \\\n 1": false,
	} {
		if err := fit(text); (err != nil) != refused {
			t.Errorf("%q: %v, want refused %v", text, err, refused)
		}
	}
	_, err := Engine{}.Command(workload.Spec{Name: "Load", Runtime: time.Minute,
		Config: []byte("rate: 9\nlatency_limit: 100ns\n")})
	if !strings.Contains(fmt.Sprint(err), `latency_limit: "100ns" is no time from 1us to 1h`) {
		t.Error(err)
	}
}

// state returns what the worker prints of so many transactions of 2 ms.
func state(t *testing.T, after time.Duration, n uint64, final bool) string {
	t.Helper()
	h := &hist.Histogram{}
	h.Add(2e6, n)
	s := worker.State{Elapsed: after, Operations: []worker.Counts{{Times: h}}, Final: final}
	s.Values = make([]*float64, 3)
	line, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

// Where the log is late, as it is of slow transactions, pgbench's own lines stand in, exact to a transaction and
// without histograms; what the log says of the past is not told again, and the end has all.
func TestLateLog(t *testing.T) {
	declared := mustDeclare(t, "")
	raw := `{"began_ns":1700000000000000000}` + "\n" + state(t, time.Millisecond, 0, false)
	for i := range 6 {
		raw += fmt.Sprintf("progress: %d.001 s, 13.0 tps, lat 2.000 ms stddev 1.0, %d failed\n", 1700000001+i, i%2)
	}
	raw += state(t, 2*time.Second, 25, false) + state(t, 5*time.Second, 66, false) + state(t, 7*time.Second, 80, true)
	var sink workloadtest.Recorder
	if _, err := (Engine{}).Parse(declared, strings.NewReader(raw), &sink); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range sink.Reports {
		c := r.Ops[0]
		got = append(got, fmt.Sprintf("%v %d %.3f %v %d %v", r.Elapsed, c.Ops, c.Seconds, c.Hist != nil,
			r.Errors, r.Final))
	}
	want := []string{"1.001s 13 0.026 false 0 false", "2.001s 26 0.052 false 1 false", "3.001s 39 0.078 false 1 false",
		"5s 66 0.132 true 1 false", "7s 80 0.160 true 1 true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func mustDeclare(t testing.TB, config string) workload.Declared {
	t.Helper()
	job, err := Engine{}.Command(spec(config, false))
	if err != nil {
		t.Fatal(err)
	}
	return job.Declared
}

// Tables of another scale than was asked for are said.
func TestOtherScale(t *testing.T) {
	var sink workloadtest.Recorder
	raw := state(t, time.Second, 5, true) + "scaling factor: 2\nRun was aborted; the above results are incomplete.\n"
	if _, err := (Engine{}).Parse(mustDeclare(t, "scale: 3\n"), strings.NewReader(raw), &sink); err != nil {
		t.Fatal(err)
	}
	want := []string{"pgbench output: the tables have scale 2, and 3 was asked for: a prefill step makes them anew",
		"pgbench output: the run was aborted: what it counted is incomplete"}
	if d := cmp.Diff(want, sink.Warnings); d != "" {
		t.Error(d)
	}
}

// Whatever is in the output, reports are in order and cumulative.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"began_ns":1700000000000000000}`+"\nprogress: 1700000001.5 s, 13.0 tps, lat 2.0 ms stddev 1.0\n"), 0)
	f.Add([]byte("progress: 1.0 s, 1e300 tps, lat NaN ms\nprogress: 2.0 s, 1.0 tps, lat 1 ms\n"+
		"number of transactions actually processed: 1\nduration: 1 s"), 1)
	f.Add([]byte("100000 of 200000 tuples (50%) done (elapsed 0.52 s, remaining 1 s)\r{\n{\"initialized_ns\":9999999999}\n"), 2)
	f.Add([]byte("{\"elapsed_ns\":5,\"operations\":[{\"times\":{\"min\":1,\"max\":1,\"sum\":1,\"buckets\":[1,1]}}],"+
		"\"values\":[null,null,null],\"cpu_seconds\":0,\"final\":true}\n"), 0)
	declared := []workload.Declared{mustDeclare(f, ""), mustDeclare(f, "percentiles: false\n")}
	job, err := Engine{}.Command(spec("", true))
	if err != nil {
		f.Fatal(err)
	}
	declared = append(declared, job.Declared)
	f.Fuzz(func(t *testing.T, data []byte, which int) {
		d := declared[uint(which)%3]
		var sink workloadtest.Recorder
		out, err := Engine{}.Parse(d, bytes.NewReader(data), &sink)
		if out.Reports != len(sink.Reports) || err == nil && out.Reports == 0 {
			t.Fatalf("%d reports, %+v, %v", len(sink.Reports), out, err)
		}
		var last workload.Report
		for i, r := range sink.Reports {
			if i > 0 && r.Elapsed <= last.Elapsed || r.Ops.Total() < last.Ops.Total() || last.Final ||
				i > 0 && (r.Ops[0].Seconds < last.Ops[0].Seconds || r.Errors < last.Errors) ||
				len(r.Values) != len(d.Measures) {
				t.Fatalf("%+v after %+v", r, last)
			}
			last = r
		}
	})
}
