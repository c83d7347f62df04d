package view

import (
	"maps"
	"math"
	"slices"

	"plimsoll/internal/analysis/stage"
)

// What makes a run a scale-out test: closed loops alike in the size of their operations, joining one after another.
const (
	fewestStages = 4
	alikeSize    = 0.10 // relative difference in the mean size of operations
)

// Step is one stage of the growing load with the time its operations took.
type Step struct {
	stage.Stage
	Response float64 // mean seconds, weighted by operations; 0 unknown
}

// Stages finds the growing load of a scale-out test; nil when the run is none.
func (v *Run) Stages() []Step {
	if v.staged == nil {
		s := v.findStages()
		v.staged = &s
	}
	return *v.staged
}

func (v *Run) findStages() []Step {
	if !v.alike() {
		return nil
	}
	return v.StagesOf(v.Whole())
}

// Whole returns what stands for all workloads of the run together.
func (v *Run) Whole() Quantity {
	if slices.ContainsFunc(v.Loads, func(l *Load) bool { return l.Count() > 0 }) || len(v.Loads) == 0 {
		return OperationsRate(Occurred(v.Loads))
	}
	return v.Loads[0].Main()
}

// StagesOf are the stages of the growing load by one quantity; nil when there are too few.
func (v *Run) StagesOf(q Quantity) []Step {
	var c *Track
	if q.Measure == "" {
		c = v.TotalTrack("")
	}
	var out []Step
	for _, s := range growing(stage.Of(v.Data, q.Measure)) {
		if !(s.Throughput.Value > 0) {
			return nil
		}
		one := Step{Stage: s}
		if c != nil {
			if part := c.Between(s.Start, s.End); part.Busy != nil {
				if r := FlowOf(part.Busy, part.Ops).Level(); IsFinite(r) && r > 0 {
					one.Response = r
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// ShortStages are the stages of a growing load of which too few have points enough to be Stages.
func (v *Run) ShortStages() []stage.Stage {
	if v.Stages() != nil || !v.alike() {
		return nil
	}
	return growing(stage.Short(v.Data, v.Whole().Measure))
}

// growing is the longest row of stages in which the load grows from each to the next: what ran before it, as a warm-up
// of all together, and what ends after it are not of the test. It is nil where that row is too short.
func growing(all []stage.Stage) (longest []stage.Stage) {
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Concurrency > all[to-1].Concurrency {
			to++
		}
		if to-from > len(longest) {
			longest = all[from:to]
		}
		from = to
	}
	if len(longest) < fewestStages {
		return nil
	}
	return longest
}

// alike reports whether all workloads are closed loops of operations alike, or report the same measures.
func (v *Run) alike() bool {
	type mix map[string]float64
	smallest, largest := math.Inf(1), 0.0
	var first mix // of the operations, and of measures their names
	for _, l := range v.Loads {
		for _, p := range l.Parts {
			n, _ := Totals(p.Ops)
			if n == 0 && len(p.Values) == 0 || Seconds(p) == 0 {
				continue
			}
			least, most := Depths(p.Streams)
			if most == 0 || least < most {
				return false // a rate is offered, or the depth is not known
			}
			var bytes float64
			shares := mix{}
			for _, o := range p.Ops {
				if o.Count == 0 {
					continue
				}
				bytes += float64(o.Bytes)
				shares[string(p.Block(o.Op))+" "+o.Op] = float64(o.Count) / float64(n)
			}
			for _, m := range p.Measures {
				shares[m.Name+" in "+m.Unit] = 1
			}
			if first == nil {
				first = shares
			}
			for _, name := range slices.Concat(slices.Collect(maps.Keys(first)), slices.Collect(maps.Keys(shares))) {
				if !(math.Abs(first[name]-shares[name]) <= alikeSize) {
					return false // the mix differs
				}
			}
			size := bytes / float64(max(n, 1))
			smallest, largest = min(smallest, size), max(largest, size)
		}
	}
	return first != nil && largest <= smallest*(1+alikeSize)
}
