package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
	"plimsoll/unit"
)

// RatedLine is a line of a data sheet and the load that measured it.
type RatedLine struct {
	Name      string  `json:"name"`
	Workload  string  `json:"workload"`
	Unit      string  `json:"unit"`  // bytes/s, ops/s or s
	Rated     float64 `json:"rated"` // in Unit
	Block     int64   `json:"block_bytes"`
	Depth     int     `json:"in_flight"`            // all processes together
	QueueMost int     `json:"queue_most,omitempty"` // that the interface takes, 0: not known
	Writes    bool    `json:"writes"`
}

// Rated is a line measured.
type Rated struct {
	RatedLine
	Measured *CellValue        `json:"measured"`        // nil where nothing was
	Ratio    float64           `json:"ratio,omitempty"` // measured over rated; of times above 1 is worse
	Interval resample.Interval `json:"interval"`        // of the ratio
	Verdict  RatedVerdict      `json:"verdict"`
	Reasons  []string          `json:"reasons,omitempty"` // why it may fall short, or is more than can be
}

// RatedVerdict says how a figure stands to the one rated.
type RatedVerdict string

// Verdicts on lines of a data sheet. Meets: within RatedTolerance of it, or better by no more. Above: better by more
// than that with the whole interval, which one device cannot do by itself if its sheet is right.
const (
	Meets        RatedVerdict = "meets"
	Below        RatedVerdict = "below"
	Above        RatedVerdict = "above"
	Unclear      RatedVerdict = "inconclusive"
	NothingRated RatedVerdict = "not measured"
)

// RatedTolerance is how far a figure may lie from the rated one and still meet it.
const RatedTolerance = 0.05

// Rate holds what was measured against the lines of a data sheet. Runs are those of the experiment, whose facts and
// findings say why a line may fall short.
func (x *Experiment) Rate(lines []RatedLine, d Design) {
	for _, l := range lines {
		r := Rated{RatedLine: l, Verdict: NothingRated, Interval: resample.None("nothing was measured")}
		if v, times, ok := x.figure(l); ok {
			r.Measured = &v
			r.Ratio, r.Interval = v.Value/l.Rated, v.Interval.Map(func(y float64) float64 { return y / l.Rated })
			r.Verdict = RatedVerdictOf(r.Ratio, r.Interval, l.Unit == "s")
			if r.Verdict != Meets {
				r.Reasons = x.reasons(r, times, d)
			}
		}
		x.Rated = append(x.Rated, r)
	}
	if slices.ContainsFunc(x.Rated, func(r Rated) bool { return r.Verdict != Meets }) {
		x.Notes = append(places(d.Made[0].Manifest.Environment), x.Notes...)
	}
}

// RatedVerdictOf judges a ratio of measured to rated by its interval, or by itself where it has none.
func RatedVerdictOf(ratio float64, in resample.Interval, times bool) RatedVerdict {
	low, high := ratio, ratio
	if in.Valid() {
		low, high = in.Low, in.High
	}
	if times { // less is better
		low, high = 1/high, 1/max(low, math.SmallestNonzeroFloat64)
	}
	switch {
	case high < 1-RatedTolerance:
		return Below
	case low > 1+RatedTolerance:
		return Above
	case low >= 1-RatedTolerance:
		return Meets
	}
	return Unclear
}

// figure returns what was measured of a line, and the mean time beside it.
func (x *Experiment) figure(l RatedLine) (v CellValue, times float64, ok bool) {
	if len(x.Cells) == 0 {
		return v, 0, false
	}
	for _, c := range x.Cells[0].Values {
		if c.Workload != l.Workload {
			continue
		}
		mean := c.Unit == "s" && strings.Contains(c.Name, " mean ")
		if mean {
			times = c.Value
		}
		scale := 0.0
		switch {
		case l.Unit == "bytes/s" && c.Unit == "ops/s":
			scale = float64(l.Block)
		case l.Unit == "ops/s" && c.Unit == "ops/s", l.Unit == "s" && mean:
			scale = 1
		}
		if scale == 0 || ok {
			continue
		}
		by := func(y float64) float64 { return y * scale }
		v, ok = c, true
		v.Unit, v.Value, v.Interval, v.Repeats = l.Unit, by(c.Value), c.Interval.Map(by), slices.Clone(c.Repeats)
		for i := range v.Repeats {
			v.Repeats[i] = by(v.Repeats[i])
		}
		if l.Unit == "bytes/s" {
			v.Name = strings.Replace(c.Name, "IOPS", "bandwidth", 1)
		}
	}
	return v, times, ok
}

// tellingChecks are of findings that say what bounded a load.
var tellingChecks = []string{"generator-cpu", "client-limit", "host-cpu", "cpu-starved", "bus-limit", "io-limit",
	"in-memory", "too-fast", "never-written", "device-counters"}

// reasons are what of the facts and findings of the runs may explain a line that is not met, what was found before what
// is only known of such places.
func (x *Experiment) reasons(r Rated, times float64, d Design) (out []string) {
	say := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	short := r.Verdict == Below || r.Verdict == Unclear
	environment := d.Made[0].Manifest.Environment
	wanted := r.Rated
	if r.Unit == "bytes/s" {
		wanted = r.Rated / float64(r.Block)
	}
	if short && r.Unit != "s" && times > 0 {
		needed := wanted * times
		if needed > float64(r.Depth)*(1+RatedTolerance) {
			text := fmt.Sprintf("queue depth: with the mean time measured, %.4g operations would have to be in flight for the rated "+
				"figure, and %d were asked for", needed, r.Depth)
			switch {
			case r.QueueMost > 0 && needed > float64(r.QueueMost):
				text += fmt.Sprintf("; the interface queues %d, so that the time itself is the limit", r.QueueMost)
			default:
				text += "; where more in flight does not help, the time itself is the limit"
			}
			say("%s", text)
		}
	}
	for _, f := range result.Find(environment, result.LinkCeiling) {
		rate := r.Rated
		if r.Unit == "ops/s" {
			rate *= float64(r.Block)
		}
		if short && r.Unit != "s" && f.Number > 0 && rate > f.Number*(1-RatedTolerance) {
			say("link: %s (%s) carries at most %s", f.Name, f.Value, unit.Bandwidth(f.Number).Decimal())
		}
	}
	for _, f := range environment {
		if f.Name == "largest request (KiB)" && f.Value != "" {
			var kib int64
			if _, err := fmt.Sscan(f.Value, &kib); err == nil && kib > 0 && r.Block > kib<<10 {
				say("block split: blocks of %s reach the device as requests of at most %s", unit.Bytes(r.Block),
					unit.Bytes(kib<<10))
			}
		}
	}
	for _, c := range x.Cells[:1] {
		for _, l := range c.Loads {
			if l.Workload != r.Workload {
				continue
			}
			if agrees, known := l.Little(); known && !agrees {
				say("load generator: %.3g operations were in flight on average, not %d: it did not keep up, and its own time "+
					"between operations counts", l.InFlight, l.Asked)
			}
			if l.Steady.No > 0 {
				say("not steady: %s", l.Steady.Why)
			}
		}
	}
	for _, m := range d.Made {
		for _, f := range m.Findings {
			about := f.Subject == r.Workload || f.Subject == "run" || f.Subject == "host"
			if about && slices.Contains(tellingChecks, f.Check) && f.Severity != result.Passed && f.Severity != "" {
				say("%s: %s", f.Check, strings.TrimSuffix(f.Sentence, "."))
				break
			}
		}
	}
	if r.Writes && short {
		say("not preconditioned: only the file worked on was filled, once; a drive whose cells must be erased first writes " +
			"slower than a sheet for a fresh one says, and slower still once a fast (SLC) part is full or it is warm")
	}
	if r.Verdict == Above {
		say("more than one such device can do if the sheet is right: a cache answered, or several devices share the work")
		if r.Writes {
			say("a fast (SLC) part of the drive may not have been full yet: a longer --duration and a larger --size tell")
		}
	}
	return out
}

// places are facts of where the file lies that stand between it and a device as its sheet describes it.
func places(environment []result.Fact) (out []string) {
	for _, f := range environment {
		switch {
		case f.Name == "file system" && strings.HasPrefix(f.Group, "storage") && f.Value != "":
			out = append(out, "Measured through a file on "+f.Value+", not on the device itself.")
		case strings.Contains(f.Missing, "virtual disk"):
			out = append(out, "A virtual disk: what is under it, who shares it and what bounds it, the hypervisor knows.")
		}
	}
	return out
}
