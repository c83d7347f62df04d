package storage

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Plain says how a job on a machine compares with the same job beside it on its node.
var Plain = view.Check{Name: "plain", Rank: 264, Run: plain}

// plainLevel is the confidence of its intervals.
const plainLevel = 0.95

func plain(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, p := range v.Data.Plain {
		if len(p.Turns) > 1 {
			out = append(out, beside(p))
		}
	}
	return out
}

func beside(p result.Plain) result.Finding {
	rate, low, high := ratio(p.Turns, func(d result.PlainDone) float64 { return d.OpsPerSecond })
	mean, meanLow, meanHigh := ratio(p.Turns, func(d result.PlainDone) float64 { return d.MeanSeconds })
	f := result.Finding{
		Check: "plain", Severity: result.Info, Subject: p.Workload, Metric: "rate on the VM / rate beside it",
		Value: view.Ptr(rate), Unit: "ratio", Low: view.Ptr(low), High: view.Ptr(high), Confidence: plainLevel,
		N: len(p.Turns),
		Basis: fmt.Sprintf("%s of each, by turns, after the set-up; geometric means of the ratios of pairs, intervals by "+
			"Student's t of their logarithms", view.Plural(len(p.Turns), "turn")),
		Sentence: fmt.Sprintf("%s on %s did %s times the operations a second of the same job beside it on %s (%s to %s), "+
			"and an operation took %s times as long (%s to %s). Beside it is %s.", p.Workload, p.VM, factor(rate), p.Node,
			factor(low), factor(high), factor(mean), factor(meanLow), factor(meanHigh), p.How),
		Evidence: []result.Evidence{{Name: "time on the VM / time beside it", Value: mean, Unit: "ratio"}},
	}
	if low <= 1 && 1 <= high {
		f.Sentence = strings.Replace(f.Sentence, "), and", ": not told apart), and", 1)
	}
	if meanLow <= 1 && 1 <= meanHigh {
		f.Sentence = strings.Replace(f.Sentence, "). Beside", ": not told apart). Beside", 1)
	}
	if n := enough(p.Turns); n > result.MostPlainTurns {
		f.Sentence += fmt.Sprintf(" Its turns differ too much for a ratio known within %g %%.", 100*near)
	} else if n > len(p.Turns) {
		f.Sentence += fmt.Sprintf(" If its turns go on to differ so, it takes some %d of them to know the ratio of rates "+
			"within %g %%: --compare-plain=%[1]d.", n, 100*near)
	}
	for i, t := range p.Turns {
		f.Evidence = append(f.Evidence,
			result.Evidence{Name: fmt.Sprintf("turn %d on the VM", i+1), Value: t.Machine.OpsPerSecond, Unit: "ops/s"},
			result.Evidence{Name: fmt.Sprintf("turn %d beside it", i+1), Value: t.Beside.OpsPerSecond, Unit: "ops/s"})
	}
	return f
}

// near is how exactly a ratio of rates is worth knowing.
const near = 0.02

// enough is how many turns that differ as these do leave an interval of near to both sides; more than MostPlainTurns
// where no such number is as many.
func enough(turns []result.PlainTurn) int {
	_, spread := stat.MeanStdDev(logsOf(turns, func(d result.PlainDone) float64 { return d.OpsPerSecond }), nil)
	n := len(turns)
	wide := func() float64 { return resample.StudentT(plainLevel, float64(n-1)) * spread / math.Sqrt(float64(n)) }
	for n <= result.MostPlainTurns && wide() > math.Log1p(near) {
		n++
	}
	return n
}

// logsOf are the logarithms of the ratios of pairs.
func logsOf(turns []result.PlainTurn, of func(result.PlainDone) float64) []float64 {
	logs := make([]float64, len(turns))
	for i, t := range turns {
		logs[i] = math.Log(of(t.Machine) / of(t.Beside))
	}
	return logs
}

// ratio is the geometric mean of the ratios of pairs, with its interval.
func ratio(turns []result.PlainTurn, of func(result.PlainDone) float64) (mean, low, high float64) {
	logs, n := logsOf(turns, of), float64(len(turns))
	middle, spread := stat.MeanStdDev(logs, nil)
	wide := resample.StudentT(plainLevel, n-1) * spread / math.Sqrt(n)
	return math.Exp(middle), math.Exp(middle - wide), math.Exp(middle + wide)
}

// factor prints a ratio as exactly as it is worth.
func factor(x float64) string { return fmt.Sprintf("%.3g", x) }
