// Package scaling takes points of throughput at growing concurrency from what was measured: the stages of a run's load,
// the runs of an experiment, tests that were imported. What fits a law to them is usl.
package scaling

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/stage"
	"plimsoll/internal/analysis/usl"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

// Stages are the stages of a run's load as points.
func Stages(data *result.Data, metric string) (points []usl.Point) {
	for _, s := range stage.Of(data, metric) {
		points = append(points, usl.Point{Concurrency: s.Concurrency, Throughput: s.Throughput.Value})
	}
	return points
}

// Runs are the runs of an experiment as points: what all VMs of a run did, at the depth they declared.
func Runs(runs []compare.Run, metric string) []usl.Point {
	var points []usl.Point
	for _, r := range runs {
		var p usl.Point
		for _, w := range r.Data.Workloads {
			if seconds := w.Seconds(); !w.Merged() && !w.Prefill && w.Phase == "run" && seconds > 0 {
				p.Throughput += throughput(w, metric, seconds)
				for _, l := range w.Streams {
					p.Concurrency += float64(max(l.Depth, 1))
				}
			}
		}
		points = append(points, p)
	}
	return points
}

// Imported are the tests of imported files that say how many were at work at once: virtual users, threads. There
// are none unless they say different numbers, and no curve of tests that were asked unlike things besides.
func Imported(m result.Manifest, data *result.Data, metric string) (points []usl.Point, err error) {
	levels := map[float64]bool{}
	first := map[string]result.Fact{}
	var alike []string // what the first one did
	var of string
	var unlike error
	var made []map[string]string
	for _, f := range m.Imported {
		i := slices.IndexFunc(data.Workloads, func(w result.Workload) bool {
			return w.VM == f.VM && w.Name == f.Workload && w.Seconds() > 0
		})
		if f.Concurrency <= 0 || i < 0 {
			continue
		}
		w := data.Workloads[i]
		x := throughput(w, metric, w.Seconds())
		if x <= 0 {
			continue
		}
		points = append(points, usl.Point{Concurrency: f.Concurrency, Throughput: x})
		levels[f.Concurrency] = true
		made = append(made, madeOf(m.Environment, f.Workload))
		if did := done(w); alike == nil {
			alike, of = did, w.Name
		} else if metric == "" && unlike == nil && !slices.ContainsFunc(did, func(op string) bool {
			return slices.Contains(alike, op)
		}) {
			unlike = fmt.Errorf("its tests are no curve of one load: %s did %s, and %s %s", of,
				strings.Join(alike, ", "), w.Name, strings.Join(did, ", "))
		}
		for _, fact := range m.Environment {
			if fact.Group != f.Workload || slices.Contains(concurrencyFacts, fact.Name) {
				continue
			}
			one, ok := first[fact.Name]
			if !ok {
				first[fact.Name] = fact
			} else if one.Value != fact.Value && unlike == nil {
				unlike = fmt.Errorf("its tests are no curve of one load: the %s of %s is %q, of %s %q", fact.Name,
					one.Group,
					one.Value, fact.Group, fact.Value)
			}
		}
	}
	if len(levels) < 2 {
		return nil, nil
	}
	if by := Grid(made); by != "" && unlike == nil {
		unlike = fmt.Errorf("its tests are no curve of one load, for what makes their concurrency is a grid: keep the tests "+
			"of one %s", by)
	}
	return points, unlike
}

// madeOf are the facts of a test of which its concurrency is made.
func madeOf(facts []result.Fact, workload string) map[string]string {
	out := map[string]string{}
	for _, f := range facts {
		if f.Group == workload && slices.Contains(concurrencyFacts, f.Name) && f.Name != "concurrency" {
			out[f.Name] = f.Value
		}
	}
	return out
}

// Grid is the fact by which tests must be told apart before they are a curve, since two facts of which concurrency is
// made vary each beside the other; of the two the one of fewer values. It is "" where they are none.
func Grid(made []map[string]string) string {
	values := func(name string) (n int) {
		seen := map[string]bool{}
		for _, m := range made {
			seen[m[name]] = true
		}
		return len(seen)
	}
	beside := func(one, other string) bool { // one varies while other stays
		at := map[string]string{}
		for _, m := range made {
			if was, ok := at[m[other]]; ok && was != m[one] {
				return true
			}
			at[m[other]] = m[one]
		}
		return false
	}
	for i, one := range concurrencyFacts {
		for _, other := range concurrencyFacts[i+1:] {
			if beside(one, other) && beside(other, one) {
				if values(one) < values(other) {
					return one
				}
				return other
			}
		}
	}
	return ""
}

// Test is a test of an imported file that says how many were at work at once.
type Test struct {
	Kind            string            // its name, without the file and the number that tell it from others
	Like            string            // what must be equal for two tests to be points of one curve
	At              map[string]string // its concurrency by the facts that it is made of, such as iodepth and numjobs
	Metric          string            // what its throughput is of, "" of all its operations
	Operations      []result.Operation
	Concurrency     float64
	Throughput      float64
	ResponseSeconds float64 // the mean time of its operations, 0 where it is not known
}

// held reports whether a fact of a test says that it offered less than could be had: a rate, pauses in between.
func held(f result.Fact) bool {
	return f.Name == "rate" && f.Value != "none" && !strings.Contains(f.Value, "MAX") ||
		f.Name == "thinktime" && f.Value != "none"
}

// Held says by what the tests of imported files were held back, "" where nothing is known that did.
func Held(m result.Manifest) string {
	i := slices.IndexFunc(m.Environment, func(f result.Fact) bool {
		return held(f) && slices.ContainsFunc(m.Imported, func(t result.Imported) bool { return t.Workload == f.Group })
	})
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("the %s of %s is %s", m.Environment[i].Name, m.Environment[i].Group, m.Environment[i].Value)
}

// Tests are those of imported files that are points of a curve: they ended as planned, and were not held back.
func Tests(m result.Manifest, data *result.Data) (out []Test) {
	metric, _, ok := Metric(data, "")
	if !ok {
		return nil
	}
	for _, f := range m.Imported {
		i := slices.IndexFunc(data.Workloads, func(w result.Workload) bool {
			return w.VM == f.VM && w.Name == f.Workload && w.Seconds() > 0
		})
		if f.Concurrency <= 0 || i < 0 || !data.Workloads[i].Ended.Planned() {
			continue
		}
		w := data.Workloads[i]
		t := Test{Metric: metric, Concurrency: f.Concurrency, Throughput: throughput(w, metric, w.Seconds())}
		t.Kind, _, _ = strings.Cut(w.Name, " of ")
		t.Kind = numbered.ReplaceAllString(t.Kind, "")
		t.Like = strings.Join(done(w), " ")
		t.At = madeOf(m.Environment, f.Workload)
		back := false
		for _, fact := range m.Environment {
			if fact.Group != f.Workload || slices.Contains(concurrencyFacts, fact.Name) {
				continue
			}
			t.Like += "\n" + fact.Name + " " + fact.Value
			back = back || held(fact)
		}
		if t.Throughput <= 0 || back {
			continue
		}
		var n uint64
		sum := 0.0
		for _, o := range w.Ops {
			if op, ok := w.Operation(o.Op); ok && o.Count > 0 {
				t.Operations = append(t.Operations, op)
			}
			n, sum = n+o.Count, sum+o.Seconds
		}
		if metric == "" && n > 0 && w.Latency == "service time" {
			t.ResponseSeconds = sum / float64(n)
		}
		out = append(out, t)
	}
	return out
}

var numbered = lazyregexp.New(` \(\d+\)$| \d+ (?:VU|clients?)$| threads=\d+$`)

// done are the operations that a test did.
func done(w result.Workload) (out []string) {
	for _, t := range w.Ops {
		if t.Count > 0 {
			out = append(out, t.Op)
		}
	}
	return out
}

// concurrencyFacts are those of imported tests that a curve is over, or that follow from it.
var concurrencyFacts = []string{"concurrency", "iodepth", "numjobs", "threads", "threads of each SD", "outstanding",
	"processes", "tasks", "nodes", "aggregate filesize"}

// Metric is the metric of a run to fit: the one asked for, "" for all operations, or, where none are counted, the first
// measure of which more is better. It is not ok when the one asked for is none of those known.
func Metric(data *result.Data, asked string) (metric string, known []string, ok bool) {
	first, counted := "", false
	add := func(s result.Series, higher bool) {
		if name := s.Metric(); !slices.Contains(known, name) {
			known = append(known, name)
			if first == "" && higher && s.Op == "" {
				first = name
			}
		}
	}
	for _, w := range data.Workloads {
		if w.Prefill {
			continue
		}
		for _, o := range w.Operations {
			add(result.Series{Op: o.Name, Measure: result.Rate, Unit: o.RateUnit()}, true)
		}
		for _, m := range w.Measures {
			if m.Kind != result.Single {
				add(result.Series{Measure: m.Name}, m.Better == result.Higher)
			}
		}
		counted = counted || len(w.Ops) > 0
	}
	switch {
	case asked == "" && !counted:
		return first, known, true
	case asked == "" || slices.Contains(known, asked):
		return asked, known, true
	}
	return "", known, false
}

// throughput returns what a workload did of a metric, per second where it is a count; "" stands for all its operations.
func throughput(w result.Workload, metric string, seconds float64) (sum float64) {
	for _, t := range w.Ops {
		o, _ := w.Operation(t.Op)
		if metric == "" || metric == (result.Series{Op: t.Op, Measure: result.Rate, Unit: o.RateUnit()}).Metric() {
			sum += float64(t.Count) / seconds
		}
	}
	for _, m := range w.Measures {
		if v, ok := m.Over(w.Values, seconds); ok && m.Name == metric {
			sum += v
		}
	}
	return sum
}
