package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/report"
	"plimsoll/result"
	"plimsoll/unit"
)

// refreshSeconds is after how long the page of a run that goes on is made anew.
const refreshSeconds = 5

type runView struct {
	frame
	Run      row
	Summary  string
	Mind     []string
	Facts    []fact
	Short    []said
	Problems []string
	Progress *progress
	Tiles    []tile
	Drawings []report.Drawing
	Events   []event
	Still    bool // it is not made anew
	Report   template.URL
	From, To string // of its metrics
	NoReport string
}

// said is a sentence of a summary. Alike is where the systems are that it sets the run beside; "" of others.
type said struct {
	report.Short
	Alike template.URL
}

type fact struct {
	Name, Value string
	At          time.Time // in the place of a value
	Link        template.URL
}

type event struct {
	At         time.Time
	Kind, Text string
	Mark       string // fault or stretch, where it is one
	Times      int    // it happened in that second
}

// progress is how far a run is.
type progress struct {
	Phase, Step   string
	Number, Steps int
	Elapsed, Left string
	AtLeast, Late bool
	Open          bool // nothing tells when the step that goes on will end
	Percent       int
}

// runPage is the page of one run: of one that goes on what it does, of one that ended what was found.
func (s *Site) runPage(ctx context.Context, r *http.Request, doc *document) error {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		return errMissing(r.PathValue("id"))
	}
	v := &runView{Run: rowOf(b)}
	v.Title = titled(v.Run)
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
		v.Refresh, v.Script = refreshSeconds, followScript()
		doc.policy = scripted(v.Script) + "; connect-src 'self'"
	}
	v.facts(b, m)
	events, _, err := folder.Events()
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
	}
	if v.Run.Live {
		s.live(ctx, b, folder, events, v)
	} else {
		short := s.shorts.of(b.dir, func() inShort { return shortOf(folder) })
		v.Short, v.Problems = short.said, short.problems
	}
	return s.fillRun(doc, v)
}

// mostKept is of how many runs what is made of their documents is kept.
const mostKept = 500

// documents keeps what was made of the data and findings of runs that ended, which takes reading all of them.
type documents[T any] struct {
	mu   sync.Mutex
	kept map[string]kept[T]
}

type kept[T any] struct {
	mark string
	made T
}

func (d *documents[T]) of(dir string, make func() T) T {
	return d.marked(dir, markOf(dir, "manifest.json", "data.json", "findings.json"), make)
}

// marked returns what was made of something that has a mark as long as it is the same.
func (d *documents[T]) marked(dir, mark string, make func() T) T {
	d.mu.Lock()
	known, there := d.kept[dir]
	d.mu.Unlock()
	if there && known.mark == mark {
		return known.made
	}
	made := kept[T]{mark, make()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil || len(d.kept) >= mostKept {
		d.kept = map[string]kept[T]{}
	}
	d.kept[dir] = made
	return made.made
}

// problemOf says what is wrong with a run, which of one that ended is also what of it is damaged.
func (s *Site) problemOf(b book) string {
	if b.live() || b.experiment != nil {
		return b.problem
	}
	return strings.Trim(b.problem+"; "+s.damages.of(b.dir, func() string { return damageOf(b.dir) }), "; ")
}

// damageOf says of a run that ended which of the documents that its answer is of are not as they were written.
func damageOf(dir string) string {
	folder, err := result.Glance(dir)
	if err != nil {
		return "" // said already
	}
	files := []string{"data.json", "findings.json"}
	if len(folder.Problems()) == 0 { // else it is said what is wrong with the manifest
		files = append(files, "manifest.json")
	}
	return strings.Join(folder.VerifySumsOf(files...), "; ")
}

// inShort is the summary of a run that ended, as its report has it, and what of the run is damaged.
type inShort struct {
	said     []said
	problems []string
}

func shortOf(folder *result.Folder) (out inShort) {
	doc, err := report.Build(folder)
	if err != nil {
		return inShort{problems: append(folder.Problems(), err.Error())}
	}
	out.problems = doc.Problems
	for _, short := range doc.InShort {
		one := said{Short: short}
		for _, b := range doc.Beside {
			if short.Check == report.BesideCheck && short.Subject == b.Workload {
				one.Alike = linkToAlike(b.Alike)
			}
		}
		out.said = append(out.said, one)
	}
	return out
}

// linkToAlike is where the records are that did a load.
func linkToAlike(load string) template.URL {
	return template.URL("/catalogue?" + url.Values{"alike": {load}}.Encode())
}

func (s *Site) fillRun(doc *document, v *runView) error {
	link, reported, drawings, script := v.Run.Link, v.Report, v.Drawings, v.Script // made here, and escaped
	*v = report.Shown(*v)
	v.Run.Link, v.Report, v.Drawings, v.Script = link, reported, drawings, script
	return s.fill(doc, "run.html.tmpl", v)
}

// in completes the frame.
func (v *runView) in(s *Site) { v.frame.in(s) }

func (v *runView) facts(b book, m result.Manifest) {
	add := func(name, value string) {
		if value != "" {
			v.Facts = append(v.Facts, fact{Name: name, Value: value})
		}
	}
	add("Target", m.Target)
	add("Cluster", m.ClusterName)
	if n := len(m.Nodes); n > 0 {
		add("Nodes", fmt.Sprint(n))
	}
	v.Facts = append(v.Facts, fact{Name: "Made", At: b.made})
	add("Took", v.Run.Took)
	add("Name", v.Run.Name)
	add("Tags", strings.Join(v.Run.Tags, ", "))
	add("Note", v.Run.Note)
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
	v.Progress = progressOf(folder, m, events, s.now())
	v.Events = newestOf(events)
	data, err := s.soFar(ctx, b, folder)
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
		return
	}
	v.Problems = append(v.Problems, data.Problems...)
	v.Tiles = tiles(data, v.Progress, s.errorsOf(ctx, b, data.End))
	v.Drawings = report.Drawings(data.Panels, data.Events, data.Start)
	if !slices.ContainsFunc(v.Drawings, func(d report.Drawing) bool { return d.SVG != "" }) {
		v.Drawings = nil // that nothing was measured yet needs no chart each
	}
}

// newestOf are the newest entries of a journal in words, the last first; alike ones of one moment, as of a thousand
// machines, are one.
func newestOf(events []result.Event) (out []event) {
	for _, e := range slices.Backward(events) {
		if e.Kind == result.KindWorkload && e.Data.VM != "" && e.Error == "" &&
			(e.Text == result.WorkloadStart || e.Text == result.WorkloadEnd) {
			continue // its group says it
		}
		one := inWords(e)
		if n := len(out); n > 0 {
			if e.Kind == result.KindWritten && strings.HasSuffix(out[n-1].Text, result.PlainNames(e.Text)) {
				continue // a warning says it
			}
			if one.Times = out[n-1].Times; one == out[n-1] {
				out[n-1].Times++
				continue
			}
		}
		if len(out) == mostEvents {
			break
		}
		one.Times = 1
		out = append(out, one)
	}
	return out
}

// errorsOf is how many operations of a run failed until a time, in words; "" where that cannot be told.
func (s *Site) errorsOf(ctx context.Context, b book, at time.Time) string {
	opened, err := s.shelf.stores.borrow(ctx, b)
	if err != nil {
		return ""
	}
	defer s.shelf.stores.release(opened)
	a, err := opened.store.AnswerAt(ctx, "sum(last_over_time("+record.WorkloadErrors+"[1d]))", at, 1)
	var found []struct {
		Value [2]any `json:"value"`
	}
	if err != nil || json.Unmarshal(a.Result, &found) != nil {
		return ""
	}
	if len(found) == 0 {
		return "0"
	}
	return fmt.Sprint(found[0].Value[1])
}

// soFar returns what can be shown of a run that goes on.
func (s *Site) soFar(ctx context.Context, b book, folder *result.Folder) (*result.Data, error) {
	opened, err := s.shelf.stores.borrow(ctx, b)
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

// lateSeconds may pass beyond a tenth more than planned before a step is called late.
const lateSeconds = 5

// progressOf reads from plan and journal how far a run is.
func progressOf(folder *result.Folder, m result.Manifest, events []result.Event, now time.Time) *progress {
	if n := len(events); m.Simulated && n > 0 {
		now = events[n-1].Time // its time is not that of this machine
	}
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
			took := now.Sub(began).Seconds()
			left += max(0, step.Estimate-took)
			p.Late = !step.Unknown && took > 1.1*step.Estimate+lateSeconds
			p.Open = step.Unknown || p.Late
		default:
			left += step.Estimate
		}
		p.AtLeast = p.AtLeast || step.Unknown
	}
	elapsed := max(0, now.Sub(m.Created))
	p.Elapsed = unit.Duration(elapsed.Round(time.Second)).String()
	if len(plan.Steps) > 0 && !p.Open && left >= 1 && left < 1e9 {
		p.Left = unit.Duration(time.Duration(left * float64(time.Second)).Round(time.Second)).String()
	}
	if len(plan.Steps) > 0 {
		p.Percent = min(99, int(100*elapsed.Seconds()/max(elapsed.Seconds()+left, 1))) // it goes on
	}
	return p
}

// reportPage is the run's report, made of its folder: a page that lies in the folder could be anybody's.
func (s *Site) reportPage(ctx context.Context, r *http.Request, doc *document) error {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		return errMissing(r.PathValue("id"))
	}
	return s.reportOf(ctx, b, doc)
}

// kinds are those of files that are handed over, by the end of their name.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8",
	".md": "text/markdown; charset=utf-8", ".json": jsonKind}

// handOver writes a document as the file that a request names, with "redact" without what names a host, an address, a
// disk or a user.
func handOver[T any](r *http.Request, doc *document, id string, what T, redacted func() T,
	files map[string]func(io.Writer, T) error) error {
	name := r.PathValue("file")
	write := files[name]
	if write == nil {
		return errMissing(id + "/" + name)
	}
	doc.kind, doc.file = kinds[path.Ext(name)], "plimsoll-"+name
	if r.URL.Query().Get("redact") != "" {
		what, doc.file = redacted(), "redacted-"+name
	}
	return write(&doc.body, what)
}

// reportFile is the report as a file.
func (s *Site) reportFile(ctx context.Context, r *http.Request, doc *document) error {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		return errMissing(r.PathValue("id"))
	}
	built, err := s.built(ctx, b)
	if err != nil {
		return err
	}
	redacted := func() *report.Document { return report.Redacted(built, b.dir) }
	return handOver(r, doc, b.id, built, redacted, map[string]func(io.Writer, *report.Document) error{
		"report.html": report.HTML, "report.csv": report.CSV, "report.md": report.Markdown, "report.json": report.JSON})
}

func (s *Site) built(ctx context.Context, b book) (*report.Document, error) {
	folder, err := result.Open(b.dir)
	if err != nil {
		return nil, err
	}
	if folder.Manifest().Status == result.StatusExecuting {
		return s.liveReport(ctx, b, folder)
	}
	return report.Build(folder)
}

func (s *Site) reportOf(ctx context.Context, b book, doc *document) error {
	built, err := s.built(ctx, b)
	if err != nil {
		return err
	}
	doc.policy = "frame-ancestors 'none'" // the page has a policy of its own, with the sum of its script
	built.Home = string(rowOf(b).Link)
	return report.HTML(&doc.body, built)
}

func (s *Site) liveReport(ctx context.Context, b book, folder *result.Folder) (*report.Document, error) {
	data, err := s.soFar(ctx, b, folder)
	if err != nil {
		return nil, err
	}
	return report.BuildSoFar(folder, data)
}
