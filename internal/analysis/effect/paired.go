package effect

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
)

// PairedComparison is the outcome for pairs.
type PairedComparison struct {
	Pairs      int
	Difference Estimate // mean of candidate − baseline
	Ratio      Estimate // geometric mean of candidate ÷ baseline; NaN with a reason unless all values are positive
	Shift      Estimate // Hodges–Lehmann: median of the means of all pairs of differences
	SignedRank Test     // Wilcoxon (1945), differences of zero left out
	Verdict    Verdict
	Warnings   []string
}

// Paired compares a candidate with the baseline run beside it, pair by pair: the design for a system that
// drifts, since what both runs of a pair share cancels.
func Paired(baseline, candidate []float64, o Options) (PairedComparison, error) {
	o, err := o.filled()
	err = errors.Join(err, finite("baseline", baseline), finite("candidate", candidate))
	if len(baseline) != len(candidate) {
		err = errors.Join(
			err,
			fmt.Errorf("effect: %d baseline and %d candidate values: pairs need as many of each", len(baseline),
				len(candidate)),
		)
	}
	if err != nil {
		return PairedComparison{}, err
	}
	p := PairedComparison{Pairs: len(baseline)}
	differences, logs, positive := make([]float64, p.Pairs), make([]float64, p.Pairs), true
	for i := range differences {
		differences[i] = candidate[i] - baseline[i]
		logs[i] = math.Log(candidate[i] / baseline[i])
		positive = positive && candidate[i] > 0 && baseline[i] > 0
	}
	p.Difference = meanByT(differences, o.Confidence, "paired t")
	p.Ratio = Estimate{Value: math.NaN(), Interval: resample.None("a ratio needs every value above zero")}
	if positive {
		e := meanByT(logs, o.Confidence, "paired t on logarithms")
		p.Ratio = Estimate{Value: math.Exp(e.Value), Interval: e.Interval.Map(math.Exp)}
	}
	p.Shift, p.SignedRank = signedRank(differences, o.Confidence)
	if p.Pairs < 6 {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%d pairs: fewer than 6 cannot reach 5 %% in a signed-rank test", p.Pairs))
	}
	if zeros := count(differences, 0); zeros > 0 {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%d pairs do not differ at all and are left out of the signed-rank test", zeros))
	}
	p.Verdict = Decide(relativeInterval(p.Ratio, p.Difference, stat.Mean(baseline, nil)), o.Threshold, o.Direction)
	return p, nil
}

func count(x []float64, v float64) (n int) {
	for _, w := range x {
		if w == v {
			n++
		}
	}
	return n
}

func meanByT(x []float64, confidence float64, method string) Estimate {
	e := Estimate{Value: stat.Mean(x, nil)}
	if len(x) < 2 {
		e.Interval = resample.None("one pair shows no spread: repeat at least 6 times")
		return e
	}
	half := resample.StudentT(confidence, float64(len(x)-1)) * stat.StdDev(x, nil) / math.Sqrt(float64(len(x)))
	e.Interval = resample.Interval{Low: e.Value - half, High: e.Value + half, Confidence: confidence, Method: method}
	return e
}

// walshUpTo limits the O(n²) averages of pairs of differences.
const walshUpTo = 1000

// signedRank gives Wilcoxon's test and the pseudo-median with Tukey's interval (Hollander and Wolfe 1999, sections
// 3.1 to 3.3).
func signedRank(differences []float64, confidence float64) (Estimate, Test) {
	n := len(differences)
	nonzero := slices.DeleteFunc(slices.Clone(differences), func(d float64) bool { return d == 0 })
	test := Test{P: 1}
	if m := len(nonzero); m > 0 {
		size := make([]float64, m)
		for i, d := range nonzero {
			size[i] = math.Abs(d)
		}
		ranks, ties := doubledRanks(size)
		sum := 0
		for i, d := range nonzero {
			if d > 0 {
				sum += ranks[i]
			}
		}
		test.Statistic = float64(sum) / 2
		if m <= exactUpTo {
			test.P, test.Exact = tails(signSums(ranks), sum), true
		} else {
			k := float64(m)
			test.P = normalTails(test.Statistic-k*(k+1)/4, k*(k+1)*(2*k+1)/24-ties/48)
		}
	}
	if n > walshUpTo {
		return Estimate{
			Value:    resample.Median(differences),
			Interval: resample.None(fmt.Sprintf("more than %d pairs: see the mean difference", walshUpTo)),
		}, test
	}
	var walsh []float64
	for i := range differences {
		for j := range i + 1 {
			walsh = append(walsh, (differences[i]+differences[j])/2)
		}
	}
	slices.Sort(walsh)
	e := Estimate{Value: resample.Quantile(walsh, 0.5)}
	cut, tail := 0, (1-confidence)/2
	if n <= exactUpTo {
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = i + 1
		}
		cut = cutoff(signSums(ranks), 0, tail)
	} else {
		k := float64(n)
		cut = int(math.Floor(k*(k+1)/4 - distuv.UnitNormal.Quantile(1-tail)*math.Sqrt(k*(k+1)*(2*k+1)/24)))
	}
	if cut < 1 {
		e.Interval = resample.None(
			fmt.Sprintf("%d pairs: even differences of one sign would not be rare enough, 6 are needed at 95 %%", n))
		return e, test
	}
	e.Interval = resample.Interval{
		Low:        walsh[cut-1],
		High:       walsh[len(walsh)-cut],
		Confidence: confidence,
		Method:     "Hodges–Lehmann and Tukey",
	}
	return e, test
}

// signSums counts, for every total, the choices of signs whose positive ranks have it.
func signSums(ranks []int) []float64 {
	all := 0
	for _, r := range ranks {
		all += r
	}
	counts := make([]float64, all+1)
	counts[0] = 1
	for _, r := range ranks {
		for total := all; total >= r; total-- {
			counts[total] += counts[total-r]
		}
	}
	return counts
}

// Run is one repeat in the order it was made.
type Run struct {
	Group int // which variant it measured
	Value float64
}

// Order tells what the order of runs did to the result.
type Order struct {
	// DriftPerRun is the common slope within the groups, as a fraction of the overall mean per run.
	DriftPerRun Estimate
	P           float64 // chance of such a slope without drift, by permutation within groups
	// Confounded is the share of the variance of order that the groups explain: 0 for a balanced design; above 0.5
	// drift and effect can no longer be told apart (0.75 when all of one variant came before all of the other).
	Confounded float64
	Warnings   []string
}

// Drift checks a series of runs, in the order made, for a trend that the variants do not explain: devices fill and heat
// up, caches warm. It needs two runs in some group and four in all.
func Drift(runs []Run, o Options) (Order, error) {
	o, err := o.filled()
	values := make([]float64, len(runs))
	groups := map[int][]int{}
	for i, r := range runs {
		values[i] = r.Value
		groups[r.Group] = append(groups[r.Group], i)
	}
	err = errors.Join(err, finite("runs", values))
	if dof := len(runs) - len(groups) - 1; dof < 1 || len(runs) < 4 {
		err = errors.Join(
			err,
			fmt.Errorf("effect: drift: %d runs of %d variants: repeat some variant and make 4 runs or more", len(runs),
				len(groups)),
		)
	}
	if err != nil {
		return Order{}, err
	}
	within := make([]float64, len(runs)) // order, less the mean order of its group
	residual := make([]float64, len(runs))
	var spread, total float64
	middle, overall := float64(len(runs)-1)/2, stat.Mean(values, nil)
	for _, at := range groups {
		var place, level float64
		for _, i := range at {
			place += float64(i) / float64(len(at))
			level += values[i] / float64(len(at))
		}
		for _, i := range at {
			within[i], residual[i] = float64(i)-place, values[i]-level
		}
	}
	for i, w := range within {
		spread += w * w
		total += (float64(i) - middle) * (float64(i) - middle)
	}
	product := func() (sum float64) {
		for i, w := range within {
			sum += w * residual[i]
		}
		return sum
	}
	out := Order{Confounded: 1 - spread/total}
	slope := product() / spread
	var left float64
	for i, w := range within {
		e := residual[i] - slope*w
		left += e * e
	}
	dof := float64(len(runs) - len(groups) - 1)
	out.DriftPerRun = relativeSlope(slope, math.Sqrt(left/dof/spread), dof, overall, o.Confidence)
	out.P = permuteWithin(groups, residual, product, o)
	if out.Confounded > 0.5 {
		out.Warnings = append(out.Warnings,
			"the variants were run one after the other: a drift and their difference look alike, mix the order")
	}
	if out.P < 1-o.Confidence {
		out.Warnings = append(
			out.Warnings,
			fmt.Sprintf("the values drift by %.2g %% per run whatever the variant (p = %.2g)",
				100*out.DriftPerRun.Value, out.P),
		)
	}
	return out, nil
}

func relativeSlope(slope, se, dof, overall, confidence float64) Estimate {
	if overall == 0 {
		return Estimate{Value: math.NaN(), Interval: resample.None("the mean is zero, so nothing is relative to it")}
	}
	half := resample.StudentT(confidence, dof) * se / math.Abs(overall)
	v := slope / math.Abs(overall)
	return Estimate{
		Value: v,
		Interval: resample.Interval{
			Low:        v - half,
			High:       v + half,
			Confidence: confidence,
			Method:     "regression within groups",
		},
	}
}

func permuteWithin(groups map[int][]int, residual []float64, product func() float64, o Options) float64 {
	r := resample.Source(o.Seed, 3)
	var keys []int
	for g := range groups {
		keys = append(keys, g)
	}
	slices.Sort(keys) // so that the draws do not depend on the order of a map
	const rounding = 1 - 1e-9
	return resample.Permutation(math.Abs(product())*rounding, o.Resamples, o.Resamples+1, func() float64 {
		for _, g := range keys {
			at := groups[g]
			r.Shuffle(len(at), func(i, j int) { residual[at[i]], residual[at[j]] = residual[at[j]], residual[at[i]] })
		}
		return math.Abs(product())
	})
}
