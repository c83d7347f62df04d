// Package reuse estimates, in one pass and in bounded memory, what caches of every size would miss: how many distinct
// blocks lie between two accesses to the same block (the reuse distance), and from that the miss ratio of a cache that
// keeps the blocks last used (LRU).
//
// It is SHARDS of fixed size (Waldspurger, Park, Garthwaite and Ahmad, FAST 2015): blocks are sampled by a hash of
// their address, so that a block is either always looked at or never; when more than the bound were sampled, those of
// the largest hash leave and the rate falls. A distance among the sampled, divided by the rate, estimates the real one;
// each access counts as 1/rate, and what the counts lack of the number of accesses goes to the shortest distance
// (SHARDS-adj). While no more blocks were seen than the bound, nothing is estimated: the curve is exact but for the
// width of a bucket, 1/32 of a size.
//
// Two errors remain, and each point of a curve states both. A size is off by what a binomial sample of that many blocks
// is off by. A miss ratio is off by which blocks were drawn, and that is measured: the hash deals blocks to sixteen
// groups, the spread of whose own ratios gives the interval (Student's t, 15 degrees of freedom). The package has no
// clock, no randomness but the hash, and does no I/O.
package reuse

import (
	"math"
	"math/bits"
	"slices"
)

// Bound is how many blocks are sampled unless another number is given.
const Bound = 16 << 10

const (
	groups    = 16
	perDouble = 5 // 2^5 buckets to a doubling of the size
	buckets   = (48 - perDouble + 1) << perDouble
	// full is the hash's range; a block is sampled while its hash is below the threshold.
	full = uint64(1) << 56
)

// Estimator takes accesses. It is not safe for concurrent use.
type Estimator struct {
	bound     int
	threshold uint64
	at        map[uint64]int32 // the place of a block among the sampled
	blocks    []block
	free      []int32
	largest   []int32 // heap of places, the largest hash first
	order     order

	counts [2]uint64 // accesses: reads, writes
	again  [2]*spread
	cold   [2]*[groups]float64
	over   float64 // writes of what was written before
	raw    float64 // reads of what was written last
}

// spread counts by distance, for each group of blocks.
type spread [groups][buckets]float64

type block struct {
	key, hash     uint64
	place         int32 // in the order of last use
	accesses      uint32
	read, written bool
	last          bool // a write
}

// New takes how many blocks to sample at most; 0 stands for Bound.
func New(bound int) *Estimator {
	if bound <= 0 {
		bound = Bound
	}
	e := &Estimator{bound: bound, threshold: full, at: make(map[uint64]int32, bound)}
	for i := range e.again {
		e.again[i], e.cold[i] = new(spread), new([groups]float64)
	}
	e.order.init(4 * bound)
	return e
}

// mix is the finaliser of SplitMix64: every bit of the address reaches every bit of the hash.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Run takes an access to n blocks in a row.
func (e *Estimator) Run(key, n uint64, write bool) {
	kind := 0
	if write {
		kind = 1
	}
	e.counts[kind] += n
	for ; n > 0; n, key = n-1, key+1 {
		if hash := mix(key); hash>>8 < e.threshold {
			e.sampled(key, hash, kind)
		}
	}
}

func (e *Estimator) sampled(key, hash uint64, kind int) {
	rate := float64(e.threshold) / float64(full)
	group := hash & (groups - 1)
	i, ok := e.at[key]
	if !ok {
		e.cold[kind][group] += 1 / rate
		i = e.enter(key, hash)
	} else {
		distance := float64(e.order.since(e.blocks[i].place)) / rate
		e.again[kind][group][index(distance)] += 1 / rate
	}
	b := &e.blocks[i]
	b.accesses++
	switch {
	case kind == 1 && b.written:
		e.over += 1 / rate
	case kind == 0 && b.last:
		e.raw += 1 / rate
	}
	b.read, b.written, b.last = b.read || kind == 0, b.written || kind == 1, kind == 1
	if ok {
		e.order.leave(b.place)
	}
	if e.order.full() {
		e.compact()
	}
	b.place = e.order.enter()
	if len(e.at) > e.bound {
		e.lower()
	}
}

func (e *Estimator) enter(key, hash uint64) int32 {
	var i int32
	if n := len(e.free); n > 0 {
		i, e.free = e.free[n-1], e.free[:n-1]
	} else {
		i = int32(len(e.blocks))
		e.blocks = append(e.blocks, block{})
	}
	e.blocks[i] = block{key: key, hash: hash >> 8, place: -1}
	e.at[key] = i
	e.push(i)
	return i
}

// lower leaves out the blocks of the largest hash, and with them all that would hash alike or higher.
func (e *Estimator) lower() {
	e.threshold = e.blocks[e.largest[0]].hash
	for len(e.largest) > 0 && e.blocks[e.largest[0]].hash >= e.threshold {
		i := e.pop()
		b := &e.blocks[i]
		e.order.leave(b.place)
		delete(e.at, b.key)
		e.free = append(e.free, i)
	}
}

// compact gives the places anew, without gaps.
func (e *Estimator) compact() {
	used := make([]int32, 0, len(e.at))
	for _, i := range e.at {
		if e.blocks[i].place >= 0 && e.order.there(e.blocks[i].place) {
			used = append(used, i)
		}
	}
	slices.SortFunc(used, func(a, b int32) int { return int(e.blocks[a].place - e.blocks[b].place) })
	e.order.init(4 * e.bound)
	for _, i := range used {
		e.blocks[i].place = e.order.enter()
	}
}

func (e *Estimator) push(i int32) {
	e.largest = append(e.largest, i)
	k := len(e.largest) - 1
	for k > 0 {
		up := (k - 1) / 2
		if e.blocks[e.largest[up]].hash >= e.blocks[e.largest[k]].hash {
			break
		}
		e.largest[up], e.largest[k] = e.largest[k], e.largest[up]
		k = up
	}
}

func (e *Estimator) pop() int32 {
	h := e.largest
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	e.largest = h
	for k := 0; ; {
		down := 2*k + 1
		if down >= last {
			return top
		}
		if down+1 < last && e.blocks[h[down+1]].hash > e.blocks[h[down]].hash {
			down++
		}
		if e.blocks[h[k]].hash >= e.blocks[h[down]].hash {
			return top
		}
		h[k], h[down] = h[down], h[k]
		k = down
	}
}

// order is a list of places in the order of last use, with the number of those after each in logarithmic time
// (Fenwick, 1994).
type order struct {
	tree  []int32
	taken []bool
	next  int32
	total int32
}

func (o *order) init(n int) {
	if len(o.tree) != n+1 {
		o.tree, o.taken = make([]int32, n+1), make([]bool, n)
	}
	clear(o.tree)
	clear(o.taken)
	o.next, o.total = 0, 0
}

func (o *order) full() bool { return int(o.next) == len(o.taken) }

func (o *order) there(place int32) bool { return o.taken[place] }

func (o *order) add(place, by int32) {
	for i := int(place) + 1; i < len(o.tree); i += i & -i {
		o.tree[i] += by
	}
	o.total += by
}

func (o *order) enter() int32 {
	place := o.next
	o.next++
	o.taken[place] = true
	o.add(place, 1)
	return place
}

func (o *order) leave(place int32) {
	if place >= 0 && o.taken[place] {
		o.taken[place] = false
		o.add(place, -1)
	}
}

// since is how many entered after place and are still there.
func (o *order) since(place int32) int32 {
	sum := int32(0)
	for i := int(place) + 1; i > 0; i -= i & -i {
		sum += o.tree[i]
	}
	return o.total - sum
}

// index is the bucket of a distance: exact below 64, then 32 to a doubling.
func index(distance float64) int {
	d := uint64(math.Round(distance))
	msb := bits.Len64(d) - 1
	if msb <= perDouble {
		return int(d)
	}
	shift := msb - perDouble
	return min((shift+1)<<perDouble+int(d>>shift&(1<<perDouble-1)), buckets-1)
}

// low is the smallest distance of a bucket.
func low(i int) uint64 {
	if i < 2<<perDouble {
		return uint64(i)
	}
	shift := i>>perDouble - 1
	return uint64(i&(1<<perDouble-1)+1<<perDouble) << shift
}
