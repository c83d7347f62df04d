package postgres

import (
	"context"
	"errors"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
)

// Served is a config of a load on PostgreSQL.
type Served interface {
	workload.Config
	// ServerOf is the server that it names; false where that is another database's.
	ServerOf() (Config, bool, error)
}

// Engine is a workload.Self whose load goes to PostgreSQL, for its type to embed: with the methods of workload.Peering
// and workload.Counting.
type Engine[M workload.Maker[C], C Served] struct{ workload.Self[M, C] }

func (e Engine[M, C]) server(spec workload.Spec) (Config, bool, error) {
	c, err := e.Read(spec)
	if err != nil {
		return Config{}, false, err
	}
	return c.ServerOf()
}

// Peers implements workload.Peering.
func (e Engine[M, C]) Peers(spec workload.Spec) (workload.Peers, bool, error) {
	c, ok, err := e.server(spec)
	if err != nil || !ok {
		return workload.Peers{}, false, err
	}
	peers, ok := c.Peers()
	return peers, ok, nil
}

// Server implements workload.Peering.
func (e Engine[M, C]) Server(spec workload.Spec) (workload.Server, error) {
	c, ok, err := e.server(spec)
	if err == nil && !ok {
		err = errors.New("only a server of PostgreSQL is started by a run")
	}
	if err != nil {
		return workload.Server{}, err
	}
	return c.Server(spec)
}

// CheckServer implements workload.Peering.
func (Engine[M, C]) CheckServer(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	return CheckServer(ctx, host, spec)
}

// Counters implements workload.Counting.
func (e Engine[M, C]) Counters(spec workload.Spec, host target.Host) (*workload.Scrape, error) {
	c, ok, err := e.server(spec)
	if err != nil || !ok {
		return nil, err
	}
	return c.Counters(spec, host)
}

// Run implements workload.Engine. It puts the program and the server's password on the machine.
func (e Engine[M, C]) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.RunSelf(ctx, env, job, e.Describe().Name, PutPassword)
}

// Options are the rows of an engine's table that say where its load goes; ReadServer reads them when all are there.
func Options(more ...workload.Option) []workload.Option {
	later := func(*yaml.Node) {}
	return append([]workload.Option{
		{Name: "server", To: later, Help: "{vm_group: NAME} of a PostgreSQL of the run's own there, with settings: and " +
			"cpus:; {url: ..., password: env:NAME} of yours; without it one on each machine"},
		{Name: "database", To: later, Help: "the name, where the url has none"},
	}, more...)
}

// ReadServer reads what a config says by the rows of Options.
func ReadServer(r *workload.Reading) Config {
	c, bad := Read(r.Given["server"], r.Given["database"])
	r.Add(bad)
	return c
}
