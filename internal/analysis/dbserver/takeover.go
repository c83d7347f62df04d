package dbserver

import (
	"fmt"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// LostCommits tells whether the commits that a server had acknowledged are on the standby that took over, and how long
// there were none: of workloads that declare the measures of a ledger, as the generator failover does.
var LostCommits = view.Check{Name: "lost-commits", Rank: 106, Run: lostCommits}

// Measures of a ledger.
const (
	acknowledged = "acknowledged"
	lost         = "lost" // in commits, like the one before and the two after
	inDoubt      = "in_doubt"
	kept         = "in_doubt_kept"
	without      = "without_commits" // in seconds, like all that follow
	givenUp      = "until_given_up"
	promotion    = "promotion"
	reach        = "lost_reach"
	alive        = "given_up_alive"
)

func lostCommits(v *view.Run) (out []result.Finding) {
	if v.Manifest.Simulated {
		return nil // nothing is read back there
	}
	for _, l := range v.Loads {
		for _, m := range l.Declared() {
			if m.Name == lost && m.Unit == "commits" {
				out = append(out, ledgerOf(v, l))
			}
		}
	}
	return out
}

// ledgerOf is the finding of one ledger.
func ledgerOf(v *view.Run, l *view.Load) result.Finding {
	n := map[string]float64{}
	for _, m := range l.Parts[len(l.Parts)-1].Values { // a ledger has one machine
		if view.IsFinite(m.Value) {
			n[m.Measure] = m.Value
		}
	}
	replication := result.ValueOf(v.Manifest.Environment, result.LoadGroup+l.Name, "replication")
	f := result.Finding{Check: "lost-commits", Subject: l.Name, Severity: result.Info, Unit: "commits",
		Metric: "acknowledged commits that are not there", Value: view.Ptr(n[lost]), Limit: view.Ptr(0),
		N:          int(n[acknowledged]),
		NoInterval: "every commit was looked for, none was sampled; one failover says nothing of the next",
		Basis:      "the clients' ledger of what servers had acknowledged, against the rows that are there at the end"}
	for _, name := range []string{acknowledged, lost, inDoubt, kept} {
		f.Evidence = append(f.Evidence, result.Evidence{Name: name, Value: n[name], Unit: "commits"})
	}
	for _, name := range []string{without, givenUp, promotion, reach, alive} {
		if s, ok := n[name]; ok {
			f.Evidence = append(f.Evidence, result.Evidence{Name: name, Value: s, Unit: "s"})
		}
	}
	all := unit.Thousands(int64(n[acknowledged]))
	_, counted := n[lost]
	_, over := n[without]
	switch {
	case !counted:
		f.Severity, f.Value = result.Warning, nil
		f.Sentence = l.Name + " did not come to its end, so it is not known whether every acknowledged commit is there."
		return f
	case n[lost] > 0 && !over:
		f.Severity = result.Invalid
		f.Sentence = fmt.Sprintf("%s: %s of %s acknowledged commits are not there, on a server that was never "+
			"taken away.", l.Name, unit.Thousands(int64(n[lost])), all)
		return f
	case !over:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("%s: all of %s acknowledged commits are there; no standby took over%s, so "+
			"this says only that they can be read back.", l.Name, all, late(v, l))
		return f
	case n[lost] > 0:
		f.Severity = result.Warning
		said := fmt.Sprintf("%s replication acknowledges a commit before the standby has it", replication)
		if replication == "synchronous" {
			f.Severity = result.Invalid
			said = "although replication was synchronous"
		}
		are, since := "are", fmt.Sprintf("the first of them acknowledged %s before the last of the server that was lost",
			view.SayDuration(n[reach]))
		if n[lost] == 1 {
			are = "is"
		}
		if n[reach] == 0 {
			since = "the last that the server acknowledged"
		}
		f.Sentence = fmt.Sprintf("%s: %s of %s acknowledged commits %s not on the standby that took over, %s: %s",
			l.Name, unit.Thousands(int64(n[lost])), all, are, since, said)
	default:
		f.Sentence = fmt.Sprintf("%s: all of %s acknowledged commits are on the standby that took over, with %s "+
			"replication", l.Name, all, replication)
		if replication != "synchronous" {
			f.Sentence += ", which does not wait for the standby: another failover may lose some"
		}
	}
	f.Sentence += fmt.Sprintf("; for %s nothing was committed: %s until the server was given up, %s until the standby "+
		"had taken over, and the rest to connect to it.", view.SayDuration(n[without]), view.SayDuration(n[givenUp]),
		view.SayDuration(n[promotion]))
	if since, was := n[alive]; was {
		if f.Severity != result.Invalid {
			f.Severity = result.Warning
		}
		f.Sentence += fmt.Sprintf(" The server that was given up was not lost, only silent: it answered %s later and had not "+
			"stopped. Have it given up later (give_up).", view.SayDuration(since))
	}
	return f
}

// late says that a load was over when the first fault came, "" where it was not.
func late(v *view.Run, l *view.Load) string {
	_, end := l.Span()
	faults := v.Faults()
	if len(faults) == 0 || !faults[0].Start.After(end) {
		return ""
	}
	return fmt.Sprintf(" (the load had ended %s before %s)", view.SayDuration(faults[0].Start.Sub(end).Seconds()),
		faults[0].Say())
}
