package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/untyped"
)

// layout says how output is read. As JSON it is the Format of what a job declares, so that a run folder can be replayed
// with nothing else.
type layout struct {
	Program   string   `json:"program"` // for messages
	Format    string   `json:"format"`
	NoHeader  bool     `json:"no_header,omitempty"`
	Separator string   `json:"separator,omitempty"` // of csv, "" for a comma
	Records   []record `json:"records"`
	// Versions: the records are of several versions of a program, so those that match nothing are as it should be.
	Versions bool `json:"versions,omitempty"`
}

// OfVersions changes the Format of a job so that its records may be of several versions of the program, of which one
// output has only some.
func OfVersions(format json.RawMessage) (json.RawMessage, error) {
	var l layout
	if err := json.Unmarshal(format, &l); err != nil {
		return nil, err
	}
	l.Versions = true
	return json.Marshal(&l)
}

// record is one kind of line, row, or element of a document.
type record struct {
	Line       int             `json:"line"` // of the config, for messages
	After      string          `json:"after,omitempty"`
	Match      string          `json:"match,omitempty"`
	Where      []condition     `json:"where,omitempty"`
	Each       string          `json:"each,omitempty"`
	Elapsed    *number         `json:"elapsed,omitempty"`
	Final      bool            `json:"final,omitempty"`
	Errors     *counter        `json:"errors,omitempty"`
	Operations []opRecord      `json:"operations,omitempty"`
	Measures   []measureRecord `json:"measures,omitempty"`
	Histogram  *histogram      `json:"histogram,omitempty"`

	after *regexp.Regexp
	match *regexp.Regexp
	each  route
	paths map[string]route // of JSON, by field
}

type condition struct {
	Field string `json:"field"`
	Match string `json:"match"`

	match *regexp.Regexp
	at    *yaml.Node
}

// The ways to count.
const (
	byCount = "count" // since the beginning
	byDelta = "delta" // since the record before
	byRate  = "rate"  // per second, since the moment before
)

type counter struct {
	How    string  `json:"how"`
	Number *number `json:"number"`
	at     *yaml.Node
}

type opRecord struct {
	Operation int      `json:"operation"`
	Ops       *counter `json:"ops,omitempty"`
	Bytes     *counter `json:"bytes,omitempty"`
	Mean      *number  `json:"mean,omitempty"` // latency in seconds, of what Ops counts
	Sum       *number  `json:"sum,omitempty"`  // of all latencies since the beginning, in seconds
}

type measureRecord struct {
	Measure int     `json:"measure"`
	Value   *number `json:"value"`
}

// histogram is one row of the operations by latency.
type histogram struct {
	Operation int     `json:"operation"`
	UpTo      *number `json:"upto"`
	Count     *number `json:"count"`
}

func (r *record) empty() bool {
	return r.Elapsed == nil && r.Errors == nil && len(r.Operations) == 0 && len(r.Measures) == 0 && r.Histogram == nil
}

// eachCounter visits everything that is counted.
func (r *record) eachCounter(f func(*counter)) {
	if r.Errors != nil {
		f(r.Errors)
	}
	for _, o := range r.Operations {
		for _, k := range []*counter{o.Ops, o.Bytes} {
			if k != nil {
				f(k)
			}
		}
	}
}

// eachNumber visits every number.
func (r *record) eachNumber(f func(*number)) {
	list := []*number{r.Elapsed}
	r.eachCounter(func(k *counter) { list = append(list, k.Number) })
	for _, o := range r.Operations {
		list = append(list, o.Mean, o.Sum)
	}
	for _, m := range r.Measures {
		list = append(list, m.Value)
	}
	if r.Histogram != nil {
		list = append(list, r.Histogram.UpTo, r.Histogram.Count)
	}
	for _, x := range list {
		if x != nil {
			f(x)
		}
	}
}

// eachField visits every field that is asked for, once for each time it is.
func (r *record) eachField(f func(field string, at *yaml.Node)) {
	for _, w := range r.Where {
		f(w.Field, w.at)
	}
	r.eachNumber(func(x *number) {
		if x.Field != "" {
			f(x.Field, x.at)
		}
	})
}

// prepare makes ready a layout that came as JSON. One of a damaged folder may hold anything.
func prepare(declared workload.Declared) (*layout, error) {
	l := &layout{}
	if err := json.Unmarshal(declared.Format, l); err != nil {
		return nil, fmt.Errorf("parse: how the output is read: %w", err)
	}
	for i := range l.Records {
		if err := l.Records[i].prepare(l.Format, declared); err != nil {
			return nil, fmt.Errorf("parse: how the output is read: record %d: %w", i+1, err)
		}
	}
	return l, nil
}

func (r *record) prepare(format string, declared workload.Declared) (err error) {
	if r.match, err = compile(r.Match); err != nil {
		return err
	}
	if r.after, err = compile(r.After); err != nil {
		return err
	}
	for i := range r.Where {
		if r.Where[i].match, err = compile(r.Where[i].Match); err != nil {
			return err
		}
	}
	ok := true
	for _, o := range r.Operations {
		ok = ok && o.Operation >= 0 && o.Operation < len(declared.Operations)
	}
	for _, m := range r.Measures {
		ok = ok && m.Measure >= 0 && m.Measure < len(declared.Measures) && m.Value != nil
	}
	if h := r.Histogram; h != nil {
		ok = ok && h.Operation >= 0 && h.Operation < len(declared.Operations) && h.UpTo != nil && h.Count != nil
	}
	r.eachCounter(func(k *counter) { ok = ok && k.Number != nil })
	r.eachNumber(func(x *number) { ok = ok && (x.Field == "" || len(x.Units) > 0) })
	if !ok {
		return errors.New("it does not fit what the job declares")
	}
	if format != formatJSON && format != formatObjects {
		return nil
	}
	r.paths = map[string]route{}
	if r.Each != "" {
		if r.each, err = parsePath(r.Each); err != nil {
			return err
		}
	}
	r.eachField(func(field string, _ *yaml.Node) {
		p, pathErr := parsePath(field)
		err = errors.Join(err, pathErr)
		r.paths[field] = p
	})
	return err
}

// route leads to a value in a document: names, and numbers of elements.
type route []any

// parsePath reads a.b[0].c; a name with a dot or bracket in it stands in brackets and quotes: a["b.c"].
func parsePath(text string) (route, error) {
	bad := func() (route, error) {
		return nil, fmt.Errorf(`%q is no path; write names with dots between, [0] for an element, `+
			`["a.b"] for an odd name`, text)
	}
	var p route
	rest := text
	for first := true; rest != ""; first = false {
		switch {
		case strings.HasPrefix(rest, `["`):
			name, tail, found := strings.Cut(rest[2:], `"]`)
			if !found {
				return bad()
			}
			p, rest = append(p, name), tail
		case rest[0] == '[':
			index, tail, found := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(index)
			if !found || err != nil || i < 0 {
				return bad()
			}
			p, rest = append(p, i), tail
		default:
			if !first {
				if rest[0] != '.' {
					return bad()
				}
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 || strings.ContainsAny(rest[:end], `]"`) {
				return bad()
			}
			p, rest = append(p, rest[:end]), rest[end:]
		}
	}
	if len(p) == 0 {
		return bad()
	}
	return p, nil
}

// in is the value at the path, nil when there is none.
func (p route) in(v any) any {
	for _, step := range p {
		switch step := step.(type) {
		case string:
			m, _ := untyped.Of(v)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}
