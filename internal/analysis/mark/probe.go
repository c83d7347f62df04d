package mark

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/hist"
	"plimsoll/internal/analysis/assert"
	"plimsoll/result"
)

// serviceTime is the kind of latency that is corrected here.
const serviceTime = "service time"

// rateTolerance is by how much of its rate a probe may fall short, startSeconds the time that a generator takes to
// start and end, which is counted as time of the run, and startShare the most that this may be of it.
const (
	rateTolerance = 0.01
	startSeconds  = 0.15
	startShare    = 0.05
)

// RateMet is the limit that every search has beside those that are given.
const RateMet = "the rate is met"

// most is the margin that is written for a value far below its limit.
const most = 100

// Offered is the rate that a workload's jobs ask for, and how many operations they may have in flight. It is an error
// where one of them has no rate: what a closed loop offers is what it gets, and no mark is to be had.
func Offered(d *result.Data, workload string) (rate float64, depth int, err error) {
	found := false
	for _, w := range d.Workloads {
		if w.Name != workload || w.Prefill || w.Merged() {
			continue
		}
		for _, l := range w.Streams {
			found = true
			if l.Rate <= 0 {
				return 0, 0, fmt.Errorf("%s of workload %q has no rate: it offers what it gets back (a closed loop)",
					l.Name, workload)
			}
			rate, depth = rate+l.Rate, depth+l.Depth
		}
	}
	if !found {
		return 0, 0, fmt.Errorf("workload %q has no job whose rate is known", workload)
	}
	return rate, depth, nil
}

// Judge makes a probe of a run: how far the workload's limited values are from their limits. Limits are on latencies,
// mean, max, percentiles, and on errors and other measures of the workload.
//
// Latencies are response times, from when an operation was due. Where the generator measured service times they are
// corrected in two ways. An operation that kept its place in the queue for longer than its turn (depth over rate) held
// back those that were due there, and these are added with what they would have waited (Gil Tene's correction, as in
// HdrHistogram's copyCorrectedForCoordinatedOmission). And what the counts of operations over time show of a schedule
// that was fallen behind is added to every value: the quantile of the time that sending was late by.
func Judge(d *result.Data, findings []result.Finding, workload string, limits []result.Assert) (Probe, error) {
	rate, depth, err := Offered(d, workload)
	if err != nil {
		return Probe{}, err
	}
	w, err := whole(d, workload)
	if err != nil {
		return Probe{}, err
	}
	p := Probe{Offered: rate, Margin: math.Inf(1), Held: true, Used: used(d, w, depth, findings)}
	var count uint64
	var busy float64
	for _, o := range w.Ops {
		count, busy = count+o.Count, busy+o.Seconds
	}
	seconds := w.Seconds()
	if seconds <= 0 {
		return p, fmt.Errorf("workload %q has no length of time", workload)
	}
	p.Achieved, p.Seconds = float64(count)/seconds, math.Round(10*seconds)/10
	p.Behind = missed(w, rate, depth)
	corrected, late := w, lateness{}
	if w.Latency == serviceTime {
		corrected, late = correct(w, rate, depth), behind(w, rate)
	}
	p.Spent = spent(d, w, corrected, late.mean(), p.Achieved)
	// The margins by service times alone, and by those and waits for a place; whether any is on times.
	served, placed, timed := math.Inf(1), math.Inf(1), false
	var unknown error
	for _, limit := range limits {
		m, err := margin(limit, corrected, d, late)
		alone, waited := m, m
		if err == nil && w.Latency == serviceTime {
			alone, err = margin(limit, w, d, lateness{})
		}
		if err == nil && w.Latency == serviceTime {
			waited, err = margin(limit, corrected, d, lateness{})
		}
		switch {
		case err != nil && p.Behind: // so few were done that there is no such value
			m, alone, waited = 0, 0, 0
		case err != nil:
			unknown = errors.Join(unknown, fmt.Errorf("limit %q: %w", limit.Name, err))
			continue
		}
		timed, placed = timed || result.Timed(limit.Measure), min(placed, waited)
		if served = min(served, alone); m < p.Margin || p.Limit == "" {
			p.Margin, p.Limit = m, limit.Name
		}
	}
	if unknown != nil && p.Margin >= 1 { // else another limit is broken, as where all fails that is sent
		return p, unknown
	}
	p.Held = p.Margin >= 1
	unmet := p.Behind
	if unmet {
		p.Met = met(w, rate, depth)
	}
	if p.Grew, p.Unseen = grew(w, rate); p.Grew > 0 {
		p.Behind = true
		if p.Held {
			p.Held, p.Margin, p.Limit = false, 0, RateMet
		}
	}
	if random(w) {
		p.Arrivals = math.Round(rate * seconds)
		p.Taken = slices.ContainsFunc(w.Streams, func(l result.Stream) bool {
			return l.Arrivals == result.ArrivalsUnknown
		})
	}
	p.Behind = p.Behind || !p.Held && served >= 1 // late sending alone breaks it
	if unmet {
		p.Held = false
		if p.Margin >= 1 {
			p.Margin, p.Limit = 0, RateMet
		}
	}
	p.Margin = min(p.Margin, most)
	if !p.Held && p.Behind {
		p.Ended = ended(w)
	}
	if !p.Held {
		p.Generator = gaveWay(findings, workload)
		inFlight := busy / seconds
		taken := inFlight > full*float64(depth)/100
		if p.Generator == "" && timed && served >= 1 && w.Latency == serviceTime && p.Ended == 0 && // else it did more
			(unmet || placed >= 1 && taken) {
			p.Generator = fmt.Sprintf("it fell behind its schedule with %.0f of %d operations in flight, "+
				"each of them within the limit", inFlight, depth)
		}
		if p.Generator == "" && !timed && served >= 1 && w.Latency == serviceTime && p.Behind && taken && depth < Deep {
			p.Generator = fmt.Sprintf("it fell behind its schedule with %.0f of %d operations in flight, and no limit "+
				"is on a time that would tell the system's part in it", inFlight, depth)
		}
		held := func(u Used) bool { return u.Measure == ioQuota && u.Percent >= full } // by a quota, whoever waited
		// What was sent took too long in a device, as at a cap: who waited besides is not why the rest was not.
		capped := unmet && served < 1 && inDevice(d, w, p.Achieved, inFlight)
		if p.Generator == "" && timed && !capped && (p.Spent == nil || p.Spent.Device < p.Spent.Whole/2) &&
			!slices.ContainsFunc(p.Used, held) {
			p.Generator = starved(d, findings, w)
		}
	}
	return p, nil
}

// overTime is how many operations of any kind were done in each step since the generator began: in a guest that is
// emulated its process may take ten seconds to do so, and is no later than its schedule for that.
func overTime(w result.Workload) (counts []float64, step float64) {
	for _, o := range w.Ops {
		if o.OverTime == nil || o.OverTime.Step <= 0 {
			continue
		}
		step = o.OverTime.Step
		before := max(0, int(w.Start.Sub(o.OverTime.Start).Seconds()/step))
		for i, n := range o.OverTime.Counts[min(before, len(o.OverTime.Counts)):] {
			if i == len(counts) {
				counts = append(counts, 0)
			}
			counts[i] += float64(n)
		}
	}
	return counts, step
}

// missed reports whether a workload did fewer operations than its rate makes due, over its time and over what is
// between the first two reports and the last: a generator that took long to begin has not fallen behind since.
func missed(w result.Workload, rate float64, depth int) bool {
	all := 0.0
	for _, o := range w.Ops {
		all += float64(o.Count)
	}
	counts, step := overTime(w)
	if !short(all, rate, w.Seconds(), depth) {
		return false
	}
	if len(counts) < 6 {
		return true
	}
	done := 0.0
	for _, n := range counts[2 : len(counts)-1] {
		done += n
	}
	return short(done, rate, float64(len(counts)-3)*step, depth)
}

// met is for how long a workload did what its rate makes due before it did so no longer, up to the end: 0 where that is
// less than a third of its time, or what followed is nearly as much.
func met(w result.Workload, rate float64, depth int) float64 {
	const fewest, nearly = 9, 0.9
	counts, step := overTime(w)
	n := len(counts) - 1 // the last has what came after the end
	if n < fewest {
		return 0
	}
	last := n
	for last > 0 && counts[last-1] < nearly*rate*step {
		last--
	}
	before, after := 0.0, 0.0
	for i, c := range counts[:n] {
		if i < last {
			before += c
		} else {
			after += c
		}
	}
	seconds := float64(last) * step
	if n-last < 2 || 3*last < n || after > nearly*nearly*rate*float64(n-last)*step ||
		short(before, rate, seconds, depth) {
		return 0
	}
	return seconds
}

// short reports whether fewer operations were done than a rate makes due. Arrivals at random differ in number
// from run to run, by the root of it.
func short(done, rate, seconds float64, depth int) bool {
	due := rate * seconds
	start := min(startSeconds, startShare*seconds)
	return due-done > rateTolerance*due+start*rate+float64(depth)+3*math.Sqrt(due)
}

// whole is the workload over all its machines, over the time by which it is judged.
func whole(d *result.Data, name string) (result.Workload, error) {
	var alone []result.Workload
	for _, w := range d.Workloads {
		if w.Name != name || w.Prefill {
			continue
		}
		if w.Merged() {
			return there(w.Judged())
		}
		alone = append(alone, w)
	}
	if len(alone) == 1 {
		return there(alone[0].Judged())
	}
	return result.Workload{}, fmt.Errorf("workload %q did not run", name)
}

// ErrGone is that what was asked was not there for a time.
var ErrGone = errors.New("was gone, and so this is no answer of it")

// there refuses a workload whose server ended connections: it was gone for a time, and that is no answer to a rate.
func there(w result.Workload) (result.Workload, error) {
	for _, v := range w.Values {
		if strings.Contains(v.Measure, "lost") && strings.Contains(v.Measure, "connection") && v.Value > 0 {
			return w, fmt.Errorf("the server of workload %q %w: %.0f of %s", w.Name, ErrGone, v.Value, v.Measure)
		}
	}
	return w, nil
}

// Deep is the number of operations that a search lets each job of fio have in flight, from which on the system is what
// more of them wait for.
const Deep = 512

// gaveWay says how the load generator of a workload was the limit, "" when no check found that.
func gaveWay(findings []result.Finding, workload string) string {
	for _, f := range findings {
		if f.Subject != workload && f.Subject != "run" {
			continue
		}
		if f.Check == "generator-cpu" && f.Severity == result.Invalid || f.Check == "client-limit" &&
			(f.Severity == result.Invalid || f.Severity == result.Warning) {
			text, _, _ := strings.Cut(f.Sentence, ": it was the limit")
			text, _, _ = strings.Cut(text, ". ")
			if rest, ok := strings.CutPrefix(text, "The "); ok { // it goes on after a colon
				text = "the " + rest
			}
			return result.PlainNames(strings.TrimSuffix(text, "."))
		}
	}
	return ""
}

// waiting is the share of the time from which on a generator that was ready and had no CPU is the limit: so many of its
// operations, and more than most limits leave out, are late by a wait of its own. One that goes by a schedule of its
// own may share the CPUs with the server that it loads, which uses them up where the mark is: there waitingBeside is.
const (
	waiting       = 0.1
	waitingBeside = 0.5
)

// starved says how a generator lacked a CPU, so that the times are of its own waits: by what its busiest thread waited
// or, where it takes service times, by what was used of the machine that it is on when its threads were not watched, or
// were by a guest, which does not see when that machine keeps it waiting. "" when it did not.
func starved(d *result.Data, findings []result.Finding, whole result.Workload) string {
	watched, waited, most := whole.Latency != serviceTime, 0.0, waiting
	if watched {
		most = waitingBeside
	}
	for _, w := range d.Workloads {
		if w.Name == whole.Name && !w.Prefill && w.ThreadWaiting != nil {
			waited = max(waited, *w.ThreadWaiting)
			watched = watched || !slices.ContainsFunc(d.Series, func(s result.Series) bool {
				return s.Machine == w.VM && s.Measure == result.DeviceBusy // a device of its own: a guest
			})
		}
	}
	if waited >= most {
		return fmt.Sprintf("its busiest thread was ready and waited for a CPU %.0f %% of the time", 100*waited)
	}
	if !watched && slices.ContainsFunc(findings, func(f result.Finding) bool { return f.Check == "host-cpu" }) {
		return "the CPUs of the machine that it is on were used up"
	}
	return ""
}

// correct adds to the service times of a workload the waits of operations that were held back in their places.
func correct(w result.Workload, rate float64, depth int) result.Workload {
	if depth < 1 {
		return w
	}
	turn := uint64(float64(depth) / rate * 1e9) // nanoseconds from one operation of a place to its next
	out := w
	out.Ops = slices.Clone(w.Ops)
	for i, o := range out.Ops {
		if o.Hist == nil || turn == 0 {
			continue
		}
		h := o.Hist.Clone()
		for bucket, n := range o.Hist.All() {
			v := hist.Middle(bucket)
			if missing := v / turn; missing > 10_000 { // of hours of waiting the first are enough
				v -= (missing - 10_000) * turn
			}
			for v > 2*turn {
				v -= turn
				h.Add(v, n)
			}
		}
		out.Ops[i].Hist, out.Ops[i].Count, out.Ops[i].Seconds = h, h.Count(), h.Sum()/1e9
	}
	return out
}

// lateness is for how long sending was behind its schedule, in seconds, in equal parts of the run, ascending.
type lateness []float64

func (l lateness) quantile(q float64) float64 {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(math.Ceil(q*float64(len(l))))-1, len(l)-1)]
}

func (l lateness) mean() float64 {
	sum := 0.0
	for _, v := range l {
		sum += v
	}
	return sum / math.Max(1, float64(len(l)))
}

// behind reads off the counts over time how late sending was. A report may come late itself, after which the next
// makes up for it: what is not there at two reports in a row is not taken for lateness, nor is what a twentieth of a
// step holds. The time by which counts are noted late throughout is the middle one of the first three.
func behind(w result.Workload, rate float64) (l lateness) {
	counts, step := overTime(w)
	if len(counts) < 5 || step <= 0 {
		return nil
	}
	done := 0.0
	for i, n := range counts[:len(counts)-1] { // the last has what came after the end
		done += n
		l = append(l, float64(i+1)*step-done/rate)
	}
	offset := []float64{l[0], l[1], l[2]}
	slices.Sort(offset)
	for i := range l[:len(l)-1] {
		late := min(l[i], l[i+1]) - offset[1]
		due := counts[i]
		if random(w) { // so many more or fewer were due by then
			due = rate * step * float64(i+1)
		}
		if late < 0.05*step || late*rate < 3*math.Sqrt(due) {
			late = 0
		}
		l[i] = late
	}
	l = l[:len(l)-1]
	slices.Sort(l)
	return l
}

// margin is the limit over the value, or the value over it where that is the least allowed; 0 where nothing may happen
// and it did.
func margin(limit result.Assert, w result.Workload, d *result.Data, late lateness) (float64, error) {
	only := &result.Data{Start: d.Start, End: d.End, Workloads: []result.Workload{w}}
	v, unit, err := assert.Value(limit, only)
	if err != nil {
		return 0, err
	}
	if unit == "s" {
		switch q := quantileOf(limit.Measure); {
		case limit.Measure == "mean":
			v += late.mean()
		case limit.Measure == "max":
			v += late.quantile(1)
		case q > 0:
			v += late.quantile(q)
		}
	}
	m := math.Inf(1)
	if limit.AtMost != nil {
		m = *limit.AtMost / v
		if *limit.AtMost == 0 {
			m = math.Inf(1)
			if v > 0 {
				m = 0
			}
		}
	}
	if limit.AtLeast != nil && *limit.AtLeast > 0 {
		m = min(m, v / *limit.AtLeast)
	}
	if math.IsNaN(m) {
		return 0, fmt.Errorf("%s is no number", limit.Measure)
	}
	return m, nil
}

// quantileOf is the quantile of a measure like "p99.9", 0 of others.
func quantileOf(measure string) float64 {
	var p float64
	if n, err := fmt.Sscanf(measure, "p%g", &p); n != 1 || err != nil {
		return 0
	}
	return p / 100
}
