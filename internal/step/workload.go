package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/scenario"
	"plimsoll/unit"
)

func workloadSteps() Registry {
	return Registry{
		"workload.PrefillRun":   single(prefillRun),
		"workload.PrefillStart": single(prefillStart),
		"workload.PrefillWait":  single(prefillWait),
		"workload.Start":        single(startWorkload),
		"workload.Wait":         single(waitWorkload),
		"workload.Stop":         single(stopWorkload),
	}
}

// groupWords names the group of a workload with its size now.
func groupWords(v View, load scenario.Workload) string {
	m, err := v.Groups.Members(load.Group)
	if err != nil {
		return fmt.Sprintf("group %q", load.Group)
	}
	return fmt.Sprintf("group %q (%s)", load.Group, count(len(m), "VM"))
}

func prefillRun(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	width := a.Int("max_concurrent")
	return &action{
		text: fmt.Sprintf("prefill workload %q on group %q, %d at a time", load.Name, load.Group, width),
		estimate: func(f *Forecast) time.Duration {
			return f.prefill(load, width, a.Seconds("timeout_secs"), false)
		},
		do: func(ctx context.Context, e *Env) error {
			return e.Loads.prefill(ctx, e, load, width, a.Seconds("timeout_secs"))
		},
	}, nil
}

// prefill writes every member's data once, at most width members at a time in order of name, each within its own limit.
// Every member must succeed.
func (l *Loads) prefill(ctx context.Context, e *Env, load scenario.Workload, width int, limit time.Duration) error {
	s, err := l.begin(ctx, e, load, startOptions{
		prefill: true, depth: l.depthOf(e.View, load, width), seed: PrefillName(load.Name),
	})
	if err != nil {
		return err
	}
	if err := l.serve(ctx, e, s); err != nil {
		return err
	}
	defer l.release(s)
	l.event(s, "", "start", "")
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	err = e.parallel(len(s.jobs), width, func(i int) error {
		if within.Err() != nil {
			return nil
		}
		one := &start{load: s.load, name: s.name, number: s.number, prefill: true, jobs: s.jobs[i : i+1], closed: true}
		if err := l.launch(s, s.jobs[i]); err != nil {
			cancel()
			return err
		}
		err := l.wait(within, e, one, limit)
		if _, ended, message := l.state(s.jobs[i]); err == nil && ended != Finished {
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
		l.close(s, "end")
		return nil
	}
	l.stop(context.WithoutCancel(ctx), s)
	return cmp.Or(ctx.Err(), err)
}

// depthOf decides the depth of a workload's prefill at its first one and keeps it. A width of 0 is a prefill of all members at once.
func (l *Loads) depthOf(v View, load scenario.Workload, width int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, ok := l.depth[load.Name]; ok {
		return d
	}
	d := prefillDepthOf(v, load, width)
	l.depth[load.Name] = d
	return d
}

// prefillDepthOf is the depth at which a workload's group is prefilled, so many members at a time; 0 stands for all.
func prefillDepthOf(v View, load scenario.Workload, width int) int {
	m, err := v.Groups.Members(load.Group)
	if err != nil || width <= 0 {
		return prefillDepth
	}
	nodes := map[int]bool{}
	for _, p := range m {
		nodes[p.Node] = true
	}
	return PrefillDepth(len(m), len(nodes), width)
}

func prefillStart(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	async := a.Bool("async")
	return &action{
		text:     fmt.Sprintf("prefill workload %q on all of %s at once%s", load.Name, groupWords(v, load), unwaited(async)),
		estimate: func(f *Forecast) time.Duration { return f.prefill(load, 0, PrefillLimit, async) },
		do: func(ctx context.Context, e *Env) error {
			s, err := e.Loads.begin(ctx, e, load, startOptions{prefill: true, depth: e.Loads.depthOf(e.View, load, 0), seed: PrefillName(load.Name)})
			if err != nil {
				return err
			}
			if err := e.Loads.startAll(ctx, e, s, 0); err != nil || async {
				return err
			}
			return e.Loads.wait(ctx, e, s, PrefillLimit)
		},
	}, nil
}

func prefillWait(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	return waitFor(PrefillName(load.Name), a.Seconds("timeout_secs"), a.Bool("annotate")), nil
}

func unwaited(async bool) string {
	if async {
		return ", without waiting"
	}
	return ""
}

func startWorkload(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	async := a.Bool("async")
	if async && a.Has("timeout_secs") {
		return nil, fmt.Errorf("workload %q: timeout_secs has no meaning with async; give it to the workload.Wait", load.Name)
	}
	o := startOptions{runtime: v.Scaled(a.Seconds("runtime_secs")), stagger: v.Scaled(a.Seconds("stagger_secs")), seed: load.Name}
	if a.Has("seed") {
		o.seed = a.String("seed")
	}
	limit := DefaultWait
	if a.Has("timeout_secs") {
		limit = a.Seconds("timeout_secs")
	}
	return &action{
		text:     startWords(v, load, o, async),
		estimate: func(f *Forecast) time.Duration { return f.start(load, o, limit, async) },
		do: func(ctx context.Context, e *Env) error {
			s, err := e.Loads.begin(ctx, e, load, o)
			if err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Started workload %s", load.Name)
			if err := e.Loads.startAll(ctx, e, s, o.stagger); err != nil || async {
				return err
			}
			if err := e.Loads.wait(ctx, e, s, limit); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Finished workload %s", load.Name)
			return nil
		},
	}, nil
}

func startWords(v View, load scenario.Workload, o startOptions, async bool) string {
	text := fmt.Sprintf("run workload %q on group %q%s", load.Name, load.Group, lasts(v, load, o))
	if o.stagger > 0 {
		text += ", starts spread over " + unit.Duration(o.stagger).String()
	}
	return text + unwaited(async)
}

// lasts says how long a workload runs: as the step says, unless its job file has times of its own, which win.
func lasts(v View, load scenario.Workload, o startOptions) string {
	job := v.job(JobUse{Workload: load.Name, Runtime: o.runtime})
	limit := unit.Duration(job.Limit).String()
	switch {
	case o.runtime > 0 && (job.Limit == 0 || (job.Limit-o.runtime).Abs() <= time.Second):
		return " for " + unit.Duration(o.runtime).String()
	case job.Limit == 0:
		return " until its size is done"
	case timed(job):
		return " for " + limit + ", as its job file says"
	}
	return " until its size is done, " + limit + " at most, as its job file says"
}

func waitWorkload(a scenario.Args, _ View) (*action, error) {
	limit := DefaultWait
	if a.Has("timeout_secs") {
		limit = a.Seconds("timeout_secs")
	}
	return waitFor(a.String("workload_name"), limit, a.Bool("annotate")), nil
}

func waitFor(name string, limit time.Duration, annotate bool) *action {
	return &action{
		text:     fmt.Sprintf("wait for workload %q", name),
		estimate: func(f *Forecast) time.Duration { return f.await(name, limit) },
		do: func(ctx context.Context, e *Env) error {
			s, err := e.Loads.last(name)
			if err != nil {
				return err
			}
			if err := e.Loads.wait(ctx, e, s, limit); err != nil {
				return err
			}
			e.annotate(annotate, "Finished workload %s", name)
			return nil
		},
	}
}

func stopWorkload(a scenario.Args, _ View) (*action, error) {
	name := a.String("workload_name")
	return &action{
		text:     fmt.Sprintf("stop workload %q", name),
		estimate: func(f *Forecast) time.Duration { f.stop(name); return 0 },
		do: func(ctx context.Context, e *Env) error {
			s, err := e.Loads.last(name)
			if err != nil { // what cannot be stopped is only noted, as everywhere in this step
				e.Warn("%v", err)
				return nil
			}
			for _, text := range e.Loads.stop(ctx, s) {
				e.Warn("%s", text)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.annotate(a.Bool("annotate"), "Stopped workload %s", name)
			return nil
		},
	}, nil
}
