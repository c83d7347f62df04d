package compare

import (
	"slices"

	"plimsoll/result"
)

// Said holds what the runs of an experiment were warned of by one check: which combinations, and how many of their
// runs. A difference between combinations is theirs only as far as this is the same of all, or is what they differ by.
type Said struct {
	Check    string          `json:"check"`
	Severity result.Severity `json:"severity"` // the worst
	Cells    []SaidOfCell    `json:"cells"`
	Sentence string          `json:"sentence"` // of the worst, the first of several
	// Differs: not all of them say the same sentence; Mixed: not all are of the worst severity.
	Differs bool `json:"differs,omitempty"`
	Mixed   bool `json:"mixed,omitempty"`
}

// SaidOfCell is in how many runs of a combination.
type SaidOfCell struct {
	Cell string `json:"cell"`
	Runs int    `json:"runs"`
	Of   int    `json:"of"`
}

// said collects the findings that change what figures may be used for, the worst first, then those of most runs.
func (x *Experiment) said(d Design) {
	var order []string
	of := map[string]*Said{}
	total := map[string]int{}
	for i, c := range x.Cells {
		for _, m := range d.at(c.Levels) {
			warned := map[string]bool{} // a check speaks of every workload
			for _, f := range m.Findings {
				if f.Severity != result.Invalid && f.Severity != result.Warning {
					continue
				}
				s := of[f.Check]
				if s == nil {
					s = &Said{Check: f.Check, Severity: f.Severity, Sentence: f.Sentence}
					of[f.Check] = s
					order = append(order, f.Check)
				}
				s.Differs, s.Mixed = s.Differs || f.Sentence != s.Sentence, s.Mixed || f.Severity != s.Severity
				if f.Severity == result.Invalid && s.Severity != result.Invalid {
					s.Severity, s.Sentence = f.Severity, f.Sentence
				}
				if warned[f.Check] {
					continue
				}
				warned[f.Check] = true
				total[f.Check]++
				if n := len(s.Cells); n == 0 || s.Cells[n-1].Cell != c.Cell {
					s.Cells = append(s.Cells, SaidOfCell{Cell: x.Cells[i].Cell, Of: len(c.Runs)})
				}
				s.Cells[len(s.Cells)-1].Runs++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		if worse := of[a].Severity == result.Invalid; worse != (of[b].Severity == result.Invalid) {
			if worse {
				return -1
			}
			return 1
		}
		return total[b] - total[a]
	})
	for _, check := range order {
		x.Said = append(x.Said, *of[check])
	}
}
