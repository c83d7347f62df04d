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

// What says what was used or waited, in words that its share follows.
func (u Used) What() string {
	if u.Measure == result.HostSteal {
		return "CPU time of " + u.Of + " was taken by its hypervisor"
	}
	text, _, _ := strings.Cut(fmt.Sprintf(usable[u.Measure], u.Of, 0.), " 0 %")
	return text
}

// usedOf finds what a probe used of the same as another; false where that was not counted.
func (p *Probe) usedOf(u Used) (found Used, ok bool) {
	if p == nil {
		return found, false
	}
	i := slices.IndexFunc(p.Used, func(v Used) bool { return v.Measure == u.Measure && v.Of == u.Of })
	if i < 0 {
		return found, false
	}
	return p.Used[i], true
}

// full is from where on something is called full, in per cent; a CPU or device that waits now and then is below it.
const full = 90

// usedUp is from what share of its periods on, in per cent, a quota that held back is said to be used up.
const usedUp = 50

// usable are the measures that are shares of something that has an end, and what they say.
var usable = map[string]string{
	result.NodeCPU:             "the CPUs of %s were used %.0f %%",
	result.HostCPUs:            "the CPUs of %s were used %.0f %%",
	result.OneCPU:              "%s was used %.0f %%",
	result.HostSteal:           "%s had %.0f %% of its CPU time taken by its hypervisor",
	result.QuotaThrottled:      "the CPU quota of %s held it back in %.0f %% of its periods",
	ioQuota:                    "the %s was used %.0f %%",
	result.DeviceBusy:          "%s was at work %.0f %% of the time",
	result.DatabaseConnections: "the connections of %s were used %.0f %%",
	result.CPUPressure:         "some task of %s waited for a CPU %.0f %% of the time",
	result.IOPressure:          "some task of %s waited for I/O %.0f %% of the time",
	result.MemoryPressure:      "some task of %s waited for memory %.0f %% of the time",
	result.DatabaseSessions:    "waits for %s kept %.0f %% of the load's sessions",
}

// sessionWaits are the kinds of waits in a database that are its own, and what is waited for.
var sessionWaits = map[string]string{"Lock": "locks", "LWLock": "locks inside the server", "IO": "I/O",
	"BufferPin": "pinned buffers", "IPC": "other sessions"}

// ioQuota is the measure of what a run's group may read or write in a second, which the check io-limit holds against
// what was done.
const ioQuota = "io_quota"

// waits are those of them that say how much had to wait: they have no place at which they are full, and are told where
// they rise.
var waits = []string{result.CPUPressure, result.IOPressure, result.MemoryPressure, result.QuotaThrottled,
	result.HostSteal, result.DatabaseSessions}

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

// across are the highest probe that held below a rate and the lowest that broke above it; nil where there is none.
func across(probes []Probe, rate float64) (below, beyond *Probe) {
	for i, p := range probes {
		switch {
		case p.Held && p.Offered <= rate && (below == nil || p.Offered > below.Offered):
			below = &probes[i]
		case !p.Held && p.Offered > rate && (beyond == nil || p.Offered < beyond.Offered):
			beyond = &probes[i]
		}
	}
	return below, beyond
}

// risen are the waits that begin between two probes, the largest rise first.
func risen(below, beyond *Probe) (out []Rise) {
	if below == nil || beyond == nil {
		return nil
	}
	for _, u := range beyond.Used {
		r := Rise{Used: u}
		if !slices.Contains(waits, u.Measure) {
			continue
		}
		for _, b := range below.Used {
			if b.Measure == u.Measure && (b.Of == u.Of ||
				!strings.Contains(u.Of, ofGroup) && !strings.Contains(b.Of, ofGroup) &&
					u.Measure != result.DatabaseSessions) {
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

// ofGroup is in the names of control groups. Each is looked at by itself: another than the server's may have waited
// all the time.
const ofGroup = "(cgroup "

// used reads off a run how much was used of what was counted, by measure that of which most was. depth is how many
// operations the load may have in flight, and so its sessions with a database.
func used(d *result.Data, w result.Workload, depth int, findings []result.Finding) (out []Used) {
	most, named := map[string]Used{}, names(d)
	for _, s := range d.Series {
		if kind := sessionWaits[s.Part]; s.Measure == result.DatabaseSessions && kind != "" && depth > 0 && s.Step > 0 {
			if mean, n := meanOf(s, w, 0); n > 0 {
				share := min(math.Round(1000*mean/float64(depth))/10, 100)
				out = append(out, Used{s.Measure, kind + " in the database of " + named(s.Machine), share})
			}
		}
		if usable[s.Measure] == "" || s.Unit != "%" || !(s.Step > 0) {
			continue
		}
		mean, n := meanOf(s, w, 0)
		u, key := Used{s.Measure, named(nameOf(s)), math.Round(10*mean) / 10}, s.Measure
		if strings.Contains(u.Of, ofGroup) {
			key += u.Of
		}
		if n > 0 && u.Percent >= most[key].Percent {
			most[key] = u
		}
	}
	for _, u := range most {
		out = append(out, u)
	}
	for _, f := range findings {
		if f.Check == "io-limit" && f.Value != nil && len(f.Evidence) > 0 {
			of := strings.TrimPrefix(f.Metric, "share of the ") + strings.TrimPrefix(f.Evidence[0].Name, "quota")
			out = append(out, Used{ioQuota, of, math.Round(10**f.Value) / 10})
		}
	}
	slices.SortFunc(out, func(a, b Used) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Measure, b.Measure), cmp.Compare(a.Of, b.Of))
	})
	return out
}

// names says texts with the names that people have for the machines of a run: its only one has that of its group.
func names(d *result.Data) func(string) string {
	first, several := "", false
	for _, s := range d.Series {
		if spoken := result.SpokenNames(s.Machine); spoken != s.Machine {
			first, several = cmp.Or(first, spoken), several || first != "" && spoken != first
		}
	}
	return func(text string) string {
		text = result.SpokenNames(text)
		if _, group, ok := strings.Cut(first, " of "); ok && !several {
			text = strings.ReplaceAll(text, first, group)
		}
		return text
	}
}

// meanOf is the mean of a series from so many seconds after a workload has begun to its end, of n values.
func meanOf(s result.Series, w result.Workload, after float64) (mean float64, n int) {
	for i, v := range s.Values {
		seconds := s.Start.Sub(w.Start).Seconds() + float64(i)*s.Step
		if v != nil && seconds >= after && seconds <= w.Seconds() {
			mean, n = mean+*v, n+1
		}
	}
	return mean / float64(n), n
}

// nameOf returns what a series of a machine is about.
func nameOf(s result.Series) string {
	if s.Part != "" && s.Machine != "" {
		return s.Part + " of " + s.Machine
	}
	return cmp.Or(s.Part, s.Machine, s.Name)
}

// Spent is how long an operation took on average, in seconds, and how much of that in the device below the load.
type Spent struct {
	Whole  float64 `json:"seconds"` // from when it was due
	Device float64 `json:"device_seconds"`
	Of     string  `json:"of"` // the device
}

// alike is how far what a device counts may be from what the load did, as a share, to be the same operations.
const alike = 0.1

// spent holds the time of a load's operations beside that of the device which did as many in the same time: by Little's
// law the mean of those in it over their rate. nil when no device did, as where operations are merged or split, served
// from memory, or several loads share a device. Of several (one on top of the other) it is the one that took longest.
func spent(d *result.Data, w, corrected result.Workload, late, achieved float64) (best *Spent) {
	sum, count := 0.0, 0.0
	for _, o := range corrected.Ops {
		if w.Block(o.Op) != "" {
			sum, count = sum+o.Seconds, count+float64(o.Count)
		}
	}
	rates, inside := devices(d, w)
	for of, n := range inside {
		if count == 0 || !(achieved > 0) || math.Abs(rates[of]/achieved-1) > alike {
			continue
		}
		if s := (Spent{sum/count + late, n / rates[of], names(d)(of)}); best == nil || s.Device > best.Device {
			best = &s
		}
	}
	return best
}

// devices are the rates and the mean operations in flight of all devices while a workload ran.
func devices(d *result.Data, w result.Workload) (rates, inside map[string]float64) {
	rates, inside = map[string]float64{}, map[string]float64{}
	for _, s := range d.Series {
		back := max(s.Step, min(4*s.Step, 60), 4) // a rate is of so many seconds before
		switch mean, n := meanOf(s, w, back); {
		case n < fewest:
		case s.Measure == result.DeviceReads || s.Measure == result.DeviceWrites:
			rates[nameOf(s)] += mean
		case s.Measure == result.DeviceInFlight:
			inside[nameOf(s)] = mean
		}
	}
	return rates, inside
}

// inDevice reports whether a device that did about as many operations as a load held half or more of those that the
// load had in flight.
func inDevice(d *result.Data, w result.Workload, achieved, inFlight float64) bool {
	const about = 0.25 // clocks of emulated guests are rough
	rates, inside := devices(d, w)
	for of, n := range inside {
		if n >= inFlight/2 && math.Abs(rates[of]/achieved-1) <= about {
			return true
		}
	}
	return false
}

// added is the share of the time by which operations take longer beyond the mark than below it that is spent in the
// device, and its name; false where little is added, or the two do not fit together.
func added(below, beyond *Probe) (share float64, of string, ok bool) {
	if below == nil || beyond == nil || below.Spent == nil || beyond.Spent == nil || below.Spent.Of != beyond.Spent.Of {
		return 0, "", false
	}
	whole := beyond.Spent.Whole - below.Spent.Whole
	share = (beyond.Spent.Device - below.Spent.Device) / whole
	ok = whole >= below.Spent.Whole/2 && share > -alike && share < 1+alike
	return min(max(share, 0), 1), below.Spent.Of, ok
}

// beyondAll reports whether what a control group waited for was so in every probe that broke: what others on the
// machine do comes and goes.
func beyondAll(probes []Probe, u Used) bool {
	return !strings.Contains(u.Of, ofGroup) || !slices.ContainsFunc(probes, func(p Probe) bool {
		q, ok := p.usedOf(u)
		return !p.Held && (!ok || q.Percent < rises)
	})
}

// wellBelow is at most so much of a mark that what is full there does not begin to be so at the mark.
const wellBelow = 0.8

// already tells that something was full far below a rate as well, where it was, so that it does not begin there.
func already(probes []Probe, rate float64, u Used, in string) string {
	var lowest *Probe
	for i, p := range probes {
		if p.Held && p.Offered <= wellBelow*rate && (lowest == nil || p.Offered < lowest.Offered) {
			lowest = &probes[i]
		}
	}
	if lowest == nil {
		return ""
	}
	if i := slices.IndexFunc(lowest.Used, func(v Used) bool { return v.Measure == u.Measure }); i >= 0 &&
		u.Measure == result.OneCPU { // it may be another one now
		u.Of = lowest.Used[i].Of
	}
	was, ok := lowest.usedOf(u)
	if !ok || was.Percent < full {
		return ""
	}
	return fmt.Sprintf(" (%.0f %% already at %s)", was.Percent, Say(lowest.Offered, in))
}

// throughout finds what was full in every one of several probes, with the least that was used of it.
func throughout(probes []Probe) (Used, bool) {
	if len(probes) < 2 {
		return Used{}, false
	}
	for _, u := range probes[0].Used {
		for _, p := range probes {
			now, _ := p.usedOf(u) // 0 of what was not counted
			u.Percent = min(u.Percent, now.Percent)
		}
		if u.Percent >= full && u.Measure != result.OneCPU && !slices.Contains(waits, u.Measure) {
			return u, true
		}
	}
	return Used{}, false
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
	below, beyond := across(probes, rate)
	then := func(u Used) float64 { // beyond it
		if v, ok := beyond.usedOf(u); ok {
			return v.Percent
		}
		return u.Percent
	}
	// What is full, and not far below already, says most; then what is so just beyond.
	var counted, next, others []Used
	for _, u := range nearest.Used {
		switch begins := already(probes, rate, u, a.Unit) == ""; {
		case slices.Contains(waits, u.Measure):
		case u.Percent >= full && begins:
			counted = append(counted, u)
		case u.Percent >= wellBelow*full && begins && then(u) >= full:
			next = append(next, u)
		default:
			others = append(others, u)
		}
	}
	counted = append(append(counted, next...), others...)
	text := ""
	held := slices.IndexFunc(nearest.Used, func(u Used) bool {
		return u.Measure == result.QuotaThrottled && u.Percent >= usedUp && beyondAll(probes, u)
	})
	switch {
	case held >= 0:
		text = "Near it " + say(nearest.Used[held])
		if len(counted) > 0 {
			text += ", " + say(counted[0])
		}
		text += "."
	case len(counted) == 0:
	case counted[0].Percent >= full:
		text = "Near it " + say(counted[0]) + already(probes, rate, counted[0], a.Unit)
		if len(counted) > 1 {
			text += ", " + say(counted[1]) + already(probes, rate, counted[1], a.Unit)
		}
		text += "."
	case len(next) > 0:
		text = fmt.Sprintf("Near it %s, beyond it %.0f %%", say(next[0]), then(next[0]))
		if len(counted) > 1 {
			text += ", " + say(counted[1]) + already(probes, rate, counted[1], a.Unit)
		}
		text += "."
	default:
		text = fmt.Sprintf("Nothing that was counted was full near it: %s.", say(counted[0]))
	}
	a.Rises = slices.DeleteFunc(risen(below, beyond), func(r Rise) bool { return !beyondAll(probes, r.Used) })
	if held >= 0 { // said already
		a.Rises = slices.DeleteFunc(a.Rises, func(r Rise) bool { return r.Measure == result.QuotaThrottled })
	}
	if len(a.Rises) > 0 {
		text += fmt.Sprintf(" Beyond it %s, just below it %.0f %%.", say(a.Rises[0].Used), a.Rises[0].Below)
	}
	if share, of, ok := added(below, beyond); ok {
		a.Device = &share
		text += fmt.Sprintf(" Of the time that is added beyond it %.0f %% is below the block layer, in %s.", 100*share,
			of)
	}
	return strings.TrimSpace(text)
}
