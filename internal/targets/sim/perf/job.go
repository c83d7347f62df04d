package perf

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// JobOptions are what a job is besides its streams.
type JobOptions struct {
	Name    string        // of the workload, told apart by it from others of the VM
	Runtime time.Duration // after which everything ends at the latest; 0: none
	Apart   bool          // reports tell the streams apart
	// Operations are those that reports count: of every stream's reads, writes and discards the ones that are declared.
	// Nil: result.BlockOperations().
	Operations []result.Operation
	// Trace is how often the counters are noted for Passed, at whole multiples of it; 0: never.
	Trace time.Duration
}

// Job is a running workload of one VM.
type Job struct {
	world   *World
	vm      string
	node    int
	began   int64
	ended   int64 // never while it runs
	limit   int64
	stage   int
	streams []*stream
	apart   bool
	// operations is how many there are, index where reads, writes and discards are among them.
	operations int
	index      [3]int

	mu     sync.Mutex // of the streams' counters and of what follows, where the world is only read
	every  int64      // between notes
	noted  int64      // up to which time there are notes
	passed []workload.Point
}

// Start begins a job now.
func (w *World) Start(now time.Time, vm string, node int, streams []result.Stream, o JobOptions) *Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	if o.Operations == nil {
		o.Operations = result.BlockOperations()
	}
	j := &Job{world: w, vm: vm, node: min(max(node, 0), len(w.nodes)-1), began: w.at, ended: never, limit: never,
		apart: o.Apart,
		every: int64(o.Trace), noted: w.at, operations: len(o.Operations), index: workload.BlockIndexes(o.Operations)}
	if o.Runtime > 0 {
		j.limit = w.at + int64(o.Runtime)
	}
	n := &w.nodes[j.node]
	w.settle(n)
	for i, spec := range streams {
		l := newStream(j, spec, w.seed(vm, o, spec.Name, i, now))
		l.volume = w.volume(vm, n, spec)
		j.streams = append(j.streams, l)
	}
	w.jobs[vm] = append(w.jobs[vm], j)
	n.streams = append(n.streams, j.streams...)
	j.enter(w.firstStage(j))
	if len(streams) == 0 {
		j.next()
	}
	w.touch(j.node)
	return j
}

// seed tells the streams of a world apart, whatever the order in which they started.
func (w *World) seed(vm string, o JobOptions, stream string, i int, now time.Time) uint64 {
	h := fnv.New64a()
	for _, text := range []string{vm, o.Name, stream} {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	for _, n := range []uint64{w.truth.Seed, uint64(i), uint64(now.UnixNano())} {
		h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	return h.Sum64()
}

func (w *World) firstStage(j *Job) int {
	stage := 0
	for i, l := range j.streams {
		if i == 0 || l.spec.Stage < stage {
			stage = l.spec.Stage
		}
	}
	return stage
}

// enter makes the streams of a stage wait for their delays.
func (j *Job) enter(stage int) {
	j.stage = stage
	for _, l := range j.streams {
		if l.spec.Stage == stage {
			l.begins = j.world.at + int64(max(0, l.spec.Delay))
		}
	}
	j.world.turnStreams(&j.world.nodes[j.node])
}

// turnStreams begins and ends the streams of a node whose time has come.
func (w *World) turnStreams(n *node) {
	var jobs []*Job
	for _, l := range n.streams {
		if l.state == waiting && l.begins <= w.at {
			l.state, l.from, l.to = running, w.at, w.at
			if l.spec.Runtime > 0 {
				l.ends = w.at + int64(l.spec.Runtime)
			}
		}
		l.ends = min(l.ends, l.job.limit)
		if l.state == running {
			l.cut(w.at)
			if l.ops > 0 && l.ops-l.done < 1e-6*l.ops+0.01 {
				l.finish()
				l.end()
			}
		}
		if l.ends <= w.at {
			l.end()
		}
		if l.state == over && !slices.Contains(jobs, l.job) {
			jobs = append(jobs, l.job)
		}
	}
	w.settle(n) // what the streams wrote counts before they go
	n.streams = slices.DeleteFunc(n.streams, func(l *stream) bool { return l.state == over })
	for _, j := range jobs {
		j.next()
	}
}

// end stops a stream where it is.
func (l *stream) end() {
	l.cut(l.job.world.at)
	l.state = over
}

// next goes on with the next stage when the present one is over, or ends the job.
func (j *Job) next() {
	if j.ended != never || slices.ContainsFunc(j.streams, func(l *stream) bool {
		return l.spec.Stage <= j.stage && l.state != over
	}) {
		return
	}
	stage, found := 0, false
	for _, l := range j.streams {
		if l.state != over && (!found || l.spec.Stage < stage) {
			stage, found = l.spec.Stage, true
		}
	}
	if found {
		j.enter(stage)
		return
	}
	j.ended = j.world.at
	w := j.world
	w.finished++
	w.jobs[j.vm] = slices.DeleteFunc(w.jobs[j.vm], func(o *Job) bool { return o == j })
	if len(w.jobs[j.vm]) == 0 {
		delete(w.jobs, j.vm)
	}
}

// Stop ends a job now. What it has outstanding is lost. It may have ended before.
func (j *Job) Stop(now time.Time) {
	w := j.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	if j.ended != never {
		return
	}
	j.limit = w.at
	for _, l := range j.streams {
		l.ends = w.at
	}
	w.touch(j.node)
	w.turnStreams(&w.nodes[j.node])
}

// Over reports whether the job has ended by the time that the world has come to.
func (j *Job) Over() bool {
	w := j.world
	w.mu.RLock()
	defer w.mu.RUnlock()
	return j.ended <= w.at
}

// Finished is how many jobs have ended so far.
func (w *World) Finished() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.finished
}

// NextEnd is when the first of the running jobs will end, or go on in a way that decides when it ends, under what is
// known now; always later than the time that the world has come to, and false when nothing says so. Ask again later:
// load changes it.
func (w *World) NextEnd() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirty {
		w.solve()
	}
	end := int64(never)
	for i := range w.nodes {
		end = min(end, w.nodes[i].ends)
	}
	if end == never {
		return time.Time{}, false
	}
	return time.Unix(0, max(end, w.at+1)).UTC(), true
}

// estimate is when the last stream of the present stage ends, or begins where nothing says how long it runs.
func (j *Job) estimate() int64 {
	var end int64
	for _, l := range j.streams {
		at := l.ends
		switch {
		case l.state == over:
			continue
		case l.state == running:
			at = min(at, l.due)
		case l.begins == never:
			continue // its stage is yet to come
		default:
			at = l.begins + int64(l.spec.Runtime)
		}
		end = max(end, min(at, j.limit))
	}
	return end
}

// Report is the state of the job now, or at its end if that is earlier, histograms included.
func (j *Job) Report(now time.Time) workload.Report { return j.report(now, true) }

// Counters is Report without histograms, which is what costs little.
func (j *Job) Counters(now time.Time) workload.Report { return j.report(now, false) }

func (j *Job) report(now time.Time, histograms bool) workload.Report {
	w := j.world
	defer w.read(now)()
	j.mu.Lock()
	defer j.mu.Unlock()
	at := min(w.at, j.ended)
	j.note(at)
	r := workload.Report{Time: time.Unix(0, at).UTC(), Elapsed: time.Duration(at - j.began), Final: j.ended <= w.at}
	r.Ops = make(workload.Counts, j.operations)
	if j.apart {
		r.Sections = make([]workload.Counts, len(j.streams))
	}
	processes := 0.0
	for i, l := range j.streams {
		l.run(at)
		if j.apart {
			r.Sections[i] = make(workload.Counts, j.operations)
		}
		for d, k := range j.index {
			if l.share[d] == 0 || k < 0 {
				continue
			}
			c := &r.Ops[k]
			one := l.counters(d, at)
			c.Ops += one.Ops
			c.Bytes += one.Bytes
			c.Seconds += one.Seconds
			r.CPUSeconds += float64(one.Ops) * generatorSeconds
			if histograms && one.Ops > 0 {
				one.Hist = l.dirs[d].histogram(w, one.Ops, one.Seconds)
				switch {
				case c.Hist != nil:
					c.Hist.Merge(one.Hist)
				case j.apart:
					c.Hist = one.Hist.Clone() // the total goes on to grow
				default:
					c.Hist = one.Hist
				}
			}
			if j.apart {
				r.Sections[i][k] = one
			}
		}
		processes += float64(max(1, l.spec.Processes))
	}
	r.CPUSeconds = min(r.CPUSeconds, busiestGenerator*processes*r.Elapsed.Seconds())
	return r
}

// read brings the world up to now and keeps it there until the function returned is called. Several goroutines may read
// at once.
func (w *World) read(now time.Time) (done func()) {
	w.mu.RLock()
	for w.at < now.UnixNano() {
		w.mu.RUnlock()
		w.Advance(now)
		w.mu.RLock()
	}
	return w.mu.RUnlock
}

// counters are those of one direction at a time within the present cell, without a histogram.
func (l *stream) counters(d int, at int64) workload.Counters {
	n := l.now(d, at)
	if n.ops == 0 {
		return workload.Counters{} // what is under way takes no time yet: a tool sums up completed operations
	}
	return workload.Counters{Ops: n.ops, Bytes: uint64(float64(n.ops)*l.bytes[d] + 0.5), Seconds: n.seconds}
}

// note keeps the counters at the lines of the job's grid up to at. It must be called before anything changes what comes
// after the last one.
func (j *Job) note(at int64) {
	if j.every == 0 {
		return
	}
	for t := j.noted - j.noted%j.every + j.every; t <= min(at, j.ended); t += j.every {
		p := workload.Point{Time: time.Unix(0, t).UTC()}
		for _, l := range j.streams {
			l.run(t)
			for d := range l.dirs {
				if l.share[d] == 0 {
					continue
				}
				n := l.counters(d, t)
				p.Ops[d] += n.Ops
				p.Bytes[d] += n.Bytes
				p.Seconds[d] += n.Seconds
			}
		}
		j.passed = append(j.passed, p)
	}
	j.noted = max(j.noted, at)
}

// Passed returns the counters that were noted since it was last called, up to the last report. They are good until the
// next report.
func (j *Job) Passed() []workload.Point {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.passed
	j.passed = j.passed[:0]
	return list
}

// generatorSeconds is the processor time that a load generator takes for one operation, up to a share of each of its
// processes: no processor limits the load here, so none is reported as busy as one that does.
const (
	generatorSeconds = 8e-6
	busiestGenerator = 0.6
)

// MoveVM lets the rest of a VM's jobs run on another node, from the last Advance on. Its data goes along.
func (w *World) MoveVM(vm string, node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if node < 0 || node >= len(w.nodes) {
		return
	}
	for _, j := range w.jobs[vm] {
		if j.node == node {
			continue
		}
		from, to := &w.nodes[j.node], &w.nodes[node]
		w.settle(from)
		w.settle(to)
		w.touch(j.node)
		w.touch(node)
		j.node = node
		for _, l := range j.streams {
			if l.state == over {
				continue
			}
			l.cut(w.at)
			from.streams = slices.DeleteFunc(from.streams, func(o *stream) bool { return o == l })
			to.streams = append(to.streams, l)
		}
	}
	w.offNodes(vm)
	for _, device := range slices.Sorted(maps.Keys(w.volumes[vm])) {
		w.nodes[node].hold(w.volumes[vm][device])
	}
}

// offNodes takes the volumes of a VM from all nodes.
func (w *World) offNodes(vm string) {
	for _, v := range w.volumes[vm] {
		for _, n := range v.on {
			n.volumes = slices.DeleteFunc(n.volumes, func(o *volume) bool { return o == v })
		}
		v.on = nil
	}
}

// Forget drops the data of a VM that was deleted, ending what still runs on it.
func (w *World) Forget(now time.Time, vm string) {
	w.mu.Lock()
	jobs := slices.Clone(w.jobs[vm])
	w.mu.Unlock()
	for _, j := range jobs {
		j.Stop(now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offNodes(vm)
	delete(w.volumes, vm)
}
