// Package scenario reads the X-Ray scenario language: a directory with one test.yml, config files and playbooks
// beside it. Load turns it into values; everything wrong with it comes back at once as Diagnostics with positions.
//
// Published directories load unmodified. Our own files may use the extensions marked as such in the option tables.
// The package does no I/O of its own (it reads the fs.FS it is given), runs nothing, and knows no target.
package scenario

import "time"

// Phase of a scenario in which a step stands.
type Phase string

// The phases in their order. PreSetup belongs to the engine: authors may not put steps there.
const (
	PreSetup Phase = "pre_setup"
	Setup    Phase = "setup"
	Run      Phase = "run"
	Teardown Phase = "teardown"
)

// Scenario is a loaded scenario. It is read-only after Load.
type Scenario struct {
	Name             string
	DisplayName      string
	Summary          string
	Description      string // HTML as the author wrote it; sanitise before showing
	EstimatedRuntime time.Duration
	Tags             []string
	ID               int64 // appears in VM names and labels
	Vars             []Var
	Presets          []string // names, sorted
	Groups           []Group
	Workloads        []Workload
	Results          []Result
	Setup            []Step
	Run              []Step
	Teardown         []Step
	HasTeardown      bool // false when the key is absent, which leaves the VMs in place
	Asserts          []Assert
	Experiment       *Experiment // nil for a scenario that is one run

	File     string // path of test.yml inside the directory's fs
	Rendered []byte // the file after templating, as stored with every run
}

// Pos is a place in a file; Line and Col count from 1, 0 means unknown.
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
}

// Var is one variable with the value in force. Values are string, bool, int64, float64, nil, []any or untyped.Object.
type Var struct {
	Name        string
	Default     any
	Min, Max    any // nil when absent
	Value       any
	From        string // "default", "preset NAME" or "set"
	DisplayName string
	Description string
	Options     []any
	Pos         Pos
}

// Group is a VM group.
type Group struct {
	Name            string
	Template        string
	OVF             bool
	CPUs            int
	MemoryBytes     int64   // ram_mb in bytes
	DiskBytes       []int64 // data disks, unscaled
	Nodes           Selector
	CountPerNode    int // 0 unset
	CountPerCluster int // 0 unset
	ExporterPorts   []int
	Pos             Pos
}

// Workload is one declared workload.
type Workload struct {
	Name              string
	Group             string
	Generator         string
	ConfigFile        string    // path inside the scenario's fs, cleaned
	Config            []byte    // its content
	Settings          []Setting // job_options
	ReportingInterval time.Duration
	Pos               Pos
}

// ResultKind is where a result's numbers come from.
type ResultKind string

// Kinds of result.
const (
	GroupResult    ResultKind = "vm_group" // PromQL over the VMs' exporters
	WorkloadResult ResultKind = "workload" // the generator's own reports
	ClusterResult  ResultKind = "cluster"  // platform counters
)

// Result is one panel of the report.
type Result struct {
	Name        string
	Title       string
	Description string
	Hint        string
	Kind        ResultKind
	Type        string // iops, bandwidth, latency, generic, errors, active; "" for cluster
	Group       string // vm_group or the workload's group
	Workload    string
	Metric      string // cluster metric name
	Aggregate   string // "", sum, min, mean, median, max
	Expected    *float64
	Bands       []Band
	ReportGroup string
	Metrics     []string // report_metrics
	Mask        string   // workload_mask
	Step        time.Duration
	Query       string
	XLabel      string
	YLabel      string
	Pos         Pos
}

// Band is a range drawn behind a chart.
type Band struct {
	Name         string
	Lower, Upper float64
}

// Step is one step as written, with its arguments decoded by the step's option table and defaults filled in.
type Step struct {
	Name  string // namespace.Name
	Phase Phase
	Args  Args
	Pos   Pos
}
