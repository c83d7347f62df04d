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

// collect is Collect with the scenario loaded; nil and a problem when it could not be. Each stage is made of the one
// before: what the folder has, what was found to have run, how that is cut, what the raw output says, and the panels.
func collect(ctx context.Context, folder *result.Folder, engines map[string]workload.Engine, sc *scenario.Scenario,
	problem string) (*result.Data, error) {
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	if err != nil {
		store = nil
	} else {
		defer store.Close() //nolint:errcheck // a view for reading
	}
	s, events, skipped, openErr := open(folder, store, sc, problem)
	if openErr != nil {
		return nil, fmt.Errorf("collect: %w", openErr)
	}
	s.engines, s.problems = engines, append(s.problems, skipped...)
	if err != nil {
		s.problem("%v", err)
	}
	data := s.data()
	data.Preconditioned, data.Written = result.Prepared(events, true)
	data.Stored, data.Plain = result.StoredOf(events), result.PlainOf(events)
	data.Boots, data.Migrations = result.BootsOf(events), result.MigrationsOf(events)
	data.NodeReturns, data.Operations = result.NodeReturnsOf(events), result.OperationsOf(events)
	problems := slices.Clone(s.problems)
	f := find(ctx, s, events, nil)
	r, err := replayAll(ctx, plan(ctx, f))
	if late := f.late(); err == nil && late != nil {
		s.problems = problems
		f = find(ctx, s, events, late)
		r, err = replayAll(ctx, plan(ctx, f))
	}
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	if data.VMs = f.vms; store != nil {
		share(store, s.m, f.vms)
	}
	data.Workloads = r.workloads()
	r.threads(ctx, data.Workloads)
	data.Series = r.series(ctx)
	data.Panels = newPanelist(f, data, false).panels(ctx)
	data.Problems = s.problems
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return data, nil
}

// source holds what the folder of a run has.
type source struct {
	folder     *result.Folder
	m          result.Manifest
	engines    map[string]workload.Engine
	store      *series.Store      // nil when there are no metrics
	sc         *scenario.Scenario // nil when the folder's copy cannot be loaded
	tl         timeline
	start, end time.Time
	ran        bool // the run phase began
	problems   []string
	mu         sync.Mutex // guards problems, and what VMs add to while they are replayed
}

// open reads the journal; skipped is what of it cannot be read.
func open(folder *result.Folder, store *series.Store, sc *scenario.Scenario, problem string) (s *source,
	events []result.Event, skipped []string, err error) {
	s = &source{folder: folder, m: folder.Manifest(), store: store, sc: sc}
	if problem != "" {
		s.problem("%s", problem)
	}
	if events, skipped, err = folder.Events(); err != nil {
		return nil, nil, nil, err
	}
	var newest time.Time
	if store != nil {
		_, newest, _ = store.Bounds()
	}
	s.tl = readTimeline(s.m, events, newest)
	s.start, s.end, s.ran = s.tl.window(s.m)
	return s, events, skipped, nil
}

func (c *source) data() *result.Data {
	return &result.Data{Version: result.FormatVersion, Start: c.start, End: c.end, Phases: c.tl.phases,
		Events: c.tl.marks}
}

func (c *source) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// found is which workloads were started on which machines.
type found struct {
	*source
	tracks []*track
	layout tally.Layout // of every start's counters
	loads  []*loadPlan
	vms    []result.VM
}

// find finds that; began is when jobs began to work, where that is known to be long after they were started.
func find(ctx context.Context, s *source, events []result.Event, began map[jobKey]time.Time) *found {
	f := &found{source: s}
	f.findJobs(events)
	for _, k := range f.tracks {
		k.late = began[keyOf(k.job)]
	}
	f.findVMs(ctx, events)
	f.planLoads()
	return f
}

// planned is how that is cut.
type planned struct {
	*found
	groups  []string
	grid    grid
	spacing map[string]time.Duration // between reports, by workload
	fine    grid                     // of the series of sections
	apart   map[*loadPlan]bool       // the workloads that have such series
}

func plan(ctx context.Context, f *found) *planned {
	p := &planned{found: f}
	p.planGrid(ctx)
	p.planSections()
	return p
}

// replayed holds what the raw output says, beside what tracks have taken of it.
type replayed struct {
	*planned
	total []*cells // by group; the last is the total over all groups
	perVM map[string]*cells
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

// jobKey tells the starts of workloads on machines apart.
type jobKey struct {
	vm, load string
	start    int
}

func keyOf(j result.RawJob) jobKey { return jobKey{j.VM, j.Workload, j.Attempt} }

// findJobs lists the starts of workloads and completes from the journal what a killed process could not write.
func (c *found) findJobs(events []result.Event) {
	jobs, problems := c.folder.RawJobs()
	c.problems = append(c.problems, problems...)
	ends := map[jobKey]result.Event{}
	for _, e := range events {
		if e.Kind != result.KindWorkload || e.Data.State == result.WorkloadStart {
			continue
		}
		if k := (jobKey{e.Data.VM, e.Data.Workload, e.Data.Start}); ends[k].Kind == "" {
			ends[k] = e
		}
	}
	for _, j := range jobs {
		k := &track{job: j, ended: j.Ended, end: j.End, notes: slices.Clone(j.Notes)}
		if e, ok := ends[keyOf(j)]; ok && j.Ended == "" {
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
func (c *found) findVMs(ctx context.Context, events []result.Event) {
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
		c.vms = append(c.vms, vm)
	}
	slices.SortFunc(c.vms, func(a, b result.VM) int { return strings.Compare(a.Name, b.Name) })
}

// madeVMs are the machines of the plan whose step came to its end.
func (c *found) madeVMs(events []result.Event) map[string]result.VM {
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
func replayAll(ctx context.Context, p *planned) (*replayed, error) {
	c := &replayed{planned: p, perVM: map[string]*cells{}}
	for range len(c.groups) + 1 {
		c.total = append(c.total, newCells(c.grid.detailed(), len(c.layout.Operations)))
	}
	byVM := map[string][]*track{}
	for _, k := range c.tracks {
		byVM[k.job.VM] = append(byVM[k.job.VM], k)
	}
	work := make(chan []*track, len(byVM))
	for _, vm := range c.vms {
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
	slices.Sort(c.problems)
	return c, ctx.Err()
}

// replayVM replays the outputs of one VM.
func (c *replayed) replayVM(ctx context.Context, list []*track) {
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
