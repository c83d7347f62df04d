package prism

import (
	"cmp"
	"slices"
)

// Counter is one counter of Prism and the metric that it becomes.
type Counter struct {
	Prism  string // as v2.0 writes it; the other versions write the same in other letters
	Metric string // what follows nutanix_KIND_ in the metric's name; it ends with the unit
	Label  string // "NAME=VALUE" of the metric, or ""
	Help   string
	Scale  float64 // from Prism's unit to the base unit
	// needs is the counter of operations that a mean latency is of.
	needs string
	// lasting says that the API stamps the value with the time of its last change, as it does with capacities.
	lasting bool
	// over says that the value is a sum over that many microseconds (the name of another counter), to become a rate.
	over string
}

const (
	micro = 1e-6
	kilo  = 1000 // Prism's kBps: its documents say kilobytes, and not that they would be of 1024 bytes
)

// Counters are all counters that are read. What the API gives beside them is counted as unknown and left out.
var Counters = func() []Counter {
	var all []Counter
	layers := []struct{ prism, metric, what string }{
		{"controller_", "controller_", "served by the storage controllers"},
		{"hypervisor_", "hypervisor_", "seen by the hypervisor"},
		{"", "backend_", "that reached the drives"},
	}
	for _, l := range layers {
		for _, d := range []struct{ prism, metric, what string }{{"", "", ""}, {"read_", "read_", "read "},
			{"write_", "write_", "write "}} {
			iops := l.prism + "num_" + d.prism + "iops"
			all = append(all,
				Counter{Prism: iops, Metric: l.metric + d.metric + "iops", Scale: 1,
					Help: "Completed " + d.what + "I/Os per second " + l.what + "."},
				Counter{Prism: l.prism + d.prism + "io_bandwidth_kBps", Scale: kilo,
					Metric: l.metric + d.metric + "bandwidth_bytes_per_second",
					Help:   "Bytes per second of " + d.what + "I/Os " + l.what + "."},
				Counter{Prism: l.prism + "avg_" + d.prism + "io_latency_usecs", Scale: micro, needs: iops,
					Metric: l.metric + d.metric + "latency_seconds",
					Help:   "Mean latency of " + d.what + "I/Os " + l.what + "."})
		}
	}
	lasting := func(prism, metric, help string) Counter {
		return Counter{Prism: prism, Metric: metric, Scale: 1, Help: help, lasting: true}
	}
	plain := func(prism, metric string, scale float64, help string) Counter {
		return Counter{Prism: prism, Metric: metric, Scale: scale, Help: help}
	}
	all = append(all,
		plain("controller_read_io_ppm", "controller_read_ratio", micro, "Share of reads among the controllers' I/Os."),
		plain("controller_random_io_ppm", "controller_random_ratio", micro, "Share of random I/Os of the controllers."),
		plain("controller_user_bytes", "used_bytes", 1, "Bytes that the guest has written, before any reduction."),
		plain("controller_wss_3600s_union_MB", "working_set_bytes", 1e6, "Bytes that were touched in the last hour."),
		plain("content_cache_hit_ppm", "content_cache_hit_ratio", micro, "Share of look-ups that the cache answered."),
		plain("hypervisor_cpu_usage_ppm", "cpu_usage_ratio", micro, "Share of the processors' time that is used."),
		plain("hypervisor_cpu_ready_time_ppm", "cpu_ready_ratio", micro, "Share of time waiting for a processor."),
		plain("hypervisor_memory_usage_ppm", "memory_usage_ratio", micro, "Share of the memory that is used."),
		plain("guest_memory_usage_ppm", "guest_memory_usage_ratio", micro, "Share of the memory that the guest uses."),
		Counter{Prism: "hypervisor_num_received_bytes", Metric: "network_receive_bytes_per_second", Scale: 1,
			Help: "Bytes per second received.", over: "hypervisor_timespan_usecs"},
		Counter{Prism: "hypervisor_num_transmitted_bytes", Metric: "network_transmit_bytes_per_second", Scale: 1,
			Help: "Bytes per second sent.", over: "hypervisor_timespan_usecs"},
		lasting("storage.capacity_bytes", "storage_capacity_bytes", "Physical capacity."),
		lasting("storage.free_bytes", "storage_free_bytes", "Physical capacity that is free."),
		lasting("storage.usage_bytes", "storage_used_bytes", "Physical capacity that is used."),
		lasting("storage.logical_usage_bytes", "storage_logical_used_bytes", "Logical capacity that is used."),
		lasting("memory_capacity_bytes", "memory_bytes", "Memory there is."),
		lasting("cpu_capacity_hz", "cpu_hertz", "Processor cycles per second there are."),
		lasting("disk_capacity_bytes", "capacity_bytes", "Size of the virtual disk, or of all of a VM's."),
		lasting("num_vcpus", "vcpus", "Virtual processors."),
		lasting("num_vms", "vms", "VMs there are."),
		lasting("num_nodes", "hosts", "Hosts there are."),
		lasting("num_cpu_cores", "cpu_cores", "Cores of the processors."),
		lasting("num_cpu_sockets", "cpu_sockets", "Processors there are."),
		Counter{Prism: "boot_time_in_usecs", Metric: "boot_time_seconds", Scale: micro, lasting: true,
			Help: "When it was started, in seconds since 1970."},
		lasting("current_redundancy_factor", "redundancy_factor", "How many copies of data there are to be."),
		lasting("desired_redundancy_factor", "redundancy_factor_desired", "How many copies of data are wished for."),
		lasting("data_reduction.pre_reduction_bytes", "data_reduction_before_bytes", "Bytes before reduction."),
		lasting("data_reduction.post_reduction_bytes", "data_reduction_after_bytes", "Bytes after reduction."),
		Counter{Prism: "data_reduction.saving_ratio_ppm", Metric: "data_reduction_ratio", Scale: micro, lasting: true,
			Help: "Bytes before reduction over those after it."},
		Counter{Prism: "data_reduction.overall.saving_ratio_ppm", Metric: "data_efficiency_ratio", Scale: micro,
			lasting: true, Help: "The same with what clones, snapshots and thin provisioning save."},
	)
	for _, technique := range []string{"compression", "dedup", "erasure_coding", "clone", "snapshot",
		"thin_provision"} {
		c := lasting("data_reduction."+technique+".saved_bytes", "data_reduction_saved_bytes",
			"Bytes that a technique saves.")
		c.Label = "technique=" + technique
		all = append(all, c)
	}
	for _, m := range []struct{ prism, metric, help string }{{"usage", "used", "is used"},
		{"capacity", "capacity", "there is"}} {
		for _, tier := range []string{"ssd", "das-sata", "cloud"} {
			c := lasting("storage_tier."+tier+"."+m.prism+"_bytes", "storage_tier_"+m.metric+"_bytes",
				"Physical capacity of a tier of drives: what "+m.help+".")
			c.Label = "tier=" + tier
			all = append(all, c)
		}
	}
	return all
}()

// timespan gives the time that the hypervisor's sums cover. It is no metric itself.
const timespan = "hypervisor_timespan_usecs"

var (
	byFolded = func() map[string]uint16 {
		out := map[string]uint16{}
		for i, c := range Counters {
			out[fold(c.Prism)] = uint16(i) // a table of some dozens
		}
		for _, a := range aliases {
			out[a.other] = out[fold(a.name)]
		}
		return out
	}()
	// aliases are what a version calls otherwise, folded. Where an entity has a counter by its own name that is taken,
	// else the first of these.
	aliases = []struct{ other, name string }{
		{"controllerwss3600secondunionmb", "controller_wss_3600s_union_MB"},
		{"memoryusageppm", "hypervisor_memory_usage_ppm"},
		{"aggregatehypervisormemoryusageppm", "hypervisor_memory_usage_ppm"},
		{"memorysizebytes", "memory_capacity_bytes"},
		{"freephysicalstoragebytes", "storage.free_bytes"},
		{"logicalstorageusagebytes", "storage.logical_usage_bytes"},
	}
	// ownNames are the folded names of Counters.
	ownNames = func() (out []string) {
		for _, c := range Counters {
			out = append(out, fold(c.Prism))
		}
		return out
	}()
	foldedTimespan = fold(timespan)
	// needed is the counter that each one needs, plus one; 0 for none.
	needed = func() []uint16 {
		out := make([]uint16, len(Counters))
		for i, c := range Counters {
			if c.needs != "" {
				out[i] = byFolded[fold(c.needs)] + 1
			}
		}
		return out
	}()
)

// fold is a counter's name as all versions write it: without what separates its words, in small letters, and with
// microseconds called one thing.
func fold(name string) string { return string(folded(nil, name)) }

func folded[T string | []byte](b []byte, name T) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '.' || c == '-':
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		default:
			b = append(b, c)
		}
	}
	if n := len(b) - len("micros"); n > 0 && string(b[n:]) == "micros" {
		b = append(b[:n], "usecs"...)
	}
	return b
}

// gathered are the values of one entity while it is read.
type gathered struct {
	values   []Value
	others   []alias // by another name than Counters have
	timespan float64 // of the hypervisor's sums, in microseconds
	left     Left
}

// alias is a value by the name of aliases at place rank.
type alias struct {
	Value
	rank int
}

// add takes one value as the API writes it.
func (g *gathered) add(name, text []byte) {
	var buffer [96]byte
	key := folded(buffer[:0], name)
	c, known := byFolded[string(key)]
	if !known && string(key) != foldedTimespan {
		g.left.Unknown++
		return
	}
	v, ok := number(text)
	switch {
	case !ok && (len(text) == 0 || string(text) == "null"):
		g.left.NoSample++
	case !ok:
		g.left.Bad++
	case v < 0:
		g.left.NoSample++
	case !known:
		g.timespan = v
	case string(key) != ownNames[c]:
		rank := 0
		for aliases[rank].other != string(key) {
			rank++
		}
		g.others = append(g.others, alias{Value{c, inBase(c, v)}, rank})
	default:
		g.values = append(g.values, Value{c, inBase(c, v)})
	}
}

// set takes a value of an entity's configuration.
func (g *gathered) set(name string, v float64) {
	if v > 0 {
		c := byFolded[fold(name)]
		g.values = append(g.values, Value{c, inBase(c, v)})
	}
}

// inBase is a value in the counter's base unit. Millionths are divided, for a product with 0.000001 is not exact.
func inBase(c uint16, v float64) float64 {
	if Counters[c].Scale == micro {
		return v / 1e6
	}
	return v * Counters[c].Scale
}

// settle puts the values in order, makes rates of sums, and leaves out latencies that say nothing.
func (g *gathered) settle(floor float64) ([]Value, Left) {
	slices.SortStableFunc(g.others, func(a, b alias) int { return cmp.Compare(a.rank, b.rank) })
	for _, o := range g.others {
		g.values = append(g.values, o.Value)
	}
	g.values = ordered(g.values)
	e := Entity{Values: g.values}
	out := make([]Value, 0, len(g.values))
	for _, v := range g.values {
		if n := needed[v.Counter]; n > 0 && floor > 0 {
			if iops, ok := e.get(n - 1); !ok || iops < floor {
				g.left.LowIO++
				continue
			}
		}
		if Counters[v.Counter].over != "" {
			if g.timespan <= 0 {
				g.left.NoSample++
				continue
			}
			v.V /= g.timespan * micro
		}
		out = append(out, v)
	}
	return slices.Clip(out), g.left
}

// ordered puts values in the order of Counters, the first of each.
func ordered(values []Value) []Value {
	slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(a.Counter, b.Counter) })
	return slices.CompactFunc(values, func(a, b Value) bool { return a.Counter == b.Counter })
}
