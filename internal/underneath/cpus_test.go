package underneath

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListsOfNumbers(t *testing.T) {
	for text, want := range map[string][]int{"0-3,8,10-11\n": {0, 1, 2, 3, 8, 10, 11}, "5": {5}, "": nil,
		"x,3-1,-4,2": {2}, "0-99999999999": nil, "7-70000": nil} {
		if diff := cmp.Diff(want, parseList(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8,10-11")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range parseList(text) {
			if n < 0 || n >= mostCPUs {
				t.Errorf("%q: %d", text, n)
			}
		}
	})
}
