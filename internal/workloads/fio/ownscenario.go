package fio

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/unit"
)

// scenario is the text of test.yml.
func (o *own) scenario(title string, stages []ownStage, gigabytes int64, filled bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("name: own_%s", notInIdentity.ReplaceAllString(strings.ToLower(title), "_"))
	line("display_name: %q", cmp.Or(o.request.Title, title))
	line("summary: %q", cmp.Or(o.request.Summary, "The fio job file "+title+", as it is."))
	line("description: >-")
	line("  <p>One VM runs the job file. Every file or device that it names is a data disk:</p>")
	line("  <ul>")
	for _, d := range o.order {
		line("  <li>%s: %s, %s</li>", d.device, harmless(d.name), unit.Bytes(d.bytes))
	}
	line("  </ul>")
	line("estimated_runtime: 0") // nobody said any
	line("tags:\n  - fio")
	if o.seconds > 0 || len(o.swept) > 0 || o.request.Precondition {
		line("\nvars:")
	}
	if o.request.Precondition {
		line("  round_secs:\n    default: 60\n    min: 1\n    description: How long a round of preconditioning is, in " +
			"seconds.")
		line("  max_rounds:\n    default: 25\n    min: 5\n    description: After how many rounds preconditioning is given up.")
	}
	if o.seconds > 0 {
		line("  runtime_secs:\n    default: %d\n    min: 1\n    description: How long the jobs run, in seconds.",
			o.seconds)
	}
	for _, f := range o.swept {
		line("  %s:\n    default: %s\n    description: fio's option %s in every job.", f.variable, typed(f.values[0]),
			f.key)
	}
	if repeats := max(o.request.Repeats, 1); len(o.swept) > 0 || repeats > 1 {
		line("\nexperiment:")
		if len(o.swept) > 0 {
			line("  factors:")
		}
		for _, f := range o.swept {
			values := make([]string, len(f.values))
			for i, v := range f.values {
				values[i] = typed(v)
			}
			line("    %s: [%s]", f.variable, strings.Join(values, ", "))
		}
		line("  repeats: %d", repeats)
	}
	line("\nvms:\n  - Load:\n      template: ubuntu1604\n      vcpus: %d\n      ram_mb: %d", max(o.vcpus, 2),
		2048+2*o.bufferMB)
	disks := fmt.Sprintf("data_disks:\n        count: %d\n        size: %d", len(o.order), gigabytes)
	if sizes, ok := o.exactSizes(); ok {
		disks = "disk_mib: [" + strings.Join(sizes, ", ") + "]"
	}
	line("      %s\n      nodes: \"0\"\n      count_per_cluster: 1", disks)
	line("\nworkloads:")
	for _, s := range stages {
		for _, l := range s.loads {
			line("  - %q:\n      vm_group: Load\n      config_file: %s", l.name, l.file)
			if len(o.swept) > 0 {
				line("      job_options:")
			}
			for _, f := range o.swept {
				line("        %s: {{ %s }}", f.key, f.variable)
			}
			if o.request.KeepMix {
				line("        %s: 1", workload.KeepMix)
			}
			line("      iogen_params:\n        reporting_interval: 1")
		}
	}
	if filled {
		line(
			"  - Prefill:\n      vm_group: Load\n      config_file: prefill.fio\n      iogen_params:\n        reporting_interval: 1")
	}
	line("\nresults:")
	for i, s := range stages {
		for _, r := range []struct{ title, kind, hint string }{
			{"operations per second", "iops", "Of all jobs together, as the VM's disks count them."},
			{"bytes per second", "bandwidth", "Of all jobs together."},
			{"latency", "latency", "Mean over all jobs; percentiles stand with the workload."},
		} {
			line("  - Stage %d %s:\n      title: %q", i+1, r.kind, s.name+": "+r.title)
			line(
				"      vm_group: Load\n      result_type: %s\n      aggregate: %s\n      step: 1s\n      workload_mask: %q",
				r.kind, map[bool]string{true: "mean", false: "sum"}[r.kind == "latency"], s.loads[0].name)
			line("      result_hint: %s\n      report_group: performance", r.hint)
			line("      report_metrics:\n        - Median\n        - Variability")
		}
	}
	line(
		"\nsetup:\n  - cluster.CleanUp: {}\n  - vm_group.CloneFromTemplate:\n      vm_group_name: Load\n      power_on: True")
	if filled {
		line("  - workload.PrefillRun:\n      workload_name: Prefill")
		o.limit(line, 2*60*60, o.bytes()/slowWrite)
	}
	condition := func(stage ownStage, passes int) {
		line("  - workload.Precondition:\n      workload_name: %q\n      passes: %d\n      round_secs: {{ round_secs }}\n"+
			"      max_rounds: {{ max_rounds }}", stage.loads[0].name, passes)
		o.limit(line, mostSeconds, mul63(o.bytes(), int64(passes))/slowWrite+mostSeconds/2)
	}
	if o.request.Precondition {
		condition(stages[0], 2)
	}
	line("\nrun:")
	for i, s := range stages {
		if o.request.Precondition && i > 0 { // the stage before has left its own mark
			condition(s, 0)
		}
		last := len(s.loads) - 1
		for k, l := range s.loads {
			line("  - workload.Start:\n      workload_name: %q", l.name)
			if o.seconds > 0 {
				line("      runtime_secs: {{ runtime_secs }}")
			}
			if k < last {
				line("      async: True")
			} else if o.endless(l) {
				o.limit(line, 0, o.patience(l))
			}
		}
		for _, l := range s.loads[:last] {
			line("  - workload.Wait:\n      workload_name: %q", l.name)
			if o.endless(l) {
				o.limit(line, 0, o.patience(l))
			}
		}
	}
	line("\nteardown:\n  - cluster.CleanUp: {}")
	return b.String()
}

// mostSeconds is how long is waited at least for jobs that end with their size: fio itself waits for ever.
const mostSeconds = 24 * 60 * 60

// What even slow devices do in a second, in bytes: of large writes, and of any load. Limits are made of them, which end
// what goes on for ever; a generator that stands still is ended long before.
const (
	slowWrite = 10 << 20
	slowLoad  = 1 << 20
)

// limit gives a step that needs so many seconds a limit, where that is above what it has without one.
func (o *own) limit(line func(string, ...any), without, seconds int64) {
	if seconds > without {
		line("      timeout_secs: %d", seconds)
	}
}

// bytes is how much all disks hold.
func (o *own) bytes() (all int64) {
	for _, d := range o.order {
		all = add63(all, d.bytes)
	}
	return all
}

// patience is how many seconds are waited for a load that ends with its size: as many as a slow device needs.
func (o *own) patience(l ownLoad) int64 {
	all := int64(0)
	for _, job := range l.jobs.Jobs() {
		size, _ := o.most(job, "size", 0)
		moved, _ := o.most(job, "io_size", size)
		loops, _ := o.most(job, "loops", 1)
		processes, _ := o.most(job, "numjobs", 1)
		all = add63(all, mul63(mul63(moved, max(loops, 1)), max(processes, 1)))
	}
	return max(mostSeconds, all/slowLoad)
}

// endless reports whether a load has a job of which no runtime says when it ends.
func (o *own) endless(l ownLoad) bool {
	return o.seconds == 0 && slices.ContainsFunc(l.jobs.Jobs(), func(job fiofile.Job) bool {
		limit, err := parseTime(cmp.Or(job.Value("runtime"), "0"))
		return err != nil || limit == 0 || job.Value("ramp_size") != ""
	})
}

// harmless is a name of the author that may stand in a template and in HTML.
func harmless(name string) string {
	return notHarmless.ReplaceAllString(name, "_")
}

// typed is a value as YAML: a whole number, or a text.
func typed(value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && strconv.FormatInt(n, 10) == value {
		return value
	}
	return strconv.Quote(value)
}

// exactSizes are the sizes of the disks in MiB where one is no whole GiB: a job takes no more than it asks for, and
// what is part of a device may be no larger.
func (o *own) exactSizes() (mebibytes []string, exact bool) {
	for _, d := range o.order {
		exact = exact || d.bytes%(1<<30) != 0
		mebibytes = append(mebibytes, strconv.FormatInt((d.bytes+1<<20-1)>>20, 10))
	}
	return mebibytes, exact
}
