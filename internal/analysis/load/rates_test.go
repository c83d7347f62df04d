package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// nothing is a run of which nothing is known.
var nothing = view.New(result.Manifest{}, &result.Data{})

// t0 is when the workloads of these tests begin.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Many windows below the rate are counted, with the worst of them; few are named.
func TestWindowsBelowTheRate(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	words := func(rates ...uint64) string {
		w := result.Workload{}
		for i, r := range rates {
			from := start.Add(time.Duration(i) * 100 * time.Second)
			w.Windows = append(w.Windows, result.Window{
				Name: fmt.Sprint(
					"w",
					i,
				), Start: from, End: from.Add(100 * time.Second), Ops: []result.OpTotals{{Op: "read", Count: r * 100}},
			})
		}
		_, missed := windowRates(nothing, &view.Load{Merged: &w}, 1000)
		return missed
	}
	got := []string{words(1000, 1000), words(1000, 500), words(400, 500), words(1000, 500, 400, 600)}
	want := []string{
		"",
		" w1 (50 %)",
		" in any phase: w0 (40 %), w1 (50 %)",
		" in 3 of its 4 phases, lowest w2 (40 %)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A window below the rate is named with the faults in force, whatever was marked last before it.
func TestWindowsBelowTheRateUnderFaults(t *testing.T) {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	fault := func(s int, state, text string) result.Mark {
		return result.Mark{Time: at(s), Kind: result.KindFault, State: state, Node: "node-0", Text: text, Ends: "slow"}
	}
	v := view.New(result.Manifest{}, &result.Data{Start: t0, End: at(300), Events: []result.Mark{
		fault(100, result.FaultBegins, "slow"), fault(108, result.FaultOver, "fast again")}})
	w := result.Workload{}
	for i, name := range []string{"alone", `alone, after "fast again"`} {
		w.Windows = append(w.Windows, result.Window{Name: name, Start: at(104 * i), End: at(104 + 76*i),
			Ops: []result.OpTotals{{Op: "read", Count: uint64(104000 - 40000*i)}}})
	}
	w.Windows[1].After = "fast again"
	_, missed := windowRates(v, &view.Load{Merged: &w}, 1000)
	if want := ` alone, after "fast again", in part under "slow" (84.2 %)`; missed != want {
		t.Errorf("%q, want %q", missed, want)
	}
}

// VMs that ended early are those that were lost or failed; one that began late, or ended as planned, did not.
func TestEndedEarly(t *testing.T) {
	part := func(from, to int, ended result.Ending) *result.Workload {
		at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
		return &result.Workload{VM: "vm", Start: at(from), End: at(to), Ended: ended}
	}
	for name, c := range map[string]struct {
		parts []*result.Workload
		want  int
	}{
		"late starters": {[]*result.Workload{part(0, 1000, "finished"), part(300, 1000, "stopped"), part(600, 1000,
			"finished")}, 0},
		"planned ends": {[]*result.Workload{part(0, 1000, "finished"), part(0, 500, "finished")}, 0},
		"lost": {[]*result.Workload{part(0, 1000, "finished"), part(300, 985, "lost"), part(0, 995, "lost"),
			part(0, 1, "failed")}, 2},
		"none came far": {[]*result.Workload{part(0, 10, "lost"), part(0, 10, "lost")}, 0},
	} {
		if got := endedEarly(&view.Load{Parts: c.parts}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Little's law asks of a VM what its sections still had to do, and says nothing of a handful of operations.
func TestLittleCountsWhatWasStillToDo(t *testing.T) {
	stream := func(depth int, worked float64) result.Stream {
		return result.Stream{Depth: depth, Reads: true, Brief: true, Worked: worked}
	}
	// A VM that worked for so many seconds and kept so many operations outstanding on average.
	part := func(seconds, kept float64, n uint64, streams ...result.Stream) *view.Load {
		h := &hist.Histogram{}
		h.Add(uint64(kept*seconds/float64(n)*1e9), n)
		return &view.Load{
			Name: "W",
			Parts: []*result.Workload{
				{Name: "W", VM: "a", Start: t0, End: t0.Add(time.Duration(seconds * float64(time.Second))),
					Streams: streams, Operations: result.BlockOperations(), Ops: []result.OpTotals{{Op: "read",
						Count:   n,
						Seconds: kept * seconds, Hist: h}}},
			},
		}
	}
	for name, c := range map[string]struct {
		l    *view.Load
		want string
	}{
		"small ones end first": {part(100, 10, 1e6, stream(16, 10), stream(16, 50)),
			"passed: (lower is expected: not all its sections ran all the time)"},
		"short of what was left": {part(100, 5, 1e6, stream(16, 10), stream(16, 50)),
			"warning: though its job asks for 9.6 on average, by what its sections still had to do"},
		"not known for how long": {part(100, 1, 1e6, stream(16, 0), stream(16, 0)),
			"passed: (lower is expected: its sections may pause or end before others)"},
		"each worked to the end": {part(100, 31, 1e6, stream(16, 100), stream(16, 99.5)),
			"passed: queue depth 32. Throughput and service time agree"},
		"all work all the time": {part(100, 5, 1e6, result.Stream{Depth: 16, Reads: true}),
			"warning: though its job asks for 16 at all times"},
		"more than can be": {part(100, 40, 1e6, stream(16, 10), stream(16, 50)),
			"invalid: but its job allows at most 32"},
		"twelve operations in 300 ms":   {part(0.3, 0.04, 12, result.Stream{Depth: 16, Reads: true}), ""},
		"a long wait for few":           {part(30, 1, 12, result.Stream{Depth: 16, Reads: true}), ""},
		"hardly longer than operations": {part(2, 10, 100, result.Stream{Depth: 16, Reads: true}), ""},
	} {
		f, ok := littleOf(nothing, c.l)
		severity, words, _ := strings.Cut(c.want, ": ")
		if ok != (c.want != "") || ok && (string(f.Severity) != severity || !strings.Contains(f.Sentence, words)) {
			t.Errorf("%s: %s: %q, want %q", name, f.Severity, f.Sentence, c.want)
		}
	}
}

// A VM without an interval, since it left one report or none, was offered nothing that it could have missed.
func TestOfferedRateWithoutInterval(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	vm := func(length time.Duration, count uint64) *result.Workload {
		return &result.Workload{
			Start: began, End: began.Add(length), Streams: []result.Stream{{Name: "w", Rate: 100}},
			Ops: []result.OpTotals{{Op: "write", Count: count}},
		}
	}
	alone, ok := offeredOf(nothing, &view.Load{Name: "W", Parts: []*result.Workload{vm(10*time.Second, 1000)}})
	if !ok || alone.Severity != result.Passed {
		t.Fatalf("%+v", alone)
	}
	for _, count := range []uint64{0, 50} {
		beside, _ := offeredOf(nothing, &view.Load{Name: "W", Parts: []*result.Workload{vm(0, count),
			vm(10*time.Second, 1000)}})
		beside.Basis = alone.Basis // it counts the VMs
		if diff := cmp.Diff(alone, beside); diff != "" {
			t.Errorf("beside one with %d operations (-alone +beside):\n%s", count, diff)
		}
	}
	if f, ok := offeredOf(nothing, &view.Load{Name: "W", Parts: []*result.Workload{vm(0, 0)}}); ok {
		t.Errorf("of no interval at all: %+v", f)
	}
}

// What was due and never sent is said where no rate was declared, in the words of its tool.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		measure result.Measure
		value   float64
		want    string
	}{
		{result.Measure{Name: "skipped", Unit: "transactions", Kind: result.Count}, 250, "warning: W: 250 of 1,250 " +
			"transactions (20 %) that were due were never sent"},
		{result.Measure{Name: "skipped", Unit: "transactions/s", Kind: result.Level}, 25, "warning: W: 250 of 1,250"},
		{result.Measure{Name: "skipped", Unit: "transactions", Kind: result.Count}, 5, "info: W: 5 of 1,005 "},
		{result.Measure{Name: "dropped_iterations", Unit: "iterations", Kind: result.Count}, 7,
			"warning: W: 7 iterations that"},
		{result.Measure{Name: "skipped", Unit: "transactions", Kind: result.Count}, 0, ""},
		{result.Measure{Name: "late", Unit: "transactions", Kind: result.Count}, 7, ""},
		{result.Measure{Name: "schedule_lag_mean", Unit: "ms", Kind: result.Single}, 3000,
			"warning: W: its transactions began 3 s late on average by the schedule of the rate that was asked for, and 6 s at most, in 10 s: it fell behind that rate"},
		{result.Measure{Name: "schedule_lag_mean", Unit: "ms", Kind: result.Single}, 190, ""},
	} {
		w := &result.Workload{Name: "W", Start: began, End: began.Add(10 * time.Second),
			Operations: []result.Operation{{Name: "transaction", Noun: "transactions"}},
			Measures:   []result.Measure{c.measure}, Ops: []result.OpTotals{{Op: "transaction", Count: 1000}},
			Values: []result.Value{{Measure: c.measure.Name, Value: c.value},
				{Measure: "schedule_lag_max", Value: 6000}}}
		f, ok := offeredOf(nothing, &view.Load{Name: "W", Parts: []*result.Workload{w}})
		got := string(f.Severity) + ": " + f.Sentence
		if ok != (c.want != "") || ok && !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %v: %q, want %q", c.measure.Name, c.value, got, c.want)
		}
	}
}

// The rates of VMs that worked for unlike times, or not at one time, are no rate of the load: the sum says so.
func TestLittleOfUnlikeTimes(t *testing.T) {
	part := func(vm string, from, seconds int) *result.Workload {
		n := uint64(100 * seconds)
		return &result.Workload{VM: vm, Start: t0.Add(time.Duration(from) * time.Second),
			End: t0.Add(time.Duration(from+seconds) * time.Second), Streams: []result.Stream{{Depth: 1}},
			Ops: []result.OpTotals{{Op: "read", Count: n, Seconds: float64(n) / 100}}}
	}
	each := ", each of its VMs while it worked"
	for _, c := range []struct {
		from, seconds int
		while         string
	}{{0, 20, ""}, {1, 20, ""}, {0, 10, each}, {8, 20, each}} {
		want := "A had 2 operations in flight on average" + c.while + " (200 per second × 10 ms); queue depth 2."
		l := &view.Load{Name: "A", Merged: part("", 0, 20),
			Parts: []*result.Workload{part("a", 0, 20), part("b", c.from, c.seconds)}}
		if f, ok := littleOf(nothing, l); !ok || !strings.HasPrefix(f.Sentence, want) {
			t.Errorf("%+v: %q, want %q", c, f.Sentence, want)
		}
	}
}

// Of several VMs of which one had more in flight than its job allows, that one is told, not a sum that is within it.
func TestLittleOfOneVM(t *testing.T) {
	part := func(vm string, service float64) *result.Workload {
		return &result.Workload{VM: vm, Start: t0, End: t0.Add(20 * time.Second), Streams: []result.Stream{{Depth: 4}},
			Ops: []result.OpTotals{{Op: "read", Count: 2000, Seconds: 2000 * service}}}
	}
	want := "A had 7.6 operations in flight on average (200 per second × 38 ms), on b up to 4.4, where its job allows at " +
		"most 4: there throughput and service time cannot both be right (Little's law)."
	l := &view.Load{Name: "A", Merged: part("", 0.04), Parts: []*result.Workload{part("a", 0.032), part("b", 0.044)}}
	if f, ok := littleOf(nothing, l); !ok || f.Sentence != want || f.Severity != result.Invalid {
		t.Errorf("%q, want %q", f.Sentence, want)
	}
}
