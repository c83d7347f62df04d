package analysis

import (
	"slices"
	"strings"

	"plimsoll/internal/analysis/scale"
	"plimsoll/internal/analysis/scaling"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// scalability asks how throughput grows with the stages of a run's load or, of imported files, with the tests in them.
var scalability = view.Check{Name: scale.Scalability.Name, Rank: scale.Scalability.Rank,
	Run: func(v *view.Run) []result.Finding {
		if v.Manifest.Target == result.ImportTarget {
			return testsCurve([]Repeat{{v.Manifest, v.Data}})
		}
		return scale.Scalability.Run(v)
	}}

// fewestTests is how many different concurrencies a curve of tests takes at least.
const fewestTests = 4

// apart splits kinds whose tests are a grid, such as iodepth by numjobs, into a kind for each value of one of the two.
func apart(order []string, kinds map[string][]scaling.Test) (out []string) {
	for i := 0; i < len(order); i++ {
		like, made := order[i], []map[string]string(nil)
		for _, t := range kinds[like] {
			made = append(made, t.At)
		}
		by := scaling.Grid(made)
		if by == "" {
			out = append(out, like)
			continue
		}
		for _, t := range kinds[like] {
			t.Kind += " (" + by + " " + t.At[by] + ")"
			t.Like += "\n" + by + " " + t.At[by]
			if kinds[t.Like] == nil {
				order = append(order, t.Like)
			}
			kinds[t.Like] = append(kinds[t.Like], t)
		}
	}
	return out
}

// testsCurve reads the tests of imported files that were asked alike but for how many were at work at once: a curve for
// each kind. Tests that were held back, or did not end as planned, are points of none.
func testsCurve(runs []Repeat) (out []result.Finding) {
	var order []string
	kinds := map[string][]scaling.Test{}
	for _, r := range runs {
		if r.Manifest.Target != result.ImportTarget || r.Data == nil {
			continue
		}
		for _, t := range scaling.Tests(r.Manifest, r.Data) {
			if kinds[t.Like] == nil {
				order = append(order, t.Like)
			}
			kinds[t.Like] = append(kinds[t.Like], t)
		}
	}
	order = apart(order, kinds)
	order = slices.DeleteFunc(order, func(like string) bool {
		levels := map[float64]bool{}
		for _, t := range kinds[like] {
			levels[t.Concurrency] = true
		}
		return len(levels) < fewestTests
	})
	for _, like := range order {
		first, s, timed := kinds[like][0], Sweep{}, true
		for _, t := range kinds[like] {
			s.Concurrency, s.Throughput = append(s.Concurrency, t.Concurrency), append(s.Throughput, t.Throughput)
			s.ResponseSeconds = append(s.ResponseSeconds, t.ResponseSeconds)
			timed = timed && t.ResponseSeconds > 0
		}
		q := view.OperationsRate(first.Operations)
		if first.Metric != "" {
			q = view.Quantity{Measure: first.Metric, Name: first.Metric, Unit: first.Metric, Per: first.Metric,
				Kind: result.Level, Better: result.Higher}
		}
		found, _ := s.findings("imported test", "", q)
		for _, f := range found {
			if f.Check == "load-curve" && !timed {
				continue // without times there is no knee
			}
			if f.Rank = scale.Scalability.Rank; len(order) > 1 {
				f.Subject = first.Kind
				for _, what := range []string{"Throughput", "Mean service time", q.Name} {
					if rest, ok := strings.CutPrefix(f.Sentence, what); ok {
						f.Sentence = what + " of " + first.Kind + rest
					}
				}
			}
			out = append(out, f)
		}
	}
	return out
}
