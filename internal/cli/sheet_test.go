package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/needs"
)

func TestReadSheet(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		names []string
		rows  [][]string
		fails string
	}{
		"csv":               {text: "a, b\n1,2\n\n# note\n3 , 4\n", names: []string{"a", "b"}, rows: [][]string{{"1", "2"}, {"3", "4"}}},
		"quoted":            {text: "\"a, x\",b\n1,2\n", names: []string{"a, x", "b"}, rows: [][]string{{"1", "2"}}},
		"tabs":              {text: "a b\tc\n1\t2\n", names: []string{"a b", "c"}, rows: [][]string{{"1", "2"}}},
		"semicolons":        {text: "\ufeffa;b\r\n1;2\r\n", names: []string{"a", "b"}, rows: [][]string{{"1", "2"}}},
		"blanks":            {text: "1  2\n3 4", names: []string{"column 1", "column 2"}, rows: [][]string{{"1", "2"}, {"3", "4"}}},
		"one per line":      {text: "5\n6", names: []string{"column 1"}, rows: [][]string{{"5"}, {"6"}}},
		"list":              {text: "[1, 2.5, null]", names: []string{"column 1"}, rows: [][]string{{"1"}, {"2.5"}, {""}}},
		"lists":             {text: "[[1,2],[3,4]]", names: []string{"column 1", "column 2"}, rows: [][]string{{"1", "2"}, {"3", "4"}}},
		"objects":           {text: `[{"x":1,"n":2},{"n":4,"x":3}]`, names: []string{"n", "x"}, rows: [][]string{{"2", "1"}, {"4", "3"}}},
		"columns":           {text: `{"n":[1,2],"x":[3,4]}`, names: []string{"n", "x"}, rows: [][]string{{"1", "3"}, {"2", "4"}}},
		"empty":             {text: " \n", fails: "no data"},
		"header only":       {text: "a,b\n", fails: "no rows"},
		"ragged":            {text: "a,b\n1\n", fails: "line 2 has 1 cells"},
		"not JSON":          {text: "[1,", fails: "not valid JSON"},
		"no list":           {text: `{"n":1}`, fails: `"n" is not a list`},
		"unequal lists":     {text: `{"n":[1],"x":[1,2]}`, fails: `"x" has 2 values, "n" has 1`},
		"a field more":      {text: `[{"n":1},{"n":1,"x":2}]`, fails: `element 2 has a field "x"`},
		"a list of another": {text: `[[1,2],[3]]`, fails: "element 2 has 1 values"},
		"empty list":        {text: `[]`, fails: "no rows"},
	} {
		s, err := readSheet(strings.NewReader(c.text))
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
			continue
		}
		if err != nil || !cmp.Equal(c.names, s.names) || !cmp.Equal(c.rows, s.rows) {
			t.Errorf("%s: %v\n%s%s", name, err, cmp.Diff(c.names, s.names), cmp.Diff(c.rows, s.rows))
		}
	}
}

func FuzzReadSheet(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "[1,2]", `{"n":[1]}`, `[{"n":1}]`, "1 2\n3 4", "a;b\n\"1;2\n", "\ufeff#\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readSheet(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(s.rows) == 0 || len(s.lines) != len(s.rows) {
			t.Fatalf("%d rows, %d lines", len(s.rows), len(s.lines))
		}
		for _, r := range s.rows {
			if len(r) != len(s.names) {
				t.Fatalf("a row of %d cells in %d columns", len(r), len(s.names))
			}
		}
		for _, c := range s.numeric() {
			if _, err := s.numbers(c, true); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestPublishedCurves reads published measurements through the command and demands the coefficients printed with them.
func TestPublishedCurves(t *testing.T) {
	dir := needs.Corpus(t, "usl")
	for name, want := range map[string][3]float64{ // gamma, alpha, beta, and how closely they are printed
		"cisco.csv":     {995.6486, 0.02671591, 0.0007690945},
		"specsdm91.csv": {89.995, 0.02773, 0.0001044},
	} {
		a, out, _ := quiet(t)
		if code := a.main([]string{"usl", filepath.Join(dir, name), "--json"}); code != 0 {
			t.Fatalf("%s: exit code %d", name, code)
		}
		var got struct{ Gamma, Alpha, Beta struct{ Value float64 } }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for i, v := range []float64{got.Gamma.Value, got.Alpha.Value, got.Beta.Value} {
			if math.Abs(v/want[i]-1) > 5e-4 {
				t.Errorf("%s: coefficient %d is %v, printed as %v", name, i, v, want[i])
			}
		}
	}
}
