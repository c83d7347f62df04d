package web

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/report"
	"plimsoll/internal/series"
	"plimsoll/internal/visible"
	"plimsoll/result"
	"plimsoll/unit"
)

//go:embed assets
var assets embed.FS

// mostRows bounds the list of runs; filters find the others.
const mostRows = 500

// refreshSeconds is after how long the page of a run that goes on is made anew.
const refreshSeconds = 5

var templates = template.Must(template.New("").ParseFS(assets, "assets/*.tmpl"))

// pages adds the paths of the pages.
func (s *Site) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.page(s.listPage))
	mux.HandleFunc("GET /runs/{id}", s.page(s.runPage))
	mux.HandleFunc("GET /runs/{id}/report", s.page(s.reportPage))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.problem(w, http.StatusNotFound, "There is no such page.")
	})
}

// document is a page that is ready: its bytes and what it may do.
type document struct {
	body   bytes.Buffer
	policy string
}

// page has a page made when it is its turn, and shows what went wrong as one.
func (s *Site) page(make func(context.Context, *http.Request, *document) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, done, err := s.turn(r.Context(), longestAsk)
		doc := document{policy: report.Policy + "; frame-ancestors 'none'"}
		if err == nil {
			defer done()
			err = make(ctx, r, &doc)
		}
		var missing errMissing
		switch {
		case err == nil:
		case errors.As(err, &missing):
			s.problem(w, http.StatusNotFound, missing.Error())
			return
		case errors.Is(err, errBusy):
			s.problem(w, http.StatusServiceUnavailable, err.Error())
			return
		default:
			s.problem(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", doc.policy)
		_, _ = w.Write(doc.body.Bytes()) // the reader may have gone away
	}
}

// errMissing says that there is no such run.
type errMissing string

func (e errMissing) Error() string {
	return fmt.Sprintf("There is no run %q any more, or there never was.", visible.Cut(string(e), 200))
}

// problem shows a page with one sentence.
func (s *Site) problem(w http.ResponseWriter, code int, text string) {
	var doc document
	if err := s.fill(&doc, "problem.html.tmpl", &frame{Title: "Not shown", Problem: text}); err != nil {
		say(w, code, text)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", report.Policy+"; frame-ancestors 'none'")
	w.WriteHeader(code)
	_, _ = w.Write(doc.body.Bytes())
}

// frame is what every page has.
type frame struct {
	Title   string
	Problem string
	Style   template.CSS
	Version string
	Refresh int // seconds; 0: never
}

// fill executes a template with a view whose texts were made visible.
func (s *Site) fill(doc *document, name string, view interface{ in(*Site) }) error {
	view.in(s)
	if err := templates.ExecuteTemplate(&doc.body, name, view); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// in completes the frame.
func (f *frame) in(s *Site) {
	f.Problem, f.Title, f.Version = report.Shown(f.Problem), report.Shown(f.Title), report.Shown(s.version)
	css, err := assets.ReadFile("assets/web.css")
	if err == nil {
		f.Style = report.Style() + template.CSS(css)
	}
}

// row is a run in the list.
type row struct {
	ID, Scenario, Target, Status, State string
	Link                                template.URL
	Made, Took                          string
	Simulated, Live                     bool
	Verdicts                            []verdict
	Problem                             string
}

type verdict struct{ Question, State, Reason string }

func verdicts(m result.Manifest) []verdict {
	return []verdict{{"measured", m.Measured.State, m.Measured.Reason}, {"collected", m.Collected.State, m.Collected.Reason},
		{"cleaned", m.Cleaned.State, m.Cleaned.Reason}}
}

// choice is a value of a filter.
type choice struct {
	Value, Text string
	Chosen      bool
}

// filter is one of the list's.
type filter struct {
	Name, Label string
	Choices     []choice
}

type listView struct {
	frame
	Rows     []row
	Filters  []filter
	Filtered bool
	All      int // runs there are
	More     int // that fit and are not shown
	Trouble  string
}

// spans are what the filter since offers.
var spans = []struct {
	value, text string
	length      time.Duration
}{
	{"1h", "the last hour", time.Hour}, {"1d", "the last day", 24 * time.Hour}, {"7d", "the last week", 7 * 24 * time.Hour},
	{"30d", "the last 30 days", 30 * 24 * time.Hour},
}

// since is the moment that the parameter of that name means: one of the spans before now, or a date.
func since(text string, now time.Time) (time.Time, error) {
	for _, sp := range spans {
		if text == sp.value {
			return now.Add(-sp.length), nil
		}
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	if d, err := series.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("since: %q is no date like 2026-11-22 and no time like 12h or 7d", visible.Cut(text, 100))
}

// listPage is the list of runs.
func (s *Site) listPage(_ context.Context, r *http.Request, doc *document) error {
	books, err := s.shelf.all()
	v := &listView{frame: frame{Title: "Runs"}, All: len(books)}
	if err != nil {
		v.Trouble = err.Error()
	}
	asked := r.URL.Query()
	from := time.Time{}
	if text := asked.Get("since"); text != "" {
		if from, err = since(text, s.now()); err != nil {
			v.Trouble = err.Error()
		}
	}
	for _, f := range []struct {
		name, label, every string
		of                 func(book) string
	}{
		{"scenario", "Scenario", "all scenarios", scenarioOf},
		{"target", "Target", "all targets", func(b book) string { return b.manifest.Target }},
		{"status", "Status", "any status", book.status},
	} {
		v.Filters = append(v.Filters, choices(books, f.name, f.label, f.every, asked.Get(f.name), f.of))
		if want := asked.Get(f.name); want != "" {
			books, v.Filtered = slices.DeleteFunc(slices.Clone(books), func(b book) bool { return f.of(b) != want }), true
		}
	}
	times := filter{Name: "since", Label: "Made", Choices: []choice{{"", "at any time", false}}}
	for _, sp := range spans {
		times.Choices = append(times.Choices, choice{sp.value, sp.text, asked.Get("since") == sp.value})
	}
	if text := asked.Get("since"); text != "" && !slices.ContainsFunc(times.Choices, func(c choice) bool { return c.Value == text }) {
		times.Choices = append(times.Choices, choice{text, "since " + text, true})
	}
	v.Filters = append(v.Filters, times)
	if !from.IsZero() {
		books, v.Filtered = slices.DeleteFunc(slices.Clone(books), func(b book) bool { return b.made.Before(from) }), true
	}
	v.More = max(0, len(books)-mostRows)
	for _, b := range books[:min(len(books), mostRows)] {
		v.Rows = append(v.Rows, rowOf(b))
	}
	v.Rows, v.Filters, v.Trouble = shownRows(v.Rows), report.Shown(v.Filters), report.Shown(v.Trouble)
	doc.policy = strings.Replace(doc.policy, "form-action 'none'", "form-action 'self'", 1)
	return s.fill(doc, "list.html.tmpl", v)
}

// shownRows leaves links, which are escaped already, as they are.
func shownRows(rows []row) []row {
	out := report.Shown(rows)
	for i := range out {
		out[i].Link = rows[i].Link
	}
	return out
}

func scenarioOf(b book) string { return b.manifest.Scenario.Name }

func choices(books []book, name, label, every, chosen string, of func(book) string) filter {
	f := filter{Name: name, Label: label, Choices: []choice{{"", every, false}}}
	var known []string
	for _, b := range books {
		if value := of(b); value != "" && !slices.Contains(known, value) {
			known = append(known, value)
		}
	}
	if chosen != "" && !slices.Contains(known, chosen) {
		known = append(known, chosen)
	}
	slices.Sort(known)
	for _, value := range known {
		f.Choices = append(f.Choices, choice{value, value, value == chosen})
	}
	return f
}

func rowOf(b book) row {
	m := b.manifest
	out := row{
		ID: b.id, Link: linkTo(b.id), Scenario: m.Scenario.DisplayName, Target: m.Target, Status: b.status(), Live: b.live(),
		State: stateOf(b), Made: stamp(b.made), Simulated: m.Simulated, Verdicts: verdicts(m), Problem: b.problem,
	}
	if out.Scenario == "" {
		out.Scenario = m.Scenario.Name
	}
	if !m.Ended.IsZero() && m.Ended.After(m.Created) {
		out.Took = unit.Duration(m.Ended.Sub(m.Created)).String()
	}
	return out
}

// stateOf is the class of a status: fine, caution, blocker or notice.
func stateOf(b book) string {
	switch b.manifest.Status {
	case result.StatusSucceeded:
		return "fine"
	case result.StatusExecuting:
		return "notice"
	case result.StatusStopped, result.StatusInterrupted:
		return "caution"
	}
	return "blocker"
}

func linkTo(id string) template.URL { return template.URL("/runs/" + url.PathEscape(id)) }

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

type runView struct {
	frame
	Run      row
	Summary  string
	Mind     []string
	Facts    []fact
	Short    []report.Short
	Problems []string
	Progress *progress
	Drawings []report.Drawing
	Events   []event
	Still    bool // it is not made anew
	Report   template.URL
	From, To string // of its metrics
	NoReport string
}

type fact struct{ Name, Value string }

type event struct{ At, Kind, Text string }

// progress is how far a run is.
type progress struct {
	Phase, Step   string
	Number, Steps int
	Elapsed, Left string
	AtLeast, Late bool
	Percent       int
}

// runPage is the page of one run: of one that goes on what it does, of one that ended what was found.
func (s *Site) runPage(ctx context.Context, r *http.Request, doc *document) error {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		return errMissing(r.PathValue("id"))
	}
	v := &runView{frame: frame{Title: b.id}, Run: rowOf(b)}
	v.Report = v.Run.Link + "/report"
	folder, err := result.Open(b.dir)
	if err != nil {
		v.NoReport = err.Error()
		return s.fillRun(doc, v)
	}
	m := folder.Manifest()
	v.Problems, v.Summary, v.Mind = folder.Problems(), m.Scenario.Summary, report.Mind(m)
	if v.Run.Live = m.Status == result.StatusExecuting; v.Run.Live {
		plain := m
		plain.Status = "" // that it goes on is what the page is about
		v.Mind = report.Mind(plain)
	}
	v.Still = r.URL.Query().Get("still") != ""
	if v.Run.Live && !v.Still {
		v.Refresh = refreshSeconds
	}
	v.facts(b, m)
	events, _, err := folder.Events()
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
	}
	if v.Run.Live {
		s.live(ctx, b, folder, events, v)
	} else if found, err := folder.Findings(); err == nil {
		v.Short = report.InShort(found)
	}
	return s.fillRun(doc, v)
}

func (s *Site) fillRun(doc *document, v *runView) error {
	link, reported, drawings := v.Run.Link, v.Report, v.Drawings // made here, and escaped
	*v = report.Shown(*v)
	v.Run.Link, v.Report, v.Drawings = link, reported, drawings
	return s.fill(doc, "run.html.tmpl", v)
}

// in completes the frame.
func (v *runView) in(s *Site) { v.frame.in(s) }

// in completes the frame.
func (v *listView) in(s *Site) { v.frame.in(s) }

func (v *runView) facts(b book, m result.Manifest) {
	add := func(name, value string) {
		if value != "" {
			v.Facts = append(v.Facts, fact{name, value})
		}
	}
	add("Target", m.Target)
	add("Cluster", m.ClusterName)
	if n := len(m.Nodes); n > 0 {
		add("Nodes", fmt.Sprint(n))
	}
	add("Made", stamp(b.made))
	add("Took", v.Run.Took)
	add("Operator", m.Operator)
	add("Program", m.Program)
	add("Folder", b.dir)
	if !m.Created.IsZero() {
		v.From = m.Created.UTC().Format(time.RFC3339)
		if v.Run.Live {
			v.To = "now"
		} else if !m.Ended.IsZero() {
			v.To = m.Ended.UTC().Format(time.RFC3339)
		}
	}
}

// mostEvents is how many of the newest entries of a journal are shown.
const mostEvents = 12

// live adds what a run does now.
func (s *Site) live(ctx context.Context, b book, folder *result.Folder, events []result.Event, v *runView) {
	m := folder.Manifest()
	now := s.now()
	if n := len(events); m.Simulated && n > 0 {
		now = events[n-1].Time // its time is not that of this machine
	}
	v.Progress = progressOf(folder, m, events, now)
	for i := len(events) - 1; i >= 0 && len(v.Events) < mostEvents; i-- {
		e := events[i]
		text := strings.TrimSpace(strings.Join([]string{e.Name, e.Text, e.Error}, " "))
		v.Events = append(v.Events, event{e.Time.UTC().Format("15:04:05"), strings.ReplaceAll(e.Kind, "_", " "), text})
	}
	data, err := s.soFar(ctx, b, folder)
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
		return
	}
	v.Problems = append(v.Problems, data.Problems...)
	v.Drawings = report.Drawings(data.Panels, data.Events, data.Start)
}

// soFar is what can be shown of a run that goes on.
func (s *Site) soFar(ctx context.Context, b book, folder *result.Folder) (*result.Data, error) {
	opened, err := s.shelf.stores.take(ctx, b)
	if err != nil {
		// Before the first point there may be no database that can be opened.
		data, dataErr := collect.SoFar(ctx, folder, nil)
		if dataErr != nil {
			return nil, errors.Join(err, dataErr)
		}
		data.Problems = append(data.Problems, err.Error())
		return data, nil
	}
	defer s.shelf.stores.release(opened)
	return opened.soFar(ctx, folder)
}

// progressOf reads from plan and journal how far a run is.
func progressOf(folder *result.Folder, m result.Manifest, events []result.Event, now time.Time) *progress {
	p := &progress{}
	var plan struct {
		Steps []struct {
			Number   int     `json:"number"`
			Text     string  `json:"text"`
			Estimate float64 `json:"estimate_seconds"`
			Unknown  bool    `json:"estimate_unknown"`
		} `json:"steps"`
	}
	if raw, err := folder.Plan(); err == nil {
		_ = json.Unmarshal(raw, &plan) // what is wrong with a plan is said where it is shown
	}
	p.Steps = len(plan.Steps)
	began := now
	for _, e := range events {
		switch e.Kind {
		case result.KindPhase:
			p.Phase = e.Phase
		case result.KindStepStart:
			p.Number, p.Step, began = e.Step, e.Text, e.Time
			if p.Step == "" {
				p.Step = e.Name
			}
		}
	}
	left := 0.0
	for _, step := range plan.Steps {
		switch {
		case step.Number < p.Number:
			continue
		case step.Number == p.Number:
			left += max(0, step.Estimate-now.Sub(began).Seconds())
		default:
			left += step.Estimate
		}
		p.AtLeast = p.AtLeast || step.Unknown
	}
	elapsed := max(0, now.Sub(m.Created))
	p.Elapsed = unit.Duration(elapsed.Round(time.Second)).String()
	p.Late = len(plan.Steps) > 0 && left < 1
	if len(plan.Steps) > 0 && !p.Late && left < 1e9 {
		p.Left = unit.Duration(time.Duration(left * float64(time.Second)).Round(time.Second)).String()
		p.Percent = int(100 * elapsed.Seconds() / max(elapsed.Seconds()+left, 1))
	}
	return p
}

// reportPage is the run's report, made of its folder: a page that lies in the folder could be anybody's.
func (s *Site) reportPage(ctx context.Context, r *http.Request, doc *document) error {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		return errMissing(r.PathValue("id"))
	}
	folder, err := result.Open(b.dir)
	if err != nil {
		return err
	}
	var built *report.Document
	if folder.Manifest().Status == result.StatusExecuting {
		built, err = s.liveReport(ctx, b, folder)
	} else {
		built, err = report.Build(folder)
	}
	if err != nil {
		return err
	}
	doc.policy = "frame-ancestors 'none'" // the page has a policy of its own, with the sum of its script
	return report.HTML(&doc.body, built)
}

func (s *Site) liveReport(ctx context.Context, b book, folder *result.Folder) (*report.Document, error) {
	data, err := s.soFar(ctx, b, folder)
	if err != nil {
		return nil, err
	}
	in := report.Input{Manifest: folder.Manifest(), Data: data, Problems: folder.Problems()}
	if in.Events, _, err = folder.Events(); err != nil {
		in.Problems = append(in.Problems, err.Error())
	}
	if in.Plan, err = folder.Plan(); err != nil {
		in.Problems = append(in.Problems, err.Error())
	}
	return report.New(in), nil
}
