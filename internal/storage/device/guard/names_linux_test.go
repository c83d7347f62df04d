package guard_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
)

// user runs a program that says that it is ready, and ends it with the test.
func user(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	needs.That(t, err == nil, name, "apt-get install "+name)
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(name, ": ", err)
	}
}

// TestNames: whoever uses the file of a loop is found by device and inode, whatever name it was opened by.
// Its rows take turns: losetup of one, while it looks for a free device, has those of the others open.
func TestNames(t *testing.T) {
	link := func(t *testing.T, file string) string {
		t.Helper()
		other := filepath.Join(filepath.Dir(file), "other name")
		if err := os.Link(file, other); err != nil {
			t.Fatal(err)
		}
		return other
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, node, file string)
		want []guard.Kind
	}{
		"hard link": {func(t *testing.T, _, file string) { devicetest.Attach(t, link(t, file)) },
			[]guard.Kind{guard.BacksLoop}},
		"bind mount": {func(t *testing.T, _, file string) {
			at := t.TempDir()
			do(t, "mount", "--bind", filepath.Dir(file), at)
			t.Cleanup(func() { do(t, "umount", "-l", at) })
			devicetest.Attach(t, filepath.Join(at, filepath.Base(file)))
		}, []guard.Kind{guard.BacksLoop}},
		"renamed": {func(t *testing.T, _, file string) {
			if err := os.Rename(file, file+".2"); err != nil {
				t.Fatal(err)
			}
			devicetest.Attach(t, file+".2")
		}, []guard.Kind{guard.BacksLoop}},
		"loop on loop": {func(t *testing.T, node, _ string) { devicetest.Attach(t, node) },
			[]guard.Kind{guard.BacksLoop}},
		"partial loop": {func(t *testing.T, _, file string) {
			devicetest.Attach(t, link(t, file), "--offset", "1048576", "--sizelimit", "1048576")
		}, []guard.Kind{guard.BacksLoop}},
		"open for writing": {func(t *testing.T, _, file string) {
			user(t, "sh", "-c", `exec 3<>"$1"; echo ready; read x`, "sh", link(t, file))
		}, []guard.Kind{guard.Open}},
		"open for reading": {func(t *testing.T, _, file string) {
			user(t, "sh", "-c", `exec 3<"$1"; echo ready; read x`, "sh", link(t, file))
		}, nil},
		"shared mapping": {func(t *testing.T, _, file string) {
			user(t, "python3", "-c", "import mmap,os,sys\nf=os.open(sys.argv[1],os.O_RDWR)\nm=mmap.mmap(f,4096)\n"+
				"os.close(f)\nprint('ready',flush=True)\nsys.stdin.read()", link(t, file))
		}, []guard.Kind{guard.Open}},
	} {
		t.Run(name, func(t *testing.T) {
			node, file := loop(t)
			c.make(t, node, file)
			var kinds []guard.Kind
			var list []guard.Objection
			settle(func() bool {
				var err error
				if _, list, err = guard.Check(t.Context(), nil, node); err != nil {
					t.Fatal(err)
				}
				kinds = nil
				for _, o := range list {
					kinds = append(kinds, o.Kind)
				}
				slices.Sort(kinds)
				kinds = slices.Compact(kinds)
				return slices.Equal(kinds, c.want)
			})
			if !slices.Equal(kinds, c.want) {
				t.Errorf("refused for %q, want %q:\n%s", kinds, c.want, strings.Join(told(list), "\n"))
			}
		})
	}
}

// TestPrograms: the programs of util-linux can only add to what we find ourselves. What only one of them knows is
// refused, what they do not say of a mark that is there changes nothing, and an answer that is not understood, or does
// not come, is not "free".
func TestPrograms(t *testing.T) {
	guard.SetPatience(t, time.Second)
	const (
		raid   = `echo '{"signatures":[{"offset":"0x40","type":"novel","usage":"raid"}]}'`
		novel  = "echo ID_FS_TYPE=novel; echo ID_FS_USAGE=filesystem"
		broken = "echo 'input/output error' >&2; exit 1"
		ext4   = "the mark of ext2/3/4 (file system) at byte 1080"
		linger = "sleep 100 & echo $! > $0.child; wait"
	)
	for name, c := range map[string]struct {
		wipefs, blkid string
		made          bool     // an ext4 file system is there
		want          []string // what is said, in its order; nil is that it is free
		hint          string
	}{
		"both say nothing":         {"true", "exit 2", false, nil, ""},
		"both say nothing of ours": {"true", "exit 2", true, []string{ext4}, "wipefs -a"},
		"wipefs alone": {raid, "exit 2", false,
			[]string{"the mark of novel (member) at byte 64, as wipefs says"}, ""},
		"blkid alone": {"true", novel, false,
			[]string{"the mark of novel (file system), as blkid says"}, ""},
		"blkid of ours another": {"true", novel, true, []string{ext4}, ""},
		"both agree": {`echo '{"signatures":[{"offset":"0x438","type":"ext4","usage":"filesystem"}]}'`,
			"echo ID_FS_TYPE=ext4; echo ID_FS_USAGE=filesystem", true, []string{ext4}, ""},
		"both another": {raid,
			"echo ID_PART_TABLE_TYPE=odd", true,
			[]string{"the mark of novel (member) at byte 64, as wipefs says", ext4,
				"a partition table: odd (partition table), as blkid says"}, ""},
		"several":           {"true", "exit 8", false, []string{"several formats"}, ""},
		"old":               {`echo "wipefs: unrecognized option '--json'" >&2; exit 1`, "exit 2", false, nil, ""},
		"noise":             {"echo noise", "exit 2", false, []string{"not understood"}, ""},
		"wipefs fails":      {broken, "exit 2", false, []string{"input/output error"}, ""},
		"blkid fails":       {"true", broken, false, []string{"input/output error"}, ""},
		"wipefs hangs":      {linger, "exit 2", false, []string{"wipefs has not ended within 1s"}, "dmesg"},
		"blkid hangs":       {"true", linger, true, []string{ext4, "blkid has not ended within 1s"}, "dmesg"},
		"wipefs is stopped": {"kill -STOP $$", "exit 2", false, []string{"wipefs has not ended within 1s"}, "dmesg"},
	} {
		t.Run(name, func(t *testing.T) {
			node, _ := loop(t)
			if c.made {
				do(t, "mkfs.ext4", "-q", "-F", node)
			}
			bin := t.TempDir()
			for program, script := range map[string]string{"wipefs": c.wipefs, "blkid": c.blkid} {
				at := filepath.Join(bin, program)
				if err := os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { // of one that hangs a child stays, as it may
					if text, err := os.ReadFile(at + ".child"); err == nil {
						do(t, "kill", strings.TrimSpace(string(text)))
					}
				})
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			began := time.Now()
			_, list, err := guard.Check(t.Context(), nil, node)
			if err != nil || time.Since(began) > time.Minute {
				t.Fatalf("%v after %v", err, time.Since(began))
			}
			said := told(list)
			ok := len(said) == len(c.want) && strings.Contains(strings.Join(said, ""), c.hint)
			for _, want := range c.want {
				ok = ok && slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) })
			}
			if !ok {
				t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
