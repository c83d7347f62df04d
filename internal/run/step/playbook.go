package step

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/run/ansible"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func playbookSteps() Registry { return Registry{"playbook.Run": single(runPlaybook)} }

// playbook.Run checks its arguments everywhere. Running a playbook needs hosts reachable by SSH, which is the
// capability PlaybookHosts; a target that does not claim it has the plan refuse the step before anything starts. A
// simulated cluster has no hosts: there the addresses are resolved and what would have run is noted. The user and the
// password of the scenario are not used: hosts are logged in to as the target does.
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
			if v.Facts.Can(target.PlaybookHosts) && !v.Facts.Simulated && !v.HostCommands {
				errs = append(errs, errors.New("playbooks may run commands on this machine as well; allow them with "+
					"--allow-host-commands if you trust the scenario"))
			}
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
			f.Unknown = f.Unknown || !f.Facts.Simulated
			return f.Facts.PlaybookTime
		},
		do: func(ctx context.Context, e *Env) error {
			if !e.Facts.Simulated {
				if err := ansiblePlay(ctx, e, a); err != nil {
					return fmt.Errorf("playbook %q: %w", file, err)
				}
				return nil
			}
			hosts, err := playbookHosts(ctx, e, inventory)
			if err != nil {
				return fmt.Errorf("playbook %q: %w", file, err)
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

// ansiblePlay runs a playbook for real. What Ansible prints is kept in the run folder.
func ansiblePlay(ctx context.Context, e *Env, a scenario.Args) error {
	source, err := able[target.LoginSource](e, target.PlaybookHosts)
	if err != nil {
		return err
	}
	file := a.String("filename")
	folder := filepath.Join(e.Dir, "playbooks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	log, err := os.CreateTemp(folder, e.Clock.Now().UTC().Format("20060102T150405Z")+"-"+name+"-*.log")
	if err != nil {
		return err
	}
	if err := errors.Join(log.Chmod(0o644), log.Close()); err != nil {
		return err
	}
	kept, err := filepath.Rel(e.Dir, log.Name())
	if err != nil {
		return err
	}
	output, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	variables := untyped.Object{"output_directory": output}
	maps.Copy(variables, a.Map("variables"))
	play := ansible.Play{Dir: filepath.Join(e.Dir, "scenario"), File: file, Root: a.String("remote_user") == "root",
		Variables: variables, Forks: a.Int("forks"), Log: log.Name(),
		Patience: e.Loads.Patience,
		Task:     func(task string) { e.Note("Playbook %s: task %q", file, task) },
		Failed: func(f ansible.Failure) {
			ignored := ""
			if f.Ignored {
				ignored = " (the playbook ignores it)"
			}
			e.Warn("Playbook %s: %v%s", file, f, ignored)
		}}
	hosts := 0
	for _, group := range a.Strings("inventory") {
		logins, err := source.Logins(ctx, group)
		if err != nil {
			return err
		}
		hosts += len(logins)
		play.Groups = append(play.Groups, ansible.Group{Name: group, Hosts: logins})
	}
	e.Note("Playbook %s begins on %s; what Ansible prints is in %s", file, unit.Plural(hosts, "host"), kept)
	recap, err := play.Run(ctx)
	var changed []string
	for _, r := range recap {
		e.Note("Playbook %s: %v", file, r)
		if r.Changed > 0 {
			changed = append(changed, r.Host)
		}
	}
	if err != nil {
		return fmt.Errorf("%w (see %s in the run folder)", err, kept)
	}
	if len(changed) == 0 {
		changed = []string{"no host"}
	}
	e.annotate(a.Bool("annotate"), "Playbook %s, which changed %s", file, unit.List(changed, mostNamed))
	return nil
}
