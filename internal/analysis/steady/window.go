package steady

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Options of a verdict on a long series. The zero value is what the fields say.
type Options struct {
	Tolerance    float64 // shifts and drifts up to this share of the mean do not matter; 0 means 0.05
	Significance float64 // of changes and periods; 0 means 0.01
	Confidence   float64 // of the mean's interval; 0 means 0.95
	Seed         uint64  // 0 means resample.DefaultSeed
	// Among is how many series of one run are judged: the more there are, the rarer chance alone makes one of them look
	// as if its spread or its level moved (Bonferroni). 0 means 1.
	Among int
}

// share is a chance divided among the series of a run.
func (o Options) share(chance float64) float64 { return chance / float64(max(1, o.Among)) }

func (o Options) filled() (Options, error) {
	for _, f := range []struct {
		v    *float64
		zero float64
	}{{&o.Tolerance, 0.05}, {&o.Significance, 0.01}, {&o.Confidence, 0.95}} {
		if *f.v == 0 {
			*f.v = f.zero
		}
	}
	var bad []error
	for _, f := range []struct {
		name string
		v    float64
	}{{"tolerance", o.Tolerance}, {"significance", o.Significance}, {"confidence", o.Confidence}} {
		if !(f.v > 0 && f.v < 1) {
			bad = append(bad, fmt.Errorf("steady: %s %v: must lie between 0 and 1", f.name, f.v))
		}
	}
	return o, errors.Join(bad...)
}

// Stretch is the verdict on a long series. Indices are into the series given.
type Stretch struct {
	Reached     bool
	CannotTell  bool        // neither steady nor shown not to be: Reason says what is missing
	Unusable    bool        // and nothing else was looked for: by Reason no word on the values can be relied on
	First, Last int         // what is judged: all but the warm-up
	WarmUp      int         // points left out at the start as warm-up, at most a third
	Mean        serial.Mean // over the stretch, in whole periods when there is a period
	DriftShare  float64     // movement of the fitted line across the stretch ÷ |mean|, with its sign
	// DriftWithin is the interval of DriftShare at 90 %, so that it lies beyond the tolerance by chance in one of
	// twenty.
	DriftWithin resample.Interval
	Period      serial.Period  // of the series after the warm-up
	Changes     []change.Point // changes of level that matter
	Still       []Stall
	Strays      []int  // points far further off than all others, too few to matter to the level or the spread
	Reason      string // why not reached; empty when it was
	Warnings    []string

	slides bool // what looks like steps is a slow movement
	drifts bool // it was told of a drift
}

// Stall is a row of points at which next to nothing was done.
type Stall struct{ First, Last int }

// Gaps are the rows of at least three points that are missing (NaN), from and to points that are there: what went on in
// that time nobody knows, and it may be a stall.
func Gaps(values []float64) (out []Stall) {
	first := -1
	for i, v := range values {
		switch {
		case math.IsNaN(v):
		case first >= 0 && i-first > fewestStill:
			out = append(out, Stall{first + 1, i - 1})
			fallthrough
		default:
			first = i
		}
	}
	return out
}

const (
	fewestPoints = 50   // below, the parts of the method cannot say anything
	mostPoints   = 5000 // beyond, levels are compared in means of equal parts
	fewestStill  = 3    // points of a standstill
	stillBelow   = 0.01 // of the median
	stillChance  = 0.01 // of so long a row of such points by chance, as among counts of few
	wandering    = 0.95 // dependence of neighbours beyond which a series cannot be told from a random walk
)

// Window judges a long series of evenly spaced points, such as one per second: all of it but the warm-up (WarmUp). If
// it has a period, and all whole periods are alike, it is judged by means over whole periods.
//
// It is steady when it does not stand still; when no change point moves the level by more than the tolerance (package
// change); when no slow movement, of up to three swings, stands out of what the dependence of neighbours explains and
// moves the level so far; when its last tenth does not lie so far from the rest; when its spread is the same
// throughout; and when its line moves it by less than the tolerance, the doubt about the line included. Whatever is
// shown to be otherwise is in Reason. When nothing is shown but the line may move by more than the tolerance,
// CannotTell is set.
func Window(values []float64, o Options) (Stretch, error) {
	o, err := o.filled()
	if err = errors.Join(err, serial.Finite("steady", values)); err != nil {
		return Stretch{}, err
	}
	s := Stretch{Last: len(values) - 1}
	if len(values) < fewestPoints {
		s.CannotTell, s.Reason = true, fmt.Sprintf("%d points: at least %d are needed, use rounds instead", len(values),
			fewestPoints)
		s.Mean.Interval = resample.None("no steady window")
		return s, nil
	}
	if why := unusable(values, o.Tolerance); why != "" {
		s.CannotTell, s.Unusable, s.Reason = true, true, why
		s.Mean.Interval = resample.None("no steady window")
		return s, nil
	}
	var settled bool
	if s.WarmUp, settled = WarmUp(values); !settled {
		s.WarmUp = 0
	}
	s.First = s.WarmUp
	part := values[s.First:]
	if s.Period, err = serial.PeriodOf(part, o.Significance); err != nil {
		return Stretch{}, err
	}
	step := 1
	if s.Period.Found {
		step = int(math.Round(s.Period.Points))
	}
	if s.Mean, err = serial.MeanOf(blocks(part, step), o.Confidence); err != nil {
		return Stretch{}, err
	}
	s.Mean.Time *= float64(step)
	var reasons []string
	not := func(format string, args ...any) { reasons = append(reasons, signed(format, args...)) }
	if !settled {
		not("after a third of it the start still differs from the rest: it has not settled")
	}
	s.stillness(part, not)
	if err := s.levels(part, step, o, not); err != nil {
		return Stretch{}, err
	}
	doubt := s.movement(blocks(calm(part, o.Tolerance), step), o, not)
	s.spread(part, step, o, not)
	s.astray(part, o.Tolerance)
	if len(reasons) == 0 && doubt != "" {
		s.CannotTell = true
		reasons = append(reasons, doubt)
	}
	for i, r := range reasons {
		if i > 0 {
			s.Reason += "; "
		}
		s.Reason += r
	}
	if s.Reached = len(reasons) == 0; !s.Reached && !s.CannotTell {
		s.Mean.Interval = resample.None("it was not steady")
	}
	return s, nil
}

// unusable says why no verdict rests on values: none of them is anything but 0, or one of them is so far from the
// others that the mean is made by it alone; "" when neither.
func unusable(values []float64, tolerance float64) string {
	const (
		largest = 1e100 // is measured by nobody, and squares of more overflow
		astray  = 100   // times the median size
		far     = 10    // the same of one beside which there is no other such
	)
	at, second := 0, 0.0
	sizes := make([]float64, len(values))
	for i, v := range values {
		sizes[i] = math.Abs(v)
		switch {
		case i > 0 && sizes[i] > sizes[at]:
			at, second = i, sizes[at]
		case i > 0:
			second = max(second, sizes[i])
		}
	}
	most, median := sizes[at], resample.Median(sizes)
	switch n := float64(len(values)); {
	case most == 0:
		return "all values are 0: nothing was done, or nothing was counted"
	case most > largest, median > 0 && most > astray*median && most > tolerance*n*median:
		return fmt.Sprintf("point %d is %.4g, where half of them are within %.4g: by itself it makes the mean",
			at+1, values[at], median)
	case median > 0 && most > far*median && most > far*second/2 && most > tolerance*n*median:
		return fmt.Sprintf("point %d is %.4g, where half of them are within %.4g: by itself it moves the mean by %.3g %%",
			at+1, values[at], median, 100*(most-median)/(n*median))
	}
	return ""
}

// strays are the points, three at most, that lie off the median by five times as much as any other, and by more than
// the tolerance.
func strays(part []float64, tolerance float64) []int {
	const most, far = 3, 5
	median, order := resample.Median(part), make([]int, len(part))
	for i := range order {
		order[i] = i
	}
	off := func(i int) float64 { return math.Abs(part[i] - median) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(off(b), off(a)) })
	for n := min(most, len(part)-1); n > 0; n-- {
		last, others := off(order[n-1]), off(order[n])
		if last > far*others && others > 0 && last > tolerance*math.Abs(median) {
			slices.Sort(order[:n])
			return order[:n]
		}
	}
	return nil
}

// calm returns the points with strays that stand alone at the median: by themselves they are no movement and no spread,
// and hide what the others do. They are named instead.
func calm(part []float64, tolerance float64) []float64 {
	out, at := slices.Clone(part), strays(part, tolerance)
	for j, i := range at {
		if (j == 0 || at[j-1] < i-1) && (j == len(at)-1 || at[j+1] > i+1) {
			out[i] = resample.Median(part)
		}
	}
	return out
}

// astray names the strays: they move the mean by less than matters, and yet something waited there, or all of it did.
func (s *Stretch) astray(part []float64, tolerance float64) {
	var names []string
	for _, i := range strays(part, tolerance) {
		s.Strays = append(s.Strays, s.First+i)
		names = append(names, fmt.Sprintf("point %d is %.4g", s.First+i+1, part[i]))
	}
	if names != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s, where the median is %.4g and all others are near it: "+
			"look at what happened there", strings.Join(names, ", "), resample.Median(part)))
	}
}

// stillness finds rows of points at next to nothing. Those of a period are part of what is steady, unless the series
// ends in one that is longer than the others.
func (s *Stretch) stillness(part []float64, not func(string, ...any)) {
	median := resample.Median(part)
	if !(median > 0) {
		return
	}
	still := func(v float64) bool { return math.Abs(v) <= stillBelow*median }
	all := 0.0
	for _, v := range part {
		if still(v) {
			all++
		}
	}
	longest := 0 // but for the last
	for i := 0; i < len(part); i++ {
		from := i
		for i < len(part) && still(part[i]) {
			i++
		}
		row, n := float64(i-from), float64(len(part))
		if i-from < fewestStill || n*math.Pow((all-row)/max(n-row, 1), row) > stillChance {
			continue
		}
		s.Still = append(s.Still, Stall{s.First + from, s.First + i - 1})
		if i < len(part) {
			longest = max(longest, i-from)
		}
	}
	if len(s.Still) == 0 {
		return
	}
	last := s.Still[len(s.Still)-1]
	switch ends := last.Last == s.Last; {
	case ends && last.Last-last.First+1 > longest:
		not("it ends in a stall, from point %d on", last.First+1)
	case !s.Period.Found:
		more := ""
		if len(s.Still) > 1 {
			more = fmt.Sprintf(", and %d times more", len(s.Still)-1)
		}
		not("it stalled at points %d to %d%s", s.Still[0].First+1, s.Still[0].Last+1, more)
	}
}

// levels looks for changes of level that matter.
func (s *Stretch) levels(part []float64, step int, o Options, not func(string, ...any)) error {
	step = max(step, (len(part)+mostPoints-1)/mostPoints)
	least := o.Tolerance * math.Abs(stat.Mean(part, nil))
	if math.IsInf(least, 0) {
		return errors.New("steady: the values are too large to add up")
	}
	found, err := change.Detect(blocks(part, step),
		change.Options{Significance: o.Significance, MinShift: least, Seed: o.Seed})
	if err != nil {
		return err
	}
	if s.slides = found.Slides; s.slides { // told as a drift or a slow movement
		return nil
	}
	for _, p := range found.Points {
		p.Index, p.Low, p.High = s.First+p.Index*step, s.First+p.Low*step, s.First+p.High*step
		s.Changes = append(s.Changes, p)
	}
	if len(s.Changes) > 0 {
		p := s.Changes[0]
		by := "from 0"
		if p.Before != 0 {
			by = signed("by %+.1f %%", 100*(p.After-p.Before)/math.Abs(p.Before))
		}
		more := ""
		if n := len(s.Changes) - 1; n == 1 {
			more = ", and once more"
		} else if n > 1 {
			more = fmt.Sprintf(", and %d times more", n)
		}
		not("its level changes %s at point %d%s", by, p.Index+1, more)
	}
	return nil
}

// movement judges the line, slow swings and the last tenth; doubt is why it cannot be told, if nothing is shown.
func (s *Stretch) movement(even []float64, o Options, not func(string, ...any)) (doubt string) {
	const fewest = 4 // means of periods to fit a line and know its error
	if len(even) < fewest {
		return fmt.Sprintf("%d periods are too few to judge a drift, %d are needed", len(even), fewest)
	}
	level := math.Abs(stat.Mean(even, nil))
	if level == 0 && stat.Variance(even, nil) == 0 {
		return ""
	}
	if i := s.Mean.Interval; level == 0 || i.Valid() && i.Contains(0) {
		return "its mean cannot be told from 0, and a tolerance is a share of the mean"
	}
	l := lineOf(even)
	s.DriftShare = l.move / level
	half := resample.StudentT(0.9, l.dof) * l.error / level
	s.DriftWithin = resample.Interval{
		Low:        s.DriftShare - half,
		High:       s.DriftShare + half,
		Confidence: 0.9,
		Method:     "line by least squares, with dependence",
	}
	low, high := even[0], even[0]
	for _, v := range even {
		low, high = min(low, v), max(high, v)
	}
	if high-low <= o.Tolerance*level { // no value is further from another than may be
		if len(even) >= fewestForSwings && noiseOf(even).phi >= wandering && high > low {
			s.Warnings = append(s.Warnings,
				"adjacent points are nearly equal: all lie within the tolerance, but later ones may wander")
		}
		return ""
	}
	shown := resample.StudentT(0.99, l.dof) * l.error / level // as large by chance in one of a hundred
	s.drifts = math.Abs(s.DriftShare) > max(o.Tolerance, shown)
	if s.drifts {
		not("it drifts by %+.1f %% of its mean, %.4g %% are allowed", 100*s.DriftShare, 100*o.Tolerance)
	}
	if len(even) >= fewestForSwings {
		n := noiseOf(even)
		by, swings := n.swings(even, o.share(0.001))
		if (swings || s.slides) && by > o.Tolerance*level && !s.drifts && len(s.Changes) == 0 {
			not(
				"it moves slowly, by %.1f %% of its mean and in fewer than three swings, which alike adjacent points do not explain",
				100*by/level)
		}
		if by, ok := n.lastTenth(even); ok && math.Abs(by) > o.Tolerance*level && len(s.Changes) == 0 {
			not("its last tenth lies %+.1f %% from the rest", 100*by/level)
		}
		if n.phi >= wandering {
			return fmt.Sprintf("adjacent points are so alike (correlation %.2f) that it may wander by itself", n.phi)
		}
	}
	if math.Abs(s.DriftShare)+half > o.Tolerance {
		return signed(
			"it may drift by %+.1f to %+.1f %% of its mean, and %.4g %% are allowed: too few points for their noise",
			100*s.DriftWithin.Low, 100*s.DriftWithin.High, 100*o.Tolerance)
	}
	return ""
}

// signed is as fmt.Sprintf, with the minus of reports before a number.
func signed(format string, args ...any) string {
	return strings.ReplaceAll(fmt.Sprintf(format, args...), " -", " −")
}

// line is a straight line through a series by least squares.
type line struct {
	move  float64 // from the first point to the last
	error float64 // standard error of that
	dof   float64
}

// lineOf fits a line. The error comes from the slow waves of what the line leaves (serial.SumOf); the line takes most
// of the first of them away, so that one fewer is known.
func lineOf(x []float64) line {
	n := float64(len(x))
	at := make([]float64, len(x))
	for i := range at {
		at[i] = float64(i)
	}
	intercept, slope := stat.LinearRegression(at, x, nil, false)
	rest := make([]float64, len(x))
	for i, v := range x {
		rest[i] = v - intercept - slope*at[i]
	}
	if len(x) < fewestForSwings { // means of whole periods, taken as independent
		return line{
			move:  slope * (n - 1),
			error: math.Sqrt(stat.Variance(rest, nil) * (n - 1) / (n - 2) * 12 / n),
			dof:   n - 2,
		}
	}
	sum := serial.SumOf(rest, nil)
	variance := sum.Variance / n * sum.DOF / (sum.DOF - 1) // of a point, in the long run
	return line{move: slope * (n - 1), error: math.Sqrt(variance * 12 / n), dof: sum.DOF - 1}
}

// noise holds what neighbours tell of a series whose level may move slowly.
type noise struct {
	phi   float64 // first-order dependence
	shock float64 // variance of what each point adds
}

// fewestForSwings is the shortest series in which dependence can be told from slow movement.
const fewestForSwings = 20

// noiseOf reads first-order dependence from squared differences at distances 1 and 2, which slow movement hardly
// touches:
// their means have the ratio 1 + φ. A standard error is added, since noise taken as too independent makes movement out
// of it.
func noiseOf(x []float64) noise {
	var one, two float64
	for i := 2; i < len(x); i++ {
		a, b := x[i]-x[i-1], x[i]-x[i-2]
		one, two = one+a*a, two+b*b
	}
	if one == 0 {
		return noise{}
	}
	n := float64(len(x) - 2)
	phi := two/one - 1
	phi = min(max(phi+1/math.Sqrt(n), 0), 0.99)
	return noise{phi: phi, shock: one / n * (1 + phi) / 2}
}

// long is the variance of a point in the long run.
func (n noise) long() float64 { return n.shock / ((1 - n.phi) * (1 - n.phi)) }

// swings sums the first six cosine waves, which make up to three swings. ok tells that together they hold more than
// first-order dependence explains but in a share of all series, which is chance; by is how far they move the level.
func (n noise) swings(x []float64, chance float64) (by float64, ok bool) {
	const waves = 6
	if n.shock == 0 {
		return 0, false
	}
	size := float64(len(x))
	slow := make([]float64, len(x))
	statistic := 0.0
	for j := 1; j <= waves; j++ {
		angle := math.Pi * float64(j) / size
		amplitude := 0.0
		for i, v := range x {
			amplitude += v * math.Cos(angle*(float64(i)+0.5))
		}
		power := n.shock / (1 + n.phi*n.phi - 2*n.phi*math.Cos(angle))
		statistic += 2 * amplitude * amplitude / size / power
		for i := range slow {
			slow[i] += 2 * amplitude / size * math.Cos(angle*(float64(i)+0.5))
		}
	}
	low, high := slow[0], slow[0]
	for _, v := range slow {
		low, high = min(low, v), max(high, v)
	}
	return high - low, statistic > distuv.ChiSquared{K: waves}.Quantile(1-chance)
}

// lastTenth is how far the mean of the last tenth lies from that of the rest; ok when noise explains it but in one of a
// thousand series.
func (n noise) lastTenth(x []float64) (by float64, ok bool) {
	k := max(3, len(x)/10)
	rest, last := x[:len(x)-k], x[len(x)-k:]
	by = stat.Mean(last, nil) - stat.Mean(rest, nil)
	return by, math.Abs(by) > 3.3*math.Sqrt(n.long()*(1/float64(len(last))+1/float64(len(rest))))
}

// blocks are means over whole steps; what is left at the end is left out.
func blocks(x []float64, step int) []float64 {
	if step <= 1 {
		return x
	}
	out := make([]float64, len(x)/step)
	for i := range out {
		out[i] = stat.Mean(x[i*step:(i+1)*step], nil)
	}
	return out
}

// WarmUp is the number of points to leave out at the start, at most a third. MSER-5 (White 1997; White, Cobb and Spratt
// 2000) proposes: over means of five points it minimises the squared standard error of the mean of what remains,
// Σ(y−ȳ)²/(m−d)². Since that also cuts noise and drift, the proposal counts only if it looks like a warm-up: its mean
// differs from where the line through the rest leads by more than noise and dependence explain but in one of a thousand
// series, its first third lies there as far or further, and its last no further. settled is false when there is such a
// start, the proposal lies at a third, and the last of it still differs: then leaving out more would help.
func WarmUp(values []float64) (points int, settled bool) {
	const batch = 5
	y := blocks(values, batch)
	m := len(y)
	most := m / 3
	if most < 1 {
		return 0, true
	}
	best, cut := math.Inf(1), 0
	var n, mean, squares float64 // of y[d:], grown from the end
	for d := m - 1; d >= 0; d-- {
		n++
		delta := y[d] - mean
		mean += delta / n
		squares += delta * (y[d] - mean)
		if v := squares / (n * n); d <= most && v <= best {
			best, cut = v, d
		}
	}
	if cut == 0 {
		return 0, true
	}
	if warm, still := warms(values[:cut*batch], values[cut*batch:]); warm {
		return cut * batch, cut < most || !still
	}
	return 0, true
}

// warms tells whether a head looks like the warm-up of the rest, and whether its last third still does.
func warms(head, rest []float64) (warm, still bool) {
	const rare = 3.3 // standard errors, which noise exceeds in one of a thousand series
	noise, louder := noiseOf(rest), louderBy(head, rest)
	l, level, k, n := lineOf(rest), stat.Mean(rest, nil), float64(len(head)), float64(len(rest))
	// What the line of the rest leads to expect in the middle of some points of the head, and how well that is known.
	off := func(from, to int) (by, doubt float64) {
		before := n/2 + k - float64(from+to)/2
		by = stat.Mean(head[from:to], nil) - level + l.move*before/n
		return by, rare * math.Hypot(math.Sqrt(noise.long()*(louder/float64(to-from)+1/n)), l.error*before/n)
	}
	third := max(1, len(head)/3)
	all, doubt := off(0, len(head))
	first, _ := off(0, third)
	last, lastDoubt := off(len(head)-third, len(head))
	warm = math.Abs(all) > doubt && first*all > 0 && math.Abs(first) >= 0.9*math.Abs(all) &&
		math.Abs(last) <= 1.25*math.Abs(first)
	return warm, math.Abs(last) > lastDoubt
}

// louderBy is how many times the variance of the rest a head has, by the differences of neighbours, which a level that
// moves hardly touches; 1 where it is no louder, or too short to tell.
func louderBy(head, rest []float64) float64 {
	steps := func(x []float64) float64 {
		out := make([]float64, len(x)-1)
		for i := range out {
			out[i] = math.Abs(x[i+1] - x[i])
		}
		return resample.Median(out)
	}
	const fewest = 10
	if len(head) < fewest {
		return 1
	}
	if usual := steps(rest); usual > 0 {
		return max(1, math.Pow(steps(head)/usual, 2))
	}
	return 1
}
