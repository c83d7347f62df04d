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

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
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

func (pl *planner) planCommand() *cobra.Command {
	var sf scenarioFlags
	var tf machines.Flags
	c := &cobra.Command{
		Use:   "plan SCENARIO",
		Short: "Say what a run would do, step by step, without touching anything",
		Long: `Plan joins a scenario with what the target says of itself and prints the steps in order, when each is
expected to begin and how long it takes, the machines that would be made, and the space and memory
they need. The exit code is 3 when the scenario is invalid and 4 when it cannot run on the target.`,
		Example: `  plimsoll plan db-colocation
  plimsoll plan ./my-scenario --nodes 4 --time-scale 0.02 --size-scale 0.002 --set iops=500
  plimsoll plan db-colocation --json`,
		Args:              console.Args(1, 1, "scenario"),
		ValidArgsFunction: completeScenario,
		RunE:              func(_ *cobra.Command, given []string) error { return pl.plan(given[0], sf, tf) },
	}
	sf.register(pl, c)
	sf.registerPlain(c)
	tf.Register(pl.Drivers, c)
	return c
}

func (pl *planner) plan(given string, sf scenarioFlags, tf machines.Flags) error {
	ctx, stop := pl.Interruptible()
	defer stop()
	tf, placed, err := pl.placed("plan", given, tf)
	if err != nil {
		return err
	}
	p, err := pl.prepare(ctx, "plan", given, sf, tf)
	if p != nil {
		defer p.close()
	}
	var refused *plan.Refused
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	sayPlaced(pl.Console, given, placed)
	switch {
	case pl.JSON:
		err = errors.Join(pl.PrintJSON(p.plan), err)
	case err != nil:
		err = errors.Join(p.plan.Text(pl.Out), err)
	default:
		err = pl.sayPlan(ctx, p, sf, tf)
	}
	if refused != nil { // its objections are part of the plan
		return &exit.Error{Code: exit.Refused, Err: err, Said: true}
	}
	return err
}

// sayPlan prints a plan, and of an experiment how often it is gone through, with the values of each combination checked
// as its runs check them.
func (pl *planner) sayPlan(ctx context.Context, p *prepared, sf scenarioFlags, tf machines.Flags) error {
	if err := p.plan.Text(pl.Out); err != nil {
		return err
	}
	x := p.scenario.Experiment
	if x == nil {
		return nil
	}
	r := experiment.NewRecord("", p.scenario)
	r.Settings.Set = sf.values
	least, unknown, err := pl.checkCells(ctx, p, r, sf, tf)
	if err != nil {
		return err
	}
	visible.Fprintf(pl.Out, "\nAn experiment: %s of this, %s %s each, %s in all.\n",
		unit.Plural(x.Runs(), "run"), unit.Plural(x.Runs()/x.Repeats, "combination"),
		unit.Plural(x.Repeats, "time"), progress.Lasts(least, unknown))
	return nil
}

// planned is the plan of a scenario on the target that was prepared for.
func (pl *planner) planned(sc *scenario.Scenario, p *prepared, sf scenarioFlags, tf machines.Flags) (*plan.Plan,
	error) {
	forecaster, _ := p.Target.(workload.Forecaster) // without one the plan says what it cannot say
	return plan.Build(sc, p.facts, plan.Options{
		TimeScale: float64(tf.TimeScale), SizeScale: float64(tf.SizeScale), Engines: pl.Drivers.ByName(),
		AllowHostCommands: tf.AllowHostCommands, ComparePlain: sf.plain, Forecaster: forecaster,
	})
}

// prepared is a scenario with its target and plan; nothing has been touched.
type prepared struct {
	*loaded
	*machines.Clocked
	facts target.Facts
	plan  *plan.Plan
}

// prepare reads the scenario, looks at the target and makes the plan. With a *plan.Refused in the error the plan comes
// back as far as it could be made.
func (pl *planner) prepare(ctx context.Context, phase, given string, sf scenarioFlags, tf machines.Flags) (*prepared,
	error) {
	t, err := pl.Target(tf, sf.nodes)
	if err != nil {
		return nil, err
	}
	facts, checkErr := t.Check(ctx)
	l, err := pl.load(given, sf, max(len(facts.Nodes), sf.nodes), t.Clock.Now())
	if err != nil {
		return nil, err
	}
	p := &prepared{loaded: l, Clocked: t, facts: facts}
	if err := pl.refuse(phase, l); err != nil {
		return p, err
	}
	if checkErr != nil {
		return p, exit.Errorf(exit.Refused, "plimsoll targets check "+tf.Name+" says more", "target: %w", checkErr)
	}
	p.plan, err = unlessStopped(ctx, func() (*plan.Plan, error) { return pl.planned(l.scenario, p, sf, tf) })
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if err != nil {
		return p, &exit.Error{Code: exit.Refused, Err: err, Hint: "plimsoll plan shows the steps this is about"}
	}
	pl.state(p, workload.Stating.Facts)
	if phase == "run" {
		if err := pl.fits(ctx, phase, p); err != nil {
			return p, err
		}
	}
	sayDisks(pl.Console, phase, p, tf.Disks)
	if err := checkPlaybooks(ctx, p); err != nil {
		return p, err
	}
	if phase == "run" && tf.Name == "local" && pl.serves(p) {
		return p, programs(pl.Console, phase)
	}
	return p, nil
}

// state adds facts of the loads that can say some. Loads on one server say the same of it once.
func (pl *planner) state(p *prepared, facts func(workload.Stating, workload.Spec) []result.Fact) {
	engines, list := pl.Drivers.ByName(), &p.facts.Environment
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
func (pl *planner) ask(ctx context.Context, p *prepared) (bad error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	pl.state(p, func(e workload.Stating, spec workload.Spec) []result.Fact {
		asking, ok := e.(workload.Asking)
		if !ok {
			return nil
		}
		facts, err := asking.Asked(ctx, spec)
		if err != nil {
			bad = errors.Join(bad, err)
			facts = []result.Fact{
				{Group: result.ServerGroup, Name: "settings", Value: "not known: " + console.OneLine(err)},
			}
		}
		return facts
	})
	return bad
}

// specOf returns what the scenario says of a workload, on no machine yet.
func specOf(w scenario.Workload) workload.Spec {
	return workload.Spec{Name: w.Name, ConfigFile: w.ConfigFile, Config: w.Config, Settings: w.Settings}
}

// fits refuses a run on this machine that lacks a program or space; of other places nothing is known before.
func (pl *planner) fits(ctx context.Context, phase string, p *prepared) error {
	if p.facts.Target != "local" {
		return nil
	}
	var bad []error
	hint := ""
	of := map[string][]workload.Spec{}
	for _, w := range p.scenario.Workloads {
		of[w.Generator] = append(of[w.Generator], specOf(w))
	}
	for _, generator := range slices.Sorted(maps.Keys(of)) {
		if e, ok := pl.Drivers.ByName()[generator].(workload.Resident); ok {
			if _, err := e.Here(ctx, of[generator]); err != nil {
				bad = append(bad, err)
				hint = "--target sim needs no such program and shows what a run tells, plimsoll vioperf what large writes " +
					"take here"
			}
		}
	}
	if need, free := p.plan.PeakDiskBytes, p.facts.FreeBytes; free >= 0 && need > free {
		bad = append(bad, target.NoRoom{Err: fmt.Errorf("disk space: %s needed for data disks, %s free beyond the "+
			"reserve: free some space, or give --disk FOLDER on another file system%s", unit.Bytes(need),
			unit.Bytes(free), scaleFor(p, need, free))})
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
	const least, each = 24, 4 // seen: 20 of one machine, 144 of 32
	if need, limit := int64(least+each*p.plan.PeakVMs), p.facts.OpenFiles; limit > 0 && need > limit {
		bad = append(bad, fmt.Errorf("open files: a run of %s takes about %d, and ulimit -n allows %d: raise it",
			unit.Plural(p.plan.PeakVMs, "VM"), need, limit))
	}
	if len(bad) > 0 {
		return exit.Errorf(exit.Refused, hint, "%s: %w", phase, errors.Join(bad...))
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
func checkPlaybooks(ctx context.Context, p *prepared) error {
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
func sayDisks(con *console.Console, phase string, p *prepared, folders []string) {
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
		visible.Fprintf(con.Err, "warning: %s: %s for %d folders: nothing is put in %s\n", phase,
			unit.Plural(disks, "data disk"), len(folders), strings.Join(folders[disks:], " and "))
		folders = folders[:disks]
	}
	if phase != "plan" {
		visible.Fprintf(con.Err, "%s: the data disks are dealt out in turn, VM by VM: %s\n", phase,
			strings.Join(folders, ", "))
	}
}
