package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/kit/exit"
	"plimsoll/unit"
)

// markForm holds what a form of a report says of a search: what was found under each condition, and the rows of probes.
type markForm struct {
	Said   []string
	Probes [][]string
	text   string
}

var (
	pageRow  = regexp.MustCompile(`<th scope="row">([^<]* IOPS)</th><td>([^<]* IOPS)</td><td(?: class="l")?>(.*)</td></tr>`)
	plainRow = regexp.MustCompile(`(?m)^ *([\d,]+ IOPS) {2,}([\d,]+ IOPS) {2,}(\S.*)$`)
	fileRow  = regexp.MustCompile(`(?m)^\| ([\d,]+ IOPS) \| ([\d,]+ IOPS) \| (.*) \|$`)
)

// formOf reads a form: which of the sentences are in it, and its rows.
func formOf(text string, row *regexp.Regexp, sentences []string) (f markForm) {
	text = strings.ReplaceAll(html.UnescapeString(text), "\u00a0", " ")
	f.text = text
	for _, s := range sentences {
		if strings.Contains(text, s) {
			f.Said = append(f.Said, s)
		}
	}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		f.Probes = append(f.Probes, m[1:])
	}
	return f
}

// The terminal, JSON, page, Markdown, comparison and catalogue of one search say the same of its mark, of every probe
// and of every condition, and a condition on the mark goes by it.
func TestMarkFormsAgree(t *testing.T) {
	t.Parallel()
	a, out, errs := quiet(t)
	must := func(v any, args ...string) string {
		t.Helper()
		out.Reset()
		errs.Reset()
		if code := a.main(append(args, "--dir", a.RunsDir)); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, errs)
		}
		if v != nil {
			if err := json.Unmarshal(out.Bytes(), v); err != nil {
				t.Fatalf("%q: %v", args, err)
			}
		}
		return out.String()
	}
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[r]\nioengine=libaio\niodepth=16\nrw=randread\nbs=8k\nsize=64m\ndirect=1\n")
	args := []string{"mark", job, "--target", "sim", "--runtime", "10s", "--time-scale", "0.05", "--limit",
		"read p99 < 1ms", "--limit", "errors = 0", "--at", "2500", "--condition", "alone", "--condition", "worn-in"}
	if code := a.main(append(args, "--assert", "mark >= 1M", "--dir", a.RunsDir)); code != exit.Threshold {
		t.Fatalf("--assert on too high a mark: exit code %d: %s", code, errs)
	}
	terminal := out.String()
	type answers struct {
		ID     string       `json:"experiment_id"`
		Limits []string     `json:"limits"`
		Mark   *mark.Answer `json:"mark"`
		Lines  []mark.Line  `json:"lines"`
		Costs  []mark.Cost  `json:"costs"`
	}
	var printed, reported answers
	must(&reported, "report", "latest", "-o", "json")
	if reported.Mark == nil || len(reported.Lines) != 2 || len(reported.Costs) != 1 ||
		reported.Mark.Verdict != mark.Found {
		t.Fatalf("no mark under two conditions: %+v", reported)
	}
	least := math.Min(*reported.Lines[0].Low, *reported.Lines[1].Low)
	again := must(&printed, append(args, "--json", "--assert", fmt.Sprintf("mark >= %.0f", math.Floor(least)))...)
	if diff := cmp.Diff(reported.Lines, printed.Lines); diff != "" { // the same model gives the same answer
		t.Errorf("JSON of the report, then of the command: %s", diff)
	}
	if diff := cmp.Diff([]string{"r read p99 < 1ms", "r errors = 0"}, reported.Limits); diff != "" {
		t.Errorf("limits: %s", diff)
	}
	if diff := cmp.Diff(printed.Limits, reported.Limits); diff != "" {
		t.Errorf("limits of the command, then of the report: %s", diff)
	}
	var whole mark.Answer
	if err := json.Unmarshal([]byte(again), &whole); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reported.Mark, &whole); diff != "" {
		t.Errorf("the first mark of the report, then of the command: %s", diff)
	}

	want := markForm{}
	for _, l := range reported.Lines {
		want.Said = append(want.Said, l.Sentence)
		for _, p := range l.Probes {
			outcome := fmt.Sprintf("held: %s at %.0f %% of its limit", p.Limit, 100/p.Margin)
			if !p.Held {
				outcome = fmt.Sprintf("broken: %s at %.3g times its limit", p.Limit, 1/p.Margin)
			}
			want.Probes = append(want.Probes, []string{unit.Rate(p.Offered).String(), unit.Rate(p.Achieved).String(),
				outcome})
		}
	}
	for _, c := range reported.Costs {
		want.Said = append(want.Said, c.Sentence)
	}
	id := reported.ID
	for name, got := range map[string]markForm{
		"terminal": formOf(terminal, plainRow, want.Said),
		"text":     formOf(must(nil, "report", id, "-o", "text"), plainRow, want.Said),
		"Markdown": formOf(must(nil, "report", id, "-o", "md"), fileRow, want.Said),
		"page":     formOf(must(nil, "report", id, "-o", "html"), pageRow, want.Said),
	} {
		for _, l := range reported.Lines {
			title := fmt.Sprintf("What was used and waited under %q", l.Condition)
			if name != "terminal" && !strings.Contains(got.text, title) {
				t.Errorf("%s: no %s", name, title)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	var compared struct {
		Measures []struct{ Baseline, Candidate struct{ Value float64 } }
	}
	must(&compared, "compare", id, printed.ID, "--json")
	if len(compared.Measures) != 2 {
		t.Fatalf("%d marks are compared", len(compared.Measures))
	}
	for i, m := range compared.Measures {
		if rate := *reported.Lines[i].Rate; m.Baseline.Value != rate || m.Candidate.Value != rate {
			t.Errorf("compared are %+v, found was %v", m, rate)
		}
	}
	record := must(nil, "catalogue", "add", id, "--to", a.RunsDir+"/c", "--json")
	for _, l := range reported.Lines {
		for _, v := range []*float64{l.Rate, l.Low, l.High} {
			if text, _ := json.Marshal(*v); !bytes.Contains([]byte(record), text) {
				t.Errorf("%s is not in the record: %s", text, record)
			}
		}
	}
}
