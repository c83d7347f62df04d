package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/workloadtest"
)

const paced = `
command: [pace]
operations: [{name: a, noun: as, bytes: true}]
measures: [{name: n, unit: x, kind: count}]
output:
  format: lines
  records:
    - {match: '^(?P<t>-?[0-9.]+) s: (?P<r>\S+)/s', elapsed: {field: t, unit: s}, operations: {a: {rate: r, mean: {value: 2, unit: ms}}}}
    - {match: '^  bytes (?P<b>\S+)', operations: {a: {delta: {value: 0}, bytes: {delta: b}}}, measures: {n: b}}
    - {match: '^all (?P<n>[0-9.]+)', final: true, operations: {a: {count: n}}}
    - {match: '^took (?P<t>[0-9.]+) s', final: true, elapsed: {field: t, unit: s}}
    - {match: '^<= (?P<ms>[0-9.]+): (?P<n>\d+)', histogram: {operation: a, upto: {field: ms, unit: ms}, count: n}}
`

// What output says, moment by moment, and what is repaired on the way.
func TestMoments(t *testing.T) {
	t.Parallel()
	const unmatched = "warning: pace output: record "
	for _, c := range []struct{ name, output, want string }{
		{"lines of one moment are one report", "1 s: 10/s\n1 s: 5/s\n  bytes 100\n2 s: 10/s\n", `
			1s errors=0 | a: 15 in 0.03 s, 100 bytes | n = 100 x
			2s errors=0 | a: 25 in 0.05 s, 100 bytes | n = NaN x
			2 reports, 0 errors, error: <nil>`},
		{"a rate holds since the moment before, however long that was", "2 s: 10/s\n5 s: 1/s\n", `
			2s errors=0 | a: 20 in 0.04 s, 0 bytes | n = NaN x
			5s errors=0 | a: 23 in 0.046 s, 0 bytes | n = NaN x
			2 reports, 0 errors, error: <nil>`},
		{"the summary has what came after the last interval", "1 s: 10/s\nall 14\ntook 1.5 s\n  bytes 7\n<= 2: 14\n", `
			1s errors=0 | a: 10 in 0.02 s, 7 bytes | n = 7 x
			1.5s final errors=0 | a: 14 in 0.02 s, 7 bytes, histogram of 14: p50 2ms p95 2ms | n = NaN x
			2 reports, 0 errors, error: <nil>`},
		{"rates of the last moment that came to too much are corrected", "1 s: 10/s\n2 s: 10.4/s\nall 20\ntook 2 s\n  bytes 1\n<= 2: 20\n", `
			1s errors=0 | a: 10 in 0.02 s, 0 bytes | n = NaN x
			2s final errors=0 | a: 20 in 0.0408 s, 1 bytes, histogram of 20: p50 2ms p95 2ms | n = 1 x
			2 reports, 0 errors, error: <nil>`},
		{"what was reported stays, whatever the summary says", "1 s: 10/s\n2 s: 10/s\nall 7\n", `
			1s errors=0 | a: 10 in 0.02 s, 0 bytes | n = NaN x
			2s final errors=0 | a: 10 in 0.04 s, 0 bytes | n = NaN x
			warning: pace output: its summary says 7 as, less than the 10 before; the larger is kept
			` + unmatched + `2 (line 9 of the file) matched none of 3 lines
			` + unmatched + `4 (line 11 of the file) matched none of 3 lines
			` + unmatched + `5 (line 12 of the file) matched none of 3 lines
			2 reports, 0 errors, error: <nil>`},
		{"a histogram that lacks some is none", "1 s: 10/s\n  bytes 1\nall 12\ntook 2 s\n<= 2: 5\n<= 4: 6\n", `
			1s errors=0 | a: 10 in 0.02 s, 1 bytes | n = 1 x
			2s final errors=0 | a: 12 in 0.02 s, 1 bytes | n = NaN x
			warning: pace output: the histogram of a counts 11 of 12 operations; it is left out
			2 reports, 0 errors, error: <nil>`},
		{"a cut last line is read by final records only", "1 s: 10/s\n2 s: 10/s\n3 s: 1", `
			1s errors=0 | a: 10 in 0.02 s, 0 bytes | n = NaN x
			2s errors=0 | a: 20 in 0.04 s, 0 bytes | n = NaN x
			2 reports, 0 errors, error: <nil>`},
		{"times that go back, numbers that are none, counters that fall", "2 s: 10/s\n1 s: 10/s\n3 s: fast/s\n  bytes 9\n4 s: -1/s\n  bytes 3\n", `
			2s errors=0 | a: 20 in 0.04 s, 0 bytes | n = NaN x
			3s errors=0 | a: 20 in 0.04 s, 9 bytes | n = 9 x
			4s errors=0 | a: 20 in 0.04 s, 12 bytes | n = 9 x
			warning: pace output: record 1: the elapsed time went back from 2s to 1s; what goes with it is left out
			warning: pace output: record 1: "fast" in field r is no number; declare unit: or thousands: for what stands in it besides
			warning: pace output: record 1: field r is negative: -1
			warning: pace output: n, which counts, fell from 9 to 3; the larger is kept
			3 reports, 0 errors, error: <nil>`},
		{"nothing but a summary", "all 3\n", `
			0s final errors=0 | a: 3 in 0 s, 0 bytes | n = NaN x
			` + unmatched + `1 (line 8 of the file) matched none of 1 lines
			` + unmatched + `2 (line 9 of the file) matched none of 1 lines
			` + unmatched + `4 (line 11 of the file) matched none of 1 lines
			` + unmatched + `5 (line 12 of the file) matched none of 1 lines
			1 reports, 0 errors, error: <nil>`},
		{"a line too long for any", "1 s: 10/s" + strings.Repeat(" ", maxLine) + "x\n2 s: 10/s\r\n\r\n", `
			2s errors=0 | a: 20 in 0.04 s, 0 bytes | n = NaN x
			warning: pace output: a line of more than 1048576 bytes was skipped
			1 reports, 0 errors, error: <nil>`},
		{"nothing with a time", "  bytes 5\n", `
			0 reports, 0 errors, error: parse: pace output: 1 of 5 records matched some of 1 lines, but no number with a time could be read from them
			says: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := jobOf(t, "paced.yml", []byte(paced))
			var r workloadtest.Recorder
			outcome, err := Engine{}.Parse(job.Declared, strings.NewReader(c.output), &r)
			got := strings.ReplaceAll(show(job.Declared, &r, outcome, err), "\n  ", " | ")
			want := strings.ReplaceAll(strings.TrimPrefix(c.want, "\n"), "\t", "") + "\n"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			holds(t, job.Declared, r.Reports)
			inPieces(t, job.Declared, []byte(c.output), 3, &r)
		})
	}
}

// A document that is damaged, cut or absent says so.
func TestDamagedDocuments(t *testing.T) {
	t.Parallel()
	job := jobOf(t, "phases.yml", read(t, "testdata", "phases.yml"))
	for output, want := range map[string]string{
		"":                        "phases output: it is empty",
		"phases 1.2\nno table\n":  `0 of 2 records matched any of the document; the first line was "phases 1.2`,
		`{"intervals": [{"end": `: "its JSON cannot be read: unexpected EOF",
		`{"other": 1}`:            "0 of 2 records matched any of the document",
	} {
		var r workloadtest.Recorder
		_, err := Engine{}.Parse(job.Declared, strings.NewReader(output), &r)
		if err == nil || !strings.Contains(err.Error(), want) || len(r.Reports) > 0 {
			t.Errorf("%q: %d reports, error %v, want %q", output, len(r.Reports), err, want)
		}
	}
	job = jobOf(t, "redis-benchmark.yml", read(t, "testdata", "redis-benchmark.yml"))
	_, err := Engine{}.Parse(job.Declared, strings.NewReader("a,b\n1,2\n"), &workloadtest.Recorder{})
	if want := "none of 2 lines has the columns test, rps, p99_latency_ms"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
