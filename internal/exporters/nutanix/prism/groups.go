package prism

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// groupsPath is the one request of v3 that gives statistics: attributes of entities of a type, asked for by POST.
const groupsPath = "/api/nutanix/v3/groups"

// groupsTypes are the entities of v3 by kind. There is none of virtual disks.
var groupsTypes = [kinds]string{Cluster: "cluster", Host: "host", Container: "storage_container", VM: "vm"}

// groupsNames are the attributes of v3 that are texts.
var groupsNames = []string{"name", "cluster_name", "node_name", "container_name", "vm_name", "node", "power_state",
	"is_cvm"}

// groupsQuestion holds what v3 is asked.
type groupsQuestion struct {
	Type       string             `json:"entity_type"`
	Count      int                `json:"group_member_count"`
	Offset     int                `json:"group_member_offset"`
	Attributes []groupsAttributes `json:"group_member_attributes"`
}

type groupsAttributes struct {
	Attribute string `json:"attribute"`
}

// groupsAnswer holds what v3 answers: of each attribute its values with their time, in microseconds.
type groupsAnswer struct {
	Filtered int `json:"filtered_entity_count"`
	Total    int `json:"total_entity_count"`
	Groups   []struct {
		Entities []groupsEntity `json:"entity_results"`
	} `json:"group_results"`
}

type groupsEntity struct {
	ID   string `json:"entity_id"`
	Data []struct {
		Name   string `json:"name"`
		Values []struct {
			Time   int64             `json:"time"`
			Values []json.RawMessage `json:"values"`
		} `json:"values"`
	} `json:"data"`
}

// groupsOf is the question for the entities of a kind from one on. Capacities are not asked of a VM.
func groupsOf(kind Kind, count, from int) groupsQuestion {
	q := groupsQuestion{Type: groupsTypes[kind], Count: count, Offset: from}
	add := func(name string) { q.Attributes = append(q.Attributes, groupsAttributes{name}) }
	for _, name := range groupsNames {
		add(name)
	}
	for _, c := range Counters {
		if kind != VM || !c.lasting || slices.Contains([]string{"num_vcpus", "disk_capacity_bytes"}, c.Prism) {
			add(c.Prism)
		}
	}
	for _, name := range []string{timespan, "memory_usage_ppm", "memory_size_bytes", "hypervisor.cpu_ready_time_ppm",
		"guest.memory_usage_ppm"} {
		add(name)
	}
	return q
}

// pollGroups reads all entities of a kind from v3, page after page.
func (c *Client) pollGroups(ctx context.Context, kind Kind, p *Part, made *atomic.Int64) error {
	if groupsTypes[kind] == "" {
		return nil
	}
	seen, from := map[string]bool{}, 0
	for range mostPages {
		body, err := json.Marshal(groupsOf(kind, c.options.PageSize, from))
		if err != nil {
			return err
		}
		var answer groupsAnswer
		if err := c.get(ctx, call{kind, made, body}, groupsPath, nil, false, &answer); err != nil {
			return err
		}
		got := 0
		for _, g := range answer.Groups {
			got += len(g.Entities)
			for i := range g.Entities {
				e, left := g.Entities[i].entity(c.now(), &c.options)
				p.Left.Add(left)
				if e.ID == "" || seen[e.ID] { // what moved to another page while they were turned
					continue
				}
				seen[e.ID] = true
				p.Entities = append(p.Entities, e)
			}
		}
		if from += got; got == 0 || from >= cmp.Or(answer.Filtered, answer.Total) {
			return nil
		}
	}
	return &Error{Large, groupsPath, fmt.Errorf("more than %d pages", mostPages)}
}

// entity returns what v3 says of one, with its values in order.
func (e *groupsEntity) entity(now time.Time, o *Options) (Entity, Left) {
	texts := map[string]string{}
	var g gathered
	for _, d := range e.Data {
		var last json.RawMessage
		var at int64
		for _, v := range d.Values {
			if len(v.Values) > 0 && v.Time >= at {
				last, at = v.Values[0], v.Time
			}
		}
		name := []byte(d.Name)
		switch {
		case slices.Contains(groupsNames, d.Name):
			var text string
			if json.Unmarshal(last, &text) == nil {
				texts[d.Name] = text
			}
		case last != nil && at > 0 && now.Sub(time.UnixMicro(at)) > o.MaxAge && !lasting(name):
			g.left.Stale++
		default:
			g.add(name, unquoted(last))
		}
	}
	out := Entity{ID: e.ID, State: texts["power_state"],
		Controller: texts["is_cvm"] == "1" || texts["is_cvm"] == "true",
		Name: first(texts["vm_name"], texts["container_name"], texts["node_name"], texts["cluster_name"],
			texts["name"])}
	if _, vm := texts["vm_name"]; vm {
		out.Host = first(texts["node_name"], texts["node"])
	}
	values, left := g.settle(o.Floor)
	out.Values = values
	return out, left
}
