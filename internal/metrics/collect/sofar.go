package collect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/result"
	"plimsoll/scenario"
)

// SoFar makes what can be shown of a run while it goes on, in a moment: from the journal and the metrics alone. Results
// of workloads are made of the metrics, too, and throughput, bandwidth and the 99th percentile of each workload come
// before the scenario's own results. Data that stay are made by Collect, from the raw output. The store is the run's
// metrics from OpenMetricsSoFar, nil where they cannot be read; it is not closed.
func SoFar(ctx context.Context, folder *result.Folder, store *series.Store) (*result.Data, error) {
	sc, problem := loadScenario(folder)
	return soFar(ctx, folder, store, sc, problem)
}

// soFar is SoFar with the scenario loaded; nil and a problem when it could not be.
func soFar(
	ctx context.Context, folder *result.Folder, store *series.Store, sc *scenario.Scenario, problem string,
) (*result.Data, error) {
	s, events, _, err := open(folder, store, sc, problem) // the last line may just be written
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	data, f := s.data(), find(ctx, s, events, nil)
	data.VMs = f.vms
	p := newPanelist(f, data, true)
	data.Panels = append(p.generalPanels(ctx), p.panels(ctx)...)
	data.Problems = s.problems
	return data, ctx.Err()
}

// OpenMetricsSoFar is OpenMetrics for a run of which nothing may have been collected yet: its VMs are those of its
// journal and metrics.
func OpenMetricsSoFar(ctx context.Context, folder *result.Folder) (*series.Store, error) {
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	m := folder.Manifest()
	if err != nil || m.SharedCounters == nil {
		return store, err
	}
	events, _, err := folder.Events()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	share(store, m, find(ctx, &source{folder: folder, m: m, store: store}, events, nil).vms)
	return store, nil
}

// generalPanels are what every run has: what its workloads do, from the beginning of the run on, prefills included.
func (c *panelist) generalPanels(ctx context.Context) (out []result.Panel) {
	if c.store == nil || len(c.tracks) == 0 {
		return nil
	}
	moving := slices.ContainsFunc(c.layout.Operations, func(o result.Operation) bool { return o.Bytes })
	filter := fmt.Sprintf("{scenario_id=\"%d\"}[%s]", c.m.Scenario.ID, lookback)
	for _, g := range []struct {
		name, title, unit, query string
		shown                    bool
	}{
		{"throughput", "Throughput of the workloads", result.RateUnit(c.layout.Operations),
			"sum by (workload, prefill) (irate(" + record.WorkloadOps + filter + "))", true},
		{"bandwidth", "Bandwidth of the workloads", "bytes/s",
			"sum by (workload, prefill) (irate(" + record.WorkloadBytes + filter + "))", moving},
		{"p99", "99th percentile of the workloads' service time, over 30 seconds", "s",
			"histogram_quantile(0.99, sum by (workload, prefill) (rate(" + record.WorkloadService + filter + ")))",
			true},
	} {
		if !g.shown {
			continue
		}
		p := result.Panel{ID: g.name, Name: g.name, Title: g.title, Kind: "workload", Unit: g.unit, Query: g.query,
			Series: []result.Series{}}
		start := c.m.Created.UTC().Truncate(time.Second)
		if start.IsZero() || start.After(c.end) {
			start = c.start
		}
		found, step, err := c.query(ctx, &p, start, c.end, c.scaledStep(0), len(c.loads), len(c.tracks))
		if err != nil {
			p.Problem = err.Error()
		}
		slices.SortStableFunc(found, func(a, b series.Series) int { // prefills last: the others keep their colours
			return strings.Compare(a.Label("prefill"), b.Label("prefill"))
		})
		for _, s := range found {
			name, fills := strings.CutSuffix(s.Label("workload"), "_prefill")
			if fills || s.Label("prefill") != "" {
				name += ", filling its disks"
				// It is over, and no load that stands still.
				for n := len(s.Points); n > 0 && s.Points[n-1].Value == 0; n-- {
					s.Points = s.Points[:n-1]
				}
			}
			one := result.Series{Name: name, Workload: name, Unit: p.Unit}
			if g.name == "throughput" { // workloads may count unlike things
				for _, k := range c.tracks {
					if k.job.Workload == s.Label("workload") {
						one.Unit = result.RateUnit(k.job.Operations)
					}
				}
			}
			p.Series = append(p.Series, onGrid(one, s.Points, start, c.end, step))
		}
		if len(found) == 0 && err == nil {
			p.Problem = "no values so far"
		}
		out = append(out, p)
	}
	return out
}

// soFarPanel is workloadPanel made of the metrics.
func (c *panelist) soFarPanel(ctx context.Context, r scenario.Result, p *result.Panel) error {
	if _, _, err := c.workloadValue(r, p); err != nil {
		return err
	}
	start, end, err := c.panelWindow(scenario.Result{})
	if err != nil {
		return err
	}
	var ops []string
	for _, o := range c.layout.Operations {
		if c.declares(r.Workload, o) && o.Block != result.BlockDiscard {
			ops = append(ops, regexp.QuoteMeta(o.Name))
		}
	}
	filter := fmt.Sprintf("scenario_id=\"%d\", workload=%s, prefill=\"\"", c.m.Scenario.ID, quote(r.Workload))
	counted := fmt.Sprintf("{%s, op=~%s}[%s]", filter, quote(strings.Join(ops, "|")), lookback)
	switch strings.ToLower(r.Type) {
	case "iops":
		p.Query = "irate(" + record.WorkloadOps + counted + ")"
	case "bandwidth":
		p.Query = "irate(" + record.WorkloadBytes + counted + ")"
	case "active":
		p.Query = record.WorkloadActive + "{" + filter + "}"
	case "errors":
		p.Query = record.WorkloadErrors + "{" + filter + "}"
	}
	p.Query = "sum by (instance) (" + p.Query + ")"
	aggregates := map[string]string{"": "", "sum": "sum", "min": "min", "max": "max", "mean": "avg", "avg": "avg"}
	switch over, known := aggregates[r.Aggregate]; {
	case !known:
		return fmt.Errorf("aggregate %q is made when the run has ended", r.Aggregate)
	case over != "":
		p.Query = over + "(" + p.Query + ")"
	}
	machines := 0
	for _, k := range c.tracks {
		if k.job.Workload == r.Workload && !k.job.Prefill {
			machines++
		}
	}
	start = start.Truncate(time.Second)
	found, step, err := c.query(ctx, p, start, end, c.scaledStep(r.Step), machines, machines)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("workload %q has no values so far", r.Workload)
	}
	for k, s := range found {
		name := r.Title
		if len(found) > 1 {
			name = fmt.Sprintf("%s (VM %d)", r.Title, k)
		}
		p.Series = append(p.Series, onGrid(result.Series{
			Name: name, VM: s.Label("instance"), Group: r.Group, Workload: r.Workload, Unit: p.Unit,
		}, s.Points, start, end, step))
	}
	return nil
}

// Began is when the run phase of a run began, which charts count time from; when the run did, if it has none.
func Began(m result.Manifest, events []result.Event) time.Time {
	start, _, _ := readTimeline(m, events, time.Time{}).window(m)
	return start
}
