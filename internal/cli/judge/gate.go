package judge

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/report"
)

// gate says when a comparison fails, and where its test results go.
type gate struct {
	failOn []string
	junit  string
}

// verdicts that a gate may fail on.
const (
	failWorse        = "worse"
	failInconclusive = "inconclusive"
)

func (g *gate) register(c *cobra.Command, unless ...string) {
	c.Flags().StringSliceVar(&g.failOn, "fail-on", unless,
		"exit with 5 on these `verdicts`: worse, which includes what changed with no direction known to be good, and inconclusive; or none")
	c.Flags().
		StringVar(&g.junit, "junit", "", "also write the verdicts as test results in the JUnit form to this `file`")
}

func (g gate) check(phase string) error {
	for _, v := range g.failOn {
		if v != failWorse && v != failInconclusive && v != "none" {
			return exit.Usagef("as in --fail-on worse,inconclusive",
				"%s: --fail-on: %q is none of worse, inconclusive, none", phase, v)
		}
	}
	return nil
}

// fails says why a measure fails the gate; "" when it does not. Results of the scenario of which nothing says which way
// is good are for a reader to judge.
func (g gate) fails(m compare.Measure) string {
	moved := (m.Verdict == compare.Higher || m.Verdict == compare.Lower) && !m.Result
	switch {
	case slices.Contains(g.failOn, failWorse) && m.Verdict == compare.Worse:
		return "worse"
	case slices.Contains(g.failOn, failWorse) && moved:
		return "moved, and which way is good is not known"
	case slices.Contains(g.failOn, failInconclusive) && m.Verdict == compare.Inconclusive && (m.Direction != "" ||
		!m.Result):
		return "inconclusive"
	}
	return ""
}

// judge writes the comparison and the test results, and is the error of one that fails.
func (sd *Sides) judge(phase string, d *compare.Document, f compareFlags, g gate) error {
	err := sd.writeComparison(d, f)
	if g.junit != "" {
		write := func(w io.Writer) error { return report.CompareJUnit(w, d, g.fails) }
		err = errors.Join(err, sd.Print(phase, "test results", console.Output{File: g.junit}, write))
	}
	off := !f.gate || slices.Contains(g.failOn, "none")
	if failed := g.failed(phase, d); failed != nil || off || len(f.windows) > 0 {
		return errors.Join(err, failed)
	}
	return errors.Join(err, ofOneEach(phase, d))
}

// ofOneEach is the error of a gate that passes though one run a side decided nothing; nil where there were more.
func ofOneEach(phase string, d *compare.Document) error {
	n := 0
	for _, m := range d.Measures {
		if m.OneEach() && m.Verdict == compare.Inconclusive && (m.Direction != "" || !m.Result) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return exit.Errorf(exit.Inconclusive, "measure five runs of each; --fail-on none compares without a gate",
		"%s: one run a side decides nothing: %d of %d measures are inconclusive", phase, n, len(d.Measures))
}

// failed names the measures that fail the gate, by why they do.
func (g gate) failed(phase string, d *compare.Document) error {
	names := map[string][]string{}
	for _, m := range d.Measures {
		if why := g.fails(m); why != "" {
			names[why] = append(names[why], strings.TrimSpace(m.Cell+" "+m.Workload+" "+m.Name))
		}
	}
	var errs []error
	hint := ""
	add := func(why, format, advice string) {
		if len(names[why]) > 0 {
			errs = append(errs, fmt.Errorf(phase+": "+format+": %s", d.Threshold*100, strings.Join(names[why], "; ")))
			hint = advice
		}
	}
	add("inconclusive", "neither worse nor the same within %g %%, inconclusive",
		"more repeats of each side, in mixed order, narrow the intervals")
	add("worse", "worse by more than %g %%", "")
	add("moved, and which way is good is not known", "moved by more than %g %%, and which way is good is not known",
		"say which way is good: --better NAME=lower, of files when the baseline is set")
	if len(errs) == 0 {
		return nil
	}
	return exit.Errorf(exit.Threshold, hint, "%w", errors.Join(errs...))
}
