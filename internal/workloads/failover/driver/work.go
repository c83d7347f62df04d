// Package failover commits numbered rows on a PostgreSQL that has a standby, has the standby take over when the first
// server is gone, goes on there, and counts which of the commits that were acknowledged are not there.
//
// It stands below the load generator of that name. What is acknowledged is what the server answered "committed": of
// each client the numbers from 1 on, but those whose answer never came, which nobody is held to. It refuses a pair of
// servers of which the second does not follow the first.
package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/result"
)

// WorkCommand is the command line's word for Work; its argument is the file of the job.
const WorkCommand = "failover-worker"

// Kinds of replication.
const (
	Asynchronous = "asynchronous"
	Synchronous  = "synchronous"
)

// Job says what Work does. User, database, port and password are in the environment, as libpq has them.
type Job struct {
	Servers     []string      `json:"servers,omitempty"` // addresses: the first server, and the one that follows it
	Clients     int           `json:"clients"`
	RowBytes    int           `json:"row_bytes"`
	Replication string        `json:"replication"`
	GiveUp      time.Duration `json:"give_up_ns"`     // how long the first server is silent until the second takes over
	Distance    time.Duration `json:"distance_ns"`    // that the stream to the standby takes, one way
	Self        string        `json:"self,omitempty"` // the address of the client machine, for a distance
	Duration    time.Duration `json:"duration_ns"`
}

// Measures of a worker's states. Counts are of commits; times are in seconds and there when a server took over.
const (
	Acknowledged = "acknowledged" // commits that a server answered
	Lost         = "lost"         // of those, the ones that are not there at the end
	InDoubt      = "in_doubt"     // commits whose answer never came
	Kept         = "in_doubt_kept"
	Without      = "without_commits" // from the last answer of the first server to the first of the second
	GivenUp      = "until_given_up"  // of that, until the first server was given up
	Promotion    = "promotion"       // and what the second took to take over
	Reach        = "lost_reach"      // from the acknowledgement of the first lost commit to the last of that server
	Alive        = "given_up_alive"  // from when the first server was given up to its next answer, if it never stopped
)

// Measures are what a job reports besides its commits.
func Measures() (all []result.Measure) {
	for _, m := range []struct {
		name, unit string
		better     result.Direction
		kind       result.Kind
	}{
		{Acknowledged, "commits", result.Higher, result.Count}, {Lost, "commits", result.Lower, result.Single},
		{InDoubt, "commits", "", result.Count}, {Kept, "commits", "", result.Single},
		{Without, "s", result.Lower, result.Single}, {GivenUp, "s", result.Lower, result.Single},
		{Promotion, "s", result.Lower, result.Single}, {Reach, "s", result.Lower, result.Single},
		{Alive, "s", "", result.Single},
	} {
		all = append(all, result.Measure{Name: m.name, Unit: m.unit, Better: m.better, Kind: m.kind})
	}
	return all
}

// Work does the job that it is given as JSON and prints a worker.State every second and at the end.
func Work(ctx context.Context, config io.Reader, out io.Writer) error {
	w := &work{out: out, values: map[string]float64{}}
	if err := json.NewDecoder(io.LimitReader(config, 1<<20)).Decode(&w.job); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if len(w.job.Servers) != 2 || w.job.Clients < 1 || w.job.GiveUp <= 0 || w.job.Duration <= 0 {
		return errors.New("job: it wants two servers, clients, and times")
	}
	l, err := w.prepare(ctx)
	if l != nil {
		defer l.close()
	}
	if err != nil {
		return fmt.Errorf("before anything was committed, so a fault may have come too early: %w", err)
	}
	w.began = time.Now()
	load, done := context.WithDeadline(ctx, w.began.Add(w.job.Duration))
	defer done()
	var watching, committing sync.WaitGroup
	// What has been sent is waited for beyond the end: it is in doubt for no other reason than a fault.
	waiting, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	context.AfterFunc(load, func() { time.AfterFunc(w.job.GiveUp, over) })
	first, gone := context.WithCancel(waiting)
	defer gone()
	w.gone = gone
	watching.Go(func() { w.watch(load, first) })
	for i := range w.job.Clients {
		c := &client{number: i, doubt: map[int64]bool{}}
		w.clients = append(w.clients, c)
		committing.Go(func() { w.commit(load, [2]context.Context{first, waiting}, c) })
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		w.tellUntil(load)
	}()
	committing.Wait()
	done()
	watching.Wait()
	<-told
	if err = w.failed; err == nil && ctx.Err() == nil {
		err = w.count(ctx)
	}
	w.tell(true)
	return errors.Join(err, w.unsaid)
}

// work is a job under way.
type work struct {
	job   Job
	out   io.Writer
	began time.Time

	mu      sync.Mutex
	clients []*client
	server  int                // that commits go to
	gone    context.CancelFunc // ends what waits for the first server
	seen    time.Time          // when the first server answered whoever watches it last
	reached time.Time          // when its machine took a connection last
	missed  time.Time          // when a connection was tried last that it did not take
	times   hist.Histogram
	errors  uint64
	values  map[string]float64
	last    time.Time // when the first server answered a commit last
	first   time.Time // and the second for the first time
	failed  error
	unsaid  error
	said    time.Duration
}

// client is one connection's ledger. Only its own goroutine changes it while the load goes on.
type client struct {
	number int
	sent   int64          // numbers from 1 on
	doubt  map[int64]bool // of those, whose answer never came
	recent []stamp        // the last acknowledgements of the first server, bounded
}

type stamp struct {
	number int64
	at     time.Time
}

// mostRecent bounds what a client keeps of when commits were acknowledged.
const mostRecent = 1 << 16

// at is the server that commits go to now.
func (w *work) at() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.server
}

// committed reports whether the first server has acknowledged anything yet.
func (w *work) committed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.last.IsZero()
}

// again is how long is waited before another attempt to connect.
const again = 20 * time.Millisecond

// commit inserts rows until the time is over, on whichever server it is told, each for as long as serving has it.
func (w *work) commit(ctx context.Context, serving [2]context.Context, c *client) {
	for ctx.Err() == nil {
		at := w.at()
		s, err := w.open(serving[at], at)
		if err != nil {
			pause(ctx, again)
			continue
		}
		for ctx.Err() == nil && at == w.at() {
			c.sent++
			began := time.Now()
			err := s.insert(serving[at], w.patience(), c.number, c.sent)
			if err != nil {
				c.doubt[c.sent] = true
				w.inDoubt(err)
				break
			}
			w.acknowledge(c, at, began)
		}
		s.close()
	}
}

// patient is how many times give_up a server may be silent whose machine still takes connections.
const patient = 5

func (w *work) patience() time.Duration { return patient * w.job.GiveUp }

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (w *work) acknowledge(c *client, at int, began time.Time) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times.Add(uint64(max(1, now.Sub(began))), 1)
	w.values[Acknowledged]++
	if at > 0 {
		if w.first.IsZero() {
			w.first = now
			w.values[Without] = now.Sub(w.last).Seconds()
		}
		return
	}
	w.last = now
	if c.recent = append(c.recent, stamp{c.sent, now}); len(c.recent) == 2*mostRecent {
		c.recent = append(c.recent[:0], c.recent[mostRecent:]...)
	}
}

// inDoubt counts a commit that was sent and not answered, or answered with an error.
func (w *work) inDoubt(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[InDoubt]++
	w.errors++
	if w.failed == nil && wrong(err) {
		w.failed = err
	}
}

// often is how often the first server is looked at.
const often = 100 * time.Millisecond

// watch has the second server take over when the first has been silent for so long after it had committed something:
// to clients and to whoever asks. A server whose machine takes connections meanwhile is slow, and is given up later.
func (w *work) watch(ctx, first context.Context) {
	asking, enough := context.WithCancel(first)
	var both sync.WaitGroup
	both.Go(func() { w.ask(asking) })
	both.Go(func() { w.reach(asking) })
	defer func() {
		enough()
		both.Wait()
	}()
	w.answered(time.Now())
	for ; ctx.Err() == nil; pause(ctx, often) {
		silent, unreached := w.silence()
		if silent < w.job.GiveUp || unreached < w.job.GiveUp && silent < w.patience() {
			continue
		}
		if err := w.takeOver(ctx); err != nil {
			w.mu.Lock()
			w.failed = err
			w.mu.Unlock()
			return
		}
		enough()
		w.look(ctx, time.Now())
		return
	}
}

// ask asks the first server every little while whether it is there.
func (w *work) ask(ctx context.Context) {
	var s *session
	defer func() { s.close() }()
	for ; ctx.Err() == nil; pause(ctx, often) {
		err := s.ask(ctx, w.patience())
		if err != nil {
			s.close()
			if s, err = w.open(ctx, 0); err != nil {
				s = nil
			}
		}
		if err == nil || !w.committed() {
			w.answered(time.Now())
		}
	}
}

// answered notes that the first server was there.
func (w *work) answered(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = at
}

// silence is for how long the first server has said nothing to anyone, and its machine has taken no connection: not at
// all while none was tried in vain since its last answer, as where this program itself is held up.
func (w *work) silence() (silent, unreached time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.seen
	if w.last.After(last) {
		last = w.last
	}
	if w.missed.Before(last) || w.missed.Before(w.reached) {
		return time.Since(last), 0
	}
	return time.Since(last), time.Since(w.reached)
}

// reach sees whether the first server's machine takes connections, when the server has been silent for a while.
func (w *work) reach(ctx context.Context) {
	d := net.Dialer{Timeout: w.job.GiveUp / 2}
	for ; ctx.Err() == nil; pause(ctx, often) {
		if silent, _ := w.silence(); silent < w.job.GiveUp/2 {
			continue
		}
		began := time.Now()
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(w.job.Servers[0], serverPort()))
		if err == nil {
			_ = conn.Close() // nothing is asked
		}
		w.mu.Lock()
		if err == nil {
			w.reached = began
		} else {
			w.missed = began
		}
		w.mu.Unlock()
	}
}

// look sees, until the load ends, whether the first server that was given up answers and has been up all the time.
func (w *work) look(ctx context.Context, givenUp time.Time) {
	for ; ctx.Err() == nil; pause(ctx, time.Second) {
		s, err := w.open(ctx, 0)
		if err != nil {
			continue
		}
		up, err := s.text(ctx, "select extract(epoch from clock_timestamp() - pg_postmaster_start_time())")
		s.close()
		if seconds, wrong := strconv.ParseFloat(up, 64); err == nil && wrong == nil {
			if since := time.Since(givenUp).Seconds(); seconds > since {
				w.mu.Lock()
				w.values[Alive] = since
				w.mu.Unlock()
			}
			return
		}
	}
}

// takeOver has the second server take over.
func (w *work) takeOver(ctx context.Context) error {
	began := time.Now()
	if err := w.promote(ctx); err != nil {
		return fmt.Errorf("the standby at %s did not take over: %w", w.job.Servers[1], err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = 1
	w.gone()
	// A server that answered while the other one took over was given up before its last answer.
	w.values[GivenUp] = max(0, began.Sub(w.last).Seconds())
	w.values[Promotion] = time.Since(began).Seconds()
	return nil
}

// count holds the server that commits went to last to all that was acknowledged.
func (w *work) count(ctx context.Context) error {
	at := w.at()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	s, err := w.connect(ctx, at)
	if err != nil {
		return fmt.Errorf("the ledger cannot be read back from %s: %w", w.job.Servers[at], err)
	}
	defer s.close()
	var lost, kept float64
	var earliest time.Time
	for _, c := range w.clients {
		there, err := s.numbers(ctx, c)
		if err != nil {
			return fmt.Errorf("the ledger cannot be read back from %s: %w", w.job.Servers[at], err)
		}
		gone := c.lost(there)
		lost += float64(len(gone))
		for n := range c.doubt {
			if there[n] {
				kept++
			}
		}
		for _, r := range c.recent {
			if len(gone) > 0 && r.number >= gone[0] && (earliest.IsZero() || r.at.Before(earliest)) {
				earliest = r.at
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[Lost], w.values[Kept] = lost, kept
	if !earliest.IsZero() {
		w.values[Reach] = w.last.Sub(earliest).Seconds()
	}
	return nil
}

// lost are the numbers that were acknowledged and are not there, in order.
func (c *client) lost(there map[int64]bool) (gone []int64) {
	for n := int64(1); n <= c.sent; n++ {
		if !c.doubt[n] && !there[n] {
			gone = append(gone, n)
		}
	}
	return gone
}

func (w *work) tellUntil(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.tell(false)
		}
	}
}

// tell prints how far the job has come. What is lost is known at the end.
func (w *work) tell(final bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = max(w.said+1, time.Since(w.began))
	s := worker.State{Elapsed: w.said, Began: w.began, Operations: []worker.Counts{{Times: w.times.Clone()}},
		Errors: w.errors, CPUSeconds: spent(), Final: final}
	for _, m := range Measures() {
		v, ok := w.values[m.Name]
		if !ok && m.Kind == result.Single {
			s.Values = append(s.Values, nil)
			continue
		}
		s.Values = append(s.Values, &v)
	}
	w.unsaid = errors.Join(w.unsaid, json.NewEncoder(w.out).Encode(s))
}

func spent() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
