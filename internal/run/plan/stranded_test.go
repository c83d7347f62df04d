package plan_test

import (
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
)

// A wait for VMs on a node that is off is refused, where nothing restarts them; not once the node is on again.
func TestStranded(t *testing.T) {
	for _, c := range []struct {
		between  string
		failover bool
		want     bool
	}{
		{between: "", want: true},
		{between: "", failover: true},
		{between: "  - nodes.PowerOn: {nodes: \"0\"}\n"},
	} {
		text := strings.TrimSuffix(plainScenario, "\n")
		text = text[:strings.Index(text, "run:")] + "run:\n  - nodes.PowerOff: {nodes: \"0\"}\n" + c.between +
			"  - vm_group.WaitForPowerOn: {vm_group_name: A, wait_secs: 60}\n"
		text = strings.Replace(text, "vm_group_name: A}", "vm_group_name: A, disable_ha: False}", 1)
		facts := everything()
		delete(facts.Capabilities, target.NodeFailover)
		if c.failover {
			facts.Capabilities[target.NodeFailover] = "stated"
		}
		p, err := plan.Build(withWork(t, text), facts, plan.Options{Engines: engines})
		if (err != nil) != c.want {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(p.Objections, "\n"), `group "A" is waited for while node 0, where VMs of it are, `+
			"is off, and nothing restarts them elsewhere (not on this target): after 1 min the run would fail; lab, kubernetes and sim can")
		if warned != c.want {
			t.Errorf("%+v: %q", c, p.Objections)
		}
	}
}
