package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
)

func ExampleState() {
	times := &hist.Histogram{}
	times.Add(uint64(2*time.Millisecond), 3)
	err := json.NewEncoder(os.Stdout).Encode(worker.State{Elapsed: time.Second, CPUSeconds: 0.25,
		Operations: []worker.Counts{{Bytes: 3 << 20, Times: times}}, Values: []*float64{new(1.5), nil}})
	fmt.Println(err)
	// Output:
	// {"elapsed_ns":1000000000,"operations":[{"bytes":3145728,"times":{"min":2000000,"max":2000000,"sum":6000000,"buckets":[1018,3]}}],"values":[1.5,null],"cpu_seconds":0.25}
	// <nil>
}
