package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/history"
	"plimsoll/internal/report"
	"plimsoll/result"
	"plimsoll/unit"
)

// Experiment is an experiment, or a search for a mark, as a list shows it.
type Experiment struct {
	ID       string        `json:"experiment_id"`
	Dir      string        `json:"-"`
	Scenario string        `json:"scenario"`
	Title    string        `json:"display_name"`
	Target   string        `json:"target"`
	Labels   result.Labels `json:"labels"`
	Made     time.Time     `json:"made"` // when it was last worked at, by this machine's clock
	Done     int           `json:"runs_done"`
	Failed   int           `json:"runs_failed"` // and not made again since
	Planned  int           `json:"runs_planned"`
	Problem  string        `json:"problem,omitempty"`
}

// Side is a run or an experiment that is compared with others.
type Side struct{ Name, Dir string }

// Library offers what takes more than one run: the program gives it to the site. A nil function is not offered.
type Library struct {
	Experiments func() ([]Experiment, error)
	Examine     func(dir string) (*compare.Experiment, error)
	Compare     func(sides []Side, o compare.Options) (*compare.Document, error)
	Histories   func() (names []string, err error)
	History     func(name string) (*history.History, error)
}

// mostSides is how many runs and experiments one page compares.
const mostSides = 12

// errAsked says that a request cannot be answered as it was put.
type errAsked string

func (e errAsked) Error() string { return string(e) }

// errDamaged says that what an answer would be made of is not as it was written.
type errDamaged string

func (e errDamaged) Error() string { return string(e) }

// library adds the paths of what takes more than one run.
func (s *Site) library(mux *http.ServeMux) {
	mux.HandleFunc("GET /experiments/{id}", s.page(s.experimentPage))
	mux.HandleFunc("GET /experiments/{id}/report", s.page(s.experimentReport))
	mux.HandleFunc("GET /experiments/{id}/runs/{run}/report", s.page(s.runOfExperiment))
	mux.HandleFunc("GET /experiments/{id}/files/{file}", s.page(s.experimentFile))
	mux.HandleFunc("GET /compare", s.page(s.comparePage))
	mux.HandleFunc("GET /compare/files/{file}", s.page(s.compareFile))
}

func encodeJSON(w io.Writer, data any) error {
	if raw, ok := data.(json.RawMessage); ok {
		_, err := w.Write(raw)
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(data); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return nil
}

// known are the experiments there are, as they were last looked at, no more often than runs are.
type known struct {
	mu     sync.Mutex
	looked time.Time
	list   []Experiment
	err    error
}

// experiments are those there are, newest first. The slice is shared.
func (s *Site) experiments() ([]Experiment, error) {
	k := &s.known
	k.mu.Lock()
	defer k.mu.Unlock()
	now := s.now()
	if s.lib.Experiments == nil || !k.looked.IsZero() && now.Sub(k.looked) < lookEvery && !now.Before(k.looked) {
		return k.list, k.err
	}
	k.looked = now
	k.list, k.err = s.lib.Experiments()
	slices.SortStableFunc(k.list, func(a, b Experiment) int { return b.Made.Compare(a.Made) })
	return k.list, k.err
}

func (s *Site) experiment(id string) (Experiment, error) {
	list, err := s.experiments()
	if i := slices.IndexFunc(list, func(e Experiment) bool { return e.ID == id }); i >= 0 {
		return list[i], nil
	}
	return Experiment{}, errors.Join(errNone{"experiment", id}, err)
}

// examined is the result of an experiment so far.
func (s *Site) examined(id string) (*compare.Experiment, error) {
	e, err := s.experiment(id)
	if err != nil {
		return nil, err
	}
	return s.lib.Examine(e.Dir)
}

// book is the experiment in a list of runs.
func (e Experiment) book() *book {
	return &book{id: e.ID, dir: e.Dir, labels: e.Labels, made: e.Made, problem: e.Problem, experiment: &e,
		manifest: result.Manifest{Target: e.Target,
			Scenario: result.ScenarioInfo{Name: e.Scenario, DisplayName: e.Title}}}
}

// runs are the runs of an experiment, newest first: on a simulated cluster those of two may be called alike.
func (e Experiment) runs() ([]*book, error) {
	dirs, err := result.Folders(filepath.Join(e.Dir, experimentRuns))
	books := make([]*book, 0, len(dirs))
	for _, dir := range dirs {
		b := open(dir)
		books = append(books, &b)
	}
	slices.SortStableFunc(books, newestFirst)
	return books, err
}

// experimentRuns is the folder of an experiment's runs in its own.
const experimentRuns = "runs"

// run is a run of an experiment.
func (e Experiment) run(id string) (book, error) {
	dirs, err := result.Folders(filepath.Join(e.Dir, experimentRuns))
	if i := slices.IndexFunc(dirs, func(dir string) bool { return filepath.Base(dir) == id }); i >= 0 {
		return open(dirs[i]), nil
	}
	return book{}, errors.Join(errMissing(id), err)
}

// runOfExperiment is the report of a run of an experiment.
func (s *Site) runOfExperiment(ctx context.Context, r *http.Request, doc *document) error {
	e, err := s.experiment(r.PathValue("id"))
	if err != nil {
		return err
	}
	b, err := e.run(r.PathValue("run"))
	if err != nil {
		return err
	}
	return s.reportOf(ctx, b, doc)
}

type experimentView struct {
	frame
	Mind    []string
	Row     row
	Answer  []string
	Rows    []row
	Folded  []foldedRuns // the same by combination, where they are many
	Report  template.URL
	Trouble string
}

// unfolded is how many runs of an experiment stand on its page one by one.
const unfolded = 12

// foldedRuns are the runs of one combination.
type foldedRuns struct {
	Name string
	Rows []row
	Open bool // one failed
}

// folded puts runs together by their combinations, in the order of these; those of none, as of a search, come last.
func folded(rows []row, order []string, cell func(i int) string) (out []foldedRuns) {
	for _, name := range append(slices.Clone(order), "") {
		one := foldedRuns{Name: cmp.Or(name, "others")}
		for i, r := range rows {
			if cell(i) == name {
				one.Rows, one.Open = append(one.Rows, r), one.Open || r.State == "invalid"
			}
		}
		if one.Rows != nil {
			out = append(out, one)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

func (v *experimentView) in(s *Site) { v.frame.in(s) }

// experimentPage is an experiment: its answer so far, and its runs.
func (s *Site) experimentPage(_ context.Context, r *http.Request, doc *document) error {
	e, err := s.experiment(r.PathValue("id"))
	if err != nil {
		return err
	}
	v := &experimentView{Row: experimentRow(e), Trouble: e.Problem}
	v.Title = titled(v.Row)
	called, cellOf := map[string]string{}, map[string]string{} // runs, by what is theirs
	var cells []string
	if x, err := s.lib.Examine(e.Dir); err != nil {
		v.Trouble = strings.TrimSpace(v.Trouble + " " + err.Error())
	} else {
		v.Mind, v.Answer = x.Mind, append(report.ExperimentShort(x), x.Sentence)
		for _, c := range x.Cells {
			cells = append(cells, c.Cell)
			for i, id := range c.Runs {
				cellOf[id] = c.Cell
				if called[id] = c.Cell; len(c.Runs) > 1 {
					called[id] = fmt.Sprintf("%s, run %d", c.Cell, i+1)
				}
			}
		}
		v.Report = linkToExperiment(e.ID) + "/report"
	}
	books, err := e.runs()
	if err != nil {
		v.Trouble = err.Error()
	}
	for _, b := range books {
		one := rowOf(*b)
		one.ID, one.Scenario, one.Inside = e.ID+"/"+b.id, cmp.Or(called[b.id], b.id), true
		one.Link = v.Row.Link + template.URL("/runs/"+url.PathEscape(b.id)+"/report")
		v.Rows = append(v.Rows, one)
	}
	link, reported := v.Row.Link, v.Report
	v.Rows = shownRows(v.Rows)
	if len(v.Rows) > unfolded {
		v.Folded = folded(v.Rows, cells, func(i int) string { return cellOf[books[i].id] })
		for i := range v.Folded {
			v.Folded[i].Name = report.Shown(v.Folded[i].Name)
		}
	}
	v.Row, v.Mind, v.Trouble = report.Shown(v.Row), report.Shown(v.Mind), report.Shown(v.Trouble)
	v.Answer = report.Shown(v.Answer)
	v.Row.Link, v.Report = link, reported
	doc.policy = formsHere(doc.policy)
	return s.fill(doc, "experiment.html.tmpl", v)
}

func experimentRow(e Experiment) row {
	out := row{ID: e.ID, Link: linkToExperiment(e.ID), Scenario: cmp.Or(e.Title, e.Scenario), Target: e.Target,
		Made: e.Made, Simulated: e.Target == "sim",
		State: "info", Status: fmt.Sprintf("%d of %d runs", e.Done, e.Planned), Problem: e.Problem, Experiment: true,
		Name: e.Labels.Name, Tags: e.Labels.Tags, Note: e.Labels.Note}
	switch {
	case e.Failed > 0:
		out.State, out.Failed = "invalid", unit.Plural(e.Failed, "run")+" failed"
	case e.Done == e.Planned:
		out.State = "passed"
	}
	return out
}

func linkToExperiment(id string) template.URL {
	return template.URL("/experiments/" + url.PathEscape(id))
}

// formsHere lets a page ask this site.
func formsHere(policy string) string {
	return strings.Replace(policy, "form-action 'none'", "form-action 'self'", 1)
}

// experimentReport is the page of an experiment as "plimsoll report" makes it.
func (s *Site) experimentReport(_ context.Context, r *http.Request, doc *document) error {
	x, err := s.examined(r.PathValue("id"))
	if err != nil {
		return err
	}
	here := *x
	here.Home = string(linkToExperiment(r.PathValue("id")))
	doc.policy = "frame-ancestors 'none'"
	return report.ExperimentHTML(&doc.body, &here)
}

// compared compares what a request names, by identities of runs and experiments that are served.
func (s *Site) compared(r *http.Request) (*compare.Document, error) {
	if s.lib.Compare == nil {
		return nil, errAsked("Nothing is compared here.")
	}
	asked := r.URL.Query()
	ids, sides := asked["run"], []chosen(nil)
	for _, id := range ids[:min(len(ids), mostSides+1)] {
		if slices.ContainsFunc(sides, func(c chosen) bool { return c.id == id }) {
			continue // ticked twice
		}
		c, err := s.choose(id)
		if err != nil {
			return nil, err
		}
		sides = append(sides, c)
	}
	if len(sides) < 2 || len(ids) > mostSides {
		n := len(sides)
		if len(ids) > mostSides {
			n = len(ids)
		}
		return nil, errAsked(fmt.Sprintf("Choose two different runs or experiments, or more, at most %d. Chosen are %d.",
			mostSides, n))
	}
	o := compare.Options{Threshold: compare.DefaultThreshold, Anyway: asked.Get("anyway") != "", At: asked.Get("at")}
	names := named(sides)
	for i := range names {
		if asked.Get("redact") != "" {
			names[i].Name = PartOf(i)
		}
	}
	d, err := s.lib.Compare(names, o)
	if _, refused := errors.AsType[*compare.Refusal](err); refused {
		return nil, errUnlike{err, r.URL.Path + "?" + url.Values{"run": ids, "anyway": {"1"}}.Encode()}
	}
	if err != nil {
		return nil, errAsked(err.Error())
	}
	d.Asked = asked.Encode()
	asked.Del("at")
	d.Here, d.Links = r.URL.Path+"?"+asked.Encode(), map[string]string{}
	for i, side := range d.Sides {
		for _, id := range side.Runs {
			d.Links[id] = sides[i].report(id)
		}
	}
	return d, nil
}

// chosen holds what a request names as a side.
type chosen struct {
	id, name, dir string
	experiment    string // whose runs it has; "" for a run of its own
}

// choose finds a run, EXPERIMENT/RUN, or an experiment, among those that are served.
func (s *Site) choose(id string) (chosen, error) {
	first, inside, isInside := strings.Cut(id, "/")
	e, err := s.experiment(first)
	switch {
	case err == nil && isInside:
		b, err := e.run(inside)
		return chosen{id, id, b.dir, first}, err
	case err == nil:
		return chosen{id, e.Labels.Name, e.Dir, first}, nil
	}
	b, ok := s.shelf.find(id)
	if !ok {
		return chosen{}, errMissing(id)
	}
	return chosen{id, b.labels.Name, b.dir, ""}, nil
}

// report is where the report of a run of the side is; of a search it is that of the experiment.
func (c chosen) report(id string) string {
	at := string(linkTo(id))
	if c.experiment != "" {
		at = string(linkToExperiment(c.experiment))
		if id != c.experiment {
			at += "/runs/" + url.PathEscape(id)
		}
	}
	return at + "/report"
}

// named gives each side the name that a user gave it, or its identity where there is none or another has it, too.
func named(sides []chosen) (out []Side) {
	of := map[string]int{}
	for _, c := range sides {
		of[c.name]++
	}
	for _, c := range sides {
		if c.name == "" || of[c.name] > 1 {
			c.name = c.id
		}
		out = append(out, Side{c.name, c.dir})
	}
	return out
}

// PartOf returns what a side is called by the part that it has, where its name is not told.
func PartOf(i int) string {
	if i == 0 {
		return "baseline"
	}
	return fmt.Sprintf("candidate %d", i)
}

// errUnlike says that sides differ in what should be equal, and where they are compared all the same.
type errUnlike struct {
	error
	anyway string
}

func (e errUnlike) Unwrap() error { return e.error }

// comparePage compares what was chosen.
func (s *Site) comparePage(_ context.Context, r *http.Request, doc *document) error {
	d, err := s.compared(r)
	if err != nil {
		return err
	}
	return report.CompareHTML(&doc.body, d)
}

func (s *Site) compareJSON(r *http.Request) (any, error) {
	d, err := s.compared(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = report.CompareJSON(&b, d)
	return json.RawMessage(b.Bytes()), err
}

// experimentFile is the result of an experiment as a file, with "redact" without what names somebody.
func (s *Site) experimentFile(_ context.Context, r *http.Request, doc *document) error {
	id := r.PathValue("id")
	e, err := s.experiment(id)
	if err != nil {
		return err
	}
	x, err := s.lib.Examine(e.Dir)
	if err != nil {
		return err
	}
	redacted := func() *compare.Experiment { return report.RedactedExperiment(x, e.Dir) }
	return handOver(r, doc, id, x, redacted, map[string]func(io.Writer, *compare.Experiment) error{
		"report.html": report.ExperimentHTML, "report.csv": report.ExperimentCSV,
		"report.md":   report.ExperimentMarkdown,
		"report.json": report.ExperimentJSON})
}

// compareFile is a comparison as a file, likewise.
func (s *Site) compareFile(_ context.Context, r *http.Request, doc *document) error {
	d, err := s.compared(r)
	if err != nil {
		return err
	}
	d.Here, d.Links = "", nil // it is read elsewhere
	redacted := func() *compare.Document { return report.RedactedComparison(d) }
	return handOver(r, doc, "compare", d, redacted, map[string]func(io.Writer, *compare.Document) error{
		"comparison.html": report.CompareHTML, "comparison.md": report.CompareMarkdown,
		"comparison.json": report.CompareJSON})
}

// runEntry is a run as /api/v1/runs lists it.
type runEntry struct {
	ID        string           `json:"run_id"`
	Scenario  string           `json:"scenario"`
	Target    string           `json:"target"`
	Status    string           `json:"status"`
	Made      time.Time        `json:"made"` // by this machine's clock
	Simulated bool             `json:"simulated"`
	Labels    result.Labels    `json:"labels"`
	Headline  *result.Headline `json:"headline,omitempty"`
	Failed    []string         `json:"failed_asserts,omitempty"`
	Problem   string           `json:"problem,omitempty"`
}

func entryOf(b book) runEntry {
	m := b.manifest
	return runEntry{b.id, m.Scenario.Name, m.Target, b.status(), b.made, m.Simulated, b.labels, m.Headline,
		m.FailedAsserts, b.problem}
}

func (s *Site) runsJSON(r *http.Request) (any, error) {
	books, err := s.shelf.all()
	if err != nil {
		return nil, err
	}
	asked, chosen := r.URL.Query(), listView{}
	books = chosen.filter(slices.Clone(books), asked, s.now())
	if chosen.Trouble != "" {
		return nil, errAsked("Parameter " + chosen.Trouble + ".")
	}
	books, err = slice(books, asked)
	list := make([]runEntry, 0, len(books))
	for _, b := range books {
		one := entryOf(*b)
		one.Problem = s.problemOf(*b)
		list = append(list, one)
	}
	return list, err
}

func (s *Site) opened(r *http.Request) (*result.Folder, error) {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		return nil, errMissing(r.PathValue("id"))
	}
	return result.Open(b.dir)
}

// whole is the folder of a run of which the files that an answer is made of are as they were written, or are trusted.
func (s *Site) whole(r *http.Request, files ...string) (*result.Folder, error) {
	folder, err := s.opened(r)
	if err != nil || r.URL.Query().Get("trust") == "1" || folder.Manifest().Status == result.StatusExecuting {
		return folder, err
	}
	return folder, damaged(folder, folder.VerifySumsOf(files...), ", or ask with trust=1")
}

// damaged is the error of a run of which files are not as they were written; nil where none is.
func damaged(folder *result.Folder, bad []string, otherwise string) error {
	if len(bad) == 0 {
		return nil
	}
	return errDamaged(fmt.Sprintf("Run %s is damaged: %s. Put back a copy that is whole%s.",
		filepath.Base(folder.Dir()), strings.Join(bad, "; "), otherwise))
}

func (s *Site) runJSON(r *http.Request) (any, error) {
	folder, err := s.whole(r, "manifest.json")
	if err != nil {
		return nil, err
	}
	return folder.Manifest(), nil
}

func (s *Site) findingsJSON(r *http.Request) (any, error) {
	folder, err := s.whole(r, "findings.json", "data.json")
	if err != nil {
		return nil, err
	}
	found, err := folder.Findings()
	if errors.Is(err, fs.ErrNotExist) { // it goes on, or was not collected
		err = nil
	}
	return listOf(found), err
}

func (s *Site) experimentsJSON(r *http.Request) (any, error) {
	list, err := s.experiments()
	if err != nil {
		return nil, err
	}
	return slice(list, r.URL.Query())
}

func (s *Site) experimentJSON(r *http.Request) (any, error) {
	x, err := s.examined(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = report.ExperimentJSON(&b, x)
	return json.RawMessage(b.Bytes()), err
}
