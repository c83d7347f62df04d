package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"plimsoll/result"
)

// How many sentences a summary has at most, in all and of each sort.
const (
	mostShort    = 5
	mostBlockers = 2
	mostAnswers  = 3
)

// answers are the checks that say what a run was made to find out, in the order in which they are told.
var answers = []string{"scalability", "load-curve", "recovery-repeats", "recovery", "windows", "ingest-repeats",
	"ingest", "residency-repeats", "residency", "cache-steps"}

// plainAnswer is what is told of a run without any of them: the level at which it was steady.
const plainAnswer = "steady-state"

// InShort chooses the at most five findings that a reader needs first: what forbids a conclusion, what the run was
// made to find out, and what the figures must be read with. It judges nothing: severities and sentences are those of
// the analysis.
func InShort(all []result.Finding) []Short {
	var out []Short
	taken := map[string]bool{}
	take := func(f result.Finding) {
		taken[f.Check] = true
		out = append(out, Short{f.Severity, f.Check, f.Subject, firstSentence(f.Sentence)})
	}
	failed := 0
	for _, f := range all { // what the author said must hold comes first of all
		if failedAssert(f) && failed < mostBlockers {
			take(f)
			failed++
		}
	}
	for _, f := range all {
		if f.Severity == result.Blocker && len(out)-failed < mostBlockers && !taken[f.Check] {
			take(f)
		}
	}
	told := 0
	for _, check := range answers {
		if f, ok := tellable(all, check); ok && !taken[check] && told < mostAnswers && len(out) < mostShort-1 {
			take(f)
			told++
		}
	}
	if f, ok := tellable(all, plainAnswer); ok && told == 0 && len(out) < mostShort-1 {
		take(f)
		for _, other := range all { // several workloads beside each other are what the run was about
			if other.Check == plainAnswer && other.Severity == f.Severity && other.Subject != f.Subject &&
				len(out) < mostAnswers+1 {
				take(other)
			}
		}
	}
	for _, f := range all {
		same := f.Check == "latency-kind" && taken["offered-rate"] // both say that the rate was missed
		if f.Severity == result.Caution && !taken[f.Check] && !same && len(out) < mostShort {
			take(f)
		}
	}
	if len(out) == 0 && len(all) > 0 {
		n := 0
		for _, f := range all {
			if f.Severity == result.Fine {
				n++
			}
		}
		out = append(
			out,
			Short{
				Severity: result.Fine,
				Check:    "all",
				Sentence: fmt.Sprintf("No warnings; %d checks passed.", n),
			},
		)
	}
	return out
}

// failedAssert reports whether a finding is a condition of the author's that does not hold, or could not be judged.
func failedAssert(f result.Finding) bool {
	return f.Check == result.AssertCheck && f.Severity != result.Fine
}

// Short is one sentence of the summary with the finding it is from.
type Short struct {
	Severity result.Severity `json:"severity"`
	Check    string          `json:"check"`
	Subject  string          `json:"subject,omitempty"`
	Sentence string          `json:"sentence"`
}

// tellable is the finding of a check that says most: the most severe, then the one farthest from no change.
func tellable(all []result.Finding, check string) (best result.Finding, found bool) {
	weight := func(f result.Finding) float64 {
		w := float64(10 * (3 - severityRank(f.Severity)))
		if f.Unit == "ratio" && f.Value != nil && *f.Value > 0 {
			r := *f.Value
			w += min(9, max(r, 1/r))
		}
		return w
	}
	for _, f := range all {
		if f.Check == check && (check == "windows" || check == plainAnswer || f.Severity != result.Fine) &&
			(!found || weight(f) > weight(best)) {
			best, found = f, true
		}
	}
	return best, found
}

func severityRank(s result.Severity) int {
	return slices.Index([]result.Severity{result.Blocker, result.Caution, result.Notice, result.Fine}, s)
}

// firstSentence is the text up to the first full stop that a new sentence follows.
func firstSentence(s string) string {
	for i := 0; ; {
		at := strings.Index(s[i:], ". ")
		if at < 0 {
			return s
		}
		i += at + 2
		for _, r := range s[i:] {
			if unicode.IsUpper(r) {
				return s[:i-1]
			}
			break
		}
	}
}
