package view

import (
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// stillBelow is the share of a VM's own level below which it stands still.
const stillBelow = 0.05

// StoodStill is how many VMs of a workload stood still, of how many, and for how long the one that did so longest.
type StoodStill struct {
	VMs, Of int
	Longest float64 // seconds
	Unknown bool    // of several VMs nothing is known of the single ones
	Unheard bool    // all of them were lost: they reported nothing, and what they did is not known
}

// Say is "2 of its 4 VMs stood still, for 30 s", for a sentence.
func (s StoodStill) Say() string {
	did := "stalled"
	if s.Unheard {
		did = "reported nothing"
	}
	which := fmt.Sprintf("%d of its %d VMs %s", s.VMs, s.Of, did)
	if s.VMs == s.Of {
		which = fmt.Sprintf("each of its %d VMs %s, not all at once", s.Of, did)
	}
	if s.VMs == 1 {
		return which + " for " + SayDuration(s.Longest)
	}
	return which + ", the longest for " + SayDuration(s.Longest)
}

// VMTrack returns what all workloads of a VM did.
func (v *Run) VMTrack(vm, group string) *Track {
	if v.ofVM == nil {
		v.ofVM = map[string][]*result.Series{}
		for i := range v.Data.Series {
			s := &v.Data.Series[i]
			v.ofVM[s.VM] = append(v.ofVM[s.VM], s)
		}
	}
	return v.sum(slices.Values(v.ofVM[vm]), "", func(s *result.Series) bool {
		return s.Group == group && s.Workload == ""
	})
}

// StoodStill looks at the VMs of workloads from one moment to another: which of them did nothing for so long that at
// the level of theirs before it 20 operations or more were not done. It counts those of several only: what a single one
// does returns what the whole does.
func (v *Run) StoodStill(loads []*Load, before, from, to time.Time) StoodStill {
	var out StoodStill
	var names []string
	group, seen, lost := "", map[string]bool{}, map[string]bool{}
	for _, l := range loads {
		for _, p := range l.Parts {
			if p.Merged() {
				continue
			}
			lost[p.VM] = lost[p.VM] || p.Ended == result.Lost && !p.End.After(from.Add(v.Silence(l)))
			if group = l.Group; !seen[p.VM] {
				names, seen[p.VM] = append(names, p.VM), true
			}
		}
	}
	out.Of = len(names)
	if out.Of < 2 {
		return StoodStill{}
	}
	known := false
	for _, vm := range names {
		c := v.VMTrack(vm, group)
		if c == nil {
			continue
		}
		level, _ := FiniteOf(c.Between(before, from).Ops)
		if len(level) == 0 {
			continue
		}
		median := resample.Median(level)
		if known = true; !(median > 0) {
			continue
		}
		if s := c.Between(from, to).longestStill(stillBelow * median); s*median >= FewestPerStep {
			out.Unheard = lost[vm] && (out.Unheard || out.VMs == 0)
			out.VMs++
			out.Longest = max(out.Longest, s)
		}
	}
	out.Unknown = !known
	return out
}

// longestStill is for how many seconds a track was below a level at a stretch; a gap is nothing done.
func (c *Track) longestStill(level float64) (seconds float64) {
	run := 0.0
	for _, x := range c.Ops {
		if math.IsNaN(x) || x < level {
			run += c.Step
			seconds = max(seconds, run)
		} else {
			run = 0
		}
	}
	return seconds
}

// Lone reports whether a workload is the only one of its group while it runs, so that what its VMs do is what it does.
func (v *Run) Lone(l *Load) bool {
	from, to := l.Span()
	return !slices.ContainsFunc(v.Loads, func(o *Load) bool {
		begun, over := o.Span()
		return o != l && o.Group == l.Group && begun.Before(to) && from.Before(over)
	})
}
