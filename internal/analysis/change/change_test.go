package change

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
	"plimsoll/internal/testkit/needs"
)

// Annual flow of the Nile at Aswan 1871 to 1970, 10⁸ m³ (Cobb 1978; data set Nile of R). Its level falls after 1898,
// when the first dam was begun: the best known change point there is.
var nile = []float64{
	1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
	1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
	831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
	781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
	744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
}

func Example() {
	r, err := Detect(nile, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range r.Points {
		fmt.Printf("from %d on: %.0f to %.0f, p = %.3f\n", 1871+p.Index, p.Before, p.After, p.P)
	}
	// Output: from 1899 on: 1098 to 850, p = 0.005
}

// Cobb (1978) and Zeileis and others (2003, "Testing and dating of structural changes in practice") date the break
// after 1898, with levels of 1097.75 and 849.97 and a 95 % interval of 1895 to 1902.
func TestNile(t *testing.T) {
	r, err := Detect(nile, Options{})
	if err != nil || len(r.Points) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	p := r.Points[0]
	if p.Index != 28 || math.Abs(p.Before-1097.75) > 0.005 || math.Abs(p.After-849.97) > 0.005 {
		t.Errorf("%+v, published index 28, levels 1097.75 and 849.97", p)
	}
	if p.Low < 22 || p.High > 34 || p.Low > 28 || p.High < 28 {
		t.Errorf("place %d to %d, published 25 to 32", p.Low, p.High)
	}
}

func column(t *testing.T, file, name string) []float64 {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "corpus", "changepoint", file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("corpus file changepoint/%s is not here: %v", file, err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "#Tag"); ok {
			line = "Tag" + rest
		}
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(strings.Join(lines, ""))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for i, head := range rows[0] {
		if head == name {
			for _, row := range rows[1:] {
				v, err := strconv.ParseFloat(strings.TrimSpace(row[i]), 64)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, v)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no column %q in %s", name, file)
	}
	return out
}

// The sample has one shift, in metric2, and none in metric1.
func TestCorpus(t *testing.T) {
	r, err := Detect(column(t, "otava-sample.csv", "metric2"), Options{Independent: true, Significance: 0.05})
	if err != nil || len(r.Points) != 1 || r.Points[0].Index != 6 {
		t.Errorf("metric2: %+v, %v", r.Points, err)
	}
	r, err = Detect(column(t, "otava-sample.csv", "metric2"), Options{Independent: true})
	if err != nil || len(r.Points) != 1 || r.Points[0].Index != 6 {
		t.Errorf("metric2 at the usual level: %+v, %v", r.Points, err)
	}
	r, err = Detect(column(t, "otava-sample.csv", "metric1"), Options{Independent: true, Significance: 0.05})
	if err != nil || len(r.Points) != 0 {
		t.Errorf("metric1: %+v, %v", r.Points, err)
	}
	r, err = Detect(column(t, "otava-sample_single_branch.csv", "metric1"),
		Options{Independent: true, Significance: 0.05})
	if err != nil || len(r.Points) != 0 || len(r.Warnings) != 1 {
		t.Errorf("five points: %+v, %v", r, err)
	}
	for _, name := range []string{"count", "p50", "p99", "max"} {
		if _, err := Detect(column(t, "otava-histostat.csv", name), Options{}); err != nil {
			t.Errorf("histogram log, %s: %v", name, err)
		}
	}
}

func ar1(r *rand.Rand, n int, phi float64) []float64 {
	x := make([]float64, n)
	state := r.NormFloat64()
	for i := range x {
		x[i] = state
		state = phi*state + math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return x
}

// Series without a change show one no more often than the level says: for independent points of any distribution, and
// for first-order dependence filtered out. Limits that are known: strong dependence in few points is caught less well,
// and slow wandering beyond the first order is not.
func TestFalsePositives(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	heavy := func(r *rand.Rand, n int, _ float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Exp(2 * r.NormFloat64())
		}
		return x
	}
	walk := func(r *rand.Rand, n int, _ float64) []float64 {
		x := make([]float64, n)
		for i := 1; i < n; i++ {
			x[i] = x[i-1] + r.NormFloat64()
		}
		return x
	}
	tests := []struct {
		name    string
		draw    func(*rand.Rand, int, float64) []float64
		phi     float64
		n, sets int
		o       Options
		most    float64
	}{
		{"independent", ar1, 0, 60, 600, Options{Significance: 0.05, Independent: true}, 0.07},
		{"heavy tails", heavy, 0, 60, 600, Options{Significance: 0.05, Independent: true}, 0.07},
		{"dependence estimated where there is none", ar1, 0, 100, 200, Options{Significance: 0.05}, 0.07},
		{"phi 0.5", ar1, 0.5, 100, 100, Options{Significance: 0.05}, 0.1},
		{"phi 0.5, long", ar1, 0.5, 2000, 10, Options{Significance: 0.05}, 0.07},
		{"phi 0.8, long", ar1, 0.8, 2000, 10, Options{Significance: 0.05}, 0.07},
		{"independent, long", ar1, 0, 2000, 20, Options{Significance: 0.05}, 0.07},
		{"heavy tails, long", heavy, 0, 2000, 20, Options{Significance: 0.05}, 0.07},
		{"phi 0.8 said to be independent: the caller's mistake", ar1, 0.8, 2000, 2, Options{Independent: true}, 1},
		{"random walk", walk, 0, 2000, 10, Options{}, 0.1},
	}
	for i, test := range tests {
		r := rand.New(rand.NewPCG(31, uint64(i)))
		hits := 0
		for range test.sets {
			test.o.Seed = r.Uint64()
			res, err := Detect(test.draw(r, test.n, test.phi), test.o)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Points) > 0 {
				hits++
			}
		}
		share := float64(hits) / float64(test.sets)
		t.Logf("%-55s n %5d: %.3f", test.name, test.n, share)
		if share > test.most {
			t.Errorf("%s: a change in %.3f of series without one", test.name, share)
		}
	}
}

// Known changes are found where they are: one, a burst that ends, many, a change of spread, in short and long series.
// One stray value is no change, though the filter for dependence would leave an echo of it in the next.
func TestAStrayLeavesNoEcho(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 12))
		x := make([]float64, 600)
		state := 0.0
		for i := range x {
			state = 0.2*state + r.NormFloat64()
			x[i] = 1000 + 30*state
		}
		x[r.IntN(len(x))] = 5000
		found, err := Detect(x, Options{Seed: seed + 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Points) > 0 {
			t.Errorf("seed %d: %+v", seed, found.Points)
		}
	}
}

// A line and slow swings are no steps, though steps come near them; steps are no slow movement. A factor on skewed
// values moves level and spread at one moment, which is one change.
func TestSlowMovementIsNoStep(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	share := func(i, n int) float64 { return float64(i) / float64(n) }
	tests := map[string]struct {
		at     func(i, n int) float64
		skew   float64
		slides bool
		points int // of the steps, where they are some
	}{
		"a line": {
			at:     func(i, n int) float64 { return 1 - 0.12*share(i, n) },
			slides: true,
		},
		"it sags": {
			at:     func(i, n int) float64 { return 1 - 0.1*math.Sin(math.Pi*share(i, n)) },
			slides: true,
		},
		"one swing and half": {
			at:     func(i, n int) float64 { return 1 + 0.08*math.Cos(3*math.Pi*share(i, n)) },
			slides: true,
		},
		"a step":             {at: func(i, n int) float64 { return 1 - 0.1*b2f(i >= n/2) }, points: 1},
		"a late step":        {at: func(i, n int) float64 { return 1 - 0.2*b2f(i >= 9*n/10) }, points: 1},
		"two levels in turn": {at: func(i, n int) float64 { return 1 + 0.25*b2f(i*6/n%2 == 1) }, points: 5},
		"a factor on skewed values": {
			at:     func(i, n int) float64 { return 1 + 0.8*b2f(i >= n/2) },
			skew:   0.3,
			points: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong, sets := 0, 40
			for seed := range uint64(sets) {
				x := ar1(rand.New(rand.NewPCG(seed, 33)), 450, 0)
				for i := range x {
					noise := 1 + 0.02*x[i]
					if test.skew > 0 {
						noise = math.Exp(test.skew * x[i])
					}
					x[i] = 1000 * test.at(i, len(x)) * noise
				}
				r, err := Detect(x, Options{Seed: seed + 1, MinShift: 50})
				if err != nil {
					t.Fatal(err)
				}
				if r.Slides != test.slides || test.points > 0 && len(r.Points) != test.points {
					wrong++
					t.Logf("seed %d: slides %v, %+v", seed, r.Slides, r.Points)
				}
			}
			if wrong > sets/20 {
				t.Errorf("%d of %d", wrong, sets)
			}
		})
	}
}

func TestFindsKnownChanges(t *testing.T) {
	needs.Time(t)
	step := func(levels ...float64) func(int, int) float64 {
		return func(i, n int) float64 { return levels[i*len(levels)/n] }
	}
	tests := map[string]struct {
		n    int
		phi  float64
		at   func(i, n int) float64
		want []int
	}{
		"one":             {80, 0, step(0, 3), []int{40}},
		"burst that ends": {120, 0, step(0, 0, 0, 4, 0, 0), []int{60, 80}},
		"four":            {300, 0, step(0, 3, 6, 2, 8), []int{60, 120, 180, 240}},
		"long, one":       {10000, 0.5, step(0, 1), []int{5000}},
		"long, short burst": {
			8000,
			0,
			func(i, _ int) float64 { return 6 * b2f(i >= 4000 && i < 4030) },
			[]int{4000, 4030},
		},
		"long, staircase": {
			8000,
			0.3,
			step(0, 2, 4, 6, 4, 2, 0, 3),
			[]int{1000, 2000, 3000, 4000, 5000, 6000, 7000},
		},
		"long, square wave": {
			4000,
			0,
			func(i, _ int) float64 { return 5 * b2f(i/200%2 == 1) },
			seq(200, 3800, 200),
		},
		"long, none but spikes": {4000, 0, func(i, _ int) float64 { return 1e6 * b2f(i%397 == 0) }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := ar1(rand.New(rand.NewPCG(32, 1)), test.n, test.phi)
			for i := range x {
				x[i] = 100 + x[i] + test.at(i, test.n)
			}
			r, err := Detect(x, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, p := range r.Points {
				got = append(got, p.Index)
				if p.Low > p.Index || p.High < p.Index || p.P > 0.01 || !p.Shift.Valid() {
					t.Errorf("%+v", p)
				}
			}
			if len(got) != len(test.want) {
				t.Fatalf("found %v, want %v", got, test.want)
			}
			for i := range got {
				if math.Abs(float64(got[i]-test.want[i])) > 12 {
					t.Errorf("found %v, want %v", got, test.want)
				}
			}
		})
	}
	t.Run("spread", func(t *testing.T) {
		x := ar1(rand.New(rand.NewPCG(33, 1)), 200, 0)
		for i := range x[100:] {
			x[100+i] *= 6
		}
		r, err := Detect(x, Options{Independent: true})
		if err != nil || len(r.Points) != 1 || math.Abs(float64(r.Points[0].Index-100)) > 10 {
			t.Errorf("%+v, %v", r.Points, err)
		}
	})
}

// TestEveryLengthIsSearchedAlike: steps up and down, a staircase and a short bump are found at lengths that once had
// methods of their own, and between.
func TestEveryLengthIsSearchedAlike(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	steps := func(levels ...float64) lawtest.Shape {
		return func(i, n int) float64 { return 0.01 * levels[i*len(levels)/n] }
	}
	fifths := func(n int) []int { return []int{n / 5, 2 * n / 5, 3 * n / 5, 4 * n / 5} }
	tests := map[string]struct {
		shape lawtest.Shape
		at    func(n int) []int
	}{
		"steps of 2.5 deviations up and down": {steps(0, 2.5, 0, 2.5, 0), fifths},
		"staircase of 2.5 deviations":         {steps(0, 2.5, 5, 7.5, 10), fifths},
		"bump of 10 points, 5 deviations": {lawtest.Hole(0.437, 10, 0.05), func(n int) []int {
			return []int{int(0.437 * float64(n)), int(0.437*float64(n)) + 10}
		}},
		"dip of 4 points, 8 deviations": {lawtest.Hole(0.7, 4, -0.08), func(n int) []int {
			return []int{int(0.7 * float64(n)), int(0.7*float64(n)) + 4}
		}},
	}
	for name, test := range tests {
		for _, n := range []int{200, 500, 501, 1100} {
			const sets = 4
			for set := range uint64(sets) {
				x := lawtest.Series(resample.Source(61, set), n, test.shape, 0.01, lawtest.White)
				r, err := Detect(x, Options{Independent: true, Seed: set + 1})
				if err != nil {
					t.Fatal(err)
				}
				want, got := test.at(n), []int{}
				for _, p := range r.Points {
					got = append(got, p.Index)
				}
				alike := func(a, b int) bool { return max(a-b, b-a) <= 5 }
				if !slices.EqualFunc(want, got, alike) {
					t.Errorf("%s, %d points, set %d: found %v, want %v", name, n, set, got, want)
				}
			}
		}
	}
}

// TestShortHistoriesThatPart: a complete separation needs no more values than normal noise needs to show it.
func TestShortHistoriesThatPart(t *testing.T) {
	t.Parallel()
	for _, sides := range [][2]int{{6, 4}, {4, 4}, {3, 7}, {12, 3}, {20, 20}} {
		n := sides[0] + sides[1]
		for set := range uint64(5) {
			shape := lawtest.StepAt(float64(sides[0])/float64(n), -0.129)
			r, err := Detect(lawtest.Series(resample.Source(62, set), n, shape, 0.02, lawtest.White),
				Options{Independent: true, Seed: set + 1})
			if err != nil || len(r.Points) != 1 || r.Points[0].Index != sides[0] {
				t.Errorf("%v, set %d: %+v, %v", sides, set, r.Points, err)
			}
		}
	}
}

// TestDependenceIsNoChange: short series of strongly dependent points have no change, and where places look like one,
// the result says that it cannot tell.
func TestDependenceIsNoChange(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const sets = 100
	for _, c := range []struct {
		phi float64
		n   int
	}{{0.9, 100}, {0.7, 50}, {0.5, 30}} {
		found, wander := 0, 0
		for set := range uint64(sets) {
			r, err := Detect(lawtest.Series(resample.Source(63, set), c.n, lawtest.Flat, 0.02, lawtest.AR(c.phi)),
				Options{Seed: set + 1})
			if err != nil {
				t.Fatal(err)
			}
			found += min(1, len(r.Points))
			if r.Wanders > 0 {
				wander++
				if len(r.Points) > 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "inconclusive") {
					t.Errorf("%+v", r)
				}
			}
		}
		t.Logf("phi %v, %d points: found %d, cannot tell %d of %d", c.phi, c.n, found, wander, sets)
		if found > 5 {
			t.Errorf("phi %v, %d points: a change in %d of %d series without one", c.phi, c.n, found, sets)
		}
	}
	// A shift that dependence does not make is found all the same.
	x := lawtest.Series(resample.Source(64, 1), 600, lawtest.StepAt(0.6, 0.1), 0.01, lawtest.AR(0.7))
	if r, err := Detect(x, Options{}); err != nil || len(r.Points) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seq(from, to, by int) (out []int) {
	for i := from; i <= to; i += by {
		out = append(out, i)
	}
	return out
}

// The interval of a large shift covers it nearly as often as it says, dependence and all, and that of its place as
// well; make trust measures both with more sets.
func TestCoverage(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const sets = 60
	r := rand.New(rand.NewPCG(34, 34))
	var shifts, places, found int
	for range sets {
		x := ar1(r, 600, 0.4)
		for i := range x[300:] {
			x[300+i] += 2
		}
		res, err := Detect(x, Options{Seed: r.Uint64()})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Points) != 1 {
			continue
		}
		found++
		if res.Points[0].Shift.Contains(2) {
			shifts++
		}
		if res.Points[0].Low <= 300 && 300 <= res.Points[0].High {
			places++
		}
	}
	s, p := float64(shifts)/float64(found), float64(places)/float64(found)
	t.Logf("found %d of %d; shift %.3f, place %.3f", found, sets, s, p)
	if found < sets*95/100 || s < 0.92 || s > 0.99 || p < 0.92 {
		t.Errorf("found %d of %d; shift covers %.3f, place %.3f", found, sets, s, p)
	}
}

// Mirror images: time reversed finds the same cuts from the other side, and gaps do not move them.
func TestReversedAndGaps(t *testing.T) {
	x := ar1(rand.New(rand.NewPCG(35, 1)), 200, 0)
	for i := range x[120:] {
		x[120+i] += 5
	}
	reversed := make([]float64, len(x))
	for i, v := range x {
		reversed[len(x)-1-i] = v
	}
	gaps := append([]float64(nil), x...)
	for _, i := range []int{3, 50, 119, 121, 199} {
		gaps[i] = math.NaN()
	}
	for name, test := range map[string]struct {
		x    []float64
		want int
	}{"as it is": {x, 120}, "reversed": {reversed, 80}, "gaps": {gaps, 120}} {
		r, err := Detect(test.x, Options{})
		if err != nil || len(r.Points) != 1 || r.Points[0].Index != test.want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.SampledFrom([]float64{0, 1, 1, -1,
			math.NaN()})), 0, 60).
			Draw(t, "x")
		if rapid.Bool().Draw(t, "long") {
			for len(x) > 0 && len(x) < 1100 {
				x = append(x, x...)
			}
		}
		r, err := Detect(x, Options{Significance: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for _, p := range r.Points {
			if p.Index <= last && last > 0 || p.Index >= len(x) || p.Low > p.Index || p.High < p.Index ||
				p.High >= len(x) ||
				p.P > 0.1 {
				t.Fatalf("%+v of %d points", r.Points, len(x))
			}
			last = p.Index
		}
	})
}

func TestNothingToFind(t *testing.T) {
	for name, x := range map[string][]float64{
		"none": nil, "one": {1}, "constant": make([]float64, 100), "constant, long": make([]float64, 2000),
		"gaps only": {math.NaN(), math.NaN()},
	} {
		if r, err := Detect(x, Options{}); err != nil || len(r.Points) != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	_, err := Detect([]float64{1, math.Inf(-1)},
		Options{Significance: 0.01, MinSegment: 1, Permutations: 50, Confidence: -1})
	want := strings.Join([]string{
		"change: confidence -1: must lie between 0 and 1, as 0.95",
		"change: segments of 1 points: at least 2 are needed",
		"change: 50 permutations cannot reach a level of 0.01: at least 99 are needed",
		"change: value 2 is -Inf: remove it",
	}, "\n")
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
}

func TestSameSeedSameAnswer(t *testing.T) {
	x := ar1(resample.Source(1, 1), 700, 0.3)
	for i := range x[400:] {
		x[400+i] += 1
	}
	a, err1 := Detect(x, Options{})
	b, err2 := Detect(x, Options{})
	if d := cmp.Diff(a, b); d != "" || err1 != nil || err2 != nil {
		t.Error(d, err1, err2)
	}
}

// BenchmarkDetect has a budget of 2 s for 100,000 points.
func BenchmarkDetect(b *testing.B) {
	for _, n := range []int{50, 500, 1000, 10_000, 100_000} {
		x := ar1(rand.New(rand.NewPCG(1, 1)), n, 0.5)
		for i := range x {
			x[i] += 3 * float64(i*10/n%3)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Detect(x, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
