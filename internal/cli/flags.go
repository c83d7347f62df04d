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

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/run/experiment"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// scenarioFlags say how to read a scenario.
type scenarioFlags struct {
	preset string
	nodes  int
	strict bool
	values untyped.Object // of variables, native: what --set and --set-file say, or the cell of an experiment
	own    ownFlags
	assert []string     // conditions on the outcome, on top of the scenario's
	search *searchProbe // of a search, that a run is for
	plain  int          // workloads of block I/O are compared with the same job beside their machine
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
			w.Settings = append(w.Settings, scenario.Setting{Key: "iodepth", Value: strconv.Itoa(mark.Deep)},
				scenario.Setting{Key: workload.KeepMix, Value: "1"})
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
	c.PreRunE = func(c *cobra.Command, given []string) (err error) {
		f.own.deviceBytes = devicesOf(c.Flags())
		if f.values, err = variables(pl.Console, setFiles, set); err != nil {
			return err
		}
		return pl.scenarioOfJobs(given[0], f)
	}
	flags.StringVar(&f.preset, "preset", "", "use the scenario's preset of that `name`; --set wins")
	flags.IntVar(&f.nodes, "nodes", 0, "`number` of nodes of the cluster (default: the target's)")
	flags.BoolVar(&f.strict, "strict", false, "object to all that a careful author would not write")
	flags.StringArrayVar(&f.assert, "assert", nil,
		"a condition on the outcome, like `'OLTP read p99 < 10ms'`; exit code 5 when it does not hold; repeatable")
	f.own.register(c)
}

// registerPlain adds what commands take whose plan is one of a run.
func (f *scenarioFlags) registerPlain(c *cobra.Command) {
	c.Flags().IntVar(&f.plain, "compare-plain", 0, "after the set-up, also run each workload of block I/O by `turns` "+
		"on a VM and beside it on its node (=40 for more turns than six, and a narrower interval)")
	c.Flags().Lookup("compare-plain").NoOptDefVal = "6"
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
		Generators: pl.Drivers.Generators(),
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
		switch p := &diagnostics[i].Pos; {
		case src.made: // its scenario is no file of the user's
			*p = scenario.Pos{File: given}
		case p.File != "" && fs.ValidPath(p.File):
			p.File = src.path(p.File)
		}
	}
	return &loaded{source: src, scenario: sc, diagnostics: diagnostics}, nil
}

// addAsserts puts the conditions of a command line to those of a scenario, and returns what is wrong with them. The
// workload may be left out where there is one besides prefills; also is another name of it, "" for none.
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
		if err != nil && len(judged) == 1 {
			if b, bad := scenario.ParseAssert(judged[0]+" "+text, judged); bad == nil {
				b.Name = strings.TrimPrefix(b.Name, judged[0]+" ")
				a, err = b, nil
			}
		}
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

// warned returns what was said, wherever the scenario lies: an experiment has a copy of its own.
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

// plainFlag returns what is wrong with a flag, in the words of who typed it and not in Go's. An address may hold a
// password, so that only what is wrong with it is said.
func plainFlag(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok && bad.GetFlag().Value.Type() == remoteType {
		return fmt.Errorf("--%s: %w", bad.GetFlag().Name, bad.Unwrap())
	}
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
