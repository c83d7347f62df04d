package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

func keys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// action holds what `go test -debug-actiongraph` says of one step of a build.
type action struct {
	Mode, Package            string
	CmdReal, CmdUser, CmdSys time.Duration
}

// actions adds what compiling and linking took to the record, a line of its own for each package and kind.
func (r *recorder) actions(graph string, race bool) error {
	b, err := os.ReadFile(graph)
	if err != nil || len(b) == 0 {
		return err
	}
	var all []action
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("times of compiling: %w", err)
	}
	for _, a := range all {
		if a.CmdReal == 0 || a.Mode != "build" && a.Mode != "link" && a.Mode != "vet" {
			continue
		}
		e := event{Action: "compile", Mode: a.Mode, Package: a.Package, Race: race}
		e.Elapsed = (a.CmdUser + a.CmdSys).Seconds()
		if line, err := json.Marshal(e); err == nil {
			r.file.Write(append(line, '\n'))
		}
	}
	return nil
}

type row struct {
	seconds float64
	name    string
}

const shown = 40

// times prints the slowest packages and tests of a record, and what compiling took.
func times(w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%w: make test writes it", err)
	}
	defer f.Close()
	var packages, tests []row
	compile := map[string]float64{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimPrefix(e.Package, "plimsoll/") + raced(e.Race)
		switch {
		case e.Action == "compile":
			compile[e.Mode+raced(e.Race)] += e.Elapsed
		case e.Action != "pass" && e.Action != "fail":
		case e.Test == "":
			packages = append(packages, row{e.Elapsed, name})
		default:
			tests = append(tests, row{e.Elapsed, name + " " + e.Test})
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	print := func(title string, rows []row) {
		sum := 0.0
		for _, r := range rows {
			sum += r.seconds
		}
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.seconds, a.seconds) })
		fmt.Fprintf(w, "%s: %d, %.0f s one after the other\n", title, len(rows), sum)
		for _, r := range rows[:min(shown, len(rows))] {
			fmt.Fprintf(w, "%8.1f s  %s\n", r.seconds, r.name)
		}
	}
	print("packages", packages)
	print("tests and subtests", tests)
	fmt.Fprintln(w, "compiling, seconds of processor time:")
	for _, mode := range slices.Sorted(keys(compile)) {
		fmt.Fprintf(w, "%8.1f s  %s\n", compile[mode], mode)
	}
	return nil
}

// list prints how many tests each package has by tier, and the names of the long ones.
func list(ctx context.Context, w io.Writer) error {
	all, err := packages(ctx, nil)
	if err != nil {
		return err
	}
	var tests, long, fuzz, benchmarks int
	for _, p := range all {
		tests, long, fuzz = tests+len(p.tests), long+len(p.long), fuzz+len(p.fuzz)
		benchmarks += len(p.benchmarks)
		for _, name := range p.long {
			fmt.Fprintf(w, "%s %s\n", strings.TrimPrefix(p.ImportPath, "plimsoll/"), name)
		}
	}
	fmt.Fprintf(w, "%d test functions, %d of them with a long form or long parts (above), %d fuzz targets, "+
		"%d benchmarks\n", tests, long, fuzz, benchmarks)
	return nil
}
