package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"plimsoll/internal/compare"
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
	s := junitSuite{Name: cmp.Or(d.Title, "plimsoll comparison"), Tests: len(d.Measures),
		Out: strings.Join(append([]string{d.Sentence}, d.Notes...), "\n")}
	several := sideNumbers(d)
	for _, m := range d.Measures {
		c := junitCase{
			Class: strings.TrimSpace(cmp.Or(m.Workload, "columns") + " " + m.Cell),
			Name:  fullName(m, several),
		}
		text := fmt.Sprintf("%s: from %s to %s, change %s, interval %s", verdictText(m, d.Threshold),
			quantity(m.Baseline.Value, m.Unit), quantity(m.Candidate.Value, m.Unit), changeText(m), compareInterval(m))
		switch why := fails(m); {
		case why != "":
			c.Failure = &junitMessage{text}
			s.Failures++
		case m.Verdict == compare.Inconclusive:
			c.Skipped = &junitMessage{text}
			s.Skipped++
		default:
			c.Out = text
		}
		for _, warning := range m.Warnings {
			c.Out = strings.TrimSpace(c.Out + "\n" + warning)
		}
		s.Cases = append(s.Cases, c)
	}
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
