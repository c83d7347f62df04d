package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/answer"
	"plimsoll/result"
	"plimsoll/unit"
)

// view is the document arranged for the page.
type view struct {
	*Document
	Policy      string
	Style       template.CSS
	Licence     template.JS
	Script      template.JS
	Island      template.JS
	Interactive bool

	Important   []findingView // everything but what passed, as Ranked
	Passed      []findingView
	Told        []findingView // the summary says them; they are here with their evidence
	Short       []shortView
	Top         *evidenceView // the drawing of what the run was made to find out; not shown again with its finding
	Lead        *panelView    // of a run without such a drawing, what shows the answer's figure; not among the results
	Table       []Figure
	MoreFigures int
	Stand       []standView
	Spreads     []spreadView
	Grouped     bool   // the loads are told as groups, and each of them among all details
	Sides       []side // few windows, side by side
	Windows     []windowRow
	MoreWindows int
	Events      []eventView
	PanelGroups []panelGroup
	Servers     []panelView // what database servers counted
	Machines    []metricView
	Heats       []heatPanel
	Environment []factGroup
	Plan        planView
	Reduced     bool
	Prefix      string // what all VM names begin with; left out in charts
	Earlier     int    // journal entries left out
	More        more

	origin time.Time
	marks  []mark
	charts []*chart
	heats  []*heatView
}

// SectionNoun returns what the tools of all workloads call their parts.
func (v *view) SectionNoun() string {
	const section = "section"
	noun := ""
	for _, w := range v.Workloads {
		for _, l := range w.Streams {
			if one := cmp.Or(l.Noun, section); noun != "" && noun != one {
				return section
			} else {
				noun = one
			}
		}
	}
	return cmp.Or(noun, section)
}

// more counts the rows that a page of a large run leaves out; the JSON report has them.
type more struct{ Workloads, VMs, Steps, Hashes int }

// maxRows bounds the long tables of the page: with a thousand rows each it has tens of thousands of elements, which
// browsers are slow to lay out and tools that check a page do not get through.
const maxRows = 100

// cut keeps the first rows of a long table and returns how many it leaves out.
func cut[T any](rows []T) ([]T, int) {
	n := min(len(rows), maxRows)
	return rows[:n], len(rows) - n
}

type findingView struct {
	result.Finding
	Icon, Word string
	Picture    *evidenceView // shown with what is not in order; nil when there is none
	More       []findingView // others of the same check and severity
}

type shortView struct {
	Short
	Icon, Word string
}

// side is a comparison turned so that windows are columns.
type side struct {
	Workload, Kind string
	Windows        []string
	Change         string // the head of the changes
	Rows           []sideRow
}

type sideRow struct {
	Name    string
	Values  []string
	Change  string
	Changed bool
}

type panelGroup struct {
	Name   string
	Panels []panelView
	More   []panelView // of a large run, shown on demand
}

type panelView struct {
	result.Panel
	Chart     *chartView
	Low, High string
}

// chartView is the place of a chart on the page.
type chartView struct {
	ID    string
	SVG   template.HTML
	Names []string
	Many  bool
	Notes []string
}

// metricView is one measure over all VMs: in total, of each, and of each section of workloads.
type metricView struct {
	Title                 string
	Total, PerVM, Section *chartView
}

type heatPanel struct {
	*heatView
	SVG   template.HTML
	Times []string
	Rows  []heatRow
	Low   string
	High  string
}

type factGroup struct {
	Name  string
	Facts []result.Fact
}

// maxSides bounds how many windows of a workload are set against each other; the percentile tables have all of them.
const maxSides = 6

// mostFigures bounds the table of figures at the top of the page; the percentile tables have all of them. 22 queries
// and what is made of them fit, and so do four workloads of ten rows.
const mostFigures = 40

// mostAlike is of how many subjects the answer of one check stands by itself; the others are among those like it.
const mostAlike = 3

// sideBySide reports whether the windows are few enough to stand as columns beside the summary.
func sideBySide(all []Comparison) bool { return len(all) == 1 && len(all[0].Windows) <= 3 }

// mostPictures bounds the charts of findings; the most important come first.
const mostPictures = 24

// maxJournal bounds the journal on the page, to its end; the JSON report has all of it.
const maxJournal = 200

func newView(doc *Document) *view {
	doc = shown(doc)
	v := &view{Document: doc, origin: doc.Start}
	v.events()
	v.Table, v.MoreFigures = doc.Foremost(mostFigures)
	v.spreads()
	v.Stand = newStand(doc.Beside)
	if broken := doc.NotHeld(); len(broken) > 0 && len(doc.Manifest.FailedAsserts) > 0 &&
		strings.HasPrefix(doc.Manifest.Error, "threshold: ") { // the conditions stand below
		v.Unfinished = "This run failed: of " + unit.Plural(len(doc.Asserts), "condition") + " " +
			strconv.Itoa(len(broken)) + " below did not hold."
	}
	pictures, answers := 0, map[string]int{}
	for _, f := range Ranked(doc.Findings) {
		if failedAssert(f) {
			continue // it stands among the conditions
		}
		fv := findingView{Finding: f, Icon: icons[f.Severity], Word: string(f.Severity)}
		if f.Severity == result.Passed {
			v.Passed = append(v.Passed, fv)
			continue
		}
		like := func(o findingView) bool { return o.Check == f.Check && o.Severity == f.Severity }
		if f.Answers() {
			answers[f.Check]++
		}
		if i := slices.IndexFunc(v.Important, like); i >= 0 && (!f.Answers() || answers[f.Check] > mostAlike) {
			v.Important[i].More = append(v.Important[i].More, fv)
			continue
		}
		if pictures < mostPictures {
			if fv.Picture = newEvidence(f.Chart); fv.Picture != nil {
				pictures++
			}
			if v.Top == nil && fv.Picture != nil && f.Answers() {
				v.Top, fv.Picture = fv.Picture, nil
			}
		}
		if f.Severity != result.Invalid && Said(doc.InShort, f) {
			v.Told = append(v.Told, fv)
			continue
		}
		v.Important = append(v.Important, fv)
	}
	for _, s := range doc.InShort {
		if s.Check == result.AssertCheck && len(doc.Asserts) > 0 {
			continue
		}
		v.Short = append(v.Short, shortView{Short: s, Icon: icons[s.Severity], Word: string(s.Severity)})
	}
	if sideBySide(doc.Comparisons) {
		v.Sides = []side{newSide(doc.Comparisons[0])}
	} else {
		v.Windows, v.MoreWindows = windowTable(doc)
	}
	v.Prefix = commonPrefix(doc.VMs)
	budget := chartPoints
	if n := len(doc.Panels) + 2*len(metrics(doc.Series)) + len(metrics(ofSections(doc.Series))); n > 0 {
		budget = min(budget, allPoints/n)
	}
	v.panels(budget)
	v.lead(budget)
	v.onDemand()
	v.servers(budget)
	v.machines(budget)
	for i, h := range doc.Heat {
		if hv := newHeat(h, fmt.Sprintf("h%d", i), v.origin,
			min(heatColumns, max(allHeatColumns/len(doc.Heat), 20))); hv != nil {
			times, rows := hv.table()
			v.heats = append(v.heats, hv)
			v.Heats = append(v.Heats, heatPanel{heatView: hv, SVG: hv.svg(), Times: times, Rows: rows, Low: plain(1),
				High: plain(float64(hv.Most))})
		}
	}
	v.environment()
	v.Plan = newPlan(doc.Plan)
	v.cutTables()
	if n := len(doc.Journal); n > maxJournal {
		v.Earlier = n - maxJournal
		v.Journal = doc.Journal[v.Earlier:]
	}
	return v
}

// Said reports whether a summary has what a finding says first, with or without its interval.
func Said(summary []Short, f result.Finding) bool {
	first := answer.Head(answer.First(f))
	first = cmp.Or(strings.TrimRight(first, ".)"), first)
	return first != "" &&
		slices.ContainsFunc(summary, func(s Short) bool { return strings.Contains(s.Sentence, first) })
}

// cutTables leaves the long tables' ends out; what is of whole groups comes first then, and what did not end as
// planned.
func (v *view) cutTables() {
	if len(v.Workloads) > maxRows {
		v.Workloads = slices.Clone(v.Workloads)
		slices.SortStableFunc(v.Workloads, func(a, b WorkloadSummary) int {
			return cmp.Compare(a.place(), b.place())
		})
	}
	v.Workloads, v.More.Workloads = cut(v.Workloads)
	v.VMs, v.More.VMs = cut(v.VMs)
	v.Plan.Steps, v.More.Steps = cut(v.Plan.Steps)
	if hashes := v.Manifest.Hashes; len(hashes) > maxRows {
		v.Manifest.Hashes = map[string]string{}
		kept, left := cut(slices.Sorted(maps.Keys(hashes)))
		for _, name := range kept {
			v.Manifest.Hashes[name] = hashes[name]
		}
		v.More.Hashes = left
	}
}

// nodeRow are nodes one after another that are alike.
type nodeRow struct {
	result.Node
	Until string // the last of several
	Count int
}

// follows reports whether a name is numbered next after another.
func follows(name, before string) bool {
	const digits = "0123456789"
	stem := strings.TrimRight(before, digits)
	n, err := strconv.Atoi(before[len(stem):])
	m, errOf := strconv.Atoi(strings.TrimPrefix(name, stem))
	return err == nil && errOf == nil && m == n+1
}

// Nodes are the nodes of the run, those that are alike and numbered through as one row.
func (v *view) Nodes() (rows []nodeRow) {
	for _, n := range v.Manifest.Nodes {
		if i := len(rows) - 1; i >= 0 && rows[i].Cores == n.Cores && rows[i].MemoryBytes == n.MemoryBytes &&
			follows(n.Name, cmp.Or(rows[i].Until, rows[i].Name)) {
			rows[i].Until, rows[i].Count = n.Name, rows[i].Count+1
			continue
		}
		rows = append(rows, nodeRow{n, "", 1})
	}
	return rows
}

// place is where a workload stands in a table that does not hold all.
func (w WorkloadSummary) place() int {
	switch {
	case w.VM == "":
		return 0
	case w.Errors > 0 || !w.Ended.Planned():
		return 1
	}
	return 2
}

var icons = map[result.Severity]string{result.Invalid: "✕", result.Warning: "!", result.Info: "i", result.Passed: "✓"}

func newSide(c Comparison) side {
	s := side{Workload: c.Workload, Kind: c.Latency}
	for _, w := range inWords(c.Windows) {
		s.Windows = append(s.Windows, w.Name)
	}
	if s.Change = "Change"; len(s.Windows) > 2 {
		s.Change = "Change, last against first"
	}
	first := c.Windows[0]
	if len(first.Rows) > 0 {
		s.add(c, "Throughput", first.Unit, WindowTotals.Rate)
	}
	if first.BytesPerSecond != nil {
		s.add(c, "Bandwidth", "bytes/s", func(w WindowTotals) *float64 { return w.BytesPerSecond })
	}
	for _, m := range first.Measures {
		if m.TooFew {
			continue
		}
		s.add(c, sayMeasure(m.Name), m.Unit, func(w WindowTotals) *float64 {
			for _, o := range w.Measures {
				if o.Name == m.Name {
					return &o.Value
				}
			}
			return nil
		})
	}
	for _, op := range first.Rows {
		pick := func(f func(OpRow) *float64) func(WindowTotals) *float64 {
			return func(w WindowTotals) *float64 {
				for _, r := range w.Rows {
					if r.Op == op.Op {
						return f(r)
					}
				}
				return nil
			}
		}
		s.add(c, op.Op+" p50", "s", pick(func(r OpRow) *float64 { return r.told("p50") }))
		s.add(c, op.Op+" p99", "s", pick(func(r OpRow) *float64 { return r.told("p99") }))
	}
	return s
}

func (s *side) add(c Comparison, name, unit string, value func(WindowTotals) *float64) {
	row := sideRow{Name: name, Change: none}
	for _, w := range c.Windows {
		row.Values = append(row.Values, optional(value(w), unit))
	}
	if !slices.ContainsFunc(c.Windows, func(w WindowTotals) bool { return value(w) != nil }) {
		return
	}
	first, last := value(c.Windows[0]), value(c.Windows[len(c.Windows)-1])
	if first != nil && last != nil {
		row.Change = change(*first, *last)
		row.Changed = *first > 0 && (*last / *first > 1.05 || *last / *first < 0.95)
	}
	s.Rows = append(s.Rows, row)
}

// place reduces a chart, draws it and keeps it for the script.
func (v *view) place(c *chart, budget int) *chartView {
	if c == nil {
		return nil
	}
	c.Log = c.decades()
	c.Names = tellApart(c.Names)
	c.cap()
	svg := c.svg(v.marks)
	if svg == "" {
		return nil
	}
	c.ID = fmt.Sprintf("c%d", len(v.charts))
	fewer := c.thinned()
	small := fewer.reduce(budget)
	cv := &chartView{ID: c.ID, SVG: svg, Names: c.Names, Many: len(c.Names) > svgLines}
	if small.Reduced > 1 {
		v.Reduced = true
		cv.Notes = append(cv.Notes, fmt.Sprintf("Drawn from the smallest and the largest value of every %s.",
			duration(c.Step*float64(small.Reduced))))
	}
	if n := len(c.Names); len(fewer.Names) < n {
		cv.Notes = append(cv.Notes, fmt.Sprintf("%s lines would hide each other. With the pointer on the chart, %d "+
			"can be told apart: the ten lowest and the ten highest by the median of their points, and ten evenly "+
			"between. The CSV and JSON reports hold all.", plain(float64(n)), len(fewer.Names)))
	}
	cv.Notes = append(cv.Notes, c.backdrop()...)
	if c.Log != nil {
		cv.Notes = append(cv.Notes, "The axis is logarithmic: each line is ten times the one below.")
	}
	if c.Cap != nil {
		_, high, _ := c.span()
		cv.Notes = append(
			cv.Notes,
			fmt.Sprintf(
				"Values of one short peak, up to %s, lie above the axis, which is cut so that the rest can be told apart.",
				quantity(high, c.Unit)),
		)
	}
	v.charts = append(v.charts, small)
	return cv
}

func (v *view) panels(budget int) {
	for _, p := range v.Document.Panels {
		c := newChart("", p.Title, p.Unit, v.origin, p.Series)
		low, high := c.ends(p.Unit)
		for _, m := range p.Metrics { // each is said once
			switch m.Name {
			case "Min":
				low = ""
			case "Max":
				high = ""
			}
		}
		if c != nil {
			c.Bands, c.Expected, p.Title = p.Bands, p.Expected, c.Title
			p.Metrics = slices.Clone(p.Metrics)
			for i, short := range tellApart(c.Names) {
				for k := range p.Metrics {
					if p.Metrics[k].Series == c.Names[i] {
						p.Metrics[k].Series = short
					}
				}
			}
		}
		pv := panelView{Panel: p, Chart: v.place(c, budget), Low: low, High: high}
		if pv.Chart != nil {
			for _, n := range p.Notes {
				pv.Chart.Notes = append(pv.Chart.Notes, capital(n)+".")
			}
		}
		if pv.Chart == nil && pv.Problem == "" {
			pv.Problem = "no value in the run's time"
		}
		i := slices.IndexFunc(v.PanelGroups, func(g panelGroup) bool { return g.Name == p.ReportGroup })
		if i < 0 {
			i = len(v.PanelGroups)
			v.PanelGroups = append(v.PanelGroups, panelGroup{Name: p.ReportGroup})
		}
		v.PanelGroups[i].Panels = append(v.PanelGroups[i].Panels, pv)
	}
}

// onDemand keeps few of many results in sight; the others of each group open when they are asked for.
func (v *view) onDemand() {
	if !v.Folded() {
		return
	}
	const few = 6
	left := few
	for i := range v.PanelGroups {
		g := &v.PanelGroups[i]
		n := min(left, len(g.Panels))
		left -= n
		g.Panels, g.More = g.Panels[:n], g.Panels[n:]
	}
}

// commonPrefix returns what the names of all VMs begin with, up to an underscore; "" with fewer than two VMs.
func commonPrefix(vms []result.VM) string {
	if len(vms) < 2 {
		return ""
	}
	p := vms[0].Name
	for _, vm := range vms {
		for !strings.HasPrefix(vm.Name, p) {
			p = p[:len(p)-1]
		}
	}
	return p[:strings.LastIndexByte(p, '_')+1]
}

// metrics are the names of the measures of series, in the order they come.
func metrics(series []result.Series) []string {
	var out []string
	for _, s := range series {
		if name := s.Metric(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ofSections are the series of sections of workloads.
func ofSections(series []result.Series) []result.Series {
	return slices.DeleteFunc(slices.Clone(series), func(s result.Series) bool { return s.Section == "" })
}

// single reports whether a series has no course: one value, as a tool states at its end, or none.
func single(s result.Series) bool {
	n := 0
	for _, value := range s.Values {
		if value != nil {
			n++
		}
	}
	return n < 2
}

func (v *view) machines(budget int) {
	series := slices.DeleteFunc(slices.Clone(v.Document.Series), func(s result.Series) bool {
		return ofServers(s) || single(s)
	})
	for _, name := range metrics(series) {
		var total, each []result.Series
		unit := ""
		for _, s := range series {
			if s.Metric() != name {
				continue
			}
			unit = s.Unit
			switch {
			case s.Section != "": // drawn apart
			case s.VM == "":
				total = append(total, s)
			default:
				s.Name = strings.TrimPrefix(s.Name, v.Prefix)
				each = append(each, s)
			}
		}
		sections := slices.DeleteFunc(ofSections(v.Document.Series), func(s result.Series) bool {
			return s.Metric() != name
		})
		title := cmp.Or(capital(result.SayMetric(name)), "Other")
		m := metricView{Title: title, Total: v.place(newChart("", title+", total", unit, v.origin, total), budget),
			PerVM:   v.place(newChart("", title+" of each VM", unit, v.origin, each), budget),
			Section: v.place(newChart("", title+" of each "+v.SectionNoun(), unit, v.origin, sections), budget)}
		if m.Total != nil || m.PerVM != nil || m.Section != nil {
			v.Machines = append(v.Machines, m)
		}
	}
}

// capital begins a text with a capital letter.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// environment returns what was recorded of the loads and their servers first, then of the place, and whose the counters
// are.
func environment(doc *Document) []result.Fact {
	m := &doc.Manifest
	var loads, servers, rest []result.Fact
	versioned := false
	for _, f := range m.Environment {
		switch {
		case strings.HasPrefix(f.Group, result.LoadGroup):
			loads = append(loads, f)
		case strings.HasPrefix(f.Group, result.ServerGroup):
			versioned = versioned || f.Name == "version"
			servers = append(servers, f)
		default:
			rest = append(rest, f)
		}
	}
	for _, w := range doc.Workloads {
		if w.Server != "" && !versioned {
			versioned = true
			servers = append([]result.Fact{{Group: result.ServerGroup, Name: "version", Value: w.Server}}, servers...)
		}
	}
	facts := slices.Concat(loads, servers, rest)
	for i, f := range facts {
		facts[i].Value = unit.Sizes(f.Value)
	}
	whose := map[string]string{result.CountersDerived: "what the load generators report of themselves",
		result.CountersExported: "the VMs' own, from their exporters",
		result.CountersMixed: "of some VMs their own, from their exporters; of the others what the load " +
			"generators report of themselves"}
	words, known := whose[m.DiskCounters]
	if !known {
		return facts
	}
	return append(facts, result.Fact{Group: "metrics", Name: "disk counters of VMs", Value: words})
}

func (v *view) environment() {
	for _, f := range environment(v.Document) {
		i := slices.IndexFunc(v.Environment, func(g factGroup) bool { return g.Name == f.Group })
		if i < 0 {
			i = len(v.Environment)
			v.Environment = append(v.Environment, factGroup{Name: f.Group})
		}
		v.Environment[i].Facts = append(v.Environment[i].Facts, f)
	}
}

// planView is the plan as steps, or as text when it is of another form.
type planView struct {
	Steps []struct {
		Number   int     `json:"number"`
		Phase    string  `json:"phase"`
		Name     string  `json:"name"`
		Text     string  `json:"text"`
		Start    float64 `json:"start_seconds"`
		Estimate float64 `json:"estimate_seconds"`
		Unknown  bool    `json:"estimate_unknown"`
	} `json:"steps"`
	Text string `json:"-"`
}

// maxPlan bounds the plan as text, in characters.
const maxPlan = 64 << 10

func newPlan(raw json.RawMessage) planView {
	var p planView
	if err := json.Unmarshal(raw, &p); err == nil && len(p.Steps) > 0 {
		return shown(p)
	}
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return planView{}
	}
	return planView{Text: visible.Cut(visible.Text(b.String()), maxPlan)}
}

// entry is one line of the page's index.
type entry struct{ ID, Text string }

// Index are the sections that the page has.
func (v *view) Index() []entry {
	var out []entry
	for _, s := range []struct {
		there    bool
		id, text string
	}{
		{v.Grouped, "groups", "Groups"}, {len(v.Table) > 0, "figures", "Figures"},
		{len(v.Spreads) > 0 && !v.Grouped, "vms", "From VM to VM"},
		{len(v.Findings) > 0, "found", "Findings"},
		{len(v.Windows) > 0, "windows", "Phases"}, {len(v.Events) > 0, "events", "Events"},
		{len(v.PanelGroups) > 0, "results", "Results"}, {len(v.Servers) > 0, "server", "The server"},
		{len(v.Latencies) > 0, "latency", "Percentiles"},
		{len(v.Preconditioned)+len(v.Written) > 0, "prepared", "Preparation"},
		{len(v.Heats) > 0, "heat", "Latency over time"}, {len(v.Machines) > 0, "machines", "Each VM"}, {true, "about",
			"What was run"},
	} {
		if s.there {
			out = append(out, entry{s.id, s.text})
		}
	}
	return out
}

// PanelCount is how many panels the report has, and how many of them have no data.
func (v *view) PanelCount() (s string) {
	missing := 0
	for _, g := range v.PanelGroups {
		for _, p := range slices.Concat(g.Panels, g.More) {
			if p.Chart == nil {
				missing++
			}
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d results have no data; each says why in its place.", missing, len(v.Document.Panels))
}
