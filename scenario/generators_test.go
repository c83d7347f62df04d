package scenario_test

import (
	"io/fs"

	"plimsoll/internal/workloads/fio"
	"plimsoll/scenario"
)

var generators = map[string]scenario.Generator{"fio": fio.Engine{}}

// loadAll reads a scenario as the program does, which brings the generators.
func loadAll(fsys fs.FS, o scenario.LoadOptions) (*scenario.Scenario, []scenario.Diagnostic) {
	o.Generators = generators
	return scenario.Load(fsys, o)
}
