package record

import (
	"slices"
	"strconv"
	"time"

	"plimsoll/internal/metrics/series"
)

// HostCPUTime is how one CPU, or "all" of a NUMA node, of a machine has spent its time.
type HostCPUTime struct {
	Host, CPU string
	NUMA      int
	// By node_exporter's modes, with interrupt for irq and softirq together and idle with iowait.
	User, System, Interrupt, Steal, Idle time.Duration
}

// HostDevice holds what a block device of a machine has completed.
type HostDevice struct {
	Host, Device            string
	Reads, Writes           uint64
	ReadBytes, WrittenBytes uint64
	Busy, Operations        time.Duration
}

// host notes a value of a machine for the next tick. Counters carry the moment at which they were read: a whole second
// would make their rates jump.
func (r *Recorder) host(name string, value float64, labels ...series.Label) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster = append(r.cluster, clusterPoint{name: name, labels: r.o.Scope.labels(labels...),
		t: r.now().Truncate(time.Millisecond), v: value})
}

// HostCPU records the time of a CPU.
func (r *Recorder) HostCPU(c HostCPUTime) {
	for _, m := range []struct {
		mode string
		time time.Duration
	}{{"user", c.User}, {"system", c.System}, {"interrupt", c.Interrupt}, {"steal", c.Steal}, {"idle", c.Idle}} {
		r.host(HostCPU, m.time.Seconds(), series.Label{Name: "instance", Value: c.Host},
			series.Label{Name: "cpu", Value: c.CPU},
			series.Label{Name: "numa_node", Value: strconv.Itoa(c.NUMA)}, series.Label{Name: "mode", Value: m.mode})
	}
}

// HostDevice records the counters of a block device.
func (r *Recorder) HostDevice(d HostDevice) {
	for _, c := range []struct {
		name  string
		value float64
	}{{HostReads, float64(d.Reads)}, {HostWrites, float64(d.Writes)}, {HostReadBytes, float64(d.ReadBytes)},
		{HostWrittenBytes, float64(d.WrittenBytes)}, {HostIOTime, d.Busy.Seconds()},
		{HostOperationsTime, d.Operations.Seconds()}} {
		r.host(c.name, c.value, series.Label{Name: "instance", Value: d.Host},
			series.Label{Name: "device", Value: d.Device})
	}
}

// Quota records what a CPU quota of a machine has done: the periods it counted, and those in which it held processes
// back.
func (r *Recorder) Quota(machine string, periods, throttled uint64) {
	r.host(QuotaPeriods, float64(periods), series.Label{Name: "instance", Value: machine})
	r.host(QuotaThrottled, float64(throttled), series.Label{Name: "instance", Value: machine})
}

// Waited records for how long some task of a machine has waited for a resource.
func (r *Recorder) Waited(machine, resource string, waited time.Duration) {
	r.host(HostWaited, waited.Seconds(), series.Label{Name: "instance", Value: machine},
		series.Label{Name: "resource", Value: resource})
}

// Generator records what the busiest thread of a load generator did since the last look: shares of the time, 0 to 1.
func (r *Recorder) Generator(vm, workload string, busy, waiting float64) {
	labels := []series.Label{{Name: "instance", Value: vm}, {Name: "workload", Value: workload}}
	r.host(ThreadBusy, busy, labels...)
	r.host(ThreadWaiting, waiting, slices.Clone(labels)...)
}
