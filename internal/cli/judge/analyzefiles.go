package judge

import (
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/analysis"
	"plimsoll/internal/formats/table"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/report"
	"plimsoll/result"
)

// analyzedFile is one file with what was found and what could not be looked at.
type analyzedFile struct {
	Source      string           `json:"source"`
	StepSeconds float64          `json:"step_seconds,omitempty"` // between rows; absent when not known
	Notes       []string         `json:"notes,omitempty"`        // of the times
	InShort     []report.Short   `json:"in_short"`
	Findings    []result.Finding `json:"findings"`
	NotLookedAt []string         `json:"not_looked_at"`
}

// names that say what the numbers of a column are.
var (
	percentileName = regexp.MustCompile(`(^|[^a-z])p\d{1,2}([._]?\d+)?($|[^a-z0-9])|percentile|median`)
	rateName       = regexp.MustCompile(`(^|_)(iops|ops|tps|qps|rps|throughput|rate)($|_)|per_second|/s$`)
	// throughputUnits are of the columns of which the name says it.
	throughputUnits = map[string]string{
		"iops": result.OperationsUnit, "ops": "operations/s", "tps": "transactions/s", "qps": "queries/s",
		"rps": "requests/s",
		"tpm": "transactions/min", "nopm": "NOPM",
	}
	responseNames = []string{"latency", "lat", "mean_latency", "latency_mean", "response", "response_time",
		"mean_response", "service_time", "r", "mean", "avg"}
)

func kindOf(name string) analysis.Kind {
	stem, _ := table.SplitUnit(name)
	name = strings.ToLower(name)
	switch {
	case percentileName.MatchString(name):
		return analysis.Percentile
	case rateName.MatchString(name), rateName.MatchString(stem):
		return analysis.Rate
	}
	return analysis.Other
}

// analyzeFile looks at a table of any tool.
func (sd *Sides) analyzeFile(given, column string) (*analyzedFile, error) {
	const phase = "analyze"
	s, err := sd.openTable(phase, given)
	if err != nil {
		return nil, err
	}
	out := &analyzedFile{Source: s.Source, Findings: []result.Finding{}}
	var t analysis.Table
	if column == "" {
		if t.Sweep, err = sweepOf(s); t.Sweep != nil {
			if err := oneTest(phase, s, s.Concurrency()); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "--column NAME looks at one column as a series", "%s: %s: %w", phase,
				s.Source, err)
		}
	}
	if t.Sweep == nil {
		list, line, err := evenly(sd.Console, phase, s, column)
		if err != nil {
			return nil, err
		}
		if line != nil {
			t.Step, out.StepSeconds, out.Notes = line.Step, line.Step, line.Notes
		}
		for _, n := range list {
			if column == "" && (table.IsConcurrency(n.name) || slices.Contains(weightNames, strings.ToLower(n.name))) &&
				len(list) > 1 {
				continue // a setting
			}
			t.Columns = append(t.Columns, analysis.Column{Name: n.name, Kind: kindOf(n.name), Values: n.values})
		}
	}
	found, unseen := analysis.OfTable(t)
	out.Findings, out.NotLookedAt = append(out.Findings, found...), unseen
	out.InShort = report.InShort(found)
	return out, nil
}

// sweepOf are the columns of a load sweep: concurrency that is not the same in all rows, throughput, and mean response
// time when its name says in what unit. nil when the rows are no sweep.
func sweepOf(s *table.Table) (*analysis.Sweep, error) {
	n, x := s.Concurrency(), s.Column(throughputNames...)
	if t, err := s.Times(); n < 0 || x < 0 || t != nil || err != nil {
		return nil, err
	}
	const fewest = 3
	levels := map[string]bool{}
	for _, row := range s.Rows {
		levels[row[n]] = true
	}
	if len(levels) < fewest {
		return nil, nil
	}
	out := analysis.Sweep{Unit: throughputUnits[strings.ToLower(s.Names[x])]}
	var err error
	if out.Concurrency, err = s.Numbers(n, false); err != nil {
		return nil, err
	}
	if out.Throughput, err = s.Numbers(x, false); err != nil {
		return nil, err
	}
	for i, name := range s.Names {
		stem, unit := table.SplitUnit(name)
		factor := table.SecondsIn(unit)
		if factor == 0 || !slices.Contains(responseNames, stem) {
			continue
		}
		if out.ResponseSeconds, err = s.Numbers(i, false); err != nil {
			return nil, err
		}
		for j := range out.ResponseSeconds {
			out.ResponseSeconds[j] *= factor
		}
		break
	}
	return &out, nil
}
