package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
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

// rowsOfPage is how many rows a page of the list has.
const rowsOfPage = 100

// row is a run in the list.
type row struct {
	ID, Scenario, Target, Status, State string
	Link                                template.URL
	Made                                time.Time
	Took, Name                          string
	Tags                                []string
	Figure, Note, Failed                string
	Simulated, Live, Experiment, Inside bool // Inside: it is a run of an experiment
	Verdicts                            []verdict
	Problem                             string
	Peek                                report.Peek // of an experiment
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
	Running     []running
	Rows        []row
	Action      string
	Filters     []filter
	Search      string
	Filtered    bool
	All, Fit    int // runs there are, and that fit the filters
	First, Last int // numbers of the first and last row
	Order       string
	Newer, More template.URL // the pages before and after
	Trouble     string
	Unread      string // runs that are being read, counted
}

// running is a run that goes on, as the home page shows it.
type running struct {
	Row      row
	Progress *progress
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

// orders are what a list can be sorted by; of equal ones the newest is first.
var orders = []struct {
	value, text, said string
	compare           func(x, y *book) int
}{
	{"", "newest first", "newest first", newestFirst},
	{"oldest", "oldest first", "oldest first", func(x, y *book) int { return newestFirst(y, x) }},
	{"scenario", "by scenario", "by scenario", func(x, y *book) int { return strings.Compare(x.title(), y.title()) }},
	{"name", "by name", "by name, those without one last", func(x, y *book) int {
		if (x.labels.Name == "") != (y.labels.Name == "") {
			return strings.Compare(y.labels.Name, x.labels.Name)
		}
		return strings.Compare(x.labels.Name, y.labels.Name)
	}},
	{"longest", "longest first", "longest first", func(x, y *book) int { return cmp.Compare(y.took(), x.took()) }},
	{"status", "by status", "by status", func(x, y *book) int { return strings.Compare(x.status(), y.status()) }},
}

// listPage is the home page: what runs now, and the list of runs and experiments.
func (s *Site) listPage(_ context.Context, r *http.Request, doc *document) error {
	every, left, err := s.shelf.soon()
	experiments, bad := s.experiments()
	own := map[string]bool{} // folders of experiments, whose rows have their runs
	for _, e := range experiments {
		own[filepath.Clean(e.Dir)] = true
	}
	books := make([]*book, 0, len(every)+len(experiments))
	var live []*book
	for _, b := range every {
		if b.live() {
			live = append(live, b)
		}
		if !own[b.above] {
			books = append(books, b)
		}
	}
	for _, e := range experiments {
		books = append(books, e.book())
	}
	v := &listView{frame: frame{Title: "Runs"}, Action: "/", All: len(books)}
	if err = errors.Join(err, bad); err != nil {
		v.Trouble = err.Error()
	}
	if left > 0 {
		v.All, v.Unread = v.All+left, unit.Thousands(int64(left))
	}
	asked := r.URL.Query()
	v.Trouble = strings.TrimSpace(v.Trouble + unknownWords(asked, listWords))
	books = v.filter(books, asked, s.now())
	if v.Fit = len(books); !v.Filtered {
		v.Running = runningOf(live, s.now())
	}
	sorting := filter{Name: "sort", Label: "Order"}
	order := orders[0]
	for _, o := range orders {
		chosen := o.value == asked.Get("sort")
		if sorting.Choices = append(sorting.Choices, choice{o.value, o.text, chosen}); chosen {
			order = o
		}
	}
	v.Filters, v.Order = append(v.Filters, sorting), order.said
	slices.SortFunc(books, func(x, y *book) int { return cmp.Or(order.compare(x, y), newestFirst(x, y)) })
	from, to, newer, more := paged("/", asked, len(books))
	v.First, v.Rows = from+1, s.rowsOf(books[from:to])
	v.Last = from + len(v.Rows)
	runs, rows := v.Running, v.Rows // links that are escaped already
	*v = report.Shown(*v)
	v.Newer, v.More = newer, more
	for i := range runs {
		v.Running[i].Row.Link = runs[i].Row.Link
	}
	for i := range rows {
		v.Rows[i].Link, v.Rows[i].Peek = rows[i].Link, rows[i].Peek
	}
	doc.policy = formsHere(doc.policy)
	return s.fill(doc, "list.html.tmpl", v)
}

// listWords are what the address of the list may ask for.
var listWords = []string{"q", "scenario", "target", "status", "tag", "since", "sort", "page"}

// filter are the runs that fit what is asked for.
func (v *listView) filter(books []*book, asked url.Values, now time.Time) []*book {
	keep := func(fits func(*book) bool) {
		books, v.Filtered = slices.DeleteFunc(books, func(b *book) bool { return !fits(b) }), true
	}
	for _, f := range []struct {
		name, label, every string
		of                 func(*book) string
	}{
		{"scenario", "Scenario", "all scenarios", scenarioOf},
		{"target", "Target", "all targets", func(b *book) string { return b.manifest.Target }},
		{"status", "Status", "any status", (*book).status},
	} {
		v.Filters = append(v.Filters, choices(books, f.name, f.label, f.every, asked.Get(f.name),
			func(b *book) []string { return []string{f.of(b)} }))
		if want := asked.Get(f.name); want != "" {
			keep(func(b *book) bool { return f.of(b) == want })
		}
	}
	tag := asked.Get("tag")
	v.Filters = append(v.Filters, choices(books, "tag", "Tag", "any tag", tag, func(b *book) []string {
		return b.labels.Tags
	}))
	if tag != "" {
		keep(func(b *book) bool { return slices.Contains(b.labels.Tags, tag) })
	}
	if v.Search = strings.TrimSpace(asked.Get("q")); v.Search != "" {
		keep(func(b *book) bool { return b.has(v.Search) })
	}
	since := asked.Get("since")
	times := filter{Name: "since", Label: "Made", Choices: []choice{{"", "at any time", false}}}
	for _, sp := range spans {
		times.Choices = append(times.Choices, choice{sp.value, sp.text, since == sp.value})
	}
	offered := func(c choice) bool { return c.Value == since }
	if !slices.ContainsFunc(times.Choices, offered) {
		times.Choices = append(times.Choices, choice{since, "since " + since, true})
	}
	v.Filters = append(v.Filters, times)
	if since != "" {
		from, err := Since(since, now)
		if err != nil {
			v.Trouble = strings.TrimSpace(v.Trouble + " since: " + err.Error())
			return books
		}
		keep(func(b *book) bool { return !b.made.Before(from) })
	}
	return books
}

// mostRunning is how many runs that go on the home page shows; the list has all.
const mostRunning = 12

// runningOf are the runs that go on, with how far they are.
func runningOf(live []*book, now time.Time) (out []running) {
	for _, b := range live[:min(len(live), mostRunning)] {
		one := running{Row: rowOf(*b)}
		if folder, err := result.Open(b.dir); err == nil {
			m := folder.Manifest()
			if events, _, err := folder.Events(); err == nil {
				one.Progress = progressOf(folder, m, events, now)
			}
		}
		out = append(out, one)
	}
	return out
}

// rowsOf are the rows of some runs and experiments.
func (s *Site) rowsOf(books []*book) []row {
	var listed []Experiment
	for _, b := range books {
		if b.experiment != nil {
			listed = append(listed, *b.experiment)
		}
	}
	peeks := s.peekAt(listed)
	rows := make([]row, 0, len(books))
	for _, b := range books {
		one := rowOf(*b)
		if b.experiment != nil {
			one.Peek = peeks[b.dir]
			if one.Figure = one.Peek.Figure; s.lib.Examine != nil && one.Peek.Sentence == "" {
				one.Figure = "being read; it is here in a moment"
			}
		} else if !b.live() {
			one.Problem = s.problemOf(*b)
			if one.Problem != b.problem && one.Figure != "" {
				one.Figure = "Not to be relied on: " + strings.TrimPrefix(one.Figure, "Not to be relied on: ")
			}
		}
		rows = append(rows, one)
	}
	return rows
}

// shownRows leaves links, which are escaped already, as they are.
func shownRows(rows []row) []row {
	out := report.Shown(rows)
	for i := range out {
		out[i].Link = rows[i].Link
	}
	return out
}

func scenarioOf(b *book) string { return b.manifest.Scenario.Name }

// mostChoices is how many values a filter offers; an address can ask for any.
const mostChoices = 200

func choices[T any](list []T, name, label, every, chosen string, of func(T) []string) filter {
	f := filter{Name: name, Label: label, Choices: []choice{{"", every, false}}}
	known := map[string]bool{}
	for _, one := range list {
		for _, value := range of(one) {
			known[value] = true
		}
	}
	delete(known, "")
	delete(known, chosen)
	values := slices.Sorted(maps.Keys(known))
	values = values[:min(len(values), mostChoices)]
	if chosen != "" {
		at, _ := slices.BinarySearch(values, chosen)
		values = slices.Insert(values, at, chosen)
	}
	for _, value := range values {
		f.Choices = append(f.Choices, choice{value, value, value == chosen})
	}
	return f
}

// has reports whether all words of a search stand somewhere in what is known of a run, in any case of letters.
func (b *book) has(search string) bool {
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
		ID: b.id, Link: linkTo(b.id), Scenario: b.title(), Target: m.Target, Status: b.status(),
		Live:  b.live(),
		State: stateOf(b), Made: b.made, Simulated: m.Simulated, Verdicts: verdicts(m), Problem: b.problem,
		Name: b.labels.Name, Tags: b.labels.Tags, Note: b.labels.Note,
	}
	if out.Live {
		out.Status, out.Verdicts = "running", nil // of a run that goes on all of them are pending
	}
	if n := len(m.FailedAsserts); n > 0 {
		out.State, out.Failed = "invalid", unit.Plural(n, "threshold")+" failed: "+strings.Join(m.FailedAsserts, "; ")
	}
	if m.Headline != nil {
		out.Figure = report.SayAnswer(*m.Headline)
	}
	if took := b.took(); took > 0 {
		out.Took = unit.Duration(took).String()
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

// titled names a run or an experiment among the tabs of a browser, what they differ in first.
func titled(r row) string {
	return strings.Join(slices.Compact([]string{cmp.Or(r.Name, r.Scenario, r.ID), r.ID}), ", ")
}

func linkTo(id string) template.URL { return template.URL("/runs/" + url.PathEscape(id)) }
