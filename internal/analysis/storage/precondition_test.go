package storage

import (
	"strings"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

func TestPreconditioned(t *testing.T) {
	t.Parallel()
	v := &view.Run{Data: &result.Data{Preconditioned: []result.Preconditioning{
		{Workload: "A", State: result.Preconditioned, Passes: make([]result.Pass, 2), Rounds: make([]result.Round, 6),
			Spread: view.Ptr(0.1), Slope: view.Ptr(0.05), MaxRounds: 25},
		{Workload: "B", State: result.PreconditionNotReached, Reason: "max_rounds is 5",
			Rounds: make([]result.Round, 5)},
		{Workload: "C", State: result.PreconditionWritten, Passes: make([]result.Pass, 1)},
		{Workload: "D", State: result.PreconditionInterrupted},
	}}}
	want := []struct {
		severity result.Severity
		words    string
	}{
		{result.Passed, "written 2 times in full, and its rates steady after 6 rounds"},
		{result.Warning, "its rates not steady after 5 rounds (max_rounds is 5)"},
		{result.Info, "written 1 time in full; whether its rates are steady after that was not looked at"},
		{result.Warning, "did not come to its end (interrupted after 0 rounds)"},
	}
	got := Preconditioned.Run(v)
	if len(got) != len(want) {
		t.Fatalf("%d findings", len(got))
	}
	for i, f := range got {
		if f.Severity != want[i].severity || !strings.Contains(f.Sentence, want[i].words) || f.NoInterval == "" {
			t.Errorf("%s %s; want %s %s", f.Severity, f.Sentence, want[i].severity, want[i].words)
		}
	}
}

// What was seen of the disks goes before what job files say, and of what was seen that which the workload reads itself.
func TestSeenOfDisks(t *testing.T) {
	t.Parallel()
	fill := result.Written{Workload: "P", Group: "G", Ranges: result.WrittenByPrefill, Bytes: 10, Blocks: 100}
	holes := fill
	holes.Zero = 50
	read := result.Written{Workload: "W", Group: "G", Ranges: result.ReadByWorkload, Bytes: 10, Blocks: 100}
	empty := read
	empty.Zero = 100
	failed := read
	failed.Problem, failed.Blocks = "gone", 0
	for name, c := range map[string]struct {
		from  result.Severity
		looks []result.Written
		want  result.Severity
		words string
	}{
		"nothing looked at": {result.Invalid, nil, result.Invalid, "as it was"},
		"a good prefill": {result.Passed, []result.Written{fill},
			result.Passed, "of 100 sampled blocks none was zero"},
		"a prefill with holes": {result.Passed, []result.Written{holes}, result.Warning, "is not all there"},
		"reads of holes": {result.Passed, []result.Written{fill, empty},
			result.Invalid, "nothing was ever written"},
		"written by what nobody knows": {result.Invalid, []result.Written{read},
			result.Passed, "had been written before"},
		"filled up after the prefill": {result.Warning, []result.Written{holes, read},
			result.Passed, "had been written"},
		"of another group": {result.Passed, []result.Written{{Group: "H", Blocks: 9, Zero: 9}},
			result.Passed, "as it was"},
		"of another workload's reads": {result.Passed, []result.Written{{Group: "G", Workload: "X", Blocks: 9,
			Zero: 9, Ranges: result.ReadByWorkload}}, result.Passed, "as it was"},
		"a look that failed":        {result.Invalid, []result.Written{failed}, result.Invalid, "as it was"},
		"a prefill does not excuse": {result.Invalid, []result.Written{fill}, result.Invalid, "as it was"},
	} {
		f := result.Finding{Severity: c.from, Sentence: "as it was"}
		seen(&f, &view.Load{Name: "W", Group: "G"}, c.looks)
		if f.Severity != c.want || !strings.Contains(f.Sentence, c.words) {
			t.Errorf("%s: %s %s; want %s %s", name, f.Severity, f.Sentence, c.want, c.words)
		}
	}
}
