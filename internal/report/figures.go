package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	findings "plimsoll/internal/analysis/view"
	"plimsoll/internal/report/answer"
	"plimsoll/result"
	"plimsoll/unit"
)

// Figure is one line of the figures that anyone asks for first: an operation of a workload, or a measure of it, over
// the time by which the workload is judged. All is text as it is shown; a dash where there is no number.
type Figure struct {
	Workload  string
	Operation string // or the measure
	Rate      string
	Bandwidth string
	Mean      string
	P50       string
	P99       string
	P999      string
	Errors    string // of the workload, with its first figure

	measure bool
	value   bool // a measure that is no rate
}

// FigureHead are the columns of a table of figures.
func FigureHead(rows []Figure) []string {
	kind := rateHead(slices.ContainsFunc(rows, func(f Figure) bool { return f.value }))
	return []string{"Workload", "Operation", kind, "Bandwidth", "Mean", "p50", "p99", "p99.9", "Errors"}
}

// rateHead heads a column of rates, in which values that are none may stand, too.
func rateHead(values bool) string {
	if values {
		return "Rate or value"
	}
	return "Rate"
}

// RateHead heads the column of the workload's rates and of its measures.
func (l Latency) RateHead() string {
	return rateHead(slices.ContainsFunc(l.Windows, func(w WindowTotals) bool {
		_, rest := statedOf(w.Measures)
		return slices.ContainsFunc(rest, MeasureRow.value)
	}))
}

// value reports whether a measure is no rate.
func (m MeasureRow) value() bool { return m.Unit != "IOPS" && !strings.HasSuffix(m.Unit, "/s") }

// Cells are the figure's columns, as FigureHead names them.
func (f Figure) Cells() []string {
	return []string{f.Workload, f.Operation, f.Rate, f.Bandwidth, f.Mean, f.P50, f.P99, f.P999, f.Errors}
}

// Figures are those of all workloads but prefills. The terminal, the page and Markdown print the same.
func (doc *Document) Figures() []Figure {
	var out []Figure
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 {
			continue
		}
		errors := plain(float64(doc.failed(l.Workload)))
		if errors == "0" && (doc.failuresUnknown(l.Workload) || !l.operations()) {
			errors = none
		}
		add := func(f Figure) {
			f.Workload, f.Errors = l.Workload, errors
			errors = ""
			out = append(out, f)
		}
		zeros := l.zeros()
		w := l.Windows[0]
		w.Measures = slices.DeleteFunc(slices.Clone(w.Measures), func(m MeasureRow) bool {
			return slices.Contains(zeros, m.Name)
		})
		rest := w.placed(func(r *OpRow, t *stated) {
			switch {
			case t == nil:
				add(r.figure())
			case r != nil:
				f := r.figure()
				f.P50, f.P99, f.P999 = t.cell("p50"), t.cell("p99"), t.cell("p99.9")
				add(f)
				t.without(r.Op, add)
			default:
				if t.has("mean", "p50", "p99", "p99.9") {
					add(Figure{measure: true, Operation: t.of, Rate: none, Bandwidth: none,
						Mean: t.cell("mean"), P50: t.cell("p50"), P99: t.cell("p99"), P999: t.cell("p99.9")})
				}
				t.without(t.of, add)
			}
		})
		for _, m := range rest {
			add(Figure{measure: true, value: m.value(), Operation: sayMeasure(m.Name), Rate: m.Text(),
				Bandwidth: none, Mean: none, P50: none, P99: none, P999: none})
		}
	}
	return out
}

// figure is the row of a table of figures, without what a tool states.
func (r OpRow) figure() Figure {
	return Figure{Operation: r.Op, Rate: optional(r.Rate(), r.Unit), Bandwidth: optional(r.BytesPerSecond, "bytes/s"),
		Mean: optional(r.Mean, "s"), P50: r.Quantile("p50"), P99: r.Quantile("p99"), P999: r.Quantile("p99.9")}
}

// Foremost are at most so many figures for a table: where there are more the last measures of all are left out, times
// of flushes, which a log of commits waits for, last. Of every workload its operations stay.
func (doc *Document) Foremost(most int) (rows []Figure, left int) {
	rows = doc.Figures()
	all := len(rows)
	for _, flushes := range []bool{false, true} {
		for i := len(rows) - 1; i >= 0 && len(rows) > most; i-- {
			if rows[i].measure && rows[i].Errors == "" && (flushes || rows[i].Operation != "sync") {
				rows = slices.Delete(rows, i, i+1)
			}
		}
	}
	if len(rows) > most {
		rows = rows[:most]
	}
	return rows, all - len(rows)
}

// zeros are the measures that are 0, which share a line below the figures when there are several; nil for fewer.
func (l Latency) zeros() (names []string) {
	for _, m := range l.Windows[0].Measures {
		if m.Value == 0 {
			names = append(names, m.Name)
		}
	}
	if len(names) < severalZeros {
		return nil
	}
	return names
}

// severalZeros is from how many on measures that are 0 share a line.
const severalZeros = 3

// FigureZeros says what was 0 of each workload, in place of rows of their own.
func (doc *Document) FigureZeros() string {
	var lists []string
	workloads := map[string][]string{} // by what was 0 of them
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 {
			continue
		}
		if zeros := strings.Join(l.zeros(), ", "); zeros != "" {
			if workloads[zeros] == nil {
				lists = append(lists, zeros)
			}
			workloads[zeros] = append(workloads[zeros], l.Workload)
		}
	}
	for i, zeros := range lists {
		lists[i] = fmt.Sprintf("0 of %s: %s.", unit.List(workloads[zeros], 4), zeros)
	}
	return strings.Join(lists, " ")
}

// SayHeadline is the headline as a table shows it, the figure first, which is never cut.
func SayHeadline(h result.Headline) string {
	name := h.Workload
	said := strings.HasSuffix(strings.ToLower(name), strings.ToLower(h.Operation)) // as "Random write"
	if h.Operation != h.Unit && !said {
		name = strings.TrimSpace(name + " " + h.Operation)
	}
	return fmt.Sprintf("%s (%s)", quantity(h.Value, h.Unit), name)
}

// notReliedOn begins an answer that a finding makes invalid.
const notReliedOn = "Not to be relied on"

// SayAnswer is the answer as a list shows it, up to its first semicolon; where there is none, the headline.
func SayAnswer(h result.Headline) string {
	if h.Answer == "" {
		return SayHeadline(h)
	}
	said := strings.Replace(h.Answer, notReliedOn+", see below: ", notReliedOn+": ", 1) // in a list nothing is below
	return strings.TrimSuffix(answer.Head(said), ".")
}

// HeadlineWithAnswer is the headline of a run, with the answer that its report begins with.
func HeadlineWithAnswer(m result.Manifest, d *result.Data, found []result.Finding) *result.Headline {
	h := HeadlineOf(d.Workloads)
	if h == nil {
		return nil
	}
	for _, s := range New(Input{Manifest: m, Data: d, Findings: found}).InShort {
		if s.Check == answer.Check {
			h.Answer = s.Sentence
		}
	}
	return h
}

// HeadlineOf is the first of the figures of some workloads; nil when they have none.
func HeadlineOf(workloads []result.Workload) *result.Headline {
	doc, merged := &Document{}, mergedOf(workloads)
	for _, w := range workloads {
		doc.add(w, merged)
	}
	for _, l := range doc.Latencies {
		for _, w := range l.Windows[:min(1, len(l.Windows))] {
			for _, r := range w.Rows {
				if r.NoRate {
					continue
				}
				return &result.Headline{Workload: l.Workload, Operation: r.Op, Value: r.OpsPerSecond, Unit: r.Unit}
			}
			for _, m := range w.Measures {
				return &result.Headline{Workload: l.Workload, Operation: m.Name, Value: m.Value, Unit: m.Unit}
			}
		}
	}
	return nil
}

// FigureTimes says what the times of the figures are: service or response times, and of which workloads when not of
// all; and which of them hold a warm-up.
func (doc *Document) FigureTimes() string {
	var warm []string
	for _, f := range doc.Findings {
		for _, e := range f.Evidence {
			if f.Check == "steady-state" && e.Name == findings.WarmUp {
				warm = append(warm, fmt.Sprintf("%s (%s)", f.Subject, findings.SayDuration(e.Value)))
			}
		}
	}
	said := doc.times()
	if said != "" && warm != nil {
		said += " Figures hold the warm-up of " + findings.Listed(warm) + "."
	}
	if slices.ContainsFunc(doc.Latencies, func(l Latency) bool { return len(l.Windows) > 0 && l.Windows[0].marks() }) {
		said = strings.TrimPrefix(said+" "+hardlyTold, " ")
	}
	return said
}

func (doc *Document) times() string {
	of := map[string][]string{}
	var kinds []string
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 || !slices.ContainsFunc(l.Windows[0].Rows, func(r OpRow) bool { return r.Mean != nil }) {
			continue
		}
		if of[l.Kind] == nil {
			kinds = append(kinds, l.Kind)
		}
		of[l.Kind] = append(of[l.Kind], l.Workload)
	}
	switch len(kinds) {
	case 0:
		return ""
	case 1:
		return "Latencies are " + kinds[0] + "s."
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(len(of[b]), len(of[a])) })
	text := "Latencies are " + kinds[0] + "s"
	for _, k := range kinds[1:] {
		text += fmt.Sprintf(", of %s %ss", few(of[k]), k)
	}
	return text + "."
}

// operations reports whether operations of the workload were counted at all.
func (l Latency) operations() bool {
	return slices.ContainsFunc(l.Windows, func(w WindowTotals) bool { return len(w.Rows) > 0 })
}

// Title is the workload and what its times are, where it has times.
func (l Latency) Title() string {
	timed := l.distributed || slices.ContainsFunc(l.Rows(), func(w WindowTotals) bool {
		return slices.ContainsFunc(w.Rows, func(r OpRow) bool { return r.Mean != nil })
	})
	if !timed {
		return l.Workload
	}
	return l.Workload + ": " + l.Kind
}

// PercentilesLegend says how the percentiles of the table came about, and of which workloads there can be none.
func (doc *Document) PercentilesLegend() string {
	var without []string
	for _, l := range doc.Latencies {
		if !l.distributed && l.operations() {
			without = append(without, l.Workload)
		}
	}
	i := slices.IndexFunc(doc.Latencies, func(l Latency) bool { return l.distributed })
	marked := ""
	if slices.ContainsFunc(doc.Latencies, func(l Latency) bool {
		return slices.ContainsFunc(l.Windows, WindowTotals.marks)
	}) {
		marked = " " + hardlyTold
	}
	switch {
	case i < 0:
		text := "No percentiles are made here"
		if len(without) > 0 {
			text += ": the distribution of times was not given, only means"
		}
		return text + ". What a tool states of its own stands as it gave it." + marked
	case len(without) > 0:
		return fmt.Sprintf("From merged histograms, within ±%s %% of the value; never averaged. A dash: too few "+
			"operations, and throughout where no distribution of times was given: of %s.%s",
			boundPercent(doc.Latencies[i].Error), few(without), marked)
	}
	return fmt.Sprintf("From merged histograms, within ±%s %% of the value; never averaged. A dash: too few "+
		"operations.%s", boundPercent(doc.Latencies[i].Error), marked)
}

// ImportedFiles is how many files of other tools the run was made of; one may hold several runs.
func (doc *Document) ImportedFiles() int {
	files := map[string]bool{}
	for _, f := range doc.Manifest.Imported {
		files[f.VM] = true
	}
	return len(files)
}

// few names some and counts the rest.
func few(names []string) string {
	const most = 3
	between := ", "
	if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, between) }) {
		between = "; "
	}
	if len(names) > most {
		return strings.Join(names[:most], between) + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, between)
}

// failed is the number of failed operations of a workload as a latency table names it: those of the workload, or where
// only single VMs counted them, those of its VMs.
func (doc *Document) failed(name string) uint64 {
	var whole, parts uint64
	for _, s := range doc.Workloads {
		switch {
		case s.Prefill:
		case s.VM != "" && s.Name+" on "+s.VM == name:
			return s.Errors
		case s.Name != name:
		case s.VM == "":
			whole += s.Errors
		default:
			parts += s.Errors
		}
	}
	return max(whole, parts)
}

// failuresUnknown reports whether what a workload left, as a latency table names it, does not tell failures.
func (doc *Document) failuresUnknown(name string) bool {
	return slices.ContainsFunc(doc.Workloads, func(s WorkloadSummary) bool {
		return !s.Prefill && s.FailuresUnknown && (s.Name == name || s.VM != "" && s.Name+" on "+s.VM == name)
	})
}

// leastShort is how many sentences a summary has at least when anything was measured.
const leastShort = 2

// figureCheck is the Check of sentences of a summary that are figures, from no finding.
const figureCheck = "figures"

// inShort is the summary of a run: the answer to its question, then that of its findings, and where that is shorter
// than two sentences what its workloads did, so that it always holds a figure and says whether operations failed.
func (doc *Document) inShort() []Short {
	first, said := doc.answer()
	told := ""
	for _, s := range first {
		told = s.Sentence
	}
	rest := slices.DeleteFunc(doc.plainShort(told), func(s Short) bool {
		return slices.ContainsFunc(said, func(f result.Finding) bool {
			return f.Check == s.Check && f.Subject == s.Subject
		})
	})
	return append(first, rest[:min(len(rest), mostShort)]...)
}

// still reports whether nothing but zeros was seen of a result.
func still(p result.Panel) bool {
	return !slices.ContainsFunc(p.Series, func(s result.Series) bool {
		return slices.ContainsFunc(s.Values, func(v *float64) bool { return v != nil && *v != 0 })
	})
}

// highest is the highest value of a result of one line; nil: it has more, or no value.
func highest(p result.Panel) (most *float64) {
	if len(p.Series) != 1 {
		return nil
	}
	for _, v := range p.Series[0].Values {
		if v != nil && (most == nil || *v > *most) {
			most = v
		}
	}
	return most
}

// answer is the sentence that a summary begins with, and the findings that it says; none where nothing was measured.
func (doc *Document) answer() (first []Short, said []result.Finding) {
	r := answer.Run{Findings: doc.Findings, Unread: doc.unread}
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 || len(l.Windows[0].Rows)+len(l.Windows[0].Measures) == 0 {
			continue
		}
		w := l.Windows[0]
		one := answer.Load{Name: l.Workload, Did: didOf(l), Held: doc.heldTo(l) + doc.flushed(l.Workload)}
		one.Wants = slices.ContainsFunc(w.Measures, func(m MeasureRow) bool { return m.wanted })
		bytes, operations := 0.0, 0.0
		for _, row := range w.Rows {
			one.Does = append(one.Does, row.Op)
			if row.BytesPerSecond != nil {
				bytes, operations = bytes+*row.BytesPerSecond, operations+row.OpsPerSecond
			}
		}
		if operations > 0 {
			one.Size = bytes / operations
		}
		for _, s := range doc.Workloads {
			if s.Name == l.Workload && (one.Began.IsZero() || s.Start.Before(one.Began)) {
				one.Began = s.Start
			}
		}
		r.Loads = append(r.Loads, one)
	}
	for _, p := range doc.Panels {
		if len(r.Loads) == 0 && still(p) {
			continue // what nobody did is no answer
		}
		for _, m := range p.Metrics[:min(len(p.Metrics), 1)] {
			r.Results = append(r.Results, p.Title+": "+sayValue(m))
		}
		if most := highest(p); len(p.Metrics) == 0 && most != nil {
			r.Results = append(r.Results, fmt.Sprintf("%s: highest %s", p.Title, quantity(*most, p.Unit)))
		}
	}
	sentence, said := answer.Of(r)
	if sentence == "" {
		return nil, nil
	}
	s := Short{Severity: result.Info, Check: answer.Check, Sentence: sentence}
	for _, f := range said {
		if severityRank(f.Severity) < severityRank(s.Severity) {
			s.Severity = f.Severity
		}
	}
	if slices.ContainsFunc(doc.Findings, func(f result.Finding) bool {
		return f.Severity == result.Invalid && !slices.ContainsFunc(said, func(o result.Finding) bool {
			return o.Check == f.Check && o.Subject == f.Subject
		})
	}) {
		s.Severity, s.Sentence = result.Warning, notReliedOn+", see below: "+s.Sentence
	}
	return []Short{s}, said
}

// plainShort is the summary of a run without the answer, and without what that says that loads did.
func (doc *Document) plainShort(answer string) []Short {
	out := InShort(doc.Findings)
	if len(out) >= leastShort {
		return out
	}
	var told []Latency
	var errors uint64
	unknown := false
	for _, l := range doc.Latencies {
		unknown = unknown || doc.failuresUnknown(l.Workload)
		if len(l.Windows) > 0 && len(l.Windows[0].Rows)+len(l.Windows[0].Measures) > 0 {
			told = append(told, l)
			if !slices.ContainsFunc(doc.Workloads, func(s WorkloadSummary) bool {
				return s.Again && s.Name == l.Workload
			}) {
				errors += doc.failed(l.Workload)
			}
		}
	}
	failed := "no operation failed"
	if state := doc.Manifest.Measured.State; state == "partly" || state == "no" {
		failed = "of what was counted, no operation failed"
	}
	if unknown {
		failed = "whether operations failed is not known"
	}
	if errors > 0 {
		failed = plain(float64(errors)) + " operations failed"
		// else percentiles are the tool's, of what it takes
		made := slices.ContainsFunc(told, func(l Latency) bool { return l.distributed })
		switch {
		case errors == 1 && made:
			failed = "1 operation failed and is in no rate and no percentile"
		case errors == 1:
			failed = "1 operation failed"
		case made:
			failed += " and are in no rate and no percentile"
		}
	}
	say := func(subject, format string, args ...any) {
		out = append(
			out,
			Short{
				Severity: result.Info,
				Check:    figureCheck,
				Subject:  subject,
				Sentence: fmt.Sprintf(format, args...),
			},
		)
	}
	const each = 2 // workloads that have a sentence of their own
	if errors == 0 && !unknown && !slices.ContainsFunc(told, Latency.operations) {
		failed = "no operations were counted, and so no failures"
	}
	n := len(told)
	if n <= each {
		told = slices.DeleteFunc(told, func(l Latency) bool { return strings.Contains(answer, didOf(l)) })
	}
	switch {
	case n == 0:
	case n > each:
		say("", "%d workloads ran%s; %s.", n, fastest(told), failed)
	case len(out) > 0 && len(told) > 0:
		var did []string
		for _, l := range told {
			did = append(did, l.Workload+": "+didOf(l)+doc.heldTo(l))
		}
		text := strings.Join(did, "; ")
		if strings.Count(text, limitUnknown) > 1 { // of several once
			text = strings.ReplaceAll(text, limitUnknown, "") + "; what could be had without these limits is not known"
		}
		say("", "%s; %s.", text, failed)
	default:
		for _, l := range told {
			say(l.Workload, "%s: %s.", l.Workload, didOf(l)+doc.heldTo(l))
		}
		say("", "%s.", capital(failed))
	}
	return out
}

// fastest says which of some workloads did the most in a second: operations, or bytes where these are not of one size;
// "" where nothing compares two of them.
func fastest(told []Latency) string {
	moved := func(l Latency) (bytes, each float64) {
		w := l.Windows[0]
		for _, m := range w.Measures {
			if m.wanted && m.Unit == "bytes/s" {
				return m.Value, math.Inf(1)
			}
		}
		for _, r := range w.Rows {
			if r.BytesPerSecond == nil || !(r.OpsPerSecond > 0) {
				return 0, 0
			}
			bytes += *r.BytesPerSecond
		}
		return bytes, bytes / max(w.OpsPerSecond, 1e-9)
	}
	alike, moving := true, 0
	_, first := moved(told[0])
	for _, l := range told {
		bytes, each := moved(l)
		if bytes > 0 {
			moving++
		}
		alike = alike && math.Abs(each-first) <= first/100 && l.Windows[0].Unit == told[0].Windows[0].Unit
	}
	by, word, unit := func(l Latency) float64 { return l.Windows[0].OpsPerSecond }, "rate", told[0].Windows[0].Unit
	switch {
	case !alike && moving < 2:
		return ""
	case !alike:
		by, word, unit = func(l Latency) float64 { bytes, _ := moved(l); return bytes }, "bandwidth", "bytes/s"
	}
	most := slices.MaxFunc(told, func(a, b Latency) int { return cmp.Compare(by(a), by(b)) })
	if v := by(most); v > 0 && most.Windows[0].Rate() != nil {
		return fmt.Sprintf(", %s at the highest %s, %s", most.Workload, word, quantity(v, unit))
	}
	return ""
}

// didOf says in words what a workload is run for, where it declares that: the measures that are to be high; else its
// operations, else any measures.
func didOf(l Latency) string {
	const most = 2 // told one by one
	w := l.Windows[0]
	var parts []string
	for _, m := range w.Measures {
		if m.wanted && len(parts) < most {
			parts = append(parts, m.say())
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	for i, r := range w.Rows {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d other kinds of operation", len(w.Rows)-most))
			break
		}
		text := r.Op
		if rate := r.Rate(); rate != nil {
			text += " " + quantity(*rate, r.Unit)
		}
		if r.BytesPerSecond != nil && *r.BytesPerSecond > 0 {
			text += " (" + quantity(*r.BytesPerSecond, "bytes/s") + ")"
		}
		if r.Mean != nil {
			text += ", mean " + quantity(*r.Mean, "s")
			if p99 := r.told("p99"); p99 != nil {
				text += ", p99 " + quantity(*p99, "s")
			}
			text += " (" + l.Kind + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		for _, m := range w.Measures[:min(most, len(w.Measures))] {
			parts = append(parts, m.say())
		}
	}
	return strings.Join(parts, "; ")
}

// say is a measure in words: one that is called as its unit is, like NOPM, needs no name.
func (m MeasureRow) say() string {
	if m.Name == m.Unit {
		return quantity(m.Value, m.Unit)
	}
	return m.Name + " " + quantity(m.Value, m.Unit)
}

// Ranked are findings in the order in which they are read: the author's conditions that do not hold; what makes numbers
// invalid; what the run was made to find out, by the ranks of the checks and the largest change first, a loss before a
// gain of its size, unless nothing moved; warnings; the rest as it came.
func Ranked(all []result.Finding) []result.Finding {
	place := func(f result.Finding) int {
		switch {
		case failedAssert(f):
			return -1
		case f.Severity == result.Invalid:
			return 0
		case f.Severity == result.Passed:
			return 4
		case f.Answers():
			return 1
		case f.Severity == result.Warning:
			return 2
		}
		return 3
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b result.Finding) int {
		if c := cmp.Compare(place(a), place(b)); c != 0 || place(a) != 1 {
			return c
		}
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(b.Weight(), a.Weight()))
	})
}
