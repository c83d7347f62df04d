// Package load asks whether the load was what it was to be, and whether its figures hold together: how long and how
// many, offered and achieved rates, Little's law, what latency is of, failed operations, VMs lost, clocks. It gives
// view.Checks to package analysis. Where an engine did not declare depths or rates it says nothing of them.
package load

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Tolerances of the Little's-law check. Time between a completion and the next submission is no service time, so a
// loop that never pauses stays a little below its depth; above it there is only rounding of the window.
const (
	littleBelow = 0.80 // of the depth of streams without a rate
	littleAbove = 1.05 // of the depth of all streams
)

// LittlesLaw compares throughput × mean service time, which is the mean number of operations in flight
// (Little, Operations Research 9, 1961), with what the job allows.
var LittlesLaw = view.Check{Name: "littles-law", Rank: 230, Run: littlesLaw}

func littlesLaw(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		if !l.Alike() {
			continue // a depth is of transactions, and there may be queries in them
		}
		if f, ok := littleOf(v, l); ok {
			out = append(out, f)
		}
	}
	return out
}

// What a VM must have done for its outstanding operations to be judged: of less, those under way at the beginning and
// at the end, and the time that a generator takes to start, say more than the law.
const (
	littleFewest  = 100 // operations
	littleSeconds = 1   // and so long
	littleTimes   = 20  // and so many times as long as an operation takes
	littleApart   = 0.9 // what VMs at least worked of the longest time to have worked together

	tellHanded = 0.05 // of those in flight
)

func littleOf(v *view.Run, l *view.Load) (result.Finding, bool) {
	var low, high, inFlight, handed, atLeast, atMost, rate, service float64
	var count uint64
	var over, under []string
	var worst, allowed float64 // of those over it, where it is most so
	shortest, longest := math.Inf(1), 0.0
	var first, last time.Time
	interval, why, few := true, "its rate is limited", false
	for _, p := range l.Parts {
		s := view.Seconds(p)
		if inTurn(p.Streams) {
			why = "its " + l.Section() + "s run in turn"
		} else if i := slices.IndexFunc(p.Streams, func(l result.Stream) bool {
			return l.Brief && l.Worked < 0.99*s
		}); i >= 0 && p.Streams[i].Worked > 0 {
			why = "not all its " + l.Section() + "s ran all the time"
		} else if i >= 0 {
			why = "its " + l.Section() + "s may pause or end before others"
		}
		n, sum := view.Totals(p.Ops)
		if n == 0 || s == 0 || sum == 0 {
			continue // said by too-short
		}
		if p.Latency == responseTime {
			continue // those that wait for their turn are in flight, too, and no depth bounds them
		}
		if n < littleFewest || s < max(littleSeconds, littleTimes*sum/float64(n)) {
			few = true
			continue
		}
		_, most := view.Depths(p.Streams)
		least := asked(p)
		here, submitting := sum/s, 0.0
		for _, stream := range p.Streams {
			submitting += stream.Submitting
		}
		switch {
		case most > 0 && here > littleAbove*most:
			over = append(over, view.Subject(p))
			if allowed == 0 || here/most > worst/allowed {
				worst, allowed = here, most
			}
		case here+submitting < littleBelow*least:
			under = append(under, view.Subject(p))
		}
		lo, hi, ok := view.Outstanding(p.Ops, s)
		interval = interval && ok
		low, high, inFlight, handed = low+lo+submitting, high+hi+submitting, inFlight+here, handed+submitting
		atLeast, atMost = atLeast+least, atMost+most
		rate, service, count = rate+float64(n)/s, service+sum, count+n
		shortest, longest = min(shortest, s), max(longest, s)
		if first.IsZero() || p.Start.Before(first) {
			first = p.Start
		}
		if p.End.After(last) {
			last = p.End
		}
	}
	if count == 0 {
		return result.Finding{}, false // said by too-short
	}
	f := result.Finding{
		Check: "littles-law", Subject: l.Name, Metric: "mean operations in flight", Unit: "count", N: int(count),
		Value: view.Ptr(inFlight + handed), Basis: l.Basis(),
		Evidence: []result.Evidence{
			{Name: "throughput", Value: rate, Unit: l.Rate().Unit},
			{Name: "mean service time", Value: service / float64(count), Unit: "s"},
			{Name: "product", Value: inFlight, Unit: "count"},
			{Name: "queue depth of the job", Value: atMost, Unit: "count"},
		},
	}
	if few {
		f.Warnings = append(f.Warnings, "VMs that did too little are left out")
	}
	if interval {
		f.Low, f.High = &low, &high
	} else {
		f.NoInterval = "no latency histogram, so the spread of service times is unknown"
	}
	if atMost == 0 && !l.MovesBlocks() {
		return result.Finding{}, false // its generator does not say
	}
	outstanding := view.SayCount(inFlight) + " operations"
	if outstanding == "1 operations" {
		outstanding = "1 operation"
	}
	while := ""
	if len(l.Parts) > 1 && shortest < littleApart*max(longest, last.Sub(first).Seconds()) {
		while = ", each of its VMs while it worked"
	}
	what := fmt.Sprintf("%s had %s in flight on average%s (%s per second × %s)", l.Name, outstanding, while,
		view.SayCount(rate), view.SayDuration(service/float64(count)))
	if handed > tellHanded*inFlight {
		what += fmt.Sprintf(", and %s more in submission", view.SayCount(handed))
		f.Evidence = append(f.Evidence, result.Evidence{Name: "in submission", Value: handed, Unit: "count"})
	}
	switch {
	case len(over) > 0 && inFlight <= littleAbove*atMost: // not all of its VMs
		f.Severity, f.Value, f.Limit = result.Invalid, &worst, view.Ptr(littleAbove*allowed)
		f.Low, f.High, f.NoInterval = nil, nil, "it is of one VM"
		f.Sentence = fmt.Sprintf("%s, on %s up to %s, where its job allows at most %s: there throughput and service time "+
			"cannot both be right (Little's law).", what, view.Three(over), view.SayCount(worst),
			view.SayCount(allowed))
	case len(over) > 0:
		f.Severity, f.Limit = result.Invalid, view.Ptr(littleAbove*atMost)
		f.Sentence = fmt.Sprintf(
			"%s, but its job allows at most %s. On %s throughput and service time cannot both be right (Little's law).",
			what, view.SayCount(atMost), view.Three(over))
	case atMost == 0:
		f.Severity = result.Info
		f.Sentence = what + ". The queue depth of its job is not known, so this was not checked."
		if n := saidAtOnce(v, l); n > 0 {
			f.Sentence = fmt.Sprintf("%s. By its file %s were at work at once, and nothing says whether more could be, so "+
				"this was not checked.", what, view.SayCount(n))
		}
	case len(under) > 0 && !l.MovesBlocks(): // users think between two requests, which no generator declares
		f.Severity, f.Limit = result.Info, view.Ptr(littleBelow*atLeast)
		f.Sentence = fmt.Sprintf(
			"%s of the %s its clients could have. On %s the clients paused in between or were short of CPU.", what,
			view.SayCount(atMost), view.Three(under))
	case len(under) > 0:
		f.Severity, f.Limit = result.Warning, view.Ptr(littleBelow*atLeast)
		asks := view.SayCount(atMost) + " at all times"
		if atLeast < 0.99*atMost {
			asks = view.SayCount(atLeast) + " on average, by what its " + l.Section() + "s still had to do"
		}
		f.Sentence = fmt.Sprintf(
			"%s, though its job asks for %s. On %s the load generator paused or was short of CPU: the storage got less load than the job asks for.",
			what, asks, view.Three(under))
		from, to := l.Span()
		if fault, hit := v.FirstFault(from, to); hit {
			f.Severity = result.Info
			f.Sentence = fmt.Sprintf("%s, though its job asks for %s, on %s. With the fault at %s that says nothing of the "+
				"load generator: what hung to the end is in no figure.", what, asks, view.Three(under),
				view.ClockOf(fault.Sub(v.Data.Start).Seconds()))
		}
	case atLeast < 0.99*atMost:
		f.Severity, f.Limit = result.Passed, view.Ptr(littleAbove*atMost)
		f.Sentence = fmt.Sprintf(
			"%s, within the queue depth of %s (lower is expected: %s). Throughput and service time agree.", what,
			view.SayCount(atMost), why)
	default:
		f.Severity, f.Limit = result.Passed, view.Ptr(littleBelow*atLeast)
		f.Sentence = fmt.Sprintf(
			"%s; queue depth %s. Throughput and service time agree (%s to %s of the depth is accepted).", what,
			view.SayCount(atMost), view.Percent(littleBelow), view.Percent(littleAbove))
	}
	return f, true
}

// asked is how many operations a VM's job holds outstanding at the least, on average over its time: a stream without a
// rate its depth for as long as it has work. Of one that may have had none for a part of the time nothing is asked
// where for how long it worked is not known.
func asked(p *result.Workload) (least float64) {
	if !slices.ContainsFunc(p.Streams, func(l result.Stream) bool { return l.Brief }) {
		least, _ = view.Depths(p.Streams)
		return least
	}
	for _, l := range p.Streams {
		if l.Rate != 0 || l.OpenLoop {
			continue
		}
		share := 1.0
		if l.Brief {
			share = min(1, l.Worked/view.Seconds(p))
		}
		least += share * float64(max(l.Depth, 0))
	}
	return least
}

// inTurn reports whether some streams begin when others have ended.
func inTurn(streams []result.Stream) bool {
	return slices.ContainsFunc(streams, func(l result.Stream) bool { return l.Stage != streams[0].Stage })
}

// OfferedRate compares achieved with offered operations per second, over the whole window and in each part of it.
var OfferedRate = view.Check{Name: "offered-rate", Rank: 410, Run: offeredRate}

func offeredRate(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		if !l.Alike() {
			continue // which of its operations a rate is of is not declared
		}
		if f, ok := offeredOf(v, l); ok {
			c := v.Track(l)
			want, _, _ := l.Offered()
			if c != nil && f.Severity == result.Passed {
				late(&f, l, c, want)
			}
			if c != nil && f.Severity == result.Warning {
				f.Chart = v.Chart(l.Name+": "+l.Rate().Per, l.Rate().Unit, c.Line(l.Name, c.Ops))
				f.Chart.Levels = []result.ChartPlace{{At: want, Text: "offered"}}
			}
			out = append(out, f)
		}
	}
	return out
}

// What a load on a schedule may fall behind before it is said: less may be chance, as of arrivals at random.
const (
	behindSeconds = 2   // of work
	behindFewest  = 500 // operations
)

// late takes back that a rate was met where the load fell behind it and made up for it later: what was due in between
// began late, and an average does not show it. A VM that has ended, or of which nothing is known, has nothing due.
func late(f *result.Finding, l *view.Load, c *view.Track, want float64) {
	due := func(i int) (rate float64) {
		at := c.At(i).Add(-time.Duration(c.Step / 2 * float64(time.Second)))
		for _, p := range l.Parts {
			if slices.ContainsFunc(p.Times(), func(t result.Span) bool {
				return !at.Before(t.Start) && at.Before(t.End)
			}) {
				r, _, _ := view.Offered(p.Streams)
				rate += r
			}
		}
		return rate
	}
	behind, most := 0.0, 0.0
	since, from, worst, until := 0, 0, 0, -1
	for i, x := range c.Ops {
		if !view.IsFinite(x) {
			continue // what is missing is said by others
		}
		if behind == 0 {
			since = i
		}
		behind = max(0, behind+(due(i)*(1-view.RateTolerance)-x)*c.Step)
		if behind > most {
			most, from, worst = behind, since, i
		}
	}
	left := most // of the work, by what was done beyond what was due: what a tolerance forgives is not made up for
	for i := worst + 1; i < len(c.Ops) && until < 0; i++ {
		if view.IsFinite(c.Ops[i]) && due(i) > 0 {
			if left -= (c.Ops[i] - due(i)) * c.Step; left < most/10 {
				until = i
			}
		}
	}
	if most < max(behindSeconds*want, behindFewest) {
		return
	}
	f.Severity = result.Warning
	f.Evidence = append(f.Evidence, result.Evidence{Name: "work behind schedule", Value: view.Round(most / want),
		Unit: "s"})
	made := "did not make up for it"
	if until > worst {
		made = "made up for it by " + view.ClockOf(c.Elapsed(until))
	}
	f.Sentence = fmt.Sprintf("%s: target rate of %s met on average only: from %s on it fell %s of work behind and %s. What "+
		"was due then began late, which service times do not hold.", l.Name, l.Rate().Say(want),
		view.ClockOf(c.Elapsed(from)-c.Step), view.SayDuration(most/want), made)
}

func offeredOf(v *view.Run, l *view.Load) (result.Finding, bool) {
	var want, got, low, high, own float64 // own: what its VMs did while they ran, as far as chance goes
	var count uint64
	var limited, unlimited, unread int
	turns := false
	for _, p := range l.Parts {
		s := view.Seconds(p)
		rate, a, b := view.Offered(p.Streams)
		n, _ := view.Totals(p.Ops)
		if n == 0 && p.Ended == result.Lost && p.End.After(p.Start) {
			unread++
		}
		if s == 0 {
			if p.Ended == result.Lost || p.Ended == result.Failed { // before its first report
				want, own = want+rate, own+rate
			}
			continue
		}
		limited, unlimited, turns = limited+a, unlimited+b, turns || inTurn(p.Streams)
		lo, hi := view.Poisson(n)
		want, got, low, high, count = want+rate, got+float64(n)/s, low+lo/s, high+hi/s, count+n
	}
	if limited == 0 {
		return unsent(l)
	}
	own += high
	early := endedEarly(l)
	if w := l.Whole(); w != nil && (early > 0 || len(w.Spans) > 0) && w.Seconds() > 0 {
		n, _ := view.Totals(w.Judged().Ops)
		lo, hi := view.Poisson(n)
		got, low, high, count = float64(n)/w.Seconds(), lo/w.Seconds(), hi/w.Seconds(), n
	}
	q := l.Rate()
	f := result.Finding{
		Check: "offered-rate", Subject: l.Name, Metric: "achieved rate", Unit: q.Unit, Value: &got, N: int(count),
		Basis: l.Basis() + "; rates from " + l.Source(),
		Evidence: []result.Evidence{{Name: "offered", Value: want, Unit: q.Unit}, {Name: "achieved", Value: got,
			Unit: q.Unit}},
	}
	if unlimited > 0 {
		f.Severity, f.NoInterval = result.Info, "operations are not counted separately"
		f.Sentence = fmt.Sprintf(
			"Whether %s met its target rate is inconclusive: only %d of its %s have one, and the tool counts them together.",
			l.Name, limited, view.Plural(limited+unlimited, l.Section()))
		return f, true
	}
	if turns {
		f.Severity, f.NoInterval, f.Evidence = result.Info, "the target rate changes over time",
			f.Evidence[1:]
		f.Sentence = fmt.Sprintf(
			"Whether %s met its target rate is inconclusive: its %ss ran one after another, each with its own.", l.Name,
			l.Section())
		return f, true
	}
	f.Low, f.High, f.Limit = &low, &high, view.Ptr(want*(1-view.RateTolerance))
	f.Warnings = []string{"the interval takes completions as a Poisson count; a paced generator varies less"}
	var parts []result.Evidence
	missed := ""
	if l.Merged != nil && len(l.Merged.Windows) > 1 {
		parts, missed = windowRates(v, l, want)
	}
	f.Evidence = append(f.Evidence, parts...)
	what := fmt.Sprintf("%s: %s target, %s achieved (%s)", l.Name, q.Say(want), view.SayCount(got),
		view.Percent(got/want))
	if w := l.Whole(); w != nil && w.Apart {
		what += ", by its VMs while each ran, since they never all ran at the same time"
	}
	switch {
	case unread > 0 && high < want*(1-view.RateTolerance):
		f.Severity = result.Info
		f.Low, f.High, f.NoInterval = nil, nil, "what some VMs did is not known"
		f.Sentence = fmt.Sprintf("Whether %s met its target rate is inconclusive: %d of its %s left no report.",
			l.Name, unread, view.Plural(len(l.Parts), "VM"))
	case high < want*(1-view.RateTolerance) && early > 0 && own >= want*(1-view.RateTolerance):
		f.Severity = result.Warning
		if missed != "" {
			missed = ", not met" + missed
		}
		f.Sentence = fmt.Sprintf("%s: target rate not met: its VMs met it while they ran, but %d of %d ended early%s.",
			what, early, len(l.Parts), missed)
	case high < want*(1-view.RateTolerance):
		f.Severity = result.Warning
		f.Sentence = what + ": target rate not met" + missed + "."
	case low > want*(1+view.RateTolerance):
		f.Severity = result.Info
		f.Sentence = what + ": above the target, so the job's rate limit did not apply."
	case missed != "":
		f.Severity = result.Warning
		f.Sentence = what + ": target rate met over all, not met" + missed + "."
	default:
		f.Severity = result.Passed
		within := "within " + view.Percent(view.RateTolerance)
		if math.Abs(got-want) > want*view.RateTolerance {
			within = "as far as chance goes"
		}
		f.Sentence = what + ": target rate met (" + within + ")."
	}
	return f, true
}

// neverSent are counts of what was due on a schedule and was given up before it was sent, as pgbench and k6 name them.
var neverSent = []string{"skipped", "dropped_iterations"}

// unsent says of a load whose target rate its tool does not print what it counts as due and never sent.
func unsent(l *view.Load) (result.Finding, bool) {
	var due, count, done float64
	noun := ""
	for _, p := range l.Parts {
		n, _ := view.Totals(p.Ops)
		done += float64(n)
		for _, value := range p.Values {
			i := slices.IndexFunc(p.Measures, func(m result.Measure) bool { return m.Name == value.Measure })
			if i < 0 || !slices.Contains(neverSent, value.Measure) {
				continue
			}
			unit, times := p.Measures[i].Unit, 1.0
			if one, perSecond := strings.CutSuffix(unit, "/s"); perSecond {
				unit, times = one, view.Seconds(p)
			}
			noun, count = unit, count+value.Value*times
		}
	}
	if count = math.Round(count); !(count > 0) {
		return behindSchedule(l) // nothing was offered at a rate, or all of it was sent
	}
	f := result.Finding{
		Check: "offered-rate", Subject: l.Name, Severity: result.Warning, Metric: "never sent", Unit: "count",
		Value: &count, N: int(count), NoInterval: "a count of the load generator's own",
		Basis:    l.Basis() + "; what the load generator counts as due and never sent",
		Evidence: []result.Evidence{{Name: "never sent", Value: count, Unit: "count"}},
	}
	of := view.SayCount(count) + " " + noun
	if noun == l.Counted() {
		due = count + done
		of = fmt.Sprintf("%s of %s %s (%s)", view.SayCount(count), view.SayCount(due), noun, view.Percent(count/due))
	}
	f.Sentence = fmt.Sprintf("%s: %s that were due were never sent, for they were late by then: what they would have "+
		"waited is in no time, and the rate that was asked for was not reached.", l.Name, of)
	if due > 0 && count < view.RateTolerance*due {
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf("%s: %s that were due were never sent, for they were late by then: what they would have "+
			"waited is in no time.", l.Name, of)
	}
	return f, true
}

// How late what a load sent was on average, and of its time, to have fallen behind: less is how arrivals at random
// queue.
const (
	lateSeconds = 0.1
	lateShare   = 0.02
)

// behindSchedule says of a load whose target rate its tool does not print that all of it was sent, and late.
func behindSchedule(l *view.Load) (result.Finding, bool) {
	for _, p := range l.Parts {
		at := func(measure string) float64 {
			for _, v := range p.Values {
				if v.Measure == measure {
					return v.Value / 1e3
				}
			}
			return math.NaN()
		}
		mean, most, s := at("schedule_lag_mean"), at("schedule_lag_max"), view.Seconds(p)
		if !(s > 0 && mean >= max(lateSeconds, lateShare*s) && most >= mean) {
			continue
		}
		return result.Finding{
			Check: "offered-rate", Subject: l.Name, Severity: result.Warning,
			Metric: "mean lag behind the schedule", Unit: "s", Value: &mean,
			NoInterval: "the load generator's own mean", Basis: l.Basis() + "; the load generator's own lags",
			Evidence: []result.Evidence{{Name: "largest lag", Value: most, Unit: "s"}},
			Sentence: fmt.Sprintf("%s: its %s began %s late on average by the schedule of the rate that was asked for, and %s at "+
				"most, in %s: it fell behind that rate, which its output does not hold.", l.Name, l.Counted(), view.SayDuration(mean),
				view.SayDuration(most), view.SayDuration(s)),
		}, true
	}
	return result.Finding{}, false
}

// endedEarly counts the VMs that were lost or failed before the time by which their workload is judged was over, by
// more than a hundredth of it. One that began late, or ended as planned, did not end early.
func endedEarly(l *view.Load) (n int) {
	from, to := l.Judged()
	for _, p := range l.Parts {
		if (p.Ended == result.Lost || p.Ended == result.Failed) && to.Sub(p.End) > to.Sub(from)/100 {
			n++
		}
	}
	return n
}

// windowRates is the achieved rate in each window of the merged workload, and in words where it was missed. Windows
// come from the merged entry, so nothing is said when only single VMs were collected.
func windowRates(v *view.Run, l *view.Load, want float64) (ev []result.Evidence, missed string) {
	var names []string
	worst, lowest := "", math.Inf(1)
	windows := v.Comparable(l)
	under := v.ConditionsOf(nil, windows)
	for i, w := range windows {
		s := w.Seconds()
		if s <= 0 {
			continue
		}
		n, _ := view.Totals(w.Ops)
		ev = append(ev, result.Evidence{Name: "achieved " + w.Name, Value: float64(n) / s, Unit: l.Rate().Unit})
		if v.Missed(l, n, s, want, 1) {
			names = append(names, fmt.Sprintf("%s%s (%s)", w.Name, under[i].Under(w.After),
				view.Percent(float64(n)/s/want)))
			if float64(n)/s < lowest {
				worst, lowest = names[len(names)-1], float64(n)/s
			}
		}
	}
	switch {
	case len(names) == 0:
		return ev, ""
	case len(names) > 2:
		return ev, fmt.Sprintf(" in %d of its %d phases, lowest %s", len(names), len(ev), worst)
	case len(names) == len(ev):
		return ev, " in any phase: " + strings.Join(names, ", ")
	}
	return ev, " " + strings.Join(names, " and ")
}
