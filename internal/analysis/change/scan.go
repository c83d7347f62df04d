package change

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
)

// family tells what a scan looks for.
type family uint64

const (
	ofLevel  family = 1
	ofSpread family = 2
)

// search finds changes of level and of spread in points that do not depend on each other. Each family has half the
// chance of a false one; points too few to show a change of spread are searched for levels in two ways instead.
func search(x []float64, o Options) []cut {
	const fewestForSpread = 30
	half := o.Significance / 2
	levels := scan(x, half, ofLevel, o)
	if len(x) < mostForParts {
		if more := parted(x, half, o); len(more) > len(levels) {
			levels = more
			slices.SortFunc(levels, byPlace)
		}
	}
	if len(x) < fewestForSpread {
		return levels
	}
	// Roots of absolute residuals are nearly normal, and have a level where the series has a spread.
	deviation := residuals(x, tamed(x, o.MinSegment), levels)
	for i, v := range deviation {
		deviation[i] = math.Sqrt(math.Abs(v))
	}
	spreads := scan(deviation, half, ofSpread, o)
	if len(spreads) == 0 { // and nothing to set against the places of the levels, which take long
		return levels
	}
	cuts, known := slices.Clone(levels), places(x, levels, o)
	for i, p := range places(deviation, spreads, o) {
		// One event that changes both, as a factor on skewed values does, is found at two places near each other.
		same := func(k span) bool { return p.low-k.high < 2*o.MinSegment && k.low-p.high < 2*o.MinSegment }
		if !slices.ContainsFunc(known, same) {
			cuts = append(cuts, spreads[i])
		}
	}
	slices.SortFunc(cuts, byPlace)
	return cuts
}

func byPlace(a, b cut) int { return cmp.Compare(a.at, b.at) }

// tamer brings each value to within four standard deviations of the median of its neighbourhood (Hampel 1974): what is
// too short to be a segment cannot pull a mean, and a level that lasts is not touched.
type tamer struct {
	least  int
	reach  float64
	window []float64
}

func newTamer(x []float64, least int) *tamer {
	const within = 4
	t := &tamer{least: least, window: make([]float64, 0, 2*least)}
	off := make([]float64, len(x))
	for i, v := range x {
		off[i] = math.Abs(v - t.around(x, i))
	}
	spread := 1.4826 * resample.Median(off)
	if spread == 0 {
		spread = 1.2533 * stat.Mean(off, nil)
	}
	// Values lie nearer to a median that they are part of.
	t.reach = within * spread * math.Sqrt(float64(2*least-1)/float64(2*least-2))
	return t
}

// around is the median of the fewest points of a segment on both sides.
func (t *tamer) around(x []float64, i int) float64 {
	w := t.window[:0]
	for _, v := range x[max(0, i-t.least+1):min(len(x), i+t.least)] {
		k := len(w)
		w = append(w, v)
		for ; k > 0 && w[k-1] > v; k-- {
			w[k] = w[k-1]
		}
		w[k] = v
	}
	return w[len(w)/2]
}

// tame writes x to out, which is returned.
func (t *tamer) tame(x, out []float64) []float64 {
	for i, v := range x {
		m := t.around(x, i)
		out[i] = min(max(v, m-t.reach), m+t.reach)
	}
	return out
}

func tamed(x []float64, least int) []float64 {
	return newTamer(x, least).tame(x, make([]float64, len(x)))
}

// residuals are x less the mean of y between the cuts, which are in order.
func residuals(x, y []float64, cuts []cut) []float64 {
	out := make([]float64, 0, len(x))
	from := 0
	for i := range len(cuts) + 1 {
		to := len(x)
		if i < len(cuts) {
			to = cuts[i].at
		}
		mean := stat.Mean(y[from:to], nil)
		for _, v := range x[from:to] {
			out = append(out, v-mean)
		}
		from = to
	}
	return out
}

// scan finds shifts of the mean. What the largest statistic over all intervals may be by chance is seen from shuffles:
// first of the series itself, which holds the level exactly whatever the law of its points, then of what the cuts found
// leave, so that changes do not hide others.
func scan(x []float64, level float64, f family, o Options) []cut {
	const most = 6 // rounds; each must find more than the one before
	s := newScanner(x, o.MinSegment)
	r := resample.Source(o.Seed, uint64(f))
	var cuts []cut
	for round := range most {
		limit, any := s.limit(residuals(x, s.y, cuts), level, round == 0, r)
		if !any {
			return nil
		}
		more := confirmed(s.y, s.narrowest(limit), f, o)
		if len(more) <= len(cuts) {
			break
		}
		cuts = more
	}
	return cuts
}

// interval with its best cut.
type interval struct {
	from, to, at int
	statistic    float64
}

// scanner looks at seeded intervals of n, n/√2, n/2, … points, each a quarter of its length after the one before; in
// long series at those of n, n/2, n/4, …, half of their length apart.
type scanner struct {
	tamer     *tamer
	y         []float64 // tamed
	least     int
	intervals []interval
	sums      []float64
	weight    []float64 // of the cut at each point of an interval of the length looked at
	shuffled  []float64 // tamed
}

// quartersUpTo is the number of points up to which intervals are laid so densely.
const quartersUpTo = 10_000

func newScanner(x []float64, least int) *scanner {
	n := len(x)
	s := &scanner{
		tamer:    newTamer(x, least),
		least:    least,
		sums:     make([]float64, n+1),
		weight:   make([]float64, n+1),
		shuffled: make([]float64, n),
	}
	s.y = s.tamer.tame(x, make([]float64, n))
	apart, shrink := 0.25, math.Sqrt2
	if n > quartersUpTo {
		apart, shrink = 0.5, 2
	}
	for length := float64(n); int(math.Ceil(length)) >= 2*least; length /= shrink {
		l := int(math.Ceil(length))
		count := int(math.Ceil(float64(n-l)/(apart*length))) + 1
		for i := range count {
			from := 0
			if count > 1 {
				from = (n - l) * i / (count - 1)
			}
			s.intervals = append(s.intervals, interval{from: from, to: from + l})
		}
	}
	return s
}

// each calls f with the best cut of each interval of y.
func (s *scanner) each(y []float64, f func(interval)) {
	for i, v := range y {
		s.sums[i+1] = s.sums[i] + v
	}
	length := 0
	for _, v := range s.intervals {
		if l := v.to - v.from; l != length {
			length = l
			for k := s.least; k <= l-s.least; k++ {
				s.weight[k] = float64(l) / (float64(k) * float64(l-k))
			}
		}
		v.at, v.statistic = steepestSum(s.sums[v.from:v.to+1], s.weight, s.least)
		v.at += v.from
		f(v)
	}
}

// steepestSum is the cut with the greatest squared cumulative-sum statistic, which for one cut of unit noise is the
// square of a standard normal. The first sum is of what lies before.
func steepestSum(sums, weight []float64, least int) (at int, statistic float64) {
	length := len(sums) - 1
	start := sums[0]
	mean := (sums[length] - start) / float64(length)
	for k := least; k <= length-least; k++ {
		d := sums[k] - start - float64(k)*mean
		if v := d * d * weight[k]; v > statistic {
			at, statistic = k, v
		}
	}
	return at, statistic
}

func (s *scanner) largest(y []float64) (largest float64) {
	s.each(y, func(v interval) { largest = max(largest, v.statistic) })
	return largest
}

const (
	exactUpTo   = 1000 // points up to which a close decision is left to an order statistic of many shuffles
	exactAlways = 200  // points up to which every decision is
	fitted      = 60   // shuffles that the law of the largest is fitted to
	clear       = 20   // how many times rarer than asked for what decides early must be
)

// limit returns what the largest statistic of the noise exceeds with the chance given. At first it asks whether the
// series itself does, and stops as soon as it cannot.
func (s *scanner) limit(noise []float64, level float64, first bool, r *rand.Rand) (limit float64, any bool) {
	observed := math.Inf(1)
	if first {
		if observed = s.largest(s.y) * (1 - 1e-9); !(observed > 0) {
			return 0, false
		}
	}
	noise = slices.Clone(noise)
	rounds, enough := int(math.Ceil(2/level))-1, fitted
	if len(noise) > quartersUpTo {
		enough /= 2
	}
	all := make([]float64, 0, rounds)
	above := 0
	for len(all) < rounds {
		r.Shuffle(len(noise), func(i, j int) { noise[i], noise[j] = noise[j], noise[i] })
		v := s.largest(s.tamer.tame(noise, s.shuffled))
		all = append(all, v)
		if v >= observed {
			above++
		}
		if len(noise) <= exactUpTo && above > 1 || above > enough/10 {
			return 0, false
		}
		if len(all) == enough && len(noise) > exactAlways {
			if limit = largestBy(all, level); len(noise) > exactUpTo || !first ||
				observed > largestBy(all, level/clear) {
				return limit, observed > limit
			}
		}
	}
	slices.Sort(all)
	return all[len(all)-2], true
}

// largestBy returns what the largest of many exceeds with the chance given: Gumbel's law, by moments of some such
// largest.
func largestBy(some []float64, chance float64) float64 {
	mean, sd := stat.MeanStdDev(some, nil)
	scale := sd * math.Sqrt(6) / math.Pi
	const euler = 0.57721566490153286
	return mean - scale*(euler+math.Log(-math.Log1p(-chance)))
}

// narrowest takes the shortest interval whose statistic is beyond the limit, then the next shortest that holds no cut
// taken already (Baranowski, Chen and Fryzlewicz 2019). Cuts rise.
func (s *scanner) narrowest(limit float64) []int {
	var over []interval
	s.each(s.y, func(v interval) {
		if v.statistic > limit {
			over = append(over, v)
		}
	})
	slices.SortStableFunc(over, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.to-a.from, b.to-b.from), cmp.Compare(b.statistic, a.statistic))
	})
	var cuts []int
	for _, i := range over {
		k, _ := slices.BinarySearch(cuts, i.from+1)
		if k < len(cuts) && cuts[k] < i.to {
			continue
		}
		if k > 0 && i.at-cuts[k-1] < s.least || k < len(cuts) && cuts[k]-i.at < s.least {
			continue
		}
		cuts = slices.Insert(cuts, k, i.at)
	}
	return cuts
}

// confirmWithin limits how many points on each side of a proposal are shuffled.
const confirmWithin = 1000

// confirmed shuffles the points between the neighbours of each proposal and drops the worst proposal until all that
// remain are significant. A proposal is tested again only when a neighbour went. It moves to where those points change
// most.
func confirmed(y []float64, proposals []int, f family, o Options) []cut {
	r := resample.Source(o.Seed, 4+uint64(f))
	sums, weight := make([]float64, 2*confirmWithin+1), make([]float64, 2*confirmWithin+1)
	test := func(from, at, to int) cut {
		from, to = max(from, at-confirmWithin), min(to, at+confirmWithin)
		part := slices.Clone(y[from:to])
		for k := o.MinSegment; k <= len(part)-o.MinSegment; k++ {
			weight[k] = float64(len(part)) / (float64(k) * float64(len(part)-k))
		}
		largest := func() (int, float64) {
			for i, v := range part {
				sums[i+1] = sums[i] + v
			}
			return steepestSum(sums[:len(part)+1], weight, o.MinSegment)
		}
		best, observed := largest()
		if !(observed > 0) {
			return cut{at, 1}
		}
		enough := int(o.Significance*float64(o.Permutations+1)) + 10
		p := resample.Permutation(observed*(1-1e-12), o.Permutations, enough, func() float64 {
			r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			_, s := largest()
			return s
		})
		return cut{from + best, p}
	}
	cuts := make([]cut, len(proposals))
	stale := make([]bool, len(proposals))
	for i, at := range proposals {
		cuts[i], stale[i] = cut{at: at}, true
	}
	for len(cuts) > 0 {
		worst := 0
		for i, c := range cuts {
			if stale[i] {
				from, to := beside(cuts, i, len(y))
				cuts[i], stale[i] = test(from, c.at, to), false
			}
			if cuts[i].p > cuts[worst].p {
				worst = i
			}
		}
		if cuts[worst].p <= o.Significance {
			break
		}
		if worst > 0 {
			stale[worst-1] = true
		}
		if worst+1 < len(cuts) {
			stale[worst+1] = true
		}
		cuts, stale = slices.Delete(cuts, worst, worst+1), slices.Delete(stale, worst, worst+1)
	}
	return cuts
}
