package host

import "plimsoll/internal/contract/exporter"

// described are the families of each section.
var described = map[Section][]exporter.Family{
	CPU: {
		counter("node_cpu_seconds_total", "seconds", "Seconds the CPUs spent in each mode."),
		counter("node_cpu_guest_seconds_total", "seconds", "Seconds the CPUs spent in guests (VMs) for each mode."),
		gauge("plimsoll_cpu_numa_node_info", "", "The NUMA node of a CPU, of machines that have several; always 1."),
	},
	Load: {
		gauge("node_load1", "", "Load average over 1 minute."),
		gauge("node_load5", "", "Load average over 5 minutes."),
		gauge("node_load15", "", "Load average over 15 minutes."),
	},
	Memory: {
		gauge("node_memory_*_bytes", "bytes", "Memory information field *_bytes."),
		gauge("node_memory_*", "", "Memory information field *."),
	},
	Network: {counter("node_network_*_total", "", "Network device statistic *.")},
	Disk: {
		counter("node_disk_reads_completed_total", "", "Reads completed successfully."),
		counter("node_disk_reads_merged_total", "", "Reads merged."),
		counter("node_disk_read_bytes_total", "bytes", "Bytes read successfully."),
		counter("node_disk_read_time_seconds_total", "seconds", "Seconds spent by all reads."),
		counter("node_disk_writes_completed_total", "", "Writes completed successfully."),
		counter("node_disk_writes_merged_total", "", "Writes merged."),
		counter("node_disk_written_bytes_total", "bytes", "Bytes written successfully."),
		counter("node_disk_write_time_seconds_total", "seconds", "Seconds spent by all writes."),
		gauge("node_disk_io_now", "", "Operations in progress."),
		counter("node_disk_io_time_seconds_total", "seconds", "Seconds with at least one operation in progress."),
		counter("node_disk_io_time_weighted_seconds_total", "seconds",
			"Seconds spent by all operations, weighted by how many were in progress."),
		counter("node_disk_discards_completed_total", "", "Discards completed successfully."),
		counter("node_disk_discards_merged_total", "", "Discards merged."),
		counter("node_disk_discarded_sectors_total", "", "Sectors discarded successfully."),
		counter("node_disk_discard_time_seconds_total", "seconds", "Seconds spent by all discards."),
		counter("node_disk_flush_requests_total", "", "Flushes completed successfully."),
		counter("node_disk_flush_requests_time_seconds_total", "seconds", "Seconds spent by all flushes."),
		gauge("node_disk_info", "", "Numbers of the device; always 1."),
	},
	FileSystems: {
		gauge("node_filesystem_size_bytes", "bytes", "Size of the file system."),
		gauge("node_filesystem_free_bytes", "bytes", "Free space of the file system."),
		gauge("node_filesystem_avail_bytes", "bytes",
			"Space of the file system that is free for those who are not root."),
		gauge("node_filesystem_files", "", "Files that the file system can hold."),
		gauge("node_filesystem_files_free", "", "Files that the file system can still take."),
		gauge("node_filesystem_readonly", "", "Whether the file system is read-only."),
		gauge("node_filesystem_device_error", "", "Whether the file system could not be asked."),
	},
	Kernel: {
		counter("node_context_switches_total", "", "Context switches."),
		counter("node_intr_total", "", "Interrupts serviced."),
		counter("node_forks_total", "", "Processes made."),
		gauge("node_boot_time_seconds", "seconds", "When the machine was started, in seconds since 1970."),
		gauge("node_procs_running", "", "Tasks that run or could run."),
		gauge("node_procs_blocked", "", "Tasks that wait for I/O."),
		gauge("node_uname_info", "", "Who the machine says it is; always 1."),
	},
	Paging: {{Name: "node_vmstat_*", Type: exporter.Untyped, Help: "/proc/vmstat information field *."}},
	Pressure: {
		counter("node_pressure_cpu_waiting_seconds_total", "seconds", "Seconds for which tasks have waited for a CPU."),
		counter("node_pressure_io_waiting_seconds_total", "seconds", "Seconds for which tasks have waited for I/O."),
		counter("node_pressure_io_stalled_seconds_total", "seconds",
			"Seconds for which no task went on because of I/O."),
		counter("node_pressure_memory_waiting_seconds_total", "seconds",
			"Seconds for which tasks have waited for memory."),
		counter("node_pressure_memory_stalled_seconds_total", "seconds",
			"Seconds for which no task went on because of memory."),
		counter("node_pressure_irq_stalled_seconds_total", "seconds",
			"Seconds for which no task went on because of interrupts."),
	},
	Quota: {
		counter(quotaPeriods, "", "Periods of this container's CPU quota in which its processes had something to do."),
		counter(quotaThrottled, "", "Periods in which the CPU quota held processes of this container back."),
		gauge(memoryLimit, "bytes", "Memory that this container may have, page cache and all."),
		counter(memoryHits, "", "Times that this container wanted more memory than its limit, and some was taken back."),
	},
	Groups: {
		counter("container_cpu_cfs_periods_total", "", "Periods of a control group's CPU quota."),
		counter("container_cpu_cfs_throttled_periods_total", "",
			"Periods in which a control group had used up its CPU quota and was held back."),
		counter("container_pressure_cpu_waiting_seconds_total", "seconds",
			"Seconds for which tasks of a control group have waited for a CPU."),
		counter("container_pressure_io_waiting_seconds_total", "seconds",
			"Seconds for which tasks of a control group have waited for I/O."),
		counter("container_pressure_memory_waiting_seconds_total", "seconds",
			"Seconds for which tasks of a control group have waited for memory."),
	},
}

// Names of what a run records of other quotas, too.
const (
	quotaPeriods   = "plimsoll_cpu_quota_periods_total"
	quotaThrottled = "plimsoll_cpu_quota_throttled_periods_total"
	memoryLimit    = "plimsoll_memory_limit_bytes"
	memoryHits     = "plimsoll_memory_limit_hits_total"
)

func counter(name, unit, help string) exporter.Family {
	return exporter.Family{Name: name, Type: exporter.Counter, Unit: unit, Help: help}
}

func gauge(name, unit, help string) exporter.Family {
	return exporter.Family{Name: name, Type: exporter.Gauge, Unit: unit, Help: help}
}
