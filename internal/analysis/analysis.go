// Package analysis looks at a finished run and says what stands between its numbers and a conclusion: whether
// throughput, service time and outstanding operations agree with each other, whether the offered load was reached, what
// was really limiting, what was really read, whether it was steady, whether it is possible at all; and what the run was
// made to find out: the cost of a co-running workload, the time to recover, to move up a tier or to ingest, how it
// scales, where caches end.
// Across says what only several runs show.
//
// Run is pure: it reads result.Manifest and result.Data, does no I/O and prints nothing; package report shows what it
// returns. Every finding is a value with its evidence, an interval or the reason for none, and a sentence that stands
// on its own. A check that passed is a finding too (result.Passed). No finding stops a run, and damaged data (gaps,
// NaN, nothing at all) gives a finding that says so, never a panic.
//
// The checks live in rooms by question (load, client, storage, plausibility, corunning, fault, ...), which see a run
// through package view; the other folders are methods of statistics. A new one is a file in its room and a line in the
// list below.
//
// Judged by: the constants beside each check. Percentiles are read from merged histograms and never averaged.
package analysis

import (
	"cmp"
	"slices"

	"plimsoll/internal/analysis/balance"
	"plimsoll/internal/analysis/client"
	"plimsoll/internal/analysis/corunning"
	"plimsoll/internal/analysis/dbserver"
	"plimsoll/internal/analysis/fault"
	"plimsoll/internal/analysis/load"
	"plimsoll/internal/analysis/machines"
	"plimsoll/internal/analysis/plausibility"
	"plimsoll/internal/analysis/residency"
	"plimsoll/internal/analysis/scale"
	"plimsoll/internal/analysis/stall"
	"plimsoll/internal/analysis/steadiness"
	"plimsoll/internal/analysis/storage"
	"plimsoll/internal/analysis/turn"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// checks are all that is asked of a run, room by room. Which finding comes before which, and which are told first of
// all, follows from their ranks, not from their places here.
var checks = []view.Check{
	balance.Imbalance,
	client.CPU,
	client.Host,
	client.Limit,
	client.Starved,
	client.Power,
	dbserver.Limit,
	dbserver.Checkpoints,
	dbserver.Durable,
	dbserver.LostCommits,
	dbserver.Agrees,
	fault.Recovery,
	load.TooShort,
	load.NeverTogether,
	load.LittlesLaw,
	load.MachinesLost,
	load.ClocksDiffer,
	load.ClocksMoved,
	load.Together,
	load.Errors,
	load.OfferedRate,
	load.LatencyKind,
	load.Saturated,
	machines.Boots,
	machines.Migrations,
	machines.NodeReturns,
	machines.Operations,
	corunning.Windows,
	plausibility.TooFast,
	plausibility.BusLimit,
	plausibility.IOLimit,
	plausibility.DataSheet,
	plausibility.Reduction,
	residency.Ingest,
	residency.Residency,
	scalability,
	scale.CacheSteps,
	stall.Stalls,
	steadiness.Baseline,
	steadiness.SteadyState,
	storage.AsAsked,
	storage.LostWrites,
	storage.NeverWritten,
	storage.Preconditioned,
	storage.Plain,
	storage.Fresh,
	storage.InMemory,
	storage.DeviceCounters,
	storage.Cache,
	storage.Flushes,
	storage.Free,
	turn.InTurn,
}

// Run returns the findings of one run, the most important first. The same input gives the same findings.
func Run(m result.Manifest, d *result.Data) []result.Finding {
	var v *view.Run
	if d != nil {
		v = view.New(m, d)
	}
	began := d != nil && slices.ContainsFunc(d.Workloads, func(w result.Workload) bool { return !w.Prefill })
	if d != nil && !began && m.Measured.State == "yes" {
		return []result.Finding{{
			Check: "no-data", Severity: result.Info, Subject: "run",
			Sentence: "No workload of the scenario ran, so there is nothing to judge: the journal has its steps, the charts its results.",
			Metric:   "workloads", Value: view.Ptr(0), Unit: "count", NoInterval: "nothing was to be measured",
			Basis: "the collected data of the run",
		}}
	}
	if v != nil && len(v.Loads) == 0 && began && m.Target == result.ImportTarget {
		return []result.Finding{{
			Check: "no-data", Severity: result.Info, Subject: "run",
			Sentence: "The imported files hold no operations of a load, so nothing is judged: what they hold is in the figures and, where it is known over time, in the charts.",
			Metric:   "workloads", Value: view.Ptr(0), Unit: "count", NoInterval: "no load was measured",
			Basis: "the imported files",
		}}
	}
	if v == nil || len(v.Loads) == 0 {
		return []result.Finding{{
			Check: "no-data", Severity: result.Invalid, Subject: "run",
			Sentence: "Nothing to judge: no workload of this run left any data.",
			Metric:   "workloads", Value: view.Ptr(0), Unit: "count", NoInterval: "nothing was measured",
			Basis: "the collected data of the run",
		}}
	}
	var out []result.Finding
	plain := membersOf(d)
	byRank := slices.SortedFunc(slices.Values(checks), func(a, b view.Check) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, check := range byRank {
		for _, f := range ask(check, v) {
			if m.Target != result.ImportTarget { // there names are the user's
				f = plain.finding(f)
			}
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out,
		func(a, b result.Finding) int { return cmp.Compare(order(a.Severity), order(b.Severity)) })
	return out
}

// ask gives what a check finds, with its rank.
func ask(check view.Check, v *view.Run) []result.Finding {
	var out []result.Finding
	for _, f := range check.Run(v) {
		f.Rank = check.Rank
		out = append(out, sound(f))
	}
	return out
}

// order is the place of a severity among the others, the most important first.
func order(s result.Severity) int {
	return slices.Index([]result.Severity{result.Invalid, result.Warning, result.Info, result.Passed}, s)
}

// sound drops numbers that JSON cannot carry and sees to it that no finding lacks both interval and reason.
func sound(f result.Finding) result.Finding {
	f.Value, f.Low, f.High, f.Limit = finite(f.Value), finite(f.Low), finite(f.High), finite(f.Limit)
	f.Harm = finite(f.Harm)
	f.Evidence = slices.DeleteFunc(f.Evidence, func(e result.Evidence) bool { return !view.IsFinite(e.Value) })
	if f.Chart != nil {
		f.Chart = drawable(f.Chart)
	}
	switch {
	case f.Low != nil && f.High != nil:
		f.Confidence, f.NoInterval = cmp.Or(f.Confidence, view.Confidence), ""
	case f.NoInterval == "":
		f.Low, f.High = nil, nil
		f.NoInterval = "the data do not give one"
	default:
		f.Low, f.High = nil, nil
	}
	return f
}

// drawable drops lines without a point; nil when nothing is left.
func drawable(c *result.Chart) *result.Chart {
	c.Lines = slices.DeleteFunc(c.Lines, func(l result.ChartLine) bool {
		return !slices.ContainsFunc(l.Y, func(y *float64) bool { return y != nil })
	})
	if len(c.Lines) == 0 {
		return nil
	}
	return c
}

func finite(p *float64) *float64 {
	if p == nil || !view.IsFinite(*p) {
		return nil
	}
	return p
}

// AgainstSheet compares a run with the data sheet in its manifest's environment alone, as Run does among the rest.
func AgainstSheet(m result.Manifest, d *result.Data) []result.Finding {
	if d == nil {
		return nil
	}
	return ask(plausibility.DataSheet, view.New(m, d))
}
