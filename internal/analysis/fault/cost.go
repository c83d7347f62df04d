package fault

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/recovery"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// free measures a fault until something else begins, and then until it was over and what it took would have been seen,
// or for a while where nobody says that it was, and reports whether it took nothing by one of the two: what was lost
// later is not its doing.
func free(v *view.Run, group string, q view.Quantity, e result.Mark, since time.Time) (Comeback, bool) {
	until := undisturbed(v, group, e.Time)
	o, ok := measure(v, group, q, e, since, until)
	if over := o.ended; ok && o.hit() {
		if over.IsZero() {
			over = e.Time.Add(aWhile)
		}
		if over = over.Add(hold(o.track)); until.IsZero() || over.Before(until) {
			o, ok = measure(v, group, q, e, since, over)
		}
	}
	return o, ok && !o.hit()
}

// stillOnce tells of VMs that stood still once where two faults came at one moment: of the first, which names the
// other.
func stillOnce(all []Comeback) []Comeback {
	for i := 1; i < len(all); i++ {
		if all[i].at.Sub(all[i-1].at) <= oneFault && all[i-1].vms.VMs > 0 && !all[i].hit() {
			all[i].vms = view.StoodStill{}
		}
	}
	return all
}

// aWhile is for how long a fault that does not end has what it takes seen, at least.
const aWhile = time.Minute

// hit reports whether the fault cost more than noise: work worth more than two points, or a second, was behind, and
// more than the noise before the fault adds up to in such a time; or, where the next fault came soon, most points
// between lay below the level that counts as regained.
func (o *Comeback) hit() bool {
	after := o.after()
	below := !o.Regained.Reached && len(after) >= fewestAfter && resample.Median(after) < 0.9*o.Before.Value
	least := o.Before.Value * max(1, 2*o.track.Step)
	if in := o.Before.Interval; in.Valid() && o.Regained.Reached {
		const deviations = 3
		n, k := o.Before.EffectiveSize*o.Before.Time, o.Regained.Seconds/o.track.Step
		least = max(least, deviations*(in.High-in.Low)/2/view.NormalQuantile*math.Sqrt(k*(n+k))*o.track.Step)
	}
	return o.Stopped.Reached || below || o.Behind > least || o.fell()
}

// fell reports whether several points in a row after the fault lie below the level that counts as regained, and further
// below the one before than its points lie around it: two while it was in force, where they lie below half of that
// level and of any point before.
func (o *Comeback) fell() bool {
	const deviations = 5
	row := max(3, min(fewestAfter, int(math.Ceil(10/o.track.Step)))) // ten seconds, where reports are rare
	var before []float64
	for i, x := range o.track.Ops {
		if view.IsFinite(x) && !o.track.At(i).After(o.at) {
			before = append(before, x)
		}
	}
	if len(before) < 3 {
		return false
	}
	least := min(0.9*o.Before.Value, o.Before.Value-deviations*stat.StdDev(before, nil))
	below, deep, half := 0, 0, min(least, o.Before.Value/2, slices.Min(before)/2)
	for i, x := range o.track.Ops {
		if t := o.track.At(i); !view.IsFinite(x) || !t.After(o.at) {
			continue
		} else if deep++; x >= half || t.After(o.ended) {
			deep = 0
		}
		if below++; x >= least {
			below = 0
		}
		if below == row || deep == 2 {
			return true
		}
	}
	return false
}

// paced reports whether any of a load's streams is on a schedule: what these missed they may make up for.
func paced(l *view.Load) bool {
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
		return slices.ContainsFunc(p.Streams, func(s result.Stream) bool { return s.OpenLoop || s.Rate > 0 })
	})
}

// joinLate gives two points after a fault their mean where one lacks what the other has too much, and neither is near
// the level before: a load that waits for its answers makes up for nothing, so that is a report that came late, or a
// clock that was set.
func joinLate(points []recovery.Point, at float64) []recovery.Point {
	const deviations = 5
	var before []float64
	for _, p := range points {
		if p.Seconds <= at {
			before = append(before, p.Value)
		}
	}
	if len(before) < 3 {
		return points
	}
	level, spread := stat.MeanStdDev(before, nil)
	out := slices.Clone(points)
	for i := max(1, len(before)); i < len(out); i++ {
		a, b := out[i-1].Value-level, out[i].Value-level
		if a*b < 0 && min(math.Abs(a), math.Abs(b)) > deviations*spread &&
			math.Abs(a+b) < math.Sqrt2*deviations*spread {
			out[i-1].Value, out[i].Value = level+(a+b)/2, level+(a+b)/2
		}
	}
	return out
}

// fewestAfter is how many points after a fault tell whether it struck, where the level was not regained.
const fewestAfter = 5

// rose is how many times its former level a load that was not hit is above that it "kept".
const rose = 1.25

// after returns what was measured from the fault on.
func (o *Comeback) after() []float64 {
	values, _ := view.FiniteOf(o.track.Between(o.at, o.track.At(len(o.track.Ops))).Ops)
	return values
}

// usual reports whether the level before the fault, in points, had dropped as far and for half as long as it did after.
func (o *Comeback) usual(before []float64) bool {
	took := o.Regained.Seconds
	switch {
	case o.Regained.Reached:
	case o.Stopped.Reached:
		return false
	default:
		took = float64(len(o.after())) * o.track.Step
	}
	run, deep := 0.0, false
	for _, x := range before {
		if x >= 0.9*o.Before.Value {
			run, deep = 0, false
			continue
		}
		run, deep = run+o.track.Step, deep || x <= 1.5*o.Lowest
		if deep && run >= max(2*o.track.Step, took/2) {
			return true
		}
	}
	return false
}
