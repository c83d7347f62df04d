package analysis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// shift is one VM's time at work in seconds, from and to several times; it does 1000 operations a second.
type shift struct {
	times []int
	ended result.Ending
}

// event is a fault of a scripted run.
type event struct {
	second int
	text   string
}

// shifts is the run of workload W on these VMs, each offered 1000 operations a second, judged by the spans given.
func shifts(op result.Operation, vms []shift, spans []int, faults ...event) *result.Data {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	end := 0
	for _, s := range vms {
		end = max(end, slices.Max(s.times))
	}
	rate := make([]float64, end)
	merged := result.Workload{
		Name:       "W",
		Group:      "G",
		Phase:      "run",
		Node:       -1,
		Start:      at(end),
		Ended:      "finished",
		Latency:    "service time",
		Operations: []result.Operation{op},
	}
	d := &result.Data{Start: t0, End: at(end)}
	total := func(n, from, to int) result.OpTotals {
		h := &hist.Histogram{}
		h.Add(1e6, uint64(1000*n*(to-from)))
		return result.OpTotals{Op: op.Name, Count: h.Count(), Seconds: float64(h.Count()) * 1e-3, Hist: h}
	}
	for i, s := range vms {
		w := merged
		w.VM, w.Node, w.Ended, w.Start, w.Streams = string(rune('a'+i)), i, s.ended, at(s.times[0]), []result.Stream{
			{Depth: 4, Rate: 1000, Reads: true},
		}
		var all []result.OpTotals
		for k := 0; k < len(s.times); k += 2 {
			from, to := s.times[k], s.times[k+1]
			all = view.MergeOps(all, []result.OpTotals{total(1, from, to)})
			w.Spans, w.End = append(w.Spans, result.Span{Start: at(from), End: at(to)}), at(to)
			for t := from; t < to; t++ {
				rate[t] += 1000
			}
		}
		if w.Ops = all; len(w.Spans) == 1 {
			w.Spans = nil
		}
		if merged.End = view.Later(merged.End, w.End); w.Start.Before(merged.Start) {
			merged.Start = w.Start
		}
		if s.ended == "lost" {
			merged.Ended = "lost"
		}
		merged.Ops = view.MergeOps(merged.Ops, all)
		d.Workloads = append(d.Workloads, w)
	}
	merged.Staggered, merged.InSpans = true, &result.Totals{}
	for k := 0; k < len(spans); k += 2 {
		merged.Spans = append(merged.Spans, result.Span{Start: at(spans[k]), End: at(spans[k+1])})
		for t := spans[k]; t < spans[k+1]; t++ {
			merged.InSpans.Ops = view.MergeOps(merged.InSpans.Ops, []result.OpTotals{total(int(rate[t]/1000), t, t+1)})
		}
	}
	d.Workloads = append(d.Workloads, merged)
	s := result.Series{
		Name:     "W",
		Op:       op.Name,
		Measure:  result.Rate,
		Workload: "W",
		Group:    "G",
		Start:    at(1),
		Step:     1,
		Unit:     op.RateUnit(),
	}
	for t := range rate {
		if rate[t] > 0 {
			s.Values = append(s.Values, &rate[t])
		} else {
			s.Values = append(s.Values, nil)
		}
	}
	d.Series = append(d.Series, s)
	for _, f := range faults {
		d.Events = append(d.Events, result.Mark{Time: at(f.second), Kind: result.KindFault, Text: f.text})
	}
	return d
}

// said are the sentences of some checks, without what is the same in all.
func said(d *result.Data, checks ...string) (out []string) {
	for _, f := range Run(result.Manifest{}, d) {
		if slices.Contains(checks, f.Check) {
			out = append(out, strings.TrimSuffix(f.Sentence, "; no errors reported."))
		}
	}
	return out
}

// A workload whose VMs start one after the other, of whatever kind its operations are, is judged by the time in which
// all ran, and every fault by what it did itself.
func TestStaggeredStarts(t *testing.T) {
	reads, orders := result.BlockOperations()[0], result.Operation{Name: "order", Noun: "orders"}
	finished := result.Finished
	four := func(times ...int) (out []shift) { // start at 0, 60, 120, 180 and end after 900 or as given
		for i := range 4 {
			s := shift{[]int{60 * i, 60*i + 900}, finished}
			if i < len(times) && times[i] > 0 {
				s = shift{[]int{60 * i, times[i]}, "lost"}
			}
			out = append(out, s)
		}
		return out
	}
	for name, c := range map[string]struct {
		d    *result.Data
		want []string
	}{
		"nothing happens": {shifts(reads, four(), []int{180, 900}), []string{
			"W ended as planned on 4 VMs.",
			"W: 4,000 IOPS target, 4,000 achieved (100 %): target rate met (within 1 %).",
			"W was steady: while all its VMs ran 4,000 IOPS (95 %: 4,000 to 4,000)."}},
		"all are stopped at once": {shifts(orders, []shift{{[]int{0, 600}, "stopped"}, {[]int{100, 600}, "stopped"},
			{[]int{200, 600}, "stopped"}}, []int{200, 600}),
			[]string{"W ended as planned on 3 VMs.",
				"W: 3,000 orders/s target, 3,000 achieved (100 %): target rate met (within 1 %).",
				"W was steady: while all its VMs ran 3,000 orders/s (95 %: 3,000 to 3,000)."}},
		"one is lost": {shifts(orders, four(0, 0, 0, 400), []int{180, 900}, event{400, "cut"}), []string{
			`After "cut" at 6:40: G was not back at 90 % of its former 4,000 orders/s by 15:00 (as a whole it never stopped; lowest 3,000 orders/s)`,
			"W: 4,000 orders/s target, 3,306 achieved (82.6 %): target rate not met: its VMs met it while they ran, but 1 of 4 ended early.",
			"W lost 1 VM of 4 at the fault at 6:40. Totals include what they reported until then.",
			"W was steady: before the fault 4,000 orders/s (95 %: 4,000 to 4,000)."}},
		"one is lost, and no report of it is there": {shifts(reads, []shift{{[]int{0, 900}, finished},
			{[]int{0, 900}, finished}, {[]int{0, 0, 400, 400}, "lost"}}, []int{0, 900}), []string{
			"Whether W met its target rate is inconclusive: 1 of its 3 VMs left no report.",
			"W lost 1 VM of 3 during the run (c). Totals hold nothing of what they did: no report of theirs was collected.",
			"W was steady: while all its VMs were to run 2,000 IOPS (95 %: 2,000 to 2,000)."}},
		"two faults five minutes apart": {shifts(reads, four(0, 0, 600, 300), []int{180, 900}, event{300, "first"},
			event{600, "second"}), []string{
			`After "first" at 5:00: G was not back at 90 % of its former 4,000 IOPS before "second" at 10:00 (as a whole it never stopped; lowest 3,000 IOPS)`,
			`After "second" at 10:00: G was not back at 90 % of its former 3,000 IOPS by 15:00 (as a whole it never stopped; lowest 2,000 IOPS)`,
			"W: 4,000 IOPS target, 2,750 achieved (68.8 %): target rate not met: its VMs met it while they ran, but 2 of 4 ended early.",
			`W lost 1 VM of 4 at "first" at 5:00 and 1 VM at "second" at 10:00. Totals include what they reported until then.`,
			"W was steady: before the fault 4,000 IOPS (95 %: 4,000 to 4,000)."}},
		"two faults eight seconds apart, and one that does nothing": {shifts(reads, four(0, 0, 308, 300), []int{180,
			900}, event{300, "first"}, event{308, "second"}, event{500, "third"}), []string{
			`After "first" at 5:00: G was not back at 90 % of its former 4,000 IOPS before "second" at 5:08 (as a whole it never stopped; lowest 3,000 IOPS)`,
			`After "second" at 5:08: G was not back at 90 % of its former 3,000 IOPS by 15:00 (as a whole it never stopped; lowest 2,000 IOPS)`,
			"W: 4,000 IOPS target, 2,344 achieved (58.6 %): target rate not met: its VMs met it while they ran, but 2 of 4 ended early.",
			`W lost 1 VM of 4 at "first" at 5:00 and 1 VM at "second" at 5:08. Totals include what they reported until then.`,
			"W was steady: before the fault 4,000 IOPS (95 %: 4,000 to 4,000)."}},
		"two at the same moment": {shifts(reads, four(0, 0, 302, 300), []int{180, 900}, event{300, "first"}, event{302,
			"second"}), []string{
			`After "first" and 1 more at 5:00: G was not back at 90 % of its former 4,000 IOPS by 15:00 (as a whole it never stopped; lowest 2,000 IOPS)`,
			"W: 4,000 IOPS target, 2,336 achieved (58.4 %): target rate not met: its VMs met it while they ran, but 2 of 4 ended early.",
			`W lost 1 VM of 4 at "first" at 5:00 and 1 VM at "second" at 5:02. Totals include what they reported until then.`,
			"W was steady: before the fault 4,000 IOPS (95 %: 4,000 to 4,000)."}},
		"before all had begun": {shifts(reads, four(90), []int{180, 960}, event{90, "early"}), []string{
			`After "early" at 1:30: G was not back at 90 % of its former 2,000 IOPS by 2:00 (as a whole it never stopped; lowest 1,000 IOPS)`,
			"W: 4,000 IOPS target, 3,000 achieved (75 %): target rate not met: its VMs met it while they ran, but 1 of 4 ended early.",
			"W lost 1 VM of 4 at the fault at 1:30. Totals include what they reported until then.",
			"W was steady: while all its VMs were to run 3,000 IOPS (95 %: 3,000 to 3,000)."}},
		"all lost, and started once more": {shifts(reads, []shift{{[]int{0, 300, 400, 700}, "lost"}, {[]int{60, 300,
			410, 710}, "lost"}}, []int{60, 300, 410, 700}, event{300, "dark"}, event{310, "power on"}), []string{
			`After "dark" at 5:00: G was back at 90 % of its former 2,000 IOPS after 1 min 51 s (first I/O after 1 min 41 s)`,
			"W: 2,000 IOPS target, 2,000 achieved (100 %): target rate met (within 1 %).",
			"W lost 2 VMs of 2 at the fault at 5:00. Totals include what they reported until then.",
			"W was steady: in start 1 2,000 IOPS (95 %: 2,000 to 2,000)."}},
		"started twice, in peace": {shifts(reads, []shift{{[]int{0, 100, 300, 400}, finished}}, []int{0, 100, 300,
			400}), []string{
			"W ended as planned on 1 VM.",
			"W: 1,000 IOPS target, 1,000 achieved (100 %): target rate met (within 1 %).",
			"W was steady: in start 1 1,000 IOPS (95 %: 1,000 to 1,000); in start 2 1,000 IOPS (95 %: 1,000 to 1,000)."}},
	} {
		got := said(c.d, "recovery", "lost", "offered-rate", "steady-state")
		slices.Sort(got) // they come by severity
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// What was completed, and for how long it was measured, are of the same time.
func TestCompletedInTheJudgedTime(t *testing.T) {
	d := shifts(result.Operation{Name: "order", Noun: "orders"},
		[]shift{{[]int{0, 100, 300, 400}, "finished"}, {[]int{20, 120, 300, 400}, "finished"}},
		[]int{20, 100, 300, 400})
	d.Workloads[2].Starts = 2
	want := []string{
		"W was measured for 3 min (while all its VMs ran, without the pauses between its starts) and completed 360,000 orders.",
	}
	if diff := cmp.Diff(want, said(d, "too-short")); diff != "" {
		t.Error(diff)
	}
}
