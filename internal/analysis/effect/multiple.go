package effect

import (
	"errors"
	"fmt"
	"slices"
)

// Holm adjusts p-values so that the chance of even one false discovery among them stays below the level they are
// compared with (Holm 1979). The order of the result is that of the argument.
func Holm(p []float64) ([]float64, error) {
	order, err := ascending(p)
	if err != nil {
		return nil, err
	}
	out, last := make([]float64, len(p)), 0.0
	for i, at := range order {
		last = max(last, min(1, float64(len(p)-i)*p[at]))
		out[at] = last
	}
	return out, nil
}

// BenjaminiHochberg adjusts p-values so that the expected share of false discoveries among those below a level stays
// below it (Benjamini and Hochberg 1995), for independent or positively dependent tests.
func BenjaminiHochberg(p []float64) ([]float64, error) {
	order, err := ascending(p)
	if err != nil {
		return nil, err
	}
	out, last := make([]float64, len(p)), 1.0
	for i, at := range slices.Backward(order) {
		last = min(last, float64(len(p))/float64(i+1)*p[at])
		out[at] = last
	}
	return out, nil
}

func ascending(p []float64) ([]int, error) {
	order := make([]int, len(p))
	var bad []error
	for i, v := range p {
		order[i] = i
		if !(v >= 0 && v <= 1) {
			bad = append(bad, fmt.Errorf("effect: p-value %d is %v: must lie between 0 and 1", i+1, v))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	return order, errors.Join(bad...)
}
