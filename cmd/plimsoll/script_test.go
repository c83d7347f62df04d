package main

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"plimsoll/internal/needs"
)

// TestMain makes the test binary be plimsoll when a script or a test calls it by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"plimsoll": main})
}

// TestScripts runs every script in testdata/script: each is a session of a user, with what must be printed and left
// behind.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			switch name {
			case "fio", "redis-server":
				// Where every test must run, a script that needs a program runs and fails without it.
				_, err := exec.LookPath(name)
				return err == nil || os.Getenv(needs.CIVariable) == "1", nil
			case "root":
				return os.Getuid() == 0, nil
			}
			return false, errors.New("unknown condition " + name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"zip":   pack,
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
