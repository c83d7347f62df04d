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
)

func playbookSteps() Registry { return Registry{"playbook.Run": single(runPlaybook)} }

// playbook.Run checks its arguments everywhere. Running a playbook needs hosts reachable by SSH and Ansible on this machine,
// which is the capability PlaybookHosts; no target of this version claims it, so the plan refuses the step before anything
// starts. The password is never part of any text.
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
			return 0
		},
		do: func(context.Context, *Env) error {
			return fmt.Errorf("playbook %q: this version runs no playbooks", file)
		},
	}, nil
}
