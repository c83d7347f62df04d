package step

import (
	"context"
	"fmt"
	"io"
	"slices"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/loads"
	"plimsoll/internal/storage/content"
	"plimsoll/internal/storage/written"
	"plimsoll/result"
	"plimsoll/scenario"
)

// storedBytes is how much is read, and compressed, to see what a workload's disks hold, over all of them: about half a
// second of one processor. Of each disk at least leastStored are.
const (
	storedBytes = 32 << 20
	leastStored = 1 << 20
	// storedTolerance is how many percentage points data may be off what was asked. fio's own are off by two.
	storedTolerance = 5
)

// asked holds what a stream asks of its data, as shares.
type asked struct{ compressible, repeats float64 }

func askedOf(l result.Stream) asked {
	if !l.Writes || l.ZeroData || !(l.Reducible > 0 && l.Reducible < 1) || !(l.Repeats >= 0 && l.Repeats < 1) {
		return asked{}
	}
	return asked{1 - (1-l.Reducible)/(1-l.Repeats), l.Repeats}
}

// lookAtStored looks at what a start's streams have stored where they asked for data that compress or repeat, and
// records it: an option of a load generator that does nothing changes what all figures mean. While others work nothing
// is looked at, for looking is load too.
func lookAtStored(ctx context.Context, e *Env, load scenario.Workload, s *loads.Start, after string) error {
	var asks []asked
	for _, p := range s.Places() {
		for _, stream := range p.Job.Streams {
			if a := askedOf(stream); a != (asked{}) && !slices.Contains(asks, a) {
				asks = append(asks, a)
			}
		}
	}
	if len(asks) > 0 && !e.Loads.Alone(s) {
		e.Note("workload %q: whether its data are as asked is not looked at, since other workloads run", load.Name)
		return nil
	}
	for _, a := range asks {
		if err := lookAtAsked(ctx, e, load, s, a, after); err != nil {
			return err
		}
	}
	return nil
}

// lookAtAsked looks at the data of those streams that ask for the same.
func lookAtAsked(ctx context.Context, e *Env, load scenario.Workload, s *loads.Start, a asked, after string) error {
	began := e.Clock.Now()
	out := result.Stored{Workload: load.Name, Group: load.Group, After: after, Compressible: a.compressible,
		Repeats: a.repeats}
	type part struct {
		host   target.Host
		vm     string
		device string
		ranges []written.Range
	}
	var parts []part
	for _, p := range s.Places() {
		if _, ok := p.Host.(target.DiskReader); !ok {
			continue
		}
		ours := Extents(p.Job.Streams, p.Host.Disks(), func(l result.Stream) bool { return askedOf(l) == a })
		others := Extents(p.Job.Streams, p.Host.Disks(),
			func(l result.Stream) bool { return l.Writes && askedOf(l) != a })
		before := len(parts)
		for _, d := range p.Host.Disks() {
			if ranges := written.Lacks(ours[d.Device], others[d.Device]); len(ranges) > 0 {
				parts = append(parts, part{p.Host, p.VM.Name, d.Device, ranges})
			}
		}
		if len(parts) > before {
			out.VMs++
		}
	}
	if len(parts) == 0 { // this place shows no disks
		return nil
	}
	var all content.Report
	for _, p := range parts {
		err := lookAtContent(ctx, p.host, p.device, p.ranges, int64(max(leastStored, storedBytes/len(parts))), &all)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && out.Problem == "" {
			out.Problem = fmt.Sprintf("look at %s of %s: %v", p.device, p.vm, err)
		}
	}
	all.HoleBytes = 0 // whether all was written is another question
	tell(&out, all)
	out.Seconds = e.Clock.Now().Sub(began).Seconds()
	e.Record(result.Event{Kind: result.KindStored, Name: load.Name, Text: out.Sentence(), Error: out.Problem,
		Data: result.EventData{Stored: &out}})
	for _, d := range out.Differs {
		e.Warn("workload %q: its data are not as asked: %s", load.Name, d)
	}
	return nil
}

// tell puts what a report says into a record.
func tell(out *result.Stored, r content.Report) {
	if out.Bytes = r.ReadBytes; out.Bytes == 0 {
		return
	}
	out.Zeros = float64(r.ZeroBytes) / float64(r.ReadBytes)
	out.ZerosWithin = float64(r.ZeroLineBytes-r.ZeroBytes) / float64(r.ReadBytes)
	out.CompressibleLow = 1
	for _, c := range r.Compression {
		out.CompressibleLow = min(out.CompressibleLow, c.Share)
		out.CompressibleHigh = max(out.CompressibleHigh, c.Share)
	}
	out.RepeatsAtLeast = r.Duplicates[0].Share
	for _, v := range r.Judge(content.Expectation{CompressibilityPercent: 100 * out.Compressible,
		DedupePercent: 100 * out.Repeats, DedupeBlockBytes: written.BlockBytes, TolerancePoints: storedTolerance}) {
		switch v.Met {
		case content.No:
			out.Differs = append(out.Differs, v.Sentence)
		case content.Unknown:
			out.CannotTell = append(out.CannotTell, v.Sentence)
		}
	}
}

// lookAtContent adds what a sample of some ranges of a disk holds to a report.
func lookAtContent(ctx context.Context, h target.Host, device string, ranges []written.Range, most int64,
	all *content.Report) error {
	reader, _ := h.(target.DiskReader)
	disk, err := reader.OpenDisk(ctx, device)
	if err != nil {
		return err
	}
	defer disk.Close()
	for _, r := range ranges {
		share := most * (r.To - r.From) / max(written.Bytes(ranges), 1)
		part := section{io.NewSectionReader(disk, r.From, r.To-r.From), disk, r.From}
		one, err := content.Check(ctx, part, part.Size(),
			content.CheckOptions{MostBytes: max(share, leastStored), CompressBytes: most, Workers: 1,
				DedupeBlockBytes: []int{written.BlockBytes}, ChunkBytes: []int{written.BlockBytes}})
		if err != nil {
			return err
		}
		all.Add(one)
		if one.FirstError != "" {
			return fmt.Errorf("%d bytes could not be read: %s", one.UnreadableBytes, one.FirstError)
		}
	}
	return nil
}

// section is a range of a disk as a source of its own.
type section struct {
	*io.SectionReader
	disk target.DiskFile
	from int64
}

// Written is of the section's own offsets.
func (s section) Written(from, to int64) (bytes int64, known bool, err error) {
	return s.disk.Written(s.from+from, s.from+to)
}
