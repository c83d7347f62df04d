package trust

import (
	"fmt"
	"math"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
)

// louder is a level whose noise has so many times its spread at each share of the time.
func louder(spread float64, noise lawtest.Noise, times func(at float64) float64) drawn {
	return func(seed uint64, n int) []float64 {
		r := resample.Source(seed, 38)
		x := lawtest.Series(r, n, lawtest.Flat, spread, noise)
		for i := range x {
			x[i] = lawtest.Level + (x[i]-lawtest.Level)*times(float64(i)/float64(n))
		}
		return x
	}
}

// during is so many times in a part of the time, and once beside it.
func during(from, to, times float64) func(float64) float64 {
	return func(at float64) float64 {
		if at >= from && at < to {
			return times
		}
		return 1
	}
}

// uneven are spreads that are not the same throughout.
var uneven = []struct {
	name  string
	times func(at float64) float64
}{
	{"spread that grows threefold", func(at float64) float64 { return 1 + 2*at }},
	{"spread that shrinks to a third", func(at float64) float64 { return 3 - 2*at }},
	{"a burst of four times the noise in the middle fifth", during(0.4, 0.6, 4)},
	{"five times the noise in the last tenth", during(0.9, 2, 5)},
	{"five times the noise in the first tenth", during(0, 0.1, 5)},
	{"five times the noise in the seventh tenth", during(0.6, 0.7, 5)},
	{"five times the noise in the last fifth", during(0.8, 2, 5)},
	{"three times the noise from a third on", during(1./3, 2, 3)},
	{"a third of the noise from the middle on", during(0.5, 2, 1./3)},
	{"a quiet middle third, a quarter of the noise", during(1./3, 2./3, 0.25)},
	{"two bursts of five times the noise, a tenth each", func(at float64) float64 {
		return max(during(0.2, 0.3, 5)(at), during(0.7, 0.8, 5)(at))
	}},
	{"noise that swells and falls, to four times", func(at float64) float64 { return 1 + 3*math.Sin(math.Pi*at) }},
}

// even are spreads that are the same throughout.
var even = []struct {
	name  string
	noise lawtest.Noise
}{{"white", lawtest.White}, {"φ 0.5", lawtest.AR(0.5)}, {"heavy tails", lawtest.Heavy}, {"skewed", lawtest.Skewed},
	{"in coarse steps", lawtest.Coarse}, {"with outliers", lawtest.Outliers}}

// spreadClaims are the wrong verdicts on series whose level holds still and whose spread does or does not.
func spreadClaims() (out []Claim) {
	add := func(name string, low, high float64, want verdict, draw drawn, n int) {
		out = append(out, Claim{Family: "spread", Name: name, Low: low, High: high, Sets: 100,
			Measure: says(ours, want, draw, n)})
	}
	for _, n := range []int{120, 300, 600} {
		most := 0.02
		if n < 200 {
			most = 0.05
		}
		for _, shape := range uneven {
			add(fmt.Sprintf("%s, %d points: called steady", shape.name, n), 0, most, isSteady,
				louder(0.03, lawtest.White, shape.times), n)
		}
		for _, law := range even {
			add(fmt.Sprintf("%s, spread of 1 %%, %d points: called steady", law.name, n), 0.95, 1, isSteady,
				shaped(lawtest.Flat, 0.01, law.noise), n)
		}
	}
	return out
}
