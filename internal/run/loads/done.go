package loads

import (
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// keeper is a sink that keeps the last report of a job.
type keeper struct {
	workload.Sink
	j *job
}

func (k keeper) Report(r workload.Report) {
	k.j.last = r
	if n := r.Ops.Total() + r.Errors; n != k.j.did.Load() {
		k.j.did.Store(n)
	}
	k.Sink.Report(r)
}

// Begun implements workload.Beginner.
func (k keeper) Begun(at time.Time) {
	if b, ok := k.Sink.(workload.Beginner); ok {
		b.Begun(at)
	}
}

// tracer is a keeper before a sink that takes points as well.
type tracer struct {
	keeper
	workload.Tracer
}

func keeping(to workload.Sink, j *job) workload.Sink {
	k := keeper{to, j}
	if t, ok := to.(workload.Tracer); ok {
		return tracer{k, t}
	}
	return k
}

// Done tells what the jobs of a start did, as they last reported.
type Done struct {
	VMs, Finished  int // on how many it was to run, on how many it came to its end
	Ops, Errors    uint64
	Bytes          uint64
	OpsPerSecond   float64 // of every job over its own time, added up
	BytesPerSecond float64
	Seconds        float64       // that its operations took, added up
	Longest        time.Duration // of a job
}

// Done returns what a start did, when all of its jobs have ended; of those that have not nothing counts.
func (l *Set) Done(s *Start) (d Done) {
	d.VMs = len(s.jobs)
	for _, j := range s.jobs {
		_, ended, _ := l.state(j)
		if ended == "" {
			continue
		}
		if ended == result.Finished {
			d.Finished++
		}
		var bytes uint64
		for _, c := range j.last.Ops {
			bytes += c.Bytes
			d.Seconds += c.Seconds
		}
		d.Ops, d.Errors, d.Bytes = d.Ops+j.last.Ops.Total(), d.Errors+j.last.Errors, d.Bytes+bytes
		d.Longest = max(d.Longest, j.last.Elapsed)
		if seconds := j.last.Elapsed.Seconds(); seconds > 0 {
			d.OpsPerSecond += float64(j.last.Ops.Total()) / seconds
			d.BytesPerSecond += float64(bytes) / seconds
		}
	}
	return d
}

// Place is a machine of a start, and what runs there.
type Place struct {
	VM   target.VM
	Host target.Host
	Job  workload.Job
}

// Places are the machines of a start in the order in which they were given.
func (s *Start) Places() []Place {
	list := make([]Place, len(s.jobs))
	for i, j := range s.jobs {
		list[i] = Place{j.vm, j.host, j.launch.Job}
	}
	return list
}

// Name is the name under which the start is recorded.
func (s *Start) Name() string { return s.name }

// Alone reports whether no job runs but those of a start.
func (l *Set) Alone(s *Start) bool {
	for _, other := range l.running() {
		if other != s {
			return false
		}
	}
	return true
}
