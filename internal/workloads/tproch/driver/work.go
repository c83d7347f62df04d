package tproch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
)

// WorkCommand is the hidden command of this program that calls Work.
const WorkCommand = "tproch-worker"

// Job says what a worker is to do, on the database that PGHOST and its like name.
type Job struct {
	Load     bool          `json:"load,omitempty"` // the data set; else ask the queries
	Scale    Scale         `json:"scale"`
	Reload   bool          `json:"reload,omitempty"` // a load drops what is there of ours, at whatever scale
	Streams  int           `json:"streams,omitempty"`
	Refresh  bool          `json:"refresh,omitempty"`
	Seed     uint64        `json:"seed,omitempty"`        // 0: another one each time
	Duration time.Duration `json:"duration_ns,omitempty"` // the longest that it may take; 0: as long as it takes
}

// MaxStreams is the most streams of a throughput run.
const MaxStreams = 100

// Check says all that is wrong with a job, nil for nothing.
func (j Job) Check() (objections []string) {
	if err := j.Scale.Check(); err != nil {
		objections = append(objections, err.Error())
	}
	if j.Streams < 0 || j.Streams > MaxStreams {
		objections = append(objections, fmt.Sprintf("streams: %d is not from 0 to %d", j.Streams, MaxStreams))
	}
	return objections
}

// Operations are what reports of a run count: the queries and the refreshes of its power run, and those of the streams
// of its throughput run, where it has one.
func (j Job) Operations() (all []result.Operation) {
	names := OperationNames()
	for i, name := range names[:len(names)/2*j.parts()] {
		noun := "queries"
		if i%operations >= Queries {
			noun = "refreshes"
		}
		all = append(all, result.Operation{Name: name, Noun: noun, Set: true})
	}
	return all
}

// parts are the runs that a run is made of.
func (j Job) parts() int {
	if j.Streams == 0 {
		return 1
	}
	return 2
}

// Measures are what reports of a run hold besides, in the order of values.
func Measures() []result.Measure {
	single := func(name, unit string, better result.Direction) result.Measure {
		return result.Measure{Name: name, Unit: unit, Better: better, Kind: result.Single}
	}
	all := []result.Measure{single("geometric_mean", "seconds", result.Lower),
		single("power", "scaled queries/hour", result.Higher),
		single("throughput", "scaled queries/hour", result.Higher),
		single("power_time", "seconds", result.Lower), single("throughput_time", "seconds", result.Lower),
		single("unanswered", "queries", result.Lower), single("changed_plans", "plans", result.Lower)}
	for _, name := range classNames {
		all = append(all, result.Measure{Name: name, Unit: "errors", Better: result.Lower, Kind: result.Count})
	}
	return all
}

// LoadOperations are what reports of a load count: portions of the data set, and checks of what is there: of answers
// after a load, else of the mark.
func LoadOperations() []result.Operation {
	return []result.Operation{{Name: "load", Noun: "portions", Bytes: true}, {Name: "check", Noun: "checks"}}
}

// LoadMeasures are the rows that are there, the seconds until all are, about, and the answers that were wrong.
func LoadMeasures() []result.Measure {
	return []result.Measure{{Name: "rows", Unit: "rows", Kind: result.Single},
		{Name: "time_left", Unit: "seconds", Kind: result.Single},
		{Name: "wrong_answers", Unit: "answers", Better: result.Lower, Kind: result.Single}}
}

// Work does a job that is read from config, and writes a worker.State to out about every second. What else it writes
// there is for people.
func Work(ctx context.Context, config io.Reader, out io.Writer) error {
	var j Job
	if err := json.NewDecoder(io.LimitReader(config, 1<<20)).Decode(&j); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	if bad := j.Check(); bad != nil {
		return fmt.Errorf("the job: %q", bad)
	}
	if j.Seed == 0 {
		j.Seed = rand.Uint64() // not for secrets
	}
	claim, err := postgres.ClaimHere(ctx)
	if err != nil {
		return err
	}
	defer claim.Close()
	w := &work{job: j, out: &lines{to: out}, start: time.Now(), cpu: cpuSeconds()}
	if j.Load {
		return w.load(ctx)
	}
	return w.run(ctx)
}

type work struct {
	job   Job
	out   io.Writer
	start time.Time
	cpu   float64
}

// lines writes what is given at once as a whole, from any goroutine.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(text)
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func (w *work) say(format string, args ...any) {
	fmt.Fprintf(w.out, format+"\n", args...)
}

// finite returns nil for what is no number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// during prints a state every second while something goes on, and the last one after it, whatever came of it.
func (w *work) during(ctx context.Context, do func(context.Context) error, state func() worker.State) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	report := func(final bool) error {
		s := state()
		s.Began, s.Elapsed, s.CPUSeconds, s.Final = w.start, time.Since(w.start), cpuSeconds()-w.cpu, final
		return json.NewEncoder(w.out).Encode(s)
	}
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return errors.Join(err, report(true))
		case <-tick.C:
			if err := report(false); err != nil { // nobody listens
				cancel()
				return errors.Join(err, <-done)
			}
		}
	}
}

func (w *work) load(ctx context.Context) (err error) {
	l := &loading{work: w, wrong: math.NaN()}
	return w.during(ctx, l.do, l.state)
}

func (w *work) run(ctx context.Context) (err error) {
	store, err := Open(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if have := store.State(); have.Scale != 0 && have.Scale != w.job.Scale {
		return fmt.Errorf("the database holds scale %v, not %v: prefill the workload with reload: true", have.Scale,
			w.job.Scale)
	}
	var refresh *Generator
	if w.job.Refresh {
		if refresh, err = NewGenerator(w.job.Scale); err != nil {
			return err
		}
	}
	r, err := NewRun(store, w.job.Streams, refresh, w.job.Seed, w.out)
	if err != nil {
		return err
	}
	changed, err := w.plans(ctx, store)
	if err != nil {
		return err
	}
	w.start, w.cpu = time.Now(), cpuSeconds() // the above is no part of it
	over := errors.New("its time is over")
	return w.during(ctx, func(ctx context.Context) error {
		if w.job.Duration > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, w.job.Duration, over)
			defer cancel()
			ctx = limited
		}
		err := r.Do(ctx)
		if errors.Is(err, over) {
			w.say("its time was over before it was: %d queries and refreshes are unanswered", r.figures.Unanswered)
			return nil
		}
		return err
	}, func() worker.State { return r.state(changed) })
}

// state returns what was done until now.
func (r *Run) state(changedPlans int) (s worker.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.times[:operations*Job{Streams: r.Streams}.parts()] {
		s.Operations = append(s.Operations, worker.Counts{Times: r.times[i].Clone()})
	}
	f := r.figures
	for _, v := range []float64{f.GeometricMean, f.Power, f.Throughput, f.PowerSeconds, f.ThroughputSeconds,
		float64(f.Unanswered), float64(changedPlans)} {
		s.Values = append(s.Values, finite(v))
	}
	for _, n := range r.errors {
		s.Values = append(s.Values, finite(float64(n)))
		s.Errors += n
	}
	return s
}

// plans writes the plans down, and says which are not those of the last run.
func (w *work) plans(ctx context.Context, store *Store) (changed int, err error) {
	plans, err := store.Plans(ctx)
	for _, p := range plans {
		text, _ := json.Marshal(p.Text) // a string
		w.say("plan of query %d: %s", p.Query, text)
	}
	for _, p := range plans {
		if p.Changed {
			changed++
			text, _ := json.Marshal(p.Before) // a string
			w.say("the plan of query %d has changed since the last run, when it was %s", p.Query, text)
		}
	}
	return changed, err
}

// loading is a load that goes on.
type loading struct {
	*work
	mu     sync.Mutex
	last   Progress
	bytes  uint64
	loads  hist.Histogram
	checks hist.Histogram
	wrong  float64 // answers
	said   int64   // tenths of the rows
}

func (l *loading) do(ctx context.Context) (err error) {
	store, err := Open(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if l.job.Reload {
		if err := store.Drop(ctx); err != nil {
			return err
		}
	}
	if have := store.State(); have.Loaded && have.Scale == l.job.Scale {
		l.say("the data set is there: scale %v, refreshed %d times", have.Scale, have.Refreshes)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last.Rows = have.Scale.rows()
		l.checks.Add(uint64(time.Since(l.start)), 1)
		return nil
	}
	g, err := NewGenerator(l.job.Scale)
	if err != nil {
		return err
	}
	if err := store.fill(ctx, g, l.told); err != nil {
		return err
	}
	if err := l.compare(ctx, store); err != nil {
		return err // the next load compares again, instead of finding a data set that is there
	}
	return store.finish(ctx)
}

func (l *loading) told(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p.Step != "rows":
		l.say("%s are made", p.Step)
		l.last.Left = 0
	default:
		l.last = p
		l.bytes += uint64(p.Bytes)
		l.loads.Add(uint64(p.Took), 1)
		if tenths := p.Rows * 10 / p.Total; tenths > l.said {
			l.said = tenths
			l.say("%d %% of the rows are there, the others in about %v", tenths*10, p.Left.Round(time.Second))
		}
	}
}

// compare holds the server's answers against the published ones, where there are such and the data are those.
func (l *loading) compare(ctx context.Context, store *Store) error {
	wrong, err := store.CheckAnswers(ctx, func(_ int, took time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.checks.Add(uint64(took), 1)
	})
	if errors.Is(err, ErrNoAnswers) {
		l.say("%v", err)
		return nil
	}
	l.mu.Lock()
	l.wrong = float64(len(wrong))
	l.mu.Unlock()
	return errors.Join(append(wrong, err)...)
}

func (l *loading) state() worker.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return worker.State{
		Operations: []worker.Counts{{Bytes: l.bytes, Times: l.loads.Clone()}, {Times: l.checks.Clone()}},
		Values:     []*float64{finite(float64(l.last.Rows)), finite(l.last.Left.Seconds()), finite(l.wrong)},
	}
}
