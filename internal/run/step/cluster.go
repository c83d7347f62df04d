package step

import (
	"context"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func clusterSteps() Registry {
	return Registry{
		"cluster.CleanUp": cleanUp,
		"cluster.PowerOffCurieVMs": single(func(a scenario.Args, _ View) (*action, error) {
			return powerOffOurs(a), nil
		}),
		"cluster.DeleteCurieVMs": single(func(a scenario.Args, _ View) (*action, error) {
			return deleteOurs(a), nil
		}),
	}
}

// cleanUp stands for: power on every node that has a controller, wait for each, power off the run's VMs, delete them,
// and see that nothing is left. Nodes without a controller are left alone, and so is everything of other runs:
// `plimsoll cleanup` is the way to remove what those have left.
func cleanUp(s scenario.Step, v View) ([]Step, error) {
	var parts []*action
	if v.Facts.Can(target.NodePowerControl) {
		for _, wait := range []bool{false, true} {
			for i, n := range v.Facts.Nodes {
				if n.Power == "" {
					continue
				}
				a := scenario.Args{"nodes": scenario.Selector{Text: fmt.Sprint(i)}, "wait_secs": 0.0,
					"annotate": s.Args.Bool("annotate")}
				if !wait {
					parts = append(parts, nodesOn(a, v))
					continue
				}
				a["wait_secs"] = recoverLimit.Seconds()
				parts = append(parts, nodesWait(a, v, target.On))
			}
		}
	}
	parts = append(parts, powerOffOurs(s.Args), deleteOurs(s.Args), confirmClean())
	for _, p := range parts {
		p.uses = Uses{} // it repairs what the run may have done, and drives nothing otherwise
	}
	return expand(s.Name, "clean up", parts), nil
}

func powerOffOurs(a scenario.Args) *action {
	return &action{
		name: "cluster.PowerOffCurieVMs", text: "power off the VMs of this run",
		estimate: func(f *Forecast) time.Duration {
			var d time.Duration
			for name, g := range f.groups {
				if g.on {
					d = AssumedVMPower
				}
				f.powered(name, false)
			}
			return d
		},
		do: func(ctx context.Context, e *Env) error {
			vms, err := e.Cluster.VMs(ctx)
			if err != nil {
				return fmt.Errorf("list of VMs: %w", err)
			}
			vms = slices.DeleteFunc(vms, func(vm target.VM) bool { return vm.Power == target.Off })
			if len(vms) == 0 || !e.Facts.Can(target.VMCreation) { // machines that were there before are not the run's
				return nil
			}
			e.annotate(a.Bool("annotate"), "Powering off %s", unit.Plural(len(vms), "VM"))
			e.markVMs()
			power, err := able[target.VMPower](e, target.VMPowerControl)
			if err != nil {
				return err
			}
			return e.within(ctx, "power off", powerLimitEach*time.Duration(len(vms)), func(ctx context.Context) error {
				return power.PowerOff(ctx, names(vms))
			})
		},
	}
}

func deleteOurs(a scenario.Args) *action {
	return &action{
		name: "cluster.DeleteCurieVMs", text: "delete the VMs of this run",
		estimate: func(f *Forecast) time.Duration { f.deleteAll(); return 0 },
		do: func(ctx context.Context, e *Env) error {
			vms, err := e.Cluster.VMs(ctx)
			if err != nil {
				return fmt.Errorf("list of VMs: %w", err)
			}
			if len(vms) == 0 || !e.Facts.Can(target.VMCreation) {
				return nil
			}
			e.annotate(a.Bool("annotate"), "Deleting %s", unit.Plural(len(vms), "VM"))
			e.Looked.forget(func(string, string) bool { return true }) // new ones may have the same names
			maker, err := able[target.VMMaker](e, target.VMCreation)
			if err != nil {
				return err
			}
			return e.within(ctx, "delete", powerLimitEach*time.Duration(len(vms)), func(ctx context.Context) error {
				return maker.Delete(ctx, names(vms))
			})
		},
	}
}

// confirmClean ends a clean-up: deleting takes snapshots and images of the machines with it, so no machine left is
// nothing left.
func confirmClean() *action {
	return &action{
		name: "cluster.ConfirmClean", text: "see that nothing of this run is left",
		do: func(ctx context.Context, e *Env) error {
			vms, err := e.Cluster.VMs(ctx)
			if err != nil {
				return fmt.Errorf("list of VMs: %w", err)
			}
			if len(vms) > 0 && e.Facts.Can(target.VMCreation) {
				return fmt.Errorf("%s left after deleting: %s", unit.Plural(len(vms), "VM"),
					unit.List(names(vms), mostNamed))
			}
			return nil
		},
	}
}
