package run_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/exporters/host"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/targets/local"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
	"plimsoll/scenario"
)

// exporting is a target whose VMs have an address, and whose cluster names endpoints of the test's.
type exporting struct {
	target.Target
	endpoints []target.Endpoint
}

type exportingCluster struct {
	target.Cluster
	target.VMMaker
	target.VMPower
	endpoints []target.Endpoint
}

func (e exporting) Check(ctx context.Context) (target.Facts, error) {
	f, err := e.Target.Check(ctx)
	f.Capabilities[target.VMExporters] = "over loopback"
	return f, err
}

func (e exporting) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	c, err := e.Target.Provision(ctx, r)
	if err != nil {
		return nil, err
	}
	return exportingCluster{c, c.(target.VMMaker), c.(target.VMPower), e.endpoints}, nil
}

func (c exportingCluster) Endpoints(context.Context) ([]target.Endpoint, error) {
	return c.endpoints, nil
}
func (c exportingCluster) VMAddress(string) string { return "127.0.0.1" }

// idleScenario has two VMs that do nothing until the test has seen enough, and then is over.
const idleScenario = `
name: idle
display_name: Idle
summary: s
description: ""
estimated_runtime: 600
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: ":2", count_per_node: 1, exporter_ports: [%d]}
workloads: []
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A}
  - vm_group.PowerOn: {vm_group_name: A}
run:
  - test.Wait: {duration_secs: 600}
`

// executeUntil runs a scenario on this machine in real time and stops it when enough says so, which is asked once a
// second.
func executeUntil(
	t *testing.T,
	text string,
	wrap func(target.Target) target.Target,
	enough func() bool,
) (run.Summary, []result.Event) {
	t.Helper()
	var files fs.FS = fstest.MapFS{"test.yml": {Data: []byte(text)}}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: 7, Nodes: 2})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	root := needs.Folder(t)
	place, err := local.Provider{}.New(
		target.Config{Nodes: 2, Clock: clock.Real{}, Options: target.Options{"dir": root, "reserve": "1MiB"}})
	if err != nil {
		t.Fatal(err)
	}
	place = wrap(place)
	facts, err := place.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Build(sc, facts, plan.Options{TimeScale: 1, SizeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	w := &watching{enough: func() bool {
		done := enough()
		if done {
			stop()
		}
		return done
	}}
	s, err := run.Execute(
		ctx,
		run.Request{
			Root:     root,
			RunID:    "idle",
			Program:  "test",
			Source:   "idle",
			Files:    files,
			Scenario: sc,
			Plan:     p,
			Target:   place,
			Facts:    facts,
			Clock:    clock.Real{},
			Observer: w,
		},
	)
	if s.Status != result.StatusStopped || s.Cleaned.State != "yes" || !w.done {
		t.Fatalf("%+v, %v; enough was seen: %v", s, err, w.done)
	}
	return s, w.events
}

type watching struct {
	events []result.Event
	enough func() bool
	done   bool
}

func (w *watching) Event(e result.Event)  { w.events = append(w.events, e) }
func (w *watching) Progress(run.Progress) { w.done = w.done || w.enough() }

// text is a Getter of a text that changes from page to page.
func text(page func(n int) string) target.Getter {
	n := 0
	return func(context.Context) (io.ReadCloser, string, error) {
		n++
		return io.NopCloser(strings.NewReader(page(n))), exporter.Text, nil
	}
}

// endless is a page without an end.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) {
	copy(p, strings.Repeat("#\n", 1+len(p)/2))
	return len(p), e.ctx.Err()
}

// Endpoints of every bad kind beside good ones: each that goes on being bad is told of once and harms no other, one
// that recovers is told of, one that owes a page now and then is not, and everything is in the metrics with the run's
// labels.
func TestScraping(t *testing.T) {
	needs.Time(t)
	x, err := exporter.New("test", host.New(os.DirFS("/"), nil, host.Load), disk{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(x.Handler())
	defer server.Close()
	_, portText, _ := net.SplitHostPort(server.Listener.Addr().String())
	port, _ := strconv.Atoi(portText)
	release := make(chan struct{})
	var mu sync.Mutex
	pages := 0 // of the good endpoint
	on := func(name string, get target.Getter) target.Endpoint {
		return target.Endpoint{Name: name, Machine: "m", Get: get}
	}
	endpoints := []target.Endpoint{
		on("good", text(func(n int) string {
			mu.Lock()
			defer mu.Unlock()
			pages = n
			return fmt.Sprintf("good_total %d\n", n)
		})),
		on("hangs",
			func(ctx context.Context) (io.ReadCloser, string, error) { <-ctx.Done(); return nil, "", ctx.Err() }),
		on("deaf", func(context.Context) (io.ReadCloser, string, error) {
			<-release
			return nil, "", io.EOF
		}),
		on("huge", func(ctx context.Context) (io.ReadCloser, string, error) {
			return io.NopCloser(endless{ctx}), "", nil
		}),
		on("garbage", text(func(n int) string {
			if n >= 2 && n <= 4 {
				return "<html>"
			}
			return "recovers 1\n"
		})),
		on("restarts", text(func(n int) string {
			return fmt.Sprintf("# TYPE restarts_total %s\nrestarts_total %d\n",
				[]string{"counter", "gauge"}[n%2], n%3)
		})),
		on("late", text(func(n int) string {
			if n == 2 || n == 5 {
				return "<html>"
			}
			return "late 1\n"
		})),
		on("panics", func(context.Context) (io.ReadCloser, string, error) { panic("oh") }),
		{
			Name: "off",
			VM:   "no such VM",
			Get:  text(func(int) string { t.Error("an endpoint of a VM that is off was scraped"); return "" }),
		},
		on("good", text(func(int) string { t.Error("the same endpoint was scraped twice"); return "" })),
	}
	s, events := executeUntil(t, fmt.Sprintf(idleScenario, port),
		func(p target.Target) target.Target { return exporting{p, endpoints} },
		func() bool { mu.Lock(); defer mu.Unlock(); return pages >= 8 })
	close(release) // TestMain sees whether anything goes on

	var told []string
	sums := 0
	for _, e := range events {
		if e.Data.Missing >= 4*3 {
			sums++
		}
		if e.Data.Endpoint != "" {
			told = append(told, fmt.Sprintf("%s %s: %s", e.Kind, e.Text, e.Error))
		}
	}
	for _, want := range []string{
		`warning exporter "hangs" of m cannot be scraped: it gave no page within 900ms`,
		`warning exporter "deaf" of m cannot be scraped: it gave no page within 900ms`,
		`warning exporter "huge" of m cannot be scraped: its page is larger than 16 MiB`,
		`warning exporter "garbage" of m cannot be scraped: page: after 0 series: expected a valid start token`,
		`note exporter "garbage" of m is back: `,
		`warning exporter "panics" of m cannot be scraped: internal error, please report it: oh`,
	} {
		n := 0
		for _, got := range told {
			if strings.HasPrefix(got, want) ||
				strings.Contains(want, `"huge"`) &&
					strings.HasPrefix(got, `warning exporter "huge" of m cannot be scraped: it gave no page`) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("told %d times, want once: %s", n, want)
		}
	}
	if sums != 1 {
		t.Errorf("the sum of missing pages was told %d times", sums)
	}
	if len(told) != 6 {
		t.Errorf("%d events of endpoints, want 6: %q", len(told), told)
	}

	folder, err := result.Open(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, newest, _ := store.Bounds()
	read := func(query, label string) map[string]float64 {
		found, err := store.Instant(t.Context(), query, newest)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range found {
			out[f.Label(label)] = f.Points[0].Value
		}
		return out
	}
	up := map[string]float64{"good": 1, "restarts": 1, "garbage": 1, "late": 1, "hangs": 0, "deaf": 0, "huge": 0,
		"panics": 0}
	if d := cmp.Diff(up,
		read(`last_over_time(up{scenario_id="7",job="xray",instance="m",vm_group=""}[1h])`, "endpoint")); d != "" {
		t.Error(d)
	}
	vms := map[string]float64{"__curie_test_7_A_0000": 1, "__curie_test_7_A_0001": 1}
	for query, want := range map[string]map[string]float64{
		`max_over_time(up{vm_group="A",endpoint="` + portText + `"}[1h])`:                              vms,
		`count by (instance) (last_over_time(node_load1{vm_group="A"}[1h]))`:                           vms,
		`max by (instance) (max_over_time(node_disk_reads_completed_total{device="sda"}[1h]))`:         vms,
		`max by (instance) (max_over_time(plimsoll_exporter_collector_success{collector="host"}[1h]))`: vms,
	} {
		if d := cmp.Diff(want, read(query, "instance")); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	if m := folder.Manifest(); m.DiskCounters != result.CountersExported || m.SharedCounters != nil {
		t.Errorf("disk counters %q, shared %+v", m.DiskCounters, m.SharedCounters)
	}
}

// disk is an exporter of one disk.
type disk struct{}

func (disk) Describe() exporter.Description {
	return exporter.Description{
		Name:     "disk",
		Help:     "d",
		Families: []exporter.Family{{Name: "node_disk_reads_completed_total", Type: exporter.Counter, Help: "r"}},
	}
}

func (disk) Collect(_ context.Context, emit exporter.Emit) error {
	emit("node_disk_reads_completed_total", 1, "device", "sda")
	return nil
}

// On this machine its own counters are those of every sandbox, and are there once.
func TestScrapingOfThisMachine(t *testing.T) {
	seconds := 0
	s, events := executeUntil(t, fmt.Sprintf(idleScenario, 9100), func(p target.Target) target.Target { return p },
		func() bool { seconds++; return seconds >= 4 })
	for _, e := range events {
		if e.Kind == result.KindWarning {
			t.Errorf("%s %s", e.Text, e.Error)
		}
	}
	folder, err := result.Open(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	m := folder.Manifest()
	if d := cmp.Diff(&result.SharedCounters{Instance: "host", Endpoint: "host"}, m.SharedCounters); d != "" ||
		m.DiskCounters != result.CountersDerived {
		t.Errorf("%s, disk counters %q", d, m.DiskCounters)
	}
}
