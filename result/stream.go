package result

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// How operations of an open loop are due where that is not at random: as far apart each, or nobody knows.
const (
	ArrivalsEven    = "even"
	ArrivalsUnknown = "unknown"
)

// Stream is one stream of operations of a workload: a section of a fio file, a set of database clients. Of a stream
// that moves no blocks, Device is empty, and so is all that speaks of reads, writes, data and offsets.
type Stream struct {
	Name      string  `json:"name"`
	Noun      string  `json:"noun,omitempty"` // what the tool calls such a part, like fio job; "" is a section
	Device    string  `json:"device"`
	Depth     int     `json:"depth"`               // most operations outstanding at once, over all its processes
	Processes int     `json:"processes,omitempty"` // that share its work; 0: one
	Rate      float64 `json:"rate_ops,omitempty"`  // offered operations per second, 0 when unlimited
	Reads     bool    `json:"reads"`
	Writes    bool    `json:"writes"`
	Bytes     int64   `json:"extent_bytes,omitempty"` // touched, after scaling; 0 unknown
	Offset    int64   `json:"offset_bytes,omitempty"` // where the extent begins on each of its disks, after scaling
	OpenLoop  bool    `json:"open_loop,omitempty"`
	Arrivals  string  `json:"arrivals,omitempty"` // of an open loop; "": at random, see ArrivalsEven
	Verifies  bool    `json:"verifies,omitempty"` // says by itself of what it reads whether it was written
	Direct    bool    `json:"direct"`             // bypasses the page cache
	ZeroData  bool    `json:"zero_data,omitempty"`
	Checksums bool    `json:"checksums,omitempty"` // every block that it writes holds one, which it computes
	// Reducible is the share of what is written that compression and deduplication can take away, 0 to 1.
	Reducible float64 `json:"reducible,omitempty"`
	// Repeats is the share of the blocks written that repeat others, 0 to 1; the rest of Reducible compresses.
	Repeats float64 `json:"repeats,omitempty"`
	// Random is the share of operations at random offsets, 0 to 1; Skew is how unevenly these fall on the extent.
	Random float64 `json:"random,omitempty"`
	Skew   Skew    `json:"distribution,omitzero"`
	// ReadShare is of the operations; where it is 0, as TrimShare is, what Reads and Writes say in equal parts.
	ReadShare  float64 `json:"read_share,omitempty"`
	ReadBytes  float64 `json:"read_bytes,omitempty"`  // mean size of a read; 0 unknown, to a model 4 KiB
	WriteBytes float64 `json:"write_bytes,omitempty"` // mean size of a write or trim; 0 unknown, to a model 4 KiB
	Also       string  `json:"also,omitempty"`        // what else its author asks for, as the tool has it
	// Stage: it begins when every stream of a lower stage has ended.
	Stage int `json:"stage,omitempty"`
	// Brief: it may work for a part of the job's time only; see MarkBrief.
	Brief bool `json:"brief,omitempty"`
	// Worked is for how long it did, in seconds over all starts: of single VMs whose generator tells streams apart; 0
	// where that is not known.
	Worked float64 `json:"worked_seconds,omitempty"`
	// Submitting is how many operations were being handed over on average, where times are told without that.
	Submitting float64 `json:"submitting,omitempty"`

	// What matters until it has run is not in the record.
	TimeBased bool          `json:"-"`
	Pauses    bool          `json:"-"` // does something else between its operations, like flushing
	TrimShare float64       `json:"-"` // of operations
	Work      int64         `json:"-"` // bytes after which it ends by itself; 0: only time ends it
	Ends      bool          `json:"-"` // it ends by itself, nobody can say when
	Runtime   time.Duration `json:"-"` // after which it ends at the latest, Delay not included; 0: none
	Delay     time.Duration `json:"-"` // from the start of its stage to its first operation
	Think     time.Duration `json:"-"` // from an operation's end to the begin of the next in its place, a mean
}

// MarkBrief returns the streams of a job, each marked when it may work for a part only of the time that they take: it
// pauses, ends with its size, or begins or ends at a time of its own.
func MarkBrief(streams []Stream) []Stream {
	streams = slices.Clone(streams)
	for i := range streams {
		l := &streams[i]
		l.Brief = l.Pauses || len(streams) > 1 && l.Work > 0 || slices.ContainsFunc(streams, func(o Stream) bool {
			return l.Runtime != o.Runtime || l.Delay != o.Delay || l.Stage != o.Stage
		})
	}
	return streams
}

// Does reports whether the stream is expected to do an operation. Of blocks the stream says it; trims are rare.
func (l Stream) Does(o Operation) bool {
	switch o.Block {
	case BlockRead:
		return l.Reads
	case BlockWrite:
		return l.Writes
	case BlockMixed:
		return l.Reads || l.Writes
	}
	return o.Block == ""
}

// Skew says how unevenly random offsets fall on an extent.
type Skew struct {
	Kind  SkewKind
	Value float64 // theta of Zipf, h of Pareto
}

// SkewKind is a family of distributions of offsets.
type SkewKind string

// The families there are.
const (
	Uniform SkewKind = ""
	Zipf    SkewKind = "zipf"   // the i-th hottest block is asked for in proportion to i^-theta
	Pareto  SkewKind = "pareto" // a share h of the extent gets 1-h of the operations, at every scale
)

// String is a skew as fio writes it, "" of an even spread.
func (s Skew) String() string {
	if s.Kind == Uniform {
		return ""
	}
	return string(s.Kind) + ":" + strconv.FormatFloat(s.Value, 'g', -1, 64)
}

// MarshalText is String.
func (s Skew) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String gives; of another text it keeps the kind.
func (s *Skew) UnmarshalText(text []byte) error {
	kind, value, _ := strings.Cut(string(text), ":")
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		number = 0
	}
	*s = Skew{Kind: SkewKind(kind), Value: number}
	return nil
}
