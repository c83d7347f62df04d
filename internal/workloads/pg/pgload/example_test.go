package pgload_test

import (
	"fmt"

	"plimsoll/internal/workloads/pg/pgload"
)

// A load says everything that is wrong with it at once, in scripts with the line.
func ExampleJob_Check() {
	job := pgload.Defaults()
	job.Clients = 0
	job.Scripts = []pgload.Script{{Name: "look", Weight: 1, Text: "\\set id random(1, 10\nSELECT :id;\n"}}
	fmt.Println(job.Check())
	// Output:
	// clients: 0; want 1 to 10000
	// look:1: \set id: "," is missing at the end
}
