package trust

import (
	"plimsoll/internal/analysis/lawtest"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/steady"
)

// steadyClaims are the wrong verdicts on long series, and how often the interval of the mean of what was called steady covers.
func steadyClaims() []Claim {
	series := func(n int, shape lawtest.Shape, spread float64, noise lawtest.Noise) drawn {
		return func(seed uint64, set int) []float64 {
			return lawtest.Series(resample.Source(seed, uint64(set)), n, shape, spread, noise)
		}
	}
	return []Claim{
		{"steady", "line of −20 %, 600 points, noise of 3 %: called steady", 0, 0.05, 200, calledSteady(series(600, lawtest.Line(-0.2), 0.03, lawtest.White))},
	}
}

// drawn is one series of a set.
type drawn func(seed uint64, set int) []float64

func calledSteady(draw drawn) func(uint64, int) (Count, error) {
	return func(seed uint64, n int) (c Count, err error) {
		for set := range n {
			s, err := steady.Window(draw(seed, set), steady.Options{})
			if err != nil {
				return c, err
			}
			c.Of++
			if s.Reached {
				c.Hits++
			}
		}
		return c, nil
	}
}
