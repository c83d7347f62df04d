package reuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"plimsoll/internal/storage/trace/reuse"
	"plimsoll/internal/testkit/needs"
)

// A loop over more blocks than the cache has misses all of them, one that fits misses none but the first time.
func Example() {
	e := reuse.New(0)
	for range 10 {
		e.Run(0, 1000, false) // blocks 0 to 999
	}
	small, _ := e.MissRatio(960)
	large, _ := e.MissRatio(1024)
	fmt.Println(small, large)
	// Output: 1 0.1
}

// exact is the miss ratio of an LRU cache by definition: with a list of the blocks, the last used first.
type exact struct {
	at     map[uint64]int
	last   []int // Fenwick tree over times
	n      int
	counts map[int]int // by distance; -1 is a first access
}

func newExact(n int) *exact {
	return &exact{at: map[uint64]int{}, last: make([]int, n+2), counts: map[int]int{}}
}

func (x *exact) add(i, by int) {
	for i++; i < len(x.last); i += i & -i {
		x.last[i] += by
	}
}

func (x *exact) sum(i int) (s int) {
	for i++; i > 0; i -= i & -i {
		s += x.last[i]
	}
	return s
}

func (x *exact) access(key uint64) {
	if t, ok := x.at[key]; ok {
		x.counts[x.sum(x.n)-x.sum(t)]++
		x.add(t, -1)
	} else {
		x.counts[-1]++
	}
	x.at[key] = x.n
	x.add(x.n, 1)
	x.n++
}

func (x *exact) miss(blocks uint64) float64 {
	missed := 0
	for d, n := range x.counts {
		if d < 0 || uint64(d) >= blocks {
			missed += n
		}
	}
	return float64(missed) / float64(x.n)
}

// shapes are made to break a sample: what never comes back, what comes back all at once, a few blocks that take most.
var shapes = map[string]func(n int, rng *rand.Rand) func() uint64{
	"scan": func(int, *rand.Rand) func() uint64 {
		at := uint64(0)
		return func() uint64 { at++; return at }
	},
	"loop": func(int, *rand.Rand) func() uint64 {
		at := uint64(0)
		return func() uint64 { at++; return at % 60_000 }
	},
	"two loops": func(_ int, rng *rand.Rand) func() uint64 {
		var at [2]uint64
		return func() uint64 {
			if rng.IntN(4) == 0 {
				at[1]++
				return 1<<30 + at[1]%90_000
			}
			at[0]++
			return at[0] % 9_000
		}
	},
	"uniform": func(_ int, rng *rand.Rand) func() uint64 { return func() uint64 { return rng.Uint64N(120_000) } },
	"zipf 1.2": func(_ int, rng *rand.Rand) func() uint64 {
		z := rand.NewZipf(rng, 1.2, 1, 1<<20)
		return func() uint64 { return z.Uint64() }
	},
	"zipf 1.01": func(_ int, rng *rand.Rand) func() uint64 {
		z := rand.NewZipf(rng, 1.01, 10, 1<<22)
		return func() uint64 { return z.Uint64() }
	},
	"hot and scan": func(_ int, rng *rand.Rand) func() uint64 {
		at := uint64(1 << 40)
		return func() uint64 {
			if rng.IntN(2) == 0 {
				return rng.Uint64N(500)
			}
			at++
			return at
		}
	},
	"tiny": func(_ int, rng *rand.Rand) func() uint64 { return func() uint64 { return rng.Uint64N(40) } },
}

// What docs/how-to/trace.md claims: on these shapes no miss ratio is farther than mostError from that of a cache within
// sizeWidth of the size, and on average over the sizes none farther than meanError.
const (
	mostError = 0.05
	meanError = 0.015
	sizeWidth = 0.06
)

// TestAgainstExact measures the estimate on each shape at sizes from 64 blocks up. A size that is off by a few percent
// may lie on the other side of a cliff, so the nearest exact ratio within sizeWidth counts.
func TestAgainstExact(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 400_000
			for seed := range uint64(3) {
				next := make(n, rand.New(rand.NewPCG(seed, 7)))
				e, x := reuse.New(0), newExact(n)
				for range n {
					key := next()
					e.Run(key+seed<<45, 1, false) // another sample each time
					x.access(key)
				}
				worst, mean := compare(t, e, x)
				t.Logf("seed %d: off by at most %.4f, %.4f on average, %.3g of blocks looked at", seed, worst, mean,
					e.Summary().Rate)
				if worst > mostError || mean > meanError {
					t.Errorf("seed %d: off by at most %.4f, %.4f on average", seed, worst, mean)
				}
			}
		})
	}
}

func compare(t *testing.T, e *reuse.Estimator, x *exact) (worst, mean float64) {
	t.Helper()
	whole := e.Summary().Rate == 1
	sizes := 0.0
	for blocks := uint64(64); blocks < 1<<19; blocks *= 2 {
		sizes++
		got, _ := e.MissRatio(blocks)
		width := sizeWidth
		if whole {
			width = 0
		}
		low, high := x.miss(uint64(float64(blocks)*(1+width))), x.miss(uint64(float64(blocks)*(1-width)))
		off := max(low-got, got-high, 0)
		if whole && off > 1e-9 {
			t.Errorf("%d blocks: %v, want exactly %v", blocks, got, low)
		}
		worst = max(worst, off)
		mean += off
	}
	return worst, mean / sizes
}

// TestIntervals: how often the stated errors hold what they should, over many samples of the same accesses.
func TestIntervals(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const n, samples = 60_000, 60
	z := rand.NewZipf(rand.New(rand.NewPCG(3, 3)), 1.05, 50, 1<<18)
	keys := make([]uint64, n)
	x := newExact(n)
	for i := range keys {
		keys[i] = z.Uint64()
		x.access(keys[i])
	}
	within, of, blocks := 0, 0, 0
	for s := range uint64(samples) {
		e := reuse.New(1024)
		for _, k := range keys {
			e.Run(k+s<<40, 1, false)
		}
		sum := e.Summary()
		if math.Abs(float64(sum.Blocks)/float64(len(x.at))-1) <= sum.BlocksError {
			blocks++
		}
		for _, size := range []uint64{512, 2048, 8192} {
			got, spread := e.MissRatio(size)
			p := 1.96 * math.Sqrt((1-sum.Rate)/(sum.Rate*float64(size)))
			low, high := x.miss(uint64(float64(size)*(1+p))), x.miss(uint64(float64(size)*(1-min(p, 1))))
			of++
			if got+spread >= low && got-spread <= high {
				within++
			}
		}
	}
	if share := float64(within) / float64(of); share < 0.9 {
		t.Errorf("the intervals of miss ratios hold in %.2f of samples, want 0.95", share)
	}
	if share := float64(blocks) / samples; share < 0.85 {
		t.Errorf("the interval of the number of blocks holds in %.2f of samples, want 0.95", share)
	}
}

// TestSummary compares overwrites, reads of writes and the numbers of blocks with plain counting, where all is looked
// at.
func TestSummary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := reuse.New(64)
		read, written, last := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
		var want reuse.Summary
		over, raw := 0, 0
		for range rapid.IntRange(1, 400).Draw(t, "accesses") {
			key, write := rapid.Uint64Range(0, 60).Draw(t, "key"), rapid.Bool().Draw(t, "write")
			e.Run(key, 1, write)
			if write {
				want.Writes++
				if written[key] {
					over++
				}
				written[key] = true
			} else {
				want.Reads++
				if last[key] {
					raw++
				}
				read[key] = true
			}
			last[key] = write
		}
		got := e.Summary()
		want.Rate, want.BlocksRead, want.BlocksWritten = 1, uint64(len(read)), uint64(len(written))
		want.Blocks, want.Sampled = uint64(len(last)), len(last)
		if want.Writes > 0 {
			want.Overwrites = float64(over) / float64(want.Writes)
		}
		if want.Reads > 0 {
			want.ReadsOfWrites = float64(raw) / float64(want.Reads)
		}
		got.Hottest = nil
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		points := e.Curve()
		for i, p := range points {
			if i > 0 && p.Miss > points[i-1].Miss || p.Miss < 0 || p.Miss > 1 {
				t.Fatalf("the curve rises or leaves 0 to 1: %+v", points)
			}
		}
	})
}

func BenchmarkRun(b *testing.B) {
	for _, blocks := range []uint64{1 << 12, 1 << 16, 1 << 22} {
		b.Run(fmt.Sprint(blocks), func(b *testing.B) {
			e, rng := reuse.New(0), rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				e.Run(rng.Uint64N(blocks), 2, false)
			}
		})
	}
}
