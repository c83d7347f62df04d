package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	known   map[step.JobUse]answer
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

func newJobs(v step.View, engines map[string]workload.Engine) *jobs {
	return &jobs{view: v, engines: engines, known: map[step.JobUse]answer{}}
}

// answer is what an engine made of a way in which a workload is used.
type answer struct {
	job   workload.Job
	known bool
	needs []target.Capability
}

// job is step.View.Job.
func (j *jobs) job(use step.JobUse) (workload.Job, bool) {
	a := j.check(use)
	return a.job, a.known
}

// check asks once about a way in which a workload is used.
func (j *jobs) check(use step.JobUse) answer {
	if a, ok := j.known[use]; ok {
		return a
	}
	a, err := j.ask(use)
	if err != nil {
		j.refused.add(err.Error(), use.Workload)
	}
	j.known[use] = a
	return a
}

// ask has the job file checked for the disks the group's members will have.
func (j *jobs) ask(use step.JobUse) (answer, error) {
	load, err := j.view.Workload(use.Workload)
	if err != nil {
		return answer{}, err
	}
	if len(j.engines) == 0 {
		return answer{}, nil
	}
	engine, ok := j.engines[load.Generator]
	if !ok {
		return answer{}, fmt.Errorf("there is no engine for generator %q; known are %s", load.Generator, known(j.engines))
	}
	about := engine.Describe()
	if j.view.Facts.Simulated && !about.Blocks {
		return answer{}, fmt.Errorf("the simulated cluster models block I/O, and generator %q does something else; run it on a target of real machines", load.Generator)
	}
	if use.Prefill && !about.Prefills {
		return answer{}, fmt.Errorf("generator %q has no prefill: leave the prefill steps of its workloads out", load.Generator)
	}
	spec := workload.Spec{
		Name: use.Workload, VM: "plan", ConfigFile: load.ConfigFile, Config: load.Config, Settings: load.Settings, Disks: j.disks(load),
		Prefill: use.Prefill, Depth: use.Depth, Interval: load.ReportingInterval, Runtime: use.Runtime,
		SizeScale: j.view.SizeScale, TimeScale: j.view.TimeScale,
	}
	if err := engine.Validate(spec); err != nil {
		return answer{}, err
	}
	needs, err := j.peers(engine, load, &spec)
	if err != nil {
		return answer{}, err
	}
	job, err := engine.Command(spec)
	if err != nil {
		return answer{}, err
	}
	if !use.Prefill {
		for _, n := range job.Notes {
			j.remarks.add(n, use.Workload)
		}
		if err := j.asserted(use.Workload, job.Declared); err != nil {
			return answer{}, err
		}
	}
	a := answer{job: job, known: true, needs: needs}
	if slices.ContainsFunc(job.Lanes, func(l workload.Lane) bool { return l.TrimShare > 0 }) {
		a.needs = append(a.needs, target.DiskTrim)
	}
	if about.RunsPrograms {
		a.needs = append(a.needs, target.GuestCommands)
	}
	return a, nil
}

// peers gives a spec the machines that its load goes to, and says what that asks of the place.
func (j *jobs) peers(engine workload.Engine, load scenario.Workload, spec *workload.Spec) ([]target.Capability, error) {
	peering, ok := engine.(workload.Peering)
	if !ok {
		return nil, nil
	}
	use, ok, err := peering.Peers(*spec)
	if err != nil || !ok {
		return nil, err
	}
	spec.Address = spec.VM
	spec.Peers, err = j.view.PeersOf(load, use)
	return step.PeerNeeds(use), err
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
		for _, c := range b.jobs.check(b.startUse(s)).needs {
			for i := range b.plan.Steps {
				if one := &b.plan.Steps[i]; one.Name == s.Name && one.Line == s.Pos.Line {
					one.Requires = append(one.Requires, string(c))
				}
			}
		}
	}
}

// startUse is the way in which a step starts its workload.
func (b *builder) startUse(s scenario.Step) step.JobUse {
	return step.JobUse{Workload: s.Args.String("workload_name"), Runtime: b.plan.view.Scaled(s.Args.Seconds("runtime_secs"))}
}

// checkJobs has the job file of every workload that some step uses checked by its engine.
func (b *builder) checkJobs() {
	for _, phase := range [][]scenario.Step{b.sc.Setup, b.sc.Run, b.sc.Teardown} {
		for _, s := range phase {
			switch s.Name {
			case "workload.Start":
				b.jobs.check(b.startUse(s))
			case "workload.PrefillRun", "workload.PrefillStart":
				b.jobs.check(step.JobUse{Workload: s.Args.String("workload_name"), Prefill: true, Depth: 1})
			}
		}
	}
	for _, text := range b.jobs.refused.sentences() {
		b.object("%s", text)
	}
}
