package cli

import (
	"bytes"
	"strings"
	"text/template"
)

// dbScenario is the scenario of one load on a database, on a VM with so many processors and so much memory.
type dbScenario struct {
	Load, Engine, Summary string
	Seconds, Estimated    int
	CPUs                  int
	MemoryMB              int64
	Fill                  bool // its tables are made before
	Factors               []dbFactor
	Varies                bool // it is an experiment
	Repeats               int
	OfferedRate           bool   // the variable rate is an option where it is above 0
	Server                string // settings of the run's server, by variables
}

// encode writes the scenario as a file. An encoder of YAML would quote {{ runtime_secs }}, which is a text then and no
// number.
func (sc dbScenario) encode() ([]byte, error) {
	var b bytes.Buffer
	err := dbScenarioFile.Execute(&b, sc)
	return b.Bytes(), err
}

var dbScenarioFile = template.Must(template.New("test.yml").Delims("[[", "]]").Funcs(template.FuncMap{
	"join": func(list []string) string { return strings.Join(list, ", ") },
}).Parse(`name: db_[[.Load]]
display_name: "[[.Load]]"
summary: "One load on a database: [[.Summary]]."
description: >-
  <p>The tables are made where they are not there yet. Then the load runs, from the machine that the server runs on
  unless the config names another one.</p>
estimated_runtime: [[.Estimated]]
tags: [database]

vars:
  runtime_secs:
    default: [[.Seconds]]
    min: 1
    description: How long the load is measured, in seconds.
[[- range .Factors]]
  [[.Variable]]:
    default: [[index .Values 0]]
    description: [[.What]]
[[- end]]
[[- if .Varies]]

experiment:
[[- range $i, $x := .Factors]]
[[- if eq $i 0]]
  factors:
[[- end]]
    [[$x.Variable]]: [ [[- join $x.Values -]] ]
[[- end]]
  repeats: [[.Repeats]]
  order: randomised
[[- end]]

vms:
  - Database:
      template: ubuntu1604
      vcpus: [[.CPUs]]
      ram_mb: [[.MemoryMB]]
      data_disks: {count: 1, size: 1}
      nodes: "0"
      count_per_cluster: 1

workloads:
  - "[[.Load]]":
      vm_group: Database
      generator: [[.Engine]]
      config_file: load.yml
[[- if .OfferedRate]]
{% if rate > 0 %}      job_options:
        rate: {{ rate }}
{% endif %}
[[- else if .Factors]]
      job_options:
[[- range .Factors]][[if .Key]]
        [[.Key]]: {{ [[.Variable]] }}
[[- end]][[end]]
[[- with .Server]]
        server: "{settings: {[[.]]}}"
[[- end]]
[[- end]]
      iogen_params: {reporting_interval: 1}

setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: Database, power_on: True}
[[- if .Fill]]
  - workload.PrefillRun: {workload_name: "[[.Load]]"}
[[- end]]

run:
  - workload.Start: {workload_name: "[[.Load]]", runtime_secs: {{ runtime_secs }}, annotate: True}

teardown:
  - cluster.CleanUp: {}

results:
  - Transactions:
      title: Transactions per second
      workload_name: "[[.Load]]"
      result_type: iops
      aggregate: sum
      step: 1s
      result_hint: Higher is better, and level is better than high.
      report_group: performance
      report_metrics: [Median, Variability]
  - Errors:
      title: Transactions that failed
      workload_name: "[[.Load]]"
      result_type: errors
      aggregate: sum
      step: 1s
      result_hint: Must stay at zero.
      report_group: performance
      report_metrics: [AnyFail]
`))
