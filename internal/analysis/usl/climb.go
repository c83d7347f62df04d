package usl

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// climbing reports whether crosstalk is not told from a limit: a curve that never falls, whatever its shape, is as
// close to the points as the law by an error model that they allow, and no last points fall in a line.
func climbing(fits []*Model) bool {
	return slices.ContainsFunc(fits, func(m *Model) bool {
		if m.DegreesOfFreedom < 1 || !(m.solution.loss > 0) {
			return false
		}
		dof, law := float64(m.DegreesOfFreedom), m.solution.loss
		more := max(0, neverFalling(m.points)-law)
		return (distuv.F{D1: 1, D2: dof}).Survival(more/(law/dof))/2 > climbs && falling(m.points) > climbs
	})
}

// climbs is the chance below which points fall by more than they scatter: what is said of one sweep in fifty.
const climbs = 0.02

// falling is the chance that the last points fall as much if they do not: Student's t of the slope of a straight line
// through them, of the last four, five, ... the clearest (Bonferroni).
func falling(points []Point) float64 {
	const fewest = 4
	sorted := slices.SortedStableFunc(slices.Values(points), func(a, b Point) int {
		return cmp.Compare(a.Concurrency, b.Concurrency)
	})
	least, tried := 1.0, 0.0
	for from := range max(0, len(sorted)-fewest+1) {
		var x, y, w []float64
		for _, p := range sorted[from:] {
			x, y, w = append(x, p.Concurrency), append(y, p.Throughput), append(w, p.Weight)
		}
		_, slope := stat.LinearRegression(x, y, w, false)
		mx, my := stat.Mean(x, w), stat.Mean(y, w)
		var left, over float64
		for i := range x {
			r := y[i] - my - slope*(x[i]-mx)
			left, over = left+w[i]*r*r, over+w[i]*(x[i]-mx)*(x[i]-mx)
		}
		dof := float64(len(x) - 2)
		if t := slope * math.Sqrt(over*dof/left); !math.IsNaN(t) {
			least = min(least, distuv.StudentsT{Sigma: 1, Nu: dof}.CDF(t))
		}
		tried++
	}
	return min(1, least*max(1, tried))
}

// neverFalling sums what the closest curve that never falls misses of the points: neighbours that fall are pooled
// (Ayer, Brunk, Ewing, Reid and Silverman 1955).
func neverFalling(points []Point) (left float64) {
	type block struct{ weight, sum, squares float64 }
	var blocks []block
	mean := func(b block) float64 { return b.sum / b.weight }
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	for len(sorted) > 0 {
		same := len(sorted)
		if i := slices.IndexFunc(sorted, func(p Point) bool { return p.Concurrency > sorted[0].Concurrency }); i > 0 {
			same = i
		}
		var b block
		for _, p := range sorted[:same] {
			x := p.Throughput
			b = block{b.weight + p.Weight, b.sum + p.Weight*x, b.squares + p.Weight*x*x}
		}
		for sorted = sorted[same:]; len(blocks) > 0 && mean(blocks[len(blocks)-1]) > mean(b); {
			a := blocks[len(blocks)-1]
			blocks, b = blocks[:len(blocks)-1], block{a.weight + b.weight, a.sum + b.sum, a.squares + b.squares}
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		left += math.Max(0, b.squares-b.sum*b.sum/b.weight)
	}
	return left
}
