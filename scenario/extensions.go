package scenario

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/scenario/jinja"

	"go.yaml.in/yaml/v3"
)

// Extensions of the language that are ours: asserts, experiments, options of jobs. Their rows are marked in the option
// tables; published engines do not know them.

// Assert is a condition on a run's outcome. Exactly one of Query, Result, Workload and Finding is set.
type Assert struct {
	Name        string
	Description string
	Query       string // PromQL at the end of the run; every value of the answer is judged
	Result      string // name of a result; Statistic of its series
	Statistic   string // mean, median, min, max, last
	Workload    string // Measure of an Operation
	Operation   string // as the generator declares it, or all
	// operations, bandwidth, mean, p50, p90, p99, p99.9, max, errors, or one that the generator declares
	Measure  string
	Finding  string // name of a check; no finding of it may be of Severity or worse
	Severity string
	AtLeast  *float64
	AtMost   *float64
	Pos      Pos
}

// Experiment says which variables take which values, how often, and in which order.
type Experiment struct {
	Factors []Factor
	Repeats int
	Order   string // OrderRandomised or OrderInterleaved
	Seed    int64
	Pos     Pos
}

// Factor is a variable of the scenario with the values it takes; the first is what the others are held against.
type Factor struct {
	Name   string
	Levels []any
	Pos    Pos
}

// Orders of the runs of an experiment. Both go through every combination once before any is repeated.
const (
	OrderRandomised  = "randomised"  // in an order of its own each time, drawn from the seed
	OrderInterleaved = "interleaved" // in the order of the levels each time
)

// MaxRuns bounds an experiment.
const MaxRuns = 2000

var assertFields = []ArgSpec{
	{Name: "description", Type: Text, Doc: "why it must hold"},
	{Name: "query", Type: Text, Doc: "PromQL over the run's metrics, at its end; every value of the answer is " +
		"judged, and no value fails"},
	{Name: "result", Type: Text, Doc: "name of a result; the statistic of its series in the run phase is judged"},
	{Name: "statistic", Type: Text, Default: "mean", Enum: []string{"mean", "median", "min", "max", "last"},
		Doc: "of a result"},
	{Name: "workload", Type: WorkloadRef, Doc: "the workload of a measure"},
	{Name: "operation", Type: Text, Default: "all",
		Doc: "of a workload, as its generator declares it: read, write, trim of fio; the percentile of all is read " +
			"from merged histograms"},
	{Name: "measure", Type: Text,
		Doc: "of a workload: operations or bandwidth per second; mean, p50, p90, p99, p99.9 or max of the times in " +
			"seconds; errors; or one that its generator declares, like NOPM"},
	{Name: "finding", Type: Text, Doc: "name of a check, like offered-rate: it must find nothing of the severity " +
		"or worse"},
	{Name: "severity", Type: Text, Default: "warning", Enum: []string{"invalid", "warning", "info"},
		Former: []string{"blocker", "caution", "notice"}, Doc: "of a finding that fails it"},
	{Name: "at_least", Type: NumberText, Doc: "smallest value allowed"},
	{Name: "at_most", Type: NumberText, Doc: "largest value allowed"},
}

var experimentFields = []ArgSpec{
	{Name: "factors", Type: Any,
		Doc: "mapping of variables to the lists of values they take; the first value is what the others are compared with; " +
			"without it every run is alike"},
	{Name: "repeats", Type: Int, Default: int64(3), Min: bound(1), Max: bound(1000), Doc: "runs of every combination"},
	{Name: "order", Type: Text, Default: OrderRandomised, Enum: []string{OrderRandomised, OrderInterleaved},
		Doc: "every combination runs once before any runs again: in a random order each time, or in that of the levels"},
	{Name: "seed", Type: Int, Default: int64(1), Min: bound(0), Max: bound(1 << 53),
		Doc: "of the random order; the same seed gives the same order"},
}

// asserts reads the conditions on the outcome.
func (d *document) asserts() {
	for _, e := range d.named("assert") {
		at := d.nodePos(e.key)
		of := fmt.Sprintf("assert %q", e.name)
		f, ok := d.decode(e.value, at, of, assertFields, "unknown-field")
		if !ok {
			continue
		}
		a := Assert{
			Name: e.name, Description: f.String("description"), Query: strings.TrimSpace(f.String("query")),
			Result: f.String("result"), Statistic: f.String("statistic"),
			Workload: f.String("workload"), Operation: f.String("operation"), Measure: f.String("measure"),
			Finding: f.String("finding"), Severity: f.String("severity"), Pos: at,
		}
		if v, ok := numberOf(f.Args["at_least"]); ok {
			a.AtLeast = &v
		}
		if v, ok := numberOf(f.Args["at_most"]); ok {
			a.AtMost = &v
		}
		d.checkAssert(a, f, of)
		d.sc.Asserts = append(d.sc.Asserts, a)
	}
}

func (d *document) checkAssert(a Assert, f fields, of string) {
	subjects := 0
	for _, s := range []string{a.Query, a.Result, a.Workload, a.Finding} {
		if s != "" {
			subjects++
		}
	}
	if subjects != 1 {
		d.say("assert", a.Pos, fmt.Sprintf("%s names %d of query, result, workload and finding; it must name one", of,
			subjects), "")
		return
	}
	if a.Query != "" && d.opts.CheckQuery != nil {
		if err := d.opts.CheckQuery(a.Query); err != nil {
			d.say("assert", f.where("query"), fmt.Sprintf("%s: query: %v", of, err), "")
		}
	}
	if a.Result != "" && !slices.ContainsFunc(d.sc.Results, func(r Result) bool { return r.Name == a.Result }) {
		var known []string
		for _, r := range d.sc.Results {
			known = append(known, r.Name)
		}
		d.say("assert", f.where("result"), fmt.Sprintf("%s: unknown result %q", of, a.Result),
			didYouMean(a.Result, known))
	}
	if a.Workload != "" {
		d.knownWorkload(f.where("workload"), of, a.Workload)
		if a.Measure == "" {
			d.say("assert", a.Pos, of+" lacks measure: of the workload", "add measure: p99, or another")
		}
	}
	limits := a.AtLeast != nil || a.AtMost != nil
	switch {
	case a.Finding != "" && limits:
		d.say("assert", a.Pos, of+": a finding has a severity and no limits", "remove at_least and at_most")
	case a.Finding == "" && !limits:
		d.say("assert", a.Pos, of+" has no limit", "add at_least or at_most")
	case a.AtLeast != nil && a.AtMost != nil && *a.AtLeast > *a.AtMost:
		d.say("assert", a.Pos, fmt.Sprintf("%s: at_least %s is above at_most %s", of, plainNumber(*a.AtLeast),
			plainNumber(*a.AtMost)), "exchange them")
	}
}

// experiment reads the design of an experiment.
func (d *document) experiment(root *yaml.Node) {
	var body *yaml.Node
	for _, e := range d.mappingOf(root) {
		if e.name == "experiment" {
			body = e.value
		}
	}
	if isNull(body) {
		return
	}
	at := d.nodePos(body)
	f, _ := d.decode(body, at, "experiment", experimentFields, "unknown-field")
	x := &Experiment{Repeats: f.Int("repeats"), Order: f.String("order"), Pos: at}
	x.Seed, _ = f.Args["seed"].(int64)
	given := false
	for _, e := range d.mappingOf(body) {
		if e.name == "factors" {
			given = true
			d.factors(x, e.value)
		}
	}
	if !given && x.Repeats == 1 {
		d.say("experiment", at, "experiment: it makes one run", "give it factors, or repeats of 2 or more")
	}
	if runs := x.Runs(); runs > MaxRuns {
		d.say("experiment", at, fmt.Sprintf("experiment: %d runs are more than %d", runs, MaxRuns),
			"drop levels or repeats")
	}
	d.sc.Experiment = x
}

func (d *document) factors(x *Experiment, body *yaml.Node) {
	entries := d.entries(body, "experiment: factors")
	if len(entries) == 0 {
		d.say("experiment", d.nodePos(body), "experiment: factors must be a mapping of variables to lists of values",
			"write factors: {block_size: [4k, 64k]}")
	}
	for _, e := range entries {
		factor := Factor{Name: e.name, Pos: d.nodePos(e.key)}
		i := slices.IndexFunc(d.sc.Vars, func(v Var) bool { return v.Name == e.name })
		if i < 0 {
			var known []string
			for _, v := range d.sc.Vars {
				known = append(known, v.Name)
			}
			d.say("experiment", factor.Pos, fmt.Sprintf("experiment: factor %q is not a variable of the scenario",
				e.name), didYouMean(e.name, known))
		}
		if e.value.Kind != yaml.SequenceNode || len(e.value.Content) < 2 {
			d.say("experiment", d.nodePos(e.value), fmt.Sprintf("experiment: factor %q needs a list of two values "+
				"or more", e.name), "write [4k, 64k]")
			continue
		}
		seen := map[string]bool{}
		for _, n := range e.value.Content {
			level := d.native(n)
			if text := jinja.Repr(level); seen[text] {
				d.say("experiment", d.nodePos(n), fmt.Sprintf("experiment: factor %q has the value %s twice", e.name,
					jinja.Describe(level)), "use repeats")
			} else {
				seen[text] = true
			}
			if i >= 0 {
				v := d.sc.Vars[i]
				v.Value, v.Pos = level, d.nodePos(n)
				d.boundVar(&v)
			}
			factor.Levels = append(factor.Levels, level)
		}
		x.Factors = append(x.Factors, factor)
	}
}

// Runs is how many runs an experiment has.
func (x *Experiment) Runs() int {
	n := max(x.Repeats, 1)
	for _, f := range x.Factors {
		if n *= max(len(f.Levels), 1); n > 1<<30 {
			return 1 << 30
		}
	}
	return n
}
