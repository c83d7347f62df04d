// Package pg is the load generator `pg`: pgbench's scripts, or others in its language, driven by plimsoll itself, put
// on the machine, for less processor time than pgbench takes; see package plimsoll/internal/workloads/pg/pgload, which
// does it there.
//
// It stands among the engines. Its config is YAML, every key of which may be left out:
//
//	server: {vm_group: Database}   # see package internal/workloads/postgres
//	database: bench
//	script: tpcb-like              # or simple-update, select-only
//	scripts:                       # in place of script
//	  - {builtin: select-only, weight: 9}
//	  - {name: transfer, weight: 1, text: "..."}
//	scale: 100
//	initialise: missing            # or always; never, where the tables are yours: the default of texts on your server
//	schema: plimsoll_pgbench       # the default; where the tables are, or are made
//	clients: 8
//	threads: 1
//	mode: prepared                 # or simple, extended
//	rate: 500                      # an open loop: transactions per second offered; times are response times then
//	arrivals: poisson              # or constant
//	late: 10ms                     # the default; arrivals that are begun later than that are counted
//	drop: 1s                       # those that are later still are not begun
//	think_time: 20ms               # of a closed loop
//	think_times: poisson           # or constant
//	connect: false                 # a connection for every transaction
//	max_tries: 1                   # of a transaction that meets a serialization failure or a deadlock
//	pipelining: false              # scripts may have \startpipeline
//	variables: {name: 1}
//
// Its prefill makes the tables of the built-in scripts. It refuses unknown keys with the nearest known one, scripts
// with a mistake, each with its line, and tables that it did not make.
package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/pg/pgload"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// Name is what scenarios call the engine.
const Name = "pg"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Peering[reader] }

type reader struct{}

// ServerOf implements postgres.Reader.
func (reader) ServerOf(spec workload.Spec) (postgres.Config, bool, error) {
	c, err := parse(spec)
	if err != nil {
		return postgres.Config{}, false, err
	}
	return c.server, true, nil
}

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Filling  = Engine{}
	_ workload.Stating  = Engine{}
)

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, OpenLoop: true, Latency: "service time", Prefills: true}
}

// Check implements workload.Engine: the tool is this program, which Run brings along.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	return workload.CheckSelf(ctx, host, Name)
}

// config is a file that is read.
type config struct {
	workload.Pairs
	job    pgload.Job
	server postgres.Config
	nodes  map[string]*yaml.Node // server and database
	seen   map[string]bool
}

// parse reads the file, then the settings of the workload on top of it.
func parse(spec workload.Spec) (*config, error) {
	c := &config{
		job:   pgload.Defaults(),
		Pairs: workload.Pairs{Example: "clients: 8", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		nodes: map[string]*yaml.Node{},
		seen:  map[string]bool{},
	}
	c.job.Seed, c.job.Duration, c.job.Initialise = spec.Seed, spec.Runtime, ""
	c.job.Scripts = []pgload.Script{{Name: "tpcb-like", Weight: 1}}
	c.Read(spec, c.take)
	if c.seen["script"] && c.seen["scripts"] {
		c.Object(nil, "script and scripts: give one of them; one of the scripts can be {builtin: select-only}")
	}
	if c.seen["arrivals"] && !c.seen["rate"] {
		c.Object(nil, "arrivals: without a rate transactions do not arrive, but follow each other; give a rate")
	}
	if c.seen["think_times"] && !c.seen["think_time"] {
		c.Object(nil, "think_times: there is no think_time that they would spread; give it")
	}
	var bad []scenario.Objection
	c.server, bad = postgres.Read(c.nodes["server"], c.nodes["database"])
	c.Bad.Objections = append(c.Bad.Objections, bad...)
	if c.job.Initialise == "" {
		c.job.Initialise = c.server.Initialise(slices.ContainsFunc(c.job.Scripts,
			func(s pgload.Script) bool { return s.Text == "" }))
	}
	c.server.Admit(c.job.Clients, 0)
	if len(c.Bad.Objections) == 0 {
		if err := c.job.Check(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				c.Object(nil, "%s", line)
			}
		}
	}
	if len(c.Bad.Objections) > 0 {
		return c, c.Bad
	}
	return c, nil
}

// take takes one key.
func (c *config) take(key, value *yaml.Node) {
	j := &c.job
	readers := map[string]func() error{
		"server":   func() error { c.nodes["server"] = value; return nil },
		"database": func() error { c.nodes["database"] = value; return nil },
		"script": func() error {
			j.Scripts = []pgload.Script{{Name: value.Value, Weight: 1}}
			return builtin(value.Value)
		},
		"schema":      func() (err error) { j.Schema, err = postgres.ReadSchema(value.Value); return err },
		"scripts":     func() error { c.scripts(value); return nil },
		"variables":   func() error { c.variables(value); return nil },
		"scale":       whole(value, &j.Scale),
		"clients":     whole(value, &j.Clients),
		"threads":     whole(value, &j.Threads),
		"max_tries":   whole(value, &j.Tries),
		"mode":        among(value, &j.Mode, pgload.Simple, pgload.Extended, pgload.Prepared),
		"initialise":  among(value, &j.Initialise, pgload.Never, pgload.Missing, pgload.Always),
		"arrivals":    among(value, &j.Arrivals, pgload.Poisson, pgload.Constant),
		"think_times": among(value, &j.ThinkTimes, pgload.Poisson, pgload.Constant),
		"rate":        rate(value, &j.Rate),
		"late":        duration(value, &j.Late),
		"drop":        duration(value, &j.Drop),
		"think_time":  duration(value, &j.Think),
		"connect":     yes(value, &j.Connect),
		"pipelining":  yes(value, &j.Pipelining),
	}
	read, ok := readers[key.Value]
	if !ok {
		c.Unknown(key, "", slices.Sorted(maps.Keys(readers)))
		return
	}
	c.seen[key.Value] = true
	scalar := key.Value != "server" && key.Value != "scripts" && key.Value != "variables"
	if scalar && value.Kind != yaml.ScalarNode {
		c.Object(value, "%s: want one value", key.Value)
	} else if err := read(); err != nil {
		c.Object(value, "%s: %v", key.Value, err)
	}
}

func builtin(name string) error {
	if _, ok := pgload.Builtins[name]; !ok {
		return fmt.Errorf("%q is none of %s", name, strings.Join(slices.Sorted(maps.Keys(pgload.Builtins)), ", "))
	}
	return nil
}

func whole(n *yaml.Node, to *int) func() error {
	return func() error {
		v, err := strconv.Atoi(n.Value)
		if err != nil || v < 1 {
			return fmt.Errorf("%q is no whole number above 0", n.Value)
		}
		*to = v
		return nil
	}
}

func yes(n *yaml.Node, to *bool) func() error {
	return func() (err error) {
		if *to, err = strconv.ParseBool(n.Value); err != nil {
			return fmt.Errorf("%q is neither true nor false", n.Value)
		}
		return nil
	}
}

func among(n *yaml.Node, to *string, known ...string) func() error {
	return func() error {
		if *to = n.Value; !slices.Contains(known, n.Value) {
			return fmt.Errorf("%q is none of %s", n.Value, strings.Join(known, ", "))
		}
		return nil
	}
}

func rate(n *yaml.Node, to *float64) func() error {
	return func() error {
		v, err := strconv.ParseFloat(strings.TrimSuffix(n.Value, "/s"), 64)
		if err != nil || !(v > 0 && v <= 100e6) {
			return fmt.Errorf("%q is no number of transactions per second above 0", n.Value)
		}
		*to = v
		return nil
	}
}

func duration(n *yaml.Node, to *time.Duration) func() error {
	return func() error {
		d, err := unit.ParseDuration(n.Value)
		if err != nil {
			return err
		}
		*to = time.Duration(d)
		return nil
	}
}

// scripts reads a list of {builtin | text, name, weight}.
func (c *config) scripts(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		c.Object(n, "scripts: want a list such as {builtin: select-only, weight: 9}")
		return
	}
	c.job.Scripts = nil
	for i, item := range n.Content {
		s, known := pgload.Script{Weight: 1}, ""
		c.Mapping(item, "scripts: ", func(key, value *yaml.Node) {
			var err error
			switch key.Value {
			case "builtin":
				known, err = value.Value, builtin(value.Value)
			case "text":
				s.Text = value.Value
			case "name":
				s.Name = value.Value
			case "weight":
				err = whole(value, &s.Weight)()
			default:
				c.Unknown(key, "scripts: ", []string{"builtin", "name", "text", "weight"})
			}
			if err != nil {
				c.Object(value, "scripts: %s: %v", key.Value, err)
			}
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

func (c *config) variables(n *yaml.Node) {
	c.job.Variables = map[string]string{}
	c.Mapping(n, "variables: ", func(key, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode {
			c.Object(value, "variables: %s: want one value", key.Value)
			return
		}
		c.job.Variables[key.Value] = value.Value
	})
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parse(spec)
	return err
}

// Files of a job in its folder.
const (
	jobFile     = "/pg.json"
	outputFile  = "/output"
	stderrFile  = "/stderr"
	programFile = "/plimsoll"
)

// Command implements workload.Engine.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	c, err := parse(spec)
	switch {
	case err != nil:
		return workload.Job{}, err
	case !spec.Prefill && spec.Runtime <= 0:
		return workload.Job{}, fmt.Errorf("prepare: workload %q: pg ends with its time: give runtime_secs", spec.Name)
	}
	folder := workload.FolderName(spec.Name)
	c.job.Load = spec.Prefill
	operations, measures := c.job.Declared()
	job := workload.Job{
		Declared: workload.Declared{Operations: operations, Measures: measures},
		Files:    map[string][]byte{},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, pgload.WorkCommand, folder + jobFile}, Env: c.server.Env()},
		Config: folder + jobFile,
		Output: folder + outputFile,
		Streams: []result.Stream{{Name: "clients", Noun: "group of clients", Depth: c.job.Clients, Rate: c.job.Rate,
			OpenLoop: c.job.Rate > 0, TimeBased: true, Runtime: spec.Runtime}},
		Limit: spec.Runtime,
	}
	if c.job.Rate > 0 {
		job.Latency = "response time"
	}
	if spec.Prefill {
		job.Streams, job.Limit, job.Latency = []result.Stream{{Name: "loader", Depth: 1}}, 0, ""
	}
	if err := c.server.Apply(spec, &job); err != nil {
		return workload.Job{}, err
	}
	job.Files[folder+jobFile], err = json.Marshal(c.job)
	return job, err
}

// Facts implements workload.Stating.
func (Engine) Facts(spec workload.Spec) []result.Fact {
	c, err := parse(spec)
	if err != nil {
		return nil
	}
	var out []result.Fact
	for _, s := range c.job.Scripts {
		out = append(out, workload.ScriptFact(spec.Name, s.Name, s.Text, s.Weight))
	}
	out = append(out, workload.LoadFacts(spec.Name, c.job, "scripts", "seed", "duration_ns")...)
	return append(out, c.server.Facts()...)
}

// Fills implements workload.Filling.
func (Engine) Fills(spec workload.Spec) bool {
	c, err := parse(spec)
	return err != nil || c.job.Initialise != postgres.Never // what is wrong is said where it is run
}

// Run implements workload.Engine. It puts this program and the server's password on the machine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.RunSelf(ctx, env, job, Name, postgres.PutPassword)
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	return workload.ReplaySelf(d, raw, sink, Name)
}
