package vioperf

import (
	"context"
	"fmt"
	"sync"
	"time"

	"plimsoll/unit"
)

// Verification holds what reading everything back found.
type Verification struct {
	Blocks     uint64  `json:"blocks"` // that were read and judged
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	Bad        uint64  `json:"bad_blocks"`
	Unreadable uint64  `json:"unreadable_blocks"`
	// Found are the first of the bad and unreadable ones, by thread and place.
	Found []Bad `json:"found,omitempty"`
	// How the blocks came back: past the page cache, or why they may have come from memory.
	FromMemory string `json:"from_memory,omitempty"`
	Stopped    bool   `json:"stopped,omitempty"` // before all was read
}

// Bad is a block that is not what was written.
type Bad struct {
	File  string `json:"file"`
	At    int64  `json:"at_byte"`
	Block int64  `json:"block"`
	What  string `json:"what"`
}

// mostFound bounds what is kept of bad blocks.
const mostFound = 100

// verify reads back every block that stands where it belongs and judges it.
func (r *run) verify(ctx context.Context, res *Result, buffers []buffer) {
	if ctx.Err() != nil {
		res.Notes = append(res.Notes, "Nothing was read back: the run was interrupted.")
		return
	}
	began := time.Now()
	parts := make([]Verification, len(r.threads))
	var reading sync.WaitGroup
	for i, t := range r.threads {
		reading.Go(func() { t.verify(ctx, &parts[i], buffers[2*i].memory, buffers[2*i+1].memory) })
	}
	reading.Wait()
	v := &Verification{Seconds: time.Since(began).Seconds()}
	for _, p := range parts {
		v.Blocks, v.Bytes = v.Blocks+p.Blocks, v.Bytes+p.Bytes
		v.Bad, v.Unreadable = v.Bad+p.Bad, v.Unreadable+p.Unreadable
		v.Found = append(v.Found, p.Found...)
		v.Stopped = v.Stopped || p.Stopped
		if p.FromMemory != "" {
			v.FromMemory = p.FromMemory
		}
	}
	v.Found = v.Found[:min(len(v.Found), mostFound)]
	if res.Place.Memory() {
		v.FromMemory = res.Place.Type + " is memory"
	}
	res.Verification = v
}

func (t *thread) verify(ctx context.Context, v *Verification, buffer, spare []byte) {
	if err := t.file.Forget(); err != nil {
		v.FromMemory = err.Error()
	}
	last := t.turn
	if t.around > 0 {
		last = min(last, t.around)
	}
	for place := range last {
		if ctx.Err() != nil {
			v.Stopped = true
			return
		}
		n := t.latest(place)
		if n < 0 {
			continue
		}
		found := Bad{File: t.name, At: t.at(n), Block: n}
		if _, err := t.file.ReadAt(buffer, found.At); err != nil {
			v.Unreadable++
			found.What = fmt.Sprintf("it cannot be read: %v", err)
		} else if found.What = t.r.maker.judge(buffer, spare, t.number, n); found.What != "" {
			v.Bad++
		}
		v.Blocks++
		v.Bytes += int64(len(buffer))
		if found.What != "" && len(v.Found) < mostFound {
			v.Found = append(v.Found, found)
		}
	}
}

// latest is the number of the block that was last written at a place, counted in blocks; -1 where a write failed, which
// may have left anything.
func (t *thread) latest(place int64) int64 {
	n := place
	if t.around > 0 {
		n += (t.turn - 1 - place) / t.around * t.around
	}
	if t.isBeyond(n) {
		n -= t.around
	}
	if t.failed[n] {
		return -1
	}
	return n
}

// Wrong is the number of blocks that are not what was written; 0 of a nil one.
func (v *Verification) Wrong() uint64 {
	if v == nil {
		return 0
	}
	return v.Bad + v.Unreadable
}

// String says in short what was found.
func (v *Verification) String() string {
	text := fmt.Sprintf("%s blocks in %s", unit.Thousands(int64(v.Blocks)),
		unit.Duration(v.Seconds*float64(time.Second)))
	if v.Seconds > 0 {
		text += fmt.Sprintf(" (%s)", unit.Bandwidth(float64(v.Bytes)/v.Seconds).Decimal())
	}
	if v.Stopped {
		text += ", interrupted"
	}
	if v.FromMemory != "" {
		text += ", perhaps from memory (" + v.FromMemory + ")"
	}
	if v.Wrong() == 0 {
		return text + ": all as they were written"
	}
	return text + fmt.Sprintf(": %d are not what was written, %d cannot be read", v.Bad, v.Unreadable)
}
