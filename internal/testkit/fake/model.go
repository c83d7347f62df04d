package fake

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
)

// model runs the streams of a program event by event. Times are since the job began.
type model struct {
	program program
	loops   []*loop
	dirs    [3]workload.Counters // read, write, trim
}

const (
	read = iota
	write
	trim
)

// loop is one stream at work.
type loop struct {
	stream
	law     Law
	stalls  Stalls
	random  *rand.Rand
	weight  uint64 // operations a draw stands for
	places  places
	arrival time.Duration // of the operation scheduled last
	started uint64
	done    uint64
	ended   time.Duration // when the last operation of a size was done
}

// op is an operation, or weight of them in a row, on one of the stream's places.
type op struct {
	done    time.Duration
	service time.Duration
	dir     int
	ops     uint64
}

type places []op

func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i].done < p[j].done }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *places) Push(x any)        { *p = append(*p, x.(op)) }
func (p *places) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

func newModel(p program, samples int) *model {
	m := &model{program: p}
	for i := range m.dirs {
		m.dirs[i].Hist = &hist.Histogram{}
	}
	for i, s := range p.Streams {
		l := &loop{stream: s, law: p.Law, stalls: p.Stalls, random: rand.New(rand.NewPCG(p.Seed, uint64(i)))}
		perSecond := float64(s.Depth) / p.Law.Mean.Seconds()
		if s.Rate > 0 {
			perSecond = min(perSecond, s.Rate)
		}
		l.weight = uint64(max(1, math.Ceil(perSecond/float64(samples))))
		for range s.Depth {
			if next, ok := l.begin(0); ok {
				heap.Push(&l.places, next)
			}
		}
		m.loops = append(m.loops, l)
	}
	return m
}

// begin starts the next operation on a place that is free from then on.
func (l *loop) begin(free time.Duration) (op, bool) {
	ops := l.weight
	if l.Ops > 0 {
		ops = min(ops, l.Ops-l.started)
	}
	start := free
	if l.Rate > 0 {
		gap := float64(ops) / l.Rate * float64(time.Second)
		if l.Poisson {
			gap *= l.random.ExpFloat64()
		}
		l.arrival += time.Duration(gap)
		start = max(free, l.arrival)
	}
	if ops == 0 || l.Runtime > 0 && start >= l.Runtime {
		return op{}, false
	}
	l.started += ops
	need := l.law.draw(l.random)
	done := l.stalls.finish(start, need*time.Duration(ops))
	dir := write
	switch {
	case l.Trims:
		dir = trim
	case l.random.Float64() < l.Reads:
		dir = read
	}
	// What a stall added falls on one operation of the row.
	return op{done: done, service: need, dir: dir, ops: ops}.stalled(start), true
}

// stalled gives a lone operation the stall it was caught in; a row keeps the drawn time.
func (o op) stalled(start time.Duration) op {
	if o.ops == 1 {
		o.service = o.done - start
	}
	return o
}

// advance runs the model to limit, or to its end if that is earlier, and returns where it stands and whether it is
// over.
func (m *model) advance(limit time.Duration) (at time.Duration, over bool) {
	over = true
	for _, l := range m.loops {
		stop := limit
		if l.Runtime > 0 {
			stop = min(limit, l.Runtime)
		}
		for len(l.places) > 0 && l.places[0].done <= stop {
			o := l.places[0]
			m.count(l, o)
			if next, ok := l.begin(o.done); ok {
				l.places[0] = next
				heap.Fix(&l.places, 0)
			} else {
				heap.Pop(&l.places)
			}
		}
		switch {
		case l.Ops > 0 && len(l.places) == 0:
			at = max(at, l.ended)
		case l.Runtime > 0 && l.Runtime <= limit:
			at = max(at, l.Runtime)
		default:
			over = false
		}
	}
	if !over {
		at = limit
	}
	return at, over
}

func (m *model) count(l *loop, o op) {
	l.done += o.ops
	l.ended = o.done
	c := &m.dirs[o.dir]
	c.Ops += o.ops
	c.Bytes += o.ops * uint64(l.Block)
	c.Seconds += o.service.Seconds() * float64(o.ops)
	c.Hist.Add(uint64(o.service), o.ops)
}

func (m *model) report(at time.Time, elapsed time.Duration, last bool) workload.Report {
	r := workload.Report{Time: at, Elapsed: elapsed, Final: last, Ops: slices.Clone(m.dirs[:])}
	for i := range r.Ops {
		r.Ops[i].Hist = nil
		if r.Ops[i].Ops > 0 {
			r.Ops[i].Hist = m.dirs[i].Hist.Clone()
		}
	}
	return r
}
