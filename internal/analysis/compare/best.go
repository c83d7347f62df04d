package compare

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/caches"
	"plimsoll/internal/analysis/curve"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
	"plimsoll/unit"
)

// Best says which combinations do most of one thing, and at what times.
type Best struct {
	Workload string `json:"workload"`
	Name     string `json:"name"` // of the rate
	Unit     string `json:"unit"`
	// Cell has the highest mean rate. Level with it are the others whose mean lies within the threshold of its.
	// LevelSure: by the repeats each of them is within the threshold, not by its mean alone.
	Cell      string    `json:"cell"`
	Rate      CellValue `json:"rate"`
	Level     []string  `json:"level_with_it,omitempty"`
	LevelSure bool      `json:"level_sure,omitempty"`
	// Unsure are those whose mean is lower by more, which by the repeats may still be as high.
	Unsure []string `json:"unsure,omitempty"`
	// Time is the mean time at Cell. Quickest is, of the cells whose mean time lies within the threshold of the
	// shortest, the one with the highest rate. Nil and empty where no times were measured.
	Time         *CellValue `json:"time,omitempty"`
	Quickest     string     `json:"quickest_cell,omitempty"`
	QuickestTime *CellValue `json:"quickest_time,omitempty"`
	QuickestRate float64    `json:"quickest_rate,omitempty"`
}

// Sweep is a rate and its mean time over the rising values of a numeric factor.
type Sweep struct {
	Workload string `json:"workload"`
	Name     string `json:"name"` // of the rate
	Unit     string `json:"unit"`
	Times    string `json:"times"` // service time or response time; empty where none were measured
	Factor   string `json:"factor"`
	// Of names what of the load the factor changes: QueueDepth, BlockSize, WorkingSet, ReadShare; "" for anything else.
	// Over block sizes the rate is that of bytes. Only where more load is offered with it there is a knee.
	Of     string `json:"of,omitempty"`
	Within string `json:"within,omitempty"` // the levels of the other factors
	Steps  []Step `json:"steps"`            // by rising value
	Most   int    `json:"most"`             // the step of the highest rate
	// Knee is the step of the greatest power, rate over mean time, -1 where no times were measured; the maximum lies
	// between the values KneeLow and KneeHigh. KneeAtEnd: it is the first or the last step, so that it may lie beyond.
	Knee      int     `json:"knee"`
	KneeLow   float64 `json:"knee_low,omitempty"`
	KneeHigh  float64 `json:"knee_high,omitempty"`
	KneeAtEnd bool    `json:"knee_at_end,omitempty"`
	// FlatFrom is the first step after which the rate rises by no more than the threshold, -1 when it still rises at
	// the last. Rise is the highest later rate against its, with an interval widened for the number of later steps;
	// where it still rises, the last rate against the one before.
	FlatFrom int      `json:"flat_from"`
	FlatSure bool     `json:"flat_sure"` // the whole interval of each later step lies below the threshold
	Rise     *Against `json:"rise,omitempty"`
	// Slower is the mean time at the last step against that at FlatFrom.
	Slower *Against `json:"slower,omitempty"`
	// Caches are read off a working-set curve; NoCaches is why they could not be.
	Caches   *caches.Reading `json:"caches,omitempty"`
	NoCaches string          `json:"no_caches,omitempty"`
}

// Step is one value of a sweep.
type Step struct {
	Level string    `json:"level"`
	Value float64   `json:"value"`
	Rate  CellValue `json:"rate"`
	Time  CellValue `json:"time"`
}

// Against is a relative difference of means with its interval, Welch's t on logarithms of the repeats.
type Against struct {
	Change   float64           `json:"change"`
	Interval resample.Interval `json:"interval"`
}

// leastSteps is how many values a factor has at least for its curve to be read.
const leastSteps = 4

// timesOf is the mean time of the operations that a rate counts; ok is false where there is none.
func timesOf(all []kind, rate kind) (kind, bool) {
	i := slices.IndexFunc(all, func(k kind) bool {
		return rate.op != "" && k.workload == rate.workload && k.op == rate.op && k.times != ""
	})
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

func (c CellResult) value(k kind) (CellValue, bool) {
	i := slices.IndexFunc(c.Values, func(v CellValue) bool { return v.Workload == k.workload && v.Name == k.name })
	if i < 0 {
		return CellValue{}, false
	}
	return c.Values[i], true
}

// best finds the best combinations and reads the sweeps of every rate.
func (x *Experiment) best(d Design, all []kind) {
	for _, k := range all {
		if !k.throughput {
			continue
		}
		times, timed := timesOf(all, k)
		most := k
		for f := range x.Factors {
			if d.changes(f, k.workload) == BlockSize {
				most = bytesOf(all, k)
			}
		}
		if b, ok := x.bestOf(most, times, timed); ok {
			x.Best = append(x.Best, b)
		}
		for f := range x.Factors {
			x.sweeps(d, f, all, k, times, timed)
		}
	}
}

// bytesOf is the bandwidth of the operations that a rate counts: of operations of different sizes bytes are compared.
func bytesOf(all []kind, rate kind) kind {
	i := slices.IndexFunc(all, func(o kind) bool {
		return o.workload == rate.workload && o.op == rate.op && o.unit == "bytes/s"
	})
	if i < 0 {
		return rate // of no bytes
	}
	return all[i]
}

func (x *Experiment) bestOf(k, times kind, timed bool) (Best, bool) {
	b := Best{Workload: k.workload, Name: k.name, Unit: k.unit}
	for _, c := range x.Cells {
		if v, ok := c.value(k); ok && (b.Cell == "" || v.Value > b.Rate.Value) {
			b.Cell, b.Rate = c.Cell, v
		}
	}
	if b.Cell == "" || len(x.Cells) < 2 {
		return b, false
	}
	shortest := math.Inf(1)
	var level []CellValue
	for _, c := range x.Cells {
		v, ok := c.value(k)
		if ok && c.Cell != b.Cell && v.Value*(1+x.Threshold) >= b.Rate.Value {
			b.Level, level = append(b.Level, c.Cell), append(level, v)
		}
		if t, there := c.value(times); timed && there && t.Value > 0 {
			shortest = min(shortest, t.Value)
			if c.Cell == b.Cell {
				b.Time = &t
			}
		}
	}
	for _, c := range x.Cells {
		v, ok := c.value(k)
		if ok && c.Cell != b.Cell && !slices.Contains(b.Level, c.Cell) &&
			!lower(v, b.Rate, 1-(1-x.Confidence)/float64(len(x.Cells)-1)) {
			b.Unsure = append(b.Unsure, c.Cell)
		}
	}
	for _, c := range x.Cells { // of those as quick as the quickest, the one that does most
		v, ok := c.value(k)
		if t, there := c.value(times); ok && timed && there && t.Value > 0 && t.Value <= shortest*(1+x.Threshold) &&
			(b.QuickestTime == nil || v.Value > b.QuickestRate) {
			b.Quickest, b.QuickestTime, b.QuickestRate = c.Cell, &t, v.Value
		}
	}
	wide := 1 - (1-x.Confidence)/float64(max(1, len(level)))
	b.LevelSure = len(level) > 0 && !slices.ContainsFunc(level, func(v CellValue) bool {
		return !alike(v, b.Rate, wide, x.Threshold)
	})
	return b, true
}

// alike reports whether by their repeats two means differ by no more than the threshold. Repeats that are all alike
// speak for themselves, one of each says nothing.
func alike(a, b CellValue, confidence, threshold float64) bool {
	if len(a.Repeats) < 2 || len(b.Repeats) < 2 {
		return false
	}
	if slices.Min(a.Repeats) == slices.Max(a.Repeats) && slices.Min(b.Repeats) == slices.Max(b.Repeats) {
		return b.Value <= a.Value*(1+threshold)
	}
	in := against(a, b, confidence).Interval
	return in.Valid() && in.Low >= 1/(1+threshold)-1 && in.High <= threshold
}

// lower reports whether by their repeats one mean lies below another.
func lower(a, b CellValue, confidence float64) bool {
	if len(a.Repeats) > 1 && len(b.Repeats) > 1 && slices.Min(a.Repeats) == slices.Max(a.Repeats) &&
		slices.Min(b.Repeats) == slices.Max(b.Repeats) {
		return a.Value < b.Value
	}
	in := against(b, a, confidence).Interval
	return in.Valid() && in.High < 0
}

// sweeps reads the curve over a factor's values, one for every combination of the others.
func (x *Experiment) sweeps(d Design, f int, all []kind, k, times kind, timed bool) {
	of := d.changes(f, k.workload)
	if of == BlockSize {
		k = bytesOf(all, k)
	}
	if of == ReadShare && k.op != allOps {
		return // a part of what is done
	}
	values := make(map[string]float64)
	for _, l := range x.Factors[f].Levels {
		v, ok := number(l)
		if !ok {
			return
		}
		values[l] = v
	}
	within := func(levels []string) string {
		others, rest := slices.Delete(slices.Clone(x.Factors), f, f+1), slices.Delete(slices.Clone(levels), f, f+1)
		return labelOf(others, rest)
	}
	var order []string
	by := map[string][]Step{}
	for _, c := range x.Cells {
		rate, ok := c.value(k)
		if !ok || !(rate.Value > 0) {
			continue
		}
		within := within(c.Levels)
		if by[within] == nil {
			order = append(order, within)
		}
		s := Step{Level: c.Levels[f], Value: values[c.Levels[f]], Rate: rate}
		if timed {
			s.Time, _ = c.value(times)
		}
		by[within] = append(by[within], s)
	}
	for _, rest := range order {
		steps := by[rest]
		slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.Value, b.Value) })
		same := func(a, b Step) bool { return a.Value == b.Value }
		if len(steps) < leastSteps || len(slices.CompactFunc(slices.Clone(steps), same)) < len(steps) {
			continue
		}
		s := Sweep{
			Workload: k.workload,
			Name:     k.name,
			Unit:     k.unit,
			Times:    times.times,
			Factor:   x.Factors[f].Name,
			Of:       of,
			Within:   rest,
			Steps:    steps,
		}
		s.read(x.Confidence, x.Threshold)
		if of == WorkingSet {
			s.readCaches(d, x, within, f)
		}
		x.Sweeps = append(x.Sweeps, s)
	}
}

// number reads a level that is a number, not negative, or a size such as 4k.
func number(level string) (float64, bool) {
	if v, err := strconv.ParseFloat(strings.TrimSpace(level), 64); err == nil {
		return v, v >= 0 && !math.IsInf(v, 0)
	}
	b, err := unit.ParseBytes(level)
	return float64(b), err == nil && b > 0
}

// read finds the highest rate, the knee, and from where on the rate no longer rises.
func (s *Sweep) read(confidence, threshold float64) {
	s.Knee, s.FlatFrom = -1, -1
	var points []curve.Point
	timed := true
	for i, p := range s.Steps {
		if p.Rate.Value > s.Steps[s.Most].Rate.Value {
			s.Most = i
		}
		timed = timed && p.Time.Value > 0
		points = append(
			points,
			curve.Point{
				Concurrency:      p.Value,
				Throughput:       p.Rate.Value,
				ResponseSeconds:  p.Time.Value,
				ThroughputStdErr: stdErr(p.Rate.Repeats),
			},
		)
	}
	if s.Of == WorkingSet || s.Of == ReadShare {
		return // neither offers more load
	}
	if c, err := curve.Read(points); err == nil && timed && s.Of != BlockSize {
		s.Knee = slices.IndexFunc(s.Steps, func(p Step) bool { return p.Value == c.Knee.Concurrency })
		s.KneeLow, s.KneeHigh = c.KneeLow, c.KneeHigh
		s.KneeAtEnd = s.Knee == 0 || s.Knee == len(s.Steps)-1
	}
	last := len(s.Steps) - 1
	for i := range last {
		later := s.Steps[i+1:]
		highest := slices.MaxFunc(later, func(a, b Step) int { return cmp.Compare(a.Rate.Value, b.Rate.Value) })
		if highest.Rate.Value > s.Steps[i].Rate.Value*(1+threshold) {
			continue
		}
		wide := 1 - (1-confidence)/float64(len(later))
		s.FlatFrom, s.FlatSure = i, true
		rise := against(s.Steps[i].Rate, highest.Rate, wide)
		s.Rise = &rise
		for _, p := range later {
			in := against(s.Steps[i].Rate, p.Rate, wide).Interval
			s.FlatSure = s.FlatSure && in.Valid() && in.High <= threshold
		}
		if timed {
			slower := against(s.Steps[i].Time, s.Steps[last].Time, confidence)
			s.Slower = &slower
		}
		return
	}
	rise := against(s.Steps[last-1].Rate, s.Steps[last].Rate, confidence)
	s.Rise = &rise
}

func stdErr(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	return stat.StdDev(x, nil) / math.Sqrt(float64(len(x)))
}

// against is the change of a mean from a to b with Welch's interval, on logarithms so that both ends are ratios.
func against(a, b CellValue, confidence float64) Against {
	out := Against{Change: b.Value/a.Value - 1}
	if len(a.Repeats) < 2 || len(b.Repeats) < 2 {
		out.Interval = resample.None("one run says nothing of what another would give")
		return out
	}
	logs := func(x []float64) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = math.Log(v)
		}
		return y
	}
	la, lb := logs(a.Repeats), logs(b.Repeats)
	va, vb := stat.Variance(la, nil)/float64(len(la)), stat.Variance(lb, nil)/float64(len(lb))
	if !(va+vb > 0) || math.IsInf(va+vb, 0) { // all repeats alike, or one of them 0
		out.Interval = resample.None("the repeats do not differ, so nothing is known of what others would")
		return out
	}
	// Welch 1947, Satterthwaite 1946
	free := (va + vb) * (va + vb) / (va*va/float64(len(la)-1) + vb*vb/float64(len(lb)-1))
	middle, half := stat.Mean(lb, nil)-stat.Mean(la, nil), resample.StudentT(confidence, free)*math.Sqrt(va+vb)
	out.Interval = resample.Interval{
		Low:        math.Expm1(middle - half),
		High:       math.Expm1(middle + half),
		Confidence: confidence,
		Method:     "Welch's t on logarithms of the repeats",
	}
	return out
}

// Overlay are the courses of one rate in all runs, each from the start of its own workload.
type Overlay struct {
	Title, Unit string
	Step        float64 // seconds from point to point
	Lines       []RunLine
}

// RunLine is a rate of one run over its own time.
type RunLine struct {
	Cell, Run string  // Cell is the combination, or the side of a comparison
	From      float64 // seconds of the first value after what the runs are aligned at
	Values    []float64
}

// mostLines bounds the runs of an overlay; more would hide each other.
const mostLines = 60

// labelled is a run with the name under which an overlay shows it.
type labelled struct {
	Run
	label string
}

// overlays lays the courses of every rate in an experiment's runs over each other, combination by combination.
func (x *Experiment) overlays(d Design, all []kind) {
	var runs []labelled
	for _, c := range x.Cells {
		for _, m := range d.at(c.Levels) {
			runs = append(runs, labelled{m.Run, c.Cell})
		}
	}
	x.Overlays = overlaysOf(runs, all)
}

// overlays lays the courses of every rate in the runs of all sides over each other. Sides of several cells have none:
// their runs differ in more than the side.
func (d *Document) overlays(sides []Side, o Options) {
	var runs []labelled
	var made []Made
	for _, s := range sides {
		for _, r := range s.Runs {
			if r.Cell != "" {
				return
			}
			runs, made = append(runs, labelled{r, s.Name}), append(made, Made{Run: r})
		}
	}
	d.Overlays = overlaysOf(runs, kinds(made, o))
}

// overlaysOf are the overlays of all rates of which two runs have a course. Runs whose points are spaced in another way
// than those of the first, or that have none, are left out.
func overlaysOf(runs []labelled, all []kind) (out []Overlay) {
	if len(runs) > mostLines {
		return nil
	}
	for _, k := range all {
		if !k.throughput {
			continue
		}
		measure := result.Rate
		if k.op == "" {
			measure = k.measure.Name
		}
		o := Overlay{Title: k.workload + " " + k.name, Unit: k.unit}
		for _, r := range runs {
			for _, w := range merged(r.Data, false) {
				if w.Name != k.workload {
					continue
				}
				step := stepOf(w, r.Run, k.op, measure)
				course := rateSeries(w, r.Run, k.op, measure)
				if step <= 0 || course.reason != "" || o.Step != 0 && o.Step != step || len(course.value) == 0 {
					continue
				}
				o.Step = step
				o.Lines = append(o.Lines, RunLine{Cell: r.label, Run: r.Manifest.RunID, Values: course.value})
			}
		}
		if len(o.Lines) > 1 {
			out = append(out, o)
		}
	}
	return out
}

// stepOf is the spacing of the series of a workload's VMs; 0 when there is none or it is not the same of all.
func stepOf(w result.Workload, r Run, op, measure string) (step float64) {
	for _, s := range r.Data.Series {
		own := s.VM != "" &&
			slices.ContainsFunc(r.Data.VMs, func(vm result.VM) bool { return vm.Name == s.VM && vm.Group == w.Group })
		switch {
		case !own || s.Op != op || s.Measure != measure:
		case step != 0 && step != s.Step:
			return 0
		default:
			step = s.Step
		}
	}
	return step
}
