package fault

import (
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// saysFailures tells of the operations that failed. Where some did outside of the time that was measured, or of
// workloads that the fault is not measured by, their absence is not told as that of all.
func (o *Comeback) saysFailures(v *view.Run, all []*view.Load) string {
	part := func(is func(*result.Workload) bool) func(*view.Load) bool {
		return func(l *view.Load) bool { return slices.ContainsFunc(l.Parts, is) }
	}
	switch {
	case o.failed > 0:
		return view.Plural(int(min(o.failed, math.MaxInt)), "operation") + " failed"
	case slices.ContainsFunc(all, part(func(p *result.Workload) bool { return p.FailuresUnknown })):
		return "whether operations failed is not known"
	case slices.ContainsFunc(v.Loads, part(func(p *result.Workload) bool { return p.Errors > 0 })):
		return "none of its own operations failed in that time"
	}
	return "no errors reported"
}

// failedBetween are the operations of a workload that failed between two moments, as near as its windows tell; all of
// them where they do not.
func failedBetween(l *view.Load, from, to time.Time) (n uint64) {
	if w := l.Whole(); w != nil && len(w.Windows) > 0 {
		for _, win := range w.Windows {
			middle := win.Start.Add(win.End.Sub(win.Start) / 2)
			if middle.After(from) && win.Start.Add(min(oneFault, win.End.Sub(win.Start)/2)).Before(to) {
				n += win.Errors
			}
		}
		return n
	}
	for _, p := range l.Parts {
		n += p.Errors
	}
	return n
}
