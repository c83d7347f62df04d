package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// neighbour runs an OLTP load on two VMs for a minute; a DSS load joins on a third for the second half.
func neighbour(t *testing.T) *recordtest.Lab {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "setup", "")
	for i, g := range []string{"OLTP", "OLTP", "DSS"} {
		l.Recorder.VM(recordtest.VMName(i), g, i, true)
	}
	pre := l.Start(recordtest.VMName(0), "OLTP", "OLTP_prefill", 1)
	pre.Desc.Prefill = true
	for range 10 {
		l.Second(func() {
			pre.Do(&pre.Next.Ops[1], 8, 8<<20, time.Millisecond)
			pre.Report()
		})
	}
	pre.End("finished")
	l.Event(result.KindPhase, "run", "")
	a, b := l.Start(recordtest.VMName(0), "OLTP", "OLTP", 1), l.Start(recordtest.VMName(1), "OLTP", "OLTP", 1)
	var dss *recordtest.Job
	for s := range 60 {
		if s == 30 {
			l.Event(result.KindAnnotation, "run", "DSS starts")
			dss = l.Start(recordtest.VMName(2), "DSS", "DSS", 1)
		}
		l.Second(func() {
			service := time.Millisecond
			if dss != nil {
				service = 4 * time.Millisecond
				dss.Do(&dss.Next.Ops[0], 20, 20<<20, 10*time.Millisecond)
				dss.Report()
			}
			for i, j := range []*recordtest.Job{a, b} {
				j.Do(&j.Next.Ops[0], 100, 800<<10, service)
				j.Do(&j.Next.Ops[1], uint64(50*(i+1)), 400<<10, service/2)
				j.Report()
			}
		})
		l.Recorder.Cluster("CpuUsage.Avg.Percent", 0, "n0", 10)
		l.Recorder.Cluster("CpuUsage.Avg.Percent", 1, "n1", 30)
	}
	for _, j := range []*recordtest.Job{a, b, dss} {
		j.End("finished")
	}
	l.Event(result.KindPhase, "teardown", "")
	l.Must(l.Recorder.Close())
	return l
}

func resultOf(kind scenario.ResultKind, typ, group, load, agg string) scenario.Result {
	name := strings.TrimSuffix(fmt.Sprintf("%s_%s_%s", kind, typ, agg), "_")
	return scenario.Result{Name: name, Title: name, Kind: kind, Type: typ, Group: group, Workload: load, Aggregate: agg,
		Step: 10 * time.Second}
}

// The numbers of the neighbour's run are known by construction.
func TestPanels(t *testing.T) {
	group := func(typ, agg string) scenario.Result { return resultOf(scenario.GroupResult, typ, "OLTP", "", agg) }
	load := func(typ, agg string) scenario.Result {
		return resultOf(scenario.WorkloadResult, typ, "OLTP", "OLTP", agg)
	}
	cluster := func(metric, agg string) scenario.Result {
		return scenario.Result{Name: metric, Title: metric, Kind: scenario.ClusterResult, Metric: metric,
			Aggregate: agg, Step: 10 * time.Second}
	}
	with := func(r scenario.Result, change func(*scenario.Result)) scenario.Result { change(&r); return r }
	// A rate at the first moment would look back before the window: it is left out.
	const run = " @20:45:10 +10s: "
	l := neighbour(t)
	for _, c := range []struct {
		name   string
		result scenario.Result
		want   []string // unit, series, "note:" and "problem:" lines
	}{
		{"per VM", group("iops", ""), []string{"ops/s", "vm_group_iops (VM 0)" + run + "- 150*6",
			"vm_group_iops (VM 1)" + run + "- 200*6"}},
		{"sum", group("iops", "sum"), []string{"ops/s", "vm_group_iops_sum" + run + "- 350*6"}},
		{"min", group("iops", "min"), []string{"ops/s", "vm_group_iops_min" + run + "- 150*6"}},
		{"mean bandwidth", group("bandwidth", "mean"),
			[]string{"bytes/s", "vm_group_bandwidth_mean" + run + "- 1228800*6"}},
		// The floor of five operations per second leaves the idle VM without a value.
		{"latency", group("latency", ""), []string{"us", "vm_group_latency (VM 0)" + run +
			"- 833.333333*3 3333.33333*3", "vm_group_latency (VM 1)" + run + "- 750*3 3000*3"}},
		// (150*833.3 + 200*750) / 350: weighted by operations, not the mean of the two.
		{"latency mean", group("latency", "mean"),
			[]string{"us", "vm_group_latency_mean" + run + "- 785.714286*3 3142.85714*3"}},
		{"latency max", group("latency", "max"),
			[]string{"us", `problem: aggregate "max" is not defined for latency; use mean`}},
		{"median", group("iops", "median"),
			[]string{"ops/s",
				`problem: aggregate "median" is not defined for VM-group results; use sum, min, mean or max`}},
		{"masked", with(group("iops", "sum"), func(r *scenario.Result) {
			r.Mask = "DSS"
		}), []string{"ops/s", "vm_group_iops_sum @20:45:40 +10s: - 350*3"}},
		{"mask never started", with(group("iops", "sum"), func(r *scenario.Result) {
			r.Mask = "ETL"
		}), []string{"ops/s", `problem: workload "ETL", which masks this result, never started`}},
		{"generic over all groups", with(group("generic", ""), func(r *scenario.Result) {
			r.Query = "sum(\n irate(node_disk_reads_completed_total{__curie_filter_scenario__}[10s]))"
		}), []string{"count", "vm_group_generic" + run + "0 200*3 220*3"}},
		{"generic of the group", with(group("generic", ""), func(r *scenario.Result) {
			r.Query = `sum(irate(node_disk_reads_completed_total{__curie_filter_scenario__, __curie_filter_vm_group__}[10s]))`
		}), []string{"count", "vm_group_generic" + run + "0 200*6"}},
		{"broken query", with(group("generic", ""), func(r *scenario.Result) {
			r.Query = "sum("
		}), []string{"count", "problem: query: 1:5: parse error: unclosed left parenthesis"}},
		{"no query", group("generic", ""), []string{"count", "problem: a generic result needs a query"}},
		{"unknown group", with(group("iops", ""), func(r *scenario.Result) {
			r.Group = `x"y`
		}), []string{"ops/s", "problem: the query found nothing between 20:45:10 and 20:46:10"}},
		{"cluster sum", cluster("CpuUsage.Avg.Percent", "sum"), []string{"%", "CpuUsage.Avg.Percent" + run + "- 40*6",
			"note: experimental in the scenario language"}},
		{"cluster nodes", cluster("CpuUsage.Avg.Percent", ""),
			[]string{"%", "CpuUsage.Avg.Percent (Node 0)" + run + "- 10*6", "CpuUsage.Avg.Percent (Node 1)" + run +
				"- 30*6", "note: experimental in the scenario language"}},
		{"cluster median", cluster("CpuUsage.Avg.Percent", "median"),
			[]string{"%", "CpuUsage.Avg.Percent" + run + "- 20*6", "note: experimental in the scenario language"}},
		{"cluster missing", cluster("NetReceived.Avg.KilobytesPerSecond", "sum"),
			[]string{"bytes/s", `problem: metric "NetReceived.Avg.KilobytesPerSecond" is not served by target "fake"`}},
		{"load", load("iops", ""), []string{"ops/s", "workload_iops (VM 0) @20:45:11 +1s: - 150*59",
			"workload_iops (VM 1) @20:45:11 +1s: - 200*59"}},
		// A grid of the author's reporting interval; the last cell has reports for 19 of its 20 seconds.
		{"load sum", load("iops", "sum"), []string{"ops/s", "workload_iops_sum @20:45:11 +20s: - 350*3"}},
		{"load errors", load("errors", "max"), []string{"count", "workload_errors_max @20:45:11 +20s: 0*4"}},
		{"load active", load("active", ""), []string{"bool", "workload_active (VM 0) @20:45:11 +1s: - 1*59",
			"workload_active (VM 1) @20:45:11 +1s: - 1*59"}},
		{"load unknown", with(load("iops", ""), func(r *scenario.Result) {
			r.Workload = "ETL"
		}), []string{"ops/s", `problem: workload "ETL" never started`}},
		{"load latency", load("latency", ""), []string{"", `problem: result type "latency" is not one of workloads`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := &scenario.Scenario{Name: "lab", Results: []scenario.Result{c.result},
				Workloads: []scenario.Workload{{Name: "OLTP", ReportingInterval: 20 * time.Second}}}
			p := collected(l, sc).Panels[0]
			got := []string{p.Unit}
			for _, s := range p.Series {
				got = append(got, recordtest.Line(s))
			}
			for _, n := range p.Notes {
				got = append(got, "note: "+n)
			}
			if p.Problem != "" {
				got = append(got, "problem: "+p.Problem)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The queries are those of the language, letter for letter but for blanks.
func TestQueryText(t *testing.T) {
	for _, c := range []struct{ typ, agg, want string }{
		{"iops", "",
			`sum by (instance) (irate(node_disk_reads_completed_total{scenario_id="5", vm_group="a\"b"}[30s]) + irate(node_disk_writes_completed_total{scenario_id="5", vm_group="a\"b"}[30s]))`},
		{"bandwidth", "mean",
			`avg by (vm_group) (sum by (instance) (irate(node_disk_read_bytes_total{scenario_id="5", vm_group="a\"b"}[30s]) + irate(node_disk_written_bytes_total{scenario_id="5", vm_group="a\"b"}[30s])))`},
		{"latency", "sum",
			`(sum by (vm_group) (irate(node_disk_read_time_seconds_total{scenario_id="5", vm_group="a\"b"}[30s]) + irate(node_disk_write_time_seconds_total{scenario_id="5", vm_group="a\"b"}[30s])) / (sum by (vm_group) (irate(node_disk_reads_completed_total{scenario_id="5", vm_group="a\"b"}[30s]) + irate(node_disk_writes_completed_total{scenario_id="5", vm_group="a\"b"}[30s])) > 5)) * 1000000`},
	} {
		got, _, err := Query(scenario.Result{Type: c.typ, Aggregate: c.agg, Group: `a"b`}, 5)
		if got != c.want || err != nil {
			t.Errorf("%s %s: %v\n%s", c.typ, c.agg, err, cmp.Diff(c.want, got))
		}
	}
}

// The published engine's own sample of three reports.
func TestPublishedSample(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	state := workload.Counters{Ops: 1000, Bytes: 4 << 20}
	for _, add := range []workload.Counters{{}, {Ops: 21103, Bytes: 49266688 * 5}, {Ops: 21155, Bytes: 245604352}} {
		l.Now = l.Now.Add(5 * time.Second)
		state.Ops, state.Bytes = state.Ops+add.Ops, state.Bytes+add.Bytes
		j.Next.Ops[0] = state
		j.Report()
		l.Must(l.Recorder.Tick())
	}
	j.End("finished")
	sc := &scenario.Scenario{Name: "s"}
	for _, typ := range []string{"iops", "bandwidth", "active", "errors"} {
		sc.Results = append(sc.Results, scenario.Result{Name: typ, Title: typ, Kind: scenario.WorkloadResult, Type: typ,
			Workload: "W", Group: "G"})
	}
	var got []string
	for _, p := range collected(l, sc).Panels {
		for _, s := range p.Series {
			got = append(got, recordtest.Line(s)+p.Problem)
		}
	}
	want := []string{
		"iops @20:45:05 +5s: - 4220.6 4231",
		"bandwidth @20:45:05 +5s: - 49266688 49120870.4",
		"active @20:45:05 +5s: - 1*2",
		"errors @20:45:05 +1s: 0*11",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

const labScenario = `name: lab
display_name: Lab
summary: A neighbour.
description: A neighbour.
estimated_runtime: 60
vms:
  - OLTP:
      template: ubuntu1604
      vcpus: 2
      ram_mb: 1024
      data_disks: {count: 1, size: 1}
      nodes: "0, 1"
      count_per_node: 1
  - DSS:
      template: ubuntu1604
      vcpus: 4
      ram_mb: 2048
      data_disks: {count: 2, size: 1}
      nodes: "2"
      count_per_node: 1
workloads:
  - OLTP: {vm_group: OLTP, config_file: a.fio, iogen_params: {reporting_interval: 1}}
  - DSS: {vm_group: DSS, config_file: a.fio}
results:
  - OLTP_IOPS:
      vm_group: OLTP
      result_type: iops
      aggregate: sum
      result_expected_value: 350
      result_value_bands: [{name: usual, lower: 300, upper: 400}]
      report_metrics: [Variability, Median]
      report_group: performance
  - OLTP_Latency: {vm_group: OLTP, result_type: latency, report_metrics: [Max]}
  - DSS_Errors: {workload_name: DSS, result_type: errors, report_metrics: [AnyFail]}
  - CPU: {metric: CpuUsage.Avg.Percent, aggregate: sum}
setup:
  - test.Wait: {duration_secs: 1}
run:
  - test.Wait: {duration_secs: 1}
teardown:
  - test.Wait: {duration_secs: 1}
`

// The whole of a small run, through the real scenario language.
func TestGoldenData(t *testing.T) {
	l := neighbour(t)
	src := fstest.MapFS{"test.yml": {Data: []byte(labScenario)},
		"a.fio": {Data: []byte("[global]\nrw=randread\n[a]\nfilename=/dev/sdb\nsize=1G\n")}}
	l.Must(l.Folder.CopyScenario(src, []byte(labScenario)))
	d, err := Collect(t.Context(), l.Folder, recordtest.Engines)
	l.Must(err)
	text, err := json.MarshalIndent(d, "", " ")
	l.Must(err)
	text = append(squeeze(text), '\n')
	golden.Compare(t, filepath.Join("testdata", "neighbour.json"), text)
	again, err := Collect(t.Context(), l.Folder, recordtest.Engines)
	l.Must(err)
	if d := cmp.Diff(d, again, cmp.Comparer(func(a, b *hist.Histogram) bool { return a.Equal(b) })); d != "" {
		t.Errorf("collecting again differs:\n%s", d)
	}
}

// squeeze puts lists of numbers on one line.
func squeeze(text []byte) []byte {
	var out bytes.Buffer
	for ln := range bytes.Lines(text) {
		body := bytes.TrimSpace(ln)
		if len(body) > 0 && strings.ContainsRune("0123456789-n]", rune(body[0])) && out.Len() > 0 {
			out.Truncate(len(bytes.TrimRight(out.Bytes(), " \n")))
			out.Write(body)
			out.WriteByte('\n')
			continue
		}
		out.Write(ln)
	}
	return bytes.TrimSpace(out.Bytes())
}

// A run killed in its middle: no ends, a torn journal, raw output cut short, an open database.
func TestKilledRun(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	l.Recorder.VM("vm", "G", 0, true)
	j := l.Start("vm", "G", "W", 1)
	for range 30 {
		l.Second(func() {
			j.Do(&j.Next.Ops[1], 100, 1<<20, time.Millisecond)
			j.Report()
			_, err := io.WriteString(j.Raw, strings.Repeat("noise\n", 4000)) // so that the output is several blocks
			l.Must(err)
		})
	}
	l.Must(j.Raw.Close())
	raw := filepath.Join(l.Folder.Dir(), "raw", "vm", "W", "lines.out.zst")
	b, err := os.ReadFile(raw)
	l.Must(err)
	l.Must(os.WriteFile(raw, b[:len(b)-9], 0o644))
	journal, err := os.OpenFile(filepath.Join(l.Folder.Dir(), "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	l.Must(err)
	_, err = journal.WriteString(`{"time":"2026`)
	l.Must(err)
	l.Must(journal.Close())

	d := collected(l, &scenario.Scenario{Name: "s",
		Results: []scenario.Result{resultOf(scenario.GroupResult, "iops", "G", "", "sum")}})
	if got, want := recordtest.Line(d.Panels[0].Series[0]), "vm_group_iops_sum @20:45:00 +10s: - 100*3"; got != want {
		t.Errorf("%s, want %s %s", got, want, d.Panels[0].Problem)
	}
	w := d.Workloads[0]
	if w.Ended != result.Unrecorded || len(w.Ops) != 1 || w.Ops[0].Count == 0 || w.Ops[0].Count > 3000 ||
		w.Ops[0].Hist.Count() != w.Ops[0].Count {
		t.Errorf("%+v", w)
	}
	if all := strings.Join(w.Notes, "\n"); !strings.Contains(all, "ends early") {
		t.Errorf("notes %q", all)
	}
	if all := strings.Join(d.Problems, "\n"); !strings.Contains(all, "torn") {
		t.Errorf("problems %q", all)
	}
}

// What is missing is said, and hides nothing else.
func TestMissingParts(t *testing.T) {
	l := neighbour(t)
	l.Must(os.Remove(filepath.Join(l.Folder.Dir(), "raw", recordtest.VMName(1), "OLTP", "lines.out.zst")))
	l.Must(l.Store.Close())
	l.Store = nil
	l.Must(os.RemoveAll(l.Folder.MetricsDir()))
	d, err := Collect(t.Context(), l.Folder, recordtest.Engines)
	l.Must(err)
	all := strings.Join(d.Problems, "\n")
	for _, want := range []string{"no database there", "there is no raw output", "cannot be loaded"} {
		if !strings.Contains(all, want) {
			t.Errorf("problems %q lack %q", all, want)
		}
	}
	if len(d.Workloads) != 7 || len(d.VMs) != 3 || d.Panels == nil {
		t.Errorf("%d workloads, %d VMs", len(d.Workloads), len(d.VMs))
	}
	d, err = collect(t.Context(), l.Folder, nil,
		&scenario.Scenario{Name: "s", Results: []scenario.Result{resultOf(scenario.GroupResult, "iops", "OLTP", "",
			"")}}, "")
	l.Must(err)
	if !strings.Contains(strings.Join(d.Problems, "\n"), `no engine "lines" to read its output`) ||
		d.Panels[0].Problem == "" {
		t.Errorf("%q %q", d.Problems, d.Panels[0].Problem)
	}
}

// Of a scenario that cannot be loaded again an error is told, not a warning.
func TestUnreadableScenario(t *testing.T) {
	l := recordtest.New(t)
	text := []byte("odd: 1\nname: s\n")
	l.Must(l.Folder.CopyScenario(fstest.MapFS{"test.yml": {Data: text}}, text))
	d, err := Collect(t.Context(), l.Folder, nil)
	l.Must(err)
	want := "the folder's copy of the scenario cannot be loaded, so its results are missing: " +
		"test-parsed.yml:1:1: error: the scenario lacks"
	if len(d.Problems) == 0 || !strings.HasPrefix(d.Problems[0], want) {
		t.Errorf("%q, want %q", d.Problems, want)
	}
}

// A run longer than 11,000 points at the author's step is evaluated more coarsely, and says so.
func TestLongRunIsCoarser(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	l.Recorder.VM("vm", "G", 0, true)
	l.Second(func() {})
	l.Now = l.Now.Add(16 * time.Hour)
	l.Event(result.KindPhase, "teardown", "")
	sc := &scenario.Scenario{Name: "s",
		Results: []scenario.Result{resultOf(scenario.GroupResult, "iops", "G", "", "sum")}}
	sc.Results[0].Step = 0
	p := collected(l, sc).Panels[0]
	if len(p.Notes) != 1 || p.Notes[0] != "evaluated every 6s instead of every 5s: 16h0m1s is too long for that" {
		t.Errorf("%q %q", p.Notes, p.Problem)
	}
}

func TestScaledStep(t *testing.T) {
	for _, c := range []struct {
		scale      float64
		step, want time.Duration
	}{{1, 0, 5 * time.Second}, {0, 0, 5 * time.Second}, {0.02, 0, time.Second}, {0.5, 30 * time.Second,
		15 * time.Second}, {2, 30 * time.Second, 30 * time.Second}} {
		c2 := &source{m: result.Manifest{TimeScale: c.scale}}
		if got := c2.scaledStep(c.step); got != c.want {
			t.Errorf("%v at %v: %v, want %v", c.step, c.scale, got, c.want)
		}
	}
}

// Windows add up to the whole, VMs add up to the group, the heat map and the recorder's counters hold every operation,
// whatever the times of reports and of other workloads.
func TestPartsEqualWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := recordtest.New(t)
		defer l.Close()
		l.Event(result.KindPhase, "run", "")
		ms := func(name string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(low, high).Draw(rt, name)) * time.Millisecond
		}
		var jobs []*recordtest.Job
		for i := range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			l.Now = l.Now.Add(ms("gap", 0, 4000))
			load := rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "load")
			jobs = append(jobs, l.Start(recordtest.VMName(i), "G"+load, load, 1))
			if rapid.Bool().Draw(rt, "mark") {
				l.Event(result.KindAnnotation, "run", "mark")
			}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "reports") {
			l.Now = l.Now.Add(ms("interval", 300, 2500))
			for _, j := range jobs {
				j.Do(&j.Next.Ops[0], rapid.Uint64Range(0, 50).Draw(rt, "ops"), 4096, ms("service", 0, 30))
				j.Report()
			}
			l.Must(l.Recorder.Tick())
		}
		for _, j := range jobs {
			j.End("finished")
		}
		l.Now = l.Now.Add(2 * time.Second)
		l.Must(l.Recorder.Close())
		d := collected(l, &scenario.Scenario{Name: "s"})
		count := func(ops []result.OpTotals) (n, inHist uint64) {
			for _, o := range ops {
				n += o.Count
				if o.Hist != nil {
					inHist += o.Hist.Count()
				}
			}
			return n, inHist
		}
		perVM, merged, total := map[string]uint64{}, map[string]uint64{}, uint64(0)
		for _, w := range d.Workloads {
			n, h := count(w.Ops)
			if n != h {
				rt.Fatalf("%s %s: %d operations, %d in the histogram", w.Name, w.VM, n, h)
			}
			var sum uint64
			for _, win := range w.Windows {
				n, h := count(win.Ops)
				if n != h {
					rt.Fatalf("%s %s %s: %d operations, %d in the histogram", w.Name, w.VM, win.Name, n, h)
				}
				sum += n
			}
			if len(w.Windows) > 0 && sum != n {
				rt.Fatalf("%s %s: windows hold %d of %d", w.Name, w.VM, sum, n)
			}
			if w.VM != "" {
				perVM[w.Name] += n
				continue
			}
			merged[w.Name] = n
			total += n
			var heat uint64
			if w.Heat != nil {
				for _, col := range w.Heat.Counts {
					for _, c := range col {
						heat += c
					}
				}
			}
			var course uint64
			columns := 0
			for _, o := range w.Ops {
				if o.OverTime == nil {
					continue
				}
				for _, c := range o.OverTime.Counts {
					course += c
					columns += int(min(c, 1))
				}
			}
			if course != n || heat != n && w.Heat != nil || w.Heat == nil && columns > len(jobs) {
				rt.Fatalf("%s: the heat map holds %d of %d, the course %d", w.Name, heat, n, course)
			}
		}
		if d := cmp.Diff(perVM, merged); d != "" {
			rt.Fatal(d)
		}
		got, err := l.Store.Instant(t.Context(), "sum("+record.ReadsCompleted+")", l.Now)
		if err != nil || len(got) != 1 || got[0].Points[0].Value != float64(total) {
			rt.Fatalf("recorded %v of %d, %v", got, total, err)
		}
	})
}

// A tool whose clock is an hour off, or jumps, is placed by its start and its elapsed time.
func TestToolClock(t *testing.T) {
	for _, c := range []struct {
		name       string
		skew, jump time.Duration
		note       string
	}{
		{"right", 0, 0, ""},
		{"an hour ahead", time.Hour, 0, "clock differed from plimsoll's by 1h0m0s"},
		{"an hour behind", -time.Hour, 0, "clock differed from plimsoll's by -1h0m0s"},
		{"jumps ahead", 0, time.Hour, "clock jumped by 1h0m0s"},
		{"jumps back", 0, -time.Minute, "clock jumped by -1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := recordtest.New(t)
			l.Event(result.KindPhase, "run", "")
			l.Recorder.VM("vm", "G", 0, true)
			j := l.Start("vm", "G", "W", 1)
			j.Skew = c.skew
			for s := range 20 {
				if s == 10 {
					j.Skew += c.jump
				}
				l.Second(func() {
					j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
					j.Report()
				})
			}
			j.End("finished")
			l.Event(result.KindPhase, "teardown", "")
			l.Must(l.Recorder.Close())
			sc := &scenario.Scenario{Name: "s",
				Results: []scenario.Result{resultOf(scenario.GroupResult, "iops", "G", "", "sum"),
					resultOf(scenario.WorkloadResult, "iops", "G", "W", "")}}
			d := collected(l, sc)
			if got, want := recordtest.Line(d.Panels[0].Series[0]),
				"vm_group_iops_sum @20:45:00 +10s: - 100*2"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got, want := recordtest.Line(d.Panels[1].Series[0]),
				"workload_iops @20:45:01 +1s: - 100*19"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if notes := strings.Join(d.Workloads[0].Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" &&
				notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// TestMetricsOfAWorkloadsOwnTime: zeros before a group's first start and after its last end are in no mean; a pause or
// an outage between is. A panel says of what time its figures are when something was left out.
func TestMetricsOfAWorkloadsOwnTime(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	run := func(group string, from, to int) result.Workload {
		return result.Workload{Group: group, Start: at(from), End: at(to)}
	}
	values := func(v ...float64) (out []*float64) {
		for _, x := range v {
			out = append(out, &x)
		}
		return out
	}
	for name, c := range map[string]struct {
		unit  string
		kind  scenario.ResultKind
		loads []result.Workload
		of    []float64 // from second 0 on, every 10 s
		want  float64
		note  string
	}{
		"the second half": {"bytes/s", scenario.GroupResult, []result.Workload{run("G", 20, 50), run("other", 0, 50)},
			[]float64{0, 0, 30, 30, 60}, 45, "the figures are of the 30 s from the first start of workloads of G to their last end"},
		"an outage counts": {"ops/s", scenario.GroupResult, []result.Workload{run("G", 10, 25), run("G", 40, 55)},
			[]float64{0, 90, 90, 0, 90, 90}, 67.5, "the figures are of the 45 s from the first start of workloads of G to their last end"},
		"all of it": {"us", scenario.GroupResult, []result.Workload{run("G", 0, 60)}, []float64{1, 2, 3}, 2.5,
			""},
		"zeros of nobody": {"ops/s", scenario.GroupResult, nil, []float64{0, 0}, math.NaN(),
			"no workload of G ran, all values are 0: no figures are made of them"},
		"of nobody": {"ops/s", scenario.GroupResult, nil, []float64{0, 4}, 2, ""},
		"a query of its own": {"count", scenario.GroupResult, []result.Workload{run("G", 10, 20)}, []float64{0, 4}, 2,
			""},
		"a prefill is no load": {"ops/s", scenario.GroupResult, []result.Workload{{Group: "G", Prefill: true,
			Start: at(0), End: at(20)},
			run("G", 20, 40)}, []float64{9, 9, 3, 5}, 5,
			"the figures are of the 20 s from the first start of workloads of G to their last end"},
		"of the cluster": {"bytes/s", scenario.ClusterResult, []result.Workload{run("G", 10, 20)}, []float64{0, 4}, 2,
			""},
	} {
		col := &panelist{data: &result.Data{Workloads: c.loads}}
		p := result.Panel{
			Unit:   c.unit,
			Series: []result.Series{{Name: "s", Start: start, Step: 10, Values: values(c.of...)}},
		}
		got := col.reportMetrics(scenario.Result{Kind: c.kind, Group: "G", Metrics: []string{"Mean"}}, &p)
		want := []result.Metric{
			{Name: "Mean", Series: "s", Value: c.want, Unit: c.unit, Formula: "mean of the series' values"},
		}
		if math.IsNaN(c.want) {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if note := strings.Join(p.Notes, "\n"); note != c.note {
			t.Errorf("%s: note %q, want %q", name, note, c.note)
		}
		if diff := cmp.Diff(values(c.of...), p.Series[0].Values); diff != "" {
			t.Errorf("%s: the panel itself was changed: %s", name, diff)
		}
	}
}

func TestMetrics(t *testing.T) {
	of := func(name string, unit string, lines ...[]float64) []string {
		p := result.Panel{Unit: unit}
		for i, l := range lines {
			s := result.Series{Name: fmt.Sprint("s", i), Values: []*float64{nil}}
			for _, v := range l {
				s.Values = append(s.Values, &v)
			}
			p.Series = append(p.Series, s)
		}
		var out []string
		for _, m := range metricsOf([]string{name}, p) {
			out = append(out, fmt.Sprintf("%s of %s: %g %s", m.Name, m.Series, m.Value, m.Unit))
		}
		return out
	}
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"no score", of("NoScore", "us", []float64{1}), nil},
		{"no values", of("Max", "us", nil), nil},
		{"median", of("Median", "us", []float64{4, 1, 3, 2}), []string{"Median of s0: 2.5 us"}},
		{"variability", of("Variability", "ops/s", []float64{8, 12}), []string{
			"Variability of s0: 28.2842712 %", "Standard deviation of s0: 2.82842712 ops/s", "Range of s0: 4 ops/s"}},
		{"of nothing but zeros", of("Variability", "ops/s", []float64{0, 0}),
			[]string{"Standard deviation of s0: 0 ops/s", "Range of s0: 0 ops/s"}},
		{"worst rate is the lowest", of("Mean", "ops/s", []float64{10}, []float64{20}, []float64{90}), []string{
			"Mean (median) of median of 3 series: 20 ops/s", "Mean (worst) of s0: 10 ops/s"}},
		{"worst latency is the highest", of("Mean", "us", []float64{10}, []float64{20}), []string{
			"Mean (median) of median of 2 series: 15 us", "Mean (worst) of s1: 20 us"}},
		{"any fail", of("AnyFail", "count", []float64{0, 0, 1}), []string{"AnyFail of s0: 1 bool"}},
		{"no fail", of("AnyFail", "count", []float64{0, 0}), []string{"AnyFail of s0: 0 bool"}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestSignificant(t *testing.T) {
	for _, c := range []struct {
		v    float64
		n    int
		want float64
	}{{4220.6000000000004, 9, 4220.6}, {123456, 3, 123000}, {-0.00012345, 2, -0.00012}, {0, 5, 0}, {1e-320, 5,
		1e-320}} {
		if got := significant(c.v, c.n); got != c.want {
			t.Errorf("%v to %d: %v, want %v", c.v, c.n, got, c.want)
		}
	}
	if !math.IsNaN(significant(math.NaN(), 3)) {
		t.Error("NaN")
	}
}

// A machine that a step has made is listed, on or not; one that was only planned is not. A group that was never on has
// no views.
func TestMachinesThatWereNeverOn(t *testing.T) {
	l := recordtest.New(t)
	defer l.Close()
	l.Must(l.Folder.WritePlan(map[string]any{"vms": []map[string]any{
		{"name": "a", "group": "A", "node": 0, "step": 1}, {"name": "b", "group": "B", "node": 1, "step": 2},
		{"name": "c", "group": "C", "node": 1, "step": 3},
	}}))
	for _, e := range []result.Event{{Step: 1}, {Step: 2}, {Step: 3, Error: "no space"}} {
		e.Kind, e.Time = result.KindStepEnd, l.Now
		l.Must(l.Folder.AppendEvent(e))
	}
	l.Event(result.KindPhase, "run", "")
	l.Recorder.VM("a", "A", 2, true)
	for range 3 {
		l.Second(func() {})
	}
	l.Must(l.Recorder.Close())
	d := collected(l, nil)
	want := []result.VM{{Name: "a", Group: "A", Node: 2}, {Name: "b", Group: "B", Node: 1, NeverSeenOn: true}}
	if diff := cmp.Diff(want, d.VMs); diff != "" {
		t.Error(diff)
	}
	for _, s := range d.Series {
		if s.Group == "B" {
			t.Errorf("a view of group B: %s", s.Name)
		}
	}
}

// collected returns what Collect makes of a lab's folder with a scenario.
func collected(l *recordtest.Lab, sc *scenario.Scenario) *result.Data {
	l.T.Helper()
	d, err := collect(context.Background(), l.Folder, recordtest.Engines, sc, "")
	l.Must(err)
	return d
}

// A machine that is off draws no rates, in sums as alone, whatever the query; nor does its node. It comes back as it
// was.
func TestMachinesThatAreOff(t *testing.T) {
	for name, l := range map[string]*recordtest.Lab{"real": recordtest.New(t),
		"simulated": recordtest.With(t, series.Options{Timeless: true})} {
		l.Event(result.KindPhase, "setup", "")
		for i := range 2 {
			l.Recorder.VM(recordtest.VMName(i), "G", i, true)
		}
		l.Event(result.KindPhase, "run", "")
		jobs := []*recordtest.Job{l.Start(recordtest.VMName(0), "G", "W", 1),
			l.Start(recordtest.VMName(1), "G", "W", 1)}
		for s := range 60 {
			switch s {
			case 20:
				jobs[1].End("lost")
				jobs = jobs[:1]
				l.Recorder.VM(recordtest.VMName(1), "G", 1, false)
				l.Recorder.Cluster("CpuUsage.Avg.Percent", 1, "n1", series.Ended())
			case 40:
				l.Recorder.VM(recordtest.VMName(1), "G", 1, true)
				jobs = append(jobs, l.Start(recordtest.VMName(1), "G", "W", 2))
				l.Recorder.Cluster("CpuUsage.Avg.Percent", 1, "n1", 30)
			case 0:
				l.Recorder.Cluster("CpuUsage.Avg.Percent", 0, "n0", 10)
				l.Recorder.Cluster("CpuUsage.Avg.Percent", 1, "n1", 30)
			}
			l.Second(func() {
				for _, j := range jobs {
					j.Do(&j.Next.Ops[0], 100, 800<<10, time.Millisecond)
					j.Report()
				}
			})
		}
		for _, j := range jobs {
			j.End("finished")
		}
		l.Event(result.KindPhase, "teardown", "")
		l.Must(l.Recorder.Close())
		l.Close()
		generic := func(query string) scenario.Result {
			r := resultOf(scenario.GroupResult, "generic", "G", "", "")
			r.Query = query
			return r
		}
		cpu := scenario.Result{Name: "cpu", Title: "cpu", Kind: scenario.ClusterResult, Metric: "CpuUsage.Avg.Percent",
			Aggregate: "sum", Step: 10 * time.Second}
		for _, c := range []struct {
			result scenario.Result
			want   []string
		}{
			{resultOf(scenario.GroupResult, "iops", "G", "", ""), []string{" (VM 0): - 100*6",
				" (VM 1): - 100*2 -*2 100*2"}},
			{resultOf(scenario.GroupResult, "iops", "G", "", "sum"), []string{": - 200*2 100*2 200*2"}},
			{resultOf(scenario.GroupResult, "bandwidth", "G", "", "sum"),
				[]string{": - 1638400*2 819200*2 1638400*2"}},
			{resultOf(scenario.GroupResult, "latency", "G", "", ""), []string{" (VM 0): - 1000*6",
				" (VM 1): - 1000*2 -*2 1000*2"}},
			{generic("sum(rate(node_disk_reads_completed_total{__curie_filter_scenario__}[9s]))"),
				[]string{": - 200*2 100*2 200*2"}},
			{generic("count(node_disk_reads_completed_total{__curie_filter_scenario__})"), []string{": 2*3 1*2 2*2"}},
			{cpu, []string{": 40*2 10*2 40*3"}},
		} {
			p := collected(l, &scenario.Scenario{Name: "lab", Results: []scenario.Result{c.result},
				Workloads: []scenario.Workload{{Name: "W"}}}).Panels[0]
			var got []string
			for _, s := range p.Series {
				got = append(got, strings.TrimPrefix(strings.Replace(recordtest.Line(s), " @20:45:00 +10s", "", 1),
					c.result.Title))
			}
			if d := cmp.Diff(c.want, got); d != "" || p.Problem != "" {
				t.Errorf("%s: %s: %s%s", name, c.result.Name, p.Problem, d)
			}
		}
	}
}
