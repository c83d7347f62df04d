package trust

import (
	"fmt"
	"math"
	"math/rand/v2"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
)

// single compares pairs of single runs of one law and counts the intervals of some measures that have both ends and
// hold the truth, which is that they do not differ.
func single(law comparetest.Law, measures ...string) func(uint64, int) (Count, error) {
	law.Rate, law.Mean = 100, 0.002
	return func(seed uint64, n int) (c Count, err error) {
		r := rand.New(rand.NewPCG(seed, 81))
		for range n {
			var sides []compare.Side
			for i, name := range []string{"A", "B"} {
				run := compare.Run{Manifest: comparetest.Manifest(i + 1), Data: comparetest.Data(r, law)}
				sides = append(sides, compare.Side{Name: name, Runs: []compare.Run{run}})
			}
			d, err := compare.Of(sides, compare.Options{Threshold: -1})
			if err != nil {
				return c, err
			}
			for _, m := range d.Measures {
				for _, name := range measures {
					i := m.Interval
					if m.Name != name || !i.Valid() || math.IsInf(i.High, 1) || i.Low <= -1 {
						continue
					}
					if c.Of++; i.Contains(0) {
						c.Hits++
					}
				}
			}
		}
		return c, nil
	}
}

// singleClaims are intervals within single runs: with few checkpoints, with what both runs share in time, and with what
// shows badly.
func singleClaims() (out []Claim) {
	const sets = 300
	means := []string{"read IOPS", "read mean service time"}
	tail := []string{"read p99 service time"}
	add := func(name string, low, high float64, law comparetest.Law, measures []string) {
		of := map[bool]string{true: "rate and mean latency", false: "p99"}[len(measures) > 1]
		out = append(out, Claim{"single runs", name + ", " + of + ": interval holds the truth", low, high, sets,
			single(law, measures...)})
	}
	for _, n := range []float64{2, 2.5, 3, 5} {
		law := comparetest.Law{Noise: 0.05, Dependence: 0.5, Checkpoint: 300 / n, Seconds: 300}
		name := fmt.Sprintf("%g checkpoints in 300 s", n)
		add(name, 0.93, 0.99, law, means)
		add(name, 0.93, 1, law, tail)
		law.Noise, law.Dependence = 0.1, 0.8
		add(name+", noise of 10 %, φ 0.8", 0.93, 0.99, law, means)
	}
	for _, n := range []float64{3, 5} {
		law := comparetest.Law{Noise: 0.05, Dependence: 0.5, Checkpoint: 300 / n, AtRandom: true, Seconds: 300}
		name := fmt.Sprintf("%g checkpoints in 300 s that come at random", n)
		add(name, 0.92, 0.99, law, means)
		add(name, 0.85, 0.99, law, tail) // the interval says that it may be too narrow
		law = comparetest.Law{Noise: 0.05, Dependence: 0.5, Bursts: n / 300, Seconds: 300}
		name = fmt.Sprintf("%g bursts of load in 300 s", n)
		add(name, 0.93, 0.99, law, means)
	}
	for _, shift := range []float64{0.2, 0.5} {
		law := comparetest.Law{Noise: 0.05, Dependence: 0.5, Shift: shift, Seconds: 300}
		name := fmt.Sprintf("step of %g %% at one time on both sides, 300 s", 100*shift)
		add(name, 0.92, 0.98, law, means)
		add(name, 0.90, 0.99, law, tail)
	}
	add("drift of 20 % on both sides, 300 s", 0.92, 0.98, comparetest.Law{Noise: 0.05, Dependence: 0.5, Drift: 0.2,
		Seconds: 300}, means)
	add("noise of 10 % with heavy tails, 150 s", 0.93, 0.98, comparetest.Law{Noise: 0.1, Heavy: true, Seconds: 150},
		means)
	return out
}
