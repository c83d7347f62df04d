package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"plimsoll/internal/analysis/curve"
	"plimsoll/internal/analysis/stage"
	"plimsoll/internal/analysis/usl"
	"plimsoll/result"
)

// What makes a run a scale-out test: closed loops alike in the size of their operations, joining one after another.
const (
	fewestStages = 4
	alikeSize    = 0.10 // relative difference in the mean size of operations
)

// step is one stage of the growing load with the time its operations took.
type step struct {
	stage.Stage
	response float64 // mean seconds, weighted by operations; 0 unknown
}

// stages finds the growing load of a scale-out test; nil when the run is none.
func (v *view) stages() []step {
	if v.staged == nil {
		s := v.findStages()
		v.staged = &s
	}
	return *v.staged
}

func (v *view) findStages() []step {
	if !v.alike() {
		return nil
	}
	return v.stagesOf(v.whole())
}

// whole is what stands for all workloads of the run together.
func (v *view) whole() quantity {
	if slices.ContainsFunc(v.loads, func(l *load) bool { return l.count() > 0 }) || len(v.loads) == 0 {
		return operationsRate(occurred(v.loads))
	}
	return v.loads[0].main()
}

// stagesOf are the stages of the growing load by one quantity; nil when there are too few.
func (v *view) stagesOf(q quantity) []step {
	var c *track
	if q.measure == "" {
		c = v.totalTrack("")
	}
	var out []step
	for _, s := range stage.Of(v.d, q.measure) {
		if n := len(out); n > 0 && s.Concurrency <= out[n-1].Concurrency {
			break // from here on the load falls
		}
		if !(s.Throughput.Value > 0) {
			return nil
		}
		one := step{Stage: s}
		if c != nil {
			if part := c.between(s.Start, s.End); part.busy != nil {
				if r := flowOf(part.busy, part.ops).level(); isFinite(r) && r > 0 {
					one.response = r
				}
			}
		}
		out = append(out, one)
	}
	if len(out) < fewestStages {
		return nil
	}
	return out
}

// alike reports whether all workloads are closed loops of operations alike, or report the same measures.
func (v *view) alike() bool {
	type mix map[string]float64
	smallest, largest := math.Inf(1), 0.0
	var first mix // of the operations, and of measures their names
	for _, l := range v.loads {
		for _, p := range l.parts {
			n, _ := totals(p.Ops)
			if n == 0 && len(p.Values) == 0 || seconds(p) == 0 {
				continue
			}
			least, most := depths(p.Lanes)
			if most == 0 || least < most {
				return false // a rate is offered, or the depth is not known
			}
			var bytes float64
			shares := mix{}
			for _, o := range p.Ops {
				if o.Count == 0 {
					continue
				}
				bytes += float64(o.Bytes)
				shares[string(p.Block(o.Op))+" "+o.Op] = float64(o.Count) / float64(n)
			}
			for _, m := range p.Measures {
				shares[m.Name+" in "+m.Unit] = 1
			}
			if first == nil {
				first = shares
			}
			for _, name := range slices.Concat(slices.Collect(maps.Keys(first)), slices.Collect(maps.Keys(shares))) {
				if !(math.Abs(first[name]-shares[name]) <= alikeSize) {
					return false // the mix differs
				}
			}
			size := bytes / float64(max(n, 1))
			smallest, largest = min(smallest, size), max(largest, size)
		}
	}
	return first != nil && largest <= smallest*(1+alikeSize)
}

// scaling fits the Universal Scalability Law to the stages of a scale-out test and reads its load curve.
func scaling(v *view) []result.Finding {
	stages := v.stages()
	if stages == nil {
		return nil
	}
	main := v.whole()
	var out []result.Finding
	if main.measure == "" && slices.ContainsFunc(v.loads, (*load).timed) {
		var load []curve.Point
		for _, s := range stages {
			p := curve.Point{Concurrency: s.Concurrency, Throughput: s.Throughput.Value, ResponseSeconds: s.response}
			if in := s.Throughput.Interval; in.Valid() {
				p.ThroughputStdErr = (in.High - in.Low) / 2 / z
			}
			load = append(load, p)
		}
		out, _ = loadCurve(load, main, stagesBasis(stages)) // what is no curve is told by the fit
	}
	out = append([]result.Finding{scalesBy(main, stages)}, out...)
	for _, q := range v.loads[0].measures() { // the others have the same
		if q.measure != main.measure && q.better == result.Higher {
			if more := v.stagesOf(q); more != nil {
				out = append(out, scalesBy(q, more))
			}
		}
	}
	return out
}

// scalesBy fits the law to one quantity.
func scalesBy(q quantity, stages []step) result.Finding {
	var points []usl.Point
	for _, s := range stages {
		points = append(points, usl.Point{Concurrency: s.Concurrency, Throughput: s.Throughput.Value})
	}
	m, err := usl.Fit(points, usl.Options{})
	if err == nil {
		return scalability(stages, points, m, q, stagesBasis(stages))
	}
	return result.Finding{
		Check: "scalability", Severity: result.Notice, Subject: "run",
		Sentence: "How it scales cannot be fitted: " + err.Error() + ".",
		Metric:   contention(q), Unit: "%", NoInterval: "nothing was fitted", Basis: plural(len(stages), "stage"),
		N: len(stages),
	}
}

// contention is what a fit finds, of a measure with its name.
func contention(q quantity) string {
	if q.measure != "" {
		return "contention by " + q.name
	}
	return "contention"
}

func stagesBasis(stages []step) string {
	return fmt.Sprintf("%s of one run, %s to %s VMs, the beginning of each left out; concurrency is the depth of all jobs together", plural(len(stages), "stage"), sayCount(float64(stages[0].Workloads)), sayCount(float64(stages[len(stages)-1].Workloads)))
}

func scalability(stages []step, points []usl.Point, m *usl.Model, q quantity, basis string) result.Finding {
	first, last := stages[0], stages[len(stages)-1]
	f := result.Finding{
		Check: "scalability", Severity: result.Notice, Subject: "run", Metric: contention(q), Unit: "%",
		Value: ptr(100 * m.Alpha), N: len(stages),
		Basis:    basis + "; Universal Scalability Law by bounded least squares, errors " + m.Errors.Words(),
		Warnings: m.Warnings,
		Evidence: []result.Evidence{
			{Name: "contention", Value: 100 * m.Alpha, Unit: "%"}, {Name: "crosstalk", Value: 100 * m.Beta, Unit: "%"},
			{Name: "throughput of one", Value: m.Gamma, Unit: q.unit},
			{Name: "first stage", Value: first.Throughput.Value, Unit: q.unit}, {Name: "last stage",
				Value: last.Throughput.Value, Unit: q.unit},
		},
	}
	setInterval(&f, m.AlphaParameter.Interval().Map(func(x float64) float64 { return 100 * x }))
	more := last.Concurrency / first.Concurrency
	grew := last.Throughput.Value / first.Throughput.Value
	what := "throughput"
	if q.measure != "" {
		what = q.name
	}
	f.Sentence = fmt.Sprintf("From %s to %s operations in flight (×%s) %s grew ×%s, from %s to %s; %s%s. %s",
		sayCount(first.Concurrency), sayCount(last.Concurrency), sayCount(more), what, sayCount(grew),
		sayCount(first.Throughput.Value),
		q.brief(last.Throughput.Value), contended(m.Alpha), crossed(m), peakWords(m, q, last.Concurrency))
	top := last.Concurrency
	if m.Peak.Exists && m.Peak.Concurrency < 2*top {
		top = max(top, m.Peak.Concurrency*1.1)
	}
	measured := result.ChartLine{Name: "measured", Points: true}
	for _, p := range points {
		measured.X, measured.Y = append(measured.X, p.Concurrency), append(measured.Y, ptr(round(p.Throughput)))
	}
	fitted, line := result.ChartLine{Name: "Universal Scalability Law"}, result.ChartLine{Name: "straight line"}
	for i := range 61 {
		n := first.Concurrency + (top-first.Concurrency)*float64(i)/60
		fitted.X, fitted.Y = append(fitted.X, round(n)), append(fitted.Y, ptr(round(m.At(n))))
		if linear := m.Gamma * n; linear <= 1.3*m.At(top) {
			line.X, line.Y = append(line.X, round(n)), append(line.Y, ptr(round(linear)))
		}
	}
	f.Chart = &result.Chart{Title: capital(what) + " by operations in flight", XLabel: "operations in flight",
		XUnit: "count", YUnit: q.unit, Lines: []result.ChartLine{measured, fitted, line}}
	if m.Peak.Exists && m.Peak.Concurrency <= top {
		f.Chart.Marks = []result.ChartPlace{{At: round(m.Peak.Concurrency), Text: "peak of the law"}}
	}
	return f
}

// contended and crossed say the two coefficients in words.
func contended(alpha float64) string {
	if alpha == 0 {
		return "no contention showed"
	}
	return fmt.Sprintf("%s of the work queues (contention)", sayPercent(alpha))
}

// crossed speaks of crosstalk only when the points cannot do without.
func crossed(m *usl.Model) string {
	switch {
	case m.Beta == 0:
		return " and there is no crosstalk"
	case m.CrosstalkP() > 1-Confidence:
		return " and crosstalk cannot be told from none"
	}
	return fmt.Sprintf(" and crosstalk is %s", sayPercent(m.Beta))
}

// sayPercent keeps the digits of small shares.
func sayPercent(share float64) string {
	switch {
	case share < 0.000001:
		return "less than 0.0001 %"
	case share < 0.001:
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return percent(share)
}

func peakWords(m *usl.Model, q quantity, last float64) string {
	p := m.Peak
	switch {
	case p.Exists && p.InRange && m.CrosstalkP() > 1-Confidence:
		return fmt.Sprintf("The law puts a peak at about %s in flight, but these points cannot tell it from none.", sayCount(p.Concurrency))
	case p.Exists && p.InRange:
		return fmt.Sprintf("It peaks at about %s in flight; beyond that more load gives less.", sayCount(p.Concurrency))
	case p.Exists && m.CrosstalkP() <= 1-Confidence:
		return fmt.Sprintf("There is no peak in range; the law puts one at about %s in flight, beyond the %s measured.", sayCount(p.Concurrency), sayCount(last))
	case math.IsInf(m.Limit(), 1):
		return "There is no peak in range."
	}
	return fmt.Sprintf("There is no peak in range; by the law contention alone would limit it to about %s.",
		q.brief(m.Limit()))
}

// loadCurve gives the throughput/response-time curve with the single-client point, the knee and Little's law.
func loadCurve(load []curve.Point, q quantity, basis string) ([]result.Finding, error) {
	c, err := curve.Read(load)
	if err != nil {
		return nil, err
	}
	knee := c.Knee
	f := result.Finding{
		Check: "load-curve", Severity: result.Notice, Subject: "run", Metric: "knee", Unit: "count", Value: ptr(knee.Concurrency), N: len(load),
		NoInterval: fmt.Sprintf("the knee is one of the stages measured; the true one lies between %s and %s", sayCount(c.KneeLow), sayCount(c.KneeHigh)),
		Basis:      basis + "; the knee is the stage of greatest throughput ÷ service time, between the stages next to it; in a closed loop service and response time are the same", Warnings: c.Warnings,
	}
	first := c.Points[0]
	what := sayCount(first.Concurrency) + " in flight"
	if c.Single != nil {
		first, what = *c.Single, "one operation in flight"
	}
	last := c.Points[len(c.Points)-1]
	f.Evidence = []result.Evidence{
		{Name: "service time, " + what, Value: first.ResponseSeconds, Unit: "s"}, {Name: "service time at the knee", Value: knee.ResponseSeconds, Unit: "s"}, {Name: "service time at the last stage", Value: last.ResponseSeconds, Unit: "s"},
		{Name: "throughput at the knee", Value: knee.Throughput, Unit: q.unit},
		{Name: "largest deviation from Little's law", Value: 100 * littleWorst(c), Unit: "%"},
	}
	said := fmt.Sprintf("With %s an operation takes %s, and at %s in flight %s: ×%s the time for ×%s the work", what, sayDuration(first.ResponseSeconds), sayCount(last.Concurrency), sayDuration(last.ResponseSeconds), sayCount(last.ResponseSeconds/first.ResponseSeconds), sayCount(last.Throughput/first.Throughput))
	if knee.Concurrency == last.Concurrency {
		f.Sentence = said + ". The knee was not reached."
	} else {
		f.Sentence = fmt.Sprintf("%s. The knee is at about %s in flight (%s, %s): beyond it time grows faster than throughput.", said, sayCount(knee.Concurrency), q.brief(knee.Throughput), sayDuration(knee.ResponseSeconds))
	}
	measured := result.ChartLine{Name: "measured"}
	sorted := slices.SortedStableFunc(slices.Values(c.Points), func(a, b curve.Reading) int { return cmp.Compare(a.Throughput, b.Throughput) })
	points := result.ChartLine{Name: "measured", Points: true}
	for _, p := range sorted {
		points.X, points.Y = append(points.X, round(p.Throughput)), append(points.Y, ptr(round(p.ResponseSeconds)))
	}
	measured.X, measured.Y = points.X, points.Y
	f.Chart = &result.Chart{Title: "Mean service time by throughput", XLabel: "throughput", XUnit: q.unit, YUnit: "s",
		Lines: []result.ChartLine{measured, points}, Marks: []result.ChartPlace{{At: round(first.Throughput),
			Text: "you are here: " + what}}}
	if knee.Concurrency != first.Concurrency {
		f.Chart.Marks = append(f.Chart.Marks, result.ChartPlace{At: round(knee.Throughput), Text: "knee"})
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
