package prism

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Paths of v4, which Prism Central has.
const (
	clustersPath     = "/api/clustermgmt/v4.0/config/clusters"
	hostsPath        = "/api/clustermgmt/v4.0/config/hosts"
	containersPath   = "/api/clustermgmt/v4.0/config/storage-containers"
	vmsPath          = "/api/vmm/v4.0/ahv/config/vms"
	vmStatsPath      = "/api/vmm/v4.0/ahv/stats/vms"
	clusterStatsPath = "/api/clustermgmt/v4.0/stats/clusters"
	contStatsPath    = "/api/clustermgmt/v4.0/stats/storage-containers"
)

// centralPage is the most that v4 gives at a time, atOnce how many statistics of single entities are asked for at once.
const (
	centralPage = 100
	atOnce      = 4
)

// centralAnswer is an answer of v4.
type centralAnswer[T any] struct {
	Data     []T `json:"data"`
	Metadata struct {
		Total int `json:"totalAvailableResults"`
	} `json:"metadata"`
}

// centralConfig holds what v4 says of an entity besides its statistics, of any kind.
type centralConfig struct {
	ExtID      string `json:"extId"`
	Container  string `json:"containerExtId"`
	Name       string `json:"name"`
	HostName   string `json:"hostName"`
	PowerState string `json:"powerState"`
	NodeStatus string `json:"nodeStatus"`
	Cluster    struct {
		UUID  string `json:"uuid"`
		ExtID string `json:"extId"`
	} `json:"cluster"`
	Host struct {
		ExtID string `json:"extId"`
	} `json:"host"`
	Config struct {
		Functions []string `json:"clusterFunction"`
		Factor    float64  `json:"redundancyFactor"`
	} `json:"config"`
	Nodes struct {
		Number float64 `json:"numberOfNodes"`
	} `json:"nodes"`
	Hypervisor struct {
		VMs float64 `json:"numberOfVms"`
	} `json:"hypervisor"`
	VMCount  float64 `json:"vmCount"`
	Memory   float64 `json:"memorySizeBytes"`
	Sockets  float64 `json:"numSockets"`
	Cores    float64 `json:"numCoresPerSocket"`
	Threads  float64 `json:"numThreadsPerCore"`
	HostCPU  float64 `json:"numberOfCpuCores"`
	HostHz   float64 `json:"cpuFrequencyHz"`
	HostCPUs float64 `json:"numberOfCpuSockets"`
	Boot     float64 `json:"bootTimeUsecs"`
	Factor   float64 `json:"replicationFactor"`
	Capacity float64 `json:"maxCapacityBytes"`
	Disks    []struct {
		ExtID   string `json:"extId"`
		Backing struct {
			Size      float64 `json:"diskSizeBytes"`
			Container struct {
				ExtID string `json:"extId"`
			} `json:"storageContainer"`
		} `json:"backingInfo"`
		Address struct {
			Bus   string `json:"busType"`
			Index int    `json:"index"`
		} `json:"diskAddress"`
	} `json:"disks"`
}

// configuration holds what was last heard of names and sizes, per kind (disks are those of the VMs).
type configuration struct {
	of   [kinds]map[string]*centralConfig
	list [kinds][]string // IDs in the order of the API
	at   [kinds]time.Time
}

// window says for which time v4 is to give samples.
func window(now time.Time, back time.Duration, query url.Values) url.Values {
	const form = "2006-01-02T15:04:05Z"
	query.Set("$startTime", now.Add(-back).UTC().Format(form))
	query.Set("$endTime", now.UTC().Format(form))
	query.Set("$samplingInterval", "30")
	query.Set("$statType", "LAST")
	query.Set("$select", "*")
	return query
}

// eachPage reads a list of v4 to its end.
func eachPage[T any](ctx context.Context, c *Client, of call, path string, query url.Values, tagged bool,
	take func(*T)) error {
	got := 0
	for page := range mostPages {
		query.Set("$page", strconv.Itoa(page))
		query.Set("$limit", strconv.Itoa(centralPage))
		var answer centralAnswer[T]
		if err := c.get(ctx, of, path, query, tagged, &answer); err != nil {
			return err
		}
		for i := range answer.Data {
			take(&answer.Data[i])
		}
		got += len(answer.Data)
		if len(answer.Data) == 0 || got >= answer.Metadata.Total {
			return nil
		}
	}
	return &Error{Large, path, fmt.Errorf("more than %d pages", mostPages)}
}

// configure is the configuration of a kind, asked for when it is old or has to be fresh.
func (c *Client) configure(ctx context.Context, kind Kind, made *atomic.Int64, fresh bool) (
	map[string]*centralConfig, []string, error) {
	c.mu.Lock()
	of, list, at := c.known.of[kind], c.known.list[kind], c.known.at[kind]
	c.mu.Unlock()
	if of != nil && !fresh && time.Since(at) < c.options.Configuration {
		return of, list, nil
	}
	of, list = map[string]*centralConfig{}, nil
	paths := [...]string{Cluster: clustersPath, Host: hostsPath, Container: containersPath, VM: vmsPath}
	err := eachPage(ctx, c, call{kind, made, nil}, paths[kind], url.Values{}, true, func(e *centralConfig) {
		id := first(e.ExtID, e.Container)
		if id == "" || of[id] != nil || len(e.Config.Functions) == 1 && e.Config.Functions[0] == "PRISM_CENTRAL" {
			return
		}
		of[id] = e
		list = append(list, id)
	})
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	c.known.of[kind], c.known.list[kind], c.known.at[kind] = of, list, time.Now()
	c.mu.Unlock()
	return of, list, nil
}

// pollCentral reads a kind over v4.
func (c *Client) pollCentral(ctx context.Context, kind Kind, p *Part, made *atomic.Int64) error {
	switch kind {
	case VM:
		return c.centralVMs(ctx, p, made)
	case Disk:
		return c.centralDisks(ctx, p, made)
	}
	of, list, err := c.configure(ctx, kind, made, false)
	if err != nil {
		return err
	}
	p.Entities = make([]Entity, len(list))
	lefts, errs := make([]Left, len(list)), make([]error, len(list))
	places := make(chan struct{}, atOnce)
	var g sync.WaitGroup
	for i, id := range list {
		places <- struct{}{}
		g.Go(func() {
			defer func() { <-places }()
			p.Entities[i], lefts[i], errs[i] = c.centralOne(ctx, kind, of[id], made)
		})
	}
	g.Wait()
	kept := p.Entities[:0]
	for i, err := range errs {
		p.Left.Add(lefts[i])
		switch {
		case err == nil:
			kept = append(kept, p.Entities[i])
		case ReasonOf(err) != Absent: // what was removed since it was listed is no failure
			return err
		}
	}
	p.Entities = kept
	return nil
}

// centralOne reads the statistics of one cluster, host or container: there are no lists of those.
func (c *Client) centralOne(ctx context.Context, kind Kind, of *centralConfig, made *atomic.Int64) (
	Entity, Left, error) {
	id := url.PathEscape(first(of.ExtID, of.Container))
	path := map[Kind]string{Cluster: clusterStatsPath + "/" + id, Container: contStatsPath + "/" + id,
		Host: clusterStatsPath + "/" + url.PathEscape(of.Cluster.UUID) + "/hosts/" + id}[kind]
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	now := c.now()
	query := window(now, c.options.MaxAge, url.Values{})
	if err := c.get(ctx, call{kind, made, nil}, path, query, false, &answer); err != nil {
		return Entity{}, Left{}, err
	}
	var g gathered
	err := eachMember(answer.Data, func(name, value []byte) { c.newest(&g, name, value, now) })
	if err != nil {
		return Entity{}, Left{}, &Error{Broken, path, err}
	}
	e := Entity{ID: first(of.ExtID, of.Container), Name: first(of.HostName, of.Name), State: of.NodeStatus}
	g.set("num_nodes", of.Nodes.Number)
	g.set("num_vms", of.VMCount+of.Hypervisor.VMs)
	if kind == Host {
		g.set("memory_capacity_bytes", of.Memory)
		g.set("cpu_capacity_hz", of.HostCPU*of.HostHz)
		g.set("num_cpu_cores", of.HostCPU)
		g.set("num_cpu_sockets", of.HostCPUs)
		g.set("boot_time_in_usecs", of.Boot)
	}
	g.set("current_redundancy_factor", of.Factor+of.Config.Factor)
	if kind == Container {
		g.set("storage.capacity_bytes", of.Capacity)
	}
	values, left := g.settle(c.options.Floor)
	e.Values = values
	return e, left, nil
}

// sample is one value of v4 and its time.
type sample struct {
	At    time.Time       `json:"timestamp"`
	Value json.RawMessage `json:"value"`
}

// newest takes the latest sample of a counter, if it is not too old. What is no list of samples is no counter.
func (c *Client) newest(g *gathered, name, value []byte, now time.Time) {
	if len(name) == 0 || len(value) == 0 || value[0] != '[' || name[0] == '$' || string(name) == "links" {
		return
	}
	var samples []sample
	if json.Unmarshal(value, &samples) != nil {
		g.left.Bad++
		return
	}
	var last sample
	for _, s := range samples {
		if !s.At.Before(last.At) {
			last = s
		}
	}
	if len(samples) > 0 && now.Sub(last.At) > c.options.MaxAge && !lasting(name) {
		g.left.Stale++
		return
	}
	g.add(name, unquoted(last.Value))
}

func lasting(name []byte) bool {
	c, known := byFolded[fold(string(name))]
	return known && Counters[c].lasting
}

// vmSamples are the statistics of a VM: one object for each point in time, in no order to rely on.
type vmSamples struct {
	ExtID string            `json:"extId"`
	Stats []json.RawMessage `json:"stats"`
}

func (c *Client) centralVMs(ctx context.Context, p *Part, made *atomic.Int64) error {
	of, list, err := c.configure(ctx, VM, made, false)
	if err != nil {
		return err
	}
	hosts, _, err := c.configure(ctx, Host, made, false)
	if err != nil {
		return err
	}
	now, strangers := c.now(), false
	seen := map[string]bool{}
	query := window(now, c.options.MaxAge, url.Values{})
	err = eachPage(ctx, c, call{VM, made, nil}, vmStatsPath, query, false, func(s *vmSamples) {
		if s.ExtID == "" || seen[s.ExtID] {
			return
		}
		seen[s.ExtID] = true
		strangers = strangers || of[s.ExtID] == nil
		var g gathered
		c.newestTuple(&g, s.Stats, now)
		e := Entity{ID: s.ExtID}
		if cfg := of[s.ExtID]; cfg != nil {
			describe(&e, &g, cfg, hosts)
		}
		values, left := g.settle(c.options.Floor)
		e.Values = values
		p.Left.Add(left)
		p.Entities = append(p.Entities, e)
	})
	if err != nil {
		return err
	}
	if strangers { // VMs that were made since
		if of, list, err = c.configure(ctx, VM, made, true); err != nil {
			return err
		}
	}
	for i := range p.Entities {
		if e := &p.Entities[i]; e.Name == "" && of[e.ID] != nil {
			var g gathered
			describe(e, &g, of[e.ID], hosts)
			e.Values = ordered(append(g.values, e.Values...))
		}
	}
	for _, id := range list { // those that are off have no statistics
		if seen[id] || !strings.EqualFold(of[id].PowerState, "off") {
			continue
		}
		var g gathered
		e := Entity{ID: id}
		describe(&e, &g, of[id], hosts)
		e.Values, _ = g.settle(c.options.Floor)
		p.Entities = append(p.Entities, e)
	}
	return nil
}

// describe puts what is known of a VM to its statistics.
func describe(e *Entity, g *gathered, cfg *centralConfig, hosts map[string]*centralConfig) {
	e.Name, e.State, e.Host = cfg.Name, strings.ToLower(cfg.PowerState), cfg.Host.ExtID
	if h := hosts[cfg.Host.ExtID]; h != nil {
		e.Host = first(h.HostName, e.Host)
	}
	g.set("num_vcpus", cfg.Sockets*cfg.Cores*max(1, cfg.Threads))
	g.set("memory_capacity_bytes", cfg.Memory)
}

// newestTuple takes the values of the latest point in time. Beside those of the window there may be one of an earlier
// time, for values that change seldom: it gives those only.
func (c *Client) newestTuple(g *gathered, tuples []json.RawMessage, now time.Time) {
	var last, lastLasting json.RawMessage
	var at, atLasting time.Time
	for _, t := range tuples {
		var when struct {
			At time.Time `json:"timestamp"`
		}
		if json.Unmarshal(t, &when) != nil {
			g.left.Bad++
			continue
		}
		switch {
		case now.Sub(when.At) > c.options.MaxAge:
			if !when.At.Before(atLasting) {
				lastLasting, atLasting = t, when.At
			}
		case !when.At.Before(at):
			last, at = t, when.At
		}
	}
	take := func(all bool) func(name, value []byte) {
		return func(name, value []byte) {
			switch string(name) {
			case "timestamp", "cluster", "hypervisorType", "extId":
				return
			}
			if len(name) == 0 || name[0] == '$' || len(value) > 0 && (value[0] == '{' || value[0] == '[') {
				return
			}
			if !all && !lasting(name) {
				g.left.Stale++
				return
			}
			g.add(name, unquoted(value))
		}
	}
	_ = eachMember(last, take(true)) // no members, when there was none
	_ = eachMember(lastLasting, take(false))
}

// centralDisks lists virtual disks with their sizes, of which the VMs' configuration tells: v4 has their statistics
// only one disk at a time, and twenty thousand requests are not made.
func (c *Client) centralDisks(ctx context.Context, p *Part, made *atomic.Int64) error {
	of, list, err := c.configure(ctx, VM, made, false)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, id := range list {
		vm := of[id]
		for _, d := range vm.Disks {
			if d.ExtID == "" || seen[d.ExtID] {
				continue
			}
			seen[d.ExtID] = true
			var g gathered
			g.set("disk_capacity_bytes", d.Backing.Size)
			values, _ := g.settle(c.options.Floor)
			p.Entities = append(p.Entities, Entity{ID: d.ExtID, Name: d.ExtID, VM: vm.Name, VMID: id, Values: values,
				Container: d.Backing.Container.ExtID,
				Address:   strings.ToLower(d.Address.Bus) + "." + strconv.Itoa(d.Address.Index)})
		}
	}
	return nil
}
