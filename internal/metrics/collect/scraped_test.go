package collect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
)

// A VM whose exporter serves counters of disks has no derived ones from then on, and at no moment both: what published
// queries make of them is the rate of one or the other, or nothing, never their sum.
func TestDerivedCountersStandBack(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm-0", "G", 0, true)
	l.Recorder.VM("vm-1", "G", 0, true)
	if got := l.Recorder.DiskCounters(); got != result.CountersDerived {
		t.Errorf("%q before anything is scraped", got)
	}
	var jobs []*recordtest.Job
	for _, vm := range []string{"vm-0", "vm-1"} {
		jobs = append(jobs, l.Start(vm, "G", "W", 1))
	}
	plain, disks := l.Recorder.Exporter("9187", "vm-1", "G"), l.Recorder.Exporter("9100", "vm-0", "G")
	served := 0
	for second := range 60 {
		l.Second(func() {
			for _, j := range jobs {
				j.Do(&j.Next.Ops[0], 10, 40960, time.Millisecond)
				j.Report()
			}
		})
		l.Must(plain.Served(series.Page{Text: []byte("pg_up 1\n"), Time: l.Now}, time.Millisecond))
		if second >= 20 {
			served += 7
			text := fmt.Sprintf(
				"node_disk_reads_completed_total{device=\"sda\"} %d\n"+
					"node_disk_writes_completed_total{device=\"sda\"} 0\n",
				served,
			)
			l.Must(disks.Served(series.Page{Text: []byte(text), Time: l.Now}, time.Millisecond))
		}
		if second == 30 { // a VM that is made while its exporter is known already
			l.Recorder.VM("vm-2", "G", 0, true)
		}
	}
	query := `sum by (instance) (irate(node_disk_reads_completed_total{scenario_id="42", vm_group="G"}[30s]))`
	found, err := l.Store.Range(t.Context(), query, recordtest.Epoch.Add(2*time.Second), l.Now, time.Second)
	l.Must(err)
	rates := map[string][]float64{}
	for _, s := range found {
		for _, p := range s.Points {
			if v := p.Value; !slices.Contains(rates[s.Label("instance")], v) {
				rates[s.Label("instance")] = append(rates[s.Label("instance")], v)
			}
		}
	}
	if d := cmp.Diff(map[string][]float64{"vm-0": {10, 7}, "vm-1": {10}, "vm-2": {0}}, rates); d != "" {
		t.Errorf("rates seen in their order: %s", d)
	}
	if got := l.Read(`count(last_over_time(plimsoll_vm_node{instance="vm-0"}[2s]))`, 59); got == "0 series" {
		t.Error("the VM that counts for itself is not known to be on")
	}
	if got := l.Recorder.DiskCounters(); got != result.CountersMixed {
		t.Errorf("%q where one VM of three counts for itself", got)
	}
}

// What is scraped carries the run's labels, and an endpoint that fails ends its series and says so.
func TestScrapedSeries(t *testing.T) {
	l := recordtest.New(t)
	e := l.Recorder.Exporter("9100", "vm-0", "G")
	read := func(second int) map[string]float64 {
		found, err := l.Store.Instant(t.Context(),
			`{scenario_id="42",vm_group="G",instance="vm-0",job="xray",endpoint="9100",scenario_name="lab"}`,
			recordtest.Epoch.Add(time.Duration(second)*time.Second))
		l.Must(err)
		got := map[string]float64{}
		for _, s := range found {
			got[s.Label("__name__")+" "+s.Label("exported_job")] = s.Points[0].Value
		}
		return got
	}
	at := func(second int) time.Time { return recordtest.Epoch.Add(time.Duration(second) * time.Second) }
	l.Must(e.Served(series.Page{Text: []byte("node_load1{job=\"node\"} 3\n"), Time: at(1)}, 250*time.Millisecond))
	if err := e.Served(series.Page{Text: []byte("<html>"), Time: at(2)}, time.Second); err == nil {
		t.Error("a page that is none was taken")
	}
	l.Must(e.Served(series.Page{Text: []byte("node_load1{job=\"node\"} 4\n"), Time: at(3)}, time.Second))
	l.Must(e.Failed(at(4), 900*time.Millisecond))
	l.Must(e.Gone(at(5)))
	want := []map[string]float64{
		{"node_load1 node": 3, "up ": 1, "scrape_duration_seconds ": 0.25, "scrape_samples_scraped ": 1},
		{"up ": 0, "scrape_duration_seconds ": 1, "scrape_samples_scraped ": 0},
		{"node_load1 node": 4, "up ": 1, "scrape_duration_seconds ": 1, "scrape_samples_scraped ": 1},
		{"up ": 0, "scrape_duration_seconds ": 0.9, "scrape_samples_scraped ": 0},
		{}, // it is gone
	}
	if d := cmp.Diff(want, []map[string]float64{read(1), read(2), read(3), read(4), read(5)}); d != "" {
		t.Error(d)
	}
}
