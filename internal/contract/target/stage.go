package target

import (
	"context"
	"time"
)

// Stager is implemented by hosts on which a command can be made ready beforehand, so that commands on many machines
// begin together: making ready takes its time, and a different one on every machine, letting begin takes none.
type Stager interface {
	// Stage does all that Start does up to the moment before the command begins: its program, files and disks have been
	// looked at, and its output files are there.
	Stage(context.Context, Command) (Staged, error)
}

// Staged is a command that is ready to begin. It is released or dropped; one that is neither ends with its run.
type Staged interface {
	// Release lets it begin at a moment of this process's clock, at once when that is past, and tells when it did. One
	// message says so to the host, which keeps the moment by its own clock: how far that is ahead was measured.
	Release(ctx context.Context, at time.Time) (Process, Begun, error)
	// Drop ends it before it has begun.
	Drop(context.Context) error
}

// Begun is when a command began.
type Begun struct {
	At     time.Time     // by the clock of this process
	Within time.Duration // by how much At may be wrong
}

// ClockReader is implemented by hosts with a clock of their own.
type ClockReader interface {
	// ReadClock compares the host's clock with the one of this process. It takes a few round trips.
	ReadClock(context.Context) (ClockReading, error)
}

// ClockReading is how far a host's clock was ahead.
type ClockReading struct {
	At    time.Time     // by the clock of this process
	Ahead time.Duration // negative when behind
	Bound time.Duration // by how much Ahead may be wrong: half of the shortest round trip
}
