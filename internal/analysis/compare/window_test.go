package compare_test

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
	"plimsoll/result"
)

// windowed is a run whose second half ran at another rate, cut into two windows.
func windowed(t *testing.T) compare.Run {
	t.Helper()
	r := random(5)
	law := comparetest.Law{Rate: 60, Mean: 0.002, Spread: 0.01, Noise: 0.05, Seconds: 120}
	before := comparetest.Data(r, law)
	law.Rate *= 0.7
	after := comparetest.Data(r, law)
	run := compare.Run{Manifest: comparetest.Manifest(1), Data: before}
	middle := before.End
	shift := middle.Sub(after.Start)
	for i := range before.Workloads {
		w, next := &before.Workloads[i], after.Workloads[i]
		w.Windows = []result.Window{
			{Name: "alone", Start: w.Start, End: w.End, Ops: w.Ops},
			{Name: "with X", Start: next.Start.Add(shift), End: next.End.Add(shift), Ops: next.Ops},
			{Name: "while its VMs end", Start: next.End.Add(shift), End: next.End.Add(shift + time.Second),
				Partial: true},
		}
		w.End = next.End.Add(shift)
		if w.Heat != nil && next.Heat != nil {
			w.Heat.Counts = append(w.Heat.Counts, next.Heat.Counts...)
		}
	}
	for i := range before.Series {
		before.Series[i].Values = append(before.Series[i].Values, after.Series[i].Values...)
	}
	before.End = after.End.Add(shift)
	return run
}

func TestWindowsOfARun(t *testing.T) {
	t.Parallel()
	run := windowed(t)
	whole := len(run.Data.Series[0].Values)
	alone, err := run.Window("alone")
	if err != nil {
		t.Fatal(err)
	}
	with, err := run.Window("with X")
	if err != nil {
		t.Fatal(err)
	}
	if n, m := len(alone.Data.Series[0].Values), len(with.Data.Series[0].Values); n < whole/2-2 || m < whole/2-2 ||
		n+m > whole || len(run.Data.Series[0].Values) != whole {
		t.Errorf("of %d points %d and %d", whole, n, m)
	}
	d, err := compare.Of([]compare.Side{{Name: "alone", Runs: []compare.Run{alone}},
		{Name: "with X", Runs: []compare.Run{with}}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := d.Measures[0]; m.Verdict != compare.Worse || m.Change == nil || *m.Change > -0.25 || *m.Change < -0.35 ||
		m.Scope != compare.WithinRuns {
		t.Errorf("%+v", m)
	}
	for name, want := range map[string]string{"with Y": `no phase "with Y" among "alone", "with X"`,
		"while its VMs end": "no phase"} {
		if _, err := run.Window(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	run.Data.Workloads[0].Windows, run.Data.Workloads = nil, run.Data.Workloads[:1]
	if _, err := run.Window("alone"); err == nil || !strings.Contains(err.Error(), "nothing began, ended or was "+
		"annotated") {
		t.Errorf("no windows: %v", err)
	}
	if _, err := (compare.Run{}).Window("alone"); err == nil ||
		!strings.Contains(err.Error(), "nothing was collected") {
		t.Errorf("no data: %v", err)
	}
}
