package local

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/targettest"
)

func TestMain(m *testing.M) {
	if os.Getenv(controllerVariable) != "" {
		controller()
	}
	if os.Getenv(rawVariable) != "" {
		rawController()
	}
	if name := os.Getenv(deedVariable); name != "" {
		deed(name)
	}
	goleak.VerifyTestMain(m)
}

// factory gives the suite places in folders of their own, with the option cgroups set to its argument.
func factory(cgroups string) targettest.Factory {
	return func(t testing.TB) targettest.Place {
		if testing.Short() {
			t.Skip("machines are made and powered: make test runs it")
		}
		dir := t.TempDir()
		id := strconv.FormatInt(time.Now().UnixNano(), 36)
		return targettest.Place{
			New: func() target.Target {
				p, err := Provider{}.New(target.Config{Nodes: 3, Options: target.Options{"dir": dir, "cgroups": cgroups,
					"reserve": "1MiB"}})
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Request:       target.Request{RunID: id, StateDir: filepath.Join(dir, "run", "state"), Log: t.Logf},
			OtherStateDir: filepath.Join(dir, "other", "state"),
			Clock:         clock.Real{},
			Commands:      targettest.Shell,
			Alive:         func(word string) int { return len(running("cmdline", word)) },
			Remains:       func() []string { return remains(filepath.Join(dir, "run")) },
			Shares:        true,
		}
	}
}

func TestConformance(t *testing.T)              { targettest.Run(t, factory("auto")) }
func TestConformanceWithoutGroups(t *testing.T) { targettest.Run(t, factory("off")) }
func BenchmarkConformance(b *testing.B)         { targettest.Benchmark(b, factory("auto")) }

// Disks that are dealt out over several folders are as good as those of one, and nothing remains in any.
func TestConformanceOfFolders(t *testing.T) {
	targettest.Run(t, func(t testing.TB) targettest.Place {
		place := factory("off")(t)
		dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		place.New = func() target.Target {
			p, err := Provider{}.New(target.Config{Nodes: 3, Options: target.Options{"dir": strings.Join(dirs, ":"),
				"cgroups": "off", "reserve": "1MiB"}})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		inRun := place.Remains
		place.Remains = func() (left []string) {
			for _, dir := range dirs {
				left = append(left, remains(dir)...)
			}
			return append(left, inRun()...)
		}
		return place
	})
}

// running lists the live processes whose file of that name in /proc holds a text. It shares no code with the package.
func running(file, text string) (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		data, err := os.ReadFile(filepath.Join(d, file))
		if err == nil && bytes.Contains(data, []byte(text)) && filepath.Base(d) != strconv.Itoa(os.Getpid()) {
			found = append(found, filepath.Base(d))
		}
	}
	return found
}

// remains lists files below a run folder but for its empty state folder, processes that work there, and control
// groups of runs, in every hierarchy, that have this run's name.
func remains(run string) (left []string) {
	_ = filepath.WalkDir(run, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p != run && p != filepath.Join(run, "state") {
			left = append(left, p)
		}
		return nil
	})
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		environment, err := os.ReadFile(filepath.Join(d, "environ"))
		if err == nil && bytes.Contains(environment, []byte("HOME="+run+"/")) {
			left = append(left, fmt.Sprintf("process %s in %s", filepath.Base(d), run))
		}
	}
	slices.Sort(left)
	return left
}
