package analysis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
)

// Every check has a name and a rank of its own, and a row on the page that says what is checked.
func TestChecks(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(needs.Root(), "docs", "findings.md"))
	if err != nil {
		t.Fatal(err)
	}
	names, ranks := map[string]bool{}, map[int]string{}
	for _, c := range checks {
		if c.Name == "" || c.Rank < 100 || c.Run == nil {
			t.Errorf("%+v lacks a name, a rank or what to run", c.Name)
			continue
		}
		if names[c.Name] {
			t.Errorf("two checks are called %s", c.Name)
		}
		if other, taken := ranks[c.Rank]; taken {
			t.Errorf("%s and %s have the same rank %d", c.Name, other, c.Rank)
		}
		names[c.Name], ranks[c.Rank] = true, c.Name
		if !strings.Contains(string(page), "`"+c.Name+"`") {
			t.Errorf("docs/findings.md has no row for %s", c.Name)
		}
	}
}
