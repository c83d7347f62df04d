package series_test

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/metrics/series"
)

var sizes = []int{10, 100, 1000}

// sandbox holds what one machine with one workload writes each second: 13 counters and gauges and two native
// histograms.
type sandbox struct {
	counters []*series.Handle
	hists    []*series.Handle
	hist     *hist.Histogram
}

var counters = []string{
	"node_disk_reads_completed_total", "node_disk_writes_completed_total", "node_disk_read_bytes_total",
	"node_disk_written_bytes_total",
	"node_disk_read_time_seconds_total", "node_disk_write_time_seconds_total", "plimsoll_vm_node",
	"plimsoll_workload_active", "plimsoll_workload_errors_total",
}

func sandboxes(n int) []*sandbox {
	out := make([]*sandbox, n)
	for i := range out {
		ls := []series.Label{
			{Name: "instance", Value: fmt.Sprintf("vm-%04d", i)}, {Name: "vm_group", Value: fmt.Sprintf("g%d", i%4)},
			{Name: "device", Value: "data"},
			{Name: "job", Value: "xray"}, {Name: "scenario_id", Value: "42"},
			{Name: "scenario_display_name", Value: "Lab"},
			{Name: "scenario_name", Value: "lab"}, {Name: "cluster_name", Value: "c"},
		}
		s := &sandbox{hist: &hist.Histogram{}}
		for _, name := range counters {
			s.counters = append(s.counters, series.NewHandle(name, ls))
		}
		for _, op := range []string{"read", "write"} {
			with := append(slices.Clone(ls), series.Label{Name: "op", Value: op})
			s.counters = append(s.counters, series.NewHandle("plimsoll_workload_ops_total", with),
				series.NewHandle("plimsoll_workload_bytes_total", with))
			s.hists = append(s.hists, series.NewHandle("plimsoll_workload_service_time_seconds", with))
		}
		for k := range 200 {
			s.hist.Add(uint64(100_000+k*10_000+i), 5)
		}
		out[i] = s
	}
	return out
}

func tick(tb testing.TB, store *series.Store, all []*sandbox, at time.Time, n int) {
	b := store.Batch()
	for _, s := range all {
		for k, h := range s.counters {
			b.Append(h, at, float64(n*(k+1)))
		}
		s.hist.Add(1_500_000, 20)
		for _, h := range s.hists {
			b.AppendHistogram(h, at, s.hist)
		}
	}
	if err := b.Commit(); err != nil {
		tb.Fatal(err)
	}
}

func open(tb testing.TB) *series.Store {
	tb.Helper()
	s, err := series.Open(tb.TempDir(), series.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// BenchmarkIngest is one second's points of so many sandboxes, and the heap that a minute of them holds.
func BenchmarkIngest(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := sandboxes(n)
			before := heap()
			store := open(b)
			i := 0
			for ; i < 60; i++ {
				tick(b, store, all, t0.Add(time.Duration(i)*time.Second), i)
			}
			held := heap() - before
			b.ReportAllocs()
			began := cpu()
			for b.Loop() {
				tick(b, store, all, t0.Add(time.Duration(i)*time.Second), i)
				i++
			}
			b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N)/float64(n), "cpu-us/sandbox")
			b.ReportMetric(held/1e6, "MB-heap")
		})
	}
}

// BenchmarkQuery is the language's IOPS query over two minutes at 5 s.
func BenchmarkQuery(b *testing.B) {
	const query = `sum by (instance) (irate(node_disk_reads_completed_total{scenario_id="42"}[30s]) + irate(node_disk_writes_completed_total{scenario_id="42"}[30s]))`
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store, all := open(b), sandboxes(n)
			for i := range 120 {
				tick(b, store, all, t0.Add(time.Duration(i)*time.Second), i)
			}
			b.ReportAllocs()
			began := cpu()
			for b.Loop() {
				got, err := store.Range(b.Context(), query, t0, t0.Add(2*time.Minute), 5*time.Second)
				if err != nil || len(got) != n {
					b.Fatal(len(got), err)
				}
			}
			b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N)/float64(n), "cpu-us/sandbox")
		})
	}
}

// heap returns what is in use after a collection, in bytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse)
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
