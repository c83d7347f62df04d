package fio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/workload"
	"plimsoll/scenario/fiofile"
)

// forced are put into [global] of every job: one entry of statistics for all processes of a group, none of the host's
// disks, and errors that count instead of ending the job.
var forced = []fiofile.Option{
	{Key: "group_reporting", Flag: true},
	{Key: "disk_util", Value: "0"},
	{Key: "continue_on_error", Value: "all"},
}

// apart begins a group of statistics with every section, so that group_reporting adds up the processes of a section and no more. It
// changes nothing else that fio does, but for options that act on groups.
var apart = fiofile.Option{Key: "new_group", Flag: true}

// actOnGroups are options of which fio takes "all jobs of the group" for their scope: a file that has one keeps the groups its author made.
var actOnGroups = []string{"exitall", "exitall_on_error", "steadystate"}

// adaptation turns an author's job file into one that runs on the disks given and nothing else.
type adaptation struct {
	spec       workload.Spec
	source     *fiofile.File
	out        *fiofile.File
	lanes      []workload.Lane
	limit      time.Duration
	apart      bool // every section has statistics of its own
	notes      []string
	objections []error
}

func adapt(spec workload.Spec) (*adaptation, error) {
	if spec.SizeScale == 0 {
		spec.SizeScale = 1
	}
	if spec.TimeScale == 0 {
		spec.TimeScale = 1
	}
	a := &adaptation{spec: spec}
	if !(spec.SizeScale > 0 && spec.SizeScale <= maxScale) || !(spec.TimeScale > 0 && spec.TimeScale <= maxScale) {
		a.objections = append(a.objections, fmt.Errorf("%s: size scale %v and time scale %v must be above 0 and at most %d",
			spec.ConfigFile, spec.SizeScale, spec.TimeScale, maxScale))
		return a, errors.Join(a.objections...)
	}
	source, err := fiofile.Parse(spec.ConfigFile, spec.Config)
	if err != nil {
		return a, err
	}
	a.source = source
	a.checkSections()
	if spec.Prefill {
		a.prefill()
	} else {
		a.filter()
	}
	a.mapDisks()
	a.scaleSizes()
	a.scaleTimes()
	a.fit()
	a.describe()
	if spec.Prefill {
		shrinkPrefillBlocks(a.out, a.lanes)
	}
	return a, errors.Join(a.objections...)
}

const maxScale = 1_000_000

func (a *adaptation) object(s *fiofile.Section, o fiofile.Option, why string) {
	what := o.Key
	if !o.Flag {
		what += "=" + o.Value
	}
	a.objections = append(a.objections, fmt.Errorf("%s:%d: [%s] %s: %s", a.source.Name, o.Line, s.Name, what, why))
}

func (a *adaptation) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.notes, text) {
		a.notes = append(a.notes, text)
	}
}

// checkSections refuses names that fio would read as something else than a job of that name.
func (a *adaptation) checkSections() {
	for _, s := range a.source.Sections {
		switch {
		case s.Name != fiofile.Global && strings.HasPrefix(s.Name, fiofile.Global):
			a.objections = append(a.objections, fmt.Errorf("%s:%d: fio takes [%s] for a [global] section; rename it", a.source.Name, s.Line, s.Name))
		case strings.ContainsAny(s.Name, "[]$"):
			a.objections = append(a.objections, fmt.Errorf("%s:%d: section name %q: brackets and $ are not allowed in it", a.source.Name, s.Line, s.Name))
		}
	}
	if len(a.source.Jobs()) == 0 {
		a.objections = append(a.objections, fmt.Errorf("%s: no section besides [global]: there is nothing to run", a.source.Name))
	}
}

// filter copies the author's sections by the option table, with [global] first and our keys at its end.
func (a *adaptation) filter() {
	a.out = &fiofile.File{Name: a.source.Name}
	for _, s := range a.source.Sections {
		section := fiofile.Section{Name: s.Name, Line: s.Line}
		for _, o := range s.Options {
			if o, ok := a.pass(&s, o); ok {
				section.Options = append(section.Options, o)
			}
		}
		a.out.Sections = append(a.out.Sections, section)
	}
	if len(a.out.Sections) == 0 || a.out.Sections[0].Name != fiofile.Global {
		if a.out.Global() != nil {
			a.note("a [global] section after the first job applies only to the jobs below it")
		}
		a.out.Sections = slices.Insert(a.out.Sections, 0, fiofile.Section{Name: fiofile.Global})
	}
	first := &a.out.Sections[0]
	first.Options = append(first.Options, forced...)
	if a.apart = a.tellApart(); a.apart {
		first.Options = append(first.Options, apart)
	}
	a.nameZones()
}

// tellApart decides whether the sections are reported one by one.
func (a *adaptation) tellApart() bool {
	n := len(a.out.Jobs())
	if n < 2 || n > min(a.spec.Sections, workload.MostSections) {
		return false
	}
	for _, s := range a.out.Sections {
		for _, key := range actOnGroups {
			if o, ok := last(&s, key); ok && o.Value != "0" {
				a.note("%s acts on fio's groups of jobs, so the sections are reported in sum only", key)
				return false
			}
		}
	}
	return true
}

// nameZones writes zonemode=strided where a section has a zone size and no mode. Up to fio 3.12 that was the only mode and had no
// name; later ones refuse a zone size without one.
func (a *adaptation) nameZones() {
	if _, named := last(a.out.Global(), "zonemode"); named {
		return
	}
	for i := range a.out.Sections {
		s := &a.out.Sections[i]
		_, named := last(s, "zonemode")
		if size, ok := last(s, "zonesize"); ok && !named && size.Value != "0" {
			s.Options = append(s.Options, fiofile.Option{Key: "zonemode", Value: "strided", Line: size.Line})
			a.note("zonesize without zonemode: zonemode=strided is added, as old versions of fio take it")
		}
	}
}

// pass applies the option table to one option.
func (a *adaptation) pass(s *fiofile.Section, o fiofile.Option) (fiofile.Option, bool) {
	r := ruleFor(o.Key)
	if r.action == drop {
		a.note("dropped %s: %s", o.Key, r.why)
		return o, false
	}
	if r.action == refuse {
		a.object(s, o, "refused: "+r.why+"; take it out")
		return o, false
	}
	if why := badValue(o.Key, o.Value); why != "" {
		a.object(s, o, why)
		return o, false
	}
	if r.action == force {
		if why := changes(o); why != "" {
			a.note("dropped %s=%s: %s", o.Key, o.Value, why)
		}
		return o, false
	}
	o.Key = canonical(o.Key)
	switch o.Key {
	case "ioengine":
		return a.engine(s, o)
	case "disable_lat", "gtod_reduce":
		a.note("%s is on, so fio measures no total latency", o.Key)
	}
	return o, true
}

// changes says what forcing our value takes from the author, "" when nothing.
func changes(o fiofile.Option) string {
	switch {
	case o.Key == "group_reporting" && o.Value == "0", o.Key == "unified_rw_reporting" && o.Value != "0" && o.Value != "none":
		return "reads and writes of all sections are reported apart, and together with those of the others"
	case o.Key == "continue_on_error" && o.Value != "all" && o.Value != "":
		return "errors are counted and never end the job"
	case o.Key == "lat_percentiles" && o.Value == "0":
		return "histograms hold total latency"
	}
	return ""
}

func (a *adaptation) engine(s *fiofile.Section, o fiofile.Option) (fiofile.Option, bool) {
	if other, ok := substitutes[o.Value]; ok {
		a.note("ioengine %s does not exist on Linux, %s does the same", o.Value, other)
		o.Value = other
	}
	if _, ok := engines[o.Value]; !ok {
		a.object(s, o, "this engine is not allowed here; use libaio, io_uring, psync or another one that only does I/O on the data disks")
		return o, false
	}
	return o, true
}

// last returns the option of a section that is in force under any of its names.
func last(s *fiofile.Section, key string) (fiofile.Option, bool) {
	for _, o := range slices.Backward(s.Options) {
		if canonical(o.Key) == key {
			return o, true
		}
	}
	return fiofile.Option{}, false
}
