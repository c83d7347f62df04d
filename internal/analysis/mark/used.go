package mark

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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

// near says what was full in the probe nearest to a rate, and what else was near. It names no cause: what is full
// beside a limit that breaks may be its reason or not.
func near(probes []Probe, rate float64) string {
	nearest := slices.MinFunc(probes, func(p, q Probe) int {
		return cmp.Compare(math.Abs(math.Log(p.Offered/rate)), math.Abs(math.Log(q.Offered/rate)))
	})
	if len(nearest.Used) == 0 {
		return ""
	}
	say := func(u Used) string { return fmt.Sprintf(usable[u.Measure], u.Of, u.Percent) }
	first := nearest.Used[0]
	if first.Percent < full {
		return fmt.Sprintf("Nothing that was counted was full near it: %s.", say(first))
	}
	text := fmt.Sprintf("Near it %s", say(first))
	if len(nearest.Used) > 1 {
		text += ", " + say(nearest.Used[1])
	}
	return text + "."
}
