package analysis

import (
	"fmt"

	"plimsoll/internal/analysis/fault"
	"plimsoll/internal/analysis/recovery"
	"plimsoll/internal/analysis/residency"
	"plimsoll/internal/analysis/scale"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Repeat is one run of several that are looked at together.
type Repeat struct {
	Manifest result.Manifest
	Data     *result.Data
}

// Across returns what only several runs show: how much a time to recover, to ingest or to become resident varies from
// run to run, and the steps of a working-set sweep of which each run measured one size. Runs must be repeats of one
// test; whether they are alike is not judged here. Fewer than two runs give nothing.
func Across(runs []Repeat) []result.Finding {
	if len(runs) < 2 {
		return nil
	}
	type key struct {
		check, subject, what string
		rank                 int
		ordinal              int // of those in a run: the first fault, the second
	}
	var order []key
	moments := map[key][]recovery.Moment{}
	seen := map[key]int{} // runs in which it was found
	var points []scale.SetPoint
	for _, r := range runs {
		if r.Data == nil {
			continue
		}
		v := view.New(r.Manifest, r.Data)
		points = append(points, scale.SetPoints(v)...)
		count := map[key]int{}
		for _, f := range momentsOf(v) {
			k := key{f.Check, f.Subject, f.what, f.Rank, 0}
			k.ordinal, count[k] = count[k], count[k]+1
			if moments[k] == nil {
				order = append(order, k)
			}
			m := recovery.Moment{Reason: f.NoInterval}
			if f.Value != nil {
				m = recovery.Moment{Reached: true, Seconds: *f.Value}
			}
			moments[k] = append(moments[k], m)
			seen[k]++
		}
	}
	var out []result.Finding
	for _, k := range order {
		if seen[k] < 2 {
			continue
		}
		s, err := recovery.Repeats(moments[k], view.Confidence)
		if err != nil {
			continue
		}
		f := spreadFinding(k.check, k.subject, k.what, k.ordinal, seen[k], len(runs), s)
		f.Rank = k.rank
		out = append(out, sound(f))
	}
	for _, f := range scale.Sweep(points, fmt.Sprintf("%d runs", len(runs))) {
		f.Rank = scale.CacheSteps.Rank
		out = append(out, sound(f))
	}
	for _, f := range testsCurve(runs) {
		out = append(out, sound(f))
	}
	return out
}

// moment is a finding of a time with what had happened by then, in words.
type moment struct {
	result.Finding
	what string
}

// momentsOf are all times of a run that repeats may show to vary.
func momentsOf(v *view.Run) (out []moment) {
	for _, o := range fault.Outages(v) {
		f := o.Finding(v)
		f.Rank = fault.Recovery.Rank
		out = append(out, moment{f, o.Group + " back at 90 % of its former " + o.Quantity.Name})
	}
	for _, f := range ask(residency.Ingest, v) {
		out = append(out, moment{f, f.Subject + " had written all its data"})
	}
	for _, f := range ask(residency.Residency, v) {
		out = append(out, moment{f, "the reads of " + f.Subject + " were resident"})
	}
	return out
}

func spreadFinding(check, subject, what string, ordinal, found, runs int, s recovery.Spread) result.Finding {
	f := result.Finding{
		Check: check + "-repeats", Subject: subject, Severity: result.Info, Metric: "mean time over runs", Unit: "s",
		N: s.N, Warnings: s.Warnings,
		Basis: fmt.Sprintf("%d of %d runs; Student's t over runs", found, runs),
	}
	if check == "recovery" && ordinal > 0 {
		what += fmt.Sprintf(" after fault %d", ordinal+1)
	}
	if s.N == 0 {
		f.Severity, f.NoInterval = result.Warning, "it never happened"
		f.Sentence = fmt.Sprintf("In none of %d runs: %s.", found, what)
		return f
	}
	f.Value = view.Ptr(s.Mean)
	view.SetInterval(&f, s.Interval)
	f.Evidence = []result.Evidence{
		{Name: "shortest", Value: s.Min, Unit: "s"},
		{Name: "longest", Value: s.Max, Unit: "s"},
		{Name: "spread", Value: 100 * (s.Max - s.Min) / s.Mean, Unit: "%"},
	}
	f.Sentence = fmt.Sprintf("Over %s: %s after %s on average", view.Plural(s.N, "run"), what, view.SayDuration(s.Mean))
	if s.Interval.Valid() {
		f.Sentence += fmt.Sprintf(" (95 %%: %s to %s), between %s and %s", view.SayDuration(s.Interval.Low),
			view.SayDuration(s.Interval.High), view.SayDuration(s.Min), view.SayDuration(s.Max))
	}
	if s.Missing > 0 {
		f.Severity = result.Warning
		f.Sentence += fmt.Sprintf("; in %d of %d never", s.Missing, found)
	}
	f.Sentence += "."
	return f
}
