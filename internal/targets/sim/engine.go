package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
)

// Engine implements workload.Simulating: any generator's real engine reads and adapts the author's file, and the
// performance model does what it says.
func (c *cluster) Engine(_ string, real workload.Engine) (workload.Engine, bool) {
	return engine{real}, real != nil && !c.w.o.RunTools
}

// Replay returns the engine that reads what a simulated run has kept of a generator's output.
func Replay(real workload.Engine) workload.Engine { return engine{real} }

// engine is a real engine whose tool is modelled. Its raw output is one JSON document per line and report, see
// appendLine.
type engine struct{ real workload.Engine }

var (
	_ workload.Engine  = engine{}
	_ workload.Peering = engine{}
)

// Describe implements workload.Engine.
func (e engine) Describe() workload.Description { return e.real.Describe() }

// Check implements workload.Engine: there is no tool, only a machine that must answer.
func (e engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	if err := host.Accessible(ctx); err != nil {
		return workload.Tool{}, fmt.Errorf("check: %s on %s: %w", e.real.Describe().Name, host.Name(), err)
	}
	return workload.Tool{Path: "modelled", Version: "modelled"}, nil
}

// Validate implements workload.Engine.
func (e engine) Validate(s workload.Spec) error { return e.real.Validate(s) }

// Command implements workload.Engine.
func (e engine) Command(s workload.Spec) (workload.Job, error) { return e.real.Command(s) }

// Peers implements workload.Peering: the machines that the real engine names, on which no server has to run.
func (e engine) Peers(s workload.Spec) (workload.Peers, bool, error) {
	real, ok := e.real.(workload.Peering)
	if !ok {
		return workload.Peers{}, false, nil
	}
	use, there, err := real.Peers(s)
	use.Served = false
	return use, there, err
}

// Server implements workload.Peering.
func (e engine) Server(s workload.Spec) (workload.Server, error) {
	return workload.Server{}, fmt.Errorf("workload %q: servers are not run on a simulated cluster", s.Name)
}

// CheckServer implements workload.Peering.
func (e engine) CheckServer(context.Context, target.Host, workload.Spec) (workload.Tool, error) {
	return workload.Tool{}, nil
}

// Run implements workload.Engine.
func (e engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	name := job.Command.Label
	h, ok := env.Host.(*host)
	if !ok {
		return workload.Outcome{}, fmt.Errorf("start: workload %s: %s is no machine of a simulated cluster", name,
			env.Host.Name())
	}
	p, err := e.start(ctx, h, job)
	if err != nil {
		if ctx.Err() != nil {
			return workload.Outcome{Stopped: true}, nil
		}
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", name, h.Name(), err)
	}
	w := h.c.w
	j := &modelled{m: h.m, p: p, env: env, at: workload.BlockIndexes(job.Operations),
		declared: job.Declared}
	w.mu.Lock()
	if !p.ended {
		w.models.add(j, name, job)
	}
	w.mu.Unlock()
	exit, err := p.Wait(ctx)
	return j.outcome(exit, err != nil), j.err
}

// start puts the job's files on the machine and makes its process.
func (e engine) start(ctx context.Context, h *host, job workload.Job) (*process, error) {
	for _, name := range slices.Sorted(maps.Keys(job.Files)) {
		if err := target.WriteFile(ctx, h, name, job.Files[name]); err != nil {
			return nil, err
		}
	}
	return h.start(ctx, job.Command, false)
}

// outcome closes a job that has ended by itself, was stopped, or was lost with its machine. In the latter cases it
// reports once more: what was done until then counts, unless the machine does not answer.
func (j *modelled) outcome(exit target.Exit, stopped bool) workload.Outcome {
	w := j.p.w
	w.mu.Lock()
	cut := j.job != nil && slices.Contains(w.models.jobs, j)
	var r workload.Report
	var points []workload.Point
	if cut {
		r = w.models.drop(j)
		points = j.job.Passed()
	}
	if stopped {
		j.p.end(target.Exit{Code: -1, Signal: "killed"})
		exit = j.p.exit
	}
	usage, silent := j.p.usage, j.p.silent
	w.mu.Unlock()
	if cut && !silent {
		j.hand(points, r)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	return workload.Outcome{Exit: exit, Stopped: stopped, Reports: j.reports, Usage: usage}
}

// hand writes a report to the raw output and to the sink, which gets what led to it first. A raw output that cannot be
// written ends the job.
func (j *modelled) hand(points []workload.Point, r workload.Report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over || j.err != nil || j.reports > 0 && !r.Time.After(j.last) && !r.Final {
		return
	}
	j.last = r.Time
	skew := time.Duration(j.skew.Load())
	r.Time = r.Time.Add(skew)
	j.line = appendLine(j.line[:0], r, j.at)
	if _, err := j.env.Raw.Write(j.line); err != nil {
		j.err = fmt.Errorf("raw output: %w", err)
		_ = j.p.Kill() // cannot fail
		return
	}
	j.reports++
	if sink, ok := j.env.Sink.(workload.Tracer); ok && len(points) > 0 {
		for i := range points {
			points[i].Time = points[i].Time.Add(skew)
		}
		sink.Points(points)
	}
	r.Values = notModelled(j.declared)
	j.env.Sink.Report(r)
}

// notModelled are the values of what a job declares to measure: the model has none.
func notModelled(d workload.Declared) []float64 {
	var values []float64
	for range d.Measures {
		values = append(values, math.NaN())
	}
	return values
}

// longestLine is the most one report can take, with room to spare.
const longestLine = 1 << 20

// Parse implements workload.Engine.
func (e engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	var o workload.Outcome
	at := workload.BlockIndexes(d.Operations)
	lines := bufio.NewScanner(raw)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		r, ok := parseLine(lines.Bytes(), len(d.Operations), at)
		if !ok {
			sink.Warn("a line of the simulated output is no report")
			continue
		}
		o.Reports++
		o.Errors, r.Values = r.Errors, notModelled(d)
		sink.Report(r)
	}
	if err := lines.Err(); err != nil {
		return o, fmt.Errorf("parse: simulated output: %w", err)
	}
	if o.Reports == 0 {
		return o, errors.New("parse: simulated output: it holds no report")
	}
	return o, nil
}
