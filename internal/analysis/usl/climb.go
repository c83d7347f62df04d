package usl

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// climbing reports whether crosstalk is not told from a soft limit: a curve that never falls, whatever its shape, is as
// close to the points as the law under one of the error models that they allow, and so is a soft limit beyond which
// they do not fall.
func climbing(fits []*Model) bool {
	return slices.ContainsFunc(fits, func(m *Model) bool {
		if m.DegreesOfFreedom < 1 || !(m.solution.loss > 0) {
			return false
		}
		dof, law := float64(m.DegreesOfFreedom), m.solution.loss
		more := max(0, neverFalling(m.points)-law)
		if (distuv.F{D1: 1, D2: dof}).Survival(more/(law/dof))/2 < level {
			return false
		}
		_, left, falls := capOf(m, soft)
		return left/law < (distuv.F{D1: dof, D2: dof}).Quantile(0.8) && falls > fallsBeyond
	})
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
