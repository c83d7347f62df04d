package plan_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/targets/sim"
	"plimsoll/scenario"
)

// What a plan says of a start by what its job file and its step say, where nothing can tell how long load takes and
// where something can.
func TestWhatCanBeSaid(t *testing.T) {
	const size = "[j]\nfilename=/dev/sdb\nrw=write\nbs=1m\nsize=1g\n"
	type said struct {
		Text    string
		Seconds float64
		Unknown bool
	}
	cases := []struct {
		name, file, args string
		author           int
		here, sim        said
	}{
		{"only the job file has a runtime", size + "runtime=60\ntime_based\n", "", 300,
			said{"for 1 min, as its job file says", 60, false}, said{"for 1 min, as its job file says", 60, false}},
		{"the job file's wins", size + "runtime=60\ntime_based\n", ", runtime_secs: 20", 300,
			said{"for 1 min, as its job file says", 60, false}, said{"for 1 min, as its job file says", 60, false}},
		{"the step's", size + "time_based\n", ", runtime_secs: 20", 300, said{"for 20 s", 20, false},
			said{"for 20 s", 20, false}},
		{"a size, bounded by the job file", size + "runtime=60\n", "", 300,
			said{"until its size is done, 1 min at most, as its job file says", 60, true},
			said{"until its size is done, 1 min at most, as its job file says", 5, false}},
		{"a size and a limit", size, ", timeout_secs: 900", 3600, said{"until its size is done", 900, true},
			said{"until its size is done", 5, false}},
		{"a size within the author's estimate", size, ", timeout_secs: 900", 103,
			said{"until its size is done", 100, true}, said{"until its size is done", 5, false}},
	}
	world := sim.New(sim.Options{})
	forecaster, _ := world.Target().(workload.Forecaster)
	for _, c := range cases {
		files := fstest.MapFS{"j.fio": {Data: []byte(c.file)}, "test.yml": {Data: []byte(strings.NewReplacer(
			"ARGS", c.args, "AUTHOR", strconv.Itoa(c.author)).Replace(`name: said
display_name: Said
summary: s
description: d
estimated_runtime: AUTHOR
vms: [{G: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 1, size: 2}, count_per_cluster: 1}}]
workloads: [{W: {vm_group: G, config_file: j.fio}}]
results: []
setup: [vm_group.CloneFromTemplate: {vm_group_name: G, power_on: True}]
run: [workload.Start: {workload_name: WARGS}]
teardown: []
`))}}
		sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: 1, Now: time.Unix(1, 0), Nodes: 4})
		if sc == nil {
			t.Fatal(diagnostics)
		}
		got := func(o plan.Options) said {
			o.Engines = engines
			p, err := plan.Build(sc, everything(), o)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := p.Text(&text); err != nil {
				t.Fatal(err)
			}
			s := p.Steps[len(p.Steps)-1]
			if p.EstimateUnknown != s.EstimateUnknown ||
				strings.Contains(text.String(), "cannot be said") != s.EstimateUnknown ||
				strings.Contains(text.String(), " ? ") != s.EstimateUnknown || strings.Contains(text.String(), "0 ns") {
				t.Errorf("%s: %+v in\n%s", c.name, s, &text)
			}
			_, words, _ := strings.Cut(s.Text, `group "G" `)
			return said{words, float64(time.Duration(s.EstimateSeconds*1e9).Round(time.Second) / time.Second),
				s.EstimateUnknown}
		}
		if diff := cmp.Diff(c.here, got(plan.Options{})); diff != "" {
			t.Errorf("%s: nothing can tell: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.sim, got(plan.Options{Forecaster: forecaster})); diff != "" {
			t.Errorf("%s: rehearsed: %s", c.name, diff)
		}
	}
}
