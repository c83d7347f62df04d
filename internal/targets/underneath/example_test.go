package underneath_test

import (
	"fmt"
	"testing/fstest"

	"plimsoll/internal/targets/underneath"
)

func Example() {
	cpus := underneath.New(fstest.MapFS{"proc/stat": {Data: []byte("cpu0 100 0 20 500 0 0 0 0 0 0\n")}})
	list, err := cpus.Counters()
	fmt.Println(list[0].Host, list[0].User, list[0].System, list[0].Idle, err)
	// Output: host 1s 200ms 5s <nil>
}
