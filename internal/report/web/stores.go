package web

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

const (
	// mostIdle is how many databases are kept open that nobody asks at the time, those asked last, and idleFor how
	// long: each may take half a mebibyte. There may be more while there is less than calm on the heap.
	mostIdle = 40
	calm     = 64 << 20
	// giveBack is after how many closed ones the machine gets their memory back at once.
	giveBack = 40
	idleFor  = 5 * time.Minute
	// openEvery is the shortest time between two openings of a database that grows; lazier is how many times what the
	// last one took, so that a large one is not opened all the time.
	openEvery = 2 * time.Second
	lazier    = 5
	// failedFor is how long a database that could not be opened is not tried again while it stays as it is.
	failedFor = 10 * time.Second
)

// view is an open database of a run, as it was at one time.
type view struct {
	store  *series.Store
	mark   string
	opened time.Time
	cost   time.Duration // of opening it
	used   time.Time     // last
	users  int
	old    bool // there is a newer one, or the run is gone: it is closed after its last user

	making sync.Mutex // guards data
	data   *result.Data
}

// slot is the place of a run's view. Its mutex is held while a view is opened.
type slot struct {
	mu     sync.Mutex
	gone   bool  // and the run with it
	view   *view // may be nil
	failed error
	mark   string // of what failed
	at     time.Time
}

// stores opens the metrics of runs when they are asked for, and again when they have changed.
type stores struct {
	now    func() time.Time
	mu     sync.Mutex // guards the map and the users of views; taken after a slot's
	slots  map[string]*slot
	shut   int // databases, since memory was last given back
	closed bool
}

func newStores(now func() time.Time) *stores { return &stores{now: now, slots: map[string]*slot{}} }

var (
	errClosed = errors.New("the server is stopping")
	errGone   = errors.New("the run was removed")
)

// borrow returns a view of a run's metrics, not much older than now. It must be released.
func (s *stores) borrow(ctx context.Context, b book) (*view, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	place := s.slots[b.dir]
	if place == nil {
		place = &slot{}
		s.slots[b.dir] = place
	}
	s.mu.Unlock()

	place.mu.Lock()
	defer place.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case place.gone:
		return nil, errGone
	}
	mark, now := metricsMark(b.metrics), s.now()
	if v := place.view; v != nil && (v.mark == mark || now.Sub(v.opened) < max(openEvery, lazier*v.cost)) {
		return s.use(v)
	}
	if place.failed != nil && place.mark == mark && now.Sub(place.at) < failedFor {
		return nil, place.failed
	}
	var store *series.Store
	folder, err := result.Open(b.dir)
	if err == nil {
		store, err = collect.OpenMetricsSoFar(ctx, folder)
	}
	if err != nil {
		place.failed, place.mark, place.at = err, mark, now
		return nil, err
	}
	place.failed = nil
	old := place.view
	place.view = &view{store: store, mark: mark, opened: now, cost: s.now().Sub(now)}
	v, err := s.use(place.view)
	s.retire(old)
	if err != nil {
		place.view = nil
		return nil, errors.Join(err, store.Close())
	}
	return v, nil
}

func (s *stores) use(v *view) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	v.users++
	v.used = s.now()
	return v, nil
}

// release gives a view back.
func (s *stores) release(v *view) {
	s.mu.Lock()
	v.users--
	idle, last := v.users == 0, v.users == 0 && v.old
	s.mu.Unlock()
	if last {
		_ = v.store.Close() // it was a copy
	} else if idle && heapNow() > calm {
		s.trim(mostIdle)
	}
}

// retire closes a view when nobody uses it any more; nil is no view.
func (s *stores) retire(v *view) {
	if v == nil {
		return
	}
	s.mu.Lock()
	unused := v.users == 0 && !v.old
	v.old = true
	s.mu.Unlock()
	if unused {
		_ = v.store.Close() // it was a copy
	}
}

// keep closes the databases of runs that are gone, and those that nobody has asked for a while.
func (s *stores) keep(dirs []string) {
	there := map[string]bool{}
	for _, dir := range dirs {
		there[dir] = true
	}
	now := s.now()
	s.mu.Lock()
	var away []*view
	for dir, place := range s.slots {
		if !place.mu.TryLock() { // it is just being opened
			continue
		}
		switch v := place.view; {
		case !there[dir]:
			delete(s.slots, dir)
			away = append(away, v)
			place.gone, place.view = true, nil
		case v != nil && v.users == 0 && now.Sub(v.used) > idleFor:
			away = append(away, v)
			place.view = nil
		}
		place.mu.Unlock()
	}
	s.mu.Unlock()
	for _, v := range away {
		s.retire(v)
	}
}

// trim closes the databases that nobody uses at the time, but for so many that were asked last.
func (s *stores) trim(most int) {
	s.mu.Lock()
	var idle []*slot
	for _, place := range s.slots {
		if !place.mu.TryLock() { // it is just being opened
			continue
		}
		if v := place.view; v != nil && v.users == 0 {
			idle = append(idle, place)
		} else {
			place.mu.Unlock()
		}
	}
	slices.SortFunc(idle, func(a, b *slot) int { return b.view.used.Compare(a.view.used) })
	var away []*view
	for i, place := range idle {
		if i >= most {
			away, place.view = append(away, place.view), nil
		}
		place.mu.Unlock()
	}
	s.shut += len(away)
	enough := s.shut >= giveBack
	if enough {
		s.shut = 0
	}
	s.mu.Unlock()
	for _, v := range away {
		s.retire(v)
	}
	if enough {
		debug.FreeOSMemory()
	}
}

// close closes everything; views in use when they are released.
func (s *stores) close() error {
	s.mu.Lock()
	s.closed = true
	slots := s.slots
	s.slots = map[string]*slot{}
	s.mu.Unlock()
	for _, place := range slots {
		place.mu.Lock()
		s.retire(place.view)
		place.view = nil
		place.mu.Unlock()
	}
	return nil
}

// soFar returns what can be shown of a run that goes on, made once for each view.
func (v *view) soFar(ctx context.Context, folder *result.Folder) (*result.Data, error) {
	v.making.Lock()
	defer v.making.Unlock()
	if v.data != nil {
		return v.data, nil
	}
	data, err := collect.SoFar(ctx, folder, v.store)
	if err == nil {
		v.data = data
	}
	return data, err
}
