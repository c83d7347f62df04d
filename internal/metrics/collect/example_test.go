package collect_test

import (
	"fmt"

	"plimsoll/internal/metrics/collect"
	"plimsoll/scenario"
)

func ExampleQuery() {
	query, unit, err := collect.Query(scenario.Result{Type: "iops", Group: "OLTP"}, 42)
	fmt.Println(query)
	fmt.Println(unit, err)
	// Output:
	// sum by (instance) (irate(node_disk_reads_completed_total{scenario_id="42", vm_group="OLTP"}[30s]) + irate(node_disk_writes_completed_total{scenario_id="42", vm_group="OLTP"}[30s]))
	// ops/s <nil>
}
