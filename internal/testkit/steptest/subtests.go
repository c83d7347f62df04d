package steptest

import (
	"plimsoll/internal/contract/target"
	"plimsoll/result"
	"plimsoll/scenario"
)

type args = scenario.Args

func nodes(text string) scenario.Selector { return scenario.Selector{Text: text} }

// machines makes both groups and powers them on.
func (b *bench) machines() {
	b.t.Helper()
	b.do("vm_group.CloneFromTemplate", args{"vm_group_name": "A", "power_on": true})
	b.do("vm_group.CloneFromTemplate", args{"vm_group_name": "B", "power_on": true})
}

var subtests = []subtest{
	{name: "clone puts members on their nodes, powered off", run: func(b *bench) {
		b.do("vm_group.CloneFromTemplate", args{"vm_group_name": "A"})
		b.do("vm_group.CloneFromTemplate", args{"vm_group_name": "B"})
		b.expect("nodes of A", b.nodes("A")[:3], []int{0, 1, 2})
		b.expect("nodes of B", b.nodes("B"), []int{0, 0})
		b.expect("answering", b.answering("A")+b.answering("B"), 0)
	}},
	{name: "power on and off", run: func(b *bench) {
		b.refuse("vm_group.PowerOn", args{"vm_group_name": "A"}, "has no VMs")
		b.machines()
		b.do("vm_group.PowerOn", args{"vm_group_name": "A"}) // on already
		b.do("vm_group.WaitForPowerOn", args{"vm_group_name": "A"})
		b.expect("answering", b.answering("A"), len(b.members("A")))
		b.do("vm_group.PowerOff", args{"vm_group_name": "A"})
		b.do("vm_group.PowerOff", args{"vm_group_name": "A"}) // off already
		b.expect("answering after power off", b.answering("A"), 0)
		b.expect("answering of the other group", b.answering("B"), 2)
	}},
	{name: "grow", run: func(b *bench) {
		b.machines()
		b.do("vm_group.Grow", args{"vm_group_name": "B", "count_per_cluster": int64(4)})
		b.do("vm_group.WaitForPowerOn", args{"vm_group_name": "B"})
		b.expect("nodes", b.nodes("B"), []int{0, 0, 0, 0})
		b.refuse("vm_group.Grow", args{"vm_group_name": "B", "count_per_cluster": int64(4)}, "does not grow")
	}},
	{name: "migrate and reset", needs: []target.Capability{target.LiveMigration}, run: func(b *bench) {
		b.machines()
		b.do("vm_group.MigrateGroup", args{"vm_group_name": "B", "from_node": int64(0), "to_node": "2"})
		b.expect("nodes after migration", b.nodes("B"), []int{2, 2})
		b.expect("answering", b.answering("B"), 2)
		// nobody there
		b.do("vm_group.MigrateGroup", args{"vm_group_name": "B", "from_node": int64(0), "to_node": int64(1)})
		b.do("vm_group.ResetGroupPlacement", args{"vm_group_name": "B"})
		b.expect("nodes after reset", b.nodes("B"), []int{0, 0})
	}},
	{name: "move while off", needs: []target.Capability{target.VMMoves}, run: func(b *bench) {
		b.machines()
		cold := args{"vm_group_name": "B", "from_node": int64(0), "to_node": int64(-1), "cold": true}
		b.do("vm_group.MigrateGroup", cold)
		last := len(b.env.Facts.Nodes) - 1
		b.expect("nodes after a move", b.nodes("B"), []int{last, last})
		b.expect("answering", b.answering("B"), 2)
		b.do("vm_group.MigrateGroup", cold) // nobody there
		b.do("vm_group.PowerOff", args{"vm_group_name": "B"})
		b.do("vm_group.MigrateGroup", args{"vm_group_name": "B", "from_node": int64(-1), "to_node": int64(0),
			"cold": true})
		b.expect("nodes after a move back", b.nodes("B"), []int{0, 0})
		b.expect("answering of what was off", b.answering("B"), 0)
	}},
	{name: "snapshots", needs: []target.Capability{target.Snapshots}, run: func(b *bench) {
		b.machines()
		b.do("vm_group.CreatePeriodicSnapshots", args{"vm_group_name": "B", "num_snapshots": int64(2),
			"interval_minutes": 0.01})
		b.expect("annotations", b.seen(result.KindAnnotation, "Snapshot "), 2)
	}},
	{name: "run command", needs: []target.Capability{target.GuestCommands}, run: func(b *bench) {
		b.machines()
		b.do("vm_group.RunCommand", args{"vm_group_name": "B", "command": "true"})
	}},
	{name: "HA rules", needs: []target.Capability{target.AvailabilityRules}, run: func(b *bench) {
		b.machines()
		b.do("vm_group.DisableHA", args{"vm_group_name": "B"})
		b.do("vm_group.EnableHA", args{"vm_group_name": "B"})
	}},
	{name: "node power", needs: []target.Capability{target.NodePowerControl}, run: func(b *bench) {
		b.machines()
		off := b.steps("nodes.PowerOff", args{"nodes": nodes("0"), "wait_secs": 60.0})[0]
		if err := off.Do(b.t.Context(), b.env); err != nil {
			b.t.Fatal(err)
		}
		b.expect("answering on the node that is off", b.answering("B"), 0)
		b.expect("answering elsewhere", b.answering("A"), len(b.members("A"))-1)
		b.refuse("check.HypervisorConnectivity", args{"node_index": int64(0)}, "off")
		b.do("nodes.PowerOn", args{"nodes": nodes("0"), "wait_secs": 120.0})
		b.do("check.HypervisorConnectivity", args{"node_index": int64(0)})
		b.do("vm_group.PowerOn", args{"vm_group_name": "B"})
		b.expect("answering again", b.answering("B"), 2)
		if err := off.Do(b.t.Context(), b.env); err != nil {
			b.t.Fatal(err)
		}
		if err := off.Undo(b.t.Context(), b.env); err != nil {
			b.t.Fatal(err)
		}
		b.do("check.ClustersMatch", nil)
		b.do("check.HypervisorConnectivity", args{"node_index": int64(0)})
	}},
	{name: "node shutdown", needs: []target.Capability{target.NodePowerControl, target.NodeShutdown},
		run: func(b *bench) {
			b.machines()
			b.do("nodes.Shutdown", args{"nodes": nodes("1")})
			b.expect("answering", b.answering("A"), len(b.members("A"))-1)
			b.do("check.ClusterReady", nil)
			b.do("check.NodePowerManagementConnectivity", args{"node_index": int64(1)})
		}},
	{name: "rolling upgrade", needs: []target.Capability{target.NodePowerControl, target.NodeShutdown,
		target.LiveMigration}, run: func(b *bench) {
		b.machines()
		b.do("meta.RollingUpgrade", args{"node_count": int64(2)})
		b.expect("nodes of A", b.nodes("A")[:3], []int{0, 1, 2})
		b.expect("answering", b.answering("A")+b.answering("B"), len(b.members("A"))+2)
	}},
	{name: "workload runs, is waited for, runs again", run: func(b *bench) {
		b.machines()
		n := len(b.members("A"))
		b.refuse("workload.Wait", args{"workload_name": "W"}, "never started")
		b.do("workload.PrefillRun", args{"workload_name": "W", "max_concurrent": int64(2)})
		b.do("workload.Start", args{"workload_name": "W", "runtime_secs": 2.0, "stagger_secs": 1.0, "async": true})
		b.refuse("workload.Start", args{"workload_name": "W", "runtime_secs": 2.0}, "still runs")
		b.do("workload.Wait", args{"workload_name": "W"})
		b.do("workload.Start", args{"workload_name": "W", "runtime_secs": 1.0})
		b.expect("ends: prefill and two runs of every VM, and of each as a whole", b.seen(result.KindWorkload, "end"),
			3*(n+1))
	}},
	{name: "workload is stopped", run: func(b *bench) {
		b.machines()
		b.do("workload.Start", args{"workload_name": "W", "runtime_secs": 600.0, "async": true})
		b.do("test.Wait", args{"duration_secs": 1.0})
		b.do("workload.Stop", args{"workload_name": "W"})
		b.expect("stops", b.seen(result.KindWorkload, "stop"), len(b.members("A"))+1)
		b.refuse("workload.Wait", args{"workload_name": "W"}, "stopped before it ended")
	}},
	{name: "wait outlives a node", needs: []target.Capability{target.NodePowerControl}, run: func(b *bench) {
		b.machines()
		b.do("workload.Start", args{"workload_name": "W", "runtime_secs": 4.0, "async": true})
		b.do("nodes.PowerOff", args{"nodes": nodes("1"), "wait_secs": 60.0})
		b.do("workload.Wait", args{"workload_name": "W"})
		b.expect("lost", b.seen(result.KindWorkload, "lost"), 1)
		b.do("nodes.PowerOn", args{"nodes": nodes("1"), "wait_secs": 120.0})
	}},
	{name: "clean-up leaves nothing", run: func(b *bench) {
		b.machines()
		b.do("cluster.CleanUp", nil)
		all, err := b.env.Cluster.VMs(b.t.Context())
		if err != nil || len(all) > 0 {
			b.t.Errorf("%d VMs left, %v", len(all), err)
		}
		b.do("cluster.CleanUp", nil) // of nothing
	}},
}
