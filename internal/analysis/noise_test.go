package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/needs"
	"plimsoll/internal/report/reporttest"
	"plimsoll/result"
)

// TestFalseAlarms counts what is said of runs in which nothing happened but noise that depends on its neighbours.
func TestFalseAlarms(t *testing.T) {
	const rounds = 120
	alarms := map[string]int{}
	for i := range rounds {
		seed := uint64(100 + i)
		noise := dependent(rand.New(rand.NewPCG(seed, 5)), 600, 1, 0.05, 0.5)
		s := reporttest.NewSynthetic(seed, 600, 2)
		s.Mark(450, result.KindFault, "node-1 power off")
		s.Load(reporttest.Load{
			Name: "OLTP", To: 600, Rate: func(t int) float64 { return 4000 * noise[t] }, Seconds: func(t int) float64 { return 2e-3 / noise[t] },
			Cuts: []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with DSS"}},
		})
		s.Load(reporttest.Load{Name: "DSS", Node: 1, From: 300, To: 600, Rate: flatRate(1400), Noise: 0.05, Block: 1 << 20})
		s.CPU("node-0", flatRate(40), 6)
		s.CPU("node-1", flatRate(40), 6)
		seen := map[string]bool{}
		for _, f := range Run(s.Manifest, s.Data) {
			if f.Severity != result.Fine && f.Check != "cache" && !strings.Contains(f.Sentence, "cannot be told") {
				seen[f.Check] = true
			}
		}
		for check := range seen {
			alarms[check]++
		}
	}
	for check, n := range alarms {
		t.Logf("%s: %d of %d", check, n, rounds)
		if n > rounds*5/100 {
			t.Errorf("%s spoke up in %d of %d runs in which nothing happened", check, n, rounds)
		}
	}
}

// TestResidencyCoverage: the interval holds the moment at which a rising rate has come to 90 % of its end, whether it rises quickly or slowly,
// evenly or ever more slowly, and whatever its seconds share.
func TestResidencyCoverage(t *testing.T) {
	t.Parallel()
	rounds, slack := 80, 0.0
	if testing.Short() || needs.Race {
		rounds, slack = 10, 0.2
	}
	held, all := 0, 0
	for _, law := range []struct {
		noise, phi    float64
		rise, seconds int
		slowing       bool
	}{
		{0.03, 0, 180, 300, false}, {0.1, 0, 180, 300, false}, {0.03, 0.7, 180, 300, false}, {0.05, 0.5, 60, 300, false}, {0.05, 0.5, 400, 900, false},
		{0.1, 0.7, 400, 900, false}, {0.05, 0.5, 60, 400, true},
	} {
		rate := func(t float64) float64 {
			if law.slowing {
				return 500 + 9500*(1-math.Exp(-t/float64(law.rise)))
			}
			return 500 + 9500*min(1, t/float64(law.rise))
		}
		truth := 0.0
		for rate(truth) < residentFrom*10000 {
			truth += 0.01
		}
		in, without := 0, 0
		for i := range rounds {
			noise := dependent(rand.New(rand.NewPCG(uint64(i), 6)), law.seconds, 1, law.noise, law.phi)
			s := reporttest.NewSynthetic(uint64(i), law.seconds, 1)
			s.Load(reporttest.Load{Name: "Reads 16K", To: law.seconds, Block: 16 << 10, Rate: func(t int) float64 { return noise[t] * rate(float64(t)) }})
			found := residency(newView(s.Manifest, s.Data))
			switch {
			case len(found) != 1 || found[0].Low == nil:
				without++
			case *found[0].Low <= truth && truth <= *found[0].High:
				in++
			}
		}
		share := float64(in) / float64(rounds-without)
		t.Logf("%+v: covered %.3f, without an interval %d of %d", law, share, without, rounds)
		if share < 0.9-slack || without > rounds/20 {
			t.Errorf("%+v: the interval held the truth in %.1f %% of the runs, and was missing in %d of %d", law, 100*share, without, rounds)
		}
		held, all = held+in, all+rounds-without
	}
	if share := float64(held) / float64(all); share < 0.93-slack || share > 0.975+slack {
		t.Errorf("over all laws the interval held the truth in %.1f %% of %d runs", 100*share, all)
	}
}

// TestMonotone: the fit rises, keeps the sum, and leaves alone what rises already.
func TestMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOf(rapid.Float64Range(-1e3, 1e3)).Draw(t, "x")
		fit := monotone(x)
		if len(fit) != len(x) || !slices.IsSorted(fit) || math.Abs(total(fit)-total(x)) > 1e-6 {
			t.Fatalf("%v becomes %v", x, fit)
		}
		if again := monotone(fit); math.Abs(total(again)-total(fit)) > 1e-6 {
			t.Fatalf("%v becomes %v", fit, again)
		}
	})
	if diff := cmp.Diff([]float64{1, 2.5, 2.5, 4}, monotone([]float64{1, 3, 2, 4})); diff != "" {
		t.Error(diff)
	}
}

// TestContentionCoverage: the interval of the contention fitted to a scale-out run holds the law's.
func TestContentionCoverage(t *testing.T) {
	const rounds = 60
	in := 0
	for i := range rounds {
		s := scaleOut(uint64(i), 0.01, 1e-5)
		f := scaling(newView(s.Manifest, s.Data))
		if len(f) == 0 || f[0].Check != "scalability" || f[0].Low == nil {
			t.Fatalf("seed %d: %+v", i, f)
		}
		if *f[0].Low <= 1 && 1 <= *f[0].High {
			in++
		}
	}
	t.Logf("covered %.3f", float64(in)/rounds)
	if share := float64(in) / rounds; share < 0.88 {
		t.Errorf("the interval held the truth in %.1f %% of the runs", 100*share)
	}
}
