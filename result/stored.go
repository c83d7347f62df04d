package result

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/unit"
)

// Stored holds what a sample of disks was seen to hold, beside what the job files asked for.
type Stored struct {
	Time     time.Time `json:"time"`
	Workload string    `json:"workload"`
	Group    string    `json:"group"`
	// After says when it was looked at: after the prefill or the run of the workload.
	After string `json:"after"`
	VMs   int    `json:"vms"`
	Bytes int64  `json:"bytes"` // read
	// Compressible and Repeats are the shares asked for, 0 to 1: what compressors save, and blocks that repeat others.
	Compressible float64 `json:"asked_compressible"`
	Repeats      float64 `json:"asked_repeats"`
	// The shares found, 0 to 1: what compressors save of blocks of 4 KiB, the least and the most of them; repeated
	// blocks within the sample, and so at least; blocks of zeros; zeros within other blocks.
	CompressibleLow  float64 `json:"compressible_low"`
	CompressibleHigh float64 `json:"compressible_high"`
	RepeatsAtLeast   float64 `json:"repeats_at_least"`
	Zeros            float64 `json:"zeros"`
	ZerosWithin      float64 `json:"zeros_within"`
	// Differs tells what is not as asked, CannotTell what a sample does not show, each in a sentence.
	Differs    []string `json:"differs,omitempty"`
	CannotTell []string `json:"cannot_tell,omitempty"`
	Seconds    float64  `json:"seconds"`           // the look took
	Problem    string   `json:"problem,omitempty"` // why it could not be seen, or not all of it
}

// The moments after which is looked.
const (
	AfterPrefill = "prefill"
	AfterRun     = "run"
)

// StoredOf are the looks that a journal tells of. Events that cannot be read are left out.
func StoredOf(events []Event) (out []Stored) {
	for _, e := range events {
		if e.Kind == KindStored && e.Data.Stored != nil {
			s := *e.Data.Stored
			s.Time = e.Time
			out = append(out, s)
		}
	}
	return out
}

// Asked says what was asked for in words.
func (s Stored) Asked() string {
	var parts []string
	if s.Compressible > 0 {
		parts = append(parts, fmt.Sprintf("%.0f %% compressible", 100*s.Compressible))
	}
	if s.Repeats > 0 {
		parts = append(parts, fmt.Sprintf("%.0f %% of the blocks repeating others", 100*s.Repeats))
	}
	return strings.Join(parts, ", ")
}

// Sentence says it in words.
func (s Stored) Sentence() string {
	if s.Bytes == 0 {
		return "data asked to be " + s.Asked() + ": could not be looked at"
	}
	text := fmt.Sprintf("data asked to be %s: in %s after the %s compressors save %.1f to %.1f %%, and at least %.1f %% "+
		"of the blocks repeat others", s.Asked(), unit.Bytes(s.Bytes), s.After, 100*s.CompressibleLow,
		100*s.CompressibleHigh, 100*s.RepeatsAtLeast)
	if s.Zeros > 0 {
		text += fmt.Sprintf("; %.1f %% are zeros", 100*s.Zeros)
	}
	return text
}
