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

// Family tells what kind of thing a signature stands for.
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
	Offset int64  `json:"offset_bytes"` // of the mark itself; -1 where only the format is told
	By     string `json:"by,omitempty"` // the program that found it, "" for Probe
}

// String is its name and place, and who says so.
func (s Signature) String() string {
	text := fmt.Sprintf("%s (%s)", s.Name, s.Family)
	if s.Offset >= 0 {
		text += fmt.Sprintf(" at byte %d", s.Offset)
	}
	if s.By != "" {
		text += ", as " + s.By + " says"
	}
	return text
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
var marks = append([]mark{
	{name: "ext2/3/4", family: FileSystem, at: 0x438, text: "\x53\xef", before: 0x38, after: 0x2a, check: ext},
	{name: "XFS", family: FileSystem, at: 0, text: "XFSB"},
	{name: "btrfs", family: FileSystem, at: 0x10040, text: "_BHRfS_M"},
	{name: "NTFS", family: FileSystem, at: 3, text: "NTFS    "},
	{name: "exFAT", family: FileSystem, at: 3, text: "EXFAT   "},
	{name: "BitLocker", family: Member, at: 3, text: "-FVE-FS-"},
	{name: "ReFS", family: FileSystem, at: 3, text: "ReFS\x00\x00\x00\x00"},
	{name: "FAT", family: FileSystem, at: 54, text: "FAT12   "},
	{name: "FAT", family: FileSystem, at: 54, text: "FAT16"},
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
	{name: "HFS", family: FileSystem, at: 0x400, text: "BD", after: 0x23, check: hfs},
	{name: "HFS", family: FileSystem, at: 0x400, text: "H+\x00\x04"},
	{name: "HFS", family: FileSystem, at: 0x400, text: "HX\x00\x05"},
	{name: "APFS", family: FileSystem, at: 0x20, text: "NXSB"},
	{name: "GFS2", family: FileSystem, at: 0x10000, text: "\x01\x16\x19\x70"},
	{name: "OCFS2", family: FileSystem, at: 0x400, text: "OCFSV2"},
	{name: "OCFS2", family: FileSystem, at: 0x800, text: "OCFSV2"},
	{name: "OCFS2", family: FileSystem, at: 0x1000, text: "OCFSV2"},
	{name: "OCFS2", family: FileSystem, at: 0x2000, text: "OCFSV2"},
	{name: "squashfs", family: FileSystem, at: 0, text: "hsqs"},
	{name: "squashfs", family: FileSystem, at: 0, text: "sqsh"},
	{name: "EROFS", family: FileSystem, at: 0x400, text: "\xe2\xe1\xf5\xe0"},
	{name: "cramfs", family: FileSystem, at: 16, text: "Compressed ROMFS"},
	{name: "ZoneFS", family: FileSystem, at: 0, text: "SFOZ"},
	{name: "bcachefs", family: FileSystem, at: 0x1018, text: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"},
	{name: "VMFS", family: FileSystem, at: 0x200000, text: "\x5e\xf1\xab\x2f"},
	{name: "VMFS", family: Member, at: 0x100000, text: "\x0d\xd0\x01\xc0"},

	{name: "BeFS", family: FileSystem, at: 0x20, text: "BFS1"},
	{name: "BeFS", family: FileSystem, at: 0x20, text: "1SFB"},
	{name: "BeFS", family: FileSystem, at: 0x220, text: "BFS1"},
	{name: "BeFS", family: FileSystem, at: 0x220, text: "1SFB"},
	{name: "BFS", family: FileSystem, at: 0, text: "\xce\xfa\xad\x1b"},
	{name: "EXFS", family: FileSystem, at: 0, text: "EXFS"},
	{name: "HPFS", family: FileSystem, at: 0x2000, text: "\x49\xe8\x95\xf9"},
	{name: "NetWare", family: FileSystem, at: 0x1000, text: "SPB5"},
	{name: "romfs", family: FileSystem, at: 0, text: "-rom1fs-"},
	{name: "ScoutFS", family: FileSystem, at: 0x10004, text: "\x8b\x42\x3c\x10"},
	{name: "UBIFS", family: FileSystem, at: 0, text: "\x31\x18\x10\x06"},
	{name: "VxFS", family: FileSystem, at: 0x400, text: "\xf5\xfc\x01\xa5"},
	{name: "VxFS", family: FileSystem, at: 0x2000, text: "\xa5\x01\xfc\xf5"},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x7f\x13", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x8f\x13", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x68\x24", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x78\x24", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x418, text: "\x5a\x4d", before: 0x18, after: 0x20, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x13\x7f", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x13\x8f", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x24\x68", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x410, text: "\x24\x78", before: 0x10, after: 0x28, check: minix},
	{name: "minix", family: FileSystem, at: 0x418, text: "\x4d\x5a", before: 0x18, after: 0x20, check: minix},

	{name: "GPT", family: PartitionTable, at: 512, text: "EFI PART"},
	{name: "GPT", family: PartitionTable, at: 4096, text: "EFI PART"},
	{name: "GPT (backup)", family: PartitionTable, at: -512, text: "EFI PART"},
	{name: "GPT (backup)", family: PartitionTable, at: -4096, text: "EFI PART"},
	{name: "MBR", family: PartitionTable, at: 0x1fe, text: "\x55\xaa", before: 0x1fe, check: mbr},
	{name: "Apple partition map", family: PartitionTable, at: 512, text: "PM\x00\x00\x00\x00"},

	{name: "Sun disk label", family: PartitionTable, at: 508, text: "\xda\xbe", before: 508, after: 2, check: sun},
	{name: "SGI disk label", family: PartitionTable, at: 0, text: "\x0b\xe5\xa9\x41"},
	{name: "BSD disk label", family: PartitionTable, at: 0, text: "\x57\x45\x56\x82"},
	{name: "BSD disk label", family: PartitionTable, at: 64, text: "\x57\x45\x56\x82"},
	{name: "BSD disk label", family: PartitionTable, at: 512, text: "\x57\x45\x56\x82"},
	{name: "BSD disk label", family: PartitionTable, at: 576, text: "\x57\x45\x56\x82"},
	{name: "AIX", family: PartitionTable, at: 0, text: "\xc9\xc2\xd4\xc1"},
	{name: "Ultrix disk label", family: PartitionTable, at: 16384 - 72, text: "\x57\x29\x03\x00\x01\x00\x00\x00"},

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
	{name: "Intel RAID", family: Member, at: -1024, round: 512, text: "Intel Raid ISM Cfg Sig. "},
	{name: "Intel RAID", family: Member, at: -8192, round: 4096, text: "Intel Raid ISM Cfg Sig. "},
	{name: "Adaptec RAID", family: Member, at: -512, round: 512, text: "\x37\xfc\x4d\x1e"},
	{name: "HighPoint RAID", family: Member, at: 0x1220, text: "\xf0\x16\x78\x5a"},
	{name: "HighPoint RAID", family: Member, at: 0x1220, text: "\xfd\x16\x78\x5a"},
	{name: "HighPoint RAID", family: Member, at: -11 * 512, round: 512, text: "\xf3\x16\x78\x5a"},
	{name: "HighPoint RAID", family: Member, at: -11 * 512, round: 512, text: "\xfd\x16\x78\x5a"},
	{name: "JMicron RAID", family: Member, at: -512, round: 512, text: "JM", after: 126, check: jmicron},
	{name: "LSI RAID", family: Member, at: -512, round: 512, text: "$XIDE$"},
	{name: "NVIDIA RAID", family: Member, at: -1024, round: 512, text: "NVIDIA  "},
	{name: "Silicon Image RAID", family: Member, at: -512 + 0x60, round: 512, text: "\x00\x00\x00\x2f", before: 0x60,
		after: 0x140 - 0x64, check: silicon},
	{name: "VIA RAID", family: Member, at: -512, round: 512, text: "\x55\xaa", after: 49, check: via},
	{name: "DDF RAID", family: Member, at: -512, round: 512, text: "\x11\xde\x11\xde"},
	{name: "DDF RAID", family: Member, at: -512, round: 512, text: "\xde\x11\xde\x11"},
	{name: "DDF RAID", family: Member, at: -512 * 257, round: 512, text: "\x11\xde\x11\xde"},
	{name: "DDF RAID", family: Member, at: -512 * 257, round: 512, text: "\xde\x11\xde\x11"},
	{name: "LUKS", family: Member, at: 0, text: "LUKS\xba\xbe"},
	{name: "dm-integrity", family: Member, at: 0, text: "integrt\x00"},
	{name: "dm-verity", family: Member, at: 0, text: "verity\x00\x00"},
	{name: "bcache", family: Member, at: 0x1018, text: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{name: "DRBD", family: Member, at: -0x1000 + 0x3c, text: "\x83\x74\x02\x6b"},
	{name: "DRBD", family: Member, at: -0x1000 + 0x3c, text: "\x83\x74\x02\x6c"},
	{name: "DRBD", family: Member, at: -0x1000 + 0x3c, text: "\x83\x74\x02\x6d"},
	{name: "DRBD (management)", family: Member, at: 0, text: "$DRBDmgr=q"},
	{name: "DRBD (proxy log)", family: Member, at: 0, text: "DRBDdlh*"},
	{name: "mpool", family: Member, at: 0, text: "mpoolDev"},
	{name: "UBI", family: Member, at: 0, text: "UBI#"},
	{name: "Apple Core Storage", family: Member, at: 88, text: "CS\x01\x00\x00\x00"},
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

	{name: "suspended system", family: SwapSpace, at: 0, text: "\xed\xc3\x02\xe9\x98\x56\xe5\x0c"},
}, scattered()...)

// scattered are the marks that may stand in many places.
func scattered() (list []mark) {
	add := func(name string, f Family, text string, round int64, places ...int64) {
		for _, at := range places {
			list = append(list, mark{name: name, family: f, at: at, text: text, round: round})
		}
	}
	pages := []int64{0x1000 - 10, 0x2000 - 10, 0x4000 - 10, 0x8000 - 10, 0x10000 - 10} // the end of the first page
	for _, text := range []string{"SWAPSPACE2", "SWAP-SPACE"} {
		add("swap", SwapSpace, text, 0, pages...)
	}
	for _, text := range []string{"S1SUSPEND", "S2SUSPEND", "ULSUSPEND", "LINHIB0001"} {
		add("suspended system", SwapSpace, text, 0, pages...)
	}
	for _, text := range []string{"\x00\x01\x19\x54", "\x19\x54\x01\x19", "\x00\x19\x56\x12", "\x00\x09\x50\x14",
		"\x00\x61\x21\x95", "\x05\x23\x19\x94"} {
		for _, text := range []string{text, reversed(text)} {
			add("UFS", FileSystem, text, 0, 0x55c, 0x255c, 0x1055c, 0x4055c)
		}
	}
	for _, text := range []string{"\xfd\x18\x7e\x20", "\x20\x7e\x18\xfd"} {
		add("System V", FileSystem, text, 0, 0x3f8, 0x3f8+9<<10, 0x3f8+15<<10, 0x3f8+18<<10)
	}
	// Volume labels of mainframe disks, in EBCDIC, in the third block: VOL1, LNX1, CMS1.
	for _, text := range []string{"\xe5\xd6\xd3\xf1", "\xd3\xd5\xe7\xf1", "\xc3\xd4\xe2\xf1"} {
		add("DASD", PartitionTable, text, 0, 2*512, 2*1024, 2*2048, 2*4096)
	}
	for _, sectors := range []int64{16, 63, 255, 256, 399, 591, 675, 735, 911, 951, 974, 991, 3087} {
		add("Promise RAID", Member, "Promise Technology, Inc.", 512, -512*sectors)
	}
	return list
}

func reversed(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return string(b)
}

// sum16 adds up the 16-bit numbers of b.
func sum16(b []byte) (sum uint16) {
	for ; len(b) > 1; b = b[2:] {
		sum += binary.LittleEndian.Uint16(b)
	}
	return sum
}

// hfs tells a volume by its first block: an allocation block of whole sectors, and a name of 1 to 27 letters.
func hfs(b []byte) bool {
	size := binary.BigEndian.Uint32(b[0x14:])
	return size > 0 && size%512 == 0 && binary.BigEndian.Uint16(b[0x12:]) > 0 && b[0x24] > 0 && b[0x24] <= 27
}

// minix returns what a superblock of Minix's file system holds: bitmaps that are large enough for its inodes and zones.
// That of ext and that of EROFS, which begin in the same place, are none.
func minix(b []byte) bool {
	if string(b[0x38:0x3a]) == "\x53\xef" || string(b[:4]) == "\xe2\xe1\xf5\xe0" {
		return false
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		n := func(at int) uint64 { return uint64(order.Uint16(b[at:])) }
		inodes, zones, at := n(0), n(2), 4
		switch {
		case n(0x18) == 0x4d5a:
			inodes, zones, at = uint64(order.Uint32(b)), uint64(order.Uint32(b[20:])), 6
		case n(0x10) == 0x2468, n(0x10) == 0x2478:
			zones = uint64(order.Uint32(b[20:]))
		case n(0x10) != 0x137f && n(0x10) != 0x138f:
			continue
		}
		const bits = 1024 * 8 // of a block
		inodeMaps, zoneMaps, first, logZone := n(at), n(at+2), n(at+4), n(at+6)
		if inodes > 0 && logZone == 0 && first <= zones && inodeMaps*bits > inodes && zoneMaps*bits > zones-first {
			return true
		}
	}
	return false
}

// sun is a label whose 16-bit numbers cancel each other out.
func sun(b []byte) bool {
	var sum uint16
	for i := 0; i < 512; i += 2 {
		sum ^= binary.BigEndian.Uint16(b[i:])
	}
	return sum == 0
}

// jmicron is metadata whose numbers add up to nothing, or to one; a level above 5 there is not.
func jmicron(b []byte) bool { return sum16(b) <= 1 && b[0x30] <= 5 }

// silicon is metadata with its checksum at its end, of a disk among eight.
func silicon(b []byte) bool { return sum16(b[:0x140]) == 0 && slices.ContainsFunc(b[:0x60], notZero) }

func notZero(b byte) bool { return b != 0 }

// via is metadata of a version up to 2 whose bytes add up to the one that follows them.
func via(b []byte) bool {
	var sum byte
	for _, v := range b[:50] {
		sum += v
	}
	return b[2] <= 2 && sum == b[50]
}

// ext tells a superblock of ext2 and its heirs by what is around its two bytes (ext4's ondisk format, "Super Block").
func ext(b []byte) bool {
	inodes, blocks := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	logBlock, perGroup := binary.LittleEndian.Uint32(b[0x18:]), binary.LittleEndian.Uint32(b[0x20:])
	const journal = 8 // an external journal has no inodes
	if binary.LittleEndian.Uint32(b[0x60:])&journal != 0 {
		inodes = 1
	}
	return inodes > 0 && blocks > 0 && logBlock <= 6 && perGroup > 0 && perGroup <= 8<<(10+logBlock)
}

// nilfs tells a superblock of NILFS2: revision 2, and its own length.
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
// finds those of the table above, and of ZFS, FAT without its name, Atari and the log of XFS; a format that is not
// among them is not seen. The error is that of reading.
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
			found = append(found, Signature{Name: m.name, Family: m.family, Offset: at})
		}
	}
	for _, probe := range []func(io.ReaderAt, int64) ([]Signature, error){probeZFS, probeFAT, probeAtari, probeLog} {
		more, err := probe(content, size)
		if found = append(found, more...); err != nil {
			return found, err
		}
	}
	slices.SortStableFunc(found, func(a, b Signature) int { return cmp.Compare(a.Offset, b.Offset) })
	return found, nil
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
				return []Signature{{Name: "ZFS", Family: Member, Offset: at + label - ring + int64(j)}}, nil
			}
		}
	}
	return nil, nil
}

// probeFAT looks for a boot sector of FAT by its numbers: the text that says so may be missing.
func probeFAT(content io.ReaderAt, size int64) ([]Signature, error) {
	b := make([]byte, 512)
	if size < int64(len(b)) {
		return nil, nil
	}
	if err := readAt(content, b, 0); err != nil {
		return nil, err
	}
	sector, reserved, tables := binary.LittleEndian.Uint16(b[11:]), binary.LittleEndian.Uint16(b[14:]), b[16]
	power := func(n int) bool { return n > 0 && n&(n-1) == 0 }
	jump := b[0] == 0xeb && b[2] == 0x90 || b[0] == 0xe9
	named := string(b[54:57]) == "FAT" || string(b[82:85]) == "FAT"
	if !jump || named || !power(int(sector)) || sector < 512 || sector > 4096 || !power(int(b[13])) || reserved == 0 ||
		tables < 1 || tables > 2 || b[21] != 0xf0 && b[21] < 0xf8 || string(b[0x1fe:]) != "\x55\xaa" {
		return nil, nil
	}
	return []Signature{{Name: "FAT", Family: FileSystem, Offset: 0}}, nil
}

// probeAtari looks for a partition of Atari's kinds that lies on the device.
func probeAtari(content io.ReaderAt, size int64) ([]Signature, error) {
	const first, entry = 0x1c6, 12
	b := make([]byte, 4*entry)
	if size < 512 {
		return nil, nil
	}
	if err := readAt(content, b, first); err != nil {
		return nil, err
	}
	for at := 0; at < len(b); at += entry {
		start, sectors := int64(binary.BigEndian.Uint32(b[at+4:])), int64(binary.BigEndian.Uint32(b[at+8:]))
		kind := string(b[at+1 : at+4])
		kinds := []string{"GEM", "BGM", "XGM", "LNX", "SWP", "RAW", "MIX", "UNX", "F32"}
		if b[at]&1 != 0 && slices.Contains(kinds, kind) && start > 0 && sectors > 0 && start+sectors <= size/512 {
			return []Signature{{Name: "Atari", Family: PartitionTable, Offset: first + int64(at)}}, nil
		}
	}
	return nil, nil
}

// probeLog looks for a record of XFS's log on a device of its own: the newest may be in any of the first sectors.
func probeLog(content io.ReaderAt, size int64) ([]Signature, error) {
	b := make([]byte, min(256<<10, size-size%512))
	if err := readAt(content, b, 0); err != nil {
		return nil, err
	}
	for at := 0; at < len(b); at += 512 {
		version, format := binary.BigEndian.Uint32(b[at+8:]), binary.BigEndian.Uint32(b[at+300:])
		switch {
		case string(b[at:at+4]) == "XFSB":
			return nil, nil // the log is within its file system
		case string(b[at:at+4]) == "\xfe\xed\xba\xbe" && (version == 1 || version == 2) && format >= 1 && format <= 3:
			return []Signature{{Name: "XFS log", Family: Member, Offset: int64(at)}}, nil
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
