package dashboards

// run is the dashboard of what runs measure, which plimsoll serve has.
func run() Dashboard {
	const (
		ofRun    = `run=~"$run"`
		sel      = ofRun + `,workload=~"$workload",instance=~"$vm",prefill=""`
		byLoad   = "{{workload}} {{op}}"
		rate     = `rate(plimsoll_workload_`
		measured = "Service times: from an operation's actual send to its end, by native histograms, within 9.05 %; the " +
			"percentiles of reports are finer."
	)
	quantile := func(q, by string) string {
		return `histogram_quantile(` + q + `, sum by (` + by + `) (` + rate + `service_time_seconds{` + sel +
			`}[$__rate_interval])))`
	}
	over := func(metric, labels, by string) string {
		return `sum by (` + by + `) (rate(` + metric + `{` + labels + `}[$__rate_interval]))`
	}
	return Dashboard{Name: "run", Title: "Run overview", refresh: "5s",
		Help: "What one run of plimsoll serve does or did: operations, bytes, service times and errors of any load " +
			"generator, and what VMs and machines counted meanwhile. Set the time to the run's, which its page says.",
		variables: []variable{
			{
				name:   "run",
				label:  "Run",
				query:  "label_values(plimsoll_workload_ops_total, run)",
				one:    true,
				newest: true,
				help:   "The newest is first.",
			},
			choice("workload", "Workload", `plimsoll_workload_ops_total{`+ofRun+`,prefill=""}`),
			{name: "vm", label: "VM", query: `label_values(plimsoll_workload_ops_total{` + ofRun + `}, instance)`},
		},
		marks: []annotation{ // a point in the step after the moment, and no other
			{"Fault", "red", `present_over_time(plimsoll_event{` + ofRun + `,kind="fault"}[15s])`},
			{"Stretch", "blue", `present_over_time(plimsoll_event{` + ofRun + `,kind="stretch"}[15s])`},
		},
		rows: []row{
			{"Now", []panel{
				number("Operations", "ops", "Operations per second of all workloads, prefills left out.",
					`sum(`+rate+`ops_total{`+sel+`}[$__rate_interval]))`),
				number(
					"Bandwidth, all",
					"binBps",
					"Bytes per second of all workloads; 0 where a generator counts none.",
					`sum(`+rate+`bytes_total{`+sel+`}[$__rate_interval]))`,
				),
				number("Service time, p99", "s", measured, `max(`+quantile("0.99", "workload, op")+`)`),
				number("Errors so far", "short", "Operations that failed, since the run began.",
					`sum(plimsoll_workload_errors_total{`+sel+`})`).to(0, 1, 1),
			}},
			{"Workloads", []panel{
				chart("Throughput", "ops", "Operations per second, by workload and kind of operation.",
					query{over("plimsoll_workload_ops_total", sel, "workload, op"), byLoad}),
				chart("Bandwidth", "binBps", "Bytes per second, by workload and kind of operation.",
					query{over("plimsoll_workload_bytes_total", sel, "workload, op"), byLoad}),
				chart("Service time, p50", "s", measured, query{quantile("0.5", "workload, op"), byLoad}),
				chart(
					"Service time, p99 and p99.9",
					"s",
					measured,
					query{quantile("0.99", "workload, op"), byLoad + " p99"},
					query{quantile("0.999", "workload, op"), byLoad + " p99.9"},
				),
				chart("Throughput by VM", "ops", "Where VMs of a workload differ, an average over them says little.",
					query{over("plimsoll_workload_ops_total", sel, "workload, instance"), "{{workload}} {{instance}}"}),
				chart("VMs at work", "short", "VMs on which the workload runs.",
					query{`sum by (workload) (plimsoll_workload_active{` + sel + `})`, "{{workload}}"}),
				chart(
					"What generators report besides",
					"short",
					"Each measure in its own unit, which the legend names.",
					query{`plimsoll_workload_measure{` + sel + `}`, "{{workload}} {{measure}} {{unit}}"},
				),
				chart("Errors", "ops", "Operations that failed, per second.",
					query{over("plimsoll_workload_errors_total", sel, "workload"), "{{workload}}"}),
			}},
			{"Disks of the VMs", []panel{
				chart(
					"IOPS of the VMs' disks",
					"iops",
					"As the VMs count; where they do not, derived from the generators.",
					query{
						over("node_disk_reads_completed_total", ofRun+`,instance=~"$vm"`, "instance"),
						"{{instance}} read",
					},
					query{over("node_disk_writes_completed_total", ofRun+`,instance=~"$vm"`, "instance"),
						"{{instance}} write"},
				),
				chart(
					"Bandwidth of the VMs' disks",
					"binBps",
					"Likewise.",
					query{
						over("node_disk_read_bytes_total", ofRun+`,instance=~"$vm"`, "instance"),
						"{{instance}} read",
					},
					query{
						over("node_disk_written_bytes_total", ofRun+`,instance=~"$vm"`, "instance"),
						"{{instance}} write",
					},
				),
			}},
			{"Was it the generator, or the machine?", []panel{
				chart("Busiest thread of a generator", "percentunit",
					"At 100 % the generator was the limit, and not what is tested.",
					query{`max by (workload, instance) (plimsoll_generator_thread_busy_ratio{` + ofRun + `})`,
						"{{workload}} {{instance}}"}).to(1, 0.8, 0.95),
				chart(
					"Processors of the machines underneath",
					"percentunit",
					"Share of the time in which they were busy.",
					query{`sum by (instance) (rate(plimsoll_host_cpu_seconds_total{` + ofRun +
						`,mode!="idle"}[$__rate_interval])) / sum by (instance) (rate(plimsoll_host_cpu_seconds_total{` +
						ofRun + `}[$__rate_interval]))`, "{{instance}}"},
				).to(1, 0.8, 0.95),
				chart("Devices underneath: IOPS", "iops", "What reaches the devices that the VMs' disks are on.",
					query{over("plimsoll_host_disk_reads_completed_total", ofRun, "instance, device"),
						"{{instance}} {{device}} read"},
					query{over("plimsoll_host_disk_writes_completed_total", ofRun, "instance, device"),
						"{{instance}} {{device}} write"}),
				chart(
					"Devices underneath: time at work",
					"percentunit",
					"Share of time with at least one I/O outstanding. 100 % is not the most that a device can do that takes "+
						"several at a time.",
					query{over("plimsoll_host_disk_io_time_seconds_total", ofRun, "instance, device"),
						"{{instance}} {{device}}"},
				).to(1, 0, 0),
				chart("The cluster's processors", "percent", "As the platform says, by node.",
					query{`plimsoll_cluster_cpu_usage_avg_percent{` + ofRun + `}`, "{{node}}"}).to(100, 0, 0),
				chart("The cluster's memory", "percent", "As the platform says, by node.",
					query{`plimsoll_cluster_mem_usage_avg_percent{` + ofRun + `}`, "{{node}}"}).to(100, 0, 0),
			}},
		}}
}
