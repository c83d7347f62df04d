package steady

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/resample"
)

const (
	spreadMatters = 0.1 // of the tolerance: a mean deviation that moves by less does not matter
	spreadRounds  = 399
	mostRounds    = 20_000
	around        = 25   // points on both sides whose median is where a point is expected
	mostScores    = 2000 // beyond, scores are added up in equal parts
	fewestLoud    = 5    // points of a stretch that is compared with the rest
	leastLoud     = 60   // of so many equal parts of a series at least one: shorter bursts are no part of its state
)

// spreadLevels are what a spread alike throughout exceeds by chance: the share of shuffles with a stretch as far from
// the rest, and of those with a line and a swell of the scores. Of few points a little more is risked, since what is
// not the same is harder to see in them.
func spreadLevels(points int) (chance, line, swell float64) {
	if points >= 100 && points < 200 {
		return 0.0125, 0.01, 0.005
	}
	return 0.0075, 0.005, 0.002
}

// beyond is how many deviations a normal value exceeds, up or down, with such a chance.
func beyond(chance float64) float64 { return distuv.UnitNormal.Quantile(1 - chance/2) }

// spreadRatio is how far apart the mean deviations of two stretches are at least for a word. Of few points less will
// do, since what is not the same is harder to see in them.
func spreadRatio(points int) float64 {
	if points < 200 {
		return 1.25
	}
	return 1.6
}

// spread judges whether the spread is the same throughout: by the line through the deviations, which sees swings that
// grow, and by the scores of what neighbours leave, which see any stretch.
//
// Scores are Klotz's (1962, Annals of Mathematical Statistics 33): the square of the normal quantile of the rank of a
// size, as good as variances where noise is normal, and not led astray by heavy tails. Stretches of all lengths from
// a sixtieth to half of the series are compared with the rest, each by how far it stands out of shuffles, and the
// furthest of them with the furthest of each shuffle; a line and a swell of the scores are tried by themselves.
func (s *Stretch) spread(part []float64, step int, o Options, not func(string, ...any)) {
	level := stat.Mean(part, nil)
	mean := math.Abs(level)
	part = s.still(part, level, o.Tolerance)
	if s.drifts || slices.Max(part)-slices.Min(part) <= o.Tolerance*mean {
		return // points lie off for another reason, or no value is further from another than may be
	}
	matters := func(a, b float64) bool {
		return math.Abs(a-b) > spreadMatters*o.Tolerance*mean && max(a, b) > spreadRatio(len(part))*min(a, b)
	}
	words := func(sizes []float64) {
		fifth := len(sizes) / 5
		from, to := stat.Mean(sizes[:fifth], nil), stat.Mean(sizes[len(sizes)-fifth:], nil)
		word := "grows"
		if to < from {
			word = "shrinks"
		}
		not("its spread %s along it: points lie %.3g %% of the mean from it in its first fifth and %.3g %% in its last",
			word, 100*from/mean, 100*to/mean)
	}
	off := make([]float64, len(part))
	for i, v := range part {
		off[i] = math.Abs(v - level)
	}
	if first, last, l := ends(off); math.Abs(l.move) > resample.StudentT(1-o.share(0.002), l.dof)*l.error &&
		math.Abs(l.move) > (first+last)/4 && matters(first, last) {
		words(off)
		return
	}
	scores, sizes := scoresOf(part, step)
	chance, line, swell := spreadLevels(len(part))
	slope := scores.along(func(at float64) float64 { return at })
	if first, last, _ := ends(sizes); math.Abs(slope) > beyond(o.share(line)) && matters(first, last) {
		words(sizes)
		return
	}
	say := func(from, to int, least func(in, out float64) bool) bool {
		in := stat.Mean(sizes[from:to], nil)
		out := (stat.Mean(sizes, nil)*float64(len(sizes)) - in*float64(to-from)) / float64(len(sizes)-to+from)
		if !least(in, out) {
			return false
		}
		not("its spread is not the same throughout: points %d to %d lie %.3g %% of the mean from it, the others %.3g %%",
			s.First+from+1, s.First+to, 100*in/mean, 100*out/mean)
		return true
	}
	if from, to, p := loudest(scores, o.Seed, o.share(chance)); p <= o.share(chance) && say(from, to, matters) {
		return
	}
	// A swell rises and falls so slowly that no stretch of it stands far out of the rest.
	wave := func(at float64) float64 { return math.Cos(2 * math.Pi * at) }
	if math.Abs(scores.along(wave)) < beyond(o.share(swell)) {
		return
	}
	usual, half := stat.Mean(sizes, nil), swellOf(sizes, wave)
	say(len(part)/4, len(part)*3/4, func(_, _ float64) bool { return matters(usual+half, max(0, usual-half)) })
}

// swellOf is by how much sizes rise and fall around their mean along a swell.
func swellOf(sizes []float64, swell func(at float64) float64) float64 {
	sum := 0.0
	for i, v := range sizes {
		sum += v * swell((float64(i)+0.5)/float64(len(sizes)))
	}
	return math.Abs(2 * sum / float64(len(sizes)))
}

// still returns the points, calm, with each level between changes moved to that of all: what moved the level is told as
// that, and is no spread.
func (s *Stretch) still(part []float64, level, tolerance float64) []float64 {
	out := slices.Clone(part)
	from := 0
	for _, end := range append(slices.Clone(s.Changes), change.Point{Index: s.First + len(part)}) {
		one := out[from : end.Index-s.First]
		by := level - stat.Mean(one, nil)
		for i := range one {
			one[i] += by
		}
		from = end.Index - s.First
	}
	return calm(out, tolerance)
}

// ends are where the line through sizes begins and ends.
func ends(sizes []float64) (first, last float64, l line) {
	l = lineOf(sizes)
	usual := stat.Mean(sizes, nil)
	return max(0, usual-l.move/2), max(0, usual+l.move/2), l
}

// scores are sums over equal parts of a series.
type scores struct {
	of     []float64
	points int // of each
}

// scoresOf are the scores of what is left of each point when what its neighbour tells is taken away; with a period, the
// sums over its turns. sizes are what the scores rank, as large as the deviations are.
func scoresOf(part []float64, step int) (s scores, sizes []float64) {
	phi := noiseOf(part).phi
	size, before := make([]float64, len(part)), 0.0
	for i, v := range part {
		from, to := max(0, i-around), min(len(part), i+around+1)
		rest := v - resample.Median(part[from:to])
		size[i] = math.Abs(rest)
		if i > 0 {
			size[i] = math.Abs(rest-phi*before) / math.Sqrt(1-phi*phi)
		}
		before = rest
	}
	order := make([]int, len(part))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(size[a], size[b]) })
	out := make([]float64, len(part))
	for i := 0; i < len(order); {
		to := i
		for to < len(order) && size[order[to]] == size[order[i]] {
			to++
		}
		rank := float64(i+to+1) / 2 // in the middle of equals
		z := distuv.UnitNormal.Quantile((1 + rank/float64(len(order)+1)) / 2)
		for ; i < to; i++ {
			out[order[i]] = z * z
		}
	}
	step = max(step, (len(part)+mostScores-1)/mostScores)
	return scores{blocks(out, step), step}, size
}

// along is how far the scores follow a shape over the time, 0 to 1, in the deviations of shuffles.
func (s scores) along(shape func(at float64) float64) float64 {
	n := len(s.of)
	x := make([]float64, n)
	for i := range x {
		x[i] = shape((float64(i) + 0.5) / float64(n))
	}
	if r := stat.Correlation(x, s.of, nil); !math.IsNaN(r) {
		return r * math.Sqrt(float64(n-1))
	}
	return 0
}

// loudest is the stretch whose scores are furthest from those of the rest, and the chance that a spread which is
// alike throughout shows one so far: of spreadRounds shuffles, and of more where so few cannot tell it from chance.
func loudest(s scores, seed uint64, chance float64) (from, to int, p float64) {
	from, to, p = loudestOf(s, seed, spreadRounds)
	if most := 3 / chance; p > chance && p == 1.0/(spreadRounds+1) {
		return loudestOf(s, seed, int(min(most, mostRounds)))
	}
	return from, to, p
}

func loudestOf(s scores, seed uint64, rounds int) (from, to int, p float64) {
	n := len(s.of)
	least := max(1, fewestLoud/s.points, n/leastLoud)
	if n < 8 || n < 4*least {
		return 0, s.points, 1
	}
	var lengths []int
	for k := least; k < n/2; k = max(k+1, k*14/10) {
		lengths = append(lengths, k)
	}
	lengths = append(lengths, n/2)
	x := slices.Clone(s.of)
	mean := stat.Mean(x, nil)
	sums := make([]float64, n+1)
	// look fills in how far the furthest of each length lies from the rest, and returns where those are.
	look := func(furthest []float64) (at []int) {
		for i, v := range x {
			sums[i+1] = sums[i] + v - mean
		}
		at = make([]int, len(lengths))
		for j, k := range lengths {
			furthest[j] = 0
			stride := max(1, k/4)
			for from := 0; ; from = min(from+stride, n-k) {
				if v := math.Abs(sums[from+k] - sums[from]); v > furthest[j] {
					furthest[j], at[j] = v, from
				}
				if from == n-k {
					break
				}
			}
		}
		return at
	}
	all := make([][]float64, rounds+1)
	r := resample.Source(seed, 41)
	var at []int
	for round := range all {
		all[round] = make([]float64, len(lengths))
		if places := look(all[round]); round == 0 {
			at = places
		}
		r.Shuffle(n, func(i, j int) { x[i], x[j] = x[j], x[i] })
	}
	best := 0
	top := make([]float64, len(all)) // how far the furthest of each stands out
	column := make([]float64, len(all))
	for k := range lengths {
		for i := range all {
			column[i] = all[i][k]
		}
		middle, deviation := stat.MeanStdDev(column, nil)
		if deviation == 0 {
			continue
		}
		for i, v := range column {
			z := (v - middle) / deviation
			if i == 0 && z > top[0] {
				best = k
			}
			top[i] = max(top[i], z)
		}
	}
	reached := 0
	for _, v := range top {
		if v >= top[0] {
			reached++
		}
	}
	from = at[best] * s.points
	return from, from + lengths[best]*s.points, float64(reached) / float64(len(all))
}
