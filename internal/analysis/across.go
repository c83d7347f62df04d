package analysis

import (
	"fmt"

	"plimsoll/internal/analysis/recovery"
	"plimsoll/result"
)

// Repeat is one run of several that are looked at together.
type Repeat struct {
	Manifest result.Manifest
	Data     *result.Data
}

// Across returns what only several runs show: how much a time to recover, to ingest or to become resident varies from run to
// run, and the steps of a working-set sweep of which each run measured one size. Runs must be repeats of one test; whether
// they are alike is not judged here. Fewer than two runs give nothing.
func Across(runs []Repeat) []result.Finding {
	if len(runs) < 2 {
		return nil
	}
	type key struct {
		check, subject, what string
		ordinal              int // of those in a run: the first fault, the second
	}
	var order []key
	moments := map[key][]recovery.Moment{}
	seen := map[key]int{} // runs in which it was found
	var points []setPoint
	for _, r := range runs {
		if r.Data == nil {
			continue
		}
		v := newView(r.Manifest, r.Data)
		points = append(points, v.setPoints()...)
		count := map[key]int{}
		for _, f := range v.moments() {
			k := key{f.Check, f.Subject, f.what, 0}
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
		s, err := recovery.Repeats(moments[k], Confidence)
		if err != nil {
			continue
		}
		out = append(out, sound(spreadFinding(k.check, k.subject, k.what, k.ordinal, seen[k], len(runs), s)))
	}
	for _, f := range sweep(points, fmt.Sprintf("%d runs", len(runs))) {
		out = append(out, sound(f))
	}
	return out
}

// moment is a finding of a time with what had happened by then, in words.
type moment struct {
	result.Finding
	what string
}

// moments are all times of a run that repeats may show to vary.
func (v *view) moments() (out []moment) {
	for _, o := range v.outages() {
		out = append(out, moment{o.finding(v), o.group + " was back at 90 % of its former " + o.of.name})
	}
	for _, f := range ingest(v) {
		out = append(out, moment{f, f.Subject + " had written all its data"})
	}
	for _, f := range residency(v) {
		out = append(out, moment{f, "the reads of " + f.Subject + " were resident"})
	}
	return out
}

func spreadFinding(check, subject, what string, ordinal, found, runs int, s recovery.Spread) result.Finding {
	f := result.Finding{
		Check: check + "-repeats", Subject: subject, Severity: result.Notice, Metric: "mean time over runs", Unit: "s", N: s.N, Warnings: s.Warnings,
		Basis: fmt.Sprintf("%d of %d runs; Student's t over runs", found, runs),
	}
	if check == "recovery" && ordinal > 0 {
		what += fmt.Sprintf(" after fault %d", ordinal+1)
	}
	if s.N == 0 {
		f.Severity, f.NoInterval = result.Caution, "it never came"
		f.Sentence = fmt.Sprintf("In none of %d runs %s while it was measured.", found, what)
		return f
	}
	f.Value = ptr(s.Mean)
	setInterval(&f, s.Interval)
	f.Evidence = []result.Evidence{{Name: "shortest", Value: s.Min, Unit: "s"}, {Name: "longest", Value: s.Max, Unit: "s"}, {Name: "spread", Value: 100 * (s.Max - s.Min) / s.Mean, Unit: "%"}}
	f.Sentence = fmt.Sprintf("Over %s %s after %s on average", plural(s.N, "run"), what, sayDuration(s.Mean))
	if s.Interval.Valid() {
		f.Sentence += fmt.Sprintf(" (95 %%: %s to %s), between %s and %s", sayDuration(s.Interval.Low), sayDuration(s.Interval.High), sayDuration(s.Min), sayDuration(s.Max))
	}
	if s.Missing > 0 {
		f.Severity = result.Caution
		f.Sentence += fmt.Sprintf("; in %d of %d it never was", s.Missing, found)
	}
	f.Sentence += "."
	return f
}
