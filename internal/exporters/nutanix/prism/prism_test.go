package prism_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/prismtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// poll reads all kinds.
func poll(t *testing.T, c *prism.Client) (map[prism.Kind]prism.Part, error) {
	t.Helper()
	out := map[prism.Kind]prism.Part{}
	for _, k := range prism.Kinds() {
		p, err := c.Poll(t.Context(), k)
		if err != nil {
			return out, err
		}
		out[k] = p
	}
	return out, nil
}

// standing is a clock that stands still, so that all answers are of one moment.
func standing() func() time.Time {
	now := time.Now().Truncate(time.Minute)
	return func() time.Time { return now }
}

// All versions tell the same of the same cluster, in what all of them have.
func TestVersionsAgree(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{Hosts: 3, VMs: 230, DisksPerVM: 2, Now: standing()})
	common := []string{"controller_num_iops", "controller_num_read_iops", "controller_avg_read_io_latency_usecs",
		"controller_write_io_bandwidth_kBps", "hypervisor_cpu_usage_ppm", "memory_capacity_bytes", "num_vcpus",
		"num_nodes", "num_vms"}
	type row struct {
		Kind               prism.Kind
		ID, Name, Host, VM string
		Values             map[string]float64
	}
	all := map[prism.Version][]row{}
	for _, v := range []prism.Version{prism.V1, prism.V2, prism.V3, prism.V4} {
		c := s.Client(t, func(o *prism.Options) { o.Version = v })
		parts, err := poll(t, c)
		if err != nil {
			t.Fatal(v, err)
		}
		for _, k := range prism.Kinds() {
			for _, e := range parts[k].Entities {
				r := row{Kind: k, ID: e.ID, Name: e.Name, Host: e.Host, VM: e.VM, Values: map[string]float64{}}
				for _, name := range common {
					if x, ok := e.Get(name); ok && k != prism.Disk && (k != prism.Cluster || name != "num_vms") {
						r.Values[name] = x
					}
				}
				if e.Name == "" {
					t.Errorf("%s: %v %s has no name", v, k, e.ID)
				}
				all[v] = append(all[v], r)
			}
		}
	}
	if len(all[prism.V1]) != 1+3+3+230+460 {
		t.Fatalf("%d entities", len(all[prism.V1]))
	}
	for _, v := range []prism.Version{prism.V2, prism.V3, prism.V4} {
		want := all[prism.V1]
		if v == prism.V3 { // which has no virtual disks
			want = slices.DeleteFunc(slices.Clone(want), func(r row) bool { return r.Kind == prism.Disk })
		}
		if d := cmp.Diff(want, all[v]); d != "" {
			t.Errorf("v1 against %s: %.3000s", v, d)
		}
	}
}

// Requests of a poll: one for each page, and in v4 one for each host, container and cluster.
func TestRequestsOfAPoll(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{Hosts: 5, VMs: 250, DisksPerVM: 4, Containers: 3})
	for _, c := range []struct {
		version     prism.Version
		size        int
		first, next int
	}{
		{prism.V2, 1000, 5, 5},
		{prism.V2, 100, 3 + 3 + 10, 3 + 3 + 10},
		{prism.V3, 100, 3 + 3, 3 + 3},
		{prism.V4, 0, 1 + 1 + 1 + 3 + 1 + 5 + 3 + 3, 1 + 5 + 3 + 3},
	} {
		client := s.Client(t, func(o *prism.Options) { o.Version, o.PageSize = c.version, c.size })
		for i, want := range []int{c.first, c.next} {
			s.Requests()
			if _, err := poll(t, client); err != nil {
				t.Fatal(err)
			}
			if n := s.Requests(); n != want {
				t.Errorf("%s, pages of %d, poll %d: %d requests, want %d", c.version, c.size, i+1, n, want)
			}
		}
	}
}

// A server that gives fewer at a time than it was asked for is read to its end.
func TestServerGivesSmallerPages(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{VMs: 95, MostPerPage: 30})
	for _, v := range []prism.Version{prism.V1, prism.V3} {
		p, err := s.Client(t, func(o *prism.Options) { o.Version = v }).Poll(t.Context(), prism.VM)
		if err != nil || len(p.Entities) != 95 || p.Requests != 4 {
			t.Errorf("%s: %d entities of %d requests, %v", v, len(p.Entities), p.Requests, err)
		}
	}
}

func TestVersionIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		there []string
		want  prism.Version
	}{
		{[]string{"v1", "v2.0", "v4"}, prism.V4},
		{[]string{"v1", "v2.0"}, prism.V2},
		{[]string{"v1", "v3"}, prism.V1},
		{[]string{"v3"}, prism.V3},
		{[]string{"v9"}, prism.Auto},
	} {
		s := prismtest.Start(t, prismsim.Options{Versions: c.there})
		client := s.Client(t, nil)
		_, err := client.Poll(t.Context(), prism.Cluster)
		if client.Version() != c.want || (err == nil) != (c.want != prism.Auto) {
			t.Errorf("of %v: %s, %v", c.there, client.Version(), err)
		}
	}
}

// A version that may not be read, or that answers with an error, is passed over for the next; after an error it is
// looked for again. Where no other answers, what the newest said is told.
func TestVersionsThatFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		there  []string
		want   prism.Version
		reason prism.Reason
		later  prism.Version // after the fault
	}{
		{403, nil, prism.V2, "", prism.V2},
		{500, nil, prism.V2, "", prism.V4},
		{503, nil, prism.V2, "", prism.V4},
		{503, []string{"v1", "v4"}, prism.V1, "", prism.V4},
		{503, []string{"v3", "v4"}, prism.V3, "", prism.V4},
		{403, []string{"v3", "v4"}, prism.V3, "", prism.V3},
		{403, []string{"v4"}, prism.Auto, prism.Forbidden, prism.V4},
		{500, []string{"v4"}, prism.Auto, prism.Server, prism.V4},
		{401, nil, prism.Auto, prism.Refused, prism.V4},
	} {
		s := prismtest.Start(t, prismsim.Options{Versions: c.there})
		s.Set(prismsim.Faults{Status: c.status, Paths: "/v4.0/"})
		client := s.Client(t, func(o *prism.Options) { o.Retries, o.Configuration = -1, time.Nanosecond })
		_, err := client.Poll(t.Context(), prism.Cluster)
		if client.Version() != c.want || prism.ReasonOf(err) != c.reason {
			t.Errorf("%d of v4, there %v: %s, %v", c.status, c.there, client.Version(), err)
		}
		s.Set(prismsim.Faults{})
		if _, err := client.Poll(t.Context(), prism.Cluster); err != nil || client.Version() != c.later {
			t.Errorf("%d of v4, there %v, after it: %s, %v", c.status, c.there, client.Version(), err)
		}
	}
}

// What a cluster and a container keep of data, and what reduction saves, are read in the letters of both versions.
func TestRedundancyAndReduction(t *testing.T) {
	t.Parallel()
	for kind, text := range map[prism.Kind]string{
		prism.Cluster: `{"uuid":"a","cluster_redundancy_state":{"current_redundancy_factor":2,"desired_redundancy_factor":3},` +
			`"usage_stats":{"data_reduction.saving_ratio_ppm":"1290000","data_reduction.overall.saving_ratio_ppm":"-1",` +
			`"data_reduction.snapshot.saved_bytes":"4096"}}`,
		prism.Container: `{"containerUuid":"a","replicationFactor":2,"usageStats":{"data_reduction.saving_ratio_ppm":` +
			`"1290000","data_reduction.snapshot.saved_bytes":"4096"}}`,
	} {
		p, err := prism.ReadElement(kind, []byte(`{"entities":[`+text+`]}`), 0)
		if err != nil || len(p.Entities) != 1 {
			t.Fatal(p, err)
		}
		got := map[string]float64{}
		for _, v := range p.Entities[0].Values {
			got[prism.Counters[v.Counter].Metric+prism.Counters[v.Counter].Label] = v.V
		}
		want := map[string]float64{"redundancy_factor": 2, "data_reduction_ratio": 1.29,
			"data_reduction_saved_bytestechnique=snapshot": 4096}
		if kind == prism.Cluster {
			want["redundancy_factor_desired"] = 3
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", kind, d)
		}
	}
}

// VMs that are off have no statistics in v4, and are there with what is known of them.
func TestVMsThatAreOff(t *testing.T) {
	t.Parallel()
	for _, v := range []prism.Version{prism.V1, prism.V3, prism.V4} {
		s := prismtest.Start(t, prismsim.Options{VMs: 5, Off: 2})
		p, err := s.Client(t, func(o *prism.Options) { o.Version = v }).Poll(t.Context(), prism.VM)
		if err != nil || len(p.Entities) != 5 {
			t.Fatalf("%s: %d VMs, %v", v, len(p.Entities), err)
		}
		for i, e := range p.Entities {
			vcpus, _ := e.Get("num_vcpus")
			if want := map[bool]string{true: "on", false: "off"}[i < 3]; e.State != want || vcpus != 4 || e.Name == "" {
				t.Errorf("%s: %s is %q with %v processors, want %q", v, e.Name, e.State, vcpus, want)
			}
		}
	}
}

// Two counters that are one metric: the one by the metric's own name is taken, in whatever order they come, and another
// one where that has no value.
func TestTwoNamesOfOneCounter(t *testing.T) {
	t.Parallel()
	for _, stats := range []string{
		`"hypervisorMemoryUsagePpm":"250000","memoryUsagePpm":"900000"`,
		`"memoryUsagePpm":"900000","aggregateHypervisorMemoryUsagePpm":"7","hypervisor_memory_usage_ppm":"250000"`,
		`"aggregateHypervisorMemoryUsagePpm":"7","hypervisor_memory_usage_ppm":"-1","memoryUsagePpm":"250000"`,
	} {
		p, err := prism.ReadElement(prism.VM, []byte(`{"entities":[{"uuid":"a","stats":{`+stats+`}}]}`), 0)
		if err != nil || len(p.Entities) != 1 {
			t.Fatal(p, err)
		}
		if v, ok := p.Entities[0].Get("hypervisor_memory_usage_ppm"); !ok || v != 0.25 {
			t.Errorf("%s: %v, %v", stats, v, ok)
		}
	}
}

// What is wrong with a server is told by its reason, without a secret.
func TestFaults(t *testing.T) {
	t.Parallel()
	good := prismsim.Options{VMs: 3}
	wrong := func(o *prism.Options) {
		o.Password = func(context.Context) (string, error) { return "sw0rdfish", nil }
	}
	for _, c := range []struct {
		name     string
		server   prismsim.Options
		valid    time.Duration
		faults   prismsim.Faults
		client   func(*prism.Options)
		want     prism.Reason
		requests int
	}{
		{"nothing", good, time.Hour, prismsim.Faults{}, nil, "", 1},
		{"wrong password", good, time.Hour, prismsim.Faults{}, wrong, prism.Refused, 2},
		{"no password", good, time.Hour, prismsim.Faults{}, func(o *prism.Options) {
			o.Password = func(context.Context) (string, error) { return "", errors.New("secret from env:X: not set") }
		}, prism.Secret, 1},
		{"expired certificate", good, -time.Minute, prismsim.Faults{}, nil, prism.Certificate, 1},
		{"unknown authority", good, time.Hour, prismsim.Faults{}, func(o *prism.Options) { o.Roots = nil },
			prism.Certificate, 1},
		{"any certificate", good, -time.Minute, prismsim.Faults{}, func(o *prism.Options) { o.Insecure = true }, "", 1},
		{"slow", good, time.Hour, prismsim.Faults{Slow: time.Minute}, func(o *prism.Options) {
			o.Timeout, o.Retries = 50*time.Millisecond, 1
		}, prism.Slow, 2},
		{"500", good, time.Hour, prismsim.Faults{Status: 500}, nil, prism.Server, 3},
		{"500 once", good, time.Hour, prismsim.Faults{Status: 500, First: 1}, nil, "", 2},
		{"429 once", good, time.Hour, prismsim.Faults{Status: 429, First: 1}, nil, "", 2},
		{"401 once", good, time.Hour, prismsim.Faults{Status: 401, First: 1}, nil, "", 2},
		{"404", good, time.Hour, prismsim.Faults{Status: 404}, nil, prism.Absent, 1},
		{"redirect", good, time.Hour, prismsim.Faults{Status: 302}, nil, prism.Server, 3},
		{"breaks off", good, time.Hour, prismsim.Faults{Truncate: true}, nil, prism.Broken, 3},
		{"without end", good, time.Hour, prismsim.Faults{Endless: true}, nil, prism.Large, 1},
		{"half a JSON", good, time.Hour, prismsim.Faults{Half: true}, nil, prism.Broken, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := prismtest.StartWith(t, c.server, c.valid)
			s.Set(c.faults)
			client := s.Client(t, func(o *prism.Options) {
				o.Version = prism.V2
				if c.client != nil {
					c.client(o)
				}
			})
			p, err := client.Poll(t.Context(), prism.VM)
			if prism.ReasonOf(err) != c.want || p.Requests != c.requests {
				t.Errorf("%q after %d requests, want %q after %d: %v", prism.ReasonOf(err), p.Requests, c.want,
					c.requests, err)
			}
			if err != nil && (len(p.Entities) > 0 || strings.Contains(err.Error(), prismtest.Password) ||
				strings.Contains(err.Error(), "sw0rdfish") || strings.Contains(err.Error(), "made-up Prism")) {
				t.Errorf("%d entities; %v", len(p.Entities), err)
			}
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		s := prismtest.Start(t, good)
		s.Stop()
		_, err := s.Client(t, func(o *prism.Options) { o.Retries = -1 }).Poll(t.Context(), prism.VM)
		if prism.ReasonOf(err) != prism.Unreachable {
			t.Error(err)
		}
	})
}

// What is no value is left out and counted: -1, mean latencies of few operations, old samples.
func TestWhatIsNoValue(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{VMs: 40})
	const latency = "controller_avg_read_io_latency_usecs"
	whole := true
	with := func(v prism.Version) (n int, left prism.Left, all int) {
		p, err := s.Client(t, func(o *prism.Options) { o.Version = v }).Poll(t.Context(), prism.VM)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entities {
			all += len(e.Values)
			_, has := e.Get(latency)
			iops, ok := e.Get("controller_num_read_iops")
			if few := !ok || iops < prism.DefaultFloor; has && few || !has && !few && whole {
				t.Errorf("%s: %s at %v reads a second: %v", v, e.Name, iops, has)
			}
			for _, x := range e.Values {
				if x.V < 0 {
					t.Errorf("%s: %s: %s is %v", v, e.Name, prism.Counters[x.Counter].Prism, x.V)
				}
			}
			if has {
				n++
			}
		}
		return n, p.Left, all
	}
	for _, v := range []prism.Version{prism.V1, prism.V3, prism.V4} {
		if n, left, _ := with(v); n == 0 || n == 40 || left.LowIO == 0 {
			t.Errorf("%s: %d latencies, left out %+v", v, n, left)
		}
	}
	_, some, before := with(prism.V1)
	whole = false
	s.Set(prismsim.Faults{NoSample: 0.5})
	if _, left, all := with(prism.V1); left.NoSample <= some.NoSample || all >= before {
		t.Errorf("%+v and %d values, before it %+v and %d", left, all, some, before)
	}
	s.Set(prismsim.Faults{Frozen: time.Hour})
	for _, v := range []prism.Version{prism.V3, prism.V4} {
		if n, left, _ := with(v); n > 0 || left.Stale+left.NoSample == 0 {
			t.Errorf("%s: of an hour ago: %d latencies, left out %+v", v, n, left)
		}
	}
}

// A cluster whose clock is wrong is read by its own clock.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{VMs: 2})
	s.Set(prismsim.Faults{Lag: 2 * time.Hour})
	for _, v := range []prism.Version{prism.V3, prism.V4} {
		c := s.Client(t, func(o *prism.Options) { o.Version = v })
		p, err := c.Poll(t.Context(), prism.VM)
		if err != nil {
			t.Fatal(err)
		}
		off, ok := c.ClockOffset()
		if _, there := p.Entities[0].Get("controller_num_iops"); !there || !ok || off > -119*time.Minute {
			t.Errorf("%s: offset %v, values %v", v, off, p.Entities[0].Values)
		}
	}
}

// v4's names are asked for seldom, and at once when there is somebody new; an unchanged list comes without its body.
func TestConfigurationOfV4(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{VMs: 150})
	s.Set(prismsim.Faults{Missing: 1})
	c := s.Client(t, func(o *prism.Options) { o.Version = prism.V4 })
	if _, err := c.Poll(t.Context(), prism.VM); err != nil {
		t.Fatal(err)
	}
	s.Set(prismsim.Faults{})
	p, err := c.Poll(t.Context(), prism.VM)
	if err != nil || p.Requests != 4 || len(p.Entities) != 150 || p.Entities[149].Name != "vm-0150" {
		t.Errorf("%d requests, %d VMs, %v", p.Requests, len(p.Entities), err)
	}
	if v, ok := p.Entities[149].Get("num_vcpus"); !ok || v != 4 {
		t.Errorf("the new VM has %v processors", v)
	}
	s.Set(prismsim.Faults{Missing: 100})
	if p, err = c.Poll(t.Context(), prism.VM); err != nil || len(p.Entities) != 50 {
		t.Errorf("a smaller cluster: %d VMs, %v", len(p.Entities), err)
	}
}

// Names that are asked for again are not sent again when they have not changed, and are as they were.
func TestUnchangedConfiguration(t *testing.T) {
	t.Parallel()
	s := prismtest.Start(t, prismsim.Options{VMs: 150, Now: standing()})
	c := s.Client(t, func(o *prism.Options) { o.Version, o.Configuration = prism.V4, 1 })
	var polls [2]prism.Part
	for i := range polls {
		p, err := c.Poll(t.Context(), prism.Disk)
		if err != nil {
			t.Fatal(err)
		}
		polls[i] = p
	}
	if d := cmp.Diff(polls[0].Entities, polls[1].Entities); d != "" || s.NotModified() != 2 {
		t.Errorf("%d of 2 pages not modified: %s", s.NotModified(), d)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	_, err := prism.New(prism.Options{URL: "http://prism:9440", Version: "v5", PageSize: -1})
	want := "url: http://prism:9440: want https: a password is not sent over \"http\"\n" +
		"api: \"v5\" is none of auto, v1, v2.0, v3, v4\ngive user and password, or an API key\n" +
		"page size: -1 is not from 1 to 10000"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, err = prism.New(prism.Options{URL: "https://admin:hunter2@prism:9440"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// The published answers are read: what they hold, in base units, and no -1.
func TestPublishedAnswers(t *testing.T) {
	t.Parallel()
	dir := needs.Corpus(t, "nutanix-api")
	data, err := os.ReadFile(filepath.Join(dir, "v2_hosts.trimmed.json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := prism.ReadElement(prism.Host, data, prism.DefaultFloor)
	if err != nil || len(p.Entities) != 1 {
		t.Fatal(p, err)
	}
	got := map[string]float64{}
	for _, v := range p.Entities[0].Values {
		c := prism.Counters[v.Counter]
		got[strings.Trim(c.Metric+" "+c.Label, " ")] = v.V
	}
	want := map[string]float64{"controller_iops": 0, "controller_bandwidth_bytes_per_second": 0, "hypervisor_iops": 0,
		"backend_iops": 0, "backend_bandwidth_bytes_per_second": 1000, "content_cache_hit_ratio": 1,
		"cpu_usage_ratio": 0.13606, "memory_usage_ratio": 0.666265, "storage_capacity_bytes": 511803343324,
		"storage_free_bytes": 508614924622, "storage_used_bytes": 3188418702, "storage_logical_used_bytes": 3775823872,
		"memory_bytes": 33722204160, "cpu_hertz": 16760000000, "vms": 2, "cpu_cores": 8, "cpu_sockets": 2,
		"boot_time_seconds":                         1606054432.399817,
		"storage_tier_used_bytes tier=ssd":          3188418702,
		"storage_tier_capacity_bytes tier=ssd":      511803343324,
		"storage_tier_capacity_bytes tier=das-sata": 0}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); d != "" {
		t.Error(d)
	}
	data, err = os.ReadFile(filepath.Join(dir, "v4_host_stats.trimmed.json"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 11, 12, 10, 30, 0, time.UTC)
	e, left, err := prism.ReadCentral(data, at, prism.DefaultFloor)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"controller_num_iops": 99,
		"controller_avg_write_io_latency_usecs": 390e-6,
		"io_bandwidth_kBps":                     1088e3, "memory_capacity_bytes": 404834222080,
		"storage.usage_bytes": 151451733912} {
		if v, ok := e.Get(name); !ok || v-want > 1e-9 || want-v > 1e-9 {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if _, ok := e.Get("controller_avg_read_io_latency_usecs"); ok || left.LowIO != 1 {
		t.Errorf("a latency of no reads is there; left out %+v", left)
	}
}

// Whatever stands where counters are expected is read without harm: as many values as there were good ones.
func FuzzReadElement(f *testing.F) {
	for _, s := range []string{`{"num_iops":"7","x":-1}`, `{"num\u005fiops":7}`, `{"":{"a":[1,"]"]},"num_iops":null}`,
		`{"num_iops":"1e999","avg_io_latency_usecs":"NaN"}`, `[]`, `"text"`, `null`, `{"num_iops":" 3"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stats []byte) {
		data := fmt.Appendf(nil, `{"entities":[{"uuid":"u","stats":%s}]}`, stats)
		p, err := prism.ReadElement(prism.VM, data, -1)
		if !json.Valid(data) != (err != nil) && err == nil {
			t.Fatalf("took %q", data)
		}
		if err == nil {
			for _, e := range p.Entities {
				for _, v := range e.Values {
					if v.V < 0 || v.V != v.V {
						t.Fatalf("%q gave %v", stats, v)
					}
				}
			}
		}
		_, _, _ = prism.ReadCentral(fmt.Appendf(nil, `{"data":%s}`, stats), time.Now(), -1) // only not to panic
	})
}

func ExampleClient_Poll() {
	cert, err := prismsim.NewCertificate(time.Hour)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	address, ended := make(chan string, 1), make(chan error, 1)
	sim := prismsim.New(prismsim.Options{VMs: 2})
	go func() { ended <- sim.Serve(ctx, "127.0.0.1:0", cert, func(a string) { address <- a }) }()
	c, err := prism.New(prism.Options{URL: "https://" + <-address, User: "viewer", Roots: cert.Roots(),
		Password: func(context.Context) (string, error) { return "let-me-look", nil }})
	if err != nil {
		panic(err)
	}
	vms, err := c.Poll(ctx, prism.VM)
	fmt.Println(len(vms.Entities), vms.Entities[0].Name, err)
	c.Close()
	cancel()
	<-ended
	// Output: 2 vm-0001 <nil>
}
