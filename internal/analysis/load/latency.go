package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// responseTime is the latency of operations from when they were due.
const responseTime = "response time"

// LatencyKind says what the times of the run are. A generator that waits for an answer before it sends again sends
// less while the server stands still, so its service times hold few of the waits that users would have had
// (coordinated omission); where a rate was offered on a schedule, only the time from the intended start tells.
var LatencyKind = view.Check{Name: "latency-kind", Rank: 460, Run: latencyKind}

func latencyKind(v *view.Run) []result.Finding {
	var service, response, hidden, scheduled []string
	var worst *view.Load
	least, asked := 1.0, false // whether some rate was asked for
	for _, l := range v.Loads {
		if l.Count() == 0 || !l.Timed() {
			continue
		}
		if l.Parts[0].Latency == responseTime {
			response = append(response, l.Name)
			continue
		}
		service = append(service, l.Name)
		if slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			return slices.ContainsFunc(p.Streams, func(stream result.Stream) bool { return stream.OpenLoop })
		}) {
			scheduled = append(scheduled, l.Name)
		}
		_, limited, unlimited := l.Offered()
		each, _ := rateOf(v, l)
		if each > 0 {
			limited, unlimited = 1, 0
		}
		asked = asked || limited > 0
		var want, got, high float64 // while its VMs ran; high: as far as chance goes, in a count of arrivals at random
		for _, p := range l.Parts {
			if s := view.Seconds(p); s > 0 {
				rate, _, _ := view.Offered(p.Streams)
				n, _ := view.Totals(p.Ops)
				_, hi := view.Poisson(n)
				want, got, high = want+max(rate, each), got+float64(n)/s, high+hi/s
			}
		}
		if limited > 0 && unlimited == 0 && l.Alike() && high < want*(1-view.RateTolerance) {
			hidden = append(hidden, l.Name)
			if got/want < least {
				worst, least = l, got/want
			}
		}
	}
	if len(service)+len(response) == 0 {
		return nil
	}
	f := result.Finding{
		Check: "latency-kind", Subject: "run", Severity: result.Passed,
		Metric: "workloads whose times are service times", Unit: "count", Value: view.Ptr(float64(len(service))),
		N:          len(service) + len(response),
		NoInterval: "a property of the generators", Basis: "what each generator records; percentiles are from merged histograms and never averaged",
	}
	switch {
	case worst != nil:
		f.Severity, f.Limit = result.Warning, view.Ptr(1-view.RateTolerance)
		f.Metric, f.Unit, f.Value = "achieved ÷ offered", "ratio", view.Ptr(least)
		behind, their := fmt.Sprintf("%s missed its target rate (%s of it)", hidden[0], view.Percent(least)), "its"
		if len(hidden) > 1 {
			behind, their = fmt.Sprintf("%s missed their target rates (%s most, at %s of its rate)", view.Three(hidden),
				worst.Name, view.Percent(least)), "their"
		}
		f.Sentence = fmt.Sprintf(
			"%s, and %s latencies are service times (from the actual send): the wait before a late send is in no percentile. A user on that schedule waited longer.",
			behind, their)
	case len(scheduled) > 0:
		f.Severity = result.Info
		verb, their, rate := "was", "its", "rate"
		if len(scheduled) > 1 {
			verb, their, rate = "were", "their", "rates"
		}
		f.Sentence = fmt.Sprintf(
			"%s %s open-loop and met %s target %s on average while running, but %s latencies are service times (from the actual send): the wait before a late send is in no percentile.",
			view.Three(scheduled), verb, their, rate, their)
	case len(response) == 0 && v.Manifest.Target == result.ImportTarget && !ratesTold(v):
		f.Severity = result.Info
		f.Sentence = "All latencies are service times, from the actual send to completion. " +
			"Whether there was a target rate, and whether it was met, is not known: if it was missed, the wait before a late send is in no percentile."
	case len(response) == 0 && !asked:
		f.Sentence = "All latencies are service times, from the actual send to completion; no target rate was asked for."
	case len(response) == 0:
		f.Sentence = "All latencies are service times, from the actual send to completion; every target rate was met."
	case len(service) == 0:
		f.Sentence = "All latencies are response times, from the intended send to completion."
	default:
		f.Sentence = fmt.Sprintf(
			"Latencies of %s are response times, those of %s service times: do not compare the two.",
			view.Three(response), view.Three(service))
		f.Severity = result.Info
	}
	return []result.Finding{f}
}

// ratesTold reports whether all that ran says what rate it was asked for, or that it was asked for none.
func ratesTold(v *view.Run) bool {
	return !slices.ContainsFunc(v.Loads, func(l *view.Load) bool {
		if _, told := rateOf(v, l); told {
			return false
		}
		return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			return len(p.Streams) == 0 || slices.ContainsFunc(p.Streams,
				func(o result.Stream) bool { return o.Depth == 0 })
		})
	})
}

// rateOf is the rate that an imported file says was asked of each of a workload's clients where no streams tell it, 0
// for as much as can be, and whether it says so.
func rateOf(v *view.Run, l *view.Load) (rate float64, told bool) {
	for _, f := range v.Manifest.Environment {
		if v.Manifest.Target != result.ImportTarget || f.Name != "rate" || f.Group != l.Name ||
			len(l.Parts[0].Streams) > 0 {
			continue
		}
		number, _, _ := strings.Cut(f.Value, " ")
		if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && view.IsFinite(n) {
			return n, true
		}
		return 0, strings.Contains(f.Value, "MAX")
	}
	return 0, false
}

// saidAtOnce is how many an imported file says were at work at once in a workload, 0 where it does not.
func saidAtOnce(v *view.Run, l *view.Load) (n float64) {
	for _, f := range v.Manifest.Imported {
		if f.Workload == l.Name {
			n += f.Concurrency
		}
	}
	return n
}
