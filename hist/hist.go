// Package hist is a mergeable latency histogram with a stated error bound.
//
// Values are non-negative integers, by convention nanoseconds. Buckets are log-linear: 64 of equal width in
// every power of two, exact below 128. A value and the middle of its bucket differ by at most 1/128 of the
// value (0.79 %), which is therefore the error of every percentile read from the histogram. The layout is the
// one fio uses for its own latency bins, so those are imported without loss; unlike fio's, it goes on to 2^63 and
// does not saturate at 17 seconds (a count that fio put into its last bucket is marked by Saturated).
//
// Merging adds counts and is associative and commutative; subtracting an earlier cumulative histogram from a
// later one gives the interval between them. Percentiles are only ever read from merged counts, never averaged.
// The package has no clock and does no I/O.
package hist

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

const (
	subBits    = 6
	subBuckets = 1 << subBits
	// RelativeError is the greatest relative distance between a recorded value and the value reported for it.
	RelativeError = 1.0 / (2 * subBuckets)
	// fioBuckets is the number of buckets fio keeps; its last one collects everything longer.
	fioBuckets = 29 * subBuckets
)

// Index returns the bucket of v.
func Index(v uint64) int {
	msb := bits.Len64(v) - 1
	if msb <= subBits {
		return int(v)
	}
	shift := uint(msb - subBits)
	return (int(shift)+1)<<subBits + int((v>>shift)&(subBuckets-1))
}

// Bounds returns the smallest and the largest value that fall into bucket i.
func Bounds(i int) (low, high uint64) {
	if i < 2*subBuckets {
		return uint64(i), uint64(i)
	}
	shift := uint(i>>subBits) - 1
	low = (uint64(i&(subBuckets-1)) + subBuckets) << shift
	return low, low + (1<<shift - 1)
}

// Middle is the value reported for bucket i, and the key fio's json+ output gives to that bucket.
func Middle(i int) uint64 {
	return middle(Bounds(i))
}

func middle(low, high uint64) uint64 { return low + (high-low+1)/2 }

// Histogram counts values. The zero value is empty and ready to use. It is not safe for concurrent use.
type Histogram struct {
	first  int      // bucket of counts[0]
	counts []uint64 // dense window of buckets
	total  uint64
	sum    float64 // of values as given, or of middles where only buckets were
	min    uint64  // valid when total > 0
	max    uint64
}

// Bucket is one non-empty bucket.
type Bucket struct {
	Index     int
	Low, High uint64
	Count     uint64
}

// Add records one value n times.
func (h *Histogram) Add(v, n uint64) {
	if n == 0 {
		return
	}
	h.bump(Index(v), n)
	h.note(v, v, float64(v)*float64(n), n)
}

// AddBucket records n values known only by their bucket's index, as an import of ready-made buckets does.
func (h *Histogram) AddBucket(index int, n uint64) {
	if n == 0 {
		return
	}
	low, high := Bounds(index)
	h.bump(index, n)
	h.note(low, high, float64(middle(low, high))*float64(n), n)
}

func (h *Histogram) note(low, high uint64, sum float64, n uint64) {
	if h.total == 0 || low < h.min {
		h.min = low
	}
	if h.total == 0 || high > h.max {
		h.max = high
	}
	h.total += n
	h.sum += sum
}

func (h *Histogram) bump(i int, n uint64) {
	switch {
	case len(h.counts) == 0:
		h.first = i
		h.counts = append(h.counts[:0], 0)
	case i < h.first:
		grown := make([]uint64, h.first-i+len(h.counts))
		copy(grown[h.first-i:], h.counts)
		h.counts, h.first = grown, i
	case i >= h.first+len(h.counts):
		h.counts = append(h.counts, make([]uint64, i-h.first-len(h.counts)+1)...)
	}
	h.counts[i-h.first] += n
}

// SetExact replaces the minimum, maximum and sum, which buckets alone give only to within RelativeError, by
// the exact ones a tool reports beside its buckets. Bounds outside the first and last occupied bucket, min above
// max, and sums that are negative or not finite, are ignored.
func (h *Histogram) SetExact(min, max uint64, sum float64) {
	if h.total == 0 {
		return
	}
	low, high := h.min, h.max
	if Index(min) == Index(h.min) {
		low = min
	}
	if Index(max) == Index(h.max) {
		high = max
	}
	if low <= high {
		h.min, h.max = low, high
	}
	if finite(sum) && sum >= 0 {
		h.sum = sum
	}
}

// Merge adds every count of o to h.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.total == 0 {
		return
	}
	if len(h.counts) == 0 {
		h.first, h.counts = o.first, slices.Clone(o.counts)
	} else {
		h.bump(o.first, 0)
		h.bump(o.first+len(o.counts)-1, 0)
		for i, n := range o.counts {
			h.counts[o.first+i-h.first] += n
		}
	}
	h.note(o.min, o.max, o.sum, o.total)
}

// Sub returns h minus an earlier state of the same cumulative histogram. It fails when earlier is not one,
// that is, when some count would become negative (the tool was restarted, or reports are out of order).
func (h *Histogram) Sub(earlier *Histogram) (*Histogram, error) {
	d := &Histogram{}
	if earlier == nil {
		d.Merge(h)
		return d, nil
	}
	for i, n := range earlier.counts {
		if n > h.at(earlier.first+i) {
			low, high := Bounds(earlier.first + i)
			return nil, fmt.Errorf("histogram went backwards in bucket [%d, %d]: %d, earlier %d", low, high,
				h.at(earlier.first+i), n)
		}
	}
	begin, end := 0, len(h.counts)
	for begin < end && h.counts[begin] == earlier.at(h.first+begin) {
		begin++
	}
	for begin < end && h.counts[end-1] == earlier.at(h.first+end-1) {
		end--
	}
	if begin == end {
		return d, nil
	}
	d.first, d.counts, d.total = h.first+begin, slices.Clone(h.counts[begin:end]), h.total-earlier.total
	for i := range d.counts {
		d.counts[i] -= earlier.at(d.first + i)
	}
	if d.sum = h.sum - earlier.sum; !(d.sum > 0) {
		d.sum = 0
		for i, n := range d.All() {
			d.sum += float64(Middle(i)) * float64(n)
		}
	}
	low, _ := Bounds(d.first)
	_, high := Bounds(d.first + len(d.counts) - 1)
	d.min, d.max = max(low, h.min), min(high, h.max)
	return d, nil
}

func (h *Histogram) at(i int) uint64 {
	if i < h.first || i >= h.first+len(h.counts) {
		return 0
	}
	return h.counts[i-h.first]
}

// Clone returns an independent copy.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.counts = append([]uint64(nil), h.counts...)
	return &c
}

// Count is the number of values recorded.
func (h *Histogram) Count() uint64 { return h.total }

// Sum is the sum of the values recorded, exact where they were given exactly.
func (h *Histogram) Sum() float64 { return h.sum }

// Mean is Sum divided by Count; NaN when empty.
func (h *Histogram) Mean() float64 { return h.sum / float64(h.total) }

// Min and Max are the smallest and largest value recorded (bucket edges where only buckets were); 0 when empty.
func (h *Histogram) Min() uint64 { return h.min }

// Max is documented with Min.
func (h *Histogram) Max() uint64 { return h.max }

// Saturated is the number of values in or beyond the bucket in which fio collects everything over 17.04 s.
func (h *Histogram) Saturated() uint64 {
	var n uint64
	for i := fioBuckets - 1; i < h.first+len(h.counts); i++ {
		n += h.at(i)
	}
	return n
}

// Quantile returns the value v such that a fraction q of the recorded values are at most v (nearest rank: the
// ceil(q*n)-th smallest), to within RelativeError, clamped to Min and Max. ok is false when the histogram is
// empty or q is not within [0, 1].
func (h *Histogram) Quantile(q float64) (v uint64, ok bool) {
	if h.total == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	rank := uint64(math.Ceil(q * float64(h.total)))
	rank = min(max(rank, 1), h.total)
	switch rank {
	case 1:
		return h.min, true
	case h.total:
		return h.max, true
	}
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(max(Middle(h.first+i), h.min), h.max), true
		}
	}
	return h.max, true
}

// Fewest is how many values it takes to speak of a quantile: so many that one can be expected at or beyond it, 1/(1−q).
func Fewest(q float64) uint64 { return uint64(math.Round(1 / (1 - q))) }

// Percentile is Quantile of a histogram that holds enough values to speak of it, see Fewest; ok is false otherwise, and
// for a nil one. Everything that is told of a percentile goes by it.
func (h *Histogram) Percentile(q float64) (v uint64, ok bool) {
	if h == nil || h.total < Fewest(q) {
		return 0, false
	}
	return h.Quantile(q)
}

// CountAbove is the number of values in buckets wholly above v.
func (h *Histogram) CountAbove(v uint64) uint64 {
	var n uint64
	for i := max(Index(v)+1, h.first); i < h.first+len(h.counts); i++ {
		n += h.at(i)
	}
	return n
}

// All yields the index and count of every non-empty bucket in ascending order.
func (h *Histogram) All() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for i, n := range h.counts {
			if n > 0 && !yield(h.first+i, n) {
				return
			}
		}
	}
}

// Buckets lists the non-empty buckets in ascending order.
func (h *Histogram) Buckets() []Bucket {
	var out []Bucket
	for i, n := range h.counts {
		if n > 0 {
			low, high := Bounds(h.first + i)
			out = append(out, Bucket{Index: h.first + i, Low: low, High: high, Count: n})
		}
	}
	return out
}
