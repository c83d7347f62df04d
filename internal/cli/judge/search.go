package judge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

var latencyWord = regexp.MustCompile(`^(mean|max|p[0-9.]+)$`)

var operators = regexp.MustCompile(`\s*([<>]=?)\s*`)

var bareNumber = regexp.MustCompile(`[0-9.]$`)

// MarkLimits reads the limits; the only workload may be left out of them.
func MarkLimits(texts []string, workload string) (full []scenario.Assert, out []result.Assert, err error) {
	var bad []error
	for _, text := range texts {
		t := strings.TrimSpace(operators.ReplaceAllString(text, " $1 ")) // in one spelling, so that searches are alike
		if !strings.HasPrefix(t, workload+" ") {
			t = workload + " " + t
		}
		a, err := scenario.ParseAssert(t, []string{workload})
		if err != nil {
			typed := strings.NewReplacer(fmt.Sprintf("assert %q", t), fmt.Sprintf("--limit %q", text),
				"WORKLOAD [OP", "[OP", `"OLTP read`, `"read`)
			bad = append(bad, errors.New(typed.Replace(err.Error())))
			continue
		}
		if latencyWord.MatchString(a.Measure) && bareNumber.MatchString(a.Name) {
			a.Name += "s" // what is meant is said wherever the limit is
		}
		if slices.ContainsFunc(full, func(b scenario.Assert) bool { return b.Name == a.Name }) {
			continue
		}
		full = append(full, a)
		out = append(out, result.Assert{Name: strings.TrimPrefix(a.Name, workload+" "), Workload: a.Workload,
			Operation: a.Operation,
			Measure:   a.Measure, AtLeast: a.AtLeast, AtMost: a.AtMost})
	}
	for i, a := range full {
		if most := a.AtMost; most != nil && (*most < 0 || *most == 0 && (latencyWord.MatchString(a.Measure) ||
			strings.HasSuffix(a.Name, "< 0"))) {
			bad = append(bad, fmt.Errorf("--limit %q can never hold", out[i].Name))
		}
		for _, b := range full[i+1:] {
			if contradict(a, b) || contradict(b, a) {
				bad = append(bad, fmt.Errorf("--limit %q and %q can never both hold", out[i].Name,
					strings.TrimPrefix(b.Name, workload+" ")))
			}
		}
	}
	return full, out, errors.Join(bad...)
}

// Upward are the errors of limits that want a least of what grows with the rate, or with the number: those hold above
// some rate and not below. Of VMs, each may have to do so many operations.
func Upward(limits []result.Assert, vms bool) (bad error) {
	for _, l := range limits {
		switch {
		case l.AtLeast == nil:
		case latencyWord.MatchString(l.Measure), l.Measure == "errors":
			what := map[bool]string{true: "errors", false: "latencies"}[l.Measure == "errors"]
			bad = errors.Join(bad, fmt.Errorf("--limit %q: %s grow with the load: want a most (<)", l.Name, what))
		case !vms && (l.Measure == "operations" || l.Measure == "bandwidth"):
			bad = errors.Join(bad, fmt.Errorf("--limit %q: that is what is looked for: see --assert 'mark >= RATE'", l.Name))
		}
	}
	return bad
}

// contradict reports whether one limit wants more of a thing than the other allows.
func contradict(a, b scenario.Assert) bool {
	return a.AtLeast != nil && b.AtMost != nil && *a.AtLeast > *b.AtMost && a.Operation == b.Operation &&
		a.Measure == b.Measure
}

// Operations beyond a percentile that is limited: so many are wanted, and a probe is prolonged for them.
const (
	beyond    = 200
	inRamp    = 40 // as long as all rates have held, or none has: far from the limit a rough figure tells
	longest   = 20 // times its own length
	fewBeyond = 2  // with fewer there is no percentile
	// arrivals at random near the mark are so many over the share that is wanted, squared: of both sides, twice each,
	// their number then differs by no more.
	arrivals = 2 * math.Sqrt2
)

// LoadTime is for how long a value of the variable is offered where the search says it, and not the scenario, so that
// the highest percentile that is limited is known well; 0 else. before are the probes that came before it.
func LoadTime(m *experiment.Mark, value float64, before []mark.Probe) time.Duration {
	seconds := m.Seconds
	switch {
	case m.Rated || seconds == 0:
		return 0
	case !m.Counts() && value > 0: // the run without a rate is for where to begin
		wanted := Needed(m)
		if held := func(p mark.Probe) bool { return p.Held }; !slices.ContainsFunc(before, held) ||
			!slices.ContainsFunc(before, func(p mark.Probe) bool { return !p.Held }) {
			wanted *= float64(inRamp) / beyond
		} else if last := before[len(before)-1]; last.Arrivals > 0 { // so many tell their rate
			wanted = max(wanted, math.Pow(arrivals/cmp.Or(m.Within, mark.DefaultWithin), 2))
		}
		seconds = min(max(seconds, wanted/max(value, 1e-9)), longest*seconds)
	}
	return time.Duration(math.Ceil(seconds)) * time.Second
}

// Needed is how many operations the highest percentile that is limited takes.
func Needed(m *experiment.Mark) float64 {
	_, limits, _ := MarkLimits(m.Limits, m.Workload) // they were read before
	n := 0.0
	for _, l := range limits {
		if p, err := strconv.ParseFloat(strings.TrimPrefix(l.Measure, "p"), 64); err == nil && p < 100 {
			n = max(n, beyond/(1-p/100))
		}
	}
	return n
}

// startShare is where a search begins, of what a run without a rate did: its double is an overload for sure.
const startShare = 0.6

// Searched is how far a search has come under one condition.
type Searched struct {
	Condition experiment.Condition // "": the scenario as it is written
	Settings  mark.Settings
	Probes    []mark.Probe
	Scale     float64 // operations per second offered by 1 of the variable
	free      float64 // operations per second of the run without a rate; 0: none
	Read      bool    // a run was, so that the unit is known
	seconds   float64 // for which the workload ran in the last run
	// Alone is the error of the last run where what was to run beside the workload did not.
	Alone error
}

// Searched reads the runs that were made, of each condition apart. With an error it gives what the others say where
// runs cannot be judged, and nil where none can be read.
func (sd *Sides) Searched(folder *experiment.Folder) ([]Searched, error) {
	r := folder.Record()
	m := r.Mark
	lines := make([]Searched, max(1, len(m.Conditions)))
	for i := range lines {
		lines[i].Settings = mark.Settings{Probes: m.Probes, Within: m.Within, Unit: m.Unit, Count: m.Counts()}
		if len(m.Conditions) > 0 {
			lines[i].Condition = m.Conditions[i]
		}
	}
	_, limits, err := MarkLimits(m.Limits, m.Workload)
	if err != nil {
		return nil, err
	}
	progress, err := folder.Progress()
	if err != nil {
		return nil, err
	}
	var unjudged []error
	place := ""
	for _, planned := range r.Sequence {
		id, done := progress.Done[planned.Sequence]
		if !done {
			continue
		}
		cell := r.Cell(planned.Cell)
		s := &lines[max(slices.Index(m.Conditions, ConditionOf(cell)), 0)]
		if err := s.add(sd, folder, id, cell, limits, &place); err != nil {
			unjudged = append(unjudged, err)
		}
	}
	for i := range lines {
		lines[i].begin(m, lines[0])
		for _, p := range r.Sequence {
			cell := r.Cell(p.Cell)
			n := ValueOf(cell)
			if s := &lines[i].Settings; progress.NoRoom[p.Sequence] && m.Counts() && n > 0 &&
				ConditionOf(cell) == lines[i].Condition && (s.Room == 0 || n < s.Room) {
				s.Room, s.Lacks = n, progress.Failed[p.Sequence]
				s.Start = min(s.Start, max(math.Floor(n/2), 1))
			}
		}
	}
	return lines, errors.Join(unjudged...)
}

// unread says why a run could not be read, or which file of it is damaged: that is no reason of the search's to leave
// it out.
type unread struct{ error }

// Unwrap gives the error as it came.
func (u unread) Unwrap() error { return u.error }

// ConditionOf returns what a run of a search was under.
func ConditionOf(c experiment.Cell) experiment.Condition {
	if len(c.Levels) < 2 {
		return ""
	}
	return experiment.Condition(fmt.Sprint(c.Levels[1].Value))
}

// ValueOf returns what a run of a search set the variable to, 0 for a run without a rate.
func ValueOf(c experiment.Cell) float64 {
	value, _ := strconv.ParseFloat(fmt.Sprint(c.Levels[0].Value), 64)
	return value
}

// on is the storage that a run's load went to; "" where nothing tells it from other.
func on(environment []result.Fact) string {
	var parts []string
	for _, f := range environment {
		if strings.HasPrefix(f.Group, "storage") && f.Value != "" &&
			slices.Contains([]string{"source", "file system", "identity"}, f.Name) {
			parts = append(parts, f.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// add makes a probe of a run. place is the storage of the first: what is under its folder may go away, and then the
// next run is on another.
func (s *Searched) add(sd *Sides, folder *experiment.Folder, id string, cell experiment.Cell,
	limits []result.Assert, place *string) error {
	m := folder.Record().Mark
	run, err := sd.comparedRun("mark", filepath.Join(folder.RunsDir(), id))
	if err != nil {
		return unread{err}
	}
	at := on(run.Manifest.Environment)
	if *place = cmp.Or(*place, at); at != "" && at != *place {
		return exit.Errorf(exit.Failed, "plimsoll resume "+folder.Record().ID+" goes on when it is back",
			"mark: run %s was on %s, and the search began on %s: what was asked is gone", id, at, *place)
	}
	s.Alone = nil
	if beside := s.Condition.Beside(); beside != "" {
		if err := stayed(run.Data, beside, m.Workload); err != nil {
			s.Alone = exit.Errorf(exit.Failed, "", "mark: run %s: condition %q: %w", id, string(s.Condition), err)
			return s.Alone
		}
	}
	for _, w := range run.Data.Workloads {
		if w.Name == m.Workload && !w.Prefill && w.Merged() {
			s.seconds = w.Judged().Seconds()
		}
	}
	value := ValueOf(cell)
	if value == 0 {
		s.Settings.Unit, s.Read, s.Scale = mark.UnitOf(run.Data, m.Workload), true, directionsOf(run.Data, m.Workload)
		s.free, err = achieved(run.Data, m.Workload)
		return err
	}
	var p mark.Probe
	if m.Counts() {
		p, err = mark.JudgeVMs(run.Data, foundIn(folder, id), m.Workload, limits, value)
		s.Scale = 1
	} else {
		p, err = mark.Judge(run.Data, foundIn(folder, id), m.Workload, limits)
		s.Settings.Unit, s.Scale = mark.UnitOf(run.Data, m.Workload), p.Offered/value
	}
	if errors.Is(err, mark.ErrGone) {
		return exit.Errorf(exit.Failed, "plimsoll resume "+folder.Record().ID+" goes on", "mark: run %s: %w", id, err)
	}
	if err != nil {
		return exit.Errorf(exit.Refused, measured(run.Data, m.Workload), "mark: run %s: %w", id, err)
	}
	s.Probes, s.Read = append(s.Probes, p), true
	return nil
}

// measured is a hint of which measures of its own a workload gave; "" for none.
func measured(d *result.Data, workload string) string {
	var names []string
	for _, w := range d.Workloads {
		if w.Name == workload && !w.Prefill && w.Merged() {
			for _, v := range w.Values {
				names = append(names, v.Measure)
			}
		}
	}
	if names = slices.Compact(slices.Sorted(slices.Values(names))); len(names) == 0 {
		return ""
	}
	return "beside operations and errors it gave: " + unit.List(names, 12)
}

// directionsOf is how many times fio gives the one rate to a workload: to each process of its jobs in all its VMs, for
// reads and for writes. 0 of other generators.
func directionsOf(d *result.Data, workload string) (n float64) {
	for _, w := range d.Workloads {
		if w.Name == workload && !w.Prefill && !w.Merged() && w.Engine == "fio" {
			for _, l := range w.Streams {
				each := max(l.Processes, 1)
				if n += float64(each); l.Reads && l.Writes {
					n += float64(each)
				}
			}
		}
	}
	return n
}

// stayed is an error when the workload beside did not run for as long as the one that is measured.
func stayed(d *result.Data, beside, workload string) error {
	var other, own result.Workload
	for _, w := range d.Workloads {
		switch {
		case !w.Merged() || w.Prefill:
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
func (s *Searched) begin(m *experiment.Mark, first Searched) {
	s.Scale = cmp.Or(s.Scale, first.Scale, 1)
	switch {
	case m.Counts():
	case m.Seconds > 0:
		s.Settings.Least = Needed(m) / (longest * m.Seconds)
	case s.seconds > 0: // a scenario's runs are as long as it says
		s.Settings.Least = Needed(m) * fewBeyond / beyond / s.seconds
	}
	s.Settings.Unit, s.Read = cmp.Or(s.Settings.Unit, first.Settings.Unit), s.Read || first.Read
	s.Settings.Start, s.Settings.Most = m.Start*s.Scale, m.Most*s.Scale
	if m.Start == 0 {
		s.Settings.Start = startShare * first.free
	}
	if m.Whole && !m.Counts() { // what is offered is whole, and so are its bounds
		s.Settings.Least = max(math.Ceil(cmp.Or(s.Settings.Least, s.Settings.Start/1000)/s.Scale), 1) * s.Scale
		s.Settings.Most = math.Floor(m.Most) * s.Scale
	}
	if s.Condition == first.Condition {
		return
	}
	if found := mark.Conclude(first.Settings, first.Probes); found.Verdict == mark.Found {
		if s.Settings.Start = startShare * *found.Rate; m.Counts() {
			s.Settings.Start = max(1, math.Round(s.Settings.Start))
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

// achieved returns what a workload did per second.
func achieved(d *result.Data, workload string) (float64, error) {
	for _, w := range d.Workloads {
		if w.Name == workload && !w.Prefill && w.Merged() {
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
	return 0, exit.Errorf(exit.Failed, "a new search with --from says where to begin",
		"mark: workload %q did nothing in its run without a rate",
		workload)
}

// NextOf is the next probe of a search, and the condition that it is of; below 0 when it is over. When all conditions
// have their answer the first is looked at once more, so that what has drifted since is not taken for what they cost.
// without are conditions that are left out this time.
func NextOf(lines []Searched, r experiment.Record, without map[experiment.Condition]bool) (at int, value float64,
	why string) {
	for i, s := range lines {
		if value, why := s.next(r.Mark); value >= 0 && !without[s.Condition] {
			return i, value, why
		}
	}
	first := lines[0]
	if len(lines) < 2 || ConditionOf(r.Cell(r.Sequence[len(r.Sequence)-1].Cell)) == first.Condition {
		return -1, 0, ""
	}
	found := mark.Conclude(first.Settings, first.Probes)
	if found.Verdict != mark.Found {
		return -1, 0, ""
	}
	rate := 0.0
	for _, p := range first.Probes {
		if p.Held && p.Offered <= *found.High {
			rate = max(rate, p.Offered)
		}
	}
	if rate == 0 {
		return -1, 0, ""
	}
	return 0, rate / first.Scale, "the first condition once more, for drift"
}

// next is the variable's next value, below 0 when the search is over.
func (s Searched) next(m *experiment.Mark) (value float64, why string) {
	if len(s.Probes) == 0 && s.Settings.Start == 0 {
		return 0, "without a rate, to see where to begin"
	}
	step := mark.Next(s.Settings, s.Probes)
	if step.Rate == 0 {
		return -1, ""
	}
	if value = step.Rate / s.Scale; m.Whole {
		value = max(math.Round(value), 1)
	}
	return value, step.Why
}

// Bounds are the highest rate that held below all that broke, and the lowest that broke; 0 where there is none. A
// generator that gave way tells of neither.
func Bounds(probes []mark.Probe) (low, high float64) {
	for _, p := range probes {
		if !p.Held && p.Generator == "" && (high == 0 || p.Offered < high) {
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
