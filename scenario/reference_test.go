package scenario_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/scenario"
)

// TestReference holds what the program prints of the option tables, so that a change of one is read as a user reads it.
func TestReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	parts := scenario.Reference()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		b.WriteString("# " + name + "\n\n" + parts[name] + "\n")
	}
	golden.Compare(t, "testdata/reference.txt", []byte(b.String()))
}
