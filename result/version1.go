package result

import (
	"encoding/json"
	"strings"

	"plimsoll/unit"
)

// Folders of version 1 hold block operations only and name a series by one word. They are read as if written today.

// version1Raw is the name of raw output in folders of version 1, whatever made it.
const version1Raw = "fio.out.zst"

// upgrade gives data of version 1 the operations and measures that its documents imply; doc is the document.
func (d *Data) upgrade(doc []byte) error {
	if d.Version > 1 {
		return nil
	}
	var old struct {
		Series []struct {
			Metric string `json:"metric"`
		} `json:"series"`
	}
	if err := json.Unmarshal(doc, &old); err != nil {
		return err
	}
	for i := range d.Series {
		s := &d.Series[i]
		s.Op, s.Measure = version1Metric(old.Series[i].Metric)
		switch s.Measure {
		case HostCPUs:
			s.Machine = s.Name
		case NUMACPU, OneCPU, OneCPUInterrupts:
			s.Machine, s.Part, _ = strings.Cut(s.Name, ", ")
		case DeviceBusy, DeviceReadBandwidth, DeviceWriteBandwidth, DeviceReads, DeviceWrites:
			s.Machine, s.Part = "host", s.Name // there was one
		}
	}
	for i := range d.Workloads {
		d.Workloads[i].Operations = BlockOperations()
	}
	return nil
}

// version1Metric returns what a name of version 1 stands for.
func version1Metric(name string) (op, measure string) {
	for _, o := range BlockOperations() {
		for _, m := range []string{Rate, Bandwidth, LatencyMean, LatencyP50, LatencyP99, LatencyP999} {
			if name == (Series{Op: o.Name, Measure: m, Unit: OperationsUnit}).Metric() {
				return o.Name, m
			}
		}
	}
	return "", name
}

func (j *RawJob) upgrade() {
	if j.Version == 1 {
		j.Operations = BlockOperations()
	}
}

// upgrade says of the facts of version 1, which were texts alone, what they are; and what those name that were recorded
// before that was kept.
func (m *Manifest) upgrade() {
	for i := range m.Environment {
		if f := &m.Environment[i]; f.Identifies == "" {
			f.Identifies = identities[f.Group+"/"+f.Name]
		}
	}
	if m.Version != 1 {
		return
	}
	m.OneMachine, m.DiskCounters = m.Target == "local", CountersDerived
	for i := range m.Environment {
		f := &m.Environment[i]
		bytes, err := unit.ParseBytes(f.Value)
		name := f.Group + "/" + f.Name
		switch {
		case name == "storage/file system" && (f.Value == "tmpfs" || f.Value == "ramfs"):
			f.Kind = StorageMedia
		case name == "storage/size" && err == nil:
			f.Kind, f.Number = StorageSize, float64(bytes)
		case name == "storage/free" && err == nil:
			f.Kind, f.Number, f.Across = StorageFree, float64(bytes), Volatile
		case name == "host/kernel", strings.HasSuffix(name, "firmware"):
			f.Across = MustAgree
		case version1Volatile[name]:
			f.Across = Volatile
		}
	}
}

// version1Volatile are facts of version 1 that differ between any two runs.
var version1Volatile = map[string]bool{
	"host/load average at check": true, "host/boot": true, "host/user": true, "cpu/clock at check": true,
	"storage/free": true, "storage/used": true, "storage/folder": true, "memory/available at check": true,
	"memory/swap free": true, "clock/largest error of the wall clock": true, "limits/processes tracked in": true,
	"limits/CPU limits in": true, "limits/memory limits in": true,
}
