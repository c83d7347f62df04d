package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// markFlags say what mark looks for.
type markFlags struct {
	limits   []string
	vary     string
	workload string
	from, to rateFlag
	at       rateFlag
	least    rateFlag // of --assert
	within   string
	probes   int
	probe    console.SpanFlag
	under    []string // conditions
	unit     string   // of clients
	plan     bool
	waits    waitFlags
	label    runs.LabelFlags
}

// highestRate is more than anything does in a second, and fits in every option.
const highestRate = 1e12

// rateFlag is a number of operations per second above 0.
type rateFlag float64

// String implements pflag.Value.
func (r *rateFlag) String() string {
	if *r == 0 {
		return ""
	}
	return unit.Rate(*r).String()
}

// Type implements pflag.Value.
func (r *rateFlag) Type() string { return "rate" }

// Set implements pflag.Value.
func (r *rateFlag) Set(text string) error {
	v, err := unit.ParseRate(text)
	if err == nil && !(v > 0) {
		err = fmt.Errorf("%q is not a rate above 0, like 4000", text)
	}
	if v > highestRate {
		err = fmt.Errorf("%q is more than anything does in a second", text)
	}
	*r = rateFlag(v)
	return err
}

// rateOption has --vary change the rate of a workload whose scenario has no variable for it.
const rateOption = "rate"

// jobRate is the option of fio's jobs that sets it.
const jobRate = "rate_iops"

// vmsOption has --vary change the number of VMs of the workload's group, clientsOption that of a database's
// clients.
const (
	vmsOption     = "vms"
	clientsOption = "clients"
)

func (rn *runner) markCommand() *cobra.Command {
	var sf scenarioFlags
	var tf machines.Flags
	var mf markFlags
	c := &cobra.Command{
		Use:   "mark SCENARIO --limit LIMIT",
		Short: "Find the highest rate that is borne under a limit",
		Long: `Mark looks for the highest rate of operations at which every limit holds, says how sure that is, and
says when there is no such answer. It offers one rate after another in an open loop, each in a run of its own: up until a
limit breaks, then near the place where it does, above and below in turn, until the interval is as narrow as --within
says.

Limits are conditions as of --assert: "read p99 < 5ms", "errors = 0", "all mean < 2ms", with the workload before them
where there are several. Latencies are response times, from when an operation was due: fio's service times are
corrected for operations that were sent late.

A SCENARIO is a job file of fio, whose jobs get the rate, or a scenario: --vary names the variable that sets it, and
"--vary rate" gives it to the jobs of the workload, whatever the scenario says. Without --from the first run of such
jobs has no rate, and the search begins below what it did. Jobs of fio may have 512 operations in flight, so that the
schedule decides and not the queue.

"--vary vms" looks for the number of VMs instead: of the workload's group, of the cluster or per node as the scenario
counts them. All of them must keep within the limits.

--condition repeats the search under a condition, and says what each costs against the first: alone, "with NAME" (a
workload of the scenario runs beside it), node-lost, node-back, migrating, worn-in. The scenario's run is then
replaced: its machines are made and filled, the condition is made, the workload runs once, and the condition is undone.

A search is an experiment: Ctrl-C ends it with what is known so far, "plimsoll resume" goes on, "plimsoll report" prints
it again. Exit code 5: a limit breaks at the lowest rate, or an --assert on the mark does not hold.`,
		Example: `  plimsoll mark my.fio --limit 'read p99 < 5ms' --limit 'errors = 0' --disk /mnt/under-test
  plimsoll mark ./my-scenario --workload OLTP --vary iops --from 500 --limit 'OLTP read p99 < 10ms'
  plimsoll mark my.fio --target sim --limit 'read p99 < 1ms' --at 2500
  plimsoll mark db-colocation --vary rate --workload OLTP --limit 'read p99 < 10ms' --condition alone \
    --condition 'with DSS' --condition node-lost --target sim`,
		Args:              console.Args(1, 1, "scenario"),
		ValidArgsFunction: completeScenario,
	}
	sf.register(rn.planner, c)
	read := c.PreRunE
	c.PreRunE = func(cmd *cobra.Command, given []string) error {
		for _, text := range sf.assert {
			if err := mf.assert(text); err != nil {
				return err
			}
		}
		sf.assert = nil
		if len(sf.own.sweeps) > 0 || sf.own.repeats != 0 {
			return exit.Usagef("it places its runs itself", "mark: it takes neither --sweep nor --repeat")
		}
		_, ok := rn.ownReader(given[0])
		if _, foreign := recognise.Tool(given[0]); ok || foreign {
			if _, err := os.Stat(given[0]); err != nil && !recognise.IsCall(given[0]) {
				return exit.Errorf(exit.Scenario, "", "mark: %q: %w", given[0], errors.Unwrap(err))
			}
			if err := mf.ofJobs(&sf); err != nil {
				return err
			}
		}
		return read(cmd, given)
	}
	c.RunE = func(_ *cobra.Command, given []string) error { return rn.mark(given[0], sf, tf, mf) }
	tf.Register(rn.Drivers, c)
	flags := c.Flags()
	flags.StringVar(&mf.vary, "vary", "", "`variable` of the scenario that sets the rate; rate, where none does, "+
		"gives it to the workload's jobs (of a job file: rate_iops); vms: the number of VMs of its group")
	flags.StringVar(&mf.workload, "workload", "", "`name` of the workload whose rate it is, where there are several")
	flags.StringArrayVar(&mf.under, "condition", nil, "repeat the search under this `condition`: alone, 'with NAME', "+
		"node-lost, node-back, migrating, worn-in; repeatable, the first is what others are held against")
	flags.Lookup("assert").Usage = markAssertUsage
	for _, name := range []string{"sweep", "repeat"} { // which it refuses
		_ = flags.MarkHidden(name)
	}
	mf.register(c, "of a job file: for how `long` each rate is offered")
	c.AddCommand(rn.markDBCommand())
	return c
}

// register gives a command the flags of every search.
func (mf *markFlags) register(c *cobra.Command, probe string) {
	flags := c.Flags()
	flags.StringArrayVar(&mf.limits, "limit", nil,
		"what must hold, like `'read p99 < 5ms'` or 'errors = 0'; repeatable, all of them")
	flags.Var(&mf.from, "from", "first `rate` to offer, of the variable's own kind")
	flags.Var(&mf.to, "to", "highest `rate` to offer, of the variable's own kind")
	flags.Var(&mf.at, "at", "the `rate` you run at in operations per second, to be held against the mark")
	flags.StringVar(&mf.within, "within", "5%", "how far from the mark its interval may reach, as a `share`")
	flags.IntVar(&mf.probes, "probes", mark.DefaultProbes, "the most `rates` that are offered")
	mf.probe = console.SpanFlag(30 * time.Second)
	flags.Var(&mf.probe, "probe", probe)
	flags.BoolVar(&mf.plan, "plan", false, "say what would be done and how long it takes, and touch nothing")
	mf.waits.register(c)
	mf.label.Register(c)
}

// conditions reads what the search is to be repeated under, and has each tried on a copy of the scenario, of which try
// says whether there is a plan.
func (mf *markFlags) conditions(p *prepared, workload string, try func(*scenario.Scenario) error) (
	list []experiment.Condition, err error) {
	for _, text := range mf.under {
		c := experiment.Condition(strings.Join(strings.Fields(text), " "))
		tried := *p.scenario
		switch bad := c.Apply(&tried, workload); {
		case bad != nil:
			err = errors.Join(err, bad)
		case slices.Contains(list, c):
			err = errors.Join(err, fmt.Errorf("condition %q is given twice", text))
		case p.plan.Nodes < c.Nodes():
			err = errors.Join(err, fmt.Errorf("condition %q: it takes two nodes at least: see --nodes", text))
		default:
			if bad := try(&tried); bad != nil {
				return nil, exit.Errorf(exit.Refused, "", "mark: condition %q: %w", text, bad)
			}
		}
		list = append(list, c)
	}
	if err != nil {
		return nil, exit.Usagef("", "mark: %w", err)
	}
	return list, nil
}

const markAssertUsage = "a condition on the mark, like `'mark >= 400'`; exit code 5 when it does not hold; repeatable"

var markAssert = regexp.MustCompile(`^mark\s*>=\s*(\S.*)$`)

// assert reads a condition on the mark.
func (mf *markFlags) assert(text string) error {
	m := markAssert.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return exit.Usagef("what must hold at every rate is a --limit",
			"mark: --assert %q: want 'mark >= RATE', like 'mark >= 3500'", text)
	}
	before := mf.least
	defer func() { mf.least = max(mf.least, before) }() // of several all must hold
	if err := mf.least.Set(m[1]); err != nil {
		return exit.Usagef("", "mark: --assert %q: %w", text, err)
	}
	return nil
}

// length is for how long each rate is offered, in whole seconds as generators take them.
func (mf *markFlags) length() (string, error) {
	d := time.Duration(mf.probe)
	if d < time.Second || d%time.Second != 0 {
		return "", exit.Usagef("", "mark: --probe %s: want whole seconds, 1s or more", d)
	}
	return d.String(), nil
}

// ofJobs has the jobs of a file take the rate, and enough depth to keep it.
func (mf *markFlags) ofJobs(sf *scenarioFlags) error {
	length, err := mf.length()
	if err != nil {
		return err
	}
	sf.own.runtime = cmp.Or(sf.own.runtime, length)
	switch mf.vary {
	case vmsOption:
		return nil
	case "", rateOption, jobRate:
		mf.vary = jobRate
	default:
		return exit.Usagef("", "mark: --vary %q: of a job file it is rate or vms", mf.vary)
	}
	sf.own.keepMix = true
	sf.own.sweeps = []string{mf.vary + "=0,1", fmt.Sprintf("iodepth=%d,%d", mark.Deep, mark.Deep+1)}
	return nil
}

// withinShare reads "5%" or "0.05".
func withinShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("--within: %q is not a share like 5%% or 0.05", text)
	}
	return v, nil
}

// marked is the only workload that can be meant, or the one that was named.
func marked(sc *scenario.Scenario, given string) (string, error) {
	var names []string
	for _, w := range sc.Workloads {
		if !strings.HasPrefix(w.Name, "Prefill") {
			names = append(names, w.Name)
		}
	}
	switch {
	case given != "" && slices.Contains(names, given):
		return given, nil
	case given == "" && len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", exit.Usagef("", "mark: %q has no workload whose rate could be looked for", sc.Name)
	}
	return "", exit.Usagef("--workload takes one of: "+unit.List(names, 12),
		"mark: which workload's rate is meant")
}

// check refuses all flags that cannot be meant, at once, and returns the share that the mark is searched within.
func (mf markFlags) check() (float64, error) {
	within, err := withinShare(mf.within)
	var bad []error
	if err != nil {
		bad = append(bad, err)
	}
	if mf.probes < 3 || mf.probes > 100 {
		bad = append(bad, fmt.Errorf("--probes: %d is not from 3 to 100", mf.probes))
	}
	if len(mf.limits) == 0 {
		bad = append(bad, errors.New("--limit is missing: what must hold, like --limit 'read p99 < 5ms'"))
	}
	if mf.vary == "" {
		bad = append(bad, errors.New("--vary is missing: the variable of the scenario that sets the rate, or rate"))
	}
	if mf.from > 0 && mf.to > 0 && mf.from > mf.to {
		bad = append(bad, fmt.Errorf("--from %g is above --to %g", float64(mf.from), float64(mf.to)))
	}
	if len(bad) > 0 {
		return 0, exit.Usagef("", "mark: %w", errors.Join(bad...))
	}
	return within, nil
}

func (rn *runner) mark(given string, sf scenarioFlags, tf machines.Flags, mf markFlags) error {
	within, err := mf.check()
	if err != nil {
		return err
	}
	limit, err := console.TimeLimit(mf.waits.limit)
	if err == nil {
		err = mf.label.Check(rn.Store, "mark")
	}
	if err != nil {
		return err
	}
	stop := rn.Stoppable()
	defer stop.Release()
	_, own := rn.made[given]
	if own && mf.vary != vmsOption { // of the two values that made it a variable none is meant
		least := map[bool]float64{true: 1}[mf.vary == clientsOption]
		sf.values = withValue(sf.values, mf.vary, levelOf(max(float64(mf.from), least), mf.vary != rateOption))
	} else if mf.from > 0 && mf.vary != rateOption && mf.vary != vmsOption {
		sf.values = withValue(sf.values, mf.vary, float64(mf.from))
	}
	p, tf, _, err := rn.ready(stop, "mark", given, sf, tf)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		return err
	}
	if p.scenario.Experiment != nil && !own {
		return exit.Usagef("", "mark: %s is an experiment of its own", given)
	}
	name, err := marked(p.scenario, mf.workload)
	if err != nil {
		return err
	}
	declared := slices.ContainsFunc(p.scenario.Vars, func(v scenario.Var) bool { return v.Name == mf.vary })
	option, vms := !own && mf.vary == rateOption && !declared, mf.vary == vmsOption && !declared
	load := p.scenario.Workloads[slices.IndexFunc(p.scenario.Workloads,
		func(w scenario.Workload) bool { return w.Name == name })]
	if option && slices.Contains([]string{"fio", "vioperf"}, load.Generator) {
		mf.vary = jobRate // as of job files: it is that of each job, and is said so
	}
	clients, unitOf := own && mf.vary == clientsOption, mf.unit
	if vms {
		if unitOf = "VMs"; groupOf(p.scenario, load.Group).CountPerCluster == 0 {
			unitOf = "VMs per node"
		}
	}
	if vms || clients {
		mf.from = rateFlag(max(1, math.Round(float64(mf.from))))
	}
	start, err := startOf(p.scenario, mf, own || option)
	if err != nil {
		return err
	}
	if !vms && !clients {
		if err := rn.sets(p, mf, name, option, own, start, sf, tf); err != nil {
			return err
		}
	}
	full, limits, err := judge.MarkLimits(mf.limits, name)
	if err == nil {
		err = judge.Upward(limits, vms)
	}
	if err != nil {
		return exit.Usagef("", "mark: %w", err)
	}
	asked := *p.scenario
	asked.Asserts = full
	for _, bad := range plan.CheckAsserts(&asked, rn.Drivers.ByName()) {
		what := strings.Replace(bad.What, "assert ", "--limit ", 1)
		err = errors.Join(err, exit.Errorf(exit.Refused, bad.Hint, "mark: %s", what))
	}
	if err != nil {
		return err
	}
	var plans []*plan.Plan // of a probe under each condition
	conditions, err := mf.conditions(p, name, func(sc *scenario.Scenario) error {
		one, err := rn.planned(sc, p, sf, tf)
		plans = append(plans, one)
		return err
	})
	if err != nil {
		return err
	}
	p.scenario.Experiment = &scenario.Experiment{Factors: []scenario.Factor{{Name: mf.vary}},
		Order: "as the search places it"}
	values := sf.values
	sf.values = maps.Clone(values)
	delete(sf.values, mf.vary)
	r := rn.record(p, sf, tf)
	r.Cells, r.Sequence, r.Factors = nil, nil, []experiment.Factor{{Name: mf.vary}}
	if len(conditions) > 0 {
		r.Factors = append(r.Factors, experiment.Factor{Name: experiment.ConditionFactor})
	}
	r.Mark = &experiment.Mark{Workload: name, Variable: mf.vary, Start: start, Most: float64(mf.to),
		Whole: own && mf.vary != rateOption || option || vms || !own && rn.whole(p, mf.vary, start, values, sf, tf),
		Rated: option, VMs: vms, Clients: clients, Unit: unitOf,
		Within: within, Probes: mf.probes, At: float64(mf.at), Least: float64(mf.least),
		Conditions: conditions}
	if own {
		if d, err := unit.ParseDuration(sf.own.runtime); err == nil {
			r.Mark.Seconds = float64(d) / 1e9
		}
	}
	for _, limit := range full {
		r.Mark.Limits = append(r.Mark.Limits, limit.Name)
	}
	if mf.plan {
		if len(plans) == 0 {
			plans = append(plans, p.plan)
		}
		d := newMarkPlan(r.Mark, plans, float64(tf.TimeScale))
		if rn.JSON {
			return rn.PrintJSON(d)
		}
		return d.say(rn)
	}
	if err := rn.fits(stop.Ctx, "mark", p); err != nil {
		return err
	}
	folder, err := rn.createExperiment("mark", r, p, mf.label.Labels)
	if err != nil {
		return err
	}
	defer folder.Close()
	each := ""
	if len(conditions) > 1 {
		each = fmt.Sprintf(" under each of %d conditions", len(conditions))
	}
	visible.Fprintf(rn.Notes(), "mark %s: at most %s of %s%s\n", r.ID, unit.Plural(mf.probes, "probe"),
		unit.Duration(p.plan.Least()), each)
	return rn.search(stop, folder, experiment.Conduct{Limit: limit, Now: rn.Now, Say: func(string, ...any) {}},
		mf.waits)
}

// sets refuses what is varied that does not set the rate of a workload, by its variable or as an option of the jobs.
func (rn *runner) sets(p *prepared, mf markFlags, name string, option, own bool, start float64,
	sf scenarioFlags, tf machines.Flags) error {
	offered := func(sc *scenario.Scenario) (float64, bool) { return plan.Offered(sc, name, rn.Drivers.ByName()) }
	loaded := func(values untyped.Object) *scenario.Scenario {
		of := sf
		of.values = values
		l, err := rn.load(p.given, of, len(p.facts.Nodes), p.Clock.Now())
		if err != nil {
			return nil
		}
		defer l.close()
		return l.scenario
	}
	const some = 1000 // a rate that any generator takes
	if option || own {
		tried := p.scenario
		if own {
			tried = loaded(withValue(maps.Clone(sf.values), mf.vary, int64(some)))
		} else {
			with := *tried
			with.Workloads = slices.Clone(with.Workloads)
			tried = &with
			_ = (&searchProbe{workload: name, value: int64(some)}).set(tried) // fails by its condition only
		}
		if tried == nil {
			return nil // the first probe tells
		}
		_, err := rn.planned(tried, p, sf, tf)
		if rate, known := offered(tried); err == nil && known && rate == 0 {
			err = errors.New("its jobs offer what they get back all the same (a closed loop)")
		}
		if err != nil {
			return exit.Errorf(exit.Refused, "--vary vms looks for a number of VMs",
				"mark: --vary %s: workload %q does not take it: %w", unit.Words(mf.vary), name, err)
		}
		return nil
	}
	with := func(variable string, v any) (float64, bool) {
		if sc := loaded(withValue(maps.Clone(sf.values), variable, v)); sc != nil {
			return offered(sc)
		}
		return 0, false
	}
	before, known := offered(p.scenario)
	after, still := with(mf.vary, levelOf(2*start, true))
	if !known || !still || before > 0 && after != before {
		return nil
	}
	others := []string{rateOption, vmsOption}
	for _, v := range p.scenario.Vars {
		if n, err := strconv.ParseFloat(fmt.Sprint(v.Value), 64); err == nil && n > 0 {
			if after, known := with(v.Name, levelOf(2*n, true)); known && before > 0 && after > 0 && after != before {
				others = append(others, v.Name)
			}
		}
	}
	why := fmt.Sprintf("its jobs offer %g a second each whatever it is", before)
	if before == 0 {
		why = "its jobs offer what they get back (a closed loop)"
	}
	return exit.Errorf(exit.Refused, "--vary takes one of: "+strings.Join(others, ", "),
		"mark: --vary %s: that is not the rate of workload %q: %s", mf.vary, name, why)
}

func withValue(values untyped.Object, name string, v any) untyped.Object {
	if values == nil {
		values = untyped.Object{}
	}
	values[name] = v
	return values
}

// startOf is the first value of the varied variable, 0 for a run without a rate.
func startOf(sc *scenario.Scenario, mf markFlags, own bool) (float64, error) {
	if mf.from > 0 || own {
		return float64(mf.from), nil
	}
	for _, v := range sc.Vars {
		if v.Name != mf.vary {
			continue
		}
		n, err := strconv.ParseFloat(fmt.Sprint(v.Value), 64)
		if err != nil || !(n > 0) {
			return 0, exit.Usagef("--from says where to begin", "mark: --vary %s: its value %v is not a rate above 0",
				mf.vary, v.Value)
		}
		return n, nil
	}
	names := []string{rateOption, vmsOption}
	for _, v := range sc.Vars {
		names = append(names, v.Name)
	}
	return 0, exit.Usagef("it is one of: "+strings.Join(names, ", "),
		"mark: --vary %s: the scenario has no such variable", mf.vary)
}

// whole reports whether a variable of the scenario takes no fraction, as one does that is the rate of fio's jobs.
func (rn *runner) whole(p *prepared, variable string, start float64, values untyped.Object, sf scenarioFlags,
	tf machines.Flags) bool {
	sf.values = withValue(maps.Clone(values), variable, math.Floor(start)+0.5)
	l, err := rn.load(p.given, sf, len(p.facts.Nodes), p.Clock.Now())
	if err != nil {
		return true
	}
	defer l.close()
	_, err = rn.planned(l.scenario, p, sf, tf)
	return err != nil
}
