package compare_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
)

// design is a grid of two factors with known effects on the rate, on a system that loses 2 % with every run.
func design(repeats int) (compare.Design, map[string]float64) {
	r := random(11)
	d := compare.Design{ID: "made", Title: "Made", Order: "interleaved", Repeats: repeats,
		Factors: []compare.Factor{{Name: "size", Levels: []string{"4k", "64k"}},
			{Name: "depth", Levels: []string{"1", "4", "16"}}}}
	law := comparetest.Law{Rate: 60, Mean: 0.002, Spread: 0.01, Noise: 0.05, Seconds: 30}
	effect := map[string]float64{"4k": 1, "64k": 0.5, "1": 1, "4": 1.5, "16": 1.5}
	n := 0
	for repeat := 1; repeat <= repeats; repeat++ {
		// Each time in another direction, as a mixed order is.
		for i := range 6 {
			if repeat%2 == 0 {
				i = 5 - i
			}
			n++
			levels := []string{d.Factors[0].Levels[i/3], d.Factors[1].Levels[i%3]}
			own := law
			own.Rate *= effect[levels[0]] * effect[levels[1]] * math.Pow(0.98, float64(n))
			d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: comparetest.Manifest(n),
				Data: comparetest.Data(r, own)}, Levels: levels, Repeat: repeat, Sequence: n})
		}
	}
	d.Planned = n
	return d, effect
}

func TestEffectsOfFactors(t *testing.T) {
	t.Parallel()
	d, effect := design(6)
	x, err := compare.OfExperiment(d, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]compare.Verdict{"64k": compare.Worse, "4": compare.Better, "16": compare.Better}
	found := 0
	for _, e := range x.Effects {
		if e.Name != "read IOPS" {
			continue
		}
		found++
		if change := effect[e.Level] - 1; !e.Adjusted.Contains(change) || e.Verdict != want[e.Level] {
			t.Errorf("%s %s: %s (%s), want %g", e.Factor, e.Level, e.Adjusted, e.Verdict, change)
		}
	}
	if found != 3 || len(x.Cells) != 6 || len(x.Cells[0].Runs) != 6 || x.Cells[4].Cell != "size 64k, depth 4" {
		t.Errorf("%d effects, cells %+v", found, x.Cells)
	}
	if len(x.Charts) != 3 || len(x.Charts[0].Lines) != 2 || len(x.Charts[0].Lines[0].Points) != 3 ||
		x.Charts[0].XLabel != "depth" {
		t.Errorf("charts %+v", x.Charts)
	}
	if len(x.Drift) != 1 || x.Drift[0].P > 0.05 ||
		!strings.Contains(strings.Join(x.Notes, "\n"), "drifts from run to run") {
		t.Errorf("a drift of 2 %% per run is not said: %+v %q", x.Drift, x.Notes)
	}
}

func TestExperimentsWithoutRepeatsAndWithGaps(t *testing.T) {
	t.Parallel()
	d, _ := design(1)
	x, err := compare.OfExperiment(d, compare.Options{})
	if err != nil || !strings.Contains(strings.Join(x.Notes, "\n"), "Every combination ran once") {
		t.Errorf("one repeat: %v, %q", err, x.Notes)
	}
	d, _ = design(3)
	d.Made, d.Failed = d.Made[4:9], []compare.Unmade{{Cell: "size=4k depth=1", Repeat: 1, Sequence: 5,
		Levels: []string{"4k", "1"}, Reason: "the disk is full"}}
	x, err = compare.OfExperiment(d, compare.Options{})
	if err != nil || x.Measured != 5 || !strings.Contains(strings.Join(x.Notes, "\n"),
		"13 runs are missing; plimsoll resume made makes what is left") {
		t.Errorf("%v, %+v", err, x)
	}
	d.Made = nil
	if _, err := compare.OfExperiment(d, compare.Options{}); err == nil ||
		!strings.Contains(err.Error(), "no run has measured") {
		t.Errorf("no runs: %v", err)
	}
}

// Curves of two experiments lie over each other by the names of their levels, whatever the order, with the values and
// the intervals that each has by itself.
func TestOverCurves(t *testing.T) {
	t.Parallel()
	d, _ := design(3)
	one, err := compare.OfExperiment(d, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Factors[1].Levels = []string{"4", "1", "16"} // the same runs, arranged in another way
	d.Made = slices.DeleteFunc(d.Made, func(m compare.Made) bool { return m.Levels[0] == "64k" && m.Levels[1] == "16" })
	two, err := compare.OfExperiment(d, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	doc := &compare.Document{Sides: []compare.Shown{{Name: "before"}, {Name: "after"}}}
	doc.OverCurves([]*compare.Experiment{one, two})
	if len(doc.Curves) != 8 { // rate, mean, p50 and p99, of each size
		titles := []string{}
		for _, c := range doc.Curves {
			titles = append(titles, c.Title)
		}
		t.Fatalf("charts: %q", titles)
	}
	valueOf := func(x *compare.Experiment, size, depth string) compare.CellValue {
		for _, c := range x.Cells {
			if slices.Equal(c.Levels, []string{size, depth}) {
				return c.Values[0]
			}
		}
		return compare.CellValue{}
	}
	for i, size := range []string{"4k", "64k"} {
		c := doc.Curves[i]
		if !strings.HasSuffix(c.Title, "IOPS size "+size) || c.XLabel != "depth" || len(c.Lines) != 2 {
			t.Errorf("chart %d: %q over %q of %d", i, c.Title, c.XLabel, len(c.Lines))
		}
		for n, x := range []*compare.Experiment{one, two} {
			line := c.Lines[n]
			if line.Name != doc.Sides[n].Name || len(line.Points) != 3-n*i {
				t.Errorf("%s: line %q of %d points", c.Title, line.Name, len(line.Points))
			}
			for _, p := range line.Points {
				want := valueOf(x, size, c.Names[p.X])
				if p.Y != want.Value || p.Interval != want.Interval {
					t.Errorf("%s at %s: %v %v, want %v %v", c.Title, c.Names[p.X], p.Y, p.Interval, want.Value,
						want.Interval)
				}
			}
		}
	}
}

func ExampleOf() {
	law := comparetest.Law{Rate: 50, Mean: 0.002, Spread: 0.01, Noise: 0.05, Seconds: 30}
	r := random(2)
	side := func(name string, first int) compare.Side {
		s := compare.Side{Name: name}
		for i := range 4 {
			s.Runs = append(s.Runs, compare.Run{Manifest: comparetest.Manifest(first + i),
				Data: comparetest.Data(r, law)})
		}
		return s
	}
	a := side("before", 1)
	law.Rate *= 0.8
	d, err := compare.Of([]compare.Side{a, side("after", 5)}, compare.Options{Threshold: 0.05})
	fmt.Println(err, d.Verdict)
	fmt.Println(d.Measures[0].Name, d.Measures[0].Verdict)
	// Output:
	// <nil> worse
	// read IOPS worse
}
