package load

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// ClocksDiffer tells of VMs whose clocks were not plimsoll's, the largest distance first. Their reports are corrected
// for it; what they log is not.
var ClocksDiffer = view.Check{Name: "clocks", Rank: 280, Run: clocksDiffer}

// clockMatters is how far clocks must be apart to be worth a word, in seconds: a twentieth of what reports are apart.
const clockMatters = 0.05

func clocksDiffer(v *view.Run) []result.Finding {
	type machine struct {
		name  string
		ahead float64
	}
	var off []machine
	seen := map[string]bool{}
	for _, l := range v.Loads {
		for _, p := range l.Parts {
			if view.IsFinite(p.ClockSeconds) && math.Abs(p.ClockSeconds) >= clockMatters && !seen[p.VM] {
				seen[p.VM] = true
				off = append(off, machine{p.VM, p.ClockSeconds})
			}
		}
	}
	if len(off) == 0 {
		return nil
	}
	slices.SortStableFunc(off, func(a, b machine) int { return cmp.Compare(math.Abs(b.ahead), math.Abs(a.ahead)) })
	f := result.Finding{
		Check: "clocks", Subject: "run", Severity: result.Info,
		Metric: "largest distance of a VM's clock from plimsoll's", Unit: "s", Value: view.Ptr(math.Abs(off[0].ahead)),
		N: len(
			off), NoInterval: "one reading for each VM", Basis: "time in a generator's first report on each VM, compared with when it was started and when the report came",
	}
	if len(v.Manifest.Clocks) > 0 {
		f.NoInterval = "readings with a bound of their own each"
		f.Basis = "the machines' clocks, asked over the connection before, throughout and after the run; half of a round trip is by how much a reading may be wrong"
	}
	var names []string
	for _, m := range off {
		names = append(names, m.name)
		if len(f.Evidence) < 8 {
			f.Evidence = append(f.Evidence, result.Evidence{Name: m.name + " ahead by", Value: m.ahead, Unit: "s"})
		}
	}
	most := side(off[0].ahead)
	for _, c := range v.Manifest.Clocks { // one that was set has no one distance
		if _, moved := movement(c); moved && c.VM == names[0] {
			most = between(c)
		}
	}
	if len(off) == 1 {
		f.Sentence = fmt.Sprintf(
			"The clock of %s was %s plimsoll's. The times in its reports are corrected for that; times in its own logs are not.",
			names[0], most)
	} else {
		f.Sentence = fmt.Sprintf("The clocks of %s differed from plimsoll's (%s); that of %s was %s it. The times in their reports are corrected for that; times in their own logs are not.",
			view.Plural(len(off), "VM"), view.Three(names), names[0], most)
	}
	return []result.Finding{f}
}
