package dashboards

import "strings"

// nutanix are the dashboards of what `plimsoll exporter nutanix` serves.
func nutanix() []Dashboard {
	return []Dashboard{nutanixCluster(), nutanixHost(), nutanixContainer(), nutanixVM()}
}

// of is a family of metrics in the places of KIND and SEL of a query.
func of(kind, sel, text string) string {
	return strings.NewReplacer("KIND", "nutanix_"+kind, "SEL", "{"+sel+"}").Replace(text)
}

const (
	ofCluster = `run=~"$run",cluster=~"$cluster"`
	layers    = "Controllers are what VMs are served by; what reaches the drives is without cache hits, and with replicas."
	notInV4   = " Prism's v4 does not have it."
	floorNote = "Absent where fewer operations a second than the exporter's iops_floor would make a mean say nothing."
)

// nutanixVariables are the run, the cluster and, but for the cluster's own dashboard, the entities of a kind.
func nutanixVariables(kind, label string) []variable {
	list := []variable{anyRun("nutanix_up"), choice("cluster", "Cluster", `nutanix_up{run=~"$run"}`)}
	if kind != "cluster" {
		list = append(list, choice(kind, label, "nutanix_"+kind+"_info{"+ofCluster+"}"))
	}
	return list
}

// load are the charts of I/O that all kinds have. legend names an entity.
func load(kind, sel, legend string) []row {
	q := func(text, what string) query {
		return query{of(kind, sel, text), strings.TrimSpace(legend + " " + what)}
	}
	sides := func(metric string) []query {
		return []query{
			q("KIND_controller_read_"+metric+"SEL", "read"),
			q("KIND_controller_write_"+metric+"SEL", "write"),
		}
	}
	return []row{{"I/O served by the controllers", []panel{
		chart("IOPS", "iops", "Completed reads and writes per second. "+layers, sides("iops")...),
		chart("Bandwidth", "binBps", "Bytes read and written per second.", sides("bandwidth_bytes_per_second")...),
		chart("Mean latency", "s", "Of reads and of writes, as Prism averages it. "+floorNote,
			sides("latency_seconds")...).to(0, 0.005, 0.02),
		chart(
			"Share of reads",
			"percentunit",
			"Reads among all I/Os.",
			q("KIND_controller_read_iopsSEL / (KIND_controller_iopsSEL > 0)", ""),
		).to(1, 0, 0),
	}}}
}

// backend are the charts of what reaches the drives.
func backend(kind, sel, legend string) row {
	q := func(text, what string) query {
		return query{of(kind, sel, text), strings.TrimSpace(legend + " " + what)}
	}
	return row{"What reaches the drives", []panel{
		chart(
			"IOPS of drives",
			"iops",
			layers+notInV4,
			q("KIND_backend_read_iopsSEL", "read"),
			q("KIND_backend_write_iopsSEL", "write"),
		),
		chart(
			"Bandwidth of drives",
			"binBps",
			layers+notInV4,
			q("KIND_backend_read_bandwidth_bytes_per_secondSEL", "read"),
			q("KIND_backend_write_bandwidth_bytes_per_secondSEL", "write"),
		),
	}}
}

// space are the charts of capacity, which clusters, hosts and containers have.
func space(kind, sel, legend string) row {
	return row{"Space", []panel{
		chart(
			"Share of space used",
			"percentunit",
			"Physical capacity that is used; a cluster that is nearly full cannot "+
				"rebuild after a failure.",
			query{of(kind, sel, "KIND_storage_used_bytesSEL / KIND_storage_capacity_bytesSEL"),
				legend},
		).to(1, 0.75, 0.9),
		chart("Space used and free", "bytes", "Physical capacity, in bytes.",
			query{of(kind, sel, "KIND_storage_used_bytesSEL"), legend + " used"},
			query{of(kind, sel, "KIND_storage_capacity_bytesSEL - KIND_storage_used_bytesSEL"), legend + " free"}),
	}}
}

// busy are the charts of processors and memory, which clusters and hosts have.
func busy(kind, sel, legend string) row {
	return row{"Processors and memory", []panel{
		chart("Processors used", "percentunit", "Share of the processors' time, controllers' VMs included.",
			query{of(kind, sel, "KIND_cpu_usage_ratioSEL"), legend}).to(1, 0.8, 0.95),
		chart("Memory used", "percentunit", "Share of the memory.",
			query{of(kind, sel, "KIND_memory_usage_ratioSEL"), legend}).to(1, 0.85, 0.95),
	}}
}

func nutanixCluster() Dashboard {
	const legend = "{{cluster}} {{run}}"
	top := []panel{
		number(
			"Prism answers",
			"short",
			"1 when all that was asked for was answered, else 0; the worst of the clusters.",
			`min(nutanix_up{`+ofCluster+`})`,
		).under(1, 0.5),
		number("Age of the data", "s", "How long ago the oldest of what is told was asked for.",
			`max(nutanix_exporter_data_age_seconds{`+ofCluster+`})`).to(0, 60, 300),
		number("Hosts", "short", "Hosts of the clusters.", `sum(nutanix_cluster_hosts{`+ofCluster+`})`),
		number("VMs", "short", "VMs that Prism lists.", `count(nutanix_vm_info{`+ofCluster+`})`),
	}
	rows := append([]row{{"Now", top}}, load("cluster", ofCluster, legend)...)
	rows = append(rows, backend("cluster", ofCluster, legend), busy("cluster", ofCluster, legend),
		space("cluster", ofCluster, legend), row{"The exporter", []panel{
			chart("Failed requests to Prism", "reqps", "By reason; nothing fails while the line lies at 0.", query{
				`sum by (run, cluster, reason) (rate(nutanix_exporter_api_errors_total{` + ofCluster +
					`}[$__rate_interval])) or sum by (run, cluster) (0 * nutanix_up{` + ofCluster + `})`,
				legend + " {{reason}}"}),
			chart("Time that a poll takes", "s", "All requests for one kind of entity.", query{
				`sum by (run, cluster, kind) (nutanix_exporter_poll_duration_seconds{` + ofCluster + `})`,
				legend + " {{kind}}"}),
		}})
	return Dashboard{Name: "nutanix-cluster", Title: "Nutanix: clusters", refresh: "30s", rows: rows,
		Help:      "What clusters do as a whole: I/O, processors, memory, space, and whether Prism answers.",
		variables: nutanixVariables("cluster", "")}
}

func nutanixHost() Dashboard {
	const sel, legend = ofCluster + `,host=~"$host"`, "{{host}} {{run}}"
	rows := append(load("host", sel, legend), backend("host", sel, legend), busy("host", sel, legend),
		space("host", sel, legend), row{"Balance", []panel{
			bars("IOPS by host", "iops", "Now; hosts of a balanced cluster do about as much.", of("host", sel,
				"topk(20, KIND_controller_iopsSEL)"), legend),
			bars(
				"VMs by host",
				"short",
				"VMs that Prism lists on it, those that are off left out.",
				`topk(20, count by `+
					`(run, cluster, host) (nutanix_vm_info{`+sel+`}))`,
				legend,
			),
		}})
	return Dashboard{Name: "nutanix-host", Title: "Nutanix: hosts", refresh: "30s", rows: rows,
		Help:      "What each host does, and whether one does more than the others.",
		variables: nutanixVariables("host", "Host")}
}

func nutanixContainer() Dashboard {
	const sel, legend = ofCluster + `,container=~"$container"`, "{{container}} {{run}}"
	return Dashboard{Name: "nutanix-container", Title: "Nutanix: storage containers", refresh: "30s",
		Help:      "I/O and space of each storage container.",
		rows:      append(load("container", sel, legend), space("container", sel, legend)),
		variables: nutanixVariables("container", "Storage container")}
}

func nutanixVM() Dashboard {
	const sel, legend = ofCluster + `,vm=~"$vm"`, "{{vm}} {{run}}"
	most := func(title, unit, metric, help string) panel {
		return bars(title, unit, help, of("vm", sel, "topk(10, KIND_"+metric+"SEL)"), legend)
	}
	rows := append([]row{{"The most, now", []panel{
		most("Most IOPS", "iops", "controller_iops", "VMs that do most of the I/O."),
		most("Longest mean latency", "s", "controller_latency_seconds", floorNote).to(0, 0.005, 0.02),
		most("Most bandwidth", "binBps", "controller_bandwidth_bytes_per_second", "VMs that move most bytes."),
		most(
			"Waiting for a processor",
			"percentunit",
			"cpu_ready_ratio",
			"Share of time in which the VM could run and "+
				"no processor was free."+notInV4,
		).to(0, 0.05, 0.1),
	}}}, load("vm", sel, legend)...)
	rows = append(rows, row{"Processors, memory and network", []panel{
		chart("Processors used", "percentunit", "Share of the VM's processors.",
			query{of("vm", sel, "KIND_cpu_usage_ratioSEL"), legend}).to(1, 0, 0),
		chart("Memory used", "percentunit", "As the hypervisor sees it.",
			query{of("vm", sel, "KIND_memory_usage_ratioSEL"), legend}).to(1, 0, 0),
		chart("Network", "binBps", "Bytes received and, not with Prism's v4, sent per second.",
			query{of("vm", sel, "KIND_network_receive_bytes_per_secondSEL"), legend + " received"},
			query{of("vm", sel, "KIND_network_transmit_bytes_per_secondSEL"), legend + " sent"}),
		chart("Working set", "bytes", "Bytes that were touched in the last hour.",
			query{of("vm", sel, "KIND_working_set_bytesSEL"), legend}),
	}}, row{"Virtual disks", []panel{
		bars("Busiest virtual disks", "iops", "Disks that do most of the I/O."+notInV4,
			of("disk", sel, "topk(10, KIND_controller_iopsSEL)"), "{{vm}} {{disk}} {{run}}"),
		bars(
			"Slowest virtual disks",
			"s",
			floorNote+notInV4,
			of("disk", sel, "topk(10, KIND_controller_latency_secondsSEL)"),
			"{{vm}} {{disk}} {{run}}",
		).to(0, 0.005, 0.02),
	}})
	return Dashboard{Name: "nutanix-vm", Title: "Nutanix: VMs", refresh: "30s", rows: rows,
		Help:      "Which VMs and virtual disks do most, wait longest, and what each of them does.",
		variables: nutanixVariables("vm", "VM")}
}
