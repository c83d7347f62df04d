package collect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// mostSingle is how many of a machine's CPUs get a series of their own.
const mostSingle = 4

// leastPressure is the share of the time, in per cent, in which something must have waited for a resource in some tenth
// of a run for its pressure to be kept.
const leastPressure = 1

// What agents and node_exporter serve of the VMs they run in, and the agent of those with several NUMA nodes.
const (
	vmCPU  = "node_cpu_seconds_total"
	vmNUMA = "plimsoll_cpu_numa_node_info"
)

// What agents serve of the control groups that have a limit, under cAdvisor's names.
const (
	groupPeriods   = "container_cpu_cfs_periods_total"
	groupThrottled = "container_cpu_cfs_throttled_periods_total"
	memoryHits     = "plimsoll_memory_limit_hits_total"
)

// group is the part that a series of a control group is about: what runs in it, as far as that is known.
func group(s series.Series) string {
	return strings.TrimSpace(s.Label("process") + " (cgroup " + s.Label("id") + ")")
}

// machines are the series of the machines underneath, on the grid.
func (c *replayed) machines(ctx context.Context) []result.Series {
	if c.store == nil || c.grid.n == 0 {
		return nil
	}
	var out []result.Series
	scope := fmt.Sprintf("scenario_id=\"%d\"", c.m.Scenario.ID)
	over := c.rateWindow(ctx)
	cpu := func(by, modes string) string {
		return fmt.Sprintf("100 * sum by (%s) (rate(%s{%s,mode%s}[%s])) / sum by (%[1]s) (rate(%[2]s{%[3]s}[%[5]s]))",
			by, record.HostCPU, scope, modes, over)
	}
	node := func(s series.Series) string { return "NUMA node " + s.Label("numa_node") }
	numa := c.measured(ctx, cpu("instance, numa_node", `!="idle"`), result.NUMACPU, "%", node)
	if len(numa) > 1 { // one is the node itself
		out = append(out, numa...)
	}
	ofVM := func(modes string) string {
		return fmt.Sprintf("sum by (instance, numa_node) (rate(%s{%s%s}[%s]) * on (instance, cpu) group_left (numa_node) "+
			"max by (instance, cpu, numa_node) (%s{%[2]s}))", vmCPU, scope, modes, over, vmNUMA)
	}
	out = append(out, c.measured(ctx, "100 * "+ofVM(`,mode!~"idle|iowait"`)+" / "+ofVM(""), result.NUMACPU, "%", node)...)
	out = append(out, c.measured(ctx, cpu("instance", `!="idle"`), result.HostCPUs, "%", whole)...)
	for _, s := range c.measured(ctx, cpu("instance", `="steal"`), result.HostSteal, "%", whole) {
		if peak(s) > 0 { // of a machine that lost some
			out = append(out, s)
		}
	}
	held := func(by, throttled, periods string) string {
		return fmt.Sprintf("100 * sum by (%s) (rate(%s{%s}[%s])) / sum by (%[1]s) (rate(%[5]s{%[3]s}[%[4]s]))", by,
			throttled, scope, over, periods)
	}
	for _, s := range slices.Concat(
		c.measured(ctx, held("instance", record.QuotaThrottled, record.QuotaPeriods), result.QuotaThrottled, "%",
			whole),
		c.measured(ctx, held("instance, id, process", groupThrottled, groupPeriods), result.QuotaThrottled, "%",
			group),
	) {
		if peak(s) > 0 { // of a quota that held something back
			out = append(out, s)
		}
	}
	hits := fmt.Sprintf("sum by (instance) (rate(%s{%s}[%s]))", memoryHits, scope, over)
	for _, s := range c.measured(ctx, hits, result.MemoryLimitHits, "hits/s", whole) {
		if peak(s) > 0 { // of a limit that was reached
			out = append(out, s)
		}
	}
	for _, p := range []struct{ resource, measure string }{
		{"cpu", result.CPUPressure}, {"io", result.IOPressure}, {"memory", result.MemoryPressure},
	} {
		waited := fmt.Sprintf("100 * max by (instance) (rate(%s{%s,resource=%q}[%s]) or "+
			"rate(node_pressure_%[3]s_waiting_seconds_total{%[2]s}[%[4]s]))",
			record.HostWaited, scope, p.resource, over)
		grouped := fmt.Sprintf("100 * sum by (instance, id, process) "+
			"(rate(container_pressure_%s_waiting_seconds_total{%s}[%s]))", p.resource, scope, over)
		for _, s := range slices.Concat(c.measured(ctx, waited, p.measure, "%", whole),
			c.measured(ctx, grouped, p.measure, "%", group)) {
			if peak(s) >= leastPressure {
				out = append(out, s)
			}
		}
	}
	one := func(s series.Series) string { return "CPU " + s.Label("cpu") }
	single := c.measured(ctx, cpu("instance, cpu", `!="idle"`), result.OneCPU, "%", one)
	slices.SortStableFunc(single, func(a, b result.Series) int { return cmp.Compare(peak(b), peak(a)) })
	single = single[:min(len(single), mostSingle)]
	out = append(out, single...)
	for _, s := range c.measured(ctx, cpu("instance, cpu", `="interrupt"`), result.OneCPUInterrupts, "%", one) {
		if slices.ContainsFunc(single, func(o result.Series) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	for _, d := range []struct{ factor, counter, metric, unit string }{
		{"", record.HostReadBytes, result.DeviceReadBandwidth, "bytes/s"},
		{"", record.HostWrittenBytes, result.DeviceWriteBandwidth, "bytes/s"},
		{"", record.HostReads, result.DeviceReads, "ops/s"},
		{"", record.HostWrites, result.DeviceWrites, "ops/s"},
		{"100 * ", record.HostIOTime, result.DeviceBusy, "%"},
		{"", record.HostOperationsTime, result.DeviceInFlight, "operations"},
	} {
		query := fmt.Sprintf("%ssum by (instance, device) (rate(%s{%s}[%s]))", d.factor, d.counter, scope, over)
		out = append(out, c.measured(ctx, query, d.metric, d.unit, func(s series.Series) string {
			return s.Label("device")
		})...)
	}
	return append(out, c.guestDevices(ctx, scope, over)...)
}

// guestDevices are the series of the devices of VMs that count them themselves, of the busiest few. Their bytes are in
// the panels.
func (c *replayed) guestDevices(ctx context.Context, scope, over string) (out []result.Series) {
	of := func(counter string) string {
		return fmt.Sprintf("sum by (instance, vm_group, device) (rate(%s{%s,endpoint!=\"\",vm_group!=\"\"}[%s]))", counter,
			scope, over)
	}
	device := func(s series.Series) string { return s.Label("device") }
	out = c.measured(ctx, "100 * "+of("node_disk_io_time_seconds_total"), result.DeviceBusy, "%", device)
	slices.SortStableFunc(out, func(a, b result.Series) int { return cmp.Compare(peak(b), peak(a)) })
	out = slices.DeleteFunc(out[:min(len(out), mostSingle)], func(s result.Series) bool { return peak(s) == 0 })
	kept := out
	for _, d := range []struct{ query, metric, unit string }{
		{of(record.ReadsCompleted), result.DeviceReads, "ops/s"},
		{of(record.WritesCompleted), result.DeviceWrites, "ops/s"},
		{of(record.ReadSeconds) + " + " + of(record.WriteSeconds), result.DeviceInFlight, "operations"},
	} {
		for _, s := range c.measured(ctx, d.query, d.metric, d.unit, device) {
			if slices.ContainsFunc(kept, func(b result.Series) bool { return b.Name == s.Name }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// rateWindow returns the stretch over which counters are turned into rates: four points, but not much more than a
// minute, and four of the readings of the counters, which may lie further apart than the points.
func (c *replayed) rateWindow(ctx context.Context) string {
	window := max(c.grid.step, min(4*c.grid.step, time.Minute), 4*time.Second, 4*c.readings(ctx))
	return strconv.Itoa(int(window.Seconds())) + "s"
}

// readings is the usual time between two readings of the counters of machines, by a minute in the middle of the run; 0
// where it is not known.
func (c *replayed) readings(ctx context.Context) time.Duration {
	over := min(time.Duration(c.grid.n)*c.grid.step/2, time.Minute).Truncate(time.Second)
	at := c.grid.edge(c.grid.n * 3 / 4)
	found, err := c.store.Range(ctx, fmt.Sprintf("max(count_over_time({__name__=~%q,scenario_id=\"%d\"}[%ds]))",
		strings.Join([]string{record.HostCPU, record.QuotaPeriods, record.HostWaited, record.HostReads}, "|"),
		c.m.Scenario.ID, int(over.Seconds())), at, at, c.grid.step)
	if err != nil || len(found) == 0 || len(found[0].Points) == 0 {
		return 0
	}
	return time.Duration(math.Round(over.Seconds()/found[0].Points[0].Value)) * time.Second
}

// measured evaluates a query on the grid, named and in the order of the names.
func (c *replayed) measured(ctx context.Context, query, metric, unit string,
	part func(series.Series) string) []result.Series {
	start, end := c.grid.edge(1), c.grid.edge(c.grid.n)
	found, err := c.store.Range(ctx, query, start, end, c.grid.step)
	if err != nil {
		c.problem("%s of the machines: %v", metric, err)
		return nil
	}
	var out []result.Series
	for _, s := range found {
		head := result.Series{Machine: s.Label("instance"), Part: part(s), Measure: metric, Unit: unit}
		switch head.Name = head.Machine; {
		case s.Label("device") != "" && s.Label("vm_group") == "": // of the machine underneath
			head.Name = head.Part
		case head.Part != "":
			head.Name += ", " + head.Part
		}
		out = append(out, onGrid(head, s.Points, start, end, c.grid.step))
	}
	slices.SortStableFunc(out, func(a, b result.Series) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// whole is the part that a series of a whole machine is about.
func whole(series.Series) string { return "" }

// peak is the largest mean of a series over a tenth of its points, so that a CPU that was busy for one of several
// workloads is kept.
func peak(s result.Series) float64 {
	n := max(1, len(s.Values)/10)
	best := 0.0
	for from := 0; from < len(s.Values); from += n {
		sum, count := 0.0, 0
		for _, v := range s.Values[from:min(from+n, len(s.Values))] {
			if v != nil {
				sum, count = sum+*v, count+1
			}
		}
		if count > 0 {
			best = max(best, sum/float64(count))
		}
	}
	return best
}

// threads adds to the workloads of single VMs what the busiest thread of their generator did, over the window that was
// measured.
func (c *replayed) threads(ctx context.Context, workloads []result.Workload) {
	if c.store == nil || c.grid.n == 0 {
		return
	}
	for _, m := range []struct {
		series string
		of     func(*result.Workload) **float64
	}{
		{record.ThreadBusy, func(w *result.Workload) **float64 { return &w.ThreadBusy }},
		{record.ThreadWaiting, func(w *result.Workload) **float64 { return &w.ThreadWaiting }},
	} {
		query := fmt.Sprintf("avg_over_time(%s{scenario_id=\"%d\"}[%ds])", m.series, c.m.Scenario.ID,
			int(c.grid.step.Seconds()))
		found, err := c.store.Range(ctx, query, c.grid.edge(1), c.grid.edge(c.grid.n), c.grid.step)
		if err != nil {
			c.problem("threads of the load generators: %v", err)
			return
		}
		for i := range workloads {
			w := &workloads[i]
			for _, s := range found {
				if !w.Merged() && s.Label("instance") == w.VM && s.Label("workload") == w.Name {
					*m.of(w) = meanBetween(s.Points, w.Start.Add(c.grid.step), w.End)
				}
			}
		}
	}
}

// meanBetween is the mean of points between two moments; nil when there are too few to tell.
func meanBetween(points []series.Point, from, to time.Time) *float64 {
	const few = 2
	sum, n := 0.0, 0
	for _, p := range points {
		if p.Time.After(from) && !p.Time.After(to) {
			sum, n = sum+p.Value, n+1
		}
	}
	if n < few {
		return nil
	}
	mean := significant(sum/float64(n), 5)
	return &mean
}
