package load

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// How long a window must be before its figures mean much.
const (
	shortSeconds = 60
	tinySeconds  = 20
)

// TooShort judges how long and how many.
var TooShort = view.Check{Name: "too-short", Rank: 210, Run: tooShort}

func tooShort(v *view.Run) []result.Finding {
	scaled := ""
	if s := v.Manifest.TimeScale; view.IsFinite(s) && s > 0 && s != 1 {
		scaled = fmt.Sprintf(" Time was scaled ×%g for this run.", s)
	}
	longest := 0.0
	for _, l := range v.Loads {
		longest = max(longest, l.Longest())
	}
	var out []result.Finding
	for _, l := range v.Loads {
		n, s := l.Completed(), l.Longest()
		f := result.Finding{
			Check: "too-short", Subject: l.Name, Metric: "measured time", Unit: "s", Value: &s, N: int(min(n,
				math.MaxInt)), Limit: view.Ptr(shortSeconds),
			NoInterval: "a length and a count, not an estimate", Basis: l.Basis(),
			Evidence: []result.Evidence{{Name: "measured time", Value: s, Unit: "s"}},
		}
		counted := l.Counted()
		set := slices.ContainsFunc(l.Operations(), func(o result.Operation) bool { return o.Set })
		what := fmt.Sprintf("%s was measured for %s", l.Name, view.SayDuration(s))
		if part := l.LeftOut(); part != "" {
			what += fmt.Sprintf(" (%s)", part[1:])
		}
		if len(l.Operations()) > 0 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "operations", Value: float64(n), Unit: "count"})
			what += fmt.Sprintf(" and completed %s %s", view.SayCount(float64(n)), counted)
		}
		judged, hidden := "the storage: caches have not filled and nothing has settled", "caches and background work"
		if !l.MovesBlocks() {
			judged, hidden = "the server: nothing has settled", "background work"
		}
		switch {
		case !l.Reported():
			f.Severity = result.Invalid
			f.Sentence = fmt.Sprintf("%s reported nothing.", l.Name)
			if len(l.Operations()) > 0 {
				f.Sentence = fmt.Sprintf("%s completed no operations.", l.Name)
			}
		case n == 0 && len(l.Operations()) > 0:
			f.Severity = result.Invalid
			f.Sentence = fmt.Sprintf("%s completed no operations.", l.Name)
		case s == 0:
			f.Severity = result.Invalid
			f.Sentence = fmt.Sprintf("%s was measured for no time, so it has no rate.", l.Name)
			if n > 0 {
				f.Sentence = fmt.Sprintf("%s has %s %s but was measured for no time, so it has no rate.", l.Name,
					view.SayCount(float64(n)), counted)
			}
		case n < view.FewOperations && l.Timed() && !set:
			f.Severity, f.Limit = result.Warning, view.Ptr(view.FewOperations)
			f.Metric, f.Unit, f.Value = "operations", "count", view.Ptr(float64(n))
			f.Sentence = what + ": too few for a 99th percentile." + scaled
		case s < tinySeconds:
			f.Severity = result.Warning
			f.Sentence = what + ": enough to show that the test works, too short to judge " + judged + "." + scaled
		case s < shortSeconds:
			f.Severity = result.Info
			f.Sentence = what + "; under a minute, so effects of " + hidden + " may not show yet." + scaled
		default:
			f.Severity = result.Passed
			f.Sentence = what + "." + scaled
		}
		if f.Severity == result.Warning && s < view.Besides*longest {
			f.Severity = result.Info // it prepares or checks what another workload measures
		}
		out = append(out, f)
	}
	return out
}

// NeverTogether tells of workloads whose VMs never all ran at one time, so that there is no time by which they can be
// judged.
var NeverTogether = view.Check{Name: "never-together", Rank: 220, Run: neverTogether}

func neverTogether(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		w := l.Whole()
		if w == nil || !w.Apart {
			continue
		}
		out = append(out, result.Finding{
			Check: "never-together", Severity: result.Warning, Subject: l.Name, Metric: "VMs", Unit: "count",
			Value: view.Ptr(float64(len(l.Parts))), N: len(l.Parts), NoInterval: "a fact of the schedule, not a sample",
			Basis: "starts and ends of the workload on each VM",
			Sentence: fmt.Sprintf(
				"The %s of %s never all ran at the same time: some ended before others began. Its rate is an average over a changing number of VMs, pauses included.",
				view.Plural(len(l.Parts), "VM"),
				l.Name,
			),
		})
	}
	return out
}

// manyErrors is the share of failed operations from which figures of the rest stop describing the workload.
const manyErrors = 0.01

// Errors counts failed operations; they never stop a workload, so only this tells.
var Errors = view.Check{Name: "errors", Rank: 290, Run: operationErrors}

func operationErrors(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		n := l.Count()
		var failed uint64
		var where []string
		for _, p := range l.Parts {
			if p.Errors > 0 {
				failed += p.Errors
				where = append(where, view.Subject(p))
			}
		}
		if n == 0 && failed == 0 {
			continue
		}
		if len(l.Operations()) == 0 {
			out = append(out, failures(l, failed, where))
			continue
		}
		all := n + failed
		low, high := view.Proportion(failed, all)
		share := float64(failed) / float64(all)
		f := result.Finding{
			Check: "errors", Subject: l.Name, Metric: "failed operations", Unit: "%", Value: view.Ptr(share * 100),
			Low: view.Ptr(low * 100), High: view.Ptr(high * 100),
			N: int(min(all, math.MaxInt)), Limit: view.Ptr(0), Basis: l.Basis(),
			Evidence: []result.Evidence{
				{Name: "failed", Value: float64(failed), Unit: "count"},
				{Name: "completed", Value: float64(n), Unit: "count"},
			},
		}
		if failed > 0 {
			f.Warnings = []string{view.Independent}
		}
		said := firstWords(l)
		switch {
		case failed == 0 && l.Parts[0].FailuresUnknown:
			f = result.Finding{Check: "errors", Subject: l.Name, Metric: "failed operations", Unit: "%",
				Basis:      l.Basis(),
				NoInterval: "what the file holds does not tell failures", Severity: result.Info,
				Sentence: fmt.Sprintf("Whether operations of %s failed is not known: its output does not say.", l.Name)}
		case failed == 0:
			f.Severity, f.Sentence = result.Passed, fmt.Sprintf("No operation of %s failed.", l.Name)
			slow := min(uint64(counted(l, "late")), n)
			if share := float64(slow) / float64(n); share >= manyErrors {
				low, high := view.Proportion(slow, n)
				f.Severity, f.Metric, f.Value = result.Warning, "operations over their limit", view.Ptr(share*100)
				f.Low, f.High, f.Warnings = view.Ptr(low*100), view.Ptr(high*100), []string{view.Independent}
				f.Evidence[0] = result.Evidence{Name: "over the limit", Value: float64(slow), Unit: "count"}
				f.Sentence = fmt.Sprintf("No operation of %s failed, but %s of %s (%s) took longer than the limit that it was given.",
					l.Name, view.SayCount(float64(slow)), view.SayCount(float64(n)), view.Percent(share))
			}
		case strings.Contains(said, result.DataDiffer): // fio counts what it read as done, too
			f.Severity, f.Metric, f.Unit, f.Value = result.Invalid, "operations whose data differ", "count",
				view.Ptr(float64(failed))
			f.Low, f.High, f.NoInterval, f.Warnings = nil, nil, "a count, not a sample", nil
			f.Sentence = fmt.Sprintf("%s of %s failed (on %s)%s. They may be among the %s that it counts as done.",
				view.Plural(int(min(failed, math.MaxInt)), "operation"), l.Name, view.Three(where), said,
				view.SayCount(float64(n)))
		case share >= manyErrors:
			f.Severity = result.Invalid
			f.Sentence = fmt.Sprintf(
				"%s of the operations of %s failed (%s, on %s)%s. The rest does not describe this workload.",
				view.Percent(share),
				l.Name,
				view.SayCount(float64(failed)),
				view.Three(where),
				said,
			)
		default:
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf("%s of %s failed (on %s)%s.",
				view.Plural(int(min(failed, math.MaxInt)), "operation"),
				l.Name, view.Three(where), said)
			if slices.ContainsFunc(l.Parts, (*result.Workload).Distributed) { // else percentiles are the tool's
				f.Sentence += " No percentile includes failed operations."
			}
		}
		out = append(out, f)
	}
	return out
}

// counted is how many operations a generator counts apart under a name, in all or per second of them.
func counted(l *view.Load, name string) (n float64) {
	for _, p := range l.Parts {
		for _, v := range p.Values {
			at := slices.IndexFunc(p.Measures, func(m result.Measure) bool { return m.Name == v.Measure })
			if v.Measure != name || at < 0 {
				continue
			}
			switch p.Measures[at].Unit {
			case "transactions":
				n += v.Value
			case "transactions/s":
				n += v.Value * view.Seconds(p)
			}
		}
	}
	return n
}

// firstWords are what the generator of a part with failed operations says first, with its count where that is told:
// ": ERROR ..."; "" where it says nothing.
func firstWords(l *view.Load) string {
	for _, p := range l.Parts {
		first, more, _ := strings.Cut(p.Message, "\n")
		if p.Errors == 0 || first == "" || p.Ended == result.Lost { // what is said of a loss is said of that
			continue
		}
		for line := range strings.Lines(more) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, first+": ") {
				first = line
				break
			}
		}
		return ": " + strings.TrimSuffix(bounded(first), ".")
	}
	return ""
}

// lastWords are those of the first load generator that failed and had no failed operation, which firstWords tells.
func lastWords(l *view.Load) string {
	for _, p := range l.Parts {
		if how, said, _ := strings.Cut(p.Message, " says: "); p.Ended == result.Failed && p.Errors == 0 && said != "" {
			if own, theirs, more := strings.Cut(said, "; "); more && strings.HasPrefix(own, "plimsoll: ") {
				said = theirs // a tool's own words before those of what ran it
			}
			if said, _, _ = strings.Cut(said, "; its job file is "); said == "nothing" { // but for how it ended
				said = strings.TrimPrefix(how[:max(0, strings.LastIndex(how, "; "))],
					fmt.Sprintf("run: workload %s on %s: ", l.Name, p.VM))
			}
			return ": " + strings.TrimSuffix(bounded(said), ".")
		}
	}
	return ""
}

// bounded is a message's first words, of 300 bytes at most.
func bounded(text string) string {
	const most = 300
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > most {
		if text = strings.ToValidUTF8(text[:most], ""); strings.Contains(text, " ") {
			text = text[:strings.LastIndexByte(text, ' ')]
		}
		return text + "..."
	}
	return text
}

// failures are those of a workload that counts no operations, so that their share is not known.
func failures(l *view.Load, failed uint64, where []string) result.Finding {
	return result.Finding{
		Check: "errors", Subject: l.Name, Severity: result.Warning, Metric: "failures", Unit: "count",
		Value: view.Ptr(float64(failed)),
		N: int(
			min(failed, math.MaxInt),
		), Limit: view.Ptr(0), NoInterval: "what else was done is not counted", Basis: l.Basis(),
		Sentence: fmt.Sprintf("%s reported %s (on %s), out of an unknown number: it counts no operations.", l.Name,
			view.Plural(int(min(failed, math.MaxInt)), "failure"), view.Three(where)),
	}
}

// Saturated looks for service times in the bucket where fio stops counting. Other tools do not.
var Saturated = view.Check{Name: "saturated", Rank: 510, Run: saturated}

func saturated(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		var beyond, n uint64
		for _, p := range l.Parts {
			for _, o := range p.Ops {
				if o.Hist != nil && l.MovesBlocks() {
					beyond += o.Hist.Saturated()
					n += o.Hist.Count()
				}
			}
		}
		if n == 0 {
			continue
		}
		share := float64(beyond) / float64(n)
		low, high := view.Proportion(beyond, n)
		f := result.Finding{
			Check: "saturated", Subject: l.Name, Metric: "operations at the end of the latency scale", Unit: "%",
			Value: view.Ptr(share * 100), Low: view.Ptr(low * 100), High: view.Ptr(high * 100),
			N: int(
				min(n, math.MaxInt),
			), Limit: view.Ptr(0), Basis: l.Basis() + fmt.Sprintf("; percentiles are within ±%.2f %%",
				hist.RelativeError*100),
			Evidence: []result.Evidence{{Name: "at 17 s or beyond", Value: float64(beyond), Unit: "count"}},
		}
		switch {
		case beyond == 0:
			f.Severity = result.Passed
			f.Sentence = fmt.Sprintf("All percentiles of %s lie within the latency scale.", l.Name)
		default:
			f.Severity, f.Warnings = result.Warning, []string{view.Independent}
			f.Sentence = fmt.Sprintf(
				"%s of %s took 17 s or longer, the end of fio's latency scale: the maximum and the highest percentiles are lower bounds.",
				view.Plural(int(min(beyond, math.MaxInt)), "operation"),
				l.Name,
			)
		}
		out = append(out, f)
	}
	return out
}

// saidFailed are the imported outputs that say themselves that the tool failed.
func saidFailed(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		for _, p := range l.Parts {
			if p.Ended != result.Failed || p.Message == "" {
				continue
			}
			out = append(out, result.Finding{
				Check: "lost", Subject: l.Name, Severity: result.Invalid, Metric: "outputs that say they failed",
				Unit: "count", Value: view.Ptr(1), N: 1, Limit: view.Ptr(0),
				NoInterval: "what the tool says of itself", Basis: "the imported file",
				Sentence: fmt.Sprintf("%s (%s) did not end as planned: %s. Its figures are not those of a whole test.",
					l.Name, view.Subject(p), strings.TrimSuffix(p.Message, ".")),
			})
		}
	}
	return out
}

// reported says what totals hold of VMs that a load lost.
func reported(l *view.Load, lost int) string {
	none := 0
	for _, p := range l.Parts {
		if n, _ := view.Totals(p.Ops); n == 0 && p.Ended == result.Lost {
			none++
		}
	}
	switch none {
	case 0:
		return "Totals include what they reported until then."
	case lost:
		return "Totals hold nothing of what they did: no report of theirs was collected."
	}
	return fmt.Sprintf("Totals include what they reported until then, which of %d is nothing.", none)
}

// MachinesLost tells of workloads that did not end as planned, or of whose end there is no record.
var MachinesLost = view.Check{Name: "lost", Rank: 270, Run: machinesLost}

func machinesLost(v *view.Run) []result.Finding {
	var out []result.Finding
	if v.Manifest.Target == result.ImportTarget {
		return saidFailed(v) // what others left does not say how long it was meant to be
	}
	for _, l := range v.Loads {
		by := map[result.Ending][]string{} // VMs
		var faults []result.Mark           // that ended some
		ended := map[time.Time]int{}
		for _, p := range l.Parts {
			by[p.Ended] = append(by[p.Ended], view.Subject(p))
			if p.Ended != result.Lost {
				continue
			}
			if e := v.EndedBy(l, p); e != nil {
				if ended[e.Time]++; ended[e.Time] == 1 {
					faults = append(faults, *e)
				}
			}
		}
		lost, failed, open := by[result.Lost], by[result.Failed], by[result.Unrecorded]
		bad, explained := len(lost)+len(failed)+len(open), 0
		for _, n := range ended {
			explained += n
		}
		f := result.Finding{
			Check: "lost", Subject: l.Name, Severity: result.Warning, Metric: "VMs that did not end as planned",
			Unit: "count", Value: view.Ptr(float64(bad)), N: len(l.Parts), Limit: view.Ptr(0),
			NoInterval: "a count of VMs, not a sample", Basis: "journal and exit of the generator on each VM",
		}
		switch {
		case bad == 0:
			f.Severity, f.Sentence = result.Passed, fmt.Sprintf(
				"%s ended as planned on %s.",
				l.Name,
				view.Plural(len(l.Parts), "VM"),
			)
		case len(lost) > 0:
			f.Sentence = fmt.Sprintf(
				"%s lost %s of %d during the run (%s). %s",
				l.Name,
				view.Plural(len(lost), "VM"),
				len(l.Parts),
				view.Three(lost),
				reported(l, len(lost)),
			)
		case len(failed) > 0:
			f.Sentence = fmt.Sprintf(
				"The load generator of %s failed on %s of %d (%s)%s. Totals include what was reported until then.",
				l.Name,
				view.Plural(len(failed), "VM"),
				len(l.Parts),
				view.Three(failed),
				lastWords(l),
			)
		default:
			why := "the record of the run ends before it"
			if v.Manifest.Error != "" {
				why = "the run failed (" + strings.TrimSuffix(v.Manifest.Error, ".") + ")"
			}
			f.Metric = "VMs without a recorded end"
			f.Sentence = fmt.Sprintf(
				"How %s ended on %s of %d (%s) is not recorded: %s. Totals include what was recorded until then.",
				l.Name,
				view.Plural(len(open), "VM"),
				len(l.Parts),
				view.Three(open),
				why,
			)
		}
		if bad == len(l.Parts) {
			f.Severity = result.Invalid
		}
		if len(lost) > 0 && len(failed) == 0 && explained == len(lost) {
			slices.SortFunc(faults, func(a, b result.Mark) int { return a.Time.Compare(b.Time) })
			var each []string
			for i, e := range faults {
				at, vms := view.ClockOf(e.Time.Sub(v.Data.Start).Seconds()), view.Plural(ended[e.Time], "VM")
				switch {
				case len(faults) == 1:
					each = append(each, fmt.Sprintf("%s lost %s of %d at the fault at %s", l.Name, vms, len(l.Parts),
						at))
				case i == 0:
					each = append(each, fmt.Sprintf("%s lost %s of %d at %q at %s", l.Name, vms, len(l.Parts), e.Text,
						at))
				default:
					each = append(each, fmt.Sprintf("%s at %q at %s", vms, e.Text, at))
				}
			}
			f.Severity = result.Info
			f.Sentence = view.Three(each) + ". " + reported(l, len(lost))
		}
		out = append(out, f)
	}
	return out
}
