package tprocc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/result"
)

// WorkCommand is the hidden command of this program that calls Work.
const WorkCommand = "tprocc-worker"

// Job says what a worker is to do.
type Job struct {
	Dialect    string        `json:"dialect"`
	Load       bool          `json:"load,omitempty"`   // warehouses; else run users
	Reload     bool          `json:"reload,omitempty"` // a load drops what is there of ours, of however many warehouses
	Warehouses int           `json:"warehouses"`
	Users      int           `json:"users,omitempty"`
	First      int           `json:"first_user,omitempty"` // the number of the first: other machines have those before
	Keying     bool          `json:"keying,omitempty"`
	Threads    int           `json:"threads"`
	Seed       uint64        `json:"seed"`
	Duration   time.Duration `json:"duration_ns,omitempty"`
	// Homes says where users are, for those who read the job: Home does it.
	Homes string `json:"homes,omitempty"`
	// Of a server that is reached by an address rather than by PostgreSQL's environment.
	URL      string `json:"url,omitempty"`
	Database string `json:"database,omitempty"`
	PassFile string `json:"passfile,omitempty"` // holds the password and nothing else
	// Cleartext: of MariaDB, the password may be sent as it is.
	Cleartext bool `json:"cleartext_password,omitempty"`
}

// Check says all that is wrong with a job, nil for nothing.
func (j Job) Check() (objections []string) {
	between := func(what string, n, low, high int) {
		if n < low || n > high {
			objections = append(objections, fmt.Sprintf("%s %d: want a whole number from %d to %d", what, n, low, high))
		}
	}
	between("warehouses:", j.Warehouses, 1, MostWarehouses)
	between("users:", j.Users, 1, 100_000)
	between("first user:", j.First, 0, 1_000_000_000)
	between("threads:", j.Threads, 1, 1024)
	return objections
}

// Operations are what reports of a run count.
func Operations() (all []result.Operation) {
	for k, noun := range [Kinds]string{"new orders", "payments", "order statuses", "deliveries", "stock levels"} {
		all = append(all, result.Operation{Name: Kind(k).String(), Noun: noun})
	}
	return all
}

// Measures are what reports of a run hold besides, in the order of values.
func Measures() []result.Measure {
	all := []result.Measure{
		{Name: "NOPM", Unit: "NOPM", Better: result.Higher, Kind: result.Level},
		{Name: "TPM", Unit: "TPM", Better: result.Higher, Kind: result.Level},
		{Name: "TPM_per_NOPM", Unit: "TPM/NOPM", Kind: result.Single},
		{Name: "server_TPM_per_NOPM", Unit: "TPM/NOPM", Kind: result.Single},
		{Name: "inconsistencies", Unit: "places", Better: result.Lower, Kind: result.Single},
		{Name: "rollbacks", Unit: "rollbacks", Kind: result.Count},
	}
	for _, name := range []string{"retries", "deadlocks", "serialization_failures", "lost_connections",
		"refused_connections", "out_of_space", "cancelled", "other_errors", "given_up", "late"} {
		all = append(all, result.Measure{Name: name, Unit: strings.ReplaceAll(name, "_", " "), Better: result.Lower,
			Kind: result.Count})
	}
	return all
}

// LoadOperations and LoadMeasures are those of a load.
func LoadOperations() []result.Operation {
	return []result.Operation{{Name: "load", Noun: "batches", Bytes: true}, {Name: "check", Noun: "checks"}}
}

// LoadMeasures are the warehouses that are there, and the seconds until all are, about.
func LoadMeasures() []result.Measure {
	return []result.Measure{{Name: "warehouses", Unit: "warehouses", Kind: result.Single},
		{Name: "time_left", Unit: "seconds", Kind: result.Single}}
}

// Work does a job that is read from config, on the dialect that it names, and writes a worker.State to out about every
// second, one at its end, and words.
func Work(ctx context.Context, config io.Reader, out io.Writer, dialect func(Job) (Dialect, error)) error {
	text, err := io.ReadAll(io.LimitReader(config, 1<<20))
	if err != nil {
		return err
	}
	var j Job
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	j.Users = max(j.Users, 1)
	if bad := j.Check(); bad != nil {
		return fmt.Errorf("the job: %q", bad)
	}
	out = &shared{to: out}
	d, err := dialect(j)
	if err != nil {
		return err
	}
	if run := worker.Run(); run != "" {
		claim, err := d.Claim(ctx, run, j.Load)
		if err != nil {
			return err
		}
		defer claim.Close() // it ends with its connection
	}
	w := &work{job: j, dialect: d, out: json.NewEncoder(out), start: time.Now()}
	w.cpu = cpuSeconds()
	if j.Load {
		return w.load(ctx)
	}
	return w.run(ctx, out)
}

// shared is a Writer that several goroutines may use.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

type work struct {
	job     Job
	dialect Dialect
	out     *json.Encoder
	start   time.Time
	cpu     float64
	last    struct {
		elapsed   time.Duration
		all, news uint64
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func (w *work) print(s worker.State) error {
	s.CPUSeconds = cpuSeconds() - w.cpu
	return w.out.Encode(s)
}

// every calls f about every second until done is closed, and gives its first error.
func every(done <-chan struct{}, f func() error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
			if err := f(); err != nil {
				return err
			}
		}
	}
}

func (w *work) load(ctx context.Context) error {
	l := &Load{Dialect: w.dialect, Warehouses: w.job.Warehouses, Workers: w.job.Threads, Reload: w.job.Reload,
		Data: Data{Seed: w.job.Seed, Time: w.start.UTC().Format(time.DateTime)}}
	state := func() worker.State {
		p, elapsed := l.Progress(), time.Since(w.start)
		s := worker.State{Elapsed: elapsed, Began: w.start,
			Operations: []worker.Counts{{Bytes: p.Bytes, Times: p.Times},
				{Times: &hist.Histogram{}}}, Values: []*float64{new(float64(p.Warehouses)), nil}}
		if p.Share > 0 {
			s.Values[1] = new(elapsed.Seconds() * (1 - p.Share) / p.Share)
		}
		return s
	}
	done, failed := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(done)
		failed <- l.Run(ctx)
	}()
	said := every(done, func() error { return w.print(state()) })
	if said != nil {
		cancel() // nobody listens
	}
	<-done
	if err := errors.Join(<-failed, said); err != nil {
		return err
	}
	begin := time.Now()
	if _, err := w.check(ctx); err != nil {
		return err
	}
	s := state()
	s.Final, s.Values[1] = true, new(0.0)
	s.Operations[1].Times.Add(uint64(time.Since(begin)), 1)
	return w.print(s)
}

func (w *work) check(ctx context.Context) (int, error) {
	s, err := w.dialect.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // it only read
	return Check(w.dialect, s)
}

// underWay is how long transactions that were sent before the end are waited for.
const underWay = time.Minute

// server holds what the server itself counts, and when it was asked.
type server struct {
	orders, transactions int64
	at                   time.Time
}

// ownAsks is how many transactions a second a run's own look at the counters of the server takes, at most.
const ownAsks = 20

// look sees that the schema is there and complete, and takes the server's counts.
func (w *work) look(ctx context.Context) (c server, err error) {
	s, err := w.dialect.Connect(ctx)
	if err != nil {
		return c, err
	}
	defer s.Close() //nolint:errcheck // it only read
	there, err := found(w.dialect, s, w.job.Warehouses)
	if err != nil {
		return c, err
	}
	if there {
		var state map[int]string
		if state, err = states(w.dialect, s); err != nil {
			return c, err
		}
		there = state[ready] != ""
	}
	if !there {
		return c, errors.New("the warehouses are not loaded, or not all of them; load them first: prefill the workload")
	}
	one := func(sql string) (n int64) {
		var rows [][]string
		if err == nil {
			rows, err = s.Rows(sql)
		}
		if err == nil && len(rows) == 1 && rows[0][0] != "" {
			n, err = strconv.ParseInt(rows[0][0], 10, 64)
		}
		return n
	}
	c.orders = one(name(w.dialect, "SELECT sum(d_next_o_id) FROM tprocc.district"))
	orders := err // not every user may see the other
	if err == nil {
		c.transactions, c.at = one(w.dialect.Work()), time.Now()
	}
	return c, orders
}

func (w *work) run(ctx context.Context, words io.Writer) error {
	before, err := w.look(ctx)
	if err != nil {
		return err
	}
	r := NewRun(w.job.First, w.job.Users, w.job.Warehouses, w.job.Threads, w.job.Seed)
	r.Keying, r.Duration, r.Words = w.job.Keying, w.job.Duration, words
	done, failed := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(done)
		failed <- w.dialect.Drive(ctx, r)
	}()
	select {
	case <-r.begun:
	case <-done:
		return <-failed
	}
	w.cpu = r.cpu
	bound := time.AfterFunc(r.Duration+underWay, cancel)
	said := w.report(r, done)
	if said != nil {
		cancel()
	}
	<-done
	if !bound.Stop() {
		return fmt.Errorf("transactions were under way %v after the end: the server does not answer", underWay)
	}
	if err := errors.Join(<-failed, said, ctx.Err()); err != nil {
		return err
	}
	return w.end(ctx, r, before, words)
}

// report writes what users did about every second, until done is closed.
func (w *work) report(r *Run, done <-chan struct{}) error {
	return every(done, func() error {
		if r.Now() >= r.Duration {
			return nil // what is under way is waited for
		}
		return w.print(w.state(r, r.Now()))
	})
}

// Report writes a worker.State to out about every second, as Work does, until done is closed.
func (r *Run) Report(out io.Writer, done <-chan struct{}) error {
	return (&work{out: json.NewEncoder(out), cpu: r.cpu}).report(r, done)
}

// end holds what the server has against what was counted, and prints the last state.
func (w *work) end(ctx context.Context, r *Run, before server, words io.Writer) error {
	s := w.state(r, r.Duration)
	s.Final = true
	counts := r.Counts()
	broken, err := w.check(ctx)
	if err != nil && broken == 0 {
		return errors.Join(err, w.print(s))
	}
	s.Values[4] = new(float64(broken))
	after, failed := w.look(ctx)
	if failed == nil {
		committed := int64(counts.Committed[NewOrder])
		grown, most := after.orders-before.orders, committed+int64(counts.After+counts.Unknown)
		switch {
		case grown < committed:
			err = errors.Join(err, fmt.Errorf("%d new orders were committed, and the server has only %d more", committed,
				grown))
		case grown > most:
			fmt.Fprintf(words, "the server has %d new orders more than this client made: another one is at work there\n",
				grown-most)
		}
		n := after.transactions - before.transactions
		if committed >= 1000 && n > 0 && before.transactions > 0 {
			ratio := float64(n) / float64(committed)
			s.Values[3] = &ratio
			own := ownAsks * after.at.Sub(before.at).Seconds()
			if ratio < 2.2 || float64(n)-own > 2.4*float64(committed) {
				fmt.Fprintf(words, "the server counts %.2f transactions per new order, where the mix has 2.3: something "+
					"else uses it, or it does not count everything\n", ratio)
			}
		}
	}
	return errors.Join(err, failed, w.print(s))
}

// state returns what users did until now. Counts are cumulative, rates are of the time since the state before.
func (w *work) state(r *Run, elapsed time.Duration) worker.State {
	c := r.Counts()
	s := worker.State{Elapsed: elapsed, Began: r.begin, Errors: c.Errors()}
	var all uint64
	for k := range c.Times {
		s.Operations = append(s.Operations, worker.Counts{Times: &c.Times[k]})
		all += c.Times[k].Count()
	}
	news := c.Committed[NewOrder]
	minutes := (elapsed - w.last.elapsed).Minutes()
	s.Values = []*float64{nil, nil, nil, nil, nil}
	if minutes > 0 {
		s.Values[0], s.Values[1] = new(float64(news-w.last.news)/minutes), new(float64(all-w.last.all)/minutes)
	}
	if news > 0 {
		s.Values[2] = new(float64(all) / float64(news))
	}
	for _, n := range []uint64{c.Outcomes[RolledBack], c.Retries(), c.Outcomes[Deadlock], c.Outcomes[Serialization],
		c.Outcomes[Lost],
		c.Outcomes[Refused], c.Outcomes[OutOfSpace], c.Outcomes[Cancelled], c.Outcomes[Failed], c.GivenUp, c.Late} {
		s.Values = append(s.Values, new(float64(n)))
	}
	w.last.elapsed, w.last.all, w.last.news = elapsed, all, news
	return s
}
