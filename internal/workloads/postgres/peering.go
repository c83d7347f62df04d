package postgres

import (
	"context"
	"errors"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// Reader says which server of PostgreSQL an engine's file names; false where it names another database's.
type Reader interface {
	ServerOf(workload.Spec) (Config, bool, error)
}

// Peering is what an engine has to say of its server, for its type to embed: the methods of workload.Peering,
// workload.Counting and workload.Asking. R reads the engine's file; its zero value is used.
type Peering[R Reader] struct{}

func (Peering[R]) config(spec workload.Spec) (Config, bool, error) {
	var r R
	return r.ServerOf(spec)
}

// Peers implements workload.Peering.
func (p Peering[R]) Peers(spec workload.Spec) (workload.Peers, bool, error) {
	c, ok, err := p.config(spec)
	if err != nil || !ok {
		return workload.Peers{}, false, err
	}
	peers, ok := c.Peers()
	return peers, ok, nil
}

// Server implements workload.Peering.
func (p Peering[R]) Server(spec workload.Spec) (workload.Server, error) {
	c, ok, err := p.config(spec)
	if err == nil && !ok {
		err = errors.New("only a server of PostgreSQL is started by a run")
	}
	if err != nil {
		return workload.Server{}, err
	}
	return c.Server(spec)
}

// CheckServer implements workload.Peering.
func (Peering[R]) CheckServer(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	return CheckServer(ctx, host, spec)
}

// Asked implements workload.Asking.
func (p Peering[R]) Asked(ctx context.Context, spec workload.Spec) ([]result.Fact, error) {
	c, ok, err := p.config(spec)
	if err != nil || !ok {
		return nil, err
	}
	return c.Asked(ctx)
}

// Counters implements workload.Counting.
func (p Peering[R]) Counters(spec workload.Spec, host target.Host) (*workload.Scrape, error) {
	c, ok, err := p.config(spec)
	if err != nil || !ok {
		return nil, err
	}
	return c.Counters(spec, host)
}
