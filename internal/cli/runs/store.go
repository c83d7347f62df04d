package runs

import (
	"plimsoll/internal/cli/machines"
)

// baselineDir holds the baselines, beside the runs; a name that begins with a dot is no run.
const BaselineDir = ".baselines"

// Store is the folder of run folders, and what reads them.
type Store struct {
	*machines.Targets
	imported imports // outputs of other tools that were given in the place of runs
}
