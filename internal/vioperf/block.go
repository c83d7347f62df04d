package vioperf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"plimsoll/internal/content"
)

// Every block begins with a header, little-endian, so that it can be judged by itself when it is read back:
//
//	0   8  magic
//	8   8  seed
//	16  4  thread, from 0
//	20  4  length in bytes
//	24  8  number of the block, from 0 in order of writing
//	32  4  CRC32C (Castagnoli) of all the bytes behind the header, then of the header up to here; 0 without checksums
//	36  4  1 with a checksum, 0 without
const headerBytes = 40

var magic = [8]byte{'V', 'I', 'O', 'P', 'E', 'R', 'F', '1'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is how many bytes are made and summed up before the next are: they are in the nearest cache then.
const chunk = 32 << 10

// maker makes blocks. It has no state: all threads use one.
type maker struct {
	data     *content.Generator
	seed     uint64
	checksum bool
	same     bool
}

func newMaker(o Options) (maker, error) {
	data, err := content.New(content.Options{Seed: o.Seed, CompressibilityPercent: o.CompressibilityPercent})
	return maker{data, o.Seed, o.Checksum, o.Same}, err
}

// span is how much of the content belongs to one thread: bytes.
const span = 1 << 52

// fill makes block number n of a thread. Its content begins at a multiple of its length, so blocks of wrapped files
// differ too.
func (m *maker) fill(b []byte, thread int, n int64) {
	sum := uint32(0)
	offset := int64(thread)*span + n*int64(len(b))
	for at := 0; at < len(b); at += chunk {
		part := b[at:min(at+chunk, len(b))]
		if !m.same {
			m.data.Fill(part, offset+int64(at))
		}
		if at == 0 {
			part = part[headerBytes:]
		}
		if m.checksum {
			sum = crc32.Update(sum, castagnoli, part)
		}
	}
	h := b[:headerBytes]
	copy(h, magic[:])
	binary.LittleEndian.PutUint64(h[8:], m.seed)
	binary.LittleEndian.PutUint32(h[16:], uint32(thread))
	binary.LittleEndian.PutUint32(h[20:], uint32(len(b)))
	binary.LittleEndian.PutUint64(h[24:], uint64(n))
	binary.LittleEndian.PutUint64(h[32:], 0)
	if m.checksum {
		binary.LittleEndian.PutUint32(h[32:], crc32.Update(sum, castagnoli, h[:32]))
		h[36] = 1
	}
}

// once makes what buffer number i of a thread holds when all its blocks have the same data: that of no numbered block.
func (m *maker) once(b []byte, thread, i int) {
	m.data.Fill(b, int64(thread)*span+span/2+int64(i)*int64(len(b)))
}

// judge says what is wrong with a block that was read back, "" when it is block number n of the thread as it was
// written. A block with a checksum is held against that; one without against the data made again, in spare.
func (m *maker) judge(b, spare []byte, thread int, n int64) string {
	h := b[:headerBytes]
	is := func(at int, want uint64) bool { return binary.LittleEndian.Uint64(h[at:]) == want }
	switch {
	case bytes.Count(b, []byte{0}) == len(b):
		return "it is all zeros"
	case !bytes.Equal(h[:8], magic[:]):
		return "no block of this tool's stands there"
	case !is(8, m.seed):
		return fmt.Sprintf("a block of another run (seed %d) stands there", binary.LittleEndian.Uint64(h[8:]))
	case !is(16, uint64(thread)|uint64(len(b))<<32) || !is(24, uint64(n)):
		return fmt.Sprintf("block %d of thread %d stands there", binary.LittleEndian.Uint64(h[24:]),
			binary.LittleEndian.Uint32(h[16:])+1)
	case m.checksum:
		if sum := crc32.Update(crc32.Checksum(b[headerBytes:], castagnoli), castagnoli, h[:32]); !is(32,
			uint64(sum)|1<<32) {
			return fmt.Sprintf("its checksum is %08x, its content's is %08x", binary.LittleEndian.Uint32(h[32:]), sum)
		}
	default:
		m.fill(spare, thread, n)
		if !bytes.Equal(spare, b) {
			return "its content is not what was written"
		}
	}
	return ""
}
