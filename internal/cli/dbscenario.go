package cli

import (
	"bytes"
	"strings"
	"text/template"
)

// dbScenario is the scenario of one load on a database, on a VM with so many processors and so much memory.
type dbScenario struct {
	Load, Engine, Summary string
	Seconds, CPUs         int
	MemoryMB              int64
	Fill                  bool // its tables are made before
	Vars                  []dbVariable
	Options               []dbPair // of the load's config, by variables
	OfferedRate           bool     // the variable rate is an option where it is above 0
	Server                string   // settings of the run's server, by variables
	Factors               []dbFactor
	Repeats               int
}

type dbVariable struct{ Name, Default, What string }

type dbPair struct{ Key, Variable string }

// Varies reports whether the scenario is an experiment.
func (sc dbScenario) Varies() bool { return len(sc.Factors) > 0 || sc.Repeats > 1 }

// List is a factor's values as YAML has a list.
func (x dbFactor) List() string { return strings.Join(x.values, ", ") }

// Variable is the factor's name.
func (x dbFactor) Variable() string { return x.variable }

// encode writes the scenario as a file. An encoder of YAML would quote {{ runtime_secs }}, which is a text then and no
// number.
func (sc dbScenario) encode() ([]byte, error) {
	sc.Repeats = max(sc.Repeats, 1)
	var b bytes.Buffer
	err := dbScenarioFile.Execute(&b, sc)
	return b.Bytes(), err
}

var dbScenarioFile = template.Must(template.New("test.yml").Delims("[[", "]]").Parse(`name: db_[[.Load]]
display_name: "[[.Load]]"
summary: "One load on a database: [[.Summary]]."
description: >-
  <p>The tables are made where they are not there yet. Then the load runs, from the machine that the server runs on
  unless the config names another one.</p>
estimated_runtime: [[.Estimate]]
tags: [database]

vars:
  runtime_secs:
    default: [[.Seconds]]
    min: 1
    description: How long the load is measured, in seconds.
[[- range .Vars]]
  [[.Name]]:
    default: [[.Default]]
    description: [[.What]]
[[- end]]
[[- if .Varies]]

experiment:
[[- range $i, $x := .Factors]]
[[- if eq $i 0]]
  factors:
[[- end]]
    [[$x.Variable]]: [ [[- $x.List -]] ]
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
[[- else if or .Options .Server]]
      job_options:
[[- range .Options]]
        [[.Key]]: {{ [[.Variable]] }}
[[- end]]
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

// Estimate is how long a run takes, tables and server included, in seconds.
func (sc dbScenario) Estimate() int { return sc.Seconds + 600 }
