package step

import (
	"fmt"

	"plimsoll/scenario"
	"plimsoll/unit"
)

func metaSteps() Registry { return Registry{"meta.RollingUpgrade": rollingUpgrade} }

// rollingUpgrade stands for, node by node: every group's VMs to the next node, shut the node down, power it on, every
// group's VMs back. Only the power steps annotate.
func rollingUpgrade(s scenario.Step, v View) ([]Step, error) {
	n := len(v.Facts.Nodes)
	times := n
	if s.Args.Has("node_count") {
		times = s.Args.Int("node_count")
	}
	if times > n {
		return nil, fmt.Errorf("node_count %d: the cluster has %s", times, unit.Plural(n, "node"))
	}
	var parts []*action
	for i := range times {
		for _, group := range v.Groups.Names() {
			part, err := migrateGroup(scenario.Args{"vm_group_name": group, "from_node": int64(i),
				"to_node": int64((i + 1) % n)}, v)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		power := scenario.Args{
			"nodes": scenario.Selector{Text: fmt.Sprint(i)}, "wait_secs": recoverLimit.Seconds(),
			"annotate": s.Args.Bool("annotate"),
		}
		parts = append(parts, nodesOff(power, v, true), nodesOn(power, v))
		for _, group := range v.Groups.Names() {
			part, err := resetPlacement(scenario.Args{"vm_group_name": group}, v)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	return expand(s.Name, "rolling upgrade", parts), nil
}
