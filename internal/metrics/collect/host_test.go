package collect

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// TestMachines records two CPUs, one at 90 % with half of that in interrupts, a device and a generator's thread, and
// finds them in the data.
func TestMachines(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	var busy [2]time.Duration
	for n := range 40 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Report()
			for i, share := range []float64{0.9, 0.1} {
				busy[i] += time.Duration(share * float64(time.Second))
				l.Recorder.HostCPU(record.HostCPUTime{Host: "host", CPU: fmt.Sprint(i), NUMA: i, User: busy[i] / 2,
					Interrupt: busy[i] / 2, Idle: time.Duration(n+1)*time.Second - busy[i]})
			}
			k := uint64(n + 1)
			l.Recorder.HostDevice(
				record.HostDevice{Host: "host", Device: "sda", Reads: 50 * k, ReadBytes: 400_000 * k, Writes: k,
					WrittenBytes: 512 * k, Busy: time.Duration(k) * 250 * time.Millisecond,
					Operations: time.Duration(k) * 1500 * time.Millisecond},
			)
			l.Recorder.Waited("host", "io", time.Duration(k)*400*time.Millisecond)
			l.Recorder.Waited("host", "memory", time.Duration(k)*time.Millisecond)
			if n > 2 {
				l.Recorder.Generator("vm", "W", 0.75, 0.125)
			}
		})
	}
	j.End("finished")
	d := collected(l, &scenario.Scenario{Name: "s"})

	got := map[string]string{}
	for _, s := range d.Series {
		switch s.Measure {
		case result.HostCPUs, result.NUMACPU, result.OneCPU, result.OneCPUInterrupts, result.DeviceReadBandwidth,
			result.DeviceWriteBandwidth, result.DeviceReads, result.DeviceWrites, result.DeviceBusy,
			result.DeviceInFlight, result.IOPressure, result.MemoryPressure:
			v := s.Values[20]
			if v == nil {
				t.Fatalf("%s %s has no value in the middle", s.Measure, s.Name)
			}
			got[s.Measure+" "+s.Name] = fmt.Sprintf("%.6g %s", *v, s.Unit)
		}
	}
	want := map[string]string{
		"host_cpu host": "50 %", "numa_cpu host, NUMA node 0": "90 %", "numa_cpu host, NUMA node 1": "10 %",
		"one_cpu host, CPU 0": "90 %", "one_cpu host, CPU 1": "10 %",
		"one_cpu_interrupts host, CPU 0": "45 %", "one_cpu_interrupts host, CPU 1": "5 %",
		"device_read_bandwidth sda":  "400000 bytes/s",
		"device_write_bandwidth sda": "512 bytes/s", "device_read_iops sda": "50 ops/s",
		"device_write_iops sda": "1 ops/s", "device_busy sda": "25 %", "device_in_flight sda": "1.5 operations",
		"io_pressure host": "40 %",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, w := range d.Workloads {
		switch {
		case w.VM == "" && (w.ThreadBusy != nil || w.ThreadWaiting != nil):
			t.Error("threads of several VMs are told as one")
		case w.VM != "" && (w.ThreadBusy == nil || *w.ThreadBusy != 0.75 || w.ThreadWaiting == nil ||
			*w.ThreadWaiting != 0.125):
			t.Errorf("threads: %v, %v", w.ThreadBusy, w.ThreadWaiting)
		}
	}
}

// TestDevicesOfGuests: what a VM counts of its own devices is kept under its name, without devices that did nothing and
// without what is derived of a VM that counts none.
func TestDevicesOfGuests(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	other := l.Start("other", "G", "W", 1)
	for _, vm := range []string{"vm", "other"} {
		l.Recorder.VM(vm, "G", 0, true)
	}
	agent := l.Recorder.Exporter("agent", "vm", "G")
	for n := range 20 {
		l.Second(func() {
			for _, one := range []*recordtest.Job{j, other} {
				one.Do(&one.Next.Ops[0], 100, 4096, time.Millisecond)
				one.Report()
			}
			text, k := "", float64(n+1)
			for device, of := range map[string]float64{"sda": 0, "sdb": 1} {
				for name, each := range map[string]float64{"io_time_seconds": 0.5, "reads_completed": 100,
					"writes_completed": 7, "read_time_seconds": 1.5, "write_time_seconds": 0.5} {
					text += fmt.Sprintf("node_disk_%s_total{device=%q} %g\n", name, device, of*each*k)
				}
			}
			text += "plimsoll_generator_thread_busy_ratio{workload=\"W\"} 0.25\n" +
				"plimsoll_generator_thread_waiting_ratio{workload=\"W\"} 0.5\n"
			l.Must(agent.Served(series.Page{Text: []byte(text), Time: l.Now}, time.Millisecond))
		})
	}
	j.End("finished")
	other.End("finished")
	d := collected(l, &scenario.Scenario{Name: "s"})
	got := map[string]string{}
	for _, s := range d.Series {
		if s.Part != "" {
			got[s.Measure+" "+s.Name+" "+s.Machine+" "+s.Part] = fmt.Sprintf("%.6g %s", *s.Values[10], s.Unit)
		}
	}
	want := map[string]string{"device_busy vm, sdb vm sdb": "50 %", "device_read_iops vm, sdb vm sdb": "100 ops/s",
		"device_write_iops vm, sdb vm sdb": "7 ops/s", "device_in_flight vm, sdb vm sdb": "2 operations"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, w := range d.Workloads {
		if w.VM == "vm" && (w.ThreadBusy == nil || *w.ThreadBusy != 0.25 || w.ThreadWaiting == nil ||
			*w.ThreadWaiting != 0.5) || w.VM == "other" && w.ThreadBusy != nil {
			t.Errorf("threads of %s: %v, %v", w.VM, w.ThreadBusy, w.ThreadWaiting)
		}
	}
}

// TestNUMANodesOfVMs: an agent tells which NUMA node each CPU of its machine is of; one that does not is left out.
func TestNUMANodesOfVMs(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	agents := map[string]*record.Exporter{}
	for _, vm := range []string{"vm", "other"} {
		l.Recorder.VM(vm, "G", 0, true)
		agents[vm] = l.Recorder.Exporter("agent", vm, "G")
	}
	for n := range 20 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Report()
			for vm, share := range map[string][]float64{"vm": {0.9, 0.7, 0.1, 0.1}, "other": {0.5}} {
				text := ""
				for cpu, busy := range share {
					idle := (1 - busy) / 2
					for mode, seconds := range map[string]float64{"user": busy, "idle": idle, "iowait": idle} {
						text += fmt.Sprintf("node_cpu_seconds_total{cpu=\"%d\",mode=%q} %g\n", cpu, mode,
							seconds*float64(n+1))
					}
					if vm == "vm" {
						text += fmt.Sprintf("plimsoll_cpu_numa_node_info{cpu=\"%d\",numa_node=\"%d\"} 1\n", cpu, cpu/2)
					}
				}
				l.Must(agents[vm].Served(series.Page{Text: []byte(text), Time: l.Now}, time.Millisecond))
			}
		})
	}
	j.End("finished")
	got := map[string]string{}
	for _, s := range collected(l, &scenario.Scenario{Name: "s"}).Series {
		if s.Measure == result.NUMACPU {
			got[s.Name] = fmt.Sprintf("%.6g %s", *s.Values[10], s.Unit)
		}
	}
	want := map[string]string{"vm, NUMA node 0": "80 %", "vm, NUMA node 1": "10 %"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// One NUMA node is the machine itself, and of many CPUs only the busiest are kept.
func TestMachinesKeepWhatMatters(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	for n := range 20 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Report()
			for i := range 12 {
				used := time.Duration(n+1) * time.Duration(i) * 50 * time.Millisecond
				l.Recorder.HostCPU(record.HostCPUTime{Host: "host", CPU: fmt.Sprint(i), User: used,
					Idle: time.Duration(n+1)*time.Second - used})
			}
		})
	}
	j.End("finished")
	var names []string
	for _, s := range collected(l, &scenario.Scenario{Name: "s"}).Series {
		if s.Measure == result.NUMACPU || s.Measure == result.OneCPU {
			names = append(names, s.Name)
		}
	}
	if diff := cmp.Diff([]string{"host, CPU 11", "host, CPU 10", "host, CPU 9", "host, CPU 8"}, names); diff != "" {
		t.Error(diff)
	}
}

// Counters that are read more seldom than reports come have rates all the same.
func TestMachinesReadSeldom(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	for n := range 60 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Report()
			if n%5 == 0 {
				l.Recorder.HostCPU(record.HostCPUTime{Host: "host", CPU: "all",
					Steal: time.Duration(n) * 300 * time.Millisecond, Idle: time.Duration(n) * 700 * time.Millisecond})
				l.Recorder.Quota("vm", uint64(10*n), uint64(2*n))
			}
		})
	}
	j.End("finished")
	got := map[string]string{}
	for _, s := range collected(l, &scenario.Scenario{Name: "s"}).Series {
		if s.Measure == result.HostSteal || s.Measure == result.QuotaThrottled {
			got[s.Measure] = fmt.Sprintf("%.3g %s", *s.Values[40], s.Unit)
		}
	}
	want := map[string]string{result.HostSteal: "30 %", result.QuotaThrottled: "20 %"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
