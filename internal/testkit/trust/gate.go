package trust

import (
	"fmt"
	"math"
	"math/rand/v2"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/comparetest"
)

// gated counts the gates that fail of files of so many repeats a side: the candidate takes longer by an effect, and the
// repeats of both sides spread by so much.
func gated(baseline, candidate int, spread, by float64, columns int) func(uint64, int) (Count, error) {
	return func(seed uint64, n int) (c Count, err error) {
		r := resample.Source(seed, 51)
		for range n {
			sides := []compare.Samples{{Name: "baseline"}, {Name: "candidate"}}
			for i, repeats := range []int{baseline, candidate} {
				for col := range columns {
					values := make([]float64, repeats)
					for j := range values {
						values[j] = math.Exp(spread*r.NormFloat64()) * (1 + by*float64(i))
					}
					sides[i].Columns = append(sides[i].Columns, compare.Column{Name: fmt.Sprintf("p99_%d", col),
						Better: effect.LowerIsBetter, Values: values})
				}
			}
			d, err := compare.OfSamples(sides, compare.Options{})
			if err != nil {
				return c, err
			}
			c.Of++
			if d.Verdict == compare.Worse {
				c.Hits++
			}
		}
		return c, nil
	}
}

// gatedRuns is gated of run folders, the baseline made first: the rate and the mean latency of runs that spread by so
// much and are otherwise steady.
func gatedRuns(baseline, candidate int, spread, by float64) func(uint64, int) (Count, error) {
	return func(seed uint64, n int) (c Count, err error) {
		r := rand.New(rand.NewPCG(seed, 83))
		for range n {
			var sides []compare.Side
			made := 0
			for i, repeats := range []int{baseline, candidate} {
				law := comparetest.Law{Rate: 100 / (1 + by*float64(i)), Mean: 0.002, Spread: spread, Noise: 0.02,
					Seconds: 40}
				side := compare.Side{Name: string(rune('A' + i))}
				for range repeats {
					made++
					side.Runs = append(side.Runs, compare.Run{Manifest: comparetest.Manifest(made),
						Data: comparetest.Data(r, law)})
				}
				sides = append(sides, side)
			}
			d, err := compare.Of(sides, compare.Options{Gate: true})
			if err != nil {
				return c, err
			}
			c.Of++
			for _, m := range d.Measures {
				if m.Name == "read IOPS" && m.Verdict == compare.Worse {
					c.Hits++
				}
			}
		}
		return c, nil
	}
}

// gateClaims are gates that fail though nothing changed, and those that find what did.
func gateClaims() (out []Claim) {
	add := func(name string, low, high float64, sets int, measure func(uint64, int) (Count, error)) {
		out = append(out, Claim{Family: "gates", Name: name, Low: low, High: high, Sets: sets, Measure: measure})
	}
	for _, spread := range []float64{0.03, 0.05} {
		for _, n := range [][2]int{{2, 1}, {5, 1}, {10, 1}, {1, 5}, {2, 2}, {2, 5}, {5, 2}, {3, 3}, {4, 4}, {5, 5},
			{2, 10}, {10, 2}, {7, 7}, {10, 10}} {
			add(fmt.Sprintf("%d against %d runs that spread by %g %%, nothing changed: fails", n[1], n[0], 100*spread),
				0, 0.01, 1000, gated(n[0], n[1], spread, 0, 1))
		}
	}
	for _, n := range [][2]int{{1, 1}, {2, 1}, {5, 1}, {2, 2}, {3, 3}, {5, 5}, {10, 10}} {
		add(fmt.Sprintf("%d against %d run folders that spread by 5 %%, nothing changed: the rate fails", n[1], n[0]),
			0, 0.01, 200, gatedRuns(n[0], n[1], 0.05, 0))
	}
	for _, n := range []int{5, 10} {
		add(fmt.Sprintf("%d run folders a side that spread by 3 %%, a rate 15 %% lower: fails", n), 0.9, 1, 200,
			gatedRuns(n, n, 0.03, 0.18))
	}
	for _, n := range []struct {
		runs int
		low  float64
	}{{2, 0.1}, {3, 0.55}, {4, 0.8}, {5, 0.9}, {6, 0.91}, {7, 0.92}, {8, 0.93}, {9, 0.94}, {10, 0.94}} {
		add(fmt.Sprintf("%d runs a side that spread by 3 %%, 15 %% worse: fails", n.runs), n.low, 1, 500,
			gated(n.runs, n.runs, 0.03, 0.15, 1))
	}
	return out
}
