// Package fiofile reads fio job files into sections and options in their order, and answers what the rest of Plimsoll
// asks of them: which value is in force for a job, how many bytes a size is, what a block-size split says. It sits
// between the scenario directory and both the scenario's checks and the fio engine. It runs nothing, opens no file but
// by who asks (File.Include), expands no variable, and does not know which options fio has.
package fiofile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Global is the name of the section whose options are defaults for the jobs after it.
const Global = "global"

// File is a job file.
type File struct {
	Name     string
	Sections []Section
}

// Section is one job, or a [global] section. Positions count from 1, columns in bytes; 0 when made by a program.
type Section struct {
	Name    string
	Options []Option
	Line    int // of the header
	Col     int
}

// Option is one line of a section. A Flag has no "=" and no value. Positions are as in Section.
type Option struct {
	Key      string
	Value    string
	Flag     bool
	Line     int
	Col      int // of the key
	ValueCol int // of the value
}

// Error is an objection to a job file.
type Error struct {
	File      string
	Line, Col int
	What      string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.What) }

// Errors are all objections to a job file, in the order of its lines.
type Errors []*Error

func (e Errors) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap gives the objections one by one.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i]
	}
	return all
}

// Limits that keep a hostile file cheap. Real files have a few dozen lines.
const (
	maxBytes    = 1 << 20
	maxLines    = 20_000
	maxSections = 2_000
	// MaxLine is the most bytes a line may have: fio takes what comes after its buffer (4,096 or 8,192 bytes, by
	// version) for a line of its own.
	MaxLine = 4095
	maxName = 200 // bytes of a section's name, which stands in every series of the section
)

// Parse reads a job file: sections in brackets, "key=value" or bare flags, comments from ";" or "#" to the end of the
// line as fio itself cuts them. Blanks around "=" are dropped, later "=" belong to the value. A byte order mark and
// returns at the ends of lines mean nothing. The error is of type Errors and holds every objection, up to the first
// limit passed. Repeated options and repeated sections are kept; Job.Get says which one is in force.
func Parse(name string, data []byte) (*File, error) {
	p := reader{file: &File{Name: name}}
	p.read(string(data))
	if len(p.objections) > 0 {
		return nil, p.objections
	}
	return p.file, nil
}

// reader is the state of Parse.
type reader struct {
	file       *File
	line       int
	objections Errors
}

func (p *reader) object(col int, format string, args ...any) {
	p.objections = append(p.objections,
		&Error{File: p.file.Name, Line: p.line, Col: col, What: fmt.Sprintf(format, args...)})
}

func (p *reader) read(text string) {
	p.line = 1
	switch {
	case len(text) > maxBytes:
		p.object(1, "the file has %d bytes; a job file may have %d", len(text), maxBytes)
		return
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		p.object(1, "the file is UTF-16, which fio does not read; save it as UTF-8")
		return
	}
	p.line = 0
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if p.line++; p.line > maxLines {
			p.object(1, "more than %d lines", maxLines)
			return
		}
		line = strings.TrimSuffix(line, "\r")
		if i := strings.IndexByte(line, 0); i >= 0 {
			p.object(i+1, "a zero byte: this is not a text file, or one of UTF-16; save it as UTF-8")
			return
		}
		if len(line) > MaxLine {
			p.object(1, "the line has %d bytes; fio reads lines of up to %d", len(line), MaxLine)
			continue
		}
		if i := strings.IndexAny(line, ";#"); i >= 0 {
			line = line[:i]
		}
		if i := strings.IndexFunc(line, unreadable); i >= 0 {
			c := line[i:]
			_, n := utf8.DecodeRuneInString(c)
			p.object(i+1, "%q cannot be part of a job file; write plain text", c[:n])
			continue
		}
		text := strings.TrimLeft(line, blanks)
		if text != "" && !p.readLine(strings.TrimRight(text, blanks), 1+len(line)-len(text)) {
			return
		}
	}
}

// blanks are what fio and Parse alike drop around names and values.
const blanks = " \t"

// unreadable tells what is no text: control characters, and bytes that are no UTF-8.
func unreadable(r rune) bool { return r == utf8.RuneError || r != '\t' && !unicode.IsPrint(r) }

// readLine reads a line that is not empty and begins at a column. It is false when nothing more can be read.
func (p *reader) readLine(line string, col int) bool {
	f := p.file
	if line[0] == '[' {
		end := strings.LastIndexByte(line, ']')
		if end < 0 {
			p.object(col, "section header %q lacks its closing bracket", line)
			end = len(line) // its options are read all the same
		}
		title := strings.Trim(line[1:end], blanks)
		if title == "" {
			p.object(col, "a section without a name")
		}
		if len(title) > maxName {
			p.object(col, "a section name of %d bytes; at most %d", len(title), maxName)
		}
		if len(f.Sections) == maxSections {
			p.object(col, "more than %d sections", maxSections)
			return false
		}
		f.Sections = append(f.Sections, Section{Name: title, Line: p.line, Col: col})
		return true
	}
	option := Option{Key: line, Flag: true, Line: p.line, Col: col}
	if key, value, found := strings.Cut(line, "="); found {
		option.Key, option.Value, option.Flag = strings.TrimRight(key, blanks), strings.TrimLeft(value, blanks), false
		option.ValueCol = col + len(line) - len(option.Value)
	}
	switch {
	case len(f.Sections) == 0:
		p.object(col, "option %q stands before any section; put it under [%s]", line, Global)
	case option.Key == "":
		p.object(col, "%q lacks an option name before =", line)
	default:
		s := &f.Sections[len(f.Sections)-1]
		s.Options = append(s.Options, option)
	}
	return true
}

// Includes reports whether the line asks fio to read another file.
func (o Option) Includes() bool {
	word := strings.FieldsFunc(o.Key, func(r rune) bool { return strings.ContainsRune(blanks, r) })
	return len(word) > 0 && word[0] == "include"
}

// Check says why an option cannot stand in a job file: read back it would not be the same. nil when it can.
func (o Option) Check() error {
	o.Line, o.Col, o.ValueCol = 0, 0, 0
	back, err := Parse("", []byte((&File{Sections: []Section{{Name: Global, Options: []Option{o}}}}).String()))
	if all := (Errors)(nil); errors.As(err, &all) {
		return errors.New(all[0].What)
	}
	if len(back.Sections) == 1 && len(back.Sections[0].Options) == 1 {
		read := back.Sections[0].Options[0]
		if read.Key == o.Key && read.Value == o.Value && read.Flag == o.Flag {
			return nil
		}
	}
	return errors.New("it would be read as something else in a job file")
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
			o.Line, o.Col, o.ValueCol = old.Line, old.Col, old.ValueCol
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

// InForce returns the options in force for the job, by their names.
func (j Job) InForce() []Option {
	var all []Option
	for _, s := range append([]*Section{j.Section}, j.globals...) {
		for _, o := range s.Options {
			if o, ok := j.Get(o.Key); ok && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Option) int { return strings.Compare(a.Key, b.Key) })
	return all
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

// SetEverywhere gives every job an option: in place where a section has it, else in [global] and in each job without
// it.
func (f *File) SetEverywhere(key, value string) {
	found := false
	for i := range f.Sections {
		if _, ok := f.Sections[i].Get(key); ok {
			f.Sections[i].Set(key, value)
			found = true
		}
	}
	if global := f.Global(); !found && global != nil {
		global.Set(key, value)
	}
	for _, job := range f.Jobs() {
		if _, ok := job.Get(key); !ok {
			job.Set(key, value)
		}
	}
}
