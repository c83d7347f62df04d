package target

import (
	"context"
	"time"
)

// RunFinder is implemented by targets that find by its tags what a run has made there, for when the folder that records
// it is lost. It touches nothing that has no tag of a run.
type RunFinder interface {
	FindRuns(context.Context) ([]FoundRun, error)
	// RemoveRun removes all that has a run's tag, and returns what could not be removed.
	RemoveRun(ctx context.Context, run string) (remains []string, err error)
}

// FoundRun is a run of which something is there. All times are by the place's clock.
type FoundRun struct {
	Run   string // its tag
	Owner string // who started it, and where; "" where that is not known
	// Made is how long ago its first object was made.
	Made time.Duration
	// Lease is for how long its process keeps it yet, if it does not ask for more; 0 or less when it is over.
	Lease   time.Duration
	Objects map[string]int // number by kind
	Bytes   int64          // of its disks
}

// RoleGiver is implemented by providers whose place has users of few rights: it says what a run needs at least, as the
// place takes it.
type RoleGiver interface {
	// Role is for an account in a namespace. With power it may switch nodes off, with virtual
	// make virtual machines.
	Role(namespace, account string, power, virtual bool) string
}
