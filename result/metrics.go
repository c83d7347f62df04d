package result

// Names of the measures of the machines in Series.Metric. Those in per cent are of the time or of the CPUs.
const (
	NodeCPU              = "node_cpu"           // %, of a node of the cluster
	HostCPUs             = "host_cpu"           // %, of all CPUs of a machine
	NUMACPU              = "numa_cpu"           // %, of one NUMA node
	OneCPU               = "one_cpu"            // %, of one CPU; those that were busiest
	OneCPUInterrupts     = "one_cpu_interrupts" // %, of that the time in interrupts
	DeviceBusy           = "device_busy"        // %, of the time with at least one operation outstanding
	DeviceReadBandwidth  = "device_read_bandwidth"
	DeviceWriteBandwidth = "device_write_bandwidth"
	DeviceReads          = "device_read_iops"
	DeviceWrites         = "device_write_iops"
)
