package analysis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// truth is a run of which the truth is known, with the checks whose words are held.
type truth struct {
	name   string
	run    *reporttest.Synthetic
	checks string
}

func holdTruths(t *testing.T, file string, cases []truth) {
	t.Helper()
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "== %s\n", c.name)
		for _, f := range findingsOf(c.run, strings.Fields(c.checks)...) {
			chart := ""
			if f.Chart != nil {
				chart = fmt.Sprintf(" [chart of %d]", len(f.Chart.Lines))
			}
			fmt.Fprintf(&b, "%s, %s: %s\n  %s%s\n", f.Check, f.Severity, f.Sentence, interval(f), chart)
		}
	}
	golden.Compare(t, file, []byte(b.String()))
}

// TestTruthOfMachines holds the words about what the machines underneath have counted.
func TestTruthOfMachines(t *testing.T) {
	holdTruths(t, "testdata/truth-machines.txt", []truth{
		{"uneven NUMA nodes", numa(16, 88, 11), "cpu-imbalance"},
		{"even NUMA nodes", numa(16, 52, 48), "cpu-imbalance"},
		{"one CPU", oneCPU(17, 99, 3), "cpu-imbalance"},
		{"one CPU in interrupts", oneCPU(17, 99, 95), "cpu-imbalance"},
		{"no CPU alone", oneCPU(17, 60, 3), "cpu-imbalance"},
		{"all CPUs", allCPUs(17, 98), "cpu-imbalance host-cpu"},
		{"all CPUs nearly", allCPUs(17, 80), "cpu-imbalance host-cpu"},
		{"one thread", threaded(18, 0.99, 0.005, 4), "client-limit"},
		{"threads that wait for a CPU", threaded(18, 0.62, 0.37, 85), "client-limit"},
		{"threads that sleep", threaded(18, 0.5, 0.02, 85), "client-limit"},
		{"cached reads", underDisks(19, 0, 0.02, false), "device-counters"},
		{"partly cached reads", underDisks(19, 0, 0.8, false), "device-counters"},
		{"buffered reads that reach the device", underDisks(19, 0, 0.99, false), "device-counters cache"},
		{"buffered reads, of holes perhaps", unfilled(underDisks(19, 0, 0.05, false)), "device-counters"},
		{"direct reads of holes", unfilled(underDisks(19, 0, 0.1, true)), "device-counters"},
		{"direct reads of a file written in part", halfFilled(underDisks(19, 0, 0.6, true)),
			"device-counters never-written"},
		{"buffered reads of a file written in part", halfFilled(underDisks(19, 0, 0.3, false)), "device-counters"},
		{"direct reads that something else answers", underDisks(19, 0, 0.4, true), "device-counters never-written"},
		{"a generator at the limit of its group, eight CPUs", grouped(25, 8, 3.95, 55), "generator-cpu host-cpu"},
		{"a generator with room in its group, all CPUs busy", grouped(26, 8, 0.9, 97), "generator-cpu host-cpu"},
		{"a guest whose CPUs are given to others", stolenFrom(29), "host-cpu"},
		{"a guest that idles, whose CPUs are given to others", idleStolenFrom(29), "host-cpu cpu-starved"},
		{"a VM held back by its quota", heldBack(30, 62), "cpu-starved"},
		{"a VM hardly held back by its quota", heldBack(30, 2), "cpu-starved"},
		{"a server held back by its quota", serverHeldBack(30, "postgres (cgroup /db)"), "cpu-starved"},
		{"the load's server held back by its quota", serverIn(serverHeldBack(30, "postgres (cgroup /db)"), "/db/one"),
			"cpu-starved"},
		{"another server held back by its quota", serverIn(serverHeldBack(30, "postgres (cgroup /db)"), "/db2"),
			"cpu-starved"},
		{"a quota that is not the server's", serverHeldBack(30, "java (cgroup /db)"), "cpu-starved"},
		{"writes to flash, once", onFlash(written(19, 0.5), "nvme0n1", "ExampleCorp X1"), "fresh-flash"},
		{"writes to flash, over and over", onFlash(written(19, 3), "nvme0n1", "ExampleCorp X1"), "fresh-flash"},
		{"writes to a virtual disk, once", onFlash(written(19, 0.5), "vda", ""), "fresh-flash"},
		{"reads of flash", onFlash(underDisks(19, 0, 1, true), "nvme0n1", "ExampleCorp X1"), "fresh-flash"},
		{"a machine of one CPU", grouped(27, 1, 0.4, 99), "generator-cpu host-cpu cpu-imbalance"},
		{"one busy CPU of eight", oneOfEight(28), "generator-cpu host-cpu cpu-imbalance"},
		{"direct reads", underDisks(19, 0, 1, true), "device-counters"},
		{"writes held back", underDisks(19, 1, 0.3, false), "device-counters"},
		{"bursts of direct writes", burstsUnderDisks(24), "device-counters"},
		{"direct writes", underDisks(19, 1, 1.02, true), "device-counters"},
		{"a device with others on it", underDisks(19, 0, 2, true), "device-counters"},
		{"no device counted", uncountedDevice(20), "device-counters"},
		{"two devices that share the load", twoDevices(19, true), "device-counters"},
		{"two devices, one of them not counted", twoDevices(19, false), "device-counters"},
		{
			"more than the sheet, in small reads",
			sheeted(21, 64<<10, 140000, "sequential read", "3500 MB/s"),
			"data-sheet",
		},
		{
			"less than the sheet, in small reads",
			sheeted(21, 64<<10, 20000, "sequential read", "3500 MB/s"),
			"data-sheet",
		},
		{"near the sheet", sheeted(21, 1<<20, 3000, "sequential read", "3500 MB/s"), "data-sheet"},
		{"half of it compresses", writing(22, 0.5), "data-reduction"},
		{"one pattern", writing(22, 1), "data-reduction"},
		{"a little compresses", writing(22, 0.2), "data-reduction"},
		{"far below the sheet", sheeted(21, 4<<10, 20000, "random read", "98000"), "data-sheet"},
	})
}

// numa is a machine of two NUMA nodes.
func numa(seed uint64, a, b float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(reporttest.Load{Name: "Workers", VMs: 2, To: 300, Rate: flatRate(9000), Noise: 0.02})
	s.PartPercent(result.NUMACPU, "node-0", "NUMA node 0", flatRate(a), 3)
	s.PartPercent(result.NUMACPU, "node-0", "NUMA node 1", flatRate(b), 3)
	return s
}

// onThisHost has all nodes be parts of one machine.
func onThisHost(s *reporttest.Synthetic) {
	s.Manifest.OneMachine = true
}

// allCPUs is a host all of whose CPUs are busy alike.
func allCPUs(seed uint64, busy float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	onThisHost(s)
	s.Load(reporttest.Load{Name: "Both", To: 300, Rate: flatRate(9000), Noise: 0.02})
	s.Percent(result.HostCPUs, "host", flatRate(busy), 0.2)
	s.PartPercent(result.OneCPU, "host", "CPU 0", flatRate(min(busy+1, 100)), 0.5)
	s.PartPercent(result.OneCPU, "host", "CPU 1", flatRate(busy), 0.5)
	return s
}

// oneCPU is a host of 32 CPUs of which one is busy, for so much in interrupts; the others use 6 %.
func oneCPU(seed uint64, busy, interrupts float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	onThisHost(s)
	s.Load(reporttest.Load{Name: "Packets", To: 300, Rate: flatRate(9000), Noise: 0.02})
	s.Percent(result.HostCPUs, "host", flatRate((busy+31*6)/32), 0.2)
	s.PartPercent(result.OneCPU, "host", "CPU 3", flatRate(busy), 0.5)
	s.PartPercent(result.OneCPU, "host", "CPU 7", flatRate(8), 0.5)
	s.PartPercent(result.OneCPUInterrupts, "host", "CPU 3", flatRate(interrupts), 0.5)
	return s
}

// threaded is a generator whose busiest thread is known, on a host with a device that is at work for some of the time.
func threaded(seed uint64, ran, waited, device float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	onThisHost(s)
	s.Load(reporttest.Load{Name: "Tiny", To: 300, Rate: flatRate(90000), Noise: 0.02, Block: 512, CPU: ran})
	s.Percent(result.DeviceBusy, "sda", flatRate(device), 0.5)
	for i := range s.Data.Workloads {
		if w := &s.Data.Workloads[i]; w.VM != "" && !w.Prefill {
			w.ThreadBusy, w.ThreadWaiting = &ran, &waited
		}
	}
	return s
}

// underDisks is a workload of whose bytes a share is seen by the device.
func underDisks(seed uint64, writes, share float64, direct bool) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(
		reporttest.Load{
			Name:   "Scan",
			To:     300,
			Rate:   flatRate(500),
			Noise:  0.02,
			Block:  1 << 20,
			Writes: writes,
			Extent: 16 << 30,
		},
	)
	for i := range s.Data.Workloads {
		for k := range s.Data.Workloads[i].Streams {
			s.Data.Workloads[i].Streams[k].Direct = direct
		}
	}
	metric := map[float64]string{0: result.DeviceReadBandwidth, 1: result.DeviceWriteBandwidth}[writes]
	s.Series(result.Series{Name: "sda", Measure: metric, Unit: "bytes/s"}, flatRate(500*share*(1<<20)), 1e6)
	return s
}

// grouped is a generator that uses so many of the four CPUs that it may have, on a host of so many, busy in all.
func grouped(seed uint64, cpus int, used, busy float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	onThisHost(s)
	s.Manifest.Nodes[0].Cores = cpus
	s.Load(reporttest.Load{Name: "Both", To: 300, Rate: flatRate(9000), Noise: 0.02, CPU: used})
	for i := range s.Data.VMs {
		s.Data.VMs[i].CPUs = min(4, cpus)
	}
	s.Percent(result.HostCPUs, "host", flatRate(busy), 0.2)
	return s
}

// stolenFrom is a guest of whose CPUs the hypervisor gives a third to others.
func stolenFrom(seed uint64) *reporttest.Synthetic {
	s := grouped(seed, 8, 0.9, 96)
	s.Percent(result.HostSteal, "host", flatRate(32), 0.5)
	return s
}

// idleStolenFrom is a host with room for its generators, which another guest took a fifth of.
func idleStolenFrom(seed uint64) *reporttest.Synthetic {
	s := grouped(seed, 8, 0.9, 60)
	s.Percent(result.HostSteal, "host", flatRate(20), 0.5)
	return s
}

// heldBack is a VM whose CPU quota held it back in so many per cent of its periods.
func heldBack(seed uint64, share float64) *reporttest.Synthetic {
	s := grouped(seed, 8, 0.9, 60)
	s.Percent(result.QuotaThrottled, s.Data.VMs[0].Name, flatRate(share), 0.5)
	return s
}

// serverHeldBack is a load on a PostgreSQL on whose machine a control group was held back by its quota.
func serverHeldBack(seed uint64, group string) *reporttest.Synthetic {
	s := grouped(seed, 8, 0.9, 60)
	for i := range s.Data.Workloads {
		s.Data.Workloads[i].Server = "PostgreSQL 15.4"
	}
	s.PartPercent(result.QuotaThrottled, "host", group, flatRate(30), 0.5)
	return s
}

// serverIn is a run whose load's server is known to be in a control group.
func serverIn(s *reporttest.Synthetic, group string) *reporttest.Synthetic {
	s.Manifest.Environment = append(s.Manifest.Environment,
		result.Fact{Group: result.ServerGroup, Name: result.ControlGroup, Value: group})
	return s
}

// written is a run that writes its extent so many times, without a prefill.
func written(seed uint64, times float64) *reporttest.Synthetic {
	s := underDisks(seed, 1, 1, true)
	s.Data.Workloads = slices.DeleteFunc(s.Data.Workloads, func(w result.Workload) bool { return w.Prefill })
	for i := range s.Data.Workloads {
		w, bytes := &s.Data.Workloads[i], uint64(0)
		for _, o := range w.Ops {
			bytes += o.Bytes
		}
		for k := range w.Streams {
			w.Streams[k].Bytes = int64(float64(bytes) / times / float64(len(w.Streams)))
			w.Streams[k].Device = "/dev/sd" + string(rune('b'+k))
		}
	}
	return s
}

// onFlash has a device that does not rotate under the disks of a run.
func onFlash(s *reporttest.Synthetic, device, model string) *reporttest.Synthetic {
	for name, value := range map[string]string{"device": device, "device model": model, "rotational": "0"} {
		s.Manifest.Environment = append(s.Manifest.Environment, result.Fact{Group: "storage", Name: name, Value: value})
	}
	return s
}

// oneOfEight is a host of eight CPUs of which the generator's thread keeps one busy.
func oneOfEight(seed uint64) *reporttest.Synthetic {
	s := grouped(seed, 8, 0.99, 15)
	s.PartPercent(result.OneCPU, "host", "CPU 5", flatRate(99), 0.2)
	s.PartPercent(result.OneCPU, "host", "CPU 1", flatRate(4), 0.2)
	return s
}

// halfFilled has the prefills of a run write half of what is read.
func halfFilled(s *reporttest.Synthetic) *reporttest.Synthetic {
	for i := range s.Data.Workloads {
		for k := range s.Data.Workloads[i].Streams {
			if w := &s.Data.Workloads[i]; w.Prefill {
				w.Streams[k].Bytes /= 2
			}
		}
	}
	return s
}

// unfilled takes the prefills out of a run.
func unfilled(s *reporttest.Synthetic) *reporttest.Synthetic {
	s.Data.Workloads = slices.DeleteFunc(s.Data.Workloads, func(w result.Workload) bool { return w.Prefill })
	return s
}

// burstsUnderDisks writes for one second of ten; the device's rates are means over four.
func burstsUnderDisks(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(reporttest.Load{Name: "Flush", To: 300, Block: 1 << 20, Writes: 1, Rate: func(t int) float64 {
		if t%10 == 5 {
			return 400
		}
		return 0
	}})
	s.Series(result.Series{Name: "sda", Measure: result.DeviceWriteBandwidth, Unit: "bytes/s"}, func(t int) float64 {
		if t%10 >= 5 && t%10 < 9 {
			return 100 << 20
		}
		return 0
	}, 0)
	return s
}

// twoDevices hold half of a workload's disks each; where not both are counted, the facts say so.
func twoDevices(seed uint64, both bool) *reporttest.Synthetic {
	s := underDisks(seed, 0, 0.5, true)
	if both {
		s.Series(result.Series{Name: "sdb", Measure: result.DeviceReadBandwidth, Unit: "bytes/s"},
			flatRate(250*(1<<20)), 1e6)
		return s
	}
	s.Manifest.Environment = []result.Fact{
		{Group: "storage", Name: "device counters", Value: "sda", Kind: result.DeviceCounters, Number: 1},
		{Group: "storage 2", Name: "device counters", Kind: result.DeviceCounters,
			Missing: "nfs4 carries no block device's number"},
	}
	return s
}

func uncountedDevice(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(reporttest.Load{Name: "Scan", To: 300, Rate: flatRate(500)})
	s.Manifest.Environment = []result.Fact{{Group: "storage", Name: "device counters", Kind: result.DeviceCounters,
		Missing: "overlay lies on other mounts, which this process may not see"}}
	return s
}

// sheeted reads blocks of a size from a device of which something is promised.
func sheeted(seed uint64, block int, rate float64, promise, value string) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 120, 1)
	s.Load(reporttest.Load{Name: "Reads", To: 120, Rate: flatRate(rate), Noise: 0.02, Block: block})
	s.Manifest.Environment = rated(promise, value)
	return s
}

// writing is a workload of whose blocks a share can be reduced away.
func writing(seed uint64, reducible float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 120, 1)
	s.Load(reporttest.Load{Name: "Writes", To: 120, Rate: flatRate(4000), Noise: 0.02, Writes: 0.5})
	for i := range s.Data.Workloads {
		for k := range s.Data.Workloads[i].Streams {
			s.Data.Workloads[i].Streams[k].Reducible = reducible
		}
	}
	return s
}
