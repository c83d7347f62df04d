package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// order looks for a drift along the runs in the order they were made.
func (d *Document) order(sides []Side, o Options) {
	for _, cell := range allCells(sides) {
		type at struct {
			run  Run
			side int
		}
		var all []at
		for i, s := range sides {
			for _, r := range s.in(cell) {
				all = append(all, at{r, i})
			}
		}
		slices.SortStableFunc(all, func(a, b at) int { return inTime(a.run, b.run) })
		if len(all) < 4 {
			continue
		}
		for _, w := range merged(all[0].run.Data, false) {
			var runs []effect.Run
			for _, a := range all {
				l := loads([]Run{a.run}, w.Name)
				if len(l.of) == 0 || !l.of[0].End.After(l.of[0].Start) {
					continue
				}
				if _, v, ok := whole(l.of[0]); ok {
					runs = append(runs, effect.Run{Group: a.side, Value: v})
				}
			}
			drift, err := effect.Drift(runs, effect.Options{Confidence: o.Confidence})
			if err != nil {
				continue // too few repeats to tell, which the notes say
			}
			name, _, _ := whole(w)
			e := Order{Name: w.Name + " " + name + label(cell), Interval: drift.DriftPerRun.Interval, P: drift.P,
				Confounded: drift.Confounded, Warnings: drift.Warnings}
			if v := drift.DriftPerRun.Value; !math.IsNaN(v) {
				e.DriftPerRun = &v
			}
			d.Order = append(d.Order, e)
		}
	}
}

// conclude says what all of it comes to.
func (d *Document) conclude(sides []Side, o Options) {
	d.answer("measures of workloads and results")
	if alone := oneSided(sides); len(alone) > 0 && len(d.Measures) > 0 {
		const most = 3
		d.Sentence += " Only what all sides have is compared: without " + unit.List(alone, most) + "."
	}
	d.sayRuns(o)
	d.notes(sides)
}

// answer gives the verdict and the sentence from the measures, which are called what.
func (d *Document) answer(what string) {
	count := map[Verdict]int{}
	for _, m := range d.Measures {
		count[m.Verdict]++
	}
	switch {
	case count[Worse] > 0:
		d.Verdict = Worse
	case count[Better] > 0:
		d.Verdict = Better
	case len(d.Measures) > 0 && count[Same]+count[Higher]+count[Lower] == len(d.Measures):
		d.Verdict = Same
	default:
		d.Verdict = Inconclusive
	}
	const long = 60 // a list of runs is no name, nor is an identity
	who := d.Sides[1].Name + " against " + d.Sides[0].Name
	if len(who) > long || slices.ContainsFunc(d.Sides, func(s Shown) bool { return slices.Contains(s.Runs, s.Name) }) {
		who = "Candidate against baseline"
	}
	if n := len(d.Sides) - 1; n > 1 {
		who = fmt.Sprintf("%d candidates against the baseline", n)
	}
	var parts []string
	for _, v := range []Verdict{Worse, Better, Higher, Lower, Same, Inconclusive} {
		if count[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	if len(parts) == 0 {
		d.Sentence = who + ": there is nothing that both have, so nothing is compared."
		return
	}
	d.Sentence = fmt.Sprintf("%s: %s (threshold %.3g %%, %d %s).%s", who, strings.Join(parts, ", "), d.Threshold*100,
		len(d.Measures), singular(len(d.Measures), what),
		mostOf(d.Measures, func(i int) string { return d.Measures[i].called() }))
}

// singular is the name of some things, for one of them.
func singular(n int, what string) string {
	first, of, more := strings.Cut(what, " ")
	if n != 1 {
		return what
	}
	if first = strings.TrimSuffix(first, "s"); more {
		first += " " + of
	}
	return first
}

// weight is how much a difference is worth telling: the logarithm of the ratio at the end of its interval nearer to no
// difference. A gain counts half, so that a loss comes before a gain of its size; what is not decided, or has no ratio,
// counts nothing.
func (m Measure) weight() float64 {
	if m.Verdict == Same || m.Verdict == Inconclusive || m.Absolute || m.Change == nil || !m.Adjusted.Valid() {
		return 0
	}
	low, high := math.Log1p(m.Adjusted.Low), math.Log1p(m.Adjusted.High)
	if math.IsNaN(low) || math.IsInf(low, 0) || math.IsNaN(high) || math.IsInf(high, 0) || low < 0 && high > 0 {
		return 0
	}
	nearer := min(math.Abs(low), math.Abs(high))
	if m.Verdict == Worse {
		return nearer
	}
	return nearer / 2
}

// mostOf names the difference of several that is most worth telling, and the largest loss where that is a gain.
func mostOf(all []Measure, called func(i int) string) string {
	most, loss := -1, -1
	for i, m := range all {
		w := m.weight()
		if w > 0 && (most < 0 || w > all[most].weight()) {
			most = i
		}
		if w > 0 && m.Verdict == Worse && (loss < 0 || w > all[loss].weight()) {
			loss = i
		}
	}
	if most < 0 || len(all) < 2 {
		return ""
	}
	change := func(i int) string {
		return fmt.Sprintf("%s %s (%s)", called(i), unit.Change(*all[i].Change), all[i].Verdict)
	}
	if loss >= 0 && loss != most {
		return fmt.Sprintf(" Largest change: %s; largest loss: %s.", change(most), change(loss))
	}
	return fmt.Sprintf(" Largest change: %s.", change(most))
}

// called is the measure's name in a sentence.
func (m Measure) called() string {
	name := m.Name
	if m.Workload != "" {
		name = m.Workload + ": " + name
	}
	if m.Cell != "" {
		name += " at " + m.Cell
	}
	return name
}

func (d *Document) say(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

func (d *Document) sayFamilies() {
	for _, f := range d.Families {
		if f.Measures > 1 {
			d.say("%s", f.sentence(d.Confidence))
		}
	}
}

// sentence says how far the intervals of a family are widened.
func (f Family) sentence(confidence float64) string {
	how := fmt.Sprintf("their intervals are widened to %.4g %%", f.Confidence*100)
	if f.Confidence <= confidence {
		how = fmt.Sprintf("all of them differ, so their intervals stay at %.4g %%", confidence*100)
	}
	return fmt.Sprintf("%d %s: %s, so that at most %.3g %% of the differences claimed are expected to be "+
		"chance (Benjamini and Yekutieli 2005).",
		f.Measures, f.Name, how, 100*(1-confidence))
}

// mind says when numbers come from a model, or from runs that were scaled.
func mind(runs []Run) (notes []string) {
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Manifest.Simulated }) {
		notes = append(notes, "Simulated: time is virtual and every number comes from a model. It says nothing about "+
			"any real storage.")
	}
	other := func(v float64) bool { return v != 1 && v != 0 }
	time := slices.ContainsFunc(runs, func(r Run) bool { return other(r.Manifest.TimeScale) })
	size := slices.ContainsFunc(runs, func(r Run) bool { return other(r.Manifest.SizeScale) })
	switch {
	case time && size:
		notes = append(notes, "The runs are scaled in time and size.")
	case time:
		notes = append(notes, "The runs are scaled in time.")
	case size:
		notes = append(notes, "The runs are scaled in size.")
	}
	return notes
}

func (d *Document) notes(sides []Side) {
	single, few := false, false
	for i, s := range sides {
		for _, cell := range allCells([]Side{s}) {
			n := len(s.in(cell))
			other := len(sides[0].in(cell))
			if i == 0 {
				other = len(sides[1].in(cell))
			}
			single, few = single || n == 1 && other == 1, few || n < 3
		}
	}
	if single {
		d.Sentence += " This holds for these runs only: each side is a single run."
		d.say("With one run on each side, intervals come from the variation within the run. They say whether these runs " +
			"differ, not what another run of the same would show. Make three or more of each side, in mixed order.")
	} else if few {
		d.say("Fewer than three repeats of some side: the intervals are very wide.")
	}
	d.sayFamilies()
	var first []string
	for _, e := range d.Order {
		switch {
		case e.Confounded > 0.5:
			first = append(first, e.Name)
		case e.P < 0.05:
			d.say("%s: it drifts from run to run (p = %.2g), apart from the difference between the sides.", e.Name, e.P)
		}
	}
	if len(first) > 0 {
		d.say("%s: runs of one side came before those of the other: %s. Mix the order.", unit.List(first, 3),
			d.hidden())
	}
	for _, s := range sides {
		for _, r := range s.Runs {
			if m := r.Manifest; m.Measured.State != "yes" {
				d.say("Run %s of %s: run status %s. %s", m.RunID, s.Name, m.Measured.Word(),
					m.Measured.Reason)
			}
		}
	}
	var all []Run
	for _, s := range sides {
		all = append(all, s.Runs...)
	}
	d.Mind = append(mind(all), loose(sides)...)
}

// unkept are values of a server's settings with which its commits wait for no disk.
var unkept = map[string][]string{"fsync": {"off"}, "synchronous_commit": {"off"},
	"innodb_flush_log_at_trx_commit": {"0", "2"}}

// loose says of which sides the commits wait for no disk: their rates are not those of servers that keep them.
func loose(sides []Side) (notes []string) {
	for _, s := range sides {
		var off []string
		for _, r := range s.Runs {
			for _, f := range r.Manifest.Environment {
				if strings.HasPrefix(f.Group, result.ServerGroup) && slices.Contains(unkept[f.Name], f.Value) {
					off = view.AppendNew(off, f.Name+" "+f.Value)
				}
			}
		}
		if len(off) > 0 {
			notes = append(notes, fmt.Sprintf("Commits of %s did not wait for the disk (%s): a crash loses some, and "+
				"its rates are not those of a server that keeps them.", s.Name, strings.Join(off, ", ")))
		}
	}
	return notes
}
