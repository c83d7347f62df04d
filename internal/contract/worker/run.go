package worker

import "os"

// RunVariable is the environment variable that says which run a worker works for.
const RunVariable = "PLIMSOLL_CLAIM"

// Run returns what the run is called that this process works for, "" for none.
func Run() string { return os.Getenv(RunVariable) }
