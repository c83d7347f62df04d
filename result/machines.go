package result

import "time"

// Boot is one machine from being switched on to its first answer.
type Boot struct {
	VM    string    `json:"vm"`
	Group string    `json:"group"`
	Node  int       `json:"node"`
	Asked time.Time `json:"asked"` // the same of all that were asked for together
	// Started is when it was its turn, no more than so many being started at a time; Answered is when it answered.
	Started  time.Time `json:"started"`
	Answered time.Time `json:"answered"`
}

// NodeReturn is one node from being switched off to being ready for use again.
type NodeReturn struct {
	Node  string    `json:"node"`
	Off   time.Time `json:"off"` // when its controller was told so
	On    time.Time `json:"on"`  // when its controller was told so
	Ready time.Time `json:"ready"`
}

// Migration is one machine's move to another node while it ran.
type Migration struct {
	VM           string    `json:"vm"`
	Group        string    `json:"group"`
	From         int       `json:"from"` // node
	To           int       `json:"to"`
	Began        time.Time `json:"began"`
	Seconds      float64   `json:"seconds"`       // all of it
	StillSeconds float64   `json:"still_seconds"` // in which it stood still, as the place says
	MemoryBytes  int64     `json:"memory_bytes"`  // sent
}

// PlatformOperation is one thing that a platform did for a machine, from when it was asked, or had done what comes
// before, until it was seen done, by the clock of who runs this.
type PlatformOperation struct {
	Name    string    `json:"name"` // one of Cloned and its like
	VM      string    `json:"vm"`
	Group   string    `json:"group"`
	Node    int       `json:"node"`
	Object  string    `json:"object,omitempty"` // to which it was done, as the platform calls it
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
}

// What a platform does for a machine.
const (
	Cloned      = "clone"    // a disk was copied
	Bound       = "bind"     // a disk was made, and is the machine's
	Scheduled   = "schedule" // a node was chosen
	Attached    = "attach"   // disks and network were there on the node
	Pulled      = "pull"     // the image was fetched
	Started     = "start"    // from its place on a node until the machine ran, with disks and image
	Addressed   = "address"  // from its start until it had an address
	Snapshotted = "snapshot" // a disk's
	Migrated    = "migrate"
	Deleted     = "delete" // a disk was removed
)

// PlatformOperations are their names.
var PlatformOperations = []string{Cloned, Bound, Scheduled, Attached, Pulled, Started, Addressed, Snapshotted,
	Migrated, Deleted}

// OperationsOf are the operations that a journal tells of.
func OperationsOf(events []Event) []PlatformOperation {
	return eachOf(events, KindOperation, func(d EventData) *PlatformOperation { return d.Operation })
}

// BootsOf are the boots that a journal tells of.
func BootsOf(events []Event) []Boot {
	return eachOf(events, KindBoot, func(d EventData) *Boot { return d.Boot })
}

// NodeReturnsOf are the returns of nodes that a journal tells of.
func NodeReturnsOf(events []Event) []NodeReturn {
	return eachOf(events, KindNodeReturn, func(d EventData) *NodeReturn { return d.NodeReturn })
}

// MigrationsOf are the migrations that a journal tells of.
func MigrationsOf(events []Event) []Migration {
	return eachOf(events, KindMigration, func(d EventData) *Migration { return d.Migration })
}

func eachOf[T any](events []Event, kind string, of func(EventData) *T) (out []T) {
	for _, e := range events {
		if v := of(e.Data); e.Kind == kind && v != nil {
			out = append(out, *v)
		}
	}
	return out
}
