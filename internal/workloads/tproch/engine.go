// Package tproch is the load generator `tproch`: a workload of decision support derived from TPC-H, on PostgreSQL,
// whose clients are plimsoll itself, put on the machine; see package plimsoll/internal/workloads/tproch/driver, which
// does the work there.
//
// It stands among the engines. Its config is YAML, every key of which may be left out:
//
//	server: {vm_group: Database}   # see package internal/workloads/postgres
//	database: bench
//	scale: 1              # hundredths below 1, whole numbers beyond
//	streams: 2            # of the throughput run; 0: the power run alone
//	refresh: true         # the data are changed before and after the queries
//	reload: false         # a prefill drops what it made before, and loads anew
//
// Its prefill loads what is not there yet, and at scale 1 holds the answers against the published ones. It refuses a
// schema that does not carry its mark or is of another scale, and unknown keys with the nearest known one.
package tproch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/postgres"
	tproch "plimsoll/internal/workloads/tproch/driver"
	"plimsoll/result"
)

// Name is what scenarios call the engine.
const Name = "tproch"

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
	_ workload.Stating  = Engine{}
)

// Facts implements workload.Stating.
func (Engine) Facts(spec workload.Spec) []result.Fact {
	c, err := parse(spec)
	if err != nil {
		return nil
	}
	return append(workload.LoadFacts(spec.Name, c.job, "load", "seed", "duration_ns"), c.server.Facts()...)
}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Prefills: true}
}

// Check implements workload.Engine: the tool is this program, which Run brings along.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	return workload.CheckSelf(ctx, host, Name)
}

// config is a file that was read.
type config struct {
	workload.Pairs
	job    tproch.Job
	server postgres.Config
	nodes  map[string]*yaml.Node
}

var keys = append([]string{"refresh", "reload", "scale", "streams"}, postgres.Keys...)

// parse reads the file, then the settings of the workload on top of it.
func parse(spec workload.Spec) (*config, error) {
	c := &config{Pairs: workload.Pairs{Example: "scale: 1", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		nodes: map[string]*yaml.Node{},
		job: tproch.Job{Load: spec.Prefill, Scale: 1, Streams: 2, Refresh: true, Seed: spec.Seed,
			Duration: spec.Runtime}}
	c.Read(spec, c.take)
	server, bad := postgres.Read(c.nodes["server"], c.nodes["database"])
	c.server = server
	c.Bad.Objections = append(c.Bad.Objections, bad...)
	if len(c.Bad.Objections) == 0 {
		for _, what := range c.job.Check() {
			c.Object(nil, "%s", what)
		}
	}
	if len(c.Bad.Objections) > 0 {
		return c, c.Bad
	}
	return c, nil
}

// take takes one pair, or objects to it at its place.
func (c *config) take(key, node *yaml.Node) {
	switch {
	case !slices.Contains(keys, key.Value):
		c.Unknown(key, "", keys)
		return
	case slices.Contains(postgres.Keys, key.Value):
		c.nodes[key.Value] = node
		return
	case node.Kind != yaml.ScalarNode:
		c.Object(node, "%s: want one value", key.Value)
		return
	}
	var err error
	value := node.Value
	truth := func(to *bool) {
		if *to, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("%q is neither true nor false", value)
		}
	}
	switch key.Value {
	case "scale":
		var f float64
		if f, err = strconv.ParseFloat(value, 64); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			err = fmt.Errorf("%q is no number", value)
			break
		}
		if c.job.Scale = tproch.Scale(f); c.job.Scale.Check() != nil {
			c.Object(node, "%v", c.job.Scale.Check())
			c.job.Scale = 1
		}
	case "streams":
		c.job.Streams, err = strconv.Atoi(value)
		if err != nil || c.job.Streams < 0 || c.job.Streams > tproch.MaxStreams {
			err = fmt.Errorf("%q is no whole number from 0 to %d", value, tproch.MaxStreams)
		}
	case "refresh":
		truth(&c.job.Refresh)
	case "reload":
		truth(&c.job.Reload)
	}
	if err != nil {
		c.Object(node, "%s: %v", key.Value, err)
	}
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parse(spec)
	return err
}

// Files of a job in its folder.
const (
	jobFile     = "/tproch.json"
	outputFile  = "/output"
	stderrFile  = "/stderr"
	programFile = "/plimsoll"
)

// Command implements workload.Engine. A run ends when its streams have; a given time is the longest that it may take.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	c, err := parse(spec)
	if err != nil {
		return workload.Job{}, err
	}
	folder := workload.FolderName(spec.Name)
	job := workload.Job{
		Declared: workload.Declared{Operations: c.job.Operations(), Measures: tproch.Measures()},
		Files:    map[string][]byte{},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, tproch.WorkCommand, folder + jobFile}, Env: c.server.Env()},
		Config: folder + jobFile,
		Output: folder + outputFile,
		Streams: []result.Stream{{Name: "streams", Noun: "group of streams", Depth: max(1, c.job.Streams),
			Runtime: spec.Runtime}},
		Limit: spec.Runtime,
		Notes: []string{fmt.Sprintf("its figures at scale %v are derived from TPC-H and are no audited results",
			float64(c.job.Scale))},
	}
	if spec.Prefill {
		job.Declared = workload.Declared{Operations: tproch.LoadOperations(), Measures: tproch.LoadMeasures()}
		job.Streams[0] = result.Stream{Name: "loaders", Noun: "group of connections", Depth: 1}
		job.Limit, c.job.Duration = 0, 0
	}
	if err := c.server.Apply(spec, &job); err != nil {
		return workload.Job{}, err
	}
	job.Files[folder+jobFile], err = json.Marshal(c.job)
	return job, err
}

// Run implements workload.Engine. It puts this program and the server's password on the machine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.RunSelf(ctx, env, job, Name, postgres.PutPassword)
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	return workload.ReplaySelf(d, raw, sink, Name)
}
