package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/result"
)

// What a window must hold before its figures mean much: at 1,000 operations ten lie beyond the 99th percentile.
const (
	fewOperations = 1000
	shortSeconds  = 60
	tinySeconds   = 20
)

// tooShort judges how long and how many.
func tooShort(v *view) []result.Finding {
	scaled := ""
	if s := v.m.TimeScale; isFinite(s) && s > 0 && s != 1 {
		scaled = fmt.Sprintf(" Time was scaled ×%g for this run.", s)
	}
	longest := 0.0
	for _, l := range v.loads {
		longest = max(longest, l.longest())
	}
	var out []result.Finding
	for _, l := range v.loads {
		n, s := l.completed(), l.longest()
		f := result.Finding{
			Check: "too-short", Subject: l.name, Metric: "measured window", Unit: "s", Value: &s, N: int(min(n, math.MaxInt)), Limit: ptr(shortSeconds),
			NoInterval: "a length and a count, not an estimate", Basis: l.basis(),
			Evidence: []result.Evidence{{Name: "window", Value: s, Unit: "s"}},
		}
		counted := l.counted()
		what := fmt.Sprintf("%s was measured for %s", l.name, sayDuration(s))
		if part := l.part(); part != "" {
			what += fmt.Sprintf(" (%s)", part[1:])
		}
		if len(l.operations()) > 0 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "operations", Value: float64(n), Unit: "count"})
			what += fmt.Sprintf(" and completed %s %s", sayCount(float64(n)), counted)
		}
		judged, hidden := "the storage: caches have not filled and nothing has settled", "caches and background work"
		if !l.movesBlocks() {
			judged, hidden = "the server: nothing has settled", "background work"
		}
		switch {
		case !l.reported():
			f.Severity = result.Blocker
			f.Sentence = fmt.Sprintf("%s reported nothing: there is nothing to say about it.", l.name)
			if len(l.operations()) > 0 {
				f.Sentence = fmt.Sprintf("%s completed no operation: there is nothing to report about it.", l.name)
			}
		case n == 0 && len(l.operations()) > 0:
			f.Severity = result.Blocker
			f.Sentence = fmt.Sprintf("%s completed no operation: there is nothing to report about it.", l.name)
		case s == 0:
			f.Severity = result.Blocker
			f.Sentence = fmt.Sprintf("%s has a window of no length, so no rate can be given.", l.name)
			if n > 0 {
				f.Sentence = fmt.Sprintf("%s has %s %s but a window of no length, so no rate can be given.", l.name,
					sayCount(float64(n)), counted)
			}
		case n < fewOperations && l.timed():
			f.Severity, f.Limit = result.Caution, ptr(fewOperations)
			f.Metric, f.Unit, f.Value = "operations", "count", ptr(float64(n))
			f.Sentence = what + ": too few for a 99th percentile." + scaled
		case s < tinySeconds:
			f.Severity = result.Caution
			f.Sentence = what + ", which shows that the test works and is too short to judge " + judged + "." + scaled
		case s < shortSeconds:
			f.Severity = result.Notice
			f.Sentence = what + "; under a minute, effects of " + hidden + " may not have shown yet." + scaled
		default:
			f.Severity = result.Fine
			f.Sentence = what + "." + scaled
		}
		if f.Severity == result.Caution && s < besides*longest {
			f.Severity = result.Notice // it prepares or checks what another workload measures
		}
		out = append(out, f)
	}
	return out
}

// neverTogether tells of workloads whose VMs never all ran at one time, so that there is no time by which they can be judged.
func neverTogether(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		w := l.whole()
		if w == nil || !w.Apart {
			continue
		}
		out = append(out, result.Finding{
			Check: "never-together", Severity: result.Caution, Subject: l.name, Metric: "VMs", Unit: "count",
			Value: ptr(float64(len(l.parts))), N: len(l.parts), NoInterval: "a fact of the schedule, not a sample",
			Basis: "starts and ends of the workload on each VM",
			Sentence: fmt.Sprintf("The %s of %s never all ran at one time: some had ended when others began. Its rate is an average over a changing number of them, pauses included.",
				plural(len(l.parts), "VM"), l.name),
		})
	}
	return out
}

// besides is the share of the longest workload's time below which another is taken for a preparation or a check.
const besides = 0.1

// manyErrors is the share of failed operations from which figures of the rest stop describing the workload.
const manyErrors = 0.01

// operationErrors counts failed operations; they never stop a workload, so only this tells.
func operationErrors(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		n := l.count()
		var failed uint64
		var where []string
		for _, p := range l.parts {
			if p.Errors > 0 {
				failed += p.Errors
				where = append(where, subject(p))
			}
		}
		if n == 0 && failed == 0 {
			continue
		}
		if len(l.operations()) == 0 {
			out = append(out, l.failures(failed, where))
			continue
		}
		all := n + failed
		low, high := proportion(failed, all)
		share := float64(failed) / float64(all)
		f := result.Finding{
			Check: "errors", Subject: l.name, Metric: "failed operations", Unit: "%", Value: ptr(share * 100), Low: ptr(low * 100), High: ptr(high * 100),
			N: int(min(all, math.MaxInt)), Limit: ptr(0), Basis: l.basis(),
			Evidence: []result.Evidence{{Name: "failed", Value: float64(failed), Unit: "count"}, {Name: "completed", Value: float64(n), Unit: "count"}},
		}
		if failed > 0 {
			f.Warnings = []string{independent}
		}
		switch {
		case failed == 0:
			f.Severity, f.Sentence = result.Fine, fmt.Sprintf("No operation of %s failed.", l.name)
		case share >= manyErrors:
			f.Severity = result.Blocker
			f.Sentence = fmt.Sprintf("%s of the operations of %s failed (%s, on %s). What remains does not describe this workload.", percent(share), l.name, sayCount(float64(failed)), some(where))
		default:
			f.Severity = result.Caution
			f.Sentence = fmt.Sprintf("%s of %s failed (on %s). Failed operations are in no percentile.", plural(int(min(failed, math.MaxInt)), "operation"), l.name, some(where))
		}
		out = append(out, f)
	}
	return out
}

// failures are those of a workload that counts no operations, so that their share is not known.
func (l *load) failures(failed uint64, where []string) result.Finding {
	return result.Finding{
		Check: "errors", Subject: l.name, Severity: result.Caution, Metric: "failures", Unit: "count",
		Value: ptr(float64(failed)),
		N:     int(min(failed, math.MaxInt)), Limit: ptr(0), NoInterval: "what else was done is not counted", Basis: l.basis(),
		Sentence: fmt.Sprintf("%s reported %s (on %s). Of how many is not known: it counts no operations.", l.name,
			plural(int(min(failed, math.MaxInt)), "failure"), some(where)),
	}
}

// saturated looks for service times in the bucket where fio stops counting. Other tools do not.
func saturated(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		var beyond, n uint64
		for _, p := range l.parts {
			for _, o := range p.Ops {
				if o.Hist != nil && l.movesBlocks() {
					beyond += o.Hist.Saturated()
					n += o.Hist.Count()
				}
			}
		}
		if n == 0 {
			continue
		}
		share := float64(beyond) / float64(n)
		low, high := proportion(beyond, n)
		f := result.Finding{
			Check: "saturated", Subject: l.name, Metric: "operations at the end of the latency scale", Unit: "%", Value: ptr(share * 100), Low: ptr(low * 100), High: ptr(high * 100),
			N: int(min(n, math.MaxInt)), Limit: ptr(0), Basis: l.basis() + fmt.Sprintf("; percentiles are within ±%.2f %%", hist.RelativeError*100),
			Evidence: []result.Evidence{{Name: "at 17 s or beyond", Value: float64(beyond), Unit: "count"}},
		}
		switch {
		case beyond == 0:
			f.Severity = result.Fine
			f.Sentence = fmt.Sprintf("All percentiles of %s lie within the latency scale.", l.name)
		default:
			f.Severity, f.Warnings = result.Caution, []string{independent}
			f.Sentence = fmt.Sprintf("%s of %s took 17 s or longer, where fio stops counting: the maximum and the highest percentiles are lower bounds.", plural(int(min(beyond, math.MaxInt)), "operation"), l.name)
		}
		out = append(out, f)
	}
	return out
}

// machinesLost tells of workloads that did not end as planned, or of whose end there is no record.
func machinesLost(v *view) []result.Finding {
	var out []result.Finding
	if v.m.Target == result.ImportTarget {
		return nil // what others left does not say how long it was meant to be
	}
	for _, l := range v.loads {
		by := map[string][]string{} // end -> VMs
		var faults []result.Mark    // that ended some
		ended := map[time.Time]int{}
		for _, p := range l.parts {
			by[p.Ended] = append(by[p.Ended], subject(p))
			if e := v.endedBy(l, p); p.Ended == "lost" && e != nil {
				if ended[e.Time]++; ended[e.Time] == 1 {
					faults = append(faults, *e)
				}
			}
		}
		lost, failed, open := by["lost"], by["failed"], by[result.Unrecorded]
		bad, explained := len(lost)+len(failed)+len(open), 0
		for _, n := range ended {
			explained += n
		}
		f := result.Finding{
			Check: "lost", Subject: l.name, Severity: result.Caution, Metric: "VMs that did not end as planned", Unit: "count", Value: ptr(float64(bad)), N: len(l.parts), Limit: ptr(0),
			NoInterval: "a count of VMs, not a sample", Basis: "journal and exit of the generator on each VM",
		}
		switch {
		case bad == 0:
			f.Severity, f.Sentence = result.Fine, fmt.Sprintf("%s ended as planned on %s.", l.name, plural(len(l.parts), "VM"))
		case len(lost) > 0:
			f.Sentence = fmt.Sprintf("%s lost %s of %d on the way (%s). Totals hold what they reported until then.", l.name, plural(len(lost), "VM"), len(l.parts), some(lost))
		case len(failed) > 0:
			f.Sentence = fmt.Sprintf("The generator of %s failed on %s of %d (%s). Totals hold what was reported until then.", l.name, plural(len(failed), "VM"), len(l.parts), some(failed))
		default:
			why := "the record of the run ends before it"
			if v.m.Error != "" {
				why = "the run failed (" + strings.TrimSuffix(v.m.Error, ".") + ")"
			}
			f.Metric = "VMs without a recorded end"
			f.Sentence = fmt.Sprintf("How %s ended on %s of %d (%s) is not recorded: %s. Totals hold what was recorded until then.", l.name, plural(len(open), "VM"), len(l.parts), some(open), why)
		}
		if bad == len(l.parts) {
			f.Severity = result.Blocker
		}
		if len(lost) > 0 && len(failed) == 0 && explained == len(lost) {
			slices.SortFunc(faults, func(a, b result.Mark) int { return a.Time.Compare(b.Time) })
			var each []string
			for i, e := range faults {
				at, vms := clockOf(e.Time.Sub(v.d.Start).Seconds()), plural(ended[e.Time], "VM")
				switch {
				case len(faults) == 1:
					each = append(each, fmt.Sprintf("The fault at %s ended %s on %s of %d", at, l.name, vms, len(l.parts)))
				case i == 0:
					each = append(each, fmt.Sprintf("%q at %s ended %s on %s of %d", e.Text, at, l.name, vms, len(l.parts)))
				default:
					each = append(each, fmt.Sprintf("%q at %s on %s", e.Text, at, vms))
				}
			}
			f.Severity = result.Notice
			f.Sentence = some(each) + ". Totals hold what they reported until then."
		}
		out = append(out, f)
	}
	return out
}

// endedBy is the fault that ended a workload on a VM: the one nearest to one of its ends, and not later than its last report
// and the one that did not come any more explain; nil when there is none.
func (v *view) endedBy(l *load, p *result.Workload) (best *result.Mark) {
	slack := max(10*time.Second, v.silence(l))
	nearest := time.Duration(math.MaxInt64)
	for i := range v.d.Events {
		e := &v.d.Events[i]
		for _, t := range p.Times() {
			if away := t.End.Sub(e.Time); e.Kind == result.KindFault && away >= -slack && away.Abs() < nearest {
				best, nearest = e, away.Abs()
			}
		}
	}
	return best
}
