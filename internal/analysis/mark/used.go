package mark

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/result"
)

// Used is how much of something below the load was used while a rate was offered.
type Used struct {
	Measure string  `json:"measure"` // of result's measures of machines
	Of      string  `json:"of"`      // the machine, device or CPU, that where most was used
	Percent float64 `json:"percent"` // mean over the time of the workload
}

// full is from where on something is called full, in per cent; a CPU or device that waits now and then is below it.
const full = 90

// usable are the measures that are shares of something that has an end, and what they say.
var usable = map[string]string{
	result.NodeCPU:             "the CPUs of %s were used %.0f %%",
	result.HostCPUs:            "the CPUs of %s were used %.0f %%",
	result.OneCPU:              "%s was used %.0f %%",
	result.HostSteal:           "%s had %.0f %% of its CPU time taken by its hypervisor",
	result.QuotaThrottled:      "the CPU quota of %s held it back in %.0f %% of its periods",
	result.DeviceBusy:          "%s was at work %.0f %% of the time",
	result.DatabaseConnections: "the connections of %s were used %.0f %%",
	result.CPUPressure:         "some task of %s waited for a CPU %.0f %% of the time",
	result.IOPressure:          "some task of %s waited for I/O %.0f %% of the time",
	result.MemoryPressure:      "some task of %s waited for memory %.0f %% of the time",
}

// waits are those of them that say how much had to wait: they have no place at which they are full, and are told where
// they rise.
var waits = []string{result.CPUPressure, result.IOPressure, result.MemoryPressure, result.QuotaThrottled,
	result.HostSteal}

// A wait rises across the mark when it is so many points, and so many times, what it was just below.
const (
	rises      = 10
	risesTimes = 2
)

// Rise is a wait that begins at the mark.
type Rise struct {
	Used          // in the lowest probe above the mark that broke
	Below float64 `json:"below_percent"` // in the highest that held below it
}

// risen are the waits that begin between the highest probe that held below a rate and the lowest that broke above it,
// the largest rise first.
func risen(probes []Probe, rate float64) (out []Rise) {
	var below, beyond *Probe
	for i, p := range probes {
		switch {
		case p.Held && p.Offered <= rate && (below == nil || p.Offered > below.Offered):
			below = &probes[i]
		case !p.Held && p.Offered > rate && (beyond == nil || p.Offered < beyond.Offered):
			beyond = &probes[i]
		}
	}
	if below == nil || beyond == nil {
		return nil
	}
	for _, u := range beyond.Used {
		r := Rise{Used: u}
		if !slices.Contains(waits, u.Measure) {
			continue
		}
		for _, b := range below.Used {
			if b.Measure == u.Measure {
				r.Below = b.Percent
			}
		}
		if u.Percent-r.Below >= rises && u.Percent >= risesTimes*r.Below {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Rise) int { return cmp.Compare(b.Percent-b.Below, a.Percent-a.Below) })
	return out
}

// used reads off a run how much was used of what was counted, by measure that of which most was.
func used(d *result.Data, w result.Workload) (out []Used) {
	most := map[string]Used{}
	for _, s := range d.Series {
		if usable[s.Measure] == "" || s.Unit != "%" || !(s.Step > 0) {
			continue
		}
		sum, n := 0.0, 0.0
		for i, v := range s.Values {
			seconds := s.Start.Sub(w.Start).Seconds() + float64(i)*s.Step
			if v != nil && seconds >= 0 && seconds <= w.Seconds() {
				sum, n = sum+*v, n+1
			}
		}
		of := cmp.Or(s.Part, s.Machine, s.Name)
		if s.Part != "" && s.Machine != "" {
			of = s.Part + " of " + s.Machine
		}
		if u := (Used{s.Measure, of, math.Round(10*sum/n) / 10}); n > 0 && u.Percent >= most[s.Measure].Percent {
			most[s.Measure] = u
		}
	}
	for _, u := range most {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Used) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Measure, b.Measure))
	})
	return out
}

// near says what was full in the probe nearest to a rate and what else was near, and which waits begin there. It names
// no cause: what is full beside a limit that breaks may be its reason or not.
func (a *Answer) near(probes []Probe, rate float64) string {
	nearest := slices.MinFunc(probes, func(p, q Probe) int {
		return cmp.Compare(math.Abs(math.Log(p.Offered/rate)), math.Abs(math.Log(q.Offered/rate)))
	})
	if len(nearest.Used) == 0 {
		return ""
	}
	say := func(u Used) string { return fmt.Sprintf(usable[u.Measure], u.Of, u.Percent) }
	counted := slices.DeleteFunc(slices.Clone(nearest.Used), func(u Used) bool {
		return slices.Contains(waits, u.Measure)
	})
	text := ""
	switch {
	case len(counted) == 0:
	case counted[0].Percent >= full:
		text = "Near it " + say(counted[0])
		if len(counted) > 1 {
			text += ", " + say(counted[1])
		}
		text += "."
	default:
		text = fmt.Sprintf("Nothing that was counted was full near it: %s.", say(counted[0]))
	}
	if a.Rises = risen(probes, rate); len(a.Rises) > 0 {
		text += fmt.Sprintf(" Beyond it %s, just below it %.0f %%.", say(a.Rises[0].Used), a.Rises[0].Below)
	}
	return strings.TrimSpace(text)
}
