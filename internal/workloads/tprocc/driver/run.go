package tprocc

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll/hist"
)

// lateAfter is how long after it was due a transaction may be sent before it counts as late.
const lateAfter = 10 * time.Millisecond

// MostTries is how often a transaction is tried that the server undid for another's sake.
const MostTries = 10

// again is the pause before a lost connection is made again, and after a transaction that met a full disk.
const again = time.Second

// Run is users at work on a schema for a time.
type Run struct {
	Users    []*User
	Keying   bool // they type and think; else the next transaction follows at once
	Duration time.Duration
	Threads  int       // that drive them, where the dialect has a choice
	Words    io.Writer // told of the first error of each kind, by one goroutine at a time
	Untimed  bool      // keep no times, to measure what keeping them costs

	begin     time.Time
	cpu       float64 // seconds that this process had used then
	begun     chan struct{}
	once      sync.Once
	recorders []*Recorder
	speaking  sync.Mutex
}

func (r *Run) say(format string, args ...any) {
	r.speaking.Lock()
	defer r.speaking.Unlock()
	fmt.Fprintf(r.Words, format, args...)
}

// NewRun is a run of so many users on so many warehouses, numbered from first, which is 0 but where other machines have
// the users before. The same seed gives every user the same inputs.
func NewRun(first, users, warehouses, threads int, seed uint64) *Run {
	r := &Run{Threads: max(1, min(threads, users)), begun: make(chan struct{}), Words: io.Discard}
	for n := range users {
		r.Users = append(r.Users, NewUser(first+n, warehouses, seed))
	}
	for range r.Threads {
		r.recorders = append(r.recorders, &Recorder{run: r})
	}
	return r
}

// Begin is called by Dialect.Drive when all users are connected: time begins now.
func (r *Run) Begin() {
	r.once.Do(func() { r.begin, r.cpu = time.Now(), cpuSeconds(); close(r.begun) })
}

// CPUSeconds is the processor time of this process since Begin: connecting is no part of it.
func (r *Run) CPUSeconds() float64 { return cpuSeconds() - r.cpu }

// Now is the time since Begin.
func (r *Run) Now() time.Duration { return time.Since(r.begin) }

// Recorder is that of a thread.
func (r *Run) Recorder(thread int) *Recorder { return r.recorders[thread] }

// turn is where a user is: when what it does next is due, or was, from when its time counts.
type turn struct {
	due   time.Duration
	tries int
}

// Recorder keeps what the users of a thread did. Its methods may be called from several goroutines.
type Recorder struct {
	run *Run
	mu  sync.Mutex
	now Counts
}

// Counts are what users did since the beginning.
type Counts struct {
	Times     [Kinds]hist.Histogram // nanoseconds, of what ended as it was to
	Committed [Kinds]uint64
	Outcomes  [outcomes]uint64 // of every try
	GivenUp   uint64           // after MostTries
	Late      uint64           // sent more than 10 ms after they were due, with Keying
	After     uint64           // new orders committed after the end, which nothing else counts
	Unknown   uint64           // new orders whose connection was lost under them
}

func (c *Counts) add(o *Counts) {
	for k := range c.Times {
		c.Times[k].Merge(&o.Times[k])
		c.Committed[k] += o.Committed[k]
	}
	for i := range c.Outcomes {
		c.Outcomes[i] += o.Outcomes[i]
	}
	c.GivenUp += o.GivenUp
	c.Late += o.Late
	c.After += o.After
	c.Unknown += o.Unknown
}

// Errors are transactions that were not done.
func (c *Counts) Errors() uint64 {
	return c.GivenUp + c.Outcomes[Lost] + c.Outcomes[OutOfSpace] +
		c.Outcomes[Cancelled] + c.Outcomes[Failed]
}

// Retries are tries after the first.
func (c *Counts) Retries() uint64 {
	return c.Outcomes[Deadlock] + c.Outcomes[Serialization] - c.GivenUp
}

// Counts are those of all threads.
func (r *Run) Counts() *Counts {
	sum := &Counts{}
	for _, one := range r.recorders {
		one.mu.Lock()
		sum.add(&one.now)
		one.mu.Unlock()
	}
	return sum
}

// First draws a user's first transaction and says when it is due: with keying somewhere in the time that one takes.
func (rec *Recorder) First(u *User) (due time.Duration) {
	u.Next()
	u.turn = turn{}
	if rec.run.Keying {
		u.due = time.Duration(u.random.between(0, int(u.in.Kind.Keying()+u.in.Kind.Think())))
	}
	return u.due
}

// Sent says that a user's transaction goes out now, and what it is.
func (rec *Recorder) Sent(u *User, now time.Duration) *Input {
	u.tries++
	switch {
	case u.tries > 1:
	case !rec.run.Keying:
		u.due = now // what came before, as a connection that had to be made again, is no part of a service time
	case now-u.due > lateAfter:
		rec.mu.Lock()
		rec.now.Late++
		rec.mu.Unlock()
	}
	return &u.in
}

// Done takes how the transaction ended and says when the user's next one, or the same one again, is due.
func (rec *Recorder) Done(u *User, how Outcome, err error, now time.Duration) (due time.Duration) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	c, kind := &rec.now, u.in.Kind
	if now > rec.run.Duration && how == Committed && kind == NewOrder {
		c.After++
	}
	if now <= rec.run.Duration {
		if how != Committed && how != RolledBack && c.Outcomes[how] == 0 {
			rec.run.say("first %s, in %s of warehouse %d: %v\n", how, kind, u.Warehouse, err)
		}
		c.Outcomes[how]++
	}
	if how == Lost && kind == NewOrder {
		c.Unknown++
	}
	switch {
	case (how == Deadlock || how == Serialization) && u.tries < MostTries:
		return now + time.Duration(u.random.between(0, u.tries*int(time.Millisecond)))
	case how == Deadlock || how == Serialization:
		c.GivenUp++
	case (how == Committed || how == RolledBack) && now <= rec.run.Duration:
		if !rec.run.Untimed {
			c.Times[kind].Add(uint64(max(now-u.due, 0)), 1)
		}
		if how == Committed {
			c.Committed[kind]++
		}
	}
	u.due, u.tries = now, 0
	if how == OutOfSpace { // room may be made; until then more tries only fill the server's log
		u.due += again
	}
	u.Next()
	if rec.run.Keying {
		mean := float64(kind.Think())
		think := -mean * math.Log(1-float64(u.random.Uint64()>>11)/(1<<53))
		u.due += time.Duration(min(think, thinkTruncatedAt*mean)) + u.in.Kind.Keying()
	}
	return u.due
}

// Refused counts a connection that could not be made again, and says when to try next.
func (rec *Recorder) Refused(u *User, err error, now time.Duration) (due time.Duration) {
	rec.without(Refused, u, err)
	return Again(now)
}

// Again is when a connection that was made, or tried, at a time may be made anew.
func Again(tried time.Duration) time.Duration { return tried + again }

// Dropped counts a connection that ended while no transaction was under way on it.
func (rec *Recorder) Dropped(u *User, err error, now time.Duration) {
	if now <= rec.run.Duration {
		rec.without(Lost, u, err)
	}
}

// without counts what happened to a connection without a transaction.
func (rec *Recorder) without(how Outcome, u *User, err error) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.now.Outcomes[how] == 0 {
		rec.run.say("first %s, warehouse %d: %v\n", how, u.Warehouse, err)
	}
	rec.now.Outcomes[how]++
}

// String returns what measures call the outcome.
func (o Outcome) String() string {
	return [...]string{"committed", "rolled back", "deadlock", "serialization failure", "lost connection",
		"refused connection", "error out of space", "cancelled transaction", "other error"}[o]
}

// Block drives each user from a goroutine of its own over a connection of its own. It is Dialect.Drive for terminals
// that wait for their answers.
func (r *Run) Block(ctx context.Context, connect func(context.Context) (Terminal, error)) error {
	terminals := make([]Terminal, len(r.Users))
	defer func() {
		for _, t := range terminals {
			if t != nil {
				_ = t.Close()
			}
		}
	}()
	if err := together(ctx, len(terminals), func(_ context.Context, i int) (err error) {
		terminals[i], err = connect(ctx)
		return err
	}); err != nil {
		return err
	}
	r.Begin()
	var working sync.WaitGroup
	for i, u := range r.Users {
		working.Go(func() { terminals[i] = r.work(ctx, r.recorders[i%r.Threads], u, terminals[i], connect) })
	}
	working.Wait()
	return nil
}

// together makes so many connections, some at a time, until one fails; within ends then, and with the last of them.
func together(ctx context.Context, n int, connect func(within context.Context, i int) error) error {
	connecting, within := errgroup.WithContext(ctx)
	connecting.SetLimit(16)
	for i := range n {
		connecting.Go(func() error {
			if within.Err() != nil {
				return nil
			}
			return connect(within, i)
		})
	}
	return connecting.Wait()
}

// work is a user's life. It gives the terminal that is open at its end, nil for none.
func (r *Run) work(ctx context.Context, rec *Recorder, u *User, t Terminal,
	connect func(context.Context) (Terminal, error)) Terminal {
	var connected time.Duration
	for due := rec.First(u); due < r.Duration && pause(ctx, due-r.Now()); {
		if t == nil {
			connected = r.Now()
			made, err := connect(ctx)
			if err != nil {
				due = rec.Refused(u, err, r.Now())
				continue
			}
			t = made
			if r.Now() >= r.Duration {
				break
			}
		}
		how, err := t.Do(rec.Sent(u, r.Now()))
		if ctx.Err() != nil {
			break
		}
		due = rec.Done(u, how, err, r.Now())
		if how == Lost {
			_ = t.Close()
			t, due = nil, max(due, Again(connected))
		}
	}
	return t
}

// pause is false when ctx ends it.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Begun is closed when all users are connected.
func (r *Run) Begun() <-chan struct{} { return r.begun }
