package usl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Fall is a throughput that falls at once from one concurrency to the next and stays there, such as where memory or
// connections run out: Amdahl's law up to Last, and Level from First on. The Universal Scalability Law bends smoothly;
// the peak of its fit to such points lies where nothing was measured.
type Fall struct {
	Last, First float64 // concurrencies: the last before it, the first behind it
	From, Level float64 // throughput measured at Last, and from First on; means of the points
	Ratio       float64 // of what the law or a line up to a cap, the closer of them, leaves over what this leaves
	Closer      bool    // it is so much closer than both as chance makes one of two in one of twenty

	before Coefficients // of Amdahl's law up to Last
}

// At is the throughput at concurrency n; between Last and First, where nothing was measured, that of before.
func (f Fall) At(n float64) float64 {
	if n >= f.First {
		return f.Level
	}
	return f.before.At(n)
}

const (
	fewestBefore, fewestBehind = 3, 2 // concurrencies: one behind may be low by chance
	mostFalls                  = 8    // between neighbours that are tried, the deepest first
	leastFall                  = 0.9  // of the throughput before: less is not looked for
)

// fell looks for a fall by every error model that the data allow: it must be closer by each.
func (m *Model) fell(fits []*Model) {
	least := math.Inf(1)
	for _, f := range fits {
		found := f.fall(m.Cap.Ratio)
		if found.Ratio < least {
			least, m.Fall = found.Ratio, found
		}
	}
	if m.Fall.Closer {
		m.Cap.Closer, m.Cap.Allowed = false, false
	}
}

// fall is the closest one by the error model of this fit; capRatio says how much closer a line up to a cap is than the
// law.
func (m *Model) fall(capRatio float64) (best Fall) {
	dof := float64(m.DegreesOfFreedom - 1)
	if dof < 1 {
		return best
	}
	points := slices.Clone(m.points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	var groups [][]Point // one for each concurrency
	for i, p := range points {
		if i == 0 || p.Concurrency != points[i-1].Concurrency {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], p)
	}
	var falls []int // the first group behind each
	deep := func(i int) float64 { return meanOf(groups[i]) / meanOf(groups[i-1]) }
	for i := fewestBefore; i <= len(groups)-fewestBehind; i++ {
		if deep(i) < leastFall {
			falls = append(falls, i)
		}
	}
	slices.SortStableFunc(falls, func(a, b int) int { return cmp.Compare(deep(a), deep(b)) })
	closer := max(1, capRatio)
	for _, i := range falls[:min(mostFalls, len(falls))] {
		before, behind := slices.Concat(groups[:i]...), slices.Concat(groups[i:]...)
		level := meanOf(behind)
		rise := solveFromMany(before, amdahl)
		left := rise.loss
		for _, p := range behind {
			left += p.Weight * (p.Throughput - level) * (p.Throughput - level)
		}
		ratio := m.solution.loss / closer / float64(m.DegreesOfFreedom) / (left / dof)
		if ratio > best.Ratio {
			best = Fall{Last: groups[i-1][0].Concurrency, First: groups[i][0].Concurrency, From: meanOf(groups[i-1]),
				Level: level, Ratio: ratio, before: rise.Coefficients}
		}
	}
	best.Closer = best.Ratio > distuv.F{D1: float64(m.DegreesOfFreedom), D2: dof}.Quantile(0.95)
	return best
}

// meanOf is the weighted mean of the points' throughput.
func meanOf(points []Point) float64 {
	var sum, weights float64
	for _, p := range points {
		sum, weights = sum+p.Weight*p.Throughput, weights+p.Weight
	}
	return sum / weights
}

// Words say in a report what fell; "" where nothing did.
func (f Fall) Words() string {
	if !f.Closer {
		return ""
	}
	return fmt.Sprintf("throughput falls at once from %.6g at %.4g to about %.6g from %.4g on, to which the law is less "+
		"close: look for what gives way there, such as memory, a queue or connections", f.From, f.Last, f.Level, f.First)
}

// fallAt widens what is said of n, where it lies between the rise and the level behind it, to hold both.
func (m *Model) fallAt(p *Prediction) {
	if f := m.Fall; f.Closer && p.Concurrency > f.Last && p.Concurrency < f.First {
		p.Mean, p.Measurement = around(p.Mean, f.Level, 0), around(p.Measurement, f.Level, 0)
	}
}
