// Package fiofile reads fio job files into sections and options in their order, and answers what the rest of Plimsoll
// asks of them: which value is in force for a job, how many bytes a size is, what a block-size split says. It sits
// between the scenario directory and both the scenario's checks and the fio engine. It runs nothing, follows no
// include, expands no variable, and does not know which options fio has.
package fiofile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Global is the name of the section whose options are defaults for the jobs after it.
const Global = "global"

// File is a job file.
type File struct {
	Name     string
	Sections []Section
}

// Section is one job, or a [global] section.
type Section struct {
	Name    string
	Options []Option
	Line    int // of the header, from 1; 0 when made by a program
}

// Option is one line of a section. A Flag has no "=" and no value.
type Option struct {
	Key   string
	Value string
	Flag  bool
	Line  int // from 1; 0 when made by a program
}

// Error is an objection to a job file.
type Error struct {
	File string
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What) }

// Limits that keep a hostile file cheap. Real files have a few dozen lines.
const (
	maxBytes    = 1 << 20
	maxLines    = 20_000
	maxSections = 2_000
	maxName     = 200 // bytes of a section's name, which stands in every series of the section
)

// Parse reads a job file: sections in brackets, "key=value" or bare flags, comments from ";" or "#" to the end of the
// line as fio itself cuts them. Blanks around "=" are dropped, later "=" belong to the value. The error is an *Error.
// Repeated options and repeated sections are kept; Job.Get says which one is in force.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name}
	fail := func(line int, format string, args ...any) (*File, error) {
		return nil, &Error{File: name, Line: line, What: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxBytes {
		return fail(1, "the file has %d bytes; a job file may have %d", len(data), maxBytes)
	}
	if i := slices.Index(data, 0); i >= 0 {
		return fail(1+strings.Count(string(data[:i]), "\n"), "a zero byte: this is not a text file")
	}
	number := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		if number++; number > maxLines {
			return fail(number, "more than %d lines", maxLines)
		}
		if i := strings.IndexAny(line, ";#"); i >= 0 {
			line = line[:i]
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case line[0] == '[':
			end := strings.LastIndexByte(line, ']')
			if end < 0 {
				return fail(number, "section header %q lacks its closing bracket", line)
			}
			title := strings.TrimSpace(line[1:end])
			if title == "" {
				return fail(number, "a section without a name")
			}
			if len(title) > maxName {
				return fail(number, "a section name of %d bytes; at most %d", len(title), maxName)
			}
			if len(f.Sections) == maxSections {
				return fail(number, "more than %d sections", maxSections)
			}
			f.Sections = append(f.Sections, Section{Name: title, Line: number})
		case len(f.Sections) == 0:
			return fail(number, "option %q stands before any section; put it under [%s]", line, Global)
		default:
			option := Option{Key: line, Flag: true, Line: number}
			if key, value, found := strings.Cut(line, "="); found {
				option = Option{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value), Line: number}
			}
			if option.Key == "" {
				return fail(number, "%q lacks an option name before =", line)
			}
			s := &f.Sections[len(f.Sections)-1]
			s.Options = append(s.Options, option)
		}
	}
	return f, nil
}

// String writes the file in one canonical form, without comments. Parse reads it back to the same sections.
func (f *File) String() string {
	var b strings.Builder
	for i, s := range f.Sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%s]\n", s.Name)
		for _, o := range s.Options {
			if o.Flag {
				b.WriteString(o.Key + "\n")
			} else {
				b.WriteString(o.Key + "=" + o.Value + "\n")
			}
		}
	}
	return b.String()
}

// Get returns the option of this section alone that is in force: the last one given.
func (s *Section) Get(key string) (Option, bool) {
	key = canonical(key)
	for _, o := range slices.Backward(s.Options) {
		if canonical(o.Key) == key {
			return o, true
		}
	}
	return Option{}, false
}

// Set gives an option a value: in place when the section has it, else at the end.
func (s *Section) Set(key, value string) { s.put(Option{Key: key, Value: value}) }

// SetFlag sets an option that takes no value.
func (s *Section) SetFlag(key string) { s.put(Option{Key: key, Flag: true}) }

func (s *Section) put(o Option) {
	for i, old := range slices.Backward(s.Options) {
		if canonical(old.Key) == canonical(o.Key) {
			o.Line = old.Line
			s.Options[i] = o
			return
		}
	}
	s.Options = append(s.Options, o)
}

// Delete removes every occurrence of an option.
func (s *Section) Delete(key string) {
	key = canonical(key)
	s.Options = slices.DeleteFunc(s.Options, func(o Option) bool { return canonical(o.Key) == key })
}

// Job is a section that runs, with the [global] sections that apply to it.
type Job struct {
	*Section
	globals []*Section
}

// Jobs returns the sections other than [global] in order. They share memory with f.
func (f *File) Jobs() []Job {
	var jobs []Job
	var globals []*Section
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Name == Global {
			globals = append(globals, s)
		} else {
			jobs = append(jobs, Job{Section: s, globals: slices.Clip(globals)})
		}
	}
	return jobs
}

// Get returns the option in force: the job's own, else the one of the last [global] before it that has it.
func (j Job) Get(key string) (Option, bool) {
	if o, ok := j.Section.Get(key); ok {
		return o, true
	}
	for _, g := range slices.Backward(j.globals) {
		if o, ok := g.Get(key); ok {
			return o, true
		}
	}
	return Option{}, false
}

// Value returns the text of the option in force, "" when there is none.
func (j Job) Value(key string) string {
	o, _ := j.Get(key)
	return o.Value
}

// Enabled reports whether a switch such as time_based is on: given bare, or with a value other than 0.
func (j Job) Enabled(key string) bool {
	o, ok := j.Get(key)
	return ok && (o.Flag || o.Value != "0")
}

// Global returns the first [global] section, nil when there is none. It shares memory with f.
func (f *File) Global() *Section {
	for i := range f.Sections {
		if f.Sections[i].Name == Global {
			return &f.Sections[i]
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{([^}]+)\}`)

// Variables returns the names of the environment variables the file expects, ${NAME}, sorted.
func (f *File) Variables() []string {
	var names []string
	for _, s := range f.Sections {
		for _, o := range s.Options {
			for _, m := range variable.FindAllStringSubmatch(o.Value, -1) {
				names = append(names, m[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// canonical maps the long spellings fio accepts for the options we look at to one name.
func canonical(key string) string {
	switch key {
	case "readwrite":
		return "rw"
	case "blocksize":
		return "bs"
	case "fileoffset":
		return "offset"
	}
	return key
}
