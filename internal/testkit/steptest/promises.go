package steptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/tabwriter"
	"time"

	"plimsoll/result"
	"plimsoll/scenario"
)

// Promises does every step of the language in the run phase, once asked for annotations and once not, each time in a
// fresh place with both groups powered on, and returns a table: what it needs, the argument that limits it, whether it
// can go on in the background, how many annotations it makes, and that a scenario in which it is about a group,
// workload or node that does not exist is refused.
func Promises(t *testing.T, factory Factory) []byte {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "step\tlimit\tbackground\tannotations if asked\tif not\twrong object\n")
	for _, spec := range scenario.Steps() {
		asked := "-"
		if hasArg(spec, "annotate") {
			asked = fmt.Sprint(annotations(t, factory, spec, true))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", spec.Name, limitOf(spec), yes(hasArg(spec, "async")), asked,
			annotations(t, factory, spec, false), standsBack(t, spec))
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "-"
}

func hasArg(spec scenario.StepSpec, name string) bool {
	return slices.ContainsFunc(spec.Args, func(row scenario.ArgSpec) bool { return row.Name == name })
}

// limitOf is the argument that bounds a step, with its default.
func limitOf(spec scenario.StepSpec) string {
	for _, row := range spec.Args {
		if !slices.Contains([]string{"timeout", "timeout_secs", "wait_secs"}, row.Name) {
			continue
		}
		if seconds, ok := row.Default.(float64); ok {
			return fmt.Sprintf("%s %v", row.Name, time.Duration(seconds*float64(time.Second)))
		}
		return row.Name
	}
	return "-"
}

// annotations does a step and counts what it annotates.
func annotations(t *testing.T, factory Factory, spec scenario.StepSpec, asked bool) int {
	t.Helper()
	b := open(t, factory(t))
	a := example(spec)
	switch spec.Name {
	case "vm_group.CloneFromTemplate":
		a["power_on"] = false
	case "playbook.Run":
		a["filename"] = "p.yml"
	case "experimental.Shell":
		a["cmd"] = "exit 0"
	}
	if spec.Name != "vm_group.CloneFromTemplate" {
		b.machines()
	}
	switch spec.Name {
	case "workload.Wait", "workload.Stop":
		b.do("workload.Start", args{"workload_name": "W", "runtime_secs": 2.0, "async": true})
	case "workload.PrefillWait":
		b.do("workload.PrefillStart", args{"workload_name": "W", "async": true})
	case "nodes.WaitForPowerOff":
		b.do("nodes.PowerOff", args{"nodes": nodes("1"), "wait_secs": 0.0})
	}
	if hasArg(spec, "annotate") {
		a["annotate"] = asked
	}
	before := b.seen(result.KindAnnotation, "")
	b.do(spec.Name, a)
	n := b.seen(result.KindAnnotation, "") - before
	b.close()
	return n
}

// standsBack writes a step with a group, workload or node that does not exist into a scenario and loads that.
func standsBack(t *testing.T, spec scenario.StepSpec) string {
	t.Helper()
	a := example(spec)
	wrong := ""
	for _, name := range []string{"vm_group_name", "workload_name", "nodes", "node_index", "node_count"} {
		if wrong == "" && hasArg(spec, name) {
			a[name], wrong = 99, name
		}
	}
	if wrong == "" {
		return "-"
	}
	if s, ok := a["nodes"].(scenario.Selector); ok {
		a["nodes"] = s.Text
	}
	written, err := json.Marshal(map[string]scenario.Args{spec.Name: a})
	if err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(text, "  - test.Wait: {duration_secs: 1}\n", "  - "+string(written)+"\n", 1)
	files := fstest.MapFS{"test.yml": {Data: []byte(file)}, "w.fio": {Data: []byte(jobs)}}
	_, found := scenario.Load(files, scenario.LoadOptions{ID: 1, Nodes: 3})
	for _, d := range found {
		if d.Severity == scenario.Error && strings.Contains(d.What, "99") {
			return "refused"
		}
	}
	t.Errorf("%s of %s 99 is accepted: %v", spec.Name, wrong, found)
	return "accepted"
}
