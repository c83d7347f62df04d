package vioperf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/kit/regular"
)

// file is written by one thread.
type file interface {
	WriteAt(p []byte, offset int64) (int, error)
	ReadAt(p []byte, offset int64) (int, error)
	Sync() error
	// Forget has the next reads come from the device; the error says why they may not.
	Forget() error
	Close() error
}

// run is one run while it writes.
type run struct {
	o        Options
	maker    maker
	threads  []*thread
	deadline time.Time
	begin    time.Time
	due      time.Duration // between the blocks of a thread, with a rate; 0 without one
	room     atomic.Int64  // bytes by which files may still grow
	wrapped  atomic.Int64  // nanoseconds after begin at which a thread first wrapped, 0 never
	bytes    atomic.Int64  // written so far
	refused  atomic.Pointer[error]
	last     atomic.Int64 // nanoseconds after begin at which a block was last completed

	mu    sync.Mutex
	ended Ending // "" while it goes on
	err   error  // why it ended so, where there is more to say
	// ending is closed when it has ended; see wake.
	ending chan struct{}
}

// end ends the run: no further block is issued. The first reason counts. A thread's lock may be held.
func (r *run) end(why Ending, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == "" {
		r.ended, r.err = why, err
		close(r.ending)
	}
}

// wake tells the threads that the run has ended. No thread's lock may be held.
func (r *run) wake() {
	for _, t := range r.threads {
		t.mu.Lock()
		t.finish()
		t.mu.Unlock()
	}
}

// thread writes one file, or one part of a disk, from its start on. Several workers do it: while some wait for the
// storage, another makes the next block. Each block is issued in order of its number, so that the file always extends.
type thread struct {
	r      *run
	number int
	name   string // of the file, for messages
	file   file
	start  int64 // where the part begins, in bytes
	size   int64 // bytes of the part; 0: a file of its own, which grows

	mu          sync.Mutex
	waiting     map[int64]chan<- struct{} // workers that wait to issue a block, by its number
	next        int64                     // number of the block to be made next
	turn        int64                     // number of the block to be issued next
	outstanding int                       // blocks issued and not completed
	around      int64                     // blocks after which it begins at the start again; 0: not yet known
	// late: blocks from around up to this one were issued before that was known: they stand beyond
	late     int64
	failed   map[int64]bool // numbers of blocks whose write failed, of those that are not beyond
	over     bool           // the run has ended
	blocks   uint64
	service  hist.Histogram
	response hist.Histogram // with a rate
}

func newThread(r *run, number int, name string, f file, start, size int64) *thread {
	return &thread{r: r, number: number, name: name, file: f, start: start, size: size, failed: map[int64]bool{},
		waiting: map[int64]chan<- struct{}{}}
}

// at is the offset at which block number n is written.
func (t *thread) at(n int64) int64 {
	if t.around > 0 {
		n %= t.around
	}
	return t.start + n*int64(t.r.o.BlockBytes)
}

// buffer is memory for one block, prepared.
type buffer struct {
	memory []byte
	number uint32
}

// work makes blocks and writes them until the run is over. Several call it at once, each with a buffer.
func (t *thread) work(ctx context.Context, b buffer) {
	turn := make(chan struct{}, 1)
	for {
		t.mu.Lock()
		n := t.next
		t.next++
		over := t.over
		t.mu.Unlock()
		if over {
			return
		}
		t.r.maker.stamp(b.memory, b.number, t.number, n)
		offset, ok := t.issue(ctx, n, turn)
		if !ok {
			return
		}
		began := time.Now()
		_, err := t.file.WriteAt(b.memory, offset)
		t.done(n, began, time.Now(), err)
	}
}

// wake wakes the worker whose turn it is, if it waits and may issue its block, and no other. The lock is held.
func (t *thread) wake() {
	if worker, ok := t.waiting[t.turn]; ok && t.outstanding < t.r.o.QueueDepth {
		delete(t.waiting, t.turn)
		worker <- struct{}{}
	}
}

// finish has no more blocks of the thread issued. The lock is held.
func (t *thread) finish() {
	t.over = true
	for n, worker := range t.waiting {
		delete(t.waiting, n)
		worker <- struct{}{}
	}
}

// issue waits until block number n may be written, and says where; false when the run is over. The channel is the
// worker's, with room for one.
func (t *thread) issue(ctx context.Context, n int64, turn chan struct{}) (offset int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.over && (t.turn != n || t.outstanding >= t.r.o.QueueDepth) {
		t.waiting[n] = turn
		t.mu.Unlock()
		<-turn
		t.mu.Lock()
	}
	if t.over {
		return 0, false
	}
	// It is this worker's turn: nobody else changes what the turn is about, also while the lock is given back below.
	if t.r.due > 0 {
		if wait := time.Until(t.dueAt(n)); wait > 0 {
			t.mu.Unlock()
			sleep(ctx, min(wait, time.Until(t.r.deadline)))
			t.mu.Lock()
		}
	}
	if t.around == 0 && !t.room(n) && !t.full(n) {
		return 0, false
	}
	if t.over || ctx.Err() != nil || !time.Now().Before(t.r.deadline) {
		t.finish() // the time is over for all of this thread
		return 0, false
	}
	offset = t.at(n)
	t.turn++
	t.outstanding++
	t.wake()
	return offset, true
}

// dueAt is when block number n is due with a rate: the threads take turns.
func (t *thread) dueAt(n int64) time.Time {
	return t.r.begin.Add(time.Duration(n)*t.r.due + t.r.due*time.Duration(t.number)/time.Duration(t.r.o.Threads))
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// room reports whether there is room for block number n behind those before it.
func (t *thread) room(n int64) bool {
	if t.size > 0 {
		return (n+1)*int64(t.r.o.BlockBytes) <= t.size
	}
	return t.r.claim()
}

// claim takes the room for one more block, if there is some left.
func (r *run) claim() bool {
	size := int64(r.o.BlockBytes)
	if r.room.Add(-size) >= 0 {
		return true
	}
	r.room.Add(size)
	return false
}

// full does what is to be done when the file may not grow beyond block number n: the run ends, or the thread goes on
// at the file's start. It is called with the lock held and reports whether it goes on.
func (t *thread) full(n int64) bool {
	if t.r.o.WhenFull == Stop {
		t.r.end(Full, nil)
		return false
	}
	if n < int64(t.r.o.QueueDepth)+1 {
		t.r.end(Full, fmt.Errorf("%s: there was room for %d blocks of it only, fewer than are outstanding at once: "+
			"it cannot be wrapped", t.name, n))
		return false
	}
	t.around, t.late = n, t.turn
	t.r.wrapped.CompareAndSwap(0, max(1, int64(time.Since(t.r.begin))))
	return true
}

// isBeyond reports whether block number n was issued at the end of a file that could not grow to it.
func (t *thread) isBeyond(n int64) bool { return t.late > 0 && n >= t.around && n < t.late }

// noRoom reports whether an error says that the file cannot grow: the disk, the quota or the longest file is reached.
func noRoom(err error) bool {
	return regular.Full(err) || errors.Is(err, syscall.EFBIG)
}

// done takes what became of block number n.
func (t *thread) done(n int64, began, now time.Time, err error) {
	t.mu.Lock()
	t.outstanding--
	if err == nil {
		t.blocks++
		t.service.Add(uint64(max(0, now.Sub(began))), 1)
		if t.r.due > 0 {
			t.response.Add(uint64(max(0, now.Sub(t.dueAt(n)))), 1)
		}
		t.wake()
		t.mu.Unlock()
		t.r.bytes.Add(int64(t.r.o.BlockBytes))
		t.r.completed(now.Sub(t.r.begin))
		return
	}
	grows := t.size == 0 && (t.around == 0 || n < t.late)
	if !t.isBeyond(n) {
		t.failed[n] = true
	}
	switch {
	case grows && noRoom(err):
		t.r.refused.CompareAndSwap(nil, &err)
		if t.around == 0 { // else one that was outstanding at the same time has said it
			t.full(n)
		}
	default:
		t.r.end(Failed, fmt.Errorf("block %d of thread %d, at byte %d: %w", n, t.number+1, t.at(n), err))
	}
	t.wake()
	t.mu.Unlock()
}

// completed notes when a block was last completed.
func (r *run) completed(at time.Duration) {
	for {
		before := r.last.Load()
		if int64(at) <= before || r.last.CompareAndSwap(before, int64(at)) {
			return
		}
	}
}
