package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/storage/trace/reuse"
)

// Result holds what a trace showed. Absent is what it does not tell.
type Result struct {
	Version    int         `json:"trace_version"`
	Sources    []string    `json:"sources"` // set by whoever opened them, as is the format
	Format     string      `json:"format"`
	Level      string      `json:"level"` // what the requests below are: issued, queued, whole
	Start      *time.Time  `json:"start,omitempty"`
	Seconds    float64     `json:"seconds"`
	Events     uint64      `json:"events"`
	LeftOut    uint64      `json:"events_of_other_devices"`
	Partial    bool        `json:"partial"` // a part of the trace could not be read
	Verdict    Verdict     `json:"verdict"`
	Devices    []Device    `json:"devices"`
	Operations []Operation `json:"operations"`
	Streams    Streams     `json:"streams"`
	WorkingSet *WorkingSet `json:"working_set,omitempty"`
	Bursts     []Burst     `json:"bursts"`
	Gaps       *Times      `json:"time_between_requests,omitempty"`
	Queue      *Depth      `json:"queue,omitempty"`
	Layer      Layer       `json:"block_layer"`
	Processes  []Process   `json:"processes"`
	Hot        Hot         `json:"hot_regions"`
	Step       float64     `json:"step_seconds"`
	Series     []Moment    `json:"series"`
	Problems   []Problem   `json:"problems"`
}

// Device is one that the trace names.
type Device struct {
	Name       string `json:"name"`
	Level      string `json:"level"`
	Events     uint64 `json:"events"`
	Reads      uint64 `json:"reads"`
	ReadBytes  uint64 `json:"read_bytes"`
	Writes     uint64 `json:"writes"`
	WriteBytes uint64 `json:"write_bytes"`
}

// Operation holds what was asked of one operation.
type Operation struct {
	Op        string       `json:"op"`
	Requests  uint64       `json:"requests"`
	Bytes     uint64       `json:"bytes"`
	Kinds     []KindCount  `json:"kinds"`
	Sizes     []Size       `json:"sizes"`
	Aligned   []Alignment  `json:"alignment"`
	Whole4k   float64      `json:"whole_4k_share"`
	Sync      uint64       `json:"sync"`
	Meta      uint64       `json:"metadata"`
	Ahead     uint64       `json:"read_ahead"`
	FUA       uint64       `json:"fua"`
	Barrier   uint64       `json:"flush_before"`
	Failed    uint64       `json:"failed"`
	Service   *Times       `json:"service_time,omitempty"`  // from issue to completion
	Response  *Times       `json:"response_time,omitempty"` // from queueing, or as the trace tells it, to completion
	BySize    []ClassTimes `json:"times_by_size,omitempty"`
	unordered []Size
	ordered   []Size
	chance    bool // its streams are so short that chance explains them
}

// KindCount is how many requests were of a kind.
type KindCount struct {
	Kind     string  `json:"kind"`
	Requests uint64  `json:"requests"`
	Bytes    uint64  `json:"bytes"`
	Share    float64 `json:"share"` // of requests
}

// Size counts requests of one size; or of sizes from FromBytes to Bytes, where they are no multiples of 512 or above
// 2 MiB.
type Size struct {
	FromBytes uint64 `json:"from_bytes,omitempty"`
	Bytes     uint64 `json:"bytes"`
	Requests  uint64 `json:"requests"`
}

// Alignment counts requests by the largest power of two that their beginning is a multiple of.
type Alignment struct {
	Bytes    uint64 `json:"bytes"`
	Requests uint64 `json:"requests"`
}

// Times are of operations. Percentiles for which there are too few values are absent.
type Times struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean_seconds"`
	P50   float64 `json:"p50_seconds,omitempty"`
	P90   float64 `json:"p90_seconds,omitempty"`
	P99   float64 `json:"p99_seconds,omitempty"`
	P999  float64 `json:"p999_seconds,omitempty"`
	Max   float64 `json:"max_seconds"`
}

// ClassTimes are the times of requests above the size of the class before and up to UpTo bytes; 0 is any larger one.
type ClassTimes struct {
	UpTo     uint64 `json:"up_to_bytes"`
	Service  *Times `json:"service_time,omitempty"`
	Response *Times `json:"response_time,omitempty"`
}

// Streams are the sequential streams: three requests or more, each of which begins where the last ended.
type Streams struct {
	Opened  uint64  `json:"streams"`
	Longest uint64  `json:"longest_bytes"`
	AtOnce  float64 `json:"mean_at_once"` // over the seconds in which there were requests
	Most    uint64  `json:"most_at_once"`
}

// WorkingSet holds what of the device was touched, and what caches would have missed.
type WorkingSet struct {
	BlockBytes    uint64        `json:"block_bytes"`
	Exact         bool          `json:"exact"` // every block was looked at
	SampledBlocks int           `json:"sampled_blocks"`
	SampledShare  float64       `json:"sampled_share"`
	Bytes         uint64        `json:"bytes"`
	ReadBytes     uint64        `json:"read_bytes"`
	WrittenBytes  uint64        `json:"written_bytes"`
	BytesError    float64       `json:"bytes_relative_error"` // 95 %
	Overwrites    float64       `json:"overwrite_share"`
	ReadsOfWrites float64       `json:"read_after_write_share"`
	Hottest       []reuse.Share `json:"hottest"`
	Curve         []reuse.Point `json:"curve"`
}

// Depth is the queue depth over time.
type Depth struct {
	Mean  float64      `json:"mean"`
	Busy  float64      `json:"mean_while_busy"`
	P50   int          `json:"p50"`
	P99   int          `json:"p99"`
	Max   int          `json:"max"`
	Idle  float64      `json:"idle_share"`
	Depth []DepthShare `json:"depths"`
}

// DepthShare is the share of time at a depth; of the last one, 1024, at it or above.
type DepthShare struct {
	Depth int     `json:"depth"`
	Share float64 `json:"share"`
}

// Layer holds what the block layer did, in events.
type Layer struct {
	Queued    uint64 `json:"queued"`
	Merged    uint64 `json:"merged"`
	Split     uint64 `json:"split"`
	Remapped  uint64 `json:"remapped"`
	Inserted  uint64 `json:"inserted"`
	Issued    uint64 `json:"issued"`
	Requeued  uint64 `json:"requeued"`
	Completed uint64 `json:"completed"`
	Packets   uint64 `json:"packet_commands"`
	NotIssued uint64 `json:"completed_without_issue"`
	NotQueued uint64 `json:"completed_without_queueing"`
	Pending   uint64 `json:"never_completed"`
}

// Hot is where the requests went.
type Hot struct {
	RegionBytes uint64   `json:"region_bytes"`
	Touched     int      `json:"regions_touched"`
	Half        int      `json:"regions_with_half_of_requests"`
	Ninety      int      `json:"regions_with_90_percent"`
	Regions     []Region `json:"regions"` // the hottest ten
	zones       []float64
}

// Region is a part of a device.
type Region struct {
	Device string  `json:"device"`
	Offset uint64  `json:"offset_bytes"`
	Reads  uint64  `json:"reads"`
	Writes uint64  `json:"writes"`
	Share  float64 `json:"share"`
}

// Result ends the analysis.
func (a *Analyzer) Result() *Result {
	if !a.looked {
		a.look()
	}
	a.expire(math.MaxInt64)
	a.deeper(a.last, 0)
	a.closeSecond()
	r := &Result{Version: 1, Seconds: time.Duration(a.last).Seconds(), Events: a.events, LeftOut: a.left,
		Devices: []Device{}, Operations: []Operation{}, Bursts: []Burst{}, Processes: []Process{},
		Problems: []Problem{}}
	r.Level = a.level()
	if !a.names.Clock.IsZero() && a.begun {
		start := a.names.Clock.Add(time.Duration(a.origin - a.names.ClockAt)).UTC()
		r.Start = &start
	}
	for _, d := range a.devices {
		r.Devices = append(r.Devices, Device{Name: a.names.Device(d.id), Level: d.words(), Events: d.events,
			Reads: d.counts[Read].requests, ReadBytes: d.counts[Read].bytes,
			Writes: d.counts[Write].requests, WriteBytes: d.counts[Write].bytes})
	}
	for op := range Ops {
		if o, ok := a.operation(op); ok {
			r.Operations = append(r.Operations, o)
		}
	}
	opened := uint64(0)
	for _, n := range a.streams.opened {
		opened += n
	}
	r.Streams = Streams{Opened: opened, Longest: a.streams.longest, Most: a.active.most}
	if a.active.windows > 0 {
		r.Streams.AtOnce = float64(a.active.sum) / float64(a.active.windows)
	}
	r.WorkingSet = a.workingSet()
	for i := range a.windows {
		if b, ok := a.windows[i].finish(a.last); ok {
			r.Bursts = append(r.Bursts, b)
		}
	}
	r.Gaps = times(&a.gaps)
	r.Queue = a.queue()
	r.Layer = Layer{Queued: a.actions[Queue], Merged: a.actions[Merge], Split: a.actions[Split],
		Remapped: a.actions[Remap], Inserted: a.actions[Insert], Issued: a.actions[Issue],
		Requeued: a.actions[Requeue], Completed: a.actions[Complete], Packets: a.counts[None].other,
		NotIssued: a.unissued}
	if a.actions[Queue] > 0 {
		r.Layer.NotQueued = a.unseen
	}
	r.Layer.Pending = a.issued.pending() + a.dropped
	if a.actions[Issue] == 0 {
		r.Layer.Pending += a.queued.pending()
	}
	r.Processes = a.busiest()
	r.Hot = a.hot()
	r.Step, r.Series = a.moments.finish(a.last)
	a.warn()
	r.Problems = append(r.Problems, a.problems.All()...)
	r.Partial = slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Lost })
	r.Verdict = verdict(r)
	return r
}

func (a *Analyzer) warn() {
	if a.options.Device == "" && len(a.devices) > 1 && a.actions[Remap] > 0 {
		a.problems.Note("several devices of which some may lie on others: the same I/O may be counted twice; "+
			"choose one with --device", 1, nil)
	}
	a.problems.Add("requests that were given up on: more than 262,144 were on their way at once", a.dropped, nil)
}

func (d *device) words() string {
	switch {
	case d.seen[Whole] > 0:
		return "whole"
	case d.level == Queue:
		return "queued"
	}
	return "issued"
}

func (a *Analyzer) level() string {
	var words []string
	for _, d := range a.devices {
		if w := d.words(); !slices.Contains(words, w) && (a.options.Device == "" ||
			a.names.Device(d.id) == a.options.Device) {
			words = append(words, w)
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return "by device"
}

func (a *Analyzer) operation(op Op) (Operation, bool) {
	c := &a.counts[op]
	if c.requests == 0 {
		return Operation{}, false
	}
	o := Operation{Op: op.String(), Requests: c.requests, Bytes: c.bytes, Sync: c.sync, Meta: c.meta, Ahead: c.ahead,
		FUA: c.fua, Barrier: c.barrier, Failed: c.failed, Kinds: []KindCount{}, Sizes: []Size{}, Aligned: []Alignment{}}
	placed := uint64(0)
	for _, k := range c.kinds {
		placed += k.requests
	}
	for k := range Kinds {
		if n := c.kinds[k]; n.requests > 0 {
			o.Kinds = append(o.Kinds, KindCount{Kind: k.String(), Requests: n.requests, Bytes: n.bytes,
				Share: float64(n.requests) / float64(placed)})
		}
	}
	if placed > 0 {
		o.Whole4k = float64(c.whole4k) / float64(placed)
	}
	if n := a.streams.opened[op]; n > 0 {
		o.chance = c.kinds[Sequential].requests+c.kinds[Reverse].requests < shortStreams*n
	}
	o.Sizes, o.ordered = c.sizes.list(nil), c.ordered.list(nil)
	o.unordered = c.sizes.list(&c.ordered)
	for i, n := range c.aligned {
		if n > 0 {
			o.Aligned = append(o.Aligned, Alignment{Bytes: 512 << i, Requests: n})
		}
	}
	var service, answer hist.Histogram
	for i := range sizeClasses {
		s, r := &a.service[op][i], &a.answer[op][i]
		service.Merge(s)
		answer.Merge(r)
		if s.Count()+r.Count() > 0 {
			upTo := uint64(0)
			if i < len(classEnds) {
				upTo = uint64(classEnds[i])
			}
			o.BySize = append(o.BySize, ClassTimes{UpTo: upTo, Service: times(s), Response: times(r)})
		}
	}
	o.Service, o.Response = times(&service), times(&answer)
	return o, true
}

// list has the sizes that there are, without those of less.
func (s *sizes) list(less *sizes) []Size {
	list := []Size{}
	var none sizes
	if less == nil {
		less = &none
	}
	for i, n := range s.exact {
		if n -= less.exact[i]; n > 0 {
			list = append(list, Size{Bytes: uint64(i) * 512, Requests: n})
		}
	}
	for i, n := range s.other {
		if n -= less.other[i]; n > 0 {
			list = append(list, Size{FromBytes: 1 << (i - 1), Bytes: 1<<i - 1, Requests: n})
		}
	}
	slices.SortStableFunc(list, func(a, b Size) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return list
}

func times(h *hist.Histogram) *Times {
	if h.Count() == 0 {
		return nil
	}
	t := &Times{Count: h.Count(), Mean: h.Mean() / 1e9, Max: time.Duration(h.Max()).Seconds()}
	for _, p := range []struct {
		q  float64
		to *float64
	}{{.5, &t.P50}, {.9, &t.P90}, {.99, &t.P99}, {.999, &t.P999}} {
		if v, ok := h.Percentile(p.q); ok {
			*p.to = time.Duration(v).Seconds()
		}
	}
	return t
}

func (a *Analyzer) workingSet() *WorkingSet {
	s := a.blocks.Summary()
	if s.Reads+s.Writes == 0 {
		return nil
	}
	b := a.options.BlockBytes
	return &WorkingSet{BlockBytes: b, Exact: s.Rate == 1, SampledBlocks: s.Sampled, SampledShare: s.Rate,
		Bytes: s.Blocks * b, ReadBytes: s.BlocksRead * b, WrittenBytes: s.BlocksWritten * b, BytesError: s.BlocksError,
		Overwrites: s.Overwrites, ReadsOfWrites: s.ReadsOfWrites, Hottest: s.Hottest, Curve: a.blocks.Curve()}
}

func (a *Analyzer) queue() *Depth {
	if !a.paired || a.last == 0 {
		return nil
	}
	q := &Depth{Idle: float64(a.depths[0]) / float64(a.last), Depth: []DepthShare{}}
	sum, sofar := 0.0, int64(0)
	for depth, t := range a.depths {
		if t == 0 {
			continue
		}
		if before := sofar; before*2 < a.last && (before+t)*2 >= a.last {
			q.P50 = depth
		}
		if sofar*100 < a.last*99 && (sofar+t)*100 >= a.last*99 {
			q.P99 = depth
		}
		sofar += t
		sum += float64(depth) * float64(t)
		q.Max = depth
		q.Depth = append(q.Depth, DepthShare{Depth: depth, Share: float64(t) / float64(a.last)})
	}
	q.Mean = sum / float64(a.last)
	if busy := a.last - a.depths[0]; busy > 0 {
		q.Busy = sum / float64(busy)
	}
	return q
}

// busiest are the twenty processes that asked for most; the others are in the last one, without a number.
func (a *Analyzer) busiest() []Process {
	list := []Process{}
	for _, pid := range slices.Sorted(maps.Keys(a.processes)) {
		p := *a.processes[pid]
		p.Name = a.names.Processes[pid]
		if pid != 0 || p.Name != "" || len(a.processes) > 1 {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(x, y Process) int {
		return cmp.Compare(y.Reads+y.Writes+y.Other, x.Reads+x.Writes+x.Other)
	})
	rest := a.others
	const most = 20
	for _, p := range list[min(most, len(list)):] {
		rest.Reads, rest.Writes, rest.Other = rest.Reads+p.Reads, rest.Writes+p.Writes, rest.Other+p.Other
		rest.ReadBytes, rest.WriteBytes = rest.ReadBytes+p.ReadBytes, rest.WriteBytes+p.WriteBytes
	}
	list = list[:min(most, len(list))]
	if rest.Reads+rest.Writes+rest.Other > 0 {
		rest.Name = "all others"
		list = append(list, rest)
	}
	return list
}

// hot finds the regions that most requests went to. All devices are told in the largest region of any of them.
func (a *Analyzer) hot() Hot {
	shift := 0
	for _, d := range a.devices {
		shift = max(shift, d.where.shift)
	}
	h := Hot{RegionBytes: 1 << shift, Regions: []Region{}}
	if shift == 0 {
		h.RegionBytes = 0
		return h
	}
	var all []Region
	total := uint64(0)
	for _, d := range a.devices {
		by := map[uint64]*Region{}
		for i, c := range d.where.count {
			if c.reads+c.writes == 0 {
				continue
			}
			offset := uint64(i) << d.where.shift >> shift << shift
			if by[offset] == nil {
				by[offset] = &Region{Device: a.names.Device(d.id), Offset: offset}
			}
			by[offset].Reads += c.reads
			by[offset].Writes += c.writes
			total += c.reads + c.writes
		}
		for _, offset := range slices.Sorted(maps.Keys(by)) {
			all = append(all, *by[offset])
		}
	}
	slices.SortStableFunc(all, func(x, y Region) int { return cmp.Compare(y.Reads+y.Writes, x.Reads+x.Writes) })
	h.Touched = len(all)
	sum := uint64(0)
	for i := range all {
		n := all[i].Reads + all[i].Writes
		all[i].Share = float64(n) / float64(total)
		h.zones = append(h.zones, all[i].Share)
		if sum*2 < total && (sum+n)*2 >= total {
			h.Half = i + 1
		}
		if sum*10 < total*9 && (sum+n)*10 >= total*9 {
			h.Ninety = i + 1
		}
		sum += n
	}
	h.Regions = append(h.Regions, all[:min(10, len(all))]...)
	return h
}
