package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/report/catalogue"
	"plimsoll/internal/testkit/comparetest"
	"plimsoll/internal/testkit/golden"
)

func comparedSides() []compare.Side {
	r := rand.New(rand.NewPCG(9, 0))
	law := comparetest.Law{Rate: 40, Mean: 0.002, Spread: 0.01, Noise: 0.05, Seconds: 40, Series: 2}
	side := func(name string, first, n int) compare.Side {
		s := compare.Side{Name: name}
		for i := range n {
			s.Runs = append(s.Runs, compare.Run{Manifest: comparetest.Manifest(first + i),
				Data: comparetest.Data(r, law)})
		}
		return s
	}
	a := side("before", 1, 4)
	law.Rate, law.Mean = law.Rate*0.8, law.Mean*1.3
	b := side("after", 5, 4)
	for i := range b.Runs {
		b.Runs[i].Manifest.Environment[0].Value = "6.9.1 <b>"
	}
	return []compare.Side{a, b}
}

func TestCompareDocuments(t *testing.T) {
	d, err := compare.Of(comparedSides(), compare.Options{Anyway: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(io.Writer, *compare.Document) error{
		"compare.txt": CompareText, "compare.md": CompareMarkdown, "compare.html": CompareHTML,
		"compare.json": CompareJSON,
	} {
		var b bytes.Buffer
		if err := write(&b, d); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+name, b.Bytes())
		if strings.HasSuffix(name, ".html") {
			if page := b.String(); strings.Contains(page, "6.9.1 <b>") || strings.Contains(page, "<script") ||
				strings.Contains(page, "http") && strings.Contains(page, "://") {
				t.Error("the page holds an author's markup, a script, or an address")
			}
		} else if name != "compare.json" && !strings.HasPrefix(strings.TrimLeft(b.String(), "*"), "COMPARED ANYWAY") {
			t.Errorf("%s: what must be read first is not first", name)
		}
	}
}

func madeExperiment(t *testing.T) *compare.Experiment {
	t.Helper()
	r := rand.New(rand.NewPCG(10, 0))
	d := compare.Design{ID: "20260301-120000-made", Title: "Made <i>", Summary: "What do pages and depth do?",
		Order: "randomised", Repeats: 2, Planned: 9,
		Failed: []compare.Unmade{{Cell: "pages=1G depth=8", Levels: []string{"1G", "8"}, Repeat: 2, Sequence: 8,
			Reason: "no 1G pages"}},
		Factors: []compare.Factor{{Name: "pages", Levels: []string{"none", "1G"}},
			{Name: "depth", Levels: []string{"1", "8"}}}}
	for n := range 7 {
		law := comparetest.Law{Rate: 40 * (1 + 0.1*float64(n/2%2)) * (1 + float64(n%2)), Mean: 0.002, Spread: 0.01,
			Noise: 0.05, Seconds: 30}
		d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: comparetest.Manifest(n + 1),
			Data: comparetest.Data(r, law)},
			Levels: []string{d.Factors[0].Levels[n/2%2], d.Factors[1].Levels[n%2]}, Repeat: n/4 + 1, Sequence: n + 1})
	}
	x, err := compare.OfExperiment(d, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExperimentDocuments(t *testing.T) {
	x := madeExperiment(t)
	for name, write := range map[string]func(io.Writer, *compare.Experiment) error{
		"experiment.txt": ExperimentText, "experiment.csv": ExperimentCSV,
		"experiment.md": ExperimentMarkdown, "experiment.html": ExperimentHTML,
		"experiment.json": ExperimentJSON,
	} {
		var b bytes.Buffer
		if err := write(&b, x); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+name, b.Bytes())
		if strings.HasSuffix(name, ".html") &&
			(strings.Contains(b.String(), "Made <i>") || strings.Contains(b.String(), "<script")) {
			t.Error("the page holds an author's markup or a script")
		}
	}
}

func TestPlot(t *testing.T) {
	low, high := 8.0, 12.0
	for name, p := range map[string]Plot{
		"nothing":   {},
		"one point": {Series: []PlotSeries{{Marks: true, Points: []PlotPoint{{X: 1, Y: 10, Low: &low, High: &high}}}}},
		"open ends": {Series: []PlotSeries{{Line: true,
			Points: []PlotPoint{{X: 1, Y: 10, Low: &low}, {X: 2, Y: 11, High: &high}}}}},
		"named": {Names: []string{"<a>", "b"},
			Series: []PlotSeries{{Name: "x<y", Line: true, Marks: true, Points: []PlotPoint{{X: 0, Y: 1}}},
				{Name: "z"}}},
		"bars": {Names: []string{"a", "b"}, Series: []PlotSeries{{Name: "x", Bars: true,
			Points: []PlotPoint{{X: 0, Y: 1}, {X: 1, Y: 0}}},
			{Name: "y", Bars: true, Points: []PlotPoint{{X: 1, Y: 2}}}}},
	} {
		var b bytes.Buffer
		if err := PlotSVG(&b, p); err != nil || !strings.HasPrefix(b.String(), "<svg xmlns=") ||
			strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "<a>") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

// TestPlotEnds: the end of an interval that lies outside of a chart has no bar, and a chart without a name of its axis
// has no half a label.
func TestPlotEnds(t *testing.T) {
	t.Parallel()
	low, high := 8.0, 12.0
	bars := func(low, high *float64) int {
		p := Plot{Title: "T", YLabel: "IOPS",
			Series: []PlotSeries{{Marks: true, Points: []PlotPoint{{X: 1, Y: 10, Low: low, High: high}}}}}
		text := string(p.draw(true))
		if !strings.Contains(text, `aria-label="T: IOPS"`) {
			t.Errorf("its label: %.80s", text)
		}
		return strings.Count(text, "h8")
	}
	for want, got := range map[int]int{0: bars(nil, nil), 1: bars(&low, nil), 2: bars(&low, &high)} {
		if got != want {
			t.Errorf("%d bars, want %d", got, want)
		}
	}
}

// TestMarkFigure: the figure of a mark has the digits of its sentence, its limit, and no confidence that it has not.
func TestMarkFigure(t *testing.T) {
	t.Parallel()
	rate, low, high := 148811.0, 146372.0, 151384.0
	a := loadmark.Answer{Verdict: loadmark.Found, Rate: &rate, Low: &low, High: &high, Limit: "read p99 < 2ms"}
	fitted := a
	fitted.Confidence, fitted.Limit = 0.95, loadmark.RateMet
	ended := fitted
	ended.Unfinished = true
	for want, a := range map[string]loadmark.Answer{
		"unfinished: mark 148,800 IOPS (95 %: 146,400 to 151,400 IOPS)":          ended,
		"mark 148,800 IOPS at read p99 < 2ms (between 146,400 and 151,400 IOPS)": a, // what held and what broke
		"mark 148,800 IOPS (95 %: 146,400 to 151,400 IOPS)":                      fitted,
	} {
		if got := markFigure(&a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	of := catalogue.Figure{Name: catalogue.Mark, Unit: "IOPS", Value: rate, Low: &low, High: &high, Unfinished: true}
	if got, want := withInterval(of), "148,800 IOPS (146,400 to 151,400), unfinished"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for want, m := range map[string]compare.Measure{
		"148,800 IOPS": {Name: "mark", Workload: "r", Unit: "IOPS"}, "148,811 IOPS": {Name: "mark", Unit: "IOPS"}} {
		if got := valueText(m, compare.Values{Value: rate}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := valueText(compare.Measure{Name: "mark", Workload: "r"}, compare.Values{Value: math.NaN()}); got != none {
		t.Errorf("no mark is %q", got)
	}
}

// TestLevel: the name of a level stands where no line runs, between its ends where lines run at both.
func TestLevel(t *testing.T) {
	t.Parallel()
	d := newDrawing("T", 200, 0, 100, 0, 100)
	for _, from := range []float64{0, 80} { // lines at both ends, above and below
		d.drew(d.x(from), d.y(90), d.x(from+20), d.y(10))
	}
	d.level(50, "90 % of before")
	if text := d.b.String(); strings.Contains(text, fmt.Sprintf(`x="%d"`, int(d.right)-4)) ||
		strings.Contains(text, fmt.Sprintf(`x="%d"`, int(d.left)+4)) {
		t.Errorf("it stands where a line runs: %s", text)
	}
	d = newDrawing("T", 200, 0, 100, 0, 100)
	d.drew(int(d.left), 0, int(d.right)-7*len("90 % of before"), 200)
	d.drew(int(d.left), 0, int(d.right), d.y(50)-1)
	d.level(50, "90 % of before") // there is room below its right end, but not on a phone
	if text := d.b.String(); !strings.Contains(text, fmt.Sprintf(`x="%d" y="%d"`, int(d.right)-4, d.y(50)+13)) {
		t.Errorf("it stands on a line though there is room: %s", text)
	}
}

// A change and its interval are written in one way, and a verdict says what its interval does not hold of other runs.
func TestChangesInOneWay(t *testing.T) {
	t.Parallel()
	row := func(change, low, high float64, v compare.Verdict) string {
		m := compare.Measure{Change: &change, Verdict: v,
			Adjusted: resample.Interval{Low: low, High: high, Confidence: 0.95}}
		return changeText(m) + "; " + compareInterval(m) + "; " + verdictText(m, 0.05)
	}
	for _, c := range []struct{ got, want string }{
		{row(0.2, 0.1, 0.3, compare.Better), "+20 %; +10 % to +30 %; better"},
		{row(2, -0.1, 11, compare.Better), "×3; ×0.9 to ×12; better in these runs"},
		{row(11, 8, 14, compare.Better), "×12; ×9 to ×15; better"},
		{row(0, -0.01, 0.01, compare.Same), "±0 %; −1 % to +1 %; same within 5 %"},
		{row(0.1, -0.1, 0.3, compare.Inconclusive), "+10 %; −10 % to +30 %; inconclusive"},
		{verdictText(compare.Measure{Verdict: compare.Worse}, 0.05), "worse in these runs"}, // there is no interval
	} {
		if c.got != c.want {
			t.Errorf("%s\nwant %s", c.got, c.want)
		}
	}
}

// TestByQuantile: no two lines of a drawing have one colour where a drawing for each percentile keeps them apart.
func TestByQuantile(t *testing.T) {
	t.Parallel()
	chart := compare.Chart{Title: "OLTP read service time p50 and p99"}
	for i := range 5 {
		for _, q := range []string{"p50", "p99"} {
			chart.Lines = append(chart.Lines, compare.ChartLine{Name: fmt.Sprintf("depth %d %s", i, q)})
		}
	}
	said := func(charts []compare.Chart) (out []string) {
		for _, c := range charts {
			line := c.Title + ":"
			for _, l := range c.Lines {
				line += " " + l.Name
			}
			out = append(out, line)
		}
		return out
	}
	want := []string{"OLTP read service time p50: depth 0 depth 1 depth 2 depth 3 depth 4",
		"OLTP read service time p99: depth 0 depth 1 depth 2 depth 3 depth 4"}
	if diff := cmp.Diff(want, said(byQuantile(chart))); diff != "" {
		t.Error(diff)
	}
	chart.Lines = chart.Lines[:8]
	if got := byQuantile(chart); len(got) != 1 {
		t.Errorf("with a colour for each line: %q", said(got))
	}
}

func TestMoreBelow(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 more curve is below.", 2: "2 more curves are below."} {
		if got := moreBelow(n, "curve"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What a condition costs is written as other changes are, and nothing is claimed where its interval holds none.
func TestCosts(t *testing.T) {
	t.Parallel()
	of := func(share, low, high float64) loadmark.Cost {
		return loadmark.Cost{Share: &share, Low: &low, High: &high}
	}
	for want, c := range map[string]loadmark.Cost{
		"24.7 % (23.6 % to 25.9 %)":                  of(0.247, 0.236, 0.259),
		"−4 % (−5.5 % to −2.51 %)":                   of(-0.04, -0.055, -0.0251),
		"0.06 % (0.05 % to 0.07 %)":                  of(0.000612, 0.0005, 0.0007),
		"not told from nothing (−3.77 % to +3.17 %)": of(-0.000607, -0.0377, 0.0317),
		"not known": {},
	} {
		if got := costOf(c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
