package report

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"plimsoll/internal/analysis/compare"
)

// sample is a row of a run's table, as its CSV has them.
type sample struct {
	Panel  string    `parquet:"panel,dict"`
	Series string    `parquet:"series,dict"`
	Time   time.Time `parquet:"time,timestamp(microsecond)"`
	Value  float64   `parquet:"value"`
	Unit   string    `parquet:"unit,dict"`
}

// Parquet writes the table of a run's CSV, with times and numbers as such.
func Parquet(w io.Writer, doc *Document) error {
	const together = 10_000
	out := parquet.NewGenericWriter[sample](w, parquet.Compression(&parquet.Zstd))
	var batch []sample
	var failed error
	flush := func() {
		if _, err := out.Write(batch); err != nil && failed == nil {
			failed = err
		}
		batch = batch[:0]
	}
	samples(shown(doc), func(panel, series string, at time.Time, v float64, unit string) {
		if batch = append(batch, sample{panel, series, at.UTC(), v, unit}); len(batch) == together {
			flush()
		}
	})
	flush()
	if err := errors.Join(failed, out.Close()); err != nil {
		return fmt.Errorf("report: parquet: %w", err)
	}
	return nil
}

// ExperimentParquet writes the table of an experiment's CSV: factors whose levels are all numbers, and what was
// measured, as numbers, and what a run did not measure as null.
func ExperimentParquet(w io.Writer, x *compare.Experiment) error {
	head, rows := runRows(shown(x))
	numbers := make([]bool, len(head))
	fields := parquet.Group{}
	for i, name := range head {
		numbers[i] = name != "run_id" && name != "started" && name != "failed"
		for _, row := range rows {
			_, err := strconv.ParseFloat(row[i], 64)
			numbers[i] = numbers[i] && (row[i] == "" || err == nil)
		}
		fields[name] = parquet.Optional(parquet.String())
		if numbers[i] {
			fields[name] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
		}
	}
	out := parquet.NewWriter(w, parquet.NewSchema("runs", fields), parquet.Compression(&parquet.Zstd))
	var failed error
	for _, row := range rows {
		values := map[string]any{}
		for i, name := range head {
			switch v, _ := strconv.ParseFloat(row[i], 64); {
			case row[i] == "":
			case numbers[i]:
				values[name] = v
			default:
				values[name] = row[i]
			}
		}
		if err := out.Write(values); err != nil && failed == nil {
			failed = err
		}
	}
	if err := errors.Join(failed, out.Close()); err != nil {
		return fmt.Errorf("report: parquet: %w", err)
	}
	return nil
}
