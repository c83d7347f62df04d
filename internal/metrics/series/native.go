package series

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"

	"plimsoll/hist"
)

// bucketOf maps a bucket of package hist to the native bucket that holds its middle, in seconds: bucket i holds values
// in (2^((i-1)/8), 2^(i/8)].
var bucketOf = func() []int32 {
	table := make([]int32, hist.Index(math.MaxUint64)+1)
	for i := 1; i < len(table); i++ { // bucket 0 holds only zeros, which have a place of their own
		seconds := float64(hist.Middle(i)) / 1e9
		table[i] = int32(math.Ceil(math.Log2(seconds) * (1 << Schema)))
	}
	return table
}()

// native converts a histogram of nanoseconds into a native histogram of seconds. It has one span from its lowest to its
// highest bucket, empty ones in between included: as the cumulative histogram fills up, its layout hardly changes,
// which returns what appends quickly.
func native(h *hist.Histogram) *histogram.Histogram {
	out := &histogram.Histogram{
		Schema:        Schema,
		ZeroThreshold: 1e-10, // below the shortest time there is, a nanosecond
		Count:         h.Count(),
		Sum:           h.Sum() / 1e9,
	}
	first, last, any := int32(0), int32(0), false
	for i := range h.All() {
		if i == 0 {
			continue
		}
		if last = bucketOf[i]; !any {
			first, any = last, true
		}
	}
	if any {
		out.PositiveSpans = []histogram.Span{{Offset: first, Length: uint32(last - first + 1)}}
		out.PositiveBuckets = make([]int64, last-first+1)
	}
	for i, n := range h.All() {
		if i == 0 {
			out.ZeroCount = n
			continue
		}
		out.PositiveBuckets[bucketOf[i]-first] += int64(n)
	}
	for i := len(out.PositiveBuckets) - 1; i > 0; i-- {
		out.PositiveBuckets[i] -= out.PositiveBuckets[i-1] // deltas
	}
	return out
}
