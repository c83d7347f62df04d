package reuse

import (
	"math"
	"slices"
)

// t95 is the 97.5 % point of Student's t with 15 degrees of freedom.
const t95 = 2.131

// Point is a cache and what it would miss.
type Point struct {
	Blocks    uint64  `json:"blocks"`
	SizeError float64 `json:"size_relative_error"` // 95 %: the size stands for one so much smaller or larger
	Miss      float64 `json:"miss_ratio"`          // of all accesses
	MissError float64 `json:"miss_ratio_error"`    // 95 %, either way
	ReadMiss  float64 `json:"read_miss_ratio"`     // of reads, in a cache that writes enter too; 0 without reads
	ReadError float64 `json:"read_miss_ratio_error"`
}

// Summary holds what all accesses showed.
type Summary struct {
	Reads, Writes uint64  // accesses
	Rate          float64 // the share of blocks looked at: 1 is all, and nothing is estimated
	Sampled       int     // blocks looked at, at the end
	Blocks        uint64  // distinct blocks
	BlocksRead    uint64
	BlocksWritten uint64
	BlocksError   float64 // relative, 95 %, of the three above
	Overwrites    float64 // share of writes that were of a block written before
	ReadsOfWrites float64 // share of reads that were of a block whose last access was a write
	Hottest       []Share
}

// Share says that a part of the blocks gets a part of the accesses.
type Share struct {
	Blocks   float64 `json:"blocks"`
	Accesses float64 `json:"accesses"`
}

// parts are the shares of blocks that Hottest is told for.
var parts = []float64{0.01, 0.05, 0.1, 0.2, 0.5}

// Summary says what was seen so far.
func (e *Estimator) Summary() Summary {
	rate := float64(e.threshold) / float64(full)
	s := Summary{Reads: e.counts[0], Writes: e.counts[1], Rate: rate, Sampled: len(e.at)}
	var read, written int
	accesses := make([]uint32, 0, len(e.at))
	total := 0.0
	for _, i := range e.at {
		b := &e.blocks[i]
		if b.read {
			read++
		}
		if b.written {
			written++
		}
		accesses = append(accesses, b.accesses)
		total += float64(b.accesses)
	}
	scale := func(n int) uint64 { return uint64(math.Round(float64(n) / rate)) }
	s.Blocks, s.BlocksRead, s.BlocksWritten = scale(len(e.at)), scale(read), scale(written)
	if rate < 1 && len(e.at) > 0 {
		s.BlocksError = 1.96 * math.Sqrt((1-rate)/float64(len(e.at)))
	}
	if s.Writes > 0 {
		s.Overwrites = min(e.over/float64(s.Writes), 1)
	}
	if s.Reads > 0 {
		s.ReadsOfWrites = min(e.raw/float64(s.Reads), 1)
	}
	slices.SortFunc(accesses, func(a, b uint32) int { return int(int64(b) - int64(a)) })
	sum, k := 0.0, 0
	for _, p := range parts {
		for ; k < int(math.Ceil(p*float64(len(accesses)))); k++ {
			sum += float64(accesses[k])
		}
		if total > 0 {
			s.Hottest = append(s.Hottest, Share{Blocks: p, Accesses: sum / total})
		}
	}
	return s
}

// Curve is the miss ratio at sizes that double from one block to the first that holds all, with steps between where
// the ratio falls.
func (e *Estimator) Curve() []Point {
	var all, reads ratios
	all.of(e, 0, 1)
	reads.of(e, 0)
	rate := float64(e.threshold) / float64(full)
	whole := max(float64(len(e.at))/rate, 1)
	var points []Point
	for i := 1; i < buckets; i++ {
		size := low(i)
		last := float64(size) >= whole
		if !last && size&(size-1) != 0 && !all.falls(i, 0.02) {
			continue
		}
		p := Point{Blocks: size}
		p.Miss, p.MissError = all.at(i)
		p.ReadMiss, p.ReadError = reads.at(i)
		if rate < 1 {
			p.SizeError = min(1.96*math.Sqrt((1-rate)/(rate*float64(size))), 1)
		}
		points = append(points, p)
		all.shown = p.Miss
		if last {
			break
		}
	}
	return points
}

// MissRatio is the share of all accesses that a cache of so many blocks would miss, with its 95 % error.
func (e *Estimator) MissRatio(blocks uint64) (ratio, spread float64) {
	var all ratios
	all.of(e, 0, 1)
	return all.at(index(float64(blocks)))
}

// ratios are miss ratios by bucket, of all and of each group.
type ratios struct {
	missed [groups][]float64 // by bucket: accesses at that distance or farther, and first ones
	total  float64
	shown  float64
	exact  bool
}

func (r *ratios) of(e *Estimator, kinds ...int) {
	r.shown, r.exact = 1, e.threshold == full
	for g := range groups {
		r.missed[g] = make([]float64, buckets+1)
		for _, k := range kinds {
			r.missed[g][buckets] += e.cold[k][g]
		}
		for i := buckets - 1; i >= 0; i-- {
			r.missed[g][i] = r.missed[g][i+1]
			for _, k := range kinds {
				r.missed[g][i] += float64(e.again[k][g][i])
			}
		}
	}
	for _, k := range kinds {
		r.total += float64(e.counts[k])
	}
}

func (r *ratios) sum(i int) (sum float64) {
	for g := range groups {
		sum += r.missed[g][i]
	}
	return sum
}

func (r *ratios) falls(i int, by float64) bool {
	return r.total > 0 && r.shown-min(r.sum(i)/r.total, 1) >= by
}

// at is the ratio of a cache of the size at which bucket i begins: accesses at that distance or farther are missed.
func (r *ratios) at(i int) (ratio, spread float64) {
	if r.total == 0 {
		return 0, 0
	}
	ratio = max(min(r.sum(i)/r.total, 1), 0)
	if r.exact {
		return ratio, 0
	}
	// The total is known, so what a group lacks of its part is taken to be hits, as in the whole.
	mean, square := 0.0, 0.0
	for g := range groups {
		v := r.missed[g][i] / (r.total / groups)
		mean += v / groups
		square += v * v / groups
	}
	return ratio, min(t95*math.Sqrt(max(square-mean*mean, 0)/(groups-1)), 1)
}
