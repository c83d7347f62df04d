package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/run/step"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// jobs asks the engines what they make of the scenario's job files. Every question is asked once.
type jobs struct {
	view    step.View
	engines map[string]workload.Engine
	known   map[step.JobUse]answer
	refused said // why job files cannot be used
	remarks said // of engines
}

// said are texts in the order of their first appearance, with the workloads they are about: several workloads, and a
// workload and its prefill, may share a job file.
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
			lead = fmt.Sprintf("%s (%s)", unit.Plural(len(names), "workload"), list(names))
		}
		out = append(out, lead+": "+text)
	}
	return out
}

func newJobs(v step.View, engines map[string]workload.Engine) *jobs {
	return &jobs{view: v, engines: engines, known: map[step.JobUse]answer{}}
}

// answer holds what an engine made of a way in which a workload is used.
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
		return answer{}, fmt.Errorf("there is no engine for generator %q; known are %s", load.Generator,
			engineNames(j.engines))
	}
	about := engine.Describe()
	if j.view.Facts.Simulated && !about.Blocks {
		return answer{}, fmt.Errorf("the simulated cluster models block I/O, and generator %q does something else; "+
			"run it on a target of real machines", load.Generator)
	}
	if use.Prefill && !about.Prefills {
		return answer{}, fmt.Errorf("generator %q has no prefill: leave the prefill steps of its workloads out",
			load.Generator)
	}
	spec := j.spec(load, use)
	if err := engine.Validate(spec); err != nil {
		return answer{}, err
	}
	needs, err := j.peers(engine, load, &spec)
	if err != nil {
		return answer{}, err
	}
	programs := []string{about.Name}
	if slices.Contains(needs, target.Services) {
		if server, err := engine.(workload.Peering).Server(spec); err == nil {
			programs = append(programs, server.Service.Name)
		}
	}
	for _, name := range programs {
		if why := j.view.Facts.Lacks[name]; why != "" {
			return answer{}, fmt.Errorf("target %s: %s", j.view.Facts.Target, why)
		}
	}
	job, err := engine.Command(spec)
	if err != nil {
		return answer{}, err
	}
	if !use.Prefill {
		for _, n := range job.Notes {
			j.remarks.add(n, use.Workload)
		}
		var errs []error
		for _, u := range asserted(j.view.Scenario, use.Workload, job) {
			errs = append(errs, u)
		}
		if len(errs) > 0 {
			return answer{}, errors.Join(errs...)
		}
	}
	a := answer{job: job, known: true, needs: needs}
	if slices.ContainsFunc(job.Streams, func(l result.Stream) bool { return l.TrimShare > 0 }) {
		a.needs = append(a.needs, target.DiskTrim)
	}
	if about.RunsPrograms {
		a.needs = append(a.needs, target.GuestCommands)
	}
	return a, nil
}

// peers gives a spec the machines that its load goes to, as far as they are known before there are machines: their
// names stand for addresses. It says what that asks of the place.
func (j *jobs) peers(
	engine workload.Engine,
	load scenario.Workload,
	spec *workload.Spec,
) (needs []target.Capability, err error) {
	peering, ok := engine.(workload.Peering)
	if !ok {
		return nil, nil
	}
	use, ok, err := peering.Peers(*spec)
	if err != nil || !ok {
		return nil, err
	}
	spec.Address, spec.Peers = spec.VM, []workload.Peer{{VM: spec.VM, Address: spec.VM, Disks: spec.Disks}}
	if use.Group != "" {
		members, err := j.view.Groups.Members(use.Group)
		if err != nil {
			return nil, fmt.Errorf("%s: server: %w", load.ConfigFile, err)
		}
		spec.Peers = nil
		for _, m := range members {
			spec.Peers = append(spec.Peers, workload.Peer{VM: m.Name, Address: m.Name})
		}
	}
	if use.Served {
		needs = append(needs, target.Services)
	}
	if use.Network {
		needs = append(needs, target.PeerNetwork)
	}
	return needs, nil
}

// spec returns what an engine is told of a way in which a workload is used.
func (j *jobs) spec(load scenario.Workload, use step.JobUse) workload.Spec {
	return workload.Spec{
		Name: load.Name, VM: "plan", ConfigFile: load.ConfigFile, Config: load.Config, Settings: load.Settings,
		Disks: j.disks(
			load,
		), Prefill: use.Prefill, Whole: use.Whole, Block: use.Block, Depth: use.Depth, Interval: load.ReportingInterval,
		Runtime: use.Runtime, SizeScale: j.view.SizeScale, TimeScale: j.view.TimeScale,
	}
}

// Uncounted is a condition of the author on an operation or a measure that the workload's generator does not count: it
// would fail only after the run.
type Uncounted struct {
	Assert scenario.Assert
	What   string // what is wrong with it
	Hint   string // what there is instead
}

func (u Uncounted) Error() string { return u.What + "; " + u.Hint }

// asserted objects to the conditions of the author on a workload that its generator cannot answer.
func asserted(sc *scenario.Scenario, name string, job workload.Job) (list []Uncounted) {
	reads := slices.ContainsFunc(job.Streams, func(l result.Stream) bool { return l.Reads })
	writes := slices.ContainsFunc(job.Streams, func(l result.Stream) bool { return l.Writes })
	for _, a := range sc.Asserts {
		asked := result.Assert{Operation: a.Operation, Measure: a.Measure}
		what, word, known := asked.Unknown(job.Operations, job.Measures)
		switch {
		case a.Workload != name:
			continue
		case a.Operation == "write" && reads && !writes, a.Operation == "read" && writes && !reads:
			list = append(list, Uncounted{a, fmt.Sprintf("assert %q: its jobs do not %s", a.Name, a.Operation), ""})
			continue
		case what == "":
			continue
		}
		hint := "there are: " + strings.Join(known, ", ")
		if like := nearest.Of(word, known); like != "" {
			hint = fmt.Sprintf("did you mean %q?", like)
		}
		for _, m := range job.Measures {
			if m.Name == a.Operation+"_"+a.Measure {
				hint = fmt.Sprintf("its figure %s takes a plain number, in %s", m.Name, m.Unit)
			}
		}
		list = append(list, Uncounted{a, fmt.Sprintf("assert %q: its generator counts no %s %q", a.Name, what, word),
			hint})
	}
	return list
}

// CheckAsserts returns the conditions on workloads that their generators cannot answer, without a target. Of a workload
// whose job file its engine refuses nothing is known, and nothing said: Build says why it is refused.
func CheckAsserts(sc *scenario.Scenario, engines map[string]workload.Engine) (list []Uncounted) {
	for _, load := range sc.Workloads {
		if !slices.ContainsFunc(sc.Asserts, func(a scenario.Assert) bool { return a.Workload == load.Name }) {
			continue
		}
		if job, ok := jobOf(sc, load, engines); ok {
			list = append(list, asserted(sc, load.Name, job)...)
		}
	}
	return list
}

// jobOf returns what an engine makes of a workload without a target; false where that is not known.
func jobOf(sc *scenario.Scenario, load scenario.Workload, engines map[string]workload.Engine) (workload.Job, bool) {
	engine, known := engines[load.Generator]
	if !known {
		return workload.Job{}, false
	}
	jobs := newJobs(step.View{Scenario: sc, Groups: step.NewGroups(sc, 0), TimeScale: 1, SizeScale: 1}, engines)
	spec := jobs.spec(load, step.JobUse{Workload: load.Name, Runtime: time.Hour}) // some want to be told one
	if engine.Validate(spec) != nil {
		return workload.Job{}, false
	}
	_, _ = jobs.peers(engine, load, &spec) // which machines these are makes no difference to what is counted
	job, err := engine.Command(spec)
	return job, err == nil
}

// Offered is the rate that a workload's jobs offer from one VM, 0 where one of them has none: what a closed loop offers
// is what it gets. false where that is not known.
func Offered(sc *scenario.Scenario, name string, engines map[string]workload.Engine) (rate float64, known bool) {
	for _, load := range sc.Workloads {
		if load.Name != name {
			continue
		}
		job, ok := jobOf(sc, load, engines)
		for _, s := range job.Streams {
			if s.Rate <= 0 {
				return 0, ok
			}
			rate += s.Rate
		}
		return rate, ok
	}
	return 0, false
}

func engineNames(engines map[string]workload.Engine) string {
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
		device := step.DiskDevice(i)
		disks = append(disks, target.Disk{Device: device, Path: device, Bytes: size})
	}
	return disks
}

// requireOfLoads adds to the steps that start workloads what their jobs ask of the machines, like trims or trust.
func (b *builder) requireOfLoads() {
	for i := range b.plan.Steps {
		one := &b.plan.Steps[i]
		for _, use := range one.Do.Uses().Jobs {
			for _, c := range b.jobs.check(use).needs {
				one.Requires = append(one.Requires, string(c))
			}
		}
	}
}

// objectToJobs says which job files their engines refuse.
func (b *builder) objectToJobs() {
	for _, text := range b.jobs.refused.sentences() {
		b.object("%s", text)
	}
}
