package target

import "context"

// PlainPlacer is implemented by clusters that can run a job beside a VM: on its node and on the VM's own disks, without
// what a VM puts between. It is claimed as PlainJobs.
type PlainPlacer interface {
	// Plain makes such a place for a VM that is on. The disks are those of the VM: only one of the two may work on them
	// at a time.
	Plain(ctx context.Context, vm string) (*PlainPlace, error)
}

// PlainPlace is a place beside a VM.
type PlainPlace struct {
	Host Host
	How  string                          // what is plain about it, in words
	End  func(ctx context.Context) error // removes it; what is left then goes with the run
}
