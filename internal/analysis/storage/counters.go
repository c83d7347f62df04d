package storage

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// DeviceCounters compares what generators claim with what devices counted: the disks of their VMs and what is under
// those.
var DeviceCounters = view.Check{Name: "device-counters", Rank: 320, Run: deviceCounters}

func deviceCounters(v *view.Run) []result.Finding {
	return slices.Concat(diskCounters(v), deviceBytes(v), uncounted(v))
}

// diskCounters compares the rate that generators claim with what the disks of the same VMs counted.
func diskCounters(v *view.Run) []result.Finding {
	if derived(v) {
		return nil
	}
	var out []result.Finding
	for i := range v.Data.Panels {
		p := &v.Data.Panels[i]
		group := p.VMGroup
		if group == "" || strings.ToLower(p.Type) != "iops" || len(p.Series) == 0 {
			continue
		}
		claimed := v.GroupTrack(group, "")
		if !groupBlocks(v, group) || claimed == nil || len(p.Series) != 1 && len(p.Series) != vmsOf(v, group) {
			continue // an aggregate that is no sum, or a view of a part
		}
		counted := &view.Track{Origin: v.Data.Start, Start: p.Series[0].Start, Step: p.Series[0].Step,
			Ops: view.Gaps(len(p.Series[0].Values))}
		if !(counted.Step > 0) || !view.IsFinite(counted.Step) ||
			len(p.Series) == 1 && vmsOf(v, group) > 1 && p.Aggregate != "sum" {
			continue
		}
		for k := range p.Series {
			counted.Add(counted.Ops, &p.Series[k], nil)
		}
		if f, ok := agreement(group, claimed, counted); ok {
			out = append(out, f)
		}
	}
	return out
}

// countersAgree is how far what a generator and a device count may lie apart.
const countersAgree = 0.05

// derived reports whether the counters of the VMs' disks are the generators' own counts under another name, which agree
// with themselves.
func derived(v *view.Run) bool {
	return v.Manifest.DiskCounters != "" && v.Manifest.DiskCounters != result.CountersExported
}

// groupBlocks reports whether all that the VMs of a group do is block I/O.
func groupBlocks(v *view.Run, group string) bool {
	return !slices.ContainsFunc(v.Loads, func(l *view.Load) bool { return l.Group == group && !l.BlocksOnly() })
}

func vmsOf(v *view.Run, group string) (n int) {
	for _, vm := range v.Data.VMs {
		if vm.Group == group {
			n++
		}
	}
	return n
}

// calm reports whether a value of a series differs little from those beside it.
func calm(x []float64, at int) bool {
	const little = 1.5
	for _, i := range []int{at - 1, at, at + 1} {
		if i < 0 || i >= len(x) || !view.IsFinite(x[i]) {
			return false
		}
		if r := x[i] / x[at]; x[i] != x[at] && !(r > 0 && view.Away(r) <= little) { // zero is like zero only
			return false
		}
	}
	return true
}

// agreement compares the two over the points at which both counted and neither changes by much from point to point, so
// that the ends of a load do not weigh.
func agreement(group string, claimed, counted *view.Track) (result.Finding, bool) {
	from, to := claimed.At(0), claimed.At(len(claimed.Ops)-1)
	counted = counted.Between(from, to)
	var a, b []float64
	for i, x := range counted.Ops {
		at := int(math.Round(counted.At(i).Sub(claimed.Start).Seconds() / claimed.Step))
		if calm(counted.Ops, i) && calm(claimed.Ops, at) && claimed.Ops[at] > 0 {
			a, b = append(a, claimed.Ops[at]), append(b, x)
		}
	}
	if len(a) < 20 {
		return result.Finding{}, false
	}
	said, seen := stat.Mean(a, nil), stat.Mean(b, nil)
	if !(said > 0) {
		return result.Finding{}, false
	}
	r := seen / said
	f := result.Finding{
		Check: "device-counters", Subject: group, Metric: "device ÷ generator", Unit: "ratio", Value: &r, N: len(a),
		Limit:      view.Ptr(1 - countersAgree),
		NoInterval: "two counts of the same operations",
		Basis:      fmt.Sprintf("means over %d points at which both counted and changed little", len(a)),
		Evidence: []result.Evidence{
			{Name: "the generators claim", Value: said, Unit: "ops/s"},
			{Name: "the disks counted", Value: seen, Unit: "ops/s"},
		},
	}
	both := fmt.Sprintf("the load generators of %s report %s IOPS, their disks counted %s", group, view.SayCount(said),
		view.SayCount(seen))
	switch {
	case r < 1-countersAgree:
		f.Severity = result.Invalid
		f.Sentence = view.Capital(both) + ". The rest never reached a disk: a cache answered, or it was never done."
	case r > 1+countersAgree:
		f.Severity = result.Warning
		f.Sentence = view.Capital(both) + ". Requests were split, or the disks had other work as well."
	default:
		f.Severity = result.Passed
		f.Sentence = view.Capital(both) + ": they agree."
	}
	return f, true
}
