// Package report turns a finished run into documents: HTML for people, JSON for programs, CSV for spreadsheets,
// Markdown for tickets.
//
// New builds a Document once from what the run folder holds (Build reads the folder); the renderers HTML, JSON, CSV and
// Markdown print it. The package measures nothing and judges nothing: findings come from internal/analysis, numbers
// from result.Data. All it derives are rates and percentiles of the totals it is given, and percentiles are read
// from merged histograms, never averaged. The same input gives the same bytes.
//
// The HTML is one file that opens from disk without a network: its own script and style and the third-party
// chart library are inside, and its content policy forbids loading anything. Charts are also there as static drawings,
// for printing, for readers without JavaScript, and for programs built without the chart library (`make build`
// fetches it). Everything a scenario's author wrote is escaped; the description, which is HTML, passes an allow-list.
package report

import (
	"encoding/json"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/report/catalogue"
	"plimsoll/result"
)

// FormatVersion is the version of the JSON document; docs/report-json.md describes it.
const FormatVersion = 2

// Input is everything a report is made from.
type Input struct {
	Manifest result.Manifest
	Labels   result.Labels
	Data     *result.Data // nil when nothing was collected
	Findings []result.Finding
	Events   []result.Event
	Plan     json.RawMessage // as in plan.json; nil when there is none
	Problems []string        // what of the folder could not be read
}

// Document is a report before it is printed. Its JSON form is the JSON report.
type Document struct {
	Version     int               `json:"report_version"`
	Title       string            `json:"title"`
	Summary     string            `json:"summary,omitempty"`
	Description template.HTML     `json:"description_html,omitempty"` // allowed elements only
	Scaled      string            `json:"scaled,omitempty"`           // empty when neither time nor size was
	Redacted    string            `json:"redacted,omitempty"`         // a sentence when names were replaced
	Simulated   string            `json:"simulated,omitempty"`        // a sentence when no number is about anything real
	Unfinished  string            `json:"unfinished,omitempty"`       // a sentence when the run did not come to its end
	Start       time.Time         `json:"start"`
	End         time.Time         `json:"end"`
	Verdicts    []Verdict         `json:"verdicts"`
	Asserts     []Assertion       `json:"asserts,omitempty"` // the conditions of the run's author
	InShort     []Short           `json:"in_short"`          // the summary: three to five sentences out of the findings
	Findings    []result.Finding  `json:"findings"`
	Comparisons []Comparison      `json:"comparisons,omitempty"`
	Latencies   []Latency         `json:"latencies"`
	Panels      []result.Panel    `json:"panels"`
	Series      []result.Series   `json:"series"`
	Heat        []Heat            `json:"heat_maps,omitempty"`
	Phases      []result.Span     `json:"phases"`
	Marks       []result.Mark     `json:"marks"`
	Workloads   []WorkloadSummary `json:"workloads"`
	VMs         []result.VM       `json:"vms"`
	// Preconditioned and Written are as in result.Data.
	Preconditioned []result.Preconditioning `json:"preconditioned,omitempty"`
	Written        []result.Written         `json:"written,omitempty"`
	// Beside are its loads among recorded systems that did the same.
	Beside   []catalogue.Beside `json:"beside,omitempty"`
	Labels   *result.Labels     `json:"labels,omitempty"`
	Manifest result.Manifest    `json:"manifest"` // description left out: it is not sanitised
	Plan     json.RawMessage    `json:"plan,omitempty"`
	Journal  []result.Event     `json:"journal"`
	Problems []string           `json:"problems,omitempty"`

	Home   string `json:"-"` // the address of the run's page, where the report is served beside it
	unread string // see answer.Run
}

// Verdict is one of the run's statuses.
type Verdict struct {
	Question string `json:"question"` // Run, Collection, Cleanup
	result.Verdict
}

// Comparison sets the windows of a workload side by side.
type Comparison struct {
	Workload string         `json:"workload"`
	Latency  string         `json:"latency"`
	Windows  []WindowTotals `json:"windows"`
}

// WindowTotals are a window's rates and percentiles.
type WindowTotals struct {
	Name           string    `json:"name"`
	Start          time.Time `json:"start"`
	Seconds        float64   `json:"seconds"`
	OpsPerSecond   float64   `json:"ops_per_second"`
	Unit           string    `json:"unit"` // of the rate of all operations
	BytesPerSecond *float64  `json:"bytes_per_second,omitempty"`
	Rows           []OpRow   `json:"operations"`
	// Measures are those that the engine declares besides its operations.
	Measures []MeasureRow `json:"measures,omitempty"`
}

// MeasureRow is a declared measure in one window; a count is per second.
type MeasureRow struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	wanted bool    // what the workload is run for: the more, the better, and no other figure says it again
	// TooFew is said of a percentile beyond which fewer than ten operations lie.
	TooFew bool `json:"too_few,omitempty"`
}

// hardlyTold explains the mark of a percentile beyond which too few operations lie.
const hardlyTold = "A time with ?: fewer than ten operations lie beyond it, too few to tell it."

func (r OpRow) quantile(q string) *float64 {
	return map[string]*float64{"p50": r.P50, "p90": r.P90, "p99": r.P99, "p99.9": r.P999}[q]
}

// Quantile is a percentile as tables show it.
func (r OpRow) Quantile(q string) string { return r.marked(q, optional(r.quantile(q), "s")) }

func (r OpRow) marked(q, text string) string {
	if text != none && slices.Contains(r.TooFew, q) {
		return text + " ?"
	}
	return text
}

// told is a percentile for sentences and for what is set beside others; nil where too few operations lie beyond it.
func (r OpRow) told(q string) *float64 {
	if slices.Contains(r.TooFew, q) {
		return nil
	}
	return r.quantile(q)
}

// Text is the measure's value as tables show it.
func (m MeasureRow) Text() string {
	if m.TooFew {
		return quantity(m.Value, m.Unit) + " ?"
	}
	return quantity(m.Value, m.Unit)
}

// markFew notes which percentiles of a row and of a tool's own few operations lie beyond.
func (t *WindowTotals) markFew() {
	counts := map[string]float64{}
	for _, m := range t.Measures {
		if of, what := statedAs(m); what == statedCount {
			counts[of] = m.Value
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		counts[r.Op] = float64(r.Count)
		for _, q := range []string{"p50", "p90", "p99", "p99.9"} {
			if r.quantile(q) != nil && scarce(counts[r.Op], q) {
				r.TooFew = append(r.TooFew, q)
			}
		}
	}
	for i := range t.Measures {
		of, q := statedAs(t.Measures[i])
		if !scarce(counts[of], q) {
			continue
		}
		t.Measures[i].TooFew = true
		if at := slices.IndexFunc(t.Rows, func(r OpRow) bool { return r.Op == of }); at >= 0 {
			t.Rows[at].TooFew = append(t.Rows[at].TooFew, q)
		}
	}
}

// scarce reports whether fewer than ten of so many operations lie beyond a percentile of the upper half.
func scarce(n float64, q string) bool {
	percent, err := strconv.ParseFloat(strings.TrimPrefix(q, "p"), 64)
	const rounding = 1e-6
	return err == nil && n > 0 && percent >= 50 && n*(100-percent) < 1000-rounding
}

// marks reports whether a percentile of the totals has the mark of too few.
func (t WindowTotals) marks() bool {
	return slices.ContainsFunc(t.Rows, func(r OpRow) bool { return r.TooFew != nil }) ||
		slices.ContainsFunc(t.Measures, func(m MeasureRow) bool { return m.TooFew })
}

// Latency is the percentile table of a workload.
type Latency struct {
	Workload string  `json:"workload"`
	Kind     string  `json:"kind"` // "service time" or "response time"
	Error    float64 `json:"relative_error"`
	// Note says of what part of the workload's time the first window is, where it is not all of it.
	Note     string         `json:"note,omitempty"`
	Windows  []WindowTotals `json:"windows"`            // the time by which the workload is judged first
	Sections []WindowTotals `json:"sections,omitempty"` // of that time, where the generator told them apart

	distributed bool // of what its times are, there is the distribution
}

// Rows are the rows of a table: the windows, then the sections, which are called so.
func (l Latency) Rows() []WindowTotals {
	rows := inWords(l.Windows)
	for _, s := range l.Sections {
		s.Name = "section " + s.Name
		rows = append(rows, s)
	}
	return rows
}

// inWords calls windows as a person would.
func inWords(windows []WindowTotals) []WindowTotals {
	out := slices.Clone(windows)
	var names []string
	for _, w := range windows {
		names = append(names, w.Name)
	}
	for i, name := range stretchesInWords(names) {
		out[i].Name = name
	}
	return out
}

// stretchesInWords calls stretches of a workload that always ran alone by when they were, for they differ by nothing
// else.
func stretchesInWords(names []string) []string {
	out, alone := slices.Clone(names), 0
	for i, name := range names {
		c, ours := result.CircumstancesOf(name)
		switch {
		case !ours: // as the whole time
		case !c.InCompany(result.Circumstances{}):
			return slices.Clone(names)
		case c.After != "":
			out[i] = c.Since()
			alone++
		case c.Again == 0:
			out[i] = "at the start"
			alone++
		}
	}
	if alone < 2 {
		return slices.Clone(names)
	}
	return out
}

// OpRow is one kind of operation in one window. Times are seconds. A percentile is absent when there is no
// histogram or too few operations lie beyond it to speak of it (fewer than 1/(1-q) in all).
type OpRow struct {
	Op             string   `json:"op"`
	Count          uint64   `json:"count"`
	OpsPerSecond   float64  `json:"ops_per_second"`
	NoRate         bool     `json:"no_rate,omitempty"`          // it is no rate that anybody could compare: see totalsOf
	Unit           string   `json:"unit"`                       // of the rate
	BytesPerSecond *float64 `json:"bytes_per_second,omitempty"` // of operations that move bytes
	Mean           *float64 `json:"mean_seconds,omitempty"`
	P50            *float64 `json:"p50_seconds,omitempty"`
	P90            *float64 `json:"p90_seconds,omitempty"`
	P99            *float64 `json:"p99_seconds,omitempty"`
	P999           *float64 `json:"p999_seconds,omitempty"`
	Max            *float64 `json:"max_seconds,omitempty"`
	Saturated      uint64   `json:"saturated,omitempty"` // operations at the end of the tool's latency scale
	// TooFew are its percentiles, a tool's own among them, beyond which fewer than ten operations lie.
	TooFew []string `json:"too_few,omitempty"`
}

// Heat is the latency heat map of a workload.
type Heat struct {
	Workload string          `json:"workload"`
	Kind     string          `json:"kind"`
	Map      *result.HeatMap `json:"map"`
}

// WorkloadSummary is one workload on one VM, or of a group (VM empty).
type WorkloadSummary struct {
	Name                string          `json:"name"`
	VM                  string          `json:"vm,omitempty"`
	Group               string          `json:"group"`
	Node                int             `json:"node"`
	Engine              string          `json:"engine"`
	Tool                string          `json:"tool"`
	Server              string          `json:"server,omitempty"`
	Phase               string          `json:"phase"`
	Prefill             bool            `json:"prefill,omitempty"`
	Start               time.Time       `json:"start"`
	End                 time.Time       `json:"end"`
	Ended               result.Ending   `json:"ended"`
	Message             string          `json:"message,omitempty"`
	Errors              uint64          `json:"errors"`
	FailuresUnknown     bool            `json:"failures_unknown,omitempty"`
	Again               bool            `json:"again,omitempty"`
	Streams             []result.Stream `json:"lanes,omitempty"`
	GeneratorCPUSeconds float64         `json:"generator_cpu_seconds"`
	Notes               []string        `json:"notes,omitempty"`
	Totals              WindowTotals    `json:"totals"`
}

// Merged reports whether it is of all VMs together.
func (s *WorkloadSummary) Merged() bool { return s.VM == "" }
