package terminal

import (
	"strings"
	"testing"
)

// Sentences go on below where the terminal ends, those of a list within it; tables do not, nor what goes to a file.
func TestFold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		columns int
		pieces  []string
		want    string
	}{
		"a sentence": {9, []string{"one two ", "three\nfour\n"}, "one two\nthree\nfour\n"},
		"of a list":  {12, []string{"- info: one two three\n"}, "- info: one\n  two three\n"},
		"a row":      {9, []string{"name  value  unit\n"}, "name  value  unit\n"},
		"no end":     {7, []string{"one two", " three"}, "one two\nthree"},
		"wide words": {4, []string{"µµµµ äöüß\n"}, "µµµµ\näöüß\n"},
		"a file":     {0, []string{"one two ", "three"}, "one two three"},
	} {
		var b strings.Builder
		f := &folder{w: &b, columns: c.columns}
		for _, p := range c.pieces {
			if n, err := f.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := f.Close(); err != nil || b.String() != c.want {
			t.Errorf("%s: %v, %q, want %q", name, err, b.String(), c.want)
		}
	}
}
