package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/target"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func playbookSteps() Registry { return Registry{"playbook.Run": single(runPlaybook)} }

// playbook.Run checks its arguments everywhere. Running a playbook needs hosts reachable by SSH and Ansible on this
// machine, which is the capability PlaybookHosts; a target that does not claim it has the plan refuse the step before
// anything starts. A simulated cluster has no hosts: there the addresses are resolved and what would have run is noted.
// The password is never part of any text.
func runPlaybook(a scenario.Args, _ View) (*action, error) {
	file, inventory := a.String("filename"), a.Strings("inventory")
	return &action{
		text:     fmt.Sprintf("run playbook %q on %s", file, strings.Join(inventory, ", ")),
		requires: []target.Capability{target.PlaybookHosts},
		check: func(v View) error {
			if len(inventory) == 0 {
				return errors.New("inventory: the list is empty; name VM groups, nodes or cvms")
			}
			var errs []error
			for _, name := range inventory {
				if name == "nodes" || name == "cvms" {
					continue
				}
				if !slices.Contains(v.Groups.Names(), name) {
					errs = append(errs, fmt.Errorf("inventory: %q is neither a VM group nor nodes or cvms", name))
				}
			}
			return errors.Join(errs...)
		},
		estimate: func(f *Forecast) time.Duration {
			for _, name := range inventory {
				if name != "nodes" && name != "cvms" {
					f.needMembers(name)
				}
			}
			return f.Facts.PlaybookTime
		},
		do: func(ctx context.Context, e *Env) error {
			hosts, err := playbookHosts(ctx, e, inventory)
			if err != nil {
				return fmt.Errorf("playbook %q: %w", file, err)
			}
			if !e.Facts.Simulated {
				return fmt.Errorf("playbook %q: this version runs no playbooks", file)
			}
			e.Note("playbook %q would run on %s now; on a simulated cluster it is taken to last %s "+
				"(--target-opt playbook=TIME), changes nothing and loads nothing",
				file, unit.Plural(hosts, "host"), unit.Duration(e.Facts.PlaybookTime))
			if err := e.Clock.Sleep(ctx, e.Facts.PlaybookTime); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Playbook %s, on %s", file, unit.Plural(hosts, "host"))
			return nil
		},
	}, nil
}

// playbookHosts resolves an inventory and returns how many hosts it has.
func playbookHosts(ctx context.Context, e *Env, inventory []string) (hosts int, err error) {
	source, err := able[target.Addressed](e, target.PlaybookHosts)
	if err != nil {
		return 0, err
	}
	for _, group := range inventory {
		addresses, err := source.Addresses(ctx, group)
		if err != nil {
			return 0, err
		}
		hosts += len(addresses)
	}
	return hosts, nil
}
