package plausibility

import (
	"fmt"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// atLimit is the share of a quota from which on it, and not what is below it, is what was measured.
const atLimit = 0.93

// IOLimit compares what was moved with what a quota of the run's group allows on the device (io.max,
// blkio.throttle).
var IOLimit = view.Check{Name: "io-limit", Rank: 355, Run: ioLimit}

func ioLimit(v *view.Run) []result.Finding {
	var out []result.Finding
	places := max(1, len(result.Find(v.Manifest.Environment, result.StorageSize)))
	for _, k := range []struct {
		kind result.FactKind
		op   result.Block
		did  string
		rate bool
	}{
		{result.LimitReadRate, result.BlockRead, "Reads", true},
		{result.LimitWriteRate, result.BlockWrite, "Writes", true},
		{result.LimitReadBandwidth, result.BlockRead, "Reads", false},
		{result.LimitWriteBandwidth, result.BlockWrite, "Writes", false},
	} {
		facts := result.Find(v.Manifest.Environment, k.kind)
		if len(facts) != places { // one storage without a limit bounds nothing
			continue
		}
		limit := 0.0
		for _, f := range facts {
			limit += f.Number
		}
		measure, units, say := func(m moved) float64 { return m.bytes[k.op] }, "bytes/s", func(x float64) string {
			return view.SayBytes(x) + " a second"
		}
		if k.rate {
			measure, units, say = func(m moved) float64 { return m.ops[k.op] }, result.OperationsUnit,
				func(x float64) string { return view.SayCount(x) + " a second" }
		}
		m, ok := busiest(v, measure)
		if !ok || !(limit > 0) {
			continue
		}
		share := measure(m) / limit
		f := result.Finding{
			Check: "io-limit", Subject: "run", Metric: "share of the quota of " + strings.ToLower(k.did), Unit: "%",
			Value: view.Ptr(100 * share), N: len(facts), Limit: view.Ptr(100 * atLimit),
			NoInterval: "a mean over the measured time against a quota",
			Basis: "operations of the generators on " + m.who +
				"; the quota is that of the run's group or of one above it",
			Evidence: []result.Evidence{{Name: "quota (" + facts[0].Value + ")", Value: limit, Unit: units},
				{Name: "moved", Value: measure(m), Unit: units}},
		}
		said := fmt.Sprintf("%s were at %s on average, where the run's group is allowed %s (%s)", k.did,
			say(measure(m)), say(limit), facts[0].Value)
		if share >= atLimit {
			f.Severity = result.Warning
			f.Sentence = said + ": that quota was measured, not the storage."
		} else {
			f.Severity = result.Passed
			f.Sentence = said + "."
		}
		out = append(out, f)
	}
	return out
}
