package mutants

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

var (
	enabled = flag.Bool("mutants", false, "try mutants: long")
	only    = flag.String("only", "", "packages to try, by commas, as in the table; empty for all of them")
	sample  = flag.Int("sample", 0, "mutants to try per package; 0 for as many as the table says")
	all     = flag.Bool("all", false, "try every mutant: hours")
	seed    = flag.Int("seed", 1, "which mutants are drawn")
)

// least is the share of mutants that tests are to notice, those with an explanation counted as unnoticed.
const least = 0.85

// tried are the packages, each with how many mutants are drawn by default and with the packages whose tests are
// asked too when its own notice nothing. Those that run long come first and are drawn less: they run beside the others.
var tried = []struct {
	dir        string
	sample     int
	long       string // tests of its own, by a regular expression, that are asked only when its others notice nothing
	neighbours []string
}{
	{"internal/run", 12, "^(TestCorpusRuns|TestStoppedInEveryStep|TestProcessKilledInEveryStep|TestSameBytes)$", nil},
	{"internal/workloads/fio", 12, "", nil},
	{"internal/targets/local", 12, "", nil},
	{"result", 25, "", []string{"internal/metrics/collect"}},
	{"internal/metrics/collect", 25, "", nil},
	{"internal/metrics/record", 12, "", []string{"internal/metrics/collect"}},
	{"internal/metrics/tally", 12, "", []string{"internal/metrics/collect"}},
	{"internal/run/step", 25, "", []string{"internal/targets/sim"}},
	{"internal/workloads/fio/fiofile", 25, "", []string{"internal/workloads/fio"}},
	{"hist", 25, "", []string{"internal/metrics/collect"}},
	{"internal/kit/regular", 25, "", []string{"result"}},
	{"internal/kit/secret", 25, "", []string{"internal/contract/target"}},
}

func TestMutants(t *testing.T) {
	if !*enabled {
		t.Skip("long: make mutants")
	}
	explained := readExplained(t)
	var mu sync.Mutex
	total := tally{}
	t.Run("in", func(t *testing.T) {
		for _, p := range tried {
			if *only != "" && !slices.Contains(strings.Split(*only, ","), p.dir) {
				continue
			}
			t.Run(p.dir, func(t *testing.T) {
				t.Parallel()
				n := p.sample
				if *sample > 0 {
					n = *sample
				}
				scratch, err := os.MkdirTemp("", "m")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(scratch) })
				w := workshop{dir: p.dir, scratch: scratch}
				got := w.try(t, n, suitesOf(p.dir, p.long, p.neighbours), explained)
				t.Logf("%s: %s", p.dir, got)
				mu.Lock()
				defer mu.Unlock()
				total.noticed += got.noticed
				total.explained += got.explained
				total.unnoticed += got.unnoticed
			})
		}
	})
	t.Logf("all of it with seed %d: %s", *seed, total)
	if share := total.share(); share < least {
		t.Errorf("%.0f %% of the mutants were noticed, and %.0f %% are to be", 100*share, 100*least)
	}
}

type tally struct{ noticed, explained, unnoticed int }

func (t tally) share() float64 {
	return float64(t.noticed) / float64(t.noticed+t.explained+t.unnoticed)
}

func (t tally) String() string {
	return fmt.Sprintf("noticed %d of %d (%.0f %%), explained %d, unnoticed %d",
		t.noticed, t.noticed+t.explained+t.unnoticed, 100*t.share(), t.explained, t.unnoticed)
}

// mutantsOf lists the mutants of a package's files that this machine compiles.
func mutantsOf(t *testing.T, dir string) []Mutant {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=GoFiles", "./"+dir)
	cmd.Dir = needs.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list ./%s: %v", dir, err)
	}
	var listed struct{ GoFiles []string }
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatal(err)
	}
	var found []Mutant
	for _, name := range listed.GoFiles {
		file := dir + "/" + name
		mutants, err := Of(file, source(t, file))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, mutants...)
	}
	return found
}

func source(t *testing.T, file string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(needs.Root(), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// workshop tries the mutants of one package, one after the other.
type workshop struct{ dir, scratch string }

// suite is tests that are asked together: those of a package, or some of them.
type suite struct{ dir, flag string }

func (s suite) String() string { return strings.TrimSpace(s.dir + " " + s.flag) }

// suitesOf are in the order in which they are asked.
func suitesOf(dir, long string, neighbours []string) []suite {
	suites := []suite{{dir: dir}}
	if long != "" {
		suites = []suite{{dir, "-test.skip=" + long}, {dir, "-test.run=" + long}}
	}
	for _, dir := range neighbours {
		suites = append(suites, suite{dir: dir})
	}
	return suites
}

func (w workshop) try(t *testing.T, n int, suites []suite, explained map[ID]string) tally {
	limits := map[suite]time.Duration{}
	compiled := ""
	for _, suite := range suites {
		if compiled != suite.dir { // else it is the same program
			if out, err := w.compile(suite.dir, ""); err != nil {
				t.Fatalf("%s does not compile as it is: %v\n%s", suite.dir, err, out)
			}
			compiled = suite.dir
		}
		began := time.Now()
		if out, err := w.test(suite, time.Hour); err != nil {
			t.Fatalf("the tests of %s fail as it is: %v\n%s", suite, err, out)
		}
		// Generous, since whatever else the machine does counts as well.
		limits[suite] = 3*time.Since(began) + 20*time.Second
	}
	var got tally
	for _, m := range Draw(mutantsOf(t, w.dir), *seed) {
		if !*all && got.noticed+got.explained+got.unnoticed >= n {
			break
		}
		src := source(t, m.File)
		changed := filepath.Join(w.scratch, "changed.go")
		overlay := filepath.Join(w.scratch, "overlay.json")
		listed, err := json.Marshal(map[string]any{"Replace": map[string]string{
			filepath.Join(needs.Root(), filepath.FromSlash(m.File)): changed,
		}})
		if err == nil {
			err = os.WriteFile(changed, m.Apply(src), 0o644)
		}
		if err == nil {
			err = os.WriteFile(overlay, listed, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		compiles, by := true, ""
		compiled = ""
		for _, suite := range suites {
			if compiled != suite.dir {
				if _, err := w.compile(suite.dir, overlay); err != nil {
					compiles = false // a mutant that is no program is no question to the tests
					break
				}
				compiled = suite.dir
			}
			if _, err := w.test(suite, limits[suite]); err != nil {
				by = suite.String()
				break
			}
		}
		why := explained[m.ID]
		switch {
		case !compiles:
			continue
		case by != "":
			got.noticed++
			if why != "" {
				t.Logf("is noticed by %s, though the list explains why it would not be:\n%s", by, m.ID)
			}
		case why != "":
			got.explained++
			t.Logf("%s:%d: unnoticed, as explained: %s", m.File, m.Line, why)
		default:
			got.unnoticed++
			t.Errorf("%s:%d: unnoticed; a test is missing, or testdata/explained.txt says why none can see it:\n%s\n%s",
				m.File, m.Line, m.ID, m.Diff(src))
		}
	}
	return got
}

// compile makes the test program of a package.
func (w workshop) compile(dir, overlay string) ([]byte, error) {
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", filepath.Join(w.scratch, "suite.test")}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./"+dir)...)
	cmd.Dir = needs.Root()
	return cmd.CombinedOutput()
}

// wall makes all that is mounted read-only but what the kernel keeps and the folder in $1, and runs the rest of its
// arguments. It stays process 1 of its namespace, to reap what the tests leave behind.
const wall = `mount --bind "$1" "$1" || exit 125
while read -r _ at kind _; do
  case $kind in proc|sysfs|tmpfs|dev*|cgroup*|mqueue) continue;; esac
  [ "$at" = "$1" ] || mount -o remount,bind,ro "$at" || exit 125
done </proc/self/mounts
shift
"$@"
exit $?`

// test runs the compiled tests behind a wall until the first fails or the limit passes. Whatever they started
// ends with them.
func (w workshop) test(suite suite, limit time.Duration) ([]byte, error) {
	temp := filepath.Join(w.scratch, "t") // short, since the path of a socket has at most 108 bytes
	defer os.RemoveAll(temp)
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return nil, err
	}
	for dir, mode := range map[string]os.FileMode{w.scratch: 0o755, temp: 0o777 | os.ModeSticky} { // as /tmp is
		if err := os.Chmod(dir, mode); err != nil {
			return nil, err
		}
	}
	args := []string{"--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--ipc"}
	if os.Getuid() != 0 {
		args = append(args, "--user", "--map-root-user")
	}
	program := filepath.Join(w.scratch, "suite.test")
	args = append(args, "sh", "-c", wall, "sh", temp, program, "-test.short", "-test.failfast")
	if suite.flag != "" {
		args = append(args, suite.flag)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Dir = filepath.Join(needs.Root(), filepath.FromSlash(suite.dir))
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	// Should this process end first, the thread that has started unshare ends with it, and so does all within.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A signal to a process group reaches members outside of the namespace too: this one has no others.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// readExplained reads the mutants that no test can see or need see, each with the reason: in testdata/explained.txt,
// as TestMutants prints them, the reason on the lines that follow, blank lines between.
func readExplained(t *testing.T) map[ID]string {
	t.Helper()
	text, err := os.ReadFile("testdata/explained.txt")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[ID]string{}
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		lines := strings.SplitN(block, "\n", 3)
		if len(lines) < 3 {
			t.Fatalf("testdata/explained.txt: three lines are a place, a mutant and a reason: %q", block)
		}
		var id ID
		id.File, id.Function, _ = strings.Cut(lines[0], " ")
		kind, original, _ := strings.Cut(lines[1], ": ")
		id.Kind, id.Original = Kind(kind), original
		explained[id] = strings.Join(strings.Fields(lines[2]), " ")
	}
	return explained
}

// TestExplainedAreThere: an explanation of what is no longer in the source explains nothing.
func TestExplainedAreThere(t *testing.T) {
	there := map[ID]bool{}
	for _, p := range tried {
		for _, m := range mutantsOf(t, p.dir) {
			there[m.ID] = true
		}
	}
	for id := range readExplained(t) {
		if !there[id] {
			t.Errorf("testdata/explained.txt explains what the source no longer has:\n%s", id)
		}
	}
}
