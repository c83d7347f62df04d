package prism

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Paths of Prism Element's two versions.
const (
	rest1 = "/PrismGateway/services/rest/v1"
	rest2 = "/PrismGateway/services/rest/v2.0"
)

// elementPaths are the lists by kind. The VMs of v2.0 have no statistics: they come from v1 there as well.
var elementPaths = map[Version]map[Kind]string{
	V1: {Cluster: rest1 + "/clusters", Host: rest1 + "/hosts", Container: rest1 + "/containers", VM: rest1 + "/vms",
		Disk: rest1 + "/virtual_disks"},
	V2: {Cluster: rest2 + "/clusters", Host: rest2 + "/hosts", Container: rest2 + "/storage_containers",
		VM: rest1 + "/vms", Disk: rest2 + "/virtual_disks"},
}

// elementPage is one page of a list, in the letters of both versions.
type elementPage struct {
	Metadata *struct {
		Total2 int `json:"grand_total_entities"`
		Total1 int `json:"grandTotalEntities"`
	} `json:"metadata"`
	Entities []element `json:"entities"`
}

// element is an entity of any kind, in the letters of both versions.
type element struct {
	UUID       string     `json:"uuid"`
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	VMName     string     `json:"vmName"`
	Power      string     `json:"powerState"`
	State      string     `json:"state"`
	HostName   string     `json:"hostName"`
	HostUUID   string     `json:"hostUuid"`
	Controller bool       `json:"controllerVm"`
	Container2 string     `json:"storage_container_uuid"`
	Container1 string     `json:"containerUuid"`
	VMID2      string     `json:"attached_vm_uuid"`
	VMID1      string     `json:"attachedVmUuid"`
	VM2        string     `json:"attached_vmname"`
	VM1        string     `json:"attachedVMName"`
	Address2   string     `json:"disk_address"`
	Address1   string     `json:"diskAddress"`
	VCPUs      float64    `json:"numVCpus"`
	Memory1    float64    `json:"memoryCapacityInBytes"`
	Memory2    float64    `json:"memory_capacity_in_bytes"`
	CPU1       float64    `json:"cpuCapacityInHz"`
	CPU2       float64    `json:"cpu_capacity_in_hz"`
	Size1      float64    `json:"diskCapacityInBytes"`
	Size2      float64    `json:"disk_capacity_in_bytes"`
	VMs1       float64    `json:"numVMs"`
	VMs2       float64    `json:"num_vms"`
	Nodes1     float64    `json:"numNodes"`
	Nodes2     float64    `json:"num_nodes"`
	Cores1     float64    `json:"numCpuCores"`
	Cores2     float64    `json:"num_cpu_cores"`
	Sockets1   float64    `json:"numCpuSockets"`
	Sockets2   float64    `json:"num_cpu_sockets"`
	Boot1      float64    `json:"bootTimeInUsecs"`
	Boot2      float64    `json:"boot_time_in_usecs"`
	Factor1    float64    `json:"replicationFactor"` // of a container
	Factor2    float64    `json:"replication_factor"`
	Redundant1 redundancy `json:"clusterRedundancyState"`
	Redundant2 redundancy `json:"cluster_redundancy_state"`
	Stats      statistics `json:"stats"`
	Usage1     statistics `json:"usageStats"`
	Usage2     statistics `json:"usage_stats"`
}

// redundancy is how many copies a cluster keeps of its data.
type redundancy struct {
	Current1 float64 `json:"currentRedundancyFactor"`
	Current2 float64 `json:"current_redundancy_factor"`
	Desired1 float64 `json:"desiredRedundancyFactor"`
	Desired2 float64 `json:"desired_redundancy_factor"`
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// entity returns what the element says, with its values in order.
func (e *element) entity(kind Kind, floor float64) (Entity, Left) {
	out := Entity{
		ID: first(e.UUID, e.ID), Name: first(e.VMName, e.Name), State: first(e.Power, e.State),
		Host: first(e.HostName, e.HostUUID), Controller: e.Controller,
	}
	switch kind {
	case Container:
		out.ID = first(e.Container2, e.Container1, out.ID)
	case Disk:
		out.Container = first(e.Container2, e.Container1)
		out.VMID, out.VM = first(e.VMID2, e.VMID1), first(e.VM2, e.VM1)
		out.Address = first(e.Address2, e.Address1)
		out.Name = first(out.Name, out.ID)
	}
	g := e.Stats.gathered
	for _, u := range []*statistics{&e.Usage1, &e.Usage2} {
		g.values, g.others = append(g.values, u.values...), append(g.others, u.others...)
		g.left.Add(u.left)
	}
	g.set("num_vcpus", e.VCPUs)
	g.set("memory_capacity_bytes", e.Memory1+e.Memory2) // one version writes one of them
	g.set("cpu_capacity_hz", e.CPU1+e.CPU2)
	g.set("disk_capacity_bytes", e.Size1+e.Size2)
	g.set("num_vms", e.VMs1+e.VMs2)
	g.set("num_nodes", e.Nodes1+e.Nodes2)
	g.set("num_cpu_cores", e.Cores1+e.Cores2)
	g.set("num_cpu_sockets", e.Sockets1+e.Sockets2)
	g.set("boot_time_in_usecs", e.Boot1+e.Boot2)
	r1, r2 := e.Redundant1, e.Redundant2
	g.set("current_redundancy_factor", e.Factor1+e.Factor2+r1.Current1+r2.Current2)
	g.set("desired_redundancy_factor", r1.Desired1+r2.Desired2)
	values, left := g.settle(floor)
	out.Values = values
	return out, left
}

// pollElement reads all entities of a kind, page after page.
func (c *Client) pollElement(ctx context.Context, v Version, kind Kind, p *Part, made *atomic.Int64) error {
	path, size := elementPaths[v][kind], c.options.PageSize
	seen := map[string]bool{}
	for page := 1; page <= mostPages; page++ {
		var answer elementPage
		query := url.Values{"count": {strconv.Itoa(size)}, "page": {strconv.Itoa(page)}}
		if err := c.get(ctx, call{kind, made, nil}, path, query, false, &answer); err != nil {
			return err
		}
		for i := range answer.Entities {
			e, left := answer.Entities[i].entity(kind, c.options.Floor)
			p.Left.Add(left)
			if e.ID == "" || seen[e.ID] { // what moved to another page while they were turned
				continue
			}
			seen[e.ID] = true
			p.Entities = append(p.Entities, e)
		}
		got, total := len(answer.Entities), len(p.Entities)
		if answer.Metadata != nil {
			total = max(answer.Metadata.Total1, answer.Metadata.Total2)
		}
		switch {
		case got == 0, (page-1)*size+got >= total:
			return nil
		case got < size && page == 1: // the server gives no more at a time: its size is ours
			size = got
		}
	}
	return &Error{Large, path, fmt.Errorf("more than %d pages", mostPages)}
}

// Poll reads all entities of a kind. What it gives is whole: on an error there is none.
func (c *Client) Poll(ctx context.Context, kind Kind) (Part, error) {
	p := Part{At: time.Now()}
	var made atomic.Int64
	v, err := c.detect(ctx, kind, &made)
	switch {
	case err != nil:
	case v == V4:
		err = c.pollCentral(ctx, kind, &p, &made)
	case v == V3:
		err = c.pollGroups(ctx, kind, &p, &made)
	default:
		err = c.pollElement(ctx, v, kind, &p, &made)
	}
	p.Requests, p.Took = int(made.Load()), time.Since(p.At)
	if err != nil {
		p.Entities = nil
	}
	return p, err
}

// detect is the version to speak, looked for when it was left open. A version that is not there, or that the user may
// not read, is passed over for good; one that answers with an error of the server for a while only, since a server that
// starts again says that, too.
func (c *Client) detect(ctx context.Context, kind Kind, made *atomic.Int64) (Version, error) {
	if found := c.version.Load(); found != nil && (found.until.IsZero() || time.Now().Before(found.until)) {
		return found.Version, nil
	}
	if c.options.Version != Auto {
		c.version.Store(&spoken{Version: c.options.Version})
		return c.options.Version, nil
	}
	now := c.now()
	probes := []struct {
		version Version
		path    string
		query   url.Values
		ask     []byte
	}{
		{V4, vmStatsPath, window(now, c.options.MaxAge, url.Values{"$limit": {"1"}, "$page": {"0"}}), nil},
		{V2, rest2 + "/cluster", nil, nil},
		{V1, rest1 + "/cluster", nil, nil},
		{V3, groupsPath, nil, []byte(`{"entity_type":"cluster","group_member_count":1}`)},
	}
	if c.options.APIKey != nil {
		probes = probes[:1]
	}
	var failed error // what the newest version that is there said
	var until time.Time
	for _, probe := range probes {
		var any struct{}
		err := c.get(ctx, call{kind, made, probe.ask}, probe.path, probe.query, false, &any)
		switch reason := ReasonOf(err); reason {
		case "":
			c.version.Store(&spoken{probe.version, until})
			return probe.version, nil
		case Absent:
		case Forbidden, Server, Limited:
			if failed == nil {
				failed = err
			}
			if reason != Forbidden {
				until = time.Now().Add(c.options.Configuration)
			}
		default:
			return "", err
		}
	}
	if failed != nil {
		return "", failed
	}
	return "", &Error{Absent, "/", fmt.Errorf("none of v4, v2.0, v1, v3 answers: is it a Prism?")}
}

// spoken is a version of the API that answers, taken until it is looked for again; the zero time: for good.
type spoken struct {
	Version
	until time.Time
}
