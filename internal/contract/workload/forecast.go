package workload

import "time"

// Forecaster is implemented by targets that can say before a run how long its load will take there, as the simulated
// cluster can from its model. It is no capability: without it the plan says that it cannot tell. Find it by
// assertion; a forecast touches nothing.
type Forecaster interface {
	// Rehearsal returns the place as it will be when a run begins, with no load; nil where it cannot say.
	Rehearsal() Rehearsal
}

// Rehearsal is the load on a place in the course of a run that is yet to come. Times are since the run's begin and must
// not go backwards. One that is a target.WriteLog tells what the write logs hold, too. Whoever asks in the same order
// gets the same answers. It is not safe for concurrent use.
type Rehearsal interface {
	// Start begins a job on a VM and returns its number.
	Start(at time.Duration, vm string, node int, job Job) int
	// Stop ends a job. It may have ended before.
	Stop(at time.Duration, job int)
	// Move puts a VM with what runs on it on another node.
	Move(at time.Duration, vm string, node int)
	// LosePower tells that nodes fail, and reports whether what the place does to make up for them leaves its storage
	// as it was. If not, the rehearsal is at its end.
	LosePower(nodes []int) bool
	// Forget drops a VM that is deleted, and its data.
	Forget(at time.Duration, vm string)
	// Purge empties a disk of a VM.
	Purge(at time.Duration, vm, device string)
	// Advance goes on to the next end of a job, at most to until, and returns the time that it has come to.
	Advance(until time.Duration) time.Duration
	// Ended reports whether a job has ended by that time.
	Ended(job int) bool
}
