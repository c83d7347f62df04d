package fake_test

import (
	"fmt"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/fake"
)

// The law says what a right analysis must find; the job file says how much is outstanding.
func Example() {
	engine := fake.Engine{Law: fake.Law{Kind: fake.Exponential, Mean: 2 * time.Millisecond}}
	job, err := engine.Command(workload.Spec{
		Name: "OLTP", ConfigFile: "oltp.fio", Runtime: time.Minute, Seed: 1,
		Config: []byte("[db]\nfilename=/dev/sdb\nsize=1g\nrw=randread\niodepth=8\ntime_based\n"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("throughput to expect:", float64(job.Streams[0].Depth)/engine.Law.Mean.Seconds(), "a second")
	fmt.Println("p99 to expect:", engine.Law.Quantile(0.99).Round(time.Microsecond))
	// Output:
	// throughput to expect: 4000 a second
	// p99 to expect: 9.21ms
}
