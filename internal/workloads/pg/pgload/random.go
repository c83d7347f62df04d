package pgload

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// The distributions are those that pgbench's manual defines; the sequences are our own.

// uniform is evenly from low to high.
func uniform(r *rand.Rand, low, high int64) int64 {
	if n := uint64(high) - uint64(low) + 1; n != 0 {
		return int64(uint64(low) + r.Uint64N(n))
	}
	return int64(r.Uint64())
}

// gaussian has its mean in the middle, cut at parameter standard deviations.
func gaussian(r *rand.Rand, low, high int64, parameter float64) (int64, error) {
	if !(parameter >= 2) {
		return 0, fmt.Errorf("its parameter is %g; want at least 2", parameter)
	}
	x := r.NormFloat64()
	for x < -parameter || x >= parameter {
		x = r.NormFloat64()
	}
	return scaled(low, high, (x+parameter)/(2*parameter)), nil
}

// exponential has low as the most frequent.
func exponential(r *rand.Rand, low, high int64, parameter float64) (int64, error) {
	if !(parameter > 0) {
		return 0, fmt.Errorf("its parameter is %g; want more than 0", parameter)
	}
	cut := math.Exp(-parameter)
	return scaled(low, high, -math.Log(cut+(1-cut)*(1-r.Float64()))/parameter), nil
}

// scaled is the place in [low, high] of a share from 0 to 1.
func scaled(low, high int64, share float64) int64 {
	n := float64(uint64(high)-uint64(low)) + 1
	return low + int64(min(uint64(n*max(share, 0)), uint64(high)-uint64(low)))
}

// zipfian gives low + k - 1 in proportion to k to the power of -s, by rejection (Devroye, Non-Uniform Random Variate
// Generation, 1986, page 551).
func zipfian(r *rand.Rand, low, high int64, s float64) (int64, error) {
	if !(s >= 1.001 && s <= 1000) {
		return 0, fmt.Errorf("its parameter is %g; want 1.001 to 1000", s)
	}
	n := float64(uint64(high)-uint64(low)) + 1
	b := math.Pow(2, s-1)
	for {
		u, v := 1-r.Float64(), r.Float64()
		x := math.Floor(math.Pow(u, -1/(s-1)))
		t := math.Pow(1+1/x, s-1)
		if x <= n && v*x*(t-1)/(b-1) <= t/b {
			return low + int64(min(uint64(x-1), uint64(high)-uint64(low))), nil
		}
	}
}

// fnv1a is FNV-1a of the eight bytes, from a seed.
func fnv1a(n, seed int64) int64 {
	h := 0xcbf29ce484222325 ^ uint64(seed)
	for v, i := uint64(n), 0; i < 8; v, i = v>>8, i+1 {
		h = (h ^ v&0xff) * 0x100000001b3
	}
	return int64(h)
}

// murmur2 is MurmurHash64A of the eight bytes.
func murmur2(n, seed int64) int64 {
	const m = 0xc6a4a7935bd1e995
	k := uint64(n) * m
	k = (k ^ k>>47) * m
	const m8 = m << 3 & math.MaxUint64 // the length times m
	h := (uint64(seed) ^ m8 ^ k) * m
	h = (h ^ h>>47) * m
	return int64(h ^ h>>47)
}

// permute moves n, taken modulo size, to another place in [0, size), as pgbench does since PostgreSQL 15: six rounds
// that multiply, mix and turn the lower and the upper power of two of the places, and shift all of them.
func permute(n, size, seed int64) int64 {
	if size < 2 {
		return 0
	}
	places, bit := uint64(size), bits.Len64(uint64(size))-1
	v, mask := uint64(n)%places, uint64(1)<<bit-1
	r := newXoroshiro(uint64(seed))
	for range 6 {
		mix := func(v uint64) uint64 {
			factor, flip := r.next()&mask|1, r.next()&mask
			if v > mask {
				return v
			}
			v = (v*factor ^ flip) & mask
			return v<<1&mask | v>>(bit-1)
		}
		v = mix(v)
		v = places - 1 - mix(places-1-v)
		v = (v + r.below(places)) % places
	}
	return int64(v)
}

// xoroshiro is xoroshiro128**, the generator of PostgreSQL since 15.
type xoroshiro [2]uint64

// newXoroshiro is seeded by splitmix64, as PostgreSQL's is.
func newXoroshiro(seed uint64) (x xoroshiro) {
	for i := range x {
		seed += 0x9E3779B97F4A7C15
		v := (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
		v = (v ^ v>>27) * 0x94D049BB133111EB
		x[i] = v ^ v>>31
	}
	return x
}

func (x *xoroshiro) next() uint64 {
	out, mixed := bits.RotateLeft64(x[0]*5, 7)*9, x[0]^x[1]
	x[0], x[1] = bits.RotateLeft64(x[0], 24)^mixed^mixed<<16, bits.RotateLeft64(mixed, 37)
	return out
}

// below is a number less than n, which is at least 2.
func (x *xoroshiro) below(n uint64) uint64 {
	for {
		if v := x.next() >> (64 - bits.Len64(n-1)); v < n {
			return v
		}
	}
}
