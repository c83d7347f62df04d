// Package failover is the load generator `failover`: clients that commit on the first of two PostgreSQL servers of the
// run's own, of which the second follows the first. A step of the scenario takes the first one away; the load has the
// second take over, goes on there, and says how long nothing was committed and which acknowledged commits are lost.
// See package plimsoll/internal/workloads/failover/driver, which does that on the machine.
//
// It stands among the engines. It refuses a server of the user's, which no run takes away, and a group that has not two
// VMs.
package failover

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"plimsoll/internal/contract/workload"
	failover "plimsoll/internal/workloads/failover/driver"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is the engine's name in scenarios.
const Name = "failover"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Engine[own, *config] }

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
)

// Server implements workload.Peering. A standby that is far away follows by way of the client machine.
func (e Engine) Server(spec workload.Spec) (workload.Server, error) {
	made, err := e.Engine.Server(spec)
	if err != nil {
		return made, err
	}
	c, err := e.Read(spec)
	if command := &made.Service.Command; c.job.Distance > 0 && len(command.Dials) > 0 {
		command.Dials = append(command.Dials, failover.LinkPort)
	}
	return made, err
}

type own struct{}

var _ workload.Maker[*config] = own{}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Prepares: true}
}

// config is a file that is read.
type config struct {
	workload.Reading
	job    failover.Job
	server postgres.Config
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	return &config{Reading: workload.Reading{Spec: spec}, job: failover.Job{Clients: 8, RowBytes: 100,
		Replication: failover.Asynchronous, GiveUp: 2 * time.Second, Duration: spec.Runtime}}
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	return postgres.Options(
		workload.Option{Name: "replication", To: &c.job.Replication,
			Choices: []string{failover.Asynchronous, failover.Synchronous},
			Help:    "a synchronous commit waits until the standby has it on disk"},
		workload.Option{Name: "clients", To: &c.job.Clients, Range: "1 to 1000"},
		workload.Option{Name: "row_bytes", To: &c.job.RowBytes, Range: "0 to 1048576", Help: "of what a commit writes"},
		workload.Option{Name: "give_up", To: &c.job.GiveUp, Range: "100ms to 1h",
			Help: "silence, until the standby takes over; of a server whose machine takes connections, five times that"},
		workload.Option{Name: "distance", To: &c.job.Distance, Range: "0 to 1s",
			Help: "of the standby: its stream passes the client machine and takes so long one way"},
	)
}

// Settle implements workload.Config.
func (c *config) Settle() {
	c.server = postgres.ReadServer(&c.Reading)
	at := c.Given["server"]
	if c.Err() == nil && c.server.Group == "" {
		c.Object(at, "server: want {vm_group: NAME}, a group of two VMs of the scenario: a server that "+
			"the run takes away, and its standby")
	}
	const names = "synchronous_standby_names"
	if c.server.Settings[names] != "" {
		c.Object(at, "server: settings: %s follows from replication: leave it out", names)
	}
	if c.job.Replication == failover.Synchronous {
		c.server.Settings = maps.Clone(c.server.Settings)
		if c.server.Settings == nil {
			c.server.Settings = map[string]string{}
		}
		c.server.Settings[names] = "*"
	}
	c.server.Admit(c.job.Clients, 2)
}

// ServerOf implements postgres.Served.
func (c *config) ServerOf() (postgres.Config, bool, error) {
	peers := c.Spec.Peers
	if n := len(peers); n > 0 && n != 2 {
		return c.server, false, fmt.Errorf("group %q has %s: give it two VMs, a server and its standby", c.server.Group,
			unit.Plural(n, "VM"))
	}
	if c.Spec.Peer > 0 && c.Spec.Peer < len(peers) {
		c.server.Follows = peers[0].Address
	}
	return c.server, true, nil
}

// Facts implements workload.Config.
func (c *config) Facts() []result.Fact {
	return append(workload.LoadFacts(c.Spec.Name, c.job, "servers", "self", "duration_ns"), c.server.Facts()...)
}

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	switch {
	case c.Spec.Prefill:
		return nil, errors.New("it has no prefill: leave the step out, for it makes its table itself")
	case c.Spec.Runtime <= 0:
		return nil, errors.New("failover ends with its time: give runtime_secs")
	case c.Spec.Peer > 0 || c.Spec.Turn > 0:
		return nil, errors.New("one client machine has the ledger: give its group one VM")
	}
	for _, p := range c.Spec.Peers {
		c.job.Servers = append(c.job.Servers, p.Address)
	}
	c.job.Self = c.Spec.Address
	job.Operations, job.Measures = []result.Operation{{Name: "commit", Noun: "commits"}}, failover.Measures()
	job.Streams = []result.Stream{{Name: "clients", Noun: "group of clients", Depth: c.job.Clients, TimeBased: true,
		Runtime: c.Spec.Runtime}}
	job.Notes = []string{fmt.Sprintf("%s replication; a first server that is silent for %v is given up",
		c.job.Replication, c.job.GiveUp)}
	if c.job.Distance > 0 {
		job.Command.Listens = []int{failover.LinkPort}
		job.Notes = append(job.Notes, fmt.Sprintf("the standby is %v away: its stream passes the client machine, and "+
			"what is on its way when the first server goes is lost", c.job.Distance))
	}
	err := c.server.Apply(c.Spec, job)
	return c.job, err
}
