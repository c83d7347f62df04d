package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// The steps of this file act on the members of a group while they run. A group without VMs leaves them nothing to do,
// except for vm_group.RunCommand, which then fails.

func periodicSnapshots(a scenario.Args, v View) (*action, error) {
	group, n := a.String("vm_group_name"), a.Int("num_snapshots")
	interval := time.Duration(a.Float("interval_minutes") * float64(time.Minute))
	if n > 1 && interval <= 0 {
		return nil, fmt.Errorf("group %q: interval_minutes must be above 0 for %d snapshots", group, n)
	}
	text := fmt.Sprintf("take %s of group %q", unit.Plural(n, "snapshot"), group)
	if n > 1 {
		text += ", one every " + unit.Duration(v.Scaled(interval)).String()
	}
	if a.Bool("async") {
		text += ", in the background"
	}
	take := func(ctx context.Context, e *Env) error {
		for k := 1; k <= n; k++ {
			if k > 1 {
				if err := e.Clock.Sleep(ctx, e.Scaled(interval)); err != nil {
					return err
				}
			}
			if err := snapshot(ctx, e, group, k, a.Bool("annotate")); err != nil {
				return err
			}
		}
		return nil
	}
	return &action{
		text:     text,
		requires: []target.Capability{target.Snapshots},
		estimate: func(f *Forecast) time.Duration {
			if a.Bool("async") {
				return 0
			}
			return time.Duration(n-1) * f.Scaled(interval)
		},
		do: func(ctx context.Context, e *Env) error {
			if a.Bool("async") {
				e.Background("vm_group.CreatePeriodicSnapshots", func(ctx context.Context) error {
					return take(ctx, e)
				})
				return nil
			}
			return take(ctx, e)
		},
	}, nil
}

func snapshot(ctx context.Context, e *Env, group string, k int, annotate bool) error {
	s, err := able[target.Snapshotter](e, target.Snapshots)
	if err != nil {
		return err
	}
	vms, err := members(ctx, e, group)
	if err != nil || len(vms) == 0 {
		return err
	}
	e.annotate(annotate, "Snapshot %d of group %s", k, group)
	tag := scenario.EntityName(e.Scenario.ID, fmt.Sprintf("%s_%d", scenario.Sanitise(group), k))
	if err := s.Snapshot(ctx, tag, names(vms)); err != nil {
		return fmt.Errorf("group %q: snapshot %d: %w", group, k, err)
	}
	return nil
}

// lacking is the error of a cluster that claims a capability without its interface; the conformance suite rules it out.
func lacking(c target.Capability) error {
	return fmt.Errorf("the target claims %s but does not offer it", c)
}

// able finds what a capability is done with.
func able[T any](e *Env, c target.Capability) (T, error) {
	t, ok := e.Cluster.(T)
	if !ok {
		return t, lacking(c)
	}
	return t, nil
}

func migrateGroup(a scenario.Args, v View) (*action, error) {
	group := a.String("vm_group_name")
	from, err1 := nodeIndex(a, "from_node", v)
	to, err2 := nodeIndex(a, "to_node", v)
	how, requires, move := "live-migrate", []target.Capability{target.LiveMigration}, migrate
	if a.Bool("cold") {
		how, move = "power off, move and power on again", moveCold
		requires = []target.Capability{target.VMPowerControl, target.VMMoves}
	}
	return &action{
		name: "vm_group.MigrateGroup",
		text: fmt.Sprintf("%s the VMs of group %q from node %v to node %v", how, group, a["from_node"],
			a["to_node"]),
		requires: requires,
		check:    func(View) error { return errors.Join(err1, err2) },
		estimate: func(f *Forecast) time.Duration {
			d := f.migrate(group, func(int) (int, bool) { return to, true }, from)
			if d > 0 && a.Bool("cold") && f.group(group).on {
				d += AssumedVMPower + f.boot(len(f.group(group).members), powerOnWidth)
			}
			return d
		},
		do: func(ctx context.Context, e *Env) error {
			vms, err := members(ctx, e, group)
			if err != nil {
				return err
			}
			moves := map[string]int{}
			for _, vm := range vms {
				if vm.Node == from && from != to {
					moves[vm.Name] = to
				}
			}
			e.annotate(a.Bool("annotate"), "Migrating %s of group %s from %s to %s", unit.Plural(len(moves), "VM"),
				group, e.NodeName(from), e.NodeName(to))
			if err := move(ctx, e, group, vms, moves); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Migrated group %s from %s to %s", group, e.NodeName(from), e.NodeName(to))
			return nil
		},
	}, nil
}

// migrate moves the named members, one after another in order of name.
func migrate(ctx context.Context, e *Env, group string, vms []target.VM, moves map[string]int) error {
	if len(moves) == 0 {
		return nil
	}
	m, err := able[target.Migrator](e, target.LiveMigration)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("group %q: migration", group)
	return e.within(ctx, what, migrateLimitEach*time.Duration(len(moves)), func(ctx context.Context) error {
		for _, vm := range vms {
			to, moving := moves[vm.Name]
			if !moving {
				continue
			}
			if err := m.Migrate(ctx, vm.Name, to); err != nil {
				return fmt.Errorf("vm %q to %s: %w", vm.Name, e.NodeName(to), err)
			}
		}
		return nil
	})
}

// moveCold moves members while they are off, and powers on again those that were on.
func moveCold(ctx context.Context, e *Env, group string, vms []target.VM, moves map[string]int) error {
	if len(moves) == 0 {
		return nil
	}
	power, err := able[target.VMPower](e, target.VMPowerControl)
	mover, err2 := able[target.VMMover](e, target.VMMoves)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	var on []string
	for _, vm := range vms {
		if _, moving := moves[vm.Name]; moving && vm.Power != target.Off {
			on = append(on, vm.Name)
		}
	}
	what := fmt.Sprintf("group %q: move", group)
	e.markVMs()
	err = e.within(ctx, what, migrateLimitEach*time.Duration(len(moves)), func(ctx context.Context) error {
		if err := power.PowerOff(ctx, on); err != nil {
			return err
		}
		for _, vm := range vms {
			if to, moving := moves[vm.Name]; moving {
				if err := mover.Move(ctx, vm.Name, to); err != nil {
					return fmt.Errorf("vm %q to %s: %w", vm.Name, e.NodeName(to), err)
				}
			}
		}
		if len(on) == 0 {
			return nil
		}
		return power.PowerOn(ctx, on, powerOnWidth)
	})
	if err != nil || len(on) == 0 {
		return err
	}
	return accessible(ctx, e, group, on, accessLimit(len(on)))
}

// migrate enters moves into the forecast: of the members on node from to where 'to' sends them.
func (f *Forecast) migrate(group string, to func(member int) (int, bool), from int) time.Duration {
	g := f.group(group)
	var d time.Duration
	moved := make([]target.Placement, len(g.members))
	for i, m := range g.members {
		if node, ok := to(i); ok && (from < 0 || m.Node == from) && m.Node != node {
			m.Node = node
			if f.Rehearsal != nil {
				f.Rehearsal.Move(f.Now+d, m.Name, node)
			}
			d += cmp.Or(f.Facts.Pace.Migration, AssumedMigration)
		}
		moved[i] = m
	}
	g.members = moved
	return d
}

func resetPlacement(a scenario.Args, v View) (*action, error) {
	group := a.String("vm_group_name")
	return &action{
		name:     "vm_group.ResetGroupPlacement",
		text:     fmt.Sprintf("migrate the VMs of group %q back to their own nodes", group),
		requires: []target.Capability{target.LiveMigration},
		estimate: func(f *Forecast) time.Duration {
			home, err := f.Groups.Members(group)
			if err != nil {
				return 0
			}
			return f.migrate(group, func(i int) (int, bool) {
				if i >= len(home) {
					return 0, false
				}
				return home[i].Node, true
			}, -1)
		},
		do: func(ctx context.Context, e *Env) error {
			home, err := e.Groups.Members(group)
			if err != nil {
				return err
			}
			vms, err := members(ctx, e, group)
			if err != nil {
				return err
			}
			own := map[string]int{}
			for _, m := range home {
				own[m.Name] = m.Node
			}
			moves := map[string]int{}
			for _, vm := range vms {
				if node, known := own[vm.Name]; known && node != vm.Node {
					moves[vm.Name] = node
				}
			}
			e.annotate(a.Bool("annotate"), "Moving %s of group %s back", unit.Plural(len(moves), "VM"), group)
			if err := migrate(ctx, e, group, vms, moves); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Moved %s of group %s back", unit.Plural(len(moves), "VM"), group)
			return nil
		},
	}, nil
}

func runCommand(a scenario.Args, _ View) (*action, error) {
	group, command := a.String("vm_group_name"), a.String("command")
	return &action{
		text:     fmt.Sprintf("run a command on every VM of group %q: %s", group, short(command)),
		requires: []target.Capability{target.GuestCommands},
		estimate: func(f *Forecast) time.Duration { return time.Duration(f.needMembers(group)) * time.Second },
		do: func(ctx context.Context, e *Env) error {
			vms, err := someMembers(ctx, e, group)
			if err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Running a command on group %s: %s", group, short(command))
			for _, vm := range vms {
				err := e.within(ctx, fmt.Sprintf("vm %q: command", vm.Name), a.Seconds("timeout_secs"),
					func(ctx context.Context) error {
						return guestCommand(ctx, e, vm.Name, command, a.String("user"))
					})
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err != nil && a.Bool("fail_on_error"):
					return err
				case err != nil:
					e.Warn("%v", err)
				}
			}
			return nil
		},
	}, nil
}

func guestCommand(ctx context.Context, e *Env, vm, command, user string) error {
	host, err := e.Cluster.Host(vm)
	if err != nil {
		return err
	}
	p, err := host.Start(ctx, target.Command{Argv: []string{"sh", "-c", command}, User: user, Label: "RunCommand"})
	if err != nil {
		return err
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	switch {
	case exit.Lost:
		return fmt.Errorf("%w: the VM went away under the command", target.ErrNotAccessible)
	case exit.Signal != "":
		return fmt.Errorf("ended by signal %q", exit.Signal)
	case exit.Code != 0:
		return fmt.Errorf("exit status %d", exit.Code)
	}
	return nil
}

// short cuts a command for one line of text.
func short(command string) string {
	const most = 60
	if r := []rune(command); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", command)
}

func relocateGroup(a scenario.Args, _ View) (*action, error) {
	group, store := a.String("vm_group_name"), a.String("dest_datastore_name")
	return &action{
		text:     fmt.Sprintf("move the storage of group %q to %q", group, store),
		requires: []target.Capability{target.StorageMigration},
		do: func(ctx context.Context, e *Env) error {
			vms, err := members(ctx, e, group)
			if err != nil || len(vms) == 0 {
				return err
			}
			m, err := able[target.StorageMigrator](e, target.StorageMigration)
			if err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Moving the storage of group %s to %s", group, store)
			if err := m.MoveStorage(ctx, names(vms), store); err != nil {
				return fmt.Errorf("group %q: %w", group, err)
			}
			e.annotate(a.Bool("annotate"), "Moved the storage of group %s to %s", group, store)
			return nil
		},
	}, nil
}

// setHA acts on the members of the group alone.
func setHA(a scenario.Args, enabled bool) *action {
	group := a.String("vm_group_name")
	words := map[bool]string{true: "return group %q to HA restart", false: "exempt group %q from HA restart"}[enabled]
	return &action{
		text:     fmt.Sprintf(words, group),
		requires: []target.Capability{target.AvailabilityRules},
		do: func(ctx context.Context, e *Env) error {
			vms, err := members(ctx, e, group)
			if err != nil || len(vms) == 0 {
				return err
			}
			rules, err := able[target.Availability](e, target.AvailabilityRules)
			if err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "HA restart of group %s: %t", group, enabled)
			if err := rules.SetHA(ctx, names(vms), enabled); err != nil {
				return fmt.Errorf("group %q: %w", group, err)
			}
			return nil
		},
	}
}
