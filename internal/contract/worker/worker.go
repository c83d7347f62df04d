// Package worker is what this program prints where it is put on a machine as a load generator of its own: a line of
// JSON about every second, and one at the end. The drivers of load write it, package workload reads it.
//
// It stands below both and refuses nothing: the reader judges.
package worker

import (
	"time"

	"plimsoll/hist"
)

// State is one line. All of it counts from the beginning of the job.
type State struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	// Began is when the job did, by the machine's clock: what came before, such as connecting, is no part of it.
	Began      time.Time `json:"began,omitzero"`
	Operations []Counts  `json:"operations"` // in the order of workload.Declared.Operations
	// Values are those of workload.Declared.Measures, in that order; nil where there is none.
	Values     []*float64 `json:"values,omitempty"`
	Errors     uint64     `json:"errors,omitempty"`
	CPUSeconds float64    `json:"cpu_seconds"` // of the worker
	Final      bool       `json:"final,omitempty"`
}

// Counts are what was done of an operation: as many as Times counts.
type Counts struct {
	Bytes uint64          `json:"bytes,omitempty"`
	Times *hist.Histogram `json:"times"` // nanoseconds; service or response times, as workload.Declared says
}
