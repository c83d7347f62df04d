package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

// counted ends the name of a workload that tells by how many it was done.
var counted = lazyregexp.New(` \d+ (clients?|VU)\b`)

// paired are the sides with imported workloads called alike that differ in how many were at work: one test of 2 clients
// is set against one of 8, whose number is a fact. Where a run holds tests of several numbers the names stay.
func paired(sides []Side) []Side {
	out := slices.Clone(sides)
	for i := range out {
		out[i].Runs = slices.Clone(out[i].Runs)
		for k, r := range out[i].Runs {
			names := map[string]string{} // by the short one
			for _, w := range merged(r.Data, false) {
				short := counted.ReplaceAllString(w.Name, "")
				if r.Manifest.Target != result.ImportTarget || names[short] != "" {
					return sides
				}
				names[short] = w.Name
			}
			data := *r.Data
			data.Workloads = slices.Clone(data.Workloads)
			for n := range data.Workloads {
				data.Workloads[n].Name = counted.ReplaceAllString(data.Workloads[n].Name, "")
			}
			r.Manifest.Environment = slices.Clone(r.Manifest.Environment)
			for n, f := range r.Manifest.Environment {
				r.Manifest.Environment[n].Group = counted.ReplaceAllString(f.Group, "")
			}
			r.Data = &data
			out[i].Runs[k] = r
		}
	}
	return out
}

// seen are facts of an imported workload by what it did, where its file does not say what was asked.
func seen(r Run, w result.Workload) (list []entry) {
	if r.Manifest.Target != result.ImportTarget {
		return nil
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(r.Manifest.Environment, func(f result.Fact) bool {
			return f.Group == w.Name &&
				slices.ContainsFunc(words, func(s string) bool { return strings.Contains(f.Name, s) })
		})
	}
	var kinds []string
	done := map[result.Block]float64{} // by kind
	for _, t := range w.Ops {
		o := operationOf(w, t.Op)
		if (o.Block != result.BlockRead && o.Block != result.BlockWrite) || t.Count == 0 {
			continue
		}
		kinds = append(kinds, o.Name)
		done[o.Block] += float64(t.Count)
		if size := float64(t.Bytes) / float64(t.Count); size > 0 && !says("size", "record") {
			// Coarse, so that a mix of sizes is like itself.
			list = append(list, entry{name: w.Name + " size of a " + o.Name, of: w.Name, refuses: true,
				value: fmt.Sprintf("about %.0f bytes", math.Exp2(math.Round(4*math.Log2(size))/4))})
		}
	}
	mixed := slices.ContainsFunc(r.Manifest.Environment, func(f result.Fact) bool {
		return f.Group == w.Name && f.Name == "pattern" && strings.Contains(f.Value, "rw") &&
			!strings.Contains(f.Value, "|")
	})
	if mixed && !says("mix") {
		share := done[result.BlockRead] / (done[result.BlockRead] + done[result.BlockWrite])
		list = append(list, entry{name: w.Name + " mix", of: w.Name, refuses: true,
			value: fmt.Sprintf("about %.0f %% reads", 5*math.Round(20*share))})
	}
	if w.Latency != "" {
		list = append(list, entry{name: w.Name + " times", of: w.Name, value: w.Latency, refuses: true})
	}
	if slices.Sort(kinds); len(kinds) > 0 && !says("pattern") {
		list = append(list, entry{name: w.Name + " operations", of: w.Name, value: strings.Join(kinds, ", "),
			refuses: true})
	}
	return list
}

// strangers is the fact that no workload is on both sides, which leaves nothing to compare.
func strangers(sides []Side) []Fact {
	f := Fact{Name: "workloads", Refuses: true}
	var all [][]string
	for _, s := range sides {
		var names []string
		for _, r := range s.Runs {
			for _, w := range merged(r.Data, false) {
				if !slices.Contains(names, w.Name) {
					names = append(names, w.Name)
				}
			}
		}
		slices.Sort(names)
		all, f.Values = append(all, names), append(f.Values, strings.Join(names, ", "))
	}
	for i, names := range all {
		if len(names) == 0 ||
			i > 0 && slices.ContainsFunc(names, func(n string) bool { return slices.Contains(all[0], n) }) {
			return nil
		}
	}
	return []Fact{f}
}
