package result

import (
	"fmt"
	"math"
	"strings"
	"time"

	"plimsoll/unit"
)

// Preconditioning holds what was done to disks before a measurement so that they do not change in its course: emptied,
// written in full, and worked on as they will be until what they do has settled.
type Preconditioning struct {
	Workload string    `json:"workload"` // whose disks, and whose operations the rounds do
	Group    string    `json:"group"`
	Step     int       `json:"step,omitempty"`
	VMs      int       `json:"vms"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`          // so far
	Purged   string    `json:"purged,omitempty"` // how; "" when it was not asked for or not done
	// DiskBytes is the size of all disks together; each Pass is to write that once.
	DiskBytes  int64   `json:"disk_bytes"`
	BlockBytes int64   `json:"block_bytes,omitempty"` // of the writes of the passes
	WantPasses int     `json:"want_passes"`
	Passes     []Pass  `json:"passes,omitempty"`
	MaxRounds  int     `json:"max_rounds"`
	Rounds     []Round `json:"rounds,omitempty"`
	// Spread and Slope are of the last SteadyWindow rounds, as shares of their mean; nil before there are so many.
	Spread *float64 `json:"spread,omitempty"`
	Slope  *float64 `json:"slope,omitempty"`
	State  string   `json:"state"`            // see the Precondition constants
	Reason string   `json:"reason,omitempty"` // why it is not steady, in words
}

// What became of a preconditioning.
const (
	PreconditionGoesOn = "goes on"
	Preconditioned     = "steady"
	// PreconditionWritten: rounds were not asked for.
	PreconditionWritten     = "written"
	PreconditionNotReached  = "not reached" // the last round was done, or time was over, before it was steady
	PreconditionInterrupted = "interrupted" // stopped, or found dead
	PreconditionFailed      = "failed"
)

// Pass is one sequential write of all disks. One that came to no end counts what it has written.
type Pass struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Errors  uint64  `json:"errors,omitempty"`
}

// Round is one run of the workload's own operations.
type Round struct {
	Began          time.Time `json:"began"`
	Seconds        float64   `json:"seconds"`
	OpsPerSecond   float64   `json:"ops_per_second"` // completed, of all VMs and kinds together
	BytesPerSecond float64   `json:"bytes_per_second"`
	Errors         uint64    `json:"errors,omitempty"`
}

// The rule by which rounds are steady: over the last SteadyWindow of them the largest is at most SteadySpread of their
// mean above the smallest, and a straight line fitted to them rises or falls by at most SteadySlope of it. The numbers
// are those commonly given for the test specification of the SNIA for solid-state storage; conformance to its text is
// not claimed.
const (
	SteadyWindow = 5
	SteadySpread = 0.20
	SteadySlope  = 0.10
)

// SteadyRounds applies the rule to the last rounds. Spread is the largest value less the smallest, slope by how much
// the least-squares line changes from the first of them to the last, both as shares of their mean; they are NaN, and
// the answer no, of fewer rounds than the rule needs or a mean that is not above 0.
func SteadyRounds(rounds []Round) (spread, slope float64, steady bool) {
	n := len(rounds)
	if n < SteadyWindow {
		return math.NaN(), math.NaN(), false
	}
	last := rounds[n-SteadyWindow:]
	low, high, sum, moment := math.Inf(1), math.Inf(-1), 0.0, 0.0
	const middle = float64(SteadyWindow-1) / 2
	squares := 0.0
	for i, r := range last {
		v, x := r.OpsPerSecond, float64(i)-middle
		low, high, sum = min(low, v), max(high, v), sum+v
		moment += x * v
		squares += x * x
	}
	mean := sum / SteadyWindow
	if !(mean > 0) || math.IsInf(mean, 0) {
		return math.NaN(), math.NaN(), false
	}
	spread = (high - low) / mean
	slope = math.Abs(moment/squares*(SteadyWindow-1)) / mean
	return spread, slope, spread <= SteadySpread && slope <= SteadySlope
}

// Written holds what was seen of ranges of disks: whether they hold what was written once.
type Written struct {
	Time     time.Time `json:"time"`
	Workload string    `json:"workload"`
	Group    string    `json:"group"`
	// Ranges says which: those that it reads, or those that a prefill or the passes of a preconditioning wrote.
	Ranges string `json:"ranges"`
	VMs    int    `json:"vms"`
	Bytes  int64  `json:"bytes"` // of the ranges
	// Mapped is how much of them the place under the disks says was written, nil where it does not know. Space that is
	// only reserved does not count.
	Mapped *int64 `json:"mapped_bytes,omitempty"`
	Blocks int    `json:"sampled_blocks"` // read, spread evenly
	Zero   int    `json:"zero_blocks"`    // of them nothing but zeros
	// ZeroAtMost is the share of zero blocks that there are at most, with 95 % confidence.
	ZeroAtMost float64  `json:"zero_at_most"`
	Seconds    float64  `json:"seconds"`           // the look took
	Devices    []string `json:"devices,omitempty"` // "VM device" of those that were not all written
	Problem    string   `json:"problem,omitempty"` // why it could not be seen, or not all of it
}

// What the Ranges of a Written are.
const (
	WrittenByPrefill      = "prefilled"
	WrittenByPrecondition = "preconditioned"
	ReadByWorkload        = "read"
)

// Lacking reports whether some of the ranges hold what nobody wrote, or zeros.
func (w Written) Lacking() bool { return w.Zero > 0 || w.Mapped != nil && *w.Mapped < w.Bytes }

// Prepared are what a journal tells of preconditionings, each as it was last told, and of looks at disks. Events that
// cannot be read are left out. One that nobody saw end was interrupted when the journal says that the run is over.
func Prepared(events []Event, over bool) (pre []Preconditioning, written []Written) {
	for _, e := range events {
		switch e.Kind {
		case KindPrecondition:
			if e.Data.Preconditioning == nil {
				continue
			}
			p := *e.Data.Preconditioning
			p.Step = e.Step
			if n := len(pre); n > 0 && pre[n-1].Step == p.Step && pre[n-1].Began.Equal(p.Began) {
				pre[n-1] = p
			} else {
				pre = append(pre, p)
			}
		case KindWritten:
			if e.Data.Written != nil {
				w := *e.Data.Written
				w.Time = e.Time
				written = append(written, w)
			}
		}
	}
	for i := range pre {
		if over && pre[i].State == PreconditionGoesOn {
			pre[i].State, pre[i].Reason = PreconditionInterrupted, "the run ended before it did"
		}
	}
	return pre, written
}

// Sentence says it in words.
func (w Written) Sentence() string {
	what := map[string]string{WrittenByPrefill: "prefilled", WrittenByPrecondition: "preconditioned",
		ReadByWorkload: "to be read"}[w.Ranges]
	if what == "" {
		what = w.Ranges
	}
	var parts []string
	if w.Mapped != nil {
		parts = append(parts, fmt.Sprintf("%s of %s allocated", unit.Bytes(*w.Mapped), unit.Bytes(w.Bytes)))
	} else {
		parts = append(parts, unit.Bytes(w.Bytes).String())
	}
	if w.Blocks > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s sampled blocks zero", unit.Thousands(int64(w.Zero)),
			unit.Thousands(int64(w.Blocks))))
	}
	if w.Problem != "" {
		parts = append(parts, "not all could be looked at")
	}
	text := what + ": " + strings.Join(parts, ", ")
	if len(w.Devices) > 0 {
		text += ": " + unit.List(w.Devices, 3)
	}
	return text
}

// Sentence says in words how far it came.
func (p Preconditioning) Sentence() string {
	var parts []string
	if p.Purged != "" {
		parts = append(parts, "purged")
	}
	if p.WantPasses > 0 {
		var bytes int64
		for _, pass := range p.Passes {
			bytes += pass.Bytes
		}
		parts = append(parts, fmt.Sprintf("%s of %s, %s written", unit.Thousands(int64(len(p.Passes))),
			passes(p.WantPasses), unit.Bytes(bytes)))
	}
	rounds := unit.Plural(len(p.Rounds), "round")
	switch p.State {
	case Preconditioned:
		parts = append(parts, "steady after "+rounds)
	case PreconditionNotReached:
		parts = append(parts, "not steady after "+rounds)
	case PreconditionInterrupted, PreconditionFailed:
		parts = append(parts, p.State+" after "+rounds)
	case PreconditionGoesOn:
		if n := len(p.Rounds); n > 0 {
			rate := unit.Thousands(int64(math.Round(p.Rounds[n-1].OpsPerSecond)))
			parts = append(parts, fmt.Sprintf("round %d: %s operations/s", n, rate))
		}
	}
	if p.Reason != "" {
		parts = append(parts, p.Reason)
	}
	return strings.Join(parts, "; ")
}

func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return unit.Thousands(int64(n)) + " passes"
}
