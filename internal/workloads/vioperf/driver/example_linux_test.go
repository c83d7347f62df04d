package vioperf_test

import (
	"context"
	"fmt"
	"os"
	"time"

	vioperf "plimsoll/internal/workloads/vioperf/driver"
)

// Two threads write for a moment into a folder, and everything is read back.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	o := vioperf.Defaults()
	o.Dir, o.Threads, o.BlockBytes, o.Reserve, o.Verify = dir, 2, 64<<10, 0, true
	o.Duration, o.Rate = 200*time.Millisecond, 10e6
	res, err := vioperf.Write(context.Background(), o)
	if err != nil {
		panic(err)
	}
	v := res.Verification
	fmt.Println(res.Ended, res.Bytes > 0, v.Blocks == res.Blocks, v.Wrong())
	// Output: time true true 0
}
