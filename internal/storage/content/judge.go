package content

import (
	"fmt"
	"math"
)

// Expectation holds what was asked of data. Percentages are 0 to 100; below 0 they were not asked for.
type Expectation struct {
	CompressibilityPercent float64
	DedupePercent          float64
	DedupeBlockBytes       int
	// TolerancePoints is how many percentage points either may be off.
	TolerancePoints float64
}

// Met says whether an expectation holds.
type Met string

// What a verdict may be.
const (
	Yes     Met = "met"
	No      Met = "not met"
	Unknown Met = "cannot be told"
)

// Verdict holds what a report says of one thing that was asked.
type Verdict struct {
	Subject  string `json:"subject"` // compressibility, dedupe, zeros
	Met      Met    `json:"met"`
	Sentence string `json:"sentence"`
}

// mostZeros is the share of zeros, holes included, from which they are told: storage keeps no zeros, so whatever else
// was asked is not what it holds.
const mostZeros = 0.01

// Judge holds a report against what was asked.
func (r *Report) Judge(e Expectation) []Verdict {
	var out []Verdict
	say := func(subject string, met Met, format string, args ...any) {
		out = append(out, Verdict{subject, met, fmt.Sprintf(format, args...)})
	}
	looked := r.ReadBytes + max(r.HoleBytes, 0)
	none := float64(r.ZeroBytes+max(r.HoleBytes, 0)) / float64(max(looked, 1))
	switch {
	case looked == 0:
		say("zeros", Unknown, "nothing was read")
		return out
	case none > mostZeros:
		say("zeros", No, "%.1f %% of it are zeros or were never written: storage keeps nothing of that", 100*none)
	default:
		say("zeros", Yes, "%.1f %% of it are zeros or were never written", 100*none)
	}
	if e.CompressibilityPercent >= 0 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range r.Compression {
			if c.InBytes > 0 {
				low, high = min(low, 100*(c.Share-c.Error95)), max(high, 100*(c.Share+c.Error95))
			}
		}
		want, off := e.CompressibilityPercent, e.TolerancePoints
		switch {
		case math.IsInf(low, 1):
			say("compressibility", Unknown, "%g %% asked for, and there is nothing but zeros", want)
		case want < low-off:
			say("compressibility", No, "compressors save %.1f %% at least, %g %% was asked for%s", low, want, r.lines())
		case want > high+off:
			say("compressibility", No, "compressors save %.1f %% at most, %g %% was asked for", high, want)
		default:
			say("compressibility", Yes, "compressors save %.1f to %.1f %%, %g %% was asked for%s", low, high, want,
				r.lines())
		}
	}
	if e.DedupePercent >= 0 {
		for _, d := range r.Duplicates {
			if d.BlockBytes == e.DedupeBlockBytes {
				part := ""
				if d.AtLeast {
					part = "; only a part was looked at, so it may be more"
				}
				say("dedupe", e.deduped(d), "%.1f %% of the blocks of %d bytes repeat others, %g %% was asked for%s",
					100*d.Share, d.BlockBytes, e.DedupePercent, part)
			}
		}
	}
	return out
}

func (e Expectation) deduped(d Duplicates) Met {
	off := e.TolerancePoints + 100*d.Error95
	switch share := 100 * d.Share; {
	case d.Blocks == 0:
		return Unknown
	case share > e.DedupePercent+off:
		return No
	case share >= e.DedupePercent-off:
		return Yes
	case d.AtLeast:
		return Unknown
	}
	return No
}

// lines says when what compresses is mostly zeros.
func (r *Report) lines() string {
	within := float64(r.ZeroLineBytes-r.ZeroBytes) / float64(max(r.ReadBytes-r.ZeroBytes, 1))
	if within < mostZeros {
		return ""
	}
	return fmt.Sprintf("; %.0f %% are zeros within blocks, which storage may suppress", 100*within)
}
