package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/storage/device"
	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

const loopBytes = 16 << 20

func loop(t *testing.T, flags ...string) (node, file string) {
	t.Helper()
	return devicetest.Loop(t, loopBytes, flags...)
}

func do(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func put(t *testing.T, node string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(node, os.O_WRONLY|unix.O_SYNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(text), at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// addPartition has the kernel know a partition of a loop that was attached with --partscan.
func addPartition(t *testing.T, node string, number, start, size int) string {
	t.Helper()
	do(t, "addpart", node, strconv.Itoa(number), strconv.Itoa(start), strconv.Itoa(size))
	// It is busy while somebody else looks at it, as blkid and losetup do at all there are, and while another process
	// has its mount in a namespace of its own.
	t.Cleanup(func() {
		for until := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			out, err := exec.Command("delpart", node, strconv.Itoa(number)).CombinedOutput()
			if err == nil {
				return
			}
			if time.Now().After(until) {
				t.Errorf("delpart %s %d: %v\n%s", node, number, err, out)
				return
			}
		}
	})
	return node + "p" + strconv.Itoa(number)
}

// settle looks until what is seen is as it shall be, for a while: another process that lists the loop devices of this
// machine, as losetup does for a free one, has each open for a moment.
func settle(as func() bool) {
	for until := time.Now().Add(10 * time.Second); !as() && time.Now().Before(until); {
	}
}

// told are objections by their kind and what they are about, with the names of this moment replaced.
func told(list []guard.Objection, names ...string) (lines []string) {
	replace := strings.NewReplacer(names...)
	for _, o := range list {
		lines = append(lines, replace.Replace(fmt.Sprintf("%s: %s", o.Kind, o)))
	}
	return lines
}

// TestRefusals is the matrix: each thing that stands against writing, made for real, is said with its own message, by
// Check and by Take with the right consent.
func TestRefusals(t *testing.T) {
	const wipe = ": if nothing on it is needed, wipe it by hand: wipefs -a "
	for name, c := range map[string]struct {
		flags []string
		make  func(t *testing.T, node, file string) (path string, names []string)
		want  []string
	}{
		"nothing": {nil, func(_ *testing.T, node, _ string) (string, []string) { return node, nil }, nil},
		"partition table": {nil, func(t *testing.T, node, _ string) (string, []string) {
			put(t, node, 512, "EFI PART")
			return node, nil
		}, []string{"partitioned: DISK: has a partition table: GPT (partition table) at byte 512" + wipe + "DISK"}},
		"kernel's partitions": {[]string{"--partscan"}, func(t *testing.T, node, _ string) (string, []string) {
			addPartition(t, node, 1, 2048, 2048)
			return node, nil
		}, []string{"partitioned: DISK: is partitioned: NAMEp1: give one of them, or remove the table by hand: " +
			"wipefs -a DISK"}},
		"mounted": {nil, func(t *testing.T, node, _ string) (string, []string) {
			do(t, "mkfs.ext4", "-q", "-F", node)
			at := mount(t, node)
			return node, []string{at, "AT"}
		}, []string{
			"mounted: DISK: is mounted on AT (ext4): umount AT",
			"signature: DISK: bears the mark of ext2/3/4 (file system) at byte 1080" + wipe + "DISK",
			"busy: DISK: somebody holds it exclusively, as mounts, arrays and volumes do: lsblk, fuser -v and cat " +
				"/proc/mdstat tell who",
		}},
		"mounted in another namespace": {nil, func(t *testing.T, node, _ string) (string, []string) {
			do(t, "mkfs.ext4", "-q", "-F", node)
			at := t.TempDir()
			pid := elsewhere(t, "mount "+node+" "+at)
			return node, []string{at, "AT", "process " + pid, "process PID"}
		}, []string{
			"mounted: DISK: is mounted on AT (ext4) in the mount namespace of process PID (sh): umount AT in the mount " +
				"namespace of process PID (sh)",
			"signature: DISK: bears the mark of ext2/3/4 (file system) at byte 1080" + wipe + "DISK",
			"busy: DISK: somebody holds it exclusively, as mounts, arrays and volumes do: lsblk, fuser -v and cat " +
				"/proc/mdstat tell who",
		}},
		"a partition mounted": {[]string{"--partscan"}, func(t *testing.T, node, _ string) (string, []string) {
			part := addPartition(t, node, 1, 2048, 16384)
			do(t, "mkfs.ext4", "-q", "-F", part)
			return node, []string{mount(t, part), "AT"}
		}, []string{
			"partitioned: DISK: is partitioned: NAMEp1: give one of them, or remove the table by hand: wipefs -a DISK",
			"mounted: DISKp1: is mounted on AT (ext4): umount AT",
			"signature: DISKp1: bears the mark of ext2/3/4 (file system) at byte 1080" + wipe + "DISKp1",
			"busy: DISK: somebody holds it exclusively, as mounts, arrays and volumes do: lsblk, fuser -v and cat " +
				"/proc/mdstat tell who",
		}},
		"another partition mounted": {[]string{"--partscan"}, func(t *testing.T, node, _ string) (string, []string) {
			part := addPartition(t, node, 1, 2048, 16384)
			do(t, "mkfs.ext4", "-q", "-F", part)
			return addPartition(t, node, 2, 20480, 2048), []string{mount(t, part), "AT"}
		}, []string{"sibling in use: DISKp1: another partition of its disk, is mounted on AT: umount AT, or take a disk " +
			"of its own"}},
		"another partition is swap": {[]string{"--partscan"}, func(t *testing.T, node, _ string) (string, []string) {
			part := addPartition(t, node, 1, 2048, 16384)
			do(t, "mkswap", part)
			do(t, "swapon", part)
			t.Cleanup(func() { do(t, "swapoff", part) })
			return addPartition(t, node, 2, 20480, 2048), nil
		}, []string{"sibling in use: DISKp1: another partition of its disk, is swap space in use: swapoff DISKp1"}},
		"mark on its disk": {[]string{"--partscan"}, func(t *testing.T, node, _ string) (string, []string) {
			put(t, node, 0, "LUKS\xba\xbe")
			return addPartition(t, node, 1, 2048, 2048), nil
		}, []string{"signature: DISK: the disk itself bears the mark of LUKS (member) at byte 0: look at what it is " +
			"(wipefs DISK)"}},
		"swap": {nil, func(t *testing.T, node, _ string) (string, []string) {
			do(t, "mkswap", node)
			do(t, "swapon", node)
			t.Cleanup(func() { do(t, "swapoff", node) })
			return node, nil
		}, []string{
			"swap: DISK: is swap space in use: swapoff DISK",
			"signature: DISK: bears the mark of swap (swap) at byte 4086" + wipe + "DISK",
			"busy: DISK: somebody holds it exclusively, as mounts, arrays and volumes do: lsblk, fuser -v and cat " +
				"/proc/mdstat tell who",
		}},
		"read-only": {[]string{"--read-only"}, func(_ *testing.T, node, _ string) (string, []string) {
			return node, nil
		}, []string{"read-only: DISK: is read-only: make it writable (blockdev --setrw, losetup without -r, the switch of " +
			"the card)"}},
		"its file belongs to another loop": {nil, func(t *testing.T, node, file string) (string, []string) {
			return node, []string{devicetest.Attach(t, file), "OTHER"}
		}, []string{"behind a loop device: DISK: its file FILE is also that of OTHER: losetup -d OTHER"}},
		"a loop lies on it": {nil, func(t *testing.T, node, _ string) (string, []string) {
			return node, []string{devicetest.Attach(t, node), "OTHER"}
		}, []string{
			"behind a loop device: DISK: OTHER is made of it: losetup -d OTHER",
		}},
		"held exclusively": {nil, func(t *testing.T, node, _ string) (string, []string) {
			f, err := os.OpenFile(node, os.O_RDONLY|unix.O_EXCL, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return node, nil
		}, []string{"busy: DISK: somebody holds it exclusively, as mounts, arrays and volumes do: lsblk, fuser -v and cat " +
			"/proc/mdstat tell who"}},
		"locked": {nil, func(t *testing.T, node, _ string) (string, []string) {
			f, err := os.Open(node)
			if err == nil {
				err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return node, nil
		}, []string{"busy: DISK: somebody has locked it (flock): lslocks tells who"}},
		"open for writing": {nil, func(t *testing.T, node, _ string) (string, []string) {
			return node, []string{"process " + elsewhere(t, "exec 5<>"+node), "process PID"}
		}, []string{"open for writing: DISK: process PID (sh) has it open for writing: end it first"}},
		"the run's folder lies on it": {nil, func(t *testing.T, node, _ string) (string, []string) {
			do(t, "mkfs.ext4", "-q", "-F", node)
			at := mount(t, node)
			return node, []string{"keep", at, at, "AT"}
		}, []string{
			"system: DISK: AT lies on it: take another device",
			"mounted: DISK: is mounted on AT (ext4): umount AT",
			"signature: DISK: bears the mark of ext2/3/4 (file system) at byte 1080" + wipe + "DISK",
			"busy: DISK: somebody holds it exclusively, as mounts, arrays and volumes do: lsblk, fuser -v and cat " +
				"/proc/mdstat tell who",
		}},
		"a folder": {nil, func(_ *testing.T, _, file string) (string, []string) {
			return filepath.Dir(file), []string{filepath.Dir(file), "DIR"}
		}, []string{"no block device: DIR: is a file or folder on UNDER, not a block device: give a device's node, like " +
			"/dev/sdb or a link in /dev/disk/by-id"}},
		"a character device": {nil, func(_ *testing.T, _, _ string) (string, []string) { return "/dev/null", nil },
			[]string{"no block device: /dev/null: is a character device, not a block device: give the block device: " +
				"give a device's node, like /dev/sdb or a link in /dev/disk/by-id"}},
		"nothing there": {nil, func(_ *testing.T, _, _ string) (string, []string) { return "/dev/nothing-there", nil },
			[]string{"gone: /dev/nothing-there: no such file or directory: give a device's node, like /dev/sdb or a " +
				"link in /dev/disk/by-id"}},
	} {
		t.Run(name, func(t *testing.T) {
			node, file := loop(t, c.flags...)
			path, names := c.make(t, node, file)
			var keep []string
			if len(names) > 0 && names[0] == "keep" {
				keep, names = names[1:2], names[2:]
			}
			if p, err := device.Find(os.DirFS("/"), filepath.Dir(file)); err == nil {
				names = append(names, "on "+p.Device+",", "on UNDER,")
			}
			names = append(names, file, "FILE", node, "DISK", filepath.Base(node), "NAME")
			var d device.Device
			var list []guard.Objection
			var got []string
			settle(func() bool {
				var err error
				if d, list, err = guard.Check(t.Context(), nil, path, keep...); err != nil {
					t.Fatal(err)
				}
				got = told(list, names...)
				return !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "(losetup)") })
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("check: %s", diff)
			}
			var claim *guard.Claim
			var err error
			settle(func() bool {
				claim, err = guard.ForWriting(t.Context(), nil, path, d.Identity.Phrase, keep...)
				return err == nil || !strings.Contains(err.Error(), "(losetup)")
			})
			if len(c.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				if err := claim.Release(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("taken all the same")
			}
			for _, o := range list {
				if !guard.Has(err, o.Kind) {
					t.Errorf("take does not say %s: %v", o.Kind, err)
				}
			}
		})
	}
}

// mount mounts a device, until the test ends.
func mount(t *testing.T, node string) string {
	t.Helper()
	at := t.TempDir()
	do(t, "mount", node, at)
	t.Cleanup(func() { do(t, "umount", at) })
	return at
}

// elsewhere has a shell with mounts of its own do something and stay, and returns its process id.
func elsewhere(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script+" && echo done && read stay")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // read saw the end of its input
	})
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}

// TestConsent: only the phrase of this very device will do, and a link that has come to lead to another device is seen
// by it.
func TestConsent(t *testing.T) {
	node, file := loop(t)
	other, _ := loop(t)
	link := filepath.Join(t.TempDir(), "by-id")
	if err := os.Symlink(node, link); err != nil {
		t.Fatal(err)
	}
	d, list, err := guard.Check(t.Context(), nil, link)
	if err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	if want := fmt.Sprintf("loop %s inode %d", file, d.BackingInode); d.Identity.Phrase != want ||
		d.Identity.By != "backing file" {
		t.Fatalf("%+v, want %s", d.Identity, want)
	}
	for typed, kind := range map[string]guard.Kind{"": guard.NoConsent, "yes": guard.OtherDevice,
		d.Identity.Phrase + "1": guard.OtherDevice, strings.ToUpper(d.Identity.Phrase): guard.OtherDevice} {
		if _, err := guard.ForWriting(t.Context(), nil, link, typed); !guard.Has(err, kind) {
			t.Errorf("%q: %v", typed, err)
		}
	}
	claim, err := guard.ForWriting(t.Context(), nil, link, "  "+strings.ReplaceAll(d.Identity.Phrase, " ", "  "))
	if err != nil {
		t.Fatal(err)
	}
	if claim.Path() != node || claim.Device().Name != filepath.Base(node) {
		t.Errorf("%s, %s", claim.Path(), claim.Device().Name)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	if err := claim.Recheck(t.Context()); err != nil {
		t.Errorf("a link that changes after the claim: %v", err)
	}
	if err := claim.Release(); err != nil {
		t.Error(err)
	}
	if err := claim.Release(); err != nil {
		t.Errorf("again: %v", err)
	}
	_, err = guard.ForWriting(t.Context(), nil, link, d.Identity.Phrase)
	if !guard.Has(err, guard.OtherDevice) {
		t.Errorf("a link that changed before the claim: %v", err)
	}
}

// TestRecheck: what changes after the claim is seen before the write.
func TestRecheck(t *testing.T) {
	take := func(t *testing.T) (c *guard.Claim, node, file string) {
		node, file = loop(t)
		d, _, err := guard.Check(t.Context(), nil, node)
		if err == nil {
			c, err = guard.ForWriting(t.Context(), nil, node, d.Identity.Phrase)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Release() })
		if err := c.Recheck(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c, node, file
	}
	t.Run("nothing can be mounted", func(t *testing.T) {
		c, node, _ := take(t)
		out, err := exec.Command("mkfs.ext4", "-q", "-F", node).CombinedOutput()
		if err == nil {
			t.Errorf("a file system was made on a claimed device: %s", out)
		}
		if _, err := guard.ForWriting(t.Context(), nil, node, c.Device().Identity.Phrase); !guard.Has(err, guard.Busy) {
			t.Errorf("claimed twice: %v", err)
		}
	})
	t.Run("shrunk", func(t *testing.T) {
		c, node, file := take(t)
		if err := os.Truncate(file, loopBytes/2); err != nil {
			t.Fatal(err)
		}
		do(t, "losetup", "--set-capacity", node)
		if err := c.Recheck(t.Context()); !guard.Has(err, guard.Changed) || !strings.Contains(err.Error(),
			fmt.Sprintf("its size in bytes was %d when it was claimed, and is %d", loopBytes, loopBytes/2)) {
			t.Error(err)
		}
	})
	t.Run("file replaced", func(t *testing.T) {
		c, _, file := take(t)
		if err := os.Rename(file, file+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, loopBytes), 0o600); err != nil {
			t.Fatal(err)
		}
		// The loop has the file that was there, and the kernel tells its name of now.
		err := c.Recheck(t.Context())
		if !guard.Has(err, guard.Changed) || !strings.Contains(err.Error(), "its identity was") {
			t.Error(err)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		c, node, _ := take(t)
		do(t, "blockdev", "--setro", node)
		t.Cleanup(func() { do(t, "blockdev", "--setrw", node) })
		if err := c.Recheck(t.Context()); !guard.Has(err, guard.ReadOnly) {
			t.Error(err)
		}
	})
	t.Run("a loop on it", func(t *testing.T) {
		c, node, _ := take(t)
		devicetest.Attach(t, node)
		if err := c.Recheck(t.Context()); !guard.Has(err, guard.BacksLoop) {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		c, _, _ := take(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Recheck(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// gone is a machine from which a device has vanished.
type gone struct {
	fs.FS
	name string
	now  *bool
}

func (g gone) hides(name string) bool { return *g.now && strings.Contains(name, g.name) }

func (g gone) Open(name string) (fs.File, error) {
	if g.hides(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return g.FS.Open(name)
}

func (g gone) Stat(name string) (fs.FileInfo, error) {
	if g.hides(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return fs.Stat(g.FS, name)
}

func (g gone) ReadLink(name string) (string, error)       { return fs.ReadLink(g.FS, name) }
func (g gone) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(g.FS, name) }
func (g gone) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(g.FS, name) }

// TestGone: a device that vanishes while it is claimed.
func TestGone(t *testing.T) {
	node, _ := loop(t)
	now := false
	system := gone{os.DirFS("/"), filepath.Base(node), &now}
	d, _, err := guard.Check(t.Context(), system, node)
	if err != nil {
		t.Fatal(err)
	}
	c, err := guard.ForWriting(t.Context(), system, node, d.Identity.Phrase)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	now = true
	if err := c.Recheck(t.Context()); !guard.Has(err, guard.Gone) {
		t.Error(err)
	}
}

// TestOpenRead: a device in use can be read from, and not written to.
func TestOpenRead(t *testing.T) {
	node, _ := loop(t)
	do(t, "mkfs.ext4", "-q", "-F", node)
	mount(t, node)
	c, err := guard.OpenRead(t.Context(), nil, node)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	b := make([]byte, 512)
	if _, err := c.File().ReadAt(b, 0); err != nil {
		t.Error(err)
	}
	if _, err := c.File().WriteAt(b, 0); err == nil {
		t.Error("written to a device that was opened for reading")
	}
	if _, err := guard.OpenRead(t.Context(), nil, t.TempDir()); !guard.Has(err, guard.NotBlock) {
		t.Error(err)
	}
}

// An error counts what it does not list.
func TestRefusalOfManyMounts(t *testing.T) {
	t.Parallel()
	r := &guard.Refusal{Path: "/dev/sdb", Objections: []guard.Objection{{Kind: guard.System, About: "/dev/sdb"}}}
	for range 40 {
		r.Objections = append(r.Objections,
			guard.Objection{Kind: guard.Mounted, About: "/dev/sdb", Text: "is mounted"})
	}
	text := r.Error()
	n := strings.Count(text, "\n") + 1
	if n != 7 || !strings.HasSuffix(text, "\ndevice guard: and 35 more mounts of it") {
		t.Errorf("%d lines: %s", n, text)
	}
}
