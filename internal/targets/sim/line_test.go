package sim

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// inOrder is where reads, writes and trims are among result.BlockOperations().
var inOrder = workload.BlockIndexes(result.BlockOperations())

func example() workload.Report {
	var h hist.Histogram
	h.Add(100_000, 5)
	h.Add(250_000, 2)
	return workload.Report{
		Time: Start.Add(1500 * time.Millisecond), Elapsed: 1500 * time.Millisecond, CPUSeconds: 0.25, Errors: 3,
		Final: true,
		Ops: workload.Counts{{Ops: 7, Bytes: 7 << 13, Seconds: 1e-3, Hist: &h},
			{Ops: 2, Bytes: 2 << 13, Seconds: 2.5e-4}, {Ops: 1, Bytes: 4096, Seconds: 1}},
	}
}

// What is written is JSON, and reads back the same both ways.
func TestLines(t *testing.T) {
	apart := example()
	apart.Sections = []workload.Counts{{apart.Ops[0], {}, apart.Ops[2]}, {{}, {}, {}}, {{}, apart.Ops[1], {}}}
	for name, r := range map[string]workload.Report{"full": example(),
		"bare": {Time: Start, Ops: make(workload.Counts, 3)}, "sections": apart} {
		text := appendLine(nil, r, inOrder)
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		quick, ok := quickLine(text[:len(text)-1], 3, inOrder)
		slow, fine := parseLine(append([]byte(" "), text...), 3, inOrder)
		if !ok || !fine {
			t.Fatalf("%s: quick %t, slow %t: %s", name, ok, fine, text)
		}
		if diff := cmp.Diff(r, quick) + cmp.Diff(r, slow); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Whatever the quick reader takes, encoding/json reads the same.
func FuzzLine(f *testing.F) {
	text := appendLine(nil, example(), inOrder)
	f.Add(string(text[:len(text)-1]))
	f.Add(`{"time":"2026-01-01T00:00:00Z","elapsed_ns":0}`)
	f.Add(`{"time":"2026-01-01T00:00:00Z","elapsed_ns":0,"sections":[{"lane":0},{"lane":1,"read":{"ops":1,"bytes":1,"service_seconds":1}}]}`)
	f.Add(`{"time":"2026-01-01T00:00:00Z","elapsed_ns":1,"read":{"ops":1,"bytes":1,"service_seconds":NaN}}`)
	f.Fuzz(func(t *testing.T, text string) {
		quick, ok := quickLine([]byte(text), 3, inOrder)
		if !ok || !json.Valid([]byte(text)) {
			return
		}
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("only the quick reader takes it: %v", err)
		}
		if len(l.Sections) != len(quick.Sections) || l.Elapsed != int64(quick.Elapsed) || l.Errors != quick.Errors ||
			l.CPU != quick.CPUSeconds || !l.Time.Equal(quick.Time) {
			t.Errorf("%+v and %+v", l, quick)
		}
	})
}

func BenchmarkLine(b *testing.B) {
	r := example()
	text := appendLine(nil, r, inOrder)
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			text = appendLine(text[:0], r, inOrder)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, ok := quickLine(text[:len(text)-1], 3, inOrder); !ok {
				b.Fatal("not read")
			}
		}
	})
}
