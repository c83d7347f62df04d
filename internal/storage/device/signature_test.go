package device

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const imageBytes = 8 << 20

// TestMarks: every mark of the table is found where it belongs, and nothing else is.
func TestMarks(t *testing.T) {
	for _, m := range marks {
		b := make([]byte, imageBytes)
		at := m.at
		if at < 0 {
			at += imageBytes
		}
		copy(b[at:], m.text)
		want := Signature{Name: m.name, Family: m.family, Offset: at}
		if m.check != nil {
			if found, err := Probe(bytes.NewReader(b), imageBytes); err != nil || len(found) > 0 {
				t.Errorf("%s: two bytes are enough: %v, %v", m.name, found, err)
			}
			switch m.name {
			case "ext2/3/4":
				binary.LittleEndian.PutUint32(b[0x400:], 2048)
				binary.LittleEndian.PutUint32(b[0x404:], 8192)
				binary.LittleEndian.PutUint32(b[0x420:], 8192)
			case "NILFS2":
				binary.LittleEndian.PutUint32(b[0x400:], 2)
				binary.LittleEndian.PutUint16(b[0x408:], 280)
			case "MBR":
				b[0x1be], b[0x1c2] = 0x80, 0x83
				binary.LittleEndian.PutUint32(b[0x1ca:], 2048)
			case "HFS":
				b[0x412], b[0x416], b[0x424] = 1, 2, 3
			case "minix":
				for i, n := range map[int]byte{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1} {
					b[0x400+i] = n
				}
				b[0x416], b[0x415] = 1, 1
				if m.at == 0x418 {
					b[0x400], b[0x403], b[0x40a], b[0x40b] = 0, 0, 1, 1
				}
			case "Sun disk label":
				copy(b, m.text)
			case "JMicron RAID":
				binary.LittleEndian.PutUint16(b[at+4:], -sum16(b[at:at+128]))
			case "Silicon Image RAID":
				b[at-0x60+2] = 1
				binary.LittleEndian.PutUint16(b[at-0x60+0x13e:], -sum16(b[at-0x60:at+0xe0]))
			case "VIA RAID":
				b[at+2], b[at+50] = 1, 0x55+0xaa+1-256
			}
		}
		found, err := Probe(bytes.NewReader(b), imageBytes)
		if diff := cmp.Diff([]Signature{want}, found); diff != "" || err != nil {
			t.Errorf("%s at %d: %v %s", m.name, at, err, diff)
		}
		// Of a device cut short before the mark nothing is found, and nothing is read beyond its end.
		if found, err := Probe(bytes.NewReader(b[:at]), at); m.at >= 0 && (err != nil || len(found) > 0) {
			t.Errorf("%s, cut: %v, %v", m.name, found, err)
		}
	}
}

// TestRounded: marks that stand at the end of a device's whole blocks are found where the end is none.
func TestRounded(t *testing.T) {
	const size = imageBytes + 512*7
	for at, name := range map[int64]string{imageBytes - 0x10000: "md RAID 0.90", imageBytes - 0x2000: "md RAID 1.0"} {
		b := make([]byte, size)
		copy(b[at:], "\xfc\x4e\x2b\xa9")
		found, err := Probe(bytes.NewReader(b), size)
		if diff := cmp.Diff([]Signature{{Name: name, Family: Member, Offset: at}}, found); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// TestZFS: an uberblock in any of the four labels gives it away, in both byte orders.
func TestZFS(t *testing.T) {
	const label = 256 << 10
	for i, at := range []int64{label / 2, label + label/2 + 4<<10, imageBytes - 2*label + label/2, imageBytes - 1024} {
		b := make([]byte, imageBytes)
		if i%2 == 0 {
			binary.LittleEndian.PutUint64(b[at:], 0x00bab10c)
		} else {
			binary.BigEndian.PutUint64(b[at:], 0x00bab10c)
		}
		found, err := Probe(bytes.NewReader(b), imageBytes)
		if diff := cmp.Diff([]Signature{{Name: "ZFS", Family: Member, Offset: at}}, found); diff != "" || err != nil {
			t.Errorf("label %d: %v %s", i, err, diff)
		}
	}
}

// TestOwnDataIsNoMark: what load generators leave, random bytes and patterns, locks nobody out of a device.
func TestOwnDataIsNoMark(t *testing.T) {
	random := rand.NewChaCha8([32]byte{7})
	for i := range 40 {
		b := make([]byte, imageBytes)
		if i < 36 {
			random.Read(b)
		} else {
			pattern := [][]byte{{0xde, 0xad, 0xbe, 0xef}, {0xff}, {0x55, 0xaa}, {0x53, 0xef}}[i-36]
			for n := 0; n < len(b); n += copy(b[n:], pattern) {
			}
		}
		if found, err := Probe(bytes.NewReader(b), imageBytes); err != nil || len(found) > 0 {
			t.Errorf("data %d: %v, %v", i, found, err)
		}
	}
}

// TestAsWipefsFinds compares with wipefs what real tools leave.
func TestAsWipefsFinds(t *testing.T) {
	compared := 0
	for name, make := range map[string][]string{"ext2/3/4": {"mkfs.ext4", "-q", "-F"}, "swap": {"mkswap"},
		"btrfs": {"mkfs.btrfs", "-q"}, "XFS": {"mkfs.xfs", "-q"}, "FAT": {"mkfs.vfat"}} {
		program, err := exec.LookPath(make[0])
		wipefs, missing := exec.LookPath("wipefs")
		if err != nil || missing != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "disk")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 320<<20)); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, append(make[1:], file)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", make, err, out)
		}
		out, err := exec.Command(wipefs, "--json", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		var theirs struct {
			Signatures []struct{ Offset, Type string }
		}
		if err := json.Unmarshal(out, &theirs); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		found, err := Probe(f, 320<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range theirs.Signatures {
			at, err := strconv.ParseInt(strings.TrimPrefix(s.Offset, "0x"), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			compared++
			if s.Type != "vfat" && s.Type != "dos" && !contains(found, name, at) { // FAT has several marks
				t.Errorf("%s: wipefs finds %s at %d, and we %v", name, s.Type, at, found)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s: nothing found", name)
		}
	}
	t.Logf("%d signatures compared", compared)
}

func contains(found []Signature, name string, at int64) bool {
	for _, s := range found {
		if s.Name == name && s.Offset == at {
			return true
		}
	}
	return false
}

// FuzzProbe: whatever is on a device, marks lie on it, and its end is an error at most where it is shorter than said.
func FuzzProbe(f *testing.F) {
	f.Add([]byte("LUKS\xba\xbe"), int64(4096), int64(0))
	f.Add([]byte("EFI PART"), int64(4096), int64(512))
	f.Fuzz(func(t *testing.T, text []byte, size, at int64) {
		if size < 0 || size > 4<<20 || at < 0 || at > size {
			return
		}
		b := make([]byte, size)
		copy(b[at:], text)
		found, err := Probe(bytes.NewReader(b), size)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			if s.Offset < 0 || s.Offset >= size || s.Name == "" || s.Family == "" {
				t.Errorf("%+v on %d bytes", s, size)
			}
		}
		if _, err := Probe(bytes.NewReader(b), size+1<<20); err == nil || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a device shorter than said: %v", err)
		}
	})
}

// FuzzMounts: no line of a mountinfo is taken for more than it says.
func FuzzMounts(f *testing.F) {
	f.Add("31 22 8:1 / /srv/my\\040data rw,noatime shared:1 - xfs /dev/sda1 rw,attr2\n")
	f.Add("1 2 - - - - -\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseMounts(text) {
			if m.Device == "" || m.FSType == "" || len(m.Options) == 0 {
				t.Errorf("%q: %+v", text, m)
			}
		}
	})
}
