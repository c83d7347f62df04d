// Package plan joins a scenario with what a target says of itself and yields the ordered list of steps that a run will
// execute: numbered, in plain words, with estimates of when each begins and how long it takes, the machines that will
// be made, the space and memory they need at most, and what is doubtful about it.
//
// It stands between scenario and run. Nothing is touched: the same scenario, facts and options always give the same
// plan, which prints as Text for people and marshals to JSON for the run folder. What the target cannot do, and what is
// wrong with any step on this cluster, is refused here, all of it at once, before anything starts.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run/step"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// Options of a plan.
type Options struct {
	TimeScale         float64                    // of durations the author wrote; 0 means 1
	SizeScale         float64                    // of disks and sizes; 0 means 1
	Engines           map[string]workload.Engine // by generator; their checks of job files are part of the plan
	AllowHostCommands bool                       // the operator permits commands of the scenario on this machine
	ComparePlain      int                        // by how many turns block I/O is compared with that beside its machine
	Steps             step.Registry              // nil means step.Builtin()
	// Forecaster says how long load takes there; nil where nothing can.
	Forecaster workload.Forecaster
}

// Plan says what a run will do. It is read-only after Build. The steps in it can be executed once.
type Plan struct {
	Scenario         string  `json:"scenario"`
	DisplayName      string  `json:"display_name"`
	Target           string  `json:"target"`
	ClusterName      string  `json:"cluster_name"`
	Nodes            int     `json:"nodes"`
	TimeScale        float64 `json:"time_scale"`
	SizeScale        float64 `json:"size_scale"`
	EstimatedSeconds float64 `json:"estimated_seconds"` // of the steps
	// EstimateUnknown: of some steps nothing can say how long they take; see Step.EstimateUnknown.
	EstimateUnknown bool             `json:"estimate_unknown,omitempty"`
	AuthorSeconds   float64          `json:"author_seconds"` // estimated_runtime, scaled; 0 when not given
	PeakVMs         int              `json:"peak_vms"`
	PeakLoads       int              `json:"peak_loads"` // workloads at once, each counted on every VM that runs it
	PeakDepth       int              `json:"peak_depth"` // operations that these keep outstanding at most
	PeakDiskBytes   int64            `json:"peak_disk_bytes"`
	PeakMemoryBytes int64            `json:"peak_memory_bytes"`
	Steps           []Step           `json:"steps"`
	VMs             []step.PlannedVM `json:"vms"`
	TargetNotes     []string         `json:"target_notes,omitempty"` // what results from there do not say
	Warnings        []string         `json:"warnings,omitempty"`
	Objections      []string         `json:"objections,omitempty"` // why it cannot run here

	view step.View
}

// Step is one step of the plan.
type Step struct {
	Number          int            `json:"number"` // from 1
	Phase           scenario.Phase `json:"phase"`
	Name            string         `json:"name"`
	Text            string         `json:"text"`
	StartSeconds    float64        `json:"start_seconds"` // expected, since the run began
	EstimateSeconds float64        `json:"estimate_seconds"`
	// EstimateUnknown: nothing can say how long it takes. EstimateSeconds is then its part of what estimated_runtime
	// leaves for such steps, at most its limit, or without one its limit.
	EstimateUnknown bool     `json:"estimate_unknown,omitempty"`
	Requires        []string `json:"requires,omitempty"`
	Line            int      `json:"line,omitempty"` // in the scenario's file

	Do step.Step `json:"-"`
}

// View is the view of the steps at the start of the run; each call has groups of its own.
func (p *Plan) View() step.View {
	v := p.view
	v.Groups = step.NewGroups(v.Scenario, len(v.Facts.Nodes), v.Facts.Machines...)
	return v
}

// Estimated is how long the steps are expected to take, or with EstimateUnknown what is taken for it.
func (p *Plan) Estimated() time.Duration { return seconds(p.EstimatedSeconds) }

// Least is how long the steps of which that can be said are expected to take: all of them without EstimateUnknown.
func (p *Plan) Least() time.Duration {
	var sum float64
	for _, s := range p.Steps {
		if !s.EstimateUnknown {
			sum += s.EstimateSeconds
		}
	}
	return seconds(sum)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Refused is the error of a plan that cannot run on its target, with every objection.
type Refused struct {
	Target string
	Errs   []error
}

// Error lists the objections, one per line.
func (r *Refused) Error() string { return errors.Join(r.Errs...).Error() }

// ExitCode implements exit.Coded.
func (r *Refused) ExitCode() int { return exit.Refused }

// Unwrap gives the objections.
func (r *Refused) Unwrap() []error { return r.Errs }

// Build makes the plan. When the scenario cannot run on this target the error is a *Refused holding every objection,
// and the plan comes back all the same, as far as it could be made, so that it can be shown.
func Build(sc *scenario.Scenario, facts target.Facts, o Options) (*Plan, error) {
	b := newBuilder(sc, facts, o)
	b.checkOptions()
	b.checkGroups()
	b.expand()
	b.walk()
	b.requireOfLoads()
	b.checkCapabilities()
	b.objectToJobs()
	b.objectToReads()
	b.remark()
	p := b.plan
	for _, err := range b.errs {
		p.Objections = append(p.Objections, err.Error())
	}
	if len(b.errs) > 0 {
		return p, &Refused{facts.Target, b.errs}
	}
	return p, nil
}

type builder struct {
	sc       *scenario.Scenario
	o        Options
	plan     *Plan
	forecast *step.Forecast
	jobs     *jobs
	errs     []error
}

func newBuilder(sc *scenario.Scenario, facts target.Facts, o Options) *builder {
	for _, scale := range []*float64{&o.TimeScale, &o.SizeScale} {
		if *scale == 0 {
			*scale = 1
		}
	}
	if o.Steps == nil {
		o.Steps = step.Builtin()
	}
	view := step.View{
		Scenario: sc, Facts: facts, Groups: step.NewGroups(sc, len(facts.Nodes), facts.Machines...),
		TimeScale: o.TimeScale, SizeScale: o.SizeScale, HostCommands: o.AllowHostCommands,
	}
	b := &builder{sc: sc, o: o, plan: &Plan{
		Scenario: sc.Name, DisplayName: sc.DisplayName, Target: facts.Target, ClusterName: facts.ClusterName,
		Nodes: len(facts.Nodes), TargetNotes: facts.Notes, TimeScale: o.TimeScale, SizeScale: o.SizeScale,
	}}
	b.jobs = newJobs(view, o.Engines)
	view.Job = b.jobs.job
	b.plan.view = view
	b.forecast = step.NewForecast(view)
	if o.Forecaster != nil {
		b.forecast.Rehearsal = o.Forecaster.Rehearsal()
	}
	return b
}

func (b *builder) object(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

func (b *builder) checkOptions() {
	for name, scale := range map[string]float64{"time scale": b.o.TimeScale, "size scale": b.o.SizeScale} {
		if !(scale > 0 && scale <= 1000) {
			b.object("%s %g: want a number above 0, at most 1000", name, scale)
		}
	}
	if len(b.plan.view.Facts.Nodes) == 0 {
		b.object("target %s: the cluster has no nodes", b.plan.Target)
	}
	slices.SortFunc(b.errs, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
}

// checkGroups places every group now: a selector out of range should not surface an hour into the set-up.
func (b *builder) checkGroups() {
	owner := map[string]string{}
	for _, g := range b.sc.Groups {
		members, err := b.plan.view.Groups.Members(g.Name)
		if err != nil {
			b.object("%s", position(g.Pos, err.Error()))
			continue
		}
		for _, m := range members {
			if other, taken := owner[m.Name]; taken {
				b.object("%s", position(g.Pos, fmt.Sprintf("vm group %q: its VM %q would have the name of one of "+
					"group %q; rename a group", g.Name, m.Name, other)))
				break
			}
			owner[m.Name] = g.Name
		}
	}
}

func position(p scenario.Pos, text string) string {
	if at := p.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// expand turns the scenario's steps into the plan's, meta steps into their parts, and puts the check of power
// controllers before them when any step drives the power of nodes.
func (b *builder) expand() {
	var powered []int
	var steps []Step
	for _, list := range [][]scenario.Step{b.sc.Setup, b.sc.Run, b.sc.Teardown} {
		for _, s := range list {
			built, err := b.o.Steps.Build(s, b.plan.view)
			if err != nil {
				b.object("%s", position(s.Pos, err.Error()))
				continue
			}
			for _, one := range built {
				powered = append(powered, one.Uses().Nodes...)
				steps = append(steps, Step{Phase: s.Phase, Name: one.Name(), Text: one.Text(), Line: s.Pos.Line,
					Do: one})
			}
		}
	}
	if b.o.ComparePlain != 0 {
		steps = b.comparePlain(steps)
	}
	if len(powered) > 0 {
		slices.Sort(powered)
		one := step.ControllersConfigured(slices.Compact(powered))
		steps = slices.Insert(steps, 0, Step{Phase: scenario.PreSetup, Name: one.Name(), Text: one.Text(), Do: one})
	}
	for i := range steps {
		steps[i].Number = i + 1
		for _, c := range steps[i].Do.Requires() {
			steps[i].Requires = append(steps[i].Requires, string(c))
		}
	}
	b.plan.Steps = steps
}

// comparePlain puts after the set-up a comparison of each workload of block I/O that is started later with the same job
// beside its machine.
func (b *builder) comparePlain(steps []Step) []Step {
	at := slices.IndexFunc(steps, func(s Step) bool { return s.Phase != scenario.Setup })
	if at < 0 {
		at = len(steps)
	}
	var more []Step
	for _, load := range b.sc.Workloads {
		engine := b.o.Engines[load.Generator]
		started := slices.ContainsFunc(steps[at:], func(s Step) bool {
			return slices.ContainsFunc(s.Do.Uses().Jobs, func(j step.JobUse) bool {
				return j.Workload == load.Name && !j.Prefill
			})
		})
		if started && engine != nil && engine.Describe().Blocks {
			one := step.ComparePlain(load, b.o.ComparePlain, b.plan.view)
			more = append(more, Step{Phase: scenario.Setup, Name: one.Name(), Text: one.Text(), Do: one})
		}
	}
	if b.o.ComparePlain < result.LeastPlainTurns || b.o.ComparePlain > result.MostPlainTurns {
		b.object("--compare-plain=%d: want %d to %d turns", b.o.ComparePlain, result.LeastPlainTurns,
			result.MostPlainTurns)
	}
	if len(more) == 0 {
		b.object("--compare-plain: the scenario starts no workload of block I/O")
	}
	return slices.Insert(steps, at, more...)
}

// walk goes through the steps in order as a run would, with every step's check, and collects times and machines.
func (b *builder) walk() {
	f := b.forecast
	phase := scenario.PreSetup
	for i := range b.plan.Steps {
		s := &b.plan.Steps[i]
		if phase == scenario.Run && s.Phase != scenario.Run {
			b.endOfRun(f)
		}
		phase, f.Phase = s.Phase, s.Phase
		f.Subject(fmt.Sprintf("step %d", s.Number))
		if err := s.Do.Check(f.View); err != nil {
			b.object("step %d (%s): %w", s.Number, s.Name, err)
		}
		f.Unknown = false
		made := len(f.VMs)
		d := s.Do.Estimate(f)
		for k := made; k < len(f.VMs); k++ {
			f.VMs[k].Step = s.Number
		}
		s.EstimateSeconds, s.EstimateUnknown = d.Seconds(), f.Unknown
		f.Now += d
	}
	if phase == scenario.Run {
		b.endOfRun(f)
	}
	b.schedule()
	b.plan.VMs, b.plan.PeakVMs = f.VMs, f.PeakVMs
	b.plan.PeakLoads, b.plan.PeakDepth = f.PeakLoads, f.PeakDepth
	b.plan.PeakDiskBytes, b.plan.PeakMemoryBytes = f.PeakDiskBytes, f.PeakMemoryBytes
	if each := b.plan.view.Facts.VMMemoryBytes; each > 0 { // memory is a limit there, not reserved
		b.plan.PeakMemoryBytes = int64(f.PeakVMs) * each
	}
	b.plan.Warnings = append(b.plan.Warnings, f.Warnings...)
	for _, text := range f.Objections {
		b.object("%s", text)
	}
	b.givenDisks()
}

// givenDisks objects where the target's data disks are given and are too few or too small.
func (b *builder) givenDisks() {
	if len(b.plan.view.Facts.Machines) > 0 {
		b.readyDisks()
		return
	}
	given := b.plan.view.Facts.DataDisks
	if len(given) == 0 {
		return
	}
	var names []string
	for _, d := range given {
		names = append(names, d.Path)
	}
	if n := b.forecast.PeakDisks; n > len(given) {
		b.object("data disks: the scenario has %s at a time; devices given for them: %d (%s); give more, or take a "+
			"scenario of fewer VMs", unit.Plural(n, "data disk"), len(given), list(names))
	}
	small := slices.MinFunc(given, func(a, b target.Disk) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for _, vm := range b.plan.VMs {
		for i, size := range vm.DiskBytes {
			if b.plan.view.Facts.Dealt {
				small = given[i%len(given)]
			}
			if size > small.Bytes {
				b.object("data disks: disk %d of VM %q is %v, and %s has %v: give a larger device, or a smaller size scale, "+
					"or, where a job of fio says no size=, --job-size %s", i+1, vm.Name, unit.Bytes(size), small.Path,
					unit.Bytes(small.Bytes), strings.ReplaceAll(unit.Bytes(small.Bytes).String(), " ", ""))
				return
			}
		}
	}
}

// readyDisks objects to machines that are there already and have too few or too small data disks.
func (b *builder) readyDisks() {
	of := map[string][]target.Disk{}
	for _, m := range b.plan.view.Facts.Machines {
		of[m.Name] = m.Disks
	}
	for _, vm := range b.plan.VMs {
		have := of[vm.Name]
		if len(have) < len(vm.DiskBytes) {
			b.object("data disks: group %q needs %s on each machine, and %q has %d: give it more", vm.Group,
				unit.Plural(len(vm.DiskBytes), "data disk"), vm.Name, len(have))
			continue
		}
		for i, size := range vm.DiskBytes {
			if size > have[i].Bytes {
				b.object("data disks: disk %d of group %q is %v, and %s of machine %q has %v: give a larger disk, or a "+
					"smaller size scale", i+1, vm.Group, unit.Bytes(size), have[i].Path, vm.Name,
					unit.Bytes(have[i].Bytes))
			}
		}
	}
}

// schedule says when steps begin. Of those of which nothing can say how long they take it divides what the author's
// estimate leaves for them, in proportion to their limits.
func (b *builder) schedule() {
	p := b.plan
	p.AuthorSeconds = b.plan.view.Scaled(b.sc.EstimatedRuntime).Seconds()
	var known, limits float64
	for _, s := range p.Steps {
		if s.EstimateUnknown {
			p.EstimateUnknown = true
			limits += s.EstimateSeconds
		} else {
			known += s.EstimateSeconds
		}
	}
	part := 1.0
	if p.AuthorSeconds > 0 && limits > 0 {
		part = min(1, max(0, p.AuthorSeconds-known)/limits)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.EstimateUnknown {
			s.EstimateSeconds *= part
		}
		s.StartSeconds = p.EstimatedSeconds
		p.EstimatedSeconds += s.EstimateSeconds
	}
}

func (b *builder) endOfRun(f *step.Forecast) {
	if open := f.Unsettled(); len(open) > 0 {
		b.warn("%s left running at the end of the run phase: it will be stopped there: %s",
			unit.Plural(len(open), "workload"), list(open))
	}
	f.SettleAll()
}

func (b *builder) warn(format string, args ...any) {
	b.plan.Warnings = append(b.plan.Warnings, fmt.Sprintf(format, args...))
}

// checkCapabilities says once per capability which steps need it and why it is not there.
func (b *builder) checkCapabilities() {
	var order []target.Capability
	steps := map[target.Capability][]int{}
	for _, s := range b.plan.Steps {
		for _, name := range s.Requires {
			c := target.Capability(name)
			if b.can(c) {
				continue
			}
			if steps[c] == nil {
				order = append(order, c)
			}
			steps[c] = append(steps[c], s.Number)
		}
	}
	for _, c := range order {
		why := b.plan.view.Facts.Missing[c]
		if why == "" {
			why = "it does not offer that"
		}
		b.object("scenario needs %s for %s: target %s cannot: %s", c, ranges(steps[c]), b.plan.Target, why)
	}
}

// can reports a capability. Commands on this machine are the operator's to allow, not the target's; the step's own
// check says so.
func (b *builder) can(c target.Capability) bool {
	return c == target.ControllerCommands || b.plan.view.Facts.Can(c)
}

// nodeExporter is the port that every VM group has unless its author says otherwise. What is there is stood in for.
const nodeExporter = 9100

// remarkPorts names the exporters that the author counts on and that cannot be reached.
func (b *builder) remarkPorts() {
	for _, g := range b.sc.Groups {
		var ports []string
		for _, p := range g.ExporterPorts {
			if p != nodeExporter {
				ports = append(ports, strconv.Itoa(p))
			}
		}
		if len(ports) > 0 {
			b.warn("exporter_ports %s of group %q are not scraped: target %s gives no addresses of VMs",
				list(ports), g.Name, b.plan.Target)
		}
	}
}

// remark adds what is doubtful about the plan as a whole.
func (b *builder) remark() {
	p, facts := b.plan, b.plan.view.Facts
	author, steps := seconds(p.AuthorSeconds), p.Estimated()
	least := ""
	if p.EstimateUnknown {
		least = "at least "
	}
	switch {
	case author <= 0:
	case author < steps*9/10:
		b.warn("estimated_runtime is %s, but the steps are expected to take %s%s", unit.Duration(author), least,
			unit.Duration(steps))
	case p.EstimateUnknown:
	case author > 3*steps && author-steps > time.Minute:
		b.warn("estimated_runtime is %s, but the steps are expected to take only %s", unit.Duration(author),
			unit.Duration(steps))
	}
	if !b.sc.HasTeardown {
		b.warn("the scenario has no teardown: its VMs are removed when the run ends, unless asked to keep them")
	}
	if !b.can(target.VMExporters) {
		b.remarkPorts()
	}
	if off := b.forecast.NodesOff(); len(off) > 0 {
		b.warn("%s off at the end of the steps: the run will switch them back on: %s", unit.Plural(len(off), "node"),
			fmt.Sprint(off))
	}
	switch {
	case facts.FreeBytes < 0 || p.PeakDiskBytes <= facts.FreeBytes: // not known, or enough
	case facts.FreeBytes == 0:
		b.warn("data disks need up to %s, nothing is free beyond what the target keeps in reserve: it will refuse",
			unit.Bytes(p.PeakDiskBytes))
	default:
		b.warn("data disks need up to %s, %s are free: the target may refuse; a size scale of %.2g or less fits%s",
			unit.Bytes(p.PeakDiskBytes), unit.Bytes(facts.FreeBytes),
			p.SizeScale*float64(facts.FreeBytes)/float64(p.PeakDiskBytes), gives(facts.MoreDisk))
	}
	if facts.FreeMemory >= 0 && p.PeakMemoryBytes > facts.FreeMemory {
		b.warn("VMs need up to %s of memory, %s are free: the target may refuse%s",
			unit.Bytes(p.PeakMemoryBytes), unit.Bytes(facts.FreeMemory), gives(facts.MoreMemory))
	}
	p.Warnings = append(p.Warnings, b.jobs.remarks.sentences()...)
}

// gives ends a warning with what gives the target more of something, if there is such a thing.
func gives(option string) string {
	if option == "" {
		return ""
	}
	return "; " + option + " gives more"
}

// list joins names, the first few when there are many.
func list(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// ranges prints step numbers: "step 3", "steps 3, 7-9".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	if len(numbers) == 1 {
		return "step " + parts[0]
	}
	return "steps " + strings.Join(parts, ", ")
}
