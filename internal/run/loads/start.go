package loads

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// mostSections bounds the streams of one workload, over all its machines, that are told apart: their reports,
// histograms and series cost about as much again as the totals.
const mostSections = 256

// Seed is the seed of the VM at a position of the list being started: the same text and position give the same sequence
// of operations in every run and on every cluster. It has 63 bits and is never 0, which would mean a sequence that
// changes.
func Seed(text string, index int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s_%d", text, index))
	return max(binary.BigEndian.Uint64(sum[:])>>1, 1)
}

// Offsets are the moments, after the first, at which n VMs start when their starts are spread evenly over stagger: the
// first at once, the last at stagger.
func Offsets(n int, stagger time.Duration) []time.Duration {
	offsets := make([]time.Duration, n)
	for i := 1; i < n; i++ {
		offsets[i] = time.Duration(float64(stagger) * float64(i) / float64(n-1))
	}
	return offsets
}

// Options are the arguments of a start, in the run's time.
type Options struct {
	Prefill bool
	Whole   bool          // of a prefill: all of every data disk, as a pass of a preconditioning
	Block   int64         // of a prefill: bytes of a write; 0: as the engine has it
	Rounds  bool          // a round of a preconditioning
	Turn    bool          // a turn of a comparison with the same job beside the machine
	Beside  target.Host   // with Turn: where it runs instead of the machine; nil: there
	Depth   int           // of a prefill: writes outstanding per section of the job file
	Runtime time.Duration // 0: none
	Stagger time.Duration // between the first start and the last
	Seed    string        // see Seed
	// Members lists the machines of another group, for loads that go there. May be nil.
	Members func(ctx context.Context, group string) ([]target.VM, error)
}

// Name is the name under which a start of a workload is recorded.
func (o Options) Name(workload string) string {
	switch {
	case o.Prefill && o.Whole:
		return PassName(workload)
	case o.Prefill:
		return PrefillName(workload)
	case o.Rounds:
		return RoundsName(workload)
	case o.Turn && o.Beside != nil:
		return workload + "_beside"
	case o.Turn:
		return workload + "_turn"
	}
	return workload
}

// Begin makes ready a start of a workload on machines of its group; nothing runs yet.
func (l *Set) Begin(ctx context.Context, load scenario.Workload, vms []target.VM, o Options) (*Start, error) {
	s := &Start{load: load, name: o.Name(load.Name), prefill: o.Prefill || o.Rounds || o.Turn}
	engine, err := EngineFor(l.Cluster, l.Engines, load.Generator)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", s.name, err)
	}
	hosts, err := l.reachable(ctx, vms)
	if err != nil {
		return nil, fmt.Errorf("workload %q: group %q: %w", s.name, load.Group, err)
	}
	if o.Beside != nil {
		hosts = []target.Host{o.Beside}
	}
	tool, err := l.tool(ctx, engine, load, hosts[0])
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", s.name, err)
	}
	l.mu.Lock()
	number := len(l.starts[s.name]) + 1
	l.mu.Unlock()
	common := workload.Spec{
		Name: fileName(s.name, number), ConfigFile: load.ConfigFile, Config: load.Config, Settings: load.Settings,
		Prefill: o.Prefill, Whole: o.Whole, Block: o.Block, Depth: o.Depth, Interval: load.ReportingInterval,
		Runtime:   o.Runtime,
		SizeScale: l.SizeScale, TimeScale: l.TimeScale, Sections: mostSections / len(vms),
	}
	peers, err := l.findPeers(ctx, engine, common, hosts, o.Members)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", s.name, err)
	}
	s.servers, s.server, s.outside = peers.servers, peers.server, peers.outside
	for i, vm := range vms {
		spec := common
		spec.VM, spec.Disks, spec.Seed = vm.Name, hosts[i].Disks(), Seed(o.Seed, i)
		peers.of(&spec, i)
		prepared, err := engine.Command(spec)
		if err != nil {
			return nil, fmt.Errorf("workload %q: vm %q: %w", s.name, vm.Name, err)
		}
		s.jobs = append(s.jobs, &job{vm: vm, host: hosts[i], engine: engine, launch: Launch{
			Workload: s.name, Engine: load.Generator, Tool: tool, Server: peers.server,
			Describe: engine.Describe(), Group: load.Group, VM: vm.Name, Node: vm.Node, Prefill: s.prefill,
			Rounds: o.Rounds || o.Turn,
			Job:    prepared,
		}})
	}
	if err := l.enter(s); err != nil {
		return nil, err
	}
	if o.Runtime > 0 {
		s.lasts = o.Runtime + o.Stagger
	}
	s.beginsAt(l.Clock.Now())
	return s, nil
}

// beginsAt has a start begin at a moment.
func (s *Start) beginsAt(now time.Time) {
	s.begun = now
	if s.lasts > 0 {
		s.expected = now.Add(s.lasts)
	}
}

// fileName keeps the files of a second start on a machine apart from those of the first.
func fileName(name string, number int) string {
	if number == 1 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, number)
}

// Prefill runs the jobs of a start that was begun, at most width members at a time in order of name, each within its
// own limit. Every member must succeed.
func (l *Set) Prefill(ctx context.Context, s *Start, width int, limit time.Duration) error {
	if err := l.serve(ctx, s); err != nil {
		return err
	}
	defer l.release(s)
	l.event(s, "", result.WorkloadStart, "")
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	err := clock.Parallel(l.Clock, len(s.jobs), width, func(i int) error {
		if within.Err() != nil {
			return nil
		}
		one := &Start{load: s.load, name: s.name, number: s.number, prefill: true, jobs: s.jobs[i : i+1], closed: true}
		if err := l.launch(s, s.jobs[i]); err != nil {
			cancel()
			return err
		}
		err := l.Wait(within, one, limit)
		if _, ended, message := l.state(s.jobs[i]); err == nil && ended != result.Finished {
			err = fmt.Errorf("workload %q on %s: not accessible any more: %s", s.name, s.jobs[i].vm.Name, message)
		}
		if err != nil {
			cancel() // the others stop; the step has failed
		}
		if within.Err() != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
	l.mu.Lock()
	s.waited = true
	l.mu.Unlock()
	if err == nil && ctx.Err() == nil {
		l.close(s, result.WorkloadEnd)
		return nil
	}
	l.Stop(context.WithoutCancel(ctx), s)
	return cmp.Or(ctx.Err(), err)
}

// Depth is the depth of a workload's prefill, which the first of them decides.
func (l *Set) Depth(workload string, first int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, decided := l.depth[workload]; !decided {
		l.depth[workload] = first
	}
	return l.depth[workload]
}

// reachable returns the machines' hosts, or an error listing those that do not answer.
func (l *Set) reachable(ctx context.Context, vms []target.VM) ([]target.Host, error) {
	hosts := make([]target.Host, len(vms))
	reasons := make([]error, len(vms))
	_ = clock.Parallel(l.Clock, len(vms), AccessWidth, func(i int) error {
		host, err := l.Cluster.Host(vms[i].Name)
		if err == nil {
			err = host.Accessible(ctx)
		}
		hosts[i], reasons[i] = host, err
		return nil
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var silent []string
	var errs []error
	for i, err := range reasons {
		if err != nil {
			silent = append(silent, vms[i].Name)
			errs = append(errs, err)
		}
	}
	if len(silent) > 0 {
		return nil, fmt.Errorf("%s not accessible: %s: %w", unit.Plural(len(silent), "VM"),
			unit.List(silent, mostNamed), errs[0])
	}
	return hosts, nil
}

// StartAll launches the jobs of a start, staggered. A stop leaves the rest unstarted. Being late is worth a warning, no
// more.
func (l *Set) StartAll(ctx context.Context, s *Start, stagger time.Duration) error {
	const tolerance = time.Second
	if err := l.serve(ctx, s); err != nil {
		return err
	}
	defer l.release(s)
	s.beginsAt(l.Clock.Now())
	l.event(s, "", result.WorkloadStart, "")
	together := l.gated(s, stagger)
	worst := time.Duration(0)
	for i, offset := range Offsets(len(s.jobs), stagger) {
		late := l.Clock.Now().Sub(s.begun.Add(offset))
		if err := l.Clock.Sleep(ctx, -late); err != nil {
			return err
		}
		if offset > 0 {
			worst = max(worst, late)
		}
		if err := l.launch(s, s.jobs[i]); err != nil {
			return err
		}
	}
	if worst > tolerance {
		l.Record(result.Event{Kind: result.KindWarning, Text: fmt.Sprintf(
			"workload %q: starting %s took longer than their stagger allows: up to %s late",
			s.name, unit.Plural(len(s.jobs), "VM"), unit.Duration(worst))})
	}
	if together == nil {
		return l.awaitFirst(ctx, s)
	}
	late, err := together.open(ctx, l.Clock, gateLimit)
	if len(late) > 0 {
		l.Record(result.Event{Kind: result.KindWarning, Text: fmt.Sprintf(
			"workload %q: %s not ready within %s: the others began without: %s", s.name, unit.Plural(len(late), "VM"),
			gateLimit, unit.List(late, mostNamed))})
	}
	if err == nil {
		err = l.Clock.Sleep(ctx, together.at.Sub(l.Clock.Now()))
	}
	s.beginsAt(l.Clock.Now())
	return errors.Join(err, l.awaitFirst(ctx, s))
}

// awaitFirst waits until every job of a start that prepares has done something or is over; the start begins then.
func (l *Set) awaitFirst(ctx context.Context, s *Start) error {
	until := l.Clock.Now().Add(gateLimit)
	for _, j := range s.jobs {
		for j.launch.Describe.Prepares && j.did.Load() == 0 {
			if _, ended, _ := l.state(j); ended != "" {
				break
			}
			if !l.Clock.Now().Before(until) {
				l.Record(result.Event{Kind: result.KindWarning, Text: fmt.Sprintf(
					"workload %q: no operation of %s within %s: what follows goes on without", s.name, j.vm.Name, gateLimit)})
				break
			}
			if err := l.Clock.Sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
			s.beginsAt(l.Clock.Now())
		}
	}
	return nil
}

// Wait waits until every job of a start has ended well, within one limit for all of them: beyond the expected end where
// that is known, else from now. A VM that is out of reach is recorded as lost and skipped: failure scenarios wait for
// workloads whose VMs they kill. A job that failed, was stopped, or vanished in a VM that answers again fails the wait.
// A stop of the run stops the jobs.
func (l *Set) Wait(ctx context.Context, s *Start, limit time.Duration) error {
	deadline := l.Clock.Now().Add(limit)
	if !s.expected.IsZero() {
		deadline = s.expected.Add(limit)
	}
	l.mu.Lock()
	s.waited = true
	l.mu.Unlock()
	// no more than 200 machines a second are asked
	reach := max(5*time.Second, time.Duration(len(s.jobs))*time.Second/200)
	w := waiting{l: l, s: s, pending: s.jobs, reach: reach, ends: -1, began: l.Clock.Now()}
	for {
		w.look(ctx)
		switch {
		case ctx.Err() != nil:
			l.Stop(context.WithoutCancel(ctx), s)
			return ctx.Err()
		case len(w.pending) == 0:
			l.close(s, result.WorkloadEnd)
			return errors.Join(w.errs...)
		case !l.Clock.Now().Before(deadline):
			return errors.Join(append(w.errs, w.overdue(limit))...)
		}
		_ = l.Clock.Sleep(ctx, min(w.pause(), max(deadline.Sub(l.Clock.Now()), time.Millisecond)))
	}
}

// waiting is the state of one wait.
type waiting struct {
	l       *Set
	s       *Start
	pending []*job
	errs    []error
	reach   time.Duration // between two looks at whether a machine still answers
	looked  time.Time
	ends    int // of jobs, as Loads had counted them at the last look
	began   time.Time
}

// pause is how long until the next look: the end is noticed within a hundredth of the time waited for it, and no
// earlier than it is expected.
func (w *waiting) pause() time.Duration {
	const shortest, longest = 20 * time.Millisecond, time.Second
	now := w.l.Clock.Now()
	if left := w.s.expected.Sub(now); left > 0 {
		return min(left, longest)
	}
	since := w.began
	if w.s.expected.After(since) {
		since = w.s.expected
	}
	return min(max(now.Sub(since)/100, shortest), longest)
}

// look takes the jobs that have ended, or whose machine is gone, off the list.
func (w *waiting) look(ctx context.Context) {
	ask := w.l.Clock.Now().Sub(w.looked) >= w.reach
	if ask {
		w.looked = w.l.Clock.Now()
	}
	w.l.mu.Lock()
	ends := w.l.ends
	w.l.mu.Unlock()
	if !ask && ends == w.ends {
		return // all of them were running at the last look, and no job has ended since
	}
	w.ends = ends
	var left []*job
	for _, j := range w.pending {
		launched, ended, message := w.l.state(j)
		switch {
		case !launched || ended == result.Finished:
		case ended == result.Lost:
			if reason := j.host.Accessible(ctx); reason != nil {
				w.l.markLost(w.s, j, reason)
			} else if ctx.Err() == nil {
				w.fail(j, "it vanished when the machine went away, and the machine is back: "+message)
			}
		case ended == result.Failed:
			w.fail(j, firstLine(message))
		case ended == result.Stopped:
			w.fail(j, "it was stopped before it ended")
		case ask:
			if p, is := j.host.(target.Patient); is && p.Patience() > 0 {
				left = append(left, j) // its process says when it is lost
				continue
			}
			if reason := j.host.Accessible(ctx); errors.Is(reason, target.ErrNotAccessible) && ctx.Err() == nil {
				w.l.markLost(w.s, j, reason)
				continue
			}
			left = append(left, j)
		default:
			left = append(left, j)
		}
	}
	w.pending = left
}

func (w *waiting) fail(j *job, why string) {
	w.errs = append(w.errs, errors.New(ofJob(w.s.name, j, why)))
}

// ofJob says of which job it is, unless the generator has done so itself.
func ofJob(name string, j *job, why string) string {
	if strings.Contains(why, j.vm.Name) {
		return why
	}
	return fmt.Sprintf("workload %q on %s: %s", name, j.vm.Name, why)
}

func (w *waiting) overdue(limit time.Duration) error {
	list := make([]string, len(w.pending))
	for i, j := range w.pending {
		list[i] = j.vm.Name
	}
	when := "of the wait's begin"
	if !w.s.expected.IsZero() {
		when = "after its expected end"
	}
	return fmt.Errorf("workload %q: not ended within %s %s on %s: %s; give the step a longer timeout_secs",
		w.s.name, unit.Duration(limit), when, unit.Plural(len(list), "VM"), unit.List(list, mostNamed))
}
