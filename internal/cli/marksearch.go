package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
	"plimsoll/unit"
)

// startShare is where a search begins, of what a run without a rate did: its double is an overload for sure.
const startShare = 0.6

// searched is how far a search has come under one condition.
type searched struct {
	condition experiment.Condition // "": the scenario as it is written
	settings  mark.Settings
	probes    []mark.Probe
	scale     float64 // operations per second offered by 1 of the variable
	free      float64 // operations per second of the run without a rate; 0: none
	read      bool    // a run was, so that the unit is known
	seconds   float64 // for which the workload ran in the last run
}

// searched reads the runs that were made, of each condition apart. With an error it gives what the others say where
// runs cannot be judged, and nil where none can be read.
func (sd *sides) searched(folder *experiment.Folder) ([]searched, error) {
	r := folder.Record()
	m := r.Mark
	lines := make([]searched, max(1, len(m.Conditions)))
	for i := range lines {
		lines[i].settings = mark.Settings{Probes: m.Probes, Within: m.Within, Unit: m.Unit, Count: m.Counts()}
		if len(m.Conditions) > 0 {
			lines[i].condition = m.Conditions[i]
		}
	}
	_, limits, err := markLimits(m.Limits, m.Workload)
	if err != nil {
		return nil, err
	}
	progress, err := folder.Progress()
	if err != nil {
		return nil, err
	}
	var unread []error
	for _, planned := range r.Sequence {
		id, done := progress.Done[planned.Sequence]
		if !done {
			continue
		}
		cell := r.Cell(planned.Cell)
		s := &lines[max(slices.Index(m.Conditions, conditionOf(cell)), 0)]
		if err := s.add(sd, folder, id, cell, limits); err != nil {
			unread = append(unread, err)
		}
	}
	for i := range lines {
		lines[i].begin(m, lines[0])
	}
	return lines, errors.Join(unread...)
}

// conditionOf is what a run of a search was under.
func conditionOf(c experiment.Cell) experiment.Condition {
	if len(c.Levels) < 2 {
		return ""
	}
	return experiment.Condition(fmt.Sprint(c.Levels[1].Value))
}

// add makes a probe of a run.
func (s *searched) add(sd *sides, folder *experiment.Folder, id string, cell experiment.Cell,
	limits []result.Assert) error {
	m := folder.Record().Mark
	run, err := sd.comparedRun("mark", filepath.Join(folder.RunsDir(), id))
	if err != nil {
		return err
	}
	if beside := s.condition.Beside(); beside != "" {
		if err := stayed(run.Data, beside, m.Workload); err != nil {
			return exit.Errorf(exit.Failed, "", "mark: run %s: condition %q: %w", id, string(s.condition), err)
		}
	}
	for _, w := range run.Data.Workloads {
		if w.Name == m.Workload && !w.Prefill && w.VM == "" {
			s.seconds = w.Judged().Seconds()
		}
	}
	value, _ := strconv.ParseFloat(fmt.Sprint(cell.Levels[0].Value), 64)
	if value == 0 {
		s.settings.Unit, s.read, s.scale = mark.UnitOf(run.Data, m.Workload), true, jobsOf(run.Data, m.Workload)
		s.free, err = achieved(run.Data, m.Workload)
		return err
	}
	var p mark.Probe
	if m.Counts() {
		p, err = mark.JudgeVMs(run.Data, foundIn(folder, id), m.Workload, limits, value)
		s.scale = 1
	} else {
		p, err = mark.Judge(run.Data, foundIn(folder, id), m.Workload, limits)
		s.settings.Unit, s.scale = mark.UnitOf(run.Data, m.Workload), p.Offered/value
	}
	if err != nil {
		return exit.Errorf(exit.Refused, "", "mark: run %s: %w", id, err)
	}
	s.probes, s.read = append(s.probes, p), true
	return nil
}

// jobsOf is how many jobs of fio a workload has in all its VMs, each of which gets the rate: 0 where that is not seen
// by the depth that a search gives them.
func jobsOf(d *result.Data, workload string) float64 {
	depth := 0
	for _, w := range d.Workloads {
		if w.Name == workload && !w.Prefill && w.VM != "" && w.Engine == "fio" {
			for _, l := range w.Lanes {
				depth += l.Depth
			}
		}
	}
	if depth%markDepth != 0 {
		return 0
	}
	return float64(depth / markDepth)
}

// stayed is an error when the workload beside did not run for as long as the one that is measured.
func stayed(d *result.Data, beside, workload string) error {
	var other, own result.Workload
	for _, w := range d.Workloads {
		switch {
		case w.VM != "" || w.Prefill:
		case w.Name == beside:
			other = w
		case w.Name == workload:
			own = w
		}
	}
	if early := own.End.Sub(other.End); other.Name == "" || early.Seconds() > 0.05*own.Seconds() {
		return fmt.Errorf("%q did not run beside %q to its end (it ended %s before), so this is no mark of that",
			beside, workload, unit.Duration(early))
	}
	return nil
}

// begin says where the search of a condition begins: as asked, or by what is known of the first condition.
func (s *searched) begin(m *experiment.Mark, first searched) {
	s.scale = cmp.Or(s.scale, first.scale, 1)
	switch {
	case m.Counts():
	case m.Seconds > 0:
		s.settings.Least = needed(m) / (longest * m.Seconds)
	case s.seconds > 0: // a scenario's runs are as long as it says
		s.settings.Least = needed(m) * fewBeyond / beyond / s.seconds
	}
	s.settings.Unit, s.read = cmp.Or(s.settings.Unit, first.settings.Unit), s.read || first.read
	s.settings.Start, s.settings.Most = m.Start*s.scale, m.Most*s.scale
	if m.Start == 0 {
		s.settings.Start = startShare * first.free
	}
	if s.condition == first.condition {
		return
	}
	if found := mark.Conclude(first.settings, first.probes); found.Verdict == mark.Found {
		if s.settings.Start = startShare * *found.Rate; m.Counts() {
			s.settings.Start = max(1, math.Round(s.settings.Start))
		}
	}
}

// foundIn are the findings of a probe; none where they cannot be read.
func foundIn(folder *experiment.Folder, id string) []result.Finding {
	run, err := result.Open(filepath.Join(folder.RunsDir(), id))
	if err != nil {
		return nil
	}
	found, _ := run.Findings() // a run without them is judged by its figures
	return found
}

// achieved is what a workload did per second.
func achieved(d *result.Data, workload string) (float64, error) {
	for _, w := range d.Workloads {
		if w.Name == workload && !w.Prefill && w.VM == "" {
			w = w.Judged()
			n := 0.0
			for _, o := range w.Ops {
				n += float64(o.Count)
			}
			if n > 0 && w.Seconds() > 0 {
				return n / w.Seconds(), nil
			}
		}
	}
	return 0, exit.Errorf(exit.Failed, "say --from where to begin",
		"mark: workload %q did nothing in its run without a rate",
		workload)
}

// search makes probes until there is an answer, and prints it.
func (rn *runner) search(stop *console.Stopper, folder *experiment.Folder, c experiment.Conduct, waits waitFlags) error {
	stop.Tell(func() { rn.Sayf("stopping: the probe under way is torn down; plimsoll resume goes on") })
	if rn.warned == nil {
		rn.warned = map[string]bool{}
	}
	m := folder.Record().Mark
	var ended error
	var spent time.Duration // on so many probes
	made := 0
	lines, unjudged := rn.sides.searched(folder) // of an earlier time: not what ends this one
	if lines == nil {
		return unjudged
	}
	for ended == nil {
		at, value, why := nextOf(lines, folder.Record())
		if at < 0 {
			break
		}
		if progress, err := folder.Progress(); err != nil {
			return exit.Errorf(exit.Failed, "", "mark: %w", err)
		} else if len(progress.Left) == 0 {
			levels := []any{levelOf(value, m.Whole)}
			if len(m.Conditions) > 0 {
				levels = append(levels, string(m.Conditions[at]))
			}
			if _, err := folder.Extend(levels...); err != nil {
				return exit.Errorf(exit.Failed, "", "mark: %w", err)
			}
		}
		sayProbe(rn.Console, lines[at], value, why, left(lines, m.Probes, spent, made))
		began := rn.Clock.Now()
		_, _, ended = c.Run(stop.Ctx, folder, &cellRunner{runner: rn, folder: folder, record: folder.Record(), stop: stop,
			waits: waits})
		spent, made = spent+rn.Clock.Now().Sub(began), made+1
		progress, err := folder.Progress()
		if err == nil && len(progress.Failed) > 0 && ended == nil {
			for _, reason := range progress.Failed {
				hint := "plimsoll resume " + folder.Record().ID + " makes it again"
				if m.Counts() {
					hint += "; --to ends a search at what there is room for"
				}
				err = exit.Errorf(exit.Failed, hint, "mark: a probe failed: %s", reason)
			}
		}
		after, unread := rn.sides.searched(folder)
		if unread != nil && unjudged != nil && unread.Error() == unjudged.Error() {
			unread = nil
		}
		if ended = errors.Join(ended, err, unread); after == nil {
			return ended
		}
		if n := len(lines[at].probes); len(after[at].probes) > n {
			rn.Sayf("         %s", outcome(after[at].probes[n], after[at].settings.Unit))
		}
		lines = after
	}
	return errors.Join(ended, rn.sides.markResult(folder, ended == nil))
}

// left says how long the search may still take: it is over with this probe, or when no more are allowed. "" before the
// first has shown how long one takes.
func left(lines []searched, probes int, spent time.Duration, made int) string {
	if made == 0 || spent < time.Duration(made)*time.Second { // a simulation takes no time to speak of
		return ""
	}
	most := 0
	for _, s := range lines {
		most += max(0, probes-len(s.probes))
	}
	one := spent / time.Duration(made)
	text := unit.Duration(one.Round(time.Second)).String()
	if most > 1 {
		text += " to " + unit.Duration((time.Duration(most) * one).Round(time.Second)).String()
	}
	return "; " + text + " left"
}

// nextOf is the next probe of a search, and the condition that it is of; below 0 when it is over. When all conditions
// have their answer the first is looked at once more, so that what has drifted since is not taken for what they cost.
func nextOf(lines []searched, r experiment.Record) (at int, value float64, why string) {
	for i, s := range lines {
		if value, why := s.next(r.Mark); value >= 0 {
			return i, value, why
		}
	}
	first := lines[0]
	if len(lines) < 2 || conditionOf(r.Cell(r.Sequence[len(r.Sequence)-1].Cell)) == first.condition {
		return -1, 0, ""
	}
	found := mark.Conclude(first.settings, first.probes)
	if found.Verdict != mark.Found {
		return -1, 0, ""
	}
	rate := 0.0
	for _, p := range first.probes {
		if p.Held && p.Offered <= *found.High {
			rate = max(rate, p.Offered)
		}
	}
	if rate == 0 {
		return -1, 0, ""
	}
	return 0, rate / first.scale, "the first condition once more, for drift"
}

// levelOf keeps whole numbers whole, as most options want them.
func levelOf(value float64, whole bool) any {
	if whole || value >= 100 || value == math.Trunc(value) {
		return int64(math.Round(value))
	}
	return value
}

// next is the variable's next value, below 0 when the search is over.
func (s searched) next(m *experiment.Mark) (value float64, why string) {
	if len(s.probes) == 0 {
		if s.settings.Start == 0 {
			return 0, "without a rate, to see where to begin"
		}
		if value = s.settings.Start / s.scale; m.Whole {
			value = max(math.Round(value), 1)
		}
		return value, "the first"
	}
	step := mark.Next(s.settings, s.probes)
	if step.Rate == 0 {
		return -1, ""
	}
	if value = step.Rate / s.scale; m.Whole {
		value = max(math.Round(value), 1)
	}
	return value, step.Why
}

func sayProbe(con *console.Console, s searched, value float64, why, left string) {
	say := func(rate float64) string { return mark.InUnit(rate, s.settings.Unit) }
	if s.settings.Unit == "" && !s.read { // nothing has said yet what is done
		say = func(rate float64) string { return mark.InUnit(rate, "a second") }
	}
	offered, under := say(value*s.scale), ""
	if s.condition != "" {
		under = ", " + string(s.condition)
	}
	if value == 0 {
		con.Sayf("probe 0%s: %s", under, why)
		return
	}
	text := ""
	if low, high := bounds(s.probes); low > 0 || high > 0 {
		text = "; so far "
		switch {
		case high == 0:
			text += "above " + say(low)
		case low == 0:
			text += "below " + say(high)
		default:
			text += fmt.Sprintf("between %s and %s", say(low), say(high))
		}
	}
	con.Sayf("probe %d%s: %s (%s%s%s)", len(s.probes)+1, under, offered, why, text, left)
}

// bounds are the highest rate that held below all that broke, and the lowest that broke; 0 where there is none.
func bounds(probes []mark.Probe) (low, high float64) {
	for _, p := range probes {
		if !p.Held && (high == 0 || p.Offered < high) {
			high = p.Offered
		}
	}
	for _, p := range probes {
		if p.Held && (high == 0 || p.Offered < high) {
			low = max(low, p.Offered)
		}
	}
	return low, high
}

// outcome says in a line how a probe came out, with rates in their unit.
func outcome(p mark.Probe, of string) string {
	switch {
	case p.Generator != "":
		return "the generator gave way: " + p.Generator
	case p.Behind && p.Margin == 0:
		return fmt.Sprintf("broken: %s achieved", mark.InUnit(p.Achieved, of))
	case p.Limit == mark.RateMet && !p.Held:
		return "broken: the rate is not met"
	case p.Held:
		return fmt.Sprintf("held: %s at %.0f %% of its limit", p.Limit, 100/p.Margin)
	case p.Margin > 0 && p.Margin < 0.01:
		return fmt.Sprintf("broken: %s at %s times its limit", p.Limit,
			strings.TrimSuffix(unit.Rate(math.Round(1/p.Margin)).String(), " IOPS"))
	case p.Margin > 0:
		return fmt.Sprintf("broken: %s at %.3g times its limit", p.Limit, 1/p.Margin)
	}
	return "broken: " + p.Limit
}
