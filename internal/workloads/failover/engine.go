// Package failover is the load generator `failover`: clients that commit on the first of two PostgreSQL servers of the
// run's own, of which the second follows the first. A step of the scenario takes the first one away; the load has the
// second take over, goes on there, and says how long nothing was committed and which acknowledged commits are lost.
// See package plimsoll/internal/workloads/failover/driver, which does that on the machine.
//
// It stands among the engines. Its config is YAML; all but the server may be left out:
//
//	server: {vm_group: Databases, settings: {shared_buffers: 1GB}}   # a group of two VMs, and what both are set to
//	replication: asynchronous   # or synchronous: a commit waits for the standby
//	clients: 8
//	row_bytes: 100
//	give_up: 2s                 # of silence, until the standby takes over
//	distance: 5ms               # of the standby: its stream passes the client machine, and takes so long one way
//
// It refuses a server of the user's, which no run takes away, and a group that has not two VMs.
package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	failover "plimsoll/internal/workloads/failover/driver"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is what scenarios call the engine.
const Name = "failover"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Peering[reader] }

type reader struct{}

// ServerOf implements postgres.Reader.
func (reader) ServerOf(spec workload.Spec) (postgres.Config, bool, error) {
	c, err := parse(spec)
	if err != nil {
		return postgres.Config{}, false, err
	}
	if n := len(spec.Peers); n > 0 && n != 2 {
		return c.server, false, fmt.Errorf("group %q has %s: give it two VMs, a server and its standby", c.server.Group,
			unit.Plural(n, "VM"))
	}
	if spec.Peer > 0 && spec.Peer < len(spec.Peers) {
		c.server.Follows = spec.Peers[0].Address
	}
	return c.server, true, nil
}

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
)

// Server implements workload.Peering. A standby that is far away follows by way of the client machine.
func (e Engine) Server(spec workload.Spec) (workload.Server, error) {
	made, err := e.Peering.Server(spec)
	if err != nil {
		return made, err
	}
	c, err := parse(spec)
	if command := &made.Service.Command; c.job.Distance > 0 && len(command.Dials) > 0 {
		command.Dials = append(command.Dials, failover.LinkPort)
	}
	return made, err
}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time"}
}

// Check implements workload.Engine: the tool is this program, which Run brings along.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	return workload.CheckSelf(ctx, host, Name)
}

// config is a file that was read.
type config struct {
	workload.Pairs
	job    failover.Job
	server postgres.Config
	nodes  map[string]*yaml.Node
}

var keys = append([]string{"clients", "distance", "give_up", "replication", "row_bytes"}, postgres.Keys...)

// parse reads the file, then the settings of the workload on top of it.
func parse(spec workload.Spec) (*config, error) {
	c := &config{Pairs: workload.Pairs{Example: "clients: 8", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		nodes: map[string]*yaml.Node{},
		job: failover.Job{Clients: 8, RowBytes: 100, Replication: failover.Asynchronous, GiveUp: 2 * time.Second,
			Duration: spec.Runtime}}
	c.Read(spec, c.take)
	server, bad := postgres.Read(c.nodes["server"], c.nodes["database"])
	c.Bad.Objections = append(c.Bad.Objections, bad...)
	if c.server = server; len(c.Bad.Objections) == 0 && server.Group == "" {
		c.Object(c.nodes["server"], "server: want {vm_group: NAME}, a group of two VMs of the scenario: a server that "+
			"the run takes away, and its standby")
	}
	const names = "synchronous_standby_names"
	if server.Settings[names] != "" {
		c.Object(c.nodes["server"], "server: settings: %s follows from replication: leave it out", names)
	}
	if len(c.Bad.Objections) > 0 {
		return c, c.Bad
	}
	if c.server.Settings = maps.Clone(server.Settings); c.job.Replication == failover.Synchronous {
		if c.server.Settings == nil {
			c.server.Settings = map[string]string{}
		}
		c.server.Settings[names] = "*"
	}
	c.server.Admit(c.job.Clients, 2)
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
	whole := func(to *int, least, most int) {
		v, err := strconv.Atoi(node.Value)
		if err != nil || v < least || v > most {
			c.Object(node, "%s: %q is no whole number from %d to %d", key.Value, node.Value, least, most)
			return
		}
		*to = v
	}
	switch key.Value {
	case "clients":
		whole(&c.job.Clients, 1, 1000)
	case "row_bytes":
		whole(&c.job.RowBytes, 0, 1<<20)
	case "replication":
		c.job.Replication = node.Value
		if node.Value != failover.Asynchronous && node.Value != failover.Synchronous {
			c.Object(node, "replication: %q is neither %s nor %s", node.Value, failover.Asynchronous,
				failover.Synchronous)
		}
	case "give_up":
		d, err := unit.ParseDuration(node.Value)
		c.job.GiveUp = time.Duration(d)
		if err != nil || c.job.GiveUp < 100*time.Millisecond || c.job.GiveUp > time.Hour {
			c.Object(node, "give_up: %q is no time from 100ms to 1h", node.Value)
		}
	case "distance":
		d, err := unit.ParseDuration(node.Value)
		if c.job.Distance = time.Duration(d); err != nil || c.job.Distance < 0 || c.job.Distance > time.Second {
			c.Object(node, "distance: %q is no time from 0 to 1s", node.Value)
		}
	}
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parse(spec)
	return err
}

// Facts implements workload.Stating.
func (Engine) Facts(spec workload.Spec) []result.Fact {
	c, err := parse(spec)
	if err != nil {
		return nil
	}
	return append(workload.LoadFacts(spec.Name, c.job, "servers", "self", "duration_ns"), c.server.Facts()...)
}

// Files of a job in its folder.
const (
	jobFile     = "/failover.json"
	outputFile  = "/output"
	stderrFile  = "/stderr"
	programFile = "/plimsoll"
)

// Command implements workload.Engine.
func (e Engine) Command(spec workload.Spec) (workload.Job, error) {
	c, err := parse(spec)
	switch {
	case err != nil:
		return workload.Job{}, err
	case spec.Prefill:
		err = errors.New("it has no prefill: leave the step out, for it makes its table itself")
	case spec.Runtime <= 0:
		err = errors.New("failover ends with its time: give runtime_secs")
	case spec.Peer > 0 || spec.Turn > 0:
		err = errors.New("one client machine has the ledger: give its group one VM")
	}
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	for _, p := range spec.Peers {
		c.job.Servers = append(c.job.Servers, p.Address)
	}
	c.job.Self = spec.Address
	folder := workload.FolderName(spec.Name)
	job := workload.Job{
		Declared: workload.Declared{Operations: []result.Operation{{Name: "commit", Noun: "commits"}},
			Measures: failover.Measures()},
		Files: map[string][]byte{},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, failover.WorkCommand, folder + jobFile}, Env: c.server.Env()},
		Config: folder + jobFile,
		Output: folder + outputFile,
		Streams: []result.Stream{{Name: "clients", Noun: "group of clients", Depth: c.job.Clients, TimeBased: true,
			Runtime: spec.Runtime}},
		Limit: spec.Runtime,
		Notes: []string{fmt.Sprintf("%s replication; a first server that is silent for %v is given up",
			c.job.Replication, c.job.GiveUp)},
	}
	if c.job.Distance > 0 {
		job.Command.Listens = []int{failover.LinkPort}
		job.Notes = append(job.Notes, fmt.Sprintf("the standby is %v away: its stream passes the client machine, and "+
			"what is on its way when the first server goes is lost", c.job.Distance))
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
