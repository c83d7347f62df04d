package sim

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/sim/perf"
)

// driver watches all modelled jobs of a world with one goroutine of the clock, so that ten thousand of them cost one
// wake-up a turn. It lives while there are jobs. Its state is guarded by the world's lock.
type driver struct {
	w     *World
	group clock.Group
	jobs  []*modelled // in order of their start
	alive bool
	wake  context.CancelFunc // of the driver's sleep
	until time.Time          // of the driver's sleep
	next  time.Time          // when the first of the jobs reports
	ended int                // of the model's jobs, when they were last looked at
	list  []report           // room for the next ones
}

// modelled is a load generator's job, with the performance model in the place of the tool.
type modelled struct {
	m        *machine
	job      *perf.Job
	p        *process
	env      workload.Env
	declared workload.Declared
	every    time.Duration // between reports
	detail   time.Duration // between those with histograms
	next     time.Time     // of the next report
	skew     atomic.Int64  // of the machine's clock, nanoseconds
	detailed bool          // a report with histograms was made
	at       [3]int        // see workload.BlockIndexes

	mu      sync.Mutex // of the reports' order
	reports int
	last    time.Time
	over    bool
	err     error  // of the raw output
	line    []byte // room for the next one
}

// trace is how often the counters are noted between reports that are further apart, which costs a fraction of a report.
const trace = 5 * time.Second

// silence is how often a job whose machine does not answer is looked at.
const silence = 5 * time.Second

// How much a job's output may hold: a report for every 1/reports of its longest time and a histogram for every
// 1/details, and of all jobs of a cluster together at most the totals.
const (
	reports, allReports = 1440, 2_000_000
	details, allDetails = 100, 50_000
)

// paces are the times between reports that there are.
var paces = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
	30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// cadence is how often a job reports that runs for at most limit (0: unknown) as one of so many, and how often with
// histograms, which are costly to draw, to store and to read.
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
	j.every, j.detail = cadence(job.Limit, len(d.jobs)+1)
	o := perf.JobOptions{Name: name, Runtime: job.Limit, Apart: job.Apart, Operations: job.Operations}
	if j.every > trace {
		o.Trace = trace
	}
	j.job = d.w.storage.Start(now, j.m.Name, j.m.Node, job.Streams, o)
	j.skew.Store(int64(d.w.nodes[j.m.Node].skew))
	j.next = now.Truncate(j.every).Add(j.every)
	j.last = now
	if len(d.jobs) == 0 || j.next.Before(d.next) {
		d.next = j.next
	}
	d.jobs = append(d.jobs, j)
	if sink, ok := j.env.Sink.(workload.Tracer); ok {
		sink.Cadence(j.every)
	}
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
		d.until = d.due()
		wait := d.until.Sub(d.w.clock.Now())
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
	if end, known := d.w.storage.NextEnd(); known && end.Before(d.next) {
		return end
	}
	return d.next
}

// report is one to be handed on.
type report struct {
	*modelled
	over   bool
	state  workload.Report
	points []workload.Point
}

// atOnce is how many reports are made before they are handed on, which bounds the memory they take.
const atOnce = 256

// turn hands on what is due and ends the jobs that are done.
func (d *driver) turn() {
	list := d.collect()
	d.list = list[:0]
	for len(list) > 0 {
		some := list[:min(atOnce, len(list))]
		list = list[len(some):]
		d.w.mu.Lock()
		now := d.w.clock.Now()
		inParallel(some, func(r *report) { r.make(now) })
		d.w.mu.Unlock()
		inParallel(some, func(r *report) { r.hand(r.points, r.state) })
		for i := range some {
			if r := &some[i]; r.over {
				d.w.mu.Lock()
				r.p.end(target.Exit{})
				d.w.mu.Unlock()
			}
			some[i] = report{}
		}
	}
}

// inParallel does something with every report, on all processors when there are many.
func inParallel(list []report, do func(*report)) {
	workers := min(runtime.GOMAXPROCS(0), 1+len(list)/16)
	var g sync.WaitGroup
	for k := range workers {
		g.Go(func() {
			for i := k; i < len(list); i += workers {
				do(&list[i])
			}
		})
	}
	g.Wait()
}

// collect lists the jobs that must report, in order of their starts, and forgets those that are over.
func (d *driver) collect() []report {
	list := d.list
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	now := d.w.clock.Now()
	d.w.storage.Advance(now)
	before := d.ended
	if d.ended = d.w.storage.Finished(); d.ended == before && now.Before(d.next) {
		return nil
	}
	d.jobs = slices.DeleteFunc(d.jobs, func(j *modelled) bool {
		over := false
		if !j.m.lost {
			if over = j.job.Over(); over || !j.next.After(now) {
				list = append(list, report{modelled: j, over: over})
				j.next = now.Truncate(j.every).Add(j.every)
			}
		} else if !j.next.After(now) {
			j.next = now.Add(silence)
		}
		return over
	})
	for i, j := range d.jobs {
		if i == 0 || j.next.Before(d.next) {
			d.next = j.next
		}
	}
	return list
}

// make makes the report that is due, with histograms when it is the first, the last or one of those that carry them.
func (r *report) make(now time.Time) {
	if !r.over && r.detailed && !now.Truncate(r.detail).Equal(now) {
		r.state = r.job.Counters(now)
	} else {
		r.detailed = true
		r.state = r.job.Report(now)
		r.state.Final = r.over
	}
	r.points = r.job.Passed()
}
