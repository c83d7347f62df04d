package collect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// track is one start of a workload on a VM as its raw output tells it.
type track struct {
	job      result.RawJob
	meter    *tally.Meter
	marks    []counted     // the first is the zero before the first report
	single   [][]figure    // by measure of the layout; of those that cannot be added
	reported []bool        // by measure of the layout
	final    tally.Mark    // with histograms
	streams  []streamTrack // of a job that tells them apart
	cpu      float64
	clock    time.Duration // how far the tool's was ahead at most, or behind when negative
	parts    []part        // totals between the workload's cuts
	judged   []part        // totals within its spans
	every    time.Duration // between its reports at which cells may be cut, on average
	notes    []string
	ended    result.Ending
	end      time.Time
	late     time.Time // when it began to work, where others of its start did so long before or after
}

// counted are a job's cumulative counters at a moment. Every report of a run is one of these while its folder is read,
// millions of them, so it is no whole mark.
type counted struct {
	At     time.Time
	Totals tally.Totals
}

func (c counted) mark() tally.Mark { return tally.Mark{At: c.At, Totals: c.Totals} }

// figure is a value of a tool's own making.
type figure struct {
	t time.Time
	v float64
}

// part tells what a track did in one window.
type part struct {
	window   int
	from, to tally.Mark
	hists    []*hist.Histogram
}

// at is the track's cumulative state at t, interpolated between reports.
func (k *track) at(t time.Time) tally.Totals {
	m := k.marks
	i := sort.Search(len(m), func(i int) bool { return m[i].At.After(t) })
	switch {
	case i == 0:
		return k.marks[0].Totals // the zero
	case i == len(m):
		return m[i-1].Totals
	}
	v := k.meter.Layout.Zero()
	v.SetMix(m[i-1].Totals, m[i].Totals, float64(t.Sub(m[i-1].At))/float64(m[i].At.Sub(m[i-1].At)))
	return v
}

func (k *track) from() time.Time { return k.marks[0].At }
func (k *track) to() time.Time   { return k.marks[len(k.marks)-1].At }

// spacing is the median time between reports; 0 with fewer than two.
func (k *track) spacing() time.Duration {
	if len(k.marks) < 3 {
		return 0
	}
	gaps := make([]time.Duration, 0, len(k.marks)-2)
	for i := 2; i < len(k.marks); i++ {
		gaps = append(gaps, k.marks[i].At.Sub(k.marks[i-1].At))
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// cutter hands on what happened between boundaries, each moved to the report nearest to it, so that counts and
// histograms of a cell belong together and the cells add up to the whole.
type cutter struct {
	bound func(i int) (time.Time, bool) // boundary after cell i; false after the last
	emit  func(cell int, from, to tally.Mark)
	end   func() // after the rest is handed on; may be nil
	cell  int
	from  tally.Mark
}

func (c *cutter) report(prev, now tally.Mark) {
	for {
		b, ok := c.bound(c.cell)
		if !ok || now.At.Before(b) {
			return
		}
		to := now
		if b.Sub(prev.At) < now.At.Sub(b) && !prev.At.Before(c.from.At) {
			to = prev
		}
		c.emit(c.cell, c.from, to)
		c.from, c.cell = to, c.cell+1
	}
}

// finish hands on the rest. What is left beyond the last report's cell belongs to that cell.
func (c *cutter) finish(last tally.Mark) {
	c.emit(c.cell, c.from, last)
	if c.from = last; c.end != nil {
		c.end()
	}
}

// replay is the workload.Sink that reads one raw output.
type replay struct {
	track   *track
	cutters func(begin tally.Mark) []*cutter
	active  []*cutter
	fine    grid // of the sections
	prev    tally.Mark
	cut     tally.Mark      // the newest report at which cells may be cut: one with histograms where the tool gives any
	cuts    int             // how many of those there were
	told    workload.Counts // of that report
	hists   bool            // it does
	elapsed time.Duration
	shift   time.Duration // added to the tool's times
	set     int           // of ClockSet are behind
	warned  map[string]int
}

var _ workload.Sink = (*replay)(nil)

// begun is when a job began to work, or its command began, as far as that is known; else when the job did.
func (k *track) begun() time.Time { return tally.Later(tally.Later(k.job.Start, k.job.Began), k.late) }

// Report implements workload.Sink.
func (p *replay) Report(r workload.Report) {
	k := p.track
	if !k.meter.Fits(r) {
		p.warned["a report that does not hold what the job declares"]++
		return
	}
	clockless := r.Time.IsZero()
	if clockless {
		r.Time = tally.Later(tally.Untimed(r, k.begun(), k.end), p.prev.At).UTC()
	}
	switch {
	case len(k.marks) > 0:
	case clockless:
		p.zero(k.begun())
	default:
		p.begin(r)
	}
	if !clockless {
		r.Time = p.place(r)
	}
	m := k.meter.Report(p.prev.At, r.Time, r)
	k.note(m, r)
	with := m.Hists != nil
	p.hists = p.hists || with
	if with || !p.hists {
		for _, c := range p.active {
			c.report(p.cut, m)
		}
		p.cut, p.told = m, r.Ops
		p.cuts++
	}
	if len(k.streams) > 0 {
		p.sections(m, r.Sections, with || !p.hists)
	}
	k.cpu = max(k.cpu, r.CPUSeconds)
	if n := len(k.marks); n > 1 && k.marks[n-1].At.Equal(m.At) {
		k.marks = k.marks[:n-1] // the later of two at one moment knows more
	}
	k.marks = append(k.marks, counted{m.At, m.Totals})
	p.prev, p.elapsed = m, r.Elapsed
}

// note keeps the figures of a report that cannot be added up.
func (k *track) note(m tally.Mark, r workload.Report) {
	for i, v := range r.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		at := k.meter.Values[i]
		if k.reported == nil {
			k.reported = make([]bool, len(k.meter.Layout.Measures))
			k.single = make([][]figure, len(k.meter.Layout.Measures))
		}
		if k.reported[at] = true; k.meter.Kinds[i] != result.Single {
			continue
		}
		k.single[at] = append(k.single[at], figure{m.At, v})
	}
}

// begin finds when the tool began, and compares its clock with the run's.
func (p *replay) begin(r workload.Report) {
	k := p.track
	began := r.Time.Add(-r.Elapsed)
	defer p.note()
	const slack = 5 * time.Second
	p.shift = -time.Duration(k.job.ClockSeconds * float64(time.Second))
	if p.shift == 0 && (r.Time.Before(k.job.Start.Add(-slack)) || !k.end.IsZero() && r.Time.After(k.end.Add(slack))) {
		p.shift = k.job.Start.Sub(began)
	}
	if p.shift != 0 {
		k.notes = append(k.notes, fmt.Sprintf("the tool's clock differed from plimsoll's by %v; its times were moved "+
			"by that", -p.shift.Round(time.Millisecond)))
		began = began.Add(p.shift)
	}
	if began.Before(k.job.Start) && r.Time.Add(p.shift).After(k.job.Start) {
		began = k.job.Start
	}
	p.zero(began)
}

// zero puts the zero before the first report.
func (p *replay) zero(began time.Time) {
	k := p.track
	zero := tally.Mark{At: began.UTC(), Totals: k.meter.Layout.Zero()}
	k.marks = append(k.marks, counted{zero.At, zero.Totals})
	for i := range k.streams {
		k.streams[i].prev, k.streams[i].final = zero, tally.Mark{At: zero.At, Totals: zero.Totals}
	}
	p.prev, p.cut, p.elapsed = zero, zero, 0
	p.active = p.cutters(zero)
}

// note keeps the largest distance between the clocks.
func (p *replay) note() {
	if p.shift.Abs() > p.track.clock.Abs() {
		p.track.clock = -p.shift
	}
}

// place puts a report on the run's time axis. When the tool's clock jumps against its own elapsed time, elapsed time is
// believed.
func (p *replay) place(r workload.Report) time.Time {
	for all := p.track.job.ClockSet; p.set < len(all) && r.Elapsed.Seconds() >= all[p.set].AtSeconds; p.set++ {
		moved := time.Duration(all[p.set].Seconds * float64(time.Second))
		p.shift -= moved
		p.note()
		p.jumped(moved)
	}
	at := r.Time.Add(p.shift + p.drifted(r.Time))
	step := r.Elapsed - p.elapsed
	const jump = 5 * time.Second
	if d := at.Sub(p.prev.At); d < 0 || r.Elapsed > 0 && step > 0 && (d-step).Abs() > jump {
		fixed := p.prev.At.Add(max(step, 0))
		p.shift += fixed.Sub(at)
		p.note()
		p.jumped((d - step).Round(time.Millisecond))
		at = fixed
	}
	return at.UTC()
}

func (p *replay) jumped(by time.Duration) {
	p.track.notes = append(p.track.notes, fmt.Sprintf("the tool's clock jumped by %v at %s", by,
		p.prev.At.Format(time.TimeOnly)))
}

// mostWarnings are the warnings about one output that are told apart.
const mostWarnings = 50

// drifted returns what the shift of a report of that time has changed by since the job began, where the clocks were
// compared and have drifted apart meanwhile: evenly, as far as anybody knows. Those that were set are known by their
// jumps.
func (p *replay) drifted(t time.Time) time.Duration {
	j := p.track.job
	if j.ClockEndSeconds == nil || !j.End.After(j.Start) {
		return 0
	}
	const fastest = 0.02 // of the time: no clock is as wrong as that
	moved := *j.ClockEndSeconds - j.ClockSeconds
	for _, s := range j.ClockSet {
		moved -= s.Seconds
	}
	if math.Abs(moved) > fastest*j.End.Sub(j.Start).Seconds() {
		return 0
	}
	part := float64(t.Add(p.shift).Sub(j.Start)) / float64(j.End.Sub(j.Start))
	return -time.Duration(min(max(part, 0), 1) * moved * float64(time.Second))
}

// Warn implements workload.Sink.
func (p *replay) Warn(text string) {
	if p.warned[text] == 0 && len(p.warned) >= mostWarnings {
		text = "further warnings are left out"
	}
	p.warned[text]++
}

// finish closes the track after the last report.
func (p *replay) finish() {
	for _, c := range p.active {
		c.finish(p.cut)
	}
	k := p.track
	for i := range k.streams {
		if n := &k.streams[i]; n.cutter != nil {
			n.cutter.finish(n.final)
		}
	}
	k.final = p.cut
	if p.cuts > 0 {
		k.every = p.cut.At.Sub(k.from()) / time.Duration(p.cuts)
	}
	if p.told != nil {
		k.final = k.meter.Whole(p.cut, p.told)
	}
	for _, text := range slices.Sorted(maps.Keys(p.warned)) {
		if n := p.warned[text]; n > 1 {
			text = fmt.Sprintf("%s (%d times)", text, n)
		}
		k.notes = append(k.notes, text)
	}
	if k.ended == "" {
		k.ended = result.Unrecorded
	}
	if k.end.IsZero() && len(k.marks) > 0 {
		k.end = k.to()
	}
}

// read replays the raw output of one start.
func read(ctx context.Context, folder *result.Folder, engine workload.Engine, p *replay) error {
	j := p.track.job
	raw, err := folder.OpenRaw(j)
	if err != nil {
		return err
	}
	defer raw.Close() //nolint:errcheck // read only
	_, err = engine.Parse(declared(j), until{ctx, raw}, p)
	if why := raw.Truncated(); why != "" {
		p.track.notes = append(p.track.notes, "the raw output ends early ("+why+"); what came before it counts")
	}
	p.finish()
	return err
}

// until reads as long as it is wanted.
type until struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// declared returns what a start's reports count.
func declared(j result.RawJob) workload.Declared {
	return workload.Declared{Operations: j.Operations, Measures: j.Measures, Format: j.Format}
}

// histsBetween subtracts cumulative histograms, by operation; nil when there are none. A histogram that went backwards
// gives nil, and the reason. One that covers more than the time between, because there was none yet at its beginning,
// gives nil, too.
func histsBetween(from, to tally.Mark) (out []*hist.Histogram, err error) {
	if to.Hists == nil {
		return nil, nil
	}
	out = make([]*hist.Histogram, len(to.Hists))
	for i, h := range to.Hists {
		var before *hist.Histogram
		if from.Hists != nil {
			before = from.Hists[i]
		}
		if h == nil || h == before || before == nil && from.Totals.Ops(i) > 0 {
			continue
		}
		d, e := h.Sub(before)
		if e != nil {
			err = e
			continue
		}
		out[i] = d
	}
	return out, err
}
