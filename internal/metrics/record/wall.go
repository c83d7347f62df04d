package record

import (
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// stretch is a row of reports during which the tool's clock and its own time went on together.
type stretch struct {
	from    time.Duration // the tool's own time at its first report
	began   time.Duration // when the tool began, by its clock, as that report has it
	late    time.Duration // least time that a report was behind the tool's own time when it came
	reports int
}

const (
	// setBy is how far a clock must be set for it to be told from what passes between two readings of clocks.
	setBy = 250 * time.Millisecond
	// enough reports on both sides tell whether later ones come later.
	enough = 3
	// mostStretches: a tool with more does something else between its operations all the time.
	mostStretches = 64
)

// watchClock compares a report's time with the tool's own time and with when it came. It returns by how much the
// tool's clock was certainly set back since the report before: its own time does not hurry ahead.
func (j *Job) watchClock(rep workload.Report, now time.Time) (back time.Duration) {
	if rep.Time.IsZero() || rep.Elapsed <= 0 || len(j.stretches) > mostStretches {
		return 0
	}
	began, late := rep.Time.Add(-rep.Elapsed).Sub(j.start), now.Sub(j.start)-rep.Elapsed
	// A tool that waits for a processor between reading its own time and the clock makes a report or two that are off
	// alone: the stretch before them goes on.
	for n := len(j.stretches); n > 0; n-- {
		s := &j.stretches[n-1]
		if (began - s.began).Abs() < setBy {
			j.stretches = j.stretches[:n]
			s.late = min(s.late, late)
			s.reports++
			return 0
		}
		if s.reports >= enough {
			break
		}
	}
	if n := len(j.stretches); n > 0 {
		back = max(0, j.stretches[n-1].began-began)
	}
	j.stretches = append(j.stretches, stretch{rep.Elapsed, began, late, 1})
	return back
}

// ClockSet are the moments at which the tool's clock was set while the job went on. Where its clock goes ahead of its
// own time it was set, or the tool rested: then all later reports come as much later. Where it goes back it was set,
// but after the first few reports, which may have been made late.
func (j *Job) ClockSet() (list []result.ClockSet) {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	if len(j.stretches) > mostStretches {
		return nil
	}
	for i, before := 1, 0; i < len(j.stretches); i++ {
		a, b := j.stretches[before], j.stretches[i]
		moved, later := b.began-a.began, b.late-a.late
		if moved > 0 && b.reports < enough {
			continue
		}
		if before = i; a.reports < enough || moved > 0 && later > moved/2 {
			continue
		}
		list = append(list, result.ClockSet{AtSeconds: b.from.Seconds(),
			Seconds: moved.Round(time.Millisecond).Seconds()})
	}
	return list
}
