package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/run/plan"
	"plimsoll/unit"
)

// search makes probes until there is an answer, and prints it.
func (rn *runner) search(stop *console.Stopper, folder *experiment.Folder, c experiment.Conduct,
	waits waitFlags) error {
	stop.Tell(func() { rn.Sayf("stopping: the probe under way is torn down; plimsoll resume goes on") })
	if rn.warned == nil {
		rn.warned = map[string]bool{}
	}
	if err := roomAgain(folder, rn.Now().UTC()); err != nil {
		return exit.Errorf(exit.Failed, "", "mark: %w", err)
	}
	m := folder.Record().Mark
	var ended error
	var spent, loads time.Duration // on so many probes, and of that on their loads
	made := 0
	lines, unjudged := rn.sides.Searched(folder) // of an earlier time: not what ends this one
	if lines == nil {
		return unjudged
	}
	begun, whole := rn.Clock.Now(), c.Limit
	goesOn := "plimsoll resume " + folder.Record().ID + " goes on"
	late := exit.Errorf(exit.Failed, goesOn, "mark: the time limit is reached")
	var failed error // under conditions that the search went on without
	without := map[experiment.Condition]bool{}
	for ended == nil {
		at, value, why := judge.NextOf(lines, folder.Record(), without)
		if at < 0 {
			break
		}
		if whole > 0 { // it is of all probes together
			if c.Limit = whole - rn.Clock.Now().Sub(begun); c.Limit <= 0 {
				ended = late
				break
			}
		}
		if err := probeOf(folder, lines[at].Condition, value, &c); err != nil {
			return exit.Errorf(exit.Failed, "", "mark: %w", err)
		}
		authored := judge.LoadTime(m, value, lines[at].Probes)
		load := time.Duration(float64(authored) * folder.Record().Settings.TimeScale)
		sayProbe(rn.Console, lines[at], value, why, left(lines, m.Probes, load, loads, spent, made))
		began := rn.Clock.Now()
		_, _, ended = c.Run(stop.Ctx, folder, &cellRunner{runner: rn, folder: folder, record: folder.Record(),
			stop: stop, waits: waits, load: authored})
		spent, loads, made = spent+rn.Clock.Now().Sub(began), loads+load, made+1
		if ended != nil && m.Counts() && value > 1 && errors.As(ended, &target.NoRoom{}) { // before it was begun
			ended = folder.Append(experiment.Event{Time: rn.Now().UTC(), Sequence: c.Only, State: experiment.Failed,
				Error: ended.Error(), NoRoom: true})
		}
		if exit.Code(ended) == exit.Refused && lines[0].Read { // what it advises may be an option
			ended = exit.Errorf(exit.Refused, goesOn+" with the options that it has; others need a new search",
				"%w", ended)
		}
		progress, err := folder.Progress()
		if reason, broke := progress.Failed[c.Only]; err == nil && broke && ended == nil && m.Counts() &&
			value > 1 && progress.NoRoom[c.Only] { // fewer may have it
			rn.Sayf("         no room: %s", reason)
		} else if err == nil && broke && ended == nil {
			hint := "plimsoll resume " + folder.Record().ID + " makes it again"
			if m.Counts() {
				hint += "; a new search with --to ends at what there is room for"
			}
			if err = exit.Errorf(exit.Failed, hint, "mark: a probe failed: %s", reason); whole > 0 &&
				rn.Clock.Now().Sub(begun) >= whole {
				ended, err = late, nil
			}
		}
		after, unread := rn.sides.Searched(folder)
		if unread != nil && unjudged != nil && unread.Error() == unjudged.Error() {
			unread = nil
		}
		if after == nil {
			return errors.Join(ended, err, unread)
		}
		under := lines[at].Condition
		if why := cmp.Or(err, after[at].Alone); why != nil && ended == nil && at > 0 && under.Apart() {
			rn.Sayf("         no mark under %q this time: the search goes on without it", string(under))
			without[under], failed, lines = true, errors.Join(failed, why), after
			if unread != nil {
				unjudged = unread // and is no news after the next probe
			}
			continue
		}
		ended = errors.Join(ended, err, unread)
		if n := len(lines[at].Probes); len(after[at].Probes) > n {
			rn.Sayf("         %s", after[at].Probes[n].Outcome(after[at].Settings.Unit))
		}
		lines = after
	}
	ended = errors.Join(failed, ended)
	return errors.Join(ended, rn.sides.MarkResult(folder, ended == nil))
}

// roomAgain has numbers offered again for which there was no room in an earlier time: there may be now.
func roomAgain(folder *experiment.Folder, now time.Time) error {
	progress, err := folder.Progress()
	for _, p := range progress.Left {
		if err == nil && progress.NoRoom[p.Sequence] {
			err = folder.Append(experiment.Event{Time: now, Sequence: p.Sequence, State: experiment.Failed,
				Error: progress.Failed[p.Sequence]})
		}
	}
	return err
}

// probeOf has the next probe made and no other: one that is left from an earlier time, or a new one.
func probeOf(folder *experiment.Folder, under experiment.Condition, value float64, c *experiment.Conduct) error {
	progress, err := folder.Progress()
	if err != nil {
		return err
	}
	r := folder.Record()
	levels := []any{levelOf(value, r.Mark.Whole)}
	next := experiment.Cell{Levels: []experiment.Level{{Value: levels[0]}}}
	for _, p := range progress.Left {
		cell := r.Cell(p.Cell)
		if judge.ConditionOf(cell) == under && judge.ValueOf(cell) == judge.ValueOf(next) &&
			!progress.NoRoom[p.Sequence] {
			c.Only = p.Sequence
			return nil
		}
	}
	if under != "" {
		levels = append(levels, string(under))
	}
	p, err := folder.Extend(levels...)
	c.Only = p.Sequence
	return err
}

// left says how long the search may still take: it is over with this probe, whose load takes so long, or when no more
// are allowed. "" before the first has shown what a probe takes beyond its load.
func left(lines []judge.Searched, probes int, load, loads, spent time.Duration, made int) string {
	if made == 0 || spent < time.Duration(made)*time.Second { // a simulation takes no time to speak of
		return ""
	}
	most := 0
	for _, s := range lines {
		most += max(0, probes-len(s.Probes))
	}
	one := load + max(spent-loads, 0)/time.Duration(made)
	text := unit.Duration(one.Round(time.Second)).String()
	if most > 1 {
		text += " to " + unit.Duration((time.Duration(most) * one).Round(time.Second)).String()
	}
	return "; " + text + " left"
}

// levelOf keeps whole numbers whole, as most options want them.
func levelOf(value float64, whole bool) any {
	if whole || value >= 100 || value == math.Trunc(value) {
		return int64(math.Round(value))
	}
	return value
}

func sayProbe(con *console.Console, s judge.Searched, value float64, why, left string) {
	say := func(rate float64) string { return mark.InUnit(rate, s.Settings.Unit) }
	if s.Settings.Unit == "" && !s.Read { // nothing has said yet what is done
		say = func(rate float64) string { return mark.InUnit(rate, "a second") }
	}
	offered, under := say(value*s.Scale), ""
	if s.Condition != "" {
		under = ", " + string(s.Condition)
	}
	if value == 0 {
		con.Sayf("probe 0%s: %s", under, why)
		return
	}
	text := ""
	if low, high := judge.Bounds(s.Probes); low > 0 || high > 0 {
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
	con.Sayf("probe %d%s: %s (%s%s%s)", len(s.Probes)+1, under, offered, why, text, left)
}

// markPlan holds what a search would do, of which nothing has been done.
type markPlan struct {
	Workload   string                 `json:"workload"`
	Variable   string                 `json:"variable"`
	Limits     []string               `json:"limits"`
	From       float64                `json:"from,omitempty"` // 0: 0.6 of what a run without a rate does
	To         float64                `json:"to,omitempty"`
	Within     float64                `json:"within"`
	Probes     int                    `json:"probes"` // the most, under each condition
	Conditions []experiment.Condition `json:"conditions,omitempty"`
	// Runs is the most that are made, Seconds how long all of them take, and LongestSeconds so at rates so low that
	// fewer operations than wanted would be beyond the percentile: below LongerBelow.
	Runs           int     `json:"runs"`
	Seconds        float64 `json:"seconds"`
	LongestSeconds float64 `json:"longest_seconds"`
	LongerBelow    float64 `json:"longer_below_ops,omitempty"`
	// Unknown: some steps take a time that cannot be said, which is not in these.
	Unknown bool         `json:"estimate_unknown,omitempty"`
	Plans   []*plan.Plan `json:"plans"` // of one probe, under each condition
}

// newMarkPlan says what a search would do, given the plan of a probe under each condition, or one without any.
func newMarkPlan(m *experiment.Mark, plans []*plan.Plan, timeScale float64) markPlan {
	d := markPlan{Workload: m.Workload, Variable: m.Variable, Limits: m.Limits, From: m.Start, To: m.Most,
		Within: m.Within, Probes: m.Probes, Conditions: m.Conditions, Plans: plans}
	usual, most := judge.LoadTime(m, math.MaxFloat64, nil), judge.LoadTime(m, math.SmallestNonzeroFloat64, nil)
	for i, p := range plans {
		runs := m.Probes
		if i == 0 && m.Start == 0 && !m.Counts() {
			runs++ // without a rate
		}
		if i == 0 && len(plans) > 1 {
			runs++ // the first once more, for drift
		}
		d.Runs, d.Unknown = d.Runs+runs, d.Unknown || p.EstimateUnknown
		d.Seconds += float64(runs) * p.Least().Seconds()
	}
	if d.LongestSeconds = d.Seconds; most > usual {
		d.LongestSeconds += float64(d.Runs) * (most - usual).Seconds() * timeScale
		d.LongerBelow = judge.Needed(m) / m.Seconds
	}
	return d
}

// say prints it, with the plan of a probe below.
func (d markPlan) say(rn *runner) error {
	span := func(seconds float64) string {
		return unit.Duration(time.Duration(seconds * float64(time.Second)).Round(time.Second)).String()
	}
	out := rn.Out
	visible.Fprintf(out, "A search for the mark of %s, by %s.\n%s\n", d.Workload, unit.Words(d.Variable),
		report.SayLimits(d.Limits, nil, nil))
	first := "a run without a rate, then 0.6 of what that did"
	if d.From > 0 {
		first = fmt.Sprintf("%g", d.From)
	}
	top := ""
	if d.To > 0 {
		top = fmt.Sprintf(", %g at most", d.To)
	}
	visible.Fprintf(out, "First %s; then doubled until a limit breaks, or lowered until all hold%s; then near the limit, "+
		"above and below in turn, until the interval is within %.3g %% of the mark.\n", first, top, 100*d.Within)
	under, atLeast := "", map[bool]string{true: "at least "}[d.Unknown]
	if len(d.Conditions) > 0 {
		under = fmt.Sprintf(" under each of %s", unit.Plural(len(d.Conditions), "condition"))
	}
	visible.Fprintf(out, "At most %s%s, each in a run of its own: at most %s in all, of %s%s together.\n",
		unit.Plural(d.Probes, "probe"), under, unit.Plural(d.Runs, "run"), atLeast, span(d.Seconds))
	if d.LongerBelow > 0 {
		visible.Fprintf(out, "Below %.4g a second a probe is longer, for enough operations beyond the percentile: "+
			"%s together if all are.\n", d.LongerBelow, span(d.LongestSeconds))
	}
	visible.Fprintf(out, "Nothing has been touched.\n")
	for i, p := range d.Plans {
		of := ""
		if len(d.Conditions) > 0 {
			of = fmt.Sprintf(" under %q", string(d.Conditions[i]))
		}
		visible.Fprintf(out, "\nOne probe%s:\n\n", of)
		if err := p.Text(out); err != nil {
			return err
		}
	}
	return nil
}
