package report

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/analysis/compare"
)

// ExperimentCSV writes a row for every run of an experiment, with a column for each factor and one for each thing that
// was measured of a workload. What a run did not measure is an empty cell; of a run that failed the reason is there.
func ExperimentCSV(w io.Writer, x *compare.Experiment) error {
	x = shown(x)
	t := &table{w: bufio.NewWriter(w)}
	head, rows := runRows(x)
	t.row(head...)
	for _, row := range rows {
		t.row(row...)
	}
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("report: csv: %w", err)
	}
	return nil
}

// runRows are the runs of an experiment as a table.
func runRows(x *compare.Experiment) (head []string, rows [][]string) {
	head = []string{"run_id", "started", "sequence", "repeat", "failed"}
	for _, f := range x.Factors {
		name := f.Name
		if slices.Contains(head, name) {
			name = "factor_" + name
		}
		head = append(head, name)
	}
	settings := len(head)
	at := map[string]int{} // columns by workload and measure
	for _, r := range x.Runs {
		for _, v := range r.Values {
			key := v.Workload + "\x00" + v.Name
			if _, there := at[key]; there {
				continue
			}
			name := columnOf(v)
			for n, first := 2, name; slices.Contains(head, name); n++ {
				name = fmt.Sprintf("%s_%d", first, n)
			}
			at[key], head = len(head), append(head, name)
		}
	}
	for _, r := range x.Runs {
		started := ""
		if !r.Started.IsZero() {
			started = r.Started.UTC().Format(time.RFC3339)
		}
		row := []string{r.RunID, started, strconv.Itoa(r.Sequence), strconv.Itoa(r.Repeat), r.Failed}
		row = append(append(row, r.Levels...), make([]string, len(head)-settings)...)
		for _, v := range r.Values {
			row[at[v.Workload+"\x00"+v.Name]] = strconv.FormatFloat(v.Value, 'g', -1, 64)
		}
		rows = append(rows, row)
	}
	return head, rows
}

var notInAName = regexp.MustCompile(`[^a-z0-9.]+`)

// columnOf is the name of a measure as a program may use it: workload, measure and unit. IOPS say their unit.
func columnOf(v compare.CellValue) string {
	word := func(text string) string {
		text = strings.ToLower(strings.ReplaceAll(text, "/", " per "))
		return strings.Trim(notInAName.ReplaceAllString(text, "_"), "_")
	}
	name := word(v.Name)
	if v.Workload != "" {
		name = word(v.Workload) + "." + name
	}
	if unit := word(strings.ReplaceAll(v.Unit, "%", "percent")); unit != "" && !strings.HasSuffix(name, "iops") {
		name += "_" + unit
	}
	return name
}
