// Package trace says what a stream of block I/O is: how large its requests are and where they begin, which of them
// are sequential though several streams are mixed, how often blocks come back and what a cache of each size would
// miss, how it bursts, how deep its queue was, and how long each operation took.
//
// It stands between the readers of traces (internal/storage/trace/read, internal/storage/trace/live) and the command
// that prints: they give events in the order of time, an Analyzer takes each once, and what it keeps does not grow with
// the trace. Its Result is a value that prints as JSON; a verdict in words and a fio job are made of it. It opens no
// file, and it refuses to guess: what cannot be told from the events that a trace has is absent, and what was wrong
// with a trace is in Problems.
package trace

import (
	"fmt"
	"time"
)

// Action tells what happened to a request.
type Action uint8

// The actions of a block layer, by blktrace's letter, and Whole, a request with its duration as other traces have it.
const (
	Other    Action = iota // anything else that is in order: G, P, U, B, messages
	Queue                  // Q: a request came from above
	Merge                  // M, F: it became part of another
	Split                  // X: it was cut in two; Aux is the offset of the second
	Remap                  // A: it was moved from one device to another
	Insert                 // I: it was handed to the scheduler
	Issue                  // D: it was sent to the device
	Requeue                // R: the device did not take it
	Complete               // C: the device is done
	Whole                  // it came at Time and took Aux nanoseconds, or an unknown time
	Actions                // how many there are
)

// Op is an operation.
type Op uint8

// The operations told apart. Flushes carry no data.
const (
	None Op = iota
	Read
	Write
	Discard
	Flush
	Ops // how many there are
)

// String is the operation's name, as it is in JSON.
func (o Op) String() string {
	return [...]string{"other", "read", "write", "discard", "flush", ""}[min(o, Ops)]
}

// Flags of a request.
const (
	Sync    uint8 = 1 << iota
	Meta          // of the file system's own
	Ahead         // read-ahead
	FUA           // through the device's cache
	Barrier       // a flush of the device's cache comes before
	Failed        // completed with an error
	Packet        // a command of its own (SCSI and the like), which has no place on the device
)

// UnknownTime is the Aux of a Whole whose duration the trace does not tell.
const UnknownTime = ^uint64(0)

// Event is one line or record of a trace.
type Event struct {
	Time   int64  // nanoseconds; any origin, the same for all of a trace
	Offset uint64 // bytes from the beginning of the device
	Aux    uint64 // see the actions
	Bytes  uint32
	Device uint32 // a key of Names.Devices, or major<<20 + minor
	PID    uint32
	Action Action
	Op     Op
	Flags  uint8
}

// Source gives the events of a trace in the order of their time.
type Source interface {
	// Next fills events and says how many there are. At the end it returns io.EOF, with or after the last of them.
	// Any other error ends a trace early; what came before it stands.
	Next(events []Event) (int, error)
}

// Names are what numbers in events stand for. A reader fills them while it reads.
type Names struct {
	Devices   map[uint32]string
	Processes map[uint32]string
	Clock     time.Time // what a clock on the wall showed at ClockAt; zero where the trace does not say
	ClockAt   int64     // as Event.Time
}

// NewNames has room for names.
func NewNames() *Names { return &Names{Devices: map[uint32]string{}, Processes: map[uint32]string{}} }

// mostNames bounds names of processes.
const mostNames = 1 << 16

// Process keeps the name of a process, the last one that it had.
func (n *Names) Process(pid uint32, name string) {
	if old, ok := n.Processes[pid]; ok && old == name || !ok && len(n.Processes) >= mostNames {
		return
	}
	n.Processes[pid] = name
}

// Device is a device's name: as the trace has it, or its numbers.
func (n *Names) Device(id uint32) string {
	if name, ok := n.Devices[id]; ok {
		return name
	}
	return fmt.Sprintf("%d,%d", id>>20, id&(1<<20-1))
}

// Problem holds what was wrong with a part of a trace. The rest stands.
type Problem struct {
	What  string `json:"what"`
	Count uint64 `json:"count"`
	First string `json:"first,omitempty"` // where it was first: file and line or byte, with the value
	Lost  bool   `json:"lost"`            // a part of the trace is missing for it; else it is merely worth knowing
}

// Problems are kinds of what was wrong, each counted and named where it was first.
type Problems struct {
	list []Problem
	at   map[string]int
}

// mostProblems bounds how many kinds are told apart.
const mostProblems = 100

// Add counts n of a kind for which a part of the trace is missing; first says where, and is asked only for the first
// of them.
func (p *Problems) Add(what string, n uint64, first func() string) { p.add(what, n, first, true) }

// Note counts n of a kind that is worth knowing, for which nothing is missing.
func (p *Problems) Note(what string, n uint64, first func() string) { p.add(what, n, first, false) }

func (p *Problems) add(what string, n uint64, first func() string, lost bool) {
	if n == 0 {
		return
	}
	if p.at == nil {
		p.at = map[string]int{}
	}
	i, ok := p.at[what]
	if !ok {
		if len(p.list) >= mostProblems {
			return
		}
		i = len(p.list)
		p.at[what] = i
		p.list = append(p.list, Problem{What: what, Lost: lost})
		if first != nil {
			p.list[i].First = first()
		}
	}
	p.list[i].Count += n
}

// All lists them in the order in which they were met.
func (p *Problems) All() []Problem { return p.list }
