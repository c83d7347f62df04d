package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// What is read from the Parquet of an experiment is what its CSV has: identities as text, all others as numbers.
func TestExperimentParquet(t *testing.T) {
	t.Parallel()
	x := madeExperiment(t)
	var b bytes.Buffer
	if err := ExperimentParquet(&b, x); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	head, rows := runRows(x)
	if got := int(file.NumRows()); got != len(rows) {
		t.Fatalf("%d rows, want %d", got, len(rows))
	}
	var columns []string
	for _, f := range file.Schema().Fields() {
		columns = append(columns, f.Name())
	}
	sorted := slices.Sorted(slices.Values(head))
	if !slices.Equal(slices.Sorted(slices.Values(columns)), sorted) {
		t.Errorf("columns %q, want %q", columns, sorted)
	}
	reader := parquet.NewReader(file)
	for n, row := range rows {
		got := map[string]any{}
		if err := reader.Read(&got); err != nil {
			t.Fatal(err)
		}
		for i, name := range head {
			text := ""
			if got[name] != nil {
				text = fmt.Sprint(got[name])
			}
			if text != row[i] && !same(text, row[i]) {
				t.Errorf("row %d: %s is %s, want %s", n, name, text, row[i])
			}
		}
	}
}

// same reports whether two texts are one number.
func same(a, b string) bool {
	var x, y float64
	_, err := fmt.Sscan(a, &x)
	_, err2 := fmt.Sscan(b, &y)
	return err == nil && err2 == nil && x == y
}

// The Parquet of a run has the rows of its CSV.
func TestParquet(t *testing.T) {
	t.Parallel()
	doc := small()
	var text, b bytes.Buffer
	if err := CSV(&text, doc); err != nil {
		t.Fatal(err)
	}
	if err := Parquet(&b, doc); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[sample](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(text.String(), "\n") - 1; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	if rows[0].Panel == "" || rows[0].Time.IsZero() || rows[0].Unit == "" {
		t.Errorf("the first row is %+v", rows[0])
	}
}
