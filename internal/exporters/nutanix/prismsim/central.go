package prismsim

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// v4 is an object or a list, as encoding/json writes it.
type (
	v4   map[string]any
	list []any
)

var centralLists = map[string]string{
	"/api/clustermgmt/v4.0/config/clusters":           "cluster",
	"/api/clustermgmt/v4.0/config/hosts":              "host",
	"/api/clustermgmt/v4.0/config/storage-containers": "container",
	"/api/vmm/v4.0/ahv/config/vms":                    "vm",
	"/api/vmm/v4.0/ahv/stats/vms":                     "vm stats",
}

// central answers as v4.
func (a answering) central(path string, q url.Values) ([]byte, int) {
	kind, isList := centralLists[path]
	stats := strings.Contains(path, "/stats/")
	if stats && (q.Get("$startTime") == "" || q.Get("$endTime") == "") {
		return nil, http.StatusBadRequest
	}
	start, err1 := time.Parse(time.RFC3339, q.Get("$startTime"))
	end, err2 := time.Parse(time.RFC3339, q.Get("$endTime"))
	if stats && (err1 != nil || err2 != nil) {
		return nil, http.StatusBadRequest
	}
	var out v4
	if isList {
		of, _, _ := strings.Cut(kind, " ")
		total := a.count(of, a.vms)
		if kind == "cluster" {
			total = 2 // Prism Central lists itself
		}
		if kind == "vm stats" {
			total = max(0, total-a.o.Off)
		}
		limit, page := atoi(q.Get("$limit"), 50), atoi(q.Get("$page"), 0)
		if limit < 1 || limit > 100 || page < 0 {
			return nil, http.StatusBadRequest
		}
		from := min(total, page*limit)
		data := list{}
		for i := from; i < min(total, from+limit); i++ {
			if kind == "vm stats" {
				data = append(data, a.vmStats(i, start, end))
			} else {
				data = append(data, a.config(kind, i))
			}
		}
		out = v4{"data": data, "metadata": v4{
			"$objectType":           "common.v1.response.ApiResponseMetadata",
			"totalAvailableResults": total, "flags": list{v4{"name": "hasError", "value": false}},
		}}
	} else {
		of, i := a.statsOf(path)
		if i < 0 {
			return nil, http.StatusNotFound
		}
		out = v4{"data": a.stats(of, i, start, end)}
	}
	out["$reserved"] = v4{"$fv": "v4.r0"}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, http.StatusInternalServerError
	}
	return b, http.StatusOK
}

// statsOf is the entity that a path of statistics names.
func (a answering) statsOf(path string) (string, int) {
	parts := strings.Split(strings.TrimPrefix(path, "/api/clustermgmt/v4.0/stats/"), "/")
	switch {
	case len(parts) == 2 && parts[0] == "clusters":
		return "cluster", a.index("cluster", parts[1], a.vms)
	case len(parts) == 4 && parts[0] == "clusters" && parts[2] == "hosts" && parts[1] == id("cluster", 0):
		return "host", a.index("host", parts[3], a.vms)
	case len(parts) == 2 && parts[0] == "storage-containers":
		return "container", a.index("container", parts[1], a.vms)
	}
	return "", -1
}

// config returns what v4 says of an entity besides its statistics.
func (a answering) config(kind string, i int) v4 {
	o := v4{"$reserved": v4{"$fv": "v4.r0"}, "extId": id(kind, i), "name": a.name(kind, i)}
	switch kind {
	case "cluster":
		o["$objectType"] = "clustermgmt.v4.config.Cluster"
		function := "AOS"
		if i == 1 {
			function = "PRISM_CENTRAL"
			o["name"] = "Unnamed"
		} else {
			o["vmCount"] = a.vms
			o["nodes"] = v4{"numberOfNodes": a.o.Hosts}
		}
		o["config"] = v4{"clusterFunction": list{function}}
	case "host":
		o["$objectType"] = "clustermgmt.v4.config.Host"
		delete(o, "name")
		o["hostName"] = a.name(kind, i)
		o["nodeStatus"] = "NORMAL"
		o["cluster"] = v4{"name": a.name("cluster", 0), "uuid": id("cluster", 0)}
		o["hypervisor"] = v4{"type": "AHV", "numberOfVms": (a.vms + a.o.Hosts - 1 - i) / a.o.Hosts}
		o["numberOfCpuCores"], o["cpuFrequencyHz"], o["memorySizeBytes"] = 32, int64(2.4e9), int64(768<<30)
	case "container":
		o["$objectType"] = "clustermgmt.v4.config.StorageContainer"
		delete(o, "extId")
		o["containerExtId"] = id(kind, i)
		o["clusterExtId"] = id("cluster", 0)
		o["maxCapacityBytes"] = int64(40e12)
	case "vm":
		o["$objectType"] = "vmm.v4.ahv.config.Vm"
		o["powerState"] = strings.ToUpper(a.power(i))
		o["numSockets"], o["numCoresPerSocket"], o["numThreadsPerCore"] = 2, 2, 1
		o["memorySizeBytes"] = int64(16 << 30)
		o["host"] = v4{"extId": id("host", i%a.o.Hosts)}
		o["cluster"] = v4{"extId": id("cluster", 0)}
		disks := list{}
		for d := range a.o.DisksPerVM {
			disks = append(disks, v4{"extId": id("disk", i*a.o.DisksPerVM+d), "backingInfo": v4{
				"$objectType": "vmm.v4.ahv.config.VmDisk", "diskSizeBytes": int64(100e9),
				"storageContainer": v4{"extId": id("container", i%a.o.Containers)}},
				"diskAddress": v4{"busType": "SCSI", "index": d}})
		}
		o["disks"] = disks
	}
	return o
}

// counters are the counters of a moment, in v4's letters; unit is how it writes microseconds there.
func (a answering) counters(kind string, i int, unit string) map[string]float64 {
	l := a.loads[kind][i]
	all := l.read + l.write
	return map[string]float64{
		"controllerNumIops": all, "controllerNumReadIops": l.read, "controllerNumWriteIops": l.write,
		"controllerReadIoBandwidthKbps": l.readKB, "controllerWriteIoBandwidthKbps": l.writeKB,
		"controllerAvgIoLatency" + unit:      (l.readUs*l.read + l.writeUs*l.write) / max(1, all),
		"controllerAvgReadIoLatency" + unit:  l.readUs,
		"controllerAvgWriteIoLatency" + unit: l.writeUs,
		"hypervisorCpuUsagePpm":              l.cpu,
		"controllerTimespan" + unit:          30e6,
	}
}

// times are those of the samples in a window, oldest first: two minutes apart where many are kept, as v4 keeps them.
func (a answering) times(start, end time.Time) []time.Time {
	var out []time.Time
	latest := a.now.Add(-a.f.Frozen).Truncate(30 * time.Second)
	for t := latest.Add(-4 * time.Minute); !t.After(latest); t = t.Add(2 * time.Minute) {
		if !t.Before(start.Add(-a.f.Frozen)) && !t.After(end) {
			out = append(out, t)
		}
	}
	return out
}

// stats are the statistics of a cluster, host or container: a list of samples for each counter, newest first.
func (a answering) stats(kind string, i int, start, end time.Time) v4 {
	o := v4{"extId": id(kind, i),
		"$objectType": "clustermgmt.v4.stats." + strings.ToUpper(kind[:1]) + kind[1:] + "Stats"}
	times := a.times(start, end)
	put := func(name string, v float64) {
		if a.f.NoSample > 0 && chance(kind+name, i, a.tick) < a.f.NoSample {
			v = -1
		}
		samples := list{}
		for n := len(times) - 1; n >= 0; n-- {
			samples = append(samples, v4{"timestamp": times[n].UTC().Format(time.RFC3339), "value": int64(v)})
		}
		o[name] = samples
	}
	for name, v := range a.counters(kind, i, "Usecs") {
		if kind == "container" { // which has letters of its own, and no processors
			if name == "hypervisorCpuUsagePpm" {
				continue
			}
			name = strings.NewReplacer("LatencyUsecs", "LatencyuSecs", "Kbps", "kBps").Replace(name)
		}
		put(name, v)
	}
	put("ioBandwidthKbps", a.loads[kind][i].readKB)
	if kind != "container" {
		put("aggregateHypervisorMemoryUsagePpm", a.loads[kind][i].mem)
	}
	old := "2025-12-29T15:11:59.233212Z"
	o["storageCapacityBytes"] = list{v4{"timestamp": old, "value": int64(40e12)}}
	o["storageUsageBytes"] = list{v4{"timestamp": a.now.UTC().Format(time.RFC3339), "value": int64(15e12)}}
	return o
}

// power is the state of a VM.
func (a answering) power(i int) string {
	if i >= a.vms-a.o.Off {
		return "off"
	}
	return "on"
}

// vmStats are those of a VM: an object for each moment, beside one of long ago.
func (a answering) vmStats(i int, start, end time.Time) v4 {
	tuples := list{v4{"timestamp": "2025-11-01T12:26:19.246481Z", "hypervisorType": "kKvm", "memoryReservedBytes": 0,
		"cluster": id("cluster", 0), "diskCapacityBytes": int64(a.o.DisksPerVM) * 100e9}}
	for _, t := range a.times(start, end) {
		o := v4{"timestamp": t.UTC().Format(time.RFC3339)}
		for name, v := range a.counters("vm", i, "Micros") {
			o[name] = int64(v)
		}
		o["controllerIoBandwidthKbps"] = int64(a.loads["vm"][i].readKB + a.loads["vm"][i].writeKB)
		o["memoryUsagePpm"] = int64(a.loads["vm"][i].mem)
		o["hypervisorTimespanMicros"] = int64(30e6)
		o["hypervisorNumReceivedBytes"] = int64(3e6 * chance("rx", i, a.tick))
		o["controllerWss3600SecondUnionMb"] = 500
		tuples = append(tuples, o)
	}
	return v4{"$objectType": "vmm.v4.ahv.stats.VmStats", "extId": id("vm", i), "stats": tuples,
		"links": list{v4{"rel": "self", "href": "https://prism.invalid:9440/api/vmm/v4.0/ahv/stats/vms/" +
			strconv.Itoa(i)}}}
}
