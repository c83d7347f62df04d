// Package perf stands in for a moment.
package perf

import (
	"time"

	"plimsoll/hist"
	"plimsoll/internal/workload"
)

type Truth struct {
	Contention float64 `yaml:"contention"`
	Seed       uint64  `yaml:"-"`
}

func DefaultTruth() Truth    { return Truth{} }
func (t Truth) Check() error { return nil }

type JobOptions struct {
	Runtime time.Duration
	Prefill bool
	Seed    uint64
}
type World struct{ nodes int }

func New(t Truth, nodes int) *World { return &World{nodes} }

type Job struct {
	w     *World
	began time.Time
	lanes []workload.Lane
	end   time.Time
	known bool
	stop  time.Time
}

const rate = 1000.0

func (w *World) Start(now time.Time, vm string, node int, lanes []workload.Lane, o JobOptions) *Job {
	j := &Job{w: w, began: now, lanes: lanes}
	var most time.Duration
	j.known = true
	for _, l := range lanes {
		d := o.Runtime
		if !l.TimeBased && l.Bytes > 0 {
			d = time.Duration(float64(l.Bytes) / (200 << 20) * 1e9)
			if o.Runtime > 0 {
				d = min(d, o.Runtime)
			}
		}
		if d == 0 {
			j.known = false
		}
		most = max(most, d)
	}
	j.end = now.Add(most)
	return j
}
func (w *World) Advance(now time.Time) {}
func (j *Job) Ends() (time.Time, bool) { return j.end, j.known }
func (j *Job) Stop(now time.Time)      { j.stop = now }
func (j *Job) Report(now time.Time) workload.Report {
	if !j.stop.IsZero() && now.After(j.stop) {
		now = j.stop
	}
	if j.known && now.After(j.end) {
		now = j.end
	}
	r := workload.Report{Time: now, Elapsed: now.Sub(j.began)}
	for _, l := range j.lanes {
		n := uint64(rate * r.Elapsed.Seconds())
		c := &r.Write
		if l.Reads {
			c = &r.Read
		}
		c.Ops += n
		c.Bytes += n * 8192
		c.Seconds += float64(n) * 0.001
		if c.Hist == nil {
			c.Hist = &hist.Histogram{}
		}
		if n > 0 {
			c.Hist.Add(1e6, n)
		}
	}
	return r
}
func (w *World) MoveVM(vm string, node int) {}

type Kind string

const (
	SlowDisk Kind = "slow_disk"
	HungIO   Kind = "hung_io"
)

type Fault struct {
	Kind   Kind
	Node   int
	Factor float64
	Until  time.Time
}

func (w *World) Fault(now time.Time, f Fault) {}

type NodeUse struct {
	CPU, Memory, Received, Sent float64
}

func (w *World) NodeMetrics(now time.Time) []NodeUse { return make([]NodeUse, w.nodes) }
