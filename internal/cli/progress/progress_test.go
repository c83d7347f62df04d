package progress

import (
	"bytes"

	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/record"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
)

func rows() []record.LiveRow {
	blocks := result.BlockOperations()
	return []record.LiveRow{
		{Workload: "OLTP", VMs: 1, Ops: 120_000,
			Rates: []record.LiveRate{{Operation: blocks[0], PerSecond: 1800, BytesPerSecond: 18 << 20},
				{Operation: blocks[1], PerSecond: 2200, BytesPerSecond: 13 << 20}},
			Mean: 412 * time.Microsecond, P50: 400 * time.Microsecond, P99: 2 * time.Millisecond},
		{Workload: "DSS_prefill", VMs: 2, Silent: 1, Prefill: true,
			Rates: []record.LiveRate{{Operation: blocks[1], BytesPerSecond: 1 << 30}}, Errors: 3},
		{Workload: "TPROC-C", VMs: 1, Ops: 9,
			Rates: []record.LiveRate{{Operation: result.Operation{Name: "tx", Noun: "transactions"}, PerSecond: 812}}},
		{Workload: "Probe", VMs: 1, Values: []record.LiveValue{{Measure: result.Measure{Name: "NOPM", Unit: "NOPM"},
			Value: 5100}}},
		{Workload: "New", VMs: 1}, // has reported nothing yet
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	width := 80
	s := &screen{w: &out, now: time.Now, size: func() (int, int, bool) { return width, 24, true }}
	m := moment{step: 3, steps: 9, phase: "run", text: "run workload \"OLTP\" on group \"OLTP\" for 7.2 s, without " +
		"waiting for anything", elapsed: 30 * time.Second, takes: time.Minute, rows: rows()}
	s.show(m)
	first := out.String()
	for _, want := range []string{"step 3/9  run", "[#", "30 s gone, about 30 s left", "OLTP", "1,800", "412 µs", "DSS (prefill) [1 silent]", "New                         1                             -"} {
		if !strings.Contains(first, want) {
			t.Errorf("the block lacks %q:\n%s", want, first)
		}
	}
	for line := range strings.SplitSeq(first, "\n") {
		if n := len([]rune(line)); n >= width {
			t.Errorf("a line of %d columns does not fit %d: %q", n, width, line)
		}
	}
	lines := strings.Count(first, "\n")
	out.Reset()
	s.say("warning: \x1b[2Jdisk")
	if want := fmt.Sprintf("\x1b[%dA\r\x1b[Jwarning: \\u001b[2Jdisk\n", lines); out.String() != want {
		t.Errorf("a line over the block prints %q, want %q", out.String(), want)
	}
	s.show(m)
	out.Reset()
	width = 30 // the user makes the window narrower: rows are torn, and all of them are cleared
	s.clear()
	var up int
	if _, err := fmt.Sscanf(out.String(), "\x1b[%dA", &up); err != nil || up <= lines {
		t.Errorf("after narrowing it clears %d rows (%v), the block has %d lines of up to 79 columns", up, err, lines)
	}
}

// TestTimesOfTheReport: from the run phase on lines carry the time that charts and findings count, beside the clock's.
func TestTimesOfTheReport(t *testing.T) {
	var out bytes.Buffer
	start := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	now := start
	w := New(&out, func() time.Time { return now }, func() time.Time { return now }, &plan.Plan{})
	tell := func(after time.Duration, phase, kind, text string) {
		now = start.Add(after)
		w.Event(result.Event{Time: now, Phase: phase, Kind: kind, Text: text})
	}
	tell(0, "setup", result.KindAnnotation, "made")
	tell(3*time.Minute+45*time.Second, "run", result.KindPhase, "")
	tell(40*time.Minute, "run", result.KindFault, "node 1 lost power")
	tell(2*time.Hour, "teardown", result.KindWarning, "slow")
	w.Event(result.Event{Phase: "run", Step: 7, Kind: result.KindStepEnd, Name: "workload.Start",
		Error: "run: step 7 (workload.Start): workload a on __curie_test_17_Load_0000: no space left on device"})
	want := "20:45:00 annotation: made\n21:25:00 +36:15 fault: node 1 lost power\n22:45:00 +1:56:15 warning: slow\n" +
		"22:45:00 +1:56:15 step 7 failed: workload a on Load_0000: no space left on device\n"
	if out.String() != want {
		t.Errorf("it prints\n%swant\n%s", out.String(), want)
	}
}

func TestProgressElsewhere(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	s := newScreen(&out, func() time.Time { return now }, func() time.Time { return now })
	m := moment{step: 3, steps: 9, elapsed: 30 * time.Second, takes: 20 * time.Second, rows: rows()}
	s.show(m)
	if out.Len() > 0 {
		t.Errorf("it talks at once: %q", out.String())
	}
	now = now.Add(calm)
	s.show(m)
	want := "20:45:15 step 3/9, 30 s gone; OLTP: read 1,800, write 2,200 IOPS, mean 412 µs, p50 400 µs, p99 2 ms; DSS (prefill) [1 silent]: 0 operations/s, mean -, 3 errors; TPROC-C: 812 transactions/s, mean -; Probe: 5,100 NOPM, mean -; New: -, mean -\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// What the workloads do is asked for only when it is about to be shown: it is dear at thousands of VMs.
func TestProgressAsksWhenDue(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	w := New(&out, clock, clock, &plan.Plan{})
	asked := 0
	for range 40 {
		now = now.Add(time.Second)
		w.Progress(run.Progress{Step: plan.Step{Number: 3}, Steps: 9, Rows: func() []record.LiveRow {
			asked++
			return rows()
		}})
	}
	if lines := strings.Count(out.String(), "OLTP: read 1,800, write 2,200 IOPS"); asked != 2 || lines != 2 {
		t.Errorf("asked %d times, shown %d times in 40 s", asked, lines)
	}
}

// Progress is not sure of what nothing can say.
func TestTimesOfAMoment(t *testing.T) {
	m := moment{elapsed: 30 * time.Second, takes: time.Minute}
	sure := m.times()
	m.step, m.late = 3, 20*time.Second // the platform is away, say
	late := m.times()
	m.unknown = true
	want := []string{"30 s gone, about 30 s left", "30 s gone, at least 30 s left: step 3 takes 20 s longer than expected",
		"30 s gone, how long it takes cannot be said"}
	if diff := cmp.Diff(want, []string{sure, late, m.times()}); diff != "" {
		t.Error(diff)
	}
}

// A small rate is no 0, and what is done less than once in a while is counted.
func TestRatesOfSlowOperations(t *testing.T) {
	t.Parallel()
	query, read := result.Operation{Name: "query", Noun: "queries"}, result.BlockOperations()[0]
	refresh := result.Operation{Name: "refresh", Noun: "refreshes"}
	check := result.Operation{Name: "check", Noun: "checks"}
	for want, row := range map[string]record.LiveRow{
		"-":                            {Rates: []record.LiveRate{{Operation: query}}},
		"0 operations/s, 1,234 so far": {Ops: 1234, Rates: []record.LiveRate{{Operation: query}}},
		"0 operations/s":               {Errors: 3, Rates: []record.LiveRate{{Operation: query}}},
		"0.33 queries/s":               {Ops: 1, Rates: []record.LiveRate{{Operation: query, PerSecond: 1. / 3}}},
		"read 9.4 IOPS":                {Ops: 1, Rates: []record.LiveRate{{Operation: read, PerSecond: 9.44}}},
		"10 queries/s":                 {Ops: 1, Rates: []record.LiveRate{{Operation: query, PerSecond: 9.5}}},
		"1.5 operations/s": {Ops: 1, Rates: []record.LiveRate{{Operation: query, PerSecond: 0.5},
			{Operation: refresh, PerSecond: 0.5}, {Operation: check, PerSecond: 0.5}}},
	} {
		if got := rates(row); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
