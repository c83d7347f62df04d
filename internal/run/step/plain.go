package step

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// For how long a turn is; the time goes by the time scale, but for the least that shows a rate.
const (
	plainTurn = 10 * time.Second
	leastTurn = 2 * time.Second
)

// ComparePlain is a step that no scenario has: a workload on the first machine of its group, and the same job beside
// that on its node, by turns.
func ComparePlain(load scenario.Workload, turns int, v View) Step {
	turn := max(leastTurn, v.Scaled(plainTurn))
	return &action{
		name: "workload.ComparePlain",
		text: fmt.Sprintf("compare workload %q on one VM with the same job beside it on its node: %d turns of %s each way",
			load.Name, turns, unit.Duration(turn)),
		requires: []target.Capability{target.PlainJobs},
		uses:     Uses{Jobs: []JobUse{{Workload: load.Name, Runtime: turn}}},
		estimate: func(*Forecast) time.Duration { return 2 * time.Duration(turns) * turn },
		do:       func(ctx context.Context, e *Env) error { return comparePlain(ctx, e, load, turns, turn) },
	}
}

func comparePlain(ctx context.Context, e *Env, load scenario.Workload, turns int, turn time.Duration) (err error) {
	vms, err := someMembers(ctx, e, load.Group)
	if err != nil {
		return fmt.Errorf("workload %q: %w", load.Name, err)
	}
	vm := vms[0]
	host, err := e.Cluster.Host(vm.Name)
	if err == nil {
		err = host.Accessible(ctx)
	}
	if errors.Is(err, target.ErrNotAccessible) {
		e.Warn("workload %q is not compared with the same job beside its VM: after the set-up %v", load.Name, err)
		return nil
	}
	if err != nil {
		return err
	}
	placer, is := e.Cluster.(target.PlainPlacer)
	if !is {
		return fmt.Errorf("workload %q: this place runs nothing beside its VMs", load.Name)
	}
	place, err := placer.Plain(ctx, vm.Name)
	if err != nil {
		return fmt.Errorf("workload %q: beside vm %q: %w", load.Name, vm.Name, err)
	}
	defer func() { err = errors.Join(err, place.End(context.WithoutCancel(ctx))) }()
	done := result.Plain{Workload: load.Name, Group: load.Group, VM: vm.Name, Node: e.NodeName(vm.Node), How: place.How}
	for n := range turns {
		t := result.PlainTurn{BesideFirst: n%2 == 1}
		for _, beside := range []bool{t.BesideFirst, !t.BesideFirst} {
			o := loads.Options{Turn: true, Runtime: turn, Seed: load.Name + "_turn" + strconv.Itoa(n)}
			to := &t.Machine
			if beside {
				o.Beside, to = place.Host, &t.Beside
			}
			if *to, err = plainTurnOf(ctx, e, load, vm, o); err != nil {
				return err
			}
		}
		done.Turns = append(done.Turns, t)
	}
	e.Record(result.Event{Kind: result.KindPlain, Name: load.Name, Text: done.Sentence(),
		Data: result.EventData{Plain: &done}})
	return nil
}

// plainTurnOf is one turn of one of the two. Both turns of a pair do the same sequence.
func plainTurnOf(ctx context.Context, e *Env, load scenario.Workload, vm target.VM,
	o loads.Options) (done result.PlainDone, err error) {
	s, err := e.Loads.Begin(ctx, load, []target.VM{vm}, o)
	if err == nil {
		err = e.Loads.StartAll(ctx, s, 0)
	}
	if err == nil {
		err = e.Loads.Wait(ctx, s, DefaultWait)
	}
	if err != nil {
		return done, err
	}
	d := e.Loads.Done(s)
	if d.Finished < d.VMs || d.Ops == 0 {
		return done, fmt.Errorf("workload %q: a turn of %s completed no operation, %s failed", load.Name, s.Name(),
			unit.Plural(int(d.Errors), "operation"))
	}
	return result.PlainDone{Seconds: d.Longest.Seconds(), OpsPerSecond: d.OpsPerSecond,
		MeanSeconds: d.Seconds / float64(d.Ops)}, nil
}
