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
			// Another process that lists the loop devices of this machine has each open for a moment.
			for until := time.Now().Add(10 * time.Second); ; {
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
				if slices.Equal(kinds, c.want) || time.Now().After(until) {
					break
				}
			}
			if !slices.Equal(kinds, c.want) {
				t.Errorf("refused for %q, want %q:\n%s", kinds, c.want, strings.Join(told(list), "\n"))
			}
		})
	}
}

// TestPrograms: what only wipefs knows is refused, and an answer that is not understood is not "free".
func TestPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		marked bool
		err    string
	}{
		"a mark": {`echo '{"signatures":[{"offset":"0x40","type":"novel","usage":"raid"}]}'`, true, ""},
		"none":   {"true", false, ""},
		"old":    {`echo "wipefs: unrecognized option '--json'" >&2; exit 1`, false, ""},
		"noise":  {"echo noise", false, "not understood"},
		"fails":  {"echo 'input/output error' >&2; exit 1", false, "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			node, _ := loop(t)
			bin := t.TempDir()
			script := []byte("#!/bin/sh\n" + c.script + "\n")
			if err := os.WriteFile(filepath.Join(bin, "wipefs"), script, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			_, list, err := guard.Check(t.Context(), nil, node)
			said := strings.Join(told(list), "\n")
			if err != nil {
				said += err.Error()
			}
			if marked := strings.Contains(said, "novel"); marked != c.marked || !strings.Contains(said, c.err) ||
				(said == "") != (!c.marked && c.err == "") {
				t.Errorf("said %q", said)
			}
		})
	}
}
