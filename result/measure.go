package result

import (
	"slices"
	"strconv"
	"strings"
)

// Operation is a kind of operation that a load generator counts, as it declares it.
type Operation struct {
	Name string `json:"name"` // "read", "new_order"; unique within its workload, without blanks
	Noun string `json:"noun"` // several of them in a sentence: "reads", "new orders"
	// Bytes: it moves bytes, which are counted.
	Bytes bool `json:"bytes,omitempty"`
	// Block is set when it moves or discards blocks of a device or file, so that what is known of storage applies to
	// it.
	Block Block `json:"block,omitempty"`
	// Set: it is one of a set that is done once or a few times and then over, so that percentiles of all say nothing.
	Set bool `json:"set,omitempty"`
}

// Block tells what an operation does with blocks.
type Block string

// What can be done with blocks.
const (
	BlockRead    Block = "read"
	BlockWrite   Block = "write"
	BlockDiscard Block = "discard"
	BlockMixed   Block = "mixed" // reads and writes that are not told apart
)

// BlockOperations are those of a generator of block I/O: reads, writes, trims.
func BlockOperations() []Operation {
	return []Operation{
		{Name: "read", Noun: "reads", Bytes: true, Block: BlockRead},
		{Name: "write", Noun: "writes", Bytes: true, Block: BlockWrite},
		{Name: "trim", Noun: "trims", Bytes: true, Block: BlockDiscard},
	}
}

// OperationsUnit is the unit of a rate of block operations; a report shows it as IOPS.
const OperationsUnit = "ops/s"

// RateUnit is the unit of the operation's rate: "ops/s" of blocks, else "new orders/s" and the like.
func (o Operation) RateUnit() string {
	if o.Block != "" {
		return OperationsUnit
	}
	return o.Noun + "/s"
}

// Measure is a further number that a load generator reports, as it declares it.
type Measure struct {
	Name   string    `json:"name"` // "NOPM", "retries"; unique within its workload
	Unit   string    `json:"unit"` // "NOPM", "retries", "MB/s"
	Better Direction `json:"better,omitempty"`
	Kind   Kind      `json:"kind"`
	// Aside: it is shown, and no effect of an experiment is sought in it: it says again what another figure says, or
	// nothing of what is measured.
	Aside bool `json:"aside,omitempty"`
}

// Direction says which way of a number is better.
type Direction string

// The directions; none is "".
const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
)

// Kind says how the values of a measure go together over time and over machines. Nothing is an average of percentiles.
type Kind string

// The kinds.
const (
	// Count grows since the start. A window has the difference; machines add up.
	Count Kind = "count"
	// Level is a rate over the time since the report before, like transactions per minute. A window has the mean
	// weighted by time; machines add up.
	Level Kind = "level"
	// Single is a figure that the tool made by itself, like a percentile: it holds for one machine and one report, and
	// is combined with nothing.
	Single Kind = "single"
)

// Value is a measure over some time: a Count's difference, a Level's mean, a Single's last figure.
type Value struct {
	Measure string  `json:"measure"`
	Value   float64 `json:"value"`
}

// Measures of an operation in Series.Measure. Times are in microseconds, and service or response time as the workload's
// Latency says.
const (
	Rate          = "rate"      // in Operation.RateUnit
	Bandwidth     = "bandwidth" // bytes/s
	LatencyMean   = "latency_mean"
	LatencyP50    = "latency_p50"
	LatencyP99    = "latency_p99"
	LatencyP999   = "latency_p99.9"
	latencyPrefix = "latency_"
)

// Measures of the machines in Series.Measure. Those in per cent are of the time or of the CPUs.
const (
	NodeCPU              = "node_cpu"           // %, of a node of the cluster
	HostCPUs             = "host_cpu"           // %, of all CPUs of a machine
	NUMACPU              = "numa_cpu"           // %, of one NUMA node
	HostSteal            = "host_steal"         // %, of all CPUs of a machine: time that its hypervisor gave to others
	QuotaThrottled       = "quota_throttled"    // %, of the periods of a machine's CPU quota
	CPUPressure          = "cpu_pressure"       // %, of the time in which some task of a machine waited for a CPU
	IOPressure           = "io_pressure"        // %, likewise for I/O
	MemoryPressure       = "memory_pressure"    // %, likewise for memory
	MemoryLimitHits      = "memory_limit_hits"  // per second, of a machine that wanted more memory than its limit
	OneCPU               = "one_cpu"            // %, of one CPU; those that were busiest
	OneCPUInterrupts     = "one_cpu_interrupts" // %, of that the time in interrupts
	DeviceBusy           = "device_busy"        // %, of the time with at least one operation outstanding
	DeviceReadBandwidth  = "device_read_bandwidth"
	DeviceWriteBandwidth = "device_write_bandwidth"
	DeviceReads          = "device_read_iops"
	DeviceWrites         = "device_write_iops"
	DeviceInFlight       = "device_in_flight" // operations, in it at once on average
)

// Measures of database servers in Series.Measure, as they count themselves; Series.Machine is the VM where one runs,
// or its address.
const (
	DatabaseSessions     = "db_sessions"          // at work, by what they wait for (Part); CPU: nothing
	DatabaseWaits        = "db_waits"             // at work that wait, by the event (Part)
	DatabaseConnections  = "db_connections"       // %, of those that the server lets in
	DatabaseHits         = "db_cache_hits"        // %, of the blocks asked for
	DatabaseTransactions = "db_transactions"      // per second, of all databases
	DatabaseBatches      = "db_batches"           // per second: requests of clients, as SQL Server counts them
	DatabaseLog          = "db_log"               // bytes/s, of its write-ahead log
	DatabaseCheckpoints  = "db_checkpoint_writes" // bytes/s, of data files
	DatabaseSpread       = "db_checkpoint_spread" // ratio: over how much of an interval one is spread, as it is set
	DatabaseDurable      = "db_durable_commits"   // 1, or 0 where settings let a crash lose commits
)

// MachineMeasures are those of machines and servers, which count what everybody on them does.
var MachineMeasures = []string{HostCPUs, HostSteal, QuotaThrottled, CPUPressure, IOPressure, MemoryPressure,
	MemoryLimitHits, NUMACPU, OneCPU, OneCPUInterrupts, DeviceBusy, DeviceReadBandwidth,
	DeviceWriteBandwidth, DeviceReads, DeviceWrites, DeviceInFlight,
	DatabaseSessions, DatabaseWaits, DatabaseConnections, DatabaseHits, DatabaseTransactions, DatabaseBatches,
	DatabaseLog, DatabaseCheckpoints, DatabaseSpread, DatabaseDurable}

// Metric is the series' operation and measure in one word, for people to type and for columns of tables: read_iops,
// new_order_rate, write_latency_p99, NOPM. It is made, never taken apart.
func (s Series) Metric() string {
	switch {
	case s.Op == "":
		return s.Measure
	case s.Measure == Rate && s.Unit == OperationsUnit:
		return s.Op + "_iops"
	}
	return s.Op + "_" + s.Measure
}

// Said is Metric for people: "read IOPS".
func (s Series) Said() string { return SayMetric(s.Metric()) }

// SayMetric turns write_latency_p99 into "write service time p99": the latency of a metric's name is that.
func SayMetric(name string) string {
	return strings.NewReplacer("_", " ", "latency", "service time", "iops", "IOPS", "cpu", "CPU", "numa", "NUMA").
		Replace(name)
}

// IsLatency reports whether the series is of times.
func (s Series) IsLatency() bool { return strings.HasPrefix(s.Measure, latencyPrefix) }

// Operation is the declaration of an operation of the workload.
func (w Workload) Operation(name string) (Operation, bool) {
	for _, o := range w.Operations {
		if o.Name == name {
			return o, true
		}
	}
	return Operation{}, false
}

// Block says what an operation of the workload does with blocks, "" when nothing.
func (w Workload) Block(op string) Block {
	o, _ := w.Operation(op)
	return o.Block
}

// MovesBlocks reports whether the workload does block I/O.
func (w Workload) MovesBlocks() bool {
	for _, o := range w.Operations {
		if o.Block != "" {
			return true
		}
	}
	return false
}

// AssertMeasures are those that an assert may name of any workload, with other percentiles; the rest its engine
// declares.
var AssertMeasures = []string{"operations", "bandwidth", "mean", "p50", "p90", "p99", "p99.9", "max", "errors"}

// Unknown returns what an assert names of a workload that its engine does not declare: "operation" or "measure", the
// name, and the names there are; all empty when it knows both.
func (a Assert) Unknown(operations []Operation, measures []Measure) (what, name string, known []string) {
	known = []string{"all"}
	for _, o := range operations {
		known = append(known, o.Name)
	}
	if a.Operation != "" && !slices.Contains(known, a.Operation) {
		return "operation", a.Operation, known
	}
	known = slices.Clone(AssertMeasures)
	for _, m := range measures {
		known = append(known, m.Name)
	}
	if !slices.Contains(known, a.Measure) && !percentile(a.Measure) {
		return "measure", a.Measure, known
	}
	return "", "", nil
}

// Timed reports whether a measure is called as a time is whose limits are in seconds: mean, max, or a percentile.
func Timed(name string) bool { return name == "mean" || name == "max" || percentile(name) }

// percentile reports whether a measure is called as one, like p95.
func percentile(name string) bool {
	number, ok := strings.CutPrefix(name, "p")
	p, err := strconv.ParseFloat(number, 64)
	return ok && err == nil && p > 0 && p < 100
}

// RateUnit is the unit of the rate of operations counted together: theirs when they are of one kind or all of blocks,
// else "operations/s", since unlike ones have no other name in common.
func RateUnit(operations []Operation) string {
	for _, o := range operations {
		if o.RateUnit() != operations[0].RateUnit() {
			return "operations/s"
		}
	}
	if len(operations) == 0 {
		return "operations/s"
	}
	return operations[0].RateUnit()
}

// SeriesUnit is the unit of the measure over time: a Count is per second.
func (m Measure) SeriesUnit() string {
	unit := m.Unit
	if unit == "" {
		unit = m.Name
	}
	if m.Kind == Count {
		unit += "/s"
	}
	return unit
}

// Averages reports whether the measure of several machines together is the mean of theirs rather than the sum: a share
// or a time that held, as the CPU of each, has no sum.
func (m Measure) Averages() bool {
	return m.Kind == Level && slices.Contains([]string{"%", "percent", "ratio", "s", "ms", "us", "µs", "ns"}, m.Unit)
}

// Over is the value over a stretch of so many seconds in SeriesUnit, false where there is none.
func (m Measure) Over(values []Value, seconds float64) (float64, bool) {
	for _, v := range values {
		switch {
		case v.Measure != m.Name:
		case m.Kind != Count:
			return v.Value, true
		case seconds > 0:
			return v.Value / seconds, true
		}
	}
	return 0, false
}

// Occurred are the operations that the workload did, in the order declared; one that is not declared has its name for
// a noun.
func (w Workload) Occurred() (out []Operation) {
	for _, t := range w.Ops {
		if t.Count == 0 {
			continue
		}
		o, ok := w.Operation(t.Op)
		if !ok {
			o = Operation{Name: t.Op, Noun: t.Op}
		}
		out = append(out, o)
	}
	return out
}
