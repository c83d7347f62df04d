package caches_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"plimsoll/internal/analysis/caches"
	"plimsoll/internal/testkit/needs"
)

// level is a cache of a made curve, or the medium when it has no size.
type level struct{ bytes, seconds float64 }

// made is a curve by the law: even access, each level holds what fits.
func made(r *rand.Rand, levels []level, low, high float64, repeats int, noise float64) (points []caches.Point) {
	for set := low; set <= high*1.001; set *= 2 {
		t, inside := 0.0, 0.0
		for _, l := range levels {
			share := 1.0
			if l.bytes > 0 {
				share = min(1, l.bytes/set)
			}
			t += max(0, share-inside) * l.seconds
			inside = max(inside, share)
		}
		p := caches.Point{Bytes: set}
		for range repeats {
			p.Seconds = append(p.Seconds, t*math.Exp(noise*r.NormFloat64()))
		}
		points = append(points, p)
	}
	return points
}

const mib, gib = float64(1 << 20), float64(1 << 30)

// TestKnownCaches: sizes and times of declared levels come back, with intervals that hold them.
func TestKnownCaches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		levels []level
	}{
		{"none", []level{{0, 4e-3}}},
		{"one", []level{{256 * mib, 100e-6}, {0, 4e-3}}},
		{"one between sizes", []level{{300 * mib, 80e-6}, {0, 160e-6}}},
		{"two", []level{{64 * mib, 20e-6}, {1 * gib, 100e-6}, {0, 2e-3}}},
		{"flash before disks", []level{{2 * gib, 200e-6}, {0, 8e-3}}},
	} {
		r := rand.New(rand.NewPCG(7, 7))
		points := made(r, c.levels, 8*mib, 16*gib, 3, 0.02)
		got, err := caches.Read(points, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Caches) != len(c.levels)-1 {
			t.Errorf("%s: found %d caches: %+v", c.name, len(got.Caches), got)
			continue
		}
		for i, f := range got.Caches {
			want := c.levels[i]
			if math.Abs(math.Log(f.Bytes.Value/want.bytes)) > 0.15 || f.Bytes.Interval.High/f.Bytes.Interval.Low > 2 {
				t.Errorf("%s: cache %d of %.3g MiB (%v), want %.3g", c.name, i, f.Bytes.Value/mib, f.Bytes.Interval,
					want.bytes/mib)
			}
			if math.Abs(f.Within.Value/want.seconds-1) > 0.1 || math.Abs(f.Behind.Value/c.levels[i+1].seconds-1) > 0.1 {
				t.Errorf("%s: cache %d: %v within, %v behind", c.name, i, f.Within.Value, f.Behind.Value)
			}
		}
	}
}

// TestIntervalsHoldTheTruth: of many noisy curves about 95 of 100 intervals hold the size that was declared.
func TestIntervalsHoldTheTruth(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const curves = 120
	r := rand.New(rand.NewPCG(11, 3))
	held, found := 0, 0
	for range curves {
		size := 64 * mib * math.Exp(3*r.Float64())
		got, err := caches.Read(made(r, []level{{size, 100e-6}, {0, 1e-3}}, 16*mib, 8*gib, 3, 0.05), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Caches) == 0 {
			continue
		}
		found++
		if got.Caches[0].Bytes.Interval.Contains(size) {
			held++
		}
	}
	if found < curves*97/100 || held < found*88/100 {
		t.Errorf("%d of %d found, %d hold the truth", found, curves, held)
	}
}

// TestNoFalseCaches: noise alone has none, but for about one in a hundred.
func TestNoFalseCaches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 3))
	wrong := 0
	for range 200 {
		got, err := caches.Read(made(r, []level{{0, 1e-3}}, 16*mib, 4*gib, 3, 0.08), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Caches) > 0 {
			wrong++
		}
	}
	if wrong > 6 {
		t.Errorf("%d of 200 curves without a cache have one", wrong)
	}
}

// TestAnyCurve: whatever the figures, sizes lie within what was measured and levels rise.
func TestAnyCurve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 9).Draw(t, "sizes")
		var points []caches.Point
		for i := range n {
			points = append(points, caches.Point{Bytes: math.Exp2(float64(20 + i)),
				Seconds: rapid.SliceOfN(rapid.Float64Range(1e-7, 10), 1, 3).Draw(t, fmt.Sprintf("times %d", i))})
		}
		got, err := caches.Read(points, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		last := 0.0
		for _, c := range got.Caches {
			if c.Bytes.Value < points[0].Bytes || c.Bytes.Value > points[n-1].Bytes || c.Bytes.Value < last ||
				c.Behind.Value <= c.Within.Value || !c.Bytes.Interval.Contains(c.Bytes.Value) {
				t.Fatalf("%+v", c)
			}
			last = c.Bytes.Value
		}
	})
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	_, err := caches.Read([]caches.Point{{1, []float64{1}}, {1, []float64{0}}, {math.Inf(1), nil}}, 0.95)
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("want five objections, got %v", err)
	}
}

// A curve through a cache of 256 MiB that answers in 0.1 ms, in front of a disk that takes 4 ms.
func ExampleRead() {
	var points []caches.Point
	for set := 32 * mib; set <= 8*gib; set *= 2 {
		held := min(1, 256*mib/set)
		points = append(points, caches.Point{Bytes: set, Seconds: []float64{held*0.1e-3 + (1-held)*4e-3}})
	}
	r, err := caches.Read(points, 0.95)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := r.Caches[0]
	fmt.Printf("%.0f MiB: %.1f ms within, %.1f ms behind\n", c.Bytes.Value/mib, c.Within.Value*1e3, c.Behind.Value*1e3)
	// Output: 256 MiB: 0.1 ms within, 4.0 ms behind
}
