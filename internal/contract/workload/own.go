package workload

import (
	"context"
	"io/fs"
	"time"
)

// OwnReader is implemented by engines whose own job files can be run as they are, without a scenario around them: a fio
// job file is one. What it makes is a scenario like any other, to be run, planned, or written to a folder and edited.
type OwnReader interface {
	// Suffixes are the ends of the names of such files, with their dots.
	Suffixes() []string
	// ReadOwn makes the scenario of one. The error holds all objections at once, each with its place in the file.
	ReadOwn(OwnRequest) (Own, error)
}

// Resident is implemented by engines whose program is looked for on this machine before a run whose VMs are parts of
// it.
type Resident interface {
	// Here says what is wrong with the program on this machine: there is none, it is too old, or it lacks
	// what some of the workloads ask for. The tool is what is known of it all the same.
	Here(context.Context, []Spec) (Tool, error)
}

// OwnRequest is a job file of a generator and what its user says besides.
type OwnRequest struct {
	Name    string // of the file, as its user wrote it
	Data    []byte
	Set     map[string]string                 // values of the file's own variables
	Include func(name string) ([]byte, error) // reads a file beside it that it includes; nil: there is none
	Sweeps  []Sweep
	Repeats int           // of every combination; 0 and 1 are one run where nothing is swept
	Runtime time.Duration // of every job in place of the file's own; 0 leaves it
	Stages  []string      // what its stages are called, in order, when it was made of another tool's file
	// Precondition: before its jobs are measured all disks are written twice, and then the jobs done in rounds until
	// their rates are steady.
	Precondition bool
	KeepMix      bool  // a swept rate_iops keeps the mix of reads and writes
	Size         int64 // bytes of a device or file of which the job file says no size; 0: none is known
	// DeviceBytes says how large a device is that a job means all of; 0: not known. It may be nil.
	DeviceBytes func(name string) int64
	// Of job files that are written for a purpose: what the scenario is called and says of itself; workloads are then
	// called as their sections even where there is one only. Fill writes what is only written beforehand, too.
	Title, Summary string
	Fill           bool
	ReadOnly       bool              // nothing is filled: what is read is there and stays
	Beside         map[string][]byte // further files of the scenario, by name
}

// KeepMix is an option of a workload's jobs, of a search for a mark: where they read and write, fio gives each
// direction the one rate_iops, which makes the mix an even one. With it these rates are shared by the mix instead.
const KeepMix = "rate_keeps_mix"

// Sweep is an option of the generator that takes several values, the first of which the others are compared with.
type Sweep struct {
	Key    string
	Values []string
}

// Own holds what a job file became.
type Own struct {
	Files fs.FS    // a scenario directory with one test.yml
	Used  []string // names of OwnRequest.Set that the file has
	Notes []string // what is not as it was, and why
	// Places are where the file wants its data disks, in their order.
	Places []Place
}

// Place holds what a job file says of where a data disk lies.
type Place struct {
	Device  string // the data disk's name in the scenario
	Name    string // the file, folder or device as the author names it; "" where the file names none
	Folder  bool   // Name is the folder that files are made in
	Unclear string // why only the generator could say which it is
	Where   string // in the job file, for objections
	Job     string // that names it
	Says    string // its option
	Writes  bool   // some job writes there
}
