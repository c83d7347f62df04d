package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/analysis/compare"
	"plimsoll/result"
)

// The JUnit form of test results, as continuous integration reads it: a suite with a case per measure.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
		Out      string      `xml:"system-out"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// CompareJUnit writes the verdicts of a comparison as test results: a measure is a case, which fails when fails gives a
// reason, and is skipped when it is inconclusive otherwise. The sentence and the notes stand in the suite's output.
func CompareJUnit(w io.Writer, d *compare.Document, fails func(compare.Measure) string) error {
	d = shown(d)
	s := junitSuite{Name: cmp.Or(d.Title, "plimsoll comparison"),
		Out: strings.Join(slices.Concat(d.Mind, []string{d.Sentence}, d.Notes), "\n")}
	several := sideNumbers(d)
	for _, m := range d.Measures {
		c := junitCase{
			Class: strings.TrimSpace(cmp.Or(m.Workload, "columns") + " " + m.Cell),
			Name:  fullName(m, several),
		}
		text := fmt.Sprintf("%s: from %s to %s, change %s, interval %s", verdictText(m, d.Threshold),
			valueText(m, m.Baseline), valueText(m, m.Candidate), changeText(m), compareInterval(m))
		switch why := fails(m); {
		case why != "":
			c.Failure = &junitMessage{text}
		case m.Verdict == compare.Inconclusive:
			c.Skipped = &junitMessage{text}
		default:
			c.Out = text
		}
		for _, warning := range m.Warnings {
			c.Out = strings.TrimSpace(c.Out + "\n" + warning)
		}
		s.add(c)
	}
	return writeJUnit(w, s)
}

// Assertion is a condition of the run's author and what came of it.
type Assertion struct {
	Name     string   `json:"name"`
	Verdict  string   `json:"verdict"` // met, not met, not judged or inconclusive
	Failed   bool     `json:"failed"`  // whether the run fails by it
	Value    *float64 `json:"value"`
	Unit     string   `json:"unit,omitempty"`
	Limit    *float64 `json:"limit,omitempty"`
	Low      *float64 `json:"low,omitempty"` // the 95 % interval of the value
	High     *float64 `json:"high,omitempty"`
	Sentence string   `json:"sentence"`
}

// Mark returns what stands before it in a list.
func (a Assertion) Mark() string {
	switch {
	case a.Failed:
		return "✗"
	case a.Verdict == assert.Inconclusive:
		return "?"
	}
	return "✓"
}

// Held are the conditions that are met, and NotHeld the others.
func (doc *Document) Held() []Assertion {
	return slices.DeleteFunc(slices.Clone(doc.Asserts), func(a Assertion) bool { return a.Mark() != "✓" })
}

// NotHeld are the conditions that are not met, or could not be judged.
func (doc *Document) NotHeld() []Assertion {
	return slices.DeleteFunc(slices.Clone(doc.Asserts), func(a Assertion) bool { return a.Mark() == "✓" })
}

// assertions are those among the findings of a run.
func assertions(all []result.Finding) (out []Assertion) {
	for _, f := range all {
		if f.Check == assert.Check {
			out = append(out, Assertion{Name: f.Subject, Verdict: assert.Verdict(f), Failed: assert.Failed(f),
				Value: f.Value, Unit: f.Unit, Limit: f.Limit, Low: f.Low, High: f.High, Sentence: f.Sentence})
		}
	}
	return out
}

// RunJUnit writes the conditions of a run as test results: one that fails the run is a failure, one that holds by less
// than its interval is skipped. A run that did not succeed for another reason is a case of its own that failed.
func RunJUnit(w io.Writer, doc *Document) error {
	doc = shown(doc)
	s := junitSuite{Name: doc.Title, Out: doc.Manifest.RunID}
	failed := false
	for _, a := range doc.Asserts {
		c := junitCase{Class: "assert", Name: a.Name}
		switch {
		case a.Failed:
			c.Failure = &junitMessage{a.Sentence}
			failed = true
		case a.Verdict == assert.Inconclusive:
			c.Skipped = &junitMessage{a.Sentence}
		default:
			c.Out = a.Sentence
		}
		s.add(c)
	}
	run := junitCase{Class: "run", Name: "the run came to its end", Out: doc.Manifest.RunID}
	if m := doc.Manifest; m.Status != result.StatusSucceeded && !failed {
		run.Failure = &junitMessage{fmt.Sprintf("%s: %s", m.Status, m.Error)}
	}
	s.add(run)
	return writeJUnit(w, s)
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
}

func writeJUnit(w io.Writer, s junitSuite) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
