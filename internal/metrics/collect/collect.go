// Package collect turns what a run measured into what is shown of it: afterwards, or at any time from the folder alone,
// Collect evaluates the scenario's results with PromQL over what package record has written, replays the raw output of
// every workload, and returns result.Data.
//
// It sits between the metrics database and raw output on one side and the run folder's data.json on the other. It
// judges nothing (package analysis does) and draws nothing. Every panel stands by itself: one that cannot be evaluated
// says why and hides no other. Percentiles are read from merged histograms only; coarser grids re-bin counters and
// merge histograms, they average nothing.
package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Collect makes the data of a run from its folder: finished, executing or killed, with or without raw output and
// metrics. engines are by name, as the raw output's descriptions give it. What cannot be had is listed in Data.Problems
// and in the panels; an error means that ctx was cancelled or that the folder as a whole cannot be read.
func Collect(ctx context.Context, folder *result.Folder, engines map[string]workload.Engine) (*result.Data, error) {
	if folder.Manifest().Target == result.ImportTarget {
		return collect(ctx, folder, engines, nil, "") // what others measured has no scenario
	}
	sc, problem := loadScenario(folder)
	return collect(ctx, folder, engines, sc, problem)
}

// collect is Collect with the scenario loaded; nil and a problem when it could not be.
func collect(ctx context.Context, folder *result.Folder, engines map[string]workload.Engine, sc *scenario.Scenario,
	problem string) (*result.Data, error) {
	c := &collector{folder: folder, m: folder.Manifest(), engines: engines, sc: sc,
		data: &result.Data{Version: result.FormatVersion}}
	if problem != "" {
		c.problem("%s", problem)
	}
	events, skipped, err := folder.Events()
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	c.data.Problems = append(c.data.Problems, skipped...)
	c.openMetrics()
	if c.store != nil {
		defer c.store.Close() //nolint:errcheck // a view for reading
	}
	var newest time.Time
	if c.store != nil {
		_, newest, _ = c.store.Bounds()
	}
	c.tl = readTimeline(c.m, events, newest)
	c.start, c.end, c.ran = c.tl.window(c.m)
	c.data.Start, c.data.End, c.data.Phases, c.data.Events = c.start, c.end, c.tl.phases, c.tl.marks
	c.data.Preconditioned, c.data.Written = result.Prepared(events, !c.soFar)
	c.data.Stored = result.StoredOf(events)
	c.data.Boots, c.data.Migrations = result.BootsOf(events), result.MigrationsOf(events)
	c.data.NodeReturns = result.NodeReturnsOf(events)
	c.findJobs(events)
	c.findVMs(ctx, events)
	if c.store != nil {
		share(c.store, c.m, c.data.VMs)
	}
	if err := c.replayAll(ctx); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	c.data.Workloads = c.workloads()
	c.threads(ctx)
	c.data.Series = c.series(ctx)
	c.data.Panels = c.panels(ctx)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return c.data, nil
}

type collector struct {
	folder  *result.Folder
	m       result.Manifest
	engines map[string]workload.Engine
	store   *series.Store      // nil when there are no metrics
	sc      *scenario.Scenario // nil when the folder's copy cannot be loaded
	tl      timeline
	start   time.Time
	end     time.Time
	ran     bool // the run phase began
	soFar   bool // the raw output is not looked at
	tracks  []*track
	layout  tally.Layout // of every start's counters
	loads   []*loadPlan
	grid    grid
	spacing map[string]time.Duration // between reports, by workload
	fine    grid                     // of the series of sections
	apart   map[*loadPlan]bool       // the workloads that have such series
	total   []*cells                 // by group; the last is the total over all groups
	groups  []string
	perVM   map[string]*cells
	data    *result.Data
	mu      sync.Mutex // guards problem
}

func (c *collector) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data.Problems = append(c.data.Problems, fmt.Sprintf(format, args...))
}

func (c *collector) openMetrics() {
	store, err := series.OpenReadOnly(c.folder.MetricsDir(), series.Options{})
	if err != nil {
		c.problem("%v", err)
		return
	}
	c.store = store
}

// loadScenario loads the folder's copy as it ran: the file after templating, so that neither variables nor presets are
// needed again.
func loadScenario(folder *result.Folder) (sc *scenario.Scenario, problem string) {
	m := folder.Manifest()
	dir, file := folder.RenderedFile()
	options := scenario.LoadOptions{File: file, Rendered: true, ID: m.Scenario.ID, Nodes: len(m.Nodes)}
	sc, diags := scenario.Load(dir, options)
	if sc != nil {
		return sc, ""
	}
	problem = "the folder's copy of the scenario cannot be loaded, so its results are missing"
	for _, d := range diags {
		if d.Severity == scenario.Error {
			return nil, problem + ": " + d.String()
		}
	}
	return nil, problem
}

// findJobs lists the starts of workloads and completes from the journal what a killed process could not write.
func (c *collector) findJobs(events []result.Event) {
	jobs, problems := c.folder.RawJobs()
	c.data.Problems = append(c.data.Problems, problems...)
	type key struct {
		vm, load string
		start    int
	}
	ends := map[key]result.Event{}
	for _, e := range events {
		if e.Kind != result.KindWorkload || e.Data.State == result.WorkloadStart {
			continue
		}
		if k := (key{e.Data.VM, e.Data.Workload, e.Data.Start}); ends[k].Kind == "" {
			ends[k] = e
		}
	}
	for _, j := range jobs {
		k := &track{job: j, ended: j.Ended, end: j.End, notes: slices.Clone(j.Notes)}
		if e, ok := ends[key{j.VM, j.Workload, j.Attempt}]; ok && j.Ended == "" {
			k.end = e.Time
			k.ended = map[string]result.Ending{result.WorkloadEnd: result.Finished,
				result.WorkloadStop: result.Stopped, result.WorkloadLost: result.Lost}[e.Data.State]
			if e.Error != "" && k.ended == result.Finished {
				k.ended, k.job.Message = result.Failed, e.Error
			}
		}
		c.tracks = append(c.tracks, k)
		c.layout = c.layout.With(j.Operations, j.Measures)
	}
	for _, k := range c.tracks {
		k.meter = tally.NewMeter(c.layout, k.job.Operations, k.job.Measures)
	}
}

// findVMs lists the machines: those that steps have made, those that were ever on, and those that ran something.
func (c *collector) findVMs(ctx context.Context, events []result.Event) {
	nodes := c.madeVMs(events)
	for _, k := range c.tracks {
		nodes[k.job.VM] = result.VM{Name: k.job.VM, Group: k.job.Group, Node: k.job.Node}
	}
	if c.store != nil {
		oldest, newest, ok := c.store.Bounds()
		if ok {
			q := fmt.Sprintf("last_over_time(%s{scenario_id=%q}[%ds])", record.VMNode, fmt.Sprint(c.m.Scenario.ID),
				int(newest.Sub(oldest).Seconds())+2)
			found, err := c.store.Instant(ctx, q, newest)
			if err != nil {
				c.problem("machines: %v", err)
			}
			for _, s := range found {
				nodes[s.Label("instance")] = result.VM{Name: s.Label("instance"), Group: s.Label("vm_group"),
					Node: int(s.Points[0].Value)}
			}
		}
	}
	groups := map[string]scenario.Group{}
	if c.sc != nil {
		for _, g := range c.sc.Groups {
			groups[g.Name] = g
		}
	}
	scale := cmp.Or(c.m.SizeScale, 1)
	for _, vm := range nodes {
		g := groups[vm.Group]
		vm.CPUs, vm.MemoryBytes, vm.Disks = g.CPUs, g.MemoryBytes, len(g.DiskBytes)
		if len(g.DiskBytes) > 0 {
			vm.DiskBytes = int64(math.Round(float64(g.DiskBytes[0]) * scale))
		}
		c.data.VMs = append(c.data.VMs, vm)
	}
	slices.SortFunc(c.data.VMs, func(a, b result.VM) int { return strings.Compare(a.Name, b.Name) })
}

// madeVMs are the machines of the plan whose step came to its end.
func (c *collector) madeVMs(events []result.Event) map[string]result.VM {
	vms := map[string]result.VM{}
	var p struct {
		VMs []struct {
			Name, Group string
			Node, Step  int
		}
	}
	if raw, err := c.folder.Plan(); err != nil || json.Unmarshal(raw, &p) != nil {
		return vms // what is wrong with the plan is said where it is shown
	}
	done := map[int]bool{}
	for _, e := range events {
		if e.Kind == result.KindStepEnd && e.Error == "" && e.Data.State == "" {
			done[e.Step] = true
		}
	}
	for _, vm := range p.VMs {
		if done[vm.Step] {
			vms[vm.Name] = result.VM{Name: vm.Name, Group: vm.Group, Node: vm.Node, NeverSeenOn: true}
		}
	}
	return vms
}

// replayAll replays every raw output, VM by VM, on all cores.
func (c *collector) replayAll(ctx context.Context) error {
	c.planLoads()
	c.planGrid(ctx)
	c.planSections()
	byVM := map[string][]*track{}
	for _, k := range c.tracks {
		byVM[k.job.VM] = append(byVM[k.job.VM], k)
	}
	work := make(chan []*track, len(byVM))
	for _, vm := range c.data.VMs {
		if list := byVM[vm.Name]; len(list) > 0 {
			work <- list
		}
	}
	close(work)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(byVM)) {
		wg.Go(func() {
			for list := range work {
				if ctx.Err() == nil {
					c.replayVM(ctx, list)
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(c.data.Problems)
	return ctx.Err()
}

// replayVM replays the outputs of one VM.
func (c *collector) replayVM(ctx context.Context, list []*track) {
	mine := newCells(c.grid.detailed(), len(c.layout.Operations))
	for _, k := range list {
		engine := c.engines[k.job.Engine]
		if engine == nil {
			c.problem("%s of %s: no engine %q to read its output", k.job.Workload, k.job.VM, k.job.Engine)
			continue
		}
		k.streams = c.streamsOf(k)
		p := &replay{track: k, fine: c.fine, warned: map[string]int{}, cutters: func(begin tally.Mark) []*cutter {
			return c.cuttersFor(k, mine, begin)
		}}
		err := read(ctx, c.folder, engine, p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.problem("%s of %s, start %d: there is no raw output", k.job.Workload, k.job.VM, k.job.Attempt)
		case err != nil:
			c.problem("%s of %s, start %d: %v", k.job.Workload, k.job.VM, k.job.Attempt, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, g := range c.groups {
		if g == list[0].job.Group {
			c.total[i].merge(mine)
		}
	}
	c.total[len(c.groups)].merge(mine)
	c.perVM[list[0].job.VM] = mine.quantiles()
}
