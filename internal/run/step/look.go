package step

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/loads"
	"plimsoll/internal/storage/written"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// How many blocks are read in one look, over all disks: none zero among so many bounds their share by 0.15 %. Of each
// disk at least leastBlocks are.
const (
	lookBlocks  = 2048
	leastBlocks = 8
)

// Looked remembers which ranges of disks were seen to be written, so that they are not looked at again. It is safe for
// concurrent use; nil remembers nothing.
type Looked struct {
	mu   sync.Mutex
	seen map[vmDisk][]written.Range
}

type vmDisk struct{ vm, device string }

func (l *Looked) add(at vmDisk, ranges []written.Range) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[vmDisk][]written.Range{}
	}
	l.seen[at] = written.Merge(append(slices.Clone(l.seen[at]), ranges...))
}

// lacks are the parts of some ranges that were not seen yet.
func (l *Looked) lacks(at vmDisk, ranges []written.Range) []written.Range {
	if l == nil {
		return written.Merge(ranges)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return written.Lacks(ranges, l.seen[at])
}

// forget drops what is known of disks that match.
func (l *Looked) forget(match func(vm, device string) bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := range l.seen {
		if match(at.vm, at.device) {
			delete(l.seen, at)
		}
	}
}

// Extents are the ranges of disks that some streams work on. A stream that does not say how much works on all of its
// disks.
func Extents(streams []result.Stream, disks []target.Disk, of func(result.Stream) bool) map[string][]written.Range {
	out := map[string][]written.Range{}
	for _, stream := range streams {
		if !of(stream) || stream.Device == "" {
			continue
		}
		names := strings.Split(stream.Device, ":")
		each := (stream.Bytes + int64(len(names)) - 1) / int64(len(names))
		for _, d := range disks {
			if !slices.Contains(names, d.Device) {
				continue
			}
			r := written.Range{From: min(stream.Offset, d.Bytes), To: d.Bytes}
			if stream.Bytes > 0 {
				r.To = min(r.From+each, d.Bytes)
			}
			out[d.Device] = append(out[d.Device], r)
		}
	}
	return out
}

// Reads and Writes pick streams for Extents. What verifies is left out: it tells of what it reads whether it was
// written.
func Reads(l result.Stream) bool { return l.Reads && !l.Verifies }

// Writes is the other.
func Writes(l result.Stream) bool { return l.Writes }

// disksToLookAt are the ranges of a start that are to be looked at, by place and device. What a workload reads is left
// out where it was seen before.
func disksToLookAt(e *Env, s *loads.Start, ranges string) (places []loads.Place, at [][]vmDisk,
	what []map[string][]written.Range) {
	for _, p := range s.Places() {
		if _, ok := p.Host.(target.DiskReader); !ok {
			continue
		}
		of := Writes
		if ranges == result.ReadByWorkload {
			of = Reads
		}
		all := Extents(p.Job.Streams, p.Host.Disks(), of)
		var disks []vmDisk
		for _, d := range p.Host.Disks() { // in their order
			one := vmDisk{p.VM.Name, d.Device}
			if ranges == result.ReadByWorkload {
				all[d.Device] = e.Looked.lacks(one, all[d.Device])
			}
			if len(all[d.Device]) > 0 {
				disks = append(disks, one)
			}
		}
		if len(disks) > 0 {
			places, at, what = append(places, p), append(at, disks), append(what, all)
		}
	}
	return places, at, what
}

// lookAt looks whether the disks of a start were ever written where the start says, and records what it has seen. What
// cannot be looked at is no error of the run: the record says so.
func lookAt(ctx context.Context, e *Env, load scenario.Workload, s *loads.Start, ranges string) error {
	places, at, what := disksToLookAt(e, s, ranges)
	n := 0
	for _, disks := range at {
		n += len(disks)
	}
	if n == 0 {
		return nil
	}
	began := e.Clock.Now()
	w := result.Written{Workload: load.Name, Group: load.Group, Ranges: ranges, VMs: len(places)}
	var all written.Look
	for i, p := range places {
		for _, d := range at[i] {
			one, err := lookAtDisk(ctx, p.Host, d, what[i][d.device], max(leastBlocks, lookBlocks/n))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			all = all.Add(one)
			switch {
			case err != nil && w.Problem == "":
				w.Problem = err.Error()
			case err != nil:
			case one.Zero > 0 || one.Known && one.Mapped < one.Bytes:
				w.Devices = append(w.Devices, d.vm+" "+d.device)
			default:
				e.Looked.add(d, what[i][d.device])
			}
		}
	}
	w.Bytes, w.Blocks, w.Zero, w.ZeroAtMost = all.Bytes, all.Blocks, all.Zero, all.Bound()
	if all.Known {
		w.Mapped = &all.Mapped
	}
	w.Seconds = e.Clock.Now().Sub(began).Seconds()
	event := result.Event{Kind: result.KindWritten, Name: load.Name, Text: w.Sentence(),
		Data: result.EventData{Written: &w}}
	if w.Problem != "" {
		event.Error = w.Problem
	}
	e.Record(event)
	if w.Lacking() {
		e.Warn("workload %q: %s", load.Name, w.Sentence())
	}
	return nil
}

// lookAtDisk looks at one disk. The seed is its name's, so that a look can be repeated.
func lookAtDisk(ctx context.Context, h target.Host, d vmDisk, ranges []written.Range,
	blocks int) (written.Look, error) {
	reader, _ := h.(target.DiskReader)
	disk, err := reader.OpenDisk(ctx, d.device)
	if err != nil {
		return written.Look{}, fmt.Errorf("look at %s of %s: %w", d.device, d.vm, err)
	}
	defer disk.Close()
	look, err := written.Sample(ctx, disk, ranges, blocks, loads.Seed(d.vm+d.device, 0))
	if err != nil {
		return look, fmt.Errorf("look at %s of %s: %w", d.device, d.vm, err)
	}
	return look, nil
}

// lookBeforeReads looks at what a workload will read and nothing has shown to be written, unless others are at work:
// looking is load too.
func lookBeforeReads(ctx context.Context, e *Env, load scenario.Workload, s *loads.Start) error {
	for _, p := range s.Places() {
		for _, stream := range p.Job.Streams {
			if stream.TrimShare > 0 { // what it trims is not there any more when somebody reads
				devices := strings.Split(stream.Device, ":")
				e.Looked.forget(func(vm, device string) bool {
					return vm == p.VM.Name && slices.Contains(devices, device)
				})
			}
		}
	}
	if e.Loads.Alone(s) {
		return lookAt(ctx, e, load, s, result.ReadByWorkload)
	}
	if _, at, _ := disksToLookAt(e, s, result.ReadByWorkload); len(at) > 0 {
		e.Note("workload %q: whether what it reads was ever written is not looked at, since other workloads run: %s",
			load.Name, unit.Plural(len(at), "VM"))
	}
	return nil
}

// lookAfterPrefill looks whether all was written, and whether data are as asked.
func lookAfterPrefill(ctx context.Context, e *Env, load scenario.Workload, s *loads.Start) error {
	if err := lookAt(ctx, e, load, s, result.WrittenByPrefill); err != nil {
		return err
	}
	return lookAtStored(ctx, e, load, s, result.AfterPrefill)
}
