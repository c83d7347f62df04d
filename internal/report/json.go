package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the document as one JSON object in one line. docs/report-json.md describes it. Its lists are there also
// when they are empty.
func JSON(w io.Writer, doc *Document) error {
	whole := *doc
	whole.Verdicts, whole.InShort, whole.Findings = list(doc.Verdicts), list(doc.InShort), list(doc.Findings)
	whole.Latencies, whole.Panels, whole.Series = list(doc.Latencies), list(doc.Panels), list(doc.Series)
	whole.Phases, whole.Marks, whole.Journal = list(doc.Phases), list(doc.Marks), list(doc.Journal)
	whole.Workloads, whole.VMs = list(doc.Workloads), list(doc.VMs)
	if err := json.NewEncoder(w).Encode(&whole); err != nil {
		return fmt.Errorf("report: json: %w", err)
	}
	return nil
}

// list is never nil, which would be null.
func list[T any](given []T) []T {
	if given == nil {
		return []T{}
	}
	return given
}
