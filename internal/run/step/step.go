// Package step holds the steps of the scenario language: what each needs of a target, how long it is expected to take,
// what is wrong with it on a given cluster, and how it is done.
//
// It stands between the plan and the contracts: plan turns the steps of a scenario into Steps with a Registry and asks
// each for its Requires, Estimate and Check, all without touching anything; run calls Check again and then Do, with an
// Env that holds an open cluster, a clock and the workloads. Steps never call steps, own no deadlines beyond those
// the language gives them, know no provider and no tool, and wait only through the run's clock.
//
// Meta steps (cluster.CleanUp, meta.RollingUpgrade) do not exist here as such: their builders return the steps they
// stand for. Clean-up reaches only the machines of the run itself.
package step

import (
	"context"
	"fmt"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/scenario"
)

// Step is one thing that happens in a run. Its methods may be called once each per run, Check any number of times.
type Step interface {
	// Name is the name in the scenario, e.g. "workload.Start"; a part of a meta step is named after both:
	// "meta.RollingUpgrade.nodes.PowerOn".
	Name() string
	// Text says in plain words what the step does, with its arguments.
	Text() string
	// Requires lists what the target must be able to do.
	Requires() []target.Capability
	// Uses says what of the run the step works with.
	Uses() Uses
	// Estimate returns how long the step is expected to take when it begins at f.Now, and enters its effect into
	// f. It assumes what it cannot know; see the Assumed constants.
	Estimate(f *Forecast) time.Duration
	// Check returns everything that is wrong with the step in this view; it touches nothing.
	Check(View) error
	// Do does it. When ctx ends first it returns soon with ctx's error and may leave its work half done.
	Do(context.Context, *Env) error
	// Undo repairs what the step left behind and no other step has repaired since (nodes that are off). It is called
	// after a failure or a stop, also when Do failed, and again is fine.
	Undo(context.Context, *Env) error
}

// Uses holds what a step works with, as far as others have to look at it before anything starts.
type Uses struct {
	Jobs  []JobUse // the workloads that it starts
	Nodes []int    // those whose power it drives; clean-up, which only repairs, drives none
}

// action is every step: words and functions. A nil function means nothing to do.
type action struct {
	name, text string
	requires   []target.Capability
	uses       Uses
	estimate   func(*Forecast) time.Duration
	check      func(View) error
	do         func(context.Context, *Env) error
	undo       func(context.Context, *Env) error
}

func (a *action) Name() string                  { return a.name }
func (a *action) Text() string                  { return a.text }
func (a *action) Requires() []target.Capability { return a.requires }
func (a *action) Uses() Uses                    { return a.uses }

func (a *action) Estimate(f *Forecast) time.Duration {
	if a.estimate == nil {
		return 0
	}
	return a.estimate(f)
}

func (a *action) Check(v View) error {
	if a.check == nil {
		return nil
	}
	return a.check(v)
}

func (a *action) Do(ctx context.Context, e *Env) error { return a.do(ctx, e) }

func (a *action) Undo(ctx context.Context, e *Env) error {
	if a.undo == nil {
		return nil
	}
	return a.undo(ctx, e)
}

// Builder makes the steps that one written step stands for: one, or several for a meta step. It refuses arguments
// that contradict each other and looks at the view's facts, not at its groups' members.
type Builder func(scenario.Step, View) ([]Step, error)

// Registry joins step names to their builders.
type Registry map[string]Builder

// Builtin returns a builder for every step of the language.
func Builtin() Registry {
	r := Registry{}
	for _, namespace := range []Registry{
		vmGroupSteps(), workloadSteps(), preconditionSteps(), nodeSteps(), clusterSteps(), metaSteps(),
		playbookSteps(), testSteps(), checkSteps(), experimentalSteps(),
	} {
		for name, b := range namespace {
			r[name] = b
		}
	}
	return r
}

// Build returns the steps that s stands for.
func (r Registry) Build(s scenario.Step, v View) ([]Step, error) {
	b, ok := r[s.Name]
	if !ok {
		return nil, fmt.Errorf("step %q: no such step", s.Name)
	}
	steps, err := b(s, v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return steps, nil
}

// single makes a Builder of a function that returns one step.
func single(build func(scenario.Args, View) (*action, error)) Builder {
	return func(s scenario.Step, v View) ([]Step, error) {
		a, err := build(s.Args, v)
		if err != nil {
			return nil, err
		}
		a.name = s.Name
		return []Step{a}, nil
	}
}

// expand names parts as parts of a meta step.
func expand(meta, text string, parts []*action) []Step {
	steps := make([]Step, len(parts))
	for i, p := range parts {
		p.name = meta + "." + p.name
		p.text = text + ": " + p.text
		steps[i] = p
	}
	return steps
}
