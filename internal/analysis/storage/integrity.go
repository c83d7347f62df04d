package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// LostWrites tells whether what a storage had acknowledged was there when it was read back: of workloads that declare
// the measures of a verification, as the generator integrity does, and of those that only verify what they read, as a
// job of fio with verify.
var LostWrites = view.Check{Name: "lost-writes", Rank: 105, Run: lostWrites}

// Measures of a verification, all in blocks.
const (
	checked   = "checked" // that were acknowledged, and the storage was held to
	lost      = "lost"    // of those
	unclaimed = "unclaimed"
)

// acknowledged is the measure of what writes the blocks that are held to it.
const acknowledged = "acknowledged"

func lostWrites(v *view.Run) (out []result.Finding) {
	if v.Manifest.Simulated {
		return nil // nothing is read back there
	}
	for _, l := range v.Loads {
		declared := l.Declared()
		if !hasBlocks(declared, checked) || !hasBlocks(declared, lost) {
			if l.Verifies() && l.Count() > 0 {
				out = append(out, verifiedOf(v, l))
			}
			continue
		}
		counts, bad := map[string]float64{}, []string{}
		finished := 0
		for _, p := range l.Parts {
			if p.Ended == result.Finished {
				finished++
			}
			for _, m := range p.Values {
				if !view.IsFinite(m.Value) {
					continue
				}
				counts[m.Measure] += m.Value
				if m.Measure == lost && m.Value > 0 {
					bad = append(bad, p.VM)
				}
			}
		}
		out = append(out, lostOf(v, l, declared, counts, bad, finished))
	}
	return out
}

func hasBlocks(declared []result.Measure, name string) bool {
	return slices.ContainsFunc(declared, func(m result.Measure) bool { return m.Name == name && m.Unit == "blocks" })
}

// lostOf is the finding of one verification.
func lostOf(v *view.Run, l *view.Load, declared []result.Measure, counts map[string]float64, bad []string,
	finished int) result.Finding {
	n := counts[checked]
	f := result.Finding{Check: "lost-writes", Subject: l.Name, Severity: result.Passed, Unit: "blocks",
		Metric: "acknowledged blocks that are not there", Value: view.Ptr(counts[lost]), Limit: view.Ptr(0),
		N: int(n), NoInterval: "every block was read, none was sampled",
		Basis: "the stamps of all blocks of " + view.Plural(len(l.Parts), "VM") +
			", against what the storage had acknowledged and the run folder keeps"}
	var kinds []string
	for _, m := range declared {
		if counts[m.Name] == 0 || m.Unit != "blocks" {
			continue
		}
		f.Evidence = append(f.Evidence, result.Evidence{Name: m.Name, Value: counts[m.Name], Unit: m.Unit})
		if m.Name != checked && m.Name != lost && m.Name != unclaimed {
			kinds = append(kinds, blocks(counts[m.Name])+" "+m.Name)
		}
	}
	up, end, severity := faultsBefore(v, l)
	switch {
	case counts[lost] > 0:
		f.Severity = result.Invalid
		f.Sentence = fmt.Sprintf("%s: %s of %s acknowledged writes are not there: %s. Unless somebody else wrote there, "+
			"the storage of %s acknowledges what it can lose. The notes and the raw output name the addresses.", l.Name,
			blocks(counts[lost]), blocks(n), strings.Join(kinds, ", "), unit.List(bad, 5))
	case finished < len(l.Parts):
		f.Severity, f.Value = result.Warning, nil
		f.Sentence = fmt.Sprintf("%s came to an end on %d of %s only, so it is not known whether every acknowledged "+
			"write is there.", l.Name, finished, view.Plural(len(l.Parts), "VM"))
	case n == 0:
		f.Severity, f.Value = result.Warning, nil
		f.Sentence = l.Name + " held the storage to nothing: no write was acknowledged before the end of the record."
	case len(kinds) > 0:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf("%s: every acknowledged write%s was there, but where nothing had been acknowledged the "+
			"storage holds what no write had put there, or cannot be read: %s. The notes and the raw output name the "+
			"addresses.", l.Name, up, strings.Join(kinds, ", "))
	default:
		f.Severity = severity
		f.Sentence = fmt.Sprintf("%s: every acknowledged write%s was there, in all %s blocks%s.", l.Name, up, blocks(n), end)
	}
	return f
}

// verifiedOf is the finding of a workload whose reads fail where they are not what was written.
func verifiedOf(v *view.Run, l *view.Load) result.Finding {
	n, failed, finished := l.Count(), uint64(0), 0
	for _, p := range l.Parts {
		failed += p.Errors
		if p.Ended.Planned() {
			finished++
		}
	}
	f := result.Finding{Check: "lost-writes", Subject: l.Name, Severity: result.Passed, Unit: "reads",
		Metric: "reads that failed", Value: view.Ptr(float64(failed)), Limit: view.Ptr(0), N: int(n),
		NoInterval: "every read was verified, none was sampled",
		Basis:      "the checksums and addresses in all blocks that were read, on " + view.Plural(len(l.Parts), "VM")}
	up, end, severity := faultsBefore(v, l)
	switch {
	case failed > 0:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf("%s: %s reads failed: of blocks that are missing, old or damaged, or that could not be "+
			"read. The raw output names them.", l.Name, blocks(float64(failed)))
	case finished < len(l.Parts):
		f.Severity, f.Value = result.Warning, nil
		f.Sentence = fmt.Sprintf("%s came to an end on %d of %s only, so it is not known whether everything written is "+
			"there.", l.Name, finished, view.Plural(len(l.Parts), "VM"))
	default:
		f.Severity = severity
		f.Sentence = fmt.Sprintf("%s: all it read back was as it had been written%s, %s reads%s.", l.Name, up,
			blocks(float64(n)), end)
	}
	return f
}

// faultsBefore says up to which fault what was verified had been written, "" for none, how the sentence ends that
// nothing is missing, and what that is worth.
func faultsBefore(v *view.Run, l *view.Load) (up, end string, severity result.Severity) {
	begin, _ := l.Span()
	faults := slices.DeleteFunc(v.Faults(), func(f view.Fault) bool { return f.Start.After(begin) })
	if len(faults) > 0 && faults[len(faults)-1].Start.Before(written(v, l, begin)) {
		return "", "; no fault came after they were written, so this says only that they can be read back", result.Passed
	}
	if len(faults) == 0 {
		return "", "; no fault came before, so this says only that they can be read back", result.Passed
	}
	up = fmt.Sprintf(" up to the moment of the fault (%s)", faults[len(faults)-1].Say())
	if v.OneHost {
		end = "; but the nodes are parts of one host, whose kernel lived through it and keeps what it has taken: this " +
			"does not judge the storage below"
	}
	return up, end, result.Info
}

// written is when the write began whose blocks a verification that began at a time holds the storage to: the last one
// on the same disk of the same VM. It is zero when the run does not tell.
func written(v *view.Run, l *view.Load, begin time.Time) (from time.Time) {
	for _, w := range v.Data.Workloads {
		same := func(p *result.Workload) bool {
			return p.VM == w.VM && p.Group == w.Group && slices.EqualFunc(p.Streams, w.Streams,
				func(a, b result.Stream) bool { return a.Device == b.Device })
		}
		if hasBlocks(w.Measures, acknowledged) && w.Start.Before(begin) && w.Start.After(from) &&
			slices.ContainsFunc(l.Parts, same) {
			from = w.Start
		}
	}
	return from
}

// blocks says a count.
func blocks(n float64) string { return unit.Thousands(int64(n)) }
