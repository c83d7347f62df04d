package fiofile

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Include puts the options of the files that sections include in place of the lines that ask for them, as fio does:
// such a file has no sections of its own, and may include others. A name is relative to the file that includes it;
// read is asked for files beside the job file and below only. Options have the place of the line in the job file. The
// error is of type Errors and holds every objection; nil for read leaves the lines as they are.
func (f *File) Include(read func(name string) ([]byte, error)) error {
	if read == nil {
		return nil
	}
	in := includer{read: read}
	for i := range f.Sections {
		s := &f.Sections[i]
		s.Options = in.options(f.Name, s.Options, nil)
	}
	if len(in.objections) > 0 {
		return in.objections
	}
	return nil
}

// includer is the state of Include.
type includer struct {
	read       func(name string) ([]byte, error)
	lines      int
	objections Errors
}

// options returns those of a file with what they include. within are the files that led here, from the job file's own
// folder.
func (in *includer) options(of string, options []Option, within []string) (out []Option) {
	for _, o := range options {
		if !o.Includes() {
			out = append(out, o)
			continue
		}
		object := func(format string, args ...any) {
			in.objections = append(in.objections,
				&Error{File: of, Line: o.Line, Col: o.Col, What: fmt.Sprintf(format, args...)})
		}
		asked := o.Key
		if !o.Flag { // a name with "="
			asked += "=" + o.Value
		}
		_, asked, _ = strings.Cut(strings.ReplaceAll(asked, "\t", " "), " ")
		asked = strings.TrimLeft(asked, blanks)
		name := asked
		if len(within) > 0 {
			name = path.Join(path.Dir(within[len(within)-1]), asked)
		}
		name = path.Clean(name)
		switch {
		case asked == "":
			object("include names no file")
		case path.IsAbs(asked) || !filepath.IsLocal(name):
			object("include %s: only files beside the job file, or in folders below it, are included; copy it there", asked)
		case slices.Contains(within, name):
			object("include %s: it includes itself, by way of %s", asked, strings.Join(within, ", "))
		default:
			data, err := in.read(name)
			if err != nil {
				object("include %s: %v", asked, err)
				continue
			}
			own, err := in.parse(name, data)
			if err != nil {
				object("include %s: %v", asked, err)
				continue
			}
			own = in.options(name, own, append(slices.Clone(within), name))
			for i := range own {
				own[i].Line, own[i].Col, own[i].ValueCol = o.Line, o.Col, o.Col
			}
			out = append(out, own...)
		}
	}
	return out
}

// parse reads the options of an included file.
func (in *includer) parse(name string, data []byte) ([]Option, error) {
	p := reader{file: &File{Name: name, Sections: []Section{{Name: Global}}}}
	p.read(string(data))
	if in.lines += p.line; in.lines > maxLines {
		return nil, fmt.Errorf("included files have more than %d lines together", maxLines)
	}
	for _, s := range p.file.Sections[1:] {
		p.objections = append(p.objections, &Error{File: name, Line: s.Line, Col: s.Col,
			What: fmt.Sprintf("[%s]: fio takes no section in an included file", s.Name)})
	}
	if len(p.objections) > 0 {
		return nil, p.objections
	}
	return p.file.Sections[0].Options, nil
}
