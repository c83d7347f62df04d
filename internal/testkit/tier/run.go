package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// plan holds what one call of run was asked for.
type plan struct {
	short, long, raceAll bool
	again                bool   // run what failed once more, alone
	record               string // file for the events
	patterns             []string
}

// event is one line of `go test -json`; Race is ours.
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
	ImportPath, FailedBuild       string
	Race                          bool   `json:",omitempty"`
	Mode, CmdPkg                  string `json:",omitempty"`
}

// run runs a tier and prints what happened.
func run(ctx context.Context, p plan) error {
	all, err := packages(ctx, p.patterns)
	if err != nil {
		return err
	}
	race, plain := split(all, p)
	rec, err := newRecorder(p.record, os.Stdout)
	if err != nil {
		return err
	}
	defer rec.close()
	started := time.Now()
	var env []string
	// vet is a command of its own in the Makefile. More packages, and more tests of each, than processors run at a
	// time: they wait for servers, guests and loads of a set length for about half of their time.
	twice := 2 * runtime.NumCPU()
	flags := []string{"-vet=off", "-timeout", "40m", "-p", strconv.Itoa(twice - 1), "-parallel", strconv.Itoa(twice)}
	if p.short {
		flags = append(flags, "-short")
	}
	if p.long {
		env, flags[2] = []string{"PLIMSOLL_LONG=1"}, "120m" // the timeout
	}
	// Those under the race detector run beside the others, one at a time, for the slowest of those wait.
	var raced errgroup.Group
	if len(race) > 0 {
		raced.Go(func() error {
			args := slices.Concat(flags, []string{"-race", "-p", "1"}, race)
			return goTest(ctx, rec, true, env, args)
		})
	}
	if len(plain) > 0 {
		err = goTest(ctx, rec, false, env, slices.Concat(flags, plain))
	}
	if err = errors.Join(err, raced.Wait()); err != nil {
		return err
	}
	if p.again {
		if err := again(ctx, rec); err != nil {
			return err
		}
	}
	return rec.summary(time.Since(started))
}

// mostAgain is how many failed tests are run once more: more of them have one cause, which is no matter of chance.
const mostAgain = 5

// again runs the tests that failed once more, each alone, as a draw does. What did not fail in a test, such as a build,
// a panic or a time that was over, is not tried again.
func again(ctx context.Context, rec *recorder) error {
	var tests []string // "package Test"
	for _, f := range rec.failures {
		name, test, ok := strings.Cut(f, " ")
		if !ok {
			return nil
		}
		test, _, _ = strings.Cut(test, "/")
		test = name + " " + test
		if !slices.Contains(tests, test) {
			tests = append(tests, test)
		}
	}
	if len(tests) > mostAgain {
		return nil
	}
	rec.failed, rec.failures = 0, nil
	for _, id := range tests {
		name, test, _ := strings.Cut(id, " ")
		u := unit{name: id, args: []string{"-run", "^" + test + "$", name}, race: rec.race[name]}
		if err := u.again(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// split says which packages run under the race detector and which without it.
func split(all []*pkg, p plan) (race, plain []string) {
	compiler := exec.Command("gcc", "--version").Run() == nil
	if !compiler && !p.short {
		fmt.Println("no C compiler: testing without the race detector")
	}
	for _, pkg := range all {
		if len(pkg.TestGoFiles)+len(pkg.XTestGoFiles) == 0 {
			continue
		}
		raced := pkg.goroutines && (p.raceAll || !slices.Contains(unraced, pkg.ImportPath))
		if compiler && raced && !p.short {
			race = append(race, pkg.ImportPath)
		} else {
			plain = append(plain, pkg.ImportPath)
		}
	}
	return race, plain
}

// goTest runs `go test -json` and hands its events to the recorder; the error is one of starting it, not of tests.
func goTest(ctx context.Context, rec *recorder, race bool, env, args []string) error {
	graph, err := os.CreateTemp("", "plimsoll-tests-*.json")
	if err != nil {
		return err
	}
	graph.Close()
	defer os.Remove(graph.Name())
	args = append([]string{"test", "-json", "-debug-actiongraph", graph.Name()}, args...)
	c := exec.CommandContext(ctx, "go", args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	c.Env = append(os.Environ(), env...)
	cgo := "CGO_ENABLED=0" // as programs are built, so that their packages are compiled once
	if race {
		cgo = "CGO_ENABLED=1"
	}
	c.Env = append(c.Env, cgo)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	rec.read(out, race)
	err = c.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	rec.mu.Lock()
	said := rec.failed > 0
	rec.mu.Unlock()
	if err != nil && !said {
		return fmt.Errorf("go test: %w", err)
	}
	return rec.actions(graph.Name(), race)
}

// recorder counts events, keeps them in a file and prints what a person wants to see of them.
type recorder struct {
	mu                      sync.Mutex // guards all of it: two groups of packages may run at a time
	file                    *os.File
	out                     io.Writer
	output                  map[string][]string // of each test that is not over: what it printed
	passed, failed, skipped int
	reasons                 map[string]int // why tests were skipped, and how many
	failures                []string
	flakes                  []string        // what failed and then passed alone
	race                    map[string]bool // packages that ran under the race detector
}

func newRecorder(file string, out io.Writer) (*recorder, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return &recorder{file: f, out: out, output: map[string][]string{}, reasons: map[string]int{},
		race: map[string]bool{}}, nil
}

func (r *recorder) close() { r.file.Close() }

// read takes events until their end. Lines that are none, such as those of a build, are printed.
func (r *recorder) read(in io.Reader, race bool) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			r.mu.Lock()
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				e.Race = race
				r.event(e)
			}
			r.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (r *recorder) event(e event) {
	if e.Action != "output" && e.Action != "run" && e.Action != "pause" && e.Action != "cont" {
		if b, err := json.Marshal(e); err == nil {
			r.file.Write(append(b, '\n'))
		}
	}
	id := e.Package + " " + e.Test
	r.race[e.Package] = e.Race
	switch e.Action {
	case "output":
		r.output[id] = append(r.output[id], e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.packageOver(e)
		} else {
			r.testOver(e)
		}
		delete(r.output, id)
	}
}

func (r *recorder) testOver(e event) {
	id := e.Package + " " + e.Test
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.reasons[reason(r.output[id])]++
	case "fail":
		r.failed++
		r.failures = append(r.failures, id)
		fmt.Fprintf(r.out, "--- FAIL: %s (%.1f s)\n%s", id, e.Elapsed, strings.Join(r.output[id], ""))
	}
}

func (r *recorder) packageOver(e event) {
	printed := r.output[e.Package+" "]
	name := strings.TrimPrefix(e.Package, "plimsoll/")
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %-40s %7.1f s%s\n", name, e.Elapsed, raced(e.Race))
	case "fail":
		if !slices.ContainsFunc(r.failures, func(f string) bool { return strings.HasPrefix(f, e.Package+" ") }) {
			r.failed++ // a build, a TestMain, a panic, a time that was over: its tests did not say
			r.failures = append(r.failures, e.Package)
			for id, lines := range r.output { // what hung or panicked
				if strings.HasPrefix(id, e.Package+" ") {
					fmt.Fprintf(r.out, "%s", strings.Join(lines, ""))
				}
			}
		}
		fmt.Fprintf(r.out, "FAIL  %-40s %7.1f s%s\n", name, e.Elapsed, raced(e.Race))
	}
	for _, line := range printed {
		if strings.HasPrefix(line, "needs: ") && !strings.HasSuffix(line, "missing for 0\n") {
			fmt.Fprintf(r.out, "      %s", line)
		}
	}
}

func raced(race bool) string {
	if race {
		return "  race"
	}
	return ""
}

// reason is the line in which a skipped test says why, without its place in the source.
func reason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "===") {
			continue
		}
		if _, rest, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok := strings.Cut(rest, ": "); ok {
				return text
			}
		}
		return line
	}
	return "no reason given"
}

// summary prints why tests were skipped and the counts, and is an error when some failed.
func (r *recorder) summary(took time.Duration) error {
	long := 0
	for _, why := range slices.Sorted(keys(r.reasons)) {
		if strings.HasPrefix(why, "long (") {
			long += r.reasons[why]
			continue
		}
		fmt.Fprintf(r.out, "skipped %4d: %s\n", r.reasons[why], why)
	}
	if long > 0 {
		fmt.Fprintf(r.out, "skipped %4d: long, for make test-all and CI's draw (make test-list names them)\n", long)
	}
	for _, f := range r.flakes {
		fmt.Fprintf(r.out, "FLAKE: %s failed (log above) and then passed: find the cause and mend it\n", f)
	}
	for _, f := range r.failures {
		fmt.Fprintf(r.out, "failed: %s\n", f)
	}
	fmt.Fprintf(r.out, "took %s on %d processors\n", took.Round(time.Second), runtime.NumCPU())
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	if r.failed > 0 {
		return errFailed
	}
	return nil
}
