// Package loads starts, watches and stops the workloads of a run: on every machine of a group a job of an engine, which
// goes on beside the steps until it ends, is stopped, or the run is over.
//
// It stands between the steps and the engines of workload: a step says what to start on which machines and waits for it
// here; jobs belong to the Set, not to the step that started them. What happens to them is recorded, and how they ended
// is judged, in one place: finished, stopped, failed, or lost with their machine. It knows no tool, no scenario file
// and no cluster beyond its hosts, and waits only through the run's clock.
package loads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// AccessWidth is how many machines are asked at a time whether they answer.
const AccessWidth = 24

// mostNamed is how many machines a message names.
const mostNamed = 3

// stateAtEnd gives the state that the journal notes for an end.
var stateAtEnd = map[result.Ending]string{result.Finished: result.WorkloadEnd, result.Failed: result.WorkloadEnd,
	result.Stopped: result.WorkloadStop, result.Lost: result.WorkloadLost}

// PrefillName is the name under which a workload's prefill is recorded.
func PrefillName(load string) string { return load + "_prefill" }

// PassName and RoundsName are the names under which the parts of a workload's preconditioning are recorded: the writes
// of all disks, and the rounds that do as the workload does.
func PassName(load string) string { return load + "_precondition" }

// RoundsName is the other; see PassName.
func RoundsName(load string) string { return load + "_rounds" }

// Launch is one start of one workload on one VM, about to happen.
type Launch struct {
	Workload string // as recorded: prefills carry their suffix
	Engine   string
	Tool     workload.Tool
	Server   workload.Tool // that its load goes to, as far as its version is known
	Describe workload.Description
	Group    string
	VM       string
	Node     int
	Start    int  // counts from 1
	Prefill  bool // it prepares
	Rounds   bool // of a preconditioning
	Time     time.Time
	Job      workload.Job
}

// Output is where a job's output goes.
type Output struct {
	Raw  io.WriteCloser
	Sink workload.Sink
	// Ended is called once, after Raw is closed, with how the job ended.
	Ended func(ended result.Ending, message string, outcome workload.Outcome)
}

// Config says what a Set needs.
type Config struct {
	Clock   clock.Clock
	Cluster target.Cluster
	Engines map[string]workload.Engine // by generator; a simulating cluster's own come first
	Open    func(Launch) (Output, error)
	// Keep opens the place for what the server of a start has printed on a machine, and names it. May be nil.
	Keep   func(vm, workload string, start int) (place io.WriteCloser, name string, err error)
	Record func(result.Event)
	// Printed opens what a start of a workload printed on a machine. May be nil.
	Printed func(Launch) (io.ReadCloser, error)
	// Patience is how long a job may stand still, and how long it may go on beyond its own time; 0: DefaultPatience.
	Patience time.Duration
	// SizeScale and TimeScale are the run's, above 0; see workload.Spec.
	SizeScale, TimeScale float64
	RunID                string // see workload.Env
}

// Set is the workloads of a run. Jobs belong to it, not to the step that started them: they go
// on until they end, are stopped, or Close. It is safe for concurrent use.
type Set struct {
	Config
	jobs clock.Group
	root context.Context
	kill context.CancelFunc

	mu     sync.Mutex
	starts map[string][]*Start // by recorded name
	order  []*Start
	ends   int // of jobs, counted: a wait looks at its jobs again when it has changed
	depth  map[string]int
	tools  map[string]workload.Tool
	stay   []*server // run until StopAll
	// counted are the servers that can be asked, with an entry for each start that uses one beyond the cluster
	counted []counted
	// begun are the jobs whose command runs, which Mind looks at
	begun map[*job]*Start
}

// Start is one start of a workload on all members of its group.
type Start struct {
	load    scenario.Workload
	name    string
	number  int
	prefill bool
	begun   time.Time
	// expected is when the last member should have run its full time; zero when no runtime was given.
	expected time.Time
	lasts    time.Duration // of the last member's end after the begin; 0 unknown
	jobs     []*job
	servers  []*server
	server   workload.Tool // which they are
	outside  *workload.Scrape
	users    int  // of the servers: jobs that run, and whoever starts them
	waited   bool // by a step that judged the outcomes
	closed   bool // its end is recorded
}

// job is a start on one VM. Fields below the line are guarded by Set.mu.
type job struct {
	gate   *gate // that it begins behind; nil without
	vm     target.VM
	host   target.Host
	engine workload.Engine
	launch Launch
	cancel context.CancelFunc
	// ---
	launched bool
	ended    result.Ending // "" while it runs
	message  string
	lost     bool   // seen to be not accessible
	overdue  string // why it was ended before it had come to its end by itself; "" when it was not
	standing standing
	last     workload.Report // set by the job alone until it has ended
	did      atomic.Uint64   // operations that it has reported
}

// New returns a Set without any. Its jobs outlive ctx's cancellation.
func New(ctx context.Context, c Config) *Set {
	root, kill := context.WithCancel(context.WithoutCancel(ctx))
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	return &Set{
		Config: c, jobs: c.Clock.Group(), root: root, kill: kill,
		starts: map[string][]*Start{}, depth: map[string]int{}, tools: map[string]workload.Tool{},
		begun: map[*job]*Start{},
	}
}

// EngineFor finds the engine of a generator: the cluster's own model of it, else the real one.
func EngineFor(cluster target.Cluster, engines map[string]workload.Engine, generator string) (workload.Engine, error) {
	real, ok := engines[generator]
	if s, simulates := cluster.(workload.Simulating); simulates {
		if e, modelled := s.Engine(generator, real); modelled {
			return e, nil
		}
	}
	if ok {
		return real, nil
	}
	return nil, fmt.Errorf("generator %q: there is no engine for it", generator)
}

// tool checks for the generator's tool once per group, since members are copies of one image; for one that the author's
// file names, once per workload.
func (l *Set) tool(ctx context.Context, engine workload.Engine, load scenario.Workload,
	host target.Host) (workload.Tool, error) {
	check, key := engine.Check, engine.Describe().Name+"\x00"+load.Group
	if naming, ok := engine.(workload.Naming); ok {
		key += "\x00" + load.Name
		check = func(ctx context.Context, host target.Host) (workload.Tool, error) {
			return naming.CheckTool(ctx, host, workload.Spec{
				Name: load.Name, VM: host.Name(), ConfigFile: load.ConfigFile, Config: load.Config,
				Settings: load.Settings, Disks: host.Disks(),
			})
		}
	}
	return l.checked(ctx, key, host, check)
}

// checked asks a host for a tool, once for each key.
func (l *Set) checked(ctx context.Context, key string, host target.Host,
	check func(context.Context, target.Host) (workload.Tool, error)) (workload.Tool, error) {
	l.mu.Lock()
	t, ok := l.tools[key]
	l.mu.Unlock()
	if ok {
		return t, nil
	}
	t, err := check(ctx, host)
	if err != nil {
		return t, fmt.Errorf("vm %q: %w", host.Name(), err)
	}
	l.mu.Lock()
	l.tools[key] = t
	l.mu.Unlock()
	return t, nil
}

// Last is the newest start under a name.
func (l *Set) Last(name string) (*Start, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.starts[name]
	if len(list) == 0 {
		return nil, fmt.Errorf("workload %q was never started", name)
	}
	return list[len(list)-1], nil
}

// enter registers a new start and numbers it. The start before must have ended.
func (l *Set) enter(s *Start) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.starts[s.name]; len(list) > 0 {
		before := list[len(list)-1]
		for _, j := range before.jobs {
			if j.launched && j.ended == "" && !j.lost {
				return fmt.Errorf("workload %q still runs on %s; wait for it or stop it before starting it again",
					s.name, j.vm.Name)
			}
		}
	}
	s.number = len(l.starts[s.name]) + 1
	l.starts[s.name] = append(l.starts[s.name], s)
	l.order = append(l.order, s)
	return nil
}

// event records what happened to a start, on one VM or, without one, as a whole.
func (l *Set) event(s *Start, vm, state, message string) {
	e := result.Event{Kind: result.KindWorkload, Name: s.name, Text: state, Data: result.EventData{State: state,
		Workload: s.name, VM: vm, Start: s.number, Group: s.load.Group, Prefill: s.prefill}}
	if state == result.WorkloadLost { // a fault's effect, no failure
		e.Data.Reason = message
	} else {
		e.Error = message
	}
	l.Record(e)
}

// launch starts a job in the background.
func (l *Set) launch(s *Start, j *job) error {
	j.launch.Start, j.launch.Time = s.number, l.Clock.Now()
	out, err := l.Open(j.launch)
	if err != nil {
		return fmt.Errorf("vm %q: workload %q: output: %w", j.vm.Name, s.name, err)
	}
	ctx, cancel := context.WithCancel(l.root)
	l.mu.Lock()
	j.cancel, j.launched = cancel, true
	s.users++
	l.mu.Unlock()
	l.event(s, j.vm.Name, result.WorkloadStart, "")
	l.jobs.Go(func() {
		defer cancel()
		env := workload.Env{Run: l.RunID, Host: j.host, Clock: l.Clock, Raw: out.Raw, Sink: keeping(out.Sink, j),
			Started: func() { l.mind(s, j) },
			Earlier: func(name string) (io.ReadCloser, error) { return l.earlierOutput(j.vm.Name, name) }}
		if j.gate != nil {
			env.Together = func(ctx context.Context) (time.Time, error) { return j.gate.wait(ctx, j) }
			defer j.gate.leave(j) // it may never have come there
		}
		outcome, err := runJob(ctx, j, env)
		err = errors.Join(err, closing(out.Raw))
		l.finish(s, j, out, outcome, ctx.Err() != nil, err)
	})
	return nil
}

// earlierOutput opens what the last start of a workload printed on a machine.
func (l *Set) earlierOutput(vm, name string) (io.ReadCloser, error) {
	l.mu.Lock()
	var last *job
	for _, s := range l.starts[name] {
		for _, j := range s.jobs {
			if j.launched && j.vm.Name == vm {
				last = j
			}
		}
	}
	runs := last != nil && last.ended == ""
	l.mu.Unlock()
	switch {
	case last == nil || l.Printed == nil:
		return nil, fmt.Errorf("workload %q on %s: %w", name, vm, fs.ErrNotExist)
	case runs:
		return nil, fmt.Errorf("workload %q still runs on %s; wait for it or stop it first", name, vm)
	}
	return l.Printed(last.launch)
}

func closing(raw io.Closer) error {
	if err := raw.Close(); err != nil {
		return fmt.Errorf("raw output: %w", err)
	}
	return nil
}

// runJob runs a job; a panic of an engine is the failure of its job alone.
func runJob(ctx context.Context, j *job, env workload.Env) (outcome workload.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("engine %s: internal error: %v\n%s", j.launch.Engine, p, debug.Stack())
		}
	}()
	return j.engine.Run(ctx, env, j.launch.Job)
}

// finish judges how a job ended and records it. A job that we cancelled and that then found its machine gone was
// stopped, unless the machine was known to be gone before.
func (l *Set) finish(s *Start, j *job, out Output, outcome workload.Outcome, cancelled bool, err error) {
	l.mu.Lock()
	known := j.lost // the journal has it already
	overdue := j.overdue
	delete(l.begun, j)
	l.mu.Unlock()
	gone := outcome.Exit.Lost || errors.Is(err, target.ErrNotAccessible)
	halted := outcome.Stopped || errors.Is(err, context.Canceled) || cancelled && gone
	ended, message := result.Finished, outcome.Message
	switch {
	case overdue != "" && (halted || err != nil) && !known && !gone:
		ended, message = result.Failed, overdue
		if err != nil { // it would not go
			message += "; " + err.Error()
		}
	case halted && !known:
		ended = result.Stopped
	case halted || gone:
		ended = result.Lost
		if message = "the machine went away"; outcome.Message != "" {
			message += "; it had said: " + outcome.Message
		}
	case err != nil:
		ended, message = result.Failed, err.Error()
	}
	out.Ended(ended, message, outcome)
	state := stateAtEnd[ended]
	problem := ""
	if ended == result.Failed || ended == result.Lost {
		problem = firstLine(message)
	}
	if ended != result.Lost || !known {
		l.event(s, j.vm.Name, state, problem)
	}
	l.release(s)
	// Last, so that whoever sees the end finds it recorded, and the servers gone.
	l.mu.Lock()
	j.ended, j.message = ended, message
	l.ends++
	l.mu.Unlock()
}

// markLost records that a VM of a start is out of reach, once.
func (l *Set) markLost(s *Start, j *job, reason error) {
	l.mu.Lock()
	known := j.lost || j.ended == result.Lost
	j.lost = true
	l.mu.Unlock()
	if !known {
		l.event(s, j.vm.Name, result.WorkloadLost, reason.Error())
	}
}

// close records that a wait or a stop for a whole start is over.
func (l *Set) close(s *Start, text string) {
	l.mu.Lock()
	known := s.closed
	s.closed = true
	l.mu.Unlock()
	if !known {
		l.event(s, "", text, "")
	}
}

// state returns how a job stands.
func (l *Set) state(j *job) (launched bool, ended result.Ending, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return j.launched, j.ended, j.message
}

// stopLimit is how long a killed job may take to be gone.
const stopLimit = 60 * time.Second

// Stop kills the jobs of a start and waits until they are gone. Machines out of reach are recorded as lost and not
// waited for. What remains after stopLimit is returned in words; it is not an error of the run.
func (l *Set) Stop(ctx context.Context, s *Start) (remains []string) {
	var pending []*job
	for _, j := range s.jobs {
		launched, ended, _ := l.state(j)
		if !launched || ended != "" {
			continue
		}
		reason := j.host.Accessible(ctx)
		j.cancel()
		if reason != nil && ctx.Err() == nil {
			l.markLost(s, j, reason)
			continue
		}
		pending = append(pending, j)
	}
	deadline := l.Clock.Now().Add(stopLimit)
	for {
		pending = slices.DeleteFunc(pending, func(j *job) bool {
			_, ended, _ := l.state(j)
			return ended != ""
		})
		if len(pending) == 0 {
			break
		}
		if l.Clock.Now().After(deadline) || l.Clock.Sleep(ctx, 20*time.Millisecond) != nil {
			for _, j := range pending {
				remains = append(remains, fmt.Sprintf("workload %q on %s has not ended %s after its stop", s.name,
					j.vm.Name, stopLimit))
			}
			break
		}
	}
	l.close(s, result.WorkloadStop)
	return remains
}

// running lists the starts with jobs that have not ended.
func (l *Set) running() []*Start {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*Start
	for _, s := range l.order {
		if slices.ContainsFunc(s.jobs, func(j *job) bool { return j.launched && j.ended == "" }) {
			list = append(list, s)
		}
	}
	return list
}

// StopAll stops everything that still runs, servers that stay included, and returns a sentence per workload: what was
// running, and what could not be stopped.
func (l *Set) StopAll(ctx context.Context) (stopped, remains []string) {
	for _, s := range l.running() {
		n := 0
		for _, j := range s.jobs {
			if launched, ended, _ := l.state(j); launched && ended == "" {
				n++
			}
		}
		stopped = append(stopped, fmt.Sprintf("workload %q on %s", s.name, unit.Plural(n, "VM")))
		remains = append(remains, l.Stop(ctx, s)...)
	}
	l.mu.Lock()
	stay := l.stay
	l.stay = nil
	l.mu.Unlock()
	for _, one := range slices.Backward(stay) {
		l.end(one)
	}
	return stopped, remains
}

// Lost lists the machines that went away under a job.
func (l *Set) Lost() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, s := range l.order {
		for _, j := range s.jobs {
			if j.lost || j.ended == result.Lost {
				list = append(list, fmt.Sprintf("%s went away under workload %q: what it did from then on is missing",
					j.vm.Name, s.name))
			}
		}
	}
	return list
}

// Unnoticed lists jobs that failed while no step waited for them.
func (l *Set) Unnoticed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, s := range l.order {
		for _, j := range s.jobs {
			if !s.waited && j.ended == result.Failed {
				list = append(list, ofJob(s.name, j, firstLine(j.message)))
			}
		}
	}
	return list
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Close kills what still runs and returns when all jobs have ended or ctx is done.
func (l *Set) Close(ctx context.Context) error {
	l.kill()
	for len(l.running()) > 0 {
		if err := l.Clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("workloads: %d starts have jobs that do not end: %w", len(l.running()), err)
		}
	}
	return nil
}
