package prismsim

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// groupsPath is the request of v3 for attributes of entities, which is a question by POST.
const groupsPath = "/api/nutanix/v3/groups"

var groupsTypes = map[string]string{"cluster": "cluster", "host": "host", "storage_container": "container", "vm": "vm",
	"mh_vm": "vm"}

// groups answers as v3: for each entity the attributes that were asked for, those that it does not have without values.
func (a answering) groups(question io.Reader) ([]byte, int) {
	var q struct {
		Type       string `json:"entity_type"`
		Count      *int   `json:"group_member_count"`
		Offset     int    `json:"group_member_offset"`
		Attributes []struct {
			Attribute string `json:"attribute"`
		} `json:"group_member_attributes"`
	}
	kind := ""
	if json.NewDecoder(io.LimitReader(question, 1<<20)).Decode(&q) == nil {
		kind = groupsTypes[q.Type]
	}
	if kind == "" || q.Offset < 0 {
		return nil, http.StatusUnprocessableEntity
	}
	total := a.count(kind, a.vms)
	count := total
	if q.Count != nil {
		count = *q.Count
	}
	if a.o.MostPerPage > 0 {
		count = min(count, a.o.MostPerPage)
	}
	entities := list{}
	for i := min(q.Offset, total); i < min(total, q.Offset+count); i++ {
		has := a.attributes(kind, i)
		data := list{}
		for _, at := range q.Attributes {
			values := list{}
			if v, ok := has[at.Attribute]; ok {
				written := a.now.Add(-a.f.Frozen)
				if changesSeldom(at.Attribute) {
					written = a.now.Add(-1000 * time.Hour)
				}
				values = append(values, v4{"time": written.UnixMicro(), "values": list{v}})
			}
			data = append(data, v4{"name": at.Attribute, "values": values})
		}
		entities = append(entities, v4{"entity_id": id(kind, i), "data": data})
	}
	b, err := json.Marshal(v4{"entity_type": q.Type, "filtered_entity_count": total, "total_entity_count": total,
		"filtered_group_count": 1, "total_group_count": 1,
		"group_results": list{v4{"group_by_column_value": "", "entity_results": entities}}})
	if err != nil {
		return nil, http.StatusInternalServerError
	}
	return b, http.StatusOK
}

// changesSeldom tells names and capacities, which have the time of their last change.
func changesSeldom(attribute string) bool {
	for _, word := range []string{"name", "node", "power", "capacity", "num_vcpus", "num_cpu", "num_vms",
		"memory_size"} {
		if strings.Contains(attribute, word) {
			return true
		}
	}
	return false
}

// attributes are what v3 has of an entity: the statistics of v2.0, and of its configuration names and sizes.
func (a answering) attributes(kind string, i int) map[string]string {
	var of struct {
		Stats map[string]string `json:"stats"`
		Usage map[string]string `json:"usage_stats"`
	}
	if json.Unmarshal(a.entity(nil, "v2.0", kind, i), &of) != nil {
		return nil
	}
	out := of.Stats
	for name, v := range of.Usage {
		out[name] = v
	}
	name := a.name(kind, i)
	switch kind {
	case "cluster":
		out["cluster_name"] = name
		out["num_nodes"] = strconv.Itoa(a.o.Hosts)
	case "host":
		out["node_name"] = name
		out["num_vms"] = strconv.Itoa((a.vms + a.o.Hosts - 1 - i) / a.o.Hosts)
		out["num_cpu_cores"], out["cpu_capacity_hz"] = "32", strconv.Itoa(32*2_400_000_000)
		out["memory_capacity_bytes"] = strconv.Itoa(768 << 30)
	case "container":
		out["container_name"] = name
	case "vm":
		out["vm_name"], out["power_state"] = name, a.power(i)
		out["node_name"], out["node"] = a.name("host", i%a.o.Hosts), id("host", i%a.o.Hosts)
		out["num_vcpus"], out["memory_size_bytes"] = "4", strconv.Itoa(16<<30)
		out["memory_usage_ppm"] = out["hypervisor_memory_usage_ppm"]
	}
	return out
}
