package report

import (
	"fmt"
	"slices"
	"strconv"

	"plimsoll/result"
	"plimsoll/unit"
)

// PreparedRow is a part of a preconditioning.
type PreparedRow struct {
	Part, Written, Took, Rate, Errors string
}

// preparedTable is one preconditioning as people read it.
type preparedTable struct {
	Title, Note string
	Rows        []PreparedRow
}

// Preparations are the preconditionings of the run.
func (doc *Document) Preparations() (tables []preparedTable) {
	for _, p := range doc.Preconditioned {
		t := preparedTable{Title: fmt.Sprintf("Preconditioning for %s", p.Workload), Note: preparedNote(p)}
		if p.Purged != "" {
			t.Rows = append(t.Rows, PreparedRow{"purge", p.Purged, none, none, none})
		}
		for i, pass := range p.Passes {
			written := unit.Bytes(pass.Bytes).String()
			if pass.Bytes < p.DiskBytes {
				written += " of " + unit.Bytes(p.DiskBytes).String()
			}
			rate := none
			if pass.Seconds > 0 {
				rate = quantity(float64(pass.Bytes)/pass.Seconds, "bytes/s")
			}
			t.Rows = append(t.Rows, PreparedRow{"pass " + strconv.Itoa(i+1), written, duration(pass.Seconds), rate,
				plain(float64(pass.Errors))})
		}
		for i, r := range p.Rounds {
			name := "round " + strconv.Itoa(i+1)
			if p.Spread != nil && i >= len(p.Rounds)-result.SteadyWindow {
				name += " *"
			}
			t.Rows = append(t.Rows, PreparedRow{name, none, duration(r.Seconds),
				quantity(r.OpsPerSecond, "operations/s"), plain(float64(r.Errors))})
		}
		tables = append(tables, t)
	}
	return tables
}

// preparedNote returns what a reader of the table must know: what came of it, and the rule.
func preparedNote(p result.Preconditioning) string {
	text := fmt.Sprintf("%s, %s in all: %s.", unit.Plural(p.VMs, "VM"), duration(p.Seconds), p.Sentence())
	if p.Spread == nil || p.Slope == nil {
		return text
	}
	return text + fmt.Sprintf(" Over the last %d rounds (*) rates spread over %s of their mean (steady: at most %s) and a "+
		"fitted line moves by %s of it (at most %s). These are the numbers commonly given for the solid-state storage test "+
		"specification of the SNIA; conformance is not claimed.", result.SteadyWindow, share(*p.Spread),
		share(result.SteadySpread), share(*p.Slope), share(result.SteadySlope))
}

func share(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }

// Looks are what was seen of whether disks had ever been written, each a sentence.
func (doc *Document) Looks() (texts []string) {
	for _, w := range doc.Written {
		text := fmt.Sprintf("%s: disks of %s, %s", w.Workload, unit.Plural(w.VMs, "VM"), w.Sentence())
		if w.Blocks > 0 {
			text += fmt.Sprintf(" (so at most %s of all, with 95 %% confidence)", share(w.ZeroAtMost))
		}
		if w.Problem != "" {
			text += ": " + w.Problem
		}
		texts = append(texts, text+".")
	}
	return slices.Clip(texts)
}
