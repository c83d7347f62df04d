package pgload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
)

// runner is a load while it goes on.
type runner struct {
	job        *Job
	program    *program
	server     *pgwire.Server
	weights    int
	began      time.Time
	known      []atomic.Pointer[pgwire.Statement] // by statement: with the types that the server told
	connecting sync.WaitGroup
	ctx        context.Context

	mu   sync.Mutex
	said map[string]bool
	tell func(string)
}

func (r *runner) now() int64 { return int64(time.Since(r.began)) }

// mostSaid is how many different errors are told.
const mostSaid = 10

// say tells of an error, each once.
func (r *runner) say(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := err.Error(); !r.said[text] && len(r.said) < mostSaid {
		r.said[text] = true
		r.tell(text)
	}
}

// detached makes a connection for a loop.
func (r *runner) detached() (*pgwire.Detached, error) {
	conn, err := r.server.Connect(r.ctx)
	if err != nil {
		return nil, err
	}
	return conn.Detach()
}

// Run runs the job until its time is over or ctx is done, and gives report about every interval and at the end, from
// one goroutine. Tell is told of connections that were lost or refused meanwhile. The error says why the load could not
// begin, or could not go on.
func Run(ctx context.Context, job Job, server *pgwire.Server, interval time.Duration, report func(worker.State),
	tell func(string)) error {
	program, err := job.compile()
	if err != nil {
		return err
	}
	if job.Duration <= 0 && !job.Load {
		return errors.New("the load ends with its time: give a duration of more than 0")
	}
	began := time.Now()
	if err := job.initialise(ctx, server, tell); err != nil || job.Load {
		if err == nil {
			report(loaded(began))
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &runner{job: &job, program: program, server: server, ctx: ctx, said: map[string]bool{}, tell: tell,
		known: make([]atomic.Pointer[pgwire.Statement], len(program.statements))}
	for _, s := range program.scripts {
		r.weights += s.weight
	}
	if job.Seed == 0 {
		job.Seed = rand.Uint64()
	}
	ready, err := r.connectAll()
	defer r.connecting.Wait()
	defer cancel()
	if err != nil {
		return err
	}
	if runtime.GOMAXPROCS(0) <= job.Threads { // one more than hold theirs
		runtime.GOMAXPROCS(job.Threads + 1)
	}
	return r.threads(ctx, cancel, ready, interval, report)
}

// connectAll makes all connections, several at a time; with a connection for each transaction one, to see that it can
// be done.
func (r *runner) connectAll() ([]*pgwire.Detached, error) {
	n := r.job.Clients
	if r.job.Connect {
		n = 1
	}
	all := make([]*pgwire.Detached, n)
	failed := make([]error, n)
	var group sync.WaitGroup
	var next atomic.Int64
	var stop atomic.Bool
	for range min(n, 16) {
		group.Go(func() {
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if all[i], failed[i] = r.detached(); failed[i] != nil {
					stop.Store(true)
				}
			}
		})
	}
	group.Wait()
	for i, err := range failed {
		if err == nil && !r.job.Connect {
			continue
		}
		for _, d := range all {
			if d != nil {
				d.Close()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("client %d of %d: %w", i+1, r.job.Clients, err)
		}
		return nil, nil
	}
	return all, nil
}

// threads runs the clients and reports.
func (r *runner) threads(ctx context.Context, cancel func(), ready []*pgwire.Detached, interval time.Duration,
	report func(worker.State)) error {
	operations := len(r.program.scripts)
	if r.job.Connect {
		operations++
	}
	all := make([]*thread, r.job.Threads)
	for i := range all {
		t := &thread{r: r, stats: newStats(operations, len(r.program.statements)), answer: make(chan *stats, 1),
			ended:  make(chan struct{}),
			random: rand.New(rand.NewPCG(r.job.Seed, uint64(i)<<32)), done: make([]uint64, operations),
			vain: make([]uint64, operations)}
		if r.job.Rate > 0 {
			const most = 1e16 // months: even the longest of Poisson's gaps is a time
			t.gap = min(1e9*float64(r.job.Threads)/r.job.Rate, most)
		}
		all[i] = t
	}
	for i := range r.job.Clients {
		t := all[i%len(all)]
		t.clients = append(t.clients, r.client(i, len(t.clients)))
	}
	var group sync.WaitGroup
	begin := make(chan struct{})
	made := make(chan error, len(all))
	for i, t := range all {
		group.Go(func() {
			defer close(t.ended)
			var err error
			if t.loop, err = pgwire.NewLoop(len(t.clients)); err == nil {
				for k, c := range t.clients {
					if ready != nil {
						err = errors.Join(err, t.attach(c, ready[i+k*len(all)]))
					}
				}
			}
			if err == nil && t.gap > 0 {
				t.loop.Punctual()
			}
			made <- err
			if <-begin; err == nil {
				t.run()
			}
			if t.failure != nil { // the others need not go on
				cancel()
			}
		})
	}
	var err error
	for range all {
		err = errors.Join(err, <-made)
	}
	r.began = time.Now()
	for i, t := range all {
		if t.gap > 0 && r.job.Arrivals == Poisson {
			t.advance()
		} else { // after each other
			t.next = int64(t.gap * float64(i+1) / float64(len(all)))
		}
		t.stop.Store(err != nil)
	}
	close(begin)
	told := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(told)
		for _, t := range all {
			t.stop.Store(true)
			if t.loop != nil {
				t.loop.Wake()
			}
		}
	})
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			report(r.gather(all, false))
			continue
		case <-ended:
		}
		break
	}
	for _, t := range all {
		err = errors.Join(err, t.failure)
	}
	last := r.gather(all, true)
	r.sayRefusals(all)
	if !forget() {
		<-told // loops that are closed are not to be woken: their descriptors may be others' by then
	}
	cancel()
	r.connecting.Wait()
	for _, t := range all {
		t.close()
	}
	if last.Elapsed > 0 {
		report(last)
	}
	return err
}

// sayRefusals tells how often the server refused what, the first first, where it refused for more than one reason.
func (r *runner) sayRefusals(all []*thread) {
	sum := map[string]*refusal{}
	total := uint64(0)
	for _, t := range all {
		for code, one := range t.refusals {
			total += one.count
			if s := sum[code]; s == nil {
				sum[code] = one
			} else if s.count += one.count; one.at < s.at {
				s.at, s.words = one.at, one.words
			}
		}
	}
	if len(sum) < 2 {
		return
	}
	for _, s := range slices.SortedFunc(maps.Values(sum), func(a, b *refusal) int { return cmp.Compare(a.at, b.at) }) {
		r.tell(fmt.Sprintf("%s: %d of %d failures", s.words, s.count, total))
	}
}

// close ends what a thread still has.
func (t *thread) close() {
	for _, a := range t.arrived {
		if a.conn != nil {
			a.conn.Close()
		}
	}
	if t.loop != nil {
		t.loop.Close()
	}
}

// loaded is the line of a job that only makes tables.
func loaded(began time.Time) worker.State {
	took, times := time.Since(began), &hist.Histogram{}
	times.Add(uint64(took), 1)
	return worker.State{Elapsed: took, Began: began, Operations: []worker.Counts{{Times: times}}, Final: true,
		CPUSeconds: cpuSeconds()}
}

// client makes a client of the load.
func (r *runner) client(number, place int) *client {
	c := &client{place: place, prepared: make([]bool, len(r.program.statements))}
	c.pcg.Seed(r.job.Seed, uint64(number)+1)
	c.random = rand.New(&c.pcg)
	c.vars = make([]value, len(r.program.names.order))
	at := r.program.names.at
	c.vars[at[scaleName]] = intOf(int64(r.job.Scale))
	c.vars[at[clientName]] = intOf(int64(number))
	c.vars[at[randomSeed]] = intOf(int64(r.job.Seed >> 1))
	c.vars[at[defaultSeed]] = intOf(int64(r.job.Seed>>1 ^ 0x5851f42d4c957f2d))
	for name, text := range r.job.Variables {
		c.vars[at[name]] = said(text)
	}
	return c
}

// gather adds up what the threads have counted.
func (r *runner) gather(all []*thread, final bool) worker.State {
	sum := newStats(len(all[0].stats.times), len(r.program.statements))
	if !final {
		for _, t := range all {
			t.asked.Store(true)
			t.loop.Wake()
		}
	}
	elapsed := time.Since(r.began)
	for _, t := range all {
		if final {
			sum.add(t.stats)
			continue
		}
		select {
		case s := <-t.answer:
			sum.add(s)
		case <-t.ended:
			sum.add(t.stats)
		}
	}
	state := sum.state(r.job, elapsed)
	state.Began, state.Final = r.began, final
	state.CPUSeconds = cpuSeconds()
	return state
}

// cpuSeconds returns what this process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
