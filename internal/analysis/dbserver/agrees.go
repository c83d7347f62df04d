package dbserver

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// When a server's count of requests and a load's count of transactions are taken to be of the same thing.
const (
	smear = 30.0 // seconds over which a rate of requests is taken: so many at the beginning are left out
	apart = 0.10 // of the load's rate
)

// Agrees puts the requests that a server counted beside the transactions that its load did: a driver of stored
// procedures sends one for each.
var Agrees = view.Check{Name: "server-agrees", Rank: 416, Run: agrees}

func agrees(v *view.Run) (out []result.Finding) {
	machines := map[string]bool{}
	for i := range v.Data.Series {
		if s := &v.Data.Series[i]; s.Measure == result.DatabaseBatches {
			machines[s.Machine] = true
		}
	}
	if len(machines) != 1 || len(v.Loads) != 1 {
		return nil // whose requests they are is not known
	}
	for machine := range machines {
		l := v.Loads[0]
		server := track(v, l, []string{machine}, result.DatabaseBatches, "")
		own, what, ok := ownRate(v, l)
		if server == nil || !ok {
			return nil
		}
		values, _ := view.FiniteOf(server.Ops[min(len(server.Ops), int(math.Ceil(smear/server.Step))):])
		if len(values) < fewestPoints {
			return nil
		}
		theirs := view.Total(values) / float64(len(values))
		f := result.Finding{Check: "server-agrees", Subject: l.Name, Severity: result.Fine, Unit: "ratio",
			Metric: "requests that the server counted for each of the load's transactions", N: len(values),
			Value: view.Ptr(theirs / own), Limit: view.Ptr(1), NoInterval: "two counts of the same time, not sampled",
			Basis: fmt.Sprintf("batch requests of %s, rates over %s, against %s", machine, view.SayDuration(smear),
				what),
			Evidence: []result.Evidence{
				{Name: "requests by the server", Value: view.Round(theirs * 60), Unit: "per minute"},
				{Name: "transactions by the load", Value: view.Round(own * 60), Unit: "per minute"},
			}}
		said := fmt.Sprintf("The database server on %s counted %s requests a minute under %s, which did "+
			"%s transactions a minute", machine, perMinute(theirs), l.Name, perMinute(own))
		switch ratio := theirs / own; {
		case math.Abs(ratio-1) <= apart:
			f.Sentence = said + ": they agree."
		case ratio > 1:
			f.Severity = result.Caution
			f.Sentence = said + ": others used the server at the same time, or each transaction takes more than one " +
				"request."
		default:
			f.Severity = result.Caution
			f.Sentence = said + ": the load tells of more than the server did, or another instance is counted. Look at " +
				"which server the exporter is on before the figures are used."
		}
		out = append(out, f)
	}
	return out
}

// perMinute says a rate.
func perMinute(rate float64) string { return unit.Thousands(int64(math.Round(rate * 60))) }

// ownRate is how many transactions a second a load did by its own count, and by which.
func ownRate(v *view.Run, l *view.Load) (rate float64, what string, ok bool) {
	for _, m := range l.Declared() {
		if m.Kind != result.Level || m.Unit != "TPM" {
			continue
		}
		c := v.Sum(m.Name, func(s *result.Series) bool { return s.Workload == l.Name && s.Group == l.Group })
		if c == nil {
			continue
		}
		if c = c.Within(l.Times()); c == nil {
			continue
		}
		values, _ := view.FiniteOf(slices.Clone(c.Ops))
		if mean := view.Total(values) / float64(max(len(values), 1)); mean > 0 {
			return mean / 60, m.Name + " of the load", true
		}
	}
	if n, s := l.Completed(), l.Longest(); n > 0 && s > 0 {
		return float64(n) / s, "operations of the load", true
	}
	return 0, "", false
}
