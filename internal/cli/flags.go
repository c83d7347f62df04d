package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/storage"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/run/experiment"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// maxScale bounds --time-scale and --size-scale from above.
const maxScale = 1000

// factor is a scale: a number above 0, at most maxScale.
type factor float64

// String implements pflag.Value.
func (f *factor) String() string { return strconv.FormatFloat(float64(*f), 'g', -1, 64) }

// Type implements pflag.Value.
func (f *factor) Type() string { return "factor" }

// Set implements pflag.Value.
func (f *factor) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v <= maxScale) {
		return fmt.Errorf("want a number above 0 and at most %d, like 0.02", maxScale)
	}
	*f = factor(v)
	return nil
}

// scenarioFlags say how to read a scenario.
type scenarioFlags struct {
	preset string
	nodes  int
	strict bool
	values map[string]any // of variables, native: what --set and --set-file say, or the cell of an experiment
	own    ownFlags
	assert []string     // conditions on the outcome, on top of the scenario's
	search *searchProbe // of a search, that a run is for
}

// searchProbe gives the jobs of a workload a rate, and enough depth to keep it, as its job_options would; or its group
// so many VMs. It puts it under a condition, too.
type searchProbe struct {
	workload string
	value    any // nil: a variable of the scenario has it
	vms      bool
	under    experiment.Condition // "": the scenario as it is written
}

func (r *searchProbe) set(sc *scenario.Scenario) error {
	if r.under != "" {
		if err := r.under.Apply(sc, r.workload); err != nil {
			return err
		}
	}
	for i := range sc.Workloads {
		w := &sc.Workloads[i]
		if w.Name != r.workload || r.value == nil {
			continue
		}
		if r.vms {
			n, _ := strconv.Atoi(fmt.Sprint(r.value))
			*countOf(groupOf(sc, w.Group)) = n
			continue
		}
		key := "rate"
		if w.Generator == "fio" {
			key = "rate_iops"
			w.Settings = append(w.Settings, scenario.Setting{Key: "iodepth", Value: strconv.Itoa(markDepth)})
		}
		w.Settings = append(w.Settings, scenario.Setting{Key: key, Value: fmt.Sprint(r.value)})
	}
	return nil
}

// groupOf is a group of VMs by its name; nil when there is none.
func groupOf(sc *scenario.Scenario, name string) *scenario.Group {
	for i := range sc.Groups {
		if sc.Groups[i].Name == name {
			return &sc.Groups[i]
		}
	}
	return &scenario.Group{} // the scenario was refused for it
}

// countOf is the number that says how many VMs a group has: of the cluster, or of each of its nodes.
func countOf(g *scenario.Group) *int {
	if g.CountPerCluster > 0 {
		return &g.CountPerCluster
	}
	return &g.CountPerNode
}

func (f *scenarioFlags) register(pl *planner, c *cobra.Command) {
	var set, setFiles []string
	flags := c.Flags()
	flags.StringArrayVar(&set, "set", nil, "set a variable of the scenario, `NAME=VALUE`, typed as YAML; repeatable")
	flags.StringArrayVar(&setFiles, "set-file", nil, "read variables from a YAML `file`; --set wins; repeatable")
	// A stream can be read once, and before the command takes signals for itself.
	c.PreRunE = func(_ *cobra.Command, given []string) (err error) {
		if f.values, err = variables(pl.Console, setFiles, set); err != nil {
			return err
		}
		return pl.own(given[0], f)
	}
	flags.StringVar(&f.preset, "preset", "", "use the scenario's preset of that `name`; --set wins")
	flags.IntVar(&f.nodes, "nodes", 0, "`number` of nodes of the cluster (default: the target's)")
	flags.BoolVar(&f.strict, "strict", false, "object to all that a careful author would not write")
	flags.StringArrayVar(&f.assert, "assert", nil,
		"a condition on the outcome, like `'OLTP read p99 < 10ms'`; exit code 5 when it does not hold; repeatable")
	f.own.register(c)
}

// targetFlags say where machines come from and how a scenario is made to fit.
type targetFlags struct {
	name              string
	options           []string
	timeScale         factor
	sizeScale         factor
	allowHostCommands bool
	disks             []string
	consents          []string
}

func (f *targetFlags) register(known drivers.Registry, c *cobra.Command) {
	f.timeScale, f.sizeScale = 1, 1
	flags := c.Flags()
	flags.StringVar(&f.name, "target", known.Targets[0].Name(),
		"`where` the machines come from; see plimsoll targets list")
	flags.StringArrayVar(
		&f.disks,
		"disk",
		nil,
		"`folder` whose file system the data disks are put on (target local), or a block device that is one data disk "+
			"and is overwritten; the load goes there; repeatable: disks are dealt out in turn",
	)
	flags.StringArrayVar(&f.consents, "consent", nil, storage.ConsentHelp+"; repeatable, one for each device")
	flags.StringArrayVar(&f.options, "target-opt", nil, "set an option of the target, `NAME=VALUE`; repeatable")
	flags.Var(&f.timeScale, "time-scale", "multiply the scenario's durations by this `factor`")
	flags.Var(&f.sizeScale, "size-scale", "multiply sizes of disks and files by this `factor`")
	flags.BoolVar(&f.allowHostCommands, "allow-host-commands", false,
		"permit steps that run the author's commands on this machine")
	_ = c.RegisterFlagCompletionFunc(
		"target",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, p := range known.Targets {
				names = append(names, p.Name()+"\t"+p.Summary())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	)
}

// clockedTarget is a target with the clock that a run on it goes by.
type clockedTarget struct {
	target.Target
	options map[string]string
	clock   clock.Clock
}

// target makes the target of the flags. It touches nothing yet.
func (st *store) target(f targetFlags, nodes int) (*clockedTarget, error) {
	provider, ok := st.drivers.Target(f.name)
	if !ok {
		return nil, exit.Usagef("there are: "+strings.Join(st.drivers.TargetNames(), ", "), "target: no target called %q", f.name)
	}
	options, err := console.Pairs("--target-opt", f.options)
	if err != nil {
		return nil, err
	}
	if len(f.consents) > 0 {
		if len(f.disks) == 0 {
			return nil, exit.Usagef("", "--consent goes with --disk and a block device")
		}
		options[consentOption] = strings.Join(f.consents, "\n")
	}
	if len(f.disks) > 0 {
		if err := onDisk(f, provider, options); err != nil {
			return nil, err
		}
	}
	if nodes < 0 {
		return nil, exit.Usagef("", "--nodes: %d is not a number of nodes", nodes)
	}
	p := &clockedTarget{options: options, clock: st.Clock}
	if keeper, ok := provider.(target.Timekeeper); ok {
		p.clock = keeper.Clock()
	}
	p.Target, err = provider.New(target.Config{Nodes: nodes, Options: options, Clock: p.clock, RunsDir: st.runsDir,
		PowerKinds: st.drivers.PowerKinds, AllowHostCommands: f.allowHostCommands})
	if err != nil &&
		slices.ContainsFunc(f.disks, func(dir string) bool { return strings.HasPrefix(err.Error(), dir) }) {
		return nil, exit.Usagef("", "--disk %w", err)
	}
	if err != nil {
		return nil, exit.Usagef(`run "plimsoll targets list" for the options there are`, "target: %s: %w", f.name, err)
	}
	return p, nil
}

// Options of a target that say where its data disks lie, and that devices there may be overwritten.
const (
	dirOption     = "dir"
	consentOption = "consent"
)

// onDisk puts the data disks where --disk says. Nothing there is touched but a folder of the run's own, which clean-up
// removes.
func onDisk(f targetFlags, provider target.Provider, options map[string]string) error {
	if !slices.ContainsFunc(provider.Options(), func(o target.Option) bool { return o.Name == dirOption }) {
		return exit.Usagef("leave it out, or use --target local", "--disk: target %s has no disks on this machine",
			provider.Name())
	}
	if options[dirOption] != "" {
		return exit.Usagef("give one of them", "--disk and --target-opt %s both say where the disks lie", dirOption)
	}
	for _, dir := range f.disks {
		if strings.Contains(dir, ":") && len(f.disks) > 1 {
			return exit.Usagef("give it a name without one, or a symbolic link of such a name",
				`--disk %s: with several folders, none may have a ":" in its name`, dir)
		}
	}
	options[dirOption] = strings.Join(f.disks, ":")
	return nil
}

// loaded is a scenario that was read, with all that was said about it.
type loaded struct {
	*source
	scenario    *scenario.Scenario // nil when an error prevents one
	diagnostics []scenario.Diagnostic
}

// load opens and reads a scenario, as of the moment now. Objections are in the result, not in the error. The caller
// closes it.
func (pl *planner) load(given string, f scenarioFlags, nodes int, now time.Time) (*loaded, error) {
	src, err := pl.open(given)
	if err != nil {
		return nil, err
	}
	sc, diagnostics := scenario.Load(src.fsys, scenario.LoadOptions{
		Set: f.values, Preset: f.preset, File: src.file, Now: now, Nodes: nodes, Strict: f.strict,
		CheckQuery: collect.CheckQuery,
		Generators: pl.drivers.Generators(),
	})
	if sc != nil && f.search != nil {
		if err := f.search.set(sc); err != nil {
			src.close()
			return nil, exit.Errorf(exit.Scenario, "", "%s: %w", given, err)
		}
	}
	if sc != nil {
		also := ""
		if src.made { // a file of one job is known by its own name as well
			also = sc.DisplayName
		}
		diagnostics = append(diagnostics, addAsserts(sc, also, f.assert)...)
		if slices.ContainsFunc(diagnostics, func(d scenario.Diagnostic) bool { return d.Severity == scenario.Error }) {
			sc = nil
		}
	}
	if src.made { // the file itself was checked, and at its own places
		diagnostics = slices.DeleteFunc(diagnostics,
			func(d scenario.Diagnostic) bool { return d.Severity != scenario.Error })
	}
	for i := range diagnostics {
		if p := &diagnostics[i].Pos; p.File != "" && fs.ValidPath(p.File) {
			p.File = src.path(p.File)
		}
	}
	return &loaded{source: src, scenario: sc, diagnostics: diagnostics}, nil
}

// addAsserts puts the conditions of a command line to those of a scenario, and returns what is wrong with them. also is
// another name of the workload, where there is one besides prefills; "" for none.
func addAsserts(sc *scenario.Scenario, also string, texts []string) (bad []scenario.Diagnostic) {
	var workloads, judged []string
	for _, w := range sc.Workloads {
		workloads = append(workloads, w.Name)
		if w.Name != "Prefill" {
			judged = append(judged, w.Name)
		}
	}
	known := workloads
	if len(judged) == 1 && also != "" && !slices.Contains(workloads, also) {
		known = append(slices.Clone(workloads), also)
	}
	for _, text := range texts {
		a, err := scenario.ParseAssert(text, known)
		if err == nil && !slices.Contains(workloads, a.Workload) {
			a.Workload = judged[0]
		}
		if err == nil && sc.Experiment != nil {
			err = fmt.Errorf("assert %q: the scenario is an experiment of many runs: write it into its assert:", text)
		}
		if err != nil {
			bad = append(bad, scenario.Diagnostic{Severity: scenario.Error, Code: "assert",
				What: "--assert: " + err.Error()})
			continue
		}
		sc.Asserts = append(sc.Asserts, a)
	}
	return bad
}

// path is how a user on this machine would name a file of the source.
func (s *source) path(file string) string {
	dir := s.given
	if s.file != "" {
		dir = filepath.Dir(s.given)
	}
	return filepath.Join(dir, filepath.FromSlash(file))
}

// count is how many diagnostics have a severity.
func (l *loaded) count(s scenario.Severity) int {
	n := 0
	for _, d := range l.diagnostics {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// warned is what was said, wherever the scenario lies: an experiment has a copy of its own.
func warned(d scenario.Diagnostic) string {
	return fmt.Sprintf("%d:%d %s %s", d.Line, d.Col, d.Code, d.What)
}

// refuse prints what was said about the scenario to standard error and returns an error when it cannot be used.
func (pl *planner) refuse(phase string, l *loaded) error {
	for _, d := range l.diagnostics {
		if d.Severity == scenario.Note || pl.warned[warned(d)] {
			continue
		}
		if pl.warned != nil && d.Severity == scenario.Warning {
			pl.warned[warned(d)] = true
		}
		visible.Fprintf(pl.Err, "%s\n", d)
	}
	if l.scenario == nil {
		return exit.Errorf(exit.Scenario, "", "%s: %s: %s", phase, l.given,
			unit.Plural(l.count(scenario.Error), "error"))
	}
	return nil
}

var unknownFlag = regexp.MustCompile(`unknown flag: --([^\s=]+)`)

// nearestFlag is the flag the user may have meant, "" when none is near.
func nearestFlag(cmd *cobra.Command, err error) string {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return nearest.Of(m[1], names)
}

// plainNumber is what is wrong with a flag's number, in the words of who typed it and not in Go's.
func plainNumber(err error) error {
	bad, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	want := "want a whole number"
	switch {
	case errors.Is(bad, strconv.ErrRange):
		want = "it is out of range"
	case bad.Func == "ParseFloat":
		want = "want a number"
	case bad.Func == "ParseBool":
		want = "want true or false"
	}
	return errors.New(strings.Replace(err.Error(), bad.Error(), want, 1))
}
