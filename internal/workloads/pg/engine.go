// Package pg is the load generator `pg`: pgbench's scripts, or others in its language, driven by plimsoll itself, put
// on the machine, for less processor time than pgbench takes; see package plimsoll/internal/workloads/pg/pgload, which
// does it there.
//
// It stands among the engines. Its prefill makes the tables of the built-in scripts. It refuses scripts with a mistake,
// each with its line, and tables that it did not make.
package pg

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/pg/pgload"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
)

// Name is the engine's name in scenarios.
const Name = "pg"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Engine[own, *config] }

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Filling  = Engine{}
	_ workload.Stating  = Engine{}
)

// Fills implements workload.Filling.
func (e Engine) Fills(spec workload.Spec) bool {
	c, err := e.Read(spec)
	return err != nil || c.job.Initialise != postgres.Never // what is wrong is said where it is run
}

type own struct{}

var _ workload.Maker[*config] = own{}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, OpenLoop: true, Latency: "service time", Prefills: true}
}

// config is a file that is read.
type config struct {
	workload.Reading
	job    pgload.Job
	server postgres.Config
	script string
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	c := &config{Reading: workload.Reading{Spec: spec}, job: pgload.Defaults(), script: "tpcb-like"}
	c.job.Duration, c.job.Initialise = spec.Runtime, ""
	return c
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	j := &c.job
	type row = workload.Option
	return postgres.Options(
		row{Name: "script", To: &c.script, Choices: builtins, Help: "what clients do"},
		row{Name: "scripts", To: c.readScripts, Help: "in place of script, a list of {builtin: select-only, weight: 9} " +
			`and {name: transfer, weight: 1, text: "..."}`},
		row{Name: "scale", To: &j.Scale, Range: "1", Help: "of the tables, which a prefill makes"},
		postgres.InitialiseOption(&j.Initialise),
		postgres.SchemaOption(&j.Schema),
		row{Name: "clients", To: &j.Clients, Range: "1"},
		row{Name: "threads", To: &j.Threads, Range: "1", Help: "each serves its share of the clients"},
		row{Name: "mode", To: &j.Mode, Choices: []string{pgload.Simple, pgload.Extended, pgload.Prepared}},
		row{Name: "rate", To: &j.Rate, Unit: "transactions per second", Range: "0.001 to 100000000",
			Help: "offered, an open loop: times are response times then"},
		row{Name: "arrivals", To: &j.Arrivals, Choices: []string{pgload.Poisson, pgload.Constant}},
		row{Name: "late", To: &j.Late, Default: "10ms", Help: "arrivals that are begun later are counted"},
		row{Name: "drop", To: &j.Drop, Help: "arrivals that are later still are not begun, and counted"},
		row{Name: "think_time", To: &j.Think, Help: "of a closed loop: mean time between transactions"},
		row{Name: "think_times", To: &j.ThinkTimes, Choices: []string{pgload.Poisson, pgload.Constant}},
		row{Name: "connect", To: &j.Connect, Help: "a connection for every transaction; connecting is an operation"},
		row{Name: "max_tries", To: &j.Tries, Range: "1",
			Help: "after serialization failures and deadlocks, with the same random numbers"},
		row{Name: "pipelining", To: &j.Pipelining, Help: "scripts may have \\startpipeline and \\endpipeline"},
		row{Name: "variables", To: c.readVariables, Help: "{NAME: VALUE} of the scripts"},
	)
}

var builtins = slices.Sorted(maps.Keys(pgload.Builtins))

// readScripts reads a list of {builtin | text, name, weight}.
func (c *config) readScripts(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		c.Object(n, "scripts: want a list such as {builtin: select-only, weight: 9}")
		return
	}
	c.job.Scripts = nil
	for i, item := range n.Content {
		s, known := pgload.Script{Weight: 1}, ""
		c.Table(item, "scripts: ", []workload.Option{
			{Name: "builtin", To: &known, Choices: builtins},
			{Name: "text", To: &s.Text},
			{Name: "name", To: &s.Name},
			{Name: "weight", To: &s.Weight, Range: "1"},
		})
		switch {
		case (known == "") == (strings.TrimSpace(s.Text) == ""):
			c.Object(item, "scripts: give a builtin or a text")
		case s.Name == "" && known == "":
			s.Name = "script-" + strconv.Itoa(i+1)
		case s.Name == "":
			s.Name = known
		case known != "" && s.Name != known:
			s.Text = pgload.Builtins[known]
		}
		c.job.Scripts = append(c.job.Scripts, s)
	}
}

func (c *config) readVariables(n *yaml.Node) {
	c.job.Variables = map[string]string{}
	c.Mapping(n, "variables: ", func(key, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode {
			c.Object(value, "variables: %s: want one value", key.Value)
			return
		}
		c.job.Variables[key.Value] = value.Value
	})
}

// Settle implements workload.Config.
func (c *config) Settle() {
	given := func(name string) bool { return c.Given[name] != nil }
	if !given("scripts") {
		c.job.Scripts = []pgload.Script{{Name: c.script, Weight: 1}}
	} else if given("script") {
		c.Object(nil, "script and scripts: give one of them; one of the scripts can be {builtin: select-only}")
	}
	if given("arrivals") && !given("rate") {
		c.Object(nil, "arrivals: without a rate transactions do not arrive, but follow each other; give a rate")
	}
	if given("think_times") && !given("think_time") {
		c.Object(nil, "think_times: there is no think_time that they would spread; give it")
	}
	c.server = postgres.ReadServer(&c.Reading)
	if c.job.Initialise == "" {
		c.job.Initialise = c.server.Initialise(slices.ContainsFunc(c.job.Scripts,
			func(s pgload.Script) bool { return s.Text == "" }))
	}
	c.job.Seed = c.server.Seed(c.Spec.Seed, c.job.Initialise)
	c.server.Admit(c.job.Clients, 0)
	c.Judge(c.job.Check)
}

// ServerOf implements postgres.Served.
func (c *config) ServerOf() (postgres.Config, bool, error) { return c.server, true, nil }

// Facts implements workload.Config.
func (c *config) Facts() (out []result.Fact) {
	for _, s := range c.job.Scripts {
		out = append(out, workload.ScriptFact(c.Spec.Name, s.Name, s.Text, s.Weight))
	}
	out = append(out, workload.LoadFacts(c.Spec.Name, c.job, "scripts", "seed", "duration_ns")...)
	return append(out, c.server.Facts()...)
}

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	if !c.Spec.Prefill && c.Spec.Runtime <= 0 {
		return nil, errors.New("pg ends with its time: give runtime_secs")
	}
	c.job.Load = c.Spec.Prefill
	job.Operations, job.Measures = c.job.Declared()
	job.Streams = []result.Stream{{Name: "clients", Noun: "group of clients", Depth: c.job.Clients, Rate: c.job.Rate,
		OpenLoop: c.job.Rate > 0, TimeBased: true, Runtime: c.Spec.Runtime}}
	if c.job.Rate > 0 {
		if c.job.Arrivals == pgload.Constant {
			job.Streams[0].Arrivals = result.ArrivalsEven
		}
		job.Latency = "response time"
	}
	if c.Spec.Prefill {
		job.Streams, job.Limit, job.Latency = []result.Stream{{Name: "loader", Depth: 1}}, 0, ""
	}
	err := c.server.Apply(c.Spec, job)
	return c.job, err
}
