package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/progress"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run/ansible"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
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
	tf, placed, err := a.placed("plan", given, tf)
	if err != nil {
		return err
	}
	p, err := a.prepare(ctx, "plan", given, sf, tf)
	if p != nil {
		defer p.close()
	}
	var refused *plan.Refused
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	a.sayPlaced(given, placed)
	switch {
	case a.json:
		err = errors.Join(a.printJSON(p.plan), err)
	case err != nil:
		err = errors.Join(p.plan.Text(a.out), err)
	default:
		err = a.sayPlan(ctx, p, sf, tf)
	}
	if refused != nil { // its objections are part of the plan
		return &exit.Error{Code: exit.Refused, Err: err, Said: true}
	}
	return err
}

// sayPlan prints a plan, and of an experiment how often it is gone through, with the values of each combination checked
// as its runs check them.
func (a *app) sayPlan(ctx context.Context, p *prepared, sf scenarioFlags, tf targetFlags) error {
	if err := p.plan.Text(a.out); err != nil {
		return err
	}
	x := p.scenario.Experiment
	if x == nil {
		return nil
	}
	r := experiment.NewRecord("", p.scenario)
	r.Settings.Set = sf.values
	least, unknown, err := a.checkCells(ctx, p, r, sf, tf)
	if err != nil {
		return err
	}
	visible.Fprintf(a.out, "\nAn experiment: %s of this, %s %s each, %s in all.\n",
		unit.Plural(x.Runs(), "run"), unit.Plural(x.Runs()/x.Repeats, "combination"),
		unit.Plural(x.Repeats, "time"), progress.Lasts(least, unknown))
	return nil
}

// planned is the plan of a scenario on the target that was prepared for.
func (a *app) planned(sc *scenario.Scenario, p *prepared, tf targetFlags) (*plan.Plan, error) {
	forecaster, _ := p.Target.(workload.Forecaster) // without one the plan says what it cannot say
	return plan.Build(sc, p.facts, plan.Options{
		TimeScale: float64(tf.timeScale), SizeScale: float64(tf.sizeScale), Engines: a.drivers.ByName(),
		AllowHostCommands: tf.allowHostCommands, Forecaster: forecaster,
	})
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
	p.plan, err = unlessStopped(ctx, func() (*plan.Plan, error) { return a.planned(l.scenario, p, tf) })
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if err != nil {
		return p, &exit.Error{Code: exit.Refused, Err: err, Hint: "plimsoll plan shows the steps this is about"}
	}
	a.state(p, workload.Stating.Facts)
	if phase == "run" && tf.name == "local" {
		if err := a.fits(ctx, p); err != nil {
			return p, err
		}
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

// state adds facts of the loads that can say some. Loads on one server say the same of it once.
func (a *app) state(p *prepared, facts func(workload.Stating, workload.Spec) []result.Fact) {
	engines, list := a.drivers.ByName(), &p.facts.Environment
	for _, w := range p.scenario.Workloads {
		e, ok := engines[w.Generator].(workload.Stating)
		if !ok {
			continue
		}
		for _, f := range facts(e, specOf(w)) {
			same := slices.IndexFunc(*list, func(o result.Fact) bool { return o.Group == f.Group && o.Name == f.Name })
			if same >= 0 && (*list)[same].Value == f.Value {
				continue
			}
			if same >= 0 && f.Group == result.ServerGroup {
				f.Group += " of " + w.Name
			}
			*list = append(*list, f)
		}
	}
}

// askLimit bounds how long a server of the user's is asked for its settings.
const askLimit = 15 * time.Second

// ask adds what servers of the user's say of themselves, or why that is not known: the loads' machines may reach one
// that this machine does not. The error joins why.
func (a *app) ask(ctx context.Context, p *prepared) (bad error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	a.state(p, func(e workload.Stating, spec workload.Spec) []result.Fact {
		asking, ok := e.(workload.Asking)
		if !ok {
			return nil
		}
		facts, err := asking.Asked(ctx, spec)
		if err != nil {
			bad = errors.Join(bad, err)
			facts = []result.Fact{{Group: result.ServerGroup, Name: "settings", Value: "not known: " + oneLine(err)}}
		}
		return facts
	})
	return bad
}

// specOf is what the scenario says of a workload, on no machine yet.
func specOf(w scenario.Workload) workload.Spec {
	return workload.Spec{Name: w.Name, ConfigFile: w.ConfigFile, Config: w.Config, Settings: w.Settings}
}

// fits refuses a run on this machine that lacks a program or space.
func (a *app) fits(ctx context.Context, p *prepared) error {
	var bad []error
	of := map[string][]workload.Spec{}
	for _, w := range p.scenario.Workloads {
		of[w.Generator] = append(of[w.Generator], specOf(w))
	}
	for _, generator := range slices.Sorted(maps.Keys(of)) {
		if e, ok := a.drivers.ByName()[generator].(workload.Resident); ok {
			if _, err := e.Here(ctx, of[generator]); err != nil {
				bad = append(bad, err)
			}
		}
	}
	if need, free := p.plan.PeakDiskBytes, p.facts.FreeBytes; free >= 0 && need > free {
		bad = append(bad, fmt.Errorf("disk space: %s needed for data disks, %s free beyond the reserve: free some "+
			"space, or give --disk FOLDER on another file system%s", unit.Bytes(need), unit.Bytes(free),
			scaleFor(p, need, free)))
	}
	largest := int64(0)
	for _, g := range p.scenario.Groups {
		for _, size := range g.DiskBytes {
			largest = max(largest, int64(float64(size)*p.plan.SizeScale))
		}
	}
	if limit := p.facts.LargestFile; limit > 0 && largest > limit && len(p.facts.DataDisks) == 0 {
		bad = append(bad, fmt.Errorf("file size: a data disk is a file of %s, and ulimit -f allows %s: raise it%s",
			unit.Bytes(largest), unit.Bytes(limit), scaleFor(p, largest, limit)))
	}
	if len(bad) > 0 {
		return exit.Errorf(exit.Refused, "", "run: %w", errors.Join(bad...))
	}
	return nil
}

// scaleFor names the size scale by which what is needed becomes what there is, two digits of it; "" for none.
func scaleFor(p *prepared, need, have int64) string {
	scale := p.plan.SizeScale * float64(have) / float64(need)
	if !(scale > 0) {
		return ""
	}
	unit := math.Pow(10, math.Floor(math.Log10(scale))-1)
	return "; --size-scale " + strconv.FormatFloat(math.Floor(scale/unit)*unit, 'g', 2, 64) + " fits"
}

// unlessStopped plans, which touches nothing and can take minutes for 10,000 machines, and leaves that alone
// when ctx ends.
func unlessStopped(ctx context.Context, f func() (*plan.Plan, error)) (made *plan.Plan, err error) {
	ended := make(chan struct{})
	var p *plan.Plan
	var failed error
	go func() {
		p, failed = f()
		close(ended)
	}()
	select {
	case <-ended:
		return p, failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
