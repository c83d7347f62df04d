// Package agent is what works for a run on a machine that is reached over a network: it moves files, looks after
// commands and services, tells what the machine is and does, and watches over its disks.
//
// It lives in a folder of the run's own, only there, and needs nothing else on the machine. It listens on no port and
// no socket: whoever may log in as its user talks to `plimsoll-agent session FOLDER`, in HTTP/2 over its standard input
// and output, and nobody else can. What has been started does not hang on that session: each command is a unit with a
// supervisor of its own, which outlives sessions, keeps output and exit on disk until they are fetched, and ends the
// command with everything that it has started. A unit has an id and is started once, however often it is asked for.
// When nobody has been heard from the run for as long as its lease says, its supervisors end their units.
//
// It stands below package remote, which puts it on machines and talks to it. It refuses file names that lead out of
// the run's folder, disks without consent, and a folder that is not its run's.
package agent

import (
	"fmt"
	"io"
	"time"

	"plimsoll/internal/contract/target"
)

// Layout of the folder of a run on a machine.
const (
	Program   = "agent" // this program
	TagFile   = "tag"   // the words by which a clean-up knows the folder
	work      = "work"  // where commands run
	units     = "units" // a folder for each unit
	leaseFile = "lease" // touched whenever the run is heard of
)

// Start asks for a unit.
type Start struct {
	Command target.Command `json:"command"`
	Disks   []Disk         `json:"disks,omitempty"` // block devices that it may write to
	Lease   time.Duration  `json:"lease_ns"`        // for how long it goes on with nothing heard of the run; 0: for ever
	Held    bool           `json:"held,omitempty"`  // it is made ready, and begins when it is released
}

// Disk is a block device that a user has consented to overwrite.
type Disk struct {
	Path    string `json:"path"` // a name that stays: /dev/disk/by-id/...
	Consent string `json:"consent,omitempty"`
}

// State is how it is with a unit.
type State struct {
	Known   bool         `json:"known,omitempty"` // there is, or was, one
	Running bool         `json:"running,omitempty"`
	Failed  string       `json:"failed,omitempty"` // why it was never begun
	Began   int64        `json:"began,omitempty"`  // by the machine's clock, in nanoseconds since 1970; 0 is not known
	Exit    target.Exit  `json:"exit,omitzero"`
	Usage   target.Usage `json:"usage,omitzero"`
	Why     string       `json:"why,omitempty"` // it was ended by us, or lost
}

// Looking says what to look at.
type Looking struct {
	Disks []Disk `json:"disks,omitempty"`
	// Mine says that the devices are claimed by the run itself, so that being claimed is no objection.
	Mine bool `json:"mine,omitempty"`
}

// Look tells what a machine is.
type Look struct {
	Hostname    string            `json:"hostname"`
	MachineID   string            `json:"machine_id,omitempty"`
	Kernel      string            `json:"kernel"`
	CPU         string            `json:"cpu,omitempty"`
	Governor    string            `json:"governor,omitempty"`
	Idle        string            `json:"idle,omitempty"`        // the deepest idle state that a CPU may enter
	WakeMicros  float64           `json:"wake_micros,omitempty"` // to wake from it
	Cores       int               `json:"cores"`
	MemoryBytes int64             `json:"memory_bytes"`
	FreeBytes   int64             `json:"free_bytes"` // in the run's folder
	User        string            `json:"user"`
	Root        bool              `json:"root,omitempty"`
	Fio         string            `json:"fio,omitempty"` // what fio says is its version; "" without fio
	Mitigations map[string]string `json:"mitigations,omitempty"`
	Disks       []DiskLook        `json:"disks,omitempty"`
}

// DiskLook tells what a block device is, and what stands against writing to it.
type DiskLook struct {
	Path       string   `json:"path"`
	Identity   string   `json:"identity,omitempty"` // the consent for it
	Bytes      int64    `json:"size_bytes,omitempty"`
	Objections []string `json:"objections,omitempty"`
	Misaligned []string `json:"misaligned,omitempty"`
}

// Failure is the answer to what failed.
type Failure struct {
	Error  string `json:"error"`
	Absent bool   `json:"absent,omitempty"` // there is no such file
}

// Hours is the header of answers with the machine's clock when it began to answer, in nanoseconds since 1970.
const Hours = "Plimsoll-Clock"

// clockAhead is how far this agent takes the machine's clock to be ahead: tests link one in, as a machine's clock that
// is wrong cannot be had for them alone.
var clockAhead string

// now is the time by the machine's clock.
func now() time.Time {
	ahead, _ := time.ParseDuration(clockAhead) // 0 of none
	return time.Now().Add(ahead)
}

// Version of what is spoken. Both sides are of one build: an agent is put anew for each run.
const Version = "1"

const usage = `plimsoll-agent %s: looks after the commands of a plimsoll run on this machine.
It is put here, called and removed by plimsoll; see "plimsoll docs how-to/ssh".

  plimsoll-agent session FOLDER   speak with the run whose folder that is, over standard input and output
  plimsoll-agent end FOLDER TAG   end all that the run has started, and remove its folder
`

// Main is the program: it runs a command line and returns the exit code. It never prints a command's environment.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		_, _ = fmt.Fprintf(out, usage, Version)
		return 0
	}
	err := run(args, in, out)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "plimsoll-agent: %v\n", err)
		return 1
	}
	return 0
}
