package dbserver

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// When a server's count of requests and a load's count of transactions are taken to be of the same thing.
const (
	smear = 30.0 // seconds over which a rate of requests is taken
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
		own, perSecond := counted(l)
		ours := v.TrackOf(l, own)
		server := v.Sum(result.DatabaseBatches, func(s *result.Series) bool { return s.Machine == machine })
		if ours == nil || server == nil {
			return nil
		}
		// A rate over half a minute is about the middle of it.
		from, to := l.Judged()
		half := time.Duration(smear / 2 * float64(time.Second))
		values, _ := view.FiniteOf(server.Between(from.Add(2*half), to).Ops)
		did, _ := view.FiniteOf(ours.Between(from.Add(half), to.Add(-half)).Ops)
		if len(values) < fewestPoints || len(did) < fewestPoints || view.Total(did) == 0 {
			return nil
		}
		theirs := view.Total(values) / float64(len(values))
		rate := view.Total(did) / float64(len(did)) * perSecond
		f := result.Finding{Check: "server-agrees", Subject: l.Name, Severity: result.Passed, Unit: "ratio",
			Metric: "requests that the server counted for each of the load's transactions", N: len(values),
			Value: view.Ptr(theirs / rate), Limit: view.Ptr(1), NoInterval: "two counts of the same time, not sampled",
			Basis: fmt.Sprintf("batch requests of %s, rates over %s, against %s", machine, view.SayDuration(smear),
				own.Name),
			Evidence: []result.Evidence{
				{Name: "requests by the server", Value: view.Round(theirs * 60), Unit: "per minute"},
				{Name: "transactions by the load", Value: view.Round(rate * 60), Unit: "per minute"},
			}}
		said := fmt.Sprintf("The database server on %s counted %s requests a minute under %s, which did "+
			"%s transactions a minute", machine, perMinute(theirs), l.Name, perMinute(rate))
		switch ratio := theirs / rate; {
		case math.Abs(ratio-1) <= apart:
			f.Sentence = said + ": they agree."
		case ratio > 1:
			f.Severity = result.Warning
			f.Sentence = said + ": others used the server at the same time, or each transaction takes more than one " +
				"request."
		default:
			f.Severity = result.Warning
			f.Sentence = said + ": the load tells of more than the server did, or another instance is counted. Look at " +
				"which server the exporter is on before the figures are used."
		}
		out = append(out, f)
	}
	return out
}

// perMinute says a rate.
func perMinute(rate float64) string { return unit.Thousands(int64(math.Round(rate * 60))) }

// counted is by what a load counts its transactions, and what one of it is in transactions a second.
func counted(l *view.Load) (q view.Quantity, perSecond float64) {
	for _, m := range l.Declared() {
		if m.Kind == result.Level && m.Unit == "TPM" {
			return view.MeasureOf(m), 1.0 / 60
		}
	}
	return l.Rate(), 1
}
