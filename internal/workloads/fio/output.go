package fio

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
	"plimsoll/unit"
)

// Part holds what of fio's JSON stands for itself: the jobs of one output that ran at the same time. Stages that waited
// for each other (stonewall), groups and outputs appended to one file are parts of their own.
type Part struct {
	Jobs     []string // the names of its entries, in their order
	Streams  []result.Stream
	Measures []result.Measure
	// Left is of how many jobs' operations the times that fio states found no room among Measures.
	Left   int
	Format json.RawMessage // of a Declared that has Parse read this part alone
	Asked  []Asked
	// Mixed: reads, writes and trims stand together (unified_rw_reporting) and are one operation, the only one.
	Mixed bool
	// Beside are the parts that ran at the same time and are not added to it, for they did other things.
	Beside []string
	// Only is the one operation of its jobs that it holds, "" for all: they did another for another length of time, as
	// where what was written is read back (verify), and fio's rates are over those.
	Only string
	// Merged: an entry is the sum of several sections (group_reporting), of which fio tells the options of one.
	Merged bool
	// Uneven says that not all that is added up worked as long, "" where they did or nothing tells.
	Uneven string
	// Steady says what fio says of its own steady state, "" where it was asked for none.
	Steady string
	// Tried says that a job looked for its depth (latency_target), "" where none did.
	Tried string
	// Uncounted: a job ended with an error that is in no count of fio's, so that one is counted for it.
	Uncounted bool
	// Staggered is how much later than the first the last of its jobs began, where that is a good part of their time.
	Staggered time.Duration
	// Disks: fio counted the disks (disk_util). Unseen is what these counts lack of what its jobs report.
	Disks  bool
	Unseen string
}

// Asked holds what the jobs of a part were asked for: an option, and its values for each job where they differ.
type Asked struct {
	Name, Value string
	Noted       bool // where the load went: what is compared may differ in it
}

// BlockSize says the mean sizes of what is read and written, as far as either is.
func BlockSize(reads, writes bool, read, written float64) string {
	switch {
	case !reads:
		return fmt.Sprintf("%.0f bytes", written)
	case writes && read != written:
		return fmt.Sprintf("%.0f bytes read, %.0f written", read, written)
	}
	return fmt.Sprintf("%.0f bytes", read)
}

// asked adds what a job was asked for.
func (p *Part) asked(job fiofile.Job) {
	p.askedOf(job, func(...string) bool { return true })
}

// askedOf adds that of a job which is told by certain options.
func (p *Part) askedOf(job fiofile.Job, told func(keys ...string) bool) {
	blocks := meanBlocks(job)
	reads, writes, trims := directions(job.Value("rw"))
	size := "not said"
	if s, err := fiofile.ParseSize(job.Value("size")); err == nil && s.Bytes > 0 {
		size = fmt.Sprintf("%d bytes", s.Bytes)
	} else if err == nil && s.Percent > 0 {
		size = fmt.Sprintf("%g %%", s.Percent)
	}
	for _, key := range within {
		if v := job.Value(key); !slices.Contains([]string{"", "0", "random"}, v) {
			size += ", " + key + "=" + v
		}
	}
	block := BlockSize(reads, writes, blocks[0], blocks[1])
	mix := ""
	if share, _ := shares(job); reads && writes {
		mix = fmt.Sprintf("%.4g %% reads", 100*share)
	}
	limit := "none"
	if r := rate(job, reads, writes, trims); r > 0 {
		limit = strconv.FormatFloat(math.Round(r*1e3)/1e3, 'f', -1, 64) + "/s for each process"
	}
	flush := "none"
	for _, key := range []string{"fsync", "fdatasync", "sync"} {
		if v := job.Value(key); v != "" && v != "0" && v != "none" {
			flush = key + "=" + v
		}
	}
	span := "not said"
	if d := longest(job.Value("runtime")); d > 0 {
		span = d.String()
	}
	think := "none"
	if d := job.Value("thinktime"); d != "" && d != "0" {
		think = d
	}
	for _, a := range []Asked{
		{Name: "pattern", Value: orDefault(job.Value("rw"), "read")}, {Name: "mix", Value: mix},
		{Name: "block size", Value: block}, {Name: "ioengine", Value: orDefault(job.Value("ioengine"), "not said")},
		{Name: "iodepth", Value: strconv.Itoa(number(job, "iodepth", 1))},
		{Name: "numjobs", Value: strconv.Itoa(number(job, "numjobs", 1))}, {Name: "rate", Value: limit},
		{Name: "size", Value: size}, {Name: "runtime", Value: span}, {Name: "thinktime", Value: think},
		{Name: "direct", Value: strconv.FormatBool(job.Enabled("direct") || job.Value("buffered") == "0")},
		{Name: "flushes", Value: flush},
		{Name: "filename", Value: orDefault(job.Value("filename"), job.Value("directory")), Noted: true},
	} {
		if keys := toldBy[a.Name]; !told(append(keys, a.Name)...) {
			continue
		}
		i := slices.IndexFunc(p.Asked, func(o Asked) bool { return o.Name == a.Name })
		switch {
		case i < 0:
			p.Asked = append(p.Asked, a)
		case !slices.Contains(strings.Split(p.Asked[i].Value, "; "), a.Value):
			p.Asked[i].Value += "; " + a.Value
		}
	}
}

// within are options that say where in its size a job reads and writes, and what.
var within = []string{"random_distribution", "norandommap", "zero_buffers", "buffer_compress_percentage",
	"dedupe_percentage"}

// toldBy are the options that tell what was asked, where they are not of its name.
var toldBy = map[string][]string{
	"pattern": {"rw"}, "mix": {"rwmixread", "rwmixwrite"}, "block size": {"bs", "bssplit", "bsrange"},
	"rate": {"rate_iops"}, "direct": {"buffered"}, "flushes": {"fsync", "fdatasync", "sync"}, "filename": {"directory"},
	"size": within,
}

// Name returns what people call the part.
func (p Part) Name() string {
	names := slices.Clone(p.Jobs)
	slices.Sort(names)
	return strings.TrimSpace(strings.Join(slices.Compact(names), ", ") + " " + p.Only)
}

// choice is the Format of a Declared of a part.
type choice struct {
	Output  int      `json:"output"`
	Entries []int    `json:"entries"`
	Later   [][]int  `json:"later,omitempty"` // the stages of its group that came after it
	Figures []figure `json:"figures,omitempty"`
	Mixed   bool     `json:"mixed,omitempty"`
	Only    int      `json:"only,omitempty"` // 1 and more: reads, writes or trims alone
}

// one leaves of reports the first operation, which is all there is.
type one struct{ workload.Sink }

// Report implements workload.Sink.
func (o one) Report(r workload.Report) {
	r.Ops = r.Ops[:1]
	r.Sections = slices.Clone(r.Sections)
	for i, s := range r.Sections {
		r.Sections[i] = s[:1]
	}
	o.Sink.Report(r)
}

// figure is where a figure of fio's own making stands.
type figure struct {
	Entry      int    `json:"entry"` // among those of the choice
	Op         int    `json:"op"`    // of reads, writes, trims; then syncs
	Percentile string `json:"percentile,omitempty"`
	Mean       bool   `json:"mean,omitempty"`
	Count      bool   `json:"count,omitempty"` // else the largest where there is no percentile
}

const (
	syncs       = operations
	mostFigures = 96
)

func choiceOf(d workload.Declared) *choice {
	var c choice
	if json.Unmarshal(d.Format, &c) != nil || len(c.Entries) == 0 {
		return nil
	}
	return &c
}

// Parts looks through fio's JSON and says what stands for itself in it, in the order of time, and how many reports in
// it are cut short.
func Parts(r io.Reader) ([]Part, int, error) {
	var last []*document // of each output
	p := newParser(quiet{}, workload.Declared{})
	p.order.apart = true // all of a report is looked at
	p.seen = func(d *document, output int) {
		if output == len(last) {
			last = append(last, d)
		}
		last[output] = d
	}
	if _, err := workload.Replay(r, p, "fio"); err != nil {
		return nil, 0, err
	}
	var out []Part
	for i, d := range last {
		stages := d.stages()
		for n, stage := range stages {
			var later [][]int
			for _, s := range stages[n+1:] {
				if d.jobs[s[0]].group == d.jobs[stage[0]].group {
					later = append(later, s)
				}
			}
			alike := d.alike(stage)
			first := len(out)
			for _, entries := range alike {
				for _, only := range d.lengths(entries) {
					part := d.part(choice{Output: i, Entries: entries, Later: later, Only: only})
					part.Staggered = d.staggered(entries)
					part.Disks, part.Unseen = len(d.disk.names) > 0, d.unseen()
					out = append(out, part)
				}
			}
			for k := range out[first:] {
				for j := range out[first:] {
					if j != k && out[first].Only == "" {
						out[first+k].Beside = append(out[first+k].Beside, out[first+j].Name())
					}
				}
			}
		}
	}
	return out, p.cut, nil
}

type quiet struct{}

func (quiet) Report(workload.Report) {}
func (quiet) Warn(string)            {}

func format(c choice) json.RawMessage {
	b, _ := json.Marshal(c) // numbers and words
	return b
}

// stages are the entries of a report by what ran together, in the order in which they began.
func (d *document) stages() (out [][]int) {
	var order []uint64
	groups := map[uint64][]int{}
	for i := range d.jobs {
		g := d.jobs[i].group
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], i)
	}
	for _, g := range order {
		all := groups[g]
		start := d.starts(all)
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(start[a], start[b]) })
		var end uint64
		for n, i := range all {
			const late = 250 // what was to begin when the one before ended may begin a little sooner
			if n == 0 || start[i]+min(late, d.jobs[i].longestMS()/10) >= end {
				out = append(out, nil)
				end = start[i] + max(d.jobs[i].longestMS(), 1)
			} else {
				end = max(end, start[i]+d.jobs[i].longestMS())
			}
			out[len(out)-1] = append(out[len(out)-1], i)
		}
	}
	return out
}

// starts are when the entries of a group began, in milliseconds: by what fio says, else by what they were to wait for.
func (d *document) starts(group []int) map[int]uint64 {
	out := map[int]uint64{}
	said := !slices.ContainsFunc(group, func(i int) bool { return d.jobs[i].startMS == 0 })
	for _, i := range group {
		job := d.jobOf(&d.jobs[i])
		if said {
			out[i] = d.jobs[i].startMS
			continue
		}
		if whom := job.Value("wait_for"); whom != "" {
			for j, at := range out {
				if d.jobs[j].name == whom {
					out[i] = max(out[i], at+max(d.jobs[j].longestMS(), 1))
				}
			}
		}
		out[i] += uint64(longest(job.Value("startdelay")).Milliseconds())
	}
	return out
}

// staggered is how much later the last of entries began than the first, 0 where that is under a hundredth of their
// time.
func (d *document) staggered(entries []int) time.Duration {
	start := d.starts(entries)
	first, last, longest := start[entries[0]], uint64(0), uint64(0)
	for _, i := range entries {
		first, last, longest = min(first, start[i]), max(last, start[i]), max(longest, d.jobs[i].longestMS())
	}
	if (last-first)*100 < longest {
		return 0
	}
	return time.Duration(min(last-first, uint64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// alike are the entries of a stage by what they did: what reads blocks of 4 KiB is not added to what reads 1 MiB.
func (d *document) alike(stage []int) (out [][]int) {
	var did []string
	for _, i := range stage {
		var p Part
		if e := &d.jobs[i]; len(e.options)+len(d.global) > 0 {
			p.asked(d.jobOf(e))
		}
		what := ""
		for _, a := range p.Asked {
			if a.Name == "pattern" || a.Name == "block size" {
				what += a.Value + "\n"
			}
		}
		at := slices.Index(did, what)
		if at < 0 {
			at, did, out = len(did), append(did, what), append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	return out
}

// lengths are the operations of entries that are to stand by themselves, as in a choice: 0 for all together, or those
// that were done, each, where they lasted unlike times.
func (d *document) lengths(entries []int) (out []int) {
	unlike := false
	for op := range operations {
		var longest uint64
		for _, i := range entries {
			longest = max(longest, d.jobs[i].dirs[op].runtimeMS)
		}
		for _, i := range entries {
			e := &d.jobs[i]
			unlike = unlike || d.hasReadBack(e) ||
				e.dirs[op].runtimeMS > 0 && Unlike(e.dirs[op].runtimeMS, e.longestMS()) && !e.onlyMixed()
		}
		if longest > 0 {
			out = append(out, op+1)
		}
	}
	if !unlike {
		return []int{0}
	}
	return out
}

// Alone are the names of operations that stand by themselves, in fio's order.
var Alone = [operations]string{"reads", "writes", "trims"}

// Unlike reports whether two operations of a job lasted so unlike times, in milliseconds, that these were two stages.
func Unlike(ms, longest uint64) bool { return longest > ms+5 && float64(ms) < 0.95*float64(longest) }

// flat is a report of client/server as one of one host.
func (d *document) flat() *document {
	if len(d.clients) == 0 {
		return d
	}
	one := *d
	one.jobs, one.clients = d.clientEntries(), nil
	for i := range one.jobs { // the clocks of hosts differ
		if one.jobs[i].host != one.jobs[0].host {
			for j := range one.jobs {
				one.jobs[j].startMS = 0
			}
			break
		}
	}
	return &one
}

// idle reports whether there is nothing in a stage yet, or never was.
func (d *document) idle() bool {
	return !slices.ContainsFunc(d.jobs, func(e entry) bool { return e.longestMS() > 0 })
}

// failure is the error of its first job that ended with one, "" when none did.
func (d *document) failure() string {
	for i := range d.jobs {
		if d.jobs[i].code != 0 {
			return jobError(&d.jobs[i])
		}
	}
	return ""
}

// longestMS is how long an entry worked.
func (e *entry) longestMS() uint64 {
	return max(e.dirs[0].runtimeMS, e.dirs[1].runtimeMS, e.dirs[2].runtimeMS, e.mixed.runtimeMS)
}

// stage leaves of a report the entries of a choice, dated by when these ended. They may not have begun.
func (d *document) stage(c *choice) *document {
	one := *d
	one.jobs = nil
	var end uint64
	for _, i := range c.Entries {
		if i < 0 || i >= len(d.jobs) {
			continue
		}
		e := d.jobs[i]
		e.leave(c.Only)
		if e.code != 0 { // what ended it is in no count of errors
			e.errors = max(e.errors, 1)
		}
		one.jobs = append(one.jobs, e)
		if e.startMS > 0 {
			end = max(end, e.startMS+e.longestMS())
		}
	}
	if len(one.jobs) == 0 {
		return &one
	}
	if end > 0 {
		one.stampMS = min(end, max(one.stampMS, 1))
		return &one
	}
	after := map[uint64]uint64{} // of later groups, how long each worked
	mine := d.jobs[c.Entries[0]].group
	for i := range d.jobs {
		if e := &d.jobs[i]; e.group > mine && !(e.options.has("new_group") && !e.options.has("stonewall")) {
			after[e.group] = max(after[e.group], e.longestMS())
		}
	}
	for _, ms := range after {
		one.stampMS -= min(ms, one.stampMS)
	}
	for _, stage := range c.Later {
		var ms uint64
		for _, i := range stage {
			ms = max(ms, d.jobs[min(i, len(d.jobs)-1)].longestMS())
		}
		one.stampMS -= min(ms, one.stampMS)
	}
	return &one
}

// leave takes from an entry all but one operation, as in a choice; flushes are of writes.
func (e *entry) leave(only int) {
	if only == 0 {
		return
	}
	for op := range e.dirs {
		if op != only-1 {
			e.dirs[op] = direction{}
		}
	}
	if only != 2 {
		e.sync = timing{}
	}
}

func (d *document) part(c choice) Part {
	stage := c.Entries
	c.Mixed = !slices.ContainsFunc(stage, func(i int) bool { return !d.jobs[i].onlyMixed() })
	p := Part{Mixed: c.Mixed}
	if c.Only > 0 {
		p.Only = Alone[c.Only-1]
	}
	named := map[string]int{}
	longest := uint64(0)
	for _, i := range stage {
		longest = max(longest, d.jobs[i].longestMS())
		p.Jobs = append(p.Jobs, d.jobs[i].name)
		named[d.jobs[i].host+d.jobs[i].name]++
	}
	for n, i := range stage {
		one := d.jobs[i]
		one.leave(c.Only)
		e := &one
		times := named[e.host+e.name]
		merged, uneven := d.merged(&d.jobs[i], times)
		p.Uneven, p.Steady = cmp.Or(p.Uneven, uneven), cmp.Or(p.Steady, e.steady)
		if triesDepths(d.jobOf(e)) {
			p.Tried = depthsTried
		}
		stream := d.streamOf(e, times, merged)
		stream.Brief = stream.Brief && (pauses(d.jobOf(e)) || uneven != "" || Unlike(e.longestMS(), longest) ||
			stream.Processes > 1 && e.runtimeMS == 0) // what it was to end by matters no more: it says how long it ran
		stream.Submitting = e.submitting()
		p.Streams = append(p.Streams, stream)
		switch {
		case merged: // what [global] says is of all that do not say otherwise
			p.Merged = true
			p.askedOf(d.jobOf(&entry{}), func(keys ...string) bool { return slices.ContainsFunc(keys, d.global.has) })
		case len(e.options)+len(d.global) > 0:
			p.asked(d.jobOf(e))
		}
		p.Uncounted = p.Uncounted || e.code != 0 && e.errors == 0
		prefix := ""
		if len(stage) > 1 {
			prefix = strings.TrimLeft(fmt.Sprintf("%s %s %d ", e.host, e.name, n+1), " ")
		}
		add := func(name string, f figure) {
			c.Figures = append(c.Figures, f)
			m := result.Measure{Name: prefix + name, Unit: "us", Better: result.Lower, Kind: result.Single}
			if f.Count {
				m = countOf(m.Name)
			}
			p.Measures = append(p.Measures, m)
		}
		for op := range syncs + 1 {
			t := e.timingOf(op)
			if !t.measured() || t.bins != nil && op != syncs {
				continue
			}
			if len(c.Figures)+len(t.percentiles)+3 > mostFigures && len(c.Figures) > 0 { // never a part of them
				p.Left++
				continue
			}
			word := []string{"read", "write", "trim", "sync"}[op]
			if op == 0 && e.onlyMixed() {
				word = "io"
			}
			if t.hasCount && (op == syncs || prefix != "") {
				add(word+"_count", figure{Entry: n, Op: op, Count: true})
			}
			if op == syncs {
				add(word+"_mean", figure{Entry: n, Op: op, Mean: true})
			}
			for _, q := range t.percentiles {
				add(word+"_p"+shortPercentile(q.name), figure{Entry: n, Op: op, Percentile: q.name})
			}
			add(word+"_max", figure{Entry: n, Op: op})
		}
	}
	p.Format = format(c)
	p.Uneven = cmp.Or(p.Uneven, d.unlikeLengths(stage))
	return p
}

// unlikeLengths says of entries that are added up that some ended well before the others, "" where none did.
func (d *document) unlikeLengths(entries []int) string {
	var least, most uint64
	for n, i := range entries {
		if ms := d.jobs[i].longestMS(); n == 0 {
			least, most = ms, ms
		} else {
			least, most = min(least, ms), max(most, ms)
		}
	}
	if !Unlike(least, most) {
		return ""
	}
	return fmt.Sprintf("its jobs did not work as long, the shortest %s, the longest %s: its rate is of all their operations "+
		"over the longest time, below what was had while all worked", unit.Duration(milliseconds(least)),
		unit.Duration(milliseconds(most)))
}

// shortPercentile is 99.900000 as 99.9.
func shortPercentile(name string) string {
	if v, err := strconv.ParseFloat(name, 64); err == nil {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return name
}

// timingOf is the block that stands for reads, writes, trims or syncs.
func (e *entry) timingOf(op int) *timing {
	switch {
	case op == syncs:
		return &e.sync
	case op == 0 && e.onlyMixed():
		return e.mixed.timing()
	}
	return e.dirs[op].timing()
}

// values are the figures of a choice in a report, in microseconds.
func (c *choice) values(d *document) []float64 {
	var out []float64
	for _, f := range c.Figures {
		v := math.NaN()
		if f.Entry < len(d.jobs) {
			t := d.jobs[f.Entry].timingOf(f.Op)
			switch {
			case f.Mean:
				v = t.mean / 1e3
			case f.Count:
				v = float64(t.count)
			case f.Percentile == "":
				v = float64(t.max) / 1e3
			default:
				for _, q := range t.percentiles {
					if q.name == f.Percentile {
						v = q.ns / 1e3
					}
				}
			}
		}
		out = append(out, v)
	}
	return out
}

// settings are the options that fio prints of a job.
type settings []fiofile.Option

func (o settings) has(key string) bool {
	return slices.ContainsFunc(o, func(one fiofile.Option) bool { return one.Key == key })
}

// outputs tells which of several outputs appended to one another a report is of.
type outputs struct {
	n    int
	last *document
}

func (o *outputs) of(d *document) int {
	if o.last != nil && o.last.other(d) {
		o.n++
	}
	o.last = d
	return o.n
}

// over reports whether an entry of a report has nothing more to do.
func (e *entry) over() bool {
	return e.hasETA && (e.eta == 0 || e.eta >= unknownETA) && e.longestMS() > 0
}

// other reports whether a later report is of another call of fio: of other jobs, or of the same begun again.
func (d *document) other(later *document) bool {
	if len(d.clients) > 0 || len(later.clients) > 0 {
		return true
	}
	same := func(a, b settings) bool {
		return slices.EqualFunc(a, b, func(a, b fiofile.Option) bool { return a.Key == b.Key && a.Value == b.Value })
	}
	if len(d.jobs) != len(later.jobs) || d.version != later.version || !same(d.global, later.global) {
		return true
	}
	ended, over, back, more, told := true, true, false, false, false
	var before, now uint64
	for i := range d.jobs {
		a, b := &d.jobs[i], &later.jobs[i]
		if a.name != b.name || a.group != b.group || a.startMS > 0 && b.startMS > 0 && b.startMS != a.startMS ||
			!same(a.options, b.options) {
			return true
		}
		back = back || b.issued()+b.mixed.ios < a.issued()+a.mixed.ios
		more = more || b.issued()+b.mixed.ios > a.issued()+a.mixed.ios
		for op := range syncs {
			x, y := a.timingOf(op), b.timingOf(op)
			told = told || x.count > 0 && x.count == y.count && (x.mean != y.mean || x.max != y.max)
		}
		before, now = max(before, a.elapsedS), max(now, b.elapsedS)
		ended, over = ended && a.over(), over && b.over()
	}
	if later.stampMS < d.stampMS { // the clock was set back, a report came late, or an earlier call stands behind
		return ended && over
	}
	if back && !d.ramp || ended && !more && told { // what is counted on neither falls, nor changes by itself
		return true
	}
	const slack = 1100 * time.Millisecond // whole seconds are rounded up
	gone := milliseconds(later.stampMS - d.stampMS)
	return now < before || ended && gone > time.Duration(now-before)*time.Second+slack
}
