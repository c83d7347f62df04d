package sim

import (
	"context"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/targets/sim/perf"
)

var (
	_ workload.Forecaster = view{}
	_ target.WriteLog     = (*rehearsal)(nil)
)

// Rehearsal implements workload.Forecaster: a second storage with the same truth. It cannot say where faults are
// declared, which strike at moments of the run, and where tools run as commands.
func (v view) Rehearsal() workload.Rehearsal {
	o := v.w.o
	if o.RunTools || len(o.Faults) > 0 {
		return nil
	}
	return &rehearsal{storage: perf.New(*o.Truth, len(v.w.nodes)), began: v.w.clock.Now(), rebuild: o.HA.Rebuild > 0}
}

// rehearsal implements workload.Rehearsal.
type rehearsal struct {
	storage *perf.World
	began   time.Time
	now     time.Time
	rebuild bool // nodes that fail are made up for, with a load that nobody knows beforehand when it begins
	jobs    []*perf.Job
}

// Start implements workload.Rehearsal.
func (r *rehearsal) Start(at time.Duration, vm string, node int, job workload.Job) int {
	o := perf.JobOptions{Name: job.Command.Label, Runtime: job.Limit}
	r.jobs = append(r.jobs, r.storage.Start(r.began.Add(at), vm, node, job.Streams, o))
	return len(r.jobs) - 1
}

// Stop implements workload.Rehearsal.
func (r *rehearsal) Stop(at time.Duration, job int) { r.jobs[job].Stop(r.began.Add(at)) }

// Move implements workload.Rehearsal.
func (r *rehearsal) Move(at time.Duration, vm string, node int) {
	r.storage.Advance(r.began.Add(at))
	r.storage.MoveVM(vm, node)
}

// LosePower implements workload.Rehearsal.
func (r *rehearsal) LosePower([]int) bool { return !r.rebuild }

// Forget implements workload.Rehearsal.
func (r *rehearsal) Forget(at time.Duration, vm string) { r.storage.Forget(r.began.Add(at), vm) }

// Purge implements workload.Rehearsal.
func (r *rehearsal) Purge(at time.Duration, vm, device string) {
	r.storage.Purge(r.began.Add(at), vm, device)
}

// Advance implements workload.Rehearsal.
func (r *rehearsal) Advance(until time.Duration) time.Duration {
	r.now = r.storage.AdvanceToEnd(r.began.Add(until))
	return r.now.Sub(r.began)
}

// Ended implements workload.Rehearsal.
func (r *rehearsal) Ended(job int) bool { return r.jobs[job].Over() }

// WriteLogBytes implements target.WriteLog.
func (r *rehearsal) WriteLogBytes(context.Context) (map[string]int64, error) {
	return writeLogs(r.storage, r.now), nil
}
