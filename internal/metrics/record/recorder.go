// Package record writes what a run measures into its metrics database while it goes on: what engines report, which VMs
// are on and where, what machines and scraped exporters count, under node_exporter's names and its own; and it tells
// what goes on now (Live).
//
// It sits between the engines and scrapers of package run on one side and package series on the other. Package collect
// reads it afterwards. It judges nothing and keeps nothing but what the next ticks need; a report that does not fit its
// job's declaration is left out.
package record

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/metrics/series"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// Scope holds what all series of a run are labelled with.
type Scope struct {
	ScenarioID          int64
	ScenarioName        string
	ScenarioDisplayName string
	ClusterName         string
}

func (s Scope) labels(more ...series.Label) []series.Label {
	return append(more,
		series.Label{Name: "job", Value: "xray"},
		series.Label{Name: "scenario_id", Value: strconv.FormatInt(s.ScenarioID, 10)},
		series.Label{Name: "scenario_display_name", Value: s.ScenarioDisplayName},
		series.Label{Name: "scenario_name", Value: s.ScenarioName},
		series.Label{Name: "cluster_name", Value: s.ClusterName},
	)
}

// RecorderOptions are what a Recorder needs.
type RecorderOptions struct {
	Store *series.Store
	Now   func() time.Time // the run's clock
	Scope Scope
	// Base is the moment from which times are counted by the monotonic clock, so that a step of the wall clock during
	// the run moves nothing; the run's Created. Zero: Now().
	Base time.Time
	// Interval between points; 0 means one second. Points lie on whole multiples of it.
	Interval time.Duration
}

// Recorder turns what engines report into time series while a run goes on. Its methods may be called from several
// goroutines.
//
// Every powered-on VM has a point at every tick, zeros included, so that irate works from the first I/O on. A tick's
// value is interpolated linearly between the two reports around it: counts are conserved, and a tick is written once
// every running workload of the VM has reported beyond it, or has been silent for three of its intervals. Reports are
// placed on the run's clock by their own time plus the distance between the two clocks, bounded by when the tool was
// started and when its reports came, so that delays of delivery do not show up as bursts.
type Recorder struct {
	o       RecorderOptions
	mu      sync.Mutex // taken before that of a VM
	vms     map[string]*vmState
	rows    []vmRow // of vms, by name: points are appended in a fixed order
	wakes   wakes
	cluster []clusterPoint
	warn    map[string]int
	dropped int
	// counting are the VMs that count what their disks do themselves; see standBack.
	counting map[string]bool
	clocks   map[string]machineClock // by machine
}

type clusterPoint struct {
	name   string
	labels []series.Label
	t      time.Time
	v      float64
}

type vmState struct {
	name     string
	group    string
	mu       sync.Mutex // of all below
	node     int
	clock    machineClock
	on       bool          // at the tick before next
	switches []powerSwitch // from then on, in order
	next     time.Time     // next tick to write
	loads    []*load       // every workload that ever ran on it
	idle     *atomic.Int64 // see vmRow
	disk     *series.Row
	last     diskTotals     // as written
	drawn    bool           // the last points are of a machine that was on
	derived  bool           // the last points are of counters derived from the loads
	counts   *series.Handle // of VMNode alone, once the machine counts what its disks do itself; nil before
}

type powerSwitch struct {
	t    time.Time
	on   bool
	node int
}

// vmRow holds what write looks at of a VM, which thousands of times finds nothing to do for thousands of VMs.
type vmRow struct {
	vm   *vmState
	idle *atomic.Int64 // nanoseconds since 1970: nothing can be written before; close to those of other VMs in memory
}

// wakes are made many at once, so that they lie side by side.
type wakes []atomic.Int64

func (w *wakes) one() *atomic.Int64 {
	if len(*w) == 0 {
		*w = make(wakes, 512)
	}
	first := &(*w)[0]
	*w = (*w)[1:]
	return first
}

// NewRecorder returns a recorder that has recorded nothing.
func NewRecorder(o RecorderOptions) *Recorder {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Base.IsZero() {
		o.Base = o.Now()
	}
	return &Recorder{o: o, vms: map[string]*vmState{}, warn: map[string]int{}}
}

// now is the run's time, immune to steps of the wall clock where the clock has a monotonic reading.
func (r *Recorder) now() time.Time { return r.o.Base.Add(r.o.Now().Sub(r.o.Base)).Round(0).UTC() }

// tickAfter is the first tick not before t.
func (r *Recorder) tickAfter(t time.Time) time.Time {
	if f := t.Truncate(r.o.Interval); f.Equal(t) {
		return f
	}
	return t.Truncate(r.o.Interval).Add(r.o.Interval)
}

// VM tells of a machine, of a change of its power or of its node. Points are written while it is on.
func (r *Recorder) VM(name, group string, node int, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.vms[name]; v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.idle.Store(0)
		v.switches = append(v.switches, powerSwitch{r.now(), on, node})
		return
	}
	v := r.vm(name, group, node)
	v.on = on
}

// machineClock is how far a machine's clock is ahead of the run's, where that is measured.
type machineClock struct {
	known        bool
	ahead, bound time.Duration
}

// Clock tells how far the clock of a machine is ahead of the run's, and by how much that may be wrong. Reports of its
// tools are placed by that from now on.
func (r *Recorder) Clock(name string, ahead, bound time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := machineClock{known: true, ahead: ahead, bound: bound}
	if r.clocks == nil {
		r.clocks = map[string]machineClock{}
	}
	r.clocks[name] = c
	if v := r.vms[name]; v != nil {
		v.mu.Lock()
		v.clock = c
		v.mu.Unlock()
	}
}

func (r *Recorder) vm(name, group string, node int) *vmState {
	v := r.vms[name]
	if v == nil {
		v = &vmState{name: name, group: group, node: node, on: true, next: r.tickAfter(r.now()),
			clock: r.clocks[name]}
		v.disk = series.NewRow(handles(r.diskLabels(v), diskSeries[:]...)...)
		if r.counting[name] {
			v.counts = series.NewHandle(VMNode, r.diskLabels(v))
		}
		r.vms[name] = v
		v.idle = r.wakes.one()
		at, _ := slices.BinarySearchFunc(r.rows, name, func(row vmRow, name string) int {
			return strings.Compare(row.vm.name, name)
		})
		r.rows = slices.Insert(r.rows, at, vmRow{v, v.idle})
	}
	return v
}

func (r *Recorder) diskLabels(v *vmState) []series.Label {
	return r.o.Scope.labels(series.Label{Name: "instance", Value: v.name},
		series.Label{Name: "vm_group", Value: v.group}, series.Label{Name: "device", Value: "data"})
}

// handles prepares series that differ in name only.
func handles(ls []series.Label, names ...string) []*series.Handle {
	var out []*series.Handle
	for _, name := range names {
		out = append(out, series.NewHandle(name, ls))
	}
	return out
}

// Cluster records a value of a cluster metric, named as the scenario language does, in the metric's own unit.
func (r *Recorder) Cluster(metric string, node int, nodeName string, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster = append(r.cluster, clusterPoint{
		name: ClusterSeries(metric),
		labels: r.o.Scope.labels(series.Label{Name: "node", Value: strconv.Itoa(node)},
			series.Label{Name: "instance", Value: nodeName}),
		t: r.now().Truncate(r.o.Interval),
		v: value,
	})
}

// Event records that something happened that charts are marked with, of a kind and in words.
func (r *Recorder) Event(kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster = append(r.cluster, clusterPoint{name: Event, t: r.now().Truncate(r.o.Interval), v: 1,
		labels: r.o.Scope.labels(series.Label{Name: "kind", Value: kind}, series.Label{Name: "text", Value: text})})
}

// fewVMs are not worth a goroutine.
const fewVMs = 64

// Operation records how long a platform took for a machine.
func (r *Recorder) Operation(o result.PlatformOperation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster = append(r.cluster, clusterPoint{name: OperationSeconds, t: r.now(), v: o.Seconds,
		labels: r.o.Scope.labels(series.Label{Name: "operation", Value: o.Name}, series.Label{Name: "vm", Value: o.VM},
			series.Label{Name: "group", Value: o.Group}, series.Label{Name: "object", Value: o.Object})})
}

// Tick writes every point that is due. Call it once per interval.
func (r *Recorder) Tick() error { return r.write(false) }

// Close writes what is left, not waiting for reports any more. Call it when every job has ended.
func (r *Recorder) Close() error { return r.write(true) }

func (r *Recorder) write(all bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := r.o.Store.Batch()
	parts := b.Split(min(runtime.GOMAXPROCS(0), 1+len(r.rows)/fewVMs))
	var g sync.WaitGroup
	for k, p := range parts {
		g.Go(func() {
			for _, row := range r.rows[k*len(r.rows)/len(parts) : (k+1)*len(r.rows)/len(parts)] {
				if all || row.idle.Load() <= now.UnixNano() {
					row.vm.write(p, now, r.o.Interval, all)
				}
			}
		})
	}
	g.Wait()
	for _, c := range r.cluster {
		b.Float(c.name, c.labels, c.t, c.v)
	}
	r.cluster = r.cluster[:0]
	if err := b.Commit(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.dropped += b.Dropped()
	return nil
}

// Warnings are the distinct warnings of all jobs' output with how often each came, in order.
func (r *Recorder) Warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for text, n := range r.warn {
		if n > 1 {
			text = fmt.Sprintf("%s (%d times)", text, n)
		}
		out = append(out, text)
	}
	if r.dropped > 0 {
		out = append(out, fmt.Sprintf("%d points came too late for the metrics database and were left out of it",
			r.dropped))
	}
	slices.Sort(out)
	return out
}

// write appends the VM's points up to the horizon: now, or as far as every running job is known.
func (v *vmState) write(b *series.Batch, now time.Time, step time.Duration, all bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	horizon, idle := now, time.Time{}
	for _, l := range v.loads {
		if l.job == nil || all {
			continue
		}
		if known, until := l.job.horizon(now); known.Before(now) {
			if horizon = tally.Earlier(horizon, known); idle.IsZero() || until.Before(idle) {
				idle = until
			}
		}
	}
	if v.idle.Store(0); !idle.IsZero() {
		v.idle.Store(idle.UnixNano())
	}
	for ; !v.next.After(horizon); v.next = v.next.Add(step) {
		for len(v.switches) > 0 && !v.switches[0].t.After(v.next) {
			v.on, v.node, v.switches = v.switches[0].on, v.switches[0].node, v.switches[1:]
		}
		var sum diskTotals
		for _, l := range v.loads {
			done := l.at(v.next)
			sum.add(l, done)
			if v.on || l.job != nil {
				l.write(b, v.next, done)
			}
			if l.job != nil && l.job.over && !l.job.Heard().After(v.next) {
				l.finish()
			}
		}
		switch {
		case v.on:
			v.writeDisk(b, sum)
			v.drawn = true
		case v.drawn:
			v.endDisk(b)
			v.drawn = false
		}
	}
}

// endDisk ends the series of a machine that is off: queries do not carry its last points on.
func (v *vmState) endDisk(b *series.Batch) {
	off := series.Ended()
	if v.counts != nil && !v.derived {
		b.Append(v.counts, v.next, off)
		return
	}
	b.AppendRow(v.disk, v.next, off, off, off, off, off, off, off)
}

// diskTotals are reads and writes of all loads of a machine.
type diskTotals struct{ ops, bytes, seconds [2]float64 }

func (d *diskTotals) add(l *load, t tally.Totals) {
	for op, o := range l.layout.Operations {
		k := 0
		switch o.Block {
		case result.BlockRead:
		case result.BlockWrite:
			k = 1
		default:
			continue
		}
		d.ops[k] += t.Ops(op)
		d.bytes[k] += t.Bytes(op)
		d.seconds[k] += t.Seconds(op)
	}
}

// writeDisk adds the points of a machine that is on. When it counts for itself the derived counters end with a point
// like the one before, so that their rates end with 0 and nothing is counted twice while both are in the range of a
// query.
func (v *vmState) writeDisk(b *series.Batch, d diskTotals) {
	switch {
	case v.counts == nil:
		v.last, v.derived = d, true
	case v.derived:
		d, v.derived = v.last, false
	default:
		b.Append(v.counts, v.next, float64(v.node))
		return
	}
	b.AppendRow(v.disk, v.next, float64(v.node), d.ops[0], d.ops[1], d.bytes[0], d.bytes[1], d.seconds[0], d.seconds[1])
}
