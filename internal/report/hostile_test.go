package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/catalogue"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/internal/testkit/visibletest"
)

// harmless is a text that is nothing but text in every format.
const harmless = "harmless"

// filled is a small run of which every text is a given one, but the description, which may hold markup.
func filled(text func() string) *Document {
	in := runInput(reporttest.Options{VMs: 2, Length: 10 * time.Second})
	in.Manifest.Hashes, in.Manifest.Options = map[string]string{"": ""}, map[string]string{"": ""}
	in.Manifest.Notes, in.Problems = []string{""}, []string{""}
	visibletest.Fill(&in, text)
	in.Manifest.Scenario.Description = harmless
	for i := range in.Data.Panels {
		in.Data.Panels[i].Unit = "x" + text() // of an unknown unit
	}
	in.Data.VMs[0].Name = "another" // that not all begin alike
	return New(in)
}

// documents makes all documents of one text, by name.
type documents struct {
	compared   *compare.Document
	experiment *compare.Experiment
}

func newDocuments(t *testing.T) documents {
	t.Helper()
	d, err := compare.Of(comparedSides(), compare.Options{Anyway: true})
	if err != nil {
		t.Fatal(err)
	}
	return documents{d, madeExperiment(t)}
}

func (o documents) filled(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	keep := func(name string, write func(io.Writer) error) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = b.String()
	}
	doc, d, x := filled(visibletest.Always(text)), o.compared, o.experiment
	visibletest.Fill(d, visibletest.Always(text))
	visibletest.Fill(x, visibletest.Always(text))
	d.Here, d.Asked, doc.Home, x.Home = "/compare?run=x", "run=x", "/runs/x", "/experiments/x" // the site makes them
	step := map[string]any{"number": 1, "phase": text, "name": text, "text": text}
	doc.Beside = []catalogue.Beside{{Figures: make([]catalogue.Standing, 1), // what strangers recorded
		Records: []catalogue.Alike{{Figures: make([]catalogue.Figure, 1)}}}}
	visibletest.Fill(&doc.Beside, visibletest.Always(text))
	doc.Plan, _ = json.Marshal(map[string]any{"steps": []any{step}})
	keep("report.html", func(w io.Writer) error { return renderHTML(w, doc, stub(t, true)) })
	keep("report.md", func(w io.Writer) error { return Markdown(w, doc) })
	keep("report.txt", func(w io.Writer) error { return Text(w, doc) })
	keep("report.csv", func(w io.Writer) error { return CSV(w, doc) })
	keep("findings.md", func(w io.Writer) error {
		return FindingsMarkdown(w, text, []string{text}, doc.Findings, text)
	})
	keep("compare.html", func(w io.Writer) error { return CompareHTML(w, d) })
	keep("compare.md", func(w io.Writer) error { return CompareMarkdown(w, d) })
	keep("compare.txt", func(w io.Writer) error { return CompareText(w, d) })
	keep("experiment.html", func(w io.Writer) error { return ExperimentHTML(w, x) })
	keep("experiment.csv", func(w io.Writer) error { return ExperimentCSV(w, x) })
	keep("experiment.md", func(w io.Writer) error { return ExperimentMarkdown(w, x) })
	keep("experiment.txt", func(w io.Writer) error { return ExperimentText(w, x) })
	keep("page.html", func(w io.Writer) error {
		p := chartPlot(x.Charts[0])
		page := Page{Notes: []string{""}, Parts: []PagePart{{Head: []string{""}, Rows: [][]string{{""}},
			Notes: []string{""}, Plot: &p}}}
		visibletest.Fill(&page, visibletest.Always(text))
		return PageHTML(w, page)
	})
	keep("plot.svg", func(w io.Writer) error {
		p := chartPlot(x.Charts[0])
		visibletest.Fill(&p, visibletest.Always(text))
		return PlotSVG(w, p)
	})
	for name, write := range map[string]func(io.Writer) error{
		"report.json":     func(w io.Writer) error { return JSON(w, doc) },
		"compare.json":    func(w io.Writer) error { return CompareJSON(w, d) },
		"experiment.json": func(w io.Writer) error { return ExperimentJSON(w, x) },
	} {
		keep(name, func(w io.Writer) error {
			wall := visible.NewWriter(w) // as every command has it
			return errors.Join(write(wall), wall.Close())
		})
	}
	return out
}

// shape is a document without its words: what a reader's program makes of it besides text.
func shape(t *testing.T, name, document string) []string {
	t.Helper()
	_, format, _ := strings.Cut(name, ".")
	switch format {
	case "html":
		return elements(document)
	case "md":
		var b bytes.Buffer
		reader := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList))
		if err := reader.Convert([]byte(document), &b); err != nil {
			t.Fatal(err)
		}
		return elements(b.String())
	case "txt":
		return make([]string, strings.Count(document, "\n"))
	case "csv":
		rows, err := csv.NewReader(strings.NewReader(document)).ReadAll()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var out []string
		for _, row := range rows {
			for _, cell := range row {
				text := strings.TrimSpace(cell)
				if strings.IndexAny(text, "=+-@＝＋－＠\t\r") == 0 && !numeric.MatchString(text) {
					t.Errorf("%s: a formula: %q", name, cell)
				}
			}
			out = append(out, strings.Repeat(",", len(row)))
		}
		return out
	case "svg":
		var out []string
		for d := xml.NewDecoder(strings.NewReader(document)); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				return out
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return out
			}
			if e, ok := tok.(xml.StartElement); ok {
				out = append(out, e.Name.Local)
			}
		}
	case "json":
		if !json.Valid([]byte(document)) {
			t.Errorf("%s: not valid", name)
		}
	}
	return nil
}

// elements are the elements of a page with the names of their attributes, and the values of those that lead somewhere.
func elements(page string) []string {
	var out []string
	z := html.NewTokenizer(strings.NewReader(page))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if kind == html.TextToken {
			continue
		}
		tok := z.Token()
		s := kind.String() + " " + tok.Data
		if kind == html.CommentToken {
			s = "comment"
		}
		for _, a := range tok.Attr {
			s += " " + a.Key
			if slices.Contains([]string{"id", "href", "src", "style", "name"}, a.Key) {
				s += "=" + a.Val
			}
		}
		out = append(out, s)
	}
	return out
}

// TestHostileTexts puts every hostile text into every text of every document: its shape is that of harmless words, and
// nothing hidden is in it.
func TestHostileTexts(t *testing.T) {
	needs.Time(t)
	all, want := newDocuments(t), map[string][]string{}
	for name, document := range all.filled(t, harmless) {
		want[name] = shape(t, name, document)
	}
	for _, h := range visibletest.Texts {
		if strings.TrimSpace(h.Text) == "" {
			continue // what is absent is left out
		}
		t.Run(h.Name, func(t *testing.T) {
			for name, document := range all.filled(t, h.Text) {
				if loose := visibletest.Loose(document); loose != "" {
					t.Errorf("%s: %s", name, loose)
				}
				if diff := cmp.Diff(want[name], shape(t, name, document)); diff != "" {
					t.Errorf("%s (-harmless +hostile):\n%.2000s", name, diff)
				}
			}
		})
	}
}

// TestEndlessTexts: past the bound a document does not grow with the length of a name.
func TestEndlessTexts(t *testing.T) {
	all := newDocuments(t)
	long, endless := all.filled(t, strings.Repeat("n", longestText+1)), all.filled(t, strings.Repeat("n", 1<<16))
	for name, document := range endless {
		if !strings.HasSuffix(name, ".json") && len(document) != len(long[name]) {
			t.Errorf("%s: %d bytes with names of 64 KiB, %d with names just past the bound", name, len(document),
				len(long[name]))
		}
	}
}

// TestJSONKeepsTexts: the JSON report has every text as it was, as far as it was one.
func TestJSONKeepsTexts(t *testing.T) {
	for _, h := range visibletest.Texts {
		var b bytes.Buffer
		wall := visible.NewWriter(&b)
		if err := errors.Join(JSON(wall, &Document{Title: h.Text}), wall.Close()); err != nil {
			t.Fatal(err)
		}
		var got Document
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(h.Text)); got.Title != want {
			t.Errorf("%s: %q became %q", h.Name, want, got.Title)
		}
	}
}
