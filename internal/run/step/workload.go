package step

import (
	"context"
	"fmt"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// DefaultWait is the limit of a wait, beyond the expected end of the workload where that is known, when the author gave
// none.
const DefaultWait = 300 * time.Second

// PrefillLimit is the limit of a prefill when the author gave none.
const PrefillLimit = 7200 * time.Second

// Depths of prefill: writes of 1 MiB outstanding per section of the job file.
const prefillDepth = 4

// PrefillDepth is how many writes a prefill keeps outstanding per section when at most maxConcurrent of a group's vms
// are prefilled at a time, spread over its nodes: about four per node in all, at least one.
func PrefillDepth(vms, nodes, maxConcurrent int) int {
	nodes = max(nodes, 1)
	perNode := (min(max(vms, 1), max(maxConcurrent, 1)) + nodes - 1) / nodes
	return max(1, prefillDepth/perNode)
}

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
	return fmt.Sprintf("group %q (%s)", load.Group, unit.Plural(len(m), "VM"))
}

// begin makes ready a start of a workload on all members of its group.
func begin(ctx context.Context, e *Env, load scenario.Workload, o loads.Options) (*loads.Start, error) {
	vms, err := someMembers(ctx, e, load.Group)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", o.Name(load.Name), err)
	}
	o.Members = func(ctx context.Context, group string) ([]target.VM, error) { return someMembers(ctx, e, group) }
	return e.Loads.Begin(ctx, load, vms, o)
}

// beginPrefill makes ready a prefill of all members of a workload's group, so many at a time; 0 stands for all at once.
func beginPrefill(ctx context.Context, e *Env, load scenario.Workload, width int) (*loads.Start, error) {
	return begin(ctx, e, load, loads.Options{
		Prefill: true, Depth: e.Loads.Depth(load.Name, prefillDepthOf(e.View, load, width)),
		Seed: loads.PrefillName(load.Name),
	})
}

func prefillRun(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	width := a.Int("max_concurrent")
	return &action{
		text: fmt.Sprintf("prefill workload %q on group %q, %d at a time", load.Name, load.Group, width),
		uses: prefilling(load),
		estimate: func(f *Forecast) time.Duration {
			return f.prefill(load, width, a.Seconds("timeout_secs"), false)
		},
		do: func(ctx context.Context, e *Env) error {
			s, err := beginPrefill(ctx, e, load, width)
			if err != nil {
				return err
			}
			if err := e.Loads.Prefill(ctx, s, width, a.Seconds("timeout_secs")); err != nil {
				return err
			}
			return lookAfterPrefill(ctx, e, load, s)
		},
	}, nil
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
		text: fmt.Sprintf("prefill workload %q on all of %s at once%s", load.Name, groupWords(v, load),
			unwaited(async)),
		uses:     prefilling(load),
		estimate: func(f *Forecast) time.Duration { return f.prefill(load, 0, PrefillLimit, async) },
		do: func(ctx context.Context, e *Env) error {
			s, err := beginPrefill(ctx, e, load, 0)
			if err != nil {
				return err
			}
			if err := e.Loads.StartAll(ctx, s, 0); err != nil || async {
				return err
			}
			if err := e.Loads.Wait(ctx, s, PrefillLimit); err != nil {
				return err
			}
			return lookAfterPrefill(ctx, e, load, s)
		},
	}, nil
}

// prefilling is the use that a prefill makes of a workload. Its depth is decided when it is known how many prefill at a
// time; what may be written does not depend on it.
func prefilling(load scenario.Workload) Uses {
	return Uses{Jobs: []JobUse{{Workload: load.Name, Prefill: true, Depth: 1}}}
}

func prefillWait(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	wait := waitFor(loads.PrefillName(load.Name), a.Seconds("timeout_secs"), a.Bool("annotate"))
	waited := wait.do
	wait.do = func(ctx context.Context, e *Env) error {
		if err := waited(ctx, e); err != nil {
			return err
		}
		s, err := e.Loads.Last(loads.PrefillName(load.Name))
		if err != nil {
			return err
		}
		return lookAfterPrefill(ctx, e, load, s)
	}
	return wait, nil
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
		return nil, fmt.Errorf("workload %q: timeout_secs has no meaning with async; give it to the workload.Wait",
			load.Name)
	}
	o := loads.Options{
		Runtime: v.Scaled(a.Seconds("runtime_secs")), Stagger: v.Scaled(a.Seconds("stagger_secs")), Seed: load.Name,
	}
	if a.Has("seed") {
		o.Seed = a.String("seed")
	}
	limit := DefaultWait
	if a.Has("timeout_secs") {
		limit = a.Seconds("timeout_secs")
	}
	return &action{
		text:     startWords(v, load, o, async),
		uses:     Uses{Jobs: []JobUse{{Workload: load.Name, Runtime: o.Runtime}}},
		estimate: func(f *Forecast) time.Duration { return f.start(load, o, limit, async) },
		do: func(ctx context.Context, e *Env) error {
			s, err := begin(ctx, e, load, o)
			if err != nil {
				return err
			}
			if err := lookBeforeReads(ctx, e, load, s); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Started workload %s", load.Name)
			if err := e.Loads.StartAll(ctx, s, o.Stagger); err != nil || async {
				return err
			}
			if err := e.Loads.Wait(ctx, s, limit); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Finished workload %s", load.Name)
			return lookAtStored(ctx, e, load, s, result.AfterRun)
		},
	}, nil
}

func startWords(v View, load scenario.Workload, o loads.Options, async bool) string {
	text := fmt.Sprintf("run workload %q on group %q%s", load.Name, load.Group, lasts(v, load, o))
	if o.Stagger > 0 {
		text += ", starts spread over " + unit.Duration(o.Stagger).String()
	}
	return text + unwaited(async)
}

// lasts says how long a workload runs: as the step says, unless its job file has times of its own, which win.
func lasts(v View, load scenario.Workload, o loads.Options) string {
	job := v.job(JobUse{Workload: load.Name, Runtime: o.Runtime})
	limit := unit.Duration(job.Limit).String()
	switch {
	case o.Runtime > 0 && (job.Limit == 0 || (job.Limit-o.Runtime).Abs() <= time.Second):
		return " for " + unit.Duration(o.Runtime).String()
	case job.Limit == 0:
		return " until its size is done"
	case timed(job):
		return " for " + limit + ", as its job file says"
	}
	return " until its size is done, " + limit + " at most, as its job file says"
}

func waitWorkload(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	limit := DefaultWait
	if a.Has("timeout_secs") {
		limit = a.Seconds("timeout_secs")
	}
	wait := waitFor(load.Name, limit, a.Bool("annotate"))
	waited := wait.do
	wait.do = func(ctx context.Context, e *Env) error {
		if err := waited(ctx, e); err != nil {
			return err
		}
		s, err := e.Loads.Last(load.Name)
		if err != nil {
			return err
		}
		return lookAtStored(ctx, e, load, s, result.AfterRun)
	}
	return wait, nil
}

func waitFor(name string, limit time.Duration, annotate bool) *action {
	return &action{
		text:     fmt.Sprintf("wait for workload %q", name),
		estimate: func(f *Forecast) time.Duration { return f.await(name, limit) },
		do: func(ctx context.Context, e *Env) error {
			s, err := e.Loads.Last(name)
			if err != nil {
				return err
			}
			if err := e.Loads.Wait(ctx, s, limit); err != nil {
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
			s, err := e.Loads.Last(name)
			if err != nil { // what cannot be stopped is only noted, as everywhere in this step
				e.Warn("%v", err)
				return nil
			}
			for _, text := range e.Loads.Stop(ctx, s) {
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
