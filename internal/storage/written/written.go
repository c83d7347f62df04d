// Package written tells whether ranges of a disk hold what was once written: storage answers reads of blocks never
// written, or given back, from its own tables, without touching a medium.
//
// It stands between the steps, which ask it after a prefill and before reads, and a disk that the target has opened for
// reading. It looks in two ways. What the place below knows of its own space (holes, space that is only reserved) it
// adds up over all of the ranges; and of blocks spread evenly over them it reads a few and counts those of nothing but
// zeros, which is all that can be seen from above of thin or trimmed storage. It writes nothing, waits for nothing, and
// judges no content but zeros.
package written

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
)

// BlockBytes is the size of the blocks that are looked at: the smallest that storage commonly maps.
const BlockBytes = 4096

// Disk answers questions about an open disk; see target.DiskFile.
type Disk interface {
	io.ReaderAt
	// Written is how many bytes of a range hold what was written once, false where that is not known.
	Written(from, to int64) (bytes int64, known bool, err error)
}

// Range is the bytes from one offset to before another.
type Range struct{ From, To int64 }

// Look holds what was seen of some ranges.
type Look struct {
	Bytes  int64 // of the ranges, what several hold counted once
	Mapped int64 // of them what the place below says was written; 0 unless Known
	Known  bool  // the place below knows
	Blocks int   // read
	Zero   int   // of these nothing but zeros
}

// Add counts another disk in.
func (l Look) Add(o Look) Look {
	if l == (Look{}) {
		return o
	}
	return Look{l.Bytes + o.Bytes, l.Mapped + o.Mapped, l.Known && o.Known, l.Blocks + o.Blocks, l.Zero + o.Zero}
}

// Bound is the share of zero blocks that there are at most, in [0, 1], with 95 % confidence: the upper limit of Clopper
// and Pearson (Biometrika 26, 1934), one-sided. It is 1 where nothing was read.
func (l Look) Bound() float64 {
	if l.Blocks == 0 || l.Zero >= l.Blocks {
		return 1
	}
	const miss = 0.05
	low, high := float64(l.Zero)/float64(l.Blocks), 1.0
	for range 60 {
		p := (low + high) / 2
		if atMost(l.Zero, l.Blocks, p) > miss {
			low = p
		} else {
			high = p
		}
	}
	return high
}

// atMost is the probability of no more than k of n, each with probability p.
func atMost(k, n int, p float64) (sum float64) {
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}

// Merge sorts ranges and joins those that touch; empty ones are left out.
func Merge(ranges []Range) []Range {
	sorted := slices.DeleteFunc(slices.Clone(ranges), func(r Range) bool { return r.To <= r.From })
	slices.SortFunc(sorted, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	var out []Range
	for _, r := range sorted {
		if n := len(out); n > 0 && r.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Lacks are the parts of some ranges that others do not cover.
func Lacks(wanted, covered []Range) (out []Range) {
	covered = Merge(covered)
	for _, w := range Merge(wanted) {
		for _, c := range covered {
			if c.To <= w.From || c.From >= w.To {
				continue
			}
			if c.From > w.From {
				out = append(out, Range{w.From, c.From})
			}
			w.From = c.To
		}
		if w.From < w.To {
			out = append(out, w)
		}
	}
	return out
}

// Bytes is the length of ranges that do not overlap.
func Bytes(ranges []Range) (n int64) {
	for _, r := range ranges {
		n += r.To - r.From
	}
	return n
}

// Sample looks at ranges of a disk. It reads at most so many blocks, one of every part when the ranges are cut into as
// many parts of one size, in ascending order; the same seed reads the same ones. What was seen until an error stands.
func Sample(ctx context.Context, disk Disk, ranges []Range, blocks int, seed uint64) (Look, error) {
	ranges = Merge(ranges)
	l := Look{Bytes: Bytes(ranges), Known: len(ranges) > 0}
	for _, r := range ranges {
		n, known, err := disk.Written(r.From, r.To)
		if err != nil {
			return l, fmt.Errorf("bytes %d to %d: %w", r.From, r.To, err)
		}
		l.Mapped += n
		l.Known = l.Known && known
	}
	if !l.Known {
		l.Mapped = 0
	}
	all := l.Bytes / BlockBytes
	n := min(all, int64(max(blocks, 0)))
	rng := rand.New(rand.NewPCG(seed, 1))
	block := make([]byte, BlockBytes)
	for i := range n {
		if err := ctx.Err(); err != nil {
			return l, err
		}
		first, next := part(all, n, i), part(all, n, i+1)
		at := place(ranges, (first+rng.Int64N(next-first))*BlockBytes)
		got, err := disk.ReadAt(block, at)
		if err != nil && !(errors.Is(err, io.EOF) && got > 0) {
			return l, fmt.Errorf("byte %d: %w", at, err)
		}
		l.Blocks++
		if zero(block[:got]) {
			l.Zero++
		}
	}
	return l, nil
}

// part is where part i of n begins in all of so many.
func part(all, n, i int64) int64 { return all/n*i + all%n*i/n }

// place finds the offset on the disk of a byte of the ranges, and that of the last whole block before the end of its
// range where it is too near to that.
func place(ranges []Range, at int64) int64 {
	for _, r := range ranges {
		if length := r.To - r.From; at >= length {
			at -= length
			continue
		}
		return max(r.From, min(r.From+at, r.To-BlockBytes))
	}
	return 0
}

func zero(block []byte) bool { return !slices.ContainsFunc(block, func(b byte) bool { return b != 0 }) }
