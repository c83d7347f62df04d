package compare_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/comparetest"
	"plimsoll/result"
)

// TestRatedVerdicts: the published example of a drive that reaches its bandwidth and not its operations, and what
// intervals do to a verdict.
func TestRatedVerdicts(t *testing.T) {
	t.Parallel()
	no := resample.None("one run")
	in := func(low, high float64) resample.Interval {
		return resample.Interval{Low: low, High: high, Confidence: 0.95}
	}
	for _, c := range []struct {
		name            string
		rated, measured float64
		interval        resample.Interval
		times           bool
		want            compare.RatedVerdict
	}{
		{"sequential read", 540e6, 534e6, no, false, compare.Meets},
		{"sequential write", 520e6, 515e6, no, false, compare.Meets},
		{"4K read", 98000, 80000, no, false, compare.Below},
		{"4K write", 90000, 67000, no, false, compare.Below},
		{"the whole interval counts", 100, 90, in(0.85, 0.94), false, compare.Below},
		{"an interval that holds both", 100, 90, in(0.85, 0.97), false, compare.Unclear},
		{"more than is possible", 100, 120, in(1.1, 1.3), false, compare.Above},
		{"perhaps more", 100, 110, in(0.99, 1.3), false, compare.Meets},
		{"twice the time", 1e-4, 2e-4, in(1.9, 2.1), true, compare.Below},
		{"half the time", 1e-4, 5e-5, in(0.45, 0.55), true, compare.Above},
		{"the same time", 1e-4, 1.02e-4, in(1.0, 1.04), true, compare.Meets},
	} {
		if got := compare.RatedVerdictOf(c.measured/c.rated, c.interval, c.times); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// specOf are repeats of one workload with a law, in a place with these facts and findings.
func specOf(repeats int, rate, mean float64, facts []result.Fact, findings ...result.Finding) compare.Design {
	r := rand.New(rand.NewPCG(3, 3))
	d := compare.Design{ID: "made", Title: "Made", Order: "as written", Repeats: repeats, Planned: repeats}
	for n := 1; n <= repeats; n++ {
		m := comparetest.Manifest(n)
		m.Environment = append(m.Environment, facts...)
		d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: m, Findings: findings, Data: comparetest.Data(r,
			comparetest.Law{Rate: rate, Mean: mean, Spread: 0.001, Noise: 0.01, Seconds: 30})}, Repeat: n, Sequence: n})
	}
	return d
}

// TestReasonsOfALine: what the facts and findings of the runs say is among the reasons, and nothing else is.
func TestReasonsOfALine(t *testing.T) {
	t.Parallel()
	link := result.Fact{Group: "storage", Name: "device link", Value: "SATA 1.5 Gb/s", Kind: result.LinkCeiling,
		Number: 1e6}
	split := result.Fact{Group: "storage", Name: "largest request (KiB)", Value: "4"}
	place := result.Fact{Group: "storage", Name: "file system", Value: "xfs"}
	busy := result.Finding{Check: "generator-cpu", Subject: "OLTP", Severity: result.Warning,
		Sentence: "The load generator of OLTP used 99 % of its CPUs."}
	line := compare.RatedLine{Name: "random-read", Workload: "OLTP", Unit: "ops/s", Rated: 4000, Block: 8192, Depth: 8,
		QueueMost: 32}
	d := specOf(4, 1000, 8e-3, []result.Fact{link, split, place}, busy)
	x, err := compare.OfExperiment(d, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	missing := line
	missing.Workload = "none"
	writes := line
	writes.Writes, writes.Rated = true, 500
	x.Rate([]compare.RatedLine{line, missing, writes}, d)
	if v := x.Rated[0].Verdict; v != compare.Below || x.Rated[1].Verdict != compare.NothingRated ||
		x.Rated[2].Verdict != compare.Above {
		t.Fatalf("verdicts %s, %s, %s", v, x.Rated[1].Verdict, x.Rated[2].Verdict)
	}
	for i, want := range [][]string{
		{"queue depth: ", "link: device link", "block split: blocks of 8 KiB", "generator-cpu: "},
		nil,
		{"block split: ", "generator-cpu: ", "more than one such device", "a fast (SLC) part"},
	} {
		got := x.Rated[i].Reasons
		if len(got) != len(want) {
			t.Errorf("line %d: reasons %q, want %q", i, got, want)
			continue
		}
		for j := range want {
			if !strings.HasPrefix(got[j], want[j]) {
				t.Errorf("line %d: reason %q, want %q...", i, got[j], want[j])
			}
		}
	}
	if !slices.Contains(x.Notes, "Measured through a file on xfs, not on the device itself.") {
		t.Errorf("notes %q", x.Notes)
	}
}

// TestPointsOfACell: what was in flight follows from the law, steadiness from the findings, and percentiles have
// intervals.
func TestPointsOfACell(t *testing.T) {
	t.Parallel()
	steady := result.Finding{Check: "steady-state", Subject: "OLTP", Severity: result.Passed}
	x, err := compare.OfExperiment(specOf(3, 1000, 8e-3, nil, steady), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := x.Cells[0].Loads[0]
	agrees, known := l.Little()
	if l.Asked != 8 || !(l.InFlight > 7.5 && l.InFlight < 8.5) || !agrees || !known || l.SetBytes != 8<<30 {
		t.Errorf("load %+v", l)
	}
	if want := (compare.Steadiness{Yes: 3}); l.Steady != want {
		t.Errorf("steady %+v, want %+v", l.Steady, want)
	}
	for _, v := range x.Cells[0].Values {
		if !v.Interval.Valid() || !v.Interval.Contains(v.Value) {
			t.Errorf("%s: %v, %v", v.Name, v.Value, v.Interval)
		}
	}
}

// setsOf is a working-set sweep through a cache, on several devices that differ in the size of theirs.
func setsOf(cache map[string]float64, skew result.Skew) compare.Design {
	r := rand.New(rand.NewPCG(9, 1))
	levels := []string{"32m", "64m", "128m", "256m", "512m", "1g", "2g"}
	d := compare.Design{ID: "made", Title: "Made", Order: "randomised", Repeats: 3,
		Factors: []compare.Factor{{Name: "size", Levels: levels}}}
	for repeat := 1; repeat <= 3; repeat++ {
		for i, level := range levels {
			set := float64(int64(32<<20) << i)
			var all *result.Data
			for _, name := range []string{"a", "b"} {
				held := min(1, cache[name]/set)
				mean := held*1e-3 + (1-held)*8e-3
				data := comparetest.Data(r, comparetest.Law{Rate: 1 / mean, Mean: mean, Spread: 0.005, Noise: 0.01,
					Seconds: 30})
				w := &data.Workloads[0]
				w.Name = name
				w.Streams = []result.Stream{{Name: name, Device: "/dev/" + name, Depth: 1, Reads: true, ReadShare: 1,
					Random: 1, ReadBytes: 8192, Bytes: int64(set), Direct: true, Skew: skew}}
				if all == nil {
					all = data
				} else {
					all.Workloads = append(all.Workloads, *w)
				}
			}
			d.Planned++
			d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: comparetest.Manifest(d.Planned), Data: all},
				Levels: []string{level}, Repeat: repeat, Sequence: d.Planned})
		}
	}
	return d
}

// TestCachesOfASweep: declared sizes come back, of each device its own, and both stand on one chart.
func TestCachesOfASweep(t *testing.T) {
	t.Parallel()
	want := map[string]float64{"a": 128 << 20, "b": 400 << 20}
	x, err := compare.OfExperiment(setsOf(want, result.Skew{}), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Sweeps) != 2 || x.Sweeps[0].Of != compare.WorkingSet {
		t.Fatalf("sweeps %+v", x.Sweeps)
	}
	for _, s := range x.Sweeps {
		if s.Caches == nil || len(s.Caches.Caches) != 1 || s.Knee != -1 || s.FlatFrom != -1 {
			t.Errorf("%s: caches %+v (%s), knee %d", s.Workload, s.Caches, s.NoCaches, s.Knee)
			continue
		}
		c := s.Caches.Caches[0]
		if r := c.Bytes.Value / want[s.Workload]; r < 0.85 || r > 1.15 {
			t.Errorf("%s: a cache of %v", s.Workload, c.Bytes)
		}
	}
	for _, c := range x.Charts {
		if len(c.Lines) != 2 && len(c.Lines) != 4 {
			t.Errorf("chart %q has %d lines, want both devices on each", c.Title, len(c.Lines))
		}
	}
	x, err = compare.OfExperiment(setsOf(want, result.Skew{Kind: result.Zipf, Value: 1.2}), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := x.Sweeps[0]; s.Caches != nil || !strings.Contains(s.NoCaches, "zipf:1.2") {
		t.Errorf("caches %+v of uneven access, %q", s.Caches, s.NoCaches)
	}
}

// TestWhatAFactorChanges: over block sizes bytes are compared, over mixes all operations, and neither has a knee.
func TestWhatAFactorChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of, name string
		change   func(w *result.Workload, i int)
	}{
		{compare.BlockSize, "read bandwidth", func(w *result.Workload, i int) {
			w.Streams[0].ReadBytes = float64(int(4096) << i)
			w.Ops[0].Bytes = w.Ops[0].Count << (12 + i)
		}},
		{compare.ReadShare, "read and write IOPS", func(w *result.Workload, i int) {
			w.Streams[0].ReadShare = float64(i) / 4
		}},
		{compare.QueueDepth, "read IOPS", func(w *result.Workload, i int) { w.Streams[0].Depth = i + 1 }},
	} {
		d := compare.Design{ID: "made", Order: "as written", Repeats: 2,
			Factors: []compare.Factor{{Name: "level", Levels: []string{"0", "1", "2", "3", "4"}}}}
		r := rand.New(rand.NewPCG(2, 2))
		for n := range 10 {
			data := comparetest.Data(r, comparetest.Law{Rate: 200, Mean: 5e-3, Noise: 0.01, Seconds: 10})
			data.Workloads[0].Streams[0].ReadShare = 1
			c.change(&data.Workloads[0], n%5)
			d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: comparetest.Manifest(n + 1), Data: data},
				Levels: []string{fmt.Sprint(n % 5)}, Repeat: n/5 + 1, Sequence: n + 1})
		}
		x, err := compare.OfExperiment(d, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Sweeps) != 1 || x.Sweeps[0].Of != c.of || x.Sweeps[0].Name != c.name {
			t.Errorf("%s: sweeps %+v", c.of, x.Sweeps)
			continue
		}
		if knee := x.Sweeps[0].Knee; (knee >= 0) && c.of != compare.QueueDepth {
			t.Errorf("%s: knee at %d", c.of, knee)
		}
	}
}
