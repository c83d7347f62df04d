package fio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/workloads/fio/fiofile"
)

// ownStage are jobs that run together. Each of its loads is a workload of its own.
type ownStage struct {
	name  string
	loads []ownLoad
}

// ownLoad is a workload: one job, or several that are told in sum.
type ownLoad struct {
	name, file string
	jobs       fiofile.File
}

// together are options by which jobs know of each other, so that their file stays one. A converted file has flow only
// within its stages.
var together = []string{"wait_for", "exitall", "exitall_on_error", "exit_what", "steadystate", "flow"}

// mostApart is how many jobs that run together are workloads of their own, each with a fio of its own: more take the
// processors that the load needs.
const mostApart = 8

// paced notes of a rate that it is not the one which its option has, as blocks have several sizes, and of one that
// holds some operations only.
func (o *own) paced(job fiofile.Job) {
	reads, writes, trims := directions(job.Value("rw"))
	for _, key := range []string{"rate", "rate_iops"} {
		rates, err := fiofile.ParseRates(job.Value(key))
		var held, free []string
		for _, d := range []struct {
			name string
			used bool
			rate int64
		}{{"reads", reads, rates.Read}, {"writes", writes, rates.Write}, {"trims", trims, rates.Trim}} {
			if d.used && d.rate > 0 {
				held = append(held, d.name)
			} else if d.used {
				free = append(free, d.name)
			}
		}
		if err == nil && len(held) > 0 && len(free) > 0 {
			o.noteOf(job, fmt.Sprintf("%s=%s: the rate of its %s is what they are held to, and no measure of what could "+
				"be had; its %s have none", key, job.Value(key), strings.Join(held, " and "),
				strings.Join(free, " and ")))
		}
	}
	mean, least := blocks(job)
	poisson := job.Value("rate_process") == "poisson"
	each := rate(job, reads, writes, trims)
	switch {
	case each == 0 || mean == least || o.request.Stages != nil: // who converted it has said so
	case poisson && job.Value("rate") != "":
		o.noteOf(job, fmt.Sprintf("rate=%s: fio's poisson draws as many operations as blocks of the smallest size would "+
			"make it, and their mean is larger: about %.3g a second are offered, and more bytes", job.Value("rate"), each))
	case !poisson && job.Value("rate_iops") != "":
		o.noteOf(job, fmt.Sprintf("rate_iops=%s: fio counts it in blocks of the smallest size, and their mean is larger: "+
			"about %.3g operations a second are offered; rate_process=poisson offers what is asked for",
			job.Value("rate_iops"), each))
	}
}

const depthsTried = "latency_target: fio tries depths and forgets its figures at each, so what is told is of many " +
	"depths, and not of all their time"

// turns makes stonewall of wait_for where it asks for the same: who waits does so for the one job of the stage before.
func (o *own) turns() {
	var waits []fiofile.Job
	var first []*fiofile.Section // of the stages but the first
	jobs, start, before, same := o.file.Jobs(), 0, "", true
	for i, job := range jobs {
		if triesDepths(job) {
			o.noteOf(job, depthsTried+"; plimsoll mark --limit finds the rate that a limit allows")
		}
		o.paced(job)
		whom := job.Value("wait_for")
		if whom != "" {
			waits = append(waits, job)
		}
		if whom != before {
			same = same && i == start+1 && whom == jobs[start].Section.Name
			first, start, before = append(first, job.Section), i, whom
		}
		same = same && !job.Enabled("stonewall") && !hasOf(job, together[1:])
	}
	if !same || o.request.Stages != nil {
		for _, job := range waits {
			o.noteOf(job, "figures are in sum with those of the jobs that it waits for, over the time of all; stonewall tells "+
				"them apart")
		}
		return
	}
	for _, job := range waits {
		job.Section.Delete("wait_for")
	}
	for _, s := range first {
		s.Options = append(s.Options, fiofile.Option{Key: "stonewall", Flag: true})
	}
}

// hasOf reports whether a job has one of the options.
func hasOf(job fiofile.Job, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := job.Get(key); return ok })
}

// stages splits the file where a job waits for all before it, and the jobs of a stage into workloads: each is measured
// by itself, under its name.
func (o *own) stages(title string) []ownStage {
	var stages []ownStage
	knowing, given := together, o.request.Stages
	if given != nil {
		knowing = knowing[:len(knowing)-1]
	}
	split := !slices.ContainsFunc(o.file.Jobs(), func(j fiofile.Job) bool { return hasOf(j, knowing) })
	var of [][]fiofile.Job
	for i, job := range o.file.Jobs() {
		if i == 0 || split && job.Enabled("stonewall") {
			of = append(of, nil)
		}
		of[len(of)-1] = append(of[len(of)-1], job)
	}
	names := map[string]int{}
	unique := func(name string) string {
		if names[name]++; names[name] > 1 {
			return fmt.Sprintf("%s (%d)", name, names[name])
		}
		return name
	}
	files := 0
	load := func(name string, jobs ...fiofile.Job) ownLoad {
		files++
		l := ownLoad{name: unique(name), file: fmt.Sprintf("stage-%d.fio", files)}
		for _, j := range jobs {
			l.jobs.Sections = append(l.jobs.Sections, *j.Section)
		}
		return l
	}
	for i, jobs := range of {
		name := title
		if len(of) > 1 || len(given) == 1 || o.request.Title != "" {
			name = fmt.Sprintf("%s %d", title, i+1)
		}
		var s ownStage
		switch {
		case len(given) > 0 && len(given) == len(of):
			name = cmp.Or(strings.Trim(notInStages.ReplaceAllString(given[i], "-"), "-. "), name)
			s.loads = []ownLoad{load(name, jobs...)}
		case given == nil && len(jobs) > 1 && split && o.apart(jobs):
			for k, job := range jobs {
				s.loads = append(s.loads, load(jobName(job, fmt.Sprintf("%s %d", name, k+1)), job))
			}
		case given == nil && len(jobs) == 1:
			s.loads = []ownLoad{load(jobName(jobs[0], name), jobs...)}
		default:
			s.loads = []ownLoad{load(name, jobs...)}
		}
		if s.name = name; len(s.loads) == 1 {
			s.name = s.loads[0].name
		}
		stages = append(stages, s)
	}
	for i := range stages {
		for k := range stages[i].loads {
			l := &stages[i].loads[k]
			if files == 1 && o.request.Title == "" {
				l.file = "job.fio"
			}
			l.jobs.Sections = o.withGlobals(l.jobs.Sections, len(stages) > 1)
		}
	}
	return stages
}

// jobName is the name of a job as that of a workload.
func jobName(job fiofile.Job, other string) string {
	return cmp.Or(strings.Trim(notInNames.ReplaceAllString(job.Section.Name, "-"), "-."), other)
}

// apart reports whether jobs that run together are told one by one: as fio does, unless group_reporting asks for their
// sum and they differ in nothing but where they work. Sweeps and preconditioning are of what a stage does in sum.
func (o *own) apart(jobs []fiofile.Job) bool {
	if len(jobs) > mostApart || len(o.swept) > 0 || o.request.Precondition || o.request.Title != "" {
		return false
	}
	for _, job := range jobs {
		if !job.Enabled("group_reporting") || !o.alike(job, jobs[0]) {
			return true
		}
	}
	return false
}

// placing are options that say on which part of which file a job works, and not what it does there.
var placing = []string{
	"filename", "offset", "offset_increment", "size", "startdelay", "stonewall", "description", "name",
}

// alike reports whether two jobs ask for the same on other files or parts of them.
func (o *own) alike(a, b fiofile.Job) bool {
	for _, s := range o.file.Sections {
		for _, option := range s.Options {
			of, has := a.Get(option.Key)
			other, too := b.Get(option.Key)
			if (has != too || of.Value != other.Value) && !slices.Contains(placing, option.Key) &&
				!slices.Contains(aboutFiles, option.Key) {
				return false
			}
		}
	}
	return true
}

// withGlobals puts before some jobs the [global] sections that they have in the file.
func (o *own) withGlobals(jobs []fiofile.Section, alone bool) []fiofile.Section {
	out := []fiofile.Section{}
	next := 0
	for i := range o.file.Sections {
		s := o.file.Sections[i]
		isNext := next < len(jobs) && s.Line == jobs[next].Line && s.Name == jobs[next].Name
		if s.Name != fiofile.Global && !isNext || next == len(jobs) {
			continue
		}
		if isNext {
			next++
		}
		s.Options = slices.Clone(s.Options)
		if alone {
			s.Delete("stonewall")
		}
		out = append(out, s)
	}
	if out[0].Name != fiofile.Global {
		out = slices.Insert(out, 0, fiofile.Section{Name: fiofile.Global})
	}
	return out
}
