package postgres

import (
	"context"
	"errors"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// Served is a config of a load on PostgreSQL.
type Served interface {
	workload.Config
	// ServerOf is the server that it names; false where that is another database's.
	ServerOf() (Config, bool, error)
}

// Engine is a workload.Self whose load goes to PostgreSQL, for its type to embed: with the methods of workload.Peering,
// workload.Counting and workload.Asking.
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

// Asked implements workload.Asking.
func (e Engine[M, C]) Asked(ctx context.Context, spec workload.Spec) ([]result.Fact, error) {
	c, ok, err := e.server(spec)
	if err != nil || !ok {
		return nil, err
	}
	return c.Asked(ctx)
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
