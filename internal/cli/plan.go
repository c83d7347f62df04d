package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/ansible"
	"plimsoll/internal/exit"
	"plimsoll/internal/plan"
	"plimsoll/internal/progress"
	"plimsoll/internal/target"
	"plimsoll/internal/visible"
	"plimsoll/internal/workload"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func (a *app) planCommand() *cobra.Command {
	var sf scenarioFlags
	var tf targetFlags
	c := &cobra.Command{
		Use:   "plan SCENARIO",
		Short: "Say what a run would do, step by step, without touching anything",
		Long: `Plan joins a scenario with what the target says of itself and prints the steps in order, when each is
expected to begin and how long it takes, the machines that would be made, and the space and memory
they need. The exit code is 3 when the scenario is invalid and 4 when it cannot run on the target.`,
		Example: `  plimsoll plan db-colocation
  plimsoll plan ./my-scenario --nodes 4 --time-scale 0.02 --size-scale 0.002 --set iops=500
  plimsoll plan db-colocation --json`,
		Args:              args(1, 1, "scenario"),
		ValidArgsFunction: completeScenario,
		RunE:              func(_ *cobra.Command, given []string) error { return a.plan(given[0], sf, tf) },
	}
	sf.register(a, c)
	tf.register(a, c)
	return c
}

func (a *app) plan(given string, sf scenarioFlags, tf targetFlags) error {
	ctx, stop := a.interruptible()
	defer stop()
	p, err := a.prepare(ctx, "plan", given, sf, tf)
	if p != nil {
		defer p.close()
	}
	var refused *plan.Refused
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	switch {
	case a.json:
		err = errors.Join(a.printJSON(p.plan), err)
	case err != nil:
		err = errors.Join(p.plan.Text(a.out), err)
	default:
		err = a.sayPlan(p)
	}
	if refused != nil { // its objections are part of the plan
		return &exit.Error{Code: exit.Refused, Err: err, Said: true}
	}
	return err
}

// sayPlan prints a plan, and of an experiment how often it is gone through.
func (a *app) sayPlan(p *prepared) error {
	if err := p.plan.Text(a.out); err != nil {
		return err
	}
	if x := p.scenario.Experiment; x != nil {
		visible.Fprintf(a.out, "\nAn experiment: %s of this, %s %s each, %s in all.\n",
			unit.Plural(x.Runs(), "run"), unit.Plural(x.Runs()/x.Repeats, "combination"),
			unit.Plural(x.Repeats, "time"), progress.Lasts(p.plan.Least()*time.Duration(x.Runs()),
				p.plan.EstimateUnknown))
	}
	return nil
}

// prepared is a scenario with its target and plan; nothing has been touched.
type prepared struct {
	*loaded
	*clockedTarget
	facts target.Facts
	plan  *plan.Plan
}

// prepare reads the scenario, looks at the target and makes the plan. With a *plan.Refused in the error the plan comes
// back as far as it could be made.
func (a *app) prepare(ctx context.Context, phase, given string, sf scenarioFlags, tf targetFlags) (*prepared, error) {
	t, err := a.target(tf, sf.nodes)
	if err != nil {
		return nil, err
	}
	facts, checkErr := t.Check(ctx)
	l, err := a.load(given, sf, max(len(facts.Nodes), sf.nodes), t.clock.Now())
	if err != nil {
		return nil, err
	}
	p := &prepared{loaded: l, clockedTarget: t, facts: facts}
	if err := a.refuse(phase, l); err != nil {
		return p, err
	}
	if checkErr != nil {
		return p, exit.Errorf(exit.Refused, "plimsoll targets check "+tf.name+" says more", "target: %w", checkErr)
	}
	forecaster, _ := target.TargetAs[workload.Forecaster](t.Target) // without one the plan says what it cannot say
	p.plan, err = plan.Build(l.scenario, facts, plan.Options{
		TimeScale: float64(
			tf.timeScale,
		), SizeScale: float64(tf.sizeScale), Engines: a.drivers.ByName(), AllowHostCommands: tf.allowHostCommands,
		Forecaster: forecaster,
	})
	if err != nil {
		return p, &exit.Error{Code: exit.Refused, Err: err, Hint: "plimsoll plan shows the steps this is about"}
	}
	a.sayDisks(phase, p, tf.disks)
	if err := a.playbooks(ctx, p); err != nil {
		return p, err
	}
	if phase == "run" && tf.name == "local" && a.serves(p) {
		return p, a.programs(phase)
	}
	return p, nil
}

// playbooks has Ansible read the playbooks of a scenario, where they will run.
func (a *app) playbooks(ctx context.Context, p *prepared) error {
	var files []string
	for _, steps := range [][]scenario.Step{p.scenario.Setup, p.scenario.Run, p.scenario.Teardown} {
		for _, s := range steps {
			if file := s.Args.String("filename"); s.Name == "playbook.Run" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	if len(files) == 0 || p.facts.Simulated {
		return nil
	}
	if err := ansible.Check(ctx, p.fsys, files); err != nil {
		return &exit.Error{Code: exit.Refused, Err: err}
	}
	return nil
}

// sayDisks says how data disks are put on several folders, and which of them get none.
func (a *app) sayDisks(phase string, p *prepared, folders []string) {
	if len(folders) < 2 {
		return
	}
	disks := 0
	for _, vm := range p.plan.VMs {
		for _, g := range p.scenario.Groups {
			if g.Name == vm.Group {
				disks += len(g.DiskBytes)
			}
		}
	}
	if disks < len(folders) {
		visible.Fprintf(a.err, "warning: %s: %s for %d folders: nothing is put in %s\n", phase,
			unit.Plural(disks, "data disk"), len(folders), strings.Join(folders[disks:], " and "))
		folders = folders[:disks]
	}
	if phase != "plan" {
		visible.Fprintf(a.err, "%s: the data disks are dealt out in turn, VM by VM: %s\n", phase,
			strings.Join(folders, ", "))
	}
}
