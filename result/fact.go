package result

// Fact is one line of provenance. Value is for people; what a program works with are Kind, Number and Across. A fact
// that could not be had keeps its name and says why.
type Fact struct {
	Group   string   `json:"group"` // "host", "cpu", "memory", "storage", "tool", ...
	Name    string   `json:"name"`
	Value   string   `json:"value,omitempty"`
	Missing string   `json:"missing,omitempty"` // why there is no value
	Kind    FactKind `json:"kind,omitempty"`    // what Number is; "" for facts that no analysis works with
	Number  float64  `json:"number,omitempty"`  // in the unit that Kind ends in
	Across  Across   `json:"across,omitempty"`
	// Identifies says whom or what the value names, so that a reader can leave it out; "" when nobody in particular.
	Identifies Identity `json:"identifies,omitempty"`
}

// FactKind says what a fact is about where an analysis works with it. Its name ends in the unit of the fact's number.
type FactKind string

// The kinds of facts.
const (
	StorageSize    FactKind = "storage_size_bytes"    // of what holds the disks; one group, one storage
	StorageFree    FactKind = "storage_free_bytes"    // of the same group's storage, before the run
	StorageMedia   FactKind = "storage_media_count"   // 0: the disks are in memory
	DeviceCounters FactKind = "device_counters_count" // devices under the disks that are counted
	// of a link between the media and the processor, one direction
	LinkCeiling FactKind = "link_ceiling_bytes_per_second"
	// what a quota of the run's group allows on the device under the disks
	LimitReadBandwidth  FactKind = "limit_read_bytes_per_second"
	LimitWriteBandwidth FactKind = "limit_write_bytes_per_second"
	LimitReadRate       FactKind = "limit_read_operations_per_second"
	LimitWriteRate      FactKind = "limit_write_operations_per_second"
	// what was written over what was stored, as the storage says
	DataReduction  FactKind = "data_reduction_ratio"
	SampledZeros   FactKind = "sampled_zero_share" // of blocks of storage that is only read: those that are zeros
	ThreadsPerCore FactKind = "threads_per_core_count"
	IdleWake       FactKind = "idle_wake_seconds" // to wake from the deepest idle state that the processors may enter

	RatedDevice         FactKind = "rated_device" // the device that a rated specification is of; no number
	RatedReadBandwidth  FactKind = "rated_read_bytes_per_second"
	RatedWriteBandwidth FactKind = "rated_write_bytes_per_second"
	RatedReadRate       FactKind = "rated_read_operations_per_second"
	RatedWriteRate      FactKind = "rated_write_operations_per_second"
)

// Across says what it means when a fact is not the same in two runs that are compared.
type Across string

// What a difference between runs means.
const (
	Noted     Across = ""           // it is told beside the comparison
	MustAgree Across = "must_agree" // the comparison says nothing unless the difference was declared
	Volatile  Across = "volatile"   // nothing: it differs between any two runs
)

// LoadGroup begins the name of a group of facts of a load, its options; the workload's name follows. ServerGroup begins
// the name of a group of facts of the server that loads go to.
const (
	LoadGroup   = "load "
	ServerGroup = "database server"
	// ControlGroup names the fact of which control group of CPU time a server is in.
	ControlGroup = "control group"
)

// Identity is a kind of thing that a value names, apart from all others of that kind.
type Identity string

// What a value may name.
const (
	Host        Identity = "host"         // a machine or a cluster
	Address     Identity = "address"      // in a network
	Serial      Identity = "serial"       // of a machine, a disk or one start of a system: numbers, WWNs, UUIDs
	CommandLine Identity = "command_line" // of a kernel
	User        Identity = "user"
	Path        Identity = "path" // of a file or a folder
)

// identities are those of facts that were recorded before it was said in the fact, by group and name.
var identities = map[string]Identity{
	"host/name": Host, "host/kernel command line": CommandLine, "host/boot": Serial, "host/user": User,
	"storage/folder": Path, "limits/processes tracked in": Path, "limits/CPU limits in": Path,
	"limits/memory limits in": Path,
}

// Find returns the known facts of a kind, in order.
func Find(facts []Fact, kind FactKind) (found []Fact) {
	for _, f := range facts {
		if f.Kind == kind && f.Missing == "" {
			found = append(found, f)
		}
	}
	return found
}

// ValueOf is the value of a fact, "" where there is none.
func ValueOf(facts []Fact, group, name string) string {
	for _, f := range facts {
		if f.Group == group && f.Name == name {
			return f.Value
		}
	}
	return ""
}
