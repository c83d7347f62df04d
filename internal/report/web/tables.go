package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/analysis/history"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/catalogue"
	"plimsoll/unit"
)

// tablesView is a page of tables, with drawings before them.
type tablesView struct {
	frame
	Lead     string
	Facts    []fact
	Action   string // of its form; "" where it has none
	Search   string
	Filters  []filter
	Filtered bool
	Trouble  string
	Parts    []part
	Newer    template.URL
	More     template.URL
	Empty    string // what is said where no part has a row
}

// part is a table.
type part struct {
	Title, Note, Caption string
	Drawings             []report.Drawing
	Head                 []column
	Rows                 [][]cell
	Alike                template.URL // where the records are that did the same; ""
}

// column is one of a table: Number stands on the right, Opt is left out on a phone.
type column struct {
	Name        string
	Number, Opt bool
}

type cell struct {
	Text, Under string
	Link        template.URL
}

// in completes the frame.
func (v *tablesView) in(s *Site) {
	v.frame.in(s)
	v.Search, v.Trouble, v.Filters = report.Shown(v.Search), report.Shown(v.Trouble), report.Shown(v.Filters)
	v.Facts, v.Lead = report.Shown(v.Facts), report.Shown(v.Lead)
	for i := range v.Parts {
		p := &v.Parts[i]
		p.Title, p.Note, p.Caption, p.Head = report.Shown(p.Title), report.Shown(p.Note), report.Shown(p.Caption),
			report.Shown(p.Head)
		for _, r := range p.Rows {
			for j := range r {
				r[j].Text, r[j].Under = report.Shown(r[j].Text), report.Shown(r[j].Under)
			}
		}
	}
}

// tables adds the paths of what is kept beside the runs.
func (s *Site) tables(mux *http.ServeMux) {
	mux.HandleFunc("GET /catalogue", s.page(s.cataloguePage))
	mux.HandleFunc("GET /catalogue/{id}", s.page(s.recordPage))
	mux.HandleFunc("GET /history", s.page(s.historiesPage))
	mux.HandleFunc("GET /history/{name}", s.page(s.historyPage))
}

// asks are the searches and orders of a page of tables: it objects to what it does not know, and turns its pages.
func (v *tablesView) asks(asked url.Values, orders []choice, words ...string) (order string) {
	v.Search, v.Filtered = strings.TrimSpace(asked.Get("q")), v.Search != ""
	order = asked.Get("sort")
	f := filter{Name: "sort", Label: "Order", Choices: orders}
	for i := range orders {
		orders[i].Chosen = orders[i].Value == order
	}
	v.Filters = append(v.Filters, f)
	v.Trouble = strings.TrimSpace(v.Trouble + unknownWords(asked, append(words, "q", "sort", "page")))
	for name := range asked {
		v.Filtered = v.Filtered || name != "sort" && name != "page" && asked.Get(name) != ""
	}
	return order
}

// unknownWords objects to what the address of a list asks for and the list does not know.
func unknownWords(asked url.Values, known []string) (objection string) {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !slices.Contains(known, name) {
			objection += fmt.Sprintf(" The list has no filter %q; it has %s.", visible.Cut(name, 100),
				strings.Join(known, ", "))
		}
	}
	return objection
}

// paged is which of n rows the page that is asked for has, and where the pages before and after it are.
func paged(path string, asked url.Values, n int) (from, to int, newer, more template.URL) {
	page, _ := strconv.Atoi(asked.Get("page")) // of no number, the first
	page = max(1, min(page, (n+rowsOfPage-1)/rowsOfPage))
	link := func(n int) template.URL {
		to := maps.Clone(asked)
		to.Set("page", strconv.Itoa(n))
		return template.URL(path + "?" + to.Encode())
	}
	if page > 1 {
		newer = link(page - 1)
	}
	if from, to = (page-1)*rowsOfPage, min(n, page*rowsOfPage); to < n {
		more = link(page + 1)
	}
	return from, to, newer, more
}

// asked are the records that a request asks for.
func (s *Site) asked(asked url.Values, words []string) (list []catalogue.Record, problems []error, err error) {
	list = catalogue.Published()
	if s.records != "" {
		list, problems = catalogue.All(s.records)
	}
	simulated, err := strconv.ParseBool(cmp.Or(asked.Get("simulated"), "false"))
	if err != nil {
		return nil, nil, errAsked("Parameter simulated is true or false.")
	}
	fits := func(name, value string) bool { return asked.Get(name) == "" || asked.Get(name) == value }
	list = slices.DeleteFunc(slices.Clone(list), func(r catalogue.Record) bool {
		return !r.Has(words) || !fits("system", r.System) || !fits("source", r.Source) ||
			asked.Get("simulated") != "" && r.Simulated != simulated ||
			asked.Get("load") != "" && !slices.Contains(r.Kinds(), asked.Get("load")) ||
			asked.Get("alike") != "" && r.Did(asked.Get("alike")) == nil
	})
	return list, problems, nil
}

// columnsOf are how many figures a list of records that did the same has.
const columnsOf = 4

// cataloguePage lists recorded systems; of those that did the same load it has the figures, too.
func (s *Site) cataloguePage(_ context.Context, r *http.Request, doc *document) error {
	asked := r.URL.Query()
	list, problems, err := s.asked(asked, strings.Fields(asked.Get("q")))
	if err != nil {
		return err
	}
	v := &tablesView{frame: frame{Title: "Recorded systems"}, Action: "/catalogue",
		Empty: "No record fits these filters.",
		Lead:  "What systems gave for a load: published figures with their source, and what plimsoll catalogue add recorded."}
	if err := errors.Join(problems...); err != nil {
		v.Trouble = err.Error()
	}
	every, _, _ := s.asked(nil, nil)
	alike := asked.Get("alike")
	if alike == "" {
		v.Filters = []filter{choices(every, "load", "Load", "all loads", asked.Get("load"), catalogue.Record.Kinds)}
	}
	v.Filters = append(v.Filters, choices(every, "source", "Source", "all sources", asked.Get("source"),
		func(r catalogue.Record) []string { return []string{r.Source} }))
	head := []column{{Name: "System"}}
	var figures []catalogue.Figure // of those that did the same
	orders := []choice{{"", "by system", false}, {"newest", "newest first", false}, {"source", "by source", false}}
	if alike != "" {
		v.Alike, v.Lead = alike, "Did the same: "+alike+"."
		for _, one := range list {
			for _, f := range one.Did(alike).Figures {
				if len(figures) < columnsOf && !slices.ContainsFunc(figures, f.Same) {
					figures, head = append(figures, f), append(head, column{Name: f.Name, Number: true})
					orders = append(orders, choice{f.Name, "by " + f.Name, false})
				}
			}
		}
	} else {
		head = append(head, column{Name: "Loads"})
	}
	order := v.asks(asked, orders, "load", "source", "system", "simulated", "alike")
	figure := func(r catalogue.Record, of catalogue.Figure) (f catalogue.Figure, has bool) {
		did := r.Did(alike)
		if i := slices.IndexFunc(did.Figures, of.Same); i >= 0 {
			return did.Figures[i], true
		}
		return f, false
	}
	slices.SortStableFunc(list, func(x, y catalogue.Record) int {
		before := strings.Compare(strings.ToLower(x.System), strings.ToLower(y.System))
		switch i := slices.IndexFunc(figures, func(f catalogue.Figure) bool { return f.Name == order }); {
		case i >= 0:
			a, has := figure(x, figures[i])
			b, too := figure(y, figures[i])
			if has != too {
				return map[bool]int{true: -1, false: 1}[has]
			}
			way := cmp.Compare(b.Value, a.Value)
			if figures[i].Better == "lower" {
				way = -way
			}
			return cmp.Or(way, before)
		case order == "newest":
			return cmp.Or(y.Date.Compare(x.Date), before)
		case order == "source":
			return cmp.Or(strings.Compare(x.Source, y.Source), before)
		}
		return before
	})
	from, to, newer, more := paged("/catalogue", asked, len(list))
	v.Newer, v.More = newer, more
	p := part{Head: append(head, column{Name: "Date", Number: true, Opt: true}, column{Name: "Source", Opt: true}),
		Caption: counted(from, to, len(list), len(every), "record", "records")}
	for _, one := range list[from:to] {
		row := []cell{systemOf(one)}
		for _, of := range figures {
			c := cell{Text: "–"}
			if f, has := figure(one, of); has {
				c = cell{Text: report.Quantity(f.Value, f.Unit), Under: intervalOf(f)}
			}
			row = append(row, c)
		}
		if alike == "" {
			row = append(row, cell{Text: strings.Join(one.Kinds(), "; ")})
		}
		p.Rows = append(p.Rows, append(row, cell{Text: dayOf(one.Date)}, cell{Text: one.Source}))
	}
	v.Parts = []part{p}
	doc.policy = formsHere(doc.policy)
	return s.fill(doc, "tables.html.tmpl", v)
}

// counted is which rows of how many a table shows.
func counted(from, to, fit, all int, one, several string) string {
	text := unit.Thousands(int64(fit))
	if to-from < fit {
		text = fmt.Sprintf("%d to %d of %s", from+1, to, text)
	}
	if fit != all {
		text += " of " + unit.Thousands(int64(all))
	}
	if all == 1 {
		return text + " " + one
	}
	return text + " " + several
}

func systemOf(r catalogue.Record) cell {
	c := cell{Text: r.System, Under: r.Note, Link: template.URL("/catalogue/" + url.PathEscape(r.ID))}
	if r.Simulated {
		c.Under = strings.TrimSpace("simulated " + r.Note)
	}
	return c
}

func dayOf(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Format(time.DateOnly)
}

// intervalOf is the interval of a figure, "" where it has none.
func intervalOf(f catalogue.Figure) string {
	if f.Low == nil || f.High == nil {
		return ""
	}
	return report.Quantity(*f.Low, f.Unit) + " to " + report.Quantity(*f.High, f.Unit)
}

// recordPage is one record with all that it gave.
func (s *Site) recordPage(_ context.Context, r *http.Request, doc *document) error {
	list, _, err := s.asked(nil, nil)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	i := slices.IndexFunc(list, func(r catalogue.Record) bool { return r.ID == id })
	if i < 0 {
		return errNone{"record", id}
	}
	one := list[i]
	v := &tablesView{frame: frame{Title: one.System}, Lead: one.Note}
	add := func(name, value string, link string) {
		if value != "" {
			v.Facts = append(v.Facts, fact{Name: name, Value: value, Link: template.URL(link)})
		}
	}
	about := slices.IndexFunc(catalogue.Sources(), func(o catalogue.Source) bool { return o.Name == one.Source })
	if about >= 0 {
		from := catalogue.Sources()[about]
		add("Source", from.Name+": "+from.About, from.Address)
		add("Licence", from.Licence, "")
	} else {
		add("Recorded by", one.Source, "")
	}
	add("Date", dayOf(one.Date), "")
	if _, served := s.shelf.find(one.ID); served {
		add("Run", one.ID, string(linkTo(one.ID)))
	} else {
		add("Identity", one.ID, "")
	}
	if one.Simulated {
		add("Simulated", "yes: it stands beside simulated ones alone", "")
	}
	withIntervals := slices.ContainsFunc(one.Done, func(d catalogue.Done) bool {
		return slices.ContainsFunc(d.Figures, func(f catalogue.Figure) bool { return intervalOf(f) != "" })
	})
	for _, d := range one.Done {
		for i, l := range d.Loads {
			p := part{Title: titleOf(l, one.Done), Note: "Conditions: " + l.String() + ".",
				Alike: linkToAlike(l.String())}
			if i > 0 {
				p.Title, p.Note = "The same as "+p.Title, p.Note+" Figures are those above."
				v.Parts = append(v.Parts, p)
				continue
			}
			p.Head = []column{{Name: "Figure"}, {Name: "Value", Number: true}}
			if withIntervals {
				p.Head = append(p.Head, column{Name: "Interval", Number: true})
			}
			p.Head = append(p.Head, column{Name: "Better", Opt: true})
			for _, f := range d.Figures {
				row := []cell{{Text: f.Name}, {Text: report.Quantity(f.Value, f.Unit)}}
				if withIntervals {
					row = append(row, cell{Text: cmp.Or(intervalOf(f), "–")})
				}
				p.Rows = append(p.Rows, append(row, cell{Text: cmp.Or(string(f.Better), "–")}))
			}
			v.Parts = append(v.Parts, p)
		}
	}
	return s.fill(doc, "tables.html.tmpl", v)
}

// titleOf is a load with the conditions by which others of its kind in a record are told from it.
func titleOf(l catalogue.Load, done []catalogue.Done) string {
	differ := catalogue.Load{"load": l["load"]}
	for _, d := range done {
		for _, other := range d.Loads[:min(1, len(d.Loads))] {
			for name, value := range l {
				if other["load"] == l["load"] && other[name] != value {
					differ[name] = value
				}
			}
		}
	}
	return differ.String()
}

// historyEntry is a history as a list shows it.
type historyEntry struct {
	Name     string   `json:"name"`
	Results  int      `json:"results"`
	Last     string   `json:"last"` // label of the last result
	Measures []string `json:"measures"`
	Known    int      `json:"known_changes"`
	Problem  string   `json:"problem,omitempty"`
}

func (s *Site) histories() ([]historyEntry, error) {
	if s.lib.Histories == nil {
		return nil, nil
	}
	names, err := s.lib.Histories()
	list := make([]historyEntry, 0, len(names))
	for _, name := range names {
		e := historyEntry{Name: name, Measures: []string{}}
		if h, err := s.lib.History(name); err != nil {
			e.Problem = err.Error()
		} else {
			e.Results, e.Measures, e.Known = len(h.Points), listOf(h.Measures()), len(h.Known)
			if e.Results > 0 {
				e.Last = h.Points[e.Results-1].Label
			}
		}
		list = append(list, e)
	}
	return list, err
}

func (s *Site) historiesJSON(r *http.Request) (any, error) {
	list, err := s.histories()
	if err != nil {
		return nil, err
	}
	return slice(list, r.URL.Query())
}

// historiesPage lists the histories there are.
func (s *Site) historiesPage(_ context.Context, r *http.Request, doc *document) error {
	every, err := s.histories()
	v := &tablesView{frame: frame{Title: "Histories"}, Action: "/history",
		Lead:  "Results over time, and the changes of level in them; plimsoll history add makes them.",
		Empty: "No history fits this search."}
	if err != nil {
		v.Trouble = err.Error()
	}
	if len(every) == 0 {
		v.Empty = "There are no histories yet: plimsoll history add NAME RUN makes one."
	}
	asked := r.URL.Query()
	order := v.asks(asked, []choice{{"", "by name", false}, {"results", "most results first", false},
		{"changes", "most changes first", false}})
	list := slices.DeleteFunc(slices.Clone(every), func(e historyEntry) bool {
		text := strings.ToLower(e.Name + "\n" + e.Last + "\n" + strings.Join(e.Measures, "\n"))
		words := strings.Fields(strings.ToLower(v.Search))
		return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
	slices.SortStableFunc(list, func(x, y historyEntry) int {
		switch order {
		case "results":
			return cmp.Compare(y.Results, x.Results)
		case "changes":
			return cmp.Compare(y.Known, x.Known)
		}
		return strings.Compare(x.Name, y.Name)
	})
	from, to, newer, more := paged("/history", asked, len(list))
	v.Newer, v.More = newer, more
	p := part{Caption: counted(from, to, len(list), len(every), "history", "histories"),
		Head: []column{{Name: "History"}, {Name: "Results", Number: true}, {Name: "Known changes", Number: true},
			{Name: "Measures", Number: true, Opt: true}, {Name: "Last result", Opt: true}}}
	for _, e := range list[from:to] {
		p.Rows = append(p.Rows, []cell{{Text: e.Name, Under: e.Problem, Link: linkToHistory(e.Name)},
			{Text: unit.Thousands(int64(e.Results))}, {Text: fmt.Sprint(e.Known)}, {Text: fmt.Sprint(len(e.Measures))},
			{Text: e.Last}})
	}
	v.Parts = []part{p}
	doc.policy = formsHere(doc.policy)
	return s.fill(doc, "tables.html.tmpl", v)
}

func linkToHistory(name string) template.URL { return template.URL("/history/" + url.PathEscape(name)) }

// historyAnswer is a history with what is told of it.
type historyAnswer struct {
	history.Document
	Results []history.Point `json:"results"`
}

type told struct {
	history.Document
	err error
}

// history reads a history and finds its changes, which takes long where it is: they are kept.
func (s *Site) history(r *http.Request) (a historyAnswer, err error) {
	name := r.PathValue("name")
	if s.lib.History == nil {
		return a, errNone{"history", name}
	}
	h, err := s.lib.History(name)
	if errors.Is(err, fs.ErrNotExist) {
		return a, errNone{"history", name}
	}
	if err != nil {
		return a, err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return a, err
	}
	sum := sha256.Sum256(text)
	known := s.told.marked(name, string(sum[:]), func() told {
		d, err := h.Document(history.Significance)
		return told{d, err}
	})
	return historyAnswer{known.Document, listOf(h.Points)}, known.err
}

func (s *Site) historyJSON(r *http.Request) (any, error) { return s.history(r) }

// mostCharted is of how many measures the page of a history has drawings, those that changed first.
const mostCharted = 12

// historyPage is a history: its changes, its measures over its results, and the results.
func (s *Site) historyPage(_ context.Context, r *http.Request, doc *document) error {
	a, err := s.history(r)
	if err != nil {
		return err
	}
	v := &tablesView{frame: frame{Title: a.History}, Lead: a.Say() + "."}
	changes := part{Title: "Changes", Head: []column{{Name: "Measure"}, {Name: "First result with it"},
		{Name: "Before", Number: true}, {Name: "After", Number: true}, {Name: "Change", Number: true},
		{Name: "What is known"}}}
	of := map[string][]history.Change{}
	for _, c := range a.Changes {
		of[c.Measure] = append(of[c.Measure], c)
		changes.Rows = append(changes.Rows, []cell{{Text: c.Measure}, s.resultOf(c.At),
			{Text: fmt.Sprintf("%.6g", c.Before)},
			{Text: fmt.Sprintf("%.6g", c.After)}, {Text: c.By()}, {Text: c.Standing()}})
	}
	if len(a.Changes) > 0 {
		v.Parts = append(v.Parts, changes)
	}
	measures := (&history.History{Points: a.Results}).Measures()
	slices.SortStableFunc(measures, func(x, y string) int { return cmp.Compare(len(of[y]), len(of[x])) })
	drawn := part{Title: "Measures"}
	for _, m := range measures[:min(len(measures), mostCharted)] {
		drawn.Drawings = append(drawn.Drawings, report.HistoryDrawing(m, a.Results, of[m]))
	}
	if more := len(measures) - len(drawn.Drawings); more > 0 {
		drawn.Note = fmt.Sprintf("%s more without a drawing: %s.", unit.Plural(more, "measure"),
			strings.Join(measures[len(drawn.Drawings):], ", "))
	}
	results := part{Title: "Results", Head: []column{{Name: "Result"}}}
	shown := measures[:min(len(measures), columnsOf)]
	for _, m := range shown {
		results.Head = append(results.Head, column{Name: m, Number: true})
	}
	from, to, newer, more := paged(string(linkToHistory(a.History)), r.URL.Query(), len(a.Results))
	v.Newer, v.More = newer, more
	results.Caption = counted(from, to, len(a.Results), len(a.Results), "result", "results") + ", the last first"
	newest := slices.Clone(a.Results)
	slices.Reverse(newest)
	for _, p := range newest[from:to] {
		row := []cell{s.resultOf(p.Label)}
		for _, m := range shown {
			c := cell{Text: "–"}
			if value, has := p.Values[m]; has {
				c.Text = fmt.Sprintf("%.6g", value)
			}
			row = append(row, c)
		}
		results.Rows = append(results.Rows, row)
	}
	v.Parts = append(v.Parts, drawn, results)
	return s.fill(doc, "tables.html.tmpl", v)
}

// resultOf is the label of a result, which may be a run that is served.
func (s *Site) resultOf(label string) cell {
	c := cell{Text: label}
	if _, served := s.shelf.find(label); served {
		c.Link = linkTo(label)
	}
	return c
}
