// Package target is the contract between Plimsoll and whatever machines come from: this host's own files and processes,
// a simulated cluster, virtual machines under QEMU, hosts over SSH, a hypervisor's fleet.
//
// A Provider is named in one line of package drivers and turns options into a Target without touching anything.
// Target.Check looks (read-only) and returns Facts: nodes, what the place can do, what its environment is.
// Target.Provision opens a Cluster for one run; everything made through it carries the run's identity, is recorded
// under the run's state folder before it is made, and can be removed by Target.Destroy from a fresh process, twice,
// after any crash.
//
// A Cluster is what every place has: machines that can be listed and reached, nodes with a state. What not every place
// can do (make and power VMs, power nodes, take snapshots, ...) is a small optional interface found by assertion and
// claimed in Facts.Capabilities. The plan refuses a scenario whose steps need a capability that is not claimed, before
// anything starts. A cluster that claims one must implement its interface and pass that part of the conformance suite
// in package targettest.
//
// A Host is one machine: files go in and out as streams, commands run, and where the place claims it services are kept
// (ServiceKeeper) and other machines reached (Networked). A PowerController switches one node; NodePower gives them
// out, and PowerKind makes those that are reached with credentials.
//
// Sizes are bytes, times are time.Duration. All waiting goes through the run's clock.Clock.
package target

import (
	"context"
	"errors"
	"net"
	"time"

	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// Capability is something a place may or may not be able to do. Its text is shown to users.
type Capability string

// The capabilities a step may require.
const (
	VMCreation        Capability = "VMs made, cloned and deleted"     // VMMaker
	VMClones          Capability = "clones of VMs with their disks"   // VMMaker, of no template
	VMPowerControl    Capability = "VMs powered on and off"           // VMPower
	VMMoves           Capability = "moves of VMs that are off"        // VMMover
	NodePowerControl  Capability = "node power control (out of band)" // NodePower
	NodeShutdown      Capability = "graceful node shutdown"           // PowerController.Shutdown
	Snapshots         Capability = "VM group snapshots"               // Snapshotter
	LiveMigration     Capability = "live migration between nodes"     // Migrator
	AvailabilityRules Capability = "HA and balancing rules"           // Availability
	// by the place itself, of VMs that are not exempt
	NodeFailover       Capability = "restart of VMs of failed nodes"
	StorageMigration   Capability = "storage migration between stores" // StorageMigrator
	GuestCommands      Capability = "commands inside VMs"              // Host.Start with a shell
	Services           Capability = "programs kept running in VMs"     // ServiceKeeper
	PeerNetwork        Capability = "a network between VMs"            // Networked
	PlaybookHosts      Capability = "playbooks over SSH"               // Addressed, LoginSource
	ControllerCommands Capability = "commands on the machine that runs plimsoll"
	WriteLogDrain      Capability = "write-log drain report"  // WriteLog
	ClusterMetrics     Capability = "cluster metrics"         // MetricsSource
	PlatformChecks     Capability = "vCenter or Prism checks" // PlatformChecker
	FolderImport       Capability = "import of OVF folders"   // Template.Folder
	DiskTrim           Capability = "trim of data disks"      // load generators that discard blocks
	DiskPurge          Capability = "purge of data disks"     // DiskPurger
	VMExporters        Capability = "scraping of VMs' ports"  // VMAddressed
	PlainJobs          Capability = "jobs beside a VM"        // PlainPlacer
)

// Capabilities are all of them.
func Capabilities() []Capability {
	return []Capability{VMCreation, VMClones, VMPowerControl, VMMoves, NodePowerControl, NodeShutdown, Snapshots,
		LiveMigration,
		AvailabilityRules, NodeFailover, StorageMigration, GuestCommands, Services, PeerNetwork, PlaybookHosts,
		ControllerCommands, WriteLogDrain, ClusterMetrics, PlatformChecks, FolderImport, DiskTrim, DiskPurge,
		VMExporters, PlainJobs}
}

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotAccessible is returned by operations on a host whose VM or node is off, gone or does not answer.
	ErrNotAccessible = errors.New("not accessible")
	// ErrNoSuchVM is returned for a VM name the cluster does not hold.
	ErrNoSuchVM = errors.New("no such VM")
	// ErrNoSuchNode is returned for a node index outside the cluster.
	ErrNoSuchNode = errors.New("no such node")
	// ErrNoController is returned for a node that has no power controller.
	ErrNoController = errors.New("no power controller")
)

// NoRoom is the error of a place that lacks disk space or memory for what it is asked to make.
type NoRoom struct{ Err error }

// Error implements error.
func (n NoRoom) Error() string { return n.Err.Error() }

// Unwrap gives what is lacking.
func (n NoRoom) Unwrap() error { return n.Err }

// Provider makes Targets of one kind.
type Provider interface {
	// Name is the word after --target.
	Name() string
	// Summary is one line for `plimsoll targets list`.
	Summary() string
	// Options is the option table.
	Options() []Option
	// New decodes options and returns all objections at once. It opens no file and no connection.
	New(Config) (Target, error)
}

// Timekeeper is implemented by providers on whose targets time is not the machine's: a run there takes its clock from
// here.
type Timekeeper interface {
	Clock() clock.Clock
}

// Config holds what every provider is given.
type Config struct {
	Nodes   int // logical nodes asked for with --nodes; 0 means the provider's default
	Options Options
	Clock   clock.Clock
	RunsDir string // folder of run folders, for providers that keep machines in them; "" means the working directory
	// PowerKinds are the power controllers there are, for providers whose nodes have some: see PowerSetting.
	PowerKinds []PowerKind
	// AllowHostCommands permits steps that run commands of the scenario's author on this machine.
	AllowHostCommands bool
}

// Target is a place that can hold a cluster.
type Target interface {
	// Check looks at the place, changes nothing, and returns facts and every objection at once (errors.Join).
	Check(context.Context) (Facts, error)
	// Provision opens a cluster for a run. It verifies Request against what is there now (disk space, memory,
	// permissions; both numbers in the error) before making anything. After an error Destroy is still called.
	Provision(context.Context, Request) (Cluster, error)
	// Destroy removes everything that the run recorded in stateDir, also when Provision or the process died half-way,
	// and returns what could not be removed. Calling it again, or for a run that left nothing, is fine.
	Destroy(ctx context.Context, stateDir string) (remains []string, err error)
}

// Facts are what Check found.
type Facts struct {
	Target       string                `json:"target"`
	ClusterName  string                `json:"cluster_name"`
	Nodes        []Node                `json:"nodes"`
	Capabilities map[Capability]string `json:"capabilities"` // claimed -> how it is done here
	Missing      map[Capability]string `json:"missing"`      // not claimed -> why, in words for users
	// Lacks are programs that its machines do not have, by the name of the load generator or of the server, and what to
	// do.
	Lacks       map[string]string `json:"lacks,omitempty"`
	Metrics     []string          `json:"metrics"`     // cluster metric names served, as the scenario language writes them
	Environment []result.Fact     `json:"environment"` // provenance
	Notes       []string          `json:"notes"`       // sentences for the report, e.g. "CPU limits are not enforced: ..."
	FreeBytes   int64             `json:"free_bytes"`  // space for data disks; -1 unknown
	FreeMemory  int64             `json:"free_memory_bytes"`
	LargestFile int64             `json:"largest_file_bytes,omitempty"` // a data disk is one; 0: no limit is known
	OpenFiles   int64             `json:"open_files,omitempty"`         // that the run may have; 0: no limit is known
	// DataDisks are the data disks there are, where they are given, as devices are, and cannot be made: each goes to
	// one VM at a time. Empty where disks are made to measure.
	DataDisks []Disk `json:"data_disks,omitempty"`
	// Dealt says that each of DataDisks is the data disk of its number of the one VM there may be.
	Dealt bool `json:"dealt,omitempty"`
	// EmptyTemplates says that templates take no space: their disks are made with those who are cloned from them.
	EmptyTemplates bool `json:"empty_templates,omitempty"`
	// Machines are those that are there already, at a place that makes none. The members of a scenario's group are all
	// machines of that group, whatever number the scenario declares; cloning and powering on find them there.
	Machines []Machine `json:"machines,omitempty"`
	// OneMachine says that the nodes are parts of one machine: each has all its CPUs, memory and links.
	OneMachine bool `json:"one_machine,omitempty"`
	// MoreDisk and MoreMemory say which option gives more of it, "" where none does.
	MoreDisk   string `json:"more_disk,omitempty"`
	MoreMemory string `json:"more_memory,omitempty"`
	// VMMemoryBytes counts what a running VM takes of the place's memory where the scenario's size does not tell it, as
	// with sandboxes, whose memory is a limit and not reserved; 0 where it is.
	VMMemoryBytes int64 `json:"vm_memory_bytes,omitempty"`
	// Simulated says that nothing there is real: the run is in the target's own time, and what is true of this machine
	// and this moment does not belong into its record.
	Simulated bool `json:"simulated,omitempty"`
	// PlaybookTime is how long a playbook is taken to last where it is only rehearsed, as on a simulated cluster.
	PlaybookTime time.Duration `json:"playbook_ns,omitempty"`
	// Pace tells how fast the place is, for the plan's estimates.
	Pace Pace `json:"pace,omitzero"`
}

// Machine is one that is there already.
type Machine struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"` // its role; without one it is in no group
	Node  int    `json:"node"`
	Disks []Disk `json:"disks,omitempty"`
}

// Pace is how long things take at a place. What is 0 is not known. How long load takes is workload.Forecaster's to say.
type Pace struct {
	Clone     time.Duration `json:"clone_ns,omitempty"`     // of one VM
	VMOn      time.Duration `json:"vm_on_ns,omitempty"`     // until VMs powered on at the same time are accessible
	NodeOn    time.Duration `json:"node_on_ns,omitempty"`   // until a node's services are ready
	Migration time.Duration `json:"migration_ns,omitempty"` // of one VM
}

// Can reports whether c is claimed.
func (f Facts) Can(c Capability) bool { _, ok := f.Capabilities[c]; return ok }

// Lacking says why whatever is neither claimed nor missing so far is missing.
func (f *Facts) Lacking(why string) {
	if f.Missing == nil {
		f.Missing = map[Capability]string{}
	}
	for _, c := range Capabilities() {
		if !f.Can(c) && f.Missing[c] == "" {
			f.Missing[c] = why
		}
	}
}

// Node is one node of the cluster, in configured order.
type Node struct {
	Index       int    `json:"index"`
	Name        string `json:"name"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	Power       string `json:"power,omitempty"` // kind of power controller; "" when the node has none
	Address     string `json:"address,omitempty"`
}

// Request holds what a run needs.
type Request struct {
	RunID    string
	StateDir string // private to the target, inside the run folder; survives a crash of plimsoll
	// Peak demands, worked out by the plan, checked before the first byte is written.
	DiskBytes   int64
	MemoryBytes int64
	Log         func(format string, args ...any) // one line per thing worth telling an operator; may be nil
	// Fault enters into the run's journal a fault that the place itself brings about, or its end: the node it hits, -1
	// when none or several, the state it leads to (result.FaultBegins and those beside it), words, and of an end the
	// words with which it began. May be nil.
	Fault func(node int, state, text, ends string)
	// Booted, Migrated and Operated enter what the place saw of a machine that was switched on, or that moved while it
	// ran, and of each thing that its platform did for one. May be nil.
	Booted   func(result.Boot)
	Migrated func(result.Migration)
	Operated func(result.PlatformOperation)
}

// PowerState of a VM or a node.
type PowerState string

// Power states.
const (
	On      PowerState = "on"
	Off     PowerState = "off"
	Unknown PowerState = "unknown"
)

// VM is one machine as the cluster lists it.
type VM struct {
	Name     string
	Group    string // as given in the spec; identity, not derived from the name
	Node     int    // index into Facts.Nodes
	Power    PowerState
	Template bool
}

// Template describes a VM to be made from a gold image.
type Template struct {
	Name        string
	Group       string
	Image       string // gold image name of the scenario
	Folder      bool   // OVF: import the folder of that name; CPUs, memory and disks below do not apply
	Node        int
	CPUs        int
	MemoryBytes int64
	DiskBytes   []int64 // data disks, /dev/sdb onward, already scaled
}

// Clone asks for copies of a VM, contents included.
type Clone struct {
	Source  string
	Group   string
	Members []Placement
	Linked  bool // children of a snapshot where the place has such a thing
}

// Placement is a name on a node.
type Placement struct {
	Name string
	Node int
}

// Cluster is an open cluster of one run. Methods may be called from several goroutines.
//
// Methods taking names act on all of them, in the order given, and join their errors, each naming its VM.
type Cluster interface {
	// VMs lists this run's machines, templates included, sorted by name.
	VMs(context.Context) ([]VM, error)
	// Host gives access to a machine by name.
	Host(name string) (Host, error)
	// NodeState is the power state of a node and whether its services are ready for use.
	NodeState(ctx context.Context, node int) (PowerState, bool, error)
	// Close releases what this process holds. It destroys nothing.
	Close() error
}

// VMMaker makes machines and deletes them.
type VMMaker interface {
	// CreateTemplate makes a powered-off VM. An existing one of that name is left as it is.
	CreateTemplate(context.Context, Template) error
	// Clone makes the members, powered off; it fails naming those that do not exist afterwards.
	Clone(context.Context, Clone) error
	// Delete removes machines with their disks and snapshots. Gone already is fine.
	Delete(ctx context.Context, names []string) error
}

// VMPower powers machines.
type VMPower interface {
	// PowerOn starts those that are off, at most maxConcurrent at a time, and returns when each has an address.
	PowerOn(ctx context.Context, names []string, maxConcurrent int) error
	// PowerOff is a hard power-off: everything running in the VM dies at once. Off already is fine.
	PowerOff(ctx context.Context, names []string) error
}

// VMMover puts powered-off or never-started machines on another node; live migration is Migrator.
type VMMover interface {
	Move(ctx context.Context, vm string, node int) error
}

// Snapshotter takes and restores snapshots of several VMs at one moment.
type Snapshotter interface {
	Snapshot(ctx context.Context, tag string, vms []string) error
	// Restore puts a powered-off VM's disks back to the snapshot.
	Restore(ctx context.Context, tag, vm string) error
}

// Migrator moves running VMs.
type Migrator interface {
	Migrate(ctx context.Context, vm string, toNode int) error
}

// Availability exempts VMs from, or returns them to, the platform's HA restart and automatic balancing.
type Availability interface {
	SetHA(ctx context.Context, vms []string, enabled bool) error
	SetBalancing(ctx context.Context, vms []string, enabled bool) error
}

// StorageMigrator moves the disks of VMs to another store.
type StorageMigrator interface {
	MoveStorage(ctx context.Context, vms []string, store string) error
}

// Addressed gives addresses for playbook inventories. Groups "nodes" and "cvms" are the platform's own.
type Addressed interface {
	Addresses(ctx context.Context, group string) ([]string, error)
}

// LoginSource gives what leads into the machines of a group, for playbooks. Places where playbooks are only rehearsed
// have none.
type LoginSource interface {
	Logins(ctx context.Context, group string) ([]Login, error)
}

// Login is how another program, as OpenSSH's client, gets into a machine. Nothing in it is secret.
type Login struct {
	Machine    string
	User       string
	Sudo       bool     // the user becomes root by sudo, without a password
	Keys       []string // files
	KnownHosts []string // files
	KnownAs    string   // the machine's name in these
	// Dial connects to its SSH server, over whatever lies between.
	Dial func(context.Context) (net.Conn, error)
}

// WriteLog reports how much every storage controller still holds in its write log, by controller. No controllers, no
// entries.
type WriteLog interface {
	WriteLogBytes(context.Context) (map[string]int64, error)
}

// PlatformChecker runs the diagnostics that only one platform has, by the name of their step, e.g.
// check.PrismDatastoreVisible; node is -1 and store "" where the check takes none.
type PlatformChecker interface {
	PlatformCheck(ctx context.Context, name string, node int, store string) error
}

// StepWatcher is implemented by clusters in which something may happen relative to the steps of the run, as faults do
// in a simulated one. StepBegins is called when a step begins, with its number in the plan and its name.
type StepWatcher interface {
	StepBegins(number int, name string)
}

// MetricsSource reports the cluster's own counters for now.
type MetricsSource interface {
	ClusterMetrics(context.Context) ([]Metric, error)
}

// Metric is one value of one node, under the scenario language's name and in its raw unit, e.g.
// CpuUsage.Avg.Percent.
type Metric struct {
	Name  string
	Node  int
	Value float64
}

// HostSource is implemented by clusters that can look at the machines underneath their VMs, as an exporter on them
// would. It is read every second or so, at little cost, and is no capability: what it does not serve is left out.
type HostSource interface {
	HostCounters(context.Context) (HostCounters, error)
}

// HostCounters are what the machines underneath have counted up to now.
type HostCounters struct {
	CPUs       []CPUCounter
	Devices    []DeviceCounter
	Generators []GeneratorUse
	Quotas     []QuotaCounter
	Waits      []WaitCounter
}

// WaitCounter is for how long at least one task of a machine has waited for something there is too little of, since the
// machine started: the pressure that Linux counts.
type WaitCounter struct {
	Machine  string
	Resource string // "cpu", "io" or "memory"
	Waited   time.Duration
}

// QuotaCounter holds what a CPU quota has done since it was set: the kernel gives a group its share of CPU time anew in
// every period, and holds its processes back for the rest of a period in which they have used it up.
type QuotaCounter struct {
	Machine   string // the VM whose quota it is, or the machine on which all of the run is
	Periods   uint64 // in which its processes had something to do
	Throttled uint64 // of these, in which they were held back
}

// CPUCounter is how one CPU has spent its time since its machine started.
type CPUCounter struct {
	Host string // name of the machine
	CPU  int    // -1 stands for all CPUs of the NUMA node together
	NUMA int    // the NUMA node that it belongs to
	// Interrupt is time in hardware and software interrupts; Steal what the hypervisor gave to others; Idle includes
	// waits for I/O.
	User, System, Interrupt, Steal, Idle time.Duration
}

// DeviceCounter holds what a block device has completed since its machine started, for whomever.
type DeviceCounter struct {
	Host, Device            string
	Reads, Writes           uint64
	ReadBytes, WrittenBytes uint64
	Busy                    time.Duration // with at least one operation outstanding
	Operations              time.Duration // that reads and writes took, added up
}

// GeneratorUse holds what the busiest thread of a command has done since the last look at it.
type GeneratorUse struct {
	VM, Label string  // Label is the command's
	Busy      float64 // share of the time for which it ran on a CPU, 0 to 1
	Waiting   float64 // share of the time for which it was ready and had no CPU
}
