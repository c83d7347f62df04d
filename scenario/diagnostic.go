package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/kit/nearest"
)

// Severity says what an objection means for the run.
type Severity int

// The severities, most serious first. A scenario with an Error is not loaded.
const (
	Error Severity = iota + 1
	Warning
	Note
)

// String gives "error", "warning" or "note".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Note:
		return "note"
	}
	return fmt.Sprintf("severity(%d)", int(s))
}

// MarshalText writes the severity as its word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{Error, Warning, Note} {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("severity: %q is not error, warning or note", text)
}

// Diagnostic is one objection to a scenario, or one remark about it. The position is in the author's file.
type Diagnostic struct {
	Pos
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`           // stable, listed by Codes
	What     string   `json:"what"`           // what is wrong, naming the object and quoting the value
	Hint     string   `json:"hint,omitempty"` // what to do about it
}

// String gives "file:line:col: severity: what: hint"; unknown parts of the position are left out.
func (d Diagnostic) String() string {
	var b strings.Builder
	if at := d.Pos.String(); at != "" {
		b.WriteString(at + ": ")
	}
	b.WriteString(d.Severity.String() + ": " + d.What)
	if d.Hint != "" {
		b.WriteString(": " + d.Hint)
	}
	return b.String()
}

// String gives "file:line:col"; unknown parts are left out.
func (p Pos) String() string {
	switch {
	case p.File == "":
		return ""
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// alike is how many objections of one kind are shown for one place: a loop in the template makes the same mistake once
// per turn, and the author has one line to mend.
const alike = 3

// sortDiagnostics orders by position, then severity and code, and drops repetitions. Objections of one kind at one
// place beyond the first few are counted on the last one shown.
func sortDiagnostics(all []Diagnostic) []Diagnostic {
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Code, b.Code),
		)
	})
	var kept []Diagnostic
	for start := 0; start < len(all); {
		end := start
		distinct := []Diagnostic{}
		seen := map[Diagnostic]bool{}
		for ; end < len(all) && all[end].Pos == all[start].Pos && all[end].Severity == all[start].Severity &&
			all[end].Code == all[start].Code; end++ {
			if !seen[all[end]] {
				seen[all[end]] = true
				distinct = append(distinct, all[end])
			}
		}
		if more := len(distinct) - alike; more > 0 && distinct[0].Line > 0 {
			distinct = distinct[:alike]
			distinct[alike-1].What += fmt.Sprintf(" (and %d more like this here)", more)
		}
		kept = append(kept, distinct...)
		start = end
	}
	return kept
}

func hasError(all []Diagnostic) bool {
	return slices.ContainsFunc(all, func(d Diagnostic) bool { return d.Severity == Error })
}

// closest returns the candidate closest to the given name, or "" when none is close enough to be what was meant.
func closest(name string, candidates []string) string {
	const most = 500 // candidates compared, to keep a hostile file cheap
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates[:min(len(candidates), most)] {
		if max(len(c)-len(name), len(name)-len(c)) >= bestDistance {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// didYouMean is closest as a hint; without a near name it lists what there is when that is short.
func didYouMean(name string, candidates []string) string {
	if n := closest(name, candidates); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if n := len(candidates); n > 0 && n <= 12 {
		return "known: " + strings.Join(candidates, ", ")
	}
	return ""
}

// distance is nearest.Distance, with long names cut so that hostile input stays cheap.
func distance(a, b string) int {
	const longest = 64
	return nearest.Distance(a[:min(len(a), longest)], b[:min(len(b), longest)])
}
