package scenario

import (
	"fmt"
	"path"
	"slices"
	"time"

	"plimsoll/unit"
)

// check looks at the scenario as a whole: the order of its steps, its files, what nothing uses.
func (d *document) check() {
	d.checkOrder()
	d.checkUse()
	d.checkTime()
	if !slices.ContainsFunc(d.sc.Teardown, func(s Step) bool {
		return s.Name == "cluster.CleanUp" || s.Name == "cluster.DeleteCurieVMs"
	}) && len(d.sc.Groups) > 0 {
		at := d.fields.where("teardown")
		if !d.sc.HasTeardown {
			at = Pos{File: d.file}
		}
		d.say("no-teardown", at, "the teardown does not remove the VMs: they stay after the run",
			"add cluster.CleanUp: {} to teardown")
	}
}

// groupState holds what the steps so far have done to a VM group.
type groupState struct {
	now    Group
	cloned bool
	on     bool
}

// workloadState holds what the steps so far have done to a workload.
type workloadState struct {
	started   int
	prefilled bool // by PrefillStart
	running   bool // asynchronous, and neither waited for nor stopped
	at        Pos
}

// checkOrder follows the steps through all phases.
func (d *document) checkOrder() {
	groups, loads := map[string]*groupState{}, map[string]*workloadState{}
	for _, g := range d.sc.Groups {
		groups[g.Name] = &groupState{now: g}
	}
	for _, w := range d.sc.Workloads {
		loads[w.Name] = &workloadState{}
	}
	playbooks := false
	for _, s := range d.stepInfos {
		g := groups[s.Args.String("vm_group_name")]
		w := loads[s.Args.String("workload_name")]
		playbooks = playbooks || s.Name == "playbook.Run" || s.Name == "experimental.Shell"
		if g != nil {
			d.groupStep(s, g)
		}
		if w == nil {
			continue
		}
		load, _ := d.workload(s.Args.String("workload_name"))
		if g := groups[load.Group]; g != nil && s.Phase != Teardown {
			d.groupReady(s, load, g, playbooks)
			d.checkStagger(s, g.now)
		}
		d.workloadStep(s, load, w)
	}
	for _, declared := range d.sc.Workloads {
		if w := loads[declared.Name]; w.running {
			d.say("left-running", w.at, fmt.Sprintf("workload %q is started in the background and nothing waits for "+
				"it or stops it", declared.Name),
				"it is stopped at the end of the run phase; add workload.Wait or workload.Stop")
		}
	}
}

func (d *document) groupStep(s stepInfo, g *groupState) {
	switch s.Name {
	case "vm_group.CloneFromTemplate":
		g.cloned = true
		g.on = g.on || s.Args.Bool("power_on")
	case "vm_group.PowerOn", "vm_group.WaitForPowerOn":
		g.on = true
	case "vm_group.PowerOff":
		g.on = false
	case "vm_group.Grow":
		if s.refused {
			return
		}
		grown := g.now.Grown(s.Args)
		if from, to, ok := d.sizes(g.now, grown); ok && to <= from {
			d.say("grow", s.args.where(counted(s.Args)), fmt.Sprintf("%s: vm group %q has %d VMs and would have %d",
				s.Name,
				g.now.Name, from, to), "raise the count")
		}
		g.now = grown
	}
}

// counted is the count that a Grow was given.
func counted(args Args) string {
	if args.Has("count_per_node") {
		return "count_per_node"
	}
	return "count_per_cluster"
}

// sizes returns how many members both groups have, when that can be known.
func (d *document) sizes(a, b Group) (from, to int, known bool) {
	if d.opts.Nodes > 0 {
		x, errX := a.Place(d.opts.Nodes)
		y, errY := b.Place(d.opts.Nodes)
		return len(x), len(y), errX == nil && errY == nil
	}
	switch {
	case a.CountPerCluster > 0 && b.CountPerCluster > 0:
		return a.CountPerCluster, b.CountPerCluster, true
	case a.CountPerCluster == 0 && b.CountPerCluster == 0:
		return max(1, a.CountPerNode), max(1, b.CountPerNode), true
	}
	return 0, 0, false
}

func (d *document) groupReady(s stepInfo, w Workload, g *groupState, playbooks bool) {
	if !slices.Contains([]string{"workload.PrefillRun", "workload.PrefillStart", "workload.Precondition",
		"workload.Start"}, s.Name) ||
		playbooks {
		return
	}
	switch {
	case !g.cloned:
		d.say("group-not-ready", s.Pos, fmt.Sprintf("%s: vm group %q of workload %q has not been cloned", s.Name,
			g.now.Name, w.Name), "add vm_group.CloneFromTemplate before")
	case !g.on:
		d.say("group-not-ready", s.Pos, fmt.Sprintf("%s: vm group %q of workload %q is not powered on", s.Name,
			g.now.Name, w.Name), "add vm_group.PowerOn before")
	}
}

func (d *document) checkStagger(s stepInfo, g Group) {
	stagger := s.Args.Float("stagger_secs")
	if s.Name != "workload.Start" || stagger <= 0 {
		return
	}
	members := g.CountPerCluster
	if d.opts.Nodes > 0 {
		placed, _ := g.Place(d.opts.Nodes)
		members = len(placed)
	}
	if members > 1 && int(stagger)/(members-1) == 0 {
		d.say("stagger-zero", s.args.where("stagger_secs"), fmt.Sprintf("%s: %d VMs in %s s: published engines round "+
			"the interval to 0 and start all at once", s.Name, members, plainNumber(stagger)),
			fmt.Sprintf("use at least %d", members-1))
	}
}

func (d *document) workloadStep(s stepInfo, load Workload, w *workloadState) {
	switch s.Name {
	case "workload.PrefillStart":
		w.prefilled = true
	case "workload.PrefillWait":
		if !w.prefilled {
			d.say("not-started", s.Pos, fmt.Sprintf("%s: the prefill of workload %q was not started before", s.Name,
				load.Name), "add workload.PrefillStart")
		}
	case "workload.Start":
		if w.started++; w.started > 1 {
			d.say("started-twice", s.Pos, fmt.Sprintf("%s: workload %q is started a second time", s.Name, load.Name),
				"declare the same file under another name")
		}
		w.running, w.at = s.Args.Bool("async"), s.Pos
		d.checkRuntime(s, load)
	case "workload.Wait":
		if w.started == 0 {
			d.say("not-started", s.Pos, fmt.Sprintf("%s: workload %q was not started before", s.Name, load.Name),
				"add workload.Start with async: True")
		}
		w.running = false
	case "workload.Stop":
		if w.started == 0 {
			d.say("stop-not-started", s.Pos, fmt.Sprintf("%s: workload %q was not started before", s.Name, load.Name),
				"")
		}
		w.running = false
	}
}

// checkRuntime compares a start with the job file it runs.
func (d *document) checkRuntime(s stepInfo, load Workload) {
	if s.refused {
		return
	}
	runtime := s.Args.Has("runtime_secs")
	if c := d.read[load.Name]; c != nil {
		for _, o := range c.Start(Start{Step: s.Name, Workload: load.Name, Runtime: runtime}) {
			d.say(o.Code, s.Pos, o.What, o.Hint)
		}
	}
	if !runtime && !s.Args.Bool("async") && !s.Args.Has("timeout_secs") {
		d.say("no-timeout", s.Pos, fmt.Sprintf("%s: workload %q has neither runtime nor timeout: it may take 300 s "+
			"at most", s.Name, load.Name), "add timeout_secs")
	}
}

// checkUse remarks on what nothing refers to, and checks the job files of what is used.
func (d *document) checkUse() {
	prefilled, started := map[string]bool{}, map[string]bool{}
	usedGroups := map[string]bool{}
	for _, s := range d.stepInfos {
		switch name := s.Args.String("workload_name"); s.Name {
		case "workload.PrefillRun", "workload.PrefillStart":
			prefilled[name] = true
		case "workload.Start", "workload.Precondition":
			started[name] = true
		}
		usedGroups[s.Args.String("vm_group_name")] = true
	}
	for _, w := range d.sc.Workloads {
		usedGroups[w.Group] = usedGroups[w.Group] || prefilled[w.Name] || started[w.Name]
		if !prefilled[w.Name] && !started[w.Name] {
			if d.unknownSteps {
				continue
			}
			d.say("unused-workload", w.Pos, fmt.Sprintf("workload %q is never started or prefilled", w.Name),
				"remove it")
			continue
		}
		if g, ok := d.group(w.Group); ok {
			d.checkFit(w, g, prefilled[w.Name])
		}
	}
	for _, g := range d.sc.Groups {
		if !usedGroups[g.Name] && !d.unknownSteps {
			d.say("unused-group", g.Pos, fmt.Sprintf("vm group %q is never used by a step", g.Name), "remove it")
		}
	}
	home := path.Dir(d.file)
	for _, f := range d.files {
		inside := home == "." || len(f) > len(home) && f[:len(home)+1] == home+"/"
		if inside && !d.referenced[f] && path.Base(f)[0] != '.' {
			d.say("unused-file", Pos{File: f}, "nothing refers to this file", "remove it")
		}
	}
}

// checkTime adds up what the steps wait for, with background work counted to its end.
func (d *document) checkTime() {
	var now, runStart, runEnd time.Duration
	ends := map[string]time.Duration{}
	for _, s := range d.stepInfos {
		if s.Phase == Run && runStart == 0 {
			runStart = now
		}
		name := s.Args.String("workload_name")
		switch s.Name {
		case "test.Wait":
			now += s.Args.Seconds("duration_secs")
		case "workload.Start":
			ends[name] = now + s.Args.Seconds("runtime_secs") + s.Args.Seconds("stagger_secs")
			if !s.Args.Bool("async") {
				now = ends[name]
			}
		case "workload.Wait":
			now = max(now, ends[name])
		case "vm_group.CreatePeriodicSnapshots":
			if !s.Args.Bool("async") {
				minutes := float64(s.Args.Int("num_snapshots")-1) * s.Args.Float("interval_minutes")
				now += time.Duration(minutes * float64(time.Minute))
			}
		}
		if s.Phase == Run {
			runEnd = now
		}
	}
	if estimate := d.sc.EstimatedRuntime; estimate > 0 && estimate < now {
		d.say("estimate", d.fields.where("estimated_runtime"), fmt.Sprintf("estimated_runtime is %s, and the steps "+
			"wait for %s", unit.Duration(estimate), unit.Duration(now)), "correct it")
	}
	for _, r := range d.sc.Results {
		if r.Kind == GroupResult && r.Step > 0 && (runEnd-runStart)/r.Step > longestQuery {
			d.say("long-run", r.Pos, fmt.Sprintf("result %q: a run of %s at a step of %s is more than %d points",
				r.Name, unit.Duration(runEnd-runStart), unit.Duration(r.Step), longestQuery), "add step: 30s")
		}
	}
}
