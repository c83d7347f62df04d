package fio

import (
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
)

// counters turns one direction into cumulative counters.
//
// Operations are completed ones: the number in the latency bins where there are bins, else the number latency was
// measured of, else total_ios, which also counts what is still outstanding or has failed, once anything has been
// transferred. Seconds is the mean of the same times as the bins and percentiles are of, times their count.
func (r *direction) counters() workload.Counters {
	c := workload.Counters{Ops: r.ios, Bytes: r.bytes}
	if !r.inBytes {
		c.Bytes *= 1024
	}
	if !r.hasIOs {
		c.Ops = uint64(math.Round(max(r.iops, 0) * float64(r.runtimeMS) / 1000))
	}
	t := r.timing()
	if !t.measured() {
		if c.Bytes == 0 {
			c.Ops = 0
		}
		return c
	}
	switch {
	case t.bins != nil && t.bins.Count() > 0:
		c.Ops = t.bins.Count()
		c.Hist = t.bins
	case t.hasCount && t.count > 0:
		c.Ops = t.count
	}
	c.Seconds = t.mean * float64(c.Ops) / second
	if c.Hist != nil {
		c.Hist.SetExact(t.min, t.max, t.mean*float64(c.Ops))
	}
	return c
}

// timing is the block that stands for the direction: completion latency, of which fio makes bins and percentiles unless
// it is told to make them of the total (lat_percentiles), or where it measured nothing else.
func (r *direction) timing() *timing {
	told := func(t *timing) bool { return t.bins != nil || len(t.percentiles) > 0 }
	if !r.clat.measured() || told(&r.lat) {
		return &r.lat
	}
	return &r.clat
}

func (t *timing) measured() bool { return t.given && (t.mean > 0 || t.count > 0) }

// state is one document reduced to what a report needs.
type state struct {
	report  workload.Report
	stampMS uint64
	// runtime is the longest direction's own clock in fio, which knows no steps.
	runtime time.Duration
	// runtimes are the same of every direction of every entry: with stonewall one entry begins where another ends, and
	// with verify reads begin where writes end.
	runtimes []time.Duration
	done     bool // fio knows of nothing more to come
	ramping  bool
	failed   string // the first job that ended with an error
	fatal    string // the first that did so without counting it, as continue_on_error does: it ended there
}

// operations is how many operations fio counts: reads, writes, trims.
const operations = 3

func (d *document) state() state {
	entries := d.jobs
	if len(d.clients) > 0 {
		entries = d.clientEntries()
	}
	s := state{stampMS: d.stampMS, done: true}
	if d.stampMS > 0 {
		s.report.Time = time.UnixMilli(int64(min(d.stampMS, math.MaxInt64/2))).UTC()
	}
	var elapsed, issued uint64
	measured := false
	parts := make([]workload.Counts, len(entries))
	for i := range entries {
		e := &entries[i]
		for _, ms := range []uint64{e.dirs[0].runtimeMS, e.dirs[1].runtimeMS, e.dirs[2].runtimeMS, e.mixed.runtimeMS} {
			s.runtimes, s.runtime = append(s.runtimes, milliseconds(ms)), max(s.runtime, milliseconds(ms))
		}
		issued += e.issued()
		ramping := d.ramping(e)
		measured = measured || e.issued() > 0 && !ramping
		parts[i] = make(workload.Counts, operations)
		if !ramping { // others may not be any more
			e.count(parts[i])
		}
		elapsed = max(elapsed, e.elapsedS)
		s.report.Errors += e.errors
		s.report.CPUSeconds += e.cpuPercent / 100 * milliseconds(e.runtimeMS).Seconds()
		s.done = s.done && (!e.hasETA || e.eta == 0 || e.eta >= unknownETA)
		if e.code != 0 && s.failed == "" {
			s.failed = jobError(e)
		}
		if e.code != 0 && e.errors == 0 && s.fatal == "" {
			s.fatal = jobError(e)
		}
	}
	s.report.Elapsed = s.runtime
	if s.runtime == 0 {
		s.report.Elapsed = time.Duration(min(elapsed, math.MaxInt32)) * time.Second
	}
	s.ramping = issued > 0 && !measured
	s.report.Ops = make(workload.Counts, operations)
	for _, p := range parts {
		s.report.Ops.Add(p)
	}
	if n := len(parts); n > 1 && n <= workload.MostSections && len(d.clients) == 0 {
		s.report.Sections = parts
	}
	return s
}

// waits reports whether all jobs are in their startdelay, in which fio reports already. Of the second after it fio's
// clock tells when they come on.
func (d *document) waits() bool {
	return len(d.jobs) > 0 && !slices.ContainsFunc(d.jobs, func(e entry) bool {
		delay := longest(d.jobOf(&e).Value("startdelay"))
		return delay == 0 || e.longestMS()+e.issued()+e.errors+e.code > 0 || float64(e.elapsedS) > delay.Seconds()+1
	})
}

// count puts down what an entry says it has done.
func (e *entry) count(c workload.Counts) {
	for i := range c {
		c[i] = e.dirs[i].counters()
	}
	if e.onlyMixed() {
		c[0].Add(e.mixed.counters())
	}
}

func (e *entry) issued() uint64 { return e.dirs[0].ios + e.dirs[1].ios + e.dirs[2].ios }

// ramping reports whether an entry is in its ramp time: operations without a latency. Where fio measures none at all,
// its clock tells, which begins again at the ramp's end: what it has in so long a time may be of either.
func (d *document) ramping(e *entry) bool {
	if !d.ramp || e.issued() == 0 || e.measured() {
		return false
	}
	job := d.jobOf(e)
	if !job.Enabled("gtod_reduce") && !(job.Enabled("disable_lat") && job.Enabled("disable_clat")) {
		return true
	}
	const late = 1500 * time.Millisecond
	ramp, err := parseTime(orDefault(job.Value("ramp_time"), "0"))
	return err != nil || (!e.hasETA || e.eta != 0) && milliseconds(e.longestMS()) <= ramp+late
}

// measured reports whether any latency was taken, as it is not during a ramp time.
func (e *entry) measured() bool {
	return slices.ContainsFunc(e.dirs[:], func(r direction) bool { return r.lat.measured() || r.clat.measured() })
}

// unknownETA is fio's word for "cannot tell": in the first second, and in the only report of a job shorter than that.
const unknownETA = math.MaxInt32

func milliseconds(ms uint64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/millisecond)) * millisecond
}

// onlyMixed reports whether reads, writes and trims stand together in "mixed" and nowhere else.
func (e *entry) onlyMixed() bool {
	return e.mixed.ios > 0 && e.issued() == 0
}

// allClients is the name of the sum that fio's client puts after the hosts. It holds no bins, and covers only those
// hosts that lasted, so the hosts are added up here instead.
const allClients = "All clients"

// clientEntries picks the entries of a client/server file that make its final state. With a status interval the
// file holds every host several times, oldest first, and the sum only once, after the first time; without
// group_reporting it holds one entry per process.
func (d *document) clientEntries() []entry {
	type key struct{ host, job string }
	var hosts []entry
	var sum, total uint64
	known, once := false, false // once: the sum is of what stands before it, each once
	of, first := map[key][]entry{}, map[key]int{}
	for _, e := range d.clients {
		if e.name == allClients {
			once = once || !known && e.issued() == sum
			known, total = true, e.issued()
			continue
		}
		k := key{e.host, e.name}
		if of[k] = append(of[k], e); !known {
			first[k]++
		}
		hosts = append(hosts, e)
		sum += e.issued()
	}
	switch {
	case len(hosts) == 0: // somebody kept the sum alone
		return d.clients
	case known && sum == total:
		return hosts
	}
	left := make(map[key]int)
	var out []entry
	for i := len(hosts) - 1; i >= 0; i-- {
		k := key{hosts[i].host, hosts[i].name}
		if _, seen := left[k]; !seen {
			left[k] = atOnce(of[k])
			if once && first[k] > 0 {
				left[k] = first[k]
			}
		}
		if left[k] > 0 {
			left[k]--
			out = append(out, hosts[i])
		}
	}
	slices.Reverse(out)
	return out
}

// atOnce is how many of the entries of a job on a host are of one time: one for each process, or one of all of them, of
// which each says more than the one before.
func atOnce(all []entry) int {
	n := int(min(max(all[0].numjobs, 1), maxEntries))
	if n == 1 || len(all)%n != 0 {
		return 1
	}
	grows := true
	for i := len(all) - n + 1; i < len(all); i++ {
		grows = grows && all[i].issued() > all[i-1].issued() && all[i].longestMS() > all[i-1].longestMS()
	}
	if grows {
		return 1
	}
	return n
}

// readsBack reports whether a job reads back what it wrote when all is written, and reads before that, too.
func (d *document) readsBack(e *entry) (reads, is bool) {
	job := d.jobOf(e)
	r, w, t := directions(job.Value("rw"))
	return r, w && !t && verifies(job) && number(job, "verify_backlog", 0) == 0
}

// verifies reports whether a job checks what it reads, and reads what it wrote.
func verifies(job fiofile.Job) bool {
	return !slices.Contains([]string{"", "0", "null"}, job.Value("verify")) && job.Value("do_verify") != "0"
}

// readBackMS is by how much the time of a job's reads is above that of its writes when it has read back: those of a mix
// are taken one right after the other.
const readBackMS = 2

// hasReadBack reports whether the reads of a job that ended are of what it wrote, or hold those.
func (d *document) hasReadBack(e *entry) bool {
	mixed, is := d.readsBack(e)
	return is && e.dirs[0].ios > 0 && (!mixed || e.dirs[0].runtimeMS > e.dirs[1].runtimeMS+readBackMS)
}

// leaveReadBack leaves what jobs read back to verify it out of a report. Of a mix nothing tells these reads from the
// others: it stays as it was when it last wrote, and without such a report its writes are what is known.
func (o *order) leaveReadBack(d, next *document) {
	o.back = false
	for i := range d.jobs {
		e := &d.jobs[i]
		mixed, is := d.readsBack(e)
		if !is || e.dirs[0].ios == 0 {
			continue
		}
		if mixed {
			kept, ok := o.clean[i]
			wrote := e.over() || !ok
			if next != nil {
				wrote = i < len(next.jobs) && next.jobs[i].dirs[1].ios > e.dirs[1].ios
			}
			if wrote && e.dirs[0].runtimeMS <= e.dirs[1].runtimeMS+readBackMS {
				if o.clean == nil {
					o.clean = map[int][operations]direction{}
				}
				o.clean[i] = e.dirs
				continue
			}
			if ok {
				e.dirs, o.back = kept, true
				continue
			}
		}
		o.back = true
		e.leave(2)
	}
}

// countOf declares the number of operations that figures of the tool's own are of.
func countOf(name string) result.Measure {
	return result.Measure{Name: name, Unit: "count", Kind: result.Single, Aside: true}
}

// syncMeasures are those of fsync and fdatasync of a run of our own, all its jobs together, in microseconds.
var syncMeasures = []result.Measure{
	countOf("sync_count"),
	{Name: "sync_mean", Unit: "us", Better: result.Lower, Kind: result.Single},
	{Name: "sync_p50", Unit: "us", Better: result.Lower, Kind: result.Single},
	{Name: "sync_p99", Unit: "us", Better: result.Lower, Kind: result.Single},
	{Name: "sync_p99.9", Unit: "us", Better: result.Lower, Kind: result.Single},
	{Name: "sync_max", Unit: "us", Better: result.Lower, Kind: result.Single},
}

// syncValues are the values of syncMeasures in a report.
func (d *document) syncValues() []float64 {
	var all hist.Histogram
	var sum, n float64
	var most uint64
	for i := range d.jobs {
		t := &d.jobs[i].sync
		if !t.measured() || t.bins == nil {
			continue
		}
		all.Merge(t.bins)
		sum, n, most = sum+t.mean*float64(t.bins.Count()), n+float64(t.bins.Count()), max(most, t.max)
	}
	out := make([]float64, len(syncMeasures))
	for i, q := range []float64{0, 0, 0.5, 0.99, 0.999, 0} {
		v, ok := all.Quantile(q)
		if out[i] = min(float64(v), float64(most)) / 1e3; !ok || n == 0 {
			out[i] = math.NaN()
		}
	}
	if n > 0 {
		out[0], out[1], out[len(out)-1] = n, sum/n/1e3, float64(most)/1e3
	}
	return out
}

// submitting is how many operations of an entry were being handed over on average, where its times are of completion
// alone: what is asked for without direct=1 may wait there for the disk.
func (e *entry) submitting() (n float64) {
	for _, r := range []*direction{&e.dirs[0], &e.dirs[1], &e.dirs[2], &e.mixed} {
		if t := r.timing(); t == &r.clat && r.lat.measured() && r.runtimeMS > 0 {
			n += max(r.lat.mean-t.mean, 0) / millisecond * float64(r.ios) / float64(r.runtimeMS)
		}
	}
	return n
}
