package analysis

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

func flatRate(x float64) func(int) float64 { return func(int) float64 { return x } }

// stepped gives each stretch its own value: at seconds below until[i], values[i].
func stepped(until []int, values ...float64) func(int) float64 {
	return func(t int) float64 {
		for i, u := range until {
			if t < u {
				return values[i]
			}
		}
		return values[len(values)-1]
	}
}

// neighboured is a database of 4,000 offered operations per second before, with and after a neighbour.
func neighboured(seed uint64, with float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 3)
	s.Load(reporttest.Load{
		Name: "OLTP", To: 900, Offered: 4000, Noise: 0.01, Rate: stepped([]int{300, 600, 900}, 4000, with, 4000),
		Writes: 0.5, Depth: 32,
		Seconds: stepped(
			[]int{300, 600, 900},
			1e-3,
			2.5e-3,
			1.02e-3,
		), Cuts: []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with DSS"}, {At: 900, Name: "alone (2)"}},
	})
	s.Load(
		reporttest.Load{
			Name:  "DSS",
			Node:  1,
			From:  300,
			To:    600,
			Rate:  flatRate(1400),
			Noise: 0.02,
			Block: 1 << 20,
			Depth: 40,
			Cuts:  nil,
		},
	)
	return s
}

// scaleOut follows the Universal Scalability Law in stages of 120 s: one VM of one operation, then four of four each
// time.
func scaleOut(seed uint64, alpha, beta float64) *reporttest.Synthetic {
	const stages, long = 9, 120
	s := reporttest.NewSynthetic(seed, stages*long, 4)
	total := func(n float64) float64 { return 2500 * n / (1 + alpha*(n-1) + beta*n*(n-1)) }
	inFlight := func(t int) float64 { return 1 + 16*float64(t/long) }
	for i := range stages {
		l := reporttest.Load{
			Name:   fmt.Sprintf("Worker %d", i),
			From:   i * long,
			To:     stages * long,
			Noise:  0.01,
			VMs:    4,
			Depth:  4,
			Spread: true,
		}
		if i == 0 {
			l.Name, l.VMs, l.Depth = "First", 1, 1
		}
		mine := float64(l.VMs * l.Depth)
		l.Rate = func(t int) float64 { n := inFlight(t); return total(n) * mine / n }
		s.Load(l)
	}
	return s
}

// outage loses power at 300 s, does nothing for so long, and comes back within 30 s more.
func outage(seed uint64, dark int) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 4)
	back := 300 + dark
	s.Mark(300, result.KindFault, "node-0 power off")
	s.Mark(310, result.KindFault, "Power on sent to node-0")
	rate := func(t int) float64 {
		switch {
		case t < 300:
			return 8000
		case t < back:
			return 0
		}
		return 8000 * min(1, float64(t-back+1)/30)
	}
	s.Load(
		reporttest.Load{
			Name:    "OLTP",
			To:      900,
			VMs:     4,
			Spread:  true,
			Noise:   0.02,
			Rate:    rate,
			Seconds: flatRate(1e-3),
			Writes:  0.5,
		},
	)
	return s
}

// migrating reads from a slow tier that hands its data to a fast one: the rate rises for 180 of 300 s.
func migrating(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(reporttest.Load{Name: "Reads 16K", To: 300, Noise: 0.03, Block: 16 << 10, Rate: func(t int) float64 {
		return 500 + 9500*math.Min(1, float64(t)/180)
	}})
	return s
}

// logAndFlush is a log whose writes stop whenever a checkpoint of 5 s comes, every 60 s, on the same VM.
func logAndFlush(seed uint64, stall float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 1)
	flush := func(t int) bool { return t%60 >= 50 && t%60 < 55 }
	s.Load(
		reporttest.Load{Name: "Log", Group: "DB", To: 600, Noise: 0.03, Writes: 1, Depth: 1, Rate: func(t int) float64 {
			if flush(t) {
				return 800 * stall
			}
			return 800
		}, Seconds: flatRate(1e-3)},
	)
	s.Load(
		reporttest.Load{
			Name:   "Checkpoint",
			Group:  "DB",
			To:     600,
			Writes: 1,
			Block:  64 << 10,
			Rate: func(t int) float64 {
				if flush(t) {
					return 3000
				}
				return 40
			},
			Seconds: flatRate(2e-3),
		},
	)
	return s
}

// workingSets is a sweep whose mean doubles between 64 and 128 GiB.
func workingSets(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 6*120, 1)
	for i := range 6 {
		size := int64(4<<30) << (2 * i)
		rate := 1 / 400e-6
		if size > 64<<30 {
			rate /= 2
		}
		s.Load(
			reporttest.Load{
				Name:   fmt.Sprintf("Set %d", i),
				Group:  "G",
				From:   i * 120,
				To:     i*120 + 118,
				Depth:  1,
				Extent: size,
				Noise:  0.03,
				Rate:   flatRate(rate),
			},
		)
	}
	return s
}

// findingsOf are a run's findings of some checks.
func findingsOf(s *reporttest.Synthetic, checks ...string) []result.Finding {
	var out []result.Finding
	for _, f := range Run(s.Manifest, s.Data) {
		for _, c := range checks {
			if f.Check == c {
				out = append(out, f)
			}
		}
	}
	return out
}

// TestTruth holds the words about runs of which the truth is known; every one with its chart where a series is its
// evidence.
func TestTruth(t *testing.T) {
	cases := []truth{
		{"neighbour takes a tenth", neighboured(1, 3600), "windows latency-cost baseline latency-kind"},
		{"neighbour takes nothing", neighboured(2, 4000), "windows"},
		{"neighbour comes and goes", bursts(15), "windows latency-cost"},
		{"disturbed baseline", disturbed(3), "baseline steady-state"},
		{"scale-out that bends", scaleOut(4, 0.01, 1e-5), "scalability load-curve windows"},
		{"scale-out without crosstalk", scaleOut(5, 0.0007, 0), "scalability load-curve"},
		{"power loss", outage(6, 120), "recovery stalls"},
		{"power loss for good", outage(6, 600), "recovery"},
		{"up-migration", migrating(7), "residency steady-state"},
		{"checkpoints starve the log", logAndFlush(8, 0), "stalls steady-state"},
		{"checkpoints leave the log alone", logAndFlush(8, 1), "stalls"},
		{"a neighbour starves the log section", oltpSections(21, 0, flusher), "stalls"},
		{"a section starves another", oltpSections(22, 0.1, bursting), "stalls"},
		{"checkpoints leave the log section alone", oltpSections(23, 1, bursting), "stalls"},
		{"nobody to blame", oltpSections(24, 0, quiet), "stalls"},
		{"all sections stop together", wholeStops(25), "stalls"},
		{"working sets", workingSets(9), "cache-steps"},
		{"restore", restored(10), "ingest"},
		{"client draws its output", drawing(11), "client-limit"},
		{"uneven nodes", uneven(12, 90, 20), "cpu-imbalance"},
		{"even nodes", uneven(12, 55, 50), "cpu-imbalance"},
		{"links", linked(13, 4000e6), "bus-limit data-sheet data-reduction too-fast in-memory"},
		{"beyond the link", linked(13, 1000e6), "bus-limit"},
		{"near the link", linked(13, 2000e6), "bus-limit"},
		{"disks count less", counted(14, 0.4), "device-counters"},
		{"disks count the same", counted(14, 1), "device-counters"},
		{"disks count more", counted(14, 1.3), "device-counters"},
	}
	holdTruths(t, "testdata/truth.txt", cases)
}

// bursts is a workload whose neighbour comes for every other of ten minutes and takes a quarter.
func bursts(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 2)
	l := reporttest.Load{
		Name:  "Steady",
		To:    600,
		Noise: 0.02,
		Rate:  func(t int) float64 { return 4000 - 1000*float64(t/60%2) },
	}
	for i := range 10 {
		name := []string{"alone", "with Flush"}[i%2]
		if i > 1 {
			name += fmt.Sprintf(" (%d)", i/2+1)
		}
		l.Cuts = append(l.Cuts, reporttest.Cut{At: 60 * (i + 1), Name: name})
	}
	s.Load(l)
	return s
}

// disturbed is a baseline that falls to 85 % after 100 s and stands still for 4 s at 220.
func disturbed(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 2)
	s.Load(reporttest.Load{Name: "OLTP", To: 600, Noise: 0.01, Rate: func(t int) float64 {
		switch {
		case t >= 220 && t < 224:
			return 0
		case t < 100:
			return 4000
		}
		return 3400
	}, Seconds: flatRate(1e-3), Cuts: []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with DSS"}}})
	s.Load(reporttest.Load{Name: "DSS", Node: 1, From: 300, To: 600, Rate: flatRate(1400), Noise: 0.02, Block: 1 << 20})
	return s
}

// restored writes 64 GiB on each of two VMs once.
func restored(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 512, 1)
	s.Load(
		reporttest.Load{
			Name:   "Restore",
			VMs:    2,
			To:     512,
			Writes: 1,
			Block:  256 << 10,
			Extent: 64 << 30,
			Noise:  0.05,
			Rate:   flatRate(2 * 64 << 30 / (256 << 10) / 512),
		},
	)
	for i := range s.Data.Workloads {
		for k := range s.Data.Workloads[i].Ops {
			o := &s.Data.Workloads[i].Ops[k]
			o.Bytes = 64 << 30 // exactly, whatever noise made of the rate
		}
	}
	return s
}

// drawing is a client whose one process takes a whole CPU while the server idles.
func drawing(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 2)
	s.Load(reporttest.Load{Name: "TPC", To: 300, Rate: flatRate(2066), Noise: 0.02, CPU: 0.99})
	s.CPU("node-0", flatRate(20), 2)
	s.CPU("node-1", flatRate(18), 2)
	return s
}

func uneven(seed uint64, a, b float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 2)
	s.Load(reporttest.Load{Name: "Even", VMs: 4, Spread: true, To: 300, Rate: flatRate(9000), Noise: 0.02})
	s.CPU("node-0", flatRate(a), 3)
	s.CPU("node-1", flatRate(b), 3)
	return s
}

// linked moves 1.6 GB/s over a path named by facts; the device's link carries so many bytes per second.
func linked(seed uint64, device float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(
		reporttest.Load{
			Name:  "Scan",
			To:    300,
			Rate:  flatRate(1600e6 / (1 << 20)),
			Noise: 0.02,
			Block: 1 << 20,
			Depth: 16,
		},
	)
	s.Manifest.Environment = slices.Concat([]result.Fact{
		{Group: "storage", Name: "adapter link", Value: "SAS-3 x8", Kind: result.LinkCeiling, Number: 8400e6},
		{Group: "storage", Name: "device link", Value: "PCIe-3", Kind: result.LinkCeiling, Number: device},
		{Group: "storage", Name: "network link", Missing: "not readable", Kind: result.LinkCeiling},
		{Group: "storage", Name: "deduplication ratio", Value: "3.2:1", Kind: result.DataReduction, Number: 3.2},
		{Group: "storage", Name: "file system", Value: "xfs"},
	}, rated("sequential read", "2000 MB/s"), rated("random read", "500000 IOPS"))
	return s
}

// counted has disks that count a share of what their generator claims.
func counted(seed uint64, share float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(reporttest.Load{Name: "OLTP", To: 300, Rate: flatRate(4000), Noise: 0.02})
	panel := result.Panel{ID: "p", Title: "Disks", Kind: "vm_group", Type: "iops", Unit: "ops/s", VMGroup: "OLTP"}
	disks := result.Series{Name: "Disks", Start: s.At(0), Step: 5}
	for range 61 {
		v := 4000 * share
		disks.Values = append(disks.Values, &v)
	}
	panel.Series = []result.Series{disks}
	s.Data.Panels = append(s.Data.Panels, panel)
	return s
}
