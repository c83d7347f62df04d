package trace

// Kind is how a request lies to those before it.
type Kind uint8

// The kinds, of which each request has one.
const (
	Random     Kind = iota
	Sequential      // begins where the last request of a stream ended
	Near            // begins up to nearBytes behind the end of a stream: a stream that skips
	Reverse         // ends where the last request of a stream began
	Strided         // as far from the last request of its process as that was from the one before, three times
	Kinds           // how many there are
)

// String is the kind's name, as it is in JSON.
func (k Kind) String() string {
	return [...]string{"random", "sequential", "near", "reverse", "strided", ""}[min(k, Kinds)]
}

const (
	// streamAfter requests in a row are a stream. Two are so by chance where requests are random and many: among 128
	// that fell at random on 8,192 places, one in 64 has a neighbour.
	streamAfter = 3
	nearBytes   = 128 << 10
	freshHeads  = 128 // of each operation, the latest; small, so that chance does not join what is random
	openHeads   = 256 // streams followed at once
	walkers     = 256
)

// streams tells streams apart. Streams that are open and single requests have a table each, so that any number of
// random
// requests leaves the streams among them as they are; of each operation for itself, so that many reads do not hide a
// log. A position is an offset with the device's index above it.
type streams struct {
	fresh [Ops]struct {
		next, start [freshHeads]uint64
		about       [freshHeads]begun
		at          int
	}
	open struct {
		next, start [openHeads]uint64
		about       [openHeads]stream
		n           int
	}
	walk  [walkers]walker
	clock uint64 // requests so far

	window  int64 // of time, of which active counts the streams
	active  int
	opened  [Ops]uint64
	longest uint64 // bytes
}

// begun holds what may become a stream.
type begun struct {
	length   int // requests: 1 or 2; 0 is nothing
	kind     Kind
	requests [2]earlier
}

// earlier is a request that was said to be of another kind before its stream was seen.
type earlier struct {
	bytes uint32
	kind  Kind
}

type stream struct {
	op     Op
	kind   Kind
	bytes  uint64
	last   uint64 // by the clock
	window int64
}

// walker is the last of a process's requests, to see strides.
type walker struct {
	start  uint64
	stride int64
	pid    uint32
	op     Op
	run    int
}

func newStreams() *streams {
	s := &streams{window: -1}
	for op := range s.fresh {
		f := &s.fresh[op]
		for i := range f.next {
			f.next[i], f.start[i] = ^uint64(0), ^uint64(0)
		}
	}
	return s
}

// place says what kind a request is. before are requests that were said to be of another kind, and are found now to
// have begun its stream.
func (s *streams) place(position uint64, e *Event) (kind Kind, before []earlier) {
	s.clock++
	end := position + uint64(e.Bytes)
	strided := s.strides(position, e)
	if kind, ok := s.follow(position, end, e.Op); ok {
		return kind, nil
	}
	if kind, before, ok := s.grow(position, end, e); ok {
		return kind, before
	}
	kind = Random
	if strided {
		kind = Strided
	}
	f := &s.fresh[e.Op]
	f.next[f.at], f.start[f.at] = end, position
	f.about[f.at] = begun{length: 1, requests: [2]earlier{{e.Bytes, kind}}}
	f.at = (f.at + 1) % freshHeads
	return kind, nil
}

// follow looks among the open streams. One that the request continues goes before one that it is near.
func (s *streams) follow(position, end uint64, op Op) (Kind, bool) {
	near, kind := -1, Near
	for i, next := range s.open.next[:s.open.n] {
		gap := position - next
		if gap > nearBytes && s.open.start[i] != end || s.open.about[i].op != op {
			continue
		}
		o := &s.open.about[i]
		switch {
		case gap == 0:
			near, kind = i, Sequential
		case s.open.start[i] == end && o.kind == Reverse:
			near, kind = i, Reverse
		case gap <= nearBytes && o.kind == Sequential && (near < 0 || gap < position-s.open.next[near]):
			near = i
		}
		if near == i && kind != Near {
			break
		}
	}
	if near < 0 {
		return Random, false
	}
	s.open.next[near], s.open.start[near] = end, position
	s.touch(near, end-position)
	return kind, true
}

func (s *streams) touch(i int, bytes uint64) {
	o := &s.open.about[i]
	o.bytes, o.last = o.bytes+bytes, s.clock
	s.longest = max(s.longest, o.bytes)
	if o.window != s.window {
		o.window = s.window
		s.active++
	}
}

// grow looks among the latest single requests.
func (s *streams) grow(position, end uint64, e *Event) (Kind, []earlier, bool) {
	f := &s.fresh[e.Op]
	for i := range f.next {
		kind := Sequential
		if f.next[i] != position {
			if kind = Reverse; f.start[i] != end {
				continue
			}
		}
		b := &f.about[i]
		if b.length == 0 || e.Bytes == 0 || b.length == 2 && b.kind != kind {
			continue
		}
		if b.length == 1 {
			b.length, b.kind, b.requests[1] = 2, kind, earlier{e.Bytes, Random}
			f.next[i], f.start[i] = end, position
			return Random, nil, true
		}
		before := b.requests[:]
		f.next[i], f.start[i], f.about[i].length = ^uint64(0), ^uint64(0), 0
		s.establish(position, end, e, kind, uint64(before[0].bytes)+uint64(before[1].bytes))
		return kind, before, true
	}
	return Random, nil, false
}

// establish opens a stream, in place of the one that was still for longest if there is no room.
func (s *streams) establish(position, end uint64, e *Event, kind Kind, before uint64) {
	i := s.open.n
	if i < openHeads {
		s.open.n++
	} else {
		i = 0
		for k := range s.open.about {
			if s.open.about[k].last < s.open.about[i].last {
				i = k
			}
		}
	}
	s.opened[e.Op]++
	s.open.next[i], s.open.start[i] = end, position
	s.open.about[i] = stream{op: e.Op, kind: kind, bytes: before, window: -1}
	s.touch(i, uint64(e.Bytes))
}

// strides keeps the request as the last of its process and reports whether it is the third in the same stride.
func (s *streams) strides(position uint64, e *Event) bool {
	w := &s.walk[(e.PID*0x9e3779b1^uint32(e.Op)<<5)>>24%walkers]
	if w.pid != e.PID || w.op != e.Op {
		*w = walker{start: position, pid: e.PID, op: e.Op}
		return false
	}
	stride := int64(position - w.start)
	if stride == w.stride && stride != 0 {
		w.run++
	} else {
		w.run = 1
	}
	w.start, w.stride = position, stride
	return w.run >= streamAfter
}
