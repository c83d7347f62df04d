package steptest

import (
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/step"
	"plimsoll/result"
	"plimsoll/scenario"
)

// language are the subtests of the steps that published scenarios rarely use, and of what every step promises:
// verification before it does anything, limits, annotations in the run phase only.
var language = []subtest{
	{name: "every step of the language can be built and says what it does", run: func(b *bench) {
		for _, spec := range scenario.Steps() {
			for _, s := range b.steps(spec.Name, example(spec)) {
				if s.Text() == "" || s.Name() == "" {
					b.t.Errorf("%s: text %q, name %q", spec.Name, s.Text(), s.Name())
				}
				for _, c := range s.Requires() {
					if !b.env.Facts.Can(c) && b.env.Facts.Missing[c] == "" {
						b.t.Errorf("%s: needs %q, which the place neither claims nor explains", spec.Name, c)
					}
				}
				s.Estimate(step.NewForecast(b.env.View))
			}
		}
	}},
	{name: "a rehearsal tells when load ends", run: func(b *bench) {
		f, can := b.place.Target.(workload.Forecaster)
		if !can || f.Rehearsal() == nil {
			return // it is no capability: the plan says that it cannot say
		}
		spec := workload.Spec{Name: "W", VM: "a",
			Config: []byte("[a]\nfilename=/dev/sdb\nrw=write\nbs=64k\nsize=16m\n"),
			Disks:  []target.Disk{{Device: "/dev/sdb", Path: "/dev/sdb", Bytes: 1 << 30}}, SizeScale: 1, TimeScale: 1}
		job, err := b.place.Engines["fio"].Command(spec)
		if err != nil {
			b.t.Fatal(err)
		}
		var ends []time.Duration
		for range 2 {
			r := f.Rehearsal()
			first, second := r.Start(0, "a", 0, job), r.Start(0, "b", 1, job)
			r.Stop(time.Millisecond, second)
			if r.Ended(first) || !r.Ended(second) {
				b.t.Error("what was stopped goes on, or what was not has ended")
			}
			end := r.Advance(time.Hour)
			for ; !r.Ended(first) && end < time.Hour; end = r.Advance(time.Hour) {
			}
			if ends = append(ends, end); !r.Ended(first) || end <= time.Millisecond || r.Advance(2*end) != 2*end {
				b.t.Errorf("a job of 16 MiB has not ended within an hour, or its end is no time: %v", end)
			}
		}
		b.expect("ends that differ", len(slices.Compact(ends)), 1)
	}},
	{name: "node waits", needs: []target.Capability{target.NodePowerControl}, run: func(b *bench) {
		b.machines()
		b.do("nodes.WaitForPowerOn", args{"nodes": nodes("all"), "wait_secs": 60.0})
		b.refuse("nodes.WaitForPowerOff", args{"nodes": nodes("1"), "wait_secs": 0.2}, "not within")
		b.do("nodes.PowerOff", args{"nodes": nodes("1"), "wait_secs": 0.0})
		b.do("nodes.WaitForPowerOff", args{"nodes": nodes("1"), "wait_secs": 60.0})
		b.do("check.OobConfigured", nil)
		b.do("check.ClusterReady", nil)
		b.do("nodes.WaitForPowerOn", args{"nodes": nodes("1"), "wait_secs": 120.0})
		b.refuse("nodes.PowerOff", args{"nodes": nodes("99")}, "99")
	}},
	{name: "annotations belong to the run phase", needs: []target.Capability{target.LiveMigration},
		run: func(b *bench) {
			b.machines()
			b.env.Phase = scenario.Setup
			b.do("vm_group.PowerOff", args{"vm_group_name": "B", "annotate": true})
			b.expect("annotations in set-up", b.seen(result.KindAnnotation, ""), 0)
			b.env.Phase = scenario.Run
			b.do("vm_group.PowerOn", args{"vm_group_name": "B"})
			b.expect("annotations not asked for", b.seen(result.KindAnnotation, ""), 0)
			b.do("vm_group.MigrateGroup", args{"vm_group_name": "B", "from_node": int64(0), "to_node": int64(1),
				"annotate": true})
			if b.seen(result.KindAnnotation, "") == 0 {
				b.t.Error("an annotation that was asked for did not come")
			}
		}},
	{name: "prefill in two steps", run: func(b *bench) {
		b.machines()
		b.refuse("workload.PrefillWait", args{"workload_name": "W", "timeout_secs": 60.0}, "never started")
		b.do("workload.PrefillStart", args{"workload_name": "W", "async": true})
		b.do("workload.PrefillWait", args{"workload_name": "W", "timeout_secs": 600.0})
		b.do("workload.PrefillStart", args{"workload_name": "W"})
	}},
	{name: "preconditioning writes every disk, then does rounds", run: func(b *bench) {
		b.machines()
		b.do("workload.Precondition", args{"workload_name": "W", "passes": int64(2), "round_secs": 2.0,
			"max_rounds": int64(6), "purge": b.env.Facts.Can(target.DiskPurge)})
		pre, _ := result.Prepared(b.events, true)
		if len(pre) != 1 {
			b.t.Fatalf("%d preconditionings in the journal", len(pre))
		}
		p := pre[0]
		n := len(b.members("A"))
		b.expect("VMs", p.VMs, n)
		b.expect("passes", len(p.Passes), 2)
		for _, pass := range p.Passes {
			b.expect("bytes of a pass", pass.Bytes, p.DiskBytes)
		}
		b.expect("bytes of the disks", p.DiskBytes, int64(n)<<22)
		if p.State != result.Preconditioned && p.State != result.PreconditionNotReached {
			b.t.Errorf("it is %q: %s", p.State, p.Reason)
		}
		if len(p.Rounds) < result.SteadyWindow || len(p.Rounds) > 6 || p.Spread == nil || p.Slope == nil {
			b.t.Errorf("%d rounds, spread %v, slope %v", len(p.Rounds), p.Spread, p.Slope)
		}
		for _, r := range p.Rounds {
			if !(r.OpsPerSecond > 0) || !(r.Seconds > 0) {
				b.t.Errorf("a round without figures: %+v", r)
			}
		}
		b.do("workload.Precondition", args{"workload_name": "X", "passes": int64(1), "max_rounds": int64(0)})
		if pre, _ := result.Prepared(b.events, true); len(pre) != 2 || pre[1].State != result.PreconditionWritten {
			b.t.Errorf("writing alone: %+v", pre)
		}
	}},
	{name: "commands that fail", needs: []target.Capability{target.GuestCommands}, run: func(b *bench) {
		b.machines()
		b.refuse("vm_group.RunCommand", args{"vm_group_name": "B", "command": "exit 3"}, "3")
		b.do("vm_group.RunCommand", args{"vm_group_name": "B", "command": "exit 3", "fail_on_error": false})
		b.expect("warnings", min(b.seen(result.KindWarning, ""), 1), 1)
	}},
	{name: "storage migration", needs: []target.Capability{target.StorageMigration}, run: func(b *bench) {
		b.machines()
		b.do("vm_group.RelocateGroupDatastore", args{"vm_group_name": "B", "dest_datastore_name": "fast"})
	}},
	{name: "platform checks", needs: []target.Capability{target.PlatformChecks, target.NodePowerControl},
		run: func(b *bench) {
			b.machines()
			for _, name := range []string{"check.VCenterConnectivity", "check.PrismConnectivity"} {
				b.do(name, nil)
			}
			b.do("check.VSphereDatastoreVisible", args{"node_index": int64(1), "datastore_name": "fast"})
			b.do("nodes.PowerOff", args{"nodes": nodes("1"), "wait_secs": 60.0})
			b.refuse("check.PrismHostInSameCluster", args{"node_index": int64(1)}, "off")
			b.refuse("check.PrismDatastoreVisible", args{"node_index": int64(1), "datastore_name": "fast"}, "off")
			b.do("check.ClusterReady", nil)
		}},
	{name: "write log", run: func(b *bench) {
		b.machines()
		b.do("experimental.WaitOplogEmpty", args{"timeout": 600.0}) // without controllers: a warning
		if !b.env.Facts.Can(target.WriteLogDrain) {
			b.expect("warnings", b.seen(result.KindWarning, "experimental.WaitOplogEmpty"), 1)
		}
	}},
	{name: "playbooks", needs: []target.Capability{target.PlaybookHosts}, run: func(b *bench) {
		login := func(inventory ...string) args {
			return args{"filename": "p.yml", "inventory": inventory, "remote_user": "root",
				"remote_pass": "secret-word"}
		}
		b.refuse("playbook.Run", login("A"), "no VMs")
		b.machines()
		b.refuse("playbook.Run", login("nobody"), "nobody")
		b.do("playbook.Run", login("A", "nodes", "cvms"))
		for _, e := range b.events {
			if strings.Contains(e.Text+e.Error, "secret-word") {
				b.t.Errorf("the journal tells the password: %+v", e)
			}
		}
	}},
	{name: "clean-up in its parts", run: func(b *bench) {
		b.machines()
		b.do("cluster.PowerOffCurieVMs", nil)
		b.expect("answering", b.answering("A")+b.answering("B"), 0)
		b.do("cluster.DeleteCurieVMs", nil)
		all, err := b.env.Cluster.VMs(b.t.Context())
		if err != nil || len(all) > 0 {
			b.t.Errorf("%d VMs left, %v", len(all), err)
		}
	}},
	{name: "commands on this machine", run: func(b *bench) {
		b.do("experimental.Shell", args{"cmd": "exit 0"})
		b.refuse("experimental.Shell", args{"cmd": "exit 4"}, "4")
		b.env.HostCommands = false
		b.refuse("experimental.Shell", args{"cmd": "exit 0"}, "--allow-host-commands")
	}},
}

// example are arguments that a step takes in the suite's scenario.
func example(spec scenario.StepSpec) args {
	a := args{}
	for _, row := range spec.Args {
		if !row.Required && row.Default != nil {
			continue
		}
		switch {
		case row.Name == "vm_group_name":
			a[row.Name] = "B"
		case row.Name == "workload_name":
			a[row.Name] = "W"
		case row.Name == "inventory":
			a[row.Name] = []string{"A"}
		case row.Name == "count_per_cluster":
			a[row.Name] = int64(3)
		case slices.Contains([]string{"from_node", "to_node", "node_index", "num_snapshots"}, row.Name):
			a[row.Name] = int64(1)
		case row.Name == "nodes":
			a[row.Name] = nodes("1")
		case row.Required && (strings.HasSuffix(row.Name, "_secs") || strings.HasSuffix(row.Name, "_minutes")):
			a[row.Name] = 1.0
		case row.Required:
			a[row.Name] = "x"
		}
	}
	return a
}
