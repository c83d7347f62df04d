package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Limits of the comparison with the device under the disks.
const (
	deviceMissing = 0.05     // share of the claimed bytes from which on their absence from the device is told
	deviceNothing = 0.50     // and from which on it forbids the figure
	deviceOthers  = 1.25     // the device did so many times what was claimed: others used it as well
	deviceFew     = 16 << 20 // bytes claimed, below which file system and other programs drown the comparison
	devicePoints  = 10
)

// deviceBytes compares the bytes that generators claim with what the block device under their disks has moved. Only
// less than was claimed is a contradiction: whatever else the machine does is in the device's counters, too.
func deviceBytes(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, op := range []result.Block{result.BlockRead, result.BlockWrite} {
		if f, ok := reachedDevice(v, op); ok {
			out = append(out, f)
		}
	}
	return out
}

// deviceShare is the least share of a kind of operation of a workload that the device's counters show; false where
// they show nothing of one.
func deviceShare(v *view.Run, l *view.Load) (share float64, counted bool) {
	share = 1
	for _, op := range []result.Block{result.BlockRead, result.BlockWrite} {
		if !slices.ContainsFunc(l.Parts,
			func(p *result.Workload) bool { n, _ := view.Totals(view.BlockTotals(p, op)); return n > 0 }) {
			continue
		}
		f, ok := reachedDevice(v, op)
		if !ok || f.Value == nil {
			return 0, false
		}
		share, counted = min(share, *f.Value), true
	}
	return share, counted
}

func reachedDevice(v *view.Run, op result.Block) (result.Finding, bool) {
	ours := func(s *result.Series) bool { return s.Measure == result.Bandwidth && v.Block(s) == op }
	countedName, does, done := result.DeviceReadBandwidth, "read", "read"
	if op == result.BlockWrite {
		countedName, does, done = result.DeviceWriteBandwidth, "wrote", "written"
	}
	claims := total(v, func(s *result.Series) bool {
		return ours(s) && s.VM == "" && s.Group == "" && s.Workload == ""
	})
	if claims == nil { // with one group there is no total beside its own
		claims = total(v, func(s *result.Series) bool { return ours(s) && s.VM != "" && s.Workload == "" })
	}
	var devices []string // under the disks; what they counted is added up, as what was claimed is
	counts := total(v, func(s *result.Series) bool {
		if s.Measure == countedName && !slices.Contains(devices, s.Name) {
			devices = append(devices, s.Name)
		}
		return s.Measure == countedName
	})
	device := strings.Join(devices, " and ")
	if claims == nil || counts == nil || partly(v) {
		return result.Finding{}, false
	}
	loads, direct := doing(v, op)
	var claimed, moved float64
	points := 0
	counted := map[int64]float64{}
	for i, x := range counts.Ops {
		counted[counts.At(i).UnixMilli()] = x
	}
	for i, x := range claims.Ops { // pauses count as well: rates over several points lay some of a burst into them
		y, both := counted[claims.At(i).UnixMilli()]
		if !both || !view.IsFinite(y) || !settledIn(loads, claims.At(i), claims.Step) {
			continue
		}
		moved, points = moved+y*claims.Step, points+1
		if view.IsFinite(x) {
			claimed += x * claims.Step
		}
	}
	if points < devicePoints || claimed < deviceFew {
		return result.Finding{}, false
	}
	long := float64(points) * claims.Step
	f := result.Finding{
		Check: "device-counters", Subject: string(op) + "s, " + device, Metric: "device ÷ generators", Unit: "ratio",
		Value: view.Ptr(
			moved / claimed), N: points, Limit: view.Ptr(1 - deviceMissing), NoInterval: "two counts of the same bytes",
		Basis: fmt.Sprintf("counters of %s over %s in which workloads %s, whatever used it", device,
			view.SayDuration(long), does),
		Evidence: []result.Evidence{{Name: "the generators claim", Value: claimed / long, Unit: "bytes/s"},
			{Name: "the device counted", Value: moved / long, Unit: "bytes/s"}},
		Chart: v.Chart("bytes "+done+" per second", "bytes/s", claims.Line("the generators claim", claims.Ops),
			counts.Line("the device "+device, counts.Ops)),
	}
	f.Severity, f.Sentence = reached(op, device, claimed/long, moved/long, direct, unwritten(loads))
	if f.Severity == result.Passed {
		f.Chart = nil
	}
	return f, true
}

// unwritten reports whether any of the workloads read what may never have been written.
func unwritten(loads []*view.Load) bool {
	return slices.ContainsFunc(loads, func(l *view.Load) bool {
		f, ok := writtenOf(l)
		return ok && f.Severity != result.Passed
	})
}

// reached says what the two rates mean together.
func reached(op result.Block, device string, claimed, moved float64, direct, unwritten bool) (result.Severity, string) {
	both := fmt.Sprintf("the load generators report %s/s of %ss, device %s counted %s/s", view.SayDecimal(claimed), op,
		device, view.SayDecimal(moved))
	missing := 1 - moved/claimed
	severity := result.Warning
	if missing >= deviceNothing {
		severity = result.Invalid
	}
	switch {
	case missing < deviceMissing && moved > deviceOthers*claimed:
		return result.Info, view.Capital(
			both) + ": something else used the device, or the file system added its own I/O."
	case missing < deviceMissing:
		return result.Passed, view.Capital(both) + ": they agree."
	case op == result.BlockRead && !direct && unwritten:
		return severity, fmt.Sprintf(
			"%s: %s never reached the device. The page cache answered, or the file system did for blocks never written.",
			view.Capital(both), view.Percent(missing))
	case op == result.BlockRead && !direct:
		which := "These"
		if severity != result.Invalid {
			which = "Some of these"
		}
		return severity, fmt.Sprintf("%s reads came from memory: %s. The page cache answered %s of them.", which, both,
			view.Percent(missing))
	case op == result.BlockRead && !unwritten:
		return severity, fmt.Sprintf(
			"%s, though they were direct and of blocks written before: %s never reached the device. Something below the page cache answered: a file system that compresses or caches by itself, or a cache in front of the device.",
			view.Capital(both), view.Percent(missing))
	case op == result.BlockRead:
		return severity, fmt.Sprintf(
			"%s, with direct I/O: %s never reached the device. The file system itself answers for blocks never written.",
			view.Capital(both), view.Percent(missing))
	case !direct:
		return severity, fmt.Sprintf(
			"%s: %s had not reached it. They were in the page cache, to be written or overwritten later.",
			view.Capital(both), view.Percent(missing))
	}
	return severity, fmt.Sprintf("%s, with direct I/O: %s never reached the device.", view.Capital(both),
		view.Percent(missing))
}

// partly reports whether some of the disks lie where no device's counters are sure to see them: then more is claimed
// than the others' devices can have counted.
func partly(v *view.Run) bool {
	return slices.ContainsFunc(v.Manifest.Environment, func(f result.Fact) bool {
		return f.Kind == result.DeviceCounters && f.Missing != ""
	})
}

// total adds up series on one grid; nil without any.
func total(v *view.Run, pick func(*result.Series) bool) *view.Track {
	var c *view.Track
	for i := range v.Data.Series {
		s := &v.Data.Series[i]
		if !(s.Step > 0) || !view.IsFinite(s.Step) || len(s.Values) == 0 || !pick(s) {
			continue
		}
		if c == nil {
			c = &view.Track{Origin: v.Data.Start, Start: s.Start, Step: s.Step, Ops: view.Gaps(len(s.Values))}
		}
		if s.Step == c.Step {
			c.Add(c.Ops, s, nil)
		}
	}
	return c
}

// doing are the workloads that read or write blocks, and whether all of it is direct.
func doing(v *view.Run, op result.Block) (loads []*view.Load, direct bool) {
	direct = true
	for _, l := range v.Loads {
		some := false
		for _, p := range l.Parts {
			for _, stream := range p.Streams {
				if !p.MovesBlocks() {
					continue
				}
				if op == result.BlockRead && stream.Reads || op == result.BlockWrite && stream.Writes {
					some, direct = true, direct && stream.Direct
				}
			}
		}
		if some {
			loads = append(loads, l)
		}
	}
	return loads, direct
}

// settledIn reports whether a point lies in the time of one of the loads and not at its edges, where rates over several
// points mix.
func settledIn(loads []*view.Load, at time.Time, step float64) bool {
	edge := time.Duration(view.Settling * step * float64(time.Second))
	return slices.ContainsFunc(loads, func(l *view.Load) bool {
		from, to := l.Span()
		return !at.Before(from.Add(edge)) && !at.After(to)
	})
}

// uncounted says why a device's counters could not be compared, where the target looked for one.
func uncounted(v *view.Run) []result.Finding {
	if !v.MovesBlocks() || len(inMemory(v)) > 0 {
		return nil // nothing goes to it, or there is none
	}
	for _, f := range v.Manifest.Environment {
		if f.Kind != result.DeviceCounters || f.Missing == "" {
			continue
		}
		return []result.Finding{{
			Check: "device-counters", Severity: result.Info, Subject: "run", Metric: "devices counted",
			Unit: "count", Value: view.Ptr(0), NoInterval: "a fact, not a measurement",
			Basis: "environment facts recorded before the run",
			Sentence: "What reached a device under the disks was not counted: " + strings.TrimSuffix(f.Missing,
				".") + ".",
		}}
	}
	return nil
}
