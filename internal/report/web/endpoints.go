package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/catalogue"
	"plimsoll/result"
)

// endpoint is a path of the API: what answers it, and what its description says. There is no other list of them.
type endpoint struct {
	path    string // below /api/v1/
	summary string
	params  []parameter
	gives   any // a value of the type that it answers with

	ask  answerer                                // as Prometheus' API answers: the value is the reply's data
	tell func(*Site, *http.Request) (any, error) // the value is the answer
}

// parameter is one of a question; those in braces in the path are known from there.
type parameter struct {
	name, about string
	needed      bool
	many        bool
}

// data of Prometheus' API, of which the query's own part is described by Prometheus.
type (
	queryData struct {
		Kind   string `json:"resultType"`
		Result any    `json:"result"`
	}
	buildData struct {
		Branch    string `json:"branch"`
		BuildDate string `json:"buildDate"`
		BuildUser string `json:"buildUser"`
		GoVersion string `json:"goVersion"`
		Revision  string `json:"revision"`
		Version   string `json:"version"`
	}
	metricData struct {
		Help string `json:"help"`
		Type string `json:"type"`
		Unit string `json:"unit"`
	}
)

var (
	whenParams = []parameter{{name: "start", about: "seconds since 1970 or RFC 3339"}, {name: "end"},
		{name: "match[]", about: "series selector", many: true}, {name: "limit"}, {name: "timeout"}}
	sidesParams = []parameter{
		{name: "run", about: "identity of a run, of an experiment, or EXPERIMENT/RUN", needed: true, many: true},
		{name: "anyway", about: "1: compare unlike sides all the same"},
		{name: "at", about: "a moment that all runs have, at which pages lay their courses over each other"},
	}
)

// recordParams choose among records: those that fit all of them.
var recordParams = []parameter{
	{name: "word", about: "stands in the record or the conditions of its loads, in any case", many: true},
	{name: "system", about: "the name of the system"},
	{name: "source", about: "the name of the source"},
	{name: "load", about: "a kind of load"},
	{name: "alike", about: "the conditions of a load, as alike of runs/{id}/beside has them"},
	{name: "simulated", about: "true or false"},
}

var trustParam = []parameter{{name: "trust", about: "1: answer all the same where files of the run are damaged"}}

// sliceParams are those of lists that may be long.
var sliceParams = []parameter{
	{name: "limit", about: "most entries; 0: all"},
	{name: "offset", about: "entries to leave out, from the first"},
}

// runsParams choose among runs as the page of the list does.
var runsParams = slices.Concat([]parameter{
	{name: "q", about: "words that stand in the run's identity, labels, scenario, target, cluster or operator"},
	{name: "scenario", about: "the name of the scenario"},
	{name: "target", about: "the name of the target"},
	{name: "status", about: "the status of the run"},
	{name: "tag", about: "a tag of the run"},
	{name: "since", about: "made since a date like 2026-11-22, or 12h or 7d ago"},
}, sliceParams)

// endpoints are all of the API.
var endpoints = []endpoint{
	{path: "runs", summary: "The runs there are, newest first", params: runsParams, gives: []runEntry{},
		tell: (*Site).runsJSON},
	{path: "runs/{id}", summary: "What ran, where and with what", params: trustParam, gives: result.Manifest{},
		tell: (*Site).runJSON},
	{path: "runs/{id}/findings", summary: "What was found in a run", params: trustParam, gives: []result.Finding{},
		tell: (*Site).findingsJSON},
	{path: "runs/{id}/series", summary: "The results of a run over time, also while it goes on", params: trustParam,
		gives: []result.Panel{}, tell: (*Site).seriesJSON},
	{path: "runs/{id}/events", summary: "The journal of a run: faults, stretches and steps", params: trustParam,
		gives: []result.Event{}, tell: (*Site).eventsJSON},
	{path: "runs/{id}/beside", summary: "Where a run that ended stands among recorded systems that did the same",
		gives: []catalogue.Beside{}, tell: (*Site).besideJSON},
	{path: "catalogue", summary: "The systems that are recorded, with what each gave, and where figures come from",
		params: slices.Concat(recordParams, sliceParams), gives: recorded{}, tell: (*Site).catalogueJSON},
	{path: "history", summary: "The histories there are", params: sliceParams, gives: []historyEntry{},
		tell: (*Site).historiesJSON},
	{path: "history/{name}", summary: "The changes of a history, and its results", gives: historyAnswer{},
		tell: (*Site).historyJSON},
	{path: "experiments", summary: "The experiments and searches there are, newest first", params: sliceParams,
		gives: []Experiment{}, tell: (*Site).experimentsJSON},
	{path: "experiments/{id}", summary: "The result of an experiment so far", gives: report.ExperimentDocument{},
		tell: (*Site).experimentJSON},
	{path: "compare", summary: "Runs, experiments or searches held against the first of them", params: sidesParams,
		gives: compare.Document{}, tell: (*Site).compareJSON},

	{path: "query", summary: "PromQL at one moment", ask: queryAt, gives: queryData{}, params: []parameter{
		{name: "query", needed: true}, {name: "time"}, {name: "limit"}, {name: "timeout"}}},
	{path: "query_range", summary: "PromQL over a time", ask: queryOver, gives: queryData{}, params: []parameter{
		{name: "query", needed: true}, {name: "start", needed: true}, {name: "end", needed: true},
		{name: "step", needed: true}, {name: "limit"}, {name: "timeout"}}},
	{path: "series", summary: "Series by their labels", ask: findSeries, gives: []map[string]string{},
		params: whenParams},
	{path: "labels", summary: "Names of labels", ask: labelNames, gives: []string{}, params: whenParams},
	{path: "label/{name}/values", summary: "Values of a label", ask: labelValues, gives: []string{},
		params: whenParams},
	{path: "metadata", summary: "What is known of metrics", ask: metadata, gives: map[string][]metricData{},
		params: []parameter{{name: "metric"}, {name: "limit"}, {name: "timeout"}}},
	{path: "query_exemplars", summary: "None", ask: nothing([]any{}), gives: []any{}},
	{path: "rules", summary: "None", ask: nothing(object{"groups": []any{}}), gives: object{}},
	{path: "alerts", summary: "None", ask: nothing(object{"alerts": []any{}}), gives: object{}},
	{path: "status/buildinfo", summary: "The version of the query language, and of the program", ask: buildInfo,
		gives: buildData{}},
}

// posted are the paths whose questions may be posted, too, as Prometheus' may.
var posted = []string{"query", "query_range", "series", "labels", "query_exemplars"}

// api adds the paths of the API.
func (s *Site) api(mux *http.ServeMux) {
	for _, e := range endpoints {
		if e.ask == nil {
			mux.HandleFunc("GET /api/v1/"+e.path, s.page(func(_ context.Context, r *http.Request, doc *document) error {
				err := e.objection(r.URL.RawQuery)
				if err != nil {
					return err
				}
				data, err := e.tell(s, r)
				if err != nil {
					return err
				}
				doc.kind = jsonKind
				return encodeJSON(&doc.body, data)
			}))
			continue
		}
		mux.HandleFunc("GET /api/v1/"+e.path, s.answering(e.ask))
		if slices.Contains(posted, e.path) {
			mux.HandleFunc("POST /api/v1/"+e.path, s.answering(e.ask))
		}
	}
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonKind)
		_ = WriteOpenAPI(w, s.version) // the reader may have gone away
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		no := reply{Status: "error", ErrorType: notFound, Error: "there is no " + r.Method + " " + r.URL.Path + " here"}
		path, there := strings.CutPrefix(patternOf(mux, r), "GET /api/v1/")
		if !there {
			body, code := encode(no)
			s.write(w, body, code)
			return
		}
		may := allowed
		if slices.Contains(posted, path) {
			may += ", POST"
		}
		w.Header().Set("Allow", may)
		no.ErrorType = badData
		body, _ := encode(no)
		s.write(w, body, http.StatusMethodNotAllowed)
	})
}

// allowed are the methods of what can only be read.
const allowed = "GET, HEAD"

// patternOf is the pattern that would answer a request if it only read.
func patternOf(mux *http.ServeMux, r *http.Request) string {
	asked := r.Clone(r.Context())
	asked.Method = http.MethodGet
	_, pattern := mux.Handler(asked)
	return pattern
}

// objection says what is wrong with the names of a question's parameters. Those that only Prometheus' paths have are
// left to them: clients send them more than they need.
func (e endpoint) objection(query string) error {
	asked, err := url.ParseQuery(query)
	if err != nil {
		return errAsked("The parameters cannot be read: " + err.Error() + ".")
	}
	names := make([]string, 0, len(e.params))
	for _, p := range e.params {
		if names = append(names, p.name); len(asked[p.name]) > 1 && !p.many {
			return errAsked(fmt.Sprintf("Parameter %s is given %d times; it can be given once.", p.name,
				len(asked[p.name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if slices.Contains(names, name) {
			continue
		}
		has := "none"
		if len(names) > 0 {
			has = strings.Join(names, ", ")
		}
		return errAsked(fmt.Sprintf("/api/v1/%s has no parameter %q; it has %s.", e.path, visible.Cut(name, 100), has))
	}
	return nil
}

// slice is the part of a list that a question asks for.
func slice[T any](list []T, asked url.Values) ([]T, error) {
	number := map[string]int{}
	for _, p := range sliceParams {
		text := cmp.Or(asked.Get(p.name), "0")
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, errAsked(fmt.Sprintf("Parameter %s: %q is no whole number from 0 on.", p.name,
				visible.Cut(text, 100)))
		}
		number[p.name] = n
	}
	list = list[min(number["offset"], len(list)):]
	if most := number["limit"]; most > 0 {
		list = list[:min(most, len(list))]
	}
	return listOf(list), nil
}

// object is one of JSON's.
type object = map[string]any

// WriteOpenAPI writes the description of the API, in version 3.1 of OpenAPI: it is made of the table above and of the
// types that are answered with.
func WriteOpenAPI(w io.Writer, version string) error {
	kinds, paths := schemas{}, object{}
	failed := kinds.of(reply{})
	for _, e := range endpoints {
		op := object{"summary": e.summary, "operationId": operationOf(e.path), "parameters": e.parameters()}
		answer := kinds.of(e.gives)
		if e.ask != nil {
			answer = object{"type": "object", "required": []string{"status", "data"}, "properties": object{
				"status": object{"const": "success"}, "data": answer,
				"warnings": kinds.of([]string{}), "infos": kinds.of([]string{})}}
		}
		content := func(schema any) object { return object{jsonKind: object{"schema": schema}} }
		op["responses"] = object{
			"200":     object{"description": "the answer", "content": content(answer)},
			"default": object{"description": "why there is none", "content": content(failed)},
		}
		item := object{"get": op}
		if slices.Contains(posted, e.path) {
			post := object{}
			for k, v := range op {
				post[k] = v
			}
			delete(post, "parameters") // they are in the form
			post["operationId"] = operationOf(e.path) + "Posted"
			item["post"] = post
		}
		paths["/api/v1/"+e.path] = item
	}
	return encodeJSON(w, object{"openapi": "3.1.0", "paths": paths, "components": object{"schemas": kinds},
		"info": object{"title": "Plimsoll", "version": version,
			"description": "Runs, experiments, series, findings, comparisons, histories and recorded systems, as pages show them, and Prometheus' " +
				"query API over the metrics of all runs. Nothing can be changed."}})
}

func (e endpoint) parameters() []object {
	out := []object{}
	for part := range strings.SplitSeq(e.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			out = append(out, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true,
				"schema": object{"type": "string"}})
		}
	}
	for _, p := range e.params {
		schema := object{"type": "string"}
		if p.many {
			schema = object{"type": "array", "items": schema}
		}
		one := object{"name": p.name, "in": "query", "schema": schema}
		if p.needed {
			one["required"] = true
		}
		if p.about != "" {
			one["description"] = p.about
		}
		out = append(out, one)
	}
	return out
}

// operationOf is a path as a name: runs/{id}/findings is runsIdFindings.
func operationOf(path string) string {
	out := ""
	for i, word := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}_.", r) }) {
		if i > 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		out += word
	}
	return out
}

func (s *Site) seriesJSON(r *http.Request) (any, error) {
	folder, err := s.whole(r, "data.json")
	if err != nil {
		return nil, err
	}
	var data *result.Data
	if b, ok := s.shelf.find(r.PathValue("id")); ok && folder.Manifest().Status == result.StatusExecuting {
		data, err = s.soFar(r.Context(), b, folder)
	} else {
		data, err = folder.Data()
	}
	if errors.Is(err, fs.ErrNotExist) { // it was not collected
		return []result.Panel{}, nil
	}
	if err != nil {
		return nil, err
	}
	return listOf(data.Panels), nil
}

func (s *Site) eventsJSON(r *http.Request) (any, error) {
	folder, err := s.whole(r, "journal.jsonl")
	if err != nil {
		return nil, err
	}
	events, _, err := folder.Events()
	return listOf(events), err
}

// recorded are the records of a catalogue.
type recorded struct {
	Records  []catalogue.Record `json:"records"`
	Sources  []catalogue.Source `json:"sources"`  // the published ones, of these records
	Problems []string           `json:"problems"` // what could not be read
}

func (s *Site) catalogueJSON(r *http.Request) (any, error) {
	asked := r.URL.Query()
	list, problems, err := s.asked(asked, asked["word"])
	if err != nil {
		return nil, err
	}
	list, err = slice(list, asked)
	if err != nil {
		return nil, err
	}
	out := recorded{Records: list, Sources: []catalogue.Source{}, Problems: []string{}}
	of := map[string]bool{}
	for _, one := range list {
		of[one.Source] = true
	}
	for _, one := range catalogue.Sources() {
		if of[one.Name] {
			out.Sources = append(out.Sources, one)
		}
	}
	for _, p := range problems {
		out.Problems = append(out.Problems, p.Error())
	}
	return out, nil
}

// besideJSON tells what the report of a run tells; nothing of one that goes on.
func (s *Site) besideJSON(r *http.Request) (any, error) {
	folder, err := s.opened(r)
	if err != nil {
		return nil, err
	}
	if folder.Manifest().Status == result.StatusExecuting {
		return []catalogue.Beside{}, nil
	}
	if err := damaged(folder, folder.VerifySums(), ""); err != nil {
		return nil, err
	}
	doc, err := report.Build(folder)
	if err != nil {
		return nil, err
	}
	return listOf(doc.Beside), nil
}

// listOf is an empty list in the place of none.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
