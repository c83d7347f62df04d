package result

import (
	"cmp"
	"encoding/json"
	"errors"
)

// EventData holds what programs read of an event, by its kind.
type EventData struct {
	// State tells what a workload, a step, a run or a node has come to.
	State string `json:"state,omitempty"`
	// Of the start of a run.
	Scenario string `json:"scenario,omitempty"`
	Target   string `json:"target,omitempty"`
	Steps    int    `json:"steps,omitempty"`
	// Of a workload, one start of it on one VM or, without VM, as a whole; of what a server has printed.
	Workload string `json:"workload,omitempty"`
	VM       string `json:"vm,omitempty"`
	Group    string `json:"group,omitempty"`
	Start    int    `json:"start,omitempty"`
	Prefill  bool   `json:"prefill,omitempty"`
	Reason   string `json:"reason,omitempty"` // of a loss
	// Of a fault; Ends is the text of what is over, where one is.
	Ends  string `json:"ends,omitempty"`
	Node  *int   `json:"node,omitempty"`
	Power string `json:"power,omitempty"` // the state that its controller was told to bring about
	// Of exporters.
	Endpoint string `json:"endpoint,omitempty"`
	Pages    int    `json:"pages,omitempty"`
	Missing  int    `json:"missing,omitempty"`
	// Of a defect.
	Panic string   `json:"panic,omitempty"`
	Stack []string `json:"stack,omitempty"`
	// Of the kind of the same name.
	Preconditioning *Preconditioning   `json:"preconditioning,omitempty"`
	Written         *Written           `json:"written,omitempty"`
	Stored          *Stored            `json:"stored,omitempty"`
	Boot            *Boot              `json:"boot,omitempty"`
	Migration       *Migration         `json:"migration,omitempty"`
	NodeReturn      *NodeReturn        `json:"node-return,omitempty"`
	Operation       *PlatformOperation `json:"operation,omitempty"`
	Plain           *Plain             `json:"plain,omitempty"`
}

// States of a workload in the journal.
const (
	WorkloadStart = "start"
	WorkloadEnd   = "end" // by itself; Error set when it failed
	WorkloadStop  = "stop"
	WorkloadLost  = "lost"
)

// UnmarshalJSON reads what an event says. Data of which a part is of another type than it is written with say nothing.
func (d *EventData) UnmarshalJSON(text []byte) error {
	type plain EventData
	err := json.Unmarshal(text, (*plain)(d))
	if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) {
		*d = EventData{}
		return nil
	}
	return err
}

// fill completes an event of a run folder from before July 2026, which says in its text what is a state now.
func (e *Event) fill() {
	switch e.Kind {
	case KindRunStart:
		e.Data.Scenario = cmp.Or(e.Data.Scenario, e.Text)
	case KindRunEnd, KindStepEnd, KindWorkload:
		e.Data.State = cmp.Or(e.Data.State, e.Text)
	}
}
