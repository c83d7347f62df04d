package load

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Together tells how far apart the VMs of a workload began that were to begin together.
var Together = view.Check{Name: "start-skew", Rank: 285, Run: together}

// skewMatters bounds how far apart starts may be, in seconds.
const skewMatters = 0.05

func together(v *view.Run) (out []result.Finding) {
	for _, l := range v.Loads {
		if l.Merged == nil || l.Merged.StartSkew == nil {
			continue
		}
		s := l.Merged.StartSkew
		if !view.IsFinite(s.Seconds) || !view.IsFinite(s.BoundSeconds) || s.Seconds < 0 {
			continue
		}
		f := result.Finding{
			Check: "start-skew", Subject: l.Name, Severity: result.Passed,
			Metric: "time between the first and the last VM's beginning", Unit: "s", Value: view.Ptr(s.Seconds),
			N:          s.VMs,
			NoInterval: "one start; the worst, of several",
			Basis:      "when each machine began the command that was ready on it, by its clock, put on plimsoll's",
			Sentence: fmt.Sprintf("The %s of %s began within %s of each other, give or take %s.",
				view.Plural(s.VMs, "VM"), l.Name, view.SayDuration(s.Seconds), view.SayDuration(s.BoundSeconds)),
			Evidence: []result.Evidence{{Name: "it may be wrong by", Value: s.BoundSeconds, Unit: "s"}},
		}
		if s.Seconds > skewMatters+s.BoundSeconds {
			f.Severity = result.Info
			f.Sentence += fmt.Sprintf(" More than %s: the first seconds are not of all of them.",
				view.SayDuration(skewMatters))
		}
		out = append(out, f)
	}
	return out
}

// ClocksMoved tells of machines whose clocks moved against plimsoll's while the run went on, the one that moved most
// first.
var ClocksMoved = view.Check{Name: "clocks-moved", Rank: 282, Run: clocksMoved}

func clocksMoved(v *view.Run) []result.Finding {
	type machine struct {
		name        string
		moved, over float64
		between     string
	}
	var off []machine
	for _, c := range v.Manifest.Clocks {
		if moved, ok := movement(c); ok {
			off = append(off, machine{c.VM, moved, c.Last.Time.Sub(c.First.Time).Seconds(), between(c) + " it in " +
				view.Plural(c.Readings, "reading")})
		}
	}
	if len(off) == 0 {
		return nil
	}
	slices.SortStableFunc(off, func(a, b machine) int { return cmp.Compare(math.Abs(b.moved), math.Abs(a.moved)) })
	worst := off[0]
	f := result.Finding{
		Check: "clocks-moved", Subject: "run", Severity: result.Warning,
		Metric: "largest movement of a VM's clock against plimsoll's", Unit: "s", Value: view.Ptr(worst.moved),
		N:          len(off),
		NoInterval: "readings with a bound of their own each",
		Basis:      "the machines' clocks, asked over the connection before, throughout and after the run",
	}
	var names []string
	for _, m := range off {
		names = append(names, m.name)
		if len(f.Evidence) < 8 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: m.name + " moved by", Value: m.moved, Unit: "s"})
		}
	}
	f.Sentence = fmt.Sprintf("The clock of %s moved by %s against plimsoll's within %s, %s", worst.name,
		view.SayDuration(worst.moved), view.SayDuration(worst.over), worst.between)
	if len(off) > 1 {
		f.Sentence = fmt.Sprintf("The clocks of %s moved against plimsoll's (%s); that of %s by %s within %s, %s",
			view.Plural(len(off), "VM"), view.Three(names), worst.name, view.SayDuration(worst.moved),
			view.SayDuration(worst.over), worst.between)
	}
	f.Sentence += ": reports are placed as if they had moved evenly; one that was set at once puts them up to that far off. Run chrony or ntpd on the machines."
	return []result.Finding{f}
}

// movement gives how far the readings of a clock are apart, and whether that is more than they may be wrong by.
func movement(c result.HostClock) (seconds float64, ok bool) {
	seconds, bound := c.MostSeconds-c.LeastSeconds, c.First.BoundSeconds+c.Last.BoundSeconds
	return seconds, view.IsFinite(seconds) && view.IsFinite(bound) && seconds > clockMatters+bound
}

// between says where all readings of a clock lie.
func between(c result.HostClock) string {
	if c.MostSeconds < 0 {
		return fmt.Sprintf("between %s and %s", view.SayDuration(-c.MostSeconds), side(c.LeastSeconds))
	}
	least := side(c.LeastSeconds)
	if c.LeastSeconds >= 0 {
		least = view.SayDuration(c.LeastSeconds)
	}
	return fmt.Sprintf("between %s and %s", least, side(c.MostSeconds))
}

// side says how far a clock was from another, and on which side.
func side(ahead float64) string {
	if ahead < 0 {
		return view.SayDuration(-ahead) + " behind"
	}
	return view.SayDuration(ahead) + " ahead of"
}
