package hist_test

import (
	"encoding/json"
	"fmt"

	"plimsoll/hist"
)

// Two machines' service times become one percentile by merging counts.
func Example() {
	var a, b hist.Histogram
	a.Add(200_000, 98) // ninety-eight operations of 200 µs
	b.Add(9_000_000, 2)
	a.Merge(&b)
	p99, _ := a.Quantile(0.99)
	fmt.Println(a.Count(), p99, a.Max())

	stored, _ := json.Marshal(&a)
	fmt.Println(string(stored))
	// Output:
	// 100 8978432 9000000
	// {"min":200000,"max":9000000,"sum":37600000,"buckets":[801,98,355,2]}
}
