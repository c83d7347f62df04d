package residency

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
)

// TestResidencyCoverage: the interval holds the moment at which a rising rate has come to 90 % of its end, whether it
// rises quickly or slowly, evenly or ever more slowly, and whatever its seconds share.
func TestResidencyCoverage(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	rounds, slack := 80, 0.0
	if !needs.All() {
		rounds, slack = 10, 0.2
	}
	held, all := 0, 0
	for _, law := range []struct {
		noise, phi    float64
		rise, seconds int
		slowing       bool
	}{
		{0.03, 0, 180, 300, false}, {0.1, 0, 180, 300, false}, {0.03, 0.7, 180, 300, false}, {0.05, 0.5, 60, 300,
			false}, {0.05, 0.5, 400, 900, false},
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
			noise := reporttest.Dependent(rand.New(rand.NewPCG(uint64(i), 6)), law.seconds, 1, law.noise, law.phi)
			s := reporttest.NewSynthetic(uint64(i), law.seconds, 1)
			s.Load(
				reporttest.Load{
					Name:  "Reads 16K",
					To:    law.seconds,
					Block: 16 << 10,
					Rate:  func(t int) float64 { return noise[t] * rate(float64(t)) },
				},
			)
			found := residency(view.New(s.Manifest, s.Data))
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
			t.Errorf("%+v: the interval held the truth in %.1f %% of the runs, and was missing in %d of %d", law,
				100*share, without, rounds)
		}
		held, all = held+in, all+rounds-without
	}
	if share := float64(held) / float64(all); share < 0.93-slack || share > 0.975+slack {
		t.Errorf("over all laws the interval held the truth in %.1f %% of %d runs", 100*share, all)
	}
}

// A rate that rises and stays is one thing; one that comes back to where it began is held down by something that comes
// and goes.
func TestReturns(t *testing.T) {
	repeat := func(pattern ...[2]float64) (values []float64) { // level, points
		for _, p := range pattern {
			for range int(p[1]) {
				values = append(values, p[0])
			}
		}
		return values
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"rises and stays", repeat([2]float64{100, 10}, [2]float64{400, 10}, [2]float64{1000, 60}), false},
		{"a stall", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{0, 6}, [2]float64{1000, 30}), false},
		{"a dip on its way", repeat([2]float64{100, 10}, [2]float64{400, 10}, [2]float64{110, 10}, [2]float64{1000,
			60}), false},
		{"checkpoints", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{105, 4}, [2]float64{1000, 30}),
			true},
		{"short checkpoints", repeat([2]float64{100, 2}, [2]float64{1000, 30}, [2]float64{105, 2}, [2]float64{1000, 30},
			[2]float64{105, 1}, [2]float64{1000, 30}), true},
		{"stalls", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{105, 1}, [2]float64{0, 6},
			[2]float64{105, 1}, [2]float64{1000, 30}, [2]float64{0, 6}, [2]float64{105, 1},
			[2]float64{1000, 30}), false},
		{"a blink", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{105, 2}, [2]float64{1000, 30}), false},
		{"from nothing", repeat([2]float64{0, 10}, [2]float64{1000, 30}), false},
	} {
		if got := returns(c.values, c.values[0], 1000); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// Reads at an offered rate do not become more when their data come to a faster tier: they take less time, which is
// told when the change is large and stays.
func TestResidencyAtRate(t *testing.T) {
	t.Parallel()
	falling := func(t int) float64 { return 8e-3 - 7.6e-3*math.Min(1, float64(t)/100) }
	for name, c := range map[string]struct {
		seconds func(t int) float64
		want    string
	}{
		"promoted": {falling, "Reads: mean latency 7.7 ms to 400 µs at its offered rate; data resident on the fast tier, " +
			"or in a cache, after 1 min 40 s of 5 min."},
		"to the end": {func(t int) float64 { return 8e-3 / (1 + float64(t)/30) }, "Reads: mean latency 7.06 ms to " +
			"801 µs at its offered rate, still falling at its end after 5 min: not all its data were on the fast tier yet."},
		"as before":  {func(int) float64 { return 8e-3 }, ""},
		"a little":   {func(t int) float64 { return falling(t)/4 + 6e-3 }, ""},
		"came again": {func(t int) float64 { return falling(t % 150) }, ""},
	} {
		s := reporttest.NewSynthetic(1, 300, 1)
		s.Load(reporttest.Load{Name: "Reads", To: 300, Offered: 200, Seconds: c.seconds,
			Rate: func(int) float64 { return 200 }})
		got := ""
		for _, f := range residency(view.New(s.Manifest, s.Data)) {
			got += f.Sentence
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Data that are filled and read in rounds ask how long they take to come to a faster tier, also where no round was long
// enough to see it; who writes a file once and then reads it asks for rates.
func TestFilledInRounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rounds, seconds int
		want            string
	}{
		"two":       {2, 60, "ran at the speed it ends with from its first 1 s on"},
		"two short": {2, 20, "whether data came to a faster tier cannot be told"},
		"one":       {1, 60, ""},
		"one short": {1, 20, ""},
	} {
		s := reporttest.NewSynthetic(7400, 2*c.rounds*c.seconds, 1)
		for i := range 2 * c.rounds {
			l := reporttest.Load{Name: string(rune('A' + i)), Group: "G", From: i * c.seconds, To: (i + 1) * c.seconds,
				Noise: 0.01, Rate: func(int) float64 { return 3000 }}
			if l.Random = float64(i % 2); i%2 == 0 {
				l.Writes = 1
			}
			s.Load(l)
		}
		got := residency(view.New(s.Manifest, s.Data))
		if c.want == "" && len(got) != 0 || c.want != "" && len(got) != c.rounds {
			t.Errorf("%s: %v", name, got)
		}
		for _, f := range got {
			if !strings.Contains(f.Sentence, c.want) || f.NoInterval == "" && f.Value == nil {
				t.Errorf("%s: %q, want %q", name, f.Sentence, c.want)
			}
		}
	}
}
