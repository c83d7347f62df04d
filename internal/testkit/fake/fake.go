// Package fake is a load generator that needs no tool: seeded operations whose service times follow a law with known
// quantiles, on the run's clock. It is the oracle that analysis is tested against, and lets any scenario run in
// virtual time.
//
// It reads fio job files as far as the shape of the load goes: filename, rw, bs, bssplit, iodepth, numjobs, rate_iops,
// rate_process, size, runtime, time_based. Without a rate a section is a closed loop of iodepth operations; with one
// arrivals come on a schedule and start late when all iodepth places are taken. Histograms hold service time: a late
// start does not lengthen it, a stall does. It does no I/O, and refuses what it cannot read.
package fake

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// Engine is the generator. The zero value has exponential service times with a mean of 1 ms and no stalls.
type Engine struct {
	Law    Law
	Stalls Stalls
	// Samples bounds the draws per section and second; beyond it one draw stands for several operations in a row.
	// 0 is 20,000.
	Samples int
}

var _ workload.Engine = Engine{}

func (e Engine) law() Law {
	if e.Law == (Law{}) {
		return Law{Kind: Exponential, Mean: time.Millisecond}
	}
	return e.Law
}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: "fake", OpenLoop: true, Latency: "service time", Blocks: true, Prefills: true}
}

// Check implements workload.Engine. There is no tool to find.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	if err := host.Accessible(ctx); err != nil {
		return workload.Tool{}, fmt.Errorf("check: %s: %w", host.Name(), err)
	}
	return workload.Tool{}, nil
}

// Validate implements workload.Engine.
func (e Engine) Validate(spec workload.Spec) error {
	_, _, err := e.compile(spec)
	return err
}

const programFile = "fake.json"

// Command implements workload.Engine.
func (e Engine) Command(spec workload.Spec) (workload.Job, error) {
	p, streams, err := e.compile(spec)
	if err != nil {
		return workload.Job{}, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	job := workload.Job{
		Declared: workload.Declared{Operations: result.BlockOperations()},
		Command:  target.Command{Argv: []string{"fake"}, Label: spec.Name},
		Files:    map[string][]byte{programFile: text},
		Output:   "fake.out",
		Streams:  streams,
	}
	for _, s := range p.Streams {
		if s.Runtime == 0 {
			job.Limit = 0
			break
		}
		job.Limit = max(job.Limit, s.Runtime)
	}
	return job, nil
}

// Run implements workload.Engine.
func (e Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	if ctx.Err() != nil {
		return workload.Outcome{Stopped: true}, nil
	}
	var p program
	if err := json.Unmarshal(job.Files[programFile], &p); err != nil {
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", job.Command.Label, env.Host.Name(), err)
	}
	if err := env.Host.Accessible(ctx); err != nil {
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", p.Name, p.VM, err)
	}
	samples := e.Samples
	if samples <= 0 {
		samples = 20_000
	}
	m := newModel(p, samples)
	var outcome workload.Outcome
	began, elapsed := env.Clock.Now().Round(0), time.Duration(0)
	for {
		step, last := m.advance(elapsed + p.Every)
		if env.Clock.Sleep(ctx, began.Add(step).Sub(env.Clock.Now().Round(0))) != nil {
			outcome.Stopped = true
			return outcome, nil
		}
		if env.Host.Accessible(ctx) != nil {
			outcome.Exit = target.Exit{Code: -1, Signal: "killed", Lost: true}
			return outcome, nil
		}
		elapsed = step
		report := m.report(began.Add(elapsed), elapsed, last)
		if err := emit(env, report); err != nil {
			return outcome, fmt.Errorf("run: workload %s on %s: raw output: %w", p.Name, p.VM, err)
		}
		outcome.Reports++
		if last {
			return outcome, nil
		}
	}
}

// emit writes a report as a line of JSON, then passes on what a replay of that line gives.
func emit(env workload.Env, r workload.Report) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := env.Raw.Write(append(line, '\n')); err != nil {
		return err
	}
	var back workload.Report
	if err := json.Unmarshal(line, &back); err != nil {
		return err
	}
	env.Sink.Report(back)
	return nil
}

const maxLine = 16 << 20

// Parse implements workload.Engine.
func (Engine) Parse(_ workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	var outcome workload.Outcome
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var report workload.Report
		if err := json.Unmarshal(lines.Bytes(), &report); err != nil {
			sink.Warn(fmt.Sprintf("fake output: line %d was skipped: %v", n, err))
			continue
		}
		outcome.Reports++
		outcome.Errors = report.Errors
		sink.Report(report)
	}
	if err := lines.Err(); err != nil {
		return outcome, fmt.Errorf("parse: fake output: %w", err)
	}
	if outcome.Reports == 0 {
		return outcome, errors.New("parse: fake output: no report in it")
	}
	return outcome, nil
}
