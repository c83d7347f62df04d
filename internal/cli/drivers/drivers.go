// Package drivers is the registry: every place that machines come from, every kind of power controller, every load
// generator and every exporter there is, one line each. It is explicit and a value that is passed on, so that what the
// program can do is read here and nothing registers itself. A new driver is a package of its own and one line in this
// one; a test may add one to what All returns.
package drivers

import (
	"slices"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/exporters/host"
	"plimsoll/internal/exporters/mariadb"
	"plimsoll/internal/exporters/postgres"
	"plimsoll/internal/formats/importer"
	"plimsoll/internal/targets/kubernetes"
	"plimsoll/internal/targets/lab"
	"plimsoll/internal/targets/local"
	"plimsoll/internal/targets/power/ipmi"
	"plimsoll/internal/targets/power/redfish"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/targets/ssh"
	"plimsoll/internal/workloads/command"
	"plimsoll/internal/workloads/failover"
	"plimsoll/internal/workloads/fio"
	"plimsoll/internal/workloads/hammerdb"
	"plimsoll/internal/workloads/integrity"
	"plimsoll/internal/workloads/pg"
	"plimsoll/internal/workloads/pgbench"
	"plimsoll/internal/workloads/tprocc"
	"plimsoll/internal/workloads/tproch"
	"plimsoll/internal/workloads/vioperf"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Registry says what a program can do.
type Registry struct {
	// Targets are a provider for every kind of target, the default first.
	Targets []target.Provider
	// PowerKinds are the kinds of power controllers that a node's may be, which targets are given.
	PowerKinds []target.PowerKind
	// Engines are the load generators, which scenarios call by the names that they have in Describe.
	Engines []workload.Engine
	// Exporters are what `plimsoll exporter` can be.
	Exporters []exporter.Kind
}

// All returns what there is.
func All() Registry {
	return Registry{
		Targets: []target.Provider{
			local.Provider{},
			kubernetes.Provider{}, lab.Provider{},
			sim.Provider{},
			ssh.Provider{},
		},
		PowerKinds: []target.PowerKind{
			ipmi.Kind{},
			redfish.Kind{},
		},
		Engines: []workload.Engine{
			command.Engine{},
			failover.Engine{},
			fio.Engine{},
			pg.Engine{},
			hammerdb.Engine{},
			integrity.Engine{},
			pgbench.Engine{},
			tprocc.Engine{},
			tproch.Engine{},
			vioperf.Engine{},
		},
		Exporters: []exporter.Kind{
			host.Kind(),
			mariadb.Kind(),
			postgres.Kind(),
		},
	}
}

// ByName are the engines by the name that scenarios call them by.
func (r Registry) ByName() map[string]workload.Engine {
	out := map[string]workload.Engine{}
	for _, e := range r.Engines {
		out[e.Describe().Name] = e
	}
	return out
}

// Generators are what reads the config files of scenarios, by the name of the engine.
func (r Registry) Generators() map[string]scenario.Generator {
	out := map[string]scenario.Generator{}
	for name, e := range r.ByName() {
		out[name] = workload.Reader(e)
	}
	return out
}

// Replays are the engines that read the raw output of a run on the target of that name: of a simulated one it is the
// simulation's own, of what was imported the importer's.
func (r Registry) Replays(target string) map[string]workload.Engine {
	if target == result.ImportTarget {
		return importer.Engines()
	}
	engines := r.ByName()
	if target == (sim.Provider{}).Name() {
		for name, e := range engines {
			engines[name] = sim.Replay(e)
		}
	}
	return engines
}

// TargetNames are the names of the targets, the default first.
func (r Registry) TargetNames() (names []string) {
	for _, p := range r.Targets {
		names = append(names, p.Name())
	}
	return names
}

// Target is the provider of a name.
func (r Registry) Target(name string) (target.Provider, bool) {
	i := slices.IndexFunc(r.Targets, func(p target.Provider) bool { return p.Name() == name })
	if i < 0 {
		return nil, false
	}
	return r.Targets[i], true
}
