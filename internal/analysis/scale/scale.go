// Package scale asks how throughput grows with load and where caches end: the Universal Scalability Law and the load
// curve of a scale-out test, the steps of a working-set sweep. It gives view.Checks to package analysis, and what they
// are made of to tables and to several runs; the methods are packages usl, curve and stage. Workloads that are not
// alike are not fitted.
package scale

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/curve"
	"plimsoll/internal/analysis/stage"
	"plimsoll/internal/analysis/usl"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// fewest is how many stages without a fault a fit takes at least.
const fewest = 4

// Scalability fits the Universal Scalability Law to the stages of a scale-out test and reads its load curve.
var Scalability = view.Check{Name: "scalability", Rank: 110, Run: scaling}

func scaling(v *view.Run) []result.Finding {
	main := v.Whole()
	stages := v.Stages()
	if stages == nil {
		row := v.ShortStages()
		if row != nil && slices.ContainsFunc(v.Loads[0].Measures(), func(q view.Quantity) bool {
			return q.Measure != main.Measure && q.Better == result.Higher
		}) {
			return nil // they are run for that measure, as NOPM, which each tells by itself
		}
		return short(row, main)
	}
	undisturbed := func(all []view.Step) []view.Step { // a stage under a fault says nothing of how throughput grows
		return slices.DeleteFunc(slices.Clone(all), func(s view.Step) bool {
			return slices.ContainsFunc(v.Faults(), func(f view.Fault) bool {
				return f.Start.Before(s.End) && (f.End.IsZero() || f.End.After(s.Start))
			})
		})
	}
	if all := len(stages); len(undisturbed(stages)) < all {
		if stages = undisturbed(stages); len(stages) < fewest {
			return []result.Finding{{
				Check: "scalability", Severity: result.Info, Subject: "run",
				Sentence: fmt.Sprintf("How throughput grows is not told: faults were in force in %d of %d stages, and at "+
					"least %d without one are needed.", all-len(stages), all, fewest),
				Metric: contention(main), Unit: "%", NoInterval: "nothing was fitted", Basis: view.Plural(all, "stage"),
				N: len(stages),
			}}
		}
	}
	var out []result.Finding
	if main.Measure == "" && slices.ContainsFunc(v.Loads, (*view.Load).Timed) {
		var load []curve.Point
		for _, s := range stages {
			p := curve.Point{Concurrency: s.Concurrency, Throughput: s.Throughput.Value, ResponseSeconds: s.Response}
			if in := s.Throughput.Interval; in.Valid() {
				p.ThroughputStdErr = (in.High - in.Low) / 2 / view.NormalQuantile
			}
			load = append(load, p)
		}
		out, _ = LoadCurve(load, main, stagesBasis(stages)) // what is no curve is told by the fit
	}
	grows := slices.ContainsFunc(v.Loads, func(l *view.Load) bool {
		return slices.ContainsFunc(l.Parts[0].Streams, func(n result.Stream) bool { return n.Bytes > 0 })
	})
	out = append([]result.Finding{scalesBy(main, stages, grows)}, out...)
	for _, q := range v.Loads[0].Measures() { // the others have the same
		if q.Measure != main.Measure && q.Better == result.Higher {
			if more := undisturbed(v.StagesOf(q)); len(more) >= fewest {
				out = append(out, scalesBy(q, more, grows))
			}
		}
	}
	return out
}

// short tells of a growing load whose stages are too short for a fit what its ends were.
func short(stages []stage.Stage, q view.Quantity) []result.Finding {
	if stages == nil {
		return nil
	}
	first, last := stages[0], stages[len(stages)-1]
	least := slices.MinFunc(stages, func(a, b stage.Stage) int { return cmp.Compare(a.Points, b.Points) }).Points
	why := fmt.Sprintf("the shortest of its %s has %s, and each needs %d", view.Plural(len(stages), "stage"),
		view.Plural(least, "point"), stage.Fewest)
	f := result.Finding{
		Check: "scalability", Severity: result.Info, Subject: "run", Metric: contention(q), Unit: "%", N: len(stages),
		NoInterval: "no fit: " + why, Basis: view.Plural(len(stages), "stage") + " of one run",
	}
	known := slices.DeleteFunc(slices.Clone(stages), func(s stage.Stage) bool { return !(s.Throughput.Value > 0) })
	if len(known) < 2 {
		f.Sentence = fmt.Sprintf("How throughput grows from %s to %s operations in flight cannot be told.",
			view.SayCount(first.Concurrency), view.SayCount(last.Concurrency))
		return []result.Finding{f}
	}
	most, goesOn := last.Concurrency, ""
	first, last = known[0], known[len(known)-1]
	if last.Concurrency < most {
		goesOn = fmt.Sprintf(", and the test goes on to ×%s", view.SayCount(most/first.Concurrency))
	}
	what := "operation"
	if first.Concurrency != 1 {
		what = "operations"
	}
	f.Evidence = []result.Evidence{{Name: "first stage", Value: first.Throughput.Value, Unit: q.Unit},
		{Name: "last stage", Value: last.Throughput.Value, Unit: q.Unit}}
	f.Sentence = fmt.Sprintf("%s with %s %s in flight, %s with %s: ×%s the throughput for ×%s the load%s. How "+
		"throughput grows between them cannot be told: %s.", q.Brief(first.Throughput.Value),
		view.SayCount(first.Concurrency), what, q.Brief(last.Throughput.Value), view.SayCount(last.Concurrency),
		view.SayCount(last.Throughput.Value/first.Throughput.Value),
		view.SayCount(last.Concurrency/first.Concurrency), goesOn, why)
	return []result.Finding{f}
}

// scalesBy fits the law to one quantity. Data that grow with the load are in a shared cache to an ever smaller part.
func scalesBy(q view.Quantity, stages []view.Step, grows bool) result.Finding {
	var points []usl.Point
	for _, s := range stages {
		points = append(points, usl.Point{Concurrency: s.Concurrency, Throughput: s.Throughput.Value})
	}
	m, err := usl.Fit(points, usl.Options{})
	if err == nil {
		return Fitted(stages, points, m, q, stagesBasis(stages), grows)
	}
	return result.Finding{
		Check: "scalability", Severity: result.Info, Subject: "run",
		Sentence: "No scalability fit: " + err.Error() + ".",
		Metric:   contention(q), Unit: "%", NoInterval: "nothing was fitted", Basis: view.Plural(len(stages), "stage"),
		N: len(stages),
	}
}

// contention returns what a fit finds, of a measure with its name.
func contention(q view.Quantity) string {
	if q.Measure != "" {
		return "contention by " + q.Name
	}
	return "contention"
}

func stagesBasis(stages []view.Step) string {
	return fmt.Sprintf(
		"%s of one run, %s to %s VMs, the beginning of each left out; concurrency is the depth of all jobs together",
		view.Plural(len(stages), "stage"), view.SayCount(float64(stages[0].Workloads)),
		view.SayCount(float64(stages[len(stages)-1].Workloads)))
}

// Fitted tells of the law m as fitted to the stages of a quantity, the points; basis says where they are from, and
// grows whether the data grew with the load.
func Fitted(stages []view.Step, points []usl.Point, m *usl.Model, q view.Quantity, basis string,
	grows bool) result.Finding {
	first, last := stages[0], stages[len(stages)-1]
	f := result.Finding{
		Check: "scalability", Severity: result.Info, Subject: "run", Metric: contention(q), Unit: "%",
		Value: view.Ptr(100 * m.Alpha), N: len(stages),
		Basis:    basis + "; Universal Scalability Law by bounded least squares, errors " + m.Errors.Words(),
		Warnings: m.Warnings,
		Evidence: []result.Evidence{
			{Name: "contention", Value: 100 * m.Alpha, Unit: "%"}, {Name: "crosstalk", Value: 100 * m.Beta, Unit: "%"},
			{Name: "throughput of one", Value: m.Gamma, Unit: q.Unit},
			{Name: "first stage", Value: first.Throughput.Value, Unit: q.Unit}, {Name: "last stage",
				Value: last.Throughput.Value, Unit: q.Unit},
		},
	}
	view.SetInterval(&f, m.AlphaParameter.Interval().Map(func(x float64) float64 { return 100 * x }))
	more := last.Concurrency / first.Concurrency
	grew := last.Throughput.Value / first.Throughput.Value
	what := "throughput"
	if q.Measure != "" {
		what = q.Name
	}
	ways := contended(m, grows, last.Concurrency) + crossed(m, last.Concurrency) + ". " +
		peakWords(m, q, last.Concurrency)
	switch d := m.Fall; {
	case m.Cap.Closer:
		f.NoInterval = "a line up to a cap is closer to the points than the law"
		ways = fmt.Sprintf("as a line up to a cap of about %s, reached at about %s in flight, to which the law of contention "+
			"and crosstalk is less close: look for what limits it, such as a link, a rate or the client. No peak.",
			q.Brief(m.Cap.Limit()), view.SayCount(m.Cap.Concurrency))
	case d.Closer:
		f.NoInterval = "throughput falls at once, which the law of contention and crosstalk does not know"
		ways = fmt.Sprintf("on the way it fell at once, from %s at %s in flight to about %s from %s on: look for what "+
			"gives way there, such as memory, a queue or connections. No peak of a law is told.", q.Brief(d.From),
			view.SayCount(d.Last), q.Brief(d.Level), view.SayCount(d.First))
	}
	if m.Cap.Closer || m.Fall.Closer {
		f.Value, f.Low, f.High = nil, nil, nil
	}
	highest := ""
	best := slices.MaxFunc(stages, func(a, b view.Step) int {
		return cmp.Compare(a.Throughput.Value, b.Throughput.Value)
	})
	if best.Throughput.Value > 1.05*last.Throughput.Value {
		highest = fmt.Sprintf(" (the most at %s: %s)", view.SayCount(best.Concurrency), q.Brief(best.Throughput.Value))
	}
	verb := "grew"
	if grew < 1 {
		verb = "fell to"
	}
	f.Sentence = fmt.Sprintf("%s %s ×%s, from %s to %s%s, between %s and %s operations in flight (×%s); %s",
		view.Capital(what), verb, view.SayCount(grew), view.SayCount(first.Throughput.Value),
		q.Brief(last.Throughput.Value), highest, view.SayCount(first.Concurrency), view.SayCount(last.Concurrency),
		view.SayCount(more), ways)
	top := last.Concurrency
	if m.Peak.Exists && m.Peak.Concurrency < 2*top {
		top = max(top, m.Peak.Concurrency*1.1)
	}
	measured := result.ChartLine{Name: "measured", Points: true}
	for _, p := range points {
		measured.X, measured.Y = append(measured.X, p.Concurrency), append(measured.Y,
			view.Ptr(view.Round(p.Throughput)))
	}
	fitted, line := result.ChartLine{Name: "Universal Scalability Law"}, result.ChartLine{Name: "straight line"}
	for i := range 61 {
		n := first.Concurrency + (top-first.Concurrency)*float64(i)/60
		fitted.X, fitted.Y = append(fitted.X, view.Round(n)), append(fitted.Y, view.Ptr(view.Round(m.At(n))))
		if linear := m.Gamma * n; linear <= 1.3*m.At(top) {
			line.X, line.Y = append(line.X, view.Round(n)), append(line.Y, view.Ptr(view.Round(linear)))
		}
	}
	f.Chart = &result.Chart{Title: view.Capital(what) + " by operations in flight", XLabel: "operations in flight",
		XUnit: "count", YUnit: q.Unit, Lines: []result.ChartLine{measured, fitted, line}}
	if m.Peak.Exists && m.Peak.Concurrency <= top {
		f.Chart.Marks = []result.ChartPlace{{At: view.Round(m.Peak.Concurrency), Text: "peak of the fit"}}
	}
	return f
}

const little = 0.1 // of the throughput of the last stage without it, by what an interval leaves of a coefficient

// contended and crossed say the two coefficients in words, and speak of contention only when its interval leaves no
// other choice; of none only when what it leaves would take little at the last stage.
func contended(m *usl.Model, grows bool, last float64) string {
	in := m.AlphaParameter.Interval()
	switch {
	case m.Alpha == 0 && in.Valid() && in.High*last > little:
		return fmt.Sprintf("contention inconclusive (up to %s)", view.Share(in.High))
	case in.Valid() && !(in.Low > 0) && in.High*last <= little:
		return "no contention"
	case m.Alpha == 0:
		return "contention inconclusive"
	case !(in.Low > 0): // or there is no interval
		return fmt.Sprintf("contention inconclusive (%s)", view.Share(m.Alpha))
	case grows:
		return "contention, or a shared cache that holds ever less of the growing data, " + view.Share(m.Alpha)
	}
	return "contention " + view.Share(m.Alpha)
}

// crossed speaks of crosstalk only when the points cannot do without.
func crossed(m *usl.Model, last float64) string {
	in := m.BetaParameter.Interval()
	switch {
	case m.Beta == 0 && in.Valid() && in.High*last*(last-1) <= little:
		return ", no crosstalk"
	case m.Beta == 0 || m.CrosstalkP() > 1-view.Confidence:
		return ", crosstalk inconclusive"
	}
	return fmt.Sprintf(", crosstalk %s", view.Share(m.Beta))
}

func peakWords(m *usl.Model, q view.Quantity, last float64) string {
	p := m.Peak
	switch {
	case p.Artefact:
		return "No peak is told: a line up to a cap fits as well."
	case p.Climbs:
		return "No peak is told: throughput falls by no more than the stages scatter."
	case p.Exists && p.InRange && m.CrosstalkP() > 1-view.Confidence:
		return fmt.Sprintf("The fit has a peak at about %s in flight; whether there is one is inconclusive.",
			view.SayCount(p.Concurrency))
	case p.Exists && p.InRange:
		return fmt.Sprintf("Peak at about %s in flight: more load beyond it gives less.", view.SayCount(p.Concurrency))
	case p.Exists && m.CrosstalkP() <= 1-view.Confidence:
		return fmt.Sprintf("No peak measured; the fit puts one at about %s in flight, beyond the %s measured.",
			view.SayCount(p.Concurrency), view.SayCount(last))
	case p.Exists && m.Alternatives[1].P <= 1-view.Confidence: // no limit of Amdahl's law holds
		return "No peak is told: throughput does not fall."
	case math.IsInf(m.Limit(), 1), !(m.AlphaParameter.Interval().Low > 0): // a limit that contention alone makes
		return "No peak."
	}
	return fmt.Sprintf("No peak; by the fit, throughput stays below about %s.", q.Brief(m.Limit()))
}

// LoadCurve gives the throughput/response-time curve with the single-client point, the knee and Little's law.
func LoadCurve(load []curve.Point, q view.Quantity, basis string) ([]result.Finding, error) {
	c, err := curve.Read(load)
	if err != nil {
		return nil, err
	}
	knee := c.Knee
	f := result.Finding{
		Check: "load-curve", Severity: result.Info, Subject: "run", Metric: "knee", Unit: "count",
		Value: view.Ptr(knee.Concurrency), N: len(load),
		NoInterval: fmt.Sprintf("the knee is one of the stages measured; the true one lies between %s and %s",
			view.SayCount(c.KneeLow), view.SayCount(c.KneeHigh)),
		Basis: basis + "; the knee is the stage of greatest throughput ÷ service time, between the stages next to it; in a closed loop service and response time are the same", Warnings: c.Warnings,
	}
	first := c.Points[0]
	what := view.SayCount(first.Concurrency) + " in flight"
	if c.Single != nil {
		first, what = *c.Single, "one operation in flight"
	}
	last := c.Points[len(c.Points)-1]
	f.Evidence = []result.Evidence{
		{
			Name:  "service time, " + what,
			Value: first.ResponseSeconds,
			Unit:  "s",
		}, {Name: "service time at the knee", Value: knee.ResponseSeconds, Unit: "s"},
		{Name: "service time at the last stage", Value: last.ResponseSeconds, Unit: "s"},
		{Name: "throughput at the knee", Value: knee.Throughput, Unit: q.Unit},
		{Name: "largest deviation from Little's law", Value: 100 * littleWorst(c), Unit: "%"},
	}
	said := fmt.Sprintf("Mean service time %s with %s, %s with %s: ×%s the time for ×%s the throughput",
		view.SayDuration(first.ResponseSeconds), what, view.SayDuration(last.ResponseSeconds),
		view.SayCount(last.Concurrency), view.SayCount(last.ResponseSeconds/first.ResponseSeconds),
		view.SayCount(last.Throughput/first.Throughput))
	if knee.Concurrency == last.Concurrency {
		f.Sentence = said + ". The knee was not reached."
	} else {
		f.Sentence = fmt.Sprintf("%s. Knee at about %s in flight (%s, %s): beyond it service time grows faster than throughput.", said, view.SayCount(knee.Concurrency), q.Brief(knee.Throughput), view.SayDuration(knee.ResponseSeconds))
	}
	measured := result.ChartLine{Name: "measured"}
	sorted := slices.SortedStableFunc(slices.Values(c.Points),
		func(a, b curve.Reading) int { return cmp.Compare(a.Throughput, b.Throughput) })
	points := result.ChartLine{Name: "measured", Points: true}
	for _, p := range sorted {
		points.X, points.Y = append(points.X, view.Round(p.Throughput)), append(points.Y,
			view.Ptr(view.Round(p.ResponseSeconds)))
	}
	measured.X, measured.Y = points.X, points.Y
	f.Chart = &result.Chart{Title: "Mean service time by throughput", XLabel: "throughput", XUnit: q.Unit, YUnit: "s",
		Lines: []result.ChartLine{measured, points}, Marks: []result.ChartPlace{{At: view.Round(first.Throughput),
			Text: what}}}
	if knee.Concurrency != first.Concurrency && knee.Concurrency != last.Concurrency { // there it was not reached
		f.Chart.Marks = append(f.Chart.Marks, result.ChartPlace{At: view.Round(knee.Throughput), Text: "knee"})
	}
	return []result.Finding{f}, nil
}

func littleWorst(c *curve.Curve) (worst float64) {
	for _, p := range c.Points {
		if math.Abs(p.LittleError) > math.Abs(worst) {
			worst = p.LittleError
		}
	}
	return worst
}
