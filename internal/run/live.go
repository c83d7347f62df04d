package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/unit"
)

// Cluster metrics are read every clusterEvery of unscaled time, at least fewestReadings times per run, at most once per
// second.
const (
	clusterEvery   = 60 * time.Second
	fewestReadings = 5
)

func (x *execution) clusterPeriod() time.Duration {
	p := min(x.req.Plan.View().Scaled(clusterEvery), x.req.Plan.Estimated()/(2*fewestReadings))
	return min(max(p, time.Second), clusterEvery)
}

func (x *execution) interval() time.Duration {
	switch {
	case x.req.Interval > 0:
		return x.req.Interval
	case x.req.Facts.Simulated && x.req.Plan.Estimated() > time.Hour:
		return 5 * time.Second
	}
	return time.Second
}

// watch records metrics and tells the observer, once per interval, until the returned function is called.
func (x *execution) watch(ctx context.Context) (stop func()) {
	watching, cancel := context.WithCancel(ctx)
	w := &watcher{x: x, vms: map[string]target.VM{}, period: x.clusterPeriod()}
	g := x.req.Clock.Group()
	g.Go(func() {
		for x.req.Clock.Sleep(watching, x.interval()) == nil {
			w.tick(watching)
		}
	})
	if x.scraper != nil {
		g.Go(func() { x.scraper.scrape(watching) })
	}
	if x.clocks == nil {
		x.clocks = x.newClocks(ctx)
	}
	clocks := x.clocks
	if clocks != nil {
		clocks.read(ctx)
		g.Go(func() { clocks.watch(watching) })
	}
	return func() {
		cancel()
		g.Wait()
		if clocks != nil {
			clocks.read(context.WithoutCancel(ctx))
		}
		w.tick(context.WithoutCancel(ctx))
	}
}

type watcher struct {
	x       *execution
	vms     map[string]target.VM // as last told to the recorder
	list    []target.VM          // as the cluster last gave it
	period  time.Duration
	metrics time.Time       // when the cluster's were last read
	nodes   []target.Metric // what the cluster's metrics were then
	failed  bool
	silent  bool
	blind   bool
}

// tick takes note of the machines, reads the cluster's metrics when due, writes the points that are due and reports
// progress. A defect of a target in here must not end the process.
func (w *watcher) tick(ctx context.Context) {
	x := w.x
	err := x.guarded(func() error {
		x.env.Loads.Mind()
		w.machines(ctx)
		w.cluster(ctx)
		w.underneath(ctx)
		return x.recorder.Tick()
	})
	if err != nil && !w.failed {
		w.failed = true
		x.loseMetrics("metrics could not be written", err)
	}
	x.progress()
}

// loseMetrics tells, once, that metrics are incomplete.
func (x *execution) loseMetrics(what string, err error) {
	why := sentence(err)
	x.mu.Lock()
	known := slices.Contains(x.lost, why)
	if !known {
		x.lost = append(x.lost, why)
	}
	x.mu.Unlock()
	if !known {
		x.record(result.Event{Kind: result.KindWarning, Text: what, Error: why})
	}
}

// machines tells the recorder which machines are on, so that idle ones have points, too.
func (w *watcher) machines(ctx context.Context) {
	list, err := w.x.cluster.VMs(ctx)
	if err != nil {
		return // the cluster manager may be down with its node; jobs and steps tell
	}
	if slices.Equal(w.list, list) {
		return
	}
	w.list = slices.Clone(list)
	seen := map[string]bool{}
	for _, vm := range list {
		if vm.Template {
			continue
		}
		seen[vm.Name] = true
		before, known := w.vms[vm.Name]
		if on := vm.Power == target.On; !known && on || known && (before.Power != vm.Power || before.Node != vm.Node) {
			w.x.recorder.VM(vm.Name, vm.Group, vm.Node, on)
			w.vms[vm.Name] = vm
			if !on {
				w.metrics = time.Time{} // perhaps with its node, whose metrics end then
			}
		}
	}
	for name, vm := range w.vms {
		if !seen[name] {
			w.x.recorder.VM(name, vm.Group, vm.Node, false)
			delete(w.vms, name)
		}
	}
}

// cluster reads the cluster's own counters when they are due.
func (w *watcher) cluster(ctx context.Context) {
	source, ok := w.x.cluster.(target.MetricsSource)
	now := w.x.req.Clock.Now()
	if !ok || !w.x.req.Facts.Can(target.ClusterMetrics) || !w.metrics.IsZero() && now.Sub(w.metrics) < w.period {
		return
	}
	w.metrics = now
	values, err := source.ClusterMetrics(ctx)
	if err != nil {
		if ctx.Err() == nil && !w.silent {
			w.silent = true
			w.x.record(result.Event{Kind: result.KindWarning, Text: "cluster metrics could not be read",
				Error: sentence(err)})
		}
		return
	}
	w.silent = false
	there := make(map[target.Metric]bool, len(values)) // whatever their values
	for _, m := range values {
		m.Value = 0
		there[m] = true
	}
	before := w.nodes
	w.nodes = slices.Clone(values)
	for _, m := range before {
		if m.Value = 0; !there[m] {
			m.Value = series.Ended()
			values = append(values, m) // of a node that is off
		}
	}
	for _, m := range values {
		name := ""
		if m.Node >= 0 && m.Node < len(w.x.req.Facts.Nodes) {
			name = w.x.req.Facts.Nodes[m.Node].Name
		}
		w.x.recorder.Cluster(m.Name, m.Node, name, m.Value)
	}
}

// underneath reads the counters of the machines below the VMs, where the target can.
func (w *watcher) underneath(ctx context.Context) {
	source, ok := w.x.cluster.(target.HostSource)
	if !ok {
		return
	}
	now, err := source.HostCounters(ctx)
	if err != nil {
		if ctx.Err() == nil && !w.blind {
			w.blind = true
			w.x.record(result.Event{Kind: result.KindWarning, Text: "counters of the host could not be read",
				Error: sentence(err)})
		}
		return
	}
	w.blind = false
	for _, c := range now.CPUs {
		cpu := "all"
		if c.CPU >= 0 {
			cpu = strconv.Itoa(c.CPU)
		}
		w.x.recorder.HostCPU(record.HostCPUTime{Host: c.Host, CPU: cpu, NUMA: c.NUMA, User: c.User, System: c.System,
			Interrupt: c.Interrupt,
			Steal:     c.Steal, Idle: c.Idle})
	}
	for _, d := range now.Devices {
		w.x.recorder.HostDevice(record.HostDevice(d))
	}
	for _, q := range now.Quotas {
		w.x.recorder.Quota(q.Machine, q.Periods, q.Throttled)
	}
	for _, q := range now.Waits {
		w.x.recorder.Waited(q.Machine, q.Resource, q.Waited)
	}
	for _, g := range now.Generators {
		w.x.recorder.Generator(g.VM, g.Label, g.Busy, g.Waiting)
	}
}

// progress tells the observer how far the run is.
func (x *execution) progress() {
	if x.req.Observer == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.req.Clock.Now()
	p := Progress{Phase: x.phase, Step: x.current, Steps: len(x.req.Plan.Steps), Elapsed: now.Sub(x.began),
		Rows: x.recorder.Live}
	for i := range x.req.Plan.Steps {
		s := &x.req.Plan.Steps[i] // there are thousands, and a copy costs more than the look
		estimate := time.Duration(s.EstimateSeconds * float64(time.Second))
		switch {
		case s.Number < x.current.Number:
			continue
		case s.Number == x.current.Number:
			estimate -= now.Sub(x.stepBegan)
			p.Late, estimate = max(0, -estimate), max(0, estimate)
		}
		p.Left += estimate
		p.Unknown = p.Unknown || s.EstimateUnknown
	}
	x.req.Observer.Progress(p)
}

// openOutput makes the place for a job's output in the run folder and in the metrics.
func (x *execution) openOutput(l loads.Launch) (loads.Output, error) {
	x.mu.Lock()
	phase := string(x.phase)
	x.mu.Unlock()
	job := result.RawJob{
		VM: l.VM, Group: l.Group, Node: l.Node, Workload: l.Workload, Attempt: l.Start, Prefill: l.Prefill,
		Rounds: l.Rounds,
		Phase:  phase,
		Engine: l.Engine, Tool: l.Tool.Version, Server: l.Server.Version,
		Latency:    cmp.Or(l.Job.Latency, l.Describe.Latency),
		Operations: l.Job.Operations, Measures: l.Job.Measures, Format: l.Job.Format, Command: l.Job.Command.Argv,
		Notes: l.Job.Notes, Start: l.Time, Apart: l.Job.Apart,
		Streams: result.MarkBrief(l.Job.Streams),
	}
	errs := []error{x.folder.WriteRawJob(job)}
	for name, data := range l.Job.Files {
		errs = append(errs, x.folder.WriteRawFile(l.VM, l.Workload, l.Start, name, data))
	}
	raw, err := x.folder.RawWriter(job)
	if err := errors.Join(append(errs, err)...); err != nil {
		if raw != nil {
			err = errors.Join(err, raw.Close())
		}
		return loads.Output{}, err
	}
	sink := x.recorder.Job(job)
	return loads.Output{Raw: raw, Sink: sink, Ended: func(ended result.Ending, message string, o workload.Outcome) {
		sink.End()
		job.End, job.Ended, job.Message = x.req.Clock.Now(), ended, message
		job.ClockSeconds, job.ClockEndSeconds = sink.ClockSeconds()
		job.ClockSet = sink.ClockSet()
		job.Began, job.BeganBoundSeconds = o.Began.At.Round(0), o.Began.Within.Seconds()
		if err := x.folder.WriteRawJob(job); err != nil {
			x.record(result.Event{Kind: result.KindWarning, Text: "a job's end could not be recorded",
				Error: sentence(err)})
		}
	}}, nil
}

// printed opens what a start of a workload printed, in the run folder.
func (x *execution) printed(l loads.Launch) (io.ReadCloser, error) {
	return x.folder.OpenRaw(result.RawJob{VM: l.VM, Workload: l.Workload, Attempt: l.Start, Engine: l.Engine})
}

// closeMetrics writes what the recorder still holds and closes the database.
func (x *execution) closeMetrics() {
	if err := errors.Join(x.recorder.Close(), x.store.Close()); err != nil {
		x.loseMetrics("metrics could not be closed", err)
	}
	for name, sum := range x.store.Sums() {
		x.folder.Hashed(path.Join(filepath.Base(x.folder.MetricsDir()), name), sum)
	}
}

// send begins to send the metrics on, where that is asked for.
func (x *execution) send() (*series.Sender, error) {
	if x.req.Remote == nil {
		return nil, nil
	}
	return x.store.Send(x.req.Remote, []series.Label{{Name: series.RunLabel, Value: x.req.RunID}}, func(why string) {
		x.record(result.Event{Kind: result.KindWarning, Error: why,
			Text: "remote write to " + x.req.Remote.Servers() + " fails; it is tried again, and the run goes on"})
	})
}

// sent waits, shortly, for what is left to be sent, and tells what did not arrive.
func (x *execution) sent(outer context.Context) {
	if x.sender == nil {
		return
	}
	wait := time.Minute
	if outer.Err() != nil { // somebody waits for the end
		wait = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	began := x.req.Clock.Now()
	sum := x.sender.Close(ctx)
	waited := x.req.Clock.Now().Sub(began).Round(time.Second)
	e := result.Event{Kind: result.KindNote,
		Text: fmt.Sprintf("remote write to %s: %s taken", x.req.Remote.Servers(), unit.Plural(sum.Points, "point"))}
	if waited > 0 {
		e.Text += fmt.Sprintf(", waited for %s after the run", unit.Duration(waited))
	}
	if sum.Missed > 0 {
		e.Kind, e.Error = result.KindWarning, sum.Why
		e.Text += fmt.Sprintf(", %d not confirmed; they are in the run folder", sum.Missed)
	}
	x.record(e)
}

// Collected is the verdict on what was collected.
func Collected(data *result.Data) result.Verdict {
	if len(data.Problems) > 0 {
		return result.Verdict{State: "partly", Reason: shortList(data.Problems)}
	}
	return result.Verdict{State: "yes"}
}

// later reports whether collecting is left to who asks for the report.
func (x *execution) later(outer context.Context) bool {
	return x.stopped && errors.Is(context.Cause(outer), ErrTerminated) &&
		x.folder.MeasuredOver(cmp.Or(x.req.AtOnce, collectedAtOnce))
}

// collect makes data.json of what was measured and lets the finishers make their documents. Nothing here changes what
// was measured.
func (x *execution) collect(outer context.Context) {
	ctx := context.WithoutCancel(outer)
	verdict := result.Verdict{State: "yes"}
	var problems []error
	var data *result.Data
	later := x.later(outer)
	err := x.guarded(func() (err error) {
		if later {
			verdict = result.Verdict{State: "pending", Reason: "the run was told to end at once, and the report collects it"}
			return nil
		}
		if data, err = collect.Collect(ctx, x.folder, x.engines); err != nil {
			return err
		}
		verdict = Collected(data)
		return x.folder.WriteData(data)
	})
	if err != nil {
		problems = append(problems, err)
		verdict = result.Verdict{State: "no", Reason: sentence(err)}
	}
	if err := x.folder.Hash(ctx); err != nil {
		problems = append(problems, err)
	}
	x.update(func(m *result.Manifest) { m.Collected = verdict })
	if err == nil && !later {
		for _, finish := range x.req.Finish {
			if err := x.guarded(func() error { return finish(ctx, x.folder, data) }); err != nil {
				problems = append(problems, err)
			}
		}
	}
	if len(problems) == 0 {
		return
	}
	if err := errors.Join(problems...); regular.Full(err) { // what was measured could not be kept
		x.fail(fmt.Errorf("collecting: %w", err))
	}
	for _, err := range problems {
		x.record(result.Event{Kind: result.KindWarning, Text: "collecting", Error: sentence(err)})
	}
	if verdict.State == "yes" {
		x.update(func(m *result.Manifest) {
			m.Collected = result.Verdict{State: "partly", Reason: sentence(errors.Join(problems...))}
		})
	}
}
