package runs

import (
	"plimsoll/internal/cli/machines"
)

// Store is the folder of run folders, and what reads them.
type Store struct {
	*machines.Targets
	imported imports // outputs of other tools that were given in the place of runs
}
