package integrity

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// Sector is stamped, and found damaged, as one: the smallest piece that storage writes as a whole, in bytes. A
// block is one or more of them, written together; each has the block's generation, so that a block written in part is
// told from one that was damaged.
const Sector = 512

// The stamp at the start of every sector, little-endian:
//
//	0  magic, 4 bytes
//	4  CRC-32C of the rest of the sector, payload included
//	8  number of the run
//	16 address of the sector in the file or device, in bytes
//	24 generation: the pass that wrote it, from 1
//	28 length of the block, in bytes
//	32 when it was made, in nanoseconds since 1970
//	40 payload
const (
	magic      = "PLS1"
	stampBytes = 40
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stamp holds what a sector says of itself.
type stamp struct {
	run        uint64
	address    int64
	generation uint32
	block      uint32 // bytes
	at         int64  // nanoseconds since 1970
}

// put stamps a sector whose payload is there already.
func (s stamp) put(sector []byte) {
	le := binary.LittleEndian
	copy(sector, magic)
	le.PutUint64(sector[8:], s.run)
	le.PutUint64(sector[16:], uint64(s.address))
	le.PutUint32(sector[24:], s.generation)
	le.PutUint32(sector[28:], s.block)
	le.PutUint64(sector[32:], uint64(s.at))
	le.PutUint32(sector[4:], crc32.Checksum(sector[8:Sector], castagnoli))
}

// stampOf reads what a sector says of itself; not ok when it has no stamp, or anything of it was changed since.
func stampOf(sector []byte) (s stamp, ok bool) {
	le := binary.LittleEndian
	if len(sector) != Sector || string(sector[:4]) != magic ||
		le.Uint32(sector[4:]) != crc32.Checksum(sector[8:], castagnoli) {
		return stamp{}, false
	}
	s = stamp{run: le.Uint64(sector[8:]), address: int64(le.Uint64(sector[16:])), generation: le.Uint32(sector[24:]),
		block: le.Uint32(sector[28:]), at: int64(le.Uint64(sector[32:]))}
	return s, s.generation > 0 && s.address >= 0 && s.address%Sector == 0
}

// stampAll stamps the sectors of whole blocks that belong at an address.
func stampAll(blocks []byte, address int64, m *Manifest, generation int, now time.Time) {
	s := stamp{run: m.run, generation: uint32(generation), block: uint32(m.BlockBytes), at: now.UnixNano()}
	for at := 0; at < len(blocks); at += Sector {
		s.address = address + int64(at)
		s.put(blocks[at : at+Sector])
	}
}
