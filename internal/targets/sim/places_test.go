package sim_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/targettest"
)

// readyMade is a place with three machines that are on and that it neither makes nor powers, as hosts over a network
// are.
type readyMade struct{ target.Target }

func (p readyMade) Check(ctx context.Context) (target.Facts, error) {
	f, err := p.Target.Check(ctx)
	f.Missing = maps.Clone(f.Missing)
	for c := range f.Capabilities {
		if c != target.GuestCommands {
			f.Missing[c] = "the machines were there before"
		}
	}
	f.Capabilities = map[target.Capability]string{target.GuestCommands: f.Capabilities[target.GuestCommands]}
	return f, err
}

func (p readyMade) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	c, err := p.Target.Provision(ctx, r)
	if err != nil {
		return nil, err
	}
	m := targettest.MachinesOf(c)
	names := []string{"db1", "db2", "web1"}
	var all []target.Placement
	for i, name := range names {
		all = append(all, target.Placement{Name: name, Node: i})
	}
	return struct{ target.Cluster }{c}, errors.Join(
		m.CreateTemplate(ctx, target.Template{Name: "t", DiskBytes: []int64{1 << 20, 1 << 20}}),
		m.Clone(ctx, target.Clone{Source: "t", Members: all}), m.PowerOn(ctx, names, 3))
}

// TestConformanceOfReadyMadeMachines is the suite on a place that can do nothing but list and reach its machines.
func TestConformanceOfReadyMadeMachines(t *testing.T) {
	targettest.Run(t, func(t testing.TB) targettest.Place {
		p := factory()(t)
		inner := p.New
		p.New = func() target.Target { return readyMade{inner()} }
		p.Machines = []string{"db1", "db2", "web1"}
		return p
	})
}
