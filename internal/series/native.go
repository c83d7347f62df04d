package series

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"

	"plimsoll/hist"
)

// bucketOf maps a bucket of package hist to the native bucket that holds its middle, in seconds: bucket i holds values in
// (2^((i-1)/8), 2^(i/8)].
var bucketOf = func() func(index int) int32 {
	table := make([]int32, hist.Index(math.MaxUint64)+1)
	for i := 1; i < len(table); i++ { // bucket 0 holds only zeros, which have a place of their own
		seconds := float64(hist.Middle(i)) / 1e9
		table[i] = int32(math.Ceil(math.Log2(seconds) * (1 << Schema)))
	}
	return func(index int) int32 { return table[index] }
}()

// native converts a histogram of nanoseconds into a native histogram of seconds.
func native(h *hist.Histogram) *histogram.Histogram {
	out := &histogram.Histogram{
		Schema:        Schema,
		ZeroThreshold: 1e-10, // below the shortest time there is, a nanosecond
		Count:         h.Count(),
		Sum:           h.Sum() / 1e9,
	}
	var last int32
	var lastCount int64
	open := false
	var count uint64
	flush := func() {
		if open {
			out.PositiveBuckets = append(out.PositiveBuckets, int64(count)-lastCount)
			lastCount = int64(count)
		}
	}
	for _, b := range h.Buckets() {
		if b.High == 0 {
			out.ZeroCount += b.Count
			continue
		}
		at := bucketOf(b.Index)
		if open && at == last {
			count += b.Count
			continue
		}
		flush()
		switch {
		case !open:
			out.PositiveSpans = []histogram.Span{{Offset: at, Length: 1}}
		case at == last+1:
			out.PositiveSpans[len(out.PositiveSpans)-1].Length++
		default:
			out.PositiveSpans = append(out.PositiveSpans, histogram.Span{Offset: at - last - 1, Length: 1})
		}
		open, last, count = true, at, b.Count
	}
	flush()
	return out
}
