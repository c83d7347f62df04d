package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/report"
	"plimsoll/result"
	"plimsoll/unit"
)

// mostRows bounds the list of runs; filters find the others.
const mostRows = 500

// row is a run in the list.
type row struct {
	ID, Scenario, Target, Status, State string
	Link                                template.URL
	Made, Took, Labels                  string
	Figure, Note, Failed                string
	Simulated, Live, Experiment, Inside bool // Inside: it is a run of an experiment
	Verdicts                            []verdict
	Problem                             string
}

type verdict struct {
	Question string
	result.Verdict
}

func verdicts(m result.Manifest) []verdict {
	return []verdict{
		{"run", m.Measured}, {"collection", m.Collected}, {"cleanup", m.Cleaned},
	}
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
	Search   string
	Filtered bool
	All      int // runs there are
	More     int // that fit and are not shown
	Trouble  string
}

// in completes the frame.
func (v *listView) in(s *Site) { v.frame.in(s) }

// spans are what the filter since offers.
var spans = []struct {
	value, text string
	length      time.Duration
}{
	{"1h", "the last hour", time.Hour},
	{"1d", "the last day", 24 * time.Hour},
	{"7d", "the last week", 7 * 24 * time.Hour},
	{"30d", "the last 30 days", 30 * 24 * time.Hour},
}

// Since is the moment that the parameter of that name means: one of the spans before now, or a date.
func Since(text string, now time.Time) (time.Time, error) {
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
	const objection = "%q is no date like 2026-11-22 and no time like 12h or 7d"
	return time.Time{}, fmt.Errorf(objection, visible.Cut(text, 100))
}

// listPage is the list of runs.
func (s *Site) listPage(_ context.Context, r *http.Request, doc *document) error {
	books, err := s.shelf.all()
	experiments, bad := s.experiments()
	own := map[string]bool{} // folders of experiments, whose pages have their runs
	for _, e := range experiments {
		own[filepath.Clean(e.Dir)] = true
	}
	books = slices.DeleteFunc(slices.Clone(books), func(b book) bool { return own[filepath.Dir(filepath.Dir(b.dir))] })
	for _, e := range experiments {
		books = append(books, e.book())
	}
	slices.SortStableFunc(books, func(x, y book) int { return y.made.Compare(x.made) })
	v := &listView{frame: frame{Title: "Runs"}, All: len(books)}
	if err = errors.Join(err, bad); err != nil {
		v.Trouble = err.Error()
	}
	asked := r.URL.Query()
	from := time.Time{}
	if text := asked.Get("since"); text != "" {
		if from, err = Since(text, s.now()); err != nil {
			v.Trouble = "since: " + err.Error()
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
			books, v.Filtered = slices.DeleteFunc(slices.Clone(books),
				func(b book) bool { return f.of(b) != want }), true
		}
	}
	if v.Search = strings.TrimSpace(asked.Get("q")); v.Search != "" {
		books, v.Filtered = slices.DeleteFunc(slices.Clone(books), func(b book) bool { return !b.has(v.Search) }), true
	}
	times := filter{Name: "since", Label: "Made", Choices: []choice{{"", "at any time", false}}}
	for _, sp := range spans {
		times.Choices = append(times.Choices, choice{sp.value, sp.text, asked.Get("since") == sp.value})
	}
	offered := func(c choice) bool { return c.Value == asked.Get("since") }
	if text := asked.Get("since"); !slices.ContainsFunc(times.Choices, offered) {
		times.Choices = append(times.Choices, choice{text, "since " + text, true})
	}
	v.Filters = append(v.Filters, times)
	if !from.IsZero() {
		books, v.Filtered = slices.DeleteFunc(slices.Clone(books),
			func(b book) bool { return b.made.Before(from) }), true
	}
	v.More = max(0, len(books)-mostRows)
	for _, b := range books[:min(len(books), mostRows)] {
		v.Rows = append(v.Rows, rowOf(b))
	}
	v.Rows, v.Filters, v.Trouble = shownRows(v.Rows), report.Shown(v.Filters), report.Shown(v.Trouble)
	v.Search = report.Shown(v.Search)
	doc.policy = formsHere(doc.policy)
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

// has reports whether all words of a search stand somewhere in what is known of a run, in any case of letters.
func (b book) has(search string) bool {
	m := b.manifest
	text := strings.ToLower(strings.Join(append([]string{b.id, m.Scenario.Name, m.Scenario.DisplayName, m.Target,
		m.ClusterName, m.Operator, b.labels.Name, b.labels.Note}, b.labels.Tags...), "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func rowOf(b book) row {
	if b.experiment != nil {
		return experimentRow(*b.experiment)
	}
	m := b.manifest
	out := row{
		ID: b.id, Link: linkTo(b.id), Scenario: m.Scenario.DisplayName, Target: m.Target, Status: b.status(),
		Live:  b.live(),
		State: stateOf(b), Made: stamp(b.made), Simulated: m.Simulated, Verdicts: verdicts(m), Problem: b.problem,
		Labels: labelsOf(b.labels), Note: b.labels.Note,
	}
	if n := len(m.FailedAsserts); n > 0 {
		out.State, out.Failed = "invalid", unit.Plural(n, "threshold")+" failed: "+strings.Join(m.FailedAsserts, "; ")
	}
	if m.Headline != nil {
		out.Figure = report.SayHeadline(*m.Headline)
	}
	if out.Scenario == "" {
		out.Scenario = m.Scenario.Name
	}
	if !m.Ended.IsZero() && m.Ended.After(m.Created) {
		out.Took = unit.Duration(m.Ended.Sub(m.Created)).String()
	}
	return out
}

// stateOf is the class of a status: passed, warning, invalid or info.
func stateOf(b book) string {
	switch b.manifest.Status {
	case result.StatusSucceeded:
		return "passed"
	case result.StatusExecuting:
		return "info"
	case result.StatusStopped, result.StatusInterrupted:
		return "warning"
	}
	return "invalid"
}

func linkTo(id string) template.URL { return template.URL("/runs/" + url.PathEscape(id)) }

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}
