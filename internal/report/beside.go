package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/report/catalogue"
	"plimsoll/result"
	"plimsoll/unit"
)

// BesideCheck is the Check of sentences of a summary that set a run beside recorded systems.
const BesideCheck = "catalogue"

// mostBeside is about how many loads a summary says where they stand among recorded systems.
const mostBeside = 2

// RecordOf returns what a run gave, as a catalogue records it, and the workloads that its parts are of. Its system has
// the name of the cluster.
func RecordOf(folder *result.Folder) (catalogue.Record, []string, error) {
	doc, err := Build(folder)
	if err != nil {
		return catalogue.Record{}, nil, err
	}
	data, err := folder.Data()
	if err != nil {
		return catalogue.Record{}, nil, err
	}
	r, names := doc.record(data, version(filepath.Join(folder.Dir(), "scenario")))
	return r, names, nil
}

// RecordOfSearch returns the marks that a search found, under each condition, and what each is called.
func RecordOfSearch(s compare.Search) (r catalogue.Record, names []string) {
	run := s.WithoutRate()
	m := run.Manifest
	r = recordOf(m)
	r.ID = s.ID
	of := version(s.Scenario)
	for _, line := range s.Lines {
		load := catalogue.MarkOf(m, s.Workload, s.Variable, s.Limits, line.Condition, of)
		if line.Verdict != loadmark.Found || load == nil {
			continue
		}
		f := catalogue.Figure{Name: catalogue.Mark, Unit: s.Unit(), Value: *line.Rate, Low: line.Low, High: line.High,
			Better: result.Higher, Unfinished: line.Unfinished}
		r.Done = append(r.Done, catalogue.Done{Loads: []catalogue.Load{load}, Figures: []catalogue.Figure{f}})
		name := s.Workload
		if line.Condition != "" {
			name += fmt.Sprintf(" under %q", line.Condition)
		}
		names = append(names, name)
	}
	return r, names
}

// mostNamed are the systems that a sentence about marks names.
const mostNamed = 4

// sayMarks is a sentence about where a mark stands among those of recorded systems, which it names.
func sayMarks(b catalogue.Beside) string {
	var others []string
	for _, a := range b.Records {
		for _, f := range a.Figures {
			if f.Same(b.Figures[0].Figure) {
				others = append(others, a.System+" "+withInterval(f))
			}
		}
	}
	return fmt.Sprintf("%s: mark %s beside %s that did the same: %s.", b.Workload, withInterval(b.Figures[0].Figure),
		unit.Plural(b.Systems, "recorded system"), unit.List(others, mostNamed))
}

// withInterval is a rate with its interval, where it has one.
func withInterval(f catalogue.Figure) string {
	in := loadmark.Answer{Unit: f.Unit}
	text := in.Say(f.Value)
	if f.Low != nil && f.High != nil {
		low, _, _ := strings.Cut(in.Say(*f.Low), " ")
		high, _, _ := strings.Cut(in.Say(*f.High), " ")
		text += fmt.Sprintf(" (%s to %s)", low, high)
	}
	if f.Unfinished {
		text += ", unfinished"
	}
	return text
}

// version stands for the text of a scenario: the beginning of a hash over its files; "" where they cannot be read.
func version(dir string) string {
	sum := sha256.New()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) == ".html" {
			return err
		}
		b, err := regular.Read(filepath.Join(dir, filepath.FromSlash(name)), 0, 16<<20)
		sum.Write([]byte(name + "\x00"))
		sum.Write(b)
		return err
	})
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// recordOf is a record of a run, without what it did.
func recordOf(m result.Manifest) catalogue.Record {
	return catalogue.Record{ID: m.RunID, System: m.ClusterName, Source: m.Operator, Date: m.Created,
		Simulated: m.Simulated}
}

func (doc *Document) record(data *result.Data, version string) (r catalogue.Record, names []string) {
	m := doc.Manifest
	r = recordOf(m)
	machines := map[string]int{}
	for _, w := range data.Workloads {
		if !w.Merged() && !w.Prefill {
			machines[w.Name]++
		}
	}
	for _, w := range data.Workloads {
		i := slices.IndexFunc(doc.Latencies, func(l Latency) bool { return l.Workload == w.Name && len(l.Windows) > 0 })
		if !w.Merged() || w.Prefill || i < 0 || w.Ended == result.Failed || w.Ended == result.Lost {
			continue
		}
		loads := catalogue.LoadsOf(m, w, machines[w.Name], version)
		if len(loads) == 0 {
			continue
		}
		figures := doc.recorded(w, doc.Latencies[i].Windows[0])
		if len(figures) > 0 {
			r.Done, names = append(r.Done, catalogue.Done{Loads: loads, Figures: figures}), append(names, w.Name)
		}
	}
	return r, names
}

// recorded are the figures of a workload that a catalogue keeps.
func (doc *Document) recorded(w result.Workload, t WindowTotals) (out []catalogue.Figure) {
	add := func(name, unit string, value *float64, better result.Direction) {
		if value != nil && finite(*value) {
			out = append(out, catalogue.Figure{Name: name, Unit: unit, Value: *value, Better: better})
		}
	}
	offered := 0.0
	for _, s := range doc.Workloads {
		for _, l := range s.Streams {
			if s.Name == w.Name && s.VM != "" && !s.Prefill {
				offered += l.Rate
			}
		}
	}
	if offered > 0 {
		share := t.OpsPerSecond / offered
		add(catalogue.OfferedShare, "ratio", &share, result.Higher)
	}
	rate := result.Higher
	if offered > 0 { // more than was asked for is not better
		rate = ""
	}
	for _, m := range t.Measures {
		i := slices.IndexFunc(w.Measures, func(o result.Measure) bool { return o.Name == m.Name })
		if i >= 0 && !w.Measures[i].Aside && m.Value != 0 {
			add(m.Name, m.Unit, &m.Value, w.Measures[i].Better)
		}
	}
	measured := slices.ContainsFunc(out, func(f catalogue.Figure) bool { return f.Name == "tps" })
	if !measured && t.Unit == "transactions/s" {
		add("tps", t.Unit, &t.OpsPerSecond, rate)
	}
	for _, r := range t.Rows {
		add(r.Op+" bandwidth", "bytes/s", r.BytesPerSecond, rate)
		add(r.Op, r.Unit, &r.OpsPerSecond, rate)
		add(r.Op+" mean", "s", r.Mean, result.Lower)
		add(r.Op+" p99", "s", r.told("p99"), result.Lower)
	}
	for _, f := range doc.Findings {
		if f.Answers() && f.Subject == w.Name && f.Value != nil && finite(*f.Value) {
			out = append(
				out,
				catalogue.Figure{Name: f.Check + " " + f.Metric, Unit: f.Unit, Value: *f.Value, Low: f.Low,
					High: f.High},
			)
		}
	}
	return out
}

// setBeside sets what a run did beside recorded systems, the published ones and those of the catalogue beside the runs.
func (doc *Document) setBeside(folder *result.Folder, data *result.Data) {
	own, names := doc.record(data, version(filepath.Join(folder.Dir(), "scenario")))
	if len(own.Done) == 0 { // nothing to set beside anything: no record is read
		return
	}
	records, problems := catalogue.All(filepath.Join(filepath.Dir(folder.Dir()), result.CatalogueDir))
	for _, err := range problems {
		doc.Problems = append(doc.Problems, err.Error())
	}
	doc.Beside = catalogue.Set(own, names, records)
	for _, b := range doc.Beside[:min(mostBeside, len(doc.Beside))] {
		doc.InShort = append(doc.InShort, Short{Severity: result.Passed, Check: BesideCheck, Subject: b.Workload,
			Sentence: SayBeside(b)})
	}
}

// standView is a load among recorded systems as a table: a row a system, a column a figure that the run has, too.
type standView struct {
	Title string
	Alike string
	Head  []string
	Rows  []standRow
	// Sources are the published ones among its sources.
	Sources []catalogue.Source
}

type standRow struct {
	Own   bool
	Cells []string
}

// mostStanding are the figures and the systems that such a table shows; the JSON report has all.
const (
	mostStanding = 4
	mostSystems  = 40
)

func newStand(all []catalogue.Beside) (out []standView) {
	for _, b := range all[:min(len(all), maxStands)] {
		figures := b.Figures[:min(len(b.Figures), mostStanding)]
		v := standView{Title: b.Workload + " and " + unit.Plural(b.Systems, "system"), Alike: b.Alike}
		v.Head = []string{"System"}
		own := standRow{Own: true, Cells: []string{"this run"}}
		for _, f := range figures {
			v.Head, own.Cells = append(v.Head, f.Name), append(own.Cells, quantity(f.Value, f.Unit))
		}
		v.Head, own.Cells = append(v.Head, "Source"), append(own.Cells, none)
		v.Rows = []standRow{own}
		for _, a := range b.Records[:min(len(b.Records), mostSystems)] {
			row := standRow{Cells: []string{a.System}}
			for _, f := range figures {
				cell := none
				if i := slices.IndexFunc(a.Figures, f.Same); i >= 0 {
					cell = quantity(a.Figures[i].Value, a.Figures[i].Unit)
				}
				row.Cells = append(row.Cells, cell)
			}
			v.Rows = append(v.Rows, standRow{Cells: append(row.Cells, a.Source)})
			i := slices.IndexFunc(catalogue.Sources(), func(s catalogue.Source) bool { return s.Name == a.Source })
			if i >= 0 && !slices.Contains(v.Sources, catalogue.Sources()[i]) {
				v.Sources = append(v.Sources, catalogue.Sources()[i])
			}
		}
		out = append(out, v)
	}
	return out
}

// maxStands is of how many loads a page has such a table.
const maxStands = 12

// SayBeside is a sentence about where a load stands among recorded systems.
func SayBeside(b catalogue.Beside) string {
	if b.Figures[0].Name == catalogue.Mark {
		return sayMarks(b)
	}
	return b.Say(mostBeside, quantity)
}
