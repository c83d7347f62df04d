package vioperf

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/minio/crc64nvme"

	"plimsoll/internal/storage/content"
)

// Every block begins with a header, little-endian, so that it can be judged by itself when it is read back:
//
//	0   8  magic
//	8   8  seed
//	16  4  thread, from 0
//	20  4  length in bytes
//	24  8  number of the block, from 0 in order of writing
//	32  4  number of the buffer whose content it has, apart from the stamps
//	36  4  1 with a checksum, 0 without
//	40  8  CRC-64/NVME of all the bytes behind the header, then of the header up to here; 0 without checksums
const headerBytes = 48

var magic = [8]byte{'V', 'I', 'O', 'P', 'E', 'R', 'F', '2'}

// chunk is how many bytes are stamped and summed up before the next are: they are in the nearest cache then.
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

// prepare fills a buffer with what all its blocks have, apart from their stamps: content that no block's stamps are of.
func (m *maker) prepare(b []byte, buffer uint32) {
	m.data.Fill(b, 1<<62+int64(buffer)*int64(len(b)))
}

// stamp makes block number n of a thread in a prepared buffer. Its stamps begin at a multiple of its length, so blocks
// of wrapped files differ too.
func (m *maker) stamp(b []byte, buffer uint32, thread int, n int64) {
	sum := uint64(0)
	offset := int64(thread)*span + n*int64(len(b))
	for at := 0; at < len(b); at += chunk {
		part := b[at:min(at+chunk, len(b))]
		if !m.same {
			m.data.Stamp(part, offset+int64(at))
		}
		if at == 0 {
			part = part[headerBytes:]
		}
		if m.checksum {
			sum = crc64nvme.Update(sum, part)
		}
	}
	h := b[:headerBytes]
	copy(h, magic[:])
	binary.LittleEndian.PutUint64(h[8:], m.seed)
	binary.LittleEndian.PutUint32(h[16:], uint32(thread))
	binary.LittleEndian.PutUint32(h[20:], uint32(len(b)))
	binary.LittleEndian.PutUint64(h[24:], uint64(n))
	binary.LittleEndian.PutUint32(h[32:], buffer)
	binary.LittleEndian.PutUint32(h[36:], 0)
	binary.LittleEndian.PutUint64(h[40:], 0)
	if m.checksum {
		h[36] = 1
		binary.LittleEndian.PutUint64(h[40:], crc64nvme.Update(sum, h[:40]))
	}
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
		sum := crc64nvme.Update(crc64nvme.Checksum(b[headerBytes:]), h[:40])
		if stands := binary.LittleEndian.Uint64(h[40:]); h[36] != 1 || stands != sum {
			return fmt.Sprintf("its checksum is %016x, its content's is %016x", stands, sum)
		}
	default:
		buffer := binary.LittleEndian.Uint32(h[32:])
		m.prepare(spare, buffer)
		m.stamp(spare, buffer, thread, n)
		if !bytes.Equal(spare, b) {
			return "its content is not what was written"
		}
	}
	return ""
}
