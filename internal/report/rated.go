package report

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/result"
	"plimsoll/unit"
)

// ratedSentences say how a device stands to its data sheet.
func ratedSentences(x *compare.Experiment) []string {
	if len(x.Rated) == 0 {
		return nil
	}
	by := map[compare.RatedVerdict][]string{}
	for _, r := range x.Rated {
		by[r.Verdict] = append(by[r.Verdict], r.Workload)
	}
	var parts []string
	for _, v := range []struct {
		verdict compare.RatedVerdict
		say     string
	}{{compare.Meets, "met"}, {compare.Below, "below the sheet"},
		{compare.Above, "above what the sheet says is possible"}, {compare.Unclear, "inconclusive"},
		{compare.NothingRated, "not measured"}} {
		if names := by[v.verdict]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", v.say, few(names)))
		}
	}
	text := fmt.Sprintf("Of %s of the data sheet, within %s: %s.", unit.Plural(len(x.Rated), "line"),
		wholePercent(compare.RatedTolerance), strings.Join(parts, "; "))
	out := []string{text}
	for _, r := range x.Rated {
		if r.Measured != nil && r.Verdict == compare.Below && len(r.Reasons) > 0 && len(out) <= mostSweeps {
			out = append(out, fmt.Sprintf("%s: %s of %s. %s.", capital(r.Workload), quantity(r.Measured.Value, r.Unit),
				rated(r.Rated, r.Unit), capital(r.Reasons[0])))
		}
	}
	return out
}

// rated prints a figure as sheets do: bandwidth in powers of 1000.
func rated(v float64, u string) string {
	if u == "bytes/s" {
		return unit.Bandwidth(v).Decimal()
	}
	return quantity(v, u)
}

// ratedGrid are the lines of a data sheet beside what was measured.
func ratedGrid(x *compare.Experiment) grid {
	g := grid{title: "Against the data sheet",
		head: []string{"line", "load", "sheet", "measured", "ratio", "interval", "verdict"}}
	for _, r := range x.Rated {
		load := fmt.Sprintf("%s × %d", unit.Bytes(r.Block), r.Depth)
		row := []string{r.Workload, load, rated(r.Rated, r.Unit), none, none, none, string(r.Verdict)}
		if r.Measured != nil {
			row[3], row[4] = rated(r.Measured.Value, r.Unit), fmt.Sprintf("%.3f", r.Ratio)
			if r.Interval.Valid() {
				row[5] = fmt.Sprintf("%.3f to %.3f", r.Interval.Low, r.Interval.High)
			}
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// ratedReasons are the lines that are not met, each with what may be the reason.
func ratedReasons(x *compare.Experiment) (out []string) {
	for _, r := range x.Rated {
		for _, reason := range r.Reasons {
			out = append(out, r.Workload+": "+reason+".")
		}
	}
	return out
}

// heldTo says of a workload that kept the rate it was given that this, and not what it loads, is what its figures are
// of; "" of others.
func (doc *Document) heldTo(l Latency) string {
	name := l.Workload
	met := slices.ContainsFunc(doc.Findings, func(f result.Finding) bool {
		return f.Check == "offered-rate" && f.Subject == name && f.Severity == result.Passed
	})
	rate := 0.0
	for _, s := range doc.Workloads {
		if s.Name != name || s.Prefill || s.VM == "" {
			continue
		}
		for _, stream := range s.Streams {
			if !(stream.Rate > 0) {
				return doc.heldByQuota()
			}
			rate += stream.Rate
		}
	}
	if !met || rate == 0 || len(l.Windows[0].Rows) == 0 {
		return doc.heldByQuota()
	}
	return fmt.Sprintf(", held to the %s its job asks for: what could be had without that limit is not known",
		quantity(rate, l.Windows[0].Rows[0].Unit))
}

// heldByQuota says of the one workload of a run that what a quota of its group allows is what its figures are of; ""
// where several ran, of which nobody knows which one met it.
func (doc *Document) heldByQuota() string {
	var names []string
	for _, s := range doc.Workloads {
		if !s.Prefill && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	i := slices.IndexFunc(doc.Findings, func(f result.Finding) bool {
		return f.Check == "io-limit" && f.Severity != result.Passed && len(f.Evidence) > 0
	})
	if i < 0 || len(names) != 1 {
		return ""
	}
	quota := doc.Findings[i].Evidence[0]
	return fmt.Sprintf(", held to the %s that a quota of its group allows: what could be had without that limit is not "+
		"known", quantity(quota.Value, quota.Unit))
}
