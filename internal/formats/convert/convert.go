// Package convert turns parameter files of load generators into each other's: of vdbench, DISKSPD and fio. It stands
// beside the pipeline: the command line gives it files, and runs what becomes a job file of fio. Each tool has a room,
// which reads its files into a load and writes them from one; whatever is not the same on the other side is noted, line
// by line, and what cannot be had is refused by name. It opens no file itself and runs nothing.
package convert

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/fiojob"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/formats/convert/vdbench"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/nearest"
)

// Tool is one whose files are read and written.
type Tool struct {
	Name     string   `json:"name"`
	Suffixes []string `json:"suffixes"` // of its files, with their dots
	comment  string   // begins a comment in them
	read     func(Request) (load.Load, []string, error)
	write    func(load.Load) (string, []load.Note, error)
}

// Tools are all of them.
func Tools() []Tool {
	return []Tool{
		{Name: "fio", Suffixes: []string{".fio", ".job"}, comment: "; ",
			read: func(r Request) (load.Load, []string, error) {
				jobs, err := JobFile(Asked{Name: r.Name, Data: r.Data, Set: r.Set, Read: r.Include})
				if err != nil {
					return load.Load{}, jobs.Used, err
				}
				l, err := fiojob.Read(jobs.Name, jobs.Data, r.Include)
				l.Notes = append(jobs.Notes, l.Notes...)
				return l, jobs.Used, err
			},
			write: func(l load.Load) (string, []load.Note, error) {
				file, notes, err := fiojob.Write(l)
				if err != nil {
					return "", notes, err
				}
				return file.String(), notes, nil
			}},
		{Name: "vdbench", Suffixes: []string{".vdb", ".vdbench"}, comment: "* ",
			read: func(r Request) (load.Load, []string, error) {
				return vdbench.Read(
					vdbench.Request{Name: r.Name, Data: r.Data, Set: r.Set, Include: r.Include, Max: r.CurveMax},
				)
			}, write: vdbench.Write},
		{Name: "diskspd", Suffixes: []string{".diskspd", ".cmd", ".bat"}, comment: "rem ",
			read: func(r Request) (load.Load, []string, error) {
				return readDiskspd(r)
			}, write: diskspd.Write},
	}
}

// ByName finds a tool. The error says which there are.
func ByName(name string) (Tool, error) {
	var names []string
	for _, t := range Tools() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	hint := ""
	if near := nearest.Of(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return Tool{}, fmt.Errorf("no tool %q: there are %s%s", name, strings.Join(names, ", "), hint)
}

// ByFile finds the tool whose files end as this name does.
func ByFile(name string) (Tool, bool) {
	for _, t := range Tools() {
		if slices.Contains(t.Suffixes, strings.ToLower(filepath.Ext(name))) {
			return t, true
		}
	}
	return Tool{}, false
}

var (
	jobFile   = lazyregexp.New(`(?m)^\[[\w .-]{1,60}\]\s*$(?:\s*^(?:[#;].*)?$)*\s*^\w+(?:=|$)`)
	parameter = lazyregexp.New(`(?m)^(?:sd|wd|rd|fsd|fwd)=\w+,`)
	callOf    = lazyregexp.New(`(?mi)^\s*(?:(?:PS [^>\n]{1,60}|[A-Z]:\\[^>\n]{0,60})>\s*|&\s*)?` +
		`(?:start\s+(?:/b\s+)?)?"?(?:[\w.:/\\ -]*[/\\])?diskspd(?:64)?(?:\.exe)?"?\s+-`)
)

// ByContent finds the tool whose file begins so.
func ByContent(head []byte) (Tool, bool) {
	name := ""
	switch {
	case jobFile.Match(head) || isFioCall(head):
		name = "fio"
	case parameter.Match(head) && !bytes.HasPrefix(head, []byte("#!")): // not a script that writes one
		name = "vdbench"
	case callOf.Match(head),
		diskspdCall.Match(head) && !bytes.Contains(head, []byte("Command Line:")): // of its outputs
		name = "diskspd"
	}
	t, err := ByName(name)
	return t, err == nil
}

// Note is one approximation.
type Note = load.Note

// CommandLine is the command line of arguments that a shell has already cut, as the file that it is.
func CommandLine(words []string) []byte { return []byte(diskspd.Join(words)) }

// Request is a file to be converted and what its user says besides.
type Request struct {
	Name     string // of the file, as its user wrote it
	Data     []byte
	From, To Tool
	Set      map[string]string                 // values of the file's variables
	Include  func(name string) ([]byte, error) // reads a file beside it; nil: there is none
	// operations a second of which a curve's points are shares; 0: not known; below 0: to be measured first
	CurveMax float64
}

// Result holds what a file became.
type Result struct {
	Text   string // for the tool
	Stages []string
	Notes  []Note
	Used   []string // names of Request.Set that the file has
}

// Convert converts a file. The error holds all objections at once, each with its place in the file.
func Convert(r Request) (Result, error) {
	l, used, err := r.From.read(r)
	if err != nil {
		return Result{Used: used}, err
	}
	text, notes, err := r.To.write(l)
	res := Result{Text: text, Used: used, Notes: l.Notes}
	for _, n := range notes {
		if !slices.Contains(res.Notes, n) {
			res.Notes = append(res.Notes, n)
		}
	}
	slices.SortStableFunc(res.Notes, func(a, b load.Note) int {
		if a.At.Line != b.At.Line {
			return a.At.Line - b.At.Line
		}
		return a.At.Col - b.At.Col
	})
	for _, st := range l.Stages {
		res.Stages = append(res.Stages, st.Name)
	}
	if err == nil && text == "" {
		err = errors.New("nothing is left to write")
	}
	return res, err
}

// Annotated is the text with its notes before it, as comments of the tool.
func (r Result) Annotated(to Tool) string {
	var b strings.Builder
	for _, n := range r.Notes {
		line := strings.Map(func(c rune) rune {
			if c < ' ' {
				return '_'
			}
			return c
		}, n.String())
		if len(line) > 900 {
			line = strings.ToValidUTF8(line[:900], "") + "..."
		}
		b.WriteString(to.comment + line + "\n")
	}
	if b.Len() > 0 && to.comment != "rem " {
		b.WriteString("\n")
	}
	return b.String() + r.Text
}
