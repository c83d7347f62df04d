package fio

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
	"plimsoll/unit"
)

// forced are put into [global] of every job: one entry of statistics for all processes of a group, none of the host's
// disks, and errors that count instead of ending the job.
var forced = []fiofile.Option{
	{Key: "group_reporting", Flag: true},
	{Key: "disk_util", Value: "0"},
	{Key: "continue_on_error", Value: "all"},
}

// apart begins a group of statistics with every section, so that group_reporting adds up the processes of a section and
// no more. It changes nothing else that fio does, but for options that act on groups.
var apart = fiofile.Option{Key: "new_group", Flag: true}

// actOnGroups are options of which fio takes "all jobs of the group" for their scope: a file that has one keeps the
// groups its author made.
var actOnGroups = []string{"exitall", "exitall_on_error", "steadystate"}

// adaptation turns an author's job file into one that runs on the disks given and nothing else.
type adaptation struct {
	spec       workload.Spec
	program    string // that is asked for options which the table lacks
	source     *fiofile.File
	out        *fiofile.File
	streams    []result.Stream
	limit      time.Duration
	apart      bool // every section has statistics of its own
	text       []byte
	notes      []string
	objections []error
}

func (e Engine) adapt(spec workload.Spec) (*adaptation, error) {
	if spec.SizeScale == 0 {
		spec.SizeScale = 1
	}
	if spec.TimeScale == 0 {
		spec.TimeScale = 1
	}
	a := &adaptation{spec: spec, program: e.program()}
	if !(spec.SizeScale > 0 && spec.SizeScale <= maxScale) || !(spec.TimeScale > 0 && spec.TimeScale <= maxScale) {
		a.objections = append(a.objections, fmt.Errorf("%s: size scale %v and time scale %v must be above 0 and at "+
			"most %d",
			spec.ConfigFile, spec.SizeScale, spec.TimeScale, maxScale))
		return a, errors.Join(a.objections...)
	}
	source, err := fiofile.Parse(spec.ConfigFile, spec.Config)
	if err != nil {
		return a, err
	}
	for _, refused := range set(source, spec.Settings) {
		a.objectAt(0, 0, "option of the workload %v", refused)
	}
	return a, a.adapt(source)
}

// adapt works on a file that was read, whose options keep their places.
func (a *adaptation) adapt(source *fiofile.File) error {
	spec := a.spec
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
		a.wholeBlocks()
	} else if a.readsOnly() {
		a.ownDirections()
	}
	a.write()
	return errors.Join(a.objections...)
}

const maxScale = 1_000_000

// objection tells what is wrong with an option, or with a section that lacks one. What is the same of several is one.
type objection struct {
	head, what string   // the sections stand between
	sections   []string // as the file has them: "[name]"
	places     []string
	lines      []int // of the places
}

func (o *objection) Error() string {
	text := o.places[0] + ": " + o.head + unit.List(o.sections, 3) + o.what
	if len(o.lines) == 1 {
		return text
	}
	more := make([]string, len(o.lines)-1)
	for i, line := range o.lines[1:] {
		more[i] = strconv.Itoa(line)
	}
	return fmt.Sprintf("%s (also in line %s)", text, unit.List(more, 10))
}

// object adds an objection to the value of an option, or to the option where it has none.
func (a *adaptation) object(s *fiofile.Section, o fiofile.Option, why string) {
	what, col := o.Key, o.Col
	if !o.Flag {
		what, col = what+"="+shortened(o.Value), max(o.ValueCol, o.Col)
	}
	a.objectOf("", s.Name, o.Line, col, " "+what+": "+why, "")
}

// objectOf adds an objection to a section, or the section and the line to one that says the same. Where what says the
// same is only its end, the first has its section alone.
func (a *adaptation) objectOf(head, section string, line, col int, what, same string) {
	section = "[" + section + "]"
	for _, err := range a.objections {
		o, ok := errors.AsType[*objection](err)
		if !ok || o.head != head || o.what != what && (same == "" || !strings.HasSuffix(o.what, same)) {
			continue
		}
		if o.what == what && !slices.Contains(o.sections, section) {
			o.sections = append(o.sections, section)
		}
		if o.places = append(o.places, a.place(line, col)); !slices.Contains(o.lines, line) {
			o.lines = append(o.lines, line)
		}
		return
	}
	a.objections = append(a.objections,
		&objection{head, what, []string{section}, []string{a.place(line, col)}, []int{line}})
}

// place is one in the author's file as far as it has one: what a program put into a file has none.
func (a *adaptation) place(line, col int) string {
	place := a.spec.ConfigFile
	for _, n := range []int{line, col} {
		if n > 0 {
			place += ":" + strconv.Itoa(n)
		}
	}
	return place
}

// objectAt adds an objection to a place.
func (a *adaptation) objectAt(line, col int, format string, args ...any) {
	a.objections = append(a.objections, fmt.Errorf("%s: %s", a.place(line, col), fmt.Sprintf(format, args...)))
}

// shortened keeps a long value from filling the screen.
func shortened(value string) string {
	const most = 120
	if len(value) > most {
		return strings.ToValidUTF8(value[:most], "") + "..."
	}
	return value
}

func (a *adaptation) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.notes, text) {
		a.notes = append(a.notes, text)
	}
}

// checkSections refuses names that fio would read as something else than a job of that name, so that the file means the
// same here as with fio alone.
func (a *adaptation) checkSections() {
	for _, s := range a.source.Sections {
		switch {
		case s.Name != fiofile.Global && strings.HasPrefix(s.Name, fiofile.Global):
			a.objectAt(s.Line, s.Col, "fio takes [%s] for a [global] section; rename it", shortened(s.Name))
		case strings.ContainsAny(s.Name, "[]$"):
			a.objectAt(s.Line, s.Col, "section name %q: brackets and $ are not allowed in it", shortened(s.Name))
		}
	}
	if len(a.source.Jobs()) == 0 {
		a.objectAt(0, 0, "no section besides [global]: there is nothing to run")
	}
}

// filter copies the author's sections by the option table, with [global] first and our keys at its end.
func (a *adaptation) filter() {
	a.out = &fiofile.File{Name: a.source.Name}
	for _, s := range a.source.Sections {
		section := fiofile.Section{Name: s.Name, Line: s.Line, Col: s.Col}
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
	grouped := slices.ContainsFunc(a.source.Jobs(), func(j fiofile.Job) bool { return j.Enabled("group_reporting") })
	for _, s := range a.out.Sections {
		for _, key := range actOnGroups {
			if key == "steadystate" && !grouped {
				continue // each job's own, which fio refuses to hold within one group
			}
			if o, ok := last(&s, key); ok && o.Value != "0" {
				a.note("%s acts on fio's groups of jobs, so the sections are reported in sum only", key)
				return false
			}
		}
	}
	return true
}

// nameZones writes zonemode=strided where a section has a zone size and no mode. Up to fio 3.12 that was the only mode
// and had no name; later ones refuse a zone size without one. No version takes the mode without a size.
func (a *adaptation) nameZones() {
	told := map[int]bool{}
	for _, job := range a.out.Jobs() {
		o, _ := job.Get("zonemode")
		if o.Value == "strided" && strings.Trim(job.Value("zonesize"), "0") == "" && !told[o.Line] {
			told[o.Line] = true
			a.object(job.Section, o, "fio refuses it without zonesize=: write the size of a zone")
		}
	}
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

// pass applies the option table to one option. What it returns is written anew from what its form has read.
func (a *adaptation) pass(s *fiofile.Section, o fiofile.Option) (fiofile.Option, bool) {
	known, ok := a.option(o)
	switch {
	case strings.Contains(o.Key+o.Value, "$") && known.action != drop:
		a.object(s, o, "variables are not filled in; write the value")
		return o, false
	case !ok:
		a.object(s, o, a.unknown(o.Key))
		return o, false
	case known.action == drop:
		a.note("dropped %s: %s", o.Key, known.why)
		return o, false
	case known.action == refuse:
		a.object(s, o, "refused: "+known.why+"; take it out")
		return o, false
	case known.action == force:
		if why := changes(o); why != "" {
			a.note("dropped %s=%s: %s", o.Key, shortened(o.Value), why)
		}
		return o, false
	case o.Flag && !known.bare || !o.Flag && o.Value == "":
		a.object(s, o, "it needs a value")
		return o, false
	}
	a.passed(o)
	as := o
	as.Key = canonical(o.Key)
	switch {
	case as.Key == "filename" || o.Flag: // disks are mapped when all sections are known
		return as, true
	case as.Key == "ioengine":
		return a.engine(s, as)
	case known.action == waitFor:
		return a.waitFor(s, as)
	case as.Key == "disable_lat", as.Key == "gtod_reduce":
		a.note("%s is on, so fio measures no total latency", as.Key)
	}
	value, err := known.form(o.Value)
	if err != nil {
		a.object(s, o, err.Error()+meant(as))
		return o, false
	}
	as.Value = value
	return as, true
}

// meant says of values that fio takes, and that are refused here, what to write instead.
func meant(o fiofile.Option) string {
	switch {
	case o.Key == "mem" && strings.Contains(o.Value, ":"):
		return "; memory backed by a named file would open files other than the data disks"
	case strings.HasSuffix(o.Key, "_pattern") && strings.Contains(o.Value, "'"):
		return "; a pattern read from a file would copy that file to the disks"
	}
	return ""
}

// waitFor writes the name under which fio knows the section that is waited for.
func (a *adaptation) waitFor(s *fiofile.Section, o fiofile.Option) (fiofile.Option, bool) {
	i := slices.Index(sectionNames(a.source), o.Value)
	if i < 0 {
		a.object(s, o, "no section of the file has this name")
		return o, false
	}
	o.Value = ownSection(i)
	return o, true
}

// changes says what forcing our value takes from the author, "" when nothing.
func changes(o fiofile.Option) string {
	switch {
	case o.Key == "group_reporting" && o.Value == "0", o.Key == "unified_rw_reporting" && o.Value != "0" &&
		o.Value != "none":
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
		a.object(s, o, "this engine is not allowed here; use libaio, io_uring, psync or another one that only does "+
			"I/O on the data disks")
		return o, false
	}
	if o.Value == "cpuio" || o.Value == "null" {
		a.note("[%s] ioengine=%s does no I/O: its operations and times are of no storage", s.Name, o.Value)
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
