package trace

import "slices"

// mostFlying bounds requests that are on their way at once, in each of the tables below.
const mostFlying = 1 << 18

// place is where a request begins.
type place struct {
	offset uint64
	device uint32
	op     Op
}

// flying is a request on its way, or a piece of one that was split.
type flying struct {
	bytes uint32
	next  int32 // the one that began later at the same place; -1
	whole int32 // index of its whole
}

// whole is a request as it was queued; it is done when all its pieces are.
type whole struct {
	time  int64
	left  uint64
	bytes uint32
	used  bool
}

// flight pairs the beginning of requests with their end.
type flight struct {
	at     map[place]line
	pieces []flying
	wholes []whole
	unused struct{ pieces, wholes []int32 }
	n      int
}

// line holds what is on its way from one place, in the order in which it began.
type line struct{ first, last int32 }

// mostLooks is how many requests at one place are looked at for one of the right size.
const mostLooks = 32

func newFlight() *flight { return &flight{at: map[place]line{}} }

// begin notes a request. It is false when there is no room.
func (f *flight) begin(p place, t int64, bytes uint32) bool {
	if f.n >= mostFlying {
		return false
	}
	w := grab(&f.wholes, &f.unused.wholes)
	f.wholes[w] = whole{time: t, left: uint64(bytes), bytes: bytes, used: true}
	f.enter(p, flying{bytes: bytes, whole: w})
	return true
}

func grab[T any](list *[]T, free *[]int32) int32 {
	if n := len(*free); n > 0 {
		i := (*free)[n-1]
		*free = (*free)[:n-1]
		return i
	}
	*list = append(*list, *new(T))
	return int32(len(*list) - 1)
}

func (f *flight) enter(p place, piece flying) {
	i := grab(&f.pieces, &f.unused.pieces)
	piece.next = -1
	f.pieces[i] = piece
	f.n++
	l, ok := f.at[p]
	if !ok {
		f.at[p] = line{i, i}
		return
	}
	f.pieces[l.last].next = i
	f.at[p] = line{l.first, i}
}

// take removes the first piece at a place, of that many bytes if there is one.
func (f *flight) remove(p place, bytes uint32) (piece flying, ok bool) {
	l, ok := f.at[p]
	if !ok {
		return flying{}, false
	}
	before, i := int32(-1), l.first
	for b, k, n := int32(-1), l.first, 0; k >= 0 && n < mostLooks; b, k, n = k, f.pieces[k].next, n+1 {
		if f.pieces[k].bytes == bytes {
			before, i = b, k
			break
		}
	}
	piece = f.pieces[i]
	switch {
	case before >= 0:
		f.pieces[before].next = piece.next
		if i == l.last {
			f.at[p] = line{l.first, before}
		}
	case piece.next >= 0:
		f.at[p] = line{piece.next, l.last}
	default:
		delete(f.at, p)
	}
	f.unused.pieces = append(f.unused.pieces, i)
	f.n--
	return piece, true
}

// cancel forgets a request that did not begin after all.
func (f *flight) cancel(p place, bytes uint32) bool {
	piece, ok := f.remove(p, bytes)
	if ok {
		f.free(piece.whole)
	}
	return ok
}

func (f *flight) free(w int32) {
	f.wholes[w].used = false
	f.unused.wholes = append(f.unused.wholes, w)
}

// split cuts a piece in two at an offset.
func (f *flight) split(p place, at uint64) {
	piece, ok := f.remove(p, 0)
	if !ok {
		return
	}
	if at <= p.offset || at-p.offset >= uint64(piece.bytes) {
		f.enter(p, piece)
		return
	}
	rest := piece
	piece.bytes = uint32(at - p.offset)
	rest.bytes -= piece.bytes
	f.enter(p, piece)
	p.offset = at
	f.enter(p, rest)
}

// end ends all that lies in a range of the device, piece by piece, and yields the requests that are done with it. A
// piece that reaches beyond the range keeps the rest. It is false when nothing began there.
func (f *flight) end(p place, bytes uint32, done func(w whole)) bool {
	found := false
	for left := bytes; ; {
		piece, ok := f.remove(p, left)
		if !ok {
			return found
		}
		found = true
		part := min(piece.bytes, left)
		w := &f.wholes[piece.whole]
		w.left -= uint64(part)
		p.offset += uint64(part)
		left -= part
		switch {
		case part < piece.bytes:
			piece.bytes -= part
			f.enter(p, piece)
		case w.left == 0:
			done(*w)
			f.free(piece.whole)
		}
		if left == 0 {
			return true
		}
	}
}

// drop forgets the older half of what is on its way, and says how many requests that were.
func (f *flight) drop() (n uint64) {
	var times []int64
	for _, w := range f.wholes {
		if w.used {
			times = append(times, w.time)
		}
	}
	slices.Sort(times)
	limit := times[len(times)/2]
	kept := newFlight()
	for p, l := range f.at {
		for i := l.first; i >= 0; i = f.pieces[i].next {
			piece := f.pieces[i]
			w := &f.wholes[piece.whole]
			if w.time <= limit {
				if w.used {
					n++
				}
				w.used = false
				continue
			}
			kept.enter(p, piece)
		}
	}
	kept.wholes = f.wholes
	for i := range kept.wholes {
		if !kept.wholes[i].used {
			kept.unused.wholes = append(kept.unused.wholes, int32(i))
		}
	}
	*f = *kept
	return n
}

// pending is how many requests have not ended.
func (f *flight) pending() (n uint64) {
	for _, w := range f.wholes {
		if w.used {
			n++
		}
	}
	return n
}
