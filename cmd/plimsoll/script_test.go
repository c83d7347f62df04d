package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"plimsoll/internal/testkit/needs"
	"plimsoll/unit"
)

// TestMain makes the test binary be plimsoll when a script or a test calls it by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"plimsoll": main})
}

// TestScripts runs every script in testdata/script: each is a session of a user, with what must be printed and left
// behind.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			switch name {
			case "fio", "pgbench", "redis-server":
				// Where every test must run, a script that needs a program runs and fails without it.
				_, err := exec.LookPath(name)
				return err == nil || os.Getenv(needs.CIVariable) == "1", nil
			case "loop": // likewise
				_, err := exec.LookPath("losetup")
				return os.Getuid() == 0 && (err == nil || os.Getenv(needs.CIVariable) == "1"), nil
			case "lab": // likewise
				_, err := exec.LookPath("ipmi_sim")
				return os.Getuid() == 0 && (err == nil || os.Getenv(needs.CIVariable) == "1"), nil
			case "root":
				return os.Getuid() == 0, nil
			}
			return false, errors.New("unknown condition " + name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"folder": folder,
			"loop":   loop,
			"zip":    pack,
		},
	})
}

// exits runs a command and demands its exit code: exits N COMMAND ARGUMENTS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND ARGUMENTS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// loop makes a loop device on a new file: loop NAME FILE BYTES. The variable NAME is its node, NAME_consent the consent
// to overwrite it.
func loop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: loop NAME FILE BYTES")
	}
	file := ts.MkAbs(args[1])
	size, err := unit.ParseBytes(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(file, nil, 0o600))
	ts.Check(os.Truncate(file, int64(size)))
	out, err := exec.Command("losetup", "--find", "--show", file).Output()
	ts.Check(err)
	node := strings.TrimSpace(string(out))
	ts.Defer(func() { ts.Check(exec.Command("losetup", "-d", node).Run()) })
	info, err := os.Stat(file)
	ts.Check(err)
	ts.Setenv(args[0], node)
	ts.Setenv(args[0]+"_consent", fmt.Sprintf("loop %s inode %d", file, info.Sys().(*syscall.Stat_t).Ino))
}

// folder names a folder that is not there, with a short name as labs need: folder NAME. A lab that a failed script has
// left there is taken down.
func folder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: folder NAME")
	}
	dir, err := os.MkdirTemp("", "lab")
	ts.Check(err)
	inner := filepath.Join(dir, "l")
	ts.Setenv(args[0], inner)
	ts.Defer(func() {
		if _, err := os.Stat(inner); err == nil {
			ts.Check(ts.Exec("plimsoll", "lab", "down", "--dir", inner))
		}
		ts.Check(os.Remove(dir))
	})
}

// pack makes a zip of a folder: zip FILE FOLDER.
func pack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: zip FILE FOLDER")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	z := zip.NewWriter(f)
	ts.Check(z.AddFS(os.DirFS(filepath.Clean(ts.MkAbs(args[1])))))
	ts.Check(errors.Join(z.Close(), f.Close()))
}
