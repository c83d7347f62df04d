// Package tproch is the load generator `tproch`: a workload of decision support derived from TPC-H, on PostgreSQL,
// whose clients are plimsoll itself, put on the machine; see package plimsoll/internal/workloads/tproch/driver, which
// does the work there.
//
// It stands among the engines. Its prefill loads what is not there yet, and at scale 1 holds the answers against the
// published ones. It refuses a schema that does not carry its mark or is of another scale.
package tproch

import (
	"fmt"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/postgres"
	tproch "plimsoll/internal/workloads/tproch/driver"
	"plimsoll/result"
)

// Name is the engine's name in scenarios.
const Name = "tproch"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Engine[own, *config] }

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
)

type own struct{}

var _ workload.Maker[*config] = own{}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Prefills: true}
}

// config is a file that is read.
type config struct {
	workload.Reading
	job    tproch.Job
	server postgres.Config
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	return &config{Reading: workload.Reading{Spec: spec}, job: tproch.Job{Load: spec.Prefill, Scale: 1, Streams: 2,
		Refresh: true, Seed: spec.Seed, Duration: spec.Runtime}}
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	return postgres.Options(
		workload.Option{Name: "scale", To: &c.job.Scale,
			Help: "0.01, 0.02, ... below 1, whole numbers beyond, up to 10000"},
		workload.Option{Name: "streams", To: &c.job.Streams, Range: fmt.Sprintf("0 to %d", tproch.MaxStreams),
			Help: "of the throughput run; 0: the power run alone"},
		workload.Option{Name: "refresh", To: &c.job.Refresh,
			Help: "the data are changed before and after the queries, in both runs"},
		workload.Option{Name: "reload", To: &c.job.Reload,
			Help: "a prefill drops what it made before, and loads anew"},
	)
}

// Settle implements workload.Config.
func (c *config) Settle() {
	c.server = postgres.ReadServer(&c.Reading)
	if err := c.job.Scale.Check(); err != nil {
		c.Object(c.Given["scale"], "%v", err)
	}
}

// ServerOf implements postgres.Served.
func (c *config) ServerOf() (postgres.Config, bool, error) { return c.server, true, nil }

// Facts implements workload.Config.
func (c *config) Facts() []result.Fact {
	return append(workload.LoadFacts(c.Spec.Name, c.job, "load", "seed", "duration_ns"), c.server.Facts()...)
}

// Job implements workload.Config. A run ends when its streams have; a given time is the longest that it may take.
func (c *config) Job(job *workload.Job) (any, error) {
	job.Operations, job.Measures = c.job.Operations(), tproch.Measures()
	job.Streams = []result.Stream{{Name: "streams", Noun: "group of streams", Depth: max(1, c.job.Streams),
		Ends: true, Runtime: c.Spec.Runtime}}
	job.Notes = []string{fmt.Sprintf("its figures at scale %v are derived from TPC-H and are no audited results",
		float64(c.job.Scale))}
	if c.Spec.Prefill {
		job.Operations, job.Measures = tproch.LoadOperations(), tproch.LoadMeasures()
		job.Streams[0] = result.Stream{Name: "loaders", Noun: "group of connections", Depth: 1}
		job.Limit, c.job.Duration = 0, 0
	}
	err := c.server.Apply(c.Spec, job)
	return c.job, err
}
