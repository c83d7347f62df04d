// Package content makes the bytes that storage is tested with, and says of bytes that were read back what a storage
// could make of them: how much is zeros or holes, how much repeats, how far two real compressors get.
//
// The commands that write (content write, integrity, vioperf) fill their blocks here; the command content check, and
// the look that a run takes at its disks, read through Check. It opens nothing by itself and knows no device: it is
// handed buffers, and readers.
//
// What a Generator writes is a function of its options and the offset alone, so that any part can be made again, by
// anybody, in any order, at once. It refuses shares that cannot be reached rather than coming near them in silence.
package content

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"plimsoll/internal/storage/direct"
)

// Options say what content is wanted. The zero value is incompressible and nowhere the same.
type Options struct {
	// Seed tells contents apart: those of two seeds have no block in common, apart from those without anything random.
	Seed uint64
	// CompressibilityPercent is the share that a compressor saves: 0 to 95. 100 stands for nothing random at all: the
	// pattern alone, which is one block over and over.
	CompressibilityPercent int
	// DedupePercent is the share of blocks that repeat another one, which is what deduplication saves: 0 to 99.
	DedupePercent int
	// DedupeBlockBytes is the size of those blocks, a power of two, 512 to 1 MiB; 0 stands for 4096.
	DedupeBlockBytes int
	// Pattern fills the compressible share; without one English words do. It may not be all zeros,
	// which storage does not store. At most 64 bytes.
	Pattern []byte
}

const (
	// granule is the length, in bytes, of one piece of filler with one piece of randomness behind it: the smallest
	// sector there is, so that no sector is filler alone or random alone, and none equals another.
	granule = 512
	// page is the length, in bytes, over which the filler is the same phrase: the smallest block that storage
	// compresses.
	page = 4096
	// phraseBytes is the length of a phrase of words. Each page pays for its first phrase, so it is short.
	phraseBytes = 64
	phrases     = 256
	// sequenceBytes counts what naming one repetition costs a compressor.
	sequenceBytes = 4
	// maskBytes is the length of the table, in bytes, and keyBytes that of a key; maskStep is how much is combined at
	// once.
	maskBytes, keyBytes, maskStep = 32 << 10, 64, 2 << 10
	// group is the number of blocks of which exactly DedupePercent repeat others.
	group = 100
	// step and back are inverse modulo group; they spread the repeating blocks over it.
	step, back = 37, 73
)

// Generator makes content. Nothing of it changes: all its methods may be called at once.
type Generator struct {
	options Options
	hash    uint64   // of the seed, for what is drawn by blocks
	table   []byte   // random throughout, of maskBytes
	fill    int      // bytes of filler at the start of each granule
	filler  [][]byte // phrases, repeated to the length of fill; one of a pattern
}

// New checks options and returns their generator, or everything that is wrong with them.
func New(o Options) (*Generator, error) {
	if o.DedupeBlockBytes == 0 {
		o.DedupeBlockBytes = page
	}
	var wrong []error
	object := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("content: "+format, args...)) }
	if c := o.CompressibilityPercent; c < 0 || c > 95 && c != 100 {
		object("compressibility %d %%: want 0 to 95, or 100 for the pattern alone", c)
	}
	if o.DedupePercent < 0 || o.DedupePercent > 99 {
		object("dedupe %d %%: want 0 to 99", o.DedupePercent)
	}
	if b := o.DedupeBlockBytes; !powerOfTwo(b, granule) {
		object("dedupe block of %d bytes: want a power of two, 512 to 1 MiB", b)
	}
	switch {
	case o.CompressibilityPercent == 100 && o.DedupePercent > 0:
		object("a pattern alone is one block over and over: leave out dedupe %d %%", o.DedupePercent)
	case o.CompressibilityPercent == 100 && len(o.Pattern) == 0:
		object("compressibility 100 %% is a pattern alone, and none is given")
	case o.CompressibilityPercent == 0 && len(o.Pattern) > 0:
		object("a pattern is what the compressible share consists of, and that is 0 %%: give a compressibility, " +
			"100 for the pattern alone")
	}
	if len(o.Pattern) > phraseBytes {
		object("a pattern of %d bytes is too long: at most %d", len(o.Pattern), phraseBytes)
	}
	if len(o.Pattern) > 0 && strings.Trim(string(o.Pattern), "\x00") == "" {
		object("a pattern of zeros is not stored by storage that looks for them, so it would measure nothing")
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	g := &Generator{options: o, hash: mix(o.Seed + 0x9e3779b97f4a7c15), table: make([]byte, maskBytes)}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], o.Seed)
	_, _ = rand.NewChaCha8(seed).Read(g.table) // never fails
	g.prepare()
	return g, nil
}

// Options are those that the generator was made of, with defaults filled in.
func (g *Generator) Options() Options { return g.options }

// prepare decides how much of a granule is filler. A compressor saves the filler except for the first phrase of a page,
// and pays for naming each repetition:
//
//	saved = n (fill - sequenceBytes) - min(fill, first),   n = page / granule
func (g *Generator) prepare() {
	percent := g.options.CompressibilityPercent
	if percent == 0 {
		return
	}
	first := phraseBytes
	if p := len(g.options.Pattern); p > 0 {
		first = p
	}
	const n = page / granule
	want := page*percent/100 + n*sequenceBytes
	if g.fill = want / (n - 1); g.fill > first {
		g.fill = (want + first) / n
	}
	if g.options.CompressibilityPercent == 100 {
		g.fill = granule
	}
	if len(g.options.Pattern) > 0 {
		g.filler = [][]byte{repeat(g.options.Pattern, g.fill)}
		return
	}
	for i := range phrases {
		g.filler = append(g.filler, repeat(g.phrase(uint64(i)), g.fill))
	}
}

// words are what phrases are made of.
var words = strings.Fields(`account address archive balance batch branch buffer cargo client column commit customer data
 delivery deposit district draft entry field file freight harbour history index invoice item journal key label ledger
 line loading mark master message number order page payment plan port price product quantity record region report
 return row sample schedule segment ship stock summary table tonnage total transfer update value vessel voyage waterline
 weight`)

// phrase is the text of a number: words drawn by the seed.
func (g *Generator) phrase(n uint64) []byte {
	var p []byte
	for i := uint64(0); len(p) < phraseBytes; i++ {
		p = append(append(p, words[mix(g.hash^mix(n<<8+i+1))%uint64(len(words))]...), ' ')
	}
	return p[:phraseBytes]
}

func repeat(p []byte, length int) []byte {
	out := make([]byte, 0, length+len(p))
	for len(out) < length {
		out = append(out, p...)
	}
	return out[:length]
}

// mix spreads a number over 64 bits, each once (the finalizer of splitmix64, Steele and others 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Fill writes the content that stands at an offset of a file or device, in bytes, into buf. Any offset from 0 and any
// length do.
func (g *Generator) Fill(buf []byte, offset int64) {
	if g.options.CompressibilityPercent == 100 {
		g.pattern(buf, offset)
		return
	}
	if g.options.DedupePercent == 0 {
		g.at(buf, offset)
		return
	}
	size := int64(g.options.DedupeBlockBytes)
	for len(buf) > 0 {
		number, within := offset/size, offset%size
		n := min(int64(len(buf)), size-within)
		g.at(buf[:n], g.origin(number)*size+within)
		buf, offset = buf[n:], offset+n
	}
}

// stampBytes is the length of what Stamp writes into each granule: less than the randomness of any.
const stampBytes = 8

// Stamp makes a buffer that was filled once differ from all others, at a tenth of the cost of filling it anew: the last
// 8 bytes of every 512 become those of their offset, and of no other. No sector equals another then, and each
// compresses as it did; a storage that looks for likeness across blocks would find it. Offset and length are multiples
// of 512.
func (g *Generator) Stamp(buf []byte, offset int64) {
	for n := uint64(offset / granule); len(buf) >= granule; n++ {
		binary.LittleEndian.PutUint64(buf[granule-stampBytes:], mix(g.hash+n))
		buf = buf[granule:]
	}
}

// Write writes the content of the first bytes of a file or device, several pieces at once, and tells progress of the
// bytes done. Where direct I/O is wanted, the last piece is written whole: cut the file off behind size.
func (g *Generator) Write(ctx context.Context, w io.WriterAt, size int64, workers int, progress func(int64)) error {
	buffers := make([][]byte, workers)
	for i := range buffers {
		buffers[i] = direct.Buffer(piece)
	}
	return direct.Each(ctx, workers, (size+piece-1)/piece, func(worker int, i int64) error {
		at := i * piece
		n := min(piece, (size-at+direct.Align-1)/direct.Align*direct.Align)
		b := buffers[worker][:n]
		g.Fill(b, at)
		if _, err := w.WriteAt(b, at); err != nil {
			return fmt.Errorf("write at byte %d: %w", at, err)
		}
		progress(min(n, size-at))
		return nil
	})
}

// origin is the number of the block that a block repeats; its own unless it repeats one. Of every group of blocks
// exactly DedupePercent repeat a block that repeats none, of the same group or an earlier one, so that the share holds
// for any file of whole groups.
func (g *Generator) origin(number int64) int64 {
	percent := int64(g.options.DedupePercent)
	of, within := number/group, number%group
	if (within*step+g.turn(of))%group >= percent {
		return number
	}
	draw := mix(g.hash + mix(uint64(number)+1))
	from := int64(draw>>32) % (of + 1)
	place := percent + int64(draw&0xffffffff)%(group-percent)
	return from*group + (place-g.turn(from)+group)*back%group
}

// turn moves the repeating blocks of a group around, so that no two groups are alike.
func (g *Generator) turn(of int64) int64 { return int64(mix(g.hash^uint64(of)) % group) }

// at makes what belongs to a place: randomness, then filler over the start of every granule.
//
// The randomness is made as fast as it could be copied, twice as fast as by a cipher with instructions of its own: the
// table, combined with a key that each stretch of its length has for itself, over and over. Within a stretch nothing
// repeats, since nothing in the table does; between stretches nothing does, since their keys differ.
func (g *Generator) at(buf []byte, place int64) {
	for rest, at := buf, place; len(rest) > 0; {
		within := int(at % maskBytes)
		n := min(len(rest), maskBytes-within)
		g.mask(rest[:n], at/maskBytes, within)
		rest, at = rest[n:], at+int64(n)
	}
	if g.fill == 0 {
		return
	}
	for done := 0; done < len(buf); {
		within := int((place + int64(done)) % granule)
		if within < g.fill {
			copy(buf[done:], g.fillerOf((place + int64(done)) / page)[within:])
		}
		done += granule - within
	}
}

// mask makes a part of one stretch.
func (g *Generator) mask(buf []byte, stretch int64, within int) {
	var key [keyBytes + maskStep]byte
	x := mix(g.hash ^ uint64(stretch)*0x9e3779b97f4a7c15)
	for i := 0; i < keyBytes; i += 8 {
		binary.LittleEndian.PutUint64(key[i:], mix(x+uint64(i)))
	}
	for have := keyBytes; have < len(key); have *= 2 {
		copy(key[have:], key[:have])
	}
	table, turned := g.table[within:][:len(buf)], key[within%keyBytes:][:maskStep]
	for len(buf) > 0 {
		n := subtle.XORBytes(buf, table[:min(len(table), maskStep)], turned)
		buf, table = buf[n:], table[n:]
	}
}

func (g *Generator) fillerOf(number int64) []byte {
	if len(g.filler) == 1 {
		return g.filler[0]
	}
	return g.filler[mix(g.hash^uint64(number))%phrases]
}

// pattern repeats the pattern from offset 0 on.
func (g *Generator) pattern(buf []byte, offset int64) {
	p := g.options.Pattern
	n := copy(buf, p[offset%int64(len(p)):])
	if n == len(buf) {
		return
	}
	n += copy(buf[n:], p)
	from := int((int64(len(p)) - offset%int64(len(p))) % int64(len(p))) // where the pattern begins in buf
	for n < len(buf) {
		n += copy(buf[n:], buf[from:n])
	}
}
