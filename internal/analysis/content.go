package analysis

import (
	"fmt"

	"plimsoll/result"
)

// prefillTolerance is how much of an extent may be missing from its prefill (rounding to blocks).
const prefillTolerance = 0.01

// neverWritten asks whether what was read had been written before: storage answers for empty or zero blocks from its
// own tables, without touching a medium.
func neverWritten(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		if !l.movesBlocks() {
			continue
		}
		if f, ok := writtenOf(l); ok {
			out = append(out, f)
		}
	}
	return out
}

func writtenOf(l *load) (result.Finding, bool) {
	var lanes, covered int
	var empty, short, zero places
	unfinished := false
	for _, p := range l.parts {
		for _, lane := range p.Lanes {
			if lane.ZeroData && lane.Writes {
				zero.add(p, lane.Device)
			}
			if !lane.Reads {
				continue
			}
			lanes++
			pre, bytes, zeros, done := prefillOf(l, p, lane.Device)
			unfinished = unfinished || pre && !done
			switch {
			case !pre:
				empty.add(p, lane.Device)
			case zeros:
				zero.add(p, lane.Device)
			case float64(bytes) < float64(lane.Bytes)*(1-prefillTolerance) || !done:
				short.add(p, lane.Device)
			default:
				covered++
			}
		}
	}
	if lanes == 0 && len(zero.devices) == 0 {
		return result.Finding{}, false
	}
	f := result.Finding{
		Check: "never-written", Subject: l.name, Metric: "sections that read, wholly prefilled with data", Unit: "%",
		N: lanes, Limit: ptr(100),
		NoInterval: "compared from job files and prefill totals, not sampled", Basis: "job files and prefills of " + plural(len(l.parts), "VM"),
		Evidence: []result.Evidence{{Name: "sections that read", Value: float64(lanes), Unit: "count"},
			{Name: "wholly prefilled", Value: float64(covered), Unit: "count"}},
	}
	if lanes > 0 {
		f.Value = ptr(100 * float64(covered) / float64(lanes))
	}
	switch {
	case len(empty.devices) > 0:
		f.Severity = result.Blocker
		f.Sentence = fmt.Sprintf("%s read from disks that were never prefilled (%s). Storage can answer for empty blocks without touching a medium, so its reads look faster than real ones.", l.name, empty.String())
	case len(zero.devices) > 0:
		f.Severity = result.Caution
		if lanes == 0 { // writing zeros frees data: it prepares, and is not what is measured
			f.Severity = result.Notice
		}
		f.Sentence = fmt.Sprintf("%s worked on zeros (%s). Storage that suppresses, compresses or deduplicates stores next to nothing for them.", l.name, zero.String())
	case unfinished:
		f.Severity = result.Caution
		f.Sentence = fmt.Sprintf("The prefill of %s did not finish, so part of what it read may never have been written (%s).", l.name, short.String())
	case len(short.devices) > 0:
		f.Severity = result.Caution
		f.Sentence = fmt.Sprintf("%s read beyond what was prefilled (%s), so part of its reads may have been of blocks never written.", l.name, short.String())
	default:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("Everything %s read had been written before with data other than zeros.", l.name)
	}
	return f, true
}

// prefillOf finds what wrote a device of a VM before the workload began: how much, and whether the last of it wrote zeros and
// came to its end. Authors fill with a prefill step or with a workload of their own.
func prefillOf(l *load, p *result.Workload, device string) (found bool, bytes int64, zeros, done bool) {
	for _, pre := range l.prefills {
		late := pre.Start.After(p.Start) || !pre.Prefill && pre.End.After(p.Start)
		if pre.VM != "" && p.VM != "" && pre.VM != p.VM || late {
			continue
		}
		wrote, empty := false, false
		for _, lane := range pre.Lanes {
			if lane.Device == device && lane.Writes {
				wrote, empty, bytes = true, empty || lane.ZeroData, max(bytes, lane.Bytes)
			}
		}
		if wrote {
			found, zeros, done = true, empty, pre.Ended == "finished"
		}
	}
	return found, bytes, zeros, done
}

// wroteAll reports whether a workload that is no prefill has written as much as the extents of its lanes hold.
func wroteAll(w *result.Workload) bool {
	var extents, written float64
	for _, lane := range w.Lanes {
		if lane.Writes {
			extents += float64(lane.Bytes)
		}
	}
	for _, op := range blockTotals(w, result.BlockWrite) {
		written += float64(op.Bytes)
	}
	return extents > 0 && w.Ended == "finished" && written >= extents*(1-prefillTolerance)
}

// places are devices of VMs.
type places struct {
	devices []string            // in the order in which they came
	vms     map[string][]string // by device
}

func (ps *places) add(of *result.Workload, device string) {
	if ps.vms == nil {
		ps.vms = map[string][]string{}
	}
	list, known := ps.vms[device]
	if !known {
		ps.devices = append(ps.devices, device)
	}
	if n := len(list); n == 0 || list[n-1] != subject(of) { // lanes of a VM come together
		ps.vms[device] = append(list, subject(of))
	}
}

// String names up to two machines of a device and counts more.
func (ps *places) String() string {
	var words []string
	for _, device := range ps.devices {
		if list := ps.vms[device]; len(list) > 2 {
			words = append(words, fmt.Sprintf("%s of %d VMs", device, len(list)))
		} else {
			for _, vm := range list {
				words = append(words, vm+" "+device)
			}
		}
	}
	return some(words)
}

// cacheMargin is how many times memory a working set must be before caching in it stops mattering much.
const cacheMargin = 2

// cache compares the working set with the memory that could hold it.
func cache(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		var set, machine, node float64
		direct, known := true, true
		nodes := map[int]bool{}
		for _, p := range l.parts {
			extents := map[string]int64{}
			for _, lane := range p.Lanes {
				direct = direct && lane.Direct
				known = known && lane.Bytes > 0
				extents[lane.Device] = max(extents[lane.Device], lane.Bytes)
			}
			for _, b := range extents {
				set += float64(b)
			}
			machine += float64(v.vms[p.VM].MemoryBytes)
			if !nodes[p.Node] && !(v.host && len(nodes) > 0) {
				nodes[p.Node] = true
				node += float64(v.nodes[p.Node].MemoryBytes)
			}
		}
		if l.movesBlocks() && l.count() > 0 && len(l.parts[0].Lanes) > 0 {
			f := cacheFinding(l, set, machine, node, direct, known)
			if f.Severity == result.Blocker && v.deviceServed(l) {
				f.Severity = result.Notice
				f.Sentence = fmt.Sprintf("%s worked on %s through the page cache, and all of it would fit into memory (%s); the counters of the device under the disks show that its operations went there all the same.", l.name, sayBytes(set), sayBytes(max(node, machine)))
			}
			out = append(out, f)
		}
	}
	return out
}

func cacheFinding(l *load, set, machine, node float64, direct, known bool) result.Finding {
	memory := max(node, machine)
	f := result.Finding{
		Check: "cache", Subject: l.name, Metric: "working set", Unit: "bytes", Value: &set, N: len(l.parts), Limit: ptr(cacheMargin * memory),
		NoInterval: "compared from job files and facts, not sampled", Basis: "extents of the job files, after scaling; memory of the VMs and of the nodes they are on",
		Evidence: []result.Evidence{{Name: "working set", Value: set, Unit: "bytes"}, {Name: "memory of its VMs", Value: machine, Unit: "bytes"}, {Name: "memory of their nodes", Value: node, Unit: "bytes"}},
	}
	what := fmt.Sprintf("%s worked on %s", l.name, sayBytes(set))
	switch {
	case !known || set == 0:
		f.Severity, f.Value = result.Notice, nil
		f.Sentence = fmt.Sprintf("How much data %s touched is not known, so it cannot be compared with memory.", l.name)
	case memory == 0:
		f.Severity, f.Limit = result.Notice, nil
		f.Sentence = what + "; how much memory could have cached it is not known."
	case !direct && set <= memory:
		f.Severity, f.Limit = result.Blocker, ptr(memory)
		f.Sentence = fmt.Sprintf("%s through the page cache, and all of it fits into memory (%s). These numbers are memory's, not the storage's.", what, sayBytes(memory))
	case !direct:
		f.Severity = result.Caution
		f.Sentence = fmt.Sprintf("%s through the page cache with %s of memory: part of it was served from memory.", what, sayBytes(memory))
	case set < cacheMargin*memory:
		f.Severity = result.Notice
		f.Sentence = fmt.Sprintf("%s with direct I/O, which passes the page cache by. The nodes have %s of memory, so a cache in the storage below could hold much of it.", what, sayBytes(memory))
	default:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("%s with direct I/O, over %d times the %s of memory around it.", what, cacheMargin, sayBytes(memory))
	}
	return f
}

// Free space below which flash slows down (garbage collection) and thin storage runs out.
const (
	freeLow  = 0.10
	freeSome = 0.20
)

// deviceFree compares the free space of the storage under the disks with its size.
func deviceFree(v *view) []result.Finding {
	if !v.movesBlocks() {
		return nil
	}
	var out []result.Finding
	for _, free := range result.Find(v.m.Environment, result.StorageFree) {
		for _, size := range result.Find(v.m.Environment, result.StorageSize) {
			if size.Group == free.Group && size.Number > 0 && free.Number >= 0 && free.Number <= size.Number {
				out = append(out, freeFinding(free, free.Number, size.Number))
				break
			}
		}
	}
	return out
}

func freeFinding(fact result.Fact, left, size float64) result.Finding {
	share := left / size
	f := result.Finding{
		Check: "device-free", Subject: fact.Group, Metric: "free space", Unit: "%", Value: ptr(share * 100), N: 1, Limit: ptr(freeLow * 100),
		NoInterval: "one reading", Basis: "environment facts recorded before the run",
		Evidence: []result.Evidence{{Name: "free", Value: left, Unit: "bytes"}, {Name: "size", Value: size, Unit: "bytes"}},
	}
	what := fmt.Sprintf("The storage under the disks had %s of %s free (%s)", sayBytes(left), sayBytes(size), percent(share))
	switch {
	case share < freeLow:
		f.Severity = result.Caution
		f.Sentence = what + ". Nearly full devices are slower, flash above all."
	case share < freeSome:
		f.Severity = result.Notice
		f.Sentence = what + "; below one fifth, some devices begin to slow down."
	default:
		f.Severity = result.Fine
		f.Sentence = what + "."
	}
	return f
}
