// Package machines asks how machines came on and how they moved: how long those of a boot storm took until they
// answered, how long those that moved between nodes stood still, and how long each node that had been switched off took
// until it was ready again. It gives view.Checks to package analysis, and says nothing where the run told nothing.
package machines

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Boots tells how long machines took that were switched on together, each time that at least a handful were.
var Boots = view.Check{Name: "boots", Rank: 152, Run: boots}

// Migrations tells how long the machines of a group that moved while they ran took, and stood still.
var Migrations = view.Check{Name: "migrations", Rank: 154, Run: migrations}

// Operations tells how long the platform took for each kind of thing that it did for machines.
var Operations = view.Check{Name: "operations", Rank: 156, Run: operations}

// NodeReturns tells how long each node that was switched off took until it was ready again.
var NodeReturns = view.Check{Name: "node-return", Rank: 122, Run: nodeReturns}

// fewest machines are a storm; how long fewer took is in the data.
const fewest = 5

func boots(v *view.Run) (out []result.Finding) {
	type storm struct {
		group string
		asked time.Time
	}
	var order []storm
	took, last := map[storm][]float64{}, map[storm]float64{}
	for _, b := range v.Data.Boots {
		s := storm{b.Group, b.Asked}
		seconds := b.Answered.Sub(b.Started).Seconds()
		if b.Asked.After(b.Started) || seconds < 0 || b.Asked.Before(v.Data.Start) {
			continue // damaged, or while the run was prepared
		}
		if took[s] == nil {
			order = append(order, s)
		}
		took[s] = append(took[s], seconds)
		last[s] = max(last[s], b.Answered.Sub(b.Asked).Seconds())
	}
	for _, s := range order {
		all := took[s]
		if len(all) < fewest {
			continue
		}
		slices.Sort(all)
		p50, p95, most := rank(all, 0.5), rank(all, 0.95), all[len(all)-1]
		spread := fmt.Sprintf("half of them answered within %s of their start, 95 %% within %s, the slowest after %s",
			view.SayDuration(p50), view.SayDuration(p95), view.SayDuration(most))
		if view.SayDuration(all[0]) == view.SayDuration(most) {
			spread = fmt.Sprintf("each answered %s after its start", view.SayDuration(most))
		}
		f := result.Finding{
			Check: "boots", Subject: s.group, Severity: result.Info,
			Metric: "median time from switching on to the first answer", Unit: "s", Value: view.Ptr(p50), N: len(all),
			NoInterval: "every machine of it, each once",
			Basis:      "when each machine's start was begun and when the agent in it first answered",
			Sentence: fmt.Sprintf("%s of %s were switched on together: %s; all of them answered %s after they were asked for.",
				view.Plural(len(all), "VM"), s.group, spread, view.SayDuration(last[s])),
			Evidence: []result.Evidence{{Name: "median", Value: p50, Unit: "s"},
				{Name: "95th percentile", Value: p95, Unit: "s"}, {Name: "longest", Value: most, Unit: "s"},
				{Name: "until all had answered", Value: last[s], Unit: "s"}},
		}
		out = append(out, f)
	}
	if len(v.Data.Boots) == 0 {
		out = untimed(v)
	}
	return out
}

// untimed says of storms that were asked for that nobody timed them: the target has no machines that boot.
func untimed(v *view.Run) (out []result.Finding) {
	for _, e := range v.Data.Events {
		group, storm := strings.CutPrefix(e.Text, result.PoweringOn)
		n := 0
		for _, vm := range v.Data.VMs {
			if vm.Group == group {
				n++
			}
		}
		if !storm || n < fewest || e.Time.Before(v.Data.Start) {
			continue
		}
		out = append(out, result.Finding{Check: "boots", Subject: group, Severity: result.Info,
			Metric: "median time from switching on to the first answer", Unit: "s", N: n,
			NoInterval: "nothing was timed", Basis: "what the target told of its machines",
			Sentence: fmt.Sprintf("How long %s of %s took to boot is not known: target %s tells of no boots (lab, kubernetes "+
				"and sim do).", view.Plural(n, "VM"), group, v.Manifest.Target)})
	}
	return out
}

func migrations(v *view.Run) (out []result.Finding) {
	var order []string
	took, still := map[string][]float64{}, map[string][]float64{}
	for _, m := range v.Data.Migrations {
		if !view.IsFinite(m.Seconds) || !view.IsFinite(m.StillSeconds) || m.Seconds < 0 || m.StillSeconds < 0 {
			continue
		}
		if took[m.Group] == nil {
			order = append(order, m.Group)
		}
		took[m.Group] = append(took[m.Group], m.Seconds)
		still[m.Group] = append(still[m.Group], m.StillSeconds)
	}
	for _, group := range order {
		t, s := took[group], still[group]
		slices.Sort(t)
		slices.Sort(s)
		n := len(t)
		f := result.Finding{
			Check: "migrations", Subject: group, Severity: result.Info,
			Metric: "longest standstill of a VM that moved", Unit: "s", Value: view.Ptr(s[n-1]), N: n,
			NoInterval: "every migration, each once",
			Basis:      "what the hypervisor says of each migration",
			Sentence: fmt.Sprintf("VMs of %s moved to another node %s while they ran: the longest move took %s, and none "+
				"stood still for more than %s.", group, times(n), view.SayDuration(t[n-1]), view.SayDuration(s[n-1])),
			Evidence: []result.Evidence{{Name: "median duration", Value: rank(t, 0.5), Unit: "s"},
				{Name: "longest duration", Value: t[n-1], Unit: "s"},
				{Name: "median standstill", Value: rank(s, 0.5), Unit: "s"},
				{Name: "longest standstill", Value: s[n-1], Unit: "s"}},
		}
		out = append(out, f)
	}
	return out
}

func operations(v *view.Run) []result.Finding {
	took := map[string][]float64{}
	var order []string // as machines go through them
	for _, o := range v.Data.Operations {
		if !view.IsFinite(o.Seconds) || o.Seconds < 0 {
			continue // damaged
		}
		if took[o.Name] == nil {
			order = append(order, o.Name)
		}
		took[o.Name] = append(took[o.Name], o.Seconds)
	}
	if len(order) == 0 {
		return nil
	}
	f := result.Finding{
		Check: "operations", Subject: "run", Severity: result.Info,
		Metric:     "longest operation of the platform",
		Unit:       "s",
		NoInterval: "every operation, each once",
		Basis:      "when each was asked for and when it was first seen done, by this machine's clock",
	}
	var said []string
	longest := 0.0
	for _, name := range order {
		all := took[name]
		slices.Sort(all)
		p50, most := rank(all, 0.5), all[len(all)-1]
		longest, f.N = max(longest, most), f.N+len(all)
		said = append(said, fmt.Sprintf("%s %s (%s at most, of %d)", name, view.SayDuration(p50),
			view.SayDuration(most), len(all)))
		f.Evidence = append(f.Evidence, result.Evidence{Name: name + ", median", Value: p50, Unit: "s"},
			result.Evidence{Name: name + ", 95th percentile", Value: rank(all, 0.95), Unit: "s"},
			result.Evidence{Name: name + ", longest", Value: most, Unit: "s"})
	}
	f.Value = &longest
	f.Sentence = fmt.Sprintf("What the platform did for machines took, half of the times: %s.",
		strings.Join(said, ", "))
	return []result.Finding{f}
}

func nodeReturns(v *view.Run) []result.Finding {
	took := func(r result.NodeReturn) float64 { return r.Ready.Sub(r.On).Seconds() }
	var back []result.NodeReturn
	for _, r := range v.Data.NodeReturns {
		if took(r) >= 0 && !r.On.Before(r.Off) { // else it is damaged
			back = append(back, r)
		}
	}
	if len(back) == 0 {
		return nil
	}
	slices.SortStableFunc(back, func(a, b result.NodeReturn) int { return cmp.Compare(took(b), took(a)) })
	f := result.Finding{
		Check: "node-return", Subject: "run", Severity: result.Info,
		Metric: "longest time from a node's power-on to its being ready", Unit: "s", Value: view.Ptr(took(back[0])),
		N: len(back), NoInterval: "every return, each once",
		Basis: "when each node's controller was told to switch it on, and when it was first seen ready with its services",
	}
	var said []string
	dark := math.Inf(1)
	for _, r := range back {
		said = append(said, r.Node+" "+view.SayDuration(took(r)))
		f.Evidence = append(f.Evidence, result.Evidence{Name: r.Node, Value: took(r), Unit: "s"})
		dark = min(dark, r.On.Sub(r.Off).Seconds())
	}
	f.Sentence = fmt.Sprintf("From power-on until ready: %s, after at least %s off.", view.Listed(said),
		view.SayDuration(dark))
	if dark < 1 { // one that shuts down is switched on as soon as it is off
		f.Sentence = fmt.Sprintf("From power-on until ready: %s.", view.Listed(said))
	}
	return []result.Finding{f}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return view.Plural(n, "time")
}

// rank is the value that a share of the sorted values does not exceed: one of them, nothing between.
func rank(sorted []float64, share float64) float64 {
	i := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
