package plan_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
)

// A wait for VMs on a node that is off is warned of, where nothing restarts them; not once the node is on again.
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
		sc, diagnostics := scenario.Load(fstest.MapFS{"test.yml": {Data: []byte(text)},
			"work.fio": {Data: []byte("[w]\nfilename=/dev/sdb\nsize=1g\nrw=randread\n")}},
			scenario.LoadOptions{ID: 7, Now: time.Unix(1, 0)})
		if sc == nil {
			t.Fatal(diagnostics)
		}
		facts := everything()
		delete(facts.Capabilities, target.NodeFailover)
		if c.failover {
			facts.Capabilities[target.NodeFailover] = "stated"
		}
		p, err := plan.Build(sc, facts, plan.Options{Engines: engines})
		if err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(p.Warnings, "\n"), `group "A" is waited for while node 0, where VMs of it are, `+
			"is off, and nothing restarts them elsewhere: after 1 min the run fails")
		if warned != c.want {
			t.Errorf("%+v: %q", c, p.Warnings)
		}
	}
}
