package effect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
)

// Test is a two-sided rank test.
type Test struct {
	Statistic float64 // Mann–Whitney's U of the candidate, or Wilcoxon's V of positive differences
	P         float64 // two-sided; 1 when nothing can be said
	// by counting all arrangements, ties included; else normal with corrections for ties and continuity
	Exact bool
}

// exactUpTo is the number of values for which all arrangements are counted.
const exactUpTo = 40

// MannWhitney tests whether values of one side tend to exceed those of the other (Mann and Whitney 1947). Values must
// be finite.
func MannWhitney(baseline, candidate []float64) Test {
	nb, nc := len(baseline), len(candidate)
	if nb == 0 || nc == 0 {
		return Test{P: 1}
	}
	ranks, ties := doubledRanks(append(slices.Clone(baseline), candidate...))
	sum := 0
	for _, r := range ranks[nb:] {
		sum += r
	}
	u := float64(sum)/2 - float64(nc)*float64(nc+1)/2
	if nb+nc <= exactUpTo {
		return Test{Statistic: u, P: tails(subsetSums(ranks, nc), sum), Exact: true}
	}
	n, pairs := float64(nb+nc), float64(nb)*float64(nc)
	variance := pairs / 12 * (n + 1 - ties/(n*(n-1)))
	return Test{Statistic: u, P: normalTails(u-pairs/2, variance)}
}

// doubledRanks gives twice the midrank of each value, whole numbers even with ties, and Σ(t³−t) over groups of ties.
func doubledRanks(x []float64) (ranks []int, ties float64) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	ranks = make([]int, len(x))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			ranks[at] = i + 1 + j // twice the mean of i+1 … j
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return ranks, ties
}

// subsetSums counts, for every total, the subsets of size k that have it.
func subsetSums(ranks []int, k int) []float64 {
	largest := 0
	for _, r := range slices.Sorted(slices.Values(ranks))[len(ranks)-k:] {
		largest += r
	}
	counts := make([][]float64, k+1)
	for i := range counts {
		counts[i] = make([]float64, largest+1)
	}
	counts[0][0] = 1
	for _, r := range ranks {
		for size := k; size > 0; size-- {
			for total := largest; total >= r; total-- {
				counts[size][total] += counts[size-1][total-r]
			}
		}
	}
	return counts[k]
}

// tails is twice the smaller tail of a distribution given by counts, at most 1.
func tails(counts []float64, observed int) float64 {
	var all, below, above float64
	for total, c := range counts {
		all += c
		if total <= observed {
			below += c
		}
		if total >= observed {
			above += c
		}
	}
	return min(1, 2*min(below, above)/all)
}

func normalTails(distance, variance float64) float64 {
	if !(variance > 0) {
		return 1
	}
	z := max(0, math.Abs(distance)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// shift is the estimate of Hodges and Lehmann (1963): the median of all candidate − baseline, with the interval of
// Moses from the null distribution of U (Hollander and Wolfe 1999, section 4.3): exact for small samples without ties,
// conservative with them.
func shift(baseline, candidate []float64, confidence float64) Estimate {
	b, c := slices.Sorted(slices.Values(baseline)), slices.Sorted(slices.Values(candidate))
	pairs := len(b) * len(c)
	e := Estimate{Value: (kthDifference(c, b, (pairs+1)/2) + kthDifference(c, b, pairs/2+1)) / 2}
	cut := 0 // number of extreme differences left out on each side
	tail := (1 - confidence) / 2
	if n := len(b) + len(c); n <= exactUpTo {
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = i + 1
		}
		cut = cutoff(subsetSums(ranks, len(c)), len(c)*(len(c)+1)/2, tail)
	} else {
		z := distuv.UnitNormal.Quantile(1 - tail)
		cut = int(math.Floor(float64(pairs)/2 - z*math.Sqrt(float64(pairs)*float64(n+1)/12)))
	}
	if cut < 1 {
		e.Interval = resample.None(
			fmt.Sprintf("%d and %d repeats: even a complete separation would not be rare enough, 4 a side are needed",
				len(b), len(c)),
		)
		return e
	}
	e.Interval = resample.Interval{
		Low: kthDifference(c, b, cut), High: kthDifference(c, b, pairs+1-cut),
		Confidence: confidence, Method: "Hodges–Lehmann and Moses",
	}
	return e
}

// cutoff is the largest k such that the k smallest totals, counted from lowest, together have at most tail of the
// probability: P(T < lowest + k) <= tail.
func cutoff(counts []float64, lowest int, tail float64) int {
	var all, below float64
	for _, c := range counts {
		all += c
	}
	k := 0
	for total := lowest; total < len(counts); total++ {
		if below += counts[total]; below > tail*all {
			break
		}
		k++
	}
	return k
}

// kthDifference is the k-th smallest of all x − y, both ascending, found by halving the range and counting, in
// O((len(x)+len(y))·64), without making the differences.
func kthDifference(x, y []float64, k int) float64 {
	low, high := x[0]-y[len(y)-1], x[len(x)-1]-y[0]
	count := func(limit float64) int {
		n, j := 0, len(y)
		for i := len(x) - 1; i >= 0; i-- { // x − y <= limit for all y >= x − limit
			for j > 0 && x[i]-y[j-1] <= limit {
				j--
			}
			n += len(y) - j
		}
		return n
	}
	if count(low) >= k {
		return low
	}
	for range 200 {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			break
		}
		if count(middle) >= k {
			high = middle
		} else {
			low = middle
		}
	}
	if low < 0 && high > 0 && high < 1e-15*(x[len(x)-1]-x[0]+y[len(y)-1]-y[0]) {
		return 0 // halving would take a thousand steps to arrive there
	}
	return high
}
