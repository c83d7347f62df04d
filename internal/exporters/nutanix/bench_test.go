package nutanix

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/testkit/prismtest"
)

// large is a cluster of so many VMs, with the hosts and disks that go with them.
func large(b *testing.B, vms int) *Exporter {
	s := prismtest.Start(b, prismsim.Options{Hosts: max(1, vms/78), VMs: vms, DisksPerVM: 4, Containers: 10})
	x, _ := made(b, config(b, s, nil))
	x.PollOnce(b.Context())
	return x
}

// BenchmarkPoll is a whole poll over TLS, the simulator's own work included. The processor time
// per VM must not grow.
func BenchmarkPoll(b *testing.B) {
	for _, vms := range []int{100, 1000, 5000, 20000} {
		b.Run(fmt.Sprintf("vms=%d", vms), func(b *testing.B) {
			x := large(b, vms)
			before := processorTime(b)
			for b.Loop() {
				x.PollOnce(b.Context())
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N*vms), "cpu-ns/VM")
			s := x.sources[0]
			n := 0
			for _, t := range s.tried {
				n += t.requests
			}
			b.ReportMetric(float64(n), "requests")
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap_MB") // the simulator's included
		})
	}
}

// processorTime is that of this process, which other work on the machine does not change.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkScrape is a page as Prometheus asks for it, packed, and as one who takes no gzip gets it.
func BenchmarkScrape(b *testing.B) {
	for _, vms := range []int{100, 5000} {
		x := large(b, vms)
		for _, packed := range []bool{true, false} {
			b.Run(fmt.Sprintf("vms=%d/packed=%v", vms, packed), func(b *testing.B) {
				for b.Loop() {
					if err := x.Page(io.Discard, "", packed); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkAgainstOneRequestPerCounter reads nine counters of a cluster's hosts and containers: as a script does that
// asks for one counter of one entity at a time, and as a poll does.
func BenchmarkAgainstOneRequestPerCounter(b *testing.B) {
	s := prismtest.Start(b, prismsim.Options{Hosts: 64, VMs: 5000, Containers: 10, DisksPerVM: 4})
	c := config(b, s, func(c *Config) { c.Kinds = []string{"host", "container"} })
	x, _ := made(b, c)
	x.PollOnce(b.Context()) // the simulator makes its loads once
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Certificate.Roots()}}
	defer transport.CloseIdleConnections()
	ask := func(path, counter string) {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+path+"?metrics="+counter, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.SetBasicAuth("viewer", prismtest.Password)
		answer, err := transport.RoundTrip(r)
		if err != nil {
			b.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(body), `"successful":true`) {
			b.Fatalf("%v %s", err, body)
		}
	}
	var counters []string
	for _, k := range prism.Counters {
		if strings.HasPrefix(k.Prism, "controller_") && len(counters) < 9 {
			counters = append(counters, k.Prism)
		}
	}
	var script, poll time.Duration
	var scriptRequests, pollRequests int
	for b.Loop() {
		s.Requests()
		began := time.Now()
		for _, kind := range []prism.Kind{prism.Host, prism.Container} {
			list, _ := x.Entities(kind)
			path := map[prism.Kind]string{prism.Host: "hosts/", prism.Container: "storage_containers/"}[kind]
			for _, e := range list {
				for _, counter := range counters {
					ask("/PrismGateway/services/rest/v2.0/"+path+e.ID+"/stats", counter)
				}
			}
		}
		script, scriptRequests = script+time.Since(began), s.Requests()
		began = time.Now()
		x.PollOnce(context.Background())
		poll, pollRequests = poll+time.Since(began), s.Requests()
	}
	b.ReportMetric(float64(scriptRequests)/float64(pollRequests), "requests_ratio")
	b.ReportMetric(script.Seconds()/poll.Seconds(), "time_ratio")
}
