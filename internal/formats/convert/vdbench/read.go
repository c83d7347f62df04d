// Package vdbench reads and writes the parameter files of vdbench 5.04: general parameters, and definitions of hosts
// (HD), storage (SD, FSD), workloads (WD, FWD) and runs (RD), as its published user's guide describes them. It is a
// room of convert: what it reads becomes a load, and it writes loads. Every parameter is known by name: what has no
// part in the load is noted, what cannot be had is refused, nothing is left out unsaid. It opens no file itself and
// runs nothing.
package vdbench

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// Request is a parameter file and what its user says besides.
type Request struct {
	Name    string
	Data    []byte
	Set     map[string]string                 // values of the file's variables
	Include func(name string) ([]byte, error) // reads a file beside it; nil: there is none
	// operations a second of which a curve's points are shares; 0: not known; below 0: it is to be measured, and of a
	// curve there is its first point alone, without a rate
	Max float64
}

// section is one definition, with what it has from the defaults before it.
type section struct {
	kind, name string
	at         load.Place
	params     []param
}

// get returns the parameter in force: the last of its name.
func (s *section) get(names ...string) (param, bool) {
	for _, p := range slices.Backward(s.params) {
		if slices.Contains(names, p.key) {
			return p, true
		}
	}
	return param{}, false
}

// reader is a file on its way to a load.
type reader struct {
	*load.Teller
	request  Request
	general  section
	defaults map[string]*section
	sections map[string][]*section
}

// Read reads a parameter file. The names of Request.Set that the file has are returned as used. The error holds all
// objections at once, each an *load.Objection.
func Read(r Request) (load.Load, []string, error) {
	t := &load.Teller{}
	s := &scanner{Teller: t, set: r.Set, used: map[string]bool{}, include: r.Include}
	s.read(r.Name, r.Data, false)
	f := &reader{Teller: t, request: r, general: section{kind: "general"}, defaults: map[string]*section{},
		sections: map[string][]*section{}}
	params := s.params()
	readable := t.Err() == nil
	f.sort(params)
	f.hosts()
	var out load.Load
	start := load.Place{File: r.Name, Line: 1, Col: 1}
	switch {
	case len(f.sections["rd"]) == 0:
		f.Object(start, "no run definition (rd=): nothing is to run")
	case !readable: // what follows from what could not be read would only confuse
	default:
		f.count("sd")
		f.count("fsd")
		for _, rd := range f.sections["rd"] {
			out.Stages = append(out.Stages, f.stages(rd)...)
			if len(out.Stages) > maxStages {
				f.Object(rd.at, "more than %d runs come of this file; write smaller loops", maxStages)
				break
			}
		}
	}
	out.Notes = t.Notes
	used := make([]string, 0, len(s.used))
	for name := range s.used {
		used = append(used, name)
	}
	slices.Sort(used)
	if err := t.Err(); err != nil {
		return load.Load{}, used, err
	}
	return out, used, nil
}

// maxStages bounds what loops multiply to.
const maxStages = 1000

// begins says which definitions a keyword begins when it stands in one of another kind: vdbench wants them in order.
var begins = map[string][]string{
	"general": {"hd", "host", "rg", "sd", "fsd", "wd", "fwd", "rd"},
	"hd":      {"rg", "sd", "fsd", "wd", "fwd", "rd"},
	"rg":      {"sd", "fsd", "wd", "fwd", "rd"},
	"sd":      {"fsd", "wd", "fwd", "rd"},
	"fsd":     {"sd", "wd", "fwd", "rd"},
	"wd":      {"fwd", "rd"},
	"fwd":     {"rd"},
	"rd":      {},
}

// sort puts parameters into definitions, and looks each up.
func (f *reader) sort(params []param) {
	now := &f.general
	for _, p := range params {
		kind := now.kind
		if slices.Contains(begins[kind], p.key) {
			kind = p.key
			if kind == "host" {
				kind = "hd"
			}
		}
		u, ok := lookUp(kind, p.key)
		if !ok {
			f.Object(p.at, "%s", unknown(kind, p))
			continue
		}
		p.key = u.name
		if kind != "general" && (p.key == kind || kind == "hd" && p.key == "host") {
			now = f.begin(kind, p)
		}
		switch {
		case u.refuse != "":
			f.Refuse(p.ask(), "%s", u.refuse)
		case u.why != "" && p.text != "":
			f.Note(p.ask(), "", "%s", u.why)
		default:
			now.params = append(now.params, p)
		}
	}
}

// begin begins a definition. "default" holds for those of its kind that follow.
func (f *reader) begin(kind string, p param) *section {
	if len(p.words) != 1 && kind != "hd" {
		f.Refuse(p.ask(), "a definition has one name")
	}
	s := &section{kind: kind, name: p.words[0].text, at: p.at}
	d := f.defaults[kind]
	if d == nil {
		d = &section{kind: kind, name: "default", at: p.at}
		f.defaults[kind] = d
	}
	if s.name == "default" {
		return d
	}
	s.params = slices.Clone(d.params)
	for _, other := range f.sections[kind] {
		if other.name == s.name {
			f.Refuse(p.ask(), "there is one of this name already, in line %d", other.at.Line)
		}
	}
	f.sections[kind] = append(f.sections[kind], s)
	return s
}

// hosts refuses more than one host, and what is said of hosts elsewhere when there is one.
func (f *reader) hosts() {
	if all := f.sections["hd"]; len(all) > 1 {
		f.Object(all[1].at, "hd=%s: %s", all[1].name, otherHosts)
	}
}

// count writes out count=(start,number).
func (f *reader) count(kind string) {
	var all []*section
	for _, s := range f.sections[kind] {
		p, ok := s.get("count")
		if !ok {
			all = append(all, s)
			continue
		}
		n, ok := f.numbers(p)
		if !ok || len(n) != 2 || n[0] < 0 || n[1] < 1 || n[1] > 1000 || n[0] != math.Trunc(n[0]) || n[0] > 1e6 {
			f.Refuse(p.ask(), "it takes where to begin and how many, up to 1000, like count=(1,8)")
			continue
		}
		for i := int(n[0]); i < int(n[0])+int(n[1]); i++ {
			c := &section{kind: kind, name: counted(s.name, i), at: s.at}
			for _, p := range s.params {
				if p.key == "lun" || p.key == "anchor" {
					p.words = slices.Clone(p.words)
					p.words[0].text = counted(p.words[0].text, i)
				}
				if p.key != "count" {
					c.params = append(c.params, p)
				}
			}
			all = append(all, c)
		}
	}
	f.sections[kind] = all
}

// counted is the name of one of several: the number stands in the place of %d, %04d or *, else at the end.
func counted(name string, n int) string {
	if i := strings.IndexByte(name, '%'); i >= 0 {
		width := strings.IndexByte(name[i:], 'd')
		if digits := name[i+1 : max(i+width, i+1)]; width > 0 && len(digits) <= 2 &&
			strings.Trim(digits, "0123456789") == "" {
			return name[:i] + fmt.Sprintf("%"+digits+"d", n) + name[i+width+1:]
		}
	}
	if strings.Contains(name, "*") {
		return strings.ReplaceAll(name, "*", fmt.Sprint(n))
	}
	return fmt.Sprint(name, n)
}

// numbers are the values of a parameter that takes only numbers.
func (f *reader) numbers(p param) ([]float64, bool) {
	var all []float64
	for _, w := range p.words {
		if !w.is {
			f.Refuse(p.ask(), "%.40q is no number", w.text)
			return nil, false
		}
		all = append(all, w.number)
	}
	return all, true
}

// number is the value of a parameter that takes one number, within bounds.
func (f *reader) number(s *section, missing, low, high float64, names ...string) (float64, load.Ask) {
	p, ok := s.get(names...)
	if !ok {
		return missing, load.Ask{Text: fmt.Sprintf("%s=%s (the default)", names[0], load.Number(missing)), At: s.at}
	}
	n, ok := f.numbers(p)
	if !ok {
		return missing, p.ask()
	}
	if len(n) != 1 || n[0] < low || n[0] > high {
		f.Refuse(p.ask(), "it takes one number from %s to %s", load.Number(low), load.Number(high))
		return missing, p.ask()
	}
	return n[0], p.ask()
}

// matching are the definitions of a kind that a parameter names, by wildcards too.
func (f *reader) matching(kind string, p param) (all []*section) {
	for _, w := range p.words {
		found := false
		for _, s := range f.sections[kind] {
			if ok, err := path.Match(w.text, s.name); err == nil && ok || w.text == s.name {
				found = true
				if !slices.Contains(all, s) {
					all = append(all, s)
				}
			}
		}
		if !found {
			f.Refuse(p.ask(), "no %s is called %q", strings.ToUpper(kind), w.text)
		}
	}
	return all
}
