package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/nearest"
	"plimsoll/internal/step"
	"plimsoll/internal/target"
	"plimsoll/internal/workload"
	"plimsoll/result"
	"plimsoll/scenario"
)

// jobs asks the engines what they make of the scenario's job files. Every question is asked once.
type jobs struct {
	view    step.View
	engines map[string]workload.Engine
	known   map[jobKey]demand
	refused said // why job files cannot be used
	remarks said // of engines
}

// said are texts in the order of their first appearance, with the workloads they are about: several workloads, and a workload and its
// prefill, may share a job file.
type said struct {
	texts []string
	about map[string][]string
}

func (s *said) add(text, load string) {
	if s.about == nil {
		s.about = map[string][]string{}
	}
	if s.about[text] == nil {
		s.texts = append(s.texts, text)
	}
	if !slices.Contains(s.about[text], load) {
		s.about[text] = append(s.about[text], load)
	}
}

// sentences are the texts, each led by its workloads.
func (s *said) sentences() []string {
	var out []string
	for _, text := range s.texts {
		names := s.about[text]
		lead := fmt.Sprintf("workload %q", names[0])
		if len(names) > 1 {
			lead = fmt.Sprintf("%s (%s)", plural(len(names), "workload"), list(names))
		}
		out = append(out, lead+": "+text)
	}
	return out
}

type jobKey struct {
	load    string
	prefill bool
	runtime time.Duration
}

func newJobs(v step.View, engines map[string]workload.Engine) *jobs {
	return &jobs{view: v, engines: engines, known: map[jobKey]demand{}}
}

// extent is how many bytes one VM writes or reads until a job that ends by itself has ended; 0 when unknown.
func (j *jobs) extent(name string, prefill bool) int64 {
	return j.check(jobKey{load: name, prefill: prefill}).bytes
}

// depth is how many operations one VM keeps outstanding at most; 0 when unknown.
func (j *jobs) depth(name string, runtime time.Duration) int {
	return j.check(jobKey{load: name, runtime: runtime}).depth
}

// demand is what a job asks of one VM's disks.
type demand struct {
	bytes int64 // touched until it ends by itself, 0 unknown
	depth int   // operations outstanding at most, 0 unknown
	needs []target.Capability
}

// check asks once about a way in which a workload is used.
func (j *jobs) check(key jobKey) demand {
	if d, ok := j.known[key]; ok {
		return d
	}
	d, err := j.ask(key.load, key.prefill, key.runtime)
	if err != nil {
		j.refused.add(err.Error(), key.load)
	}
	j.known[key] = d
	return d
}

// ask has the job file checked for the disks the group's members will have.
func (j *jobs) ask(name string, prefill bool, runtime time.Duration) (demand, error) {
	load, err := j.view.Workload(name)
	if err != nil {
		return demand{}, err
	}
	if len(j.engines) == 0 {
		return demand{}, nil
	}
	engine, ok := j.engines[load.Generator]
	if !ok {
		return demand{}, fmt.Errorf("there is no engine for generator %q; known are %s", load.Generator, known(j.engines))
	}
	about := engine.Describe()
	if j.view.Facts.Simulated && !about.Blocks {
		return demand{}, fmt.Errorf("the simulated cluster models block I/O, and generator %q does something else; run it on a target of real machines", load.Generator)
	}
	if prefill && !about.Prefills {
		return demand{}, fmt.Errorf("generator %q has no prefill: leave the prefill steps of its workloads out", load.Generator)
	}
	spec := workload.Spec{
		Name: name, VM: "plan", ConfigFile: load.ConfigFile, Config: load.Config, Settings: load.Settings, Disks: j.disks(load),
		Prefill: prefill, Depth: 1, Interval: load.ReportingInterval, Runtime: runtime,
		SizeScale: j.view.SizeScale, TimeScale: j.view.TimeScale,
	}
	if err := engine.Validate(spec); err != nil {
		return demand{}, err
	}
	job, err := engine.Command(spec)
	if err != nil {
		return demand{}, err
	}
	if !prefill {
		for _, n := range job.Notes {
			j.remarks.add(n, name)
		}
		if err := j.asserted(name, job.Declared); err != nil {
			return demand{}, err
		}
	}
	var d demand
	trims := false
	for _, lane := range job.Lanes {
		d.bytes += lane.Bytes
		d.depth += lane.Depth
		trims = trims || lane.TrimShare > 0
	}
	if trims {
		d.needs = append(d.needs, target.DiskTrim)
	}
	if about.RunsPrograms {
		d.needs = append(d.needs, target.GuestCommands)
	}
	return d, nil
}

// asserted objects to conditions of the author on operations and measures that the job does not count, which would
// fail only after the run.
func (j *jobs) asserted(name string, declared workload.Declared) error {
	var errs []error
	for _, a := range j.view.Scenario.Asserts {
		asked := result.Assert{Operation: a.Operation, Measure: a.Measure}
		what, word, known := asked.Unknown(declared.Operations, declared.Measures)
		if a.Workload != name || what == "" {
			continue
		}
		meant := "there are: " + strings.Join(known, ", ")
		if like := nearest.Of(word, known); like != "" {
			meant = fmt.Sprintf("did you mean %q?", like)
		}
		errs = append(errs, fmt.Errorf("assert %q: its generator counts no %s %q; %s", a.Name, what, word, meant))
	}
	return errors.Join(errs...)
}

func known(engines map[string]workload.Engine) string {
	var names []string
	for n := range engines {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// disks are the data disks a member of the workload's group will have, under the names the scenario's files use.
func (j *jobs) disks(load scenario.Workload) []target.Disk {
	decl, err := j.view.Groups.Get(load.Group)
	if err != nil {
		return nil
	}
	var disks []target.Disk
	for i, size := range j.view.Disks(decl) {
		device := DiskDevice(i)
		disks = append(disks, target.Disk{Device: device, Path: device, Bytes: size})
	}
	return disks
}

// DiskDevice is the name of data disk i in a guest, /dev/sdb onward.
func DiskDevice(i int) string {
	name := ""
	for n := i + 2; n > 0; n = (n - 1) / 26 { // bijective base 26: a, b, … z, aa, …
		name = string(rune('a'+(n-1)%26)) + name
	}
	return "/dev/sd" + name
}

// requireOfLoads adds to the starts of workloads what their jobs ask of the machines, like trims or trust.
func (b *builder) requireOfLoads() {
	for _, s := range slices.Concat(b.sc.Setup, b.sc.Run, b.sc.Teardown) {
		if s.Name != "workload.Start" {
			continue
		}
		for _, c := range b.jobs.check(b.startKey(s)).needs {
			for i := range b.plan.Steps {
				if one := &b.plan.Steps[i]; one.Name == s.Name && one.Line == s.Pos.Line {
					one.Requires = append(one.Requires, string(c))
				}
			}
		}
	}
}

// startKey is the way in which a step starts its workload.
func (b *builder) startKey(s scenario.Step) jobKey {
	return jobKey{load: s.Args.String("workload_name"), runtime: b.plan.view.Scaled(s.Args.Seconds("runtime_secs"))}
}

// checkJobs has the job file of every workload that some step uses checked by its engine.
func (b *builder) checkJobs() {
	for _, phase := range [][]scenario.Step{b.sc.Setup, b.sc.Run, b.sc.Teardown} {
		for _, s := range phase {
			switch s.Name {
			case "workload.Start":
				b.jobs.check(b.startKey(s))
			case "workload.PrefillRun", "workload.PrefillStart":
				b.jobs.extent(s.Args.String("workload_name"), true)
			}
		}
	}
	for _, text := range b.jobs.refused.sentences() {
		b.object("%s", text)
	}
}
