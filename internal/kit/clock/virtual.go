package clock

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// Virtual is a clock that runs its goroutines one at a time and, when all of them sleep, jumps to the earliest
// wake-up. Wake-ups due at the same moment happen in the order in which the sleeps began, so a program that draws no
// outside randomness behaves identically every time.
//
// The goroutine that calls NewVirtual is the clock's first; all others must be started with Group.Go. Each must
// give way only through Sleep or Group.Wait. In particular no mutex may be held across either of them. Now may be
// called from anywhere. If every goroutine waits for another one, the clock panics rather than hang: that is a
// programmer's error.
type Virtual struct {
	mu       sync.Mutex
	now      time.Time
	seq      uint64
	current  *task
	ready    []*task // runnable now, in order
	sleepers sleepHeap
	watched  map[<-chan struct{}]*watch
	watches  []*watch // those of watched: at thousands of contexts a list is far quicker to go through than a map
}

// watch is the set of sleepers that one context can cancel.
type watch struct {
	ctx   context.Context
	done  <-chan struct{} // of ctx
	tasks map[*task]struct{}
	index int // in watches
}

type task struct {
	wake  chan struct{}
	until time.Time
	seq   uint64
	index int // in the heap, -1 outside
	done  <-chan struct{}
}

var _ Clock = (*Virtual)(nil)

// NewVirtual returns a clock standing at start, owned by the calling goroutine.
func NewVirtual(start time.Time) *Virtual {
	v := &Virtual{now: start.UTC().Round(0), watched: map[<-chan struct{}]*watch{}}
	v.current = newTask()
	return v
}

func newTask() *task { return &task{wake: make(chan struct{}, 1), index: -1} }

// Now implements Clock.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Sleep implements Clock. A cancelled context wakes its sleepers at the moment of the cancellation, when the goroutine
// that cancelled next gives way.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v.mu.Lock()
	me := v.current
	v.seq++
	me.until, me.seq = v.now.Add(max(d, 0)), v.seq
	heap.Push(&v.sleepers, me)
	v.watch(ctx, me)
	v.giveWay(me)
	return ctx.Err()
}

// giveWay hands control to the next goroutine and returns when it comes back to me. It is called with the lock held and
// returns with it released.
func (v *Virtual) giveWay(me *task) {
	next := v.next()
	v.current = next
	v.mu.Unlock()
	if next == me {
		return
	}
	next.wake <- struct{}{}
	if me != nil {
		<-me.wake
	}
}

// next picks the goroutine to run: the cancelled and the ready ones first, else the earliest sleeper.
func (v *Virtual) next() *task {
	v.releaseCancelled()
	if len(v.ready) > 0 {
		t := v.ready[0]
		v.ready[0] = nil
		v.ready = v.ready[1:]
		return t
	}
	if len(v.sleepers) == 0 {
		v.mu.Unlock()
		panic("clock: every goroutine of the virtual clock waits for another one")
	}
	t := heap.Pop(&v.sleepers).(*task)
	v.unwatch(t)
	if t.until.After(v.now) {
		v.now = t.until
	}
	return t
}

func (v *Virtual) watch(ctx context.Context, t *task) {
	t.done = ctx.Done()
	if t.done == nil {
		return
	}
	w := v.watched[t.done]
	if w == nil {
		w = &watch{ctx: ctx, done: t.done, tasks: map[*task]struct{}{}, index: len(v.watches)}
		v.watched[t.done] = w
		v.watches = append(v.watches, w)
	}
	w.tasks[t] = struct{}{}
}

func (v *Virtual) unwatch(t *task) {
	if w := v.watched[t.done]; w != nil {
		if delete(w.tasks, t); len(w.tasks) == 0 {
			v.drop(w)
		}
	}
}

// drop forgets a watch; the last of the list takes its place.
func (v *Virtual) drop(w *watch) {
	delete(v.watched, w.done)
	last := len(v.watches) - 1
	v.watches[w.index] = v.watches[last]
	v.watches[w.index].index = w.index
	v.watches[last] = nil
	v.watches = v.watches[:last]
}

// releaseCancelled makes the sleepers of cancelled contexts ready, oldest sleep first. It looks at every context that
// anybody sleeps with (one per run and per job): nothing tells of a cancellation at the moment it happens and in a
// settled order.
func (v *Virtual) releaseCancelled() {
	var freed []*task
	for i := len(v.watches) - 1; i >= 0; i-- { // backwards: what takes a dropped one's place has been looked at
		w := v.watches[i]
		if w.ctx.Err() == nil {
			continue
		}
		for t := range w.tasks {
			heap.Remove(&v.sleepers, t.index)
			freed = append(freed, t)
		}
		v.drop(w)
	}
	slices.SortFunc(freed, func(a, b *task) int { return cmp.Compare(a.seq, b.seq) })
	v.ready = append(v.ready, freed...)
}

// Group implements Clock.
func (v *Virtual) Group() Group { return &virtualGroup{clock: v} }

type virtualGroup struct {
	clock   *Virtual
	running int
	waiting []*task
}

// Go makes f ready to run; it starts when the caller next gives way.
func (g *virtualGroup) Go(f func()) {
	v := g.clock
	t := newTask()
	v.mu.Lock()
	g.running++
	v.ready = append(v.ready, t)
	v.mu.Unlock()
	go func() {
		<-t.wake
		defer g.end()
		f()
	}()
}

func (g *virtualGroup) end() {
	v := g.clock
	v.mu.Lock()
	if g.running--; g.running == 0 {
		v.ready = append(v.ready, g.waiting...)
		g.waiting = nil
	}
	v.giveWay(nil)
}

// Wait implements Group.
func (g *virtualGroup) Wait() {
	v := g.clock
	v.mu.Lock()
	if g.running == 0 {
		v.mu.Unlock()
		return
	}
	me := v.current
	g.waiting = append(g.waiting, me)
	v.giveWay(me)
}

// sleepHeap orders sleepers by wake-up, then by the order of the sleeps.
type sleepHeap []*task

func (h sleepHeap) Len() int           { return len(h) }
func (h sleepHeap) Less(i, j int) bool { return sooner(h[i], h[j]) }
func (h sleepHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *sleepHeap) Push(x any) {
	t := x.(*task)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *sleepHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}

func sooner(a, b *task) bool {
	if !a.until.Equal(b.until) {
		return a.until.Before(b.until)
	}
	return a.seq < b.seq
}
