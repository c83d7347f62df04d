package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// Courses are laid over each other at moments that all runs have: the same words, or the first fault of each.
func TestAlign(t *testing.T) {
	began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	run := func(id string, fault time.Duration, words string) Run {
		one := 1.0
		at := began.Add(time.Minute)
		return Run{Manifest: result.Manifest{RunID: id}, Data: &result.Data{Start: at,
			Events: []result.Mark{{Time: at.Add(10 * time.Second), Kind: result.KindAnnotation, Text: "together"},
				{Time: at.Add(fault), Kind: result.KindFault, Text: words}},
			Panels: []result.Panel{{Title: "Rate", Unit: "ops/s", Series: []result.Series{{Name: "Rate",
				Start: at.Add(5 * time.Second), Step: 5, Values: []*float64{&one, nil, &one}}}}},
			Series: []result.Series{{Name: "G", Group: "G", Op: "read", Measure: result.LatencyP99, Unit: "us",
				Start: at, Step: 60, Values: []*float64{&one}}, {Name: "G", Group: "G", Op: "read",
				Measure: result.Rate, Unit: "ops/s",
				Start: at, Step: 5, Values: []*float64{&one}}, {Name: "vm", VM: "vm", Group: "G", Op: "read",
				Measure: result.LatencyP99, Unit: "us", Start: at, Step: 60, Values: []*float64{&one}}},
		}}
	}
	sides := []Side{{Name: "a", Runs: []Run{run("1", 20*time.Second, "node 1 lost")}},
		{Name: "b", Runs: []Run{run("2", 50*time.Second, "node 3 lost")}}}
	for at, want := range map[string]map[string][]float64{
		"":         {"Rate": {5, 5}, "G read p99": {0, 0}},
		"together": {"Rate": {-5, -5}, "G read p99": {-10, -10}, "G read rate": {-10, -10}},
		firstFault: {"Rate": {-15, -45}, "G read p99": {-20, -50}, "G read rate": {-20, -50}},
		"fault":    {"Rate": {-15, -45}, "G read p99": {-20, -50}, "G read rate": {-20, -50}},
	} {
		d := &Document{}
		if err := d.align(sides, at); err != nil {
			t.Fatal(err)
		}
		got := map[string][]float64{}
		for _, o := range d.Overlays {
			for _, l := range o.Lines {
				got[o.Title] = append(got[o.Title], l.From)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %q (-want +got)\n%s", at, diff)
		}
		if diff := cmp.Diff([]string{"together", firstFault}, d.Moments); diff != "" {
			t.Errorf("moments (-want +got)\n%s", diff)
		}
	}
	err := (&Document{}).align(sides, "node 1 lost")
	if err == nil || !strings.Contains(err.Error(), "together; the first") {
		t.Errorf("a moment that one of two runs has: %v", err)
	}
	sides[1].Runs[0].Cell = "depth=4"
	if err := (&Document{}).align(sides, "together"); err == nil {
		t.Error("sides of combinations are aligned")
	}
}
