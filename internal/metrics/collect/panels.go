package collect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Constants of the language: the range of irate, the step where the author gives none, and the operations per second
// above which a latency is defined.
const (
	lookback    = "30s"
	defaultStep = 5 * time.Second
	iopsFloor   = "5"
	// mostPanelValues bounds one panel over all its series; beyond it the step is lengthened, which is said.
	mostPanelValues = 40_000
)

// panelist draws what was found; while the run goes on without the raw output.
type panelist struct {
	*found
	data  *result.Data
	soFar bool
	off   map[time.Time]bool // by the ends of panels: some machine had gone off by then; see living
}

func newPanelist(f *found, data *result.Data, soFar bool) *panelist {
	return &panelist{found: f, data: data, soFar: soFar, off: map[time.Time]bool{}}
}

// panels makes one panel per result of the scenario, in its order.
func (c *panelist) panels(ctx context.Context) []result.Panel {
	if c.sc == nil {
		return []result.Panel{}
	}
	out := make([]result.Panel, 0, len(c.sc.Results))
	for _, r := range c.sc.Results {
		p := result.Panel{
			ID: c.sc.Name + "_" + r.Name, Name: r.Name, Title: r.Title, Kind: string(r.Kind), Type: r.Type,
			ReportGroup: r.ReportGroup,
			Description: r.Description, Hint: r.Hint, Expected: r.Expected, XLabel: r.XLabel, YLabel: r.YLabel,
			Series: []result.Series{},
		}
		for _, b := range r.Bands {
			p.Bands = append(p.Bands, result.Band{Name: b.Name, Lower: b.Lower, Upper: b.Upper})
		}
		var err error
		switch r.Kind {
		case scenario.GroupResult:
			p.Group, p.VMGroup, p.Aggregate = "VMGroupResult_"+r.Group, r.Group, r.Aggregate
			err = c.groupPanel(ctx, r, &p)
		case scenario.WorkloadResult:
			p.Group = "IogenResult_" + cmp.Or(r.Workload, r.Group)
			if c.soFar {
				err = c.soFarPanel(ctx, r, &p)
			} else {
				err = c.workloadPanel(r, &p)
			}
		case scenario.ClusterResult:
			p.Group = "ClusterResult"
			err = c.clusterPanel(ctx, r, &p)
		default:
			err = fmt.Errorf("result of unknown kind %q", r.Kind)
		}
		if err != nil {
			p.Problem, p.Series = err.Error(), []result.Series{}
		}
		p.Metrics = c.reportMetrics(r, &p)
		out = append(out, p)
	}
	return out
}

// Query is the PromQL of a VM-group result, as the language defines it, and the unit of its answer.
func Query(r scenario.Result, scenarioID int64) (query, unit string, err error) {
	filter := fmt.Sprintf("scenario_id=\"%d\", vm_group=%s", scenarioID, quote(r.Group))
	sum := func(by, a, b string) string {
		return fmt.Sprintf("sum by (%s) (irate(%s{%s}[%s]) + irate(%s{%s}[%s]))", by, a, filter, lookback, b, filter,
			lookback)
	}
	switch strings.ToLower(r.Type) {
	case "iops":
		query, unit = sum("instance", record.ReadsCompleted, record.WritesCompleted), "ops/s"
	case "bandwidth":
		query, unit = sum("instance", record.ReadBytes, record.WrittenBytes), "bytes/s"
	case "latency":
		by := "instance"
		switch r.Aggregate {
		case "":
		case "mean", "sum": // both are the mean weighted by operations: times and operations are summed first
			by = "vm_group"
		default:
			return "", "us", fmt.Errorf("aggregate %q is not defined for latency; use mean", r.Aggregate)
		}
		return fmt.Sprintf("(%s / (%s > %s)) * 1000000", sum(by, record.ReadSeconds, record.WriteSeconds),
			sum(by, record.ReadsCompleted, record.WritesCompleted), iopsFloor), "us", nil
	case "generic":
		if strings.TrimSpace(r.Query) == "" {
			return "", "count", fmt.Errorf("a generic result needs a query")
		}
		query = Filled(inGroup(r.Query, r.Group), scenarioID)
		unit = "count"
	default:
		return "", "", fmt.Errorf("result type %q is not one of VM groups", r.Type)
	}
	switch r.Aggregate {
	case "":
	case "sum", "min", "max":
		query = fmt.Sprintf("%s by (vm_group) (%s)", r.Aggregate, query)
	case "mean", "avg":
		query = fmt.Sprintf("avg by (vm_group) (%s)", query)
	default:
		return "", unit, fmt.Errorf("aggregate %q is not defined for VM-group results; use sum, min, mean or max",
			r.Aggregate)
	}
	return query, unit, nil
}

// CheckQuery says what is wrong with a query of the author's, whose filters are not filled in yet.
func CheckQuery(query string) error { return series.CheckQuery(Filled(inGroup(query, "group"), 1)) }

// inGroup is a query of the author's with the filter of its VM group in it.
func inGroup(query, group string) string {
	return strings.ReplaceAll(query, "__curie_filter_vm_group__", "vm_group="+quote(group))
}

// Filled is a query of the author's with the filter of its own run in it.
func Filled(query string, scenarioID int64) string {
	return strings.ReplaceAll(query, "__curie_filter_scenario__", fmt.Sprintf("scenario_id=\"%d\"", scenarioID))
}

// quote writes a PromQL string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// groupPanel evaluates a result over the exporters of a VM group.
func (c *panelist) groupPanel(ctx context.Context, r scenario.Result, p *result.Panel) (err error) {
	if p.Query, p.Unit, err = Query(r, c.m.Scenario.ID); err != nil {
		return err
	}
	from, end, err := c.panelWindow(r)
	if err != nil {
		return err
	}
	start := from.Truncate(time.Second)
	perVM := 4 // reads and writes, operations and times
	if p.Unit != "us" {
		perVM = 2
	}
	lines, machines := 1, 0
	for _, vm := range c.vms {
		if vm.Group == r.Group {
			machines++
		}
	}
	if r.Aggregate == "" {
		lines += machines
	}
	found, step, err := c.query(ctx, p, start, end, c.scaledStep(r.Step), lines, perVM*machines)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the query found nothing between %s and %s", start.Format(time.TimeOnly),
			end.Format(time.TimeOnly))
	}
	for k, s := range found {
		name := r.Title
		if len(found) > 1 {
			name = fmt.Sprintf("%s (VM %d)", r.Title, k)
		}
		points := s.Points
		if p.Unit != "count" {
			points = within(points, from)
		}
		p.Series = append(p.Series, onGrid(result.Series{Name: name, VM: s.Label("instance"), Group: r.Group,
			Unit: p.Unit}, points, start, end, step))
	}
	return nil
}

// living is a query in which machines that are off have no rates, where any went off before its end: irate goes on with
// the last two points that it finds.
func (c *panelist) living(ctx context.Context, query string, end time.Time) (string, error) {
	on := fmt.Sprintf("%s{scenario_id=\"%d\"}", record.VMNode, c.m.Scenario.ID)
	off, known := c.off[end]
	if !known {
		var err error
		if off, err = c.store.AnyEnded(ctx, series.Selection{Match: []string{on}, To: end}); err != nil {
			return "", err
		}
		c.off[end] = off
	}
	if !off {
		return query, nil
	}
	return series.Living(query, on)
}

// within leaves out the rates that reach back before the window, to the prefill or the warm-up: irate looks at the two
// points before its time.
func within(points []series.Point, from time.Time) []series.Point {
	first := slices.IndexFunc(points, func(p series.Point) bool { return !p.Time.Before(from.Add(time.Second)) })
	if first < 0 {
		return nil
	}
	return points[first:]
}

// panelWindow is the run phase, or what of it the masked workload covers. It ends on a whole second, as queries do.
func (c *found) panelWindow(r scenario.Result) (start, end time.Time, err error) {
	if c.store == nil {
		return start, end, fmt.Errorf("the run folder has no readable metrics")
	}
	if !c.ran {
		return start, end, fmt.Errorf("the run phase never began")
	}
	if r.Mask == "" {
		return c.tl.runStart().UTC(), c.end, nil
	}
	for _, l := range c.loads {
		if l.name == r.Mask && !l.prefill {
			if start.IsZero() || l.start.Before(start) {
				start = l.start
			}
			end = tally.Later(end, l.end)
		}
	}
	if start.IsZero() {
		return start, end, fmt.Errorf("workload %q, which masks this result, never started", r.Mask)
	}
	return start.UTC(), tally.Later(start.UTC().Truncate(time.Second), end.UTC().Truncate(time.Second)), nil
}

// scaledStep is the author's step, or the default one, shortened with a run's time scale: whole seconds, at least one.
func (c *source) scaledStep(step time.Duration) time.Duration {
	step = cmp.Or(step, defaultStep)
	if f := c.m.TimeScale; f > 0 && f < 1 {
		step = time.Duration(float64(step) * f)
	}
	return max(time.Second, step.Round(time.Second))
}

// What evaluating one panel may cost: a rate of one series at one moment is one evaluation, of which a core does some
// millions a second. With more, the step is lengthened, which is said. Above the second the query is evaluated in
// slices.
const (
	mostEvaluations  = 30_000_000
	sliceEvaluations = 5_000_000
)

// query evaluates the panel's query, with a longer step, said in a note, where the step would give too many points.
// lines is the most series that it gives, over how many series it goes.
func (c *panelist) query(ctx context.Context, p *result.Panel, start, end time.Time, step time.Duration, lines,
	over int) ([]series.Series, time.Duration, error) {
	most := min(series.MaxPoints, max(mostPanelValues/max(lines, 1), fewestCells),
		max(mostEvaluations/max(over, 1), fewestCells))
	if asked := step; int(end.Sub(start)/step)+1 > most {
		step = (end.Sub(start)/time.Duration(most-1) + time.Second - 1).Truncate(time.Second)
		p.Notes = append(p.Notes, fmt.Sprintf("evaluated every %v instead of every %v: %v is too long for that", step,
			asked, end.Sub(start)))
	}
	query, err := c.living(ctx, p.Query, end)
	if err != nil {
		return nil, step, err
	}
	evaluations := over * (int(end.Sub(start)/step) + 1)
	ctx, shared := series.Sharing(ctx)
	found, err := c.store.RangeInSlices(ctx, query, start, end, step, 1+evaluations/sliceEvaluations)
	if shared() {
		p.Notes = append(p.Notes, sharedNote(c.m.SharedCounters))
	}
	return found, step, err
}

// onGrid puts points on a regular grid; where there is none, or no number, is a gap.
func onGrid(s result.Series, points []series.Point, start, end time.Time, step time.Duration) result.Series {
	s.Start, s.Step = start, step.Seconds()
	s.Values = make([]*float64, int(end.Sub(start)/step)+1)
	for _, pt := range points {
		i := int(math.Round(float64(pt.Time.Sub(start)) / float64(step)))
		if i < 0 || i >= len(s.Values) || math.IsNaN(pt.Value) || math.IsInf(pt.Value, 0) {
			continue
		}
		v := significant(pt.Value, 9)
		s.Values[i] = &v
	}
	return s
}

// clusterMetrics are the metrics of the language with their unit and factor. Those marked experimental are dropped
// silently by the published engine; here they are shown and marked.
var clusterMetrics = map[string]struct {
	unit         string
	factor       float64
	experimental bool
}{
	"CpuUsage.Avg.Megahertz":                {"Hz", 1e6, true},
	"CpuUsage.Avg.Percent":                  {"%", 1, true},
	"MemUsage.Avg.Percent":                  {"%", 1, true},
	"NetReceived.Avg.KilobytesPerSecond":    {"bytes/s", 1024, false},
	"NetTransmitted.Avg.KilobytesPerSecond": {"bytes/s", 1024, false},
}

// clusterPanel evaluates a result over the cluster's own counters.
func (c *panelist) clusterPanel(ctx context.Context, r scenario.Result, p *result.Panel) error {
	metric, ok := clusterMetrics[r.Metric]
	if !ok {
		return fmt.Errorf("metric %q is not one of the language", r.Metric)
	}
	p.Type, p.Unit = r.Metric, metric.unit
	if metric.experimental {
		p.Notes = append(p.Notes, "experimental in the scenario language")
	}
	start, end, err := c.panelWindow(scenario.Result{})
	if err != nil {
		return err
	}
	p.Query = fmt.Sprintf("sum by (node, instance) (%s{scenario_id=\"%d\"})", record.ClusterSeries(r.Metric),
		c.m.Scenario.ID)
	switch r.Aggregate {
	case "":
	case "sum", "min", "max":
		p.Query = fmt.Sprintf("%s(%s)", r.Aggregate, p.Query)
	case "mean":
		p.Query = fmt.Sprintf("avg(%s)", p.Query)
	case "median":
		p.Query = fmt.Sprintf("quantile(0.5, %s)", p.Query)
	default:
		return fmt.Errorf("aggregate %q is not defined", r.Aggregate)
	}
	if metric.factor != 1 {
		p.Query += fmt.Sprintf(" * %g", metric.factor)
	}
	found, step, err := c.query(ctx, p, start, end, c.scaledStep(r.Step), len(c.m.Nodes), len(c.m.Nodes))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("metric %q is not served by target %q", r.Metric, c.m.Target)
	}
	slices.SortStableFunc(found, func(a, b series.Series) int {
		return cmp.Or(cmp.Compare(len(a.Label("node")), len(b.Label("node"))),
			cmp.Compare(a.Label("node"), b.Label("node")))
	})
	for k, s := range found {
		name := r.Title
		if len(found) > 1 {
			name = fmt.Sprintf("%s (Node %d)", r.Title, k)
		}
		p.Series = append(p.Series, onGrid(result.Series{Name: name, Unit: p.Unit}, s.Points, start, end, step))
	}
	return nil
}
