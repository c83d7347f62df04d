package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/scenario"
)

const extended = `name: x
display_name: x
summary: x
description: ""
estimated_runtime: 10
vars:
  block_size: {default: 4k}
  depth: {default: 1, min: 1}
vms:
  - G: {template: t, count_per_node: 1, data_disks: {count: 1, size: 4}}
workloads:
  - W:
      vm_group: G
      config_file: w.fio
      job_options: {bs: "{{ block_size }}", iodepth: {{ depth }}, direct: True}
  - Plain: {vm_group: G, config_file: w.fio}
results:
  - Rate: {workload_name: W, result_type: iops}
assert:
  - quick: {workload: W, operation: read, measure: p99, at_most: 0.01}
  - kept: {result: Rate, at_least: 100}
  - calm: {finding: offered-rate, severity: Blocker}
  - all there: {query: 'count(up{__curie_filter_scenario__})', at_least: 2, at_most: 2}
experiment:
  factors:
    block_size: [4k, 64k]
    depth: [1, 8, 32]
  repeats: 4
  order: interleaved
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: G, power_on: True}
run:
  - workload.Start: {workload_name: W, runtime_secs: 5}
  - workload.Start: {workload_name: Plain, runtime_secs: 5}
teardown:
  - cluster.CleanUp: {}
`

func TestExtensions(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"test.yml": {Data: []byte(extended)},
		"w.fio": {Data: []byte("[global]\nrw=randread\ntime_based\n[a]\nfilename=/dev/sdb\nsize=1G\nbs=8k\n[b]\n" +
			"filename=/dev/sdb\nsize=1G\n")},
	}
	sc, diags := loadAll(fsys, scenario.LoadOptions{Set: map[string]any{"depth": 8}})
	if sc == nil {
		t.Fatal(diags)
	}
	one, hundred, two := 0.01, 100.0, 2.0
	wantAsserts := []scenario.Assert{
		{Name: "quick", Workload: "W", Operation: "read", Measure: "p99", Statistic: "mean", Severity: "warning",
			AtMost: &one},
		{Name: "kept", Result: "Rate", Operation: "all", Statistic: "mean", Severity: "warning", AtLeast: &hundred},
		{Name: "calm", Finding: "offered-rate", Operation: "all", Statistic: "mean", Severity: "invalid"},
		{Name: "all there", Query: "count(up{__curie_filter_scenario__})", Operation: "all", Statistic: "mean",
			Severity: "warning", AtLeast: &two, AtMost: &two},
	}
	noPos := cmpopts.IgnoreTypes(scenario.Pos{})
	if diff := cmp.Diff(wantAsserts, sc.Asserts, noPos); diff != "" {
		t.Error(diff)
	}
	wantExperiment := &scenario.Experiment{Repeats: 4, Order: "interleaved", Seed: 1, Factors: []scenario.Factor{
		{Name: "block_size", Levels: []any{"4k", "64k"}},
		{Name: "depth", Levels: []any{int64(1), int64(8), int64(32)}}}}
	if diff := cmp.Diff(wantExperiment, sc.Experiment, noPos); diff != "" || sc.Experiment.Runs() != 24 {
		t.Errorf("%d runs\n%s", sc.Experiment.Runs(), diff)
	}
	want := []scenario.Setting{{Key: "bs", Value: "4k"}, {Key: "direct", Value: "1"}, {Key: "iodepth", Value: "8"}}
	if diff := cmp.Diff(want, sc.Workloads[0].Settings); diff != "" {
		t.Error(diff)
	}
	for _, w := range sc.Workloads { // which stay beside the author's file
		if string(w.Config) != string(fsys["w.fio"].Data) || w.Name == "Plain" && w.Settings != nil {
			t.Errorf("%s has settings %v and the file\n%s", w.Name, w.Settings, w.Config)
		}
	}
}

func TestStrictNamesExtensions(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"test.yml": {Data: []byte(extended)},
		"w.fio": {Data: []byte("[global]\nrw=read\ntime_based\n[a]\nfilename=/dev/sdb\nsize=1G\n")}}
	_, diags := loadAll(fsys, scenario.LoadOptions{Strict: true})
	n := 0
	for _, d := range diags {
		if d.Code == "extension" {
			n++
			if d.Line == 0 {
				t.Errorf("no place: %v", d)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d extensions named, want 3: %v", n, diags)
	}
}

// Options of a workload go into its job file as they are, or not at all.
func TestJobOptionsThatWouldBeOthers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 8179) + "exec_prerun=touch x"
	for option, want := range map[string]string{
		`description: "` + long +
			`"`: `"description": the line has 8210 bytes; fio reads lines of up to 4095`,
		`description: "a\nexec_prerun=touch x"`: `"description": it would be read as something else in a job file`,
		`description: "a\rexec_prerun=touch x"`: `"description": "\r" cannot be part of a job file; write plain text`,
		`"description=a\nexec_prerun": touch x`: `"description=a\nexec_prerun": it would be read as something else in a job file`,
		`"[x]": 1`:                              `"[x]": it would be read as something else in a job file`,
		`"[x]\nexec_prerun": touch x`:           `"[x]\nexec_prerun": it would be read as something else in a job file`,
		`bs: "4k;8k"`:                           `"bs": it would be read as something else in a job file`,
		`bs: "4k\0"`:                            `"bs": a zero byte: this is not a text file, or one of UTF-16; save it as UTF-8`,
		`bs: ""`:                                `"bs" cannot be the text ""`,
	} {
		text := strings.Replace(extended, `{bs: "{{ block_size }}", iodepth: {{ depth }}, direct: True}`,
			"{"+option+"}", 1)
		fsys := fstest.MapFS{"test.yml": {Data: []byte(text)},
			"w.fio": {Data: []byte("[global]\ntime_based\n[a]\nfilename=/dev/sdb\nsize=1G\n")}}
		_, diags := loadAll(fsys, scenario.LoadOptions{Set: map[string]any{"depth": 8}})
		found := slices.ContainsFunc(diags, func(d scenario.Diagnostic) bool {
			return d.Code == "bounds" && d.Line == 15 && strings.Contains(d.What, "job_options: "+want)
		})
		if !found {
			t.Errorf("%.60s: %.300s", option, fmt.Sprint(diags))
		}
	}
}
