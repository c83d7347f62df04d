// Package result is a run on disk: one self-contained, versioned folder from which everything can be read, re-analysed
// and reported years later without the target, and while a run goes on or after it was killed.
//
//	manifest.json     Manifest: what ran, where, with what; rewritten atomically when a fact or verdict becomes known
//	plan.json         the plan, written before anything was touched
//	journal.jsonl     Event per line, appended and synced at every step boundary; a torn last line is ignored
//	scenario/         the scenario directory as given, and test-parsed.yml
//	raw/<vm>/<workload>[.N]/   everything the tool printed (<engine>.out.zst), its job file and command
//	metrics/          the embedded metrics database
//	state/            private to the target: what was made, for clean-up
//	work/             disks and working folders of local machines; removed by teardown or clean-up
//	data.json         Data: panels, workloads, heat maps; collected from metrics/ and raw/, can be made again
//	findings.json     version and []Finding
//	labels.json       Labels: what people call the run
//	report.html       the report
//
// The package stores and reads; it computes nothing. Reading a damaged folder returns what can be read and a list of
// what could not; a folder written by a newer version is refused by name of both versions.
package result

import (
	"slices"
	"time"

	"plimsoll/hist"
)

// FormatVersion is the version of the folder's layout and of every JSON document in it.
const FormatVersion = 2

// Verdict is the status of the run itself, of its collection or of its cleanup.
type Verdict struct {
	State  string `json:"state"` // "pending", "yes", "partly", "no"
	Reason string `json:"reason,omitempty"`
}

// Word is the state as people read it.
func (v Verdict) Word() string {
	switch v.State {
	case "yes":
		return "complete"
	case "partly":
		return "partial"
	case "no":
		return "not done"
	}
	return v.State
}

// Manifest describes a run.
type Manifest struct {
	Version   int       `json:"version"`
	RunID     string    `json:"run_id"`  // sortable by time, e.g. 20261121-204500-db-colocation-7f3a
	Program   string    `json:"program"` // plimsoll and its version
	Operator  string    `json:"operator"`
	Created   time.Time `json:"created"`
	Ended     time.Time `json:"ended,omitzero"`
	Status    string    `json:"status"` // "executing", "succeeded", "failed", "stopped", "interrupted" (found dead)
	Error     string    `json:"error,omitempty"`
	Measured  Verdict   `json:"measured"`
	Collected Verdict   `json:"collected"`
	Cleaned   Verdict   `json:"cleaned"`

	Scenario    ScenarioInfo      `json:"scenario"`
	Target      string            `json:"target"`
	ClusterName string            `json:"cluster_name"`
	Simulated   bool              `json:"simulated,omitempty"` // times and numbers are about nothing real
	Nodes       []Node            `json:"nodes"`
	OneMachine  bool              `json:"one_machine,omitempty"` // all nodes share the CPUs, memory and links of one
	TimeScale   float64           `json:"time_scale"`
	SizeScale   float64           `json:"size_scale"`
	Options     map[string]string `json:"options,omitempty"` // target options, secrets left out
	Environment []Fact            `json:"environment"`
	// Clocks are those of machines that have one of their own, compared with plimsoll's throughout the run.
	Clocks []HostClock `json:"clocks,omitempty"`
	Notes  []string    `json:"notes,omitempty"`
	// DiskCounters tells whose the node_disk_ counters of the VMs are; "" in folders of versions that had only
	// derived ones.
	DiskCounters string `json:"disk_counters,omitempty"`
	// SharedCounters is set where the VMs have no counters of a machine and those of the one under them stand for them.
	SharedCounters *SharedCounters `json:"shared_counters,omitempty"`
	Overhead       *Overhead       `json:"overhead,omitempty"`
	// Headline is the first of the run's figures, which lists of runs show; nil in folders of versions that read it
	// from the data.
	Headline *Headline `json:"headline,omitempty"`
	// FailedAsserts are the conditions on the outcome that did not hold, for lists of runs.
	FailedAsserts []string `json:"failed_asserts,omitempty"`
	// Imported are the files of other tools that the folder was made of, instead of a run; its Target is ImportTarget.
	Imported []Imported        `json:"imported,omitempty"`
	Hashes   map[string]string `json:"hashes,omitempty"` // sha256 of raw output and metrics, by path in the folder
}

// Headline is a figure of a run.
type Headline struct {
	Workload  string  `json:"workload"`
	Operation string  `json:"operation"` // or the measure
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Answer    string  `json:"answer,omitempty"` // what the report begins with, in which the figure may not stand
}

// Whose the counters of the VMs' disks are.
const (
	CountersDerived  = "derived"  // from what load generators report of themselves
	CountersExported = "exported" // the VMs' own, from their exporters
	CountersMixed    = "mixed"    // of some VMs their own, of the others derived
)

// SharedCounters says which series of the metrics stand for all VMs: those with these labels, which have no vm_group.
type SharedCounters struct {
	Instance string `json:"instance"`
	Endpoint string `json:"endpoint"`
}

// ImportTarget is the Target of folders that hold what other tools measured.
const ImportTarget = "import"

// Imported is a file of another tool in a run folder.
type Imported struct {
	File     string `json:"file"` // its name, without the folder
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	As       string `json:"as"`   // the reader
	Tool     string `json:"tool"` // with its version, as far as the file says
	VM       string `json:"vm"`   // under whose name its figures stand
	Workload string `json:"workload"`
	// Concurrency is how many were at work at once, as far as the file says.
	Concurrency float64 `json:"concurrency,omitempty"`

	Dated  string   `json:"dated"` // by what clock
	Notes  []string `json:"notes,omitempty"`
	Unseen []string `json:"not_looked_at,omitempty"` // what such a file cannot show
}

// ScenarioInfo holds what the report says of the scenario.
type ScenarioInfo struct {
	ID               int64   `json:"id"`
	Name             string  `json:"name"`
	DisplayName      string  `json:"display_name"`
	Summary          string  `json:"summary"`
	Description      string  `json:"description"` // HTML of the author: sanitise before showing
	Source           string  `json:"source"`      // directory or library name as the user gave it
	EstimatedSeconds float64 `json:"estimated_seconds"`
	Vars             []Var   `json:"vars,omitempty"`
	// Asserts are the author's conditions on the outcome, so that a folder can be judged again by itself.
	Asserts []Assert `json:"asserts,omitempty"`
}

// Assert is a condition on a run's outcome. Exactly one of Query, Result, Workload and Finding is set; see the
// reference of the scenario language.
type Assert struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Query       string   `json:"query,omitempty"` // PromQL, filters filled in
	Result      string   `json:"result,omitempty"`
	Statistic   string   `json:"statistic,omitempty"`
	Workload    string   `json:"workload,omitempty"`
	Operation   string   `json:"operation,omitempty"`
	Measure     string   `json:"measure,omitempty"`
	Finding     string   `json:"finding,omitempty"`
	Severity    Severity `json:"severity,omitempty"`
	AtLeast     *float64 `json:"at_least,omitempty"`
	AtMost      *float64 `json:"at_most,omitempty"`
}

// Var is a scenario variable with the value in force, printed as the template would.
type Var struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Node is a node of the cluster.
type Node struct {
	Index       int    `json:"index"`
	Name        string `json:"name"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// Overhead holds what plimsoll's own processes cost during the run.
type Overhead struct {
	CPUSeconds       float64 `json:"cpu_seconds"`
	WallSeconds      float64 `json:"wall_seconds"`
	CorePercent      float64 `json:"core_percent"` // of one core, average
	MaxResidentBytes int64   `json:"max_resident_bytes"`
}

// HostClock is how far the clock of a machine was ahead of plimsoll's.
type HostClock struct {
	VM string `json:"vm"`
	// First is of before the first step, or of when the machine was first there; Last of after the last step.
	First ClockReading `json:"first"`
	Last  ClockReading `json:"last"`
	// Least and Most are of all readings, of which there were so many.
	LeastSeconds float64 `json:"least_seconds"`
	MostSeconds  float64 `json:"most_seconds"`
	Readings     int     `json:"readings"`
}

// ClockReading is one comparison of a clock with plimsoll's.
type ClockReading struct {
	Time         time.Time `json:"time"`
	AheadSeconds float64   `json:"ahead_seconds"` // negative when behind
	BoundSeconds float64   `json:"bound_seconds"` // by how much that may be wrong: half of a round trip
}

// StartSkew is how far apart the first and the last VM of a start began, by one clock.
type StartSkew struct {
	Seconds      float64 `json:"seconds"`
	BoundSeconds float64 `json:"bound_seconds"` // by how much that may be wrong
	VMs          int     `json:"vms"`
}

// Event is one line of the journal.
type Event struct {
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`            // see the Kind constants
	Phase string    `json:"phase,omitempty"` // pre_setup, setup, run, teardown
	Step  int       `json:"step,omitempty"`  // number in the plan, from 1
	Name  string    `json:"name,omitempty"`  // step, workload, VM or node
	Text  string    `json:"text,omitempty"`  // for people
	Error string    `json:"error,omitempty"`
	Data  EventData `json:"data,omitzero"`
}

// Kinds of event.
const (
	KindRunStart   = "run_start" // Data: scenario, target, steps
	KindRunEnd     = "run_end"   // Data: state, the run's status
	KindPhase      = "phase"     // a phase begins
	KindStepStart  = "step_start"
	KindStepEnd    = "step_end"   // Error set when it failed, Data: state "stopped" or "skipped" otherwise
	KindAnnotation = "annotation" // drawn on every chart
	KindWorkload   = "workload"   // Data: state, one of WorkloadStart and its like; vm, workload, start
	KindWarning    = "warning"
	KindNote       = "note"
	KindFault      = "fault" // power, node or disk faults injected, with their effect
	// KindPrecondition: a part of a preconditioning is over; Data: preconditioning, which is all of it so far.
	KindPrecondition = "precondition"
	// KindWritten: disks were looked at for blocks never written; Data: written.
	KindWritten = "written"
	// KindStored: disks were looked at for data that are as the job files asked; Data: stored.
	KindStored = "stored"
	// KindBoot: a machine answered after it was switched on, KindMigration: one moved while it ran; Data: boot and
	// migration, which are all of it.
	KindBoot      = "boot"
	KindMigration = "migration"
	// KindNodeReturn: a node that the run had switched off and on was seen ready; Data: node-return.
	KindNodeReturn = "node-return"
	// KindOperation: the platform has done something for a machine; Data: operation.
	KindOperation = "operation"
	// KindPlain: a job was run on a machine and beside it, by turns; Data: plain.
	KindPlain = "plain"
)

// PoweringOn begins the annotation of a group that is switched on; its name follows.
const PoweringOn = "Powering on group "

// Data is everything the charts and tables show, on regular time grids, so that a report needs no metrics database.
type Data struct {
	Version   int        `json:"version"`
	Start     time.Time  `json:"start"` // of the run phase (of the whole run when it never began)
	End       time.Time  `json:"end"`
	Phases    []Span     `json:"phases"`
	Events    []Mark     `json:"events"` // annotations and faults, in time order
	Panels    []Panel    `json:"panels"`
	Workloads []Workload `json:"workloads"`
	VMs       []VM       `json:"vms"`
	Series    []Series   `json:"series"` // per-VM and total views beyond the scenario's own results
	// Preconditioned is how disks were brought to a state that lasts, in the order of the steps.
	Preconditioned []Preconditioning `json:"preconditioned,omitempty"`
	// Written holds the looks at whether the disks had ever been written, in their order.
	Written []Written `json:"written,omitempty"`
	// Stored holds the samples of disks, where job files asked for data that compress or repeat.
	Stored []Stored `json:"stored,omitempty"`
	// Boots and Migrations are those of machines, where the place tells of them, in the order in which they were over.
	Boots      []Boot      `json:"boots,omitempty"`
	Migrations []Migration `json:"migrations,omitempty"`
	// Plain are comparisons of jobs with the same beside their machine.
	Plain []Plain `json:"plain,omitempty"`
	// NodeReturns are those of the nodes that the run switched off and on, and whose return it waited for.
	NodeReturns []NodeReturn `json:"node_returns,omitempty"`
	// Operations are what the platform did for machines, where the place tells of it, in the order they were over.
	Operations []PlatformOperation `json:"operations,omitempty"`
	// Problems are what could not be collected, in words; empty when everything could.
	Problems []string `json:"problems,omitempty"`
}

// Span is a named stretch of time.
type Span struct {
	Name  string    `json:"name,omitempty"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// Mark is a moment worth a line on the charts.
type Mark struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`
	// Node is whom a fault hits, State what becomes of it: FaultBegins, FaultOver, or what was done to its power. ""
	// where that is not known.
	Node  string `json:"node,omitempty"`
	State string `json:"state,omitempty"`
	Ends  string `json:"ends,omitempty"` // the text of the fault that is over, where the place says which
}

// What becomes of a fault.
const (
	FaultBegins = "begins"
	FaultOver   = "over"
	PowerOff    = "off"
	// Restarted is told of a VM that was lost with its node and is on again elsewhere: it answers a fault and is none.
	Restarted = "restarted"
	PowerOn   = "on"
)

// Strikes reports whether a mark is of something that takes away: that a fault is over, or power is given again, takes
// away nothing.
func (m Mark) Strikes() bool {
	return m.Kind == KindFault && m.State != FaultOver && m.State != PowerOn
}

// VM is one machine of the run.
type VM struct {
	Name        string `json:"name"`
	Group       string `json:"group"`
	Node        int    `json:"node"`
	CPUs        int    `json:"cpus"`
	MemoryBytes int64  `json:"memory_bytes"`
	Disks       int    `json:"disks"`
	DiskBytes   int64  `json:"disk_bytes"` // each
	NeverSeenOn bool   `json:"never_seen_on,omitempty"`
}

// Panel is one result of the scenario.
type Panel struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Kind        string   `json:"kind"` // vm_group, workload, cluster
	Type        string   `json:"type"`
	Unit        string   `json:"unit"` // "ops/s", "bytes/s", "us", "count", "bool", "%", "Hz", or of a declared measure
	Group       string   `json:"group"`
	ReportGroup string   `json:"report_group,omitempty"`
	Description string   `json:"description,omitempty"`
	Hint        string   `json:"hint,omitempty"`
	VMGroup     string   `json:"vm_group,omitempty"`  // of the scenario, for kind vm_group
	Aggregate   string   `json:"aggregate,omitempty"` // over the VMs of that group: "sum", "mean", ...; "" each
	Query       string   `json:"query,omitempty"`     // PromQL as evaluated
	Expected    *float64 `json:"expected,omitempty"`
	Bands       []Band   `json:"bands,omitempty"`
	Metrics     []Metric `json:"metrics,omitempty"`
	XLabel      string   `json:"x_label,omitempty"`
	YLabel      string   `json:"y_label,omitempty"`
	Series      []Series `json:"series"`
	Notes       []string `json:"notes,omitempty"`   // e.g. a longer step than asked for, an experimental metric
	Problem     string   `json:"problem,omitempty"` // why there is no data; the other panels stand on their own
}

// Band is a range drawn behind a chart.
type Band struct {
	Name  string  `json:"name"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// Metric is one report metric of a panel with its formula's name.
type Metric struct {
	Name    string  `json:"name"` // Variability, Median, ...
	Series  string  `json:"series"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Formula string  `json:"formula"`
}

// Series is values on a regular grid. A nil value is a gap.
type Series struct {
	Name     string     `json:"name"`
	Op       string     `json:"op,omitempty"`      // operation, for Data.Series: "read", "new_order"
	Measure  string     `json:"measure,omitempty"` // for Data.Series: Rate, LatencyP99, NodeCPU, or an engine's own
	VM       string     `json:"vm,omitempty"`
	Group    string     `json:"group,omitempty"`
	Workload string     `json:"workload,omitempty"`
	Section  string     `json:"section,omitempty"` // of the workload: one stream of it, over all its VMs
	Machine  string     `json:"machine,omitempty"` // of a machine's counters: its name, and in Part what of it they count
	Part     string     `json:"part,omitempty"`    // "NUMA node 1", "CPU 3", a device; "" the whole
	Unit     string     `json:"unit,omitempty"`
	Start    time.Time  `json:"start"`
	Step     float64    `json:"step_seconds"`
	Values   []*float64 `json:"values"`
}

// Ending is how a workload ended.
type Ending string

// The endings there are.
const (
	Finished Ending = "finished"
	Stopped  Ending = "stopped"
	Failed   Ending = "failed"
	Lost     Ending = "lost" // its VM or node went away under it
	// Unrecorded: the record ends before the workload does, as when the process was killed or its disk was full.
	Unrecorded Ending = "unrecorded"
)

// DataDiffer is how a generator's message tells that what was read is not what had been written.
const DataDiffer = "data differ from what was written (verify)"

// Planned reports whether a workload came to its end as it was to.
func (e Ending) Planned() bool { return e == Finished || e == Stopped }

// Workload is one workload of one VM (or of a whole group, VM empty), over its measured window.
type Workload struct {
	Name    string    `json:"name"`
	VM      string    `json:"vm,omitempty"` // "" for the merge over the group's VMs
	Group   string    `json:"group"`
	Node    int       `json:"node"`
	Engine  string    `json:"engine"`
	Tool    string    `json:"tool"`             // version
	Server  string    `json:"server,omitempty"` // version of the server that its load goes to, as far as known
	Phase   string    `json:"phase"`
	Prefill bool      `json:"prefill,omitempty"` // it prepares: what it did is not the workload's
	Rounds  bool      `json:"rounds,omitempty"`  // with Prefill: rounds of a preconditioning, like the workload
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Ended   Ending    `json:"ended"`
	Message string    `json:"message,omitempty"`
	Latency string    `json:"latency"` // "service time" or "response time"
	Streams []Stream  `json:"lanes,omitempty"`
	// Operations and Measures are what the engine declared; Ops and Values hold those of them that occurred, in that
	// order.
	Operations []Operation `json:"operations"`
	Measures   []Measure   `json:"measures,omitempty"`
	Ops        []OpTotals  `json:"ops"`
	Values     []Value     `json:"values,omitempty"`
	Errors     uint64      `json:"errors"`
	// FailuresUnknown: what it left does not tell operations that failed, so that Errors is no count of them.
	FailuresUnknown bool `json:"failures_unknown,omitempty"`
	// Again: what it did is counted in another workload as well, as that of scripts in their test's.
	Again bool `json:"again,omitempty"`
	// Spans are the parts of Start to End by which it is judged, where they are not all of it: of a single VM its
	// starts without the pauses between them, of merged entries the times in which all of its VMs ran, from the last
	// start of each to the first planned end. A VM that was lost or failed ends none.
	Spans []Span `json:"spans,omitempty"`
	// InSpans are the totals over Spans; merged entries with Spans only. Of single VMs they are those of the whole.
	InSpans *Totals `json:"in_spans,omitempty"`
	// Starts is how often it was started, absent for once. Staggered: its VMs did not begin or end together.
	Starts    int  `json:"starts,omitempty"`
	Staggered bool `json:"staggered,omitempty"`
	// StartSkew is of the VMs that were to begin together, where the target tells when each did; of several starts that
	// of the worst. Merged entries only.
	StartSkew *StartSkew `json:"start_skew,omitempty"`
	// Apart: in one of its starts its VMs never all ran at one time, so Spans hold the whole of it.
	Apart bool `json:"apart,omitempty"`
	// Sections are the same totals by stream, over the whole window, where the generator told streams apart; merged
	// entries only.
	Sections []Section `json:"sections,omitempty"`
	// Windows are the same totals cut at phase boundaries and annotations (before/after another workload starts).
	Windows []Window `json:"windows,omitempty"`
	// Heat is the latency heat map; merged entries only.
	Heat *HeatMap `json:"heat,omitempty"`
	// GeneratorCPUSeconds counts the processor time of the load generator itself.
	GeneratorCPUSeconds float64 `json:"generator_cpu_seconds"`
	// ClockSeconds is how far the clock of its VM was ahead of plimsoll's, negative when behind; its times are
	// corrected for that. Only for single VMs.
	ClockSeconds float64 `json:"clock_seconds,omitempty"`
	// ThreadBusy is the share of the window for which the generator's busiest thread ran on a CPU, ThreadWaiting for
	// which it was ready and had none; 0 to 1, nil where that is not known. Only for single VMs.
	ThreadBusy    *float64 `json:"thread_busy,omitempty"`
	ThreadWaiting *float64 `json:"thread_waiting,omitempty"`
	Notes         []string `json:"notes,omitempty"`
}

// Section holds what one stream of a workload did.
type Section struct {
	Name string     `json:"name"` // the stream's; a second one of that name is "name (2)"
	Ops  []OpTotals `json:"ops"`
}

// OpTotals are counts of one kind of operation over a window.
type OpTotals struct {
	Op      string          `json:"op"` // Operation.Name
	Count   uint64          `json:"count"`
	Bytes   uint64          `json:"bytes"`
	Seconds float64         `json:"latency_seconds_sum"`
	Hist    *hist.Histogram `json:"hist,omitempty"` // nanoseconds
	// OverTime is how they lie in time; totals of merged workloads only.
	OverTime *OverTime `json:"course,omitempty"`
}

// OverTime counts operations of one kind over time, and among them those slower than some percentiles of the whole. It
// tells how operations depend on their neighbours, without which an interval of a percentile is too narrow.
type OverTime struct {
	Start  time.Time `json:"start"`
	Step   float64   `json:"step_seconds"`
	Counts []uint64  `json:"counts"`
	Slower []Slower  `json:"slower,omitempty"`
}

// Slower counts the operations above a latency in each step of an OverTime.
type Slower struct {
	Quantile float64  `json:"quantile"` // 0.99 for p99
	AboveNs  uint64   `json:"above_ns"` // an edge of the histogram bucket that holds the percentile
	Counts   []uint64 `json:"counts"`
}

// Window is a stretch of a workload with its totals.
type Window struct {
	Name string `json:"name"` // of its circumstances
	Circumstances
	Start  time.Time  `json:"start"`
	End    time.Time  `json:"end"`
	Ops    []OpTotals `json:"ops"`
	Values []Value    `json:"values,omitempty"`
	// Partial: some of the workload's VMs had not started yet, or had ended, so it compares with no other window.
	Partial bool `json:"partial,omitempty"`
	// Errors are the operations that failed in it.
	Errors uint64 `json:"errors,omitempty"`
	// Pause is how much of it lies between two starts of the workload, in seconds.
	Pause float64 `json:"pause_seconds,omitempty"`
}

// Distributed reports whether the generator gave how its times were spread, however few operations there were.
func (w Workload) Distributed() bool {
	return slices.ContainsFunc(w.Ops, func(o OpTotals) bool { return o.Hist != nil && o.Hist.Count() > 0 })
}

// Comparable are the windows in which all of the workload's VMs worked.
func (w Workload) Comparable() []Window {
	return slices.DeleteFunc(slices.Clone(w.Windows), func(win Window) bool { return win.Partial })
}

// WorkloadsOf is from the first start of a VM group's workloads in the run phase to their last end; zero when it had
// none. Prefill is no workload of its own. Pauses and outages in between belong to it.
func (d *Data) WorkloadsOf(group string) (from, to time.Time) {
	for _, w := range d.Workloads {
		if w.Group != group || w.Prefill || !w.End.After(w.Start) || !w.End.After(d.Start) {
			continue
		}
		if from.IsZero() || w.Start.Before(from) {
			from = w.Start
		}
		if w.End.After(to) {
			to = w.End
		}
	}
	return from, to
}

// HeatMap counts operations by time and latency.
type HeatMap struct {
	Start   time.Time  `json:"start"`
	Step    float64    `json:"step_seconds"`
	EdgesNs []float64  `json:"edges_ns"` // len(rows)+1
	Counts  [][]uint64 `json:"counts"`   // [column][row], column = time
}

// Severity of a finding, by how much it changes the conclusion.
type Severity string

// Severities, most important first.
const (
	Invalid Severity = "invalid" // the headline number must not be used
	Warning Severity = "warning" // it can, with this in mind
	Info    Severity = "info"    // worth knowing
	Passed  Severity = "passed"  // checked, and in order
)

// former are the words that severities had in earlier folders and scenarios; they are still read.
var former = map[string]Severity{"blocker": Invalid, "caution": Warning, "notice": Info, "fine": Passed}

// UnmarshalText reads a severity by its word or its former one.
func (s *Severity) UnmarshalText(text []byte) error {
	if *s = Severity(text); former[string(text)] != "" {
		*s = former[string(text)]
	}
	return nil
}

// AssertCheck is the check that judges the author's own conditions.
const AssertCheck = "assert"

// Finding is one conclusion with its evidence. No finding without an interval or a reason for none.
type Finding struct {
	Check      string     `json:"check"` // short stable name: "littles-law", "offered-rate", ...
	Severity   Severity   `json:"severity"`
	Subject    string     `json:"subject"`  // workload, VM or panel
	Sentence   string     `json:"sentence"` // plain words, self-contained
	Metric     string     `json:"metric"`
	Value      *float64   `json:"value"`
	Unit       string     `json:"unit"`
	Low        *float64   `json:"low,omitempty"`
	High       *float64   `json:"high,omitempty"`
	Confidence float64    `json:"confidence,omitempty"`
	NoInterval string     `json:"no_interval,omitempty"` // why there is none
	N          int        `json:"n"`
	Limit      *float64   `json:"limit,omitempty"` // the threshold it was judged by
	Basis      string     `json:"basis"`           // which window, which repeats, which source
	Warnings   []string   `json:"warnings,omitempty"`
	Evidence   []Evidence `json:"evidence,omitempty"`
	Chart      *Chart     `json:"chart,omitempty"` // where a series is the evidence
	// Rank is that of its check: where it stands among findings of equal severity, lower ones first. See Answers.
	Rank int `json:"rank,omitempty"`
	// Harm is how much worse things became, as the logarithm of the ratio at the end of its interval that is nearer to
	// no change: above 0 a loss, below 0 a gain, or a change of which nobody said which way is good; 0 where no change
	// is sure. nil where nothing is set against another.
	Harm *float64 `json:"harm,omitempty"`
}

// Answers reports whether a finding is about what the run was made to find out, by the rank of its check.
func (f Finding) Answers() bool { return f.Rank >= 100 && f.Rank < 200 }

// Weight is how much a change is worth telling: its size, of which a gain counts half, so that a loss comes before a
// gain of the same size. 0 where nothing changed for sure.
func (f Finding) Weight() float64 {
	switch {
	case f.Harm == nil:
		return 0
	case *f.Harm < 0:
		return -*f.Harm / 2
	}
	return *f.Harm
}

// Evidence is a number side by side with another.
type Evidence struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Chart is the evidence of a finding as a picture of a few hundred points.
type Chart struct {
	Title  string       `json:"title"`
	XLabel string       `json:"x_label,omitempty"` // empty: seconds since the run phase began
	XUnit  string       `json:"x_unit"`
	XLog   bool         `json:"x_log,omitempty"` // sizes and concurrencies that double
	YUnit  string       `json:"y_unit"`
	Lines  []ChartLine  `json:"lines"`
	Marks  []ChartPlace `json:"marks,omitempty"`  // on the x axis
	Levels []ChartPlace `json:"levels,omitempty"` // on the y axis: a target rate, a limit
}

// ChartLine is one line of a chart, or its points alone. X rises; a nil value is a gap.
type ChartLine struct {
	Name   string     `json:"name"`
	Points bool       `json:"points,omitempty"` // measured points, not joined
	X      []float64  `json:"x"`
	Y      []*float64 `json:"y"`
}

// ChartPlace is a place on an axis with its name.
type ChartPlace struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}
