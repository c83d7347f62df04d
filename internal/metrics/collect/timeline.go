package collect

import (
	"cmp"
	"time"

	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// timeline holds what the journal says about time.
type timeline struct {
	phases []result.Span
	marks  []result.Mark
	starts map[string][]time.Time // at which a workload as a whole was started, by its name
	first  time.Time              // of the journal's first event
	last   time.Time              // newest moment known
}

// readTimeline makes phases and marks of the journal. A phase that never ended (the process was killed) ends at the
// newest moment known from the journal or the metrics.
func readTimeline(m result.Manifest, events []result.Event, newestPoint time.Time) timeline {
	tl := timeline{last: tally.Later(m.Created, newestPoint), starts: map[string][]time.Time{}}
	closed := true
	for _, e := range events {
		tl.last = tally.Later(tl.last, e.Time)
		if tl.first.IsZero() {
			tl.first = e.Time
		}
		switch e.Kind {
		case result.KindPhase, result.KindRunEnd:
			if n := len(tl.phases); n > 0 && !closed {
				tl.phases[n-1].End = e.Time
			}
			closed = e.Kind == result.KindRunEnd
			if !closed {
				tl.phases = append(tl.phases, result.Span{Name: e.Phase, Start: e.Time})
			}
		case result.KindAnnotation, result.KindFault:
			m := result.Mark{Time: e.Time, Kind: e.Kind, Text: e.Text}
			if e.Kind == result.KindFault {
				m.Node = e.Name
				m.State = cmp.Or(e.Data.Power, e.Data.State)
			}
			tl.marks = append(tl.marks, m)
		case result.KindWorkload:
			if name := e.Data.Workload; e.Data.State == result.WorkloadStart && e.Data.VM == "" {
				tl.starts[name] = append(tl.starts[name], e.Time)
			}
		}
	}
	if n := len(tl.phases); n > 0 && !closed {
		tl.phases[n-1].End = tl.last
	}
	return tl
}

// window is from the start of the run phase to its end; the whole run when it never began. Whole seconds, as queries
// are.
func (tl timeline) window(m result.Manifest) (start, end time.Time, ran bool) {
	start, end = m.Created, tl.last
	if start.IsZero() { // a damaged manifest
		start = tl.first
	}
	for _, p := range tl.phases {
		if p.Name == "run" {
			start, end, ran = p.Start, p.End, true
		}
	}
	start = start.UTC().Truncate(time.Second)
	end = end.UTC().Truncate(time.Second)
	return start, tally.Later(end, start), ran
}

// runStart is the moment at which the run phase began, zero when it never did.
func (tl timeline) runStart() (start time.Time) {
	for _, p := range tl.phases {
		if p.Name == "run" {
			start = p.Start
		}
	}
	return start
}
