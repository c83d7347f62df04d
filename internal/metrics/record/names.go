package record

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// Names of the series that a Recorder writes. The first six are node_exporter's, so that published queries work; device
// is always "data", all data disks together, since a load generator does not account by disk. node_exporter's
// node_disk_io_time_seconds_total is not written: the time during which at least one operation was outstanding cannot
// be derived from what generators count.
const (
	ReadsCompleted  = "node_disk_reads_completed_total"
	WritesCompleted = "node_disk_writes_completed_total"
	ReadBytes       = "node_disk_read_bytes_total"
	WrittenBytes    = "node_disk_written_bytes_total"
	ReadSeconds     = "node_disk_read_time_seconds_total"
	WriteSeconds    = "node_disk_write_time_seconds_total"

	WorkloadOps     = "plimsoll_workload_ops_total"            // by op
	WorkloadBytes   = "plimsoll_workload_bytes_total"          // by op
	WorkloadService = "plimsoll_workload_service_time_seconds" // by op; native histogram
	WorkloadErrors  = "plimsoll_workload_errors_total"
	WorkloadMeasure = "plimsoll_workload_measure" // by measure and unit: as last reported
	WorkloadActive  = "plimsoll_workload_active"  // 1 while it runs, else 0

	Event = "plimsoll_event" // 1 at a fault or the beginning of a stretch; by kind and text

	OperationSeconds = "plimsoll_platform_operation_seconds" // by operation, vm, group, object; when it was over

	VMNode = "plimsoll_vm_node" // index of the node on which the VM is; a point per tick while it is on

	clusterPrefix = "plimsoll_cluster_"
)

// ClusterSeries is the series name of a cluster metric of the scenario language: CpuUsage.Avg.Percent is
// plimsoll_cluster_cpu_usage_avg_percent. Values are in the metric's own unit; label node is the node's index.
func ClusterSeries(metric string) string {
	var b strings.Builder
	b.WriteString(clusterPrefix)
	lower := false
	for _, r := range metric {
		switch {
		case r >= 'A' && r <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
			lower = false
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
			lower = true
		default:
			if lower {
				b.WriteByte('_')
			}
			lower = false
		}
	}
	return b.String()
}

// diskSeries are written for every machine that is on, in this order.
var diskSeries = [...]string{VMNode, ReadsCompleted, WritesCompleted, ReadBytes, WrittenBytes, ReadSeconds,
	WriteSeconds}

// Names of the series of the machines underneath, as an exporter on them would serve them. They are not called
// node_...: those are the VMs' here, and a published query must not add up the two.
const (
	HostCPU          = "plimsoll_host_cpu_seconds_total" // by cpu, numa_node, mode
	HostReads        = "plimsoll_host_disk_reads_completed_total"
	HostWrites       = "plimsoll_host_disk_writes_completed_total"
	HostReadBytes    = "plimsoll_host_disk_read_bytes_total"
	HostWrittenBytes = "plimsoll_host_disk_written_bytes_total"
	HostIOTime       = "plimsoll_host_disk_io_time_seconds_total"
	// of reads and writes, added up: node_disk_read_time_seconds_total and node_disk_write_time_seconds_total together
	HostOperationsTime = "plimsoll_host_disk_operations_time_seconds_total"

	HostWaited = "plimsoll_host_pressure_waiting_seconds_total" // by resource: cpu, io, memory

	// of CPU quotas, by the machine that has one: periods, and those in which it held processes back
	QuotaPeriods   = "plimsoll_cpu_quota_periods_total"
	QuotaThrottled = "plimsoll_cpu_quota_throttled_periods_total"

	// of the busiest thread of a load generator, since the last look
	ThreadBusy    = "plimsoll_generator_thread_busy_ratio"
	ThreadWaiting = "plimsoll_generator_thread_waiting_ratio" // of the same thread: ready, and no CPU
)

// Names of the series about an endpoint that is scraped, as Prometheus has them.
const (
	EndpointUp       = "up" // 1 when it answered, else 0
	EndpointDuration = "scrape_duration_seconds"
	EndpointSamples  = "scrape_samples_scraped"
)

// Names of the series that a Recorder writes of the streams of a workload that tells them apart, with the labels
// workload and section besides those of all. They are not the workload's names with one label more: a query for a
// workload must not count everything twice.
const (
	SectionOps     = "plimsoll_section_ops_total"            // by op
	SectionBytes   = "plimsoll_section_bytes_total"          // by op
	SectionService = "plimsoll_section_service_time_seconds" // by op; native histogram
)

// SectionNames are the names of streams made unique: a second one of a name gets a number.
func SectionNames(streams []result.Stream) []string {
	var names []string
	for _, l := range streams {
		name := l.Name
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s (%d)", l.Name, n)
		}
		names = append(names, name)
	}
	return names
}

// descriptions of the series that a Recorder writes, but node_exporter's, which counters of any machine have as well.
var descriptions = map[string]series.Description{
	WorkloadOps:   {Type: "counter", Help: "Operations that a workload has completed, by kind of operation."},
	WorkloadBytes: {Type: "counter", Help: "Bytes that a workload's operations have moved, by kind of operation."},
	WorkloadService: {
		Type: "histogram",
		Help: "Time from an operation's actual send to its completion, by kind of operation.",
	},
	WorkloadErrors:  {Type: "counter", Help: "Operations of a workload that failed."},
	WorkloadMeasure: {Type: "gauge", Help: "What a load generator reports besides operations, by measure and unit."},
	WorkloadActive:  {Type: "gauge", Help: "1 while a workload runs on the VM, else 0."},
	Event:           {Type: "gauge", Help: "1 at a fault or at the beginning of a stretch, by kind and text."},
	VMNode:          {Type: "gauge", Help: "Index of the node on which the VM is, while it is on."},
	ReadsCompleted:  {Type: "counter", Help: "Reads completed."},
	WritesCompleted: {Type: "counter", Help: "Writes completed."},
	ReadBytes:       {Type: "counter", Help: "Bytes read."},
	WrittenBytes:    {Type: "counter", Help: "Bytes written."},
	ReadSeconds:     {Type: "counter", Help: "Seconds that reads took, added up."},
	WriteSeconds:    {Type: "counter", Help: "Seconds that writes took, added up."},
}

// Describe says what a run's metric is. Of those that are not the Recorder's own the name is all that is known.
func Describe(name string) series.Description {
	d, known := descriptions[name]
	switch {
	case known:
		return d
	case strings.HasPrefix(name, clusterPrefix):
		return series.Description{Type: "gauge", Help: "A metric of the cluster, as the scenario language names it."}
	}
	return series.Description{Type: series.TypeOf(name)}
}
