// Package drivers is the registry: every place that machines come from, every load generator and every exporter there
// is, one line each. It is explicit, so that what the program can do is read here and nothing registers itself. A new
// driver is a package of its own and one line in this one.
package drivers

import (
	"slices"

	"plimsoll/internal/exporter"
	"plimsoll/internal/exporter/host"
	"plimsoll/internal/target"
	"plimsoll/internal/target/local"
	"plimsoll/internal/target/sim"
	"plimsoll/internal/workload"
	"plimsoll/internal/workload/command"
	"plimsoll/internal/workload/fio"
	"plimsoll/scenario"
)

// Targets returns a provider for every kind of target, the default first.
func Targets() []target.Provider {
	return []target.Provider{
		local.Provider{},
		sim.Provider{},
	}
}

// Engines returns the load generators by the name that scenarios call them by.
func Engines() map[string]workload.Engine {
	return map[string]workload.Engine{
		"command": command.Engine{},
		"fio":     fio.Engine{},
	}
}

// Exporters returns what `plimsoll exporter` can be.
func Exporters() []exporter.Kind {
	return []exporter.Kind{
		host.Kind(),
	}
}

// Generators returns those of the engines that read the config files of scenarios, by name.
func Generators() map[string]scenario.Generator {
	out := map[string]scenario.Generator{}
	for name, e := range Engines() {
		if g, ok := e.(scenario.Generator); ok {
			out[name] = g
		}
	}
	return out
}

// Replays returns the engines that read the raw output of a run on the target of that name: of a simulated one it is
// the simulation's own.
func Replays(target string) map[string]workload.Engine {
	engines := Engines()
	if target == (sim.Provider{}).Name() {
		for name, e := range engines {
			engines[name] = sim.Replay(e)
		}
	}
	return engines
}

// Target returns the provider of a name.
func Target(name string) (target.Provider, bool) {
	all := Targets()
	i := slices.IndexFunc(all, func(p target.Provider) bool { return p.Name() == name })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}
