package storage

import (
	"fmt"
	"regexp"
	"slices"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Fresh asks of workloads that write whether they wrote flash that was never overwritten: such a device has free blocks
// at hand and writes faster than it does for the rest of its life.
var Fresh = view.Check{Name: "fresh-flash", Rank: 263, Run: fresh}

// overwritten is how many times its extent must have been written, by all before it and itself, for a workload's data
// to have been overwritten once.
const overwritten = 2

// virtual are names and models of devices that say nothing of the medium under them.
var virtual = regexp.MustCompile(
	`(?i)^(vd|xvd|dm-|md|loop|zram|nbd|rbd|ram)|virt|qemu|vbox|vmware|msft|amazon|persistentdisk`)

func fresh(v *view.Run) []result.Finding {
	sure, flash := flashUnder(v.Manifest.Environment)
	if !flash {
		return nil
	}
	var names []string
	least := float64(overwritten)
	for _, l := range v.Loads {
		times, ok := timesWritten(l)
		done := slices.ContainsFunc(v.Data.Preconditioned, func(p result.Preconditioning) bool {
			return p.Workload == l.Name
		})
		if ok && !done && times < overwritten {
			names, least = append(names, l.Name), min(least, times)
		}
	}
	if len(names) == 0 {
		return nil
	}
	f := result.Finding{
		Check: "fresh-flash", Severity: result.Warning, Subject: "run", Metric: "times that data were written",
		Unit: "ratio", Value: &least, Limit: view.Ptr(float64(overwritten)), N: len(names),
		NoInterval: "counted from job files and operations", Basis: "what was written before and by the workloads, " +
			"by the extents they write; facts of the devices",
		Sentence: fmt.Sprintf("The device under %s is flash, and this run neither preconditioned it nor overwrote all that "+
			"it wrote (written %s times): its rates may be of a fresh device, which are above what lasts.",
			view.Three(names), view.SayCount(view.Round(least))),
	}
	if !sure {
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf("Whether flash is under the virtual device of %s is not known. This run did not overwrite "+
			"all that it wrote: were it flash, its rates might be of a fresh device.", view.Three(names))
	}
	return []result.Finding{f}
}

// flashUnder reports whether a device under the disks does not rotate, and whether that is of a real device.
func flashUnder(facts []result.Fact) (sure, flash bool) {
	for _, f := range facts {
		if f.Name == "rotational" && f.Value == "0" {
			device, model := result.ValueOf(facts, f.Group, "device"), result.ValueOf(facts, f.Group, "device model")
			known := device != "" && model != "" && !virtual.MatchString(device) && !virtual.MatchString(model)
			sure, flash = sure || known, true
		}
	}
	return sure, flash
}

// timesWritten is how many times the extents that a workload writes were written when it ended; false where that is not
// known, or it writes none.
func timesWritten(l *view.Load) (times float64, ok bool) {
	var extent, written float64
	for _, p := range l.Parts {
		if !p.MovesBlocks() {
			return 0, false
		}
		devices := map[string]float64{}
		for _, stream := range p.Streams {
			if stream.Writes && stream.Bytes <= 0 {
				return 0, false
			}
			if stream.Writes {
				devices[stream.Device] = max(devices[stream.Device], float64(stream.Bytes))
			}
		}
		for device, bytes := range devices {
			_, before, _, _ := prefillOf(l, p, device)
			extent, written = extent+bytes, written+min(float64(before), bytes)
		}
		for _, o := range view.BlockTotals(p, result.BlockWrite) {
			written += float64(o.Bytes)
		}
	}
	return written / extent, extent > 0
}
