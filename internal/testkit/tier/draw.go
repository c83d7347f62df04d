package main

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is one thing that a draw can run.
type unit struct {
	name string
	args []string // of `go test`
	race bool
	find bool // it looks for inputs that nobody has tried: what it finds is a defect to mend, and fails no other change
}

// racedParts is in how many units a package that takes long runs under the race detector: the last unit of a draw goes
// on when its minutes are over.
const racedParts = 4

// units are all that make test leaves to make test-all, in an order that mixes the kinds and is always the same.
func units(all []*pkg, seed int) []unit {
	var us []unit
	for _, p := range all {
		short := strings.TrimPrefix(p.ImportPath, "plimsoll/")
		for _, test := range p.long {
			us = append(us, unit{name: short + " " + test, args: []string{"-run", "^" + test + "$", p.ImportPath}})
		}
		for _, fuzz := range p.fuzz {
			us = append(us, unit{name: short + " " + fuzz, find: true, args: []string{"-run", "^$",
				"-fuzz", "^" + fuzz + "$", "-fuzztime", "2000x", "-fuzzminimizetime", "10x", p.ImportPath}})
		}
		if slices.Contains(unraced, p.ImportPath) {
			for i := range racedParts {
				var tests []string
				for j := i; j < len(p.tests); j += racedParts {
					tests = append(tests, p.tests[j])
				}
				us = append(us, unit{name: fmt.Sprintf("%s under the race detector, %d of %d", short, i+1, racedParts),
					args: []string{"-run", "^(" + strings.Join(tests, "|") + ")$", p.ImportPath}, race: true})
			}
		}
		drawn := strconv.Itoa(seed)
		switch p.ImportPath {
		case mutants:
			us = append(us, unit{name: "mutants, 5 of them", find: true, args: []string{"-run", "^TestMutants$",
				p.ImportPath, "-args", "-mutants", "-seed", drawn, "-sample", "5"}})
		case trust:
			us = append(us, unit{name: "measured rates, a tenth of the draws", args: []string{"-run", "^TestTrust$",
				p.ImportPath, "-args", "-trust", "-seed", drawn, "-share", "0.1"}})
		}
	}
	slices.SortFunc(us, func(a, b unit) int {
		return cmp.Or(cmp.Compare(hash(a.name), hash(b.name)), cmp.Compare(a.name, b.name))
	})
	return us
}

const (
	mutants = "plimsoll/internal/testkit/mutants"
	trust   = "plimsoll/internal/testkit/trust"
)

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// parts is how many seeds in a row reach every unit.
const parts = 10

// first is where the slice of a seed begins among n units.
func first(seed, n int) int { return (seed%parts + parts) % parts * n / parts }

// draw runs a slice of what make test leaves out.
func draw(ctx context.Context, minutes float64, seed int, record string) error {
	if seed < 0 {
		out, err := exec.CommandContext(ctx, "git", "rev-list", "--count", "HEAD").Output()
		if err != nil {
			return fmt.Errorf("the seed is the number of commits, and git does not tell it: %w: say -seed N", err)
		}
		if seed, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
			return err
		}
	}
	all, err := packages(ctx, nil)
	if err != nil {
		return err
	}
	us := units(all, seed)
	start, n := first(seed, len(us)), len(us)
	fmt.Printf("draw: seed %d (SEED=%d draws the same): from the %d. of %d on, for %.0f minutes\n",
		seed, seed, start+1, n, minutes)
	rec, err := newRecorder(record, os.Stdout)
	if err != nil {
		return err
	}
	defer rec.close()
	until := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
	done, findings := 0, 0
	for ; done < n && time.Now().Before(until) && ctx.Err() == nil; done++ {
		u := us[(start+done)%n]
		fmt.Printf("draw: %s\n", u.name)
		ok, err := u.try(ctx, rec)
		if err != nil {
			return err
		}
		switch {
		case ok:
		case u.find:
			findings++
			fmt.Printf("DEFECT FOUND by %s (see above): mend it next; what is tried there is left to chance, so it "+
				"fails nothing else\n", u.name)
		default:
			if err := u.again(ctx, rec); err != nil {
				return err
			}
		}
	}
	for i := range n {
		if u := us[(start+i)%n]; i >= done {
			fmt.Printf("not drawn: %s\n", u.name)
		}
	}
	fmt.Printf("draw: seed %d: %d of %d drawn, %d found defects\n", seed, done, n, findings)
	if done < (n+parts-1)/parts && ctx.Err() == nil {
		fmt.Printf("draw: a tenth (%d) was not reached: ten runs in a row do not reach all\n", (n+parts-1)/parts)
	}
	return rec.summary(time.Since(until.Add(-time.Duration(minutes * float64(time.Minute)))))
}

// try runs the unit and says whether it passed. What a search for defects finds is not counted as a failed test.
func (u unit) try(ctx context.Context, rec *recorder) (bool, error) {
	before, failures := rec.failed, len(rec.failures)
	args := append([]string{"-vet=off", "-count", "1", "-timeout", "20m"}, u.args...)
	env := []string{"PLIMSOLL_LONG=1"}
	if u.race { // the short forms, since they go the same ways, and long tests are units of their own
		env, args = nil, append([]string{"-race", "-parallel", strconv.Itoa(2 * runtime.NumCPU())}, args...)
	}
	if err := goTest(ctx, rec, u.race, env, args); err != nil {
		return false, err
	}
	ok := rec.failed == before
	if !ok {
		rec.failed, rec.failures = before, rec.failures[:failures]
	}
	return ok, nil
}

// again runs a unit that failed once more: failing twice is a failure, passing now is a flake, which is a defect too.
func (u unit) again(ctx context.Context, rec *recorder) error {
	fmt.Fprintf(rec.out, "%s failed: once more, alone\n", u.name)
	ok, err := u.try(ctx, rec)
	if err != nil {
		return err
	}
	if ok {
		rec.flakes = append(rec.flakes, u.name)
		return nil
	}
	rec.failed++
	rec.failures = append(rec.failures, u.name)
	return nil
}
