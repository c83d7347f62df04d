package perf_test

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
)

// fleet starts ten VMs on every node, each with an OLTP-like job of a paced and a closed stream.
func fleet(nodes int) []*perf.Job {
	w := perf.New(perf.DefaultTruth(), nodes)
	var jobs []*perf.Job
	for i := range 10 * nodes {
		paced := result.Stream{Name: "db", Device: "/dev/sdb", Depth: 32, Rate: 500, OpenLoop: true, Reads: true,
			Writes: true, ReadShare: 0.5, ReadBytes: 8192,
			WriteBytes: 8192, Random: 1, Bytes: 8 << 30, Direct: true}
		log := result.Stream{Name: "log", Device: "/dev/sdc", Depth: 1, Rate: 20, Writes: true, WriteBytes: 32768,
			Random: 0.1, Bytes: 1 << 30, Direct: true}
		jobs = append(jobs, w.Start(start, fmt.Sprint("vm-", i), i/10, []result.Stream{paced, log}, perf.JobOptions{}))
	}
	return jobs
}

// BenchmarkScrape is one reading of all counters after five more seconds, per VM.
func BenchmarkScrape(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("vms=%d", 10*nodes), func(b *testing.B) {
			jobs := fleet(nodes)
			now := start
			for _, j := range jobs {
				j.Counters(now)
			}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(5 * time.Second)
				for _, j := range jobs {
					j.Counters(now)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(jobs)), "ns/vm")
		})
	}
}

// BenchmarkHistograms is one report with histograms after a minute, per VM.
func BenchmarkHistograms(b *testing.B) {
	jobs := fleet(10)
	now := start
	for b.Loop() {
		now = now.Add(time.Minute)
		for _, j := range jobs {
			j.Report(now)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(jobs)), "ns/vm")
}

// BenchmarkChange is a fault at one node of a thousand and the next reading, everything solved again.
func BenchmarkChange(b *testing.B) {
	truth := perf.DefaultTruth()
	w := perf.New(truth, 1000)
	for i := range 10_000 {
		w.Start(start, fmt.Sprint("vm-", i), i/10, []result.Stream{reads(8, 0)}, perf.JobOptions{})
	}
	now := start
	for b.Loop() {
		w.Fault(now, perf.Fault{Kind: perf.SlowDisk, Node: 7, Factor: 1.1, Until: now.Add(time.Second)})
		now = now.Add(10 * time.Second)
		w.Advance(now)
	}
}
