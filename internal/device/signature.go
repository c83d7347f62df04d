package device

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Family is what kind of thing a signature stands for.
type Family string

// The families.
const (
	FileSystem     Family = "file system"
	PartitionTable Family = "partition table"
	Member         Family = "member" // of an array, a volume group, a pool, an encrypted or cached device
	SwapSpace      Family = "swap"
)

// Signature is a mark that somebody's software left on a device, by which it will claim it again.
type Signature struct {
	Name   string `json:"name"` // ext4, LVM2, GPT, ...
	Family Family `json:"family"`
	Offset int64  `json:"offset_bytes"` // of the mark itself
}

// String is its name and place.
func (s Signature) String() string {
	return fmt.Sprintf("%s (%s) at byte %d", s.Name, s.Family, s.Offset)
}

// mark is a signature that a fixed text in a fixed place gives away. A negative place counts from the end, which is
// rounded down to a multiple of round first. Where the text is short, check looks at what must be around it: random
// data, which load generators leave behind, must not look like somebody's.
type mark struct {
	name   string
	family Family
	at     int64
	text   string
	round  int64
	check  func(around []byte) bool // given the mark with so many bytes before and after it
	before int64
	after  int64
}

// marks are the table: places and texts as the formats' own documents and kernels have them.
var marks = []mark{
	{name: "ext2/3/4", family: FileSystem, at: 0x438, text: "\x53\xef", before: 0x38, check: ext},
	{name: "XFS", family: FileSystem, at: 0, text: "XFSB"},
	{name: "btrfs", family: FileSystem, at: 0x10040, text: "_BHRfS_M"},
	{name: "NTFS", family: FileSystem, at: 3, text: "NTFS    "},
	{name: "exFAT", family: FileSystem, at: 3, text: "EXFAT   "},
	{name: "BitLocker", family: Member, at: 3, text: "-FVE-FS-"},
	{name: "ReFS", family: FileSystem, at: 3, text: "ReFS\x00\x00\x00\x00"},
	{name: "FAT", family: FileSystem, at: 54, text: "FAT12   "},
	{name: "FAT", family: FileSystem, at: 54, text: "FAT16   "},
	{name: "FAT", family: FileSystem, at: 82, text: "FAT32   "},
	{name: "JFS", family: FileSystem, at: 0x8000, text: "JFS1"},
	{name: "ReiserFS", family: FileSystem, at: 0x10034, text: "ReIsEr"},
	{name: "ReiserFS", family: FileSystem, at: 0x2034, text: "ReIsEr"},
	{name: "Reiser4", family: FileSystem, at: 0x10000, text: "ReIsEr4"},
	{name: "F2FS", family: FileSystem, at: 0x400, text: "\x10\x20\xf5\xf2"},
	{name: "NILFS2", family: FileSystem, at: 0x406, text: "\x34\x34", before: 6, after: 2, check: nilfs},
	{name: "ISO 9660", family: FileSystem, at: 0x8001, text: "CD001"},
	{name: "UDF", family: FileSystem, at: 0x8001, text: "BEA01"},
	{name: "UDF", family: FileSystem, at: 0x8001, text: "NSR0"},
	{name: "HFS", family: FileSystem, at: 0x400, text: "H+\x00\x04"},
	{name: "HFS", family: FileSystem, at: 0x400, text: "HX\x00\x05"},
	{name: "APFS", family: FileSystem, at: 0x20, text: "NXSB"},
	{name: "GFS2", family: FileSystem, at: 0x10000, text: "\x01\x16\x19\x70"},
	{name: "OCFS2", family: FileSystem, at: 0x400, text: "OCFSV2"},
	{name: "OCFS2", family: FileSystem, at: 0x800, text: "OCFSV2"},
	{name: "OCFS2", family: FileSystem, at: 0x1000, text: "OCFSV2"},
	{name: "OCFS2", family: FileSystem, at: 0x2000, text: "OCFSV2"},
	{name: "squashfs", family: FileSystem, at: 0, text: "hsqs"},
	{name: "EROFS", family: FileSystem, at: 0x400, text: "\xe2\xe1\xf5\xe0"},
	{name: "cramfs", family: FileSystem, at: 16, text: "Compressed ROMFS"},
	{name: "ZoneFS", family: FileSystem, at: 0, text: "SFOZ"},
	{name: "bcachefs", family: FileSystem, at: 0x1018, text: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"},
	{name: "VMFS", family: FileSystem, at: 0x200000, text: "\x5e\xf1\xab\x2f"},
	{name: "VMFS", family: Member, at: 0x100000, text: "\x0d\xd0\x01\xc0"},

	{name: "GPT", family: PartitionTable, at: 512, text: "EFI PART"},
	{name: "GPT", family: PartitionTable, at: 4096, text: "EFI PART"},
	{name: "GPT (backup)", family: PartitionTable, at: -512, text: "EFI PART"},
	{name: "GPT (backup)", family: PartitionTable, at: -4096, text: "EFI PART"},
	{name: "MBR", family: PartitionTable, at: 0x1fe, text: "\x55\xaa", before: 0x1fe, check: mbr},
	{name: "Apple partition map", family: PartitionTable, at: 512, text: "PM\x00\x00\x00\x00"},

	{name: "LVM2", family: Member, at: 0x018, text: "LVM2 001"},
	{name: "LVM2", family: Member, at: 0x218, text: "LVM2 001"},
	{name: "LVM2", family: Member, at: 0x418, text: "LVM2 001"},
	{name: "LVM2", family: Member, at: 0x618, text: "LVM2 001"},
	{name: "LVM1", family: Member, at: 0, text: "HM\x01\x00"},
	{name: "LVM1", family: Member, at: 0, text: "HM\x02\x00"},
	{name: "device-mapper snapshot", family: Member, at: 0, text: "SnAp"},
	{name: "md RAID 0.90", family: Member, at: -0x10000, round: 0x10000, text: "\xfc\x4e\x2b\xa9"},
	{name: "md RAID 0.90", family: Member, at: -0x10000, round: 0x10000, text: "\xa9\x2b\x4e\xfc"},
	{name: "md RAID 1.0", family: Member, at: -0x2000, round: 0x1000, text: "\xfc\x4e\x2b\xa9"},
	{name: "md RAID 1.1", family: Member, at: 0, text: "\xfc\x4e\x2b\xa9"},
	{name: "md RAID 1.2", family: Member, at: 0x1000, text: "\xfc\x4e\x2b\xa9"},
	{name: "Intel RAID", family: Member, at: -1024, text: "Intel Raid ISM Cfg Sig. "},
	{name: "DDF RAID", family: Member, at: -512, text: "\x11\xde\x11\xde"},
	{name: "DDF RAID", family: Member, at: -512, text: "\xde\x11\xde\x11"},
	{name: "LUKS", family: Member, at: 0, text: "LUKS\xba\xbe"},
	{name: "dm-integrity", family: Member, at: 0, text: "integrt\x00"},
	{name: "dm-verity", family: Member, at: 0, text: "verity\x00\x00"},
	{name: "bcache", family: Member, at: 0x1018, text: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{name: "DRBD", family: Member, at: -0x1000 + 0x3c, text: "\x83\x74\x02\x6b"},
	{name: "DRBD", family: Member, at: -0x1000 + 0x3c, text: "\x83\x74\x02\x6c"},
	{name: "DRBD", family: Member, at: -0x1000 + 0x3c, text: "\x83\x74\x02\x6d"},
	{name: "Ceph BlueStore", family: Member, at: 0, text: "bluestore block device"},
	{name: "Stratis", family: Member, at: 0x204, text: "!Stra0tis\x86\xff\x02^Arh"},
	{name: "Stratis", family: Member, at: 0x1204, text: "!Stra0tis\x86\xff\x02^Arh"},
	{name: "VDO", family: Member, at: 0, text: "dmvdo001"},
	{name: "Oracle ASM", family: Member, at: 32, text: "ORCLDISK"},

	// The second header of LUKS2 is in one of these places, and is enough to open the device.
	{name: "LUKS (second header)", family: Member, at: 0x4000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x8000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x10000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x20000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x40000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x80000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x100000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x200000, text: "SKUL\xba\xbe"},
	{name: "LUKS (second header)", family: Member, at: 0x400000, text: "SKUL\xba\xbe"},

	{name: "swap", family: SwapSpace, at: 0x1000 - 10, text: "SWAPSPACE2"},
	{name: "swap", family: SwapSpace, at: 0x2000 - 10, text: "SWAPSPACE2"},
	{name: "swap", family: SwapSpace, at: 0x4000 - 10, text: "SWAPSPACE2"},
	{name: "swap", family: SwapSpace, at: 0x10000 - 10, text: "SWAPSPACE2"},
	{name: "swap", family: SwapSpace, at: 0x1000 - 10, text: "SWAP-SPACE"},
	{name: "suspended system", family: SwapSpace, at: 0x1000 - 10, text: "S1SUSPEND"},
	{name: "suspended system", family: SwapSpace, at: 0x1000 - 10, text: "LINHIB0001"},
}

// ext is what a superblock of ext2 and its heirs holds around its two bytes (ext4's ondisk format, "Super Block").
func ext(b []byte) bool {
	inodes, blocks := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	logBlock, perGroup := binary.LittleEndian.Uint32(b[0x18:]), binary.LittleEndian.Uint32(b[0x20:])
	return inodes > 0 && blocks > 0 && logBlock <= 6 && perGroup > 0 && perGroup <= 8<<(10+logBlock)
}

// nilfs is what a superblock of NILFS2 holds: revision 2, and its own length.
func nilfs(b []byte) bool {
	size := binary.LittleEndian.Uint16(b[8:])
	return binary.LittleEndian.Uint32(b) == 2 && size >= 200 && size <= 1024
}

// mbr is a table of partitions: four entries that begin with 0x00 or 0x80, and one at least that is none of free space.
// A boot sector of a file system has the same two bytes at its end, and other words before them.
func mbr(b []byte) bool {
	used := false
	for i := 0x1be; i < 0x1fe; i += 16 {
		if b[i]&0x7f != 0 {
			return false
		}
		empty := b[i+4] == 0
		if empty != (binary.LittleEndian.Uint32(b[i+12:]) == 0) {
			return false
		}
		used = used || !empty
	}
	return used
}

// Probe looks for signatures in size bytes of content, as wipefs does: all of them, in the order of their places. It
// finds those of the table above and of ZFS; a format that is not among them is not seen. The error is that of reading.
func Probe(content io.ReaderAt, size int64) (found []Signature, err error) {
	for _, m := range marks {
		at := m.at
		if at < 0 {
			end := size
			if m.round > 0 {
				end -= end % m.round
			}
			at += end
		}
		if at < m.before || at+int64(len(m.text))+m.after > size {
			continue
		}
		b := make([]byte, m.before+int64(len(m.text))+m.after)
		if err := readAt(content, b, at-m.before); err != nil {
			return found, err
		}
		if bytes.HasPrefix(b[m.before:], []byte(m.text)) && (m.check == nil || m.check(b)) {
			found = append(found, Signature{m.name, m.family, at})
		}
	}
	zfs, err := probeZFS(content, size)
	found = append(found, zfs...)
	slices.SortStableFunc(found, func(a, b Signature) int { return cmp.Compare(a.Offset, b.Offset) })
	return found, err
}

// probeZFS looks for an uberblock in any of the four labels of ZFS, two at each end. Each holds 128 KiB of them, a
// KiB apart at least, in the byte order of their machine.
func probeZFS(content io.ReaderAt, size int64) ([]Signature, error) {
	const label, ring, slot = 256 << 10, 128 << 10, 1 << 10
	end := size - size%label
	b := make([]byte, ring)
	for i, at := range []int64{0, label, end - 2*label, end - label} {
		if at < 0 || at+label > size || i > 1 && at < 2*label {
			continue
		}
		if err := readAt(content, b, at+label-ring); err != nil {
			return nil, err
		}
		for j := 0; j < ring; j += slot {
			const magic = 0x00bab10c
			if binary.LittleEndian.Uint64(b[j:]) == magic || binary.BigEndian.Uint64(b[j:]) == magic {
				return []Signature{{"ZFS", Member, at + label - ring + int64(j)}}, nil
			}
		}
	}
	return nil, nil
}

// readAt fills b, as short reads at the end of a device that has shrunk do not.
func readAt(content io.ReaderAt, b []byte, at int64) error {
	n, err := content.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at byte %d: %w", len(b), at, err)
}
