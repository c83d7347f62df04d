package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDataOfVersion1 compares what an old document becomes, series by series.
func TestDataOfVersion1(t *testing.T) {
	t.Parallel()
	names := [][2]string{
		{"read_iops", "OLTP"}, {"write_bandwidth", "OLTP"}, {"trim_latency_mean", "OLTP"}, {"read_latency_p50", "OLTP"},
		{"write_latency_p99", "OLTP"}, {"read_latency_p99.9", "OLTP"}, {"host_cpu", "host"},
		{"numa_cpu", "host, node 1"}, {"one_cpu", "host, CPU 7"}, {"one_cpu_interrupts", "host, CPU 7"},
		{"device_busy", "sda"}, {"device_read_bandwidth", "sda"}, {"device_write_bandwidth", "sda"},
		{"device_read_iops", "sda"}, {"device_write_iops", "sda"}, {"node_cpu", "node-1"}, {"", "x"},
	}
	doc, d := `{"series":[`, Data{Version: 1, Workloads: []Workload{{Name: "OLTP"}, {Name: "DSS"}}}
	for i, n := range names {
		if i > 0 {
			doc += ","
		}
		doc += `{"metric":"` + n[0] + `"}`
		d.Series = append(d.Series, Series{Name: n[1]})
	}
	if err := d.upgrade([]byte(doc + "]}")); err != nil {
		t.Fatal(err)
	}
	host := func(name, machine, part, measure string) Series {
		return Series{Name: name, Machine: machine, Part: part, Measure: measure}
	}
	want := Data{Version: 1, Series: []Series{
		{Name: "OLTP", Op: "read", Measure: Rate}, {Name: "OLTP", Op: "write", Measure: Bandwidth},
		{Name: "OLTP", Op: "trim", Measure: LatencyMean}, {Name: "OLTP", Op: "read", Measure: LatencyP50},
		{Name: "OLTP", Op: "write", Measure: LatencyP99}, {Name: "OLTP", Op: "read", Measure: LatencyP999},
		host("host", "host", "", HostCPUs), host("host, node 1", "host", "node 1", NUMACPU),
		host("host, CPU 7", "host", "CPU 7", OneCPU), host("host, CPU 7", "host", "CPU 7", OneCPUInterrupts),
		host("sda", "host", "sda", DeviceBusy), host("sda", "host", "sda", DeviceReadBandwidth),
		host("sda", "host", "sda", DeviceWriteBandwidth), host("sda", "host", "sda", DeviceReads),
		host("sda", "host", "sda", DeviceWrites), {Name: "node-1", Measure: NodeCPU}, {Name: "x"},
	}, Workloads: []Workload{{Name: "OLTP", Operations: BlockOperations()},
		{Name: "DSS", Operations: BlockOperations()}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now := Data{Version: 2, Series: []Series{{Name: "a", Op: "read"}}, Workloads: []Workload{{}}}
	kept := Data{Version: 2, Series: []Series{{Name: "a", Op: "read"}}, Workloads: []Workload{{}}}
	if err := now.upgrade([]byte("{")); err != nil || cmp.Diff(kept, now) != "" {
		t.Errorf("a document of today became %+v (%v)", now, err)
	}
	if err := (&Data{Version: 1}).upgrade([]byte("{")); err == nil {
		t.Error("half a document is taken")
	}
}

// TestManifestOfVersion1 compares what the facts of old manifests become.
func TestManifestOfVersion1(t *testing.T) {
	t.Parallel()
	facts := func() []Fact {
		return []Fact{
			{Group: "storage", Name: "file system", Value: "tmpfs"},
			{Group: "storage", Name: "file system", Value: "ramfs"},
			{Group: "storage", Name: "file system", Value: "ext4"}, {Group: "storage", Name: "size", Value: "2 GiB"},
			{Group: "storage", Name: "size", Value: "large"}, {Group: "storage", Name: "free", Value: "1 GiB"},
			{Group: "storage", Name: "free", Value: "some"}, {Group: "host", Name: "kernel", Value: "6.1"},
			{Group: "disk", Name: "sda firmware", Value: "7"}, {Group: "host", Name: "boot", Value: "b"},
			{Group: "host", Name: "name", Value: "db1"}, {Group: "host", Name: "user", Value: "ann", Identifies: Host},
		}
	}
	m := Manifest{Version: 1, Target: "local", Environment: facts()}
	m.upgrade()
	want := Manifest{Version: 1, Target: "local", OneMachine: true, DiskCounters: CountersDerived, Environment: facts()}
	e := want.Environment
	e[0].Kind, e[1].Kind = StorageMedia, StorageMedia
	e[3].Kind, e[3].Number = StorageSize, 2<<30
	e[5].Kind, e[5].Number, e[5].Across = StorageFree, 1<<30, Volatile
	e[6].Across, e[9].Across, e[11].Across = Volatile, Volatile, Volatile
	e[7].Across, e[8].Across = MustAgree, MustAgree
	e[9].Identifies, e[10].Identifies = Serial, Host
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	elsewhere := Manifest{Version: 1, Target: "sim"}
	elsewhere.upgrade()
	if diff := cmp.Diff(Manifest{Version: 1, Target: "sim", DiskCounters: CountersDerived}, elsewhere); diff != "" {
		t.Errorf("of a simulated cluster (-want +got):\n%s", diff)
	}
	today := Manifest{Version: 2, Target: "local", Environment: facts()}
	today.upgrade()
	kept := Manifest{Version: 2, Target: "local", Environment: facts()}
	kept.Environment[9].Identifies, kept.Environment[10].Identifies = Serial, Host
	if diff := cmp.Diff(kept, today); diff != "" {
		t.Errorf("of today (-want +got):\n%s", diff)
	}
}

// TestRawJobOfVersion1 holds what an old start of a workload counted, and where its output lies.
func TestRawJobOfVersion1(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]RawJob{
		1: {Version: 1, Engine: "fio", Operations: BlockOperations()}, 2: {Version: 2, Engine: "pg"},
	} {
		j := RawJob{Version: version, Engine: want.Engine}
		j.upgrade()
		if diff := cmp.Diff(want, j); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", version, diff)
		}
	}
	one, two := (RawJob{Version: 1, Engine: "x"}).output(), (RawJob{Version: 2, Engine: "x"}).output()
	if one != "fio.out.zst" || two != "x.out.zst" {
		t.Errorf("their output lies in %s and %s", one, two)
	}
}
