package tprocc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll/internal/kit/pgwire"
)

// Caller asks for transactions on a connection in a loop.
type Caller interface {
	// Append appends the request for a transaction.
	Append(dst []byte, in *Input) ([]byte, error)
	// Ended says how a transaction ended, by its answer, or by the error why there is none.
	Ended(in *Input, link *pgwire.Link, err error) (Outcome, error)
}

// seating makes a connection for a loop.
type seating func(context.Context) (*pgwire.Detached, Caller, error)

// Loops drives all users from a few threads, each with a loop over the connections of its own. It is Dialect.Drive for
// dialects whose answers a loop can read.
func (r *Run) Loops(ctx context.Context, connect seating) error {
	threads := make([]*thread, r.Threads)
	for i := range threads {
		threads[i] = &thread{connect: connect, run: r, rec: r.Recorder(i)}
	}
	seats := make([]*seat, len(r.Users))
	for i, u := range r.Users {
		t := threads[i%len(threads)]
		seats[i] = &seat{user: u}
		t.seats = append(t.seats, seats[i])
	}
	defer func() {
		for _, s := range seats {
			if s.fresh != nil {
				s.fresh.Close()
			}
		}
	}()
	if err := together(ctx, len(seats), func(within context.Context, i int) (err error) {
		seats[i].fresh, seats[i].caller, err = connect(within)
		return err
	}); err != nil {
		return err
	}
	r.Begin()
	var working errgroup.Group
	for _, t := range threads {
		working.Go(func() error { return t.serve(ctx) })
	}
	return working.Wait()
}

// seat is where a user sits.
type seat struct {
	user      *User
	due       time.Duration
	fresh     *pgwire.Detached // that no loop has yet
	caller    Caller
	link      *pgwire.Link  // nil while there is none
	connected time.Duration // when it was
	in        *Input        // of the transaction under way; nil for none
}

// thread serves its seats.
type thread struct {
	connect seating
	run     *Run
	rec     *Recorder
	loop    *pgwire.Loop
	seats   []*seat
	waiting []*seat // a heap, the next one first
	busy    int     // transactions under way, and connections
	request []byte
	arrived chan arrival
	making  sync.WaitGroup
	fatal   error
}

// arrival is a connection that was made again, or was not.
type arrival struct {
	seat   *seat
	caller Caller
	fresh  *pgwire.Detached
	err    error
}

func (t *thread) serve(ctx context.Context) (err error) {
	if t.loop, err = pgwire.NewLoop(1); err != nil {
		return err
	}
	t.arrived = make(chan arrival, len(t.seats))
	within, cancel := context.WithCancel(ctx)
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { t.loop.Wake(); close(woken) })
	defer func() {
		cancel()
		if !stop() {
			<-woken
		}
		t.making.Wait() // connections under way end with the context, and wake the loop before it is closed
		close(t.arrived)
		for a := range t.arrived {
			if a.fresh != nil {
				a.fresh.Close()
			}
		}
		t.loop.Close()
	}()
	for i, s := range t.seats {
		if err := t.attach(s, s.fresh); err != nil {
			return err
		}
		s.link.Owner = i
		t.later(s, t.rec.First(s.user))
	}
	for ctx.Err() == nil && t.fatal == nil {
		now := t.run.Now()
		for len(t.waiting) > 0 && t.waiting[0].due <= now {
			t.begin(within, t.pop(), now)
		}
		if t.busy == 0 && len(t.waiting) == 0 {
			return nil
		}
		limit := time.Duration(-1)
		if len(t.waiting) > 0 {
			limit = max(0, t.waiting[0].due-t.run.Now())
		}
		if err := t.loop.Wait(limit, func(k *pgwire.Link, err error) { t.answered(within, k, err) }); err != nil {
			return err
		}
		t.arrivals()
	}
	return errors.Join(t.fatal, ctx.Err())
}

// attach has the loop take a connection for a seat.
func (t *thread) attach(s *seat, fresh *pgwire.Detached) (err error) {
	s.fresh = nil
	s.link, err = t.loop.Add(fresh)
	return err
}

// begin sends a transaction that is due, or connects.
func (t *thread) begin(ctx context.Context, s *seat, now time.Duration) {
	t.busy++
	if s.link == nil {
		t.making.Go(func() {
			fresh, made, err := t.connect(ctx)
			t.arrived <- arrival{s, made, fresh, err}
			t.loop.Wake()
		})
		return
	}
	t.send(ctx, s, now)
}

func (t *thread) send(ctx context.Context, s *seat, now time.Duration) {
	s.in = t.rec.Sent(s.user, now)
	var err error
	if t.request, err = s.caller.Append(t.request[:0], s.in); err != nil {
		t.fatal = err
		return
	}
	if err := s.link.Send(t.request); err != nil {
		t.answered(ctx, s.link, err)
	}
}

// answered takes an answer and sends the user's next transaction when that is due at once. A connection that ends while
// its user types or thinks is no answer: it is made again when the transaction is due that waits.
func (t *thread) answered(ctx context.Context, k *pgwire.Link, err error) {
	s := t.seats[k.Owner]
	if s.in == nil {
		t.rec.Dropped(s.user, err, t.run.Now())
		k.Close()
		s.link = nil
		return
	}
	how, err := s.caller.Ended(s.in, k, err)
	now := t.run.Now()
	due := t.rec.Done(s.user, how, err, now)
	s.in = nil
	t.busy--
	if how == Lost {
		k.Close()
		s.link, due = nil, max(due, Again(s.connected))
	}
	if due <= now && s.link != nil && due < t.run.Duration {
		t.busy++
		t.send(ctx, s, now)
		return
	}
	t.later(s, due)
}

func (t *thread) arrivals() {
	for {
		select {
		case a := <-t.arrived:
			t.busy--
			now := t.run.Now()
			if a.err == nil {
				a.err = t.attach(a.seat, a.fresh)
			}
			if a.err != nil {
				t.later(a.seat, t.rec.Refused(a.seat.user, a.err, now))
				continue
			}
			a.seat.connected = now
			a.seat.caller, a.seat.link.Owner = a.caller, slices.Index(t.seats, a.seat)
			t.later(a.seat, now)
		default:
			return
		}
	}
}

// later has a seat wait until it is due, or end when that is after the end.
func (t *thread) later(s *seat, due time.Duration) {
	s.due = due
	if due >= t.run.Duration {
		return
	}
	h := append(t.waiting, s)
	t.waiting = h
	for i := len(h) - 1; i > 0 && h[i].due < h[(i-1)/2].due; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// pop takes the seat that is due first.
func (t *thread) pop() *seat {
	h := t.waiting
	first := h[0]
	h[0] = h[len(h)-1]
	h[len(h)-1] = nil
	h = h[:len(h)-1]
	t.waiting = h
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].due < h[least].due {
				least = c
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
