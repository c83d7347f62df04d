package trace

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/storage/trace/reuse"
)

// Options of an analysis.
type Options struct {
	Level      Action // Issue or Queue: which requests are looked at; 0 for what each device has, Issue before Queue
	Device     string // only the device of this name
	BlockBytes uint64 // of the working set; 0 for 4096
	Sampled    int    // blocks that the working set is told from at most; 0 for reuse.Bound
}

const (
	mostDevices   = 128
	mostProcesses = 4096
	firstLook     = 1 << 14 // events that are looked at before it is decided on what level a device is analysed
	mostDepth     = 1024
	mostSectors   = 4096 // sizes up to this are counted each for itself
	sizeClasses   = 9
	mostBlocks    = 1 << 14 // of one request, in the working set
	// longestGap is the longest time without an event that is believed, in nanoseconds: 30 days.
	longestGap = int64(30 * 24 * time.Hour)
)

// Analyzer takes the events of a trace, each once and in order. What it keeps does not grow with their number.
type Analyzer struct {
	options  Options
	names    *Names
	problems *Problems
	held     []Event // the first ones, until the level of each device is known
	looked   bool

	events, left     uint64 // left: of other devices
	origin, last     int64  // nanoseconds; last since the origin
	begun            bool
	devices          []*device
	latest           *device
	byID             map[uint32]*device
	actions          [Actions]uint64
	counts           [Ops]counts
	service, answer  [Ops][sizeClasses]hist.Histogram // nanoseconds
	issued, queued   *flight
	ends             ends
	unissued, unseen uint64 // completed without an issue; without a queueing
	dropped          uint64
	depth            int
	depthSince       int64
	depths           [mostDepth + 1]int64 // nanoseconds
	paired           bool                 // there was a completion that the depth is of
	moments          *moments
	windows          [3]windows
	streams          *streams
	second           int64
	active           struct{ sum, windows, most uint64 }
	blocks           *reuse.Estimator
	processes        map[uint32]*Process
	others           Process
	gaps             hist.Histogram // between requests, nanoseconds
	lastBegin        int64
}

type device struct {
	id     uint32
	index  uint64
	level  Action
	events uint64
	seen   [Actions]uint64
	counts [Ops]struct{ requests, bytes uint64 }
	where  regions
}

// counts are of the requests of one operation at the level that is analysed.
type counts struct {
	requests, bytes       uint64
	kinds                 [Kinds]struct{ requests, bytes uint64 }
	sizes, ordered        sizes
	aligned               [22]uint64 // by the power of two that the beginning is a multiple of, from 512 bytes on
	whole4k               uint64     // beginning and size are multiples of 4096
	sync, meta, fua       uint64
	ahead, barrier, other uint64
	failed                uint64
}

// sizes counts requests by size.
type sizes struct {
	exact [mostSectors + 1]uint64
	other [33]uint64 // larger, or no multiple of 512: by bits
}

func (s *sizes) add(bytes uint32, n uint64) {
	if bytes%512 == 0 && bytes <= mostSectors*512 {
		s.exact[bytes/512] += n
		return
	}
	s.other[bits.Len32(bytes)] += n
}

// NewAnalyzer begins an analysis. names and problems are those of the reader.
func NewAnalyzer(o Options, names *Names, problems *Problems) *Analyzer {
	if o.BlockBytes == 0 {
		o.BlockBytes = 4096
	}
	a := &Analyzer{options: o, names: names, problems: problems, byID: map[uint32]*device{}, issued: newFlight(),
		queued: newFlight(), moments: newMoments(), streams: newStreams(), blocks: reuse.New(o.Sampled),
		processes: map[uint32]*Process{}, lastBegin: -1, second: -1}
	for i, width := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		a.windows[i].width = int64(width)
	}
	return a
}

// Analyze takes all events of a source. An error of the source that is not its end is a Problem and ends the analysis
// there; what came before stands. stop is asked now and then, and ends it with its error.
func Analyze(s Source, o Options, names *Names, problems *Problems, stop func() error) (*Result, error) {
	a := NewAnalyzer(o, names, problems)
	events := make([]Event, 4096)
	for {
		n, err := s.Next(events)
		a.Add(events[:n])
		switch {
		case errors.Is(err, io.EOF):
			return a.Result(), nil
		case err != nil:
			problems.Add("the trace ends early", 1, err.Error)
			return a.Result(), nil
		}
		if err := stop(); err != nil {
			problems.Add("stopped before the end of the trace", 1, err.Error)
			return a.Result(), err
		}
	}
}

// Add takes the next events.
func (a *Analyzer) Add(events []Event) {
	if a.looked {
		for i := range events {
			a.count(&events[i])
		}
		return
	}
	a.held = append(a.held, events...)
	if len(a.held) >= firstLook {
		a.look()
	}
}

// look decides on what level each device is analysed: what was sent to it, or what it was asked for where it has no
// queue of its own, as device-mapper's have none.
func (a *Analyzer) look() {
	a.looked = true
	for i := range a.held {
		a.of(a.held[i].Device).seen[a.held[i].Action]++
	}
	for _, d := range a.devices {
		if d.level == 0 && d.seen[Issue] == 0 {
			d.level = Queue
		}
	}
	for _, d := range a.devices {
		clear(d.seen[:])
	}
	for i := range a.held {
		a.count(&a.held[i])
	}
	a.held = nil
}

// of finds a device. Those beyond the bound share the last one's place.
func (a *Analyzer) of(id uint32) *device {
	if a.latest != nil && a.latest.id == id {
		return a.latest
	}
	d, ok := a.byID[id]
	if !ok {
		if len(a.devices) >= mostDevices {
			a.problems.Add(fmt.Sprintf("devices beyond %d, counted with the last of those", mostDevices), 1,
				func() string { return a.names.Device(id) })
			return a.devices[mostDevices-1]
		}
		d = &device{id: id, index: uint64(len(a.devices)), level: a.options.Level}
		a.devices = append(a.devices, d)
		a.byID[id] = d
	}
	a.latest = d
	return d
}

func (a *Analyzer) count(e *Event) {
	a.events++
	d := a.of(e.Device)
	d.events++
	d.seen[e.Action]++
	if a.options.Device != "" && a.names.Device(e.Device) != a.options.Device {
		a.left++
		return
	}
	if !a.begun {
		a.begun, a.origin = true, e.Time
	}
	t := e.Time - a.origin
	if t < a.last || t-a.last > longestGap {
		if t > a.last {
			a.problems.Add("an event is more than 30 days later than the one before it, and left out", 1,
				func() string { return fmt.Sprintf("at %v", time.Duration(t)) })
			return
		}
		t = a.last
	}
	a.actions[e.Action]++
	if e.Flags&Packet != 0 {
		a.counts[None].other++
		return
	}
	if len(a.ends) > 0 {
		a.expire(t)
	}
	a.last = t
	if e.Op == Write && e.Bytes == 0 {
		e.Op = Flush // a flush is queued as a write without data
	}
	at := place{offset: e.Offset, device: e.Device, op: e.Op}
	if e.Op == Flush {
		at.offset, e.Flags = 0, e.Flags&^Barrier // what its events have for a place differs
	}
	switch e.Action {
	case Queue:
		a.begin(a.queued, at, t, e)
		a.process(e)
		if d.level == Queue {
			a.request(d, t, e)
			a.deeper(t, 1)
		}
	case Split:
		a.queued.split(at, e.Aux)
	case Issue:
		a.begin(a.issued, at, t, e)
		if d.seen[Queue] == 0 && d.level != Queue {
			a.process(e)
		}
		if d.level != Queue {
			a.request(d, t, e)
			a.deeper(t, 1)
		}
	case Requeue:
		if a.issued.cancel(at, e.Bytes) && d.level != Queue {
			a.deeper(t, -1)
		}
	case Complete:
		a.complete(d, at, t, e)
	case Whole:
		a.process(e)
		a.request(d, t, e)
		a.whole(t, e)
	}
}

func (a *Analyzer) begin(f *flight, at place, t int64, e *Event) {
	for !f.begin(at, t, e.Bytes) {
		a.dropped += f.drop()
	}
}

// deeper changes the queue depth.
func (a *Analyzer) deeper(t int64, by int) {
	a.depths[min(a.depth, mostDepth)] += t - a.depthSince
	a.moments.deep(a.depthSince, t, a.depth)
	a.depth, a.depthSince = max(a.depth+by, 0), t
}

func (a *Analyzer) complete(d *device, at place, t int64, e *Event) {
	if d.level == 0 && d.seen[Issue] == 0 && d.seen[Queue] > 0 && d.seen[Complete] >= 8 {
		d.level = Queue // it came late, and was not in the first look
	}
	class := sizeClass(e.Bytes)
	found := a.issued.end(at, e.Bytes, func(w whole) {
		a.service[e.Op][class].Add(uint64(t-w.time), 1)
		if d.level == Queue {
			return
		}
		a.paired = true
		a.completed(t, uint64(t-w.time))
		a.deeper(t, -1)
	})
	if !found && d.level != Queue && e.Op != Flush {
		a.unissued++
	}
	found = a.queued.end(at, e.Bytes, func(w whole) {
		a.answer[e.Op][sizeClass(w.bytes)].Add(uint64(t-w.time), 1)
		if d.level == Queue {
			a.paired = true
			a.completed(t, uint64(t-w.time))
			a.deeper(t, -1)
		}
	})
	if !found && e.Op != Flush {
		a.unseen++
	}
	if e.Flags&Failed != 0 {
		a.counts[e.Op].failed++
	}
}

func (a *Analyzer) completed(t int64, took uint64) {
	m := a.moments.at(t)
	m.Completed++
	m.sum += float64(took)
	m.max = max(m.max, took)
}

// whole takes a request that came with its duration.
func (a *Analyzer) whole(t int64, e *Event) {
	if e.Flags&Failed != 0 {
		a.counts[e.Op].failed++
	}
	if e.Aux == UnknownTime {
		return
	}
	a.answer[e.Op][sizeClass(e.Bytes)].Add(e.Aux, 1)
	a.paired = true
	a.deeper(t, 1)
	if len(a.ends) >= mostFlying {
		a.dropped++
		a.deeper(t, -1)
		return
	}
	heap.Push(&a.ends, end{at: t + int64(min(e.Aux, uint64(longestGap))), took: e.Aux})
}

// expire ends the whole requests whose time is over.
func (a *Analyzer) expire(now int64) {
	for len(a.ends) > 0 && a.ends[0].at <= now {
		e := heap.Pop(&a.ends).(end)
		a.last = max(a.last, e.at)
		a.completed(e.at, e.took)
		a.deeper(e.at, -1)
	}
}

type end struct {
	at   int64
	took uint64
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// request takes a request at the level that is analysed, when it begins.
func (a *Analyzer) request(d *device, t int64, e *Event) {
	c := &a.counts[e.Op]
	c.requests++
	c.bytes += uint64(e.Bytes)
	d.counts[e.Op].requests++
	d.counts[e.Op].bytes += uint64(e.Bytes)
	a.flags(c, e.Flags)
	if e.Op == Flush || e.Bytes == 0 {
		return
	}
	if a.lastBegin >= 0 {
		a.gaps.Add(uint64(t-a.lastBegin), 1)
	}
	a.lastBegin = t
	for i := range a.windows {
		a.windows[i].add(t)
	}
	c.sizes.add(e.Bytes, 1)
	c.aligned[min(bits.TrailingZeros64(e.Offset>>9|1<<21), 21)]++
	if (e.Offset|uint64(e.Bytes))%4096 == 0 {
		c.whole4k++
	}
	a.classify(d, c, t, e)
	d.where.add(e)
	m := a.moments.at(t)
	switch e.Op {
	case Read:
		m.Reads++
		m.ReadBytes += uint64(e.Bytes)
	case Write:
		m.Writes++
		m.WriteBytes += uint64(e.Bytes)
	default:
		return
	}
	block, bytes := a.options.BlockBytes, uint64(e.Bytes)
	if bytes > mostBlocks*block {
		bytes = mostBlocks * block
		a.problems.Note(fmt.Sprintf("requests of more than %d blocks, of which the working set has the first", mostBlocks),
			1, func() string { return fmt.Sprintf("%d bytes at %d", e.Bytes, e.Offset) })
	}
	from, to := e.Offset/block, (e.Offset+bytes-1)/block
	a.blocks.Run(from|d.index<<56, to-from+1, e.Op == Write)
}

func (a *Analyzer) flags(c *counts, flags uint8) {
	if flags == 0 {
		return
	}
	for _, f := range []struct {
		flag uint8
		n    *uint64
	}{{Sync, &c.sync}, {Meta, &c.meta}, {FUA, &c.fua}, {Ahead, &c.ahead}, {Barrier, &c.barrier}} {
		if flags&f.flag != 0 {
			*f.n++
		}
	}
}

// classify says how a request lies to those before it.
func (a *Analyzer) classify(d *device, c *counts, t int64, e *Event) {
	if second := t / int64(time.Second); second != a.second {
		a.closeSecond()
		a.second = second
		a.streams.window, a.streams.active = second, 0
	}
	kind, before := a.streams.place(e.Offset|d.index<<56, e)
	c.kinds[kind].requests++
	c.kinds[kind].bytes += uint64(e.Bytes)
	if kind != Random {
		c.ordered.add(e.Bytes, 1)
	}
	for _, b := range before {
		if b.kind == Random {
			c.ordered.add(b.bytes, 1)
		}
		c.kinds[b.kind].requests--
		c.kinds[b.kind].bytes -= uint64(b.bytes)
		c.kinds[kind].requests++
		c.kinds[kind].bytes += uint64(b.bytes)
	}
	if a.streams.active > 0 {
		m := a.moments.at(t)
		m.Streams = max(m.Streams, a.streams.active)
	}
}

func (a *Analyzer) closeSecond() {
	if a.second < 0 {
		return
	}
	n := uint64(a.streams.active)
	a.active.sum += n
	a.active.windows++
	a.active.most = max(a.active.most, n)
}

// Process holds what one process asked for.
type Process struct {
	PID        uint32 `json:"pid"`
	Name       string `json:"name,omitempty"`
	Reads      uint64 `json:"reads"`
	ReadBytes  uint64 `json:"read_bytes"`
	Writes     uint64 `json:"writes"`
	WriteBytes uint64 `json:"write_bytes"`
	Other      uint64 `json:"other"` // discards, flushes
}

func (a *Analyzer) process(e *Event) {
	p, ok := a.processes[e.PID]
	if !ok {
		p = &a.others
		if len(a.processes) < mostProcesses {
			p = &Process{PID: e.PID}
			a.processes[e.PID] = p
		}
	}
	switch e.Op {
	case Read:
		p.Reads++
		p.ReadBytes += uint64(e.Bytes)
	case Write:
		p.Writes++
		p.WriteBytes += uint64(e.Bytes)
	default:
		p.Other++
	}
}

// classEnds are the largest sizes of the classes that times are told by; the last class has all that is larger.
var classEnds = [sizeClasses - 1]uint32{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10}

func sizeClass(bytes uint32) int {
	if bytes <= 4<<10 {
		return 0
	}
	return min(bits.Len32((bytes-1)>>12), sizeClasses-1)
}

// regions count requests by where they are: up to 4096 parts of a device, that double when it proves larger.
type regions struct {
	shift int
	count []struct{ reads, writes uint64 }
}

const mostRegions = 4096

func (r *regions) add(e *Event) {
	if r.count == nil {
		r.count, r.shift = make([]struct{ reads, writes uint64 }, mostRegions), 20
	}
	for e.Offset>>r.shift >= mostRegions {
		for i := range mostRegions / 2 {
			a, b := r.count[2*i], r.count[2*i+1]
			a.reads += b.reads
			a.writes += b.writes
			r.count[i] = a
		}
		clear(r.count[mostRegions/2:])
		r.shift++
	}
	if c := &r.count[e.Offset>>r.shift]; e.Op == Read {
		c.reads++
	} else {
		c.writes++
	}
}
