package content

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"plimsoll/internal/storage/direct"
)

const (
	piece = 1 << 20 // what is read, and drawn for a sample, at once; in bytes
	line  = 64      // the smallest stretch that is looked at for zeros
	// most is how many hashes of one block size are kept: 16 MiB of memory at most. With more blocks than that, those
	// with the smallest hashes are, as SHARDS does (Waldspurger and others, 2015).
	most = 1 << 19
	// normal is the two-sided 95 % quantile of the normal distribution.
	normal = 1.959963984540054
)

// Source is read by a check. A reader that also has Written, as direct.File has, tells holes from zeros.
type Source interface{ io.ReaderAt }

type written interface {
	Written(from, to int64) (bytes int64, known bool, err error)
}

// CheckOptions say how a check goes about it. The zero value reads all, and compresses 64 MiB of it.
type CheckOptions struct {
	DedupeBlockBytes []int // sizes of blocks that may repeat: powers of two, 512 to 1 MiB; nil: 4 KiB to 128 KiB
	ChunkBytes       []int // sizes of what is compressed by itself: powers of two, 4 KiB to 1 MiB; nil: 4, 32, 128 KiB
	// MostBytes bounds what is read: pieces of 1 MiB spread over the whole. 0: all.
	MostBytes int64
	// CompressBytes bounds what is compressed, likewise. 0: 64 MiB.
	CompressBytes int64
	// Workers is how many read and count at once. 0: one a processor, at most 4.
	Workers int
	// Progress is told how many bytes are done; it may be called from several goroutines. May be nil.
	Progress func(done, of int64)
}

// Report holds what a check found. Shares are 0 to 1.
type Report struct {
	LogicalBytes int64 `json:"logical_bytes"`
	ReadBytes    int64 `json:"read_bytes"`
	Sampled      bool  `json:"sampled"` // only a part was looked at
	// HoleBytes were never written, of the part looked at; -1 where that is not known.
	HoleBytes int64 `json:"hole_bytes"`
	// ZeroBytes are blocks of 4 KiB that were read and are all zeros, other than holes.
	ZeroBytes int64 `json:"zero_bytes"`
	// ZeroLineBytes are zeros in aligned stretches of 64 bytes, those in blocks all zeros included.
	ZeroLineBytes int64 `json:"zero_line_bytes"`
	// UnreadableBytes gave an error in place of data.
	UnreadableBytes int64  `json:"unreadable_bytes"`
	FirstError      string `json:"first_error,omitempty"`

	Duplicates  []Duplicates  `json:"duplicates"`
	Compression []Compression `json:"compression"`
}

// Duplicates is how much of what is not zeros repeats another block.
type Duplicates struct {
	BlockBytes int   `json:"block_bytes"`
	Blocks     int64 `json:"blocks"` // not zeros
	// Distinct is how many of them differ; estimated where there are more than are kept.
	Distinct int64   `json:"distinct"`
	Share    float64 `json:"share"` // what deduplication saves: 1 - distinct/blocks
	// Error95 bounds the error of Share, 95 times of 100; 0 where all were counted.
	Error95 float64 `json:"error_95"`
	// AtLeast: only a part was looked at, and what repeats something outside it was not seen.
	AtLeast bool `json:"at_least"`
}

// Compression is how far a compressor gets with chunks by themselves, those all zeros left out.
type Compression struct {
	Codec      string  `json:"codec"`
	ChunkBytes int     `json:"chunk_bytes"`
	InBytes    int64   `json:"in_bytes"`
	OutBytes   int64   `json:"out_bytes"` // a chunk that grows is kept as it is
	Share      float64 `json:"share"`     // what is saved: 1 - out/in
	Error95    float64 `json:"error_95"`  // of Share, from how the pieces differ; 0 where all were compressed
}

// Ratio is in over out; infinite when nothing is left.
func (c Compression) Ratio() float64 { return float64(c.InBytes) / float64(c.OutBytes) }

// Codecs are the compressors, by the names they have in reports.
func Codecs() []string { return []string{"lz4", "zstd 1"} }

// Check reads what a source of size bytes holds. Ranges that cannot be read are counted and passed over. It keeps some
// 10 MiB per block size and 4 MiB per worker, whatever the size.
func Check(ctx context.Context, src Source, size int64, o CheckOptions) (*Report, error) {
	if err := o.fillIn(); err != nil {
		return nil, err
	}
	c := &check{src: src, size: size, o: o, pieces: (size + piece - 1) / piece}
	c.looked = c.pieces
	if n := max(1, o.MostBytes/piece); o.MostBytes > 0 && n < c.pieces {
		c.looked = n
	}
	c.compressed = min(c.looked, max(1, o.CompressBytes/piece))
	for _, b := range o.DedupeBlockBytes {
		c.seen = append(c.seen, &distinct{})
		c.report.Duplicates = append(c.report.Duplicates, Duplicates{BlockBytes: b})
	}
	c.tallies = make([]tally, len(Codecs())*len(o.ChunkBytes))
	c.report.LogicalBytes, c.report.Sampled = size, c.looked < c.pieces
	if _, ok := src.(written); !ok {
		c.report.HoleBytes = -1
	}
	workers := make([]worker, o.Workers)
	for i := range workers {
		if err := workers[i].begin(); err != nil {
			return nil, err
		}
	}
	err := direct.Each(ctx, o.Workers, c.looked, func(of int, i int64) error {
		c.look(&workers[of], i)
		if done := c.done.Add(1); c.o.Progress != nil {
			c.o.Progress(min(done*piece, c.size), min(c.looked*piece, c.size))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.finish(), nil
}

func (o *CheckOptions) fillIn() error {
	if o.DedupeBlockBytes == nil {
		o.DedupeBlockBytes = []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10}
	}
	if o.ChunkBytes == nil {
		o.ChunkBytes = []int{4 << 10, 32 << 10, 128 << 10}
	}
	if o.CompressBytes == 0 {
		o.CompressBytes = 64 << 20
	}
	if o.Workers == 0 {
		o.Workers = min(4, runtime.GOMAXPROCS(0))
	}
	var wrong []error
	for _, b := range o.DedupeBlockBytes {
		if !powerOfTwo(b, granule) {
			wrong = append(wrong, fmt.Errorf("content: dedupe block of %d bytes: want a power of two, 512 to 1 MiB", b))
		}
	}
	for _, b := range o.ChunkBytes {
		if !powerOfTwo(b, page) {
			wrong = append(wrong, fmt.Errorf("content: chunk of %d bytes: want a power of two, 4 KiB to 1 MiB", b))
		}
	}
	o.DedupeBlockBytes = slices.Compact(slices.Sorted(slices.Values(o.DedupeBlockBytes)))
	return errors.Join(wrong...)
}

func powerOfTwo(b, least int) bool { return b >= least && b <= piece && b&(b-1) == 0 }

// check is one going on.
type check struct {
	src        Source
	size       int64
	o          CheckOptions
	pieces     int64 // of the source
	looked     int64 // of them, spread evenly
	compressed int64 // of those, likewise
	done       atomic.Int64

	mu      sync.Mutex
	report  Report
	seen    []*distinct // by size of block
	tallies []tally     // by codec and size of chunk
}

// tally adds up one codec at one size of chunk; the sums are over pieces, for the error.
type tally struct {
	in, out                    int64
	pieces, sum, squares, both float64 // of out and in: ratio estimate over pieces
	inSquares                  float64
}

// drawn is the number of part i of n when k of them are taken: one of each of k equal stretches, anywhere in it.
func drawn(i, n, k int64) int64 {
	from, to := i*n/k, (i+1)*n/k
	return from + int64(mix(uint64(i)+1)%uint64(to-from))
}

// worker holds what one goroutine needs.
type worker struct {
	buf, out []byte
	zstd     *zstd.Encoder
	lz4      lz4.Compressor
}

func (w *worker) begin() (err error) {
	w.buf, w.out = direct.Buffer(piece), make([]byte, 0, piece+piece/8)
	w.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(piece), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	return err
}

// isCompressed reports whether the piece looked at as number i is one of those compressed.
func (c *check) isCompressed(i int64) bool {
	k, n := c.compressed, c.looked
	at := i * k / n // the stretch that i is in, or the one before
	return drawn(at, n, k) == i || at+1 < k && drawn(at+1, n, k) == i
}

// look reads one piece and counts what it holds.
func (c *check) look(w *worker, i int64) {
	at := drawn(i, c.pieces, c.looked) * piece
	length := min(piece, c.size-at)
	holes := int64(0)
	if src, ok := c.src.(written); ok {
		n, known, err := src.Written(at, at+length)
		switch {
		case err != nil || !known:
			holes = -1
		default:
			holes = length - n
		}
		if holes == length {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.report.addHoles(holes)
			return // nothing is there
		}
	}
	n, err := c.src.ReadAt(w.buf, at) // whole, as direct I/O wants it: behind the end nothing comes
	if int64(n) < length {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report.ReadBytes += int64(n)
		c.report.UnreadableBytes += length - int64(n)
		if c.report.FirstError == "" {
			c.report.FirstError = cmp.Or(err, io.ErrUnexpectedEOF).Error()
		}
		return
	}
	data := w.buf[:length]
	zeroBlocks, zeroLines := zerosOf(data)
	seen := make([][]uint64, len(c.seen))
	blocks := make([]int64, len(c.seen))
	for s, size := range c.o.DedupeBlockBytes {
		seen[s] = w.hash(data, size)
		blocks[s] = int64(len(seen[s]))
	}
	var tallies []tally
	if c.isCompressed(i) {
		tallies = w.compress(data, c.o.ChunkBytes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.report
	r.ReadBytes += length
	r.addHoles(holes)
	r.ZeroBytes += max(0, zeroBlocks-max(holes, 0))
	r.ZeroLineBytes += max(0, zeroLines-max(holes, 0))
	for s, hashes := range seen {
		r.Duplicates[s].Blocks += blocks[s]
		for _, h := range hashes {
			c.seen[s].add(h)
		}
	}
	for i, t := range tallies {
		c.tallies[i].add(t)
	}
}

func (r *Report) addHoles(n int64) {
	if n < 0 || r.HoleBytes < 0 {
		r.HoleBytes = -1
		return
	}
	r.HoleBytes += n
}

// zerosOf is how many bytes are in blocks of 4 KiB, and in lines, that are all zeros.
func zerosOf(data []byte) (blocks, lines int64) {
	for len(data) > 0 {
		block := data[:min(page, len(data))]
		data = data[len(block):]
		zeros := int64(0)
		for at := 0; at < len(block); at += line {
			if zero(block[at:min(at+line, len(block))]) {
				zeros += int64(min(line, len(block)-at))
			}
		}
		lines += zeros
		if zeros == int64(len(block)) {
			blocks += zeros
		}
	}
	return blocks, lines
}

func zero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// hash gives the hashes of all whole blocks that are not zeros.
func (w *worker) hash(data []byte, size int) (out []uint64) {
	for ; len(data) >= size; data = data[size:] {
		if b := data[:size]; !zero(b) {
			out = append(out, xxhash.Sum64(b))
		}
	}
	return out
}

// compress compresses the chunks of a piece by themselves, with all codecs.
func (w *worker) compress(data []byte, sizes []int) []tally {
	var out []tally
	for codec := range Codecs() {
		for _, size := range sizes {
			var t tally
			for at := 0; at < len(data); at += size {
				chunk := data[at:min(at+size, len(data))]
				if zero(chunk) {
					continue
				}
				n := 0
				if codec == 0 {
					n, _ = w.lz4.CompressBlock(chunk, w.out[:cap(w.out)]) // 0 when it does not shrink
				} else {
					n = len(w.zstd.EncodeAll(chunk, w.out[:0]))
				}
				if n == 0 || n > len(chunk) {
					n = len(chunk)
				}
				t.in, t.out = t.in+int64(len(chunk)), t.out+int64(n)
			}
			out = append(out, t)
		}
	}
	return out
}

// add counts a piece.
func (t *tally) add(p tally) {
	if p.in == 0 {
		return
	}
	in, out := float64(p.in), float64(p.out)
	t.in, t.out = t.in+p.in, t.out+p.out
	t.pieces++
	t.sum, t.squares, t.both, t.inSquares = t.sum+out, t.squares+out*out, t.both+in*out, t.inSquares+in*in
}

// error95 returns what out/in may be off by when the pieces were drawn of so many: the error of a ratio of sums
// (Cochran, Sampling Techniques, 6.4).
func (t *tally) error95(of int64) float64 {
	if t.pieces < 2 || t.pieces >= float64(of) {
		return 0
	}
	r := float64(t.out) / float64(t.in)
	spread := max(0, t.squares-2*r*t.both+r*r*t.inSquares) / (t.pieces - 1)
	mean := float64(t.in) / t.pieces
	return normal * math.Sqrt(spread/t.pieces*(1-t.pieces/float64(of))) / mean
}

func (c *check) finish() *Report {
	r := &c.report
	for s := range r.Duplicates {
		d, set := &r.Duplicates[s], c.seen[s]
		d.AtLeast = r.Sampled
		kept, rate := float64(set.n), math.Ldexp(1, -set.halved)
		d.Distinct = min(d.Blocks, int64(math.Round(kept/rate)))
		if d.Blocks > 0 {
			d.Share = 1 - float64(d.Distinct)/float64(d.Blocks)
			d.Error95 = normal * math.Sqrt(kept*(1-rate)) / rate / float64(d.Blocks)
		}
	}
	for codec, name := range Codecs() {
		for i, size := range c.o.ChunkBytes {
			t := &c.tallies[codec*len(c.o.ChunkBytes)+i]
			n := Compression{Codec: name, ChunkBytes: size, InBytes: t.in, OutBytes: t.out,
				Error95: t.error95(c.pieces)}
			if t.in > 0 {
				n.Share = 1 - float64(t.out)/float64(t.in)
			}
			r.Compression = append(r.Compression, n)
		}
	}
	return r
}

// distinct is a set of hashes: all of them, or, once they are too many, those below a bound that is halved as often as
// it takes. What it holds in the end does not depend on the order in which they came.
type distinct struct {
	table  []uint64 // open addressing; 0 is free
	n      int
	halved int
}

func (d *distinct) add(h uint64) {
	if h == 0 {
		h = 1
	}
	if h > math.MaxUint64>>d.halved {
		return
	}
	if 2*d.n >= len(d.table) {
		d.grow()
	}
	if d.put(h) && d.n > most {
		d.halved++
		d.rebuild(len(d.table))
	}
}

// put adds a hash and reports whether it is new. The low bits place it: the bound is on the high ones.
func (d *distinct) put(h uint64) bool {
	mask := uint64(len(d.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch d.table[i] {
		case h:
			return false
		case 0:
			d.table[i] = h
			d.n++
			return true
		}
	}
}

func (d *distinct) grow() { d.rebuild(max(1<<10, 2*len(d.table))) }

func (d *distinct) rebuild(size int) {
	old := d.table
	d.table, d.n = make([]uint64, size), 0
	for _, h := range old {
		if h != 0 && h <= math.MaxUint64>>d.halved {
			d.put(h)
		}
	}
}

// Add counts another report in, of another part of the same data, made with the same options. What repeats a block of
// the other part was not seen.
func (r *Report) Add(o *Report) {
	if r.LogicalBytes == 0 {
		*r = *o
		r.Duplicates, r.Compression = slices.Clone(o.Duplicates), slices.Clone(o.Compression)
		return
	}
	r.LogicalBytes, r.ReadBytes = r.LogicalBytes+o.LogicalBytes, r.ReadBytes+o.ReadBytes
	r.Sampled = r.Sampled || o.Sampled
	r.addHoles(o.HoleBytes)
	r.ZeroBytes, r.ZeroLineBytes = r.ZeroBytes+o.ZeroBytes, r.ZeroLineBytes+o.ZeroLineBytes
	r.UnreadableBytes, r.FirstError = r.UnreadableBytes+o.UnreadableBytes, cmp.Or(r.FirstError, o.FirstError)
	for i := range r.Duplicates {
		d, more := &r.Duplicates[i], o.Duplicates[i]
		a, b := d.Error95*float64(d.Blocks), more.Error95*float64(more.Blocks)
		d.Blocks, d.Distinct, d.AtLeast = d.Blocks+more.Blocks, d.Distinct+more.Distinct, true
		if d.Blocks > 0 {
			d.Share = 1 - float64(d.Distinct)/float64(d.Blocks)
			d.Error95 = math.Hypot(a, b) / float64(d.Blocks)
		}
	}
	for i := range r.Compression {
		c, more := &r.Compression[i], o.Compression[i]
		a, b := c.Error95*float64(c.InBytes), more.Error95*float64(more.InBytes)
		c.InBytes, c.OutBytes = c.InBytes+more.InBytes, c.OutBytes+more.OutBytes
		if c.InBytes > 0 {
			c.Share = 1 - float64(c.OutBytes)/float64(c.InBytes)
			c.Error95 = math.Hypot(a, b) / float64(c.InBytes)
		}
	}
}
