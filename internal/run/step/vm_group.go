package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func vmGroupSteps() Registry {
	return Registry{
		"vm_group.CloneFromTemplate":       single(cloneFromTemplate),
		"vm_group.PowerOn":                 single(powerOnGroup),
		"vm_group.WaitForPowerOn":          single(waitForGroup),
		"vm_group.PowerOff":                single(powerOffGroup),
		"vm_group.Grow":                    single(growGroup),
		"vm_group.CreatePeriodicSnapshots": single(periodicSnapshots),
		"vm_group.MigrateGroup": single(func(a scenario.Args, v View) (*action, error) {
			return migrateGroup(a, v)
		}),
		"vm_group.ResetGroupPlacement":    single(resetPlacement),
		"vm_group.RunCommand":             single(runCommand),
		"vm_group.RelocateGroupDatastore": single(relocateGroup),
		"vm_group.EnableHA": single(func(a scenario.Args, _ View) (*action, error) {
			return setHA(a, true), nil
		}),
		"vm_group.DisableHA": single(func(a scenario.Args, _ View) (*action, error) {
			return setHA(a, false), nil
		}),
	}
}

// Limits of the language that no argument sets.
const (
	cloneLimitEach   = 900 * time.Second
	powerLimitEach   = 600 * time.Second
	migrateLimitEach = 1200 * time.Second
	powerOnWidth     = 100 // machines powered on at a time where the author does not say
)

// accessLimit is how long a group may take until all its members answer.
func accessLimit(vms int) time.Duration {
	return time.Duration(60*(1+(vms+19)/20)) * time.Second
}

// members lists the group's machines by their recorded identity, in order of name.
func members(ctx context.Context, e *Env, group string) ([]target.VM, error) {
	all, err := e.Cluster.VMs(ctx)
	if err != nil {
		return nil, fmt.Errorf("group %q: list of VMs: %w", group, err)
	}
	all = slices.DeleteFunc(all, func(vm target.VM) bool { return vm.Group != group || vm.Template })
	slices.SortFunc(all, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func someMembers(ctx context.Context, e *Env, group string) ([]target.VM, error) {
	vms, err := members(ctx, e, group)
	if err == nil && len(vms) == 0 {
		err = fmt.Errorf("group %q has no VMs; clone them first with vm_group.CloneFromTemplate", group)
	}
	return vms, err
}

func names(vms []target.VM) []string {
	list := make([]string, len(vms))
	for i, vm := range vms {
		list[i] = vm.Name
	}
	return list
}

func cloneFromTemplate(a scenario.Args, v View) (*action, error) {
	group := a.String("vm_group_name")
	text := fmt.Sprintf("clone group %q from its template", group)
	if a.Bool("power_on") {
		text += " and power it on"
	}
	requires := []target.Capability{target.VMCreation}
	if a.Bool("power_on") {
		requires = append(requires, target.VMPowerControl)
	}
	if len(v.Facts.Machines) > 0 {
		text, requires = fmt.Sprintf("take the machines of group %q that are there", group), nil
	}
	if decl, err := v.Groups.Get(group); err == nil && decl.OVF {
		requires = append(requires, target.FolderImport)
	}
	return &action{
		text:     text,
		requires: requires,
		check: func(v View) error {
			_, err := v.Groups.Members(group)
			return err
		},
		estimate: func(f *Forecast) time.Duration {
			m, err := f.Groups.Members(group)
			if err != nil {
				return 0
			}
			switch how, can := f.Facts.Capabilities[target.NodeFailover]; {
			case a.Bool("disable_ha"):
			case !can:
				f.warn("group %q is to be restarted elsewhere when a node fails (disable_ha: False), and nothing "+
					"here does that%s",
					group, reason(f.Facts.Missing[target.NodeFailover]))
			case f.Facts.Simulated:
				f.warn("group %q is restarted elsewhere when a node fails (disable_ha: False): %s", group, how)
			}
			f.group(group).template, f.group(group).exempt = true, a.Bool("disable_ha")
			f.clone(group, m)
			d := time.Duration(len(m)) * cmp.Or(f.Facts.Pace.Clone, AssumedClone)
			if a.Bool("power_on") {
				f.powered(group, true)
				d += f.boot(len(m), powerOnWidth)
			}
			return d
		},
		do: func(ctx context.Context, e *Env) error { return doClone(ctx, e, group, a) },
	}, nil
}

func doClone(ctx context.Context, e *Env, group string, a scenario.Args) error {
	decl, err := e.Groups.Get(group)
	if err != nil {
		return err
	}
	wanted, err := e.Groups.Members(group)
	if err != nil {
		return err
	}
	if len(e.Facts.Machines) > 0 {
		return doPowerOn(ctx, e, group, powerOnWidth, a.Bool("annotate"))
	}
	e.annotate(a.Bool("annotate"), "Cloning group %s: %s", group, unit.Plural(len(wanted), "VM"))
	template := target.Template{
		Name: scenario.TemplateName(e.Scenario.ID, decl.Template, group), Group: group, Image: decl.Template,
		Folder: decl.OVF,
		Node:   0, CPUs: decl.CPUs, MemoryBytes: decl.MemoryBytes, DiskBytes: e.Disks(decl),
	}
	clone := target.Clone{Source: template.Name, Group: group, Members: wanted, Linked: a.Bool("linked_clone")}
	maker, err := able[target.VMMaker](e, target.VMCreation)
	if err != nil {
		return err
	}
	err = e.within(ctx, fmt.Sprintf("group %q", group), cloneLimitEach*time.Duration(len(wanted)+1),
		func(ctx context.Context) error {
			if err := maker.CreateTemplate(ctx, template); err != nil {
				return fmt.Errorf("template of image %q: %w", decl.Template, err)
			}
			return maker.Clone(ctx, clone)
		})
	if err != nil {
		return err
	}
	vms, err := members(ctx, e, group)
	if err != nil {
		return err
	}
	if missing := absent(wanted, vms); len(missing) > 0 {
		return fmt.Errorf("group %q: %s missing after cloning: %s", group, unit.Plural(len(missing), "VM"),
			unit.List(missing, mostNamed))
	}
	if err := exempt(ctx, e, names(vms), a.Bool("disable_ha"), a.Bool("disable_drs")); err != nil {
		return fmt.Errorf("group %q: %w", group, err)
	}
	e.annotate(a.Bool("annotate"), "Cloned group %s", group)
	if a.Bool("power_on") {
		return doPowerOn(ctx, e, group, powerOnWidth, a.Bool("annotate"))
	}
	return nil
}

func absent(wanted []target.Placement, have []target.VM) []string {
	known := map[string]bool{}
	for _, vm := range have {
		known[vm.Name] = true
	}
	var missing []string
	for _, m := range wanted {
		if !known[m.Name] {
			missing = append(missing, m.Name)
		}
	}
	return missing
}

// reason ends a warning with what the place says of it, if it says anything.
func reason(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// exempt takes machines out of HA restart and balancing. A place without such rules has nothing to be exempt from.
func exempt(ctx context.Context, e *Env, vms []string, ha, balancing bool) error {
	rules, ok := e.Cluster.(target.Availability)
	if !ok || !e.Facts.Can(target.AvailabilityRules) {
		return nil
	}
	var errs []error
	if ha {
		errs = append(errs, rules.SetHA(ctx, vms, false))
	}
	if balancing {
		errs = append(errs, rules.SetBalancing(ctx, vms, false))
	}
	return errors.Join(errs...)
}

// boot is how long VMs take until they are on, so many at a time.
func (f *Forecast) boot(vms, maxConcurrent int) time.Duration {
	batches := (vms + maxConcurrent - 1) / max(maxConcurrent, 1)
	return time.Duration(max(batches, 1)) * cmp.Or(f.Facts.Pace.VMOn, AssumedVMPower)
}

func powerOnGroup(a scenario.Args, v View) (*action, error) {
	group := a.String("vm_group_name")
	text, requires := fmt.Sprintf("power on group %q", group), []target.Capability{target.VMPowerControl}
	if len(v.Facts.Machines) > 0 {
		text, requires = fmt.Sprintf("see that group %q is on", group), nil
	}
	return &action{
		text:     text,
		requires: requires,
		estimate: func(f *Forecast) time.Duration {
			f.needMembers(group)
			f.powered(group, true)
			return f.boot(len(f.group(group).members), a.Int("max_concurrent"))
		},
		do: func(ctx context.Context, e *Env) error {
			return doPowerOn(ctx, e, group, a.Int("max_concurrent"), a.Bool("annotate"))
		},
	}, nil
}

func doPowerOn(ctx context.Context, e *Env, group string, maxConcurrent int, annotate bool) error {
	vms, err := someMembers(ctx, e, group)
	if err != nil {
		return err
	}
	if len(e.Facts.Machines) > 0 { // on from the start
		return accessible(ctx, e, group, names(vms), accessLimit(len(vms)))
	}
	power, err := able[target.VMPower](e, target.VMPowerControl)
	if err != nil {
		return err
	}
	e.annotate(annotate, "%s%s", result.PoweringOn, group)
	what := fmt.Sprintf("group %q", group)
	err = e.within(ctx, what, powerLimitEach*time.Duration(len(vms)), func(ctx context.Context) error {
		return power.PowerOn(ctx, names(vms), maxConcurrent)
	})
	if err != nil {
		return err
	}
	if err := accessible(ctx, e, group, names(vms), accessLimit(len(vms))); err != nil {
		return err
	}
	e.annotate(annotate, "Powered on group %s", group)
	return nil
}

// accessible waits until every machine answers.
func accessible(ctx context.Context, e *Env, group string, pending []string, limit time.Duration) error {
	what := fmt.Sprintf("group %q: waiting until all VMs are accessible", group)
	return e.until(ctx, what, e.pollEvery(time.Second), limit, func(ctx context.Context) (bool, string, error) {
		reasons := make([]error, len(pending))
		_ = clock.Parallel(e.Clock, len(pending), loads.AccessWidth, func(i int) error {
			host, err := e.Cluster.Host(pending[i])
			if err == nil {
				err = host.Accessible(ctx)
			}
			reasons[i] = err
			return nil
		})
		var left []string
		var first error
		for i, err := range reasons {
			if err != nil {
				left = append(left, pending[i])
				first = cmp.Or(first, err)
			}
		}
		pending = left
		if len(left) == 0 {
			return true, "", nil
		}
		return false, fmt.Sprintf("%s not accessible: %s (%v)", unit.Plural(len(left), "VM"),
			unit.List(left, mostNamed), first), nil
	})
}

func waitForGroup(a scenario.Args, _ View) (*action, error) {
	group, limit := a.String("vm_group_name"), a.Seconds("wait_secs")
	return &action{
		text: fmt.Sprintf("wait until group %q is accessible, at most %s", group, unit.Duration(limit)),
		estimate: func(f *Forecast) time.Duration {
			f.stranded(group, limit)
			f.powered(group, true)
			return AssumedVMPower
		},
		do: func(ctx context.Context, e *Env) error {
			vms, err := members(ctx, e, group)
			if err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Waiting for group %s", group)
			if err := accessible(ctx, e, group, names(vms), limit); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Group %s is accessible", group)
			return nil
		},
	}, nil
}

func powerOffGroup(a scenario.Args, _ View) (*action, error) {
	group := a.String("vm_group_name")
	return &action{
		text:     fmt.Sprintf("power off group %q", group),
		requires: []target.Capability{target.VMPowerControl},
		estimate: func(f *Forecast) time.Duration {
			f.needMembers(group)
			f.powered(group, false)
			return AssumedVMPower
		},
		do: func(ctx context.Context, e *Env) error {
			vms, err := someMembers(ctx, e, group)
			if err != nil {
				return err
			}
			power, err := able[target.VMPower](e, target.VMPowerControl)
			if err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Powering off group %s", group)
			e.markVMs()
			what := fmt.Sprintf("group %q: power off", group)
			limit := powerLimitEach * time.Duration(len(vms))
			if err := e.within(ctx, what, limit, func(ctx context.Context) error {
				return power.PowerOff(ctx, names(vms))
			}); err != nil {
				return err
			}
			return e.until(ctx, what, e.pollEvery(time.Second), limit, func(ctx context.Context) (bool, string, error) {
				vms, err := members(ctx, e, group)
				left := slices.DeleteFunc(vms, func(vm target.VM) bool { return vm.Power == target.Off })
				return err == nil && len(left) == 0, "still on: " + unit.List(names(left), mostNamed), err
			})
		},
	}, nil
}

func growGroup(a scenario.Args, v View) (*action, error) {
	group := a.String("vm_group_name")
	per, total := a.Int("count_per_node"), a.Int("count_per_cluster")
	if (per > 0) == (total > 0) {
		return nil, fmt.Errorf("group %q: give exactly one of count_per_node and count_per_cluster, above 0", group)
	}
	words := unit.Plural(per, "VM") + " per node"
	if total > 0 {
		words = unit.Plural(total, "VM")
	}
	grown := func(v View) (scenario.Group, []target.Placement, error) {
		decl, err := v.Groups.Get(group)
		if err != nil {
			return decl, nil, err
		}
		decl = decl.Grown(a)
		m, err := place(v.Scenario.ID, decl, len(v.Facts.Nodes))
		return decl, m, err
	}
	return &action{
		text:     fmt.Sprintf("grow group %q to %s, cloned from its first", group, words),
		requires: []target.Capability{target.VMCreation, target.VMClones, target.VMPowerControl, target.VMMoves},
		check: func(v View) error {
			now, err := v.Groups.Members(group)
			if err != nil {
				return err
			}
			_, then, err := grown(v)
			if err == nil && len(then) <= len(now) {
				err = fmt.Errorf("group %q: growing to %s does not grow it: it has %d already", group,
					unit.Plural(len(then), "VM"), len(now))
			}
			return err
		},
		estimate: func(f *Forecast) time.Duration {
			decl, then, err := grown(f.View)
			have := f.needMembers(group)
			if err != nil || have >= len(then) {
				return 0
			}
			f.Groups.Set(decl)
			d := f.migrate(group, func(i int) (int, bool) { return then[i].Node, true }, -1)
			f.clone(group, then[have:])
			d += time.Duration(len(then)-have) * cmp.Or(f.Facts.Pace.Clone, AssumedClone)
			if f.group(group).on {
				d += f.boot(len(then)-have, powerOnWidth)
			}
			return d
		},
		do: func(ctx context.Context, e *Env) error {
			decl, then, err := grown(e.View)
			if err != nil {
				return err
			}
			return doGrow(ctx, e, decl, then, a)
		},
	}, nil
}

func doGrow(ctx context.Context, e *Env, decl scenario.Group, then []target.Placement, a scenario.Args) error {
	group := decl.Name
	vms, err := someMembers(ctx, e, group)
	if err != nil {
		return err
	}
	e.annotate(a.Bool("annotate"), "Growing group %s from %d to %d VMs", group, len(vms), len(then))
	for _, m := range then {
		i := slices.IndexFunc(vms, func(vm target.VM) bool { return vm.Name == m.Name })
		if i >= 0 && vms[i].Node != m.Node {
			if err := move(ctx, e, vms[i], m.Node); err != nil {
				return fmt.Errorf("group %q: %w", group, err)
			}
		}
	}
	first := vms[0]
	missing := absent(then, vms)
	added := slices.DeleteFunc(slices.Clone(then), func(m target.Placement) bool {
		return !slices.Contains(missing, m.Name)
	})
	maker, err := able[target.VMMaker](e, target.VMCreation)
	if err != nil {
		return err
	}
	err = e.within(ctx, fmt.Sprintf("group %q", group), cloneLimitEach*time.Duration(len(added)),
		func(ctx context.Context) error {
			return maker.Clone(ctx, target.Clone{Source: first.Name, Group: group, Members: added,
				Linked: a.Bool("linked_clone")})
		})
	if err != nil {
		return err
	}
	e.Groups.Set(decl)
	if first.Power == target.On {
		power, err := able[target.VMPower](e, target.VMPowerControl)
		if err != nil {
			return err
		}
		err = e.within(ctx, fmt.Sprintf("group %q", group), powerLimitEach*time.Duration(len(added)),
			func(ctx context.Context) error {
				return power.PowerOn(ctx, missing, powerOnWidth)
			})
		if err != nil {
			return err
		}
	}
	e.annotate(a.Bool("annotate"), "Grew group %s to %d VMs", group, len(then))
	return nil
}

// move puts a machine on another node: live when it runs and the place can, else as it is.
func move(ctx context.Context, e *Env, vm target.VM, node int) error {
	if m, ok := e.Cluster.(target.Migrator); ok && vm.Power == target.On &&
		e.Facts.Can(target.LiveMigration) {
		return m.Migrate(ctx, vm.Name, node)
	}
	mover, err := able[target.VMMover](e, target.VMMoves)
	if err != nil {
		return err
	}
	return mover.Move(ctx, vm.Name, node)
}

// nodeIndex reads an index that may be a number or text and may count from the end.
func nodeIndex(a scenario.Args, name string, v View) (int, error) {
	i := a.Int(name)
	if text, ok := a[name].(string); ok {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return 0, fmt.Errorf("%s: %q is not a node index", name, text)
		}
		i = n
	}
	n := len(v.Facts.Nodes)
	if i < -n || i >= n {
		return 0, fmt.Errorf("%s: node %d is not on this cluster of %s", name, i, unit.Plural(n, "node"))
	}
	return (i + n) % n, nil
}
