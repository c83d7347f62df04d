package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
	"plimsoll/unit"
)

// Beside is one load of a run among the systems that did the same.
type Beside struct {
	Workload string     `json:"workload"`
	Alike    string     `json:"alike"` // the conditions in which they are
	Systems  int        `json:"systems"`
	Figures  []Standing `json:"figures"`
	Records  []Alike    `json:"records"` // the last of each system
}

// Standing is where a run stands with one figure.
type Standing struct {
	Figure
	Least  float64 `json:"least"` // of the systems
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
	N      int     `json:"n"`              // systems that have it
	Above  int     `json:"above"`          // of them, with more than the run
	Kept   int     `json:"kept,omitempty"` // of N, that kept all of a rate that was offered
	Rank   int     `json:"rank,omitempty"` // of the run among N+1, 1 for the best; 0 where nobody said which way is good
}

// Alike is a record beside a load.
type Alike struct {
	System  string   `json:"system"`
	Source  string   `json:"source"`
	ID      string   `json:"id"`
	Note    string   `json:"note,omitempty"`
	Figures []Figure `json:"figures"`
}

// Set sets what a run did beside records: of each of its loads the systems that did the same, for the first of its sets
// of conditions that any did; none where nothing is alike. Its own record is not beside itself.
func Set(own Record, workloads []string, records []Record) (out []Beside) {
	for i, d := range own.Done {
		for _, l := range d.Loads {
			if b := setOne(own, d, l, records); b.Systems > 0 {
				b.Workload = workloads[i]
				out = append(out, b)
				break
			}
		}
	}
	return out
}

func setOne(own Record, d Done, l Load, records []Record) Beside {
	last := map[string]Record{} // by system
	figures := map[string][]Figure{}
	for _, r := range records {
		if r.ID == own.ID || r.Simulated != own.Simulated {
			continue
		}
		for _, did := range r.Done {
			alike := slices.ContainsFunc(did.Loads, func(o Load) bool { return maps.Equal(o, l) })
			if before, is := last[r.System]; alike && (!is || !r.Date.Before(before.Date)) {
				last[r.System], figures[r.System] = r, did.Figures
			}
		}
	}
	b := Beside{Alike: l.String(), Systems: len(last)}
	for _, system := range slices.Sorted(maps.Keys(last)) {
		r := last[system]
		b.Records = append(b.Records, Alike{system, r.Source, r.ID, r.Note, figures[system]})
	}
	for _, f := range d.Figures {
		var values []float64
		for _, a := range b.Records {
			i := slices.IndexFunc(a.Figures, f.Same)
			if i >= 0 {
				values = append(values, a.Figures[i].Value)
			}
		}
		if len(values) > 0 {
			b.Figures = append(b.Figures, standing(f, values))
		}
	}
	if len(b.Figures) == 0 { // the same load, of which other things were written down
		b.Systems = 0
	}
	return b
}

// OfferedShare is the name of a figure that is the part of an offered rate that was kept.
const OfferedShare = "of the offered rate"

// kept is from what part of an offered rate on it counts as kept.
const kept = 0.99

func standing(f Figure, values []float64) Standing {
	slices.Sort(values)
	s := Standing{Figure: f, Least: values[0], Most: values[len(values)-1], N: len(values),
		Median: resample.Median(values)}
	below := 0
	for _, v := range values {
		if f.Name == OfferedShare && v >= kept {
			s.Kept++
		}
		switch cmp.Compare(v, f.Value) {
		case 1:
			s.Above++
		case -1:
			below++
		}
	}
	switch f.Better {
	case result.Higher:
		s.Rank = s.Above + 1
	case result.Lower:
		s.Rank = below + 1
	}
	return s
}

// Say is a sentence about where a load stands with its first figures; say prints a value with its unit.
func (b Beside) Say(most int, say func(v float64, unit string) string) string {
	var clauses []string
	for _, s := range b.Figures[:min(most, len(b.Figures))] {
		text := fmt.Sprintf("%s %s", s.Name, say(s.Value, s.Unit))
		switch {
		case s.N == 1:
			text += ", the other " + say(s.Most, s.Unit)
		default:
			text += fmt.Sprintf(
				", the others %s to %s, median %s",
				say(s.Least, s.Unit),
				say(s.Most, s.Unit),
				say(s.Median, s.Unit),
			)
		}
		if s.Kept > 0 {
			text += fmt.Sprintf(" (%d of %d kept it)", s.Kept, s.N)
		} else if s.Rank > 0 && s.N > 1 {
			text += fmt.Sprintf(" (place %d of %d)", s.Rank, s.N+1)
		}
		clauses = append(clauses, text)
	}
	return fmt.Sprintf("%s beside %s that did the same: %s.", b.Workload, unit.Plural(b.Systems, "recorded system"),
		strings.Join(clauses, "; "))
}
