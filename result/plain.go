package result

import "fmt"

// LeastPlainTurns and MostPlainTurns bound how often a job is run on a machine and beside it: of one turn no interval
// is known.
const LeastPlainTurns, MostPlainTurns = 2, 1000

// Plain is a job on a machine and the same job beside it on its node, by turns.
type Plain struct {
	Workload string      `json:"workload"`
	Group    string      `json:"group"`
	VM       string      `json:"vm"`
	Node     string      `json:"node"`
	How      string      `json:"how"` // what the place beside the machine is
	Turns    []PlainTurn `json:"turns"`
}

// PlainTurn is one turn of each.
type PlainTurn struct {
	BesideFirst bool      `json:"beside_first,omitempty"`
	Machine     PlainDone `json:"machine"`
	Beside      PlainDone `json:"beside"`
}

// PlainDone tells what a job did in its turn.
type PlainDone struct {
	Seconds      float64 `json:"seconds"`
	OpsPerSecond float64 `json:"ops_per_second"`
	MeanSeconds  float64 `json:"mean_seconds"` // of an operation
}

// Sentence says it in words.
func (p Plain) Sentence() string {
	return fmt.Sprintf("%s was run by turns on %s and beside it on %s, %d times each", p.Workload, p.VM, p.Node,
		len(p.Turns))
}

// PlainOf are the comparisons that a journal tells of.
func PlainOf(events []Event) (list []Plain) {
	for _, e := range events {
		if e.Kind == KindPlain && e.Data.Plain != nil {
			list = append(list, *e.Data.Plain)
		}
	}
	return list
}
