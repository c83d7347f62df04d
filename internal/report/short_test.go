package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// ranks are of checks that answer what a run was made to find out.
var ranks = map[string]int{"recovery": 120, "windows": 130, "latency-cost": 130, "in-turn": 135, "ingest": 140}

func finding(check string, severity result.Severity, sentence string) result.Finding {
	return result.Finding{Check: check, Severity: severity, Subject: "W", Sentence: sentence, Rank: ranks[check]}
}

// harm is a finding of a change by so much, above 1 for the worse.
func harm(f result.Finding, factor float64) result.Finding {
	h := math.Log(factor)
	f.Harm = &h
	return f
}

// of is a finding of another subject.
func of(subject string, f result.Finding) result.Finding {
	f.Subject = subject
	return f
}

// TestInShort: what forbids a conclusion first, then the answer, then what to mind; five sentences at most, one of each
// check.
func TestInShort(t *testing.T) {
	for name, c := range map[string]struct {
		in   []result.Finding
		want []string
	}{
		"nothing": {nil, nil},
		"all in order": {[]result.Finding{finding("cache", result.Passed, "A."), finding("errors", result.Passed,
			"B.")},
			[]string{"No warnings; 2 checks passed."}},
		"plain answer": {[]result.Finding{finding("steady-state", result.Passed,
			"W was steady: at 4 operations per second."), finding("cache", result.Info, "C.")},
			[]string{"W was steady: at 4 operations per second."}},
		"several beside each other": {[]result.Finding{
			{Check: "steady-state", Subject: "A", Severity: result.Passed, Sentence: "A was steady."},
			{Check: "steady-state", Subject: "B", Severity: result.Passed, Sentence: "B was steady."},
			{Check: "steady-state", Subject: "C", Severity: result.Passed, Sentence: "C was steady."},
			{Check: "steady-state", Subject: "D", Severity: result.Passed, Sentence: "D was steady."},
			{Check: "steady-state", Subject: "E", Severity: result.Passed, Sentence: "E was steady."},
		}, []string{"A was steady.", "B was steady.", "C was steady.", "D was steady."}},
		"first of text": {[]result.Finding{finding("errors", result.Warning,
			"12 failed at p99.9 of 5 ms. They count nowhere.")}, []string{"12 failed at p99.9 of 5 ms."}},
		"answer between": {[]result.Finding{
			finding("cache", result.Invalid, "Blocker."), finding("offered-rate", result.Warning, "Caution."),
			finding("latency-kind", result.Warning, "Same caution."),
			harm(finding("windows", result.Info, "Small."), 1.1),
			harm(finding("windows", result.Info, "Large."), 2),
		}, []string{"Blocker.", "Large.", "Caution."}},
		"unchanged windows are an answer": {
			[]result.Finding{harm(finding("windows", result.Passed, "Neither moved."), 1)}, []string{"Neither moved."}},
		"a large loss before a small gain": {[]result.Finding{
			harm(finding("windows", result.Info, "Gain of ×0.756."), 0.756),
			harm(finding("windows", result.Info, "Loss of ×5."), 5),
		}, []string{"Loss of ×5."}},
		"a large gain before a small loss": {[]result.Finding{
			harm(finding("windows", result.Info, "Loss of ×1.1."), 1.1),
			harm(finding("windows", result.Info, "Gain of ×0.1."), 0.1),
		}, []string{"Gain of ×0.1."}},
		"a loss before a gain of its size": {[]result.Finding{
			harm(finding("windows", result.Info, "Gain."), 1/2.2),
			harm(finding("windows", result.Info, "Loss."), 2),
		}, []string{"Loss."}},
		"what is sure before what is not": {[]result.Finding{
			finding("windows", result.Info, "Perhaps ×9."), harm(finding("windows", result.Info, "Surely ×2."), 2),
		}, []string{"Surely ×2."}},
		"the time where it alone moved": {[]result.Finding{
			harm(finding("windows", result.Info, "Rate ×1.1."), 1.1), harm(finding("latency-cost", result.Info,
				"Time ×5."), 5),
		}, []string{"Time ×5."}},
		"the rate where both did": {[]result.Finding{
			harm(finding("windows", result.Info, "Rate ×5."), 5), harm(finding("latency-cost", result.Info,
				"Time ×5.1."), 5.1),
		}, []string{"Rate ×5."}},
		"others that changed, by size": {[]result.Finding{
			harm(finding("windows", result.Info, "W: loss of ×2."), 2),
			harm(of("A", finding("windows", result.Info, "A: loss of ×1.5.")), 1.5),
			harm(of("B", finding("in-turn", result.Info, "B: gain of ×0.5.")), 0.5),
			harm(of("C", finding("windows", result.Info, "C: loss of ×4.")), 4),
			harm(of("C", finding("latency-cost", result.Info, "C: time ×4.")), 4),
		}, []string{"C: loss of ×4.", "B: gain of ×0.5.", "W: loss of ×2."}},
		"warnings keep their places": {[]result.Finding{
			finding("a", result.Warning, "1."), finding("b", result.Warning, "2."), finding("c", result.Warning, "3."),
			harm(finding("windows", result.Info, "Loss of ×2."), 2), harm(finding("in-turn", result.Info,
				"Gain."), 0.5), harm(of("A", finding("windows", result.Info, "Other.")), 1.5),
		}, []string{"Loss of ×2.", "Gain.", "1.", "2.", "3."}},
		"what is wrong in several places": {[]result.Finding{
			of("A", finding("lost", result.Invalid, "A lost 1 VM.")),
			of("B", finding("lost", result.Invalid, "B lost 1 VM.")),
			of("C", finding("lost", result.Invalid, "C lost 2 VMs.")),
			of("A", finding("errors", result.Warning, "2 failed.")),
			of("B", finding("errors", result.Info, "0 failed.")),
		}, []string{"A lost 1 VM (and 2 more like it).", "2 failed."}},
		"nothing to judge": {[]result.Finding{finding("constant", result.Info, "x is 5 in every row.")},
			[]string{"x is 5 in every row."}},
	} {
		var got []string
		for _, s := range InShort(c.in) {
			got = append(got, s.Sentence)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	var many []result.Finding
	for i := range 40 {
		many = append(many, finding(fmt.Sprint("c", i), []result.Severity{result.Invalid, result.Warning}[i%2], "S."))
	}
	if n := len(InShort(many)); n != mostShort {
		t.Errorf("%d sentences", n)
	}
}

// TestEvidenceOfNonsense: whatever a chart holds, the drawing holds numbers only.
func TestEvidenceOfNonsense(t *testing.T) {
	nan, inf, one := math.NaN(), math.Inf(1), 1.0
	for name, c := range map[string]*result.Chart{
		"none":            nil,
		"empty":           {},
		"no values":       {Lines: []result.ChartLine{{X: []float64{1, 2}, Y: []*float64{nil, &nan}}}},
		"unequal lengths": {Lines: []result.ChartLine{{X: []float64{1}, Y: []*float64{&one, &one}}}},
		"one point":       {XUnit: "s", Lines: []result.ChartLine{{X: []float64{1}, Y: []*float64{&one}}}},
		"zero on a logarithm": {XLog: true, XUnit: "bytes",
			Lines:  []result.ChartLine{{Points: true, X: []float64{0, 1, 4}, Y: []*float64{&one, nil, &inf}}},
			Marks:  []result.ChartPlace{{At: nan, Text: "<b>"}, {At: 1, Text: "<script>"}},
			Levels: []result.ChartPlace{{At: inf}, {At: 2, Text: "&"}}},
	} {
		v := newEvidence(c)
		if v == nil {
			continue
		}
		svg := string(v.SVG)
		for _, bad := range []string{"NaN", "Inf", "<script>", "<b>", "-9223372036854775808"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%s: %q in %s", name, bad, svg)
			}
		}
	}
}

// TestManyAlike: of many findings of one sort the Markdown names the subjects; answers are all told.
func TestManyAlike(t *testing.T) {
	var all []result.Finding
	for i := range 6 {
		name := string(rune('A' + i))
		all = append(all, result.Finding{Check: "cache", Subject: name, Severity: result.Info, Sentence: name +
			" may be cached."},
			result.Finding{Check: "windows", Subject: name, Severity: result.Info, Rank: 130, Sentence: name +
				" moved."})
	}
	var b strings.Builder
	if err := FindingsMarkdown(&b, "T", []string{"Simulated."}, all); err != nil {
		t.Fatal(err)
	}
	want := "## T\n\n**Simulated.**\n\n- A moved.\n\n### What was found\n\n- **info** A moved.\n" +
		"- **info** B moved.\n- **info** C moved.\n- **info** D moved.\n- **info** E moved.\n- **info** F moved.\n" +
		"- **info** A may be cached.\n  - and 5 more like it: B, C, D, E, F\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestMind(t *testing.T) {
	got := Mind(result.Manifest{Simulated: true, TimeScale: 0.1, SizeScale: 1, Status: result.StatusStopped})
	if len(got) != 3 || !strings.HasPrefix(got[0], "Simulated: ") ||
		!strings.HasPrefix(got[1], "Scaled: time ×0.1, sizes ×1.") {
		t.Errorf("%q", got)
	}
	if got := Mind(result.Manifest{TimeScale: 1, SizeScale: 1, Status: result.StatusSucceeded}); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestUnsaid: what a summary says stands in no list after it, but for what a finding says after that.
func TestUnsaid(t *testing.T) {
	summary := []Short{{Severity: result.Warning, Sentence: "A was short."}}
	doc := &Document{Title: "T", InShort: summary, Findings: []result.Finding{
		{Check: "a", Subject: "A", Severity: result.Warning, Sentence: "A was short."},
		{Check: "b", Subject: "A", Severity: result.Warning, Sentence: "A was short. Time was scaled."},
		{Check: "c", Subject: "B", Severity: result.Info, Sentence: "B was long."}}}
	for name, write := range map[string]func(io.Writer, *Document) error{"text": Text, "md": Markdown} {
		var out strings.Builder
		if err := write(&out, doc); err != nil {
			t.Fatal(err)
		}
		for want, n := range map[string]int{"A was short.": 1, "A: Time was scaled.": 1, "B was long.": 1} {
			if got := strings.Count(out.String(), want); got != n {
				t.Errorf("%s says %q %d times:\n%s", name, want, got, &out)
			}
		}
	}
	var page strings.Builder
	if err := HTML(&page, doc); err != nil {
		t.Fatal(err)
	}
	told := page.String()[strings.Index(page.String(), "2 findings of the summary"):]
	if strings.Count(told, "A was short.") != 2 || !strings.Contains(told, "Time was scaled.") {
		t.Errorf("what the summary says is not among its findings: %s", told)
	}
}

// TestSaidOnce: what the summary says is not said again beside it, however it joins sentences.
func TestSaidOnce(t *testing.T) {
	summary := []Short{{Sentence: "A kept back after 5 s (lowest 3 IOPS; between 4 s and 5 s); B booted in 2 s."}}
	for sentence, want := range map[string]bool{
		"A kept back after 5 s (lowest 3 IOPS); no errors reported.": true,
		"B booted in 2 s; all of them.":                              true,
		"B booted in 2 min.":                                         false,
	} {
		if got := Said(summary, result.Finding{Sentence: sentence}); got != want {
			t.Errorf("%q: %v", sentence, got)
		}
	}
}

// The first line says where the load went, of hosts by their names too.
func TestWhereOnHosts(t *testing.T) {
	t.Parallel()
	var all []result.Fact
	for _, disk := range []string{"/dev/disk/by-id/nvme-M_S", "file in /var/tmp", "/dev/c", "/dev/d", "/dev/e",
		"/dev/f"} {
		all = append(all, result.Fact{Group: "storage", Name: "db1: " + disk, Value: "64 MiB"})
	}
	const want = "Load on db1: /dev/disk/by-id/nvme-M_S (64 MiB) and db1: file in /var/tmp (64 MiB)."
	if got := Where(all[:2]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Where(all); !strings.HasSuffix(got, "and 2 more.") {
		t.Errorf("%q", got)
	}
}

// The best point of an experiment says how sure it is, and a mean of changes that the means contradict what it is.
func TestSentencesOfExperiments(t *testing.T) {
	one := compare.CellValue{Value: 40, Interval: resample.None("one run")}
	best := compare.Best{Workload: "A", Name: "IOPS", Unit: "ops/s", Cell: "depth 4", Rate: one}
	unsure := best
	unsure.Unsure = []string{"depth 1", "depth 2"}
	down, up := -0.04, 0.1
	for want, got := range map[string]string{
		"IOPS of A is highest at depth 4: 40 IOPS (no interval: one run).": bestSentence(best, 3, 0.05),
		"IOPS of A is highest at depth 4: 40 IOPS (no interval: one run); whether depth 1, depth 2 do less is " +
			"inconclusive.": bestSentence(unsure, 3, 0.05),
		"110 IOPS instead of 100 IOPS on average, and −4 % in the geometric mean of what each repeat has": changed(
			compare.Measure{Unit: "ops/s", Change: &down,
				Baseline:  compare.Values{Value: 100, Runs: []float64{50, 150}},
				Candidate: compare.Values{Value: 110, Runs: []float64{20, 200}}}),
		"110 IOPS instead of 100 IOPS, +10 %": changed(
			compare.Measure{Unit: "ops/s", Change: &up, Baseline: compare.Values{Value: 100, Runs: []float64{99, 101}},
				Candidate: compare.Values{Value: 110, Runs: []float64{109, 111}}}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
