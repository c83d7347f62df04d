package sim

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/target"
	"plimsoll/internal/target/sim/perf"
	"plimsoll/internal/workload"
)

// driver watches all modelled jobs of a world with one goroutine of the clock, so that ten thousand of them cost one
// wake-up a turn. It lives while there are jobs. Its state is guarded by the world's lock.
type driver struct {
	w     *World
	group clock.Group
	jobs  []*modelled // in order of their start
	alive bool
	wake  context.CancelFunc // of the driver's sleep
}

// modelled is a load generator's job, with the performance model in the place of the tool.
type modelled struct {
	m        *machine
	job      *perf.Job
	p        *process
	env      workload.Env
	every    time.Duration // between reports
	detail   time.Duration // between those with histograms
	next     time.Time     // of the next report
	skew     atomic.Int64  // of the machine's clock, nanoseconds
	detailed bool          // a report with histograms was made

	mu      sync.Mutex // of the reports' order
	reports int
	last    time.Time
	over    bool
	err     error // of the raw output
}

// silence is how often a job whose machine does not answer is looked at.
const silence = 5 * time.Second

// How much a job's output may hold: a report for every 1/reports of its longest time and a histogram for every 1/details, and of
// all jobs of a cluster together at most the totals.
const (
	reports, allReports = 1440, 2_000_000
	details, allDetails = 100, 50_000
)

// paces are the times between reports that there are.
var paces = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// cadence is how often a job reports that runs for at most limit (0: unknown) as one of so many, and how often with histograms, which
// are costly to draw, to store and to read.
func cadence(limit time.Duration, jobs int) (every, detail time.Duration) {
	if limit <= 0 {
		limit = 2 * time.Hour
	}
	pace := func(share, total int, unit time.Duration) time.Duration {
		least := limit / time.Duration(share)
		if crowded := time.Duration(float64(limit) * float64(jobs) / float64(total)); crowded > least {
			least = crowded
		}
		for _, p := range paces {
			if p >= least && p%unit == 0 {
				return p
			}
		}
		return paces[len(paces)-1]
	}
	every = pace(reports, allReports, time.Nanosecond)
	return every, pace(details, allDetails, every)
}

// add begins a job. The world's lock must be held.
func (d *driver) add(j *modelled, name string, job workload.Job) {
	now := d.w.clock.Now()
	j.job = d.w.storage.Start(now, j.m.Name, j.m.Node, job.Lanes, perf.JobOptions{Name: name, Runtime: job.Limit, Apart: job.Apart})
	j.skew.Store(int64(d.w.nodes[j.m.Node].skew))
	j.every, j.detail = cadence(job.Limit, len(d.jobs)+1)
	j.next = now.Truncate(j.every).Add(j.every)
	j.last = now
	d.jobs = append(d.jobs, j)
	if d.alive {
		d.changed()
		return
	}
	d.alive = true
	if d.group == nil {
		d.group = d.w.clock.Group()
	}
	d.group.Go(d.run)
}

// drop ends a job before its end, and returns what it had done until then. The world's lock must be held.
func (d *driver) drop(j *modelled) workload.Report {
	now := d.w.clock.Now()
	d.jobs = slices.DeleteFunc(d.jobs, func(o *modelled) bool { return o == j })
	j.job.Stop(now)
	d.changed()
	r := j.job.Report(now)
	r.Final = false // a killed tool has no last word
	return r
}

// changed tells that ends and reports may now be due at other moments. The world's lock must be held.
func (d *driver) changed() {
	if d.wake != nil {
		d.wake()
	}
}

// moved follows a migration. The world's lock must be held.
func (d *driver) moved(m *machine) {
	d.w.storage.Advance(d.w.clock.Now())
	d.w.storage.MoveVM(m.Name, m.Node)
	d.changed()
}

// settle waits until the driver has noticed that there is nothing left to drive.
func (d *driver) settle() {
	d.w.mu.Lock()
	idle, group := len(d.jobs) == 0, d.group
	d.w.mu.Unlock()
	if idle && group != nil {
		group.Wait()
	}
}

func (d *driver) run() {
	for {
		d.w.mu.Lock()
		if len(d.jobs) == 0 {
			d.alive = false
			d.w.mu.Unlock()
			return
		}
		wait := d.due().Sub(d.w.clock.Now())
		ctx, wake := context.WithCancel(context.Background())
		d.wake = wake
		d.w.mu.Unlock()
		_ = d.w.clock.Sleep(ctx, wait) // woken or not, whatever is due is looked at
		wake()
		d.turn()
	}
}

// due is when something has to be done next. The world's lock must be held.
func (d *driver) due() time.Time {
	at := d.jobs[0].next
	for _, j := range d.jobs {
		if j.next.Before(at) {
			at = j.next
		}
		if end, known := j.job.Ends(); known && !j.m.lost && end.Before(at) {
			at = end
		}
	}
	return at
}

// report is one to be handed on.
type report struct {
	*modelled
	workload.Report
}

// turn hands on what is due and ends the jobs that are done.
func (d *driver) turn() {
	for _, r := range d.collect() {
		r.hand(r.Report)
		if r.Final {
			d.w.mu.Lock()
			r.p.end(target.Exit{})
			d.w.mu.Unlock()
		}
	}
}

// collect makes the reports that are due, in order of the jobs' starts.
func (d *driver) collect() (list []report) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	now := d.w.clock.Now()
	d.jobs = slices.DeleteFunc(d.jobs, func(j *modelled) bool {
		if j.m.lost {
			if !j.next.After(now) {
				j.next = now.Add(silence)
			}
			return false
		}
		end, known := j.job.Ends()
		over := known && !end.After(now)
		if over || !j.next.After(now) {
			list = append(list, report{j, j.state(now, over)})
			j.next = now.Truncate(j.every).Add(j.every)
		}
		return over
	})
	return list
}

// state is the report that is due, with histograms when it is the first, the last or one of those that carry them.
func (j *modelled) state(now time.Time, over bool) workload.Report {
	if !over && j.detailed && !now.Truncate(j.detail).Equal(now) {
		return j.job.Counters(now)
	}
	j.detailed = true
	r := j.job.Report(now)
	r.Final = over
	return r
}
