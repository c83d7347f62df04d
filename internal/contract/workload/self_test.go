package workload_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/result"
)

var declared = workload.Declared{Operations: []result.Operation{{Name: "write", Noun: "writes", Bytes: true}},
	Measures: []result.Measure{{Name: "late", Unit: "arrivals", Kind: result.Count}}}

const states = `{"elapsed_ns":1000000000,"operations":[{"bytes":2097152,"times":{"min":5,"max":9,"sum":14,` +
	`"buckets":[5,1,4,1]}}],"values":[2],"cpu_seconds":0.5}
{"elapsed_ns":2000000000,"operations":[{"bytes":3145728,"times":{"min":5,"max":9,"sum":23,"buckets":[5,1,4,2]}}],` +
	`"values":[null],"errors":1,"cpu_seconds":1,"final":true}
`

// A state that counts less than the one before is left out and said, in whatever part.
func TestStatesThatGoBack(t *testing.T) {
	first, _, _ := strings.Cut(states, "\n")
	for _, change := range []string{`"elapsed_ns":2`, `"bytes":1`, `"errors":-1`, `"sum":8`, `"times":null`,
		`"values":[]`} {
		member, _, _ := strings.Cut(change, ":")
		at := strings.LastIndex(states, member+":")
		end := at + strings.IndexAny(states[at:], ",}")
		if member == `"values"` || member == `"times"` {
			end = at + strings.Index(states[at:], "]") + 1
			if member == `"times"` {
				end = at + strings.Index(states[at:], "}") + 1
			}
		}
		var sink workloadtest.Recorder
		text := first + "\n" + states[len(first)+1:at] + change + states[end:]
		out, err := workload.ReplaySelf(declared, strings.NewReader(text), &sink, "test")
		if err != nil || len(sink.Reports) != 1 || len(sink.Warnings) == 0 && out.Message == "" {
			t.Errorf("%s: %v, %+v, %+v", change, err, out, &sink)
		}
	}
}

// A state is as old as it says after the moment at which its job began, where it tells that.
func TestTimesOfStates(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for text, want := range map[string][]time.Time{
		states: {{}, {}},
		strings.ReplaceAll(states, `{"elapsed_ns"`, `{"began":"2026-01-02T04:04:05.0000006+01:00","elapsed_ns"`): {
			began.Add(time.Second), began.Add(2 * time.Second)},
	} {
		var sink workloadtest.Recorder
		if _, err := workload.ReplaySelf(declared, strings.NewReader(text), &sink, "test"); err != nil {
			t.Fatal(err)
		}
		var got []time.Time
		for _, r := range sink.Reports {
			got = append(got, r.Time)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Whatever is printed, counters only grow, and how it is cut into pieces changes nothing.
func FuzzStates(f *testing.F) {
	f.Add([]byte(states), 7)
	f.Add([]byte(states+states), 300)
	f.Add([]byte("a word\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		var whole, cut workloadtest.Recorder
		_, err := workload.ReplaySelf(declared, bytes.NewReader(data), &whole, "test")
		if (err != nil) != (len(whole.Reports) == 0) {
			t.Errorf("%d reports, %v", len(whole.Reports), err)
		}
		before := workload.Report{Ops: make(workload.Counts, 1)}
		for _, r := range whole.Reports {
			if now, was := r.Ops[0], before.Ops[0]; now.Bytes < was.Bytes || now.Seconds < was.Seconds ||
				now.Ops < was.Ops || r.Elapsed <= before.Elapsed || r.Errors < before.Errors {
				t.Fatalf("%+v after %+v", r, before)
			}
			before = r
		}
		p := workload.NewStateParser(declared, &cut, "test")
		n := min(max(at, 0), len(data))
		p.Feed(data[:n])
		p.Feed(data[n:])
		_, _ = p.Finish() // its error was looked at above
		if diff := cmp.Diff(whole.Reports, cut.Reports, cmp.Comparer(func(a, b float64) bool {
			return a == b || a != a && b != b
		})); diff != "" {
			t.Error(diff)
		}
	})
}
