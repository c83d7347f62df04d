package scenario

import "plimsoll/internal/kit/untyped"

// Rows that many steps share.
var (
	groupArg    = ArgSpec{Name: "vm_group_name", Type: GroupName, Required: true, Doc: "the VM group"}
	workloadArg = ArgSpec{Name: "workload_name", Type: WorkloadRef, Required: true, Doc: "the workload"}
	nodesArg    = ArgSpec{Name: "nodes", Type: Nodes, Required: true, Doc: "the nodes, as a selector"}
	nodeWaitArg = ArgSpec{Name: "wait_secs", Type: Seconds, Default: 2400.0,
		Doc: "limit for all nodes together; 0 or less does not wait"}
	nodeArg   = nodeIndexArg("node_index", "index of the node")
	storeArg  = ArgSpec{Name: "datastore_name", Type: Text, Required: true, Doc: "name of the datastore"}
	silent    = ArgSpec{Name: "annotate", Type: Bool, Default: false, Doc: "write annotations to the results"}
	annotated = ArgSpec{Name: "annotate", Type: Bool, Default: true, Doc: "write annotations to the results"}
)

func args(rows ...ArgSpec) []ArgSpec { return rows }

// maxNodes is more than any cluster has.
const maxNodes = 100_000

func nodeIndexArg(name, doc string) ArgSpec {
	return ArgSpec{Name: name, Type: IntText, Required: true, Min: bound(-maxNodes), Max: bound(maxNodes - 1), Doc: doc}
}

// steps is the whole vocabulary of the step lists.
var steps = []StepSpec{
	// vm_group
	{Name: "vm_group.CloneFromTemplate", Needs: []string{NeedsVMs},
		Doc: "Makes the group's template VM from its image unless it exists, and clones every member from it onto " +
			"its node.",
		Args: args(groupArg,
			ArgSpec{Name: "power_on", Type: Bool, Default: false, Doc: "power the members on and wait until they are " +
				"accessible"},
			ArgSpec{Name: "linked_clone", Type: Bool, Default: false, Doc: "share blocks with the template where the " +
				"platform can"},
			ArgSpec{Name: "disable_drs", Type: Bool, Default: true, Doc: "exempt the members from automatic balancing"},
			ArgSpec{Name: "disable_ha", Type: Bool, Default: true, Doc: "exempt the members from restart after a " +
				"node failure"},
			silent)},
	{Name: "vm_group.PowerOn", Needs: []string{NeedsVMs},
		Doc: "Powers on the members that are off and waits until all are accessible.",
		Args: args(groupArg,
			ArgSpec{Name: "max_concurrent", Type: Int, Default: int64(100), Min: bound(1), Max: bound(MaxGroupSize),
				Doc: "VMs powered on at a time"}, silent)},
	{Name: "vm_group.WaitForPowerOn", Needs: []string{NeedsVMs},
		Doc: "Waits until all members are accessible; powers nothing on.",
		Args: args(groupArg, ArgSpec{Name: "wait_secs", Type: Seconds, Default: 600.0, Above: bound(0), Doc: "limit"},
			silent)},
	{Name: "vm_group.PowerOff", Needs: []string{NeedsVMs},
		Doc: "Cuts the members' power and waits until they are off.", Args: args(groupArg, silent)},
	{Name: "vm_group.Grow", Needs: []string{NeedsVMs},
		Doc: "Replaces the group's count by a larger one and clones the missing members from the first one, data and " +
			"all. Takes exactly one count.",
		Args: args(groupArg,
			ArgSpec{Name: "count_per_node", Type: Int, Min: bound(1), Max: bound(MaxGroupSize),
				Doc: "members per selected node from now on"},
			ArgSpec{Name: "count_per_cluster", Type: Int, Min: bound(1), Max: bound(MaxGroupSize),
				Doc: "members in total from now on"},
			ArgSpec{Name: "linked_clone", Type: Bool, Default: false, Doc: "share blocks with the first member where " +
				"the platform can"},
			silent)},
	{Name: "vm_group.CreatePeriodicSnapshots", Needs: []string{NeedsVMs, NeedsSnapshots},
		Doc: "Takes snapshots of the whole group, the first at once, each next one an interval after the previous " +
			"was complete.",
		Args: args(groupArg,
			ArgSpec{Name: "num_snapshots", Type: Int, Required: true, Min: bound(1), Max: bound(10_000),
				Doc: "how many"},
			ArgSpec{Name: "interval_minutes", Type: Number, Required: true, Above: bound(0), Max: bound(366 * 24 * 60),
				Doc: "pause between two, in minutes"},
			ArgSpec{Name: "async", Type: Bool, Default: false, Doc: "go on with the next step at once"}, annotated)},
	{Name: "vm_group.MigrateGroup", Needs: []string{NeedsVMs, NeedsMigrate},
		Doc: "Live-migrates the members that are on one node to another, or moves them while they are off.",
		Args: args(groupArg,
			nodeIndexArg("from_node", "index of the node to leave; negative counts from the end"),
			nodeIndexArg("to_node", "index of the node to go to; negative counts from the end"),
			ArgSpec{Name: "cold", Type: Bool, Default: false, Extension: true, Doc: "true powers members off, moves " +
				"them and powers on again those that were on: it needs no live migration"}, silent)},
	{Name: "vm_group.ResetGroupPlacement", Needs: []string{NeedsVMs, NeedsMigrate},
		Doc: "Live-migrates every member that is elsewhere back to its own node.", Args: args(groupArg, silent)},
	{Name: "vm_group.RunCommand", Needs: []string{NeedsVMs, NeedsExec},
		Doc: "Runs a shell command on every member, one after another.",
		Args: args(groupArg,
			ArgSpec{Name: "command", Type: Text, Required: true, Doc: "the shell command"},
			ArgSpec{Name: "fail_on_error", Type: Bool, Default: true, Doc: "false makes a failure a warning"},
			ArgSpec{Name: "user", Type: Text, Default: "nutanix", Doc: "user in the guest"},
			ArgSpec{Name: "timeout_secs", Type: Seconds, Default: 120.0, Above: bound(0), Doc: "limit for each member"},
			silent)},
	{Name: "vm_group.RelocateGroupDatastore", Needs: []string{NeedsVMs, NeedsStorage}, OnlyThere: "vsphere",
		Doc: "Moves the storage of all members to another datastore.",
		Args: args(groupArg, ArgSpec{Name: "dest_datastore_name", Type: Text, Required: true, Doc: "where to"},
			silent)},
	{Name: "vm_group.EnableHA", Needs: []string{NeedsVMs},
		Doc: "Lets the platform restart the VMs after a node failure.", Args: args(groupArg, silent)},
	{Name: "vm_group.DisableHA", Needs: []string{NeedsVMs},
		Doc: "Exempts the VMs from restart after a node failure.", Args: args(groupArg, silent)},

	// workload
	{Name: "workload.PrefillRun", Needs: []string{NeedsVMs, NeedsWorkloads},
		Doc: "Writes every file of the workload's job file once, a few members at a time.",
		Args: args(workloadArg,
			ArgSpec{Name: "max_concurrent", Type: Int, Default: int64(8), Min: bound(1), Max: bound(MaxGroupSize),
				Doc: "VMs prefilled at a time"},
			ArgSpec{Name: "timeout_secs", Type: Seconds, Default: 7200.0, Above: bound(0), Doc: "limit for each VM"},
			silent)},
	{Name: "workload.PrefillStart", Needs: []string{NeedsVMs, NeedsWorkloads},
		Doc: "Starts the prefill of a workload on all members at once.",
		Args: args(workloadArg, ArgSpec{Name: "async", Type: Bool, Default: false,
			Doc: "go on with the next step at once"}, silent)},
	{Name: "workload.PrefillWait", Needs: []string{NeedsVMs, NeedsWorkloads},
		Doc: "Waits for a prefill started before.",
		Args: args(workloadArg, ArgSpec{Name: "timeout_secs", Type: Seconds, Default: 7200.0, Above: bound(0),
			Doc: "limit"}, silent)},
	{Name: "workload.Precondition", Needs: []string{NeedsVMs, NeedsWorkloads}, Extension: true,
		Doc: "Brings the group's data disks to a state that lasts: writes all of them from end to end, then does rounds " +
			"of the workload until their rates are steady.",
		Args: args(workloadArg,
			ArgSpec{Name: "purge", Type: Bool, Default: false, Doc: "empty the disks before; needs a purge of data " +
				"disks"},
			ArgSpec{Name: "passes", Type: Int, Default: int64(2), Min: bound(0), Max: bound(10),
				Doc: "how often all of every disk is written"},
			ArgSpec{Name: "block_kb", Type: Int, Default: int64(128), Min: bound(4), Max: bound(16384),
				Doc: "size of these writes, in KiB"},
			ArgSpec{Name: "max_concurrent", Type: Int, Default: int64(8), Min: bound(1), Max: bound(MaxGroupSize),
				Doc: "VMs written at a time"},
			ArgSpec{Name: "round_secs", Type: Seconds, Default: 60.0, Above: bound(0), Doc: "how long a round is"},
			ArgSpec{Name: "max_rounds", Type: Int, Default: int64(25), Min: bound(0), Max: bound(1000),
				Doc: "after so many it is given up, which is a result and no failure; 0: no rounds, else at least 5"},
			ArgSpec{Name: "timeout_secs", Type: Seconds, Default: 86400.0, Above: bound(0), Doc: "limit; rounds that " +
				"would go beyond it are not begun"},
			silent)},
	{Name: "workload.Start", Needs: []string{NeedsVMs, NeedsWorkloads},
		Doc: "Starts a workload on every member and, unless async, waits for it.",
		Args: args(workloadArg,
			ArgSpec{Name: "runtime_secs", Type: Seconds, Min: bound(0), Doc: "how long each member runs, unless its " +
				"job file has a runtime of its own, which wins; without either, " +
				"until the job's size is done"},
			ArgSpec{Name: "timeout_secs", Type: Seconds, Min: bound(0), Doc: "limit beyond the runtime, 300 when " +
				"absent or 0; not with async"},
			ArgSpec{Name: "async", Type: Bool, Default: false, Doc: "go on with the next step at once"},
			ArgSpec{Name: "stagger_secs", Type: Seconds, Min: bound(0), Doc: "spread the starts of the members " +
				"evenly over this time"},
			ArgSpec{Name: "seed", Type: Text, Doc: "seed text; two workloads with one seed replay the same sequence"},
			silent)},
	{Name: "workload.Wait", Needs: []string{NeedsVMs, NeedsWorkloads},
		Doc: "Waits for a workload started before.",
		Args: args(workloadArg, ArgSpec{Name: "timeout_secs", Type: Seconds, Min: bound(0),
			Doc: "limit beyond the expected end, 300 when absent or 0"}, silent)},
	{Name: "workload.Stop", Needs: []string{NeedsVMs, NeedsWorkloads},
		Doc: "Kills a running workload on every member and fetches its results.", Args: args(workloadArg, silent)},

	// nodes
	{Name: "nodes.PowerOff", Needs: []string{NeedsNodePower},
		Doc:  "Cuts the power of the nodes at once and waits until they are off.",
		Args: args(nodesArg, nodeWaitArg, annotated)},
	{Name: "nodes.PowerOn", Needs: []string{NeedsNodePower},
		Doc:  "Gives power to the nodes at once and waits until they are ready.",
		Args: args(nodesArg, nodeWaitArg, annotated)},
	{Name: "nodes.WaitForPowerOff", Needs: []string{NeedsNodePower},
		Doc: "Waits until the nodes are off.", Args: args(nodesArg, nodeWaitArg, annotated)},
	{Name: "nodes.WaitForPowerOn", Needs: []string{NeedsNodePower},
		Doc:  "Waits until the nodes are powered on and their services are ready.",
		Args: args(nodesArg, nodeWaitArg, annotated)},
	{Name: "nodes.Shutdown", Needs: []string{NeedsNodePower, NeedsShutdown},
		Doc:  "Shuts the nodes' hypervisors down gracefully and waits until they are off.",
		Args: args(nodesArg, nodeWaitArg, annotated)},

	// cluster
	{Name: "cluster.CleanUp", Meta: true,
		Doc:  "Powers on nodes that are off and removes the VMs, images and snapshots that runs have left.",
		Args: args(silent)},
	{Name: "cluster.PowerOffCurieVMs", Needs: []string{NeedsVMs},
		Doc: "Powers off the VMs that runs have left.", Args: args(silent)},
	{Name: "cluster.DeleteCurieVMs", Needs: []string{NeedsVMs},
		Doc: "Deletes the VMs that runs have left.", Args: args(silent)},

	// meta
	{Name: "meta.RollingUpgrade", Meta: true, Needs: []string{NeedsVMs, NeedsNodePower, NeedsShutdown, NeedsMigrate},
		Doc: "For each node in turn: moves its VMs to the next node, shuts it down, powers it on, moves the VMs back.",
		Args: args(ArgSpec{Name: "node_count", Type: Int, Min: bound(1), Max: bound(maxNodes),
			Doc: "how many nodes; all when absent"}, annotated)},

	// playbook
	{Name: "playbook.Run", Needs: []string{NeedsAnsible},
		Doc: "Runs an Ansible playbook on VM groups, nodes or storage controllers.",
		Args: args(
			ArgSpec{Name: "filename", Type: File, Required: true, Doc: "the playbook"},
			ArgSpec{Name: "inventory", Type: TextList, Required: true, Doc: "VM groups, nodes, cvms"},
			ArgSpec{Name: "remote_user", Type: Text, Required: true, Doc: "user on the hosts"},
			ArgSpec{Name: "remote_pass", Type: Secret, Required: true, Doc: "the user's password"},
			ArgSpec{Name: "variables", Type: Mapping, Default: untyped.Object{}, Doc: "extra variables"},
			ArgSpec{Name: "forks", Type: Int, Default: int64(32), Min: bound(1), Max: bound(MaxGroupSize),
				Doc: "hosts at a time"}, silent)},

	// test, experimental
	{Name: "test.Wait", Doc: "Waits.",
		Args: args(ArgSpec{Name: "duration_secs", Type: Seconds, Required: true, Above: bound(0), Doc: "how long"},
			silent)},
	{Name: "experimental.Shell", Needs: []string{NeedsHostShell},
		Doc:  "Runs a shell command on the machine that runs the scenario, in the run folder. Off unless allowed.",
		Args: args(ArgSpec{Name: "cmd", Type: Text, Required: true, Doc: "the shell command"}, silent)},
	{Name: "experimental.WaitOplogEmpty", Needs: []string{NeedsController}, OnlyThere: "nutanix",
		Doc:  "Waits until every storage controller has drained its write log.",
		Args: args(ArgSpec{Name: "timeout", Type: Seconds, Default: 1200.0, Above: bound(0), Doc: "limit"})},

	// check
	{Name: "check.OobConfigured", Needs: []string{NeedsNodePower},
		Doc: "Every node has a power controller.", Args: args(annotated)},
	{Name: "check.ClusterReady", Doc: "All nodes are ready; tries to power on those that are not.",
		Args: args(annotated)},
	{Name: "check.ClustersMatch", Doc: "The cluster manager and the storage agree on the nodes.",
		Args: args(annotated)},
	{Name: "check.HypervisorConnectivity", Doc: "The node answers a ping.", Args: args(nodeArg, annotated)},
	{Name: "check.NodePowerManagementConnectivity", Needs: []string{NeedsNodePower},
		Doc: "The node's power controller answers.", Args: args(nodeArg, annotated)},
	{Name: "check.VCenterConnectivity", OnlyThere: "vsphere", Doc: "vCenter answers.", Args: args(annotated)},
	{Name: "check.VSphereDatastoreVisible", OnlyThere: "vsphere",
		Doc: "The node sees the datastore.", Args: args(storeArg, nodeArg, annotated)},
	{Name: "check.PrismConnectivity", OnlyThere: "nutanix", Doc: "Prism answers.", Args: args(annotated)},
	{Name: "check.PrismHostInSameCluster", OnlyThere: "nutanix",
		Doc: "The node belongs to the cluster.", Args: args(nodeArg, annotated)},
	{Name: "check.PrismDatastoreVisible", OnlyThere: "nutanix",
		Doc: "The node sees the datastore.", Args: args(storeArg, nodeArg, annotated)},
}
