package compare_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/mark"
)

// Marks are compared in the digits that their searches have; a search that is unfinished is said to be, one without a
// confidence gives none, and one without a mark has no value.
func TestMarksSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	at := func(v float64) *float64 { return &v }
	search := func(name string, a mark.Answer) compare.Search {
		return compare.Search{Name: name, ID: name, Workload: "OLTP", Variable: "rate", Lines: []mark.Line{{Answer: a}},
			Run: side(name, random(1), 1, 1, steady).Runs[0]}
	}
	whole := mark.Answer{Verdict: mark.Found, Rate: at(133_845), Low: at(129_000), High: at(139_000), Confidence: 0.95}
	other := whole
	other.Rate, other.Unfinished, other.Probes = at(134_207), true, make([]mark.Probe, 3)
	cliff := whole
	cliff.Confidence = 0
	for name, c := range map[string]struct {
		second mark.Answer
		said   string
		mind   []string
		json   []string
		sure   bool
	}{
		"unfinished": {other, "The mark is 134,200 IOPS instead of 133,800 IOPS", []string{
			"The search b is unfinished after 3 probes: its mark may change."}, []string{`"unfinished":true`}, true},
		"between": {cliff, "", nil, []string{`"candidate":{"value":133845}`}, false},
		"none": {mark.Answer{Verdict: mark.Inconclusive}, "", nil,
			[]string{`"baseline":{"value":133845}`, `"candidate":{"value":null}`}, false},
	} {
		d, err := compare.OfSearches([]compare.Search{search("a", whole), search("b", c.second)}, compare.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range c.json {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %s in %s", name, want, text)
			}
		}
		if !strings.Contains(d.Sentence, c.said) || !slices.Equal(d.Mind, c.mind) ||
			d.Measures[0].Interval.Valid() != c.sure || len(d.Notes) == 0 != c.sure {
			t.Errorf("%s: %s %q %q %+v", name, d.Sentence, d.Mind, d.Notes, d.Measures[0].Interval)
		}
	}
}
