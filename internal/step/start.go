package step

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/target"
	"plimsoll/internal/workload"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// DefaultWait is the limit of a wait, beyond the expected end of the workload where that is known, when the author gave none.
const DefaultWait = 300 * time.Second

// PrefillLimit is the limit of a prefill when the author gave none.
const PrefillLimit = 7200 * time.Second

// Depths of prefill: writes of 1 MiB outstanding per section of the job file.
const prefillDepth = 4

// PrefillDepth is how many writes a prefill keeps outstanding per section when at most maxConcurrent of a group's vms are
// prefilled at a time, spread over its nodes: about four per node in all, at least one.
func PrefillDepth(vms, nodes, maxConcurrent int) int {
	nodes = max(nodes, 1)
	perNode := (min(max(vms, 1), max(maxConcurrent, 1)) + nodes - 1) / nodes
	return max(1, prefillDepth/perNode)
}

// mostSections bounds the lanes of one workload, over all its machines, that are told apart: their reports, histograms and series cost
// about as much again as the totals.
const mostSections = 256

// Seed is the seed of the VM at a position of the list being started: the same text and position give the same sequence of
// operations in every run and on every cluster. It has 63 bits and is never 0, which would mean a sequence that changes.
func Seed(text string, index int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s_%d", text, index))
	return max(binary.BigEndian.Uint64(sum[:])>>1, 1)
}

// Offsets are the moments, after the first, at which n VMs start when their starts are spread evenly over stagger: the first at
// once, the last at stagger.
func Offsets(n int, stagger time.Duration) []time.Duration {
	offsets := make([]time.Duration, n)
	for i := 1; i < n; i++ {
		offsets[i] = time.Duration(float64(stagger) * float64(i) / float64(n-1))
	}
	return offsets
}

// startOptions are the arguments of a start, in the run's time.
type startOptions struct {
	prefill bool
	depth   int
	runtime time.Duration // 0: none
	stagger time.Duration
	seed    string
}

// begin makes ready a start of a workload on all members of its group; nothing runs yet.
func (l *Loads) begin(ctx context.Context, e *Env, load scenario.Workload, o startOptions) (*start, error) {
	s := &start{load: load, name: load.Name, prefill: o.prefill}
	if o.prefill {
		s.name = PrefillName(load.Name)
	}
	vms, err := someMembers(ctx, e, load.Group)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", s.name, err)
	}
	engine, err := EngineFor(e.Cluster, l.Engines, load.Generator)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", s.name, err)
	}
	hosts, err := reachable(ctx, e, vms)
	if err != nil {
		return nil, fmt.Errorf("workload %q: group %q: %w", s.name, load.Group, err)
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
		Prefill: o.prefill, Depth: o.depth, Interval: load.ReportingInterval, Runtime: o.runtime,
		SizeScale: e.SizeScale, TimeScale: e.TimeScale, Sections: mostSections / len(vms),
	}
	peers, err := l.findPeers(ctx, e, engine, common, hosts)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", s.name, err)
	}
	s.servers = peers.servers
	for i, vm := range vms {
		spec := common
		spec.VM, spec.Disks, spec.Seed = vm.Name, hosts[i].Disks(), Seed(o.seed, i)
		peers.of(&spec, i)
		prepared, err := engine.Command(spec)
		if err != nil {
			return nil, fmt.Errorf("workload %q: vm %q: %w", s.name, vm.Name, err)
		}
		s.jobs = append(s.jobs, &job{vm: vm, host: hosts[i], engine: engine, launch: Launch{
			Workload: s.name, Engine: load.Generator, Tool: tool, Describe: engine.Describe(), Group: load.Group,
			VM: vm.Name, Node: vm.Node, Prefill: o.prefill, Job: prepared,
		}})
	}
	if err := l.enter(s); err != nil {
		return nil, err
	}
	s.lasts = o.runtime + o.stagger
	if o.runtime == 0 {
		s.lasts = 0
	}
	s.beginsAt(l.Clock.Now())
	return s, nil
}

// beginsAt has a start begin at a moment.
func (s *start) beginsAt(now time.Time) {
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

// reachable returns the machines' hosts, or an error listing those that do not answer.
func reachable(ctx context.Context, e *Env, vms []target.VM) ([]target.Host, error) {
	hosts := make([]target.Host, len(vms))
	reasons := make([]error, len(vms))
	_ = e.parallel(len(vms), accessWidth, func(i int) error {
		host, err := e.Cluster.Host(vms[i].Name)
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
		return nil, fmt.Errorf("%s not accessible: %s: %w", count(len(silent), "VM"), some(silent), errs[0])
	}
	return hosts, nil
}

// startAll launches the jobs of a start, staggered. A stop leaves the rest unstarted. Being late is worth a warning, no more.
func (l *Loads) startAll(ctx context.Context, e *Env, s *start, stagger time.Duration) error {
	const tolerance = time.Second
	if err := l.serve(ctx, e, s); err != nil {
		return err
	}
	defer l.release(s)
	s.beginsAt(l.Clock.Now())
	l.event(s, "", "start", "")
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
		e.Warn("workload %q: starting %s took longer than their stagger allows: up to %s late", s.name, count(len(s.jobs), "VM"), unit.Duration(worst))
	}
	return nil
}

// wait waits until every job of a start has ended well, within one limit for all of them: beyond the expected end where that is
// known, else from now. A VM that is out of reach is recorded as lost and skipped: failure scenarios wait for workloads whose VMs
// they kill. A job that failed, was stopped, or vanished in a VM that answers again fails the wait. A stop of the run stops the jobs.
func (l *Loads) wait(ctx context.Context, e *Env, s *start, limit time.Duration) error {
	deadline := l.Clock.Now().Add(limit)
	if !s.expected.IsZero() {
		deadline = s.expected.Add(limit)
	}
	l.mu.Lock()
	s.waited = true
	l.mu.Unlock()
	reach := max(5*time.Second, time.Duration(len(s.jobs))*time.Second/200) // no more than 200 machines a second are asked
	w := waiting{l: l, s: s, pending: s.jobs, reach: reach, ends: -1, began: l.Clock.Now()}
	for {
		w.look(ctx)
		switch {
		case ctx.Err() != nil:
			l.stop(context.WithoutCancel(ctx), s)
			return ctx.Err()
		case len(w.pending) == 0:
			l.close(s, "end")
			return errors.Join(w.errs...)
		case !l.Clock.Now().Before(deadline):
			return errors.Join(append(w.errs, w.overdue(limit))...)
		}
		_ = l.Clock.Sleep(ctx, min(w.pause(), max(deadline.Sub(l.Clock.Now()), time.Millisecond)))
	}
}

// waiting is the state of one wait.
type waiting struct {
	l       *Loads
	s       *start
	pending []*job
	errs    []error
	reach   time.Duration // between two looks at whether a machine still answers
	looked  time.Time
	ends    int // of jobs, as Loads had counted them at the last look
	began   time.Time
}

// pause is how long until the next look: the end is noticed within a hundredth of the time waited for it, and no earlier than it is
// expected.
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
		case !launched || ended == Finished:
		case ended == Lost:
			if reason := j.host.Accessible(ctx); reason != nil {
				w.l.markLost(w.s, j, reason)
			} else if ctx.Err() == nil {
				w.fail(j, "it vanished when the machine went away, and the machine is back: "+message)
			}
		case ended == Failed:
			w.fail(j, firstLine(message))
		case ended == Stopped:
			w.fail(j, "it was stopped before it ended")
		case ask:
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
		w.s.name, unit.Duration(limit), when, count(len(list), "VM"), some(list))
}
