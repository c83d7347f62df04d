package prismsim

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer makes the body for a path.
func (s *Sim) answer(r *http.Request, now time.Time, f Faults) ([]byte, int) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	version, rest := "v4", ""
	if path == groupsPath {
		version = "v3"
	}
	for _, v := range []string{"v1", "v2.0"} {
		if after, ok := strings.CutPrefix(path, "/PrismGateway/services/rest/"+v+"/"); ok {
			version, rest = v, after
		}
	}
	if len(s.o.Versions) > 0 && !slices.Contains(s.o.Versions, version) {
		return nil, http.StatusNotFound
	}
	loads, vms := s.at(now)
	a := answering{s, now, f, loads, vms}
	if version == "v3" {
		return a.groups(r.Body)
	}
	if rest != "" {
		return a.element(version, rest, r.URL.Query())
	}
	return a.central(path, r.URL.Query())
}

// answering is one answer being made.
type answering struct {
	*Sim
	now   time.Time
	f     Faults
	loads map[string][]load
	vms   int
}

var elementKinds = map[string]string{
	"clusters": "cluster", "hosts": "host", "containers": "container", "storage_containers": "container", "vms": "vm",
	"virtual_disks": "disk",
}

// element answers as v1 and v2.0.
func (a answering) element(version, rest string, q url.Values) ([]byte, int) {
	list, one, _ := strings.Cut(rest, "/")
	if list == "cluster" && one == "" {
		return a.entity(nil, version, "cluster", 0), http.StatusOK
	}
	kind := elementKinds[list]
	if kind == "" || (list == "storage_containers") != (kind == "container" && version == "v2.0") {
		return nil, http.StatusNotFound
	}
	if one != "" {
		return a.single(version, kind, one, q)
	}
	total := a.count(kind, a.vms)
	count := atoi(q.Get("count"), total)
	if a.o.MostPerPage > 0 {
		count = min(count, a.o.MostPerPage)
	}
	count = max(count, 1)
	from := min(total, (max(1, atoi(q.Get("page"), 1))-1)*count)
	to := min(total, from+count)
	words := []string{"grand_total_entities", "total_entities", "start_index", "end_index"}
	if version == "v1" {
		words = []string{"grandTotalEntities", "totalEntities", "startIndex", "endIndex"}
	}
	b := []byte(`{"metadata":{"count":` + strconv.Itoa(to-from))
	for i, n := range []int{total, total, min(from+1, total), to} {
		b = append(b, `,"`+words[i]+`":`+strconv.Itoa(n)...)
	}
	b = append(b, `},"entities":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = a.entity(b, version, kind, i)
	}
	return append(b, "]}"...), http.StatusOK
}

// single answers for one entity, or for single statistics of it.
func (a answering) single(version, kind, one string, q url.Values) ([]byte, int) {
	uuid, stats, _ := strings.Cut(one, "/")
	i := a.index(kind, uuid, a.vms)
	switch {
	case i < 0 || stats != "" && stats != "stats":
		return nil, http.StatusNotFound
	case stats == "":
		return a.entity(nil, version, kind, i), http.StatusOK
	}
	var all struct {
		Stats map[string]string `json:"stats"`
	}
	if json.Unmarshal(a.entity(nil, version, kind, i), &all) != nil {
		return nil, http.StatusInternalServerError
	}
	type response struct {
		Successful bool     `json:"successful"`
		Message    *string  `json:"message"`
		Start      int64    `json:"start_time_in_usecs"`
		Interval   int      `json:"interval_in_secs"`
		Metric     string   `json:"metric"`
		Values     []string `json:"values"`
	}
	out := struct {
		Responses []response `json:"stats_specific_responses"`
	}{}
	for _, m := range strings.Split(q.Get("metrics"), ",") {
		out.Responses = append(out.Responses, response{all.Stats[m] != "", nil, a.now.UnixMicro(), 30, m,
			[]string{all.Stats[m]}})
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, http.StatusInternalServerError
	}
	return b, http.StatusOK
}

func atoi(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

// object writes members of a JSON object.
type object struct{ b []byte }

func (o *object) key(name string) {
	if c := o.b[len(o.b)-1]; c != '{' && c != '[' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), `":`...)
}

func (o *object) text(name, value string) {
	o.key(name)
	quoted, _ := json.Marshal(value) // a string has no error
	o.b = append(o.b, quoted...)
}

func (o *object) number(name string, v float64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

// entity writes an entity as v1 or v2.0 does.
func (a answering) entity(b []byte, version, kind string, i int) []byte {
	o := object{append(b, '{')}
	snake := version == "v2.0"
	word := func(two, one string) string {
		if snake {
			return two
		}
		return one
	}
	uuid := id(kind, i)
	cluster := word("cluster_uuid", "clusterUuid")
	switch kind {
	case "cluster":
		o.text("id", uuid+"::1")
		o.text("uuid", uuid)
		o.text("name", a.name(kind, i))
		o.number(word("num_nodes", "numNodes"), float64(a.o.Hosts))
		o.text("version", "6.8-sim")
	case "host":
		o.text("uuid", uuid)
		o.text("name", a.name(kind, i))
		o.text("state", "NORMAL")
		o.number(word("num_vms", "numVMs"), float64((a.vms+a.o.Hosts-1-i)/a.o.Hosts))
		o.number(word("num_cpu_cores", "numCpuCores"), 32)
		o.number(word("cpu_capacity_in_hz", "cpuCapacityInHz"), 32*2.4e9)
		o.number(word("memory_capacity_in_bytes", "memoryCapacityInBytes"), 768<<30)
		o.text(cluster, id("cluster", 0))
	case "container":
		o.text("id", id("cluster", 0)+"::"+strconv.Itoa(i+1))
		o.text(word("storage_container_uuid", "containerUuid"), uuid)
		o.text("name", a.name(kind, i))
		o.number(word("max_capacity", "maxCapacity"), 40e12)
		o.text(cluster, id("cluster", 0))
	case "vm":
		o.text("vmId", id("cluster", 0)+"::"+uuid)
		o.text("uuid", uuid)
		o.text("vmName", a.name(kind, i))
		o.text("powerState", a.power(i))
		o.text("hostUuid", id("host", i%a.o.Hosts))
		o.text("hostName", a.name("host", i%a.o.Hosts))
		o.number("numVCpus", 4)
		o.number("memoryCapacityInBytes", 16<<30)
		o.number("diskCapacityInBytes", float64(a.o.DisksPerVM)*100e9)
		o.key("controllerVm")
		o.b = append(o.b, "false"...)
		o.text("clusterUuid", id("cluster", 0))
	case "disk":
		vm := i / a.o.DisksPerVM
		o.text("uuid", uuid)
		o.text(word("disk_address", "diskAddress"), "scsi."+strconv.Itoa(i%a.o.DisksPerVM))
		o.text(word("attached_vm_uuid", "attachedVmUuid"), id("vm", vm))
		o.text(word("attached_vmname", "attachedVMName"), a.name("vm", vm))
		o.text(word("storage_container_uuid", "containerUuid"), id("container", vm%a.o.Containers))
		o.number(word("disk_capacity_in_bytes", "diskCapacityInBytes"), 100e9)
		o.text(cluster, id("cluster", 0))
	}
	o.key("stats")
	o.b = append(o.b, '{')
	a.statistics(&o, kind, i)
	o.b = append(o.b, '}')
	o.key(word("usage_stats", "usageStats"))
	o.b = append(o.b, '{')
	if kind == "cluster" || kind == "host" || kind == "container" {
		for _, u := range []struct {
			name  string
			value float64
		}{{"storage.capacity_bytes", 40e12}, {"storage.free_bytes", 25e12}, {"storage.usage_bytes", 15e12},
			{"storage.logical_usage_bytes", 7.5e12}, {"storage_tier.ssd.capacity_bytes", 10e12},
			{"storage_tier.ssd.usage_bytes", 4e12}, {"storage_tier.das-sata.capacity_bytes", 30e12},
			{"storage_tier.das-sata.usage_bytes", 11e12}, {"data_reduction.saving_ratio_ppm", 1.6e6}} {
			o.quoted(u.name, u.value)
		}
	}
	return append(o.b, "}}"...)
}

func (o *object) quoted(name string, v float64) {
	o.key(name)
	o.b = append(strconv.AppendInt(append(o.b, '"'), int64(v), 10), '"')
}

// statistics writes the counters of v1 and v2.0. Those that a kind does not have are -1, as Prism writes them.
func (a answering) statistics(o *object, kind string, i int) {
	l := a.loads[kind][i]
	n := 0
	write := func(name string, v float64) {
		n++
		if a.f.NoSample > 0 && chance(kind+name, i, a.tick) < a.f.NoSample {
			v = -1
		}
		o.quoted(name, v)
	}
	layer := func(prefix string, share float64) {
		l := load{}.plus(l, share)
		all := l.read + l.write
		mean := 0.0
		if all > 0 {
			mean = (l.readUs*l.read + l.writeUs*l.write) / all
		}
		write(prefix+"num_iops", all)
		write(prefix+"num_read_iops", l.read)
		write(prefix+"num_write_iops", l.write)
		write(prefix+"num_io", all*30)
		write(prefix+"num_read_io", l.read*30)
		write(prefix+"num_write_io", l.write*30)
		write(prefix+"io_bandwidth_kBps", l.readKB+l.writeKB)
		write(prefix+"read_io_bandwidth_kBps", l.readKB)
		write(prefix+"write_io_bandwidth_kBps", l.writeKB)
		write(prefix+"avg_io_latency_usecs", mean)
		write(prefix+"avg_read_io_latency_usecs", l.readUs)
		write(prefix+"avg_write_io_latency_usecs", l.writeUs)
		write(prefix+"total_io_size_kbytes", (l.readKB+l.writeKB)*30)
		write(prefix+"total_read_io_size_kbytes", l.readKB*30)
		write(prefix+"total_io_time_usecs", all*30*mean)
		write(prefix+"read_io_ppm", 1e6*l.read/max(1, all))
		write(prefix+"timespan_usecs", 30e6)
	}
	layer("controller_", 1)
	o.quoted("controller_random_io_ppm", -1)
	o.quoted("controller_seq_io_ppm", -1)
	if kind == "disk" {
		write("controller_user_bytes", 40e9)
		return
	}
	layer("", 0.4)
	layer("hypervisor_", 0)
	if kind == "container" {
		return
	}
	write("hypervisor_cpu_usage_ppm", l.cpu)
	write("hypervisor_memory_usage_ppm", l.mem)
	write("hypervisor_num_received_bytes", 30*1e5*chance("rx", i, a.tick))
	write("hypervisor_num_transmitted_bytes", 30*1e5*chance("tx", i, a.tick))
	if kind == "vm" {
		write("hypervisor.cpu_ready_time_ppm", 1e4*chance("ready", i, a.tick))
		write("guest.memory_usage_ppm", l.mem)
		write("controller_user_bytes", 80e9)
		write("controller_wss_3600s_union_MB", 500)
	}
}
