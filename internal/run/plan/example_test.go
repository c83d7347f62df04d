package plan_test

import (
	"fmt"
	"os"
	"testing/fstest"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
)

func Example() {
	fsys := fstest.MapFS{"test.yml": {Data: []byte(`
name: pause
display_name: A pause
summary: Nothing but time.
description: ""
estimated_runtime: 90
vms: []
workloads: []
results: []
setup:
  - cluster.CleanUp: {}
run:
  - test.Wait: {duration_secs: 90}
teardown:
  - cluster.CleanUp: {}
`)}}
	sc, _ := scenario.Load(fsys, scenario.LoadOptions{ID: 1, Now: time.Unix(1, 0)})
	facts := target.Facts{Target: "local", Nodes: []target.Node{{Name: "a"}}}
	p, err := plan.Build(sc, facts, plan.Options{TimeScale: 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Text(os.Stdout)
	// Output:
	// A pause (pause)
	// On target local with 1 node; time x 0.5, sizes x 1.
	// About 45 s (the author says 45 s) for 7 steps; at most 0 VMs, 0 B of data disks, 0 B of memory.
	//
	// Set-up
	//  step        at       takes  what
	//     1   0:00:00           -  clean up: power off the VMs of this run
	//     2   0:00:00           -  clean up: delete the VMs of this run
	//     3   0:00:00           -  clean up: see that nothing of this run is left
	//
	// Run (measured)
	//  step        at       takes  what
	//     4   0:00:00        45 s  wait 45 s
	//
	// Teardown
	//  step        at       takes  what
	//     5   0:00:45           -  clean up: power off the VMs of this run
	//     6   0:00:45           -  clean up: delete the VMs of this run
	//     7   0:00:45           -  clean up: see that nothing of this run is left
}
