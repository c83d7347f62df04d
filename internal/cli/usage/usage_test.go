package usage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What no group names is listed all the same, in the last.
func TestSplit(t *testing.T) {
	t.Parallel()
	got := Split([]Group{{"A", "b a"}, {"None", "x"}, {"Last", "c"}}, []string{"a", "b", "c", "new"})
	if diff := cmp.Diff([]Group{{"A", "b a"}, {"Last", "c new"}}, got); diff != "" {
		t.Error(diff)
	}
}
