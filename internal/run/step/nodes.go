package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func nodeSteps() Registry {
	return Registry{
		"nodes.PowerOff": single(func(a scenario.Args, v View) (*action, error) {
			return nodesOff(a, v, false), nil
		}),
		"nodes.Shutdown": single(func(a scenario.Args, v View) (*action, error) {
			return nodesOff(a, v, true), nil
		}),
		"nodes.PowerOn": single(func(a scenario.Args, v View) (*action, error) { return nodesOn(a, v), nil }),
		"nodes.WaitForPowerOff": single(func(a scenario.Args, v View) (*action, error) {
			return nodesWait(a, v, target.Off), nil
		}),
		"nodes.WaitForPowerOn": single(func(a scenario.Args, v View) (*action, error) {
			return nodesWait(a, v, target.On), nil
		}),
	}
}

const (
	controllerLimit = 600 * time.Second  // until a power controller has confirmed a command
	recoverLimit    = 2400 * time.Second // until nodes that are switched back on are ready
	unknownLimit    = 600 * time.Second  // of it, for which nobody tells the state of any node
	nodePoll        = time.Second        // return times are told to within it
	nodeWidth       = 64                 // controllers driven at a time
)

// selection is a node selector with what it selects here.
type selection struct {
	text  string
	nodes []int
	err   error
}

func selected(a scenario.Args, v View) selection {
	s := selection{text: a.Selector("nodes").Text}
	s.nodes, s.err = a.Selector("nodes").Resolve(len(v.Facts.Nodes))
	if s.err == nil && len(s.nodes) == 0 {
		s.err = fmt.Errorf("nodes %q selects no node on a cluster of %d; use a larger cluster or another selector",
			s.text, len(v.Facts.Nodes))
	}
	return s
}

// words lists the nodes for people.
func (s selection) words() string {
	if len(s.nodes) == 0 || len(s.nodes) > 8 {
		return fmt.Sprintf("nodes %s", s.text)
	}
	list := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		list[i] = fmt.Sprint(n)
	}
	if len(list) == 1 {
		return "node " + list[0]
	}
	return "nodes " + strings.Join(list, ", ")
}

// check wants a power controller on every selected node.
func (s selection) check(v View) error {
	if s.err != nil {
		return s.err
	}
	var errs []error
	for _, n := range s.nodes {
		if v.Facts.Can(target.NodePowerControl) && v.Facts.Nodes[n].Power == "" {
			errs = append(errs, fmt.Errorf("%s has no power controller; configure one or select other nodes",
				v.NodeName(n)))
		}
	}
	return errors.Join(errs...)
}

func waitWords(limit time.Duration, what string) string {
	if limit <= 0 {
		return ", without waiting"
	}
	return fmt.Sprintf(" and wait until %s, at most %s", what, unit.Duration(limit))
}

func nodesOff(a scenario.Args, v View, graceful bool) *action {
	s, limit := selected(a, v), a.Seconds("wait_secs")
	name, verb, requires := "nodes.PowerOff", "cut the power of ", []target.Capability{target.NodePowerControl}
	if graceful {
		name, verb, requires = "nodes.Shutdown", "shut down ", append(requires, target.NodeShutdown)
	}
	return &action{
		name: name, text: verb + s.words() + waitWords(limit, "off"), requires: requires, check: s.check,
		uses: Uses{Nodes: s.nodes},
		estimate: func(f *Forecast) time.Duration {
			f.switchOff(s.nodes)
			if limit <= 0 {
				return 0
			}
			return AssumedNodeOff
		},
		do: func(ctx context.Context, e *Env) error {
			power, err := controllers(e)
			if err != nil {
				return err
			}
			command, words := target.PowerController.PowerOff, "Switched %s off"
			if graceful {
				command, words = target.PowerController.Shutdown, "Shutting down %s"
			}
			err = send(ctx, e, power, s.nodes, command, func(n int) {
				e.Power.markOff(n, e.Clock.Now()) // before it is sent: a lost answer may hide an effect
			}, func(n int) {
				e.fault(n, result.PowerOff, words, e.NodeName(n))
			})
			if err != nil || limit <= 0 {
				return err
			}
			return waitForNodes(ctx, e, s.nodes, target.Off, limit, a.Bool("annotate"))
		},
		undo: func(ctx context.Context, e *Env) error { return switchBackOn(ctx, e, s.nodes) },
	}
}

func controllers(e *Env) (target.NodePower, error) {
	power, err := able[target.NodePower](e, target.NodePowerControl)
	if err != nil {
		return nil, err
	}
	return power, nil
}

// send gives one command to the controllers of all nodes at once. A command that is refused fails the step, also when
// nobody waits for its effect. The words about the nodes come in the order of the selection.
func send(ctx context.Context, e *Env, power target.NodePower, nodes []int,
	command func(target.PowerController, context.Context) error, before, sent func(int)) error {
	errs := make([]error, len(nodes))
	for _, n := range nodes {
		before(n)
	}
	_ = clock.Parallel(e.Clock, len(nodes), nodeWidth, func(i int) error {
		errs[i] = e.within(
			ctx,
			e.NodeName(nodes[i])+": power controller",
			controllerLimit,
			func(ctx context.Context) error {
				controller, err := power.PowerController(nodes[i])
				if err != nil {
					return err
				}
				return command(controller, ctx)
			},
		)
		return nil
	})
	for i, n := range nodes {
		if errs[i] == nil {
			sent(n)
		}
	}
	return errors.Join(errs...)
}

func nodesOn(a scenario.Args, v View) *action {
	s, limit := selected(a, v), a.Seconds("wait_secs")
	return &action{
		name: "nodes.PowerOn", text: "power on " + s.words() + waitWords(limit, "ready"), check: s.check,
		requires: []target.Capability{target.NodePowerControl}, uses: Uses{Nodes: s.nodes},
		estimate: func(f *Forecast) time.Duration {
			if limit <= 0 {
				return 0
			}
			return f.nodesOn(s.nodes)
		},
		do: func(ctx context.Context, e *Env) error {
			power, err := controllers(e)
			if err != nil {
				return err
			}
			err = send(ctx, e, power, s.nodes, target.PowerController.PowerOn, func(int) {}, func(n int) {
				if e.Power.markOn(n, e.Clock.Now()) {
					e.fault(n, result.PowerOn, "Switched %s on", e.NodeName(n))
					return
				}
				e.annotate(a.Bool("annotate"), "Switched %s on", e.NodeName(n))
			})
			if err != nil || limit <= 0 {
				return err
			}
			return waitForNodes(ctx, e, s.nodes, target.On, limit, a.Bool("annotate"))
		},
	}
}

// nodesOn is how long it takes until the nodes are ready, which is nothing for those that are on already.
func (f *Forecast) nodesOn(nodes []int) time.Duration {
	var d time.Duration
	for _, n := range nodes {
		if f.off[n] {
			d = cmp.Or(f.Facts.Pace.NodeOn, AssumedNodeOn)
		}
		delete(f.off, n)
	}
	return d
}

func nodesWait(a scenario.Args, v View, state target.PowerState) *action {
	s, limit := selected(a, v), a.Seconds("wait_secs")
	name, what := "nodes.WaitForPowerOn", "ready"
	if state == target.Off {
		name, what = "nodes.WaitForPowerOff", "off"
	}
	return &action{
		name: name, text: fmt.Sprintf("wait until %s: %s, at most %s", s.words(), what, unit.Duration(limit)),
		check:    s.check,
		requires: []target.Capability{target.NodePowerControl}, uses: Uses{Nodes: s.nodes},
		estimate: func(f *Forecast) time.Duration {
			if state == target.Off {
				return AssumedNodeOff
			}
			return f.nodesOn(s.nodes)
		},
		do: func(ctx context.Context, e *Env) error {
			return waitForNodes(ctx, e, s.nodes, state, limit, a.Bool("annotate"))
		},
	}
}

// waitForNodes waits for nodes within one limit: until off, or until on and ready for use.
func waitForNodes(ctx context.Context, e *Env, nodes []int, state target.PowerState, limit time.Duration,
	annotate bool) error {
	what, words := "nodes: waiting until ready", "%s is on and ready"
	if state == target.Off {
		what, words = "nodes: waiting until off", "%s is off"
	}
	left, noted := nodes, false
	return e.until(ctx, what, e.pollEvery(nodePoll), limit, func(ctx context.Context) (bool, string, error) {
		lacks, unknown := make([]string, len(left)), make([]error, len(left))
		err := clock.Parallel(e.Clock, len(left), nodeWidth, func(i int) error {
			is, ready, err := e.Cluster.NodeState(ctx, left[i])
			lacks[i], unknown[i] = notYet(is, ready, err, state), err
			if errors.Is(err, target.ErrNoSuchNode) {
				return err
			}
			return nil
		})
		if err != nil {
			return false, "", err
		}
		told := slices.Contains(unknown, nil)
		silent := e.Power.silence(told || ctx.Err() != nil, e.Clock.Now())
		switch {
		case silent >= unknownLimit:
			return false, "", fmt.Errorf("nobody has told the state of any node for %s: %w",
				unit.Duration(silent.Round(time.Second)), unknown[0])
		case silent >= unknownLimit/10 && !noted:
			noted = true
			e.Warn("nobody has told the state of any node for %s; that is waited for until it is %s: %v",
				unit.Duration(silent.Round(time.Second)), unit.Duration(unknownLimit), unknown[0])
		}
		var waiting []int
		var details []string
		for i, n := range left {
			if lacks[i] != "" {
				waiting, details = append(waiting, n), append(details, e.NodeName(n)+lacks[i])
				continue
			}
			e.annotate(annotate, words, e.NodeName(n))
			if state == target.On {
				e.returned(n)
			}
		}
		left = waiting
		return len(left) == 0, unit.List(details, mostNamed), nil
	})
}

// notYet says what a node lacks to be in a state, and for use in it.
func notYet(is target.PowerState, ready bool, err error, wanted target.PowerState) string {
	switch {
	case err != nil:
		return ": " + err.Error()
	case is != wanted:
		return " is " + string(is)
	case wanted == target.On && !ready:
		return " is on, its services are not ready"
	}
	return ""
}

// returned enters the return of a node that is ready, where this run had switched it off.
func (e *Env) returned(node int) {
	if r, ok := e.Power.ready(node, e.Clock.Now()); ok {
		r.Node = e.NodeName(node)
		e.Record(result.Event{Kind: result.KindNodeReturn, Name: r.Node, Data: result.EventData{NodeReturn: &r},
			Text: fmt.Sprintf("ready %s after it was switched on", unit.Duration(r.Ready.Sub(r.On)))})
	}
}

// switchBackOn powers on those of the nodes that this run has switched off and not on again.
func switchBackOn(ctx context.Context, e *Env, nodes []int) error {
	off := e.Power.Off(nodes)
	if len(off) == 0 {
		return nil
	}
	power, err := controllers(e)
	if err != nil {
		return err
	}
	err = send(ctx, e, power, off, target.PowerController.PowerOn, func(int) {}, func(n int) {
		e.Power.markOn(n, e.Clock.Now())
		e.fault(n, result.PowerOn, "Switched %s back on", e.NodeName(n))
	})
	limit := recoverLimit
	if err != nil { // who was not told to will hardly come back
		limit = controllerLimit
	}
	return errors.Join(err, waitForNodes(ctx, e, off, target.On, limit, false))
}
