package plan

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/step"
	"plimsoll/internal/target"
	"plimsoll/internal/workload"
	"plimsoll/scenario"
)

// jobs asks the engines what they make of the scenario's job files. Every question is asked once.
type jobs struct {
	view    step.View
	engines map[string]workload.Engine
	known   map[jobKey]int64
	errs    []error
	notes   []string
}

type jobKey struct {
	load    string
	prefill bool
}

func newJobs(v step.View, engines map[string]workload.Engine) *jobs {
	return &jobs{view: v, engines: engines, known: map[jobKey]int64{}}
}

// extent is how many bytes one VM writes or reads until a job that ends by itself has ended; 0 when unknown.
func (j *jobs) extent(name string, prefill bool) int64 {
	key := jobKey{name, prefill}
	if size, ok := j.known[key]; ok {
		return size
	}
	size, err := j.ask(name, prefill)
	if err != nil {
		j.errs = append(j.errs, err)
	}
	j.known[key] = size
	return size
}

// ask has the job file checked for the disks the group's members will have.
func (j *jobs) ask(name string, prefill bool) (int64, error) {
	load, err := j.view.Workload(name)
	if err != nil {
		return 0, err
	}
	if len(j.engines) == 0 {
		return 0, nil
	}
	engine, ok := j.engines[load.Generator]
	if !ok {
		return 0, fmt.Errorf("workload %q: there is no engine for generator %q; known are %s", name, load.Generator, known(j.engines))
	}
	spec := workload.Spec{
		Name: name, VM: "plan", ConfigFile: load.ConfigFile, Config: load.Config, Disks: j.disks(load),
		Prefill: prefill, Depth: 1, Interval: load.ReportingInterval,
		SizeScale: j.view.SizeScale, TimeScale: j.view.TimeScale,
	}
	if err := engine.Validate(spec); err != nil {
		return 0, fmt.Errorf("workload %q: %w", name, err)
	}
	job, err := engine.Command(spec)
	if err != nil {
		return 0, fmt.Errorf("workload %q: %w", name, err)
	}
	if !prefill {
		for _, n := range job.Notes {
			j.notes = append(j.notes, fmt.Sprintf("workload %q: %s", name, n))
		}
	}
	var size int64
	for _, lane := range job.Lanes {
		size += lane.Bytes
	}
	return size, nil
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

// checkJobs has the job file of every workload that some step uses checked by its engine.
func (b *builder) checkJobs() {
	for _, phase := range [][]scenario.Step{b.sc.Setup, b.sc.Run, b.sc.Teardown} {
		for _, s := range phase {
			switch s.Name {
			case "workload.Start":
				b.jobs.extent(s.Args.String("workload_name"), false)
			case "workload.PrefillRun", "workload.PrefillStart":
				b.jobs.extent(s.Args.String("workload_name"), true)
			}
		}
	}
	b.errs = append(b.errs, b.jobs.errs...)
}
