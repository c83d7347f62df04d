package scenario

// Option tables of everything but the steps.

// sectionList marks a field that is a list of mappings, which is decoded on its own.
const sectionList ArgType = "list"

// fileFields are the keys of the file. vars and presets are read before templating and are not among them.
var fileFields = []ArgSpec{
	{Name: "name", Type: TextOnly, Required: true, Doc: "identity of the scenario"},
	{Name: "display_name", Type: TextOnly, Required: true, Doc: "name shown to people"},
	{Name: "summary", Type: TextOnly, Required: true, Doc: "one line about the scenario"},
	{Name: "description", Type: TextOnly, Required: true, Doc: "what it is about, as HTML; may be empty"},
	{Name: "estimated_runtime", Type: NumberText, Required: true, Min: bound(0), Max: bound(maxSeconds),
		Doc: "estimate in seconds; nothing is enforced with it"},
	{Name: "tags", Type: TextList, Default: []string{}, Doc: "words to search by"},
	{Name: "id", Type: Int, Min: bound(0), Max: bound(1 << 53),
		Doc: "scenario id, part of VM names and labels; milliseconds since the epoch when absent"},
	{Name: "vms", Type: sectionList, Required: true, Doc: "VM groups, may be []"},
	{Name: "workloads", Type: sectionList, Required: true, Doc: "workloads, may be []"},
	{Name: "results", Type: sectionList, Required: true, Doc: "results, may be []"},
	{Name: "pre_setup", Type: sectionList, Doc: "belongs to the engine, must be absent"},
	{Name: "setup", Type: sectionList, Required: true, Doc: "steps before the measurement"},
	{Name: "run", Type: sectionList, Required: true, Doc: "measured steps"},
	{Name: "teardown", Type: sectionList, Doc: "steps after the measurement"},
	{Name: "assert", Type: sectionList, Extension: true, Doc: "conditions on the outcome; one that fails gives " +
		"exit code 5"},
	{Name: "experiment", Type: Any, Extension: true, Doc: "variables that take several values, each combination with " +
		"repeats: one experiment of many runs"},
}

var groupFields = []ArgSpec{
	{Name: "template", Type: Text, Required: true, Doc: "name of the image"},
	{Name: "template_type", Type: Text, Default: "DISK", Enum: []string{"DISK", "OVF"},
		Doc: "DISK: a VM with a copy of the image; OVF: import the folder of that name"},
	{Name: "vcpus", Type: Int, Default: int64(2), Min: bound(1), Max: bound(10_000), Doc: "virtual processors"},
	{Name: "ram_mb", Type: Int, Default: int64(2048), Min: bound(1), Max: bound(1 << 30), Doc: "memory in MiB"},
	{Name: "data_disks", Type: Any, Doc: "{count, size} or a list of sizes, in GiB, all equal"},
	{Name: "disk_mib", Type: IntList, Extension: true, Min: bound(1), Max: bound(1 << 30),
		Doc: "in place of data_disks: a list of sizes in MiB, which may differ"},
	{Name: "nodes", Type: Nodes, Default: Selector{Text: ":"}, Doc: "where members may live, in this order"},
	{Name: "count_per_node", Type: Int, Min: bound(0), Max: bound(MaxGroupSize), Doc: "members per selected node"},
	{Name: "count_per_cluster", Type: Int, Min: bound(0), Max: bound(MaxGroupSize),
		Doc: "members in total; with neither count, one per selected node"},
	{Name: "exporter_ports", Type: IntList, Default: []int64{9100}, Min: bound(1), Max: bound(65535),
		Doc: "one scrape target per VM and port"},
}

var diskFields = []ArgSpec{
	{Name: "count", Type: Int, Required: true, Min: bound(0), Max: bound(1000), Doc: "number of disks"},
	{Name: "size", Type: Int, Required: true, Min: bound(0), Max: bound(1 << 20), Doc: "size of each in GiB"},
}

var workloadFields = []ArgSpec{
	{Name: "vm_group", Type: GroupName, Required: true, Doc: "the VM group it runs on"},
	{Name: "generator", Type: Text, Default: "fio", Doc: "the load generator: fio, or command for any program"},
	{Name: "config_file", Type: File, Required: true, Doc: "the job file, relative to the scenario file"},
	{Name: "iogen_params", Type: Mapping, Doc: "reporting_interval"},
	{Name: "job_options", Type: Mapping, Extension: true, Doc: "options set in every job of the file, such as bs: {{ " +
		"block_size }}"},
}

var iogenFields = []ArgSpec{
	{Name: "reporting_interval", Type: Seconds, Default: 5.0, Above: bound(0), Max: bound(3600),
		Doc: "seconds between two reports of the generator"},
}

var aggregates = []string{"sum", "min", "mean", "median", "max"}

var resultFields = []ArgSpec{
	{Name: "vm_group", Type: GroupName, Doc: "result of a VM group, by query"},
	{Name: "workload_name", Type: WorkloadRef, Doc: "result of a workload, from the generator's reports"},
	{Name: "metric", Type: Text, Doc: "result of the cluster: name of the counter"},
	{Name: "result_type", Type: Text, Doc: "VM group: iops, bandwidth, latency, generic; workload: iops, bandwidth, " +
		"errors, active"},
	{Name: "title", Type: Text, Doc: "name shown; the entry's name when absent"},
	{Name: "description", Type: Text, Doc: "text shown"},
	{Name: "aggregate", Type: Text, Doc: "how VMs or nodes are combined; one series each when absent"},
	{Name: "result_hint", Type: Text, Doc: "how to read the chart"},
	{Name: "result_expected_value", Type: NumberText, Doc: "a horizontal line; 0 counts as absent"},
	{Name: "result_value_bands", Type: sectionList, Doc: "list of {name, upper, lower}"},
	{Name: "report_group", Type: Text, Doc: "heading in the report, such as performance or availability"},
	{Name: "report_metrics", Type: TextList, Doc: "NoScore, Variability, Min, Mean, Median, Max, AnyFail"},
	{Name: "group", Type: Text, Doc: "key that groups charts"},
	{Name: "x_label", Type: Text, Doc: "label of the time axis"},
	{Name: "y_label", Type: Text, Doc: "label of the value axis"},
	{Name: "workload_mask", Type: WorkloadRef, Doc: "VM group: only while this workload runs"},
	{Name: "step", Type: Text, Doc: "VM group: resolution of the query, such as 5s"},
	{Name: "query", Type: Text, Doc: "VM group, generic: the query"},
}

var bandFields = []ArgSpec{
	{Name: "name", Type: Text, Required: true, Doc: "label"},
	{Name: "upper", Type: NumberText, Required: true, Doc: "upper end"},
	{Name: "lower", Type: NumberText, Required: true, Doc: "lower end"},
}

var (
	groupTypes    = []string{"iops", "bandwidth", "latency", "generic"}
	workloadTypes = []string{"iops", "bandwidth", "errors", "active"}
	reportMetrics = []string{"NoScore", "Variability", "Min", "Mean", "Median", "Max", "AnyFail"}
)

// clusterMetrics are the counters of cluster results; true marks the experimental ones.
var clusterMetrics = map[string]bool{
	"CpuUsage.Avg.Megahertz":                true,
	"CpuUsage.Avg.Percent":                  true,
	"MemUsage.Avg.Percent":                  true,
	"NetReceived.Avg.KilobytesPerSecond":    false,
	"NetTransmitted.Avg.KilobytesPerSecond": false,
}
