// Package storage asks what really reached the storage and what was read from it: media under the disks, blocks never
// written, zeros, caches, what devices counted, free space. It gives view.Checks to package analysis. Workloads that
// move no blocks are none of its business.
package storage

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// NeverWritten asks whether what was read had been written before: storage answers for empty or zero blocks from its
// own tables, without touching a medium.
var NeverWritten = view.Check{Name: "never-written", Rank: 260, Run: neverWritten}

func neverWritten(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		if !l.MovesBlocks() || v.Manifest.Target == result.ImportTarget { // what was written before stands in no output
			continue
		}
		if sampled := result.Find(v.Manifest.Environment, result.SampledZeros); len(sampled) > 0 {
			out = append(out, sampledOf(l, sampled))
		} else if f, ok := writtenOf(l); ok {
			seen(&f, l, v.Data.Written)
			out = append(out, f)
		}
	}
	return out
}

// Shares of zero blocks among those sampled from which on reads are not believed, or not at all.
const (
	someZeros = 0.05
	mostZeros = 0.5
)

// sampledOf judges reads of storage that is only read, and was not prefilled by the run, by what a sample of it holds.
func sampledOf(l *view.Load, sampled []result.Fact) result.Finding {
	worst := sampled[0]
	for _, f := range sampled[1:] {
		if f.Number > worst.Number {
			worst = f
		}
	}
	f := result.Finding{
		Check: "never-written", Subject: l.Name, Severity: result.Passed, Metric: "sampled blocks that are zeros",
		Unit: "%", Value: view.Ptr(100 * worst.Number), N: len(sampled), Limit: view.Ptr(100 * someZeros),
		NoInterval: "counted in a sample of the whole device", Basis: "blocks sampled before the run: " + worst.Value,
	}
	share := fmt.Sprintf("of the blocks sampled on what %s read %s (%s)", l.Name, worst.Value, worst.Group)
	switch {
	case worst.Number > mostZeros:
		f.Severity = result.Invalid
		f.Sentence = view.Capital(share) + ": most of it was never written or was trimmed, and storage answers reads of " +
			"that without touching the media."
	case worst.Number > someZeros:
		f.Severity = result.Warning
		f.Sentence = view.Capital(share) + ": that much may never have been written or was trimmed, and is read faster " +
			"than what was."
	default:
		f.Sentence = view.Capital(share) + ": it had been written before."
	}
	return f
}

func writtenOf(l *view.Load) (result.Finding, bool) {
	var streams, covered int
	var empty, short, zero places
	unfinished := false
	for _, p := range l.Parts {
		for _, stream := range p.Streams {
			if stream.ZeroData && stream.Writes {
				zero.add(p, stream.Device)
			}
			if !stream.Reads || stream.Verifies {
				continue
			}
			streams++
			pre, bytes, zeros, done := prefillOf(l, p, stream.Device)
			unfinished = unfinished || pre && !done
			switch {
			case !pre:
				empty.add(p, stream.Device)
			case zeros:
				zero.add(p, stream.Device)
			case float64(bytes) < float64(stream.Bytes)*(1-view.PrefillTolerance) || !done:
				short.add(p, stream.Device)
			default:
				covered++
			}
		}
	}
	if streams == 0 && len(zero.devices) == 0 {
		return result.Finding{}, false
	}
	f := result.Finding{
		Check: "never-written", Subject: l.Name,
		Metric: l.Section() + "s that read, wholly prefilled with data", Unit: "%", N: streams, Limit: view.Ptr(100),
		NoInterval: "compared from job files and prefill totals, not sampled",
		Basis:      "job files and prefills of " + view.Plural(len(l.Parts), "VM"),
		Evidence: []result.Evidence{{Name: l.Section() + "s that read", Value: float64(streams), Unit: "count"},
			{Name: "wholly prefilled", Value: float64(covered), Unit: "count"}},
	}
	if streams > 0 {
		f.Value = view.Ptr(100 * float64(covered) / float64(streams))
	}
	switch {
	case len(empty.devices) > 0:
		f.Severity = result.Invalid
		f.Sentence = fmt.Sprintf(
			"%s read from disks that were never prefilled (%s). Storage answers reads of empty blocks without touching the media, so they look faster than real reads.",
			l.Name, empty.String())
	case len(zero.devices) > 0:
		f.Severity = result.Warning
		if streams == 0 { // writing zeros frees data: it prepares, and is not what is measured
			f.Severity = result.Info
		}
		f.Sentence = fmt.Sprintf(
			"The data of %s were zeros (%s). Storage that suppresses, compresses or deduplicates stores almost nothing for them.",
			l.Name, zero.String())
	case unfinished:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf(
			"The prefill of %s did not finish, so some of its reads may be of blocks never written (%s).", l.Name,
			short.String())
	case len(short.devices) > 0:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf(
			"%s read beyond its prefill (%s), so some of its reads may be of blocks never written.", l.Name,
			short.String())
	default:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("Everything %s read had been prefilled with non-zero data.", l.Name)
	}
	return f, true
}

// seen corrects what job files and prefills say by what was seen of the disks, where somebody looked: what a workload
// was to read, or all that was prefilled for it.
func seen(f *result.Finding, l *view.Load, looks []result.Written) {
	var blocks, zero int
	var lacking []string
	read, problem := false, false
	for _, w := range looks {
		if w.Group != l.Group || w.Ranges == result.ReadByWorkload && w.Workload != l.Name {
			continue
		}
		if w.Ranges == result.ReadByWorkload { // the newest word, of what it reads itself
			blocks, zero, lacking, problem, read = 0, 0, nil, false, true
		} else if read {
			continue
		}
		blocks, zero, problem = blocks+w.Blocks, zero+w.Zero, problem || w.Problem != ""
		if w.Lacking() {
			lacking = append(lacking, w.Sentence())
		}
	}
	if blocks == 0 {
		return
	}
	f.Basis += ", and blocks read of the disks"
	f.Evidence = append(f.Evidence, result.Evidence{Name: "blocks sampled", Value: float64(blocks), Unit: "count"},
		result.Evidence{Name: "of them zero", Value: float64(zero), Unit: "count"})
	switch {
	case len(lacking) > 0 && read:
		f.Severity = result.Invalid
		f.Sentence = fmt.Sprintf("%s read where nothing was ever written, or zeros (%s). Storage answers such reads from "+
			"its own tables, so they look faster than real ones.", l.Name, view.Three(lacking))
	case len(lacking) > 0 && f.Severity == result.Passed:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf("What was prefilled for %s is not all there (%s): some of its reads may be of blocks "+
			"never written.", l.Name, view.Three(lacking))
	case len(lacking) == 0 && !problem && (f.Severity == result.Passed || read):
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("Everything %s read had been written before: of %s sampled blocks none was zero.", l.Name,
			view.SayCount(float64(blocks)))
	}
}

// prefillOf finds what wrote a device of a VM before the workload began: how much, and whether the last of it wrote
// zeros and came to its end. Authors fill with a prefill step or with a workload of their own.
func prefillOf(l *view.Load, p *result.Workload, device string) (found bool, bytes int64, zeros, done bool) {
	found, done = true, true
	for one := range strings.SplitSeq(device, ":") { // a job of fio may have several, of which each takes a share
		was, wrote, empty, ended := prefillOfOne(l, p, one)
		found, bytes, zeros, done = found && was, bytes+wrote, zeros || empty, done && ended
	}
	return found, bytes, zeros, done
}

func prefillOfOne(l *view.Load, p *result.Workload, device string) (found bool, bytes int64, zeros, done bool) {
	for _, pre := range l.Prefills {
		late := pre.Start.After(p.Start) || !pre.Prefill && pre.End.After(p.Start)
		if !pre.Merged() && !p.Merged() && pre.VM != p.VM || late {
			continue
		}
		wrote, empty := false, false
		for _, stream := range pre.Streams {
			if all := strings.Split(stream.Device, ":"); slices.Contains(all, device) && stream.Writes {
				wrote, empty, bytes = true, empty || stream.ZeroData, max(bytes, stream.Bytes/int64(len(all)))
			}
		}
		if wrote {
			found, zeros, done = true, empty, pre.Ended == result.Finished
		}
	}
	return found, bytes, zeros, done
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
	if n := len(list); n == 0 || list[n-1] != view.Subject(of) { // streams of a VM come together
		ps.vms[device] = append(list, view.Subject(of))
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
	return view.Three(words)
}

// cacheMargin is how many times memory a working set must be before caching in it stops mattering much.
const cacheMargin = 2

// Cache compares the working set with the memory that could hold it.
var Cache = view.Check{Name: "cache", Rank: 390, Run: cache}

func cache(v *view.Run) []result.Finding {
	var out []result.Finding
	if some, all := memoryOnly(v); some > 0 && some == all {
		return nil // what lies in memory is cached by nothing
	}
	for _, l := range v.Loads {
		var set, machine, node float64
		direct, known := true, true
		nodes := map[int]bool{}
		for _, p := range l.Parts {
			extents := map[string]int64{}
			for _, stream := range p.Streams {
				direct = direct && stream.Direct
				known = known && stream.Bytes > 0
				extents[stream.Device] = max(extents[stream.Device], stream.Bytes)
			}
			for _, b := range extents {
				set += float64(b)
			}
			machine += float64(v.VMs[p.VM].MemoryBytes)
			if !nodes[p.Node] && !(v.OneHost && len(nodes) > 0) {
				nodes[p.Node] = true
				node += float64(v.Nodes[p.Node].MemoryBytes)
			}
		}
		if l.MovesBlocks() && l.Count() > 0 && len(l.Parts[0].Streams) > 0 {
			who := "The nodes have"
			switch {
			case v.OneHost:
				who = "The machine that all nodes share has"
			case len(nodes) == 1:
				who = "Its node has"
			}
			f := cacheFinding(l, set, machine, node, direct, known, who)
			if f.Severity == result.Invalid {
				reallyRead(v, l, &f)
			}
			out = append(out, f)
		}
	}
	return out
}

// reallyRead says of a working set that memory could hold what the counters of the device show: that it was asked all
// the same, or how little. Without them memory may have served it, and nobody saw.
func reallyRead(v *view.Run, l *view.Load, f *result.Finding) {
	share, counted := deviceShare(v, l)
	switch {
	case !counted:
		f.Severity = result.Warning
		f.Sentence += " These numbers may be memory's: what reached a device was not counted."
	case share >= 1-deviceMissing:
		f.Severity = result.Info
		f.Sentence += " The device counters show that its operations reached the device all the same."
	case share >= 1-deviceNothing:
		f.Severity = result.Warning
		f.Sentence += fmt.Sprintf(" The device counted %s of what was done: memory served the rest.",
			view.Percent(share))
	default:
		f.Sentence += fmt.Sprintf(
			" The device counted %s of what was done: these numbers measure memory, not the storage.",
			view.Percent(share))
	}
}

func cacheFinding(l *view.Load, set, machine, node float64, direct, known bool,
	who string) result.Finding {
	memory := max(node, machine)
	if direct { // what VMs have caches none of it
		memory = node
	}
	f := result.Finding{
		Check: "cache", Subject: l.Name, Metric: "working set", Unit: "bytes", Value: &set, N: len(l.Parts),
		Limit:      view.Ptr(cacheMargin * memory),
		NoInterval: "compared from job files and facts, not sampled", Basis: "extents of the job files, after scaling; memory of the VMs and of the nodes they are on",
		Evidence: []result.Evidence{
			{Name: "working set", Value: set, Unit: "bytes"},
			{Name: "memory of its VMs", Value: machine, Unit: "bytes"},
			{Name: "memory of their nodes", Value: node, Unit: "bytes"},
		},
	}
	what := fmt.Sprintf("Working set of %s: %s", l.Name, view.SayBytes(set))
	switch {
	case !known || set == 0:
		f.Severity, f.Value = result.Info, nil
		f.Sentence = fmt.Sprintf("Working set of %s: not known, so it cannot be compared with memory.", l.Name)
	case memory == 0:
		f.Severity, f.Limit = result.Info, nil
		f.Sentence = what + "; how much memory could cache it is not known."
	case !direct && set <= memory:
		f.Severity, f.Limit = result.Invalid, view.Ptr(memory)
		f.Sentence = fmt.Sprintf(
			"%s through the page cache, which fits into memory (%s).",
			what, view.SayBytes(memory))
	case !direct:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf("%s through the page cache, with %s of memory: memory may serve part of it.", what,
			view.SayBytes(memory))
	case set < cacheMargin*memory:
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf(
			"%s with direct I/O (no page cache). %s %s of memory, so a cache in the storage below could hold much of it.",
			what, who, view.SayBytes(memory))
	default:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("%s with direct I/O, over %d times the %s of memory.", what, cacheMargin,
			view.SayBytes(memory))
	}
	return f
}

// Free space below which flash slows down (garbage collection) and thin storage runs out.
const (
	freeLow  = 0.10
	freeSome = 0.20
)

// Free compares the free space of the storage under the disks with its size.
var Free = view.Check{Name: "device-free", Rank: 520, Run: deviceFree}

func deviceFree(v *view.Run) []result.Finding {
	if !v.MovesBlocks() {
		return nil
	}
	var out []result.Finding
	for _, free := range result.Find(v.Manifest.Environment, result.StorageFree) {
		for _, size := range result.Find(v.Manifest.Environment, result.StorageSize) {
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
		Check: "device-free", Subject: fact.Group, Metric: "free space", Unit: "%", Value: view.Ptr(share * 100), N: 1,
		Limit:      view.Ptr(freeLow * 100),
		NoInterval: "one reading", Basis: "environment facts recorded before the run",
		Evidence: []result.Evidence{
			{Name: "free", Value: left, Unit: "bytes"},
			{Name: "size", Value: size, Unit: "bytes"},
		},
	}
	what := fmt.Sprintf("Free space under the disks: %s of %s (%s)", view.SayBytes(left), view.SayBytes(size),
		view.Percent(share))
	switch {
	case share < freeLow:
		f.Severity = result.Warning
		f.Sentence = what + ". Nearly full devices are slower, flash above all."
	case share < freeSome:
		f.Severity = result.Info
		f.Sentence = what + "; below 20 %, some devices slow down."
	default:
		f.Severity = result.Passed
		f.Sentence = what + "."
	}
	return f
}

// InMemory finds disks whose files have no medium under them.
var InMemory = view.Check{Name: "in-memory", Rank: 300, Run: inMemory}

func inMemory(v *view.Run) []result.Finding {
	some, all := memoryOnly(v)
	if !v.MovesBlocks() || some == 0 {
		return nil
	}
	sentence := "The disks are files in memory: these numbers are memory's, not any storage's."
	if some < all {
		sentence = fmt.Sprintf("Some of the disks are files in memory (%s of %d folders): what they did is memory's, "+
			"not any storage's, and so are the figures that hold it.", view.SayCount(float64(some)), all)
	}
	return []result.Finding{{
		Check: "in-memory", Severity: result.Invalid, Subject: "run", Metric: "media under the disks", Unit: "count",
		Value: view.Ptr(0), N: 1, Limit: view.Ptr(1),
		Sentence:   sentence,
		NoInterval: "a fact, not a measurement", Basis: "environment facts recorded before the run",
	}}
}

// memoryOnly is how many folders of disks have no medium under them, and of how many.
func memoryOnly(v *view.Run) (some, all int) {
	for _, f := range result.Find(v.Manifest.Environment, result.StorageMedia) {
		if f.Number == 0 {
			some++
		}
	}
	return some, max(some, len(result.Find(v.Manifest.Environment, result.StorageSize)))
}
