package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the document as one JSON object in one line. docs/report-json.md describes it.
func JSON(w io.Writer, doc *Document) error {
	if err := json.NewEncoder(w).Encode(doc); err != nil {
		return fmt.Errorf("report: json: %w", err)
	}
	return nil
}
