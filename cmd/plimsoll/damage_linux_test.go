package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
)

var fiveOrMore = regexp.MustCompile(`corruption_errs +([5-9]|1[0-9])\b`)

// TestCopiesDamagedUnderneath shows what checksums in a file system are for. One copy of stamped blocks is damaged
// below the file system: by zeros, by chance, and by a block that belongs elsewhere. Btrfs with two copies (RAID 1)
// gives the right data all the same, counts what it found, and repairs it; ext4 gives wrong data without an error, and
// integrity verify names every address.
func TestCopiesDamagedUnderneath(t *testing.T) {
	t.Parallel()
	mkfs, err := exec.LookPath("mkfs.btrfs")
	needs.That(t, err == nil && os.Geteuid() == 0, "btrfs on loop devices",
		"apt-get install btrfs-progs, and run as root")

	t.Run("btrfs RAID 1", func(t *testing.T) {
		b := newBed(t, 2)
		b.attach()
		b.do(mkfs, "-q", "-d", "raid1", "-m", "raid1", b.loops[0], b.loops[1])
		b.mount("-t", "btrfs", "-o", "device="+b.loops[0]+",device="+b.loops[1])
		b.write()
		damages := b.damage()
		b.attach()
		b.mount("-t", "btrfs", "-o", "device="+b.loops[0]+",device="+b.loops[1])
		if got := b.verify(0); len(got) > 0 {
			t.Errorf("with a sound copy left, verify finds %+v", got)
		}
		// What the reads did not come across is found by a scrub, and nothing is left for a second one.
		b.do("btrfs", "scrub", "start", "-B", b.mnt)
		stats := b.do("btrfs", "device", "stats", b.mnt)
		if !fiveOrMore.MatchString(stats) { // it counts a block again that two reads come across at once
			t.Errorf("5 blocks are damaged, and btrfs counted:\n%s", stats)
		}
		if again := b.do("btrfs", "scrub", "start", "-B", "-R", b.mnt); !strings.Contains(again, "csum_errors: 0") {
			t.Errorf("a second scrub finds:\n%s", again)
		}
		b.detach()
		image := b.image()
		for _, d := range damages {
			if !bytes.Equal(image[d.at:d.at+blockBytes], d.was) {
				t.Errorf("the copy of byte %d was not repaired", d.From)
			}
		}
	})

	t.Run("ext4", func(t *testing.T) {
		b := newBed(t, 1)
		b.attach()
		b.do("mkfs.ext4", "-q", b.loops[0])
		b.mount("-t", "ext4")
		b.write()
		damages := b.damage()
		b.attach()
		b.mount("-t", "ext4")
		if _, err := os.ReadFile(filepath.Join(b.mnt, "stamped")); err != nil {
			t.Errorf("ext4 was to give wrong data without an error: %v", err)
		}
		var want []named
		for _, d := range damages {
			want = append(want, d.named)
		}
		if diff := cmp.Diff(want, b.verify(5)); diff != "" {
			t.Errorf("damage done (-) and found (+):\n%s", diff)
		}
	})
}

const blockBytes = 4096

// named is damage as integrity verify names it.
type named struct {
	Kind string `json:"kind"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
}

// done is damage as it was done to an image.
type done struct {
	named
	at  int64 // in the image
	was []byte
}

// bed is a file system on loop devices whose images lie in a folder of the test.
type bed struct {
	t             *testing.T
	s             session
	mnt, kept     string
	images, loops []string
	run           string
	mounted       bool
}

func newBed(t *testing.T, disks int) *bed {
	t.Helper()
	dir := t.TempDir()
	b := &bed{t: t, s: session{t: t, runs: filepath.Join(dir, "runs")}, mnt: filepath.Join(dir, "mnt"),
		kept: filepath.Join(dir, "kept")}
	for i := range disks {
		image := filepath.Join(dir, string(rune('a'+i))+".img")
		if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 300<<20)); err != nil {
			t.Fatal(err)
		}
		b.images = append(b.images, image)
	}
	if err := os.Mkdir(b.mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.detach)
	return b
}

func (b *bed) do(name string, args ...string) string {
	b.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (b *bed) attach() {
	b.t.Helper()
	for _, image := range b.images {
		b.loops = append(b.loops, strings.TrimSpace(b.do("losetup", "--find", "--show", image)))
	}
}

func (b *bed) mount(options ...string) {
	b.t.Helper()
	b.do("mount", append(options, b.loops[0], b.mnt)...)
	b.mounted = true
}

// detach takes everything down, so that nothing of the images is kept in memory.
func (b *bed) detach() {
	if b.mounted {
		b.do("umount", b.mnt)
		b.mounted = false
	}
	for _, loop := range b.loops {
		b.do("losetup", "--detach", loop)
	}
	b.loops = nil
	// Another test that made a namespace of its own meanwhile has the mount in it until that ends.
	for _, image := range b.images {
		for late := time.Now().Add(time.Minute); b.do("losetup", "--associated", image) != ""; {
			if time.Now().After(late) {
				b.t.Fatalf("%s is still attached: %s", image, b.do("losetup", "--associated", image))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (b *bed) write() {
	b.t.Helper()
	var doc struct {
		Run string `json:"run"`
	}
	out := b.s.must("integrity", "write", filepath.Join(b.mnt, "stamped"), "--size", "32MiB", "--manifest", b.kept,
		"--json")
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		b.t.Fatal(err)
	}
	b.run = doc.Run
}

func (b *bed) image() []byte {
	b.t.Helper()
	image, err := os.ReadFile(b.images[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return image
}

// damage takes the file system down and damages five blocks of the first image.
func (b *bed) damage() []done {
	b.t.Helper()
	b.detach()
	image := b.image()
	run, err := hex.DecodeString(b.run)
	if err != nil {
		b.t.Fatal(err)
	}
	slices.Reverse(run) // stamps are little-endian
	var all []done      // every block that could be damaged
	for at := int64(0); at+blockBytes <= int64(len(image)); at += blockBytes {
		if b := image[at : at+blockBytes]; string(b[:4]) == "PLS1" && bytes.Equal(b[8:16], run) {
			from := int64(binary.LittleEndian.Uint64(b[16:]))
			all = append(all, done{named{From: from, To: from + blockBytes}, at, bytes.Clone(b)})
		}
	}
	if len(all) < 8192 {
		b.t.Fatalf("the image has %d blocks of the file", len(all))
	}
	f, err := os.OpenFile(b.images[0], os.O_WRONLY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	random := make([]byte, blockBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	var out []done
	for i, now := range [][]byte{make([]byte, blockBytes), make([]byte, blockBytes), random, random, all[4000].was} {
		d := all[1000*i+10]
		d.Kind = [...]string{"zeroed", "zeroed", "corrupt", "corrupt", "misdirected"}[i]
		if _, err := f.WriteAt(now, d.at); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, d)
	}
	if err := f.Sync(); err != nil {
		b.t.Fatal(err)
	}
	slices.SortFunc(out, func(x, y done) int { return int(x.From - y.From) })
	return out
}

// verify gives the damage that is found, and demands an exit code.
func (b *bed) verify(code int) []named {
	b.t.Helper()
	cmd := b.s.command(b.t.Context(), "integrity", "verify", filepath.Join(b.mnt, "stamped"), "--manifest", b.kept,
		"--json")
	out, err := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.t.Errorf("exit code %d, want %d, %v", got, code, err)
	}
	var doc struct {
		Damages []named `json:"damages"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return doc.Damages
}

// TestDataOnADevice: a block device is written with its consent only, and read without.
func TestDataOnADevice(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("losetup")
	needs.That(t, err == nil && os.Geteuid() == 0, "loop devices", "apt-get install mount, and run as root")
	b := newBed(t, 1)
	b.attach()
	node := b.loops[0]
	var doc struct {
		Identity struct {
			Phrase string `json:"consent_phrase"`
		} `json:"identity"`
	}
	if err := json.Unmarshal([]byte(b.s.must("device", "check", node, "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	phrase := doc.Identity.Phrase
	for _, args := range [][]string{{"content", "write", node}, {"content", "write", node, "--consent", "yes"},
		{"integrity", "write", node, "--manifest", b.kept, "--same-device"}} {
		cmd := b.s.command(t.Context(), args...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 4 || !bytes.Contains(out, []byte(phrase)) {
			t.Errorf("%v: exit code %d\n%s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
	b.s.must("content", "write", node, "--size", "16MiB", "--compressibility", "40", "--consent", phrase)
	b.s.must("content", "write", node, "--compressibility", "40", "--consent", phrase) // ours is no foreign mark
	b.s.must("content", "check", node, "--expect-compressibility", "40", "--sample", "32MiB")
	b.s.must("integrity", "write", node, "--manifest", b.kept, "--same-device", "--consent", phrase)
	if out := b.s.must("integrity", "verify", node, "--manifest", b.kept); !strings.Contains(out, "intact: 76,800\n") {
		t.Errorf("of 300 MiB:\n%s", out)
	}
}
